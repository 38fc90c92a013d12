/* match: the graph as numbers, the test whether two nodes are equal, and shifts: maps of each layer
 * onto the next.
 *
 * in:  an indexed graph.
 * out: an mlo_net (nodes 0..n-1; edges by slot, which is an input of a node; signatures), and
 *     shifts over it.
 *
 * A shift is a partial one-to-one map of nodes: next[x] = y says that y does in its layer what x
 * does in the layer before. A shift grows in lock step from one pair of nodes: where x reads from p
 * and y reads from q, p maps to q; where x feeds exactly one node of a kind and so does y, these
 * map. Growing stops where x and y read the same value (all layers share it), where ops differ, and
 * at constants.
 *
 * invariant: paired nodes have the same op, domain and numbers of inputs and outputs. A pair whose
 *     attributes or shapes differ is kept, so that an error can name the difference, but it is
 *     never rolled. Only positions decide, never names.
 * example: in a 12-layer BERT, the pair (softmax of layer 10, softmax of layer 11) grows into the
 *     whole shift: 11 x 36 pairs.
 * cost: signatures O(nodes); one shift O(its pairs); the context hashes O(radius x edges).
 */
enum { MLO_RADII = 7, MLO_NONE = -1 };

typedef struct mlo_net {
    mlo *m;
    mlo_graph *g;
    int n; /* nodes */

    /* slots of node i: in_at[i] .. in_at[i+1]-1; the inputs, then what its subgraphs read from
     * outside */
    int *in_at;
    mlo_value **in; /* value of a slot, NULL when absent */
    int *from; /* the node that makes it, MLO_NONE for graph inputs and constants */
    int *use_at; /* uses of node i: use_at[i] .. use_at[i+1]-1 */
    int *use; /* slots that read outputs of the node (as indices into in[]) */
    int *reader; /* the node a slot belongs to */

    uint8_t *constant; /* 1: a Constant node: a value, not an operation */
    uint8_t *commutes; /* 1: its two operands may come in either order */
    int *kind; /* mlo_op_same, as a number: the first node that is the same op */
    /* op, domain, attributes, arity, output forms: equal for nodes that may share one body node */
    uint64_t *sig;
    uint64_t *context[MLO_RADII]; /* sig and its surroundings to some distance */
} mlo_net;

static uint64_t mlo_mix(uint64_t h, uint64_t x) {
    h ^= x + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
    h *= 0xFF51AFD7ED558CCDu;
    return h ^ (h >> 32);
}
static uint64_t mlo_mix_text(uint64_t h, const char *s) {
    return mlo_mix(h, s ? mlo_hash(s, strlen(s)) : 7);
}

static const char *mlo_domain(const mlo_node *n) {
    return !n->domain || mlo_eq(n->domain, "ai.onnx") ? "" : n->domain;
}

/* Ops whose two operands may come in either order. */
static int mlo_commutes(const mlo_node *n) {
    return n->n_input == 2 && mlo_has_trait(n, MLO_COMMUTES);
}

/* ---- equality ------------------------------------------------------------- */

/* Are both known, as far as they go, and different? */
static int mlo_forms_clash(const mlo_form *a, const mlo_form *b) {
    if (a->dtype && b->dtype && a->dtype != b->dtype) return 1;
    if (a->rank < 0 || b->rank < 0) return 0;
    if (a->rank != b->rank) return 1;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i]) return 1;
    return 0;
}
static int mlo_form_differs(const mlo_value *a, const mlo_value *b) {
    if (!a || !b) return 0;
    const mlo_tensor *s = a->tensor, *t = b->tensor;
    /* the way to a shape is long: five blocks */
    if (a->form && b->form) return a->form != b->form;
    if (s && t) return !mlo_tensor_alike(s, t);
    mlo_form x = mlo_form_of(a), y = mlo_form_of(b);
    return mlo_forms_clash(&x, &y);
}

static int mlo_graph_same(mlo *m, const mlo_graph *a, const mlo_graph *b);

