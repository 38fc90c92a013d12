/* expand: replaces fused operators, as ONNX Runtime and its tools write them, and ONNX's Attention,
 * by the standard operators that they stand for.
 *
 * in:  an indexed model with inferred types and shapes.
 * out: the same function in standard operators of the model's own opset; the index, types and
 *     shapes are stale.
 *
 * To add an operator: its expansion (short, with the node builder below), one line in the table, a
 * case in tests/test_survival.py.
 *
 * invariant: an expansion computes exactly what ONNX Runtime's operator documentation says
 *     (onnxruntime, docs/ContribOperators.md), or the function in ONNX's schema, in the same
 *     element types. A node for which that cannot be promised (it has an attribute or input that is
 *     not handled) stays as it is, and a warning gives its name and the reason. It still rolls,
 *     since roll compares operators by structure. Every node made gets the metadata.
 * example: SkipLayerNormalization(x, skip, g, b) becomes y = Add(x, skip); LayerNormalization(y, g,
 *     b).
 * cost: O(fused nodes). Weights are never copied: packed ones go through a Split, which is an
 *     expression over a parameter.
 */
typedef struct {
    /* the fused node */
    mlo *m;
    mlo_graph *g;
    mlo_node *n;
    /* of the first input: what it computes in */
    int opset;
    mlo_dtype dtype;
    /* the nodes that replace it, in order */
    mlo_node **made;
    size_t n_made;
    const char *why; /* why it stays, NULL when it does not */
    size_t number; /* of the last name made */
} mlo_expansion;

/* ---- the node builder --------------------------------------------------------
 * Values are names. A builder that fails, or whose node stays, gives ""; every builder takes it
 * and hands it on, so expansions need no checks. Do not nest two builders in one call: C leaves
 * open which comes first, and they number names. */

static int mlo_x_stopped(const mlo_expansion *x) { return x->why || x->m->error.code; }

static void mlo_x_stay(mlo_expansion *x, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!x->why) x->why = mlo_intern(x->m, text);
}

/* A name that nothing has, and now is taken: that of the node's first output with a few letters
 * and a number. */
static const char *mlo_x_name(mlo_expansion *x, const char *what) {
    for (size_t i = x->n_made;; i++) {
        const char *name = mlo_x_stopped(x)
            ? NULL
            : mlo_format(x->m, "%s_%s%zu", x->n->output[0], what, i);
        if (!name) return "";
        x->number = i;
        if (!mlo_value_of(x->g, name)) return mlo_index_value(x->m, x->g, name) ? name : "";
    }
}

static const char *mlo_x_in(const mlo_expansion *x, size_t i) {
    return mlo_has_input(x->n, i) ? x->n->input[i] : "";
}
static mlo_form mlo_x_form(const mlo_expansion *x, size_t i) {
    return mlo_form_of(mlo_value_of(x->g, mlo_x_in(x, i)));
}
static int mlo_x_rank(const mlo_expansion *x, size_t i) {
    mlo_form f = mlo_x_form(x, i);
    return f.rank;
}
/* Dimension `axis` (from the end when negative) of input i, -1 when unknown. */
static int64_t mlo_x_dim(const mlo_expansion *x, size_t i, int axis) {
    mlo_form f = mlo_x_form(x, i);
    if (axis < 0) axis += f.rank;
    return axis >= 0 && axis < f.rank ? f.dims[axis] : -1;
}
/* Does anybody use output i? */
static int mlo_x_wanted(const mlo_expansion *x, size_t i) {
    const mlo_value *v = i < x->n->n_output ? mlo_value_of(x->g, x->n->output[i]) : NULL;
    return v && v->n_uses;
}

