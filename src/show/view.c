/* show, view: gathers what there is to show of a model, once for all formats; and writes names,
 * shapes and sizes as people read them.
 *
 * in:  a model of any stage.
 * out: mlo_view: its loops, the values that depend on an input, what scopes hold; once the model is
 *     lowered, the core and its predicted schedule.
 *
 * invariant: the model does not change; no tensor byte is read. Numbers are printed from integers,
 *     so no locale shows in them.
 * example: view.loop[0].iterations is 12, and mlo_view_tail(m, "encoder/encoder.layer.0", its
 *     scope) is "attention.self".
 * cost: O(nodes and their inputs); the prediction O(tokens x iterations x kernels).
 */
typedef struct {
    mlo_node *node;
    mlo_graph *outer;
    mlo_graph *body;
    const char *name; /* "" where nobody said; so are the two behind it */
    const char *scope;
    const char *instances; /* scopes, separated by spaces */
    size_t states;
    size_t params;
    size_t taps;
    int64_t iterations; /* -1: not known */
    mlo_value **outside; /* what the body reads from around it */
    size_t n_outside;
    int depth; /* how many loops this one is in */
} mlo_view_loop;

/* a loop that extract found and roll has not rolled */
typedef struct {
    const char *name;
    int instances;
    size_t nodes;
} mlo_view_mark;

/* What a simulation of the core counted. */
typedef struct {
    int64_t cycles;
    int64_t frames;
    int64_t busy[MLO_CORE_MOST]; /* [element]: cycles */
    int64_t starved[MLO_CORE_MOST]; /* [element]: cycles */
    int64_t blocked[MLO_CORE_MOST]; /* [element]: cycles */
    double interval; /* cycles per frame */
    double channel; /* share of cycles in which parameters came, 0 to 1 */
    const char *trace; /* the lines of sim --trace behind the report, "" for none */
} mlo_measured;

typedef struct mlo_view mlo_view;
struct mlo_view {
    mlo *m;
    mlo_graph *g;
    const char *stage;
    const mlo_view *after; /* of the same model after roll; NULL when there is none */
    mlo_view_loop *loop;
    size_t n_loops;
    mlo_view_mark *mark;
    size_t n_marks;

    size_t inferred; /* nodes whose scope was inferred */
    size_t subgraph_nodes; /* nodes of all bodies and branches */
    int64_t parameters; /* elements of all initializers */
    int64_t bytes; /* of all initializers */
    /* values that depend on a model input or a carried value: what a drawing shows */
    mlo_map live;

    mlo_core *hw; /* NULL before lower */
    const mlo_view_loop *core; /* NULL before lower */
    mlo_prediction p;
    int64_t position; /* of a core with caches: that it was asked about, from 0 */
    int64_t sequences; /* of which a token each comes, one behind the other */
    int64_t step[2]; /* cycles from those tokens to the next: at the first position, at that one */
    mlo_estimate area;
    const mlo_fpga *device; /* what it was folded for, NULL: nothing said */
    int64_t bound; /* cycles per frame in steady state */
    int64_t best; /* the same of the fastest folding with as many multipliers */
    mlo_measured *sim; /* NULL: not simulated */
    const char *waves; /* the option "waves": lines of streams; NULL: those that sim has */
};

/* ---- texts ---------------------------------------------------------------- */

/* 1234567 -> "1 234 567" */
static const char *mlo_thousands(mlo *m, int64_t v) {
    char digits[32], to[48];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)v), k = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0 && digits[i - 1] != '-') to[k++] = ' ';
        to[k++] = digits[i];
    }
    return mlo_or_empty(mlo_intern_n(m, to, (size_t)k));
}

/* 13824 -> "13.5 KiB" */
static const char *mlo_size_text(mlo *m, int64_t bytes) {
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
    int64_t unit = 1024;
    int at = 0;
    if (bytes < 1024) return mlo_or_empty(mlo_format(m, "%lld B", (long long)bytes));
    while (at < 3 && bytes / unit >= 1024) {
        unit *= 1024;
        at++;
    }
    const char *s = mlo_format(m, "%lld.%lld %s", (long long)(bytes / unit),
        (long long)(bytes % unit * 10 / unit), units[at]);
    return mlo_or_empty(s);
}

/* A value's shape as the model declares it, NULL for none. */
static const mlo_shape *mlo_view_declared(const mlo_value *v) {
    const mlo_type *type = v->info ? v->info->type : NULL;
    return type && type->tensor ? type->tensor->shape : NULL;
}

