/* hot: a row that a one-hot mask writes into a buffer of keys or values becomes a TensorScatter.
 *
 * in:  an indexed model with a cache, constants not folded.
 * out: where a Where takes a new row at one position of a buffer, and the buffer's own everywhere else, a node that
 *     says so: what the rest of read knows of buffers is true of it.
 *
 * Exports for processors without scatters write so. The mask is positions 0, 1, .. along one axis of the buffer,
 * compared with the one that is written; the Where's result leaves the model.
 *
 * invariant: the same numbers, for a new row that is one row. Where anything else is so computed, all stays as it is.
 * example: Where(Unsqueeze(Equal([0, 1, .., 31], start)) [32, 1], k [1, 4, 1, 16], past [1, 4, 32, 16])
 *     is TensorScatter <axis: 2> (past, k, start).
 * cost: O(nodes).
 */

/* Is it 0, 1, .. of so many, along one axis? */
static int mlo_hot_counts(const mlo_cacheless *c, const mlo_tensor *t, int64_t positions) {
    mlo_array *a = mlo_tensor_count(t) == positions ? mlo_tensor_load(c->m, t) : NULL;
    int64_t *at = a && !mlo_dtype_is_float(a->dtype) ? MLO_NEW_N(c->m, int64_t, (size_t)positions)
                                                     : NULL;
    int counts = at != NULL;
    if (at) mlo_convert(MLO_INT64, at, a->dtype, a->data, (size_t)positions);
    for (int64_t i = 0; counts && i < positions; i++) counts = at[i] == i;
    mlo_array_free(c->m, a);
    return counts;
}

/* The value that positions along an axis of so many are compared with, where a mask is that; NULL: it is another. */
static const mlo_value *mlo_hot_position(
    const mlo_cacheless *c, const char *mask, int64_t positions) {
    static const char *const shapes[] = { "Unsqueeze", "Reshape", "Identity", "Cast", NULL };
    const mlo_value *v = mlo_value_of(c->g, mask);
    const mlo_node *n = v ? v->producer : NULL;
    for (int depth = 0; n && n->n_input && mlo_is_one_of(n, shapes) && depth < 8; depth++)
        n = (v = mlo_value_of(c->g, n->input[0])) ? v->producer : NULL;
    if (!n || !mlo_is(n, "Equal") || n->n_input != 2) return NULL;
    for (size_t k = 0; k < 2; k++) {
        const mlo_value *all = mlo_value_of(c->g, n->input[k]);
        const mlo_value *one = mlo_value_of(c->g, n->input[1 - k]);
        const mlo_form f = mlo_form_of(one);
        if (all && all->tensor && one && !one->tensor && mlo_form_known(&f)
            && mlo_form_count(&f) == 1 && mlo_hot_counts(c, all->tensor, positions))
            return one;
    }
    return NULL;
}

/* The axis of a buffer along which the mask has positions, and what is new one row; -1: there is none. */
static int mlo_hot_axis(const mlo_cacheless *c, const mlo_node *n) {
    const mlo_form mask = mlo_form_of(mlo_value_of(c->g, n->input[0]));
    const mlo_form row = mlo_form_of(mlo_value_of(c->g, n->input[1]));
    const mlo_form all = mlo_form_of(mlo_value_of(c->g, n->input[2]));
    int axis = -1, others = 0;
    if (!mlo_form_known(&mask) || !mlo_form_known(&row) || !mlo_form_known(&all)) return -1;
    if (all.rank < 3 || row.rank != all.rank || mask.rank > all.rank) return -1;
    for (int d = 0; d < mask.rank; d++)
        if (mask.dims[d] != 1) axis = axis < 0 ? d + all.rank - mask.rank : all.rank;
    for (int d = 0; d < all.rank; d++) others |= d != axis && row.dims[d] != all.dims[d];
    return axis >= 0 && axis < all.rank && !others && row.dims[axis] == 1 && all.dims[axis] > 1
        ? axis
        : -1;
}

/* Does a Where hand out what it makes of a buffer that is an input of the model? */
static int mlo_hot_writes(const mlo_cacheless *c, const mlo_node *n) {
    if (!mlo_is(n, "Where") || n->n_input != 3) return 0;
    const mlo_value *v = mlo_value_of(c->g, n->input[2]);
    return v && v->is_input && !v->tensor && mlo_dtype_is_float(mlo_form_of(v).dtype)
        && mlo_given_out(c->m, c->g, n->output[0]) != NULL;
}

/* A position of whatever rank as a list of one. */
static const char *mlo_hot_listed(mlo_cacheless *c, mlo_graph *to, const mlo_value *at) {
    mlo *m = c->m;
    const int64_t one = 1;
    size_t number = 0;
    if (mlo_form_of(at).rank == 1) return at->name;
    const char *name = mlo_name_new(m, c->g, at->name, "listed", &number);
    const char *shape = name ? mlo_name_new(m, c->g, at->name, "shape", &number) : NULL;
    mlo_array *a = shape ? mlo_array_new(m, MLO_INT64, 1, &one) : NULL;
    if (a) *(int64_t *)a->data = 1;
    mlo_tensor *t = a ? mlo_tensor_from(m, shape, a) : NULL;
    mlo_array_free(m, a);
    mlo_node *n = t && !mlo_graph_init(m, c->g, t) ? mlo_node_new(m, "Reshape", name) : NULL;
    return n && !mlo_node_input(m, n, at->name) && !mlo_node_input(m, n, shape)
            && !mlo_node_output(m, n, name) && !mlo_graph_add(m, to, n)
        ? name
        : NULL;
}

/* The Where becomes the write. */
static int mlo_hot_write(mlo_cacheless *c, mlo_graph *to, mlo_node *n) {
    const int axis = mlo_hot_axis(c, n);
    const mlo_form f = mlo_form_of(mlo_value_of(c->g, n->input[2]));
    const mlo_value *at = axis < 0 ? NULL : mlo_hot_position(c, n->input[0], f.dims[axis]);
    if (!at) return mlo_failed(c->m);
    const char *row = n->input[1], *buffer = n->input[2], *place = mlo_hot_listed(c, to, at);
    if (!place) return mlo_failed(c->m);
    n->op = "TensorScatter";
    n->input[0] = buffer;
    n->input[1] = row;
    n->input[2] = place;
    return mlo_attr_int(c->m, n, "axis", axis);
}

/* All of them. */
static int mlo_hot(mlo_cacheless *c) {
    mlo_graph all = { 0 };
    int any = 0;
    for (size_t i = 0; i < c->g->n_node; i++) any |= mlo_hot_writes(c, c->g->node[i]);
    if (!any) return mlo_failed(c->m);
    MLO_TRY(mlo_infer(c->m));
    for (size_t i = 0; i < c->g->n_node; i++) {
        if (mlo_hot_writes(c, c->g->node[i])) MLO_TRY(mlo_hot_write(c, &all, c->g->node[i]));
        MLO_TRY(mlo_graph_add(c->m, &all, c->g->node[i]));
    }
    c->g->node = all.node;
    c->g->n_node = all.n_node;
    return mlo_drop_dead(c->m, c->g) || mlo_index(c->m, c->g);
}
