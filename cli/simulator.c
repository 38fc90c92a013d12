/* simulator: chooses the simulator, builds its program, runs it and reads what the bench said.
 *
 * in:  a cli_bench whose frames are there.
 * out: the bench's lines, read into it.
 *
 * Icarus begins at once and is slow; Verilator compiles for tens of seconds and is some hundred
 * times as fast. The time of each is guessed from the number of cycles and of multipliers: right to
 * a factor of two, which is enough to choose, and to count down.
 */

/* ---- what is to come ------------------------------------------------------ */

static int64_t cli_sim_tokens(const cli_bench *b) {
    int64_t n = 0;
    for (int64_t f = 0; f < b->n; f++) n += b->frame[f].tokens;
    return n;
}

/* What was to be expected, with the memory that was simulated: mlo_report's "cycles". */
static cJSON *cli_report_predicted(const cli_bench *b) {
    const char *latency = cli_value(b->c, "axi-latency"), *bandwidth = cli_value(b->c, "bandwidth");
    char frames[32], jobs[70 * CLI_FRAMES_MOST];
    snprintf(frames, sizeof frames, "%lld", (long long)b->n);
    cli_jobs_text(b, jobs, sizeof jobs);
    mlo_set(b->core, "frames", frames);
    if (*jobs) mlo_set(b->core, "jobs", jobs);
    if (latency) mlo_set(b->core, "axi-latency", latency);
    if (bandwidth) mlo_set(b->core, "bandwidth", bandwidth);
    const char *text = mlo_report(b->core, "cycles"); /* (none of a handle that failed) */
    return text ? cJSON_Parse(text) : NULL;
}

/* Beats of row blocks for so many tokens that share tiles, in an iteration. */
static double cli_sim_tiles(const cli_bench *b, int64_t tokens) {
    double beats = 0;
    for (int k = 0; k < b->n_kernel; k++)
        if (b->kernel[k].tile > 0)
            beats += (double)((tokens + b->kernel[k].tile - 1) / b->kernel[k].tile
                * b->kernel[k].tile_beats);
    return beats;
}

/* The same, of so many frames from one on: those in flight share tiles, unless there is a single iteration. */
static double cli_sim_shared(const cli_bench *b, int64_t frame, int64_t frames) {
    double beats = 0;
    int64_t tokens = 0;
    for (int64_t f = 0; f < frames; f++) {
        const int64_t more = frame < 0 ? b->tokens : b->frame[frame + f].tokens;
        if (b->iterations > 1 && f % b->group)
            tokens += more;
        else {
            beats += cli_sim_tiles(b, tokens);
            tokens = more;
        }
    }
    return beats + cli_sim_tiles(b, tokens);
}

/* Times round the loop beside those of jobs themselves: an id that goes on inside the core is one. */
static int64_t cli_sim_again(const cli_bench *b) {
    int64_t more = 0;
    for (int64_t i = 0; i < b->n_job; i++) more += b->job[i].more;
    return more;
}

/* Parameter beats that the kernels have taken when a run of whole groups has come to rest: every
 * iteration's, those of the next one, which are loaded ahead, once those that stay, and row blocks
 * for every tile. (A single iteration's are not loaded again: two banks, whatever the frames.) */
static double cli_sim_delivered(const cli_bench *b, const cJSON *p) {
    double each = cli_json_number(p, "per_iteration") - cli_sim_shared(b, -1, b->group);
    if (b->unrolled) return 2 * each * (double)b->iterations;
    const int64_t again = cli_sim_again(b), groups = (b->n + b->group - 1) / b->group + again;
    const int64_t begun = b->iterations == 1 ? 1 : groups * b->iterations;
    const double blocks = cli_sim_shared(b, 0, b->n) + (double)again * cli_sim_tiles(b, 1);
    return cli_json_number(p, "once") + each * (double)(begun + 1) + (double)b->iterations * blocks;
}

/* How long the run will be, in cycles, until the next iteration is loaded, too; about, where
 * nothing is predicted: stalls, short frames, unrolled. */
