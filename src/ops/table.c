/* ops: the table of standard operators; finds a node's operator among all tables.
 *
 * in:  a node.
 * out: its mlo_op (shape rule, evaluation), or NULL.
 *
 * To add an op: its run (and shape rule, if none of the usual ones fits) in the family's file, one
 * line here, a test in tests/test_ops.py.
 *
 * invariant: names are unique over all tables; a table that is added later (the kernels of domain
 *     mlo) cannot change a standard op.
 * example: mlo_ops_add(m, &mlo_qonnx_ops[0], n, sizeof mlo_qonnx_ops[0]); ... const mlo_op *op =
 *     mlo_op_of(m, node);
 * cost: one map look-up; the tables are walked for the first node of each kind only, so opening a
 *     handle costs nothing.
 */
struct mlo_op_index {
    struct {
        const mlo_op *first;
        size_t n; /* operators */
        size_t stride; /* bytes from one to the next */
    } table[32];
    size_t n_table;
    /* interned name ("MatMul", "mlo.MVU") -> mlo_op, or mlo_no_op */
    mlo_map seen;
};
static const mlo_op mlo_no_op = { "", NULL, NULL, 0 };

#define MLO_OP(name, rule) { #name, mlo_shape_##rule, mlo_run_##name, 1 }
#define MLO_OP2(name, rule) { #name, mlo_shape_##rule, mlo_run_##name, 2 }
#define MLO_OP3(name, rule) { #name, mlo_shape_##rule, mlo_run_##name, 3 }
#define MLO_OP_AS(name, rule, run) { #name, mlo_shape_##rule, mlo_run_##run, 1 }
#define MLO_OP_CARRIED(name, least) { #name, mlo_shape_##name, NULL, least }
static const mlo_op mlo_standard_ops[] = {
    /* one operand */
    MLO_OP(Abs, same),
    MLO_OP(Acos, same),
    MLO_OP(Acosh, same),
    MLO_OP(Asin, same),
    MLO_OP(Asinh, same),
    MLO_OP(Atan, same),
    MLO_OP(Atanh, same),
    MLO_OP(BitwiseNot, same),
    MLO_OP(Ceil, same),
    MLO_OP(Celu, same),
    MLO_OP(Cos, same),
    MLO_OP(Cosh, same),
    MLO_OP(Elu, same),
    MLO_OP(Erf, same),
    MLO_OP(Exp, same),
    MLO_OP(Floor, same),
    MLO_OP(Gelu, same),
    MLO_OP(HardSigmoid, same),
    MLO_OP(HardSwish, same),
    MLO_OP(LeakyRelu, same),
    MLO_OP(Log, same),
    MLO_OP(Mish, same),
    MLO_OP(Neg, same),
    MLO_OP(Reciprocal, same),
    MLO_OP(Relu, same),
    MLO_OP(Round, same),
    MLO_OP(Selu, same),
    MLO_OP(Shrink, same),
    MLO_OP(Sigmoid, same),
    MLO_OP(Sign, same),
    MLO_OP(Sin, same),
    MLO_OP(Sinh, same),
    MLO_OP(Softplus, same),
    MLO_OP(Softsign, same),
    MLO_OP(Sqrt, same),
    MLO_OP(Swish, same),
    MLO_OP(Tan, same),
    MLO_OP(Tanh, same),
    MLO_OP(ThresholdedRelu, same),
    MLO_OP(IsInf, bool),
    MLO_OP(IsNaN, bool),
    MLO_OP(Not, bool),
    MLO_OP(Cast, Cast),
    { "CastLike", mlo_shape_CastLike, mlo_run_Cast, 2 },
    /* several */
    MLO_OP2(Add, broadcast),
    MLO_OP2(BitShift, broadcast),
    MLO_OP2(BitwiseAnd, broadcast),
    MLO_OP2(BitwiseOr, broadcast),
    MLO_OP2(BitwiseXor, broadcast),
    MLO_OP2(Div, broadcast),
    MLO_OP(Max, broadcast),
    MLO_OP(Mean, broadcast),
    MLO_OP(Min, broadcast),
    MLO_OP2(Mod, broadcast),
    MLO_OP2(Mul, broadcast),
    MLO_OP2(Pow, Pow),
    MLO_OP2(PRelu, broadcast),
    MLO_OP2(Sub, broadcast),
    MLO_OP(Sum, broadcast),
    MLO_OP(Clip, same),
    MLO_OP3(Where, Where),
    MLO_OP2(And, compare),
    MLO_OP2(Equal, compare),
    MLO_OP2(Greater, compare),
    MLO_OP2(GreaterOrEqual, compare),
    MLO_OP2(Less, compare),
    MLO_OP2(LessOrEqual, compare),
    MLO_OP2(Or, compare),
    MLO_OP2(Xor, compare),
    MLO_OP2(CumSum, same),
    /* shapes */
    MLO_OP_AS(Identity, same, copy),
    MLO_OP(Dropout, Dropout),
    MLO_OP_AS(Reshape, Reshape, copy),
    MLO_OP_AS(Flatten, Flatten, copy),
    MLO_OP_AS(Squeeze, Squeeze, copy),
    MLO_OP_AS(Unsqueeze, Unsqueeze, copy),
    MLO_OP(Transpose, Transpose),
    MLO_OP(Slice, Slice),
    MLO_OP(Split, Split),
    MLO_OP2(Expand, Expand),
    MLO_OP2(Tile, Tile),
    MLO_OP(Concat, Concat),
    MLO_OP(Shape, Shape),
    MLO_OP(Size, Size),
    { "Constant", mlo_shape_Constant, mlo_run_Constant, 0 },
    MLO_OP(ConstantOfShape, ConstantOfShape),
    MLO_OP3(Range, Range),
    MLO_OP2(Gather, Gather),
    MLO_OP2(GatherElements, GatherElements),
    MLO_OP2(GatherND, GatherND),
    MLO_OP3(ScatterND, same),
    MLO_OP3(ScatterElements, same),
    MLO_OP(Trilu, same),
    MLO_OP(EyeLike, EyeLike),
    MLO_OP(Pad, Pad),
    MLO_OP(Resize, Resize),
    /* products, norms */
    MLO_OP2(MatMul, MatMul),
    MLO_OP2(Gemm, Gemm),
    MLO_OP2(MatMulInteger, MatMulInteger),
    MLO_OP2(Conv, Conv),
    MLO_OP2(ConvTranspose, ConvTranspose),
    MLO_OP(MaxPool, MaxPool),
    { "AveragePool", mlo_shape_MaxPool, mlo_run_AveragePool, 1 },
    MLO_OP(Softmax, same),
    MLO_OP(LogSoftmax, same),
    MLO_OP2(LayerNormalization, LayerNormalization),
    MLO_OP2(RMSNormalization, LayerNormalization),
    MLO_OP3(GroupNormalization, same),
    MLO_OP3(InstanceNormalization, same),
    MLO_OP3(RotaryEmbedding, RotaryEmbedding),
    { "BatchNormalization", mlo_shape_same, mlo_run_BatchNormalization, 5 },
    /* reductions */
    MLO_OP(ReduceSum, Reduce),
    MLO_OP(ReduceMean, Reduce),
    MLO_OP(ReduceMax, Reduce),
    MLO_OP(ReduceMin, Reduce),
    MLO_OP(ReduceProd, Reduce),
    MLO_OP(ReduceSumSquare, Reduce),
    MLO_OP(ReduceL1, Reduce),
    MLO_OP(ReduceL2, Reduce),
    MLO_OP(ReduceLogSum, Reduce),
    MLO_OP(ReduceLogSumExp, Reduce),
    MLO_OP(ArgMax, ArgMax),
    MLO_OP_AS(ArgMin, ArgMax, ArgMin),
    /* quantization */
    MLO_OP_CARRIED(QLinearMatMul, 8),
    MLO_OP_CARRIED(QLinearConv, 8),
    MLO_OP2(ConvInteger, ConvInteger),
    MLO_OP2(QuantizeLinear, QuantizeLinear),
    MLO_OP2(DequantizeLinear, DequantizeLinear),
    MLO_OP(DynamicQuantizeLinear, DynamicQuantizeLinear),
};

