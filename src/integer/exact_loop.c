/* exact_loop: a loop whose numbers are integers already, from its result back to what it carries.
 *
 * in:  a body of Deeploy's dialect, or one that says that its numbers are integers.
 * out: the loop as kernels (exact.c, exact_heads.c), quantized in front of it and dequantized behind it by steps of 1;
 *     so are keys and values of earlier tokens that come into each iteration, and those that leave it: in the order of
 *     channels that the network has.
 *
 * invariant: each value is made once; what no kernel makes is refused, with the node.
 * example: mlo_exact_new asks: a chain of functions behind a linear layer? a norm? heads? a sum?
 * cost: that of its kernels.
 */

static mlo_exact_value *mlo_exact_new(mlo_takeover *x, const char *name) {
    const char *bias;
    mlo_exact_chain c;
    mlo_exact_walk w;
    if (mlo_exact_mixes(x, name, &w)) return mlo_exact_attention(x, &w, name);
    mlo_exact_chain_of(x, name, &c);
    mlo_node *n = mlo_made_by(x->in, c.base), *layer = mlo_exact_layer(x, c.base, &bias);
    const mlo_value *base = mlo_value_of(x->in->body, c.base);
    const int norm = mlo_exact_is_norm(x, n);
    if (c.n && (!n || norm || mlo_exact_is_function(x, n) || base->n_uses > 1 || mlo_is_layout(n)))
        return mlo_exact_alone(x, &c, name);
    if (layer) return mlo_exact_linear(x, layer, bias, &c, name);
    if (norm) return mlo_exact_norm(x, n, &c, name);
    if (mlo_is_layout(n) && mlo_exact_is_view(x, name, &w)) return mlo_exact_view(x, &w, name);
    if ((mlo_is(n, "Add") || mlo_is(n, "Mul")) && mlo_is_carried(x->in, n->input[0])
        && mlo_is_carried(x->in, n->input[1]))
        return mlo_exact_pair(x, n, &c, name);
    if (n)
        mlo_fail(x->q->m, MLO_E_UNSUPPORTED, n,
            "no kernel makes these integers exactly; there are kernels for linear layers, "
            "depthwise convolutions, sums and products of two streams, norms over channels, "
            "attention "
            "with iSoftmax, and functions of one number (mlo run and --target c know all of "
            "Deeploy's "
            "operators)");
    else
        mlo_fail_at(x->q->m, MLO_E_UNSUPPORTED, c.base,
            "layers read this value, which does not come from the carried one");
    return NULL;
}

/* ---- the loop ------------------------------------------------------------- */

/* What goes from layer to layer, and into the first. */
static int mlo_exact_carried(mlo_takeover *x) {
    mlo_quantizer *q = x->q;
    const mlo_node *last = mlo_made_by(x->in, x->result);
    const mlo_node *first = mlo_maker_in(q->scan.outer, q->scan.node->input[0]);
    mlo_interval before;
    int same;
    if (!mlo_exact_is_rounding(last))
        return mlo_fail(q->m, MLO_E_UNSUPPORTED, last ? last : q->scan.node,
            "makes what goes from layer to layer, '%s', and rounds nothing; hardware hands on what "
            "a RequantShift or a norm makes",
            x->result);
    MLO_TRY(mlo_exact_clips(x, x->in->body, last, q->scan.iterations, &x->carried, &same));
    if (mlo_exact_is_rounding(first)) {
        MLO_TRY(mlo_exact_clips(x, q->scan.outer, first, 1, &before, &same));
        x->carried = mlo_joined(x->carried, before);
    } else
        mlo_inform(q->m, "'%s' is taken to be integers of %lld..%lld, as layers hand on",
            q->scan.node->input[0], (long long)x->carried.lo, (long long)x->carried.hi);
    return mlo_exact_streams(x, last, x->carried) ? 0 : mlo_failed(q->m);
}

/* Options that choose integers have nothing to choose. */
static void mlo_exact_options(mlo_quantizer *q) {
    static const char *const options[] = { "weights", "activations", "residual", "scale",
        "max-cost", "max-error", "q-config", NULL };
    for (int k = 0; options[k]; k++)
        if (mlo_opt(q->m, options[k]))
            mlo_warn(q->m, "--%s changes nothing: the network's own integers are taken over",
                options[k]);
    q->pow2 = 0;
}

