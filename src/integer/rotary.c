/* rotary: recognises rotary position embedding and makes it a rotary kernel.
 *
 * in:  RotaryEmbedding of pairs that are neighbours, on tokens [1, T, C]: the spelling that
 *     respell.c makes of all others. Its tables are parameters, [1, T, D/2].
 * out: the kernel Rotary, whose table holds cosines and sines in steps of 2^-14 of the largest of
 *     them; what that is goes into the multiplier.
 *
 * The kernel mixes two channels, so both are in the same steps, without a zero: its operand has one
 * scale and no zeros, and so has its result. The operand has 16 bits, so that it is rounded once,
 * when it has been turned.
 *
 * invariant: a pair that does not turn keeps what it was, but for the one rounding.
 * cost: T D numbers an iteration.
 */

/* ---- recognising ---------------------------------------------------------- */

static const char *mlo_recognise_rotary(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    *is = mlo_is(n, "RotaryEmbedding");
    if (!*is) return NULL;
    if (!mlo_is_turned(&r->in, n))
        return mlo_cannot(r, n,
            "rotary embedding outside of an attention's queries and keys, or by angles that are no "
            "constants");
    mlo_sublayer *b = mlo_block_new(r, n, name);
    if (!b) return NULL;
    b->in[0] = n->input[0];
    b->n_in = 1;
    b->heads = mlo_int(n, "num_heads", 1);
    return mlo_block_finish(r, b);
}

static const char *mlo_type_rotary(const mlo_sublayer *b) {
    (void)b;
    return "rotary";
}
static double mlo_products_rotary(mlo_quantizer *q, const mlo_sublayer *b) {
    return 2.0 * (double)mlo_signal_of(q, b->out)->channels;
}

/* ---- what is given, and the scales ---------------------------------------- */

/* Drops, with a warning, given zero points: a rotation has no term for them. */
static int mlo_given_rotary(mlo_quantizer *q, mlo_sublayer *b) {
    mlo_signal *s[] = { mlo_signal_of(q, b->in[0]), mlo_signal_of(q, b->out) };
    for (int k = 0; k < 2; k++) {
        const mlo_given *g = mlo_narrow_given(s[k]);
        int far = 0;
        for (int64_t i = 0; mlo_given_scaled(g) && i < q->scan.iterations; i++)
            far |= mlo_differs(mlo_given_zero(g, i), 0);
        if (!far) continue;
        s[k]->given = s[k]->given_narrow = NULL;
        mlo_warn(q->m,
            "%s: a zero point is not taken over (rotary embedding knows none): scales of '%s' are "
            "chosen here",
            mlo_node_name(b->node), s[k]->name);
    }
    return mlo_failed(q->m);
}

/* Steps with room: a sharp softmax forgives coarser ones, saturated queries it does not. (An
 * attention may give both sides of a rotation a factor per pair.) */
static void mlo_rotary_fit(mlo_quantizer *q, mlo_signal *s) {
    if (mlo_given_scaled(mlo_narrow_given(s))) {
        mlo_obey(q, s);
        return;
    }
    s->shape = NULL;
    for (int64_t i = 0; i < q->scan.iterations; i++) mlo_fit_roomy(q, s, i);
}

static int mlo_rotary_scales(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_signal *x = mlo_signal_of(q, b->in[0]);
    for (int64_t c = 0; mlo_given_scaled(mlo_narrow_given(x)) && c < x->channels; c++)
        if (mlo_differs(x->zero[c], 0))
            return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
                "a zero point is fixed for '%s', which rotary embedding turns; only symmetric ones "
                "are supported",
                x->name);
    mlo_rotary_fit(q, x);
    mlo_rotary_fit(q, mlo_signal_of(q, b->out));
    return 0;
}

/* ---- making it ------------------------------------------------------------ */

enum { MLO_TURN_FRACTION = 14 }; /* bits of a number of the table behind the point */

/* The table of one iteration, [T, D]: cosine and sine of each pair, as parts of the largest of them,
 * which is returned (a power of two where scales are). -1: failed. */
static double mlo_rotary_table(
    mlo_quantizer *q, const mlo_sublayer *b, int64_t i, int64_t n, int16_t *table) {
    mlo *m = q->m;
    double most = 0;
    mlo_array *a[2] = { NULL, NULL };
    for (size_t k = 0; k < 2 && !m->error.code; k++) {
        a[k] = mlo_scan_value(m, &q->scan, b->node->input[k + 1], i);
        if (a[k] && mlo_array_count(a[k]) != n)
            mlo_fail(m, MLO_E_SHAPE, b->node, "a table of %lld numbers for %lld",
                (long long)mlo_array_count(a[k]), (long long)n);
        for (int64_t e = 0; a[k] && !m->error.code && e < n; e++)
            most = fmax(most, fabs(mlo_number_at(a[k], e)));
    }
    most = !(most > 1e-20) ? 1 : q->pow2 ? mlo_pow2_up(most) : most;
    for (int64_t e = 0; !m->error.code && e < 2 * n; e++)
        table[e] = (int16_t)rint(ldexp(mlo_number_at(a[e % 2], e / 2) / most, MLO_TURN_FRACTION));
    for (int k = 0; k < 2; k++) mlo_array_free(m, a[k]);
    return m->error.code ? -1 : most;
}

static int mlo_quantize_rotary(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_signal *x = mlo_signal_of(q, b->in[0]), *y = mlo_signal_of(q, b->out);
    const mlo_form_made made = mlo_made_at(q, y);
    const mlo_form f = mlo_body_form(&q->r.in, b->out);
    const int64_t two = 2, shape[] = { f.dims[1], f.dims[2] / b->heads }, n = shape[0] * shape[1];
    const char *names[] = { mlo_format(m, "%s_turns", b->out), mlo_format(m, "%s_p", b->out) };
    if (m->error.code) return mlo_failed(m);
    int16_t *table = (int16_t *)mlo_parameter(q, names[0], MLO_INT16, 2, shape);
    int32_t *p = (int32_t *)mlo_parameter(q, names[1], MLO_INT32, 1, &two);
    mlo_node *node = table && p
        ? mlo_kernel_node(q, &mlo_rotary_kernel, b, b->out, made.type, made.bits, made.scale)
        : NULL;
    if (!node || mlo_attr_int(m, node, "heads", b->heads)) return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        int64_t mult;
        int shift;
        const double most = mlo_rotary_table(q, b, i, n / 2, table + n * i);
        if (most < 0
            || mlo_ratio(q, node,
                ldexp(x->narrow_scale[i] * most / made.scale[i], -MLO_TURN_FRACTION), 62, &mult,
                &shift))
            return mlo_failed(m);
        p[2 * i] = (int32_t)mult;
        p[2 * i + 1] = shift;
    }
    const char *in[] = { x->narrow_name, names[0], names[1] };
    return mlo_inputs(m, node, in, 3) ? mlo_failed(m) : mlo_narrow(q, b, b->out, y);
}

static const mlo_sublayer_kind mlo_rotary_sublayer = {
    .kind = MLO_ROTARY,
    .operand_bits = 16,
    .recognise = mlo_recognise_rotary,
    .given = mlo_given_rotary,
    .scales = mlo_rotary_scales,
    .products = mlo_products_rotary,
    .quantize = mlo_quantize_rotary,
    .type = mlo_type_rotary,
};
