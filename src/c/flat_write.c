/* flat_write: a build directory of C of a network of integers, as it stands.
 *
 * in:  a model, its inputs' words, golden outputs or none.
 * out: model.c, model.h, exact.h, weights.c (or weights.bin and weights.S), test.c, a Makefile, host/network.onnx,
 *     manifest.json last.
 *
 * invariant: test.c compares with the golden words that were given; with mlo's own only where none were.
 * example: mlo compile network.onnx --target c --inputs inputs.npz --golden outputs.npz -o build
 * cost: the model's evaluation; its parameters in memory.
 */
typedef struct {
    mlo_emitter *e;
    mlo_flat *f;
    const mlo_array *golden; /* one for each output */
    mlo_map told; /* functions whose text is there */
    mlo_flat_loop loop;
    int64_t frames; /* of the test of a model as a whole */
    const mlo_array *words; /* their inputs, frame by frame; `golden` has their outputs so */
    size_t n_in;
    int64_t tokens; /* of a frame, where they come in calls (token.c); or 0 */
} mlo_flat_writer;

/* ---- model.c ---------------------------------------------------------------------------------- */

/* Types that a text of share/c needs. */
static const char *mlo_flat_types_of(const char *text) {
    static const char *const types[][2] = { { "c/each.c", "c/grid.c" }, { "c/move.c", "c/moves.c" },
        { "c/product.c", "c/products.c" }, { "c/windows.c", "c/window.c" },
        { "c/patches.c", "c/window.c" }, { "c/pool.c", "c/window.c" },
        { "c/multiply.c", "c/matrices.c" }, { "c/convolve.c", "c/window.c" },
        { "c/mean.c", "c/window.c" }, { "c/combine.c", "c/axes.c" },
        { "c/take_nd.c", "c/takes.c" } };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (mlo_eq(text, types[i][0])) return types[i][1];
    return NULL;
}

/* A text, once under this name. */
static int mlo_flat_tell(
    mlo_flat_writer *w, const char *name, const char *text, const mlo_hole *holes) {
    mlo *m = w->e->m;
    const char *key = mlo_intern(m, name);
    if (!key || mlo_map_get(&w->told, key)) return mlo_failed(m);
    MLO_TRY(mlo_map_put(m, &w->told, key, w));
    mlo_puts(&w->e->t, "\n");
    return mlo_share_copy(&w->e->t, text, holes, w);
}

/* The type of a sum's factors. */
static const char *mlo_flat_factor(const mlo_flat_step *s) {
    return s->inner && mlo_flat_is_narrow(s->in[0]) && mlo_flat_is_narrow(s->in[1])
        ? "int16_t"
        : mlo_flat_c_type(s->sum);
}

/* Of a reduction: does it combine doubles? And what does it begin with? */
static int mlo_flat_is_real_sum(const mlo_flat_step *s) {
    return mlo_flat_operand_type(s, 0) == MLO_FLOAT;
}
static const char *mlo_flat_start(const mlo_flat_step *s) {
    const int real = mlo_flat_is_real_sum(s);
    if (!s->how) return "";
    return mlo_eq(s->how, "MLO_PRODUCT") ? "1"
        : mlo_eq(s->how, "MLO_LEAST")    ? (real ? "(double)INFINITY" : "INT64_MAX")
        : mlo_eq(s->how, "MLO_MOST")     ? (real ? "-(double)INFINITY" : "INT64_MIN")
                                         : "0";
}
/* The loop in integers: its streams, as its step takes them, and as model_run is given them. */
static const char *mlo_flat_takes_text(mlo *m, const mlo_flat_step *s, int takes) {
    const char *all = !*s->before ? "" : takes ? "model_cache *cache, " : s->before;
    if (!mlo_eq(s->text, "c/loop.c")) return "";
    for (int k = 0; k < s->n_in; k++) {
        const char *type = mlo_flat_c_type(s->in[k]->dtype), *comma = k ? ", " : "";
        all = takes ? mlo_format(m, "%s%sconst %s *x%d", all, comma, type, k)
                    : mlo_format(m, "%s%sx%d%s", all, comma, k, mlo_or_empty(s->given[k]));
    }
    return all;
}

