/* show, compare: two cores side by side: what changed in cycles, area and accuracy.
 *
 * in:  two views of cores, lowered at least: two foldings of a model, or two precisions, or two models.
 * out: the numbers of both and how far they are apart, as text, JSON or one page. Kernels are paired by
 *      name; where all of a kernel is as it was, it is told in a word.
 *
 * invariant: nothing is computed here that a page of one core does not say, too. What only one side
 *     knows (a simulation, what compile measured against the floats) is shown for that side alone.
 * example: mlo show w8 w4     cycles per frame, predicted   50 291   42 007   -16.5 %
 * cost: that of the two views.
 */
enum { MLO_CONTRASTS = 64 };
static const double mlo_unsaid = -2; /* no number that is compared */

/* How a number is told. */
typedef enum {
    MLO_WORD_COUNT,
    MLO_WORD_BYTES,
    MLO_WORD_HALVES,
    MLO_WORD_SHARE,
    MLO_WORD_COSINE
} mlo_wording;

typedef struct {
    const char *what; /* for people */
    const char *key; /* for programs */
    const char *of; /* an output's name; NULL: of the core */
    double side[2]; /* mlo_unsaid: that side does not know */
    mlo_wording wording;
} mlo_contrast;

typedef struct {
    mlo *m; /* which the texts belong to */
    const mlo_view *view[2];
    const char *title[2];
    mlo_contrast row[MLO_CONTRASTS];
    int n;
} mlo_comparison;

/* ---- what is compared ----------------------------------------------------- */

static void mlo_contrast_add(
    mlo_comparison *c, mlo_wording wording, const char *key, const char *what, double a, double b) {
    const mlo_contrast row = { what, key, NULL, { a, b }, wording };
    if (c->n < MLO_CONTRASTS && (a != mlo_unsaid || b != mlo_unsaid)) c->row[c->n++] = row;
}

/* Numbers of a view. */
static double mlo_find_interval(const mlo_view *v) { return (double)v->p.interval; }
static double mlo_find_simulated(const mlo_view *v) {
    return v->sim ? v->sim->interval : mlo_unsaid;
}
static double mlo_find_step(const mlo_view *v) {
    return v->hw->slots && !v->hw->given ? (double)v->step[1] : mlo_unsaid;
}
static double mlo_find_multipliers(const mlo_view *v) {
    return (double)mlo_core_multipliers(v->hw);
}
static double mlo_find_busy(const mlo_view *v) {
    const double all = (double)mlo_core_multipliers(v->hw) * (double)v->p.interval;
    return all > 0 ? (double)mlo_core_macs(v->hw) / all : mlo_unsaid;
}
static double mlo_find_lut(const mlo_view *v) { return (double)v->area.all.lut; }
static double mlo_find_ff(const mlo_view *v) { return (double)v->area.all.ff; }
static double mlo_find_dsp(const mlo_view *v) { return (double)v->area.all.dsp; }
static double mlo_find_bram(const mlo_view *v) { return (double)v->area.all.bram; }
static double mlo_find_iteration(const mlo_view *v) {
    return (double)(mlo_core_layer_beats(v->hw) * v->hw->axi_bits / 8);
}
static double mlo_find_traffic(const mlo_view *v) {
    return mlo_core_frame_beats(v->hw) * v->hw->axi_bits / 8;
}
static double mlo_find_chip(const mlo_view *v) { return (double)(mlo_core_bits(v->hw) / 8); }
static double mlo_find_iterations(const mlo_view *v) { return (double)v->hw->scan.iterations; }
static double mlo_find_tokens(const mlo_view *v) { return (double)v->hw->chunk; }
static double mlo_find_channels(const mlo_view *v) { return (double)v->hw->channels; }
static double mlo_find_frames(const mlo_view *v) { return v->hw->frames; }
static double mlo_find_axi(const mlo_view *v) { return v->hw->axi_bits; }

