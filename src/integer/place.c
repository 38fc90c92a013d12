/* place: recognises a value for each position that is added to the tokens inside of a layer, and makes
 * it a Place of the stream.
 *
 * in:  an Add of a value of the loop and a parameter of its tokens and channels: position embeddings in
 *     every layer. DETR adds them in front of the projections of queries and keys, YOLOS between
 *     layers. What is the same for all tokens is affine.c's.
 * out: the kernel Place, whose table has the positions' values in steps of the stream, and what
 *     centres the channels of a narrow result.
 *
 * invariant: a row of the table for each token of a frame, whatever the layout in the source.
 * error: half a step of the stream, and half a step of the result.
 * cost: T C numbers an iteration.
 */

/* ---- recognising ---------------------------------------------------------- */

/* Is it a parameter of every token and channel of a form? */
static int mlo_is_per_place(const mlo_recogniser *r, const char *name, const mlo_form *y) {
    const mlo_form f = mlo_body_form(&r->in, name);
    return !mlo_is_carried(&r->in, name) && mlo_form_known(&f) && mlo_tokens_of(&f) > 1
        && mlo_form_count(&f) == mlo_form_count(y) && mlo_is_parameter(r->scan, r->body, name, 0);
}

static const char *mlo_recognise_place(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    const mlo_form y = mlo_body_form(&r->in, name);
    int k = 0; /* the operand that is carried */
    if (mlo_is(n, "Add")) k = !mlo_is_carried(&r->in, n->input[0]);
    *is = mlo_is(n, "Add") && mlo_is_carried(&r->in, n->input[k])
        && mlo_is_per_place(r, n->input[1 - k], &y);
    mlo_sublayer *b = *is ? mlo_block_new(r, n, name) : NULL;
    if (!b) return NULL;
    b->in[0] = n->input[k];
    b->n_in = 1;
    b->bias = n->input[1 - k];
    return mlo_block_finish(r, b);
}

static const char *mlo_type_place(const mlo_sublayer *b) {
    (void)b;
    return "place";
}

/* ---- making it ------------------------------------------------------------ */

/* The values of all positions in an iteration. NULL: failed. */
static mlo_array *mlo_place_values(mlo_quantizer *q, const mlo_sublayer *b, int64_t i) {
    mlo_array *a = mlo_scan_value(q->m, &q->scan, b->bias, i);
    if (!a || a->dtype == MLO_FLOAT) return a;
    mlo_fail(q->m, MLO_E_TYPE, b->node,
        "'%s', which is added to the tokens, is %s; float32 is supported", b->bias,
        mlo_dtype_name(a->dtype));
    mlo_array_free(q->m, a);
    return NULL;
}

/* The table's numbers have 16 bits: steps of the stream are no finer than those let be. What centres a
 * channel of a narrow result, which is in them, too, is at most what both operands reach. */
static int mlo_place_coarsen(mlo_quantizer *q, const mlo_sublayer *b, int64_t i) {
    mlo_signal *x = mlo_signal_of(q, b->in[0]);
    const mlo_signal *y = mlo_signal_of(q, b->out);
    mlo_array *a = mlo_place_values(q, b, i);
    double most = 0;
    for (int64_t e = 0; a && e < mlo_array_count(a); e++)
        most = fmax(most, fabs((double)((const float *)a->data)[e]));
    mlo_array_free(q->m, a);
    const double least = (mlo_made_at(q, y).zero ? 2 * (most + x->most[i]) : most) / INT16_MAX;
    if (x->wide_scale[i] < least && !mlo_given_scaled(mlo_wide_given(q, x)))
        x->wide_scale[i] = mlo_step(q, least);
    return mlo_failed(q->m);
}

/* A number of the table: the position's value, less the zero of the result's channel. */
static int mlo_place_number(
    mlo_quantizer *q, const mlo_sublayer *b, double value, double step, int16_t *to) {
    const double v = rint(value / step);
    if (!(fabs(v) <= INT16_MAX))
        return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
            "%g is added to a token whose channels have steps of %g; up to %d steps are supported: "
            "give '%s' coarser ones",
            value, step, INT16_MAX, b->in[0]);
    *to = (int16_t)v;
    return 0;
}

/* The words of iteration i. */
static int mlo_place_numbers(mlo_quantizer *q, const mlo_sublayer *b, const mlo_form_made *y,
    int64_t i, int16_t *table, const mlo_channel_words *to) {
    const mlo_signal *x = mlo_signal_of(q, b->in[0]);
    mlo_array *a = mlo_place_values(q, b, i);
    const int64_t n = a ? mlo_array_count(a) : 0;
    for (int64_t e = 0; e < n && !q->m->error.code; e++) {
        const double value = (double)((const float *)a->data)[e];
        const int64_t at = i * x->channels + e % x->channels;
        mlo_place_number(
            q, b, value - (y->zero ? y->zero[at] : 0), x->wide_scale[i], &table[i * n + e]);
    }
    mlo_array_free(q->m, a);
    for (int64_t c = 0; c < x->channels && !q->m->error.code; c++) {
        const int64_t at = i * x->channels + c;
        const double step = y->scale[i] * (y->shape ? (double)y->shape[at] : 1);
        int64_t mult;
        int shift;
        MLO_TRY(mlo_ratio(q, b->node, x->wide_scale[i] / step, 40, &mult, &shift));
        to->mult[at] = (int32_t)mult;
        to->shift[at] = shift;
    }
    return mlo_failed(q->m);
}

static int mlo_quantize_place(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    const mlo_signal *x = mlo_signal_of(q, b->in[0]);
    mlo_signal *y = mlo_signal_of(q, b->out);
    const mlo_form_made made = mlo_made_at(q, y);
    const mlo_form f = mlo_body_form(&q->r.in, b->out);
    const int64_t shape[] = { mlo_form_count(&f) / x->channels, x->channels };
    const char *name = mlo_format(m, "%s_places", b->out);
    int16_t *table = name ? (int16_t *)mlo_parameter(q, name, MLO_INT16, 2, shape) : NULL;
    mlo_channel_words words;
    if (!table || mlo_channel_parameters(q, b->out, x->channels, &words)) return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++)
        MLO_TRY(mlo_place_numbers(q, b, &made, i, table, &words));
    mlo_node *n = mlo_kernel_node(
        q, &mlo_place_kernel, b, b->out, made.type, made.bits, made.scale);
    const char *in[] = { x->wide_name, name, words.name[1], words.name[2] };
    if (!n || mlo_inputs(m, n, in, 4)) return mlo_failed(m);
    return mlo_narrow(q, b, b->out, y);
}

static const mlo_sublayer_kind mlo_place_sublayer = {
    .kind = MLO_OTHER,
    .reads_wide = 1,
    .recognise = mlo_recognise_place,
    .coarsen = mlo_place_coarsen,
    .quantize = mlo_quantize_place,
    .type = mlo_type_place,
};
