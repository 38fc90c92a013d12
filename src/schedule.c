/* schedule: when things happen in a core, and why its kernels wait.
 *
 * in:  a core (mlo_hw), folded.    out: cycles of a run, when each frame is done, per kernel how long it works and what it waits for.
 * How. Every element handles the same tokens in the same order. It fires for its next token as soon as it is known when that token's
 * beats arrive and when the receiver has room for its result; firing says when the first and last beat are taken and leave. So it is the
 * dataflow graph run token by token, with its FIFOs as deep as they are; a beat within a token is where the straight line between the
 * token's first and last one is. Five kinds of elements, as their Verilog's headers describe them:
 *     beats    (Add, Requant, split)  a beat in, a beat out, a pipeline between that holds as many as it is long
 *     matrix   (MVU)          a whole token in, then its interval of work; the next token arrives meanwhile
 *     tiles    (MVU in row blocks)  a tile of tokens in, then a pass over it for every block; the next tile arrives, the one before leaves meanwhile
 *     norm     (LayerNorm)    sums as the token arrives, root and reciprocal, normalising: three tokens at a time
 *     rows     (attention)    a frame of keys and values, then a row per query token and head: scores, softmax, division, sum
 * The loader deals beats out memory after memory, each waiting for its bank, which the kernel frees when it begins the iteration
 * before; row blocks have readers of their own. Memory is followed burst by burst: each is asked for when its reader's FIFO has room, and they are
 * answered one after the other, at the rate of the memory.
 * How full FIFOs get: where it is asked for, some of each token's beats are followed into every FIFO and out. Beats of a token are on a straight line
 * between its first and last one, where they are not held up, so that a FIFO that never runs full may hold a token more or less in truth.
 * invariant: no number comes from a simulation, which takes as many cycles, but for 1 %: mostly a few, as a beat may not be where the straight line has it, and
 *      two readers that ask in the same cycle may be served in another order.
 * example: BERT with 32 tokens and two frames in flight: the interval is 1.00 x T x the busiest kernel's cycles per token.
 * cost: O(tokens x iterations x elements), and heads for attention; bursts; FIFOs' tokens, where they are followed. Cycle 0 is the first input beat.
 */
enum { MLO_LOADER_BEATS = 512, MLO_LOADER_BURST = 64, MLO_ROWS_KEPT = 32, MLO_NORM_HOLDS = 10, MLO_READS_KEPT = 64, MLO_BURSTS_MANY = 64, MLO_FOLLOWED = 8 };
/* Cycles, as they are in the Verilog. Of reading: from the first input beat to the loader's first request, from a beat that memory gives to where it is dealt out,
 * and to the request for which it made room (readers that share memory: one more). Of a tile: from its first beat to its request (one more, too), from a stored token
 * to its multiplication, from a result to its first beat out. Of the simulated memory: how long it is there before the first input beat. */
enum { MLO_READ_BEGINS = 2, MLO_READ_WAY = 2, MLO_READ_BACK = 1, MLO_TILE_ASKS = 5, MLO_TILE_STORES = 2, MLO_TILE_LEAVES = 2, MLO_MEMORY_GATHERS = 43 };

/* Per kernel: cycles in which its multipliers (or lanes) work, in which it waits for parameters, for input, for its output. */
typedef struct { int64_t busy, parameters, input, blocked; } mlo_spent;

/* spent: of each element; peak: the most beats that each edge's FIFO holds, and, at n_edge, that of the feedback (where it was asked for). */
typedef struct { int64_t cycles, interval, *frame_done, *peak; mlo_spent *spent; } mlo_prediction;

/* Of a token at an element: when its first and last input beat are taken, output beat leave; and two moments inside, see below. */
typedef struct { int64_t in[2], out[2], work, next; } mlo_token;

/* Beats of a token that leaves an element, and how long one is on its way through its pipeline. A split deals out what it takes. */
static int64_t mlo_beats_out(const mlo_element *e) { return (e->kernel ? e->unit.out.channels : mlo_last_dim(&e->site.in[0])) / e->unit.out.lanes; }
static int64_t mlo_pipeline(const mlo_element *e) { return e->kernel ? e->unit.latency : 1; }

static int mlo_edge_readers(const mlo_hw *c, const mlo_edge *e) {
    int n = 0;
    for (int k = 0; k < c->n_edge; k++) n += c->edge[k].from == e->from && c->edge[k].from_port == e->from_port;
    return n;
}

/* What an edge's beats are at its two ends, how long they take, how many wait between. */
typedef struct { int64_t beats_from, beats_to, up, down, fork, fifo, delay, held; } mlo_way;     /* up beats become down beats; fork: cycles to the FIFO */

/* Does the edge end at an element that waits for another stream, too? Both wait in skids. */
static int mlo_way_joins(const mlo_hw *c, const mlo_edge *e) { return e->to != MLO_OUTSIDE && c->element[e->to].kernel && c->element[e->to].unit.n_in > 1 && !c->element[e->to].unit.whole_frame; }

static mlo_way mlo_way_of(const mlo_hw *c, const mlo_edge *e) {
    mlo_way w = { e->channels / e->lanes_from, e->channels / e->lanes_to, 1, 1, 0, e->fifo * (e->channels / e->lanes_from), 0, 0 };
    while (w.up * e->lanes_from % e->lanes_to) w.up++;
    w.down = w.up * e->lanes_from / e->lanes_to;
    if (mlo_edge_readers(c, e) > 1) { w.fork = 1; w.delay++; w.held += 2; }
    if (w.fifo) w.delay += w.fifo > 2 ? 2 : 1;
    w.held = (w.held + w.fifo) * w.beats_to / w.beats_from;
    if (e->lanes_from != e->lanes_to) { w.delay++; w.held += 2; }
    if (mlo_way_joins(c, e)) w.held += 2;
    return w;
}

/* What attention keeps of its latest rows: the scores begin, their last step; softmax's first and last word; division begins; sum ends. */
typedef struct { int64_t begin, score, first, taken, accept, mix; } mlo_scored;

/* Who watches a schedule hears of each token that an element works on, from when to when; and of each loading of an element's
 * parameters (then token is -1, and frame the first one of those that use them). */
typedef struct { int element; int64_t iteration, frame, token, begin, end; } mlo_moment;
typedef void (*mlo_moment_seen)(void *user, const mlo_moment *what);

/* How far a FIFO has been followed: beats that came, the last of them when; beats that left. */
typedef struct { int64_t pushed, at, popped; } mlo_followed;

/* A reader of memory (mlo_axi_reader, and what deals its beats out): the loader, a matrix in row blocks. Beats are counted from the run's first one on:
 * those asked for (got), those dealt out. unit: how long a burst may be (of large matrices some are taken as one). asks: when it can ask next; waits:
 * the same, if it waits for nothing else. Of the latest bursts and portions (a block, a memory): behind which beat they begin and with which they end;
 * when the first can come, or leave; when the last does (of bursts: in cycles x rate, if the rate decides). port: its number among those that share memory. */
typedef struct { int64_t from, beats, begin, when; } mlo_until;
typedef struct { int64_t got, bursts, unit, asks, waits, portions; int port; mlo_until burst[MLO_READS_KEPT], dealt[MLO_READS_KEPT]; } mlo_fetch;

/* A matrix in row blocks: tiles begun, and asked for; tokens whose way in is known; when a half before (behind) it is free again, by tile; when the
 * multipliers are done with the latest pass, and with the one before; when the latest began, which frees a bank. Beats of a block; where the tile that is asked for lies in the image. Its
 * reader's portions are blocks, which have been passed. */
typedef struct { int64_t begun, asked, known, freed[4], left[4], end, before, pass, beats, address; mlo_fetch reader; } mlo_tiling;

typedef struct {
    const mlo_hw *c;
    int64_t frames, total, mask;        /* tokens of the run; of the ring, less one */
    mlo_token *ring;                    /* [element][token & mask]; row n_element: the loop's way in */
    int64_t fired[MLO_CORE_MOST + 1];   /* tokens handled */
    mlo_way way[2 * MLO_CORE_MOST];     /* of each edge */
    int order[2][2 * MLO_CORE_MOST], begin[2][MLO_CORE_MOST + 2];       /* edges by consumer, and by producer */
    int free;                           /* 1: receivers have room without end */
    /* the loader: memory after memory, iteration after iteration; banks in turn */
    int n_memory, first_memory[MLO_CORE_MOST + 1]; int64_t beats[MLO_CORE_MOST * MLO_UNIT_MEMORIES]; char resident[MLO_CORE_MOST * MLO_UNIT_MEMORIES];
    int64_t loads, loaded;              /* iterations of the run; memories dealt out */
    mlo_fetch loader; int64_t load, memory, beat;       /* what it asks for next: of which load, which memory, which beat */
    int64_t *ready, kept, (*freed)[4], *begun;      /* [load % kept][memory]: when it is there; [memory][load & 3]; [memory]: loads begun */
    mlo_followed followed[2 * MLO_CORE_MOST + 1];      /* each edge's FIFO; at n_edge the feedback */
    mlo_scored row[MLO_CORE_MOST][MLO_ROWS_KEPT];
    int64_t rows[MLO_CORE_MOST], query[MLO_CORE_MOST], softmax[MLO_CORE_MOST], frame_freed[MLO_CORE_MOST][2][4];
    mlo_tiling tiling[MLO_CORE_MOST];
    int shared, turn; int64_t asked;    /* do readers share memory (row blocks)? the port of the latest request, and when it was */
    int64_t served, given;              /* until when memory is busy, in cycles x rate; when it gave the last beat */
    int64_t now, next;                  /* requests are heard until now; the next one (without row blocks all are) */
    mlo_prediction *p;
    mlo_moment_seen seen; void *user;
} mlo_schedule;

