/* inline: replaces calls of the model's own functions by the nodes of their bodies.
 *
 * in:  a model with functions, whose graph is in order.
 * out: the same model without calls; functions that nothing calls any more are dropped.
 *
 * invariant: a body's values get new names. An attribute that refers to the caller's gets the
 *     caller's value, or the function's default, or is left out. An input that the caller leaves
 *     out is left out. Nodes get the call's metadata, unless they have their own. An operator that
 *     mlo itself knows is no call, whatever function the model brings for it (the kernels of domain
 *     mlo).
 * example: y = pkg.Linear(x, w, b) with Linear(a, m, c) => (r) { p = MatMul(a, m); r = Add(p, c) }
 *     becomes y_p = MatMul(x, w); y = Add(y_p, b).
 * cost: O(nodes made), at most MLO_MAX_INLINED of them: functions that call functions can stand
 *     for more nodes than there is memory.
 */
enum { MLO_MAX_INLINED = 1 << 18 };

typedef struct {
    mlo *m;
    mlo_map functions; /* "domain:name:overload" -> mlo_function */
    mlo_map taken; /* names of values */
    mlo_map state; /* mlo_function -> one of the below */
    size_t made;
} mlo_inliner;
static const char mlo_function_inlined[] = "inlined", mlo_function_stays[] = "stays";

/* One call: which name of the body is which name outside. */
typedef struct {
    mlo_inliner *k;
    const mlo_function *f;
    const mlo_node *call;
    mlo_map names;
    const char *prefix;
} mlo_call_site;

static const char *mlo_standard(const char *domain) {
    return !domain || mlo_eq(domain, "ai.onnx") ? "" : domain;
}
static const char *mlo_function_key(
    mlo *m, const char *domain, const char *name, const char *overload) {
    return mlo_format(
        m, "%s:%s:%s", mlo_standard(domain), mlo_or_empty(name), mlo_or_empty(overload));
}

/* ---- which calls ---------------------------------------------------------- */

static mlo_opset *mlo_import_of(mlo_opset *list, size_t n, const char *domain) {
    for (size_t i = 0; i < n; i++)
        if (mlo_eq(mlo_standard(list[i].domain), mlo_standard(domain))) return &list[i];
    return NULL;
}
/* May the nodes of f stand in the model's graph? They are written in the function's opsets, which
 * then are the model's too. */
static int mlo_function_fits(mlo *m, const mlo_function *f) {
    mlo_model *model = m->model;
    for (size_t i = 0; i < f->n_opset; i++) {
        const mlo_opset *o = mlo_import_of(model->opset, model->n_opset, f->opset[i].domain);
        if (o && o->version != f->opset[i].version && !*mlo_standard(o->domain)) {
            mlo_warn(m, "function %s is written in opset %lld, the model in %lld: its calls stay",
                f->name, (long long)f->opset[i].version, (long long)o->version);
            return 0;
        }
    }
    for (size_t i = 0; i < f->n_opset; i++)
        if (!mlo_import_of(model->opset, model->n_opset, f->opset[i].domain)
            && !MLO_PUSH(m, model->opset, model->n_opset, f->opset[i]))
            return 0;
    return 1;
}
/* The function that a node calls, if it is to be inlined. */
static const mlo_function *mlo_called(mlo_inliner *k, const mlo_node *n) {
    if (!*mlo_standard(n->domain) || mlo_op_of(k->m, n)) return NULL;
    const char *key = mlo_function_key(k->m, n->domain, n->op, n->overload);
    const mlo_function *f = (const mlo_function *)mlo_map_get(&k->functions, key);
    const char *state = (const char *)mlo_map_get(&k->state, f);
    if (!f || state == mlo_function_stays) return NULL;
    if (!state) {
        int fits = mlo_function_fits(k->m, f);
        if (mlo_map_put(k->m, &k->state, f,
                (void *)(uintptr_t)(fits ? mlo_function_inlined : mlo_function_stays))
            || !fits)
            return NULL;
    }
    return f;
}

