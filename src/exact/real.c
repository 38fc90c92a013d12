/* exact, real: what standard operators compute in floats, by number (x, up to two more, the node's numbers) and
 * by row. It needs <math.h>. (What only the emitted C needs is in share/c/number.h.)
 *
 * This text is the definition: mlo is compiled with it (ops/math.c, nn.c, reduce.c), and puts it beside the C that
 * it emits of a whole model (--target c --whole). C libraries differ in the last bit of erff and tanhf; of erf and
 * tanh, too, but that one the rounding hides: so those go by way of double. */

/* ---- number by number ------------------------------------------------------------- */

#define MLO_NUMBER(name, type, value)                                   \
    static inline type name(type x, type a, type b, const int64_t *p) { \
        (void)a;                                                        \
        (void)b;                                                        \
        (void)p;                                                        \
        return value;                                                   \
    }
MLO_NUMBER(mlo_real_abs, float, fabsf(x))
MLO_NUMBER(mlo_real_neg, float, -x)
MLO_NUMBER(mlo_real_sign, float, x > 0 ? 1.0f : x < 0 ? -1.0f : x)
MLO_NUMBER(mlo_real_relu, float, x < 0 ? 0.0f : x)
MLO_NUMBER(mlo_real_floor, float, floorf(x))
MLO_NUMBER(mlo_real_ceil, float, ceilf(x))
MLO_NUMBER(mlo_real_rint, float, rintf(x))
MLO_NUMBER(mlo_real_sqrt, float, sqrtf(x))
MLO_NUMBER(mlo_real_exp, float, expf(x))
MLO_NUMBER(mlo_real_log, float, logf(x))
MLO_NUMBER(mlo_real_erf, float, (float)erf((double)x))
MLO_NUMBER(mlo_real_tanh, float, (float)tanh((double)x))
MLO_NUMBER(mlo_real_sin, float, (float)sin((double)x))
MLO_NUMBER(mlo_real_cos, float, (float)cos((double)x))
MLO_NUMBER(mlo_real_reciprocal, float, 1.0f / x)
MLO_NUMBER(mlo_real_sigmoid, float, 1.0f / (1.0f + expf(-x)))
MLO_NUMBER(mlo_real_softsign, float, x / (1.0f + fabsf(x)))
/* log(1 + e^x), without overflow for large x */
MLO_NUMBER(mlo_real_softplus, float, (x > 0 ? x : 0.0f) + (float)log1p(exp(-fabs((double)x))))
MLO_NUMBER(
    mlo_real_mish, float, x *(float)tanh((x > 0 ? (double)x : 0.0) + log1p(exp(-fabs((double)x)))))
MLO_NUMBER(mlo_real_hard_swish, float, x *fmaxf(0.0f, fminf(1.0f, x / 6.0f + 0.5f)))
MLO_NUMBER(mlo_real_gelu, float,
    (float)(0.5 * (double)x * (1.0 + erf((double)x * 0.70710678118654752440))))
MLO_NUMBER(mlo_real_gelu_tanh, float,
    (float)(0.5 * (double)x
        * (1.0
            + tanh(0.79788456080286535588
                * ((double)x + 0.044715 * (double)x * (double)x * (double)x)))))
/* the node's floats are a and b */
MLO_NUMBER(mlo_real_leaky, float, x < 0 ? a * x : x)
MLO_NUMBER(mlo_real_elu, float, x < 0 ? a * (float)expm1((double)x) : x)
MLO_NUMBER(mlo_real_celu, float, x < 0 ? a * (float)expm1((double)x / (double)a) : x)
MLO_NUMBER(mlo_real_selu, float, x > 0 ? b * x : b * a * (float)expm1((double)x))
MLO_NUMBER(mlo_real_thresholded, float, x > a ? x : 0.0f)
MLO_NUMBER(mlo_real_hard_sigmoid, float, fmaxf(0.0f, fminf(1.0f, a *x + b)))
MLO_NUMBER(mlo_real_swish, float, x / (1.0f + expf(-a * x)))
MLO_NUMBER(mlo_real_shrink, float, x<-a ? x + b : x> a ? x - b : 0.0f)
/* of two or three numbers */
MLO_NUMBER(mlo_real_sum, float, x + a)
MLO_NUMBER(mlo_real_difference, float, x - a)
MLO_NUMBER(mlo_real_product, float, x *a)
MLO_NUMBER(mlo_real_quotient, float, x / a)
MLO_NUMBER(mlo_real_larger, float, x > a || x != x ? x : a)
MLO_NUMBER(mlo_real_smaller, float, x < a || x != x ? x : a)
MLO_NUMBER(mlo_real_power, float, a == 2.0f ? x * x : a == 3.0f ? x * x * x : powf(x, a))
MLO_NUMBER(mlo_real_prelu, float, x < 0 ? x * a : x)