static int64_t mlo_later(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t mlo_sooner(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- tokens ---------------------------------------------------------------------------------------------------------------------- */

/* Where token n stands: groups of frames go through all iterations; an iteration takes the group's frames one after the other. */
typedef struct { int64_t group, size, iteration, frame, at, load; int first; } mlo_place;

static mlo_place mlo_place_of(const mlo_schedule *s, int64_t n) {
    const mlo_hw *c = s->c;
    int64_t whole = c->frames * c->tokens * c->scan.iterations, rest = n % whole;
    mlo_place p;
    p.group = n / whole;
    p.size = mlo_sooner(c->frames, s->frames - p.group * c->frames);
    p.iteration = rest / (p.size * c->tokens); p.frame = rest / c->tokens % p.size; p.at = rest % c->tokens;
    p.load = c->scan.iterations > 1 ? p.group * c->scan.iterations + p.iteration : 0;
    p.first = c->scan.iterations > 1 ? rest % (p.size * c->tokens) == 0 : n == 0;
    return p;
}

static mlo_token *mlo_token_of(const mlo_schedule *s, int element, int64_t n) { return &s->ring[(element == MLO_OUTSIDE ? s->c->n_element : element) * (s->mask + 1) + (n & s->mask)]; }
static int64_t mlo_fired(const mlo_schedule *s, int element) { return s->fired[element == MLO_OUTSIDE ? s->c->n_element : element]; }

/* Beat `at` of `beats` between the first and the last. */
static int64_t mlo_beat_at(const int64_t when[2], int64_t at, int64_t beats) { return beats > 1 ? when[0] + (when[1] - when[0]) * at / (beats - 1) : when[1]; }

/* ---- edges ----------------------------------------------------------------------------------------------------------------------- */

/* When beat `at` of an edge's token n leaves the producer. A split's outputs have their parts of its token. */
static int64_t mlo_edge_leaves(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t at) {
    const mlo_hw *c = s->c;
    int64_t from = 0, all = e->channels / e->lanes_from;
    if (e->from != MLO_OUTSIDE && !c->element[e->from].kernel) { from = e->from_port * all; all = mlo_last_dim(&c->element[e->from].site.in[0]) / e->lanes_from; }
    return mlo_beat_at(mlo_token_of(s, e->from, n)->out, from + at, all);
}

/* When an edge's first and last beat of token n reach the consumer. */
static void mlo_edge_arrives(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t when[2]) {
    const mlo_way w = s->way[e - s->c->edge];
    when[0] = mlo_edge_leaves(s, e, n, w.up - 1) + w.delay;
    when[1] = mlo_later(mlo_edge_leaves(s, e, n, w.beats_from - 1) + w.delay + w.down - 1, when[0] + w.beats_to - 1);
}

/* ---- room ------------------------------------------------------------------------------------------------------------------------ */

#define MLO_NOT_YET (-1)

/* When an element's beat number x, counted from the first token on, leaves. */
static int64_t mlo_leaves(const mlo_schedule *s, int i, int64_t x, int64_t beats) { return x < 0 ? 0 : mlo_beat_at(mlo_token_of(s, i, x / beats)->out, x % beats, beats); }

/* When a norm's beat number x goes to the lanes: one after the other when the root is there, and as results leave. */
static int64_t mlo_norm_goes(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    return x < 0 ? 0 : mlo_later(mlo_token_of(s, i, x / beats)->next + 1 + x % beats, mlo_leaves(s, i, x - MLO_NORM_HOLDS, beats) + 1);
}

/* When an element can take the first beat of its next token, whatever comes. */
static int64_t mlo_accepts(const mlo_schedule *s, int i) {
    const mlo_element *e = &s->c->element[i];
    const mlo_unit *u = &e->unit;
    int64_t n = s->fired[i], before = n ? mlo_token_of(s, i, n - 1)->in[1] + 1 : 0, beats;
    if (u->flow == MLO_FLOW_MATRIX) return n > 1 ? mlo_later(before, mlo_token_of(s, i, n - 2)->work + 1) : before;
    if (u->flow == MLO_FLOW_ROWS) return s->rows[i] > 1 ? mlo_later(before, s->row[i][(s->rows[i] - 2) % MLO_ROWS_KEPT].score + 1) : before;
    beats = mlo_beats_out(e);
    if (u->flow == MLO_FLOW_NORM) {
        if (n > 1) before = mlo_later(before, mlo_token_of(s, i, n - 2)->work + 1);
        return mlo_later(before, mlo_norm_goes(s, i, n * beats - mlo_norm_keeps(beats), beats) + 1);
    }
    return mlo_later(before, mlo_leaves(s, i, n * beats - mlo_pipeline(e) - 1, beats) + 1);
}

/* The number of token n's tile, counted from the first one on. */
static int64_t mlo_tile_of(const mlo_schedule *s, int i, int64_t n) {
    const mlo_unit *u = &s->c->element[i].unit;
    return n / s->c->tokens * mlo_unit_tiles(u, s->c->tokens) + n % s->c->tokens / u->tile;
}

/* When token n's first beat can be taken by a matrix in row blocks: the token before is in, and of two halves one is free. MLO_NOT_YET: not known. */
static int64_t mlo_tile_opens(const mlo_schedule *s, int i, int64_t n) {
    const int64_t tile = mlo_tile_of(s, i, n), before = n ? mlo_token_of(s, i, n - 1)->in[1] + 1 : 0;
    if (tile > s->tiling[i].begun + 1) return MLO_NOT_YET;
    return mlo_later(before, tile > 1 ? s->tiling[i].freed[tile & 3] : 0);
}

/* When attention takes beat `at` of a token's queries: two rows (heads) as they come, the others when rows are scored, which begins with the frame's last key. */
static int64_t mlo_query_taken(const mlo_schedule *s, int i, const mlo_token *t, int64_t at, int64_t beats) {
    const int64_t early = 2 * s->c->element[i].unit.rows.steps, first[2] = { t->in[0], t->work }, then[2] = { t->next, t->in[1] };
    if (beats <= early) return mlo_beat_at(t->in, at, beats);
    return at < early ? mlo_beat_at(first, at, early) : mlo_beat_at(then, at - early, beats - early);
}

/* When edge e's consumer takes its beat number `at`, counted from the first token on; MLO_NOT_YET if that depends on what has not been walked. */
static int64_t mlo_edge_takes(const mlo_schedule *s, const mlo_edge *e, int64_t at, int64_t beats) {
    if (at < 0) return 0;
    int64_t n = at / beats, pass = n / s->c->tokens;
    if (s->c->element[e->to].unit.whole_frame && e->to_port)            /* keys and values: two frames of them */
        return pass < 2 ? 0 : s->fired[e->to] < (pass - 1) * s->c->tokens ? MLO_NOT_YET : s->frame_freed[e->to][e->to_port - 1][pass & 3];
    if (s->c->element[e->to].unit.blocks && n == s->tiling[e->to].known) {
        const int64_t open = mlo_tile_opens(s, e->to, n);
        return open == MLO_NOT_YET ? open : open + at % beats;
    }
    if (n < s->fired[e->to] && s->c->element[e->to].unit.whole_frame) return mlo_query_taken(s, e->to, mlo_token_of(s, e->to, n), at % beats, beats);
    if (n < mlo_later(s->fired[e->to], s->tiling[e->to].known)) return mlo_beat_at(mlo_token_of(s, e->to, n)->in, at % beats, beats);
    if (s->c->element[e->to].unit.whole_frame) {                        /* queries: two rows beyond those that are scored */
        const int64_t steps = s->c->element[e->to].unit.rows.steps, row = at / steps, first = s->fired[e->to] ? mlo_token_of(s, e->to, s->fired[e->to] - 1)->in[1] + 1 : 0;
        if (row >= s->rows[e->to] + 2) return MLO_NOT_YET;
        return mlo_later(first + at - s->fired[e->to] * beats, row > 1 ? s->row[e->to][(row - 2) % MLO_ROWS_KEPT].score + 1 + at % steps : 0);
    }
    return n == s->fired[e->to] && !s->c->element[e->to].unit.blocks ? mlo_accepts(s, e->to) + at % beats : MLO_NOT_YET;
}

/* The same for the loop's way out: beats that go round are taken when the next iteration takes them. */
static int64_t mlo_loop_takes(const mlo_schedule *s, int64_t n, int64_t at) {
    const mlo_hw *c = s->c;
    int64_t beats = c->channels / c->lanes, held = c->feedback * beats + 4;
    mlo_place p = mlo_place_of(s, n);
    int64_t turn = p.size * c->tokens, begin = n - p.iteration * turn - p.frame * c->tokens - p.at;
    if (p.iteration == c->scan.iterations - 1) return 0;
    int64_t x = (n - begin) * beats + at - held;
    if (x < 0) return 0;
    n = begin + turn + x / beats;
    return n < s->fired[c->n_element] ? mlo_beat_at(mlo_token_of(s, MLO_OUTSIDE, n)->out, x % beats, beats) : MLO_NOT_YET;
}

/* When the first and last beat of an element's next token can leave. 0: not known yet. */
static int mlo_has_room(const mlo_schedule *s, int i, int64_t room[2]) {
    const mlo_hw *c = s->c;
    const int64_t n = mlo_fired(s, i);              /* < total */
    room[0] = room[1] = 0;
    if (s->free) return 1;
    const int at = i == MLO_OUTSIDE ? c->n_element : i;
    for (int k = s->begin[1][at]; k < s->begin[1][at + 1]; k++) {
        const mlo_edge *e = &c->edge[s->order[1][k]];
        const mlo_way w = s->way[e - c->edge];
        int64_t first, last;
        if (e->to == MLO_OUTSIDE) { first = mlo_loop_takes(s, n, 0); last = mlo_loop_takes(s, n, w.beats_to - w.down); }
        else { first = mlo_edge_takes(s, e, n * w.beats_to - w.held, w.beats_to); last = mlo_edge_takes(s, e, n * w.beats_to + w.beats_to - w.down - w.held, w.beats_to); }
        if (first == MLO_NOT_YET || last == MLO_NOT_YET) return 0;
        room[0] = mlo_later(room[0], first - w.delay); room[1] = mlo_later(room[1], last - w.delay);
    }
    return 1;
}

/* ---- how full FIFOs are ---------------------------------------------------------------------------------------------------------- */

/* Where the n-th of the tokens that go round is on its way out; the way in takes it a turn later. */
static int64_t mlo_round_from(const mlo_schedule *s, int64_t n) {
    const int64_t whole = s->c->frames * s->c->tokens;
    return n + n / (whole * (s->c->scan.iterations - 1)) * whole;
}
static int64_t mlo_round_to(const mlo_schedule *s, int64_t n) {
    const int64_t from = mlo_round_from(s, n);
    return from + mlo_place_of(s, from).size * s->c->tokens;
}

/* When an element's beat x, counted from the first token on, leaves: between its token's first and last one, not before all readers have room. */
static int64_t mlo_source_leaves(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t at) {
    const mlo_hw *c = s->c;
    const int from = e->from == MLO_OUTSIDE ? c->n_element : e->from;
    int64_t when = mlo_edge_leaves(s, e, n, at);
    for (int k = s->begin[1][from]; k < s->begin[1][from + 1]; k++) {
        const mlo_edge *other = &c->edge[s->order[1][k]];
        const mlo_way w = s->way[other - c->edge];
        if (other->to == MLO_OUTSIDE || other->from_port != e->from_port) continue;
        const int64_t room = mlo_edge_takes(s, other, n * w.beats_to + at / w.up * w.down - w.held, w.beats_to);
        when = mlo_later(when, room - w.delay);
    }
    return when;
}

/* When beat x goes into the FIFO of edge k, or comes out of it; at n_edge: into the feedback's. Beats are counted from the run's first one on. */
static int64_t mlo_fifo_pushed(const mlo_schedule *s, int k, int64_t x) {
    const mlo_hw *c = s->c;
    const int feedback = k == c->n_edge;
    const mlo_edge *e = &c->edge[feedback ? k - 1 : k];         /* the last one ends where the feedback begins */
    const int64_t beats = feedback ? c->channels / c->lanes : s->way[k].beats_from, n = feedback ? mlo_round_from(s, x / beats) : x / beats;
    int64_t when[2];
    if (mlo_fired(s, e->from) <= n) return MLO_NOT_YET;
    if (!feedback) return mlo_source_leaves(s, e, n, x % beats) + s->way[k].fork;
    mlo_edge_arrives(s, e, n, when);
    return mlo_beat_at(when, x % beats, beats) + 1;
}

/* Behind a FIFO there may be a skid: of a width converter, of the loop's way in, of an element that waits for another stream, too. */
static int64_t mlo_fifo_popped(const mlo_schedule *s, int k, int64_t x) {
    const mlo_hw *c = s->c;
    int64_t from = mlo_fifo_pushed(s, k, x);
    if (from == MLO_NOT_YET) return MLO_NOT_YET;
    if (k == c->n_edge) {
        const int64_t beats = c->channels / c->lanes, n = mlo_round_to(s, x / beats), at = n * beats + x % beats - 2;
        const mlo_edge *e = &c->edge[s->order[1][s->begin[1][c->n_element]]];
        return s->fired[c->n_element] <= n ? MLO_NOT_YET : mlo_later(from + 2, mlo_source_leaves(s, e, at / beats, at % beats) + 1);
    }
    const mlo_edge *e = &c->edge[k];
    const mlo_way w = s->way[k];
    const int64_t n = x / w.beats_from, group = x / w.up;
    int64_t at = group * w.down;
    from += w.fifo > 2 ? 2 : 1;
    if (c->element[e->to].unit.whole_frame && e->to_port) {
        const int64_t bank = mlo_edge_takes(s, e, x, w.beats_from);
        return bank == MLO_NOT_YET ? MLO_NOT_YET : mlo_later(from, bank);
    }
    if (s->fired[e->to] <= n) return MLO_NOT_YET;
    if (w.up != w.down) at -= x % w.up == w.up - 1 ? 2 : 2 + w.down;           /* gathered until the last of `up` beats */
    if (mlo_way_joins(c, e)) at -= 2;
    const int64_t taken = at < 0 ? 0 : mlo_edge_takes(s, e, at, w.beats_to) + (at < group * w.down);
    return mlo_later(from, taken);
}

/* Of each token's beats the first and the last are followed, and few between: the next one of those. */
static int64_t mlo_fifo_next(int64_t x, int64_t beats) {
    const int64_t left = beats - 1 - x % beats;
    return x + (left ? mlo_sooner(mlo_later(1, beats / MLO_FOLLOWED), left) : 1);
}

/* Follows a FIFO as far as things are known: it is fullest just before a beat leaves. */
static void mlo_fifo_follow(mlo_schedule *s, int k) {
    const mlo_hw *c = s->c;
    const int64_t beats = k < c->n_edge ? s->way[k].beats_from : c->channels / c->lanes, all = beats * (k < c->n_edge ? s->total : s->total / c->scan.iterations * (c->scan.iterations - 1));
    const int64_t depth = k < c->n_edge ? s->way[k].fifo : c->feedback * beats;
    mlo_followed *f = &s->followed[k];
    for (int64_t leaves; f->popped < all && (leaves = mlo_fifo_popped(s, k, f->popped)) != MLO_NOT_YET; f->popped = mlo_fifo_next(f->popped, beats)) {
        int64_t next, comes = 0, pushed;
        while ((next = f->pushed ? mlo_fifo_next(f->pushed - 1, beats) : 0) < all && (comes = mlo_fifo_pushed(s, k, next)) != MLO_NOT_YET && comes < leaves) { f->pushed = next + 1; f->at = comes; }
        if (next < all && comes == MLO_NOT_YET) return;
        pushed = f->pushed;
        if (next > pushed && next < all) pushed += mlo_sooner(next - pushed, ((leaves - f->at) * (next + 1 - pushed) - 1) / (comes - f->at));
        s->p->peak[k] = mlo_later(s->p->peak[k], mlo_sooner(depth, pushed - f->popped));
    }
}

/* ---- parameters ------------------------------------------------------------------------------------------------------------------ */

/* May what a reader asks for at `when` be answered? Requests are, in the order of time, as memory takes them; the next one is noted. */
static int mlo_is_heard(mlo_schedule *s, int64_t when) {
    if (when <= s->now) return 1;
    s->next = mlo_sooner(s->next, when);
    return 0;
}

/* Memory answers requests one after the other: here with `beats` behind those that a reader got, the first of which can come at `from`. After a pause four
 * come at once, where there is a rate to keep (mlo_sim_ram's credit). */
static mlo_until mlo_memory_gives(mlo_schedule *s, int64_t got, int64_t beats, int64_t from) {
    const int64_t rate = s->c->rate, begin = mlo_later(from, s->given), saved = rate < 256 ? 4 * 256 - 2 * rate : 0;
    s->served = mlo_later(s->served, begin * rate - saved) + beats * 256;
    s->given = mlo_later(begin + beats, (s->served + rate - 1) / rate);
    const mlo_until come = { got, got + beats, begin, s->served };
    return come;
}

/* When beat x of those that a reader asked for has come: beats of a burst come at the memory's rate. */
static int64_t mlo_fetch_has(const mlo_schedule *s, const mlo_fetch *r, int64_t x) {
    if (x <= 0 || x > r->got) return 0;
    const int64_t oldest = mlo_later(0, r->bursts - MLO_READS_KEPT);
    int64_t k = mlo_later(oldest, r->bursts - 1 - (r->got - x) / r->unit);
    while (k > oldest && r->burst[k % MLO_READS_KEPT].from >= x) k--;
    const mlo_until *b = &r->burst[k % MLO_READS_KEPT];
    return mlo_later(b->begin + x - b->from, (b->when - (b->beats - x) * 256 + s->c->rate - 1) / s->c->rate);
}

static mlo_until mlo_fetch_last(const mlo_fetch *r) { const mlo_until none = { 0, 0, 0, 0 }; return r->portions ? r->dealt[(r->portions - 1) % MLO_READS_KEPT] : none; }

/* The next portion is dealt out to a bank that is free from `open` on, as it comes. */
static mlo_until mlo_fetch_deal(const mlo_schedule *s, const mlo_fetch *r, int64_t beats, int64_t open) {
    const mlo_until last = mlo_fetch_last(r);
    const int64_t begin = mlo_later(open, last.when), end = last.beats + beats;
    const mlo_until now = { last.beats, end, begin, mlo_later(begin + beats, mlo_fetch_has(s, r, end)) };
    return now;
}
static int64_t mlo_fetch_deals(const mlo_schedule *s, mlo_fetch *r, int64_t beats, int64_t open) {
    const mlo_until now = mlo_fetch_deal(s, r, beats, open);
    r->dealt[r->portions++ % MLO_READS_KEPT] = now;
    return now.when;
}

/* When a reader has dealt out beat x; its next portion has `beats`, and a bank from `open` on. MLO_NOT_YET if that is not known. */
static int64_t mlo_fetch_dealt(const mlo_schedule *s, const mlo_fetch *r, int64_t x, int64_t beats, int64_t open) {
    int64_t k = r->portions - 1;
    mlo_until of = mlo_fetch_last(r);
    if (x <= 0) return 0;
    if (x > of.beats) {
        if (open == MLO_NOT_YET || x > of.beats + beats) return MLO_NOT_YET;
        of = mlo_fetch_deal(s, r, beats, open);
    } else while (x <= of.from && k > 0 && k > r->portions - MLO_READS_KEPT) of = r->dealt[--k % MLO_READS_KEPT];
    return x <= of.from ? of.begin : mlo_later(of.begin + x - of.from, mlo_fetch_has(s, r, x));
}

/* When a reader can ask, if beat x must have left its FIFO first. It does as it comes, or when the beat two before is dealt out: two wait in mlo_router's
 * skid. MLO_NOT_YET if that is not known. */
static int64_t mlo_fetch_room(const mlo_schedule *s, const mlo_fetch *r, int64_t x, int64_t beats, int64_t open) {
    const int64_t dealt = mlo_fetch_dealt(s, r, x - 2, beats, open), back = MLO_READ_BACK + s->shared;
    return x <= 0 ? 0 : dealt == MLO_NOT_YET ? dealt : mlo_later(mlo_fetch_has(s, r, x), dealt + 2) + back;
}

/* The longest burst, in beats, to which all are aligned: within 4 KB. Of `beats` in one go that are very many, up to half a FIFO's worth is taken as one. */
static int64_t mlo_burst_unit(const mlo_hw *c, int64_t beats) {
    int64_t unit = mlo_sooner(MLO_LOADER_BURST, 4096 * 8 / c->axi_bits);
    while (unit < MLO_LOADER_BEATS / 2 && beats / unit > MLO_BURSTS_MANY) unit *= 2;
    return unit;
}

/* A reader asks for its next burst, of at most `left` beats at `address` in the image, when its FIFO has room. 0: not yet. */
static int64_t mlo_fetch_asks(mlo_schedule *s, mlo_fetch *r, int64_t address, int64_t left, int64_t beats, int64_t open) {
    const int64_t burst = mlo_sooner(left, r->unit - address % r->unit), room = mlo_fetch_room(s, r, r->got + burst - MLO_LOADER_BEATS, beats, open);
    const int64_t asks = mlo_later(mlo_later(r->asks, room), s->asked + 1);
    r->waits = 0;
    if (room == MLO_NOT_YET) return 0;
    if (!mlo_is_heard(s, asks)) { r->waits = asks; return 0; }
    r->burst[r->bursts++ % MLO_READS_KEPT] = mlo_memory_gives(s, r->got, burst, asks + s->c->read_latency + MLO_READ_WAY);
    r->got += burst;
    r->asks = asks + 2;
    s->asked = asks; s->turn = r->port;
    return burst;
}

/* Tells of an element's parameters, a memory at a time. */
static void mlo_loaded(const mlo_schedule *s, int memory, int64_t load) {
    int i = 0;
    if (!s->seen || load >= s->loads) return;
    while (s->first_memory[i + 1] <= memory) i++;
    const mlo_moment what = { i, load % s->c->scan.iterations, load / s->c->scan.iterations * s->c->frames, -1, mlo_fetch_last(&s->loader).begin, mlo_fetch_last(&s->loader).when };
    s->seen(s->user, &what);
}

/* Is this memory read in this load? Resident ones are in the first loads alone. */
static int mlo_loader_reads(const mlo_schedule *s, int64_t load, int64_t memory) { return load < s->c->scan.iterations || !s->resident[memory]; }

/* When the bank of the memory that the loader deals out next is free. */
static int64_t mlo_loader_bank(const mlo_schedule *s) {
    const int64_t at = s->loaded / s->n_memory, memory = s->loaded % s->n_memory;
    if (at < 2 || s->resident[memory]) return 0;
    return s->begun[memory] < at ? MLO_NOT_YET : s->freed[memory][(at - 1) & 3] + 1;
}

/* The loader deals out its next memory. 0: it is not known when. */
static int mlo_loader_deals(mlo_schedule *s) {
    const int64_t at = s->loaded / s->n_memory, bank = mlo_loader_bank(s);
    const int memory = (int)(s->loaded % s->n_memory);
    if (mlo_loader_reads(s, at, memory)) {
        if (bank == MLO_NOT_YET || mlo_fetch_last(&s->loader).beats + s->beats[memory] > s->loader.got) return 0;
        s->ready[at % s->kept * s->n_memory + memory] = mlo_fetch_deals(s, &s->loader, s->beats[memory], bank);
        mlo_loaded(s, memory, at);
    }
    s->loaded++;
    return 1;
}

/* On to the memory behind the one that the loader asks for. */
static void mlo_loader_passes(mlo_schedule *s) { if (++s->memory == s->n_memory) { s->memory = 0; s->load++; } }

/* Beats that lie together from the one on that the loader asks for, as far as a burst needs: to the end of a round of all iterations at most. */
static int64_t mlo_loader_together(const mlo_schedule *s) {
    const int64_t round = s->load / s->c->scan.iterations;
    int64_t beats = -s->beat, load = s->load, k = s->memory;
    while (beats < MLO_LOADER_BURST && load / s->c->scan.iterations == round && mlo_loader_reads(s, load, k)) {
        beats += s->beats[k];
        k = (k + 1) % s->n_memory; load += !k;
    }
    return beats;
}

/* The loader asks for its next burst. 0: not yet. */
static int mlo_loader_asks(mlo_schedule *s) {
    int64_t address = s->beat;
    for (int n = s->n_memory; n && !mlo_loader_reads(s, s->load, s->memory); n--) mlo_loader_passes(s);
    if (!mlo_loader_reads(s, s->load, s->memory)) return 0;
    for (int k = 0; k < s->n_memory; k++) address += s->beats[k] * (s->load % s->c->scan.iterations + (k < s->memory));
    const int64_t burst = mlo_fetch_asks(s, &s->loader, address, mlo_loader_together(s), s->beats[s->loaded % s->n_memory], mlo_loader_bank(s));
    for (s->beat += burst; s->beat >= s->beats[s->memory]; mlo_loader_passes(s)) s->beat -= s->beats[s->memory];
    return burst > 0;
}

/* The loader asks and deals out as far as is known, a bank further than the run. 0: it does not. */
static int mlo_loader_goes_on(mlo_schedule *s) {
    int any = 0;
    while (s->n_memory && ((s->loaded < (s->loads + 1) * s->n_memory && mlo_loader_deals(s)) || mlo_loader_asks(s))) any = 1;
    return any;
}

/* When memory k of iteration `load` is there; MLO_NOT_YET if a bank on the way to it is not known to be free. */
static int64_t mlo_loader_ready(mlo_schedule *s, int k, int64_t load) {
    while (s->loaded <= load * s->n_memory + k) if (!mlo_loader_goes_on(s)) return MLO_NOT_YET;
    return mlo_loader_reads(s, load, k) ? s->ready[load % s->kept * s->n_memory + k] : 0;
}

/* Parameters of an element's token that begins an iteration: when its memories are there. 0: not known yet. */
static int mlo_parameters(mlo_schedule *s, int i, const mlo_place *p, int64_t ready[MLO_UNIT_MEMORIES]) {
    for (int k = 0; k < MLO_UNIT_MEMORIES; k++) ready[k] = 0;
    for (int k = 0; k < s->first_memory[i + 1] - s->first_memory[i] && p->first; k++) if ((ready[k] = mlo_loader_ready(s, s->first_memory[i] + k, p->load)) == MLO_NOT_YET) return 0;
    return 1;
}

/* Memory k of the element moves to the bank of this iteration. */
static void mlo_begins(mlo_schedule *s, int i, int k, const mlo_place *p, int64_t when) {
    if (!p->first || k >= s->c->element[i].unit.n_memory) return;
    s->freed[s->first_memory[i] + k][p->load & 3] = when;
    s->begun[s->first_memory[i] + k] = p->load + 1;
}

/* ---- firing ---------------------------------------------------------------------------------------------------------------------- */

/* What a token meets at an element. */
typedef struct { int64_t n, arrives[2], room[2], ready[MLO_UNIT_MEMORIES], frame[2]; mlo_place at; } mlo_meet;

/* Time that went by between the last beats of two tokens: work, then room (ideal: when the last beat would have left otherwise), then
 * parameters; what is left is input's. */
static void mlo_spend(mlo_schedule *s, int i, const mlo_meet *x, const mlo_token *t, int64_t busy, int64_t ideal, int64_t parameters) {
    mlo_spent *to = &s->p->spent[i];
    int64_t before = x->n ? mlo_token_of(s, i, x->n - 1)->out[1] : 0, idle = mlo_later(0, t->out[1] - before - busy);
    int64_t blocked = mlo_sooner(idle, t->out[1] - ideal);
    to->busy += busy; to->blocked += blocked; to->parameters += mlo_sooner(idle - blocked, mlo_later(0, parameters));
}

static void mlo_fire_beats(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_element *e = &s->c->element[i];
    int64_t beats = mlo_beats_out(e), latency = mlo_pipeline(e), shift = 0, waits = 0;
    t->in[0] = mlo_later(x->arrives[0], mlo_accepts(s, i));
    if (e->kernel && x->at.first) {
        shift = 1;
        for (int k = 0; k < e->unit.n_memory; k++) waits = mlo_later(waits, x->ready[k] - t->in[0] - 1 - (k ? latency - 2 : 0));
        for (int k = 0; k < e->unit.n_memory; k++) mlo_begins(s, i, k, &x->at, t->in[0] + 1 + (k ? latency - 2 : 0));
    }
    t->in[1] = mlo_later(x->arrives[1], t->in[0] + shift + waits + beats - 1);
    int64_t first = t->in[0] + shift + waits + latency, last = mlo_later(t->in[1] + latency, first + beats - 1);
    t->out[0] = mlo_later(first, x->room[0]);
    t->out[1] = mlo_later(mlo_later(last, x->room[1]), t->out[0] + beats - 1);
    t->in[1] = mlo_later(t->in[1], mlo_leaves(s, i, x->n * beats + beats - 1 - latency - 1, beats) + 1);
    mlo_spend(s, i, x, t, beats, last, waits);
}

/* Results in the pipeline behind the sums. When those cannot leave, nothing moves: the last sum is made when the result so many before it leaves. */
static int64_t mlo_matrix_holds(const mlo_unit *u) { return u->latency / (u->in[0].channels / u->in[0].lanes) + 2; }
static void mlo_matrix_freezes(mlo_schedule *s, int i, int64_t n) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_token *t = mlo_token_of(s, i, n);
    int64_t beats = u->out.channels / u->out.lanes;
    t->work = mlo_later(t->work, mlo_leaves(s, i, n * beats + beats - 1 - mlo_matrix_holds(u), beats));
}

/* From a slot's issue to its group's first turn. */
static int64_t mlo_matrix_to_turn(const mlo_unit *u) { return u->latency - 8 - u->turns - (u->n_memory > 2); }

static void mlo_fire_matrix(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_token *before = x->n ? mlo_token_of(s, i, x->n - 1) : NULL;
    int64_t in = u->in[0].channels / u->in[0].lanes, to_turn = mlo_matrix_to_turn(u), start, waits = 0;
    t->in[0] = mlo_later(x->arrives[0], mlo_accepts(s, i));
    t->in[1] = mlo_later(x->arrives[1], t->in[0] + in - 1);
    start = mlo_later(t->in[1], before ? before->work : 0) + 1;
    if (x->at.first) {
        int64_t swap = to_turn + mlo_later(start, before ? before->work + u->turns : 0);        /* the turns of the token before are over */
        mlo_begins(s, i, 0, &x->at, start); mlo_begins(s, i, 1, &x->at, swap); mlo_begins(s, i, 2, &x->at, swap + 8);
        start++;
        waits = mlo_later(mlo_later(x->ready[0], x->ready[1] - in + 1 - to_turn), x->ready[2] - in - to_turn - u->turns - 7) + 1 - start;
        start += mlo_later(0, waits);
    }
    int64_t first = start + in - 1 + u->latency, last = start + u->interval - 1 + u->latency;
    t->out[0] = mlo_later(first, x->room[0]);
    t->out[1] = mlo_later(last + mlo_later(0, t->out[0] - first - in * mlo_matrix_holds(u)), x->room[1]);
    t->work = start + u->interval - 1;
    mlo_matrix_freezes(s, i, x->n);
    mlo_spend(s, i, x, t, u->interval, last, waits);
}

/* Token n's beats that were taken later than they came held their producer back, whose next token, where there is no FIFO, has not fired yet. */
static void mlo_held_back(mlo_schedule *s, const mlo_edge *e, int64_t n, const int64_t in[2]) {
    int64_t when[2];
    if (e->fifo || e->from == MLO_OUTSIDE) return;
    mlo_edge_arrives(s, e, n, when);
    mlo_token *from = mlo_token_of(s, e->from, n);
    if (in[0] > when[0]) from->out[0] = mlo_sooner(from->out[0] + in[0] - when[0], from->out[1] + mlo_later(0, in[1] - when[1]));
    if (in[1] > when[1]) { from->out[1] += in[1] - when[1]; s->p->spent[e->from].blocked += in[1] - when[1]; }
    if (s->c->element[e->from].unit.flow == MLO_FLOW_MATRIX) mlo_matrix_freezes(s, e->from, n);
}

/* The first token of an element's tile; how many tokens the one has that begins with token n. */
static int64_t mlo_tile_first(const mlo_schedule *s, int i, int64_t tile) {
    const int64_t tiles = mlo_unit_tiles(&s->c->element[i].unit, s->c->tokens);
    return tile / tiles * s->c->tokens + tile % tiles * s->c->element[i].unit.tile;
}
static int64_t mlo_tile_size(const mlo_schedule *s, int i, int64_t n) { return mlo_sooner(s->c->element[i].unit.tile, s->c->tokens - n % s->c->tokens); }

/* Where its tokens come from: a matrix has a single input. */
static const mlo_edge *mlo_tile_edge(const mlo_schedule *s, int i) { return &s->c->edge[s->order[0][s->begin[0][i]]]; }

/* Where in the image the parameters lie that the tile needs which begins with token n: row blocks are behind all others. */
static int64_t mlo_tile_address(const mlo_schedule *s, int i, int64_t n) {
    const mlo_hw *c = s->c;
    int64_t at = mlo_core_beats_in(c, MLO_EITHER) * c->scan.iterations + mlo_core_block_beats(c) * mlo_place_of(s, n).iteration;
    for (int k = 0; k < i; k++) if (mlo_is_block(&c->element[k])) at += mlo_unit_beats(&c->element[k].unit, c->axi_bits);
    return at;
}

/* Tokens are taken as they come and a half has room for them. 0: none is. */
static int mlo_tile_takes(mlo_schedule *s, int i) {
    const mlo_edge *e = mlo_tile_edge(s, i);
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t before = s->tiling[i].known, beats = u->in[0].channels / u->in[0].lanes;
    for (int64_t n = before, open; n < mlo_fired(s, e->from) && (open = mlo_tile_opens(s, i, n)) != MLO_NOT_YET; n++) {
        int64_t when[2];
        mlo_token *t = mlo_token_of(s, i, n);
        mlo_edge_arrives(s, e, n, when);
        t->in[0] = mlo_later(when[0], open);
        t->in[1] = mlo_later(when[1], t->in[0] + beats - 1);
        mlo_held_back(s, e, n, t->in);
        s->tiling[i].known = n + 1;
    }
    return s->tiling[i].known > before;
}

/* The next tile's first token is taken, and all that tiles before it need is requested: so are its parameters. 0: not yet. */
static int mlo_tile_asks(mlo_schedule *s, int i) {
    mlo_tiling *t = &s->tiling[i];
    const int64_t n = mlo_tile_first(s, i, t->asked);
    if (t->known <= n || t->reader.got < t->asked * t->beats * s->c->element[i].unit.blocks) return 0;
    t->reader.asks = mlo_later(t->reader.asks, mlo_token_of(s, i, n)->in[0] + MLO_TILE_ASKS + s->shared);
    t->address = mlo_tile_address(s, i, n);
    t->asked++;
    return 1;
}

/* The tile that is asked for is read as far as there is room. 0: nothing is. */
static int mlo_tile_reads(mlo_schedule *s, int i) {
    mlo_tiling *t = &s->tiling[i];
    const int64_t end = t->asked * t->beats * s->c->element[i].unit.blocks, before = t->reader.bursts;
    for (int64_t burst; t->reader.got < end && (burst = mlo_fetch_asks(s, &t->reader, t->address, end - t->reader.got, t->beats, t->pass)); ) t->address += burst;
    return t->reader.bursts > before;
}

/* The first cycle of the pass whose block was dealt out last: of weights, channel words, table, which come in this order, only the first are needed at once. */
static int64_t mlo_pass_begins(const mlo_schedule *s, int i) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_fetch *r = &s->tiling[i].reader;
    const int64_t in = u->in[0].channels / u->in[0].lanes, to_turn = mlo_matrix_to_turn(u), all = mlo_fetch_last(r).beats;
    const int64_t table = u->n_memory > 2 ? mlo_memory_beats(&u->memory[2], s->c->axi_bits) : 0, words = table + mlo_memory_beats(&u->memory[1], s->c->axi_bits);
    const int64_t first = mlo_fetch_dealt(s, r, all - words, 0, 0), second = mlo_fetch_dealt(s, r, all - table, 0, 0) - in + 1 - to_turn;
    return mlo_later(mlo_later(first, second), table ? mlo_fetch_dealt(s, r, all, 0, 0) - in - to_turn - u->turns - 8 : 0);
}

