/* sim: simulates a build directory and judges it.
 *
 * in:  DIR as emit wrote it, perhaps other inputs.     out: the JSON of design section 7 on stdout; 0, or 1 when a word differs.
 * steps: manifest and digests -> frames (from tb/, drawn, or --inputs through host/pre.onnx) -> golden words (host/core.onnx in mlo) ->
 *     hex files in DIR/sim -> compile once per set of sources -> run -> read the bench's MLO lines -> report.
 * invariant: PASS needs exactly one PASS line, status 0, and a directory whose files are those of the manifest. A mixture is simulated all
 *     the same, since the first wrong word says most about what was changed; but it never passes.
 */

typedef struct { const char *name, *op, *value; double pe, simd, multipliers, macs, interval; int lanes, bits; int64_t channels; double busy, starved, blocked; } cli_kernel;

/* One frame: the core's integer inputs and outputs. */
typedef struct { const mlo_array *in; size_t n_in; const mlo_array *out; size_t n_out; const mlo_array *model; size_t n_model; const mlo_array *pre; size_t n_pre; int64_t tokens; } cli_frame;

typedef struct {
    cli *c; const char *dir; cJSON *manifest;
    int64_t iterations, tokens, channels, group, bench_frames; int lanes, bits, masked, axi_bits;
    const char *input, *output;
    cli_kernel *kernel; int n_kernel;
    char key[65];                               /* of all Verilog */
    char mixture[256];                          /* the first file that is not the manifest's; "" for none */
    int image_from_bin;                         /* params.bin was changed, params.hex was not */
    cli_frame *frame; int64_t n; int own_inputs;   /* own: the bench's own words, as they lie in tb/ */
    mlo *pre, *core, *post; int opened[3];
    mlo *cut[64]; int64_t cut_tokens[64]; int cut_opened[64], n_cut;   /* cores for shorter frames */
    cli_npz made;                               /* arrays that sim made itself */
    int64_t beats, words, cycles, weight_beats, done[256]; int n_done, passes, fails, status; char verdict[2400];
} cli_bench;

/* ---- the directory --------------------------------------------------------------------------------------------------------------------- */

static const char *cli_in_dir(const cli_bench *b, const char *file) {
    static char path[4][PATH_MAX]; static int at;             /* a few at a time */
    char *p = path[at++ & 3];
    snprintf(p, PATH_MAX, "%s/%s", b->dir, file);
    return p;
}

/* A listed file's digest against the manifest's. Verilog goes into the key. */
static int cli_sim_file(cli_bench *b, const cJSON *f, char *all, size_t room) {
    cli_bytes bytes; char hex[65];
    if (!f->string || f->string[0] == '/' || strstr(f->string, "..")) return cli_fail(b->c, MLO_E_FORMAT, "manifest.json", "lists '%s', which is no file of a build directory", f->string ? f->string : "");
    const char *path = cli_in_dir(b, f->string);
    if (access(path, R_OK)) return cli_fail(b->c, MLO_E_IO, path, "%s, but manifest.json lists it; emit the directory anew", strerror(errno));
    if (cli_slurp(b->c, path, &bytes)) { free(bytes.data); return cli_failed(b->c); }
    mlo_digest(bytes.data, bytes.n, hex);
    free(bytes.data);
    int differs = strcmp(hex, cli_json_text(f, "sha256")) != 0;
    if (differs && !*b->mixture) snprintf(b->mixture, sizeof b->mixture, "%s", f->string);
    if (!strcmp(f->string, "params.bin") && differs) b->image_from_bin = 1;
    if (!strcmp(f->string, "params.hex") && differs) b->image_from_bin = 0;
    if (cli_ends(f->string, ".v")) { size_t n = strlen(all); if (n + 130 < room) snprintf(all + n, room - n, "%s", hex); }
    return 0;
}

static int cli_sim_manifest(cli_bench *b) {
    cli *c = b->c; cli_bytes text; struct stat st;
    const char *path = cli_in_dir(b, "manifest.json");
    if (stat(b->dir, &st)) return cli_fail(c, MLO_E_IO, b->dir, "%s; mlo compile MODEL -o %s makes it", strerror(errno), b->dir);
    if (!S_ISDIR(st.st_mode)) return cli_fail(c, MLO_E_IO, b->dir, "is no directory; sim takes what mlo compile -o DIR made");
    if (stat(path, &st)) return cli_fail(c, MLO_E_IO, b->dir, "holds no manifest.json: it is no build directory, or one that was not finished");
    if (cli_slurp(c, path, &text)) { free(text.data); return cli_failed(c); }
    b->manifest = cJSON_ParseWithLength(text.data, text.n);
    free(text.data);
    const cJSON *m = b->manifest, *stream = cJSON_GetObjectItemCaseSensitive(m, "stream"), *list = cJSON_GetObjectItemCaseSensitive(m, "kernels"), *k, *f;
    b->iterations = (int64_t)cli_json_number(m, "iterations"); b->tokens = (int64_t)cli_json_number(m, "tokens"); b->channels = (int64_t)cli_json_number(m, "channels");
    b->group = (int64_t)cli_json_number(m, "frames_in_flight"); b->bench_frames = (int64_t)cli_json_number(m, "bench_frames"); b->axi_bits = (int)cli_json_number(m, "axi_bits");
    b->lanes = (int)cli_json_number(stream, "lanes"); b->bits = (int)cli_json_number(stream, "bits"); b->masked = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(stream, "masked"));
    b->input = cli_json_text(cJSON_GetObjectItemCaseSensitive(m, "input"), "name"); b->output = cli_json_text(cJSON_GetObjectItemCaseSensitive(m, "output"), "name");
    b->n_kernel = cJSON_GetArraySize(list);
    if (!cJSON_IsObject(m) || b->iterations < 1 || b->tokens < 1 || b->tokens > 1 << 24 || b->lanes < 1 || b->channels < b->lanes || b->channels > 1 << 24 || b->channels % b->lanes || b->bits < 1 || b->bits > 32
        || b->group < 1 || b->bench_frames < 1 || b->bench_frames > 256 || b->axi_bits < 8 || b->n_kernel < 1 || b->n_kernel > 256) return cli_fail(c, MLO_E_FORMAT, path, "is not what mlo %s writes", MLO_VERSION);
    if (!(b->kernel = (cli_kernel *)calloc((size_t)b->n_kernel, sizeof *b->kernel))) return cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
    int i = 0;
    cJSON_ArrayForEach(k, list) {
        cli_kernel *to = &b->kernel[i++];
        to->name = cli_json_text(k, "name"); to->op = cli_json_text(k, "op"); to->value = cli_json_text(k, "value"); to->pe = cli_json_number(k, "pe"); to->simd = cli_json_number(k, "simd");
        to->multipliers = cli_json_number(k, "multipliers"); to->macs = cli_json_number(k, "macs"); to->interval = cli_json_number(k, "interval");
        to->lanes = (int)cli_json_number(k, "lanes"); to->bits = (int)cli_json_number(k, "bits"); to->channels = (int64_t)cli_json_number(k, "channels");
    }
    char all[65 * 128] = "";
    cJSON_ArrayForEach(f, cJSON_GetObjectItemCaseSensitive(m, "files")) if (cli_sim_file(b, f, all, sizeof all)) return cli_failed(c);
    mlo_digest(all, strlen(all), b->key);
    if (mkdir(cli_in_dir(b, "sim"), 0777) && errno != EEXIST) return cli_fail(c, MLO_E_IO, cli_in_dir(b, "sim"), "cannot be made: %s", strerror(errno));
    return 0;
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------------------- */

