/* exactnorm: the integer norms of Deeploy's dialect over the channels of a token, every number as they say: iLayerNorm,
 * and with center = 0 iRMSNorm.
 *
 * in:  x [.., C] int8 or int16, w [C] int8, int16 or int32, b [C] int32 (with center = 0 [1], which is 0), p = [SH]
 *     int32.
 * out: y [.., C]. Verilog: mlo_exactnorm.
 *
 * Of each token (exact/deeploy.c):
 *     mean = trunc(sum x / C)                       with center = 0: 0
 *     r    = floor(sqrt(floor(sum (x - mean)^2 / C) + 1))
 *     y[c] = clip(floor((trunc((x[c] - mean) w[c] / r) + b[c]) / 2^SH))
 *
 * The hardware has one division for both: trunc(a / r) is floor((a + (r - 1 if a < 0)) / r), and floors of quotients
 * are one floor, so y = clip(floor(((x - mean) w + b r + (r - 1 if that product < 0) >> SH) / r)): a pipeline of long
 * division, a stage for each bit of y. Nothing is rounded that the formulas do not round: C is any number, too.
 *
 * error: none.
 * cost: max(C/PE, 2 X + 2) cycles a token, with a mean 3 X + 5, of x of X bits; no reciprocal, no table.
 */

static const char mlo_exactnorm_function[] =
    "ExactNorm <to, lo, hi, center> (x, w, b, p) => (y)\n"
    "x64 = Cast <to=7> (x)\n"
    "w64 = Cast <to=7> (w)\n"
    "b64 = Cast <to=7> (b)\n"
    "p64 = Cast <to=7> (p)\n"
    "i0 = Constant <value_int=0> ()\n"
    "one = Constant <value_int=1> ()\n"
    "two = Constant <value_int=2> ()\n"
    "sh = Gather (p64, i0)\n"
    "form = Shape (x64)\n"
    "final = Constant <value_ints=[-1]> ()\n"
    "channels = Gather (form, final)\n"
    "center_ = Constant <value_int=@center> ()\n"
    "total_ = ReduceSum <axes=[-1], keepdims=1> (x64)\n"
    "total = Mul (total_, center_)\n"
    "mean = Div (total, channels)\n" /* Div of integers rounds towards zero */
    "c = Sub (x64, mean)\n"
    "square = Mul (c, c)\n"
    "squares = ReduceSum <axes=[-1], keepdims=1> (square)\n"
    "moment = Div (squares, channels)\n"
    "s = Add (moment, one)\n"
    "sd = Cast <to=11> (s)\n" /* correctly rounded, so its floor is the integer root of anything below 2^52 */
    "rootd = Sqrt (sd)\n"
    "r = Cast <to=7> (rootd)\n"
    "cw = Mul (c, w64)\n"
    "t = Div (cw, r)\n"
    "acc = Add (t, b64)\n"
    "d = Pow (two, sh)\n"
    "rest = Mod (acc, d)\n"
    "whole = Sub (acc, rest)\n"
    "q = Div (whole, d)\n" MLO_FUNCTION_CLIP "y = Cast <to=@to> (qc)\n";

enum { MLO_EXACT_NORM_SHIFT = 31 };
static const mlo_limit mlo_exactnorm_limits[] = { { 1, 0, 1, INT32_MIN, INT32_MAX, "weight" },
    { 2, 0, 1, INT32_MIN, INT32_MAX, "offset" }, { 3, 0, 1, 0, MLO_EXACT_NORM_SHIFT, "shift" },
    { .what = NULL } };

/* Without a mean there is no offset: the hardware has none. */
static int mlo_exactnorm_offset(mlo *m, const mlo_node *n, const mlo_array *b) {
    for (int64_t i = 0; !mlo_int(n, "center", 1) && i < mlo_array_count(b); i++)
        if (mlo_get(b, i))
            return mlo_fail(m, MLO_E_DATA, n,
                "offset %lld is %lld; with center = 0 there is none, so it must be 0", (long long)i,
                (long long)mlo_get(b, i));
    return 0;
}