static int mlo_attr_same(mlo *m, const mlo_attr *a, const mlo_attr *b) {
    int same = (a->type == b->type) & (a->n_strings == b->n_strings) & (a->n_graphs == b->n_graphs)
        & (a->n_tensors == b->n_tensors);
    if (!same) return 0;
    switch (a->type) {
    case MLO_ATTR_FLOAT: return !memcmp(&a->f, &b->f, sizeof a->f);
    case MLO_ATTR_INT: return a->i == b->i;
    case MLO_ATTR_STRING: return mlo_lists_equal(a->s.data, a->s.n, b->s.data, b->s.n, 1);
    case MLO_ATTR_TENSOR: return mlo_tensor_equal(m, a->t, b->t);
    case MLO_ATTR_GRAPH: return mlo_graph_same(m, a->g, b->g);
    case MLO_ATTR_FLOATS:
        return mlo_lists_equal(a->floats, a->n_floats, b->floats, b->n_floats, sizeof *a->floats);
    case MLO_ATTR_INTS:
        return mlo_lists_equal(a->ints, a->n_ints, b->ints, b->n_ints, sizeof *a->ints);
    case MLO_ATTR_STRINGS:
        for (size_t i = 0; i < a->n_strings; i++)
            same &= mlo_lists_equal(
                a->strings[i].data, a->strings[i].n, b->strings[i].data, b->strings[i].n, 1);
        return same;
    case MLO_ATTR_GRAPHS:
        for (size_t i = 0; i < a->n_graphs; i++)
            same &= mlo_graph_same(m, a->graphs[i], b->graphs[i]);
        return same;
    case MLO_ATTR_TENSORS:
        for (size_t i = 0; i < a->n_tensors; i++)
            same &= mlo_tensor_equal(m, a->tensors[i], b->tensors[i]);
        return same;
    /* sparse tensors and types as attributes: equal only to themselves */
    default: return a == b;
    }
}

/* The first attribute that differs between two nodes, or NULL; which[0], which[1] are the two
 * (NULL where one lacks it). */
static const char *mlo_attr_difference(
    mlo *m, const mlo_node *a, const mlo_node *b, const mlo_attr *which[2]) {
    for (size_t i = 0; i < a->n_attr; i++) {
        which[0] = a->attr[i];
        which[1] = mlo_attr_of(b, a->attr[i]->name);
        if (which[1] ? !mlo_attr_same(m, which[0], which[1]) : !mlo_attr_is_default(a, which[0]))
            return a->attr[i]->name;
    }
    for (size_t i = 0; i < b->n_attr; i++)
        if (!mlo_attr_of(a, b->attr[i]->name) && !mlo_attr_is_default(b, b->attr[i])) {
            which[0] = NULL;
            which[1] = b->attr[i];
            return b->attr[i]->name;
        }
    return NULL;
}

static int mlo_op_same(const mlo_node *a, const mlo_node *b) {
    if (a == b) return 1;
    if (!mlo_eq(a->op, b->op) || strcmp(mlo_domain(a), mlo_domain(b))
        || !mlo_eq(a->overload, b->overload))
        return 0;
    if (a->n_input != b->n_input || a->n_output != b->n_output) return 0;
    for (size_t i = 0; i < a->n_input; i++)
        if (mlo_has_input(a, i) != mlo_has_input(b, i)) return 0;
    return 1;
}

/* Are name x of a and name y of b the same thing? Inner names correspond (in `map`); a name from
 * outside is compared by its slot, later. */
static int mlo_name_same(const mlo_map *map, const char *x, const char *y) {
    const void *inner = mlo_map_get(map, x);
    return !inner || inner == y;
}
static void mlo_names_pair(mlo *m, mlo_map *map, const char *x, const char *y) {
    mlo_map_put(m, map, x, (void *)(uintptr_t)y);
}

/* Two subgraphs with the same nodes in the same order, whatever their values are called. */
static int mlo_graph_same(mlo *m, const mlo_graph *a, const mlo_graph *b) {
    if (a->n_node != b->n_node || a->n_input != b->n_input || a->n_output != b->n_output
        || a->n_init != b->n_init)
        return 0;
    mlo_map map = { 0 };
    const mlo_attr *which[2];
    for (size_t i = 0; i < a->n_input; i++)
        mlo_names_pair(m, &map, a->input[i]->name, b->input[i]->name);
    for (size_t i = 0; i < a->n_init; i++) {
        if (!mlo_tensor_equal(m, a->init[i], b->init[i])) return 0;
        mlo_names_pair(m, &map, a->init[i]->name, b->init[i]->name);
    }
    for (size_t k = 0; k < a->n_node; k++) {
        const mlo_node *x = a->node[k], *y = b->node[k];
        if (!mlo_op_same(x, y) || mlo_attr_difference(m, x, y, which)) return 0;
        for (size_t i = 0; i < x->n_input; i++)
            if (!mlo_name_same(&map, x->input[i], y->input[i])) return 0;
        for (size_t i = 0; i < x->n_output; i++)
            mlo_names_pair(m, &map, x->output[i], y->output[i]);
    }
    for (size_t i = 0; i < a->n_output; i++)
        if (!mlo_name_same(&map, a->output[i]->name, b->output[i]->name)) return 0;
    return 1;
}

