/* schedule_around: when ids' rows come to a decoder's loop, and when its head says what follows; when they come to what
 * is in front of an encoder's loop, and when its tail says what it makes of a frame's first token (--tokens).
 *
 * in:  a schedule of the loop, one of its head (core/around.c), which share the way to memory.
 * out: when a row passes the loop's door; when a frame has left the loop; when its word is said.
 *
 * Up to four rows are asked for ahead of the one that passes the door (mlo_rows). Where positions are learned, a token
 * has two: its id's, which waits in mlo_places, and its position's; their sum passes the door. Of a frame its last
 * token goes into the head (mlo_newest), which is a core of its own: one iteration, a token a frame. Likewise the first
 * one into an encoder's tail (mlo_first), beat by beat. A text that goes on inside asks for its next row when the word
 * behind the one before is said (mlo_tokens).
 *
 * invariant: frames leave the loop, pass the head and are said in their order.
 * example: a memory-bound step reads the loop's parameters, the head's, and a row: no beat of them twice.
 * cost: O(rows); the head's is that of a core.
 */
enum { MLO_ROWS_FIFO = 64, MLO_ROWS_BURST = 32, MLO_ROWS_AHEAD = 4 };
/* Cycles, as they are in the Verilog: from an id to its request, from a row that passed to the request for which it
 * made room, from a request to the next row's; from a beat in the reader's FIFO to the loop's door; from a frame's
 * last beat out of the loop to its token's first one into the head, and from that token's last one to where another
 * frame's can be taken; from a word that is said to the id that it becomes, and to the core's own output. */
enum { MLO_ROW_ASKS = 4, MLO_ROW_PASSED = 4, MLO_ROW_EACH = 4, MLO_ROW_WAY = 3 };
enum { MLO_NEWEST_GIVES = 1, MLO_NEWEST_TAKES = 2, MLO_SAID_ID = -2, MLO_SAID_OUT = -1 };
/* Of a tail: from a beat out of the loop to that into it; from its last beat to the core's own output. */
enum { MLO_FIRST_GIVES = 1, MLO_TAIL_OUT = -2 };

/* In mlo_places: from an id of its own to its index (the host's is taken with the second one); from a position's row
 * to the sum. */
enum { MLO_PLACE_ASKS = 1, MLO_PLACE_WAY = 1 };

/* From a row's last beat at a door to its token's first one behind it; from the last beat that a front makes to its
 * token's first one in the loop. */
enum { MLO_ROW_DOOR = 4, MLO_FRONT_WAY = 6 };

static int64_t mlo_row_beats(const mlo_core *c) { return c->channels * 16 / c->axi_bits; }
/* Of a token. */
static int64_t mlo_rows_each(const mlo_core *c) { return c->places ? 2 : 1; }

static void mlo_schedule_join(mlo_schedule *s, mlo_schedule *around, mlo_schedule *tail) {
    if (!around) return;
    mlo_schedule *door = s->c->in_front ? around : s; /* that of the rows */
    *(s->c->in_front ? &s->front : &s->head) = around;
    around->loop = s;
    door->table.unit = mlo_min(MLO_ROWS_BURST, 4096 * 8 / s->c->axi_bits);
    door->table.depth = MLO_ROWS_FIFO;
    door->table.port = around->c->n_element + 1;
    door->opening = -1;
    around->origin = mlo_core_image_bytes(s->c) / (s->c->axi_bits / 8);
    if (!tail) return;
    s->head = tail;
    tail->loop = s;
    tail->origin = mlo_tail_offset(s->c) / (s->c->axi_bits / 8);
}

/* Is it in front of an encoder's loop? What is around a loop, with a port of its own to memory (a tail has another);
 * NULL. At whose door the rows stand. */
static int mlo_is_front(const mlo_schedule *s) { return s->loop && s->loop->front == s; }
static mlo_schedule *mlo_beside(const mlo_schedule *loop) {
    return loop->front ? loop->front : loop->head;
}
/* An encoder's; NULL: there is none. */
static mlo_schedule *mlo_tail_of(const mlo_schedule *loop) {
    return loop->front ? loop->head : NULL;
}
static mlo_schedule *mlo_rows_door(mlo_schedule *s) {
    mlo_schedule *loop = s->loop ? s->loop : s;
    return loop->front ? loop->front : loop;
}
/* Whose port the rows' reader shares, of a door. */
static mlo_schedule *mlo_rows_port(mlo_schedule *door) { return door->head ? door->head : door; }

/* When the word behind a frame is said; MLO_NOT_YET. */
static int64_t mlo_said(const mlo_schedule *head, int64_t frame) {
    return head->p->frame_done[frame] ? head->p->frame_done[frame] : MLO_NOT_YET;
}

