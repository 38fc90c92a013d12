/* schedule_fire: how tokens go through an element.
 *
 * in:  a token whose beats' arrival is known, and the room for its result.     out: when its beats
 * are taken, worked on and leave. Five kinds of elements, as their Verilog's headers describe them:
 *     beats    (Add, Requant, split)  a beat in, a beat out, a pipeline between that holds as many
 *     as it is long
 *     matrix   (MVU)          a whole token in, then its interval of work; the next token arrives
 *     meanwhile
 *     tiles    (MVU in row blocks)  a tile of tokens in, then a pass over it for every block; the
 *     next tile arrives, the one before leaves meanwhile
 *     norm     (LayerNorm)    sums as the token arrives, root and reciprocal, normalising: three
 *     tokens at a time
 *     rows     (attention)    a frame of keys and values, then a row per query token and head:
 *     scores, softmax, division, sum
 * invariant: an element that is blocked takes what its pipeline holds, and no beat more. That is
 *     known before it is known when its results leave: so elements in front go on, and ask for
 *     their parameters, while nothing is known yet of those behind.
 * example: an MVU of K/SIMD = 8 and N/PE = 8 takes a token every 64 cycles, the first beat of
 *     which leaves 8 + latency cycles after the last one came.
 * cost: O(1) a token; attention: O(heads).
 */
/* Cycles, as they are in the Verilog: from a matrix's last turn to its result (segment B of
 * mlo_mvu), from its table to that; from a tile's first beat to its request (readers that share
 * memory: one more), from a stored token to its multiplication, from a result to its first beat out. */
enum {
    MLO_MATRIX_RESULT = 8,
    MLO_MATRIX_LOOKS_UP = 3,
    MLO_TILE_ASKS = 5,
    MLO_TILE_STORES = 2,
    MLO_TILE_LEAVES = 2
};

/* What a token meets at an element. */
typedef struct {
    int64_t n, arrives[2], room[3], ready[MLO_UNIT_MEMORIES], frame[2];
    mlo_place at;
} mlo_meet;

/* Of a token: cycles of work, when its last beat could leave, and how long it waited for parameters. */
static void mlo_spend(
    mlo_schedule *s, int i, mlo_token *t, int64_t busy, int64_t ideal, int64_t parameters) {
    s->busy[i] = busy;
    t->ideal = ideal;
    t->waited = mlo_max(0, parameters);
}

/* Adds up what tokens waited for that no one holds back any more: all but the latest ones, in the
 * end all. Time that goes by between the last beats of two tokens is work, then room, then
 * parameters; what is left is input's. (In row blocks that is known of passes.) */
static void mlo_settle(mlo_schedule *s, int i, int64_t latest) {
    for (; s->settled[i] < s->fired[i] - latest; s->settled[i]++) {
        const mlo_token *t = mlo_token_of(s, i, s->settled[i]);
        mlo_spent *to = &s->p->spent[i];
        if (s->c->element[i].unit.flow == MLO_FLOW_TILES) continue;
        const int64_t before = s->settled[i] ? mlo_token_of(s, i, s->settled[i] - 1)->out[1] : 0;
        const int64_t idle = mlo_max(0, t->out[1] - before - s->busy[i]);
        const int64_t blocked = mlo_min(idle, t->out[1] - t->ideal);
        to->busy += s->busy[i];
        to->blocked += blocked;
        to->parameters += mlo_min(idle - blocked, t->waited);
    }
}

/* A token's beats go into the pipeline; its parameters may have to come first. next: when the last
 * one would, if the pipeline took it. */
static void mlo_beats_enter(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_element *e = &s->c->element[i];
    const int64_t latency = mlo_pipeline(e);
    t->work = t->in[0] = mlo_max(x->arrives[0], mlo_accepts(s, i));
    if (e->kernel && x->at.first) {
        t->work++;
        for (int k = 0; k < e->unit.n_memory; k++) {
            const int64_t used = t->in[0] + 1 + (k ? latency - 2 : 0);
            mlo_begins(s, i, k, &x->at, used);
            t->work = mlo_max(t->work, t->in[0] + 1 + x->ready[k] - used);
        }
    }
    t->next = t->in[1] = mlo_max(x->arrives[1], t->work + mlo_beats_out(e) - 1);
    t->ideal = mlo_entered(s, i, x->n, mlo_beats_out(e) - 1) + latency;
}

