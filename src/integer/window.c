/* window: recognises a depthwise convolution or an average over a grid of tokens and makes it a Conv.
 *
 * in:  Conv with a group for each channel, stride and dilation 1, as many tokens out as in, which
 *     reads and makes tokens behind transposes and reshapes: [1, C, H, W] of H W tokens, [1, C, T]
 *     of a sequence.
 * out: the kernel Conv; a function of one value behind it is a RequantTable.
 *
 *     AveragePool over such a grid, less what it reads or not, times a factor for each channel or not:
 *     PoolFormer's. Where it is over what is there of its window (count_include_pad = 0) its weights differ at the
 *     border.
 *
 * What lies outside of the grid is 0, so that what a window reads has no zero point of its own, and
 * one scale for all channels; weights have a scale per channel.
 *
 * invariant: which token is where is found by following views element by element (layout.c).
 * cost: one layer's weights in memory at a time.
 */

/* ---- recognising ---------------------------------------------------------- */

/* Is element (t, c) of the tokens at one end of a chain element (c, t) of the channels at its other
 * end? first: the source has its channels first. */
static int mlo_is_across(
    const mlo_recogniser *r, const char *source, const mlo_chain *c, int64_t channels, int first) {
    mlo_array *map = mlo_index_map(&r->in, source, c);
    const int64_t count = map ? mlo_array_count(map) : 0, tokens = count / channels;
    int ok = map != NULL;
    for (int64_t i = 0; ok && i < count; i++) {
        const int64_t from = first ? i % channels * tokens + i / channels
                                   : i % tokens * channels + i / tokens;
        ok = ((int32_t *)map->data)[i] == from;
    }
    mlo_array_free(r->m, map);
    return ok;
}

/* Rows (or columns) of a window of `size` in front of its token. */
static int64_t mlo_window_before(const mlo_node *n, size_t axis, int64_t size) {
    if (mlo_string_is(n, "auto_pad", "SAME_UPPER", 0)) return (size - 1) / 2;
    if (mlo_string_is(n, "auto_pad", "SAME_LOWER", 0)) return size / 2;
    return mlo_listed(n, "pads", axis, 0);
}

/* A window, and its padding, leave as many tokens as there are, each in its window: why not; NULL: they do. */
static const char *mlo_window_placed(const mlo_node *n, const mlo_form *x, const mlo_form *y,
    const int64_t size[2], mlo_sublayer *b) {
    const size_t axes = (size_t)x->rank - 2;
    if (x->dims[0] != 1) return "a convolution over several frames at a time";
    for (size_t i = 0; i < axes; i++)
        if (x->dims[i + 2] != y->dims[i + 2])
            return "a convolution whose padding does not leave as many tokens";
    b->top = mlo_window_before(n, 0, size[0]);
    b->left = axes > 1 ? mlo_window_before(n, 1, size[1]) : 0;
    b->width = axes > 1 ? x->dims[3] : 1;
    b->tokens = x->dims[2] * (axes > 1 ? x->dims[3] : 1);
    if (b->top < 0 || b->top >= size[0] || b->left < 0 || (axes > 1 && b->left >= size[1]))
        return "a convolution whose window is beside its token";
    return NULL;
}

static const char *mlo_window_stepped(const mlo_node *n, size_t axes) {
    for (size_t i = 0; i < axes; i++) {
        if (mlo_listed(n, "strides", i, 1) != 1)
            return "a convolution with a stride, which leaves fewer tokens";
        if (mlo_listed(n, "dilations", i, 1) != 1) return "a convolution with a dilation";
    }
    return NULL;
}

/* Rows and columns of an average window, at most; parts that a frame can have of it: 16 of rows times 16 of columns. */
enum { MLO_POOL_MOST = 7, MLO_POOL_PARTS = 256 };

/* Fills what the window of an average looks at; why there is no hardware for it, NULL: there is. */
static const char *mlo_pool_form(mlo_recogniser *r, const mlo_node *n, mlo_sublayer *b) {
    const mlo_form x = mlo_body_form(&r->in, n->input[0]), y = mlo_body_form(&r->in, n->output[0]);
    for (size_t i = 0; i < 2; i++) {
        b->pool[i] = mlo_listed(n, "kernel_shape", i, 0);
        if (b->pool[i] < 1 || b->pool[i] > MLO_POOL_MOST)
            return "an average over more than 7 rows or columns";
    }
    b->zeros = mlo_int(n, "count_include_pad", 0) != 0;
    const char *why = mlo_window_stepped(n, 2);
    return why ? why : mlo_window_placed(n, &x, &y, b->pool, b);
}

