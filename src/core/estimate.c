/* estimate: what a folded core takes of an FPGA, kernel by kernel, and how full a device is with it.
 *
 * in:  mlo_core, folded.     out: mlo_estimate: of each element, of the streams between them, of the
 *     shell around them, of all.
 * invariant: the parts add up to the whole; nothing depends on learned values. What the numbers
 *     count, and for what: area.c.
 * example: show's text: "area 61 374 LUT, 88 109 FF, 312 DSP, 96.5 BRAM of an UltraScale+".
 * cost: O(elements + edges).
 */
typedef struct {
    mlo_area element[MLO_CORE_MOST];
    mlo_area streams; /* between elements */
    mlo_area shell; /* around them */
    mlo_area around; /* what is around a decoder's loop (--tokens): rows, head, words */
    mlo_area all;
} mlo_estimate;

static mlo_area mlo_kernel_area(
    const mlo_core *c, const mlo_element *e, const mlo_unit *u, int memory) {
    mlo_area a = { 0, 0, 0, 0 };
    e->kernel->area(&e->site, u, c->axi_bits,
        memory == MLO_RESIDENT && u->n_memory ? c->scan.iterations : 0, &a);
    return a;
}

/* mlo_split: a skid for each output, and whose turn it is. */
static mlo_area mlo_split_area(const mlo_element *e) {
    mlo_area a = { 0, 0, 0, 0 };
    int64_t outputs = mlo_min((int64_t)e->node->n_output, 3);
    int64_t turns = mlo_clog2(mlo_parts(mlo_last_dim(&e->site.out), mlo_max(e->unit.out.lanes, 1)));
    for (int64_t i = 0; i < outputs; i++)
        mlo_area_skid(&a, e->unit.out.lanes * e->unit.out.bits + 3);
    a.lut += turns + 3;
    a.ff += turns + 3;
    return a;
}

/* FIFO and width converter of an edge. */
static void mlo_edge_area(const mlo_edge *e, mlo_area *a) {
    if (e->to == MLO_OUTSIDE) return;
    if (e->fifo)
        mlo_area_fifo(
            a, (int64_t)e->lanes_from * e->bits + 3, e->fifo * (e->channels / e->lanes_from));
    if (e->lanes_from != e->lanes_to) mlo_area_width(a, e->bits, e->lanes_from, e->lanes_to);
}

/* mlo_fork, where several read what this edge's source makes; counted at the first of them. */
static void mlo_fork_area(const mlo_core *c, int k, mlo_area *a) {
    const mlo_edge *e = &c->edge[k];
    int readers = 0;
    for (int i = 0; i < c->n_edge; i++)
        if (c->edge[i].from == e->from && c->edge[i].from_port == e->from_port && ++readers == 1
            && i < k)
            return;
    if (readers < 2) return;
    mlo_area_skid(a, (int64_t)e->lanes_from * e->bits + 3);
    a->lut += 3 * readers;
    a->ff += readers;
}

/* The doors: mlo_entry keeps two tokens until they are complete, mlo_exit does not. */
static void mlo_replay_door_area(const mlo_core *c, mlo_area *a) {
    if (c->replay < 0) return;
    const mlo_port *y = &c->element[c->replay].unit.out;
    mlo_area_fifo(a, y->lanes * y->bits, 2 * (y->channels / y->lanes) + 2);
    mlo_area_fifo(a, 1, 4);
}

static void mlo_doors_area(const mlo_core *c, mlo_area *a) {
    const int64_t beat = (int64_t)c->lanes * c->bits, beats = c->channels / c->lanes;
    mlo_replay_door_area(c, a);
    mlo_area_fifo(a, beat, 2 * beats + 2);
    mlo_area_fifo(a, 1, 4);
    mlo_area_skid(a, beat + 3);
    mlo_area_skid(a, beat + 1);
    a->lut += 10 + 4 * mlo_clog2(beats) / 3;
    a->ff += 3 * mlo_clog2(beats);
}

