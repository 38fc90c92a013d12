/* emit, guide: README.md of a build directory: what it is, its ports, how to run it, its numbers, its files.
 *
 * in:  a core and its borders; the files so far.
 * out: the text of share/guide, its holes filled; a line that does not concern this core is left out.
 *
 * invariant: every number is the manifest's; the registers are those of host/mlo_regs.h.
 * example: "| a frame | 1 to 32 tokens of 64 channels; 1 in flight |"
 */

/* Modules are many, and the same in every build: they are counted. */
static int mlo_guide_counts(const char *name) {
    return (mlo_starts(name, "rtl/mlo_") && !mlo_eq(name, "rtl/mlo_top.v")
               && !mlo_eq(name, "rtl/mlo_core.v"))
        || mlo_starts(name, "tb/mlo_sim_");
}

static void mlo_guide_files(void *user) {
    mlo_emitter *e = (mlo_emitter *)user;
    unsigned long long bytes = 0;
    int modules = 0;
    for (size_t i = 0; i < e->n_done; i++) {
        const int counts = mlo_guide_counts(e->done[i].name);
        modules += counts;
        bytes += counts ? e->done[i].size : 0;
        if (!counts)
            mlo_line(e, "| `%s` | %llu |", e->done[i].name, (unsigned long long)e->done[i].size);
    }
    if (modules) mlo_line(e, "| %d modules, in `rtl/` and `tb/` | %llu |", modules, bytes);
}

static const char *mlo_guide_scale(mlo *m, const mlo_border *b) {
    return mlo_format(m, "%s", mlo_number_text(m, b->scale));
}

static const char *mlo_guide_what(const mlo_emitter *e) {
    return mlo_emit_says(e) ? "A decoder's core: token ids in, ids out"
        : e->tail     ? "An encoder's core: token ids in, what it makes of a text's first one out"
        : e->h        ? "An encoder's core: token ids in, its last hidden states out"
        : e->c->slots ? "A decoder's core, with its keys and values"
        : e->c->replay >= 0 ? "A decoder's core, beside an encoder"
        : e->c->masked      ? "A transformer's core, with a mask"
                            : "A transformer's core";
}

static const char *mlo_guide_layers(const mlo_emitter *e) {
    const long long n = (long long)e->c->scan.iterations;
    return e->unrolled ? mlo_format(e->m, "%lld, each in hardware of its own", n)
                       : mlo_format(e->m, "%lld, one after the other in one layer of hardware", n);
}

/* A line that is there, or is not. */
static const char *mlo_guide_if(int is) { return is ? "" : NULL; }

