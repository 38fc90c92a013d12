/* core: the lowered loop as hardware: elements (kernels and splits) and the edges between them,
 * parameters, FIFO depths.
 *
 * in:  a lowered model, folded or not (then everything is as small as can be).
 * out: mlo_core, which fold, emit and show read.
 * invariant: edges carry whole tokens; every element makes one token per token it takes; elements
 *     stand in dataflow order.
 * example: BERT: 12 elements; the carried value forks to Requant (-> QKV) and to the residual FIFO.
 * cost: O(nodes).
 */
enum { MLO_OUTSIDE = -1, MLO_CORE_MOST = 96, MLO_LATENCY_MOST = 100000 };
enum { MLO_CORE_MEMORIES = MLO_CORE_MOST * (int)MLO_UNIT_MEMORIES };

/* Where a kernel's parameters are. Layer: two banks on chip, every iteration's parameters come
 * from memory in every iteration. Resident: a bank for each iteration, loaded once; then the
 * iterations there can be are a matter of building. Block, of a matrix: two banks of a block of
 * its rows; every block comes from memory for every tile of tokens, which waits on chip. A set of
 * them: what a search may choose from. */
enum { MLO_LAYER = 1, MLO_RESIDENT = 2, MLO_BLOCK = 4, MLO_EITHER = MLO_LAYER | MLO_RESIDENT };
static int mlo_to_choose(int memories) { return (memories & (memories - 1)) != 0; }

typedef struct {
    mlo_node *node;
    const char *name;
    const mlo_kernel *kernel; /* NULL: a split */
    mlo_site site;
    mlo_unit unit;
    int64_t depth; /* tokens it can hold beyond those it passes on: for FIFO depths */
    /* 1: it handles tokens of the memory, which every iteration reads again (kernels/replay.c) */
    int side;
    int crossed; /* 1: of an attention: its keys are such tokens */

    int pinned; /* 1: this folding was given; a search leaves it alone */
    int memory; /* MLO_LAYER, MLO_RESIDENT or MLO_BLOCK */
    int memories; /* the set of those that a search may choose from */
    int own_memory; /* 1: given for this kernel */
    int64_t tile; /* of block: tokens */
    int own_tile; /* 1: given for this kernel */
} mlo_element;

typedef struct {
    int from; /* an element; MLO_OUTSIDE: the loop's own input */
    int from_port;
    int to; /* an element; MLO_OUTSIDE: the loop's own output */
    int to_port;

    int bits; /* of a channel */
    int lanes_from; /* channels of a beat, at the producer */
    int lanes_to; /* channels of a beat, at the consumer */
    int64_t channels; /* of a token */
    int64_t fifo; /* tokens of buffering beyond the handshake, 0 for none */
} mlo_edge;

/* A job, as a host orders it: tokens start .. start + tokens - 1 of the sequence in a slot. */
typedef struct {
    int64_t slot;
    int64_t start;
    int64_t tokens;
    /* 1: its ids come when all in front of it has been said: of a text that goes on inside
     * (mlo_tokens), and behind one */
    int told;
} mlo_ordered;

typedef struct mlo_core {
    mlo_scan scan;
    mlo_element element[MLO_CORE_MOST];
    int n_element;
    mlo_edge edge[2 * MLO_CORE_MOST];
    int n_edge;

    int64_t chunk; /* tokens that go through together, at most: the longest frame */
    int64_t
        keys; /* tokens that a query can see, at most: all of its frame, and a past in front of it */
    int64_t channels; /* carried */
    int lanes; /* channels of a beat of the loop's streams */
    int bits; /* of a channel of the loop's streams */
    int frames; /* in flight, at most */
    int64_t slots; /* sequences whose keys and values stay; 0: none do. A frame is a job then */
    int dram; /* 1: they stay in memory, behind mlo_kv; 0: on chip */
    /* 1: they are the model's own: those of earlier tokens lie in memory when a frame comes, which is a job, and all
     * lie there when it has left */
    int given;
    /* 1: the carried value of every iteration leaves, a frame's one behind the other */
    int every;
    const char *kept
        [4]; /* of those, outside the loop: keys, values that come in (NULL: none), and that leave */
    const mlo_ordered *order; /* of the run that is asked about; NULL: whole frames */
    int64_t n_order;
    struct mlo_core
        *around; /* of token ids: a decoder's head, an encoder's norm (core/around.c); NULL: none */
    struct mlo_core *
        tail; /* of an encoder, what it makes of a frame's first token behind the loop; NULL: nothing */
    int in_front; /* 1: `around` is an encoder's, in front of the loop; what the loop makes is what the core makes */
    int64_t ids; /* rows of the table in front; 0: there is none */
    int64_t places; /* rows of positions behind them; 0: there are none */
    int masked; /* 1: a runtime mask stream */
    int replay; /* the element that brings the memory's tokens; -1: there is none */
    int replay_masked; /* 1: a runtime mask stream of theirs, too */
    int whole_frame; /* 1: some element holds a frame (attention) */
    int64_t feedback; /* tokens of the feedback FIFO */

    int axi_bits; /* of a beat of parameters */
    /* what memory gives: beats of axi_bits in 256 cycles; the simulated memory counts so, too */
    int rate;
    int read_latency; /* cycles from a read request to its first beat */
} mlo_core;

/* Into how many parts a Split deals a value. */
static int64_t mlo_core_parts(const mlo_graph *body, const char *name) {
    for (size_t i = 0; i < body->n_node; i++)
        if (mlo_is(body->node[i], "Split") && mlo_has_input(body->node[i], 0)
            && body->node[i]->input[0] == name)
            return (int64_t)body->node[i]->n_output;
    return 1;
}

/* The numbers of parameter `k`, of all iterations, one behind the other: known before there is
 * hardware, because they say how much work there is. */
static int mlo_site_known(mlo *m, mlo_core *c, mlo_site *s, size_t k) {
    int64_t *to = NULL;
    s->iterations = c->scan.iterations;
    for (int64_t i = 0; i < s->iterations; i++) {
        mlo_array *a = mlo_scan_value(m, &c->scan, s->node->input[k], i);
        if (!a) return mlo_failed(m);
        s->n_known = mlo_array_count(a);
        if (!to) to = MLO_NEW_N(m, int64_t, mlo_room((size_t)(s->n_known * s->iterations)));
        for (int64_t j = 0; to && j < s->n_known; j++) to[i * s->n_known + j] = mlo_get(a, j);
        mlo_array_free(m, a);
        if (!to) return mlo_failed(m);
    }
    s->known = to;
    return 0;
}

