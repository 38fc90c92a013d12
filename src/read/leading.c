/* leading: constants that differ between layers in nothing but dimensions of 1 in front lose these.
 *
 * in:  an indexed model, constants folded.
 * out: where an Add, a Mul or a Where reads a constant [1, 1, T, T], and another one of the same op one of [T, T] in
 *     the same place, both read [T, T]; so their layers are one body.
 *
 * invariant: the same numbers: what they meet has all of these dimensions. A model that has one form of each alone
 *     stays as it is.
 * example: Gemma 2 as litgpt writes it: windows' masks are [T, T], the whole causal one [1, 1, T, T].
 * cost: O(nodes) for each such constant.
 */

/* The constant that a node reads as operand k; NULL: it is no constant, or leading dimensions of its own make the
 * result what it is. */
static mlo_tensor *mlo_leading_of(const mlo_graph *g, const mlo_node *n, size_t k) {
    const mlo_value *v = (mlo_is(n, "Add") || mlo_is(n, "Mul") || mlo_is(n, "Where"))
            && mlo_has_input(n, k)
        ? mlo_value_of(g, n->input[k])
        : NULL;
    const mlo_form y = mlo_form_of(v && n->n_output ? mlo_value_of(g, n->output[0]) : NULL);
    size_t most = 0;
    for (size_t i = 0; v && i < n->n_input; i++) {
        const mlo_form f = mlo_form_of(mlo_value_of(g, n->input[i]));
        if (i != k && f.rank > 0 && (size_t)f.rank > most) most = (size_t)f.rank;
    }
    return v && v->tensor && y.rank >= 0 && most == (size_t)y.rank && v->tensor->n_dims > 1
        ? v->tensor
        : NULL;
}

/* How many dimensions of 1 `longer` has in front of those of `shorter`; 0: they differ in something else. */
static size_t mlo_leading_ones(const mlo_tensor *longer, const mlo_tensor *shorter) {
    if (longer->data_type != shorter->data_type || longer->n_dims <= shorter->n_dims) return 0;
    const size_t more = longer->n_dims - shorter->n_dims;
    for (size_t i = 0; i < more; i++)
        if (longer->dims[i] != 1) return 0;
    return memcmp(longer->dims + more, shorter->dims, shorter->n_dims * sizeof *shorter->dims)
        ? 0
        : more;
}

/* A constant without its first dimensions, of a new name. */
static const char *mlo_leading_cut(mlo *m, mlo_graph *g, const mlo_tensor *t, size_t ones) {
    mlo_tensor *cut = MLO_NEW(m, mlo_tensor);
    const char *name = mlo_format(m, "%s_of%zu", t->name, t->n_dims - ones);
    for (int i = 1; name && mlo_value_of(g, name); i++)
        name = mlo_format(m, "%s_of%zu_%d", t->name, t->n_dims - ones, i);
    if (!cut || !name) return NULL;
    *cut = *t;
    cut->name = name;
    cut->dims += ones;
    cut->n_dims -= ones;
    return mlo_graph_init(m, g, cut) || !mlo_index_value(m, g, name) ? NULL : name;
}

/* Has another node of the same op a shorter one in that place? How many dimensions longer this one is. */
static size_t mlo_leading_more(
    const mlo_graph *g, const mlo_node *n, size_t k, const mlo_tensor *t) {
    size_t more = 0;
    for (size_t i = 0; i < g->n_node && !more; i++) {
        const mlo_tensor *other = mlo_eq(g->node[i]->op, n->op) ? mlo_leading_of(g, g->node[i], k)
                                                                : NULL;
        if (other) more = mlo_leading_ones(t, other);
    }
    return more;
}

static int mlo_cut_leading(mlo *m) {
    mlo_graph *g = m->model->graph;
    int any = 0;
    if (m->stale) MLO_TRY(mlo_index(m, g));
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++) {
            const mlo_tensor *t = mlo_leading_of(g, g->node[i], k);
            const size_t more = t && t->dims[0] == 1 ? mlo_leading_more(g, g->node[i], k, t) : 0;
            const char *name = more ? mlo_leading_cut(m, g, t, more) : NULL;
            if (!more) continue;
            if (!name) return mlo_failed(m);
            g->node[i]->input[k] = name;
            any = 1;
        }
    return any ? mlo_drop_dead(m, g) || mlo_index(m, g) || mlo_infer(m) : mlo_failed(m);
}
