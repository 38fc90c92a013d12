/* flow_rows: attention: a frame of keys and values, then a row for each query token and head:
 * scores, softmax, division, sum.
 *
 * in:  tokens of queries; frames of keys and values.
 * out: when rows are scored, when their results leave.
 *
 * As verilog/mlo_attention.v and its parts say: rows follow one another through four stages with
 * queues between them, each as deep as it is.
 *
 * invariant: two frames of keys and values, and two rows of queries, are inside; a bank of keys is
 *      free when the frame's last row is scored, one of values when it is summed.
 * example: 32 tokens, 2 heads of 32 channels: 64 rows a frame.
 * cost: O(heads) a token, and where rows are short those that lie in a queue at a time.
 */
static int64_t mlo_rows_accept(const mlo_schedule *s, int i) {
    const int64_t before = mlo_taken_until(s, i), rows = s->rows[i];
    return rows > 1 ? mlo_max(before, s->row[i][(rows - 2) % MLO_ROWS_KEPT].score + 1) : before;
}

/* When attention takes beat `at` of a token's queries: two rows (heads) as they come, the others
 * when rows are scored, which begins with the frame's last key. */
static int64_t mlo_query_taken(
    const mlo_schedule *s, int i, const mlo_token *t, int64_t at, int64_t beats) {
    const int64_t early = 2 * s->c->element[i].unit.rows.steps;
    const int64_t first[2] = { t->in[0], t->work };
    const int64_t then[2] = { t->next, t->in[1] };
    if (beats <= early) return mlo_beat_at(t->in, at, beats);
    return at < early ? mlo_beat_at(first, at, early)
                      : mlo_beat_at(then, at - early, beats - early);
}

/* Keys and values: of frames that are long gone nothing is kept. */
static int64_t mlo_frame_room(const mlo_schedule *s, const mlo_edge *e, int64_t pass) {
    const int64_t freed = s->frames_freed[e->to];
    if (pass < 2 || freed > pass + 2) return 0;
    if (freed < pass - 1) return MLO_NOT_YET;
    return s->frame_freed[e->to][e->to_port - 1][pass & 3];
}

/* Beats of rows of parameters that go in front of a frame's own (mlo_prefix.v), once the first of these has come. */
static int64_t mlo_rows_ahead(const mlo_schedule *s, int i, int port) {
    const mlo_unit *u = &s->c->element[i].unit;
    return u->rows.ahead * mlo_port_beats(u->in[1 + port]);
}

/* The edge that brings an attention's keys (port 0), its values. */
static const mlo_edge *mlo_frame_edge(const mlo_schedule *s, int i, int port) {
    int k = s->begin[0][i];
    while (s->c->edge[s->order[0][k]].to_port != 1 + port) k++;
    return &s->c->edge[s->order[0][k]];
}

/* When the first beat of a frame, of a token that has left its producer, gets to where rows are put in front of it.
 * Behind a split values come when keys have been taken, but for those that are held between; swaps: 1: rows change. */
static int64_t mlo_frame_begins(
    const mlo_schedule *s, const mlo_edge *e, int64_t first, int swaps) {
    const mlo_edge *keys = mlo_frame_edge(s, e->to, 0);
    const int64_t beats = mlo_port_beats(s->c->element[e->to].unit.in[1]);
    const mlo_link *way = &s->way[keys - s->c->edge];
    const int64_t held = way->held + 2 * way->down; /* and in the split's skid */
    int64_t when[2];
    mlo_edge_arrives(s, e, first, when);
    if (e == keys || e->from != keys->from || e->from == MLO_OUTSIDE
        || s->c->element[e->from].kernel || beats <= held)
        return when[0];
    return mlo_max(when[0],
        mlo_frame_begins(s, keys, first, swaps) + swaps + mlo_rows_ahead(s, e->to, 0) + beats
            - held);
}

/* When edge e's beat x, of keys or values, is taken: behind the rows in front of its frame, of which some are held
 * while the frame before is not gone. */
