/* show, picture: a figure laid out in layers, as SVG.
 *
 * in:  an mlo_figure.
 * out: <svg> text, XML as well as HTML; colours come from the classes of its page.
 *
 * The four classic steps (Sugiyama): each vertex gets the rank of its longest path. A value that
 * flows past ranks gets a bend in each of them, one chain for all its readers. Each rank is ordered
 * by the mean place of its neighbours, up and down a few times. Then x: every spot (vertex or bend)
 * wants the mean x of its neighbours, and the nearest placement without overlap is an isotonic
 * regression (pool adjacent violators).
 *
 * invariant: integers only, stable sorts: the same picture everywhere.
 * example: the residual of a BERT layer becomes one straight line beside the attention.
 * cost: O(sweeps x spots log spots).
 */
enum {
    MLO_BOX = 196,
    MLO_BOX_HEAD = 12,
    MLO_BOX_LINE = 15,
    MLO_BEND = 10,
    MLO_GAP_X = 22,
    MLO_GAP_Y = 40,
    MLO_SWEEPS = 12,
    MLO_SHEET_WIDE = 1640, /* pixels on a sheet of A4 on its side, where text can be read */
    MLO_PICTURE_MOST = 1500,
    MLO_SPOTS_MOST = 40000
};

typedef struct {
    int vertex; /* -1: a bend */
    int rank;
    int place; /* in its rank */
    int64_t x; /* pixels */
    int64_t want; /* the x that it wants, pixels */
    /* where its neighbours are, 64 of a place each; while a rank is placed, pixels from its block's
     * beginning */
    int64_t mean;

    /* of the rank's block k, kept in its k-th spot */
    int64_t sum; /* of weight x what spots want, from the block's beginning on */
    int64_t count; /* spots */
    int64_t weight; /* of its spots */

    int width; /* pixels */
    int height; /* pixels */
} mlo_spot;
typedef struct {
    int up; /* a spot */
    int down; /* a spot */
    int arrow; /* the one that ends here, -1 for none */
    int weight; /* how much it draws its ends into line */
} mlo_strand;

typedef struct {
    const mlo_figure *s;
    mlo *m;
    mlo_spot *spot;
    size_t n_spot;
    mlo_strand *strand;
    size_t n_strand;

    int *row; /* spots by rank and place */
    int *row_at; /* of each rank: where it begins in row */
    int ranks;
    int *from_up; /* strands by their lower spot */
    int *up_at; /* of each spot: where it begins in from_up */
    int *from_down; /* strands by their upper spot */
    int *down_at; /* of each spot: where it begins in from_down */

    int64_t *top; /* y of each rank, pixels */
    int64_t width; /* of all, pixels */
    int64_t height; /* of all, pixels */
    int margin; /* pixels */
} mlo_picture;

/* ---- ranks and strands ---------------------------------------------------- */

static int mlo_picture_spot(mlo_picture *p, int vertex, int rank) {
    mlo_spot x;
    memset(&x, 0, sizeof x);
    x.vertex = vertex;
    x.rank = rank;
    x.width = MLO_BEND;
    return MLO_PUSH(p->m, p->spot, p->n_spot, x) ? (int)p->n_spot - 1 : -1;
}

static int mlo_picture_strand(mlo_picture *p, int up, int down, int arrow) {
    mlo_strand x = { up, down, arrow, (p->spot[up].vertex < 0) + (p->spot[down].vertex < 0) };
    /* bends in line with bends; boxes with boxes */
    x.weight = x.weight == 2 ? 8 : x.weight ? 1 : 4;
    return MLO_PUSH(p->m, p->strand, p->n_strand, x) ? 0 : mlo_failed(p->m);
}

