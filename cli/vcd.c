/* vcd: what the core's streams did, from the waves that a simulator recorded (show --wave).
 *
 * in:  a VCD of any bench of mlo_top, as Icarus and Verilator write it: a tree of scopes with the
 *      signals, each by a code; then moments, each with the signals that changed.
 * out: JSON lines as those of sim --trace --window: for each port of each kernel
 *      {"kernel","stream","from","valid","ready"}, valid and ready in each of 96 cycles.
 *
 * A kernel is a scope u_NAME in the scope u_core, a port of it a pair of signals PORT_tvalid and
 * PORT_tready. What counts in a cycle is what stood just before clk rises: what changes with it, at
 * the same moment, belongs to the next one. Cycle 1 is that in which the scope around u_core takes
 * its first beat on s_axis.
 *
 * invariant: the file is read once, piece by piece, and no further than the stretch; of its signals
 *     those of the ports are kept, and no history. So it may have any size.
 * example: mlo sim build --wave x.vcd; mlo show build --html --wave x.vcd --window 500 -o x.html
 * cost: some seconds for a gigabyte.
 */

enum { CLI_WINDOW = 96 }; /* cycles of a stretch; the bench (share/tb/rolled.v) writes as many */
enum { CLI_VCD_WORD = 128, CLI_VCD_DEEP = 64 };

/* One signal; aliases share it. */
typedef struct {
    uint64_t code; /* its characters, as digits */
    int64_t moment; /* of its last change */
    char now; /* '0', '1' or unknown */
    char before; /* what it was before that moment */
} cli_vcd_signal;
typedef struct {
    char kernel[CLI_VCD_WORD];
    char port[CLI_VCD_WORD];
    uint64_t code[2]; /* of valid, of ready; 0: not seen */
    int signal[2]; /* their numbers */
    char seen[2][CLI_WINDOW + 1]; /* in each cycle of the stretch */
} cli_vcd_port;
typedef struct {
    char name[CLI_VCD_WORD];
    uint64_t entry[2]; /* the codes of its s_axis_tvalid and s_axis_tready */
    int holds; /* 1: u_core is in it */
} cli_vcd_scope;
typedef struct {
    cli *c;
    const char *path;
    FILE *file;
    int64_t line;
    char word[CLI_VCD_WORD]; /* the last one that was read; a longer one is cut */
    cli_vcd_scope scope[CLI_VCD_DEEP];
    int deep; /* scopes around */
    uint64_t clk; /* the code of u_core's, 0: not seen */
    uint64_t entry[2]; /* the codes of the core's own s_axis_tvalid and s_axis_tready */
    cli_vcd_port *port;
    int n;
    cli_vcd_signal *signal; /* in the order of codes */
    int n_signal;
    int clk_is; /* the number of clk */
    int entry_is[2]; /* the numbers of the entry's */
    int64_t moment; /* how many there were */
    int64_t cycle; /* 0: before the first beat */
    int64_t from; /* the stretch's first cycle */
    int n_seen; /* its cycles so far */
} cli_vcd;

/* The next word; 0 at the end. */
static int cli_vcd_next(cli_vcd *v) {
    size_t n = 0;
    int x = getc_unlocked(v->file);
    for (; x == ' ' || x == '\n' || x == '\t' || x == '\r'; x = getc_unlocked(v->file))
        v->line += x == '\n';
    for (; x > ' '; x = getc_unlocked(v->file))
        if (n + 1 < sizeof v->word) v->word[n++] = (char)x;
    if (x != EOF) ungetc(x, v->file);
    v->word[n] = 0;
    return n > 0;
}

static int cli_vcd_is(const cli_vcd *v, const char *word) { return !strcmp(v->word, word); }

static int cli_vcd_bad(cli_vcd *v, const char *what) {
    return cli_fail(v->c, MLO_E_FORMAT, v->path, "line %lld: %s", (long long)v->line, what);
}

