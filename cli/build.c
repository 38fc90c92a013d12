/* build: the verbs emit and compile.
 *
 * in:  a model of any stage.
 * out: -o DIR, which appears whole; on stdout a JSON summary
 *     {"directory":..,"loops":..,"kernels":..,"predicted_cycles":..,..}; compile also tells people
 *     on stderr what it did.
 *
 * invariant: the summary is made from what the stages reported and from manifest.json: nothing is
 *     computed twice.
 */

/* ---- how far the integers are from the floats ----------------------------- */

/* How far a result is from the exact one. */
typedef struct {
    const char *name;
    double largest; /* max|a-b| */
    double relative; /* max|a-b| / max|b| */
    double cosine;
} cli_error;

static cli_error cli_compare(const mlo_array *a, const mlo_array *b) {
    cli_error e = { b->name, 0, 0, 1 };
    double aa = 0, bb = 0, ab = 0, most = 0;
    size_t n = cli_count(b);
    for (size_t i = 0; i < n; i++) {
        double x = cli_element(a, i), y = cli_element(b, i), d = fabs(x - y);
        if (d > e.largest || d != d) e.largest = d;
        if (fabs(y) > most) most = fabs(y);
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    e.relative = most > 0 ? e.largest / most : e.largest;
    if (aa > 0 && bb > 0) e.cosine = ab / sqrt(aa * bb);
    if (aa != aa || bb != bb) e.cosine = NAN;
    return e;
}

/* The float model on the first sample of --calib, or the bench's first frame, in a thread of its own: a handle shares
 * nothing with another one, so it runs while the integers are made and written. */
typedef struct {
    mlo *m;
    const cli_npz *calib;
    mlo_array *sample; /* of it, the model's inputs; NULL: a frame was drawn */
    size_t n_sample; /* inputs of either */
    int opened; /* files that m has opened */
    int stop; /* 1: nobody wants to know any more */
    int runs; /* 1: there is a thread to join */
    pthread_t thread;
    pthread_mutex_t lock;
    const mlo_array *exact; /* its outputs */
    size_t n; /* how many; 0 where it has none */
} cli_floats;

static int cli_floats_stopped(void *user, const char *name, int64_t iteration, const mlo_array *v) {
    cli_floats *f = (cli_floats *)user;
    (void)name;
    (void)iteration;
    (void)v;
    pthread_mutex_lock(&f->lock);
    int stop = f->stop;
    pthread_mutex_unlock(&f->lock);
    return stop;
}

/* The first sample of --calib, as a model that was read wants its inputs, for the caller to free; NULL where there is
 * none that fits. (What does not fit quantize says.) */
static mlo_array *cli_sample(mlo *m, const cli_npz *calib, size_t *n) {
    const mlo_array *in;
    mlo_array *sample = calib->n && !mlo_signature(m, 0, &in, n)
        ? (mlo_array *)calloc(*n + 1, sizeof *sample)
        : NULL;
    for (size_t i = 0; sample && i < *n; i++) {
        const mlo_array *a = cli_npz_find(calib, in[i].name);
        if (!a || a->dtype != in[i].dtype || cli_count(a) < cli_count(&in[i])) {
            free(sample);
            return NULL;
        }
        sample[i] = in[i];
        sample[i].data = a->data;
    }
    return sample;
}

/* What a model is tried on: that sample, which *sample frees, or the bench's first frame. NULL: it has failed. */
static const mlo_array *cli_first(mlo *m, const cli_npz *calib, mlo_array **sample, size_t *n) {
    const mlo_array *in = *sample = cli_sample(m, calib, n);
    return in || !mlo_draw(m, MLO_BENCH_DRAW, &in, n) ? in : NULL;
}

static void *cli_floats_run(void *user) {
    cli_floats *f = (cli_floats *)user;
    const mlo_array *in;
    if (mlo_to(f->m, "read") || !(in = cli_first(f->m, f->calib, &f->sample, &f->n_sample))
        || mlo_watch(f->m, cli_floats_stopped, f)
        || mlo_run(f->m, in, f->n_sample, &f->exact, &f->n))
        f->n = 0;
    return NULL;
}

/* ---- frames whose sizes the model leaves open ---------------------------------- */

/* Can the model be read with frames of c->open? *code: why not. */
static int cli_open_fits(cli *c, cli_bytes *b, mlo_code *code) {
    int opened = 0;
    mlo *m = cli_handle(&opened, NULL);
    if (!m) return 0;
    const int fits = !cli_options(c, m) && !cli_load(c, m, b) && !mlo_to(m, "read");
    *code = mlo_failure(m) ? mlo_failure(m)->code : MLO_OK;
    mlo_close(m);
    return fits;
}

enum { CLI_LONGEST_TRACE = 512 }; /* tokens */

/* A trace has fixed the length in its reshapes, though the inputs leave it open (TorchScript's of
 * nn.MultiheadAttention): which one it is. */
static int cli_open_traced(cli *c, cli_bytes *b, const char *side) {
    mlo_code code = MLO_E_SHAPE;
    int fits = 0;
    for (int n = CLI_LONGEST_TRACE; n > 1 && !fits && code == MLO_E_SHAPE; n--) {
        snprintf(c->open, sizeof c->open, "%d%s", n, side);
        fits = cli_open_fits(c, b, &code);
    }
    return fits;
}

/* What the inputs leave open: sizes of ids or the like; of images. (A step of one new token behind a past of fixed
 * length has no size that is open, but is built for more than that token.) */
static void cli_open_kinds(const mlo_array *in, size_t n, int *other, int *image) {
    int ids = 0, past = 0;
    for (size_t i = 0; i < n; i++) {
        const int pixels = in[i].rank == 4 && (in[i].dims[2] < 0 || in[i].dims[3] < 0);
        const int whole = in[i].dtype == MLO_INT64 || in[i].dtype == MLO_INT32;
        *image |= pixels;
        for (int d = 0; d < in[i].rank && !pixels; d++) *other |= in[i].dims[d] < 0;
        ids |= whole && in[i].rank && in[i].rank <= 2 && in[i].dims[in[i].rank - 1] == 1;
        past |= !whole && in[i].rank >= 3;
    }
    *other |= ids && past;
}

/* compile takes the longest of a few lengths that the model's tables of positions allow, and the first of a few
 * sides of images, the commonest first; --dim says otherwise. */
static int cli_open_sizes(cli *c, cli_bytes *b) {
    static const char *const lengths[] = { "128", "64", "32", "16", "8" };
    static const char *const sides[] = { "", "x224", "x384", "x256", "x336", "x448", "x512", "x518",
        "x192", "x160", "x128", "x96", "x64", "x48", "x32", "x28", "x16", "x8" };
    const mlo_array *in;
    size_t n;
    int other = 0, image = 0, fits = 0;
    mlo_code code = MLO_OK;
    if (c->verb->bit != V_COMPILE || cli_failed(c) || strcmp(mlo_stage(c->m), "")
        || mlo_signature(c->m, 0, &in, &n))
        return cli_failed(c);
    cli_open_kinds(in, n, &other, &image);
    if (!other && !image) return 0;
    const size_t n_sides = image ? sizeof sides / sizeof *sides : 1;
    const size_t n_lengths = other ? sizeof lengths / sizeof *lengths : 1;
    for (size_t s = image ? 1 : 0; s < n_sides && !fits; s++)
        for (size_t k = 0; k < n_lengths && !fits; k++) {
            snprintf(c->open, sizeof c->open, "%s%s", lengths[k], sides[s]);
            fits = cli_open_fits(c, b, &code);
        }
    if (!fits && other && code == MLO_E_SHAPE) fits = cli_open_traced(c, b, sides[image]);
    if (!fits) snprintf(c->open, sizeof c->open, "%s%s", lengths[0], sides[image]);
    return mlo_set(c->m, "open", c->open);
}

/* Begins, if the model is one of floats. What it would warn of the other handle says. */
static void cli_floats_begin(cli *c, cli_floats *f, const cli_npz *calib, cli_bytes *b) {
    memset(f, 0, sizeof *f);
    f->calib = calib;
    pthread_mutex_init(&f->lock, NULL);
    if (c->verb->bit != V_COMPILE || cli_failed(c) || cli_value(c, "inputs")
        || !(f->m = cli_handle(&f->opened, NULL)))
        return;
    if (cli_options(c, f->m) || cli_load(c, f->m, b) || strcmp(mlo_stage(f->m), "")) return;
    f->runs = !pthread_create(&f->thread, NULL, cli_floats_run, f);
}

/* Waits for it; `stop`: nobody wants to know any more. */
static void cli_floats_end(cli_floats *f, int stop) {
    pthread_mutex_lock(&f->lock);
    f->stop = stop;
    pthread_mutex_unlock(&f->lock);
    if (f->runs) pthread_join(f->thread, NULL);
}

/* What floats make of an output: of that name, as hardware may leave others out; or the one in its place. */
static const mlo_array *cli_floats_of(const cli_floats *f, const char *name, size_t place) {
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->exact[i].name, name)) return &f->exact[i];
    return place < f->n ? &f->exact[place] : NULL;
}