/* ---- the net -------------------------------------------------------------- */

/* Calls visit for each value a node reads: its inputs (NULL for absent ones), then what its
 * subgraphs read from graph g or outside it. */
typedef struct {
    mlo_net *net;
    int n; /* slots so far */
    int count_only; /* 1: they are counted, not noted */
} mlo_slots;

static void mlo_slot_add(mlo_slots *s, mlo_value *v) {
    if (!s->count_only) s->net->in[s->n] = v;
    s->n++;
}

/* Does what a subgraph reads lie in graph g, or outside it: g itself may be a loop's body. */
static int mlo_slot_outer(const mlo_slots *s, const mlo_value *v) {
    return mlo_value_of(s->net->g, v->name) == v;
}

static void mlo_slots_inside(mlo_slots *s, mlo_graph *inner) {
    for (size_t i = 0; i < inner->n_node; i++) {
        mlo_node *n = inner->node[i];
        for (size_t k = 0; k < n->n_input; k++) {
            mlo_value *v = mlo_value_of(inner, n->input[k]);
            if (v && mlo_slot_outer(s, v)) mlo_slot_add(s, v);
        }
        for (size_t a = 0; a < n->n_attr; a++) {
            if (n->attr[a]->g) mlo_slots_inside(s, n->attr[a]->g);
            for (size_t k = 0; k < n->attr[a]->n_graphs; k++)
                mlo_slots_inside(s, n->attr[a]->graphs[k]);
        }
    }
    for (size_t i = 0; i < inner->n_output; i++) {
        mlo_value *v = mlo_value_of(inner, inner->output[i]->name);
        if (mlo_slot_outer(s, v)) mlo_slot_add(s, v);
    }
}

static void mlo_slots_of(mlo_slots *s, mlo_node *n) {
    if (s->count_only)
        s->n += (int)n->n_input;
    else
        for (size_t i = 0; i < n->n_input; i++)
            mlo_slot_add(s, mlo_value_of(s->net->g, n->input[i]));
    for (size_t a = 0; a < n->n_attr; a++) {
        if (n->attr[a]->g) mlo_slots_inside(s, n->attr[a]->g);
        for (size_t k = 0; k < n->attr[a]->n_graphs; k++)
            mlo_slots_inside(s, n->attr[a]->graphs[k]);
    }
}

/* A number as it is stored: 0 and -0 differ. */
static uint32_t mlo_stored_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static uint64_t mlo_attr_hash(const mlo_attr *a) {
    uint64_t h = mlo_mix((uint64_t)a->type, mlo_hash(a->name, strlen(a->name)));
    switch (a->type) {
    case MLO_ATTR_FLOAT: return mlo_mix(h, mlo_stored_bits(a->f));
    case MLO_ATTR_INT: return mlo_mix(h, (uint64_t)a->i);
    case MLO_ATTR_STRING: return mlo_mix(h, mlo_hash(a->s.data, a->s.n));
    case MLO_ATTR_INTS: return mlo_mix(h, mlo_hash(a->ints, a->n_ints * sizeof *a->ints));
    case MLO_ATTR_FLOATS: return mlo_mix(h, mlo_hash(a->floats, a->n_floats * sizeof *a->floats));
    case MLO_ATTR_GRAPH:
        for (size_t i = 0; i < a->g->n_node; i++) h = mlo_mix_text(h, a->g->node[i]->op);
        return h;
    default: return h;
    }
}

static uint64_t mlo_form_hash(uint64_t h, const mlo_form *f) {
    h = mlo_mix(h, (uint64_t)f->dtype * 64 + (uint64_t)(f->rank + 1));
    for (int i = 0; i < f->rank; i++) h = mlo_mix(h, (uint64_t)f->dims[i]);
    return h;
}

