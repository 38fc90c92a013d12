/* y = x w: 64 columns at a time, 64 products added up before they are added to what is there. */
static void @NAME@(const mlo_matrices *s, const @X@ *x, const @A@ *w, @Y@ *y) {
    for (int i = 0; i < s->batch[0] * s->batch[1] * s->m; i++) {
        const int b0 = i / s->m / s->batch[1], b1 = i / s->m % s->batch[1];
        const @X@ *row = x + b0 * s->x[0] + b1 * s->x[1] + i % s->m * s->xs[0];
        const @A@ *own = w + b0 * s->w[0] + b1 * s->w[1];
        for (int begin = 0; begin < s->n; begin += 64, own += 64 * s->ws[1]) {
            const int n = s->n - begin < 64 ? s->n - begin : 64;
            float sum[64] = { 0 }, part[64];
            for (int k = 0; k < s->k;) {
                const int end = s->k - k < 64 ? s->k : k + 64;
                for (int c = 0; c < n; c++) part[c] = 0;
                for (; k < end; k++) {
                    const float factor = row[k * s->xs[1]];
                    const @A@ *line = own + (ptrdiff_t)k * s->ws[0];
                    if (s->ws[1] == 1)
                        for (int c = 0; c < n; c++) part[c] += factor * line[c];
                    else
                        for (int c = 0; c < n; c++) part[c] += factor * line[c * s->ws[1]];
                }
                for (int c = 0; c < n; c++) sum[c] += part[c];
            }
            for (int c = 0; c < n; c++) *y++ = sum[c];
        }
    }
}
