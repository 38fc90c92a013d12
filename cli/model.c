/* model: the stage verbs, run, check and show.
 *
 * in:  a model from FILE or stdin.
 * out: a model on stdout or in -o FILE; or what was asked about it.
 *
 * Stages are run one at a time, so that --keep can save each model and --report can ask in between.
 */

/* Is this an error document, which an earlier stage of the pipe left? */
static int cli_is_error(const cli_bytes *b) {
    static const char *const words[] = { "{", "\"error\"", ":" };
    size_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        while (at < b->n && strchr(" \t\r\n", b->data[at]) && b->data[at]) at++;
        if (b->n - at < strlen(words[i]) || strncmp(b->data + at, words[i], strlen(words[i])))
            return 0;
        at += strlen(words[i]);
    }
    return 1;
}

/* A model file's own path where it is a symlink, so that what refers to it later need not follow
 * one. */
static const char *cli_real(const char *path, char *room) {
    struct stat st;
    return !lstat(path, &st) && S_ISLNK(st.st_mode) && realpath(path, room) ? room : path;
}

/* Loads c->operand (or stdin) into the handle. Bytes of stdin are kept until the end: mlo borrows
 * them. */
static int cli_load(cli *c, mlo *m, cli_bytes *b) {
    char real[PATH_MAX];
    const char *path = c->operand ? c->operand : "-";
    if (!strcmp(path, "-") && !b->data) {
        if (isatty(STDIN_FILENO))
            return cli_fail(c, MLO_E_USAGE, NULL, "no model: give a FILE, or pipe one in");
        if (cli_slurp_fd(c, STDIN_FILENO, "stdin", b)) return cli_failed(c);
    }
    if (!strcmp(path, "-")) {
        int r = mlo_parse(m, b->data, b->n, ".");
        if (r && m == c->m && cli_is_error(b)) c->passed_on = 1;
        return r;
    }
    return cli_plain(c, path) ? cli_failed(c) : mlo_load(m, cli_real(path, real));
}