/* A command's words up to its $end. */
static int cli_vcd_skip(cli_vcd *v) {
    while (!cli_vcd_is(v, "$end"))
        if (!cli_vcd_next(v))
            return cli_vcd_bad(v, "breaks off before its signals are all named; record it again");
    return 0;
}

/* A code as a number; 0: too long for one. */
static uint64_t cli_vcd_code(const char *text) {
    uint64_t code = 0;
    if (strlen(text) > 9) return 0;
    for (; *text; text++) code = 95 * code + (uint64_t)(*text - 32);
    return code;
}

/* Whether a name is letters, digits and _ only. */
static int cli_vcd_plain(const char *name) {
    return *name
        && !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")];
}

/* The port of a kernel, made where there is none yet. */
static cli_vcd_port *cli_vcd_port_of(cli_vcd *v, const char *kernel, const char *port, size_t n) {
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->port[i].kernel, kernel) && strlen(v->port[i].port) == n
            && !strncmp(v->port[i].port, port, n))
            return &v->port[i];
    cli_vcd_port *more = (cli_vcd_port *)realloc(v->port, (size_t)(v->n + 1) * sizeof *more);
    if (!more) {
        cli_fail(v->c, MLO_E_MEMORY, v->path, "no memory for its streams");
        return NULL;
    }
    v->port = more;
    memset(&more[v->n], 0, sizeof *more);
    snprintf(more[v->n].kernel, sizeof more->kernel, "%s", kernel);
    snprintf(more[v->n].port, sizeof more->port, "%.*s", (int)n, port);
    return &more[v->n++];
}

/* Signal `code` of the scope that is open; u_core's kernels have theirs in `in`. */
static int cli_vcd_take(cli_vcd *v, cli_vcd_scope *here, const char *in, uint64_t code) {
    const size_t n = strlen(v->word);
    const int ready = n > 7 && !strcmp(v->word + n - 7, "_tready");
    if (!strcmp(here->name, "u_core") && cli_vcd_is(v, "clk")) v->clk = code;
    if (!ready && (n <= 7 || strcmp(v->word + n - 7, "_tvalid"))) return 0;
    if (n == 13 && !strncmp(v->word, "s_axis", 6)) here->entry[ready] = code;
    if (strcmp(in, "u_core") || strncmp(here->name, "u_", 2)) return 0;
    if (!cli_vcd_plain(here->name) || !cli_vcd_plain(v->word)) return 0;
    cli_vcd_port *p = cli_vcd_port_of(v, here->name + 2, v->word, n - 7);
    if (p) p->code[ready] = code;
    return cli_failed(v->c);
}

/* $var TYPE SIZE CODE NAME .. $end */
static int cli_vcd_var(cli_vcd *v) {
    cli_vcd_next(v);
    cli_vcd_next(v);
    const int bit = cli_vcd_is(v, "1");
    cli_vcd_next(v);
    const uint64_t code = cli_vcd_code(v->word);
    cli_vcd_next(v);
    if (bit && code && v->deep
        && cli_vcd_take(
            v, &v->scope[v->deep - 1], v->deep > 1 ? v->scope[v->deep - 2].name : "", code))
        return cli_failed(v->c);
    return cli_vcd_skip(v);
}

/* $scope TYPE NAME $end */
static int cli_vcd_enter(cli_vcd *v) {
    if (v->deep == CLI_VCD_DEEP) return cli_vcd_bad(v, "more than 64 scopes in each other");
    cli_vcd_next(v);
    cli_vcd_next(v);
    cli_vcd_scope *s = &v->scope[v->deep++];
    memset(s, 0, sizeof *s);
    memcpy(s->name, v->word, sizeof s->name);
    if (v->deep > 1 && cli_vcd_is(v, "u_core")) v->scope[v->deep - 2].holds = 1;
    return cli_vcd_skip(v);
}