static const struct {
    const char *key;
    const char *what;
    double (*find)(const mlo_view *v);
    mlo_wording wording;
    int setting; /* 1: said only where it differs */
} mlo_contrasts[] = {
    { "iterations", "iterations of the loop", mlo_find_iterations, MLO_WORD_COUNT, 1 },
    { "tokens", "tokens per frame", mlo_find_tokens, MLO_WORD_COUNT, 1 },
    { "channels", "channels", mlo_find_channels, MLO_WORD_COUNT, 1 },
    { "frames_in_flight", "frames in flight", mlo_find_frames, MLO_WORD_COUNT, 1 },
    { "axi_bits", "bits of the parameter bus", mlo_find_axi, MLO_WORD_COUNT, 1 },
    { "interval", "cycles per frame, predicted", mlo_find_interval, MLO_WORD_COUNT, 0 },
    { "simulated", "cycles per frame, simulated", mlo_find_simulated, MLO_WORD_COUNT, 0 },
    { "step", "cycles per token, at the position asked about", mlo_find_step, MLO_WORD_COUNT, 0 },
    { "multipliers", "multipliers", mlo_find_multipliers, MLO_WORD_COUNT, 0 },
    { "utilization", "their cycles that do useful work", mlo_find_busy, MLO_WORD_SHARE, 0 },
    { "lut", "LUT", mlo_find_lut, MLO_WORD_COUNT, 0 },
    { "ff", "FF", mlo_find_ff, MLO_WORD_COUNT, 0 },
    { "dsp", "DSP", mlo_find_dsp, MLO_WORD_COUNT, 0 },
    { "bram", "BRAM of 36 Kbit", mlo_find_bram, MLO_WORD_HALVES, 0 },
    { "iteration_bytes", "parameters of an iteration", mlo_find_iteration, MLO_WORD_BYTES, 0 },
    { "frame_bytes", "parameters read per frame", mlo_find_traffic, MLO_WORD_BYTES, 0 },
    { "chip_bytes", "held on chip", mlo_find_chip, MLO_WORD_BYTES, 0 },
};

/* What compile measured of an output against the floats (the option "accuracy"); mlo_unsaid: nothing. */
static double mlo_accuracy_of(const cJSON *all, const char *output, const char *key) {
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(all, "error")) {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(one, "output");
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(one, key);
        if (cJSON_IsString(name) && cJSON_IsNumber(value) && mlo_eq(name->valuestring, output))
            return value->valuedouble;
    }
    return mlo_unsaid;
}

static void mlo_compare_accuracy(mlo_comparison *c, const cJSON *a, const cJSON *b) {
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(a, "error")) {
        const char *name = mlo_intern(c->m, mlo_cuts_word(one, "output"));
        if (!name || !*name) continue;
        const int from = c->n;
        mlo_contrast_add(c, MLO_WORD_COSINE, "cosine", "cosine with the floats",
            mlo_accuracy_of(a, name, "cosine"), mlo_accuracy_of(b, name, "cosine"));
        mlo_contrast_add(c, MLO_WORD_SHARE, "relative", "largest difference from the floats",
            mlo_accuracy_of(a, name, "relative"), mlo_accuracy_of(b, name, "relative"));
        for (int i = from; i < c->n; i++) c->row[i].of = name;
    }
}

static int mlo_comparison_make(mlo_comparison *c, const mlo_view *a, const mlo_view *b) {
    const mlo_view *const view[2] = { a, b };
    cJSON *accuracy[2];
    memset(c, 0, sizeof *c);
    c->m = a->m;
    for (int i = 0; i < 2; i++) {
        const char *title = mlo_opt(view[i]->m, "title"), *text = mlo_opt(view[i]->m, "accuracy");
        c->view[i] = view[i];
        c->title[i] = mlo_intern(c->m, title ? title : i ? "the second" : "the first");
        accuracy[i] = text ? cJSON_Parse(text) : NULL;
    }
    for (size_t k = 0; k < sizeof mlo_contrasts / sizeof *mlo_contrasts; k++) {
        const double x = mlo_contrasts[k].find(a), y = mlo_contrasts[k].find(b);
        if (mlo_contrasts[k].setting && x == y) continue;
        mlo_contrast_add(
            c, mlo_contrasts[k].wording, mlo_contrasts[k].key, mlo_contrasts[k].what, x, y);
    }
    mlo_compare_accuracy(c, accuracy[0] ? accuracy[0] : accuracy[1], accuracy[1]);
    for (int i = 0; i < 2; i++) cJSON_Delete(accuracy[i]);
    return mlo_failed(c->m);
}

/* ---- in words ------------------------------------------------------------- */

static const char *mlo_contrast_text(mlo *m, mlo_wording wording, double x) {
    const char *s = "-";
    if (x == mlo_unsaid) return s;
    switch (wording) {
    case MLO_WORD_COUNT: s = mlo_thousands(m, (int64_t)(x + 0.5)); break;
    case MLO_WORD_BYTES: s = mlo_size_text(m, (int64_t)(x + 0.5)); break;
    case MLO_WORD_HALVES: s = mlo_decimal(m, "%.1f", x / 2); break;
    case MLO_WORD_SHARE: s = mlo_decimal(m, "%.2f %%", 100 * x); break;
    case MLO_WORD_COSINE: s = mlo_decimal(m, "%.5f", x); break;
    }
    return mlo_or_empty(s);
}