static int cli_ends(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* ---- reports -------------------------------------------------------------- */

/* What the stages said, for --report and for compile's summary. Texts belong to the handle. */
typedef struct {
    const char *scope; /* in the order in which they ran */
    const char *roll;
    const char *quantize;
    const char *folding;
} cli_reports;

static int cli_report_stage(cli *c, const char *stage, cli_reports *r) {
    if (!strcmp(stage, "scope")) r->scope = mlo_report(c->m, "scope");
    if (!strcmp(stage, "roll")) r->roll = mlo_report(c->m, "roll");
    if (!strcmp(stage, "quantize")) r->quantize = mlo_report(c->m, "quantize");
    if (!strcmp(stage, "fold")) r->folding = mlo_report(c->m, "folding");
    return cli_failed(c);
}

/* roll --report holds roll's report itself; later stages add theirs as members. */
static int cli_report_write(cli *c, const cli_reports *r) {
    const char *path = cli_value(c, "report"), *folding = cli_value(c, "save-folding");
    if (path && !r->scope && !r->roll && !r->quantize)
        return cli_fail(c, MLO_E_USAGE, NULL,
            "--report: no stage that reports had to run; give it to the stage that does (scope, "
            "roll, quantize)");
    if (path) {
        cJSON *all = cJSON_Parse(r->roll ? r->roll : "{}");
        cJSON *scope = r->scope ? cJSON_Parse(r->scope) : NULL;
        cJSON *q = r->quantize ? cJSON_Parse(r->quantize) : NULL;
        if (all && scope)
            cJSON_AddItemToObject(all, "scopes", scope);
        else
            cJSON_Delete(scope);
        if (all && q)
            cJSON_AddItemToObject(all, "quantize", q);
        else
            cJSON_Delete(q);
        if (!all) return cli_fail(c, MLO_E_BUG, path, "the report is no JSON");
        if (!cli_write_json(c, path, all)) cli_tell_numbers(r->quantize);
    }
    if (folding && r->folding) cli_write_file(c, folding, r->folding, strlen(r->folding));
    return cli_failed(c);
}

/* ---- stages --------------------------------------------------------------- */

static const char *const cli_stages[] = { "read", "scope", "extract", "roll", "quantize", "lower",
    "fold" };

static int cli_keep(cli *c, const char *stage) {
    const char *dir = cli_value(c, "keep");
    char path[PATH_MAX];
    if (!dir) return 0;
    if (cli_mkdirs(dir)) return cli_fail(c, MLO_E_IO, dir, "cannot be made: %s", strerror(errno));
    if (snprintf(path, sizeof path, "%s/%s.onnx", dir, stage) >= (int)sizeof path)
        return cli_fail(c, MLO_E_IO, dir, "the name is too long");
    return cli_write_onnx(c, c->m, path);
}

/* --save-template: what extract chose, as soon as it has. */
static int cli_save_template(cli *c, const char *stage) {
    const char *path = strcmp(stage, "extract") ? NULL : cli_value(c, "save-template");
    cli_out o;
    if (!path) return 0;
    cli_out_open(c, &o, path);
    mlo_write_template(c->m, cli_out_sink, &o);
    return cli_out_close(c, &o);
}

/* --prefill: the other export, to be proved the same; NULL where there is none, or it failed. */
static mlo *cli_prefill(cli *c, int *opened) {
    const char *path = cli_value(c, "prefill");
    char real[PATH_MAX];
    if (!path || cli_plain(c, path)) return NULL;
    mlo *prompt = cli_handle(opened, NULL);
    if (!prompt) {
        cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
        return NULL;
    }
    cli_options(c, prompt);
    if (mlo_load(prompt, cli_real(path, real)))
        cli_adopt(c, prompt);
    else
        mlo_prefill(c->m, prompt);
    return prompt;
}

/* --calib; nothing where it is not given. */
static int cli_calib(cli *c, cli_npz *calib) {
    memset(calib, 0, sizeof *calib);
    if (!cli_value(c, "calib") || cli_npz_read(c, cli_value(c, "calib"), calib))
        return cli_failed(c);
    return calib->n ? 0
                    : cli_fail(c, MLO_E_FORMAT, cli_value(c, "calib"),
                          "holds no array; one per input of the model is needed");
}

/* Runs the stages that are missing, up to `stage`. */
static int cli_to(cli *c, const char *stage, cli_reports *r, const cli_npz *calib) {
    cli_bytes folding = { NULL, 0 }, fixed = { NULL, 0 }, body = { NULL, 0 };
    if (calib->n) mlo_calibrate(c->m, calib->array, calib->n);
    if (cli_value(c, "folding") && !cli_slurp(c, cli_value(c, "folding"), &folding))
        mlo_set(c->m, "folding-json", folding.data);
    if (cli_value(c, "q-config") && !cli_slurp(c, cli_value(c, "q-config"), &fixed))
        mlo_set(c->m, "q-config-json", fixed.data);
    if (cli_value(c, "template") && !cli_slurp(c, cli_value(c, "template"), &body))
        mlo_template(c->m, body.data, body.n);
    int opened;
    mlo *prompt = cli_prefill(c, &opened);
    int begun = !*mlo_stage(c->m);
    for (size_t i = 0; i < sizeof cli_stages / sizeof *cli_stages && !cli_failed(c); i++) {
        const char *s = cli_stages[i];
        if (begun || i == 0) {
            if (!mlo_to(c->m, s) && begun && !cli_keep(c, s) && !cli_save_template(c, s))
                cli_report_stage(c, s, r);
        }
        if (!strcmp(s, mlo_stage(c->m))) begun = 1;
        if (!strcmp(s, stage)) break;
    }
    mlo_calibrate(c->m, NULL, 0);
    mlo_prefill(c->m, NULL);
    mlo_close(prompt);
    free(folding.data);
    free(fixed.data);
    free(body.data);
    return cli_failed(c);
}

/* fold --pareto: lines instead of a model. */
static int cli_pareto(cli *c, const char *path) {
    const char *lines = mlo_report(c->m, "pareto");
    return lines ? cli_write_file(c, path, lines, strlen(lines)) : cli_failed(c);
}

/* A person gets what `show` says of the model: the model itself is thousands of lines. */
static int cli_stage_tell(cli *c) {
    cli_out o;
    cli_out_open(c, &o, NULL);
    mlo_show(c->m, "text", cli_out_sink, &o);
    cli_out_close(c, &o);
    if (!cli_failed(c))
        fprintf(stderr,
            "\nmlo: the model itself goes to a file or into a pipe: mlo %s .. -o FILE\n",
            c->verb->name);
    return cli_failed(c);
}

static int cli_stage(cli *c) {
    const char *path = cli_value(c, "o");
    int binary = cli_value(c, "onnx") || (path && cli_ends(path, ".onnx"));
    cli_bytes b = { NULL, 0 };
    cli_reports r = { NULL, NULL, NULL, NULL };
    cli_npz calib = { NULL, 0, NULL, 0 };
    if (!cli_load(c, c->m, &b) && !cli_calib(c, &calib) && !cli_to(c, c->verb->name, &r, &calib)
        && !cli_report_write(c, &r)) {
        if (binary && !path && isatty(STDOUT_FILENO))
            cli_fail(c, MLO_E_USAGE, NULL,
                "--onnx writes binary, and stdout is a terminal; add -o FILE.onnx");
        else if (cli_value(c, "pareto"))
            cli_pareto(c, path);
        else if (binary)
            cli_write_onnx(c, c->m, path);
        else if (!path && isatty(STDOUT_FILENO))
            cli_stage_tell(c);
        else {
            cli_out o;
            cli_out_open(c, &o, path);
            mlo_write_json(c->m, cli_out_sink, &o);
            cli_out_close(c, &o);
        }
    }
    cli_npz_free(&calib);
    free(b.data);
    return cli_failed(c);
}

/* ---- run ------------------------------------------------------------------ */

static const char *cli_type_name(mlo_dtype t) {
    static const char *const names[] = { "undefined", "float32", "uint8", "int8", "uint16", "int16",
        "int32", "int64", "string", "bool", "float16", "float64", "uint32", "uint64" };
    return (size_t)t < sizeof names / sizeof *names ? names[t] : "another type";
}

/* "input_ids int64 [1, 32]" */
static void cli_describe(const mlo_array *a, char *to, size_t room) {
    size_t n = (size_t)snprintf(to, room, "%s %s [", a->name, cli_type_name(a->dtype));
    for (int i = 0; i < a->rank && n < room; i++)
        n += (size_t)snprintf(to + n, room - n, a->dims[i] < 0 ? "%s?" : "%s%lld", i ? ", " : "",
            (long long)a->dims[i]);
    if (n < room) snprintf(to + n, room - n, a->rank < 0 ? "?]" : "]");
}

static int cli_run_needs(cli *c) {
    const mlo_array *in;
    size_t n, k = 0;
    char text[700];
    text[0] = 0;
    if (mlo_signature(c->m, 0, &in, &n)) return cli_failed(c);
    for (size_t i = 0; i < n && k < sizeof text - 200; i++) {
        char one[180];
        cli_describe(&in[i], one, sizeof one);
        k += (size_t)snprintf(text + k, sizeof text - k, "%s%s", i ? "; " : "", one);
    }
    return cli_fail(c, MLO_E_USAGE, NULL, "--inputs FILE.npz is needed, with %s",
        n ? text : "nothing in it: the model has no inputs");
}

/* A float of 16 bits, so many of them behind the point: 10 of float16, 7 of bfloat16. */
static double cli_half(uint16_t h, int mantissa) {
    const int low = h & ((1 << mantissa) - 1), top = (1 << (15 - mantissa)) - 1;
    const int e = h >> mantissa & top;
    const double inf = low ? NAN : INFINITY;
    const double v = e == top
        ? inf
        : ldexp(e ? low + (1 << mantissa) : low, (e ? e : 1) - top / 2 - mantissa);
    return h & 0x8000 ? -v : v;
}

static double cli_element(const mlo_array *a, size_t i) {
    switch (a->dtype) {
    case MLO_FLOAT16: return cli_half(((const uint16_t *)a->data)[i], 10);
    case MLO_BFLOAT16: return cli_half(((const uint16_t *)a->data)[i], 7);
    case MLO_FLOAT: return (double)((const float *)a->data)[i];
    case MLO_DOUBLE: return ((const double *)a->data)[i];
    case MLO_INT8: return ((const int8_t *)a->data)[i];
    case MLO_UINT8:
    case MLO_BOOL: return ((const uint8_t *)a->data)[i];
    case MLO_INT16: return ((const int16_t *)a->data)[i];
    case MLO_UINT16: return ((const uint16_t *)a->data)[i];
    case MLO_INT32: return ((const int32_t *)a->data)[i];
    case MLO_UINT32: return ((const uint32_t *)a->data)[i];
    case MLO_INT64: return (double)((const int64_t *)a->data)[i];
    case MLO_UINT64: return (double)((const uint64_t *)a->data)[i];
    default: return NAN;
    }
}

/* What came out, for eyes and scripts:
 * {"outputs":[{"name":..,"type":..,"shape":[..],"min":..,"max":..,"mean":..},..]} */
static int cli_run_print(cli *c, const mlo_array *out, size_t n) {
    cJSON *all = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(all, "outputs");
    for (size_t i = 0; i < n; i++) {
        cJSON *one = cJSON_CreateObject(), *shape;
        double low = INFINITY, high = -INFINITY, sum = 0;
        size_t count = cli_count(&out[i]);
        for (size_t k = 0; k < count; k++) {
            double v = cli_element(&out[i], k);
            if (v < low) low = v;
            if (v > high) high = v;
            sum += v;
        }
        cJSON_AddStringToObject(one, "name", out[i].name);
        cJSON_AddStringToObject(one, "type", cli_type_name(out[i].dtype));
        shape = cJSON_AddArrayToObject(one, "shape");
        for (int d = 0; d < out[i].rank; d++)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)out[i].dims[d]));
        cJSON_AddNumberToObject(one, "min", low);
        cJSON_AddNumberToObject(one, "max", high);
        cJSON_AddNumberToObject(one, "mean", sum / (double)count);
        cJSON_AddItemToArray(list, one);
    }
    return cli_write_json(c, NULL, all);
}