static int cli_sim_expect(cli_bench *b) {
    /* (jobs are predicted as they are) */
    const double share = b->n_job ? 1
                                  : (double)cli_sim_tokens(b) / ((double)b->n * (double)b->tokens);
    const double awake = (double)(100 - cli_number(b->c, "stall", 0, 0, 99)) / 100;
    double cycles = cli_json_number(b->manifest, "interval_per_token") * (double)(b->n * b->tokens);
    if (!b->unrolled) {
        if (!(b->predicted = cli_report_predicted(b))) return cli_adopt(b->c, b->core);
        cycles = cli_json_number(b->predicted, "cycles");
    }
    const double loading = cli_sim_delivered(
        b, cJSON_GetObjectItemCaseSensitive(b->manifest, "parameter_beats"));
    if (cycles * share < loading) cycles = loading / share;
    b->expected = (int64_t)(cycles * share / awake + 0.5);
    return cli_failed(b->c);
}

/* ---- which one ------------------------------------------------------------ */

static int cli_on_path(const char *program) {
    const char *p = getenv("PATH");
    char path[PATH_MAX];
    while (p && *p) {
        size_t n = strcspn(p, ":");
        if (snprintf(path, sizeof path, "%.*s/%s", (int)n, p, program) < (int)sizeof path
            && !access(path, X_OK))
            return 1;
        p += n + (p[n] == ':');
    }
    return 0;
}

/* Processors that make keeps busy. */
static long cli_cores(void) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 8 ? 8 : n;
}

/* What a simulator keeps: flip-flops of kernels, by their areas. */
static double cli_sim_registers(const cli_bench *b) {
    const cJSON *around = cJSON_GetObjectItemCaseSensitive(b->manifest, "around");
    const cJSON *all[] = { cJSON_GetObjectItemCaseSensitive(b->manifest, "kernels"),
        cJSON_GetObjectItemCaseSensitive(around, "kernels") };
    const cJSON *k;
    double n = 0;
    for (int i = 0; i < 2; i++)
        cJSON_ArrayForEach(k, all[i])
            n += cli_json_number(cJSON_GetObjectItemCaseSensitive(k, "area"), "ff");
    return n;
}

/* Measured on cores of 3,100 to 83,000 flip-flops: a cycle of Icarus 100 to 1,050 us (up to 18,500),
 * of Verilator 2, 5 (30,000) and 26 us, more where its code is in no cache; its C++ 21 to 59 s of one
 * processor; 13 MB of parameters are read in a second. */
static cli_effort cli_effort_of(const cli_bench *b, int verilator, const char *program) {
    const double ff = cli_sim_registers(b) / 1000, cycles = (double)b->expected;
    const double reading = cli_json_number(b->manifest, "iteration_bytes") * (double)b->iterations
        / 13e6;
    cli_effort icarus = { 1 + 0.1 * ff, reading + cycles * 42 * ff / 1e6, 1 };
    const double alone = 2 + 0.05 * ff, shared = (22 + 0.42 * ff) / (double)cli_cores();
    cli_effort fast = { alone + shared, reading + cycles * (2 + 0.0036 * ff * ff) / 1e6,
        alone / (alone + shared) };
    cli_effort e = verilator ? fast : icarus;
    if (!access(cli_in_dir(b, program), R_OK)) e.compile = 0;
    return e;
}

/* Room in the bench for activation beats; some to spare, so that other --frames need no other
 * program. */
static long long cli_sim_words(const cli_bench *b) {
    const int64_t frames = b->n > b->bench_frames ? b->n : b->bench_frames;
    const int64_t own = b->times * b->stream[0].beats, again = b->stream[2].beats;
    const long long most = (long long)(frames * (own > again ? own : again));
    long long words = 16384;
    while (words < most) words *= 2;
    return words;
}

/* Whether waves are to be a VCD: by the name of their file. */
static int cli_waves_vcd(const cli_bench *b) {
    const char *wave = cli_value(b->c, "wave");
    const size_t n = strlen(wave);
    return n > 4 && !strcmp(wave + n - 4, ".vcd");
}