static void mlo_fire_beats(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_element *e = &s->c->element[i];
    const int64_t beats = mlo_beats_out(e);
    const int64_t latency = mlo_pipeline(e);
    const int64_t narrow = e->kernel ? 0 : mlo_split_waits(s, i, beats - 1);
    if (s->known[i] <= x->n) mlo_beats_enter(s, i, x, t);
    const int64_t first = t->work + latency;
    const int64_t last = mlo_max(t->next + latency, first + beats - 1 + narrow);
    t->soon = first;
    t->out[0] = mlo_max(first, x->room[0]);
    t->out[1] = mlo_max(mlo_max(last, x->room[1]), t->out[0] + s->span[i]);
    t->in[1] = mlo_max(
        t->in[1], mlo_leaves(s, i, x->n * beats + beats - 1 - latency - 1, beats) + 1);
    mlo_spend(s, i, t, beats, mlo_max(t->ideal, first + beats - 1 + narrow),
        e->kernel && x->at.first ? t->work - t->in[0] - 1 : 0);
}

/* Results in the pipeline behind the sums. When those cannot leave, nothing moves: the last sum is
 * made when the result so many before it leaves. */
static int64_t mlo_matrix_holds(const mlo_unit *u) {
    return u->latency / mlo_port_beats(u->in[0]) + 2;
}
static void mlo_matrix_freezes(mlo_schedule *s, int i, int64_t n) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_token *t = mlo_token_of(s, i, n);
    int64_t beats = mlo_port_beats(u->out);
    t->work = mlo_max(
        t->work, mlo_leaves(s, i, n * beats + beats - 1 - mlo_matrix_holds(u), beats));
}

/* From a slot's issue to its group's first turn. */
static int64_t mlo_matrix_to_turn(const mlo_unit *u) {
    return u->latency - MLO_MATRIX_RESULT - u->turns - (u->n_memory > 2);
}

/* From a group's first turn to its result at the pipeline's end; results that are made when one
 * cannot leave: two in the skid, one before it, those in the pipeline behind, as far apart as they
 * were made, and a group's sums. */
static int64_t mlo_matrix_to_result(const mlo_unit *u) {
    return u->turns + MLO_MATRIX_RESULT + (u->n_memory > 2);
}
static int64_t mlo_matrix_held(const mlo_unit *u) {
    return 4 + mlo_matrix_to_result(u) / mlo_port_beats(u->in[0]);
}

/* When the last slot of result `at` is issued, if result 0 has to wait until `leaves`: that
 * group's sums are taken when the turns of the one in front are over. */
static int64_t mlo_matrix_resumes(const mlo_unit *u, int64_t at, int64_t leaves) {
    const int64_t in = mlo_port_beats(u->in[0]);
    const int64_t behind = at - mlo_matrix_held(u);
    const int64_t late = mlo_max(0, u->turns - mlo_matrix_to_result(u) % in);
    return behind < 0 ? 0 : leaves + late + (behind + 1) * in - mlo_matrix_to_turn(u);
}

/* While the first result waits for its table, sums are made until a group is complete that finds
 * no turn: so many cycles it is ahead then. It is not taken before the turns of the group in front
 * are over. */
static int64_t mlo_matrix_ahead(const mlo_unit *u) {
    const int64_t in = mlo_port_beats(u->in[0]), waits = u->turns + MLO_MATRIX_RESULT - 1;
    return mlo_min(mlo_parts(waits, in) * in - waits, in - u->turns);
}

/* The first cycle of work for which parameters are there in time: of weights, channel words and
 * table only the first are needed at once. */
static int64_t mlo_matrix_begins(const mlo_unit *u, const int64_t ready[MLO_UNIT_MEMORIES]) {
    const int64_t to_words = mlo_port_beats(u->in[0]) + mlo_matrix_to_turn(u);
    return mlo_max(mlo_max(ready[0], ready[1] + 1 - to_words),
        ready[2] - to_words - u->turns - (MLO_MATRIX_RESULT + 1 - MLO_MATRIX_LOOKS_UP)
            - mlo_matrix_ahead(u));
}

