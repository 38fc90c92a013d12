/* ungrouped: heads of one token that are rows of their group get their own place again.
 *
 * in:  an indexed model of one token, constants folded, every size known.
 * out: where queries [B, heads, 1, C] were reshaped to [B, groups, heads / groups, C], so that those of a group are
 *      rows which meet its keys, they stay as they were, and keys and values are repeated for each head.
 *
 * With one token that reshape moves nothing: its rows are heads. With many they would be heads and tokens at once, of
 * which nobody could tell the tokens. TorchScript writes scaled_dot_product_attention(enable_gqa=True) so.
 *
 * invariant: the same numbers in the same order. Where anything else is done to such rows than what is done to each
 *     element, a softmax of each, or a product with what has as many groups, all stays as it is.
 * example: [1, 4, 1, 8] -> [1, 2, 2, 8] x [1, 2, 8, 16]: [1, 4, 1, 8] x [1, 4, 8, 16].
 * cost: O(nodes) for each such reshape.
 */
typedef struct {
    mlo *m;
    mlo_graph *g;
    int64_t dims[3]; /* batch, groups, heads of each */
    mlo_map rows; /* names of values whose rows are heads */
    mlo_node **product; /* with keys or values */
    size_t n_product;
} mlo_ungrouping;

/* A Reshape that makes rows of heads. */
static int mlo_groups_heads(mlo_ungrouping *u, const mlo_node *n) {
    const mlo_form x = mlo_form_of(mlo_has_input(n, 0) ? mlo_value_of(u->g, n->input[0]) : NULL);
    const mlo_form y = mlo_form_of(n->n_output ? mlo_value_of(u->g, n->output[0]) : NULL);
    for (int d = 0; d < 3 && y.rank == 4; d++) u->dims[d] = y.dims[d];
    return mlo_is(n, "Reshape") && x.rank == 4 && y.rank == 4 && x.dims[2] == 1 && y.dims[2] > 1
        && x.dims[0] == y.dims[0] && x.dims[1] == y.dims[1] * y.dims[2] && x.dims[3] == y.dims[3];
}

/* May an operand meet rows that are heads, and tokens then? */
static int mlo_meets_heads(const mlo_ungrouping *u, const char *name) {
    const mlo_form f = mlo_form_of(mlo_value_of(u->g, name));
    return mlo_map_get(&u->rows, name)
        || (f.rank >= 0 && (f.rank < 2 || f.dims[f.rank - 2] == 1)
            && (f.rank < 3 || f.dims[f.rank - 3] == 1));
}

/* A node that reads such rows: what it makes has them, too, or ends them. 0: neither. */
static int mlo_ungroups(mlo_ungrouping *u, mlo_node *n) {
    const mlo_form y = mlo_form_of(n->n_output ? mlo_value_of(u->g, n->output[0]) : NULL);
    const int64_t axis = mlo_int(n, "axis", -1);
    if (mlo_is(n, "Reshape")) return mlo_map_get(&u->rows, n->input[0]) != NULL;
    if (mlo_is(n, "Shape") || n->n_output != 1 || y.rank != 4) return 0;
    if (mlo_is(n, "MatMul")) {
        const mlo_form b = mlo_form_of(n->n_input > 1 ? mlo_value_of(u->g, n->input[1]) : NULL);
        if (b.rank != 4 || b.dims[0] != u->dims[0] || b.dims[1] != u->dims[1]
            || mlo_map_get(&u->rows, n->input[1]) || !MLO_PUSH(u->m, u->product, u->n_product, n))
            return 0;
    } else if (mlo_is(n, "Softmax")) {
        if (axis != -1 && axis != 3) return 0;
    } else {
        for (size_t k = 0; k < n->n_input; k++)
            if (!mlo_lane_is_elements(n) || !mlo_has_input(n, k)
                || !mlo_meets_heads(u, n->input[k]))
                return 0;
    }
    return !mlo_map_put(u->m, &u->rows, n->output[0], n);
}

