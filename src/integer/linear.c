/* linear: recognises a layer x W (+ bias) and makes it a matrix-vector unit (MVU).
 *
 * in:  MatMul or Gemm with a parameter as its second operand; the Add of a bias behind it.
 * out: an MVU with weights, biases and multipliers of every iteration; it also has a table, where
 *     a function of one value is the layer's only reader.
 *
 * invariant: the mean over the calibration is exact: the bias makes up for what rounding does on
 *     average.
 * cost: one layer's weights in memory at a time.
 */

/* ---- recognising ---------------------------------------------------------- */

/* x W (+ bias): MatMul or Gemm with a parameter as its second operand. */
static const char *mlo_block_linear(
    mlo_recogniser *r, mlo_node *n, const char *bias, const char *out) {
    mlo_sublayer *b = mlo_block_new(r, n, out);
    mlo_form w = mlo_body_form(&r->in, n->input[1]);
    if (!b) return NULL;
    if (w.rank != 2) return mlo_cannot(r, n, "a weight that is not a matrix");
    if (mlo_is_scaled_gemm(n)) return mlo_cannot(r, n, "Gemm with alpha, beta or transA");
    b->in[0] = n->input[0];
    b->n_in = 1;
    b->weight = n->input[1];
    b->transposed = mlo_int(n, "transB", 0) != 0;
    b->bias = bias ? bias : mlo_has_input(n, 2) ? n->input[2] : NULL;
    return mlo_block_finish(r, b);
}

/* Add of a carried value and a parameter behind a MatMul: its bias. */
static const char *mlo_block_bias(mlo_recogniser *r, mlo_node *n) {
    for (size_t i = 0; i < 2; i++) {
        mlo_rounding f;
        int rounded = mlo_is_rounded(&r->in, n->input[i], &f);
        const char *sum = rounded ? f.from : n->input[i];
        mlo_node *p = mlo_made_by(&r->in, sum);
        mlo_value *v = mlo_value_of(r->body, sum);
        if (mlo_is(p, "MatMul") && v->n_uses == 1 && mlo_is_carried(&r->in, p->input[0])
            && !mlo_is_carried(&r->in, p->input[1]) && !mlo_is_carried(&r->in, n->input[1 - i])) {
            mlo_form bias = mlo_body_form(&r->in, n->input[1 - i]);
            mlo_form y = mlo_body_form(&r->in, n->output[0]);
            if (!mlo_form_known(&bias) || mlo_form_count(&bias) != mlo_last_dim(&y)) continue;
            const char *out = mlo_block_linear(r, p, n->input[1 - i], n->output[0]);
            if (out && rounded)
                r->block[r->n_block - 1]->sum_given = mlo_rounding_given(
                    r->m, r->scan, r->body, &f, 1);
            return out;
        }
    }
    return NULL;
}

static const char *mlo_recognise_linear(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    *is = mlo_is(n, "MatMul") || mlo_is(n, "Gemm");
    if (*is) return mlo_block_linear(r, n, NULL, name);
    const char *out = mlo_is(n, "Add") && !mlo_is_inner(r, n) ? mlo_block_bias(r, n) : NULL;
    *is = out || r->m->error.code;
    return out;
}

/* ---- what is given -------------------------------------------------------- */

/* Are all given scales powers of two, if they have to be? */
static int mlo_given_shifts(const mlo_quantizer *q, const mlo_given *g, int64_t count) {
    for (int64_t i = 0; q->pow2 && mlo_given_scaled(g) && i < count; i++)
        if (!mlo_is_pow2(g->scale[i])) return 0;
    return 1;
}
static int mlo_given_linear(mlo_quantizer *q, mlo_sublayer *b) {
    const int64_t channels = mlo_signal_of(q, b->out)->channels;
    b->weight_given = mlo_weight_given(
        q->m, &q->scan, b->weight, b->transposed, channels, &q->r.anew);
    if (mlo_given_shifts(q, b->weight_given, q->scan.iterations * channels))
        return mlo_failed(q->m);
    b->weight_given = NULL;
    if (!q->r.anew.count++) {
        q->r.anew.node = b->node;
        q->r.anew.why = "its scales are no powers of two";
    }
    return mlo_failed(q->m);
}
static int mlo_check_linear(mlo_quantizer *q, const mlo_sublayer *b) {
    return b->weight_given ? mlo_given_check(q, b->out, b->weight_given, 2, 8, 0) : 0;
}