/* Where the compiled bench is, or will be: its name tells sources, simulator and sizes. */
static void cli_sim_program(const cli_bench *b, int verilator, char *program, size_t room) {
    const long long words = cli_sim_words(b);
    const char *wave = !cli_value(b->c, "wave") ? "" : cli_waves_vcd(b) ? "-vcd" : "-wave";
    if (verilator)
        snprintf(program, room, "sim/verilator-%.12s-%lld%s/mlo_tb", b->key, words, wave);
    else
        snprintf(program, room, "sim/icarus-%.12s-%lld.vvp", b->key, words);
}

/* seconds that Icarus may take where Verilator is installed, too */
enum { CLI_PATIENCE = 20 };

/* Why it is taken, in words. */
static void cli_sim_because(
    cli_bench *b, const cli_effort *icarus, const cli_effort *verilator, int both) {
    char slow[40], fast[40];
    cli_duration(icarus->compile + icarus->run, slow, sizeof slow);
    cli_duration(verilator->compile + verilator->run, fast, sizeof fast);
    if (cli_value(b->c, "simulator"))
        snprintf(b->why_this, sizeof b->why_this, "as --simulator says");
    else if (!both)
        snprintf(b->why_this, sizeof b->why_this, "%s is not installed",
            b->verilator ? "iverilog" : "verilator");
    else if (b->verilator)
        snprintf(b->why_this, sizeof b->why_this, "by estimate %s, Icarus %s", fast, slow);
    else
        snprintf(b->why_this, sizeof b->why_this, "by estimate %s, Verilator %s", slow, fast);
}

/* Which simulator ends sooner, where it matters; --simulator has the last word. */
static int cli_sim_choose(cli_bench *b) {
    const char *said = cli_value(b->c, "simulator");
    char program[200];
    if (said && strcmp(said, "icarus") && strcmp(said, "verilator"))
        return cli_fail(b->c, MLO_E_USAGE, b->dir,
            "--simulator %s: it holds Verilog, which runs in icarus or verilator", said);
    const int icarus = cli_on_path("iverilog");
    const int verilator = cli_on_path("verilator") && cli_on_path("make");
    cli_sim_program(b, 0, program, sizeof program);
    const cli_effort a = cli_effort_of(b, 0, program);
    cli_sim_program(b, 1, program, sizeof program);
    const cli_effort v = cli_effort_of(b, 1, program);
    const int sooner = a.compile + a.run > (double)CLI_PATIENCE
        && v.compile + v.run < a.compile + a.run;
    b->verilator = said ? !strcmp(said, "verilator") : verilator && (sooner || !icarus);
    b->effort = b->verilator ? v : a;
    cli_sim_because(b, &a, &v, icarus && verilator);
    return 0;
}

/* ---- its program ---------------------------------------------------------- */

/* The last line of a log that says something, for messages. */
static void cli_last_line(cli_bench *b, const char *log, char *to, size_t room) {
    cli_bytes text;
    *to = 0;
    if (!cli_slurp(b->c, cli_in_dir(b, log), &text)) {
        const char *error = strstr(text.data, "rror");
        if (error)
            while (error > text.data && error[-1] != '\n') error--;
        snprintf(to, room, "%.*s", (int)strcspn(error ? error : text.data, "\n"),
            error ? error : text.data);
    }
    free(text.data);
}

static void cli_sim_sources(cli_bench *b, cli_command *x) {
    const cJSON *f;
    cJSON_ArrayForEach(
        f, cJSON_GetObjectItemCaseSensitive(b->manifest, "files")) if (cli_ends(f->string, ".v"))
        cli_word(x, "%s", f->string);
}

static int cli_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

