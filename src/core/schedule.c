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
/* Cycles: from a job's last beat out to the first one in of a job that waits for it; of a beat through mlo_job;
 * from a job's last beat in to the next one's first; of a gap, from the body to the door; from the body's end to its
 * beginning. Beats that wait between the door and the body, beside two tokens. */
enum {
    MLO_JOB_FOLLOWS = 2,
    MLO_JOB_PASSES = 1,
    MLO_JOB_TURNS = 4,
    MLO_JOB_BACK = 4,
    MLO_LOOP_ROUND = 4
};
enum { MLO_JOB_HELD = 8 };

/* Requests under way that share memory, at most (mlo_axi_share) */
enum { MLO_REQUESTS_MOST = 32 };

/* Of a memory that is read once: its bank is every iteration's. */
enum { MLO_ONE_FOR_ALL = 2 };

enum { MLO_ROWS_KEPT = 32, MLO_READS_KEPT = 64, MLO_TILES_LEFT = 32 };

/* A time that depends on what has not been walked. */
#define MLO_NOT_YET (-1)

/* What a kernel's multipliers (or lanes) do in each cycle of a run. */
typedef struct {
    int64_t busy; /* cycles in which they work */
    int64_t parameters; /* cycles in which they wait for parameters */
    int64_t input; /* cycles in which they wait for input */
    int64_t blocked; /* cycles in which they wait for room at the output */
} mlo_spent;

/* What is foretold of a run. */
typedef struct {
    int64_t cycles; /* of the run */
    int64_t interval; /* cycles per frame */
    int64_t *frame_done; /* [frame]: the cycle in which it is through */
    int64_t *frame_begun; /* [frame]: that in which its first token is */
    /* [edge]: the most beats that its FIFO holds; [n_edge]: the feedback. NULL: nobody asked */
    int64_t *peak;
    mlo_spent *spent; /* [element] */
} mlo_prediction;

/* A token at an element. All but busy and waited are moments: cycles from the run's beginning. */
typedef struct {
    int64_t in[2]; /* its first and its last input beat are taken */
    int64_t out[2]; /* its first and its last output beat leave */

    /* it is worked on last: the root of a norm begins; attention's second row is in; a pipeline
     * begins with its first beat */
    int64_t work;
    /* the next stage begins: a norm's lanes; attention takes the third row; a pipeline would take
     * its last beat, if it had room */
    int64_t next;
    int64_t final; /* the last of its norms goes to the lanes */

    int64_t soon; /* its first beat could leave, if all behind it had room */
    int64_t ideal; /* its last beat could leave, if all behind it had room */

    int64_t busy; /* cycles of work */
    int64_t waited; /* cycles, for parameters */
} mlo_token;

/* Beats of a token at a port. */
static int64_t mlo_port_beats(mlo_port p) { return p.channels / p.lanes; }

/* Bits of a channel on a stream: whole bytes. */
static int mlo_padded(int bits) { return (bits + 7) / 8 * 8; }

/* Where keys and values stay in memory: the keys that attention gets; bits of a beat of those, beats of a row of them
 * there (as mlo_kv_lane has it). */
static const mlo_port *mlo_kv_keys(const mlo_core *c) {
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].unit.told == MLO_JOB_BANK) return &c->element[i].unit.in[1];
    return NULL;
}
static int mlo_kv_step(const mlo_port *keys) { return keys->lanes * mlo_padded(keys->bits); }
static int64_t mlo_kv_row(const mlo_core *c) {
    const mlo_port *k = c->dram ? mlo_kv_keys(c) : NULL;
    const int step = k ? mlo_kv_step(k) : 0;
    const int64_t per = step && step <= c->axi_bits ? c->axi_bits / step : 1;
    return k ? mlo_parts(mlo_port_beats(*k), per) : 0;
}

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

/* What an edge's beats are at its two ends, how long they take, how many wait between. */
typedef struct {
    int64_t beats_from; /* of a token, at the producer */
    int64_t beats_to; /* of a token, at the consumer */
    int64_t up; /* beats of the producer that become `down` beats */
    int64_t down; /* beats of the consumer */

    int64_t fork; /* cycles to the FIFO; 1: there is a fork, with a skid */
    int64_t fifo; /* beats of the producer that it has room for */
    int64_t delay; /* cycles from the producer to the consumer */
    int64_t held; /* beats of the consumer that wait between, at most */
    int joins; /* 1: the consumer waits for another stream, too: there is a skid */
    /* cycles from a token's first beat to its last at the producer, if the consumer takes a beat a
     * cycle */
    int64_t span;
} mlo_link;

