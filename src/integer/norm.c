/* norm: recognises LayerNormalization and RMSNormalization and makes them a norm kernel.
 *
 * in:  a norm over the channels of a token, or one over each of its parts of as many channels (its
 *     heads: between a reshape to [.., T, H, D] and one back); its gamma and beta are parameters
 *     or absent, of a part's channels or of all.
 * out: the kernel LayerNorm, which reads a wide value: the residual stream, or what a linear layer
 *     makes. A norm over all tokens of a frame, [1, .., C] from axis 1 (or less) on, is the kernel FrameNorm.
 */

/* Why there is no hardware for a norm over so many tokens; NULL: there is. */
static const char *mlo_frame_norm_unfit(mlo_recogniser *r, const mlo_form *f, int64_t tokens) {
    if (r->tokens && r->tokens != tokens) return "a norm over some of a frame's tokens";
    r->tokens = tokens;
    return mlo_form_count(f) > MLO_NORM_CHANNELS ? "a norm over more than 32768 numbers of a frame"
                                                 : NULL;
}

static const char *mlo_block_norm(mlo_recogniser *r, mlo_node *n, const char *out) {
    mlo_sublayer *b = mlo_block_new(r, n, out);
    const mlo_form f = mlo_body_form(&r->in, n->input[0]), to = mlo_body_form(&r->in, out);
    mlo_chain chain;
    chain.n = chain.n_rounding = 0;
    if (!b) return NULL;
    const int64_t tokens = mlo_frame_norm_tokens(&r->in, n);
    const char *why = tokens     ? mlo_frame_norm_unfit(r, &f, tokens)
        : mlo_is_norm(&r->in, n) ? NULL
                                 : "a norm that is not over the channels";
    if (why) return mlo_cannot(r, n, why);
    b->frame = tokens ? tokens : 1;
    b->in[0] = n->input[0];
    b->n_in = 1;
    b->groups = mlo_last_dim(&to) / mlo_last_dim(&f);
    if (b->groups > 1) {
        b->in[0] = mlo_chain_walk(&r->in, n->input[0], &chain, NULL);
        const mlo_form from = mlo_body_form(&r->in, b->in[0]);
        if (mlo_last_dim(&from) != mlo_last_dim(&to) || !mlo_is_unmoved(r, b->in[0], &chain)) {
            const char *told = mlo_told_mixing(&r->in, b->in[0], MLO_TELL_DEPTH);
            return told
                ? mlo_refuse_told(r, n, told)
                : mlo_cannot(r, n, "a norm over parts that are not a token's channels in order");
        }
        for (size_t k = 1; k < 3; k++) {
            const mlo_form g = mlo_body_form(&r->in, mlo_has_input(n, k) ? n->input[k] : "");
            if (mlo_has_input(n, k) && mlo_form_count(&g) != mlo_last_dim(&f)
                && (g.rank != 2 || f.dims[f.rank - 2] != b->groups))
                return mlo_cannot(r, n, "a norm whose scale differs from token to token");
        }
    }
    b->weight = mlo_has_input(n, 1) ? n->input[1] : NULL;
    b->bias = mlo_has_input(n, 2) ? n->input[2] : NULL;
    b->epsilon = mlo_float(n, "epsilon", 1e-5f);
    b->center = mlo_is(n, "LayerNormalization");
    if (!mlo_block_finish(r, b) || mlo_chain_note(r, b->in[0], &chain, 1)) return NULL;
    return b->out;
}

static const char *mlo_recognise_norm(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    mlo_node *parts = mlo_joined_norm(&r->in, n);
    *is = parts || mlo_is(n, "LayerNormalization") || mlo_is(n, "RMSNormalization");
    return *is ? mlo_block_norm(r, parts ? parts : n, name) : NULL;
}
static const char *mlo_type_norm(const mlo_sublayer *b) {
    return b->center ? "layer_norm" : "rms_norm";
}

/* A norm's parameters in one iteration, by channel of the token. */
typedef struct {
    mlo_array *gamma; /* NULL: 1 */
    mlo_array *beta; /* NULL: 0 */
    int64_t of[2]; /* how many there are of each: a part's channels, or all of them */
} mlo_norm_given;

