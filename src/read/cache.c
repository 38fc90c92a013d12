/* cache: which inputs are past keys and values, and how a decoder loses them.
 *
 * in:  an indexed model, of which `tokens` tokens are asked for at once.
 * out: mlo_take_pasts: the model without a cache.
 *
 * A past is an input that a node puts before the keys or values of the tokens that come in, along their axis,
 * and whose present is an output of the graph; its name says nothing. It becomes a constant without elements:
 * the node hands on what came in. Or it is a buffer that rows are written into: at N tokens all of them, from
 * its beginning on. (Where one input has all pasts unstacked.c has made one of each.) A
 * present may be the last tokens of a window that is no shorter than N, and so may what is joined of a past.
 *
 * invariant: no input is a past, no output a present one. What is no past, but looks like one, is refused.
 * example: past [1,4,P,8], k [1,4,S,8], Concat -> present [1,4,P+S,8]: k [1,4,N,8], handed on.
 * cost: O(nodes).
 */

/* Nodes that put past before present: where the past comes in, and where both leave. Those that attend, too,
 * do so without a past. */
typedef struct {
    const char *op;
    size_t past; /* of its inputs */
    size_t present; /* of its outputs */
    int attends; /* 1: the past is an input that may be left out */
} mlo_cacher;

static const mlo_cacher mlo_cachers[] = {
    { "Concat", 0, 0, 0 },
    { "TensorScatter", 0, 0, 0 },
    { "Attention", 4, 1, 1 },
    { "Attention", 5, 2, 1 },
    { "com.microsoft.Attention", 4, 1, 1 },
    { "com.microsoft.MultiHeadAttention", 6, 1, 1 },
    { "com.microsoft.MultiHeadAttention", 7, 2, 1 },
    { "com.microsoft.GroupQueryAttention", 3, 1, 1 },
    { "com.microsoft.GroupQueryAttention", 4, 2, 1 },
};

typedef struct {
    mlo *m;
    mlo_graph *g;
    int64_t tokens; /* N */
} mlo_cacheless;

/* ---- what a past is ------------------------------------------------------- */

static const mlo_cacher *mlo_cacher_at(const mlo_node *n, size_t input) {
    for (size_t i = 0; i < sizeof mlo_cachers / sizeof *mlo_cachers; i++)
        if (mlo_cachers[i].past == input && mlo_is(n, mlo_cachers[i].op)) return &mlo_cachers[i];
    return NULL;
}

/* Which input of the node the value is, the first of them. */
static size_t mlo_input_at(const mlo_node *n, const char *name) {
    size_t i = 0;
    while (i < n->n_input && n->input[i] != name) i++;
    return i;
}

/* Is it the shape alone that the node reads? */
static int mlo_reads_shape(const mlo_node *n) { return mlo_is(n, "Shape") || mlo_is(n, "Size"); }

/* How many inputs read elements of the value; one of those nodes to *reader, a cacher or a Concat where there
 * is one. */
static size_t mlo_readers(const mlo_value *v, mlo_node **reader) {
    size_t n = 0;
    for (size_t i = 0; i < v->n_use; i++) {
        mlo_node *u = v->use[i];
        if (mlo_reads_shape(u)) continue;
        if (!n++ || mlo_is(u, "Concat") || mlo_cacher_at(u, mlo_input_at(u, v->name))) *reader = u;
    }
    return n;
}

/* Does a node hand on what comes in: as it is, or in another type of floats, as a tool that made a model of 16
 * bits writes around it? */
static int mlo_hands_through(mlo *m, const mlo_graph *g, const mlo_node *n) {
    const mlo_form x = mlo_form_of(n->n_input ? mlo_value_of(g, n->input[0]) : NULL);
    return mlo_is_passthrough(m, g, n)
        || (mlo_is(n, "Cast") && mlo_dtype_is_float(x.dtype)
            && mlo_dtype_is_float((mlo_dtype)mlo_int(n, "to", 0)));
}