/* What a compiler left half done. */
static void cli_remove_tree(const char *path) {
    nftw(path, cli_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void cli_words_of_verilator(const cli_bench *b, cli_command *x, const char *dir) {
    static const char *const fixed[] = { "verilator", "--binary", "--timing", "-O3", "-Wno-fatal",
        "-Wno-lint", "-Wno-style", "-Wno-TIMESCALEMOD", "--top-module", "mlo_tb",
        /* loops over the rows of a matrix */
        "--unroll-count", "65536",
        /* compiling takes longer than running */
        "-MAKEFLAGS", "OPT_FAST=-O1", "-MAKEFLAGS", "OPT_GLOBAL=-O1" };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) cli_word(x, "%s", fixed[i]);
    cli_word(x, "--build-jobs");
    cli_word(x, "%ld", cli_cores());
    cli_word(x, "-GWORDS=%lld", cli_sim_words(b));
    if (cli_value(b->c, "wave")) cli_word(x, cli_waves_vcd(b) ? "--trace" : "--trace-fst");
    cli_word(x, "--Mdir");
    cli_word(x, "%s", dir);
    cli_word(x, "-o");
    cli_word(x, "mlo_tb");
}

static void cli_words_of_icarus(const cli_bench *b, cli_command *x, const char *program) {
    static const char *const fixed[] = { "iverilog", "-g2012", "-s", "mlo_tb" };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) cli_word(x, "%s", fixed[i]);
    cli_word(x, "-Pmlo_tb.WORDS=%lld", cli_sim_words(b));
    cli_word(x, "-o");
    cli_word(x, "%s", program);
}

/* Compiles the bench, unless DIR/sim holds it already. It appears whole: the program, or
 * Verilator's folder around it. */
static int cli_sim_compile(cli_bench *b, cli_progress *p, const char *program) {
    const char *name = b->verilator ? "verilator" : "iverilog";
    char part[PATH_MAX], whole[PATH_MAX], why[300];
    cli_command x;
    memset(&x, 0, sizeof x);
    if (!cli_on_path(name))
        return cli_fail(b->c, MLO_E_IO, name, "is not installed: apt install %s", name);
    if (!access(cli_in_dir(b, program), R_OK)) return 0;
    snprintf(whole, sizeof whole, "%s/%.*s", b->dir, (int)strlen(program) - (b->verilator ? 7 : 0),
        program);
    snprintf(part, sizeof part, "%.4000s.part", whole);
    (b->verilator ? cli_words_of_verilator : cli_words_of_icarus)(b, &x, part + strlen(b->dir) + 1);
    cli_sim_sources(b, &x);
    p->look = b->verilator ? cli_look_at_build : cli_look_away;
    p->where = part;
    p->first = b->effort.first;
    cli_progress_step(p, b->verilator ? "Verilator compiles" : "Icarus compiles", b->effort.compile,
        b->effort.run);
    int status = cli_execute(b->c, p, &x, b->dir, cli_in_dir(b, "sim/compile.log"));
    if (!status && !cli_stopped && !rename(part, whole)) return 0;
    int reason = errno;
    cli_remove_tree(part);
    if (cli_failed(b->c) || cli_stopped) return MLO_E_IO;
    if (!status) return cli_fail(b->c, MLO_E_IO, whole, "cannot be written: %s", strerror(reason));
    cli_last_line(b, "sim/compile.log", why, sizeof why);
    return cli_fail(b->c, *b->mixture ? MLO_E_MISMATCH : MLO_E_BUG, b->dir,
        "%s does not compile the Verilog: %s; see %s/sim/compile.log", name, why, b->dir);
}

/* ---- the run -------------------------------------------------------------- */

/* Cycles without a beat at any door after which nothing more will come: several times the longest
 * silence of a healthy core. */
static int64_t cli_sim_patience(const cli_bench *b) {
    double busiest = cli_json_number(b->manifest, "interval_per_token");
    return 50000 + (int64_t)(4 * busiest * (double)(b->tokens + 16) * (double)b->group);
}

/* Of ids what is said behind each job comes out, a word each. */
static void cli_sim_said(cli_bench *b, cli_command *x) {
    const long stop = cli_number(b->c, "stop", -1, 0, INT_MAX);
    b->beats = b->n_job;
    for (int64_t i = 0; i < b->n_job; i++) b->beats += b->job[i].more;
    b->beats *= b->best;
    cli_word(x, "+words=%lld", (long long)b->beats);
    if (stop >= 0) cli_word(x, "+stop=%ld", stop);
}

/* Words that are not the bench's own. */
static void cli_sim_own_files(const cli_bench *b, cli_command *x) {
    cli_word(x, "+input=sim/input.hex");
    cli_word(x, "+golden=sim/golden.hex");
    if (b->n_job) cli_word(x, "+orders=sim/jobs.hex");
    if (b->kv) cli_word(x, "+kv=sim/kv.hex");
    if (b->past >= 0) cli_word(x, "+kept=sim/kept.hex");
    if (b->past > 0) cli_word(x, "+past=sim/past.hex");
    if (b->masked) cli_word(x, "+mask=sim/mask.hex");
    if (b->stream[2].name) cli_word(x, "+replay=sim/replay.hex");
    if (b->stream[3].name) cli_word(x, "+replay_mask=sim/replay_mask.hex");
}

