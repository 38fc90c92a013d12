/* tail: what an encoder makes of a frame's first token behind its loop, in integers (option "tokens"): BERT's pooler,
 * a classifier.
 *
 * in:  a model whose loop is quantized, and whose queries see later keys; its one output is made of the first token
 *     that leaves the loop, by functions of a token alone: norms, matrices, sums with constants, curves.
 * out: the same model without floats between what leaves the loop and the last of these: a Gather of the first token,
 *     the kernels that a body would have of the same layers, a Dequantize. What is behind these (a softmax, say) stays
 *     the host's.
 *
 * The choice of a token moves in front of all the rest, which then is the body of a Scan that runs once (head.c).
 *
 * invariant: what is no such function (a mean over tokens, another token, an output beside it) stays as it was: the
 *     core makes what leaves the loop, and a warning says why.
 * example: loop -> Gather(0) -> Gemm -> Tanh -> Gemm becomes loop -> Gather(0) -> MVUTable -> MVU -> Dequantize.
 * cost: as head.c.
 */
typedef struct {
    mlo_head
        h; /* hidden: what leaves the loop; logits: the last value that is a function of the first token */
    mlo_map is; /* value -> mlo_tail_whole or mlo_tail_token */
    mlo_map
        of; /* value -> the latest one of a matrix, a norm or the choice that it is a function of */
    mlo_node *choice; /* it takes the first token; NULL: none does so far */
    int matrices;
    const mlo_node *at; /* the node that is no such function */
    const char *why; /* NULL: there is none */
} mlo_tail;

static const char mlo_tail_first[] = "mlo_first"; /* that token, as it leaves the loop */
static const char mlo_tail_whole[] = "all tokens of a frame", mlo_tail_token[] = "the first one";

/* ---- is it one? ----------------------------------------------------------- */

static int mlo_tail_no(mlo_tail *p, const mlo_node *n, const char *why) {
    if (!p->why) p->at = n;
    if (!p->why) p->why = why;
    return 0;
}

/* What is known of a value. */
static int mlo_tail_says(mlo_tail *p, mlo_map *map, const char *value, const char *what) {
    return mlo_map_put(p->h.m, map, value, (void *)(uintptr_t)what);
}

/* A constant; of a row's numbers, or one for all; with `rank` axes. */
static mlo_form mlo_tail_constant(const mlo_tail *p, const mlo_node *n, size_t i) {
    const mlo_value *v = mlo_has_input(n, i) ? mlo_value_of(p->h.g, n->input[i]) : NULL;
    return mlo_form_of(v && v->tensor ? v : NULL);
}

/* Is number 0 of a constant this one, and is it the only one? */
static int mlo_tail_lone(const mlo_tail *p, const mlo_node *n, size_t i, double number) {
    double x = 0;
    const mlo_value *v = mlo_has_input(n, i) ? mlo_value_of(p->h.g, n->input[i]) : NULL;
    return mlo_lone_number(p->h.m, v, &x) && !mlo_differs(x, number);
}

/* Does a node take the first token of all? Gather, or Slice with one end. */
static int mlo_tail_chooses(const mlo_tail *p, const mlo_node *n) {
    const mlo_form f = mlo_form_of(mlo_value_of(p->h.g, n->input[0]));
    if (f.rank != 3 || f.dims[0] != 1) return 0;
    if (mlo_is(n, "Gather"))
        return mlo_int(n, "axis", 0) == 1
            && (mlo_tail_lone(p, n, 1, 0) || mlo_tail_lone(p, n, 1, -(double)f.dims[1]));
    return mlo_is(n, "Slice") && mlo_tail_lone(p, n, 1, 0) && mlo_tail_lone(p, n, 2, 1)
        && mlo_tail_lone(p, n, 3, 1) && (!mlo_has_input(n, 4) || mlo_tail_lone(p, n, 4, 1));
}

/* A matrix with a constant; Gemm as linear layers have it. */
static int mlo_tail_is_matrix(const mlo_tail *p, const mlo_node *n) {
    if (mlo_tail_constant(p, n, 1).rank != 2) return 0;
    if (mlo_is(n, "MatMul")) return 1;
    return mlo_is(n, "Gemm") && !mlo_int(n, "transA", 0)
        && !mlo_differs((double)mlo_float(n, "alpha", 1), 1)
        && !mlo_differs((double)mlo_float(n, "beta", 1), 1)
        && (!mlo_has_input(n, 2) || mlo_tail_constant(p, n, 2).rank >= 0);
}