static void mlo_flat_kernels(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    mlo *m = w->e->m;
    static const mlo_hole none[] = { { NULL, NULL, NULL } };
    for (size_t i = 0; i < w->f->n_step && !m->error.code; i++) {
        const mlo_flat_step *s = &w->f->step[i];
        const char *types = mlo_flat_types_of(s->text), *name = mlo_flat_name(m, s);
        const mlo_hole holes[] = { { "NAME", name, NULL },
            { "X", mlo_flat_c_type(mlo_flat_operand_type(s, 0)), NULL },
            { "A", mlo_flat_c_type(mlo_flat_operand_type(s, 1)), NULL },
            { "B", mlo_flat_c_type(mlo_flat_operand_type(s, 2)), NULL },
            { "M", mlo_flat_c_type(mlo_flat_operand_type(s, 3)), NULL },
            { "D", mlo_flat_c_type(mlo_flat_operand_type(s, 4)), NULL },
            { "S",
                !s->how                       ? mlo_flat_c_type(s->sum)
                    : mlo_flat_is_real_sum(s) ? "double"
                                              : "int64_t",
                NULL },
            { "P", mlo_flat_factor(s), NULL }, { "Y", mlo_flat_c_type(s->out->dtype), NULL },
            { "EXACT", mlo_or_empty(s->exact), NULL }, { "HOW", mlo_or_empty(s->how), NULL },
            { "START", mlo_flat_start(s), NULL },
            { "COMBINED", mlo_flat_is_real_sum(s) ? "mlo_real_combined" : "mlo_whole_combined",
                NULL },
            { "FINISH", mlo_or_empty(s->finish), NULL },
            { "TAKES", mlo_flat_takes_text(m, s, 1), NULL },
            { "GIVES", mlo_flat_takes_text(m, s, 0), NULL }, { NULL, NULL, NULL } };
        if (types) mlo_flat_tell(w, types, types, none);
        mlo_flat_tell(w, name, s->text, holes);
    }
}

static void mlo_flat_body(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    mlo *m = w->e->m;
    const mlo_flat *f = w->f;
    mlo_flat_tables l = { m, f, w->loop, { 0 }, 0, 0, &w->e->t };
    mlo_flat_calls(&l);
    for (size_t i = 0; i < f->g->n_output; i++) {
        const mlo_flat_value *v = mlo_flat_of(f, f->g->output[i]->name);
        if (v && v->out != (int)i)
            mlo_line(w->e, "    for (int i = 0; i < %lld; i++) out%zu[i] = (%s)[i];",
                (long long)v->count, i, mlo_flat_pointer(m, f, v, 0));
    }
}

/* A name as strings and comments can hold it: none ends there, none goes on behind a line's end. */
static const char *mlo_flat_said(mlo *m, const char *name) {
    enum { MOST = 200 };
    size_t n = strlen(name);
    if (n > MOST) n = MOST;
    char *said = (char *)mlo_alloc(m, n + 1, 1);
    if (!said) return "";
    for (size_t i = 0; i < n; i++)
        said[i] = strchr("\"\\?*", name[i]) || name[i] < ' ' || name[i] > '~' ? '_' : name[i];
    said[n] = 0;
    return said;
}

/* The names of all calls, for a profile: of a loop those of its first round. */
static void mlo_flat_names(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    const size_t again = w->loop.start + w->loop.length;
    const size_t end = w->loop.start + w->loop.length * w->loop.rounds;
    for (size_t i = 0; i < w->f->n_step; i++) {
        const mlo_flat_step *s = &w->f->step[i];
        if (i >= again && i < end) continue;
        mlo_line(w->e, "    { \"%s\", \"%s\", 0, 0 },",
            mlo_flat_said(w->e->m, mlo_or_empty(s->node->name)), mlo_flat_name(w->e->m, s));
    }
}

/* A line of a text that only a small arena has: what stands in front of it. */
static const char *mlo_flat_if_tiled(const mlo_flat_writer *w) { return w->f->tiled ? "" : NULL; }
static int64_t mlo_flat_arena_bytes(const mlo_flat *f) {
    return mlo_max(f->tiled ? f->tile_bytes : f->plan.bytes, MLO_PLAN_ALIGN);
}

