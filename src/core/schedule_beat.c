/* schedule_beat: when there is room for a beat, and when it leaves.
 *
 * in:  tokens as far as they are known: when the first beat could leave, parameters are there, a
 *     matrix or attention takes them.
 * out: of any beat: when it is made; when all that is behind has room for it; when it leaves, the
 * later of the two. How. Pipelines, norms, forks, FIFOs and converters of widths hold so many
 * beats each, so room for a beat is asked for downwards, from element to element: there is, when
 * an earlier beat goes on. What makes it is asked for upwards. Both end where tokens are taken or
 * made whole. (A token that waits in the middle is on a straight line in schedule.c; here some of
 * its beats go, and the others wait.)
 * invariant: nothing here changes what is known of tokens.
 * example: an MVU takes a token every 324 cycles, in front of it a converter from 4 lanes to 2 and
 *      a requant: six beats go into that every 324 cycles, two cycles apart, and in between it
 *      holds ten, the converter one.
 * cost: O(elements on the way), of which MLO_ASKED are asked; nothing, where a beat has surely
 *     been taken.
 */

/* ---- room ----------------------------------------------------------------- */

/* When an element's beat number x, counted from the first token on, leaves; when it could, if it
 * is not known what is behind. */
static int64_t mlo_leaves(const mlo_schedule *s, int i, int64_t x, int64_t beats);

/* How many tokens' way into an element is known: mostly of more than have been handled, whose
 * results wait for room. */
static int64_t mlo_taken(const mlo_schedule *s, int i) { return mlo_max(s->fired[i], s->known[i]); }

/* When it can take a beat behind those of the last token that it took. */
static int64_t mlo_taken_until(const mlo_schedule *s, int i) {
    const int64_t n = mlo_taken(s, i);
    return n ? mlo_token_of(s, i, n - 1)->in[1] + 1 : 0;
}

/* What elements answer that take tokens whole: there is room for all of a token's beats, */
static int64_t mlo_token_opens(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    (void)s, (void)i, (void)x, (void)beats;
    return 0;
}

/* beats are taken on the line between the first and the last, */
static int64_t mlo_token_takes(const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t beats) {
    const int64_t n = x / beats, taken = mlo_taken(s, e->to);
    if (n < taken) return mlo_beat_by(mlo_token_of(s, e->to, n)->in, x % beats, beats);
    const int64_t open = n == taken ? mlo_flow_of(s, e->to)->accepts(s, e->to) : MLO_NOT_YET;
    return open == MLO_NOT_YET ? open : open + x % beats;
}

/* and are in one after the other. */
static int64_t mlo_token_enters(const mlo_unit *u, const mlo_token *t, int64_t at) {
    (void)u;
    return t->in[0] + at;
}

/* What comes of a token whose results leave a beat a cycle. */
static int64_t mlo_token_makes(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    return mlo_token_of(s, i, n)->soon + at;
}
static void mlo_token_works(
    const mlo_unit *u, const mlo_token *t, int64_t before, int64_t when[2]) {
    (void)u;
    when[0] = mlo_max(t->in[0], before);
    when[1] = t->out[1];
}

/* When edge e's consumer takes its beat x; MLO_NOT_YET if that depends on what has not been walked. */
static int64_t mlo_edge_takes(const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t beats) {
    return x < 0 ? 0 : mlo_flow_of(s, e->to)->takes(s, e, x, beats);
}

/* The same for the loop's way out: beats that go round are taken when the next iteration takes them. */
static int64_t mlo_loop_takes(const mlo_schedule *s, int64_t n, int64_t at) {
    const mlo_core *c = s->c;
    int64_t beats = c->channels / c->lanes, held = c->feedback * beats + 4;
    mlo_place p = mlo_place_of(s, MLO_OUTSIDE, n);
    if (p.iteration == p.job->iterations - 1) return 0;
    int64_t x = (n - p.job->begin) * beats + at - held;
    if (x < 0) return 0;
    n = p.job->begin + mlo_job_turn(p.job) + x / beats;
    return n < s->fired[c->n_element]
        ? mlo_beat_at(mlo_token_of(s, MLO_OUTSIDE, n)->out, x % beats, beats)
        : MLO_NOT_YET;
}