/* The graph output that hands a value out, as it is; NULL: none does. */
static const char *mlo_given_out(mlo *m, const mlo_graph *g, const char *name) {
    for (const mlo_value *v = mlo_value_of(g, name); v;) {
        size_t i = 0;
        if (v->is_output) return v->name;
        while (i < v->n_use && !mlo_hands_through(m, g, v->use[i])) i++;
        v = i < v->n_use ? mlo_value_of(g, v->use[i]->output[0]) : NULL;
    }
    return NULL;
}

/* What a value is where it is read: behind nodes that hand it through. */
static const mlo_value *mlo_handed_through(mlo *m, const mlo_graph *g, const mlo_value *v) {
    mlo_node *n = NULL;
    while (mlo_readers(v, &n) == 1 && mlo_hands_through(m, g, n)) v = mlo_value_of(g, n->output[0]);
    return v;
}

/* The axis of tokens, -1 where there is none like it. */
static int mlo_past_axis(const mlo_node *n, int rank) {
    int64_t axis = mlo_is(n, "Concat") || mlo_is(n, "TensorScatter") ? mlo_int(n, "axis", -2) : -2;
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

/* ---- what becomes of it --------------------------------------------------- */

static void mlo_drop_info(mlo_value_info **list, size_t *n, const char *name) {
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (list[i]->name != name) list[kept++] = list[i];
    *n = kept;
}

/* An input becomes a constant: `first` + `step` * i along its last axis. */
static int mlo_fix_input(
    mlo_cacheless *c, const char *name, const mlo_form *f, int64_t first, int64_t step) {
    const int64_t row = f->rank ? f->dims[f->rank - 1] : 1;
    mlo_value *v = mlo_value_of(c->g, name);
    mlo_array *a = mlo_array_new(c->m, f->dtype, f->rank, f->dims);
    for (int64_t i = 0; a && i < mlo_array_count(a); i++) {
        const int64_t value = first + step * (i % row);
        char *to = (char *)a->data + (size_t)i * mlo_dtype_size(f->dtype);
        mlo_convert(f->dtype, to, MLO_INT64, &value, 1);
    }
    v->tensor = a ? mlo_tensor_from(c->m, name, a) : NULL;
    mlo_array_free(c->m, a);
    mlo_drop_info(c->g->input, &c->g->n_input, name);
    return mlo_graph_init(c->m, c->g, v->tensor);
}

static int mlo_drop_past(
    mlo_cacheless *c, const mlo_value *v, const mlo_node *n, int axis, int attends) {
    mlo_form f = mlo_form_of(v);
    f.dims[axis] = 0;
    if (f.dims[0] < 0) f.dims[0] = 1;
    /* a node that attends reads it no more: how many channels it has does not matter */
    if (attends && f.dims[f.rank - 1] < 0) f.dims[f.rank - 1] = 1;
    if (!mlo_form_known(&f))
        return mlo_fail(c->m, MLO_E_SHAPE, n,
            "the past '%s' has more open dimensions than its length; bind them with --dim",
            v->name);
    return mlo_fix_input(c, v->name, &f, 0, 0);
}

/* It is no output of the graph from now on. */
static void mlo_drop_output(mlo_cacheless *c, const char *out) {
    mlo_drop_info(c->g->output, &c->g->n_output, out);
    ((mlo_value *)mlo_value_of(c->g, out))->is_output = 0;
}

/* The present leaves no more; the node hands on what comes in, or attends to that alone. */
static int mlo_hand_on(mlo_cacheless *c, mlo_node *n, const mlo_cacher *k) {
    for (const char *out; (out = mlo_given_out(c->m, c->g, n->output[k->present])) != NULL;)
        mlo_drop_output(c, out);
    if (k->attends) {
        n->input[k->past] = "";
        return 0;
    }
    mlo_node_passes(n, n->input[1]);
    return mlo_failed(c->m);
}

/* The one whole number that a value is, to *to. 0: it is another one, or none. */
static int mlo_whole_number(const mlo_cacheless *c, const char *name, int64_t *to) {
    const mlo_value *v = mlo_value_of(c->g, name);
    const mlo_tensor *t = v ? v->tensor : NULL;
    mlo_array *a = t && mlo_tensor_count(t) == 1 ? mlo_tensor_load(c->m, t) : NULL;
    if (a) mlo_convert(MLO_INT64, to, a->dtype, a->data, 1);
    mlo_array_free(c->m, a);
    return a != NULL;
}

/* A buffer is written where an input says: from its beginning on. */
static int mlo_write_from_zero(mlo_cacheless *c, const mlo_node *n) {
    if (!mlo_is(n, "TensorScatter") || !mlo_has_input(n, 2)) return 0;
    const mlo_value *at = mlo_value_of(c->g, n->input[2]);
    mlo_form f = mlo_form_of(at);
    int64_t first = 0;
    const int known = at->is_input ? at->tensor != NULL
                                   : mlo_whole_number(c, at->name, &first) && !first;
    const int linear = mlo_string_is(n, "mode", "linear", 1);
    if (known && linear) return 0;
    if (!at->is_input || f.rank != 1 || !linear)
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, n,
            "where '%s' is written, '%s', is no input of the model nor 0, or the buffer is "
            "circular; "
            "export "
            "the model with past and present keys",
            n->input[0], n->input[2]);
    if (f.dims[0] < 0) f.dims[0] = 1;
    return mlo_fix_input(c, at->name, &f, 0, 0);
}