/* The next pass over a tile's tokens, whose block has been read: it is dealt out when its bank is free. */
static void mlo_tile_pass(mlo_schedule *s, int i, int64_t n, int64_t tokens) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_tiling *t = &s->tiling[i];
    const int64_t in = u->in[0].channels / u->in[0].lanes, work = in * (u->out.channels / u->out.lanes / u->blocks);
    const int first = t->reader.portions == t->begun * u->blocks;
    mlo_fetch_deals(s, &t->reader, t->beats, t->pass);
    const int64_t ready = mlo_pass_begins(s, i), before = t->end;
    int64_t begin = before + 1;
    if (first) begin = mlo_later(begin, mlo_token_of(s, i, n)->in[1] + in + MLO_TILE_STORES);
    t->pass = begin;
    if (ready >= begin) { s->p->spent[i].parameters += ready - begin; begin = ready; }
    const int64_t room = first && t->begun > 1 ? t->left[t->begun & 3] - u->latency - in : begin;
    if (room > begin) { s->p->spent[i].blocked += room - begin; begin = room; }
    t->end = begin + tokens * work;
    for (int64_t k = 1; k < tokens && first; k++) t->end = mlo_later(t->end, mlo_token_of(s, i, n + k)->in[1] + in + MLO_TILE_STORES - 1 + (tokens - k) * work);
    for (int64_t k = 0; k < tokens; k++) mlo_token_of(s, i, n + k)->work = begin + (k + 1) * work;
    /* The half is free when its last vector is with the multipliers, which take it when they are done with the one before the one before. */
    t->freed[(t->begun + 2) & 3] = in + mlo_later(tokens > 2 ? t->end - 2 * work : tokens > 1 ? before : t->before, mlo_token_of(s, i, n + tokens - 1)->in[1] + MLO_TILE_STORES + in);
    t->before = before;
    s->p->spent[i].busy += tokens * work;
}