static int mlo_exactnorm_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 4) || mlo_kernel_activation(c, 0) || mlo_norm_center(c->m, c->node))
        return mlo_failed(c->m);
    const mlo_array *x = c->in[0], *w = c->in[1], *b = c->in[2];
    const int64_t n = x->rank ? x->dims[x->rank - 1] : 1, center = mlo_int(c->node, "center", 1);
    if (n < 1 || n > MLO_NORM_CHANNELS)
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, c->node,
            "%lld channels; the integer norm takes 1 to %d", (long long)n, (int)MLO_NORM_CHANNELS);
    if (mlo_kernel_count(c, 1, n) || mlo_kernel_counts(c, 2, center ? n : 1, n)
        || mlo_kernel_count(c, 3, 1) || mlo_kernel_limits(c, mlo_exactnorm_limits)
        || mlo_exactnorm_offset(c->m, c->node, b))
        return mlo_failed(c->m);
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    const int64_t p[3] = { mlo_two_to((int)mlo_get(c->in[3], 0)), mlo_kernel_low(c->node),
        mlo_kernel_high(c->node) };
    int64_t *e = (int64_t *)mlo_scratch(c->m, (size_t)(3 * n), sizeof *e);
    for (int64_t k = 0; e && k < n; k++) {
        e[n + k] = mlo_get(w, k);
        e[2 * n + k] = center ? mlo_get(b, k) : 0;
    }
    for (int64_t at = 0, all = mlo_array_count(x); e && y && at < all; at += n) {
        for (int64_t k = 0; k < n; k++) e[k] = mlo_get(x, at + k);
        mlo_inorm_row(e, e + n, e + 2 * n, n, center != 0, p);
        for (int64_t k = 0; k < n; k++) mlo_set_element(y, at + k, e[k]);
    }
    mlo_scratch_free(c->m, e);
    return mlo_failed(c->m);
}

/* Bits of a weight: those of its type. */
static int mlo_exactnorm_weight_bits(const mlo_site *s) { return mlo_bits_of(s->in[1].dtype); }

/* The module's widths: of its sum in front of the shift, of what is clipped. */
static int mlo_exactnorm_sum_bits(const mlo_site *s) {
    return s->in_bits[0] + (mlo_int(s->node, "center", 1) ? 33 : mlo_exactnorm_weight_bits(s));
}
static int mlo_exactnorm_moved_bits(const mlo_site *s) {
    return (int)mlo_max(mlo_exactnorm_sum_bits(s), s->in_bits[0] + s->out_bits) + 2;
}

/* Around a mean that is rounded towards zero numbers are less than 2^X from it, their squares no more on average than
 * those of half of them at each end, and 1: so r is 2^(X-1) at most, as it is around zero. */