/* Cycles from the first of several words that are said at once to the last: side by side, then one behind the other. */
static int64_t mlo_said_words(const mlo_schedule *head) {
    const int64_t words = head->c->channels / 2;
    return words > 1 ? words + 1 : 0;
}

/* When a frame has left the loop: its head may have to take the one before. MLO_NOT_YET. */
static int64_t mlo_left(const mlo_schedule *s, int64_t frame) {
    const int64_t done = s->p->frame_done[frame];
    if (!done) return MLO_NOT_YET;
    if (!s->head || !frame) return done;
    if (mlo_fired(s->head, MLO_OUTSIDE) < frame) return MLO_NOT_YET;
    return mlo_max(done, mlo_token_of(s->head, MLO_OUTSIDE, frame - 1)->out[1] + MLO_NEWEST_TAKES);
}

/* ---- rows ------------------------------------------------------------------ */

/* A row has left mlo_rows from its first beat's cycle on until `last`: room for another. */
static void mlo_row_passes(mlo_schedule *s, int64_t first, int64_t last) {
    const int64_t beats = mlo_row_beats(s->c), from = s->passed * beats;
    const mlo_until passed = { from, from + beats, first, last };
    s->table.dealt[s->table.portions++ % MLO_READS_KEPT] = passed;
    s->entered[s->passed++ % MLO_ROWS_KEPT] = last + MLO_ROW_WAY;
}

/* An id's row goes into mlo_places as it comes, behind the position's row before it. */
static void mlo_row_waits(mlo_schedule *s) {
    const int64_t row = s->passed, all = mlo_row_beats(s->c), from = row * all;
    const int64_t beats = s->c->channels / s->c->lanes;
    if (!s->c->places || row % 2 || s->table_rows <= row) return;
    int64_t first = mlo_fetch_has(s, &s->table, from + mlo_parts(all, beats));
    if (row) first = mlo_max(first, s->entered[(row - 1) % MLO_ROWS_KEPT] + 1 - MLO_ROW_WAY);
    mlo_row_passes(s, first,
        mlo_max(first + beats - 1,
            mlo_fetch_has(s, &s->table, from + all) + mlo_max(0, beats / all - 1)));
}

/* When the next row can be asked for: its id is there, and room for it. MLO_NOT_YET. */
static int64_t mlo_row_begins(mlo_schedule *s) {
    const int64_t each = mlo_rows_each(s->c), token = s->table_rows / each;
    const mlo_job *j = mlo_job_outside(s, token);
    const int64_t ahead = s->table_rows - MLO_ROWS_AHEAD;
    int64_t when = MLO_ROW_ASKS;
    if (s->table_rows == each * j->outside && j->frame && j->order && j->order->told) {
        when = mlo_said(s->head, j->frame - 1);
        if (when == MLO_NOT_YET) return when;
        when += (int64_t)MLO_SAID_ID + MLO_ROW_ASKS + (s->c->places ? MLO_PLACE_ASKS : 0);
    }
    if (ahead >= s->passed) return MLO_NOT_YET;
    if (ahead >= 0) when = mlo_max(when, s->entered[ahead % MLO_ROWS_KEPT] + MLO_ROW_PASSED);
    return when + mlo_rows_port(s)->shared;
}

/* When the row that is asked for can begin to leave the reader's FIFO, which is shorter than some rows. MLO_NOT_YET. */
static int64_t mlo_row_opens(const mlo_schedule *s) {
    const int64_t row = s->table_rows;
    if (s->passed < row) return MLO_NOT_YET;
    if (s->c->places && row % 2 == 0)
        return row ? s->entered[(row - 1) % MLO_ROWS_KEPT] + 1 - MLO_ROW_WAY : 0;
    return s->opening == row ? s->opens : MLO_NOT_YET;
}

/* The table's reader asks for its next burst. 0: not yet. */
static int mlo_row_asks(mlo_schedule *s) {
    const mlo_job *last = &s->job[s->n_job - 1];
    const int64_t beats = mlo_row_beats(s->c), end = (s->table_rows + 1) * beats;
    mlo_fetch *r = &s->table;
    mlo_row_waits(s);
    if (s->table_rows == mlo_rows_each(s->c) * (last->outside + mlo_job_turn(last))) return 0;
    if (r->got == end - beats) {
        const int64_t begins = mlo_row_begins(s);
        if (begins == MLO_NOT_YET) return 0;
        r->asks = mlo_max(mlo_max(r->asks, begins), s->table_asked + MLO_ROW_EACH);
    }
    const int first = r->got == end - beats;
    if (!mlo_fetch_asks(s, r, r->got, end - r->got, beats, mlo_row_opens(s))) return 0;
    if (first) s->table_asked = s->bus->asked;
    s->table_rows += r->got == end;
    return 1;
}

