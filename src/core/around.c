/* around: what is around a loop as hardware (--tokens): the table of rows in front; of a decoder norm, head and arg
 * max, which a token passes that ends a frame; of an encoder the norm between rows and loop.
 *
 * in:  a lowered model with rows (integer/head.c, front.c), the core of its loop.
 * out: an mlo_core of one iteration (mlo_core.around). A decoder's has frames of single tokens; nobody folds it: it is
 *     as fast as its matrix comes from memory, and no faster. An encoder's has the loop's frames and lanes. Both follow
 *     the loop's lanes and memory as those are found.
 *
 * invariant: it depends on shapes, widths and the width of the memory bus alone.
 * example: of 64 channels, 512 words and 128 bits a beat: layernorm 1, mvu 1 x 16, argmax.
 * cost: O(nodes).
 */
static const mlo_tensor *mlo_around_table(mlo *m, const mlo_core *c, const char *name) {
    const mlo_value *v = mlo_value_of(c->scan.outer, mlo_intern(m, name));
    return v ? v->tensor : NULL;
}
/* Of ids; of positions, which lie behind those; NULL: there are none. */
static const mlo_tensor *mlo_around_rows(mlo *m, const mlo_core *c) {
    return mlo_around_table(m, c, mlo_head_rows);
}
static const mlo_tensor *mlo_around_places(mlo *m, const mlo_core *c) {
    return mlo_around_table(m, c, mlo_head_places);
}

/* What a decoder says; NULL: it is an encoder. */
static const mlo_value *mlo_around_said(mlo *m, const mlo_graph *g) {
    return mlo_value_of(g, mlo_intern(m, mlo_head_next));
}

/* Of a table [.., rows, channels]. */
static int64_t mlo_tensor_rows(const mlo_tensor *t) {
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < t->n_dims; i++) rows *= t->dims[i];
    return rows;
}

/* The kernels around the loop, up to `last`, as a graph of their own, which sees the outer one. */
static mlo_graph *mlo_around_graph(mlo *m, mlo_graph *g, const mlo_value *last) {
    mlo_graph *view = MLO_NEW(m, mlo_graph);
    if (!view || !last) return NULL;
    view->outer = g;
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_kernel *k = mlo_kernel_of(g->node[i]);
        const mlo_value *made = k ? mlo_value_of(g, g->node[i]->output[0]) : NULL;
        if (!k || !k->unit) continue;
        mlo_value *v = mlo_index_value(m, view, made->name);
        if (!v || mlo_graph_add(m, view, g->node[i])) return NULL;
        v->producer = g->node[i];
        v->info = made->info;
    }
    return MLO_PUSH(m, view->output, view->n_output, last->info) ? view : NULL;
}

/* The fewest multipliers that are done with a row block when the next one has come; of those the most
 * channels side by side. */
static int mlo_around_matrix(mlo *m, const mlo_core *h, mlo_element *e) {
    const int64_t k = e->site.in[1].dims[0], n = e->site.in[1].dims[1];
    const int64_t load = mlo_unit_beats(&e->unit, h->axi_bits);
    int64_t best[2] = { 0, 0 };
    for (int64_t simd = k; simd; simd--)
        for (int64_t pe = 1; pe <= n && pe <= k; pe++) {
            const int64_t all = pe * simd;
            if (!e->kernel->legal(&e->site, pe, simd) || k * n > load * all
                || (best[0] && all >= best[0] * best[1]))
                continue;
            best[0] = pe;
            best[1] = simd;
            break;
        }
    return best[0] ? mlo_element_fold(m, h, e, best[0], best[1]) : 0;
}

/* As many channels side by side as the loop takes. */
static int mlo_around_lanes(mlo *m, mlo_core *h, int lanes) {
    for (int i = 0; i < h->n_element; i++) {
        mlo_element *e = &h->element[i];
        MLO_TRY(mlo_element_fold(m, h, e, e->kernel->legal(&e->site, lanes, 1) ? lanes : 1, 1));
    }
    mlo_core_lanes(h);
    return mlo_failed(m);
}

static int mlo_around_fold(mlo *m, mlo_core *h) {
    for (int i = 0; i < h->n_element; i++) {
        mlo_element *e = &h->element[i];
        if (!mlo_is_kernel(e->node, MLO_KERNEL_MATRIX)) continue;
        e->memory = MLO_BLOCK;
        e->tile = 1;
        if (mlo_element_fold(m, h, e, 1, 1) || mlo_around_matrix(m, h, e)) return mlo_failed(m);
    }
    return 0;
}