/* ---- copies --------------------------------------------------------------- */

/* What a name of the body is called outside: what the call says, or a new name. NULL without memory. */
static const char *mlo_call_name(mlo_call_site *c, const char *name) {
    mlo *m = c->k->m;
    if (!*name) return "";
    const char *out = (const char *)mlo_map_get(&c->names, name);
    if (out) return out;
    out = mlo_format(m, "%s_%s", c->prefix, name);
    for (int i = 1; out && mlo_map_get(&c->k->taken, out); i++)
        out = mlo_format(m, "%s_%s_%d", c->prefix, name, i);
    if (!out || mlo_map_put(m, &c->k->taken, out, c)
        || mlo_map_put(m, &c->names, name, (void *)(uintptr_t)out))
        return NULL;
    return out;
}

static mlo_node *mlo_copy_node(mlo_call_site *c, const mlo_node *from, int depth);

static mlo_value_info *mlo_copy_info(mlo_call_site *c, const mlo_value_info *from) {
    mlo_value_info *to = MLO_NEW(c->k->m, mlo_value_info);
    if (!to) return NULL;
    *to = *from;
    return (to->name = mlo_call_name(c, from->name)) ? to : NULL;
}
static int mlo_copy_infos(mlo_call_site *c, mlo_value_info *const *from, size_t n_from,
    mlo_value_info ***to, size_t *n_to) {
    for (size_t i = 0; i < n_from; i++) {
        mlo_value_info *v = mlo_copy_info(c, from[i]);
        if (!v || !MLO_PUSH(c->k->m, *to, *n_to, v)) return mlo_failed(c->k->m);
    }
    return 0;
}
static mlo_graph *mlo_copy_graph(mlo_call_site *c, const mlo_graph *from, int depth) {
    mlo *m = c->k->m;
    mlo_graph *to = MLO_NEW(m, mlo_graph);
    if (depth > MLO_MAX_DEPTH)
        mlo_fail_at(
            m, MLO_E_GRAPH, from->name, "graphs are nested more than %d deep", MLO_MAX_DEPTH);
    if (m->error.code) return NULL;
    *to = *from;
    memset(&to->values, 0, sizeof to->values); /* an index of its own, later */
    /* lists of its own: of none yet, what is pushed begins a new one */
    to->n_node = to->n_init = to->n_input = to->n_output = to->n_info = 0;
    if (mlo_copy_infos(c, from->input, from->n_input, &to->input, &to->n_input)) return NULL;
    for (size_t i = 0; i < from->n_init; i++) {
        mlo_tensor *t = MLO_NEW(m, mlo_tensor);
        if (!t) return NULL;
        *t = *from->init[i];
        if (!(t->name = mlo_call_name(c, t->name)) || mlo_graph_init(m, to, t)) return NULL;
    }
    for (size_t i = 0; i < from->n_node; i++)
        if (mlo_graph_add(m, to, mlo_copy_node(c, from->node[i], depth))) return NULL;
    return mlo_copy_infos(c, from->output, from->n_output, &to->output, &to->n_output) ? NULL : to;
}

/* An attribute of the body as one of the caller's graph; *to NULL: it refers to one that nobody
 * gave. */
static int mlo_copy_attr(mlo_call_site *c, const mlo_attr *from, mlo_attr **to, int depth) {
    mlo *m = c->k->m;
    const mlo_attr *said = from;
    *to = NULL;
    if (from->ref) {
        said = mlo_attr_of(c->call, from->ref);
        for (size_t i = 0; !said && i < c->f->n_attr_proto; i++)
            if (mlo_eq(c->f->attr_proto[i]->name, from->ref)) said = c->f->attr_proto[i];
        if (!said) return 0;
    }
    if (!(*to = MLO_NEW(m, mlo_attr))) return mlo_failed(m);
    **to = *said;
    (*to)->name = from->name;
    /* the caller's: its names are names outside */
    if (from->ref) return 0;
    if (from->g && !((*to)->g = mlo_copy_graph(c, from->g, depth + 1))) return mlo_failed(m);
    (*to)->graphs = NULL;
    (*to)->n_graphs = 0;
    for (size_t i = 0; i < from->n_graphs; i++) {
        mlo_graph *g = mlo_copy_graph(c, from->graphs[i], depth + 1);
        if (!g || !MLO_PUSH(m, (*to)->graphs, (*to)->n_graphs, g)) return mlo_failed(m);
    }
    return 0;
}