/* Longest paths; then what only comes in moves down to just above its first reader. */
static int mlo_picture_ranks(mlo_picture *p) {
    const mlo_figure *s = p->s;
    for (size_t i = 0; i < s->n_vertex; i++) {
        int spot = mlo_picture_spot(p, (int)i, 0), lines = 0;
        if (spot < 0) return mlo_failed(p->m);
        for (int k = 0; k < 3; k++) lines += *s->vertex[i].line[k] != 0;
        p->spot[spot].width = MLO_BOX;
        p->spot[spot].height = MLO_BOX_HEAD + MLO_BOX_LINE * lines;
    }
    /* arrows come in the order of what they go to */
    for (size_t i = 0; i < s->n_arrow; i++) {
        int r = p->spot[s->arrow[i].from].rank + 1;
        if (p->spot[s->arrow[i].to].rank < r) p->spot[s->arrow[i].to].rank = r;
    }
    for (size_t i = 0; i < s->n_vertex; i++) {
        int first = INT_MAX;
        if (s->vertex[i].kind != MLO_FIGURE_INPUT && s->vertex[i].kind != MLO_FIGURE_OUTSIDE)
            continue;
        for (size_t k = 0; k < s->n_arrow; k++)
            if (s->arrow[k].from == (int)i && p->spot[s->arrow[k].to].rank < first)
                first = p->spot[s->arrow[k].to].rank;
        if (first != INT_MAX) p->spot[i].rank = first - 1;
    }
    return 0;
}

/* One chain of bends for each value; every arrow hangs on its value's chain. */
static int mlo_picture_chains(mlo_picture *p) {
    const mlo_figure *s = p->s;
    mlo_map chain = { NULL, 0, 0 }; /* value -> the spot it has been drawn to, plus 1 */
    int *before = MLO_NEW_N(p->m, int, MLO_SPOTS_MOST); /* of a bend: the spot above it */
    if (!before) return mlo_failed(p->m);
    for (size_t i = 0; i < s->n_arrow; i++) {
        const mlo_arrow *a = &s->arrow[i];
        int at = (int)(uintptr_t)mlo_map_get(&chain, a->value) - 1, rank = p->spot[a->to].rank;
        if (at < 0) at = a->from;
        /* a reader further up */
        while (p->spot[at].rank >= rank && p->spot[at].vertex < 0) at = before[at];
        int end = at;
        while (p->spot[end].rank < rank - 1) {
            int bend = mlo_picture_spot(p, -1, p->spot[end].rank + 1);
            if (bend < 0 || bend >= MLO_SPOTS_MOST) return p->m->error.code ? mlo_failed(p->m) : -1;
            before[bend] = end;
            MLO_TRY(mlo_picture_strand(p, end, bend, -1));
            end = bend;
        }
        int deepest = (int)(uintptr_t)mlo_map_get(&chain, a->value) - 1;
        if (deepest < 0 || p->spot[end].rank > p->spot[deepest].rank)
            MLO_TRY(mlo_map_put(p->m, &chain, a->value, (void *)(uintptr_t)(end + 1)));
        MLO_TRY(mlo_picture_strand(p, end, a->to, (int)i));
    }
    return 0;
}

/* Counts, then fills: items 0..n-1 by key, in order. */
static int mlo_picture_sort(mlo_picture *p, size_t n, int keys, int kind, int **items, int **at) {
    *items = MLO_NEW_N(p->m, int, n + 1);
    *at = MLO_NEW_N(p->m, int, (size_t)keys + 2);
    if (!*items || !*at) return mlo_failed(p->m);
#define MLO_KEY(i) (kind == 0 ? p->spot[i].rank : kind == 1 ? p->strand[i].down : p->strand[i].up)
    for (size_t i = 0; i < n; i++) (*at)[MLO_KEY(i) + 2]++;
    for (int k = 2; k < keys + 2; k++) (*at)[k] += (*at)[k - 1];
    for (size_t i = 0; i < n; i++) (*items)[(*at)[MLO_KEY(i) + 1]++] = (int)i;
#undef MLO_KEY
    return 0;
}

