/* predict: how many cycles a core takes, and why its kernels wait.
 *
 * in:  a core (mlo_core), folded; frames.     out: mlo_prediction: cycles of the run, when each
 *      frame is done, per kernel how long it works and what it waits for; the most that FIFOs
 * hold, or every token as it goes, where that is asked for. How. All elements fire as long as one
 * can; then requests to memory are heard, in the order of time, until something can fire again.
 * invariant: the same bytes for the same core and frames.
 * example: examples/bert-tiny.onnx for --target-cycles 40000: to the cycle what Icarus counts
 *     (README.md).
 * cost: that of the schedule: milliseconds for a BERT-base.
 */

/* In the order of mlo_flow. */
static const mlo_flow_verbs *const mlo_flows[] = { &mlo_flow_beats, &mlo_flow_matrix,
    &mlo_flow_tiles, &mlo_flow_norm, &mlo_flow_rows, &mlo_flow_window, &mlo_flow_replay };

/* A reader is heard: port 0 is the loader, port i + 1 element i. 1: what it waited for is through. */
static int mlo_port_hears(mlo_schedule *s, int port, int *any) {
    const int i = port - 1;
    if (port && !s->tiling[i].tiles) return 0;
    const mlo_tiling *t = port ? &s->tiling[i] : NULL;
    const int64_t waits = t ? t->reader.waits : s->loader.waits;
    const int64_t before = t ? t->begun + t->opened : s->loaded;
    if (waits > s->bus->now) {
        s->bus->next = mlo_min(s->bus->next, waits);
        return 0;
    }
    if (t)
        while (mlo_tile_goes_on(s, i)) *any = 1;
    else
        *any |= mlo_loader_goes_on(s);
    return (t ? t->begun + t->opened : s->loaded) > before;
}

/* The reader of a core's port; that of the rows is the last one of what is around. NULL: the port has none. */
static const mlo_fetch *mlo_port_reader(mlo_schedule *s, int port) {
    if (port > s->c->n_element) return &mlo_rows_door(s)->table;
    if (!port) return &s->loader;
    return s->tiling[port - 1].tiles ? &s->tiling[port - 1].reader : NULL;
}

/* The port that is heard first: who is behind its latest (mlo_axi_share); where a second share is behind this one, who
 * was that when the register between both was free, whoever came since. */
static int mlo_ports_first(mlo_schedule *s, int ports) {
    int first = (s->turn + 1) % ports;
    int64_t least = INT64_MAX;
    for (int k = 1; s->shared > 1 && k <= ports; k++) {
        const int port = (s->turn + k) % ports;
        const mlo_fetch *r = mlo_port_reader(s, port);
        if (!r || !r->waits || mlo_max(r->due, s->picks) >= least) continue;
        least = mlo_max(r->due, s->picks);
        first = port;
    }
    return first;
}

/* A core's readers are. */
static int mlo_ports_hear(mlo_schedule *s, int *any) {
    const int ports = s->c->n_element + 1 + (s->loop && s == mlo_beside(s->loop));
    const int first = mlo_ports_first(s, ports);
    int through = 0;
    for (int k = 0, port = first; k < ports; k++, port = port + 1 < ports ? port + 1 : 0)
        through |= port > s->c->n_element ? mlo_rows_hear(mlo_rows_door(s), any)
                                          : mlo_port_hears(s, port, any);
    return through;
}

/* Nothing can fire: requests are heard, one after the other, until a tile is through or its half free, a memory
 * is there, or a row. Of a loop and what is around it, whoever is behind the latest comes first. 0: there are none. */
static int mlo_schedule_hears(mlo_schedule *s) {
    mlo_bus *bus = s->bus;
    mlo_schedule *const side[] = { s, mlo_beside(s), mlo_tail_of(s) };
    const int sides = side[2] ? 3 : side[1] ? 2 : 1;
    int any = 0, through = 0;
    while (!through && bus->next < INT64_MAX) {
        bus->now = bus->next;
        bus->next = INT64_MAX;
        const int first = (bus->side + 1) % sides;
        for (int k = 0; k < sides; k++) through |= mlo_ports_hear(side[(first + k) % sides], &any);
    }
    return any;
}

