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

#define MLO_NOT_YET (-1)

/* When an element's beat number x, counted from the first token on, leaves; when it could, if it
 * is not known what is behind. */
static int64_t mlo_leaves(const mlo_schedule *s, int i, int64_t x, int64_t beats);

/* When a norm's beat number x goes to the lanes: one after the other when the root is there, and
 * as results leave. */
static int64_t mlo_norm_goes(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    return x < 0 ? 0
                 : mlo_max(mlo_token_of(s, i, x / beats)->next + 1 + x % beats,
                       mlo_leaves(s, i, x - MLO_NORM_HOLDS, beats) + 1);
}

/* The number of token n's tile, counted from the first one on. */
static int64_t mlo_tile_of(const mlo_schedule *s, int i, int64_t n) {
    const mlo_unit *u = &s->c->element[i].unit;
    return n / s->c->tokens * mlo_unit_tiles(u, s->c->tokens) + n % s->c->tokens / u->tile;
}

/* How many tokens' way into an element is known: mostly of more than have been handled, whose
 * results wait for room. */
static int64_t mlo_taken(const mlo_schedule *s, int i) { return mlo_max(s->fired[i], s->known[i]); }

/* When a pipeline or a norm has room for beat x: the one so many before has left, or has gone to
 * the lanes. MLO_NOT_YET if that is not known. */
static int64_t mlo_opens(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    const mlo_element *e = &s->c->element[i];
    const int norm = e->unit.flow == MLO_FLOW_NORM;
    const int64_t gone = x - (norm ? mlo_norm_keeps(beats) : mlo_pipeline(e) + 1);
    const int64_t left = norm ? gone - MLO_NORM_HOLDS : gone;
    if (left >= s->fired[i] * beats || (norm && gone >= s->lanes[i] * beats)) return MLO_NOT_YET;
    return 1 + (norm ? mlo_norm_goes(s, i, gone, beats) : mlo_leaves(s, i, gone, beats));
}

/* When an element can take the first beat of its next token, whatever comes. MLO_NOT_YET: that
 * depends on what has not been walked. */