static int mlo_picture_index(mlo_picture *p) {
    for (size_t i = 0; i < p->n_spot; i++)
        if (p->spot[i].rank + 1 > p->ranks) p->ranks = p->spot[i].rank + 1;
    MLO_TRY(mlo_picture_sort(p, p->n_spot, p->ranks, 0, &p->row, &p->row_at));
    MLO_TRY(mlo_picture_sort(p, p->n_strand, (int)p->n_spot, 1, &p->from_up, &p->up_at));
    return mlo_picture_sort(p, p->n_strand, (int)p->n_spot, 2, &p->from_down, &p->down_at);
}

/* ---- order within ranks --------------------------------------------------- */

/* The mean of a spot's neighbours above (or below): their places or their x, times 64. Without
 * any: where it is. */
static int64_t mlo_picture_mean(const mlo_picture *p, int spot, int above, int of_x) {
    const int *list = above ? p->from_up : p->from_down, *at = above ? p->up_at : p->down_at;
    int64_t sum = 0, n = 0;
    for (int k = at[spot]; k < at[spot + 1]; k++) {
        const mlo_strand *t = &p->strand[list[k]];
        const mlo_spot *other = &p->spot[above ? t->up : t->down];
        int64_t w = of_x ? t->weight : 1;
        sum += w * (of_x ? other->x : other->place);
        n += w;
    }
    return n ? sum * 64 / n : 64 * (of_x ? p->spot[spot].x : p->spot[spot].place);
}

static void mlo_picture_reorder(mlo_picture *p, int rank, int above) {
    int *row = p->row + p->row_at[rank], n = p->row_at[rank + 1] - p->row_at[rank];
    for (int i = 0; i < n; i++) p->spot[row[i]].mean = mlo_picture_mean(p, row[i], above, 0);
    /* by insertion: rows are short and nearly sorted */
    for (int i = 1; i < n; i++) {
        int x = row[i], k = i;
        for (; k && p->spot[row[k - 1]].mean > p->spot[x].mean; k--) row[k] = row[k - 1];
        row[k] = x;
    }
    for (int i = 0; i < n; i++) p->spot[row[i]].place = i;
}

static void mlo_picture_order(mlo_picture *p) {
    for (int r = 0; r < p->ranks; r++)
        for (int i = p->row_at[r]; i < p->row_at[r + 1]; i++)
            p->spot[p->row[i]].place = i - p->row_at[r];
    for (int sweep = 0; sweep < MLO_SWEEPS; sweep++) {
        for (int r = 1; r < p->ranks; r++) mlo_picture_reorder(p, r, 1);
        for (int r = p->ranks - 2; r >= 0; r--) mlo_picture_reorder(p, r, 0);
    }
}

/* ---- coordinates ---------------------------------------------------------- */

/* The placement of a rank nearest to what its spots want, without overlap: blocks of spots that
 * touch, each at the mean of its wishes. */
static void mlo_picture_settle(mlo_picture *p, int rank) {
    int *row = p->row + p->row_at[rank], n = p->row_at[rank + 1] - p->row_at[rank], blocks = 0;
    int64_t offset = 0;
    for (int i = 0; i < n; i++) {
        mlo_spot *x = &p->spot[row[i]];
        if (i) offset += (p->spot[row[i - 1]].width + x->width) / 2 + MLO_GAP_X;
        x->mean = offset;
        /* block k keeps its sum and count in the k-th spot */
        mlo_spot *b = &p->spot[row[blocks++]];
        b->weight = x->vertex < 0 ? 1 : 4;
        b->sum = b->weight * (x->want - offset);
        b->count = 1;
        while (blocks > 1) {
            mlo_spot *last = &p->spot[row[blocks - 1]], *prior = &p->spot[row[blocks - 2]];
            if (prior->sum * last->weight <= last->sum * prior->weight) break;
            prior->sum += last->sum;
            prior->count += last->count;
            prior->weight += last->weight;
            blocks--;
        }
    }
    for (int k = 0, i = 0; k < blocks; k++) {
        const mlo_spot *b = &p->spot[row[k]];
        int64_t base = b->sum / b->weight, end = i + b->count;
        for (; i < end; i++) p->spot[row[i]].x = base + p->spot[row[i]].mean;
    }
}

