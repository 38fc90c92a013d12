/* show, arena: the plan of a build of C in pictures: which value, or which part of it, lies where and when.
 *
 * in:  the plan (show/cuts.c).
 * out: HTML: bytes over time, of the arena, and of the larger memory where --arena cut the steps; a table of the
 *     cuts.
 *
 * Time goes step by step, from left to right; a step of parts has a slot for each part, one in front, in which the
 * first operands come, and one behind, in which the last result leaves. Steps that repeat are drawn once.
 *
 * invariant: nothing is drawn but what the manifest says; its names go through mlo_html_words.
 * example: two boxes above each other that take turns are the two places of one operand.
 * cost: O(places * steps); at most MLO_BYTES_PARTS parts of a step are drawn.
 */
enum {
    MLO_BYTES_PARTS = 6, /* of a step that are drawn; */
    MLO_BYTES_FEW = 2, /* of more steps than */
    MLO_BYTES_MANY = 64,
    MLO_BYTES_TICKS = 3, /* of a slot */
    MLO_BYTES_HEIGHT = 260
};

typedef struct {
    const mlo_view *v;
    mlo_text *t;
    const mlo_cuts *c;
    int most; /* parts of a step that are drawn */
    int64_t begin[MLO_CUTS_STEPS + 2]; /* the tick that each step begins at */
    mlo_scale x; /* ticks */
    mlo_scale y; /* bytes */
} mlo_bytes_chart;

/* ---- time ------------------------------------------------------------------- */

/* Parts of a step that are drawn. */
static int64_t mlo_bytes_drawn(const mlo_bytes_chart *h, const cJSON *tile) {
    const int64_t parts = mlo_cuts_parts(tile);
    return parts < h->most ? parts : h->most;
}

/* When each step begins. */
static void mlo_bytes_times(mlo_bytes_chart *h) {
    int n = 0;
    for (int i = 0; i < h->c->steps; i++) n += h->c->tile[i] && !mlo_cuts_again(h->c, i);
    h->most = n > MLO_BYTES_MANY ? MLO_BYTES_FEW : MLO_BYTES_PARTS;
    for (int i = 0; i < h->c->steps; i++) {
        const int64_t slots = h->c->tile[i] ? mlo_bytes_drawn(h, h->c->tile[i]) + 2 : 1;
        h->begin[i + 1] = h->begin[i] + (mlo_cuts_again(h->c, i) ? 0 : slots * MLO_BYTES_TICKS);
    }
    h->x = (mlo_scale){ 0, h->begin[h->c->steps], MLO_CHART_LEFT, MLO_CHART_RIGHT };
}

/* ---- boxes ------------------------------------------------------------------ */

typedef struct {
    int64_t from; /* ticks */
    int64_t to;
    int64_t at; /* bytes */
    int64_t bytes;
    int colour;
    int moves; /* 1: it is being copied */
    const char *name;
} mlo_bytes_box;

/* A pixel is left free between neighbours, where there is room. */
static int64_t mlo_bytes_side(int64_t pixels) {
    if (pixels > 2) return pixels - 1;
    return pixels > 0 ? pixels : 1;
}

/* Bytes from `at` on are taken from one tick to another. */
static void mlo_bytes_draw(const mlo_bytes_chart *h, const mlo_bytes_box *b, const char *when) {
    const int64_t x = mlo_pixel(&h->x, b->from), w = mlo_pixel(&h->x, b->to) - x;
    const int64_t y = mlo_pixel(&h->y, b->at + b->bytes), high = mlo_pixel(&h->y, b->at) - y;
    if (b->from >= b->to || !b->bytes || b->at + b->bytes > h->y.high) return;
    mlo_printf(h->t, "<rect class='i%d%s' x=%lld y=%lld width=%lld height=%lld><title>", b->colour,
        b->moves ? " faded" : "", (long long)x, (long long)y, (long long)mlo_bytes_side(w),
        (long long)mlo_bytes_side(high));
    mlo_html_words(h->t, b->name, 200);
    mlo_html_words(h->t, when, 200);
    mlo_printf(h->t, "; bytes %s to ", mlo_thousands(h->v->m, b->at));
    mlo_printf(h->t, "%s</title></rect>", mlo_thousands(h->v->m, b->at + b->bytes - 1));
    if (w < 40 || high < 12 || b->moves) return;
    mlo_printf(h->t, "<text class=inside x=%lld y=%lld>", (long long)x + 3, (long long)y + 10);
    mlo_html_words(h->t, b->name, (int)(w / 7));
    mlo_puts(h->t, "</text>");
}

