/* write: a build directory of C.
 *
 * in:  a lowered model.
 * out: model.c, model.h, exact.h, weights.c (or weights.bin and weights.S), test.c, a Makefile, host/, README.md,
 *     manifest.json last.
 *
 * invariant: everything learned is in weights.c, test.c and host/; model.c depends on shapes and widths.
 * example: mlo compile bert.onnx --target c -o build && make -C build test
 * cost: one layer's parameters in memory at a time.
 */

/* Is the mask of attention, the encoder's output, its mask an argument? */
static int mlo_c_crossed(const mlo_core *c) { return c->replay >= 0; }

/* model_run, up to its parameter list's end. */
static const char *mlo_c_signature(const mlo_emitter *e) {
    const mlo_core *c = e->c;
    mlo *m = e->m;
    const char *word = mlo_c_type(
        mlo_form_of(mlo_value_of(c->scan.body, c->scan.body->input[0]->name)).dtype);
    return mlo_format(m,
        "int model_run(%sconst %s *in, int tokens%s%s%s, %s *out, void *arena, size_t arena_bytes)",
        c->slots ? "model_cache *cache, " : "", word, c->masked ? ", const uint8_t *mask" : "",
        mlo_c_crossed(c) ? mlo_format(m, ",\n    const %s *memory, int memory_tokens",
                               mlo_c_type(c->element[c->replay].site.out.dtype))
                         : "",
        c->replay_masked ? ", const uint8_t *memory_mask" : "", word);
}

/* What the layer takes, as declared and as given. */
static const char *mlo_c_layer_takes(const mlo_emitter *e) {
    const mlo_core *c = e->c;
    return mlo_format(e->m, "unsigned char *a, const model_layer *p, int n%s%s%s%s",
        c->slots        ? ", model_cache *cache, int l, int at"
            : c->masked ? ", const uint8_t *mask"
                        : "",
        mlo_c_crossed(c) ? ",\n    const " : "",
        mlo_c_crossed(c) ? mlo_format(e->m, "%s *memory, int memory_tokens",
                               mlo_c_type(c->element[c->replay].site.out.dtype))
                         : "",
        c->replay_masked ? ", const uint8_t *memory_mask" : "");
}
static const char *mlo_c_layer_given(const mlo_emitter *e) {
    const mlo_core *c = e->c;
    return mlo_format(e->m, "a, &model_layers[l], %s%s%s",
        c->slots ? "1, cache, l, cache->tokens" : "tokens", c->masked && !c->slots ? ", mask" : "",
        c->replay_masked       ? ", memory, memory_tokens, memory_mask"
            : mlo_c_crossed(c) ? ", memory, memory_tokens"
                               : "");
}

/* The body of model_run: tokens in, the layer for each layer, tokens out. */
static void mlo_c_run(void *user) {
    mlo_c_writer *w = (mlo_c_writer *)user;
    mlo_emitter *e = w->e;
    const mlo_c_value *in = &w->b->value[0];
    const long long at = (long long)w->b->plan.place[0].at;
    const long long bytes = (long long)(in->channels * (int64_t)mlo_dtype_size(in->dtype));
    const char *loop = mlo_format(e->m, "for (int l = 0; l < model_depth; l++)%s layer(%s);",
        e->c->every ? " {\n       " : "", mlo_c_layer_given(e));
    if (mlo_c_crossed(e->c))
        mlo_line(e, "    if (memory_tokens < 1 || memory_tokens > %lld) return MODEL_E_TOKENS;",
            (long long)mlo_replay_frame(e->c));
    if (!e->c->slots) {
        mlo_line(e, "    if (tokens < 1 || tokens > MODEL_TOKENS) return MODEL_E_TOKENS;");
        mlo_line(e, "    memcpy(a + %lld, in, (size_t)tokens * %lld);\n    %s", at, bytes, loop);
        mlo_line(e,
            e->c->every
                ? "        memcpy(out + (size_t)l * (size_t)tokens * MODEL_CHANNELS, a + %lld, "
                  "(size_t)tokens * %lld);\n    }"
                : "    memcpy(out, a + %lld, (size_t)tokens * %lld);",
            at, bytes);
        return;
    }
    mlo_line(e,
        "    if (tokens < 1 || cache->tokens < 0 || tokens > MODEL_TOKENS - cache->tokens) return "
        "MODEL_E_TOKENS;");
    mlo_line(e, "    for (int t = 0; t < tokens; t++, cache->tokens++) {");
    mlo_line(e, "        memcpy(a + %lld, in + (size_t)t * MODEL_CHANNELS, %lld);", at, bytes);
    if (e->c->masked) mlo_line(e, "        cache->mask[cache->tokens] = mask[t];");
    mlo_line(e, "        %s", loop);
    mlo_line(
        e, "        memcpy(out + (size_t)t * MODEL_CHANNELS, a + %lld, %lld);\n    }", at, bytes);
}