static void mlo_picture_pull(mlo_picture *p, int rank, int above) {
    for (int i = p->row_at[rank]; i < p->row_at[rank + 1]; i++)
        p->spot[p->row[i]].want = mlo_picture_mean(p, p->row[i], above, 1) / 64;
    mlo_picture_settle(p, rank);
}

static int mlo_picture_place(mlo_picture *p) {
    for (int r = 0; r < p->ranks; r++) mlo_picture_pull(p, r, 1);
    for (int sweep = 0; sweep < MLO_SWEEPS; sweep++) {
        for (int r = p->ranks - 2; r >= 0; r--) mlo_picture_pull(p, r, 0);
        for (int r = 1; r < p->ranks; r++) mlo_picture_pull(p, r, 1);
    }
    int64_t least = INT64_MAX, most = INT64_MIN, y = 12;
    for (size_t i = 0; i < p->n_spot; i++) {
        const mlo_spot *x = &p->spot[i];
        if (x->x - x->width / 2 < least) least = x->x - x->width / 2;
        if (x->x + x->width / 2 > most) most = x->x + x->width / 2;
    }
    for (size_t i = 0; i < p->n_spot; i++) p->spot[i].x += p->margin + 8 - least;
    p->width = most - least + p->margin + 60;
    if (!(p->top = MLO_NEW_N(p->m, int64_t, (size_t)p->ranks + 1))) return mlo_failed(p->m);
    for (int r = 0; r < p->ranks; r++) {
        int tallest = 0;
        p->top[r] = y;
        for (int i = p->row_at[r]; i < p->row_at[r + 1]; i++)
            if (p->spot[p->row[i]].height > tallest) tallest = p->spot[p->row[i]].height;
        y += tallest + MLO_GAP_Y;
        p->top[r + 1] = y;
    }
    p->height = y - MLO_GAP_Y + 16;
    return 0;
}

/* ---- SVG ------------------------------------------------------------------ */

/* Text in HTML and SVG, at most `most` characters of it. */
static void mlo_html_words(mlo_text *t, const char *s, int most) {
    int n = mlo_columns(s);
    int head = n > most ? (most - 1) * 2 / 5 : n;
    int tail = n > most ? n - (most - 1 - head) : 0;
    int at = 0;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        int begins = (c & 0xC0) != 0x80;
        at += begins;
        if (n > most && begins && at == head + 1) mlo_puts(t, "&#8230;");
        if (at > head && at <= tail) continue;
        if (c == '&')
            mlo_puts(t, "&amp;");
        else if (c == '<')
            mlo_puts(t, "&lt;");
        else if (c == '>')
            mlo_puts(t, "&gt;");
        else if (c == '"')
            mlo_puts(t, "&quot;");
        else if (c < 32 || c == 127)
            mlo_puts(t, "?");
        else
            mlo_put(t, s, 1);
    }
}

static int64_t mlo_spot_bottom(const mlo_picture *p, const mlo_spot *x) {
    return p->top[x->rank]
        + (x->vertex < 0 ? p->top[x->rank + 1] - p->top[x->rank] - MLO_GAP_Y : x->height);
}