/* mlo_axi_share: one reader's address and length, whose they are. */
static void mlo_share_area(int64_t ports, mlo_area *a) {
    enum { REQUEST = 64 + 8, SHARE_LUTS = 7 };
    mlo_area_fifo(a, ports, 32);
    a->lut += REQUEST * mlo_mux_luts(ports) + SHARE_LUTS * ports;
    a->ff += REQUEST + 1 + ports;
}

/* Of row blocks: mlo_ahead and mlo_refill for each matrix; mlo_axi_share, which picks one reader's address and
 * length and queues whose they are; where their part of the memory begins. */
static void mlo_readers_area(const mlo_core *c, mlo_area *a) {
    enum { READER_LUTS = 490, READER_FFS = 346, PORT_LUTS = 2, BASE = 64 };
    int64_t readers = 1;
    for (int i = 0; i < c->n_element; i++)
        if (mlo_is_block(&c->element[i])) {
            const int64_t ports = c->element[i].unit.n_memory;
            mlo_area_skid(a, c->axi_bits);
            mlo_area_fifo(a, c->axi_bits, 512);
            a->lut += READER_LUTS + PORT_LUTS * ports;
            a->ff += READER_FFS + ports;
            readers++;
        }
    if (readers == 1) return;
    mlo_share_area(readers, a);
    a->lut += BASE;
    a->ff += BASE;
}

/* Of a core with caches: mlo_job, with its queue of four, what it knows of each slot, where a slot's
 * banks begin (a product, unless they are a power of two); and what the registers have for it. */
static void mlo_job_area(const mlo_core *c, mlo_area *a) {
    enum { QUEUE = 48, LUTS = 122, FFS = 98, REGS_LUTS = 130, REGS_FFS = 49 };
    const int64_t width = (int64_t)c->lanes * mlo_padded(c->bits);
    const int64_t beat = mlo_clog2(c->channels / c->lanes);
    int64_t odd = mlo_core_deepest(c);
    if (!c->slots) return;
    while (odd % 2 == 0) odd /= 2;
    const int64_t bank = odd > 1 && c->slots > 2 ? mlo_clog2(odd * c->slots) : 0;
    mlo_area_fifo(a, QUEUE, 4);
    mlo_area_skid(a, width + 1);
    if (c->masked) {
        mlo_area_skid(a, 1);
        mlo_area_skid(a, 2);
    }
    /* the lengths: of one slot a register, of more a memory that is read as it is written */
    if (c->slots > 1)
        a->lut += 8 * mlo_parts(16, c->slots > 32 ? 7 : 14) * mlo_parts(c->slots, 64);
    else
        a->ff += 16;
    a->lut += LUTS + REGS_LUTS + beat + 2 * c->slots + bank;
    a->ff += FFS + REGS_FFS + beat + c->slots + mlo_counter(c->slots) + bank;
}

/* Bits that say where a row lies, and of how many beats the past is: products of a bank, of a position. */
static int64_t mlo_kv_place(const mlo_core *c) {
    return 16 + mlo_clog2(2 * c->keys * mlo_kv_row(c));
}
static int64_t mlo_kv_past(const mlo_core *c) { return 16 + mlo_clog2(mlo_kv_row(c)); }

/* mlo_kv_lane, and what mlo_kv has for each: a reader with its queue and a register behind it, where
 * the next pasts lie, and the next rows. */
