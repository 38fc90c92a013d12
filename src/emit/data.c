/* emit, data: the parameter image, and the words the bench plays and expects.
 *
 * The image is one iteration after the other; in an iteration, the memories of all kernels in
 * dataflow order; in a memory, its words, padded as mlo_param wants them. So the loader reads
 * straight through it. Behind that, again iteration after iteration, are the kernels in row
 * blocks: block after block, in a block memory after memory. */

/* Evaluates an element's parameter inputs in iteration i: everything that is no stream. */
static int mlo_element_inputs(
    mlo *m, const mlo_core *c, const mlo_element *el, int64_t i, mlo_array **in) {
    for (size_t k = 0; k < el->node->n_input && k < 8; k++) {
        int stream = 0;
        for (int p = 0; p < el->unit.n_in; p++) stream |= el->unit.in[p].index == (int)k;
        mlo_value *v = mlo_value_of(c->scan.body, el->node->input[k]);
        in[k] = NULL;
        /* the mask comes as a stream, too */
        if (stream || (v && v->graph != c->scan.body && !v->tensor)) continue;
        if (!(in[k] = mlo_scan_value(m, &c->scan, el->node->input[k], i))) return mlo_failed(m);
    }
    return 0;
}

/* Are the parameters of one iteration such that the hardware takes them? */
static int mlo_element_numbers(mlo *m, const mlo_element *el, const mlo_array *const *in) {
    if (mlo_kernel_numbers(m, el->node, el->kernel->limits, in, el->site.in_bits[0]))
        return mlo_failed(m);
    return el->kernel->promises ? el->kernel->promises(&el->site, in) : 0;
}

/* The image on its way into a file, in whole beats. */
typedef struct {
    mlo_text part; /* what there is of it now */
    mlo_text before; /* what was in front of it: neither in the digest yet nor written */
    int hex; /* 1: the file is text */
} mlo_image;

/* The words of an element's memories on their way into the image; what is before them is added to the digest
 * meanwhile. */
typedef struct {
    const mlo_element *el;
    const mlo_array *const *in;
    int axi;
    unsigned char *to; /* zeros */
    const mlo_text *before;
    mlo_sha *sha;
    int pieces;
} mlo_packing;

/* A part of each memory of each row block. */
static void mlo_pack_words(const mlo_packing *p, int part, int parts) {
    const mlo_unit *u = &p->el->unit;
    unsigned char *to = p->to;
    for (int64_t at = 0; at < mlo_max(1, u->blocks) * u->n_memory; at++) {
        const int k = (int)(at % u->n_memory);
        const mlo_memory *mem = &u->memory[k];
        const int64_t first = at / u->n_memory * mem->depth, word = mlo_word_bits(mem, p->axi) / 8;
        const int64_t end = mlo_piece_begins(mem->depth, part + 1, parts);
        for (int64_t w = mlo_piece_begins(mem->depth, part, parts); w < end; w++)
            p->el->kernel->pack(&p->el->site, u, k, first + w, p->in, to + w * word);
        to += mlo_memory_beats(mem, p->axi) * p->axi / 8;
    }
}

static void mlo_packing_piece(void *of, int piece) {
    const mlo_packing *p = (const mlo_packing *)of;
    if (piece == 0) mlo_sha_add(p->sha, mlo_or_empty(p->before->text), p->before->n);
    if (p->pieces == 1) mlo_pack_words(p, 0, 1);
    if (piece > 0) mlo_pack_words(p, piece - 1, p->pieces - 1);
}

/* An element's memories, in whole beats. */
static int mlo_emit_memories(
    mlo_emitter *e, const mlo_element *el, mlo_array *const *in, mlo_image *image) {
    const int axi = e->c->axi_bits;
    const int64_t beats = mlo_unit_beats(&el->unit, axi);
    const size_t bytes = (size_t)(beats * axi / 8);
    mlo_packing p = { el, (const mlo_array *const *)in, axi,
        (unsigned char *)mlo_put_room(&image->part, bytes), &image->before, &e->sha,
        mlo_pieces(e->m, MLO_PIECES, 2.0 * (double)bytes) };
    if (!p.to) return mlo_failed(e->m);
    memset(p.to, 0, bytes);
    mlo_pieces_do(e->m, mlo_packing_piece, &p, p.pieces);
    if (image->before.n) mlo_file_put(e, image->before.text, image->before.n);
    image->before.n = 0;
    return mlo_failed(e->m);
}

