/* run: evaluates the model as it stands on the caller's arrays.
 *
 * in:  arrays for the graph's inputs, by name, or by position when no name fits.
 * out: arrays for its outputs.
 *
 * invariant: types and shapes are checked against the graph before anything runs; whole numbers are
 *     converted to the graph's type where that changes no value. The model does not change.
 * example: mlo_run(m, &ids, 1, &outputs, &n) with ids = { "input_ids", MLO_INT64, 2, {1, 32}, data
 *     }.
 * cost: that of mlo_eval, and a copy of the outputs.
 */

/* Which of the caller's arrays feeds graph input i; NULL: none does. */
static const mlo_array *mlo_run_pick(
    const mlo_graph *g, size_t i, const mlo_array *inputs, size_t n, int by_name) {
    if (!by_name) return i < n ? &inputs[i] : NULL;
    for (size_t k = 0; k < n; k++)
        if (inputs[k].name && mlo_eq(inputs[k].name, g->input[i]->name)) return &inputs[k];
    return NULL;
}

/* One of n arrays: by name where a name fits, else by position. */
static const mlo_array *mlo_run_pick_of(
    const mlo_array *a, size_t n, const char *name, size_t position) {
    for (size_t k = 0; k < n; k++)
        if (a[k].name && mlo_eq(a[k].name, name)) return &a[k];
    return &a[position];
}

static int mlo_run_check(mlo *m, const mlo_value *v, const mlo_array *a) {
    mlo_form f = mlo_form_of(v);
    if (a->rank < 0 || a->rank > MLO_MAX_RANK || !mlo_dtype_size(a->dtype)
        || (!a->data && mlo_array_count(a)))
        return mlo_fail_at(m, MLO_E_USAGE, v->name,
            "the input array has no data, or a rank or type that mlo does not know");
    mlo_form is = mlo_form_of_array(a);
    /* mlo_run_convert looks at that */
    is.dtype = MLO_UNDEFINED;
    return mlo_forms_differ(&f, &is)
        ? mlo_fail_at(m, MLO_E_SHAPE, v->name, "the model takes %s, the input array is %s",
              mlo_dims_text(m, f.rank, f.dims), mlo_dims_text(m, a->rank, a->dims))
        : 0;
}

/* a in the model's type, where every whole number of it keeps its value (networks that carry
 * integers in floats); the caller frees it. */
static mlo_array *mlo_run_convert(mlo *m, const mlo_value *v, const mlo_array *a, mlo_dtype to) {
    int64_t n = mlo_array_count(a), same = mlo_core_type(a->dtype) == MLO_INT64;
    mlo_array *b = same ? mlo_array_new(m, to, a->rank, a->dims) : NULL;
    mlo_array *back = b ? mlo_array_new(m, a->dtype, a->rank, a->dims) : NULL;
    if (back) {
        mlo_convert(to, b->data, a->dtype, a->data, (size_t)n);
        mlo_convert(a->dtype, back->data, to, b->data, (size_t)n);
        same = !n || !memcmp(back->data, a->data, (size_t)n * mlo_dtype_size(a->dtype));
    }
    mlo_array_free(m, back);
    if (back && same) return b;
    mlo_array_free(m, b);
    if (!m->error.code)
        mlo_fail_at(m, MLO_E_TYPE, v->name, "the model takes %s, the input array is %s; convert it",
            mlo_dtype_name(to), mlo_dtype_name(a->dtype));
    return NULL;
}

/* The caller's arrays under the graph's names, checked. `bound` and `made` have room for
 * g->n_input; *count are used. */
