/* expand: replaces fused operators, as ONNX Runtime and its tools write them, and ONNX's Attention,
 * by the standard operators that they stand for.
 *
 * in:  an indexed model with inferred types and shapes.
 * out: the same function in standard operators of the model's own opset; the index, types and
 *     shapes are stale.
 *
 * To add an operator: its expansion (short, with builder.c), one line in the table, a
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
    if (mlo_differs(alpha, 1)) {
        c = mlo_x_number(x, (double)alpha);
        y = MLO_X(x, "Mul", v, c);
    }
    y = MLO_X(x, "Sigmoid", y);
    mlo_x_out(x, 0, MLO_X(x, "Mul", v, y));
}

/* Erfc(x) is 1 - erf(x): no standard operator, but what tf2onnx leaves of TensorFlow's GELU. */
static void mlo_expand_erfc(mlo_expansion *x) {
    const char *one = mlo_x_number(x, 1), *y = MLO_X(x, "Erf", mlo_x_in(x, 0));
    mlo_x_out(x, 0, MLO_X(x, "Sub", one, y));
}

/* ---- pooling over all places ----------------------------------------------- */

/* Global(Average|Max)Pool: the mean or the largest over all axes behind that of channels. */
static void mlo_expand_global_pool(mlo_expansion *x) {
    int64_t axes[MLO_MAX_RANK];
    const int rank = mlo_x_rank(x, 0), mean = mlo_eq(x->n->op, "GlobalAveragePool");
    if (rank < 3) mlo_x_stay(x, "the rank of its input is %d", rank);
    for (int i = 2; i < rank; i++) axes[i - 2] = i;
    if (x->why) return;
    mlo_x_out(x, 0,
        mlo_x_axes(
            x, mean ? "ReduceMean" : "ReduceMax", mlo_x_in(x, 0), axes, (size_t)rank - 2, 18));
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
    if (mlo_differs(alpha, 1)) {
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
        const char *op;
        const char *attr[2];
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
    mlo_x_attrs_of(x, x->n, "activation");
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
/* One place is left. */
static int mlo_shape_global_pool(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    for (int i = 2; i < s->out[0].rank; i++) s->out[0].dims[i] = 1;
    return 0;
}
/* As x, with N channels. */
static int mlo_shape_nbits(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    if (s->out[0].rank > 0) s->out[0].dims[s->out[0].rank - 1] = mlo_int(s->node, "N", -1);
    return 0;
}
/* Rows of a table, each as wide as its scales have blocks: known where the table says how many bytes those are. */
static int mlo_shape_gather_blocks(mlo_shapes *s) {
    const mlo_form w = mlo_form_in(s, 0), rows = mlo_form_in(s, 1);
    const int64_t bits = mlo_int(s->node, "bits", 4);
    s->out[0].dtype = mlo_form_in(s, 2).dtype;
    if (w.rank != 2 || rows.rank < 0 || rows.rank >= MLO_MAX_RANK || bits < 1) return 0;
    s->out[0] = mlo_form_with(&rows, rows.rank, w.dims[1] < 0 ? -1 : w.dims[1] * (8 / bits));
    s->out[0].dtype = mlo_form_in(s, 2).dtype;
    return 0;
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

/* The node of this graph that makes a node's first input; NULL: none does. */
static mlo_node *mlo_x_maker(const mlo_expansion *x, const mlo_node *n) {
    const mlo_value *v = mlo_has_input(n, 0) ? mlo_value_of(x->g, n->input[0]) : NULL;
    return v && v->graph == x->g ? v->producer : NULL;
}

/* Reshape(Gemm(Reshape(v), w, c)) to [.., N]: how tools, and Conv1D, write v w + c for more than
 * two axes. The Gemm, or NULL. */
static mlo_node *mlo_x_flattened(const mlo_expansion *x) {
    mlo_node *gemm = mlo_is(x->n, "Reshape") ? mlo_x_maker(x, x->n) : NULL;
    mlo_node *first = mlo_is(gemm, "Gemm") ? mlo_x_maker(x, gemm) : NULL;
    if (!mlo_is(first, "Reshape") || mlo_int(gemm, "transA", 0) || mlo_float(gemm, "alpha", 1) != 1
        || mlo_float(gemm, "beta", 1) != 1)
        return NULL;
    mlo_form v = mlo_x_form_at(x, first, 0), w = mlo_x_form_at(x, gemm, 1);
    mlo_form c = mlo_x_form_at(x, gemm, 2);
    mlo_form y = mlo_form_of(mlo_value_of(x->g, x->n->output[0]));
    int flip = mlo_int(gemm, "transB", 0) != 0;
    if (!mlo_form_known(&v) || !mlo_form_known(&y) || w.rank != 2 || y.rank < 3
        || y.dims[y.rank - 1] != w.dims[!flip])
        return NULL;
    return !mlo_has_input(gemm, 2) || (c.rank == 1 && c.dims[0] == w.dims[!flip]) ? gemm : NULL;
}

static void mlo_expand_flattened(mlo_expansion *x, const mlo_node *gemm) {
    static const int64_t flip[] = { 1, 0 };
    const char *v = mlo_x_maker(x, gemm)->input[0], *w = gemm->input[1];
    mlo_form from = mlo_form_of(mlo_value_of(x->g, v));
    mlo_form to = mlo_form_of(mlo_value_of(x->g, x->n->output[0]));
    mlo_form k = mlo_form_of(mlo_value_of(x->g, w));
    to.dims[to.rank - 1] = k.dims[mlo_int(gemm, "transB", 0) != 0];
    if (from.rank != to.rank || memcmp(from.dims, to.dims, (size_t)to.rank * sizeof *to.dims))
        v = mlo_x_reshape(x, v, to.dims, (size_t)to.rank);
    if (mlo_int(gemm, "transB", 0)) w = mlo_x_transpose(x, w, flip, 2);
    v = MLO_X(x, "MatMul", v, w);
    mlo_x_out(x, 0, mlo_x_plus(x, v, mlo_has_input(gemm, 2) ? gemm->input[2] : ""));
    for (size_t i = 0; i < x->n_made; i++)
        if (mlo_node_meta(x->m, x->made[i], gemm)) return;
}

/* ---- Deeploy's dialect ---------------------------------------------------- */

/* The number that an attribute says, however it says it: an integer, a float, a tensor of one
 * element. */
static int64_t mlo_x_whole_attr(mlo_expansion *x, const char *names) {
    const char *other = strchr(names, '|');
    const mlo_attr *a = mlo_attr_of(
        x->n, other ? mlo_intern_n(x->m, names, (size_t)(other - names)) : names);
    double v = 0;
    if (!a && other) a = mlo_attr_of(x->n, other + 1);
    int known = a
        && (a->type == MLO_ATTR_INT || a->type == MLO_ATTR_FLOAT
            || (a->type == MLO_ATTR_TENSOR && mlo_tensor_count(a->t) == 1
                && mlo_tensor_is_numbers(a->t) && !mlo_tensor_doubles(x->m, a->t, 0, 1, &v)));
    if (known && a->type == MLO_ATTR_INT) return a->i;
    if (known && a->type == MLO_ATTR_FLOAT) v = (double)a->f;
    if (!known || floor(v) < v || !(fabs(v) < 9e15)) {
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
    for (size_t i = 0; i < x->n->n_attr; i++)
        if (!mlo_dialect_knows(d, x->n->attr[i]->name))
            mlo_x_stay(x, "its attribute %.60s is not known", x->n->attr[i]->name);
    int per_channel = mlo_eq(x->n->op, "RequantShift");
    for (; n < x->n->n_input && n < 4; n++)
        in[n] = n && per_channel ? mlo_x_channels(x, n) : mlo_x_in(x, n);
    for (int k = 0; d->numbers[k]; k++) {
        int64_t v = mlo_x_whole_attr(x, d->numbers[k]);
        in[n++] = mlo_x_whole(x, v);
    }
    if (mlo_x_stopped(x)) return;
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
        if (size < 1 || size > INT32_MAX / N) {
            mlo_x_stay(x, "the size of axis %d is unknown, or too large", (int)list[i]);
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

/* CastLike(x, like) of another known type: Cast, which folding can do when x is a constant. */
static void mlo_expand_cast_like(mlo_expansion *x) {
    mlo_x_out(x, 0, mlo_x_cast(x, mlo_x_in(x, 0), mlo_x_form(x, 1).dtype));
}
static int mlo_x_casts(mlo_expansion *x) {
    const mlo_dtype from = mlo_x_form(x, 0).dtype, to = mlo_x_form(x, 1).dtype;
    return from && to && from != to;
}

/* The float twins of Deeploy's integer networks keep the integers' attributes on standard
 * operators, where they mean nothing, and write HardSwish where the opset has none yet. Returns
 * the entry that the node now needs, or NULL. */
static const mlo_dialect *mlo_expand_twin(mlo *m, mlo_node *n, mlo_dtype dtype, int opset) {
    if (!mlo_is(n, "Div") && !mlo_is(n, "HardSwish")) return NULL;
    n->n_attr = 0;
    if (!mlo_is(n, "HardSwish") || opset >= 14 || dtype != MLO_FLOAT) return NULL;
    n->domain = mlo_intern(m, "mlo");
    mlo_attr_int(m, n, "to", dtype);
    return mlo_dialect_of(n);
}

/* ---- the table ------------------------------------------------------------ */

typedef struct {
    mlo_op op;
    void (*expand)(mlo_expansion *x);
    const char *inputs;
    int since;
    const char *attrs;
    int (*applies)(mlo_expansion *x);
} mlo_fused;
/* expand: NULL when only its form is known; inputs: x for each it must have, - for one it may
 * lack; attrs: the attributes that it may have, NULL: whatever its schema or its expansion says; since: the least
 * opset; applies: which of the nodes are expanded, NULL: all */
#define MLO_FUSED(name, inputs, shape, expand, attrs) \
    { { name, mlo_shape_##shape, NULL, 0 }, mlo_expand_##expand, inputs, MLO_LIFTED, attrs, NULL }
#define MLO_CARRIED(name, shape) { { name, mlo_shape_##shape, NULL, 0 }, NULL, "", 1, NULL, NULL }
/* Deeploy writes its operators into the standard domain, or into that of ONNX Runtime's extensions. */
#define MLO_TWICE(name, inputs, shape, expand, since)                                  \
    { { name, shape, NULL, 0 }, expand, inputs, since, NULL, NULL }, {                 \
        { "ai.onnx.contrib." name, shape, NULL, 0 }, expand, inputs, since, NULL, NULL \
    }
#define MLO_DIALECT(name, inputs) MLO_TWICE(name, inputs, mlo_shape_integers, mlo_expand_dialect, 9)
#define MLO_GQA_ATTRS                                                                       \
    "num_heads kv_num_heads scale softcap causal local_window_size sliding_window_cache "   \
    "do_rotary rotary_interleaved qk_norm_epsilon q_norm_epsilon k_norm_epsilon qk_output " \
    "smooth_softmax k_quant_type v_quant_type kv_cache_bit_width"
static const mlo_fused mlo_fused_ops[] = {
    MLO_FUSED("com.microsoft.Attention", "xx-----", attention, attention,
        "num_heads unidirectional qkv_hidden_sizes mask_filter_value scale do_rotary "
        "rotary_embedding_dim past_present_share_buffer"),
    MLO_FUSED("com.microsoft.MultiHeadAttention", "xxx-------", multi_head, multi_head,
        "num_heads unidirectional mask_filter_value scale"),
    MLO_FUSED("com.microsoft.GroupQueryAttention", "x---------------", group_query, group_query,
        MLO_GQA_ATTRS),
    MLO_FUSED("com.microsoft.SkipLayerNormalization", "xxx--", skip_norm, skip_norm, "epsilon"),
    MLO_FUSED(
        "com.microsoft.SkipSimplifiedLayerNormalization", "xxx-", skip_norm, skip_norm, "epsilon"),
    MLO_FUSED("com.microsoft.EmbedLayerNormalization", "x-xx-xx--", embed, embed,
        "epsilon mask_index_type"),
    MLO_FUSED("com.microsoft.FusedMatMul", "xx", fused_matmul, fused_matmul,
        "alpha transA transB transBatchA transBatchB"),
    MLO_FUSED("com.microsoft.FusedGemm", "xx-", Gemm, fused_gemm,
        "alpha beta transA transB activation activation_alpha activation_beta activation_gamma"),
    MLO_FUSED("com.microsoft.FusedConv", "xx--", Conv, fused_conv,
        "activation activation_params auto_pad dilations group kernel_shape pads strides"),
    MLO_FUSED("com.microsoft.MatMulIntegerToFloat", "xxxx---", scaled_product, matmul_to_float, ""),
    MLO_FUSED("com.microsoft.DynamicQuantizeMatMul", "xxx--", scaled_product, dynamic_matmul, ""),
    MLO_FUSED(
        "com.microsoft.MatMulNBits", "xxx---", nbits, nbits, "K N bits block_size accuracy_level"),
    MLO_FUSED("com.microsoft.GatherBlockQuantized", "xxx-", gather_blocks, gather_blocks,
        "bits block_size gather_axis quantize_axis"),
    MLO_FUSED("com.microsoft.Gelu", "x", same, gelu, ""),
    MLO_FUSED("com.microsoft.BiasGelu", "xx", same, gelu, ""),
    MLO_FUSED("com.microsoft.FastGelu", "x-", same, fast_gelu, ""),
    MLO_FUSED("com.microsoft.QuickGelu", "x", same, quick_gelu, "alpha"),
    MLO_FUSED("com.microsoft.RotaryEmbedding", "xxxx", same, rotary,
        "interleaved is_packed_batching num_heads rotary_embedding_dim scale"),
    MLO_CARRIED("com.microsoft.QLinearAdd", two),
    MLO_CARRIED("com.microsoft.QLinearMul", two),
    MLO_CARRIED("com.microsoft.QGemm", qgemm),
    MLO_CARRIED("com.microsoft.QLinearConcat", qconcat),
    MLO_CARRIED("com.microsoft.QLinearSoftmax", same),
    MLO_CARRIED("com.microsoft.QLinearSigmoid", same),
    { { "Einsum", mlo_shape_einsum, NULL, 0 }, mlo_expand_einsum, "x", 12, NULL, NULL },
    { { "GlobalAveragePool", mlo_shape_global_pool, NULL, 1 }, mlo_expand_global_pool, "x", 1, NULL,
        NULL },
    { { "GlobalMaxPool", mlo_shape_global_pool, NULL, 1 }, mlo_expand_global_pool, "x", 1, NULL,
        NULL },
    MLO_FUSED("Erfc", "x", same, erfc, ""),
    MLO_FUSED("SimplifiedLayerNormalization", "xx", same, rms, "axis epsilon stash_type"),
    { { "LayerNormalization", mlo_shape_LayerNormalization, NULL, 0 }, mlo_expand_early_norm, "xx",
        1, NULL, mlo_x_is_early_norm },
    { { "CastLike", mlo_shape_CastLike, NULL, 0 }, mlo_expand_cast_like, "xx", 15, "saturate",
        mlo_x_casts },
    MLO_TWICE("IntegerMean", "x", mlo_shape_Reduce, mlo_expand_integer_mean, 10),
    MLO_TWICE("RMSNorm", "xx", mlo_shape_same, mlo_expand_dialect, 9),
    { { "Attention", mlo_shape_Attention, NULL, 3 }, mlo_expand_standard_attention, "xxx", 23, NULL,
        NULL },
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
    size_t n_stayed;
    size_t expanded; /* nodes that were */
    uint8_t dialect[MLO_N_DIALECTS]; /* 1: it was met */
    int dialects; /* 1: some were */
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

/* Is a word one of a list with spaces between them? */
static int mlo_is_listed(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *s = list; (s = strstr(s, word)) != NULL; s += n)
        if ((s == list || s[-1] == ' ') && (!s[n] || s[n] == ' ')) return n > 0;
    return 0;
}

/* What a newer runtime than the expansion gave an operator may mean anything. */
static void mlo_x_check_signature(mlo_expansion *x, const mlo_fused *f) {
    for (size_t i = 0; i < x->n->n_attr; i++)
        if (!mlo_is_listed(f->attrs, x->n->attr[i]->name))
            mlo_x_stay(x, "its attribute %.60s is not known", x->n->attr[i]->name);
    for (size_t i = strlen(f->inputs); i < x->n->n_input; i++)
        if (*mlo_x_in(x, i)) mlo_x_stay(x, "its input %zu is not known", i);
}

/* One fused node: the nodes that replace it, or why it stays. */
static void mlo_expand_node(mlo_expansion *x, const mlo_fused *f) {
    x->dtype = mlo_x_form(x, 0).dtype;
    for (size_t i = 0; f->inputs[i]; i++)
        if (f->inputs[i] == 'x' && !*mlo_x_in(x, i)) mlo_x_stay(x, "it has no input %zu", i);
    if (!*x->n->output[0])
        mlo_x_stay(x, "it has no first output");
    else if (!x->dtype)
        mlo_x_stay(x, "the element type of '%.100s' is unknown", mlo_x_in(x, 0));
    else if (x->opset < f->since)
        mlo_x_stay(x, "the model is written in opset %d; it takes %d or later", x->opset, f->since);
    for (size_t i = 0; i < x->n->n_attr; i++)
        if (x->n->attr[i]->ref)
            mlo_x_stay(x, "its attribute %.60s is one of a function", x->n->attr[i]->name);
    if (f->attrs) mlo_x_check_signature(x, f);
    if (!mlo_x_stopped(x)) f->expand(x);
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
        if (f && f->applies && !f->applies(&x)) f = NULL;
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
