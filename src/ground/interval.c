/* interval: arithmetic with ranges of integers.
 *
 * in:  what operands can be.    out: what a sum, a product, the sum of many can be.
 *
 * The ends of a sum, a difference, a product of independent numbers are among those of the operands'
 * ends.
 *
 * invariant: nothing wraps: an end at +-INT64_MAX is that far or beyond.
 * example: 64 products of int8 lie in -1040384..1048576.
 * cost: some operations.
 */

/* Both ends are included. One at +-INT64_MAX: that far or beyond; so none begins at INT64_MAX, or ends
 * at -INT64_MAX. */
typedef struct {
    int64_t lo;
    int64_t hi;
} mlo_interval;

static mlo_interval mlo_from_to(int64_t lo, int64_t hi) {
    mlo_interval i = { lo, hi };
    return i;
}
static int64_t mlo_two_to(int bits) { return bits > 62 ? INT64_MAX : (int64_t)1 << bits; }
/* All numbers of so many bits, signed; at most 63. */
static mlo_interval mlo_signed_bits(int bits) {
    return mlo_from_to(-mlo_two_to(bits - 1), mlo_two_to(bits - 1) - 1);
}

/* ceil(log2(n)), 0 for n <= 1: Verilog's $clog2. */
static int mlo_clog2(int64_t n) {
    int b = 0;
    while (((int64_t)1 << b) < n) b++;
    return b;
}

static int64_t mlo_add_ends(int64_t a, int64_t b) {
    if (a == INT64_MAX || b == INT64_MAX) return INT64_MAX;
    if (a == -INT64_MAX || b == -INT64_MAX) return -INT64_MAX;
    return b > 0 && a > INT64_MAX - b ? INT64_MAX
        : b < 0 && a < -INT64_MAX - b ? -INT64_MAX
                                      : a + b;
}
static int64_t mlo_times_ends(int64_t a, int64_t b) {
    if (!a || !b) return 0;
    int64_t x = a < 0 ? -a : a, y = b < 0 ? -b : b, p = x > INT64_MAX / y ? INT64_MAX : x * y;
    return (a < 0) == (b < 0) ? p : -p;
}

static mlo_interval mlo_sum_of(mlo_interval a, mlo_interval b) {
    return mlo_from_to(mlo_add_ends(a.lo, b.lo), mlo_add_ends(a.hi, b.hi));
}
static mlo_interval mlo_product_of(mlo_interval a, mlo_interval b) {
    int64_t p[4] = { mlo_times_ends(a.lo, b.lo), mlo_times_ends(a.lo, b.hi),
        mlo_times_ends(a.hi, b.lo), mlo_times_ends(a.hi, b.hi) };
    mlo_interval r = { p[0], p[0] };
    for (int i = 1; i < 4; i++) {
        if (p[i] < r.lo) r.lo = p[i];
        if (p[i] > r.hi) r.hi = p[i];
    }
    return r;
}
/* n numbers added up, and every sum on the way. */
static mlo_interval mlo_sum_of_many(int64_t n, mlo_interval a) {
    return mlo_from_to(
        a.lo < 0 ? mlo_times_ends(n, a.lo) : 0, a.hi > 0 ? mlo_times_ends(n, a.hi) : 0);
}

/* Bits of a signed number that can be all of these; 65: more than any has. */
static int mlo_bits_for(mlo_interval a) {
    if (a.hi == INT64_MAX || a.lo == -INT64_MAX) return 65;
    int bits = 1;
    while (a.lo < -mlo_two_to(bits - 1) || a.hi > mlo_two_to(bits - 1) - 1) bits++;
    return bits;
}
