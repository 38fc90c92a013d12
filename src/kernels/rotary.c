/* rotary: rotary position embedding: every pair of a head's channels turns by an angle that grows
 * with the token's position in its frame.
 *
 * in:  x [B, T, C] int8 or int16, table [.., D] int16 (a row for each position, D the channels of a
 *     head, even), p = [M, S] int32. Attribute heads: C = heads * D.
 * out: y [B, T, C]. Verilog: mlo_rotary.
 *
 *     Of token t, in each head, of each pair a = x[2k], b = x[2k+1]:
 *     y[2k]   = requantize(a cos - b sin; M, S)       cos = table[t][2k], sin = table[t][2k+1],
 *     y[2k+1] = requantize(a sin + b cos; M, S)       in steps of 2^-14
 *
 * Pairs are adjacent channels; a model that turns channel k with channel k + D/2 has the columns of
 * the matrices in front permuted. A pair that does not turn has cos = 2^14, sin = 0. What the
 * numbers of the table are is its maker's: factors up to 2 (YaRN's) fit, other angles than a
 * circle's do no harm. The table is a parameter, so it may differ per iteration.
 *
 * A frame shorter than the table uses its first rows. The hardware has room for the rows of the
 * longest frame.
 *
 * error: half a step of y, and of each of cos and sin 2^-15.
 * cost: PE channels a cycle; T * D * 16 bits of parameters an iteration, or once: a step needs one row of them, and
 *     where all layers have the same they stay on chip.
 */

static const char mlo_rotary_function[] = "Rotary <to, lo, hi, heads> (x, table, p) => (y)\n"
                                          "heads_ = Constant <value_int=@heads> ()\n"
                                          "one1 = Constant <value_ints=[1]> ()\n"
                                          "heads1 = Reshape (heads_, one1)\n"
                                          "zero1 = Constant <value_ints=[0]> ()\n"
                                          "zeros = Constant <value_ints=[0, 0]> ()\n"
                                          "pairs2 = Constant <value_ints=[-1, 2]> ()\n"
                                          "i0 = Constant <value_int=0> ()\n"
                                          "i1 = Constant <value_int=1> ()\n"
                                          "form = Shape (x)\n"
                                          "tokens = Gather (form, one1)\n"
                                          "t64 = Cast <to=7> (table)\n"
                                          "rows = Slice (t64, zero1, tokens, zero1)\n"
                                          /* [T, 1, D/2, 2], for each head the same */
                                          "turn4 = Concat <axis=0> (zero1, one1, pairs2)\n"
                                          "turns = Reshape (rows, turn4)\n"
                                          "cos_ = Gather <axis=3> (turns, i0)\n"
                                          "sin_ = Gather <axis=3> (turns, i1)\n"
                                          "x64 = Cast <to=7> (x)\n"
                                          "form5 = Concat <axis=0> (zeros, heads1, pairs2)\n"
                                          "x5 = Reshape (x64, form5)\n"
                                          "a = Gather <axis=4> (x5, i0)\n"
                                          "b = Gather <axis=4> (x5, i1)\n"
                                          "ac = Mul (a, cos_)\n"
                                          "bs = Mul (b, sin_)\n"
                                          "as_ = Mul (a, sin_)\n"
                                          "bc = Mul (b, cos_)\n"
                                          "even = Sub (ac, bs)\n"
                                          "odd = Add (as_, bc)\n"
                                          "even5 = Unsqueeze <axes=[4]> (even)\n"
                                          "odd5 = Unsqueeze <axes=[4]> (odd)\n"
                                          "both = Concat <axis=4> (even5, odd5)\n"
                                          "acc = Reshape (both, form)\n"
                                          "p64 = Cast <to=7> (p)\n"
                                          "m = Gather (p64, i0)\n"
                                          "s = Gather (p64, i1)\n" MLO_FUNCTION_REQUANTIZE
                                          "y = Cast <to=@to> (qc)\n";

static const mlo_limit mlo_rotary_limits[] = { { 2, 0, 2, 0, 32767, "multiplier" },
    { 2, 1, 2, 1, 62, "shift" }, { .what = NULL } };