static const char *mlo_flat_signature(mlo_flat_writer *w) {
    mlo *m = w->e->m;
    const mlo_flat *f = w->f;
    const char *all = "";
    for (size_t i = 0; i < f->n_value; i++)
        if (f->value[i]->in >= 0 && f->value[i]->name)
            all = mlo_format(m, "%sconst %s *in%d,\n    ", all, mlo_flat_c_type(f->value[i]->dtype),
                f->value[i]->in);
    for (size_t i = 0; i < f->g->n_output; i++)
        all = mlo_format(m, "%s%s *out%zu,\n    ", all,
            mlo_flat_c_type(mlo_flat_of(f, f->g->output[i]->name)->dtype), i);
    return mlo_format(m, "int model_run(%s%svoid *arena, size_t arena_bytes)", all,
        f->tiled ? "void *memory, size_t memory_bytes, " : "");
}

static void mlo_flat_copies(void *user) {
    static const mlo_hole none[] = { { NULL, NULL, NULL } };
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    if (w->f->tiled) mlo_share_copy(&w->e->t, "c/copy.c", none, w);
}

/* Bytes of all parameters, and of the number in front, without what is at the end. */
static int64_t mlo_flat_parameter_bytes(const mlo_flat *f) {
    int64_t bytes = MLO_C_GRAIN;
    for (size_t i = 0; i < f->n_parameter; i++)
        bytes += f->parameter[i]->count * (int64_t)mlo_dtype_size(f->parameter[i]->dtype);
    return bytes;
}
static int64_t mlo_flat_parameters_size(const mlo_flat *f) {
    return mlo_c_struct_size(mlo_flat_parameter_bytes(f));
}

static int mlo_flat_emit_model(mlo_flat_writer *w) {
    mlo *m = w->e->m;
    int64_t largest = 0;
    for (int k = 0; k < w->f->plan.n; k++)
        largest = mlo_max(largest, w->f->plan.place[k].at + w->f->plan.place[k].bytes);
    const mlo_hole none[] = { { NULL, NULL, NULL } };
    const mlo_hole holes[] = { { "NUMBERS", "#include \"numbers.h\"", NULL },
        { "COPIES", NULL, mlo_flat_copies }, { "WHOLE", w->f->tiled ? "memory" : "arena", NULL },
        { "ROOM", w->f->tiled ? "MODEL_MEMORY_BYTES" : "MODEL_ARENA_BYTES", NULL },
        { "TILED", mlo_flat_if_tiled(w), NULL }, { "KERNELS", NULL, mlo_flat_kernels },
        { "LARGEST", mlo_integer(m, largest), NULL },
        { "BYTES", mlo_integer(m, mlo_flat_parameters_size(w->f)), NULL },
        { "SIGNATURE", mlo_flat_signature(w), NULL }, { "BODY", NULL, mlo_flat_body },
        { "STEPS", NULL, mlo_flat_names }, { NULL, NULL, NULL } };
    MLO_TRY(mlo_share_copy(&w->e->t, "c/numbers.h", none, w));
    MLO_TRY(mlo_file_text(w->e, "numbers.h"));
    MLO_TRY(mlo_share_copy(&w->e->t, "c/network.c", holes, w));
    return mlo_file_text(w->e, "model.c");
}

/* ---- model.h, weights.c -------------------------------------------------------------------------- */

static void mlo_flat_arguments(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    mlo *m = w->e->m;
    const mlo_flat *f = w->f;
    for (size_t i = 0; i < f->n_value; i++)
        if (f->value[i]->in >= 0 && f->value[i]->name)
            mlo_line(w->e, "/* in%d: '%s' %s */", f->value[i]->in,
                mlo_flat_said(m, f->value[i]->name),
                mlo_dims_text(m, f->value[i]->rank, f->value[i]->dims));
    for (size_t i = 0; i < f->g->n_output; i++) {
        const mlo_flat_value *v = mlo_flat_of(f, f->g->output[i]->name);
        mlo_line(w->e, "/* out%zu: '%s' %s */", i, mlo_flat_said(m, f->g->output[i]->name),
            mlo_dims_text(m, v->rank, v->dims));
    }
}

/* Parameters, wide ones first: so nothing is padded. */
static void mlo_flat_each_parameter(
    mlo_flat_writer *w, void (*tell)(mlo_flat_writer *w, const mlo_flat_value *v)) {
    for (size_t size = 8; size; size /= 2)
        for (size_t i = 0; i < w->f->n_parameter; i++)
            if (mlo_dtype_size(w->f->parameter[i]->dtype) == size) tell(w, w->f->parameter[i]);
}
static void mlo_flat_member(mlo_flat_writer *w, const mlo_flat_value *v) {
    mlo_line(
        w->e, "    %s w%d[%lld];", mlo_flat_c_type(v->dtype), v->parameter, (long long)v->count);
}
static void mlo_flat_members(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    mlo_flat_each_parameter(w, mlo_flat_member);
    mlo_c_gap_member(w->e, mlo_flat_parameter_bytes(w->f));
}

