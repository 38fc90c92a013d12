/* body: pieces of the integer body that all sublayers are made of.
 *
 * in:  a quantizer whose scales are chosen.
 * out: nodes of kernels, parameters of all iterations, the narrow form (a matrix operand) of a wide
 *     value (a residual stream), and back.
 *
 * invariant: every number is a per-iteration parameter, whether or not layers agree about it.
 */

/* A number as text that no locale changes: nine digits, which bring a float back exactly. */
static const char *mlo_digits(double x, char text[40]) {
    snprintf(text, 40, "%.9g", x);
    return mlo_pointed(text);
}

static const char *mlo_number_text(mlo *m, double x) { return mlo_decimal(m, "%.9g", x); }

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
    if (!m->error.code) mlo_meta_put(m, &n->meta, &n->n_meta, key, mlo_or_empty(t.text));
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
        && mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_bits, mlo_format(m, "%d", bits)))
        return NULL;
    if (q->pow2 && k->shifts && mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_pow2, "1"))
        return NULL;
    for (size_t i = 0; b && i < b->node->n_meta; i++)
        if (!mlo_starts(b->node->meta[i].key, "pkg.torch")
            && mlo_meta_put(m, &n->meta, &n->n_meta, b->node->meta[i].key, b->node->meta[i].value))
            return NULL;
    return mlo_numbers_meta(q, n, mlo_key_scale, scale) || mlo_graph_add(m, q->body, n) ? NULL : n;
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

/* Three lists of n numbers, behind a multiply and accumulate. */
typedef struct {
    int32_t *bias;
    int32_t *mult; /* multiplier */
    int32_t *shift; /* bits to the right */
    const char *name[3]; /* of these parameters, in this order */
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
    /* the model may have that name outside: layer_norm and layer_norm_8 */
    if (mlo_value_of(q->scan.outer, s->narrow_name))
        s->narrow_name = mlo_format(m, "%s_narrow", name);
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

/* The width and scales a signal is made at. */
typedef struct {
    const double *scale;
    const double *zero; /* NULL: 0; a wide form has none */
    const float *shape; /* NULL: 1; a wide form has one only as an operand of a product (gate.c) */
    mlo_dtype type;
    int bits;
} mlo_form_made;

static mlo_form_made mlo_made_at(const mlo_quantizer *q, const mlo_signal *s) {
    mlo_form_made w = { s->wide_scale, NULL, s->wide_shape, MLO_INT16, s->wide_bits };
    mlo_form_made n = { s->narrow_scale, s->zero, s->shape, mlo_narrow_type(s), s->bits };
    return s->wide && !mlo_widened(q, s) ? w : n;
}

/* A number as it is given: rounded to its own steps, within its own width. */
static double mlo_given_rounded(const mlo_given *g, int64_t at, double x) {
    if (!mlo_given_scaled(g)) return x;
    double hi = ldexp(1, g->bits - 1) - 1, v = rint(x / g->scale[at]);
    return (v > hi ? hi : v < -hi - 1 ? -hi - 1 : v) * g->scale[at];
}

/* ---- around the loop ------------------------------------------------------ */

/* Quantize or Dequantize in the outer graph. */
static int mlo_edge_node(mlo_quantizer *q, mlo_graph *list, const char *op, const char *in,
    const char *out, double scale, int bits, mlo_dtype to) {
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
        && (mlo_attr_int(m, n, "to", to) || mlo_attr_int(m, n, "lo", -hi - 1)
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