/* When there is room for beat `at` of edge e's token n, as its producer counts. */
static int64_t mlo_edge_room(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t at) {
    const mlo_link *w = &s->way[e - s->c->edge];
    const int64_t x = n * w->beats_from + at - 2 * w->fork - w->fifo;
    const int64_t when = e->to == MLO_OUTSIDE
        ? mlo_loop_takes(s, n, at / w->up * w->down)
        : mlo_edge_takes(s, e, mlo_link_requires(w, x), w->beats_to);
    return when == MLO_NOT_YET ? when : when + mlo_link_back(w, x);
}

/* When the first and last beat of an element's next token can leave. 0: not known yet. */
static int mlo_has_room(const mlo_schedule *s, int i, int64_t room[2]) {
    const int64_t n = mlo_fired(s, i); /* < total */
    room[0] = room[1] = 0;
    if (s->free) return 1;
    const int at = i == MLO_OUTSIDE ? s->c->n_element : i;
    for (int k = s->begin[1][at]; k < s->begin[1][at + 1]; k++) {
        const mlo_edge *e = &s->c->edge[s->order[1][k]];
        const mlo_link *w = &s->way[e - s->c->edge];
        const int64_t first = mlo_edge_room(s, e, n, 0);
        const int64_t last = mlo_edge_room(s, e, n, w->beats_from - 1);
        if (first == MLO_NOT_YET || last == MLO_NOT_YET) return 0;
        room[0] = mlo_max(room[0], first);
        room[1] = mlo_max(room[1], last);
    }
    return 1;
}

/* The beat of a token, at the producer, that meets the consumer's next token: those in front of it are held between. */
static int64_t mlo_link_meets(const mlo_link *w) {
    const int64_t groups = mlo_parts(2 * mlo_link_skids(w), w->down);
    return (groups * w->up + w->up - 1 + 2 * w->fork + w->fifo) % w->beats_from;
}

/* When there is room for that beat of token n. */
static int64_t mlo_meets_room(const mlo_schedule *s, const mlo_edge *e, int64_t n) {
    const mlo_link *w = &s->way[e - s->c->edge];
    return mlo_edge_room(s, e, n, mlo_link_meets(w));
}

/* Between them, of token n's beats that are made `pace` cycles apart: when that can leave which meets the
 * consumer's next token, less the time that those in front of it take. */
static int64_t mlo_room_between(const mlo_schedule *s, int i, int64_t n, int64_t pace) {
    int64_t room = 0;
    for (int k = s->begin[1][i]; k < s->begin[1][i + 1] && !s->free; k++) {
        const mlo_edge *e = &s->c->edge[s->order[1][k]];
        room = mlo_max(
            room, mlo_meets_room(s, e, n) - mlo_link_meets(&s->way[e - s->c->edge]) * pace);
    }
    return room;
}

/* ---- single beats --------------------------------------------------------- */

/* Cycles by which a token's last beat is taken earlier or later than its line says; pipelines one
 * after the other that are asked, not those in front of them; by which skids in front of an
 * element and a FIFO take a beat later than it, at most. */
enum { MLO_SURELY = 64, MLO_ASKED = 4, MLO_SKIDS = 3 };

/* Of an edge's beats at its producer: how far they are behind a token's first one, which a split's
 * outputs share. */
static int64_t mlo_edge_part(const mlo_core *c, const mlo_edge *e) {
    return e->from == MLO_OUTSIDE || c->element[e->from].kernel
        ? 0
        : e->from_port * (e->channels / e->lanes_from);
}

static int64_t mlo_produced_at(const mlo_schedule *s, int i, int64_t n, int64_t at);
static int64_t mlo_leaves_at(const mlo_schedule *s, int i, int64_t n, int64_t at);
static int64_t mlo_room_beside(
    const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t at, int64_t soonest);

