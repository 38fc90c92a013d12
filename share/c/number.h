
/* ---- what C needs beside it: comparisons, choices, steps of integers, whole numbers, which wrap as ONNX's do ---- */

MLO_NUMBER(mlo_real_same, float, x)
MLO_NUMBER(mlo_real_is_nan, float, x != x ? 1.0f : 0.0f)
MLO_NUMBER(mlo_real_is, float, x < 0 || x > 0 || x != x ? 1.0f : 0.0f)
MLO_NUMBER(mlo_real_less, float, x < a ? 1.0f : 0.0f)
MLO_NUMBER(mlo_real_less_equal, float, x <= a ? 1.0f : 0.0f)
MLO_NUMBER(mlo_real_equal, float, x <= a && x >= a ? 1.0f : 0.0f)
MLO_NUMBER(mlo_real_chosen, float, x > 0 ? a : b)
MLO_NUMBER(mlo_whole_same, int64_t, x)
MLO_NUMBER(mlo_whole_larger, int64_t, x > a ? x : a)
MLO_NUMBER(mlo_whole_smaller, int64_t, x < a ? x : a)
MLO_NUMBER(mlo_whole_sum, int64_t, (int64_t)((uint64_t)x + (uint64_t)a))
MLO_NUMBER(mlo_whole_difference, int64_t, (int64_t)((uint64_t)x - (uint64_t)a))
MLO_NUMBER(mlo_whole_product, int64_t, (int64_t)((uint64_t)x *(uint64_t)a))
MLO_NUMBER(mlo_whole_quotient, int64_t, a == 0 ? 0 : a == -1 ? (int64_t)(0 - (uint64_t)x) : x / a)
MLO_NUMBER(mlo_whole_rest, int64_t,
    a == 0 || a == -1                          ? 0
        : x % a != 0 && (x % a < 0) != (a < 0) ? x % a + a
                                               : x % a)
MLO_NUMBER(mlo_whole_abs, int64_t, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)
MLO_NUMBER(mlo_whole_neg, int64_t, (int64_t)(0 - (uint64_t)x))
MLO_NUMBER(mlo_whole_sign, int64_t, (x > 0) - (x < 0))
MLO_NUMBER(mlo_whole_is, int64_t, x != 0)
MLO_NUMBER(mlo_whole_not, int64_t, x == 0)
MLO_NUMBER(mlo_whole_and, int64_t, x != 0 && a != 0)
MLO_NUMBER(mlo_whole_or, int64_t, x != 0 || a != 0)
MLO_NUMBER(mlo_whole_xor, int64_t, (x != 0) != (a != 0))
MLO_NUMBER(mlo_whole_less, int64_t, x < a)
MLO_NUMBER(mlo_whole_less_equal, int64_t, x <= a)
MLO_NUMBER(mlo_whole_equal, int64_t, x == a)
MLO_NUMBER(mlo_whole_chosen, int64_t, x != 0 ? a : b)
/* A float as a whole number, towards zero. */
static inline int64_t mlo_real_whole(float x, float a, float b, const int64_t *p) {
    (void)a;
    (void)b;
    (void)p;
    return x != x                     ? 0
        : x >= 9223372036854775808.0f ? INT64_MAX
        : x < -9223372036854775808.0f ? INT64_MIN
                                      : (int64_t)x;
}
/* In steps of a around the zero b, as QuantizeLinear has it. */
static inline int64_t mlo_real_steps_from(float x, float a, float b, const int64_t *p) {
    const double q = rint((double)(x / a)) + (double)b, lo = (double)p[0], hi = (double)p[1];
    return (int64_t)(q > lo ? q < hi ? q : hi : lo);
}
static inline float mlo_real_from_steps(float x, float a, float b, const int64_t *p) {
    (void)p;
    return (x - b) * a;
}