/* All that can go on in a core does. 0: nothing can. */
static int mlo_schedule_goes_on(mlo_schedule *s) {
    const mlo_core *c = s->c;
    int any = mlo_loader_goes_on(s);
    while (mlo_fire_entry(s)) {
        any = 1;
        s->free = 0;
        s->bus->news++;
    }
    for (int i = 0; i < c->n_element; i++) any |= mlo_fire(s, i);
    for (int k = 0; s->p->peak && k <= c->n_edge; k++)
        if (k == c->n_edge || c->edge[k].fifo) mlo_fifo_follow(s, k);
    return any;
}

/* Until all tokens are through. If nothing can fire, FIFOs are too shallow for what this model
 * knows of them: then one token goes as if they were deep. */
static void mlo_schedule_run(mlo_schedule *s) {
    const mlo_schedule *last = s->head ? s->head : s;
    const int end = last->c->edge[last->c->n_edge - 1].from;
    for (int stuck = 0; last->fired[end] < last->total && stuck < 2;) {
        s->bus->next = INT64_MAX;
        mlo_schedule *around = mlo_beside(s);
        int any = around ? mlo_rows_go_on(mlo_rows_door(s)) : 0;
        if (s->front) any |= mlo_schedule_goes_on(s->front);
        any |= mlo_schedule_goes_on(s);
        if (around && !any) any = mlo_rows_go_on(mlo_rows_door(s));
        if (s->head) any |= mlo_schedule_goes_on(s->head);
        stuck = any || mlo_schedule_hears(s) ? 0 : stuck + 1;
        s->bus->news += stuck;
        s->free = stuck;
        if (around) around->free = stuck;
        if (s->head) s->head->free = stuck;
    }
}

/* Beats of a matrix leave a vector's cycles apart; those of a pipeline as far apart as they come,
 * of streams whose beats do not wait in a FIFO in front of it. */
static int64_t mlo_schedule_gap(const mlo_schedule *s, int i) {
    const mlo_core *c = s->c;
    const mlo_unit *u = &c->element[i].unit;
    int64_t gap = u->flow == MLO_FLOW_MATRIX ? mlo_matrix_cycles(u) : 1;
    for (int k = s->begin[0][i]; k < s->begin[0][i + 1] && u->flow == MLO_FLOW_BEATS; k++) {
        const int edge = s->order[0][k], from = c->edge[edge].from;
        const mlo_link *w = &s->way[edge];
        if (from != MLO_OUTSIDE && from < i && !w->fifo)
            gap = mlo_max(gap, s->gap[from] * w->up / w->down);
    }
    return gap;
}

static void mlo_schedule_edges(mlo_schedule *s) {
    const mlo_core *c = s->c;
    for (int i = 0; i < c->n_element; i++) s->span[i] = mlo_beats_out(&c->element[i]) - 1;
    for (int k = 0; k < c->n_edge; k++) {
        const int from = c->edge[k].from;
        s->way[k] = mlo_link_of(c, &c->edge[k]);
        if (from != MLO_OUTSIDE) s->span[from] = mlo_max(s->span[from], s->way[k].span);
    }
    for (int side = 0, n = 0; side < 2; side++, n = 0)
        for (int i = 0; i <= c->n_element; i++) {
            s->begin[side][i] = n;
            for (int k = 0; k < c->n_edge; k++)
                if ((side ? c->edge[k].from : c->edge[k].to)
                    == (i < c->n_element ? i : MLO_OUTSIDE))
                    s->order[side][n++] = k;
            s->begin[side][i + 1] = n;
        }
    for (int i = 0; i < c->n_element; i++) s->gap[i] = mlo_schedule_gap(s, i);
    for (int i = c->n_element - 1; i >= 0; i--)
        if (c->element[i].unit.flow == MLO_FLOW_BEATS) {
            s->chain[i] = 1;
            for (int k = s->begin[1][i]; k < s->begin[1][i + 1]; k++) {
                const int to = c->edge[s->order[1][k]].to;
                if (to != MLO_OUTSIDE && to > i)
                    s->chain[i] = (int)mlo_max(s->chain[i], s->chain[to] + 1);
            }
        }
}

static void mlo_schedule_tiles(mlo_schedule *s, int i, int64_t *tiles) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t beats = mlo_unit_beats(u, s->c->axi_bits);
    mlo_tiling *t = &s->tiling[i];
    t->beats = beats / u->blocks;
    t->reader.unit = mlo_burst_unit(s->c, beats);
    t->reader.port = i + 1;
    t->reader.depth = MLO_LOADER_BEATS;
    t->tiles = tiles;
    mlo_jobs_tiles(s, i, 0);
}