/* How many of the last tokens a Slice keeps, of `all` if that is known (else -1), and along which axis (of so many); 0:
 * it is none that does that. */
static int64_t mlo_keeps_last(
    const mlo_cacheless *c, const mlo_node *n, int rank, int64_t all, int64_t *axis) {
    int64_t from = 0, to = 0, along = 0, step = 1;
    if (!mlo_is(n, "Slice") || n->n_input < 4 || !mlo_whole_number(c, n->input[1], &from)
        || !mlo_whole_number(c, n->input[2], &to) || !mlo_whole_number(c, n->input[3], &along)
        || (mlo_has_input(n, 4) && !mlo_whole_number(c, n->input[4], &step)))
        return 0;
    *axis = along + (along < 0 ? rank : 0);
    if (from > 0 && from < all) from -= all;
    return step == 1 && from < 0 && (to >= INT32_MAX || (all > 0 && to >= all)) ? -from : 0;
}

/* An input that might be a past. */
typedef struct {
    const mlo_value *v; /* where it is read */
    mlo_form form;
    size_t readers;
    mlo_node *node; /* that reads it, NULL: none does */
    const mlo_cacher *cacher; /* how, NULL: otherwise */
    int joined; /* 1: a Concat reads it */
    int axis; /* of tokens; -1: none */
    const char *out; /* where it leaves with what came in, NULL: nowhere */
    int64_t last; /* so many tokens of that or of the past, the last ones; 0: all */
} mlo_past;

/* Of a window a present is the last tokens. */
static void mlo_past_cropped(const mlo_cacheless *c, mlo_past *p) {
    const mlo_value *v = mlo_value_of(c->g, p->node->output[0]);
    const int64_t past = p->axis >= 0 ? p->form.dims[p->axis] : -1;
    const int64_t all = past < 0 ? -1 : past + 1; /* with a token */
    for (size_t i = 0; p->joined && !p->out && i < v->n_use; i++) {
        int64_t axis = -1;
        const int64_t last = mlo_keeps_last(c, v->use[i], p->form.rank, all, &axis);
        if (!last || axis != p->axis) continue;
        p->out = mlo_given_out(c->m, c->g, v->use[i]->output[0]);
        if (p->out && (!p->last || last < p->last)) p->last = last;
    }
    if (!p->out) p->last = 0;
}

/* Of a window's past the last tokens may be taken, before what comes in is joined to them: the value that is
 * joined, and how many those are; 0: all. */
static const mlo_value *mlo_past_taken(
    const mlo_cacheless *c, const mlo_value *v, int rank, int64_t *last) {
    mlo_node *n = NULL;
    int64_t axis = -1;
    *last = mlo_readers(v, &n) == 1 ? mlo_keeps_last(c, n, rank, -1, &axis) : 0;
    const mlo_value *taken = *last
        ? mlo_handed_through(c->m, c->g, mlo_value_of(c->g, n->output[0]))
        : v;
    const int joins = *last && mlo_readers(taken, &n) && mlo_is(n, "Concat")
        && mlo_past_axis(n, rank) == axis;
    if (!joins) *last = 0;
    return joins ? taken : v;
}

