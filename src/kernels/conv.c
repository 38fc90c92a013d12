/* conv: depthwise convolution over a grid of tokens: every channel of a token becomes a sum of what
 * lies around it, with weights of its own.
 *
 * in:  x [B, T, C] int8 or int16, w [C, KH, KW] (or [C, KH, KW, E]) int8, bias [C] int32, mult [C] int32, shift [C]
 *     int32. Attributes: width, the tokens of a row; top, left: rows above, columns to the left that
 *     a token sees (0 .. KH - 1, 0 .. KW - 1).
 * out: y [B, T, C]. Verilog: mlo_conv.
 *
 *     Token t is at row t / width, column t % width of its frame's grid.
 *     y[r][q][c] = requantize(bias[c] + sum_ij w[c][i][j] x[r+i-top][q+j-left][c]; mult[c], shift[c])
 *     What is outside of the frame is 0: above, below, beside its rows; behind its last token, if
 *     the last row is not whole. So a frame may have any number of tokens.
 *
 * With E there are weights for each part of its window that a token's frame can have: with u rows missing
 * above and d below, l columns to the left and r to the right they are number
 * ((u (KH - top) + d) (left + 1) + l) (KW - left) + r; E = (top + 1) (KH - top) (left + 1) (KW - left).
 * d counts the rows below in which the frame has no token under this one. So an average over the tokens
 * that are there is a convolution (count_include_pad = 0).
 *
 * Stride and dilation are 1. Average pooling of k x k is weights of 1, mult / 2^shift about 1 / k^2
 * (zeros count: at the borders, too). width = 1, KW = 1 is a convolution along a sequence, top = KH
 * - 1 a causal one.
 *
 * The hardware keeps the tokens that one token sees: (KH - 1) width + KW, and one on its way in; a
 * result is worked on when the last token that it sees is there, or its frame's last.
 *
 * error: the sum is exact; requantization half a step.
 * cost: KH (KW/SIMD) (C/PE) cycles a token.
 */

static const char mlo_conv_function[] =
    "Conv <to, lo, hi, width, top, left> (x, w, bias, mult, shift) => (y)\n"
    "i0 = Constant <value_int=0> ()\n"
    "i1 = Constant <value_int=1> ()\n"
    "i2 = Constant <value_int=2> ()\n"
    "zero1 = Constant <value_ints=[0]> ()\n"
    "one1 = Constant <value_ints=[1]> ()\n"
    "wide = Constant <value_int=@width> ()\n"
    "above = Constant <value_int=@top> ()\n"
    "beside = Constant <value_int=@left> ()\n"
    "form = Shape (x)\n"
    "tokens = Gather (form, i1)\n"
    "sizes = Shape (w)\n"
    "rows = Gather (sizes, i1)\n"
    "columns = Gather (sizes, i2)\n"
    /* which token is seen there, [T, KH, KW]; where there is none, the one behind the last, which
     * is 0 */
    "t = Range (i0, tokens, i1)\n"
    "i = Range (i0, rows, i1)\n"
    "j = Range (i0, columns, i1)\n"
    "t3 = Unsqueeze <axes=[1, 2]> (t)\n"
    "r3 = Div (t3, wide)\n"
    "q3 = Mod (t3, wide)\n"
    "i3 = Unsqueeze <axes=[0, 2]> (i)\n"
    "j3 = Unsqueeze <axes=[0, 1]> (j)\n"
    "ri = Add (r3, i3)\n"
    "row = Sub (ri, above)\n"
    "qj = Add (q3, j3)\n"
    "column = Sub (qj, beside)\n"
    "before = Mul (row, wide)\n"
    "at = Add (before, column)\n"
    "over = Less (row, i0)\n"
    "off_left = Less (column, i0)\n"
    "in_row = Less (column, wide)\n"
    "off_right = Not (in_row)\n"
    "in_frame = Less (at, tokens)\n"
    "under = Not (in_frame)\n"
    "off = Or (off_left, off_right)\n"
    "out = Or (over, under)\n"
    "none = Or (off, out)\n"
    "seen = Where (none, tokens, at)\n"
    "x64 = Cast <to=7> (x)\n"
    "any = Slice (x64, zero1, one1, one1)\n"
    "nothing = Sub (any, any)\n"
    "xs = Concat <axis=1> (x64, nothing)\n"
    "windows = Gather <axis=1> (xs, seen)\n"
    /* weights [E, KH, KW, C], and which of them are a token's */
    "three1 = Constant <value_ints=[3]> ()\n"
    "rest1 = Constant <value_ints=[-1]> ()\n"
    "window = Slice (sizes, zero1, three1)\n"
    "whole4 = Concat <axis=0> (window, rest1)\n"
    "w64 = Cast <to=7> (w)\n"
    "w4 = Reshape (w64, whole4)\n"
    "edges = Transpose <perm=[3, 1, 2, 0]> (w4)\n"
    "form4 = Shape (edges)\n"
    "many = Gather (form4, i0)\n"
    "most = Sub (many, i1)\n"
    "under_ = Sub (rows, above)\n"
    "below = Sub (under_, i1)\n"
    "aside = Sub (columns, beside)\n"
    "beside1 = Add (beside, i1)\n"
    "up_ = Sub (above, r3)\n"
    "up = Max (up_, i0)\n"
    "behind_ = Sub (tokens, t3)\n"
    "behind = Sub (behind_, i1)\n"
    "more = Div (behind, wide)\n"
    "fewer = Min (more, below)\n"
    "down = Sub (below, fewer)\n"
    "early_ = Sub (beside, q3)\n"
    "early = Max (early_, i0)\n"
    "end_ = Add (q3, aside)\n"
    "end = Sub (end_, wide)\n"
    "late = Max (end, i0)\n"
    "uu = Mul (up, under_)\n"
    "ud = Add (uu, down)\n"
    "udl_ = Mul (ud, beside1)\n"
    "udl = Add (udl_, early)\n"
    "udlr_ = Mul (udl, aside)\n"
    "udlr = Add (udlr_, late)\n"
    "edge_ = Min (udlr, most)\n"
    "edge = Reshape (edge_, rest1)\n"
    "taps = Gather <axis=0> (edges, edge)\n"
    "products = Mul (windows, taps)\n"
    "sums = ReduceSum <axes=[2, 3], keepdims=0> (products)\n"
    "b = Cast <to=7> (bias)\n"
    "acc = Add (sums, b)\n"
    "m = Cast <to=7> (mult)\n"
    "s = Cast <to=7> (shift)\n" MLO_FUNCTION_REQUANTIZE "y = Cast <to=@to> (qc)\n";