/* Does the edge end at an element that waits for another stream, too? Both wait in skids. */
static int mlo_link_joins(const mlo_core *c, const mlo_edge *e) {
    return e->to != MLO_OUTSIDE && c->element[e->to].kernel && c->element[e->to].unit.n_in > 1
        && !c->element[e->to].unit.whole_frame;
}

static int64_t mlo_floor(int64_t a, int64_t b) { return a >= 0 ? a / b : -mlo_parts(-a, b); }

/* Skids of two beats in front of a consumer. */
static int mlo_link_skids(const mlo_link *w) { return (w->up != w->down) + w->joins; }

/* Which beat the consumer has to take before what is behind an edge's fork and FIFO takes beat x, counted from the
 * first token on; below 0: none. A width converter stores all of a group but the last of it, and has a skid, as what
 * waits for another stream does. */
static int64_t mlo_link_requires(const mlo_link *w, int64_t x) {
    return mlo_floor(x + 1 - w->up, w->up) * w->down - 2 * mlo_link_skids(w);
}

/* How many cycles behind the one in which that is taken. */
static int64_t mlo_link_behind(const mlo_link *w, int64_t x) {
    return mlo_link_skids(w) + mlo_max(0, (x + 1) % w->up);
}

/* To the producer, whose beat passes the fork and the FIFO. */
static int64_t mlo_link_back(const mlo_link *w, int64_t x) {
    return w->fork + (w->fifo > 0) + mlo_link_behind(w, x);
}

static mlo_link mlo_link_of(const mlo_core *c, const mlo_edge *e) {
    mlo_link w = { e->channels / e->lanes_from, e->channels / e->lanes_to, 1, 1, 0,
        e->fifo * (e->channels / e->lanes_from), 0, 0, 0, 0 };
    while (w.up * e->lanes_from % e->lanes_to) w.up++;
    w.down = w.up * e->lanes_from / e->lanes_to;
    if (mlo_edge_readers(c, e) > 1) {
        w.fork = 1;
        w.delay++;
    }
    if (w.fifo) w.delay += w.fifo > 2 ? 2 : 1;
    if (e->lanes_from != e->lanes_to) w.delay++;
    w.joins = mlo_link_joins(c, e);
    const int64_t last = w.beats_from - 1 - 2 * w.fork - w.fifo;
    w.held = w.beats_to - w.down - mlo_link_requires(&w, last);
    w.span = mlo_max(
        w.beats_from - 1, w.delay + mlo_link_requires(&w, last) + mlo_link_back(&w, last));
    return w;
}

/* What attention keeps of its latest rows. All but the first two are cycles. */
typedef struct {
    int64_t groups; /* of keys that the row has */
    int64_t from; /* groups of all rows before it */

    int64_t begin; /* its scores begin */
    int64_t score; /* the last step of its scores */
    int64_t first; /* softmax takes its first word */
    int64_t taken; /* softmax takes its last word */
    int64_t accept; /* its division begins */
    int64_t mix; /* its sum ends */
} mlo_scored;

/* What who watches a schedule hears of: a token that an element works on, or a loading of an
 * element's parameters. */
typedef struct {
    int element;
    int64_t iteration;
    int64_t frame; /* of a loading: the first one of those that use the parameters */
    int64_t token; /* -1: it is a loading */
    int64_t begin; /* cycle */
    int64_t end; /* cycle */
} mlo_moment;
typedef void (*mlo_moment_seen)(void *user, const mlo_moment *what);

/* How far a FIFO has been followed. */
typedef struct {
    int64_t pushed; /* beats that came */
    int64_t at; /* the cycle in which the last of them did */
    int64_t popped; /* beats that left */
} mlo_followed;

