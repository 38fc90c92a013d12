/* exact, norm: the integer norm of a token, from its sums (kernels/layernorm.c says what is what).
 *
 * This text is the definition: mlo is compiled with it, and puts it in front of the C that it emits. */

/* floor(sqrt(w)), w below 2^`bits`, bit by bit: exact without any floating point. */
static inline int64_t mlo_isqrt(int64_t w, int bits) {
    int64_t root = 0;
    for (int64_t bit = (int64_t)1 << ((bits + 1) / 2 - 1); bit; bit >>= 1)
        if ((root + bit) * (root + bit) <= w) root += bit;
    return root;
}

typedef struct {
    int64_t channels;
    int64_t total; /* of them; 0: nothing is taken off (RMSNorm) */
    int64_t r; /* 16 bits of the reciprocal root */
    int down; /* places to the right that leave 14 of a fraction */
} mlo_normal;

static inline mlo_normal mlo_norm_of(
    int64_t channels, int64_t total, int64_t squares, int64_t epsilon) {
    mlo_normal f = { channels, total, 0, 32 };
    int64_t v = channels * squares - total * total + epsilon;
    while (v < (int64_t)1 << 60) {
        v *= 4;
        f.down--;
    }
    f.r = ((int64_t)1 << 31) / mlo_isqrt(v >> 30, 32);
    return f;
}

static inline int64_t mlo_norm_one(
    const mlo_normal *f, int64_t x, int64_t g, int64_t b, int shift, int64_t lo, int64_t hi) {
    const int64_t u = f->channels * x - f->total;
    const int64_t n = mlo_shift_down(u * f->r + ((int64_t)1 << (f->down - 1)), f->down);
    return mlo_clip(mlo_shift_down(n * g + b, shift), lo, hi);
}
