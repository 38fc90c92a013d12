/* y = sums of x so far along an axis of n; without the number itself (exclusive), or from the end. */
static void @NAME@(int outer, int n, int inner, int exclusive, int reverse, const @X@ *x, @Y@ *y) {
    for (int i = 0; i < outer * inner; i++) {
        @Y@ sum = 0;
        for (int k = 0; k < n; k++) {
            const ptrdiff_t at = ((ptrdiff_t)(i / inner) * n + (reverse ? n - 1 - k : k)) * inner + i % inner;
            const @Y@ next = (@Y@)(sum + x[at]);
            y[at] = exclusive ? sum : next;
            sum = next;
        }
    }
}
