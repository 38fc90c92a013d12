/* wait: finds out why nothing moved, from what the bench said of every stream (emit/bench.c: MLO
 * EDGE, LOOP, PARAM, MEMORY).
 *
 * in:  the run's log.
 * out: one line: who waits for whom, down to the cause, and what helps.
 *
 * Nodes are kernels, splits, both halves of the loop control, the core's input and output, and the
 * world outside. Each node, from the sink on, is asked what it waits for: a neighbour that does not
 * take its output, an input that does not come, or parameters. The walk ends outside, or at a node
 * where it has been: a deadlock; a full FIFO on the circle is too shallow.
 *
 * example: attention_0 waits for data from split_0; split_0 waits for room in FIFO attention_0_in0,
 *     full with 528 beats; attention_0: a deadlock
 */

typedef struct {
    char from[64]; /* the producer's node */
    char to[64]; /* the consumer's node */
    char fifo[64]; /* its name */
    int begin_valid; /* the handshake at the producer */
    int begin_ready;
    int end_valid; /* the handshake at the consumer */
    int end_ready;
    long long level; /* beats in the FIFO */
    long long depth; /* beats; 0: there is no FIFO */
} cli_edge;
typedef struct {
    char node[64];
    char port[64]; /* of parameters */
    int valid;
    int ready;
} cli_port;
typedef struct {
    cli_edge edge[256];
    cli_port port[256];
    int n_edge;
    int n_port;
    int feedback; /* 1: the loop takes what came round; 0: what comes from outside */
    int ar_valid; /* the handshake of read requests */
    int ar_ready;
    int owing; /* 1: beats that were asked for are to come */
    int r_valid; /* the handshake of beats of parameters */
    int r_ready;
    int memory; /* 1: the five before it are known */
} cli_standstill;

/* The next step from a node. */
typedef struct {
    char node[64]; /* "": here is the cause */
    char why[200]; /* what it waits for */
    const cli_edge *full; /* the edge that has no room, NULL for none */
} cli_step;

/* X counts as low. */
static int cli_bit(char ch) { return ch == '1'; }

static void cli_wait_line(cli_standstill *s, const char *p) {
    char bit[5];
    cli_edge *e = &s->edge[s->n_edge];
    cli_port *k = &s->port[s->n_port];
    if (s->n_edge < 255
        && sscanf(p, "MLO EDGE %63s %63s %63s %c %c %lld %lld %c %c", e->from, e->to, e->fifo,
               &bit[0], &bit[1], &e->level, &e->depth, &bit[2], &bit[3])
            == 9) {
        e->begin_valid = cli_bit(bit[0]);
        e->begin_ready = cli_bit(bit[1]);
        e->end_valid = cli_bit(bit[2]);
        e->end_ready = cli_bit(bit[3]);
        s->n_edge++;
    } else if (s->n_port < 255
        && sscanf(p, "MLO PARAM %63s %63s %c %c", k->node, k->port, &bit[0], &bit[1]) == 4) {
        k->valid = cli_bit(bit[0]);
        k->ready = cli_bit(bit[1]);
        s->n_port++;
    } else if (sscanf(p, "MLO LOOP %c", &bit[0]) == 1)
        s->feedback = cli_bit(bit[0]);
    else if (sscanf(p, "MLO MEMORY %c %c %c %c %c", &bit[0], &bit[1], &bit[2], &bit[3], &bit[4])
        == 5) {
        s->ar_valid = cli_bit(bit[0]);
        s->ar_ready = cli_bit(bit[1]);
        s->owing = cli_bit(bit[2]);
        s->r_valid = cli_bit(bit[3]);
        s->r_ready = cli_bit(bit[4]);
        s->memory = 1;
    }
}

/* Where it goes on, and why. 0, without a node: here is the cause. */
static int cli_step_to(
    cli_step *step, const char *node, const cli_edge *full, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(step->why, sizeof step->why, format, args);
    va_end(args);
    snprintf(step->node, sizeof step->node, "%s", node ? node : "");
    step->full = full;
    return node != NULL;
}

/* Beats of parameters wait for a kernel whose banks are full: it has to go on first. Else memory
 * is the end of the way. */
static int cli_wait_loader(const cli_standstill *s, cli_step *step) {
    for (int i = 0; i < s->n_port; i++)
        if (s->port[i].valid && !s->port[i].ready)
            return cli_step_to(step, s->port[i].node, NULL,
                "the parameter loader waits until %s frees a bank of %s", s->port[i].node,
                s->port[i].port);
    if (s->ar_valid && !s->ar_ready)
        return cli_step_to(step, NULL, NULL,
            "the memory takes no read request: m_axi_arready stays low; look at the memory behind "
            "m_axi");
    if (s->owing && !s->r_valid)
        return cli_step_to(step, NULL, NULL,
            "the memory took a read request and does not answer: m_axi_rvalid stays low; look at "
            "the memory behind m_axi, and at base");
    return cli_step_to(
        step, NULL, NULL, "no parameters are read: control bit 0 (enable) starts it");
}

