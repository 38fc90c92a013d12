/* real: operators of floats as C has them, number by number and as elements move: each to its steps.
 *
 * in:  a node of a network whose values have the model's own types (--whole), its operands' values.
 * out: the steps that make its results, or views where nothing is to be done.
 *
 * What a number becomes is said in exact/real.c, which mlo's own evaluation is compiled with; a node's floats
 * (alpha, bounds) are parameters like others. Whole numbers and truth values go by 64-bit functions beside those.
 *
 * invariant: the steps compute, in the same order, what mlo run does.
 * example: Gelu: mlo_float_gelu_each_f32_f32(&grid, x, x, x, y, NULL).
 * cost: O(nodes).
 */

/* A fixed number. */
static mlo_flat_value *mlo_float_constant(mlo_flat *f, float number) {
    mlo_flat_value *v = mlo_flat_new(f, NULL);
    mlo_array a = { NULL, MLO_FLOAT, 0, { 0 }, NULL };
    a.data = &number;
    if (!v || mlo_flat_numbers(f, v, &a)) return NULL;
    v->fixed = 1;
    return v;
}

/* y = exact(x ..), broadcast; p: the node's whole numbers, or none. */
static int mlo_float_each_to(mlo_flat *f, mlo_flat_value *y, const char *exact,
    mlo_flat_value *const *x, int n, const int64_t *p) {
    if (!y->dtype) return mlo_flat_refuse(f, "results of such a type");
    for (int k = 0; k < n; k++)
        if (!x[k]) return mlo_flat_refuse(f, "a missing operand");
    return mlo_flat_each(f, y, exact, x, n, p);
}
static int mlo_float_each(
    mlo_flat *f, const char *exact, mlo_flat_value *const *x, int n, const int64_t *p) {
    mlo_flat_value *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    return y ? mlo_float_each_to(f, y, exact, x, n, p) : mlo_failed(f->m);
}

/* ---- number by number ------------------------------------------------------------------------ */

typedef struct {
    const char *op;
    int operands; /* 0: as many as there are, from left to right */
    const char *real; /* of floats; NULL: there is none */
    const char *whole; /* of whole numbers and truth values */
    const char *attr[2]; /* floats of the node, behind the operands */
    float otherwise[2];
} mlo_float_number;

