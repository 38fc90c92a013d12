/* bench: what a simulation is about: the build directory, the frames to play, the golden words.
 *
 * in:  DIR as emit wrote it, perhaps --inputs, --frames, --frame-tokens.
 * out: cli_bench; hex files in DIR/sim where the frames are not those of DIR/tb.
 *
 * invariant: a file that differs from the manifest is noticed, and simulated all the same (see
 *     sim.c).
 */

typedef struct {
    const char *name;
    const char *op;
    const char *value; /* the value that it makes */

    double pe;
    double simd;
    double multipliers;
    double macs; /* per token */
    double interval; /* cycles per token */

    int lanes; /* of the output */
    int bits; /* of an element of the output */
    int64_t channels; /* of the output */

    int64_t tile; /* tokens of a tile, with parameters in row blocks; else 0 */
    int64_t tile_beats; /* of memory that are read for a tile; else 0 */

    double busy; /* cycles, as the simulation counted them */
    double starved; /* cycles */
    double blocked; /* cycles */
} cli_kernel;

/* One frame: the core's integer inputs and outputs. */
typedef struct {
    const mlo_array *in;
    size_t n_in;
    const mlo_array *out;
    size_t n_out;
    const mlo_array *model;
    size_t n_model;
    const mlo_array *pre;
    size_t n_pre;
    int64_t tokens;
} cli_frame;

enum { CLI_FRAMES_MOST = 256 };

/* A part of a sequence, as it comes into a core with caches. */
typedef struct {
    int64_t frame; /* the sequence, of those there are */
    int64_t slot; /* where the core keeps it */
    int64_t start; /* tokens of it in front of this part */
    int64_t tokens;
    int64_t more; /* ids said behind it that go on inside the core */
    int64_t asked; /* as many may, and no more */
} cli_job;

/* A text that goes on: a sequence of a run. */
typedef struct {
    const int64_t *tokens;
    size_t n;
    size_t prompt; /* of those */
} cli_text;

/* What a simulation should take, as far as can be said before. */
typedef struct {
    double compile; /* seconds */
    double run; /* seconds */
    double first; /* seconds of compile that no other processor helps with */
} cli_effort;

/* A stream into the core. */
typedef struct {
    const char *name; /* in host/core.onnx */
    const char *file;
    int64_t tokens; /* of a frame */
    int64_t beats; /* of a frame */
    int lanes;
    int bits; /* of a lane */
} cli_played;

typedef struct {
    cli *c;
    const char *dir;
    cJSON *manifest;
    int64_t iterations;
    int64_t
        times; /* how often each token leaves: once, or where each layer's tokens leave, once of each */
    int64_t tokens; /* of the longest frame */
    int64_t channels; /* of the core's stream */
    int64_t group; /* frames in flight */
    int64_t bench_frames; /* whose words lie in tb/ */

    int lanes; /* of the core's stream */
    int bits; /* of an element of the core's stream */
    int ids; /* 1: token ids come in */
    int64_t best; /* ids that are said behind each frame, a beat each */
    int around; /* 1: and what follows a frame goes out */
    int pools; /* 1: one vector of each frame goes out */
    int masked; /* 1: a mask stream comes with each frame */
    int axi_bits; /* of a beat of parameters */
    int unrolled; /* 1: a body in hardware for each iteration */
    const char *input; /* the core's, by name */
    const char *output; /* the core's, by name */

    /* the core's inputs that are streams, as the bench plays them: activations, their mask, what
     * every iteration reads again, its mask; NULL: there is none. (frame.in has those there are.) */
    cli_played stream[4];

    cli_kernel *kernel;
    int n_kernel;
    char key[65]; /* digest of all Verilog */
    char digest[65]; /* of the manifest */
    char mixture[256]; /* the first file that is not the manifest's; "" for none */
    int image_from_bin; /* 1: params.bin was changed, params.hex was not */

    cli_frame *frame;
    int64_t n; /* frames to play */
    int64_t slots; /* sequences that the core keeps; 0: it takes whole frames */
    int64_t context; /* positions of each */
    const cJSON *kv; /* what the manifest says of their memory; NULL: there is none */
    int64_t
        past; /* positions in front of a frame, whose keys and values come with it; -1: frames are parts */
    int64_t kept; /* words of that memory that are what they must be, as the bench says */
    cli_job *job;
    int64_t n_job; /* 0: whole frames */
    cli_text *text; /* --generate: of each frame */
    int64_t n_text;
    int own_inputs; /* 1: the bench's own words, as they lie in tb/ */

    mlo *pre;
    mlo *core;
    mlo *post;
    int opened[3]; /* files that pre, core and post have opened */

    mlo *cut[64]; /* cores for shorter frames */
    int64_t cut_tokens[64]; /* of a frame of each */
    int cut_opened[64]; /* files that each has opened */
    int n_cut;

    cli_npz made; /* arrays that sim made itself */
    cli_npz given; /* those of --inputs */

    int64_t counted_cycles; /* read over AXI-Lite, as the two behind it */
    int64_t counted_frames;
    int64_t counted_beats;
    int64_t channel_busy; /* cycles while a frame was inside */
    int64_t rate; /* beats that memory gives in 256 cycles */

    int64_t beats; /* of output that a run has */
    int64_t words; /* compared, as the bench says once it passed */
    int64_t cycles; /* of the run, once it passed */
    int64_t kv_read; /* beats of keys and values, where they stay in memory */
    int64_t kv_written;
    int64_t weight_beats; /* of parameters that were read, those loaded ahead included */
    int64_t delivered; /* beats of parameters that reached the kernels, as the core counts them */
    int64_t done[256]; /* the cycle in which a frame was through */

    int n_done;
    int passes; /* lines that say so */
    int fails; /* lines that say so */
    int status; /* of the simulator's process */
    const char *verdict; /* what the first line of fails said; NULL: there is none */

    struct {
        char name[64];
        long long peak; /* the most beats that it held */
        long long depth; /* beats */
        long long beats; /* of a token */
    } fifo[256];
    int n_fifo;

    int64_t expected; /* cycles: as predicted, or about */
    int verilator; /* 1: the simulator is Verilator; 0: Icarus */
    cli_effort effort; /* what that should take */
    char why_this[160]; /* why that simulator was chosen */

    double begun; /* seconds, by the clock */
    cJSON *predicted; /* the library's report "cycles" */
    int for_people; /* 1: a summary, not JSON */

    char breach[120]; /* the first breach of AXI; "" for none */
    char cause[900]; /* why nothing moved; "" for none */
} cli_bench;

