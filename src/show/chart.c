/* show, chart: the core in pictures: the roofline, two iterations token by token, streams cycle by
 * cycle, the whole run.
 *
 * in:  an mlo_view with a core; what it knows of a simulation.
 * out: SVG; colours come from the classes of the page.
 *
 * invariant: a picture of a schedule shows what mlo_predict_seen tells while it predicts, or what
 *     sim --trace measured. Coordinates are integers, and a logarithm is made by squaring, so the
 *     picture is the same everywhere.
 * example: the bars of the busiest kernel stand shoulder to shoulder; a gap in its row is a bubble
 *     (a time without work).
 * cost: two walks of the schedule a picture; at most MLO_BARS_MOST bars in the whole run, and a
 *     bar a token, or a few pixels, in the timeline.
 */
enum {
    MLO_BARS_MOST = 3000,
    MLO_CHART_WIDTH = 1200,
    MLO_CHART_LEFT = 124,
    MLO_CHART_RIGHT = 1180,
    MLO_CHART_TOP = 10,
    MLO_CHART_ROW = 20,
    MLO_LINE_ROW = 27,
    MLO_WAVE_ROW = 14,
    MLO_WAVE_LEFT = 150,
    MLO_OCTAVE = 1024,
    MLO_ROOF_LEFT = 74,
    MLO_ROOF_RIGHT = 560,
    MLO_ROOF_WIDTH = 800,
    MLO_ROOF_TOP = 16
};

/* ---- scales --------------------------------------------------------------- */

/* A stretch of an axis and its pixels. */
typedef struct {
    int64_t low; /* in units of the axis */
    int64_t high; /* in units of the axis */
    int from; /* pixels */
    int to; /* pixels */
} mlo_scale;

static int64_t mlo_pixel(const mlo_scale *s, int64_t v) {
    return s->from
        + (int64_t)((double)(v - s->low) * (s->to - s->from)
            / (double)(s->high > s->low ? s->high - s->low : 1));
}

/* `octave` (a power of two) x the binary logarithm: its digits by squaring. */
static int64_t mlo_binary_log(double v, int64_t octave) {
    int e;
    double f = 2 * frexp(v > 1e-9 ? v : 1e-9, &e);
    int64_t n = (int64_t)(e - 1) * octave;
    for (int64_t digit = octave / 2; digit; digit /= 2) {
        f *= f;
        if (f >= 2) {
            f /= 2;
            n += digit;
        }
    }
    return n;
}

static int64_t mlo_octaves(double v) { return mlo_binary_log(v, MLO_OCTAVE); }

/* A step of 1, 2 or 5 times a power of ten that cuts a length into at most `most` pieces. */
static int64_t mlo_nice_step(int64_t length, int most) {
    int64_t step = 1;
    for (int k = 0; length / step > most; k++) step = k % 3 == 1 ? step / 2 * 5 : step * 2;
    return step;
}

static void mlo_svg_words(
    mlo_text *t, const char *class_, const char *anchor, int64_t x, int64_t y, const char *s) {
    mlo_printf(t, "<text class='%s' text-anchor=%s x=%lld y=%lld>", class_, anchor, (long long)x,
        (long long)y);
    mlo_html_words(t, s, 90);
    mlo_puts(t, "</text>");
}
static void mlo_svg_line(
    mlo_text *t, const char *class_, int64_t x1, int64_t y1, int64_t x2, int64_t y2) {
    mlo_printf(t, "<line class='%s' x1=%lld y1=%lld x2=%lld y2=%lld />", class_, (long long)x1,
        (long long)y1, (long long)x2, (long long)y2);
}

/* ---- the roofline --------------------------------------------------------- */

/* A point of the roofline. */
typedef struct {
    const char *name;
    double macs; /* multiply-accumulates per frame */
    double intensity; /* multiply-accumulates per byte of parameters read for it */
    double predicted; /* multiply-accumulates a cycle */
    double measured; /* multiply-accumulates a cycle */
    int64_t ceiling; /* the most multiply-accumulates a cycle that there could be */
    int64_t x; /* pixels */
    int64_t y; /* pixels */
    int64_t label; /* y where its text stands, pixels */
    int whole; /* 1: it is the core as a whole */
} mlo_roof;

typedef struct {
    const mlo_view *v;
    mlo_text *t;
    mlo_scale x;
    mlo_scale y;
    mlo_roof point[MLO_CORE_MOST + 1];
    int n;
    double bandwidth; /* bytes a cycle */
    int height; /* pixels */
} mlo_roofline;

static void mlo_roof_add(
    mlo_roofline *r, const char *name, int64_t macs, int64_t bytes, int64_t ceiling, int whole) {
    const mlo_core *c = r->v->hw;
    mlo_roof p;
    memset(&p, 0, sizeof p);
    p.name = name;
    p.ceiling = ceiling;
    p.whole = whole;
    p.macs = (double)macs * (double)c->chunk * (double)c->scan.iterations;
    p.intensity = (double)macs * (double)c->chunk * c->frames / (double)(bytes > 0 ? bytes : 1);
    p.predicted = p.macs / (double)(r->v->p.interval > 0 ? r->v->p.interval : 1);
    p.measured = r->v->sim ? p.macs / r->v->sim->interval : 0;
    r->point[r->n++] = p;
}

