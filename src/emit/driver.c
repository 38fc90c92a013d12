/* emit, driver: what a host takes to drive the core: host/mlo_driver.h, .c and .py, and
 * host/mlo_frame.c, the bench's first frame as C.
 *
 * in:  the borders of the core, the words of its bench.
 * out: the texts of share/host; here are their holes.
 *
 * invariant: constants of the driver are those of manifest.json.
 * example: cc -c host/mlo_driver.c host/mlo_frame.c: no library is needed.
 * cost: five characters a byte of the frame.
 */

typedef struct {
    mlo_emitter *e;
    const mlo_bench_words *w;
} mlo_example;

/* The first frame of a file of beats {tlast, lanes} as bytes in the order of memory. */
static void mlo_example_bytes(const mlo_example *x, const mlo_text *hex) {
    const size_t end = hex->n / (size_t)x->w->frames;
    mlo_text *t = &x->e->t;
    int column = 0;
    for (size_t at = 0, next; at < end; at = next) {
        for (next = at; hex->text[next] != '\n'; next++) continue;
        for (size_t k = next++; k > at + 1; k -= 2)
            mlo_printf(t, "0x%.2s,%s", hex->text + k - 2, ++column % 20 ? "" : "\n");
    }
    if (column % 20) mlo_puts(t, "\n");
}
static void mlo_example_in(void *user) {
    mlo_example_bytes((mlo_example *)user, &((mlo_example *)user)->w->in);
}
static void mlo_example_mask(void *user) {
    mlo_example_bytes((mlo_example *)user, &((mlo_example *)user)->w->mask);
}
static void mlo_example_out(void *user) {
    mlo_example_bytes((mlo_example *)user, &((mlo_example *)user)->w->out);
}
static void mlo_example_memory(void *user) {
    mlo_example_bytes((mlo_example *)user, &((mlo_example *)user)->w->replay);
}
static void mlo_example_memory_mask(void *user) {
    mlo_example_bytes((mlo_example *)user, &((mlo_example *)user)->w->replay_mask);
}

/* Keys or values that are the model's own; of no past a list that C takes. */
static void mlo_example_kept(const mlo_example *x, int k) {
    const mlo_array *const a = &x->w->kept[k];
    const int64_t n = x->e->c->kept[k] ? mlo_array_count(a) : 0;
    mlo_text *t = &x->e->t;
    for (int64_t i = 0; i < n; i++)
        mlo_printf(t, "%d,%s", (int)mlo_get(a, i), (i + 1) % 20 ? "" : "\n");
    if (n % 20 || !n) mlo_puts(t, n ? "\n" : "0\n");
}
static void mlo_example_past_keys(void *user) { mlo_example_kept((mlo_example *)user, 0); }
static void mlo_example_past_values(void *user) { mlo_example_kept((mlo_example *)user, 1); }
static void mlo_example_kept_keys(void *user) { mlo_example_kept((mlo_example *)user, 2); }
static void mlo_example_kept_values(void *user) { mlo_example_kept((mlo_example *)user, 3); }

static const char *mlo_example_jobs(mlo *m, const mlo_bench_words *w) {
    const char *list = "";
    for (int64_t i = 0; i < w->n_order && list; i++)
        list = mlo_format(m, "%s%s{ %lld, %lld, %lld, 0 }", list, i ? ", " : "",
            (long long)w->order[i].slot, (long long)w->order[i].start,
            (long long)w->order[i].tokens);
    return list;
}

/* Of no number a list that C takes. */
static const char *mlo_border_floats(mlo *m, const mlo_border *b) {
    return b->n ? mlo_border_numbers(m, b, "f") : "0";
}

/* host/mlo_frame.c */
static int mlo_emit_example(
    mlo_emitter *e, const mlo_border border[MLO_BORDERS], const mlo_bench_words *w) {
    mlo_example x = { e, w };
    const mlo_core *c = e->c;
    const mlo_border *before = &border[MLO_BORDER_IN], *around = &border[MLO_BORDER_MEMORY],
                     *behind = &border[MLO_BORDER_OUT];
    const mlo_hole holes[] = {
        { "MASK", c->masked ? "" : NULL, NULL },
        { "NO_MASK", c->masked ? NULL : "", NULL },
        { "REPLAY", c->replay >= 0 ? "" : NULL, NULL },
        { "NO_REPLAY", c->replay >= 0 ? NULL : "", NULL },
        { "REPLAY_MASK", c->replay_masked ? "" : NULL, NULL },
        { "NO_REPLAY_MASK", c->replay_masked ? NULL : "", NULL },
        { "JOBS", c->slots ? "" : NULL, NULL },
        { "NO_JOBS", c->slots ? NULL : "", NULL },
        { "IN", NULL, mlo_example_in },
        { "MASK_BYTES", NULL, c->masked ? mlo_example_mask : NULL },
        { "OUT", NULL, mlo_example_out },
        { "MEMORY_WORDS", NULL, c->replay >= 0 ? mlo_example_memory : NULL },
        { "MEMORY_MASK", NULL, c->replay_masked ? mlo_example_memory_mask : NULL },
        { "GIVEN", c->given ? "" : NULL, NULL },
        { "PAST_KEYS", NULL, c->given ? mlo_example_past_keys : NULL },
        { "PAST_VALUES", NULL, c->given ? mlo_example_past_values : NULL },
        { "KEPT_KEYS", NULL, c->given ? mlo_example_kept_keys : NULL },
        { "KEPT_VALUES", NULL, c->given ? mlo_example_kept_values : NULL },
        { "JOB_LIST", mlo_example_jobs(e->m, w), NULL },
        { "BEFORE", mlo_border_floats(e->m, before), NULL },
        { "AROUND", mlo_border_floats(e->m, around), NULL },
        { "BEHIND", mlo_border_floats(e->m, behind), NULL },
        { "N_BEFORE", mlo_integer(e->m, before->n), NULL },
        { "N_AROUND", mlo_integer(e->m, around->n), NULL },
        { "N_BEHIND", mlo_integer(e->m, behind->n), NULL },
        { NULL, NULL, NULL },
    };
    return mlo_emit_shared(e, "host/mlo_frame.c", holes, &x);
}