static void mlo_fire_matrix(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_token *before = x->n ? mlo_token_of(s, i, x->n - 1) : NULL;
    const int64_t in = mlo_port_beats(u->in[0]);
    int64_t start = mlo_max(t->in[1], before ? before->work : 0) + 1, waits = 0;
    if (x->at.first) {
        /* the turns of the token before are over */
        int64_t swap = mlo_matrix_to_turn(u) + mlo_max(start, before ? before->work + u->turns : 0);
        mlo_begins(s, i, 0, &x->at, start);
        mlo_begins(s, i, 1, &x->at, swap);
        mlo_begins(s, i, 2, &x->at, swap + MLO_MATRIX_RESULT);
        start++;
        waits = mlo_matrix_begins(u, x->ready) + 1 - start;
        start += mlo_max(0, waits);
    }
    const int64_t table = x->at.first && u->n_memory > 2 ? x->ready[2] + MLO_MATRIX_LOOKS_UP : 0;
    const int64_t ideal = start + u->interval - 1;
    t->soon = mlo_max(start + in - 1 + u->latency, table);
    t->out[0] = mlo_max(t->soon, x->room[0]);
    t->work = mlo_max(
        ideal, mlo_matrix_resumes(u, u->interval / in - 1, mlo_max(t->out[0], x->room[2])));
    t->out[1] = mlo_max(mlo_max(t->work + u->latency, x->room[1]), t->out[0] + s->span[i]);
    mlo_matrix_freezes(s, i, x->n);
    mlo_spend(s, i, t, u->interval, ideal + u->latency, waits);
}

/* Where an element's token n stands, and when its parameters are there. 0: not known yet. */
static int mlo_stands(mlo_schedule *s, int i, int64_t n, mlo_meet *x) {
    x->n = n;
    x->at = mlo_place_of(s, n);
    return mlo_parameters(s, i, &x->at, x->ready);
}

/* And when its beats come. */
static int mlo_comes(mlo_schedule *s, int i, int64_t n, mlo_meet *x) {
    int64_t when[2];
    x->arrives[0] = x->arrives[1] = x->frame[0] = x->frame[1] = 0;
    if (n >= s->total) return 0;
    for (int k = s->begin[0][i]; k < s->begin[0][i + 1]; k++) {
        const mlo_edge *e = &s->c->edge[s->order[0][k]];
        const int frame = s->c->element[i].unit.whole_frame && e->to_port;
        const int64_t last = frame ? n - n % s->c->tokens + s->c->tokens - 1 : n;
        if (mlo_fired(s, e->from) <= last) return 0;
        if (!mlo_edge_comes(s, e, last, when)) return 0;
        if (frame)
            x->frame[e->to_port - 1] = when[1];
        else {
            x->arrives[0] = mlo_max(x->arrives[0], when[0]);
            x->arrives[1] = mlo_max(x->arrives[1], when[1]);
        }
    }
    return mlo_stands(s, i, n, x);
}

/* Token n's beats that were taken later than they came held their producer back, whose next token,
 * where there is no FIFO, has mostly not fired yet (if it has, its own wait holds this one). */
static void mlo_held_back(mlo_schedule *s, const mlo_edge *e, int64_t n, const int64_t in[2]) {
    int64_t when[2];
    if (e->fifo || e->from == MLO_OUTSIDE) return;
    if (!mlo_edge_comes(s, e, n, when)) return;
    mlo_token *from = mlo_token_of(s, e->from, n);
    const int64_t late = mlo_max(0, in[1] - when[1]);
    if (in[0] > when[0])
        from->out[0] = mlo_min(from->out[0] + in[0] - when[0], from->out[1] + late);
    from->out[1] += late;
    if (late && s->c->element[e->from].unit.flow == MLO_FLOW_MATRIX)
        mlo_matrix_freezes(s, e->from, n);
}

/* All that waited with their beats of a token for an element are told when it took them. */
static void mlo_hold_producers(mlo_schedule *s, int i, const mlo_meet *x, const mlo_token *t) {
    for (int k = s->begin[0][i]; k < s->begin[0][i + 1]; k++) {
        const mlo_edge *e = &s->c->edge[s->order[0][k]];
        if (!s->c->element[i].unit.whole_frame || !e->to_port) mlo_held_back(s, e, x->n, t->in);
    }
}