static mlo *cli_sim_part(cli_bench *b, const char *file, int *opened) {
    mlo *m = cli_handle(opened);
    if (!m) { cli_fail(b->c, MLO_E_MEMORY, NULL, "no memory"); return NULL; }
    if (mlo_load(m, cli_in_dir(b, file)) || mlo_to(m, "read")) { cli_adopt(b->c, m); mlo_close(m); return NULL; }
    return m;
}

static const mlo_array *cli_named(const mlo_array *a, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) if (a[i].name && !strcmp(a[i].name, name)) return &a[i];
    return NULL;
}

/* A new array that lives as long as the bench. (Not in a list that moves: frames point at it.) */
static mlo_array *cli_sim_arrays(cli_bench *b, size_t n) { return (mlo_array *)cli_npz_alloc(b->c, &b->made, (n + 1) * sizeof(mlo_array)); }

static int cli_sim_array(cli_bench *b, mlo_array *a, const char *name, mlo_dtype type, int rank, const int64_t *dims) {
    memset(a, 0, sizeof *a);
    a->name = name; a->dtype = type; a->rank = rank;
    for (int i = 0; i < rank; i++) a->dims[i] = dims[i];
    return (a->data = cli_npz_alloc(b->c, &b->made, cli_array_bytes(a) + 1)) ? 0 : cli_failed(b->c);
}

static int cli_digit(char ch) { return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1; }

/* One lane of a beat: `line` is the tlast digit and the lanes, the last one first; lanes take `pad` bits. Sign-extended. -1 in *bad: an x or nonsense. */
static int64_t cli_lane(const char *digits, size_t n, int lane, int pad, int bits, int *bad) {
    uint64_t v = 0;
    for (int bit = bits; bit--; ) {
        size_t at = (size_t)lane * (size_t)pad + (size_t)bit, from_end = at / 4;
        int d = from_end < n ? cli_digit(digits[n - 1 - from_end]) : -1;
        if (d < 0) { *bad = 1; return 0; }
        v = v << 1 | (uint64_t)(d >> (at % 4) & 1);
    }
    return v >> (bits - 1) ? (int64_t)v - ((int64_t)1 << bits) : (int64_t)v;
}

static void cli_store(mlo_array *a, size_t i, int64_t v) {
    switch (a->dtype) {
    case MLO_INT8: ((int8_t *)a->data)[i] = (int8_t)v; break;
    case MLO_BOOL: case MLO_UINT8: ((uint8_t *)a->data)[i] = (uint8_t)v; break;
    case MLO_INT16: ((int16_t *)a->data)[i] = (int16_t)v; break;
    default: ((int32_t *)a->data)[i] = (int32_t)v;
    }
}

/* The bench's own frames, from tb/input.hex and tb/mask.hex, as the core's inputs. */
static int cli_sim_from_hex(cli_bench *b, const char *file, int64_t frames, int mask) {
    cli_bytes text;
    if (cli_slurp(b->c, cli_in_dir(b, file), &text)) { free(text.data); return cli_failed(b->c); }
    const char *p = text.data; const mlo_array *sig; size_t n_sig; int bad = 0;
    if (mlo_signature(b->core, 0, &sig, &n_sig)) { free(text.data); return cli_adopt(b->c, b->core); }
    const mlo_array *like = cli_named(sig, n_sig, mask ? "mlo_mask" : b->input);
    int pad = (b->bits + 7) / 8 * 8;
    for (int64_t f = 0; like && f < frames && !bad; f++) {
        mlo_array *a = (mlo_array *)(uintptr_t)b->frame[f].in + mask;
        if (cli_sim_array(b, a, like->name, like->dtype, like->rank, like->dims)) break;
        for (size_t i = 0, n = cli_count(a), beat = mask ? 1 : (size_t)b->lanes; i < n && !bad; i += beat) {
            while (*p == '\n' || *p == '\r' || *p == ' ') p++;
            size_t length = strspn(p, "0123456789abcdef");
            if (length < 2) { bad = 1; break; }
            for (size_t k = 0; k < beat; k++) cli_store(a, i + k, mask ? cli_lane(p + 1, length - 1, 0, 8, 8, &bad) & 1 : cli_lane(p + 1, length - 1, (int)k, pad, b->bits, &bad));
            p += length;
        }
    }
    free(text.data);
    return !like || bad ? cli_fail(b->c, MLO_E_FORMAT, file, "does not hold the %lld frames that manifest.json speaks of", (long long)b->bench_frames) : cli_failed(b->c);
}

/* Frame f of an array: the array itself, or slice f along the first axis. */
static int cli_sim_slice(cli_bench *b, const mlo_array *a, const mlo_array *like, int64_t f, mlo_array *to) {
    int stacked = a->rank == like->rank + 1, first = a->rank == like->rank && a->rank > 0 && like->dims[0] == 1;
    size_t bytes = cli_array_bytes(a); int64_t count = stacked || first ? a->dims[0] : 1;
    *to = *a;
    if (!stacked && !first) return 0;
    if (f >= count || !count) return cli_fail(b->c, MLO_E_SHAPE, a->name, "holds %lld frames; frame %lld is asked for", (long long)count, (long long)f + 1);
    to->rank = like->rank;
    if (first) to->dims[0] = 1; else for (int i = 0; i < to->rank; i++) to->dims[i] = a->dims[i + 1];
    to->data = (char *)a->data + (size_t)f * (bytes / (size_t)count);
    return 0;
}

/* How many frames the arrays of --inputs hold, seen as inputs of `sig`. */
static int64_t cli_sim_count(const cli_npz *z, const mlo_array *sig, size_t n, int by_name) {
    int64_t most = 1;
    for (size_t i = 0; i < n && i < (by_name ? n : z->n); i++) {
        const mlo_array *a = by_name ? cli_npz_find(z, sig[i].name) : &z->array[i];
        if (a && (a->rank == sig[i].rank + 1 || (a->rank == sig[i].rank && a->rank > 0 && sig[i].dims[0] == 1)) && a->dims[0] > most) most = a->dims[0];
    }
    return most;
}

