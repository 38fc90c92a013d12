/* quantize: one float loop becomes integers.
 *
 * in:  a rolled float model, and samples to calibrate with (else drawn from the declared types, with a warning).
 * out: the same model, its loop's body made of mlo kernels; Quantize before the loop and Dequantize behind it. Weights stay references:
 *      the body says QuantizeLinear(W, scale), and emit evaluates it one layer at a time.
 * invariant: the Verilog will depend on shapes and widths alone: every scale, multiplier, shift, table and bias is a per-iteration
 *      parameter, whether or not layers agree about it.
 * example: a MatMul + Add of a BERT layer becomes
 *      w8 = QuantizeLinear(w, w_scale, 0)      y = mlo.MVU(x8, w8, bias, mult, shift)
 * cost: one float evaluation per sample; one layer's weights in memory at a time.
 *
 * Widths: matrix operands 8 bits, the residual stream 16. A value that both need is made at 16 bits and requantized to 8.
 * Scales: symmetric, from the largest magnitude seen in that iteration; the 16-bit stream gets a quarter of headroom.
 */
enum { MLO_NARROW = 127, MLO_WIDE = 32767 };
static const double mlo_headroom = 1.25;

typedef struct { int narrow, wide; double *max; double *scale8, *scale16; const char *name8, *name16; } mlo_signal;     /* per float value; arrays per iteration */

typedef struct {
    mlo *m; mlo_scan scan; mlo_recogniser r; const char *result;
    mlo_map signal;                 /* float value name -> mlo_signal */
    mlo_node *loop; mlo_graph *body;   /* the new Scan and its body */
    const char *mask;               /* the float mask all attentions read, NULL for none */
    int mask_bad;                   /* a value seen in it that is neither 0 nor hugely negative */
    const char *mask_bits;          /* the boolean value that replaces it */
} mlo_quantizer;

/* ---- calibration --------------------------------------------------------------------------------------------------------------------- */

static mlo_signal *mlo_signal_of(mlo_quantizer *q, const char *name) {
    mlo_signal *s = (mlo_signal *)mlo_map_get(&q->signal, name);
    size_t n = (size_t)q->scan.iterations;
    if (s) return s;
    if (!(s = MLO_NEW(q->m, mlo_signal)) || !(s->max = MLO_NEW_N(q->m, double, n)) || !(s->scale8 = MLO_NEW_N(q->m, double, n)) || !(s->scale16 = MLO_NEW_N(q->m, double, n))) return NULL;
    return mlo_map_put(q->m, &q->signal, name, s) ? NULL : s;
}

static int mlo_calibrate_see(void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *a) {
    mlo_quantizer *q = (mlo_quantizer *)user;
    if (a->dtype != MLO_FLOAT) return 0;
    const float *x = (const float *)a->data;
    int64_t n = mlo_array_count(a);
    if (q->mask && name == q->mask) for (int64_t i = 0; i < n; i++) if (!(x[i] == 0 || x[i] <= -10000.0f)) q->mask_bad = 1;
    if (g != q->scan.body || iteration < 0 || iteration >= q->scan.iterations) return 0;
    mlo_signal *s = (mlo_signal *)mlo_map_get(&q->signal, name);
    if (!s) return 0;
    double most = s->max[iteration];
    for (int64_t i = 0; i < n; i++) { double v = fabs((double)x[i]); if (!(v <= most)) most = v; }      /* NaN, too, is taken, and then stays */
    if (!(most <= 1e30)) return mlo_fail_at(q->m, MLO_E_DATA, name, "calibration saw %g in iteration %lld; a mask or an overflow is in the data path", most, (long long)iteration);
    s->max[iteration] = most;
    return 0;
}

/* A small generator, the same everywhere: xorshift64*. */
static uint64_t mlo_random(uint64_t *s) { *s ^= *s >> 12; *s ^= *s << 25; *s ^= *s >> 27; return *s * 2685821657736338717u; }

/* How many values an integer input may take: the rows of the table it indexes; 2 where it is no index (a mask). */
static int64_t mlo_input_range(const mlo_graph *g, const char *name) {
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_node *n = g->node[i];
        if (!mlo_is(n, "Gather") || n->input[1] != name) continue;
        mlo_form f = mlo_form_of(mlo_value_of(g, n->input[0]));
        int64_t axis = mlo_int(n, "axis", 0);
        if (f.rank > 0 && axis >= 0 && axis < f.rank) return f.dims[axis];
    }
    return 2;
}

/* Inputs nobody gave, drawn from their types: normal floats; indices over their table; masks that keep a random prefix. */
static mlo_array *mlo_draw_input(mlo *m, const mlo_graph *g, const mlo_value_info *info, uint64_t *seed) {
    mlo_form f = mlo_form_of(mlo_value_of(g, info->name));
    if (!mlo_form_known(&f)) { mlo_fail_at(m, MLO_E_SHAPE, info->name, "the shape of this input is not known; bind its dimensions with --dim or --shape"); return NULL; }
    mlo_array *a = mlo_array_new(m, f.dtype, f.rank, f.dims);
    if (!a) return NULL;
    a->name = info->name;
    int64_t n = mlo_form_count(&f), range = mlo_input_range(g, info->name), keep = n / 2 + (int64_t)(mlo_random(seed) % (uint64_t)(n / 2 + 1));
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = mlo_random(seed);
        double sum = 0;
        for (int k = 0; k < 4; k++) sum += (double)(bits >> (16 * k) & 0xffff) / 65536.0 - 0.5;
        if (f.dtype == MLO_FLOAT) ((float *)a->data)[i] = (float)(sum * 1.7320508);
        else mlo_set_element(a, i, range > 2 ? (int64_t)((bits >> 11) % (uint64_t)range) : i < keep || keep == 0);
    }
    return a;
}