/* Where the value leaves a spot: outputs of one node leave side by side. */
static int64_t mlo_strand_out(const mlo_picture *p, const mlo_strand *t) {
    const mlo_spot *up = &p->spot[t->up];
    int least = INT_MAX, slots = 0, own = 0;
    if (up->vertex < 0 || p->s->vertex[up->vertex].kind != MLO_FIGURE_NODE) return up->x;
    for (size_t i = 0; i < p->s->n_arrow; i++)
        if (p->s->arrow[i].from == up->vertex) {
            int k = p->s->arrow[i].from_slot;
            if (k < least) least = k;
            if (k + 1 > slots) slots = k + 1;
        }
    if (t->arrow >= 0)
        own = p->s->arrow[t->arrow].from_slot;
    else
        for (int k = p->down_at[t->up]; k < p->down_at[t->up + 1]; k++)
            if (p->strand[p->from_down[k]].arrow >= 0)
                own = p->s->arrow[p->strand[p->from_down[k]].arrow].from_slot;
    return slots - least > 1 && slots - least < 8
        ? up->x + (2 * (own - least) - (slots - least - 1)) * 14
        : up->x;
}

/* Where it arrives: side by side too, in the order the strands come from. */
static int64_t mlo_strand_in(const mlo_picture *p, int strand) {
    const mlo_strand *t = &p->strand[strand];
    int n = 0, before = 0, from = p->up_at[t->down], to = p->up_at[t->down + 1];
    if (p->spot[t->down].vertex < 0) return p->spot[t->down].x;
    for (int k = from; k < to; k++) {
        int other = p->from_up[k];
        int64_t a = p->spot[p->strand[other].up].x, b = p->spot[t->up].x;
        n++;
        before += a < b || (a == b && other < strand);
    }
    return p->spot[t->down].x + (n < 8 ? (2 * before - (n - 1)) * 16 : 0);
}

static void mlo_svg_strand(const mlo_picture *p, int strand, mlo_text *t) {
    const mlo_strand *k = &p->strand[strand];
    const mlo_spot *up = &p->spot[k->up], *down = &p->spot[k->down];
    int64_t x0 = mlo_strand_out(p, k);
    int64_t y0 = mlo_spot_bottom(p, up);
    int64_t x1 = mlo_strand_in(p, strand);
    int64_t y1 = p->top[down->rank];
    int64_t half = (y0 + y1) / 2;
    mlo_printf(t, "<path d='M%lld,%lld", (long long)x0, (long long)y0);
    if (x0 == x1)
        mlo_printf(t, "V%lld", (long long)y1);
    else
        mlo_printf(t, "C%lld,%lld %lld,%lld %lld,%lld", (long long)x0, (long long)half,
            (long long)x1, (long long)half, (long long)x1, (long long)y1);
    if (down->vertex < 0) mlo_printf(t, "V%lld", (long long)mlo_spot_bottom(p, down));
    mlo_puts(t, down->vertex < 0 ? "'/>" : "' marker-end='url(#tip)'/>");
    if (k->arrow >= 0 && p->s->arrow[k->arrow].fifo) {
        mlo_printf(t, "<text class='fifo' x='%lld' y='%lld'>FIFO %lld</text>", (long long)x1 + 6,
            (long long)y1 - 9, (long long)p->s->arrow[k->arrow].fifo);
    }
}

/* The shape of what leaves a vertex, below it on the right of its line; one for all outputs that
 * have the same. */
static void mlo_svg_shape(const mlo_picture *p, int vertex, mlo_text *t) {
    const char *said = NULL;
    int64_t x = p->spot[vertex].x + 5, y = mlo_spot_bottom(p, &p->spot[vertex]) + 14;
    for (int k = p->down_at[vertex]; k < p->down_at[vertex + 1]; k++) {
        const mlo_strand *s = &p->strand[p->from_down[k]];
        if (s->arrow < 0) continue;
        const char *form = mlo_view_form(p->m, p->s->arrow[s->arrow].value);
        int64_t out = mlo_strand_out(p, s);
        if (out + 5 > x) x = out + 5;
        if (!said) said = form;
    }
    if (!said)
        for (size_t i = 0; i < p->s->n_arrow && !said; i++)
            if (p->s->arrow[i].from == vertex) said = mlo_view_form(p->m, p->s->arrow[i].value);
    if (!said) return;
    mlo_printf(t, "<text class='shape' x='%lld' y='%lld'>", (long long)x, (long long)y);
    mlo_html_words(t, said, 30);
    mlo_puts(t, "</text>");
}

