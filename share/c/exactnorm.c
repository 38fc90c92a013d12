/* Deeploy's integer norm of each token, every number as it says. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int channels, int center,
    const int32_t *w, const int32_t *b, const int32_t *shift, int lo, int hi) {
    const int64_t p[3] = { (int64_t)1 << shift[0], lo, hi };
    for (int t = 0; t < tokens; t++, x += x_row, y += y_row) {
        int64_t mean = 0, squares = 0;
        for (int c = 0; c < channels && center; c++) mean += x[c];
        mean /= channels;
        for (int c = 0; c < channels; c++) squares += (x[c] - mean) * (x[c] - mean);
        const int64_t root = mlo_inorm_root(squares, channels);
        for (int c = 0; c < channels; c++)
            y[c] = (@Y@)mlo_inorm(x[c] - mean, w[c], center ? b[c] : 0, root, p);
    }
}
