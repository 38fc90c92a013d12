/* show, figure: a graph as it is drawn: vertices with a few words each, edges with the values that
 * flow.
 *
 * in:  a graph of the model, or a loop's body.
 * out: an mlo_figure, from which DOT and SVG are printed.
 *
 * invariant: only what depends on an input is drawn; the vertex that reads parameters says how
 *     many. An edge goes from a vertex to one of larger number, so the numbers are a topological
 *     order. Values captured from an outer graph are vertices of their own.
 * example: the lowered body of BERT: carried, requant_0, mvu_0, Split, attention_0, ... carried.
 * cost: O(nodes and their inputs).
 */
typedef enum {
    MLO_FIGURE_INPUT,
    MLO_FIGURE_OUTSIDE,
    MLO_FIGURE_NODE,
    MLO_FIGURE_OUTPUT
} mlo_figure_kind;

typedef struct {
    /* port: which input or output of the graph */
    mlo_figure_kind kind;
    int port;
    /* a node, or the value that comes or goes */
    mlo_node *node;
    mlo_value *value;
    const char *line[3]; /* what it is; where; how much. "" for nothing */
    /* a class of CSS and DOT: io, mac, attention, norm, sum, table, move, loop, other */
    const char *look;
    int instance; /* of a marked loop, -1 elsewhere */
} mlo_vertex;

typedef struct {
    int from; /* a vertex */
    int from_slot; /* which of its outputs */
    int to; /* a vertex */
    int to_slot; /* which of its inputs */
    mlo_value *value;
    int64_t fifo; /* tokens */
} mlo_arrow;

typedef struct {
    /* loop: NULL for the whole model */
    const mlo_view *v;
    mlo_graph *g;
    const mlo_view_loop *loop;
    mlo_vertex *vertex;
    size_t n_vertex;
    mlo_arrow *arrow;
    size_t n_arrow;
    mlo_map at; /* value -> the vertex it comes from, plus 1 */
    size_t hidden; /* nodes that only prepare parameters */
} mlo_figure;

/* What a kernel does, and what looks like it. */
static const char *mlo_kernel_look(const mlo_kernel *k) {
    if (k->table) return "table";
    switch (k->kind) {
    case MLO_KERNEL_MATRIX:
    case MLO_KERNEL_WINDOW: return "mac";
    case MLO_KERNEL_ATTENTION: return "attention";
    case MLO_KERNEL_NORM:
    case MLO_KERNEL_FRAME_NORM:
    case MLO_KERNEL_EXACT_NORM: return "norm";
    default: return "sum";
    }
}

static const char *mlo_figure_look(const mlo_node *n) {
    static const struct {
        const char *look;
        const char *ops;
    } looks[] = { { "mac", " MatMul Gemm Conv MatMulInteger QLinearMatMul Einsum " },
        { "attention", " Attention Softmax " },
        { "norm",
            " LayerNormalization RMSNormalization SimplifiedLayerNormalization "
            "BatchNormalization " },
        { "sum",
            " Add Sub Mul Div Erf Gelu Relu Tanh Sigmoid Where Pow Sqrt Cast "
            "QuantizeLinear DequantizeLinear " },
        { "move",
            " Reshape Transpose Split Concat Slice Gather Squeeze Unsqueeze Expand Identity Shape "
            "Flatten " },
        { "loop", " Scan Loop If " } };
    const mlo_kernel *k = mlo_kernel_of(n);
    char key[80];
    if (k) return mlo_kernel_look(k);
    snprintf(key, sizeof key, " %s%s%.60s ", mlo_domain(n), *mlo_domain(n) ? "." : "",
        mlo_or_empty(n->op));
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (strstr(looks[i].ops, key)) return looks[i].look;
    return "other";
}

static mlo_vertex *mlo_figure_vertex(mlo_figure *s, mlo_figure_kind kind, const char *look) {
    mlo_vertex x;
    memset(&x, 0, sizeof x);
    x.kind = kind;
    x.look = look;
    x.instance = -1;
    x.line[0] = x.line[1] = x.line[2] = "";
    return MLO_PUSH(s->v->m, s->vertex, s->n_vertex, x) ? &s->vertex[s->n_vertex - 1] : NULL;
}

