/* template: a loop body as a small model of its own, written by one run and found again by another.
 *
 * in:  mlo_template: such a model, perhaps edited (nodes taken away at either end, renamed,
 *     reordered).
 * out: mlo_write_template: the body of a loop that extract marked, as a model. Its inputs are what
 *     comes from outside, and what differs between layers or was learned; its outputs are what the
 *     next layer or anybody else uses. Constants that all layers share stay inside.
 *
 * Every instance of a template in a graph is found by exact subgraph isomorphism: ops, domains,
 * attributes, types, shapes and wiring must be equal, with operands of commutative ops in either
 * order. An input of the template stands for one value, a constant for an equal one. Instances that
 * read from each other are chained into loops and marked as extract marks them.
 *
 * A place that is an instance but for less than half of its nodes is left out, and told: where it
 * lies and what differs first, in the template's order. Such places grow from any two nodes whose
 * surroundings agree, to what lies likewise around them, so it does not matter where they differ.
 *
 * invariant: no node is in two instances. A node that cannot be matched is reported with its
 *     nearest counterpart and the difference.
 * example: mlo extract bert.onnx --save-template layer.onnx; ...edit...; mlo roll bert.onnx
 *     --template layer.onnx
 * cost: O(template) per node of the model that looks like the template's last one.
 */

/* ---- writing -------------------------------------------------------------- */

typedef struct {
    mlo *m;
    mlo_net *net;
    mlo_marked *loop;
    const int *loop_of; /* per node; MLO_NONE outside of loops */
    const int *instance; /* per node */
    int self; /* this loop, in loop_of */
    mlo_graph body;
    mlo_map seen; /* values that are inputs already */
    mlo_map names; /* taken names */
} mlo_template_writer;

/* The value that slot s at position p reads in instance k. Slots are taken as they stand: where a
 * commutative op has its operands the other way round in one layer, a shared constant does not
 * look shared, and becomes an input. */
static mlo_value *mlo_template_value(const mlo_template_writer *w, int k, int p, int s) {
    int x = w->loop->node[k * w->loop->size + p];
    return s < mlo_slot_count(w->net, x) ? w->net->in[w->net->in_at[x] + s] : NULL;
}

/* Is the constant at this input the same in all layers, and nothing that training sets? */
static int mlo_template_shared(const mlo_template_writer *w, int p, int s) {
    int x = w->loop->node[p];
    mlo_value *v = mlo_template_value(w, 0, p, s);
    if (s < (int)w->net->g->node[x]->n_input && mlo_learned(w->net, x, s)) return 0;
    for (int k = 1; k < w->loop->iterations; k++) {
        mlo_value *u = mlo_template_value(w, k, p, s);
        if (!u || !mlo_value_same(w->m, u, v)) return 0;
    }
    return 1;
}

static int mlo_template_input(mlo_template_writer *w, const mlo_value *v, const char *name) {
    mlo_form f = mlo_form_of(v);
    mlo_value_info *info = mlo_info_new(w->m, name, &f);
    return info && MLO_PUSH(w->m, w->body.input, w->body.n_input, info) ? 0 : mlo_failed(w->m);
}

/* What the template calls the value at slot s of position p; makes it an input or a constant when
 * it comes from outside. */
static const char *mlo_template_name(mlo_template_writer *w, int p, int s) {
    mlo *m = w->m;
    mlo_value *v = mlo_template_value(w, 0, p, s);
    int from = w->net->from[w->net->in_at[w->loop->node[p]] + s];
    if (!v) return "";
    if (from >= 0 && w->loop_of[from] == w->self && w->instance[from] == 0) return v->name;
    int shared = v->tensor && mlo_template_shared(w, p, s);
    if (mlo_map_get(&w->seen, v) && (shared || !v->tensor)) return v->name;
    /* two learned uses are two inputs */
    const char *name = mlo_map_get(&w->seen, v) ? mlo_name_free(m, &w->names, v->name) : v->name;
    if (!name || mlo_map_put(m, &w->seen, v, v)) return NULL;
    if (!shared) return mlo_template_input(w, v, name) ? NULL : name;
    mlo_tensor *t = MLO_NEW(m, mlo_tensor);
    if (!t) return NULL;
    *t = *v->tensor;
    t->name = name;
    return mlo_graph_init(m, &w->body, t) ? NULL : name;
}

/* Does anybody outside of its own instance use output o at position p, in any instance? */
static int mlo_template_leaves(const mlo_template_writer *w, int p, int o) {
    for (int k = 0; k < w->loop->iterations; k++) {
        int x = w->loop->node[k * w->loop->size + p];
        const mlo_value *v = mlo_value_of(w->net->g, w->net->g->node[x]->output[o]);
        if (!v) continue;
        if (v->is_output) return 1;
        for (int u = w->net->use_at[x]; u < w->net->use_at[x + 1]; u++) {
            int r = w->net->reader[w->net->use[u]];
            if (w->net->in[w->net->use[u]] == v
                && (w->loop_of[r] != w->self || w->instance[r] != k))
                return 1;
        }
    }
    return 0;
}

