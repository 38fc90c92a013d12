/* taps: what leaves every layer, not the last alone.
 *
 * in:  a loop whose Scan has outputs of every iteration (roll's taps): hidden states, keys and values of a prompt.
 * out: a loop that hands out the carried value of every iteration, or none: the core's stream is then a frame for each
 *     layer, and what is read of them behind the loop (a depth estimator's head, a weighted sum) is the host's.
 *
 * invariant: the carried value is all that can leave. Outputs of the model that depend on anything else of every layer
 *     are left out, with a warning; where none is left, the model is refused.
 * example: DPT reads layers 3, 6, 9 and 12: y [12, 1, 577, 768] leaves, and host/post.onnx picks four of them.
 * cost: a few nodes behind the loop; iterations times the words on the way out.
 */

/* Marks what depends on a value that every layer makes, besides what it hands to the next one: on one that cannot leave
 * (`state`: the one that can; 0: none). */
static int mlo_taps_follow(mlo *m, const mlo_scan *s, size_t state, mlo_map *made) {
    const mlo_graph *g = m->model->graph;
    for (size_t i = s->n_state; i < s->node->n_output; i++)
        if (i != state) MLO_TRY(mlo_map_put(m, made, s->node->output[i], s->node));
    for (size_t i = 0; i < g->n_node; i++) {
        int follows = 0;
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            follows |= mlo_map_get(made, g->node[i]->input[k]) != NULL;
        for (size_t k = 0; follows && k < g->node[i]->n_output; k++)
            MLO_TRY(mlo_map_put(m, made, g->node[i]->output[k], g->node[i]));
    }
    return 0;
}

/* The output of a body that is its carried value once more; 0: there is none. */
static size_t mlo_taps_state(const mlo_scan *s) {
    for (size_t i = s->n_state; s->n_state == 1 && i < s->body->n_output; i++) {
        const char *name = s->body->output[i]->name;
        for (const mlo_node *n = mlo_maker_in(s->body, name);
            n && mlo_is(n, "Identity") && mlo_has_input(n, 0); n = mlo_maker_in(s->body, name))
            name = n->input[0];
        if (name == s->body->output[0]->name) return i;
    }
    return 0;
}

/* Of the outputs of every iteration at most `state` stays. */
static int mlo_taps_drop(mlo *m, mlo_scan *s, size_t state) {
    if (state) {
        s->node->output[s->n_state] = s->node->output[state];
        s->body->output[s->n_state] = s->body->output[state];
    }
    s->n_tap = state != 0;
    s->node->n_output = s->body->n_output = s->n_state + s->n_tap;
    mlo_attr_drop(s->node, "scan_output_axes");
    mlo_attr_drop(s->node, "scan_output_directions");
    return mlo_drop_dead(m, s->body) || mlo_drop_dead(m, m->model->graph)
        || mlo_index(m, m->model->graph) || mlo_infer(m);
}

/* Does anything behind the loop read the carried value of every layer? */
static int mlo_taps_read(mlo *m, const mlo_scan *s) {
    return s->n_tap && mlo_value_of(m->model->graph, s->node->output[s->n_state])->n_uses > 0;
}

/* Hardware returns what the last layer makes, or what every layer hands to the next one: outputs of the model that
 * depend on what else every layer makes (keys and values of a prompt) are left out. (Of a network of integers,
 * exact_loop.c asks what they are. A core with a cache, or of ids, says what follows a text.) */
