/* qonnx: QONNX's operators (Quant, BipolarQuant, Trunc), as Brevitas and FINN write them.
 *
 * in:  values, scale, zero point, width in bits: floats, of any shapes that broadcast; the width
 *     may be a fraction.
 * out: y = (round(clip(x / scale + zero, least, most)) - zero) x scale. The range least .. most is
 *     signed            -2^(bits-1) .. 2^(bits-1) - 1     (narrow: least is one more)
 *     unsigned          0 .. 2^bits - 1                   (narrow: most is one less)
 *     Signed of one bit, and BipolarQuant, are 1 if x >= 0, else -1.
 *
 * Trunc comes in two versions. (x, scale, zero, bits in, bits out) keeps the scale and so divides
 * by 2^(bits in - bits out). (x, scale, zero, bits in, scale out, bits out) clips, and changes the
 * scale by the power of two next to scale out / scale. mlo evaluates these operators; quantize
 * writes them as standard ones (given.c).
 *
 * invariant: computed in float, step by step as qonnx does, so that numbers next to a tie go the
 *     same way.
 * example: x = 0.74, scale 0.5, 4 bits: 0.5. Trunc from 8 to 4 bits: 93 x scale becomes
 *     floor(93 / 16) x scale = 5 x scale.
 * cost: a pass per step.
 */

/* ---- rounding modes ------------------------------------------------------- */

MLO_LOOP1(mlo_round_up, float, float, copysignf(ceilf(fabsf(x)), x))
MLO_LOOP1(mlo_round_down, float, float, truncf(x))
MLO_LOOP1(mlo_round_half_up, float, float, copysignf(floorf(fabsf(x) + 0.5f), x))
MLO_LOOP1(mlo_round_half_down, float, float, copysignf(ceilf(fabsf(x) - 0.5f), x))

/* `op` is the standard operator, applied to x, or with a sign to |x| + offset: round(x) = sign(x)
 * op(|x| + offset). */
typedef struct {
    const char *mode;
    mlo_loop loop;
    const char *op;
    int of_size;
    double offset;
} mlo_rounding_mode;
static const mlo_rounding_mode mlo_rounding_modes[] = {
    { "ROUND", mlo_f32_Round, "Round", 0, 0 },
    { "HALF_EVEN", mlo_f32_Round, "Round", 0, 0 },
    { "FLOOR", mlo_f32_Floor, "Floor", 0, 0 },
    { "CEIL", mlo_f32_Ceil, "Ceil", 0, 0 },
    { "UP", mlo_round_up, "Ceil", 1, 0 },
    { "DOWN", mlo_round_down, "Floor", 1, 0 },
    { "ROUND_TO_ZERO", mlo_round_down, "Floor", 1, 0 },
    { "HALF_UP", mlo_round_half_up, "Floor", 1, 0.5 },
    { "HALF_DOWN", mlo_round_half_down, "Ceil", 1, -0.5 },
};

/* The mode that a node names, in letters of either size; `otherwise` where it names none. NULL:
 * one that is not known. */
static const mlo_rounding_mode *mlo_rounding_mode_of(const mlo_node *n, const char *otherwise) {
    const mlo_attr *a = mlo_attr_of(n, "rounding_mode");
    const char *said = a ? a->s.data : otherwise;
    size_t length = a ? a->s.n : strlen(otherwise);
    for (size_t i = 0; i < sizeof mlo_rounding_modes / sizeof *mlo_rounding_modes; i++) {
        const char *mode = mlo_rounding_modes[i].mode;
        int same = strlen(mode) == length;
        for (size_t k = 0; same && k < length; k++)
            same = mode[k] == (said[k] >= 'a' && said[k] <= 'z' ? said[k] - 'a' + 'A' : said[k]);
        if (same) return &mlo_rounding_modes[i];
    }
    return NULL;
}

/* ---- evaluation ----------------------------------------------------------- */

MLO_LOOP2(mlo_at_most, float, float, x > y ? y : x)
MLO_LOOP2(mlo_at_least, float, float, x < y ? y : x)
MLO_LOOP1(mlo_bipolar, float, float, x >= 0 ? 1.0f : -1.0f)
MLO_LOOP2(mlo_bits_apart, float, float, exp2f(x - y))
MLO_LOOP2(mlo_scales_apart, float, float, exp2f(rintf(log2f(x / y))))
/* arg: signed, narrow */
MLO_LOOP1(mlo_quant_least, float, float, arg[0] > 0 ? (float)arg[1] - exp2f(x - 1) : 0.0f)
MLO_LOOP1(mlo_quant_most, float, float,
    exp2f(arg[0] > 0 ? x - 1 : x) - (arg[0] > 0 ? 1.0f : 1.0f + (float)arg[1]))