/* "[1,seq,64]", "[]" for a scalar, "" when the rank is unknown. */
static const char *mlo_view_shape(mlo *m, const mlo_value *v) {
    mlo_text t = { m, NULL, 0, 0 };
    if (!v) return "";
    const mlo_shape *s = mlo_view_declared(v);
    if (!v->tensor && !s) return "";
    size_t rank = v->tensor ? v->tensor->n_dims : s->n_dim;
    for (size_t i = 0; i < rank; i++) {
        mlo_puts(&t, i ? "," : "[");
        if (v->tensor)
            mlo_printf(&t, "%lld", (long long)v->tensor->dims[i]);
        else if (s->dim[i].param && *s->dim[i].param)
            mlo_puts(&t, s->dim[i].param);
        else if (s->dim[i].has)
            mlo_printf(&t, "%lld", (long long)s->dim[i].value);
        else
            mlo_puts(&t, "?");
    }
    mlo_puts(&t, rank ? "]" : "[]");
    const char *text = m->error.code ? "" : mlo_intern(m, t.text);
    mlo_text_free(&t);
    return mlo_or_empty(text);
}
static const char *mlo_view_type(const mlo_value *v) {
    mlo_dtype t = mlo_form_of(v).dtype;
    return t ? mlo_dtype_name(t) : "?";
}

/* "float [1,32,64]" */
static const char *mlo_view_form(mlo *m, const mlo_value *v) {
    const char *s = mlo_format(m, "%s %s", mlo_view_type(v), mlo_view_shape(m, v));
    return mlo_or_empty(s);
}

/* Bytes of a tensor of known form, 0 of any other. */
static int64_t mlo_view_bytes(const mlo_form *f) {
    if (!mlo_form_known(f)) return 0;
    int64_t n = mlo_times(mlo_form_count(f), (int64_t)mlo_dtype_bits(f->dtype));
    return n < 0 || n == INT64_MAX ? 0 : (n + 7) / 8;
}

/* Where a node is, seen from `base`: the deepest level of its scope, without what the deepest
 * level of base already says. */
static const char *mlo_view_tail(const char *base, const char *scope) {
    if (!scope || !*scope) return "";
    const char *last = mlo_last_level(scope), *from = base && *base ? mlo_last_level(base) : "";
    size_t n = strlen(from);
    if (!n || strncmp(last, from, n)) return last;
    return !last[n] ? "" : last[n] == '.' ? last + n + 1 : last;
}
static const char *mlo_view_scope(const mlo_node *n) {
    return mlo_or_empty(mlo_meta_get(n->meta, n->n_meta, mlo_key_scope));
}
static const char *mlo_view_kernel(const mlo_node *n) {
    return mlo_meta_get(n->meta, n->n_meta, mlo_key_kernel);
}
static const char *mlo_view_op(mlo *m, const mlo_node *n) {
    const char *s = *mlo_domain(n) ? mlo_format(m, "%s.%s", n->domain, n->op) : n->op;
    return mlo_or_empty(s);
}
static const char *mlo_plural(int64_t n) { return n == 1 ? "" : "s"; }
static int mlo_is_loop(const mlo_node *n) {
    mlo_attr *body = mlo_is_scan(n) ? mlo_attr_of(n, "body") : NULL;
    return body && body->g;
}

/* ---- walking -------------------------------------------------------------- */

typedef void (*mlo_see_value)(void *user, size_t slot, mlo_value *v);

static int mlo_encloses(const mlo_graph *g, const mlo_graph *inner) {
    for (; inner; inner = inner->outer)
        if (inner == g) return 1;
    return 0;
}

/* Calls `see` for what the nodes of an inner graph read from g or from around it. */
static void mlo_reads_inside(
    mlo_graph *g, mlo_graph *inner, size_t slot, mlo_see_value see, void *user) {
    for (size_t i = 0; i < inner->n_node; i++) {
        mlo_node *n = inner->node[i];
        for (size_t k = 0; k < n->n_input; k++) {
            mlo_value *v = mlo_value_of(inner, n->input[k]);
            if (v && mlo_encloses(v->graph, g)) see(user, slot, v);
        }
        for (size_t a = 0; a < n->n_attr; a++) {
            if (n->attr[a]->g) mlo_reads_inside(g, n->attr[a]->g, slot, see, user);
            for (size_t k = 0; k < n->attr[a]->n_graphs; k++)
                mlo_reads_inside(g, n->attr[a]->graphs[k], slot, see, user);
        }
    }
    for (size_t i = 0; i < inner->n_output; i++) {
        mlo_value *v = mlo_value_of(inner, inner->output[i]->name);
        if (v && mlo_encloses(v->graph, g)) see(user, slot, v);
    }
}