static int mlo_template_node(mlo_template_writer *w, int p) {
    mlo *m = w->m;
    const mlo_node *from = w->net->g->node[w->loop->node[p]];
    mlo_node *n = MLO_NEW(m, mlo_node);
    if (!n) return mlo_failed(m);
    *n = *from;
    n->input = NULL;
    n->n_input = 0;
    n->meta = NULL;
    n->n_meta = 0;
    for (int s = 0; s < mlo_slot_count(w->net, w->loop->node[p]); s++) {
        const char *name = mlo_template_name(w, p, s);
        if (!name || (s < (int)from->n_input && mlo_node_input(m, n, name))) return mlo_failed(m);
    }
    for (size_t i = 0; i < from->n_meta; i++)
        if (!mlo_starts(from->meta[i].key, "mlo.")
            && !MLO_PUSH(m, n->meta, n->n_meta, from->meta[i]))
            return mlo_failed(m);
    for (size_t o = 0; o < from->n_output; o++) {
        mlo_value *v = mlo_value_of(w->net->g, from->output[o]);
        mlo_form f = mlo_form_of(v);
        if (!v) continue;
        mlo_value_info *info = mlo_info_new(m, v->name, &f);
        if (!info
            || !(mlo_template_leaves(w, p, (int)o)
                    ? MLO_PUSH(m, w->body.output, w->body.n_output, info)
                    : MLO_PUSH(m, w->body.info, w->body.n_info, info)))
            return mlo_failed(m);
    }
    return mlo_graph_add(m, &w->body, n);
}

/* The marked loop with the most nodes. */
static mlo_marked *mlo_template_loop(mlo *m, mlo_template_writer *w) {
    mlo_graph *g = m->model->graph;
    mlo_marked *loops = NULL, *best = NULL;
    size_t n = 0;
    if (!(w->net = mlo_net_of(m, g))) return NULL;
    int *loop_of = MLO_NEW_N(m, int, (size_t)w->net->n + 1);
    int *instance = MLO_NEW_N(m, int, (size_t)w->net->n + 1);
    int *position = MLO_NEW_N(m, int, (size_t)w->net->n + 1);
    if (m->error.code || mlo_marks_read(m, g, &loops, &n, loop_of, instance, position)) return NULL;
    for (size_t i = 0; i < n; i++)
        if (!best || loops[i].count > best->count) {
            best = &loops[i];
            w->self = (int)i;
        }
    w->loop_of = loop_of;
    w->instance = instance;
    if (!best)
        mlo_fail_at(m, MLO_E_USAGE, NULL,
            "no loop is marked: a template is saved after extract and before roll");
    return best;
}

int mlo_write_template(mlo *m, mlo_sink sink, void *user) {
    mlo_template_writer w;
    if (m->error.code) return mlo_failed(m);
    if (!m->model) return mlo_fail_at(m, MLO_E_USAGE, NULL, "load a model first");
    memset(&w, 0, sizeof w);
    w.m = m;
    if (!(w.loop = mlo_template_loop(m, &w)) || mlo_names_taken(m, m->model->graph, &w.names))
        return mlo_failed(m);
    for (int p = 0; p < w.loop->size; p++) MLO_TRY(mlo_template_node(&w, p));
    mlo_model model = *m->model;
    w.body.name = mlo_format(m, "%s_body", w.loop->name);
    model.graph = &w.body;
    model.meta = NULL;
    model.n_meta = 0;
    model.training = NULL;
    model.n_training = 0;
    return m->error.code ? mlo_failed(m) : mlo_wire_write(m, &model, sink, user);
}

/* ---- matching ------------------------------------------------------------- */

/* How far an attempt got. */
typedef struct {
    int x; /* the template node that could not be matched, MLO_NONE: none yet */
    int y; /* the node of the model that it met, MLO_NONE: nobody */
    int anchor; /* the node of the model that the attempt began with */
    int matched; /* nodes */
} mlo_attempt;

/* What is an instance but for less than half of its nodes. */
typedef struct {
    const char *last; /* the last of its nodes */
    int matched; /* nodes */
    const char *why; /* what differs first */
} mlo_almost;