/* Labels beside the plot, in the order of their points, 16 pixels apart at least, and else as near
 * to them as can be: where labels would touch, all of them stand around the mean of their wishes
 * (pool adjacent violators). */
static void mlo_roof_labels(mlo_roofline *r) {
    int64_t sum[MLO_CORE_MOST + 1], bottom = r->y.from;
    int count[MLO_CORE_MOST + 1], blocks = 0;
    for (int i = 1; i < r->n; i++)
        for (int k = i; k
            && (r->point[k].y < r->point[k - 1].y
                || (r->point[k].y == r->point[k - 1].y && r->point[k].x > r->point[k - 1].x));
            k--) {
            mlo_roof p = r->point[k];
            r->point[k] = r->point[k - 1];
            r->point[k - 1] = p;
        }
    for (int i = 0; i < r->n; i++) {
        sum[blocks] = r->point[i].y - 16 * i;
        count[blocks++] = 1;
        for (;
            blocks > 1 && sum[blocks - 2] * count[blocks - 1] > sum[blocks - 1] * count[blocks - 2];
            blocks--) {
            sum[blocks - 2] += sum[blocks - 1];
            count[blocks - 2] += count[blocks - 1];
        }
    }
    for (int k = 0, i = 0; k < blocks; k++)
        for (int n = count[k]; n--; i++) {
            r->point[i].label = sum[k] / count[k] + 16 * i;
            if (r->point[i].label < MLO_ROOF_TOP + 16 * i)
                r->point[i].label = MLO_ROOF_TOP + 16 * i;
        }
    for (int i = r->n; i--; bottom = r->point[i].label - 16)
        if (r->point[i].label > bottom) r->point[i].label = bottom;
}

static void mlo_roof_scales(mlo_roofline *r) {
    double least = 1e300;
    double most = 0;
    double low = 1e300;
    double high = (double)mlo_core_multipliers(r->v->hw);
    double ridge = high / r->bandwidth;
    for (int i = 0; i < r->n; i++) {
        const mlo_roof *p = &r->point[i];
        double slow = p->measured > 0 && p->measured < p->predicted ? p->measured : p->predicted;
        if (p->intensity < least) least = p->intensity;
        if (p->intensity > most) most = p->intensity;
        if (slow < low) low = slow;
    }
    r->height = 330 > 16 * r->n + 70 ? 330 : 16 * r->n + 70;
    if (least > ridge / 16) least = ridge / 16;
    if (most < ridge * 8) most = ridge * 8;
    if (low > high / 16) low = high / 16;
    mlo_scale x = { mlo_octaves(least) - MLO_OCTAVE / 2, mlo_octaves(most) + MLO_OCTAVE,
        MLO_ROOF_LEFT, MLO_ROOF_RIGHT };
    mlo_scale y = { mlo_octaves(low) - MLO_OCTAVE / 2, mlo_octaves(high) + MLO_OCTAVE * 5 / 8,
        r->height - 44, MLO_ROOF_TOP };
    /* 3/10 of the width left of the corner, for what is said there */
    int64_t room = (10 * mlo_octaves(ridge) - 3 * x.high) / 7;
    if (x.low > room) x.low = room;
    r->x = x;
    r->y = y;
    for (int i = 0; i < r->n; i++) {
        r->point[i].x = mlo_pixel(&x, mlo_octaves(r->point[i].intensity));
        r->point[i].y = mlo_pixel(
            &y, mlo_octaves(r->v->sim ? r->point[i].measured : r->point[i].predicted));
    }
}

/* Powers of two along an axis: a line and a number every few octaves. */
static void mlo_roof_axis(const mlo_roofline *r, const mlo_scale *s, int upright) {
    mlo *m = r->v->m;
    int64_t first = (s->low + (s->low > 0 ? MLO_OCTAVE - 1 : 0)) / MLO_OCTAVE;
    int64_t step = (s->high - s->low) / MLO_OCTAVE / 8 + 1;
    while (first % step) first++;
    for (int64_t k = first; k * MLO_OCTAVE <= s->high; k += step) {
        int64_t at = mlo_pixel(s, k * MLO_OCTAVE);
        const char *number = k >= 0
            ? mlo_thousands(m, (int64_t)1 << (k < 62 ? k : 62))
            : mlo_format(m, "1/%s", mlo_thousands(m, (int64_t)1 << (k > -62 ? -k : 62)));
        if (upright) {
            mlo_svg_line(r->t, "grid", MLO_ROOF_LEFT, at, MLO_ROOF_RIGHT, at);
            mlo_svg_words(r->t, "axis", "end", MLO_ROOF_LEFT - 7, at + 3, mlo_or_empty(number));
        } else {
            mlo_svg_line(r->t, "grid", at, MLO_ROOF_TOP, at, r->y.from);
            mlo_svg_words(r->t, "axis", "middle", at, r->y.from + 15, mlo_or_empty(number));
        }
    }
}