/* When an edge's beat gets to its consumer, as far as what is in front decides, and beside it. */
static int64_t mlo_arrives_at(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t at) {
    const mlo_link *w = &s->way[e - s->c->edge];
    const int64_t beat = at / w->down * w->up + w->up - 1;
    const int64_t leaves = e->fifo ? mlo_edge_leaves(s, e, n, beat)
                                   : mlo_produced_at(s, e->from, n, beat + mlo_edge_part(s->c, e));
    return (w->fork && !e->fifo ? mlo_max(leaves, mlo_room_beside(s, e, n, beat, leaves)) : leaves)
        + w->delay + at % w->down;
}

/* When beat `at` of token n is in an element, as far as what is in front decides. */
static int64_t mlo_entered(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    int64_t when = mlo_flow_of(s, i)->enters(&s->c->element[i].unit, mlo_token_of(s, i, n), at);
    for (int k = s->begin[0][i]; k < s->begin[0][i + 1]; k++) {
        const mlo_edge *e = &s->c->edge[s->order[0][k]];
        if (!mlo_edge_is_frame(s->c, e)) when = mlo_max(when, mlo_arrives_at(s, e, n, at));
    }
    return when;
}

/* When a beat of the loop's way in could leave: it comes from outside, or round. */
static int64_t mlo_entry_made(const mlo_schedule *s, int64_t n, int64_t at) {
    const mlo_core *c = s->c;
    const mlo_place p = mlo_place_of(s, MLO_OUTSIDE, n);
    if (!p.iteration) return mlo_token_of(s, MLO_OUTSIDE, n)->soon + at;
    return mlo_produced_at(s, c->edge[c->n_edge - 1].from, n - mlo_job_turn(p.job), at) + 4;
}

/* When an element's beat could leave, if all behind it had room. */
static int64_t mlo_produced_at(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    return i == MLO_OUTSIDE ? mlo_entry_made(s, n, at) : mlo_flow_of(s, i)->makes(s, i, n, at);
}

/* When an edge's consumer takes its beat x; 0 if that is surely not later than `soonest`. */
static int64_t mlo_sink_takes(
    const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t beats, int64_t soonest) {
    const mlo_flow_verbs *flow = mlo_flow_of(s, e->to);
    const int64_t n = x / beats;
    if (n >= mlo_taken(s, e->to) || s->c->element[e->to].unit.whole_frame) {
        const int64_t open = flow->opens(s, e->to, x, beats), takes = flow->takes(s, e, x, beats);
        return open == MLO_NOT_YET || takes == MLO_NOT_YET ? MLO_NOT_YET : mlo_max(open, takes);
    }
    if (mlo_token_of(s, e->to, n)->in[1] + MLO_SURELY <= soonest) return 0;
    if (s->chain[e->to] > MLO_ASKED) return flow->takes(s, e, x, beats);
    const int64_t resumes = flow->resumes(s, e->to, x, beats);
    return resumes == MLO_NOT_YET ? resumes : mlo_max(mlo_entered(s, e->to, n, x % beats), resumes);
}

/* When what is behind an edge's fork and FIFO takes beat x; about that, where it is surely not
 * later than `soonest`. */
static int64_t mlo_link_accepts(
    const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t soonest) {
    const mlo_link *w = &s->way[e - s->c->edge];
    const int64_t at = mlo_link_requires(w, x);
    const int64_t when = at < 0 ? 0 : mlo_sink_takes(s, e, at, w->beats_to, soonest);
    return when == MLO_NOT_YET ? when : when + mlo_link_behind(w, x);
}

/* When all that is behind an element has room for its beat; `soonest` at the soonest; MLO_NOT_YET.
 * A split's beats leave one after the other, too. */
