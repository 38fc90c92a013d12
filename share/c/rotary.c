/* Pairs of channels of heads of d, turned by their token's row of the table. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int channels, int d,
    const int16_t *table, const int32_t *p, int lo, int hi) {
    for (int t = 0; t < tokens; t++, x += x_row, y += y_row, table += d)
        for (int c = 0; c < channels; c += 2) {
            const int64_t pair[2] = { x[c], x[c + 1] };
            const int64_t turn[2] = { table[c % d], table[c % d + 1] };
            y[c] = (@Y@)mlo_rotary_even(pair, turn, p, lo, hi);
            y[c + 1] = (@Y@)mlo_rotary_odd(pair, turn, p, lo, hi);
        }
}