typedef struct {
    cli *c;
    cli_npz z;
} cli_probe;

/* Keeps a value as NAME, or NAME@ITERATION inside a loop. */
static int cli_probe_see(void *user, const char *name, int64_t iteration, const mlo_array *a) {
    cli_probe *p = (cli_probe *)user;
    char key[1000];
    snprintf(key, sizeof key, iteration < 0 ? "%s" : "%s@%lld", name, (long long)iteration);
    if (cli_npy_type(a->dtype) < 0 || cli_npz_find(&p->z, key)) return 0;
    mlo_array *copy = cli_npz_add(p->c, &p->z, key, a->dtype, a->rank, a->dims);
    if (copy) memcpy(copy->data, a->data, cli_array_bytes(a));
    return !copy;
}

static int cli_run(cli *c) {
    const char *inputs = cli_value(c, "inputs");
    const char *outputs = cli_value(c, "outputs");
    const char *probe = cli_value(c, "probe");
    cli_bytes b = { NULL, 0 };
    cli_npz in;
    cli_probe p;
    const mlo_array *out;
    size_t n;
    memset(&in, 0, sizeof in);
    memset(&p, 0, sizeof p);
    p.c = c;
    if (cli_generate_flags(c)) return cli_failed(c);
    if (!cli_load(c, c->m, &b) && !mlo_to(c->m, "read")) {
        if (cli_value(c, "generate"))
            cli_generate(c);
        else if (!inputs)
            cli_run_needs(c);
        else
            cli_npz_read(c, inputs, &in);
    }
    if (probe) mlo_watch(c->m, cli_probe_see, &p);
    if (!cli_failed(c) && inputs && !mlo_run(c->m, in.array, in.n, &out, &n)) {
        if (probe) cli_npz_write(c, probe, p.z.array, p.z.n);
        if (!cli_failed(c) && outputs)
            cli_npz_write(c, outputs, out, n);
        else if (!cli_failed(c))
            cli_run_print(c, out, n);
    }
    cli_npz_free(&in);
    cli_npz_free(&p.z);
    free(b.data);
    return cli_failed(c);
}