/* The core's inputs of one frame, picked by name out of what pre made (and out of the model's own inputs). */
static int cli_sim_through_pre(cli_bench *b, cli_frame *f) {
    const mlo_array *sig; size_t n;
    if (mlo_run(b->pre, f->model, f->n_model, &f->pre, &f->n_pre)) return cli_adopt(b->c, b->pre);
    if (mlo_signature(b->core, 0, &sig, &n)) return cli_adopt(b->c, b->core);
    mlo_array *in = cli_sim_arrays(b, n);
    for (size_t i = 0; in && i < n; i++) {
        const mlo_array *a = cli_named(f->pre, f->n_pre, sig[i].name);
        if (!a) a = cli_named(f->model, f->n_model, sig[i].name);
        if (!a) return cli_fail(b->c, MLO_E_DATA, sig[i].name, "host/pre.onnx does not make this input of the core");
        in[i] = *a;
    }
    f->in = in; f->n_in = n;
    return cli_failed(b->c);
}

/* Frames from --inputs: the core's own inputs when a name is one of them, else the model's. */
static int cli_sim_given(cli_bench *b, const cli_npz *z) {
    const mlo_array *core, *pre; size_t n_core, n_pre; int is_core = 0, by_name = 0;
    if (mlo_signature(b->core, 0, &core, &n_core) || mlo_signature(b->pre, 0, &pre, &n_pre)) { cli_adopt(b->c, b->core); return cli_adopt(b->c, b->pre); }
    for (size_t i = 0; i < n_core; i++) is_core |= cli_npz_find(z, core[i].name) != NULL && !cli_named(pre, n_pre, core[i].name);
    const mlo_array *sig = is_core ? core : pre; size_t n = is_core ? n_core : n_pre;
    for (size_t i = 0; i < n; i++) by_name |= cli_npz_find(z, sig[i].name) != NULL;
    for (int64_t f = 0; f < b->n; f++) {
        mlo_array *in = cli_sim_arrays(b, n > z->n ? n : z->n);
        size_t k = 0;
        for (size_t i = 0; in && i < n; i++) {
            const mlo_array *a = by_name ? cli_npz_find(z, sig[i].name) : i < z->n ? &z->array[i] : NULL;
            if (!a) return cli_fail(b->c, MLO_E_USAGE, sig[i].name, "is missing in --inputs");
            if (cli_sim_slice(b, a, &sig[i], f, &in[k])) return cli_failed(b->c);
            if (in[k].dtype != sig[i].dtype) return cli_fail(b->c, MLO_E_TYPE, sig[i].name, "is %s in --inputs; %s is needed", cli_type_name(in[k].dtype), cli_type_name(sig[i].dtype));
            in[k++].name = sig[i].name;
        }
        if (!in) return cli_failed(b->c);
        if (is_core) { b->frame[f].in = in; b->frame[f].n_in = k; }
        else { b->frame[f].model = in; b->frame[f].n_model = k; if (cli_sim_through_pre(b, &b->frame[f])) return cli_failed(b->c); }
    }
    return 0;
}

/* The bench's frames, and drawn ones beyond them. */
static int cli_sim_own(cli_bench *b) {
    int64_t own = b->n < b->bench_frames ? b->n : b->bench_frames;
    for (int64_t f = 0; f < own; f++) { if (!(b->frame[f].in = cli_sim_arrays(b, 2))) return cli_failed(b->c); b->frame[f].n_in = b->masked ? 2 : 1; }
    if (cli_sim_from_hex(b, "tb/input.hex", own, 0) || (b->masked && cli_sim_from_hex(b, "tb/mask.hex", own, 1))) return cli_failed(b->c);
    for (int64_t f = own; f < b->n; f++) {
        if (mlo_draw(b->pre, (uint64_t)f, &b->frame[f].model, &b->frame[f].n_model)) return cli_adopt(b->c, b->pre);
        if (cli_sim_through_pre(b, &b->frame[f])) return cli_failed(b->c);
    }
    return 0;
}

/* --frame-tokens: the core's inputs cut to so many tokens. */
static int cli_sim_cut(cli_bench *b) {
    const char *list = cli_value(b->c, "frame-tokens"), *p = list;
    for (int64_t f = 0; f < b->n; f++) {
        cli_frame *fr = &b->frame[f];
        fr->tokens = b->tokens;
        if (!list) continue;
        char *end; long t = strtol(p, &end, 10);
        if (end == p || (*end && *end != ',') || t < 1 || t > b->tokens) return cli_fail(b->c, MLO_E_USAGE, NULL, "--frame-tokens %s: numbers from 1 to %lld with commas between them are needed", list, (long long)b->tokens);
        p = *end ? end + 1 : list;
        fr->tokens = t;
        mlo_array *in = cli_sim_arrays(b, fr->n_in);
        for (size_t i = 0; in && i < fr->n_in; i++) {          /* [1, tokens, channels] and [1, tokens]: the first ones lie in front */
            in[i] = fr->in[i];
            int axis = !strcmp(in[i].name, "mlo_mask") ? in[i].rank - 1 : in[i].rank - 2;
            if (axis >= 0 && in[i].dims[axis] == b->tokens) in[i].dims[axis] = t;
        }
        if (!(fr->in = in)) return cli_failed(b->c);
    }
    return 0;
}

static int cli_sim_frames(cli_bench *b) {
    cli *c = b->c; cli_npz given; const char *inputs = cli_value(c, "inputs"), *list = cli_value(c, "frame-tokens");
    const mlo_array *core, *pre; size_t n_core, n_pre; int64_t held = b->bench_frames;
    memset(&given, 0, sizeof given);
    if (!(b->core = cli_sim_part(b, "host/core.onnx", &b->opened[1])) || !(b->pre = cli_sim_part(b, "host/pre.onnx", &b->opened[0]))) return cli_failed(c);
    if (inputs && cli_npz_read(c, inputs, &given)) { cli_npz_free(&given); return cli_failed(c); }
    if (inputs && !mlo_signature(b->core, 0, &core, &n_core) && !mlo_signature(b->pre, 0, &pre, &n_pre)) {
        held = cli_sim_count(&given, core, n_core, 1);
        int64_t other = cli_sim_count(&given, pre, n_pre, 1), third = cli_sim_count(&given, pre, n_pre, 0);
        if (other > held) held = other;
        if (held == 1 && third > held) held = third;
    }
    if (list) { held = 1; for (const char *p = list; *p; p++) held += *p == ','; }
    b->n = cli_number(c, "frames", (long)(held > 256 ? 256 : held), 1, 256);
    b->own_inputs = !inputs && !list && b->n == b->bench_frames;
    if (!cli_failed(c) && !(b->frame = (cli_frame *)calloc((size_t)b->n, sizeof *b->frame))) cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
    if (!cli_failed(c)) { if (inputs) cli_sim_given(b, &given); else cli_sim_own(b); }
    if (!cli_failed(c)) cli_sim_cut(b);
    for (size_t i = 0; i < given.n_block; i++) {              /* frames point into what was given: it stays */
        void **more = (void **)realloc(b->made.block, (b->made.n_block + 1) * sizeof *more);
        if (more) { b->made.block = more; more[b->made.n_block++] = given.block[i]; }
    }
    free(given.block); free(given.array);
    return cli_failed(c);
}