/* Keeps what a line of fails said, however wide its words are. */
static void cli_bench_fails(cli_bench *b, const char *said) {
    const size_t n = strcspn(said, "\n");
    char *kept = (char *)cli_npz_alloc(b->c, &b->made, n + 1);
    if (kept) {
        memcpy(kept, said, n);
        kept[n] = 0;
    }
    b->verdict = kept;
}

/* ---- the directory -------------------------------------------------------- */

static const char *cli_in_dir(const cli_bench *b, const char *file) {
    /* a few at a time */
    static char path[4][PATH_MAX];
    static int at;
    char *p = path[at++ & 3];
    snprintf(p, PATH_MAX, "%s/%s", b->dir, file);
    return p;
}

/* A listed file's digest against the manifest's. Verilog goes into the key. */
static int cli_sim_file(cli_bench *b, const cJSON *f, char *all, size_t room) {
    cli_bytes bytes;
    char hex[65];
    if (!f->string || f->string[0] == '/' || strstr(f->string, ".."))
        return cli_fail(b->c, MLO_E_FORMAT, "manifest.json",
            "lists '%s', which is no file of a build directory", f->string ? f->string : "");
    const char *path = cli_in_dir(b, f->string);
    if (access(path, R_OK))
        return cli_fail(b->c, MLO_E_IO, path,
            "%s, but manifest.json lists it; emit the directory anew", strerror(errno));
    if (cli_slurp(b->c, path, &bytes)) {
        free(bytes.data);
        return cli_failed(b->c);
    }
    mlo_digest(bytes.data, bytes.n, hex);
    free(bytes.data);
    int differs = strcmp(hex, cli_json_text(f, "sha256")) != 0;
    if (differs && !*b->mixture) snprintf(b->mixture, sizeof b->mixture, "%s", f->string);
    if (!strcmp(f->string, "params.bin") && differs) b->image_from_bin = 1;
    if (!strcmp(f->string, "params.hex") && differs) b->image_from_bin = 0;
    if (cli_ends(f->string, ".v")) {
        size_t n = strlen(all);
        if (n + 130 < room) snprintf(all + n, room - n, "%s", hex);
    }
    return 0;
}

static void cli_bench_stream(cli_played *s, const char *name, const char *file, int64_t tokens,
    int64_t beats, int lanes, int bits) {
    const cli_played is = { name, file, tokens, tokens * beats, lanes, bits };
    *s = is;
}

