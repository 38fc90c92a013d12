/* widen: a model that computes in 16-bit floats becomes one that computes in 32.
 *
 * in:  a model whose loop multiplies matrices of float16 or bfloat16.
 * out: the same nodes on float: its inputs and large 16-bit weights stay what they are, each behind a Cast; what it
 *     computes leaves as float.
 *
 * What 16 bits round is no part of what a model means; the integers that are chosen here round otherwise
 * anyway.
 *
 * invariant: no node but these Casts reads or makes 16-bit floats. Large weights are never copied.
 * example: W float16, y = MatMul(x, W): W_float = Cast(W), y = MatMul(x_float, W_float).
 * cost: O(nodes); a Cast for each weight.
 */
typedef struct {
    mlo *m;
    mlo_map wide; /* 16-bit name -> that of its Cast */
} mlo_widening;

static mlo_tensor_type *mlo_half_type(const mlo_value_info *v) {
    mlo_tensor_type *t = v->type ? v->type->tensor : NULL;
    return t && mlo_dtype_is_half((mlo_dtype)t->elem_type) ? t : NULL;
}
static void mlo_widen_infos(mlo_value_info *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (mlo_half_type(list[i])) mlo_half_type(list[i])->elem_type = MLO_FLOAT;
}

/* A name that nothing has yet. */
static const char *mlo_widened_name(mlo_widening *w, mlo_graph *g, const char *name) {
    const char *made = mlo_format(w->m, "%s_float", name);
    while (made && mlo_value_of(g, made)) made = mlo_format(w->m, "%s_", made);
    return made && mlo_index_value(w->m, g, made) ? made : NULL;
}
/* From here on the Cast of a value stands for it. */
static int mlo_widen_value(
    mlo_widening *w, mlo_graph *g, const char *name, mlo_node ***list, size_t *n) {
    mlo *m = w->m;
    const char *to = mlo_widened_name(w, g, name);
    mlo_node *cast = to ? mlo_node_new(m, "Cast", to) : NULL;
    return !cast || mlo_node_input(m, cast, name) || mlo_node_output(m, cast, to)
            || mlo_attr_int(m, cast, "to", MLO_FLOAT) || !MLO_PUSH(m, *list, *n, cast)
            || mlo_map_put(m, &w->wide, name, (void *)(uintptr_t)to)
        ? mlo_failed(m)
        : 0;
}

static int mlo_widen_tensor(mlo *m, mlo_tensor **t) {
    mlo_array *half = mlo_tensor_load(m, *t);
    const mlo_array *full = half ? mlo_as(m, half, MLO_FLOAT) : NULL;
    if (full) *t = mlo_tensor_from(m, mlo_or_empty((*t)->name), full);
    mlo_as_free(m, full, half);
    mlo_array_free(m, half);
    return mlo_failed(m);
}

static int mlo_widen_attr(mlo_widening *w, mlo_attr *a) {
    const int type = a->type == MLO_ATTR_INT
        && (mlo_eq(a->name, "to") || mlo_eq(a->name, "dtype") || mlo_eq(a->name, "output_dtype"));
    if (type && mlo_dtype_is_half((mlo_dtype)a->i)) a->i = MLO_FLOAT;
    if (a->type != MLO_ATTR_TENSOR || !a->t || !mlo_dtype_is_half((mlo_dtype)a->t->data_type))
        return 0;
    return mlo_widen_tensor(w->m, &a->t);
}

static int mlo_widen_graph(mlo_widening *w, mlo_graph *g, int top);

static int mlo_widen_node(mlo_widening *w, mlo_node *n) {
    for (size_t i = 0; i < n->n_attr; i++) {
        mlo_attr *a = n->attr[i];
        const int graph = a->type == MLO_ATTR_GRAPH && a->g;
        MLO_TRY(graph ? mlo_widen_graph(w, a->g, 0) : mlo_widen_attr(w, a));
    }
    for (size_t i = 0; i < n->n_input; i++) {
        const void *wide = mlo_map_get(&w->wide, n->input[i]);
        if (wide) n->input[i] = (const char *)wide;
    }
    return 0;
}

/* What comes into a graph: large weights and the model's own inputs stay what they are; a body is given what is
 * wide already. */
static int mlo_widen_inputs(mlo_widening *w, mlo_graph *g, int top, mlo_node ***list, size_t *n) {
    for (size_t i = 0; i < g->n_init; i++) {
        if (!mlo_dtype_is_half((mlo_dtype)g->init[i]->data_type)) continue;
        MLO_TRY(mlo_tensor_count(g->init[i]) > MLO_LARGE
                ? mlo_widen_value(w, g, g->init[i]->name, list, n)
                : mlo_widen_tensor(w->m, &g->init[i]));
    }
    for (size_t i = 0; top && i < g->n_input; i++)
        if (mlo_half_type(g->input[i]) && !mlo_map_get(&w->wide, g->input[i]->name))
            MLO_TRY(mlo_widen_value(w, g, g->input[i]->name, list, n));
    if (!top) mlo_widen_infos(g->input, g->n_input);
    return 0;
}

/* What nodes make is wide when it leaves. */
static void mlo_widen_outputs(mlo_graph *g) {
    for (size_t i = 0; i < g->n_output; i++) {
        const mlo_value *v = mlo_value_of(g, g->output[i]->name);
        if (v && v->producer) mlo_widen_infos(&g->output[i], 1);
    }
}

/* top: 1: it is the model's own, not a node's. */
static int mlo_widen_graph(mlo_widening *w, mlo_graph *g, int top) {
    mlo_node **list = NULL;
    size_t n = 0;
    MLO_TRY(mlo_widen_inputs(w, g, top, &list, &n));
    for (size_t i = 0; i < g->n_node; i++)
        if (mlo_widen_node(w, g->node[i]) || !MLO_PUSH(w->m, list, n, g->node[i]))
            return mlo_failed(w->m);
    mlo_widen_infos(g->info, g->n_info);
    mlo_widen_outputs(g);
    g->node = list;
    g->n_node = n;
    return 0;
}

/* Does a body multiply matrices of 16-bit floats? (One that rounds something else to 16 bits may mean to.) */
static int mlo_widens(const mlo_graph *body) {
    for (size_t i = 0; i < body->n_node; i++) {
        const mlo_node *n = body->node[i];
        if (!n->n_output || !(mlo_is(n, "MatMul") || mlo_is(n, "Gemm"))) continue;
        const mlo_form y = mlo_form_of(mlo_value_of(body, n->output[0]));
        if (mlo_dtype_is_half(y.dtype)) return 1;
    }
    return 0;
}

static int mlo_widen_model(mlo *m) {
    mlo_widening w = { m, { NULL, 0, 0 } };
    MLO_TRY(mlo_widen_graph(&w, m->model->graph, 1) || mlo_index(m, m->model->graph));
    return mlo_infer(m);
}
