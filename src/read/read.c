/* read: from bytes to a model that later stages can work on.
 *
 * in:  binary ONNX or JSON, from a source file or from memory.
 * out: m->model: functions inlined, fused operators expanded, types and shapes inferred, constants
 *     folded.
 *
 * There are two steps: mlo_decode when a model of any stage is loaded; mlo_read, the stage, for
 * what is done to a model only once.
 *
 * invariant: afterwards nodes are in topological order, tensors have the bytes their shapes need,
 *     constants are initializers, no initializer is also an input, and what --dim, --shape and --context
 *     said is in the types. A dimension left open stays open: the stage that needs it says so.
 * example: mlo_load(m, "bert.onnx"); mlo_set(m, "dim", "seq=32"); mlo_to(m, "read");
 * cost: O(nodes + edges); tensor data stays where it is.
 */

/* ---- order ---------------------------------------------------------------- */

/* Calls `need` with the producer (its index + 1, from the map) of every value of this graph that a
 * node uses, itself or in its subgraphs: what they define themselves under a name that is made here,
 * later, is theirs. */
typedef struct mlo_needs {
    mlo *m;
    const mlo_map *made;
    int (*need)(void *user, size_t producer);
    void *user;
    const struct mlo_needs *up; /* of a subgraph: what is around it; else NULL */
    mlo_map own; /* of a subgraph: names that it defines, which are made here, too */
} mlo_needs;

static int mlo_need(const mlo_needs *n, const char *name) {
    size_t producer = (size_t)(uintptr_t)mlo_map_get(n->made, name);
    for (const mlo_needs *at = n; producer && at; at = at->up)
        if (mlo_map_get(&at->own, name)) return 0;
    return producer ? n->need(n->user, producer - 1) : 0;
}
static int mlo_needs_own(void *user, const char *name) {
    mlo_needs *n = (mlo_needs *)user;
    return mlo_map_get(n->made, name) ? mlo_map_put(n->m, &n->own, name, n) : 0;
}
static int mlo_needs_of(const mlo_needs *n, const mlo_node *node, int depth);
static int mlo_needs_of_graph(const mlo_needs *up, const mlo_graph *g, int depth) {
    mlo_needs n = { up->m, up->made, up->need, up->user, up, { NULL, 0, 0 } };
    if (depth > MLO_MAX_DEPTH)
        return mlo_fail_at(
            n.m, MLO_E_GRAPH, g->name, "graphs are nested more than %d deep", MLO_MAX_DEPTH);
    int r = mlo_each_definition(g, mlo_needs_own, &n);
    for (size_t i = 0; !r && i < g->n_node; i++) r = mlo_needs_of(&n, g->node[i], depth);
    for (size_t i = 0; !r && i < g->n_output; i++) r = mlo_need(&n, g->output[i]->name);
    return r;
}
static int mlo_needs_of(const mlo_needs *n, const mlo_node *node, int depth) {
    int r = 0;
    for (size_t i = 0; !r && i < node->n_input; i++) r = mlo_need(n, node->input[i]);
    for (size_t a = 0; !r && a < node->n_attr; a++) {
        if (node->attr[a]->g) r = mlo_needs_of_graph(n, node->attr[a]->g, depth + 1);
        for (size_t i = 0; !r && i < node->attr[a]->n_graphs; i++)
            r = mlo_needs_of_graph(n, node->attr[a]->graphs[i], depth + 1);
    }
    return r;
}

/* -1: not in order */
static int mlo_need_earlier(void *user, size_t producer) {
    return producer >= *(size_t *)user ? -1 : 0;
}

/* What sorting works with. */
typedef struct {
    mlo *m;
    size_t *need; /* nodes that others need */
    size_t n_need;
    size_t *start; /* node i's needs are need[start[i]] .. need[start[i + 1] - 1] */
    size_t *path; /* of the depth-first walk: nodes */
    size_t *next; /* of each on the path: the need that is followed next */
    size_t n_path;
    size_t *sorted; /* nodes in their new order */
    size_t n_sorted;
    char *state; /* of each node: 0: not met; 1: on the path; 2: sorted */
} mlo_sorter;