/* A burst of a reader. Beats are counted from the reader's first one of the run on. */
typedef struct {
    int64_t from; /* the beat behind which it begins */
    int64_t beats; /* the beat with which it ends */
    int64_t begin; /* the cycle from which its first beat can come */
    int64_t served; /* until when memory is busy with it, in cycles x rate */
} mlo_burst;
/* A portion (a block, a memory) that a reader deals out. Beats are counted as in a burst. */
typedef struct {
    int64_t from; /* the beat behind which it begins */
    int64_t beats; /* the beat with which it ends */
    int64_t begin; /* the cycle from which its first beat can leave */
    int64_t when; /* the cycle in which its last beat has left */
} mlo_until;
/* A reader of memory (mlo_axi_reader, and what deals its beats out): the loader, a matrix in row
 * blocks. */
typedef struct {
    int64_t got; /* beats of the run that were asked for */
    int64_t bursts; /* that were asked for */
    int64_t depth; /* beats that its FIFO holds */
    int64_t unit; /* beats of a burst, at most (of large matrices some are taken as one) */
    int64_t asks; /* the cycle from which it can ask next */
    int64_t waits; /* the same, if it waits for nothing but to be heard; else 0 */
    int64_t due; /* then: the cycle from which it asks, whether memory takes requests or not */
    int64_t rests; /* one more than the news when it could not go on; 0: perhaps it can */
    int64_t portions; /* that were dealt out */
    int port; /* its number among those that share memory */
    mlo_burst burst[MLO_READS_KEPT]; /* the latest ones: [number % kept] */
    mlo_until dealt[MLO_READS_KEPT]; /* the latest portions: [number % kept] */
} mlo_fetch;

/* A matrix in row blocks: tiles, and passes over them. Its reader's portions are blocks, which have
 * been passed. */
typedef struct {
    int64_t begun; /* tiles all of whose passes are over */
    int64_t next; /* the first token of the tile behind them */
    int64_t next_of; /* with so many tiles in front, that one among them; 0: it is not known */
    int64_t asked; /* tiles whose parameters are asked for */
    int64_t opened; /* tiles whose half in front is known to be free again */
    int64_t freed[4]; /* [tile & 3]: the cycle from which the half in front that it needs is */
    int64_t left[MLO_TILES_LEFT]; /* [tile % ..]: the cycle in which the half behind is free */

    int64_t end; /* the cycle in which the multipliers are done with the latest pass */
    int64_t before; /* the same, of the pass before it */
    int64_t pass; /* the cycle in which the latest began, which frees a bank */

    int64_t begin; /* the cycle in which the pass that works began */
    int64_t late; /* cycles by which its results come later */
    int64_t ideal; /* the cycle in which it would be over, if its results had room */

    int64_t beats; /* of a block */
    int64_t address; /* the beat of the image at which the tile that is asked for goes on */
    int works; /* 1: a pass works */
    mlo_fetch reader;
    int64_t *tiles; /* [job]: tiles in front of it; [n_job]: of the run */
} mlo_tiling;

/* What a run does, one after the other: some frames go through the iterations together, an
 * iteration taking one after the other. */
typedef struct {
    int64_t frames;
    const mlo_ordered *order; /* [frame]: what a host ordered; NULL: all are whole */
    int64_t turn; /* tokens of all its frames */
    int64_t iterations;
    int64_t loads; /* how often parameters are read for it; 0: they are there */

    /* of the run, in front of this job */
    int64_t begin; /* tokens that were worked on */
    int64_t round; /* tokens of those that went round */
    int64_t outside; /* tokens of those that came from outside */
    int64_t frame; /* frames */
    int64_t pass; /* passes of a frame */
    int64_t load; /* loads */
} mlo_job;

static int64_t mlo_job_turn(const mlo_job *j) { return j->turn; }
static int64_t mlo_job_tokens(const mlo_job *j) { return j->turn * j->iterations; }
/* Of one of its frames: tokens; tokens of its sequence that came with earlier ones, whose keys and values are there. */
static int64_t mlo_job_length(const mlo_job *j, int64_t frame) {
    return j->order ? j->order[frame].tokens : j->turn / j->frames;
}
static int64_t mlo_job_start(const mlo_job *j, int64_t frame) {
    return j->order ? j->order[frame].start : 0;
}