/* Tokens are taken as they come and there is room for them, ahead of those whose results leave. 0:
 * none is. (Attention takes its queries as it works on them.) */
static int mlo_takes(mlo_schedule *s, int i) {
    const mlo_element *e = &s->c->element[i];
    const mlo_flow flow = e->unit.flow;
    const int opens = flow == MLO_FLOW_BEATS || flow == MLO_FLOW_NORM;
    const int64_t beats = e->kernel ? mlo_port_beats(e->unit.in[0]) : mlo_beats_out(e);
    int any = 0;
    for (mlo_meet x; flow != MLO_FLOW_ROWS; any = 1) {
        const int64_t n = mlo_taken(s, i);
        if (!mlo_comes(s, i, n, &x)) break;
        mlo_token *t = mlo_token_of(s, i, n);
        const int64_t open = mlo_accepts(s, i);
        const int64_t last = opens && open != MLO_NOT_YET
            ? mlo_opens(s, i, n * beats + beats - 1, beats)
            : 0;
        if (open == MLO_NOT_YET || last == MLO_NOT_YET) break;
        if (flow == MLO_FLOW_BEATS)
            mlo_beats_enter(s, i, &x, t);
        else {
            t->in[0] = mlo_max(x.arrives[0], open);
            t->in[1] = mlo_max(x.arrives[1], t->in[0] + beats - 1);
        }
        t->in[1] = mlo_max(t->in[1], last);
        s->known[i] = n + 1;
        mlo_hold_producers(s, i, &x, t);
    }
    return any;
}

/* The first token of an element's tile; how many tokens the one has that begins with token n. */
static int64_t mlo_tile_first(const mlo_schedule *s, int i, int64_t tile) {
    const int64_t tiles = mlo_unit_tiles(&s->c->element[i].unit, s->c->tokens);
    return tile / tiles * s->c->tokens + tile % tiles * s->c->element[i].unit.tile;
}
static int64_t mlo_tile_size(const mlo_schedule *s, int i, int64_t n) {
    return mlo_min(s->c->element[i].unit.tile, s->c->tokens - n % s->c->tokens);
}

/* Where in the image the parameters lie that the tile needs which begins with token n: row blocks
 * are behind all others. */
static int64_t mlo_tile_address(const mlo_schedule *s, int i, int64_t n) {
    const mlo_core *c = s->c;
    int64_t at = mlo_core_beats_in(c, MLO_EITHER) * c->scan.iterations
        + mlo_core_block_beats(c) * mlo_place_of(s, n).iteration;
    for (int k = 0; k < i; k++)
        if (mlo_is_block(&c->element[k])) at += mlo_unit_beats(&c->element[k].unit, c->axi_bits);
    return at;
}

/* The next tile's first token is taken, and all that tiles before it need is requested: so are its
 * parameters. 0: not yet. */
static int mlo_tile_asks(mlo_schedule *s, int i) {
    mlo_tiling *t = &s->tiling[i];
    const int64_t n = mlo_tile_first(s, i, t->asked);
    if (s->known[i] <= n || t->reader.got < t->asked * t->beats * s->c->element[i].unit.blocks)
        return 0;
    t->reader.asks = mlo_max(
        t->reader.asks, mlo_token_of(s, i, n)->in[0] + MLO_TILE_ASKS + s->shared);
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
    return t->reader.bursts > before;
}

/* The first cycle of the pass whose block was dealt out last: weights, channel words, table, in
 * this order; without a table, too. */
