/* exact, round: the one rounding rule, and what a number becomes in kernels that treat each by itself.
 *
 * This text is the definition: mlo is compiled with it, and puts it in front of the C that it emits. */

/* floor(x / 2^s), without shifting negative numbers, which C leaves to the compiler. */
static inline int64_t mlo_shift_down(int64_t x, int s) {
    const int64_t sign = -(int64_t)(x < 0);
    if (s <= 0) return x;
    return s > 62 ? sign : ((x ^ sign) >> s) ^ sign;
}
static inline int64_t mlo_clip(int64_t x, int64_t lo, int64_t hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

/* clip((acc * mult + 2^(shift-1)) >> shift). |acc mult| + 2^(shift-1) stays below 2^63: see the
 * intermediates of the kernels. */
static inline int64_t mlo_requantize(int64_t acc, int64_t mult, int shift, int64_t lo, int64_t hi) {
    const int64_t half = shift >= 1 && shift <= 62 ? (int64_t)1 << (shift - 1) : 0;
    return mlo_clip(mlo_shift_down(acc * mult + half, shift), lo, hi);
}

/* A sum's number, p = [MA, MB, S]; a product's, p = [M, S]. */
static inline int64_t mlo_add_one(int64_t a, int64_t b, const int32_t *p, int64_t lo, int64_t hi) {
    return mlo_requantize(a * p[0] + b * p[1], 1, p[2], lo, hi);
}
static inline int64_t mlo_mul_one(int64_t a, int64_t b, const int32_t *p, int64_t lo, int64_t hi) {
    return mlo_requantize(a * b, p[0], p[1], lo, hi);
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
