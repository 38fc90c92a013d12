/* schedule_fire: what all elements do with tokens, whatever goes on inside.
 *
 * in:  a token whose beats' arrival is known, and the room for its result.
 * out: when its beats are taken, worked on and leave.
 *
 * An element prepares (takes tokens that come while results wait), and fires as long as it is ready
 * and knows what it meets; its flow (flow_*.c) says what that comes to.
 *
 * invariant: an element that is blocked takes what its pipeline holds, and no beat more. That is
 *     known before it is known when its results leave: so elements in front go on, and ask for
 *     their parameters, while nothing is known yet of those behind.
 * example: the loop's way in fires like an element: from outside, or round.
 * cost: O(1) a token, and what its flow costs.
 */
/* Of a token: cycles of work, when its last beat could leave, and how long it waited for parameters. */
static void mlo_spend(mlo_token *t, int64_t busy, int64_t ideal, int64_t parameters) {
    t->busy = busy;
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
        if (mlo_flow_of(s, i)->passes) continue;
        const int64_t before = s->settled[i] ? mlo_token_of(s, i, s->settled[i] - 1)->out[1] : 0;
        const int64_t idle = mlo_max(0, t->out[1] - before - t->busy);
        const int64_t blocked = mlo_min(idle, t->out[1] - t->ideal);
        to->busy += t->busy;
        to->blocked += blocked;
        to->parameters += mlo_min(idle - blocked, t->waited);
    }
}

/* Where an element's token n stands, and when its parameters are there. 0: not known yet. */
static int mlo_stands(mlo_schedule *s, int i, int64_t n, mlo_meet *x) {
    x->n = n;
    x->at = mlo_place_of(s, i, n);
    return mlo_parameters(s, i, &x->at, x->ready);
}

/* The last token, as `from` counts them, of the frame that element i's token n is of. */
static int64_t mlo_frame_end(const mlo_schedule *s, int i, int from, int64_t n) {
    if (mlo_is_side(s, from))
        return (mlo_place_of(s, i, n).pass + 1) * s->c->element[from].site.chunk - 1;
    return mlo_frame_last(s, n);
}

/* The first one. */
static int64_t mlo_frame_begin(const mlo_schedule *s, int i, int from, int64_t n) {
    const int64_t tokens = mlo_is_side(s, from) ? s->c->element[from].site.chunk
                                                : mlo_place_of(s, i, n).tokens;
    return mlo_frame_end(s, i, from, n) - tokens + 1;
}