/* Notes the form of a value where it is known in whole: what is known does not change. */
static int mlo_value_form(mlo *m, mlo_value *v) {
    mlo_form f = mlo_form_of(v);
    return !mlo_form_known(&f)
            || (v->form = mlo_intern_n(m, (const char *)&f,
                    offsetof(mlo_form, dims) + (size_t)f.rank * sizeof *f.dims))
        ? 0
        : mlo_failed(m);
}

static uint64_t mlo_sig_of(const mlo_net *net, const mlo_node *n) {
    uint64_t h = mlo_mix_text(mlo_mix_text(mlo_mix_text(1, n->op), mlo_domain(n)), n->overload);
    uint64_t attrs = 0;
    /* in any order */
    for (size_t i = 0; i < n->n_attr; i++)
        if (!mlo_attr_is_default(n, n->attr[i])) attrs += mlo_attr_hash(n->attr[i]);
    h = mlo_mix(h, attrs);
    for (size_t i = 0; i < n->n_input; i++) h = mlo_mix(h, (uint64_t)mlo_has_input(n, i));
    for (size_t i = 0; i < n->n_output; i++) {
        mlo_form f = mlo_form_of(mlo_value_of(net->g, n->output[i]));
        h = mlo_form_hash(h, &f);
    }
    return h;
}

/* One more step of surroundings: what feeds a node, by slot; and who reads it, as a set. */
static uint64_t mlo_context_of(const mlo_net *net, int i, const uint64_t *c) {
    uint64_t h = c[i], set = 0;
    for (int s = net->in_at[i]; s < net->in_at[i + 1]; s++) {
        uint64_t one = net->from[s] >= 0       ? c[net->from[s]]
            : net->in[s] && net->in[s]->tensor ? 11
                                               : 13;
        if (net->commutes[i])
            set += mlo_mix(one, 17);
        else
            h = mlo_mix(h, one);
    }
    h = mlo_mix(h, set);
    set = 0;
    for (int u = net->use_at[i]; u < net->use_at[i + 1]; u++) {
        int r = net->reader[net->use[u]], slot = net->commutes[r] ? 0 : net->use[u] - net->in_at[r];
        set += mlo_mix(c[r], (uint64_t)slot);
    }
    return mlo_mix(h, set);
}

static int mlo_net_edges(mlo_net *net) {
    mlo *m = net->m;
    int n = net->n, slots = net->in_at[n];
    for (int i = 0; i < n; i++) {
        for (int s = net->in_at[i]; s < net->in_at[i + 1]; s++) {
            mlo_value *v = net->in[s];
            net->reader[s] = i;
            net->from[s] = MLO_NONE;
            if (v && !v->form) MLO_TRY(mlo_value_form(m, v));
            if (!v || !v->producer || v->graph != net->g) continue;
            if (!net->constant[v->at]) {
                net->from[s] = v->at;
                net->use_at[v->at + 1]++;
            }
        }
    }
    for (int i = 0; i < n; i++) net->use_at[i + 1] += net->use_at[i];
    int *at = MLO_NEW_N(m, int, (size_t)n + 1);
    if (!at) return mlo_failed(m);
    memcpy(at, net->use_at, (size_t)n * sizeof *at);
    for (int s = 0; s < slots; s++)
        if (net->from[s] >= 0) net->use[at[net->from[s]]++] = s;
    return 0;
}

static int mlo_net_signatures(mlo_net *net) {
    mlo *m = net->m;
    for (int r = 0; r < MLO_RADII; r++)
        if (!(net->context[r] = MLO_NEW_N(m, uint64_t, (size_t)net->n + 1))) return mlo_failed(m);
    net->sig = net->context[0];
    for (int i = 0; i < net->n; i++) net->sig[i] = mlo_sig_of(net, net->g->node[i]);
    for (int r = 1; r < MLO_RADII; r++)
        for (int i = 0; i < net->n; i++)
            net->context[r][i] = mlo_context_of(net, i, net->context[r - 1]);
    return 0;
}