/* Adds a table: the first op, how many, and how far apart they lie (a kernel holds an op among
 * other things). */
static int mlo_ops_add(mlo *m, const mlo_op *first, size_t n, size_t stride) {
    if (!m->ops) {
        if (!(m->ops = MLO_NEW(m, struct mlo_op_index))) return mlo_failed(m);
        MLO_TRY(mlo_ops_add(m, mlo_standard_ops, sizeof mlo_standard_ops / sizeof *mlo_standard_ops,
            sizeof *mlo_standard_ops));
    }
    struct mlo_op_index *x = m->ops;
    if (!n) return 0;
    if (x->n_table == sizeof x->table / sizeof *x->table)
        return mlo_fail_at(m, MLO_E_BUG, NULL, "more than %zu tables of operators", x->n_table);
    x->table[x->n_table].first = first;
    x->table[x->n_table].n = n;
    x->table[x->n_table++].stride = stride;
    return 0;
}

/* The op of this name in the first table that has it. */
static const mlo_op *mlo_op_find(const struct mlo_op_index *x, const char *name) {
    for (size_t t = 0; t < x->n_table; t++)
        for (size_t i = 0; i < x->table[t].n; i++) {
            const mlo_op *op = (const mlo_op *)(const void *)((const char *)x->table[t].first
                + i * x->table[t].stride);
            if (!strcmp(op->name, name)) return op;
        }
    return &mlo_no_op;
}