static int mlo_need_noted(void *user, size_t producer) {
    mlo_sorter *s = (mlo_sorter *)user;
    return MLO_PUSH(s->m, s->need, s->n_need, producer) ? 0 : mlo_failed(s->m);
}

static int mlo_sort_cycle(mlo_sorter *s, const mlo_graph *g, size_t again) {
    char names[400];
    size_t n = 0, i = 0;
    while (s->path[i] != again) i++;
    for (names[0] = 0; i < s->n_path && n < sizeof names - 100; i++)
        n += (size_t)snprintf(
            names + n, sizeof names - n, "'%.60s' -> ", mlo_node_name(g->node[s->path[i]]));
    return mlo_fail(s->m, MLO_E_GRAPH, g->node[again],
        "the nodes feed each other in a cycle: %s%s'%.60s'", names, i < s->n_path ? "... -> " : "",
        mlo_node_name(g->node[again]));
}

/* Depth-first from node i: what it needs comes first. Keeps the given order where it can. */
static int mlo_sort_from(mlo_sorter *s, const mlo_graph *g, size_t i) {
    s->path[0] = i;
    s->next[0] = s->start[i];
    s->n_path = 1;
    s->state[i] = 1;
    while (s->n_path) {
        size_t top = s->path[s->n_path - 1], *next = &s->next[s->n_path - 1];
        if (*next == s->start[top + 1]) {
            s->state[top] = 2;
            s->sorted[s->n_sorted++] = top;
            s->n_path--;
            continue;
        }
        size_t to = s->need[(*next)++];
        if (s->state[to] == 1) return mlo_sort_cycle(s, g, to);
        if (s->state[to]) continue;
        s->state[to] = 1;
        s->path[s->n_path] = to;
        s->next[s->n_path++] = s->start[to];
    }
    return 0;
}

static int mlo_sort_nodes(mlo *m, mlo_graph *g, const mlo_map *made, int depth) {
    size_t n = g->n_node;
    mlo_sorter s = { m, NULL, 0, MLO_NEW_N(m, size_t, n + 1), MLO_NEW_N(m, size_t, n),
        MLO_NEW_N(m, size_t, n), 0, MLO_NEW_N(m, size_t, n), 0, MLO_NEW_N(m, char, n) };
    mlo_node **sorted = MLO_NEW_N(m, mlo_node *, mlo_room(n));
    if (m->error.code) return mlo_failed(m);
    mlo_needs needs = { m, made, mlo_need_noted, &s, NULL, { NULL, 0, 0 } };
    for (size_t i = 0; i < n; i++) {
        if (mlo_needs_of(&needs, g->node[i], depth)) return mlo_failed(m);
        s.start[i + 1] = s.n_need;
    }
    for (size_t i = 0; i < n; i++)
        if (!s.state[i] && mlo_sort_from(&s, g, i)) return mlo_failed(m);
    for (size_t i = 0; i < n; i++) sorted[i] = g->node[s.sorted[i]];
    g->node = sorted;
    return 0;
}

/* Puts the nodes of a graph, and of the graphs inside it, in topological order; leaves alone what
 * is. */
static int mlo_sort(mlo *m, mlo_graph *g, int depth) {
    mlo_map made = { NULL, 0, 0 };
    size_t i, k;
    if (depth > MLO_MAX_DEPTH)
        return mlo_fail_at(
            m, MLO_E_GRAPH, g->name, "graphs are nested more than %d deep", MLO_MAX_DEPTH);
    for (i = 0; i < g->n_node; i++) {
        const mlo_node *n = g->node[i];
        for (k = 0; k < n->n_output; k++)
            if (n->output[k] && *n->output[k]
                && mlo_map_put(m, &made, n->output[k], (void *)(uintptr_t)(i + 1)))
                return mlo_failed(m);
        for (size_t a = 0; a < n->n_attr; a++) {
            if (n->attr[a]->g && mlo_sort(m, n->attr[a]->g, depth + 1)) return mlo_failed(m);
            for (k = 0; k < n->attr[a]->n_graphs; k++)
                if (mlo_sort(m, n->attr[a]->graphs[k], depth + 1)) return mlo_failed(m);
        }
    }
    mlo_needs needs = { m, &made, mlo_need_earlier, &i, NULL, { NULL, 0, 0 } };
    for (i = 0; i < g->n_node; i++) {
        int r = mlo_needs_of(&needs, g->node[i], depth);
        if (r > 0) return r;
        if (r < 0) return mlo_sort_nodes(m, g, &made, depth);
    }
    return 0;
}