/* A part of the image becomes lines, and the lines of the part before it are added to the digest meanwhile. */
enum { MLO_HEX_PART = 1 << 19 }; /* bytes, in whole beats */
typedef struct {
    const unsigned char *image;
    int64_t beats;
    int beat; /* bytes */
    char *lines;
    const char *before; /* lines */
    size_t n_before;
    mlo_sha *sha;
    int pieces;
} mlo_hexing;

/* A beat a line, its last byte first: what $readmemh takes. */
static void mlo_hex_lines(const mlo_hexing *x, int64_t from, int64_t until) {
    char *to = x->lines + from * (2 * x->beat + 1);
    for (const unsigned char *at = x->image + from * x->beat; from < until; from++, at += x->beat) {
        for (int i = x->beat; i--;) {
            *to++ = "0123456789abcdef"[at[i] >> 4];
            *to++ = "0123456789abcdef"[at[i] & 15];
        }
        *to++ = '\n';
    }
}

static void mlo_hexing_piece(void *of, int piece) {
    const mlo_hexing *x = (const mlo_hexing *)of;
    const int parts = x->pieces - 1;
    if (piece == 0) mlo_sha_add(x->sha, x->before, x->n_before);
    if (x->pieces == 1) mlo_hex_lines(x, 0, x->beats);
    if (piece > 0)
        mlo_hex_lines(x, mlo_piece_begins(x->beats, piece - 1, parts),
            mlo_piece_begins(x->beats, piece, parts));
}

static int mlo_emit_hex(mlo_emitter *e, const unsigned char *image, int64_t n) {
    const int beat = e->c->axi_bits / 8;
    const int64_t part = mlo_min(n, MLO_HEX_PART), room = part / beat * (2 * beat + 1);
    mlo_hexing x = { image, 0, beat, NULL, NULL, 0, &e->sha, 1 };
    char *lines = (char *)mlo_scratch(e->m, 2 * (size_t)room, 1); /* of two parts, by turns */
    /* the last time around, the last part's lines are added */
    for (int64_t at = 0, turn = 0; at < n + part && lines && !e->m->error.code;
        at += part, turn++) {
        x.image = image + mlo_min(at, n);
        x.beats = mlo_max(0, mlo_min(part, n - at)) / beat;
        x.lines = lines + turn % 2 * room;
        x.pieces = mlo_pieces(e->m, MLO_PIECES, 4.0 * (double)part);
        mlo_pieces_do(e->m, mlo_hexing_piece, &x, x.pieces);
        mlo_file_put(e, x.before, x.n_before);
        x.before = x.lines;
        x.n_before = (size_t)x.beats * (size_t)(2 * beat + 1);
    }
    mlo_scratch_free(e->m, lines);
    return mlo_failed(e->m);
}

/* What there is of the image goes on: lines at once, bytes when what is behind them is packed. */
static int mlo_image_flush(mlo_emitter *e, mlo_image *image) {
    const mlo_text part = image->part;
    if (image->hex) {
        image->part.n = 0;
        return part.n ? mlo_emit_hex(e, (const unsigned char *)part.text, (int64_t)part.n)
                      : mlo_failed(e->m);
    }
    if (image->before.n) mlo_file_write(e, image->before.text, image->before.n);
    image->part = image->before;
    image->part.n = 0;
    image->before = part;
    return mlo_failed(e->m);
}

static int mlo_emit_image_part(mlo_emitter *e, const mlo_core *c, int blocks, mlo_image *image) {
    for (int64_t i = 0; i < c->scan.iterations; i++)
        for (int k = 0; k < c->n_element; k++) {
            const mlo_element *el = &c->element[k];
            mlo_array *in[8] = { 0 };
            mlo_work(e->m, image->hex ? "writes params.hex" : "writes params.bin",
                i * c->n_element + k, c->scan.iterations * c->n_element);
            if (!el->kernel || !el->unit.n_memory || mlo_is_block(el) != blocks) continue;
            if (!mlo_element_inputs(e->m, c, el, i, in)
                && !mlo_element_numbers(e->m, el, (const mlo_array *const *)in))
                mlo_emit_memories(e, el, in, image);
            for (int j = 0; j < 8; j++) mlo_array_free(e->m, in[j]);
            if (e->m->error.code || mlo_image_flush(e, image)) return mlo_failed(e->m);
        }
    mlo_work_over(e->m);
    return 0;
}

