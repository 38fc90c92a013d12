/* y [outer, inner] = the sum of x [outer, n, inner]. */
static void @NAME@(int outer, int n, int inner, const @X@ *x, @Y@ *y) {
    for (int o = 0; o < outer; o++, y += inner) {
        for (int c = 0; c < inner; c++) y[c] = 0;
        for (int i = 0; i < n; i++, x += inner)
            for (int c = 0; c < inner; c++) y[c] += x[c];
    }
}