/* A value that comes into the graph: an input, or one captured from around it. */
static int mlo_figure_source(
    mlo_figure *s, mlo_figure_kind kind, mlo_value *value, int port, const char *what) {
    mlo_vertex *x = mlo_figure_vertex(s, kind, "io");
    if (!x) return mlo_failed(s->v->m);
    x->value = value;
    x->port = port;
    x->line[0] = value->name;
    x->line[1] = what;
    return mlo_map_put(s->v->m, &s->at, value, (void *)(uintptr_t)s->n_vertex);
}

static int mlo_figure_inputs(mlo_figure *s) {
    for (size_t i = 0; i < s->g->n_input; i++) {
        mlo_value *x = mlo_value_of(s->g, s->g->input[i]->name);
        if (!mlo_view_lives(s->v, x) || x->graph != s->g) continue;
        MLO_TRY(mlo_figure_source(s, MLO_FIGURE_INPUT, x, (int)i,
            !s->loop                  ? "input"
                : i < s->loop->states ? "carried"
                                      : "per iteration"));
    }
    return 0;
}

/* ---- nodes ---------------------------------------------------------------- */

typedef struct {
    mlo_figure *s;
    int params; /* parameters that the node reads */
    int first; /* the arrow with which the node's begin */
} mlo_figure_reads;

/* First pass over what a node reads: captured values become vertices, parameters are counted. */
static void mlo_figure_see(void *user, size_t slot, mlo_value *x) {
    mlo_figure_reads *r = (mlo_figure_reads *)user;
    (void)slot;
    if (!mlo_view_lives(r->s->v, x)) {
        r->params += x->graph == r->s->g && r->s->loop && (x->is_input || x->producer);
        return;
    }
    if (!mlo_map_get(&r->s->at, x))
        mlo_figure_source(
            r->s, MLO_FIGURE_OUTSIDE, x, 0, r->s->loop ? "the same in all iterations" : "");
}

static int64_t mlo_figure_fifo(const mlo_figure *s, const mlo_node *n, size_t slot) {
    const mlo_element *e = mlo_view_element(s->v, n);
    const mlo_core *c = s->v->hw;
    for (int k = 0; e && k < c->n_edge; k++) {
        int to = c->edge[k].to;
        if (to == MLO_OUTSIDE || &c->element[to] != e || !e->kernel) continue;
        if ((size_t)e->unit.in[c->edge[k].to_port].index == slot) return c->edge[k].fifo;
    }
    return 0;
}

/* Second pass: the arrows. Where a subgraph reads one value twice, one is enough. */
static void mlo_figure_link(void *user, size_t slot, mlo_value *x) {
    mlo_figure_reads *r = (mlo_figure_reads *)user;
    mlo_figure *s = r->s;
    int to = (int)s->n_vertex - 1, from = (int)(uintptr_t)mlo_map_get(&s->at, x) - 1;
    mlo_node *n = s->vertex[to].node;
    if (s->v->m->error.code || from < 0 || !mlo_view_lives(s->v, x)) return;
    for (size_t k = (size_t)r->first; k < s->n_arrow && slot >= n->n_input; k++)
        if (s->arrow[k].value == x) return;
    mlo_arrow a = { from, x->producer && x->graph == s->g ? x->output : 0, to, (int)slot, x,
        mlo_figure_fifo(s, n, slot) };
    MLO_PUSH(s->v->m, s->arrow, s->n_arrow, a);
}

static void mlo_figure_kernel_words(const mlo_figure *s, mlo_vertex *x) {
    mlo *m = s->v->m;
    const mlo_element *e = mlo_view_element(s->v, x->node);
    x->line[0] = mlo_format(m, "%s  %s", mlo_view_kernel(x->node), x->node->op);
    x->line[1] = mlo_view_what(s->v, x->node);
    if (e && e->kernel && e->kernel->simd_axis)
        x->line[2] = mlo_format(m, "%lld -> %lld, PE %d x SIMD %d",
            (long long)e->unit.in[0].channels, (long long)e->unit.out.channels, e->unit.pe,
            e->unit.simd);
    else if (e && e->kernel)
        x->line[2] = mlo_format(
            m, "%lld channels, PE %d", (long long)e->unit.out.channels, e->unit.pe);
}

