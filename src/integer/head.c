/* head: what a decoder says next, in integers (option "tokens").
 *
 * in:  a model whose loop is quantized: from token ids [1, T] to logits [1, T, V]; a table of V rows in front
 *     of the loop, a norm and a matrix (both at will) behind it.
 * out: the same model without floats between ids and logits: a row of the integers that enter the loop for
 *     each id; behind the loop the kernels that a body would have of the same layers; Dequantize behind
 *     these makes floats of the logits. Another output, mlo_next, is the likeliest id behind each token, and
 *     its logit.
 *
 * What is in front of the loop is made a table, when it is a function of one id: computed once for all of
 * them. What is behind it becomes, for a while, the body of a Scan that runs once, so that the code for
 * bodies recognises, calibrates and quantizes it: on the same samples, and on what the integer loop makes of
 * them. It reads the integers that leave the loop as they are.
 *
 * invariant: the rows are what pre made of the ids; logits are integers of one scale, so that the largest
 *     float is the largest integer, and ties stay ties.
 * example: Gather -> loop -> RMSNorm -> MatMul becomes Gather -> loop -> LayerNorm -> MVU -> Dequantize.
 * cost: two evaluations per sample; all rows, and the head's matrix in floats, in memory at once.
 */
typedef struct {
    mlo *m;
    mlo_graph *g;
    mlo_scan loop;
    const char *ids; /* the model's input */
    int64_t words; /* V */
    const char *hidden; /* what the loop leaves, as floats */
    const char *logits; /* the model's output */
    mlo_map behind; /* what depends on `hidden` */
    mlo_graph *body; /* that, as a body */
    mlo_scan scan; /* and the Scan around it */
} mlo_head;

static const char mlo_head_rows[] = "mlo_rows"; /* the table */
static const char mlo_head_ids[] = "mlo_ids"; /* 32 bits each, as the core takes them */
static const char mlo_head_next[] = "mlo_next"; /* of each token {the id that follows, its logit} */

/* ---- where it is ---------------------------------------------------------- */

static int mlo_head_unfit(const mlo_head *h, const char *at, const char *why) {
    return mlo_fail_at(h->m, MLO_E_UNSUPPORTED, at,
        "%s; --tokens takes models from token ids to logits; without it the host does what is "
        "around the "
        "loop",
        why);
}

/* The one input that indexes a table. Masks beside it are no matter of ids. */
static int mlo_head_find_ids(mlo_head *h) {
    for (size_t i = 0; i < h->g->n_input; i++) {
        const char *name = h->g->input[i]->name;
        if (mlo_value_of(h->g, name)->tensor) continue;
        if (h->ids) return mlo_head_unfit(h, name, "an input beside the ids");
        h->ids = name;
        h->words = mlo_rows_indexed(h->g, name, 0);
    }
    return h->words > 1 ? 0 : mlo_head_unfit(h, h->ids, "no input indexes a table");
}

static int mlo_head_find_logits(mlo_head *h) {
    h->hidden = h->loop.node->output[0];
    const mlo_value *v = mlo_value_of(h->g, h->hidden);
    if (v && v->n_use == 1 && !v->is_output && mlo_is_kernel(v->use[0], MLO_KERNEL_TO_FLOATS))
        h->hidden = v->use[0]->output[0];
    else
        return mlo_head_unfit(h, h->hidden, "what leaves the loop is not floats alone");
    if (mlo_map_put(h->m, &h->behind, h->hidden, h) || mlo_mark_dependents(h->m, h->g, &h->behind))
        return mlo_failed(h->m);
    if (h->g->n_output != 1)
        return mlo_head_unfit(
            h, h->g->output[h->g->n_output - 1]->name, "an output beside the logits");
    const mlo_form f = mlo_form_of(mlo_value_of(h->g, h->g->output[0]->name));
    h->logits = h->g->output[0]->name;
    return mlo_map_get(&h->behind, h->logits) && h->logits != h->hidden && f.dtype == MLO_FLOAT
            && f.rank == 3 && f.dims[0] == 1 && f.dims[2] == h->words
        ? 0
        : mlo_head_unfit(
              h, h->logits, "the output has not as many numbers a token as there are ids");
}

/* ---- what is behind the loop, as a body ------------------------------------ */