/* Sample k of a calibration array: the array itself when it has the input's rank, else its k-th slice. */
static mlo_array *mlo_calib_sample(mlo *m, const mlo_graph *g, const mlo_value_info *info, const mlo_array *a, int64_t k) {
    mlo_form f = mlo_form_of(mlo_value_of(g, info->name));
    int stacked = a->rank == f.rank + 1, first = a->rank == f.rank && f.rank > 0 && f.dims[0] == 1;
    int64_t count = stacked || first ? a->dims[0] : 1;
    int fits = stacked || a->rank == f.rank;
    for (int i = 0; fits && i < f.rank; i++) fits = f.dims[i] == a->dims[i + stacked] || (i == 0 && first);
    if (a->dtype != f.dtype) { mlo_fail_at(m, MLO_E_TYPE, info->name, "the calibration data are %s, the input takes %s; convert them", mlo_dtype_name(a->dtype), mlo_dtype_name(f.dtype)); return NULL; }
    if (!fits) { mlo_fail_at(m, MLO_E_SHAPE, info->name, "the calibration data are %s, the input takes %s; give that shape, or one more axis of samples in front", mlo_dims_text(m, a->rank, a->dims), mlo_dims_text(m, f.rank, f.dims)); return NULL; }
    if (count < 1) { mlo_fail_at(m, MLO_E_SHAPE, info->name, "the calibration data hold no sample; give at least one"); return NULL; }
    mlo_array *s = mlo_array_new(m, f.dtype, f.rank, f.dims);
    size_t bytes = s ? (size_t)mlo_array_count(s) * mlo_dtype_size(f.dtype) : 0;
    if (s) { memcpy(s->data, (const char *)a->data + (size_t)(k % count) * bytes, bytes); s->name = info->name; }
    return s;
}

static const mlo_array *mlo_calib_of(const mlo *m, const char *name) {
    for (size_t i = 0; i < m->n_calib; i++) if (mlo_eq(m->calib[i].name, name)) return &m->calib[i];
    return NULL;
}

static int mlo_calib_check(mlo *m, const mlo_graph *g, int64_t *samples) {
    *samples = m->n_calib ? 1 : 8;
    for (size_t i = 0; i < m->n_calib; i++) {
        size_t k = 0;
        while (k < g->n_input && !mlo_eq(g->input[k]->name, m->calib[i].name)) k++;
        if (k == g->n_input) return mlo_fail_at(m, MLO_E_FORMAT, m->calib[i].name, "calibration data for an input the model does not have; it has '%s'%s", g->n_input ? g->input[0]->name : "none", g->n_input > 1 ? " and more" : "");
        mlo_form f = mlo_form_of(mlo_value_of(g, g->input[k]->name));
        if (m->calib[i].rank == f.rank + 1 || (f.rank && f.dims[0] == 1 && m->calib[i].rank == f.rank)) *samples = m->calib[i].dims[0] > *samples ? m->calib[i].dims[0] : *samples;
    }
    for (size_t k = 0; m->n_calib && k < g->n_input; k++)
        if (!mlo_value_of(g, g->input[k]->name)->tensor && !mlo_calib_of(m, g->input[k]->name)) return mlo_fail_at(m, MLO_E_FORMAT, g->input[k]->name, "the calibration data have no array of this input's name; add it");
    return 0;
}

/* The inputs of sample k: from the calibration data, or drawn. They are the ones `summary` and the bench use, too. */
static int mlo_sample_inputs(mlo *m, int64_t k, mlo_array **arrays, size_t *n) {
    mlo_graph *g = m->model->graph;
    uint64_t seed = 0x6d6c6f2e6f6e6e78u + (uint64_t)k * 0x9E3779B97F4A7C15u;
    *n = 0;
    for (size_t i = 0; i < g->n_input && *n < 16; i++) {
        if (mlo_value_of(g, g->input[i]->name)->tensor) continue;
        const mlo_array *a = mlo_calib_of(m, g->input[i]->name);
        arrays[*n] = a ? mlo_calib_sample(m, g, g->input[i], a, k) : mlo_draw_input(m, g, g->input[i], &seed);
        if (!arrays[(*n)++]) return (int)m->error.code;
    }
    return 0;
}

static int mlo_calibrate_run(mlo_quantizer *q) {
    mlo *m = q->m;
    int64_t samples;
    if (mlo_calib_check(m, m->model->graph, &samples)) return (int)m->error.code;
    if (!m->n_calib) mlo_warn(m, "no calibration data; calibrated on %lld inputs drawn from the declared types. Give real ones with --calib FILE.npz", (long long)samples);
    mlo_observer see = { q, mlo_calibrate_see };
    for (int64_t k = 0; k < samples && !m->error.code; k++) {
        mlo_array *in[16] = {0}, flat[16]; size_t n;
        if (!mlo_sample_inputs(m, k, in, &n)) {
            for (size_t i = 0; i < n; i++) flat[i] = *in[i];
            mlo_eval_observed(m, flat, n, &see);
        }
        for (size_t i = 0; i < 16; i++) mlo_array_free(m, in[i]);
    }
    return (int)m->error.code;
}

/* ---- demands and scales ---------------------------------------------------------------------------------------------------------------- */

static int mlo_demand(mlo_quantizer *q) {
    for (size_t i = 0; i < q->r.n_block; i++) {
        mlo_sublayer *b = q->r.block[i];
        int wide = b->kind == MLO_NORM || b->kind == MLO_RESIDUAL;
        for (int k = 0; k < b->n_in; k++) {
            mlo_signal *s = mlo_signal_of(q, b->in[k]);
            if (!s) return (int)q->m->error.code;
            if (wide) s->wide = 1; else s->narrow = 1;
        }
        if (!mlo_signal_of(q, b->out)) return (int)q->m->error.code;
        if (b->kind == MLO_ATTENTION && b->mask) {
            if (q->mask && q->mask != b->mask) return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node, "a loop with two attention masks, '%s' and '%s'; one key mask per loop is supported", q->mask, b->mask);
            q->mask = b->mask;
        }
    }
    mlo_signal *in = mlo_signal_of(q, q->scan.body->input[0]->name), *out = mlo_signal_of(q, q->result);
    if (!in || !out) return (int)q->m->error.code;
    in->wide = out->wide = 1;
    return 0;
}

