/* quantize: one float loop becomes integers.
 *
 * in:  a rolled float model, and samples to calibrate with (else drawn from the declared types,
 *     with a warning).
 * out: the same model, its loop's body made of mlo kernels; Quantize before the loop and
 *      Dequantize behind it. Weights stay references: the body says QuantizeLinear(W, scale), and
 *      lower evaluates it one layer at a time.
 * invariant: the Verilog will depend on shapes and widths alone: every scale, multiplier, shift,
 *      table and bias is a per-iteration parameter, whether or not layers agree about it.
 * example: a MatMul + Add of a BERT layer becomes
 *      w8 = QuantizeLinear(w, w_scale, 0)      y = mlo.MVU(x8, w8, bias, mult, shift)
 *      (weights of fewer bits: Clip behind it; they travel as INT8, and as what they are to the
 *      hardware)
 * cost: two float evaluations per sample; one layer's weights in memory at a time.
 *
 * What an integer stands for is decided in scales.c; here it becomes numbers. A linear layer that
 * reads y[c] = (x[c] - zero[c]) / (scale shape[c]) multiplies its weights' rows by the shape. Its
 * bias is chosen so that the mean over the calibration is exact: it takes the zeros times the
 * weights, and what rounding the weights and the operands does on average.
 */

/* ---- making the new body -------------------------------------------------- */

/* A number as text that no locale changes: nine digits, which bring a float back exactly. */
static const char *mlo_digits(double x, char text[40]) {
    snprintf(text, 40, "%.9g", x);
    for (char *p = text; *p; p++)
        if (!strchr("0123456789+-einfa.", *p)) *p = '.';
    return text;
}
static const char *mlo_number_text(mlo *m, double x) {
    char text[40];
    return mlo_intern(m, mlo_digits(x, text));
}

/* A per-iteration parameter of the new loop: an initializer [L, dims] outside, a scan input
 * inside. Returns its data to be filled. */
static void *mlo_parameter(
    mlo_quantizer *q, const char *name, mlo_dtype dtype, int rank, const int64_t *dims) {
    mlo *m = q->m;
    mlo_form f = { dtype, rank + 1, { q->scan.iterations } }, inner = { dtype, rank, { 0 } };
    for (int i = 0; i < rank; i++) f.dims[i + 1] = inner.dims[i] = dims[i];
    size_t bytes = (size_t)mlo_form_count(&f) * mlo_dtype_size(dtype);
    void *data = mlo_alloc(m, bytes, 1);
    const char *stack = mlo_format(m, "%s_stack", name);
    mlo_value_info *info = mlo_info_new(m, name, &inner);
    if (!data || !stack || !info
        || mlo_graph_init(m, m->model->graph,
            mlo_tensor_new(m, stack, dtype, f.dims, (size_t)f.rank, data, bytes)))
        return NULL;
    if (mlo_node_input(m, q->loop, stack) || !MLO_PUSH(m, q->body->input, q->body->n_input, info))
        return NULL;
    return data;
}

/* A number per iteration as metadata. */
static int mlo_numbers_meta(mlo_quantizer *q, mlo_node *n, const char *key, const double *x) {
    mlo *m = q->m;
    mlo_text t = { m, NULL, 0, 0 };
    char text[40];
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        mlo_puts(&t, i ? " " : "");
        mlo_puts(&t, mlo_digits(x[i], text));
    }
    if (!m->error.code) mlo_meta_put(m, &n->meta, &n->n_meta, key, t.text ? t.text : "");
    mlo_text_free(&t);
    return mlo_failed(m);
}

/* The nearest 32-bit integer. */
static int32_t mlo_to_int32(double x) {
    x = floor(x + 0.5);
    return x >= INT32_MAX ? INT32_MAX : x <= INT32_MIN ? INT32_MIN : x == x ? (int32_t)x : 0;
}

static mlo_dtype mlo_narrow_type(const mlo_signal *s) { return s->bits > 8 ? MLO_INT16 : MLO_INT8; }

/* A kernel node in the new body, with the scope of what it came from and the scales of what it
 * makes. */
static mlo_node *mlo_kernel_node(mlo_quantizer *q, const mlo_kernel *k, const mlo_sublayer *b,
    const char *out, mlo_dtype to, int bits, const double *scale) {
    mlo *m = q->m;
    mlo_node *n = mlo_node_new(m, k->op.name, out);
    if (!n || mlo_node_output(m, n, out) || mlo_attr_int(m, n, "to", to)) return NULL;
    int64_t hi = ((int64_t)1 << (bits - 1)) - 1;
    if (mlo_attr_int(m, n, "lo", -hi - 1) || mlo_attr_int(m, n, "hi", hi)) return NULL;
    if (bits != mlo_bits_of(to)
        && mlo_meta_put(m, &n->meta, &n->n_meta, "mlo.bits", mlo_format(m, "%d", bits)))
        return NULL;
    if (q->pow2 && k->shifts && mlo_meta_put(m, &n->meta, &n->n_meta, "mlo.pow2", "1")) return NULL;
    for (size_t i = 0; b && i < b->node->n_meta; i++)
        if (!mlo_starts(b->node->meta[i].key, "pkg.torch")
            && mlo_meta_put(m, &n->meta, &n->n_meta, b->node->meta[i].key, b->node->meta[i].value))
            return NULL;
    return mlo_numbers_meta(q, n, "mlo.scale", scale) || mlo_graph_add(m, q->body, n) ? NULL : n;
}