static void mlo_kv_lane_area(const mlo_core *c, const mlo_port *k, mlo_area *a) {
    enum { FIFO_BEATS = 128, READER_LUTS = 270, LANE_LUTS = 240 };
    enum { READER_FFS = 88, LANE_FFS = 18, WORDS = 4 };
    const int64_t address = 64 - mlo_clog2(c->axi_bits / 8), beat = (int64_t)k->lanes * k->bits;
    const int64_t row = mlo_kv_row(c), per = c->axi_bits / (k->lanes * mlo_padded(k->bits));
    mlo_area_fifo(a, c->axi_bits, FIFO_BEATS);
    mlo_area_skid(a, c->axi_bits);
    mlo_area_skid(a, beat + 3);
    mlo_area_fifo(a, c->axi_bits + 1, 2 * row + 2);
    mlo_area_skid(a, mlo_kv_place(c) + mlo_kv_past(c));
    mlo_area_fifo(a, 16, WORDS);
    mlo_area_fifo(a, mlo_kv_place(c), WORDS);
    a->lut += READER_LUTS + LANE_LUTS + beat * mlo_mux_luts(per) + 3 * c->axi_bits / 4;
    a->ff += READER_FFS + 2 * address + LANE_FFS + c->axi_bits + mlo_counter(mlo_port_beats(*k))
        + mlo_counter(per) + mlo_clog2(2 * row + 3) + mlo_counter(row) + mlo_kv_place(c);
}

/* Keys and values in memory: mlo_kv with two lanes, the writer, whose turn it is at either; the registers
 * that say where they are. */
static void mlo_kv_area(const mlo_core *c, mlo_area *a) {
    enum {
        READS = 64 + 8 + 3,
        READS_LUTS = 90,
        WRITER_LUTS = 240,
        WRITER_FFS = 70,
        TURN_LUTS = 120
    };
    enum { COUNTED = 64, REGS_LUTS = 100, REGS_FFS = 64 };
    const mlo_port *k = c->dram ? mlo_kv_keys(c) : NULL;
    if (!k) return;
    const int64_t address = 64 - mlo_clog2(c->axi_bits / 8);
    for (int v = 0; v < 2; v++) mlo_kv_lane_area(c, k, a);
    mlo_area_fifo(a, 2, 32);
    /* words, and what comes of the one in front */
    mlo_area_fifo(a, 33, 2 * c->frames + 1);
    a->ff += 18 + mlo_kv_place(c) + mlo_kv_past(c);
    a->lut += READS_LUTS + WRITER_LUTS + TURN_LUTS + address + c->axi_bits + COUNTED + REGS_LUTS;
    a->ff += READS + WRITER_FFS + 2 * address + c->axi_bits + COUNTED + REGS_FFS
        + mlo_counter(mlo_kv_row(c));
}

/* Doors, loop and feedback (mlo_loop), the memory's master and router (mlo_loader), registers and
 * counters (mlo_regs). */
static mlo_area mlo_shell_area(const mlo_core *c) {
    /* KERNEL: three counters */
    enum {
        EVERY_LUTS = 8,
        LOOP_LUTS = 135,
        LOOP_FFS = 62,
        LOADER_LUTS = 400,
        LOADER_FFS = 310,
        RUNS_LUTS = 275,
        RUNS_FFS = 150,
        PORT_LUTS = 2,
        REGS_LUTS = 294,
        REGS_FFS = 255,
        KERNEL_LUTS = 52,
        KERNEL_FFS = 96
    };
    mlo_area a = { 0, 0, 0, 0 };
    const int64_t beat = (int64_t)c->lanes * c->bits + 3;
    int64_t kernels = 0, ports = 0;
    for (int i = 0; i < c->n_element; i++) {
        kernels += c->element[i].kernel != NULL;
        ports += mlo_is_block(&c->element[i]) ? 0 : c->element[i].unit.n_memory;
    }
    mlo_doors_area(c, &a);
    mlo_job_area(c, &a);
    mlo_kv_area(c, &a);
    /* into the body and out of it */
    for (int i = 0; i < 2; i++) mlo_area_skid(&a, beat);
    mlo_area_fifo(&a, beat, c->feedback * (c->channels / c->lanes));
    mlo_area_skid(&a, c->axi_bits);
    mlo_area_fifo(&a, c->axi_bits, 512);
    a.lut += LOOP_LUTS + beat + LOADER_LUTS + PORT_LUTS * ports + REGS_LUTS + KERNEL_LUTS * kernels;
    a.ff += LOOP_FFS + LOADER_FFS + ports + REGS_FFS + KERNEL_FFS * kernels;
    if (c->every) a.lut += beat + EVERY_LUTS; /* mlo_every: which of the two leaves */
    if (c->every) a.ff += 2;
    /* beats of all iterations */
    a.dsp += 1;
    mlo_readers_area(c, &a);
    if (mlo_core_resident_beats(c)) {
        a.lut += RUNS_LUTS;
        a.ff += RUNS_FFS;
    }
    return a;
}

