/* flow_window: convolutions over a grid of tokens (Conv): a token's sums begin when the last token
 * that its window reaches is there, or its frame's last.
 *
 * in:  tokens, stored as long as a window sees them.
 * out: when its groups of sums are made and leave.
 *
 * As verilog/mlo_conv.v says: what is behind the store is a matrix-vector unit's (flow_matrix.c);
 * a token is begun a cycle later than there, since what it sees is looked up first.
 *
 * invariant: a token is taken when there is a place: the token so many before it has been worked on.
 * example: 7 x 7 over 14 x 14 tokens, 7 taps a cycle: a token begins when that three rows and three
 *      tokens behind it is in, and takes 7 cycles for PE channels.
 * cost: O(1) a token.
 */

/* The token whose coming a token's work waits for. */
static int64_t mlo_window_last(const mlo_schedule *s, int i, int64_t n) {
    const int64_t end = mlo_frame_last(s, n);
    return mlo_min(n + s->c->element[i].unit.window.behind, end);
}

static int64_t mlo_window_accept(const mlo_schedule *s, int i) {
    const int64_t n = mlo_taken(s, i), before = mlo_taken_until(s, i);
    const int64_t out = n - s->c->element[i].unit.window.room;
    if (out >= s->fired[i]) return MLO_NOT_YET;
    return out < 0 ? before : mlo_max(before, mlo_token_of(s, i, out)->work + 1);
}

static int mlo_window_ready(const mlo_schedule *s, int i, int64_t n) {
    return n < s->total && s->known[i] > mlo_window_last(s, i, n);
}

static void mlo_window_fire(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    const int64_t before = x->n ? mlo_token_of(s, i, x->n - 1)->work : 0;
    const int64_t there = mlo_token_of(s, i, mlo_window_last(s, i, x->n))->in[1];
    mlo_matrix_goes(s, i, x, t, mlo_max(there + 1, before) + 1);
}

static const mlo_flow_verbs mlo_flow_window = {
    .opens = mlo_token_opens,
    .accepts = mlo_window_accept,
    .takes = mlo_token_takes,
    .enters = mlo_token_enters,
    .resumes = mlo_token_opens,
    .makes = mlo_matrix_make,
    .admits = mlo_token_admit,
    .prepares = mlo_admits,
    .is_ready = mlo_window_ready,
    .fires = mlo_window_fire,
    .held = mlo_matrix_held_back,
    .works = mlo_matrix_work,
};
