/* exact, deeploy: the integer operators of Deeploy's networks, by number (x, its two parameters, the node's
 * numbers) and by row (ops/deeploy.c says what is what).
 *
 * This text is the definition: mlo is compiled with it, and puts it in front of the C that it emits. */

/* floor(a / b) */
static inline int64_t mlo_floor_div(int64_t a, int64_t b) {
    return a / b - (a % b && (a < 0) != (b < 0));
}

/* ---- number by number ------------------------------------------------------------- */

/* p = [div, lo, hi, log2 of div; -1: it is no power of two] */
static inline int64_t mlo_requant_shift(int64_t x, int64_t mul, int64_t add, const int64_t *p) {
    const int64_t sum = x * mul + add + p[0] / 2;
    return mlo_clip(
        p[3] < 0 ? mlo_floor_div(sum, p[0]) : mlo_shift_down(sum, (int)p[3]), p[1], p[2]);
}
/* p = [D, mul, lo, hi] */
static inline int64_t mlo_inonorm(int64_t x, int64_t w, int64_t b, const int64_t *p) {
    return mlo_clip(mlo_floor_div((x * w + b) * p[1], p[0]), p[2], p[3]);
}
/* p = [b, one] */
static inline int64_t mlo_igelu(int64_t x, int64_t w, int64_t b, const int64_t *p) {
    const int64_t size = x < 0 ? -x : x, q = (size < -p[0] ? size : -p[0]) + p[0];
    const int64_t under = p[1] - q * q, l = x < 0 ? -under : x ? under : 0;
    (void)w;
    (void)b;
    return x * mlo_floor_div(p[1] + l, 2);
}
/* p = [one_over_six, three, six] */
static inline int64_t mlo_ihardswish(int64_t x, int64_t w, int64_t b, const int64_t *p) {
    (void)w;
    (void)b;
    return x * (mlo_clip(x + p[1], 0, p[2]) * p[0]);
}
/* p = [Delta eta, eta y + eps] */
static inline int64_t mlo_integer_div(int64_t x, int64_t w, int64_t b, const int64_t *p) {
    (void)w;
    (void)b;
    return mlo_floor_div(p[0] * x, p[1]);
}

/* A norm's number: c is x, or how far it is from the mean; p = [D, lo, hi]. */
static inline int64_t mlo_inorm(int64_t c, int64_t w, int64_t b, int64_t root, const int64_t *p) {
    return mlo_clip(mlo_floor_div(c * w / root + b, p[0]), p[1], p[2]);
}
/* The root of n squares' mean. */
static inline int64_t mlo_inorm_root(int64_t squares, int64_t n) {
    return mlo_isqrt(squares / n + 1, 62);
}

/* A norm of n numbers, in place, around their mean or around 0. b: NULL: no offsets. */
static inline void mlo_inorm_row(
    int64_t *e, const int64_t *w, const int64_t *b, int64_t n, int centred, const int64_t *p) {
    int64_t mean = 0, squares = 0;
    for (int64_t i = 0; i < n && centred; i++) mean += e[i];
    mean /= n;
    for (int64_t i = 0; i < n; i++) squares += (e[i] - mean) * (e[i] - mean);
    const int64_t root = mlo_inorm_root(squares, n);
    for (int64_t i = 0; i < n; i++) e[i] = mlo_inorm(e[i] - mean, w[i], b ? b[i] : 0, root, p);
}

/* ---- row by row, in place; returns what is divided by, or would be if it were not 0 ---------- */

/* e^-down by halving, 2^-z times a parabola; p = [A, B, C, log2]. */
static inline int64_t mlo_isoftmax_weight(int64_t down, const int64_t *p) {
    const int64_t z = down / p[3] < 31 ? down / p[3] : 31;
    const int64_t at = z * p[3] - down + p[1];
    return mlo_shift_down(p[0] * (at * at) + p[2], (int)z);
}
/* p = [A, B, C, log2, n - 1] */
static inline int64_t mlo_isoftmax(int64_t *e, int64_t n, const int64_t *p) {
    int64_t most = e[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        if (e[i] > most) most = e[i];
    for (int64_t i = 0; i < n; i++) sum += e[i] = mlo_isoftmax_weight(most - e[i], p);
    for (int64_t i = 0; i < n && sum; i++) e[i] = mlo_floor_div(e[i] * p[4], sum);
    return sum;
}

/* v 2^-(distance of two numbers in steps of 32), rounded down. */
static inline int64_t mlo_ita_shift(int64_t v, int64_t distance) {
    const int64_t s = (distance + 16) / 32;
    return s > 62 ? 0 : v >> s;
}
/* p = [whole, width]: whole / sum, halved for each step down from the largest. That one is known group by
 * group of `width`: where it grows, the sum so far is shifted. */
static inline int64_t mlo_itamax(int64_t *e, int64_t n, const int64_t *p) {
    int64_t most = e[0], sum = 0;
    for (int64_t i = 0; i < n;) {
        const int64_t end = p[1] < n - i ? i + p[1] : n, before = most;
        for (int64_t k = i; k < end; k++)
            if (e[k] > most) most = e[k];
        sum = mlo_ita_shift(sum, most - before);
        for (; i < end; i++) sum += mlo_ita_shift(256, most - e[i]);
    }
    for (int64_t i = 0; i < n; i++) e[i] = mlo_ita_shift(p[0] / sum, most - e[i]);
    return sum;
}