/* Passes of a tile whose tokens have come, as far as blocks are read: `work` of its tokens is when the last one is done with each. 0: none is. */
static int mlo_tile_passes(mlo_schedule *s, int i, int64_t n) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_tiling *t = &s->tiling[i];
    const int64_t tokens = mlo_tile_size(s, i, n), beats = t->beats, before = t->reader.portions, end = (t->begun + 1) * u->blocks;
    if ((t->begun > 1 && s->fired[i] < mlo_tile_first(s, i, t->begun - 1)) || t->known < n + tokens) return 0;
    while (t->reader.portions < end && (t->reader.portions + 1) * beats <= t->reader.got) mlo_tile_pass(s, i, n, tokens);
    if (t->reader.portions == end) {
        t->begun++;
        if (s->seen) {
            const mlo_place at = mlo_place_of(s, n);
            const mlo_moment what = { i, at.iteration, at.group * s->c->frames + at.frame, -1, mlo_fetch_has(s, &t->reader, (end - u->blocks) * beats + 1) - mlo_sooner(beats, t->reader.unit), mlo_fetch_has(s, &t->reader, end * beats) };
            s->seen(s->user, &what);
        }
    }
    return t->reader.portions > before;
}

/* An element's next tile is asked for, read and worked on: ahead of its tokens, which may have to wait for room where they go. */
static int mlo_tile_goes_on(mlo_schedule *s, int i) {
    const mlo_tiling *t = &s->tiling[i];
    const int64_t n = mlo_tile_first(s, i, t->begun);
    if (n >= s->total) return 0;
    const int takes = mlo_tile_takes(s, i), asks = mlo_tile_asks(s, i), reads = mlo_tile_reads(s, i);
    return (t->asked > t->begun && mlo_tile_passes(s, i, n)) || takes || asks || reads;
}

