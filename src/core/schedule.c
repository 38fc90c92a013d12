/* schedule: when things happen in a core: tokens, and the streams that they are on.
 *
 * in:  a core (mlo_core), folded.
 * out: of every token at every element, when its beats come and go; what comes of it is in
 *     predict.c.
 *
 * Every element handles the same tokens in the same order. It takes its next token as soon as it is
 * known when that token's beats arrive, and fires (schedule_fire.c, and a file for each kind,
 * flow_*.c) when the receiver has room for its result; that says when the first and last beat are
 * taken and leave. So it is the dataflow graph run token by token, with its FIFOs as deep as they
 * are. Where it matters which beats of a token that waits go and which stay, a beat is asked for by
 * itself (schedule_beat.c); else it is on the straight line between the token's first and last one.
 * Parameters come as memory gives them (schedule_memory.c).
 *
 * invariant: no number comes from a simulation, which takes as many cycles, but for 1 %: mostly a
 *      few, as a beat may not be where the straight line has it, and two readers that ask in the
 *      same cycle may be served in another order.
 * example: BERT with 32 tokens and two frames in flight: the interval is 1.00 x T x the busiest
 *     kernel's cycles per token.
 * cost: O(tokens x iterations x elements), and heads for attention; bursts; FIFOs' tokens, where
 *     they are followed. Cycle 0 is the first input beat.
 */
enum { MLO_ROWS_KEPT = 32, MLO_READS_KEPT = 64, MLO_TILES_LEFT = 32 };

/* A time that depends on what has not been walked. */
#define MLO_NOT_YET (-1)

/* Per kernel: cycles in which its multipliers (or lanes) work, in which it waits for parameters,
 * for input, for its output. */
typedef struct {
    int64_t busy, parameters, input, blocked;
} mlo_spent;

/* spent: of each element; peak: the most beats that each edge's FIFO holds, and, at n_edge, that
 * of the feedback (where it was asked for). */
typedef struct {
    int64_t cycles, interval, *frame_done, *peak;
    mlo_spent *spent;
} mlo_prediction;

/* Of a token at an element: when its first and last input beat are taken, output beat leave; and
 * two moments inside: when it is worked on last (the root of a norm begins; attention's second row
 * is in; a pipeline begins with its first beat), when the next stage begins (a norm's lanes;
 * attention takes the third row; a pipeline would take its last beat, if it had room). final: when
 * the last of a token's norms goes to the lanes. soon, ideal: when its first and last beat could
 * leave, if all behind it had room; busy: cycles of work; waited: for parameters. */
typedef struct {
    int64_t in[2], out[2], work, next, final, soon, ideal, busy, waited;
} mlo_token;

/* Beats of a token at a port. */
static int64_t mlo_port_beats(mlo_port p) { return p.channels / p.lanes; }

/* Beats of a token that leaves an element, and how long one is on its way through its pipeline. A
 * split deals out what it takes. */
static int64_t mlo_beats_out(const mlo_element *e) {
    return (e->kernel ? e->unit.out.channels : mlo_last_dim(&e->site.in[0])) / e->unit.out.lanes;
}
static int64_t mlo_pipeline(const mlo_element *e) { return e->kernel ? e->unit.latency : 1; }

static int mlo_edge_readers(const mlo_core *c, const mlo_edge *e) {
    int n = 0;
    for (int k = 0; k < c->n_edge; k++)
        n += c->edge[k].from == e->from && c->edge[k].from_port == e->from_port;
    return n;
}

/* What an edge's beats are at its two ends, how long they take, how many wait between. up beats
 * become down beats; fork: cycles to the FIFO; back: of a gap, to the producer; span: from a
 * token's first beat to its last at the producer, if the consumer takes a beat a cycle. */
typedef struct {
    int64_t beats_from, beats_to, up, down, fork, fifo, delay, held, back, span;
} mlo_link;

/* Does the edge end at an element that waits for another stream, too? Both wait in skids. */
static int mlo_link_joins(const mlo_core *c, const mlo_edge *e) {
    return e->to != MLO_OUTSIDE && c->element[e->to].kernel && c->element[e->to].unit.n_in > 1
        && !c->element[e->to].unit.whole_frame;
}