static void mlo_choose_scales(mlo_quantizer *q) {
    for (size_t i = 0; i < q->signal.size; i++) if (q->signal.slot[i].key) {
        mlo_signal *s = (mlo_signal *)q->signal.slot[i].value;
        for (int64_t k = 0; k < q->scan.iterations; k++) {
            double most = s->max[k] > 1e-20 ? s->max[k] : 1;           /* nothing but zeros was seen: any scale will do */
            s->scale8[k] = (double)(float)(most / MLO_NARROW);
            s->scale16[k] = (double)(float)(most * mlo_headroom / MLO_WIDE);
        }
    }
    mlo_signal *in = (mlo_signal *)mlo_map_get(&q->signal, q->scan.body->input[0]->name), *out = (mlo_signal *)mlo_map_get(&q->signal, q->result);
    for (int64_t k = 1; k < q->scan.iterations; k++) in->scale16[k] = out->scale16[k - 1];
}

/* real = mult / 2^shift with 15 significant bits, 1 <= shift <= most. */
static void mlo_fixed(double real, int most, int64_t *mult, int *shift) {
    int e;
    double f = frexp(real, &e);
    *mult = (int64_t)floor(f * 32768 + 0.5);
    if (*mult == 32768) { *mult = 16384; e++; }
    *shift = 15 - e;
    if (*shift > most) { *mult = (int64_t)floor(ldexp(real, most) + 0.5); *shift = most; }
    if (*shift < 1) { *mult = 32767; *shift = 1; }
}

/* ---- making the new body ----------------------------------------------------------------------------------------------------------------- */

/* A number as text that no locale changes: nine digits, which bring a float back exactly. */
static const char *mlo_number_text(mlo *m, double x) {
    char text[40];
    snprintf(text, sizeof text, "%.9g", x);
    for (char *p = text; *p; p++) if (!strchr("0123456789+-einfa.", *p)) *p = '.';
    return mlo_format(m, "%s", text);
}

/* A per-iteration parameter of the new loop: an initializer [L, dims] outside, a scan input inside. Returns its data to be filled. */
static void *mlo_parameter(mlo_quantizer *q, const char *name, mlo_dtype dtype, int rank, const int64_t *dims) {
    mlo *m = q->m;
    mlo_form f = { dtype, rank + 1, { q->scan.iterations } }, inner = { dtype, rank, {0} };
    for (int i = 0; i < rank; i++) f.dims[i + 1] = inner.dims[i] = dims[i];
    size_t bytes = (size_t)mlo_form_count(&f) * mlo_dtype_size(dtype);
    void *data = mlo_alloc(m, bytes, 1);
    const char *stack = mlo_format(m, "%s_stack", name);
    mlo_value_info *info = mlo_info_new(m, name, &inner);
    if (!data || !stack || !info || mlo_graph_init(m, m->model->graph, mlo_tensor_new(m, stack, dtype, f.dims, (size_t)f.rank, data, bytes))) return NULL;
    if (mlo_node_input(m, q->loop, stack) || !MLO_PUSH(m, q->body->input, q->body->n_input, info)) return NULL;
    return data;
}

/* A kernel node in the new body, with the scope of what it came from and the scales of what it makes. */
static mlo_node *mlo_kernel_node(mlo_quantizer *q, const char *op, const mlo_sublayer *b, const char *out, mlo_dtype to, const double *scale) {
    mlo *m = q->m;
    mlo_node *n = mlo_node_new(m, op, out);
    if (!n || mlo_node_output(m, n, out) || mlo_attr_int(m, n, "to", to)) return NULL;
    int64_t hi = to == MLO_INT8 || mlo_is(n, "mlo.MVUTable") ? 127 : 32767;
    if (mlo_attr_int(m, n, "lo", -hi - 1) || mlo_attr_int(m, n, "hi", hi)) return NULL;
    for (size_t i = 0; b && i < b->node->n_meta; i++)
        if (!mlo_starts(b->node->meta[i].key, "pkg.torch") && mlo_meta_put(m, &n->meta, &n->n_meta, b->node->meta[i].key, b->node->meta[i].value)) return NULL;
    mlo_text t = { m, NULL, 0, 0 };
    for (int64_t i = 0; i < q->scan.iterations; i++) { mlo_puts(&t, i ? " " : ""); mlo_puts(&t, mlo_number_text(m, scale[i])); }
    if (!m->error.code) mlo_meta_put(m, &n->meta, &n->n_meta, "mlo.scale", t.text ? t.text : "");
    mlo_text_free(&t);
    return m->error.code || mlo_graph_add(m, q->body, n) ? NULL : n;
}

static int mlo_inputs(mlo *m, mlo_node *n, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) if (mlo_node_input(m, n, names[i])) return (int)m->error.code;
    return 0;
}

/* Behind what makes a signal: its 8-bit copy, where both widths are wanted. */
static int mlo_narrow(mlo_quantizer *q, const mlo_sublayer *b, const char *name, mlo_signal *s) {
    if (!s->wide) { s->name8 = name; return 0; }
    s->name16 = name;
    if (!s->narrow) return 0;
    mlo *m = q->m;
    const int64_t two = 2;
    const char *p = mlo_format(m, "%s_8_p", name);
    s->name8 = mlo_format(m, "%s_8", name);
    if (m->error.code) return (int)m->error.code;
    int32_t *data = (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &two);
    mlo_node *n = mlo_kernel_node(q, "mlo.Requant", b, s->name8, MLO_INT8, s->scale8);
    if (!data || !n) return (int)m->error.code;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        int64_t mult; int shift;
        mlo_fixed(s->scale16[i] / s->scale8[i], 40, &mult, &shift);
        data[2 * i] = (int32_t)mult; data[2 * i + 1] = shift;
    }
    const char *in[] = { name, p };
    return mlo_inputs(m, n, in, 2);
}

