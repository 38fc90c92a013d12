/* y[c] = requantized x[c] + bias[c], or what a table has for that; 64 at a time, so that none is written over what
 * the next one is made from. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int channels,
    const int32_t *bias, const int16_t *mult, const int8_t *shift, const @Y@ *table, @PARTIS@int lo, int hi) {
    for (int t = 0; t < tokens; t++, x += x_row, y += y_row)
        for (int begin = 0; begin < channels; begin += 64) {
            const int width = channels - begin < 64 ? channels - begin : 64;
            @SUM@ v[64];
            for (int c = 0; c < width; c++) v[c] = (@SUM@)x[begin + c] + bias[begin + c];
            for (int c = 0; c < width; c++)
                v[c] = @REQUANTIZE@(v[c], mult[begin + c], shift[begin + c], @PART@lo, hi);
            for (int c = 0; c < width; c++) y[begin + c] = table ? table[v[c] - lo] : (@Y@)v[c];
        }
}