enum { MLO_QUANT_INPUTS = 6 };
/* A call with its inputs as floats; y is its output, worked on in place. */
typedef struct {
    mlo_call *c;
    const mlo_array *in[MLO_QUANT_INPUTS];
    mlo_array *y;
    double arg[2];
} mlo_quant_call;

static void mlo_quant_step(mlo_quant_call *k, mlo_loop loop, const mlo_array *other) {
    const mlo_array *pair[2];
    pair[0] = k->y;
    pair[1] = other;
    if (!k->c->m->error.code) mlo_elements(k->y, pair, other ? 2 : 1, loop, k->arg);
}
/* The same with loop(a, b) for the other operand, in the shape of both. */
static void mlo_quant_by(
    mlo_quant_call *k, mlo_loop loop, mlo_loop made, const mlo_array *a, const mlo_array *b) {
    mlo_form f = mlo_form_of_array(a), g = mlo_form_of_array(b ? b : a);
    if (k->c->m->error.code || mlo_broadcast(k->c->forms, &f, &g)) return;
    mlo_array *other = mlo_array_new(k->c->m, MLO_FLOAT, f.rank, f.dims);
    const mlo_array *pair[2];
    pair[0] = a;
    pair[1] = b;
    if (other) {
        mlo_elements(other, pair, b ? 2 : 1, made, k->arg);
        mlo_quant_step(k, loop, other);
    }
    mlo_array_free(k->c->m, other);
}
static void mlo_quant_clip(mlo_quant_call *k, const mlo_array *bits) {
    mlo_quant_by(k, mlo_at_most, mlo_quant_most, bits, NULL);
    mlo_quant_by(k, mlo_at_least, mlo_quant_least, bits, NULL);
}

static void mlo_quant_close(mlo_quant_call *k) {
    for (size_t i = 0; i < MLO_QUANT_INPUTS; i++)
        if (k->in[i]) mlo_as_free(k->c->m, k->in[i], k->c->in[i]);
}
/* y := x, in the shape of all inputs. */
static int mlo_quant_open(mlo_quant_call *k, mlo_call *c, size_t n) {
    memset(k, 0, sizeof *k);
    k->c = c;
    k->y = c->out[0];
    k->arg[0] = mlo_int(c->node, "signed", 1) != 0;
    k->arg[1] = mlo_int(c->node, "narrow", 0) != 0;
    MLO_TRY(mlo_need_inputs(c, n));
    if (k->y->dtype != MLO_FLOAT)
        return mlo_fail(c->m, MLO_E_TYPE, c->node, "is defined for float");
    for (size_t i = 0; i < n; i++)
        if (!(k->in[i] = mlo_as(c->m, c->in[i], MLO_FLOAT))) {
            mlo_quant_close(k);
            return mlo_failed(c->m);
        }
    const mlo_array *x = k->in[0];
    int64_t step[MLO_MAX_RANK];
    mlo_walk w = mlo_walk_over(k->y->rank, k->y->dims);
    mlo_walk_add(&w, x->rank, x->dims);
    memcpy(step, w.step[0], sizeof step);
    mlo_copy_strided(k->y->data, x->data, sizeof(float), k->y->rank, k->y->dims, step, 0);
    return 0;
}

static const mlo_rounding_mode *mlo_quant_mode(mlo_call *c, const char *otherwise) {
    const mlo_rounding_mode *mode = mlo_rounding_mode_of(c->node, otherwise);
    if (!mode)
        mlo_fail(c->m, MLO_E_UNSUPPORTED, c->node,
            "its rounding mode is unknown; ROUND, FLOOR, CEIL, UP, DOWN, HALF_UP, HALF_DOWN and "
            "ROUND_TO_ZERO are supported");
    return mode;
}

