/* math: operators that work element by element.
 *
 * in:  a call (op.c).
 * out: its output array, filled.
 *
 * invariant: an op is one expression per core type (array.c); broadcasting, type conversion and
 *     error checks happen once, in mlo_elementwise. Integers wrap; division by zero gives 0 in
 *     integers; NaN travels through Min, Max, Clip and Relu.
 * example: MLO_BINARY(Add, x + y, x + y, WRAP(x, +, y), x + y) is all there is to say about Add.
 * cost: one pass over the output per operand pair.
 */
/* Laid out by hand: clang-format takes the expressions below for declarations. */
/* clang-format off */

/* The loops of an op, one per core type; NULL: the op has none for it. */
typedef struct {
    mlo_loop f32;
    mlo_loop f64;
    mlo_loop i64;
    mlo_loop u64;
    int boolean; /* 1: the result is bool, one byte per element */
} mlo_loops;

static mlo_loop mlo_loop_for(const mlo_loops *l, mlo_dtype core) {
    return core == MLO_FLOAT ? l->f32
        : core == MLO_DOUBLE ? l->f64
        : core == MLO_INT64  ? l->i64
                             : l->u64;
}

/* out := loop(in[0..n)), all in core types, broadcast to out's shape. in may be out itself where
 * the shapes are equal. */
static void mlo_elements(
    mlo_array *out, const mlo_array *const *in, int n, mlo_loop loop, const double *arg) {
    mlo_walk w = mlo_walk_over(out->rank, out->dims);
    const void *data[MLO_WALK_TERMS] = { 0 };
    size_t size[MLO_WALK_TERMS] = { 0 };
    for (int k = 0; k < n; k++) {
        mlo_walk_add(&w, in[k]->rank, in[k]->dims);
        data[k] = in[k]->data;
        size[k] = mlo_dtype_size(in[k]->dtype);
    }
    mlo_walk_run(&w, loop, out->data, mlo_dtype_size(out->dtype), data, size, arg);
}

/* The same for any types: converts the operands to `core` and the result to out's type. */
static int mlo_elements_any(mlo *m, const mlo_node *node, mlo_array *out,
    const mlo_array *const *in, int n, const mlo_loops *loops, mlo_dtype core, const double *arg) {
    mlo_loop loop = mlo_loop_for(loops, core);
    if (!loop)
        return mlo_fail(m, MLO_E_TYPE, node, "is not defined for %s", mlo_dtype_name(in[0]->dtype));
    const mlo_array *x[MLO_WALK_TERMS] = { 0 };
    mlo_dtype result = loops->boolean ? MLO_BOOL : core;
    mlo_array *z = out->dtype == result ? out : mlo_array_new(m, result, out->rank, out->dims);
    for (int k = 0; z && k < n; k++)
        if (!(x[k] = mlo_as(m, in[k], core))) break;
    if (!m->error.code) mlo_elements(z, x, n, loop, arg);
    if (!m->error.code && z != out)
        mlo_convert(out->dtype, out->data, result, z->data, (size_t)mlo_array_count(z));
    for (int k = 0; k < n; k++) mlo_as_free(m, x[k], x[k] ? in[k] : NULL);
    if (z != out) mlo_array_free(m, z);
    return mlo_failed(m);
}

/* An op of n operands (0: as many as there are, combined from left to right). */
static int mlo_elementwise(mlo_call *c, size_t n, const mlo_loops *loops, const double *arg) {
    MLO_TRY(mlo_need_inputs(c, n));
    mlo_array *out = c->out[0];
    mlo_dtype core = mlo_core_type(c->in[0]->dtype);
    if (n) return mlo_elements_any(c->m, c->node, out, c->in, (int)n, loops, core, arg);
    int64_t step[MLO_MAX_RANK];
    mlo_walk w = mlo_walk_over(out->rank, out->dims);
    mlo_walk_add(&w, c->in[0]->rank, c->in[0]->dims);
    memcpy(step, w.step[0], sizeof step);
    mlo_copy_strided(
        out->data, c->in[0]->data, mlo_dtype_size(out->dtype), out->rank, out->dims, step, 0);
    for (size_t i = 1; i < c->n_in; i++) {
        const mlo_array *pair[2];
        pair[0] = out;
        pair[1] = c->in[i];
        MLO_TRY(mlo_elements_any(c->m, c->node, out, pair, 2, loops, core, arg));
    }
    return 0;
}