static mlo_past mlo_past_of(const mlo_cacheless *c, const mlo_value *input) {
    mlo_past p = { mlo_handed_through(c->m, c->g, input), mlo_form_of(input), 0, NULL, NULL, 0, -1,
        NULL, 0 };
    p.v = mlo_past_taken(c, p.v, p.form.rank, &p.last);
    p.readers = mlo_readers(p.v, &p.node);
    if (!p.node) return p;
    p.cacher = mlo_cacher_at(p.node, mlo_input_at(p.node, p.v->name));
    p.axis = mlo_past_axis(p.node, p.form.rank);
    p.joined = mlo_is(p.node, "Concat") && p.axis >= 0;
    if (p.cacher || p.joined)
        p.out = mlo_given_out(c->m, c->g, p.node->output[p.cacher ? p.cacher->present : 0]);
    if (!p.out && p.joined && p.node->n_input == 2 && p.node->input[0] == p.v->name)
        p.out = mlo_given_out(c->m, c->g, p.node->input[1]); /* what is new leaves alone */
    mlo_past_cropped(c, &p);
    return p;
}

/* Does it look like a past that is not used as one? Where an axis is open that is neither that of sequences nor
 * the last one (of an additive mask's keys, say), or only its length counts. */
static int mlo_resembles_past(const mlo_past *p, const mlo_value *input) {
    int open = !p->readers && input->n_use;
    for (int d = 1; p->form.rank > 3 && d < p->form.rank - 1; d++)
        open |= p->form.dims[d] < 0 && p->form.dims[p->form.rank - 1] >= 0;
    return open;
}

static int mlo_refuse_past(mlo_cacheless *c, const mlo_past *p, const mlo_value *input) {
    mlo *m = c->m;
    const mlo_node *n = p->node ? p->node : input->n_use ? input->use[0] : NULL;
    if (p->joined && (!p->cacher || p->node->n_input != 2))
        return mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "'%s' is not alone in front of the keys or values that come in; a past comes first, "
            "with "
            "nothing else",
            input->name);
    if (p->cacher && !p->out)
        return mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "'%s' with what came in is no output of the model; export both, past and present",
            input->name);
    if (p->readers > 1)
        return mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "the past '%s' has %zu readers; one node joins it to what comes in", input->name,
            p->readers);
    if (p->last && p->last < c->tokens - 1)
        return mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "of '%s' with what came in the last %lld tokens are kept, and --context %lld keeps "
            "all; give --context %lld at most, or export with caches of all tokens "
            "(DynamicCache without a config)",
            input->name, (long long)p->last, (long long)c->tokens, (long long)p->last + 1);
    if (p->joined && p->form.dims[p->axis] > 0)
        return mlo_fail(m, MLO_E_SHAPE, n,
            "the past '%s' has a fixed length of %lld; export it with that axis dynamic",
            input->name, (long long)p->form.dims[p->axis]);
    return p->cacher && p->axis >= 0
        ? 0
        : mlo_fail(m, MLO_E_UNSUPPORTED, n,
              "'%s' looks like past keys or values, but no Concat joins it to those that come in",
              input->name);
}

/* ---- buffers -------------------------------------------------------------- */

/* The output that hands out what is written, moved or not; NULL: none does. */
static const char *mlo_buffer_out(const mlo_cacheless *c, const mlo_node *n) {
    const mlo_value *made = mlo_value_of(c->g, n->output[0]);
    const int moved = made->n_use == 1 && mlo_is(made->use[0], "Transpose");
    return mlo_given_out(c->m, c->g, moved ? made->use[0]->output[0] : n->output[0]);
}

/* The node that writes into an input's elements, moved or not, where new keys come, and is alone in reading
 * them, or hands out what it has written; NULL: none does. */
static mlo_node *mlo_written_by(const mlo_cacheless *c, const mlo_value *v, int depth) {
    mlo_node *n = NULL, *alone = NULL;
    if (mlo_readers(v, &n) == 1) alone = n;
    for (size_t i = 0; depth < 8 && i < v->n_use; i++) {
        mlo_node *u = v->use[i];
        if (mlo_is(u, "Transpose")) {
            n = mlo_written_by(c, mlo_value_of(c->g, u->output[0]), depth + 1);
            if (n) return n;
        }
        if (!mlo_is(u, "ScatterND") && !mlo_is(u, "ScatterElements") && !mlo_is(u, "Scatter"))
            continue;
        if (u == alone || mlo_buffer_out(c, u)) return u;
    }
    return NULL;
}

