/* layernorm: LayerNormalization over the channels of a token, in integers. With center = 0 it is
 * RMSNormalization. With groups = G a token is G norms of N = C / G channels one after the other
 * (of the heads of queries and keys, say).
 *
 * in:  x [.., C] int16, g [N] int32 (fits int16), b [N] int32, p = [EPS (int64), SH]; or g and b
 *     [G, N], which each norm of a token has of its own.
 * out: y [.., C]. Verilog: mlo_layernorm.
 *
 * Of each norm, C being its channels:
 *     u[c] = C x[c] - sum x
 *     V    = C sum x^2 - (sum x)^2 + EPS       u / sqrt(V) is the normalised value: no division by
 *     C k    = leading base-4 zeros of V         so that V 4^k is in [2^60, 2^62)
 *     root = floor(sqrt(V 4^k / 2^30))
 *     R    = floor(2^31 / root)                16 bits of the reciprocal root
 *     n[c] = (u[c] R + half) >> (32 - k)       14 fraction bits
 *     y[c] = clip((n[c] g[c] + b[c]) >> SH)
 *
 * g holds gamma / scale(y) * 2^(SH-14). b holds beta / scale(y) * 2^SH + 2^(SH-1): the half that
 * rounding adds is in b.
 *
 * error: n within 2^-13.9 relative (root, R) + 2^-15; y half a step more.
 * cost: G max(N/PE, 43) cycles a token.
 */

/* From x64, the channels of a norm along its last axis, and how many, to n; from n times gamma on. */
#define MLO_NORM_STATISTICS                                                                                      \
    "eps = Gather (p, i0)\n"                                                                                     \
    "sh = Gather (p, i1)\n"                                                                                      \
    "center_ = Constant <value_int=@center> ()\n"                                                                \
    "total_ = ReduceSum <axes=[-1], keepdims=1> (x64)\n"                                                         \
    "total = Mul (total_, center_)\n"                                                                            \
    "cx = Mul (x64, channels)\n"                                                                                 \
    "u = Sub (cx, total)\n"                                                                                      \
    "square = Mul (x64, x64)\n"                                                                                  \
    "squares = ReduceSum <axes=[-1], keepdims=1> (square)\n"                                                     \
    "csquares = Mul (squares, channels)\n"                                                                       \
    "total2 = Mul (total, total)\n"                                                                              \
    "v_ = Sub (csquares, total2)\n"                                                                              \
    "v = Add (v_, eps)\n"                                                                                        \
    "powers = Constant <value_ints=[4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, "                 \
    "4194304, 16777216, 67108864, 268435456, 1073741824,"                                                        \
    " 4294967296, 17179869184, 68719476736, 274877906944, 1099511627776, 4398046511104, "                        \
    "17592186044416, 70368744177664, 281474976710656,"                                                           \
    " 1125899906842624, 4503599627370496, 18014398509481984, 72057594037927936, "                                \
    "288230376151711744, 1152921504606846976]> ()\n"                                                             \
    "less = Less (v, powers)\n" /* k = how many of 4^1..4^30 exceed V */                                         \
    "less64 = Cast <to=7> (less)\n"                                                                              \
    "k = ReduceSum <axes=[-1], keepdims=1> (less64)\n"                                                           \
    "four = Constant <value_int=4> ()\n"                                                                         \
    "two = Constant <value_int=2> ()\n"                                                                          \
    "up = Pow (four, k)\n"                                                                                       \
    "normal = Mul (v, up)\n"                                                                                     \
    "c30 = Constant <value_int=1073741824> ()\n"                                                                 \
    "w32 = Div (normal, c30)\n"                                                                                  \
    "wd = Cast <to=11> (w32)\n" /* correctly rounded, so its floor is the integer root of anything below 2^52 */ \
    "rootd = Sqrt (wd)\n"                                                                                        \
    "rootf = Floor (rootd)\n"                                                                                    \
    "root = Cast <to=7> (rootf)\n"                                                                               \
    "c31 = Constant <value_int=2147483648> ()\n"                                                                 \
    "r = Div (c31, root)\n"                                                                                      \
    "ur = Mul (u, r)\n"                                                                                          \
    "c32 = Constant <value_int=32> ()\n"                                                                         \
    "down = Sub (c32, k)\n"                                                                                      \
    "nd = Pow (two, down)\n"                                                                                     \
    "nhalf = Div (nd, two)\n"                                                                                    \
    "ur_ = Add (ur, nhalf)\n"                                                                                    \
    "nrest = Mod (ur_, nd)\n"                                                                                    \
    "nwhole = Sub (ur_, nrest)\n"                                                                                \
    "n = Div (nwhole, nd)\n"