/* Inside it the two ends have names of their own. */
static void mlo_head_rename(mlo *m, const char **list, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == name) list[i] = mlo_format(m, "%s_head", name);
}

/* What was known of floats behind the loop is not true of integers. */
static void mlo_head_forget(const mlo_head *h) {
    size_t kept = 0;
    for (size_t i = 0; i < h->g->n_info; i++)
        if (!mlo_map_get(&h->behind, h->g->info[i]->name) || h->g->info[i]->name == h->hidden)
            h->g->info[kept++] = h->g->info[i];
    h->g->n_info = kept;
}

static int mlo_head_outline(mlo_head *h) {
    mlo *m = h->m;
    static const float one = 1;
    static const int64_t once = 1;
    const mlo_form in = mlo_form_of(mlo_value_of(h->g, h->hidden)),
                   number = { MLO_FLOAT, 0, { 0 } };
    const mlo_form out = mlo_form_of(mlo_value_of(h->g, h->logits));
    mlo_node *n = mlo_node_new(m, "Scan", "head");
    mlo_graph outer = { 0 };
    mlo_value_info *ends[] = { mlo_info_new(m, mlo_format(m, "%s_head", h->hidden), &in),
        mlo_info_new(m, "mlo_head_each", &number),
        mlo_info_new(m, mlo_format(m, "%s_head", h->logits), &out) };
    if (!(h->body = MLO_NEW(m, mlo_graph)) || !ends[0] || !ends[1] || !ends[2] || !n
        || !MLO_PUSH(m, h->body->input, h->body->n_input, ends[0])
        || !MLO_PUSH(m, h->body->input, h->body->n_input, ends[1])
        || !MLO_PUSH(m, h->body->output, h->body->n_output, ends[2]))
        return mlo_failed(m);
    h->body->name = n->name;
    for (size_t i = 0; i < h->g->n_node; i++) {
        mlo_node *each = h->g->node[i];
        const int inside = each->output[0] != h->hidden && mlo_map_get(&h->behind, each->output[0]);
        if (inside) mlo_head_rename(m, each->input, each->n_input, h->hidden);
        if (inside) mlo_head_rename(m, each->input, each->n_input, h->logits);
        if (inside) mlo_head_rename(m, each->output, each->n_output, h->logits);
        MLO_TRY(mlo_graph_add(m, inside ? h->body : &outer, each));
    }
    const char *names[] = { h->hidden, "mlo_head_once" };
    if (mlo_graph_init(m, h->g, mlo_tensor_new(m, names[1], MLO_FLOAT, &once, 1, &one, sizeof one))
        || mlo_inputs(m, n, names, 2) || mlo_node_output(m, n, h->logits)
        || mlo_attr_graph(m, n, "body", h->body) || mlo_attr_int(m, n, "num_scan_inputs", 1)
        || mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_head, "1") || mlo_graph_add(m, &outer, n))
        return mlo_failed(m);
    h->g->node = outer.node;
    h->g->n_node = outer.n_node;
    mlo_head_forget(h);
    return mlo_index(m, h->g) || mlo_infer(m) || mlo_scan_of(m, h->g, n, &h->scan);
}

/* What enters has the steps in which it leaves the loop. */
static int mlo_head_given(mlo_head *h, mlo_quantizer *q) {
    const mlo_node *loop = mlo_value_of(h->g, h->hidden)->producer;
    mlo_signal *in = mlo_signal_of(q, h->scan.body->input[0]->name);
    mlo_given *g = MLO_NEW(h->m, mlo_given);
    mlo_array *scale = g && in ? mlo_value_array(h->m, &h->scan, h->g, loop->input[1], 0, 0) : NULL;
    if (scale && (g->scale = MLO_NEW(h->m, double))) {
        g->scale[0] = (double)((const float *)scale->data)[0];
        g->sign = 1;
        g->bits = mlo_value_bits(h->loop.body, h->loop.body->output[0]->name);
        in->given_wide = g;
    }
    mlo_array_free(h->m, scale);
    return mlo_failed(h->m);
}

/* ---- its kernels ----------------------------------------------------------- */