/* ---- loops ---------------------------------------------------------------- */

#define MLO_LOOP1(name, T, R, expr)                                                            \
    static void name(                                                                          \
        void *out, const void *const *in, const int64_t *step, int64_t n, const double *arg) { \
        R *z = (R *)out;                                                                       \
        const T *p = (const T *)in[0];                                                         \
        int64_t s = step[0];                                                                   \
        (void)arg;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                      \
            T x = p[i * s];                                                                    \
            z[i] = (R)(expr);                                                                  \
        }                                                                                      \
    }
#define MLO_LOOP2(name, T, R, expr)                                                            \
    static void name(                                                                          \
        void *out, const void *const *in, const int64_t *step, int64_t n, const double *arg) { \
        R *z = (R *)out;                                                                       \
        const T *p = (const T *)in[0], *q = (const T *)in[1];                                  \
        int64_t s = step[0], t = step[1];                                                      \
        (void)arg;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                      \
            T x = p[i * s], y = q[i * t];                                                      \
            (void)y;                                                                           \
            z[i] = (R)(expr);                                                                  \
        }                                                                                      \
    }
#define MLO_RUN(op, n, arg, ...)                             \
    static const mlo_loops mlo_loops_##op = { __VA_ARGS__ }; \
    static int mlo_run_##op(mlo_call *c) { return mlo_elementwise(c, n, &mlo_loops_##op, arg); }

/* Integer arithmetic that wraps: signed overflow is left to nobody. */
#define MLO_WRAPPED(x, op, y) ((int64_t)((uint64_t)(x)op(uint64_t)(y)))

/* ---- one operand -------------------------------------------------------------
 * A1: the op's constants, from its attributes. */