static int mlo_quant_run(mlo_call *c) {
    mlo_quant_call k;
    const mlo_rounding_mode *mode = mlo_quant_mode(c, "ROUND");
    if (!mode || mlo_quant_open(&k, c, 4)) return mlo_failed(c->m);
    mlo_quant_step(&k, mlo_f32_Div, k.in[1]);
    mlo_quant_step(&k, mlo_f32_Add, k.in[2]);
    const float *bits = (const float *)k.in[3]->data;
    int one = mlo_array_count(k.in[3]) == 1 && *bits >= 1 && *bits <= 1;
    if (one && k.arg[0] > 0)
        mlo_quant_step(&k, mlo_bipolar, NULL);
    else {
        mlo_quant_clip(&k, k.in[3]);
        mlo_quant_step(&k, mode->loop, NULL);
    }
    mlo_quant_step(&k, mlo_f32_Sub, k.in[2]);
    mlo_quant_step(&k, mlo_f32_Mul, k.in[1]);
    mlo_quant_close(&k);
    return mlo_failed(c->m);
}

static int mlo_bipolar_run(mlo_call *c) {
    mlo_quant_call k;
    if (mlo_quant_open(&k, c, 2)) return mlo_failed(c->m);
    mlo_quant_step(&k, mlo_bipolar, NULL);
    mlo_quant_step(&k, mlo_f32_Mul, k.in[1]);
    mlo_quant_close(&k);
    return mlo_failed(c->m);
}

static int mlo_trunc_run(mlo_call *c) {
    mlo_quant_call k;
    const mlo_rounding_mode *mode = mlo_quant_mode(c, "FLOOR");
    int second = c->n_in > 5;
    if (!mode || mlo_quant_open(&k, c, second ? 6 : 5)) return mlo_failed(c->m);
    mlo_quant_step(&k, mlo_f32_Div, k.in[1]);
    mlo_quant_step(&k, mlo_f32_Add, k.in[2]);
    mlo_quant_step(&k, mlo_f32_Round, NULL);
    mlo_quant_by(&k, mlo_f32_Div, second ? mlo_scales_apart : mlo_bits_apart,
        second ? k.in[4] : k.in[3], second ? k.in[1] : k.in[4]);
    if (second) mlo_quant_clip(&k, k.in[5]);
    mlo_quant_step(&k, mode->loop, NULL);
    const mlo_array *zero = k.in[2];
    mlo_array *moved = second ? mlo_array_new(c->m, MLO_FLOAT, k.y->rank, k.y->dims) : NULL;
    /* the zero point in the new steps */
    if (moved) {
        mlo_quant_call z = k;
        const mlo_array *from = zero;
        z.y = moved;
        memset(moved->data, 0, (size_t)mlo_array_count(moved) * sizeof(float));
        mlo_quant_step(&z, mlo_f32_Add, from);
        mlo_quant_by(&z, mlo_f32_Div, mlo_scales_apart, k.in[4], k.in[1]);
        zero = moved;
    }
    mlo_quant_step(&k, mlo_f32_Sub, zero);
    mlo_quant_step(&k, mlo_f32_Mul, second ? k.in[4] : k.in[1]);
    mlo_array_free(c->m, moved);
    mlo_quant_close(&k);
    return mlo_failed(c->m);
}

/* ---- the table ------------------------------------------------------------ */

/* As all inputs broadcast. */
static int mlo_shape_quant(mlo_shapes *s) {
    mlo_form f = mlo_form_in(s, 0);
    for (size_t i = 1; i < s->n_in; i++) {
        mlo_form g = mlo_form_in(s, i);
        MLO_TRY(mlo_broadcast(s, &f, &g));
    }
    s->out[0] = f;
    return 0;
}

#define MLO_QONNX(domain)                                                \
    { domain ".Quant", mlo_shape_quant, mlo_quant_run, 4 },              \
        { domain ".IntQuant", mlo_shape_quant, mlo_quant_run, 4 },       \
        { domain ".BipolarQuant", mlo_shape_quant, mlo_bipolar_run, 2 }, \
        { domain ".Trunc", mlo_shape_quant, mlo_trunc_run, 5 }
static const mlo_op mlo_qonnx_ops[] = { MLO_QONNX("qonnx.custom_op.general"),
    MLO_QONNX("onnx.brevitas"), MLO_QONNX("finn.custom_op.general") };
enum { MLO_N_QONNX = sizeof mlo_qonnx_ops / sizeof *mlo_qonnx_ops };