typedef struct {
    mlo *m;
    mlo_net *net;
    mlo_net t; /* the template's */
    mlo_graph *g; /* the template's */
    int size; /* its nodes that are no constants */
    int anchor; /* the node of it that matching begins with */

    int *at; /* per template node its counterpart, MLO_NONE: none yet */
    int *trail; /* template nodes that have one, in the order found */
    int n_trail;
    mlo_value **bound; /* per template input, what it stands for */
    int *bound_trail; /* template inputs that stand for something, in the order found */
    int n_bound;

    int *owner; /* per node of the model: its instance, or MLO_NONE */
    int *stamp; /* per node of the model: the attempt it is part of */
    int stamps; /* attempts */
    int **found; /* per instance, the counterparts of all template nodes */
    size_t n_found;
    mlo_attempt stuck; /* how far the present attempt got */
    mlo_attempt nearest; /* the attempt that got farthest, x MLO_NONE: none */
    int apart; /* a template node that an attempt could not come to, MLO_NONE: none */
    mlo_almost *place; /* what is almost an instance */
    size_t n_places;
} mlo_matcher;

static int mlo_match_node(mlo_matcher *a, int x, int y);

static void mlo_match_stuck(mlo_matcher *a, int x, int y) {
    if (a->n_trail > a->stuck.matched || a->stuck.x < 0) {
        a->stuck.x = x;
        a->stuck.y = y;
        a->stuck.matched = a->n_trail;
    }
}

/* A value that comes from outside: a constant must be equal, an input may be anything of its form,
 * but only one thing. */
static int mlo_match_outer(mlo_matcher *a, const mlo_value *v, mlo_value *w) {
    if (v->tensor) return w->tensor && mlo_tensor_equal(a->m, v->tensor, w->tensor);
    if (mlo_form_differs(v, w)) return 0;
    for (size_t i = 0; i < a->g->n_input; i++) {
        if (!mlo_eq(a->g->input[i]->name, v->name)) continue;
        if (a->bound[i]) return mlo_value_same(a->m, a->bound[i], w);
        a->bound[i] = w;
        a->bound_trail[a->n_bound++] = (int)i;
        return 1;
    }
    return 0;
}

static int mlo_match_slot(mlo_matcher *a, int sx, int sy) {
    const mlo_value *v = a->t.in[sx];
    mlo_value *w = a->net->in[sy];
    if (!v || !w) return v == w;
    int p = a->t.from[sx], q = a->net->from[sy];
    if (p < 0) return mlo_match_outer(a, v, w);
    return q >= 0 && v->output == w->output && mlo_match_node(a, p, q);
}

static void mlo_match_undo(mlo_matcher *a, int nodes, int bounds) {
    while (a->n_trail > nodes) {
        int x = a->trail[--a->n_trail];
        a->stamp[a->at[x]] = 0;
        a->at[x] = MLO_NONE;
    }
    while (a->n_bound > bounds) a->bound[a->bound_trail[--a->n_bound]] = NULL;
}

static int mlo_match_may(mlo_matcher *a, int x, int y) {
    const mlo_attr *which[2];
    const mlo_node *n = a->g->node[x], *o = a->net->g->node[y];
    if (a->owner[y] >= 0 || a->stamp[y] == a->stamps || !mlo_op_same(n, o)
        || mlo_slot_count(&a->t, x) != mlo_slot_count(a->net, y)
        || mlo_attr_difference(a->m, n, o, which))
        return 0;
    for (size_t i = 0; i < n->n_output; i++)
        if (mlo_form_differs(
                mlo_value_of(a->g, n->output[i]), mlo_value_of(a->net->g, o->output[i])))
            return 0;
    return 1;
}

/* Does y do what x does, with all that x needs of the template? */
static int mlo_match_node(mlo_matcher *a, int x, int y) {
    if (a->at[x] >= 0) return a->at[x] == y;
    if (!mlo_match_may(a, x, y)) {
        mlo_match_stuck(a, x, y);
        return 0;
    }
    int nodes = a->n_trail;
    int bounds = a->n_bound;
    int n = mlo_slot_count(&a->t, x);
    int orders = mlo_commutes(a->g->node[x]) ? 2 : 1;
    for (int swap = 0; swap < orders; swap++) {
        int good = 1;
        a->at[x] = y;
        a->stamp[y] = a->stamps;
        a->trail[a->n_trail++] = x;
        for (int k = 0; k < n && good; k++)
            good = mlo_match_slot(a, a->t.in_at[x] + k, a->net->in_at[y] + (swap ? 1 - k : k));
        if (good) return 1;
        if (a->n_trail == nodes + 1) mlo_match_stuck(a, x, y);
        mlo_match_undo(a, nodes, bounds);
    }
    return 0;
}

/* Finds a counterpart for a template node that nothing matched so far needs, among the readers of
 * what it reads. */
static int mlo_match_reader(mlo_matcher *a, int x) {
    for (int s = a->t.in_at[x]; s < a->t.in_at[x + 1]; s++) {
        int p = a->t.from[s];
        if (p < 0 || a->at[p] < 0) continue;
        for (int u = a->net->use_at[a->at[p]]; u < a->net->use_at[a->at[p] + 1]; u++)
            if (mlo_match_node(a, x, a->net->reader[a->net->use[u]])) return 1;
        return 0;
    }
    /* reads nothing that is known yet */
    return -1;
}

