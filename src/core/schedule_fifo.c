/* schedule_fifo: how full the FIFOs of a schedule get.
 *
 * in:  a schedule, as far as it is known.     out: the most beats that each edge's FIFO holds, and
 * the feedback's: fold makes them that deep. How. Beats are followed into every FIFO and out
 * (schedule_beat.c): all of them in a short run of which a report is made; else few of each token,
 * with those between on a straight line.
 * example: the residual path around an attention holds a frame and what is in attention.
 * cost: MLO_FOLLOWED beats of a token in every FIFO, or MLO_FOLLOWED_ALL of the run, if that is
 *     more and asked for.
 */
enum { MLO_FOLLOWED = 8, MLO_FOLLOWED_ALL = 65536 };

/* How many tokens of the run go round; */
static int64_t mlo_fifo_rounds(const mlo_schedule *s) {
    const mlo_job *last = &s->job[s->n_job - 1];
    return last->round + mlo_job_tokens(last) - mlo_job_turn(last);
}

/* where the n-th of the tokens that go round is on its way out; the way in takes it a turn later. */
static int64_t mlo_round_from(const mlo_schedule *s, int64_t n) {
    const mlo_job *j = s->job;
    while (j < s->job + s->n_job - 1 && j[1].round <= n) j++;
    return j->begin + n - j->round;
}
static int64_t mlo_round_to(const mlo_schedule *s, int64_t n) {
    const int64_t from = mlo_round_from(s, n);
    return from + mlo_job_turn(mlo_job_of(s, from));
}

/* When an edge's beat gets to its FIFO: a fork gives each the beat in front, which is there when
 * all have taken the one before. */
static int64_t mlo_fork_gives(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t at) {
    const int64_t fork = s->way[e - s->c->edge].fork, beat = at + mlo_edge_part(s->c, e);
    return mlo_room_at(s, e->from, n, beat + fork, mlo_produced_at(s, e->from, n, beat) + fork);
}

/* When beat x goes into the FIFO of edge k, or comes out of it; at n_edge: into the feedback's.
 * Beats are counted from the run's first one on. */
static int64_t mlo_fifo_pushed(const mlo_schedule *s, int k, int64_t x) {
    const mlo_core *c = s->c;
    const int feedback = k == c->n_edge;
    /* the last one ends where the feedback begins */
    const mlo_edge *e = &c->edge[feedback ? k - 1 : k];
    const int64_t beats = feedback ? c->channels / c->lanes : s->way[k].beats_from;
    const int64_t n = feedback ? mlo_round_from(s, x / beats) : x / beats;
    int64_t when[2];
    if (mlo_fired(s, e->from) <= n) return MLO_NOT_YET;
    if (!feedback) return mlo_fork_gives(s, e, n, x % beats);
    mlo_edge_arrives(s, e, n, when);
    return mlo_beat_at(when, x % beats, beats) + 1;
}

/* Behind the feedback there is the skid of the loop's way in; behind others what mlo_link_accepts
 * says. It stays for two cycles at least (in a skid: for one). */
static int64_t mlo_fifo_popped(const mlo_schedule *s, int k, int64_t x) {
    const mlo_core *c = s->c;
    const mlo_edge *e = &c->edge[k < c->n_edge ? k : s->order[1][s->begin[1][c->n_element]]];
    const int64_t stays = k == c->n_edge || s->way[k].fifo > 2 ? 2 : 1;
    int64_t taken, pushed;
    if (k == c->n_edge) {
        const int64_t beats = c->channels / c->lanes;
        const int64_t n = mlo_round_to(s, x / beats);
        const int64_t at = n * beats + x % beats - 2;
        if (s->fired[c->n_element] <= n) return MLO_NOT_YET;
        taken = at < 0 ? 0 : mlo_leaves_at(s, e->from, at / beats, at % beats);
        if (taken == MLO_NOT_YET) return taken;
        taken++;
    } else {
        const int frame = mlo_edge_is_frame(c, e);
        if (!frame && s->fired[e->to] <= x / s->way[k].beats_from) return MLO_NOT_YET;
        taken = frame ? mlo_edge_takes(s, e, x, s->way[k].beats_from)
                      : mlo_link_accepts(s, e, x, 0);
    }
    if (taken == MLO_NOT_YET || (s->followed[k].pushed > x && s->followed[k].at + stays <= taken))
        return taken;
    return (pushed = mlo_fifo_pushed(s, k, x)) == MLO_NOT_YET ? pushed
                                                              : mlo_max(pushed + stays, taken);
}

/* Of each token's beats the first and the last are followed, and some between: the next one of
 * those. */
static int64_t mlo_fifo_next(const mlo_schedule *s, int64_t x, int64_t beats) {
    const int64_t left = beats - 1 - x % beats;
    const int64_t step = mlo_max(1, beats / mlo_max(MLO_FOLLOWED, s->follows / s->total));
    return x + (left ? mlo_min(step, left) : 1);
}

/* Follows a FIFO as far as things are known: it is fullest just before a beat leaves. */
static void mlo_fifo_follow(mlo_schedule *s, int k) {
    const mlo_core *c = s->c;
    const int64_t beats = k < c->n_edge ? s->way[k].beats_from : c->channels / c->lanes;
    const int64_t all = beats
        * (k < c->n_edge ? mlo_total(s, c->edge[k].from) : mlo_fifo_rounds(s));
    const int64_t depth = k < c->n_edge ? s->way[k].fifo : c->feedback * beats;
    mlo_followed *f = &s->followed[k];
    for (int64_t leaves;
        f->popped < all && (leaves = mlo_fifo_popped(s, k, f->popped)) != MLO_NOT_YET;
        f->popped = mlo_fifo_next(s, f->popped, beats)) {
        int64_t next, comes = 0, pushed;
        while ((next = f->pushed ? mlo_fifo_next(s, f->pushed - 1, beats) : 0) < all
            && (comes = mlo_fifo_pushed(s, k, next)) != MLO_NOT_YET && comes < leaves) {
            f->pushed = next + 1;
            f->at = comes;
        }
        if (next < all && comes == MLO_NOT_YET) return;
        pushed = f->pushed;
        if (next > pushed && next < all)
            pushed += mlo_min(
                next - pushed, ((leaves - f->at) * (next + 1 - pushed) - 1) / (comes - f->at));
        s->p->peak[k] = mlo_max(s->p->peak[k], mlo_min(depth, pushed - f->popped));
    }
}
