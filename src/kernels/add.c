/* add: the residual connection: y = clip((a*MA + b*MB + 2^(S-1)) >> S), each operand with a scale.
 *
 * in:  a, b [.., C] of one shape, p = [MA, MB, S] int32.
 * out: y [.., C]. Verilog: mlo_add.
 *
 * error: half a step.
 * cost: PE channels a cycle.
 */

static const char mlo_add_function[] = "Add <to, lo, hi> (a, b, p) => (y)\n"
                                       "a64 = Cast <to=7> (a)\n"
                                       "b64 = Cast <to=7> (b)\n"
                                       "p64 = Cast <to=7> (p)\n"
                                       "i0 = Constant <value_int=0> ()\n"
                                       "i1 = Constant <value_int=1> ()\n"
                                       "i2 = Constant <value_int=2> ()\n"
                                       "ma = Gather (p64, i0)\n"
                                       "mb = Gather (p64, i1)\n"
                                       "s = Gather (p64, i2)\n"
                                       "pa = Mul (a64, ma)\n"
                                       "pb = Mul (b64, mb)\n"
                                       "acc = Add (pa, pb)\n"
                                       "m = Constant <value_int=1> ()\n" MLO_FUNCTION_REQUANTIZE
                                       "y = Cast <to=@to> (qc)\n";

static const mlo_limit mlo_add_limits[] = { { 2, 0, 3, 0, 32767, "multiplier" },
    { 2, 1, 3, 0, 32767, "multiplier" }, { 2, 2, 3, 1, 62, "shift" }, { .what = NULL } };

static int mlo_add_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 3) || mlo_kernel_pair(c) || mlo_kernel_count(c, 2, 3))
        return mlo_failed(c->m);
    const mlo_array *a = c->in[0], *b = c->in[1], *p = c->in[2];
    int64_t n = mlo_array_count(a);
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), a->rank, a->dims);
    if (!y || mlo_kernel_limits(c, mlo_add_limits)) return mlo_failed(c->m);
    int64_t lo = mlo_kernel_low(c->node), hi = mlo_kernel_high(c->node);
    const int32_t by[3] = { (int32_t)mlo_get(p, 0), (int32_t)mlo_get(p, 1),
        (int32_t)mlo_get(p, 2) };
    for (int64_t i = 0; i < n; i++)
        mlo_set_element(y, i,
            mlo_add_one(
                (int32_t)mlo_get(a, i), (int32_t)mlo_get(b, i), by, (int32_t)lo, (int32_t)hi));
    return 0;
}

static int mlo_add_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    int64_t channels = mlo_last_dim(&s->out);
    (void)simd;
    u->module = "mlo_add";
    u->in[u->n_in++] = mlo_port_make("s_axis_a", 0, pe, s->in_bits[0], channels);
    u->in[u->n_in++] = mlo_port_make("s_axis_b", 1, pe, s->in_bits[1], channels);
    u->out = mlo_port_make("m_axis", 0, pe, s->out_bits, channels);
    mlo_unit_memory(u, "s_axis_c", 64, 1);
    mlo_unit_param(u, "C", channels);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "ABITS", u->in[0].bits);
    mlo_unit_param(u, "BBITS", u->in[1].bits);
    mlo_unit_param(u, "YBITS", u->out.bits);
    mlo_unit_shift(s, u);
    u->interval = channels / pe;
    u->latency = 7;
    u->other = mlo_site_pow2(s) ? 0 : 2 * pe;
    return 0;
}

static void mlo_add_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    int abits = s->in_bits[0] + 16, bbits = s->in_bits[1] + 16;
    mlo_interval a = mlo_product_of(mlo_signed_bits(s->in_bits[0]), mlo_multipliers);
    mlo_interval b = mlo_product_of(mlo_signed_bits(s->in_bits[1]), mlo_multipliers);
    (void)u;
    mlo_note_all(l, "a * MA", a, 1, abits, 1, "g_lane[0].pa2");
    mlo_note_all(l, "b * MB", b, 1, bbits, 1, "g_lane[0].pb2");
    mlo_note_requantize(
        l, mlo_sum_of(a, b), (abits > bbits ? abits : bbits) + 1, "g_lane[0].t3", s->out_bits);
}

static int mlo_add_promises(const mlo_site *s, const mlo_array *const *in) {
    return mlo_pow2_multipliers(s, in[2], 2);
}

static void mlo_add_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    (void)u;
    (void)k;
    (void)word;
    for (int i = 0; i < 2; i++) {
        int64_t mult = mlo_get(in[2], i);
        mlo_put_bits(bits, 16 * i, 16, (uint64_t)(mlo_site_pow2(s) ? mlo_log2(mult) : mult));
    }
    mlo_put_bits(bits, 32, 6, (uint64_t)mlo_get(in[2], 2));
}

/* Two products, their sum, a shifter by any number of places, rounding; skids before and behind. */
static void mlo_add_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    const int64_t pe = u->pe;
    const int64_t abits = s->in_bits[0];
    const int64_t bbits = s->in_bits[1];
    const int64_t y = s->out_bits;
    const int64_t pa = abits + 16;
    const int64_t pb = bbits + 16;
    const int64_t sum = mlo_max(pa, pb) + 1;
    const int shift = mlo_site_pow2(s);
    enum { CONTROL_LUTS = 30, CONTROL_FFS = 25 };
    mlo_area lane = { sum + 7 * sum / 2 + sum / 5 + 2 * y, abits + bbits + pa + pb + 2 * sum + y, 0,
        0 };
    if (shift)
        lane.lut += 2 * (pa + pb);
    else
        lane.dsp = mlo_product_dsps(abits, 16) + mlo_product_dsps(bbits, 16);
    mlo_area_times(a, pe, &lane);
    mlo_area_param(a, 64, shift ? 14 : 38, 1, axi, banks);
    mlo_area_skid(a, pe * abits + 3);
    mlo_area_skid(a, pe * bbits);
    mlo_area_skid(a, pe * y + 3);
    a->lut += CONTROL_LUTS;
    a->ff += CONTROL_FFS + mlo_clog2(mlo_last_dim(&s->out) / pe);
}

/* ---- the card -------------------------------------------------------------- */

static const mlo_kernel mlo_add_kernel = {
    .op = { "mlo.Add", mlo_kernel_same_shape, mlo_add_run, 3 },
    .kind = MLO_KERNEL_SUM,
    .series = "add",
    .finn = "ElementwiseAdd",
    .shifts = 1,
    .function = mlo_add_function,
    .limits = mlo_add_limits,
    .pe_axis = "channels",
    .legal = mlo_lanes_legal,
    .unit = mlo_add_unit,
    .intermediates = mlo_add_intermediates,
    .area = mlo_add_area,
    .promises = mlo_add_promises,
    .pack = mlo_add_pack,
};
