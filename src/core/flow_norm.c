/* flow_norm: a token's norms (LayerNorm), one or several, or one of a frame (FrameNorm): sums as beats
 * arrive, root and reciprocal, then the lanes: three norms at a time.
 *
 * in:  a token's beats.
 * out: when its root begins, when its beats go to the lanes and leave.
 *
 * As verilog/mlo_layernorm.v says: norms wait in a store while the root of the one in front is
 * computed; stages behind the store stand still together when two beats behind them wait. Of a
 * token's norms the first and the last are kept; those between are on a straight line. A norm of a
 * frame begins with its first token, when the last one is there; the others follow it.
 *
 * invariant: a norm goes to the lanes when its root is there and the one before it has gone.
 * example: 64 channels, 4 lanes: a token every 16 cycles, or every 42, as long as a root takes.
 * cost: O(norms) a token.
 */
/* Beats from the store to the way out. */
static int64_t mlo_norm_holds(const mlo_unit *u) { return u->norm.stages + 2; }

/* Beats of one norm. */
static int64_t mlo_norm_beats(const mlo_unit *u) { return mlo_port_beats(u->in[0]) / u->turns; }

/* The tokens of whose norm token n is: the first, the last. */
static int64_t mlo_norm_first(const mlo_schedule *s, int i, int64_t n) {
    return s->c->element[i].unit.window.room ? n - mlo_place_of(s, i, n).at : n;
}
static int64_t mlo_norm_last(const mlo_schedule *s, int i, int64_t n) {
    return s->c->element[i].unit.window.room ? mlo_frame_last(s, n) : n;
}

/* When beat `at` of a token would go to the lanes, if nothing behind them waited. */
static int64_t mlo_norm_turn(const mlo_unit *u, const mlo_token *t, int64_t at) {
    const int64_t norms = u->turns, own = mlo_norm_beats(u), k = at / own;
    return t->next + 1 + at % own + (norms > 1 ? (t->final - t->next) * k / (norms - 1) : 0);
}

/* When a norm's beat number x goes to the lanes: one after the other when the root is there, and
 * as results leave. */
static int64_t mlo_norm_goes(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    const mlo_unit *u = &s->c->element[i].unit;
    return x < 0 ? 0
                 : mlo_max(mlo_norm_turn(u, mlo_token_of(s, i, x / beats), x % beats),
                       mlo_leaves(s, i, x - mlo_norm_holds(u), beats) + 1);
}

/* The beat so many before has gone to the lanes. (If that is of the same token, whose norms have
 * not begun, mlo_norm_begins says later when the token is in.) */
static int64_t mlo_norm_open(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t keeps = u->norm.keeps;
    const int64_t before = x - x % beats - 1;
    const int64_t gone = x / beats < s->lanes[i] ? x - keeps : mlo_min(x - keeps, before);
    if (gone - mlo_norm_holds(u) >= s->fired[i] * beats || gone >= s->lanes[i] * beats)
        return MLO_NOT_YET;
    return 1 + mlo_norm_goes(s, i, gone, beats);
}
static int64_t mlo_norm_resume(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    return mlo_max(0, mlo_norm_open(s, i, x, beats));
}

static int64_t mlo_norm_accept(const mlo_schedule *s, int i) {
    const int64_t n = mlo_taken(s, i), beats = mlo_beats_out(&s->c->element[i]);
    const int64_t opens = mlo_norm_open(s, i, n * beats, beats);
    return opens == MLO_NOT_YET ? opens : mlo_max(mlo_taken_until(s, i), opens);
}

static int64_t mlo_norm_enters(const mlo_unit *u, const mlo_token *t, int64_t at) {
    (void)u, (void)t, (void)at;
    return 0;
}

/* When a token whose root has begun is next for the lanes: the root is there, and the token before
 * has gone to them. */
static int64_t mlo_norm_loads(const mlo_schedule *s, int i, int64_t n, int64_t beats) {
    const int64_t root = s->c->element[i].unit.norm.root;
    return mlo_max(mlo_token_of(s, i, n)->work + root, mlo_norm_goes(s, i, n * beats - 1, beats));
}

/* When the sums of a token's norm k are there. */
static int64_t mlo_norm_summed(const mlo_unit *u, const mlo_token *t, int64_t k) {
    const int64_t beats = mlo_port_beats(u->in[0]), last = (k + 1) * mlo_norm_beats(u) - 1;
    return mlo_beat_by(t->in, last, beats) + 3 + mlo_clog2(u->pe);
}

/* When it works on the first sums of a token that begins a norm. */
static int64_t mlo_norm_sums(const mlo_schedule *s, int i, int64_t n) {
    const mlo_token *last = mlo_token_of(s, i, mlo_norm_last(s, i, n));
    return mlo_max(mlo_norm_summed(&s->c->element[i].unit, last, 0),
        n ? mlo_token_of(s, i, n - 1)->work + 1 : 0);
}

/* The other norms of a token whose first one has begun follow, each when the one before it has
 * gone. What of the token itself has to leave first is not known yet. */
