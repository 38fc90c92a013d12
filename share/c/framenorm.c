/* One norm of all channels of all tokens. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int channels, int center,
    const int16_t *g, const int32_t *b, const int64_t *p, int lo, int hi) {
    int64_t total = 0, squares = 0;
    for (int t = 0; t < tokens; t++)
        for (int c = 0; c < channels; c++) {
            const int64_t v = x[(int64_t)t * x_row + c];
            total += v;
            squares += v * v;
        }
    const mlo_normal f = mlo_norm_of((int64_t)tokens * channels, center ? total : 0, squares, p[0]);
    for (int t = 0; t < tokens; t++, x += x_row, y += y_row)
        for (int c = 0; c < channels; c++)
            y[c] = (@Y@)mlo_norm_one(&f, x[c], g[c], b[c], (int)p[1], lo, hi);
}