/* The width and scales a signal is made at. */
static mlo_dtype mlo_made_at(const mlo_signal *s, const double **scale) { *scale = s->wide ? s->scale16 : s->scale8; return s->wide ? MLO_INT16 : MLO_INT8; }

/* ---- linear --------------------------------------------------------------------------------------------------------------------------------- */

typedef struct { float *scale; int32_t *bias, *mult, *shift; const char *names[5]; int64_t k, n; } mlo_linear;

/* One iteration's numbers. w: [K,N] float (or [N,K] when transposed), bias: [N] or NULL. */
static int mlo_linear_numbers(mlo_quantizer *q, const mlo_sublayer *b, mlo_linear *l, int64_t i, const mlo_array *w, const mlo_array *bias, double x_scale, double y_scale) {
    if (w->dtype != MLO_FLOAT || (bias && bias->dtype != MLO_FLOAT)) return mlo_fail(q->m, MLO_E_TYPE, b->node, "weights of type %s; float32 is supported", mlo_dtype_name(w->dtype));
    int64_t across = b->transposed ? 1 : l->n, down = b->transposed ? l->k : 1;
    for (int64_t c = 0; c < l->n; c++) {
        const float *column = (const float *)w->data + c * down;
        double most = 0, offset = bias ? (double)((const float *)bias->data)[c] : 0;
        for (int64_t r = 0; r < l->k; r++) { double v = fabs((double)column[r * across]); if (v > most) most = v; }
        double s = most / 127, least = fabs(offset) / x_scale / (1 << 30);    /* the bias must fit 32 bits even where the weights are tiny */
        if (s < least) s = least;
        if (s < 1e-30) s = 1;
        l->scale[i * l->n + c] = (float)s;
        s = (double)(float)s;
        l->bias[i * l->n + c] = (int32_t)floor(offset / (x_scale * s) + 0.5);
        int64_t mult; int shift;
        mlo_fixed(x_scale * s / y_scale, 62, &mult, &shift);
        l->mult[i * l->n + c] = (int32_t)mult; l->shift[i * l->n + c] = shift;
    }
    return 0;
}

/* The parameters of a linear layer in the new body: QuantizeLinear over the weight that was there, and four lists of N numbers. */
static int mlo_linear_parameters(mlo_quantizer *q, const mlo_sublayer *b, mlo_linear *l) {
    mlo *m = q->m;
    mlo_form w = mlo_body_form(&q->r, b->weight);
    l->k = w.dims[b->transposed]; l->n = w.dims[!b->transposed];
    static const char *const suffix[] = { "w_scale", "bias", "mult", "shift" };
    for (int i = 0; i < 4; i++) l->names[i + 1] = mlo_format(m, "%s_%s", b->out, suffix[i]);
    l->names[0] = mlo_format(m, "%s_w8", b->out);
    const char *zero = mlo_format(m, "%s_w_zero", b->out), *weight = b->weight;
    if (m->error.code) return (int)m->error.code;
    l->scale = (float *)mlo_parameter(q, l->names[1], MLO_FLOAT, 1, &l->n);
    l->bias = (int32_t *)mlo_parameter(q, l->names[2], MLO_INT32, 1, &l->n);
    l->mult = (int32_t *)mlo_parameter(q, l->names[3], MLO_INT32, 1, &l->n);
    l->shift = (int32_t *)mlo_parameter(q, l->names[4], MLO_INT32, 1, &l->n);
    void *zeros = mlo_alloc(m, (size_t)l->n, 1);
    if (m->error.code || mlo_graph_init(m, q->body, mlo_tensor_new(m, zero, MLO_INT8, &l->n, 1, zeros, (size_t)l->n))) return (int)m->error.code;
    if (b->transposed) {
        static const int64_t swap[] = { 1, 0 };
        weight = mlo_format(m, "%s_wt", b->out);
        mlo_node *t = mlo_node_new(m, "Transpose", weight);
        if (!weight || mlo_node_input(m, t, b->weight) || mlo_node_output(m, t, weight) || mlo_attr_ints(m, t, "perm", swap, 2) || mlo_graph_add(m, q->body, t)) return (int)m->error.code;
    }
    mlo_node *n = mlo_node_new(m, "QuantizeLinear", l->names[0]);
    const char *in[] = { weight, l->names[1], zero };
    return !n || mlo_inputs(m, n, in, 3) || mlo_node_output(m, n, l->names[0]) || mlo_attr_int(m, n, "axis", 1) || mlo_graph_add(m, q->body, n) ? (int)m->error.code : 0;
}

static int mlo_linear_fill(mlo_quantizer *q, const mlo_sublayer *b, mlo_linear *l, const double *x_scale, const double *y_scale) {
    for (int64_t i = 0; i < q->scan.iterations && !q->m->error.code; i++) {
        mlo_array *w = mlo_scan_value(q->m, &q->scan, b->weight, i), *bias = w && b->bias ? mlo_scan_value(q->m, &q->scan, b->bias, i) : NULL;
        if (w && (bias || !b->bias)) mlo_linear_numbers(q, b, l, i, w, bias, x_scale[i], y_scale[i]);
        mlo_array_free(q->m, w); mlo_array_free(q->m, bias);
    }
    return (int)q->m->error.code;
}

/* ---- tables ------------------------------------------------------------------------------------------------------------------------------------ */