/* How far the integers are from the floats, of each output. *errors is for the caller to free;
 * returns how many. */
static size_t cli_float_error(cli *c, cli_floats *f, cli_error **errors) {
    const mlo_array *got;
    size_t k, done = 0;
    if (!f->n
        || (f->sample ? mlo_run(c->m, f->sample, f->n_sample, &got, &k)
                      : mlo_golden(c->m, &got, &k))
        || !(*errors = (cli_error *)calloc(k + 1, sizeof **errors)))
        return 0;
    for (size_t i = 0; i < k; i++) {
        const mlo_array *exact = cli_floats_of(f, got[i].name, i);
        if (!exact || cli_count(exact) != cli_count(&got[i])) continue;
        (*errors)[done] = cli_compare(&got[i], exact);
        (*errors)[done++].name = got[i].name; /* of the handle that stays */
    }
    return done;
}

/* ---- the summary ---------------------------------------------------------- */

/* 1234567 -> "1 234 567" */
static const char *cli_grouped(double v, char *to) {
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%.0f", v), k = 0;
    for (int i = 0; i < n && k < 38; i++) {
        if (i && (n - i) % 3 == 0 && digits[i - 1] != '-') to[k++] = ' ';
        to[k++] = digits[i];
    }
    to[k] = 0;
    return to;
}