static mlo_link mlo_link_of(const mlo_core *c, const mlo_edge *e) {
    mlo_link w = { e->channels / e->lanes_from, e->channels / e->lanes_to, 1, 1, 0,
        e->fifo * (e->channels / e->lanes_from), 0, 0, 0, 0 };
    while (w.up * e->lanes_from % e->lanes_to) w.up++;
    w.down = w.up * e->lanes_from / e->lanes_to;
    if (mlo_edge_readers(c, e) > 1) {
        w.fork = 1;
        w.delay++;
        w.back++;
        w.held += 2;
    }
    if (w.fifo) {
        w.delay += w.fifo > 2 ? 2 : 1;
        w.back++;
    }
    w.held = (w.held + w.fifo) * w.beats_to / w.beats_from;
    if (e->lanes_from != e->lanes_to) {
        w.delay++;
        w.back += 2;
        w.held += 3;
    }
    if (mlo_link_joins(c, e)) {
        w.back++;
        w.held += 2;
    }
    w.span = mlo_max(w.beats_from - 1, w.delay + w.beats_to - w.down - w.held + w.back);
    return w;
}

/* What attention keeps of its latest rows: how many groups of keys a row has, and those of all rows
 * before; the scores begin, their last step; softmax's first and last word; division begins; sum
 * ends. */
typedef struct {
    int64_t groups, from, begin, score, first, taken, accept, mix;
} mlo_scored;

/* Who watches a schedule hears of each token that an element works on, from when to when; and of
 * each loading of an element's parameters (then token is -1, and frame the first one of those that
 * use them). */
typedef struct {
    int element;
    int64_t iteration, frame, token, begin, end;
} mlo_moment;
typedef void (*mlo_moment_seen)(void *user, const mlo_moment *what);

/* How far a FIFO has been followed: beats that came, the last of them when; beats that left. */
typedef struct {
    int64_t pushed, at, popped;
} mlo_followed;

/* A reader of memory (mlo_axi_reader, and what deals its beats out): the loader, a matrix in row
 * blocks. Beats are counted from the run's first one on: those asked for (got), those dealt out.
 * unit: how long a burst may be (of large matrices some are taken as one). asks: when it can ask
 * next; waits: the same, if it waits for nothing else. Of the latest bursts and portions (a block,
 * a memory): behind which beat they begin and with which they end; when the first can come, or
 * leave; until when memory is busy with the burst, in cycles x rate; when the portion's last has
 * left. port: its number among those that share memory. */
typedef struct {
    int64_t from, beats, begin, served;
} mlo_burst;
typedef struct {
    int64_t from, beats, begin, when;
} mlo_until;
typedef struct {
    int64_t got, bursts, unit, asks, waits, portions;
    int port;
    mlo_burst burst[MLO_READS_KEPT];
    mlo_until dealt[MLO_READS_KEPT];
} mlo_fetch;

/* A matrix in row blocks: tiles begun, asked for, and whose half before it is known to be free
 * again, and when, by tile; when the half behind it is; when the multipliers are done with the
 * latest pass, and with the one before; when the latest began, which frees a bank. Of the pass
 * that works: when it began, how much later its results come, when it would be over. Beats of a
 * block; where the tile that is asked for lies in the image. Its reader's portions are blocks,
 * which have been passed. */
typedef struct {
    int64_t begun, asked, opened, freed[4], left[MLO_TILES_LEFT], end, before, pass, begin, late,
        ideal, beats, address;
    int works;
    mlo_fetch reader;
    int64_t *tiles; /* [job]: tiles in front of it; [n_job]: of the run */
} mlo_tiling;

/* What a run does, one after the other: `frames` frames of `tokens` tokens go through `iterations`
 * together, an iteration taking one after the other. loads: how often parameters are read for it (0:
 * they are there). In front of it in the run: tokens that were worked on, those of them that went
 * round, and those that came from outside; frames; passes of a frame; loads. */
typedef struct {
    int64_t frames, tokens, iterations, loads;
    int64_t begin, round, outside, frame, pass, load;
} mlo_job;

static int64_t mlo_job_turn(const mlo_job *j) { return j->frames * j->tokens; }
static int64_t mlo_job_tokens(const mlo_job *j) { return mlo_job_turn(j) * j->iterations; }

