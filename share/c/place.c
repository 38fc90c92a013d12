/* Each channel with its token's number of the table, requantized. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int channels,
    const int16_t *table, const int16_t *mult, const int8_t *shift, int lo, int hi) {
    for (int t = 0; t < tokens; t++, x += x_row, y += y_row, table += channels)
        for (int c = 0; c < channels; c++)
            y[c] = (@Y@)mlo_requantize((int64_t)x[c] + table[c], mult[c], shift[c], lo, hi);
}