static void mlo_schedule_begin(mlo_schedule *s) {
    const mlo_core *c = s->c;
    mlo_schedule_edges(s);
    for (int i = 0; i < c->n_element; i++) {
        s->first_memory[i] = s->n_memory;
        if (mlo_is_block(&c->element[i])) mlo_schedule_tiles(s, i, s->tiles + i * (s->frames + 1));
        for (int k = 0; k < c->element[i].unit.n_memory && !mlo_is_block(&c->element[i]); k++) {
            s->resident[s->n_memory] = (char)(c->element[i].unit.memory[k].kept
                    ? MLO_ONE_FOR_ALL
                    : mlo_is_resident(&c->element[i]));
            s->beats[s->n_memory++] = mlo_memory_beats(&c->element[i].unit.memory[k], c->axi_bits);
        }
    }
    s->first_memory[c->n_element] = s->n_memory;
    s->shared = s->loop ? 2 : (mlo_core_block_beats(c) > 0) + (mlo_beside(s) != NULL);
    s->loader.depth = MLO_LOADER_BEATS;
    s->loader.asks = MLO_READ_BEGINS + s->shared;
    if ((s->loop ? s->loop : s)->front) s->loader.asks -= MLO_READ_BEFORE;
    s->loader.unit = mlo_burst_unit(c, s->shared ? 0 : mlo_core_beats_in(c, MLO_EITHER));
}

static void mlo_bus_begin(const mlo_schedule *s, mlo_bus *bus) {
    bus->served = -MLO_MEMORY_GATHERS * (int64_t)s->c->rate;
    bus->now = s->shared ? 0 : INT64_MAX;
    bus->next = INT64_MAX;
}

static void mlo_schedule_end(mlo_schedule *s) {
    const mlo_core *c = s->c;
    mlo_prediction *p = s->p;
    const int64_t g = c->frames, frames = s->job[s->n_job - 1].frame + s->job[s->n_job - 1].frames;
    for (int64_t f = 0; s->head && f < frames; f++) p->frame_done[f] = mlo_left_core(s, f);
    p->cycles = p->frame_done[frames - 1];
    p->interval = frames >= 2 * g && frames % g == 0
        ? (p->frame_done[frames - 1] - p->frame_done[g - 1]) / (frames - g)
        : p->cycles / frames;
    for (int i = 0; i < c->n_element; i++) {
        mlo_spent *to = &p->spent[i];
        mlo_settle(s, i, 0);
        to->input = mlo_max(0, p->cycles - to->busy - to->blocked - to->parameters);
    }
}

/* Tokens of the ring: of all that is looked back at. */
static int64_t mlo_ring_length(const mlo_core *c) {
    int64_t length = 64;
    while (length < 4 * (c->frames + 2) * c->chunk) length *= 2;
    for (int i = 0; i < c->n_element; i++)
        while (length < mlo_max(4 * c->element[i].unit.window.slots, 12 * c->element[i].site.chunk))
            length *= 2;
    return length;
}

static void mlo_schedule_free(mlo *m, mlo_schedule *s) {
    if (!s) return;
    mlo_scratch_free(m, s->tiles);
    mlo_scratch_free(m, s->job);
    mlo_scratch_free(m, s->ring);
    mlo_scratch_free(m, s->ready);
    mlo_scratch_free(m, s);
}

