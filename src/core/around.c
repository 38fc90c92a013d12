/* around: what is around a loop as hardware (--tokens): the table of rows in front; of a decoder norm, head and arg
 * max, which a token passes that ends a frame; of an encoder the norm between rows and loop, and its tail: the matrices
 * that a token passes which begins a frame, if the model says what those make (integer/tail.c).
 *
 * in:  a lowered model with rows (integer/head.c, front.c), the core of its loop.
 * out: an mlo_core of one iteration (mlo_core.around), and another one of a tail (mlo_core.tail). A decoder's, and a
 *     tail, have frames of single tokens; nobody folds them: they are as fast as their matrices come from memory, and
 *     no faster. An encoder's front has the loop's frames and lanes. All follow the loop's lanes and memory as those
 *     are found.
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

/* Hardware behind a loop, or in front of it? */
static int mlo_around_is_kernel(const mlo_core *c, size_t i, int behind) {
    const mlo_graph *g = c->scan.outer;
    const mlo_kernel *k = mlo_kernel_of(g->node[i]);
    size_t loop = 0;
    while (g->node[loop] != c->scan.node) loop++;
    return k && k->unit && (i > loop) == behind;
}

/* What the last of it makes, of a tail; NULL: there is none. */
static const mlo_value *mlo_tail_made(mlo *m, const mlo_core *c) {
    const mlo_graph *g = c->scan.outer;
    size_t i = mlo_value_of(g, mlo_intern(m, mlo_tail_first)) ? g->n_node : 0;
    while (i && !mlo_around_is_kernel(c, i - 1, 1)) i--;
    return i ? mlo_value_of(g, g->node[i - 1]->output[0]) : NULL;
}

/* The kernels behind the loop or in front of it, up to `last`, as a graph of their own, which sees the outer one. */
static mlo_graph *mlo_around_graph(mlo *m, const mlo_core *c, int behind, const mlo_value *last) {
    mlo_graph *g = c->scan.outer, *view = MLO_NEW(m, mlo_graph);
    if (!view || !last) return NULL;
    view->outer = g;
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_value *made = mlo_value_of(g, g->node[i]->output[0]);
        if (!mlo_around_is_kernel(c, i, behind)) continue;
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

/* Why an encoder's tail cannot be built; NULL: it can, or there is none. Nothing in it may wait for two streams. */
static const char *mlo_tail_unfit(const mlo_core *t) {
    for (int i = 0; t && i < t->n_element; i++)
        if (t->element[i].unit.n_in > 1) return "two streams that meet behind an encoder's loop";
    return NULL;
}

/* Why it cannot be built; NULL: it can. */
static const char *mlo_around_unfit(mlo *m, const mlo_core *c) {
    const char *why = c->in_front ? mlo_front_unfit(c) : NULL;
    if (!why) why = mlo_tail_unfit(c->tail);
    return why                                          ? why
        : !c->slots && !c->in_front                     ? "a core without caches; give --context"
        : c->slots && c->in_front                       ? "--context for an encoder"
        : (c->masked && !c->in_front) || c->replay >= 0 ? "a loop that other streams go into, too"
        : c->frames > 1 && !c->in_front                 ? "more than one frame in flight"
        : c->bits < 9                                   ? "a --residual of 8 bits"
        : c->channels * 16 % c->axi_bits
        ? "rows that are no whole beats of memory (a smaller --axi-width may divide them)"
        : c->channels > 32767            ? "more than 32767 channels"
        : mlo_opt(m, "unrolled") != NULL ? "--unrolled"
                                         : NULL;
}

/* One of both follows the loop. */
static int mlo_around_follows(mlo *m, const mlo_core *c, mlo_core *h) {
    h->rate = c->rate;
    h->read_latency = c->read_latency;
    const int same = h->axi_bits == c->axi_bits;
    h->axi_bits = c->axi_bits;
    if (c->in_front && h == c->around) {
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

/* They follow the loop: its lanes; the memory, for which they are folded. */
static int mlo_around_follow(mlo *m, const mlo_core *c) {
    if (c->around) MLO_TRY(mlo_around_follows(m, c, c->around));
    return c->tail ? mlo_around_follows(m, c, c->tail) : mlo_failed(m);
}

/* A core of the kernels in front of the loop, or behind it, up to what the last of them makes. */
static mlo_core *mlo_around_new(
    mlo *m, const mlo_core *c, int behind, const mlo_value *last, int bits) {
    mlo_core *h = MLO_NEW(m, mlo_core);
    if (!h) return NULL;
    memset(h, 0, sizeof *h);
    h->scan = c->scan;
    h->scan.iterations = 1;
    if (!(h->scan.body = mlo_around_graph(m, c, behind, last))) return NULL;
    h->replay = -1;
    h->chunk = h->keys = behind ? 1 : c->chunk;
    h->frames = 1;
    const mlo_form f = mlo_form_of(last);
    h->channels = mlo_last_dim(&f);
    h->bits = bits;
    return mlo_core_elements(m, h) || mlo_core_edges(m, h) ? NULL : h;
}

/* What is around the loop. */
static int mlo_core_around(mlo *m, mlo_core *c) {
    const mlo_tensor *rows = mlo_around_rows(m, c), *places = mlo_around_places(m, c);
    const mlo_value *said = mlo_around_said(m, c->scan.outer), *made = mlo_tail_made(m, c);
    if (!rows) return mlo_failed(m);
    c->in_front = !said;
    if (!said) said = mlo_value_of(c->scan.outer, c->scan.node->input[0]);
    mlo_core *h = mlo_around_new(m, c, !c->in_front, said, c->in_front ? c->bits : 32);
    if (!h) return mlo_failed(m);
    if (c->in_front && made)
        c->tail = mlo_around_new(m, c, 1, made, mlo_value_bits(c->scan.outer, made->name));
    if (m->error.code) return mlo_failed(m);
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
/* A tail's begin behind those. */
static int64_t mlo_tail_offset(const mlo_core *c) {
    return mlo_core_image_bytes(c) + mlo_core_image_bytes(c->around) + mlo_around_rows_bytes(c)
        + mlo_around_places_bytes(c);
}
/* All of them. */
static int64_t mlo_core_whole_bytes(const mlo_core *c) {
    return !c->around ? mlo_core_image_bytes(c)
                      : mlo_tail_offset(c) + (c->tail ? mlo_core_image_bytes(c->tail) : 0);
}