/* A node with these inputs; the name of its output. */
static const char *mlo_x_node(
    mlo_expansion *x, const char *op, const char *const *in, size_t n_in) {
    mlo *m = x->m;
    const char *out = mlo_x_name(x, op);
    mlo_node *n = *out
        ? mlo_node_new(m, op, mlo_format(m, "%s_%s%zu", mlo_node_name(x->n), op, x->number))
        : NULL;
    if (!n || mlo_node_output(m, n, out) || !MLO_PUSH(m, x->made, x->n_made, n)) return "";
    while (n_in && !*in[n_in - 1]) n_in--;
    for (size_t i = 0; i < n_in; i++)
        if (mlo_node_input(m, n, in[i])) return "";
    for (size_t i = 0; i < x->n->n_meta; i++)
        if (!MLO_PUSH(m, n->meta, n->n_meta, x->n->meta[i])) return "";
    return out;
}
#define MLO_X(x, op, ...)                                       \
    mlo_x_node((x), (op), (const char *const[]){ __VA_ARGS__ }, \
        sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

/* The node made last, to give it attributes and outputs; NULL when there is none. */
static mlo_node *mlo_x_last(const mlo_expansion *x) {
    return mlo_x_stopped(x) || !x->n_made ? NULL : x->made[x->n_made - 1];
}
static void mlo_x_int(mlo_expansion *x, const char *name, int64_t i) {
    mlo_attr_int(x->m, mlo_x_last(x), name, i);
}
static void mlo_x_ints(mlo_expansion *x, const char *name, const int64_t *list, size_t n) {
    mlo_attr_ints(x->m, mlo_x_last(x), name, list, n);
}
static void mlo_x_float(mlo_expansion *x, const char *name, float f) {
    mlo_attr *a = mlo_attr_new(x->m, mlo_x_last(x), name, MLO_ATTR_FLOAT);
    if (a) {
        a->f = f;
        a->has |= MLO_HAS(2);
    }
}
static void mlo_x_text(mlo_expansion *x, const char *name, const char *text) {
    mlo_attr *a = mlo_attr_new(x->m, mlo_x_last(x), name, MLO_ATTR_STRING);
    if (a) {
        a->s.data = text;
        a->s.n = strlen(text);
    }
}

/* One more output of the node made last. */
static const char *mlo_x_output(mlo_expansion *x) {
    const char *name = mlo_x_name(x, "part");
    return *name && !mlo_node_output(x->m, mlo_x_last(x), name) ? name : "";
}

/* A new initializer. */
static const char *mlo_x_tensor(
    mlo_expansion *x, mlo_dtype dtype, int rank, int64_t n, const int64_t *ints, double number) {
    mlo *m = x->m;
    const char *name = mlo_x_name(x, "c");
    mlo_array *a = *name ? mlo_array_new(m, dtype, rank, &n) : NULL;
    if (!a) return "";
    if (ints)
        mlo_convert(dtype, a->data, MLO_INT64, ints, (size_t)n);
    else
        mlo_convert(dtype, a->data, MLO_DOUBLE, &number, 1);
    mlo_tensor *t = mlo_tensor_from(m, name, a);
    mlo_array_free(m, a);
    return mlo_graph_init(m, x->g, t) ? "" : t->name;
}
static const char *mlo_x_list(mlo_expansion *x, const int64_t *list, size_t n) {
    return mlo_x_tensor(x, MLO_INT64, 1, (int64_t)n, list, 0);
}
static const char *mlo_x_whole(mlo_expansion *x, int64_t v) {
    return mlo_x_tensor(x, MLO_INT64, 0, 1, &v, 0);
}
static const char *mlo_x_number(mlo_expansion *x, double v) {
    return mlo_x_tensor(x, x->dtype, 0, 1, NULL, v);
}

static const char *mlo_x_cast(mlo_expansion *x, const char *v, mlo_dtype to) {
    const char *y = MLO_X(x, "Cast", v);
    mlo_x_int(x, "to", to);
    return y;
}
static const char *mlo_x_transpose(mlo_expansion *x, const char *v, const int64_t *perm, size_t n) {
    const char *y = MLO_X(x, "Transpose", v);
    mlo_x_ints(x, "perm", perm, n);
    return y;
}
static const char *mlo_x_reshape(mlo_expansion *x, const char *v, const int64_t *shape, size_t n) {
    const char *to = mlo_x_list(x, shape, n);
    return MLO_X(x, "Reshape", v, to);
}
/* Ops whose axes are an attribute before opset `since` and an input from there on. */
static const char *mlo_x_axes(
    mlo_expansion *x, const char *op, const char *v, const int64_t *axes, size_t n, int since) {
    const char *list = x->opset >= since ? mlo_x_list(x, axes, n) : "", *y = MLO_X(x, op, v, list);
    if (x->opset < since) mlo_x_ints(x, "axes", axes, n);
    return y;
}
static const char *mlo_x_unsqueeze(mlo_expansion *x, const char *v, const int64_t *axes, size_t n) {
    return mlo_x_axes(x, "Unsqueeze", v, axes, n, 13);
}
/* v cut into parts of these sizes. */
static void mlo_x_split(mlo_expansion *x, const char *v, int64_t axis, const int64_t *sizes,
    const char **part, size_t n) {
    const char *list = x->opset >= 13 ? mlo_x_list(x, sizes, n) : "";
    part[0] = MLO_X(x, "Split", v, list);
    mlo_x_int(x, "axis", axis);
    if (x->opset < 13) mlo_x_ints(x, "split", sizes, n);
    for (size_t i = 1; i < n; i++) part[i] = mlo_x_output(x);
}
/* v + w, or v when w is absent. */
static const char *mlo_x_plus(mlo_expansion *x, const char *v, const char *w) {
    return *w ? MLO_X(x, "Add", v, w) : v;
}

/* `value` is what output i is: the node that makes it makes it under that name. */
static void mlo_x_out(mlo_expansion *x, size_t i, const char *value) {
    const char *name = i < x->n->n_output ? x->n->output[i] : "";
    if (mlo_x_stopped(x) || !*name) return;
    for (size_t k = x->n_made; k--;)
        for (size_t o = 0; o < x->made[k]->n_output; o++)
            if (x->made[k]->output[o] == value) {
                x->made[k]->output[o] = name;
                for (k++; k < x->n_made; k++)
                    for (size_t j = 0; j < x->made[k]->n_input; j++)
                        if (x->made[k]->input[j] == value) x->made[k]->input[j] = name;
                return;
            }
    MLO_X(x, "Identity", value);
    if (mlo_x_last(x)) mlo_x_last(x)->output[0] = name;
}

/* ---- activations ---------------------------------------------------------- */

/* 0.5 v (1 + erf(v / sqrt 2)) */
static const char *mlo_x_gelu(mlo_expansion *x, const char *v) {
    if (x->opset >= 20) return MLO_X(x, "Gelu", v);
    const char *root = mlo_x_number(x, 1.4142135623730951), *y = MLO_X(x, "Div", v, root);
    y = MLO_X(x, "Erf", y);
    const char *one = mlo_x_number(x, 1), *half;
    y = MLO_X(x, "Add", y, one);
    y = MLO_X(x, "Mul", v, y);
    half = mlo_x_number(x, 0.5);
    return MLO_X(x, "Mul", y, half);
}
/* 0.5 v (1 + tanh(sqrt(2 / pi) (v + 0.044715 v^3))) */
static const char *mlo_x_gelu_tanh(mlo_expansion *x, const char *v) {
    if (x->opset >= 20) {
        const char *y = MLO_X(x, "Gelu", v);
        mlo_x_text(x, "approximate", "tanh");
        return y;
    }
    const char *y = MLO_X(x, "Mul", v, v)
    , *c;
    y = MLO_X(x, "Mul", y, v);
    c = mlo_x_number(x, 0.044715);
    y = MLO_X(x, "Mul", y, c);
    y = MLO_X(x, "Add", v, y);
    c = mlo_x_number(x, 0.79788456080286536);
    y = MLO_X(x, "Mul", y, c);
    y = MLO_X(x, "Tanh", y);
    c = mlo_x_number(x, 1);
    y = MLO_X(x, "Add", y, c);
    c = mlo_x_number(x, 0.5);
    y = MLO_X(x, "Mul", y, c);
    return MLO_X(x, "Mul", v, y);
}
static void mlo_expand_gelu(mlo_expansion *x) { /* Gelu(x), BiasGelu(x, bias) */
    const char *v = mlo_x_plus(x, mlo_x_in(x, 0), mlo_x_in(x, 1));
    mlo_x_out(x, 0, mlo_x_gelu(x, v));
}
static void mlo_expand_fast_gelu(mlo_expansion *x) { /* FastGelu(x, bias) */
    const char *v = mlo_x_plus(x, mlo_x_in(x, 0), mlo_x_in(x, 1));
    mlo_x_out(x, 0, mlo_x_gelu_tanh(x, v));
}
static void mlo_expand_quick_gelu(mlo_expansion *x) { /* x sigmoid(alpha x) */
    float alpha = mlo_float(x->n, "alpha", 1.702f);
    const char *v = mlo_x_in(x, 0), *y = v, *c;
    if (alpha < 1 || alpha > 1) {
        c = mlo_x_number(x, (double)alpha);
        y = MLO_X(x, "Mul", v, c);
    }
    y = MLO_X(x, "Sigmoid", y);
    mlo_x_out(x, 0, MLO_X(x, "Mul", v, y));
}

/* ---- norms ---------------------------------------------------------------- */

static int mlo_x_half(const mlo_expansion *x) {
    return x->dtype == MLO_FLOAT16 || x->dtype == MLO_BFLOAT16;
}
/* Statistics of 16-bit values are made in float. */
static const char *mlo_x_wide(mlo_expansion *x, const char *v) {
    return mlo_x_half(x) && *v ? mlo_x_cast(x, v, MLO_FLOAT) : v;
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
    if (x->opset >= (centred ? 17 : 23)) {
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
    if (mlo_x_half(x)) x->dtype = MLO_FLOAT;
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
    const mlo_value *v = mlo_value_of(x->g, mlo_x_in(x, i));
    return v && mlo_is(v->producer, "MatMul");
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

/* ---- embeddings ----------------------------------------------------------- */

/* EmbedLayerNormalization(ids, segments, words, positions, segment table, gamma, beta, mask,
 * position ids) -> norm of the sum, length of the mask, the sum. Without position ids, positions
 * count from 0. */
static void mlo_expand_embed(mlo_expansion *x) {
    const int64_t zero = 0, one = 1, two = 2;
    x->dtype = mlo_x_form(x, 2).dtype;
    const char *words = MLO_X(x, "Gather", mlo_x_in(x, 2), mlo_x_in(x, 0))
    , *places, *sum, *y;
    if (*mlo_x_in(x, 8))
        places = MLO_X(x, "Gather", mlo_x_in(x, 3), mlo_x_in(x, 8));
    else {
        const char *from = mlo_x_list(x, &zero, 1);
        const char *shape = MLO_X(x, "Shape", mlo_x_in(x, 0));
        const char *at = mlo_x_list(x, &one, 1);
        const char *end = mlo_x_list(x, &two, 1);
        const char *length = MLO_X(x, "Slice", shape, at, end, from);
        places = MLO_X(x, "Slice", mlo_x_in(x, 3), from, length, from);
    }
    sum = MLO_X(x, "Add", words, places);
    if (*mlo_x_in(x, 1) && *mlo_x_in(x, 4)) {
        const char *segments = MLO_X(x, "Gather", mlo_x_in(x, 4), mlo_x_in(x, 1));
        sum = MLO_X(x, "Add", sum, segments);
    }
    y = mlo_x_norm(x, sum, mlo_x_in(x, 5), mlo_x_in(x, 6), mlo_float(x->n, "epsilon", 1e-12f), 1);
    mlo_x_out(x, 0, y);
    if (mlo_x_wanted(x, 2)) mlo_x_out(x, 2, sum);
    if (!mlo_x_wanted(x, 1)) return;
    if (*mlo_x_in(x, 7)) {
        y = mlo_x_axes(x, "ReduceSum", mlo_x_in(x, 7), &one, 1, 13);
        mlo_x_int(x, "keepdims", 0);
    } else {
        const char *shape = MLO_X(x, "Shape", mlo_x_in(x, 0));
        const char *from = mlo_x_list(x, &zero, 1);
        const char *to = mlo_x_list(x, &one, 1);
        const char *batch = MLO_X(x, "Slice", shape, from, to, from);
        y = mlo_x_tensor(x, MLO_INT32, 0, 1, &zero, 0);
        y = MLO_X(x, "Expand", y, batch);
    }
    mlo_x_out(x, 1, y);
}

/* ---- products ------------------------------------------------------------- */

/* v (input i) with its batch dimensions rotated and its last two swapped, as FusedMatMul asks for. */
static const char *mlo_x_operand(mlo_expansion *x, size_t i, int batch, int swap) {
    int64_t perm[MLO_MAX_RANK];
    int rank = mlo_x_rank(x, i);
    const char *v = mlo_x_in(x, i);
    if (!batch && !swap) return v;
    if (rank < 0) mlo_x_stay(x, "the rank of '%.100s' is unknown", v);
    if (rank < 2) return v;
    for (int k = 0; k < rank; k++) perm[k] = k;
    if (batch) {
        for (int k = 0; k < rank - 2; k++) perm[k] = k + 1;
        perm[rank - 2] = 0;
    }
    if (swap) {
        int64_t last = perm[rank - 1];
        perm[rank - 1] = perm[rank - 2];
        perm[rank - 2] = last;
    }
    return mlo_x_transpose(x, v, perm, (size_t)rank);
}
static void mlo_expand_fused_matmul(mlo_expansion *x) {
    float alpha = mlo_float(x->n, "alpha", 1);
    const char *a = mlo_x_operand(
        x, 0, mlo_int(x->n, "transBatchA", 0) != 0, mlo_int(x->n, "transA", 0) != 0);
    const char *b = mlo_x_operand(
        x, 1, mlo_int(x->n, "transBatchB", 0) != 0, mlo_int(x->n, "transB", 0) != 0);
    const char *y = MLO_X(x, "MatMul", a, b);
    if (alpha < 1 || alpha > 1) {
        const char *c = mlo_x_number(x, (double)alpha);
        y = MLO_X(x, "Mul", y, c);
    }
    mlo_x_out(x, 0, y);
}

/* The activation that a fused Gemm or Conv names, with its parameters (`given`: what there are) as
 * attributes; "" stays. */
static const char *mlo_x_activation(
    mlo_expansion *x, const char *v, const float *given, size_t n_given) {
    static const struct {
        const char *op, *attr[2];
    } known[] = { { "Relu", { NULL, NULL } }, { "Tanh", { NULL, NULL } },
        { "Sigmoid", { NULL, NULL } }, { "LeakyRelu", { "alpha", NULL } },
        { "HardSigmoid", { "alpha", "beta" } } };
    const mlo_attr *a = mlo_attr_of(x->n, "activation");
    if (!a || !a->s.n) return v;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].op) == a->s.n && !memcmp(known[i].op, a->s.data, a->s.n)) {
            const char *y = MLO_X(x, known[i].op, v);
            for (size_t k = 0; k < 2 && known[i].attr[k] && k < n_given; k++)
                mlo_x_float(x, known[i].attr[k], given[k]);
            return y;
        }
    mlo_x_stay(x, "its activation is %.*s", (int)(a->s.n < 60 ? a->s.n : 60), a->s.data);
    return v;
}
/* The standard operator inside: the fused node's own attributes but those of the activation. */
static const char *mlo_x_inner(
    mlo_expansion *x, const char *op, const char *const *in, size_t n_in) {
    const char *y = mlo_x_node(x, op, in, n_in);
    mlo_node *n = mlo_x_last(x);
    for (size_t i = 0; n && i < x->n->n_attr; i++)
        if (x->n->attr[i]->name && !mlo_starts(x->n->attr[i]->name, "activation")
            && !MLO_PUSH(x->m, n->attr, n->n_attr, x->n->attr[i]))
            break;
    return y;
}
static void mlo_expand_fused_gemm(mlo_expansion *x) {
    const char *const in[] = { mlo_x_in(x, 0), mlo_x_in(x, 1), mlo_x_in(x, 2) };
    float given[2];
    size_t n = 0;
    if (mlo_attr_of(x->n, "activation_alpha")) {
        given[n++] = mlo_float(x->n, "activation_alpha", 0);
        if (mlo_attr_of(x->n, "activation_beta"))
            given[n++] = mlo_float(x->n, "activation_beta", 0);
    }
    const char *y = mlo_x_inner(x, "Gemm", in, 3);
    mlo_x_out(x, 0, mlo_x_activation(x, y, given, n));
}
static void mlo_expand_fused_conv(mlo_expansion *x) { /* activation(Conv(x, w, b) + z) */
    const char *const in[] = { mlo_x_in(x, 0), mlo_x_in(x, 1), mlo_x_in(x, 2) };
    const mlo_attr *given = mlo_attr_of(x->n, "activation_params");
    const char *y = mlo_x_inner(x, "Conv", in, 3);
    y = mlo_x_plus(x, y, mlo_x_in(x, 3));
    mlo_x_out(
        x, 0, mlo_x_activation(x, y, given ? given->floats : NULL, given ? given->n_floats : 0));
}

/* (a - a_zero)(b - b_zero) a_scale b_scale + bias: integers multiplied, the sum scaled */
static void mlo_x_scaled_product(mlo_expansion *x, const char *a, const char *a_scale,
    const char *a_zero, size_t b, size_t b_scale, size_t b_zero, size_t bias) {
    const char *scale;
    const char *y = MLO_X(x, "MatMulInteger", a, mlo_x_in(x, b), a_zero, mlo_x_in(x, b_zero));
    y = mlo_x_cast(x, y, x->dtype);
    scale = MLO_X(x, "Mul", a_scale, mlo_x_in(x, b_scale));
    y = MLO_X(x, "Mul", y, scale);
    mlo_x_out(x, 0, mlo_x_plus(x, y, mlo_x_in(x, bias)));
}
/* MatMulIntegerToFloat(a, b, a_scale, b_scale, a_zero, b_zero, bias) */
static void mlo_expand_matmul_to_float(mlo_expansion *x) {
    x->dtype = mlo_x_form(x, 2).dtype;
    mlo_x_scaled_product(x, mlo_x_in(x, 0), mlo_x_in(x, 2), mlo_x_in(x, 4), 1, 3, 5, 6);
}
/* DynamicQuantizeMatMul(a, b, b_scale, b_zero, bias) */
static void mlo_expand_dynamic_matmul(mlo_expansion *x) {
    if (x->dtype != MLO_FLOAT)
        mlo_x_stay(x, "it quantizes %s, not float", mlo_dtype_name(x->dtype));
    const char *q = MLO_X(x, "DynamicQuantizeLinear", mlo_x_in(x, 0));
    const char *scale = mlo_x_output(x);
    const char *zero = mlo_x_output(x);
    mlo_x_scaled_product(x, q, scale, zero, 1, 2, 3, 4);
}

/* ---- attention ------------------------------------------------------------ */

/* mask, bias: which inputs they are. window: how far before itself a query of a causal one sees, -1:
 * without end */
typedef struct {
    const char *q, *k, *v;
    int64_t heads;
    double scale;
    size_t mask, bias;
    int causal;
    int64_t window;
} mlo_x_attention;
enum { MLO_X_NONE = 0xffff }; /* no input */

/* [B, S, heads x C] -> [B, heads, S, C] */
static const char *mlo_x_heads(mlo_expansion *x, const char *v, int64_t heads) {
    const int64_t shape[] = { 0, 0, heads, -1 }, perm[] = { 0, 2, 1, 3 };
    v = mlo_x_reshape(x, v, shape, 4);
    return mlo_x_transpose(x, v, perm, 4);
}
/* ... and back */
static const char *mlo_x_joined(mlo_expansion *x, const char *v) {
    const int64_t shape[] = { 0, 0, -1 }, perm[] = { 0, 2, 1, 3 };
    v = mlo_x_transpose(x, v, perm, 4);
    return mlo_x_reshape(x, v, shape, 3);
}