typedef struct {
    int64_t work, results;
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
    const int stood = t->begin - t->end > mlo_matrix_to_result(u);
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
    t->pass = mlo_max(t->end + 1, first ? mlo_token_of(s, i, n)->in[1] + in + MLO_TILE_STORES : 0);
    t->begin = mlo_max(
        t->pass, tokens * results <= mlo_matrix_held(u) - 2 ? ready.work : ready.results);
    t->late = mlo_max(0, ready.results - t->begin);
    t->ideal = t->begin + tokens * results * in;
    for (int64_t k = 1; k < tokens && first; k++)
        t->ideal = mlo_max(t->ideal,
            mlo_token_of(s, i, n + k)->in[1] + in + MLO_TILE_STORES - 1
                + (tokens - k) * results * in);
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

/* A tile's half is free when the last vector of the last pass is with the multipliers, which take
 * it when they are done with the one before the one before: where that is of the pass before, the
 * last one need not have begun. 0: it is not known when. */
static int mlo_tile_opens(mlo_schedule *s, int i, int64_t n, int64_t tokens) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_tiling *t = &s->tiling[i];
    const int64_t in = mlo_port_beats(u->in[0]);
    const int64_t over = t->reader.portions - t->works - t->begun * u->blocks;
    const int64_t leaves = tokens > 2 ? mlo_pass_leaves(s, i, tokens, 2) : 0;
    if (t->opened > t->begun || over < u->blocks - 1 || (tokens > 2 && !t->works)
        || leaves == MLO_NOT_YET)
        return 0;
    const int64_t done = tokens > 2
        ? mlo_max(leaves, t->ideal - 2 * in * (mlo_port_beats(u->out) / u->blocks))
        : tokens > 1 ? t->end
                     : t->before;
    t->freed[(t->begun + 2) & 3] = in
        + mlo_max(done, mlo_token_of(s, i, n + tokens - 1)->in[1] + MLO_TILE_STORES + in);
    t->opened = t->begun + 1;
    return 1;
}

/* Tells of a tile's parameters. */
static void mlo_tile_loaded(mlo_schedule *s, int i, int64_t n) {
    const mlo_tiling *t = &s->tiling[i];
    const mlo_place at = mlo_place_of(s, n);
    const int64_t beats = t->beats;
    const int64_t end = t->reader.portions * beats;
    const int64_t first = end - s->c->element[i].unit.blocks * beats + 1;
    const mlo_moment what = { i, at.iteration, at.group * s->c->frames + at.frame, -1,
        mlo_fetch_has(s, &t->reader, first) - mlo_min(beats, t->reader.unit),
        mlo_fetch_has(s, &t->reader, end) };
    if (s->seen) s->seen(s->user, &what);
}

/* Passes of a tile whose tokens have come, as far as blocks are read: `work` of its tokens is when
 * the last one is done with each. 0: none is. */