/* A parameter of a kernel is a constant of the model, the integers that it is. */
static int mlo_head_constant(mlo_head *h, const mlo_quantizer *q, const char *name) {
    const mlo_value *v = mlo_value_of(h->g, name);
    if (v && v->tensor) return 0;
    mlo_array *a = mlo_scan_value(h->m, &q->scan, name, 0);
    if (a) mlo_graph_init(h->m, h->g, mlo_tensor_from(h->m, name, a));
    mlo_array_free(h->m, a);
    return mlo_failed(h->m);
}

/* The likeliest word of each token is another output of the model. */
static int mlo_head_choose(mlo_head *h, const char *logits) {
    mlo *m = h->m;
    mlo_form f = mlo_form_of(mlo_value_of(h->g, h->ids));
    mlo_node *n = mlo_node_new(m, mlo_argmax_kernel.op.name, mlo_head_next);
    f.dtype = MLO_INT32;
    f.dims[f.rank++] = 2;
    mlo_value_info *out = mlo_info_new(m, mlo_head_next, &f);
    if (!n || !out || mlo_node_input(m, n, logits) || mlo_node_output(m, n, mlo_head_next)
        || mlo_attr_int(m, n, "to", MLO_INT32) || mlo_graph_add(m, h->g, n))
        return mlo_failed(m);
    return MLO_PUSH(m, h->g->output, h->g->n_output, out) ? 0 : mlo_failed(m);
}

/* The kernels of q's body take the place of the Scan. */
static int mlo_head_inline(mlo_head *h, mlo_quantizer *q) {
    mlo *m = h->m;
    const mlo_signal *out = mlo_signal_of(q, q->result);
    mlo_node **node = h->g->node;
    const size_t n = h->g->n_node;
    const char *in = mlo_value_of(h->g, h->hidden)->producer->input[0];
    const char *carried = q->body->input[0]->name;
    mlo_map made = { 0 };
    h->g->node = NULL;
    h->g->n_node = 0;
    for (size_t i = 0; i + 1 < n; i++) MLO_TRY(mlo_graph_add(m, h->g, node[i]));
    for (size_t i = 0; i < q->body->n_node; i++) {
        mlo_node *k = q->body->node[i];
        if (!mlo_kernel_of(k)) continue;
        for (size_t e = 0; e < k->n_input; e++) {
            if (k->input[e] == carried)
                k->input[e] = in;
            else if (!mlo_map_get(&made, k->input[e]) && mlo_head_constant(h, q, k->input[e]))
                return mlo_failed(m);
            else if (mlo_map_put(m, &made, k->input[e], k))
                return mlo_failed(m);
        }
        if (mlo_map_put(m, &made, k->output[0], k) || mlo_graph_add(m, h->g, k))
            return mlo_failed(m);
    }
    return mlo_edge_node(q, h->g, mlo_dequantize_kernel.op.name, out->wide_name, h->logits,
               out->wide_scale[0], out->wide_bits, MLO_INT16)
        || mlo_head_choose(h, out->wide_name);
}

static int mlo_head_quantize(mlo_head *h) {
    mlo *m = h->m;
    mlo_quantizer q;
    memset(&q, 0, sizeof q);
    q.m = m;
    q.head = 1;
    q.scan = h->scan;
    if (mlo_quantize_options(&q) || mlo_quantize_recognise(&q) || mlo_head_given(h, &q)
        || mlo_quantize_integers(&q))
        return mlo_failed(m);
    h->g->node[h->g->n_node - 1] = q.loop;
    if (mlo_node_output(m, q.loop, h->logits) || mlo_attr_graph(m, q.loop, "body", q.body)
        || mlo_attr_int(m, q.loop, "num_scan_inputs", (int64_t)q.body->n_input - 1)
        || mlo_index(m, h->g))
        return mlo_failed(m);
    q.scan.node = q.loop;
    q.scan.body = q.body;
    return mlo_head_inline(h, &q);
}

/* ---- rows ------------------------------------------------------------------ */

