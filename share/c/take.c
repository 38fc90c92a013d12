/* y = x at places of an axis of n, of `inner` numbers each. 1: one is outside, and the nearest is taken. */
static int @NAME@(int outer, int n, int count, int inner, const @X@ *x, const @A@ *index, @Y@ *y) {
    int bad = 0;
    for (int o = 0; o < outer; o++, x += (ptrdiff_t)n * inner)
        for (int i = 0; i < count; i++, y += inner) {
            const int64_t at = index[i] < 0 ? index[i] + n : index[i];
            bad |= at < 0 || at >= n;
            memcpy(y, x + (at < 0 ? 0 : at < n ? at : n - 1) * inner, (size_t)inner * sizeof *y);
        }
    return bad;
}