static int mlo_copy_names(
    mlo_call_site *c, const char *const *from, size_t n_from, const char ***to, size_t *n_to) {
    for (size_t i = 0; i < n_from; i++) {
        const char *name = mlo_call_name(c, from[i]);
        if (!name || !MLO_PUSH(c->k->m, *to, *n_to, name)) return mlo_failed(c->k->m);
    }
    return 0;
}

static mlo_node *mlo_copy_node(mlo_call_site *c, const mlo_node *from, int depth) {
    mlo *m = c->k->m;
    mlo_node *to = MLO_NEW(m, mlo_node);
    if (++c->k->made > MLO_MAX_INLINED)
        mlo_fail(m, MLO_E_GRAPH, c->call, "the functions it calls come to more than %d nodes",
            MLO_MAX_INLINED);
    if (m->error.code) return NULL;
    to->op = from->op;
    to->domain = from->domain;
    to->overload = from->overload;
    to->doc = from->doc;
    to->name = mlo_format(
        m, "%s_%s", mlo_node_name(c->call), from->name && *from->name ? from->name : from->op);
    if (mlo_copy_names(c, from->input, from->n_input, &to->input, &to->n_input)
        || mlo_copy_names(c, from->output, from->n_output, &to->output, &to->n_output))
        return NULL;
    for (size_t i = 0; i < from->n_attr; i++) {
        mlo_attr *a;
        if (mlo_copy_attr(c, from->attr[i], &a, depth)
            || (a && !MLO_PUSH(m, to->attr, to->n_attr, a)))
            return NULL;
    }
    for (size_t i = 0; i < from->n_meta; i++)
        if (!MLO_PUSH(m, to->meta, to->n_meta, from->meta[i])) return NULL;
    for (size_t i = 0; i < c->call->n_meta; i++)
        if (!mlo_meta_get(from->meta, from->n_meta, c->call->meta[i].key)
            && !MLO_PUSH(m, to->meta, to->n_meta, c->call->meta[i]))
            return NULL;
    return to;
}

/* ---- calls ---------------------------------------------------------------- */

typedef struct {
    mlo_node **node;
    size_t n;
} mlo_node_list;

static int mlo_inline_node(mlo_inliner *k, mlo_node *n, mlo_node_list *to, int depth);

/* y = x, for a function that hands an input (or one value twice) out. */
static int mlo_inline_pass(
    mlo_call_site *c, const char *from, const char *name, mlo_node_list *to) {
    mlo *m = c->k->m;
    mlo_node *n = mlo_node_new(m, "Identity", NULL);
    return !mlo_node_input(m, n, from) && !mlo_node_output(m, n, name)
            && MLO_PUSH(m, to->node, to->n, n)
        ? 0
        : mlo_failed(m);
}

