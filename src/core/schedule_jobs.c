/* schedule_jobs: what goes through the iterations of a schedule together (its jobs), and how many tiles that are.
 *
 * in:  a core; frames of the longest length, or jobs as a host orders them (mlo_core.order).
 * out: groups of frames, each with its place in the run.
 *
 * Frames are in groups of as many as are in flight; of jobs that a host ordered, those that do not wait for one of the
 * group to leave (mlo_job.v). A group closes, too, when its first results are there and the next frame is not (with
 * row blocks, whose results wait for that, when it has not come for a while; mlo_loop.v): then all from that frame on
 * is laid out anew, of which nothing has begun.
 * invariant: tokens are numbered as they enter the body; the number of one that has entered never changes.
 * example: 4 in flight, a token of each of slots 0 0 1 2: the second waits for the first to leave, so there are two
 *     groups, of 1 and of 3 frames.
 * cost: O(frames x frames in flight).
 */
/* The frame that a frame waits for to leave, if any is inside (mlo_job.v): that in front of as many as can be in
 * flight, or the latest one of its slot. -1: it waits for none. */
static int64_t mlo_job_waits(const mlo_core *c, int64_t frame) {
    int64_t before = frame - 1;
    for (; before >= 0 && before > frame - c->frames; before--)
        if (c->order && c->order[before].slot == c->order[frame].slot) break;
    return before;
}

/* How many frames go through the iterations with this one, at most. */
static int64_t mlo_group(const mlo_core *c, int64_t frame, int64_t frames) {
    int64_t n = 1;
    while (n < c->frames && frame + n < frames && mlo_job_waits(c, frame + n) < frame) n++;
    return n;
}

/* A job has so many frames. */
static void mlo_job_ends(const mlo_core *c, mlo_job *j, int64_t frames) {
    j->frames = frames;
    j->order = c->order ? c->order + j->frame : NULL;
    j->turn = 0;
    for (int64_t f = 0; f < frames; f++) j->turn += c->order ? j->order[f].tokens : c->chunk;
}

/* Where the job behind it begins. */
static mlo_job mlo_job_behind(const mlo_job *j) {
    mlo_job next = *j;
    next.begin += mlo_job_tokens(j);
    next.outside += mlo_job_turn(j);
    next.round = next.begin - next.outside;
    next.frame += j->frames;
    next.pass += j->frames * j->iterations;
    next.load += j->loads;
    return next;
}

/* Tiles of a job in an iteration: frames that go through several of them share tiles. */
static int64_t mlo_job_tiles(const mlo_job *j, const mlo_unit *u) {
    int64_t tiles = 0;
    if (j->iterations > 1) return mlo_unit_tiles(u, j->turn);
    for (int64_t f = 0; f < j->frames; f++) tiles += mlo_unit_tiles(u, mlo_job_length(j, f));
    return tiles;
}

/* Tiles in front of each job from the k-th on. */
static void mlo_jobs_tiles(mlo_schedule *s, int i, int64_t k) {
    const mlo_unit *u = &s->c->element[i].unit;
    int64_t *tiles = s->tiling[i].tiles;
    s->tiling[i].next_of = 0;
    for (tiles[0] = 0; k < s->n_job; k++) {
        const mlo_job *j = &s->job[k];
        tiles[k + 1] = tiles[k] + j->iterations * mlo_job_tiles(j, u);
    }
}

/* Jobs from the k-th on, which begins with a frame. What is a job is decided here alone. */
static void mlo_schedule_jobs(mlo_schedule *s, int64_t k, int64_t frame) {
    const mlo_core *c = s->c;
    const int64_t iterations = c->scan.iterations;
    mlo_job next = { 0, NULL, 0, iterations, iterations > 1 ? iterations : 0, 0, 0, 0, 0, 0, 0 };
    if (k) {
        mlo_job *last = &s->job[k - 1];
        mlo_job_ends(c, last, frame - last->frame);
        next = mlo_job_behind(last);
    }
    for (s->n_job = k; next.frame < s->frames; next = mlo_job_behind(&next)) {
        mlo_job_ends(c, &next, mlo_group(c, next.frame, s->frames));
        s->job[s->n_job++] = next;
    }
    s->total = next.begin;
    s->loads = s->n_job * iterations;
    for (int i = 0; i < c->n_element; i++)
        if (s->tiling[i].tiles) mlo_jobs_tiles(s, i, k ? k - 1 : 0);
}