static int mlo_rows_go_on(mlo_schedule *s) {
    int any = 0;
    while (mlo_row_asks(s)) any = 1;
    return any;
}

/* The table's reader is heard. 1: a row has been asked for. */
static int mlo_rows_hear(mlo_schedule *s, int *any) {
    const int64_t before = s->table_rows;
    if (s->table.waits > s->bus->now) {
        s->bus->next = mlo_min(s->bus->next, s->table.waits);
        return 0;
    }
    *any |= mlo_rows_go_on(s);
    return s->table_rows > before;
}

/* A token's row, or the sum of both of its rows, passes the door, which is open for its frame from `enters` on: when
 * its last beat does, behind the one before it; a token behind the next one waits there until the first of both has
 * gone into the loop. MLO_NOT_YET. */
static int64_t mlo_row_enters(mlo_schedule *s, const mlo_place *p, int64_t n, int64_t enters) {
    const mlo_core *c = s->c;
    const int64_t token = p->job->outside + n - p->job->begin, each = mlo_rows_each(c);
    const int64_t row = each * token + each - 1, all = mlo_row_beats(c), from = row * all;
    const int64_t beats = c->channels / c->lanes, sums = c->places ? MLO_PLACE_WAY : 0;
    mlo_fetch *r = &s->table;
    mlo_row_waits(s);
    if (s->passed < row) return MLO_NOT_YET;
    if (row) enters = mlo_max(enters, s->entered[(row - 1) % MLO_ROWS_KEPT] + 1 + sums);
    if (s->loop ? n > 1 : p->at > 1)
        enters = mlo_max(enters, mlo_token_of(s, MLO_OUTSIDE, n - 2)->out[0] + 1);
    s->opens = enters - MLO_ROW_WAY - sums;
    s->opening = row;
    if (s->table_rows <= row) return MLO_NOT_YET;
    const int64_t has = mlo_fetch_has(s, r, from + mlo_parts(all, beats));
    const int64_t first = mlo_max(enters, has + MLO_ROW_WAY + sums);
    const int64_t last = mlo_max(first + beats - 1,
        mlo_fetch_has(s, r, from + all) + MLO_ROW_WAY + sums + mlo_max(0, beats / all - 1));
    mlo_row_passes(s, first - MLO_ROW_WAY - sums, last - MLO_ROW_WAY - sums);
    return last;
}

/* ---- in front of an encoder's loop ----------------------------------------- */

/* Tokens between its door and the loop's body, at most: two at each of both doors, and what its norm keeps. */
static int64_t mlo_front_holds(const mlo_schedule *s) {
    const int64_t beats = s->c->channels / s->c->lanes;
    return 4 + mlo_norm_keeps(beats) / beats;
}

/* When a token's first beat goes into it: its row has come, and the loop has taken what was so far in front of it.
 * MLO_NOT_YET. */
static int64_t mlo_front_comes(mlo_schedule *s, const mlo_place *p, int64_t n) {
    const int64_t before = n - mlo_front_holds(s);
    int64_t enters = 0;
    if (before >= 0) {
        const mlo_job *j = mlo_job_outside(s->loop, before);
        const int64_t at = j->begin + before - j->outside;
        if (mlo_fired(s->loop, MLO_OUTSIDE) <= at) return MLO_NOT_YET;
        enters = mlo_token_of(s->loop, MLO_OUTSIDE, at)->out[1] + 1;
    }
    const int64_t last = mlo_row_enters(s, p, n, enters);
    return last == MLO_NOT_YET ? last : last + MLO_ROW_DOOR;
}

/* When a token that it made goes into the loop. MLO_NOT_YET. */
static int64_t mlo_front_gives(const mlo_schedule *front, int64_t token) {
    const int end = front->c->edge[front->c->n_edge - 1].from;
    if (mlo_fired(front, end) <= token) return MLO_NOT_YET;
    return mlo_token_of(front, end, token)->out[1] + MLO_FRONT_WAY;
}

/* ---- behind an encoder's loop ---------------------------------------------- */

/* When the first beat of a frame's first token could go into the tail, if all of them came a beat a cycle: so the last
 * one goes when it comes. MLO_NOT_YET. */
static int64_t mlo_tail_comes(const mlo_schedule *tail, int64_t frame, int64_t beats) {
    const int64_t begun = tail->loop->p->frame_begun[frame];
    return begun ? begun + MLO_FIRST_GIVES - (beats - 1) : MLO_NOT_YET;
}

/* When a frame's words have left the core. */
static int64_t mlo_left_core(const mlo_schedule *s, int64_t frame) {
    const int64_t said = mlo_said(s->head, frame);
    return mlo_tail_of(s) ? said + MLO_TAIL_OUT : said + MLO_SAID_OUT + mlo_said_words(s->head);
}