/* ---- check, show ---------------------------------------------------------- */

static int cli_check(cli *c) {
    static const char equal[] = "{\"equal\":true}\n";
    const char *against = cli_value(c, "against");
    cli_bytes b = { NULL, 0 };
    int opened;
    char real[PATH_MAX];
    if (!against) return cli_fail(c, MLO_E_USAGE, NULL, "--against ORIGINAL.onnx is needed");
    mlo *original = cli_handle(&opened, cli_warn);
    if (!original) return cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
    if (!cli_load(c, c->m, &b) && !cli_plain(c, against)) {
        cli_options(c, original);
        if (mlo_load(original, cli_real(against, real)))
            cli_adopt(c, original);
        else
            mlo_check(c->m, original);
    }
    if (!cli_failed(c)) cli_write_file(c, NULL, equal, strlen(equal));
    mlo_close(original);
    free(b.data);
    return cli_failed(c);
}

/* Of a build of C its plan, and its model: a loop's core, or a network as it stands. */
static void cli_show_plan(cli *c, const char *manifest, const char *network) {
    struct stat st;
    cJSON *all = cJSON_Parse(manifest);
    if (cli_is_c(all)) {
        mlo_set(c->m, "plan", manifest);
        if (!stat(network, &st)) c->operand = network;
    }
    cJSON_Delete(all);
}