/* The streams into the core, as the manifest has them. 1: it has them otherwise. */
static int cli_bench_streams(cli_bench *b) {
    const cJSON *again = cJSON_GetObjectItemCaseSensitive(b->manifest, "replay");
    cli_bench_stream(
        &b->stream[0], b->input, "input.hex", b->tokens, b->channels / b->lanes, b->lanes, b->bits);
    if (b->ids) cli_bench_stream(&b->stream[0], b->input, "input.hex", b->tokens, 1, 1, 32);
    if (b->masked) cli_bench_stream(&b->stream[1], "mlo_mask", "mask.hex", b->tokens, 1, 1, 1);
    if (!again) return 0;
    const int64_t tokens = (int64_t)cli_json_number(again, "tokens");
    const int64_t channels = (int64_t)cli_json_number(again, "channels");
    const int lanes = (int)cli_json_number(again, "lanes");
    const int bits = (int)cli_json_number(again, "bits");
    if (tokens < 1 || tokens > 1 << 24 || lanes < 1 || channels < lanes || channels > 1 << 24
        || channels % lanes || bits < 1 || bits > 32)
        return 1;
    cli_bench_stream(&b->stream[2], cli_json_text(again, "name"), "replay.hex", tokens,
        channels / lanes, lanes, bits);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(again, "masked")))
        cli_bench_stream(&b->stream[3], "mlo_memory_mask", "replay_mask.hex", tokens, 1, 1, 1);
    return 0;
}

/* What the manifest says of each kernel. */
static void cli_bench_kernels(cli_bench *b, const cJSON *list) {
    const cJSON *k;
    int i = 0;
    cJSON_ArrayForEach(k, list) {
        cli_kernel *to = &b->kernel[i++];
        to->name = cli_json_text(k, "name");
        to->op = cli_json_text(k, "op");
        to->value = cli_json_text(k, "value");
        to->pe = cli_json_number(k, "pe");
        to->simd = cli_json_number(k, "simd");
        to->multipliers = cli_json_number(k, "multipliers");
        to->macs = cli_json_number(k, "macs");
        to->interval = cli_json_number(k, "interval");
        to->lanes = (int)cli_json_number(k, "lanes");
        to->bits = (int)cli_json_number(k, "bits");
        to->channels = (int64_t)cli_json_number(k, "channels");
        to->tile = (int64_t)cli_json_number(k, "tile");
        to->tile_beats = (int64_t)cli_json_number(k, "tile_beats");
    }
}

/* Reads it. */
static int cli_sim_read(cli_bench *b) {
    cli *c = b->c;
    cli_bytes text;
    struct stat st;
    const char *path = cli_in_dir(b, "manifest.json");
    if (stat(b->dir, &st))
        return cli_fail(
            c, MLO_E_IO, b->dir, "%s; mlo compile MODEL -o %s makes it", strerror(errno), b->dir);
    if (!S_ISDIR(st.st_mode))
        return cli_fail(
            c, MLO_E_IO, b->dir, "is no directory; sim takes what mlo compile -o DIR made");
    if (stat(path, &st))
        return cli_fail(c, MLO_E_IO, b->dir,
            "holds no manifest.json: it is no build directory, or one that was not finished");
    if (cli_slurp(c, path, &text)) {
        free(text.data);
        return cli_failed(c);
    }
    b->manifest = cJSON_ParseWithLength(text.data, text.n);
    mlo_digest(text.data, text.n, b->digest);
    free(text.data);
    return 0;
}

/* The files that it lists; a folder for what sim makes. */
static int cli_sim_files(cli_bench *b) {
    const cJSON *f;
    char all[65 * 128] = "";
    cJSON_ArrayForEach(f, cJSON_GetObjectItemCaseSensitive(b->manifest, "files")) {
        if (cli_sim_file(b, f, all, sizeof all)) return cli_failed(b->c);
    }
    mlo_digest(all, strlen(all), b->key);
    if (mkdir(cli_in_dir(b, "sim"), 0777) && errno != EEXIST)
        return cli_fail(
            b->c, MLO_E_IO, cli_in_dir(b, "sim"), "cannot be made: %s", strerror(errno));
    return 0;
}