static int mlo_match_rest(mlo_matcher *a) {
    for (int again = 1; again && a->n_trail < a->size;) {
        again = 0;
        for (int x = 0; x < a->t.n; x++) {
            if (a->at[x] >= 0 || a->t.constant[x]) continue;
            int r = mlo_match_reader(a, x);
            if (!r) return 0;
            again |= r > 0;
        }
    }
    for (int x = 0; x < a->t.n && a->n_trail < a->size; x++)
        if (a->at[x] < 0 && !a->t.constant[x]) a->apart = x;
    return a->n_trail == a->size;
}

/* Tries every node that looks like the anchor. */
static int mlo_match_all(mlo_matcher *a) {
    mlo *m = a->m;
    for (int y = 0; y < a->net->n; y++) {
        if (!mlo_op_same(a->g->node[a->anchor], a->net->g->node[y])) continue;
        a->stamps++;
        a->stuck.x = MLO_NONE;
        a->stuck.matched = -1;
        a->stuck.anchor = y;
        if (mlo_match_node(a, a->anchor, y) && mlo_match_rest(a)) {
            int *at = MLO_NEW_N(m, int, (size_t)a->t.n + 1);
            if (!at) return mlo_failed(m);
            memcpy(at, a->at, (size_t)a->t.n * sizeof *at);
            for (int i = 0; i < a->n_trail; i++) a->owner[a->at[a->trail[i]]] = (int)a->n_found;
            if (!MLO_PUSH(m, a->found, a->n_found, at)) return mlo_failed(m);
        } else if (a->stuck.x >= 0 && (a->nearest.x < 0 || a->stuck.matched > a->nearest.matched))
            a->nearest = a->stuck;
        mlo_match_undo(a, 0, 0);
    }
    return 0;
}

/* ---- telling what is wrong ------------------------------------------------ */

/* In one line: how node y of the model differs from template node x in what it is; NULL: in
 * nothing. */
static const char *mlo_match_difference(mlo_matcher *a, int x, int y) {
    mlo *m = a->m;
    const mlo_attr *which[2];
    const mlo_node *n = a->g->node[x], *o = a->net->g->node[y];
    if (!mlo_op_same(n, o))
        return mlo_format(m, "%s %s stands where the template has %s %s", o->op, mlo_node_name(o),
            n->op, mlo_node_name(n));
    const char *attr = mlo_attr_difference(m, n, o, which);
    if (attr)
        return mlo_format(m, "%s %s: %s is %s, in the template's %s it is %s", o->op,
            mlo_node_name(o), attr, mlo_attr_text_of(m, which[1]), mlo_node_name(n),
            mlo_attr_text_of(m, which[0]));
    for (size_t i = 0; i < n->n_output; i++) {
        mlo_value *v = mlo_value_of(a->g, n->output[i]), *w = mlo_value_of(a->net->g, o->output[i]);
        if (mlo_form_differs(v, w))
            return mlo_format(m, "%s %s makes %s, the template's %s %s", o->op, mlo_node_name(o),
                mlo_form_text(m, w), mlo_node_name(n), mlo_form_text(m, v));
    }
    return NULL;
}

static int mlo_match_none(mlo_matcher *a) {
    mlo *m = a->m;
    const mlo_attempt *best = &a->nearest;
    for (int x = 0; x < a->t.n; x++) {
        int y = 0;
        while (y < a->net->n && !mlo_op_same(a->g->node[x], a->net->g->node[y])) y++;
        if (y == a->net->n && !a->t.constant[x])
            return mlo_fail(m, MLO_E_LOOP, a->g->node[x],
                "this node of the template has no counterpart: the model has no %s with as many "
                "inputs; save a template from this model with --save-template",
                a->g->node[x]->op);
    }
    if (a->apart >= 0)
        return mlo_fail(m, MLO_E_LOOP, a->g->node[a->apart],
            "reads nothing that the template's other nodes make, and none of them reads it; a "
            "template is of one piece");
    if (best->x < 0) return mlo_fail_at(m, MLO_E_LOOP, NULL, "the template matches nowhere");
    const char *why = mlo_match_difference(a, best->x, best->y);
    const mlo_node *o = a->net->g->node[best->y];
    return mlo_fail(m, MLO_E_LOOP, a->g->node[best->x],
        "this node of the template has no counterpart; the closest place (up to %s) matches %d of "
        "%d nodes, but %s",
        mlo_node_name(a->net->g->node[best->anchor]), best->matched, a->size,
        why ? why : mlo_format(m, "%s %s reads something else", o->op, mlo_node_name(o)));
}