/* Calls `see` for every value that a node of g reads: its inputs by slot; then, with slot n_input,
 * what its subgraphs read. */
static void mlo_reads(mlo_graph *g, mlo_node *n, mlo_see_value see, void *user) {
    for (size_t k = 0; k < n->n_input; k++) {
        mlo_value *v = mlo_value_of(g, n->input[k]);
        if (v) see(user, k, v);
    }
    for (size_t a = 0; a < n->n_attr; a++) {
        if (n->attr[a]->g) mlo_reads_inside(g, n->attr[a]->g, n->n_input, see, user);
        for (size_t k = 0; k < n->attr[a]->n_graphs; k++)
            mlo_reads_inside(g, n->attr[a]->graphs[k], n->n_input, see, user);
    }
}

/* A graph's input or output, as it is listed; NULL: an initializer among the inputs. */
static const mlo_value *mlo_view_listed(const mlo_view *v, const mlo_value_info *info) {
    const mlo_value *x = mlo_value_of(v->g, info->name);
    return x->tensor && x->is_input ? NULL : x;
}

/* ---- which values depend on an input -------------------------------------- */

static int mlo_view_lives(const mlo_view *v, const mlo_value *x) {
    return mlo_map_get(&v->live, x) != NULL;
}
static void mlo_view_enliven(mlo_view *v, mlo_value *x) {
    if (x) mlo_map_put(v->m, &v->live, x, x);
}

typedef struct {
    mlo_view *v;
    int live;
} mlo_live_seen;
static void mlo_live_see(void *user, size_t slot, mlo_value *x) {
    mlo_live_seen *s = (mlo_live_seen *)user;
    (void)slot;
    if (mlo_view_lives(s->v, x)) s->live = 1;
}

static void mlo_view_graph(mlo_view *v, mlo_graph *g);

/* A subgraph's inputs: carried values live; what comes in slices lives if what is sliced does. */
static void mlo_view_inner(mlo_view *v, mlo_graph *g, mlo_node *n, mlo_graph *inner) {
    size_t states = mlo_is_loop(n) && mlo_scan_stacks(n) <= n->n_input
        ? n->n_input - mlo_scan_stacks(n)
        : inner->n_input;
    for (size_t k = 0; k < inner->n_input; k++) {
        mlo_value *x = mlo_value_of(inner, inner->input[k]->name);
        mlo_value *from = mlo_has_input(n, k) ? mlo_value_of(g, n->input[k]) : NULL;
        if (k < states || mlo_view_lives(v, from)) mlo_view_enliven(v, x);
    }
    mlo_view_graph(v, inner);
    v->subgraph_nodes += inner->n_node;
}

/* One pass over a graph and all inside it: live values, inferred scopes, parameters. */
static void mlo_view_graph(mlo_view *v, mlo_graph *g) {
    for (size_t i = 0; i < g->n_init; i++) {
        mlo_value x;
        memset(&x, 0, sizeof x);
        x.tensor = g->init[i];
        mlo_form f = mlo_form_of(&x);
        int64_t bytes = mlo_view_bytes(&f);
        if (bytes && bytes < INT64_MAX / 2 - v->bytes) {
            v->parameters += mlo_form_count(&f);
            v->bytes += bytes;
        }
    }
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = g->node[i];
        mlo_live_seen seen = { v, 0 };
        mlo_reads(g, n, mlo_live_see, &seen);
        for (size_t k = 0; k < n->n_output && seen.live; k++)
            mlo_view_enliven(v, mlo_value_of(g, n->output[k]));
        if (mlo_meta_get(n->meta, n->n_meta, mlo_key_scope_from)) v->inferred++;
        for (size_t a = 0; a < n->n_attr; a++) {
            if (n->attr[a]->g) mlo_view_inner(v, g, n, n->attr[a]->g);
            for (size_t k = 0; k < n->attr[a]->n_graphs; k++)
                mlo_view_inner(v, g, n, n->attr[a]->graphs[k]);
        }
    }
}