static double mlo_products_linear(mlo_quantizer *q, const mlo_sublayer *b) {
    return (double)(mlo_signal_of(q, b->in[0])->channels * mlo_signal_of(q, b->out)->channels);
}
static const char *mlo_type_linear(const mlo_sublayer *b) {
    (void)b;
    return "linear";
}

/* ---- weights -------------------------------------------------------------- */

typedef struct {
    float *scale;
    int8_t *words; /* the weights, NULL where QuantizeLinear makes them */
    mlo_channel_words c;
    const char *weight;
    int64_t k; /* channels that it reads */
    int64_t n; /* channels that it makes */
} mlo_linear;

/* Is the sum to be what the source says, rather than what the mean over the calibration says? */
static int mlo_linear_fixed(const mlo_sublayer *b) {
    return b->bias_given || mlo_given_scaled(b->weight_given);
}

/* error[n] := the expected square error of column n, at scale[n]. */
static void mlo_weight_errors(const mlo_array *w, const mlo_signal *x, int64_t i,
    const mlo_weight_range *r, const float *scale, float *error) {
    const float *row = (const float *)w->data;
    memset(error, 0, (size_t)w->dims[1] * sizeof *error);
    for (int64_t k = 0; k < w->dims[0]; k++, row += w->dims[1]) {
        int64_t at = i * x->channels + k;
        float shape = x->shape ? x->shape[at] : 1;
        double power = (x->square[at] - 2 * x->zero[at] * x->mean[at] + x->zero[at] * x->zero[at])
            / ((double)shape * (double)shape);
        for (int64_t n = 0; n < w->dims[1]; n++) {
            float v = row[n] * shape, e = v - scale[n] * mlo_rounded_weight(v / scale[n], r);
            error[n] += (float)power * e * e;
        }
    }
}

/* Few bits: clipping what lies far out, and finer steps for the rest, may be better. scale[n]
 * becomes the best of a few parts of itself, down to half; fed: 1: as weights are rounded that make up
 * for each other. */
static int mlo_weight_clipping(mlo_quantizer *q, const mlo_array *w, const mlo_signal *x, int64_t i,
    const mlo_weight_range *r, int fed, float *scale) {
    const int steps = q->pow2 ? 2 : fed ? 17 : 9;
    int64_t columns = w->dims[1];
    float *full = (float *)mlo_scratch(q->m, 4 * (size_t)columns, sizeof *full);
    if (!full) return mlo_failed(q->m);
    float *part = full + columns;
    float *error = part + columns;
    float *least = error + columns;
    for (int step = 0; step < steps && !q->m->error.code; step++) {
        float f = 1 - (float)step / (float)(2 * (steps - 1));
        for (int64_t n = 0; n < columns; n++) {
            if (!step) full[n] = scale[n];
            part[n] = full[n] * f;
        }
        if (fed)
            mlo_feedback(q->m, w, x, i, r, part, NULL, error);
        else
            mlo_weight_errors(w, x, i, r, part, error);
        for (int64_t n = 0; n < columns; n++)
            if (!step || error[n] < least[n]) {
                least[n] = error[n];
                scale[n] = part[n];
            }
    }
    mlo_scratch_free(q->m, full);
    return mlo_failed(q->m);
}

/* The scales of the integer weights, columns of w with rows times shape. A bias must fit 32 bits
 * even where the weights are tiny. */