/* The two lines that nothing can be above: what memory feeds, what the multipliers can do. */
static void mlo_roof_lines(const mlo_roofline *r) {
    mlo *m = r->v->m;
    const mlo_core *c = r->v->hw;
    double most = (double)mlo_core_multipliers(c), ridge = most / r->bandwidth;
    int64_t top = mlo_pixel(&r->y, mlo_octaves(most));
    int64_t corner = mlo_pixel(&r->x, mlo_octaves(ridge));
    int64_t start = r->x.low;
    int64_t level = start + mlo_octaves(r->bandwidth);
    if (level < r->y.low) {
        start += r->y.low - level;
        level = r->y.low;
    }
    int64_t x0 = mlo_pixel(&r->x, start);
    int64_t y0 = mlo_pixel(&r->y, level);
    int64_t tenths = (int64_t)(r->bandwidth * 10 + 0.5);
    mlo_printf(r->t, "<path class=under d='M%lld,%lldL%lld,%lldH%dV%lldH%lldz'/>", (long long)x0,
        (long long)y0, (long long)corner, (long long)top, MLO_ROOF_RIGHT, (long long)r->y.from,
        (long long)x0);
    mlo_printf(r->t, "<path class=roof d='M%lld,%lldL%lld,%lldH%d'/>", (long long)x0, (long long)y0,
        (long long)corner, (long long)top, MLO_ROOF_RIGHT);
    const char *compute = mlo_format(
        m, "%s multipliers", mlo_thousands(m, mlo_core_multipliers(c)));
    const char *memory = mlo_format(m, tenths % 10 ? "%lld.%lld bytes/cycle" : "%lld bytes/cycle",
        (long long)(tenths / 10), (long long)(tenths % 10));
    mlo_svg_words(r->t, "roof", "end", MLO_ROOF_RIGHT - 6, top - 7, mlo_or_empty(compute));
    mlo_svg_words(r->t, "roof", "end", corner - (corner - x0) / 5 - 8, top + (y0 - top) / 5,
        mlo_or_empty(memory));
}

static void mlo_roof_point(const mlo_roofline *r, const mlo_roof *p) {
    mlo *m = r->v->m;
    double pace = r->v->sim ? p->measured : p->predicted;
    int64_t tenths = (int64_t)(pace * 10 + 0.5);
    int64_t guess = mlo_pixel(&r->y, mlo_octaves(p->predicted));
    mlo_printf(r->t, "<path class=lead d='M%lld,%lldL%d,%lldH%d'/>", (long long)p->x,
        (long long)p->y, MLO_ROOF_RIGHT + 6, (long long)p->label, MLO_ROOF_RIGHT + 14);
    if (p->whole)
        mlo_printf(r->t, "<path class=whole d='M%lld,%lldl7,7l-7,7l-7,-7z'>", (long long)p->x,
            (long long)p->y - 7);
    else
        mlo_printf(r->t, "<circle class=%s cx=%lld cy=%lld r=4.5>", r->v->sim ? "dot" : "ring",
            (long long)p->x, (long long)p->y);
    mlo_html_escaped(r->t, "<title>", p->name, "");
    mlo_printf(r->t, ": %lld multiply-accumulates per byte, %lld per frame</title>%s",
        (long long)(p->intensity + 0.5), (long long)p->macs, p->whole ? "</path>" : "</circle>");
    if (r->v->sim && !p->whole && (guess > p->y + 1 || guess < p->y - 1))
        mlo_printf(
            r->t, "<circle class=ring cx=%lld cy=%lld r=4.5 />", (long long)p->x, (long long)guess);
    const char *text = mlo_format(m, "%s: %lld.%lld of %s = %s", p->name, (long long)(tenths / 10),
        (long long)(tenths % 10), mlo_thousands(m, p->ceiling),
        mlo_share_text(m, pace, (double)p->ceiling));
    mlo_svg_words(r->t, p->whole ? "label strong" : "label", "start", MLO_ROOF_RIGHT + 18,
        p->label + 4, mlo_or_empty(text));
}

static void mlo_roof_fact(
    const mlo_view *v, mlo_text *t, const char *what, const char *value, const char *more) {
    const char *const cells[] = { what, mlo_right(v->m, mlo_or_empty(value)), mlo_or_empty(more),
        NULL };
    mlo_html_cells(t, "td", cells);
}

