/* flow_tiles: a matrix-vector unit in row blocks (--memory block): a tile of tokens in, then a pass
 * over it for every block.
 *
 * in:  tokens of a tile; blocks of weights, as memory gives them.
 * out: when passes begin and end, when results leave.
 *
 * As verilog/mlo_mvu_tiled.v, mlo_tile.v, mlo_untile.v and mlo_refill.v say: two halves of tokens,
 * two banks of a block, two halves of results. The next tile arrives, and the one before leaves,
 * meanwhile. Blocks are asked for when the tile before is stored (mlo_ahead.v), those of a job's first tile with its
 * first token.
 *
 * invariant: work and waits are counted by passes, not by tokens. A tile ends with its group of frames, as is known
 * (mlo_loop.v) when a frame begins; in the first iteration when the next one does, or has not come for a while.
 * example: 197 tokens in tiles of 32 pass each block seven times, which is read as often; four frames of a token once.
 * cost: O(passes and bursts).
 */
/* Cycles, as they are in the Verilog: from a tile's first beat to its request (readers that share
 * memory: one more), or from the last one of the tile before, from a stored token to its
 * multiplication, from a result to its first beat out. */
enum { MLO_TILE_ASKS = 5, MLO_TILE_AHEAD = 6, MLO_TILE_STORES = 2, MLO_TILE_LEAVES = 2 };

/* The number of token n's tile, counted from the first one on. */
static int64_t mlo_tile_of(const mlo_schedule *s, int i, int64_t n) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_place p = mlo_place_of(s, MLO_OUTSIDE, n);
    int64_t tile = s->tiling[i].tiles[p.job - s->job] + p.iteration * mlo_job_tiles(p.job, u);
    if (p.job->iterations > 1) return tile + (n - p.job->begin) % p.job->turn / u->tile;
    for (int64_t f = 0; f < p.frame; f++) tile += mlo_unit_tiles(u, mlo_job_length(p.job, f));
    return tile + p.at / u->tile;
}

/* The first token of an element's tile; s->total behind the last one. */
static int64_t mlo_tile_first(const mlo_schedule *s, int i, int64_t tile) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t *tiles = s->tiling[i].tiles;
    int64_t k = mlo_min(tile / tiles[1], s->n_job - 1);
    if (tile >= tiles[s->n_job]) return s->total;
    while (tiles[k + 1] <= tile) k++;
    while (tiles[k] > tile) k--;
    const mlo_job *j = &s->job[k];
    const int64_t each = (tiles[k + 1] - tiles[k]) / j->iterations;
    int64_t at = (tile - tiles[k]) % each, n = j->begin + (tile - tiles[k]) / each * j->turn;
    for (int64_t f = 0, in;
        j->iterations == 1 && at >= (in = mlo_unit_tiles(u, mlo_job_length(j, f))); f++) {
        at -= in;
        n += mlo_job_length(j, f);
    }
    return n + at * u->tile;
}

/* That of the tile that is worked on: the same is asked again and again. */
static int64_t mlo_tile_next(mlo_schedule *s, int i) {
    mlo_tiling *t = &s->tiling[i];
    if (t->next_of != t->begun + 1) t->next = mlo_tile_first(s, i, t->begun);
    t->next_of = t->begun + 1;
    return t->next;
}

/* How many tokens the tile has that begins with token n. */
static int64_t mlo_tile_size(const mlo_schedule *s, int i, int64_t n) {
    const mlo_place p = mlo_place_of(s, MLO_OUTSIDE, n);
    const int64_t left = p.job->iterations > 1 ? p.job->turn - (n - p.job->begin) % p.job->turn
                                               : p.tokens - p.at;
    return mlo_min(s->c->element[i].unit.tile, left);
}

/* The cycle of token n's last beat, or in which it is known whether its group ends with it. MLO_NOT_YET. */
static int64_t mlo_tile_holds(const mlo_schedule *s, int i, int64_t n) {
    enum { SAYS = 2 };
    const mlo_place p = mlo_place_of(s, MLO_OUTSIDE, n);
    const int64_t came = mlo_token_of(s, i, n)->in[1];
    if (p.iteration || p.at < p.tokens - 1 || p.frame == s->c->frames - 1 || p.job->iterations == 1)
        return came;
    if (p.frame == p.job->frames - 1)
        return mlo_max(
            came, mlo_token_of(s, MLO_OUTSIDE, n)->out[1] + mlo_core_patience(s->c) + SAYS);
    if (mlo_fired(s, MLO_OUTSIDE) <= n + 1) return MLO_NOT_YET;
    return mlo_max(came, mlo_token_of(s, MLO_OUTSIDE, n + 1)->out[0] + SAYS);
}

