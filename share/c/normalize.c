/* y = rows of x, normalised, times w, plus b (NULL: neither): a number of those for each w_div, b_div of x's, the
 * same again behind `period` rows. */
static void @NAME@(int rows, int n, int period, int mean, double epsilon, int w_div, int b_div, const @X@ *x,
    const @A@ *w, const @B@ *b, @Y@ *y, int64_t *scratch) {
    double *z = (double *)(void *)scratch, stash[2];
    for (int r = 0; r < rows; r++, x += n, y += n) {
        const int at = r % period * n;
        for (int i = 0; i < n; i++) z[i] = (double)x[i];
        mlo_real_normalize(z, n, epsilon, mean, stash);
        for (int i = 0; w && i < n; i++) z[i] *= (double)w[(at + i) / w_div];
        for (int i = 0; b && i < n; i++) z[i] += (double)b[(at + i) / b_div];
        for (int i = 0; i < n; i++) y[i] = (@Y@)z[i];
    }
}
