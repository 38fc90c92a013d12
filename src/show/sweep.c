/* show, sweep: the points of a sweep, and which of them are worth having.
 *
 * in:  JSON lines, a point each, as examples/sweep/sweep.sh writes them: cycles and what a core
 *     costs, with the bits of its weights and where its parameters lie; or why there is none
 *     ("refused"). Lines of fold --pareto are points, too.
 * out: one page: a scatter plot for each cost, cycles to the right, the cost upwards, both
 *     logarithmic, the Pareto front as a line; or the points of the fronts as text.
 *
 * invariant: a point is on the front of a cost when no other one has as few cycles and as little of
 *     it, and less of one of both; of points alike in both the first one is. What a line says
 *     becomes text only escaped.
 * example: mlo show --html sweep/points.jsonl -o sweep.html
 * cost: O(n log n) for n points, which are sorted once.
 */
enum {
    MLO_SWEEP_COSTS = 5,
    MLO_SWEEP_CELLS = MLO_SWEEP_COSTS + 4, /* cycles, bits, memory, and the end of the list */
    MLO_SWEEP_TICKS = 5,
    MLO_SWEEP_OCTAVE = 1 << 24, /* of an axis: points may be within a percent */
    MLO_SWEEP_LEFT = 68, /* pixels */
    MLO_SWEEP_RIGHT = 424, /* pixels */
    MLO_SWEEP_TOP = 20, /* pixels */
    MLO_SWEEP_BOTTOM = 260 /* pixels */
};

static const struct {
    const char *key; /* in a line */
    const char *name; /* of a plot */
    const char *head; /* of a column */
} mlo_sweep_costs[MLO_SWEEP_COSTS] = {
    { "multipliers", "Multipliers", "Multipliers" },
    { "lut", "LUTs", "LUT" },
    { "dsp", "DSP blocks", "DSP" },
    { "bram", "Block RAMs of 36 Kbit", "BRAM" },
    { "relative", "Largest error over largest value", "Error" },
};

typedef struct {
    double cycles; /* a frame; -1: not said, of a refused one */
    double target; /* cycles; -1: not said */
    double cost[MLO_SWEEP_COSTS]; /* -1: not said */
    int bits; /* of weights; 0: not said */
    int on; /* a bit for each cost on whose front it is */
    const char *memory; /* "": not said */
    const char *refused; /* why there is no core; NULL: there is one */
    const char *said; /* its line */
    size_t line; /* where it stands, from 1 */
} mlo_sweep_point;

typedef struct {
    mlo *m;
    mlo_sweep_point *point; /* by cycles, once all are there */
    size_t n; /* points */
    mlo_sweep_point *refused;
    size_t n_refused; /* points */
} mlo_sweep;

/* ---- in ------------------------------------------------------------------- */

/* A number of a point, or of the area inside it; -1: none, or one beyond all that can be drawn. */
static double mlo_sweep_number(const cJSON *o, const char *key) {
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!number)
        number = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(o, "area"), key);
    if (!cJSON_IsNumber(number)) return -1;
    return number->valuedouble >= 0 && number->valuedouble < 1e15 ? number->valuedouble : -1;
}

static int mlo_sweep_point_add(
    mlo_sweep *s, const cJSON *o, const char *text, size_t n, size_t line) {
    mlo *m = s->m;
    mlo_sweep_point p;
    const double bits = mlo_sweep_number(o, "weights");
    const int refused = cJSON_IsString(cJSON_GetObjectItemCaseSensitive(o, "refused"));
    memset(&p, 0, sizeof p);
    p.cycles = mlo_sweep_number(o, "cycles");
    p.target = mlo_sweep_number(o, "target");
    for (int k = 0; k < MLO_SWEEP_COSTS; k++)
        p.cost[k] = mlo_sweep_number(o, mlo_sweep_costs[k].key);
    p.bits = bits > 0 && bits <= 64 ? (int)bits : 0;
    p.memory = mlo_intern(m, mlo_cuts_word(o, "memory"));
    p.refused = refused ? mlo_intern(m, mlo_cuts_word(o, "refused")) : NULL;
    p.said = mlo_intern_n(m, text, n);
    p.line = line;
    if (m->error.code) return mlo_failed(m);
    if (!refused && p.cycles <= 0)
        return mlo_fail_at(m, MLO_E_FORMAT, mlo_opt(m, "title"),
            "line %zu says neither how many cycles its point takes (\"cycles\") nor why there is "
            "none (\"refused\"): '%.60s'; give the points.jsonl that examples/sweep/sweep.sh makes",
            line, p.said);
    if (refused ? !MLO_PUSH(m, s->refused, s->n_refused, p) : !MLO_PUSH(m, s->point, s->n, p))
        return mlo_failed(m);
    return 0;
}