static void mlo_fire_tiles(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t beats = u->out.channels / u->out.lanes, tile = mlo_tile_of(s, i, x->n);
    const int64_t first = mlo_later(t->work + u->latency + MLO_TILE_LEAVES, x->n ? mlo_token_of(s, i, x->n - 1)->out[1] + 1 : 0);
    t->out[0] = mlo_later(first, x->room[0]);
    t->out[1] = mlo_later(t->out[0] + beats - 1, x->room[1]);
    s->tiling[i].left[(tile + 2) & 3] = t->out[1];
}

static void mlo_fire_norm(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_token *before = x->n ? mlo_token_of(s, i, x->n - 1) : NULL;
    int64_t beats = u->in[0].channels / u->in[0].lanes, finish = u->latency - 55 - beats - mlo_clog2(u->pe), sum, taken, waits = 0;
    t->in[0] = mlo_later(x->arrives[0], mlo_accepts(s, i));
    t->in[1] = mlo_later(mlo_later(x->arrives[1], t->in[0] + beats - 1), mlo_norm_goes(s, i, (x->n + 1) * beats - 1 - mlo_norm_keeps(beats), beats) + 1);
    sum = mlo_later(t->in[1] + 3 + mlo_clog2(u->pe), before ? before->work + 1 : 0);
    if (x->at.first) {
        mlo_begins(s, i, 1, &x->at, sum);
        waits = mlo_later(0, x->ready[1] - sum);
    }
    t->work = mlo_later(sum + finish + waits, before ? before->next + 1 : 0);          /* the root begins */
    t->next = taken = mlo_later(t->work + 42, mlo_norm_goes(s, i, x->n * beats - 1, beats));        /* the lanes begin */
    int64_t first = taken + 10, late = 0;
    if (x->at.first) {
        mlo_begins(s, i, 0, &x->at, taken + 3);
        late = 1 + mlo_later(0, x->ready[0] - taken - 5);
    }
    t->out[0] = mlo_later(first + late, x->room[0]);
    t->out[1] = mlo_later(t->out[0] + beats - 1, x->room[1]);
    mlo_spend(s, i, x, t, beats, first + late + beats - 1, waits + late);
}

