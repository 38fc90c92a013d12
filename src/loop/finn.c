/* finn: writes loops in FINN's form, as FINNLoop nodes instead of Scans.
 *
 * in:  a rolled model; option "as": "scan" (nothing to do here) or "finn".
 * out: for each loop a node FINNLoop of domain finn.custom_op.fpgadataflow.rtl with attributes
 *     body, iteration, inputDataType, outputDataType and backend. Inputs: the activation, then
 *     stacks [iterations, ...]; output: the activation. Names are FINN's: the loop is FINNLoop_0,
 *     a node of its body FINNLoop_0_MatMul_3, a constant inside the body `NAME_push_down`.
 *
 * invariant: a body reads nothing from the outer graph. Constants move into it. FINN has no class
 *     for a computed value that all iterations share (a mask): it becomes a stack that repeats the
 *     value. FINN carries one value and returns only its last state: a loop that carries more, or
 *     whose inner values are read outside, is refused.
 * example: bert-tiny: FINNLoop_0 of 2 iterations with 17 inputs.
 * cost: O(nodes).
 */
typedef struct {
    mlo *m;
    mlo_graph *g;
    mlo_node *scan;
    mlo_node *loop;
    mlo_graph *body;
    mlo_graph made; /* nodes for the outer graph, the loop last */
    int64_t iterations;
    const char *name;
    mlo_map inner; /* name outside -> name in the body */
    mlo_map *names; /* taken names */
    mlo_graph first; /* constants that the body begins with */
} mlo_finn_loop;

/* FINN's name of an element type, NULL when it has none. */
static const char *mlo_finn_type(mlo_dtype t) {
    static const struct {
        mlo_dtype t;
        const char *name;
    } types[] = { { MLO_FLOAT, "FLOAT32" }, { MLO_FLOAT16, "FLOAT16" }, { MLO_INT4, "INT4" },
        { MLO_INT8, "INT8" }, { MLO_INT16, "INT16" }, { MLO_INT32, "INT32" },
        { MLO_UINT4, "UINT4" }, { MLO_UINT8, "UINT8" }, { MLO_UINT16, "UINT16" },
        { MLO_UINT32, "UINT32" } };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].t == t) return types[i].name;
    return NULL;
}

static int mlo_finn_fits(mlo_finn_loop *f) {
    mlo *m = f->m;
    size_t params = mlo_scan_stacks(f->scan), states = f->scan->n_input - params;
    if (states != 1)
        return mlo_fail(m, MLO_E_UNSUPPORTED, f->scan,
            "%zu values are carried from iteration to iteration, a FINNLoop carries one; use --as "
            "scan",
            states);
    if (f->scan->n_output != 1)
        return mlo_fail(m, MLO_E_UNSUPPORTED, f->scan,
            "'%s' is used outside of the loop in each iteration, a FINNLoop hands out nothing but "
            "its last value; use --as scan",
            f->scan->output[1]);
    for (size_t i = 0; i < f->body->n_node; i++)
        if (mlo_is(f->body->node[i], "Scan"))
            return mlo_fail(m, MLO_E_UNSUPPORTED, f->body->node[i],
                "a loop within %s; FINNLoops do not nest; use --as scan", mlo_node_name(f->scan));
    return 0;
}

/* A constant from outside, as a Constant node of the body. */
static const char *mlo_finn_constant(mlo_finn_loop *f, const mlo_value *v) {
    mlo *m = f->m;
    const char *name = mlo_name_free(m, f->names, mlo_format(m, "%s_push_down", v->name));
    mlo_tensor *t = MLO_NEW(m, mlo_tensor);
    mlo_node *n = mlo_node_new(m, "Constant", name);
    mlo_attr *a = mlo_attr_new(m, n, "value", MLO_ATTR_TENSOR);
    mlo_form form = mlo_form_of(v);
    mlo_value_info *info = mlo_info_new(m, mlo_or_empty(name), &form);
    if (!name || !t || !a || mlo_node_output(m, n, name) || !info
        || !MLO_PUSH(m, f->body->info, f->body->n_info, info))
        return NULL;
    *t = *v->tensor;
    t->name = name;
    a->t = t;
    return mlo_graph_add(m, &f->first, n) ? NULL : name;
}

