/* Rows of keys or values that are parameters (`ahead` bytes), and behind them those of n tokens, which lie `row` bytes
 * apart and have `width`: what an attention reads that has both. */
static void mlo_join(const void *rows, size_t ahead, const void *own, int n, size_t row, size_t width, void *to) {
    unsigned char *at = (unsigned char *)to + ahead;
    memcpy(to, rows, ahead);
    for (int i = 0; i < n; i++, at += width) memcpy(at, (const unsigned char *)own + (size_t)i * row, width);
}
