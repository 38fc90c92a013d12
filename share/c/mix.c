/* sum[c] = the weighted sum of n values of d channels, four of them at a time. A weight is at most 4080. Four without
 * any weight are left out; that this may be also keeps gcc from jamming rounds together, which takes it twice as long. */
static void @NAME@_mix(const @E@ *restrict e, const @W@ *restrict v, int row, int n, int d, @SUM@ *restrict sum) {
    for (int c = 0; c < d; c++) sum[c] = 0;
    for (int j = 0; j < n; j += 4, v += 4 * (ptrdiff_t)row) {
        const @W@ *v1 = v, *v2 = v, *v3 = v;
        const int16_t w0 = (int16_t)e[j];
        int16_t w1 = 0, w2 = 0, w3 = 0;
        if (j + 1 < n) {
            w1 = (int16_t)e[j + 1];
            v1 += row;
        }
        if (j + 2 < n) {
            w2 = (int16_t)e[j + 2];
            v2 += 2 * row;
        }
        if (j + 3 < n) {
            w3 = (int16_t)e[j + 3];
            v3 += 3 * row;
        }
        if (!(w0 | w1 | w2 | w3)) continue;
        for (int c = 0; c < d; c++)
            sum[c] += w0 * v[c] + w1 * v1[c] + w2 * v2[c] + w3 * v3[c];
    }
}