/* ---- model.h ---------------------------------------------------------------------- */

static void mlo_c_write_layer(void *user) {
    mlo_c_writer *w = (mlo_c_writer *)user;
    mlo_c_members(w->e, w->params, 0);
}
static void mlo_c_write_shared(void *user) {
    mlo_c_writer *w = (mlo_c_writer *)user;
    mlo_c_members(w->e, w->params, 1);
}
static void mlo_c_write_cache(void *user) {
    mlo_c_writer *w = (mlo_c_writer *)user;
    const mlo_core *c = w->e->c;
    static const char kinds[] = "qkv";
    if (!c->slots) return;
    mlo_line(w->e,
        "\n/* A sequence so far: how many tokens (0 to begin with), and their keys and values. */");
    mlo_line(w->e, "typedef struct {\n    int tokens;");
    if (c->masked) mlo_line(w->e, "    uint8_t mask[MODEL_TOKENS];");
    for (int i = 0; i < c->n_element; i++)
        for (int k = 1; k < 3 && mlo_is_kernel(c->element[i].node, MLO_KERNEL_ATTENTION); k++)
            mlo_line(w->e, "    %s %s_%c[MODEL_LAYERS][MODEL_TOKENS][%lld];",
                mlo_c_type(c->element[i].site.in[k].dtype), c->element[i].name, kinds[k],
                (long long)mlo_last_dim(&c->element[i].site.in[k]));
    mlo_line(w->e, "} model_cache;");
}

static const char *mlo_c_scale(mlo *m, const char *name, const mlo_border *b) {
    return b->floats ? mlo_format(m, "#define MODEL_%s_SCALE %sf /* a word's 1 */\n", name,
                           mlo_number_text(m, b->scale))
                     : "";
}

static const char *mlo_c_about(const mlo_emitter *e) {
    return e->c->slots ? "A decoder: each call goes on where the last one ended, with the keys and "
                         "values in its cache."
                       : "An encoder: a call takes a frame of tokens.";
}

static int mlo_emit_c_header(mlo_c_writer *w, const mlo_border *border) {
    mlo_emitter *e = w->e;
    mlo *m = e->m;
    const mlo_core *c = e->c;
    const mlo_hole holes[] = { { "ABOUT", mlo_format(m, "%s", mlo_c_about(e)), NULL },
        { "EXAMPLE",
            mlo_format(m, "%sin, tokens, %s%s%sout", c->slots ? "&cache, " : "",
                c->masked ? "mask, " : "", mlo_c_crossed(c) ? "memory, memory_tokens, " : "",
                c->replay_masked ? "memory_mask, " : ""),
            NULL },
        { "LAYERS", mlo_integer(m, c->scan.iterations), NULL },
        { "TOKENS", mlo_integer(m, c->chunk), NULL },
        { "TOKENSARE",
            mlo_format(m, "%s", c->slots ? "of a sequence, at most" : "of a frame, at most"),
            NULL },
        { "CHANNELS", mlo_integer(m, c->channels), NULL }, { "EVERY", c->every ? "" : NULL, NULL },
        { "ARENA", mlo_integer(m, w->b->plan.bytes), NULL },
        { "PROOF", mlo_format(m, "%s", mlo_c_fit_text(m, w->b)), NULL },
        { "SCALES",
            mlo_format(m, "%s%s%s", mlo_c_scale(m, "IN", &border[MLO_BORDER_IN]),
                mlo_c_scale(m, "OUT", &border[MLO_BORDER_OUT]),
                mlo_c_scale(m, "MEMORY", &border[MLO_BORDER_MEMORY])),
            NULL },
        { "LAYER", NULL, mlo_c_write_layer }, { "SHARED", NULL, mlo_c_write_shared },
        { "CACHE", NULL, mlo_c_write_cache },
        { "SIGNATURE", mlo_format(m, "%s", mlo_c_signature(e)), NULL },
        { "WHOLE", w->whole.header, NULL }, { NULL, NULL, NULL } };
    MLO_TRY(mlo_share_copy(&e->t, "c/model.h", holes, w));
    return mlo_file_text(e, "model.h");
}