/* The same numbers of one token in another form. */
static int mlo_tail_reshapes(const mlo_tail *p, const mlo_node *n) {
    static const char *const ops[] = { "Reshape", "Squeeze", "Unsqueeze", "Flatten", NULL };
    const mlo_form in = mlo_form_of(mlo_value_of(p->h.g, n->input[0]));
    const mlo_form out = mlo_form_of(mlo_value_of(p->h.g, n->output[0]));
    return mlo_is_one_of(n, ops) && mlo_tokens_of(&out) == 1
        && mlo_last_dim(&in) == mlo_last_dim(&out);
}

/* Does it do the same with each token, whatever its neighbours? Its other operands are constants, or come from the
 * loop, too. */
static int mlo_tail_by_token(const mlo_tail *p, const mlo_node *n) {
    static const char *const curves[] = { "Tanh", "Relu", "Gelu", "Erf", "Sigmoid", "Identity",
        NULL };
    static const char *const sums[] = { "Add", "Sub", "Mul", "Div", NULL };
    if (mlo_is_one_of(n, curves)) return 1;
    if (mlo_is(n, "LayerNormalization"))
        return mlo_int(n, "axis", -1) == -1 && mlo_tail_constant(p, n, 1).rank == 1;
    if (!mlo_is_one_of(n, sums)) return 0;
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_form f = mlo_tail_constant(p, n, i);
        if (!mlo_map_get(&p->is, n->input[i]) && (f.rank < 0 || f.rank > 1)) return 0;
    }
    return 1;
}

/* All that it reads of the loop is of one kind: which; NULL: it reads nothing of it, or of both. */
static const char *mlo_tail_reads(const mlo_tail *p, const mlo_node *n, int *both) {
    const char *kind = NULL;
    for (size_t i = 0; i < n->n_input; i++) {
        const char *one = (const char *)mlo_map_get(&p->is, n->input[i]);
        *both |= one && kind && one != kind;
        if (one) kind = one;
    }
    return kind;
}

/* All that it reads of the loop is a function of one value: which; NULL: of several. */
static const char *mlo_tail_of_one(const mlo_tail *p, const mlo_node *n) {
    const char *of = NULL;
    for (size_t i = 0; i < n->n_input; i++) {
        const char *one = (const char *)mlo_map_get(&p->of, n->input[i]);
        if (one && of && one != of) return NULL;
        if (one) of = one;
    }
    return of;
}

/* A node that reads what the loop makes: `kind`, or `both` kinds of it. 1: it makes a value of one token, or of
 * each. */
static int mlo_tail_takes(mlo_tail *p, mlo_node *n, const char *kind, int both) {
    const char *of = mlo_tail_of_one(p, n);
    const int chooses = kind == mlo_tail_whole && mlo_tail_chooses(p, n);
    if (both) return mlo_tail_no(p, n, "all tokens and the first one meet");
    if (!of) return mlo_tail_no(p, n, "two values of a token meet");
    if (chooses && p->choice) return mlo_tail_no(p, n, "the first token is taken twice");
    if (chooses) p->choice = n;
    const int matrix = mlo_tail_is_matrix(p, n);
    p->matrices += matrix;
    if (!chooses && !matrix && !mlo_tail_by_token(p, n)
        && !(kind == mlo_tail_token && mlo_tail_reshapes(p, n)))
        return mlo_tail_no(p, n, "no function of a frame's first token alone");
    if (matrix || chooses || mlo_is(n, "LayerNormalization")) of = n->output[0];
    return !mlo_tail_says(p, &p->of, n->output[0], of)
        && !mlo_tail_says(p, &p->is, n->output[0], chooses ? mlo_tail_token : kind);
}

/* What is left reads nothing of what is taken but the last value. */
static int mlo_tail_closed(mlo_tail *p) {
    const mlo_graph *g = p->h.g;
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_node *n = g->node[i];
        if (mlo_map_get(&p->is, n->output[0])) continue;
        for (size_t k = 0; k < n->n_input; k++)
            if (n->input[k] != p->h.logits && mlo_map_get(&p->is, n->input[k]))
                return mlo_tail_no(p, n, "it reads more than the last of what the core could make");
    }
    return 1;
}