static int mlo_run_bind(
    mlo *m, const mlo_array *inputs, size_t n, mlo_array *bound, mlo_array **made, size_t *count) {
    const mlo_graph *g = m->model->graph;
    int by_name = 0;
    *count = 0;
    for (size_t i = 0; i < g->n_input; i++) by_name |= mlo_run_pick(g, i, inputs, n, 1) != NULL;
    if (!by_name && n > g->n_input)
        return mlo_fail_at(m, MLO_E_USAGE, NULL, "%zu arrays for %zu inputs", n, g->n_input);
    for (size_t i = 0; i < g->n_input; i++) {
        const mlo_array *a = mlo_run_pick(g, i, inputs, n, by_name);
        const mlo_value *v = mlo_value_of(g, g->input[i]->name);
        if (!a && v && v->tensor) continue;
        if (!a)
            return mlo_fail_at(m, MLO_E_USAGE, g->input[i]->name,
                "the model's input %zu of %zu is missing among the %zu arrays given", i + 1,
                g->n_input, n);
        if (v) MLO_TRY(mlo_run_check(m, v, a));
        mlo_dtype wanted = v ? mlo_form_of(v).dtype : MLO_UNDEFINED;
        if (wanted && wanted != a->dtype && !(made[*count] = mlo_run_convert(m, v, a, wanted)))
            return mlo_failed(m);
        bound[*count] = made[*count] ? *made[*count] : *a;
        bound[(*count)++].name = g->input[i]->name;
    }
    return 0;
}

/* out: room for as many arrays as the graph has outputs; the caller frees each with mlo_array_free,
 * whether this fails or not. */
static int mlo_run_model(
    mlo *m, const mlo_array *inputs, size_t n, const mlo_observer *observer, mlo_array **out) {
    mlo_graph *g = m->model->graph;
    size_t count;
    for (size_t i = 0; i < g->n_output; i++) out[i] = NULL;
    mlo_array *bound = (mlo_array *)mlo_scratch(m, g->n_input + 1, sizeof *bound);
    mlo_array **made = bound ? (mlo_array **)mlo_scratch(m, g->n_input + 1, sizeof *made) : NULL;
    for (size_t i = 0; made && i < g->n_input; i++) made[i] = NULL;
    if (made && !mlo_run_bind(m, inputs, n, bound, made, &count))
        mlo_eval(m, g, bound, count, observer, out);
    for (size_t i = 0; made && i < g->n_input; i++) mlo_array_free(m, made[i]);
    mlo_scratch_free(m, made);
    mlo_scratch_free(m, bound);
    return mlo_failed(m);
}

/* Runs the model only for what the observer sees. */
static int mlo_eval_observed(
    mlo *m, const mlo_array *inputs, size_t n, const mlo_observer *observer) {
    size_t k = m->model->graph->n_output;
    mlo_array **out = (mlo_array **)mlo_scratch(m, k + 1, sizeof *out);
    if (!out) return mlo_failed(m);
    mlo_run_model(m, inputs, n, observer, out);
    for (size_t i = 0; i < k; i++) mlo_array_free(m, out[i]);
    mlo_scratch_free(m, out);
    return mlo_failed(m);
}

static int mlo_run_see(
    void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *a) {
    mlo *m = (mlo *)user;
    (void)g;
    return m->watch(m->watch_user, name, iteration, a);
}

int mlo_run(
    mlo *m, const mlo_array *inputs, size_t n, const mlo_array **outputs, size_t *n_outputs) {
    if (m->error.code) return mlo_failed(m);
    if (!m->model) return mlo_fail_at(m, MLO_E_USAGE, NULL, "load a model first");
    m->stage = "run";
    MLO_TRY(mlo_sketch_refuse(m));
    size_t k = m->model->graph->n_output;
    mlo_array *copy = MLO_NEW_N(m, mlo_array, k + 1), **out = MLO_NEW_N(m, mlo_array *, k + 1);
    mlo_observer see = { .user = m, .see = mlo_run_see };
    if (!copy || !out) return mlo_failed(m);
    mlo_run_model(m, inputs, n, m->watch ? &see : NULL, out);
    for (size_t i = 0; i < k && !m->error.code; i++) mlo_array_keep(m, out[i], &copy[i]);
    for (size_t i = 0; i < k; i++) mlo_array_free(m, out[i]);
    if (m->error.code) return mlo_failed(m);
    *outputs = copy;
    *n_outputs = k;
    return 0;
}