/* f over the 256 values a narrow signal can take, by evaluating the function's own nodes. Returns scratch. */
static mlo_array *mlo_tabulate(mlo_quantizer *q, const mlo_sublayer *u, double x_scale) {
    mlo *m = q->m;
    const int64_t dims[] = { 256 };
    mlo_array **made = (mlo_array **)mlo_scratch(m, u->n_inner + 1, sizeof *made), *result = NULL;
    if (!made) return NULL;
    memset(made, 0, (u->n_inner + 1) * sizeof *made);
    mlo_array *x = made[u->n_inner] = mlo_array_new(m, MLO_FLOAT, 1, dims);
    for (int i = 0; x && i < 256; i++) ((float *)x->data)[i] = (float)((i - 128) * x_scale);
    for (size_t k = 0; x && k < u->n_inner && !m->error.code; k++) {
        mlo_node *n = u->inner[k];
        mlo_array *in[8] = {0}; int own[8] = {0};
        const mlo_op *op = mlo_op_of(m, n);
        if (!op || !op->run || n->n_input > 8) { mlo_fail(m, MLO_E_UNSUPPORTED, n, "an activation function by an op that mlo cannot evaluate"); break; }
        for (size_t i = 0; i < n->n_input && !m->error.code; i++) if (mlo_has_input(n, i)) {
            if (n->input[i] == u->in[0]) in[i] = x;
            for (size_t j = 0; j < k && !in[i]; j++) if (u->inner[j]->output[0] == n->input[i]) in[i] = made[j];
            if (!in[i]) { in[i] = mlo_scan_value(m, &q->scan, n->input[i], 0); own[i] = 1; }
            if (in[i] && own[i] && mlo_array_count(in[i]) == 1) in[i]->rank = 0;
        }
        if (!m->error.code) mlo_call_node(m, op, n, mlo_opset_of(m), (const mlo_array *const *)in, &made[k]);
        for (size_t i = 0; i < n->n_input; i++) if (own[i]) mlo_array_free(m, in[i]);
    }
    if (!m->error.code && u->n_inner) { result = made[u->n_inner - 1]; made[u->n_inner - 1] = NULL; }
    for (size_t k = 0; k <= u->n_inner; k++) mlo_array_free(m, made[k]);
    mlo_scratch_free(m, made);
    return result;
}

static int mlo_table_fill(mlo_quantizer *q, const mlo_sublayer *u, const mlo_signal *x, const double *y_scale, mlo_dtype to, void *table) {
    double hi = to == MLO_INT8 ? 127 : 32767;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        mlo_array *f = mlo_tabulate(q, u, x->scale8[i]);
        if (!f) return (int)q->m->error.code;
        for (int64_t k = 0; k < 256; k++) {
            double v = rint((double)((float *)f->data)[k] / y_scale[i]);
            v = v > hi ? hi : v < -hi - 1 ? -hi - 1 : v == v ? v : 0;
            if (to == MLO_INT8) ((int8_t *)table)[i * 256 + k] = (int8_t)v; else ((int16_t *)table)[i * 256 + k] = (int16_t)v;
        }
        mlo_array_free(q->m, f);
    }
    return 0;
}

/* The unary function that is the only reader of a linear layer, NULL when there is none: they become one MVUTable. */
static mlo_sublayer *mlo_fused_unary(const mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_sublayer *unary = NULL; int readers = 0;
    for (size_t i = 0; i < q->r.n_block; i++) for (int k = 0; k < q->r.block[i]->n_in; k++) if (q->r.block[i]->in[k] == b->out) {
        readers++;
        if (q->r.block[i]->kind == MLO_UNARY) unary = q->r.block[i];
    }
    return readers == 1 && b->out != q->result ? unary : NULL;
}

static int mlo_quantize_linear(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_sublayer *unary = mlo_fused_unary(q, b);
    const mlo_sublayer *last = unary ? unary : b;
    mlo_signal *x = mlo_signal_of(q, b->in[0]), *pre = mlo_signal_of(q, b->out), *y = mlo_signal_of(q, last->out);
    const double *y_scale; mlo_dtype to = mlo_made_at(y, &y_scale);
    mlo_linear l;
    if (mlo_linear_parameters(q, b, &l) || mlo_linear_fill(q, b, &l, x->scale8, unary ? pre->scale8 : y_scale)) return (int)m->error.code;
    const char *table = unary ? mlo_format(m, "%s_table", unary->out) : NULL;
    const int64_t size = 256;
    void *entries = unary ? mlo_parameter(q, table, to, 1, &size) : NULL;
    if (unary && (!entries || mlo_table_fill(q, unary, pre, y_scale, to, entries))) return (int)m->error.code;
    mlo_node *n = mlo_kernel_node(q, unary ? "mlo.MVUTable" : "mlo.MVU", b, last->out, to, y_scale);
    const char *in[] = { x->name8, l.names[0], l.names[2], l.names[3], l.names[4], table };
    if (!n || mlo_inputs(m, n, in, unary ? 6 : 5)) return (int)m->error.code;
    return mlo_narrow(q, last, last->out, y);
}

/* ---- attention, norm, residual --------------------------------------------------------------------------------------------------------------------- */

