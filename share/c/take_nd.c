/* y = x at these places. 1: one is outside, and the nearest is taken. */
static int @NAME@(const mlo_takes *s, const @X@ *x, const @A@ *index, @Y@ *y) {
    int bad = 0;
    for (int b = 0; b < s->parts; b++, x += s->part)
        for (int i = 0; i < s->count; i++, index += s->axes, y += s->inner) {
            const @X@ *from = x;
            for (int k = 0; k < s->axes; k++) {
                const int64_t at = index[k] < 0 ? index[k] + s->n[k] : index[k];
                bad |= at < 0 || at >= s->n[k];
                from += (at < 0 ? 0 : at < s->n[k] ? at : s->n[k] - 1) * s->step[k];
            }
            memcpy(y, from, (size_t)s->inner * sizeof *y);
        }
    return bad;
}
