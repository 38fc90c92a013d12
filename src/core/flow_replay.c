/* flow_replay: a frame that comes once, and goes to every iteration (mlo_replay).
 *
 * in:  nothing of the body: the memory's own door brings a beat a cycle.
 * out: when a pass's beats leave.
 *
 * invariant: a frame is taken when the one before has passed for the last time.
 * cost: O(1) a token.
 */
enum { MLO_REPLAY_WAY = 5, MLO_REPLAY_TURN = 2 };

static void mlo_replay_fire(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const mlo_element *e = &s->c->element[i];
    const int64_t beats = mlo_beats_out(e), frame = x->at.job->frame + x->at.frame;
    const int64_t before = x->n ? mlo_token_of(s, i, x->n - 1)->out[1] : -MLO_REPLAY_TURN;
    int64_t first = before + 1;
    if (!x->at.iteration) {
        const int64_t comes = (frame * e->site.chunk + x->at.at) * beats + beats + MLO_REPLAY_WAY;
        first = mlo_max(comes, before + (x->at.at ? 1 : MLO_REPLAY_TURN));
    }
    t->soon = t->in[0] = first;
    t->in[1] = first + beats - 1;
    t->out[0] = mlo_max(first, x->room[0]);
    t->out[1] = mlo_max(mlo_max(t->in[1], x->room[1]), t->out[0] + s->span[i]);
    mlo_spend(t, beats, t->in[1], 0);
}

static int mlo_replay_prepares(mlo_schedule *s, int i) {
    (void)s, (void)i;
    return 0;
}

static const mlo_flow_verbs mlo_flow_replay = {
    .opens = mlo_token_opens,
    .accepts = mlo_rows_accept,
    .takes = mlo_token_takes,
    .enters = mlo_token_enters,
    .resumes = mlo_token_opens,
    .makes = mlo_token_makes,
    .prepares = mlo_replay_prepares,
    .is_ready = mlo_rows_ready,
    .fires = mlo_replay_fire,
    .works = mlo_token_works,
};