static int mlo_quantize_attention(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_signal *s[3], *y = mlo_signal_of(q, b->out);
    for (int i = 0; i < 3; i++) s[i] = mlo_signal_of(q, b->in[i]);
    const double *y_scale; mlo_dtype to = mlo_made_at(y, &y_scale);
    mlo_form f = mlo_body_form(&q->r, b->in[1]);
    int lt = mlo_clog2(mlo_form_count(&f) / f.dims[f.rank - 1]);
    const char *p = mlo_format(m, "%s_p", b->out);
    const int64_t four = 4;
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &four) : NULL;
    mlo_node *n = data ? mlo_kernel_node(q, "mlo.Attention", b, b->out, to, y_scale) : NULL;
    if (!n || mlo_attr_int(m, n, "heads", b->heads) || mlo_attr_int(m, n, "lt", lt)) return (int)m->error.code;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        int64_t ms, mo; int ss, so;
        mlo_fixed(s[0]->scale8[i] * s[1]->scale8[i] * fabs(b->scale) * 64 * 1.4426950408889634, 40, &ms, &ss);
        mlo_fixed(s[2]->scale8[i] / y_scale[i], 62 - lt - 8, &mo, &so);
        data[4 * i] = (int32_t)ms; data[4 * i + 1] = ss; data[4 * i + 2] = (int32_t)mo; data[4 * i + 3] = so + lt + 8;
    }
    if (b->scale < 0) return mlo_fail(m, MLO_E_UNSUPPORTED, b->node, "attention scores with a negative scale %g", b->scale);
    const char *in[] = { s[0]->name8, s[1]->name8, s[2]->name8, q->mask_bits, p };
    if (mlo_inputs(m, n, in, 5)) return (int)m->error.code;
    return mlo_narrow(q, b, b->out, y);
}

/* g, b, [eps, shift] of one iteration: see kernel_layernorm.c. */
static void mlo_norm_numbers(const mlo_sublayer *b, int64_t channels, const float *gamma, const float *beta, double x_scale, double y_scale, int32_t *g, int32_t *o, int64_t *p) {
    double most_g = 1e-30, most_b = 1e-30;
    for (int64_t c = 0; c < channels; c++) {
        double vg = gamma ? fabs((double)gamma[c]) : 1, vb = beta ? fabs((double)beta[c]) : 0;
        if (vg > most_g) most_g = vg;
        if (vb > most_b) most_b = vb;
    }
    int by_g = (int)floor(log2(32767.0 / (most_g / y_scale))) + 14, by_b = (int)floor(log2(1073741823.0 / (most_b / y_scale)));
    int sh = by_g < by_b ? by_g : by_b;
    sh = sh > 30 ? 30 : sh < 0 ? 0 : sh;
    for (int64_t c = 0; c < channels; c++) {
        double vg = floor(ldexp((gamma ? (double)gamma[c] : 1) / y_scale, sh - 14) + 0.5);
        g[c] = (int32_t)(vg > 32767 ? 32767 : vg < -32768 ? -32768 : vg);
        o[c] = (int32_t)(floor(ldexp((beta ? (double)beta[c] : 0) / y_scale, sh) + 0.5) + (sh ? ldexp(1, sh - 1) : 0));
    }
    double eps = floor((double)b->epsilon * (double)channels * (double)channels / (x_scale * x_scale) + 0.5), cap = ldexp(1, 47);
    p[0] = eps < 1 ? 1 : eps > cap ? (int64_t)cap : (int64_t)eps;
    p[1] = sh;
}

static int mlo_quantize_norm(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_signal *x = mlo_signal_of(q, b->in[0]), *y = mlo_signal_of(q, b->out);
    const double *y_scale; mlo_dtype to = mlo_made_at(y, &y_scale);
    mlo_form f = mlo_body_form(&q->r, b->in[0]);
    int64_t channels = f.rank > 0 ? f.dims[f.rank - 1] : 1;
    const int64_t two = 2;
    const char *names[] = { mlo_format(m, "%s_g", b->out), mlo_format(m, "%s_b", b->out), mlo_format(m, "%s_p", b->out) };
    if (m->error.code) return (int)m->error.code;
    int32_t *g = (int32_t *)mlo_parameter(q, names[0], MLO_INT32, 1, &channels), *o = (int32_t *)mlo_parameter(q, names[1], MLO_INT32, 1, &channels);
    int64_t *p = (int64_t *)mlo_parameter(q, names[2], MLO_INT64, 1, &two);
    for (int64_t i = 0; i < q->scan.iterations && !m->error.code; i++) {
        mlo_array *gamma = b->weight ? mlo_scan_value(m, &q->scan, b->weight, i) : NULL, *beta = b->bias && !m->error.code ? mlo_scan_value(m, &q->scan, b->bias, i) : NULL;
        if ((gamma && (gamma->dtype != MLO_FLOAT || mlo_array_count(gamma) != channels)) || (beta && (beta->dtype != MLO_FLOAT || mlo_array_count(beta) != channels)))
            mlo_fail(m, MLO_E_TYPE, b->node, "a norm whose scale or bias is not %lld float32 values", (long long)channels);
        if (!m->error.code) mlo_norm_numbers(b, channels, gamma ? (float *)gamma->data : NULL, beta ? (float *)beta->data : NULL, x->scale16[i], y_scale[i], g + i * channels, o + i * channels, p + 2 * i);
        mlo_array_free(m, gamma); mlo_array_free(m, beta);
    }
    mlo_node *n = m->error.code ? NULL : mlo_kernel_node(q, "mlo.LayerNorm", b, b->out, to, y_scale);
    const char *in[] = { x->name16, names[0], names[1], names[2] };
    if (!n || mlo_attr_int(m, n, "center", b->center) || mlo_inputs(m, n, in, 4)) return (int)m->error.code;
    return mlo_narrow(q, b, b->out, y);
}

