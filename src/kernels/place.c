/* place: adds a row of a table, that of the token's position in its frame, and requantizes: what a
 * model adds to the tokens inside of a layer (position embeddings in every layer: DETR, YOLOS).
 *
 * in:  x [B, T, C] int8 or int16, table [.., C] int16 (a row for each position, in steps of x), mult
 *     [C] int32, shift [C] int32.
 * out: y [B, T, C]. Verilog: mlo_place.
 *
 *     y[t][c] = requantize(x[t][c] + table[t][c]; mult[c], shift[c])
 *
 * The table is a parameter, so it may differ per iteration. An offset that centres a channel goes into
 * its column. A frame shorter than the table uses its first rows; the hardware has room for the rows
 * of the longest frame.
 *
 * error: half a step of y, and half a step of x.
 * cost: PE channels a cycle; T * C * 16 bits of parameters an iteration.
 */

static const char mlo_place_function[] = "Place <to, lo, hi> (x, table, mult, shift) => (y)\n"
                                         "zero1 = Constant <value_ints=[0]> ()\n"
                                         "one1 = Constant <value_ints=[1]> ()\n"
                                         "form = Shape (x)\n"
                                         "tokens = Gather (form, one1)\n"
                                         "t64 = Cast <to=7> (table)\n"
                                         "rows = Slice (t64, zero1, tokens, zero1)\n"
                                         "x64 = Cast <to=7> (x)\n"
                                         "acc = Add (x64, rows)\n"
                                         "m = Cast <to=7> (mult)\n"
                                         "s = Cast <to=7> (shift)\n" MLO_FUNCTION_REQUANTIZE
                                         "y = Cast <to=@to> (qc)\n";

static const mlo_limit mlo_place_limits[] = { { 2, 0, 1, 0, 32767, "multiplier" },
    { 3, 0, 1, 1, 62, "shift" }, { .what = NULL } };

/* Do the shapes of x and of the table fit? */
static int mlo_place_forms(mlo *m, const mlo_node *n, const mlo_form *x, const mlo_form *table) {
    if (x->rank != 3 || table->rank != 2)
        return mlo_fail(m, MLO_E_SHAPE, n,
            "takes x of 3 dimensions, [batch, tokens, channels], and a table of 2, [positions, "
            "channels]; they have %d and %d",
            x->rank, table->rank);
    if (mlo_last_dim(x) != mlo_last_dim(table))
        return mlo_fail(m, MLO_E_SHAPE, n, "tokens of %lld channels, and a table of %lld",
            (long long)mlo_last_dim(x), (long long)mlo_last_dim(table));
    if (x->dims[1] > table->dims[0])
        return mlo_fail(m, MLO_E_SHAPE, n, "a frame of %lld tokens, and a table of %lld positions",
            (long long)x->dims[1], (long long)table->dims[0]);
    return 0;
}

static int mlo_place_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 4) || mlo_kernel_activation(c, 0) || mlo_kernel_activation(c, 1))
        return mlo_failed(c->m);
    const mlo_array *x = c->in[0], *table = c->in[1];
    const mlo_form form = mlo_array_form(x), rows = mlo_array_form(table);
    MLO_TRY(mlo_place_forms(c->m, c->node, &form, &rows));
    const int64_t channels = mlo_last_dim(&form), frame = form.dims[1] * channels;
    if (mlo_kernel_count(c, 2, channels) || mlo_kernel_count(c, 3, channels))
        return mlo_failed(c->m);
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    if (!y || mlo_kernel_limits(c, mlo_place_limits)) return mlo_failed(c->m);
    const int64_t n = mlo_array_count(x);
    const int64_t lo = mlo_kernel_low(c->node), hi = mlo_kernel_high(c->node);
    for (int64_t i = 0; i < n; i++)
        mlo_set_element(y, i,
            mlo_requantize(mlo_get(x, i) + mlo_get(table, i % frame),
                mlo_get(c->in[2], i % channels), (int)mlo_get(c->in[3], i % channels), lo, hi));
    return 0;
}

