/* show, page: pieces of an HTML page: its style, escaped words, cards, rows of tables.
 *
 * invariant: the page loads nothing, and says all that it says without its script (share/page.js: zoom, search);
 *     it is light or dark as the reader's browser says; every name goes through mlo_html_words.
 * example: a cell that begins with '>' is aligned to the right.
 */

/* A style sheet of share/ as one line. */
static void mlo_html_sheet(mlo_text *t, const char *name) {
    const char *const *line = mlo_share_lines(t->m, name);
    for (; line && *line; line++) mlo_puts(t, *line + strspn(*line, " "));
}

/* picture.css has the colours and what is drawn, page.css what stands around it. */
static void mlo_html_style(mlo_text *t, int page) {
    mlo_puts(t, "<style>");
    mlo_html_sheet(t, "picture.css");
    if (page) mlo_html_sheet(t, "page.css");
    mlo_puts(t, "</style>");
}

#define MLO_SVG_TIP                                                                                \
    "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' " \
    "orient='auto'><path d='M0,0L8,4L0,8z' style='fill:#7a8a99;stroke:none'/></marker></defs>"

/* ---- pieces --------------------------------------------------------------- */

static void mlo_html_escaped(mlo_text *t, const char *before, const char *s, const char *after) {
    mlo_puts(t, before);
    mlo_html_words(t, s, 2000);
    mlo_puts(t, after);
}

static void mlo_html_card(mlo_text *t, const char *value, const char *what) {
    mlo_html_escaped(t, "<div class=card><b>", mlo_or_empty(value), "</b>");
    mlo_html_escaped(t, "<span>", mlo_or_empty(what), "</span></div>");
}

/* What the head of a column means, for who points at it; NULL where it says so itself. */
static const char *mlo_html_term(const char *head) {
    static const struct {
        const char *head;
        const char *means;
    } terms[] = {
        { "PE",
            "processing elements: rows of a matrix, or channels, that are computed side by side" },
        { "SIMD", "columns of a matrix that each processing element multiplies in one cycle" },
        { "PE \303\227 SIMD", "rows and columns of a matrix that are computed in one cycle" },
        { "Multipliers", "products of an operand and a weight (or of two operands) in one cycle" },
        { "Cycles/token",
            "cycles from one token to the next, when nothing waits; the largest sets the pace" },
        { "Latency",
            "cycles from the first beat of a token that comes in to the first that goes out" },
        { "Parameters", "what an iteration loads for this kernel" },
        { "LUT", "look-up tables, an estimate" },
        { "FF", "flip-flops, an estimate" },
        { "DSP", "multiplier blocks, an estimate" },
        { "BRAM", "block RAMs of 36 Kbit, an estimate; a half is one of 18 Kbit" },
        { "Busy", "of the cycles of a frame, those in which this kernel works" },
        { "Busy, predicted", "of the cycles of a frame, those in which this kernel is to work" },
        { "simulated", "of the simulated cycles, those in which it worked" },
    };
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        if (mlo_eq(terms[i].head, head)) return terms[i].means;
    return NULL;
}

/* Opens or closes a table row of cells: a NULL-terminated list; a leading '>' puts a cell to the
 * right. */
static void mlo_html_cells(mlo_text *t, const char *tag, const char *const *cell) {
    mlo_puts(t, "<tr>");
    for (; *cell; cell++) {
        int right = **cell == '>';
        const char *means = mlo_eq(tag, "th") ? mlo_html_term(*cell + right) : NULL;
        mlo_printf(t, "<%s%s", tag, right ? " class=r" : "");
        if (means) mlo_printf(t, " title='%s'", means);
        mlo_puts(t, ">");
        mlo_html_words(t, *cell + right, 400);
        mlo_printf(t, "</%s>", tag);
    }
    mlo_puts(t, "</tr>");
}
static const char *mlo_right(mlo *m, const char *s) {
    const char *r = mlo_format(m, ">%s", s);
    return mlo_or_empty(r);
}

/* ---- both ends of a page -------------------------------------------------- */

static void mlo_html_begin(mlo_text *t, const char *title) {
    mlo_html_escaped(t,
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport "
        "content='width=device-width,initial-scale=1'><title>mlo: ",
        title, "</title>");
    mlo_html_style(t, 1);
    mlo_puts(t,
        "</head><body><svg width=0 height=0 style='position:absolute'>" MLO_SVG_TIP "</svg><main>");
}

static void mlo_html_end(mlo_text *t) {
    mlo_printf(t, "<footer>mlo %s</footer></main><script>\n", MLO_VERSION);
    const char *const *line = mlo_share_lines(t->m, "page.js");
    for (; line && *line; line++) {
        mlo_puts(t, *line + strspn(*line, " "));
        mlo_puts(t, "\n");
    }
    mlo_puts(t, "</script></body></html>\n");
}