static int mlo_node_lives(const mlo_view *v, mlo_graph *g, const mlo_node *n) {
    for (size_t k = 0; k < n->n_output; k++)
        if (mlo_view_lives(v, mlo_value_of(g, n->output[k]))) return 1;
    return 0;
}

/* ---- loops ---------------------------------------------------------------- */

typedef struct {
    mlo_view *v;
    mlo_view_loop *l;
    mlo_map seen;
} mlo_outside;
static void mlo_outside_see(void *user, size_t slot, mlo_value *x) {
    mlo_outside *o = (mlo_outside *)user;
    (void)slot;
    if (mlo_map_get(&o->seen, x) || mlo_map_put(o->v->m, &o->seen, x, x)) return;
    MLO_PUSH(o->v->m, o->l->outside, o->l->n_outside, x);
}

static int mlo_view_loop_of(mlo_view *v, mlo_graph *g, mlo_node *n, int depth) {
    mlo_view_loop l;
    memset(&l, 0, sizeof l);
    const char *instances = mlo_meta_get(n->meta, n->n_meta, mlo_key_instances);
    const char *iterations = mlo_meta_get(n->meta, n->n_meta, mlo_key_iterations);
    l.node = n;
    l.outer = g;
    l.body = mlo_attr_of(n, "body")->g;
    l.depth = depth;
    l.name = mlo_node_name(n);
    l.scope = mlo_view_scope(n);
    l.instances = mlo_or_empty(instances);
    l.params = mlo_scan_stacks(n);
    if (l.params > n->n_input || n->n_input != l.body->n_input)
        return mlo_fail(v->m, MLO_E_GRAPH, n,
            "num_scan_inputs %lld does not fit %zu inputs and a body of %zu", (long long)l.params,
            n->n_input, l.body->n_input);
    l.states = n->n_input - l.params;
    if (l.body->n_output < l.states || n->n_output > l.body->n_output)
        return mlo_fail(v->m, MLO_E_GRAPH, n, "a body of %zu outputs cannot carry %zu values",
            l.body->n_output, l.states);
    l.taps = n->n_output > l.states ? n->n_output - l.states : 0;
    mlo_form f = mlo_form_of(l.params ? mlo_value_of(g, n->input[l.states]) : NULL);
    l.iterations = f.rank > 0 && f.dims[0] > 0 ? f.dims[0]
        : iterations                           ? (int64_t)strtol(iterations, NULL, 10)
                                               : -1;
    mlo_outside o = { v, &l, { NULL, 0, 0 } };
    mlo_reads_inside(g, l.body, 0, mlo_outside_see, &o);
    MLO_PUSH(v->m, v->loop, v->n_loops, l);
    return mlo_failed(v->m);
}

/* All loops: outer ones first, then what is inside them. (How deep, mlo_index limits.) */
static int mlo_view_loops(mlo_view *v, mlo_graph *g, int depth) {
    for (size_t i = 0; i < g->n_node; i++) {
        if (!mlo_is_loop(g->node[i])) continue;
        MLO_TRY(mlo_view_loop_of(v, g, g->node[i], depth));
        MLO_TRY(mlo_view_loops(v, mlo_attr_of(g->node[i], "body")->g, depth + 1));
    }
    return 0;
}

/* The loop whose body holds this one, NULL at the top. */
static const mlo_view_loop *mlo_view_parent(const mlo_view *v, const mlo_view_loop *l) {
    for (size_t i = 0; i < v->n_loops; i++)
        if (v->loop[i].body == l->outer) return &v->loop[i];
    return NULL;
}

static const mlo_view_loop *mlo_view_loop_at(const mlo_view *v, const mlo_node *n) {
    for (size_t i = 0; i < v->n_loops; i++)
        if (v->loop[i].node == n) return &v->loop[i];
    return NULL;
}

static int mlo_view_instance(const mlo_node *n) {
    const char *s = mlo_meta_get(n->meta, n->n_meta, mlo_key_instance);
    return s ? (int)strtol(s, NULL, 10) : -1;
}

