/* whole_write: what a build directory has of a model as a whole: model_whole, its parameters, its test.
 *
 * in:  the network of whole.c, planned; words of some frames, and what mlo makes of them.
 * out: around a loop in integers whole.c and real.h, and parts of model.h, weights.c and test.c (write.c has the
 *     rest); of floats alone a directory of its own.
 *
 * invariant: test.c compares floats within 1e-4 of the largest, whole numbers as they are; where golden arrays were
 *     given, with those.
 * example: mlo compile bert.onnx --target c --whole -o build && make -C build test
 * cost: the parameters' text.
 */

/* What composed so far becomes a text of its own. */
static const char *mlo_whole_text(mlo_emitter *e) {
    char *text = (char *)mlo_alloc(e->m, e->t.n + 1, 1);
    if (!text) return NULL;
    while (e->t.n && e->t.text[e->t.n - 1] == '\n') e->t.n--;
    if (e->t.n) memcpy(text, e->t.text, e->t.n);
    text[e->t.n] = 0;
    e->t.n = 0;
    return text;
}

static const mlo_flat_value *mlo_whole_output(const mlo_flat *f, size_t i) {
    return mlo_flat_of(f, f->g->output[i]->name);
}
static const mlo_flat_value *mlo_whole_input(const mlo_flat *f, size_t k) {
    for (size_t i = 0; i < f->n_value; i++)
        if (f->value[i]->in == (int)k && f->value[i]->name) return f->value[i];
    return NULL;
}

/* Arguments, three to a line; `between` stands between inputs and outputs. */
static const char *mlo_whole_streams(const mlo_flat_writer *w, const char *between) {
    mlo *m = w->e->m;
    const char *all = "";
    const size_t n_out = w->f->g->n_output;
    for (size_t k = 0; k < w->n_in + n_out; k++) {
        const int in = k < w->n_in;
        const size_t i = in ? k : k - w->n_in;
        const mlo_flat_value *v = in ? mlo_whole_input(w->f, i) : mlo_whole_output(w->f, i);
        all = mlo_format(m, "%s%s%s%s *%s%zu,%s", all, k == w->n_in ? between : "",
            in ? "const " : "", mlo_flat_c_type(v->dtype), in ? "in" : "out", i,
            k % 3 < 2 ? " " : "\n    ");
    }
    return all;
}
static const char *mlo_whole_signature(const mlo_flat_writer *w) {
    return mlo_format(w->e->m, "int model_whole(%s%s%svoid *arena, size_t arena_bytes)",
        w->tokens ? "model_cache *cache, " : "",
        mlo_whole_streams(w, w->tokens ? "int tokens, " : ""),
        w->f->tiled ? "void *memory, size_t memory_bytes,\n    " : "");
}

/* What one token takes, and is given: of each stream its numbers. */
static const char *mlo_whole_token_takes(const mlo_flat_writer *w) {
    return mlo_format(w->e->m, "model_cache *cache, %sunsigned char *a",
        mlo_whole_streams(w, mlo_format(w->e->m, "const int64_t *in%zu, ", w->n_in)));
}
static const char *mlo_whole_token_gives(const mlo_flat_writer *w) {
    mlo *m = w->e->m;
    const char *all = "cache, ";
    for (size_t k = 0; k < w->n_in; k++)
        all = mlo_format(m, "%sin%zu + (size_t)t * MODEL_IN%zu, ", all, k, k);
    all = mlo_format(m, "%s&position, ", all);
    for (size_t i = 0; i < w->f->g->n_output; i++)
        all = mlo_format(m, "%sout%zu + (size_t)t * MODEL_OUT%zu, ", all, i, i);
    return mlo_format(m, "%s(unsigned char *)arena", all);
}

/* ---- model.h ------------------------------------------------------------------------------------- */