static int mlo_weight_scales(mlo_quantizer *q, const mlo_sublayer *b, int64_t i, const mlo_array *w,
    const mlo_signal *x, const double *exact, float *most, float *scale) {
    const mlo_weight_range r = mlo_weight_range_of(q, b);
    int64_t columns = w->dims[1];
    for (int64_t n = 0; mlo_given_scaled(b->weight_given) && n < columns; n++)
        scale[n] = (float)b->weight_given->scale[i * columns + n];
    if (mlo_given_scaled(b->weight_given)) return 0;
    memset(most, 0, (size_t)columns * sizeof *most);
    mlo_column_most(q->m, w, x->shape ? x->shape + i * w->dims[0] : NULL, most);
    for (int64_t n = 0; n < columns; n++)
        scale[n] = (float)mlo_step(q, most[n] > 1e-30f ? (double)most[n] / (double)r.hi : 1);
    if (r.clipped && mlo_weight_clipping(q, w, x, i, &r, mlo_is_searched(q, b), scale))
        return mlo_failed(q->m);
    for (int64_t n = 0; n < columns; n++) {
        double least = fabs(exact[n]) / x->narrow_scale[i] / (1 << 29);
        if ((double)scale[n] < least) scale[n] = (float)mlo_step(q, least);
    }
    return 0;
}

/* mlo_rounded_weight, a row's piece at a time. */
static void mlo_integer_mean(const float *MLO_RESTRICT row, float shape,
    const float *MLO_RESTRICT inverse, const mlo_weight_range *r, double mean,
    double *MLO_RESTRICT sum, int64_t n) {
    const float lo = r->lo, hi = r->hi, magic = 12582912.0f;
    for (int64_t i = 0; i < n; i++) {
        float v = row[i] * shape * inverse[i];
        v = v < lo ? lo : v > hi ? hi : v;
        v += magic;
        sum[i] += mean * (double)(v - magic);
    }
}

/* The mean of operand k as an integer, which is that of the floats and `more`; of a layer that is fixed: what it
 * is off by its zero. */
static double mlo_operand_mean(const mlo_signal *x, int64_t i, int64_t k, double more, int fixed) {
    const int64_t at = i * x->channels + k;
    return ((fixed ? 0 : x->mean[at] + x->drift[at] + more) - x->zero[at])
        / (mlo_shape_at(x, at) * x->narrow_scale[i]);
}

/* Means of a weight's columns, some columns a piece. */
typedef struct {
    const mlo_sublayer *b;
    const mlo_array *w;
    const mlo_signal *x;
    int64_t i; /* iteration */
    mlo_weight_range range;
    float *inverse; /* [n]: of the scales */
    double *sum; /* [n] */
    int pieces;
} mlo_column_means;

static void mlo_column_means_do(const mlo *m, mlo_column_means *c, mlo_piece piece) {
    c->pieces = mlo_pieces(m, c->w->dims[1] / 64, 2.0 * (double)mlo_array_count(c->w));
    mlo_pieces_do(m, piece, c, c->pieces);
}

/* The first column of a piece. */
static int64_t mlo_column_means_from(const mlo_column_means *c, int piece) {
    const int64_t lanes = mlo_parts(c->w->dims[1], MLO_LANES);
    return mlo_min(c->w->dims[1], mlo_piece_begins(lanes, piece, c->pieces) * MLO_LANES);
}

static void mlo_integer_means_piece(void *of, int piece) {
    const mlo_column_means *c = (const mlo_column_means *)of;
    const mlo_signal *x = c->x;
    const int64_t columns = c->w->dims[1], end = mlo_column_means_from(c, piece + 1);
    const int fixed = mlo_linear_fixed(c->b);
    const float *row = (const float *)c->w->data;
    for (int64_t k = 0; k < c->w->dims[0]; k++, row += columns) {
        const float shape = x->shape ? x->shape[c->i * x->channels + k] : 1;
        const double mean = mlo_operand_mean(x, c->i, k, 0, fixed);
        int64_t n = mlo_column_means_from(c, piece);
        for (; n + MLO_LANES <= end; n += MLO_LANES)
            mlo_integer_mean(
                row + n, shape, c->inverse + n, &c->range, mean, c->sum + n, MLO_LANES);
        mlo_integer_mean(row + n, shape, c->inverse + n, &c->range, mean, c->sum + n, end - n);
    }
}