static void mlo_exactnorm_intermediates(
    const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    const int64_t n = mlo_last_dim(&s->out);
    const int center = mlo_int(s->node, "center", 1) != 0, bits = s->in_bits[0];
    const int lc = mlo_clog2(n), sum_bits = mlo_exactnorm_sum_bits(s);
    const int64_t spread = mlo_two_to(bits) - 1, top = mlo_two_to(bits - 1);
    const mlo_interval x = mlo_signed_bits(bits), r = mlo_from_to(1, top);
    const mlo_interval square = mlo_from_to(0, mlo_product_of(x, x).hi);
    const mlo_interval c = center ? mlo_from_to(-spread, spread) : x;
    const mlo_interval squares = mlo_sum_of_many(n, mlo_from_to(0, mlo_product_of(c, c).hi));
    const mlo_interval offset = center ? mlo_signed_bits(32) : mlo_from_to(0, 0);
    const mlo_interval cw = mlo_product_of(c, mlo_signed_bits(mlo_exactnorm_weight_bits(s)));
    const mlo_interval more = mlo_sum_of(cw, mlo_from_to(0, top - 1));
    const mlo_interval sum = mlo_sum_of(more, mlo_product_of(offset, r));
    const mlo_intermediate raw = { "sum x^2", mlo_sum_of_many(n, square), 1, MLO_IN_INT64,
        MLO_IN_DOUBLE, 2 * bits + lc, 0, "u_moments.acc2" };
    const mlo_intermediate around = { "sum (x - mean)^2", squares, 0, MLO_IN_INT64, MLO_IN_DOUBLE,
        MLO_NOWHERE, 1, NULL };
    (void)u;
    mlo_note(l, center ? around : raw);
    if (center) {
        mlo_note_all(l, "sum x", mlo_sum_of_many(n, x), 1, bits + lc, 1, "u_moments.g_sum.acc1");
        mlo_note_hardware(l, raw.name, raw.range, 1, raw.verilog, 0, raw.reg);
        mlo_note_all(l, "x - mean", c, 0, bits + 1, 1, "g_lane[0].c2");
    }
    mlo_note_all(l, "s", mlo_from_to(1, top * top + 1), 0, 2 * bits - 1, 0, "v_s");
    mlo_note_all(l, "r", r, 0, bits, 0, "t_r");
    mlo_note_golden(l, "(x - mean) w", cw, 0, MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_hardware(l, "(x - mean) w + r - 1", more, 0, sum_bits, 1, "g_lane[0].product");
    if (center)
        mlo_note_hardware(
            l, "(x - mean) w + b r + r - 1", sum, 0, sum_bits, 1, "g_lane[0].g_center.sum");
    mlo_note_golden(
        l, "(x - mean) w / r + b", mlo_sum_of(cw, offset), 0, MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_golden(l, "whole steps",
        mlo_sum_of(mlo_sum_of(cw, offset), mlo_from_to(1 - mlo_two_to(MLO_EXACT_NORM_SHIFT), 0)), 0,
        MLO_NOWHERE, MLO_IN_INT64);
    mlo_note_hardware(l, "k + r 2^(Y-1)", mlo_sum_of(sum, mlo_from_to(0, top << (s->out_bits - 1))),
        0, mlo_exactnorm_moved_bits(s), 1, "g_lane[0].o");
    l->clip = s->out_bits;
}

/* Cycles of a token's divisions by C; of its root, which has so many bits. */
static int64_t mlo_exactnorm_finish(const mlo_site *s) {
    const int64_t bits = s->in_bits[0];
    return mlo_int(s->node, "center", 1) ? 3 * bits + 4 : 2 * bits + 1;
}

static int mlo_exactnorm_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const int64_t n = mlo_last_dim(&s->out), center = mlo_int(s->node, "center", 1);
    const int64_t beats = n / pe, finish = mlo_exactnorm_finish(s), bits = s->in_bits[0];
    const int64_t waits = finish + bits + mlo_clog2(pe) + 8; /* as mlo_exactnorm.v has it */
    (void)simd;
    if (mlo_norm_center(s->m, s->node)) return mlo_failed(s->m);
    u->module = "mlo_exactnorm";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, pe, s->in_bits[0], n);
    u->out = mlo_port_make("m_axis", 0, pe, s->out_bits, n);
    mlo_unit_memory(u, "s_axis_c", pe * (center ? 64 : 32), beats);
    mlo_unit_memory(u, "s_axis_e", 32, 1);
    mlo_unit_param(u, "C", n);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "XBITS", s->in_bits[0]);
    mlo_unit_param(u, "YBITS", s->out_bits);
    mlo_unit_param(u, "WBITS", mlo_exactnorm_weight_bits(s));
    mlo_unit_param(u, "CENTER", center);
    u->turns = 1;
    u->interval = mlo_max(beats, finish + 1);
    u->latency = finish + bits + s->out_bits + 15 + center + mlo_clog2(pe) + beats;
    u->other = pe
        * (1 + mlo_product_dsps(bits + center, mlo_exactnorm_weight_bits(s)) + 2 * center);
    u->flow = MLO_FLOW_NORM;
    u->norm.finish = finish;
    u->norm.root = bits + 1;
    u->norm.stages = 9 + center + s->out_bits;
    u->norm.keeps = beats < waits / 2 ? 3 * beats : beats + waits;
    return 0;
}