static void mlo_svg_vertex(const mlo_picture *p, int vertex, mlo_text *t) {
    const mlo_vertex *v = &p->s->vertex[vertex];
    const mlo_spot *x = &p->spot[vertex];
    int64_t left = x->x - x->width / 2, top = p->top[x->rank], y = top + 17;
    mlo_printf(t, "<g class='v %s'><title>", v->look);
    if (v->node) {
        mlo_html_words(t, mlo_node_name(v->node), 400);
        if (*mlo_view_scope(v->node)) {
            mlo_puts(t, "\n");
            mlo_html_words(t, mlo_view_scope(v->node), 400);
        }
    } else
        mlo_html_words(t, v->value->name, 400);
    mlo_printf(t, "</title><rect x='%lld' y='%lld' width='%d' height='%d' rx='%d' />",
        (long long)left, (long long)top, x->width, x->height, v->kind == MLO_FIGURE_NODE ? 5 : 14);
    if (v->instance >= 0)
        mlo_printf(t, "<rect class='i%d' x='%lld' y='%lld' width='6' height='%d' />",
            v->instance % 8, (long long)left, (long long)top, x->height);
    for (int k = 0; k < 3; k++)
        if (*v->line[k]) {
            mlo_printf(t, "<text class='l%d' x='%lld' y='%lld'>", k, (long long)x->x, (long long)y);
            mlo_html_words(t, v->line[k], k ? 32 : 26);
            mlo_puts(t, "</text>");
            y += MLO_BOX_LINE;
        }
    mlo_puts(t, "</g>");
}

/* From the end of an iteration back to its beginning, along the left margin. */
static void mlo_svg_feedback(const mlo_picture *p, mlo_text *t) {
    for (size_t i = 0; p->s->loop && i < p->s->loop->states && i < 6; i++) {
        int from = -1, to = -1;
        for (size_t k = 0; k < p->s->n_vertex; k++) {
            if (p->s->vertex[k].kind == MLO_FIGURE_OUTPUT && p->s->vertex[k].port == (int)i)
                from = (int)k;
            if (p->s->vertex[k].kind == MLO_FIGURE_INPUT && p->s->vertex[k].port == (int)i)
                to = (int)k;
        }
        if (from < 0 || to < 0) continue;
        const mlo_spot *a = &p->spot[from], *b = &p->spot[to];
        int64_t x = 14 + 9 * (int64_t)i;
        int64_t ya = p->top[a->rank] + a->height / 2;
        int64_t yb = p->top[b->rank] + b->height / 2;
        int64_t xa = a->x - a->width / 2;
        int64_t xb = b->x - b->width / 2;
        mlo_printf(t,
            "<path class='back' d='M%lld,%lldH%lldQ%lld,%lld %lld,%lldV%lldQ%lld,%lld "
            "%lld,%lldH%lld' marker-end='url(#tip)'/>",
            (long long)xa, (long long)ya, (long long)x + 10, (long long)x, (long long)ya,
            (long long)x, (long long)ya - 10, (long long)yb + 10, (long long)x, (long long)yb,
            (long long)x + 10, (long long)yb, (long long)xb);
        if (!i)
            mlo_printf(t,
                "<text class='back' text-anchor='middle' transform='translate(%lld,%lld) "
                "rotate(-90)'>next iteration</text>",
                (long long)x - 4, (long long)(ya + yb) / 2);
    }
}