/* ---- decoding ------------------------------------------------------------- */

static int mlo_check_tensor(mlo *m, void *tensor, void *user) {
    (void)user;
    return mlo_tensor_check(m, (const mlo_tensor *)tensor);
}

/* Names that the schema leaves optional, but nothing works without. */
static int mlo_check_graph(mlo *m, void *graph, void *user) {
    mlo_graph *g = (mlo_graph *)graph;
    (void)user;
    for (size_t i = 0; i < g->n_node; i++)
        if (!g->node[i]->op || !*g->node[i]->op)
            return mlo_fail(m, MLO_E_GRAPH, g->node[i], "node %zu has no operator", i);
    for (size_t i = 0; i < g->n_init; i++)
        if (!g->init[i]->name || !*g->init[i]->name)
            return mlo_fail_at(m, MLO_E_GRAPH, g->name, "initializer %zu has no name", i);
    for (size_t i = 0; i < g->n_input; i++)
        if (!g->input[i]->name || !*g->input[i]->name)
            return mlo_fail_at(m, MLO_E_GRAPH, g->name, "input %zu has no name", i);
    for (size_t i = 0; i < g->n_output; i++)
        if (!g->output[i]->name || !*g->output[i]->name)
            return mlo_fail_at(m, MLO_E_GRAPH, g->name, "output %zu has no name", i);
    return 0;
}

/* The type an attribute has by what it holds: the first files of ONNX did not say it. */
static int32_t mlo_attr_type(const mlo_attr *a) {
    return a->has & MLO_HAS(2) ? MLO_ATTR_FLOAT
        : a->has & MLO_HAS(3)  ? MLO_ATTR_INT
        : a->s.data            ? MLO_ATTR_STRING
        : a->t                 ? MLO_ATTR_TENSOR
        : a->g                 ? MLO_ATTR_GRAPH
        : a->n_floats          ? MLO_ATTR_FLOATS
        : a->n_ints            ? MLO_ATTR_INTS
        : a->n_strings         ? MLO_ATTR_STRINGS
        : a->n_tensors         ? MLO_ATTR_TENSORS
        : a->n_graphs          ? MLO_ATTR_GRAPHS
        : a->sparse            ? MLO_ATTR_SPARSE
        : a->n_sparses         ? MLO_ATTR_SPARSES
        : a->tp                ? MLO_ATTR_TYPE
        : a->n_types           ? MLO_ATTR_TYPES
                               : 0;
}
/* An attribute has a name, a type, and the message its type speaks of, unless it refers to a
 * function's. */
static int mlo_check_attr(mlo *m, void *attr, void *user) {
    mlo_attr *a = (mlo_attr *)attr;
    (void)user;
    if (!a->name || !*a->name) return mlo_fail_at(m, MLO_E_GRAPH, NULL, "an attribute has no name");
    if (a->ref && *a->ref) return 0;
    if (!a->type) {
        a->type = mlo_attr_type(a);
        a->has |= MLO_HAS(20);
    }
    int lacks = (a->type == MLO_ATTR_TENSOR && !a->t) || (a->type == MLO_ATTR_GRAPH && !a->g)
        || (a->type == MLO_ATTR_SPARSE && !a->sparse) || (a->type == MLO_ATTR_TYPE && !a->tp);
    return lacks
        ? mlo_fail_at(m, MLO_E_GRAPH, a->name, "the attribute is said to be a %s, but holds none",
              mlo_attr_type_names[a->type])
        : 0;
}

/* JSON text of a source, whole, in scratch memory; the source is closed: no tensor lies in it. */
static mlo_model *mlo_decode_json_source(mlo *m, mlo_source *s) {
    if (s->size > SIZE_MAX / 4) {
        mlo_fail_at(
            m, MLO_E_FORMAT, NULL, "%llu bytes of JSON are too many", (unsigned long long)s->size);
        return NULL;
    }
    char *text = (char *)mlo_scratch(m, (size_t)s->size, 1);
    mlo_model *model = text && !mlo_source_read(m, s, 0, text, (size_t)s->size)
        ? mlo_json_read(m, text, (size_t)s->size)
        : NULL;
    mlo_scratch_free(m, text);
    return model;
}