/* A word of an array, as C writes it. */
static void mlo_flat_word(mlo_text *t, int64_t i, const mlo_array *a, mlo_dtype dtype) {
    enum { LINE = 24 };
    double real;
    int64_t whole;
    const char *at = (const char *)a->data + (size_t)i * mlo_dtype_size(a->dtype);
    if (i) mlo_puts(t, i % LINE ? ", " : ",\n");
    mlo_convert(MLO_DOUBLE, &real, a->dtype, at, 1);
    mlo_convert(MLO_INT64, &whole, a->dtype, at, 1);
    if (dtype == MLO_FLOAT && !(fabs(real) <= FLT_MAX))
        mlo_puts(t, real > 0 ? "INFINITY" : real < 0 ? "-INFINITY" : "NAN");
    else if (dtype == MLO_FLOAT) {
        char text[40];
        snprintf(text, sizeof text, "%.8ef", real);
        mlo_puts(t, mlo_pointed(text));
    } else if (whole == INT64_MIN)
        mlo_puts(t, "INT64_MIN");
    else
        mlo_printf(t, "%lld", (long long)whole);
}
/* The same as bytes. */
static void mlo_flat_word_bytes(mlo_text *t, int64_t i, const mlo_array *a, mlo_dtype dtype) {
    float real;
    uint32_t bits;
    int64_t whole;
    const char *at = (const char *)a->data + (size_t)i * mlo_dtype_size(a->dtype);
    mlo_convert(MLO_FLOAT, &real, a->dtype, at, 1);
    mlo_convert(MLO_INT64, &whole, a->dtype, at, 1);
    memcpy(&bits, &real, sizeof bits);
    mlo_c_low_bytes(t, dtype == MLO_FLOAT ? bits : (uint64_t)whole, mlo_dtype_size(dtype));
}

/* A parameter leaves memory part by part: as text it is four times as large as its numbers. */
static void mlo_flat_initial(mlo_flat_writer *w, const mlo_flat_value *v) {
    enum { MOST = 1 << 16 };
    mlo_emitter *e = w->e;
    mlo_puts(&e->t, e->packed ? "" : "    { ");
    for (int64_t i = 0; i < v->count && !e->m->error.code; i++) {
        if (e->packed)
            mlo_flat_word_bytes(&e->t, i, v->number, v->dtype);
        else
            mlo_flat_word(&e->t, i, v->number, v->dtype);
        if (e->t.n > MOST) mlo_c_flush(e);
    }
    mlo_puts(&e->t, e->packed ? "" : " },\n");
}
static int mlo_flat_weights(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    mlo_c_struct_begin(w->e, "\nconst model_parameters model_weights =", 1);
    mlo_flat_each_parameter(w, mlo_flat_initial);
    mlo_c_struct_end(w->e, ";", mlo_flat_parameter_bytes(w->f));
    return mlo_failed(w->e->m);
}

static int mlo_flat_emit_weights(mlo_flat_writer *w) {
    mlo_emitter *e = w->e;
    const mlo_c_piece pieces[] = { { "model_weights", mlo_flat_parameters_size(w->f) },
        { NULL, 0 } };
    MLO_TRY(mlo_c_pack(e, pieces->bytes));
    if (!e->packed) mlo_line(e, "/* What was learned. */\n#include \"model.h\"");
    if (!e->packed && w->f->real) mlo_line(e, "\n#include <math.h>");
    MLO_TRY(mlo_file_begin(e, mlo_c_weights_file(e)));
    return mlo_flat_weights(w) ? mlo_failed(e->m) : mlo_c_weights_end(e, pieces, 0);
}

