/* y = @EXACT@ of x, a and b, number by number. */
static void @NAME@(const mlo_grid *g, const @X@ *x, const @A@ *a, const @B@ *b, @Y@ *y,
    const int64_t *p) {
    for (int i = 0; i < g->n[0]; i++)
        for (int j = 0; j < g->n[1]; j++)
            for (int k = 0; k < g->n[2]; k++) {
                const @X@ *from = x + i * g->x[0] + j * g->x[1] + k * g->x[2];
                const @A@ *with = a + i * g->a[0] + j * g->a[1] + k * g->a[2];
                const @B@ *and = b + i * g->b[0] + j * g->b[1] + k * g->b[2];
                for (int l = 0; l < g->n[3]; l++)
                    *y++ = (@Y@)@EXACT@(
                        from[l * g->x[3]], with[l * g->a[3]], and[l * g->b[3]], p);
            }
}
