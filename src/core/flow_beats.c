/* flow_beats: pipelines (Add, Requant, split): a beat in, a beat out.
 *
 * in:  tokens' beats as they come.
 * out: when they go in and leave.
 *
 * A pipeline holds as many beats as it is long, and one more. When its last stage cannot leave it
 * stands still as a whole, with the gaps that are between its beats.
 *
 * invariant: beats are taken as long as there is room inside, whether or not results can leave.
 * example: a Requant takes six stages: its first beat leaves six cycles after it came.
 * cost: O(1) a token.
 */
/* Beats that are inside when the first of them cannot leave: of the stages in front of its own those have one that are
 * a gap apart. */
static int64_t mlo_beats_held(const mlo_schedule *s, int i) {
    enum { AROUND = 3 };
    const int64_t stages = mlo_pipeline(&s->c->element[i]) + 1 - AROUND;
    return stages > 0 ? AROUND + mlo_parts(stages, s->gap[i]) : AROUND + stages;
}

static int64_t mlo_beats_open(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    const int64_t gone = x - mlo_beats_held(s, i);
    return gone >= s->fired[i] * beats ? MLO_NOT_YET : 1 + mlo_leaves(s, i, gone, beats);
}

static int64_t mlo_beats_accept(const mlo_schedule *s, int i) {
    const int64_t n = mlo_taken(s, i), beats = mlo_beats_out(&s->c->element[i]);
    const int64_t opens = mlo_beats_open(s, i, n * beats, beats);
    return opens == MLO_NOT_YET ? opens : mlo_max(mlo_taken_until(s, i), opens);
}

/* Of two streams, beats are in skids until both have come. */
static int64_t mlo_beats_take(const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t beats) {
    const mlo_token *t = mlo_token_of(s, e->to, x / beats);
    const int64_t when[2] = { t->work, t->in[1] };
    return s->c->element[e->to].unit.n_in > 1 && x / beats < mlo_taken(s, e->to)
        ? mlo_beat_by(when, x % beats, beats)
        : mlo_token_takes(s, e, x, beats);
}

/* An iteration's first beat waits for parameters, those behind it for that one; of two streams it
 * is still outside. */
static int64_t mlo_beats_inside(const mlo_unit *u, const mlo_token *t, int64_t at) {
    return (at || u->n_in > 1) && t->work > t->in[0] ? t->work + at : 0;
}

/* When a beat x of a pipeline could be in its last stage's place: two wait behind it in a skid. */
static int64_t mlo_beats_released(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    return x < 2 ? 0 : mlo_leaves(s, i, x - 2, beats) + 1;
}

/* A pipeline whose last stage cannot leave stands still as a whole, with the gap that there was
 * between two tokens: when beat x goes into it. */
static int64_t mlo_beats_thaw(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    const int64_t stages = mlo_pipeline(&s->c->element[i]) - 2, at = x % beats, first = x - at;
    if (at >= stages || first < 1) return 0;
    const int64_t when = mlo_entered(s, i, first / beats, 0) + 1;
    if (mlo_beats_released(s, i, first - 1, beats) <= when) return 0;
    for (int64_t b = mlo_max(0, first - stages); b < first; b++)
        if (mlo_beats_released(s, i, b, beats) > when)
            return mlo_entered(s, i, b / beats, b % beats) + stages + 1 > when
                ? 0
                : mlo_beats_released(s, i, mlo_min(b + at, first - 1), beats);
    return 0;
}

static int64_t mlo_beats_resume(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    const int64_t gone = x - mlo_beats_held(s, i);
    const int64_t left = gone < 0 ? 0 : mlo_leaves_at(s, i, gone / beats, gone % beats);
    return left == MLO_NOT_YET ? left : mlo_max(left + 1, mlo_beats_thaw(s, i, x - 1, beats));
}

/* Cycles that a token's beats up to `at` wait in a split for keys and values, which are stored a
 * narrow beat a cycle. */
static int64_t mlo_split_waits(const mlo_schedule *s, int i, int64_t at) {
    int64_t waits = 0;
    for (int k = s->begin[1][i]; k < s->begin[1][i + 1]; k++) {
        const mlo_edge *e = &s->c->edge[s->order[1][k]];
        const mlo_link *w = &s->way[e - s->c->edge];
        const int64_t beats = mlo_min(at + 1 - mlo_edge_part(s->c, e), w->beats_from);
        if (e->to != MLO_OUTSIDE && !w->fifo && beats > 0)
            waits += mlo_max(0, beats * w->down / w->up - beats - w->held);
    }
    return waits;
}

static int64_t mlo_beats_make(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    const mlo_element *e = &s->c->element[i];
    const mlo_token *t = mlo_token_of(s, i, n);
    const int64_t in = mlo_entered(s, i, n, at);
    if (e->kernel) return mlo_max(t->work > t->in[0] ? t->work + at : 0, in) + mlo_pipeline(e);
    return mlo_max(in, mlo_entered(s, i, n, 0) + at + mlo_split_waits(s, i, at)) + 1;
}

/* A token's beats go into the pipeline; its parameters may have to come first. next: when the last
 * one would, if the pipeline took it. */
static void mlo_beats_enter(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_element *e = &s->c->element[i];
    const int64_t latency = mlo_pipeline(e);
    t->work = t->in[0] = mlo_max(x->arrives[0], mlo_beats_accept(s, i));
    if (e->kernel && x->at.first) {
        t->work++;
        for (int k = 0; k < e->unit.n_memory; k++) {
            const int64_t used = t->in[0] + 1 + (k && !e->unit.at_once ? latency - 2 : 0);
            mlo_begins(s, i, k, &x->at, used);
            t->work = mlo_max(t->work, t->in[0] + 1 + x->ready[k] - used);
        }
    }
    t->next = t->in[1] = mlo_max(x->arrives[1], t->work + mlo_beats_out(e) - 1);
    t->ideal = mlo_entered(s, i, x->n, mlo_beats_out(e) - 1) + latency;
}

static void mlo_beats_admit(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t, int64_t open) {
    (void)open;
    mlo_beats_enter(s, i, x, t);
}

static void mlo_beats_late(const mlo_schedule *s, int i, mlo_token *t, int64_t last) {
    t->next = mlo_max(t->next, last);
    t->out[1] = mlo_max(t->out[1], last + mlo_pipeline(&s->c->element[i]));
}

static int mlo_beats_ready(const mlo_schedule *s, int i, int64_t n) {
    (void)s, (void)i, (void)n;
    return 1;
}

static void mlo_beats_fire(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
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
        t->in[1], mlo_leaves(s, i, x->n * beats + beats - 1 - mlo_beats_held(s, i), beats) + 1);
    mlo_spend(t, beats, mlo_max(t->ideal, first + beats - 1 + narrow),
        e->kernel && x->at.first ? t->work - t->in[0] - 1 : 0);
}

static const mlo_flow_verbs mlo_flow_beats = {
    .opens = mlo_beats_open,
    .accepts = mlo_beats_accept,
    .takes = mlo_beats_take,
    .enters = mlo_beats_inside,
    .resumes = mlo_beats_resume,
    .makes = mlo_beats_make,
    .admits = mlo_beats_admit,
    .late = mlo_beats_late,
    .prepares = mlo_admits,
    .is_ready = mlo_beats_ready,
    .fires = mlo_beats_fire,
    .works = mlo_token_works,
};