static int mlo_emit_guide(mlo_emitter *e, const mlo_border *border) {
    mlo *m = e->m;
    const mlo_core *c = e->c, *made = mlo_emit_made(e);
    const mlo_border *in = &border[MLO_BORDER_IN], *out = &border[MLO_BORDER_OUT];
    const mlo_port replay = mlo_replay_port(c);
    const int predicted = !e->unrolled, says = mlo_emit_says(e);
    const mlo_hole holes[] = {
        { "WHAT", mlo_format(m, "%s", mlo_guide_what(e)), NULL },
        { "VERSION", MLO_VERSION, NULL },
        { "LAYERS", mlo_format(m, "%s", mlo_guide_layers(e)), NULL },
        { "ITERATIONS", mlo_integer(m, c->scan.iterations), NULL },
        { "ENCODER", c->slots ? NULL : "", NULL },
        { "JOBS", c->slots ? "" : NULL, NULL },
        { "HEAD", mlo_emit_says(e) ? "" : NULL, NULL },
        { "STATES", mlo_guide_if(!says && !e->tail), NULL },
        { "TAIL", mlo_guide_if(e->tail != NULL), NULL },
        { "MADE_BITS", mlo_integer(m, mlo_out_bits(e)), NULL },
        { "MADE_CHANNELS", mlo_integer(m, made->channels), NULL },
        { "MADE_WORD", mlo_integer(m, made->bits), NULL },
        { "MADE_LANES", mlo_integer(m, made->lanes), NULL },
        { "TOKEN_IDS", e->h ? "" : NULL, NULL },
        { "NO_TOKEN_IDS", e->h ? NULL : "", NULL },
        { "TYPED", mlo_core_types(c) > 1 ? "; bits 31:24 are the token's type" : "", NULL },
        { "SO_MANY",
            mlo_emit_best(e) > 1
                ? mlo_format(
                      m, "; behind it those that follow, %d in all, a beat each", mlo_emit_best(e))
                : "",
            NULL },
        { "LAST_OF", mlo_emit_says(e) ? "job's" : "frame's", NULL },
        { "MASK", c->masked ? "" : NULL, NULL },
        { "REPLAY", c->replay >= 0 ? "" : NULL, NULL },
        { "REPLAY_MASK", c->replay_masked ? "" : NULL, NULL },
        { "KV", c->dram ? "" : NULL, NULL },
        { "TOKENS", mlo_integer(m, c->chunk), NULL },
        { "CHANNELS", mlo_integer(m, c->channels), NULL },
        { "FRAMES", mlo_integer(m, c->frames), NULL },
        { "SLOTS", mlo_integer(m, c->slots), NULL },
        { "BITS", mlo_integer(m, c->bits), NULL },
        { "WORD_BYTES", mlo_integer(m, in->bytes), NULL },
        { "LANES", mlo_integer(m, c->lanes), NULL },
        { "IO_BITS", mlo_integer(m, c->lanes * mlo_padded(c->bits)), NULL },
        { "TOKEN_BEATS", mlo_integer(m, c->channels / c->lanes), NULL },
        { "IDS", mlo_integer(m, c->ids), NULL },
        { "REPLAY_BITS", mlo_integer(m, replay.lanes * mlo_padded(replay.bits)), NULL },
        { "REPLAY_TOKENS", mlo_integer(m, c->replay >= 0 ? mlo_replay_frame(c) : 0), NULL },
        { "REPLAY_CHANNELS", mlo_integer(m, replay.channels), NULL },
        { "AXI", mlo_integer(m, c->axi_bits), NULL },
        { "AXI_BYTES", mlo_integer(m, c->axi_bits / 8), NULL },
        { "KV_GIVEN",
            c->given
                ? "; they are the model's own: what `given` names is written there before a job "
                  "begins, in front of its tokens, and what `kept` names is read there behind it"
                : "",
            NULL },
        { "KV_BYTES", mlo_integer(m, c->dram ? mlo_kv_bytes(c) : 0), NULL },
        { "MULTIPLIERS", mlo_integer(m, e->layers * mlo_core_multipliers(c)), NULL },
        { "INTERVAL", mlo_integer(m, mlo_core_interval(c)), NULL },
        { "PREDICTED", mlo_guide_if(predicted), NULL },
        { "CYCLES", mlo_integer(m, e->cycles), NULL },
        { "STEPS", mlo_guide_if(predicted && c->slots && !c->given), NULL },
        { "FIRST", mlo_integer(m, e->step[0]), NULL },
        { "LAST", mlo_integer(m, e->step[1]), NULL },
        { "PARAMETER_BYTES", mlo_integer(m, mlo_image_bytes(e)), NULL },
        { "SCALED_IN", mlo_guide_if(!e->h && in->floats), NULL },
        { "WORDS_IN", mlo_guide_if(!e->h && !in->floats), NULL },
        { "SCALED_OUT", mlo_guide_if(!says && out->floats), NULL },
        { "WORDS_OUT", mlo_guide_if(!says && !out->floats && !out->steps), NULL },
        { "STEPS_OUT", mlo_guide_if(out->steps != NULL), NULL },
        { "OUT_STEPS", mlo_or_empty(out->steps), NULL },
        { "SCALED_REPLAY", mlo_guide_if(c->replay >= 0 && border[MLO_BORDER_MEMORY].floats), NULL },
        { "IN_SCALE", mlo_guide_scale(m, in), NULL },
        { "OUT_SCALE", mlo_guide_scale(m, out), NULL },
        { "REPLAY_SCALE", mlo_guide_scale(m, &border[MLO_BORDER_MEMORY]), NULL },
        { "IN_LOW", mlo_integer(m, in->low), NULL },
        { "IN_HIGH", mlo_integer(m, in->high), NULL },
        { "IN_NAME", mlo_format(m, "%s", mlo_in_name(e)), NULL },
        { "OUT_NAME", mlo_format(m, "%s", mlo_out_name(e)), NULL },
        { "FILES", NULL, mlo_guide_files },
        { NULL, NULL, NULL },
    };
    MLO_TRY(mlo_share_copy(&e->t, "guide/verilog.txt", holes, e));
    return mlo_file_text(e, "README.md");
}