static int mlo_sweep_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* One line; one of spaces is none. */
static int mlo_sweep_line(mlo_sweep *s, const char *text, size_t n, size_t line) {
    const char *end = text;
    while (n && mlo_sweep_space(text[n - 1])) n--;
    if (!n) return 0;
    cJSON *o = mlo_utf8(text, n) ? cJSON_ParseWithLengthOpts(text, n, &end, 0) : NULL;
    if (cJSON_IsObject(o) && end == text + n)
        mlo_sweep_point_add(s, o, text, n, line);
    else
        mlo_fail_at(s->m, MLO_E_FORMAT, mlo_opt(s->m, "title"),
            "line %zu is no JSON object: '%.*s'; a sweep has one for each point, as "
            "examples/sweep/sweep.sh writes them",
            line, (int)mlo_min((int64_t)n, 60), text);
    cJSON_Delete(o);
    return mlo_failed(s->m);
}

static int mlo_sweep_order(const void *a, const void *b) {
    const mlo_sweep_point *x = (const mlo_sweep_point *)a, *y = (const mlo_sweep_point *)b;
    if (mlo_differs(x->cycles, y->cycles)) return x->cycles < y->cycles ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Of the points with as many cycles only the cheapest can be on the front, and is where it is cheaper than all that
 * are faster. */
static void mlo_sweep_front(mlo_sweep *s, int cost) {
    double best = 1e300;
    for (size_t i = 0, end; i < s->n; i = end) {
        mlo_sweep_point *least = NULL;
        for (end = i; end < s->n && s->point[end].cycles <= s->point[i].cycles; end++)
            if (s->point[end].cost[cost] >= 0 && s->point[end].cost[cost] < best) {
                least = &s->point[end];
                best = least->cost[cost];
            }
        if (least) least->on |= 1 << cost;
    }
}

static int mlo_sweep_read(mlo_sweep *s, const char *lines, size_t n) {
    size_t line = 1;
    for (size_t at = 0, end; at < n; at = end + 1, line++) {
        for (end = at; end < n && lines[end] != '\n';) end++;
        MLO_TRY(mlo_sweep_line(s, lines + at, end - at, line));
    }
    if (!s->n && !s->n_refused)
        return mlo_fail_at(s->m, MLO_E_FORMAT, mlo_opt(s->m, "title"),
            "there is no point in %zu line%s; give the points.jsonl that examples/sweep/sweep.sh "
            "makes",
            line - 1, mlo_plural((int64_t)line - 1));
    if (s->n) qsort(s->point, s->n, sizeof *s->point, mlo_sweep_order);
    for (int k = 0; k < MLO_SWEEP_COSTS; k++) mlo_sweep_front(s, k);
    return mlo_failed(s->m);
}

/* ---- in words ------------------------------------------------------------- */

/* In 13 columns at most, those of a star among them. */
static const char *mlo_sweep_text(mlo *m, double x) {
    if (x < 0) return "-";
    return x < 1000 || x >= 1e9 ? mlo_or_empty(mlo_decimal(m, "%.4g", x))
                                : mlo_thousands(m, (int64_t)(x + 0.5));
}

static const char *mlo_sweep_bits(mlo *m, const mlo_sweep_point *p) {
    return p->bits ? mlo_or_empty(mlo_format(m, "%d", p->bits)) : "-";
}

/* A point as cells; a cost on whose front it is has a star. */
static void mlo_sweep_cells(mlo *m, const mlo_sweep_point *p, const char **cell) {
    *cell++ = mlo_sweep_text(m, p->cycles);
    for (int k = 0; k < MLO_SWEEP_COSTS; k++) {
        const char *cost = mlo_sweep_text(m, p->cost[k]);
        *cell++ = p->on >> k & 1 ? mlo_or_empty(mlo_format(m, "%s *", cost)) : cost;
    }
    *cell++ = mlo_sweep_bits(m, p);
    *cell++ = *p->memory ? p->memory : "-";
    *cell = NULL;
}

static void mlo_sweep_heads(const char **cell) {
    *cell++ = "Cycles";
    for (int k = 0; k < MLO_SWEEP_COSTS; k++) *cell++ = mlo_sweep_costs[k].head;
    *cell++ = "Weights";
    *cell++ = "Memory";
    *cell = NULL;
}

static void mlo_sweep_row(mlo_sheet *t, const char *const *cell) {
    for (int i = 0; cell[i]; i++) mlo_say_right(t, cell[i], i > MLO_SWEEP_COSTS ? 9 : 13);
    mlo_end_line(t);
}

static void mlo_sweep_points_text(const mlo_sweep *s, mlo_text *out) {
    mlo_sheet t = { out, { s->m, NULL, 0, 0 }, 0, 0 };
    const char *cell[MLO_SWEEP_CELLS];
    const char *head = mlo_format(s->m,
        "%zu point%s; *: no other point has fewer cycles and less of that", s->n,
        mlo_plural((int64_t)s->n));
    mlo_tell(&t, mlo_or_empty(head));
    mlo_sweep_heads(cell);
    if (s->n) mlo_sweep_row(&t, cell);
    for (size_t i = 0; i < s->n; i++) {
        if (!s->point[i].on) continue;
        mlo_sweep_cells(s->m, &s->point[i], cell);
        mlo_sweep_row(&t, cell);
    }
    for (size_t i = 0; i < s->n_refused; i++) {
        const mlo_sweep_point *p = &s->refused[i];
        const char *why = mlo_format(s->m, "refused: %s bits, %s cycles, %s: %s",
            mlo_sweep_bits(s->m, p), mlo_sweep_text(s->m, p->target), *p->memory ? p->memory : "-",
            p->refused);
        mlo_tell(&t, mlo_or_empty(why));
    }
    mlo_text_free(&t.line);
}

/* ---- a plot --------------------------------------------------------------- */

/* A plot of one cost. */
typedef struct {
    const mlo_sweep *s;
    mlo_text *t;
    int cost; /* which */
    size_t n; /* points that it draws: a logarithmic axis has no 0 */
    size_t none; /* points with 0 of it */
    double low[2]; /* the least cycles; the least cost */
    double high[2]; /* the most */
    mlo_scale x;
    mlo_scale y;
} mlo_sweep_plot;

static int64_t mlo_sweep_log(double v) { return mlo_binary_log(v, MLO_SWEEP_OCTAVE); }

static int mlo_sweep_drawn(const mlo_sweep_plot *f, const mlo_sweep_point *p) {
    return p->cost[f->cost] > 0;
}

/* A logarithmic axis from the least to the most; what is all alike is in its middle. */
static mlo_scale mlo_sweep_scale(double low, double high, int from, int to) {
    mlo_scale s = { mlo_sweep_log(low), mlo_sweep_log(high), from, to };
    if (s.low == s.high) {
        s.low -= MLO_SWEEP_OCTAVE;
        s.high += MLO_SWEEP_OCTAVE;
    }
    return s;
}

static void mlo_sweep_bounds(mlo_sweep_plot *f) {
    for (size_t i = 0; i < f->s->n; i++) {
        const mlo_sweep_point *p = &f->s->point[i];
        f->none += p->cost[f->cost] >= 0 && !mlo_sweep_drawn(f, p);
        if (!mlo_sweep_drawn(f, p)) continue;
        const double at[2] = { p->cycles, p->cost[f->cost] };
        for (int k = 0; k < 2; k++) {
            if (!f->n || at[k] < f->low[k]) f->low[k] = at[k];
            if (!f->n || at[k] > f->high[k]) f->high[k] = at[k];
        }
        f->n++;
    }
    f->x = mlo_sweep_scale(f->low[0], f->high[0], MLO_SWEEP_LEFT + 8, MLO_SWEEP_RIGHT - 8);
    f->y = mlo_sweep_scale(f->low[1], f->high[1], MLO_SWEEP_BOTTOM - 8, MLO_SWEEP_TOP + 8);
}

/* Those of 1, 2 and 5 times each power of ten that are in a range; `every` > 0: every so many powers alone. All are
 * counted, MLO_SWEEP_TICKS kept. */
static int mlo_sweep_round(double low, double high, int every, double *tick) {
    static const int times[] = { 1, 2, 5 };
    int n = 0;
    double ten = 1e-9;
    for (int e = 0; e < 25; e++, ten *= 10)
        for (int k = 0; k < (every ? 1 : 3); k++) {
            const double v = ten * times[k];
            if ((every && e % every) || v < low * (1 - 1e-9) || v > high * (1 + 1e-9)) continue;
            if (n < MLO_SWEEP_TICKS) tick[n] = v;
            n++;
        }
    return n;
}

/* Round numbers along an axis, as many as there is room for; its ends, where there are too few of them. */
static int mlo_sweep_ticks(double low, double high, double *tick) {
    int every = 0;
    int n = mlo_sweep_round(low, high, every, tick);
    while (n > MLO_SWEEP_TICKS) n = mlo_sweep_round(low, high, ++every, tick);
    if (n > 1) return n;
    tick[0] = low;
    tick[1] = high;
    return mlo_sweep_log(low) < mlo_sweep_log(high) ? 2 : 1;
}

static void mlo_sweep_axes(const mlo_sweep_plot *f) {
    mlo *m = f->s->m;
    double tick[MLO_SWEEP_TICKS];
    int n = mlo_sweep_ticks(f->low[0], f->high[0], tick);
    for (int i = 0; i < n; i++) {
        const int64_t x = mlo_pixel(&f->x, mlo_sweep_log(tick[i]));
        mlo_svg_line(f->t, "grid", x, MLO_SWEEP_TOP, x, MLO_SWEEP_BOTTOM);
        mlo_svg_words(f->t, "axis", "middle", x, MLO_SWEEP_BOTTOM + 16, mlo_sweep_text(m, tick[i]));
    }
    n = mlo_sweep_ticks(f->low[1], f->high[1], tick);
    for (int i = 0; i < n; i++) {
        const int64_t y = mlo_pixel(&f->y, mlo_sweep_log(tick[i]));
        mlo_svg_line(f->t, "grid", MLO_SWEEP_LEFT, y, MLO_SWEEP_RIGHT, y);
        mlo_svg_words(f->t, "axis", "end", MLO_SWEEP_LEFT - 6, y + 4, mlo_sweep_text(m, tick[i]));
    }
    mlo_svg_words(f->t, "axis", "middle", (MLO_SWEEP_LEFT + MLO_SWEEP_RIGHT) / 2,
        MLO_SWEEP_BOTTOM + 36, "cycles a frame");
}

/* The page's colour for weights of so many bits. */
static int mlo_sweep_colour(int bits) {
    static const int colour[] = { 7, 7, 3, 5, 1, 4, 2, 6, 0 };
    return bits >= 0 && bits <= 8 ? colour[bits] : 7;
}

/* A square where parameters come in row blocks; pointed at, it says its line. */
static void mlo_sweep_mark(const mlo_sweep_plot *f, const mlo_sweep_point *p) {
    const long long x = mlo_pixel(&f->x, mlo_sweep_log(p->cycles));
    const long long y = mlo_pixel(&f->y, mlo_sweep_log(p->cost[f->cost]));
    const char *on = p->on >> f->cost & 1 ? " on" : "";
    const int colour = mlo_sweep_colour(p->bits), block = mlo_eq(p->memory, "block");
    if (block)
        mlo_printf(f->t, "<rect class='i%d%s' x=%lld y=%lld width=10 height=10>", colour, on, x - 5,
            y - 5);
    else
        mlo_printf(f->t, "<circle class='i%d%s' cx=%lld cy=%lld r=5>", colour, on, x, y);
    mlo_html_escaped(f->t, "<title>", p->said, "</title>");
    mlo_puts(f->t, block ? "</rect>" : "</circle>");
}

static void mlo_sweep_plot_html(const mlo_sweep *s, int cost, mlo_text *t) {
    mlo_sweep_plot f;
    int joined = 0;
    memset(&f, 0, sizeof f);
    f.s = s;
    f.t = t;
    f.cost = cost;
    mlo_sweep_bounds(&f);
    if (!f.n) return;
    mlo_printf(t, "<section><h2>%s</h2><svg class=chart viewBox='0 0 450 305' role=img>",
        mlo_sweep_costs[cost].name);
    mlo_sweep_axes(&f);
    mlo_puts(t, "<path class=front d='");
    for (size_t i = 0; i < s->n; i++)
        if (mlo_sweep_drawn(&f, &s->point[i]) && s->point[i].on >> cost & 1)
            mlo_printf(t, "%c%lld,%lld", joined++ ? 'L' : 'M',
                (long long)mlo_pixel(&f.x, mlo_sweep_log(s->point[i].cycles)),
                (long long)mlo_pixel(&f.y, mlo_sweep_log(s->point[i].cost[cost])));
    mlo_puts(t, "'/>");
    /* what is on the front lies upon what is not */
    for (int on = 0; on < 2; on++)
        for (size_t i = 0; i < s->n; i++)
            if (mlo_sweep_drawn(&f, &s->point[i]) && (s->point[i].on >> cost & 1) == on)
                mlo_sweep_mark(&f, &s->point[i]);
    mlo_puts(t, "</svg>");
    if (f.none)
        mlo_printf(t,
            "<p class=quiet>%zu point%s with none of it: a logarithmic axis has no 0.</p>", f.none,
            mlo_plural((int64_t)f.none));
    mlo_puts(t, "</section>");
}

/* ---- a page --------------------------------------------------------------- */

static void mlo_sweep_key(const mlo_sweep *s, mlo_text *t) {
    uint64_t seen[2] = { 0, 0 };
    mlo_puts(t, "<p class=quiet>");
    for (size_t i = 0; i < s->n; i++)
        seen[s->point[i].bits / 64] |= (uint64_t)1 << s->point[i].bits % 64;
    for (int bits = 64; bits; bits--)
        if (seen[bits / 64] >> bits % 64 & 1)
            mlo_printf(t, "<span class=key><i class=i%d></i></span>weights of %d bits; ",
                mlo_sweep_colour(bits), bits);
    mlo_puts(t,
        "squares: parameters in row blocks. The line: no other point has fewer cycles and less of "
        "what the plot is of. LUT, DSP and BRAM are estimates for AMD UltraScale+.</p>");
}

static void mlo_sweep_table(const mlo_sweep *s, mlo_text *t) {
    const char *cell[MLO_SWEEP_CELLS], *right[MLO_SWEEP_CELLS];
    mlo_puts(t,
        "<section><h2>On a front</h2><p class=quiet>*: no other point has fewer cycles and less of "
        "that.</p><table class=fold><thead>");
    mlo_sweep_heads(cell);
    for (int k = 0; k < MLO_SWEEP_CELLS; k++) right[k] = cell[k] ? mlo_right(s->m, cell[k]) : NULL;
    mlo_html_cells(t, "th", right);
    mlo_puts(t, "</thead><tbody>");
    for (size_t i = 0; i < s->n; i++) {
        if (!s->point[i].on) continue;
        mlo_sweep_cells(s->m, &s->point[i], cell);
        for (int k = 0; cell[k]; k++) right[k] = mlo_right(s->m, cell[k]);
        mlo_html_cells(t, "td", right);
    }
    mlo_puts(t, "</tbody></table></section>");
}

static void mlo_sweep_refusals(const mlo_sweep *s, mlo_text *t) {
    static const char *const heads[] = { ">Weights", ">Target", "Memory", "Why", NULL };
    mlo_puts(t, "<section><h2>Refused</h2><table><thead>");
    mlo_html_cells(t, "th", heads);
    mlo_puts(t, "</thead><tbody>");
    for (size_t i = 0; i < s->n_refused; i++) {
        const mlo_sweep_point *p = &s->refused[i];
        mlo_html_escaped(t, "<tr><td class=r>", mlo_sweep_bits(s->m, p), "</td>");
        mlo_html_escaped(t, "<td class=r>", mlo_sweep_text(s->m, p->target), "</td>");
        mlo_html_escaped(t, "<td>", p->memory, "</td>");
        mlo_html_escaped(t, "<td>", p->refused, "</td></tr>");
    }
    mlo_puts(t, "</tbody></table></section>");
}

static void mlo_sweep_html(const mlo_sweep *s, mlo_text *t) {
    const char *title = mlo_opt(s->m, "title");
    mlo_html_begin(t, title ? title : "a sweep");
    mlo_printf(t, "<h1>A sweep: %zu point%s", s->n, mlo_plural((int64_t)s->n));
    if (s->n_refused) mlo_printf(t, ", %zu refused", s->n_refused);
    mlo_puts(t, "</h1>");
    if (title) mlo_html_escaped(t, "<div class=sub>", title, "</div>");
    if (s->n) {
        mlo_sweep_key(s, t);
        mlo_puts(t, "<div class=plots>");
        for (int k = 0; k < MLO_SWEEP_COSTS; k++) mlo_sweep_plot_html(s, k, t);
        mlo_puts(t, "</div>");
        mlo_sweep_table(s, t);
    }
    if (s->n_refused) mlo_sweep_refusals(s, t);
    mlo_html_end(t);
}

static int mlo_sweep_as(mlo *m, const char *lines, size_t n, const char *format, mlo_text *t) {
    mlo_sweep s;
    const int page = mlo_eq(format, "html");
    memset(&s, 0, sizeof s);
    s.m = m;
    m->stage = "show";
    if (!page && !mlo_eq(format, "text"))
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "points of a sweep are shown as text or html, not as '%s'", mlo_or_empty(format));
    MLO_TRY(mlo_sweep_read(&s, lines, n));
    if (page)
        mlo_sweep_html(&s, t);
    else
        mlo_sweep_points_text(&s, t);
    return mlo_failed(m);
}