/* From the loop to the last value that is a function of one token. 1: the output is one, or nothing but the host's
 * functions are behind that. */
static int mlo_tail_follow(mlo_tail *p) {
    mlo_graph *g = p->h.g;
    const char *out = g->output[0]->name;
    for (size_t i = 0; i < g->n_node; i++) {
        int both = 0;
        mlo_node *n = g->node[i];
        const char *kind = mlo_tail_reads(p, n, &both);
        if (!kind) continue;
        if (!mlo_tail_takes(p, n, kind, both)) break;
        p->h.logits = n->output[0];
    }
    if (!p->choice || !p->matrices)
        return mlo_tail_no(p, mlo_value_of(g, out)->producer, "no matrix of the first token");
    return mlo_tail_closed(p);
}

/* Is what the model says made of the first token? p->why: it is something else that the loop has not made as it is. */
static int mlo_tail_is(mlo_tail *p) {
    mlo_graph *g = p->h.g;
    const mlo_value *left = mlo_value_of(g, p->h.loop.node->output[0]);
    if (!left || left->n_use != 1 || !mlo_is_kernel(left->use[0], MLO_KERNEL_TO_FLOATS)) return 0;
    p->h.hidden = left->use[0]->output[0];
    for (size_t i = 0; i < g->n_output; i++)
        if (g->output[i]->name == p->h.hidden)
            return g->n_output > 1
                && mlo_tail_no(p, mlo_value_of(g, g->output[i == 0]->name)->producer,
                    "an output beside the last hidden states (exported alone it would be the "
                    "core's)");
    if (g->n_output != 1)
        return mlo_tail_no(p, mlo_value_of(g, g->output[1]->name)->producer, "several outputs");
    return !mlo_tail_says(p, &p->is, p->h.hidden, mlo_tail_whole)
        && !mlo_tail_says(p, &p->of, p->h.hidden, p->h.hidden) && mlo_tail_follow(p);
}

/* ---- the choice in front ---------------------------------------------------- */

static const char *mlo_tail_list(mlo_tail *p, const char *name, const int64_t *list, int64_t n) {
    mlo *m = p->h.m;
    int64_t *own = MLO_NEW_N(m, int64_t, (size_t)n);
    if (own) memcpy(own, list, (size_t)n * sizeof *own);
    mlo_tensor *t = own ? mlo_tensor_new(m, name, MLO_INT64, &n, 1, own, (size_t)n * sizeof *own)
                        : NULL;
    return t && !mlo_graph_init(m, p->h.g, t) ? t->name : NULL;
}

static int mlo_tail_add(mlo_tail *p, mlo_graph *list, const char *op, const char *from,
    const char *by, const char *to) {
    mlo *m = p->h.m;
    const char *in[] = { from, by };
    mlo_node *n = by ? mlo_node_new(m, op, to) : NULL;
    const int gather = n && mlo_is(n, "Gather");
    if (!n || mlo_inputs(m, n, in, 2) || mlo_node_output(m, n, to)
        || (gather && mlo_attr_int(m, n, "axis", 1))
        || (gather && mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_front, "1")))
        return mlo_failed(m);
    return mlo_graph_add(m, list, n);
}

/* The first token of the loop's integers, and its floats. */
static int mlo_tail_choose(mlo_tail *p, mlo_graph *list, const mlo_node *floats) {
    static const int64_t zero = 0;
    const char *first = mlo_intern(p->h.m, mlo_tail_first);
    const char *at = mlo_tail_list(p, "mlo_first_at", &zero, 1);
    return mlo_tail_add(p, list, "Gather", floats->input[0], at, first)
        || mlo_tail_add(
            p, list, mlo_dequantize_kernel.op.name, first, floats->input[1], p->h.hidden);
}

/* A node that is to be in the body: it reads the first token where it read all of them. */
static int mlo_tail_inside(mlo_tail *p, mlo_graph *list, mlo_node *n, const char *from) {
    mlo *m = p->h.m;
    for (size_t i = 0; i < n->n_input; i++)
        if (n->input[i] == from) n->input[i] = p->h.hidden;
    const mlo_form f = mlo_form_of(mlo_value_of(p->h.g, n->output[0]));
    if (n->output[0] != p->h.logits && mlo_map_put(m, &p->h.behind, n->output[0], p))
        return mlo_failed(m);
    if (n == p->choice)
        return mlo_tail_add(p, list, "Reshape", n->input[0],
            mlo_tail_list(p, "mlo_first_form", f.dims, f.rank), n->output[0]);
    return mlo_graph_add(m, list, n);
}