static int64_t mlo_room_at(const mlo_schedule *s, int i, int64_t n, int64_t at, int64_t soonest) {
    const mlo_core *c = s->c;
    const int element = i == MLO_OUTSIDE ? c->n_element : i;
    const int splits = i != MLO_OUTSIDE && !c->element[i].kernel;
    for (int k = s->begin[1][element]; k < s->begin[1][element + 1]; k++) {
        const mlo_edge *e = &c->edge[s->order[1][k]];
        const mlo_link *w = &s->way[e - c->edge];
        const int64_t mine = at - mlo_edge_part(c, e);
        const int64_t behind = splits ? mlo_max(0, mine - w->beats_from + 1) : 0;
        if (mine < 0 || n * w->beats_from + mine >= mlo_total(s, i) * w->beats_from) continue;
        const int64_t when = e->to == MLO_OUTSIDE
            ? mlo_loop_takes(s, n, mine)
            : mlo_link_accepts(
                  s, e, n * w->beats_from + mine - behind - 2 * w->fork - w->fifo, soonest);
        if (when == MLO_NOT_YET) return when;
        soonest = mlo_max(soonest,
            when + w->fork + (w->fifo > 0) + (e->to == MLO_OUTSIDE ? mlo_link_skids(w) : behind));
    }
    return soonest;
}

/* A fork gives each of its edges the beat in front when all have taken the one before. When beat
 * `at` of edge e's token could leave the producer, as far as the others decide; `soonest` at the
 * soonest; MLO_NOT_YET if one has to take a token in front, and it is not known when. */
static int64_t mlo_room_beside(
    const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t at, int64_t soonest) {
    const mlo_core *c = s->c;
    const int from = e->from == MLO_OUTSIDE ? c->n_element : e->from;
    for (int k = s->begin[1][from]; k < s->begin[1][from + 1]; k++) {
        const mlo_edge *o = &c->edge[s->order[1][k]];
        const mlo_link *w = &s->way[o - c->edge];
        const int64_t x = n * w->beats_from + at - 1 - w->fifo, token = mlo_floor(x, w->beats_from);
        if (o == e || o->from_port != e->from_port || o->to == MLO_OUTSIDE || x < 0) continue;
        if (token >= mlo_taken(s, o->to) && token < n) return MLO_NOT_YET;
        if (token < mlo_taken(s, o->to)
            && mlo_token_of(s, o->to, token)->in[1] + w->up + MLO_SKIDS < soonest
            && !c->element[o->to].unit.whole_frame)
            continue;
        const int64_t asks = mlo_link_requires(w, x);
        const int64_t takes = asks < 0 ? 0 : mlo_edge_takes(s, o, asks, w->beats_to);
        if (takes == MLO_NOT_YET) return takes;
        soonest = mlo_max(soonest, takes + mlo_link_behind(w, x) + (w->fifo > 0));
    }
    return soonest;
}

/* When an edge's first and last beat of token n reach the consumer, from a fork, too. 0: that is
 * not known yet. */
static int mlo_edge_comes(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t when[2]) {
    const mlo_link *w = &s->way[e - s->c->edge];
    mlo_edge_arrives(s, e, n, when);
    if (!w->fork || s->free) return 1;
    const int64_t last_up = w->delay + w->down - 1;
    const int64_t first = mlo_room_beside(s, e, n, w->up - 1, when[0] - w->delay);
    const int64_t last = mlo_room_beside(s, e, n, w->beats_from - 1, when[1] - last_up);
    if (first == MLO_NOT_YET || last == MLO_NOT_YET) return 0;
    when[0] = first + w->delay;
    when[1] = mlo_max(last + last_up, when[0] + w->beats_to - 1);
    return 1;
}

/* When an element's beat leaves; MLO_NOT_YET. */
static int64_t mlo_leaves_at(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    return mlo_room_at(s, i, n, at, mlo_produced_at(s, i, n, at));
}

static int64_t mlo_leaves(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    if (x < 0) return 0;
    const int64_t gone = mlo_leaves_at(s, i, x / beats, x % beats);
    return gone == MLO_NOT_YET ? mlo_produced_at(s, i, x / beats, x % beats) : gone;
}