/* What keys that a mask closes get added: mask_filter_value; what later keys get: the lowest
 * number of the type. */
static double mlo_x_closed(const mlo_expansion *x) {
    return (double)mlo_float(x->n, "mask_filter_value", -10000.0f);
}
static double mlo_x_lowest(const mlo_expansion *x) {
    return x->dtype == MLO_FLOAT16 ? -65504
        : x->dtype == MLO_BFLOAT16 ? -3.3895313892515355e38
        : x->dtype == MLO_DOUBLE   ? -DBL_MAX
                                   : (double)-FLT_MAX;
}
/* 0 where `open`, `closed` elsewhere. */
static const char *mlo_x_filter(mlo_expansion *x, const char *open, double closed) {
    const char *zero = mlo_x_number(x, 0), *low = mlo_x_number(x, closed);
    return MLO_X(x, "Where", open, zero, low);
}

/* One size of a value as a scalar. */
static const char *mlo_x_size(mlo_expansion *x, const char *shape, int64_t axis) {
    const char *at = mlo_x_whole(x, axis);
    return MLO_X(x, "Gather", shape, at);
}
/* 0, 1, .. up to a size. */
static const char *mlo_x_range(mlo_expansion *x, const char *size) {
    const char *from = mlo_x_whole(x, 0), *step = mlo_x_whole(x, 1);
    return MLO_X(x, "Range", from, size, step);
}

/* [S, T]: may query s see key t? The last query sees the last key, and each of them so many before its
 * own place (-1: all). */
static const char *mlo_x_causal(mlo_expansion *x, const char *scores, int64_t window) {
    const int64_t column[] = { -1, 1 };
    const char *shape = MLO_X(x, "Shape", scores);
    const char *s = mlo_x_size(x, shape, 2);
    const char *t = mlo_x_size(x, shape, 3);
    const char *open;
    const char *past = MLO_X(x, "Sub", t, s);
    const char *rows = mlo_x_range(x, s);
    const char *columns = mlo_x_range(x, t);
    rows = MLO_X(x, "Add", rows, past);
    rows = mlo_x_reshape(x, rows, column, 2);
    open = MLO_X(x, "Greater", columns, rows);
    open = MLO_X(x, "Not", open);
    if (window < 0) return open;
    past = mlo_x_whole(x, window);
    rows = MLO_X(x, "Sub", rows, past);
    columns = MLO_X(x, "Greater", columns, rows);
    return MLO_X(x, "And", open, columns);
}

/* The key mask as what is added to scores, by its rank: [B] lengths, [2B] ends then starts, [B, T]
 * or [B, S, T] ones and zeros. */
static const char *mlo_x_mask(mlo_expansion *x, const char *scores, size_t i) {
    static const int64_t over_heads_and_queries[] = { 1, 2 };
    static const int64_t over_heads[] = { 1 };
    static const int64_t per_batch[] = { -1, 1, 1, 1 };
    const char *mask = mlo_x_in(x, i), *open, *c;
    int rank = mlo_x_rank(x, i);
    if (rank == 2 || rank == 3) {
        c = mlo_x_tensor(x, mlo_x_form(x, i).dtype, 0, 1, (const int64_t[]){ 0 }, 0);
        open = MLO_X(x, "Greater", mask, c);
        open = rank == 2 ? mlo_x_unsqueeze(x, open, over_heads_and_queries, 2)
                         : mlo_x_unsqueeze(x, open, over_heads, 1);
        return mlo_x_filter(x, open, mlo_x_closed(x));
    }
    int64_t batch = mlo_x_dim(x, 0, 0), n = mlo_x_dim(x, i, 0), halves[] = { batch, batch };
    if (rank != 1)
        mlo_x_stay(x, rank < 0 ? "the rank of its mask is unknown" : "its mask has rank %d", rank);
    else if (n < 0 || batch < 0)
        mlo_x_stay(x, "the batch or its mask's length is unknown; bind them with --dim");
    else if (n != batch && n - batch != batch)
        mlo_x_stay(x, "its mask of %lld elements does not fit a batch of %lld", (long long)n,
            (long long)batch);
    if (mlo_x_stopped(x)) return "";
    const char *part[2] = { mask, "" };
    const char *shape = MLO_X(x, "Shape", scores);
    const char *t = mlo_x_size(x, shape, 3);
    const char *keys = mlo_x_range(x, t);
    if (n != batch) mlo_x_split(x, mask, 0, halves, part, 2);
    for (int k = 0; k < 2 && *part[k]; k++) {
        part[k] = mlo_x_cast(x, part[k], MLO_INT64);
        part[k] = mlo_x_reshape(x, part[k], per_batch, 4);
    }
    open = MLO_X(x, "Less", keys, part[0]);
    if (*part[1]) {
        const char *early = MLO_X(x, "Less", keys, part[1]);
        early = MLO_X(x, "Not", early);
        open = MLO_X(x, "And", open, early);
    }
    return mlo_x_filter(x, open, mlo_x_closed(x));
}

/* softcap tanh(scores / softcap) */
static const char *mlo_x_capped(mlo_expansion *x, const char *scores) {
    float cap = mlo_float(x->n, "softcap", 0);
    if (!(cap > 0)) return scores;
    const char *c = mlo_x_number(x, (double)cap), *y = MLO_X(x, "Div", scores, c);
    y = MLO_X(x, "Tanh", y);
    return MLO_X(x, "Mul", y, c);
}

/* softmax(scale q k' + bias + mask) v, heads side by side: [B, S, heads x C]. q, k, v: [B, heads,
 * S or T, C]. */
static const char *mlo_x_attend(mlo_expansion *x, const mlo_x_attention *a) {
    const int64_t swap[] = { 0, 1, 3, 2 };
    const char *y;
    const char *k = mlo_x_transpose(x, a->k, swap, 4);
    const char *scores = MLO_X(x, "MatMul", a->q, k);
    const char *c = mlo_x_number(x, a->scale);
    const char *add = "";
    scores = mlo_x_capped(x, MLO_X(x, "Mul", scores, c));
    if (*mlo_x_in(x, a->mask)) add = mlo_x_mask(x, scores, a->mask);
    if (a->causal) {
        c = mlo_x_causal(x, scores, a->window);
        c = mlo_x_filter(x, c, mlo_x_lowest(x));
        add = *add ? MLO_X(x, "Add", add, c) : c;
    }
    /* the bias first: what is added to -10000 loses bits */
    y = mlo_x_plus(x, scores, mlo_x_in(x, a->bias));
    y = mlo_x_plus(x, y, add);
    y = MLO_X(x, "Softmax", y);
    mlo_x_int(x, "axis", -1);
    return mlo_x_joined(x, MLO_X(x, "MatMul", y, a->v));
}
/* What multiplies the scores: the attribute, or 1 / sqrt(channels of a head). */
static double mlo_x_scale(mlo_expansion *x, int64_t channels) {
    double scale = (double)mlo_float(x->n, "scale", 0);
    int64_t heads = mlo_int(x->n, "num_heads", 0);
    if (heads < 1 || channels < 1 || channels % heads) {
        mlo_x_stay(x, "%lld channels are not %lld heads", (long long)channels, (long long)heads);
        return 1;
    }
    return scale < 0 || scale > 0 ? scale : 1 / sqrt((double)(channels / heads));
}

/* Attention(x, weights [D, q + k + v], bias, mask, past [2, B, heads, P, C], attention bias) -> y,
 * present */
static void mlo_expand_attention(mlo_expansion *x) {
    const mlo_attr *sizes = mlo_attr_of(x->n, "qkv_hidden_sizes");
    int64_t third = mlo_x_dim(x, 1, 1) / 3;
    int64_t size[3] = { third, third, third };
    int64_t pair[] = { 1, 1 };
    int64_t first = 0;
    const char *w[3], *b[3] = { "", "", "" }, **part[3];
    if (mlo_int(x->n, "do_rotary", 0)) mlo_x_stay(x, "do_rotary is set");
    if (mlo_int(x->n, "past_present_share_buffer", 0) || *mlo_x_in(x, 6))
        mlo_x_stay(x, "past and present share a buffer");
    if (sizes && sizes->n_ints == 3) memcpy(size, sizes->ints, sizeof size);
    if (size[0] < 1 || size[0] > MLO_MAX_DIM || size[1] != size[0] || size[2] < 1
        || size[2] > MLO_MAX_DIM
        || (mlo_x_dim(x, 1, 1) >= 0 && size[0] + size[1] + size[2] != mlo_x_dim(x, 1, 1)))
        mlo_x_stay(x, "the channels of q, k and v cannot be told");
    mlo_x_attention a = { NULL, NULL, NULL, mlo_int(x->n, "num_heads", 0), mlo_x_scale(x, size[0]),
        3, 5, mlo_int(x->n, "unidirectional", 0) != 0, -1 };
    mlo_x_split(x, mlo_x_in(x, 1), 1, size, w, 3);
    if (*mlo_x_in(x, 2)) mlo_x_split(x, mlo_x_in(x, 2), 0, size, b, 3);
    part[0] = &a.q;
    part[1] = &a.k;
    part[2] = &a.v;
    for (int i = 0; i < 3; i++) {
        const char *y = MLO_X(x, "MatMul", mlo_x_in(x, 0), w[i]);
        y = mlo_x_plus(x, y, b[i]);
        *part[i] = mlo_x_heads(x, y, a.heads);
    }
    if (*mlo_x_in(x, 4)) {
        mlo_x_split(x, mlo_x_in(x, 4), 0, pair, w, 2);
        for (int i = 0; i < 2; i++) {
            w[i] = mlo_x_axes(x, "Squeeze", w[i], &first, 1, 13);
            *part[i + 1] = MLO_X(x, "Concat", w[i], *part[i + 1]);
            mlo_x_int(x, "axis", 2);
        }
    }
    mlo_x_out(x, 0, mlo_x_attend(x, &a));
    if (!mlo_x_wanted(x, 1)) return;
    const char *k = mlo_x_unsqueeze(x, a.k, &first, 1);
    const char *v = mlo_x_unsqueeze(x, a.v, &first, 1);
    const char *present = MLO_X(x, "Concat", k, v);
    mlo_x_int(x, "axis", 0);
    mlo_x_out(x, 1, present);
}

/* MultiHeadAttention(q, k, v, bias, key mask, attention bias, past k, past v) -> y, present k,
 * present v. k and v are [B, T, heads x C], or
 * [B, heads, T, C] as a decoder keeps them of its encoder, their biases added. */
