/* exact_loop: a loop whose numbers are integers already, from its result back to what it carries.
 *
 * in:  a body of Deeploy's dialect, or one that says that its numbers are integers.
 * out: the loop as kernels (exact.c, exact_heads.c), quantized in front of it and dequantized behind it by steps of 1.
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
        || mlo_node_output(m, q->loop, y) || mlo_graph_add(m, list, q->loop)
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