/* ---- golden ------------------------------------------------------------------------------------------------------------------------------ */

/* The core for frames of so many tokens. */
static mlo *cli_sim_core(cli_bench *b, int64_t tokens) {
    if (tokens == b->tokens) return b->core;
    for (int i = 0; i < b->n_cut; i++) if (b->cut_tokens[i] == tokens) return b->cut[i];
    if (b->n_cut == 64) { cli_fail(b->c, MLO_E_UNSUPPORTED, NULL, "more than 64 lengths of frames in one run"); return NULL; }
    mlo *m = cli_sim_part(b, "host/core.onnx", &b->cut_opened[b->n_cut]);
    if (!m) return NULL;
    b->cut[b->n_cut] = m; b->cut_tokens[b->n_cut++] = tokens;
    if (mlo_resize(m, tokens)) { cli_adopt(b->c, m); return NULL; }
    return m;
}

static int cli_sim_golden(cli_bench *b, mlo_watcher see, void *user) {
    for (int64_t f = 0; f < b->n; f++) {
        cli_frame *fr = &b->frame[f];
        mlo *core = cli_sim_core(b, fr->tokens);
        if (!core) return cli_failed(b->c);
        if (see) { *(int64_t *)user = f; mlo_watch(core, see, user); }
        if (mlo_run(core, fr->in, fr->n_in, &fr->out, &fr->n_out)) return cli_adopt(b->c, core);
        mlo_watch(core, NULL, NULL);
    }
    return 0;
}

/* {tlast, lanes} per beat, in hexadecimal, the last lane first. */
static void cli_hex_beats(cli_out *o, const mlo_array *a, int lanes, int bits, int is_mask) {
    int pad = (bits + 7) / 8 * 8; size_t n = cli_count(a), step = is_mask ? 1 : (size_t)lanes;
    char line[4100];
    for (size_t at = 0; at < n; at += step) {
        int k = 0;
        line[k++] = at + step >= n ? '1' : '0';
        for (size_t lane = step; lane-- && k < 4080; ) {
            uint64_t v = (uint64_t)(int64_t)cli_element(a, at + lane);
            for (int d = (is_mask ? 8 : pad) / 4; d--; ) line[k++] = "0123456789abcdef"[v >> (4 * d) & 15];
        }
        line[k++] = '\n';
        cli_out_put(o, line, (size_t)k);
    }
}

static int cli_sim_hex(cli_bench *b, const char *file, const char *name, int output, int mask) {
    cli_out o;
    if (!cli_out_open(b->c, &o, cli_in_dir(b, file)))
        for (int64_t f = 0; f < b->n; f++) {
            const mlo_array *a = output ? cli_named(b->frame[f].out, b->frame[f].n_out, name) : cli_named(b->frame[f].in, b->frame[f].n_in, name);
            if (a) cli_hex_beats(&o, a, b->lanes, b->bits, mask);
            else cli_fail(b->c, MLO_E_FORMAT, name, "is no %s of host/core.onnx, though manifest.json says so", output ? "output" : "input");
        }
    return cli_out_close(b->c, &o);
}

/* sim/params.hex out of params.bin. */
static int cli_sim_image(cli_bench *b) {
    cli_bytes bin; cli_out o; size_t axi = (size_t)b->axi_bits / 8;
    if (!cli_slurp(b->c, cli_in_dir(b, "params.bin"), &bin) && !cli_out_open(b->c, &o, cli_in_dir(b, "sim/params.hex"))) {
        for (size_t at = 0; at + axi <= bin.n; at += axi) {
            char line[260]; size_t k = 0;
            for (size_t i = axi; i--; ) { unsigned char v = (unsigned char)bin.data[at + i]; line[k++] = "0123456789abcdef"[v >> 4]; line[k++] = "0123456789abcdef"[v & 15]; }
            line[k++] = '\n';
            cli_out_put(&o, line, k);
        }
        cli_out_close(b->c, &o);
    }
    free(bin.data);
    return cli_failed(b->c);
}

/* ---- the simulator ------------------------------------------------------------------------------------------------------------------------- */

static int cli_on_path(const char *program) {
    const char *p = getenv("PATH");
    char path[PATH_MAX];
    while (p && *p) {
        size_t n = strcspn(p, ":");
        if (snprintf(path, sizeof path, "%.*s/%s", (int)n, p, program) < (int)sizeof path && !access(path, X_OK)) return 1;
        p += n + (p[n] == ':');
    }
    return 0;
}

/* A list of words for execvp that grows. */
typedef struct { char *word[512]; int n; } cli_command;

static void cli_word(cli_command *x, const char *format, ...) {
    char text[PATH_MAX + 64];
    va_list args; va_start(args, format); vsnprintf(text, sizeof text, format, args); va_end(args);
    if (x->n < 511 && (x->word[x->n] = strdup(text)) != NULL) x->word[++x->n] = NULL;
}
static void cli_command_free(cli_command *x) { for (int i = 0; i < x->n; i++) free(x->word[i]); x->n = 0; }

/* Runs a command in DIR with stdout and stderr in a log beside; returns its status, -1 when it could not be run. */
static int cli_execute(cli_bench *b, cli_command *x, const char *log) {
    const char *path = cli_in_dir(b, log);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666), null = open("/dev/null", O_RDONLY);
        if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(b->dir)) _exit(126);
        signal(SIGPIPE, SIG_DFL);
        execvp(x->word[0], x->word);
        _exit(127);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) ;
    if (pid < 0) { cli_fail(b->c, MLO_E_IO, x->word[0], "cannot be started: %s", strerror(errno)); return -1; }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* The last line of a log that says something, for messages. */
static void cli_last_line(cli_bench *b, const char *log, char *to, size_t room) {
    cli_bytes text;
    *to = 0;
    if (!cli_slurp(b->c, cli_in_dir(b, log), &text)) {
        const char *error = strstr(text.data, "rror");
        if (error) while (error > text.data && error[-1] != '\n') error--;
        snprintf(to, room, "%.*s", (int)strcspn(error ? error : text.data, "\n"), error ? error : text.data);
    }
    free(text.data);
}

