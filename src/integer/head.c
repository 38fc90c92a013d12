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
 * them. Learned positions, which are added to that, are another one: a row for each position. What is behind
 * it becomes, for a while, the body of a Scan that runs once, so that the code for bodies recognises, calibrates and
 * quantizes it: on the same samples, and on what the integer loop makes of them. It reads the integers that leave
 * the loop as they are.
 *
 * invariant: the rows are what pre made of the ids (with positions a sum of two rounded numbers, which is one
 *     step off at most); logits are integers of one scale, so that the largest float is the largest integer,
 *     and ties stay ties.
 * example: Gather -> loop -> RMSNorm -> MatMul becomes Gather -> loop -> LayerNorm -> MVU -> Dequantize.
 * cost: two evaluations per sample; all rows, and the head's matrix in floats, in memory at once.
 */
/* Constants of a sum; types of tokens, which stand above the bits of an id. */
enum { MLO_HEAD_PLACES = 4, MLO_HEAD_KINDS = 16, MLO_HEAD_ID_BITS = 24 };
typedef struct {
    mlo *m;
    mlo_graph *g;
    mlo_scan loop;
    int encoder; /* 1: what leaves the loop is what the core makes; a norm may stand in front of it */
    const char *to; /* the integers that rows, or their sums, are */
    const char *ids; /* the model's input */
    int64_t words; /* V */
    const char *id; /* the ids as the first table's Gather has them */
    const char *row; /* what is a function of one id, and the last of those in front of the loop */
    const char *place[MLO_HEAD_PLACES]; /* constants that are added to that, one row a position */
    int n_place; /* 0: positions count for nothing; `row` enters the loop */
    const char *
        types; /* a model's input that says which row of `kind` each token gets, too; NULL: there is none */
    const char *kind; /* those rows */
    int64_t kinds; /* how many */
    const char *hidden; /* what the loop leaves, as floats */
    const char *logits; /* the model's output */
    mlo_map behind; /* what depends on `hidden` */
    mlo_graph *body; /* that, as a body */
    mlo_scan scan; /* and the Scan around it */
    size_t at; /* where that is among the nodes */
} mlo_head;

static const char mlo_head_rows[] = "mlo_rows"; /* the table */
static const char mlo_head_places[] = "mlo_places"; /* that of positions */
static const char mlo_head_ids[] = "mlo_ids"; /* 32 bits each, as the core takes them */
static const char mlo_head_next[] =
    "mlo_next"; /* of each token {the id that follows, its logit}, the best first */

/* ---- where it is ---------------------------------------------------------- */

static int mlo_head_unfit(const mlo_head *h, const char *at, const char *why) {
    return mlo_fail_at(h->m, MLO_E_UNSUPPORTED, at,
        "%s; --tokens takes decoders from token ids to logits, and encoders with a norm behind the "
        "sum of the rows "
        "of ids and positions; without it the host does what is around the loop",
        why);
}

/* The one input that indexes a table. Masks beside it are no matter of ids. */
static int mlo_head_find_ids(mlo_head *h) {
    for (size_t i = 0; i < h->g->n_input; i++) {
        const char *name = h->g->input[i]->name;
        if (mlo_value_of(h->g, name)->tensor) continue;
        if (h->ids)
            return mlo_head_unfit(h, name,
                "an input beside the ids (--hold makes a constant of one; where read knows of "
                "--tokens, a mask is ones)");
        h->ids = name;
        h->words = mlo_rows_indexed(h->g, name, 0);
    }
    return h->words > 1 ? 0 : mlo_head_unfit(h, h->ids, "no input indexes a table");
}