/* The kind of every node: nodes far apart in memory are then compared without being looked at. */
static int mlo_net_kinds(mlo_net *net) {
    /* op, an interned name -> 1 + the first node of that name; further kinds of it are chained */
    mlo_map first = { NULL, 0, 0 };
    int *chain = MLO_NEW_N(net->m, int, (size_t)net->n + 1);
    if (!chain) return mlo_failed(net->m);
    for (int i = 0; i < net->n; i++) {
        const mlo_node *n = net->g->node[i];
        int k = (int)(uintptr_t)mlo_map_get(&first, n->op) - 1, last = MLO_NONE;
        for (; k >= 0 && !mlo_op_same(net->g->node[k], n); k = chain[k] - 1) last = k;
        net->kind[i] = k >= 0 ? k : i;
        if (k >= 0) continue;
        if (last >= 0)
            chain[last] = i + 1;
        else if (mlo_map_put(net->m, &first, n->op, (void *)(uintptr_t)(i + 1)))
            return mlo_failed(net->m);
    }
    return 0;
}

/* Of a graph whose index is fresh; net: zeroed. */
static int mlo_net_make(mlo *m, mlo_graph *g, mlo_net *net) {
    net->m = m;
    net->g = g;
    net->n = (int)g->n_node;
    size_t n = g->n_node + 1;
    if (g->n_node > INT_MAX / 8)
        return mlo_fail_at(
            m, MLO_E_UNSUPPORTED, g->name, "%zu nodes are more than mlo can number", g->n_node);
    net->in_at = MLO_NEW_N(m, int, n);
    net->use_at = MLO_NEW_N(m, int, n + 1);
    net->constant = MLO_NEW_N(m, uint8_t, n);
    net->commutes = MLO_NEW_N(m, uint8_t, n);
    net->kind = MLO_NEW_N(m, int, n);
    if (m->error.code || mlo_net_kinds(net)) return mlo_failed(m);
    mlo_slots count = { net, 0, 1 };
    for (int i = 0; i < net->n; i++) {
        mlo_node *node = g->node[i];
        net->constant[i] = mlo_is(node, "Constant") && node->n_output
            && mlo_value_of(g, node->output[0]) && mlo_value_of(g, node->output[0])->tensor;
        net->commutes[i] = (uint8_t)mlo_commutes(node);
        net->in_at[i] = count.n;
        mlo_slots_of(&count, node);
    }
    net->in_at[net->n] = count.n;
    size_t slots = (size_t)count.n + 1;
    net->in = MLO_NEW_N(m, mlo_value *, slots);
    net->from = MLO_NEW_N(m, int, slots);
    net->use = MLO_NEW_N(m, int, slots);
    net->reader = MLO_NEW_N(m, int, slots);
    if (m->error.code) return mlo_failed(m);
    mlo_slots fill = { net, 0, 0 };
    for (int i = 0; i < net->n; i++) mlo_slots_of(&fill, g->node[i]);
    if (mlo_net_edges(net)) return mlo_failed(m);
    return mlo_net_signatures(net);
}

/* The net of a graph whose index is fresh, NULL on failure. One stage after the other finds the
 * net of the one before, as long as nobody has made the index anew; metadata are not part of it. */
static mlo_net *mlo_net_of(mlo *m, mlo_graph *g) {
    if (m->net && m->net->g == g) return m->net;
    mlo_net *net = MLO_NEW(m, mlo_net);
    if (!net || mlo_net_make(m, g, net)) return NULL;
    return m->net = net;
}

/* ---- the shift ------------------------------------------------------------ */

typedef struct {
    mlo_net *net;
    int *next; /* per node: the one that follows it, MLO_NONE where not mapped */
    int *prev; /* per node: the one that it follows, MLO_NONE where not mapped */
    /* the x of every pair (x, next[x]), in the order found; also the queue of the growth */
    int *pair;
    int n_pairs;
    int defects; /* pairs whose attributes or shapes differ */
    int crossed; /* edges that lead to two nodes with other partners: the seed may be a wrong one */
} mlo_shift;

static int mlo_shift_make(mlo_net *net, mlo_shift *s) {
    size_t n = (size_t)net->n + 1;
    s->net = net;
    s->n_pairs = s->defects = s->crossed = 0;
    s->next = MLO_NEW_N(net->m, int, n);
    s->prev = MLO_NEW_N(net->m, int, n);
    s->pair = MLO_NEW_N(net->m, int, n);
    if (net->m->error.code) return mlo_failed(net->m);
    for (size_t i = 0; i < n; i++) s->next[i] = s->prev[i] = MLO_NONE;
    return 0;
}
static void mlo_shift_clear(mlo_shift *s) {
    for (int i = 0; i < s->n_pairs; i++) {
        s->prev[s->next[s->pair[i]]] = MLO_NONE;
        s->next[s->pair[i]] = MLO_NONE;
    }
    s->n_pairs = s->defects = s->crossed = 0;
}

