/* wrapped: rows that are picked by numbers from the end, written out, are picked by the numbers themselves.
 *
 * in:  an indexed model, types inferred.
 * out: each Gather that reads ids < 0 ? ids + rows : ids, of a table of as many rows, reads the ids.
 *
 * Gather counts negative numbers from the end itself. TensorFlow and JAX write it out in front of an embedding, which
 * would hide from all that follows that the ids index the table: which ids there are, how many words the model has.
 *
 * invariant: the same rows of the table, of every number that is one of its rows.
 * example: Gather(W[50, C], Where(ids < 0, ids + 50, ids)) is Gather(W, ids).
 * cost: O(nodes).
 */

static const char *mlo_wrapped_uncast(const mlo_graph *g, const char *name) {
    const mlo_node *n;
    for (int i = 0; i < 8 && (n = mlo_made_as(g, name, "Cast", 1)) != NULL; i++) name = n->input[0];
    return name;
}

/* What a value is, through casts and through views that keep the order of its elements. */
static const char *mlo_wrapped_unviewed(const mlo_graph *g, const char *name) {
    for (int i = 0; i < 16; i++) {
        const mlo_value *v = mlo_value_of(g, name);
        const mlo_node *n = v && v->producer && v->producer->n_input ? v->producer : NULL;
        const mlo_form y = mlo_form_of(v), x = mlo_form_of(n ? mlo_value_of(g, n->input[0]) : NULL);
        const int same = mlo_is(n, "Expand") && mlo_form_known(&x) && mlo_form_same(&x, &y);
        if (!same && !mlo_is(n, "Cast") && !(n && mlo_has_trait(n, MLO_RESHAPES))) break;
        name = n->input[0];
    }
    return name;
}

/* What a condition says to be below 0; NULL: it says something else. */
static const char *mlo_wrapped_below(mlo *m, const mlo_graph *g, const char *name) {
    const mlo_node *n = mlo_made_as(g, name, "Less", 2);
    double zero;
    if (!n || !mlo_number_known(m, g, n->input[1], &zero) || mlo_differs(zero, 0)) return NULL;
    return mlo_wrapped_uncast(g, n->input[0]);
}

/* What so many rows are added to. */
static const char *mlo_wrapped_plus(mlo *m, const mlo_graph *g, const char *name, int64_t rows) {
    const mlo_node *n = mlo_made_as(g, name, "Add", 2);
    double x;
    for (int i = 0; n && i < 2; i++)
        if (mlo_number_known(m, g, n->input[i], &x) && !mlo_differs(x, (double)rows))
            return mlo_wrapped_uncast(g, n->input[1 - i]);
    return NULL;
}

/* The ids that are counted from the end where they are below 0; NULL: it is no such thing. */
static const char *mlo_wrapped_ids(mlo *m, const mlo_graph *g, const char *name, int64_t rows) {
    const mlo_node *n = mlo_made_as(g, name, "Where", 3);
    const char *below = n ? mlo_wrapped_below(m, g, n->input[0]) : NULL;
    const int is = below && mlo_wrapped_plus(m, g, n->input[1], rows) == below;
    return is && mlo_wrapped_uncast(g, n->input[2]) == below ? below : NULL;
}

static int mlo_unwrap(mlo *m) {
    mlo_graph *g = m->model->graph;
    int any = 0;
    if (m->stale) MLO_TRY(mlo_index(m, g));
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = g->node[i];
        const mlo_form table = mlo_form_of(n->n_input > 1 ? mlo_value_of(g, n->input[0]) : NULL);
        if (!mlo_is(n, "Gather") || mlo_int(n, "axis", 0) || table.rank < 1 || table.dims[0] < 1)
            continue;
        const char *ids = mlo_wrapped_ids(
            m, g, mlo_wrapped_unviewed(g, n->input[1]), table.dims[0]);
        const mlo_form f = mlo_form_of(ids ? mlo_value_of(g, ids) : NULL);
        mlo_form as = mlo_form_of(mlo_value_of(g, n->input[1]));
        as.dtype = f.dtype;
        if ((f.dtype != MLO_INT32 && f.dtype != MLO_INT64) || !mlo_form_same(&f, &as)) continue;
        n->input[1] = ids;
        any = 1;
    }
    return any ? mlo_drop_dead(m, g) || mlo_index(m, g) : mlo_failed(m);
}
