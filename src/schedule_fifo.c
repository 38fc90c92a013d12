/* schedule_fifo: how full the FIFOs of a schedule get.
 *
 * in:  a schedule, as far as it is known.     out: the most beats that each edge's FIFO holds, and the feedback's: fold makes them that deep.
 * How. Some of each token's beats are followed into every FIFO and out. Beats of a token are on a straight line between its first and last one, where they
 * are not held up, so that a FIFO that never runs full may hold some beats more or less in truth.
 * example: the residual path around an attention holds a frame and what is in attention.
 * cost: MLO_FOLLOWED beats of a token in every FIFO.
 */
enum { MLO_FOLLOWED = 8 };

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
        if (other->to != MLO_OUTSIDE && other->from_port == e->from_port) when = mlo_later(when, mlo_edge_room(s, other, n, at / w.up * w.down));
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
