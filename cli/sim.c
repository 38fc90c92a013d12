/* sim: simulates a build directory and judges it.
 *
 * in:  DIR as emit wrote it, perhaps other inputs.     out: the JSON of design section 7 on stdout; 0, or 1 when a word differs.
 * steps: manifest and digests -> frames (from tb/, drawn, or --inputs through host/pre.onnx) -> golden words (host/core.onnx in mlo) ->
 *     hex files in DIR/sim -> compile once per set of sources -> run -> read the bench's MLO lines -> report.
 * invariant: PASS needs exactly one PASS line, status 0, and a directory whose files are those of the manifest. A mixture is simulated all
 *     the same, since the first wrong word says most about what was changed; but it never passes.
 */

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
    long seed = cli_number(c, "seed", 1, 0, INT_MAX), stall = cli_number(c, "stall", 0, 0, 99), latency = cli_number(c, "axi-latency", -1, 0, 100000), fault = cli_number(c, "axi-error", 0, 0, INT_MAX);
    b->beats = cli_sim_tokens(b) * (b->channels / b->lanes);
    cli_word(x, "+seed=%ld", seed); cli_word(x, "+stall=%ld", stall);
    if (latency >= 0) cli_word(x, "+latency=%ld", latency);
    cli_word(x, "+beats=%lld", (long long)b->beats); cli_word(x, "+mask_beats=%lld", (long long)(b->masked ? cli_sim_tokens(b) : 0));
    cli_word(x, "+iterations=%lld", (long long)b->iterations); cli_word(x, "+frames_in_flight=%lld", (long long)b->group); cli_word(x, "+timeout=%lld", (long long)(cli_sim_patience(b) * (stall ? 4 : 1)));
    if (fault) cli_word(x, "+fault=%ld", fault);
    if (bandwidth) {
        double v = strtod(bandwidth, &end), rate = v * 8 * 256 / b->axi_bits;
        if (end == bandwidth || *end || !(v > 0)) return cli_fail(c, MLO_E_USAGE, NULL, "--bandwidth %s is not a number of bytes per cycle", bandwidth);
        cli_word(x, "+rate=%d", rate >= 256 ? 256 : rate < 1 ? 1 : (int)(rate + 0.5));
    }
    if (!b->own_inputs) { cli_word(x, "+input=sim/input.hex"); cli_word(x, "+golden=sim/golden.hex"); if (b->masked) cli_word(x, "+mask=sim/mask.hex"); }
    if (b->image_from_bin) cli_word(x, "+params=sim/params.hex");
    if (cli_value(c, "probe")) cli_word(x, "+probe=sim/probe.txt");
    if (cli_value(c, "trace")) cli_word(x, "+trace=sim/trace.txt");
    if (wave && *wave != '/' && !getcwd(here, sizeof here)) return cli_fail(c, MLO_E_IO, NULL, "the working directory: %s", strerror(errno));
    if (wave) cli_word(x, *wave == '/' ? "+wave=%s%s" : "+wave=%s/%s", *wave == '/' ? "" : here, wave);
    return cli_failed(c);
}

/* The bench's lines: MLO FRAME f cycle; MLO KERNEL k busy starved blocked; MLO COUNTERS cycles frames beats; MLO WEIGHTS n; MLO CHANNEL busy rate;
 * MLO BEATS n; MLO PASS ..; MLO FAIL .. */