/* What the image takes. */
static int64_t mlo_image_bytes(const mlo_emitter *e) { return mlo_core_whole_bytes(e->c); }

/* A table in front of the loop, 16 bits a number. MLO_IMAGE_ROWS: bytes of it at a time, in whole beats. */
enum { MLO_IMAGE_ROWS = 1 << 16 };
static int mlo_emit_rows(mlo_emitter *e, const mlo_tensor *t, mlo_image *image) {
    mlo_array *a = t ? mlo_tensor_load(e->m, t) : NULL;
    if (!a) return mlo_failed(e->m);
    for (int64_t i = 0, n = mlo_array_count(a); i < n && !e->m->error.code; i++) {
        const uint64_t v = (uint64_t)mlo_get(a, i);
        const unsigned char bytes[2] = { (unsigned char)(v & 255), (unsigned char)(v >> 8 & 255) };
        mlo_put(&image->part, bytes, 2);
        if (image->part.n == MLO_IMAGE_ROWS) mlo_image_flush(e, image);
    }
    mlo_array_free(e->m, a);
    return mlo_image_flush(e, image);
}

/* What is around the loop lies behind what is in it. */
static int mlo_emit_around_image(mlo_emitter *e, mlo_image *image) {
    return e->h
        && (mlo_emit_image_part(e, e->h, 0, image) || mlo_emit_image_part(e, e->h, 1, image)
            || mlo_emit_rows(e, mlo_around_rows(e->m, e->c), image)
            || (e->c->places && mlo_emit_rows(e, mlo_around_places(e->m, e->c), image))
            || (e->tail
                && (mlo_emit_image_part(e, e->tail, 0, image)
                    || mlo_emit_image_part(e, e->tail, 1, image))));
}

static int mlo_emit_image(mlo_emitter *e, const char *file, int hex) {
    mlo_image image = { { e->m, NULL, 0, 0 }, { e->m, NULL, 0, 0 }, hex };
    if (!mlo_file_begin(e, file) && (hex || !mlo_file_write(e, "", 0))
        && !mlo_emit_image_part(e, e->c, 0, &image) && !mlo_emit_image_part(e, e->c, 1, &image)
        && !mlo_emit_around_image(e, &image) && !mlo_image_flush(e, &image))
        mlo_file_end(e);
    mlo_text_free(&image.part);
    mlo_text_free(&image.before);
    return mlo_failed(e->m);
}

/* The image is made for each of its files anew: that of a large model would not fit into memory. */
static int mlo_emit_params(mlo_emitter *e) {
    return mlo_emit_image(e, "params.bin", 0) || mlo_emit_image(e, "params.hex", 1);
}

/* ---- beats of activations ------------------------------------------------- */

/* The jobs of the bench of a core with caches: a prompt, and a few tokens one by one; a frame behind the model's own
 * past. Returns how many. */
enum { MLO_BENCH_JOBS = 5, MLO_BENCH_PROMPT = 16 };
static int64_t mlo_bench_orders(const mlo_core *c, mlo_ordered list[MLO_BENCH_JOBS]) {
    const int64_t steps = mlo_min(MLO_BENCH_JOBS - 1, c->chunk - 1);
    const mlo_ordered whole = { 0, c->keys - c->chunk, c->chunk, 0 };
    list[0] = whole;
    if (c->given) return 1;
    const mlo_ordered prompt = { 0, 0, mlo_min(MLO_BENCH_PROMPT, c->chunk - steps), 0 };
    list[0] = prompt;
    for (int64_t i = 0; i < steps; i++) {
        const mlo_ordered step = { 0, prompt.tokens + i, 1, 0 };
        list[1 + i] = step;
    }
    return 1 + steps;
}

/* Elements from .. to - 1 of an array as beats, as the bench reads them: {tlast, lanes}, one hexadecimal
 * word a line. a: [.., tokens, channels] integers. */
static void mlo_hex_beats(
    mlo_text *t, const mlo_array *a, int64_t from, int64_t n, int64_t lanes, int bits) {
    int pad = mlo_padded(bits), digits = (int)(lanes * pad / 4);
    for (int64_t at = from; at < n; at += lanes) {
        mlo_puts(t, at + lanes >= n ? "1" : "0");
        for (int d = digits; d--;) {
            int64_t bit = (int64_t)d * 4, lane = bit / pad;
            char digit = "0123456789abcdef"[(uint64_t)mlo_get(a, at + lane) >> (bit % pad) & 15];
            mlo_put(t, &digit, 1);
        }
        mlo_puts(t, "\n");
    }
}
/* The mask: {tlast, byte} per token. */
static void mlo_hex_mask(mlo_text *t, const mlo_array *mask, int64_t from, int64_t n) {
    for (int64_t i = from; i < n; i++)
        mlo_printf(t, "%d%02x\n", i == n - 1, (unsigned)mlo_get(mask, i));
}