/* A schedule of so many frames, of which nothing is known; NULL: it failed. */
static mlo_schedule *mlo_schedule_new(
    mlo *m, const mlo_core *c, int64_t frames, int peaks, mlo_prediction *p, mlo_bus *bus) {
    const int64_t length = mlo_ring_length(c);
    const size_t memories = MLO_CORE_MEMORIES;
    mlo_schedule *s = (mlo_schedule *)mlo_scratch(m, 1, sizeof *s);
    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    s->c = c;
    s->flows = mlo_flows;
    s->mask = length - 1;
    s->p = p;
    s->bus = bus;
    s->frames = frames;
    s->ring = (mlo_token *)mlo_scratch(
        m, (size_t)(c->n_element + 1) * (size_t)length, sizeof *s->ring);
    /* resident memories alone: no bank holds the loader up */
    s->kept = mlo_core_beats_in(c, MLO_LAYER) ? 4 : mlo_max(4, c->scan.iterations);
    s->ready = (int64_t *)mlo_scratch(m, memories * (size_t)(s->kept + 5), sizeof *s->ready);
    s->job = (mlo_job *)mlo_scratch(m, (size_t)frames, sizeof *s->job);
    s->tiles = (int64_t *)mlo_scratch(
        m, (size_t)(c->n_element + 1) * (size_t)(frames + 1), sizeof *s->tiles);
    p->frame_done = MLO_NEW_N(m, int64_t, (size_t)frames);
    p->frame_begun = MLO_NEW_N(m, int64_t, (size_t)frames);
    p->spent = MLO_NEW_N(m, mlo_spent, MLO_CORE_MOST);
    p->peak = peaks ? MLO_NEW_N(m, int64_t, 2 * MLO_CORE_MOST + 1) : NULL;
    if (m->error.code) {
        mlo_schedule_free(m, s);
        return NULL;
    }
    memset(s->ready, 0, memories * (size_t)(s->kept + 5) * sizeof *s->ready);
    s->freed = (int64_t(*)[4])(s->ready + memories * (size_t)s->kept);
    s->begun = (int64_t *)(s->freed + memories);
    mlo_schedule_jobs(s, 0, 0);
    return s;
}

/* Cycles of a run of `frames` frames of the longest length, or of jobs. */
static int mlo_predict_all(mlo *m, const mlo_core *c, int64_t frames, mlo_prediction *p,
    int64_t follows, mlo_moment_seen seen, void *user) {
    mlo_bus bus = { 0 };
    mlo_prediction said, made;
    const int whole = c->around && !mlo_around_unfit(m, c);
    MLO_TRY(mlo_around_follow(m, c));
    mlo_schedule *s = mlo_schedule_new(m, c, frames, follows > 0, p, &bus);
    mlo_schedule *h = s && whole ? mlo_schedule_new(m, c->around, frames, 0, &said, &bus) : NULL;
    mlo_schedule *t = h && c->tail ? mlo_schedule_new(m, c->tail, frames, 0, &made, &bus) : NULL;
    if (s && (h || !whole) && (t || !h || !c->tail)) {
        s->follows = follows;
        s->seen = seen;
        s->user = user;
        mlo_schedule_join(s, h, t);
        mlo_schedule_begin(s);
        if (h) mlo_schedule_begin(h);
        if (t) mlo_schedule_begin(t);
        mlo_bus_begin(s, &bus);
        mlo_schedule_run(s);
        mlo_schedule_end(s);
    }
    mlo_schedule_free(m, t);
    mlo_schedule_free(m, h);
    mlo_schedule_free(m, s);
    return mlo_failed(m);
}
static int mlo_predict(mlo *m, const mlo_core *c, int64_t frames, mlo_prediction *p) {
    return mlo_predict_all(m, c, frames, p, 0, NULL, NULL);
}
static int mlo_predict_seen(mlo *m, const mlo_core *c, int64_t frames, mlo_prediction *p,
    mlo_moment_seen seen, void *user) {
    return mlo_predict_all(m, c, frames, p, 0, seen, user);
}

/* When the last token of a frame is through the first iterations. */
enum { MLO_ITERATIONS_FEW = 4 };
typedef struct {
    int last; /* element of the body */
    int64_t frame;
    int64_t through[MLO_ITERATIONS_FEW];
} mlo_rhythm;

static void mlo_rhythm_seen(void *user, const mlo_moment *what) {
    mlo_rhythm *r = (mlo_rhythm *)user;
    if (what->element == r->last && what->frame == r->frame && what->iteration < MLO_ITERATIONS_FEW)
        r->through[what->iteration] = what->end;
}

/* A run of jobs, as ordered, one behind the other, through so many iterations of the body. r: those of the last job;
 * NULL: nobody asks. */
static int mlo_predict_orders(mlo *m, const mlo_core *c, int64_t iterations,
    const mlo_ordered *order, int64_t n, mlo_prediction *p, mlo_rhythm *r) {
    mlo_core *with = (mlo_core *)mlo_scratch(m, 1, sizeof *with);
    if (!with) return mlo_failed(m);
    *with = *c;
    with->order = order;
    with->n_order = n;
    with->scan.iterations = iterations;
    if (r) r->last = c->edge[c->n_edge - 1].from;
    if (r) r->frame = n - 1;
    const int failed = mlo_predict_seen(m, with, n, p, r ? mlo_rhythm_seen : NULL, r);
    mlo_scratch_free(m, with);
    return failed;
}