#define MLO_FLOATS1(op, f, d) \
    MLO_LOOP1(mlo_f32_##op, float, float, f) MLO_LOOP1(mlo_f64_##op, double, double, d)
#define MLO_UNARY(op, f, d) \
    MLO_FLOATS1(op, f, d) MLO_RUN(op, 1, NULL, mlo_f32_##op, mlo_f64_##op, NULL, NULL, 0)
/* What floats give is in exact/real.c: emitted C has it, too. */
#define MLO_REAL(name) mlo_real_##name(x, 0, 0, NULL)
#define MLO_REAL2(name) mlo_real_##name(x, y, 0, NULL)
#define MLO_LIBM(op, function) MLO_UNARY(op, MLO_REAL(function), function(x))
/* Floats by way of double, rounded: C libraries differ in the last bit of erff and tanhf; of erf and tanh, too, but
 * that one the rounding hides. (expf, logf, powf do so by themselves, in glibc and in musl.) So a model becomes the
 * same integers with either. It costs no more. */
#define MLO_ROUNDED(op, function) MLO_UNARY(op, function((double)x), function(x))

MLO_LIBM(Floor, floor)
MLO_LIBM(Ceil, ceil)
MLO_LIBM(Round, rint)
MLO_LIBM(Sqrt, sqrt)
MLO_LIBM(Exp, exp)
MLO_LIBM(Log, log)
MLO_LIBM(Erf, erf)
MLO_LIBM(Tanh, tanh)
MLO_LIBM(Sin, sin)
MLO_LIBM(Cos, cos)
MLO_ROUNDED(Tan, tan)
MLO_ROUNDED(Asin, asin)
MLO_ROUNDED(Acos, acos)
MLO_ROUNDED(Atan, atan)
MLO_ROUNDED(Sinh, sinh)
MLO_ROUNDED(Cosh, cosh)
MLO_ROUNDED(Asinh, asinh)
MLO_ROUNDED(Acosh, acosh)
MLO_ROUNDED(Atanh, atanh)
MLO_UNARY(Reciprocal, MLO_REAL(reciprocal), 1.0 / x)
MLO_UNARY(Sigmoid, MLO_REAL(sigmoid), 1.0 / (1.0 + exp(-x)))
MLO_UNARY(Softsign, MLO_REAL(softsign), x / (1.0 + fabs(x)))
/* log(1 + e^x), without overflow for large x */
MLO_UNARY(Softplus, MLO_REAL(softplus), (x > 0 ? x : 0.0) + log1p(exp(-fabs(x))))
MLO_UNARY(Mish, MLO_REAL(mish), x * tanh((x > 0 ? x : 0.0) + log1p(exp(-fabs(x)))))
MLO_UNARY(HardSwish, MLO_REAL(hard_swish), x * fmax(0.0, fmin(1.0, x / 6.0 + 0.5)))

/* Also for integers. */
#define MLO_NUMERIC1(op, f, d, i, u)               \
    MLO_FLOATS1(op, f, d)                          \
    MLO_LOOP1(mlo_i64_##op, int64_t, int64_t, i)   \
    MLO_LOOP1(mlo_u64_##op, uint64_t, uint64_t, u) \
    MLO_RUN(op, 1, NULL, mlo_f32_##op, mlo_f64_##op, mlo_i64_##op, mlo_u64_##op, 0)
MLO_NUMERIC1(Abs, MLO_REAL(abs), fabs(x), x < 0 ? MLO_WRAPPED(0, -, x) : x, x)
MLO_NUMERIC1(Neg, MLO_REAL(neg), -x, MLO_WRAPPED(0, -, x), 0 - x)
MLO_NUMERIC1(Sign, MLO_REAL(sign), x > 0 ? 1.0 : x < 0 ? -1.0 : x,
    x > 0 ? 1 : x < 0 ? -1 : 0, x > 0)
MLO_NUMERIC1(Relu, MLO_REAL(relu), x < 0 ? 0.0 : x, x < 0 ? 0 : x, x)

MLO_LOOP1(mlo_i64_Not, int64_t, uint8_t, !x)
MLO_RUN(Not, 1, NULL, NULL, NULL, mlo_i64_Not, NULL, 1)
MLO_LOOP1(mlo_i64_BitwiseNot, int64_t, int64_t, ~x)
MLO_LOOP1(mlo_u64_BitwiseNot, uint64_t, uint64_t, ~x)
MLO_RUN(BitwiseNot, 1, NULL, NULL, NULL, mlo_i64_BitwiseNot, mlo_u64_BitwiseNot, 0)
MLO_LOOP1(mlo_f32_IsNaN, float, uint8_t, x != x)
MLO_LOOP1(mlo_f64_IsNaN, double, uint8_t, x != x)
MLO_RUN(IsNaN, 1, NULL, mlo_f32_IsNaN, mlo_f64_IsNaN, NULL, NULL, 1)

/* With constants: arg[0], arg[1], from two float attributes and their defaults. */
#define MLO_UNARY_ARGS(op, name0, default0, name1, default1, f, d)                         \
    MLO_FLOATS1(op, f, d)                                                                  \
    static const mlo_loops mlo_loops_##op = { mlo_f32_##op, mlo_f64_##op, NULL, NULL, 0 }; \
    static int mlo_run_##op(mlo_call *c) {                                                 \
        double arg[2];                                                                     \
        arg[0] = (double)mlo_float(c->node, name0, default0);                              \
        arg[1] = (double)mlo_float(c->node, name1, default1);                              \
        return mlo_elementwise(c, 1, &mlo_loops_##op, arg);                                \
    }
#define MLO_A ((float)arg[0])
#define MLO_B ((float)arg[1])
#define MLO_REAL_AB(name) mlo_real_##name(x, MLO_A, MLO_B, NULL)
MLO_UNARY_ARGS(LeakyRelu, "alpha", 0.01f, "", 0, MLO_REAL_AB(leaky), x < 0 ? arg[0] * x : x)
MLO_UNARY_ARGS(Elu, "alpha", 1.0f, "", 0, MLO_REAL_AB(elu), x < 0 ? arg[0] * expm1(x) : x)
MLO_UNARY_ARGS(Celu, "alpha", 1.0f, "", 0, MLO_REAL_AB(celu),
    x < 0 ? arg[0] * expm1(x / arg[0]) : x)
MLO_UNARY_ARGS(Selu, "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f,
    MLO_REAL_AB(selu), x > 0 ? arg[1] * x : arg[1] * arg[0] * expm1(x))
MLO_UNARY_ARGS(ThresholdedRelu, "alpha", 1.0f, "", 0, MLO_REAL_AB(thresholded),
    x > arg[0] ? x : 0.0)
MLO_UNARY_ARGS(HardSigmoid, "alpha", 0.2f, "beta", 0.5f, MLO_REAL_AB(hard_sigmoid),
    fmax(0.0, fmin(1.0, arg[0] * x + arg[1])))
MLO_UNARY_ARGS(Swish, "alpha", 1.0f, "", 0, MLO_REAL_AB(swish), x / (1.0 + exp(-arg[0] * x)))
MLO_UNARY_ARGS(Shrink, "lambd", 0.5f, "bias", 0.0f, MLO_REAL_AB(shrink),
    x < -arg[0] ? x + arg[1] : x > arg[0] ? x - arg[1] : 0.0)

#define MLO_SQRT_HALF 0.70710678118654752440
#define MLO_SQRT_2_OVER_PI 0.79788456080286535588
MLO_FLOATS1(GeluErf, MLO_REAL(gelu), 0.5 * x * (1.0 + erf(x * MLO_SQRT_HALF)))
MLO_FLOATS1(GeluTanh, MLO_REAL(gelu_tanh),
    0.5 * x * (1.0 + tanh(MLO_SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))))
static const mlo_loops mlo_loops_gelu[2] = { { mlo_f32_GeluErf, mlo_f64_GeluErf, NULL, NULL, 0 },
    { mlo_f32_GeluTanh, mlo_f64_GeluTanh, NULL, NULL, 0 } };
static int mlo_run_Gelu(mlo_call *c) {
    const int tanh_form = mlo_string_is(c->node, "approximate", "tanh", 0);
    return mlo_elementwise(c, 1, &mlo_loops_gelu[tanh_form], NULL);
}

/* arg: whether +inf, -inf count */
MLO_LOOP1(mlo_f32_IsInf, float, uint8_t, isinf(x) && (x > 0 ? arg[1] != 0 : arg[0] != 0))
MLO_LOOP1(mlo_f64_IsInf, double, uint8_t, isinf(x) && (x > 0 ? arg[1] != 0 : arg[0] != 0))
static const mlo_loops mlo_loops_isinf = { mlo_f32_IsInf, mlo_f64_IsInf, NULL, NULL, 1 };
static int mlo_run_IsInf(mlo_call *c) {
    double arg[2];
    arg[0] = (double)mlo_int(c->node, "detect_negative", 1);
    arg[1] = (double)mlo_int(c->node, "detect_positive", 1);
    return mlo_elementwise(c, 1, &mlo_loops_isinf, arg);
}

/* ---- two operands --------------------------------------------------------- */

#define MLO_FLOATS2(op, f, d) \
    MLO_LOOP2(mlo_f32_##op, float, float, f) MLO_LOOP2(mlo_f64_##op, double, double, d)
#define MLO_INTS2(op, i, u) \
    MLO_LOOP2(mlo_i64_##op, int64_t, int64_t, i) MLO_LOOP2(mlo_u64_##op, uint64_t, uint64_t, u)
#define MLO_NUMERIC2(op, n, f, d, i, u) \
    MLO_FLOATS2(op, f, d)               \
    MLO_INTS2(op, i, u)                 \
    MLO_RUN(op, n, NULL, mlo_f32_##op, mlo_f64_##op, mlo_i64_##op, mlo_u64_##op, 0)
#define MLO_INTEGER2(op, i, u) \
    MLO_INTS2(op, i, u) MLO_RUN(op, 2, NULL, NULL, NULL, mlo_i64_##op, mlo_u64_##op, 0)
#define MLO_COMPARE(op, expr)                        \
    MLO_LOOP2(mlo_f32_##op, float, uint8_t, expr)    \
    MLO_LOOP2(mlo_f64_##op, double, uint8_t, expr)   \
    MLO_LOOP2(mlo_i64_##op, int64_t, uint8_t, expr)  \
    MLO_LOOP2(mlo_u64_##op, uint64_t, uint8_t, expr) \
    MLO_RUN(op, 2, NULL, mlo_f32_##op, mlo_f64_##op, mlo_i64_##op, mlo_u64_##op, 1)
#define MLO_LOGIC(op, expr)                         \
    MLO_LOOP2(mlo_i64_##op, int64_t, uint8_t, expr) \
    MLO_RUN(op, 2, NULL, NULL, NULL, mlo_i64_##op, NULL, 1)

/* x / y towards zero; by zero gives 0, and the one quotient that overflows wraps */
#define MLO_DIVIDE(x, y) ((y) == 0 ? 0 : (y) == -1 ? MLO_WRAPPED(0, -, x) : (x) / (y))
MLO_NUMERIC2(Add, 2, MLO_REAL2(sum), x + y, MLO_WRAPPED(x, +, y), x + y)
MLO_NUMERIC2(Sub, 2, MLO_REAL2(difference), x - y, MLO_WRAPPED(x, -, y), x - y)
MLO_NUMERIC2(Mul, 2, MLO_REAL2(product), x * y, MLO_WRAPPED(x, *, y), x * y)
MLO_NUMERIC2(Div, 2, MLO_REAL2(quotient), x / y, MLO_DIVIDE(x, y), y ? x / y : 0)
MLO_NUMERIC2(Min, 0, MLO_REAL2(smaller), x < y || x != x ? x : y, x < y ? x : y, x < y ? x : y)
MLO_NUMERIC2(Max, 0, MLO_REAL2(larger), x > y || x != x ? x : y, x > y ? x : y, x > y ? x : y)
MLO_NUMERIC2(Sum, 0, x + y, x + y, MLO_WRAPPED(x, +, y), x + y)
MLO_NUMERIC2(PRelu, 2, MLO_REAL2(prelu), x < 0 ? x * y : x, x < 0 ? MLO_WRAPPED(x, *, y) : x, x)
MLO_COMPARE(Equal, x == y)
MLO_COMPARE(Less, x < y)
MLO_COMPARE(LessOrEqual, x <= y)
MLO_COMPARE(Greater, x > y)
MLO_COMPARE(GreaterOrEqual, x >= y)
MLO_LOGIC(And, x && y)
MLO_LOGIC(Or, x || y)
MLO_LOGIC(Xor, !x != !y)
MLO_INTEGER2(BitwiseAnd, x & y, x & y)
MLO_INTEGER2(BitwiseOr, x | y, x | y)
MLO_INTEGER2(BitwiseXor, x ^ y, x ^ y)

MLO_FLOATS1(Scaled, x * MLO_A, x * arg[0])
static const mlo_loops mlo_loops_scale = { mlo_f32_Scaled, mlo_f64_Scaled, NULL, NULL, 0 };
/* Sum, then one division by the number of operands */
static int mlo_run_Mean(mlo_call *c) {
    MLO_TRY(mlo_run_Sum(c));
    double arg[2] = { 0, 0 };
    const mlo_array *in[1];
    in[0] = c->out[0];
    arg[0] = 1.0 / (double)c->n_in;
    return mlo_elements_any(
        c->m, c->node, c->out[0], in, 1, &mlo_loops_scale, mlo_core_type(c->in[0]->dtype), arg);
}

/* Mod: fmod=0 has the divisor's sign, as Python's %; fmod=1 the dividend's, as C's. */
static double mlo_modulo(double x, double y) {
    double r = fmod(x, y);
    return r < 0 || r > 0 ? ((r < 0) != (y < 0) ? r + y : r) : r == 0 ? copysign(0, y) : r;
}
MLO_FLOATS2(Mod, mlo_modulo((double)x, (double)y), mlo_modulo(x, y))
MLO_INTS2(Mod, y == 0 || y == -1 ? 0 : x % y && (x % y < 0) != (y < 0) ? x % y + y : x % y,
    y ? x % y : 0)
MLO_FLOATS2(Fmod, fmodf(x, y), fmod(x, y))
MLO_INTS2(Fmod, y == 0 || y == -1 ? 0 : x % y, y ? x % y : 0)
static const mlo_loops mlo_loops_mod[2] = { { mlo_f32_Mod, mlo_f64_Mod, mlo_i64_Mod, mlo_u64_Mod,
                                                0 },
    { mlo_f32_Fmod, mlo_f64_Fmod, mlo_i64_Fmod, mlo_u64_Fmod, 0 } };
static int mlo_run_Mod(mlo_call *c) {
    return mlo_elementwise(c, 2, &mlo_loops_mod[mlo_int(c->node, "fmod", 0) != 0], NULL);
}

/* BitShift: what leaves the type is lost; to the right signed integers round down. A shift beyond
 * the width leaves nothing (or the sign). */
static int64_t mlo_shift_left(int64_t x, int64_t y) {
    return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
}
static int64_t mlo_shift_right(int64_t x, int64_t y) {
    if (y < 0 || y > 62) return x < 0 ? -1 : 0;
    int64_t d = (int64_t)1 << y;
    return x / d - (x % d < 0);
}
MLO_INTS2(ShiftLeft, mlo_shift_left(x, y), y > 63 ? 0 : x << y)
MLO_INTS2(ShiftRight, mlo_shift_right(x, y), y > 63 ? 0 : x >> y)
static const mlo_loops mlo_loops_shift[2] = { { NULL, NULL, mlo_i64_ShiftLeft, mlo_u64_ShiftLeft,
                                                  0 },
    { NULL, NULL, mlo_i64_ShiftRight, mlo_u64_ShiftRight, 0 } };
static int mlo_run_BitShift(mlo_call *c) {
    static const char *const ways[] = { "", "LEFT", "RIGHT" };
    const int way = mlo_which_text(c->node, "direction", ways, 3);
    if (way < 1) return mlo_fail(c->m, MLO_E_GRAPH, c->node, "direction must be LEFT or RIGHT");
    return mlo_elementwise(c, 2, &mlo_loops_shift[way - 1], NULL);
}

/* Integer powers by squaring; a negative exponent gives 0, but for bases 1 and -1. */
static uint64_t mlo_power(uint64_t x, int64_t n) {
    if (n < 0) return x == 1 ? 1 : x == UINT64_MAX ? (n % 2 ? UINT64_MAX : 1) : 0;
    uint64_t r = 1;
    for (; n; n >>= 1, x *= x)
        if (n & 1) r *= x;
    return r;
}
MLO_FLOATS2(Pow, MLO_REAL2(power), pow(x, y))
MLO_INTS2(Pow, (int64_t)mlo_power((uint64_t)x, y),
    mlo_power(x, y > INT64_MAX ? INT64_MAX : (int64_t)y))
static const mlo_loops mlo_loops_Pow = { mlo_f32_Pow, mlo_f64_Pow, mlo_i64_Pow, mlo_u64_Pow, 0 };
/* the base's type is the result's; an integer base with a float exponent goes by double */
static int mlo_run_Pow(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    mlo_dtype core = mlo_core_type(c->in[0]->dtype);
    if (!mlo_dtype_is_float(core) && mlo_dtype_is_float(c->in[1]->dtype)) core = MLO_DOUBLE;
    return mlo_elements_any(c->m, c->node, c->out[0], c->in, 2, &mlo_loops_Pow, core, NULL);
}
/* ---- Where, Clip, Cast ---------------------------------------------------- */

#define MLO_WHERE_LOOP(name, T)                                                                \
    static void name(                                                                          \
        void *out, const void *const *in, const int64_t *step, int64_t n, const double *arg) { \
        T *z = (T *)out;                                                                       \
        const uint8_t *which = (const uint8_t *)in[0];                                         \
        const T *x = (const T *)in[1], *y = (const T *)in[2];                                  \
        (void)arg;                                                                             \
        for (int64_t i = 0; i < n; i++)                                                        \
            z[i] = which[i * step[0]] ? x[i * step[1]] : y[i * step[2]];                       \
    }
MLO_WHERE_LOOP(mlo_where1, uint8_t)
MLO_WHERE_LOOP(mlo_where2, uint16_t)
MLO_WHERE_LOOP(mlo_where4, uint32_t)
MLO_WHERE_LOOP(mlo_where8, uint64_t)
static int mlo_run_Where(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 3));
    size_t size = mlo_dtype_size(c->out[0]->dtype);
    mlo_elements(c->out[0], c->in, 3,
        size == 1       ? mlo_where1
            : size == 2 ? mlo_where2
            : size == 4 ? mlo_where4
                        : mlo_where8,
        NULL);
    return 0;
}
static int mlo_shape_Where(mlo_shapes *s) {
    mlo_form f = mlo_form_in(s, 0), x = mlo_form_in(s, 1), y = mlo_form_in(s, 2);
    MLO_TRY(mlo_same_type(s, 1, 2));
    if (f.dtype && f.dtype != MLO_BOOL)
        return mlo_fail(
            s->m, MLO_E_TYPE, s->node, "condition is %s; it must be bool", mlo_dtype_name(f.dtype));
    f.dtype = x.dtype ? x.dtype : y.dtype;
    MLO_TRY(mlo_broadcast(s, &f, &x));
    MLO_TRY(mlo_broadcast(s, &f, &y));
    s->out[0] = f;
    return 0;
}

static int mlo_clip_scalar(mlo_call *c, const mlo_array *bound, const char *which) {
    const int64_t n = bound ? mlo_array_count(bound) : 1;
    if (n == 1) return 0;
    return mlo_fail(c->m, MLO_E_SHAPE, c->node,
        "the bound '%s' has %lld elements; it must be a scalar", which, (long long)n);
}

/* Clip: bounds are attributes (opset < 11) or optional scalars. max wins over min, as in numpy. */
static int mlo_clip_bounds(mlo_call *c, const mlo_array *lo, const mlo_array *hi) {
    const mlo_array *pair[2];
    pair[0] = c->in[0];
    mlo_dtype core = mlo_core_type(c->in[0]->dtype);
    if (mlo_clip_scalar(c, lo, "min") || mlo_clip_scalar(c, hi, "max")) return mlo_failed(c->m);
    if (lo) {
        pair[1] = lo;
        MLO_TRY(mlo_elements_any(c->m, c->node, c->out[0], pair, 2, &mlo_loops_Max, core, NULL));
        pair[0] = c->out[0];
    }
    if (hi) {
        pair[1] = hi;
        MLO_TRY(mlo_elements_any(c->m, c->node, c->out[0], pair, 2, &mlo_loops_Min, core, NULL));
        pair[0] = c->out[0];
    }
    if (pair[0] != c->out[0])
        memcpy(c->out[0]->data, c->in[0]->data,
            (size_t)mlo_array_count(c->in[0]) * mlo_dtype_size(c->in[0]->dtype));
    return 0;
}
static int mlo_run_Clip(mlo_call *c) {
    if (c->opset >= 11)
        return mlo_clip_bounds(c, c->n_in > 1 ? c->in[1] : NULL, c->n_in > 2 ? c->in[2] : NULL);
    float lo = mlo_float(c->node, "min", -INFINITY), hi = mlo_float(c->node, "max", INFINITY);
    mlo_array a = { NULL, MLO_FLOAT, 0, { 0 }, NULL }, b = a;
    a.data = &lo;
    b.data = &hi;
    return mlo_clip_bounds(c, &a, &b);
}

static int mlo_run_Cast(mlo_call *c) {
    const mlo_array *x = c->in[0];
    mlo_array *z = c->out[0];
    mlo_float_format f;
    double v;
    size_t n = (size_t)mlo_array_count(x), size = mlo_dtype_size(x->dtype);
    if (mlo_int(c->node, "saturate", 1) || !mlo_small_format(z->dtype, &f)) {
        mlo_convert(z->dtype, z->data, x->dtype, x->data, n);
        return 0;
    }
    f.saturate = 0;
    for (size_t i = 0; i < n; i++) {
        mlo_to_doubles(x->dtype, (const char *)x->data + i * size, 1, &v);
        unsigned code = mlo_small_encode(&f, v);
        if (mlo_dtype_size(z->dtype) == 2)
            ((uint16_t *)z->data)[i] = (uint16_t)code;
        else
            ((uint8_t *)z->data)[i] = (uint8_t)code;
    }
    return 0;
}
static int mlo_shape_Cast(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    s->out[0].dtype = (mlo_dtype)mlo_int(s->node, "to", 0);
    return 0;
}
static int mlo_shape_CastLike(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    s->out[0].dtype = mlo_form_in(s, 1).dtype;
    return 0;
}

/* ---- running sums --------------------------------------------------------- */

/* CumSum along one axis; exclusive: the sum before each element; reverse: from the end. */
#define MLO_CUMSUM(name, T)                                                                      \
    static void name(                                                                            \
        T *z, const T *x, int64_t outer, int64_t n, int64_t inner, int exclusive, int reverse) { \
        for (int64_t o = 0; o < outer; o++)                                                      \
            for (int64_t k = 0; k < inner; k++) {                                                \
                T sum = 0;                                                                       \
                for (int64_t i = 0; i < n; i++) {                                                \
                    int64_t at = (o * n + (reverse ? n - 1 - i : i)) * inner + k;                \
                    T next = (T)(sum + x[at]);                                                   \
                    z[at] = exclusive ? sum : next;                                              \
                    sum = next;                                                                  \
                }                                                                                \
            }                                                                                    \
    }
MLO_CUMSUM(mlo_cumsum_f32, float)
MLO_CUMSUM(mlo_cumsum_f64, double)
MLO_CUMSUM(mlo_cumsum_u64, uint64_t)
static int mlo_run_CumSum(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    int64_t list[MLO_MAX_LIST], outer = 1, inner = 1;
    int axis;
    if (mlo_ints(c->forms, NULL, 1, list) != 1)
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "axis must be one integer");
    MLO_TRY(mlo_axis(c->forms, list[0], c->in[0]->rank, &axis));
    mlo_dtype core = mlo_core_type(c->in[0]->dtype);
    const mlo_array *x = mlo_as(c->m, c->in[0], core);
    mlo_array *z = x ? mlo_array_new(c->m, core, x->rank, x->dims) : NULL;
    int exclusive = mlo_int(c->node, "exclusive", 0) != 0;
    int reverse = mlo_int(c->node, "reverse", 0) != 0;
    if (z) {
        for (int i = 0; i < x->rank; i++)
            if (i < axis)
                outer *= x->dims[i];
            else if (i > axis)
                inner *= x->dims[i];
        if (core == MLO_FLOAT)
            mlo_cumsum_f32((float *)z->data, (const float *)x->data, outer, x->dims[axis], inner,
                exclusive, reverse);
        else if (core == MLO_DOUBLE)
            mlo_cumsum_f64((double *)z->data, (const double *)x->data, outer, x->dims[axis], inner,
                exclusive, reverse);
        else
            mlo_cumsum_u64((uint64_t *)z->data, (const uint64_t *)x->data, outer, x->dims[axis],
                inner, exclusive, reverse);
        mlo_convert(c->out[0]->dtype, c->out[0]->data, core, z->data, (size_t)mlo_array_count(z));
    }
    mlo_as_free(c->m, x, c->in[0]);
    mlo_array_free(c->m, z);
    return mlo_failed(c->m);
}

/* ---- shape rules ---------------------------------------------------------- */

static int mlo_shape_broadcast(mlo_shapes *s) {
    mlo_form f = mlo_form_in(s, 0);
    for (size_t i = 1; i < s->n_in; i++) {
        MLO_TRY(mlo_same_type(s, 0, i));
        if (!f.dtype) f.dtype = s->in[i].dtype;
        MLO_TRY(mlo_broadcast(s, &f, &s->in[i]));
    }
    s->out[0] = f;
    return 0;
}
static int mlo_shape_compare(mlo_shapes *s) {
    MLO_TRY(mlo_shape_broadcast(s));
    s->out[0].dtype = MLO_BOOL;
    return 0;
}
static int mlo_shape_bool(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    s->out[0].dtype = MLO_BOOL;
    return 0;
}
static int mlo_shape_Pow(mlo_shapes *s) {
    mlo_form f = mlo_form_in(s, 0), y = mlo_form_in(s, 1);
    MLO_TRY(mlo_broadcast(s, &f, &y));
    s->out[0] = f;
    return 0;
}
