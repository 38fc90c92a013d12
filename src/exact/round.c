/* exact, round: the one rounding rule, and what a number becomes in kernels that treat each by itself.
 *
 * This text is the definition: mlo is compiled with it, and puts it in front of the C that it emits. */

/* floor(x / 2^s), without shifting negative numbers, which C leaves to the compiler. */
static inline int64_t mlo_shift_down(int64_t x, int s) {
    const int64_t sign = -(int64_t)(x < 0);
    if (s <= 0) return x;
    return s > 62 ? sign : (int64_t)((uint64_t)(x ^ sign) >> s) ^ sign;
}
static inline int64_t mlo_clip(int64_t x, int64_t lo, int64_t hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

/* Half of the last place that is left: what is added before a shift down. */
#define MLO_HALF(type, shift) ((type)1 << ((shift) - 1))

/* clip((acc * mult + 2^(shift-1)) >> shift). |acc mult| + 2^(shift-1) stays below 2^63: see the
 * intermediates of the kernels. */
static inline int64_t mlo_requantize(int64_t acc, int64_t mult, int shift, int64_t lo, int64_t hi) {
    const int64_t half = shift >= 1 && shift <= 62 ? MLO_HALF(int64_t, shift) : 0;
    return mlo_clip(mlo_shift_down(acc * mult + half, shift), lo, hi);
}

/* Have processors lanes that each shift as far as they like? Those of 64 bits that have none take less time without. */
#if UINTPTR_MAX <= 0xffffffff || defined(__AVX2__) || defined(__ARM_NEON) || defined(__riscv_vector)
#define MLO_SHIFTS_LANES 1
#else
#define MLO_SHIFTS_LANES 0
#endif

/* The same in 32 bits, of which processors have lanes: 0 <= mult < 2^15, part < shift <= part + 30,
 * 1 <= part <= 16, |acc| <= 2^(15 + part). acc is 2^part high + low, with 2^31 on top of it nothing is
 * negative, and what that adds is taken off again: of the product's 2^-part-th, modulo 2^32, then with
 * 2^30 in its place, of the result. */
static inline int32_t mlo_requantize_narrow(
    int32_t acc, int32_t mult, int32_t shift, int part, int32_t lo, int32_t hi) {
    if (!MLO_SHIFTS_LANES) {
        const int64_t far = (int64_t)1 << 62, sum = (int64_t)acc * mult + MLO_HALF(int64_t, shift);
        const int64_t y = (int64_t)((uint64_t)(sum + far) >> shift) - (far >> shift);
        return (int32_t)mlo_clip(y, lo, hi);
    }
    const uint32_t most = (uint32_t)1 << 30, u = (uint32_t)acc + 2 * most, m = (uint32_t)mult;
    const int down = shift - part;
    const uint32_t low = (u & (((uint32_t)1 << part) - 1)) * m >> part;
    const uint32_t on_top = most + MLO_HALF(uint32_t, down) - (m << (31 - part));
    const uint32_t all = (u >> part) * m + low + on_top;
    const int32_t y = (int32_t)(all >> down) - (int32_t)(most >> down);
    return y < lo ? lo : y > hi ? hi : y;
}

/* A sum's number, p = [MA, MB, S]: a, b of 16 bits, multipliers of 15: 32 bits hold the sum.
 * floor((x + 2^(S-1)) / 2^S) is floor((floor(x / 2^(S-1)) + 1) / 2), which no x is too large for; of S from 32 on it
 * is 0. */
static inline int32_t mlo_add_one(int32_t a, int32_t b, const int32_t *p, int32_t lo, int32_t hi) {
    const uint32_t far = (uint32_t)1 << 31;
    const int far_down = p[2] >= 32, down = far_down ? 30 : p[2] - 1;
    const int32_t sum = far_down ? 0 : a * p[0] + b * p[1];
    const uint32_t twice = ((uint32_t)sum + far) >> down;
    const int32_t y = (int32_t)((twice + MLO_HALF(uint32_t, 1)) >> 1) - (int32_t)(far >> down >> 1);
    return y < lo ? lo : y > hi ? hi : y;
}
/* A product's, p = [M, S]. */
static inline int64_t mlo_mul_one(int64_t a, int64_t b, const int32_t *p, int64_t lo, int64_t hi) {
    return mlo_requantize(a * b, p[0], p[1], lo, hi);
}

/* Which part of its window token t of a frame has (kernels/conv.c says how they are numbered). */
static inline int64_t mlo_window_edge(
    int64_t t, int64_t tokens, int64_t kh, int64_t kw, int64_t width, int64_t top, int64_t left) {
    const int64_t row = t / width, column = t % width, below = kh - 1 - top;
    const int64_t rows = (tokens - 1 - t) / width, over = column + kw - width - left;
    const int64_t u = row < top ? top - row : 0, d = rows < below ? below - rows : 0;
    const int64_t l = column < left ? left - column : 0, r = over > 0 ? over : 0;
    return ((u * (kh - top) + d) * (left + 1) + l) * (kw - left) + r;
}

/* A pair of channels turned by an angle: its even one, and (turned by a quarter less) its odd one. */
static inline int64_t mlo_rotary_even(
    const int64_t pair[2], const int64_t turn[2], const int32_t *p, int64_t lo, int64_t hi) {
    return mlo_requantize(pair[0] * turn[0] - pair[1] * turn[1], p[0], p[1], lo, hi);
}
static inline int64_t mlo_rotary_odd(
    const int64_t pair[2], const int64_t turn[2], const int32_t *p, int64_t lo, int64_t hi) {
    return mlo_requantize(pair[0] * turn[1] + pair[1] * turn[0], p[0], p[1], lo, hi);
}
