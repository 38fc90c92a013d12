/* `groups` norms of a token, one behind the other; step: from one's scales and offsets to the next one's. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int channels, int groups,
    int step, int center, const int16_t *g, const int32_t *b, const int64_t *p, int lo, int hi) {
    for (int t = 0; t < tokens; t++, x += x_row, y += y_row)
        for (int h = 0; h < groups; h++) {
            const @X@ *from = x + h * channels;
            @Y@ *to = y + h * channels;
            int64_t total = 0, squares = 0;
            for (int c = 0; c < channels; c++) {
                total += from[c];
                squares += (int64_t)from[c] * from[c];
            }
            const mlo_normal f = mlo_norm_of(channels, center ? total : 0, squares, p[0]);
            for (int c = 0; c < channels; c++)
                to[c] = (@Y@)mlo_norm_one(
                    &f, from[c], g[h * step + c], b[h * step + c], (int)p[1], lo, hi);
        }
}
