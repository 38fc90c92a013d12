/* branch: an If whose condition is known becomes the nodes of the branch that it takes.
 *
 * in:  an indexed model.
 * out: the model without such Ifs in its graph, indexed. Inputs that only branches read which are not taken
 *      are dropped.
 *
 * Optimum merges a decoder without and with a past into one If on an input, use_cache_branch. Both compute
 * the same, and a cache is made of either (context.c): where nobody holds that input, it is 0.
 *
 * invariant: a value keeps its name where nothing else has it; a node keeps its name, which tells its scope.
 * example: y = If(c) { then: a = Neg(x); else: b = Abs(x) }, c held 1: y = Neg(x).
 * cost: O(nodes), once for each level that Ifs are nested.
 */
static const char mlo_cache_branch[] = "use_cache_branch";

typedef struct {
    const mlo_node *node; /* the If */
    const mlo_graph *taken;
    const mlo_graph *left;
} mlo_known_if;

/* ---- which are known -------------------------------------------------------- */

/* Is an If's condition a constant? Then *k says what it takes. */
static int mlo_if_known(mlo *m, const mlo_graph *g, const mlo_node *n, mlo_known_if *k) {
    const mlo_value *c = mlo_has_input(n, 0) ? mlo_value_of(g, n->input[0]) : NULL;
    mlo_array *a = c && c->tensor ? mlo_tensor_load(m, c->tensor) : NULL;
    if (!a) return 0;
    const int one = a->dtype == MLO_BOOL && mlo_array_count(a) == 1;
    const int yes = one && *(const unsigned char *)a->data;
    mlo_array_free(m, a);
    const mlo_graph *then = mlo_fitting(m, n, "then_branch", 0, n->n_output);
    const mlo_graph *other = then ? mlo_fitting(m, n, "else_branch", 0, n->n_output) : NULL;
    k->node = n;
    k->taken = yes ? then : other;
    k->left = yes ? other : then;
    return one && other;
}

/* Holds what chooses between the two of a merged decoder. */
static int mlo_cache_branch_held(mlo *m, const mlo_graph *g) {
    mlo_value *v = mlo_value_of(g, mlo_intern(m, mlo_cache_branch));
    const mlo_form f = mlo_form_of(v);
    if (!v || v->producer || v->tensor || f.dtype != MLO_BOOL || f.rank > 1) return 0;
    int chooses = 0;
    for (size_t i = 0; i < g->n_node; i++)
        chooses += mlo_is(g->node[i], "If") && mlo_has_input(g->node[i], 0)
            && g->node[i]->input[0] == v->name;
    if (!chooses || chooses < v->n_uses) return 0;
    static const int64_t one[] = { 1 };
    void *no = mlo_alloc(m, 1, 1);
    mlo_tensor *t = no ? mlo_tensor_new(m, v->name, MLO_BOOL, one, (size_t)f.rank, no, 1) : NULL;
    mlo_warn(m,
        "'%s' is held 0: of the two decoders in this model, the one without a past; --context N "
        "gives "
        "the core a cache, --hold another value",
        mlo_cache_branch);
    return t ? mlo_hold_one(m, t) || mlo_index(m, m->model->graph) : mlo_failed(m);
}

/* ---- what their values are called ------------------------------------------- */

static int mlo_branch_name(void *user, const char *name) {
    mlo_call_site *c = (mlo_call_site *)user;
    if (!*name || mlo_map_get(&c->names, name)) return 0;
    if (mlo_map_get(&c->k->taken, name)) return mlo_call_name(c, name) ? 0 : mlo_failed(c->k->m);
    return mlo_map_put(c->k->m, &c->k->taken, name, c)
        || mlo_map_put(c->k->m, &c->names, name, (void *)(uintptr_t)name);
}
/* What a graph defines. */
static int mlo_branch_defines(mlo *m, void *graph, void *user) {
    (void)m;
    return mlo_each_definition((const mlo_graph *)graph, mlo_branch_name, user);
}
/* What a node reads that no graph in the branch defines is outside. */
static int mlo_branch_reads(mlo *m, void *node, void *user) {
    const mlo_node *n = (const mlo_node *)node;
    mlo_call_site *c = (mlo_call_site *)user;
    for (size_t i = 0; i < n->n_input; i++)
        if (*n->input[i] && !mlo_map_get(&c->names, n->input[i]))
            MLO_TRY(mlo_map_put(m, &c->names, n->input[i], (void *)(uintptr_t)n->input[i]));
    return 0;
}

/* ---- the nodes --------------------------------------------------------------- */