/* ---- what is almost an instance ------------------------------------------- */

/* owner of a node that is in such a place */
enum { MLO_ALMOST = -2 };

/* Could y stand for x, were it not for attributes, shapes and what is read? */
static int mlo_almost_may(const mlo_matcher *a, int x, int y) {
    return a->at[x] < 0 && a->owner[y] == MLO_NONE && a->stamp[y] != a->stamps
        && mlo_slot_count(&a->t, x) == mlo_slot_count(a->net, y)
        && mlo_op_same(a->g->node[x], a->net->g->node[y]);
}

static void mlo_almost_add(mlo_matcher *a, int x, int y) {
    if (!mlo_almost_may(a, x, y)) return;
    a->at[x] = y;
    a->stamp[y] = a->stamps;
    a->trail[a->n_trail++] = x;
}

/* To those that make what x and y read. */
static void mlo_almost_back(mlo_matcher *a, int x, int y) {
    int at = a->t.in_at[x], to = a->net->in_at[y];
    for (int k = 0; k < mlo_slot_count(&a->t, x); k++)
        for (int other = 0; other <= a->t.commutes[x]; other++) {
            int p = a->t.from[at + k], q = a->net->from[to + (other ? 1 - k : k)];
            if (p >= 0 && q >= 0) mlo_almost_add(a, p, q);
        }
}

/* How alike the surroundings are of the readers of slot u of the template and slot k of the model;
 * -2: they cannot be a pair. */
static int mlo_almost_alike(const mlo_matcher *a, int u, int k) {
    int r = a->t.reader[u], q = a->net->reader[k], radius = MLO_RADII - 1;
    int likewise = a->t.commutes[r] || u - a->t.in_at[r] == k - a->net->in_at[q];
    if (!likewise || !mlo_almost_may(a, r, q)) return -2;
    while (radius >= 0 && a->t.context[radius][r] != a->net->context[radius][q]) radius--;
    return radius;
}

/* To those that read in the same place what x and y make: of several to that with the surroundings
 * most alike. */
static void mlo_almost_forward(mlo_matcher *a, int x, int y) {
    for (int u = a->t.use_at[x]; u < a->t.use_at[x + 1]; u++) {
        int best = MLO_NONE, most = -2;
        for (int k = a->net->use_at[y]; k < a->net->use_at[y + 1]; k++) {
            int alike = mlo_almost_alike(a, a->t.use[u], a->net->use[k]);
            if (alike > most) best = a->net->reader[a->net->use[k]];
            most = alike > most ? alike : most;
        }
        if (best >= 0) mlo_almost_add(a, a->t.reader[a->t.use[u]], best);
    }
}

/* To those that read what comes from outside, v in the template and w in the model. */
static void mlo_almost_outer(mlo_matcher *a, const mlo_value *v, const mlo_value *w) {
    for (int u = 0; u < a->t.in_at[a->t.n]; u++) {
        int best = MLO_NONE, most = -2;
        for (int k = 0; a->t.in[u] == v && k < a->net->in_at[a->net->n]; k++) {
            int alike = a->net->in[k] == w ? mlo_almost_alike(a, u, k) : -2;
            if (alike > most) best = a->net->reader[k];
            most = alike > most ? alike : most;
        }
        if (best >= 0) mlo_almost_add(a, a->t.reader[u], best);
    }
}

/* By way of what comes from outside for several: a residual stream leads past a node that differs. */
static void mlo_almost_across(mlo_matcher *a, int x, int y) {
    for (int k = 0; k < mlo_slot_count(&a->t, x); k++) {
        const mlo_value *v = a->t.in[a->t.in_at[x] + k];
        if (a->t.from[a->t.in_at[x] + k] >= 0 || !v || v->tensor || v->n_uses < 2) continue;
        for (int other = 0; other <= a->t.commutes[x]; other++) {
            int at = a->net->in_at[y] + (other ? 1 - k : k), q = a->net->from[at];
            if (q < 0 || a->stamp[q] != a->stamps) mlo_almost_outer(a, v, a->net->in[at]);
        }
    }
}

/* From one pair to all that lies likewise around it; how many of the nodes are equal. */
static int mlo_almost_grow(mlo_matcher *a, int x, int y) {
    int back = 0, forth = 0, across = 0, matched = 0;
    a->stamps++;
    mlo_almost_add(a, x, y);
    while (across < a->n_trail) {
        for (; forth < a->n_trail; forth++) {
            for (; back < a->n_trail; back++)
                mlo_almost_back(a, a->trail[back], a->at[a->trail[back]]);
            mlo_almost_forward(a, a->trail[forth], a->at[a->trail[forth]]);
        }
        /* what is small is soon given up */
        if (a->n_trail == a->size || a->n_trail * 4 < a->size) break;
        mlo_almost_across(a, a->trail[across], a->at[a->trail[across]]);
        across++;
    }
    for (int i = 0; i < a->n_trail; i++)
        matched += !mlo_match_difference(a, a->trail[i], a->at[a->trail[i]]);
    return matched;
}