/* What is known of a run so far. */
typedef struct {
    const mlo_core *c;
    const struct mlo_flow_verbs *const *flows; /* [mlo_flow] */
    const mlo_job *job;
    int64_t n_job, total, mask; /* tokens of the run; of the ring, less one */
    /* [element][token & mask]; row n_element: the loop's way in */
    mlo_token *ring;
    int64_t fired[MLO_CORE_MOST + 1]; /* tokens handled */
    /* tokens whose waits are added up */
    int64_t settled[MLO_CORE_MOST];
    /* tokens whose way in is known, before they are handled; and to a norm's lanes */
    int64_t known[MLO_CORE_MOST], lanes[MLO_CORE_MOST];
    mlo_link way[2 * MLO_CORE_MOST]; /* of each edge */
    int64_t span[MLO_CORE_MOST]; /* of each element: the longest way's */
    /* of each element: pipelines one after the other from it on */
    int chain[MLO_CORE_MOST];
    /* edges by consumer, and by producer */
    int order[2][2 * MLO_CORE_MOST], begin[2][MLO_CORE_MOST + 2];
    int free; /* 1: receivers have room without end */
    /* the loader: memory after memory, iteration after iteration; banks in turn */
    int n_memory, first_memory[MLO_CORE_MOST + 1];
    int64_t beats[MLO_CORE_MOST * MLO_UNIT_MEMORIES];
    char resident[MLO_CORE_MOST * MLO_UNIT_MEMORIES];
    int64_t loads, loaded; /* iterations of the run; memories dealt out */
    /* what it asks for next: of which load, which memory, which beat */
    mlo_fetch loader;
    int64_t load, memory, beat;
    /* [load % kept][memory]: when it is there; [memory][load & 3]; [memory]: loads begun */
    int64_t *ready, kept, (*freed)[4], *begun;
    /* each edge's FIFO; at n_edge the feedback */
    mlo_followed followed[2 * MLO_CORE_MOST + 1];
    mlo_scored row[MLO_CORE_MOST][MLO_ROWS_KEPT];
    int64_t rows[MLO_CORE_MOST], query[MLO_CORE_MOST], softmax[MLO_CORE_MOST];
    /* frames that are through; when keys and values of frame & 3 were free again */
    int64_t frames_freed[MLO_CORE_MOST], frame_freed[MLO_CORE_MOST][2][4];
    mlo_tiling tiling[MLO_CORE_MOST];
    /* do readers share memory (row blocks)? the port of the latest request, and when it was */
    int shared, turn;
    int64_t asked;
    /* until when memory is busy, in cycles x rate; when it gave the last beat */
    int64_t served, given;
    /* requests are heard until now; the next one (without row blocks all are) */
    int64_t now, next;
    /* beats of the run, in each FIFO */
    mlo_prediction *p;
    int64_t follows;
    mlo_moment_seen seen;
    void *user;
} mlo_schedule;

/* ---- tokens --------------------------------------------------------------- */

/* The job that token n is of. */
static const mlo_job *mlo_job_of(const mlo_schedule *s, int64_t n) {
    const mlo_job *first = s->job, *last = first + s->n_job - 1;
    const mlo_job *j = first + mlo_min(n / mlo_job_tokens(first), s->n_job - 1);
    while (j < last && j[1].begin <= n) j++;
    while (j > first && j->begin > n) j--;
    return j;
}

/* Where a token stands. pass: frames that are worked on in front of it, one in each iteration. */
typedef struct {
    const mlo_job *job;
    int64_t iteration, frame, at, pass, load;
    int first; /* 1: parameters change in front of it */
} mlo_place;

/* Does the element (or the loop's way in) handle tokens of the memory, which are counted by themselves? */
static int mlo_is_side(const mlo_schedule *s, int i) {
    return i != MLO_OUTSIDE && i < s->c->n_element && s->c->element[i].side;
}

/* Tokens of a run at an element. (All frames are of the longest length.) */
static int64_t mlo_total(const mlo_schedule *s, int i) {
    return mlo_is_side(s, i) ? s->total / s->c->chunk * s->c->element[i].site.chunk : s->total;
}

/* Where an element's token n stands. */
static mlo_place mlo_place_of(const mlo_schedule *s, int i, int64_t n) {
    mlo_place p;
    const int64_t tokens = mlo_is_side(s, i) ? s->c->element[i].site.chunk : s->c->chunk;
    const int64_t own = n / tokens * s->c->chunk;
    p.job = mlo_job_of(s, mlo_is_side(s, i) ? own : n);
    const int64_t rest = (mlo_is_side(s, i) ? own : n) - p.job->begin;
    const int64_t pass = rest / p.job->tokens;
    p.iteration = pass / p.job->frames;
    p.frame = pass % p.job->frames;
    p.at = mlo_is_side(s, i) ? n % tokens : rest % p.job->tokens;
    p.pass = p.job->pass + pass;
    p.load = p.job->load + p.iteration;
    p.first = p.job->loads ? !p.frame && !p.at : !n;
    return p;
}

/* The first token of the frame that token n is of, in its iteration. */
static int64_t mlo_frame_begin(const mlo_schedule *s, int64_t n) {
    const mlo_job *j = mlo_job_of(s, n);
    return n - (n - j->begin) % j->tokens;
}

