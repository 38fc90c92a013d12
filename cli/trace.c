/* trace: --trace: where the cycles went, tile by tile, as measured in the simulation.
 *
 * in:  sim/trace.txt, as mlo_sim_trace and the bench write it.
 * out: JSON lines, in sim/trace.jsonl and on stdout after the report.
 *
 * A tile is a token in a kernel, or the parameters that fill one bank of a memory (with row blocks:
 * all that are read for a tile of tokens). Cycle 1 is that of the first input beat; what is loaded
 * before it has cycles from 0 down. The lines:
 *
 *     {"kernel","frame","iteration","token","begin","end","load","compute","store","starved",
 *             "blocked"}
 *         begin, end                    the cycles of the first input and the last output beat
 *         load, store                   cycles from the first to the last input (output) beat
 *         compute, starved, blocked     what the kernel did in the cycles from the end of the token
 *                                       before to the end of this one
 *     {"kernel","memory","frame","iteration","begin","end","load"}
 *         load                          cycles from the first to the last beat
 *         frame                         the first frame that the parameters are for
 *     {"kernel","rest":true,"compute","starved","blocked"}
 *         the cycles after the kernel's last token
 *     {"kernel","stream","from","valid","ready"}
 *         a port in each cycle of a short stretch (--window): two texts of 0 and 1
 *
 * invariant: compute, starved and blocked of a kernel's lines add up to its counters.
 */

/* One tile on one stream. */
typedef struct {
    long long first; /* cycle of its first beat */
    long long last; /* cycle of its last beat */
    long long busy; /* cycles; of an output only, as the two behind it */
    long long starved; /* cycles */
    long long blocked; /* cycles */
} cli_tile;
typedef struct {
    char is; /* 'I' input, 'O' output, 'P' parameters */
    int kernel; /* its number in the bench */
    char port[32];
    cli_tile *tile;
    size_t n; /* tiles */
    size_t room; /* tiles that there is memory for */
    char valid[CLI_WINDOW + 1]; /* '0' or '1' in each cycle of the window */
    char ready[CLI_WINDOW + 1];
} cli_stream;
typedef struct {
    cli_stream *stream;
    int n;
    cli_tile *rest;
    long long begin;
    long long window; /* its first cycle */
    int seen; /* cycles of it */
} cli_trace;

static int cli_trace_tile(cli *c, cli_stream *s, const cli_tile *t) {
    if (s->n == s->room) {
        cli_tile *more = (cli_tile *)realloc(
            s->tile, (s->room = s->room ? 2 * s->room : 64) * sizeof *more);
        if (!more) return cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
        s->tile = more;
    }
    s->tile[s->n++] = *t;
    return 0;
}

static int cli_trace_stream(
    cli *c, cli_trace *t, char is, int number, int kernel, const char *port) {
    if (number != t->n)
        return cli_fail(c, MLO_E_FORMAT, "sim/trace.txt", "stream %d out of turn", number);
    cli_stream *more = (cli_stream *)realloc(t->stream, (size_t)(t->n + 1) * sizeof *more);
    if (!more) return cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
    t->stream = more;
    memset(&more[t->n], 0, sizeof *more);
    more[t->n].is = is;
    more[t->n].kernel = kernel;
    snprintf(more[t->n++].port, sizeof more->port, "%s", port);
    return 0;
}

/* Bit i of a hexadecimal number as a character; '0' beyond its digits. */
static char cli_trace_bit(const char *hex, size_t digits, int i) {
    if ((size_t)i / 4 >= digits) return '0';
    char c = hex[digits - 1 - (size_t)i / 4];
    int digit = c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
    return digit >> i % 4 & 1 ? '1' : '0';
}