/* Fills what the window looks at; why there is no hardware for it, NULL: there is. */
static const char *mlo_window_form(mlo_recogniser *r, const mlo_node *n, mlo_sublayer *b) {
    const mlo_form x = mlo_body_form(&r->in, n->input[0]), w = mlo_body_form(&r->in, n->input[1]);
    const mlo_form y = mlo_body_form(&r->in, n->output[0]);
    if (x.rank > 4 || w.rank != x.rank) return "a convolution over more than rows and columns";
    const char *why = mlo_window_stepped(n, (size_t)x.rank - 2);
    if (why) return why;
    if (mlo_int(n, "group", 1) != x.dims[1] || w.dims[0] != x.dims[1])
        return "a convolution of several channels with each other (its groups are not as many as "
               "its channels)";
    const int64_t size[] = { w.dims[2], w.rank > 3 ? w.dims[3] : 1 };
    return mlo_window_placed(n, &x, &y, size, b);
}

/* What is taken off and multiplied by behind an average. */
typedef struct {
    const char *gain; /* a factor for each channel; NULL: none */
    const char *less; /* what is taken off; NULL: nothing */
    mlo_chain made; /* between the average and what is behind it */
} mlo_pooled;

/* The average that a value ends in; NULL: it ends in none. */
static mlo_node *mlo_pool_behind(const mlo_recogniser *r, const char *name, mlo_pooled *p) {
    const mlo_inside *in = &r->in;
    const char *from, *gain;
    const mlo_form f = mlo_body_form(in, name);
    memset(p, 0, sizeof *p);
    if (mlo_is_half(in, mlo_made_by(in, name), "Mul", &from, &gain) && mlo_is_used_once(in, from)
        && mlo_is_per_channel(in, gain, mlo_last_dim(&f))) {
        p->gain = gain;
        name = from;
    }
    const mlo_node *n = mlo_made_by(in, name);
    if (mlo_is(n, "Sub") && mlo_is_carried(in, n->input[1]) && mlo_is_used_once(in, n->input[0])) {
        p->less = n->input[1];
        name = n->input[0];
    }
    mlo_node *pool = mlo_made_by(in, mlo_chain_walk(in, name, &p->made, NULL));
    return mlo_is(pool, "AveragePool") && mlo_is_carried(in, pool->input[0]) ? pool : NULL;
}

/* Is it that value, as it stands, behind views? */
static int mlo_is_of_source(const mlo_recogniser *r, const char *name, const char *source) {
    mlo_chain same;
    const char *from = mlo_chain_walk(&r->in, name, &same, NULL);
    return from == source && !same.n_rounding && mlo_is_unmoved(r, from, &same);
}

/* Does a window read tokens, behind `before`, and make tokens, in front of `behind`, row after row? */
static int mlo_is_over_tokens(const mlo_recogniser *r, const mlo_node *n, mlo_sublayer *b,
    mlo_chain *before, const mlo_chain *behind) {
    const int64_t channels = mlo_body_form(&r->in, n->input[0]).dims[1];
    b->in[0] = mlo_chain_walk(&r->in, n->input[0], before, NULL);
    const mlo_form from = mlo_body_form(&r->in, b->in[0]), to = mlo_body_form(&r->in, b->out);
    return mlo_last_dim(&from) == channels && mlo_last_dim(&to) == channels
        && mlo_is_across(r, b->in[0], before, channels, 0)
        && mlo_is_across(r, n->output[0], behind, channels, 1);
}