static int cli_sim_arguments(cli_bench *b, cli_command *x) {
    cli *c = b->c;
    const char *bandwidth = cli_value(c, "bandwidth"), *wave = cli_value(c, "wave");
    char *end, here[PATH_MAX];
    long seed = cli_number(c, "seed", 1, 0, INT_MAX);
    long stall = cli_number(c, "stall", 0, 0, 99);
    long latency = cli_number(c, "axi-latency", -1, 0, 100000);
    long fault = cli_number(c, "axi-error", 0, 0, INT_MAX);
    const int64_t per = b->channels / b->lanes, tokens = cli_sim_tokens(b);
    const int64_t played = b->ids ? tokens : tokens * per;
    b->beats = (b->pools ? b->n : b->times * tokens) * per;
    cli_word(x, "+seed=%ld", seed);
    cli_word(x, "+stall=%ld", stall);
    if (latency >= 0) cli_word(x, "+latency=%ld", latency);
    cli_word(x, "+beats=%lld", (long long)played);
    cli_word(x, "+mask_beats=%lld", (long long)(b->masked ? cli_sim_tokens(b) : 0));
    if (b->stream[2].name)
        cli_word(x, "+replay_beats=%lld", (long long)(b->n * b->stream[2].beats));
    if (b->stream[3].name)
        cli_word(x, "+replay_mask_beats=%lld", (long long)(b->n * b->stream[3].beats));
    if (b->around) cli_sim_said(b, x);
    if (b->n_job) cli_word(x, "+jobs=%lld", (long long)b->n_job);
    cli_word(x, "+iterations=%lld", (long long)b->iterations);
    cli_word(x, "+frames_in_flight=%lld", (long long)b->group);
    cli_word(x, "+timeout=%lld", (long long)(cli_sim_patience(b) * (stall ? 4 : 1)));
    if (fault) cli_word(x, "+fault=%ld", fault);
    if (bandwidth) {
        double v = strtod(bandwidth, &end), rate = v * 8 * 256 / b->axi_bits;
        if (end == bandwidth || *end || !(v > 0))
            return cli_fail(c, MLO_E_USAGE, NULL,
                "--bandwidth %s is not a number of bytes per cycle", bandwidth);
        cli_word(x, "+rate=%d", rate >= 256 ? 256 : rate < 1 ? 1 : (int)(rate + 0.5));
    }
    if (!b->own_inputs) cli_sim_own_files(b, x);
    if (b->image_from_bin) cli_word(x, "+params=sim/params.hex");
    if (cli_value(c, "probe")) cli_word(x, "+probe=sim/probe.txt");
    if (cli_value(c, "trace")) {
        cli_word(x, "+trace=sim/trace.txt");
        const long half = 1 + (long)cli_json_number(b->predicted, "cycles") / 2;
        cli_word(x, "+window=%ld", cli_number(c, "window", half, 1, INT_MAX));
    }
    if (wave && *wave != '/' && !getcwd(here, sizeof here))
        return cli_fail(c, MLO_E_IO, NULL, "the working directory: %s", strerror(errno));
    if (wave)
        cli_word(x, *wave == '/' ? "+wave=%s%s" : "+wave=%s/%s", *wave == '/' ? "" : here, wave);
    return cli_failed(c);
}

/* The bench's lines: MLO FRAME f cycle; MLO KERNEL k busy starved blocked; MLO COUNTERS cycles
 * frames beats; MLO WEIGHTS n; MLO CHANNEL busy rate; MLO BEATS n; MLO PASS ..; MLO FAIL .. */