/* The way to memory that readers share: those of a core, or of a loop and what is around it. */
typedef struct {
    int side; /* whose the latest request was: 0 the loop's, 1 the head's or the front's, 2 the tail's */
    int64_t asked; /* the cycle of the latest request */
    int64_t served; /* until when memory is busy, in cycles x rate */
    int64_t given; /* the cycle in which it gave the last beat */
    int64_t now; /* requests are heard until this cycle */
    int64_t next; /* the cycle of the next request (a single reader's are all heard) */
    int64_t requests; /* of the run */
    int64_t news; /* how often something became known that is no burst: of tokens, tiles, banks */
    int64_t
        over[MLO_REQUESTS_MOST]; /* [request % ..]: the cycle in which it was answered in full */
} mlo_bus;

/* What is known of a run so far. */
typedef struct mlo_schedule {
    const mlo_core *c;
    const struct mlo_flow_verbs *const *flows; /* [mlo_flow] */
    mlo_job *job; /* [frame]: as many as there are; those that have not begun may become others */
    int64_t n_job;
    int64_t frames; /* of the run */
    int64_t total; /* tokens of the run */

    int64_t mask; /* tokens of the ring, less one */
    mlo_token *ring; /* [element][token & mask]; row n_element: the loop's way in */
    int64_t fired[MLO_CORE_MOST + 1]; /* tokens handled */
    int64_t door; /* when the last beat of the latest frame from outside was taken there */
    int64_t settled[MLO_CORE_MOST]; /* tokens whose waits are added up */
    int64_t known[MLO_CORE_MOST]; /* tokens whose way in is known, before they are handled */
    int64_t tried[MLO_CORE_MOST]; /* one more than the news with which it could not go on */
    int64_t lanes[MLO_CORE_MOST]; /* tokens whose way to a norm's lanes is known, too */

    mlo_link way[2 * MLO_CORE_MOST]; /* [edge] */
    int64_t span[MLO_CORE_MOST]; /* [element]: the longest way's, cycles */
    int chain[MLO_CORE_MOST]; /* [element]: pipelines one after the other from it on */
    int64_t gap
        [MLO_CORE_MOST]; /* [element]: cycles from a beat that leaves to the next one, at least */
    int order[2][2 * MLO_CORE_MOST]; /* edges by consumer; by producer */
    int begin[2][MLO_CORE_MOST + 2]; /* where in order each consumer's begin; each producer's */
    int free; /* 1: receivers have room without end */

    /* the loader: memory after memory, iteration after iteration; banks in turn */
    int n_memory;
    int first_memory[MLO_CORE_MOST + 1]; /* [element] */
    int64_t beats[MLO_CORE_MEMORIES]; /* [memory]: of a load */
    char
        resident[MLO_CORE_MEMORIES]; /* [memory]: 1: all iterations'; MLO_ONE_FOR_ALL; 0: neither */
    int64_t loads; /* iterations of the run */
    int64_t origin; /* the beat of the image at which its parameters begin */
    int64_t loaded; /* memories dealt out */
    mlo_fetch loader;
    int64_t load; /* of which it asks for beats next */
    int64_t memory; /* of that load */
    int64_t beat; /* of that memory */
    int64_t *ready; /* [load % kept][memory]: the cycle from which it is there */
    int64_t kept; /* loads */
    int64_t (*freed)[4]; /* [memory][load & 3]: the cycle from which its bank is free */
    int64_t *begun; /* [memory]: loads begun */

    mlo_followed followed[2 * MLO_CORE_MOST + 1]; /* each edge's FIFO; at n_edge the feedback */

    mlo_scored row[MLO_CORE_MOST][MLO_ROWS_KEPT]; /* [attention][row % kept] */
    int64_t rows[MLO_CORE_MOST]; /* rows scored */
    int64_t query[MLO_CORE_MOST]; /* the cycle in which the latest row's query is complete */
    int64_t softmax[MLO_CORE_MOST]; /* the cycle from which softmax can take a row */
    int64_t frames_freed[MLO_CORE_MOST]; /* frames that are through */
    /* [attention][keys, values][frame & 3]: the cycle from which their bank is free again */
    int64_t frame_freed[MLO_CORE_MOST][2][4];
    /* [attention][keys, values]: when the latest frame was there */
    int64_t frame_came[MLO_CORE_MOST][2];

    mlo_tiling tiling[MLO_CORE_MOST];
    int64_t *tiles; /* of all elements: see mlo_tiling */

    mlo_bus *bus; /* to memory */
    int shared; /* how often readers share it on the way (mlo_axi_share): row blocks; core and head */
    int turn; /* the port of the latest request */
    int64_t picks; /* the cycle from which who asks has it in the register behind it */

    /* of a decoder's loop with what is around it: the other of the two; rows in front (schedule_around.c) */
    struct mlo_schedule
        *head; /* behind the loop, a decoder's head or an encoder's tail; NULL: nothing is */
    struct mlo_schedule *front; /* in front of it, an encoder's; NULL: nothing is */
    struct mlo_schedule
        *loop; /* that of the head, of the front, of the tail; NULL: this is none of them */
    mlo_fetch table; /* the rows' reader */
    int64_t table_rows; /* rows of the run that are asked for */
    int64_t table_asked; /* the cycle of the latest one's first request */
    int64_t passed; /* rows that passed the door */
    int64_t opening; /* the row for which it opens next; -1: none */
    int64_t opens; /* and when */
    int64_t entered[MLO_ROWS_KEPT]; /* [row % ..]: when its last beat did */

    mlo_prediction *p;
    int64_t follows; /* beats of the run, in each FIFO */
    mlo_moment_seen seen; /* NULL: nobody watches */
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

/* The job that token n of those from outside is of. */
static const mlo_job *mlo_job_outside(const mlo_schedule *s, int64_t n) {
    int64_t low = 0, high = s->n_job - 1;
    while (low < high) {
        const int64_t half = (low + high + 1) / 2;
        if (s->job[half].outside <= n)
            low = half;
        else
            high = half - 1;
    }
    return &s->job[low];
}

/* Where a token stands. */
typedef struct {
    const mlo_job *job;
    int64_t iteration; /* of the job */
    int64_t frame; /* of the job */
    int64_t at; /* the token's number in its frame */
    int64_t tokens; /* of the frame */
    int64_t start; /* of the frame: see mlo_job_start */
    int64_t pass; /* frames that are worked on in front of it, one in each iteration */
    int64_t load; /* loads of the run in front of its iteration */
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
    const int side = mlo_is_side(s, i);
    const int64_t tokens = side ? s->c->element[i].site.chunk : s->c->chunk;
    /* of the memory's tokens: the first of the loop's own that go with them */
    const int64_t own = side ? n / tokens * s->c->chunk : n;
    p.job = mlo_job_of(s, own);
    const int64_t rest = own - p.job->begin;
    p.iteration = rest / p.job->turn;
    p.at = rest % p.job->turn;
    for (p.frame = 0; (p.tokens = mlo_job_length(p.job, p.frame)) <= p.at; p.frame++)
        p.at -= p.tokens;
    if (side) p.at = n % tokens;
    p.start = mlo_job_start(p.job, p.frame);
    p.pass = p.job->pass + p.iteration * p.job->frames + p.frame;
    p.load = p.job->load + p.iteration;
    p.first = p.job->loads ? !p.frame && !p.at : !n;
    return p;
}

/* The last token of the frame that token n is of, in its iteration. */
static int64_t mlo_frame_last(const mlo_schedule *s, int64_t n) {
    const mlo_place p = mlo_place_of(s, MLO_OUTSIDE, n);
    return n - p.at + p.tokens - 1;
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

/* What a token meets at an element, in cycles. */
typedef struct {
    int64_t n; /* the token */
    int64_t arrives[2]; /* its first and its last beat come */
    int64_t room[2]; /* there is room for its first and its last beat */
    int64_t ready[MLO_UNIT_MEMORIES]; /* parameters are there */
    int64_t frame[2]; /* keys are there, and values */
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
    /* a token's last beat comes later than was known when it came. NULL: that changes nothing inside */
    void (*late)(const mlo_schedule *s, int i, mlo_token *t, int64_t last);
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
    const mlo_link *w = &s->way[e - s->c->edge];
    when[0] = mlo_edge_leaves(s, e, n, w->up - 1) + w->delay;
    when[1] = mlo_max(mlo_edge_leaves(s, e, n, w->beats_from - 1) + w->delay + w->down - 1,
        when[0] + w->beats_to - 1);
}