static void cli_sim_sources(cli_bench *b, cli_command *x) {
    const cJSON *f;
    cJSON_ArrayForEach(f, cJSON_GetObjectItemCaseSensitive(b->manifest, "files")) if (cli_ends(f->string, ".v")) cli_word(x, "%s", f->string);
}

/* Compiles the bench, unless DIR/sim holds it already: its name tells sources, simulator and sizes. */
static int cli_sim_compile(cli_bench *b, int verilator, char *program, size_t room) {
    cli_command x = { { NULL }, 0 };
    int wave = cli_value(b->c, "wave") != NULL; int64_t words = 16384, most = (b->n > b->bench_frames ? b->n : b->bench_frames) * b->tokens * (b->channels / b->lanes);
    while (words < most) words *= 2;                          /* room to spare: other --frames need no other program */
    if (!cli_on_path(verilator ? "verilator" : "iverilog")) return cli_fail(b->c, MLO_E_IO, verilator ? "verilator" : "iverilog", "is not installed: apt install %s", verilator ? "verilator" : "iverilog");
    snprintf(program, room, verilator ? "sim/verilator-%.12s-%lld%s/mlo_tb" : "sim/icarus-%.12s-%lld%s.vvp", b->key, (long long)words, wave && verilator ? "-wave" : "");
    if (!access(cli_in_dir(b, program), R_OK)) return 0;
    if (verilator) {
        cli_word(&x, "verilator"); cli_word(&x, "--binary"); cli_word(&x, "--timing"); cli_word(&x, "-O3"); cli_word(&x, "-Wno-fatal"); cli_word(&x, "-Wno-lint"); cli_word(&x, "-Wno-style");
        cli_word(&x, "-Wno-TIMESCALEMOD"); cli_word(&x, "--top-module"); cli_word(&x, "mlo_tb"); cli_word(&x, "-GWORDS=%lld", (long long)words);
        if (wave) cli_word(&x, "--trace-fst");
        cli_word(&x, "--Mdir"); cli_word(&x, "%.*s", (int)strlen(program) - 7, program); cli_word(&x, "-o"); cli_word(&x, "mlo_tb");
    } else {
        cli_word(&x, "iverilog"); cli_word(&x, "-g2012"); cli_word(&x, "-s"); cli_word(&x, "mlo_tb"); cli_word(&x, "-Pmlo_tb.WORDS=%lld", (long long)words); cli_word(&x, "-o"); cli_word(&x, "%s.part", program);
    }
    cli_sim_sources(b, &x);
    int status = cli_execute(b, &x, "sim/compile.log");
    cli_command_free(&x);
    if (status) {
        char why[300];
        cli_last_line(b, "sim/compile.log", why, sizeof why);
        return cli_fail(b->c, *b->mixture ? MLO_E_MISMATCH : MLO_E_BUG, b->dir, "%s does not compile the Verilog: %s; see %s/sim/compile.log", verilator ? "verilator" : "iverilog", why, b->dir);
    }
    if (!verilator) {
        char from[PATH_MAX];
        snprintf(from, sizeof from, "%s/%s.part", b->dir, program);
        if (rename(from, cli_in_dir(b, program))) return cli_fail(b->c, MLO_E_IO, program, "cannot be written: %s", strerror(errno));
    }
    return 0;
}

static int64_t cli_sim_tokens(const cli_bench *b) { int64_t n = 0; for (int64_t f = 0; f < b->n; f++) n += b->frame[f].tokens; return n; }

/* Cycles without a beat at any door after which nothing more will come: several times the longest silence of a healthy core. */
static int64_t cli_sim_patience(const cli_bench *b) {
    double busiest = cli_json_number(b->manifest, "interval_per_token");
    return 50000 + (int64_t)(4 * busiest * (double)(b->tokens + 16) * (double)b->group);
}

static int cli_sim_arguments(cli_bench *b, cli_command *x) {
    cli *c = b->c; const char *bandwidth = cli_value(c, "bandwidth"), *wave = cli_value(c, "wave"); char *end, here[PATH_MAX];
    long seed = cli_number(c, "seed", 1, 0, INT_MAX), stall = cli_number(c, "stall", 0, 0, 99), latency = cli_number(c, "axi-latency", 7, 0, 100000);
    b->beats = cli_sim_tokens(b) * (b->channels / b->lanes);
    cli_word(x, "+seed=%ld", seed); cli_word(x, "+stall=%ld", stall); cli_word(x, "+latency=%ld", latency);
    cli_word(x, "+beats=%lld", (long long)b->beats); cli_word(x, "+mask_beats=%lld", (long long)(b->masked ? cli_sim_tokens(b) : 0));
    cli_word(x, "+iterations=%lld", (long long)b->iterations); cli_word(x, "+frames_in_flight=%lld", (long long)b->group); cli_word(x, "+timeout=%lld", (long long)(cli_sim_patience(b) * (stall ? 4 : 1)));
    if (bandwidth) {
        double v = strtod(bandwidth, &end), rate = v * 8 * 256 / b->axi_bits;
        if (end == bandwidth || *end || !(v > 0)) return cli_fail(c, MLO_E_USAGE, NULL, "--bandwidth %s is not a number of bytes per cycle", bandwidth);
        cli_word(x, "+rate=%d", rate >= 256 ? 256 : rate < 1 ? 1 : (int)(rate + 0.5));
    }
    if (!b->own_inputs) { cli_word(x, "+input=sim/input.hex"); cli_word(x, "+golden=sim/golden.hex"); if (b->masked) cli_word(x, "+mask=sim/mask.hex"); }
    if (b->image_from_bin) cli_word(x, "+params=sim/params.hex");
    if (cli_value(c, "probe")) cli_word(x, "+probe=sim/probe.txt");
    if (wave && *wave != '/' && !getcwd(here, sizeof here)) return cli_fail(c, MLO_E_IO, NULL, "the working directory: %s", strerror(errno));
    if (wave) cli_word(x, *wave == '/' ? "+wave=%s%s" : "+wave=%s/%s", *wave == '/' ? "" : here, wave);
    return cli_failed(c);
}