static int cli_sim_lines(cli_bench *b) {
    cli_bytes log;
    if (cli_slurp(b->c, cli_in_dir(b, "sim/run.log"), &log)) {
        free(log.data);
        return cli_failed(b->c);
    }
    cli_wait_cause(log.data, b->cause, sizeof b->cause);
    for (char *p = log.data, *next; *p; p = next) {
        long long v[4];
        int k;
        next = p + strcspn(p, "\n");
        if (*next) *next++ = 0;
        if (sscanf(p, "MLO FRAME %lld %lld", &v[0], &v[1]) == 2 && v[0] == b->n_done
            && b->n_done < 256)
            b->done[b->n_done++] = v[1];
        else if (sscanf(p, "MLO KERNEL %d %lld %lld %lld", &k, &v[0], &v[1], &v[2]) == 4 && k >= 0
            && k < b->n_kernel) {
            b->kernel[k].busy = (double)v[0];
            b->kernel[k].starved = (double)v[1];
            b->kernel[k].blocked = (double)v[2];
        } else if (sscanf(p, "MLO COUNTERS %lld %lld %lld", &v[0], &v[1], &v[2]) == 3) {
            b->counted_cycles = v[0];
            b->counted_frames = v[1];
            b->counted_beats = v[2];
        } else if (sscanf(p, "MLO CHANNEL %lld %lld", &v[0], &v[1]) == 2) {
            b->channel_busy = v[0];
            b->rate = v[1];
        } else if (sscanf(p, "MLO KV %lld %lld", &v[0], &v[1]) == 2) {
            b->kv_read = v[0];
            b->kv_written = v[1];
        } else if (sscanf(p, "MLO KEPT %lld", &v[0]) == 1)
            b->kept = v[0];
        else if (sscanf(p, "MLO WEIGHTS %lld", &v[0]) == 1)
            b->weight_beats = v[0];
        else if (b->n_fifo < 256
            && sscanf(
                   p, "MLO FIFO %63s %lld %lld %lld", b->fifo[b->n_fifo].name, &v[0], &v[1], &v[2])
                == 4) {
            b->fifo[b->n_fifo].peak = v[0];
            b->fifo[b->n_fifo].depth = v[1];
            b->fifo[b->n_fifo++].beats = v[2];
        } else if (!strncmp(p, "PROTOCOL ", 9)) {
            if (!*b->breach) snprintf(b->breach, sizeof b->breach, "%s", p + 9);
        } else if (sscanf(p, "MLO BEATS %lld", &v[0]) == 1)
            b->delivered = v[0];
        else if (sscanf(p, "MLO PASS words %lld cycles %lld", &v[0], &v[1]) == 2) {
            b->passes++;
            b->words = v[0];
            b->cycles = v[1];
        } else if (!strncmp(p, "MLO FAIL", 8)) {
            if (!b->fails++) cli_bench_fails(b, p + 8 + (p[8] == ' '));
        }
    }
    free(log.data);
    return 0;
}

static int cli_sim_simulate(cli_bench *b) {
    char program[200], log[PATH_MAX];
    cli_command x;
    cli_progress p;
    memset(&p, 0, sizeof p);
    memset(&x, 0, sizeof x);
    p.on = isatty(STDERR_FILENO);
    p.slower = 1;
    p.cycles = b->expected;
    if (cli_sim_choose(b)) return cli_failed(b->c);
    cli_sim_program(b, b->verilator, program, sizeof program);
    if (cli_sim_compile(b, &p, program)) return MLO_E_IO;
    if (!b->verilator) {
        cli_word(&x, "vvp");
        cli_word(&x, "-n");
    }
    cli_word(&x, b->verilator ? "./%s" : "%s", program);
    if (cli_value(b->c, "wave") && !b->verilator) cli_word(&x, cli_waves_vcd(b) ? "-vcd" : "-fst");
    if (p.on) cli_word(&x, "+progress=%lld", (long long)(b->expected / 200 + 1));
    snprintf(log, sizeof log, "%s/sim/run.log", b->dir);
    p.look = cli_look_at_run;
    p.where = log;
    cli_progress_step(&p, b->verilator ? "Verilator" : "Icarus", b->effort.run, 0);
    if (!cli_sim_arguments(b, &x)) b->status = cli_execute(b->c, &p, &x, b->dir, log);
    return cli_failed(b->c) || cli_stopped ? MLO_E_IO : cli_sim_lines(b);
}