static int mlo_taps_leave(mlo *m, mlo_scan *s) {
    mlo_graph *g = m->model->graph;
    mlo_map made = { NULL, 0, 0 };
    size_t kept = 0;
    const char *first = NULL;
    if (!s->n_tap || mlo_has_dialect(s->body)) return 0;
    const size_t state = mlo_context_said(m) || mlo_opt(m, "tokens") ? 0 : mlo_taps_state(s);
    MLO_TRY(mlo_failed(m) || mlo_taps_follow(m, s, state, &made));
    for (size_t i = 0; i < g->n_output; i++)
        if (!mlo_map_get(&made, g->output[i]->name))
            g->output[kept++] = g->output[i];
        else if (!first)
            first = g->output[i]->name;
    if (!kept)
        return mlo_fail(m, MLO_E_UNSUPPORTED, s->node,
            "%zu values leave every layer, and all outputs of the model are made of them; hardware "
            "returns what the last layer makes: make that an output, too",
            s->n_tap);
    if (first)
        mlo_warn(m,
            "%zu outputs of the model are left out, '%s' the first: every layer makes them (keys "
            "and "
            "values, hidden states), and hardware returns what the last layer makes; of a decoder, "
            "--context N keeps keys and values in the core",
            g->n_output - kept, first);
    g->n_output = kept;
    MLO_TRY(mlo_taps_drop(m, s, state));
    return !s->n_tap || mlo_taps_read(m, s) ? 0 : mlo_taps_drop(m, s, 0);
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
    mlo *m = q->m;
    const char *name = mlo_format(m, "%s_each", result);
    mlo_value_info *out = name ? mlo_info_new(m, name, f) : NULL;
    mlo_node *n = out ? mlo_node_new(m, "Identity", name) : NULL;
    return n && !mlo_node_input(m, n, result) && !mlo_node_output(m, n, name)
            && !mlo_graph_add(m, q->body, n)
        ? !MLO_PUSH(m, q->body->output, q->body->n_output, out)
        : mlo_failed(m);
}

/* x as the last of what every iteration has made. */
static int mlo_taps_last(mlo_quantizer *q, mlo_graph *list, const char *stack, const char *x) {
    mlo *m = q->m;
    int64_t *last = (int64_t *)mlo_alloc(m, 1, sizeof *last);
    const char *index = mlo_format(m, "%s_mlo_last", x);
    mlo_node *n = last && index ? mlo_node_new(m, "Gather", x) : NULL;
    const char *in[] = { stack, index };
    if (last) *last = q->scan.iterations - 1;
    return n
            && !mlo_graph_init(
                m, q->scan.outer, mlo_tensor_new(m, index, MLO_INT64, NULL, 0, last, sizeof *last))
            && !mlo_inputs(m, n, in, 2) && !mlo_node_output(m, n, x)
        ? mlo_graph_add(m, list, n)
        : mlo_failed(m);
}

/* Behind the new loop: every iteration's integers (each of the form `frame`) as floats, in its own
 * steps, under the old stack's name and form; the last one is what the old loop returned. */
static int mlo_taps_behind(mlo_quantizer *q, mlo_graph *list, const mlo_signal *out,
    const mlo_form *frame, const mlo_form *f) {
    mlo *m = q->m;
    const int64_t all = q->scan.iterations;
    const char *stack = q->scan.node->output[1], *y = q->scan.node->output[0];
    const char *x = mlo_format(m, "%s_whole", stack);
    mlo_form each = { MLO_FLOAT, frame->rank + 1, { all } };
    const mlo_form stacked = mlo_form_stacked(f, all);
    mlo_node *n = x ? mlo_node_new(m, "Cast", x) : NULL;
    float *step = (float *)mlo_scratch(m, (size_t)all, sizeof *step);
    for (int i = 1; i < each.rank; i++) each.dims[i] = 1;
    for (int64_t i = 0; step && i < all; i++) step[i] = (float)out->wide_scale[i];
    if (n && !mlo_attr_int(m, n, "to", MLO_FLOAT) && !mlo_node_input(m, n, q->loop->output[1])
        && !mlo_node_output(m, n, x) && !mlo_graph_add(m, list, n) && step)
        mlo_numbers_edge(q, list, "Mul", &x, "scaled", step, &each);
    mlo_scratch_free(m, step);
    return mlo_failed(m) || mlo_reshape_edge(q, list, x, stack, &stacked)
        || mlo_taps_last(q, list, stack, y);
}
