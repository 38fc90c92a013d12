/* y = the same number, n times. */
static void @NAME@(int n, @Y@ value, @Y@ *y) {
    for (int i = 0; i < n; i++) y[i] = value;
}