static int mlo_inputs(mlo *m, mlo_node *n, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (mlo_node_input(m, n, names[i])) return mlo_failed(m);
    return 0;
}

/* A signal's shape as a parameter of the body: [C, 1], as rows of a weight want it. */
static int mlo_shape_parameter(mlo_quantizer *q, mlo_signal *s) {
    if (!s->shape || s->shape_name) return 0;
    const int64_t dims[] = { s->channels, 1 };
    const char *name = mlo_format(q->m, "%s_shape", s->name);
    float *data = name ? (float *)mlo_parameter(q, name, MLO_FLOAT, 2, dims) : NULL;
    if (data) memcpy(data, s->shape, (size_t)(q->scan.iterations * s->channels) * sizeof *data);
    s->shape_name = name;
    return mlo_failed(q->m);
}

/* Three lists of n numbers, behind a multiply and accumulate: bias, multiplier, shift. */
typedef struct {
    int32_t *bias, *mult, *shift;
    const char *name[3];
} mlo_channel_words;

static int mlo_channel_parameters(
    mlo_quantizer *q, const char *name, int64_t n, mlo_channel_words *w) {
    static const char *const suffix[] = { "bias", "mult", "shift" };
    int32_t **const data[] = { &w->bias, &w->mult, &w->shift };
    for (int i = 0; i < 3; i++)
        if (!(w->name[i] = mlo_format(q->m, "%s_%s", name, suffix[i]))
            || !(*data[i] = (int32_t *)mlo_parameter(q, w->name[i], MLO_INT32, 1, &n)))
            return mlo_failed(q->m);
    return 0;
}

static double mlo_shape_at(const mlo_signal *s, int64_t at) {
    return s->shape ? (double)s->shape[at] : 1;
}

/* out = in + sign x zero, both in steps of a signal that is given: its integers with their zero
 * point, or without. */
static int mlo_offset_node(mlo_quantizer *q, const mlo_sublayer *b, const char *in, const char *out,
    mlo_dtype to, int bits, const mlo_signal *s, int sign) {
    mlo *m = q->m;
    mlo_channel_words w;
    if (!out || mlo_channel_parameters(q, out, s->channels, &w)) return mlo_failed(m);
    mlo_node *n = mlo_kernel_node(q, &mlo_requant_kernel, b, out, to, bits, s->narrow_scale);
    for (int64_t at = 0; at < q->scan.iterations * s->channels; at++) {
        double offset = rint(s->zero[at] / s->narrow_scale[at / s->channels]);
        if (offset >= ldexp(1, s->bits - 1))
            return mlo_fail_at(m, MLO_E_UNSUPPORTED, s->name,
                "a zero point at the least of %d bits is fixed for this value, which the residual "
                "stream reads; a zero point one higher is supported",
                s->bits);
        w.bias[at] = sign * (int32_t)offset;
        w.mult[at] = 2;
        w.shift[at] = 1;
    }
    const char *names[] = { in, w.name[0], w.name[1], w.name[2] };
    return n ? mlo_inputs(m, n, names, 4) : mlo_failed(m);
}

/* Behind what makes a signal: its other form, where both are wanted. */
static int mlo_narrow(mlo_quantizer *q, const mlo_sublayer *b, const char *name, mlo_signal *s) {
    if (b && mlo_widened(q, s)) {
        s->narrow_name = name;
        s->wide_name = mlo_format(q->m, "%s_16", name);
        return mlo_offset_node(q, b, name, s->wide_name, MLO_INT16, s->wide_bits, s, 1);
    }
    if (!s->wide) {
        s->narrow_name = name;
        return 0;
    }
    s->wide_name = name;
    if (s->narrow && mlo_one_form(q, s)) s->narrow_name = name;
    if (!s->narrow || s->narrow_name) return 0;
    mlo *m = q->m;
    mlo_channel_words w;
    s->narrow_name = mlo_format(m, "%s_8", name);
    if (m->error.code || mlo_channel_parameters(q, s->narrow_name, s->channels, &w))
        return mlo_failed(m);
    mlo_node *n = mlo_kernel_node(
        q, &mlo_requant_kernel, b, s->narrow_name, mlo_narrow_type(s), s->bits, s->narrow_scale);
    if (!n) return mlo_failed(m);
    for (int64_t at = 0; at < q->scan.iterations * s->channels; at++) {
        int64_t mult;
        int shift;
        MLO_TRY(mlo_ratio(q, n,
            s->wide_scale[at / s->channels]
                / (s->narrow_scale[at / s->channels] * mlo_shape_at(s, at)),
            40, &mult, &shift));
        w.bias[at] = (int32_t)rint(-s->zero[at] / s->wide_scale[at / s->channels]);
        w.mult[at] = (int32_t)mult;
        w.shift[at] = shift;
    }
    const char *in[] = { name, w.name[0], w.name[1], w.name[2] };
    return mlo_inputs(m, n, in, 4);
}

/* The width and scales a signal is made at. A wide form has no shape and no zero. */
typedef struct {
    const double *scale, *zero;
    const float *shape;
    mlo_dtype type;
    int bits;
} mlo_form_made;

