/* emit, around: rtl/mlo_head.v: what is around a decoder's loop, or in front of an encoder's (--tokens);
 * rtl/mlo_tail.v: what is behind an encoder's.
 *
 * in:  their cores (core/around.c), that of the loop.
 * out: the text of share/rtl, its holes filled; kernels and what is between them as in a layer (top.c).
 *
 * invariant: no line depends on what was learned.
 */
/* What is written of a core that is not the loop's. */
static void mlo_around_as(mlo_emitter *e, mlo_core *around, void (*write)(mlo_emitter *e)) {
    mlo_core *loop = e->c;
    e->c = around;
    write(e);
    e->c = loop;
}
static void mlo_around_body(void *user) {
    mlo_emitter *e = (mlo_emitter *)user;
    mlo_around_as(e, e->h, mlo_emit_body);
}
static void mlo_tail_body(void *user) {
    mlo_emitter *e = (mlo_emitter *)user;
    mlo_around_as(e, e->tail, mlo_emit_body);
}

static void mlo_around_buses(void *user) {
    mlo_emitter *e = (mlo_emitter *)user;
    const int beat = e->c->lanes * e->c->bits;
    if (mlo_emit_says(e)) {
        mlo_emit_wires(e, "body", e->c->lanes * mlo_padded(e->c->bits));
        mlo_emit_wires(e, "result", 64 * mlo_emit_best(e));
        return;
    }
    static const char *const buses[] = { "entry", "body", "result", "leaving" };
    for (size_t i = 0; i < sizeof buses / sizeof *buses; i++) mlo_emit_wires(e, buses[i], beat);
}
static void mlo_around_reader(void *user) {
    mlo_emitter *e = (mlo_emitter *)user;
    mlo_emit_reader(e, mlo_core_readers(e->h));
}

/* What the loader brings, last one first. */
static const char *mlo_around_memories(mlo_emitter *e, mlo_core *around) {
    mlo_core *loop = e->c;
    e->c = around;
    const char *list = mlo_top_memories(e, 0);
    e->c = loop;
    return list;
}

static void mlo_tail_buses(void *user) {
    mlo_emitter *e = (mlo_emitter *)user;
    mlo_emit_wires(e, "body", e->c->lanes * mlo_padded(e->c->bits));
    mlo_emit_wires(e, "result", e->tail->lanes * e->tail->bits);
}

static int mlo_emit_tail(mlo_emitter *e) {
    mlo *m = e->m;
    const mlo_core *c = e->c, *t = e->tail;
    if (!t) return 0;
    const int readers = mlo_core_readers(t), memories = mlo_core_memories(t);
    const int64_t at = mlo_tail_offset(c);
    const int64_t loaded = mlo_core_beats_in(t, MLO_EITHER) * t->axi_bits / 8;
    const int io = c->lanes * mlo_padded(c->bits);
    const mlo_hole holes[] = {
        { "VERSION", MLO_VERSION, NULL },
        { "IO_MSB", mlo_integer(m, io - 1), NULL },
        { "WIDTH", mlo_integer(m, io), NULL },
        { "LANES", mlo_integer(m, c->lanes), NULL },
        { "TOKEN_BEATS", mlo_integer(m, c->channels / c->lanes), NULL },
        { "MADE_MSB", mlo_integer(m, t->lanes * mlo_padded(t->bits) - 1), NULL },
        { "MADE_CHANNELS", mlo_integer(m, t->channels), NULL },
        { "MADE_LANES", mlo_integer(m, t->lanes), NULL },
        { "MADE_BITS", mlo_integer(m, t->bits), NULL },
        { "AXI", mlo_integer(m, c->axi_bits), NULL },
        { "AXI_MSB", mlo_integer(m, c->axi_bits - 1), NULL },
        { "LOAD_OFFSET", mlo_integer(m, at), NULL },
        { "BLOCK_OFFSET", mlo_integer(m, at + loaded), NULL },
        { "READERS", mlo_integer(m, readers), NULL },
        { "READERS_MSB", mlo_integer(m, readers - 1), NULL },
        { "PORTS", mlo_integer(m, memories), NULL },
        { "PORTS_MSB", mlo_integer(m, memories - 1), NULL },
        { "STAT_MSB", mlo_integer(m, 3 * mlo_core_kernels(t) - 1), NULL },
        { "MEMORY_BEATS", mlo_around_memories(e, e->tail), NULL },
        { "BUSES", NULL, mlo_tail_buses },
        { "BODY", NULL, mlo_tail_body },
        { NULL, NULL, NULL },
    };
    return mlo_emit_shared(e, "rtl/mlo_tail.v", holes, e);
}