#define MLO_NORM_ENDING                                                \
    "acc = Add (ng, b64)\n"                                            \
    "d = Pow (two, sh)\n"                                              \
    "rest = Mod (acc, d)\n"                                            \
    "whole = Sub (acc, rest)\n"                                        \
    "q = Div (whole, d)\n" MLO_FUNCTION_CLIP "qr = Reshape (qc, xs)\n" \
    "y = Cast <to=@to> (qr)\n"

static const char mlo_layernorm_function[] =
    "LayerNorm <to, lo, hi, center, groups> (x, g, b, p) => (y)\n"
    "xc = Cast <to=7> (x)\n"
    "xs = Shape (xc)\n" /* [.., C] -> [tokens, G, N]: N channels have a gamma */
    "gs = Shape (g)\n"
    "i0 = Constant <value_int=0> ()\n"
    "final = Constant <value_ints=[-1]> ()\n"
    "norm = Gather (gs, final)\n"
    "channels = Gather (norm, i0)\n"
    "whole_ = Gather (xs, final)\n"
    "groups_ = Div (whole_, norm)\n"
    "parts = Concat <axis=0> (final, groups_, norm)\n"
    "x64 = Reshape (xc, parts)\n"
    "g64 = Cast <to=7> (g)\n"
    "b64 = Cast <to=7> (b)\n"
    "i1 = Constant <value_int=1> ()\n" MLO_NORM_STATISTICS "ng = Mul (n, g64)\n" MLO_NORM_ENDING;

/* Norms of a token; has each a gamma and beta of its own? */
static int64_t mlo_norm_groups(const mlo_node *n) { return mlo_int(n, "groups", 1); }
static int mlo_norm_own(const mlo_form *g) { return g->rank > 1 && g->dims[0] > 1; }

static int mlo_norm_center(mlo *m, const mlo_node *n) {
    const int64_t center = mlo_int(n, "center", 1);
    return center == 0 || center == 1
        ? 0
        : mlo_fail(m, MLO_E_DATA, n, "center is %lld; it must be 0 or 1", (long long)center);
}

/* A norm over the channels of some rows, from element `at` on; a channel's gamma and beta, from `of` on. */
static void mlo_norm_over(
    mlo_call *c, int64_t at, int64_t of, int64_t rows, int64_t channels, mlo_array *y) {
    const mlo_array *x = c->in[0];
    const int64_t lo = mlo_kernel_low(c->node), hi = mlo_kernel_high(c->node);
    const int64_t end = at + rows * channels;
    const int sh = (int)mlo_get(c->in[3], 1);
    int64_t total = 0, squares = 0;
    for (int64_t i = at; i < end; i++) {
        const int64_t v = mlo_get(x, i);
        total += v;
        squares += v * v;
    }
    if (!mlo_int(c->node, "center", 1)) total = 0;
    const mlo_normal f = mlo_norm_of(end - at, total, squares, mlo_get(c->in[3], 0));
    for (int64_t row = at; row < end; row += channels)
        for (int64_t i = 0; i < channels; i++)
            mlo_set_element(y, row + i,
                mlo_norm_one(&f, mlo_get(x, row + i), mlo_get(c->in[1], of + i),
                    mlo_get(c->in[2], of + i), sh, lo, hi));
}

enum { MLO_NORM_CHANNELS = 32768, MLO_NORM_SHIFT = 40 };
#define MLO_NORM_EPSILON ((int64_t)1 << 47)
static const mlo_limit mlo_layernorm_limits[] = { { 1, 0, 1, -32768, 32767, "scale" },
    { 2, 0, 1, INT32_MIN, INT32_MAX, "offset" }, { 3, 0, 2, 1, MLO_NORM_EPSILON, "epsilon" },
    { 3, 1, 2, 0, MLO_NORM_SHIFT, "shift" }, { .what = NULL } };