static mlo_form_made mlo_made_at(const mlo_quantizer *q, const mlo_signal *s) {
    mlo_form_made w = { s->wide_scale, NULL, NULL, MLO_INT16, s->wide_bits };
    mlo_form_made n = { s->narrow_scale, s->zero, s->shape, mlo_narrow_type(s), s->bits };
    return s->wide && !mlo_widened(q, s) ? w : n;
}

/* ---- linear --------------------------------------------------------------- */

typedef struct {
    float *scale;
    mlo_channel_words c;
    const char *weight;
    int64_t k, n;
} mlo_linear;

/* The integers a weight may become. */
typedef struct {
    float lo, hi;
    int clipped;
} mlo_weight_range;
static mlo_weight_range mlo_weight_range_of(const mlo_quantizer *q, const mlo_sublayer *b) {
    int bits = mlo_weight_bits(q, b), whole = b->weight_given && !b->weight_given->narrow;
    float hi = (float)(ldexp(1, bits - 1) - 1);
    mlo_weight_range r = { whole ? -hi - 1 : -hi, hi, bits < 8 || (b->weight_given && !whole) };
    return r;
}

/* Is the sum to be what the source says, rather than what the mean over the calibration says? */
static int mlo_linear_fixed(const mlo_sublayer *b) {
    return b->bias_given || mlo_given_scaled(b->weight_given);
}

