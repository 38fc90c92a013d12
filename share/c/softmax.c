/* y = softmax of x (or its logarithm) along an axis of n. */
static void @NAME@(int outer, int n, int inner, int logarithm, const @X@ *x, @Y@ *y) {
    for (int i = 0; i < outer * inner; i++) {
        const ptrdiff_t at = (ptrdiff_t)(i / inner) * n * inner + i % inner;
        mlo_real_softmax(y + at, x + at, n, inner, logarithm);
    }
}
