/* Products of up to @BLOCK@ numbers of four tokens with rows of weights. All are 16 bits wide, and a multiple of 16 of
 * them: of such factors compilers know the sum of products. more: the sums go on. */
static inline void @NAME@_four(
    int16_t (*in)[@BLOCK@], int size, const int8_t *w, int k, int width, int more, @SUM@ (*sum)[32]) {
    const int whole = (size + 15) & ~15;
    int16_t wide[@BLOCK@];
    for (int i = size; i < whole; i++) wide[i] = 0;
    for (int c = 0; c < width; c++, w += k) {
        int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (int i = 0; i < size; i++) wide[i] = w[i];
        for (int i = 0; i < whole; i++) {
            s0 += in[0][i] * wide[i];
            s1 += in[1][i] * wide[i];
            s2 += in[2][i] * wide[i];
            s3 += in[3][i] * wide[i];
        }
        sum[0][c] = (more ? sum[0][c] : 0) + s0;
        sum[1][c] = (more ? sum[1][c] : 0) + s1;
        sum[2][c] = (more ? sum[2][c] : 0) + s2;
        sum[3][c] = (more ? sum[3][c] : 0) + s3;
    }
}

/* What they are multiplied with: the last token stands in for those that there are not. */
static inline void @NAME@_widen(const @X@ *x, int x_row, int last, int size, int16_t (*in)[@BLOCK@]) {
    for (int t = 0; t < 4; t++) {
        const @X@ *from = x + (t < last ? t : last) * x_row;
        for (int i = 0; i < size; i++) in[t][i] = from[i];
        for (int i = size; i < ((size + 15) & ~15); i++) in[t][i] = 0;
    }
}

/* Products of a token alone. */
static inline void @NAME@_one(const @X@ *x, int size, const int8_t *w, int k, int width, int more, @SUM@ *sum) {
    for (int c = 0; c < width; c++, w += k) {
        int32_t s = 0;
        for (int i = 0; i < size; i++) s += (int16_t)x[i] * (int16_t)w[i];
        sum[c] = (more ? sum[c] : 0) + s;
    }
}

/* y[j] = requantized x . w[j] + bias[j], or what a table has for that. Four tokens share a row of weights; 32 sums of
 * each are there before they are requantized, one like the other: what compilers do in lanes. Sums of so many products
 * as fit 32 bits are added up. */
static void @NAME@(const @X@ *x, int x_row, @Y@ *y, int y_row, int tokens, int k, int n,
    const int8_t *w, const int32_t *bias, const int16_t *mult, const int8_t *shift, const @Y@ *table,
    @PARTIS@int lo, int hi) {
    int16_t in[4][@BLOCK@];
    for (int t = 0; t < tokens; t += 4, x += 4 * (ptrdiff_t)x_row, y += 4 * (ptrdiff_t)y_row) {
        const int last = tokens - t - 1 < 3 ? tokens - t - 1 : 3;
        if (last && k <= @BLOCK@) @NAME@_widen(x, x_row, last, k, in);
        MODEL_ROWS(in)
        for (int begin = 0; begin < n; begin += 32) {
            const int width = n - begin < 32 ? n - begin : 32;
            @SUM@ sum[4][32];
            for (int from = 0; from < k; from += @BLOCK@) {
                const int size = k - from < @BLOCK@ ? k - from : @BLOCK@;
                const int8_t *rows = w + (ptrdiff_t)begin * k + from;
                if (last && k > @BLOCK@) @NAME@_widen(x + from, x_row, last, size, in);
                if (last) @NAME@_four(in, size, rows, k, width, from > 0, sum);
                else @NAME@_one(x + from, size, rows, k, width, from > 0, sum[0]);
            }
            for (int i = 0; i <= last; i++) {
                @Y@ *to = y + i * y_row + begin;
                for (int c = 0; c < width; c++)
                    sum[i][c] = @REQUANTIZE@(
                        sum[i][c] + bias[begin + c], mult[begin + c], shift[begin + c], @PART@lo, hi);
                for (int c = 0; c < width; c++) to[c] = table ? table[sum[i][c] - lo] : (@Y@)sum[i][c];
            }
        }
    }
}