static void mlo_whole_argument(
    mlo_flat_writer *w, const char *kind, size_t i, const char *name, const mlo_flat_value *v) {
    mlo *m = w->e->m;
    mlo_line(w->e, "#define MODEL_%s%zu %lld /* numbers of %s%zu, '%s' %s%s */",
        *kind == 'i' ? "IN" : "OUT", i, (long long)v->count, kind, i, mlo_flat_said(m, name),
        mlo_dims_text(m, v->rank, v->dims), w->tokens ? ", of a token" : "");
}
static void mlo_whole_arguments(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    for (size_t k = 0; k < w->n_in; k++) {
        const mlo_flat_value *v = mlo_whole_input(w->f, k);
        mlo_whole_argument(w, "in", k, v->name, v);
    }
    for (size_t i = 0; i < w->f->g->n_output; i++)
        mlo_whole_argument(w, "out", i, w->f->g->output[i]->name, mlo_whole_output(w->f, i));
}
static const char *mlo_whole_header(mlo_flat_writer *w) {
    mlo *m = w->e->m;
    const int around = w->f->core != NULL;
    const mlo_hole holes[] = {
        { "NEEDS", around ? "whole.c has it, which needs libm (-lm)." : "It needs libm (-lm).",
            NULL },
        { "EXAMPLE",
            mlo_format(m, "%s, .., %sout0%s%s", w->tokens ? "&cache, in0" : "in0",
                w->tokens ? "tokens, " : "", w->f->g->n_output > 1 ? ", .." : "",
                w->f->tiled ? ", memory, sizeof memory" : ""),
            NULL },
        { "EACH", mlo_guide_if(w->tokens > 0), NULL },
        { "ARENA", mlo_integer(m, mlo_flat_arena_bytes(w->f)), NULL },
        { "PROOF", w->f->tiled ? "parts of values, as --arena said" : mlo_plan_text(m, &w->f->plan),
            NULL },
        { "TILED", mlo_flat_if_tiled(w), NULL },
        { "MEMORY", mlo_integer(m, mlo_max(w->f->plan.bytes, MLO_PLAN_ALIGN)), NULL },
        { "AROUND", around ? " around the layers" : "", NULL },
        { "PARAMETERS", NULL, mlo_flat_members }, { "ARGUMENTS", NULL, mlo_whole_arguments },
        { "SIGNATURE", mlo_whole_signature(w), NULL }, { NULL, NULL, NULL }
    };
    return mlo_share_copy(&w->e->t, "c/whole.h", holes, w) ? NULL : mlo_whole_text(w->e);
}

/* ---- whole.c ---------------------------------------------------------------------------------------- */

static void mlo_whole_profile(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    const mlo_hole holes[] = { { "STEPS", NULL, mlo_flat_names }, { NULL, NULL, NULL } };
    if (!w->f->core) mlo_share_copy(&w->e->t, "c/steps.c", holes, w);
}
/* Inputs that nobody reads, then the calls. */
static void mlo_whole_body(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    for (size_t k = 0; k < w->n_in; k++) mlo_line(w->e, "    (void)in%zu;", k);
    mlo_flat_body(user);
}
static int mlo_whole_emit_code(mlo_flat_writer *w, const char *file) {
    static const char *const real[] = { "real.c", NULL };
    static const mlo_hole none[] = { { NULL, NULL, NULL } };
    mlo_emitter *e = w->e;
    mlo *m = e->m;
    const mlo_flat *f = w->f;
    int64_t largest = 0;
    for (int k = 0; k < f->plan.n; k++)
        largest = mlo_max(largest, f->plan.place[k].at + f->plan.place[k].bytes);
    const mlo_hole holes[] = { { "ABOUT",
                                   f->core ? "A model as a whole: what is around its layers, in "
                                             "floats, operator by operator."
                                           : "A network of floats, operator by operator.",
                                   NULL },
        { "PROFILED", mlo_guide_if(!f->core), NULL },
        { "PLAIN", mlo_guide_if(f->core != NULL), NULL }, { "TILED", mlo_flat_if_tiled(w), NULL },
        { "COPIES", NULL, mlo_flat_copies }, { "MEMORY", f->tiled ? "memory" : "arena", NULL },
        { "ROOM", f->tiled ? "MODEL_MEMORY_BYTES" : "MODEL_WHOLE_BYTES", NULL },
        { "LOOP", mlo_integer(m, f->core_bytes), NULL }, { "KERNELS", NULL, mlo_flat_kernels },
        { "LARGEST", mlo_integer(m, largest), NULL },
        { "BYTES", mlo_integer(m, mlo_flat_parameters_size(f)), NULL },
        { "SIGNATURE", mlo_whole_signature(w), NULL }, { "BODY", NULL, mlo_whole_body },
        { "STEPS", NULL, mlo_whole_profile }, { "EACH", mlo_guide_if(w->tokens > 0), NULL },
        { "ONCE", mlo_guide_if(!w->tokens), NULL },
        { "TAKES", w->tokens ? mlo_whole_token_takes(w) : "", NULL },
        { "GIVES", w->tokens ? mlo_whole_token_gives(w) : "", NULL },
        { "POSITION", mlo_format(m, "in%zu", w->n_in), NULL }, { NULL, NULL, NULL } };
    mlo_emit_c_lines(e, real);
    MLO_TRY(mlo_share_copy(&e->t, "c/number.h", none, w));
    MLO_TRY(mlo_file_text(e, "real.h"));
    MLO_TRY(mlo_share_copy(&e->t, "c/whole.c", holes, w));
    return mlo_file_text(e, file);
}