/* "-16.5 %", "x 3.2", "same"; "" where a side does not know, or a quotient says nothing. */
static const char *mlo_contrast_change(mlo *m, const mlo_contrast *r) {
    const double a = r->side[0], b = r->side[1];
    if (a == mlo_unsaid || b == mlo_unsaid) return "";
    if (a == b) return "same";
    if (r->wording == MLO_WORD_COSINE) return mlo_or_empty(mlo_decimal(m, "%+.5f", b - a));
    if (r->wording == MLO_WORD_SHARE)
        return mlo_or_empty(mlo_decimal(m, "%+.2f points", 100 * (b - a)));
    if (a <= 0) return "";
    return mlo_or_empty(b / a > 2 ? mlo_decimal(m, "x %.2f", b / a)
                                  : mlo_decimal(m, "%+.1f %%", 100 * (b / a - 1)));
}

static const char *mlo_contrast_name(mlo *m, const mlo_contrast *r) {
    return mlo_or_empty(r->of ? mlo_format(m, "%s, %s", r->what, r->of) : r->what);
}

/* ---- kernels -------------------------------------------------------------- */

/* A kernel of one side, of the other or of both. */
typedef struct {
    const char *name;
    const mlo_element *at[2]; /* NULL: not there */
} mlo_pairing;

static const mlo_element *mlo_kernel_named(const mlo_core *c, const char *name) {
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel && mlo_eq(c->element[i].name, name)) return &c->element[i];
    return NULL;
}

/* The next kernel behind place *at: those of the first side, then what the second has alone. */
static int mlo_pairing_next(const mlo_comparison *c, int *at, mlo_pairing *p) {
    const mlo_core *a = c->view[0]->hw, *b = c->view[1]->hw;
    for (; *at < a->n_element + b->n_element; (*at)++) {
        const int first = *at < a->n_element;
        const mlo_element *e = first ? &a->element[*at] : &b->element[*at - a->n_element];
        if (!e->kernel || (!first && mlo_kernel_named(a, e->name))) continue;
        p->name = e->name;
        p->at[0] = first ? e : NULL;
        p->at[1] = first ? mlo_kernel_named(b, e->name) : e;
        (*at)++;
        return 1;
    }
    return 0;
}

static const char *mlo_pairing_folding(mlo *m, const mlo_element *e) {
    if (!e) return "-";
    return mlo_or_empty(e->kernel->simd_axis
            ? mlo_format(m, "%lld x %lld", (long long)e->unit.pe, (long long)e->unit.simd)
            : mlo_format(m, "%lld", (long long)e->unit.pe));
}
static double mlo_pairing_pace(const mlo_element *e) {
    return e ? (double)e->unit.interval : mlo_unsaid;
}
static double mlo_pairing_lut(const mlo_comparison *c, const mlo_pairing *p, int side) {
    const mlo_view *v = c->view[side];
    return p->at[side] ? (double)v->area.element[p->at[side] - v->hw->element].lut : mlo_unsaid;
}

static int mlo_pairing_alike(const mlo_comparison *c, const mlo_pairing *p) {
    const mlo_element *a = p->at[0], *b = p->at[1];
    return a && b && a->unit.pe == b->unit.pe && a->unit.simd == b->unit.simd
        && a->unit.interval == b->unit.interval
        && mlo_pairing_lut(c, p, 0) == mlo_pairing_lut(c, p, 1);
}

enum {
    MLO_PAIRED = 6
}; /* cells of a kernel behind its name: folding, pace, LUT, each of both sides */

static void mlo_pairing_cells(const mlo_comparison *c, const mlo_pairing *p, const char **cell) {
    for (int i = 0; i < 2; i++) {
        cell[i] = mlo_pairing_folding(c->m, p->at[i]);
        cell[2 + i] = mlo_contrast_text(c->m, MLO_WORD_COUNT, mlo_pairing_pace(p->at[i]));
        cell[4 + i] = mlo_contrast_text(c->m, MLO_WORD_COUNT, mlo_pairing_lut(c, p, i));
    }
}

/* ---- text ----------------------------------------------------------------- */

enum { MLO_CONTRAST_WHAT = 58, MLO_CONTRAST_SIDE = 16 };