static void mlo_expand_multi_head(mlo_expansion *x) {
    int64_t size[3];
    const char *b[3] = { "", "", "" }, *part[3];
    for (size_t i = 0; i < 3; i++) {
        part[i] = mlo_x_in(x, i);
        size[i] = mlo_x_dim(x, i, -1);
    }
    int kept = mlo_x_rank(x, 1) == 4 && mlo_x_rank(x, 2) == 4;
    if (mlo_x_rank(x, 0) != 3 || (!kept && (mlo_x_rank(x, 1) != 3 || mlo_x_rank(x, 2) != 3)))
        mlo_x_stay(x, "q, k and v have ranks %d, %d and %d", mlo_x_rank(x, 0), mlo_x_rank(x, 1),
            mlo_x_rank(x, 2));
    if (*mlo_x_in(x, 8) || *mlo_x_in(x, 9) || mlo_x_wanted(x, 3))
        mlo_x_stay(x, "past and present share a buffer, or its qk is used");
    if (kept && *mlo_x_in(x, 6)) mlo_x_stay(x, "k and v of rank 4 come with a past");
    mlo_x_attention a = { NULL, NULL, NULL, mlo_int(x->n, "num_heads", 0), mlo_x_scale(x, size[0]),
        4, 5, mlo_int(x->n, "unidirectional", 0) != 0, -1 };
    if (kept)
        for (int i = 1; i < 3; i++)
            size[i] = mlo_times(mlo_x_dim(x, (size_t)i, 1), mlo_x_dim(x, (size_t)i, 3));
    if (*mlo_x_in(x, 3)) {
        if (size[1] < 1 || size[2] < 1) mlo_x_stay(x, "the channels of k and v are unknown");
        mlo_x_split(x, mlo_x_in(x, 3), 0, size, b, 3);
    }
    for (int i = 0; i < 3; i++) {
        if (!i || !kept) part[i] = mlo_x_plus(x, part[i], b[i]);
        if (!i || !kept) part[i] = mlo_x_heads(x, part[i], a.heads);
        if (i && *mlo_x_in(x, (size_t)i + 5)) {
            part[i] = MLO_X(x, "Concat", mlo_x_in(x, (size_t)i + 5), part[i]);
            mlo_x_int(x, "axis", 2);
        }
    }
    a.q = part[0];
    a.k = part[1];
    a.v = part[2];
    mlo_x_out(x, 0, mlo_x_attend(x, &a));
    for (size_t i = 1; i < 3; i++)
        if (mlo_x_wanted(x, i)) mlo_x_out(x, i, part[i]);
}

/* ---- rotary embedding ----------------------------------------------------- */

/* Channels start, start + step, .. of v, before `end`. */
static const char *mlo_x_part(
    mlo_expansion *x, const char *v, int64_t start, int64_t end, int64_t step) {
    const int64_t last = -1;
    const char *from = mlo_x_list(x, &start, 1), *to = mlo_x_list(x, &end, 1);
    const char *axis = mlo_x_list(x, &last, 1), *by = mlo_x_list(x, &step, 1);
    return MLO_X(x, "Slice", v, from, to, axis, by);
}

/* Which rows of the tables: positions of each token, or that of the first. */
static const char *mlo_x_positions(mlo_expansion *x) {
    if (mlo_x_rank(x, 1) == 2) return mlo_x_in(x, 1);
    const char *shape = MLO_X(x, "Shape", mlo_x_in(x, 0));
    const char *tokens = mlo_x_size(x, shape, mlo_x_rank(x, 0) == 3 ? 1 : 2);
    const char *rows = mlo_x_range(x, tokens);
    return MLO_X(x, "Add", rows, mlo_x_in(x, 1));
}

/* Those rows, for heads that lie at `axis` of [B, .., .., C]. */
static const char *mlo_x_angles(mlo_expansion *x, size_t i, const char *rows, int flat) {
    const int64_t axis = mlo_x_rank(x, 1) == 2 ? (flat ? 2 : 1) : flat ? 1 : 0;
    const char *y = MLO_X(x, "Gather", mlo_x_in(x, i), rows);
    mlo_x_int(x, "axis", 0);
    return mlo_x_unsqueeze(x, y, &axis, 1);
}

/* (a cos - b sin, a sin + b cos) of the first `turned` of v's channels; by_two: pairs are neighbours. */
static const char *mlo_x_rotated(
    mlo_expansion *x, const char *v, int64_t turned, const char *cos, const char *sin, int by_two) {
    const int64_t four = 4, whole[] = { 0, 0, 0, turned };
    const char *a = mlo_x_part(x, v, 0, by_two ? turned : turned / 2, by_two ? 2 : 1);
    const char *b = mlo_x_part(x, v, by_two ? 1 : turned / 2, turned, by_two ? 2 : 1);
    const char *ac = MLO_X(x, "Mul", a, cos)
    , *bs = MLO_X(x, "Mul", b, sin);
    const char *re = MLO_X(x, "Sub", ac, bs);
    const char *bc = MLO_X(x, "Mul", b, cos)
    , *as = MLO_X(x, "Mul", a, sin);
    const char *im = MLO_X(x, "Add", bc, as)
    , *y;
    if (by_two) re = mlo_x_unsqueeze(x, re, &four, 1);
    if (by_two) im = mlo_x_unsqueeze(x, im, &four, 1);
    y = MLO_X(x, "Concat", re, im);
    mlo_x_int(x, "axis", by_two ? 4 : -1);
    return by_two ? mlo_x_reshape(x, y, whole, 4) : y;
}

/* v of `width` channels a head, the first `turned` of which turn. */
static const char *mlo_x_partly_rotated(mlo_expansion *x, const char *v, int64_t width,
    int64_t turned, const char *cos, const char *sin, int by_two) {
    const char *y = mlo_x_rotated(x, v, turned, cos, sin, by_two);
    if (width == turned) return y;
    const char *rest = mlo_x_part(x, v, turned, width, 1);
    y = MLO_X(x, "Concat", y, rest);
    mlo_x_int(x, "axis", -1);
    return y;
}

/* RotaryEmbedding(x, positions, cosines, sines): x is [B, S, heads x C] or [B, heads, S, C]; the
 * standard operator came with opset 23 only, so its parts are written out. */
static void mlo_expand_rotary(mlo_expansion *x) {
    const int flat = mlo_x_rank(x, 0) == 3, listed = mlo_x_rank(x, 1);
    const int64_t half = mlo_x_dim(x, 2, -1), channels = mlo_x_dim(x, 0, -1);
    const int64_t heads = mlo_int(x->n, "num_heads", 0), turned = half > 0 ? 2 * half : 0;
    const int64_t said = mlo_int(x->n, "rotary_embedding_dim", 0);
    const int64_t width = flat && heads > 0 ? channels / heads : flat ? turned : channels;
    const float scale = mlo_float(x->n, "scale", 1);
    const int64_t split[] = { 0, 0, -1, width }, joined[] = { 0, 0, channels };
    if (!flat && mlo_x_rank(x, 0) != 4) mlo_x_stay(x, "its rank is %d", mlo_x_rank(x, 0));
    if (half < 1 || (said && said != turned) || channels < 1 || width < turned || channels % width)
        mlo_x_stay(x, "%lld channels, of which %lld turn in each head, cannot be told apart",
            (long long)channels, (long long)turned);
    if (listed != 1 && listed != 2) mlo_x_stay(x, "the rank of its positions is unknown");
    if (listed == 1 && mlo_x_dim(x, 1, 0) != 1) mlo_x_stay(x, "its positions are a list");
    if (scale < 1 || scale > 1 || mlo_int(x->n, "is_packed_batching", 0))
        mlo_x_stay(x, "it has a scale, or tokens of several sequences in a row");
    const char *rows = mlo_x_positions(x), *v = mlo_x_in(x, 0);
    const char *cos = mlo_x_angles(x, 2, rows, flat), *sin = mlo_x_angles(x, 3, rows, flat);
    if (flat) v = mlo_x_reshape(x, v, split, 4);
    const char *y = mlo_x_partly_rotated(
        x, v, width, turned, cos, sin, mlo_int(x->n, "interleaved", 0) != 0);
    mlo_x_out(x, 0, flat ? mlo_x_reshape(x, y, joined, 3) : y);
}

/* ---- ONNX's own attention ----------------------------------------------------
 * Attention(q, k, v, mask, past k, past v, number of keys) -> y, present k, present v, scores:
 * what the function in ONNX's schema says, in as few operators as a case needs. q, k, v: [B, S or
 * T, heads x C] or [B, heads, S or T, C] */

/* a and b, each perhaps absent */
static const char *mlo_x_both(mlo_expansion *x, const char *a, const char *b) {
    if (!*a) return b;
    return *b ? MLO_X(x, "And", a, b) : a;
}
/* S or T of [B, heads, S or T, C] */
static const char *mlo_x_length(mlo_expansion *x, const char *v) {
    return mlo_x_size(x, MLO_X(x, "Shape", v), 2);
}

/* Which key a query is at: [S, 1], or [B, 1, S, 1] with a count of keys ([B, 1, 1, 1], or absent) */
static const char *mlo_x_place(mlo_expansion *x, const char *q, const char *count) {
    const int64_t column[] = { -1, 1 };
    const char *length = mlo_x_length(x, q), *past = "", *at;
    if (*mlo_x_in(x, 4))
        past = mlo_x_length(x, mlo_x_in(x, 4));
    else if (*count)
        past = MLO_X(x, "Sub", count, length);
    at = mlo_x_reshape(x, mlo_x_range(x, length), column, 2);
    return mlo_x_plus(x, at, past);
}

/* May a query see a key, by order, window and number of keys? Broadcasts to [B, heads, S, T]; ""
 * for always. */
static const char *mlo_x_in_sight(mlo_expansion *x, const char *q, const char *k) {
    const int64_t per_batch[] = { -1, 1, 1, 1 };
    int64_t left = mlo_int(x->n, "left_window_size", -1);
    int64_t right = mlo_int(x->n, "right_window_size", -1);
    const char *count = mlo_x_in(x, 6), *open = "", *at, *edge;
    int causal = mlo_int(x->n, "is_causal", 0) != 0;
    if (!causal && left < 0 && right < 0 && !*count) return "";
    const char *keys = mlo_x_range(x, mlo_x_length(x, k));
    if (*count) count = mlo_x_reshape(x, count, per_batch, 4);
    if (*count) open = MLO_X(x, "Less", keys, count);
    if (!causal && left < 0 && right < 0) return open;
    at = mlo_x_place(x, q, count);
    if (causal) open = mlo_x_both(x, open, MLO_X(x, "LessOrEqual", keys, at));
    if (left >= 0) {
        edge = mlo_x_whole(x, left);
        edge = MLO_X(x, "Sub", at, edge);
        open = mlo_x_both(x, open, MLO_X(x, "GreaterOrEqual", keys, edge));
    }
    if (right >= 0) {
        edge = mlo_x_whole(x, right);
        edge = MLO_X(x, "Add", at, edge);
        open = mlo_x_both(x, open, MLO_X(x, "LessOrEqual", keys, edge));
    }
    return open;
}

/* How many keys there are with those that are past, -1 when unknown. */
static int64_t mlo_x_keys(const mlo_expansion *x) {
    int64_t keys = mlo_x_dim(x, 1, mlo_x_rank(x, 1) - 2); /* of [.., T, C] in either layout */
    return *mlo_x_in(x, 4) ? mlo_dim_sum(keys, mlo_x_dim(x, 4, 2)) : keys;
}

/* From opset 24 on, a mask may end before the keys do: the rest of them are closed. */
static const char *mlo_x_padded(mlo_expansion *x, const char *mask, const char *k) {
    const int64_t zero = 0, last = -1, keys = mlo_x_keys(x);
    mlo_dtype type = mlo_x_form(x, 3).dtype;
    if (x->opset < 24 || (keys >= 0 && keys == mlo_x_dim(x, 3, -1))) return mask;
    const char *have, *more, *closed;
    const char *from = mlo_x_list(x, &zero, 1);
    const char *axis = mlo_x_list(x, &last, 1);
    have = MLO_X(x, "Shape", mask);
    mlo_x_int(x, "start", -1);
    more = MLO_X(x, "Shape", k);
    mlo_x_int(x, "start", 2);
    mlo_x_int(x, "end", 3);
    more = MLO_X(x, "Sub", more, have);
    more = MLO_X(x, "Concat", from, more);
    mlo_x_int(x, "axis", 0);
    closed = mlo_x_tensor(x, type, 0, 1, NULL, type == MLO_BOOL ? 0 : -(double)INFINITY);
    return MLO_X(x, "Pad", mask, more, closed, axis);
}

/* Is the mask a constant that closes nothing and adds nothing? PyTorch exports one where none was
 * given. */