/* sum[n] += the weight as an integer times the mean of the operand as an integer; of a layer that
 * is fixed: times what the operand is off by its zero. inverse: room for as many. */
static void mlo_integer_means(const mlo *m, const mlo_sublayer *b, const mlo_array *w,
    const mlo_signal *x, int64_t i, const mlo_weight_range *r, const float *scale, float *inverse,
    double *sum) {
    mlo_column_means c = { b, w, x, i, *r, inverse, sum, 0 };
    for (int64_t n = 0; n < w->dims[1]; n++) inverse[n] = 1 / scale[n];
    mlo_column_means_do(m, &c, mlo_integer_means_piece);
}

/* The weights themselves and their scales, and sum[n] += them times the operands' means. */
static int mlo_linear_words(mlo_quantizer *q, const mlo_sublayer *b, const mlo_linear *l, int64_t i,
    const mlo_array *w, const mlo_signal *x, float *scale, double *sum) {
    const mlo_weight_range r = mlo_weight_range_of(q, b);
    const int64_t each = l->k * l->n;
    const mlo_fed *fed = b->fed;
    int8_t *word = l->words + i * each;
    if (fed) memcpy(word, fed->word + i * each, (size_t)each);
    if (fed) memcpy(scale, fed->scale + i * l->n, (size_t)l->n * sizeof *scale);
    if (!fed) MLO_TRY(mlo_feedback(q->m, w, x, i, &r, scale, word, NULL));
    for (int64_t k = 0; k < l->k; k++) {
        const double more = fed ? fed->off[i * l->k + k] : 0;
        const double mean = mlo_operand_mean(x, i, k, more, 0);
        for (int64_t n = 0; n < l->n; n++) sum[n] += mean * *word++;
    }
    return 0;
}

static void mlo_exact_mean(
    const float *MLO_RESTRICT row, double mean, double *MLO_RESTRICT sum, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] += mean * (double)row[i];
}

static void mlo_exact_means_piece(void *of, int piece) {
    const mlo_column_means *c = (const mlo_column_means *)of;
    const int64_t rows = c->w->dims[0], columns = c->w->dims[1];
    const int64_t end = mlo_column_means_from(c, piece + 1);
    const float *row = (const float *)c->w->data;
    for (int64_t k = 0; k < rows; k++, row += columns) {
        const double mean = c->x->mean[c->i * rows + k];
        int64_t n = mlo_column_means_from(c, piece);
        for (; n + MLO_LANES <= end; n += MLO_LANES)
            mlo_exact_mean(row + n, mean, c->sum + n, MLO_LANES);
        mlo_exact_mean(row + n, mean, c->sum + n, end - n);
    }
}

/* exact[n] := the mean of the result, of a layer that is fixed: its bias. */
static void mlo_exact_means(const mlo *m, const mlo_sublayer *b, int64_t i, const mlo_array *w,
    const mlo_array *bias, const mlo_signal *x, double *exact) {
    const int64_t columns = w->dims[1];
    mlo_column_means c = { .b = b, .w = w, .x = x, .i = i, .sum = exact };
    for (int64_t n = 0; n < columns; n++)
        exact[n] = bias ? mlo_given_rounded(b->bias_given, i * columns + n,
                              (double)((const float *)bias->data)[n])
                        : 0;
    if (!mlo_linear_fixed(b)) mlo_column_means_do(m, &c, mlo_exact_means_piece);
}