static int mlo_slot_count(const mlo_net *net, int i) { return net->in_at[i + 1] - net->in_at[i]; }

/* Could y follow x? */
static int mlo_shift_may(const mlo_shift *s, int x, int y) {
    const mlo_net *net = s->net;
    return x != y && s->next[x] < 0 && s->prev[y] < 0
        && mlo_slot_count(net, x) == mlo_slot_count(net, y) && net->kind[x] == net->kind[y];
}
static void mlo_shift_add(mlo_shift *s, int x, int y) {
    if (!mlo_shift_may(s, x, y)) return;
    s->next[x] = y;
    s->prev[y] = x;
    s->pair[s->n_pairs++] = x;
    s->defects += s->net->sig[x] != s->net->sig[y];
}

/* How well the maker of slot a fits the maker of slot b: known partners, then surroundings, then
 * the bare signature. */
static int mlo_slot_affinity(const mlo_shift *s, int a, int b) {
    const mlo_net *net = s->net;
    int p = net->from[a], q = net->from[b];
    if (p < 0 || q < 0)
        return p == q
            ? (net->in[a] == net->in[b] ? 12
                      : (net->in[a] && net->in[a]->tensor) == (net->in[b] && net->in[b]->tensor)
                      ? 6
                      : 0)
            : 0;
    if (p == q || s->next[p] == q) return 20;
    if (s->next[p] >= 0 || s->prev[q] >= 0) return 0;
    for (int r = MLO_RADII; r--;)
        if (net->context[r][p] == net->context[r][q]) return 8 + r;
    return net->kind[p] == net->kind[q] ? 2 : 0;
}

/* Are the operands of y to be read in the other order to fit those of x? */
static int mlo_shift_swapped(const mlo_shift *s, int x, int y) {
    const mlo_net *net = s->net;
    if (!net->commutes[x]) return 0;
    int a = net->in_at[x], b = net->in_at[y];
    return mlo_slot_affinity(s, a, b + 1) + mlo_slot_affinity(s, a + 1, b)
        > mlo_slot_affinity(s, a, b) + mlo_slot_affinity(s, a + 1, b + 1);
}

static void mlo_shift_back(mlo_shift *s, int x, int y) {
    const mlo_net *net = s->net;
    int n = mlo_slot_count(net, x), swap = mlo_shift_swapped(s, x, y);
    for (int k = 0; k < n; k++) {
        int a = net->in_at[x] + k, b = net->in_at[y] + (swap ? 1 - k : k);
        int p = net->from[a], q = net->from[b];
        if (p < 0 || q < 0 || net->in[a]->output != net->in[b]->output) continue;
        mlo_shift_add(s, p, q);
        s->crossed += p != q && s->next[p] != q && net->kind[p] == net->kind[q];
    }
}

/* Do nodes x and y look alike, with their surroundings to this radius? Radius -1: the same op is
 * enough. */
static int mlo_alike(const mlo_net *net, int x, int y, int radius) {
    return radius < 0 ? net->kind[x] == net->kind[y]
                      : net->context[radius][x] == net->context[radius][y];
}

/* The only still free reader of node y's output that fits reader u of x's, at the widest
 * surroundings that single it out; else MLO_NONE. Layers follow each other: a reader that comes
 * before r is in an earlier one (two tables that layers take turns in reading lead there). */
static int mlo_shift_reader(const mlo_shift *s, int u, int y) {
    const mlo_net *net = s->net;
    int r = net->reader[u], slot = u - net->in_at[r];
    for (int radius = MLO_RADII - 1; radius >= -1; radius--) {
        int found = MLO_NONE, many = 0;
        for (int k = net->use_at[y]; k < net->use_at[y + 1]; k++) {
            int q = net->reader[net->use[k]];
            if (q <= r || q == found || !mlo_alike(net, r, q, radius) || !mlo_shift_may(s, r, q))
                continue;
            if (net->in[net->use[k]]->output != net->in[u]->output) continue;
            if (!net->commutes[r] && net->use[k] - net->in_at[q] != slot) continue;
            if (found >= 0) many = 1;
            found = q;
        }
        if (many) return MLO_NONE;
        if (found >= 0) return found;
    }
    return MLO_NONE;
}

