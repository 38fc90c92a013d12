/* expand_norm: layer norms and RMS norms, alone or behind a sum, become standard operators.
 *
 * in:  SkipLayerNormalization, SkipSimplifiedLayerNormalization, SimplifiedLayerNormalization, and
 *     LayerNormalization in a model of an older opset; for other expansions mlo_x_norm, a norm over the last dimension.
 * out: LayerNormalization or RMSNormalization where the opset has it, else what it is made of.
 *
 * invariant: statistics of 16-bit values are made in float, as ONNX's schema says.
 * example: SkipSimplifiedLayerNormalization(x, skip, g) becomes s = Add(x, skip); y = s / sqrt(mean s^2 + epsilon) g.
 * cost: O(1) a node.
 */

/* The opset from which on LayerNormalization is an operator of ONNX. */
enum { MLO_NORM_SINCE = 17 };

/* Statistics of 16-bit values are made in float. */
static const char *mlo_x_wide(mlo_expansion *x, const char *v) {
    return mlo_dtype_is_half(x->dtype) && *v ? mlo_x_cast(x, v, MLO_FLOAT) : v;
}
static const char *mlo_x_narrow(mlo_expansion *x, const char *v, mlo_dtype to) {
    return to == x->dtype ? v : mlo_x_cast(x, v, to);
}

/* v / sqrt(mean v^2 + epsilon), means over the last dimension */
static const char *mlo_x_normalized(mlo_expansion *x, const char *v, float epsilon) {
    const int64_t last = -1;
    const char *y = MLO_X(x, "Mul", v, v)
    , *c;
    y = mlo_x_axes(x, "ReduceMean", y, &last, 1, 18);
    c = mlo_x_number(x, (double)epsilon);
    y = MLO_X(x, "Add", y, c);
    y = MLO_X(x, "Sqrt", y);
    return MLO_X(x, "Div", v, y);
}
/* The norm over the last dimension, centred or not (then there is no beta); beta may be absent.
 * One operator where the opset has it. */
static const char *mlo_x_norm(mlo_expansion *x, const char *v, const char *gamma, const char *beta,
    float epsilon, int centred) {
    const int64_t last = -1;
    if (x->opset >= (centred ? MLO_NORM_SINCE : 23)) {
        const char *y = centred ? MLO_X(x, "LayerNormalization", v, gamma, beta)
                                : MLO_X(x, "RMSNormalization", v, gamma);
                                mlo_x_int(x, "axis", -1);
                                mlo_x_float(x, "epsilon", epsilon);
                                return y;
    }
    mlo_dtype narrow = x->dtype;
    v = mlo_x_wide(x, v);
    gamma = mlo_x_wide(x, gamma);
    beta = mlo_x_wide(x, beta);
    if (mlo_dtype_is_half(x->dtype)) x->dtype = MLO_FLOAT;
    if (centred) {
        const char *mean = mlo_x_axes(x, "ReduceMean", v, &last, 1, 18);
        v = MLO_X(x, "Sub", v, mean);
    }
    v = mlo_x_normalized(x, v, epsilon);
    v = MLO_X(x, "Mul", v, gamma);
    v = mlo_x_plus(x, v, beta);
    v = mlo_x_narrow(x, v, narrow);
    x->dtype = narrow;
    return v;
}

static int mlo_x_is_product(const mlo_expansion *x, size_t i) {
    return mlo_is(mlo_value_of(x->g, mlo_x_in(x, i))->producer, "MatMul");
}
/* Skip(Simplified)LayerNormalization(x, skip, gamma[, beta], bias): norm(x + skip + bias); output
 * 3 is the sum. The bias is that of the product which is one of the two: it goes back there, so
 * that a layer where a tool did not fuse it looks the same. */
static void mlo_expand_skip_norm(mlo_expansion *x) {
    int centred = mlo_eq(x->n->op, "SkipLayerNormalization");
    if (mlo_x_wanted(x, 1) || mlo_x_wanted(x, 2)) mlo_x_stay(x, "its mean or inv_std_var is used");
    size_t biased = mlo_x_is_product(x, 1) && !mlo_x_is_product(x, 0);
    const char *sum = mlo_x_plus(x, mlo_x_in(x, biased), mlo_x_in(x, centred ? 4 : 3)), *y;
    sum = biased ? MLO_X(x, "Add", mlo_x_in(x, 0), sum) : MLO_X(x, "Add", sum, mlo_x_in(x, 1));
    y = mlo_x_norm(x, sum, mlo_x_in(x, 2), centred ? mlo_x_in(x, 3) : "",
        mlo_float(x->n, "epsilon", 1e-12f), centred);
    mlo_x_out(x, 0, y);
    if (mlo_x_wanted(x, 3)) mlo_x_out(x, 3, sum);
}

/* SimplifiedLayerNormalization(x, scale), which ONNX Runtime puts into the standard domain:
 * RMSNormalization before there was one. */
static void mlo_expand_rms(mlo_expansion *x) {
    int64_t axis = mlo_int(x->n, "axis", -1);
    if (mlo_x_wanted(x, 1)) mlo_x_stay(x, "its inv_std_var is used");
    if (axis != -1 && axis != mlo_x_rank(x, 0) - 1)
        mlo_x_stay(x, "axis %lld is not known to be the last", (long long)axis);
    if (x->dtype != mlo_x_form(x, 1).dtype)
        mlo_x_stay(x, "x is %s, scale is %s", mlo_dtype_name(x->dtype),
            mlo_dtype_name(mlo_x_form(x, 1).dtype));
    mlo_x_out(x, 0,
        mlo_x_norm(x, mlo_x_in(x, 0), mlo_x_in(x, 1), "", mlo_float(x->n, "epsilon", 1e-5f), 0));
}

/* LayerNormalization(x, scale[, bias]) over the last dimension, which ONNX Runtime puts into models of opsets that have
 * none yet: spelled as they do, as what it fused in other places is. */
static void mlo_expand_early_norm(mlo_expansion *x) {
    const char *beta = x->n->n_input > 2 ? mlo_x_in(x, 2) : "";
    mlo_x_out(x, 0,
        mlo_x_norm(x, mlo_x_in(x, 0), mlo_x_in(x, 1), beta, mlo_float(x->n, "epsilon", 1e-5f), 1));
}

static int mlo_x_is_early_norm(mlo_expansion *x) {
    const int64_t axis = mlo_int(x->n, "axis", -1);
    return x->opset < MLO_NORM_SINCE && !mlo_x_wanted(x, 1) && !mlo_x_wanted(x, 2)
        && (axis == -1 || axis == mlo_x_rank(x, 0) - 1)
        && mlo_x_form(x, 0).dtype == mlo_x_form(x, 1).dtype;
}