static int mlo_emit_around(mlo_emitter *e) {
    mlo *m = e->m;
    const mlo_core *c = e->c, *h = e->h;
    if (!h) return 0;
    MLO_TRY(mlo_emit_tail(e));
    const int readers = mlo_core_readers(h) + 1, memories = mlo_core_memories(h);
    const int kernels = mlo_core_kernels(h);
    const int64_t at = mlo_core_image_bytes(c);
    const int64_t loaded = mlo_core_beats_in(h, MLO_EITHER) * h->axi_bits / 8;
    const int io = c->lanes * mlo_padded(c->bits), says = mlo_emit_says(e);
    const mlo_hole holes[] = {
        { "VERSION", MLO_VERSION, NULL },
        { "HEAD", says ? "" : NULL, NULL },
        { "FRONT", says ? NULL : "", NULL },
        { "SAID_MSB", mlo_integer(m, 64 * mlo_max(1, mlo_emit_best(e)) - 1), NULL },
        { "SUM", says ? "m_rows" : "sum", NULL },
        { "COUNT", says ? "0" : "1", NULL },
        { "TYPES", mlo_integer(m, mlo_core_types(c)), NULL },
        { "BEAT_MSB", mlo_integer(m, c->lanes * c->bits - 1), NULL },
        { "UNUSED_USER", says ? ", result_tuser" : "", NULL },
        { "IO_MSB", mlo_integer(m, io - 1), NULL },
        { "WIDTH", mlo_integer(m, io), NULL },
        { "CHANNELS", mlo_integer(m, c->channels), NULL },
        { "LANES", mlo_integer(m, c->lanes), NULL },
        { "TOKEN_BEATS", mlo_integer(m, c->channels / c->lanes), NULL },
        { "IDS", mlo_integer(m, c->ids), NULL },
        { "ROWS", mlo_integer(m, c->ids + c->places), NULL },
        { "CONTEXT", mlo_integer(m, c->chunk), NULL },
        { "BITS", mlo_integer(m, c->bits), NULL },
        { "PLACES", c->places ? "" : NULL, NULL },
        { "NO_PLACES", c->places ? NULL : "", NULL },
        { "ROW_IDS", c->places ? "index" : "s_ids", NULL },
        { "ROW_OUT", c->places ? "row" : "m_rows", NULL },
        { "UNUSED_STRAY", c->places ? ", unused_stray" : "", NULL },
        { "ROW_STRAY", c->places ? "unused_stray" : "stray", NULL },
        { "AXI", mlo_integer(m, c->axi_bits), NULL },
        { "AXI_MSB", mlo_integer(m, c->axi_bits - 1), NULL },
        { "LOAD_OFFSET", mlo_integer(m, at), NULL },
        { "BLOCK_OFFSET", mlo_integer(m, at + loaded), NULL },
        { "ROWS_OFFSET", mlo_integer(m, at + mlo_core_image_bytes(h)), NULL },
        { "READERS", mlo_integer(m, readers), NULL },
        { "READERS_MSB", mlo_integer(m, readers - 1), NULL },
        { "PORTS", mlo_integer(m, memories), NULL },
        { "PORTS_MSB", mlo_integer(m, memories - 1), NULL },
        { "STAT_MSB", mlo_integer(m, 3 * kernels - 1), NULL },
        { "MEMORY_BEATS", mlo_around_memories(e, e->h), NULL },
        { "BUSES", NULL, mlo_around_buses },
        { "ROWS_READER", NULL, mlo_around_reader },
        { "BODY", NULL, mlo_around_body },
        { NULL, NULL, NULL },
    };
    return mlo_emit_shared(e, "rtl/mlo_head.v", holes, e);
}