/* What a node waits for. 0: nothing further; why says what is wrong with it. */
static int cli_wait_for(const cli_standstill *s, const char *node, cli_step *step) {
    const cli_edge *missing = NULL;
    if (!strcmp(node, "memory")) return cli_wait_loader(s, step);
    if (!strcmp(node, "sink"))
        return cli_step_to(step, NULL, NULL,
            "nobody takes the output: m_axis_tready stays low; look at what is behind m_axis");
    if (strstr(node, "source"))
        return cli_step_to(step, NULL, NULL,
            "%s brings no more: the core waits for input; is the frame complete, with tlast?",
            !strcmp(node, "source") ? "s_axis" : "s1_axis");
    for (int i = 0; i < s->n_edge; i++) {
        const cli_edge *e = &s->edge[i];
        if (strcmp(e->from, node) || !e->begin_valid || e->begin_ready) continue;
        if (e->depth && e->level >= e->depth)
            return cli_step_to(step, e->to, e,
                "%s waits for room in FIFO %s, full with %lld beats, in front of %s", node, e->fifo,
                e->depth, e->to);
        return cli_step_to(step, e->to, NULL, "%s waits until %s takes its output", node, e->to);
    }
    for (int i = 0; i < s->n_edge; i++) {
        const cli_edge *e = &s->edge[i];
        if (strcmp(e->to, node) || e->end_valid) continue;
        /* it looks at one of its two inputs */
        if (!strcmp(node, "loop_in") && (strcmp(e->from, "loop_out") == 0) != s->feedback) continue;
        if (!missing || (e->end_ready && !missing->end_ready)) missing = e;
    }
    if (missing)
        return cli_step_to(
            step, missing->from, NULL, "%s waits for data from %s", node, missing->from);
    for (int i = 0; i < s->n_port; i++)
        if (!strcmp(s->port[i].node, node) && s->port[i].ready && !s->port[i].valid)
            return cli_step_to(
                step, "memory", NULL, "%s waits for parameters (%s)", node, s->port[i].port);
    return cli_step_to(step, NULL, NULL,
        "%s has input, parameters and room, and does nothing: a fault in it", node);
}

/* The way from the sink to the cause; only its last steps are told. */
static void cli_wait_way(const cli_standstill *s, char *to, size_t room) {
    enum { MOST = 64 };
    static cli_step way[MOST];
    int n = 0, from = -1, more = 1;
    const cli_edge *full = NULL;
    const char *node = "sink";
    for (int i = 0; i < s->n_edge; i++)
        if (!strcmp(s->edge[i].to, "sink") && !s->edge[i].end_valid) node = s->edge[i].from;
    while (more && n < MOST && from < 0) {
        more = cli_wait_for(s, node, &way[n]);
        node = way[n++].node;
        /* been there: round it goes */
        for (int i = 0; more && i + 1 < n && from < 0; i++)
            if (!strcmp(way[i].node, node)) from = i + 1;
    }
    for (int i = from < 0 ? 0 : from; from >= 0 && i < n; i++)
        if (way[i].full) full = way[i].full;
    size_t at = 0;
    for (int i = from >= 0 ? from : n > 3 ? n - 3 : 0; i < n && at < room; i++)
        at += (size_t)snprintf(to + at, room - at, "%s%s", at ? "; " : "", way[i].why);
    if (from >= 0 && at < room) {
        if (full)
            snprintf(to + at, room - at,
                ": a deadlock; FIFO %s of %lld beats is too shallow: fold and emit anew, and leave "
                "the depths (mlo.fifo.*) to fold",
                full->fifo, full->depth);
        else
            snprintf(to + at, room - at, ": a deadlock without a full FIFO: a bug in mlo");
    }
}

/* Why nothing moved, of a log that holds the bench's lines; "" of another one. */
static void cli_wait_cause(const char *log, char *to, size_t room) {
    static cli_standstill s;
    memset(&s, 0, sizeof s);
    for (const char *p = log; *p; p += strcspn(p, "\n"), p += *p != 0)
        if (!strncmp(p, "MLO ", 4)) cli_wait_line(&s, p);
    *to = 0;
    if (s.n_edge && s.memory) cli_wait_way(&s, to, room);
}