/* What a token sees: a window of tokens, in rows. */
typedef struct {
    int64_t channels;
    int64_t kh; /* rows of the window */
    int64_t kw; /* columns of the window */
    int64_t width; /* tokens of a row */
    int64_t top; /* rows of the window above the token */
    int64_t left; /* columns of the window to the left of it */
    int64_t edges; /* parts of the window that have weights of their own; 1: there is one set */
} mlo_pane;

/* Parts of a window that a token's frame can have. */
static int64_t mlo_pane_parts(const mlo_pane *v) {
    return (v->top + 1) * (v->kh - v->top) * (v->left + 1) * (v->kw - v->left);
}

/* 0: recorded what is wrong with shapes and attributes. */
static int mlo_pane_of(
    mlo *m, const mlo_node *n, const mlo_form *x, const mlo_form *w, mlo_pane *v) {
    enum { MOST = 1 << 16 };
    v->channels = mlo_last_dim(x);
    v->width = mlo_int(n, "width", 0);
    v->top = mlo_int(n, "top", -1);
    v->left = mlo_int(n, "left", -1);
    v->edges = w->rank == 4 ? w->dims[3] : 1;
    if (x->rank != 3 || w->rank < 3 || w->rank > 4 || w->dims[0] != v->channels) {
        mlo_fail(m, MLO_E_SHAPE, n,
            "takes x of 3 dimensions, [batch, tokens, channels], and w of 3, [channels, rows, "
            "columns], or 4 with parts; they have %d and %d, x has %lld channels, w %lld",
            x->rank, w->rank, (long long)v->channels, (long long)(w->rank ? w->dims[0] : 0));
        return 0;
    }
    v->kh = w->dims[1];
    v->kw = w->dims[2];
    if (v->width < 1 || v->width > MOST || v->kh < 1 || v->kh > MOST || v->kw < 1 || v->kw > MOST)
        mlo_fail(m, MLO_E_SHAPE, n,
            "a window of %lld x %lld over rows of width = %lld tokens; each must be 1 to %d",
            (long long)v->kh, (long long)v->kw, (long long)v->width, MOST);
    else if (w->rank == 4 && v->edges != mlo_pane_parts(v))
        mlo_fail(m, MLO_E_SHAPE, n, "weights for %lld parts of the window; it has %lld",
            (long long)v->edges, (long long)mlo_pane_parts(v));
    else if (v->top < 0 || v->top >= v->kh || v->left < 0 || v->left >= v->kw)
        mlo_fail(m, MLO_E_SHAPE, n,
            "top = %lld, left = %lld in a window of %lld x %lld; a token must be in its window",
            (long long)v->top, (long long)v->left, (long long)v->kh, (long long)v->kw);
    else
        return 1;
    return 0;
}
static int mlo_site_pane(const mlo_site *s, mlo_pane *v) {
    return mlo_pane_of(s->m, s->node, &s->in[0], &s->in[1], v);
}