/* A row of attention: the query is complete at `query`. */
static mlo_scored mlo_fire_row(mlo_schedule *s, int i, const mlo_meet *x, int64_t query, int64_t constants, int64_t room) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_scored none = { 0, 0, 0, 0, 0, 0 };
    int64_t r = s->rows[i]++, groups = u->rows.groups, work = groups * u->rows.steps, at;
    const mlo_scored *rows = s->row[i], *before = r ? &rows[(r - 1) % MLO_ROWS_KEPT] : &none;
    mlo_scored *to = &s->row[i][r % MLO_ROWS_KEPT], now;
    #define MLO_ROW(n) (&rows[(n) % MLO_ROWS_KEPT])
    now.begin = mlo_later(before->score, mlo_later(query, x->frame[0]));
    now.score = now.begin + work;
    at = r * groups + groups - 1 - u->rows.queue;
    if (at >= 0 && at / groups < r) now.score = mlo_later(now.score, MLO_ROW(at / groups)->first + at % groups * u->rows.exps + u->rows.steps);
    now.score = mlo_later(now.score, constants);
    if (r >= 4) now.score = mlo_later(now.score, MLO_ROW(r - 4)->taken + 1);
    now.first = mlo_later(now.score + u->rows.to_max, s->softmax[i]);
    at = r * groups - u->rows.ring;
    if (at >= 0) now.first = mlo_later(now.first, MLO_ROW(at / groups)->mix + 1);
    if (r >= u->rows.waiting) now.first = mlo_later(now.first, MLO_ROW(r - u->rows.waiting)->accept + 1);
    now.taken = now.first + (groups - 1) * u->rows.exps;
    at += groups - 1;
    if (at >= 0) now.taken = mlo_later(now.taken, MLO_ROW(at / groups)->mix + 1 + at % groups * u->rows.exps);
    s->softmax[i] = now.taken + u->rows.exps;
    now.accept = now.taken + u->rows.to_sum + u->rows.exps;
    if (r) now.accept = mlo_later(now.accept, mlo_later(before->accept + u->rows.divide, r > 1 ? MLO_ROW(r - 2)->mix : 0) + 1);
    now.mix = mlo_later(mlo_later(mlo_later(now.accept + u->rows.divide, before->mix), x->frame[1]), room) + work;
    #undef MLO_ROW
    *to = now;
    return now;
}