/* Why an encoder's cannot be built; NULL: it can. Norms alone: they take a token as it comes. */
static const char *mlo_front_unfit(const mlo_core *c) {
    const mlo_core *h = c->around;
    for (int i = 0; i < h->n_element; i++)
        if (!mlo_is_kernel(h->element[i].node, MLO_KERNEL_NORM))
            return "more than a norm in front of an encoder's loop";
    return h->edge[0].bits != c->bits ? "sums of another width than the loop's" : NULL;
}

/* Why it cannot be built; NULL: it can. */
static const char *mlo_around_unfit(mlo *m, const mlo_core *c) {
    const char *why = c->in_front ? mlo_front_unfit(c) : NULL;
    return why                                          ? why
        : !c->slots && !c->in_front                     ? "a core without caches; give --context"
        : c->slots && c->in_front                       ? "--context for an encoder"
        : (c->masked && !c->in_front) || c->replay >= 0 ? "a loop that other streams go into, too"
        : c->frames > 1 && !c->in_front                 ? "more than one frame in flight"
        : c->bits < 9                                   ? "a --residual of 8 bits"
        : c->channels * 16 % c->axi_bits                ? "rows that are no whole beats of memory"
        : c->channels > 32767                           ? "more than 32767 channels"
        : mlo_opt(m, "unrolled") != NULL                ? "--unrolled"
                                                        : NULL;
}

/* It follows the loop: its lanes; the memory, for which it is folded. */
static int mlo_around_follow(mlo *m, const mlo_core *c) {
    mlo_core *h = c->around;
    if (!h) return mlo_failed(m);
    h->rate = c->rate;
    h->read_latency = c->read_latency;
    const int same = h->axi_bits == c->axi_bits;
    h->axi_bits = c->axi_bits;
    if (c->in_front) {
        h->frames = c->frames;
        if (!same || h->lanes != c->lanes) MLO_TRY(mlo_around_lanes(m, h, c->lanes));
        h->lanes = c->lanes;
    } else if (!same) {
        MLO_TRY(mlo_around_fold(m, h));
        mlo_core_lanes(h);
    }
    for (int k = 0; k < h->n_edge; k++)
        if (h->edge[k].from == MLO_OUTSIDE) h->edge[k].lanes_from = c->lanes;
    return mlo_failed(m);
}

/* What is around the loop. */
static int mlo_core_around(mlo *m, mlo_core *c) {
    const mlo_tensor *rows = mlo_around_rows(m, c), *places = mlo_around_places(m, c);
    const mlo_value *said = mlo_around_said(m, c->scan.outer);
    mlo_core *h = rows ? MLO_NEW(m, mlo_core) : NULL;
    if (!h) return mlo_failed(m);
    memset(h, 0, sizeof *h);
    h->scan = c->scan;
    h->scan.iterations = 1;
    c->in_front = !said;
    if (!said) said = mlo_value_of(c->scan.outer, c->scan.node->input[0]);
    if (!(h->scan.body = mlo_around_graph(m, c->scan.outer, said))) return mlo_failed(m);
    h->replay = -1;
    h->chunk = h->keys = c->in_front ? c->chunk : 1;
    h->frames = 1;
    const mlo_form f = mlo_form_of(said);
    h->channels = mlo_last_dim(&f);
    h->bits = c->in_front ? c->bits : 32;
    if (mlo_core_elements(m, h) || mlo_core_edges(m, h)) return mlo_failed(m);
    c->around = h;
    c->ids = rows->dims[0];
    h->places = c->places = !places ? 0 : c->in_front ? mlo_tensor_rows(places) : c->chunk;
    return mlo_around_follow(m, c);
}

/* The core of a lowered model, whole. */
static int mlo_core_build(mlo *m, mlo_core *c) {
    return mlo_core_loop(m, c) ? mlo_failed(m) : mlo_core_around(m, c);
}

/* What is around a loop that is to be hardware, as it is with the loop; *h NULL: nothing is. */
static int mlo_around(mlo *m, const mlo_core *c, mlo_core **h) {
    const char *why = c->around ? mlo_around_unfit(m, c) : NULL;
    *h = c->around;
    return why
        ? mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node, "--tokens with %s has no hardware", why)
        : mlo_around_follow(m, c);
}

/* Types of tokens, each with a row for each position. */
static int64_t mlo_core_types(const mlo_core *c) {
    return c->places ? mlo_max(1, c->places / c->chunk) : 1;
}

/* ---- in memory: behind the loop's parameters its own, then the rows. Bytes. ---- */

static int64_t mlo_core_image_bytes(const mlo_core *c) {
    return mlo_core_beats(c) * c->scan.iterations * c->axi_bits / 8;
}
static int64_t mlo_around_rows_bytes(const mlo_core *c) { return 2 * c->ids * c->channels; }
static int64_t mlo_around_places_bytes(const mlo_core *c) { return 2 * c->places * c->channels; }