static const mlo_float_number mlo_float_numbers[] = {
    { "Abs", 1, "mlo_real_abs", "mlo_whole_abs", { NULL }, { 0 } },
    { "Ceil", 1, "mlo_real_ceil", NULL, { NULL }, { 0 } },
    { "Celu", 1, "mlo_real_celu", NULL, { "alpha" }, { 1 } },
    { "Cos", 1, "mlo_real_cos", NULL, { NULL }, { 0 } },
    { "Elu", 1, "mlo_real_elu", NULL, { "alpha" }, { 1 } },
    { "Erf", 1, "mlo_real_erf", NULL, { NULL }, { 0 } },
    { "Exp", 1, "mlo_real_exp", NULL, { NULL }, { 0 } },
    { "Floor", 1, "mlo_real_floor", NULL, { NULL }, { 0 } },
    { "HardSigmoid", 1, "mlo_real_hard_sigmoid", NULL, { "alpha", "beta" }, { 0.2f, 0.5f } },
    { "HardSwish", 1, "mlo_real_hard_swish", NULL, { NULL }, { 0 } },
    { "LeakyRelu", 1, "mlo_real_leaky", NULL, { "alpha" }, { 0.01f } },
    { "Log", 1, "mlo_real_log", NULL, { NULL }, { 0 } },
    { "Mish", 1, "mlo_real_mish", NULL, { NULL }, { 0 } },
    { "Neg", 1, "mlo_real_neg", "mlo_whole_neg", { NULL }, { 0 } },
    { "Reciprocal", 1, "mlo_real_reciprocal", NULL, { NULL }, { 0 } },
    { "Relu", 1, "mlo_real_relu", NULL, { NULL }, { 0 } },
    { "Round", 1, "mlo_real_rint", NULL, { NULL }, { 0 } },
    { "Selu", 1, "mlo_real_selu", NULL, { "alpha", "gamma" },
        { 1.67326319217681884765625f, 1.05070102214813232421875f } },
    { "Shrink", 1, "mlo_real_shrink", NULL, { "lambd", "bias" }, { 0.5f, 0 } },
    { "Sigmoid", 1, "mlo_real_sigmoid", NULL, { NULL }, { 0 } },
    { "Sign", 1, "mlo_real_sign", "mlo_whole_sign", { NULL }, { 0 } },
    { "Sin", 1, "mlo_real_sin", NULL, { NULL }, { 0 } },
    { "Softplus", 1, "mlo_real_softplus", NULL, { NULL }, { 0 } },
    { "Softsign", 1, "mlo_real_softsign", NULL, { NULL }, { 0 } },
    { "Sqrt", 1, "mlo_real_sqrt", NULL, { NULL }, { 0 } },
    { "Swish", 1, "mlo_real_swish", NULL, { "alpha" }, { 1 } },
    { "Tanh", 1, "mlo_real_tanh", NULL, { NULL }, { 0 } },
    { "ThresholdedRelu", 1, "mlo_real_thresholded", NULL, { "alpha" }, { 1 } },
    { "IsNaN", 1, "mlo_real_is_nan", NULL, { NULL }, { 0 } },
    { "Not", 1, NULL, "mlo_whole_not", { NULL }, { 0 } },
    { "Add", 2, "mlo_real_sum", "mlo_whole_sum", { NULL }, { 0 } },
    { "Sub", 2, "mlo_real_difference", "mlo_whole_difference", { NULL }, { 0 } },
    { "Mul", 2, "mlo_real_product", "mlo_whole_product", { NULL }, { 0 } },
    { "Div", 2, "mlo_real_quotient", "mlo_whole_quotient", { NULL }, { 0 } },
    { "Mod", 2, NULL, "mlo_whole_rest", { NULL }, { 0 } },
    { "Sum", 0, "mlo_real_sum", NULL, { NULL }, { 0 } },
    { "Max", 0, "mlo_real_larger", "mlo_whole_larger", { NULL }, { 0 } },
    { "Min", 0, "mlo_real_smaller", "mlo_whole_smaller", { NULL }, { 0 } },
    { "Pow", 2, "mlo_real_power", NULL, { NULL }, { 0 } },
    { "PRelu", 2, "mlo_real_prelu", NULL, { NULL }, { 0 } },
    { "And", 2, NULL, "mlo_whole_and", { NULL }, { 0 } },
    { "Or", 2, NULL, "mlo_whole_or", { NULL }, { 0 } },
    { "Xor", 2, NULL, "mlo_whole_xor", { NULL }, { 0 } },
    { "Equal", 2, "mlo_real_equal", "mlo_whole_equal", { NULL }, { 0 } },
    { "Less", 2, "mlo_real_less", "mlo_whole_less", { NULL }, { 0 } },
    { "LessOrEqual", 2, "mlo_real_less_equal", "mlo_whole_less_equal", { NULL }, { 0 } },
};

static int mlo_float_number_steps(mlo_flat *f, const mlo_float_number *o) {
    mlo_flat_value *x[MLO_FLAT_EACH] = { NULL };
    const size_t n = o->operands ? (size_t)o->operands : f->node->n_input;
    int k = 0;
    for (size_t i = 0; i < n && i < 2; i++) x[k++] = mlo_flat_in(f, i);
    const int real = x[0] && x[0]->dtype == MLO_FLOAT;
    const char *exact = real ? o->real : o->whole;
    if (!exact) return mlo_flat_refuse(f, real ? "this operator of floats" : "it of such a type");
    if (mlo_is(f->node, "Mod") && mlo_int(f->node, "fmod", 0))
        return mlo_flat_refuse(f, "a rest with the sign of what is divided");
    for (int i = 0; i < 2 && o->attr[i]; i++)
        if (!(x[k++] = mlo_float_constant(f, mlo_float(f->node, o->attr[i], o->otherwise[i]))))
            return mlo_failed(f->m);
    if (n == 1 && !o->operands) exact = real ? "mlo_real_same" : "mlo_whole_same";
    MLO_TRY(mlo_float_each(f, exact, x, k, NULL));
    for (size_t i = 2; i < n; i++) {
        mlo_flat_value *y = mlo_flat_of(f, f->node->output[0]);
        MLO_TRY(
            mlo_float_each(f, exact, MLO_ITEMS(mlo_flat_value *, y, mlo_flat_in(f, i)), 2, NULL));
    }
    return 0;
}