/* ---- test.c ------------------------------------------------------------------------------------------ */

static void mlo_whole_stream_words(mlo_flat_writer *w, const char *name, size_t k, size_t each,
    const mlo_array *words, mlo_dtype dtype) {
    mlo_line(w->e, "static const %s %s%zu[WHOLE_FRAMES][%lld] = {", mlo_flat_c_type(dtype), name, k,
        (long long)mlo_array_count(&words[k]));
    for (int64_t f = 0; f < w->frames; f++) {
        const mlo_array *a = &words[(size_t)f * each + k];
        mlo_puts(&w->e->t, "    { ");
        for (int64_t i = 0; i < mlo_array_count(a); i++) mlo_flat_word(&w->e->t, i, a, dtype);
        mlo_puts(&w->e->t, " },\n");
    }
    mlo_line(w->e, "};");
}
static void mlo_whole_words(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    const size_t n_out = w->f->g->n_output;
    for (size_t k = 0; k < w->n_in; k++)
        mlo_whole_stream_words(
            w, "whole_in", k, w->n_in, w->words, mlo_whole_input(w->f, k)->dtype);
    for (size_t i = 0; i < n_out; i++) {
        const mlo_flat_value *v = mlo_whole_output(w->f, i);
        mlo_whole_stream_words(w, "whole_golden", i, n_out, w->golden, v->dtype);
        mlo_line(w->e, "static %s whole_out%zu[%lld];", mlo_flat_c_type(v->dtype), i,
            (long long)mlo_array_count(&w->golden[i]));
    }
}
static void mlo_whole_compare(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    for (size_t i = 0; i < w->f->g->n_output; i++) {
        const mlo_flat_value *v = mlo_whole_output(w->f, i);
        mlo_line(w->e, "        NEAR(\"%zu\", %lld, whole_out%zu, whole_golden%zu[f], %s);", i,
            (long long)(v->count * mlo_max(w->tokens, 1)), i, i,
            v->dtype == MLO_FLOAT ? "TOLERANCE" : "0");
    }
}
static int64_t mlo_whole_total(const mlo_flat_writer *w) {
    int64_t total = 0;
    for (size_t i = 0; i < w->f->g->n_output; i++) total += mlo_whole_output(w->f, i)->count;
    return total * w->frames * mlo_max(w->tokens, 1);
}
static const char *mlo_whole_test(mlo_flat_writer *w) {
    mlo *m = w->e->m;
    const int each = w->tokens > 0;
    const char *call = each ? "&cache, " : "";
    for (size_t k = 0; k < w->n_in; k++)
        call = mlo_format(m, "%swhole_in%zu[f]%s, ", call, k,
            each ? mlo_format(m, " + at * MODEL_IN%zu", k) : "");
    if (each) call = mlo_format(m, "%scall[i], ", call);
    for (size_t i = 0; i < w->f->g->n_output; i++)
        call = mlo_format(m, "%s%swhole_out%zu%s", call, i ? ", " : "", i,
            each ? mlo_format(m, " + at * MODEL_OUT%zu", i) : "");
    if (w->f->tiled) call = mlo_format(m, "%s, memory, MODEL_MEMORY_BYTES", call);
    const mlo_hole holes[] = { { "WORDS", NULL, mlo_whole_words }, { "CALL", call, NULL },
        { "TILED", mlo_flat_if_tiled(w), NULL }, { "EACH", mlo_guide_if(each), NULL },
        { "ONCE", mlo_guide_if(!each), NULL }, { "FRAMES", mlo_integer(m, w->frames), NULL },
        { "COMPARE", NULL, mlo_whole_compare },
        { "TOTAL", mlo_integer(m, mlo_whole_total(w)), NULL },
        { "BODY", mlo_guide_if(w->f->core != NULL), NULL },
        { "ALONE", mlo_guide_if(!w->f->core), NULL }, { NULL, NULL, NULL } };
    return mlo_share_copy(&w->e->t, "c/whole_test.c", holes, w) ? NULL : mlo_whole_text(w->e);
}