static void cli_tell_loops(const cli_reports *r) {
    cJSON *loop;
    cJSON *roll = r->roll ? cJSON_Parse(r->roll) : NULL;
    cJSON *scope = r->scope ? cJSON_Parse(r->scope) : NULL;
    if (scope) {
        int inferred = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(scope, "inferred"));
        fprintf(stderr, "  model       %.0f nodes; ", cli_json_number(scope, "nodes"));
        if (inferred)
            fprintf(stderr, "the scopes of %d inferred\n", inferred);
        else
            fprintf(stderr,
                cli_json_number(scope, "said") > 0 ? "all scopes were there\n"
                                                   : "no scopes; structure alone decided\n");
    }
    cJSON_ArrayForEach(loop, cJSON_GetObjectItemCaseSensitive(roll, "loops")) {
        cJSON *instances = cJSON_GetObjectItemCaseSensitive(loop, "instances");
        fprintf(stderr, "  %-11s %.0f iterations of %.0f nodes; %.0f values differ per iteration",
            cli_json_text(loop, "name"), cli_json_number(loop, "iterations"),
            cli_json_number(loop, "body_nodes"), cli_json_number(loop, "per_iteration"));
        if (cJSON_GetArraySize(instances) && *cJSON_GetArrayItem(instances, 0)->valuestring)
            fprintf(stderr, "; the first is %s", cJSON_GetArrayItem(instances, 0)->valuestring);
        fprintf(stderr, "\n");
    }
    cJSON_Delete(roll);
    cJSON_Delete(scope);
}

/* Matrices that are whole on chip beside others in row blocks: which, and why. */
static void cli_tell_whole(const cJSON *manifest) {
    const cJSON *kernels = cJSON_GetObjectItemCaseSensitive(manifest, "kernels"), *kernel;
    const char *why = NULL;
    cJSON_ArrayForEach(kernel, kernels) {
        if (!cJSON_HasObjectItem(kernel, "memory_why")) continue;
        fprintf(stderr, why ? ", %s" : "  whole       %s", cli_json_text(kernel, "name"));
        why = cli_json_text(kernel, "memory_why");
    }
    if (why) fprintf(stderr, ": %s\n", why);
}