/* Have all iterations the same of the node's input k? */
static int mlo_site_same(mlo *m, mlo_core *c, const mlo_node *n, size_t k) {
    mlo_array *first = mlo_scan_value(m, &c->scan, n->input[k], 0);
    int same = first != NULL;
    for (int64_t i = 1; same && i < c->scan.iterations; i++) {
        mlo_array *a = mlo_scan_value(m, &c->scan, n->input[k], i);
        same = mlo_array_equal(a, first);
        mlo_array_free(m, a);
    }
    mlo_array_free(m, first);
    return same;
}

/* The stream of a value: what a layer puts behind a past (the past comes from memory), or itself. */
static const char *mlo_core_streamed(const mlo_core *c, const char *name) {
    const mlo_value *v = mlo_value_of(c->scan.body, name);
    const mlo_node *n = v && v->graph == c->scan.body ? v->producer : NULL;
    return mlo_is(n, "Concat") && n->n_input == 2 ? n->input[1] : name;
}

/* Keys of parameters in front of those of a frame. */
static int64_t mlo_element_ahead(const mlo_element *e) {
    return e->kernel && e->kernel->ahead ? e->kernel->ahead(e->node) : 0;
}

static int mlo_element_site(mlo *m, mlo_core *c, mlo_element *e) {
    mlo_node *n = e->node;
    memset(&e->site, 0, sizeof e->site);
    e->site.m = m;
    e->site.node = n;
    e->site.chunk = c->chunk;
    e->site.keys = c->keys;
    e->site.caches = c->dram ? 0 : c->slots * c->scan.iterations;
    e->site.past = c->dram;
    e->site.parts = mlo_core_parts(c->scan.body, n->output[0]);
    for (size_t i = 0; i < n->n_input && i < 8; i++) {
        e->site.in_bits[i] = mlo_value_bits(c->scan.body, mlo_core_streamed(c, n->input[i]));
        e->site.in[e->site.n_in++] = mlo_form_of(mlo_value_of(c->scan.body, n->input[i]));
    }
    e->site.out_bits = mlo_value_bits(c->scan.body, n->output[0]);
    e->site.out = mlo_form_of(mlo_value_of(c->scan.body, n->output[0]));
    if (e->side) e->site.chunk = mlo_tokens_of(&e->site.out);
    if (e->crossed) e->site.keys = mlo_tokens_of(&e->site.in[1]);
    e->site.keys += mlo_element_ahead(e);
    for (size_t i = 0; i < e->site.n_in; i++)
        if (!mlo_form_known(&e->site.in[i]))
            return mlo_fail(
                m, MLO_E_SHAPE, n, "input %zu, '%s', has no known shape", i, n->input[i]);
    if (!mlo_form_known(&e->site.out))
        return mlo_fail(m, MLO_E_SHAPE, n, "the output has no known shape");
    const size_t knows = e->kernel && e->kernel->knows ? e->kernel->knows(n) : 0;
    if (knows && knows < n->n_input) MLO_TRY(mlo_site_known(m, c, &e->site, knows));
    if (e->kernel && e->kernel->keeps && c->slots && c->scan.iterations > 1)
        e->site.same = mlo_site_same(m, c, n, e->kernel->keeps);
    return mlo_failed(m);
}

/* What a matrix in row blocks holds when things flow: a token stays for two tiles' time. */
static int64_t mlo_tile_tokens(int64_t tile) { return 2 * tile + 4; }

/* Tokens that row blocks may share a pass over a matrix among: those of a group of frames, which go through an
 * iteration one behind the other. A single iteration has no groups. */
static int64_t mlo_core_group(const mlo_core *c, int64_t chunk) {
    return c->scan.iterations > 1 ? c->frames * chunk : chunk;
}

/* (Re)derives an element's unit for a folding. */
static int mlo_element_fold(mlo *m, const mlo_core *c, mlo_element *e, int64_t pe, int64_t simd) {
    memset(&e->unit, 0, sizeof e->unit);
    e->site.tile = e->memory == MLO_BLOCK ? mlo_min(e->tile, mlo_core_group(c, e->site.chunk)) : 0;
    if (pe < 1 || simd < 1 || !e->kernel->legal(&e->site, pe, simd))
        return mlo_fail(m, MLO_E_FOLDING, e->node, "%s cannot be folded to PE=%lld SIMD=%lld",
            e->name, (long long)pe, (long long)simd);
    e->unit.pe = (int)pe;
    e->unit.simd = (int)simd;
    if (e->kernel->unit(&e->site, pe, simd, &e->unit)
        || mlo_kernel_fits(e->kernel, &e->site, &e->unit))
        return mlo_failed(m);
    e->depth = e->unit.whole_frame ? e->site.chunk + 3
        : e->unit.blocks           ? mlo_tile_tokens(e->unit.tile)
        : e->unit.window.room      ? e->unit.window.room + 1
        : e->unit.macs             ? 2
        : e->unit.n_memory > 1     ? 3
                                   : 1;
    return 0;
}

/* The smallest PE that is legal with SIMD 1: 1 of most kernels, 2 of those that work on pairs. */
static int64_t mlo_element_least(const mlo_element *e) {
    const int64_t most = mlo_last_dim(&e->site.out);
    for (int64_t pe = 1; pe <= most && !e->site.m->error.code; pe++)
        if (e->kernel->legal(&e->site, pe, 1)) return pe;
    return 1;
}

/* What an element's kernel says of the numbers inside, as JSON. */
static void mlo_element_intermediates(const mlo_element *e, mlo_text *t) {
    mlo_intermediates l;
    l.n = 0;
    e->kernel->intermediates(&e->site, &e->unit, &l);
    mlo_intermediates_json(t, &l);
}

/* Which element (and port) makes a value. */
static int mlo_core_source(const mlo_core *c, const char *name, int *port) {
    *port = 0;
    for (int i = 0; i < c->n_element; i++)
        for (size_t k = 0; k < c->element[i].node->n_output; k++)
            if (c->element[i].node->output[k] == name) {
                *port = (int)k;
                return i;
            }
    return MLO_OUTSIDE;
}