static int64_t mlo_tiles_accept(const mlo_schedule *s, int i) {
    const int64_t tile = mlo_tile_of(s, i, mlo_taken(s, i)), before = mlo_taken_until(s, i);
    if (tile > s->tiling[i].opened + 1) return MLO_NOT_YET;
    return tile > 1 ? mlo_max(before, s->tiling[i].freed[tile & 3]) : before;
}

/* Where in the image the parameters lie that the tile needs which begins with token n: row blocks
 * are behind all others. */
static int64_t mlo_tile_address(const mlo_schedule *s, int i, int64_t n) {
    const mlo_core *c = s->c;
    int64_t at = s->origin + mlo_core_beats_in(c, MLO_EITHER) * c->scan.iterations
        + mlo_core_block_beats(c) * mlo_place_of(s, MLO_OUTSIDE, n).iteration;
    for (int k = 0; k < i; k++)
        if (mlo_is_block(&c->element[k])) at += mlo_unit_beats(&c->element[k].unit, c->axi_bits);
    return at;
}

/* When the parameters of the tile that begins with token n are asked for: when the tile before is
 * stored, unless that is the last one of a job; then with its own first token. MLO_NOT_YET. */
static int64_t mlo_tile_asked(const mlo_schedule *s, int i, int64_t n) {
    const mlo_place p = mlo_place_of(s, MLO_OUTSIDE, n);
    if (p.iteration || p.at || (p.job->iterations > 1 && p.frame)) {
        const int64_t holds = s->known[i] < n ? MLO_NOT_YET : mlo_tile_holds(s, i, n - 1);
        return holds == MLO_NOT_YET ? holds : holds + MLO_TILE_AHEAD;
    }
    return s->known[i] <= n ? MLO_NOT_YET : mlo_token_of(s, i, n)->in[0] + MLO_TILE_ASKS;
}

/* It is known when, and all that tiles before it need is requested: so are its parameters. 0: not yet. */
static int mlo_tile_asks(mlo_schedule *s, int i) {
    mlo_tiling *t = &s->tiling[i];
    if (t->reader.got < t->asked * t->beats * s->c->element[i].unit.blocks) return 0;
    const int64_t n = mlo_tile_first(s, i, t->asked);
    if (n >= s->total) return 0;
    const int64_t asked = mlo_tile_asked(s, i, n);
    if (asked == MLO_NOT_YET) return 0;
    t->reader.asks = mlo_max(t->reader.asks, asked + s->shared);
    t->address = mlo_tile_address(s, i, n);
    t->asked++;
    return 1;
}

/* The tile that is asked for is read as far as there is room. 0: nothing is. */
static int mlo_tile_reads(mlo_schedule *s, int i) {
    mlo_tiling *t = &s->tiling[i];
    const int64_t end = t->asked * t->beats * s->c->element[i].unit.blocks;
    const int64_t before = t->reader.bursts;
    for (int64_t burst; t->reader.got < end
        && (burst =
                mlo_fetch_asks(s, &t->reader, t->address, end - t->reader.got, t->beats, t->pass));)
        t->address += burst;
    if (t->reader.bursts > before && t->reader.got == end)
        mlo_fetch_goes_on(s, &t->reader, MLO_READ_ANEW);
    return t->reader.bursts > before;
}

/* The first cycle of the pass whose block was dealt out last: weights, channel words, table, in
 * this order. */
typedef struct {
    int64_t work; /* without a table */
    int64_t results;
} mlo_start;
static mlo_start mlo_pass_ready(const mlo_schedule *s, int i) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_fetch *r = &s->tiling[i].reader;
    int64_t ready[MLO_UNIT_MEMORIES] = { 0 }, end = mlo_fetch_last(r).beats;
    for (int k = u->n_memory - 1; k >= 0; k--) {
        ready[k] = mlo_fetch_dealt(s, r, end, 0, 0);
        end -= mlo_memory_beats(&u->memory[k], s->c->axi_bits);
    }
    mlo_start p = { 0, mlo_matrix_begins(u, ready) };
    ready[2] = 0;
    p.work = mlo_matrix_begins(u, ready);
    return p;
}

/* When the pass can be over, or with all but so many of its vectors, as far as results have to
 * leave: behind the multipliers are two halves, for tiles one after the other. If the pipeline
 * stood still before the pass began, only a group of it is made. MLO_NOT_YET if it is not known
 * when tiles in front have left. */
