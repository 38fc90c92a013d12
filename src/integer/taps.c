/* taps: what leaves every layer, not the last alone.
 *
 * in:  a loop whose Scan has outputs of every iteration (roll's taps): hidden states, keys and values of a prompt.
 * out: a loop that hands out the carried value of every iteration, or none: the core's stream is then a frame for each
 *     layer, and what is read of them behind the loop (a depth estimator's head, a weighted sum) is the host's.
 *
 * invariant: the carried value is all that can leave; what an iteration begins with is made of what those in front of
 *     it handed on. Outputs of the model that depend on anything else of every layer
 *     are left out, with a warning; where none is left, the model is refused.
 * example: DPT reads layers 3, 6, 9 and 12: y [12, 1, 577, 768] leaves, and host/post.onnx picks four of them.
 * cost: a few nodes behind the loop; iterations times the words on the way out.
 */

enum { MLO_TAP_OTHER, MLO_TAP_IN, MLO_TAP_OUT };

/* Does a node hand on what it gets? A Cast does of a type to itself. */
static int mlo_taps_same(const mlo_graph *g, const mlo_node *n) {
    if (!mlo_has_input(n, 0)) return 0;
    return mlo_is(n, "Identity")
        || (mlo_is(n, "Cast")
            && mlo_form_of(mlo_value_of(g, n->input[0])).dtype
                == mlo_form_of(mlo_value_of(g, n->output[0])).dtype);
}

/* What output i of every iteration is: what the iteration begins with, what it hands to the next one, or neither. */
static int mlo_tap_kind(const mlo_scan *s, size_t i) {
    const char *name = s->body->output[i]->name;
    if (s->n_state != 1 || mlo_int_at(s->node, "scan_output_axes", i - 1, 0)
        || mlo_int_at(s->node, "scan_output_directions", i - 1, 0))
        return MLO_TAP_OTHER;
    for (const mlo_node *n = NULL; name != s->body->output[0]->name; name = n->input[0]) {
        if (name == s->body->input[0]->name) return MLO_TAP_IN;
        n = mlo_maker_in(s->body, name);
        if (!n || !mlo_taps_same(s->body, n)) return MLO_TAP_OTHER;
    }
    return MLO_TAP_OUT;
}

/* Marks what depends on a value that every layer makes, besides what it hands to the next one; all:
 * and on this, too. */
static int mlo_taps_follow(mlo *m, const mlo_scan *s, int all, mlo_map *made) {
    const mlo_graph *g = m->model->graph;
    for (size_t i = s->n_state; i < s->node->n_output; i++)
        if (all || mlo_tap_kind(s, i) == MLO_TAP_OTHER)
            MLO_TRY(mlo_map_put(m, made, s->node->output[i], s->node));
    for (size_t i = 0; i < g->n_node; i++) {
        int follows = 0;
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            follows |= mlo_map_get(made, g->node[i]->input[k]) != NULL;
        for (size_t k = 0; follows && k < g->node[i]->n_output; k++)
            MLO_TRY(mlo_map_put(m, made, g->node[i]->output[k], g->node[i]));
    }
    return 0;
}

/* Outputs of every iteration that nothing reads go. */
static int mlo_taps_drop(mlo *m, mlo_scan *s) {
    size_t kept = s->n_state;
    MLO_TRY(mlo_drop_dead(m, m->model->graph) || mlo_index(m, m->model->graph));
    for (size_t i = s->n_state; i < s->node->n_output; i++) {
        if (!mlo_value_of(m->model->graph, s->node->output[i])->n_uses) continue;
        s->node->output[kept] = s->node->output[i];
        s->body->output[kept++] = s->body->output[i];
    }
    s->node->n_output = s->body->n_output = kept;
    s->n_tap = kept - s->n_state;
    mlo_attr_drop(s->node, "scan_output_axes");
    mlo_attr_drop(s->node, "scan_output_directions");
    return mlo_drop_dead(m, s->body) || mlo_drop_dead(m, m->model->graph)
        || mlo_index(m, m->model->graph) || mlo_infer(m);
}

/* ---- one stack is enough ------------------------------------------------- */