/* mlo_rows: a reader with its FIFO, a row's address (a product by a constant), the way to the loop's lanes. */
static void mlo_rows_area(const mlo_core *c, mlo_area *a) {
    enum { FIFO_BEATS = 64, LUTS = 250, FFS = 172, ADDRESS = 40, BASE = 64 };
    const int64_t beats = mlo_counter(c->channels / c->lanes);
    int64_t odd = 2 * c->channels, sums = 0;
    for (; odd; odd &= odd - 1) sums++;
    mlo_area_fifo(a, c->axi_bits, FIFO_BEATS);
    mlo_area_fifo(a, 1, 4);
    mlo_area_width(a, 16, c->axi_bits / 16, c->lanes);
    a->lut += LUTS + BASE + beats + ADDRESS * (sums - 1);
    a->ff += FFS + beats + ADDRESS + BASE;
}

/* mlo_places: an index; an id's row that waits, sums that are clipped; in mlo_tokens the position of an id. */
static void mlo_places_area(const mlo_core *c, mlo_area *a) {
    enum { LUTS = 72, FFS = 42, SUM = 32, PLACE = 16 };
    const int64_t beats = c->channels / c->lanes;
    if (!c->places) return;
    mlo_area_memory(a, 16 * c->lanes, beats);
    a->lut += LUTS + PLACE + SUM * c->lanes + mlo_counter(beats);
    a->ff += FFS + PLACE + 16 * c->lanes + mlo_counter(beats);
}

/* mlo_newest: a token, the beat that goes. */
static void mlo_newest_area(const mlo_core *c, mlo_area *a) {
    const int64_t width = (int64_t)c->lanes * mlo_padded(c->bits), beats = c->channels / c->lanes;
    mlo_area_memory(a, width, beats);
    a->lut += 8 + mlo_counter(beats);
    a->ff += 4 + mlo_counter(beats);
}

/* mlo_tokens: jobs that wait, a text's place, the word; in the registers a stop id, and how many may follow. */
static void mlo_tokens_area(mlo_area *a) {
    enum { QUEUE = 64, LUTS = 190, FFS = 166, REGS_LUTS = 60, REGS_FFS = 48 };
    mlo_area_fifo(a, QUEUE, 4);
    a->lut += LUTS + REGS_LUTS;
    a->ff += FFS + REGS_FFS;
}

static void mlo_streams_area(const mlo_core *c, mlo_area *a) {
    for (int k = 0; k < c->n_edge; k++) {
        mlo_edge_area(&c->edge[k], a);
        mlo_fork_area(c, k, a);
    }
}

/* Several words at once: as wide in mlo_tokens; one behind the other. */
static void mlo_words_area(int64_t words, mlo_area *a) {
    if (words < 2) return;
    mlo_area_width(a, 64, (int)words, 1);
    mlo_area_skid(a, 65);
    a->ff += 64 * (words - 1);
}

/* Of an encoder: doors of its own, and what marks the first token (mlo_loop). */
static void mlo_front_area(const mlo_core *c, mlo_area *a) {
    enum { LOOP_LUTS = 20, LOOP_FFS = 20 };
    const int64_t beat = (int64_t)c->lanes * c->bits + 3;
    mlo_doors_area(c->around, a);
    for (int i = 0; i < 2; i++) mlo_area_skid(a, beat);
    a->lut += LOOP_LUTS + beat;
    a->ff += LOOP_FFS;
}