static void mlo_fire_rows(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    int64_t steps = u->rows.steps, heads = u->rows.heads, beats = heads * steps, accepts = mlo_accepts(s, i), at, room, constants = 0, last;
    mlo_scored row = { 0, 0, 0, 0, 0, 0 };
    t->in[0] = mlo_later(x->arrives[0], accepts);
    for (int64_t h = 0; h < heads; h++) {
        int64_t r = s->rows[i], query = mlo_later(s->query[i] + steps, mlo_beat_at(x->arrives, (h + 1) * steps - 1, beats));
        if (r > 1) query = mlo_later(query, s->row[i][(r - 2) % MLO_ROWS_KEPT].score + steps);
        s->query[i] = query;
        if (h == 1) t->work = query;
        if (h == 2) t->next = query - steps + 1;
        if (x->at.first && !h) {
            int64_t fetch = mlo_later(query, r ? s->row[i][(r - 1) % MLO_ROWS_KEPT].score : 0);
            mlo_begins(s, i, 0, &x->at, fetch + 1);
            constants = mlo_later(fetch, x->ready[0]) + 3;
        }
        at = x->n * beats + (h + 1) * steps - 1 - u->rows.held;
        room = at >= 0 && at / beats < x->n ? mlo_beat_at(mlo_token_of(s, i, at / beats)->out, at % beats, beats) + 1 - (steps - 1) * u->rows.groups : 0;
        row = mlo_fire_row(s, i, x, query, h ? 0 : constants, room);
        if (!h) t->out[0] = row.mix - (steps - 1) * u->rows.groups + u->rows.to_out;
    }
    t->in[1] = mlo_later(s->query[i], t->in[0] + beats - 1);
    last = row.mix + u->rows.to_out;
    t->out[0] = mlo_later(t->out[0], x->room[0]);
    t->out[1] = mlo_later(mlo_later(last, x->room[1]), t->out[0] + beats - 1);
    if (x->at.at == s->c->tokens - 1) {
        int64_t next = x->n / s->c->tokens + 2;
        s->frame_freed[i][0][next & 3] = row.score + 1; s->frame_freed[i][1][next & 3] = row.mix + 1;
    }
    mlo_spend(s, i, x, t, heads * steps * u->rows.groups, last, constants ? x->ready[0] - s->query[i] : 0);
}

/* The loop's way in: the first iteration comes from outside, others from the feedback. 0: not known yet. */
static int mlo_fire_entry(mlo_schedule *s) {
    const mlo_hw *c = s->c;
    const int64_t n = s->fired[c->n_element], beats = c->channels / c->lanes;
    const int end = c->edge[c->n_edge - 1].from;
    int64_t room[2], first, last;
    if (n >= s->total || !mlo_has_room(s, MLO_OUTSIDE, room)) return 0;
    mlo_place p = mlo_place_of(s, n);
    if (p.iteration == 0) {
        first = (p.group * c->frames * c->tokens + p.frame * c->tokens + p.at) * beats + beats + 3;
        last = first + beats - 1;
    } else {
        if (mlo_fired(s, end) <= n - p.size * c->tokens) return 0;
        const mlo_token *from = mlo_token_of(s, end, n - p.size * c->tokens);
        first = from->out[0] + 4; last = from->out[1] + 4;
    }
    mlo_token *t = mlo_token_of(s, MLO_OUTSIDE, n);
    t->out[0] = mlo_later(mlo_later(first, room[0]), n ? mlo_token_of(s, MLO_OUTSIDE, n - 1)->out[1] + 1 : 0);
    t->out[1] = mlo_later(mlo_later(last, room[1]), t->out[0] + beats - 1);
    s->fired[c->n_element]++;
    return 1;
}

/* What the element's next token meets. 0: not known yet. */
static int mlo_meets(mlo_schedule *s, int i, mlo_meet *x) {
    const mlo_hw *c = s->c;
    int64_t when[2];
    x->n = s->fired[i];
    x->arrives[0] = x->arrives[1] = x->frame[0] = x->frame[1] = 0;
    if (x->n >= s->total) return 0;
    x->at = mlo_place_of(s, x->n);
    const mlo_unit *u = &c->element[i].unit;
    if (u->blocks && mlo_tile_of(s, i, x->n) >= s->tiling[i].begun) return 0;
    for (int k = s->begin[0][i]; k < s->begin[0][i + 1]; k++) {
        const mlo_edge *e = &c->edge[s->order[0][k]];
        const int frame = u->whole_frame && e->to_port;
        int64_t n = frame ? x->n - x->at.at + c->tokens - 1 : x->n;
        if (mlo_fired(s, e->from) <= n) return 0;
        mlo_edge_arrives(s, e, n, when);
        if (frame) x->frame[e->to_port - 1] = when[1];
        else { x->arrives[0] = mlo_later(x->arrives[0], when[0]); x->arrives[1] = mlo_later(x->arrives[1], when[1]); }
    }
    return mlo_has_room(s, i, x->room) && mlo_parameters(s, i, &x->at, x->ready);
}

/* All that waited with their beats of a token for an element are told when it took them. */
static void mlo_hold_back(mlo_schedule *s, int i, const mlo_meet *x, const mlo_token *t) {
    for (int k = s->begin[0][i]; k < s->begin[0][i + 1]; k++) {
        const mlo_edge *e = &s->c->edge[s->order[0][k]];
        if (!s->c->element[i].unit.whole_frame || !e->to_port) mlo_held_back(s, e, x->n, t->in);
    }
}

/* Tells of a token that an element is done with. */
static void mlo_passed(mlo_schedule *s, int i, const mlo_meet *x, const mlo_token *t) {
    const mlo_hw *c = s->c;
    const mlo_unit *u = &c->element[i].unit;
    const int64_t frame = x->at.group * c->frames + x->at.frame, before = x->n ? mlo_token_of(s, i, x->n - 1)->out[1] : 0;
    const int matrix = u->flow == MLO_FLOW_MATRIX;      /* its multipliers' cycles, without what is in its pipeline */
    const int64_t last_pass = u->blocks ? u->macs / u->multipliers / u->blocks : 0;
    const mlo_moment what = { i, x->at.iteration, frame, x->at.at, matrix ? t->work - u->interval + 1 : u->blocks ? t->work - last_pass + 1 : mlo_later(t->in[0], before), matrix || u->blocks ? t->work + 1 : t->out[1] };
    if (s->seen) s->seen(s->user, &what);
    if (i == c->edge[c->n_edge - 1].from && x->at.iteration == c->scan.iterations - 1 && x->at.at == c->tokens - 1) s->p->frame_done[frame] = t->out[1] + 3;
}

/* An element handles all the tokens it can. */
static int mlo_fire(mlo_schedule *s, int i) {
    int any = s->c->element[i].unit.blocks && mlo_tile_goes_on(s, i);
    for (mlo_meet x; mlo_meets(s, i, &x); any = 1) {
        mlo_token *t = mlo_token_of(s, i, x.n);
        switch (s->c->element[i].unit.flow) {
        case MLO_FLOW_MATRIX: mlo_fire_matrix(s, i, &x, t); break;
        case MLO_FLOW_TILES:  mlo_fire_tiles(s, i, &x, t); break;
        case MLO_FLOW_NORM:   mlo_fire_norm(s, i, &x, t); break;
        case MLO_FLOW_ROWS:   mlo_fire_rows(s, i, &x, t); break;
        default:              mlo_fire_beats(s, i, &x, t); break;
        }
        s->fired[i]++;
        if (!s->c->element[i].unit.blocks) mlo_hold_back(s, i, &x, t);
        mlo_passed(s, i, &x, t);
        s->free = 0;
    }
    return any;
}

/* Nothing can fire: requests are heard, one after the other (of several at a time, who is behind the latest: mlo_axi_share), until a tile is through, or a memory is
 * there. 0: there are none. */