/* In steps of a, to the nearest, of two the even one; p = [lo, hi]. */
static inline int64_t mlo_real_steps(float x, float a, float b, const int64_t *p) {
    const float q = rintf(x / a), lo = (float)p[0], hi = (float)p[1];
    (void)b;
    return (int64_t)(q > lo ? q < hi ? q : hi : lo);
}

/* ---- row by row --------------------------------------------------------------------- */

/* e^(x - max), normalised; or its logarithm. Numbers `step` apart; z may be x. */
static inline void mlo_real_softmax(
    float *z, const float *x, int64_t n, int64_t step, int logarithm) {
    float max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i * step] > max || x[i * step] != x[i * step]) max = x[i * step];
    for (int64_t i = 0; i < n; i++) {
        const float far = x[i * step] - max;
        /* what a mask hides; expf is slow where it gives 0 */
        const float e = far < -104 ? 0 : expf(far);
        sum += e;
        if (!logarithm) z[i * step] = e;
    }
    if (logarithm) {
        const float l = logf(sum);
        for (int64_t i = 0; i < n; i++) z[i * step] = x[i * step] - max - l;
        return;
    }
    const float scale = 1.0f / sum;
    for (int64_t i = 0; i < n; i++) z[i * step] *= scale;
}

/* z := normalised z, in place; without `mean` by the root mean square alone. stash: the mean, the inverse. */
static inline void mlo_real_normalize(
    double *z, int64_t n, double epsilon, int mean, double *stash) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; mean && i < n; i++) sum += z[i];
    const double mu = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (z[i] - mu) * (z[i] - mu);
    const double inverse = 1.0 / sqrt(squares / (double)n + epsilon);
    for (int64_t i = 0; i < n; i++) z[i] = (z[i] - mu) * inverse;
    stash[0] = mu;
    stash[1] = inverse;
}

/* ---- many to one ---------------------------------------------------------------------- */

enum { MLO_SUM, MLO_PRODUCT, MLO_LEAST, MLO_MOST, MLO_SQUARES, MLO_ABSOLUTES, MLO_EXPONENTIALS };

/* What has been combined so far, combined with x, too. */
static inline double mlo_real_combined(int how, double sum, double x, double most) {
    switch (how) {
    case MLO_PRODUCT: return sum * x;
    case MLO_LEAST: return x < sum || x != x ? x : sum;
    case MLO_MOST: return x > sum || x != x ? x : sum;
    case MLO_SQUARES: return sum + x * x;
    case MLO_ABSOLUTES: return sum + fabs(x);
    case MLO_EXPONENTIALS: return sum + exp(x - most);
    default: return sum + x;
    }
}
static inline int64_t mlo_whole_combined(int how, int64_t sum, int64_t x, int64_t most) {
    (void)most;
    switch (how) {
    case MLO_PRODUCT: return (int64_t)((uint64_t)sum * (uint64_t)x);
    case MLO_LEAST: return x < sum ? x : sum;
    case MLO_MOST: return x > sum ? x : sum;
    case MLO_SQUARES: return (int64_t)((uint64_t)sum + (uint64_t)x * (uint64_t)x);
    case MLO_ABSOLUTES: return (int64_t)((uint64_t)sum + (x < 0 ? 0 - (uint64_t)x : (uint64_t)x));
    default: return (int64_t)((uint64_t)sum + (uint64_t)x);
    }
}