/* The bench's lines: MLO FRAME f cycle; MLO KERNEL k busy starved blocked; MLO WEIGHTS n; MLO PASS ..; MLO FAIL .. */
static int cli_sim_lines(cli_bench *b) {
    cli_bytes log;
    if (cli_slurp(b->c, cli_in_dir(b, "sim/run.log"), &log)) { free(log.data); return cli_failed(b->c); }
    for (char *p = log.data, *next; *p; p = next) {
        long long v[4]; int k;
        next = p + strcspn(p, "\n");
        if (*next) *next++ = 0;
        if (sscanf(p, "MLO FRAME %lld %lld", &v[0], &v[1]) == 2 && v[0] == b->n_done && b->n_done < 256) b->done[b->n_done++] = v[1];
        else if (sscanf(p, "MLO KERNEL %d %lld %lld %lld", &k, &v[0], &v[1], &v[2]) == 4 && k >= 0 && k < b->n_kernel) { b->kernel[k].busy = (double)v[0]; b->kernel[k].starved = (double)v[1]; b->kernel[k].blocked = (double)v[2]; }
        else if (sscanf(p, "MLO WEIGHTS %lld", &v[0]) == 1) b->weight_beats = v[0];
        else if (sscanf(p, "MLO PASS words %lld cycles %lld", &v[0], &v[1]) == 2) { b->passes++; b->words = v[0]; b->cycles = v[1]; }
        else if (!strncmp(p, "MLO FAIL", 8)) { if (!b->fails++) snprintf(b->verdict, sizeof b->verdict, "%s", p + 9); }
    }
    free(log.data);
    return 0;
}

static int cli_sim_simulate(cli_bench *b) {
    char program[200]; cli_command x = { { NULL }, 0 };
    const char *simulator = cli_value(b->c, "simulator"), *wave = cli_value(b->c, "wave");
    int verilator = simulator && !strcmp(simulator, "verilator");
    if (simulator && !verilator && strcmp(simulator, "icarus")) return cli_fail(b->c, MLO_E_USAGE, NULL, "--simulator %s: there are icarus and verilator", simulator);
    if (cli_sim_compile(b, verilator, program, sizeof program)) return cli_failed(b->c);
    if (!verilator) { cli_word(&x, "vvp"); cli_word(&x, "-n"); }
    cli_word(&x, verilator ? "./%s" : "%s", program);
    if (wave && !verilator) cli_word(&x, "-fst");
    if (!cli_sim_arguments(b, &x)) b->status = cli_execute(b, &x, "sim/run.log");
    cli_command_free(&x);
    return cli_failed(b->c) ? cli_failed(b->c) : cli_sim_lines(b);
}

/* ---- the verdict --------------------------------------------------------------------------------------------------------------------------- */

/* Which frame, token and channel a beat and lane of the output are. */
static void cli_sim_place(const cli_bench *b, int64_t beat, int lane, char *to, size_t room) {
    int64_t per = b->channels / b->lanes, token = beat / per, f = 0;
    while (f < b->n - 1 && token >= b->frame[f].tokens) token -= b->frame[f++].tokens;
    snprintf(to, room, "frame %lld, token %lld, channel %lld", (long long)f, (long long)token, (long long)(beat % per * b->lanes + lane));
}

/* "word 12 expected 0.. got 0.." becomes a line for people. */
static void cli_sim_explain(const cli_bench *b, char *to, size_t room) {
    long long word; char expected[1200], got[1200], where[120]; int bad = 0, pad = (b->bits + 7) / 8 * 8;
    if (!*b->verdict) { snprintf(to, room, b->passes ? "the simulator ended with status %d after PASS" : "the simulator ended without a verdict, status %d; see %s/sim/run.log", b->status, b->dir); return; }
    if (sscanf(b->verdict, "word %lld expected %1100s got %1100s", &word, expected, got) != 3) { snprintf(to, room, "%.500s", b->verdict); return; }
    size_t n = strlen(expected), k = strlen(got);
    if (word >= b->beats) { snprintf(to, room, "a surplus word after the %lld that were due: %.80s", (long long)b->beats, got); return; }
    for (int lane = 0; lane < b->lanes; lane++) {
        int64_t e = cli_lane(expected + 1, n - 1, lane, pad, b->bits, &bad), g = cli_lane(got + 1, k - 1, lane, pad, b->bits, &bad);
        if (!bad && e == g) continue;
        cli_sim_place(b, word, lane, where, sizeof where);
        if (bad) snprintf(to, room, "first wrong word: %s: expected %.80s, got %.80s", where, expected + 1, got + 1);
        else snprintf(to, room, "first wrong word: %s: expected %lld, got %lld", where, (long long)e, (long long)g);
        return;
    }
    cli_sim_place(b, word, 0, where, sizeof where);
    snprintf(to, room, "first wrong word: %s: the data are right, but the end of the frame is %s", where, expected[0] == '1' ? "missing" : "marked too early");
}

/* ---- --probe: every kernel's stream against the values of host/core.onnx --------------------------------------------------------------------- */

/* Golden values of one kernel, one per frame and iteration. user of the watcher; `frame` comes first: cli_sim_golden sets it. */
typedef struct { int64_t frame; cli_bench *b; mlo_array *value; } cli_golden;

static mlo_array *cli_golden_at(cli_golden *g, int kernel, int64_t frame, int64_t iteration) { return &g->value[((int64_t)kernel * g->b->n + frame) * g->b->iterations + iteration]; }

static int cli_golden_see(void *user, const char *name, int64_t iteration, const mlo_array *a) {
    cli_golden *g = (cli_golden *)user;
    for (int k = 0; k < g->b->n_kernel; k++) {
        if (iteration < 0 || iteration >= g->b->iterations || strcmp(g->b->kernel[k].value, name)) continue;
        mlo_array *to = cli_golden_at(g, k, g->frame, iteration);
        if (to->data) continue;
        if (cli_sim_array(g->b, to, g->b->kernel[k].value, a->dtype, a->rank, a->dims)) return 1;
        memcpy(to->data, a->data, cli_array_bytes(a));
    }
    return 0;
}

/* Where one kernel's stream stands: groups of frames, in them iterations, in them frames. */
typedef struct { int64_t group, iteration, frame, beat; int wrong, done; char what[160]; int64_t order; } cli_cursor;

static void cli_cursor_next(const cli_bench *b, cli_cursor *at) {
    int64_t last = at->group + b->group < b->n ? at->group + b->group : b->n;
    at->beat = 0;
    if (++at->frame < last) return;
    at->frame = at->group;
    if (++at->iteration < b->iterations) return;
    at->iteration = 0; at->group += b->group; at->frame = at->group;
    at->done = at->group >= b->n;
}

/* A number that grows with time as the data flow has it: group, iteration, frame, then token. */
static int64_t cli_cursor_order(const cli_bench *b, const cli_cursor *at, int64_t token) { return ((at->group * b->iterations + at->iteration * b->group + (at->frame - at->group)) * (b->tokens + 1)) + token; }