static int mlo_is_json(const char *p, size_t n) {
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", p[i]) && p[i]) i++;
    return i < n && p[i] == '{';
}

/* Loads a model of any stage, from a source, or from memory when it is NULL; `dir` is where its
 * external data lies unless it says so itself. */
static int mlo_decode(mlo *m, mlo_source *source, const void *bytes, size_t n, const char *dir) {
    char head[64];
    const char *peek = (const char *)bytes;
    if (source) {
        n = source->size < sizeof head ? (size_t)source->size : sizeof head;
        peek = head;
        if (mlo_source_read(m, source, 0, head, n)) return mlo_failed(m);
    }
    if (!n)
        return mlo_fail_at(m, MLO_E_FORMAT, NULL,
            "the input is empty; give an .onnx file, or the JSON of an earlier stage");
    if (mlo_is_json(peek, n)) {
        mlo_model *model = m->model = source ? mlo_decode_json_source(m, source)
                                             : mlo_json_read(m, (const char *)bytes, n);
        if (source) mlo_source_drop(m, source);
        if (!model) return mlo_failed(m);
        const char *said = mlo_meta_get(model->meta, model->n_meta, mlo_key_data_dir);
        size_t kept = 0;
        if (said) {
            dir = said;
            for (size_t i = 0; i < model->n_meta; i++)
                if (!mlo_eq(model->meta[i].key, mlo_key_data_dir))
                    model->meta[kept++] = model->meta[i];
            model->n_meta = kept;
        }
        if (!model->graph)
            return mlo_fail_at(
                m, MLO_E_FORMAT, NULL, "this JSON is no ONNX model: it has no graph");
    } else if (!(m->model = mlo_wire_read(m, source, bytes, n)))
        return mlo_failed(m);
    if (mlo_each_message(
            m, MLO_M_MODEL, m->model, MLO_M_TENSOR, mlo_tensor_resolve, (void *)(uintptr_t)dir)
        || mlo_each_message(m, MLO_M_MODEL, m->model, MLO_M_TENSOR, mlo_check_tensor, NULL))
        return mlo_failed(m);
    if (mlo_each_message(m, MLO_M_MODEL, m->model, MLO_M_GRAPH, mlo_check_graph, NULL)
        || mlo_each_message(m, MLO_M_MODEL, m->model, MLO_M_ATTR, mlo_check_attr, NULL)
        || mlo_sort(m, m->model->graph, 0))
        return mlo_failed(m);
    return mlo_index(m, m->model->graph);
}

/* ---- constants ------------------------------------------------------------ */

/* The tensor a Constant node stands for; NULL for forms that stay nodes (sparse values, references
 * to function attributes). */
static mlo_tensor *mlo_constant_tensor(mlo *m, mlo_node *n, const char *name) {
    mlo_attr *a = n->n_attr == 1 && !n->attr[0]->ref ? n->attr[0] : NULL;
    if (!a) return NULL;
    if (mlo_eq(a->name, "value") && a->t) {
        a->t->name = name;
        return a->t;
    }
    if (mlo_eq(a->name, "value_float")) return mlo_tensor_of_floats(m, name, &a->f, -1);
    if (mlo_eq(a->name, "value_int")) return mlo_tensor_of_ints(m, name, &a->i, -1);
    if (mlo_eq(a->name, "value_floats"))
        return mlo_tensor_of_floats(m, name, a->floats, (int64_t)a->n_floats);
    if (mlo_eq(a->name, "value_ints"))
        return mlo_tensor_of_ints(m, name, a->ints, (int64_t)a->n_ints);
    return NULL;
}

/* Has any of a node's outputs a name? Nobody can ask for what another one makes. */
static int mlo_makes_any(const mlo_node *n) {
    size_t i = 0;
    while (i < n->n_output && !*n->output[i]) i++;
    return i < n->n_output;
}

/* Constant nodes become initializers, unless their value is an output of the graph (which a node
 * must make). Nodes whose outputs have no name go. */
