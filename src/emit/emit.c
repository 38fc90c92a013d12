/* emit: the build directory.
 *
 * in:  a folded model.
 * out: rtl/, tb/, host/, params.bin, params.hex, a Makefile and scripts, README.md, manifest.json last.
 *
 * The top is wires and instances (top.c); the logic is in verilog/, and no text is a template with
 * holes for logic. With --unrolled, for comparison, the loop's body is there once for every
 * iteration, one behind the other, each with parameters of its own, and nothing goes round.
 *
 * invariant: the Verilog depends on shapes, widths and folding alone; everything learned is in
 *     params.* and host/.
 * example: mlo compile bert.onnx --pe 4 --simd 4 -o build && make -C build sim
 * cost: one layer's parameters in memory at a time; the parameter image is written as it is made.
 */

/* ---- files ---------------------------------------------------------------- */

typedef struct {
    const char *name;
    const char *digest;
    uint64_t size; /* bytes */
} mlo_emitted;

typedef struct {
    mlo *m;
    mlo_sink sink;
    void *user;
    mlo_core *c;
    mlo_core *h; /* what is around the loop (core/around.c); NULL: nothing */
    mlo_core *tail; /* and what is behind it, of an encoder: one vector of a frame; NULL: nothing */
    mlo_sha sha;
    const char *file;
    uint64_t size; /* bytes of it so far */
    mlo_emitted *done;
    size_t n_done;
    int unrolled; /* 1: a body in hardware for each iteration */
    int packed; /* 1: parameters of C leave as bytes (c/weights.c) */
    int layers; /* bodies in hardware: 1, or unrolled, one for each iteration */
    mlo_text t; /* the file being composed */
    int64_t cycles; /* of what the bench plays, as predicted */
    int64_t each; /* cycles from a frame to the next, once things flow */
    int64_t
        step[2]; /* of a core with caches: cycles of a token at the first position, at the last */
} mlo_emitter;

/* The stage begins: the model is at `stage`, and its numbers are its own. */
static int mlo_emit_begin(mlo *m, const char *stage) {
    if (mlo_to(m, stage)) return mlo_failed(m);
    m->stage = "emit";
    return mlo_sketch_refuse(m);
}

/* Does it say ids? (An encoder of ids makes what its loop makes.) */
static int mlo_emit_says(const mlo_emitter *e) { return e->h && !e->c->in_front; }
/* What leaves the core: the loop's stream, or the tail's. */
static const mlo_core *mlo_emit_made(const mlo_emitter *e) { return e->tail ? e->tail : e->c; }
/* The values on the top's streams. */
static const char *mlo_in_name(const mlo_emitter *e) {
    return e->h ? mlo_intern(e->m, mlo_head_ids) : e->c->scan.node->input[0];
}
static const char *mlo_out_name(const mlo_emitter *e) {
    return mlo_emit_says(e) ? mlo_intern(e->m, mlo_head_next)
        : e->tail           ? e->tail->scan.body->output[0]->name
                            : e->c->scan.node->output[e->c->every];
}
/* How many ids behind each frame. */
static int mlo_emit_best(const mlo_emitter *e) {
    return mlo_emit_says(e) ? (int)e->h->channels / 2 : 0;
}

static int mlo_file_begin(mlo_emitter *e, const char *name) {
    mlo_sha_begin(&e->sha);
    e->file = mlo_intern(e->m, name);
    e->size = 0;
    return mlo_failed(e->m);
}
/* Bytes that are in the digest already. */
static int mlo_file_put(mlo_emitter *e, const void *bytes, size_t n) {
    if (e->m->error.code) return mlo_failed(e->m);
    e->size += n;
    return e->sink(e->user, e->file, bytes, n)
        ? mlo_fail_at(e->m, MLO_E_IO, e->file,
              "could not be written; is the disk full or the directory read-only?")
        : 0;
}
static int mlo_file_write(mlo_emitter *e, const void *bytes, size_t n) {
    if (!e->m->error.code) mlo_sha_add(&e->sha, bytes, n);
    return mlo_file_put(e, bytes, n);
}
static int mlo_file_end(mlo_emitter *e) {
    char hex[65];
    mlo_sha_end(&e->sha, hex);
    mlo_emitted d = { e->file, mlo_intern(e->m, hex), e->size };
    return !e->m->error.code && MLO_PUSH(e->m, e->done, e->n_done, d) ? 0 : mlo_failed(e->m);
}

/* What was composed in e->t, as a file. */
static int mlo_file_text(mlo_emitter *e, const char *name) {
    int r = mlo_file_begin(e, name) || mlo_file_write(e, mlo_or_empty(e->t.text), e->t.n)
        || mlo_file_end(e);
    e->t.n = 0;
    return r ? mlo_failed(e->m) : 0;
}

static void mlo_line(mlo_emitter *e, const char *format, ...) {
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    mlo_puts(&e->t, line);
    mlo_puts(&e->t, "\n");
}

/* The end of manifest.json, which is composed in e->t: the files so far, with their digests. */
static int mlo_manifest_end(mlo_emitter *e) {
    mlo_line(e, "  \"files\": {");
    for (size_t i = 0; i < e->n_done; i++)
        mlo_line(e, "    \"%s\": {\"bytes\": %llu, \"sha256\": \"%s\"}%s", e->done[i].name,
            (unsigned long long)e->done[i].size, e->done[i].digest, i + 1 < e->n_done ? "," : "");
    mlo_line(e, "  }\n}");
    return mlo_file_text(e, "manifest.json");
}