/* The same in numbers. */
static void mlo_roof_facts(const mlo_view *v, mlo_text *t) {
    mlo *m = v->m;
    const mlo_core *c = v->hw;
    mlo_puts(t, "<div class=side><h3>Utilisation of the multipliers</h3><table>");
    if (v->sim)
        mlo_roof_fact(v, t, "simulated", mlo_view_utilisation(v, v->sim->interval),
            mlo_format(
                m, "%s cycles per frame", mlo_thousands(m, (int64_t)(v->sim->interval + 0.5))));
    mlo_roof_fact(v, t, "predicted", mlo_view_utilisation(v, (double)v->p.interval),
        mlo_format(m, "%s cycles per frame", mlo_thousands(m, v->p.interval)));
    mlo_roof_fact(v, t, "bound", mlo_view_utilisation(v, (double)v->bound),
        mlo_format(m, "%s, if the slowest never rests", mlo_thousands(m, v->bound)));
    mlo_roof_fact(v, t, "best", mlo_view_utilisation(v, (double)v->best),
        mlo_format(m, "%s, the best legal folding", mlo_thousands(m, v->best)));
    mlo_puts(t, "</table><h3>Memory</h3><table>");
    mlo_roof_fact(v, t, "per iteration",
        mlo_size_text(m, mlo_core_layer_beats(c) * c->axi_bits / 8),
        c->frames > 1 ? mlo_format(m, "shared by %d frames", c->frames) : "");
    mlo_roof_fact(v, t, "predicted",
        mlo_share_text(m, mlo_core_frame_beats(c), (double)v->p.interval),
        "of the cycles bring a beat");
    if (v->sim)
        mlo_roof_fact(
            v, t, "simulated", mlo_share_text(m, v->sim->channel, 1), "of the cycles brought one");
    mlo_puts(t, "</table></div>");
}

static int mlo_html_roofline(const mlo_view *v, mlo_text *t) {
    const mlo_core *c = v->hw;
    mlo_roofline *r = MLO_NEW(v->m, mlo_roofline);
    int64_t macs = 0;
    if (!r) return mlo_failed(v->m);
    r->v = v;
    r->t = t;
    r->bandwidth = (double)c->axi_bits / 8 * c->rate / 256;
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel && c->element[i].unit.macs) {
            mlo_roof_add(r, c->element[i].name, c->element[i].unit.macs,
                mlo_unit_bytes(c, &c->element[i].unit), c->element[i].unit.multipliers, 0);
            macs += c->element[i].unit.macs;
        }
    if (!macs) return 0;
    mlo_roof_add(
        r, "the core", macs, mlo_core_beats(c) * c->axi_bits / 8, mlo_core_multipliers(c), 1);
    mlo_roof_scales(r);
    mlo_roof_labels(r);
    mlo_puts(t,
        "<section><h2>Roofline</h2><p class=sub>Each kernel with multipliers, and the core as a "
        "whole: multiply-accumulates per cycle over those per byte of parameters read.");
    mlo_puts(t,
        v->sim ? " Dots are simulated, rings predicted where that differs.</p>"
               : " Rings are predicted.</p>");
    mlo_printf(t,
        "<div class=two><div class=wide><svg class=chart viewBox='0 0 %d %d' width='100%%' "
        "role=img>",
        MLO_ROOF_WIDTH, r->height);
    mlo_roof_axis(r, &r->x, 0);
    mlo_roof_axis(r, &r->y, 1);
    mlo_svg_words(t, "axis", "middle", (MLO_ROOF_LEFT + MLO_ROOF_RIGHT) / 2, r->height - 8,
        "multiply-accumulates per byte");
    mlo_printf(t,
        "<text class=axis text-anchor=middle transform='translate(12,%d) "
        "rotate(-90)'>multiply-accumulates per cycle</text>",
        (r->height - 44 + MLO_ROOF_TOP) / 2);
    mlo_roof_lines(r);
    for (int i = 0; i < r->n; i++) mlo_roof_point(r, &r->point[i]);
    mlo_puts(t, "</svg></div>");
    mlo_roof_facts(v, t);
    mlo_puts(t, "</div></section>");
    return mlo_failed(v->m);
}

/* ---- moments, predicted or measured --------------------------------------- */

/* An element's row in a chart, and the bar being made of what touches. */
typedef struct {
    int row;
    int64_t begin; /* cycle */
    int64_t end; /* cycle */
    int64_t iteration;
    int64_t frame;
    int64_t token; /* the first one */
    int64_t tokens;
} mlo_bar;

typedef struct mlo_chart mlo_chart;
struct mlo_chart {
    const mlo_view *v;
    mlo_text *t; /* NULL: only to learn from when to when */
    int measured; /* 1: it shows what was measured; 0: what is predicted */
    int64_t first; /* iteration that it is about */
    int64_t last; /* iteration that it is about */
    mlo_scale x; /* cycles */
    mlo_bar token[MLO_CORE_MOST]; /* [element]: tokens */
    mlo_bar load[MLO_CORE_MOST]; /* [element]: loadings */
    int rows;
    int only; /* the element whose streams are drawn */
};

static int mlo_chart_element(const mlo_chart *h, const char *name) {
    for (int i = 0; i < h->v->hw->n_element; i++)
        if (h->v->hw->element[i].kernel && mlo_eq(h->v->hw->element[i].name, name)) return i;
    return -1;
}

/* A line of sim --trace as a moment: a token's cycles, since the one before has left, are waiting
 * for it, then work, then waiting for room behind. */