/* A line of the window: W cycle valid ready, a bit a stream. */
static void cli_trace_cycle(cli_trace *t, const char *line) {
    char *at;
    long long cycle = strtoll(line + 1, &at, 10);
    const char *valid = at + strspn(at, " ");
    size_t n = strspn(valid, "0123456789abcdefABCDEF");
    const char *ready = valid + n + strspn(valid + n, " ");
    size_t more = strspn(ready, "0123456789abcdefABCDEF");
    if (!n || !more || t->seen == CLI_WINDOW) return; /* before reset bits are unknown */
    if (!t->seen) t->window = cycle;
    for (int i = 0; i < t->n; i++) {
        t->stream[i].valid[t->seen] = cli_trace_bit(valid, n, i);
        t->stream[i].ready[t->seen] = cli_trace_bit(ready, more, i);
    }
    t->seen++;
}

static int cli_trace_read(cli_bench *b, cli_trace *t) {
    cli_bytes text;
    t->rest = (cli_tile *)cli_npz_alloc(b->c, &b->made, (size_t)b->n_kernel * sizeof *t->rest);
    if (!t->rest || cli_slurp(b->c, cli_in_dir(b, "sim/trace.txt"), &text)) return cli_failed(b->c);
    for (const char *p = text.data; *p && !cli_failed(b->c);
        p += strcspn(p, "\n"), p += *p == '\n') {
        cli_tile x = { 0, 0, 0, 0, 0 };
        char is, port[32];
        int number, kernel;
        if (strchr("OIP", *p) && sscanf(p, "%c %d %d %31s", &is, &number, &kernel, port) == 4
            && kernel >= 0 && kernel < b->n_kernel)
            cli_trace_stream(b->c, t, is, number, kernel, port);
        else if (*p == 'K'
            && sscanf(p, "K %d %lld %lld %lld %lld %lld", &number, &x.first, &x.last, &x.busy,
                   &x.starved, &x.blocked)
                == 6
            && number >= 0 && number < t->n)
            cli_trace_tile(b->c, &t->stream[number], &x);
        else if (*p == 'T' && sscanf(p, "T %d %lld %lld", &number, &x.first, &x.last) == 3
            && number >= 0 && number < t->n)
            cli_trace_tile(b->c, &t->stream[number], &x);
        else if (*p == 'R'
            && sscanf(p, "R %d %lld %lld %lld", &number, &x.busy, &x.starved, &x.blocked) == 4
            && number >= 0 && number < b->n_kernel)
            t->rest[number] = x;
        else if (*p == 'W')
            cli_trace_cycle(t, p);
        else if (*p == 'B')
            t->begin = strtoll(p + 1, NULL, 10) - 1;
    }
    free(text.data);
    return cli_failed(b->c);
}

static void cli_trace_free(cli_trace *t) {
    for (int i = 0; i < t->n; i++) free(t->stream[i].tile);
    free(t->stream);
}

/* Tile n of a kernel's inputs: from the first beat on any of its ports to the last one. */
static cli_tile cli_trace_input(const cli_trace *t, int kernel, size_t n) {
    cli_tile all = { 0, 0, 0, 0, 0 };
    int some = 0;
    for (int i = 0; i < t->n; i++) {
        const cli_stream *s = &t->stream[i];
        if (s->is != 'I' || s->kernel != kernel || n >= s->n) continue;
        if (!some || s->tile[n].first < all.first) all.first = s->tile[n].first;
        if (!some || s->tile[n].last > all.last) all.last = s->tile[n].last;
        some = 1;
    }
    return all;
}