static int mlo_core_edge(mlo *m, mlo_core *c, const char *name, int to, int to_port, int bits,
    int64_t channels, int64_t fifo) {
    if (c->n_edge == 2 * MLO_CORE_MOST)
        return mlo_fail_at(
            m, MLO_E_UNSUPPORTED, name, "a loop body with more than %d streams", 2 * MLO_CORE_MOST);
    mlo_edge *e = &c->edge[c->n_edge++];
    e->from = mlo_core_source(c, name, &e->from_port);
    e->to = to;
    e->to_port = to_port;
    e->bits = bits;
    e->channels = channels;
    e->fifo = fifo;
    return 0;
}

/* Every stream comes from a kernel, or is the carried value. */
static int mlo_core_closed(mlo *m, const mlo_core *c) {
    const mlo_graph *body = c->scan.body;
    for (int i = 0; i < c->n_edge; i++) {
        const mlo_edge *e = &c->edge[i];
        const mlo_element *to = e->to == MLO_OUTSIDE ? NULL : &c->element[e->to];
        const char *name = !to ? body->output[0]->name
            : to->kernel ? mlo_core_streamed(c, to->node->input[to->unit.in[e->to_port].index])
                         : to->node->input[0];
        const mlo_value *v = mlo_value_of(body, name);
        if (e->from != MLO_OUTSIDE || name == body->input[0]->name) continue;
        return mlo_fail(m, MLO_E_UNSUPPORTED, v && v->producer ? v->producer : c->scan.node,
            "there is no hardware for what makes '%s', which %s streams; run `mlo lower`", name,
            to ? to->name : "the loop");
    }
    return 0;
}

/* Lanes at both ends of every edge; a split has the lanes of what feeds it. */
static void mlo_core_lanes(mlo_core *c) {
    for (int i = 0; i < c->n_edge; i++)
        if (c->edge[i].to == MLO_OUTSIDE)
            c->lanes = c->edge[i].from == MLO_OUTSIDE ? 1
                                                      : c->element[c->edge[i].from].unit.out.lanes;
    for (int i = 0; i < c->n_edge; i++) {
        mlo_edge *e = &c->edge[i];
        e->lanes_from = e->from == MLO_OUTSIDE ? c->lanes : c->element[e->from].unit.out.lanes;
        if (e->to != MLO_OUTSIDE && !c->element[e->to].kernel) {
            c->element[e->to].unit.out.lanes = e->lanes_from;
            c->element[e->to].unit.out.bits = e->bits;
        }
        e->lanes_to = e->to == MLO_OUTSIDE ? c->lanes
            : c->element[e->to].kernel     ? c->element[e->to].unit.in[e->to_port].lanes
                                           : e->lanes_from;
    }
}

/* A kernel's name becomes that of its instance: an identifier, of this kernel alone. (The core's
 * own parts have none that ends in a digit.) */