/* Does a node do the same with each token, whatever its neighbours? Then ids may be computed side by side. */
static int mlo_head_by_token(const mlo_head *h, const mlo_node *n, const char *from) {
    if (n->input[0] != from && !(mlo_is(n, "Gather") && n->input[1] == from)
        && !(n->n_input > 1 && n->input[1] == from))
        return 0;
    if (mlo_is(n, "Gather")) return n->input[1] == from && mlo_int(n, "axis", 0) == 0;
    if (mlo_is(n, "LayerNormalization") || mlo_is(n, "RMSNormalization"))
        return mlo_int(n, "axis", -1) == -1;
    if (!mlo_is_elementwise(n) && !mlo_is_kernel(n, MLO_KERNEL_TO_INTEGERS)) return 0;
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_value *v = mlo_value_of(h->g, n->input[i]);
        const mlo_form f = mlo_form_of(v);
        if (n->input[i] != from && (f.rank < 0 || f.rank > 1)) return 0;
    }
    return 1;
}

/* Nothing but functions of one id between the ids and the loop. */
static int mlo_head_check_rows(const mlo_head *h) {
    const char *to = h->loop.node->input[0], *at = h->ids;
    while (at != to) {
        const mlo_value *v = mlo_value_of(h->g, at);
        const mlo_node *n = v->n_use == 1 ? v->use[0] : NULL;
        if (!n)
            return mlo_head_unfit(
                h, at, "a value in front of the loop that is read more than once");
        if (!mlo_head_by_token(h, n, at))
            return mlo_fail(h->m, MLO_E_UNSUPPORTED, n,
                "what enters the loop does not depend on one id alone here (on its position, too, "
                "say); "
                "--tokens makes a row of each id; leave it out");
        at = n->output[0];
    }
    return 0;
}

/* The integers that enter the loop for each id: [V, C]. */
static int mlo_head_tabulate(mlo_head *h) {
    mlo *m = h->m;
    mlo_value *v = mlo_value_of(h->g, h->ids);
    const char *to = h->loop.node->input[0];
    const mlo_form f = mlo_form_of(v);
    mlo_array *all = mlo_array_new(m, f.dtype, 1, &h->words);
    for (int64_t i = 0; all && i < h->words; i++) mlo_set_element(all, i, i);
    mlo_tensor *t = all ? mlo_tensor_from(m, h->ids, all) : NULL;
    mlo_array_free(m, all);
    if (!t) return mlo_failed(m);
    v->tensor = t;
    mlo_array *rows = mlo_value_array(m, &h->loop, h->g, to, 0, 0);
    v->tensor = NULL;
    if (rows) mlo_graph_init(m, h->g, mlo_tensor_from(m, mlo_head_rows, rows));
    mlo_array_free(m, rows);
    mlo_node *cast = m->error.code ? NULL : mlo_node_new(m, "Cast", mlo_head_ids);
    mlo_node *n = cast ? mlo_node_new(m, "Gather", mlo_head_rows) : NULL;
    const char *in[] = { mlo_head_rows, mlo_head_ids };
    if (!n || mlo_inputs(m, n, in, 2) || mlo_node_output(m, n, to)
        || mlo_node_input(m, cast, h->ids) || mlo_node_output(m, cast, mlo_head_ids)
        || mlo_attr_int(m, cast, "to", MLO_INT32))
        return mlo_failed(m);
    mlo_value_of(h->g, to)->producer->output[0] = mlo_format(m, "%s_of_floats", to);
    mlo_graph list = { 0 };
    if (mlo_graph_add(m, &list, cast) || mlo_graph_add(m, &list, n)) return mlo_failed(m);
    for (size_t i = 0; i < h->g->n_node; i++) MLO_TRY(mlo_graph_add(m, &list, h->g->node[i]));
    h->g->node = list.node;
    h->g->n_node = list.n_node;
    return mlo_index(m, h->g);
}

/* ---- all of it -------------------------------------------------------------- */

static int mlo_quantize_head(mlo *m) {
    mlo_head h = { m, m->model->graph, { 0 }, NULL, 0, NULL, NULL, { 0 }, NULL, { 0 } };
    if (mlo_opt(m, "q-config-json"))
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--tokens with a q_config, which is about the loop alone; leave one of them out");
    if (mlo_scan_choose(m, &h.loop) || mlo_head_find_ids(&h) || mlo_head_find_logits(&h)
        || mlo_head_check_rows(&h) || mlo_head_outline(&h) || mlo_head_quantize(&h)
        || mlo_index(m, h.g) || mlo_head_tabulate(&h) || mlo_drop_dead(m, h.g) || mlo_index(m, h.g))
        return mlo_failed(m);
    return mlo_infer(m);
}