/* Where new rows are written is computed from how many there are: that input is 0. */
static int mlo_start_at_zero(mlo_cacheless *c, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(c->g, name);
    const mlo_form f = mlo_form_of(v);
    if (!v || v->tensor || depth > 8) return 0;
    if (v->is_input)
        return mlo_form_known(&f) && f.rank < 2 && mlo_form_count(&f) == 1
            ? mlo_fix_input(c, v->name, &f, 0, 0)
            : 0;
    for (size_t i = 0; !mlo_reads_shape(v->producer) && i < v->producer->n_input; i++)
        MLO_TRY(mlo_start_at_zero(c, v->producer->input[i], depth + 1));
    return 0;
}

static void mlo_drop_node(mlo_graph *g, const mlo_node *n) {
    size_t kept = 0;
    for (size_t i = 0; i < g->n_node; i++)
        if (g->node[i] != n) g->node[kept++] = g->node[i];
    g->n_node = kept;
}

/* The axis of a buffer along which rows are written, by a ScatterND where `moved` has put it first, or by a
 * ScatterElements; -1: in another way. */
static int64_t mlo_buffer_axis(const mlo_node *n, const mlo_node *moved, int rank) {
    const int64_t said = mlo_int(n, "axis", 0), axis = said < 0 ? said + rank : said;
    if (n->n_input != 3 || !mlo_string_is(n, "reduction", "none", 1)) return -1;
    if (mlo_is(n, "ScatterElements")) return moved ? -1 : axis;
    if (!mlo_is(n, "ScatterND")) return -1;
    return moved ? mlo_int_at(moved, "perm", 0, -1) : 0;
}

/* Whoever read the buffer, its size perhaps, reads what is written into it. */
static void mlo_read_updates(const mlo_value *v, const mlo_node *n) {
    for (size_t i = 0; i < v->n_use; i++)
        for (size_t k = 0; k < v->use[i]->n_input; k++)
            if (v->use[i]->input[k] == v->name) v->use[i]->input[k] = n->input[2];
}

/* A buffer [.., positions, ..] that rows are written into: of N positions and N tokens all are new.
 * What was there is taken for what comes in; which rows are written is known when constants are folded
 * (mlo_is_passthrough), and mlo_context_settled asks. */
static int mlo_take_buffer(mlo_cacheless *c, const mlo_value *v, mlo_node *n) {
    const mlo_form f = mlo_form_of(v);
    mlo_node *first = NULL;
    const size_t readers = mlo_readers(v, &first);
    const int moved = first != n;
    const char *out = mlo_buffer_out(c, n);
    const int64_t axis = mlo_buffer_axis(n, moved ? first : NULL, f.rank);
    if (readers != 1 || !out || axis < 0 || axis >= f.rank
        || (moved && (v->n_use != 1 || mlo_value_of(c->g, first->output[0])->use[0] != n)))
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, n,
            "'%s' is a buffer that keys or values are written into in a way that is not known; "
            "export "
            "the model with past and present ones (DynamicCache), or without a cache",
            v->name);
    if (f.dims[axis] >= 0 && f.dims[axis] != c->tokens)
        return mlo_fail(c->m, MLO_E_SHAPE, n,
            "'%s' is a buffer of %lld positions, --context says %lld; give --context %lld, or "
            "export it "
            "for as many",
            v->name, (long long)f.dims[axis], (long long)c->tokens, (long long)f.dims[axis]);
    mlo_drop_info(c->g->input, &c->g->n_input, v->name);
    mlo_drop_info(c->g->output, &c->g->n_output, out);
    if (moved) mlo_drop_node(c->g, first);
    n->input[0] = n->input[2];
    mlo_read_updates(v, n);
    return mlo_start_at_zero(c, n->input[1], 0);
}