static void cli_probe_beat(cli_golden *g, int kernel, cli_cursor *at, const char *hex) {
    cli_bench *b = g->b; const cli_kernel *k = &b->kernel[kernel];
    if (at->wrong) return;
    if (at->done) { at->wrong = 1; at->order = INT64_MAX / 2; snprintf(at->what, sizeof at->what, "kernel %s: a surplus word", k->name); return; }
    const mlo_array *a = cli_golden_at(g, kernel, at->frame, at->iteration);
    size_t n = a->data ? cli_count(a) : 0, first = (size_t)at->beat * (size_t)k->lanes;
    for (int lane = 0; lane < k->lanes && first + (size_t)lane < n; lane++) {
        int bad = 0; int64_t got = cli_lane(hex, strlen(hex), lane, k->bits, k->bits, &bad), expected = (int64_t)cli_element(a, first + (size_t)lane);
        if (!bad && got == expected) continue;
        int64_t token = (int64_t)(first + (size_t)lane) / k->channels, channel = (int64_t)(first + (size_t)lane) % k->channels;
        at->wrong = 1; at->order = cli_cursor_order(b, at, token);
        if (bad) snprintf(at->what, sizeof at->what, "kernel %s, frame %lld, iteration %lld, token %lld, channel %lld: expected %lld, got x", k->name, (long long)at->frame, (long long)at->iteration, (long long)token, (long long)channel, (long long)expected);
        else snprintf(at->what, sizeof at->what, "kernel %s, frame %lld, iteration %lld, token %lld, channel %lld: expected %lld, got %lld", k->name, (long long)at->frame, (long long)at->iteration, (long long)token, (long long)channel, (long long)expected, (long long)got);
        return;
    }
    if ((size_t)++at->beat * (size_t)k->lanes >= n) cli_cursor_next(b, at);
}

/* The first kernel that went wrong, in the order of time and then of dataflow. "" when all streams are right. */
static int cli_sim_probe(cli_bench *b, cli_golden *g, char *what, size_t room) {
    cli_bytes text; cli_cursor *at = (cli_cursor *)calloc((size_t)b->n_kernel, sizeof *at); int best = -1;
    *what = 0;
    if (!at || cli_slurp(b->c, cli_in_dir(b, "sim/probe.txt"), &text)) { free(at); return cli_fail(b->c, MLO_E_IO, "sim/probe.txt", "the bench wrote no probe"); }
    for (char *p = text.data, *next; *p; p = next) {
        next = p + strcspn(p, "\n");
        if (!*next) break;                                   /* a line cut off */
        *next++ = 0;
        char *hex = strchr(p, ' ');
        if (!hex) continue;
        *hex++ = 0;
        for (int k = 0; k < b->n_kernel; k++) if (!strcmp(b->kernel[k].name, p)) cli_probe_beat(g, k, &at[k], hex);
    }
    for (int k = 0; k < b->n_kernel; k++) if (at[k].wrong && (best < 0 || at[k].order < at[best].order)) best = k;
    if (best >= 0) snprintf(what, room, "%s", at[best].what);
    else for (int k = 0; k < b->n_kernel && best < 0; k++) if (!at[k].done && (b->fails || !b->passes)) {
        best = k;
        snprintf(what, room, "kernel %s: all words right until it stopped in frame %lld, iteration %lld, token %lld", b->kernel[k].name, (long long)at[k].frame, (long long)at[k].iteration, (long long)(at[k].beat * b->kernel[k].lanes / b->kernel[k].channels));
    }
    free(text.data); free(at);
    return 0;
}

/* ---- the report -------------------------------------------------------------------------------------------------------------------------------- */

static double cli_sim_interval(const cli_bench *b) {
    if (b->n_done < b->n) return 0;
    if (b->n >= 2 * b->group && b->n % b->group == 0) return (double)(b->done[b->n - 1] - b->done[b->group - 1]) / (double)(b->n - b->group);
    return (double)b->cycles / (double)b->n;
}

static int cli_sim_report(cli_bench *b, int pass, const char *why, const char *probe) {
    cJSON *all = cJSON_CreateObject(), *list; int64_t cycles = 0, interval = 0; double steady = cli_sim_interval(b), macs = 0, multipliers = 0;
    int whole = cli_value(b->c, "frame-tokens") == NULL;
    if (whole && mlo_cycles(b->core, b->n, &cycles, &interval)) { cJSON_Delete(all); return cli_adopt(b->c, b->core); }
    cJSON_AddBoolToObject(all, "pass", pass);
    if (!pass) cJSON_AddStringToObject(all, "failure", why);
    if (*b->mixture) cJSON_AddStringToObject(all, "mixture", b->mixture);
    if (cli_value(b->c, "probe")) cJSON_AddStringToObject(all, "probe", *probe ? probe : "every kernel's stream is right");
    cJSON_AddStringToObject(all, "simulator", cli_value(b->c, "simulator") ? cli_value(b->c, "simulator") : "icarus");
    cJSON_AddNumberToObject(all, "frames", (double)b->n);
    cJSON_AddNumberToObject(all, "cycles", (double)b->cycles);
    list = cJSON_AddArrayToObject(all, "frame_done");
    for (int i = 0; i < b->n_done; i++) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)b->done[i]));
    cJSON_AddNumberToObject(all, "interval", steady);
    if (whole) { cJSON_AddNumberToObject(all, "predicted_cycles", (double)cycles); cJSON_AddNumberToObject(all, "predicted_interval", (double)interval); }
    else { cJSON_AddNullToObject(all, "predicted_cycles"); cJSON_AddNullToObject(all, "predicted_interval"); }
    cJSON_AddNumberToObject(all, "words", (double)(b->words * b->lanes));
    cJSON_AddNumberToObject(all, "weight_beats", (double)b->weight_beats);
    list = cJSON_AddArrayToObject(all, "kernels");
    for (int i = 0; i < b->n_kernel; i++) {
        const cli_kernel *k = &b->kernel[i]; cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", k->name); cJSON_AddStringToObject(one, "op", k->op); cJSON_AddNumberToObject(one, "pe", k->pe); cJSON_AddNumberToObject(one, "simd", k->simd);
        cJSON_AddNumberToObject(one, "multipliers", k->multipliers); cJSON_AddNumberToObject(one, "macs", k->macs);
        cJSON_AddNumberToObject(one, "busy", k->busy); cJSON_AddNumberToObject(one, "starved", k->starved); cJSON_AddNumberToObject(one, "blocked", k->blocked);
        cJSON_AddNumberToObject(one, "utilization", k->multipliers > 0 && steady > 0 ? k->macs / (k->multipliers * steady) : 0);
        cJSON_AddNumberToObject(one, "predicted", k->interval * (double)cli_sim_tokens(b) * (double)b->iterations);
        cJSON_AddItemToArray(list, one);
        macs += k->macs; multipliers += k->multipliers;
    }
    cJSON_AddNumberToObject(all, "multipliers", multipliers); cJSON_AddNumberToObject(all, "macs", macs);
    cJSON_AddNumberToObject(all, "utilization", multipliers > 0 && steady > 0 ? macs / (multipliers * steady) : 0);
    char *text = cJSON_PrintUnformatted(all);
    cJSON_Delete(all);
    if (!text) return cli_fail(b->c, MLO_E_MEMORY, NULL, "no memory");
    cli_out o;
    if (!cli_out_open(b->c, &o, NULL)) { cli_out_text(&o, text); cli_out_text(&o, "\n"); }
    cJSON_free(text);
    return cli_out_close(b->c, &o);
}

