/* y[c] = requantized x[c] + bias[c], or what a table has for that. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int channels,
    const int32_t *bias, const int16_t *mult, const int8_t *shift, const @Y@ *table, int lo, int hi) {
    for (int t = 0; t < tokens; t++, x += x_row, y += y_row)
        for (int c = 0; c < channels; c++) {
            const int64_t v = mlo_requantize((int64_t)x[c] + bias[c], mult[c], shift[c], lo, hi);
            y[c] = table ? table[v - lo] : (@Y@)v;
        }
}