/* does x have another free reader just like slot u's reader? */
static int mlo_shift_twin(const mlo_shift *s, int u, int x) {
    const mlo_net *net = s->net;
    int r = net->reader[u];
    for (int k = net->use_at[x]; k < net->use_at[x + 1]; k++) {
        int q = net->reader[net->use[k]];
        if (q != r && s->next[q] < 0 && net->context[1][q] == net->context[1][r]
            && net->context[MLO_RADII - 1][q] == net->context[MLO_RADII - 1][r])
            return 1;
    }
    return 0;
}

/* values with more readers are shared tables: no guide to structure */
enum { MLO_MAX_FANOUT = 64 };

static void mlo_shift_forward(mlo_shift *s, int x, int y) {
    const mlo_net *net = s->net;
    if (net->use_at[x + 1] - net->use_at[x] > MLO_MAX_FANOUT
        || net->use_at[y + 1] - net->use_at[y] > MLO_MAX_FANOUT)
        return;
    for (int k = net->use_at[x]; k < net->use_at[x + 1]; k++) {
        int r = net->reader[net->use[k]];
        if (s->next[r] >= 0 || mlo_shift_twin(s, net->use[k], x)) continue;
        int q = mlo_shift_reader(s, net->use[k], y);
        if (q >= 0 && s->prev[r] != q) mlo_shift_add(s, r, q);
    }
}

/* The pairs that some shift has held already: growing from them would only give that shift again. */
typedef struct {
    uint64_t *slot;
    size_t size; /* slots */
    size_t used; /* slots */
} mlo_pairs;

static int mlo_pairs_put(mlo *m, mlo_pairs *set, int x, int y) {
    if (set->used * 2 >= set->size) {
        mlo_pairs more = { NULL, set->size ? set->size * 2 : 1024, 0 };
        if (!(more.slot = MLO_NEW_N(m, uint64_t, more.size))) return mlo_failed(m);
        for (size_t i = 0; i < set->size; i++)
            if (set->slot[i])
                mlo_pairs_put(
                    m, &more, (int)(set->slot[i] >> 32), (int)(set->slot[i] & 0xFFFFFFFFu) - 1);
        *set = more;
    }
    uint64_t key = (uint64_t)(uint32_t)x << 32 | (uint32_t)(y + 1);
    size_t at = (size_t)mlo_mix(1, key) & (set->size - 1);
    while (set->slot[at] && set->slot[at] != key) at = (at + 1) & (set->size - 1);
    if (!set->slot[at]) {
        set->slot[at] = key;
        set->used++;
    }
    return 0;
}
static int mlo_pairs_has(const mlo_pairs *set, int x, int y) {
    uint64_t key = (uint64_t)(uint32_t)x << 32 | (uint32_t)(y + 1);
    if (!set->size) return 0;
    size_t at = (size_t)mlo_mix(1, key) & (set->size - 1);
    while (set->slot[at] && set->slot[at] != key) at = (at + 1) & (set->size - 1);
    return set->slot[at] == key;
}

/* Grows the shift that maps x to y, backwards first (slots say exactly what maps to what),
 * forwards where nothing is left to go back to. Gives up (returns 0) when half of what it finds
 * differs, or has been found before. *steps counts the work. */
static int mlo_shift_grow(mlo_shift *s, int x, int y, const mlo_pairs *seen, long *steps) {
    int back = 0, forth = 0, again = 0;
    mlo_shift_add(s, x, y);
    while (forth < s->n_pairs) {
        for (; back < s->n_pairs; back++) {
            *steps += 1 + mlo_slot_count(s->net, s->pair[back]) / 16;
            again += mlo_pairs_has(seen, s->pair[back], s->next[s->pair[back]]);
            if (back > 6 && again * 2 > back) return 0;
            if (s->n_pairs > 12 && s->defects * 2 > s->n_pairs) return 0;
            mlo_shift_back(s, s->pair[back], s->next[s->pair[back]]);
        }
        mlo_shift_forward(s, s->pair[forth], s->next[s->pair[forth]]);
        forth++;
        ++*steps;
    }
    return 1;
}