/* A computed value that all iterations share, as one more stack: Expand repeats it. */
static const char *mlo_finn_repeated(mlo_finn_loop *f, const mlo_value *v) {
    mlo *m = f->m;
    mlo_form form = mlo_form_of(v), stacked = mlo_form_stacked(&form, f->iterations);
    if (!mlo_form_known(&form) || stacked.rank < 0) {
        mlo_fail(m, MLO_E_SHAPE, f->scan,
            "reads '%s', whose shape is not known, in every iteration; bind its dimensions with "
            "--dim",
            v->name);
        return NULL;
    }
    const char *name = mlo_name_free(m, f->names, mlo_format(m, "%s_each", v->name));
    const char *stack = name ? mlo_name_free(m, f->names, mlo_format(m, "%s_all", v->name)) : NULL;
    const char *shape = stack ? mlo_name_free(m, f->names, mlo_format(m, "%s_shape", stack)) : NULL;
    mlo_tensor *dims = shape ? mlo_tensor_of_ints(m, shape, stacked.dims, stacked.rank) : NULL;
    mlo_node *n = dims ? mlo_node_new(m, "Expand", stack) : NULL;
    mlo_value_info *info = mlo_info_new(m, mlo_or_empty(name), &form);
    mlo_value_info *outer = mlo_info_new(m, mlo_or_empty(stack), &stacked);
    if (!n || !info || !outer || mlo_graph_init(m, f->g, dims) || mlo_node_input(m, n, v->name)
        || mlo_node_input(m, n, shape) || mlo_node_output(m, n, stack))
        return NULL;
    if (mlo_graph_add(m, &f->made, n) || mlo_node_input(m, f->loop, stack)
        || !MLO_PUSH(m, f->g->info, f->g->n_info, outer)
        || !MLO_PUSH(m, f->body->input, f->body->n_input, info))
        return NULL;
    mlo_warn(m,
        "%s: '%s' is the same in all iterations; FINN has no such input, so it is repeated %lld "
        "times",
        f->name, v->name, (long long)f->iterations);
    return name;
}

/* Notes what the body calls a value from outside, the first time it is met. */
static int mlo_finn_meet(mlo_finn_loop *f, const char *name) {
    const mlo_value *v = mlo_value_of(f->body, name);
    if (!v || v->graph == f->body || mlo_map_get(&f->inner, name)) return 0;
    const char *inner = v->tensor ? mlo_finn_constant(f, v) : mlo_finn_repeated(f, v);
    return inner ? mlo_map_put(f->m, &f->inner, name, (void *)(uintptr_t)inner) : mlo_failed(f->m);
}

/* An indexed graph is not nested too deep. */
static int mlo_finn_meet_all(mlo_finn_loop *f, const mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_node *n = g->node[i];
        for (size_t k = 0; k < n->n_input; k++)
            if (mlo_has_input(n, k)) MLO_TRY(mlo_finn_meet(f, n->input[k]));
        for (size_t a = 0; a < n->n_attr; a++) {
            if (n->attr[a]->g) MLO_TRY(mlo_finn_meet_all(f, n->attr[a]->g));
            for (size_t k = 0; k < n->attr[a]->n_graphs; k++)
                MLO_TRY(mlo_finn_meet_all(f, n->attr[a]->graphs[k]));
        }
    }
    for (size_t i = 0; i < g->n_output; i++) MLO_TRY(mlo_finn_meet(f, g->output[i]->name));
    return 0;
}

/* Renames what nodes read, and the nodes: FINNLoop_0_MatMul_3 is the fourth MatMul. */
static int mlo_finn_nodes(mlo_finn_loop *f) {
    mlo *m = f->m;
    mlo_map count = { NULL, 0, 0 };
    for (size_t i = 0; i < f->body->n_node; i++) {
        mlo_node *n = f->body->node[i];
        for (size_t k = 0; k < n->n_input; k++) {
            const char *to = (const char *)mlo_map_get(&f->inner, n->input[k]);
            if (to) n->input[k] = to;
        }
        if (f->inner.used) MLO_TRY(mlo_roll_rename(m, n, &f->inner));
        if (!MLO_PUSH(m, f->first.node, f->first.n_node, n)) return mlo_failed(m);
    }
    f->body->node = f->first.node;
    f->body->n_node = f->first.n_node;
    for (size_t i = 0; i < f->body->n_node; i++) {
        mlo_node *n = f->body->node[i];
        uintptr_t k = (uintptr_t)mlo_map_get(&count, n->op);
        if (!(n->name = mlo_format(m, "%s_%s_%lu", f->name, n->op, (unsigned long)k))
            || mlo_map_put(m, &count, n->op, (void *)(k + 1)))
            return mlo_failed(m);
    }
    for (size_t i = 0; i < f->body->n_output; i++) {
        const char *to = (const char *)mlo_map_get(&f->inner, f->body->output[i]->name);
        if (to) f->body->output[i]->name = to;
    }
    return 0;
}