/* One iteration's numbers. w: [K,N] float, bias: [N] or NULL. */
static int mlo_linear_numbers(mlo_quantizer *q, const mlo_sublayer *b, mlo_linear *l, int64_t i,
    const mlo_array *w, const mlo_array *bias, const mlo_signal *x, const mlo_form_made *y) {
    mlo *m = q->m;
    if (bias && (bias->dtype != MLO_FLOAT || mlo_array_count(bias) != l->n))
        return mlo_fail(m, MLO_E_TYPE, b->node, "a bias of type %s; %lld float32 are supported",
            mlo_dtype_name(bias->dtype), (long long)l->n);
    double *exact = (double *)mlo_scratch(m, (size_t)l->n, sizeof *exact);
    double *sum = (double *)mlo_scratch(m, (size_t)l->n, sizeof *sum);
    double x_scale = x->narrow_scale[i];
    float *most = (float *)mlo_scratch(m, (size_t)l->n, sizeof *most), *scale = l->scale + i * l->n;
    int ready = exact && sum && most;
    if (ready) {
        const mlo_weight_range r = mlo_weight_range_of(q, b);
        mlo_exact_means(m, b, i, w, bias, x, exact);
        /* y's mean, counted from its zero */
        for (int64_t n = 0; n < l->n; n++) {
            sum[n] = 0;
            if (y->zero) exact[n] -= y->zero[i * l->n + n];
        }
        ready = b->fed || !mlo_weight_scales(q, b, i, w, x, exact, most, scale);
        if (ready && l->words)
            ready = !mlo_linear_words(q, b, l, i, w, x, scale, sum);
        else if (ready)
            mlo_integer_means(m, b, w, x, i, &r, scale, most, sum);
    }
    for (int64_t n = 0; ready && n < l->n; n++) {
        double s = (double)scale[n] * x_scale;
        double shape = y->shape ? (double)y->shape[i * l->n + n] : 1;
        double acc = floor(exact[n] / s - sum[n] + 0.5);
        if (!(fabs(acc) < 2147483648.0)) {
            mlo_fail(m, MLO_E_UNSUPPORTED, b->node,
                "the bias of output channel %lld is %g in steps of %g, beyond 32 bits; coarser "
                "scales of the weights or of '%s' are needed",
                (long long)n, exact[n], s, x->name);
            break;
        }
        l->c.bias[i * l->n + n] = (int32_t)acc;
        int64_t mult;
        int shift;
        if (mlo_ratio(q, b->node, s / (y->scale[i] * shape), 62, &mult, &shift)) break;
        l->c.mult[i * l->n + n] = (int32_t)mult;
        l->c.shift[i * l->n + n] = shift;
    }
    mlo_scratch_free(m, exact);
    mlo_scratch_free(m, sum);
    mlo_scratch_free(m, most);
    return mlo_failed(m);
}

/* weight := op(weight, other) in the new body. */
static int mlo_weight_node(mlo_quantizer *q, const char *op, const char **weight, const char *other,
    const char *suffix, const char *out) {
    static const int64_t swap[] = { 1, 0 };
    mlo *m = q->m;
    const char *name = mlo_format(m, "%s_%s", out, suffix);
    mlo_node *n = name ? mlo_node_new(m, op, name) : NULL;
    if (!n || mlo_node_input(m, n, *weight)
        || (other ? mlo_node_input(m, n, other) : mlo_attr_ints(m, n, "perm", swap, 2))
        || mlo_node_output(m, n, name))
        return mlo_failed(m);
    *weight = name;
    return mlo_graph_add(m, q->body, n);
}