/* What compile measured against the floats, if it was this build that it measured. */
static void cli_show_accuracy(cli *c, const char *path, const char *digest) {
    cli_bytes accuracy = { NULL, 0 };
    struct stat st;
    if (cli_failed(c) || stat(path, &st) || cli_slurp(c, path, &accuracy)) return;
    if (strstr(accuracy.data, digest)) mlo_set(c->m, "accuracy", accuracy.data);
    free(accuracy.data);
}

/* What is shown of a build directory: its core, and what sim counted of it; of C its plan. `simulation`: the
 * text of what mlo sim printed. */
static int cli_show_directory(cli *c, cli_bytes *simulation) {
    enum { FILES = 6 };
    static char path[FILES][PATH_MAX];
    cli_bytes manifest;
    char digest[65];
    struct stat st;
    static const char *const files[FILES] = { "host/core.onnx", "manifest.json", "sim/report.json",
        "sim/trace.jsonl", "host/network.onnx", "accuracy.json" };
    for (size_t i = 0; i < FILES; i++)
        if (snprintf(path[i], PATH_MAX, "%s/%s", c->operand, files[i]) >= PATH_MAX)
            return cli_fail(c, MLO_E_IO, c->operand, "the name is too long");
    if (stat(path[1], &st))
        return cli_fail(c, MLO_E_IO, c->operand,
            "is a directory without a manifest.json; show takes a model, or what mlo compile -o "
            "DIR made");
    c->operand = path[0];
    if (cli_slurp(c, path[1], &manifest)) return cli_failed(c);
    cli_show_plan(c, manifest.data, path[4]);
    mlo_digest(manifest.data, manifest.n, digest);
    free(manifest.data);
    mlo_set(c->m, "built", "1");
    cli_show_accuracy(c, path[5], digest);
    if (cli_failed(c) || simulation->data || stat(path[2], &st)) return cli_failed(c);
    const int r = cli_slurp(c, path[2], simulation);
    if (!r && !strstr(simulation->data, digest)) {
        fprintf(stderr, "mlo: warning: %s is of another build; it is not shown\n", path[2]);
        simulation->data[0] = 0;
        simulation->n = 0;
    } else if (!r && !stat(path[3], &st)) {
        cli_bytes trace;
        char *both = cli_slurp(c, path[3], &trace)
            ? NULL
            : (char *)realloc(simulation->data, simulation->n + trace.n + 2);
        if (both) {
            both[simulation->n] = '\n';
            memcpy(both + simulation->n + 1, trace.data, trace.n);
            simulation->n += trace.n + 1;
            both[simulation->n] = 0;
            simulation->data = both;
        } else
            cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
        free(trace.data);
    }
    return cli_failed(c);
}

/* What a page is called: the file or the directory, without folders and ".onnx". */
static void cli_show_title(cli *c) {
    char real[PATH_MAX], *name = real;
    const char *path = c->operand;
    if (!path || !strcmp(path, "-") || !realpath(path, real)) return;
    if (strrchr(real, '/')) name = strrchr(real, '/') + 1;
    if (cli_ends(name, ".onnx")) name[strlen(name) - strlen(".onnx")] = 0;
    if (cli_ends(name, ".json")) name[strlen(name) - strlen(".json")] = 0;
    if (*name) mlo_set(c->m, "title", name);
}

/* The model or the build directory that c->operand names, into the handle. */
static int cli_show_load(cli *c, cli_bytes *model, cli_bytes *simulation) {
    struct stat st;
    if (cli_failed(c)) return cli_failed(c);
    cli_show_title(c);
    if (c->operand && !stat(c->operand, &st) && S_ISDIR(st.st_mode))
        cli_show_directory(c, simulation);
    if (simulation->n) mlo_set(c->m, "simulation", simulation->data);
    return cli_failed(c) ? cli_failed(c) : cli_load(c, c->m, model);
}