static const char *mlo_block_pool(
    mlo_recogniser *r, mlo_node *n, const char *name, const mlo_pooled *p) {
    mlo_sublayer *b = mlo_block_new(r, n, name);
    mlo_chain chain;
    if (!b) return NULL;
    const char *why = mlo_pool_form(r, n, b);
    if (why) return mlo_cannot(r, n, why);
    if (!mlo_is_over_tokens(r, n, b, &chain, &p->made) || chain.n_rounding || p->made.n_rounding)
        return mlo_cannot(r, n, "an average over something else than tokens, row after row");
    if (p->less && !mlo_is_of_source(r, p->less, b->in[0]))
        return mlo_cannot(r, n, "an average less something else than what it is of");
    if (r->tokens && r->tokens != b->tokens)
        return mlo_cannot(r, n, "an average over some of a frame's tokens");
    r->tokens = b->tokens;
    b->n_in = 1;
    b->less = p->less != NULL;
    b->weight = p->gain;
    return mlo_block_finish(r, b) ? b->out : NULL;
}

static const char *mlo_block_window(
    mlo_recogniser *r, mlo_node *n, const char *name, const mlo_chain *made) {
    mlo_sublayer *b = mlo_block_new(r, n, name);
    mlo_chain chain;
    if (!b) return NULL;
    const char *why = mlo_window_form(r, n, b);
    if (why) return mlo_cannot(r, n, why);
    if (!mlo_is_over_tokens(r, n, b, &chain, made))
        return mlo_cannot(r, n, "a convolution over something else than tokens, row after row");
    if (r->tokens && r->tokens != b->tokens)
        return mlo_cannot(r, n, "a convolution over some of a frame's tokens");
    r->tokens = b->tokens;
    b->n_in = 1;
    b->weight = n->input[1];
    b->bias = mlo_has_input(n, 2) ? n->input[2] : NULL;
    if (!mlo_block_finish(r, b) || mlo_chain_note(r, b->in[0], &chain, 1)
        || mlo_chain_note(r, b->out, made, 1))
        return NULL;
    b->raw[0] &= !chain.n_rounding;
    return b->out;
}

static const char *mlo_recognise_window(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    mlo_chain chain;
    chain.n = chain.n_rounding = 0;
    const char *source = mlo_is_layout(n) ? mlo_chain_walk(&r->in, name, &chain, NULL) : name;
    mlo_node *p = mlo_made_by(&r->in, source);
    mlo_pooled pooled;
    mlo_node *pool = mlo_pool_behind(r, name, &pooled);
    *is = pool != NULL;
    if (pool) return mlo_block_pool(r, pool, name, &pooled);
    *is = mlo_is(p, "Conv");
    if (*is && mlo_is_carried(&r->in, p->input[1]))
        return mlo_cannot(r, p, "a convolution with weights that the input makes");
    return *is ? mlo_block_window(r, p, name, &chain) : NULL;
}

static double mlo_products_window(mlo_quantizer *q, const mlo_sublayer *b) {
    const mlo_form w = mlo_body_form(&q->r.in, b->weight), y = mlo_body_form(&q->r.in, b->out);
    if (b->pool[0]) return (double)(mlo_last_dim(&y) * b->pool[0] * b->pool[1]);
    return (double)mlo_form_count(&w);
}
static const char *mlo_type_window(const mlo_sublayer *b) {
    return b->width > 1 ? "conv2d" : "conv1d";
}

/* ---- numbers -------------------------------------------------------------- */

typedef struct {
    float *scale;
    mlo_channel_words c;
    const char *weight;
    int64_t channels;
    int64_t taps; /* of a channel */
    double *grain; /* [C]: what all of a channel's weights are multiples of, 0: of nothing; NULL */
} mlo_windowed;

/* The scale of a channel's weights, such that its bias fits 32 bits. grain: what all of them are multiples of;
 * 0: nothing is known of them. */
static double mlo_window_scale(const mlo_quantizer *q, const float *w, int64_t taps, double grain,
    double top, double bias, double x_scale) {
    double most = 0, least = fabs(bias) / x_scale / (1 << 29);
    for (int64_t k = 0; k < taps; k++)
        if (fabs((double)w[k]) > most) most = fabs((double)w[k]);
    const double fine = grain > 1e-30 && most < grain * (top + 0.5) ? grain : most / top;
    const double scale = mlo_step(q, most > 1e-30 ? fine : 1);
    return scale < least ? mlo_step(q, least) : scale;
}