static int cli_sim_manifest(cli_bench *b) {
    cli *c = b->c;
    if (cli_sim_read(b)) return cli_failed(c);
    const char *path = cli_in_dir(b, "manifest.json");
    const cJSON *m = b->manifest;
    if (cli_is_c(m))
        return c->verb->bit == V_SIM ? cli_sim_files(b)
                                     : cli_fail(c, MLO_E_UNSUPPORTED, b->dir,
                                           "it holds C, not Verilog; mlo sim runs its test");
    const cJSON *stream = cJSON_GetObjectItemCaseSensitive(m, "stream");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(m, "kernels");
    b->iterations = (int64_t)cli_json_number(m, "iterations");
    b->tokens = (int64_t)cli_json_number(m, "tokens");
    b->channels = (int64_t)cli_json_number(m, "channels");
    b->group = (int64_t)cli_json_number(m, "frames_in_flight");
    b->bench_frames = (int64_t)cli_json_number(m, "bench_frames");
    b->slots = (int64_t)cli_json_number(m, "slots");
    b->context = b->slots ? (int64_t)cli_json_number(m, "context") : b->tokens;
    b->kv = cJSON_GetObjectItemCaseSensitive(m, "kv");
    b->past = cJSON_HasObjectItem(b->kv, "kept") ? (int64_t)cli_json_number(b->kv, "past") : -1;
    b->axi_bits = (int)cli_json_number(m, "axi_bits");
    b->unrolled = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(m, "unrolled"));
    b->lanes = (int)cli_json_number(stream, "lanes");
    b->bits = (int)cli_json_number(stream, "bits");
    b->masked = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(stream, "masked"));
    const cJSON *around = cJSON_GetObjectItemCaseSensitive(m, "around");
    b->ids = cJSON_IsObject(around);
    b->around = b->ids && !cJSON_HasObjectItem(around, "front");
    if (b->around) {
        b->best = (int64_t)cli_json_number(around, "best");
        b->channels = 2 * b->best;
        b->lanes = 2;
        b->bits = 32;
    }
    const cJSON *tail = cJSON_GetObjectItemCaseSensitive(around, "tail");
    b->pools = cJSON_IsObject(tail);
    if (b->pools) {
        b->channels = (int64_t)cli_json_number(tail, "channels");
        b->lanes = (int)cli_json_number(tail, "lanes");
        b->bits = (int)cli_json_number(tail, "bits");
    }
    b->input = cli_json_text(cJSON_GetObjectItemCaseSensitive(m, "input"), "name");
    const cJSON *output = cJSON_GetObjectItemCaseSensitive(m, "output");
    b->output = cli_json_text(output, "name");
    b->times = cJSON_GetObjectItemCaseSensitive(output, "times") ? b->iterations : 1;
    b->n_kernel = cJSON_GetArraySize(list);
    if (!cJSON_IsObject(m) || b->iterations < 1 || b->tokens < 1 || b->tokens > 1 << 24
        || b->lanes < 1 || b->channels < b->lanes || b->channels > 1 << 24 || b->channels % b->lanes
        || b->bits < 1 || b->bits > 32 || b->group < 1 || b->bench_frames < 1
        || b->bench_frames > CLI_FRAMES_MOST || b->slots < 0 || b->slots > 255 || b->axi_bits < 8
        || b->axi_bits > 1024 || b->context < b->tokens || b->context > 1 << 24 || b->n_kernel < 1
        || b->n_kernel > 256)
        return cli_fail(c, MLO_E_FORMAT, path, "is not what mlo %s writes", MLO_VERSION);
    b->kernel = (cli_kernel *)cli_npz_alloc(c, &b->made, (size_t)b->n_kernel * sizeof *b->kernel);
    if (!b->kernel) return cli_failed(c);
    if (cli_bench_streams(b))
        return cli_fail(c, MLO_E_FORMAT, path, "is not what mlo %s writes", MLO_VERSION);
    cli_bench_kernels(b, list);
    return cli_sim_files(b);
}

/* ---- frames --------------------------------------------------------------- */

static mlo *cli_sim_part(cli_bench *b, const char *file, int *opened) {
    mlo *m = cli_handle(opened, cli_warn);
    if (!m) {
        cli_fail(b->c, MLO_E_MEMORY, NULL, "no memory");
        return NULL;
    }
    if (mlo_load(m, cli_in_dir(b, file)) || mlo_to(m, "read")) {
        cli_adopt(b->c, m);
        mlo_close(m);
        return NULL;
    }
    return m;
}

static const mlo_array *cli_named(const mlo_array *a, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (a[i].name && !strcmp(a[i].name, name)) return &a[i];
    return NULL;
}

/* A new array that lives as long as the bench. (Not in a list that moves: frames point at it.) */
static mlo_array *cli_sim_arrays(cli_bench *b, size_t n) {
    return (mlo_array *)cli_npz_alloc(b->c, &b->made, (n + 1) * sizeof(mlo_array));
}

static int cli_sim_array(
    cli_bench *b, mlo_array *a, const char *name, mlo_dtype type, int rank, const int64_t *dims) {
    memset(a, 0, sizeof *a);
    a->name = name;
    a->dtype = type;
    a->rank = rank;
    for (int i = 0; i < rank; i++) a->dims[i] = dims[i];
    return (a->data = cli_npz_alloc(b->c, &b->made, cli_array_bytes(a) + 1)) ? 0 : cli_failed(b->c);
}

