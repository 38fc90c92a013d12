/* y[j] = requantized x . w[j] + bias[j], or what a table has for that. Sums of so many products as fit 32
 * bits are added up in 64. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int k, int n,
    const int8_t *w, const int32_t *bias, const int16_t *mult, const int8_t *shift, const @Y@ *table,
    int lo, int hi) {
    for (int t = 0; t < tokens; t++, x += x_row, y += y_row)
        for (int j = 0; j < n; j++) {
            const int8_t *row = w + (size_t)j * (size_t)k;
            int64_t acc = bias[j];
            for (int from = 0; from < k; from += @BLOCK@) {
                const int to = k - from < @BLOCK@ ? k : from + @BLOCK@;
                int32_t sum = 0;
                for (int i = from; i < to; i++) sum += x[i] * row[i];
                acc += sum;
            }
            const int64_t v = mlo_requantize(acc, mult[j], shift[j], lo, hi);
            y[j] = table ? table[v - lo] : (@Y@)v;
        }
}