static int mlo_emit_c_model(mlo_c_writer *w) {
    mlo_emitter *e = w->e;
    mlo *m = e->m;
    int64_t largest = 0;
    for (int k = 0; k < w->b->plan.n; k++)
        largest = mlo_max(largest, w->b->plan.place[k].at + w->b->plan.place[k].bytes);
    const mlo_hole holes[] = { { "ABOUT", mlo_format(m, "%s", mlo_c_about(e)), NULL },
        { "TYPES", NULL, mlo_c_types }, { "KERNELS", NULL, mlo_c_kernels },
        { "LARGEST", mlo_integer(m, largest), NULL },
        { "LAYER_BYTES", mlo_integer(m, mlo_c_struct_size(mlo_c_struct_bytes(w->params, 0))),
            NULL },
        { "SHARED_BYTES", mlo_integer(m, mlo_c_struct_size(mlo_c_struct_bytes(w->params, 1))),
            NULL },
        { "PARAMETERS", mlo_format(m, "%s", mlo_c_layer_takes(e)), NULL },
        { "BODY", NULL, mlo_c_layer }, { "STEPS", NULL, mlo_c_steps },
        { "SIGNATURE", mlo_format(m, "%s", mlo_c_signature(e)), NULL }, { "RUN", NULL, mlo_c_run },
        { NULL, NULL, NULL } };
    MLO_TRY(mlo_share_copy(&e->t, "c/model.c", holes, w));
    return mlo_file_text(e, "model.c");
}

/* What kernels and operators compute, word for word what mlo is compiled with. */
static void mlo_emit_c_lines(mlo_emitter *e, const char *const *order) {
    for (int k = 0; order[k]; k++)
        for (int i = 0; i < MLO_N_EXACT; i++)
            for (const char *const *line = mlo_exact[i].lines;
                mlo_eq(mlo_exact[i].name, order[k]) && *line; line++)
                mlo_line(e, "%s", *line);
}
static int mlo_emit_c_exact(mlo_emitter *e, const char *const *order) {
    mlo_emit_c_lines(e, order);
    return mlo_file_text(e, "exact.h");
}

/* What there is: a loop in integers or a network of them, what is around it too, a network of floats. */
enum { MLO_C_INTEGERS, MLO_C_AROUND, MLO_C_FLOATS };

/* How its test is built, what counts its cycles, and what that begins with where there is no operating system. */
static int mlo_emit_c_make(mlo_emitter *e, int kind) {
    static const mlo_hole none[] = { { NULL, NULL, NULL } };
    static const char *const headers[] = { "model.h exact.h profile.h",
        "model.h exact.h real.h profile.h", "model.h real.h profile.h" };
    const char *whole = kind == MLO_C_AROUND ? " whole." : "";
    const char *weights = e->packed ? "weights.S" : "weights.c";
    const mlo_hole holes[] = { { "HEADERS", headers[kind], NULL },
        { "OBJECTS", mlo_format(e->m, "model.o%s%s weights.o test.o", whole, *whole ? "o" : ""),
            NULL },
        { "SOURCES", mlo_format(e->m, "model.c%s%s %s test.c", whole, *whole ? "c" : "", weights),
            NULL },
        { "PACKED", mlo_guide_if(e->packed), NULL },
        { "LIBS", kind == MLO_C_INTEGERS ? "" : " -lm", NULL }, { NULL, NULL, NULL } };
    MLO_TRY(mlo_share_copy(&e->t, "c/profile.h", none, e));
    MLO_TRY(mlo_file_text(e, "profile.h"));
    MLO_TRY(mlo_share_copy(&e->t, "c/bare.c", none, e));
    MLO_TRY(mlo_file_text(e, "bare.c"));
    MLO_TRY(mlo_share_copy(&e->t, "c/Makefile", holes, e));
    return mlo_file_text(e, "Makefile");
}

/* ---- test.c ----------------------------------------------------------------------- */

enum { MLO_C_FRAMES = 2, MLO_C_STREAMS = 5 };

