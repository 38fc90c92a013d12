/* y = @EXACT@ of each row of n; e: room for one. */
static void @NAME@(int rows, int n, const @X@ *x, @Y@ *y, const int64_t *p, int64_t *e) {
    for (int r = 0; r < rows; r++, x += n, y += n) {
        for (int i = 0; i < n; i++) e[i] = x[i];
        @EXACT@(e, n, p);
        for (int i = 0; i < n; i++) y[i] = (@Y@)e[i];
    }
}