/* The op of a node, NULL when there is none. */
static const mlo_op *mlo_op_of(mlo *m, const mlo_node *n) {
    if (!m->ops && mlo_ops_add(m, NULL, 0, 0)) return NULL;
    /* "mlo.MVU" of no domain is not MVU of domain mlo */
    if (n->op && strchr(n->op, '.')) return NULL;
    int standard = !n->domain || !*n->domain || mlo_eq(n->domain, "ai.onnx");
    const char *name = standard ? n->op : mlo_format(m, "%s.%s", n->domain, n->op);
    if (!name) return NULL;
    const mlo_op *op = (const mlo_op *)mlo_map_get(&m->ops->seen, name);
    if (!op
        && mlo_map_put(m, &m->ops->seen, name, (void *)(uintptr_t)(op = mlo_op_find(m->ops, name))))
        return NULL;
    return op == &mlo_no_op ? NULL : op;
}

/* The version of the standard operators that the model is written in. */
static int mlo_opset_of(const mlo *m) {
    const mlo_model *model = m->model;
    for (size_t i = 0; model && i < model->n_opset; i++)
        if (!model->opset[i].domain || !*model->opset[i].domain
            || mlo_eq(model->opset[i].domain, "ai.onnx"))
            return (int)model->opset[i].version;
    return 1;
}

/* Attributes that say what their absence means, whatever the opset: ONNX Runtime spells them out
 * where it rewrote a node, exporters do or do not. Numbers that people look for (an epsilon) are
 * not among them. */
static int mlo_attr_is_default(const mlo_node *n, const mlo_attr *a) {
    static const struct {
        const char *op;
        const char *name;
        int type;
        double value;
    } known[] = { { "LayerNormalization", "axis", MLO_ATTR_INT, -1 },
        { "LayerNormalization", "stash_type", MLO_ATTR_INT, 1 },
        { "RMSNormalization", "axis", MLO_ATTR_INT, -1 },
        { "RMSNormalization", "stash_type", MLO_ATTR_INT, 1 },
        { "Gemm", "alpha", MLO_ATTR_FLOAT, 1 }, { "Gemm", "beta", MLO_ATTR_FLOAT, 1 },
        { "Gemm", "transA", MLO_ATTR_INT, 0 }, { "Gemm", "transB", MLO_ATTR_INT, 0 },
        { "Gather", "axis", MLO_ATTR_INT, 0 }, { "Split", "axis", MLO_ATTR_INT, 0 },
        { "Flatten", "axis", MLO_ATTR_INT, 1 }, { "Reshape", "allowzero", MLO_ATTR_INT, 0 },
        { "Cast", "saturate", MLO_ATTR_INT, 1 }, { "ReduceMean", "keepdims", MLO_ATTR_INT, 1 },
        { "ReduceSum", "keepdims", MLO_ATTR_INT, 1 },
        { "ReduceMean", "noop_with_empty_axes", MLO_ATTR_INT, 0 },
        { "ReduceSum", "noop_with_empty_axes", MLO_ATTR_INT, 0 },
        { "Shape", "start", MLO_ATTR_INT, 0 }, { "QuantizeLinear", "axis", MLO_ATTR_INT, 1 },
        { "QuantizeLinear", "block_size", MLO_ATTR_INT, 0 },
        { "QuantizeLinear", "output_dtype", MLO_ATTR_INT, 0 },
        { "QuantizeLinear", "saturate", MLO_ATTR_INT, 1 },
        { "QuantizeLinear", "precision", MLO_ATTR_INT, 0 },
        { "DequantizeLinear", "axis", MLO_ATTR_INT, 1 },
        { "DequantizeLinear", "block_size", MLO_ATTR_INT, 0 },
        { "DequantizeLinear", "output_dtype", MLO_ATTR_INT, 0 } };
    for (size_t i = 0; !a->ref && i < sizeof known / sizeof *known; i++) {
        if (a->type != known[i].type || !mlo_eq(a->name, known[i].name) || !mlo_is(n, known[i].op))
            continue;
        double off = (a->type == MLO_ATTR_INT ? (double)a->i : (double)a->f) - known[i].value;
        return !mlo_differs(off, 0) && off == off;
    }
    return 0;
}

/* ---- calling -------------------------------------------------------------- */