static int mlo_tile_passes(mlo_schedule *s, int i, int64_t n) {
    mlo_tiling *t = &s->tiling[i];
    const int64_t tokens = mlo_tile_size(s, i, n);
    const int64_t end = (t->begun + 1) * s->c->element[i].unit.blocks;
    int any = 0;
    if (s->known[i] < n + tokens) return 0;
    for (int goes = 1; goes; any |= goes) {
        goes = mlo_tile_opens(s, i, n, tokens);
        if (t->works)
            goes |= mlo_pass_end(s, i, n, tokens);
        else if (t->reader.portions < end && (t->reader.portions + 1) * t->beats <= t->reader.got) {
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
    const mlo_tiling *t = &s->tiling[i];
    const int64_t n = mlo_tile_first(s, i, t->begun);
    if (n >= s->total) return 0;
    const int takes = mlo_takes(s, i), asks = mlo_tile_asks(s, i), reads = mlo_tile_reads(s, i);
    return (t->asked > t->begun && mlo_tile_passes(s, i, n)) || takes || asks || reads;
}

static void mlo_fire_tiles(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t tile = mlo_tile_of(s, i, x->n);
    const int64_t first = mlo_max(t->work + u->latency + MLO_TILE_LEAVES,
        x->n ? mlo_token_of(s, i, x->n - 1)->out[1] + 1 : 0);
    t->soon = first;
    t->out[0] = mlo_max(first, x->room[0]);
    t->out[1] = mlo_max(t->out[0] + s->span[i], x->room[1]);
    s->tiling[i].left[(tile + 2) % MLO_TILES_LEFT] = t->out[1];
}

/* When a token whose root has begun is next for the lanes: the root is there, and the token before
 * has gone to them. */
static int64_t mlo_norm_loads(const mlo_schedule *s, int i, int64_t n, int64_t beats) {
    return mlo_max(mlo_token_of(s, i, n)->work + 42, mlo_norm_goes(s, i, n * beats - 1, beats));
}

/* When a norm has a token's sums, and works on them. */
static int64_t mlo_norm_sums(const mlo_schedule *s, int i, int64_t n) {
    return mlo_max(mlo_token_of(s, i, n)->in[1] + 3 + mlo_clog2(s->c->element[i].unit.pe),
        n ? mlo_token_of(s, i, n - 1)->work + 1 : 0);
}

/* A token's root begins, and then the lanes, as soon as it is known when the tokens in front
 * leave. 0: it is not. Eight stages stand still together when two beats behind them wait: so does
 * a gap between tokens, and they hold the fewer beats. */
static int mlo_norm_begins(mlo_schedule *s, int i) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t n = s->lanes[i];
    const int64_t beats = mlo_port_beats(u->in[0]);
    const int64_t finish = u->latency - 55 - beats - mlo_clog2(u->pe);
    const int64_t first = n * beats;
    const int64_t left = s->fired[i] * beats;
    mlo_token *t = mlo_token_of(s, i, n);
    mlo_meet x;
    if (n >= s->known[i] || first - 1 - MLO_NORM_HOLDS >= left || !mlo_stands(s, i, n, &x))
        return 0;
    const int64_t sums = mlo_norm_sums(s, i, n);
    t->work = mlo_max((x.at.first ? mlo_max(sums, x.ready[1]) : sums) + finish,
        n ? mlo_norm_loads(s, i, n - 1, beats) + 1 : 0);
    const int64_t loads = mlo_norm_loads(s, i, n, beats);
    const int64_t gap = loads - mlo_norm_goes(s, i, first - 1, beats);
    const int64_t at = first - mlo_max(3, MLO_NORM_HOLDS - gap);
    if (at >= left) return 0;
    t->next = mlo_max(loads, mlo_leaves(s, i, at, beats));
    mlo_begins(s, i, 1, &x.at, sums);
    s->lanes[i]++;
    return 1;
}

static void mlo_fire_norm(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t beats = mlo_port_beats(u->in[0]);
    const int64_t late = x->at.first ? 1 + mlo_max(0, x->ready[0] - t->next - 5) : 0;
    const int64_t first = t->next + 10 + late;
    mlo_begins(s, i, 0, &x->at, t->next + 3);
    t->soon = first;
    t->out[0] = mlo_max(first, x->room[0]);
    t->out[1] = mlo_max(t->out[0] + s->span[i], x->room[1]);
    mlo_spend(s, i, t, beats, first + beats - 1,
        late + (x->at.first ? mlo_max(0, x->ready[1] - mlo_norm_sums(s, i, x->n)) : 0));
}

/* A row of attention: the query is complete at `query`. */
static mlo_scored mlo_fire_row(
    mlo_schedule *s, int i, const mlo_meet *x, int64_t query, int64_t constants, int64_t room) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_scored none = { 0, 0, 0, 0, 0, 0 };
    int64_t r = s->rows[i]++, groups = u->rows.groups, work = groups * u->rows.steps, at;
    const mlo_scored *rows = s->row[i], *before = r ? &rows[(r - 1) % MLO_ROWS_KEPT] : &none;
    mlo_scored *to = &s->row[i][r % MLO_ROWS_KEPT], now;
#define MLO_ROW(n) (&rows[(n) % MLO_ROWS_KEPT])
    now.begin = mlo_max(before->score, mlo_max(query, x->frame[0]));
    now.score = now.begin + work;
    at = r * groups + groups - 1 - u->rows.queue;
    if (at >= 0 && at / groups < r)
        now.score = mlo_max(
            now.score, MLO_ROW(at / groups)->first + at % groups * u->rows.exps + u->rows.steps);
    now.score = mlo_max(now.score, constants);
    if (r >= 4) now.score = mlo_max(now.score, MLO_ROW(r - 4)->taken + 1);
    now.first = mlo_max(now.score + u->rows.to_max, s->softmax[i]);
    at = r * groups - u->rows.ring;
    if (at >= 0) now.first = mlo_max(now.first, MLO_ROW(at / groups)->mix + 1);
    if (r >= u->rows.waiting)
        now.first = mlo_max(now.first, MLO_ROW(r - u->rows.waiting)->accept + 1);
    now.taken = now.first + (groups - 1) * u->rows.exps;
    at += groups - 1;
    if (at >= 0)
        now.taken = mlo_max(now.taken, MLO_ROW(at / groups)->mix + 1 + at % groups * u->rows.exps);
    s->softmax[i] = now.taken + u->rows.exps;
    now.accept = now.taken + u->rows.to_sum + u->rows.exps;
    if (r)
        now.accept = mlo_max(now.accept,
            mlo_max(before->accept + u->rows.divide, r > 1 ? MLO_ROW(r - 2)->mix : 0) + 1);
    now.mix = mlo_max(mlo_max(mlo_max(now.accept + u->rows.divide, before->mix), x->frame[1]), room)
        + work;
#undef MLO_ROW
    *to = now;
    return now;
}