static int mlo_exactnorm_promises(const mlo_site *s, const mlo_array *const *in) {
    return mlo_exactnorm_offset(s->m, s->node, in[2]);
}

static void mlo_exactnorm_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    const int64_t lane = u->memory[0].width / u->pe;
    (void)s;
    if (k) {
        mlo_put_bits(bits, 0, 6, (uint64_t)mlo_get(in[3], 0));
        return;
    }
    for (int64_t p = 0; p < u->pe; p++) {
        mlo_put_bits(bits, lane * p, 32, (uint64_t)mlo_get(in[1], word * u->pe + p));
        if (lane > 32)
            mlo_put_bits(bits, lane * p + 32, 32, (uint64_t)mlo_get(in[2], word * u->pe + p));
    }
}

/* Sums, a division by C, a root, bit by bit; lanes with a product (of an offset another one), a shifter, and a
 * subtraction for each bit of the quotient. */
static void mlo_exactnorm_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    enum { CONTROL_LUTS = 60, CONTROL_FFS = 60, MULTIPLIER = 18 };
    const int64_t pe = u->pe, beats = mlo_last_dim(&s->out) / pe, x = s->in_bits[0];
    const int64_t y = s->out_bits, w = mlo_exactnorm_weight_bits(s);
    const int64_t center = mlo_int(s->node, "center", 1) != 0, v = mlo_exactnorm_sum_bits(s);
    const int64_t o = mlo_exactnorm_moved_bits(s), lc = mlo_clog2(mlo_last_dim(&s->out));
    const int64_t parts = w > MULTIPLIER ? 2 : 1, lane_bits = center ? 64 : 32;
    mlo_area lane = { 0, 0, 1 + parts + 2 * center, 0 };
    lane.lut = parts * v + x + 3 * v + 2 * o + y * (2 * x + 4) + center * (4 * v + x);
    lane.ff = 3 * (x + center) + w + 3 * v + o + x * (y + 1) + 3 * y
        + center * (2 * v + 32 + 2 * (x + 17));
    mlo_area_times(a, pe, &lane);
    if (center) mlo_area_tree2(a, pe, x);
    mlo_area_tree2(a, pe, 2 * x);
    mlo_area_fifo(a, pe * x, u->norm.keeps);
    mlo_area_param(a, lane_bits * pe, (w + 32 * center) * pe, beats, axi, banks);
    mlo_area_param(a, 32, 6, 1, axi, banks);
    mlo_area_skid(a, pe * y + 3);
    a->lut += CONTROL_LUTS + 8 * x + 4 * lc + center * (4 * x + 2 * lc) + 2 * u->norm.stages;
    a->ff += CONTROL_FFS + 16 * x + 4 * lc + center * (6 * x + 3 * lc) + u->norm.stages
        + x * (u->norm.stages - 1);
    a->dsp += center * (x + lc + 2 > MULTIPLIER ? 2 : 1);
}

/* ---- the card -------------------------------------------------------------- */

static const mlo_kernel mlo_exactnorm_kernel = {
    .op = { "mlo.ExactNorm", mlo_kernel_same_shape, mlo_exactnorm_run, 4 },
    .kind = MLO_KERNEL_EXACT_NORM,
    .series = "exactnorm",
    .function = mlo_exactnorm_function,
    .limits = mlo_exactnorm_limits,
    .pe_axis = "channels",
    .legal = mlo_lanes_legal,
    .unit = mlo_exactnorm_unit,
    .intermediates = mlo_exactnorm_intermediates,
    .area = mlo_exactnorm_area,
    .promises = mlo_exactnorm_promises,
    .pack = mlo_exactnorm_pack,
};