/* Tokens in front of one, and behind it, that its window can reach. */
static int64_t mlo_pane_before(const mlo_pane *v) { return v->top * v->width + v->left; }
static int64_t mlo_pane_behind(const mlo_pane *v) {
    return (v->kh - 1 - v->top) * v->width + v->kw - 1 - v->left;
}
/* Tokens there is room for: those, itself, the next one on its way in (two, if a beat takes a
 * cycle); as many in each bank. */
static int64_t mlo_pane_slots(const mlo_pane *v, int64_t simd) {
    const int64_t coming = v->kh * v->kw == simd ? 2 : 1;
    return mlo_parts(mlo_pane_before(v) + mlo_pane_behind(v) + 1 + coming, simd) * simd;
}

/* acc[c] := the sum of token t's window, of one frame's x; taps [KH * KW, E, C]. */
static void mlo_pane_sums(const mlo_pane *v, const mlo_array *x, int64_t frame, int64_t tokens,
    int64_t t, const int64_t *taps, int64_t *acc) {
    const int64_t c = v->channels, row = t / v->width - v->top, column = t % v->width - v->left;
    const int64_t edge = v->edges > 1
        ? mlo_window_edge(t, tokens, v->kh, v->kw, v->width, v->top, v->left)
        : 0;
    memset(acc, 0, (size_t)c * sizeof *acc);
    for (int64_t i = 0; i < v->kh; i++)
        for (int64_t j = 0; j < v->kw; j++) {
            const int64_t at = (row + i) * v->width + column + j;
            const int64_t *w = taps + ((i * v->kw + j) * v->edges + edge) * c;
            if (row + i < 0 || column + j < 0 || column + j >= v->width || at >= tokens) continue;
            for (int64_t k = 0; k < c; k++)
                acc[k] += w[k] * mlo_get(x, (frame * tokens + at) * c + k);
        }
}

/* All frames' tokens. */
static void mlo_conv_tokens(
    mlo_call *c, const mlo_pane *v, const int64_t *taps, int64_t *acc, mlo_array *y) {
    const int64_t lo = mlo_int(c->node, "lo", -128), hi = mlo_int(c->node, "hi", 127);
    const int64_t tokens = y->dims[1];
    c->m->accumulator = 0;
    for (int64_t n = 0; n < y->dims[0] * tokens; n++) {
        mlo_pane_sums(v, c->in[0], n / tokens, tokens, n % tokens, taps, acc);
        for (int64_t k = 0; k < v->channels; k++) {
            const int64_t sum = acc[k] + mlo_get(c->in[2], k), magnitude = sum < 0 ? ~sum : sum;
            if (magnitude > c->m->accumulator) c->m->accumulator = magnitude;
            mlo_set_element(y, n * v->channels + k,
                mlo_requantize(sum, mlo_get(c->in[3], k), (int)mlo_get(c->in[4], k), lo, hi));
        }
    }
}

static int mlo_conv_run(mlo_call *c) {
    mlo_pane v;
    if (mlo_kernel_inputs(c, 5) || mlo_kernel_activation(c, 0)) return mlo_failed(c->m);
    const mlo_array *x = c->in[0], *w = c->in[1];
    const mlo_form form = mlo_array_form(x), sizes = mlo_array_form(w);
    if (w->dtype != MLO_INT8)
        return mlo_fail(
            c->m, MLO_E_TYPE, c->node, "w is %s; it must be INT8", mlo_dtype_name(w->dtype));
    if (!mlo_pane_of(c->m, c->node, &form, &sizes, &v)) return mlo_failed(c->m);
    for (size_t i = 2; i < 5; i++)
        if (mlo_kernel_count(c, i, v.channels)) return mlo_failed(c->m);
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    if (!y || mlo_kernel_limits(c, mlo_mvu_limits)) return mlo_failed(c->m);
    const int64_t area = v.kh * v.kw * v.edges;
    int64_t *taps = (int64_t *)mlo_scratch(
        c->m, (size_t)((area + 1) * v.channels) + 1, sizeof *taps);
    for (int64_t i = 0; taps && i < area * v.channels; i++)
        taps[i % area * v.channels + i / area] = mlo_get(w, i);
    if (taps) mlo_conv_tokens(c, &v, taps, taps + area * v.channels, y);
    mlo_scratch_free(c->m, taps);
    return mlo_failed(c->m);
}

