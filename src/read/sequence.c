/* sequence: lists of tensors become the tensors that are in them.
 *
 * in:  an indexed model.
 * out: what picks from a SequenceConstruct at a known place is what lies there; what joins all of one is a Concat.
 *
 * TorchScript writes torch.hstack and vstack so, with a choice by the rank of the first element (branch.c): heads that
 * were made one by one, say.
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

/* The node reads what lies at its place of a list. 0: which one is not known. */
static int mlo_list_picked(mlo *m, const mlo_graph *g, mlo_node *n, const mlo_node *list) {
    double at = 0;
    if (!mlo_has_input(n, 1) || !mlo_number_known(m, g, n->input[1], &at)) return 0;
    const int64_t k = (int64_t)(at < 0 ? at + (double)list->n_input : at);
    if (k < 0 || k >= (int64_t)list->n_input) return 0;
    n->op = "Identity";
    n->input[0] = list->input[k];
    n->n_input = 1;
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

/* *any: 1 where something has become of a list. */
static int mlo_unlist(mlo *m, int *any) {
    mlo_graph *g = m->model->graph;
    *any = 0;
    if (m->stale) MLO_TRY(mlo_index(m, g));
    for (size_t i = 0; i < g->n_node && !m->error.code; i++) {
        mlo_node *n = g->node[i];
        const mlo_node *list = mlo_list_of(g, n);
        if (list && mlo_is(n, "SequenceAt")) *any |= mlo_list_picked(m, g, n, list);
        if (list && mlo_is(n, "ConcatFromSequence")) *any |= mlo_list_joined(m, n, list);
    }
    return *any && !m->error.code ? mlo_drop_dead(m, g) || mlo_index(m, g) : mlo_failed(m);
}
