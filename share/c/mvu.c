/* y[j] = requantized x . w[j] + bias[j], or what a table has for that. Four tokens share a row of weights
 * (the last one stands in for those that there are not; one alone is alone), of 16 bits: of two factors of 16 bits
 * compilers know the sum of products. Sums of so many products as fit 32 bits are added up in 64. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int k, int n,
    const int8_t *w, const int32_t *bias, const int16_t *mult, const int8_t *shift, const @Y@ *table,
    int lo, int hi) {
    for (int t = 0; t < tokens; t += 4, x += 4 * (ptrdiff_t)x_row, y += 4 * (ptrdiff_t)y_row) {
        const int last = tokens - t - 1 < 3 ? tokens - t - 1 : 3;
        const @X@ *x1 = x + (last < 1 ? last : 1) * x_row;
        const @X@ *x2 = x + (last < 2 ? last : 2) * x_row, *x3 = x + last * x_row;
        const int8_t *row = w;
        for (int j = 0; j < n; j++, row += k) {
            int64_t acc[4] = { bias[j], bias[j], bias[j], bias[j] };
            for (int from = 0; from < k; from += @BLOCK@) {
                const int size = k - from < @BLOCK@ ? k - from : @BLOCK@;
                int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
                int16_t wide[@BLOCK@];
                for (int i = 0; i < size; i++) wide[i] = row[from + i];
                for (int i = 0; i < size && !last; i++) s0 += (int16_t)x[from + i] * wide[i];
                for (int i = 0; i < size && last; i++) {
                    s0 += (int16_t)x[from + i] * wide[i];
                    s1 += (int16_t)x1[from + i] * wide[i];
                    s2 += (int16_t)x2[from + i] * wide[i];
                    s3 += (int16_t)x3[from + i] * wide[i];
                }
                acc[0] += s0;
                acc[1] += s1;
                acc[2] += s2;
                acc[3] += s3;
            }
            for (int i = 0; i <= last; i++) {
                const int64_t v = mlo_requantize(acc[i], mult[j], shift[j], lo, hi);
                y[i * y_row + j] = table ? table[v - lo] : (@Y@)v;
            }
        }
    }
}
