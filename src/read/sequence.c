/* sequence: lists of tensors become the tensors that are in them.
 *
 * in:  an indexed model.
 * out: what picks from a SequenceConstruct at a known place is what lies there; what joins all of one is a Concat.
 *
 * TorchScript writes torch.hstack and vstack so, with a choice by the rank of the first element (branch.c): heads that
 * were made one by one, say. A stack of tensors (torch.stack: each of them Unsqueezed, then a Concat) of which one is
 * picked is that one: keys of a cache that has keys and values in one tensor.
 *
 * invariant: the same tensors. A list that grows, or whose place is not known, stays.
 * example: ConcatFromSequence(SequenceConstruct(a, b), axis 1) is Concat(a, b, axis 1).
 * cost: O(nodes).
 */

/* What makes the list that a node reads; NULL: it is made in another way, or by nothing that is known. */
static const mlo_node *mlo_list_of(const mlo_graph *g, const mlo_node *n) {
    const mlo_value *v = mlo_has_input(n, 0) ? mlo_value_of(g, n->input[0]) : NULL;
    return v && mlo_is(v->producer, "SequenceConstruct") ? v->producer : NULL;
}

/* Which of so many a node picks by its second input; -1: that is not known. */
static int64_t mlo_place_picked(mlo *m, const mlo_graph *g, const mlo_node *n, size_t of) {
    double at = 0;
    if (!mlo_has_input(n, 1) || !mlo_number_known(m, g, n->input[1], &at)) return -1;
    const int64_t k = (int64_t)(at < 0 ? at + (double)of : at);
    return k < (int64_t)of ? k : -1;
}

/* The node reads what lies at its place of a list. 0: which one is not known. */
static int mlo_list_picked(mlo *m, const mlo_graph *g, mlo_node *n, const mlo_node *list) {
    const int64_t k = mlo_place_picked(m, g, n, list->n_input);
    if (k < 0) return 0;
    mlo_node_passes(n, list->input[k]);
    return 1;
}

/* The node joins the elements of a list along one of their axes. */
static int mlo_list_joined(mlo *m, mlo_node *n, const mlo_node *list) {
    if (mlo_int(n, "new_axis", 0)) return 0;
    mlo_attr_drop(n, "new_axis");
    n->op = "Concat";
    n->n_input = 0;
    for (size_t i = 0; i < list->n_input; i++)
        if (mlo_node_input(m, n, list->input[i])) return 0;
    return 1;
}

/* The axis that an Unsqueeze makes, the only one; -1: it makes others, or which is not known. */
static int mlo_stacked_axis(mlo *m, const mlo_graph *g, const mlo_node *n) {
    const mlo_form y = mlo_form_of(n && n->n_output ? mlo_value_of(g, n->output[0]) : NULL);
    const mlo_attr *a = mlo_is(n, "Unsqueeze") ? mlo_attr_of(n, "axes") : NULL;
    double axis = a && a->n_ints == 1 ? (double)a->ints[0] : -1e9;
    if (!a && mlo_is(n, "Unsqueeze") && mlo_has_input(n, 1)
        && !mlo_number_known(m, g, n->input[1], &axis))
        axis = -1e9;
    if (axis < 0) axis += y.rank;
    return axis >= 0 && axis < y.rank ? (int)axis : -1;
}

/* The node picks one of a stack. 0: it does not, or which one is not known. */
static int mlo_stack_picked(mlo *m, const mlo_graph *g, mlo_node *n) {
    const mlo_value *v = mlo_is(n, "Gather") && n->n_input == 2 ? mlo_value_of(g, n->input[0])
                                                                : NULL;
    const mlo_node *stack = v && mlo_is(v->producer, "Concat") ? v->producer : NULL;
    const mlo_form x = mlo_form_of(v),
                   by = mlo_form_of(stack ? mlo_value_of(g, n->input[1]) : NULL);
    const int64_t said = mlo_int(n, "axis", 0), axis = said < 0 ? said + x.rank : said;
    const int64_t along = stack ? mlo_int(stack, "axis", 0) : 0;
    if (!stack || by.rank != 0 || (along < 0 ? along + x.rank : along) != axis) return 0;
    for (size_t i = 0; i < stack->n_input; i++) {
        const mlo_value *part = mlo_value_of(g, stack->input[i]);
        if (mlo_stacked_axis(m, g, part ? part->producer : NULL) != axis) return 0;
    }
    const int64_t k = mlo_place_picked(m, g, n, stack->n_input);
    if (k < 0) return 0;
    mlo_node_passes(n, mlo_value_of(g, stack->input[k])->producer->input[0]);
    return 1;
}

/* *any: 1 where something has become of a list. */
static int mlo_unlist(mlo *m, int *any) {
    mlo_graph *g = m->model->graph;
    *any = 0;
    if (m->stale) MLO_TRY(mlo_index(m, g));
    for (size_t i = 0; i < g->n_node && !m->error.code; i++) {
        mlo_node *n = g->node[i];
        const mlo_node *list = mlo_list_of(g, n);
        *any |= mlo_stack_picked(m, g, n);
        if (list && mlo_is(n, "SequenceAt")) *any |= mlo_list_picked(m, g, n, list);
        if (list && mlo_is(n, "ConcatFromSequence")) *any |= mlo_list_joined(m, n, list);
    }
    return *any && !m->error.code ? mlo_drop_dead(m, g) || mlo_index(m, g) : mlo_failed(m);
}