/* All frames' arrays of one name, one after the other along the first axis (or a new one), as one array. */
static int cli_sim_stack(cli_bench *b, const mlo_array *const *a, int64_t n, mlo_array *to) {
    mlo_array whole = *a[0];
    int first = whole.rank > 0 && whole.dims[0] == 1;
    if (!first) { for (int i = whole.rank++; i > 0; i--) whole.dims[i] = whole.dims[i - 1]; }
    whole.dims[0] = n;
    for (int64_t f = 1; f < n; f++) if (cli_array_bytes(a[f]) != cli_array_bytes(a[0])) return cli_fail(b->c, MLO_E_SHAPE, whole.name, "frames of different lengths cannot be stacked in --outputs; simulate one length at a time");
    if (cli_sim_array(b, to, whole.name, whole.dtype, whole.rank, whole.dims)) return cli_failed(b->c);
    for (int64_t f = 0; f < n; f++) memcpy((char *)to->data + (size_t)f * cli_array_bytes(a[0]), a[f]->data, cli_array_bytes(a[f]));
    return 0;
}

/* --outputs: the model's outputs where the model's inputs were given (post runs in mlo), else the core's. */
static int cli_sim_outputs(cli_bench *b, const char *path) {
    size_t n_out = 0; mlo_array *all = NULL; int through = b->frame[0].model != NULL;
    const mlo_array ***rows = NULL;
    if (!b->frame[0].out && cli_sim_golden(b, NULL, NULL)) return cli_failed(b->c);
    if (through && !(b->post = cli_sim_part(b, "host/post.onnx", &b->opened[2]))) return cli_failed(b->c);
    for (int64_t f = 0; f < b->n; f++) {
        cli_frame *fr = &b->frame[f]; const mlo_array *out = fr->out; size_t n = fr->n_out;
        if (through) {
            mlo_array *in = cli_sim_arrays(b, fr->n_out + fr->n_pre + fr->n_model); const mlo_array *sig; size_t n_sig, k = 0;
            if (!in || mlo_signature(b->post, 0, &sig, &n_sig)) return cli_adopt(b->c, b->post);
            for (size_t i = 0; i < n_sig; i++) {
                const mlo_array *a = cli_named(fr->out, fr->n_out, sig[i].name);
                if (!a) a = cli_named(fr->pre, fr->n_pre, sig[i].name);
                if (!a) a = cli_named(fr->model, fr->n_model, sig[i].name);
                if (a && k < fr->n_out + fr->n_pre + fr->n_model) in[k++] = *a;
            }
            if (mlo_run(b->post, in, k, &out, &n)) return cli_adopt(b->c, b->post);
        }
        if (!rows) {
            n_out = n;
            rows = (const mlo_array ***)cli_npz_alloc(b->c, &b->made, (n + 1) * sizeof *rows);
            for (size_t i = 0; rows && i < n; i++) rows[i] = (const mlo_array **)cli_npz_alloc(b->c, &b->made, (size_t)b->n * sizeof **rows);
            if (cli_failed(b->c)) return cli_failed(b->c);
        }
        for (size_t i = 0; i < n_out; i++) rows[i][f] = &out[i];
    }
    if (!(all = cli_sim_arrays(b, n_out))) return cli_failed(b->c);
    for (size_t i = 0; i < n_out; i++) if (cli_sim_stack(b, rows[i], b->n, &all[i])) return cli_failed(b->c);
    return cli_npz_write(b->c, path, all, n_out);
}

/* ---- the verb -------------------------------------------------------------------------------------------------------------------------------------- */

static int cli_sim_run(cli_bench *b) {
    cli *c = b->c; cli_golden g = { 0, b, NULL }; char why[700] = "", probe[200] = "";
    int probing = cli_value(c, "probe") != NULL;
    if (cli_sim_manifest(b) || cli_sim_frames(b)) return cli_failed(c);
    if (probing && !(g.value = (mlo_array *)cli_npz_alloc(c, &b->made, (size_t)(b->n_kernel * b->n * b->iterations) * sizeof *g.value))) return cli_failed(c);
    if ((probing || !b->own_inputs) && cli_sim_golden(b, probing ? cli_golden_see : NULL, &g)) return cli_failed(c);
    if (!b->own_inputs && (cli_sim_hex(b, "sim/input.hex", b->input, 0, 0) || cli_sim_hex(b, "sim/golden.hex", b->output, 1, 0) || (b->masked && cli_sim_hex(b, "sim/mask.hex", "mlo_mask", 0, 1)))) return cli_failed(c);
    if (b->image_from_bin && cli_sim_image(b)) return cli_failed(c);
    if (cli_sim_simulate(b) || (probing && cli_sim_probe(b, &g, probe, sizeof probe))) return cli_failed(c);
    int words = b->passes == 1 && !b->fails && !b->status && !*probe, pass = words && !*b->mixture;
    if (!words && b->passes == 1 && !b->fails && *probe) snprintf(why, sizeof why, "the output is right, but a stream inside is not");
    else if (!words) cli_sim_explain(b, why, sizeof why);
    if (*probe) { size_t n = strlen(why); snprintf(why + n, sizeof why - n, "; first: %s", probe); }
    if (*b->mixture) { size_t n = strlen(why); snprintf(why + n, sizeof why - n, "%s%s is not the file that manifest.json lists: a mixture, or edited by hand", n ? "; " : "", b->mixture); }
    if (cli_sim_report(b, pass, why, probe)) return cli_failed(c);
    if (!pass) { c->stdout_begun = 1; return cli_fail(c, MLO_E_MISMATCH, b->dir, "FAIL: %s", why); }
    return cli_value(c, "outputs") ? cli_sim_outputs(b, cli_value(c, "outputs")) : 0;
}

static int cli_sim(cli *c) {
    static cli_bench b;
    b.c = c; b.dir = c->operand;
    if (!b.dir) return cli_fail(c, MLO_E_USAGE, NULL, "the build directory is needed: mlo sim DIR");
    cli_sim_run(&b);
    mlo_close(b.pre); mlo_close(b.core); mlo_close(b.post);
    for (int i = 0; i < b.n_cut; i++) mlo_close(b.cut[i]);
    cJSON_Delete(b.manifest);
    free(b.kernel); free(b.frame);
    cli_npz_free(&b.made);
    return cli_failed(c);
}