/* Beside the first one, which is loaded: c->second, on a handle of its own. */
static int cli_show_both(cli *c, const char *format, cli_out *o) {
    cli_bytes b = { NULL, 0 }, simulation = { NULL, 0 };
    mlo *first = c->m;
    int opened;
    if (!strcmp(c->second, "-"))
        return cli_fail(c, MLO_E_USAGE, NULL, "the second one has to be a file or a directory");
    mlo *other = cli_handle(&opened, cli_warn);
    if (!other) return cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
    cli_options(c, other);
    c->m = other;
    c->operand = c->second;
    cli_show_load(c, &b, &simulation);
    c->m = first;
    mlo_show_against(first, other, format, cli_out_sink, o);
    mlo_close(other);
    free(b.data);
    free(simulation.data);
    return cli_failed(c);
}

/* What belongs to one model alone. */
static int cli_show_alone(cli *c) {
    static const char *const flags[] = { "sim", "wave", "window" };
    for (size_t i = 0; c->second && i < sizeof flags / sizeof *flags; i++)
        if (cli_value(c, flags[i]))
            return cli_fail(c, MLO_E_USAGE, NULL,
                "--%s is of one core; two are compared with what lies in their directories",
                flags[i]);
    return cli_failed(c);
}

/* The points of a sweep, which are no model. */
static int cli_show_sweep(cli *c, const char *format) {
    static const char *const flags[] = { "sim", "wave", "window" };
    cli_bytes points = { NULL, 0 };
    if (c->second)
        return cli_fail(c, MLO_E_USAGE, c->operand,
            "points of a sweep are shown alone; leave %s out", c->second);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (cli_value(c, flags[i]))
            return cli_fail(c, MLO_E_USAGE, c->operand,
                "--%s is of one core, and these are points of a sweep; leave it out", flags[i]);
    cli_show_title(c);
    if (!cli_failed(c) && !cli_slurp(c, c->operand, &points)) {
        cli_out o;
        cli_out_open(c, &o, cli_value(c, "o"));
        mlo_show_sweep(c->m, points.data, points.n, format, cli_out_sink, &o);
        cli_out_close(c, &o);
    }
    free(points.data);
    return cli_failed(c);
}

static int cli_show(cli *c) {
    static const char *const formats[] = { "text", "json", "dot", "html", "svg" };
    const char *format = "text";
    int n = 0;
    cli_bytes b = { NULL, 0 }, simulation = { NULL, 0 }, waves = { NULL, 0 };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (cli_value(c, formats[i])) {
            format = formats[i];
            n++;
        }
    if (n > 1)
        return cli_fail(c, MLO_E_USAGE, NULL,
            "--text, --json, --dot, --html and --svg exclude each other; give one");
    if ((!strcmp(format, "html") || !strcmp(format, "svg")) && !cli_value(c, "o")
        && isatty(STDOUT_FILENO))
        return cli_fail(c, MLO_E_USAGE, NULL,
            "--%s is for a browser, and stdout is a terminal; add -o FILE.%s", format, format);
    if (cli_value(c, "wave") && strcmp(format, "html"))
        return cli_fail(c, MLO_E_USAGE, NULL, "--wave is drawn on the page; give --html, too");
    if (cli_value(c, "window") && !cli_value(c, "wave"))
        return cli_fail(c, MLO_E_USAGE, NULL, "--window is of --wave FILE.vcd; give it, too");
    if (cli_show_alone(c)) return cli_failed(c);
    if (c->operand && cli_ends(c->operand, ".jsonl")) return cli_show_sweep(c, format);
    if (cli_value(c, "sim")) cli_slurp(c, cli_value(c, "sim"), &simulation);
    if (!cli_failed(c) && cli_value(c, "wave")) cli_vcd_read(c, cli_value(c, "wave"), &waves);
    if (waves.n) mlo_set(c->m, "waves", waves.data);
    if (!cli_show_load(c, &b, &simulation)) {
        cli_out o;
        cli_out_open(c, &o, cli_value(c, "o"));
        if (c->second)
            cli_show_both(c, format, &o);
        else
            mlo_show(c->m, format, cli_out_sink, &o);
        cli_out_close(c, &o);
    }
    free(b.data);
    free(simulation.data);
    free(waves.data);
    return cli_failed(c);
}