/* What the body makes is a token, [1, 1, C], that the model has in another form. */
static int mlo_tail_token_out(mlo_tail *p, mlo_graph *list, mlo_node *last) {
    mlo *m = p->h.m;
    const mlo_form f = mlo_form_of(mlo_value_of(p->h.g, p->h.logits));
    const int64_t form[] = { 1, 1, mlo_last_dim(&f) };
    const char *out = p->h.logits, *inner = mlo_format(m, "%s_numbers", out);
    if (!inner || !(p->h.logits = mlo_format(m, "%s_token", out))) return mlo_failed(m);
    last->output[0] = inner;
    return mlo_tail_add(
               p, list, "Reshape", inner, mlo_tail_list(p, "mlo_first_token", form, 3), p->h.logits)
        || mlo_tail_add(
            p, list, "Reshape", p->h.logits, mlo_tail_list(p, "mlo_first_out", f.dims, f.rank), out)
        || mlo_map_put(m, &p->h.behind, inner, p) || mlo_map_put(m, &p->h.behind, p->h.logits, p);
}

static int mlo_tail_rewrite(mlo_tail *p) {
    mlo *m = p->h.m;
    mlo_graph *g = p->h.g, list = { 0 };
    const char *from = p->h.hidden, *last = p->h.logits;
    const mlo_node *floats = mlo_value_of(g, from)->producer;
    p->h.hidden = mlo_format(m, "%s_first", from);
    if (!p->h.hidden || mlo_map_put(m, &p->h.behind, p->h.hidden, p)) return mlo_failed(m);
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = g->node[i];
        const int inside = n != floats && mlo_map_get(&p->is, n->output[0]) != NULL;
        const int ends = n->output[0] == last;
        MLO_TRY(inside ? mlo_tail_inside(p, &list, n, from) : mlo_graph_add(m, &list, n));
        if (n == floats) MLO_TRY(mlo_tail_choose(p, &list, floats));
        if (ends) MLO_TRY(mlo_tail_token_out(p, &list, list.node[list.n_node - 1]));
    }
    g->node = list.node;
    g->n_node = list.n_node;
    mlo_head_forget(&p->h);
    return mlo_index(m, g) || mlo_infer(m);
}

/* ---- all of it -------------------------------------------------------------- */

/* The kernels stand where the Scan stood. */
static int mlo_tail_inline(mlo_head *h, mlo_quantizer *q) {
    mlo *m = h->m;
    const mlo_signal *out = mlo_signal_of(q, q->result);
    const mlo_node *floats = mlo_value_of(h->g, h->hidden)->producer;
    mlo_node **node = h->g->node;
    const size_t n = h->g->n_node;
    h->g->node = NULL;
    h->g->n_node = 0;
    for (size_t i = 0; i < n; i++) {
        if (i != h->at) MLO_TRY(mlo_graph_add(m, h->g, node[i]));
        if (i != h->at) continue;
        MLO_TRY(mlo_head_kernels(h, q, floats->input[0]));
        MLO_TRY(mlo_edge_node(q, h->g, mlo_dequantize_kernel.op.name, out->wide_name, h->logits,
            out->wide_scale[0], out->wide_bits, MLO_INT16));
    }
    return mlo_failed(m);
}

/* Behind an encoder's loop, if there is something that can be in the core. */
static int mlo_quantize_tail(const mlo_head *front) {
    mlo *m = front->m;
    mlo_tail p = { .h = { .m = m, .g = front->g, .loop = front->loop } };
    const int is = mlo_tail_is(&p);
    if (m->error.code) return mlo_failed(m);
    if (!is && p.why)
        mlo_warn(m, "%s (%s): %s; the core makes the last hidden states, and the host the rest",
            mlo_node_name(p.at), p.at->op, p.why);
    if (!is) return 0;
    return mlo_tail_rewrite(&p) || mlo_head_outline(&p.h)
        || mlo_head_quantize(&p.h, mlo_head_given, mlo_tail_inline) || mlo_index(m, p.h.g)
        || mlo_infer(m);
}