static void cli_trace_tokens(cli_bench *b, const cli_trace *t, const cli_stream *s, cli_out *o) {
    cli_cursor at;
    char line[400];
    memset(&at, 0, sizeof at);
    for (size_t n = 0; n < s->n && !at.done; n++) {
        const cli_tile *y = &s->tile[n];
        cli_tile x = cli_trace_input(t, s->kernel, n);
        snprintf(line, sizeof line,
            "{\"kernel\":\"%.99s\",\"frame\":%lld,\"iteration\":%lld,\"token\":%lld,\"begin\":%lld,"
            "\"end\":%lld,\"load\":%lld,\"compute\":%lld,\"store\":%lld,\"starved\":%lld,"
            "\"blocked\":%lld}\n",
            b->kernel[s->kernel].name, (long long)at.frame, (long long)at.iteration,
            (long long)at.beat, x.first - t->begin, y->last - t->begin, x.last - x.first + 1,
            y->busy, y->last - y->first + 1, y->starved, y->blocked);
        cli_out_text(o, line);
        if (++at.beat == b->frame[at.frame].tokens) cli_cursor_next(b, &at);
    }
    const cli_tile *r = &t->rest[s->kernel];
    snprintf(line, sizeof line,
        "{\"kernel\":\"%.99s\",\"rest\":true,\"compute\":%lld,\"starved\":%lld,\"blocked\":%lld}\n",
        b->kernel[s->kernel].name, r->busy, r->starved, r->blocked);
    cli_out_text(o, line);
}

/* A tile's tokens are passed: frames in flight share tiles, unless there is a single iteration. */
static void cli_trace_passes(const cli_bench *b, cli_cursor *at, int64_t tile) {
    const int64_t iteration = at->iteration, group = at->group;
    for (at->beat += tile; !at->done && at->beat >= b->frame[at->frame].tokens;) {
        const int64_t more = at->beat - b->frame[at->frame].tokens;
        cli_cursor_next(b, at);
        at->beat = b->iterations > 1 && at->iteration == iteration && at->group == group ? more : 0;
    }
}

static void cli_trace_banks(cli_bench *b, const cli_trace *t, const cli_stream *s, cli_out *o) {
    char line[400];
    const int64_t tile = b->kernel[s->kernel].tile;
    cli_cursor at;
    memset(&at, 0, sizeof at);
    for (size_t n = 0; n < s->n && !at.done; n++) {
        const cli_tile *x = &s->tile[n];
        snprintf(line, sizeof line,
            "{\"kernel\":\"%.99s\",\"memory\":\"%s\",\"frame\":%lld,\"iteration\":%lld,\"begin\":%"
            "lld,\"end\":%lld,\"load\":%lld}\n",
            b->kernel[s->kernel].name, s->port,
            (long long)(tile ? at.frame : (int64_t)n / b->iterations * b->group),
            (long long)(tile ? at.iteration : (int64_t)n % b->iterations), x->first - t->begin,
            x->last - t->begin, x->last - x->first + 1);
        cli_out_text(o, line);
        if (tile) cli_trace_passes(b, &at, tile);
    }
}

static void cli_trace_window(
    const cli_bench *b, const cli_trace *t, const cli_stream *s, cli_out *o) {
    char line[400];
    snprintf(line, sizeof line,
        "{\"kernel\":\"%.63s\",\"stream\":\"%s\",\"from\":%lld,\"valid\":\"%s\",\"ready\":\"%s\"}"
        "\n",
        b->kernel[s->kernel].name, s->port, t->window - t->begin, s->valid, s->ready);
    cli_out_text(o, line);
}

static int cli_trace_write(cli_bench *b, const cli_trace *t, const char *path) {
    cli_out o;
    cli_out_open(b->c, &o, path);
    for (int k = 0; k < b->n_kernel; k++)
        for (int i = 0; i < t->n; i++)
            if (t->stream[i].kernel == k) {
                if (t->stream[i].is == 'O') cli_trace_tokens(b, t, &t->stream[i], &o);
                if (t->stream[i].is == 'P') cli_trace_banks(b, t, &t->stream[i], &o);
                if (t->seen) cli_trace_window(b, t, &t->stream[i], &o);
            }
    return cli_out_close(b->c, &o);
}

static int cli_sim_trace(cli_bench *b) {
    cli_trace t;
    memset(&t, 0, sizeof t);
    if (!cli_trace_read(b, &t) && !cli_trace_write(b, &t, cli_in_dir(b, "sim/trace.jsonl"))
        && !b->for_people)
        cli_trace_write(b, &t, NULL);
    cli_trace_free(&t);
    return cli_failed(b->c);
}
