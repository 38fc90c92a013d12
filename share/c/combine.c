/* y = numbers of x along some axes, combined. */
static void @NAME@(const mlo_axes *s, const @X@ *x, @Y@ *y) {
    const int stay = s->n[0] * s->n[1] * s->n[2] * s->n[3], gone = s->m[0] * s->m[1] * s->m[2] * s->m[3];
    const double t = (double)gone;
    (void)t;
    for (int i = 0; i < stay; i++) {
        const @X@ *from = x + i / s->n[3] / s->n[2] / s->n[1] * s->x[0] + i / s->n[3] / s->n[2] % s->n[1] * s->x[1]
            + i / s->n[3] % s->n[2] * s->x[2] + i % s->n[3] * s->x[3];
        @S@ z = @START@;
        for (int k = 0; k < gone; k++)
            z = @COMBINED@(@HOW@, z,
                (@S@)from[k / s->m[3] / s->m[2] / s->m[1] * s->r[0] + k / s->m[3] / s->m[2] % s->m[1] * s->r[1]
                    + k / s->m[3] % s->m[2] * s->r[2] + k % s->m[3] * s->r[3]],
                0);
        *y++ = (@Y@)(@FINISH@);
    }
}