/* Clip to the integers a weight may be, where INT8 holds more. */
static int mlo_clip_node(mlo_quantizer *q, const mlo_sublayer *b, const char **weight) {
    mlo *m = q->m;
    const mlo_weight_range r = mlo_weight_range_of(q, b);
    if (!r.clipped) return 0;
    const char *name = mlo_format(m, "%s_wc", b->out);
    mlo_node *n = name ? mlo_node_new(m, "Clip", name) : NULL;
    if (!n || mlo_node_input(m, n, *weight) || mlo_node_output(m, n, name)) return mlo_failed(m);
    for (int i = 0; i < 2; i++) {
        const char *bound = mlo_format(m, "%s_w_%s", b->out, i ? "hi" : "lo");
        int8_t *data = bound ? (int8_t *)mlo_alloc(m, 1, 1) : NULL;
        if (!data) return mlo_failed(m);
        *data = (int8_t)(i ? r.hi : r.lo);
        if (mlo_graph_init(m, q->body, mlo_tensor_new(m, bound, MLO_INT8, NULL, 0, data, 1))
            || mlo_node_input(m, n, bound))
            return mlo_failed(m);
    }
    *weight = name;
    return mlo_graph_add(m, q->body, n);
}

/* QuantizeLinear over the weight that was there, times the shape of what it reads. */
static int mlo_rounded_parameters(
    mlo_quantizer *q, const mlo_sublayer *b, mlo_linear *l, mlo_signal *x) {
    mlo *m = q->m;
    const char *scale = mlo_format(m, "%s_w_scale", b->out);
    const char *zero = mlo_format(m, "%s_w_zero", b->out);
    const char *weight = b->weight;
    if (m->error.code || mlo_shape_parameter(q, x)) return mlo_failed(m);
    l->scale = (float *)mlo_parameter(q, scale, MLO_FLOAT, 1, &l->n);
    void *zeros = mlo_alloc(m, (size_t)l->n, 1);
    if (m->error.code
        || mlo_graph_init(
            m, q->body, mlo_tensor_new(m, zero, MLO_INT8, &l->n, 1, zeros, (size_t)l->n)))
        return mlo_failed(m);
    if (b->transposed && mlo_weight_node(q, "Transpose", &weight, NULL, "wt", b->out))
        return mlo_failed(m);
    if (x->shape && mlo_weight_node(q, "Mul", &weight, x->shape_name, "ws", b->out))
        return mlo_failed(m);
    mlo_node *n = mlo_node_new(m, "QuantizeLinear", l->weight);
    const char *in[] = { weight, scale, zero };
    return !n || mlo_inputs(m, n, in, 3) || mlo_node_output(m, n, l->weight)
            || mlo_attr_int(m, n, "axis", 1) || mlo_graph_add(m, q->body, n)
        ? mlo_failed(m)
        : mlo_clip_node(q, b, &l->weight);
}

/* Weights that the model did not have: every iteration's, as integers. */
static int mlo_word_parameters(mlo_quantizer *q, mlo_linear *l) {
    const int64_t dims[] = { l->k, l->n };
    l->words = (int8_t *)mlo_parameter(q, l->weight, MLO_INT8, 2, dims);
    l->scale = MLO_NEW_N(q->m, float, (size_t)(q->scan.iterations * l->n));
    return mlo_failed(q->m);
}

/* The parameters of a linear layer in the new body: its weights; lists of N numbers. */
static int mlo_linear_parameters(
    mlo_quantizer *q, const mlo_sublayer *b, mlo_linear *l, mlo_signal *x) {
    mlo *m = q->m;
    mlo_form w = mlo_body_form(&q->r.in, b->weight);
    l->k = w.dims[b->transposed];
    l->n = w.dims[!b->transposed];
    l->words = NULL;
    l->weight = mlo_format(m, "%s_w8", b->out);
    if (m->error.code || mlo_channel_parameters(q, b->out, l->n, &l->c)) return mlo_failed(m);
    if (l->k != x->channels)
        return mlo_fail(m, MLO_E_SHAPE, b->node, "a weight of %lld rows for %lld channels",
            (long long)l->k, (long long)x->channels);
    return mlo_is_fed_back(q, b) ? mlo_word_parameters(q, l) : mlo_rounded_parameters(q, b, l, x);
}

