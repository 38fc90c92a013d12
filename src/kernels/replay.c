/* replay: a stream that comes once and goes to every iteration: an encoder's output, which each layer
 * of a decoder projects to keys and values of its own.
 *
 * in:  x [1, TK, C] int8 or int16, from around the loop.
 * out: y = x. Verilog: mlo_replay.
 *
 * The hardware keeps a frame of it on chip and sends it once for each iteration. It reads no stream
 * of the body: its own door brings it.
 *
 * invariant: nothing is rounded.
 * cost: PE channels a cycle; a frame of memory.
 */
static const char mlo_replay_function[] = "Replay <to, lo, hi> (x) => (y)\n"
                                          "y = Cast <to=@to> (x)\n";

/* The mask of the memory's keys, in the outer graph. */
static const char mlo_memory_mask[] = "mlo_memory_mask";

static const mlo_limit mlo_replay_limits[] = { { .what = NULL } };

static int mlo_replay_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 1) || mlo_kernel_activation(c, 0)) return mlo_failed(c->m);
    const mlo_array *x = c->in[0];
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    for (int64_t i = 0, n = mlo_array_count(x); y && i < n; i++)
        mlo_set_element(y, i, mlo_get(x, i));
    return mlo_failed(c->m);
}

/* Tokens of a frame. */
static int64_t mlo_replay_tokens(const mlo_site *s) {
    return mlo_form_count(&s->out) / mlo_last_dim(&s->out);
}

static int mlo_replay_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const int64_t channels = mlo_last_dim(&s->out);
    (void)simd;
    u->module = "mlo_replay";
    u->out = mlo_port_make("m_axis", 0, pe, s->out_bits, channels);
    u->flow = MLO_FLOW_REPLAY;
    mlo_unit_param(u, "WIDTH", pe * s->out_bits);
    mlo_unit_param(u, "BEATS", channels / pe);
    mlo_unit_param(u, "T", mlo_replay_tokens(s));
    u->interval = channels / pe;
    u->latency = 2;
    return 0;
}

static void mlo_replay_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    (void)u;
    l->clip = s->out_bits;
}

/* A frame with its sideband; at each end an address and a beat's number; passes are counted. Fitted
 * to what Yosys makes of frames of 6 to 8,192 words. */
static void mlo_replay_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    enum { CONTROL_LUTS = 50, CONTROL_FFS = 38 };
    const int64_t beats = mlo_last_dim(&s->out) / u->pe;
    const int64_t words = mlo_replay_tokens(s) * beats;
    const int64_t address = mlo_clog2(words), beat = mlo_clog2(beats);
    (void)axi, (void)banks;
    mlo_area_memory(a, u->pe * s->out_bits + 2, words);
    a->lut += CONTROL_LUTS + 5 * address / 2 + 4 * beat;
    a->ff += CONTROL_FFS + 2 * (address + beat);
}

static const mlo_kernel mlo_replay_kernel = {
    .op = { "mlo.Replay", mlo_kernel_same_shape, mlo_replay_run, 1 },
    .kind = MLO_KERNEL_REPLAY,
    .series = "replay",
    .function = mlo_replay_function,
    .limits = mlo_replay_limits,
    .pe_axis = "channels",
    .legal = mlo_lanes_legal,
    .unit = mlo_replay_unit,
    .intermediates = mlo_replay_intermediates,
    .area = mlo_replay_area,
};