static int cli_vcd_leave(cli_vcd *v) {
    if (!v->deep) return cli_vcd_bad(v, "$upscope outside of every scope");
    const cli_vcd_scope *s = &v->scope[--v->deep];
    if (s->holds) memcpy(v->entry, s->entry, sizeof v->entry);
    return cli_vcd_skip(v);
}

/* The tree of scopes, up to $enddefinitions. */
static int cli_vcd_head(cli_vcd *v) {
    cli_vcd_next(v);
    if (*v->word != '$')
        return cli_vcd_bad(v,
            "this is no VCD; record one with `mlo sim DIR --wave x.vcd`, or make one of an FST: "
            "fst2vcd x.fst -o x.vcd");
    while (!cli_vcd_is(v, "$enddefinitions")) {
        int r = cli_vcd_is(v, "$var")   ? cli_vcd_var(v)
            : cli_vcd_is(v, "$scope")   ? cli_vcd_enter(v)
            : cli_vcd_is(v, "$upscope") ? cli_vcd_leave(v)
                                        : cli_vcd_skip(v);
        if (r) return r;
        cli_vcd_next(v);
        if (!*v->word) return cli_vcd_skip(v);
    }
    while (v->deep)
        if (v->scope[--v->deep].holds) memcpy(v->entry, v->scope[v->deep].entry, sizeof v->entry);
    return cli_vcd_skip(v);
}

static int cli_vcd_order(const void *a, const void *b) {
    const uint64_t x = ((const cli_vcd_signal *)a)->code, y = ((const cli_vcd_signal *)b)->code;
    return (x > y) - (x < y);
}

/* The number of a signal that is kept, -1: it is not. */
static int cli_vcd_find(const cli_vcd *v, uint64_t code) {
    int low = 0, high = v->n_signal;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (v->signal[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->n_signal && v->signal[low].code == code ? low : -1;
}

/* The signals that are kept: those of whole ports, of the entry, and clk. */
static int cli_vcd_keep(cli_vcd *v) {
    int n = 0;
    for (int i = 0; i < v->n; i++)
        if (v->port[i].code[0] && v->port[i].code[1]) v->port[n++] = v->port[i];
    v->n = n;
    if (!v->clk || !v->entry[0] || !v->entry[1] || !n)
        return cli_fail(v->c, MLO_E_FORMAT, v->path,
            "%s; record the bench of a build directory, all levels of it: mlo sim DIR --wave x.vcd",
            v->clk ? "no kernel's streams are in it" : "there is no scope u_core with a clk in it");
    v->signal = (cli_vcd_signal *)calloc((size_t)(2 * n + 3), sizeof *v->signal);
    if (!v->signal) return cli_fail(v->c, MLO_E_MEMORY, v->path, "no memory for its streams");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) v->signal[v->n_signal++].code = v->port[i].code[k];
    for (int k = 0; k < 2; k++) v->signal[v->n_signal++].code = v->entry[k];
    v->signal[v->n_signal++].code = v->clk;
    qsort(v->signal, (size_t)v->n_signal, sizeof *v->signal, cli_vcd_order);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) v->port[i].signal[k] = cli_vcd_find(v, v->port[i].code[k]);
    for (int k = 0; k < 2; k++) v->entry_is[k] = cli_vcd_find(v, v->entry[k]);
    v->clk_is = cli_vcd_find(v, v->clk);
    return 0;
}

/* What a signal was before this moment. */
static char cli_vcd_was(const cli_vcd *v, int signal) {
    const cli_vcd_signal *s = &v->signal[signal];
    return s->moment == v->moment ? s->before : s->now;
}

/* A moment is over: if clk rose in it, so is a cycle. */
static void cli_vcd_moment(cli_vcd *v) {
    if (v->signal[v->clk_is].now == '1' && cli_vcd_was(v, v->clk_is) == '0') {
        const int enters = cli_vcd_was(v, v->entry_is[0]) == '1'
            && cli_vcd_was(v, v->entry_is[1]) == '1';
        if (v->cycle || enters) v->cycle++;
        if (v->cycle && v->cycle >= v->from) {
            for (int i = 0; i < v->n; i++)
                for (int k = 0; k < 2; k++)
                    v->port[i].seen[k][v->n_seen] = cli_vcd_was(v, v->port[i].signal[k]) == '1'
                        ? '1'
                        : '0';
            v->n_seen++;
        }
    }
    v->moment++;
}