static int mlo_linear_fill(mlo_quantizer *q, const mlo_sublayer *b, mlo_linear *l,
    const mlo_signal *x, const mlo_form_made *y) {
    for (int64_t i = 0; i < q->scan.iterations && !mlo_is_sketch(q->m) && !q->m->error.code; i++) {
        mlo_array *w = mlo_weight(q, b, i);
        mlo_array *bias = w && b->bias ? mlo_scan_value(q->m, &q->scan, b->bias, i) : NULL;
        if (w && (bias || !b->bias)) mlo_linear_numbers(q, b, l, i, w, bias, x, y);
        mlo_done(q->m, (double)(i + 1) / (double)q->scan.iterations);
        mlo_array_free(q->m, w);
        mlo_array_free(q->m, bias);
    }
    return mlo_failed(q->m);
}

/* ---- making it ------------------------------------------------------------ */

/* What mlo_linear_numbers is to make of the sum alone: what is fixed of it. The zeros are scratch. */
static mlo_form_made mlo_sum_form(mlo_quantizer *q, const mlo_given *g, int64_t columns) {
    double *zero = (double *)mlo_scratch(
        q->m, (size_t)(q->scan.iterations * columns), sizeof *zero);
    mlo_form_made y = { g->scale, zero, NULL, MLO_INT16, g->bits };
    for (int64_t k = 0; zero && k < q->scan.iterations * columns; k++)
        zero[k] = mlo_given_zero(g, k / columns);
    return y;
}

/* How much finer than the steps of a sum its table can be, so that 16 bits hold all sums and biases. */
static int mlo_sum_fineness(
    mlo_quantizer *q, const mlo_sublayer *b, int64_t columns, const double *zero, double *fine) {
    double most = 1;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        double step = b->sum_given->scale[i];
        double far = fabs(mlo_given_zero(b->sum_given, i)) / step
            + ldexp(1, b->sum_given->bits - 1);
        mlo_array *bias = mlo_scan_value(q->m, &q->scan, b->bias, i);
        if (!bias) return mlo_failed(q->m);
        for (int64_t n = 0; n < columns && bias->dtype == MLO_FLOAT; n++) {
            double v = fabs((double)((float *)bias->data)[n] - (zero ? zero[i * columns + n] : 0))
                / step;
            if (v > far) far = v;
        }
        if (far > most) most = far;
        mlo_array_free(q->m, bias);
    }
    *fine = floor(32767 / most);
    return *fine >= 1 ? 0
                      : mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
                            "a bias %g times the steps of the sum it is added to", most);
}

/* What the hardware need not store of an INT8 weight. */
static int mlo_weight_bits_meta(mlo_quantizer *q, const mlo_sublayer *b, mlo_node *n) {
    int bits = mlo_weight_bits(q, b);
    return bits == 8 ? 0
                     : mlo_meta_put(q->m, &n->meta, &n->n_meta, mlo_key_weight_bits,
                           mlo_format(q->m, "%d", bits));
}

/* A sum that is rounded before its bias is added: the table of an MVUTable holds the rounded sum
 * in finer steps, a Requant adds the bias. */