/* v, rounded as QuantizeLinear does: half to even. Adding 1.5 * 2^23 rounds to an integer. */
static float mlo_rounded_weight(float v, const mlo_weight_range *r) {
    const float magic = 12582912.0f;
    v = v < r->lo ? r->lo : v > r->hi ? r->hi : v;
    v += magic;
    return v - magic;
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
 * becomes the best of a few parts of itself. */
static int mlo_weight_clipping(mlo_quantizer *q, const mlo_array *w, const mlo_signal *x, int64_t i,
    const mlo_weight_range *r, float *scale) {
    int64_t columns = w->dims[1];
    float *full = (float *)mlo_scratch(q->m, 4 * (size_t)columns, sizeof *full);
    float *part = full + columns;
    float *error = part + columns;
    float *least = error + columns;
    for (int step = 0; full && step < (q->pow2 ? 2 : 9); step++) {
        float f = q->pow2 ? (step ? 0.5f : 1) : (float)(16 - step) / 16;
        for (int64_t n = 0; n < columns; n++) {
            if (!step) full[n] = scale[n];
            part[n] = full[n] * f;
        }
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
    mlo_column_most(w, x->shape ? x->shape + i * w->dims[0] : NULL, most);
    for (int64_t n = 0; n < columns; n++)
        scale[n] = (float)mlo_step(q, most[n] > 1e-30f ? (double)most[n] / (double)r.hi : 1);
    if (r.clipped && mlo_weight_clipping(q, w, x, i, &r, scale)) return mlo_failed(q->m);
    for (int64_t n = 0; n < columns; n++) {
        double least = fabs(exact[n]) / x->narrow_scale[i] / (1 << 29);
        if ((double)scale[n] < least) scale[n] = (float)mlo_step(q, least);
    }
    return 0;
}

/* mlo_rounded_weight, a row's piece at a time. */
static void mlo_integer_mean(const float *restrict row, float shape, const float *restrict inverse,
    const mlo_weight_range *r, double mean, double *restrict sum, int64_t n) {
    const float lo = r->lo, hi = r->hi, magic = 12582912.0f;
    for (int64_t i = 0; i < n; i++) {
        float v = row[i] * shape * inverse[i];
        v = v < lo ? lo : v > hi ? hi : v;
        v += magic;
        sum[i] += mean * (double)(v - magic);
    }
}
/* sum[n] += the weight as an integer times the mean of the operand as an integer; of a layer that
 * is fixed: times what the operand is off by its zero. */
static void mlo_integer_means(const mlo_array *w, const mlo_signal *x, int64_t i,
    const mlo_weight_range *r, int fixed, const float *scale, float *inverse, double *sum) {
    const float *row = (const float *)w->data;
    int64_t columns = w->dims[1];
    for (int64_t n = 0; n < columns; n++) inverse[n] = 1 / scale[n];
    for (int64_t k = 0; k < w->dims[0]; k++, row += columns) {
        int64_t at = i * x->channels + k;
        float shape = x->shape ? x->shape[at] : 1;
        double mean = ((fixed ? 0 : x->mean[at] + x->drift[at]) - x->zero[at])
            / ((double)shape * x->narrow_scale[i]);
        int64_t n = 0;
        for (; n + MLO_LANES <= columns; n += MLO_LANES)
            mlo_integer_mean(row + n, shape, inverse + n, r, mean, sum + n, MLO_LANES);
        mlo_integer_mean(row + n, shape, inverse + n, r, mean, sum + n, columns - n);
    }
}

/* A number as it is given: rounded to its own steps, within its own width. */
static double mlo_given_rounded(const mlo_given *g, int64_t at, double x) {
    if (!mlo_given_scaled(g)) return x;
    double hi = ldexp(1, g->bits - 1) - 1, v = rint(x / g->scale[at]);
    return (v > hi ? hi : v < -hi - 1 ? -hi - 1 : v) * g->scale[at];
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
    int fixed = mlo_linear_fixed(b);
    for (int64_t n = 0; ready && n < l->n; n++) {
        exact[n] = bias
            ? mlo_given_rounded(b->bias_given, i * l->n + n, (double)((const float *)bias->data)[n])
            : 0;
        sum[n] = 0;
    }
    if (ready) {
        const mlo_weight_range r = mlo_weight_range_of(q, b);
        const float *row = (const float *)w->data;
        for (int64_t k = 0; !fixed && k < l->k; k++, row += l->n)
            for (int64_t n = 0; n < l->n; n++) exact[n] += x->mean[i * l->k + k] * (double)row[n];
        /* y's mean, counted from its zero */
        if (y->zero)
            for (int64_t n = 0; n < l->n; n++) exact[n] -= y->zero[i * l->n + n];
        if ((ready = !mlo_weight_scales(q, b, i, w, x, exact, most, scale)) != 0)
            mlo_integer_means(w, x, i, &r, fixed, scale, most, sum);
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

/* The parameters of a linear layer in the new body: QuantizeLinear over the weight that was there,
 * times the shape of what it reads; lists of N numbers. */
static int mlo_linear_parameters(
    mlo_quantizer *q, const mlo_sublayer *b, mlo_linear *l, mlo_signal *x) {
    mlo *m = q->m;
    mlo_form w = mlo_body_form(&q->r.in, b->weight);
    l->k = w.dims[b->transposed];
    l->n = w.dims[!b->transposed];
    const char *scale = mlo_format(m, "%s_w_scale", b->out);
    const char *zero = mlo_format(m, "%s_w_zero", b->out);
    const char *weight = b->weight;
    l->weight = mlo_format(m, "%s_w8", b->out);
    if (m->error.code || mlo_shape_parameter(q, x)) return mlo_failed(m);
    if (l->k != x->channels)
        return mlo_fail(m, MLO_E_SHAPE, b->node, "a weight of %lld rows for %lld channels",
            (long long)l->k, (long long)x->channels);
    l->scale = (float *)mlo_parameter(q, scale, MLO_FLOAT, 1, &l->n);
    void *zeros = mlo_alloc(m, (size_t)l->n, 1);
    if (m->error.code || mlo_channel_parameters(q, b->out, l->n, &l->c)
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

static int mlo_linear_fill(mlo_quantizer *q, const mlo_sublayer *b, mlo_linear *l,
    const mlo_signal *x, const mlo_form_made *y) {
    for (int64_t i = 0; i < q->scan.iterations && !q->m->error.code; i++) {
        mlo_array *w = mlo_weight(q, b, i);
        mlo_array *bias = w && b->bias ? mlo_scan_value(q->m, &q->scan, b->bias, i) : NULL;
        if (w && (bias || !b->bias)) mlo_linear_numbers(q, b, l, i, w, bias, x, y);
        mlo_array_free(q->m, w);
        mlo_array_free(q->m, bias);
    }
    return mlo_failed(q->m);
}

/* ---- tables --------------------------------------------------------------- */

static int mlo_table_fill(mlo_quantizer *q, const mlo_sublayer *u, const mlo_signal *x,
    const mlo_form_made *y, void *table) {
    double hi = ldexp(1, y->bits - 1) - 1;
    int64_t size = (int64_t)1 << x->bits, per = mlo_signal_of(q, u->out)->channels;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        mlo_array *f = mlo_tabulate(q, u, i,
            x->zero[i * x->channels] - x->narrow_scale[i] * (double)(size / 2), x->narrow_scale[i],
            size);
        if (!f) return mlo_failed(q->m);
        for (int64_t k = 0; k < size; k++) {
            double v = rint(
                ((double)((float *)f->data)[k] - (y->zero ? y->zero[i * per] : 0)) / y->scale[i]);
            v = v > hi ? hi : v < -hi - 1 ? -hi - 1 : v == v ? v : 0;
            if (y->type == MLO_INT8)
                ((int8_t *)table)[i * size + k] = (int8_t)v;
            else
                ((int16_t *)table)[i * size + k] = (int16_t)v;
        }
        mlo_array_free(q->m, f);
    }
    return 0;
}

/* lo and hi of an MVUTable are those of its table's index. */
static void mlo_index_bounds(mlo_node *n, int bits) {
    mlo_attr *lo = mlo_attr_of(n, "lo"), *hi = mlo_attr_of(n, "hi");
    hi->i = ((int64_t)1 << (bits - 1)) - 1;
    lo->i = -hi->i - 1;
}

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

/* The kernel that makes what is behind a requantization to `made`: the function `unary` of it by a
 * table, or (NULL) itself. in: its inputs but the table. */
static mlo_node *mlo_requantizing_node(mlo_quantizer *q, const mlo_kernel *k, const mlo_sublayer *b,
    const mlo_sublayer *unary, const mlo_form_made *made, const char *const *in, size_t n_in) {
    mlo *m = q->m;
    mlo_form_made y = unary ? mlo_made_at(q, mlo_signal_of(q, unary->out)) : *made;
    const mlo_signal *pre = mlo_signal_of(q, b->out);
    const int64_t size = (int64_t)1 << pre->bits;
    const char *table = unary ? mlo_format(m, "%s_table", unary->out) : NULL;
    void *entries = table ? mlo_parameter(q, table, y.type, 1, &size) : NULL;
    if (m->error.code || (unary && (!entries || mlo_table_fill(q, unary, pre, &y, entries))))
        return NULL;
    mlo_node *n = mlo_kernel_node(
        q, unary ? k->with_table : k, b, unary ? unary->out : b->out, y.type, y.bits, y.scale);
    if (n && unary) mlo_index_bounds(n, pre->bits);
    return !n || mlo_inputs(m, n, in, n_in) || (unary && mlo_node_input(m, n, table)) ? NULL : n;
}

/* What the hardware need not store of an INT8 weight. */
static int mlo_weight_bits_meta(mlo_quantizer *q, const mlo_sublayer *b, mlo_node *n) {
    int bits = mlo_weight_bits(q, b);
    return bits == 8
        ? 0
        : mlo_meta_put(q->m, &n->meta, &n->n_meta, "mlo.weight_bits", mlo_format(q->m, "%d", bits));
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
    if (m->error.code || mlo_sum_fineness(q, b, y->channels, made.zero, &fine)
        || mlo_linear_parameters(q, &bare, &l, x) || mlo_linear_fill(q, &bare, &l, x, &at))
        goto done;
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
        goto done;
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
done:
    mlo_scratch_free(m, (void *)(uintptr_t)at.zero);
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

/* ---- attention, norm, residual -------------------------------------------- */

/* The constants of one iteration: see kernels/attention.c. score: what a unit of q k is in the
 * softmax; v, y: steps of values and of their mix. */
static void mlo_attention_numbers(
    const mlo_sublayer *b, int64_t i, int lt, double score, double v, double y, int32_t *p) {
    const mlo_given *w = b->probs_given, *s = w ? b->scores_given : NULL;
    const double octave = 1.4426950408889634;
    int64_t mult[4] = { 0 };
    int shift[4] = { 0 };
    mlo_fixed((s ? s->scale[i] : score) * octave * (w ? 4096 : 64), 40, &mult[0], &shift[0]);
    if (w)
        mlo_fixed(v * w->scale[i] / y, 62, &mult[1], &shift[1]);
    else {
        mlo_fixed(v / y, 62 - lt - 8, &mult[1], &shift[1]);
        shift[1] += lt + 8;
    }
    if (w) {
        mlo_fixed(1 / w->scale[i], 62 - lt - 18, &mult[2], &shift[2]);
        shift[2] += lt + 18;
    }
    if (s) mlo_fixed_to(score / s->scale[i], 18, 40, &mult[3], &shift[3]);
    for (int k = 0; k < (s ? 4 : w ? 3 : 2); k++) {
        int at = 2 * k + (k == 3);
        p[at] = (int32_t)mult[k];
        p[at + 1] = shift[k];
    }
    if (w) p[6] = (int32_t)(ldexp(1, w->bits - w->sign) - 1 - (!w->sign && w->narrow) - w->zero[i]);
    if (s) p[9] = (int32_t)(s->zero[i] - (s->sign ? 0 : 128));
}

static int mlo_quantize_attention(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_signal *s[3], *y = mlo_signal_of(q, b->out);
    for (int i = 0; i < 3; i++) s[i] = mlo_signal_of(q, b->in[i]);
    mlo_form_made made = mlo_made_at(q, y);
    mlo_form f = mlo_body_form(&q->r.in, b->in[1]);
    int lt = mlo_clog2(mlo_form_count(&f) / f.dims[f.rank - 1]);
    const char *p = mlo_format(m, "%s_p", b->out);
    const int64_t count = b->probs_given ? b->scores_given ? 10 : 7 : 4;
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &count) : NULL;
    mlo_node *n = data ? mlo_kernel_node(q,
                             count == 4       ? &mlo_attention_kernel
                                 : count == 7 ? &mlo_attention_probs_kernel
                                              : &mlo_attention_rounded_kernel,
                             b, b->out, made.type, made.bits, made.scale)
                       : NULL;
    if (!n || mlo_attr_int(m, n, "heads", b->heads) || mlo_attr_int(m, n, "lt", lt))
        return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++)
        mlo_attention_numbers(b, i, lt,
            s[0]->narrow_scale[i] * s[1]->narrow_scale[i] * fabs(b->scale), s[2]->narrow_scale[i],
            made.scale[i], data + count * i);
    if (b->scale < 0)
        return mlo_fail(
            m, MLO_E_UNSUPPORTED, b->node, "attention scores with a negative scale %g", b->scale);
    const char *in[] = { s[0]->narrow_name, s[1]->narrow_name, s[2]->narrow_name, q->mask_bits, p };
    if (mlo_inputs(m, n, in, 5)) return mlo_failed(m);
    return mlo_narrow(q, b, b->out, y);
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

/* ---- the mask ------------------------------------------------------------- */

/* A boolean [frames, tokens] value in the outer graph, true where a key counts. Without a mask: a
 * constant of ones. */
static int mlo_quantize_mask(mlo_quantizer *q, mlo_graph *before, int64_t tokens) {
    mlo *m = q->m;
    mlo_value *v = mlo_value_of(q->scan.outer, q->mask);
    mlo_form f = mlo_form_of(v);
    q->mask_bits = mlo_intern(m, "mlo_mask");
    if (!q->mask_bits) return mlo_failed(m);
    if (!q->mask) {
        const int64_t dims[] = { 1, tokens };
        char *ones = (char *)mlo_alloc(m, (size_t)tokens, 1);
        if (!ones) return mlo_failed(m);
        memset(ones, 1, (size_t)tokens);
        return mlo_graph_init(m, q->scan.outer,
            mlo_tensor_new(m, "mlo_mask", MLO_BOOL, dims, 2, ones, (size_t)tokens));
    }
    if (!v || mlo_form_count(&f) != tokens)
        return mlo_fail_at(m, MLO_E_BUG, q->mask, "a mask of %lld keys for %lld tokens",
            (long long)mlo_form_count(&f), (long long)tokens);
    if (q->mask_bad)
        return mlo_fail_at(m, MLO_E_UNSUPPORTED, q->mask,
            "an additive attention bias: calibration saw values that are neither 0 nor below "
            "-10000; only masks are supported");
    static const float limit = -10000.0f;
    static const int64_t shape[] = { 1, -1 };
    const int64_t two = 2;
    mlo_node *compare = mlo_node_new(m, "Greater", "mlo_mask_compare");
    mlo_node *reshape = mlo_node_new(m, "Reshape", "mlo_mask_reshape");
    const char *in[] = { q->mask, "mlo_mask_limit" };
    const char *in2[] = { "mlo_mask_keys", "mlo_mask_shape" };
    if (mlo_graph_init(m, q->scan.outer,
            mlo_tensor_new(m, "mlo_mask_limit", MLO_FLOAT, NULL, 0, &limit, sizeof limit))
        || mlo_graph_init(m, q->scan.outer,
            mlo_tensor_new(m, "mlo_mask_shape", MLO_INT64, &two, 1, shape, sizeof shape))
        || mlo_inputs(m, compare, in, 2) || mlo_node_output(m, compare, "mlo_mask_keys")
        || mlo_graph_add(m, before, compare) || mlo_inputs(m, reshape, in2, 2)
        || mlo_node_output(m, reshape, "mlo_mask") || mlo_graph_add(m, before, reshape))
        return mlo_failed(m);
    return 0;
}

/* The mask of all attentions becomes one number per key, in front of the loop. */
static int mlo_settle_mask(mlo_quantizer *q) {
    for (size_t i = 0; i < q->r.n_block; i++) {
        const mlo_sublayer *b = q->r.block[i];
        if (b->mask && b->mask == q->mask)
            return mlo_key_mask(q->m, &q->scan, b->node, b->tokens, &q->mask);
    }
    return 0;
}

/* A constant mask: its values are all there is to see. */
static int mlo_mask_constant(mlo_quantizer *q) {
    mlo_value *v = q->mask ? mlo_value_of(q->scan.body, q->mask) : NULL;
    if (!v || v->graph == q->scan.body || !mlo_is_parameter(&q->scan, q->scan.outer, q->mask, 0))
        return 0;
    mlo_array *a = mlo_value_array(q->m, &q->scan, q->scan.outer, q->mask, 0, 0);
    if (!a) return mlo_failed(q->m);
    int any = 0;
    mlo_mask_see(q, a);
    if (mlo_counting_see(q->m, &q->counting, a)) {
        mlo_array_free(q->m, a);
        return mlo_failed(q->m);
    }
    for (int64_t i = 0, n = mlo_array_count(a); a->dtype == MLO_FLOAT && i < n; i++)
        any |= ((float *)a->data)[i] != 0;
    mlo_array_free(q->m, a);
    if (!any) q->mask = NULL;
    return 0;
}

/* ---- putting it together -------------------------------------------------- */

/* The core's own layout of the carried value: where attention has seen T tokens of it, [1, T, C],
 * however the source lays them out (sequence first: [T, 1, C]). 1: that differs. */
static int mlo_framed(const mlo_quantizer *q, mlo_form *f) {
    const mlo_form frame = { f->dtype, 3, { 1, q->r.tokens, mlo_last_dim(f) } };
    if (!q->r.tokens || f->rank < 2 || f->dims[f->rank - 2] == q->r.tokens) return 0;
    *f = frame;
    return 1;
}

/* The new body: the old one's parameters and what is computed from them, then one kernel after the
 * other. */
static int mlo_quantize_body(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_graph *old = q->scan.body;
    mlo_form f = mlo_form_of(mlo_value_of(old, old->input[0]->name));
    mlo_framed(q, &f);
    f.dtype = MLO_INT16;
    mlo_value_info *state = mlo_info_new(m, old->input[0]->name, &f);
    if (!state || !MLO_PUSH(m, q->body->input, q->body->n_input, state)) return mlo_failed(m);
    for (size_t i = 1; i < old->n_input; i++)
        if (!MLO_PUSH(m, q->body->input, q->body->n_input, old->input[i])) return mlo_failed(m);
    for (size_t i = 0; i < old->n_init; i++)
        if (mlo_graph_init(m, q->body, old->init[i])) return mlo_failed(m);
    for (size_t i = 0; i < old->n_node; i++)
        if (!mlo_is_carried(&q->r.in, old->node[i]->output[0])
            && mlo_graph_add(m, q->body, old->node[i]))
            return mlo_failed(m);
    if (mlo_narrow(q, NULL, state->name, mlo_signal_of(q, state->name))) return mlo_failed(m);
    for (size_t i = 0; i < q->r.n_block; i++) {
        const mlo_sublayer *b = q->r.block[i];
        int r = 0;
        switch (b->kind) {
        case MLO_LINEAR: r = mlo_quantize_linear(q, b); break;
        case MLO_ATTENTION: r = mlo_quantize_attention(q, b); break;
        case MLO_NORM: r = mlo_quantize_norm(q, b); break;
        case MLO_RESIDUAL: r = mlo_quantize_residual(q, b); break;
        /* made together with the linear layer before it */
        case MLO_UNARY:
            if (!mlo_signal_of(q, b->out)->narrow_name && !mlo_signal_of(q, b->out)->wide_name)
                r = mlo_fail(m, MLO_E_UNSUPPORTED, b->node,
                    "a function of '%s', which is no linear layer of its own; only activations "
                    "right behind a linear layer are supported",
                    b->in[0]);
        }
        if (r) return r;
    }
    mlo_value_info *out = mlo_info_new(m, mlo_signal_of(q, q->result)->wide_name, &f);
    return out && MLO_PUSH(m, q->body->output, q->body->n_output, out) ? 0 : mlo_failed(m);
}

/* Quantize or Dequantize in the outer graph. */
static int mlo_edge_node(mlo_quantizer *q, mlo_graph *list, const char *op, const char *in,
    const char *out, double scale, int bits) {
    mlo *m = q->m;
    int64_t hi = ((int64_t)1 << (bits - 1)) - 1;
    float *data = (float *)mlo_alloc(m, 1, sizeof *data);
    /* QDQ models call their own scales _scale */
    const char *name = mlo_format(m, "%s_mlo_scale", out);
    mlo_node *n = mlo_node_new(m, op, out);
    if (!data || !name || !n) return mlo_failed(m);
    *data = (float)scale;
    const char *inputs[] = { in, name };
    if (mlo_graph_init(
            m, q->scan.outer, mlo_tensor_new(m, name, MLO_FLOAT, NULL, 0, data, sizeof *data))
        || mlo_inputs(m, n, inputs, 2) || mlo_node_output(m, n, out))
        return mlo_failed(m);
    if (mlo_is_kernel(n, MLO_KERNEL_TO_INTEGERS)
        && (mlo_attr_int(m, n, "to", MLO_INT16) || mlo_attr_int(m, n, "lo", -hi - 1)
            || mlo_attr_int(m, n, "hi", hi)))
        return mlo_failed(m);
    return mlo_graph_add(m, list, n);
}

/* The same elements in another shape, in the outer graph. */
static int mlo_reshape_edge(
    mlo_quantizer *q, mlo_graph *list, const char *in, const char *out, const mlo_form *f) {
    mlo *m = q->m;
    const char *shape = out ? mlo_format(m, "%s_mlo_shape", out) : NULL;
    const int64_t rank = f->rank;
    mlo_array *dims = shape ? mlo_array_new(m, MLO_INT64, 1, &rank) : NULL;
    if (!dims) return mlo_failed(m);
    memcpy(dims->data, f->dims, (size_t)rank * sizeof *f->dims);
    mlo_tensor *t = mlo_tensor_from(m, shape, dims);
    mlo_array_free(m, dims);
    mlo_node *n = t ? mlo_node_new(m, "Reshape", out) : NULL;
    if (!n || mlo_graph_init(m, q->scan.outer, t) || mlo_node_input(m, n, in)
        || mlo_node_input(m, n, shape) || mlo_node_output(m, n, out))
        return mlo_failed(m);
    return mlo_graph_add(m, list, n);
}

/* Replaces the old Scan in the outer graph by Quantize, the new Scan, Dequantize. */
static int mlo_quantize_replace(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_graph *g = q->scan.outer, list = { 0 };
    mlo_signal *in = mlo_signal_of(q, q->scan.body->input[0]->name);
    mlo_signal *out = mlo_signal_of(q, q->result);
    mlo_form f = mlo_body_form(&q->r.in, q->scan.body->input[0]->name), frame = f;
    int framed = mlo_framed(q, &frame);
    const char *x = q->scan.node->input[0];
    const char *y = q->scan.node->output[0];
    const char *xq = mlo_format(m, "%s_q", x);
    const char *yq = mlo_format(m, "%s_q", y);
    if (!xq || !yq) return mlo_failed(m);
    q->loop->input[0] = xq;
    for (size_t i = 0; i < g->n_node; i++) {
        if (g->node[i] != q->scan.node) {
            if (mlo_graph_add(m, &list, g->node[i])) return mlo_failed(m);
            continue;
        }
        if (mlo_quantize_mask(q, &list, mlo_tokens_of(&f))) return mlo_failed(m);
        const char *from = framed ? mlo_format(m, "%s_frame", x) : x;
        if (framed) MLO_TRY(mlo_reshape_edge(q, &list, x, from, &frame));
        if (mlo_edge_node(
                q, &list, mlo_quantize_kernel.op.name, from, xq, in->wide_scale[0], in->wide_bits)
            || mlo_node_output(m, q->loop, yq) || mlo_graph_add(m, &list, q->loop))
            return mlo_failed(m);
        const char *back = framed ? mlo_format(m, "%s_frame", y) : y;
        MLO_TRY(mlo_edge_node(q, &list, mlo_dequantize_kernel.op.name, yq, back,
            out->wide_scale[q->scan.iterations - 1], out->wide_bits));
        if (framed) MLO_TRY(mlo_reshape_edge(q, &list, back, y, &f));
    }
    g->node = list.node;
    g->n_node = list.n_node;
    return 0;
}

/* Two passes over the samples: what there is; then, with the scales chosen, what rounding makes of
 * it. */
static int mlo_quantize_calibrate(mlo_quantizer *q) {
    int64_t drawn = mlo_samples_drawn(q->m->model->graph);
    if (!q->m->n_calib)
        mlo_warn(q->m,
            "no calibration data; calibrated on %lld input%s drawn from the declared types. Give "
            "real ones with --calib FILE.npz",
            (long long)drawn, drawn == 1 ? "" : "s");
    if (mlo_calibrate_run(q, mlo_calibrate_see) || mlo_choose_scales(q)) return mlo_failed(q->m);
    return mlo_calibrate_run(q, mlo_drift_see);
}

static int mlo_quantize_options(mlo_quantizer *q) {
    mlo *m = q->m;
    const char *scale = mlo_opt(m, "scale");
    q->weights = (int)mlo_opt_int(m, "weights", 8, 2, 8);
    q->activations = (int)mlo_opt_int(m, "activations", 8, 4, 16);
    q->residual = (int)mlo_opt_int(m, "residual", 16, 8, 16);
    q->pow2 = scale && !strcmp(scale, "pow2");
    return scale && !q->pow2 && strcmp(scale, "real")
        ? mlo_fail_at(m, MLO_E_USAGE, NULL,
              "--scale %s: there is real (a multiplier and a shift) and pow2 (a shift)", scale)
        : mlo_failed(m);
}

/* Refuses a loop that has no integer form, whatever is in its body. */
static int mlo_quantizable(mlo *m, const mlo_scan *s) {
    mlo_form x = mlo_form_of(mlo_value_of(s->body, s->body->input[0]->name));
    if (s->n_tap)
        return mlo_fail(m, MLO_E_UNSUPPORTED, s->node,
            "%zu values leave every layer (keys and values for a cache: export with "
            "use_cache=False; or hidden states: output_hidden_states=False); hardware returns what "
            "the last layer makes",
            s->n_tap);
    if (s->n_state != 1)
        return mlo_fail(m, MLO_E_UNSUPPORTED, s->node,
            "%zu values go from layer to layer; one is supported", s->n_state);
    if (!mlo_form_known(&x))
        return mlo_fail(m, MLO_E_SHAPE, s->node,
            "the carried value is %s: bind the open dimensions (%s) with --dim NAME=N",
            mlo_dims_text(m, x.rank, x.dims), mlo_open_dims(m));
    if (mlo_dtype_is_float(x.dtype) && x.dtype != MLO_FLOAT)
        return mlo_fail(m, MLO_E_UNSUPPORTED, s->node,
            "the model computes in %s; export it in float32 (model.float()), mlo chooses the "
            "integers",
            mlo_dtype_name(x.dtype));
    return 0;
}

/* The stage itself. What it calibrated and chose goes to *made, which holds the cost that widths
 * may have, 0: the option says. */
static int mlo_quantize(mlo *m, mlo_quantizer *made) {
    mlo_quantizer q;
    memset(&q, 0, sizeof q);
    q.m = m;
    q.cost = made->cost;
    if (mlo_quantize_options(&q) || mlo_given_standard(m) || mlo_scan_choose(m, &q.scan))
        return mlo_failed(m);
    MLO_TRY(mlo_quantizable(m, &q.scan));
    if (mlo_respell(m, &q.scan) || mlo_recognise(m, &q.scan, &q.r, &q.result) || mlo_demand(&q)
        || mlo_qconfig(&q) || mlo_choose_given(&q) || mlo_settle_mask(&q) || mlo_mask_constant(&q)
        || mlo_quantize_calibrate(&q))
        return mlo_failed(m);
    q.loop = mlo_node_new(m, "Scan", mlo_node_name(q.scan.node));
    q.body = MLO_NEW(m, mlo_graph);
    if (!q.loop || !q.body) return mlo_failed(m);
    q.body->name = q.scan.body->name;
    q.mask_bits = mlo_intern(m, "mlo_mask");
    for (size_t i = 0; i < q.scan.node->n_input; i++)
        if (mlo_node_input(m, q.loop, q.scan.node->input[i])) return mlo_failed(m);
    if (mlo_quantize_body(&q) || mlo_quantize_replace(&q)) return mlo_failed(m);
    q.loop->meta = q.scan.node->meta;
    q.loop->n_meta = q.scan.node->n_meta;
    if (mlo_attr_graph(m, q.loop, "body", q.body)
        || mlo_attr_int(m, q.loop, "num_scan_inputs", (int64_t)q.body->n_input - 1))
        return mlo_failed(m);
    q.scan.node = q.loop;
    q.scan.body = q.body;
    MLO_TRY(mlo_index(m, m->model->graph));
    MLO_TRY(mlo_scan_prune(m, &q.scan));
    MLO_TRY(mlo_add_functions(m, m->model));
    *made = q;
    made->r.scan = &made->scan;
    return mlo_infer(m);
}