/* Bytes below each other, and step numbers, as many as there is room for. */
static void mlo_bytes_axes(const mlo_bytes_chart *h) {
    const int64_t step = mlo_nice_step(h->y.high, 6);
    int64_t free = 0;
    mlo_svg_words(h->t, "axis", "end", MLO_CHART_LEFT - 34, h->y.from + 14, "step");
    mlo_printf(h->t,
        "<text class=axis text-anchor=middle transform='translate(%d,%lld) rotate(-90)'>bytes"
        "</text>",
        MLO_CHART_LEFT - 74, (long long)(h->y.from + MLO_CHART_TOP) / 2);
    for (int64_t at = 0; at <= h->y.high; at += step) {
        const int64_t y = mlo_pixel(&h->y, at);
        mlo_svg_line(h->t, "grid", MLO_CHART_LEFT, y, MLO_CHART_RIGHT, y);
        mlo_svg_words(h->t, "axis", "end", MLO_CHART_LEFT - 8, y + 4, mlo_thousands(h->v->m, at));
    }
    for (int i = 0; i < h->c->steps; i++) {
        const int64_t x = mlo_pixel(&h->x, h->begin[i]);
        if (h->begin[i + 1] == h->begin[i] || x < free) continue;
        mlo_svg_line(h->t, "grid", x, MLO_CHART_TOP - 4, x, h->y.from);
        mlo_svg_words(h->t, "axis", "start", x, h->y.from + 14, mlo_thousands(h->v->m, i));
        free = x + 30;
    }
}

/* A picture begins: of so many bytes. */
static void mlo_bytes_frame(mlo_bytes_chart *h, int64_t bytes) {
    const int bottom = (int)MLO_CHART_TOP + MLO_BYTES_HEIGHT; /* C++20 adds no two enumerations */
    h->y = (mlo_scale){ 0, bytes, bottom, MLO_CHART_TOP };
    mlo_printf(h->t, "<svg class='chart arena' viewBox='0 0 %d %d' width='100%%' role=img>",
        MLO_CHART_WIDTH, bottom + 22);
    mlo_bytes_axes(h);
}

/* ---- whole values ----------------------------------------------------------- */

/* A place, for as long as it is in use. */
static void mlo_bytes_place(const mlo_bytes_chart *h, const cJSON *place, int colour) {
    const char *live = mlo_cuts_word(place, "steps");
    mlo_bytes_box box = { 0, 0, mlo_cuts_number(place, "offset"), mlo_cuts_number(place, "bytes"),
        colour % 8, 0, mlo_cuts_word(place, "what") };
    int n = (int)strlen(live);
    if (n > h->c->steps) n = h->c->steps;
    for (int from = 0, to; from < n; from = to + 1) {
        for (to = from; to < n && live[to] == '1';) to++;
        box.from = h->begin[from];
        box.to = h->begin[to];
        mlo_bytes_draw(
            h, &box, mlo_or_empty(mlo_format(h->v->m, ", steps %d to %d", from, to - 1)));
    }
}
static void mlo_bytes_places(mlo_bytes_chart *h, int64_t bytes) {
    int colour = 0;
    mlo_bytes_frame(h, bytes);
    for (const cJSON *p = mlo_cuts_list(h->c->plan, "places"); p; p = p->next)
        mlo_bytes_place(h, p, colour++);
    mlo_puts(h->t, "</svg>");
}

/* ---- parts ------------------------------------------------------------------ */

/* What one argument of a step has. */
typedef struct {
    const char *name;
    int colour;
    int result;
    int cut;
    int64_t at;
    int64_t bytes;
    int64_t places;
} mlo_bytes_argument;

static mlo_bytes_argument mlo_bytes_argument_of(const cJSON *a) {
    const char *is = mlo_cuts_word(a, "is");
    const int result = mlo_eq(is, "result"), parameter = mlo_eq(is, "parameter");
    const int cut = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(a, "cut"));
    return (mlo_bytes_argument){ *mlo_cuts_word(a, "value") ? mlo_cuts_word(a, "value") : is,
        result          ? 1
            : parameter ? 3
                        : 0,
        result, cut, mlo_cuts_number(a, "offset"), mlo_cuts_number(a, "bytes"),
        mlo_cuts_number(a, "places") };
}