static void mlo_fire_rows(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    int64_t at, room, last;
    int64_t steps = u->rows.steps;
    int64_t heads = u->rows.heads;
    int64_t beats = heads * steps;
    int64_t accepts = mlo_accepts(s, i);
    int64_t constants = 0;
    mlo_scored row = { 0, 0, 0, 0, 0, 0 };
    t->in[0] = mlo_max(x->arrives[0], accepts);
    for (int64_t h = 0; h < heads; h++) {
        int64_t r = s->rows[i];
        int64_t query = mlo_max(
            s->query[i] + steps, mlo_beat_at(x->arrives, (h + 1) * steps - 1, beats));
        if (r > 1) query = mlo_max(query, s->row[i][(r - 2) % MLO_ROWS_KEPT].score + steps);
        s->query[i] = query;
        if (h == 1) t->work = query;
        if (h == 2) t->next = query - steps + 1;
        if (x->at.first && !h) {
            int64_t fetch = mlo_max(query, r ? s->row[i][(r - 1) % MLO_ROWS_KEPT].score : 0);
            mlo_begins(s, i, 0, &x->at, fetch + 1);
            constants = mlo_max(fetch, x->ready[0]) + 3;
        }
        at = x->n * beats + (h + 1) * steps - 1 - u->rows.held;
        room = at >= 0 && at / beats < x->n
            ? mlo_beat_at(mlo_token_of(s, i, at / beats)->out, at % beats, beats) + 1
                - (steps - 1) * u->rows.groups
            : 0;
        row = mlo_fire_row(s, i, x, query, h ? 0 : constants, room);
        if (!h) t->out[0] = row.mix - (steps - 1) * u->rows.groups + u->rows.to_out;
    }
    t->in[1] = mlo_max(s->query[i], t->in[0] + beats - 1);
    last = row.mix + u->rows.to_out;
    t->out[0] = mlo_max(t->out[0], x->room[0]);
    t->out[1] = mlo_max(mlo_max(last, x->room[1]), t->out[0] + s->span[i]);
    if (x->at.at == s->c->tokens - 1) {
        int64_t next = x->n / s->c->tokens + 2;
        s->frame_freed[i][0][next & 3] = row.score + 1;
        s->frame_freed[i][1][next & 3] = row.mix + 1;
    }
    mlo_spend(
        s, i, t, heads * steps * u->rows.groups, last, constants ? x->ready[0] - s->query[i] : 0);
}

/* The loop's way in: the first iteration comes from outside, others from the feedback. 0: not
 * known yet. */
static int mlo_fire_entry(mlo_schedule *s) {
    const mlo_core *c = s->c;
    const int64_t n = s->fired[c->n_element], beats = c->channels / c->lanes;
    const int end = c->edge[c->n_edge - 1].from;
    int64_t room[3], first, last;
    if (n >= s->total || !mlo_has_room(s, MLO_OUTSIDE, 0, room)) return 0;
    mlo_place p = mlo_place_of(s, n);
    if (p.iteration == 0) {
        first = (p.group * c->frames * c->tokens + p.frame * c->tokens + p.at) * beats + beats + 3;
        last = first + beats - 1;
    } else {
        if (mlo_fired(s, end) <= n - p.size * c->tokens) return 0;
        const mlo_token *from = mlo_token_of(s, end, n - p.size * c->tokens);
        first = from->out[0] + 4;
        last = from->out[1] + 4;
    }
    mlo_token *t = mlo_token_of(s, MLO_OUTSIDE, n);
    t->soon = first;
    t->out[0] = mlo_max(
        mlo_max(first, room[0]), n ? mlo_token_of(s, MLO_OUTSIDE, n - 1)->out[1] + 1 : 0);
    t->out[1] = mlo_max(mlo_max(last, room[1]), t->out[0] + beats - 1);
    s->fired[c->n_element]++;
    return 1;
}