static int mlo_view_marks(mlo_view *v) {
    mlo_map at = { NULL, 0, 0 };
    for (size_t i = 0; i < v->g->n_node; i++) {
        const mlo_node *n = v->g->node[i];
        const char *name = mlo_meta_get(n->meta, n->n_meta, mlo_key_loop);
        if (!name) continue;
        size_t k = (size_t)(uintptr_t)mlo_map_get(&at, name);
        mlo_view_mark fresh = { name, 0, 0 };
        if (!k
            && (!MLO_PUSH(v->m, v->mark, v->n_marks, fresh)
                || mlo_map_put(v->m, &at, name, (void *)(uintptr_t)(k = v->n_marks))))
            return mlo_failed(v->m);
        mlo_view_mark *mark = &v->mark[k - 1];
        mark->nodes++;
        if (mlo_view_instance(n) >= mark->instances) mark->instances = mlo_view_instance(n) + 1;
    }
    return 0;
}

/* The scope of instance i, "" past the last. */
static const char *mlo_view_instance_scope(mlo *m, const mlo_view_loop *l, int64_t i) {
    const char *p = l->instances;
    for (; *p; i--) {
        size_t n = strcspn(p, " ");
        if (!i) return mlo_or_empty(mlo_intern_n(m, p, n));
        p += n + (p[n] == ' ');
    }
    return "";
}

/* ---- what reads a parameter ----------------------------------------------- */

/* The node a parameter is for: its reader, or whom that prepares it for (a weight goes through
 * QuantizeLinear and Concat to its kernel). */
static const mlo_node *mlo_view_reader(
    const mlo_view *v, const mlo_view_loop *l, const char *name) {
    mlo_value *x = mlo_value_of(l->body, name);
    const mlo_node *n = NULL;
    for (int hops = 0; x && x->n_use && hops < 16; hops++) {
        n = x->use[0];
        if (mlo_node_lives(v, l->body, n) || !n->n_output) break;
        x = mlo_value_of(l->body, n->output[0]);
    }
    return n;
}

/* What people call the thing a node is: its kernel's name, else its place in the layer, else its
 * own name. */
static const char *mlo_view_place(const mlo_view_loop *l, const mlo_node *n) {
    const char *kernel = n ? mlo_view_kernel(n) : NULL;
    const char *tail = n ? mlo_view_tail(l ? l->scope : "", mlo_view_scope(n)) : "";
    return kernel ? kernel : *tail ? tail : n ? mlo_node_name(n) : "";
}

/* ---- the core ------------------------------------------------------------- */

/* What a kernel does, for tables: "attention.self.query +2", "intermediate.dense, table". */
static const char *mlo_view_what(const mlo_view *v, const mlo_node *n) {
    const char *tail = mlo_view_tail(v->core ? v->core->scope : "", mlo_view_scope(n));
    const char *parts = mlo_meta_get(n->meta, n->n_meta, mlo_key_parts);
    const char *what = *tail                   ? tail
        : mlo_is_kernel(n, MLO_KERNEL_RESCALE) ? "the carried value"
                                               : n->output[0];
    if (mlo_is_kernel(n, MLO_KERNEL_RESCALE) && !mlo_has_table(n))
        what = mlo_format(v->m, "%s, to %d bits", what,
            (int)mlo_meta_int(n, mlo_key_bits, mlo_bits_of(mlo_kernel_to(n))));
    else if (mlo_has_table(n))
        what = mlo_format(v->m, "%s, table", what);
    else if (parts)
        what = mlo_format(v->m, "%s and %ld more", what, strtol(parts, NULL, 10) - 1);
    return mlo_or_empty(what);
}

static int64_t mlo_unit_bytes(const mlo_core *c, const mlo_unit *u) {
    return mlo_unit_beats(u, c->axi_bits) * c->axi_bits / 8;
}

static const mlo_element *mlo_view_element(const mlo_view *v, const mlo_node *n) {
    for (int i = 0; v->hw && i < v->hw->n_element; i++)
        if (v->hw->element[i].node == n) return &v->hw->element[i];
    return NULL;
}

/* Useful multiply-accumulates per frame, all iterations. */
static int64_t mlo_core_macs(const mlo_core *c) {
    int64_t macs = 0;
    for (int i = 0; i < c->n_element; i++) macs += mlo_frame_macs(&c->element[i]);
    return macs * c->scan.iterations;
}

/* "54.2 %" of two numbers, from integers; "<0.1 %" of what is not nothing. */
static const char *mlo_share_text(mlo *m, double part, double whole) {
    int64_t tenths = whole > 0 ? (int64_t)(part / whole * 1000 + 0.5) : 0;
    if (part > 0 && !tenths) return "<0.1 %";
    return mlo_or_empty(
        mlo_format(m, "%lld.%lld %%", (long long)(tenths / 10), (long long)(tenths % 10)));
}