/* A step of so many iterations. */
static int mlo_predict_iterations(mlo *m, const mlo_core *c, int64_t iterations, int64_t position,
    int64_t sequences, mlo_rhythm *r, int64_t *cycles) {
    const int64_t n = 2 * sequences;
    mlo_ordered *order = MLO_NEW_N(m, mlo_ordered, (size_t)n);
    mlo_prediction p;
    if (!order) return mlo_failed(m);
    for (int64_t k = 0; k < n; k++) {
        const mlo_ordered one = { k % sequences, position, 1, k >= sequences };
        order[k] = one;
    }
    MLO_TRY(mlo_predict_orders(m, c, iterations, order, n, &p, r));
    *cycles = p.frame_done[n - 1] - p.frame_done[sequences - 1];
    return 0;
}

/* Cycles from a token of each of some sequences to the next one of each, at a position. Those of a sequence come one
 * at a time; of as many sequences as frames are in flight they share a pass over the weights. */
static int mlo_predict_steps(
    mlo *m, const mlo_core *c, int64_t position, int64_t sequences, int64_t *cycles) {
    return mlo_predict_iterations(m, c, c->scan.iterations, position, sequences, NULL, cycles);
}

/* The same sooner, to a few of 10,000 cycles, where many iterations take long: the third of four says what each that
 * there are more takes. */
static int mlo_predict_steps_soon(
    mlo *m, const mlo_core *c, int64_t position, int64_t sequences, int64_t *cycles) {
    enum { LONG = 100000 }; /* beats of an iteration */
    const int64_t few = MLO_ITERATIONS_FEW;
    mlo_rhythm r = { 0, 0, { 0 } };
    if (c->scan.iterations <= 2 * few || mlo_core_layer_beats(c) < LONG)
        return mlo_predict_steps(m, c, position, sequences, cycles);
    MLO_TRY(mlo_predict_iterations(m, c, few, position, sequences, &r, cycles));
    *cycles += (c->scan.iterations - few) * (r.through[2] - r.through[1]);
    return 0;
}
static int mlo_predict_step(mlo *m, const mlo_core *c, int64_t position, int64_t *cycles) {
    return mlo_predict_steps(m, c, position, 1, cycles);
}

/* With FIFOs' peaks: so many beats of the run are followed, in each FIFO; all of them in a run
 * that is shorter, MLO_FOLLOWED of a token at least. */
static int mlo_predict_peaks(
    mlo *m, const mlo_core *c, int64_t frames, int64_t beats, mlo_prediction *p) {
    return mlo_predict_all(m, c, frames, p, beats, NULL, NULL);
}

/* FIFOs as deep as two groups of frames fill them, unless that takes a cycle more (beats of a
 * token are not quite on a line). */
static int mlo_core_depths(mlo *m, mlo_core *c) {
    mlo_prediction deep, p;
    mlo_core_fifos(c);
    if (mlo_predict_peaks(m, c, 2 * c->frames, 1, &deep)) return mlo_failed(m);
    mlo_core_shallow(c, deep.peak);
    if (mlo_predict(m, c, 2 * c->frames, &p)) return mlo_failed(m);
    if (p.cycles > deep.cycles) mlo_core_fifos(c);
    return 0;
}

/* Is the steady interval another one than that of the first frames? Frames overlap; resident
 * parameters are there. */
static int mlo_core_warms(const mlo_core *c) { return c->frames > 1 || mlo_core_resident_beats(c); }

/* A run of as many frames as can be in flight; its interval is that of many more, where that
 * differs. */
static int mlo_predict_steady(mlo *m, const mlo_core *c, mlo_prediction *p) {
    mlo_prediction twice;
    if (mlo_predict(m, c, c->frames, p)
        || (mlo_core_warms(c) && mlo_predict(m, c, 2 * c->frames, &twice)))
        return mlo_failed(m);
    if (mlo_core_warms(c)) p->interval = twice.interval;
    return 0;
}

static void mlo_spent_json(const mlo_spent *s, mlo_text *t) {
    mlo_printf(t,
        "\"busy\":%lld,\"starved_parameters\":%lld,\"starved_input\":%lld,\"blocked\":%lld",
        (long long)s->busy, (long long)s->parameters, (long long)s->input, (long long)s->blocked);
}