/* ---- around a loop in integers ------------------------------------------------------------------------ */

/* Inputs as they are drawn, and what the model makes of them: the first frame shows the forms. */
static int mlo_whole_frame(mlo_flat_writer *w, int64_t k, mlo_array *words, mlo_array *golden) {
    mlo *m = w->e->m;
    mlo_flat *f = w->f;
    const mlo_observer none = { .user = NULL };
    size_t n;
    mlo_array **in = mlo_sample_inputs(m, MLO_BENCH_DRAW + k, &n);
    mlo_array **out = in ? (mlo_array **)mlo_scratch(m, f->g->n_output + 1, sizeof *out) : NULL;
    for (size_t i = 0; out && i < n; i++) mlo_array_keep(m, in[i], &words[i]);
    for (size_t i = 0; out && i < n; i++) words[i].name = in[i]->name;
    for (size_t i = 0; out && i < f->g->n_output; i++) out[i] = NULL;
    if (out && !m->error.code) {
        if (!k)
            mlo_whole_values(f, words, n);
        else
            mlo_run_model(m, words, n, &none, out);
        mlo_array **made = k ? out : f->result;
        for (size_t i = 0; i < f->g->n_output && !m->error.code; i++)
            mlo_array_keep(m, made[i], &golden[i]);
        for (size_t i = 0; made && i < f->g->n_output; i++) mlo_array_free(m, made[i]);
    }
    w->n_in = n;
    mlo_scratch_free(m, out);
    mlo_sample_free(m, in, n);
    return mlo_failed(m);
}
static int mlo_whole_frames(mlo_flat_writer *w) {
    mlo *m = w->e->m;
    const size_t n_out = w->f->g->n_output, n_in = w->f->g->n_input, n_calib = m->n_calib;
    mlo_array *words = MLO_NEW_N(m, mlo_array, MLO_C_FRAMES * n_in + 1);
    mlo_array *golden = MLO_NEW_N(m, mlo_array, MLO_C_FRAMES * n_out + 1);
    w->words = words;
    w->golden = golden;
    w->frames = MLO_C_FRAMES;
    m->n_calib = 0;
    for (int64_t k = 0; k < w->frames && !m->error.code; k++)
        mlo_whole_frame(w, k, words + (size_t)k * w->n_in, golden + (size_t)k * n_out);
    m->n_calib = n_calib;
    return mlo_failed(m);
}

/* The model that was lowered, as a whole, around its loop of a core: planned, and its texts. */
static int mlo_whole_around(mlo_emitter *e, int64_t loop_bytes, mlo_c_more *whole) {
    mlo *m = e->m;
    mlo_flat *f = MLO_NEW(m, mlo_flat);
    mlo_flat_writer *w = MLO_NEW(m, mlo_flat_writer);
    if (!f || !w) return mlo_failed(m);
    f->m = m;
    f->g = m->model->graph;
    f->real = 1;
    f->core = e->c;
    f->core_bytes = loop_bytes;
    w->e = e;
    w->f = f;
    w->loop.rounds = 1;
    MLO_TRY(mlo_whole_frames(w));
    if (e->c->slots) {
        mlo_ordered order[MLO_BENCH_JOBS];
        w->tokens = order[mlo_bench_orders(e->c, order) - 1].start + 1;
        MLO_TRY(mlo_token_values(f, w->n_in));
    }
    MLO_TRY(mlo_whole_steps(f));
    MLO_TRY(mlo_flat_plan(f));
    w->loop = mlo_flat_find_loop(f);
    if (!(whole->header = mlo_whole_header(w)) || !(whole->test = mlo_whole_test(w)))
        return mlo_failed(m);
    whole->writer = w;
    whole->weights = mlo_flat_weights;
    whole->weights_bytes = mlo_flat_parameters_size(f);
    whole->signature = mlo_whole_signature(w);
    whole->bytes = mlo_max(f->plan.bytes, MLO_PLAN_ALIGN);
    whole->numbers = mlo_whole_total(w);
    return 0;
}