/* One iteration's numbers. w: [C, .., KH, KW] float, bias: [C] or NULL. */
static int mlo_window_numbers(mlo_quantizer *q, const mlo_sublayer *b, const mlo_windowed *l,
    int64_t i, const mlo_array *w, const mlo_array *bias, const mlo_form_made *y) {
    const mlo_signal *x = mlo_signal_of(q, b->in[0]);
    const double top = (double)mlo_weight_range_of(q, b).hi;
    if (w->dtype != MLO_FLOAT || mlo_array_count(w) != l->channels * l->taps
        || (bias && (bias->dtype != MLO_FLOAT || mlo_array_count(bias) != l->channels)))
        return mlo_fail(q->m, MLO_E_TYPE, b->node,
            "weights of type %s; float32 weights, and biases of %lld channels, are supported",
            mlo_dtype_name(w->dtype), (long long)l->channels);
    for (int64_t c = 0, at = i * l->channels; c < l->channels; c++, at++) {
        const double exact = (bias ? (double)((const float *)bias->data)[c] : 0)
            - (y->zero ? y->zero[at] : 0);
        const double shape = y->shape ? (double)y->shape[at] : 1;
        int64_t mult;
        int shift;
        const float *of = (const float *)w->data + c * l->taps;
        l->scale[at] = (float)mlo_window_scale(
            q, of, l->taps, l->grain ? l->grain[c] : 0, top, exact, x->narrow_scale[i]);
        const double step = (double)l->scale[at] * x->narrow_scale[i];
        MLO_TRY(mlo_ratio(q, b->node, step / (y->scale[i] * shape), 62, &mult, &shift));
        l->c.bias[at] = mlo_to_int32(exact / step);
        l->c.mult[at] = (int32_t)mult;
        l->c.shift[at] = shift;
    }
    return 0;
}

static int mlo_window_fill(
    mlo_quantizer *q, const mlo_sublayer *b, const mlo_windowed *l, const mlo_form_made *y) {
    for (int64_t i = 0; i < q->scan.iterations && !q->m->error.code; i++) {
        mlo_array *w = mlo_scan_value(q->m, &q->scan, b->weight, i);
        mlo_array *bias = b->bias ? mlo_scan_value(q->m, &q->scan, b->bias, i) : NULL;
        if (!q->m->error.code) mlo_window_numbers(q, b, l, i, w, bias, y);
        mlo_array_free(q->m, w);
        mlo_array_free(q->m, bias);
    }
    return mlo_failed(q->m);
}

/* The weights in the new body: [C, KH, KW], QuantizeLinear over the weight that was there. */
static int mlo_window_weight(mlo_quantizer *q, const mlo_sublayer *b, mlo_windowed *l) {
    mlo *m = q->m;
    const mlo_form w = mlo_body_form(&q->r.in, b->weight);
    const int64_t three = 3;
    int64_t *dims = MLO_NEW_N(m, int64_t, 3);
    if (!dims) return mlo_failed(m);
    dims[0] = w.dims[0];
    dims[1] = w.dims[2];
    dims[2] = w.rank > 3 ? w.dims[3] : 1;
    const char *form = mlo_format(m, "%s_w_form", b->out);
    const char *scale = mlo_format(m, "%s_w_scale", b->out);
    const char *zero = mlo_format(m, "%s_w_zero", b->out);
    const char *grid = b->weight;
    l->weight = mlo_format(m, "%s_w8", b->out);
    l->channels = dims[0];
    l->taps = dims[1] * dims[2];
    if (m->error.code) return mlo_failed(m);
    l->scale = (float *)mlo_parameter(q, scale, MLO_FLOAT, 1, &l->channels);
    void *zeros = mlo_alloc(m, (size_t)l->channels, 1);
    if (m->error.code || mlo_channel_parameters(q, b->out, l->channels, &l->c)
        || mlo_graph_init(m, q->body,
            mlo_tensor_new(m, zero, MLO_INT8, &l->channels, 1, zeros, (size_t)l->channels))
        || mlo_graph_init(
            m, q->body, mlo_tensor_new(m, form, MLO_INT64, &three, 1, dims, 3 * sizeof *dims)))
        return mlo_failed(m);
    const char *in[] = { grid, form };
    mlo_node *r = mlo_node_new(m, "Reshape", mlo_format(m, "%s_w_grid", b->out));
    grid = mlo_format(m, "%s_w_grid", b->out);
    if (!r || mlo_inputs(m, r, in, 2) || mlo_node_output(m, r, grid)
        || mlo_graph_add(m, q->body, r))
        return mlo_failed(m);
    const char *in2[] = { grid, scale, zero };
    mlo_node *n = mlo_node_new(m, "QuantizeLinear", l->weight);
    return !n || mlo_inputs(m, n, in2, 3) || mlo_node_output(m, n, l->weight)
            || mlo_attr_int(m, n, "axis", 0) || mlo_graph_add(m, q->body, n)
        ? mlo_failed(m)
        : mlo_clip_node(q, b, &l->weight);
}