/* y := op(a, b) behind the loop; b NULL: there is none. */
static int mlo_taps_node(
    mlo *m, mlo_graph *list, const char *op, const char *a, const char *b, const char *y) {
    mlo_node *n = y ? mlo_node_new(m, op, y) : NULL;
    return n && !mlo_node_input(m, n, a) && !(b && mlo_node_input(m, n, b))
            && !mlo_node_output(m, n, y) && !(mlo_is(n, "Concat") && mlo_attr_int(m, n, "axis", 0))
            && !(mlo_is(n, "Cast") && mlo_attr_int(m, n, "to", MLO_FLOAT))
        ? mlo_graph_add(m, list, n)
        : mlo_failed(m);
}

/* A body's result, once more, as another output of it. NULL: failed. */
static mlo_value_info *mlo_taps_output(
    mlo *m, mlo_graph *body, const char *result, const mlo_form *f) {
    const char *name = mlo_format(m, "%s_each", result);
    return mlo_taps_node(m, body, "Identity", result, NULL, name) ? NULL : mlo_info_new(m, name, f);
}

/* Integers as an initializer of the outer graph: a list, or (n 0) one number. NULL: failed. */
static const char *mlo_taps_numbers(
    mlo *m, mlo_graph *g, const char *name, const int64_t *number, int64_t n) {
    const size_t bytes = (size_t)mlo_max(n, 1) * sizeof *number;
    int64_t *data = (int64_t *)mlo_alloc(m, bytes, 1);
    if (!data || !name) return NULL;
    memcpy(data, number, bytes);
    mlo_tensor *t = mlo_tensor_new(m, name, MLO_INT64, &n, n != 0, data, bytes);
    return mlo_graph_init(m, g, t) ? NULL : name;
}

/* A stack of what iterations begin with: what enters the loop, then what all but the last one hand
 * on (of the stack `each`). */
static int mlo_taps_begun(mlo_quantizer *q, mlo_graph *list, const char *each, const char *stack) {
    mlo *m = q->m;
    const mlo_scan *s = &q->scan;
    const char *first = mlo_format(m, "%s_first", stack), *all = mlo_format(m, "%s_all", stack);
    const mlo_form x = mlo_form_of(mlo_value_of(s->outer, s->node->input[0]));
    const mlo_form one = mlo_form_stacked(&x, 1);
    int64_t *which = MLO_NEW_N(m, int64_t, (size_t)s->iterations);
    for (int64_t i = 0; which && i < s->iterations; i++) which[i] = i;
    if (!which || !all) return mlo_failed(m);
    const char *begun = mlo_taps_numbers(
        m, s->outer, mlo_format(m, "%s_begun", stack), which, s->iterations);
    return mlo_failed(m) || mlo_reshape_edge(q, list, s->node->input[0], first, &one)
        || mlo_taps_node(m, list, "Concat", first, each, all)
        || mlo_taps_node(m, list, "Gather", all, begun, stack);
}

/* The first output of every iteration becomes what it hands on, and what reads another one reads that. */
static int mlo_taps_one(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_scan *s = &q->scan;
    mlo_graph list = { 0 };
    const char *result = s->body->output[0]->name;
    const char *each = mlo_format(m, "%s_each", s->node->output[0]);
    const mlo_form f = mlo_form_of(mlo_value_of(s->body, result));
    mlo_value_info *out = each ? mlo_taps_output(m, s->body, result, &f) : NULL;
    if (!out) return mlo_failed(m);
    for (size_t i = 0; i < s->outer->n_node; i++) {
        MLO_TRY(mlo_graph_add(m, &list, s->outer->node[i]));
        for (size_t k = 1; s->outer->node[i] == s->node && k < s->node->n_output; k++)
            MLO_TRY(mlo_tap_kind(s, k) == MLO_TAP_IN
                    ? mlo_taps_begun(q, &list, each, s->node->output[k])
                    : mlo_taps_node(m, &list, "Identity", each, NULL, s->node->output[k]));
    }
    s->outer->node = list.node;
    s->outer->n_node = list.n_node;
    s->node->n_output = 2;
    s->node->output[1] = each;
    s->body->n_output = 2;
    s->body->output[1] = out;
    s->n_tap = 1;
    return mlo_drop_dead(m, s->body) || mlo_index(m, m->model->graph) || mlo_infer(m);
}

/* Hardware returns what the last layer makes, or what every layer hands to the next one: outputs of the model that
 * depend on what else every layer makes (keys and values of a prompt) are left out. (Of a network of integers,
 * exact_loop.c asks what they are. A core with a cache, or of ids, says what follows a text.) */