static double mlo_norm_gamma(const mlo_norm_given *n, int64_t c) {
    return n->gamma ? (double)((const float *)n->gamma->data)[c % n->of[0]] : 1;
}
static double mlo_norm_beta(const mlo_norm_given *n, int64_t c) {
    return n->beta ? (double)((const float *)n->beta->data)[c % n->of[1]] : 0;
}

/* g, b, [eps, shift] of one iteration: see kernels/layernorm.c. all: channels of a token; count: of
 * those, the first ones that have a g and b. */
static void mlo_norm_numbers(const mlo_sublayer *b, int64_t all, int64_t count, int64_t i,
    const mlo_norm_given *given, double x_scale, const mlo_form_made *y, int32_t *g, int32_t *o,
    int64_t *p) {
    double most_g = 1e-30, most_b = 1e-30;
    const double channels = (double)(all / b->groups * b->frame);
#define MLO_NORM_STEP (y->scale[i] * (y->shape ? (double)y->shape[i * all + c] : 1))
#define MLO_NORM_BETA (mlo_norm_beta(given, c) - (y->zero ? y->zero[i * all + c] : 0))
    for (int64_t c = 0; c < count; c++) {
        double vg = fabs(mlo_norm_gamma(given, c)) / MLO_NORM_STEP;
        double vb = fabs(MLO_NORM_BETA) / MLO_NORM_STEP;
        if (vg > most_g) most_g = vg;
        if (vb > most_b) most_b = vb;
    }
    int by_g = (int)floor(log2(32767.0 / most_g)) + 14;
    int by_b = (int)floor(log2(1073741823.0 / most_b));
    int sh = by_g < by_b ? by_g : by_b;
    sh = sh > 30 ? 30 : sh < 0 ? 0 : sh;
    for (int64_t c = 0; c < count; c++) {
        double vg = floor(ldexp(mlo_norm_gamma(given, c) / MLO_NORM_STEP, sh - 14) + 0.5);
        g[c] = (int32_t)(vg > 32767 ? 32767 : vg < -32768 ? -32768 : vg);
        o[c] = mlo_to_int32(
            floor(ldexp(MLO_NORM_BETA / MLO_NORM_STEP, sh) + 0.5) + (sh ? ldexp(1, sh - 1) : 0));
    }
#undef MLO_NORM_STEP
#undef MLO_NORM_BETA
    const double eps = floor((double)b->epsilon * channels * channels / (x_scale * x_scale) + 0.5);
    p[0] = (int64_t)fmax(1, fmin(eps, (double)MLO_NORM_EPSILON)); /* mlo_norm_coarsen */
    p[1] = sh;
}

/* Epsilon in squares of steps has 47 bits. Where what is normalised is far below its root (a decoder with random
 * weights, the first layer of which makes next to nothing), steps are no finer than those let be. */
static int mlo_norm_coarsen(mlo_quantizer *q, const mlo_sublayer *b, int64_t i) {
    mlo_signal *x = mlo_signal_of(q, b->in[0]);
    const mlo_form f = mlo_body_form(&q->r.in, b->in[0]);
    const double channels = (double)(mlo_last_dim(&f) / b->groups * b->frame);
    const double least = sqrt((double)b->epsilon / (double)MLO_NORM_EPSILON) * channels;
    if (x->wide_scale[i] >= least) return 0;
    if (mlo_given_scaled(mlo_wide_given(q, x)))
        return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
            "epsilon is %g, and '%s', which it normalises, has steps of %g; over %g channels steps "
            "of %g at least are supported: give it coarser ones",
            (double)b->epsilon, b->in[0], x->wide_scale[i], channels, least);
    x->wide_scale[i] = mlo_step(q, least);
    return 0;
}

/* One of a norm's parameters in an iteration: of a part's channels or of all, rounded as given. */
static mlo_array *mlo_norm_parameter(mlo_quantizer *q, const mlo_sublayer *b, const char *name,
    const mlo_given *given, int64_t all, int64_t i) {
    mlo *m = q->m;
    mlo_array *a = name ? mlo_scan_value(m, &q->scan, name, i) : NULL;
    const int64_t count = a ? mlo_array_count(a) : 0;
    if (a && (a->dtype != MLO_FLOAT || (count != all / b->groups && count != all)))
        mlo_fail(m, MLO_E_TYPE, b->node, "a norm whose scale or bias is not %lld float32 values",
            (long long)(all / b->groups));
    for (int64_t c = 0; a && c < count && !m->error.code; c++)
        ((float *)a->data)[c] = (float)mlo_given_rounded(
            given, i * all + c, (double)((float *)a->data)[c]);
    return a;
}