static int mlo_inline_call(
    mlo_inliner *k, const mlo_function *f, const mlo_node *call, mlo_node_list *to, int depth) {
    mlo *m = k->m;
    mlo_call_site c = { k, f, call, { NULL, 0, 0 },
        call->n_output && *call->output[0] ? call->output[0] : f->name };
    if (depth > MLO_MAX_DEPTH)
        return mlo_fail(m, MLO_E_GRAPH, call,
            "functions call functions more than %d deep; does %s call itself?", MLO_MAX_DEPTH,
            f->name);
    if (call->n_input > f->n_input || call->n_output > f->n_output)
        return mlo_fail(m, MLO_E_GRAPH, call,
            "it has %zu inputs and %zu outputs, function %s takes at most %zu and %zu",
            call->n_input, call->n_output, f->name, f->n_input, f->n_output);
    for (size_t i = 0; i < f->n_input; i++)
        MLO_TRY(mlo_map_put(m, &c.names, f->input[i],
            (void *)(uintptr_t)(mlo_has_input(call, i) ? call->input[i] : "")));
    char *passed = (char *)mlo_alloc(m, f->n_output + 1, 1);
    if (!passed) return mlo_failed(m);
    for (size_t i = 0; i < call->n_output; i++) {
        if (!*call->output[i]) continue;
        passed[i] = mlo_map_get(&c.names, f->output[i]) != NULL;
        if (!passed[i])
            MLO_TRY(mlo_map_put(m, &c.names, f->output[i], (void *)(uintptr_t)call->output[i]));
    }
    for (size_t i = 0; i < f->n_node; i++) {
        mlo_node *n = mlo_copy_node(&c, f->node[i], 0);
        if (!n) return mlo_failed(m);
        MLO_TRY(mlo_inline_node(k, n, to, depth + 1));
    }
    for (size_t i = 0; i < call->n_output; i++)
        if (passed[i])
            MLO_TRY(mlo_inline_pass(&c, mlo_call_name(&c, f->output[i]), call->output[i], to));
    return 0;
}
static int mlo_inline_node(mlo_inliner *k, mlo_node *n, mlo_node_list *to, int depth) {
    const mlo_function *f = mlo_called(k, n);
    if (k->m->error.code) return mlo_failed(k->m);
    if (f) return mlo_inline_call(k, f, n, to, depth);
    return MLO_PUSH(k->m, to->node, to->n, n) ? 0 : mlo_failed(k->m);
}
static int mlo_inline_graph(mlo *m, void *graph, void *user) {
    mlo_graph *g = (mlo_graph *)graph;
    mlo_node_list list = { NULL, 0 };
    (void)m;
    for (size_t i = 0; i < g->n_node; i++)
        MLO_TRY(mlo_inline_node((mlo_inliner *)user, g->node[i], &list, 0));
    g->node = list.node;
    g->n_node = list.n;
    return 0;
}

/* ---- the walk ------------------------------------------------------------- */

/* Calls `see` with each name that a graph defines, not those inside it, until that is not 0. */
static int mlo_each_definition(
    const mlo_graph *g, int (*see)(void *user, const char *name), void *user) {
    int r = 0;
    for (size_t i = 0; !r && i < g->n_input; i++) r = see(user, g->input[i]->name);
    for (size_t i = 0; !r && i < g->n_init; i++) r = see(user, g->init[i]->name);
    for (size_t i = 0; !r && i < g->n_node; i++)
        for (size_t k = 0; !r && k < g->node[i]->n_output; k++)
            r = see(user, g->node[i]->output[k]);
    return r;
}

static int mlo_inline_take(void *user, const char *name) {
    mlo_inliner *k = (mlo_inliner *)user;
    return mlo_map_put(k->m, &k->taken, name, k);
}
static int mlo_inline_taken(mlo *m, void *graph, void *user) {
    (void)m;
    return mlo_each_definition((const mlo_graph *)graph, mlo_inline_take, user);
}
/* Names that the schema leaves optional. */
static int mlo_function_check(mlo *m, const mlo_function *f) {
    if (!f->name || !*f->name)
        return mlo_fail_at(m, MLO_E_GRAPH, f->domain, "a function has no name");
    for (size_t i = 0; i < f->n_node; i++)
        if (!f->node[i]->op || !*f->node[i]->op)
            return mlo_fail(
                m, MLO_E_GRAPH, f->node[i], "node %zu of function %s has no operator", i, f->name);
    return 0;
}

/* Refuses functions that call themselves, through others or from graphs inside them: inlining
 * would not end. */
