/* requant: y[c] = requantize(x[c] + bias[c]; mult[c], shift[c]): makes 8-bit matrix operands of the
 * 16-bit residual stream. With a table the result is table[y - lo]: a function of a value that the
 * source model rounds before.
 *
 * in:  x [.., C], bias [C] int32 (fits x's width), mult [C] int32, shift [C] int32, perhaps table
 *     [hi - lo + 1], as MVUTable's.
 * out: y [.., C]. Verilog: mlo_requant.
 *
 * A channel with large values gets a scale of its own, and an offset that centres it; both go into
 * the weights and biases of the kernels that read y.
 *
 * error: at most half a step.
 * cost: PE channels a cycle.
 */

#define MLO_FUNCTION_REQUANT   \
    "x64 = Cast <to=7> (x)\n"  \
    "b = Cast <to=7> (bias)\n" \
    "acc = Add (x64, b)\n"     \
    "m = Cast <to=7> (mult)\n" \
    "s = Cast <to=7> (shift)\n" MLO_FUNCTION_REQUANTIZE

static const char mlo_requant_function[] =
    "Requant <to, lo, hi> (x, bias, mult, shift) => (y)\n" MLO_FUNCTION_REQUANT
    "y = Cast <to=@to> (qc)\n";

static const char mlo_requant_table_function[] =
    "RequantTable <to, lo, hi> (x, bias, mult, shift, table) => (y)\n" MLO_FUNCTION_REQUANT
        MLO_FUNCTION_TABLE;

static int64_t mlo_last_dim(const mlo_form *f) { return f->rank > 0 ? f->dims[f->rank - 1] : 1; }

static const mlo_limit mlo_requant_limits[] = { { 1, 0, 1, 1, 0, "offset" },
    { 2, 0, 1, 0, 32767, "multiplier" }, { 3, 0, 1, 1, 62, "shift" }, { .what = NULL } };

static int mlo_requant_run(mlo_call *c) {
    int table = mlo_is(c->node, "mlo.RequantTable");
    if (mlo_kernel_inputs(c, table ? 5 : 4) || mlo_kernel_activation(c, 0)) return mlo_failed(c->m);
    const mlo_array *x = c->in[0];
    int64_t n = mlo_array_count(x), channels = x->rank > 0 ? x->dims[x->rank - 1] : 1;
    for (size_t i = 1; i < 4; i++)
        if (mlo_kernel_count(c, i, channels)) return mlo_failed(c->m);
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    if (!y || mlo_kernel_limits(c, mlo_requant_limits)) return mlo_failed(c->m);
    int64_t lo = mlo_kernel_low(c->node), hi = mlo_kernel_high(c->node);
    if (table && mlo_kernel_count(c, 4, hi - lo + 1)) return mlo_failed(c->m);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i % channels;
        int64_t v = mlo_requantize(mlo_get(x, i) + mlo_get(c->in[1], k), mlo_get(c->in[2], k),
            (int)mlo_get(c->in[3], k), lo, hi);
        mlo_set_element(y, i, table ? mlo_get(c->in[4], v - lo) : v);
    }
    return 0;
}

/* The variant without multipliers: what metadata mlo.pow2 says. */
static int mlo_site_pow2(const mlo_site *s) { return mlo_meta_int(s->node, mlo_key_pow2, 0) != 0; }
static void mlo_unit_shift(const mlo_site *s, mlo_unit *u) {
    if (mlo_site_pow2(s)) mlo_unit_param(u, "SHIFT", 1);
}

/* Where metadata say mlo.pow2: are n multipliers powers of two; and do shifts that then are all
 * there is (kernel.c) fit their bits? */
static int mlo_pow2_multipliers(const mlo_site *s, const mlo_array *mult, int64_t n) {
    for (int64_t i = 0; mlo_site_pow2(s) && i < n; i++) {
        int64_t v = mlo_get(mult, i);
        if (v < 1 || v > 1 << 14 || v != (int64_t)1 << mlo_log2(v))
            return mlo_fail(s->m, MLO_E_DATA, s->node,
                "multiplier %lld is no power of two up to 16384, though metadata say mlo.pow2",
                (long long)v);
    }
    return 0;
}
static int mlo_pow2_places(const mlo_site *s, int64_t mult, int64_t shift) {
    if (mlo_site_pow2(s) && shift + 14 - mlo_log2(mult) > 62)
        return mlo_fail(s->m, MLO_E_DATA, s->node,
            "shift %lld of multiplier %lld; 48 places are the most where metadata say mlo.pow2",
            (long long)shift, (long long)mult);
    return 0;
}
static int mlo_pow2_channels(const mlo_site *s, const mlo_array *mult, const mlo_array *shift) {
    int64_t n = mlo_array_count(mult);
    if (mlo_pow2_multipliers(s, mult, n)) return mlo_failed(s->m);
    for (int64_t i = 0; mlo_site_pow2(s) && i < n; i++)
        MLO_TRY(mlo_pow2_places(s, mlo_get(mult, i), mlo_get(shift, i)));
    return 0;
}
static int mlo_requant_promises(const mlo_site *s, const mlo_array *const *in) {
    return mlo_pow2_channels(s, in[2], in[3]);
}

/* Kernels that work on PE lanes of a token: PE divides the channels. */
static int mlo_lanes_legal(const mlo_site *s, int64_t pe, int64_t simd) {
    return simd == 1 && mlo_last_dim(&s->out) % pe == 0;
}