/* The part of all multiplier cycles that does useful work, where a frame takes so many cycles. */
static const char *mlo_view_utilisation(const mlo_view *v, double cycles) {
    return mlo_share_text(
        v->m, (double)mlo_core_macs(v->hw), (double)mlo_core_multipliers(v->hw) * cycles);
}

/* Cycles in which an element works, per frame: its multipliers; without a matrix array, a beat of
 * its lanes each. */
static int64_t mlo_element_work(const mlo_core *c, const mlo_element *e) {
    return (e->unit.macs ? e->unit.interval : e->unit.out.channels / e->unit.out.lanes)
        * e->site.chunk * c->scan.iterations;
}
/* Block RAMs of 36 Kbit: "7", "10.5". */
static const char *mlo_bram_text(mlo *m, const mlo_area *a) {
    return mlo_or_empty(
        mlo_format(m, "%s%s", mlo_thousands(m, a->bram / 2), a->bram % 2 ? ".5" : ""));
}
static const char *mlo_edge_end(const mlo_core *c, int element) {
    return element == MLO_OUTSIDE ? "carried" : c->element[element].name;
}

/* The steady pace: of this folding, and of the fastest one that has no more multipliers. */
static int mlo_view_best(mlo_view *v) {
    const mlo_limits within = { MLO_UNLIMITED, mlo_core_multipliers(v->hw), MLO_UNLIMITED };
    mlo_space s;
    mlo_plan plan;
    int found = 0;
    mlo_core *c = MLO_NEW(v->m, mlo_core); /* the search moves FIFOs about */
    v->best = v->bound = mlo_steady_cycles(
                             v->hw, mlo_core_interval(v->hw), mlo_core_layer_beats(v->hw))
        * v->hw->scan.iterations;
    if (!c) return mlo_failed(v->m);
    *c = *v->hw;
    MLO_TRY(mlo_search_begin(v->m, c, 0, &s));
    MLO_TRY(mlo_search_frames(&s, c->frames));
    MLO_TRY(mlo_search_fastest(&s, &within, &plan, &found));
    if (found && plan.steady * c->scan.iterations < v->best)
        v->best = plan.steady * c->scan.iterations;
    return 0;
}

/* How fast tokens follow one another that come one at a time, or one of each of some sequences; options "position" and
 * "sequences" say where, and of how many. */
static int mlo_view_steps(mlo_view *v) {
    const int64_t last = v->hw->chunk - 1;
    if (!v->hw->slots || v->hw->given)
        return mlo_opt(v->m, "position")
            ? mlo_fail_at(v->m, MLO_E_USAGE, NULL,
                  "--position is of a core with caches; give --context, too")
            : 0;
    v->position = mlo_opt_int(v->m, "position", (long)last, 0, (long)last);
    v->sequences = mlo_opt_int(v->m, "sequences", 1, 1, 255);
    MLO_TRY(mlo_predict_steps(v->m, v->hw, 0, v->sequences, &v->step[0]));
    return mlo_predict_steps(v->m, v->hw, v->position, v->sequences, &v->step[1]);
}

/* ---- what a simulation counted -------------------------------------------- */

static double mlo_measured_number(const cJSON *object, const char *key) {
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(n) ? n->valuedouble : -1;
}

static int mlo_measured_kernels(const mlo_view *v, const cJSON *report, mlo_measured *to) {
    const cJSON *k = cJSON_GetObjectItemCaseSensitive(report, "kernels");
    k = cJSON_IsArray(k) ? k->child : NULL;
    for (int i = 0; i < v->hw->n_element; i++)
        if (v->hw->element[i].kernel) {
            const cJSON *name = cJSON_GetObjectItemCaseSensitive(k, "name");
            double busy = mlo_measured_number(k, "busy");
            double starved = mlo_measured_number(k, "starved");
            double blocked = mlo_measured_number(k, "blocked");
            if (!cJSON_IsString(name) || strcmp(name->valuestring, v->hw->element[i].name)
                || busy < 0 || starved < 0 || blocked < 0 || busy + starved + blocked > 1e15)
                return 0;
            to->busy[i] = (int64_t)busy;
            to->starved[i] = (int64_t)starved;
            to->blocked[i] = (int64_t)blocked;
            k = k->next;
        }
    return !k;
}