static void cli_tell_predicted(const cJSON *manifest) {
    const cJSON *jobs = cJSON_GetObjectItemCaseSensitive(manifest, "jobs");
    const double n = jobs ? cJSON_GetArraySize(jobs) : cli_json_number(manifest, "bench_frames");
    char most[40];
    fprintf(stderr, "  predicted   %s cycles for the bench's %.0f %s%s",
        cli_grouped(cli_json_number(manifest, "predicted_cycles"), most), n, jobs ? "job" : "frame",
        n > 1 ? "s" : "");
    fprintf(stderr, "; %.0f %s a second at 200 MHz\n",
        200e6
            / (cli_json_number(manifest, "predicted_interval") > 0
                    ? cli_json_number(manifest, "predicted_interval")
                    : 1),
        jobs ? "whole contexts" : "frames");
}

/* What a core with caches keeps, and how fast a token follows another. */
static void cli_tell_context(const cJSON *manifest) {
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(manifest, "predicted_step");
    const double slots = cli_json_number(manifest, "slots"), last = cli_json_number(step, "last");
    char a[40], b[40];
    fprintf(stderr,
        "  context     %.0f tokens of %.0f channels, of %.0f sequence%s: keys and values stay %s\n",
        cli_json_number(manifest, "tokens"), cli_json_number(manifest, "channels"), slots,
        slots > 1 ? "s" : "", cJSON_HasObjectItem(manifest, "kv") ? "in memory" : "on chip");
    if (step)
        fprintf(stderr,
            "  a token     %s cycles at the first position, %s at the last; %.0f a second at 200 "
            "MHz "
            "there\n",
            cli_grouped(cli_json_number(step, "first"), a), cli_grouped(last, b),
            200e6 / (last > 0 ? last : 1));
}

/* What leaves of a frame, where that is more than what the last layer makes of it. */
static const char *cli_tell_times(const cJSON *manifest) {
    const cJSON *out = cJSON_GetObjectItemCaseSensitive(manifest, "output");
    return cli_json_number(out, "times") > 1 ? "; every layer's tokens leave" : "";
}

static void cli_tell_kernels(const cJSON *manifest) {
    const cJSON *k;
    char most[40];
    double busiest = cli_json_number(manifest, "interval_per_token");
    fprintf(stderr, "\n  kernel        op                 PE  SIMD  multipliers  cycles/token\n");
    cJSON_ArrayForEach(k, cJSON_GetObjectItemCaseSensitive(manifest, "kernels")) {
        double interval = cli_json_number(k, "interval");
        int bar = busiest > 0 ? (int)(interval / busiest * 8 + 0.5) : 0;
        fprintf(stderr, "  %-13s %-16s %4.0f  %4.0f  %11.0f  %12.0f  %.*s\n",
            cli_json_text(k, "name"), cli_json_text(k, "op"), cli_json_number(k, "pe"),
            cli_json_number(k, "simd"), cli_json_number(k, "multipliers"), interval, bar,
            "########");
    }
    fprintf(stderr, "  %-13s %-16s %4s  %4s  %11.0f  %12.0f\n\n", "", "", "", "",
        cli_json_number(manifest, "multipliers"), busiest);
    if (cJSON_HasObjectItem(manifest, "slots"))
        cli_tell_context(manifest);
    else
        fprintf(stderr, "  frames      %.0f tokens of %.0f channels; %.0f in flight%s\n",
            cli_json_number(manifest, "tokens"), cli_json_number(manifest, "channels"),
            cli_json_number(manifest, "frames_in_flight"), cli_tell_times(manifest));
    if (cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(manifest, "predicted_cycles")))
        cli_tell_predicted(manifest);
    const cJSON *blocks = cJSON_GetObjectItemCaseSensitive(manifest, "row_blocks");
    const double each = cli_json_number(manifest, "iteration_bytes")
        + (blocks ? cli_json_number(blocks, "iteration_bytes") : 0);
    fprintf(stderr, "  parameters  %s bytes, %.0f iterations",
        cli_grouped(each * cli_json_number(manifest, "iterations"), most),
        cli_json_number(manifest, "iterations"));
    fprintf(stderr, " of %s\n", cli_grouped(each, most));
    cli_tell_whole(manifest);
}