static int mlo_quantize_sum(mlo_quantizer *q, const mlo_sublayer *b, const mlo_sublayer *unary,
    mlo_signal *x, mlo_signal *y) {
    mlo *m = q->m;
    const mlo_given *g = b->sum_given;
    const char *out = b->out;
    mlo_form_made made = mlo_made_at(q, y), at = mlo_sum_form(q, g, y->channels);
    mlo_sublayer bare = *b;
    mlo_linear l;
    mlo_channel_words c;
    double fine = 1;
    bare.bias = NULL;
    bare.bias_given = NULL;
    const char *sum = mlo_format(m, "%s_sum", out), *name = mlo_format(m, "%s_sum_table", out);
    const int64_t size = (int64_t)1 << g->bits;
    int16_t *table = name ? (int16_t *)mlo_parameter(q, name, MLO_INT16, 1, &size) : NULL;
    double *steps = MLO_NEW_N(m, double, (size_t)q->scan.iterations);
    bare.out = sum;
    const int failed = m->error.code || mlo_sum_fineness(q, b, y->channels, made.zero, &fine)
        || mlo_linear_parameters(q, &bare, &l, x) || mlo_linear_fill(q, &bare, &l, x, &at);
    mlo_scratch_free(m, (void *)(uintptr_t)at.zero);
    if (failed) return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        steps[i] = g->scale[i] / fine;
        for (int64_t k = 0; k < size; k++)
            table[i * size + k] = (int16_t)(fine
                * ((double)(k - size / 2) + rint(mlo_given_zero(g, i) / g->scale[i])));
    }
    mlo_node *n = mlo_kernel_node(q, &mlo_mvu_table_kernel, b, sum, MLO_INT16, 16, steps);
    const char *in[] = { x->narrow_name, l.weight, l.c.name[0], l.c.name[1], l.c.name[2], name };
    if (!n || mlo_weight_bits_meta(q, b, n) || mlo_inputs(m, n, in, 6)
        || mlo_channel_parameters(q, out, y->channels, &c))
        return mlo_failed(m);
    mlo_index_bounds(n, g->bits);
    const char *in2[] = { sum, c.name[0], c.name[1], c.name[2] };
    n = mlo_requantizing_node(q, &mlo_requant_kernel, b, unary, &made, in2, 4);
    for (int64_t i = 0; n && i < q->scan.iterations; i++) {
        mlo_array *bias = mlo_scan_value(m, &q->scan, b->bias, i);
        for (int64_t k = i * y->channels; bias && k < (i + 1) * y->channels; k++) {
            int64_t mult;
            int shift;
            if (mlo_ratio(q, n,
                    steps[i] / (made.scale[i] * (made.shape ? (double)made.shape[k] : 1)), 40,
                    &mult, &shift))
                break;
            c.bias[k] = (int32_t)rint(((double)((float *)bias->data)[k - i * y->channels]
                                          - (made.zero ? made.zero[k] : 0))
                / steps[i]);
            c.mult[k] = (int32_t)mult;
            c.shift[k] = shift;
        }
        mlo_array_free(m, bias);
    }
    return mlo_failed(m);
}

static int mlo_quantize_linear(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_sublayer *unary = mlo_fused_unary(q, b);
    const mlo_sublayer *last = unary ? unary : b;
    mlo_signal *x = mlo_signal_of(q, b->in[0]);
    mlo_signal *pre = mlo_signal_of(q, b->out);
    mlo_signal *y = mlo_signal_of(q, last->out);
    mlo_form_made at = mlo_made_at(q, pre);
    mlo_linear l;
    if (b->sum_given)
        return mlo_quantize_sum(q, b, unary, x, pre) ? mlo_failed(m)
                                                     : mlo_narrow(q, last, last->out, y);
    if (mlo_linear_parameters(q, b, &l, x) || mlo_linear_fill(q, b, &l, x, &at))
        return mlo_failed(m);
    const char *in[] = { x->narrow_name, l.weight, l.c.name[0], l.c.name[1], l.c.name[2] };
    mlo_node *n = mlo_requantizing_node(q, &mlo_mvu_kernel, b, unary, &at, in, 5);
    if (!n || mlo_weight_bits_meta(q, b, n)) return mlo_failed(m);
    return mlo_narrow(q, last, last->out, y);
}

static const mlo_sublayer_kind mlo_linear_sublayer = {
    .kind = MLO_LINEAR,
    .recognise = mlo_recognise_linear,
    .given = mlo_given_linear,
    .check = mlo_check_linear,
    .products = mlo_products_linear,
    .quantize = mlo_quantize_linear,
    .type = mlo_type_linear,
};