static int mlo_core_name(mlo *m, const mlo_core *c, const mlo_element *e) {
    if (!e->name)
        return mlo_fail(m, MLO_E_GRAPH, e->node, "the kernel has no name; run `mlo lower`");
    const size_t n = strlen(e->name);
    if (!n || n > 64
        || strspn(e->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") < n
        || !strchr("0123456789", e->name[n - 1]))
        return mlo_fail(m, MLO_E_DATA, e->node,
            "metadata say mlo.kernel = '%.40s', which is no name of letters, digits and '_' with a "
            "digit at its end; run `mlo lower`",
            e->name);
    for (int i = 0; i < c->n_element; i++)
        if (&c->element[i] != e && mlo_eq(c->element[i].name, e->name))
            return mlo_fail(m, MLO_E_DATA, e->node,
                "two kernels have the name %s (metadata mlo.kernel); run `mlo lower`", e->name);
    return 0;
}

/* The bits of results, as metadata say: all of them are looked at before any is read
 * (mlo_value_bits). */
static int mlo_core_widths(mlo *m, const mlo_graph *body) {
    for (size_t i = 0; i < body->n_node; i++)
        if (mlo_kernel_of(body->node[i]))
            mlo_meta_within(m, body->node[i], mlo_key_bits, 8, 1,
                mlo_bits_of(mlo_form_of(mlo_value_of(body, body->node[i]->output[0])).dtype));
    return mlo_failed(m);
}

/* Where a kernel's parameters are, as metadata say. */
/* Tokens of a tile, where nobody says: a frame's, of shorter frames one of each that is in flight. */
static int64_t mlo_core_tile(const mlo_core *c) { return mlo_max(c->chunk, mlo_core_group(c, 1)); }
static int mlo_core_parameters(mlo *m, const mlo_core *c, mlo_element *e) {
    const char *memory = mlo_meta_get(e->node->meta, e->node->n_meta, mlo_key_memory);
    e->memory = e->memories = mlo_eq(memory, "resident") ? MLO_RESIDENT
        : mlo_eq(memory, "block")                        ? MLO_BLOCK
                                                         : MLO_LAYER;
    if (memory && e->memory == MLO_LAYER && !mlo_eq(memory, "layer"))
        return mlo_fail(m, MLO_E_DATA, e->node,
            "metadata say mlo.memory = '%.40s', which is none of layer, block, resident", memory);
    e->tile = mlo_meta_within(m, e->node, mlo_key_tile, mlo_core_tile(c), 1, INT32_MAX);
    return mlo_failed(m);
}

/* A Split deals out equal parts. */
static int mlo_core_split(mlo *m, const mlo_core *c, const mlo_element *e) {
    for (size_t k = 0; k < e->node->n_output; k++) {
        const mlo_form f = mlo_form_of(mlo_value_of(c->scan.body, e->node->output[k]));
        if (!mlo_form_known(&f)
            || mlo_last_dim(&f) * (int64_t)e->node->n_output != mlo_last_dim(&e->site.in[0]))
            return mlo_fail(m, MLO_E_UNSUPPORTED, e->node,
                "a Split into parts that are not all of one size has no hardware");
    }
    return 0;
}

/* Is a value made of the memory's tokens? */
static int mlo_core_is_side(const mlo_core *c, const char *name) {
    int port, from = mlo_core_source(c, name, &port);
    return from != MLO_OUTSIDE && c->element[from].side;
}

/* Why one frame is in flight: of a core that comes with more, of an option or a folding. NULL: there may be more. */
static const char mlo_one_frame[] = "%d frames in flight %s; leave --frames-in-flight out";
static const char *mlo_core_alone(const mlo_core *c) {
    return c->replay >= 0 ? "beside an encoder's output, of which hardware keeps one frame"
        : c->every        ? "where every layer's tokens leave, frame by frame"
                          : NULL;
}

/* Whose tokens an element handles, and those of a mask that is a stream. */
static int mlo_core_side(mlo *m, mlo_core *c, mlo_element *e) {
    const mlo_node *n = e->node;
    if (mlo_is_kernel(n, MLO_KERNEL_REPLAY)) {
        if (c->replay >= 0)
            return mlo_fail(m, MLO_E_UNSUPPORTED, n,
                "a second stream from around the loop; hardware has one (an encoder's output)");
        c->replay = (int)(e - c->element);
        e->side = 1;
        return 0;
    }
    e->side = n->n_input && mlo_core_is_side(c, n->input[0]);
    e->crossed = mlo_is_kernel(n, MLO_KERNEL_ATTENTION) && mlo_core_is_side(c, n->input[1]);
    return 0;
}

static int mlo_core_elements(mlo *m, mlo_core *c) {
    mlo_graph *body = c->scan.body;
    if (mlo_core_widths(m, body)) return mlo_failed(m);
    for (size_t i = 0; i < body->n_node; i++) {
        mlo_node *n = body->node[i];
        const mlo_kernel *k = mlo_kernel_of(n);
        int split = mlo_is(n, "Split")
            && mlo_kernel_of(mlo_value_of(body, n->input[0])->producer
                    ? mlo_value_of(body, n->input[0])->producer
                    : n);
        if (!k && !split) continue;
        if (k && !k->unit) return mlo_fail(m, MLO_E_UNSUPPORTED, n, "this op has no hardware");
        if (c->n_element == MLO_CORE_MOST)
            return mlo_fail(
                m, MLO_E_UNSUPPORTED, n, "a loop body with more than %d kernels", MLO_CORE_MOST);
        mlo_element *e = &c->element[c->n_element++];
        memset(e, 0, sizeof *e);
        e->node = n;
        e->kernel = k;
        e->name = k ? mlo_meta_get(n->meta, n->n_meta, mlo_key_kernel)
                    : mlo_format(m, "split_%zu", i);
        if (mlo_core_name(m, c, e) || mlo_core_side(m, c, e) || mlo_core_parameters(m, c, e)
            || mlo_element_site(m, c, e))
            return mlo_failed(m);
        if (k ? mlo_element_fold(m, c, e, mlo_meta_int(n, mlo_key_pe, mlo_element_least(e)),
                    mlo_meta_int(n, mlo_key_simd, 1))
              : mlo_core_split(m, c, e))
            return mlo_failed(m);
        if (k) c->whole_frame |= e->unit.whole_frame && !e->crossed;
    }
    return 0;
}

static int mlo_core_edges(mlo *m, mlo_core *c) {
    for (int i = 0; i < c->n_element; i++) {
        mlo_element *e = &c->element[i];
        int n = e->kernel ? e->unit.n_in : 1;
        for (int k = 0; k < n; k++) {
            size_t at = e->kernel ? (size_t)e->unit.in[k].index : 0;
            char key[32];
            snprintf(key, sizeof key, "%s.%d", mlo_key_fifo, k);
            const mlo_form *f = &e->site.in[at];
            if (mlo_core_edge(m, c, mlo_core_streamed(c, e->node->input[at]), i, k,
                    e->site.in_bits[at], mlo_last_dim(f),
                    mlo_meta_within(m, e->node, key, 0, 0, 1 << 20))
                || m->error.code)
                return mlo_failed(m);
        }
    }
    return mlo_core_edge(
        m, c, c->scan.body->output[0]->name, MLO_OUTSIDE, 0, c->bits, c->channels, 0);
}

/* The memory, as options have it, or what the core was folded for: cycles from a request to its
 * first beat; bytes per cycle, at most what the bus takes. */
static int mlo_core_memory(mlo *m, mlo_core *c) {
    const char *text = mlo_opt(m, "bandwidth");
    const char *noted = mlo_meta_get(c->scan.node->meta, c->scan.node->n_meta, mlo_key_bandwidth);
    const long latency = (long)mlo_meta_within(
        m, c->scan.node, mlo_key_axi_latency, 7, 0, MLO_LATENCY_MOST);
    c->read_latency = (int)mlo_opt_int(m, "axi-latency", latency, 0, MLO_LATENCY_MOST);
    c->rate = 256;
    if (m->error.code || (!text && !noted)) return mlo_failed(m);
    char *end;
    const char *said = text ? text : noted;
    double v = strtod(said, &end), rate = v * 8 * 256 / c->axi_bits;
    if (end == said || *end || !(v > 0)) {
        if (text)
            return mlo_fail_at(
                m, MLO_E_USAGE, NULL, "--bandwidth %s is not a number of bytes per cycle", text);
        return mlo_fail(m, MLO_E_DATA, c->scan.node,
            "metadata say mlo.bandwidth = '%.40s', which is no number of bytes per cycle; leave it "
            "to mlo",
            noted);
    }
    c->rate = rate >= 256 ? 256 : rate < 1 ? 1 : (int)(rate + 0.5);
    return 0;
}

/* ---- buffering ------------------------------------------------------------ */

/* The most that `at` is of the elements in front of element i. */
static int64_t mlo_core_before(const mlo_core *c, int i, const int64_t at[MLO_CORE_MOST]) {
    int64_t most = 0;
    for (int k = 0; k < c->n_edge; k++)
        if (c->edge[k].to == i && c->edge[k].from != MLO_OUTSIDE)
            most = mlo_max(most, at[c->edge[k].from]);
    return most;
}
/* `at` of the element that edge e comes from. */
static int64_t mlo_edge_from(const mlo_edge *e, const int64_t at[MLO_CORE_MOST]) {
    return e->from == MLO_OUTSIDE ? 0 : at[e->from];
}

/* Does it carry tokens of the memory? */
static int mlo_core_edge_is_side(const mlo_core *c, const mlo_edge *e) {
    return e->from != MLO_OUTSIDE && c->element[e->from].side;
}

static void mlo_core_feedback(mlo_core *c) {
    c->feedback = c->whole_frame ? (c->frames - 1) * c->chunk + 2 : c->frames * c->chunk + 2;
}

/* FIFO depths, in tokens, that no schedule exceeds. A path's depth is how many tokens its elements
 * can hold; where paths of different depth meet, the shorter one gets the difference, and two
 * tokens to keep both moving. Queries wait for a whole frame of keys and values. */
static void mlo_core_fifos(mlo_core *c) {
    int64_t depth[MLO_CORE_MOST] = { 0 };
    mlo_core_feedback(c);
    for (int i = 0; i < c->n_element; i++) {
        const int64_t most = mlo_core_before(c, i, depth);
        for (int k = 0; k < c->n_edge; k++)
            if (c->edge[k].to == i) {
                const int64_t d = mlo_edge_from(&c->edge[k], depth);
                c->edge[k].fifo = most > d ? most - d + 2 : 0;
                /* the memory's tokens wait in front of what asks for them: they come anew */
                if (mlo_core_edge_is_side(c, &c->edge[k])) c->edge[k].fifo = 0;
                if (c->element[i].unit.whole_frame && !c->element[i].crossed
                    && c->edge[k].to_port == 0)
                    c->edge[k].fifo += c->chunk + 2;
            }
        depth[i] = most + (c->element[i].kernel ? c->element[i].depth : 0);
    }
}

/* What the way to each element's output takes before a first token leaves. */
typedef struct {
    int64_t frames[MLO_CORE_MOST]; /* elements on it that need a whole frame */
    /* tokens of its tiles of row blocks and of what windows reach, all of which are enough */
    int64_t tiles[MLO_CORE_MOST];
} mlo_waits;

static void mlo_core_waits(const mlo_core *c, mlo_waits *w) {
    for (int i = 0; i < c->n_element; i++) {
        w->frames[i] = mlo_core_before(c, i, w->frames) + c->element[i].unit.whole_frame;
        w->tiles[i] = mlo_core_before(c, i, w->tiles) + c->element[i].unit.tile
            + (c->element[i].unit.window.room ? c->element[i].unit.window.behind + 1 : 0);
    }
}

/* Tokens of queries that edge k brings until the frame's last key is there, which may wait in a tile for others. */
static int64_t mlo_core_keys(const mlo_core *c, const mlo_waits *w, int k) {
    int64_t tiles = 0;
    for (int i = 0; i < c->n_edge; i++)
        if (c->edge[i].to == c->edge[k].to && c->edge[i].to_port)
            tiles = mlo_max(
                tiles, mlo_edge_from(&c->edge[i], w->tiles) - mlo_edge_from(&c->edge[k], w->tiles));
    return mlo_min(mlo_core_group(c, c->chunk), c->chunk + tiles);
}

/* The tokens that edge k's FIFO must hold, whatever stalls; fewer, and a core can come to a stop.
 * What meets it has had to take a token before it gave one, a tile (at most to the group's end) if
 * row blocks are on its way, what a window reaches likewise, and a frame more if it is behind attention
 * where this edge is not. (Three beats are in the fork and in front of the sum.) Attention takes a
 * frame's keys and values before it goes on from its second row of queries. Whether a network of
 * FIFOs whose elements do not look at the time comes to a stop does not depend on the time, so that
 * no stall does harm to depths that are enough without one. */
static int64_t mlo_core_least(const mlo_core *c, const mlo_waits *w, int k) {
    const mlo_edge *e = &c->edge[k];
    const mlo_unit *u = &c->element[e->to].unit;
    int64_t least = 1;
    if (u->whole_frame)
        return e->to_port ? 1 : mlo_max(1, mlo_core_keys(c, w, k) - 2 / u->rows.heads);
    for (int i = 0; i < c->n_edge; i++)
        if (c->edge[i].to == e->to && c->edge[i].from != MLO_OUTSIDE) {
            const int other = c->edge[i].from;
            const int frame = w->frames[other] > mlo_edge_from(e, w->frames);
            const int64_t first = frame ? c->chunk : 0;
            const int64_t tiles = mlo_max(0, w->tiles[other] - mlo_edge_from(e, w->tiles));
            least = mlo_max(least,
                mlo_min(mlo_core_group(c, c->chunk), first + tiles)
                    - 3 / (e->channels / e->lanes_from));
        }
    return least;
}

/* FIFOs as deep as paths hold made shallower: to hold so many beats each, whole tokens, not less
 * than could deadlock. */
static void mlo_core_shallow(mlo_core *c, const int64_t *beats) {
    mlo_waits waits;
    mlo_core_waits(c, &waits);
    for (int k = 0; k < c->n_edge; k++) {
        mlo_edge *e = &c->edge[k];
        if (e->fifo)
            e->fifo = mlo_max(mlo_core_least(c, &waits, k),
                mlo_min(e->fifo, mlo_parts(beats[k], e->channels / e->lanes_from)));
    }
}

/* Depths that the model has cannot deadlock: `fold` makes none that can, but they can be edited. */
static int mlo_core_live(mlo *m, const mlo_core *c) {
    mlo_core *full = MLO_NEW(m, mlo_core);
    if (!full) return mlo_failed(m);
    *full = *c;
    mlo_core_fifos(full);
    mlo_waits waits;
    mlo_core_waits(c, &waits);
    for (int k = 0; k < c->n_edge; k++)
        if (full->edge[k].fifo && c->edge[k].fifo < mlo_core_least(c, &waits, k))
            return mlo_fail(m, MLO_E_FOLDING, c->element[c->edge[k].to].node,
                "a FIFO of %lld tokens at input %d is too shallow: less than %lld can deadlock; "
                "leave mlo.fifo.%d to fold",
                (long long)c->edge[k].fifo, c->edge[k].to_port,
                (long long)mlo_core_least(c, &waits, k), c->edge[k].to_port);
    return 0;
}

/* How many sequences' keys and values stay: as fold said, or one where the model has a context. */
static void mlo_core_slots(mlo *m, mlo_core *c) {
    const int kept = mlo_context_said(m) > 0;
    c->slots = mlo_meta_within(m, c->scan.node, mlo_key_slots, kept, kept, 255);
    if (c->slots)
        c->slots = mlo_opt_int(m, "slots", (long)c->slots, 1, 255);
    else if (mlo_opt(m, "slots"))
        mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--slots are sequences whose keys and values stay; give --context, too");
}

/* What comes into each iteration of earlier tokens' keys and values; NULL: nothing does. */
static const mlo_node *mlo_core_joins(const mlo_scan *s) {
    for (size_t i = 0; i < s->body->n_node; i++) {
        const mlo_node *n = s->body->node[i];
        const mlo_value *v = mlo_is(n, "Concat") ? mlo_value_of(s->body, n->input[0]) : NULL;
        if (v && v->graph == s->body && v->is_input && !mlo_is_parameter(s, s->body, v->name, 0))
            return n;
    }
    return NULL;
}

/* The attention whose keys or values come in or leave. */
static const mlo_node *mlo_core_keeper(const mlo_core *c, const mlo_node *join) {
    for (size_t i = 0; i < c->scan.body->n_node; i++) {
        const mlo_node *n = c->scan.body->node[i];
        for (size_t k = 1; k < 3 && mlo_is_kernel(n, MLO_KERNEL_ATTENTION); k++)
            if (mlo_scan_outside(&c->scan, n->input[k], 1)
                || (join && n->input[k] == join->output[0]))
                return n;
    }
    return NULL;
}

/* How often each token leaves. */
static int64_t mlo_core_times(const mlo_core *c) { return c->every ? c->scan.iterations : 1; }

/* Does the carried value of every iteration leave? */
static int mlo_core_every(const mlo_scan *s) {
    const mlo_node *n = s->n_tap == 1 ? mlo_maker_in(s->body, s->body->output[1]->name) : NULL;
    return n && mlo_is(n, "Identity") && mlo_has_input(n, 0)
        && n->input[0] == s->body->output[0]->name;
}

/* Where they are the model's own inputs and outputs: what leaves each iteration is what one attention reads. */
static int mlo_core_given(mlo *m, mlo_core *c) {
    const mlo_node *join = mlo_core_joins(&c->scan);
    c->every = mlo_core_every(&c->scan);
    c->given = (c->scan.n_tap > 0 && !c->every) || join;
    if (!c->given) return 0;
    const mlo_node *n = mlo_core_keeper(c, join);
    for (size_t k = 0; n && k < 2; k++) {
        const mlo_value *v = mlo_value_of(c->scan.body, n->input[1 + k]);
        if (mlo_core_streamed(c, v->name) != v->name)
            c->kept[k] = mlo_scan_outside(&c->scan, v->producer->input[0], 0);
        c->kept[2 + k] = mlo_scan_outside(&c->scan, v->name, 1);
    }
    if (c->scan.n_tap != 2 || !c->kept[2] || !c->kept[3] || !c->kept[0] != !c->kept[1])
        return mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node,
            "%zu values leave every layer%s; hardware returns what the last layer makes, and both "
            "keys and values of one attention: make those outputs of the model, and no others",
            c->scan.n_tap, join ? ", which a past comes into" : "");
    if (mlo_context_said(m) || mlo_opt(m, "slots") || mlo_eq(mlo_opt(m, "kv"), "chip"))
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "keys and values are the model's own inputs and outputs, which lie in memory: leave "
            "--context, --slots and --kv out");
    c->slots = c->dram = 1;
    const mlo_form f = mlo_form_of(mlo_value_of(c->scan.body, n->input[1]));
    c->keys = mlo_tokens_of(&f);
    return c->keys >= c->chunk && c->keys < 1 << 16
        ? 0
        : mlo_fail(m, MLO_E_UNSUPPORTED, n, "%lld keys of %lld tokens; hardware has 65535 at most",
              (long long)c->keys, (long long)c->chunk);
}