/* The option "simulation": what mlo sim printed. */
static int mlo_view_measured(mlo_view *v) {
    const char *text = mlo_opt(v->m, "simulation");
    if (!text) return 0;
    mlo_measured *to = MLO_NEW(v->m, mlo_measured);
    size_t n = strcspn(text, "\n");
    cJSON *report = to ? cJSON_ParseWithLength(text, n) : NULL;
    const cJSON *counters = cJSON_GetObjectItemCaseSensitive(report, "counters");
    double cycles = mlo_measured_number(counters, "cycles");
    double frames = mlo_measured_number(report, "frames");
    double interval = mlo_measured_number(report, "interval");
    int fits = cycles > 0 && cycles < 1e15 && frames > 0 && frames < 1e9 && interval > 0
        && mlo_measured_kernels(v, report, to);
    if (fits) {
        to->cycles = (int64_t)cycles;
        to->frames = (int64_t)frames;
        to->interval = interval;
        to->channel = mlo_measured_number(
            cJSON_GetObjectItemCaseSensitive(report, "memory"), "busy_share");
        to->trace = text + n;
        v->sim = to;
    }
    cJSON_Delete(report);
    return fits || v->m->error.code
        ? mlo_failed(v->m)
        : mlo_fail_at(v->m, MLO_E_FORMAT, NULL,
              "the simulation is not what `mlo sim` prints of this core; simulate it anew");
}

static int mlo_view_device(mlo_view *v) {
    const mlo_node *scan = v->hw->scan.node;
    const char *name = mlo_opt(v->m, "device")
        ? mlo_opt(v->m, "device")
        : mlo_meta_get(scan->meta, scan->n_meta, mlo_key_device);
    mlo_fpga *device = name ? MLO_NEW(v->m, mlo_fpga) : NULL;
    if (!name) return 0;
    v->device = device;
    return device ? mlo_fpga_named(v->m, name, device) : mlo_failed(v->m);
}

static int mlo_view_core(mlo_view *v) {
    const mlo_view_loop *lowered = NULL;
    mlo_scan s;
    for (size_t i = 0; i < v->n_loops; i++)
        if (mlo_meta_get(v->loop[i].node->meta, v->loop[i].node->n_meta, mlo_key_core))
            lowered = &v->loop[i];
    if (!lowered)
        return mlo_opt(v->m, "simulation") || mlo_opt(v->m, "waves")
            ? mlo_fail_at(v->m, MLO_E_USAGE, NULL,
                  "a simulation is shown beside a folded model, waves, too; this one is at %s",
                  *v->stage ? v->stage : "no stage")
            : 0;
    MLO_TRY(mlo_scan_choose(v->m, &s));
    /* --loop names another one, which is not lowered */
    if (s.node != lowered->node) return 0;
    mlo_core *c = MLO_NEW(v->m, mlo_core);
    if (!c || mlo_core_build(v->m, c)) return mlo_failed(v->m);
    if (!mlo_core_kernels(c)) return 0;
    v->hw = c;
    v->core = lowered;
    MLO_TRY(mlo_predict_steady(v->m, c, &v->p));
    mlo_estimate_core(c, &v->area);
    MLO_TRY(mlo_view_device(v));
    MLO_TRY(mlo_view_best(v));
    MLO_TRY(mlo_view_steps(v));
    v->waves = mlo_opt(v->m, "waves");
    return mlo_view_measured(v);
}

static int mlo_view_make(mlo *m, mlo_view *v) {
    memset(v, 0, sizeof *v);
    v->m = m;
    v->g = m->model->graph;
    v->stage = mlo_stage(m);
    for (size_t i = 0; i < v->g->n_input; i++) {
        mlo_value *x = mlo_value_of(v->g, v->g->input[i]->name);
        if (!x->tensor) mlo_view_enliven(v, x);
    }
    mlo_view_graph(v, v->g);
    if (m->error.code || mlo_view_loops(v, v->g, 0) || mlo_view_marks(v)) return mlo_failed(m);
    return mlo_view_core(v);
}

/* ---- nodes by scope ------------------------------------------------------- */

typedef struct {
    const char *scope;
    size_t nodes;
    const char **op;
    size_t *count; /* nodes of each op */
    size_t n_ops;
    size_t n_counts;
    mlo_map at; /* op -> its place, plus 1 */
} mlo_view_group;
typedef struct {
    mlo_view_group *group;
    size_t n;
} mlo_view_groups;