static int mlo_branch_inline(
    mlo_inliner *k, mlo_graph *g, const mlo_known_if *b, mlo_node_list *to) {
    mlo *m = k->m;
    mlo_graph *from = (mlo_graph *)(uintptr_t)b->taken;
    mlo_call_site c = { k, NULL, b->node, { NULL, 0, 0 }, mlo_node_name(b->node) };
    MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, from, MLO_M_GRAPH, mlo_branch_defines, &c));
    /* an output of the branch is the If's; but one that it hands out a second time, or from outside */
    for (size_t i = 0; i < b->node->n_output; i++) {
        const char *name = from->output[i]->name, *said = b->node->output[i];
        if (*said && mlo_map_get(&c.names, name))
            MLO_TRY(mlo_map_put(m, &c.names, name, (void *)(uintptr_t)said));
    }
    MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, from, MLO_M_NODE, mlo_branch_reads, &c));
    for (size_t i = 0; i < from->n_init; i++) {
        mlo_tensor *t = MLO_NEW(m, mlo_tensor);
        if (!t) return mlo_failed(m);
        *t = *from->init[i];
        if (!(t->name = mlo_call_name(&c, t->name)) || mlo_graph_init(m, g, t))
            return mlo_failed(m);
    }
    for (size_t i = 0; i < from->n_node; i++) {
        mlo_node *n = mlo_copy_node(&c, from->node[i], 0);
        if (!n || !MLO_PUSH(m, to->node, to->n, n)) return mlo_failed(m);
        if (from->node[i]->name && *from->node[i]->name) n->name = from->node[i]->name;
    }
    for (size_t i = 0; i < b->node->n_output; i++) {
        const char *name = from->output[i]->name, *said = b->node->output[i];
        const char *inner = (const char *)mlo_map_get(&c.names, name);
        if (*said && inner != said) MLO_TRY(mlo_inline_pass(&c, inner ? inner : name, said, to));
    }
    return mlo_failed(m);
}

/* ---- what nobody reads any more ----------------------------------------------- */

static int mlo_branch_mentions(mlo *m, void *node, void *user) {
    const mlo_node *n = (const mlo_node *)node;
    for (size_t i = 0; i < n->n_input; i++)
        if (*n->input[i]) MLO_TRY(mlo_map_put(m, (mlo_map *)user, n->input[i], node));
    return 0;
}
static int mlo_branch_forget(mlo *m, mlo_graph *g, const mlo_map *mentioned) {
    size_t kept = 0;
    MLO_TRY(mlo_index(m, g));
    for (size_t i = 0; i < g->n_input; i++) {
        const mlo_value *v = mlo_value_of(g, g->input[i]->name);
        if (v->n_uses || !mlo_map_get(mentioned, v->name)) g->input[kept++] = g->input[i];
    }
    g->n_input = kept;
    return mlo_index(m, g);
}

/* One round: Ifs in a branch that is taken are known in the next one. *more: was there any? */
static int mlo_branch_round(mlo *m, mlo_graph *g, int *more) {
    mlo_inliner k = { m, { NULL, 0, 0 }, { NULL, 0, 0 }, { NULL, 0, 0 }, 0 };
    mlo_map mentioned = { NULL, 0, 0 }, known = { NULL, 0, 0 };
    mlo_node_list list = { NULL, 0 };
    *more = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_known_if *b = mlo_is(g->node[i], "If") ? MLO_NEW(m, mlo_known_if) : NULL;
        if (!b || !mlo_if_known(m, g, g->node[i], b)) continue;
        MLO_TRY(mlo_map_put(m, &known, g->node[i], b));
        MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, (void *)(uintptr_t)b->left, MLO_M_NODE,
            mlo_branch_mentions, &mentioned));
        g->node[i]->n_attr = 0; /* its graphs' names are free */
        *more = 1;
    }
    if (m->error.code || !*more) return mlo_failed(m);
    MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_GRAPH, mlo_inline_taken, &k));
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_known_if *b = (const mlo_known_if *)mlo_map_get(&known, g->node[i]);
        if (b)
            MLO_TRY(mlo_branch_inline(&k, g, b, &list));
        else if (!MLO_PUSH(m, list.node, list.n, g->node[i]))
            return mlo_failed(m);
    }
    g->node = list.node;
    g->n_node = list.n;
    return mlo_branch_forget(m, g, &mentioned);
}

/* *any: did it take any? */
static int mlo_branches(mlo *m, int *any) {
    mlo_graph *g = m->model->graph;
    int ifs = 0;
    *any = 0;
    for (size_t i = 0; i < g->n_node; i++) ifs += mlo_is(g->node[i], "If");
    if (ifs && m->stale) MLO_TRY(mlo_index(m, g));
    for (int more = ifs > 0; more; *any |= more) MLO_TRY(mlo_branch_round(m, g, &more));
    return 0;
}
