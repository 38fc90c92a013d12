/* probe: --probe: compares every kernel's stream with the values of host/core.onnx.
 *
 * in:  sim/probe.txt: every output beat of every kernel.
 * out: the first kernel, iteration, token and channel that went wrong.
 */

/* Golden values of one kernel, one per frame and iteration. user of the watcher; `frame` comes
 * first: cli_sim_golden sets it. */
typedef struct {
    int64_t frame;
    cli_bench *b;
    mlo_array *value;
} cli_golden;

static mlo_array *cli_golden_at(cli_golden *g, int kernel, int64_t frame, int64_t iteration) {
    return &g->value[((int64_t)kernel * g->b->n + frame) * g->b->iterations + iteration];
}

static int cli_golden_see(void *user, const char *name, int64_t iteration, const mlo_array *a) {
    cli_golden *g = (cli_golden *)user;
    for (int k = 0; k < g->b->n_kernel; k++) {
        if (iteration < 0 || iteration >= g->b->iterations || strcmp(g->b->kernel[k].value, name))
            continue;
        mlo_array *to = cli_golden_at(g, k, g->frame, iteration);
        if (to->data) continue;
        if (cli_sim_array(g->b, to, g->b->kernel[k].value, a->dtype, a->rank, a->dims)) return 1;
        memcpy(to->data, a->data, cli_array_bytes(a));
    }
    return 0;
}

/* Where one kernel's stream stands: groups of frames, in them iterations, in them frames. */
typedef struct {
    int64_t group; /* its first frame */
    int64_t iteration;
    int64_t frame;
    int64_t beat; /* of that frame */
    int wrong; /* 1: a word was */
    int done; /* 1: all words came */
    char what[160]; /* is wrong */
    int64_t order; /* when it was: grows with time as the data flow has it */
} cli_cursor;

static void cli_cursor_next(const cli_bench *b, cli_cursor *at) {
    int64_t last = at->group + b->group < b->n ? at->group + b->group : b->n;
    at->beat = 0;
    if (++at->frame < last) return;
    at->frame = at->group;
    if (++at->iteration < b->iterations) return;
    at->iteration = 0;
    at->group += b->group;
    at->frame = at->group;
    at->done = at->group >= b->n;
}

/* A number that grows with time as the data flow has it: group, iteration, frame, then token. */
static int64_t cli_cursor_order(const cli_bench *b, const cli_cursor *at, int64_t token) {
    return ((at->group * b->iterations + at->iteration * b->group + (at->frame - at->group))
               * (b->tokens + 1))
        + token;
}

static void cli_probe_beat(cli_golden *g, int kernel, cli_cursor *at, const char *hex) {
    cli_bench *b = g->b;
    const cli_kernel *k = &b->kernel[kernel];
    if (at->wrong) return;
    if (at->done) {
        at->wrong = 1;
        at->order = INT64_MAX / 2;
        snprintf(at->what, sizeof at->what, "kernel %s: a surplus word", k->name);
        return;
    }
    const mlo_array *a = cli_golden_at(g, kernel, at->frame, at->iteration);
    size_t n = a->data ? cli_count(a) : 0, first = (size_t)at->beat * (size_t)k->lanes;
    for (int lane = 0; lane < k->lanes && first + (size_t)lane < n; lane++) {
        int bad = 0;
        int64_t got = cli_lane(hex, strlen(hex), lane, k->bits, k->bits, &bad);
        int64_t expected = (int64_t)cli_element(a, first + (size_t)lane);
        if (!bad && got == expected) continue;
        int64_t token = (int64_t)(first + (size_t)lane) / k->channels;
        int64_t channel = (int64_t)(first + (size_t)lane) % k->channels;
        at->wrong = 1;
        at->order = cli_cursor_order(b, at, token);
        if (bad)
            snprintf(at->what, sizeof at->what,
                "kernel %s, frame %lld, iteration %lld, token %lld, channel %lld: expected %lld, "
                "got x",
                k->name, (long long)at->frame, (long long)at->iteration, (long long)token,
                (long long)channel, (long long)expected);
        else
            snprintf(at->what, sizeof at->what,
                "kernel %s, frame %lld, iteration %lld, token %lld, channel %lld: expected %lld, "
                "got %lld",
                k->name, (long long)at->frame, (long long)at->iteration, (long long)token,
                (long long)channel, (long long)expected, (long long)got);
        return;
    }
    if ((size_t)++at->beat * (size_t)k->lanes >= n) cli_cursor_next(b, at);
}

/* The first kernel that went wrong, in the order of time and then of dataflow. "" when all streams
 * are right. */
static int cli_sim_probe(cli_bench *b, cli_golden *g, char *what, size_t room) {
    cli_bytes text;
    cli_cursor *at = (cli_cursor *)cli_npz_alloc(b->c, &b->made, (size_t)b->n_kernel * sizeof *at);
    int best = -1;
    *what = 0;
    if (!at || cli_slurp(b->c, cli_in_dir(b, "sim/probe.txt"), &text)) return cli_failed(b->c);
    for (char *p = text.data, *next; *p; p = next) {
        next = p + strcspn(p, "\n");
        if (!*next) break; /* a line cut off */
        *next++ = 0;
        char *hex = strchr(p, ' ');
        if (!hex) continue;
        *hex++ = 0;
        for (int k = 0; k < b->n_kernel; k++)
            if (!strcmp(b->kernel[k].name, p)) cli_probe_beat(g, k, &at[k], hex);
    }
    for (int k = 0; k < b->n_kernel; k++)
        if (at[k].wrong && (best < 0 || at[k].order < at[best].order)) best = k;
    if (best >= 0)
        snprintf(what, room, "%s", at[best].what);
    else
        for (int k = 0; k < b->n_kernel && best < 0; k++)
            if (!at[k].done && (b->fails || !b->passes)) {
                best = k;
                snprintf(what, room,
                    "kernel %s: all words right until it stopped in frame %lld, iteration %lld, "
                    "token %lld",
                    b->kernel[k].name, (long long)at[k].frame, (long long)at[k].iteration,
                    (long long)(at[k].beat * b->kernel[k].lanes / b->kernel[k].channels));
            }
    free(text.data);
    return 0;
}