static int64_t mlo_pass_leaves(const mlo_schedule *s, int i, int64_t tokens, int64_t less) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_tiling *t = &s->tiling[i];
    const int64_t beats = mlo_port_beats(u->out);
    const int64_t results = beats / u->blocks;
    const int64_t done = (t->reader.portions - t->begun * u->blocks) * tokens;
    const int stood = t->begin - t->end > mlo_matrix_to_end(u) + 1 + (u->n_memory > 2);
    int64_t at = (done - less) * results - 1, first = (done - tokens) * results;
    for (int64_t tile = t->begun, size; tile > 1; at += size, first += size) {
        const int64_t alone = stood && first > 2, left = t->left[tile-- % MLO_TILES_LEFT] + 1;
        if (at >= (alone ? first + 1 : mlo_matrix_held(u))) {
            if (s->fired[i] < mlo_tile_first(s, i, tile)) return MLO_NOT_YET;
            return alone ? left + (at - first) * mlo_port_beats(u->in[0]) - mlo_matrix_to_turn(u)
                         : mlo_matrix_resumes(u, at, left);
        }
        size = mlo_tile_size(s, i, mlo_tile_first(s, i, tile)) * beats;
    }
    return 0;
}

/* The next pass over a tile's tokens begins, whose block has been read: it is dealt out when its
 * bank is free. Few results wait for their table in the pipeline. */
static void mlo_pass_begin(mlo_schedule *s, int i, int64_t n, int64_t tokens) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_tiling *t = &s->tiling[i];
    const int64_t in = mlo_port_beats(u->in[0]), results = mlo_port_beats(u->out) / u->blocks;
    const int first = t->reader.portions == t->begun * u->blocks;
    mlo_fetch_deals(s, &t->reader, t->beats, t->pass);
    const mlo_start ready = mlo_pass_ready(s, i);
    t->pass = mlo_max(t->end + 1, first ? mlo_tile_holds(s, i, n) + in + MLO_TILE_STORES : 0);
    t->begin = mlo_max(
        t->pass, tokens * results <= mlo_matrix_held(u) - 3 ? ready.work : ready.results);
    t->late = mlo_max(0, ready.results - t->begin);
    t->ideal = t->begin + tokens * results * in;
    for (int64_t k = 1; k < tokens && first; k++)
        t->ideal = mlo_max(t->ideal,
            mlo_tile_holds(s, i, n + k) + in + MLO_TILE_STORES - 1 + (tokens - k) * results * in);
    t->works = 1;
    s->p->spent[i].parameters += t->begin - t->pass;
    s->p->spent[i].busy += tokens * results * in;
}

/* It is over when its results could leave. 0: that is not known yet. */
static int mlo_pass_end(mlo_schedule *s, int i, int64_t n, int64_t tokens) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_tiling *t = &s->tiling[i];
    const int64_t leaves = mlo_pass_leaves(s, i, tokens, 0);
    const int64_t blocked = mlo_max(0, leaves - t->ideal);
    const int64_t work = mlo_port_beats(u->in[0]) * (mlo_port_beats(u->out) / u->blocks);
    if (leaves == MLO_NOT_YET) return 0;
    for (int64_t k = 0; k < tokens; k++)
        mlo_token_of(s, i, n + k)->work = t->begin + (k + 1) * work + mlo_max(blocked, t->late);
    t->before = t->end;
    t->end = t->ideal + blocked;
    t->works = 0;
    s->p->spent[i].blocked += blocked;
    return 1;
}

/* Do its passes say when its half is free, which is not known yet: is the last but one over? */
static int mlo_tile_may_open(const mlo_tiling *t, const mlo_unit *u) {
    const int64_t over = t->reader.portions - t->works - t->begun * u->blocks;
    return t->opened <= t->begun && over >= u->blocks - 1;
}

/* Has the block come that is passed next? */
static int mlo_tile_has_block(const mlo_tiling *t) {
    return (t->reader.portions + 1) * t->beats <= t->reader.got;
}

/* A tile's half is free when the last vector of the last pass is with the multipliers, which take
 * it when they are done with the one before the one before: where that is of the pass before, the
 * last one need not have begun. 0: it is not known when. */
static int mlo_tile_opens(mlo_schedule *s, int i, int64_t n, int64_t tokens) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_tiling *t = &s->tiling[i];
    const int64_t in = mlo_port_beats(u->in[0]);
    if (!mlo_tile_may_open(t, u) || (tokens > 2 && !t->works)) return 0;
    const int64_t leaves = tokens > 2 ? mlo_pass_leaves(s, i, tokens, 2) : 0;
    if (leaves == MLO_NOT_YET) return 0;
    const int64_t done = tokens > 2
        ? mlo_max(leaves, t->ideal - 2 * in * (mlo_port_beats(u->out) / u->blocks))
        : tokens > 1 ? t->end
                     : t->before;
    t->freed[(t->begun + 2) & 3] = in
        + mlo_max(done, mlo_tile_holds(s, i, n + tokens - 1) + MLO_TILE_STORES + in);
    t->opened = t->begun + 1;
    return 1;
}