static int mlo_head_find_logits(mlo_head *h) {
    /* (what a quantized loop makes is read by its Dequantize, and by nothing else) */
    h->hidden = mlo_value_of(h->g, h->loop.node->output[0])->use[0]->output[0];
    if (mlo_map_put(h->m, &h->behind, h->hidden, h) || mlo_mark_dependents(h->m, h->g, &h->behind))
        return mlo_failed(h->m);
    if (h->g->n_output != 1)
        return mlo_head_unfit(
            h, h->g->output[h->g->n_output - 1]->name, "an output beside the logits");
    const mlo_form f = mlo_form_of(mlo_value_of(h->g, h->g->output[0]->name));
    h->logits = h->g->output[0]->name;
    return h->logits != h->hidden && f.dtype == MLO_FLOAT && f.rank == 3 && f.dims[0] == 1
            && f.dims[2] == h->words
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
        if (!inside || each->output[0] != ends[2]->name) continue;
        h->at = outer.n_node;
        MLO_TRY(mlo_graph_add(m, &outer, n));
    }
    const char *names[] = { h->hidden, "mlo_head_once" };
    if (mlo_graph_init(m, h->g, mlo_tensor_new(m, names[1], MLO_FLOAT, &once, 1, &one, sizeof one))
        || mlo_inputs(m, n, names, 2) || mlo_node_output(m, n, h->logits)
        || mlo_attr_graph(m, n, "body", h->body) || mlo_attr_int(m, n, "num_scan_inputs", 1)
        || mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_head, "1"))
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
    mlo_array *scale = g ? mlo_value_array(h->m, &h->scan, h->g, loop->input[1], 0, 0) : NULL;
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
    const mlo_form f = mlo_form_of(mlo_value_of(q->scan.body, name));
    if (mlo_is_sketch(h->m) && f.rank == 2) return mlo_sketch_zeros(h->m, h->g, name, &f);
    mlo_array *a = mlo_scan_value(h->m, &q->scan, name, 0);
    if (a) mlo_graph_init(h->m, h->g, mlo_tensor_from(h->m, name, a));
    mlo_array_free(h->m, a);
    return mlo_failed(h->m);
}

/* The likeliest word of each token, or the K likeliest, is another output of the model. */
static int mlo_head_choose(mlo_head *h, const char *logits) {
    mlo *m = h->m;
    const int64_t best = mlo_opt_int(m, "best", 1, 1, MLO_BEST_MOST);
    const mlo_kernel *kernel = best > 1 ? &mlo_best_kernel : &mlo_argmax_kernel;
    if (best > h->words)
        return mlo_fail_at(
            m, MLO_E_USAGE, "best", "%lld of %lld words", (long long)best, (long long)h->words);
    mlo_form f = mlo_form_of(mlo_value_of(h->g, h->ids));
    mlo_node *n = mlo_node_new(m, kernel->op.name, mlo_head_next);
    f.dtype = MLO_INT32;
    f.dims[f.rank++] = 2 * best;
    mlo_value_info *out = mlo_info_new(m, mlo_head_next, &f);
    if (!n || !out || mlo_node_input(m, n, logits) || mlo_node_output(m, n, mlo_head_next)
        || mlo_attr_int(m, n, "to", MLO_INT32) || (best > 1 && mlo_attr_int(m, n, "best", best))
        || mlo_graph_add(m, h->g, n))
        return mlo_failed(m);
    return MLO_PUSH(m, h->g->output, h->g->n_output, out) ? 0 : mlo_failed(m);
}

/* The kernels of q's body, which read `in`, are nodes of the model. */
static int mlo_head_kernels(mlo_head *h, mlo_quantizer *q, const char *in) {
    mlo *m = h->m;
    const char *carried = q->body->input[0]->name;
    mlo_map made = { 0 };
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
    return 0;
}

/* They take the place of the Scan. */
static int mlo_head_inline(mlo_head *h, mlo_quantizer *q) {
    mlo *m = h->m;
    const mlo_signal *out = mlo_signal_of(q, q->result);
    mlo_node **node = h->g->node;
    const size_t n = h->g->n_node;
    h->g->node = NULL;
    h->g->n_node = 0;
    for (size_t i = 0; i < n; i++)
        if (i != h->at) MLO_TRY(mlo_graph_add(m, h->g, node[i]));
    MLO_TRY(mlo_head_kernels(h, q, mlo_value_of(h->g, h->hidden)->producer->input[0]));
    return mlo_edge_node(q, h->g, mlo_dequantize_kernel.op.name, out->wide_name, h->logits,
               out->wide_scale[0], out->wide_bits, MLO_INT16)
        || mlo_head_choose(h, out->wide_name);
}