/* An argument's box, while it is used or, faded, copied. */
static void mlo_bytes_use(const mlo_bytes_chart *h, const mlo_bytes_argument *a, int64_t part,
    int64_t from, int64_t to, const char *moves) {
    const mlo_bytes_box box = { from, to, a->at + (a->places > 1 ? part % 2 * a->bytes : 0),
        a->bytes, a->colour, *moves != 0, a->name };
    const char *when = a->cut ? mlo_format(h->v->m, ", part %lld%s", (long long)part, moves)
                              : mlo_format(h->v->m, ", whole%s", moves);
    mlo_bytes_draw(h, &box, mlo_or_empty(when));
}

/* Part p of an operand comes and is used; `now`: when its slot begins. */
static void mlo_bytes_operand(
    const mlo_bytes_chart *h, const mlo_bytes_argument *a, int64_t p, int64_t now) {
    const int waits = p && a->places < 2; /* for the kernel in front of it */
    mlo_bytes_use(h, a, p, waits ? now : now - MLO_BYTES_TICKS, waits ? now + 1 : now, ", comes");
    mlo_bytes_use(h, a, p, waits ? now + 1 : now, now + MLO_BYTES_TICKS, "");
}

/* Part p of the result is made, and leaves. */
static void mlo_bytes_result(
    const mlo_bytes_chart *h, const mlo_bytes_argument *a, int64_t p, int64_t now, int last) {
    const int64_t made = last || a->places > 1 ? now + MLO_BYTES_TICKS : now + 2;
    mlo_bytes_use(h, a, p, now, made, "");
    mlo_bytes_use(
        h, a, p, made, last || a->places > 1 ? made + MLO_BYTES_TICKS : made + 1, ", leaves");
}

/* A step's arguments in the arena, part by part. */
static void mlo_bytes_step(const mlo_bytes_chart *h, int i) {
    const cJSON *tile = h->c->tile[i];
    const int64_t drawn = mlo_bytes_drawn(h, tile), parts = mlo_cuts_parts(tile);
    const int64_t first = h->begin[i] + MLO_BYTES_TICKS, end = first + drawn * MLO_BYTES_TICKS;
    const int64_t scratch = mlo_cuts_number(tile, "scratch");
    for (const cJSON *o = mlo_cuts_list(tile, "arguments"); o; o = o->next) {
        const mlo_bytes_argument a = mlo_bytes_argument_of(o);
        if (!a.cut && !a.result) {
            mlo_bytes_use(h, &a, 0, h->begin[i], first, ", comes");
            mlo_bytes_use(h, &a, 0, first, end, "");
        }
        for (int64_t p = 0; p < drawn && (a.cut || a.result); p++) {
            const int64_t now = first + p * MLO_BYTES_TICKS;
            if (a.result)
                mlo_bytes_result(h, &a, p, now, p + 1 == parts);
            else
                mlo_bytes_operand(h, &a, p, now);
        }
    }
    const mlo_bytes_box box = { first, end, mlo_cuts_number(tile, "bytes") - scratch, scratch, 7, 0,
        "scratch" };
    mlo_bytes_draw(h, &box, "");
}

/* The arena, of parts. */
static void mlo_bytes_arena(mlo_bytes_chart *h, int64_t bytes) {
    mlo_bytes_frame(h, bytes);
    for (int i = 0; i < h->c->steps; i++)
        if (h->c->tile[i] && h->begin[i + 1] > h->begin[i]) mlo_bytes_step(h, i);
    mlo_puts(h->t, "</svg>");
}

/* A line for each step in parts. */
static void mlo_bytes_table(const mlo_bytes_chart *h) {
    static const char *const heads[] = { ">Step", "Node", ">Parts", ">Units", "Places", ">Bytes",
        ">Copied", ">beside", NULL };
    mlo *m = h->v->m;
    mlo_puts(h->t, "<table><thead>");
    mlo_html_cells(h->t, "th", heads);
    mlo_puts(h->t, "</thead><tbody>");
    for (int i = 0; i < h->c->steps; i++) {
        const cJSON *tile = h->c->tile[i];
        if (!tile || mlo_cuts_again(h->c, i)) continue;
        const char *const cells[] = { mlo_right(m, mlo_thousands(m, i)),
            mlo_cuts_word(tile, "node"), mlo_right(m, mlo_thousands(m, mlo_cuts_calls(tile))),
            mlo_right(m, mlo_thousands(m, mlo_cuts_number(tile, "units"))),
            mlo_cuts_places(m, tile),
            mlo_right(m, mlo_thousands(m, mlo_cuts_number(tile, "bytes"))),
            mlo_right(m, mlo_thousands(m, mlo_cuts_number(tile, "traffic"))),
            mlo_right(m, mlo_thousands(m, mlo_cuts_number(tile, "overlapped"))), NULL };
        mlo_html_cells(h->t, "td", cells);
    }
    mlo_puts(h->t, "</tbody></table>");
}