static int mlo_constants(mlo *m, void *graph, void *user) {
    mlo_graph *g = (mlo_graph *)graph;
    size_t kept = 0;
    (void)user;
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = g->node[i];
        mlo_tensor *t = NULL;
        if (mlo_is(n, "Constant") && n->n_output == 1) {
            mlo_value *v = (mlo_value *)mlo_map_get(&g->values, n->output[0]);
            if (v && !v->is_output && !(t = mlo_constant_tensor(m, n, n->output[0]))
                && m->error.code)
                return mlo_failed(m);
        }
        if (t)
            MLO_TRY(mlo_graph_init(m, g, t));
        else if (mlo_makes_any(n))
            g->node[kept++] = n;
    }
    g->n_node = kept;
    return 0;
}

/* An input that has an initializer is that initializer: nobody feeds weights. */
static void mlo_drop_initialized_inputs(mlo *m) {
    mlo_graph *g = m->model->graph;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_input; i++) {
        const mlo_value *v = (const mlo_value *)mlo_map_get(&g->values, g->input[i]->name);
        if (!v || !v->tensor) g->input[kept++] = g->input[i];
    }
    /* the first version that allows it */
    if (kept < g->n_input && m->model->ir_version < 4) m->model->ir_version = 4;
    g->n_input = kept;
}

/* ---- metadata ------------------------------------------------------------- */

/* Scopes written as attributes, which no operator has, say nothing about what a node computes:
 * they become metadata. */
static const char *mlo_attr_as_meta(mlo *m, const mlo_attr *a) {
    if (a->type == MLO_ATTR_STRING) return mlo_intern_n(m, mlo_or_empty(a->s.data), a->s.n);
    mlo_text t = { m, NULL, 0, 0 };
    mlo_puts(&t, "[");
    for (size_t i = 0; i < a->n_strings; i++) {
        mlo_puts(&t, i ? ", '" : "'");
        mlo_put(&t, a->strings[i].data, a->strings[i].n);
        mlo_puts(&t, "'");
    }
    mlo_puts(&t, "]");
    const char *s = m->error.code ? NULL : mlo_intern(m, t.text);
    mlo_text_free(&t);
    return s;
}

static int mlo_attrs_to_meta(mlo *m, void *node, void *user) {
    mlo_node *n = (mlo_node *)node;
    size_t kept = 0;
    (void)user;
    for (size_t i = 0; i < n->n_attr; i++) {
        const mlo_attr *a = n->attr[i];
        int text = a->type == MLO_ATTR_STRING || a->type == MLO_ATTR_STRINGS;
        int ours = !strncmp(mlo_or_empty(a->name), "pkg.torch.", 10);
        if (!text || !(ours || (mlo_eq(a->name, "namespace") && (!n->domain || !*n->domain)))) {
            n->attr[kept++] = n->attr[i];
            continue;
        }
        const char *value = mlo_meta_get(n->meta, n->n_meta, a->name) ? NULL
                                                                      : mlo_attr_as_meta(m, a);
        if (m->error.code || (value && mlo_meta_put(m, &n->meta, &n->n_meta, a->name, value)))
            return mlo_failed(m);
    }
    n->n_attr = kept;
    return 0;
}

/* TorchScript's exporter writes a cast that torch makes without being asked with torch's number of bfloat16, 15,
 * where ONNX has complex128, which no Cast gives in any opset: bfloat16 is meant (Falcon's ALiBi). */
static int mlo_mend_cast(mlo *m, void *node, void *user) {
    const mlo_node *n = (const mlo_node *)node;
    mlo_attr *to = mlo_is(n, "Cast") ? mlo_attr_of(n, "to") : NULL;
    (void)user;
    if (!to || to->i != MLO_COMPLEX128) return 0;
    to->i = MLO_BFLOAT16;
    mlo_warn(m,
        "%s (Cast) says complex128, which no Cast gives; TorchScript's exporter writes that for "
        "bfloat16, as which it is read",
        mlo_node_name(n));
    return mlo_failed(m);
}

/* A Gemm that takes its third operand 0 times has none. */
static int mlo_mend_gemm(mlo *m, void *node, void *user) {
    mlo_node *n = (mlo_node *)node;
    const float beta = mlo_is(n, "Gemm") ? mlo_float(n, "beta", 1) : 1;
    (void)m;
    (void)user;
    if (n->n_input == 3 && beta >= 0 && beta <= 0) n->n_input = 2;
    return 0;
}