static int mlo_flat_emit_header(mlo_flat_writer *w) {
    mlo *m = w->e->m;
    const mlo_hole holes[] = { { "EXAMPLE",
                                   mlo_format(m, "in0, .., out0%s%s",
                                       w->f->g->n_output > 1 ? ", .." : "",
                                       w->f->tiled ? ", memory, sizeof memory" : ""),
                                   NULL },
        { "ARENA", mlo_integer(m, mlo_flat_arena_bytes(w->f)), NULL },
        { "PROOF", w->f->tiled ? "parts of values, as --arena said" : mlo_plan_text(m, &w->f->plan),
            NULL },
        { "TILED", mlo_flat_if_tiled(w), NULL },
        { "MEMORY", mlo_integer(m, mlo_max(w->f->plan.bytes, MLO_PLAN_ALIGN)), NULL },
        { "PARAMETERS", NULL, mlo_flat_members }, { "ARGUMENTS", NULL, mlo_flat_arguments },
        { "SIGNATURE", mlo_flat_signature(w), NULL }, { NULL, NULL, NULL } };
    MLO_TRY(mlo_share_copy(&w->e->t, "c/network.h", holes, w));
    return mlo_file_text(w->e, "model.h");
}

/* ---- test.c ------------------------------------------------------------------------------------- */

static void mlo_flat_words(
    mlo_flat_writer *w, const char *name, int k, const mlo_array *a, mlo_dtype dtype) {
    mlo_line(w->e, "static const %s %s%d[%lld] = {", mlo_flat_c_type(dtype), name, k,
        (long long)mlo_array_count(a));
    for (int64_t i = 0; i < mlo_array_count(a); i++) mlo_flat_word(&w->e->t, i, a, dtype);
    mlo_line(w->e, "\n};");
}
static void mlo_flat_write_words(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    const mlo_flat *f = w->f;
    for (size_t i = 0; i < f->n_value; i++)
        if (f->value[i]->in >= 0 && f->value[i]->name)
            mlo_flat_words(w, "in", f->value[i]->in, f->value[i]->number, f->value[i]->dtype);
    for (size_t i = 0; i < f->g->n_output; i++) {
        const mlo_flat_value *v = mlo_flat_of(f, f->g->output[i]->name);
        mlo_flat_words(w, "golden", (int)i, &w->golden[i], v->dtype);
        mlo_line(
            w->e, "static %s out%zu[%lld];", mlo_flat_c_type(v->dtype), i, (long long)v->count);
    }
}
static void mlo_flat_write_compare(void *user) {
    mlo_flat_writer *w = (mlo_flat_writer *)user;
    for (size_t i = 0; i < w->f->g->n_output; i++)
        mlo_line(w->e, "    COMPARE(\"%zu\", out%zu, golden%zu)", i, i, i);
}

static int64_t mlo_flat_total(const mlo_flat_writer *w) {
    int64_t total = 0;
    for (size_t i = 0; i < w->f->g->n_output; i++) total += mlo_array_count(&w->golden[i]);
    return total;
}

static void mlo_flat_write_arena(void *user) { mlo_c_write_arena(((mlo_flat_writer *)user)->e, 1); }

static int mlo_flat_emit_test(mlo_flat_writer *w) {
    mlo *m = w->e->m;
    const mlo_flat *f = w->f;
    const char *call = "";
    int n = 0;
    for (size_t i = 0; i < f->n_value; i++)
        if (f->value[i]->in >= 0 && f->value[i]->name)
            call = mlo_format(m, "%s%sin%d", call, n++ ? ", " : "", f->value[i]->in);
    for (size_t i = 0; i < f->g->n_output; i++)
        call = mlo_format(m, "%s%sout%zu", call, n++ ? ", " : "", i);
    if (f->tiled) call = mlo_format(m, "%s, memory, MODEL_MEMORY_BYTES", call);
    const mlo_hole holes[] = { { "WORDS", NULL, mlo_flat_write_words }, { "CALL", call, NULL },
        { "TILED", mlo_flat_if_tiled(w), NULL }, { "PAINTED", NULL, mlo_flat_write_arena },
        { "COMPARE", NULL, mlo_flat_write_compare },
        { "TOTAL", mlo_integer(m, mlo_flat_total(w)), NULL }, { NULL, NULL, NULL } };
    MLO_TRY(mlo_share_copy(&w->e->t, "c/network_test.c", holes, w));
    return mlo_file_text(w->e, "test.c");
}

/* ---- the rest ------------------------------------------------------------------------------------ */