/* Of C in parts: what is copied, how much of it while a kernel runs, and how many steps keep it waiting. */
static void cli_tell_copies(const cJSON *manifest) {
    char all[64], beside[64];
    int cut = 0, single = 0;
    const cJSON *step, *argument;
    cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(manifest, "tiles")) {
        int one = 0;
        cJSON_ArrayForEach(argument, cJSON_GetObjectItemCaseSensitive(step, "arguments"))
            one |= cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(argument, "cut"))
            && cli_json_number(argument, "places") < 2;
        single += one;
        cut += cli_json_number(step, "tile") < cli_json_number(step, "units");
    }
    fprintf(stderr,
        "              a run copies %s bytes between them, %s of those beside a kernel;\n",
        cli_grouped(cli_json_number(manifest, "traffic_bytes"), all),
        cli_grouped(cli_json_number(manifest, "overlapped_bytes"), beside));
    fprintf(stderr, "              %d of %d steps are cut, ", cut,
        cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(manifest, "tiles")));
    if (single)
        fprintf(stderr, "%d of them with one place for what is too large for two\n", single);
    else
        fprintf(stderr, "with two places for every part\n");
}

/* What of a layer goes in blocks of tokens. */
static void cli_tell_blocks(const cJSON *manifest) {
    const cJSON *block;
    cJSON_ArrayForEach(block, cJSON_GetObjectItemCaseSensitive(manifest, "blocks")) {
        const cJSON *what = cJSON_GetObjectItemCaseSensitive(block, "what");
        fprintf(stderr, "              %s\n", cJSON_IsString(what) ? what->valuestring : "");
    }
}

/* Of C: what it takes of memory. */
static void cli_tell_arena(const cJSON *manifest) {
    char text[64];
    const double bytes = cli_json_number(manifest, "arena_bytes");
    const double bound = cli_json_number(manifest, "arena_bound");
    fprintf(stderr, "  arena       %s bytes", cli_grouped(bytes, text));
    if (cJSON_HasObjectItem(manifest, "tiles"))
        fprintf(stderr, " for parts of values, %s bytes of a larger memory for them as a whole;\n",
            cli_grouped(cli_json_number(manifest, "memory_bytes"), text));
    if (cJSON_HasObjectItem(manifest, "tiles"))
        cli_tell_copies(manifest);
    else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(manifest, "arena_proved")))
        fprintf(stderr, ", the least there is%s\n",
            cJSON_HasObjectItem(manifest, "blocks") ? ", so cut:" : "");
    else
        fprintf(stderr, "; there is none below %s\n", cli_grouped(bound, text));
    cli_tell_blocks(manifest);
}

static void cli_tell(cli *c, const cli_reports *r, const cJSON *manifest, const cli_error *errors,
    size_t n, double seconds) {
    const char *dir = cli_value(c, "o");
    fprintf(stderr, "\nmlo %s: %s -> %s in %.2f s\n\n", MLO_VERSION,
        c->operand ? c->operand : "stdin", dir, seconds);
    cli_tell_loops(r);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr,
            "  %-11s %s: cosine %.5f, largest difference %.3f = %.1f %% of the largest value%s\n",
            i ? "" : "integers", errors[i].name, errors[i].cosine, errors[i].largest,
            100 * errors[i].relative, cli_value(c, "calib") ? ", on a sample of --calib" : "");
    if (cli_is_c(manifest)) {
        cli_tell_arena(manifest);
        fprintf(stderr, "\nNext: %s sim %s\n      make -C %s test\n\n", c->called, dir, dir);
        return;
    }
    cli_tell_kernels(manifest);
    fprintf(stderr,
        "\nNext: %s sim %s\n      %s sim %s --wave wave.fst      # for gtkwave\n      make -C %s "
        "synth\n\n",
        c->called, dir, c->called, dir, dir);
}

static cJSON *cli_errors_json(const cli_error *errors, size_t n) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < n; i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "output", errors[i].name);
        cJSON_AddNumberToObject(one, "max", errors[i].largest);
        cJSON_AddNumberToObject(one, "relative", errors[i].relative);
        cJSON_AddNumberToObject(one, "cosine", errors[i].cosine);
        cJSON_AddItemToArray(list, one);
    }
    return list;
}