/* Steps without end tell no two numbers apart, and what rounds to them is not defined: it is left out. Of a constant in
 * such steps nothing is left. */
static int mlo_mend_steps(mlo *m, void *graph, void *user) {
    const mlo_graph *g = (const mlo_graph *)graph;
    size_t n = 0;
    (void)user;
    for (size_t i = 0; i < g->n_node; i++) {
        double step = 0;
        const int rounds = mlo_is(g->node[i], "DequantizeLinear") && mlo_has_input(g->node[i], 1);
        const mlo_value *q = rounds ? mlo_value_of(g, g->node[i]->input[0]) : NULL;
        if (!q || !mlo_lone_number(m, mlo_value_of(g, g->node[i]->input[1]), &step)
            || isfinite(step))
            continue;
        if (q->tensor)
            return mlo_fail(m, MLO_E_DATA, g->node[i],
                "the scale of '%s' is %g: its numbers are lost (quantizers make that of a mask of "
                "-inf); leave it out of what is quantized (nodes_to_exclude), or export with a "
                "mask of finite numbers",
                q->name, step);
        if (!mlo_is(q->producer, "QuantizeLinear")) continue;
        mlo_node_passes(g->node[i], q->producer->input[0]);
        n++;
    }
    if (n)
        mlo_warn(m,
            "%zu roundings of the model have an infinite scale, as their quantizer saw a mask's "
            "-inf; they are left out",
            n);
    return mlo_failed(m);
}

/* Standard operators, and what they make of constants. */
static int mlo_standardise(mlo *m) {
    return mlo_sort(m, m->model->graph, 0) || mlo_infer(m) || mlo_lift(m) || mlo_expand(m)
        || mlo_fold_constants(m);
}

/* Constants folded: what is computed of constants may choose a branch, or count iterations. */
static int mlo_standardise_all(mlo *m) {
    for (int branch = 1, scan = 1, list = 1; branch || scan || list;)
        if (mlo_standardise(m) || mlo_unlist(m, &list) || mlo_branches(m, &branch)
            || mlo_scanned(m, &scan))
            return mlo_failed(m);
    return 0;
}

/* The model of as many tokens as --context says, constants folded. */
static int mlo_settle_context(mlo *m) {
    mlo_instants one;
    memset(&one, 0, sizeof one);
    int again = 0;
    if (!mlo_sort(m, m->model->graph, 0) && !mlo_context(m, &one) && !mlo_bind_open(m)
        && !mlo_scanned(m, &again) && !mlo_standardise_all(m) && one.tokens
        && !mlo_step_end(m, &one)) {
        mlo_cacheless c = { m, m->model->graph, one.tokens };
        if (!mlo_count_all(&c)) mlo_standardise_all(m);
    }
    mlo_instants_free(&one);
    return mlo_failed(m);
}

/* The stage. */
static int mlo_read(mlo *m) {
    mlo_graph *g = m->model->graph;
    int again = 0;
    if (m->model->n_function && (mlo_inline(m) || mlo_sort(m, g, 0) || mlo_index(m, g)))
        return mlo_failed(m);
    if (mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_NODE, mlo_attrs_to_meta, NULL)
        || mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_NODE, mlo_mend_cast, NULL)
        || mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_NODE, mlo_mend_gemm, NULL)
        || mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_GRAPH, mlo_constants, NULL)
        || mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_GRAPH, mlo_mend_steps, NULL))
        return mlo_failed(m);
    mlo_drop_initialized_inputs(m);
    if (mlo_bind_options(m) || mlo_hold_all(m) || mlo_words_sizes(m) || mlo_index(m, g)
        || mlo_cache_branch_held(m, g) || mlo_branches(m, &again) || mlo_settle_context(m))
        return mlo_failed(m);
    if (mlo_context_settled(m) || mlo_last_rows(m) || mlo_selects(m) || mlo_unwrap(m)
        || mlo_unbatch(m) || mlo_cut_leading(m) || mlo_turn_all(m, g))
        return mlo_failed(m);
    if (m->stale) MLO_TRY(mlo_index(m, g));
    return mlo_reaches(m);
}
