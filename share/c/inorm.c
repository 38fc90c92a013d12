/* y = the norm of each row of n; bias NULL: none. */
static void @NAME@(int rows, int n, int centred, const @X@ *x, const @A@ *w, const @B@ *bias, @Y@ *y,
    const int64_t *p) {
    for (int r = 0; r < rows; r++, x += n, y += n) {
        int64_t mean = 0, squares = 0;
        for (int i = 0; i < n && centred; i++) mean += x[i];
        mean /= n;
        for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
        const int64_t root = mlo_inorm_root(squares, n);
        for (int i = 0; i < n; i++)
            y[i] = (@Y@)@EXACT@(x[i] - mean, w[i], bias ? bias[i] : 0, root, p);
    }
}