/* Channels of a head; 0: recorded what is wrong with the shapes. */
static int64_t mlo_rotary_head(
    mlo *m, const mlo_node *n, const mlo_form *x, const mlo_form *table) {
    const int64_t heads = mlo_int(n, "heads", 1), channels = mlo_last_dim(x);
    const int64_t d = mlo_last_dim(table);
    if (x->rank != 3 || table->rank != 2)
        mlo_fail(m, MLO_E_SHAPE, n,
            "takes x of 3 dimensions, [batch, tokens, channels], and a table of 2, [positions, "
            "channels of a head]; they have %d and %d",
            x->rank, table->rank);
    else if (heads < 1 || d < 2 || d % 2 || heads > channels || heads * d != channels)
        mlo_fail(m, MLO_E_SHAPE, n,
            "%lld heads of %lld channels make no token of %lld; heads must be of an even number of "
            "channels, those of the table's rows",
            (long long)heads, (long long)d, (long long)channels);
    else if (x->dims[1] > table->dims[0])
        mlo_fail(m, MLO_E_SHAPE, n, "a frame of %lld tokens, and a table of %lld positions",
            (long long)x->dims[1], (long long)table->dims[0]);
    else
        return d;
    return 0;
}

static int mlo_rotary_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 3) || mlo_kernel_activation(c, 0) || mlo_kernel_activation(c, 1)
        || mlo_kernel_count(c, 2, 2))
        return mlo_failed(c->m);
    const mlo_array *x = c->in[0], *table = c->in[1], *p = c->in[2];
    const mlo_form form = mlo_array_form(x), turns = mlo_array_form(table);
    const int64_t d = mlo_rotary_head(c->m, c->node, &form, &turns);
    mlo_array *y = d ? mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims) : NULL;
    if (!y || mlo_kernel_limits(c, mlo_rotary_limits)) return mlo_failed(c->m);
    const int64_t n = mlo_array_count(x);
    const int64_t lo = mlo_kernel_low(c->node), hi = mlo_kernel_high(c->node);
    const int32_t by[2] = { (int32_t)mlo_get(p, 0), (int32_t)mlo_get(p, 1) };
    for (int64_t i = 0; i < n; i += 2) {
        const int64_t at = i / form.dims[2] % form.dims[1] * d + i % d;
        const int64_t pair[2] = { mlo_get(x, i), mlo_get(x, i + 1) };
        const int64_t turn[2] = { mlo_get(table, at), mlo_get(table, at + 1) };
        mlo_set_element(y, i, mlo_rotary_even(pair, turn, by, lo, hi));
        mlo_set_element(y, i + 1, mlo_rotary_odd(pair, turn, by, lo, hi));
    }
    return 0;
}

/* A beat has whole pairs of one head. */
static int mlo_rotary_legal(const mlo_site *s, int64_t pe, int64_t simd) {
    const int64_t d = mlo_rotary_head(s->m, s->node, &s->in[0], &s->in[1]);
    return d && simd == 1 && pe % 2 == 0 && d % pe == 0;
}

static int mlo_rotary_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const int64_t channels = mlo_last_dim(&s->out), d = mlo_last_dim(&s->in[1]);
    (void)simd;
    if (s->chunk > s->in[1].dims[0])
        return mlo_fail(s->m, MLO_E_SHAPE, s->node,
            "frames of up to %lld tokens, and a table of %lld positions", (long long)s->chunk,
            (long long)s->in[1].dims[0]);
    u->module = "mlo_rotary";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, pe, s->in_bits[0], channels);
    u->out = mlo_port_make("m_axis", 0, pe, s->out_bits, channels);
    mlo_unit_memory(u, "s_axis_c", 64, 1);
    mlo_unit_memory(u, "s_axis_t", pe * 16, s->chunk * d / pe);
    u->memory[1].kept = s->same;
    mlo_unit_param(u, "C", channels);
    mlo_unit_param(u, "D", d);
    mlo_unit_param(u, "T", s->chunk);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "XBITS", u->in[0].bits);
    mlo_unit_param(u, "YBITS", u->out.bits);
    if (s->same) mlo_unit_param(u, "KEPT", 1);
    mlo_unit_shift(s, u);
    u->interval = channels / pe;
    u->latency = 11;
    u->told = MLO_JOB_START;
    u->other = (mlo_site_pow2(s) ? 2 : 3) * pe;
    u->at_once = 1;
    return 0;
}

