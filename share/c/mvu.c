/* Products of four tokens with a row of weights, of 16 bits: of two factors of 16 bits compilers know the sum of
 * products. Sums of so many as fit 32 bits are added up. */
static inline void @NAME@_row(const @X@ *const *x, const int8_t *w, int k, int last, @SUM@ *acc) {
    const @X@ *const x0 = x[0], *const x1 = x[1], *const x2 = x[2], *const x3 = x[3];
    for (int from = 0; from < k; from += @BLOCK@) {
        const int size = k - from < @BLOCK@ ? k - from : @BLOCK@;
        int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        int16_t wide[@BLOCK@];
        for (int i = 0; i < size; i++) wide[i] = w[from + i];
        for (int i = 0; i < size && !last; i++) s0 += (int16_t)x0[from + i] * wide[i];
        for (int i = 0; i < size && last; i++) {
            s0 += (int16_t)x0[from + i] * wide[i];
            s1 += (int16_t)x1[from + i] * wide[i];
            s2 += (int16_t)x2[from + i] * wide[i];
            s3 += (int16_t)x3[from + i] * wide[i];
        }
        acc[0] += s0;
        acc[1] += s1;
        acc[2] += s2;
        acc[3] += s3;
    }
}

/* y[j] = requantized x . w[j] + bias[j], or what a table has for that. Four tokens share a row of weights (the last
 * one stands in for those that there are not; one alone is alone); 32 sums of each are there before they are
 * requantized, one like the other: what compilers do in lanes. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int k, int n,
    const int8_t *w, const int32_t *bias, const int16_t *mult, const int8_t *shift, const @Y@ *table,
    @PARTIS@int lo, int hi) {
    for (int t = 0; t < tokens; t += 4, x += 4 * (ptrdiff_t)x_row, y += 4 * (ptrdiff_t)y_row) {
        const int last = tokens - t - 1 < 3 ? tokens - t - 1 : 3;
        const @X@ *const rows[4] = { x, x + (last < 1 ? last : 1) * x_row, x + (last < 2 ? last : 2) * x_row,
            x + last * x_row };
        for (int begin = 0; begin < n; begin += 32) {
            const int width = n - begin < 32 ? n - begin : 32;
            @SUM@ sum[4][32];
            for (int c = 0; c < width; c++) {
                const int j = begin + c;
                @SUM@ acc[4] = { bias[j], bias[j], bias[j], bias[j] };
                @NAME@_row(rows, w + (ptrdiff_t)j * k, k, last, acc);
                for (int i = 0; i < 4; i++) sum[i][c] = acc[i];
            }
            for (int i = 0; i <= last; i++) {
                @Y@ *to = y + i * y_row + begin;
                for (int c = 0; c < width; c++)
                    sum[i][c] = @REQUANTIZE@(sum[i][c], mult[begin + c], shift[begin + c], @PART@lo, hi);
                for (int c = 0; c < width; c++) to[c] = table ? table[sum[i][c] - lo] : (@Y@)sum[i][c];
            }
        }
    }
}
