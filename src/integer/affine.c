/* affine: recognises a factor and an offset for each channel and makes them a Requant of the stream.
 *
 * in:  y = x * w + b, w and b parameters of a token's channels; one of the two may be absent, or a
 *     number. What stands in place of a norm in MobileBERT and ResMLP. Where x is a linear layer's
 *     or a norm's own result, these have taken w and b (respell_linear.c, respell_norm.c).
 * out: the kernel Requant, which has a multiplier and an offset for each channel anyway.
 *
 * invariant: every factor is above 0, as the kernel's multipliers are.
 * error: half a step.
 */

/* ---- recognising ---------------------------------------------------------- */

/* The carried operand of an elementwise node; *by takes the other one. NULL: there is no such pair. */
static const char *mlo_affine_operand(
    mlo_recogniser *r, const mlo_node *n, const char *op, const char **by) {
    const mlo_form y = mlo_body_form(&r->in, n ? n->output[0] : NULL);
    for (size_t k = 0; mlo_is(n, op) && k < 2; k++) {
        const char *other = n->input[1 - k];
        if (!mlo_is_carried(&r->in, n->input[k]) || mlo_is_carried(&r->in, other)) continue;
        if (!mlo_is_number(&r->in, other) && !mlo_is_per_channel(&r->in, other, mlo_last_dim(&y)))
            continue;
        *by = other;
        return n->input[k];
    }
    return NULL;
}

static const char *mlo_block_affine(
    mlo_recogniser *r, mlo_node *n, const char *out, const char *x, const char *w, const char *b) {
    mlo_sublayer *s = mlo_block_new(r, n, out);
    if (!s) return NULL;
    s->in[0] = x;
    s->n_in = 1;
    s->weight = w;
    s->bias = b;
    return mlo_block_finish(r, s);
}

/* Is it the stream of a layer: the carried value, a sum of two, a norm's result? A factor behind anything else is part
 * of a function, or of a projection. */
static int mlo_is_stream(const mlo_recogniser *r, const char *x) {
    const mlo_node *n = x ? mlo_made_by(&r->in, x) : NULL;
    if (!n) return x != NULL;
    return mlo_is_norm(&r->in, n)
        || (mlo_is(n, "Add") && mlo_is_carried(&r->in, n->input[0])
            && mlo_is_carried(&r->in, n->input[1]));
}

static const char *mlo_recognise_affine(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    const char *w = NULL, *b = NULL, *sum = mlo_affine_operand(r, n, "Add", &b);
    const mlo_value *v = mlo_value_of(r->body, sum);
    const char *x = !sum      ? mlo_affine_operand(r, n, "Mul", &w)
        : v && v->n_uses == 1 ? mlo_affine_operand(r, mlo_made_by(&r->in, sum), "Mul", &w)
                              : NULL;
    *is = (w && !mlo_is_number(&r->in, w)) || (b && !mlo_is_number(&r->in, b))
        || (w && !b && mlo_is_stream(r, x));
    return *is ? mlo_block_affine(r, n, name, x ? x : sum, w, b) : NULL;
}

static const char *mlo_type_affine(const mlo_sublayer *b) {
    (void)b;
    return "affine";
}

/* ---- making it ------------------------------------------------------------ */

/* A parameter in an iteration, of `channels` or a number; NULL with no error: there is none. */
static mlo_array *mlo_affine_parameter(
    mlo_quantizer *q, const mlo_sublayer *b, const char *name, int64_t channels, int64_t i) {
    mlo_array *a = name ? mlo_scan_value(q->m, &q->scan, name, i) : NULL;
    if (a && (a->dtype != MLO_FLOAT || (mlo_array_count(a) != channels && mlo_array_count(a) != 1)))
        mlo_fail(q->m, MLO_E_TYPE, b->node, "'%s' is no float32 for each of %lld channels", name,
            (long long)channels);
    return a;
}

static double mlo_affine_at(const mlo_array *a, int64_t c, double absent) {
    return a ? (double)((const float *)a->data)[mlo_array_count(a) > 1 ? c : 0] : absent;
}