/* All that comes of such a Reshape. */
static int mlo_ungroup_follow(mlo_ungrouping *u, const mlo_node *from) {
    if (mlo_map_put(u->m, &u->rows, from->output[0], u)) return 0;
    for (size_t i = 0; i < u->g->n_node; i++) {
        mlo_node *n = u->g->node[i];
        int reads = 0;
        for (size_t k = 0; k < n->n_input; k++)
            reads |= mlo_has_input(n, k) && mlo_map_get(&u->rows, n->input[k]) != NULL;
        if (reads && !mlo_ungroups(u, n)) return 0;
    }
    for (size_t i = 0; i < u->g->n_output; i++)
        if (mlo_map_get(&u->rows, u->g->output[i]->name)) return 0;
    return u->n_product > 0;
}

/* Keys or values of each group, for each head: nodes in front of the product that reads them. */
static int mlo_ungroup_repeat(mlo_ungrouping *u, mlo_node *product, mlo_graph *to) {
    mlo *m = u->m;
    const mlo_form f = mlo_form_of(mlo_value_of(u->g, product->input[1]));
    const int64_t apart[5] = { f.dims[0], f.dims[1], 1, f.dims[2], f.dims[3] };
    const int64_t each[5] = { f.dims[0], f.dims[1], u->dims[2], f.dims[2], f.dims[3] };
    const int64_t heads[4] = { f.dims[0], f.dims[1] * u->dims[2], f.dims[2], f.dims[3] };
    mlo_expansion x;
    memset(&x, 0, sizeof x);
    x.m = m;
    x.g = u->g;
    x.n = product;
    x.opset = mlo_opset_of(m);
    x.dtype = f.dtype;
    const char *v = mlo_x_reshape(&x, product->input[1], apart, 5);
    const char *sizes = mlo_x_list(&x, each, 5);
    v = MLO_X(&x, "Expand", v, sizes);
    v = mlo_x_reshape(&x, v, heads, 4);
    if (m->error.code) return mlo_failed(m);
    product->input[1] = v;
    for (size_t i = 0; i < x.n_made; i++) MLO_TRY(mlo_graph_add(m, to, x.made[i]));
    return 0;
}

/* The types of what had such rows say heads of one token. */
static void mlo_ungroup_types(const mlo_ungrouping *u) {
    for (size_t i = 0; i < u->g->n_info; i++) {
        const mlo_type *type = mlo_map_get(&u->rows, u->g->info[i]->name) ? u->g->info[i]->type
                                                                          : NULL;
        mlo_shape *s = type && type->tensor ? type->tensor->shape : NULL;
        if (!s || s->n_dim != 4) continue;
        s->dim[1].value = u->dims[1] * u->dims[2];
        s->dim[2].value = 1;
    }
}

static int mlo_ungroup_from(mlo_ungrouping *u, mlo_node *reshape) {
    mlo_graph all = { 0 };
    for (size_t i = 0; i < u->g->n_node; i++) {
        for (size_t k = 0; k < u->n_product; k++)
            if (u->product[k] == u->g->node[i]) MLO_TRY(mlo_ungroup_repeat(u, u->product[k], &all));
        MLO_TRY(mlo_graph_add(u->m, &all, u->g->node[i]));
    }
    u->g->node = all.node;
    u->g->n_node = all.n_node;
    mlo_node_passes(reshape, reshape->input[0]);
    mlo_ungroup_types(u);
    return mlo_index(u->m, u->g) || mlo_infer(u->m);
}

static int mlo_ungroup(mlo *m, mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_ungrouping u = { m, g, { 0 }, { NULL, 0, 0 }, NULL, 0 };
        if (mlo_groups_heads(&u, g->node[i]) && mlo_ungroup_follow(&u, g->node[i]))
            MLO_TRY(mlo_ungroup_from(&u, g->node[i]));
        if (m->error.code) return mlo_failed(m);
    }
    return 0;
}