static int mlo_finn_build(mlo_finn_loop *f) {
    mlo *m = f->m;
    mlo_form in = mlo_form_of(mlo_value_of(f->body, f->body->input[0]->name));
    const char *type = mlo_finn_type(in.dtype); /* what is carried comes out as it went in */
    if (!type)
        return mlo_fail(m, MLO_E_UNSUPPORTED, f->scan,
            "carries %s, a type that FINN does not have; use --as scan", mlo_dtype_name(in.dtype));
    if (!(f->loop = mlo_node_new(m, mlo_finn_loop_op, f->name))) return mlo_failed(m);
    for (size_t i = 0; i < f->scan->n_input; i++)
        MLO_TRY(mlo_node_input(m, f->loop, f->scan->input[i]));
    MLO_TRY(mlo_node_output(m, f->loop, f->scan->output[0]));
    MLO_TRY(mlo_finn_meet_all(f, f->body));
    MLO_TRY(mlo_finn_nodes(f));
    f->loop->meta = f->scan->meta;
    f->loop->n_meta = f->scan->n_meta;
    MLO_TRY(mlo_attr_graph(m, f->loop, "body", f->body));
    MLO_TRY(mlo_attr_int(m, f->loop, "iteration", f->iterations));
    MLO_TRY(mlo_attr_string(m, f->loop, "inputDataType", type));
    MLO_TRY(mlo_attr_string(m, f->loop, "outputDataType", type));
    MLO_TRY(mlo_attr_string(m, f->loop, "backend", "fpgadataflow"));
    return mlo_graph_add(m, &f->made, f->loop);
}

/* Says which version of FINN's operators the model means. */
static int mlo_finn_import(mlo *m) {
    const mlo_opset o = { MLO_HAS(1) | MLO_HAS(2),
        mlo_intern_n(m, mlo_finn_loop_op, strlen(mlo_finn_loop_op) - strlen(".FINNLoop")), 1 };
    for (size_t i = 0; i < m->model->n_opset; i++)
        if (mlo_eq(m->model->opset[i].domain, o.domain)) return 0;
    return MLO_PUSH(m, m->model->opset, m->model->n_opset, o) ? 0 : mlo_failed(m);
}

static int mlo_finn(mlo *m) {
    mlo_graph *g = m->model->graph, nodes = { 0 };
    mlo_map names = { NULL, 0, 0 };
    int loops = 0;
    for (size_t i = 0; i < g->values.size; i++)
        if (g->values.slot[i].key)
            MLO_TRY(mlo_map_put(
                m, &names, g->values.slot[i].key, (void *)(uintptr_t)g->values.slot[i].key));
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = g->node[i];
        const char *iterations = mlo_meta_get(n->meta, n->n_meta, mlo_key_iterations);
        mlo_finn_loop f = { m, g, n, NULL, NULL, { 0 },
            iterations ? strtol(iterations, NULL, 10) : 0, NULL, { NULL, 0, 0 }, &names, { 0 } };
        if (!mlo_is(n, "Scan") || f.iterations < 1) {
            MLO_TRY(mlo_graph_add(m, &nodes, n));
            continue;
        }
        f.body = mlo_attr_of(n, "body")->g;
        if (!(f.name = mlo_format(m, "FINNLoop_%d", loops++)) || mlo_finn_fits(&f)
            || mlo_finn_build(&f))
            return mlo_failed(m);
        for (size_t k = 0; k < f.made.n_node; k++)
            MLO_TRY(mlo_graph_add(m, &nodes, f.made.node[k]));
    }
    g->node = nodes.node;
    g->n_node = nodes.n_node;
    MLO_TRY(mlo_finn_import(m));
    return mlo_index(m, g);
}

/* The `roll` stage, in the form that was asked for. */
static int mlo_roll_as(mlo *m) {
    const char *as = mlo_opt(m, "as");
    int finn = mlo_eq(as, "finn");
    if (as && !finn && !mlo_eq(as, "scan"))
        return mlo_fail_at(m, MLO_E_USAGE, NULL, "--as %s: the forms are scan and finn", as);
    MLO_TRY(mlo_roll(m));
    return finn ? mlo_finn(m) : 0;
}