/* The same the other way round. */
static int mlo_float_swapped(mlo_flat *f, const char *real, const char *whole) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *y = mlo_flat_in(f, 1);
    return mlo_float_each(
        f, x && x->dtype == MLO_FLOAT ? real : whole, MLO_ITEMS(mlo_flat_value *, y, x), 2, NULL);
}
static int mlo_float_greater(mlo_flat *f) {
    return mlo_float_swapped(f, "mlo_real_less", "mlo_whole_less");
}
static int mlo_float_greater_equal(mlo_flat *f) {
    return mlo_float_swapped(f, "mlo_real_less_equal", "mlo_whole_less_equal");
}
static int mlo_float_gelu(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    return mlo_float_each(f,
        mlo_string_is(f->node, "approximate", "tanh", 0) ? "mlo_real_gelu_tanh" : "mlo_real_gelu",
        &x, 1, NULL);
}
static int mlo_float_where(mlo_flat *f) {
    mlo_flat_value *x[3];
    for (size_t k = 0; k < 3; k++) x[k] = mlo_flat_in(f, k);
    return mlo_float_each(
        f, x[1] && x[1]->dtype == MLO_FLOAT ? "mlo_real_chosen" : "mlo_whole_chosen", x, 3, NULL);
}

/* Bounds are operands, or attributes (opset < 11); either may be missing. */
static int mlo_float_clip(mlo_flat *f) {
    static const char *const names[] = { "min", "max" };
    mlo_flat_value *x = mlo_flat_in(f, 0);
    const int real = x && x->dtype == MLO_FLOAT;
    const char *const exact[] = { real ? "mlo_real_larger" : "mlo_whole_larger",
        real ? "mlo_real_smaller" : "mlo_whole_smaller" };
    int any = 0;
    for (size_t k = 0; k < 2; k++) {
        const mlo_attr *a = mlo_attr_of(f->node, names[k]);
        mlo_flat_value *bound = a && real ? mlo_float_constant(f, a->f) : mlo_flat_in(f, k + 1);
        if (!bound) continue;
        MLO_TRY(mlo_float_each(f, exact[k], MLO_ITEMS(mlo_flat_value *, x, bound), 2, NULL));
        x = mlo_flat_of(f, f->node->output[0]);
        any = 1;
    }
    return any ? 0 : mlo_flat_reshape(f);
}

/* A truth value is "not zero". */
static int mlo_float_cast(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    const mlo_flat_value *like = mlo_is(f->node, "CastLike") ? mlo_flat_in(f, 1) : NULL;
    if (!x || !y) return mlo_flat_refuse(f, "a missing operand");
    if (like && like->dtype == MLO_UINT8) return mlo_flat_refuse(f, "a cast to such a type");
    const int from = x->dtype == MLO_FLOAT, to = y->dtype == MLO_FLOAT;
    const int truth = !like && mlo_int(f->node, "to", MLO_FLOAT) == MLO_BOOL;
    if (x->dtype == y->dtype && !truth && !x->fixed) return mlo_flat_view(f, x, 0);
    return mlo_float_each(f,
        truth      ? from ? "mlo_real_is" : "mlo_whole_is"
            : to   ? "mlo_real_same"
            : from ? "mlo_real_whole"
                   : "mlo_whole_same",
        &x, 1, NULL);
}

/* ---- to integers and back ------------------------------------------------------------------- */