static mlo_form mlo_form_of_array(const mlo_array *a) {
    mlo_form f = { MLO_UNDEFINED, -1, { 0 } };
    if (!a) return f;
    f.dtype = a->dtype;
    f.rank = a->rank;
    for (int i = 0; i < a->rank; i++) f.dims[i] = a->dims[i];
    return f;
}
static const mlo_array *mlo_call_value(const mlo_shapes *s, size_t i) {
    const mlo_call *c = (const mlo_call *)s->from;
    return c->in[i];
}

/* Makes the outputs whose form the shape rule knows: the first always (so runs may rely on it),
 * others when somebody wants them. -1, and no failure: one has more than `limit` elements. */
static int mlo_call_prepare(mlo_call *c, const mlo_op *op, mlo_shapes *s, int64_t limit) {
    if (!c->n_out) return mlo_fail(c->m, MLO_E_GRAPH, c->node, "has no output");
    /* so that no run needs to look */
    if (op->shape != mlo_shape_Constant && (!c->n_in || !c->in[0]))
        return mlo_fail(c->m, MLO_E_GRAPH, c->node, "has no first input");
    MLO_TRY(op->shape(s));
    if (!mlo_form_known(&s->out[0]))
        return mlo_fail(c->m, MLO_E_SHAPE, c->node,
            "the form of its output cannot be told (%s %s); is an input missing?",
            mlo_dtype_name(s->out[0].dtype), mlo_dims_text(c->m, s->out[0].rank, s->out[0].dims));
    for (size_t i = 0; i < c->n_out; i++)
        if (mlo_form_known(&s->out[i]) && mlo_form_count(&s->out[i]) > limit) return -1;
    for (size_t i = 0; i < c->n_out; i++) {
        if ((i && !*c->node->output[i]) || !mlo_form_known(&s->out[i])) continue;
        if (!mlo_dtype_size(s->out[i].dtype))
            return mlo_fail(c->m, MLO_E_UNSUPPORTED, c->node,
                "output %zu is %s, which cannot be evaluated", i, mlo_dtype_name(s->out[i].dtype));
        if (mlo_form_count(&s->out[i]) >= (int64_t)1 << 58)
            return mlo_fail(c->m, MLO_E_SHAPE, c->node, "output %zu, %s, is too large to evaluate",
                i, mlo_dims_text(c->m, s->out[i].rank, s->out[i].dims));
        if (!(c->out[i] = mlo_array_new(c->m, s->out[i].dtype, s->out[i].rank, s->out[i].dims)))
            return mlo_failed(c->m);
    }
    return 0;
}

/* Evaluates one node on arrays (NULL: absent input). out[0..node->n_output) are the caller's to
 * free; NULL where nobody wants it, and all of them when one would have more than `limit` elements. */
static int mlo_call_limited(mlo *m, const mlo_op *op, mlo_node *node, int opset, int64_t limit,
    const mlo_array *const *in, mlo_array **out) {
    size_t n_in = node->n_input, n_out = node->n_output;
    mlo_form *forms = (mlo_form *)mlo_scratch(m, n_in + n_out + 1, sizeof *forms);
    if (!forms) return mlo_failed(m);
    for (size_t i = 0; i < n_in; i++) forms[i] = mlo_form_of_array(in[i]);
    for (size_t i = 0; i < n_out; i++) {
        forms[n_in + i] = mlo_form_of_array(NULL);
        out[i] = NULL;
    }
    mlo_call c = { m, node, opset, in, n_in, out, n_out, NULL };
    mlo_shapes s = { m, node, opset, forms, n_in, forms + n_in, n_out, mlo_call_value, NULL };
    s.from = &c;
    c.forms = &s;
    if (!mlo_call_prepare(&c, op, &s, limit) && !op->run(&c))
        for (size_t i = 0; i < n_out; i++) {
            mlo_form made = mlo_form_of_array(out[i]);
            if (mlo_forms_differ(&made, &s.out[i]))
                mlo_fail(m, MLO_E_BUG, node, "output %zu is %s %s, its shape rule says %s %s", i,
                    mlo_dtype_name(made.dtype), mlo_dims_text(m, made.rank, made.dims),
                    mlo_dtype_name(s.out[i].dtype), mlo_dims_text(m, s.out[i].rank, s.out[i].dims));
        }
    if (m->error.code)
        for (size_t i = 0; i < n_out; i++) {
            mlo_array_free(m, out[i]);
            out[i] = NULL;
        }
    mlo_scratch_free(m, forms);
    return mlo_failed(m);
}
static int mlo_call_node(mlo *m, const mlo_op *op, mlo_node *node, int opset,
    const mlo_array *const *in, mlo_array **out) {
    return mlo_call_limited(m, op, node, opset, INT64_MAX, in, out);
}