static int mlo_taps_leave(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_scan *s = &q->scan;
    mlo_graph *g = m->model->graph;
    mlo_map made = { NULL, 0, 0 };
    size_t kept = 0;
    const char *first = NULL;
    if (!s->n_tap || mlo_has_dialect(s->body)) return 0;
    const int all = mlo_context_said(m) || mlo_opt(m, "tokens");
    MLO_TRY(mlo_failed(m) || mlo_taps_follow(m, s, all, &made));
    for (size_t i = 0; i < g->n_output; i++)
        if (!mlo_map_get(&made, g->output[i]->name))
            g->output[kept++] = g->output[i];
        else if (!first)
            first = g->output[i]->name;
    if (!kept)
        return mlo_fail(m, MLO_E_UNSUPPORTED, s->node,
            "%zu values leave every layer, and all outputs of the model are made of them; hardware "
            "returns what the last layer makes, or what all layers hand on: make that an output, "
            "too",
            s->n_tap);
    if (first)
        mlo_warn(m,
            "%zu outputs of the model are left out, '%s' the first: every layer makes them (keys "
            "and values, attentions), and hardware returns what the last layer makes, or what all "
            "layers hand on; of a decoder, --context N keeps keys and values in the core",
            g->n_output - kept, first);
    g->n_output = kept;
    MLO_TRY(mlo_taps_drop(m, s));
    return s->n_tap ? mlo_taps_one(q) : 0;
}

/* ---- of the loop of integers ---------------------------------------------- */

/* x := op(x, numbers of this form) in the outer graph. */
static int mlo_numbers_edge(mlo_quantizer *q, mlo_graph *list, const char *op, const char **x,
    const char *what, const float *number, const mlo_form *f) {
    mlo *m = q->m;
    const char *to = mlo_format(m, "%s_%s", *x, what), *by = mlo_format(m, "%s_mlo_%s", *x, what);
    const size_t n = (size_t)mlo_form_count(f), bytes = n * sizeof *number;
    float *data = (float *)mlo_alloc(m, n, sizeof *number);
    mlo_node *node = data && to ? mlo_node_new(m, op, to) : NULL;
    if (!node || !by) return mlo_failed(m);
    memcpy(data, number, bytes);
    const char *in[] = { *x, by };
    *x = to;
    return mlo_graph_init(m, q->scan.outer,
               mlo_tensor_new(m, by, MLO_FLOAT, f->dims, (size_t)f->rank, data, bytes))
        || mlo_inputs(m, node, in, 2) || mlo_node_output(m, node, to)
        || mlo_graph_add(m, list, node);
}

/* The new body's carried value, once more. */
static int mlo_taps_body(mlo_quantizer *q, const char *result, const mlo_form *f) {
    mlo_value_info *out = mlo_taps_output(q->m, q->body, result, f);
    return out && MLO_PUSH(q->m, q->body->output, q->body->n_output, out) ? 0 : mlo_failed(q->m);
}

/* Behind the new loop: every iteration's integers (each of the form `frame`) as floats, in its own
 * steps, under the old stack's name and form; the last one is what the old loop returned. */
static int mlo_taps_behind(mlo_quantizer *q, mlo_graph *list, const mlo_signal *out,
    const mlo_form *frame, const mlo_form *f) {
    mlo *m = q->m;
    const int64_t all = q->scan.iterations, last = all - 1;
    const char *each = q->scan.node->output[1], *y = q->scan.node->output[0];
    const char *x = mlo_format(m, "%s_whole", each);
    mlo_form by = { MLO_FLOAT, frame->rank + 1, { all } };
    const mlo_form stacked = mlo_form_stacked(f, all);
    float *step = (float *)mlo_scratch(m, (size_t)all, sizeof *step);
    for (int i = 1; i < by.rank; i++) by.dims[i] = 1;
    for (int64_t i = 0; step && i < all; i++) step[i] = (float)out->wide_scale[i];
    if (step && !mlo_taps_node(m, list, "Cast", q->loop->output[1], NULL, x)
        && !mlo_numbers_edge(q, list, "Mul", &x, "scaled", step, &by))
        mlo_reshape_edge(q, list, x, each, &stacked);
    mlo_scratch_free(m, step);
    const char *index = m->error.code
        ? NULL
        : mlo_taps_numbers(m, q->scan.outer, mlo_format(m, "%s_mlo_last", y), &last, 0);
    return index ? mlo_taps_node(m, list, "Gather", each, index, y) : mlo_failed(m);
}