static int mlo_requant_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    int64_t channels = mlo_last_dim(&s->out);
    int xbits = s->in_bits[0], ybits = s->out_bits, table = s->n_in > 4, index = mlo_index_bits(s);
    (void)simd;
    u->module = "mlo_requant";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, pe, xbits, channels);
    u->out = mlo_port_make("m_axis", 0, pe, ybits, channels);
    mlo_unit_memory(u, "s_axis_c", pe * 64, channels / pe);
    if (table)
        mlo_unit_memory(u, "s_axis_t", ybits, (int64_t)1 << index);
    else
        u->idle = "s_axis_t";
    mlo_unit_param(u, "C", channels);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "XBITS", xbits);
    mlo_unit_param(u, "YBITS", ybits);
    mlo_unit_param(u, "TABLE", table);
    if (table) mlo_unit_param(u, "TBITS", index);
    mlo_unit_shift(s, u);
    u->interval = channels / pe;
    u->latency = 9 + table;
    u->other = mlo_site_pow2(s) ? 0 : pe;
    return 0;
}
/* A multiplier of 16 bits and the shift that goes with it, as mlo_requantize wants them. */
static void mlo_pack_ratio(
    const mlo_site *s, int64_t mult, int64_t shift, int64_t at, unsigned char *bits) {
    if (mlo_site_pow2(s)) {
        shift += 14 - mlo_log2(mult);
        mult = 1 << 14;
    }
    mlo_put_bits(bits, at, 16, (uint64_t)mult);
    mlo_put_bits(bits, at + 16, 6, (uint64_t)shift);
}
/* Word `word` of the channel words of PE lanes: bias, multiplier, shift, from inputs `at` and the
 * next two. */
static void mlo_pack_channels(const mlo_site *s, int64_t lanes, int64_t word,
    const mlo_array *const *in, size_t at, unsigned char *bits) {
    for (int64_t p = 0; p < lanes; p++) {
        mlo_put_bits(bits, 64 * p, 32, (uint64_t)mlo_get(in[at], word * lanes + p));
        mlo_pack_ratio(s, mlo_get(in[at + 1], word * lanes + p),
            mlo_get(in[at + 2], word * lanes + p), 64 * p + 32, bits);
    }
}

static void mlo_requant_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    int bits = s->in_bits[0] + 1;
    mlo_interval x = mlo_signed_bits(s->in_bits[0]), acc = mlo_sum_of(x, x);
    (void)u;
    mlo_note_all(l, "acc", acc, 1, bits, 1, "lane[0].acc");
    mlo_note_requantize(l, mlo_product_of(acc, mlo_multipliers), bits + 16,
        "lane[0].u_requantize.prod2", s->n_in > 4 ? mlo_index_bits(s) : s->out_bits);
}

static void mlo_requant_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    if (k == 0)
        mlo_pack_channels(s, u->pe, word, in, 1, bits);
    else
        mlo_put_bits(bits, 0, u->out.bits, (uint64_t)mlo_get(in[4], word));
}

/* Lanes: operands, the sum, the requantizer; before them a register for a beat that waits, behind
 * them the table and a skid. */
static void mlo_requant_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    const int64_t pe = u->pe, x = s->in_bits[0], beats = mlo_last_dim(&s->out) / pe;
    const int table = s->n_in > 4;
    const int shift = mlo_site_pow2(s);
    const int q = table ? mlo_index_bits(s) : s->out_bits;
    mlo_area lane = { x + 1, 3 * x + 6 + (shift ? 0 : 16), 0, 0 };
    enum { CONTROL_LUTS = 30, CONTROL_FFS = 6 };
    mlo_area_requantize(&lane, x + 1, 16, q, 0, shift);
    mlo_area_times(a, pe, &lane);
    mlo_area_param(a, 64 * pe, pe * (x + 6 + (shift ? 0 : 16)), beats, axi, banks);
    if (table) mlo_area_lookup(a, pe, q, s->out_bits, axi, banks);
    mlo_area_skid(a, pe * s->out_bits + 3);
    a->lut += CONTROL_LUTS;
    a->ff += pe * x + CONTROL_FFS + 2 * mlo_clog2(beats);
}

/* ---- the cards -------------------------------------------------------------- */

static const mlo_kernel mlo_requant_table_kernel = {
    .op = { "mlo.RequantTable", mlo_kernel_same_shape, mlo_requant_run, 5 },
    .kind = MLO_KERNEL_RESCALE,
    .series = "requant",
    .table = 1,
    .shifts = 1,
    .function = mlo_requant_table_function,
    .limits = mlo_requant_limits,
    .pe_axis = "channels",
    .legal = mlo_lanes_legal,
    .unit = mlo_requant_unit,
    .intermediates = mlo_requant_intermediates,
    .area = mlo_requant_area,
    .promises = mlo_requant_promises,
    .pack = mlo_requant_pack,
};

static const mlo_kernel mlo_requant_kernel = {
    .op = { "mlo.Requant", mlo_kernel_same_shape, mlo_requant_run, 4 },
    .kind = MLO_KERNEL_RESCALE,
    .series = "requant",
    .with_table = &mlo_requant_table_kernel,
    .shifts = 1,
    .function = mlo_requant_function,
    .limits = mlo_requant_limits,
    .pe_axis = "channels",
    .legal = mlo_lanes_legal,
    .unit = mlo_requant_unit,
    .intermediates = mlo_requant_intermediates,
    .area = mlo_requant_area,
    .promises = mlo_requant_promises,
    .pack = mlo_requant_pack,
};
