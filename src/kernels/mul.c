/* mul: the product of two streams, element by element: y = clip((a*b*M + 2^(S-1)) >> S). With a
 * table in front of one of them it is a gate: silu(x Wg) * (x Wu).
 *
 * in:  a, b [.., C] of one shape, p = [M, S] int32.
 * out: y [.., C]. Verilog: mlo_mul.
 *
 * The operands stand for multiples of their scales, without a zero: the product of two offsets
 * would be two more streams.
 *
 * error: half a step.
 * cost: PE channels a cycle; a product of the operands and one of the requantizer, each.
 */

static const char mlo_mul_function[] = "Mul <to, lo, hi> (a, b, p) => (y)\n"
                                       "a64 = Cast <to=7> (a)\n"
                                       "b64 = Cast <to=7> (b)\n"
                                       "p64 = Cast <to=7> (p)\n"
                                       "i0 = Constant <value_int=0> ()\n"
                                       "i1 = Constant <value_int=1> ()\n"
                                       "acc = Mul (a64, b64)\n"
                                       "m = Gather (p64, i0)\n"
                                       "s = Gather (p64, i1)\n" MLO_FUNCTION_REQUANTIZE
                                       "y = Cast <to=@to> (qc)\n";

static const mlo_limit mlo_mul_limits[] = { { 2, 0, 2, 0, 32767, "multiplier" },
    { 2, 1, 2, 1, 62, "shift" }, { .what = NULL } };

static int mlo_mul_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 3) || mlo_kernel_pair(c) || mlo_kernel_count(c, 2, 2))
        return mlo_failed(c->m);
    const mlo_array *a = c->in[0], *b = c->in[1], *p = c->in[2];
    int64_t n = mlo_array_count(a);
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), a->rank, a->dims);
    if (!y || mlo_kernel_limits(c, mlo_mul_limits)) return mlo_failed(c->m);
    int64_t lo = mlo_kernel_low(c->node), hi = mlo_kernel_high(c->node);
    const int32_t by[2] = { (int32_t)mlo_get(p, 0), (int32_t)mlo_get(p, 1) };
    for (int64_t i = 0; i < n; i++)
        mlo_set_element(y, i, mlo_mul_one(mlo_get(a, i), mlo_get(b, i), by, lo, hi));
    return 0;
}

static int mlo_mul_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    int64_t channels = mlo_last_dim(&s->out);
    (void)simd;
    u->module = "mlo_mul";
    u->in[u->n_in++] = mlo_port_make("s_axis_a", 0, pe, s->in_bits[0], channels);
    u->in[u->n_in++] = mlo_port_make("s_axis_b", 1, pe, s->in_bits[1], channels);
    u->out = mlo_port_make("m_axis", 0, pe, s->out_bits, channels);
    mlo_unit_memory(u, "s_axis_c", 32, 1);
    mlo_unit_param(u, "C", channels);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "ABITS", u->in[0].bits);
    mlo_unit_param(u, "BBITS", u->in[1].bits);
    mlo_unit_param(u, "YBITS", u->out.bits);
    mlo_unit_shift(s, u);
    u->interval = channels / pe;
    u->latency = 9;
    u->other = (mlo_site_pow2(s) ? 1 : 2) * pe;
    return 0;
}

static void mlo_mul_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    int bits = s->in_bits[0] + s->in_bits[1];
    mlo_interval acc = mlo_product_of(
        mlo_signed_bits(s->in_bits[0]), mlo_signed_bits(s->in_bits[1]));
    (void)u;
    mlo_note_all(l, "acc", acc, 1, bits, 1, "g_lane[0].product");
    mlo_note_requantize(l, mlo_product_of(acc, mlo_multipliers), bits + 16,
        "g_lane[0].u_requantize.prod2", s->out_bits);
}

static int mlo_mul_promises(const mlo_site *s, const mlo_array *const *in) {
    if (mlo_pow2_multipliers(s, in[2], 1)) return mlo_failed(s->m);
    return mlo_pow2_places(s, mlo_get(in[2], 0), mlo_get(in[2], 1));
}

static void mlo_mul_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    int64_t mult = mlo_get(in[2], 0), shift = mlo_get(in[2], 1);
    (void)u;
    (void)k;
    (void)word;
    mlo_pack_ratio(s, mult, shift, 0, bits);
}

/* Operands, their product, the requantizer; skids before and behind. */
static void mlo_mul_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    const int64_t pe = u->pe;
    const int64_t abits = s->in_bits[0];
    const int64_t bbits = s->in_bits[1];
    const int64_t y = s->out_bits;
    const int shift = mlo_site_pow2(s);
    enum { CONTROL_LUTS = 30, CONTROL_FFS = 33 };
    mlo_area lane = { 0, abits + bbits, mlo_product_dsps(abits, bbits), 0 };
    mlo_area_requantize(&lane, abits + bbits, 16, y, 1, shift);
    mlo_area_times(a, pe, &lane);
    mlo_area_param(a, 32, shift ? 6 : 22, 1, axi, banks);
    mlo_area_skid(a, pe * abits + 3);
    mlo_area_skid(a, pe * bbits);
    mlo_area_skid(a, pe * y + 3);
    a->lut += CONTROL_LUTS;
    a->ff += CONTROL_FFS + mlo_clog2(mlo_last_dim(&s->out) / pe);
}

/* ---- the card -------------------------------------------------------------- */

static const mlo_kernel mlo_mul_kernel = {
    .op = { "mlo.Mul", mlo_kernel_same_shape, mlo_mul_run, 3 },
    .kind = MLO_KERNEL_PRODUCT,
    .series = "mul",
    .finn = "ElementwiseMul",
    .shifts = 1,
    .function = mlo_mul_function,
    .limits = mlo_mul_limits,
    .pe_axis = "channels",
    .legal = mlo_lanes_legal,
    .unit = mlo_mul_unit,
    .intermediates = mlo_mul_intermediates,
    .area = mlo_mul_area,
    .promises = mlo_mul_promises,
    .pack = mlo_mul_pack,
};