static int mlo_exact_open(mlo_takeover *x, mlo_quantizer *q) {
    mlo *m = q->m;
    const mlo_graph *body = q->scan.body;
    memset(x, 0, sizeof *x);
    x->q = q;
    x->make = mlo_exact_new;
    q->r.m = m;
    q->r.body = q->scan.body;
    q->r.scan = &q->scan;
    MLO_TRY(mlo_inside_of(m, &q->scan, &q->r.in));
    x->in = &q->r.in;
    x->result = body->output[0]->name;
    const mlo_form f = mlo_body_form(x->in, body->input[0]->name);
    for (size_t i = 0; i < body->n_node; i++) x->grid |= mlo_is(body->node[i], "Conv");
    const int64_t channels = f.rank < 2 ? 1 : x->grid ? f.dims[1] : mlo_last_dim(&f);
    x->tokens = mlo_form_count(&f) / mlo_max(1, channels);
    if (f.rank < 2 || (x->grid && f.dims[0] != 1))
        return mlo_fail(m, MLO_E_UNSUPPORTED, q->scan.node,
            "layers hand on %s; tokens with channels are supported: [.., T, C], or with "
            "convolutions [1, C, H, W]",
            mlo_dims_text(m, f.rank, f.dims));
    if (!(x->one = MLO_NEW_N(m, double, (size_t)q->scan.iterations))) return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++) x->one[i] = 1;
    if (mlo_exact_carried(x)) return mlo_failed(m);
    return mlo_exact_made(x, body->input[0]->name, body->input[0]->name, x->carried, channels)
        ? 0
        : mlo_failed(m);
}

/* [1, C, ..] to [1, .., C], or back. */
static int mlo_exact_turn(
    mlo_takeover *x, mlo_graph *list, const char *in, const char *out, int rank, int back) {
    mlo *m = x->q->m;
    int64_t perm[MLO_MAX_RANK] = { 0 };
    for (int k = 1; k < rank; k++) perm[k] = back ? (k == 1 ? rank - 1 : k - 1) : k + 1;
    if (!back) perm[rank - 1] = 1;
    mlo_node *n = mlo_node_new(m, "Transpose", out);
    return !n || mlo_attr_ints(m, n, "perm", perm, (size_t)rank) || mlo_node_input(m, n, in)
        || mlo_node_output(m, n, out) || mlo_graph_add(m, list, n);
}

/* ---- keys and values that stay ------------------------------------------------ */

/* A node of one input with a list of numbers: an attribute `perm`, or (Gather of the last axis) a second input. */
static int mlo_exact_moved(mlo_takeover *x, mlo_graph *list, const char *op, const char *in,
    const char *out, const int64_t *numbers, int64_t count) {
    mlo *m = x->q->m;
    const int gathers = mlo_eq(op, "Gather");
    const char *index = out ? mlo_format(m, "%s_index", out) : NULL;
    mlo_array *a = index ? mlo_array_new(m, MLO_INT64, 1, &count) : NULL;
    mlo_node *n = a ? mlo_node_new(m, op, out) : NULL;
    if (a) memcpy(a->data, numbers, (size_t)count * sizeof *numbers);
    if (n && !mlo_node_input(m, n, in)
        && (gathers ? !mlo_attr_int(m, n, "axis", -1)
                    && !mlo_graph_init(m, x->q->scan.outer, mlo_tensor_from(m, index, a))
                    && !mlo_node_input(m, n, index)
                    : !mlo_attr_ints(m, n, "perm", numbers, (size_t)count))
        && !mlo_node_output(m, n, out))
        mlo_graph_add(m, list, n);
    mlo_array_free(m, a);
    return mlo_failed(m);
}

/* Channels in the order that the kernels have, or back in the network's: *name becomes what that is called. */
static int mlo_exact_channels_in(
    mlo_takeover *x, mlo_graph *list, const mlo_exact_cache *c, const char **name, int back) {
    mlo *m = x->q->m;
    const int64_t n = c->heads * c->d;
    const char *in = *name;
    if (mlo_is_identity(c->order, c->d)) return 0;
    int64_t *order = (int64_t *)mlo_scratch(m, (size_t)n, sizeof *order);
    for (int64_t k = 0; order && k < n; k++) {
        const int64_t from = k / c->d * c->d + c->order[k % c->d];
        order[back ? from : k] = back ? k : from;
    }
    *name = mlo_format(m, "%s_ordered", in);
    if (order) mlo_exact_moved(x, list, "Gather", in, *name, order, n);
    mlo_scratch_free(m, order);
    return mlo_failed(m);
}