/* Does slot sy of the model read what slot sx of the template does? */
static int mlo_almost_reads(mlo_matcher *a, int sx, int sy) {
    const mlo_value *v = a->t.in[sx];
    mlo_value *w = a->net->in[sy];
    int p = a->t.from[sx], q = a->net->from[sy];
    if (!v || !w) return v == w;
    if (p < 0) return mlo_match_outer(a, v, w);
    return a->at[p] == q && v->output == w->output;
}

/* The first slot in which the counterpart of x reads something else, in the order that has it
 * later; or as many as there are. */
static int mlo_almost_slot(mlo_matcher *a, int x) {
    int n = mlo_slot_count(&a->t, x), to = a->net->in_at[a->at[x]], farthest = 0;
    for (int swap = 0; swap <= a->t.commutes[x] && farthest < n; swap++) {
        int k = 0, bounds = a->n_bound;
        while (k < n && mlo_almost_reads(a, a->t.in_at[x] + k, to + (swap ? 1 - k : k))) k++;
        farthest = k > farthest ? k : farthest;
        if (k < n) mlo_match_undo(a, a->n_trail, bounds);
    }
    return farthest;
}

/* In one line: what there is instead of template node x. */
static const char *mlo_almost_lacks(mlo_matcher *a, int x) {
    const mlo_node *n = a->g->node[x];
    for (int s = a->t.in_at[x]; s < a->t.in_at[x + 1]; s++) {
        int p = a->t.from[s], y = p < 0 ? MLO_NONE : a->at[p];
        for (int u = y < 0 ? 0 : a->net->use_at[y]; y >= 0 && u < a->net->use_at[y + 1]; u++) {
            int q = a->net->reader[a->net->use[u]];
            if (a->stamp[q] != a->stamps && !mlo_op_same(n, a->net->g->node[q]))
                return mlo_match_difference(a, x, q);
        }
    }
    return mlo_format(
        a->m, "there is nothing where the template has %s %s", n->op, mlo_node_name(n));
}

/* In one line: what differs first, in the template's order. */
static const char *mlo_almost_why(mlo_matcher *a) {
    for (int x = 0; x < a->t.n; x++) {
        int y = a->at[x];
        if (a->t.constant[x]) continue;
        if (y < 0) return mlo_almost_lacks(a, x);
        const char *why = mlo_match_difference(a, x, y);
        if (why) return why;
        int k = mlo_almost_slot(a, x);
        if (k == mlo_slot_count(&a->t, x)) continue;
        const mlo_node *n = a->g->node[x], *o = a->net->g->node[y];
        return mlo_format(a->m, "%s %s: input %d is %s, the template's %s has %s there", o->op,
            mlo_node_name(o), k, mlo_slot_text(a->m, a->net, a->net->in_at[y] + k),
            mlo_node_name(n), mlo_slot_text(a->m, &a->t, a->t.in_at[x] + k));
    }
    return "its nodes are read elsewhere";
}

/* Keeps the place around y, where it is half an instance or more. A seed must lie in surroundings
 * that agree: then few nodes of the template come into question. */
static int mlo_almost_keep(mlo_matcher *a, int y) {
    int best = MLO_NONE, most = 0;
    for (int x = 0; x < a->t.n; x++) {
        if (a->t.constant[x] || a->t.context[1][x] != a->net->context[1][y]) continue;
        int matched = mlo_almost_grow(a, x, y);
        if (matched > most) best = x;
        most = matched > most ? matched : most;
        mlo_match_undo(a, 0, 0);
    }
    if (most * 2 < a->size) return 0;
    int last = 0;
    mlo_almost place = { NULL, mlo_almost_grow(a, best, y), NULL };
    for (int i = 0; i < a->n_trail; i++)
        if (a->at[a->trail[i]] > last) last = a->at[a->trail[i]];
    place.last = mlo_node_name(a->net->g->node[last]);
    place.why = mlo_almost_why(a);
    for (int i = 0; i < a->n_trail; i++) a->owner[a->at[a->trail[i]]] = MLO_ALMOST;
    mlo_match_undo(a, 0, 0);
    return MLO_PUSH(a->m, a->place, a->n_places, place) ? 0 : mlo_failed(a->m);
}

static int mlo_match_almost(mlo_matcher *a) {
    for (int y = 0; y < a->net->n; y++)
        if (a->owner[y] == MLO_NONE) MLO_TRY(mlo_almost_keep(a, y));
    return 0;
}

