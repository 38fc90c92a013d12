/* norm: recognises LayerNormalization and RMSNormalization and makes them a norm kernel.
 *
 * in:  a norm over the channels of a token; its gamma and beta are parameters or absent.
 * out: the kernel LayerNorm, which reads the residual stream.
 */
static const mlo_sublayer_kind mlo_norm_sublayer; /* the card, below */

static const char *mlo_block_norm(mlo_recogniser *r, mlo_node *n) {
    mlo_sublayer *b = mlo_block_new(r, &mlo_norm_sublayer, n, n->output[0]);
    mlo_form f = mlo_body_form(&r->in, n->input[0]);
    int64_t axis = mlo_int(n, "axis", -1);
    if (!b) return NULL;
    if (axis != -1 && axis != f.rank - 1)
        return mlo_cannot(r, n, "a norm that is not over the channels");
    b->in[0] = n->input[0];
    b->n_in = 1;
    b->weight = mlo_has_input(n, 1) ? n->input[1] : NULL;
    b->bias = mlo_has_input(n, 2) ? n->input[2] : NULL;
    b->epsilon = mlo_float(n, "epsilon", 1e-5f);
    b->center = mlo_is(n, "LayerNormalization");
    return mlo_block_finish(r, b);
}

static const char *mlo_recognise_norm(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    (void)name;
    *is = mlo_is(n, "LayerNormalization") || mlo_is(n, "RMSNormalization");
    return *is ? mlo_block_norm(r, n) : NULL;
}
static const char *mlo_type_norm(const mlo_sublayer *b) {
    return b->center ? "layer_norm" : "rms_norm";
}

/* g, b, [eps, shift] of one iteration: see kernels/layernorm.c. */
static void mlo_norm_numbers(const mlo_sublayer *b, int64_t channels, int64_t i, const float *gamma,
    const float *beta, double x_scale, const mlo_form_made *y, int32_t *g, int32_t *o, int64_t *p) {
    double most_g = 1e-30, most_b = 1e-30;
#define MLO_NORM_STEP (y->scale[i] * (y->shape ? (double)y->shape[i * channels + c] : 1))
#define MLO_NORM_BETA ((beta ? (double)beta[c] : 0) - (y->zero ? y->zero[i * channels + c] : 0))
    for (int64_t c = 0; c < channels; c++) {
        double vg = (gamma ? fabs((double)gamma[c]) : 1) / MLO_NORM_STEP;
        double vb = fabs(MLO_NORM_BETA) / MLO_NORM_STEP;
        if (vg > most_g) most_g = vg;
        if (vb > most_b) most_b = vb;
    }
    int by_g = (int)floor(log2(32767.0 / most_g)) + 14;
    int by_b = (int)floor(log2(1073741823.0 / most_b));
    int sh = by_g < by_b ? by_g : by_b;
    sh = sh > 30 ? 30 : sh < 0 ? 0 : sh;
    for (int64_t c = 0; c < channels; c++) {
        double vg = floor(ldexp((gamma ? (double)gamma[c] : 1) / MLO_NORM_STEP, sh - 14) + 0.5);
        g[c] = (int32_t)(vg > 32767 ? 32767 : vg < -32768 ? -32768 : vg);
        o[c] = mlo_to_int32(
            floor(ldexp(MLO_NORM_BETA / MLO_NORM_STEP, sh) + 0.5) + (sh ? ldexp(1, sh - 1) : 0));
    }
#undef MLO_NORM_STEP
#undef MLO_NORM_BETA
    double eps = floor(
        (double)b->epsilon * (double)channels * (double)channels / (x_scale * x_scale) + 0.5);
    double cap = ldexp(1, 47);
    p[0] = eps < 1 ? 1 : eps > cap ? (int64_t)cap : (int64_t)eps;
    p[1] = sh;
}

static int mlo_quantize_norm(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_signal *x = mlo_signal_of(q, b->in[0]), *y = mlo_signal_of(q, b->out);
    mlo_form_made made = mlo_made_at(q, y);
    mlo_form f = mlo_body_form(&q->r.in, b->in[0]);
    int64_t channels = f.rank > 0 ? f.dims[f.rank - 1] : 1;
    const int64_t two = 2;
    const char *names[] = { mlo_format(m, "%s_g", b->out), mlo_format(m, "%s_b", b->out),
        mlo_format(m, "%s_p", b->out) };
    if (m->error.code) return mlo_failed(m);
    int32_t *g = (int32_t *)mlo_parameter(q, names[0], MLO_INT32, 1, &channels);
    int32_t *o = (int32_t *)mlo_parameter(q, names[1], MLO_INT32, 1, &channels);
    int64_t *p = (int64_t *)mlo_parameter(q, names[2], MLO_INT64, 1, &two);
    for (int64_t i = 0; i < q->scan.iterations && !m->error.code; i++) {
        mlo_array *gamma = b->weight ? mlo_scan_value(m, &q->scan, b->weight, i) : NULL;
        mlo_array *beta = b->bias && !m->error.code ? mlo_scan_value(m, &q->scan, b->bias, i)
                                                    : NULL;
        if ((gamma && (gamma->dtype != MLO_FLOAT || mlo_array_count(gamma) != channels))
            || (beta && (beta->dtype != MLO_FLOAT || mlo_array_count(beta) != channels)))
            mlo_fail(m, MLO_E_TYPE, b->node,
                "a norm whose scale or bias is not %lld float32 values", (long long)channels);
        if (gamma && !m->error.code)
            for (int64_t c = 0; c < channels; c++)
                ((float *)gamma->data)[c] = (float)mlo_given_rounded(
                    b->weight_given, i * channels + c, (double)((float *)gamma->data)[c]);
        if (beta && !m->error.code)
            for (int64_t c = 0; c < channels; c++)
                ((float *)beta->data)[c] = (float)mlo_given_rounded(
                    b->bias_given, i * channels + c, (double)((float *)beta->data)[c]);
        if (!m->error.code)
            mlo_norm_numbers(b, channels, i, gamma ? (float *)gamma->data : NULL,
                beta ? (float *)beta->data : NULL, x->wide_scale[i], &made, g + i * channels,
                o + i * channels, p + 2 * i);
        mlo_array_free(m, gamma);
        mlo_array_free(m, beta);
    }
    mlo_node *n = m->error.code
        ? NULL
        : mlo_kernel_node(q, &mlo_layernorm_kernel, b, b->out, made.type, made.bits, made.scale);
    const char *in[] = { x->wide_name, names[0], names[1], names[2] };
    if (!n || mlo_attr_int(m, n, "center", b->center) || mlo_inputs(m, n, in, 4))
        return mlo_failed(m);
    return mlo_narrow(q, b, b->out, y);
}

static const mlo_sublayer_kind mlo_norm_sublayer = {
    .kind = MLO_NORM,
    .reads_wide = 1,
    .recognise = mlo_recognise_norm,
    .quantize = mlo_quantize_norm,
    .type = mlo_type_norm,
};