static int mlo_x_idle_mask(const mlo_expansion *x) {
    const mlo_value *v = mlo_value_of(x->g, mlo_x_in(x, 3));
    double number[512], idle = mlo_x_form(x, 3).dtype == MLO_BOOL;
    if (!v || !v->tensor || mlo_x_dim(x, 3, -1) != mlo_x_keys(x)) return 0;
    for (int64_t at = 0, n, all = mlo_tensor_count(v->tensor); at < all; at += n) {
        n = all - at < 512 ? all - at : 512;
        if (mlo_tensor_doubles(x->m, v->tensor, at, (size_t)n, number)) return 0;
        for (int64_t i = 0; i < n; i++)
            if (!(number[i] >= idle && number[i] <= idle)) return 0;
    }
    return 1;
}

/* What is added to scores: -infinity where a key is closed, and a mask of numbers; "" for nothing. */
static const char *mlo_x_openings(
    mlo_expansion *x, const char *mask, const char *q, const char *k) {
    mlo_dtype type = *mask ? mlo_x_form(x, 3).dtype : MLO_BOOL;
    if (*mask) mask = mlo_x_padded(x, mask, k);
    const char *open = mlo_x_in_sight(x, q, k);
    if (type == MLO_BOOL) open = mlo_x_both(x, mask, open);
    if (*open) open = mlo_x_filter(x, open, -(double)INFINITY);
    if (type == MLO_BOOL) return open;
    if (type != x->dtype) mask = mlo_x_cast(x, mask, x->dtype);
    return mlo_x_plus(x, mask, open);
}

/* Heads of keys or values, each as often as queries share it: [B, heads, T, C] to [B, all heads,
 * T, C]. */
static const char *mlo_x_shared(
    mlo_expansion *x, const char *v, int64_t heads, int64_t all, int64_t channels) {
    const int64_t behind_heads = 2;
    const int64_t times[] = { 1, 1, all / heads, 1, 1 };
    const int64_t shape[] = { 0, all, -1, channels };
    if (heads == all) return v;
    if (channels < 1) mlo_x_stay(x, "the channels of a head are unknown; bind them with --dim");
    v = mlo_x_unsqueeze(x, v, &behind_heads, 1);
    v = MLO_X(x, "Expand", v, mlo_x_list(x, times, 5));
    return mlo_x_reshape(x, v, shape, 4);
}

/* The root of the scale, by which q and k are multiplied each: made in float, as the function does. */
static double mlo_x_root_scale(mlo_expansion *x, int64_t channels) {
    const mlo_attr *a = mlo_attr_of(x->n, "scale");
    float scale = a ? a->f : channels < 1 ? 1 : 1 / sqrtf((float)channels);
    if (!a && channels < 1)
        mlo_x_stay(x, "the channels of a head are unknown; bind them with --dim");
    if (!(scale >= 0)) mlo_x_stay(x, "its scale is %g", (double)scale);
    return (double)sqrtf(scale);
}

/* Softmax in the precision that is asked for. A query that sees no key takes nothing: its row of
 * -infinity, whose softmax is NaN, gives 0 (so does a row in which a score is NaN already). By
 * order alone, every query sees a key. */
static const char *mlo_x_weights(mlo_expansion *x, const char *scores, const char *mask) {
    mlo_dtype type = (mlo_dtype)mlo_int(x->n, "softmax_precision", x->dtype);
    const char *y = type == x->dtype ? scores : mlo_x_cast(x, scores, type), *empty, *zero;
    y = MLO_X(x, "Softmax", y);
    mlo_x_int(x, "axis", -1);
    if (type != x->dtype) y = mlo_x_cast(x, y, x->dtype);
    if (!*mask && !*mlo_x_in(x, 6) && mlo_int(x->n, "left_window_size", -1) < 0) return y;
    empty = MLO_X(x, "IsNaN", y);
    zero = mlo_x_number(x, 0);
    return MLO_X(x, "Where", empty, zero, y);
}

/* Stays when it has an attribute that the function does not know. */
static void mlo_x_check_attributes(mlo_expansion *x) {
    static const char *const known[] = { "is_causal", "kv_num_heads", "left_window_size",
        "q_num_heads", "qk_matmul_output_mode", "right_window_size", "scale", "softcap",
        "softmax_precision" };
    int64_t mode = mlo_int(x->n, "qk_matmul_output_mode", 0);
    int64_t type = mlo_int(x->n, "softmax_precision", MLO_FLOAT);
    for (size_t i = 0, k; i < x->n->n_attr; i++) {
        const char *name = x->n->attr[i]->name;
        for (k = 0; k < sizeof known / sizeof *known && !mlo_eq(name, known[k]); k++) {
        }
        if (k == sizeof known / sizeof *known)
            mlo_x_stay(x, "its attribute %.60s is not known", name);
    }
    if (mode < 0 || mode > 3) mlo_x_stay(x, "its qk_matmul_output_mode is %lld", (long long)mode);
    if (!mlo_dtype_is_float((mlo_dtype)type))
        mlo_x_stay(x, "its softmax_precision is no float type");
}

/* Stays when its inputs are not as the schema says. */
static void mlo_x_check_inputs(mlo_expansion *x) {
    int rank = mlo_x_rank(x, 0), past = *mlo_x_in(x, 4) || *mlo_x_in(x, 5);
    if (rank != 3 && rank != 4)
        mlo_x_stay(x, rank < 0 ? "the rank of q is unknown" : "q has rank %d", rank);
    if (mlo_x_rank(x, 1) != rank || mlo_x_rank(x, 2) != rank)
        mlo_x_stay(
            x, "q, k and v have ranks %d, %d and %d", rank, mlo_x_rank(x, 1), mlo_x_rank(x, 2));
    for (size_t i = 1; i < 6; i++) {
        mlo_dtype type = mlo_x_form(x, i).dtype;
        if ((i < 3 || (past && i > 3)) && type != x->dtype)
            mlo_x_stay(
                x, "q is %s, input %zu is %s", mlo_dtype_name(x->dtype), i, mlo_dtype_name(type));
    }
    if (*mlo_x_in(x, 3) && !mlo_x_form(x, 3).dtype)
        mlo_x_stay(x, "the element type of its mask is unknown");
    if (past && *mlo_x_in(x, 6)) mlo_x_stay(x, "it has past keys and a number of keys");
}

/* q, k and v as [B, heads, S or T, C], k and v behind what is past; how many heads, and how many
 * channels each has. */
static void mlo_x_heads_of(mlo_expansion *x, const char **part, int64_t *heads, int64_t *channels) {
    int flat = mlo_x_rank(x, 0) == 3;
    for (size_t i = 0; i < 3; i++) {
        heads[i] = flat ? mlo_int(x->n, i ? "kv_num_heads" : "q_num_heads", 0) : mlo_x_dim(x, i, 1);
        channels[i] = flat ? mlo_dim_part(mlo_x_dim(x, i, 2), heads[i]) : mlo_x_dim(x, i, 3);
        part[i] = flat ? mlo_x_heads(x, mlo_x_in(x, i), heads[i]) : mlo_x_in(x, i);
        if (!i || !*mlo_x_in(x, i + 3)) continue;
        part[i] = MLO_X(x, "Concat", mlo_x_in(x, i + 3), part[i]);
        mlo_x_int(x, "axis", 2);
    }
    if (heads[0] < 0 || heads[1] < 0 || heads[2] < 0)
        mlo_x_stay(x, "its number of heads is unknown; bind it with --dim");
    else if (heads[0] < 1 || heads[1] < 1 || heads[2] != heads[1] || heads[0] % heads[1])
        mlo_x_stay(x, "it has %lld heads of queries, %lld of keys, %lld of values",
            (long long)heads[0], (long long)heads[1], (long long)heads[2]);
}

static void mlo_expand_standard_attention(mlo_expansion *x) {
    const int64_t swap[] = { 0, 1, 3, 2 };
    int64_t heads[3], channels[3];
    const char *part[3], *stage[4], *k, *v, *mask, *y;
    mlo_x_check_attributes(x);
    mlo_x_check_inputs(x);
    mlo_x_heads_of(x, part, heads, channels);
    if (mlo_x_stopped(x)) return;
    k = mlo_x_shared(x, part[1], heads[1], heads[0], channels[1]);
    v = mlo_x_shared(x, part[2], heads[1], heads[0], channels[2]);
    k = mlo_x_transpose(x, k, swap, 4);
    y = mlo_x_number(x, mlo_x_root_scale(x, channels[0]));
    k = MLO_X(x, "Mul", k, y);
    y = MLO_X(x, "Mul", part[0], y);
    stage[0] = MLO_X(x, "MatMul", y, k);
    stage[1] = mlo_x_capped(x, stage[0]);
    mask = mlo_x_idle_mask(x) ? "" : mlo_x_in(x, 3);
    y = mlo_x_openings(x, mask, part[0], part[1]);
    stage[2] = mlo_x_plus(x, stage[1], y);
    stage[3] = mlo_x_weights(x, stage[2], mask);
    y = MLO_X(x, "MatMul", stage[3], v);
    mlo_x_out(x, 0, mlo_x_rank(x, 0) == 3 ? mlo_x_joined(x, y) : y);
    for (size_t i = 1; i < 3; i++)
        if (mlo_x_wanted(x, i)) mlo_x_out(x, i, part[i]);
    if (mlo_x_wanted(x, 3)) mlo_x_out(x, 3, stage[mlo_int(x->n, "qk_matmul_output_mode", 0)]);
}

/* ---- grouped-query attention -------------------------------------------------
 * GroupQueryAttention(q, k, v, past k, past v, keys - 1, most keys, cosines, sines, positions) -> y,
 * present k, present v: causal, as ONNX Runtime's tools write decoders. q may hold k and v, too. A
 * prompt only: nothing is past. (Which keys of a batch are padding, `keys - 1`, is not asked: they
 * come last, where only the padding's own rows could see them; those rows are nobody's.) */

enum { MLO_GQA_PAST = 3, MLO_GQA_COS = 7, MLO_GQA_SIN = 8, MLO_GQA_POSITIONS = 9 };

typedef struct {
    int64_t heads[3], channels; /* of q, k, v; of a head */
    const char *part[3]; /* [B, heads, S, C] */
} mlo_x_group;

/* Stays when nothing here, or in ONNX Runtime's documentation, says what it means. */
static void mlo_x_check_group(mlo_expansion *x) {
    static const struct {
        size_t input;
        const char *why;
    } odd[] = { { 10, "it has a bias" }, { 11, "it has sinks" }, { 12, "its keys are quantized" },
        { 13, "its values are quantized" } };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (*mlo_x_in(x, odd[i].input)) mlo_x_stay(x, "%s", odd[i].why);
    for (size_t i = MLO_GQA_PAST; i < MLO_GQA_PAST + 2; i++)
        if (*mlo_x_in(x, i) && mlo_x_dim(x, i, 2) != 0)
            mlo_x_stay(x, "it has past keys and values: a prompt has none");
    if (!mlo_int(x->n, "local_window_size", -1)) mlo_x_stay(x, "its window is empty");
    if (mlo_int(x->n, "smooth_softmax", 0) > 0) mlo_x_stay(x, "smooth_softmax is set");
    if (mlo_int(x->n, "qk_output", 0) || mlo_x_wanted(x, 3)) mlo_x_stay(x, "its qk is used");
    if (mlo_x_rank(x, 0) != 3) mlo_x_stay(x, "the rank of q is %d", mlo_x_rank(x, 0));
    if (!*mlo_x_in(x, 1) != !*mlo_x_in(x, 2)) mlo_x_stay(x, "it has k or v, but not both");
}