/* What the element's next token meets where it leaves, too. 0: not known yet. */
static int mlo_meets(mlo_schedule *s, int i, mlo_meet *x) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t n = s->fired[i], pace = u->flow == MLO_FLOW_MATRIX ? mlo_port_beats(u->in[0]) : 0;
    if (u->blocks && mlo_tile_of(s, i, n) >= s->tiling[i].begun) return 0;
    if (s->known[i] <= n && u->flow != MLO_FLOW_ROWS && u->flow != MLO_FLOW_BEATS) return 0;
    if (s->lanes[i] <= n && u->flow == MLO_FLOW_NORM) return 0;
    return (s->known[i] > n ? mlo_stands(s, i, n, x) : mlo_comes(s, i, n, x))
        && mlo_has_room(s, i, pace, x->room);
}

/* Tells of a token that an element is done with. */
static void mlo_passed(mlo_schedule *s, int i, const mlo_meet *x, const mlo_token *t) {
    const mlo_core *c = s->c;
    const mlo_unit *u = &c->element[i].unit;
    const int64_t frame = x->at.group * c->frames + x->at.frame;
    const int64_t before = x->n ? mlo_token_of(s, i, x->n - 1)->out[1] : 0;
    /* its multipliers' cycles, without what is in its pipeline */
    const int matrix = u->flow == MLO_FLOW_MATRIX;
    const int64_t last_pass = u->blocks ? u->macs / u->multipliers / u->blocks : 0;
    const mlo_moment what = { i, x->at.iteration, frame, x->at.at,
        matrix          ? t->work - u->interval + 1
            : u->blocks ? t->work - last_pass + 1
                        : mlo_max(t->in[0], before),
        matrix || u->blocks ? t->work + 1 : t->out[1] };
    if (s->seen) s->seen(s->user, &what);
    if (i == c->edge[c->n_edge - 1].from && x->at.iteration == c->scan.iterations - 1
        && x->at.at == c->tokens - 1)
        s->p->frame_done[frame] = t->out[1] + 3;
}

/* What an element does ahead of the next token that leaves it. 0: nothing. */
static int mlo_prepares(mlo_schedule *s, int i) {
    int any = s->c->element[i].unit.blocks ? mlo_tile_goes_on(s, i) : mlo_takes(s, i);
    while (s->c->element[i].unit.flow == MLO_FLOW_NORM && mlo_norm_begins(s, i)) any = 1;
    return any;
}

/* An element handles all the tokens it can. */
static int mlo_fire(mlo_schedule *s, int i) {
    int any = mlo_prepares(s, i);
    for (mlo_meet x; mlo_meets(s, i, &x); any = 1) {
        mlo_token *t = mlo_token_of(s, i, x.n);
        switch (s->c->element[i].unit.flow) {
        case MLO_FLOW_MATRIX: mlo_fire_matrix(s, i, &x, t); break;
        case MLO_FLOW_TILES: mlo_fire_tiles(s, i, &x, t); break;
        case MLO_FLOW_NORM: mlo_fire_norm(s, i, &x, t); break;
        case MLO_FLOW_ROWS: mlo_fire_rows(s, i, &x, t); break;
        default: mlo_fire_beats(s, i, &x, t); break;
        }
        s->fired[i]++;
        mlo_settle(s, i, s->mask / 2);
        if (s->known[i] <= x.n) mlo_hold_producers(s, i, &x, t);
        mlo_passed(s, i, &x, t);
        if (!s->c->element[i].unit.blocks) mlo_prepares(s, i);
        s->free = 0;
    }
    return any;
}
