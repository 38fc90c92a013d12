/* argmax: y[t] = { the lowest channel that holds the largest of token t, what it holds }: which word a
 * decoder says next, and its logit. With the attribute `best` the K largest, one pair behind the other.
 *
 * in:  x [.., T, C] int8 or int16: logits of one scale.
 * out: y [.., T, 2 K] int32. Verilog: mlo_best.
 *
 * invariant: ties go to the lowest channel, as ONNX's ArgMax and TopK have them.
 * cost: a channel a cycle; K comparisons.
 */
static const char mlo_best_name[] = "mlo.Best";
static const char mlo_argmax_function[] = "ArgMax <to, lo, hi> (x) => (y)\n"
                                          "wide = Cast <to=6> (x)\n"
                                          "i = ArgMax <axis=-1, keepdims=1> (wide)\n"
                                          "id = Cast <to=6> (i)\n"
                                          "most = GatherElements <axis=-1> (wide, i)\n"
                                          "y = Concat <axis=-1> (id, most)\n";

static const char mlo_best_function[] = "Best <to, lo, hi, best> (x) => (y)\n"
                                        "wide = Cast <to=6> (x)\n"
                                        "n = Constant <value_int=@best> ()\n"
                                        "one = Constant <value_ints=[1]> ()\n"
                                        "k = Reshape (n, one)\n"
                                        "most, i = TopK <axis=-1, largest=1, sorted=1> (wide, k)\n"
                                        "id = Cast <to=6> (i)\n"
                                        "last = Constant <value_ints=[-1]> ()\n"
                                        "a = Unsqueeze (id, last)\n"
                                        "b = Unsqueeze (most, last)\n"
                                        "pair = Concat <axis=-1> (a, b)\n"
                                        "tokens = Constant <value_ints=[0, 0, -1]> ()\n"
                                        "y = Reshape (pair, tokens)\n";

enum { MLO_BEST_MOST = 16 };
/* How many are wanted; ArgMax has one. */
static int64_t mlo_best_of(const mlo_node *n) {
    return mlo_is(n, mlo_best_name) ? mlo_int(n, "best", 1) : 1;
}

static const mlo_limit mlo_argmax_limits[] = { { .what = NULL } };

static int mlo_argmax_shape(mlo_shapes *s) {
    if (s->in[0].rank < 1) return 0;
    s->out[0] = s->in[0];
    s->out[0].dtype = MLO_INT32;
    s->out[0].dims[s->in[0].rank - 1] = 2 * mlo_best_of(s->node);
    return 0;
}

/* The k largest of n numbers from `from` on, to y from `at` on: each is inserted where it belongs. */
static void mlo_best_token(
    const mlo_array *x, int64_t from, int64_t n, int64_t k, mlo_array *y, int64_t at) {
    int64_t best[MLO_BEST_MOST];
    for (int64_t i = 0, held = 0; i < n; i++) {
        int64_t j = held;
        while (j && mlo_get(x, from + i) > mlo_get(x, from + best[j - 1])) j--;
        if (j == k) continue;
        held = mlo_min(held + 1, k);
        for (int64_t l = held - 1; l > j; l--) best[l] = best[l - 1];
        best[j] = i;
    }
    for (int64_t j = 0; j < k; j++) {
        mlo_set_element(y, at + 2 * j, best[j]);
        mlo_set_element(y, at + 2 * j + 1, mlo_get(x, from + best[j]));
    }
}

static int mlo_argmax_run(mlo_call *c) {
    if (mlo_kernel_present(c, 1) || mlo_kernel_activation(c, 0)) return mlo_failed(c->m);
    const mlo_array *x = c->in[0];
    int64_t dims[MLO_MAX_RANK];
    const int64_t n = x->rank > 0 ? x->dims[x->rank - 1] : 0;
    if (n < 1) return mlo_fail(c->m, MLO_E_SHAPE, c->node, "x has no channels");
    memcpy(dims, x->dims, sizeof dims);
    const int64_t k = mlo_best_of(c->node);
    if (k < 1 || k > n || k > MLO_BEST_MOST)
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "the %lld best of %lld channels", (long long)k,
            (long long)n);
    dims[x->rank - 1] = 2 * k;
    mlo_array *y = mlo_call_out(c, 0, MLO_INT32, x->rank, dims);
    for (int64_t t = 0; y && t < mlo_array_count(x) / n; t++)
        mlo_best_token(x, t * n, n, k, y, 2 * t * k);
    return mlo_failed(c->m);
}

static int mlo_argmax_legal(const mlo_site *s, int64_t pe, int64_t simd) {
    return pe == 1 && simd == 1 && mlo_last_dim(&s->in[0]) > 1
        && mlo_best_of(s->node) <= mlo_last_dim(&s->in[0]);
}

static int mlo_argmax_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const int64_t channels = mlo_last_dim(&s->in[0]);
    (void)pe, (void)simd;
    const int64_t best = mlo_best_of(s->node);
    u->module = "mlo_best";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, 1, s->in_bits[0], channels);
    u->out = mlo_port_make("m_axis", 0, (int)(2 * best), 32, 2 * best);
    mlo_unit_param(u, "K", best);
    mlo_unit_param(u, "C", channels);
    mlo_unit_param(u, "XBITS", s->in_bits[0]);
    u->interval = channels;
    u->latency = 2;
    return 0;
}

static void mlo_argmax_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    (void)s, (void)u;
    l->clip = 32;
}

/* The best so far, their numbers, that of the next; the result. */
static void mlo_argmax_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    enum { CONTROL_LUTS = 6, CONTROL_FFS = 7 };
    const int64_t x = s->in_bits[0], count = mlo_clog2(mlo_last_dim(&s->in[0]));
    (void)u, (void)axi, (void)banks;
    const int64_t best = mlo_best_of(s->node);
    a->lut += CONTROL_LUTS + best * (2 * x + count) + count;
    a->ff += CONTROL_FFS + best * (2 * x + 2 * count) + count + best;
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

static const mlo_kernel mlo_best_kernel = {
    .op = { "mlo.Best", mlo_argmax_shape, mlo_argmax_run, 1 },
    .kind = MLO_KERNEL_CHOICE,
    .series = "best",
    .function = mlo_best_function,
    .limits = mlo_argmax_limits,
    .pe_axis = "channels",
    .legal = mlo_argmax_legal,
    .unit = mlo_argmax_unit,
    .intermediates = mlo_argmax_intermediates,
    .area = mlo_argmax_area,
};