static int mlo_float_quantize(mlo_flat *f) {
    int64_t p[MLO_DIALECT_NUMBERS] = { mlo_kernel_low(f->node), mlo_kernel_high(f->node) };
    return mlo_float_each(f, "mlo_real_steps",
        MLO_ITEMS(mlo_flat_value *, mlo_flat_in(f, 0), mlo_flat_in(f, 1)), 2, p);
}
static int mlo_float_dequantize(mlo_flat *f) {
    return mlo_float_each(f, "mlo_real_product",
        MLO_ITEMS(mlo_flat_value *, mlo_flat_in(f, 0), mlo_flat_in(f, 1)), 2, NULL);
}

/* A scale or a zero along one axis, as it broadcasts; NULL, and refused: of blocks. */
static mlo_flat_value *mlo_float_along(mlo_flat *f, const mlo_flat_value *x, mlo_flat_value *v) {
    mlo_flat_value *y = v && v->fixed ? mlo_flat_new(f, NULL) : NULL;
    int64_t dims[MLO_MAX_RANK], axis = mlo_int(f->node, "axis", 1);
    if (v && v->count == 1) return v;
    if (axis < 0) axis += x->rank;
    if (!y || v->rank != 1 || axis < 0 || axis >= x->rank || v->count != x->dims[axis]) {
        mlo_flat_refuse(f, "scales of blocks, or such that are not fixed");
        return NULL;
    }
    *y = *v;
    y->of = y;
    y->name = NULL;
    y->parameter = MLO_FLAT_NOWHERE;
    for (int i = 0; i < x->rank; i++) dims[i] = i == axis ? v->count : 1;
    mlo_flat_form(y, x->rank, dims);
    return y;
}
static int mlo_float_linear(mlo_flat *f, const char *exact, const int64_t *p) {
    mlo_flat_value *x[MLO_FLAT_EACH] = { mlo_flat_in(f, 0), NULL, NULL };
    if (!x[0] || !mlo_flat_in(f, 1)) return mlo_flat_refuse(f, "a missing operand");
    x[1] = mlo_float_along(f, x[0], mlo_flat_in(f, 1));
    x[2] = !x[1]            ? NULL
        : mlo_flat_in(f, 2) ? mlo_float_along(f, x[0], mlo_flat_in(f, 2))
                            : mlo_float_constant(f, 0);
    return x[2] ? mlo_float_each(f, exact, x, 3, p) : mlo_failed(f->m);
}
static int mlo_float_quantize_linear(mlo_flat *f) {
    const mlo_flat_value *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    if (!y || y->dtype == MLO_FLOAT || !y->dtype)
        return mlo_flat_refuse(f, "integers of such a type");
    const mlo_interval ends = mlo_flat_all(y->dtype);
    const int64_t p[MLO_DIALECT_NUMBERS] = { ends.lo, ends.hi };
    return mlo_float_linear(f, "mlo_real_steps_from", p);
}
static int mlo_float_dequantize_linear(mlo_flat *f) {
    return mlo_float_linear(f, "mlo_real_from_steps", NULL);
}

/* ---- elements that move ------------------------------------------------------------------------ */

static int mlo_float_expand(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    int64_t own[MLO_MAX_RANK], step[MLO_MAX_RANK] = { 0 };
    if (!x || !y) return mlo_flat_refuse(f, "a missing operand");
    mlo_steps(x->rank, x->dims, own);
    for (int i = 0; i < x->rank; i++)
        if (x->dims[i] > 1) step[y->rank - x->rank + i] = own[i];
    return mlo_flat_taken(f, x, 0, step);
}
static int mlo_float_split(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    int64_t own[MLO_MAX_RANK], axis = mlo_int(f->node, "axis", 0), at = 0;
    if (!x) return mlo_flat_refuse(f, "a missing operand");
    if (axis < 0) axis += x->rank;
    mlo_steps(x->rank, x->dims, own);
    for (f->output = 0; f->output < f->node->n_output; f->output++) {
        const mlo_flat_value *y = mlo_flat_of(f, f->node->output[f->output]);
        if (!y || !y->rank) return mlo_flat_refuse(f, "a part without a name");
        if (y->count) MLO_TRY(mlo_flat_taken(f, x, at * own[axis], own));
        at += y->dims[axis];
    }
    f->output = 0;
    return 0;
}