/* SIMD taps of a window's row, which lie in as many banks. */
static int mlo_conv_legal(const mlo_site *s, int64_t pe, int64_t simd) {
    mlo_pane v;
    return mlo_site_pane(s, &v) && v.kw % simd == 0 && v.channels / s->parts % pe == 0;
}

static mlo_interval mlo_conv_acc(const mlo_site *s) {
    return mlo_mvu_sums(
        s->in[1].dims[1] * s->in[1].dims[2], s->in_bits[0], mlo_site_weight_bits(s));
}

static void mlo_conv_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    const int64_t taps = s->in[1].dims[1] * s->in[1].dims[2];
    const int pbits = s->in_bits[0] + mlo_site_weight_bits(s);
    const int abits = mlo_bits_for(mlo_conv_acc(s));
    const mlo_interval product = mlo_mvu_product(s), acc = mlo_conv_acc(s);
    const mlo_intermediate products = { "x w", product, 1, MLO_IN_INT64, MLO_IN_INT64, pbits, 1,
        "row[0].u_dots.quad[0].row[0].a" };
    mlo_note(l, products);
    mlo_note_hardware(l, "SIMD products", mlo_sum_of_many(u->simd, product), 1,
        pbits + mlo_clog2(u->simd), 1, "row[0].sum");
    mlo_note_golden(
        l, "all products", mlo_sum_of_many(taps, product), 1, MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_all(l, "acc", acc, 1, abits, 1, "lane[0].acc");
    mlo_note_requantize(l, mlo_product_of(acc, mlo_multipliers), abits + 16,
        "lane[0].u_requantize.prod2", s->out_bits);
}

static int mlo_conv_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    mlo_pane v;
    if (!mlo_site_pane(s, &v)) return mlo_failed(s->m);
    const int64_t cycles = v.kh * v.kw / simd, turns = mlo_mvu_turns(pe, cycles);
    const int64_t lanes = pe / turns;
    const int wbits = mlo_site_weight_bits(s);
    u->module = "mlo_conv";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, pe, s->in_bits[0], v.channels);
    u->out = mlo_port_make("m_axis", 0, pe, s->out_bits, v.channels);
    mlo_unit_memory(u, "s_axis_w", pe * simd * wbits, v.channels / pe * cycles * v.edges);
    mlo_unit_memory(u, "s_axis_c", lanes * 64, v.channels / lanes);
    mlo_unit_param(u, "C", v.channels);
    mlo_unit_param(u, "KH", v.kh);
    mlo_unit_param(u, "KW", v.kw);
    mlo_unit_param(u, "W", v.width);
    mlo_unit_param(u, "TOP", v.top);
    mlo_unit_param(u, "LEFT", v.left);
    if (v.edges > 1) mlo_unit_param(u, "EDGES", 1);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "SIMD", simd);
    mlo_unit_param(u, "XBITS", u->in[0].bits);
    mlo_unit_param(u, "WBITS", wbits);
    mlo_unit_param(u, "ABITS", mlo_bits_for(mlo_conv_acc(s)));
    mlo_unit_param(u, "YBITS", u->out.bits);
    mlo_unit_shift(s, u);
    u->interval = cycles * (v.channels / pe);
    u->latency = (mlo_clog2(simd) + 1) / 2 + 12 + turns;
    u->multipliers = pe * simd;
    u->other = mlo_site_pow2(s) ? 0 : lanes;
    u->macs = v.channels * v.kh * v.kw;
    u->flow = MLO_FLOW_WINDOW;
    u->turns = turns;
    u->window.cycles = cycles;
    u->window.behind = mlo_pane_behind(&v);
    u->window.slots = mlo_pane_slots(&v, simd);
    u->window.room = u->window.slots - mlo_pane_before(&v);
    return mlo_failed(s->m); /* reading the metadata may have failed */
}

