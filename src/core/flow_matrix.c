/* flow_matrix: the matrix-vector unit (MVU): a whole token in, then its interval of work.
 *
 * in:  a token, stored while the one before it is multiplied.
 * out: when its groups of sums are made and leave.
 *
 * As verilog/mlo_mvu.v says: two input vectors; groups of sums, which take turns at the
 * requantizers; a pipeline behind them that stands still when its result cannot leave, while sums
 * go on until a group finds no turn.
 *
 * invariant: of weights, channel words and table, each is needed when it is used, not before.
 * example: K/SIMD = 8 and N/PE = 8 take a token every 64 cycles, the first beat of which leaves
 *      8 + latency cycles after the last one came.
 * cost: O(1) a token.
 */
/* Cycles, as they are in the Verilog: from the last turn to the result (segment B), from the table
 * to that. */
enum { MLO_MATRIX_RESULT = 8, MLO_MATRIX_LOOKS_UP = 3 };

/* Cycles of a group of sums: a vector's beats, a window's taps. */
static int64_t mlo_matrix_cycles(const mlo_unit *u) {
    return u->window.cycles ? u->window.cycles : mlo_port_beats(u->in[0]);
}

static int64_t mlo_matrix_accept(const mlo_schedule *s, int i) {
    const int64_t n = mlo_taken(s, i), before = mlo_taken_until(s, i);
    if (n > s->fired[i] + 1) return MLO_NOT_YET;
    return n > 1 ? mlo_max(before, mlo_token_of(s, i, n - 2)->work + 1) : before;
}

static int64_t mlo_matrix_make(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    return mlo_token_of(s, i, n)->soon + at * mlo_matrix_cycles(&s->c->element[i].unit);
}

/* From a slot's issue to its group's first turn. */
static int64_t mlo_matrix_to_turn(const mlo_unit *u) {
    return u->latency - MLO_MATRIX_RESULT - u->turns - (u->n_memory > 2);
}

/* From a group's first turn to its result at the end of the turns' pipeline, which stands still when that cannot
 * go on; groups that have had their first turn by then behind it, as far apart as they were made. */
static int64_t mlo_matrix_to_end(const mlo_unit *u) { return u->turns + MLO_MATRIX_RESULT - 1; }
static int64_t mlo_matrix_behind(const mlo_unit *u) {
    return (mlo_matrix_to_end(u) - 1) / mlo_matrix_cycles(u);
}

/* Results that are made when one cannot leave: two in the skid, one at the pipeline's end, those behind it, a group's
 * sums, and one that a table has. */
static int64_t mlo_matrix_held(const mlo_unit *u) {
    return 4 + (u->n_memory > 2) + mlo_matrix_behind(u);
}

/* When the last slot of result `at` is issued, if result 0 has to wait until `leaves`: the sums that wait are taken
 * when the pipeline goes on, and the turns of the group in front are over. */
static int64_t mlo_matrix_resumes(const mlo_unit *u, int64_t at, int64_t leaves) {
    const int64_t in = mlo_matrix_cycles(u);
    const int64_t slots = (at + 1 - mlo_matrix_held(u)) * in - mlo_matrix_to_turn(u);
    const int64_t turned = mlo_matrix_to_end(u) - mlo_matrix_behind(u) * in;
    return slots <= 0 ? 0 : leaves + 1 + mlo_max(0, u->turns - turned) + slots;
}

/* A token's last result, too, finds the pipeline standing still, if the last one that lets its sums be made has to
 * wait. */
static void mlo_matrix_freezes(mlo_schedule *s, int i, int64_t n) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_token *t = mlo_token_of(s, i, n);
    const int64_t beats = mlo_port_beats(u->out);
    const int64_t at = mlo_matrix_held(u) + mlo_matrix_to_turn(u) / mlo_matrix_cycles(u);
    const int64_t leaves = mlo_leaves(s, i, n * beats + beats - 1 - at, beats);
    t->work = mlo_max(t->work, mlo_matrix_resumes(u, at, leaves));
}

/* While the first result waits for its table, sums are made until a group is complete that finds
 * no turn: so many cycles it is ahead then. It is not taken before the turns of the group in front
 * are over. */
static int64_t mlo_matrix_ahead(const mlo_unit *u) {
    const int64_t in = mlo_matrix_cycles(u), waits = u->turns + MLO_MATRIX_RESULT - 1;
    return mlo_min(mlo_parts(waits, in) * in - waits, in - u->turns);
}

/* The first cycle of work for which parameters are there in time: of weights, channel words and
 * table only the first are needed at once. */
static int64_t mlo_matrix_begins(const mlo_unit *u, const int64_t ready[MLO_UNIT_MEMORIES]) {
    const int64_t to_words = mlo_matrix_cycles(u) + mlo_matrix_to_turn(u);
    return mlo_max(mlo_max(ready[0], ready[1] + 1 - to_words),
        ready[2] - to_words - u->turns - (MLO_MATRIX_RESULT + 1 - MLO_MATRIX_LOOKS_UP)
            - mlo_matrix_ahead(u));
}

/* A token whose work could begin at `start`, and goes through. */
static void mlo_matrix_goes(
    mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t, int64_t start) {
    const mlo_unit *u = &s->c->element[i].unit;
    const mlo_token *before = x->n ? mlo_token_of(s, i, x->n - 1) : NULL;
    const int64_t in = mlo_matrix_cycles(u);
    int64_t waits = 0;
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
    t->work = mlo_max(ideal,
        mlo_matrix_resumes(
            u, u->interval / in - 1, mlo_max(t->out[0], mlo_room_between(s, i, x->n, in))));
    t->out[1] = mlo_max(mlo_max(t->work + u->latency, x->room[1]), t->out[0] + s->span[i]);
    mlo_matrix_freezes(s, i, x->n);
    mlo_spend(t, u->interval, ideal + u->latency, waits);
}

/* Results that had to wait for room of which nothing was known then: those behind them are made later. */
static void mlo_matrix_held_back(mlo_schedule *s, int i, int64_t n) {
    const mlo_unit *u = &s->c->element[i].unit;
    mlo_token *t = mlo_token_of(s, i, n);
    const int64_t in = mlo_matrix_cycles(u), room = mlo_room_between(s, i, n, in);
    t->work = mlo_max(
        t->work, mlo_matrix_resumes(u, u->interval / in - 1, mlo_max(t->out[0], room)));
    t->out[1] = mlo_max(t->out[1], t->work + u->latency);
    mlo_matrix_freezes(s, i, n);
}

static void mlo_matrix_fire(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const int64_t before = x->n ? mlo_token_of(s, i, x->n - 1)->work : 0;
    mlo_matrix_goes(s, i, x, t, mlo_max(t->in[1], before) + 1);
}

static void mlo_matrix_work(
    const mlo_unit *u, const mlo_token *t, int64_t before, int64_t when[2]) {
    (void)before;
    when[0] = t->work - u->interval + 1;
    when[1] = t->work + 1;
}

static const mlo_flow_verbs mlo_flow_matrix = {
    .opens = mlo_token_opens,
    .accepts = mlo_matrix_accept,
    .takes = mlo_token_takes,
    .enters = mlo_token_enters,
    .resumes = mlo_token_opens,
    .makes = mlo_matrix_make,
    .admits = mlo_token_admit,
    .prepares = mlo_admits,
    .is_ready = mlo_token_ready,
    .fires = mlo_matrix_fire,
    .held = mlo_matrix_held_back,
    .works = mlo_matrix_work,
};