/* What is around is filled first. */
static int mlo_float_pad(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *with = mlo_flat_in(f, 2);
    mlo_flat_value *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    int64_t pads[2 * MLO_MAX_RANK], own[MLO_MAX_RANK], at = 0;
    if (!x || !y) return mlo_flat_refuse(f, "a missing operand");
    if (!mlo_string_is(f->node, "mode", "constant", 1))
        return mlo_flat_refuse(f, "a mode that is not constant");
    if (mlo_flat_ints(f, "pads", 1, pads) != 2 * x->rank || mlo_flat_in(f, 3))
        return mlo_flat_refuse(f, "pads that are not fixed, or axes");
    mlo_steps(y->rank, y->dims, own);
    for (int i = 0; i < x->rank; i++) {
        if (pads[i] < 0 || pads[x->rank + i] < 0) return mlo_flat_refuse(f, "pads that cut");
        at += pads[i] * own[i];
    }
    if (!with) with = mlo_float_constant(f, mlo_float(f->node, "value", 0));
    MLO_TRY(mlo_float_each(
        f, x->dtype == MLO_FLOAT ? "mlo_real_same" : "mlo_whole_same", &with, 1, NULL));
    mlo_steps(x->rank, x->dims, own);
    return mlo_flat_move(f, x, 0, own, y, at, x->rank, x->dims);
}

/* Places of an axis; one that is fixed is a slice. */
static int mlo_float_gather(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *index = mlo_flat_in(f, 1);
    int64_t size[2] = { 1, 1 }, axis = mlo_int(f->node, "axis", 0);
    if (!x || !index) return mlo_flat_refuse(f, "a missing operand");
    if (index->fixed && index->count == 1 && index->rank < 2 && !x->fixed)
        return mlo_flat_gather(f);
    if (axis < 0) axis += x->rank;
    for (int i = 0; i < x->rank; i++)
        if (i != axis) size[i > axis] *= x->dims[i];
    mlo_flat_step *s = mlo_flat_step_new(
        f, "c/take.c", "mlo_take", mlo_flat_result(f, mlo_from_to(0, 0), 0));
    if (!s) return mlo_failed(f->m);
    s->fails = !index->fixed;
    s->before = mlo_format(f->m, "%lld, %lld, %lld, %lld, ", (long long)size[0],
        (long long)x->dims[axis], (long long)index->count, (long long)size[1]);
    return mlo_flat_operand(f, s, x) ? mlo_failed(f->m) : mlo_flat_operand(f, s, index);
}

/* Places of several axes, in front of what is taken as a whole. */
static int mlo_float_gather_nd(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *index = mlo_flat_in(f, 1);
    const int64_t batch = mlo_int(f->node, "batch_dims", 0);
    int64_t size[4] = { 1, 1, 1, 1 }, own[MLO_MAX_RANK], step[4] = { 0 }, outer = 1;
    if (!x || !index || !index->rank) return mlo_flat_refuse(f, "a missing operand");
    const int64_t n = index->dims[index->rank - 1];
    if (n < 1 || n > 4) return mlo_flat_refuse(f, "places of more than four axes");
    mlo_steps(x->rank, x->dims, own);
    for (int i = 0; i < batch; i++) outer *= x->dims[i];
    for (int i = 0; i < n; i++) {
        size[i] = x->dims[batch + i];
        step[i] = own[batch + i];
    }
    mlo_flat_step *s = mlo_flat_step_new(
        f, "c/take_nd.c", "mlo_take_nd", mlo_flat_result(f, mlo_from_to(0, 0), 0));
    if (!s) return mlo_failed(f->m);
    s->fails = !index->fixed;
    s->before = mlo_format(f->m, "&(const mlo_takes){ %lld, %lld, %lld, %lld, %lld, %s, %s }, ",
        (long long)outer, (long long)(x->count / outer), (long long)(index->count / n / outer),
        (long long)n, (long long)step[n - 1], mlo_flat_list(f->m, size, 4),
        mlo_flat_list(f->m, step, 4));
    return mlo_flat_operand(f, s, x) ? mlo_failed(f->m) : mlo_flat_operand(f, s, index);
}