/* ---- of floats alone ------------------------------------------------------------------------------------ */

static void mlo_whole_floats_arena(void *user) {
    mlo_c_write_arena(((mlo_flat_writer *)user)->e, 0);
}
static int mlo_whole_manifest(mlo_flat_writer *w) {
    mlo_emitter *e = w->e;
    const mlo_flat *f = w->f;
    mlo_line(e, "{\n  \"mlo\": \"%s\",\n  \"target\": \"c\",\n  \"iterations\": 1,", MLO_VERSION);
    if (f->tiled)
        mlo_flat_manifest_tiles(w);
    else
        mlo_c_manifest_plan(e, &f->plan);
    for (size_t i = 0; i < f->n_step; i++)
        mlo_c_manifest_node(e, (int)i,
            *mlo_or_empty(f->step[i].node->name) ? f->step[i].node->name : f->step[i].node->op);
    mlo_puts(&e->t, f->n_step ? "],\n" : "  \"nodes\": [],\n");
    mlo_line(e,
        "  \"frames\": %lld,\n  \"words\": %lld,\n  \"steps\": %zu,\n  \"tolerance\": 1e-4,\n  "
        "\"loop\": {\"start\": %zu, \"steps\": %zu, \"rounds\": %zu},",
        (long long)w->frames, (long long)mlo_whole_total(w), f->n_step, w->loop.start,
        w->loop.length, w->loop.rounds);
    return mlo_manifest_end(e);
}
static int mlo_whole_files(mlo_flat_writer *w) {
    mlo_emitter *e = w->e;
    const char *header = mlo_whole_header(w), *test = header ? mlo_whole_test(w) : NULL;
    const mlo_hole holes[] = { { "WHOLE", header, NULL }, { NULL, NULL, NULL } };
    const mlo_hole tested[] = { { "WHOLE", test, NULL },
        { "PAINTED", NULL, mlo_whole_floats_arena }, { NULL, NULL, NULL } };
    if (!test || mlo_share_copy(&e->t, "c/floats.h", holes, w)) return mlo_failed(e->m);
    MLO_TRY(mlo_file_text(e, "model.h"));
    MLO_TRY(mlo_whole_emit_code(w, "model.c"));
    MLO_TRY(mlo_flat_emit_weights(w));
    MLO_TRY(mlo_share_copy(&e->t, "c/floats_test.c", tested, w));
    MLO_TRY(mlo_file_text(e, "test.c"));
    MLO_TRY(mlo_emit_c_make(e, MLO_C_FLOATS));
    MLO_TRY(mlo_flat_emit_network(w));
    return mlo_whole_manifest(w);
}

/* Golden floats are as many as the output has. */
static int mlo_whole_golden_fits(mlo_flat_writer *w, size_t i, const mlo_array *a) {
    const mlo_array *own = w->f->result[i];
    return mlo_array_count(a) == mlo_array_count(own)
        ? 0
        : mlo_fail_at(w->e->m, MLO_E_SHAPE, w->f->g->output[i]->name,
              "the golden array has %lld numbers, not %lld", (long long)mlo_array_count(a),
              (long long)mlo_array_count(own));
}

/* A network of floats as it stands: --whole where words were given. */
static int mlo_whole_network(mlo_flat_writer *w, const mlo_array *bound, size_t count) {
    mlo_flat *f = w->f;
    f->real = 1;
    w->words = bound;
    w->n_in = count;
    w->frames = 1;
    MLO_TRY(mlo_whole_values(f, bound, count));
    MLO_TRY(mlo_whole_steps(f));
    MLO_TRY(mlo_flat_plan(f));
    MLO_TRY(mlo_flat_room(f));
    MLO_TRY(mlo_flat_golden_by(w, mlo_whole_golden_fits));
    w->loop = mlo_flat_find_loop(f);
    return mlo_whole_files(w);
}