static int cli_digit(char ch) {
    return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* One lane of a beat: `line` is the tlast digit and the lanes, the last one first; lanes take
 * `pad` bits. Sign-extended. -1 in *bad: an x or nonsense. */
static int64_t cli_lane(const char *digits, size_t n, int lane, int pad, int bits, int *bad) {
    uint64_t v = 0;
    for (int bit = bits; bit--;) {
        size_t at = (size_t)lane * (size_t)pad + (size_t)bit, from_end = at / 4;
        int d = from_end < n ? cli_digit(digits[n - 1 - from_end]) : -1;
        if (d < 0) {
            *bad = 1;
            return 0;
        }
        v = v << 1 | (uint64_t)(d >> (at % 4) & 1);
    }
    return v >> (bits - 1) ? (int64_t)v - ((int64_t)1 << bits) : (int64_t)v;
}

static void cli_store(mlo_array *a, size_t i, int64_t v) {
    switch (a->dtype) {
    case MLO_INT8: ((int8_t *)a->data)[i] = (int8_t)v; break;
    case MLO_BOOL:
    case MLO_UINT8: ((uint8_t *)a->data)[i] = (uint8_t)v; break;
    case MLO_INT16: ((int16_t *)a->data)[i] = (int16_t)v; break;
    default: ((int32_t *)a->data)[i] = (int32_t)v;
    }
}

/* The bench's own frames of stream `of`, from tb/, as input `at` of the core. */
static int cli_sim_from_hex(cli_bench *b, const cli_played *of, int64_t frames, size_t at) {
    cli_bytes text;
    char file[64];
    snprintf(file, sizeof file, "tb/%s", of->file);
    if (cli_slurp(b->c, cli_in_dir(b, file), &text)) {
        free(text.data);
        return cli_failed(b->c);
    }
    const char *p = text.data;
    const mlo_array *sig;
    size_t n_sig;
    int bad = 0;
    if (mlo_signature(b->core, 0, &sig, &n_sig)) {
        free(text.data);
        return cli_adopt(b->c, b->core);
    }
    const mlo_array *like = cli_named(sig, n_sig, of->name);
    int pad = (of->bits + 7) / 8 * 8;
    for (int64_t f = 0; like && f < frames && !bad; f++) {
        mlo_array *a = (mlo_array *)(uintptr_t)b->frame[f].in + at;
        if (cli_sim_array(b, a, like->name, like->dtype, like->rank, like->dims)) break;
        for (size_t i = 0, n = cli_count(a); i < n && !bad; i += (size_t)of->lanes) {
            p += strspn(p, " \r\n");
            size_t length = strspn(p, "0123456789abcdef");
            if (length < 2) {
                bad = 1;
                break;
            }
            for (size_t k = 0; k < (size_t)of->lanes; k++) {
                const int64_t v = cli_lane(
                    p + 1, length - 1, (int)k, pad, of->bits > 1 ? of->bits : 8, &bad);
                cli_store(a, i + k, of->bits > 1 ? v : v & 1);
            }
            p += length;
        }
    }
    free(text.data);
    return !like || bad ? cli_fail(b->c, MLO_E_FORMAT, file,
                              "does not hold the %lld frames that manifest.json speaks of",
                              (long long)b->bench_frames)
                        : cli_failed(b->c);
}

/* Are frames stacked along its first axis, which is one of its own, or where the input has 1? */
static int cli_holds_frames(const mlo_array *a, const mlo_array *like) {
    return a->rank == like->rank + 1 || (a->rank == like->rank && a->rank && like->dims[0] == 1);
}

/* Frame f of an array: the array itself, or slice f along the first axis. */
static int cli_sim_slice(
    cli_bench *b, const mlo_array *a, const mlo_array *like, int64_t f, mlo_array *to) {
    size_t bytes = cli_array_bytes(a);
    int64_t count = a->dims[0];
    *to = *a;
    if (!cli_holds_frames(a, like)) return 0;
    if (f >= count)
        return cli_fail(b->c, MLO_E_SHAPE, a->name, "holds %lld frames; frame %lld is asked for",
            (long long)count, (long long)f + 1);
    to->rank = like->rank;
    if (a->rank == like->rank)
        to->dims[0] = 1;
    else
        for (int i = 0; i < to->rank; i++) to->dims[i] = a->dims[i + 1];
    to->data = (char *)a->data + (size_t)f * (bytes / (size_t)count);
    return 0;
}

/* How many frames the arrays of --inputs hold, seen as inputs of `sig`. */
static int64_t cli_sim_count(const cli_npz *z, const mlo_array *sig, size_t n, int by_name) {
    int64_t most = 1;
    for (size_t i = 0; i < n && i < (by_name ? n : z->n); i++) {
        const mlo_array *a = by_name ? cli_npz_find(z, sig[i].name) : &z->array[i];
        if (a && cli_holds_frames(a, &sig[i]) && a->dims[0] > most) most = a->dims[0];
    }
    return most;
}

/* The core's inputs of one frame, picked by name out of what pre made (and out of the model's own
 * inputs). */
static int cli_sim_through_pre(cli_bench *b, cli_frame *f) {
    const mlo_array *sig;
    size_t n;
    if (mlo_run(b->pre, f->model, f->n_model, &f->pre, &f->n_pre)) return cli_adopt(b->c, b->pre);
    if (mlo_signature(b->core, 0, &sig, &n)) return cli_adopt(b->c, b->core);
    mlo_array *in = cli_sim_arrays(b, n);
    for (size_t i = 0; in && i < n; i++) {
        const mlo_array *a = cli_named(f->pre, f->n_pre, sig[i].name);
        if (!a) a = cli_named(f->model, f->n_model, sig[i].name);
        if (!a)
            return cli_fail(b->c, MLO_E_DATA, sig[i].name,
                "host/pre.onnx does not make this input of the core");
        in[i] = *a;
    }
    f->in = in;
    f->n_in = n;
    return cli_failed(b->c);
}

/* Frames from --inputs: the core's own inputs when a name is one of them, else the model's. */
static int cli_sim_given(cli_bench *b, const cli_npz *z) {
    const mlo_array *core, *pre;
    size_t n_core, n_pre;
    int is_core = 0, by_name = 0;
    if (mlo_signature(b->core, 0, &core, &n_core) || mlo_signature(b->pre, 0, &pre, &n_pre)) {
        cli_adopt(b->c, b->core);
        return cli_adopt(b->c, b->pre);
    }
    for (size_t i = 0; i < n_core; i++)
        is_core |= cli_npz_find(z, core[i].name) != NULL && !cli_named(pre, n_pre, core[i].name);
    const mlo_array *sig = is_core ? core : pre;
    size_t n = is_core ? n_core : n_pre;
    for (size_t i = 0; i < n; i++) by_name |= cli_npz_find(z, sig[i].name) != NULL;
    for (int64_t f = 0; f < b->n; f++) {
        mlo_array *in = cli_sim_arrays(b, n > z->n ? n : z->n);
        size_t k = 0;
        for (size_t i = 0; in && i < n; i++) {
            const mlo_array *a = by_name ? cli_npz_find(z, sig[i].name)
                : i < z->n               ? &z->array[i]
                                         : NULL;
            if (!a) return cli_fail(b->c, MLO_E_USAGE, sig[i].name, "is missing in --inputs");
            if (cli_sim_slice(b, a, &sig[i], f, &in[k])) return cli_failed(b->c);
            if (in[k].dtype != sig[i].dtype)
                return cli_fail(b->c, MLO_E_TYPE, sig[i].name, "is %s in --inputs; %s is needed",
                    cli_type_name(in[k].dtype), cli_type_name(sig[i].dtype));
            in[k++].name = sig[i].name;
        }
        if (!in) return cli_failed(b->c);
        if (is_core) {
            b->frame[f].in = in;
            b->frame[f].n_in = k;
        } else {
            b->frame[f].model = in;
            b->frame[f].n_model = k;
            if (cli_sim_through_pre(b, &b->frame[f])) return cli_failed(b->c);
        }
    }
    return 0;
}

/* The bench's frames, and drawn ones beyond them. */
static int cli_sim_own(cli_bench *b) {
    /* (tb/ has parts of a sequence, not all of it) */
    int64_t own = b->slots ? 0 : b->n < b->bench_frames ? b->n : b->bench_frames;
    for (int64_t f = 0; f < own; f++)
        if (!(b->frame[f].in = cli_sim_arrays(b, 4))) return cli_failed(b->c);
    for (size_t k = 0, at = 0; k < 4; k++) {
        if (!b->stream[k].name) continue;
        if (cli_sim_from_hex(b, &b->stream[k], own, at++)) return cli_failed(b->c);
        for (int64_t f = 0; f < own; f++) b->frame[f].n_in = at;
    }
    for (int64_t f = own; f < b->n; f++) {
        if (mlo_draw(
                b->pre, (uint64_t)(MLO_BENCH_DRAW + f), &b->frame[f].model, &b->frame[f].n_model))
            return cli_adopt(b->c, b->pre);
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
        if (b->stream[0].name && !strcmp(b->stream[0].name, "mlo_ids"))
            return cli_fail(b->c, MLO_E_UNSUPPORTED, NULL,
                "--frame-tokens of a core of ids, to whose rows host/core.onnx adds all %lld "
                "positions; leave it out",
                (long long)b->tokens);
        if (b->stream[2].name)
            return cli_fail(b->c, MLO_E_UNSUPPORTED, NULL,
                "--frame-tokens beside '%s', which comes whole; leave it out", b->stream[2].name);
        char *end;
        long t = strtol(p, &end, 10);
        if (end == p || (*end && *end != ',') || t < 1 || t > b->tokens)
            return cli_fail(b->c, MLO_E_USAGE, NULL,
                "--frame-tokens %s: numbers from 1 to %lld with commas between them are needed",
                list, (long long)b->tokens);
        p = *end ? end + 1 : list;
        fr->tokens = t;
        mlo_array *in = cli_sim_arrays(b, fr->n_in);
        /* [1, tokens, channels] and [1, tokens]: the first ones lie in front */
        for (size_t i = 0; in && i < fr->n_in; i++) {
            in[i] = fr->in[i];
            int axis = !strcmp(in[i].name, "mlo_mask") ? in[i].rank - 1 : in[i].rank - 2;
            if (axis >= 0 && in[i].dims[axis] == b->tokens) in[i].dims[axis] = t;
        }
        if (!(fr->in = in)) return cli_failed(b->c);
    }
    return 0;
}

static int cli_texts(cli_bench *b);
static int cli_texts_given(cli_bench *b);
static int cli_jobs_list(cli_bench *b);
static int64_t cli_jobs_frames(const cli_bench *b);

static int cli_sim_frames(cli_bench *b) {
    cli *c = b->c;
    const char *inputs = cli_value(c, "inputs"), *list = cli_value(c, "frame-tokens");
    const mlo_array *core, *pre;
    size_t n_core, n_pre;
    int64_t held = b->bench_frames;
    if (!(b->core = cli_sim_part(b, "host/core.onnx", &b->opened[1]))
        || !(b->pre = cli_sim_part(b, "host/pre.onnx", &b->opened[0])))
        return cli_failed(c);
    if (inputs && cli_npz_read(c, inputs, &b->given)) return cli_failed(c);
    if (inputs && !mlo_signature(b->core, 0, &core, &n_core)
        && !mlo_signature(b->pre, 0, &pre, &n_pre)) {
        held = cli_sim_count(&b->given, core, n_core, 1);
        int64_t other = cli_sim_count(&b->given, pre, n_pre, 1);
        int64_t third = cli_sim_count(&b->given, pre, n_pre, 0);
        if (other > held) held = other;
        if (held == 1 && third > held) held = third;
    }
    if (list) {
        held = 1;
        for (const char *p = list; *p; p++) held += *p == ',';
    }
    if (cli_texts(b) || cli_jobs_list(b)) return cli_failed(c);
    b->n = b->n_job
        ? cli_jobs_frames(b)
        : cli_number(c, "frames", (long)(held > CLI_FRAMES_MOST ? CLI_FRAMES_MOST : held), 1,
              CLI_FRAMES_MOST);
    b->own_inputs = !inputs && !list && !cli_value(c, "jobs") && !b->n_text
        && b->n == b->bench_frames;
    if (!cli_failed(c))
        b->frame = (cli_frame *)cli_npz_alloc(c, &b->made, (size_t)b->n * sizeof *b->frame);
    if (cli_failed(c)) return cli_failed(c);
    if (b->n_text)
        cli_texts_given(b);
    else if (inputs)
        cli_sim_given(b, &b->given);
    else
        cli_sim_own(b);
    return cli_failed(c) ? cli_failed(c) : cli_sim_cut(b);
}

/* ---- golden --------------------------------------------------------------- */

/* The core for frames of so many tokens. */
static mlo *cli_sim_core(cli_bench *b, int64_t tokens) {
    if (tokens == b->tokens) return b->core;
    for (int i = 0; i < b->n_cut; i++)
        if (b->cut_tokens[i] == tokens) return b->cut[i];
    if (b->n_cut == 64) {
        cli_fail(b->c, MLO_E_UNSUPPORTED, NULL, "more than 64 lengths of frames in one run");
        return NULL;
    }
    mlo *m = cli_sim_part(b, "host/core.onnx", &b->cut_opened[b->n_cut]);
    if (!m) return NULL;
    b->cut[b->n_cut] = m;
    b->cut_tokens[b->n_cut++] = tokens;
    if (mlo_resize(m, tokens)) {
        cli_adopt(b->c, m);
        return NULL;
    }
    return m;
}

static int cli_sim_golden(cli_bench *b, mlo_watcher see, void *user) {
    for (int64_t f = 0; f < b->n; f++) {
        cli_frame *fr = &b->frame[f];
        mlo *core = cli_sim_core(b, fr->tokens);
        if (!core) return cli_failed(b->c);
        if (see) {
            *(int64_t *)user = f;
            mlo_watch(core, see, user);
        }
        if (mlo_run(core, fr->in, fr->n_in, &fr->out, &fr->n_out)) return cli_adopt(b->c, core);
        mlo_watch(core, NULL, NULL);
    }
    return 0;
}

/* {tlast, lanes} per beat, in hexadecimal, the last lane first. */
static void cli_hex_beats(cli_out *o, const mlo_array *a, int lanes, int bits) {
    int pad = (bits + 7) / 8 * 8;
    size_t n = cli_count(a), step = (size_t)lanes;
    char line[4100];
    for (size_t at = 0; at < n; at += step) {
        int k = 0;
        line[k++] = at + step >= n ? '1' : '0';
        for (size_t lane = step; lane-- && k < 4080;) {
            uint64_t v = (uint64_t)(int64_t)cli_element(a, at + lane);
            for (int d = pad / 4; d--;) line[k++] = "0123456789abcdef"[v >> (4 * d) & 15];
        }
        line[k++] = '\n';
        cli_out_put(o, line, (size_t)k);
    }
}

static int cli_sim_hex(cli_bench *b, const cli_played *of, int output) {
    cli_out o;
    char file[64];
    const char *name = of->name;
    snprintf(file, sizeof file, "sim/%s", of->file);
    cli_out_open(b->c, &o, cli_in_dir(b, file));
    for (int64_t f = 0; f < b->n; f++) {
        const mlo_array *a = output ? cli_named(b->frame[f].out, b->frame[f].n_out, name)
                                    : cli_named(b->frame[f].in, b->frame[f].n_in, name);
        if (a)
            cli_hex_beats(&o, a, of->lanes, of->bits);
        else
            cli_fail(b->c, MLO_E_FORMAT, name,
                "is no %s of host/core.onnx, though manifest.json says so",
                output ? "output" : "input");
    }
    return cli_out_close(b->c, &o);
}

/* Keys and values of all iterations in their memory's words, the first row first: those that `list` of the manifest
 * names, of what comes into the core, or (output) of what it makes. */
static int cli_sim_rows(cli_bench *b, const char *list, const char *file, int output) {
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(b->kv, list);
    const size_t lanes = (size_t)cli_json_number(b->kv, "lanes"),
                 channels = (size_t)cli_json_number(b->kv, "channels"),
                 row = (size_t)cli_json_number(b->kv, "row_beats");
    const size_t bytes = ((size_t)cli_json_number(b->kv, "bits") + 7) / 8,
                 axi = (size_t)b->axi_bits / 8;
    const cli_frame *f = &b->frame[0];
    const mlo_array *a[2] = { NULL, NULL };
    cli_out o;
    if (!names) return cli_failed(b->c);
    for (int k = 0; k < 2; k++) {
        const cJSON *name = cJSON_GetArrayItem(names, k);
        const char *text = cJSON_IsString(name) ? name->valuestring : "";
        a[k] = output ? cli_named(f->out, f->n_out, text) : cli_named(f->in, f->n_in, text);
        if (!a[k] || !lanes || !channels || lanes * bytes > axi || bytes > 2
            || cli_count(a[k]) % (channels * (size_t)b->iterations)
            || cli_count(a[k]) != cli_count(a[0]))
            return cli_fail(b->c, MLO_E_FORMAT, text,
                "keys or values that host/core.onnx has not, though manifest.json says so");
    }
    const size_t per = axi / (lanes * bytes) * lanes,
                 rows = cli_count(a[0]) / channels / (size_t)b->iterations;
    cli_out_open(b->c, &o, cli_in_dir(b, file));
    for (size_t w = 0; w < 2 * (size_t)b->iterations * rows * row; w++) {
        const size_t first = w % row * per, at = w / row % rows, i = w / row / rows / 2;
        const mlo_array *from = a[w / row / rows % 2];
        char line[260];
        size_t n = 0;
        for (size_t k = axi; k--;) {
            const size_t c = first + k / bytes;
            const int64_t v = k / bytes < per && c < channels
                ? (int64_t)cli_element(from, (i * rows + at) * channels + c) >> 8 * (k % bytes)
                : 0;
            line[n++] = "0123456789abcdef"[v >> 4 & 15];
            line[n++] = "0123456789abcdef"[v & 15];
        }
        line[n++] = '\n';
        cli_out_put(&o, line, n);
    }
    return cli_out_close(b->c, &o);
}

/* What the bench plays and expects, where that is not its own. */
static int cli_sim_write(cli_bench *b) {
    cli_played golden = b->stream[0];
    golden.name = b->output;
    golden.file = "golden.hex";
    golden.lanes = b->lanes;
    golden.bits = b->bits;
    for (int k = 0; k < 4; k++)
        if (b->stream[k].name && cli_sim_hex(b, &b->stream[k], 0)) return cli_failed(b->c);
    return cli_sim_hex(b, &golden, 1) || cli_sim_rows(b, "given", "sim/past.hex", 0)
        || cli_sim_rows(b, "kept", "sim/kept.hex", 1);
}

/* sim/params.hex out of params.bin. */
static int cli_sim_image(cli_bench *b) {
    cli_bytes bin;
    cli_out o;
    size_t axi = (size_t)b->axi_bits / 8;
    if (!cli_slurp(b->c, cli_in_dir(b, "params.bin"), &bin)) {
        cli_out_open(b->c, &o, cli_in_dir(b, "sim/params.hex"));
        for (size_t at = 0; at + axi <= bin.n; at += axi) {
            char line[260];
            size_t k = 0;
            for (size_t i = axi; i--;) {
                unsigned char v = (unsigned char)bin.data[at + i];
                line[k++] = "0123456789abcdef"[v >> 4];
                line[k++] = "0123456789abcdef"[v & 15];
            }
            line[k++] = '\n';
            cli_out_put(&o, line, k);
        }
        cli_out_close(b->c, &o);
    }
    free(bin.data);
    return cli_failed(b->c);
}
