/* y = the requantized product of a and b. */
static void @NAME@(const @X@ *a, int a_row, const @Z@ *b, int b_row, @Y@ *y, int y_row, int tokens,
    int channels, const int32_t *p, int lo, int hi) {
    for (int t = 0; t < tokens; t++, a += a_row, b += b_row, y += y_row)
        for (int c = 0; c < channels; c++) y[c] = (@Y@)mlo_mul_one(a[c], b[c], p, lo, hi);
}