/* What a step has in the arena: a line for each argument, of one place the bytes. */
static void mlo_flat_manifest_parts(mlo_flat_writer *w, const mlo_flat_step *s) {
    mlo_text *t = &w->e->t;
    mlo_puts(t, ", \"arguments\": [");
    for (int k = 0, n = 0; k <= MLO_FLAT_OPERANDS; k++) {
        const mlo_flat_value *v = mlo_flat_part_of(s, k);
        if (!v) continue;
        mlo_puts(t, n++ ? ",\n      {\"value\": " : "\n      {\"value\": ");
        mlo_report_string(t, mlo_or_empty(v->name));
        mlo_printf(t,
            ", \"is\": \"%s\", \"cut\": %s, \"offset\": %lld, \"bytes\": %lld, \"places\": %d}",
            k == MLO_FLAT_OPERANDS  ? "result"
                : v->parameter >= 0 ? "parameter"
                                    : "operand",
            mlo_flat_is_cut(s, k) && s->tile < s->units ? "true" : "false",
            (long long)mlo_flat_part_at(s, k, s->tile),
            (long long)mlo_flat_place_bytes(s, k, s->tile), s->twice[k] ? 2 : 1);
    }
    mlo_puts(t, "]");
}

/* How the steps are cut, and what that copies. */
static void mlo_flat_manifest_tiles(mlo_flat_writer *w) {
    mlo_emitter *e = w->e;
    const mlo_flat *f = w->f;
    int64_t all = 0, overlapped = 0;
    for (size_t i = 0; i < f->n_step; i++) all += mlo_flat_traffic(&f->step[i]);
    for (size_t i = 0; i < f->n_step; i++) overlapped += mlo_flat_overlapped(&f->step[i]);
    mlo_line(e, "  \"arena_bytes\": %lld,\n  \"memory_bytes\": %lld,\n  \"traffic_bytes\": %lld,",
        (long long)mlo_flat_arena_bytes(f), (long long)mlo_max(f->plan.bytes, MLO_PLAN_ALIGN),
        (long long)all);
    mlo_line(e, "  \"overlapped_bytes\": %lld,", (long long)overlapped);
    mlo_puts(&e->t, "  \"tiles\": [");
    for (size_t i = 0, n = 0; i < f->n_step; i++) {
        const mlo_flat_step *s = &f->step[i];
        if (!s->tile) continue;
        mlo_printf(&e->t, "%s\n    {\"step\": %zu, \"node\": ", n++ ? "," : "", i);
        mlo_report_string(&e->t, mlo_or_empty(s->node->name));
        mlo_printf(&e->t,
            ", \"units\": %lld, \"tile\": %lld, \"bytes\": %lld, \"traffic\": %lld, "
            "\"overlapped\": %lld",
            (long long)s->units, (long long)s->tile, (long long)mlo_flat_tile_bytes(s, s->tile),
            (long long)mlo_flat_traffic(s), (long long)mlo_flat_overlapped(s));
        mlo_printf(&e->t, ", \"blocks\": %lld, \"scratch\": %lld",
            (long long)(s->block ? mlo_parts(s->rows, s->block) : 1),
            (long long)mlo_flat_aligned(s->scratch));
        mlo_flat_manifest_parts(w, s);
        mlo_puts(&e->t, "}");
    }
    mlo_puts(&e->t, "\n  ],\n");
    mlo_c_manifest_places(e, &f->plan);
}

static int mlo_flat_emit_manifest(mlo_flat_writer *w) {
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
        "  \"frames\": 1,\n  \"words\": %lld,\n  \"steps\": %zu,\n  \"loop\": "
        "{\"start\": %zu, \"steps\": %zu, \"rounds\": %zu},",
        (long long)mlo_flat_total(w), f->n_step, w->loop.start, w->loop.length, w->loop.rounds);
    return mlo_manifest_end(e);
}

/* Do golden numbers suit output i of the graph? */
typedef int (*mlo_golden_check)(mlo_flat_writer *w, size_t i, const mlo_array *a);

/* The golden arrays that were given, or mlo's own, if they suit. */
static int mlo_flat_golden_by(mlo_flat_writer *w, mlo_golden_check check) {
    mlo *m = w->e->m;
    const mlo_flat *f = w->f;
    mlo_array *all = MLO_NEW_N(m, mlo_array, f->g->n_output + 1);
    if (!all) return mlo_failed(m);
    if (m->n_words_golden && m->n_words_golden != f->g->n_output)
        return mlo_fail_at(m, MLO_E_USAGE, NULL, "%zu golden arrays for %zu outputs",
            m->n_words_golden, f->g->n_output);
    for (size_t i = 0; i < f->g->n_output; i++) {
        const mlo_array *a = f->result[i];
        if (m->n_words_golden)
            a = mlo_run_pick_of(m->words_golden, m->n_words_golden, f->g->output[i]->name, i);
        MLO_TRY(check(w, i, a));
        all[i] = *a;
    }
    w->golden = all;
    return 0;
}

