/* y = x at other places. */
static void @NAME@(const mlo_moves *g, const @X@ *x, @Y@ *y) {
    for (int i = 0; i < g->n[0]; i++)
        for (int j = 0; j < g->n[1]; j++)
            for (int k = 0; k < g->n[2]; k++) {
                const @X@ *from = x + i * g->x[0] + j * g->x[1] + k * g->x[2];
                @Y@ *to = y + i * g->y[0] + j * g->y[1] + k * g->y[2];
                for (int l = 0; l < g->n[3]; l++) to[l * g->y[3]] = (@Y@)from[l * g->x[3]];
            }
}
