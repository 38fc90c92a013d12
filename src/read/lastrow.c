/* lastrow: logits of the last token alone become those of every token.
 *
 * in:  an indexed model read for a context of N tokens, constants folded, every size known.
 * out: a Slice or Gather that picks the last token of what is given out, behind it or in front of a head, is gone: the
 *      output has a row for each token.
 *
 * An export that is to generate text alone keeps one row (logits_to_keep=1): of a prompt its last token's. With a cache
 * each token is the last one once, so what it is asked for is the row of every token. From where it is picked on the
 * token is followed to the outputs (lanes.c).
 *
 * invariant: row i is what the export gives for tokens 0..i. What is not treated row by row behind it, or given out
 *     nowhere, stays as it is.
 * example: h [1, 16, 8] -> Slice [1, 1, 8] -> MatMul [1, 1, 30]: h -> MatMul [1, 16, 30].
 * cost: O(nodes) for each node that picks a last token.
 */

/* The axis of tokens of which a node picks the last of N; -1: it does something else. */
static int mlo_last_picked(const mlo_cacheless *c, const mlo_node *n) {
    const mlo_form x = mlo_form_of(n->n_input ? mlo_value_of(c->g, n->input[0]) : NULL);
    int64_t axis = -1, at = 0;
    if (!mlo_dtype_is_float(x.dtype) || x.rank < 2 || !mlo_form_known(&x)) return -1;
    if (mlo_is(n, "Slice")) {
        if (mlo_keeps_last(c, n, x.rank, c->tokens, &axis) != 1) return -1;
    } else if (mlo_is(n, "Gather") && n->n_input == 2 && mlo_whole_number(c, n->input[1], &at)) {
        axis = mlo_int(n, "axis", 0);
        if (at != -1 && at != c->tokens - 1) return -1;
    }
    if (axis < 0) axis += x.rank;
    if (axis < 0 || axis >= x.rank || x.dims[axis] != c->tokens) return -1;
    for (int64_t d = 0; d < axis; d++)
        if (x.dims[d] != 1) return -1;
    return (int)axis;
}

/* The rule of lanes: the pick (user) hands all tokens on, [1, N, C] or, where it has lost that axis, [N, C]; what is
 * not behind it has none. */
static int mlo_last_rule(mlo_lanes *l, mlo_node *n, int *done) {
    const mlo_cacheless c = { l->m, l->g, l->to };
    const mlo_form x = mlo_lane_form(l, n, 0);
    int laned = 0;
    for (size_t k = 0; k < n->n_input; k++) laned |= mlo_lane_in(l, n, k).axis >= 0;
    *done = n == l->user || !laned;
    if (n != l->user) return 1;
    const int axis = mlo_last_picked(&c, n);
    const int lost = x.rank - mlo_form_of(mlo_value_of(l->g, n->output[0])).rank;
    mlo_array *shape = lost ? mlo_lane_numbers(l, x.dims + 1, x.rank - 1) : NULL;
    if (lost > 1 || (lost && axis != 1)) {
        mlo_array_free(l->m, shape);
        return 0;
    }
    return mlo_lane_becomes(l, n, lost ? "Reshape" : "Identity", shape)
        && mlo_lane_put(l, n->output[0], axis - lost, 1, 1);
}

/* The output that a row is given out by; NULL: none is, or a node behind the pick mixes rows. */
static const char *mlo_last_follow(mlo_lanes *l) {
    for (size_t i = 0; i < l->g->n_node; i++)
        if (!mlo_lane_node(l, l->g->node[i])) return NULL;
    for (size_t i = 0; i < l->g->n_output; i++)
        if (mlo_lane_of(l, l->g->output[i]->name).axis >= 0) return l->g->output[i]->name;
    return NULL;
}

/* The output that a pick's row was, and is no more; NULL: it stays. */
static const char *mlo_last_unpick(mlo *m, int64_t tokens, mlo_node *pick) {
    mlo_lanes l = { m, m->model->graph, 1, tokens, 1, mlo_last_rule, NULL, pick, { NULL, 0, 0 },
        { NULL, 0, 0 }, NULL, 0, NULL };
    const char *out = mlo_last_follow(&l);
    if (out) mlo_lane_apply(&l);
    mlo_lane_free(&l);
    return out;
}

static int mlo_last_rows(mlo *m) {
    const mlo_cacheless c = { m, m->model->graph, mlo_context_said(m) };
    if (m->error.code || c.tokens < 2) return mlo_failed(m);
    if (m->stale) MLO_TRY(mlo_index(m, c.g));
    for (size_t i = 0; i < c.g->n_node && !m->error.code; i++) {
        const char *out = mlo_last_picked(&c, c.g->node[i]) >= 0
            ? mlo_last_unpick(m, c.tokens, c.g->node[i])
            : NULL;
        if (!out) continue;
        mlo_inform(m,
            "'%s' is of the last token alone; with a cache that is each token in turn: it has a "
            "row for each",
            out);
        i = (size_t)-1; /* nodes have moved */
    }
    return mlo_failed(m);
}
