/* reach: how many tokens a model has positions for, where it counts them.
 *
 * in:  an indexed model, constants folded, whose open sizes were guessed (the option "open"), or that is read for a
 *      context.
 * out: nothing; or MLO_E_SHAPE, so that who guesses tries fewer tokens.
 *
 * RoBERTa and its kin look positions up that they count from ids that are not padding: whether the table has rows for
 * all tokens no form says. What a count can be is followed as an interval, from what is true or false.
 *
 * invariant: what is refused some input of this form would read beyond its table: all of its tokens count.
 * example: Gather(66 rows, CumSum(ids != 1) * (ids != 1) + 1) of 128 tokens reaches 129.
 * cost: O(nodes in front of each table).
 */
enum { MLO_REACH_DEPTH = 24 };
static const mlo_interval mlo_reach_any = { -INT64_MAX, INT64_MAX };

static mlo_interval mlo_reach_constant(mlo *m, const mlo_tensor *t) {
    mlo_interval r = mlo_reach_any;
    mlo_array *a = mlo_dtype_is_float((mlo_dtype)t->data_type) ? NULL : mlo_tensor_load(m, t);
    for (int64_t i = 0, n = a ? mlo_array_count(a) : 0; i < n; i++) {
        int64_t v;
        mlo_convert(MLO_INT64, &v, a->dtype,
            (const char *)a->data + (size_t)i * mlo_dtype_size(a->dtype), 1);
        r = mlo_from_to(i ? mlo_min(r.lo, v) : v, i ? mlo_max(r.hi, v) : v);
    }
    mlo_array_free(m, a);
    return r;
}

/* What a sum along an axis can be, of as many as it has: the axis is a constant. */
static mlo_interval mlo_reach_summed(const mlo_form *f, mlo_interval x, mlo_interval along) {
    const int64_t axis = along.lo < 0 ? along.lo + f->rank : along.lo;
    return mlo_form_known(f) && along.lo == along.hi && axis >= 0 && axis < f->rank
        ? mlo_product_of(x, mlo_from_to(0, f->dims[axis]))
        : mlo_reach_any;
}

/* What a value of whole numbers can be. */
static mlo_interval mlo_reach_of(mlo *m, const mlo_graph *g, const char *name, int depth) {
    static const char *const moves[] = { "Cast", "Unsqueeze", "Squeeze", "Reshape", "Identity",
        "Expand", "Transpose", "Slice", "Flatten", NULL };
    const mlo_value *v = mlo_value_of(g, name);
    const mlo_form f = mlo_form_of(v);
    const mlo_node *n = v ? v->producer : NULL;
    if (f.dtype == MLO_BOOL || (v && v->is_input && strstr(name, "mask"))) return mlo_from_to(0, 1);
    if (v && v->tensor) return mlo_reach_constant(m, v->tensor);
    if (!n || depth > MLO_REACH_DEPTH || !mlo_has_input(n, 0)) return mlo_reach_any;
    const mlo_interval x = mlo_reach_of(m, g, n->input[0], depth + 1);
    if (mlo_is_one_of(n, moves)) return x;
    if (!mlo_has_input(n, 1)) return mlo_reach_any;
    const mlo_interval y = mlo_reach_of(m, g, n->input[1], depth + 1);
    return mlo_is(n, "CumSum") ? mlo_reach_summed(&f, x, y)
        : mlo_is(n, "Mul")     ? mlo_product_of(x, y)
        : mlo_is(n, "Add")     ? mlo_sum_of(x, y)
        : mlo_is(n, "Sub")     ? mlo_sum_of(x, mlo_from_to(-y.hi, -y.lo))
                               : mlo_reach_any;
}

/* Rows along the axis that a lookup indexes, or of the angles that a rotary embedding picks; 0: it is none. *index:
 * which of its inputs picks. */
static int64_t mlo_reach_rows(const mlo_graph *g, const mlo_node *n, size_t *index) {
    const int turns = mlo_is(n, "RotaryEmbedding") && mlo_has_input(n, 3);
    *index = turns ? 3 : 1;
    if (!(turns || mlo_is(n, "Gather") || mlo_is(n, "GatherElements")) || n->n_input < 2) return 0;
    const mlo_form f = mlo_form_of(mlo_value_of(g, n->input[turns ? 1 : 0]));
    const int64_t said = turns ? 0 : mlo_int(n, "axis", 0), axis = said < 0 ? said + f.rank : said;
    return mlo_form_known(&f) && axis >= 0 && axis < f.rank ? f.dims[axis] : 0;
}

/* What was guessed has to fit; of what was said, what is no question of the mask. */
static int mlo_reaches(mlo *m) {
    const mlo_graph *g = m->model->graph;
    const int64_t context = mlo_context_said(m);
    const int guessed = mlo_opt(m, "open") != NULL;
    for (size_t i = 0; (context || guessed) && i < g->n_node && !m->error.code; i++) {
        const mlo_node *n = g->node[i];
        size_t index;
        const int64_t rows = mlo_reach_rows(g, n, &index);
        const mlo_value *v = rows > 0 ? mlo_value_of(g, n->input[index]) : NULL;
        const mlo_interval at = v && (guessed || v->tensor) ? mlo_reach_of(m, g, v->name, 0)
                                                            : mlo_reach_any;
        if (at.hi == INT64_MAX || at.hi < rows) continue;
        return mlo_fail(m, MLO_E_SHAPE, n,
            "positions that are counted reach %lld, and the table has %lld: give fewer tokens with "
            "%s",
            (long long)at.hi, (long long)rows, context ? "--context N" : "--dim NAME=N");
    }
    return mlo_failed(m);
}