/* Words of the test: input, mask, the encoder's output, its mask, golden. */
typedef struct {
    mlo_emitter *e;
    mlo_text text[MLO_C_STREAMS];
    const char *name[MLO_C_STREAMS];
    int64_t count[MLO_C_STREAMS]; /* words of a frame; 0: there are none */
    mlo_dtype dtype[MLO_C_STREAMS];
    mlo_array *golden; /* the model's outputs on the first frame */
    int64_t tokens; /* of a frame */
    int64_t frames;
    mlo_ordered order[MLO_BENCH_JOBS]; /* the calls */
    int64_t n_order;
} mlo_c_words;

static int mlo_c_see(
    void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *a) {
    mlo_c_words *w = (mlo_c_words *)user;
    if (iteration >= 0) return 0;
    for (size_t i = 0; i < g->n_output; i++)
        if (name == g->output[i]->name && !w->golden[i].data
            && mlo_array_keep(w->e->m, a, &w->golden[i]))
            return mlo_failed(w->e->m);
    for (int k = 0; k < MLO_C_STREAMS; k++) {
        if (name != w->name[k] || !w->count[k]) continue;
        w->dtype[k] = a->dtype;
        mlo_puts(&w->text[k], "    { ");
        for (int64_t i = 0; i < w->count[k]; i++) mlo_c_number(&w->text[k], i, mlo_get(a, i));
        mlo_puts(&w->text[k], " },\n");
    }
    return mlo_failed(w->e->m);
}

static int mlo_c_words_play(mlo_emitter *e, mlo_c_words *w) {
    const mlo_core *c = e->c;
    mlo *m = e->m;
    const mlo_observer see = { .user = w, .see = mlo_c_see };
    const size_t n_calib = m->n_calib;
    memset(w, 0, sizeof *w);
    w->e = e;
    w->tokens = w->order[0].tokens = c->chunk;
    w->n_order = 1;
    if (c->slots) w->n_order = mlo_bench_orders(c, w->order);
    if (c->slots) w->tokens = w->order[w->n_order - 1].start + 1;
    w->frames = c->slots ? 1 : MLO_C_FRAMES;
    const char *const names[] = { c->scan.node->input[0], mlo_intern(m, "mlo_mask"),
        mlo_replay_name(c), mlo_intern(m, mlo_memory_mask), c->scan.node->output[c->every] };
    const int64_t memory = mlo_c_crossed(c) ? mlo_replay_frame(c) : 0;
    const int64_t counts[] = { w->tokens * c->channels, c->masked ? w->tokens : 0,
        memory ? memory * mlo_replay_port(c).channels : 0, c->replay_masked ? memory : 0,
        w->tokens * mlo_core_times(c) * c->channels };
    for (int k = 0; k < MLO_C_STREAMS; k++) {
        w->text[k].m = m;
        w->name[k] = names[k];
        w->count[k] = counts[k];
    }
    if (!(w->golden = MLO_NEW_N(m, mlo_array, m->model->graph->n_output + 1))) return mlo_failed(m);
    m->n_calib = 0;
    for (int64_t k = 0; k < w->frames && !m->error.code; k++)
        mlo_sample_run(m, MLO_BENCH_DRAW + k, &see);
    m->n_calib = n_calib;
    m->golden = w->golden;
    return mlo_failed(m);
}

static void mlo_c_write_words(void *user) {
    mlo_c_words *w = (mlo_c_words *)user;
    static const char *const names[] = { "input", "mask", "memory", "memory_mask", "golden" };
    for (int k = 0; k < MLO_C_STREAMS; k++) {
        if (!w->count[k]) continue;
        mlo_line(w->e, "static const %s %s[FRAMES][%lld] = {", mlo_c_type(w->dtype[k]), names[k],
            (long long)w->count[k]);
        mlo_put(&w->e->t, mlo_or_empty(w->text[k].text), w->text[k].n);
        mlo_line(w->e, "};");
    }
}

/* A test's arena, and what says how much of it was written. */
static void mlo_c_write_arena(mlo_emitter *e, int own) {
    const mlo_hole holes[] = { { "ARENA", own ? "" : NULL, NULL }, { NULL, NULL, NULL } };
    mlo_share_copy(&e->t, "c/arena.c", holes, e);
    mlo_share_copy(&e->t, "c/print.c", holes, e);
}
static void mlo_c_words_arena(void *user) { mlo_c_write_arena(((mlo_c_words *)user)->e, 1); }