static const int64_t mlo_exact_heads_first[] = { 0, 1, 3, 2, 4 };

/* A past of all iterations, [.., heads, tokens, d] floats, as the loop takes it. */
static int mlo_exact_comes(mlo_takeover *x, mlo_graph *list, const mlo_exact_cache *c) {
    mlo *m = x->q->m;
    const int64_t all = x->q->scan.iterations;
    const char *from = mlo_scan_outside(&x->q->scan, c->past, 0);
    const mlo_form heads = { MLO_FLOAT, 5, { all, 1, c->heads, c->tokens, c->d } };
    const mlo_form rows = { MLO_FLOAT, 4, { all, 1, c->tokens, c->heads * c->d } };
    const char *a = mlo_format(m, "%s_heads", from), *b = mlo_format(m, "%s_tokens", from);
    const char *r = mlo_format(m, "%s_rows", from);
    mlo_inform(m, "'%s' is taken to be integers of %d bits, as those that layers put behind it",
        from, c->bits);
    return m->error.code || mlo_reshape_edge(x->q, list, from, a, &heads)
        || mlo_exact_moved(x, list, "Transpose", a, b, mlo_exact_heads_first, 5)
        || mlo_reshape_edge(x->q, list, b, r, &rows) || mlo_exact_channels_in(x, list, c, &r, 0)
        || mlo_edge_node(x->q, list, mlo_quantize_kernel.op.name, r, c->stack, 1, c->bits,
            mlo_exact_type(x, c->name, c->bits));
}

/* What leaves the loop of keys or values, as floats of the network's own form. */
static int mlo_exact_goes(mlo_takeover *x, mlo_graph *list, const mlo_exact_cache *c) {
    mlo *m = x->q->m;
    const int64_t all = x->q->scan.iterations;
    const char *to = mlo_scan_outside(&x->q->scan, c->tap, 1), *y = mlo_format(m, "%s_q", to);
    const mlo_form heads = { MLO_FLOAT, 5, { all, 1, c->keys, c->heads, c->d } };
    const mlo_form own = mlo_form_of(mlo_value_of(x->q->scan.outer, to));
    const char *a = mlo_format(m, "%s_rows", to), *b = mlo_format(m, "%s_tokens", to);
    const char *h = mlo_format(m, "%s_heads", to);
    return m->error.code || mlo_exact_channels_in(x, list, c, &y, 1)
        || mlo_edge_node(x->q, list, mlo_dequantize_kernel.op.name, y, a, 1, c->bits,
            mlo_exact_type(x, c->name, c->bits))
        || mlo_reshape_edge(x->q, list, a, b, &heads)
        || mlo_exact_moved(x, list, "Transpose", b, h, mlo_exact_heads_first, 5)
        || mlo_reshape_edge(x->q, list, h, to, &own);
}

/* The cache that a value of the old body leaves for; NULL: none. */
static const mlo_exact_cache *mlo_exact_cache_of(const mlo_takeover *x, const char *tap) {
    for (size_t k = 0; k < x->n_cache; k++)
        if (x->cache[k].tap == tap) return &x->cache[k];
    return NULL;
}

/* What leaves the new loop: outputs of its body and of its node. */
static int mlo_exact_taps(mlo_takeover *x) {
    mlo *m = x->q->m;
    const mlo_graph *old = x->in->body;
    for (size_t k = x->q->scan.n_state; k < old->n_output; k++) {
        const mlo_exact_cache *c = mlo_exact_cache_of(x, old->output[k]->name);
        if (!c)
            return mlo_fail(m, MLO_E_UNSUPPORTED, x->q->scan.node,
                "'%s' leaves every layer of a network of integers; hardware returns what the last "
                "layer makes, and keys and values of its attention (mlo run and --target c return "
                "all)",
                old->output[k]->name);
        const mlo_form f = { mlo_exact_type(x, c->name, c->bits), 3,
            { 1, c->keys, c->heads * c->d } };
        mlo_value_info *out = mlo_info_new(m, c->name, &f);
        const char *y = mlo_format(m, "%s_q", x->q->scan.node->output[k]);
        if (!out || !y || !MLO_PUSH(m, x->q->body->output, x->q->body->n_output, out)
            || mlo_node_output(m, x->q->loop, y))
            return mlo_failed(m);
    }
    return 0;
}