static void mlo_chart_traced(mlo_chart *h, const cJSON *line, mlo_moment_seen see) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(line, "kernel");
    int i = cJSON_IsString(name) ? mlo_chart_element(h, name->valuestring) : -1;
    int memory = cJSON_GetObjectItemCaseSensitive(line, "memory") != NULL;
    double iteration = mlo_measured_number(line, "iteration");
    double frame = mlo_measured_number(line, "frame");
    double token = mlo_measured_number(line, "token");
    const cJSON *begin = cJSON_GetObjectItemCaseSensitive(line, "begin");
    const cJSON *end = cJSON_GetObjectItemCaseSensitive(line, "end");
    if (i < 0 || iteration < 0 || iteration > 1e9 || frame < 0 || frame > 1e9
        || (!memory && (token < 0 || token > 1e9)) || !cJSON_IsNumber(begin) || !cJSON_IsNumber(end)
        || fabs(begin->valuedouble) > 1e15 || fabs(end->valuedouble) > 1e15)
        return;
    mlo_moment what = { i, (int64_t)iteration, (int64_t)frame, memory ? -1 : (int64_t)token,
        (int64_t)begin->valuedouble, (int64_t)end->valuedouble };
    double work = mlo_measured_number(line, "compute");
    double blocked = mlo_measured_number(line, "blocked");
    if (!memory && work >= 0 && blocked >= 0 && work + blocked < 1e15) {
        what.end -= (int64_t)blocked;
        what.begin = what.end - (int64_t)work;
    }
    if (what.frame < h->v->hw->frames) see(h, &what);
}

/* The lines of sim --trace, one by one. */
static void mlo_chart_lines(mlo_chart *h, const char *lines,
    void (*take)(mlo_chart *h, const cJSON *line, mlo_moment_seen see), mlo_moment_seen see) {
    for (const char *line = lines; *line;) {
        size_t n = strcspn(line, "\n");
        cJSON *json = n ? cJSON_ParseWithLength(line, n) : NULL;
        if (json) take(h, json, see);
        cJSON_Delete(json);
        line += n + (line[n] == '\n');
    }
}

/* All that happens while the first group of frames is inside. */
static int mlo_chart_walk(mlo_chart *h, mlo_moment_seen see) {
    mlo_prediction p;
    if (!h->measured) return mlo_predict_seen(h->v->m, h->v->hw, h->v->hw->frames, &p, see, h);
    mlo_chart_lines(h, h->v->sim->trace, mlo_chart_traced, see);
    return 0;
}

static void mlo_chart_bounds(void *user, const mlo_moment *what) {
    mlo_chart *h = (mlo_chart *)user;
    if (what->token < 0 || !h->v->hw->element[what->element].kernel || what->iteration < h->first
        || what->iteration > h->last)
        return;
    if (what->begin < h->x.low) h->x.low = what->begin;
    if (what->end > h->x.high) h->x.high = what->end;
}

static int mlo_chart_begin(
    mlo_chart *h, const mlo_view *v, mlo_text *t, int measured, int64_t first, int64_t last) {
    memset(h, 0, sizeof *h);
    mlo_scale x = { INT64_MAX, INT64_MIN, MLO_CHART_LEFT, MLO_CHART_RIGHT };
    h->v = v;
    h->measured = measured;
    h->first = first;
    h->last = last;
    h->x = x;
    for (int i = 0; i < v->hw->n_element; i++) {
        h->token[i].tokens = h->load[i].tokens = 0;
        if (v->hw->element[i].kernel) h->token[i].row = h->load[i].row = h->rows++;
    }
    MLO_TRY(mlo_chart_walk(h, mlo_chart_bounds));
    if (h->x.low < 0) h->x.low = 0;
    h->t = t;
    return 0;
}

/* Cycles below, at most so many of them, up to the last one. */
static void mlo_chart_axis(const mlo_chart *h, int most, int64_t last, int bottom) {
    const int64_t step = mlo_nice_step(h->x.high - h->x.low, most);
    /* as far from the axis' begin as half of the widest number reaches */
    mlo_svg_words(h->t, "axis", "end", MLO_CHART_LEFT - 34, bottom + 14, "cycle");
    for (int64_t at = (h->x.low + step - 1) / step * step; at <= last; at += step) {
        int64_t x = mlo_pixel(&h->x, at);
        mlo_svg_line(h->t, "grid", x, MLO_CHART_TOP - 4, x, bottom);
        mlo_svg_words(h->t, "axis", "middle", x, bottom + 14, mlo_thousands(h->v->m, at));
    }
}

/* Names on the left, cycles below. */
static void mlo_chart_frame(const mlo_chart *h, int row) {
    const mlo_core *c = h->v->hw;
    mlo_chart_axis(h, 9, h->x.high, MLO_CHART_TOP + h->rows * row);
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel) {
            int y = MLO_CHART_TOP + h->token[i].row * row;
            if (h->token[i].row % 2)
                mlo_printf(h->t, "<rect class=stripe x=0 y=%d width=%d height=%d />", y - 3,
                    MLO_CHART_WIDTH, row);
            mlo_printf(h->t, "<text class='label' text-anchor=end x=%d y=%d>", MLO_CHART_LEFT - 10,
                y + 12);
            mlo_html_words(h->t, c->element[i].name, 18);
            mlo_puts(h->t, "</text>");
        }
}