/* Keys and values of all iterations, [iterations, .., rows, channels] each, as their memory has them: a word a line. */
static void mlo_hex_rows(mlo_text *t, const mlo_core *c, const mlo_array *const kv[2]) {
    const mlo_port *port = mlo_kv_keys(c);
    const int pad = mlo_padded(port->bits), step = port->lanes * pad;
    const int64_t per = c->axi_bits / step, beats = mlo_port_beats(*port), row = mlo_kv_row(c);
    const int64_t rows = mlo_array_count(kv[0]) / port->channels / c->scan.iterations;
    unsigned char bits[128];
    for (int64_t w = 0; w < 2 * c->scan.iterations * rows * row; w++) {
        const int64_t first = w % row * per, at = w / row % rows, i = w / row / rows / 2;
        const mlo_array *a = kv[w / row / rows % 2];
        memset(bits, 0, sizeof bits);
        for (int64_t k = 0; k < per * port->lanes && first * port->lanes + k < beats * port->lanes;
            k++)
            mlo_put_bits(bits, (int)k * pad, pad,
                (uint64_t)mlo_get(a, ((i * rows + at) * beats + first) * port->lanes + k));
        for (int k = c->axi_bits / 8; k--;) mlo_printf(t, "%02x", bits[k]);
        mlo_puts(t, "\n");
    }
}

/* Core input, mask and core output of one evaluation. */
typedef struct {
    mlo_emitter *e;
    mlo_text in; /* hex, a beat a line, as are the four behind it */
    mlo_text mask;
    mlo_text out;
    mlo_text replay;
    mlo_text replay_mask;
    const char *names[5]; /* of these values */
    mlo_ordered order[MLO_BENCH_JOBS]; /* the parts in which a frame comes */
    int64_t n_order;
    mlo_array *golden; /* the model's outputs on the first frame */
    mlo_border *border; /* three, whose first numbers are wanted */
    int64_t frames; /* whose words these are */
    mlo_array kept[4]; /* as mlo_core has them, where it is given keys and values */
} mlo_bench_words;

static int mlo_bench_see(
    void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *a) {
    mlo_bench_words *w = (mlo_bench_words *)user;
    const mlo_core *c = w->e->c;
    const int says = mlo_emit_says(w->e), best = mlo_emit_best(w->e);
    if (iteration >= 0) return 0;
    for (int k = 0; k < MLO_BORDERS; k++) mlo_border_see(&w->border[k], name, a);
    for (size_t i = 0; i < g->n_output; i++)
        if (name == g->output[i]->name && !w->golden[i].data
            && mlo_array_keep(w->e->m, a, &w->golden[i]))
            return mlo_failed(w->e->m);
    for (int k = 0; k < 4 && c->given; k++)
        if (name == c->kept[k] && !w->kept[k].data && mlo_array_keep(w->e->m, a, &w->kept[k]))
            return mlo_failed(w->e->m);
    if (name == w->names[3])
        mlo_hex_beats(&w->replay, a, 0, mlo_array_count(a), mlo_replay_port(c).lanes,
            mlo_replay_port(c).bits);
    if (name == w->names[4]) mlo_hex_mask(&w->replay_mask, a, 0, mlo_array_count(a));
    for (int64_t i = 0; i < w->n_order; i++) {
        const int64_t from = w->order[i].start - (c->keys - c->chunk),
                      to = from + w->order[i].tokens;
        if (name == w->names[0] && w->e->h) mlo_hex_beats(&w->in, a, from, to, 1, 32);
        if (name == w->names[2] && says)
            mlo_hex_beats(&w->out, a, 2 * best * (to - 1), 2 * best * to, 2, 32);
        if (name == w->names[0] && !w->e->h)
            mlo_hex_beats(&w->in, a, from * c->channels, to * c->channels, c->lanes, c->bits);
        if (name == w->names[1]) mlo_hex_mask(&w->mask, a, from, to);
        const mlo_core *made = mlo_emit_made(w->e);
        const int64_t first = w->e->tail ? 0 : from, end = w->e->tail ? 1 : to * mlo_core_times(c);
        if (name == w->names[2] && !says)
            mlo_hex_beats(
                &w->out, a, first * made->channels, end * made->channels, made->lanes, made->bits);
    }
    return 0;
}