static void mlo_norm_follow(mlo_schedule *s, int i, int64_t n) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t norms = u->turns, own = mlo_norm_beats(u), beats = norms * own;
    const int64_t keeps = u->norm.keeps, root = u->norm.root, finish = u->norm.finish;
    mlo_token *t = mlo_token_of(s, i, n);
    t->final = t->next;
    for (int64_t k = 1; k < norms; k++) {
        const int64_t gone = t->final + own;
        const int64_t loads = mlo_max(t->work + root, t->final);
        t->work = mlo_max(mlo_max(mlo_norm_summed(u, t, k), t->work + 1) + finish, loads + 1);
        t->final = mlo_max(t->work + root, gone);
    }
    if (keeps < beats) t->in[1] = mlo_max(t->in[1], mlo_norm_turn(u, t, beats - 1 - keeps) + 1);
}

/* When the root of token n's norm begins, whose sums are worked on at `sums`. */
static int64_t mlo_norm_roots(const mlo_schedule *s, int i, const mlo_meet *x, int64_t sums) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t n = x->n, beats = mlo_port_beats(u->in[0]), finish = u->norm.finish;
    const int64_t before = n ? mlo_norm_first(s, i, n - 1) : 0;
    return mlo_max((x->at.first ? mlo_max(sums, x->ready[1]) : sums) + finish,
        n ? mlo_norm_loads(s, i, before, beats) + 1 : 0);
}

/* A token's root begins, and then the lanes, as soon as it is known when the tokens in front
 * leave. 0: it is not. Eight stages stand still together when two beats behind them wait: so does
 * a gap between tokens, and they hold the fewer beats. */
static int mlo_norm_begins(mlo_schedule *s, int i) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t n = s->lanes[i];
    const int64_t beats = mlo_port_beats(u->in[0]), holds = mlo_norm_holds(u);
    const int64_t first = n * beats;
    const int64_t left = s->fired[i] * beats;
    mlo_token *t = mlo_token_of(s, i, n);
    mlo_meet x;
    const int opens = mlo_norm_first(s, i, n) == n;
    if (mlo_norm_last(s, i, n) >= s->known[i] || first - 1 - holds >= left
        || !mlo_stands(s, i, n, &x))
        return 0;
    const int64_t sums = opens ? mlo_norm_sums(s, i, n) : 0;
    t->work = opens ? mlo_norm_roots(s, i, &x, sums) : mlo_token_of(s, i, n - 1)->work;
    const int64_t loads = mlo_norm_loads(s, i, n, beats);
    const int64_t gap = loads - mlo_norm_goes(s, i, first - 1, beats);
    const int64_t at = first - mlo_max(3, holds - gap);
    if (at >= left) return 0;
    t->next = mlo_max(loads, mlo_leaves(s, i, at, beats));
    if (opens) mlo_begins(s, i, 1, &x.at, sums);
    mlo_norm_follow(s, i, n);
    if (u->turns > 1) mlo_hold_producers(s, i, &x, t);
    s->lanes[i]++;
    return 1;
}

static int mlo_norm_prepares(mlo_schedule *s, int i) {
    int any = mlo_admits(s, i);
    while (mlo_norm_begins(s, i)) any = 1;
    return any;
}

static int mlo_norm_ready(const mlo_schedule *s, int i, int64_t n) {
    return mlo_token_ready(s, i, n) && s->lanes[i] > n;
}

static void mlo_norm_fire(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_unit *u = &s->c->element[i].unit;
    const int64_t beats = mlo_port_beats(u->in[0]);
    const int64_t late = x->at.first ? 1 + mlo_max(0, x->ready[0] - t->next - 5) : 0;
    const int64_t first = t->next + u->norm.stages + 2 + late;
    const int64_t last = mlo_norm_turn(u, t, beats - 1) + u->norm.stages + 1 + late;
    mlo_begins(s, i, 0, &x->at, t->next + 3);
    t->soon = first;
    t->out[0] = mlo_max(first, x->room[0]);
    t->out[1] = mlo_max(mlo_max(last, t->out[0] + s->span[i]), x->room[1]);
    mlo_spend(t, beats, last,
        late + (x->at.first ? mlo_max(0, x->ready[1] - mlo_norm_sums(s, i, x->n)) : 0));
}

/* What comes of its beats: as they go to the lanes. */
static int64_t mlo_norm_makes(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    const mlo_token *t = mlo_token_of(s, i, n);
    return t->soon + mlo_norm_turn(&s->c->element[i].unit, t, at) - t->next - 1;
}

static const mlo_flow_verbs mlo_flow_norm = {
    .opens = mlo_norm_open,
    .accepts = mlo_norm_accept,
    .takes = mlo_token_takes,
    .enters = mlo_norm_enters,
    .resumes = mlo_norm_resume,
    .makes = mlo_norm_makes,
    .admits = mlo_token_admit,
    .prepares = mlo_norm_prepares,
    .is_ready = mlo_norm_ready,
    .fires = mlo_norm_fire,
    .works = mlo_token_works,
};
