/* counted: places that a model counts from its mask, for the distances of BLOOM's and Falcon's ALiBi.
 *
 * in:  in front of the loop (CumSum(mask) - 1) * mask, which slopes make a bias of scores.
 * out: the places 0, 1, .. themselves, so the bias is one that parameters say (bias.c).
 *
 * Where the mask's ones are one run, whose first place is p, a key that counts has its place less p; what all
 * keys of a row have in common a softmax does not see, and the other keys are hidden.
 *
 * invariant: only what goes into scores alone is taken so, and only where the mask hides keys too. The ones of a
 *     mask are one run (padding at its ends): that is said, as nothing can prove it.
 * example: mask 0 0 1 1 1: the model counts 0 0 0 1 2, less 2 each: the keys that count have 2 3 4 here.
 * cost: O(nodes in front of the loop).
 */
/* What a value of the outer graph is before its type was changed. */
static const char *mlo_uncast(const mlo_scan *s, const char *name) {
    const mlo_value *v = mlo_value_of(s->outer, name);
    while (mlo_is(v->producer, "Cast")) v = mlo_value_of(s->outer, v->producer->input[0]);
    return v->name;
}

/* The node that makes it, if it is such a one. */
static const mlo_node *mlo_before_loop(const mlo_scan *s, const char *name, const char *op) {
    const mlo_value *v = mlo_value_of(s->outer, mlo_uncast(s, name));
    return mlo_is(v->producer, op) ? v->producer : NULL;
}

/* Is it this one number, in front of the loop? */
static int mlo_is_said(mlo *m, const mlo_scan *s, const char *name, double number) {
    mlo_array *a = mlo_is_parameter(s, s->outer, name, 0)
        ? mlo_value_array(m, s, s->outer, name, 0, 0)
        : NULL;
    const int is = a && mlo_array_count(a) == 1 && !mlo_differs(mlo_number_at(a, 0), number);
    mlo_array_free(m, a);
    return is;
}

/* Does the node sum a mask of integers along its last axis, from its first element on? */
static int mlo_sums_mask(mlo *m, const mlo_scan *s, const mlo_node *n, const char *mask) {
    const mlo_value *v = mlo_value_of(s->outer, mask);
    const mlo_form f = mlo_form_of(v);
    for (size_t i = 0; i < n->n_attr; i++)
        if (n->attr[i]->i) return 0;
    return v->is_input && strstr(mask, "mask") && !mlo_dtype_is_float(f.dtype) && f.rank > 0
        && mlo_eq(mlo_uncast(s, n->input[0]), mask)
        && (mlo_is_said(m, s, n->input[1], -1) || mlo_is_said(m, s, n->input[1], f.rank - 1));
}

/* Is the node (CumSum(mask) - 1) * mask? */
static int mlo_counts_mask(mlo *m, const mlo_scan *s, const mlo_node *n) {
    for (int k = 0; k < 2 && mlo_is(n, "Mul"); k++) {
        const mlo_node *less = mlo_before_loop(s, n->input[k], "Sub");
        const mlo_node *sum = less ? mlo_before_loop(s, less->input[0], "CumSum") : NULL;
        if (sum && mlo_is_said(m, s, less->input[1], 1))
            if (mlo_sums_mask(m, s, sum, mlo_uncast(s, n->input[1 - k]))) return 1;
    }
    return 0;
}

/* Does a value reach nothing but the loop, element by element? (Positions that are looked up in a table do not.) */
static int mlo_goes_into_loop(const mlo_scan *s, const char *name, int depth) {
    static const char *const ways[] = { "Cast", "Unsqueeze", "Reshape", "Expand", "Transpose",
        "Mul", "Div", "Add", "Where", NULL };
    const mlo_value *v = mlo_value_of(s->outer, name);
    if (v->is_output || depth > 32) return 0;
    for (size_t i = 0; i < v->n_use; i++) {
        const mlo_node *n = v->use[i];
        for (size_t k = 0; n == s->node && k < s->n_state; k++)
            if (mlo_eq(n->input[k], name)) return 0;
        if (n == s->node) continue;
        if (!mlo_is_one_of(n, ways) || !mlo_goes_into_loop(s, n->output[0], depth + 1)) return 0;
    }
    return 1;
}

/* The node hands on the places of its last axis. */
static int mlo_make_places(mlo *m, const mlo_scan *s, mlo_node *n) {
    const mlo_form f = mlo_form_of(mlo_value_of(s->outer, n->output[0]));
    const int64_t count = mlo_form_count(&f);
    const char *places = mlo_format(m, "%s_places", n->output[0]);
    int64_t *at = MLO_NEW_N(m, int64_t, (size_t)count);
    for (int64_t i = 0; at && i < count; i++) at[i] = i % f.dims[f.rank - 1];
    mlo_array a = { places, MLO_INT64, f.rank, { 0 }, at };
    memcpy(a.dims, f.dims, sizeof a.dims);
    if (!at || !places || mlo_graph_init(m, s->outer, mlo_tensor_from(m, places, &a)))
        return mlo_failed(m);
    n->op = "Cast";
    n->n_input = 0;
    MLO_TRY(mlo_node_input(m, n, places));
    MLO_TRY(mlo_attr_int(m, n, "to", f.dtype));
    MLO_TRY(mlo_index(m, m->model->graph));
    return mlo_infer(m);
}

/* All places that are counted from a mask, and go into scores, are places. *any: there are some. */
static int mlo_count_places(mlo *m, const mlo_scan *s, int *any) {
    for (size_t i = 0; i < s->outer->n_node && !m->error.code; i++) {
        mlo_node *n = s->outer->node[i];
        if (n == s->node) break;
        const mlo_form f = mlo_form_of(
            n->n_output == 1 ? mlo_value_of(s->outer, n->output[0]) : NULL);
        if (!mlo_form_known(&f) || !mlo_counts_mask(m, s, n)
            || !mlo_goes_into_loop(s, n->output[0], 0))
            continue;
        if (!*any)
            mlo_warn(m,
                "%s counts the ones of a mask, for distances: right where they are one run "
                "(padding at the ends)",
                mlo_node_name(n));
        *any = 1;
        MLO_TRY(mlo_make_places(m, s, n));
    }
    return mlo_failed(m);
}