static void mlo_compare_kernels_text(const mlo_comparison *c, mlo_sheet *t) {
    const char *cell[MLO_PAIRED];
    mlo_pairing p;
    int at = 0, alike = 0;
    mlo_end_line(t);
    mlo_say_cell(t, "kernel", 20);
    mlo_say_right(t, "PE x SIMD", 21);
    mlo_say_right(t, "cycles/token", 25);
    mlo_say_right(t, "LUT", 25);
    mlo_end_line(t);
    while (mlo_pairing_next(c, &at, &p)) {
        if (mlo_pairing_alike(c, &p)) {
            alike++;
            continue;
        }
        mlo_pairing_cells(c, &p, cell);
        mlo_say_cell(t, p.name, 20);
        for (int i = 0; i < MLO_PAIRED; i++) {
            mlo_say_right(t, cell[i], i < 2 ? 9 : 11);
            if (i % 2 == 0) mlo_say_cell(t, "->", 2);
        }
        mlo_end_line(t);
    }
    if (alike)
        mlo_tell(t,
            mlo_or_empty(
                mlo_format(c->m, "%d kernel%s alike", alike, alike == 1 ? " is" : "s are")));
}

static void mlo_compare_text(const mlo_comparison *c, mlo_text *out) {
    mlo_sheet t = { out, { c->m, NULL, 0, 0 }, 0, 0 };
    mlo_say_cell(&t, "", MLO_CONTRAST_WHAT);
    for (int i = 0; i < 2; i++) mlo_say_right(&t, c->title[i], MLO_CONTRAST_SIDE);
    mlo_end_line(&t);
    for (int i = 0; i < c->n; i++) {
        const mlo_contrast *r = &c->row[i];
        mlo_say_cell(&t, mlo_contrast_name(c->m, r), MLO_CONTRAST_WHAT);
        for (int k = 0; k < 2; k++)
            mlo_say_right(&t, mlo_contrast_text(c->m, r->wording, r->side[k]), MLO_CONTRAST_SIDE);
        mlo_say_right(&t, mlo_contrast_change(c->m, r), 14);
        mlo_end_line(&t);
    }
    mlo_compare_kernels_text(c, &t);
    mlo_text_free(&t.line);
}

/* ---- JSON ----------------------------------------------------------------- */

static void mlo_contrast_number(mlo_text *t, double x) {
    if (x == mlo_unsaid)
        mlo_puts(t, "null");
    else
        mlo_report_number(t, x);
}

static void mlo_compare_json(const mlo_comparison *c, mlo_text *t) {
    mlo_pairing p;
    int at = 0;
    mlo_puts(t, "{\"titles\":[");
    for (int i = 0; i < 2; i++) {
        if (i) mlo_puts(t, ",");
        mlo_report_string(t, c->title[i]);
    }
    mlo_puts(t, "],\"numbers\":[");
    for (int i = 0; i < c->n; i++) {
        mlo_puts(t, i ? ",{\"key\":" : "{\"key\":");
        mlo_report_string(t, c->row[i].key);
        if (c->row[i].of) mlo_puts(t, ",\"output\":");
        if (c->row[i].of) mlo_report_string(t, c->row[i].of);
        mlo_puts(t, ",\"values\":[");
        /* block RAMs are counted in halves */
        const double unit = c->row[i].wording == MLO_WORD_HALVES ? 2 : 1;
        for (int k = 0; k < 2; k++) {
            const double x = c->row[i].side[k];
            if (k) mlo_puts(t, ",");
            mlo_contrast_number(t, x == mlo_unsaid ? x : x / unit);
        }
        mlo_puts(t, "]}");
    }
    mlo_puts(t, "],\"kernels\":[");
    for (int said = 0; mlo_pairing_next(c, &at, &p); said++) {
        mlo_puts(t, said ? ",{\"name\":" : "{\"name\":");
        mlo_report_string(t, p.name);
        mlo_printf(t, ",\"alike\":%s,\"sides\":[", mlo_pairing_alike(c, &p) ? "true" : "false");
        for (int i = 0; i < 2; i++) {
            if (i) mlo_puts(t, ",");
            if (p.at[i])
                mlo_printf(t, "{\"pe\":%lld,\"simd\":%lld,\"interval\":%lld,\"lut\":%lld}",
                    (long long)p.at[i]->unit.pe, (long long)p.at[i]->unit.simd,
                    (long long)p.at[i]->unit.interval, (long long)mlo_pairing_lut(c, &p, i));
            else
                mlo_puts(t, "null");
        }
        mlo_puts(t, "]}");
    }
    mlo_puts(t, "]}\n");
}

/* ---- a page --------------------------------------------------------------- */

