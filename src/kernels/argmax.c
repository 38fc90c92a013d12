/* argmax: y[t] = { the lowest channel that holds the largest of token t, what it holds }: which word a
 * decoder says next, and its logit.
 *
 * in:  x [.., T, C] int8 or int16: logits of one scale.
 * out: y [.., T, 2] int32. Verilog: mlo_argmax.
 *
 * invariant: ties go to the lowest channel, as ONNX's ArgMax has them.
 * cost: a channel a cycle; a comparison.
 */
static const char mlo_argmax_function[] = "ArgMax <to, lo, hi> (x) => (y)\n"
                                          "wide = Cast <to=6> (x)\n"
                                          "i = ArgMax <axis=-1, keepdims=1> (wide)\n"
                                          "id = Cast <to=6> (i)\n"
                                          "most = GatherElements <axis=-1> (wide, i)\n"
                                          "y = Concat <axis=-1> (id, most)\n";

static const mlo_limit mlo_argmax_limits[] = { { .what = NULL } };

static int mlo_argmax_shape(mlo_shapes *s) {
    if (s->in[0].rank < 1) return 0;
    s->out[0] = s->in[0];
    s->out[0].dtype = MLO_INT32;
    s->out[0].dims[s->in[0].rank - 1] = 2;
    return 0;
}

static int mlo_argmax_run(mlo_call *c) {
    if (mlo_kernel_present(c, 1) || mlo_kernel_activation(c, 0)) return mlo_failed(c->m);
    const mlo_array *x = c->in[0];
    int64_t dims[MLO_MAX_RANK];
    const int64_t n = x->rank > 0 ? x->dims[x->rank - 1] : 0;
    if (n < 1) return mlo_fail(c->m, MLO_E_SHAPE, c->node, "x has no channels");
    memcpy(dims, x->dims, sizeof dims);
    dims[x->rank - 1] = 2;
    mlo_array *y = mlo_call_out(c, 0, MLO_INT32, x->rank, dims);
    for (int64_t t = 0; y && t < mlo_array_count(x) / n; t++) {
        int64_t best = 0;
        for (int64_t i = 1; i < n; i++)
            if (mlo_get(x, t * n + i) > mlo_get(x, t * n + best)) best = i;
        mlo_set_element(y, 2 * t, best);
        mlo_set_element(y, 2 * t + 1, mlo_get(x, t * n + best));
    }
    return mlo_failed(c->m);
}

static int mlo_argmax_legal(const mlo_site *s, int64_t pe, int64_t simd) {
    return pe == 1 && simd == 1 && mlo_last_dim(&s->in[0]) > 1;
}

static int mlo_argmax_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const int64_t channels = mlo_last_dim(&s->in[0]);
    (void)pe, (void)simd;
    u->module = "mlo_argmax";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, 1, s->in_bits[0], channels);
    u->out = mlo_port_make("m_axis", 0, 2, 32, 2);
    mlo_unit_param(u, "C", channels);
    mlo_unit_param(u, "XBITS", s->in_bits[0]);
    u->interval = channels;
    u->latency = 1;
    return 0;
}

static void mlo_argmax_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    (void)s, (void)u;
    l->clip = 32;
}

/* The best so far, its number, that of the next; the result. */
static void mlo_argmax_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    enum { CONTROL_LUTS = 6, CONTROL_FFS = 7 };
    const int64_t x = s->in_bits[0], count = mlo_clog2(mlo_last_dim(&s->in[0]));
    (void)u, (void)axi, (void)banks;
    a->lut += CONTROL_LUTS + 2 * x + 2 * count;
    a->ff += CONTROL_FFS + 2 * x + 3 * count;
}

static const mlo_kernel mlo_argmax_kernel = {
    .op = { "mlo.ArgMax", mlo_argmax_shape, mlo_argmax_run, 1 },
    .kind = MLO_KERNEL_CHOICE,
    .series = "argmax",
    .function = mlo_argmax_function,
    .limits = mlo_argmax_limits,
    .pe_axis = "channels",
    .legal = mlo_argmax_legal,
    .unit = mlo_argmax_unit,
    .intermediates = mlo_argmax_intermediates,
    .area = mlo_argmax_area,
};