static int cli_build_json(
    cli *c, const cli_reports *r, const cJSON *manifest, const cli_error *errors, size_t n) {
    static const char *const keys[] = { "iterations", "tokens", "channels", "frames_in_flight",
        "multipliers", "interval_per_token", "predicted_cycles", "predicted_interval",
        "iteration_bytes", "kernels", "context", "slots", "predicted_step", "target", "arena_bytes",
        "arena_bound", "arena_proved", "memory_bytes", "traffic_bytes", "overlapped_bytes", "tiles",
        "blocks" };
    cJSON *all = cJSON_CreateObject(), *roll = r->roll ? cJSON_Parse(r->roll) : NULL;
    cJSON_AddStringToObject(all, "directory", cli_value(c, "o"));
    if (roll)
        cJSON_AddItemToObject(all, "loops", cJSON_DetachItemFromObjectCaseSensitive(roll, "loops"));
    cJSON_Delete(roll);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (cJSON_HasObjectItem(manifest, keys[i]))
            cJSON_AddItemToObject(all, keys[i],
                cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(manifest, keys[i]), 1));
    if (n) cJSON_AddItemToObject(all, "error", cli_errors_json(errors, n));
    return cli_write_json(c, NULL, all);
}

/* accuracy.json: what the summary says of the floats, for `show` to say later. It is not of what was built, but
 * of where it came from: emit, which knows no floats, writes none. */
static int cli_accuracy_write(
    cli *c, const cli_bytes *manifest, const cli_error *errors, size_t n) {
    char path[PATH_MAX], digest[65];
    if (snprintf(path, sizeof path, "%s/accuracy.json", cli_value(c, "o")) >= (int)sizeof path)
        return cli_fail(c, MLO_E_IO, cli_value(c, "o"), "the name is too long");
    unlink(path);
    if (!n) return 0;
    cJSON *all = cJSON_CreateObject();
    mlo_digest(manifest->data, manifest->n, digest);
    cJSON_AddStringToObject(all, "manifest", digest);
    cJSON_AddItemToObject(all, "error", cli_errors_json(errors, n));
    return cli_write_json(c, path, all);
}

/* --inputs, --golden: a network of integers, as it stands. */
static int cli_words(cli *c, cli_npz *inputs, cli_npz *golden) {
    if (!cli_value(c, "inputs"))
        return cli_value(c, "golden")
            ? cli_fail(
                  c, MLO_E_USAGE, NULL, "--golden needs --inputs, too: what makes these outputs")
            : 0;
    if (!cli_makes_c(c))
        return cli_fail(c, MLO_E_USAGE, NULL, "--inputs is of C; give --target c, too");
    if (cli_npz_read(c, cli_value(c, "inputs"), inputs)) return cli_failed(c);
    if (!inputs->n) return cli_fail(c, MLO_E_FORMAT, cli_value(c, "inputs"), "holds no array");
    if (cli_value(c, "golden") && cli_npz_read(c, cli_value(c, "golden"), golden))
        return cli_failed(c);
    return mlo_words(c->m, inputs->array, inputs->n, golden->array, golden->n);
}

/* How many inputs and outputs a model has. */
static size_t cli_ends_of(mlo *m) {
    const mlo_array *ends;
    size_t in, out;
    return mlo_signature(m, 0, &ends, &in) || mlo_signature(m, 1, &ends, &out) ? 0 : in + out;
}

/* The model in another handle, read, with words to be written with; 0: it was no export, or is another one (without
 * its cache, say) once it is read, or fails. */
static int cli_read_anew(cli *c, mlo *m, cli_bytes *b, const cli_npz *calib, mlo_array **sample) {
    const mlo_array *in;
    size_t n;
    if (cli_options(c, m) || cli_load(c, m, b) || *mlo_stage(m)) return 0;
    const size_t ends = cli_ends_of(m);
    if (mlo_to(m, "read") || cli_ends_of(m) != ends) return 0;
    return (in = cli_first(m, calib, sample, &n)) != NULL && !mlo_words(m, in, n, NULL, 0);
}