static int64_t mlo_frame_takes(const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t beats) {
    const mlo_place p = mlo_place_of(s, e->from, x / beats);
    const int64_t room = mlo_frame_room(s, e, p.pass),
                  ahead = mlo_rows_ahead(s, e->to, e->to_port - 1);
    enum { HOLDS = 3 };
    const int64_t first = x / beats - p.at, own = x - first * beats;
    if (!ahead || room == MLO_NOT_YET) return room;
    if (mlo_fired(s, e->from) <= first) return room ? room + ahead - HOLDS + 1 : 0;
    return mlo_max(room - HOLDS + 1, mlo_frame_begins(s, e, first, p.first) + p.first) + ahead
        + own;
}

/* Queries: two rows beyond those that are scored. */
static int64_t mlo_rows_take(const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t beats) {
    const int64_t n = x / beats, taken = mlo_taken(s, e->to);
    const int64_t steps = s->c->element[e->to].unit.rows.steps, row = x / steps;
    if (mlo_edge_is_frame(s->c, e)) return mlo_frame_takes(s, e, x, beats);
    if (n < taken) return mlo_query_taken(s, e->to, mlo_token_of(s, e->to, n), x % beats, beats);
    if (row >= s->rows[e->to] + 2) return MLO_NOT_YET;
    return mlo_max(mlo_taken_until(s, e->to) + x - taken * beats,
        row > 1 ? s->row[e->to][(row - 2) % MLO_ROWS_KEPT].score + 1 + x % steps : 0);
}

static int64_t mlo_rows_make(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    return mlo_beat_at(mlo_token_of(s, i, n)->out, at, mlo_beats_out(&s->c->element[i]));
}

/* Groups of keys in a queue of so many, one behind the other: row b's first has the place of which
 * group of row `now`? Those of its groups that come before 0 have that of an earlier row's. */
static int64_t mlo_rows_place(const mlo_scored *b, const mlo_scored *now, int64_t depth) {
    return b->from + depth - now->from;
}

/* When the last score of a row that would be done at `score` is: each group waits until the queue of
 * scores has a place, which is when softmax takes the one that has it. */
static int64_t mlo_rows_queue(const mlo_schedule *s, int i, const mlo_scored *now, int64_t score) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t r = s->rows[i] - 1;
    for (int64_t k = r - 1; k >= 0 && k > r - MLO_ROWS_KEPT; k--) {
        const mlo_scored *b = &s->row[i][k % MLO_ROWS_KEPT];
        const int64_t at = mlo_rows_place(b, now, u->rows.queue), g = mlo_max(at, 0);
        if (at + b->groups <= 0) break;
        if (g >= now->groups) continue;
        score = mlo_max(
            score, b->first + (g - at) * u->rows.exps + (now->groups - g) * u->rows.steps);
    }
    return score;
}

/* When softmax takes a row's groups, the first and the last: the ring has a place for one when the
 * row that has it is summed. */
static void mlo_rows_ring(const mlo_schedule *s, int i, mlo_scored *now) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t r = s->rows[i] - 1;
    int64_t taken = 0;
    for (int64_t k = r - 1; k >= 0 && k > r - MLO_ROWS_KEPT; k--) {
        const mlo_scored *b = &s->row[i][k % MLO_ROWS_KEPT];
        const int64_t at = mlo_rows_place(b, now, u->rows.ring), g = mlo_max(at, 0);
        if (at + b->groups <= 0) break;
        if (g >= now->groups) continue;
        if (!g) now->first = mlo_max(now->first, b->mix + 1);
        taken = mlo_max(taken, b->mix + 1 + (now->groups - 1 - g) * u->rows.exps);
    }
    now->taken = mlo_max(taken, now->first + (now->groups - 1) * u->rows.exps);
}

/* When a row that would begin at `first` does, with an iteration's tables (mlo_attention_look.v): it moves to them
 * when the rows before are through, and begins when they are there. */
static int64_t mlo_rows_tables(
    mlo_schedule *s, int i, const mlo_meet *x, int64_t first, int64_t r) {
    enum { SEEN = 2 };
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t moved = r ? mlo_max(first, s->softmax[i] + u->rows.moves) : first;
    first = moved + 1;
    for (int k = 1; k < u->n_memory; k++) {
        mlo_begins(s, i, k, &x->at, moved);
        first = mlo_max(first, x->ready[k] + SEEN);
    }
    return first;
}