/* ---- two iterations, token by token --------------------------------------- */

static const char *mlo_line_title(const mlo_chart *h, const mlo_element *e, const mlo_bar *b) {
    mlo *m = h->v->m;
    const char *frame = h->v->hw->frames > 1 ? mlo_format(m, ", frame %lld", (long long)b->frame)
                                             : "";
    const char *tokens = b->token < 0 ? " loads parameters"
        : b->tokens > 1               ? mlo_format(m, ", tokens %lld to %lld",
                                            (long long)(b->token - b->tokens + 1), (long long)b->token)
                                      : mlo_format(m, ", token %lld", (long long)b->token);
    const char *s = mlo_format(m, "%s, iteration %lld%s%s: cycles %lld to %lld", e->name,
        (long long)b->iteration, mlo_or_empty(frame), mlo_or_empty(tokens), (long long)b->begin,
        (long long)b->end);
    return mlo_or_empty(s);
}

/* A finished bar: clipped to the chart, faded where it is of a neighbouring iteration. */
static void mlo_line_draw(const mlo_chart *h, int i, const mlo_bar *b) {
    int64_t from = b->begin < h->x.low ? h->x.low : b->begin;
    int64_t to = b->end > h->x.high ? h->x.high : b->end;
    if (!b->tokens || from > to) return;
    int64_t x = mlo_pixel(&h->x, from), w = mlo_pixel(&h->x, to) - x;
    int faded = b->iteration < h->first || b->iteration > h->last;
    int y = MLO_CHART_TOP + b->row * MLO_LINE_ROW + (b->token < 0 ? 16 : 0);
    mlo_printf(h->t, "<rect class='i%d%s%s' x=%lld y=%d width=%lld height=%d><title>",
        (int)(b->iteration % 8),
        faded              ? " faded"
            : b->frame % 2 ? " odd"
                           : "",
        b->token < 0 ? " load" : "", (long long)x, y,
        (long long)(w > 4 ? w - 1
                : w > 0   ? w
                          : 1),
        b->token < 0 ? 4 : 14);
    mlo_html_words(h->t, mlo_line_title(h, &h->v->hw->element[i], b), 200);
    mlo_puts(h->t, "</title></rect>");
    if (b->token >= 0 && b->tokens == 1 && w > 16 && !faded)
        mlo_printf(h->t, "<text class=inside text-anchor=middle x=%lld y=%d>%lld</text>",
            (long long)(x + w / 2), y + 10, (long long)b->token);
}

static void mlo_bar_begin(mlo_bar *b, const mlo_moment *what) {
    const mlo_bar fresh = { b->row, what->begin, what->end, what->iteration, what->frame,
        what->token, 1 };
    *b = fresh;
}
static void mlo_bar_grow(mlo_bar *b, const mlo_moment *what) {
    b->tokens++;
    b->token = what->token;
    b->end = what->end;
}

/* Tokens thinner than a few pixels are drawn as one bar as long as they touch. */
static void mlo_line_see(void *user, const mlo_moment *what) {
    mlo_chart *h = (mlo_chart *)user;
    int i = what->element;
    if (!h->v->hw->element[i].kernel || what->end < h->x.low || what->begin > h->x.high) return;
    mlo_bar *b = what->token < 0 ? &h->load[i] : &h->token[i];
    int64_t gap = mlo_pixel(&h->x, what->begin) - mlo_pixel(&h->x, b->end);
    int64_t width = mlo_pixel(&h->x, what->end) - mlo_pixel(&h->x, what->begin);
    if (b->tokens && b->iteration == what->iteration && b->frame == what->frame && gap < 1
        && width < 4) {
        mlo_bar_grow(b, what);
        return;
    }
    mlo_line_draw(h, i, b);
    mlo_bar_begin(b, what);
}

static int mlo_html_timeline(const mlo_view *v, int measured, mlo_text *t) {
    const mlo_core *c = v->hw;
    int64_t first = c->scan.iterations > 2 ? 1 : 0;
    int64_t last = first + 1 < c->scan.iterations ? first + 1 : first;
    mlo_chart *h = MLO_NEW(v->m, mlo_chart);
    if (!h || mlo_chart_begin(h, v, t, measured, first, last)) return mlo_failed(v->m);
    if (h->x.high < h->x.low) return 0; /* a trace without tokens */
    mlo_printf(t, "<section><h2>%s timeline: iteration%s %lld",
        measured ? "Simulated" : "Predicted", last > first ? "s" : "", (long long)first);
    if (last > first) mlo_printf(t, " and %lld", (long long)last);
    mlo_puts(t,
        "</h2><p class=sub>A bar is a token that a kernel works on; a thin one below is its "
        "parameters on their way into the other bank.");
    for (int64_t i = first; i <= last; i++)
        mlo_printf(t, " <span class=key><i class=i%d></i></span>iteration %lld;", (int)(i % 8),
            (long long)i);
    mlo_puts(t, " faded: iterations before and after.");
    if (c->frames > 1) mlo_puts(t, " Every other frame is paler.");
    if (measured)
        mlo_puts(
            t, " Here a bar is as long as the kernel was busy since the token before had left.");
    mlo_printf(t, "</p><svg class=chart viewBox='0 0 %d %d' width='100%%' role=img>",
        MLO_CHART_WIDTH, MLO_CHART_TOP + h->rows * MLO_LINE_ROW + 22);
    mlo_chart_frame(h, MLO_LINE_ROW);
    MLO_TRY(mlo_chart_walk(h, mlo_line_see));
    for (int i = 0; i < c->n_element; i++) {
        mlo_line_draw(h, i, &h->load[i]);
        mlo_line_draw(h, i, &h->token[i]);
    }
    mlo_puts(t, "</svg></section>");
    return mlo_failed(v->m);
}