static int mlo_emit_c_test(mlo_emitter *e, mlo_c_words *w, const mlo_c_more *whole) {
    mlo *m = e->m;
    const mlo_core *c = e->c;
    const char *calls = "";
    for (int64_t i = 0; i < w->n_order; i++)
        calls = mlo_format(m, "%s%s%lld", calls, i ? ", " : "", (long long)w->order[i].tokens);
    const char *arguments = mlo_format(m,
        "%sinput[f] + at * MODEL_CHANNELS, call[i]%s%s%s, y + at * MODEL_CHANNELS",
        c->slots ? "&cache, " : "", c->masked ? ", mask[f] + at" : "",
        mlo_c_crossed(c) ? mlo_format(m, ", memory[f], %lld", (long long)mlo_replay_frame(c)) : "",
        c->replay_masked ? ", memory_mask[f]" : "");
    const mlo_hole holes[] = { { "FRAMES", mlo_integer(m, w->frames), NULL },
        { "TOKENS", mlo_integer(m, w->tokens), NULL },
        { "CALLS", mlo_integer(m, w->n_order), NULL }, { "CALL", mlo_format(m, "%s", calls), NULL },
        { "TIMES", c->every ? " * MODEL_TIMES" : "", NULL }, { "WORDS", NULL, mlo_c_write_words },
        { "PAINTED", NULL, mlo_c_words_arena },
        { "WORD", mlo_format(m, "%s", mlo_c_type(w->dtype[0])), NULL },
        { "STATE", c->slots ? "static model_cache cache;" : NULL, NULL },
        { "WHOLE", whole->test, NULL }, { "WHOLE_CALL", whole->test ? "" : NULL, NULL },
        { "ARGUMENTS", mlo_format(m, "%s", arguments), NULL }, { NULL, NULL, NULL } };
    MLO_TRY(mlo_share_copy(&e->t, "c/test.c", holes, w));
    return mlo_file_text(e, "test.c");
}

/* ---- the rest --------------------------------------------------------------------- */

/* What lies where, and when. */
static void mlo_c_manifest_places(mlo_emitter *e, const mlo_arena *plan) {
    mlo_puts(&e->t, "  \"places\": [");
    for (int k = 0, n = 0; k < plan->n; k++) {
        if (!plan->place[k].bytes) continue;
        mlo_printf(&e->t, "%s    {\"offset\": %lld, \"bytes\": %lld, \"steps\": \"",
            n++ ? ",\n" : "", (long long)plan->place[k].at, (long long)plan->place[k].bytes);
        for (int s = 0; s < plan->steps; s++) mlo_puts(&e->t, plan->place[k].live[s] ? "1" : "0");
        mlo_puts(&e->t, "\", \"what\": ");
        mlo_report_string(&e->t, mlo_or_empty(plan->place[k].what));
        mlo_puts(&e->t, "}");
    }
    mlo_puts(&e->t, "\n  ],\n");
}

/* The name of a step. */
static void mlo_c_manifest_node(mlo_emitter *e, int i, const char *name) {
    mlo_puts(&e->t, i ? ", " : "  \"nodes\": [");
    mlo_report_string(&e->t, mlo_or_empty(name));
}

/* How small the arena is, and what lies where in it. */
static void mlo_c_manifest_plan(mlo_emitter *e, const mlo_arena *plan) {
    mlo_line(e,
        "  \"arena_bytes\": %lld,\n  \"arena_bound\": %lld,\n  \"arena_proved\": %s,\n  "
        "\"arena_tries\": %lld,\n",
        (long long)mlo_max(plan->bytes, MLO_PLAN_ALIGN), (long long)plan->bound,
        mlo_plan_proved(plan) ? "true" : "false", (long long)plan->tries);
    mlo_c_manifest_places(e, plan);
}

/* Which elements go in blocks of how many tokens; nothing, if none does. */
static void mlo_c_manifest_blocks(mlo_emitter *e, const mlo_c_body *b) {
    const mlo_c_blocks *k = &b->blocks;
    int n = 0;
    for (int i = 0; i < k->n; i++) {
        if (!mlo_c_blocked(b, i)) continue;
        mlo_printf(&e->t, "%s    {\"start\": %d, \"steps\": %d, \"tokens\": %lld, \"what\": ",
            n++ ? ",\n" : "  \"blocks\": [\n", k->first[i], k->last[i] - k->first[i] + 1,
            (long long)k->rows[i]);
        mlo_report_string(&e->t, mlo_or_empty(mlo_c_chain_text(e->m, b, i)));
        mlo_puts(&e->t, "}");
    }
    if (n) mlo_puts(&e->t, "\n  ],\n");
}