static int mlo_place_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const int64_t channels = mlo_last_dim(&s->out);
    (void)simd;
    MLO_TRY(mlo_place_forms(s->m, s->node, &s->in[0], &s->in[1]));
    if (s->chunk > s->in[1].dims[0])
        return mlo_fail(s->m, MLO_E_SHAPE, s->node,
            "frames of up to %lld tokens, and a table of %lld positions", (long long)s->chunk,
            (long long)s->in[1].dims[0]);
    u->module = "mlo_place";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, pe, s->in_bits[0], channels);
    u->out = mlo_port_make("m_axis", 0, pe, s->out_bits, channels);
    mlo_unit_memory(u, "s_axis_c", pe * 32, channels / pe);
    mlo_unit_memory(u, "s_axis_t", pe * 16, s->chunk * channels / pe);
    mlo_unit_param(u, "C", channels);
    mlo_unit_param(u, "T", s->chunk);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "XBITS", u->in[0].bits);
    mlo_unit_param(u, "YBITS", u->out.bits);
    mlo_unit_shift(s, u);
    u->interval = channels / pe;
    u->latency = 9;
    u->told = MLO_JOB_START;
    u->other = mlo_site_pow2(s) ? 0 : pe;
    u->at_once = 1;
    return 0;
}

static void mlo_place_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    const mlo_interval acc = mlo_sum_of(mlo_signed_bits(s->in_bits[0]), mlo_signed_bits(16));
    (void)u;
    mlo_note_all(l, "acc", acc, 1, 17, 1, "lane[0].acc");
    mlo_note_requantize(l, mlo_product_of(acc, mlo_multipliers), 17 + 16,
        "lane[0].u_requantize.prod2", s->out_bits);
}

static int mlo_place_promises(const mlo_site *s, const mlo_array *const *in) {
    return mlo_pow2_channels(s, in[2], in[3]);
}

/* Multiplier and shift of PE channels a word; the rows of the table as they are, PE numbers a word. */
static void mlo_place_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    for (int64_t p = 0; p < u->pe; p++) {
        const int64_t at = word * u->pe + p;
        if (k)
            mlo_put_bits(bits, 16 * p, 16, (uint64_t)mlo_get(in[1], at));
        else
            mlo_pack_ratio(s, mlo_get(in[2], at), mlo_get(in[3], at), 32 * p, bits);
    }
}

/* Lanes: operands, the sum, the requantizer; before them a register for a beat that waits, behind
 * them a skid. */
static void mlo_place_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    const int64_t pe = u->pe, x = s->in_bits[0], beats = mlo_last_dim(&s->out) / pe;
    const int64_t words = s->chunk * beats;
    const int shift = mlo_site_pow2(s);
    enum { CONTROL_LUTS = 30, CONTROL_FFS = 12, SUM = 17 };
    mlo_area lane = { SUM, 2 * x + 16 + 6 + (shift ? 0 : 16), 0, 0 };
    mlo_area_requantize(&lane, SUM, 16, s->out_bits, 0, shift);
    mlo_area_times(a, pe, &lane);
    mlo_area_param(a, 32 * pe, pe * (shift ? 6 : 22), beats, axi, banks);
    mlo_area_param(a, 16 * pe, 16 * pe, words, axi, banks);
    mlo_area_skid(a, pe * s->out_bits + 3);
    a->lut += CONTROL_LUTS + 2 * mlo_clog2(words);
    a->ff += pe * x + CONTROL_FFS + 2 * mlo_clog2(beats) + 2 * mlo_clog2(words);
}

/* ---- the card -------------------------------------------------------------- */

static const mlo_kernel mlo_place_kernel = {
    .op = { "mlo.Place", mlo_kernel_same_shape, mlo_place_run, 4 },
    .kind = MLO_KERNEL_PLACE,
    .series = "place",
    .shifts = 1,
    .function = mlo_place_function,
    .limits = mlo_place_limits,
    .pe_axis = "channels",
    .legal = mlo_lanes_legal,
    .unit = mlo_place_unit,
    .intermediates = mlo_place_intermediates,
    .area = mlo_place_area,
    .promises = mlo_place_promises,
    .pack = mlo_place_pack,
};