/* Weights: tap after tap of a group of PE channels, of each tap those of each part of the window. */
static void mlo_conv_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    const int64_t taps = s->in[1].dims[1] * s->in[1].dims[2], folds = taps / u->simd;
    const int64_t edges = s->in[1].rank == 4 ? s->in[1].dims[3] : 1;
    const int64_t edge = word % edges, step = word / edges;
    const int wbits = mlo_site_weight_bits(s);
    if (k) {
        mlo_pack_channels(s, u->memory[1].width / 64, word, in, 2, bits);
        return;
    }
    for (int64_t p = 0; p < u->pe; p++)
        for (int64_t i = 0; i < u->simd; i++)
            mlo_put_bits(bits, (p * u->simd + i) * wbits, wbits,
                (uint64_t)mlo_get(in[1],
                    ((step / folds * u->pe + p) * taps + step % folds * u->simd + i) * edges
                        + edge));
}

/* mlo_window: banks of tokens, the sideband and the reach of each token, counters, what picks
 * banks and what hides taps that are outside. */
static void mlo_conv_window_area(const mlo_site *s, const mlo_unit *u, mlo_area *a) {
    const int64_t word = u->pe * s->in_bits[0], beats = u->in[0].channels / u->pe;
    const int64_t bank = u->window.slots / u->simd * beats;
    const int64_t at = mlo_clog2(bank), slot = mlo_clog2(u->window.slots);
    const int64_t reach = mlo_clog2(u->window.behind + 1);
    for (int i = 0; i < u->simd; i++) mlo_area_memory(a, word, bank);
    mlo_area_memory(a, 3, u->window.slots);
    mlo_area_memory(a, 1, u->window.slots);
    mlo_area_memory(a, reach, u->window.slots);
    enum { LUTS = 20, FFS = 23 };
    a->lut += u->simd * (word * (1 + mlo_mux_luts(u->simd)) + 2 * slot) + 10 * at + 10 * slot
        + LUTS;
    a->ff += u->simd + 4 * at + 12 * slot + FFS;
}

static void mlo_conv_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    const int64_t pe = u->pe, simd = u->simd, channels = mlo_last_dim(&s->out);
    const int64_t x = s->in_bits[0], w = mlo_site_weight_bits(s);
    const int64_t acc = mlo_bits_for(mlo_conv_acc(s)), taps = u->window.cycles * simd;
    const int64_t total = mlo_min(x + w + mlo_clog2(taps) + 1, acc);
    const int shift = mlo_site_pow2(s);
    const int word = 38 + (shift ? 0 : 16);
    const int64_t lanes = pe / u->turns;
    enum { CONTROL_LUTS = 60, CONTROL_FFS = 28 };
    /* a sum at work, and one that waits for its turn; operands twice, products */
    mlo_area row = { 2 * total, simd * 3 * (w + x) + 2 * total, simd * mlo_product_dsps(x, w), 0 };
    mlo_area lane = { total * mlo_parts(u->turns - 1, 3), total + word, 0, 0 };
    mlo_conv_window_area(s, u, a);
    mlo_area_param(a, pe * simd * w, pe * simd * w, u->memory[0].depth, axi, banks);
    mlo_area_param(a, 64 * lanes, lanes * word, u->memory[1].depth, axi, banks);
    mlo_area_tree4(&row, simd, x + w, 0);
    mlo_area_requantize(&lane, acc, 16, s->out_bits, 1, shift);
    mlo_area_times(a, pe, &row);
    mlo_area_times(a, lanes, &lane);
    mlo_area_skid(a, pe * s->out_bits + 3);
    a->lut += CONTROL_LUTS;
    a->ff += (pe - lanes) * s->out_bits + CONTROL_FFS + mlo_clog2(u->turns)
        + mlo_clog2(u->window.cycles) + 2 * mlo_clog2(channels / pe)
        + mlo_clog2(u->memory[0].depth);
}

/* ---- the card -------------------------------------------------------------- */

static const mlo_kernel mlo_conv_kernel = {
    .op = { "mlo.Conv", mlo_kernel_same_shape, mlo_conv_run, 5 },
    .kind = MLO_KERNEL_WINDOW,
    .series = "conv",
    .finn = "VVAU",
    .shifts = 1,
    .function = mlo_conv_function,
    .limits = mlo_mvu_limits,
    .pe_axis = "channels",
    .simd_axis = "columns of the window",
    .legal = mlo_conv_legal,
    .unit = mlo_conv_unit,
    .intermediates = mlo_conv_intermediates,
    .area = mlo_conv_area,
    .promises = mlo_mvu_promises,
    .pack = mlo_conv_pack,
};