/* A border as the driver's header has it: { scale, low, high, bytes }. */
static const char *mlo_border_c(mlo *m, const mlo_border *b) {
    const mlo_border one = { NULL, 0, 0, 0, 0, { b->scale }, 1, NULL };
    return mlo_format(m, "{ %s, %lld, %lld, %d }", mlo_border_numbers(m, &one, "f"),
        (long long)b->low, (long long)b->high, b->bytes);
}

static int mlo_emit_driver(
    mlo_emitter *e, const mlo_border border[MLO_BORDERS], const mlo_bench_words *w) {
    mlo *m = e->m;
    const mlo_core *c = e->c;
    const int64_t channels = e->h ? 1 : c->channels, lanes = e->h ? 1 : c->lanes;
    const int64_t made = mlo_out_bytes(e);
    const int64_t said = mlo_emit_says(e) || e->tail ? made : 0; /* once a frame */
    int64_t longest = 0; /* tokens of a part of the frame */
    for (int64_t i = 0; i < w->n_order; i++) longest = mlo_max(longest, w->order[i].tokens);
    const unsigned long long cache = (unsigned long long)(c->slots << 24
        | (c->slots ? c->keys : 0));
    const mlo_port *kv = c->given ? mlo_kv_keys(c) : NULL;
    const int64_t beat = c->axi_bits / 8;
    const mlo_hole none[] = { { NULL, NULL, NULL } };
    const mlo_hole given[] = { { "GIVEN", kv ? "" : NULL, NULL }, { NULL, NULL, NULL } };
    const mlo_hole holes[] = {
        { "VERSION", MLO_VERSION, NULL },
        { "ITERATIONS", mlo_integer(m, c->scan.iterations), NULL },
        { "TOKENS", mlo_integer(m, c->chunk), NULL },
        { "CHANNELS", mlo_integer(m, channels), NULL },
        { "WORD_BYTES", mlo_integer(m, border[MLO_BORDER_IN].bytes), NULL },
        { "BEAT_BYTES", mlo_integer(m, lanes * border[MLO_BORDER_IN].bytes), NULL },
        { "LANES", mlo_integer(m, lanes), NULL },
        { "BITS", mlo_integer(m, e->h ? 32 : c->bits), NULL },
        { "SAID_BYTES", mlo_integer(m, said), NULL },
        { "MADE_BYTES", mlo_integer(m, made), NULL },
        { "FRAMES", mlo_integer(m, c->frames), NULL },
        { "CACHE", mlo_format(m, "%08llX", cache), NULL },
        { "KV_MEMORY", c->dram ? "1" : "0", NULL },
        { "GIVEN", kv ? "" : NULL, NULL },
        { "KV_PAST", mlo_integer(m, c->keys - c->chunk), NULL },
        { "KV_POSITIONS", mlo_integer(m, c->keys), NULL },
        { "KV_CHANNELS", mlo_integer(m, kv ? kv->channels : 0), NULL },
        { "KV_ROW_BYTES", mlo_integer(m, mlo_kv_row(c) * beat), NULL },
        { "KV_USED_BYTES", mlo_integer(m, kv ? beat - beat % kv->lanes : 0), NULL },
        { "PARAMETER_BYTES", mlo_integer(m, mlo_image_bytes(e)), NULL },
        { "AXI_BYTES", mlo_integer(m, beat), NULL },
        { "INPUT", mlo_border_c(m, &border[MLO_BORDER_IN]), NULL },
        { "OUTPUT", mlo_border_c(m, &border[MLO_BORDER_OUT]), NULL },
        { "MEMORY", mlo_border_c(m, &border[MLO_BORDER_MEMORY]), NULL },
        { "TEST_BYTES",
            mlo_integer(m,
                mlo_max(said,
                    mlo_max(1, longest) * (said ? channels * border[MLO_BORDER_IN].bytes : made))),
            NULL },
        { NULL, NULL, NULL },
    };
    MLO_TRY(mlo_emit_shared(e, "host/mlo_driver.h", holes, NULL));
    MLO_TRY(mlo_emit_shared(e, "host/mlo_driver.c", given, NULL));
    MLO_TRY(mlo_emit_shared(e, "host/mlo_driver.py", none, NULL));
    return mlo_emit_example(e, border, w);
}