/* ---- all -------------------------------------------------------------------- */

static void mlo_bytes_tiled(mlo_bytes_chart *h) {
    mlo *m = h->v->m;
    mlo_printf(h->t,
        "<section><h2>Arena: %s bytes of parts</h2><p class=sub>A run copies %s bytes, ",
        mlo_thousands(m, mlo_cuts_number(h->c->plan, "arena_bytes")),
        mlo_thousands(m, mlo_cuts_number(h->c->plan, "traffic_bytes")));
    mlo_printf(h->t,
        "%s of those while a kernel runs. <span class=key><i class=i0></i></span>operands, <span "
        "class=key><i class=i3></i></span>parameters, <span class=key><i class=i1></i></span>"
        "results, <span class=key><i class=i7></i></span>scratch; faded: on their way. Below: "
        "steps, at most %d parts of each.</p>",
        mlo_thousands(m, mlo_cuts_number(h->c->plan, "overlapped_bytes")), h->most);
    mlo_bytes_arena(h, mlo_cuts_number(h->c->plan, "arena_bytes"));
    mlo_printf(h->t, "<h3>The larger memory: %s bytes, of whole values</h3>",
        mlo_thousands(m, mlo_cuts_number(h->c->plan, "memory_bytes")));
    mlo_bytes_places(h, mlo_cuts_number(h->c->plan, "memory_bytes"));
    mlo_puts(h->t,
        "<h3>Cuts</h3><p class=sub>What is cut has two places, or some of it one, where two are "
        "too "
        "large. Copied: bytes, in all and beside a kernel.</p>");
    mlo_bytes_table(h);
}

/* What repeats is said below the pictures. */
static void mlo_bytes_loop(const mlo_bytes_chart *h) {
    const cJSON *loop = cJSON_GetObjectItemCaseSensitive(h->c->plan, "loop");
    const int64_t rounds = mlo_cuts_number(loop, "rounds"), start = mlo_cuts_number(loop, "start");
    if (rounds > 1)
        mlo_printf(h->t,
            "<p class=quiet>Steps %lld to %lld are run %lld times, drawn and listed once.</p>",
            (long long)start, (long long)(start + mlo_cuts_number(loop, "steps") - 1),
            (long long)rounds);
}

/* What goes in blocks of tokens: its boxes are those of a block, and what it reads stays till the last one. */
static void mlo_bytes_blocks(const mlo_bytes_chart *h) {
    const cJSON *k = mlo_cuts_list(h->c->plan, "blocks");
    if (!k) return;
    mlo_puts(h->t, "<p class=quiet>");
    for (const char *comma = ""; k; k = k->next, comma = "; ") {
        mlo_puts(h->t, comma);
        mlo_html_words(h->t, mlo_cuts_word(k, "what"), 200);
    }
    mlo_puts(h->t, ".</p>");
}

/* The whole arena, of whole values. */
static void mlo_bytes_whole(mlo_bytes_chart *h) {
    const int64_t bytes = mlo_cuts_number(h->c->plan, "arena_bytes");
    mlo_printf(h->t,
        "<section><h2>Arena: %s bytes</h2><p class=sub>What lies where, step by step.</p>",
        mlo_thousands(h->v->m, bytes));
    mlo_bytes_places(h, bytes);
    mlo_bytes_blocks(h);
}

/* The option "plan", if it was given. */
static int mlo_html_arena(const mlo_view *v, mlo_text *t) {
    mlo_bytes_chart *h = MLO_NEW(v->m, mlo_bytes_chart);
    mlo_cuts *c = MLO_NEW(v->m, mlo_cuts);
    if (!h || !c || mlo_cuts_read(v->m, c) || !c->plan) return mlo_failed(v->m);
    h->v = v;
    h->t = t;
    h->c = c;
    mlo_bytes_times(h);
    if (mlo_cuts_any(c))
        mlo_bytes_tiled(h);
    else
        mlo_bytes_whole(h);
    mlo_bytes_loop(h);
    mlo_puts(t, "</section>");
    mlo_cuts_free(c);
    return mlo_failed(v->m);
}