/* What is given of one of its ends; what becomes of the Scan. */
static int mlo_head_quantize(mlo_head *h, int (*given)(mlo_head *h, mlo_quantizer *q),
    int (*becomes)(mlo_head *h, mlo_quantizer *q)) {
    mlo *m = h->m;
    mlo_quantizer q;
    memset(&q, 0, sizeof q);
    q.m = m;
    q.head = 1;
    q.scan = h->scan;
    if (mlo_quantize_options(&q) || mlo_quantize_recognise(&q) || given(h, &q)
        || mlo_quantize_integers(&q))
        return mlo_failed(m);
    h->g->node[h->at] = q.loop;
    if (mlo_node_output(m, q.loop, h->logits) || mlo_attr_graph(m, q.loop, "body", q.body)
        || mlo_attr_int(m, q.loop, "num_scan_inputs", (int64_t)q.body->n_input - 1)
        || mlo_index(m, h->g))
        return mlo_failed(m);
    q.scan.node = q.loop;
    q.scan.body = q.body;
    return becomes(h, &q);
}

/* ---- rows ------------------------------------------------------------------ */

/* Does a node do the same with each token, whatever its neighbours? Then ids may be computed side by side. */
static int mlo_head_by_token(const mlo_head *h, const mlo_node *n, const char *from) {
    if (n->input[0] != from && !(n->n_input > 1 && n->input[1] == from)) return 0;
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

/* The constant of a sum, if it is one and has a row for each position or one for all; NULL. */
static const char *mlo_head_place_of(const mlo_head *h, const mlo_node *n, const char *from) {
    const char *other = mlo_is(n, "Add") ? n->input[n->input[0] == from] : NULL;
    const mlo_value *v = mlo_value_of(h->g, other);
    return v && v->tensor && h->n_place < MLO_HEAD_PLACES && mlo_form_of(v).dtype == MLO_FLOAT
        ? other
        : NULL;
}

/* The Gather of a sum that has a row for each type of token, which another input of the model says; NULL. */
static const mlo_node *mlo_head_kind_of(const mlo_head *h, const mlo_node *n, const char *from) {
    const char *other = mlo_is(n, "Add") && !h->types ? n->input[n->input[0] == from] : NULL;
    const mlo_value *v = other ? mlo_value_of(h->g, other) : NULL;
    const mlo_node *k = v && v->n_use == 1 ? v->producer : NULL;
    if (!h->encoder || !mlo_is(k, "Gather") || mlo_int(k, "axis", 0)) return NULL;
    const mlo_value *table = mlo_value_of(h->g, k->input[0]);
    const mlo_value *types = mlo_value_of(h->g, k->input[1]);
    const mlo_form f = mlo_form_of(table);
    return table->tensor && f.rank == 2 && f.dtype == MLO_FLOAT && f.dims[0] <= MLO_HEAD_KINDS
            && !types->producer && !types->tensor
        ? k
        : NULL;
}

static int mlo_head_take_kind(mlo_head *h, const mlo_node *n, const char *from) {
    const mlo_node *k = mlo_head_kind_of(h, n, from);
    if (!k) return 0;
    h->kind = k->input[0];
    h->types = k->input[1];
    h->kinds = mlo_form_of(mlo_value_of(h->g, h->kind)).dims[0];
    return 1;
}

/* Another shape of the ids, in front of everything. */
static int mlo_head_reshapes(const mlo_head *h, const mlo_node *n, const char *from) {
    static const char *const ops[] = { "Reshape", "Unsqueeze", "Squeeze", "Cast", NULL };
    return from == h->id && mlo_is_one_of(n, ops);
}

static int mlo_head_no_row(const mlo_head *h, const mlo_node *n) {
    return mlo_fail(h->m, MLO_E_UNSUPPORTED, n,
        "what enters the loop is not one row of each id here, nor the sum of that and of one of "
        "each position; --tokens makes rows of both; leave it out");
}

/* A node on the way from the ids to the loop: 1: it makes a part of a row, or of a sum of rows. */
static int mlo_head_is_front(mlo_head *h, const mlo_node *n, const char *at) {
    const int rows = !h->n_place && !h->types && mlo_head_by_token(h, n, at);
    const char *place = rows ? NULL : mlo_head_place_of(h, n, at);
    if (rows) return 1;
    if ((place || mlo_head_kind_of(h, n, at)) && !h->row) h->row = at;
    if (place) h->place[h->n_place++] = place;
    if (place || mlo_head_take_kind(h, n, at)) return 1;
    if (!mlo_head_reshapes(h, n, at)) return 0;
    h->id = n->output[0];
    return 1;
}

/* The node that reads a value in front of the loop, alone. */
static const mlo_node *mlo_head_after(const mlo_head *h, const char *at) {
    const mlo_value *v = mlo_value_of(h->g, at);
    if (v->n_use == 1) return v->use[0];
    mlo_head_unfit(h, at, "a value in front of the loop that is read more than once");
    return NULL;
}

/* Nothing but functions of one id between the ids and the loop, and sums of these with what positions say. */
static int mlo_head_check_rows(mlo_head *h) {
    const char *at = h->id = h->ids;
    h->to = h->loop.node->input[0];
    while (at != h->to) {
        const mlo_node *n = mlo_head_after(h, at);
        if (!n) return mlo_failed(h->m);
        if (!mlo_head_is_front(h, n, at)
            && !(h->n_place && mlo_is_kernel(n, MLO_KERNEL_TO_INTEGERS)))
            return mlo_head_no_row(h, n);
        at = n->output[0];
    }
    if (!h->row) h->row = h->to;
    return 0;
}

/* A tensor of the outer graph: rows of integers. */
static int mlo_head_table(mlo_head *h, const char *name, const char *from) {
    mlo_array *rows = mlo_value_array(h->m, &h->loop, h->g, mlo_intern(h->m, from), 0, 0);
    if (rows) mlo_graph_init(h->m, h->g, mlo_tensor_from(h->m, name, rows));
    mlo_array_free(h->m, rows);
    return mlo_failed(h->m);
}

/* The steps of x as the loop's own Quantize counts them, in 16 bits: a part of a sum may be larger than that. */
static int mlo_head_steps(mlo_head *h, const char *x, const char *steps) {
    const mlo_node *edge = mlo_value_of(h->g, h->to)->producer;
    const char *in[] = { x, edge->input[1] };
    mlo_node *n = mlo_node_new(h->m, mlo_quantize_kernel.op.name, steps);
    if (!n || mlo_inputs(h->m, n, in, 2) || mlo_node_output(h->m, n, steps)
        || mlo_attr_int(h->m, n, "to", MLO_INT16) || mlo_attr_int(h->m, n, "lo", INT16_MIN)
        || mlo_attr_int(h->m, n, "hi", INT16_MAX))
        return mlo_failed(h->m);
    return mlo_graph_add(h->m, h->g, n) ? mlo_failed(h->m) : mlo_index(h->m, h->g);
}

/* Adds a constant, again and again, to `n` numbers. */
static int mlo_head_add_to(mlo_head *h, float *sum, int64_t n, const char *name) {
    mlo_array *a = mlo_tensor_load(h->m, mlo_value_of(h->g, name)->tensor);
    const int64_t each = a ? mlo_array_count(a) : 0;
    for (int64_t i = 0; each && i < n; i++) sum[i] += ((const float *)a->data)[i % each];
    mlo_array_free(h->m, a);
    return mlo_failed(h->m);
}

/* What all constants add up to at each position: [1, T, C]; with types of tokens [types T, C], type after type. */
static int mlo_head_sum_places(mlo_head *h, const char *name) {
    mlo *m = h->m;
    mlo_form f = mlo_form_of(mlo_value_of(h->g, h->to));
    const int64_t each = mlo_form_count(&f), c = mlo_last_dim(&f);
    const mlo_form kinds = { MLO_FLOAT, 2, { h->kinds * each / c, c } };
    if (h->types) f = kinds;
    mlo_array *sum = mlo_array_new(m, MLO_FLOAT, f.rank, f.dims);
    mlo_array *kind = sum && h->types ? mlo_tensor_load(m, mlo_value_of(h->g, h->kind)->tensor)
                                      : NULL;
    for (int64_t i = 0, n = sum ? mlo_array_count(sum) : 0; i < n && !m->error.code; i++)
        ((float *)sum->data)[i] = kind ? ((const float *)kind->data)[i / each * c + i % c] : 0;
    for (int k = 0; k < h->n_place && !m->error.code; k++)
        mlo_head_add_to(h, (float *)sum->data, mlo_array_count(sum), h->place[k]);
    if (!m->error.code) mlo_graph_init(m, h->g, mlo_tensor_from(m, name, sum));
    mlo_array_free(m, kind);
    mlo_array_free(m, sum);
    return mlo_failed(m) || mlo_index(m, h->g);
}

/* Are rows sums? Then they are in a table by themselves. */
static int mlo_head_sums(const mlo_head *h) { return h->n_place || h->types; }

/* The integers for each id, [V, C], and for each position. */
static int mlo_head_tables(mlo_head *h) {
    mlo *m = h->m;
    static const char rows[] = "mlo_rows_whole", places[] = "mlo_places_whole",
                      sums[] = "mlo_places_sum";
    if (mlo_head_sums(h)
        && (mlo_head_steps(h, h->row, rows) || mlo_head_sum_places(h, sums)
            || mlo_head_steps(h, sums, places) || mlo_head_table(h, mlo_head_places, places)))
        return mlo_failed(m);
    mlo_value *v = mlo_value_of(h->g, h->id);
    mlo_array *all = mlo_array_new(m, mlo_form_of(v).dtype, 1, &h->words);
    for (int64_t i = 0; all && i < h->words; i++) mlo_set_element(all, i, i);
    mlo_tensor *t = all ? mlo_tensor_from(m, h->id, all) : NULL;
    mlo_array_free(m, all);
    if (!t) return mlo_failed(m);
    v->tensor = t;
    mlo_head_table(h, mlo_head_rows, mlo_head_sums(h) ? rows : h->row);
    v->tensor = NULL;
    return mlo_failed(m);
}

/* A node in front of the loop, from a few values to one; "to" is a type, 0: none. What makes words of ids (and types)
 * runs on the host, all others are hardware. */
static mlo_node *mlo_head_node(mlo_head *h, mlo_graph *list, const char *op, const char *const *in,
    size_t n, const char *out, int64_t to) {
    mlo *m = h->m;
    mlo_node *node = mlo_node_new(m, op, out);
    if (!node || mlo_inputs(m, node, in, n) || mlo_node_output(m, node, out)
        || (to && mlo_attr_int(m, node, "to", to)) || mlo_graph_add(m, list, node))
        return NULL;
    return node;
}
static int mlo_head_front(mlo_head *h, mlo_graph *list, const char *op, const char *const *in,
    size_t n, const char *out, int64_t to) {
    mlo_node *node = mlo_head_node(h, list, op, in, n, out, to);
    return node ? mlo_meta_put(h->m, &node->meta, &node->n_meta, mlo_key_front, "1")
                : mlo_failed(h->m);
}

/* Numbers from 0 on, or one: for Clip, for products. */
static const char *mlo_head_numbers(mlo_head *h, const char *name, int64_t first, int64_t count) {
    mlo_array *a = mlo_array_new(h->m, MLO_INT32, count != 1, &count);
    for (int64_t i = 0; a && i < count; i++) mlo_set_element(a, i, first + i);
    if (a) mlo_graph_init(h->m, h->g, mlo_tensor_from(h->m, name, a));
    mlo_array_free(h->m, a);
    return mlo_failed(h->m) ? NULL : name;
}
static const char *mlo_head_number(mlo_head *h, const char *name, int64_t n) {
    return mlo_head_numbers(h, name, n, 1);
}

/* The sum of an id's row and a position's, as many bits as enter the loop: in hardware mlo_places. */
static int mlo_head_add_places(
    mlo_head *h, mlo_graph *list, const char *row, const char *place, const char *to) {
    const mlo_form f = mlo_form_of(mlo_value_of(h->g, to));
    const mlo_node *edge = mlo_value_of(h->g, to)->producer;
    const char *row_wide[] = { "mlo_row_wide", "mlo_place_wide" };
    const char *clip[] = { "mlo_row_sum",
        mlo_head_number(h, "mlo_row_least", mlo_int(edge, "lo", 0)),
        mlo_head_number(h, "mlo_row_most", mlo_int(edge, "hi", 0)) };
    const char *clipped[] = { "mlo_row_clipped" };
    return !clip[1] || !clip[2] || mlo_head_front(h, list, "Cast", &row, 1, row_wide[0], MLO_INT32)
        || mlo_head_front(h, list, "Cast", &place, 1, row_wide[1], MLO_INT32)
        || mlo_head_front(h, list, "Add", row_wide, 2, clip[0], 0)
        || mlo_head_front(h, list, "Clip", clip, 3, clipped[0], 0)
        || mlo_head_front(h, list, "Cast", clipped, 1, to, f.dtype);
}

/* An input as words that others are added to, behind which nobody sees what it is an index of. */
static int mlo_head_index(mlo_head *h, mlo_graph *list, const char *input, const char *to) {
    const char *rows = mlo_format(h->m, "%lld", (long long)mlo_rows_indexed(h->g, input, 0));
    mlo_node *node = mlo_head_node(h, list, "Cast", &input, 1, to, MLO_INT32);
    return node && rows ? mlo_meta_put(h->m, &node->meta, &node->n_meta, mlo_key_rows, rows)
                        : mlo_failed(h->m);
}

/* Words of ids, 32 bits each; with types of tokens those stand above the id. */
static int mlo_head_words(mlo_head *h, mlo_graph *list) {
    const char *id[] = { "mlo_id_wide", "mlo_type_word" };
    const char *type[] = { "mlo_type_wide", "mlo_type_one" };
    if (!h->types)
        return mlo_head_node(h, list, "Cast", &h->ids, 1, mlo_head_ids, MLO_INT32) == NULL;
    return !mlo_head_number(h, type[1], (int64_t)1 << MLO_HEAD_ID_BITS)
        || mlo_head_index(h, list, h->ids, id[0]) || mlo_head_index(h, list, h->types, type[0])
        || !mlo_head_node(h, list, "Mul", type, 2, id[1], 0)
        || !mlo_head_node(h, list, "Add", id, 2, mlo_head_ids, 0);
}

/* What a word says: *id; *place, the row of its type and position (mlo_places finds both). */
static int mlo_head_parts(mlo_head *h, mlo_graph *list, const char **id, const char **place) {
    const mlo_form f = mlo_form_of(mlo_value_of(h->g, h->to));
    const int64_t tokens = mlo_tokens_of(&f);
    const char *of[] = { mlo_head_ids, "mlo_type_one" }, *type[] = { "mlo_type", "mlo_type_one" };
    const char *less[] = { mlo_head_ids, "mlo_type_above" };
    const char *from[] = { "mlo_type", mlo_head_number(h, "mlo_type_rows", tokens) };
    const char *at[] = { "mlo_type_begins", mlo_head_numbers(h, "mlo_positions", 0, tokens) };
    const char *rows[] = { mlo_head_places, "mlo_place_at" };
    *id = "mlo_id";
    *place = "mlo_place";
    return !from[1] || !at[1] || mlo_head_front(h, list, "Div", of, 2, type[0], 0)
        || mlo_head_front(h, list, "Mul", type, 2, less[1], 0)
        || mlo_head_front(h, list, "Sub", less, 2, *id, 0)
        || mlo_head_front(h, list, "Mul", from, 2, at[0], 0)
        || mlo_head_front(h, list, "Add", at, 2, rows[1], 0)
        || mlo_head_front(h, list, "Gather", rows, 2, *place, 0);
}

/* What enters the loop comes from tables. */
static int mlo_head_tabulate(mlo_head *h) {
    mlo *m = h->m;
    const char *in[] = { mlo_head_rows, mlo_head_ids }, *place = mlo_head_places;
    const char *row = mlo_head_sums(h) ? "mlo_row" : h->to;
    mlo_graph list = { 0 };
    if (mlo_head_tables(h) || mlo_head_words(h, &list)
        || (h->types && mlo_head_parts(h, &list, &in[1], &place))
        || mlo_head_front(h, &list, "Gather", in, 2, row, 0)
        || (mlo_head_sums(h) && mlo_head_add_places(h, &list, row, place, h->to)))
        return mlo_failed(m);
    mlo_value_of(h->g, h->to)->producer->output[0] = mlo_format(m, "%s_of_floats", h->to);
    for (size_t i = 0; i < h->g->n_node; i++) MLO_TRY(mlo_graph_add(m, &list, h->g->node[i]));
    h->g->node = list.node;
    h->g->n_node = list.n_node;
    return mlo_index(m, h->g);
}

/* ---- all of it -------------------------------------------------------------- */

/* From ids to the likeliest id that follows. */
static int mlo_quantize_decoder(mlo_head *h) {
    return mlo_head_find_ids(h) || mlo_head_find_logits(h) || mlo_head_check_rows(h)
        || mlo_head_outline(h) || mlo_head_quantize(h, mlo_head_given, mlo_head_inline);
}