/* ---- averages ------------------------------------------------------------- */

static int64_t mlo_common_divisor(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* What an average over what is there of its window multiplies tap `tap` by, in each of the window's parts; how
 * many parts there are. counts: taps that are there in each of them. */
static int64_t mlo_pool_counts(const mlo_sublayer *b, int64_t *counts) {
    const int64_t below = b->pool[0] - 1 - b->top, right = b->pool[1] - 1 - b->left;
    int64_t n = 0;
    counts[0] = b->pool[0] * b->pool[1];
    if (b->zeros) return 1;
    for (int64_t u = 0; u <= b->top; u++)
        for (int64_t d = 0; d <= below; d++)
            for (int64_t l = 0; l <= b->left; l++)
                for (int64_t r = 0; r <= right; r++)
                    counts[n++] = (b->pool[0] - u - d) * (b->pool[1] - l - r);
    return n;
}

/* The least number that all counts divide, if a byte has room for it; else 0. */
static int64_t mlo_pool_parts(const int64_t *counts, int64_t n) {
    int64_t all = 1;
    for (int64_t k = 0; k < n && all <= 128; k++)
        all = all / mlo_common_divisor(all, counts[k]) * counts[k];
    return all <= 128 ? all : 0;
}

/* Iteration i's weights and numbers. to: [C, KH, KW, parts]. */
static int mlo_pool_fill(mlo_quantizer *q, const mlo_sublayer *b, const mlo_windowed *l, int64_t i,
    const int64_t *counts, int64_t edges, const mlo_form_made *y, int8_t *to) {
    mlo *m = q->m;
    const mlo_weight_range range = mlo_weight_range_of(q, b);
    const int64_t all = l->channels * l->taps, own = b->top * b->pool[1] + b->left;
    const int64_t parts = mlo_pool_parts(counts, edges);
    mlo_array *gain = b->weight ? mlo_scan_value(m, &q->scan, b->weight, i) : NULL;
    mlo_array *w = m->error.code ? NULL : mlo_array_new(m, MLO_FLOAT, 1, &all);
    if (gain && gain->dtype != MLO_FLOAT)
        mlo_fail(m, MLO_E_TYPE, b->node, "factors of channels that are %s, not float32",
            mlo_dtype_name(gain->dtype));
    for (int64_t k = 0; w && !m->error.code && k < all; k++) {
        const int64_t c = k / l->taps, tap = k % l->taps;
        const double by = gain ? (double)((const float *)gain->data)[c] : 1;
        l->grain[c] = parts ? fabs(by) / (double)parts : 0;
        ((float *)w->data)[k] = (float)(by
            * (1 / (double)counts[tap % edges] - (b->less && tap / edges == own)));
    }
    if (!m->error.code) mlo_window_numbers(q, b, l, i, w, NULL, y);
    for (int64_t k = 0; !m->error.code && k < all; k++)
        to[k] = (int8_t)mlo_rounded_weight(
            ((const float *)w->data)[k] / l->scale[i * l->channels + k / l->taps], &range);
    mlo_array_free(m, w);
    mlo_array_free(m, gain);
    return mlo_failed(m);
}

/* An average's weights, and its numbers, in all iterations. */
static int mlo_pool_weights(
    mlo_quantizer *q, const mlo_sublayer *b, mlo_windowed *l, const mlo_form_made *y) {
    mlo *m = q->m;
    const mlo_form f = mlo_body_form(&q->r.in, b->out);
    int64_t counts[MLO_POOL_PARTS];
    const int64_t edges = mlo_pool_counts(b, counts);
    const int64_t dims[] = { mlo_last_dim(&f), b->pool[0], b->pool[1], edges };
    l->channels = dims[0];
    l->taps = dims[1] * dims[2] * edges;
    l->weight = mlo_format(m, "%s_w8", b->out);
    l->scale = MLO_NEW_N(m, float, (size_t)(q->scan.iterations * l->channels));
    l->grain = MLO_NEW_N(m, double, (size_t)l->channels);
    int8_t *to = m->error.code
        ? NULL
        : (int8_t *)mlo_parameter(q, l->weight, MLO_INT8, edges > 1 ? 4 : 3, dims);
    if (m->error.code || mlo_channel_parameters(q, b->out, l->channels, &l->c))
        return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++)
        MLO_TRY(mlo_pool_fill(q, b, l, i, counts, edges, y, to + i * l->channels * l->taps));
    return 0;
}