/* Where they stay. */
static void mlo_core_kv(mlo *m, mlo_core *c) {
    const char *where = mlo_opt(m, "kv");
    if (c->given) return;
    c->dram = (int)mlo_meta_within(m, c->scan.node, mlo_key_kv_dram, 0, 0, 1);
    if (!where) return;
    c->dram = mlo_eq(where, "dram");
    if (!c->dram && !mlo_eq(where, "chip"))
        mlo_fail_at(
            m, MLO_E_USAGE, NULL, "--kv %s: keys and values stay on chip or in dram", where);
    else if (!c->slots)
        mlo_fail_at(
            m, MLO_E_USAGE, NULL, "--kv is where keys and values stay; give --context, too");
}

/* What mlo_kv does not do: mask bits are not kept with keys, and there is one of it. */
static int mlo_core_kv_sound(mlo *m, const mlo_core *c) {
    int n = 0;
    if (!c->dram) return 0;
    for (int i = 0; i < c->n_element; i++) n += c->element[i].unit.told == MLO_JOB_BANK;
    if (n != 1)
        return mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node,
            c->given ? "keys and values are the model's own inputs and outputs, of %d attentions "
                       "in a layer; hardware has one of these in memory"
                     : "--kv dram: a layer with %d attentions; it takes one: leave --kv out",
            n);
    if (c->masked)
        return mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node,
            "--kv dram: a mask that comes at run time, whose bits are not kept in memory; leave "
            "--kv out");
    return 0;
}