static int mlo_layernorm_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 4) || mlo_kernel_activation(c, 0) || mlo_norm_center(c->m, c->node))
        return mlo_failed(c->m);
    const mlo_array *x = c->in[0], *g = c->in[1];
    const int64_t all = x->rank ? x->dims[x->rank - 1] : 1, groups = mlo_norm_groups(c->node);
    if (groups < 1 || all % groups)
        return mlo_fail(c->m, MLO_E_DATA, c->node,
            "groups is %lld; it must divide the %lld channels", (long long)groups, (long long)all);
    const int64_t channels = all / groups, rows = channels ? mlo_array_count(x) / channels : 0;
    const mlo_form of = { g->dtype, g->rank, { g->dims[0] } };
    const int own = groups > 1 && mlo_norm_own(&of);
    if (groups > 1 && (own ? g->dims[0] != groups || g->rank != 2 : mlo_array_count(g) != channels))
        return mlo_fail(c->m, MLO_E_SHAPE, c->node,
            "its scale has %lld elements; %lld norms of %lld channels share %lld, or have "
            "[%lld, %lld]",
            (long long)mlo_array_count(g), (long long)groups, (long long)channels,
            (long long)channels, (long long)groups, (long long)channels);
    if (mlo_kernel_count(c, 1, own ? all : channels) || mlo_kernel_count(c, 2, own ? all : channels)
        || mlo_kernel_count(c, 3, 2))
        return mlo_failed(c->m);
    if (channels > MLO_NORM_CHANNELS)
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, c->node,
            "%lld channels; the integer norm takes up to %d", (long long)channels,
            MLO_NORM_CHANNELS);
    if (mlo_kernel_limits(c, mlo_layernorm_limits)) return mlo_failed(c->m);
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    for (int64_t i = 0; y && i < rows; i++)
        mlo_norm_over(c, i * channels, own ? i % groups * channels : 0, 1, channels, y);
    return mlo_failed(c->m);
}

/* Bounds beyond interval arithmetic, because V knows x:
 *     V <= floor(C^2 / 4) (2^XBITS - 1)^2 + EPS: the most a variance can be, half of the channels
 *     at each end. Without a mean: C^2 x^2. u^2 <= (C - 1) V, as the other channels' u sum to -u,
 *     so their squares to u^2 / (C - 1) at least. Without a mean: u^2 <= C V. R = floor(2^31 /
 *     root), root > sqrt(V 4^k / 2^30) - 1 and root >= 2^15, so R 2^(k-46) sqrt(V) <= 1 + 2^-15.
 *     |n| <= 2^14 sqrt(C - 1) (1 + 2^-15) + 1/2. */