/* q, k and v, whose channels are counted. */
static void mlo_x_group_parts(mlo_expansion *x, mlo_x_group *g) {
    const int packed = !*mlo_x_in(x, 1);
    const int64_t all = mlo_x_dim(x, 0, 2);
    g->heads[0] = mlo_int(x->n, "num_heads", 0);
    g->heads[1] = g->heads[2] = mlo_int(x->n, "kv_num_heads", 0);
    if (g->heads[0] < 1 || g->heads[1] < 1 || g->heads[0] % g->heads[1]) {
        mlo_x_stay(x, "it has %lld heads of queries, %lld of keys", (long long)g->heads[0],
            (long long)g->heads[1]);
        return;
    }
    g->channels = mlo_dim_part(all, g->heads[0] + (packed ? 2 * g->heads[1] : 0));
    if (g->channels < 1) mlo_x_stay(x, "%lld channels are not its heads", (long long)all);
    if (mlo_x_stopped(x)) return;
    const int64_t size[] = { g->heads[0] * g->channels, g->heads[1] * g->channels,
        g->heads[2] * g->channels };
    for (size_t i = 0; i < 3; i++) g->part[i] = mlo_x_in(x, i);
    if (packed) mlo_x_split(x, mlo_x_in(x, 0), 2, size, g->part, 3);
    for (size_t i = 0; i < 3; i++) g->part[i] = mlo_x_heads(x, g->part[i], g->heads[i]);
}

/* Queries and keys turn: the rows of the tables are those of the tokens' places. */
static void mlo_x_group_turn(mlo_expansion *x, mlo_x_group *g) {
    const int64_t heads = 1, half = mlo_x_dim(x, MLO_GQA_COS, -1);
    const int listed = *mlo_x_in(x, MLO_GQA_POSITIONS) != 0;
    const char *table[2];
    if (!mlo_int(x->n, "do_rotary", 0)) return;
    if (half < 1 || 2 * half > g->channels)
        mlo_x_stay(x, "%lld channels of a head, of which %lld turn", (long long)g->channels,
            (long long)(2 * half));
    const char *rows = mlo_x_in(x, MLO_GQA_POSITIONS);
    if (!listed) rows = mlo_x_range(x, mlo_x_length(x, g->part[0]));
    for (size_t i = 0; i < 2; i++) {
        table[i] = MLO_X(x, "Gather", mlo_x_in(x, MLO_GQA_COS + i), rows);
        mlo_x_int(x, "axis", 0);
        if (listed) table[i] = mlo_x_unsqueeze(x, table[i], &heads, 1);
    }
    for (size_t i = 0; i < 2; i++)
        g->part[i] = mlo_x_partly_rotated(x, g->part[i], g->channels, 2 * half, table[0], table[1],
            mlo_int(x->n, "rotary_interleaved", 0) != 0);
}

static void mlo_expand_group_query(mlo_expansion *x) {
    mlo_x_group g = { { 0, 0, 0 }, 0, { "", "", "" } };
    mlo_x_check_group(x);
    mlo_x_group_parts(x, &g);
    mlo_x_group_turn(x, &g);
    if (mlo_x_stopped(x)) return;
    const char *k = mlo_x_shared(x, g.part[1], g.heads[1], g.heads[0], g.channels);
    const char *v = mlo_x_shared(x, g.part[2], g.heads[2], g.heads[0], g.channels);
    const mlo_x_attention a = { g.part[0], k, v, g.heads[0],
        mlo_x_scale(x, g.heads[0] * g.channels), MLO_X_NONE, MLO_X_NONE, 1,
        mlo_int(x->n, "local_window_size", -1) };
    mlo_x_out(x, 0, mlo_x_attend(x, &a));
    for (size_t i = 1; i < 3; i++)
        if (mlo_x_wanted(x, i)) mlo_x_out(x, i, g.part[i]);
}

/* ---- forms: what inference needs to see past a fused node ----------------- */

static int mlo_shape_skip_norm(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    if (s->n_out > 3) s->out[3] = s->out[0];
    return 0;
}
static int mlo_shape_embed(mlo_shapes *s) {
    mlo_form ids = mlo_form_in(s, 0), words = mlo_form_in(s, 2);
    s->out[0].dtype = words.dtype;
    if (ids.rank != 2 || words.rank != 2) return 0;
    s->out[0] = mlo_form_with(&ids, 2, words.dims[1]);
    s->out[0].dtype = words.dtype;
    if (s->n_out > 2) s->out[2] = s->out[0];
    return 0;
}
static int mlo_shape_attention(mlo_shapes *s) {
    const mlo_attr *sizes = mlo_attr_of(s->node, "qkv_hidden_sizes");
    mlo_form w = mlo_form_in(s, 1);
    s->out[0] = mlo_form_in(s, 0);
    if (s->out[0].rank == 3)
        s->out[0].dims[2] = sizes && sizes->n_ints == 3 ? sizes->ints[2]
            : w.rank == 2 && w.dims[1] >= 0             ? w.dims[1] / 3
                                                        : -1;
    return 0;
}
static int mlo_shape_multi_head(mlo_shapes *s) {
    mlo_form v = mlo_form_in(s, 2);
    s->out[0] = mlo_form_in(s, 0);
    if (s->out[0].rank != 3)
        s->out[0].rank = -1;
    else
        s->out[0].dims[2] = v.rank == 3 ? v.dims[2]
            : v.rank == 4               ? mlo_times(v.dims[1], v.dims[3])
                                        : -1;
    return 0;
}
/* As q, whose channels k and v share where they are in it. */
static int mlo_shape_group_query(mlo_shapes *s) {
    const int64_t heads = mlo_int(s->node, "num_heads", 0);
    const int64_t kept = mlo_int(s->node, "kv_num_heads", 0);
    s->out[0] = mlo_form_in(s, 0);
    if (s->out[0].rank == 3 && !mlo_has_input(s->node, 1))
        s->out[0].dims[2] = mlo_times(mlo_dim_part(s->out[0].dims[2], heads + 2 * kept), heads);
    return 0;
}
static void mlo_form_rotate(mlo_form *f, int batch, int swap) {
    if (f->rank < 2) return;
    if (batch) {
        int64_t first = f->dims[0];
        for (int i = 0; i < f->rank - 2; i++) f->dims[i] = f->dims[i + 1];
        f->dims[f->rank - 2] = first;
    }
    if (swap) {
        int64_t last = f->dims[f->rank - 1];
        f->dims[f->rank - 1] = f->dims[f->rank - 2];
        f->dims[f->rank - 2] = last;
    }
}
static int mlo_shape_fused_matmul(mlo_shapes *s) {
    mlo_form in[2] = { mlo_form_in(s, 0), mlo_form_in(s, 1) };
    mlo_shapes t = *s;
    mlo_form_rotate(
        &in[0], mlo_int(s->node, "transBatchA", 0) != 0, mlo_int(s->node, "transA", 0) != 0);
    mlo_form_rotate(
        &in[1], mlo_int(s->node, "transBatchB", 0) != 0, mlo_int(s->node, "transB", 0) != 0);
    t.in = in;
    t.n_in = 2;
    return mlo_shape_MatMul(&t);
}
/* Integers times integers, scaled: as MatMul, in the type of the scale. */
static int mlo_shape_scaled_product(mlo_shapes *s) {
    return mlo_shape_of_two(s, 0, 1, 2, mlo_shape_MatMul);
}

/* Operators on quantized values stay: their rounding is their own. QLinearAdd(a, a_scale, a_zero,
 * b, b_scale, b_zero, y_scale, y_zero) */
static int mlo_shape_two(mlo_shapes *s) {
    mlo_form a = mlo_form_in(s, 0), b = mlo_form_in(s, 3);
    MLO_TRY(mlo_broadcast(s, &a, &b));
    s->out[0] = a;
    return 0;
}
/* QGemm(a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero): float without y_zero */
static int mlo_shape_qgemm(mlo_shapes *s) {
    return mlo_shape_of_two(s, 0, 3, mlo_present(s, 8) ? 8 : 1, mlo_shape_Gemm);
}
/* QLinearConcat(y_scale, y_zero, then x, scale, zero of each part) */
static int mlo_shape_qconcat(mlo_shapes *s) {
    mlo_form part[MLO_MAX_LIST];
    size_t n = 0;
    mlo_shapes t = *s;
    if (s->n_in < 3 || s->n_in > MLO_MAX_LIST) return 0;
    for (size_t i = 2; i < s->n_in; i += 3) part[n++] = mlo_form_in(s, i);
    t.in = part;
    t.n_in = n;
    return mlo_shape_Concat(&t);
}

/* ---- products that were flattened ----------------------------------------- */

static mlo_node *mlo_x_maker(const mlo_expansion *x, const char *name) {
    const mlo_value *v = mlo_value_of(x->g, name);
    return v && v->graph == x->g ? v->producer : NULL;
}

/* Reshape(Gemm(Reshape(v), w, c)) to [.., N]: how tools, and Conv1D, write v w + c for more than
 * two axes. The Gemm, or NULL. */
static mlo_node *mlo_x_flattened(const mlo_expansion *x) {
    mlo_node *gemm = mlo_is(x->n, "Reshape") && mlo_has_input(x->n, 0)
        ? mlo_x_maker(x, x->n->input[0])
        : NULL;
    mlo_node *first = mlo_is(gemm, "Gemm") && gemm->n_input >= 2 ? mlo_x_maker(x, gemm->input[0])
                                                                 : NULL;
    if (!mlo_is(first, "Reshape") || !mlo_has_input(first, 0) || mlo_int(gemm, "transA", 0)
        || mlo_float(gemm, "alpha", 1) != 1 || mlo_float(gemm, "beta", 1) != 1)
        return NULL;
    mlo_form v = mlo_form_of(mlo_value_of(x->g, first->input[0]));
    mlo_form y = mlo_form_of(mlo_value_of(x->g, x->n->output[0]));
    mlo_form w = mlo_form_of(mlo_value_of(x->g, gemm->input[1]));
    mlo_form c = mlo_form_of(mlo_has_input(gemm, 2) ? mlo_value_of(x->g, gemm->input[2]) : NULL);
    int flip = mlo_int(gemm, "transB", 0) != 0;
    if (!mlo_form_known(&v) || !mlo_form_known(&y) || w.rank != 2 || y.rank < 3
        || y.dims[y.rank - 1] != w.dims[!flip])
        return NULL;
    return !mlo_has_input(gemm, 2) || (c.rank == 1 && c.dims[0] == w.dims[!flip]) ? gemm : NULL;
}

static void mlo_expand_flattened(mlo_expansion *x, const mlo_node *gemm) {
    static const int64_t flip[] = { 1, 0 };
    const char *v = mlo_x_maker(x, gemm->input[0])->input[0], *w = gemm->input[1];
    mlo_form from = mlo_form_of(mlo_value_of(x->g, v));
    mlo_form to = mlo_form_of(mlo_value_of(x->g, x->n->output[0]));
    mlo_form k = mlo_form_of(mlo_value_of(x->g, w));
    to.dims[to.rank - 1] = k.dims[mlo_int(gemm, "transB", 0) != 0];
    if (from.rank != to.rank || memcmp(from.dims, to.dims, (size_t)to.rank * sizeof *to.dims))
        v = mlo_x_reshape(x, v, to.dims, (size_t)to.rank);
    if (mlo_int(gemm, "transB", 0)) w = mlo_x_transpose(x, w, flip, 2);
    v = MLO_X(x, "MatMul", v, w);
    mlo_x_out(x, 0, mlo_x_plus(x, v, mlo_has_input(gemm, 2) ? gemm->input[2] : ""));
    for (size_t i = 0; i < x->n_made; i++) {
        x->made[i]->meta = gemm->meta;
        x->made[i]->n_meta = gemm->n_meta;
    }
}

/* ---- products of two in index notation ------------------------------------ */

/* Einsum's equation of two operands, "bthd,bshd->bhts": a letter per axis, no ellipsis. 0: another
 * form. */
typedef struct {
    char term[3][MLO_MAX_RANK + 1];
} mlo_equation;