/* What comes in another frame must not depend on what comes later, and nothing but keys and values stays. */
static int mlo_core_soundness(mlo *m, const mlo_core *c) {
    for (int i = 0; c->slots && i < c->n_element; i++) {
        const mlo_unit *u = &c->element[i].unit;
        if (c->given && (u->told != MLO_JOB_BANK || u->rows.causal || u->rows.all)) continue;
        if (c->element[i].kernel
            && (u->window.room || u->flow == MLO_FLOW_REPLAY
                || (u->whole_frame && !u->rows.causal)))
            return mlo_fail(m, MLO_E_UNSUPPORTED, c->element[i].node,
                "%s looks at tokens that come later, or from elsewhere, so that a sequence cannot "
                "come in parts; leave --context out",
                c->element[i].name);
    }
    return 0;
}

/* The loop alone. */
static int mlo_core_loop(mlo *m, mlo_core *c) {
    memset(c, 0, sizeof *c);
    c->replay = -1;
    if (mlo_scan_choose(m, &c->scan)) return mlo_failed(m);
    if (c->scan.n_state != 1)
        return mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node,
            "a loop of %zu carried values has no hardware; it has one", c->scan.n_state);
    mlo_form f = mlo_form_of(mlo_value_of(c->scan.body, c->scan.body->input[0]->name));
    if (!mlo_form_known(&f) || f.rank < 2)
        return mlo_fail(m, MLO_E_SHAPE, c->scan.node,
            "the carried value has no known shape [.., tokens, channels]");
    if (f.rank > 2 && f.dims[0] != 1
        && mlo_form_count(&f) != f.dims[f.rank - 1] * f.dims[f.rank - 2])
        return mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node,
            "a batch of %lld; export with batch 1: frames stream one after the other",
            (long long)f.dims[0]);
    c->channels = f.dims[f.rank - 1];
    c->chunk = mlo_form_count(&f) / c->channels;
    c->keys = c->chunk;
    c->bits = mlo_value_bits(c->scan.body, c->scan.body->output[0]->name);
    c->frames = (int)mlo_meta_within(m, c->scan.node, mlo_key_frames, 1, 1, 255);
    c->axi_bits = (int)mlo_meta_within(m, c->scan.node, mlo_key_axi_width, 128, 32, 1024);
    if (c->axi_bits & (c->axi_bits - 1))
        return mlo_fail(m, MLO_E_DATA, c->scan.node,
            "metadata say mlo.axi_width = %d, which is no power of two", c->axi_bits);
    mlo_core_slots(m, c);
    if (mlo_core_given(m, c)) return mlo_failed(m);
    mlo_core_kv(m, c);
    if (m->error.code || mlo_core_elements(m, c) || mlo_core_edges(m, c) || mlo_core_closed(m, c))
        return mlo_failed(m);
    mlo_core_lanes(c);
    mlo_value *mask = mlo_value_of(c->scan.outer, mlo_intern(m, "mlo_mask"));
    c->masked = mask && !mask->tensor;
    mask = mlo_value_of(c->scan.outer, mlo_intern(m, mlo_memory_mask));
    c->replay_masked = mask && !mask->tensor;
    if (mlo_core_alone(c) && c->frames > 1)
        return mlo_fail(
            m, MLO_E_UNSUPPORTED, c->scan.node, mlo_one_frame, c->frames, mlo_core_alone(c));
    if (mlo_core_soundness(m, c) || mlo_core_kv_sound(m, c)) return mlo_failed(m);
    mlo_core_feedback(c);
    if (!mlo_meta_get(c->scan.node->meta, c->scan.node->n_meta, mlo_key_frames))
        mlo_core_fifos(c);
    else if (mlo_core_live(m, c))
        return mlo_failed(m);
    return mlo_core_memory(m, c);
}