/* And when its beats come. */
static int mlo_comes(mlo_schedule *s, int i, int64_t n, mlo_meet *x) {
    int64_t when[2];
    x->arrives[0] = x->arrives[1] = x->frame[0] = x->frame[1] = 0;
    if (n >= mlo_total(s, i)) return 0;
    for (int k = s->begin[0][i]; k < s->begin[0][i + 1]; k++) {
        const mlo_edge *e = &s->c->edge[s->order[0][k]];
        const int frame = mlo_edge_is_frame(s->c, e);
        const int64_t last = frame ? mlo_frame_end(s, i, e->from, n) : n;
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

/* When the last beat of token n leaves, of an edge that holds some of them: if it is not known when, with the one
 * that the consumer takes so many before it (`at`). */
static int64_t mlo_last_leaves(
    const mlo_schedule *s, const mlo_edge *e, int64_t n, const int64_t in[2], int64_t at) {
    const mlo_link *w = &s->way[e - s->c->edge];
    const int64_t leaves = mlo_leaves_at(s, e->from, n, w->beats_from - 1);
    const int64_t last = w->beats_from - 1 - 2 * w->fork - w->fifo;
    return leaves == MLO_NOT_YET ? mlo_beat_by(in, at, w->beats_to) + mlo_link_back(w, last)
                                 : leaves;
}

/* Token n's beats that were taken later than they came held their producer back, whose next token,
 * where there is no FIFO, has mostly not fired yet (if it has, its own wait holds this one). What is
 * between them may hold the first ones, or all of them (the skids of what waits for two streams, a fork
 * and a converter of a wide beat): those left. */
static void mlo_held_back(mlo_schedule *s, const mlo_edge *e, int64_t n, const int64_t in[2]) {
    const mlo_link *w = &s->way[e - s->c->edge];
    const int64_t at = w->beats_to - w->down - w->held;
    int64_t when[2];
    if (e->fifo || e->from == MLO_OUTSIDE || at < 0) return;
    if (!mlo_edge_comes(s, e, n, when)) return;
    mlo_token *from = mlo_token_of(s, e->from, n);
    int64_t late = mlo_max(0, in[1] - when[1]);
    if (w->held)
        late = mlo_max(0, mlo_min(late, mlo_last_leaves(s, e, n, in, at) - from->out[1]));
    else if (in[0] > when[0])
        from->out[0] = mlo_min(from->out[0] + in[0] - when[0], from->out[1] + late);
    from->out[1] += late;
    const mlo_flow_verbs *flow = mlo_flow_of(s, e->from);
    if ((late || in[0] > when[0]) && flow->held) flow->held(s, e->from, n);
}

/* All that waited with their beats of a token for an element are told when it took them. What was held so long that its
 * last beat comes later, comes later. */
static void mlo_hold_producers(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t) {
    mlo_meet again = *x;
    for (int k = s->begin[0][i]; k < s->begin[0][i + 1]; k++) {
        const mlo_edge *e = &s->c->edge[s->order[0][k]];
        if (!mlo_edge_is_frame(s->c, e)) mlo_held_back(s, e, x->n, t->in);
    }
    if (!mlo_comes(s, i, x->n, &again) || again.arrives[1] <= t->in[1]) return;
    t->in[1] = again.arrives[1];
    if (mlo_flow_of(s, i)->late) mlo_flow_of(s, i)->late(s, i, t, again.arrives[1]);
}

/* What elements do that take tokens whole: a token's beats come as there is room, */
static void mlo_token_admit(mlo_schedule *s, int i, const mlo_meet *x, mlo_token *t, int64_t open) {
    t->in[0] = mlo_max(x->arrives[0], open);
    t->in[1] = mlo_max(x->arrives[1], t->in[0] + mlo_port_beats(s->c->element[i].unit.in[0]) - 1);
}

/* and it can fire then. */
static int mlo_token_ready(const mlo_schedule *s, int i, int64_t n) { return s->known[i] > n; }

/* Tokens are taken as they come and there is room for them, ahead of those whose results leave. 0:
 * none is. */
static int mlo_admits(mlo_schedule *s, int i) {
    const mlo_element *e = &s->c->element[i];
    const mlo_flow_verbs *flow = mlo_flow_of(s, i);
    const int64_t beats = e->kernel ? mlo_port_beats(e->unit.in[0]) : mlo_beats_out(e);
    int any = 0;
    for (mlo_meet x; flow->admits; any = 1) {
        const int64_t n = mlo_taken(s, i);
        if (!mlo_comes(s, i, n, &x)) break;
        mlo_token *t = mlo_token_of(s, i, n);
        const int64_t open = flow->accepts(s, i);
        if (open == MLO_NOT_YET) break;
        const int64_t last = flow->opens(s, i, n * beats + beats - 1, beats);
        if (last == MLO_NOT_YET) break;
        flow->admits(s, i, &x, t, open);
        t->in[1] = mlo_max(t->in[1], last);
        s->known[i] = n + 1;
        mlo_hold_producers(s, i, &x, t);
    }
    return any;
}

/* When a frame's first beat, token n, is at the door: all of them wait there; or where keys and values stay, for
 * another one to leave, and behind the one before. MLO_NOT_YET: it has not. */
static int64_t mlo_frame_enters(const mlo_schedule *s, const mlo_place *p, int64_t n) {
    const mlo_core *c = s->c;
    const int64_t frame = p->job->frame + p->frame, before = mlo_job_waits(c, frame);
    int64_t enters = MLO_JOB_PASSES;
    if (!c->slots) return (p->job->outside + n - p->job->begin) * (c->channels / c->lanes);
    const int64_t left = before >= 0 ? mlo_left(s, before) : 0;
    if (left == MLO_NOT_YET) return MLO_NOT_YET;
    if (before >= 0) enters += left + MLO_JOB_FOLLOWS;
    return frame ? mlo_max(enters, s->door + MLO_JOB_TURNS + MLO_JOB_PASSES) : enters;
}

/* When the last beat of a frame, token n, is taken at the door: they come a beat a cycle, if there is room between the
 * door and the body. That holds two tokens (mlo_entry.v), and MLO_JOB_HELD beats. */
static int64_t mlo_door_takes(const mlo_schedule *s, const mlo_place *p, int64_t n) {
    const int64_t beats = s->c->channels / s->c->lanes, last = n * beats + beats - 1;
    const int64_t before = last - 2 * beats - MLO_JOB_HELD; /* it has to be in the body */
    const int64_t comes = mlo_frame_enters(s, p, n - p->at) - MLO_JOB_PASSES + p->tokens * beats
        - 1;
    if (before < (p->job->iterations > 1 ? p->job->begin * beats : 0)) return comes;
    return mlo_max(comes,
        mlo_beat_at(mlo_token_of(s, MLO_OUTSIDE, before / beats)->out, before % beats, beats)
            + MLO_JOB_BACK);
}

/* A frame that would be there so soon has come too late for the group that takes it in (mlo_loop.v): the one before
 * it is in, and the group's first results wait. MLO_NOT_YET: it is not known when. */
static int64_t mlo_frame_late(const mlo_schedule *s, const mlo_place *p, int64_t n, int64_t soon) {
    const int end = s->c->edge[s->c->n_edge - 1].from;
    if (!s->c->slots || !p->frame || p->at || p->job->iterations == 1) return 0;
    if (soon <= mlo_token_of(s, MLO_OUTSIDE, n - 1)->out[1] + 1 + mlo_core_patience(s->c)) return 0;
    if (mlo_core_patience(s->c)) return 1;
    if (mlo_fired(s, end) <= p->job->begin) return MLO_NOT_YET;
    return soon > mlo_token_of(s, end, p->job->begin)->out[0] + MLO_LOOP_ROUND;
}

/* When the first beat of token n, which comes from outside, could go into the loop: the door keeps a token until it is
 * complete (mlo_entry). Into a head it goes when its frame has left the loop. MLO_NOT_YET. */
static int64_t mlo_outside_comes(mlo_schedule *s, const mlo_place *p, int64_t n, int64_t beats) {
    if (mlo_is_front(s)) return mlo_front_comes(s, p, n);
    if (s->front) return mlo_front_gives(s->front, p->job->outside + n - p->job->begin);
    if (s->loop && s->loop->front) return mlo_tail_comes(s, n, beats);
    if (s->loop) {
        const int64_t left = mlo_left(s->loop, n);
        return left == MLO_NOT_YET ? left : left + MLO_NEWEST_GIVES;
    }
    const int64_t enters = mlo_frame_enters(s, p, n - p->at);
    if (enters == MLO_NOT_YET) return enters;
    if (!s->head) return enters + p->at * beats + beats + 3;
    const int64_t last = mlo_row_enters(s, p, n, enters);
    return last == MLO_NOT_YET ? last : last + MLO_ROW_DOOR;
}

/* The loop's way in: the first iteration comes from outside, others from the feedback. 0: not
 * known yet. */
static int mlo_fire_entry(mlo_schedule *s) {
    const mlo_core *c = s->c;
    const int64_t n = s->fired[c->n_element];
    const int64_t beats = s->way[s->order[1][s->begin[1][c->n_element]]].beats_from;
    const int end = c->edge[c->n_edge - 1].from;
    int64_t room[2], first, last;
    if (n >= s->total || !mlo_has_room(s, MLO_OUTSIDE, room)) return 0;
    mlo_place p = mlo_place_of(s, MLO_OUTSIDE, n);
    if (p.iteration == 0) {
        first = mlo_outside_comes(s, &p, n, beats);
        if (first == MLO_NOT_YET) return 0;
        const int64_t late = mlo_frame_late(s, &p, n, first);
        if (late == MLO_NOT_YET) return 0;
        if (late) {
            mlo_schedule_jobs(s, p.job - s->job + 1, p.job->frame + p.frame);
            return 1;
        }
        last = first + beats - 1;
    } else {
        const int64_t before = n - mlo_job_turn(p.job);
        if (mlo_fired(s, end) <= before) return 0;
        const mlo_token *from = mlo_token_of(s, end, before);
        first = from->out[0] + MLO_LOOP_ROUND;
        last = from->out[1] + MLO_LOOP_ROUND;
    }
    mlo_token *t = mlo_token_of(s, MLO_OUTSIDE, n);
    t->soon = first;
    t->out[0] = mlo_max(
        mlo_max(first, room[0]), n ? mlo_token_of(s, MLO_OUTSIDE, n - 1)->out[1] + 1 : 0);
    t->out[1] = mlo_max(mlo_max(last, room[1]), t->out[0] + beats - 1);
    s->fired[c->n_element]++;
    if (!p.iteration && p.at == p.tokens - 1) s->door = mlo_door_takes(s, &p, n);
    return 1;
}

/* What the element's next token meets where it leaves, too. 0: not known yet. */
static int mlo_meets(mlo_schedule *s, int i, mlo_meet *x) {
    const int64_t n = s->fired[i];
    if (!mlo_flow_of(s, i)->is_ready(s, i, n)) return 0;
    return (s->known[i] > n ? mlo_stands(s, i, n, x) : mlo_comes(s, i, n, x))
        && mlo_has_room(s, i, x->room);
}

/* Tells of a token that an element is done with. */
static void mlo_passed(mlo_schedule *s, int i, const mlo_meet *x, const mlo_token *t) {
    const mlo_core *c = s->c;
    const int64_t frame = x->at.job->frame + x->at.frame;
    const int64_t before = x->n ? mlo_token_of(s, i, x->n - 1)->out[1] : 0;
    int64_t when[2];
    mlo_flow_of(s, i)->works(&c->element[i].unit, t, before, when);
    const mlo_moment what = { i, x->at.iteration, frame, x->at.at, when[0], when[1] };
    if (s->seen) s->seen(s->user, &what);
    if (i != c->edge[c->n_edge - 1].from || x->at.iteration < x->at.job->iterations - 1) return;
    if (!x->at.at) s->p->frame_begun[frame] = t->out[1] + 3;
    if (x->at.at == x->at.tokens - 1) s->p->frame_done[frame] = t->out[1] + 3;
}

/* Could the element not go on with what is known, but for bursts that came since? */
static int mlo_is_tried(const mlo_schedule *s, int i) { return s->tried[i] == s->bus->news + 1; }

/* An element handles all the tokens it can. */
static int mlo_fire(mlo_schedule *s, int i) {
    const mlo_flow_verbs *flow = mlo_flow_of(s, i);
    if (mlo_is_tried(s, i) && !flow->passes) return 0;
    const int64_t news = s->bus->news;
    int any = flow->prepares(s, i);
    if (any && !flow->passes) s->bus->news++;
    if (mlo_is_tried(s, i)) return any;
    for (mlo_meet x; mlo_meets(s, i, &x); any = 1) {
        mlo_token *t = mlo_token_of(s, i, x.n);
        flow->fires(s, i, &x, t);
        s->bus->news++;
        s->fired[i]++;
        mlo_settle(s, i, s->mask / 2);
        if (s->known[i] <= x.n) mlo_hold_producers(s, i, &x, t);
        mlo_passed(s, i, &x, t);
        if (!flow->passes) flow->prepares(s, i);
        s->free = 0;
    }
    if (s->bus->news == news) s->tried[i] = news + 1;
    return any;
}