/* Tells of a tile's parameters. */
static void mlo_tile_loaded(mlo_schedule *s, int i, int64_t n) {
    const mlo_tiling *t = &s->tiling[i];
    const mlo_place at = mlo_place_of(s, MLO_OUTSIDE, n);
    const int64_t beats = t->beats;
    const int64_t end = t->reader.portions * beats;
    const int64_t first = end - s->c->element[i].unit.blocks * beats + 1;
    const mlo_moment what = { i, at.iteration, at.job->frame + at.frame, -1,
        mlo_fetch_has(s, &t->reader, first) - mlo_min(beats, t->reader.unit),
        mlo_fetch_has(s, &t->reader, end) };
    if (s->seen) s->seen(s->user, &what);
}

/* Passes of a tile whose tokens have come, as far as blocks are read: `work` of its tokens is when
 * the last one is done with each. 0: none is. */
static int mlo_tile_passes(mlo_schedule *s, int i, int64_t n) {
    mlo_tiling *t = &s->tiling[i];
    const int64_t end = (t->begun + 1) * s->c->element[i].unit.blocks;
    int any = 0;
    if (!t->works && t->reader.portions < end && !mlo_tile_has_block(t)
        && !mlo_tile_may_open(t, &s->c->element[i].unit))
        return 0;
    const int64_t tokens = mlo_tile_size(s, i, n);
    if (s->known[i] < n + tokens || mlo_tile_holds(s, i, n + tokens - 1) == MLO_NOT_YET) return 0;
    for (int goes = 1; goes; any |= goes) {
        goes = mlo_tile_opens(s, i, n, tokens);
        if (t->works)
            goes |= mlo_pass_end(s, i, n, tokens);
        else if (t->reader.portions < end && mlo_tile_has_block(t)) {
            mlo_pass_begin(s, i, n, tokens);
            goes = 1;
        }
    }
    if (!t->works && t->reader.portions == end) {
        mlo_tile_loaded(s, i, n);
        t->begun++;
    }
    return any;
}

/* An element's next tile is asked for, read and worked on: ahead of its tokens, which may have to
 * wait for room where they go. */
static int mlo_tile_goes_on(mlo_schedule *s, int i) {
    mlo_tiling *t = &s->tiling[i];
    if (mlo_fetch_rests(s, &t->reader)) return 0;
    const int64_t n = mlo_tile_next(s, i);
    if (n >= s->total) return 0;
    const int64_t over = t->begun + t->opened;
    const int takes = !mlo_is_tried(s, i) && mlo_admits(s, i), asks = mlo_tile_asks(s, i);
    const int reads = mlo_tile_reads(s, i);
    const int passes = t->asked > t->begun && mlo_tile_passes(s, i, n);
    const int any = takes || asks || passes || reads;
    if (takes || t->begun + t->opened > over) s->bus->news++;
    t->reader.rests = any ? 0 : s->bus->news + 1;
    return any;
}

static int mlo_tiles_ready(const mlo_schedule *s, int i, int64_t n) {
    return mlo_token_ready(s, i, n) && mlo_tile_of(s, i, n) < s->tiling[i].begun;
}

static void mlo_tiles_fire(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t tile = mlo_tile_of(s, i, x->n);
    const int64_t first = mlo_max(t->work + u->latency + MLO_TILE_LEAVES,
        x->n ? mlo_token_of(s, i, x->n - 1)->out[1] + 1 : 0);
    t->soon = first;
    t->out[0] = mlo_max(first, x->room[0]);
    t->out[1] = mlo_max(t->out[0] + s->span[i], x->room[1]);
    s->tiling[i].left[(tile + 2) % MLO_TILES_LEFT] = t->out[1];
}

/* The last pass is. */
static void mlo_tiles_work(const mlo_unit *u, const mlo_token *t, int64_t before, int64_t when[2]) {
    (void)before;
    when[0] = t->work - u->macs / u->multipliers / u->blocks + 1;
    when[1] = t->work + 1;
}

static const mlo_flow_verbs mlo_flow_tiles = {
    .opens = mlo_token_opens,
    .accepts = mlo_tiles_accept,
    .takes = mlo_token_takes,
    .enters = mlo_token_enters,
    .resumes = mlo_token_opens,
    .makes = mlo_token_makes,
    .admits = mlo_token_admit,
    .prepares = mlo_tile_goes_on,
    .is_ready = mlo_tiles_ready,
    .fires = mlo_tiles_fire,
    .works = mlo_tiles_work,
    .passes = 1,
};