/* Two bars, the longer one as long as the cell. */
static void mlo_contrast_bars(mlo *m, const mlo_contrast *r, mlo_text *t) {
    const double most = r->side[0] > r->side[1] ? r->side[0] : r->side[1];
    mlo_puts(t, "<td class=bar>");
    for (int i = 0; i < 2 && most > 0; i++)
        mlo_printf(t, "<span><i%s style='width:%s%%'></i></span>", i ? " class=held" : "",
            mlo_or_empty(mlo_decimal(m, "%.1f", r->side[i] > 0 ? 100 * r->side[i] / most : 0)));
    mlo_puts(t, "</td>");
}

static void mlo_compare_numbers_html(const mlo_comparison *c, mlo_text *t) {
    const char *const heads[] = { "", mlo_right(c->m, c->title[0]), mlo_right(c->m, c->title[1]),
        ">Change", "", NULL };
    mlo_puts(t, "<section><h2>What changed</h2><table><thead>");
    mlo_html_cells(t, "th", heads);
    mlo_puts(t, "</thead><tbody>");
    for (int i = 0; i < c->n; i++) {
        const mlo_contrast *r = &c->row[i];
        const char *const cells[] = { mlo_contrast_name(c->m, r),
            mlo_right(c->m, mlo_contrast_text(c->m, r->wording, r->side[0])),
            mlo_right(c->m, mlo_contrast_text(c->m, r->wording, r->side[1])),
            mlo_right(c->m, mlo_contrast_change(c->m, r)), NULL };
        mlo_html_cells(t, "td", cells);
        t->n -= strlen("</tr>"); /* one cell more: the bars */
        mlo_contrast_bars(c->m, r, t);
        mlo_puts(t, "</tr>");
    }
    mlo_puts(t, "</tbody></table><p class=quiet><span class=key><i></i></span>");
    mlo_html_escaped(t, "", c->title[0], ", <span class=key><i class=held></i></span>");
    mlo_html_escaped(t, "", c->title[1],
        "; each pair to a scale of its own. LUT, FF, DSP, BRAM: estimates for AMD "
        "UltraScale+.</p></section>");
}

static void mlo_compare_kernels_html(const mlo_comparison *c, mlo_text *t) {
    static const char *const heads[] = { "Kernel", ">PE \303\227 SIMD", ">", ">Cycles/token", ">",
        ">LUT", ">", NULL };
    const char *cell[MLO_PAIRED];
    mlo_pairing p;
    int at = 0;
    mlo_puts(t,
        "<section><h2>Kernels</h2><p class=quiet>Of each the first, then the second; what is alike "
        "is pale.</p>"
        "<div class=draw><table class=fold><thead>");
    mlo_html_cells(t, "th", heads);
    mlo_puts(t, "</thead>");
    while (mlo_pairing_next(c, &at, &p)) {
        mlo_pairing_cells(c, &p, cell);
        const char *const cells[] = { p.name, mlo_right(c->m, cell[0]), mlo_right(c->m, cell[1]),
            mlo_right(c->m, cell[2]), mlo_right(c->m, cell[3]), mlo_right(c->m, cell[4]),
            mlo_right(c->m, cell[5]), NULL };
        mlo_puts(t, mlo_pairing_alike(c, &p) ? "<tbody class=quiet>" : "<tbody>");
        mlo_html_cells(t, "td", cells);
        mlo_puts(t, "</tbody>");
    }
    mlo_puts(t, "</table></div></section>");
}

static void mlo_compare_html(const mlo_comparison *c, mlo_text *t) {
    const char *title = mlo_format(c->m, "%s and %s", c->title[0], c->title[1]);
    mlo_html_begin(t, mlo_or_empty(title));
    mlo_html_escaped(t, "<h1>", mlo_or_empty(title), "</h1>");
    mlo_compare_numbers_html(c, t);
    mlo_compare_kernels_html(c, t);
    mlo_html_end(t);
}

static int mlo_compare_views(
    const mlo_view *a, const mlo_view *b, const char *format, mlo_text *t) {
    mlo_comparison *c = MLO_NEW(a->m, mlo_comparison);
    if (!c || mlo_comparison_make(c, a, b)) return mlo_failed(a->m);
    if (mlo_eq(format, "text"))
        mlo_compare_text(c, t);
    else if (mlo_eq(format, "json"))
        mlo_compare_json(c, t);
    else if (mlo_eq(format, "html"))
        mlo_compare_html(c, t);
    else
        return mlo_fail_at(a->m, MLO_E_USAGE, NULL,
            "two are compared as text, json or html, not as '%s'", mlo_or_empty(format));
    return mlo_failed(a->m);
}