static int mlo_schedule_hears(mlo_schedule *s) {
    int any = 0, through = 0;
    while (!through && s->next < INT64_MAX) {
        s->now = s->next; s->next = INT64_MAX;
        for (int k = 1, behind = s->turn; k <= s->c->n_element + 1; k++) {
            const int port = (behind + k) % (s->c->n_element + 1), i = port - 1;
            if (port && !s->c->element[i].unit.blocks) continue;
            const int64_t begun = port ? s->tiling[i].begun : s->loaded, waits = port ? s->tiling[i].reader.waits : s->loader.waits;
            if (waits > s->now) { s->next = mlo_sooner(s->next, waits); continue; }
            if (port) while (mlo_tile_goes_on(s, i)) any = 1;
            else any |= mlo_loader_goes_on(s);
            through |= (port ? s->tiling[i].begun : s->loaded) > begun;
        }
    }
    return any;
}

/* Until all tokens are through. If nothing can fire, FIFOs are too shallow for what this model knows of them: then one token goes as if they were deep. */
static void mlo_schedule_run(mlo_schedule *s) {
    const mlo_hw *c = s->c;
    const int end = c->edge[c->n_edge - 1].from;
    for (int stuck = 0; s->fired[end] < s->total && stuck < 2; ) {
        s->next = INT64_MAX;
        int any = mlo_loader_goes_on(s);
        while (mlo_fire_entry(s)) { any = 1; s->free = 0; }
        for (int i = 0; i < c->n_element; i++) any |= mlo_fire(s, i);
        for (int k = 0; s->p->peak && k <= c->n_edge; k++) if (k == c->n_edge || c->edge[k].fifo) mlo_fifo_follow(s, k);
        stuck = any || mlo_schedule_hears(s) ? 0 : stuck + 1;
        s->free = stuck;
    }
}

/* ---- the prediction -------------------------------------------------------------------------------------------------------------- */

static void mlo_schedule_edges(mlo_schedule *s) {
    const mlo_hw *c = s->c;
    for (int k = 0; k < c->n_edge; k++) s->way[k] = mlo_way_of(c, &c->edge[k]);
    for (int side = 0, n = 0; side < 2; side++, n = 0) for (int i = 0; i <= c->n_element; i++) {
        s->begin[side][i] = n;
        for (int k = 0; k < c->n_edge; k++) if ((side ? c->edge[k].from : c->edge[k].to) == (i < c->n_element ? i : MLO_OUTSIDE)) s->order[side][n++] = k;
        s->begin[side][i + 1] = n;
    }
}

static void mlo_schedule_begin(mlo_schedule *s) {
    const mlo_hw *c = s->c;
    mlo_schedule_edges(s);
    for (int i = 0; i < c->n_element; i++) {
        s->first_memory[i] = s->n_memory;
        if (mlo_is_block(&c->element[i])) {
            const int64_t beats = mlo_unit_beats(&c->element[i].unit, c->axi_bits);
            s->tiling[i].beats = beats / c->element[i].unit.blocks;
            s->tiling[i].reader.unit = mlo_burst_unit(c, beats); s->tiling[i].reader.port = i + 1;
        }
        for (int k = 0; k < c->element[i].unit.n_memory && !mlo_is_block(&c->element[i]); k++) { s->resident[s->n_memory] = (char)mlo_is_resident(&c->element[i]); s->beats[s->n_memory++] = mlo_memory_beats(&c->element[i].unit.memory[k], c->axi_bits); }
    }
    s->first_memory[c->n_element] = s->n_memory;
    s->loads = (s->frames + c->frames - 1) / c->frames * c->scan.iterations;
    s->shared = mlo_core_block_beats(c) > 0;
    s->loader.asks = MLO_READ_BEGINS + s->shared;
    s->served = -MLO_MEMORY_GATHERS * (int64_t)c->rate;
    s->loader.unit = mlo_burst_unit(c, s->shared ? 0 : mlo_core_beats_in(c, MLO_EITHER));
    s->now = s->shared ? 0 : INT64_MAX; s->next = INT64_MAX;
}

static void mlo_schedule_end(mlo_schedule *s) {
    const mlo_hw *c = s->c;
    mlo_prediction *p = s->p;
    const int64_t g = c->frames, frames = s->frames;
    p->cycles = p->frame_done[frames - 1];
    p->interval = frames >= 2 * g && frames % g == 0 ? (p->frame_done[frames - 1] - p->frame_done[g - 1]) / (frames - g) : p->cycles / frames;
    for (int i = 0; i < c->n_element; i++) {
        mlo_spent *to = &p->spent[i];
        to->input = mlo_later(0, p->cycles - to->busy - to->blocked - to->parameters);
    }
}

/* Cycles of a run of `frames` frames of the longest length. */
static int mlo_predict_all(mlo *m, const mlo_hw *c, int64_t frames, mlo_prediction *p, int peaks, mlo_moment_seen seen, void *user) {
    int64_t length = 64;
    while (length < 4 * (c->frames + 2) * c->tokens) length *= 2;
    size_t memories = MLO_CORE_MOST * MLO_UNIT_MEMORIES;
    mlo_schedule *s = (mlo_schedule *)mlo_scratch(m, 1, sizeof *s);
    if (!s) return (int)m->error.code;
    memset(s, 0, sizeof *s);
    s->c = c; s->frames = frames; s->total = frames * c->tokens * c->scan.iterations; s->mask = length - 1; s->p = p; s->seen = seen; s->user = user;
    s->ring = (mlo_token *)mlo_scratch(m, (size_t)(c->n_element + 1) * (size_t)length, sizeof *s->ring);
    s->kept = mlo_core_beats_in(c, MLO_LAYER) ? 4 : mlo_most(4, c->scan.iterations);       /* resident memories alone: no bank holds the loader up */
    s->ready = (int64_t *)mlo_scratch(m, memories * (size_t)(s->kept + 5), sizeof *s->ready);
    p->frame_done = MLO_NEW_N(m, int64_t, (size_t)frames); p->spent = MLO_NEW_N(m, mlo_spent, MLO_CORE_MOST); p->peak = peaks ? MLO_NEW_N(m, int64_t, 2 * MLO_CORE_MOST + 1) : NULL;
    if (s->ring && s->ready && p->frame_done && p->spent && (p->peak || !peaks)) {
        memset(s->ready, 0, memories * (size_t)(s->kept + 5) * sizeof *s->ready);
        s->freed = (int64_t (*)[4])(s->ready + memories * (size_t)s->kept); s->begun = (int64_t *)(s->freed + memories);
        mlo_schedule_begin(s);
        mlo_schedule_run(s);
        mlo_schedule_end(s);
    }
    mlo_scratch_free(m, s->ring); mlo_scratch_free(m, s->ready); mlo_scratch_free(m, s);
    return (int)m->error.code;
}
static int mlo_predict(mlo *m, const mlo_hw *c, int64_t frames, mlo_prediction *p) { return mlo_predict_all(m, c, frames, p, 0, NULL, NULL); }
static int mlo_predict_seen(mlo *m, const mlo_hw *c, int64_t frames, mlo_prediction *p, mlo_moment_seen seen, void *user) { return mlo_predict_all(m, c, frames, p, 0, seen, user); }
static int mlo_predict_peaks(mlo *m, const mlo_hw *c, int64_t frames, mlo_prediction *p) { return mlo_predict_all(m, c, frames, p, 1, NULL, NULL); }

/* FIFOs as deep as two groups of frames fill them, unless that takes a cycle more (beats of a token are not quite on a line). */
static int mlo_core_depths(mlo *m, mlo_hw *c) {
    mlo_prediction deep, p;
    mlo_core_fifos(c);
    if (mlo_predict_peaks(m, c, 2 * c->frames, &deep)) return (int)m->error.code;
    mlo_core_shallow(c, deep.peak);
    if (mlo_predict(m, c, 2 * c->frames, &p)) return (int)m->error.code;
    if (p.cycles > deep.cycles) mlo_core_fifos(c);
    return 0;
}

/* Is the steady interval another one than that of the first frames? Frames overlap; resident parameters are there. */
static int mlo_core_warms(const mlo_hw *c) { return c->frames > 1 || mlo_core_resident_beats(c); }

/* A run of as many frames as can be in flight; its interval is that of many more, where that differs. */
static int mlo_predict_steady(mlo *m, const mlo_hw *c, mlo_prediction *p) {
    mlo_prediction twice;
    if (mlo_predict(m, c, c->frames, p) || (mlo_core_warms(c) && mlo_predict(m, c, 2 * c->frames, &twice))) return (int)m->error.code;
    if (mlo_core_warms(c)) p->interval = twice.interval;
    return 0;
}

static void mlo_spent_json(const mlo_spent *s, mlo_text *t) {
    mlo_printf(t, "\"busy\":%lld,\"starved_parameters\":%lld,\"starved_input\":%lld,\"blocked\":%lld", (long long)s->busy, (long long)s->parameters, (long long)s->input, (long long)s->blocked);
}