static int mlo_equation_of(const mlo_node *n, mlo_equation *e) {
    const mlo_attr *a = mlo_attr_of(n, "equation");
    int at = 0, length = 0;
    memset(e, 0, sizeof *e);
    for (size_t i = 0; a && i < a->s.n; i++) {
        char c = a->s.data[i];
        int arrow = c == '-' && i + 1 < a->s.n && a->s.data[i + 1] == '>';
        if (c == ' ') continue;
        if ((c == ',' && at == 0) || (arrow && at == 1)) {
            at++;
            length = 0;
            i += (size_t)arrow;
            continue;
        }
        int letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter || length == MLO_MAX_RANK || strchr(e->term[at], c)) return 0;
        e->term[at][length++] = c;
    }
    return at == 2;
}

/* The size of a letter's axis; -1: unknown. */
static int64_t mlo_letter_size(const mlo_equation *e, const mlo_form *operand, char c) {
    for (int i = 0; i < 2; i++) {
        const char *p = strchr(e->term[i], c);
        if (p && operand[i].rank == (int)strlen(e->term[i]) && operand[i].dims[p - e->term[i]] > 1)
            return operand[i].dims[p - e->term[i]];
    }
    for (int i = 0; i < 2; i++)
        if (strchr(e->term[i], c) && operand[i].rank == (int)strlen(e->term[i]))
            return operand[i].dims[strchr(e->term[i], c) - e->term[i]];
    return -1;
}

static int mlo_shape_einsum(mlo_shapes *s) {
    const mlo_form operand[] = { mlo_form_in(s, 0), mlo_form_in(s, 1) };
    mlo_equation e;
    s->out[0] = operand[0];
    s->out[0].rank = -1;
    if (s->n_in != 2 || !mlo_equation_of(s->node, &e)) return 0;
    s->out[0].rank = (int)strlen(e.term[2]);
    for (int i = 0; i < s->out[0].rank; i++)
        s->out[0].dims[i] = mlo_letter_size(&e, operand, e.term[2][i]);
    return 0;
}

/* The letters of an equation by what MatMul does with them: of both and the result; of the left
 * alone; summed over; of the right alone. */
typedef struct {
    char list[4][MLO_MAX_RANK + 1];
    int64_t size[4][MLO_MAX_RANK];
    int n[4];
} mlo_letters;

static void mlo_sort_letters(const mlo_equation *e, const mlo_form *operand, mlo_letters *l) {
    memset(l, 0, sizeof *l);
    for (int i = 0; i < 2; i++)
        for (const char *p = e->term[i]; *p; p++) {
            int left = strchr(e->term[0], *p) != NULL;
            int right = strchr(e->term[1], *p) != NULL;
            int kept = strchr(e->term[2], *p) != NULL;
            int kind = left && right ? (kept ? 0 : 2) : left ? 1 : 3;
            if (i && left) continue;
            l->size[kind][l->n[kind]] = mlo_letter_size(e, operand, *p);
            l->list[kind][l->n[kind]++] = *p;
        }
}

/* An operand, its axes in the order of three kinds of letters, the last two of which become one
 * axis each. */
static const char *mlo_x_letters(mlo_expansion *x, const char *v, const char *term,
    const mlo_letters *l, int second, int third) {
    const int kinds[] = { 0, second, third };
    int64_t perm[MLO_MAX_RANK], shape[MLO_MAX_RANK + 2];
    size_t n = 0, rank = 0;
    int moved = 0;
    for (int k = 0; k < 3; k++) {
        int64_t all = 1;
        for (int i = 0; i < l->n[kinds[k]]; i++) {
            perm[n] = strchr(term, l->list[kinds[k]][i]) - term;
            moved |= perm[n] != (int64_t)n;
            n++;
            if (k)
                all *= l->size[kinds[k]][i];
            else
                shape[rank++] = l->size[0][i];
        }
        if (k) shape[rank++] = all;
    }
    if (moved) v = mlo_x_transpose(x, v, perm, n);
    return l->n[second] == 1 && l->n[third] == 1 ? v : mlo_x_reshape(x, v, shape, rank);
}

/* Einsum of two operands is Transpose, MatMul, Transpose, with a Reshape where several letters
 * play one part. */
static void mlo_expand_einsum(mlo_expansion *x) {
    const mlo_form operand[] = { mlo_x_form(x, 0), mlo_x_form(x, 1) };
    mlo_equation e;
    mlo_letters l;
    char made[MLO_MAX_RANK + 1];
    int64_t shape[MLO_MAX_RANK], perm[MLO_MAX_RANK];
    size_t n = 0;
    int moved = 0;
    if (x->n->n_input != 2 || !mlo_equation_of(x->n, &e)) {
        mlo_x_stay(x, "its equation is not of two operands with a letter for each axis");
        return;
    }
    if (!mlo_form_known(&operand[0]) || !mlo_form_known(&operand[1])) {
        mlo_x_stay(x, "the shape of an operand is not known");
        return;
    }
    mlo_sort_letters(&e, operand, &l);
    if (l.n[0] + l.n[1] + l.n[3] != (int)strlen(e.term[2])) {
        mlo_x_stay(x, "it sums over an axis of one operand alone");
        return;
    }
    for (int i = 0; i < 2; i++)
        for (const char *p = e.term[i]; *p; p++)
            if (operand[i].dims[p - e.term[i]] != mlo_letter_size(&e, operand, *p)) {
                mlo_x_stay(x, "axis '%c' broadcasts", *p);
                return;
            }
    const char *a = mlo_x_letters(x, mlo_x_in(x, 0), e.term[0], &l, 1, 2);
    const char *b = mlo_x_letters(x, mlo_x_in(x, 1), e.term[1], &l, 2, 3);
    const char *y = MLO_X(x, "MatMul", a, b);
    const int parts[] = { 0, 1, 3 };
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < l.n[parts[k]]; i++) {
            shape[n] = l.size[parts[k]][i];
            made[n++] = l.list[parts[k]][i];
        }
    made[n] = 0;
    for (size_t i = 0; i < n; i++) {
        perm[i] = strchr(made, e.term[2][i]) - made;
        moved |= perm[i] != (int64_t)i;
    }
    if (l.n[1] != 1 || l.n[3] != 1) y = mlo_x_reshape(x, y, shape, n);
    if (moved) y = mlo_x_transpose(x, y, perm, n);
    mlo_x_out(x, 0, y);
}

/* ---- Deeploy's dialect ---------------------------------------------------- */

/* The number that an attribute says, however it says it: an integer, a float, a tensor of one
 * element. */
static int64_t mlo_x_whole_attr(mlo_expansion *x, const char *names) {
    const char *or = strchr(names, '|');
    const mlo_attr *a = mlo_attr_of(
        x->n, or ? mlo_intern_n(x->m, names, (size_t)(or -names)) : names);
    double v = 0;
    if (!a && or) a = mlo_attr_of(x->n, or +1);
    int known = a
        && (a->type == MLO_ATTR_INT || a->type == MLO_ATTR_FLOAT
            || (a->type == MLO_ATTR_TENSOR && mlo_tensor_count(a->t) == 1
                && !mlo_tensor_doubles(x->m, a->t, 0, 1, &v)));
    if (known && a->type == MLO_ATTR_INT) return a->i;
    if (known && a->type == MLO_ATTR_FLOAT) v = (double)a->f;
    if (!known || floor(v) < v || v < -9e15 || !(v < 9e15)) {
        mlo_x_stay(x, "its attribute %.60s is no integer", names);
        return 0;
    }
    return (int64_t)v;
}

/* A parameter of RequantShift: one number per channel is made to broadcast along axis 1. It comes
 * as a list, or as [C,1,1], behind a Conv of one dimension too: there it would lie along the batch. */
static const char *mlo_x_channels(mlo_expansion *x, size_t i) {
    mlo_form v = mlo_x_form(x, 0), p = mlo_x_form(x, i);
    int64_t n = mlo_form_known(&p) ? mlo_form_count(&p) : -1, shape[MLO_MAX_RANK];
    int lies_there = n > 1 && v.rank > 2 && p.dims[0] == n && (p.rank == 1 || p.rank == v.rank);
    if (n < 0 || (n > 1 && v.rank < 0))
        mlo_x_stay(x, "the shape of x or of input %zu is unknown: give it with --shape", i);
    if (lies_there && v.dims[1] < 0)
        mlo_x_stay(
            x, "axis 1 of x, which input %zu may lie along, is unknown: give it with --dim", i);
    if (!lies_there || v.dims[1] != n) return mlo_x_in(x, i);
    for (int k = 0; k < v.rank - 1; k++) shape[k] = k ? 1 : n;
    return mlo_x_reshape(x, mlo_x_in(x, i), shape, (size_t)v.rank - 1);
}

/* The form of x, with the element type that the model declares, if that is one of numbers: some
 * networks say int32. */
static int mlo_shape_integers(mlo_shapes *s) {
    mlo_dtype declared = s->out[0].dtype;
    s->out[0] = mlo_form_in(s, 0);
    if (mlo_dtype_size(declared) && mlo_dtype_bits(declared) && declared != MLO_BOOL)
        s->out[0].dtype = declared;
    return 0;
}

/* Is an attribute one of the numbers, under either of its names? */
static int mlo_dialect_knows(const mlo_dialect *d, const char *name) {
    size_t n = strlen(name);
    for (int k = 0; d->numbers[k]; k++)
        for (const char *s = d->numbers[k]; s; s = strchr(s, '|') ? strchr(s, '|') + 1 : NULL)
            if (!strncmp(s, name, n) && (!s[n] || s[n] == '|')) return 1;
    return 0;
}

/* RequantShift(x, mul, add; div, ..) becomes mlo.RequantShift(x, mul, add, div, ..): see
 * ops/deeploy.c. */
static void mlo_expand_dialect(mlo_expansion *x) {
    const mlo_dialect *d = mlo_dialect_of(x->n);
    const char *in[12];
    size_t n = 0;
    for (size_t i = 0; d && i < x->n->n_attr; i++)
        if (!mlo_dialect_knows(d, x->n->attr[i]->name))
            mlo_x_stay(x, "its attribute %.60s is not known", x->n->attr[i]->name);
    int per_channel = mlo_eq(x->n->op, "RequantShift");
    for (; d && n < x->n->n_input && n < 4; n++)
        in[n] = n && per_channel ? mlo_x_channels(x, n) : mlo_x_in(x, n);
    for (int k = 0; d && d->numbers[k]; k++) {
        int64_t v = mlo_x_whole_attr(x, d->numbers[k]);
        in[n++] = mlo_x_whole(x, v);
    }
    if (!d || mlo_x_stopped(x)) return;
    mlo_form y = mlo_form_of(mlo_value_of(x->g, x->n->output[0]));
    mlo_x_node(x, d->op.name, in, n);
    mlo_x_int(x, "to", y.dtype ? y.dtype : x->dtype);
    if (!mlo_x_last(x)) return;
    mlo_x_last(x)->name = x->n->name;
    mlo_x_last(x)->output[0] = x->n->output[0];
}