/* As the output's type holds them. */
static int mlo_flat_golden_fits(mlo_flat_writer *w, size_t i, const mlo_array *a) {
    mlo *m = w->e->m;
    const char *name = w->f->g->output[i]->name;
    const mlo_flat_value *v = mlo_flat_of(w->f, name);
    mlo_flat_value seen;
    memset(&seen, 0, sizeof seen);
    if (mlo_flat_numbers(w->f, &seen, a)) return mlo_failed(m);
    if (!v || seen.count != v->count)
        return mlo_fail_at(m, MLO_E_SHAPE, name, "the golden array has %lld numbers, not %lld",
            (long long)seen.count, (long long)(v ? v->count : 0));
    const mlo_interval holds = mlo_flat_all(v->dtype == MLO_FLOAT ? MLO_INT64 : v->dtype);
    if (v->dtype == MLO_FLOAT
        || (seen.whole && seen.ends.lo >= holds.lo && seen.ends.hi <= holds.hi))
        return 0;
    return mlo_fail_at(m, MLO_E_DATA, name,
        "golden numbers%s are none that the model can give: %lld .. %lld",
        seen.whole
            ? mlo_format(m, ", %lld .. %lld,", (long long)seen.ends.lo, (long long)seen.ends.hi)
            : " that are not whole",
        (long long)v->ends.lo, (long long)v->ends.hi);
}

/* The network itself, for show and run. */
static int mlo_flat_emit_network(mlo_flat_writer *w) {
    mlo_emitter *e = w->e;
    if (mlo_file_begin(e, "host/network.onnx")
        || mlo_wire_write(e->m, e->m->model, mlo_emit_sink, e))
        return mlo_failed(e->m);
    return mlo_file_end(e);
}

static int mlo_flat_files(mlo_flat_writer *w) {
    static const char *const exact[] = { "round.c", "norm.c", "deeploy.c", NULL };
    MLO_TRY(mlo_flat_golden_by(w, mlo_flat_golden_fits));
    w->loop = mlo_flat_find_loop(w->f);
    MLO_TRY(mlo_flat_emit_header(w));
    MLO_TRY(mlo_emit_c_exact(w->e, exact));
    MLO_TRY(mlo_flat_emit_model(w));
    MLO_TRY(mlo_flat_emit_weights(w));
    MLO_TRY(mlo_flat_emit_test(w));
    MLO_TRY(mlo_emit_c_make(w->e, MLO_C_INTEGERS));
    MLO_TRY(mlo_flat_emit_network(w));
    return mlo_flat_emit_manifest(w);
}

/* Are these the numbers of a parameter? */
static int mlo_tensor_is(mlo *m, const mlo_tensor *t, const mlo_array *a) {
    mlo_array *b = mlo_tensor_load(m, t);
    const mlo_array *x = b ? mlo_as(m, b, MLO_DOUBLE) : NULL,
                    *y = x ? mlo_as(m, a, MLO_DOUBLE) : NULL;
    const int64_t n = mlo_array_count(a);
    int same = y && mlo_array_count(b) == n;
    for (int64_t i = 0; same && i < n; i++)
        same = ((const double *)x->data)[i] <= ((const double *)y->data)[i]
            && ((const double *)x->data)[i] >= ((const double *)y->data)[i];
    mlo_as_free(m, y, a);
    mlo_as_free(m, x, b);
    mlo_array_free(m, b);
    return same;
}

/* The inputs' words under the graph's names; what Deeploy gives beyond those has to be parameters. */
static int mlo_flat_bind(mlo *m, mlo_array *bound, mlo_array **made, size_t *count) {
    const size_t n = m->n_words < m->model->graph->n_input ? m->n_words : m->model->graph->n_input;
    for (size_t i = n; i < m->n_words; i++) {
        int known = 0;
        const mlo_graph *g = m->model->graph;
        for (size_t k = 0; k < g->n_init && !known; k++)
            known = mlo_tensor_is(m, g->init[k], &m->words[i]);
        if (m->error.code || !known)
            return m->error.code
                ? mlo_failed(m)
                : mlo_fail_at(m, MLO_E_USAGE, m->words[i].name,
                      "array %zu in --inputs is no input's, and no parameter", i + 1);
    }
    return mlo_run_bind(m, m->words, n, bound, made, count);
}