/* ---- making it ------------------------------------------------------------ */

/* The function of one value behind a window: its table, of what the window makes. */
static int mlo_window_function(mlo_quantizer *q, const mlo_sublayer *b, const mlo_sublayer *unary,
    const char *index, const mlo_form_made *at) {
    mlo *m = q->m;
    const mlo_signal *pre = mlo_signal_of(q, b->out);
    mlo_channel_words c;
    if (mlo_channel_parameters(q, index, pre->channels, &c)) return mlo_failed(m);
    for (int64_t k = 0; k < q->scan.iterations * pre->channels; k++) {
        c.bias[k] = 0;
        c.mult[k] = 2;
        c.shift[k] = 1;
    }
    const char *in[] = { index, c.name[0], c.name[1], c.name[2] };
    return mlo_requantizing_node(q, &mlo_requant_kernel, b, unary, at, in, 4) ? 0 : mlo_failed(m);
}

/* What is outside of the grid is 0: so must be what the integer 0 stands for. */
static int mlo_window_zero(mlo_quantizer *q, const mlo_sublayer *b) {
    const mlo_signal *x = mlo_signal_of(q, b->in[0]);
    for (int64_t k = 0; k < q->scan.iterations * x->channels; k++)
        if (mlo_differs(x->zero[k], 0) || (x->shape && mlo_differs(x->shape[k], 1)))
            return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
                "'%s' has a zero point, or a scale per channel, and a convolution reads it, whose "
                "borders are 0; give it a zero point of 0",
                x->name);
    return 0;
}

static int mlo_quantize_window(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    const mlo_sublayer *unary = mlo_fused_unary(q, b), *last = unary ? unary : b;
    mlo_signal *x = mlo_signal_of(q, b->in[0]);
    const mlo_form_made at = mlo_made_at(q, mlo_signal_of(q, b->out));
    const char *out = unary ? mlo_format(m, "%s_index", b->out) : b->out;
    mlo_windowed l = { 0 };
    if (!out || mlo_window_zero(q, b)
        || (b->pool[0] ? mlo_pool_weights(q, b, &l, &at)
                       : mlo_window_weight(q, b, &l) || mlo_window_fill(q, b, &l, &at)))
        return mlo_failed(m);
    const char *in[] = { x->narrow_name, l.weight, l.c.name[0], l.c.name[1], l.c.name[2] };
    mlo_node *n = mlo_kernel_node(q, &mlo_conv_kernel, b, out, at.type, at.bits, at.scale);
    if (!n || mlo_attr_int(m, n, "width", b->width) || mlo_attr_int(m, n, "top", b->top)
        || mlo_attr_int(m, n, "left", b->left) || mlo_inputs(m, n, in, 5)
        || mlo_weight_bits_meta(q, b, n) || (unary && mlo_window_function(q, b, unary, out, &at)))
        return mlo_failed(m);
    return mlo_narrow(q, last, last->out, mlo_signal_of(q, last->out));
}

static const mlo_sublayer_kind mlo_window_sublayer = {
    .kind = MLO_CONVOLUTION,
    .recognise = mlo_recognise_window,
    .products = mlo_products_window,
    .quantize = mlo_quantize_window,
    .type = mlo_type_window,
};
