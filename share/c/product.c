/* y = @EXACT@ of x w + bias (NULL: none); mul, add: a number for all columns, or one for each. 64 columns of w are
 * added up at a time. */
static void @NAME@(const mlo_products *s, int mul_step, int add_step, const @X@ *x, const @A@ *w, const @B@ *bias,
    const @M@ *mul, const @D@ *add, @Y@ *y, const int64_t *p) {
    for (int i = 0; i < s->batch[0] * s->batch[1] * s->m; i++) {
        const int r = i % s->m, b0 = i / s->m / s->batch[1], b1 = i / s->m % s->batch[1];
        const @X@ *row = x + b0 * s->x[0] + b1 * s->x[1] + r * s->k;
        const @A@ *own = w + b0 * s->w[0] + b1 * s->w[1];
        for (int begin = 0; begin < s->n; begin += 64) {
            const int n = s->n - begin < 64 ? s->n - begin : 64;
            @S@ sum[64];
            for (int c = 0; c < n; c++) sum[c] = bias ? (@S@)bias[r * s->bias_row + begin + c] : 0;
            for (int k = 0; k < s->k; k++) {
                const @P@ factor = row[k];
                const @A@ *line = own + k * s->n + begin;
                for (int c = 0; c < n; c++) sum[c] += factor * (@P@)line[c];
            }
            for (int c = begin; c < begin + n; c++)
                *y++ = (@Y@)@EXACT@(
                    sum[c - begin], mul ? mul[c * mul_step] : 0, add ? add[c * add_step] : 0, p);
        }
    }
}