static int64_t mlo_accepts(const mlo_schedule *s, int i) {
    const mlo_element *e = &s->c->element[i];
    const mlo_unit *u = &e->unit;
    const int64_t n = mlo_taken(s, i), before = n ? mlo_token_of(s, i, n - 1)->in[1] + 1 : 0;
    if (u->flow == MLO_FLOW_MATRIX)
        return n > s->fired[i] + 1 ? MLO_NOT_YET
            : n > 1                ? mlo_max(before, mlo_token_of(s, i, n - 2)->work + 1)
                                   : before;
    if (u->flow == MLO_FLOW_ROWS)
        return s->rows[i] > 1
            ? mlo_max(before, s->row[i][(s->rows[i] - 2) % MLO_ROWS_KEPT].score + 1)
            : before;
    if (u->flow == MLO_FLOW_TILES) {
        const int64_t tile = mlo_tile_of(s, i, n);
        return tile > s->tiling[i].opened + 1 ? MLO_NOT_YET
            : tile > 1                        ? mlo_max(before, s->tiling[i].freed[tile & 3])
                                              : before;
    }
    const int64_t beats = mlo_beats_out(e), opens = mlo_opens(s, i, n * beats, beats);
    return opens == MLO_NOT_YET ? opens : mlo_max(before, opens);
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

/* When edge e's consumer takes its beat number `at`, counted from the first token on; MLO_NOT_YET
 * if that depends on what has not been walked. */
static int64_t mlo_edge_takes(const mlo_schedule *s, const mlo_edge *e, int64_t at, int64_t beats) {
    if (at < 0) return 0;
    const mlo_unit *u = &s->c->element[e->to].unit;
    const int64_t n = at / beats, pass = n / s->c->tokens, taken = mlo_taken(s, e->to);
    /* keys and values: two frames of them; of those long gone nothing is kept */
    if (u->whole_frame && e->to_port)
        return pass < 2 || s->fired[e->to] >= (pass + 3) * s->c->tokens ? 0
            : s->fired[e->to] < (pass - 1) * s->c->tokens
            ? MLO_NOT_YET
            : s->frame_freed[e->to][e->to_port - 1][pass & 3];
    if (n < taken) {
        const mlo_token *t = mlo_token_of(s, e->to, n);
        /* of two streams, in skids until then */
        const int64_t when[2] = { u->flow == MLO_FLOW_BEATS && u->n_in > 1 ? t->work : t->in[0],
            t->in[1] };
        return u->whole_frame ? mlo_query_taken(s, e->to, t, at % beats, beats)
                              : mlo_beat_by(when, at % beats, beats);
    }
    /* queries: two rows beyond those that are scored */
    if (u->whole_frame) {
        const int64_t steps = u->rows.steps;
        const int64_t row = at / steps;
        const int64_t first = taken ? mlo_token_of(s, e->to, taken - 1)->in[1] + 1 : 0;
        if (row >= s->rows[e->to] + 2) return MLO_NOT_YET;
        return mlo_max(first + at - taken * beats,
            row > 1 ? s->row[e->to][(row - 2) % MLO_ROWS_KEPT].score + 1 + at % steps : 0);
    }
    const int64_t open = n == taken ? mlo_accepts(s, e->to) : MLO_NOT_YET;
    return open == MLO_NOT_YET ? open : open + at % beats;
}

/* The same for the loop's way out: beats that go round are taken when the next iteration takes them. */
static int64_t mlo_loop_takes(const mlo_schedule *s, int64_t n, int64_t at) {
    const mlo_core *c = s->c;
    int64_t beats = c->channels / c->lanes, held = c->feedback * beats + 4;
    mlo_place p = mlo_place_of(s, n);
    int64_t turn = p.size * c->tokens, begin = n - p.iteration * turn - p.frame * c->tokens - p.at;
    if (p.iteration == c->scan.iterations - 1) return 0;
    int64_t x = (n - begin) * beats + at - held;
    if (x < 0) return 0;
    n = begin + turn + x / beats;
    return n < s->fired[c->n_element]
        ? mlo_beat_at(mlo_token_of(s, MLO_OUTSIDE, n)->out, x % beats, beats)
        : MLO_NOT_YET;
}

/* When there is room for what becomes beat `at` of edge e's token n. */
static int64_t mlo_edge_room(const mlo_schedule *s, const mlo_edge *e, int64_t n, int64_t at) {
    const mlo_link w = s->way[e - s->c->edge];
    const int64_t when = e->to == MLO_OUTSIDE
        ? mlo_loop_takes(s, n, at)
        : mlo_edge_takes(s, e, n * w.beats_to + at - w.held, w.beats_to);
    return when == MLO_NOT_YET ? when : when + w.back;
}

/* When the first and last beat of an element's next token can leave; and between them the one that
 * meets the consumer's next token, less `pace` cycles for each beat in front of it. 0: not known
 * yet. */
static int mlo_has_room(const mlo_schedule *s, int i, int64_t pace, int64_t room[3]) {
    const mlo_core *c = s->c;
    const int64_t n = mlo_fired(s, i); /* < total */
    room[0] = room[1] = room[2] = 0;
    if (s->free) return 1;
    const int at = i == MLO_OUTSIDE ? c->n_element : i;
    for (int k = s->begin[1][at]; k < s->begin[1][at + 1]; k++) {
        const mlo_edge *e = &c->edge[s->order[1][k]];
        const mlo_link w = s->way[e - c->edge];
        const int64_t first = mlo_edge_room(s, e, n, 0);
        const int64_t last = mlo_edge_room(s, e, n, w.beats_to - w.down);
        const int64_t next = mlo_parts(w.held % w.beats_to, w.down);
        if (first == MLO_NOT_YET || last == MLO_NOT_YET) return 0;
        room[0] = mlo_max(room[0], first);
        room[1] = mlo_max(room[1], last);
        if (pace && next * w.up < w.beats_from)
            room[2] = mlo_max(room[2], mlo_edge_room(s, e, n, next * w.down) - next * w.up * pace);
    }
    return 1;
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

/* When beat `at` of token n is in an element, as far as what is in front decides. An iteration's
 * first beat waits for parameters, those behind it for that one; of two streams it is still outside. */
static int64_t mlo_entered(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    const mlo_token *t = mlo_token_of(s, i, n);
    const mlo_unit *u = &s->c->element[i].unit;
    int64_t when = u->flow == MLO_FLOW_NORM         ? 0
        : u->flow != MLO_FLOW_BEATS                 ? t->in[0] + at
        : (at || u->n_in > 1) && t->work > t->in[0] ? t->work + at
                                                    : 0;
    for (int k = s->begin[0][i]; k < s->begin[0][i + 1]; k++) {
        const mlo_edge *e = &s->c->edge[s->order[0][k]];
        if (!u->whole_frame || !e->to_port) when = mlo_max(when, mlo_arrives_at(s, e, n, at));
    }
    return when;
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

/* When a beat of the loop's way in could leave: it comes from outside, or round. */
static int64_t mlo_entry_made(const mlo_schedule *s, int64_t n, int64_t at) {
    const mlo_core *c = s->c;
    const mlo_place p = mlo_place_of(s, n);
    if (!p.iteration) return mlo_token_of(s, MLO_OUTSIDE, n)->soon + at;
    return mlo_produced_at(s, c->edge[c->n_edge - 1].from, n - p.size * c->tokens, at) + 4;
}

/* When an element's beat could leave, if all behind it had room. */
static int64_t mlo_produced_at(const mlo_schedule *s, int i, int64_t n, int64_t at) {
    if (i == MLO_OUTSIDE) return mlo_entry_made(s, n, at);
    const mlo_element *e = &s->c->element[i];
    const mlo_unit *u = &e->unit;
    const mlo_token *t = mlo_token_of(s, i, n);
    switch (u->flow) {
    case MLO_FLOW_BEATS:
        if (!e->kernel)
            return mlo_max(mlo_entered(s, i, n, at),
                       mlo_entered(s, i, n, 0) + at + mlo_split_waits(s, i, at))
                + 1;
        return mlo_max(t->work > t->in[0] ? t->work + at : 0, mlo_entered(s, i, n, at))
            + mlo_pipeline(e);
    case MLO_FLOW_MATRIX: return t->soon + at * mlo_port_beats(u->in[0]);
    case MLO_FLOW_ROWS: return mlo_beat_at(t->out, at, mlo_beats_out(e));
    default: return t->soon + at;
    }
}

/* When a beat x of a pipeline could be in its last stage's place: two wait behind it in a skid. */
static int64_t mlo_released(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    return x < 2 ? 0 : mlo_leaves(s, i, x - 2, beats) + 1;
}

/* A pipeline whose last stage cannot leave stands still as a whole, with the gap that there was
 * between two tokens: when beat x goes into it. */
static int64_t mlo_resumes_at(const mlo_schedule *s, int i, int64_t x, int64_t beats) {
    const int64_t stages = mlo_pipeline(&s->c->element[i]) - 2, at = x % beats, first = x - at;
    if (at >= stages || first < 1) return 0;
    const int64_t when = mlo_entered(s, i, first / beats, 0) + 1;
    if (mlo_released(s, i, first - 1, beats) <= when) return 0;
    for (int64_t b = mlo_max(0, first - stages); b < first; b++)
        if (mlo_released(s, i, b, beats) > when)
            return mlo_entered(s, i, b / beats, b % beats) + stages + 1 > when
                ? 0
                : mlo_released(s, i, mlo_min(b + at, first - 1), beats);
    return 0;
}

/* When an edge's consumer takes its beat x, counted from the first token on; 0 if that is surely
 * not later than `soonest`. */
static int64_t mlo_sink_takes(
    const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t beats, int64_t soonest) {
    const mlo_element *to = &s->c->element[e->to];
    const int64_t n = x / beats, at = x % beats;
    if (n >= mlo_taken(s, e->to) || to->unit.whole_frame) {
        const int64_t open = to->unit.flow == MLO_FLOW_BEATS || to->unit.flow == MLO_FLOW_NORM
            ? mlo_opens(s, e->to, x, beats)
            : 0;
        const int64_t takes = mlo_edge_takes(s, e, x, beats);
        return open == MLO_NOT_YET || takes == MLO_NOT_YET ? MLO_NOT_YET : mlo_max(open, takes);
    }
    if (mlo_token_of(s, e->to, n)->in[1] + MLO_SURELY <= soonest) return 0;
    if (s->chain[e->to] > MLO_ASKED) return mlo_edge_takes(s, e, x, beats);
    int64_t opens = to->unit.flow == MLO_FLOW_NORM ? mlo_opens(s, e->to, x, beats) : 0;
    if (to->unit.flow == MLO_FLOW_BEATS) {
        const int64_t gone = x - mlo_pipeline(to) - 1;
        const int64_t left = gone < 0 ? 0 : mlo_leaves_at(s, e->to, gone / beats, gone % beats);
        if (left == MLO_NOT_YET) return left;
        opens = mlo_max(left + 1, mlo_resumes_at(s, e->to, x - 1, beats));
    }
    return mlo_max(mlo_entered(s, e->to, n, at), opens);
}

static int64_t mlo_floor(int64_t a, int64_t b) { return a >= 0 ? a / b : -mlo_parts(-a, b); }

/* Which beat the consumer has to take before what is behind an edge's fork and FIFO takes beat x,
 * counted from the first token on, and how many cycles before; below 0: of none. A width converter
 * stores all of a group but the last of it, and has a skid, as what waits for another stream does. */
static int64_t mlo_link_required_beat(
    const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t *before) {
    const mlo_link *w = &s->way[e - s->c->edge];
    const int64_t skids = (e->lanes_from != e->lanes_to) + mlo_link_joins(s->c, e);
    *before = skids + mlo_max(0, (x + 1) % w->up);
    return mlo_floor(x + 1 - w->up, w->up) * w->down - 2 * skids;
}

/* When what is behind an edge's fork and FIFO takes beat x; about that, where it is surely not
 * later than `soonest`. */
static int64_t mlo_link_accepts(
    const mlo_schedule *s, const mlo_edge *e, int64_t x, int64_t soonest) {
    int64_t before;
    const int64_t at = mlo_link_required_beat(s, e, x, &before);
    const int64_t when = at < 0
        ? 0
        : mlo_sink_takes(s, e, at, s->way[e - s->c->edge].beats_to, soonest);
    return when == MLO_NOT_YET ? when : when + before;
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
        if (mine < 0 || n * w->beats_from + mine >= s->total * w->beats_from) continue;
        const int64_t when = e->to == MLO_OUTSIDE
            ? mlo_loop_takes(s, n, mine)
            : mlo_link_accepts(
                  s, e, n * w->beats_from + mine - behind - 2 * w->fork - w->fifo, soonest);
        if (when == MLO_NOT_YET) return when;
        soonest = mlo_max(
            soonest, when + (e->to == MLO_OUTSIDE ? w->back : w->fork + (w->fifo > 0) + behind));
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
        if (token >= mlo_taken(s, o->to)) {
            if (token < n) return MLO_NOT_YET;
            continue;
        }
        if (mlo_token_of(s, o->to, token)->in[1] + w->up + MLO_SKIDS < soonest
            && !c->element[o->to].unit.whole_frame)
            continue;
        int64_t before;
        const int64_t asks = mlo_link_required_beat(s, o, x, &before);
        const int64_t takes = asks < 0 ? 0 : mlo_edge_takes(s, o, asks, w->beats_to);
        if (takes == MLO_NOT_YET) return takes;
        soonest = mlo_max(soonest, takes + before + (w->fifo > 0));
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