/* ---- parameters ----------------------------------------------------------- */

/* A memory's word in the image: padded to a power of two within a beat, to whole beats beyond. Bits. */
static int64_t mlo_word_bits(const mlo_memory *k, int axi) {
    int64_t bits = 8;
    while (bits < k->width && bits < axi) bits *= 2;
    return k->width <= axi ? bits : (k->width + axi - 1) / axi * axi;
}
static int64_t mlo_memory_beats(const mlo_memory *k, int axi) {
    return (k->depth * mlo_word_bits(k, axi) + axi - 1) / axi;
}

/* Beats of a unit's parameters, per iteration: all its blocks. */
static int64_t mlo_unit_beats(const mlo_unit *u, int axi) {
    int64_t beats = 0;
    for (int k = 0; k < u->n_memory; k++) beats += mlo_memory_beats(&u->memory[k], axi);
    return u->blocks ? u->blocks * beats : beats;
}

/* Where a kernel's parameters really are: those of row blocks that there are, of memories that
 * there are. */
static int mlo_is_resident(const mlo_element *e) {
    return e->memory == MLO_RESIDENT && e->unit.n_memory;
}
static int mlo_is_block(const mlo_element *e) { return e->unit.blocks > 0; }
/* Is memory k read once? */
static int mlo_is_kept(const mlo_element *e, int k) {
    return mlo_is_resident(e) || e->unit.memory[k].kept;
}
static int mlo_has_rows(const mlo_element *e) {
    return e->unit.flow == MLO_FLOW_MATRIX || e->unit.flow == MLO_FLOW_TILES;
}
static const char *mlo_memory_name(const mlo_element *e) {
    return mlo_is_resident(e) ? "resident" : mlo_is_block(e) ? "block" : "layer";
}
/* Why a matrix cannot be in row blocks, and what would help; NULL: it can. */
static const char *mlo_memory_whole(const mlo_element *e) {
    return e->side && mlo_has_rows(e)
        ? "its tokens are the encoder's, which pass beside the loop and not in tiles, so a layer's "
          "whole matrix is on chip twice; --weights 4 halves it"
        : NULL;
}
static int mlo_memory_of(const mlo_element *e) {
    return mlo_is_resident(e) ? MLO_RESIDENT : mlo_is_block(e) ? MLO_BLOCK : MLO_LAYER;
}

/* Those of them that are kept, whatever the others are. */
static int64_t mlo_unit_kept(const mlo_unit *u, int axi) {
    int64_t beats = 0;
    for (int k = 0; k < u->n_memory; k++)
        if (u->memory[k].kept) beats += mlo_memory_beats(&u->memory[k], axi);
    return beats;
}

/* Beats of an iteration's parameters, of memories in these modes. */
static int64_t mlo_core_beats_in(const mlo_core *c, int memories) {
    int64_t beats = 0;
    for (int i = 0; i < c->n_element; i++) {
        const mlo_unit *u = &c->element[i].unit;
        const int64_t kept = mlo_unit_kept(u, c->axi_bits);
        if (MLO_RESIDENT & memories) beats += kept;
        if (mlo_memory_of(&c->element[i]) & memories)
            beats += mlo_unit_beats(u, c->axi_bits) - kept;
    }
    return beats;
}
static int64_t mlo_core_beats(const mlo_core *c) {
    return mlo_core_beats_in(c, MLO_EITHER | MLO_BLOCK);
}
/* read once */
static int64_t mlo_core_resident_beats(const mlo_core *c) {
    return mlo_core_beats_in(c, MLO_RESIDENT);
}
/* stays on chip then: all iterations', or the one that they have alike */
static int64_t mlo_core_stays(const mlo_core *c) {
    int64_t beats = mlo_core_resident_beats(c) * c->scan.iterations;
    for (int i = 0; i < c->n_element; i++)
        beats -= mlo_unit_kept(&c->element[i].unit, c->axi_bits) * (c->scan.iterations - 1);
    return beats;
}
/* read for every tile */
static int64_t mlo_core_block_beats(const mlo_core *c) { return mlo_core_beats_in(c, MLO_BLOCK); }

/* How often a unit's parameters are read for so many tokens, one behind the other in an iteration; for a group of
 * frames (of a single iteration, for a frame). All beats of row blocks that such a one reads in an iteration. */