/* Places that almost match, as warnings and in the report. */
static void mlo_match_near(mlo_matcher *a, mlo_text *t) {
    for (size_t i = 0; i < a->n_places; i++) {
        const mlo_almost *place = &a->place[i];
        mlo_warn(a->m,
            "matched %zu of %zu: a place (up to %s) matches %d of the template's %d nodes, but %s",
            a->n_found, a->n_found + a->n_places, place->last, place->matched, a->size,
            mlo_or_empty(place->why));
        mlo_puts(t, i ? "," : "");
        mlo_report_string(t, mlo_or_empty(place->why));
    }
}

/* ---- chaining ------------------------------------------------------------- */

/* The latest instance that instance i reads from; MLO_NONE: none. */
static int mlo_match_before(const mlo_matcher *a, int i) {
    int before = MLO_NONE;
    for (int x = 0; x < a->t.n; x++) {
        int y = a->found[i][x];
        for (int s = y < 0 ? 0 : a->net->in_at[y]; y >= 0 && s < a->net->in_at[y + 1]; s++) {
            int o = a->net->from[s] < 0 ? MLO_NONE : a->owner[a->net->from[s]];
            if (o != i && o > before) before = o;
        }
    }
    return before;
}

static int mlo_match_unchained(mlo_matcher *a) {
    const mlo_graph *g = a->net->g;
    for (int x = 0; x < a->t.n; x++) {
        int y = a->found[1][x];
        for (int s = y < 0 ? 0 : a->net->in_at[y]; y >= 0 && s < a->net->in_at[y + 1]; s++) {
            int p = a->net->from[s];
            if (p >= 0 && a->owner[p] < 0)
                return mlo_fail(a->m, MLO_E_LOOP, g->node[p],
                    "lies between the instances of the template: %s reads '%s' of it; a template "
                    "holds all that one iteration does",
                    mlo_node_name(g->node[y]), a->net->in[s]->name);
        }
    }
    return mlo_fail_at(a->m, MLO_E_LOOP, NULL,
        "the template matches %zu times, but no instance reads from another", a->n_found);
}

/* One chain of instances as a loop, its positions in the order of the first instance. */
static mlo_layers *mlo_match_loop(mlo_matcher *a, const int *chain, int n) {
    mlo *m = a->m;
    mlo_layers *l = MLO_NEW(m, mlo_layers);
    int *order = MLO_NEW_N(m, int, 2 * (size_t)a->size + 1), k = 0;
    if (!l || !order || !(l->node = MLO_NEW_N(m, int, (size_t)a->size *(size_t)n))) return NULL;
    for (int x = 0; x < a->t.n; x++)
        if (a->found[chain[0]][x] >= 0) {
            order[2 * k] = a->found[chain[0]][x];
            order[2 * k++ + 1] = x;
        }
    qsort(order, (size_t)k, 2 * sizeof *order, mlo_int_cmp);
    for (int i = 0; i < n; i++)
        for (int p = 0; p < k; p++) l->node[i * k + p] = a->found[chain[i]][order[2 * p + 1]];
    l->iterations = n;
    l->size = k;
    l->before.x = l->after.x = MLO_NONE;
    return l;
}

static int mlo_match_chains(mlo_matcher *a, mlo_found *f) {
    mlo *m = a->m;
    size_t n = a->n_found, alone = 0;
    int *next = MLO_NEW_N(m, int, n + 1);
    int *has = MLO_NEW_N(m, int, n + 1);
    int *chain = MLO_NEW_N(m, int, n + 1);
    if (m->error.code) return mlo_failed(m);
    for (size_t i = 0; i < n; i++) next[i] = MLO_NONE;
    for (size_t i = 0; i < n; i++) {
        int b = mlo_match_before(a, (int)i);
        if (b >= 0 && next[b] < 0) {
            next[b] = (int)i;
            has[i] = 1;
        }
    }
    for (size_t i = 0; i < n; i++) {
        int length = 0;
        for (int k = has[i] ? MLO_NONE : (int)i; k >= 0; k = next[k]) chain[length++] = k;
        alone += length == 1;
        if (length < 2) continue;
        mlo_layers *l = mlo_match_loop(a, chain, length);
        if (!l || !MLO_PUSH(m, f->loop, f->n_loops, l)) return mlo_failed(m);
    }
    if (!f->n_loops) return mlo_match_unchained(a);
    if (alone)
        mlo_warn(m,
            "%zu of %zu instances of the template read from no other, and stay outside of loops",
            alone, n);
    return 0;
}