static mlo_token *mlo_token_of(const mlo_schedule *s, int element, int64_t n) {
    return &s->ring[(element == MLO_OUTSIDE ? s->c->n_element : element) * (s->mask + 1)
        + (n & s->mask)];
}
static int64_t mlo_fired(const mlo_schedule *s, int element) {
    return s->fired[element == MLO_OUTSIDE ? s->c->n_element : element];
}

/* Beat `at` of `beats` between the first and the last; of those that are taken: a gap is mostly
 * behind the first one. */
static int64_t mlo_beat_at(const int64_t when[2], int64_t at, int64_t beats) {
    return beats > 1 ? when[0] + (when[1] - when[0]) * at / (beats - 1) : when[1];
}
static int64_t mlo_beat_by(const int64_t when[2], int64_t at, int64_t beats) {
    return beats > 1 ? when[0] + mlo_parts((when[1] - when[0]) * at, beats - 1) : when[1];
}

/* What a token meets at an element: when its beats, parameters, frames come; when there is room. */
typedef struct {
    int64_t n, arrives[2], room[2], ready[MLO_UNIT_MEMORIES], frame[2];
    mlo_place at;
} mlo_meet;

/* ---- flows ---------------------------------------------------------------- */

/* How tokens go through an element of a kind: each kind has a file of its own, flow_*.c. Beats x
 * are counted from the run's first token on, `beats` to a token; beats `at` from their token's
 * first one on. All times are cycles; any may be MLO_NOT_YET, where a verb says `if known`. */
typedef struct mlo_flow_verbs {
    /* when there is room for beat x of those that come next, if known; 0: tokens come in whole */
    int64_t (*opens)(const mlo_schedule *s, int i, int64_t x, int64_t beats);
    /* when the next token's first beat is taken, whatever comes, if known */
    int64_t (*accepts)(const mlo_schedule *s, int i);
    /* when edge e's beat x is taken, if known; x >= 0 */
    int64_t (*takes)(const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t beats);
    /* when beat `at` of a token that was taken is in, as far as parameters decide */
    int64_t (*enters)(const mlo_unit *u, const mlo_token *t, int64_t at);
    /* when beat x of a token that was taken goes in, as far as what is behind decides, if known */
    int64_t (*resumes)(const mlo_schedule *s, int i, int64_t x, int64_t beats);
    /* when beat `at` of token n could leave, if all behind the element had room */
    int64_t (*makes)(const mlo_schedule *s, int i, int64_t n, int64_t at);
    /* a token comes while others' results wait; `open`: its first beat may. NULL: none does */
    void (*admits)(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t, int64_t open);
    /* all that can be done ahead of the next token that leaves; 0: nothing */
    int (*prepares)(mlo_schedule *s, int i);
    /* is all known of token n that fires() needs, but for room? */
    int (*is_ready)(const mlo_schedule *s, int i, int64_t n);
    /* the token goes through */
    void (*fires)(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t);
    /* results of token n left later than fires() said. NULL: that changes nothing inside */
    void (*held)(mlo_schedule *s, int i, int64_t n);
    /* from when to when a token is worked on; the one before left at `before` */
    void (*works)(const mlo_unit *u, const mlo_token *t, int64_t before, int64_t when[2]);
    int passes; /* 1: tokens are worked on several at a time, and wait so */
} mlo_flow_verbs;

static const mlo_flow_verbs *mlo_flow_of(const mlo_schedule *s, int i) {
    return s->flows[s->c->element[i].unit.flow];
}

/* Does the edge bring an element whole frames, beside its tokens? (keys and values) */
static int mlo_edge_is_frame(const mlo_core *c, const mlo_edge *e) {
    return e->to != MLO_OUTSIDE && c->element[e->to].unit.whole_frame && e->to_port;
}

/* ---- edges ---------------------------------------------------------------- */

/* When beat `at` of an edge's token n leaves the producer. A split's outputs have their parts of
 * its token. */
static int64_t mlo_edge_leaves(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t at) {
    const mlo_core *c = s->c;
    int64_t from = 0, all = e->channels / e->lanes_from;
    if (e->from != MLO_OUTSIDE && !c->element[e->from].kernel) {
        from = e->from_port * all;
        all = mlo_last_dim(&c->element[e->from].site.in[0]) / e->lanes_from;
    }
    return mlo_beat_at(mlo_token_of(s, e->from, n)->out, from + at, all);
}

/* When an edge's first and last beat of token n reach the consumer. */
static void mlo_edge_arrives(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t when[2]) {
    const mlo_link w = s->way[e - s->c->edge];
    when[0] = mlo_edge_leaves(s, e, n, w.up - 1) + w.delay;
    when[1] = mlo_max(mlo_edge_leaves(s, e, n, w.beats_from - 1) + w.delay + w.down - 1,
        when[0] + w.beats_to - 1);
}