/* The offset of a channel in x itself: y = (x + offset) * w. */
static double mlo_affine_offset(const mlo_array *w, const mlo_array *b, int64_t c, double zero) {
    return (mlo_affine_at(b, c, 0) - zero) / mlo_affine_at(w, c, 1);
}

/* Offsets have as many bits as the stream: its steps are no finer than the largest of them lets be. */
static int mlo_affine_coarsen(mlo_quantizer *q, const mlo_sublayer *b, int64_t i) {
    mlo_signal *x = mlo_signal_of(q, b->in[0]);
    mlo_array *w = mlo_affine_parameter(q, b, b->weight, x->channels, i);
    mlo_array *o = q->m->error.code ? NULL : mlo_affine_parameter(q, b, b->bias, x->channels, i);
    for (int64_t c = 0; !q->m->error.code && c < x->channels; c++) {
        const double least = fabs(mlo_affine_offset(w, o, c, 0)) / mlo_wide_top(x);
        if (mlo_affine_at(w, c, 1) > 0 && x->wide_scale[i] < least
            && !mlo_given_scaled(mlo_wide_given(q, x)))
            x->wide_scale[i] = mlo_step(q, least);
    }
    mlo_array_free(q->m, w);
    mlo_array_free(q->m, o);
    return mlo_failed(q->m);
}

/* The words of iteration i: y = (x + bias) * mult >> shift, x and y in steps of theirs. */
static int mlo_affine_numbers(mlo_quantizer *q, const mlo_sublayer *b, const mlo_signal *x,
    const mlo_form_made *y, int64_t i, const mlo_array *w, const mlo_array *o,
    const mlo_channel_words *to) {
    for (int64_t c = 0; c < x->channels && !q->m->error.code; c++) {
        const int64_t at = i * x->channels + c;
        const double factor = mlo_affine_at(w, c, 1), step = factor * x->wide_scale[i];
        const double offset = mlo_affine_offset(w, o, c, y->zero ? y->zero[at] : 0)
            / x->wide_scale[i];
        int64_t mult;
        int shift;
        if (!(factor > 0) || fabs(rint(offset)) > mlo_wide_top(x))
            return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
                "iteration %lld: channel %lld of the residual stream times %g, plus %g; factors "
                "above 0, and offsets of up to %g steps of the stream, are supported",
                (long long)i, (long long)c, factor, mlo_affine_at(o, c, 0), mlo_wide_top(x));
        MLO_TRY(mlo_ratio(q, b->node, step / (y->scale[i] * (y->shape ? (double)y->shape[at] : 1)),
            40, &mult, &shift));
        to->bias[at] = (int32_t)rint(offset);
        to->mult[at] = (int32_t)mult;
        to->shift[at] = shift;
    }
    return mlo_failed(q->m);
}

static int mlo_quantize_affine(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    const mlo_signal *x = mlo_signal_of(q, b->in[0]);
    mlo_signal *y = mlo_signal_of(q, b->out);
    const mlo_form_made made = mlo_made_at(q, y);
    mlo_channel_words words;
    if (mlo_channel_parameters(q, b->out, x->channels, &words)) return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations && !m->error.code; i++) {
        mlo_array *w = mlo_affine_parameter(q, b, b->weight, x->channels, i);
        mlo_array *o = m->error.code ? NULL : mlo_affine_parameter(q, b, b->bias, x->channels, i);
        if (!m->error.code) mlo_affine_numbers(q, b, x, &made, i, w, o, &words);
        mlo_array_free(m, w);
        mlo_array_free(m, o);
    }
    mlo_node *n = m->error.code
        ? NULL
        : mlo_kernel_node(q, &mlo_requant_kernel, b, b->out, made.type, made.bits, made.scale);
    const char *in[] = { x->wide_name, words.name[0], words.name[1], words.name[2] };
    if (!n || mlo_inputs(m, n, in, 4)) return mlo_failed(m);
    return mlo_narrow(q, b, b->out, y);
}

static const mlo_sublayer_kind mlo_affine_sublayer = {
    .kind = MLO_OTHER,
    .reads_wide = 1,
    .recognise = mlo_recognise_affine,
    .coarsen = mlo_affine_coarsen,
    .quantize = mlo_quantize_affine,
    .type = mlo_type_affine,
};