static int mlo_emit_c_manifest(const mlo_c_writer *writer, const mlo_c_words *w) {
    mlo_emitter *e = writer->e;
    const mlo_c_body *b = writer->b;
    const mlo_core *c = e->c;
    mlo_line(e,
        "{\n  \"mlo\": \"%s\",\n  \"target\": \"c\",\n  \"iterations\": %lld,\n  \"tokens\": "
        "%lld,\n  \"channels\": %lld,",
        MLO_VERSION, (long long)c->scan.iterations, (long long)c->chunk, (long long)c->channels);
    mlo_c_manifest_plan(e, &b->plan);
    mlo_c_manifest_blocks(e, b);
    for (int i = 0; i < c->n_element; i++) mlo_c_manifest_node(e, i, c->element[i].name);
    mlo_puts(&e->t, "],\n");
    if (c->slots) mlo_line(e, "  \"context\": %lld,", (long long)c->chunk);
    if (writer->whole.header)
        mlo_line(e, "  \"whole\": {\"arena_bytes\": %lld, \"numbers\": %lld, \"tolerance\": 1e-4},",
            (long long)writer->whole.bytes, (long long)writer->whole.numbers);
    mlo_line(e, "  \"frames\": %lld,\n  \"words\": %lld,\n  \"inputs\": [", (long long)w->frames,
        (long long)(w->frames * w->count[4]));
    for (int k = 0, n = 0; k < MLO_C_STREAMS - 1; k++) {
        if (!w->count[k]) continue;
        mlo_puts(&e->t, n++ ? ", " : "");
        mlo_report_string(&e->t, w->name[k]);
    }
    mlo_line(e, "],");
    return mlo_manifest_end(e);
}

/* README.md */
static int mlo_emit_c_guide(const mlo_c_writer *w, const mlo_border *border) {
    mlo_emitter *e = w->e;
    const mlo_c_body *b = w->b;
    mlo *m = e->m;
    const mlo_core *c = e->c;
    const mlo_border *in = &border[MLO_BORDER_IN], *out = &border[MLO_BORDER_OUT];
    const mlo_hole holes[] = {
        { "WHAT",
            mlo_format(m, "%s in C", c->slots ? "A decoder's layers" : "A transformer's layers"),
            NULL },
        { "VERSION", MLO_VERSION, NULL },
        { "LAYERS", mlo_integer(m, c->scan.iterations), NULL },
        { "TOKENS", mlo_integer(m, c->chunk), NULL },
        { "CHANNELS", mlo_integer(m, c->channels), NULL },
        { "ARENA", mlo_integer(m, b->plan.bytes), NULL },
        { "PROOF", mlo_format(m, "%s", mlo_c_fit_text(m, b)), NULL },
        { "JOBS", c->slots ? "" : NULL, NULL },
        { "WHOLE", mlo_guide_if(w->whole.header != NULL), NULL },
        { "WHOLE_CACHE", mlo_guide_if(w->whole.header && c->slots), NULL },
        { "WHOLE_BYTES", mlo_integer(m, w->whole.bytes), NULL },
        { "WHOLE_SIGNATURE", mlo_or_empty(w->whole.signature), NULL },
        { "SIGNATURE", mlo_format(m, "%s", mlo_c_signature(e)), NULL },
        { "WEIGHTS", e->packed ? "weights.S" : "weights.c", NULL },
        { "PACKED", mlo_guide_if(e->packed), NULL },
        { "SCALED_IN", mlo_guide_if(in->floats != NULL), NULL },
        { "WORDS_IN", mlo_guide_if(!in->floats), NULL },
        { "SCALED_OUT", mlo_guide_if(out->floats != NULL), NULL },
        { "WORDS_OUT", mlo_guide_if(!out->floats && !out->steps), NULL },
        { "STEPS_OUT", mlo_guide_if(out->steps != NULL), NULL },
        { "OUT_STEPS", mlo_or_empty(out->steps), NULL },
        { "IN_SCALE", mlo_guide_scale(m, in), NULL },
        { "OUT_SCALE", mlo_guide_scale(m, out), NULL },
        { "IN_LOW", mlo_integer(m, in->low), NULL },
        { "IN_HIGH", mlo_integer(m, in->high), NULL },
        { "FILES", NULL, mlo_guide_files },
        { NULL, NULL, NULL },
    };
    MLO_TRY(mlo_share_copy(&e->t, "guide/c.txt", holes, e));
    return mlo_file_text(e, "README.md");
}