/* Lays the figure out. p->width is 0 where there is nothing to draw, or too much. */
static int mlo_picture_make(const mlo_figure *s, mlo_picture *p) {
    memset(p, 0, sizeof *p);
    p->s = s;
    p->m = s->v->m;
    p->margin = s->loop && s->loop->states
        ? 24 + 9 * (int)(s->loop->states < 6 ? s->loop->states : 6)
        : 0;
    if (!s->n_vertex || s->n_vertex > MLO_PICTURE_MOST) return 0;
    MLO_TRY(mlo_picture_ranks(p));
    int r = mlo_picture_chains(p);
    if (r < 0) return 0;
    if (r || mlo_picture_index(p)) return mlo_failed(p->m);
    mlo_picture_order(p);
    return mlo_picture_place(p);
}

/* Why there is no picture; NULL where there is one. */
static const char *mlo_picture_none(const mlo_picture *p) {
    if (p->width) return NULL;
    return !p->s->n_vertex ? "Nothing here depends on an input."
                           : "This graph is too large to draw here; try --dot, or roll the model "
                             "first.";
}

/* The drawing itself, between an <svg> and its end. */
static void mlo_picture_shapes(const mlo_picture *p, mlo_text *t) {
    const mlo_figure *s = p->s;
    for (size_t i = 0; i < p->n_strand; i++) mlo_svg_strand(p, (int)i, t);
    mlo_svg_feedback(p, t);
    for (size_t i = 0; i < s->n_vertex; i++) mlo_svg_shape(p, (int)i, t);
    for (size_t i = 0; i < s->n_vertex; i++) mlo_svg_vertex(p, (int)i, t);
}

/* id: of the group of all that is drawn, for sheets of it. inside: what comes first: a file's style,
 * nothing in a page. */
static void mlo_picture_svg(const mlo_picture *p, const char *root, const char *id, mlo_text *t,
    void (*inside)(mlo_text *t)) {
    mlo_printf(t,
        "<svg%s class='picture' width='%lld' height='%lld' viewBox='0 0 %lld %lld' "
        "style='min-width:%lldpx' role='img'>",
        root, (long long)p->width, (long long)p->height, (long long)p->width, (long long)p->height,
        (long long)p->width * 6 / 10);
    if (inside) inside(t);
    mlo_printf(t, "<g id='%s' class='picture'>", id);
    mlo_picture_shapes(p, t);
    mlo_puts(t, "</g></svg>");
}

/* Whether it is not to be read on one sheet of paper. */
static int mlo_picture_long(const mlo_picture *p) { return p->height > 1600; }

/* How many strips stand side by side. */
static int64_t mlo_picture_strips(const mlo_picture *p) {
    return p->width < MLO_SHEET_WIDE ? MLO_SHEET_WIDE / p->width : 1;
}

/* Where the strip that begins at y ends: between two ranks, as far down as a sheet is high: half as
 * high as wide, as headings stand above it. */
static int64_t mlo_picture_strip(const mlo_picture *p, int64_t y) {
    int64_t most = y + mlo_picture_strips(p) * p->width * 52 / 100, end = most;
    if (p->height <= most) return p->height;
    for (int r = 1; r < p->ranks; r++) {
        int64_t between = p->top[r] - MLO_GAP_Y / 2;
        if (between > y && between <= most) end = between;
    }
    return end;
}

/* For paper: the group `id` once more, in strips that stand side by side on its sheets. */
static void mlo_picture_sheets(const mlo_picture *p, const char *id, mlo_text *t) {
    mlo_puts(t, "<div class=sheets>");
    for (int64_t y = 0, end; y < p->height; y = end) {
        end = mlo_picture_strip(p, y);
        mlo_printf(t,
            "<svg class=picture viewBox='0 %lld %lld %lld' style='width:calc(100%%/%lld)'>"
            "<use href='#%s' /></svg>",
            (long long)y, (long long)p->width, (long long)(end - y),
            (long long)mlo_picture_strips(p), id);
    }
    mlo_puts(t, "</div>");
}