/* In front of the new loop what comes in of a past, behind it what leaves. */
static int mlo_exact_caches(mlo_takeover *x, mlo_graph *list, int behind) {
    for (size_t k = 0; k < x->n_cache; k++) {
        const mlo_exact_cache *c = &x->cache[k];
        if (behind ? c->tap && mlo_exact_goes(x, list, c) : c->past && mlo_exact_comes(x, list, c))
            return mlo_failed(x->q->m);
    }
    return mlo_failed(x->q->m);
}

/* In the place of the old loop: integers of its tokens, the new loop, and back. */
static int mlo_exact_edges(mlo_takeover *x, mlo_graph *list) {
    mlo_quantizer *q = x->q;
    mlo *m = q->m;
    const char *in = q->scan.node->input[0], *out = q->scan.node->output[0];
    const mlo_form f = mlo_body_form(x->in, q->scan.body->input[0]->name);
    const mlo_exact_value *v = (mlo_exact_value *)mlo_map_get(
        &x->made, q->scan.body->input[0]->name);
    const mlo_form frame = { MLO_FLOAT, 3, { 1, x->tokens, v->channels } };
    mlo_form turned = f;
    const int bits = mlo_bits_for(x->carried);
    const char *a = mlo_format(m, "%s_turned", in), *b = mlo_format(m, "%s_frame", in);
    const char *y = mlo_format(m, "%s_q", out), *c = mlo_format(m, "%s_frame", out);
    const char *d = mlo_format(m, "%s_turned", out);
    if (m->error.code) return mlo_failed(m);
    for (int k = 1; x->grid && k < f.rank; k++) turned.dims[k] = f.dims[k + 1 < f.rank ? k + 1 : 1];
    if ((x->grid && mlo_exact_turn(x, list, in, a, f.rank, 0))
        || mlo_reshape_edge(q, list, x->grid ? a : in, b, &frame)
        || mlo_edge_node(
            q, list, mlo_quantize_kernel.op.name, b, q->loop->input[0], 1, bits, MLO_INT16)
        || mlo_exact_caches(x, list, 0) || mlo_node_output(m, q->loop, y) || mlo_exact_taps(x)
        || mlo_graph_add(m, list, q->loop) || mlo_exact_caches(x, list, 1)
        || mlo_edge_node(q, list, mlo_dequantize_kernel.op.name, y, c, 1, bits, MLO_INT16)
        || mlo_reshape_edge(q, list, c, x->grid ? d : out, x->grid ? &turned : &f))
        return mlo_failed(m);
    return x->grid && mlo_exact_turn(x, list, d, out, f.rank, 1) ? mlo_failed(m) : 0;
}

/* Puts the new loop where the old one is. */
static int mlo_exact_replace(mlo_takeover *x) {
    mlo_quantizer *q = x->q;
    mlo_graph *g = q->scan.outer, list = { 0 };
    for (size_t i = 0; i < g->n_node; i++)
        if (g->node[i] == q->scan.node ? mlo_exact_edges(x, &list)
                                       : mlo_graph_add(q->m, &list, g->node[i]))
            return mlo_failed(q->m);
    g->node = list.node;
    g->n_node = list.n_node;
    return 0;
}

/* The loop of integers as kernels, in the model. */
static int mlo_quantize_exact(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_takeover x;
    mlo_exact_options(q);
    if (mlo_exact_open(&x, q)
        || mlo_meta_put(m, &m->model->meta, &m->model->n_meta, mlo_key_integers, "1"))
        return mlo_failed(m);
    q->loop = mlo_node_new(m, "Scan", mlo_node_name(q->scan.node));
    q->body = MLO_NEW(m, mlo_graph);
    const char *in = mlo_format(m, "%s_q", q->scan.node->input[0]);
    const mlo_form f = { MLO_INT16, 3,
        { 1, x.tokens,
            ((mlo_exact_value *)mlo_map_get(&x.made, q->scan.body->input[0]->name))->channels } };
    mlo_value_info *state = mlo_info_new(m, q->scan.body->input[0]->name, &f);
    if (!q->loop || !q->body || !state || mlo_node_input(m, q->loop, in)
        || !MLO_PUSH(m, q->body->input, q->body->n_input, state))
        return mlo_failed(m);
    q->body->name = q->scan.body->name;
    const mlo_exact_value *y = mlo_exact_of(&x, x.result);
    mlo_value_info *out = y ? mlo_info_new(m, y->name, &f) : NULL;
    if (!out || !MLO_PUSH(m, q->body->output, q->body->n_output, out)) return mlo_failed(m);
    return mlo_exact_replace(&x);
}
