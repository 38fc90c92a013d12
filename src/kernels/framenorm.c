/* framenorm: a norm over all channels of all tokens of a frame, in integers: GroupNorm of one group, as
 * PoolFormer has it. With center = 0 it has no mean.
 *
 * in:  x [B, T, C] int16, g [C] int32 (fits int16), b [C] int32, p = [EPS (int64), SH].
 * out: y [B, T, C]. Verilog: mlo_layernorm, FRAME = T.
 *
 *     layernorm.c's formulas, for N = T C numbers at once; g and b are those of a channel in every token.
 *     A frame of fewer tokens has the N that it has.
 *
 * The hardware keeps a frame: its last token's root is what the first one waits for. As in layernorm.c
 * it takes the next frame meanwhile.
 *
 * error: as layernorm.c has it.
 * cost: C/PE cycles a token, a frame 43 at least; memory for a frame.
 */

static const char mlo_framenorm_function[] = "FrameNorm <to, lo, hi, center> (x, g, b, p) => (y)\n"
                                             "xc = Cast <to=7> (x)\n"
                                             "xs = Shape (xc)\n"
                                             "i0 = Constant <value_int=0> ()\n"
                                             "i1 = Constant <value_int=1> ()\n"
                                             "first = Constant <value_ints=[0]> ()\n"
                                             "final = Constant <value_ints=[-1]> ()\n"
                                             "frames = Gather (xs, first)\n"
                                             "rows = Concat <axis=0> (frames, final)\n"
                                             "x64 = Reshape (xc, rows)\n" /* [B, T C] */
                                             "sizes = Shape (x64)\n"
                                             "channels = Gather (sizes, i1)\n"
                                             "g64 = Cast <to=7> (g)\n"
                                             "b64 = Cast <to=7> (b)\n" MLO_NORM_STATISTICS
                                             "nt = Reshape (n, xs)\n"
                                             "ng = Mul (nt, g64)\n" MLO_NORM_ENDING;

/* The numbers of a frame; 0: recorded that they are too many. */
static int64_t mlo_frame_numbers(mlo *m, const mlo_node *n, int64_t tokens, int64_t channels) {
    if (tokens > 0 && channels > 0 && tokens <= MLO_NORM_CHANNELS / channels)
        return tokens * channels;
    mlo_fail(m, MLO_E_UNSUPPORTED, n,
        "a norm over %lld tokens of %lld channels; the integer norm takes 1 to %d numbers of a "
        "frame: smaller "
        "frames, or fewer channels",
        (long long)tokens, (long long)channels, MLO_NORM_CHANNELS);
    return 0;
}

static int mlo_framenorm_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 4) || mlo_kernel_activation(c, 0) || mlo_norm_center(c->m, c->node))
        return mlo_failed(c->m);
    const mlo_array *x = c->in[0];
    if (x->rank != 3)
        return mlo_fail(c->m, MLO_E_SHAPE, c->node,
            "takes x of 3 dimensions, [batch, tokens, channels]; it has %d", x->rank);
    const int64_t channels = x->dims[2],
                  count = mlo_frame_numbers(c->m, c->node, x->dims[1], channels);
    if (!count || mlo_kernel_count(c, 1, channels) || mlo_kernel_count(c, 2, channels)
        || mlo_kernel_count(c, 3, 2) || mlo_kernel_limits(c, mlo_layernorm_limits))
        return mlo_failed(c->m);
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    for (int64_t i = 0; y && i < x->dims[0]; i++)
        mlo_norm_over(c, i * count, 0, x->dims[1], channels, y);
    return mlo_failed(c->m);
}

static void mlo_framenorm_intermediates(
    const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    (void)u;
    mlo_norm_intermediates(s, s->chunk * mlo_last_dim(&s->out), l);
}

static int mlo_framenorm_legal(const mlo_site *s, int64_t pe, int64_t simd) {
    return simd == 1 && mlo_last_dim(&s->out) % pe == 0;
}

static int mlo_framenorm_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const int64_t channels = mlo_last_dim(&s->out), center = mlo_int(s->node, "center", 1);
    const int64_t beats = channels / pe, keeps = mlo_norm_keeps(s->chunk * beats);
    (void)simd;
    if (mlo_norm_center(s->m, s->node) || !mlo_frame_numbers(s->m, s->node, s->chunk, channels))
        return mlo_failed(s->m);
    u->module = "mlo_layernorm";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, pe, s->in_bits[0], channels);
    u->out = mlo_port_make("m_axis", 0, pe, s->out_bits, channels);
    mlo_unit_memory(u, "s_axis_c", pe * 64, beats);
    mlo_unit_memory(u, "s_axis_e", 64, 1);
    mlo_unit_param(u, "C", channels);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "XBITS", s->in_bits[0]);
    mlo_unit_param(u, "YBITS", s->out_bits);
    mlo_unit_param(u, "CENTER", center);
    mlo_unit_param(u, "FRAME", s->chunk);
    u->turns = 1;
    u->interval = mlo_max(beats, mlo_parts(43, s->chunk)); /* 43: as layernorm.c has it */
    u->latency = 65 - 3 * !center + mlo_clog2(pe) + beats;
    u->other = 4 * pe;
    u->flow = MLO_FLOW_NORM;
    mlo_norm_times(u, center, s->chunk * beats);
    u->window.behind = s->chunk - 1;
    u->window.slots = mlo_parts(keeps, beats);
    u->window.room = keeps / beats;
    return 0;
}

/* That of a norm of as many channels, and each token's sideband. */
static void mlo_framenorm_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    enum { COUNTS = 48, SIDEBAND = 3 };
    const int64_t channels = mlo_last_dim(&s->out), all = s->chunk * channels;
    mlo_norm_area(s, u, all, axi, banks, a);
    mlo_area_fifo(a, SIDEBAND, mlo_norm_keeps(all / u->pe));
    a->lut += COUNTS / 3;
    a->ff += COUNTS;
}

/* ---- the card -------------------------------------------------------------- */

static const mlo_kernel mlo_framenorm_kernel = {
    .op = { "mlo.FrameNorm", mlo_kernel_same_shape, mlo_framenorm_run, 4 },
    .kind = MLO_KERNEL_FRAME_NORM,
    .series = "layernorm",
    .function = mlo_framenorm_function,
    .limits = mlo_layernorm_limits,
    .pe_axis = "channels",
    .legal = mlo_framenorm_legal,
    .unit = mlo_framenorm_unit,
    .intermediates = mlo_framenorm_intermediates,
    .area = mlo_framenorm_area,
    .pack = mlo_layernorm_pack,
};