static int64_t mlo_unit_tiles(const mlo_unit *u, int64_t tokens) {
    return u->blocks ? mlo_parts(tokens, u->tile) : 0;
}
static int64_t mlo_core_tiles(const mlo_core *c, const mlo_unit *u, int64_t chunk) {
    return mlo_unit_tiles(u, mlo_core_group(c, chunk));
}
static int64_t mlo_core_tile_beats(const mlo_core *c) {
    int64_t beats = 0;
    for (int i = 0; i < c->n_element; i++)
        beats += mlo_core_tiles(c, &c->element[i].unit, c->element[i].site.chunk)
            * mlo_unit_beats(&c->element[i].unit, c->axi_bits);
    return beats;
}
/* What an iteration of a full group of frames reads. */
static int64_t mlo_core_layer_beats(const mlo_core *c) {
    return mlo_core_beats_in(c, MLO_LAYER)
        + (c->scan.iterations > 1 ? 1 : c->frames) * mlo_core_tile_beats(c);
}

/* The most iterations there can be without building anew. */
static int64_t mlo_core_deepest(const mlo_core *c) {
    return mlo_core_resident_beats(c) || c->slots ? c->scan.iterations : 65535;
}

/* Beats per frame once things flow: frames in flight share an iteration's. A single iteration's
 * parameters stay where they are, but for row blocks. */
static double mlo_core_frame_beats(const mlo_core *c) {
    return c->scan.iterations > 1
        ? (double)mlo_core_layer_beats(c) * (double)c->scan.iterations / c->frames
        : (double)mlo_core_tile_beats(c);
}

/* Cycles for which a group of frames that is not full waits for the next one (mlo_loop): where tiles of row blocks end
 * with a group, it cannot wait for results. Two tokens' time at the door, which keeps one until it is complete; and
 * where reading all weights takes much longer, a small part of that: sequences whose prompts left one behind the
 * other are in one group then, where each group by itself would read them all. 0: no tile does. */
static int64_t mlo_core_patience(const mlo_core *c) {
    enum { PART = 256 };
    return c->scan.iterations > 1 && c->frames > 1 && mlo_core_block_beats(c)
        ? mlo_max(2 * (c->channels / c->lanes) + 16,
              mlo_core_layer_beats(c) * c->scan.iterations / PART)
        : 0;
}

/* Cycles that memory takes for so many beats; beats that it gives in so many cycles. */
static int64_t mlo_load_cycles(const mlo_core *c, int64_t beats) {
    return (beats * 256 + c->rate - 1) / c->rate;
}
static int64_t mlo_load_beats(const mlo_core *c, int64_t cycles) {
    return cycles / 256 * c->rate + cycles % 256 * c->rate / 256;
}

/* Bits of a bank of a memory, as mlo_param lays it out: a row is the words of one beat, or one word. */
static int64_t mlo_memory_bits(const mlo_memory *k, int axi) {
    int64_t words = axi / mlo_word_bits(k, axi);
    int64_t rows = words > 1 ? (k->depth + words - 1) / words : k->depth;
    int64_t kept = words > 1 ? k->depth < words ? k->depth : words : 1;
    return rows * kept * k->width;
}

/* Banks of a kernel's parameter memories in a mode. */
static int64_t mlo_banks(const mlo_core *c, int memory) {
    return memory == MLO_RESIDENT ? c->scan.iterations : 2;
}

/* Cycles of an iteration per frame, once things flow: of the busiest kernel, which takes `pace` a
 * token, or of `beats` of parameters, which frames share. */
static int64_t mlo_steady_cycles(const mlo_core *c, int64_t pace, int64_t beats) {
    int64_t work = pace * c->chunk, load = (mlo_load_cycles(c, beats) + c->frames - 1) / c->frames;
    return load > work ? load : work;
}

/* What a unit holds on chip: banks of parameters, two tiles before and behind row blocks, what windows see, and two
 * frames, or all caches, of what it needs whole (keys and values, in groups of PE tokens). A token or two inside
 * every kernel are not counted. */
static int64_t mlo_unit_bits(const mlo_site *s, const mlo_unit *u, int axi, int64_t banks) {
    int64_t bits = 0;
    for (int k = 0; k < u->n_memory; k++)
        bits += (u->memory[k].kept ? 1 : banks) * mlo_memory_bits(&u->memory[k], axi);
    if (u->blocks)
        bits += 2 * u->tile * (u->in[0].channels * u->in[0].bits + u->out.channels * u->out.bits);
    bits += u->window.slots * u->in[0].channels * u->in[0].bits;
    for (int k = 1; k < u->n_in && u->whole_frame; k++)
        bits += (s->caches ? s->caches : 2) * ((s->keys + u->pe - 1) / u->pe * u->pe)
            * u->in[k].channels * u->in[k].bits;
    return bits;
}

/* What FIFOs hold, feedback included, without sideband bits. */
static int64_t mlo_core_fifo_bits(const mlo_core *c) {
    int64_t bits = c->feedback * c->channels * c->bits;
    for (int k = 0; k < c->n_edge; k++)
        bits += c->edge[k].fifo * c->edge[k].channels * c->edge[k].bits;
    return bits;
}

static int64_t mlo_core_bits(const mlo_core *c) {
    int64_t bits = mlo_core_fifo_bits(c);
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel)
            bits += mlo_unit_bits(&c->element[i].site, &c->element[i].unit, c->axi_bits,
                mlo_banks(c, c->element[i].memory));
    return bits;
}

/* Useful multiply-accumulates of an element, a frame in an iteration. */
static int64_t mlo_frame_macs(const mlo_element *e) { return e->unit.macs * e->site.chunk; }

/* Cycles that a unit takes for each of the loop's own tokens, whoever's tokens it handles. */
static int64_t mlo_site_interval(const mlo_core *c, const mlo_site *s, const mlo_unit *u) {
    return s->chunk == c->chunk ? u->interval : mlo_parts(u->interval * s->chunk, c->chunk);
}

/* Cycles per token of the busiest element. */
static int64_t mlo_core_interval(const mlo_core *c) {
    int64_t most = 1;
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel)
            most = mlo_max(most, mlo_site_interval(c, &c->element[i].site, &c->element[i].unit));
    return most;
}
static int64_t mlo_core_multipliers(const mlo_core *c) {
    int64_t n = 0;
    for (int i = 0; i < c->n_element; i++) n += c->element[i].unit.multipliers;
    return n;
}