/* {slot, start, tokens} of each job, as registers take them. */
static int mlo_emit_jobs(mlo_emitter *e, const mlo_bench_words *w) {
    for (int64_t i = 0; i < w->n_order; i++)
        mlo_line(e, "%02llx%06llx%04llx", (unsigned long long)w->order[i].slot,
            (unsigned long long)w->order[i].start, (unsigned long long)w->order[i].tokens);
    return mlo_file_text(e, "tb/jobs.hex");
}

static mlo_bench_words mlo_bench_words_new(
    mlo_emitter *e, int64_t frames, mlo_border border[MLO_BORDERS]) {
    mlo *m = e->m;
    mlo_bench_words w = { e, { m, NULL, 0, 0 }, { m, NULL, 0, 0 }, { m, NULL, 0, 0 },
        { m, NULL, 0, 0 }, { m, NULL, 0, 0 },
        { mlo_in_name(e), mlo_intern(m, "mlo_mask"), mlo_out_name(e), mlo_replay_name(e->c),
            mlo_intern(m, mlo_memory_mask) },
        { { 0, 0, e->c->chunk, 0 } }, 1, MLO_NEW_N(m, mlo_array, m->model->graph->n_output + 1),
        border, frames, { { 0 } } };
    if (e->c->slots) w.n_order = mlo_bench_orders(e->c, w.order);
    return w;
}

/* `frames` frames of inputs (of a core with caches the parts that its bench orders) drawn from the
 * model's declared types (never from --calib, so that every way to this directory gives the same
 * bytes), and what the core makes of them. */
static int mlo_bench_play(mlo_bench_words *w) {
    mlo *m = w->e->m;
    const mlo_observer see = { .user = w, .see = mlo_bench_see };
    const size_t n_calib = m->n_calib;
    m->n_calib = 0;
    mlo_border_given(m, MLO_BENCH_DRAW, w->border);
    for (int64_t k = 0; k < w->frames && !m->error.code; k++)
        mlo_sample_run(m, MLO_BENCH_DRAW + k, &see);
    m->n_calib = n_calib;
    m->golden = w->golden;
    return mlo_failed(m);
}

/* tb/past.hex and tb/kept.hex: keys and values that come with a frame, and that stay. */
static int mlo_emit_kept(mlo_emitter *e, const mlo_bench_words *w) {
    for (int k = 0; k < 4 && e->c->given; k += 2) {
        const mlo_array *const kv[2] = { &w->kept[k], &w->kept[k + 1] };
        if (!e->c->kept[k]) continue;
        mlo_hex_rows(&e->t, e->c, kv);
        MLO_TRY(mlo_file_text(e, k ? "tb/kept.hex" : "tb/past.hex"));
    }
    return mlo_failed(e->m);
}

/* tb/input.hex, tb/mask.hex, tb/golden.hex, tb/replay.hex, tb/replay_mask.hex, and tb/jobs.hex. */
static int mlo_emit_bench_words(mlo_emitter *e, const mlo_bench_words *w) {
    const mlo_text *const texts[] = { &w->in, &w->mask, &w->out, &w->replay, &w->replay_mask };
    static const char *const files[] = { "tb/input.hex", "tb/mask.hex", "tb/golden.hex",
        "tb/replay.hex", "tb/replay_mask.hex" };
    const int there[] = { 1, e->c->masked, 1, e->c->replay >= 0, e->c->replay_masked };
    for (int i = 0; i < 5; i++)
        if (there[i]) {
            mlo_put(&e->t, mlo_or_empty(texts[i]->text), texts[i]->n);
            MLO_TRY(mlo_file_text(e, files[i]));
        }
    return mlo_emit_kept(e, w) || (e->c->slots && mlo_emit_jobs(e, w)) ? mlo_failed(e->m) : 0;
}

static void mlo_bench_words_free(mlo_bench_words *w) {
    mlo_text *const texts[] = { &w->in, &w->mask, &w->out, &w->replay, &w->replay_mask };
    for (int i = 0; i < 5; i++) mlo_text_free(texts[i]);
}