static void mlo_figure_node_words(const mlo_figure *s, mlo_vertex *x, int params) {
    mlo *m = s->v->m;
    const mlo_view_loop *l = mlo_view_loop_at(s->v, x->node);
    const char *tail = mlo_view_tail(s->loop ? s->loop->scope : "", mlo_view_scope(x->node));
    if (mlo_view_kernel(x->node)) {
        mlo_figure_kernel_words(s, x);
        return;
    }
    x->line[0] = mlo_view_op(m, x->node);
    x->line[1] = *tail ? tail : mlo_node_name(x->node);
    if (l) {
        x->line[0] = l->name;
        x->line[1] = l->iterations < 0 ? mlo_format(m, "%zu nodes", l->body->n_node)
                                       : mlo_format(m, "%lld iterations of %zu nodes",
                                             (long long)l->iterations, l->body->n_node);
        x->line[2] = mlo_last_level(l->scope);
    } else if (params)
        x->line[2] = mlo_format(m, "%d parameter%s", params, mlo_plural(params));
}

static int mlo_figure_node(mlo_figure *s, mlo_node *n) {
    mlo_figure_reads r = { s, 0, (int)s->n_arrow };
    mlo_reads(s->g, n, mlo_figure_see, &r);
    mlo_vertex *x = s->v->m->error.code ? NULL
                                        : mlo_figure_vertex(s, MLO_FIGURE_NODE, mlo_figure_look(n));
    if (!x) return mlo_failed(s->v->m);
    x->node = n;
    x->instance = mlo_view_instance(n);
    mlo_figure_node_words(s, x, r.params);
    mlo_reads(s->g, n, mlo_figure_link, &r);
    for (size_t k = 0; k < n->n_output; k++) {
        mlo_value *y = mlo_value_of(s->g, n->output[k]);
        if (y) MLO_TRY(mlo_map_put(s->v->m, &s->at, y, (void *)(uintptr_t)s->n_vertex));
    }
    return mlo_failed(s->v->m);
}

static int mlo_figure_outputs(mlo_figure *s) {
    for (size_t i = 0; i < s->g->n_output; i++) {
        mlo_value *x = mlo_value_of(s->g, s->g->output[i]->name);
        mlo_vertex *y = x ? mlo_figure_vertex(s, MLO_FIGURE_OUTPUT, "io") : NULL;
        if (!y) return mlo_failed(s->v->m);
        int from = (int)(uintptr_t)mlo_map_get(&s->at, x) - 1;
        mlo_arrow a = { from, x->producer ? x->output : 0, (int)s->n_vertex - 1, 0, x, 0 };
        y->value = x;
        y->port = (int)i;
        y->line[0] = x->name;
        y->line[1] = !s->loop ? "output" : i < s->loop->states ? "carried" : "tap";
        if (from >= 0 && !MLO_PUSH(s->v->m, s->arrow, s->n_arrow, a)) return mlo_failed(s->v->m);
    }
    return 0;
}

/* loop NULL: the whole model. */
static int mlo_figure_make(const mlo_view *v, const mlo_view_loop *loop, mlo_figure *s) {
    memset(s, 0, sizeof *s);
    s->v = v;
    s->loop = loop;
    s->g = loop ? loop->body : v->g;
    MLO_TRY(mlo_figure_inputs(s));
    for (size_t i = 0; i < s->g->n_node; i++) {
        if (!mlo_node_lives(v, s->g, s->g->node[i])) {
            s->hidden++;
            continue;
        }
        MLO_TRY(mlo_figure_node(s, s->g->node[i]));
    }
    return mlo_figure_outputs(s);
}