static int mlo_quantize_residual(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_signal *a = mlo_signal_of(q, b->in[0]), *c = mlo_signal_of(q, b->in[1]), *y = mlo_signal_of(q, b->out);
    const double *y_scale; mlo_dtype to = mlo_made_at(y, &y_scale);
    const char *p = mlo_format(m, "%s_p", b->out);
    const int64_t three = 3;
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &three) : NULL;
    mlo_node *n = data ? mlo_kernel_node(q, "mlo.Add", b, b->out, to, y_scale) : NULL;
    if (!n) return (int)m->error.code;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        double ra = a->scale16[i] / y_scale[i], rb = c->scale16[i] / y_scale[i];
        int64_t mult; int shift;
        mlo_fixed(ra > rb ? ra : rb, 40, &mult, &shift);
        data[3 * i] = (int32_t)floor(ldexp(ra, shift) + 0.5);
        data[3 * i + 1] = (int32_t)floor(ldexp(rb, shift) + 0.5);
        if (data[3 * i] > 32767) data[3 * i] = 32767;
        if (data[3 * i + 1] > 32767) data[3 * i + 1] = 32767;
        data[3 * i + 2] = shift;
    }
    const char *in[] = { a->name16, c->name16, p };
    if (mlo_inputs(m, n, in, 3)) return (int)m->error.code;
    return mlo_narrow(q, b, b->out, y);
}

/* ---- the mask ------------------------------------------------------------------------------------------------------------------------------------- */

/* A boolean [frames, tokens] value in the outer graph, true where a key counts. Without a mask: a constant of ones. */
static int mlo_quantize_mask(mlo_quantizer *q, mlo_graph *before, int64_t tokens) {
    mlo *m = q->m;
    mlo_value *v = mlo_value_of(q->scan.outer, q->mask);
    mlo_form f = mlo_form_of(v);
    q->mask_bits = mlo_intern(m, "mlo_mask");
    if (!q->mask_bits) return (int)m->error.code;
    if (!q->mask) {
        const int64_t dims[] = { 1, tokens };
        char *ones = (char *)mlo_alloc(m, (size_t)tokens, 1);
        if (!ones) return (int)m->error.code;
        memset(ones, 1, (size_t)tokens);
        return mlo_graph_init(m, q->scan.outer, mlo_tensor_new(m, "mlo_mask", MLO_BOOL, dims, 2, ones, (size_t)tokens));
    }
    if (!v) return mlo_fail_at(m, MLO_E_UNSUPPORTED, q->mask, "an attention mask that is computed inside the loop");
    if (!mlo_form_known(&f) || f.rank < 1 || f.dims[f.rank - 1] != tokens || mlo_form_count(&f) != tokens)
        return mlo_fail_at(m, MLO_E_UNSUPPORTED, q->mask, "an attention mask of shape %s; one bit per key ([1,1,1,%lld]) is supported", mlo_dims_text(m, f.rank, f.dims), (long long)tokens);
    if (q->mask_bad) return mlo_fail_at(m, MLO_E_UNSUPPORTED, q->mask, "an additive attention bias: calibration saw values that are neither 0 nor below -10000; only masks are supported");
    static const float limit = -10000.0f;
    static const int64_t shape[] = { 1, -1 };
    const int64_t two = 2;
    mlo_node *compare = mlo_node_new(m, "Greater", "mlo_mask_compare"), *reshape = mlo_node_new(m, "Reshape", "mlo_mask_reshape");
    const char *in[] = { q->mask, "mlo_mask_limit" }, *in2[] = { "mlo_mask_keys", "mlo_mask_shape" };
    if (mlo_graph_init(m, q->scan.outer, mlo_tensor_new(m, "mlo_mask_limit", MLO_FLOAT, NULL, 0, &limit, sizeof limit))
        || mlo_graph_init(m, q->scan.outer, mlo_tensor_new(m, "mlo_mask_shape", MLO_INT64, &two, 1, shape, sizeof shape))
        || mlo_inputs(m, compare, in, 2) || mlo_node_output(m, compare, "mlo_mask_keys") || mlo_graph_add(m, before, compare)
        || mlo_inputs(m, reshape, in2, 2) || mlo_node_output(m, reshape, "mlo_mask") || mlo_graph_add(m, before, reshape)) return (int)m->error.code;
    return 0;
}

/* A constant mask: its values are all there is to see. */
static int mlo_mask_constant(mlo_quantizer *q) {
    mlo_value *v = q->mask ? mlo_value_of(q->scan.body, q->mask) : NULL;
    if (!v || !v->tensor) return 0;
    mlo_array *a = mlo_tensor_load(q->m, v->tensor);
    if (!a) return (int)q->m->error.code;
    int any = 0;
    mlo_calibrate_see(q, NULL, -1, q->mask, a);
    for (int64_t i = 0, n = mlo_array_count(a); a->dtype == MLO_FLOAT && i < n; i++) any |= ((float *)a->data)[i] != 0;
    mlo_array_free(q->m, a);
    if (!any) q->mask = NULL;
    return 0;
}

/* ---- putting it together ---------------------------------------------------------------------------------------------------------------------------- */

/* The new body: the old one's parameters and what is computed from them, then one kernel after the other. */
static int mlo_quantize_body(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_graph *old = q->scan.body;
    mlo_form f = mlo_form_of(mlo_value_of(old, old->input[0]->name));
    f.dtype = MLO_INT16;
    mlo_value_info *state = mlo_info_new(m, old->input[0]->name, &f);
    if (!state || !MLO_PUSH(m, q->body->input, q->body->n_input, state)) return (int)m->error.code;
    for (size_t i = 1; i < old->n_input; i++) if (!MLO_PUSH(m, q->body->input, q->body->n_input, old->input[i])) return (int)m->error.code;
    for (size_t i = 0; i < old->n_init; i++) if (mlo_graph_init(m, q->body, old->init[i])) return (int)m->error.code;
    for (size_t i = 0; i < old->n_node; i++) if (!mlo_is_carried(&q->r, old->node[i]->output[0]) && mlo_graph_add(m, q->body, old->node[i])) return (int)m->error.code;
    if (mlo_narrow(q, NULL, state->name, mlo_signal_of(q, state->name))) return (int)m->error.code;
    for (size_t i = 0; i < q->r.n_block; i++) {
        const mlo_sublayer *b = q->r.block[i];
        int r = 0;
        switch (b->kind) {
        case MLO_LINEAR: r = mlo_quantize_linear(q, b); break;
        case MLO_ATTENTION: r = mlo_quantize_attention(q, b); break;
        case MLO_NORM: r = mlo_quantize_norm(q, b); break;
        case MLO_RESIDUAL: r = mlo_quantize_residual(q, b); break;
        case MLO_UNARY:                                          /* made together with the linear layer before it */
            if (!mlo_signal_of(q, b->out)->name8 && !mlo_signal_of(q, b->out)->name16)
                r = mlo_fail(m, MLO_E_UNSUPPORTED, b->node, "a function of '%s', which is no linear layer of its own; only activations right behind a linear layer are supported", b->in[0]);
        }
        if (r) return r;
    }
    mlo_value_info *out = mlo_info_new(m, mlo_signal_of(q, q->result)->name16, &f);
    return out && MLO_PUSH(m, q->body->output, q->body->n_output, out) ? 0 : (int)m->error.code;
}

