/* y = x w + bias (NULL: none). A row of w is added up at a time. */
static void @NAME@(const mlo_products *s, const @X@ *x, const @A@ *w, const @B@ *bias, @Y@ *y) {
    for (int i = 0; i < s->batch[0] * s->batch[1]; i++) {
        const @X@ *rows = x + i / s->batch[1] * s->x[0] + i % s->batch[1] * s->x[1];
        const @A@ *own = w + i / s->batch[1] * s->w[0] + i % s->batch[1] * s->w[1];
        for (int r = 0; r < s->m; r++, rows += s->k, y += s->n) {
            for (int c = 0; c < s->n; c++) y[c] = bias ? (@Y@)bias[r * s->bias_row + c] : 0;
            for (int k = 0; k < s->k; k++)
                for (int c = 0; c < s->n; c++) y[c] += (@Y@)rows[k] * own[k * s->n + c];
        }
    }
}