/* Kernels with a loader and a reader for each matrix, as the loop's. */
static mlo_area mlo_around_kernels_area(const mlo_core *c, const mlo_core *h) {
    enum { LOADER_LUTS = 400, LOADER_FFS = 310, PORT_LUTS = 2, BASES = 128 };
    mlo_area a = { 0, 0, 0, 0 };
    for (int i = 0; i < h->n_element; i++) {
        const mlo_element *e = &h->element[i];
        const mlo_area kernel = mlo_kernel_area(h, e, &e->unit, e->memory);
        mlo_area_sum(&a, &kernel);
        if (mlo_is_block(e)) continue;
        a.lut += PORT_LUTS * e->unit.n_memory;
        a.ff += e->unit.n_memory;
    }
    mlo_streams_area(h, &a);
    mlo_readers_area(h, &a);
    mlo_area_skid(&a, c->axi_bits);
    mlo_area_fifo(&a, c->axi_bits, 512);
    a.dsp += 1; /* as the loop's loader: beats of all iterations */
    a.lut += LOADER_LUTS + BASES;
    a.ff += LOADER_FFS + BASES;
    return a;
}

/* A tail: mlo_first is a skid that counts; its own door. */
static mlo_area mlo_tail_area(const mlo_core *c) {
    enum { FIRST = 8 };
    const mlo_core *t = c->tail;
    mlo_area a = mlo_around_kernels_area(c, t);
    const int64_t counter = mlo_counter(c->channels / c->lanes);
    mlo_area_skid(&a, (int64_t)c->lanes * mlo_padded(c->bits) + 1);
    mlo_area_skid(&a, (int64_t)t->lanes * t->bits + 1);
    a.lut += FIRST + counter + mlo_counter(t->channels / t->lanes);
    a.ff += FIRST + counter + mlo_counter(t->channels / t->lanes);
    return a;
}

/* All of it. */
static mlo_area mlo_around_area(const mlo_core *c) {
    mlo_area a = { 0, 0, 0, 0 };
    const mlo_core *h = c->around;
    if (!h) return a;
    a = mlo_around_kernels_area(c, h);
    mlo_share_area(c->tail ? 3 : 2, &a);
    if (c->tail) {
        const mlo_area tail = mlo_tail_area(c);
        mlo_area_sum(&a, &tail);
    }
    mlo_rows_area(c, &a);
    mlo_places_area(c, &a);
    if (c->in_front) mlo_front_area(c, &a);
    if (c->in_front) return a;
    mlo_newest_area(c, &a);
    mlo_tokens_area(&a);
    mlo_words_area(h->channels / 2, &a);
    return a;
}

static void mlo_estimate_core(const mlo_core *c, mlo_estimate *to) {
    memset(to, 0, sizeof *to);
    for (int i = 0; i < c->n_element; i++) {
        const mlo_element *e = &c->element[i];
        to->element[i] = e->kernel ? mlo_kernel_area(c, e, &e->unit, e->memory) : mlo_split_area(e);
        mlo_area_sum(&to->all, &to->element[i]);
        if (!e->kernel) mlo_area_sum(&to->streams, &to->element[i]);
    }
    mlo_area between = { 0, 0, 0, 0 };
    mlo_streams_area(c, &between);
    to->shell = mlo_shell_area(c);
    to->around = mlo_around_area(c);
    mlo_area_sum(&to->all, &to->around);
    mlo_area_sum(&to->streams, &between);
    mlo_area_sum(&to->all, &between);
    mlo_area_sum(&to->all, &to->shell);
}

/* As JSON: block RAMs of 36 Kbit, of which there are halves. */
static void mlo_area_json(const mlo_area *a, mlo_text *t) {
    mlo_printf(t, "{\"lut\":%lld,\"ff\":%lld,\"dsp\":%lld,\"bram\":%lld%s}", (long long)a->lut,
        (long long)a->ff, (long long)a->dsp, (long long)(a->bram / 2), a->bram % 2 ? ".5" : "");
}
