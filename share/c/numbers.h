/* Standard operators on whole numbers, and on floats, number by number: x, up to two more, the node's numbers. */
#define MLO_ONE(name, type, value) \
    static inline type name(type x, type a, type b, const int64_t *p) { \
        (void)a; \
        (void)b; \
        (void)p; \
        return value; \
    }
MLO_ONE(mlo_sum, int64_t, x + a)
MLO_ONE(mlo_difference, int64_t, x - a)
MLO_ONE(mlo_product, int64_t, x * a)
MLO_ONE(mlo_quotient, int64_t, x / a)
MLO_ONE(mlo_rest, int64_t, x - mlo_floor_div(x, a) * a)
MLO_ONE(mlo_larger, int64_t, x > a ? x : a)
MLO_ONE(mlo_smaller, int64_t, x < a ? x : a)
MLO_ONE(mlo_within, int64_t, mlo_clip(x, a, b))
MLO_ONE(mlo_positive, int64_t, x > 0 ? x : 0)
MLO_ONE(mlo_same, int64_t, x)
MLO_ONE(mlo_real_sum, float, x + a)
MLO_ONE(mlo_real_difference, float, x - a)
MLO_ONE(mlo_real_product, float, x * a)
MLO_ONE(mlo_real_quotient, float, x / a)
MLO_ONE(mlo_real_within, float, !(x >= a) ? a : x > b ? b : x)
MLO_ONE(mlo_real_positive, float, x > 0 ? x : 0)

/* To the nearest whole number, of two the even one. From 2^23 on all floats are whole. */
static inline float mlo_real_round(float x, float a, float b, const int64_t *p) {
    (void)a;
    (void)b;
    (void)p;
    if (!(x > -8388608.0f && x < 8388608.0f)) return x;
    const int32_t down = (int32_t)x - (x < (float)(int32_t)x);
    const float over = x - (float)down;
    return (float)(down + (over > 0.5f || (over >= 0.5f && down % 2 != 0)));
}