static void mlo_norm_intermediates(const mlo_site *s, int64_t c, mlo_intermediates *l) {
    int64_t center = mlo_int(s->node, "center", 1);
    int64_t far = center ? c - 1 : c;
    int xbits = s->in_bits[0];
    int lc = mlo_clog2(c);
    int ubits = (xbits + lc > 16 ? xbits + lc : 16) + 18;
    int nbits = 16 + (lc + 1) / 2;
    int tbits = (nbits > 17 ? nbits + 16 : 33) + 1;
    mlo_interval x = mlo_signed_bits(xbits);
    mlo_interval total = mlo_sum_of_many(c, x);
    mlo_interval square = mlo_from_to(0, mlo_product_of(x, x).hi);
    mlo_interval r = mlo_from_to(32768, 65536);
    int64_t spread = mlo_two_to(xbits) - 1;
    int64_t most = center ? mlo_times_ends(c * c / 4, spread * spread)
                          : mlo_times_ends(c * c, square.hi);
    mlo_interval v = mlo_from_to(1, mlo_add_ends(most, MLO_NORM_EPSILON));
    mlo_interval half = mlo_from_to(2, mlo_two_to(31));
    mlo_interval cx = mlo_product_of(mlo_from_to(c, c), x);
    mlo_interval norm = center ? mlo_from_to(-far * spread, far * spread) : cx;
    int64_t root = mlo_isqrt(mlo_times_ends(far, mlo_two_to(28)), 44) + 1;
    int64_t reach = c > 1 || !center ? root + root / 32768 + 1 : 0;
    mlo_interval n = mlo_from_to(-reach, reach), ng = mlo_product_of(n, mlo_signed_bits(16));
    mlo_intermediate sum = { "sum x", total, 1, MLO_IN_INT64, MLO_IN_DOUBLE, xbits + lc, 1,
        "u_variance.acc1" };
    mlo_intermediate squares = { "sum x^2", mlo_sum_of_many(c, square), 1, MLO_IN_INT64,
        MLO_IN_DOUBLE, 2 * xbits + lc, 0, "u_variance.acc2" };
    mlo_note(l, sum);
    mlo_note(l, squares);
    mlo_note_hardware(l, "|sum x|", mlo_from_to(0, center ? -total.lo : 0), center != 0, 31, 0,
        "u_variance.abs1");
    if (center)
        mlo_note_golden(l, "(sum x)^2", mlo_from_to(0, mlo_product_of(total, total).hi), 1,
            MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_golden(l, "C sum x^2", mlo_sum_of_many(c, mlo_sum_of_many(c, square)), 1, MLO_IN_INT64,
        MLO_IN_INT64);
    mlo_note_hardware(l, "C sum x^2 + EPS",
        mlo_sum_of(
            mlo_sum_of_many(c, mlo_sum_of_many(c, square)), mlo_from_to(1, MLO_NORM_EPSILON)),
        1, 62, 0, "u_variance.v");
    mlo_note_all(l, "V", v, 1, 62, 0, "v_data");
    mlo_note_all(
        l, "V 4^k", mlo_from_to(mlo_two_to(60), mlo_two_to(62) - 1), 0, 62, 0, "u_rsqrt.v");
    mlo_note_all(l, "R", r, 1, 17, 0, "u_rsqrt.quo");
    mlo_note_golden(l, "C x", cx, 1, MLO_NOWHERE, MLO_IN_INT64);
    mlo_note_golden(l, "u", norm, 1, MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_hardware(
        l, "C R", mlo_product_of(mlo_from_to(c, c), r), 0, mlo_clog2(c + 1) + 17, 1, "cr");
    if (center)
        mlo_note_hardware(l, "-(sum x) R + half",
            mlo_sum_of(mlo_product_of(total, mlo_from_to(-r.hi, -r.lo)), half), 0, ubits, 1, "t_c");
    mlo_note_all(
        l, "u R + half", mlo_sum_of(mlo_product_of(norm, r), half), 0, ubits, 1, "g_lane[0].ur3");
    mlo_note_golden(l, "whole n",
        mlo_from_to(mlo_times_ends(2, mlo_product_of(norm, r).lo),
            mlo_add_ends(mlo_product_of(norm, r).hi, half.hi)),
        0, MLO_NOWHERE, MLO_IN_INT64);
    mlo_note_all(l, "n", n, 1, nbits, 1, "g_lane[0].n4");
    mlo_note_golden(l, "n G", ng, 1, MLO_NOWHERE, MLO_IN_INT64);
    mlo_note_all(l, "n G + B", mlo_sum_of(ng, mlo_signed_bits(32)), 1, tbits, 1, "g_lane[0].t6");
    mlo_note_golden(l, "whole steps",
        mlo_sum_of(
            mlo_sum_of(ng, mlo_signed_bits(32)), mlo_from_to(1 - mlo_two_to(MLO_NORM_SHIFT), 0)),
        0, MLO_NOWHERE, MLO_IN_INT64);
    l->clip = s->out_bits;
}
static void mlo_layernorm_intermediates(
    const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    (void)u;
    mlo_norm_intermediates(s, mlo_last_dim(&s->out) / mlo_norm_groups(s->node), l);
}

/* Beats that it keeps, of norms of so many beats, between its input and the lanes. */
static int64_t mlo_norm_keeps(int64_t beats) { return beats < 42 ? 3 * beats : beats + 84; }

/* What the flow of a norm of so many beats is told. */
static void mlo_norm_times(mlo_unit *u, int64_t center, int64_t beats) {
    u->norm.finish = 10 - 3 * !center;
    u->norm.root = 42;
    u->norm.stages = 8;
    u->norm.keeps = mlo_norm_keeps(beats);
}

/* Lanes divide a norm's channels. */
static int mlo_layernorm_legal(const mlo_site *s, int64_t pe, int64_t simd) {
    const int64_t c = mlo_last_dim(&s->out), groups = mlo_norm_groups(s->node);
    return simd == 1 && groups > 0 && c % groups == 0 && c / groups % pe == 0;
}

static int mlo_layernorm_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const int64_t all = mlo_last_dim(&s->out), center = mlo_int(s->node, "center", 1);
    const int64_t groups = mlo_norm_groups(s->node);
    const int own = groups > 1 && mlo_norm_own(&s->in[1]);
    int xbits = s->in_bits[0], ybits = s->out_bits;
    (void)simd;
    if (mlo_norm_center(s->m, s->node)) return mlo_failed(s->m);
    const int64_t ch = all / groups;
    u->module = "mlo_layernorm";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, pe, xbits, all);
    u->out = mlo_port_make("m_axis", 0, pe, ybits, all);
    mlo_unit_memory(u, "s_axis_c", pe * 64, (own ? all : ch) / pe);
    mlo_unit_memory(u, "s_axis_e", 64, 1);
    mlo_unit_param(u, "C", all);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "XBITS", xbits);
    mlo_unit_param(u, "YBITS", ybits);
    mlo_unit_param(u, "CENTER", center);
    if (groups > 1) mlo_unit_param(u, "GROUPS", groups);
    if (own) mlo_unit_param(u, "OWN", 1);
    u->turns = groups;
    u->interval = groups * (ch / pe > 43 ? ch / pe : 43); /* 43: the serial root and reciprocal */
    u->latency = 65 - 3 * !center + mlo_clog2(pe) + ch / pe;
    u->other = 4 * pe;
    u->flow = MLO_FLOW_NORM;
    mlo_norm_times(u, center, ch / pe);
    return 0;
}