/* The first `levels` levels of a scope; how scopeless nodes are called. */
static const char *mlo_group_name(const mlo_view *v, const mlo_node *n, int levels) {
    const char *scope = mlo_view_scope(n);
    const char *p = scope;
    const char *part = mlo_meta_get(n->meta, n->n_meta, mlo_key_part);
    if (!*scope && !mlo_node_lives(v, v->g, n)) return "(parameters, stacked)";
    if (!*scope) return part ? mlo_format(v->m, "(%s)", part) : "(no scope)";
    for (; levels > 0 && *p; levels--) p += strcspn(p + (*p == '/'), "/") + (*p == '/');
    return mlo_intern_n(v->m, scope, (size_t)(p - scope));
}

static int mlo_group_add(mlo *m, mlo_view_group *g, const char *op) {
    size_t k = (size_t)(uintptr_t)mlo_map_get(&g->at, op);
    if (!k
        && (!MLO_PUSH(m, g->op, g->n_ops, op) || !MLO_PUSH(m, g->count, g->n_counts, 0)
            || mlo_map_put(m, &g->at, op, (void *)(uintptr_t)(k = g->n_ops))))
        return mlo_failed(m);
    g->count[k - 1]++;
    g->nodes++;
    return 0;
}

/* Outer nodes that are neither loops nor marked, by scope; cut so short that there are not too
 * many groups. */
static int mlo_view_group_by(const mlo_view *v, int levels, mlo_view_groups *to) {
    mlo_map at = { NULL, 0, 0 };
    memset(to, 0, sizeof *to);
    for (size_t i = 0; i < v->g->n_node; i++) {
        mlo_node *n = v->g->node[i];
        if (mlo_is_loop(n) || mlo_meta_get(n->meta, n->n_meta, mlo_key_loop)) continue;
        const char *name = mlo_group_name(v, n, levels);
        const char *op = mlo_intern(v->m, mlo_view_op(v->m, n));
        if (!name || !(name = mlo_intern(v->m, name)) || !op) return mlo_failed(v->m);
        size_t k = (size_t)(uintptr_t)mlo_map_get(&at, name);
        mlo_view_group fresh;
        memset(&fresh, 0, sizeof fresh);
        fresh.scope = name;
        if (!k
            && (!MLO_PUSH(v->m, to->group, to->n, fresh)
                || mlo_map_put(v->m, &at, name, (void *)(uintptr_t)(k = to->n))))
            return mlo_failed(v->m);
        MLO_TRY(mlo_group_add(v->m, &to->group[k - 1], op));
    }
    return 0;
}

enum { MLO_GROUPS_MOST = 24 };
static int mlo_view_grouped(const mlo_view *v, mlo_view_groups *to) {
    for (int levels = 6;; levels--) {
        MLO_TRY(mlo_view_group_by(v, levels, to));
        if (to->n <= MLO_GROUPS_MOST || levels == 1) return 0;
    }
}

/* ---- parameters by reader ------------------------------------------------- */

typedef struct {
    const char *place;
    const mlo_node *node;
    size_t *param;
    size_t n;
    int64_t bytes;
} mlo_view_params;

/* The scan inputs of a loop, by who reads them, in the order of the inputs. */
static int mlo_view_params_of(
    const mlo_view *v, const mlo_view_loop *l, mlo_view_params **list, size_t *n) {
    mlo_map at = { NULL, 0, 0 };
    *list = NULL;
    *n = 0;
    for (size_t i = l->states; i < l->body->n_input; i++) {
        const char *name = l->body->input[i]->name;
        const mlo_node *reader = mlo_view_reader(v, l, name);
        const char *place = mlo_intern(v->m, mlo_view_place(l, reader));
        mlo_form f = mlo_form_of(mlo_value_of(l->body, name));
        mlo_view_params fresh = { place, reader, NULL, 0, 0 };
        if (!place) return mlo_failed(v->m);
        size_t k = (size_t)(uintptr_t)mlo_map_get(&at, place);
        if (!k
            && (!MLO_PUSH(v->m, *list, *n, fresh)
                || mlo_map_put(v->m, &at, place, (void *)(uintptr_t)(k = *n))))
            return mlo_failed(v->m);
        mlo_view_params *p = &(*list)[k - 1];
        if (!MLO_PUSH(v->m, p->param, p->n, i)) return mlo_failed(v->m);
        p->bytes += mlo_view_bytes(&f);
    }
    return 0;
}
