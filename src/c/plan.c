/* plan: where values lie in the arena: the least bytes for places that are in use at given steps.
 *
 * in:  places, each with its bytes and the steps at which it is in use (of a loop's carried value two
 *     stretches: it is read early, and written again at the end).
 * out: an offset for each; the arena's bytes; a lower bound, the most that is in use at any one step.
 *     If both are equal, or all packings have been looked at, there is none smaller.
 *
 * Branch and bound. Any packing can be pushed down until each place lies on the floor or on one that it
 * shares a step with. Ordered by offset, each then lies at the lowest offset that is free above those in
 * front of it; so it is enough to look at orders, in which offsets never fall. An order is given up
 * when some place that is left would reach as high as the best so far, or those that are left of one
 * step would, on top of each other.
 *
 * invariant: places that share a step do not overlap; every offset is a multiple of MLO_PLAN_ALIGN.
 * example: 4, 2, 2 bytes in use at steps 01, 12, 2: 6 bytes, which is step 1's.
 * cost: MLO_PLAN_TRIES places tried at most, of many places fewer (MLO_PLAN_WORK), then the gap is told.
 */
enum { MLO_PLAN_STEPS = 1024, MLO_PLAN_PLACES = 1024 };
enum { MLO_PLAN_ALIGN = 16, MLO_PLAN_TRIES = 200000, MLO_PLAN_WORK = 300000000 };
enum { MLO_PLAN_WORDS = 120 }; /* names of what lies in a place are cut behind so many letters */

typedef struct {
    int64_t bytes;
    int64_t at; /* its offset; -1: it has none yet */
    unsigned char live[MLO_PLAN_STEPS]; /* 1: in use at this step */
    const char *what; /* the names of what lies there, for people; NULL: nobody said */
} mlo_arena_place;

typedef struct {
    mlo_arena_place place[MLO_PLAN_PLACES];
    int n;
    int steps;
    int64_t bytes; /* of the best packing */
    int64_t best[MLO_PLAN_PLACES]; /* its offsets */
    int64_t bound; /* no packing has fewer bytes */
    int64_t tries; /* places tried */
    int64_t most; /* that are tried at most */
} mlo_arena;

static int mlo_places_meet(const mlo_arena *p, const mlo_arena_place *a, const mlo_arena_place *b) {
    for (int s = 0; s < p->steps; s++)
        if (a->live[s] && b->live[s]) return 1;
    return 0;
}

/* The lowest offset from `least` on that is free of those placed that place i meets. */
static int64_t mlo_plan_lowest(const mlo_arena *p, int i, int64_t least) {
    int64_t at = least;
    for (int k = 0; k < p->n; k++) {
        const mlo_arena_place *o = &p->place[k];
        if (o->at < 0 || at >= o->at + o->bytes || at + p->place[i].bytes <= o->at
            || !mlo_places_meet(p, o, &p->place[i]))
            continue;
        at = o->at + o->bytes;
        k = -1;
    }
    return at;
}

/* Bytes of the places that are left at step s, on top of each other. */
static int64_t mlo_plan_left(const mlo_arena *p, int s) {
    int64_t sum = 0;
    for (int k = 0; k < p->n; k++)
        if (p->place[k].at < 0 && p->place[k].live[s]) sum += p->place[k].bytes;
    return sum;
}

static void mlo_plan_keep(mlo_arena *p, int64_t bytes) {
    if (bytes >= p->bytes) return;
    p->bytes = bytes;
    for (int k = 0; k < p->n; k++) p->best[k] = p->place[k].at;
}

/* Can what is left, from offset `least` on, stay below the best so far? */
static int mlo_plan_hopeful(const mlo_arena *p, int64_t least) {
    for (int s = 0; s < p->steps; s++) {
        const int64_t left = mlo_plan_left(p, s);
        if (left && least + left >= p->bytes) return 0;
    }
    for (int k = 0; k < p->n; k++)
        if (p->place[k].at < 0 && mlo_plan_lowest(p, k, least) + p->place[k].bytes >= p->bytes)
            return 0;
    return 1;
}

/* All orders of what is left, above `least`; what is placed ends at `top`. */
static void mlo_plan_search(mlo_arena *p, int left, int64_t least, int64_t top) {
    if (!left) {
        mlo_plan_keep(p, top);
        return;
    }
    int64_t hoped = -1; /* of the best so far when that was asked last */
    for (int i = 0; i < p->n && p->bytes > p->bound && p->tries < p->most; i++) {
        mlo_arena_place *k = &p->place[i];
        if (k->at >= 0) continue;
        if (hoped != p->bytes && !mlo_plan_hopeful(p, least)) return;
        hoped = p->bytes;
        const int64_t at = mlo_plan_lowest(p, i, least);
        p->tries++;
        k->at = at;
        mlo_plan_search(p, left - 1, at, mlo_max(top, at + k->bytes));
        k->at = -1;
    }
}

/* A packing to begin with: the largest first, each as low as it goes. */
static void mlo_plan_greedy(mlo_arena *p) {
    int64_t top = 0;
    for (int n = 0; n < p->n; n++) {
        int largest = -1;
        for (int k = 0; k < p->n; k++)
            if (p->place[k].at < 0 && (largest < 0 || p->place[k].bytes > p->place[largest].bytes))
                largest = k;
        p->place[largest].at = mlo_plan_lowest(p, largest, 0);
        top = mlo_max(top, p->place[largest].at + p->place[largest].bytes);
    }
    mlo_plan_keep(p, top);
    for (int k = 0; k < p->n; k++) p->place[k].at = -1;
}

/* Offsets for all places. */
static void mlo_plan_solve(mlo_arena *p) {
    p->bytes = INT64_MAX;
    p->bound = p->tries = 0;
    p->most = MLO_PLAN_WORK / (1 + (int64_t)p->n * (p->n + p->steps));
    if (p->most > MLO_PLAN_TRIES) p->most = MLO_PLAN_TRIES;
    for (int k = 0; k < p->n; k++) {
        p->place[k].bytes = mlo_parts(p->place[k].bytes, MLO_PLAN_ALIGN) * MLO_PLAN_ALIGN;
        p->place[k].at = -1;
    }
    for (int s = 0; s < p->steps; s++) p->bound = mlo_max(p->bound, mlo_plan_left(p, s));
    mlo_plan_greedy(p);
    mlo_plan_search(p, p->n, 0, 0);
    for (int k = 0; k < p->n; k++) p->place[k].at = p->best[k];
}

/* What lies in a place, beside what is named already. */
static void mlo_plan_name(mlo *m, mlo_arena_place *p, const char *what) {
    if (!p->what)
        p->what = what;
    else if (strlen(p->what) < MLO_PLAN_WORDS)
        p->what = mlo_format(m, "%s, %s", p->what, what);
}

/* Is there no smaller one? */
static int mlo_plan_proved(const mlo_arena *p) {
    return p->bytes == p->bound || p->tries < p->most;
}

/* "64 KB, the least there is: ..", for people. */
static const char *mlo_plan_text(mlo *m, const mlo_arena *p) {
    if (p->bytes == p->bound)
        return mlo_format(m, "the least there is: so much is in use at one step");
    return mlo_plan_proved(p) ? mlo_format(m, "the least there is: all packings were looked at")
                              : mlo_decimal(m, "at most %.1f %% above the least there is",
                                    100 * (double)(p->bytes - p->bound) / (double)p->bound);
}