static void mlo_rotary_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    const int bits = s->in_bits[0] + 16;
    const mlo_interval product = mlo_product_of(
        mlo_signed_bits(s->in_bits[0]), mlo_signed_bits(16));
    const mlo_interval minus = mlo_from_to(-product.hi, -product.lo);
    const mlo_interval even = mlo_sum_of(product, minus), odd = mlo_sum_of(product, product);
    (void)u;
    mlo_note_all(l, "a cos", product, 1, bits, 1, "pair[0].ac2");
    mlo_note_all(l, "a cos - b sin", even, 1, bits + 1, 1, "pair[0].even");
    mlo_note_all(l, "a sin + b cos", odd, 1, bits + 1, 1, "pair[0].odd");
    /* even reaches further down, odd further up */
    mlo_note_requantize(l, mlo_product_of(mlo_from_to(even.lo, odd.hi), mlo_multipliers), bits + 17,
        "pair[0].u_odd.prod2", s->out_bits);
}

static int mlo_rotary_promises(const mlo_site *s, const mlo_array *const *in) {
    if (mlo_pow2_multipliers(s, in[2], 1)) return mlo_failed(s->m);
    return mlo_pow2_places(s, mlo_get(in[2], 0), mlo_get(in[2], 1));
}

/* The rows of the table as they are, PE numbers a word. */
static void mlo_rotary_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    int64_t mult = mlo_get(in[2], 0), shift = mlo_get(in[2], 1);
    if (k) {
        for (int64_t p = 0; p < u->pe; p++)
            mlo_put_bits(bits, 16 * p, 16, (uint64_t)mlo_get(in[1], word * u->pe + p));
        return;
    }
    if (mlo_site_pow2(s)) {
        shift += 14 - mlo_log2(mult);
        mult = 1 << 14;
    }
    mlo_put_bits(bits, 0, 16, (uint64_t)mult);
    mlo_put_bits(bits, 32, 6, (uint64_t)shift);
}

/* Of each pair four products, two sums, two requantizers; before them a register for a beat that
 * waits, behind them a skid. */
static void mlo_rotary_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    const int64_t pe = u->pe, x = s->in_bits[0], y = s->out_bits;
    const int64_t channels = mlo_last_dim(&s->out), d = mlo_last_dim(&s->in[1]);
    const int64_t words = s->chunk * d / pe;
    const int shift = mlo_site_pow2(s);
    enum { CONTROL_FFS = 17 };
    mlo_area pair = { 2 * (x + 17), 2 * x + 32 + 4 * (x + 16), 4 * mlo_product_dsps(x, 16), 0 };
    for (int i = 0; i < 2; i++) mlo_area_requantize(&pair, x + 17, 16, y, 1, shift);
    mlo_area_times(a, pe / 2, &pair);
    mlo_area_param(a, 64, shift ? 6 : 22, 1, axi, banks);
    mlo_area_param(a, 16 * pe, 16 * pe, words, axi, s->same ? 1 : banks);
    mlo_area_skid(a, pe * y + 3);
    a->lut += 3 * mlo_clog2(words);
    a->ff += 2 * pe * x + CONTROL_FFS + 2 * (shift ? 6 : 22) + 2 * mlo_clog2(words)
        + mlo_clog2(d / pe) + mlo_clog2(channels / d);
}

/* ---- the card -------------------------------------------------------------- */

static const mlo_kernel mlo_rotary_kernel = {
    .op = { "mlo.Rotary", mlo_kernel_same_shape, mlo_rotary_run, 3 },
    .kind = MLO_KERNEL_ROTATION,
    .series = "rotary",
    .shifts = 1,
    .function = mlo_rotary_function,
    .limits = mlo_rotary_limits,
    .pe_axis = "channels of a head, in pairs",
    .legal = mlo_rotary_legal,
    .unit = mlo_rotary_unit,
    .keeps = 1,
    .intermediates = mlo_rotary_intermediates,
    .area = mlo_rotary_area,
    .promises = mlo_rotary_promises,
    .pack = mlo_rotary_pack,
};