/* Quantize or Dequantize in the outer graph. */
static int mlo_edge_node(mlo_quantizer *q, mlo_graph *list, const char *op, const char *in, const char *out, double scale) {
    mlo *m = q->m;
    float *data = (float *)mlo_alloc(m, 1, sizeof *data);
    const char *name = mlo_format(m, "%s_scale", out);
    mlo_node *n = mlo_node_new(m, op, out);
    if (!data || !name || !n) return (int)m->error.code;
    *data = (float)scale;
    const char *inputs[] = { in, name };
    if (mlo_graph_init(m, q->scan.outer, mlo_tensor_new(m, name, MLO_FLOAT, NULL, 0, data, sizeof *data)) || mlo_inputs(m, n, inputs, 2) || mlo_node_output(m, n, out)) return (int)m->error.code;
    if (mlo_is(n, "mlo.Quantize") && (mlo_attr_int(m, n, "to", MLO_INT16) || mlo_attr_int(m, n, "lo", -32768) || mlo_attr_int(m, n, "hi", 32767))) return (int)m->error.code;
    return mlo_graph_add(m, list, n);
}

/* Replaces the old Scan in the outer graph by Quantize, the new Scan, Dequantize. */
static int mlo_quantize_replace(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_graph *g = q->scan.outer, list = {0};
    mlo_signal *in = mlo_signal_of(q, q->scan.body->input[0]->name), *out = mlo_signal_of(q, q->result);
    mlo_form f = mlo_body_form(&q->r, q->scan.body->input[0]->name);
    const char *x = q->scan.node->input[0], *y = q->scan.node->output[0], *xq = mlo_format(m, "%s_q", x), *yq = mlo_format(m, "%s_q", y);
    if (!xq || !yq) return (int)m->error.code;
    q->loop->input[0] = xq;
    for (size_t i = 0; i < g->n_node; i++) {
        if (g->node[i] != q->scan.node) { if (mlo_graph_add(m, &list, g->node[i])) return (int)m->error.code; continue; }
        if (mlo_quantize_mask(q, &list, mlo_form_count(&f) / f.dims[f.rank - 1]) || mlo_edge_node(q, &list, "mlo.Quantize", x, xq, in->scale16[0])
            || mlo_node_output(m, q->loop, yq) || mlo_graph_add(m, &list, q->loop)
            || mlo_edge_node(q, &list, "mlo.Dequantize", yq, y, out->scale16[q->scan.iterations - 1])) return (int)m->error.code;
    }
    g->node = list.node; g->n_node = list.n_node;
    return 0;
}

/* The `quantize` stage. */
static int mlo_quantize(mlo *m) {
    mlo_quantizer q;
    memset(&q, 0, sizeof q);
    q.m = m;
    if (mlo_scan_choose(m, &q.scan)) return (int)m->error.code;
    if (q.scan.n_state != 1 || q.scan.n_tap) return mlo_fail(m, MLO_E_UNSUPPORTED, q.scan.node, "a loop of %zu carried values and %zu taps; one carried value and no taps are supported", q.scan.n_state, q.scan.n_tap);
    mlo_form carried = mlo_form_of(mlo_value_of(q.scan.body, q.scan.body->input[0]->name));
    if (!mlo_form_known(&carried)) return mlo_fail(m, MLO_E_SHAPE, q.scan.node, "the carried value is %s: bind the open dimensions (%s) with --dim NAME=N", mlo_dims_text(m, carried.rank, carried.dims), mlo_open_dims(m));
    if (mlo_recognise(m, &q.scan, &q.r, &q.result) || mlo_demand(&q) || mlo_mask_constant(&q) || mlo_calibrate_run(&q)) return (int)m->error.code;
    mlo_choose_scales(&q);
    q.loop = mlo_node_new(m, "Scan", mlo_node_name(q.scan.node));
    q.body = MLO_NEW(m, mlo_graph);
    if (!q.loop || !q.body) return (int)m->error.code;
    q.body->name = q.scan.body->name;
    q.mask_bits = mlo_intern(m, "mlo_mask");
    for (size_t i = 0; i < q.scan.node->n_input; i++) if (mlo_node_input(m, q.loop, q.scan.node->input[i])) return (int)m->error.code;
    if (mlo_quantize_body(&q) || mlo_quantize_replace(&q)) return (int)m->error.code;
    q.loop->meta = q.scan.node->meta; q.loop->n_meta = q.scan.node->n_meta;
    if (mlo_attr_graph(m, q.loop, "body", q.body) || mlo_attr_int(m, q.loop, "num_scan_inputs", (int64_t)q.body->n_input - 1)) return (int)m->error.code;
    q.scan.node = q.loop; q.scan.body = q.body;
    MLO_TRY(mlo_index(m, m->model->graph));
    MLO_TRY(mlo_scan_prune(m, &q.scan));
    MLO_TRY(mlo_add_functions(m, m->model));
    return mlo_infer(m);
}