/* With --whole, what cannot be integers is written in floats, as it stands: with a word. Without, a word says that. */
static int cli_as_it_stands(cli *c, cli_bytes *b, const cli_npz *calib, mlo_array **sample) {
    const mlo_error *why = mlo_failure(c->m);
    const int may = why && (why->code == MLO_E_LOOP || why->code == MLO_E_UNSUPPORTED)
        && c->verb->bit == V_COMPILE && cli_makes_c(c) && !cli_value(c, "inputs");
    mlo *anew = may ? cli_handle(&c->opened_anew, NULL) : NULL; /* read's warnings were said */
    if (!anew || !cli_read_anew(c, anew, b, calib, sample)) {
        mlo_close(anew);
        return cli_failed(c);
    }
    cli_tick_clear();
    if (!cli_value(c, "whole")) {
        fprintf(stderr,
            "mlo: --whole writes a network that cannot be integers as it stands, in floats; "
            "--inputs one whose "
            "numbers are integers already\n");
        mlo_close(anew);
        return cli_failed(c);
    }
    fprintf(stderr,
        "mlo: warning: %s: %s%s%s; so the network is written as it stands, in floats (--whole)\n",
        why->stage, why->node, *why->node ? ": " : "", why->message);
    mlo_close(c->m);
    c->m = anew;
    return 0;
}

/* To the stage that emit takes, or not: *stands. *sample is for the caller to free when all is written. */
static int cli_build_to(cli *c, const char *stage, cli_bytes *b, const cli_npz *calib,
    cli_reports *r, int *stands, mlo_array **sample) {
    const cli_reports none = { NULL, NULL, NULL, NULL };
    if (cli_failed(c) || (!cli_to(c, stage, r, calib) && !cli_report_write(c, r)))
        return cli_failed(c);
    *r = none; /* what was read anew has no loop */
    *stands = !cli_as_it_stands(c, b, calib, sample);
    return cli_failed(c);
}

static int cli_build(cli *c) {
    const char *dir = cli_value(c, "o");
    cli_bytes b = { NULL, 0 };
    cli_reports r = { NULL, NULL, NULL, NULL };
    cli_tree t;
    cli_error *errors = NULL;
    cli_floats floats;
    cli_npz inputs, golden, calib = { NULL, 0, NULL, 0 };
    /* C needs no folding */
    const char *stage = cli_value(c, "inputs") ? "read" : cli_makes_c(c) ? "lower" : "fold";
    size_t n = 0;
    int stands = 0;
    mlo_array *sample = NULL;
    struct timespec begin, end;
    memset(&t, 0, sizeof t);
    memset(&inputs, 0, sizeof inputs);
    memset(&golden, 0, sizeof golden);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!dir) return cli_fail(c, MLO_E_USAGE, NULL, "-o DIR is needed: the build directory");
    struct stat st;
    if (!stat(dir, &st) && !S_ISDIR(st.st_mode))
        return cli_fail(c, MLO_E_IO, dir, "is there and not a directory; give another -o");
    cli_load(c, c->m, &b);
    if (!cli_failed(c)) cli_words(c, &inputs, &golden);
    if (!cli_failed(c)) cli_calib(c, &calib);
    cli_open_sizes(c, &b);
    cli_floats_begin(c, &floats, &calib, &b);
    if (!cli_build_to(c, stage, &b, &calib, &r, &stands, &sample)) {
        if (!cli_tree_open(c, &t, dir)) mlo_emit(c->m, cli_tree_sink, &t);
        cli_tree_close(&t);
    }
    cJSON *manifest = cli_failed(c) ? NULL : cJSON_ParseWithLength(t.manifest.data, t.manifest.n);
    if (!cli_failed(c) && !manifest) cli_fail(c, MLO_E_BUG, "manifest.json", "is no JSON");
    const int whole = manifest && c->verb->bit == V_COMPILE;
    cli_floats_end(&floats, !whole || stands);
    if (whole) {
        if (!stands) n = cli_float_error(c, &floats, &errors);
        if (!cli_failed(c)) cli_accuracy_write(c, &t.manifest, errors, n);
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (!cli_failed(c))
            cli_tell(c, &r, manifest, errors, n,
                (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    }
    if (manifest && !cli_failed(c) && (c->verb->bit == V_EMIT || !isatty(STDOUT_FILENO)))
        cli_build_json(c, &r, manifest, errors, n);
    mlo_close(floats.m);
    free(floats.sample);
    free(sample);
    pthread_mutex_destroy(&floats.lock);
    cJSON_Delete(manifest);
    free(errors);
    free(t.manifest.data);
    cli_npz_free(&inputs);
    cli_npz_free(&golden);
    cli_npz_free(&calib);
    free(b.data);
    return cli_failed(c);
}
