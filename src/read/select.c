/* select: a choice that is written as arithmetic becomes a Where.
 *
 * in:  an indexed model, types inferred.
 * out: each c a + (1 - c) b, where c is a condition cast to numbers and 1 - c its opposite cast likewise, as
 *     Where(c, a, b).
 *
 * tf2onnx writes TensorFlow's SelectV2 so: masks of scores, guards of probabilities, ids that are counted from the
 * end.
 *
 * invariant: the same numbers, where a and b are finite; where what is not chosen is not, Where is what was meant.
 * example: Cast(c) scores + Cast(Not(c)) -1e9 is Where(c, scores, -1e9).
 * cost: O(nodes).
 */

/* What makes a value, if it is this operator, of so many operands at least. */
static const mlo_node *mlo_made_as(
    const mlo_graph *g, const char *name, const char *op, size_t operands) {
    const mlo_value *v = mlo_value_of(g, name);
    return v && mlo_is(v->producer, op) && v->producer->n_input >= operands ? v->producer : NULL;
}

/* The condition that is cast; NULL: it is no such number. */
static const char *mlo_select_condition(const mlo_graph *g, const char *name) {
    const mlo_node *cast = mlo_made_as(g, name, "Cast", 1);
    return cast && mlo_form_of(mlo_value_of(g, cast->input[0])).dtype == MLO_BOOL ? cast->input[0]
                                                                                  : NULL;
}

/* Factor i of a product, if the other one is a condition (*c). */
static const char *mlo_select_part(const mlo_graph *g, const char *name, int i, const char **c) {
    const mlo_node *n = mlo_made_as(g, name, "Mul", 2);
    *c = n ? mlo_select_condition(g, n->input[1 - i]) : NULL;
    return *c ? n->input[i] : NULL;
}

/* Is one condition the other one's opposite? */
static int mlo_is_opposite(const mlo_graph *g, const char *c, const char *other) {
    const mlo_node *no = mlo_made_as(g, other, "Not", 1);
    return no && no->input[0] == c;
}

/* Makes node n a Where, if it is such a sum. */
static int mlo_select_node(mlo *m, const mlo_graph *g, mlo_node *n) {
    const mlo_form y = mlo_form_of(mlo_value_of(g, n->n_output ? n->output[0] : ""));
    if (!mlo_is(n, "Add") || n->n_input != 2 || !y.dtype) return 0;
    for (int k = 0; k < 8; k++) {
        const char *c, *other;
        const char *a = mlo_select_part(g, n->input[k & 1], k >> 1 & 1, &c);
        const char *b = a ? mlo_select_part(g, n->input[1 - (k & 1)], k >> 2, &other) : NULL;
        if (!b || !mlo_is_opposite(g, c, other)) continue;
        n->op = "Where";
        n->n_input = 0;
        return mlo_node_input(m, n, c) || mlo_node_input(m, n, a) || mlo_node_input(m, n, b)
            ? mlo_failed(m)
            : 1;
    }
    return 0;
}

static int mlo_selects(mlo *m) {
    mlo_graph *g = m->model->graph;
    int any = 0;
    if (m->stale) MLO_TRY(mlo_index(m, g));
    for (size_t i = 0; i < g->n_node && !m->error.code; i++)
        any |= mlo_select_node(m, g, g->node[i]) == 1;
    return any && !m->error.code ? mlo_drop_dead(m, g) || mlo_index(m, g) : mlo_failed(m);
}