static void mlo_layernorm_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    (void)s;
    if (k) {
        mlo_put_bits(bits, 0, 48, (uint64_t)mlo_get(in[3], 0));
        mlo_put_bits(bits, 48, 6, (uint64_t)mlo_get(in[3], 1));
        return;
    }
    for (int64_t p = 0; p < u->pe; p++) {
        mlo_put_bits(bits, 64 * p, 16, (uint64_t)mlo_get(in[1], word * u->pe + p));
        mlo_put_bits(bits, 64 * p + 32, 32, (uint64_t)mlo_get(in[2], word * u->pe + p));
    }
}

/* Sums of x and of squares; C^2 times the variance, its root and the reciprocal, bit by bit; lanes
 * with two products and two shifters. */
static void mlo_norm_area(
    const mlo_site *s, const mlo_unit *u, int64_t c, int axi, int64_t banks, mlo_area *a) {
    const int64_t pe = u->pe;
    const int64_t beats = c / pe;
    const int64_t x = s->in_bits[0];
    const int64_t y = s->out_bits;
    const int64_t lc = mlo_clog2(c);
    const int64_t center = mlo_int(s->node, "center", 1);
    const int64_t s1 = x + lc;
    const int64_t s2 = 2 * x + lc;
    const int64_t cr = mlo_clog2(c + 1) + 17;
    const int64_t ur = mlo_max(s1, 16) + 18;
    const int64_t n = 16 + (lc + 1) / 2;
    const int64_t t = mlo_max(n + 16, 33) + 1;
    /* CONTROL: root, reciprocal, six products of 16 bits, stages */
    enum {
        MULTIPLIER = 18,
        SHIFTER = 4,
        CONTROL_LUTS = 435,
        CENTER_LUTS = 120,
        CONTROL_FFS = 205,
        CENTER_FFS = 125
    };
    const int cr_parts = cr > MULTIPLIER ? 2 : 1, n_parts = n > MULTIPLIER ? 2 : 1;
    mlo_area lane = { 0, 0, 1 + cr_parts + n_parts, 0 };
    lane.lut = cr_parts * ur + n_parts * t + SHIFTER * (n + t) + t / 5 + 3 * y;
    lane.ff = 4 * x + x + (cr_parts > 1 ? cr + 1 + 2 * x : cr + x) + ur + n + 80
        + (n_parts > 1 ? n + 33 : n + 16) + 2 * t + y;
    mlo_area_times(a, pe, &lane);
    mlo_area_tree2(a, pe, x);
    mlo_area_tree2(a, pe, 2 * x);
    mlo_area_fifo(a, pe * x, mlo_norm_keeps(beats));
    mlo_area_param(a, 64 * pe, 48 * pe, u->memory[0].depth, axi, banks);
    mlo_area_param(a, 64, 54, 1, axi, banks);
    mlo_area_skid(a, pe * y + 3);
    a->lut += center * (s1 + 31 + ur + CENTER_LUTS) + s2 + cr + ur + CONTROL_LUTS;
    a->ff += center * (4 * s1 + 31 + ur + CENTER_FFS) + 2 * s2 + 48 + 3 * (center ? ur : 33)
        + 3 * cr + CONTROL_FFS;
    a->dsp += 1;
}
static void mlo_layernorm_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    mlo_norm_area(s, u, mlo_last_dim(&s->out) / mlo_norm_groups(s->node), axi, banks, a);
}

/* ---- the card -------------------------------------------------------------- */

static const mlo_kernel mlo_layernorm_kernel = {
    .op = { "mlo.LayerNorm", mlo_kernel_same_shape, mlo_layernorm_run, 4 },
    .kind = MLO_KERNEL_NORM,
    .series = "layernorm",
    .finn = "LayerNorm",
    .function = mlo_layernorm_function,
    .limits = mlo_layernorm_limits,
    .pe_axis = "channels",
    .legal = mlo_layernorm_legal,
    .unit = mlo_layernorm_unit,
    .intermediates = mlo_layernorm_intermediates,
    .area = mlo_layernorm_area,
    .pack = mlo_layernorm_pack,
};