/* Outputs that the template promises and nobody uses, or that are used and not promised. */
static void mlo_match_outputs(const mlo_matcher *a) {
    for (int x = 0; x < a->t.n; x++)
        for (size_t o = 0; o < a->g->node[x]->n_output; o++) {
            const char *name = a->g->node[x]->output[o];
            const mlo_value *v = mlo_value_of(a->g, name);
            int used = 0;
            for (size_t i = 0; v && i < a->n_found && a->found[i][x] >= 0; i++) {
                const mlo_net *net = a->net;
                int y = a->found[i][x], inside = 0;
                const mlo_value *w = mlo_value_of(net->g, net->g->node[y]->output[o]);
                for (int u = net->use_at[y]; u < net->use_at[y + 1]; u++)
                    inside += net->in[net->use[u]] == w
                        && a->owner[net->reader[net->use[u]]] == (int)i;
                used |= w && w->n_uses > inside;
            }
            if (v && !a->t.constant[x] && used && !v->is_output)
                mlo_warn(a->m,
                    "'%s' is no output of the template, but used outside of it; it will be one of "
                    "the loop",
                    name);
            if (v && v->is_output && !used)
                mlo_warn(a->m, "'%s' is an output of the template that nobody uses", name);
        }
}

/* ---- the stage ------------------------------------------------------------ */

int mlo_template(mlo *m, const void *bytes, size_t n) {
    mlo_model *kept = m->model;
    if (m->error.code) return mlo_failed(m);
    m->stage = "template";
    m->model = NULL;
    if (!mlo_decode(m, NULL, bytes ? bytes : "", bytes ? n : 0, ".")) m->body = m->model;
    m->model = kept;
    return mlo_failed(m);
}

static int mlo_matcher_make(mlo *m, mlo_matcher *a) {
    memset(a, 0, sizeof *a);
    mlo_net *net = a->net = mlo_net_of(m, m->model->graph);
    a->m = m;
    a->g = m->body->graph;
    a->anchor = a->nearest.x = a->apart = MLO_NONE;
    if (!net || mlo_net_make(m, a->g, &a->t)) return mlo_failed(m);
    size_t t = (size_t)a->t.n + 1, n = (size_t)net->n + 1;
    a->at = MLO_NEW_N(m, int, t);
    a->trail = MLO_NEW_N(m, int, t);
    a->bound = MLO_NEW_N(m, mlo_value *, a->g->n_input + 1);
    a->bound_trail = MLO_NEW_N(m, int, a->g->n_input + 1);
    a->owner = MLO_NEW_N(m, int, n);
    a->stamp = MLO_NEW_N(m, int, n);
    if (m->error.code) return mlo_failed(m);
    for (int i = 0; i < net->n; i++) a->owner[i] = MLO_NONE;
    for (int x = 0; x < a->t.n; x++) {
        a->at[x] = MLO_NONE;
        a->size += !a->t.constant[x];
        if (!a->t.constant[x]) a->anchor = x;
    }
    /* what everything leads to is the best to begin with */
    for (size_t i = 0; i < a->g->n_output; i++) {
        const mlo_value *v = mlo_value_of(a->g, a->g->output[i]->name);
        if (v && v->producer && v->graph == a->g && !a->t.constant[v->at]) {
            a->anchor = v->at;
            break;
        }
    }
    return a->anchor < 0 ? mlo_fail_at(m, MLO_E_LOOP, NULL,
                               "the template has no nodes; save one with --save-template")
                         : 0;
}

/* extract, with a template. */
static int mlo_extract_template(mlo *m) {
    mlo_matcher a;
    mlo_found found;
    mlo_text t = { m, NULL, 0, 0 };
    memset(&found, 0, sizeof found);
    mlo_extract_unmark(m->model->graph);
    if (mlo_matcher_make(m, &a) || mlo_match_all(&a)) return mlo_failed(m);
    if (!a.n_found) return mlo_match_none(&a);
    MLO_TRY(mlo_match_almost(&a));
    mlo_puts(&t, "{\"template\":true,\"near\":[");
    mlo_match_near(&a, &t);
    mlo_puts(&t, "],\"lost\":[]}");
    if (a.n_found < 2)
        mlo_fail(m, MLO_E_LOOP, a.net->g->node[a.found[0][a.anchor]],
            "the template matches once, up to here: nothing repeats");
    else if (!mlo_match_chains(&a, &found))
        mlo_match_outputs(&a);
    for (size_t i = 0; i < found.n_loops && !m->error.code; i++) {
        const char *name = mlo_loop_name(m, i);
        if (name) mlo_extract_mark(m, a.net, found.loop[i], name);
    }
    if (!m->error.code)
        mlo_meta_put(m, &m->model->meta, &m->model->n_meta, mlo_key_extract, t.text);
    mlo_text_free(&t);
    return mlo_failed(m);
}

/* The `extract` stage: by template, where there is one. */
static int mlo_extract_as(mlo *m) {
    if (m->body && mlo_opt(m, "hierarchy"))
        return mlo_fail_at(
            m, MLO_E_USAGE, NULL, "--template and --hierarchy both choose the body; give one");
    return m->body ? mlo_extract_template(m) : mlo_extract(m);
}