/* ---- streams, cycle by cycle ---------------------------------------------- */

/* What a stream does in a cycle. */
static const struct {
    const char *css;
    const char *words;
} mlo_wave_state[4] = {
    { "none", "nothing" },
    { "open", "ready, nothing to take" },
    { "held", "valid, not taken" },
    { "beat", "a beat" },
};

/* Which of them: bit 1 valid, bit 0 ready. */
static int mlo_wave_at(const char *valid, const char *ready, size_t k) {
    return 2 * (valid[k] == '1') + (ready[k] == '1');
}

static const char *mlo_wave_text(const cJSON *line, const char *key) {
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(line, key);
    return cJSON_IsString(text) ? text->valuestring : "";
}

/* One stream's row: a box a cycle, as long as it does the same. */
static void mlo_wave_row(const mlo_chart *h, const cJSON *line, int row) {
    const char *valid = mlo_wave_text(line, "valid"), *ready = mlo_wave_text(line, "ready");
    const char *name = mlo_format(
        h->v->m, "%.40s.%.40s", mlo_wave_text(line, "kernel"), mlo_wave_text(line, "stream"));
    const size_t n = strlen(valid);
    const int y = MLO_CHART_TOP + row * MLO_WAVE_ROW;
    mlo_svg_words(h->t, "label", "end", MLO_WAVE_LEFT - 10, y + 9, mlo_or_empty(name));
    for (size_t from = 0, to; from < n; from = to) {
        int state = mlo_wave_at(valid, ready, from);
        for (to = from + 1; to < n && mlo_wave_at(valid, ready, to) == state && state < 3;) to++;
        if (!state) continue;
        int64_t x = mlo_pixel(&h->x, h->x.low + (int64_t)from);
        mlo_printf(h->t, "<rect class=%s x=%lld y=%d width=%lld height=10><title>",
            mlo_wave_state[state].css, (long long)x, y,
            (long long)(mlo_pixel(&h->x, h->x.low + (int64_t)to) - x - 1));
        mlo_html_words(h->t, mlo_or_empty(name), 90);
        mlo_printf(h->t, ", %s, cycle%s %lld", mlo_wave_state[state].words,
            mlo_plural((int64_t)(to - from)), (long long)(h->x.low + (int64_t)from));
        if (to > from + 1) mlo_printf(h->t, " to %lld", (long long)(h->x.low + (int64_t)to - 1));
        mlo_puts(h->t, "</title></rect>");
    }
}

/* Whether a line of sim --trace is one: two texts of one length. */
static int mlo_wave_is(const cJSON *line) {
    const cJSON *from = cJSON_GetObjectItemCaseSensitive(line, "from");
    const size_t n = strlen(mlo_wave_text(line, "valid"));
    return n && n <= 1000 && n == strlen(mlo_wave_text(line, "ready")) && cJSON_IsNumber(from)
        && fabs(from->valuedouble) < 1e15;
}

/* A line: if it is a stream of the element that is drawn, its row. (Nothing of it is a moment.) */
static void mlo_wave_see(mlo_chart *h, const cJSON *line, mlo_moment_seen see) {
    (void)see;
    if (!mlo_wave_is(line) || mlo_chart_element(h, mlo_wave_text(line, "kernel")) != h->only)
        return;
    if (!h->rows) {
        h->x.low = (int64_t)cJSON_GetObjectItemCaseSensitive(line, "from")->valuedouble;
        h->x.high = h->x.low + (int64_t)strlen(mlo_wave_text(line, "valid"));
    }
    mlo_wave_row(h, line, h->rows++);
}

/* The rows of all streams, in the order of the core. */
static int mlo_wave_rows(mlo_chart *h) {
    const mlo_view *v = h->v;
    for (h->only = 0; h->only < v->hw->n_element; h->only++) {
        const int before = h->rows;
        mlo_chart_lines(h, v->waves ? v->waves : v->sim->trace, mlo_wave_see, NULL);
        if (v->waves && v->hw->element[h->only].kernel && h->rows == before)
            return mlo_fail_at(v->m, MLO_E_MISMATCH, NULL,
                "the waves are of another core: %s is not in them; record those of this one",
                v->hw->element[h->only].name);
    }
    return 0;
}