typedef struct {
    mlo_inliner *k;
    mlo_map open; /* functions whose calls are being followed */
    mlo_map done; /* functions whose calls have been followed */
    int depth; /* functions that are open */
} mlo_call_walk;
static int mlo_call_open(mlo_call_walk *w, mlo_function *f, const mlo_node *call);
static int mlo_call_see(mlo *m, void *node, void *user) {
    mlo_call_walk *w = (mlo_call_walk *)user;
    const mlo_node *n = (const mlo_node *)node;
    const char *key = mlo_function_key(m, n->domain, mlo_or_empty(n->op), n->overload);
    mlo_function *f = key ? (mlo_function *)mlo_map_get(&w->k->functions, key) : NULL;
    return m->error.code ? mlo_failed(m) : f ? mlo_call_open(w, f, n) : 0;
}
static int mlo_call_open(mlo_call_walk *w, mlo_function *f, const mlo_node *call) {
    mlo *m = w->k->m;
    if (mlo_map_get(&w->done, f)) return 0;
    if (mlo_map_get(&w->open, f))
        return mlo_fail(m, MLO_E_GRAPH, call, "function %s calls itself", f->name);
    if (w->depth++ > MLO_MAX_DEPTH)
        return mlo_fail(
            m, MLO_E_GRAPH, call, "functions call functions more than %d deep", MLO_MAX_DEPTH);
    MLO_TRY(mlo_map_put(m, &w->open, f, f));
    MLO_TRY(mlo_each_message(m, MLO_M_FUNCTION, f, MLO_M_NODE, mlo_call_see, w));
    w->depth--;
    return mlo_map_put(m, &w->done, f, f);
}

/* Drops the functions that were inlined, but for those that a function which stays calls, itself
 * or through others. */
static int mlo_inline_drop(mlo_inliner *k) {
    mlo *m = k->m;
    mlo_model *model = m->model;
    size_t kept = 0;
    for (int more = 1; more;) {
        more = 0;
        for (size_t i = 0; i < model->n_function; i++) {
            const mlo_function *f = model->function[i];
            if (mlo_map_get(&k->state, f) == mlo_function_inlined) continue;
            for (size_t j = 0; j < f->n_node; j++) {
                const char *key = mlo_function_key(
                    m, f->node[j]->domain, f->node[j]->op, f->node[j]->overload);
                const mlo_function *callee = (const mlo_function *)mlo_map_get(&k->functions, key);
                if (!key || !callee || mlo_map_get(&k->state, callee) != mlo_function_inlined)
                    continue;
                MLO_TRY(mlo_map_put(m, &k->state, callee, (void *)(uintptr_t)mlo_function_stays));
                more = 1;
            }
        }
    }
    for (size_t i = 0; i < model->n_function; i++)
        if (mlo_map_get(&k->state, model->function[i]) != mlo_function_inlined)
            model->function[kept++] = model->function[i];
    model->n_function = kept;
    return mlo_failed(m);
}

/* Inlines all calls, of nested graphs too. Order (if a body had none) and index are stale
 * afterwards. */
static int mlo_inline(mlo *m) {
    mlo_model *model = m->model;
    mlo_inliner k = { m, { NULL, 0, 0 }, { NULL, 0, 0 }, { NULL, 0, 0 }, 0 };
    if (!model->n_function) return 0;
    for (size_t i = 0; i < model->n_function; i++) {
        mlo_function *f = model->function[i];
        MLO_TRY(mlo_function_check(m, f));
        const char *key = mlo_function_key(m, f->domain, f->name, f->overload);
        if (!key || mlo_map_put(m, &k.functions, key, f)) return mlo_failed(m);
    }
    mlo_call_walk calls = { &k, { NULL, 0, 0 }, { NULL, 0, 0 }, 0 };
    for (size_t i = 0; i < model->n_function; i++)
        MLO_TRY(mlo_call_open(&calls, model->function[i], NULL));
    MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, model->graph, MLO_M_GRAPH, mlo_inline_taken, &k));
    MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, model->graph, MLO_M_GRAPH, mlo_inline_graph, &k));
    return mlo_inline_drop(&k);
}
