/* front: what an encoder makes of token ids in front of its loop, in integers (option "tokens").
 *
 * in:  a model whose loop is quantized, and whose queries see later keys; token ids [1, T], types of tokens beside them
 *     at will; in front of the loop a sum of rows (of the id, its position, its type), and a norm.
 * out: the same model without floats between ids and what leaves the loop: rows of integers, their sum, the norm's
 *     kernel, whose result is what enters the loop. A mask stays as it is, a stream of its own.
 *
 * What is between the sum and the loop becomes, for a while, the body of a Scan that runs once (head.c), so that the
 * code for bodies quantizes it: what it makes is given, the steps in which the loop counts.
 *
 * invariant: what leaves the loop is what the core makes; what the model makes of that is the host's.
 * example: Gather + positions -> LayerNormalization -> loop becomes Gather + rows -> LayerNorm -> loop.
 * cost: as head.c, whose tables these are.
 */

/* Does a query of the loop see keys behind it? */
static int mlo_front_sees_later(const mlo_head *h) {
    for (size_t i = 0; i < h->loop.body->n_node; i++) {
        const mlo_node *n = h->loop.body->node[i];
        if (mlo_is_kernel(n, MLO_KERNEL_ATTENTION) && !mlo_int(n, "causal", 0)) return 1;
    }
    return 0;
}

/* Of inputs that index tables the one whose table is the largest. */
static int mlo_front_find_ids(mlo_head *h) {
    for (size_t i = 0; i < h->g->n_input; i++) {
        const char *name = h->g->input[i]->name;
        const int64_t rows = mlo_rows_indexed(h->g, name, 0);
        if (mlo_value_of(h->g, name)->tensor || rows <= h->words) continue;
        h->ids = name;
        h->words = rows;
    }
    if (h->words > (int64_t)1 << MLO_HEAD_ID_BITS)
        return mlo_head_unfit(h, h->ids, "a table of more than 2^24 rows");
    return h->words > 1 ? 0 : mlo_head_unfit(h, h->ids, "no input indexes a table");
}

/* From the ids to the sum of their rows; from there to what the loop's integers are made of. */
static int mlo_front_follow(mlo_head *h) {
    const char *at = h->id = h->ids;
    for (const mlo_node *n; !h->logits; at = n->output[0]) {
        if (!(n = mlo_head_after(h, at))) return mlo_failed(h->m);
        if (!h->hidden && mlo_head_is_front(h, n, at)) continue;
        if (!h->hidden && !mlo_head_sums(h)) return mlo_head_no_row(h, n);
        if (!h->hidden) h->hidden = at;
        if (mlo_is_kernel(n, MLO_KERNEL_TO_INTEGERS))
            h->logits = at;
        else if (mlo_map_put(h->m, &h->behind, n->output[0], h))
            return mlo_failed(h->m);
    }
    if (mlo_value_of(h->g, h->logits)->use[0]->output[0] != h->loop.node->input[0])
        return mlo_head_unfit(h, h->logits, "what enters the loop has another form in front of it");
    return h->hidden != h->logits
        ? mlo_map_put(h->m, &h->behind, h->hidden, h)
        : mlo_head_unfit(h, h->hidden, "no norm in front of an encoder's loop");
}

/* What it makes has the steps in which the loop counts. */
static int mlo_front_given(mlo_head *h, mlo_quantizer *q) {
    const mlo_node *edge = mlo_value_of(h->g, h->loop.node->input[0])->producer;
    mlo_signal *out = mlo_signal_of(q, q->result);
    mlo_given *g = MLO_NEW(h->m, mlo_given);
    double scale = 0;
    if (!g || !out
        || mlo_tensor_doubles(h->m, mlo_value_of(h->g, edge->input[1])->tensor, 0, 1, &scale)
        || !(g->scale = MLO_NEW(h->m, double)))
        return mlo_failed(h->m);
    g->scale[0] = scale;
    g->sign = 1;
    g->bits = mlo_value_bits(h->loop.body, h->loop.body->input[0]->name);
    out->given_wide = g;
    return 0;
}

/* Its kernels stand where the Scan stood, behind the integers of the sum; the loop reads the last one. */
static int mlo_front_inline(mlo_head *h, mlo_quantizer *q) {
    mlo *m = h->m;
    const mlo_signal *in = mlo_signal_of(q, q->body->input[0]->name);
    const mlo_node *edge = mlo_value_of(h->g, h->loop.node->input[0])->producer;
    const char *enters = h->loop.node->input[0];
    mlo_node **node = h->g->node;
    const size_t n = h->g->n_node;
    h->g->node = NULL;
    h->g->n_node = 0;
    if (!(h->to = mlo_format(m, "%s_q", h->hidden))) return mlo_failed(m);
    for (size_t i = 0; i < n; i++) {
        if (i != h->at && node[i] != edge) MLO_TRY(mlo_graph_add(m, h->g, node[i]));
        if (i != h->at) continue;
        MLO_TRY(mlo_edge_node(q, h->g, mlo_quantize_kernel.op.name, h->hidden, h->to,
            in->wide_scale[0], in->wide_bits, MLO_INT16));
        MLO_TRY(mlo_head_kernels(h, q, h->to));
        mlo_node *last = h->g->node[h->g->n_node - 1];
        if (last->output[0] != mlo_signal_of(q, q->result)->wide_name)
            return mlo_fail(m, MLO_E_BUG, last, "is not the last of the front");
        last->output[0] = enters;
    }
    return 0;
}

static int mlo_quantize_encoder(mlo_head *h) {
    h->encoder = 1;
    if (mlo_opt(h->m, "best"))
        return mlo_fail_at(h->m, MLO_E_USAGE, "best", "an encoder says no ids; leave --best out");
    return mlo_front_find_ids(h) || mlo_front_follow(h) || mlo_head_outline(h)
        || mlo_head_quantize(h, mlo_front_given, mlo_front_inline) || mlo_index(h->m, h->g)
        || mlo_drop_dead(h->m, h->g) || mlo_index(h->m, h->g) || mlo_infer(h->m)
        || mlo_quantize_tail(h);
}

/* ---- of decoders and encoders -------------------------------------------------- */

static int mlo_quantize_tokens(mlo *m) {
    mlo_head h = { .m = m, .g = m->model->graph };
    if (mlo_opt(m, "q-config-json"))
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--tokens with a q_config, which is about the loop alone; leave one of them out");
    if (mlo_scan_choose(m, &h.loop)
        || (mlo_front_sees_later(&h) ? mlo_quantize_encoder(&h) : mlo_quantize_decoder(&h))
        || mlo_index(m, h.g) || mlo_head_tabulate(&h) || mlo_drop_dead(m, h.g) || mlo_index(m, h.g))
        return mlo_failed(m);
    return mlo_infer(m);
}
