/* y = where x is largest (sign 1) or smallest (-1) along an axis of n: the first such place, or the last. */
static void @NAME@(int outer, int n, int inner, int sign, int last, const @X@ *x, @Y@ *y) {
    for (int i = 0; i < outer * inner; i++) {
        const @X@ *v = x + (ptrdiff_t)(i / inner) * n * inner + i % inner;
        int best = 0;
        for (int k = 1; k < n; k++) {
            const double d = sign * ((double)v[(ptrdiff_t)k * inner] - (double)v[(ptrdiff_t)best * inner]);
            if (d > 0 || (last && !(d < 0))) best = k;
        }
        *y++ = best;
    }
}