static void cli_vcd_change(cli_vcd *v, const char *code, char to) {
    const int i = cli_vcd_find(v, cli_vcd_code(code));
    if (i < 0) return;
    cli_vcd_signal *s = &v->signal[i];
    if (s->moment != v->moment) s->before = s->now;
    s->moment = v->moment;
    s->now = to;
}

/* The moments, as far as the stretch goes. */
static int cli_vcd_body(cli_vcd *v) {
    v->moment = 1;
    while (v->n_seen < CLI_WINDOW && cli_vcd_next(v)) {
        const char *w = v->word;
        if (*w == '#')
            cli_vcd_moment(v);
        else if (strchr("01xXzZ", *w) && w[1])
            cli_vcd_change(v, w + 1, *w);
        else if (strchr("bBrR", *w)) { /* wide: its code is a word of its own */
            const char last = w[strlen(w) - 1];
            cli_vcd_next(v);
            cli_vcd_change(v, v->word, last);
        } else if (cli_vcd_is(v, "$comment")) {
            if (cli_vcd_skip(v)) return cli_failed(v->c);
        } else if (*w != '$')
            return cli_vcd_bad(v, "this is no change of a signal; record it again");
    }
    if (v->n_seen < CLI_WINDOW) cli_vcd_moment(v);
    if (!v->cycle)
        return cli_fail(v->c, MLO_E_FORMAT, v->path,
            "ends before the core takes its first beat; record a longer run");
    if (!v->n_seen)
        return cli_fail(v->c, MLO_E_USAGE, v->path, "has %lld cycles; give --window %lld or less",
            (long long)v->cycle,
            (long long)(v->cycle > CLI_WINDOW ? v->cycle - CLI_WINDOW + 1 : 1));
    return 0;
}

/* The lines, for the library. */
static int cli_vcd_lines(const cli_vcd *v, cli_bytes *to) {
    const size_t room = (size_t)v->n * (2 * CLI_VCD_WORD + 2 * CLI_WINDOW + 120) + 1;
    to->data = (char *)malloc(room);
    if (!to->data) return cli_fail(v->c, MLO_E_MEMORY, v->path, "no memory for its streams");
    for (int i = 0; i < v->n; i++)
        to->n += (size_t)snprintf(to->data + to->n, room - to->n,
            "{\"kernel\":\"%s\",\"stream\":\"%s\",\"from\":%lld,\"valid\":\"%s\",\"ready\":\"%s\"}"
            "\n",
            v->port[i].kernel, v->port[i].port, (long long)v->from, v->port[i].seen[0],
            v->port[i].seen[1]);
    return 0;
}

/* What the file has of the streams in 96 cycles from --window on. */
static int cli_vcd_read(cli *c, const char *path, cli_bytes *to) {
    cli_vcd *v = (cli_vcd *)calloc(1, sizeof *v);
    memset(to, 0, sizeof *to);
    if (!v) return cli_fail(c, MLO_E_MEMORY, path, "no memory");
    v->c = c;
    v->path = path;
    v->line = 1;
    v->from = cli_number(c, "window", 1, 1, INT_MAX);
    if (!cli_failed(c) && !cli_plain(c, path)) {
        v->file = fopen(path, "rb");
        if (!v->file)
            cli_fail(c, MLO_E_IO, path, "%s", strerror(errno));
        else if (!cli_vcd_head(v) && !cli_vcd_keep(v) && !cli_vcd_body(v))
            cli_vcd_lines(v, to);
        if (v->file) fclose(v->file);
    }
    free(v->signal);
    free(v->port);
    free(v);
    return cli_failed(c);
}