/* After folding: were all buffers written from their beginning on? */
static int mlo_context_settled(mlo *m) {
    const mlo_graph *g = m->model->graph;
    if (!mlo_meta_get(m->model->meta, m->model->n_meta, mlo_key_context)) return 0;
    for (size_t i = 0; i < g->n_node; i++)
        if ((mlo_is(g->node[i], "ScatterND") || mlo_is(g->node[i], "ScatterElements"))
            && g->node[i]->input[0] == g->node[i]->input[2])
            return mlo_fail(m, MLO_E_UNSUPPORTED, g->node[i],
                "into which positions of a buffer new keys or values are written is no constant, "
                "or "
                "they are not all in order; export the model with past and present ones "
                "(DynamicCache), or without a cache");
    return 0;
}

/* Is it joined to what comes in, or attended to? */
static int mlo_is_past(const mlo_past *p) {
    const int open = p->axis >= 0 && (p->axis < p->form.rank - 1 || p->form.dims[p->axis] < 0);
    return p->out || (p->cacher && p->cacher->attends) || (p->joined && open);
}

/* The last open axis, -1: none is. */
static int mlo_last_open(const mlo_form *f) {
    int d = f->rank - 1;
    while (d >= 0 && f->dims[d] >= 0) d--;
    return d;
}

/* Is it a stack of pasts (unstacked.c) of which sizes alone are read? */
static int mlo_is_unstacked(const mlo_past *p, const mlo_value *input) {
    return p->form.rank > 4 && !p->readers && input->n_use && mlo_last_open(&p->form) > 0;
}

/* Can it be a past at all? */
static int mlo_may_be_past(const mlo_past *p) {
    return mlo_dtype_is_float(p->form.dtype) && p->form.rank >= 3;
}

/* An input that is a past goes. */
static int mlo_take_past(mlo_cacheless *c, const mlo_value_info *info) {
    const mlo_value *v = mlo_value_of(c->g, info->name);
    const mlo_past p = mlo_past_of(c, v);
    if (!mlo_may_be_past(&p)) return 0;
    mlo_node *buffer = mlo_written_by(c, p.v, 0);
    if (buffer) return mlo_take_buffer(c, v, buffer);
    if (mlo_is_unstacked(&p, v)) return mlo_drop_past(c, v, v->use[0], mlo_last_open(&p.form), 0);
    if (!mlo_is_past(&p) && !mlo_resembles_past(&p, v)) return 0;
    MLO_TRY(mlo_refuse_past(c, &p, v));
    if (p.out) mlo_drop_output(c, p.out);
    return mlo_write_from_zero(c, p.node) || mlo_drop_past(c, v, p.node, p.axis, p.cacher->attends)
            || mlo_hand_on(c, p.node, p.cacher)
        ? mlo_failed(c->m)
        : 0;
}

static int mlo_take_pasts(mlo_cacheless *c) {
    const size_t n = c->g->n_input;
    mlo_value_info **input = MLO_NEW_N(c->m, mlo_value_info *, n);
    if (!input) return mlo_failed(c->m);
    memcpy(input, c->g->input, n * sizeof *input);
    for (size_t i = 0; i < n; i++) MLO_TRY(mlo_take_past(c, input[i]));
    return mlo_index(c->m, c->g);
}

/* Inputs of the model that say how many keys there are, with those of the tokens that come in: N. */
static int mlo_count_keys(mlo_cacheless *c) {
    static const struct {
        const char *op;
        size_t input;
        int less; /* so many fewer are said */
    } counts[] = { { "Attention", 6, 0 }, { "com.microsoft.GroupQueryAttention", 5, 1 },
        { "com.microsoft.GroupQueryAttention", 6, 0 } };
    for (size_t i = 0; i < c->g->n_node; i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            const mlo_node *n = c->g->node[i];
            const size_t at = counts[k].input;
            const mlo_value *v = mlo_is(n, counts[k].op) && mlo_has_input(n, at)
                ? mlo_value_of(c->g, n->input[at])
                : NULL;
            mlo_form f = mlo_form_of(v);
            if (!v || !v->is_input || v->tensor || f.rank < 0 || f.rank > 1) continue;
            if (f.dims[0] < 0) f.dims[0] = 1;
            MLO_TRY(mlo_fix_input(c, v->name, &f, c->tokens - counts[k].less, 0));
        }
    return 0;
}