static int cli_sim_lines(cli_bench *b) {
    cli_bytes log;
    if (cli_slurp(b->c, cli_in_dir(b, "sim/run.log"), &log)) { free(log.data); return cli_failed(b->c); }
    cli_wait_cause(log.data, b->cause, sizeof b->cause);
    for (char *p = log.data, *next; *p; p = next) {
        long long v[4]; int k;
        next = p + strcspn(p, "\n");
        if (*next) *next++ = 0;
        if (sscanf(p, "MLO FRAME %lld %lld", &v[0], &v[1]) == 2 && v[0] == b->n_done && b->n_done < 256) b->done[b->n_done++] = v[1];
        else if (sscanf(p, "MLO KERNEL %d %lld %lld %lld", &k, &v[0], &v[1], &v[2]) == 4 && k >= 0 && k < b->n_kernel) { b->kernel[k].busy = (double)v[0]; b->kernel[k].starved = (double)v[1]; b->kernel[k].blocked = (double)v[2]; }
        else if (sscanf(p, "MLO COUNTERS %lld %lld %lld", &v[0], &v[1], &v[2]) == 3) { b->counted_cycles = v[0]; b->counted_frames = v[1]; b->counted_beats = v[2]; }
        else if (sscanf(p, "MLO CHANNEL %lld %lld", &v[0], &v[1]) == 2) { b->channel_busy = v[0]; b->rate = v[1]; }
        else if (sscanf(p, "MLO WEIGHTS %lld", &v[0]) == 1) b->weight_beats = v[0];
        else if (b->n_fifo < 256 && sscanf(p, "MLO FIFO %63s %lld %lld %lld", b->fifo[b->n_fifo].name, &v[0], &v[1], &v[2]) == 4) { b->fifo[b->n_fifo].peak = v[0]; b->fifo[b->n_fifo].depth = v[1]; b->fifo[b->n_fifo++].beats = v[2]; }
        else if (!strncmp(p, "PROTOCOL ", 9)) { if (!*b->breach) snprintf(b->breach, sizeof b->breach, "%s", p + 9); }
        else if (sscanf(p, "MLO BEATS %lld", &v[0]) == 1) b->delivered = v[0];
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
    if (!strncmp(b->verdict, "protocol", 8)) { snprintf(to, room, "a breach of AXI: %s; all of them: %s/sim/run.log", b->breach, b->dir); return; }
    if (!strncmp(b->verdict, "missing", 7) && *b->cause) { snprintf(to, room, "%.*s: %s", (int)strcspn(b->verdict, "(") - (strchr(b->verdict, '(') != NULL), b->verdict, b->cause); return; }
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

/* ---- the report -------------------------------------------------------------------------------------------------------------------------------- */

static double cli_sim_interval(const cli_bench *b) {
    if (b->n_done < b->n) return 0;
    if (b->n >= 2 * b->group && b->n % b->group == 0) return (double)(b->done[b->n - 1] - b->done[b->group - 1]) / (double)(b->n - b->group);
    return (double)b->cycles / (double)b->n;
}

/* How often a frame passes through a kernel. */
static double cli_sim_rounds(const cli_bench *b) { return b->unrolled ? 1 : (double)b->iterations; }

static double cli_ratio(double a, double b) { return b > 0 ? a / b : 0; }

/* Beats of row blocks for a frame of so many tokens, in an iteration. */
static double cli_sim_tiles(const cli_bench *b, int64_t tokens) {
    double beats = 0;
    for (int k = 0; k < b->n_kernel; k++) if (b->kernel[k].tile > 0) beats += (double)((tokens + b->kernel[k].tile - 1) / b->kernel[k].tile * b->kernel[k].tile_beats);
    return beats;
}

/* Parameter beats that the kernels have taken when a run of whole groups has come to rest: every iteration's, those of the next one, which are
 * loaded ahead, once those that stay, and row blocks for every tile. (A single iteration's are not loaded again: two banks, whatever the frames.) */
static double cli_sim_delivered(const cli_bench *b, const cJSON *p) {
    double each = cli_json_number(p, "per_iteration") - (double)b->group * cli_sim_tiles(b, b->tokens), tiles = 0;
    if (b->unrolled) return 2 * each * (double)b->iterations;
    int64_t begun = b->iterations == 1 ? 1 : (b->n + b->group - 1) / b->group * b->iterations;
    for (int64_t f = 0; f < b->n; f++) tiles += (double)b->iterations * cli_sim_tiles(b, b->frame[f].tokens);
    return cli_json_number(p, "once") + each * (double)(begun + 1) + tiles;
}

/* The parameter memory. beats: in all, loaded ahead included; delivered: to the kernels, as the core counts them; busy: while a frame was inside; the shares of those cycles in which a beat came,
 * and in which memory had one to give, by --bandwidth and --stall. */
static void cli_report_memory(const cli_bench *b, cJSON *all) {
    cJSON *to = cJSON_AddObjectToObject(all, "memory");
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(b->manifest, "parameter_beats");
    double rate = b->rate > 0 && b->rate < 256 ? (double)b->rate / 256 : 1, awake = (double)(100 - cli_number(b->c, "stall", 0, 0, 99)) / 100;
    cJSON_AddNumberToObject(to, "axi_bits", b->axi_bits);
    cJSON_AddNumberToObject(to, "beats_per_iteration", cli_json_number(said, "per_iteration"));
    cJSON_AddNumberToObject(to, "beats_per_frame", cli_json_number(said, "per_frame"));
    cJSON_AddNumberToObject(to, "beats", (double)b->weight_beats);
    cJSON_AddNumberToObject(to, "delivered", (double)b->delivered);
    cJSON_AddNumberToObject(to, "predicted_delivered", cli_sim_delivered(b, said));
    cJSON_AddNumberToObject(to, "busy", (double)b->channel_busy);
    cJSON_AddNumberToObject(to, "busy_share", cli_ratio((double)b->channel_busy, (double)b->counted_cycles));
    cJSON_AddNumberToObject(to, "offered_share", rate < awake ? rate : awake);
}

/* What was to be expected, with the memory that was simulated: mlo_report's "cycles". */
static cJSON *cli_report_predicted(const cli_bench *b) {
    const char *latency = cli_value(b->c, "axi-latency"), *bandwidth = cli_value(b->c, "bandwidth"); char frames[32];
    snprintf(frames, sizeof frames, "%lld", (long long)b->n);
    if (mlo_set(b->core, "frames", frames) || (latency && mlo_set(b->core, "axi-latency", latency)) || (bandwidth && mlo_set(b->core, "bandwidth", bandwidth))) return NULL;
    const char *text = mlo_report(b->core, "cycles");
    return text ? cJSON_Parse(text) : NULL;
}

/* A kernel's cycles as predicted. */
static void cli_report_spent(cJSON *one, const cJSON *predicted, const char *name) {
    const cJSON *k;
    cJSON_ArrayForEach(k, cJSON_GetObjectItemCaseSensitive(predicted, "kernels")) if (!strcmp(cli_json_text(k, "name"), name)) {
        cJSON_AddNumberToObject(one, "predicted", cli_json_number(k, "busy"));
        cJSON_AddNumberToObject(one, "predicted_starved_parameters", cli_json_number(k, "starved_parameters"));
        cJSON_AddNumberToObject(one, "predicted_starved_input", cli_json_number(k, "starved_input"));
        cJSON_AddNumberToObject(one, "predicted_blocked", cli_json_number(k, "blocked"));
        return;
    }
    cJSON_AddNullToObject(one, "predicted");
}

static void cli_report_kernel(const cli_kernel *k, double steady, const cJSON *predicted, double bound, cJSON *list) {
    cJSON *one = cJSON_CreateObject();
    cJSON_AddStringToObject(one, "name", k->name); cJSON_AddStringToObject(one, "op", k->op); cJSON_AddNumberToObject(one, "pe", k->pe); cJSON_AddNumberToObject(one, "simd", k->simd);
    cJSON_AddNumberToObject(one, "multipliers", k->multipliers); cJSON_AddNumberToObject(one, "macs", k->macs);
    cJSON_AddNumberToObject(one, "busy", k->busy); cJSON_AddNumberToObject(one, "starved", k->starved); cJSON_AddNumberToObject(one, "blocked", k->blocked);
    cli_report_spent(one, predicted, k->name);
    cJSON_AddNumberToObject(one, "utilization", cli_ratio(k->macs, k->multipliers * steady));
    cJSON_AddNumberToObject(one, "predicted_utilization", cli_ratio(k->macs, k->multipliers * cli_json_number(predicted, "interval")));
    cJSON_AddNumberToObject(one, "bound_utilization", cli_ratio(k->macs, k->multipliers * bound));
    cJSON_AddItemToArray(list, one);
}

/* The most that a FIFO would hold, as predicted. */
static void cli_report_peak(cJSON *one, const cJSON *predicted, const char *name) {
    const cJSON *k;
    cJSON_ArrayForEach(k, cJSON_GetObjectItemCaseSensitive(predicted, "fifos")) if (!strcmp(cli_json_text(k, "name"), name)) {
        cJSON_AddNumberToObject(one, "predicted_peak", cli_json_number(k, "peak"));
        return;
    }
    cJSON_AddNullToObject(one, "predicted_peak");
}

/* The most that each FIFO held. */
static void cli_report_fifos(const cli_bench *b, const cJSON *predicted, cJSON *all) {
    cJSON *fifos = cJSON_AddArrayToObject(all, "fifos");
    for (int i = 0; i < b->n_fifo; i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", b->fifo[i].name);
        cJSON_AddNumberToObject(one, "peak", (double)b->fifo[i].peak); cli_report_peak(one, predicted, b->fifo[i].name);
        cJSON_AddNumberToObject(one, "depth", (double)b->fifo[i].depth); cJSON_AddNumberToObject(one, "beats_per_token", (double)b->fifo[i].beats);
        cJSON_AddItemToArray(fifos, one);
    }
}

/* bound: cycles per frame at which the busiest kernel never rests. */
static cJSON *cli_report_make(const cli_bench *b, int pass, const char *why, const char *probe, const cJSON *predicted) {
    cJSON *all = cJSON_CreateObject(), *list; double steady = cli_sim_interval(b), macs = 0, multipliers = 0;
    double bound = cli_json_number(b->manifest, "interval_per_token") * cli_sim_rounds(b) * (double)cli_sim_tokens(b) / (double)b->n;
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
    if (predicted) { cJSON_AddNumberToObject(all, "predicted_cycles", cli_json_number(predicted, "cycles")); cJSON_AddNumberToObject(all, "predicted_interval", cli_json_number(predicted, "interval")); }
    else { cJSON_AddNullToObject(all, "predicted_cycles"); cJSON_AddNullToObject(all, "predicted_interval"); }
    cJSON_AddNumberToObject(all, "bound", bound);
    cJSON_AddNumberToObject(all, "words", (double)(b->words * b->lanes));
    cJSON_AddNumberToObject(all, "weight_beats", (double)b->weight_beats);
    cli_report_memory(b, all);
    list = cJSON_AddObjectToObject(all, "counters");
    cJSON_AddNumberToObject(list, "cycles", (double)b->counted_cycles); cJSON_AddNumberToObject(list, "frames", (double)b->counted_frames); cJSON_AddNumberToObject(list, "beats", (double)b->counted_beats);
    list = cJSON_AddArrayToObject(all, "kernels");
    for (int i = 0; i < b->n_kernel; i++) {
        cli_report_kernel(&b->kernel[i], steady, predicted, bound, list);
        macs += b->kernel[i].macs; multipliers += b->kernel[i].multipliers;
    }
    cJSON_AddNumberToObject(all, "multipliers", multipliers); cJSON_AddNumberToObject(all, "macs", macs);
    cJSON_AddNumberToObject(all, "utilization", cli_ratio(macs, multipliers * steady));
    cJSON_AddNumberToObject(all, "predicted_utilization", cli_ratio(macs, multipliers * cli_json_number(predicted, "interval")));
    cJSON_AddNumberToObject(all, "bound_utilization", cli_ratio(macs, multipliers * bound));
    cJSON_AddStringToObject(all, "manifest", b->digest);
    cli_report_fifos(b, predicted, all);
    return all;
}

/* On stdout, and as sim/report.json for `mlo show DIR`. */
static int cli_sim_report(cli_bench *b, int pass, const char *why, const char *probe) {
    cJSON *predicted = NULL;
    if (!b->unrolled && !cli_value(b->c, "frame-tokens") && !(predicted = cli_report_predicted(b))) return cli_adopt(b->c, b->core);
    cJSON *all = cli_report_make(b, pass, why, probe, predicted);
    char *text = cJSON_PrintUnformatted(all);
    cJSON_Delete(all); cJSON_Delete(predicted);
    if (!text) return cli_fail(b->c, MLO_E_MEMORY, NULL, "no memory");
    cli_out o;
    if (!cli_write_file(b->c, cli_in_dir(b, "sim/report.json"), text, strlen(text)) && !cli_out_open(b->c, &o, NULL)) {
        cli_out_text(&o, text); cli_out_text(&o, "\n");
        cli_out_close(b->c, &o);
    }
    cJSON_free(text);
    return cli_failed(b->c);
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
    cli *c = b->c; cli_golden g = { 0, b, NULL }; char why[1300] = "", probe[200] = "";
    int probing = cli_value(c, "probe") != NULL;
    if (cli_sim_manifest(b)) return cli_failed(c);
    if (b->unrolled && (probing || cli_value(c, "trace"))) return cli_fail(c, MLO_E_UNSUPPORTED, b->dir, "an unrolled core has no --probe and no --trace; the rolled one has the same streams");
    if (cli_sim_frames(b)) return cli_failed(c);
    unlink(cli_in_dir(b, "sim/report.json")); unlink(cli_in_dir(b, "sim/trace.txt")); unlink(cli_in_dir(b, "sim/trace.jsonl"));         /* of a run before */
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
    if (cli_sim_report(b, pass, why, probe) || (cli_value(c, "trace") && (pass || !access(cli_in_dir(b, "sim/trace.txt"), R_OK)) && cli_sim_trace(b))) return cli_failed(c);
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