/* A row of attention: the query is complete at `query`. */
static mlo_scored mlo_row_scored(
    mlo_schedule *s, int i, const mlo_meet *x, int64_t query, int64_t constants, int64_t room) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_scored none = { 0, 0, 0, 0, 0, 0, 0, 0 };
    int64_t r = s->rows[i]++, groups = mlo_row_groups(u, x->at.iteration, x->at.start + x->at.at);
    const int64_t work = groups * u->rows.steps;
    const mlo_scored *rows = s->row[i], *before = r ? &rows[(r - 1) % MLO_ROWS_KEPT] : &none;
    mlo_scored *to = &s->row[i][r % MLO_ROWS_KEPT], now;
#define MLO_ROW(n) (&rows[(n) % MLO_ROWS_KEPT])
    now.groups = groups;
    now.from = before->from + before->groups;
    now.begin = mlo_max(before->score, mlo_max(query, s->frame_came[i][0]));
    /* a band's constants say where its rows begin, a bias comes with them; all rows end with them */
    if (u->rows.early) now.begin = mlo_max(now.begin, constants - 1);
    now.score = mlo_max(mlo_rows_queue(s, i, &now, now.begin + work), constants);
    if (r >= 4) now.score = mlo_max(now.score, MLO_ROW(r - 4)->taken + 1);
    now.first = mlo_max(now.score + u->rows.to_max, s->softmax[i]);
    if (constants && u->rows.moves) now.first = mlo_rows_tables(s, i, x, now.first, r);
    if (r >= u->rows.waiting)
        now.first = mlo_max(now.first, MLO_ROW(r - u->rows.waiting)->accept + 1);
    mlo_rows_ring(s, i, &now);
    s->softmax[i] = now.taken + u->rows.exps;
    now.accept = now.taken + u->rows.to_sum + u->rows.exps;
    if (r)
        now.accept = mlo_max(now.accept,
            mlo_max(before->accept + u->rows.divide, r > 1 ? MLO_ROW(r - 2)->mix : 0) + 1);
    now.mix = mlo_max(
                  mlo_max(mlo_max(now.accept + u->rows.divide, before->mix), s->frame_came[i][1]),
                  room)
        + work;
#undef MLO_ROW
    *to = now;
    return now;
}

/* When row h of token n begins its sums, as far as the queue of results decides: a beat's place is
 * that of the one `held` before it. Of each token one waits until the consumer takes its next. */
static int64_t mlo_rows_room(const mlo_schedule *s, int i, int64_t n, int64_t h, int64_t groups) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t steps = u->rows.steps, beats = u->rows.heads * steps;
    const int64_t at = n * beats + (h + 1) * steps - 1 - u->rows.held;
    int64_t room = 0;
    if (at >= 0 && at / beats < n)
        room = mlo_beat_at(mlo_token_of(s, i, at / beats)->out, at % beats, beats) + 1
            - (steps - 1) * groups;
    for (int k = s->begin[1][i]; k < s->begin[1][i + 1] && !s->free; k++) {
        const mlo_edge *e = &s->c->edge[s->order[1][k]];
        const int64_t place = mlo_link_meets(&s->way[e - s->c->edge]) + u->rows.held;
        if (place % beats / steps != h || n < place / beats) continue;
        room = mlo_max(room, mlo_meets_room(s, e, n - place / beats) + 1 - place % steps * groups);
    }
    return room;
}

/* When it is known that a frame comes next, so that its past is asked for (mlo_orders.v, mlo_kv.v): in the first
 * iteration when it enters; then it is behind the one before, but where a group that is not full has to close. */
static int64_t mlo_frame_known(const mlo_schedule *s, const mlo_meet *x) {
    const mlo_job *job = x->at.job;
    const int64_t first = x->n - x->at.at;
    if (!x->at.iteration) return mlo_token_of(s, MLO_OUTSIDE, first)->out[0];
    if (x->at.iteration > 1 || job->frames == s->c->frames) return 0;
    return mlo_token_of(s, MLO_OUTSIDE, job->begin + job->turn)->out[0];
}

/* When a frame's first key (port 0), or value, moves to rows of its iteration. */
static int64_t mlo_rows_swap(const mlo_schedule *s, int i, const mlo_meet *x, int port) {
    const mlo_edge *e = mlo_frame_edge(s, i, port);
    return mlo_frame_begins(s, e, mlo_frame_begin(s, i, e->from, x->n), x->at.first);
}