/* Where each stream stood, cycle by cycle, in the stretch that sim --trace --window measured, or
 * that lies in waves. */
static int mlo_html_waves(const mlo_view *v, mlo_text *t) {
    mlo_chart *h = MLO_NEW(v->m, mlo_chart);
    mlo_text rows = { v->m, NULL, 0, 0 };
    if (!h) return mlo_failed(v->m);
    const mlo_scale x = { 0, 0, MLO_WAVE_LEFT, MLO_CHART_RIGHT };
    h->v = v;
    h->x = x;
    h->t = &rows;
    if (mlo_wave_rows(h) || !h->rows) {
        mlo_text_free(&rows);
        return mlo_failed(v->m);
    }
    const int bottom = MLO_CHART_TOP + h->rows * MLO_WAVE_ROW;
    mlo_printf(t,
        "<section><h2>Streams, cycle by cycle: %s to %s</h2><p class=sub><span class=key>"
        "<i class=beat></i></span>a beat passes; <span class=key><i class=held></i></span>valid, "
        "but the reader is not ready; <span class=key><i class=open></i></span>ready, but there is "
        "nothing to take. Another stretch: <code>%s --window CYCLE</code></p>"
        "<svg class='chart waves' viewBox='0 0 %d %d' width='100%%' role=img>",
        mlo_thousands(v->m, h->x.low), mlo_thousands(v->m, h->x.high - 1),
        v->waves ? "mlo show --wave" : "mlo sim --trace", MLO_CHART_WIDTH, bottom + 22);
    h->t = t;
    mlo_chart_axis(h, 12, h->x.high - 1, bottom);
    mlo_put(t, rows.text, rows.n);
    mlo_text_free(&rows);
    mlo_puts(t, "</svg></section>");
    return mlo_failed(v->m);
}

/* ---- the whole run -------------------------------------------------------- */

static void mlo_whole_draw(const mlo_chart *h, int i, const mlo_bar *b) {
    if (!b->tokens) return;
    int64_t x = mlo_pixel(&h->x, b->begin < 0 ? 0 : b->begin), w = mlo_pixel(&h->x, b->end) - x;
    mlo_printf(h->t, "<rect class='i%d%s' x=%lld y=%d width=%lld height=%d><title>",
        (int)(b->iteration % 8), b->frame % 2 ? " odd" : "", (long long)x,
        MLO_CHART_TOP + b->row * MLO_CHART_ROW, (long long)(w > 1 ? w - 1 : 1), MLO_CHART_ROW - 5);
    mlo_html_words(h->t, mlo_line_title(h, &h->v->hw->element[i], b), 200);
    mlo_puts(h->t, "</title></rect>");
}

static void mlo_whole_see(void *user, const mlo_moment *what) {
    mlo_chart *h = (mlo_chart *)user;
    mlo_bar *b = &h->token[what->element];
    if (what->token < 0 || !h->v->hw->element[what->element].kernel || what->iteration > h->last)
        return;
    if (b->tokens && b->iteration == what->iteration && b->frame == what->frame) {
        mlo_bar_grow(b, what);
        return;
    }
    mlo_whole_draw(h, what->element, b);
    mlo_bar_begin(b, what);
}

static int mlo_html_run(const mlo_view *v, mlo_text *t) {
    mlo *m = v->m;
    const mlo_core *c = v->hw;
    int64_t bars = (int64_t)c->frames * mlo_core_kernels(c), last = c->scan.iterations;
    mlo_chart *h = MLO_NEW(m, mlo_chart);
    if (last * bars > MLO_BARS_MOST) last = MLO_BARS_MOST / bars > 1 ? MLO_BARS_MOST / bars : 1;
    if (!h || mlo_chart_begin(h, v, t, 0, 0, last - 1)) return mlo_failed(m);
    h->x.low = 0;
    if (last == c->scan.iterations) h->x.high = v->p.cycles;
    mlo_printf(t,
        "<section><h2>Predicted run</h2><p class=sub>%d frame%s of %lld tokens through %lld "
        "iterations: <b>%s cycles</b>, %s per frame",
        c->frames, mlo_plural(c->frames), (long long)c->chunk, (long long)c->scan.iterations,
        mlo_thousands(m, v->p.cycles), mlo_thousands(m, v->p.interval));
    if (last < c->scan.iterations)
        mlo_printf(t, "; the first %lld iterations drawn", (long long)last);
    mlo_printf(t,
        ". A bar is one iteration of one kernel; a frame goes from left to right, and "
        "down.</p><svg class=chart data-end=%lld viewBox='0 0 %d %d' width='100%%' role=img>",
        (long long)h->x.high, MLO_CHART_WIDTH, MLO_CHART_TOP + h->rows * MLO_CHART_ROW + 22);
    mlo_chart_frame(h, MLO_CHART_ROW);
    MLO_TRY(mlo_chart_walk(h, mlo_whole_see));
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel) mlo_whole_draw(h, i, &h->token[i]);
    mlo_puts(t, "</svg></section>");
    return mlo_failed(m);
}
