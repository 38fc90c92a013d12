/* residual: recognises the sum of two values of the loop and makes it an Add of streams.
 *
 * in:  an Add of two values that depend on the carried value, of one shape, and not both on one linear
 *     layer's result alone.
 * out: the kernel Add of two wide streams, which have neither zero points nor factors per channel.
 */

static const char *mlo_block_residual(mlo_recogniser *r, mlo_node *n) {
    mlo_sublayer *b = mlo_block_new(r, n, n->output[0]);
    mlo_form f0 = mlo_body_form(&r->in, n->input[0]), f1 = mlo_body_form(&r->in, n->input[1]);
    if (!b) return NULL;
    if (mlo_form_count(&f0) != mlo_form_count(&f1)) return mlo_cannot_spread(r, n, "a sum");
    b->in[0] = n->input[0];
    b->in[1] = n->input[1];
    b->n_in = 2;
    return mlo_block_finish(r, b);
}

/* Is the sum a function of one linear layer's result alone? Then it is in that layer's table. */
static int mlo_is_function_of_layer(mlo_recogniser *r, mlo_node *n) {
    const char *source = mlo_unary_source(r, n), *bias;
    const mlo_node *p = source ? mlo_made_by(&r->in, source) : NULL;
    if (mlo_is_half(&r->in, p, "Add", &source, &bias)) p = mlo_made_by(&r->in, source);
    return mlo_is(p, "MatMul") || mlo_is(p, "Gemm");
}

static const char *mlo_recognise_residual(
    mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    (void)name;
    *is = mlo_is(n, "Add") && mlo_is_carried(&r->in, n->input[0])
        && mlo_is_carried(&r->in, n->input[1]) && !mlo_is_function_of_layer(r, n);
    return *is ? mlo_block_residual(r, n) : NULL;
}
static const char *mlo_type_residual(const mlo_sublayer *b) {
    (void)b;
    return "add";
}

/* In powers of two a sum shifts its operands by 14 places at most: none may be much finer than the
 * other, nor the sum than both. */
static int mlo_add_coarsen(mlo_quantizer *q, const mlo_sublayer *b, int64_t i) {
    if (!q->pow2) return 0;
    mlo_signal *s[] = { mlo_signal_of(q, b->in[0]), mlo_signal_of(q, b->in[1]),
        mlo_signal_of(q, b->out) };
    double least = (s[0]->wide_scale[i] > s[1]->wide_scale[i] ? s[0]->wide_scale[i]
                                                              : s[1]->wide_scale[i])
        / 4096;
    for (int k = 0; k < 3; k++)
        if (s[k]->wide_scale[i] < least && !mlo_given_scaled(mlo_wide_given(q, s[k])))
            s[k]->wide_scale[i] = least;
    return 0;
}

/* MA, MB, S: a step of a, and of b, in steps of y. */
static void mlo_add_numbers(double ra, double rb, int32_t *p) {
    int64_t mult;
    int shift;
    mlo_fixed(ra > rb ? ra : rb, 40, &mult, &shift);
    for (int k = 0; k < 2; k++) {
        double v = floor(ldexp(k ? rb : ra, shift) + 0.5);
        p[k] = (int32_t)(v > 32767 ? 32767 : v);
    }
    p[2] = shift;
}

/* The same in powers of two, which are exact. */
static int mlo_add_shifts(mlo *m, const mlo_node *blame, double ra, double rb, int32_t *p) {
    int a, b;
    frexp(ra, &a);
    frexp(rb, &b);
    int least = a < b ? a : b, most = a < b ? b : a, shift = 1 - least > 1 ? 1 - least : 1;
    if (most - 1 + shift > 14 || shift > 48)
        return mlo_fail(m, MLO_E_UNSUPPORTED, blame,
            "operands of %g and %g steps of the sum; up to 14 places between them, and 13 to the "
            "left, are supported: give them scales that are nearer",
            ra, rb);
    p[0] = 1 << (a - 1 + shift);
    p[1] = 1 << (b - 1 + shift);
    p[2] = shift;
    return 0;
}

static int mlo_quantize_residual(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_signal *a = mlo_signal_of(q, b->in[0]);
    mlo_signal *c = mlo_signal_of(q, b->in[1]);
    mlo_signal *y = mlo_signal_of(q, b->out);
    const mlo_form_made wide = { y->wide_scale, NULL, NULL, MLO_INT16, y->wide_bits };
    const mlo_form_made made = mlo_widened(q, y) ? wide : mlo_made_at(q, y);
    /* a sum knows no zero */
    const char *out = mlo_widened(q, y) ? mlo_format(m, "%s_sum", b->out) : b->out;
    const char *p = mlo_format(m, "%s_p", b->out);
    const int64_t three = 3;
    int32_t *data = p && out ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &three) : NULL;
    mlo_node *n = data
        ? mlo_kernel_node(q, &mlo_add_kernel, b, out, made.type, made.bits, made.scale)
        : NULL;
    if (!n) return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        double ra = a->wide_scale[i] / made.scale[i], rb = c->wide_scale[i] / made.scale[i];
        if (!q->pow2)
            mlo_add_numbers(ra, rb, data + 3 * i);
        else
            MLO_TRY(mlo_add_shifts(m, b->node, ra, rb, data + 3 * i));
    }
    const char *in[] = { a->wide_name, c->wide_name, p };
    if (mlo_inputs(m, n, in, 3)
        || (out != b->out
            && mlo_offset_node(q, b, out, b->out, mlo_narrow_type(y), y->bits, y, -1)))
        return mlo_failed(m);
    return mlo_narrow(q, b, b->out, y);
}

static const mlo_sublayer_kind mlo_residual_sublayer = {
    .kind = MLO_RESIDUAL,
    .reads_wide = 1,
    .makes_wide = 1,
    .recognise = mlo_recognise_residual,
    .coarsen = mlo_add_coarsen,
    .quantize = mlo_quantize_residual,
    .type = mlo_type_residual,
};