/* When a frame's keys (port 0), its values are there. Where the past comes from memory (mlo_kv), it is in
 * front of them: behind the frame before, into a memory that is free, a row at a time as fast as attention's
 * port takes it and memory brings both. Rows of parameters are in front of its first beat. */
static int64_t mlo_frame_comes(const mlo_schedule *s, int i, const mlo_meet *x, int port) {
    enum { ASKS = 6, JOINS = 5, PASSES = 2 };
    const int64_t beats = mlo_port_beats(s->c->element[i].unit.in[1 + port]);
    const int64_t ahead = mlo_rows_ahead(s, i, port);
    if (ahead) {
        const int64_t all = ahead + x->at.tokens * beats - 1;
        const int64_t begins = mlo_max(
            mlo_rows_swap(s, i, x, port) + x->at.first, x->ready[1 + port]);
        const int64_t came = mlo_max(x->frame[port], begins + all) + PASSES;
        return x->at.pass < 2 ? came : mlo_max(came, s->frame_freed[i][port][x->at.pass & 3] + all);
    }
    if (!s->c->dram || !x->at.start) return x->frame[port];
    int64_t from = s->frame_came[i][port];
    const int64_t known = mlo_frame_known(s, x);
    if (x->at.pass >= 2) from = mlo_max(from, s->frame_freed[i][port][x->at.pass & 3]);
    if (known) from = mlo_max(from, known + ASKS + s->c->read_latency + JOINS);
    return mlo_max(x->frame[port],
        from + x->at.start * mlo_max(beats, 2 * mlo_kv_row(s->c)) + x->at.tokens * beats);
}

static void mlo_rows_fire(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    int64_t last;
    int64_t steps = u->rows.steps;
    int64_t heads = u->rows.heads;
    int64_t beats = heads * steps;
    int64_t accepts = mlo_rows_accept(s, i);
    int64_t constants = 0;
    const int64_t groups = mlo_row_groups(u, x->at.iteration, x->at.start + x->at.at);
    mlo_scored row = { 0, 0, 0, 0, 0, 0, 0, 0 };
    t->in[0] = mlo_max(x->arrives[0], accepts);
    for (int port = 0; port < 2; port++) {
        s->frame_came[i][port] = x->at.at ? mlo_max(s->frame_came[i][port], x->frame[port])
                                          : mlo_frame_comes(s, i, x, port);
        if (u->rows.ahead && !x->at.at)
            mlo_begins(s, i, 1 + port, &x->at, mlo_rows_swap(s, i, x, port));
    }
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
            constants = mlo_max(fetch, x->ready[0]) + u->rows.constants;
        }
        row = mlo_row_scored(
            s, i, x, query, h ? 0 : constants, mlo_rows_room(s, i, x->n, h, groups));
        if (!h) t->out[0] = row.mix - (steps - 1) * groups + u->rows.to_out;
    }
    t->in[1] = mlo_max(s->query[i], t->in[0] + beats - 1);
    last = row.mix + u->rows.to_out;
    t->out[0] = mlo_max(t->out[0], x->room[0]);
    t->out[1] = mlo_max(mlo_max(last, x->room[1]),
        mlo_max(t->out[0] + s->span[i], mlo_room_between(s, i, x->n, 1) + beats - 1));
    if (x->at.at == x->at.tokens - 1) {
        const int64_t next = x->at.pass + 2;
        s->frame_freed[i][0][next & 3] = row.score + 1;
        s->frame_freed[i][1][next & 3] = row.mix + 1;
        s->frames_freed[i] = x->at.pass + 1;
    }
    mlo_spend(t, heads * steps * groups, last, constants ? x->ready[0] - s->query[i] : 0);
}

static int mlo_rows_ready(const mlo_schedule *s, int i, int64_t n) {
    (void)s, (void)i, (void)n;
    return 1;
}

static const mlo_flow_verbs mlo_flow_rows = {
    .opens = mlo_token_opens,
    .accepts = mlo_rows_accept,
    .takes = mlo_rows_take,
    .enters = mlo_token_enters,
    .resumes = mlo_token_opens,
    .makes = mlo_rows_make,
    .prepares = mlo_admits,
    .is_ready = mlo_rows_ready,
    .fires = mlo_rows_fire,
    .works = mlo_token_works,
};