/* A text of share/ as the file of the same name. */
static int mlo_emit_shared(mlo_emitter *e, const char *name, const mlo_hole *holes, void *user) {
    MLO_TRY(mlo_share_copy(&e->t, name, holes, user));
    return mlo_file_text(e, name);
}

/* ---- the Verilog library: embedded in texts.c, one array of lines a module ---- */

static int mlo_module_at(const char *name, size_t n) {
    for (int i = 0; i < MLO_N_VERILOG; i++)
        if (!strncmp(mlo_verilog[i].name, name, n) && mlo_eq(mlo_verilog[i].name + n, ".v"))
            return i;
    return -1;
}

/* Marks a module and all it mentions outside of comments. */
static void mlo_module_need(int at, unsigned char *need) {
    if (at < 0 || need[at]) return;
    need[at] = 1;
    for (const char *const *line = mlo_verilog[at].lines; *line; line++) {
        const char *end = strstr(*line, "//"), *p = *line;
        size_t limit = end ? (size_t)(end - *line) : strlen(*line);
        while ((p = strstr(p, "mlo_")) != NULL && (size_t)(p - *line) < limit) {
            size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_");
            mlo_module_need(mlo_module_at(p, n), need);
            p += n;
        }
    }
}

static int mlo_emit_modules(mlo_emitter *e, const unsigned char *need, const char *folder) {
    for (int i = 0; i < MLO_N_VERILOG && !e->m->error.code; i++)
        if (need[i]) {
            for (const char *const *line = mlo_verilog[i].lines; *line; line++) {
                mlo_puts(&e->t, *line);
                mlo_puts(&e->t, "\n");
            }
            mlo_file_text(e, mlo_format(e->m, "%s/%s", folder, mlo_verilog[i].name));
        }
    return mlo_failed(e->m);
}

/* Those of a core's kernels, and of the readers of their row blocks. */
static void mlo_modules_of(const mlo_core *c, unsigned char *need) {
    for (int i = 0; i < c->n_element; i++) {
        const mlo_element *el = &c->element[i];
        const char *name = el->kernel ? el->unit.module : "mlo_split";
        mlo_module_need(mlo_module_at(name, strlen(name)), need);
        if (!mlo_is_block(el)) continue;
        mlo_module_need(mlo_module_at("mlo_ahead", 9), need);
        mlo_module_need(mlo_module_at("mlo_refill", 10), need);
        mlo_module_need(mlo_module_at("mlo_axi_share", 13), need);
    }
}

static int mlo_emit_library(mlo_emitter *e) {
    static const char *const always[] = { "mlo_entry", "mlo_exit", "mlo_loop", "mlo_loader",
        "mlo_regs", "mlo_fifo" };
    /* of the bench */
    static const char *const models[] = { "mlo_sim_ram", "mlo_sim_source", "mlo_sim_sink",
        "mlo_sim_trace", "mlo_sim_check_axi", "mlo_sim_check_axis", "mlo_sim_check_lite" };
    unsigned char need[MLO_N_VERILOG] = { 0 }, sim[MLO_N_VERILOG] = { 0 };
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        mlo_module_need(mlo_module_at(always[i], strlen(always[i])), need);
    mlo_modules_of(e->c, need);
    if (e->h) mlo_modules_of(e->h, need);
    if (e->tail) mlo_modules_of(e->tail, need);
    if (e->tail) mlo_module_need(mlo_module_at("mlo_first", 9), need);
    if (e->c->every) mlo_module_need(mlo_module_at("mlo_every", 9), need);
    if (e->c->slots) mlo_module_need(mlo_module_at("mlo_job", 7), need);
    if (e->c->slots) mlo_module_need(mlo_module_at("mlo_orders", 10), need);
    if (e->h) {
        mlo_module_need(mlo_module_at("mlo_rows", 8), need);
        if (e->c->places) mlo_module_need(mlo_module_at("mlo_places", 10), need);
        if (mlo_emit_says(e)) {
            mlo_module_need(mlo_module_at("mlo_newest", 10), need);
            mlo_module_need(mlo_module_at("mlo_tokens", 10), need);
        }
        mlo_module_need(mlo_module_at("mlo_axi_share", 13), need);
    }
    if (e->c->dram) {
        mlo_module_need(mlo_module_at("mlo_kv", 6), need);
        mlo_module_need(mlo_module_at("mlo_sim_ram_write", 17), sim);
        mlo_module_need(mlo_module_at("mlo_sim_check_axi_write", 23), sim);
    }
    mlo_module_need(mlo_module_at("mlo_fork", 8), need);
    mlo_module_need(mlo_module_at("mlo_width", 9), need);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        mlo_module_need(mlo_module_at(models[i], strlen(models[i])), sim);
    for (int i = 0; i < MLO_N_VERILOG; i++)
        if (mlo_starts(mlo_verilog[i].name, "mlo_sim_")) need[i] = 0;
    return mlo_emit_modules(e, need, "rtl") || mlo_emit_modules(e, sim, "tb") ? mlo_failed(e->m)
                                                                              : 0;
}