/* Is what the norm's result stands for another thing in each part? */
static int mlo_norm_differs(const mlo_form_made *y, int64_t all, int64_t part, int64_t loops) {
    int differs = 0;
    for (int64_t at = 0; at < loops * all; at++) {
        const int64_t like = at - at % all + at % all % part;
        differs |= y->shape && mlo_differs(y->shape[at], y->shape[like]);
        differs |= y->zero && mlo_differs(y->zero[at], y->zero[like]);
    }
    return differs;
}

/* Does each part of a token need a g and b of its own? */
static int mlo_norm_is_own(
    mlo_quantizer *q, const mlo_sublayer *b, const mlo_form_made *y, int64_t all) {
    const int64_t part = all / b->groups;
    const mlo_form g = mlo_body_form(&q->r.in, mlo_or_empty(b->weight));
    const mlo_form o = mlo_body_form(&q->r.in, mlo_or_empty(b->bias));
    return b->groups > 1
        && ((b->weight && mlo_form_count(&g) > part) || (b->bias && mlo_form_count(&o) > part)
            || mlo_norm_differs(y, all, part, q->scan.iterations));
}

static int mlo_quantize_norm(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_signal *x = mlo_signal_of(q, b->in[0]), *y = mlo_signal_of(q, b->out);
    mlo_form_made made = mlo_made_at(q, y);
    mlo_form f = mlo_body_form(&q->r.in, b->in[0]);
    const int64_t all = f.rank > 0 ? f.dims[f.rank - 1] : 1, two = 2;
    const int own = mlo_norm_is_own(q, b, &made, all);
    const int64_t count = own ? all : all / b->groups, dims[] = { b->groups, all / b->groups };
    const char *names[] = { mlo_format(m, "%s_g", b->out), mlo_format(m, "%s_b", b->out),
        mlo_format(m, "%s_p", b->out) };
    int32_t *part[2];
    if (m->error.code) return mlo_failed(m);
    for (int k = 0; k < 2; k++)
        part[k] = (int32_t *)mlo_parameter(q, names[k], MLO_INT32, 1 + own, own ? dims : dims + 1);
    int64_t *p = (int64_t *)mlo_parameter(q, names[2], MLO_INT64, 1, &two);
    for (int64_t i = 0; i < q->scan.iterations && !m->error.code; i++) {
        mlo_norm_given n = { mlo_norm_parameter(q, b, b->weight, b->weight_given, all, i), NULL,
            { 1, 1 } };
        if (!m->error.code) n.beta = mlo_norm_parameter(q, b, b->bias, b->bias_given, all, i);
        if (n.gamma) n.of[0] = mlo_array_count(n.gamma);
        if (n.beta) n.of[1] = mlo_array_count(n.beta);
        if (!m->error.code)
            mlo_norm_numbers(b, all, count, i, &n, x->wide_scale[i], &made, part[0] + i * count,
                part[1] + i * count, p + 2 * i);
        mlo_array_free(m, n.gamma);
        mlo_array_free(m, n.beta);
    }
    mlo_node *n = m->error.code
        ? NULL
        : mlo_kernel_node(q, b->frame > 1 ? &mlo_framenorm_kernel : &mlo_layernorm_kernel, b,
              b->out, made.type, made.bits, made.scale);
    const char *in[] = { x->wide_name, names[0], names[1], names[2] };
    if (!n || mlo_attr_int(m, n, "center", b->center)
        || (b->groups > 1 && mlo_attr_int(m, n, "groups", b->groups)) || mlo_inputs(m, n, in, 4))
        return mlo_failed(m);
    return mlo_narrow(q, b, b->out, y);
}

static const mlo_sublayer_kind mlo_norm_sublayer = {
    .kind = MLO_NORM,
    .reads_wide = 1,
    .recognise = mlo_recognise_norm,
    .coarsen = mlo_norm_coarsen,
    .quantize = mlo_quantize_norm,
    .type = mlo_type_norm,
};