/* IntegerMean over N elements along the axes: floor((2 sum + N) / (2 N)). */
static void mlo_expand_integer_mean(mlo_expansion *x) {
    const mlo_attr *a = mlo_attr_of(x->n, "axes");
    int64_t list[MLO_MAX_RANK], N = 1;
    size_t n = a ? a->n_ints : (size_t)(mlo_x_rank(x, 0) > 0 ? mlo_x_rank(x, 0) : 0);
    if (!n || n > MLO_MAX_RANK) {
        mlo_x_stay(x, "its axes are unknown");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = a ? a->ints[i] : (int64_t)i;
        int64_t size = mlo_x_dim(x, 0, (int)list[i]);
        if (size < 1 || size > INT32_MAX || N > INT32_MAX) {
            mlo_x_stay(x, "the size of axis %d is unknown", (int)list[i]);
            return;
        }
        N *= size;
    }
    const char *terms = mlo_x_whole(x, N), *twice = mlo_x_whole(x, 2 * N), *two = mlo_x_whole(x, 2);
    const char *sum = mlo_x_axes(
        x, "ReduceSum", mlo_x_cast(x, mlo_x_in(x, 0), MLO_INT64), list, n, 13);
    mlo_x_int(x, "keepdims", mlo_int(x->n, "keepdims", 1));
    const char *both = MLO_X(x, "Mul", sum, two);
    const char *over = MLO_X(x, "Add", both, terms);
    const char *rest = MLO_X(x, "Mod", over, twice);
    const char *whole = MLO_X(x, "Sub", over, rest);
    const char *mean = MLO_X(x, "Div", whole, twice);
    mlo_x_out(x, 0, mlo_x_cast(x, mean, x->dtype));
}

/* The float twins of Deeploy's integer networks keep the integers' attributes on standard
 * operators, where they mean nothing, write HardSwish where the opset has none yet, and mean the
 * last axis by a Softmax that names none. Returns the entry that the node now needs, or NULL. */
static const mlo_dialect *mlo_expand_twin(mlo *m, mlo_node *n, mlo_dtype dtype, int opset) {
    if (!mlo_is(n, "Div") && !mlo_is(n, "HardSwish") && !mlo_is(n, "Softmax")) return NULL;
    if (mlo_is(n, "Softmax")) {
        if (opset < 13 && !mlo_attr_of(n, "axis")) mlo_attr_int(m, n, "axis", -1);
        return NULL;
    }
    n->n_attr = 0;
    if (!mlo_is(n, "HardSwish") || opset >= 14 || dtype != MLO_FLOAT) return NULL;
    n->domain = mlo_intern(m, "mlo");
    mlo_attr_int(m, n, "to", dtype);
    return mlo_dialect_of(n);
}

/* Is this one of Deeploy's networks: does it use an operator that only they have? */
static int mlo_dialect_speaks(const mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++)
        if (!mlo_eq(g->node[i]->op, "HardSwish") && mlo_dialect_of(g->node[i])
            && !mlo_eq(g->node[i]->domain, "mlo"))
            return 1;
    return 0;
}

/* ---- the table ------------------------------------------------------------ */

typedef struct {
    mlo_op op;
    void (*expand)(mlo_expansion *x);
    const char *inputs;
    int since;
} mlo_fused;
/* expand: NULL when only its form is known; inputs: x for each it must have, - for one it may
 * lack; since: the least opset */
#define MLO_FUSED(name, inputs, shape, expand) \
    { { name, mlo_shape_##shape, NULL, 0 }, mlo_expand_##expand, inputs, 11 }
#define MLO_CARRIED(name, shape) { { name, mlo_shape_##shape, NULL, 0 }, NULL, "", 1 }
/* Deeploy writes its operators into the standard domain, or into that of ONNX Runtime's extensions. */
#define MLO_TWICE(name, inputs, shape, expand, since)                      \
    { { name, shape, NULL, 0 }, expand, inputs, since }, {                 \
        { "ai.onnx.contrib." name, shape, NULL, 0 }, expand, inputs, since \
    }
#define MLO_DIALECT(name, inputs) MLO_TWICE(name, inputs, mlo_shape_integers, mlo_expand_dialect, 9)
static const mlo_fused mlo_fused_ops[] = {
    MLO_FUSED("com.microsoft.Attention", "xx", attention, attention),
    MLO_FUSED("com.microsoft.MultiHeadAttention", "xxx", multi_head, multi_head),
    MLO_FUSED("com.microsoft.GroupQueryAttention", "x", group_query, group_query),
    MLO_FUSED("com.microsoft.SkipLayerNormalization", "xxx", skip_norm, skip_norm),
    MLO_FUSED("com.microsoft.SkipSimplifiedLayerNormalization", "xxx", skip_norm, skip_norm),
    MLO_FUSED("com.microsoft.EmbedLayerNormalization", "x-xx-xx", embed, embed),
    MLO_FUSED("com.microsoft.FusedMatMul", "xx", fused_matmul, fused_matmul),
    MLO_FUSED("com.microsoft.FusedGemm", "xx", Gemm, fused_gemm),
    MLO_FUSED("com.microsoft.FusedConv", "xx", Conv, fused_conv),
    MLO_FUSED("com.microsoft.MatMulIntegerToFloat", "xxxx", scaled_product, matmul_to_float),
    MLO_FUSED("com.microsoft.DynamicQuantizeMatMul", "xxx", scaled_product, dynamic_matmul),
    MLO_FUSED("com.microsoft.Gelu", "x", same, gelu),
    MLO_FUSED("com.microsoft.BiasGelu", "xx", same, gelu),
    MLO_FUSED("com.microsoft.FastGelu", "x", same, fast_gelu),
    MLO_FUSED("com.microsoft.QuickGelu", "x", same, quick_gelu),
    MLO_FUSED("com.microsoft.RotaryEmbedding", "xxxx", same, rotary),
    MLO_CARRIED("com.microsoft.QLinearAdd", two),
    MLO_CARRIED("com.microsoft.QLinearMul", two),
    MLO_CARRIED("com.microsoft.QGemm", qgemm),
    MLO_CARRIED("com.microsoft.QLinearConcat", qconcat),
    MLO_CARRIED("com.microsoft.QLinearSoftmax", same),
    MLO_CARRIED("com.microsoft.QLinearSigmoid", same),
    { { "Einsum", mlo_shape_einsum, NULL, 0 }, mlo_expand_einsum, "xx", 12 },
    MLO_FUSED("SimplifiedLayerNormalization", "xx", same, rms),
    MLO_TWICE("IntegerMean", "x", mlo_shape_Reduce, mlo_expand_integer_mean, 10),
    MLO_TWICE("RMSNorm", "xx", mlo_shape_same, mlo_expand_dialect, 9),
    { { "Attention", mlo_shape_Attention, NULL, 3 }, mlo_expand_standard_attention, "xxx", 23 },
    MLO_DIALECT("RequantShift", "xxx"),
    MLO_DIALECT("iSoftmax", "x"),
    MLO_DIALECT("iRMSNorm", "xx"),
    MLO_DIALECT("iLayerNorm", "xxx"),
    MLO_DIALECT("iGELU", "x"),
    MLO_DIALECT("iHardswish", "x"),
    MLO_DIALECT("ITAMax", "x"),
    MLO_DIALECT("ITAPartialMax", "x"),
    MLO_DIALECT("TrueIntegerDiv", "x"),
    MLO_DIALECT("iNoNorm", "xxx"),
};
enum { MLO_N_FUSED = sizeof mlo_fused_ops / sizeof *mlo_fused_ops };

static const mlo_fused *mlo_fused_of(const mlo_node *n) {
    for (int i = 0; i < MLO_N_FUSED; i++)
        if (mlo_fused_ops[i].expand && mlo_is(n, mlo_fused_ops[i].op.name))
            return &mlo_fused_ops[i];
    return NULL;
}

/* ---- the walk ------------------------------------------------------------- */

/* Nodes that stay, by reason: one warning a reason, however many layers there are. */
typedef struct {
    const mlo_node *n;
    const char *why;
    size_t count;
} mlo_stayed;
typedef struct {
    mlo_stayed *stayed;
    size_t n_stayed, expanded;
    uint8_t dialect[MLO_N_DIALECTS];
    int dialects;
} mlo_expander;

static int mlo_expand_stayed(mlo *m, mlo_expander *e, const mlo_node *n, const char *why) {
    for (size_t i = 0; i < e->n_stayed; i++)
        if (e->stayed[i].why == why && mlo_eq(e->stayed[i].n->op, n->op)) {
            e->stayed[i].count++;
            return 0;
        }
    mlo_stayed s = { n, why, 0 };
    return MLO_PUSH(m, e->stayed, e->n_stayed, s) ? 0 : mlo_failed(m);
}

/* One fused node: the nodes that replace it, or why it stays. */
static void mlo_expand_node(mlo_expansion *x, const mlo_fused *f) {
    x->dtype = mlo_x_form(x, 0).dtype;
    for (size_t i = 0; f->inputs[i]; i++)
        if (f->inputs[i] == 'x' && !*mlo_x_in(x, i)) mlo_x_stay(x, "it has no input %zu", i);
    if (!x->n->n_output || !*x->n->output[0])
        mlo_x_stay(x, "it has no first output");
    else if (!x->dtype)
        mlo_x_stay(x, "the element type of '%.100s' is unknown", mlo_x_in(x, 0));
    else if (x->opset < f->since)
        mlo_x_stay(x, "the model is written in opset %d; it takes %d or later", x->opset, f->since);
    for (size_t i = 0; i < x->n->n_attr; i++)
        if (x->n->attr[i]->ref)
            mlo_x_stay(x, "its attribute %.60s is one of a function", x->n->attr[i]->name);
    if (!x->why) f->expand(x);
}

static int mlo_expand_graph(mlo *m, void *graph, void *user) {
    mlo_graph *g = (mlo_graph *)graph;
    mlo_expander *e = (mlo_expander *)user;
    mlo_node **list = NULL;
    size_t n = 0;
    int deeploy = mlo_dialect_speaks(g);
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_fused *f = mlo_fused_of(g->node[i]);
        mlo_expansion x = { m, g, g->node[i], mlo_opset_of(m), MLO_UNDEFINED, NULL, 0, NULL, 0 };
        const mlo_node *gemm = f ? NULL : mlo_x_flattened(&x);
        const mlo_dialect *twin = deeploy
            ? mlo_expand_twin(m, x.n, mlo_x_form(&x, 0).dtype, x.opset)
            : NULL;
        if (twin) e->dialects = e->dialect[twin - mlo_dialects] = 1;
        if (f)
            mlo_expand_node(&x, f);
        else if (gemm)
            mlo_expand_flattened(&x, gemm);
        else if (mlo_eq(x.n->domain, "com.microsoft.nchwc"))
            mlo_x_stay(&x,
                "its layout is that of the processor it was optimized for; save the model at "
                "ORT_ENABLE_EXTENDED, not ALL");
        if (m->error.code) return mlo_failed(m);
        if (x.why) MLO_TRY(mlo_expand_stayed(m, e, g->node[i], x.why));
        if (!(f || gemm) || x.why) {
            x.made = &g->node[i];
            x.n_made = 1;
        } else
            e->expanded++;
        if (f && !x.why && f->expand == mlo_expand_dialect)
            e->dialects = e->dialect[mlo_dialect_of(g->node[i]) - mlo_dialects] = 1;
        for (size_t k = 0; k < x.n_made; k++)
            if (!MLO_PUSH(m, list, n, x.made[k])) return mlo_failed(m);
    }
    g->node = list;
    g->n_node = n;
    return 0;
}

/* Expands all fused nodes, of nested graphs too, and infers what has become visible. */
static int mlo_expand(mlo *m) {
    mlo_graph *g = m->model->graph;
    mlo_expander e;
    memset(&e, 0, sizeof e);
    MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_GRAPH, mlo_expand_graph, &e));
    for (size_t i = 0; i < e.n_stayed; i++) {
        const mlo_stayed *s = &e.stayed[i];
        if (s->count)
            mlo_warn(m, "%s (%s) and %zu more stay as they are: %s", mlo_node_name(s->n), s->n->op,
                s->count, s->why);
        else
            mlo_warn(m, "%s (%s) stays as it is: %s", mlo_node_name(s->n), s->n->op, s->why);
    }
    if (!e.expanded) return 0;
    if (e.dialects) MLO_TRY(mlo_dialect_functions(m, e.dialect));
    MLO_TRY(mlo_index(m, g));
    return mlo_infer(m);
}
