/* held: inputs of a model that are constants of it.
 *
 * in:  a model; arrays named as inputs of it (mlo_hold).
 * out: the inputs as initializers, with these values.
 *
 * invariant: an array has its input's type and sizes; a dimension that the model leaves open is as long as the array's,
 *     wherever its symbol stands.
 * example: --hold inputs.npz with a mask and rotation tables in it: hardware has them as parameters, not as streams.
 * cost: a copy of each array.
 */

/* A dimension that an array's agrees with, or that takes its size from it. */
static int mlo_held_dim(mlo *m, mlo_dim *d, int64_t n) {
    if (d->param)
        mlo_bind(m, d->param, n);
    else if (d->has && d->value != n)
        return 0;
    d->value = n;
    d->has |= MLO_HAS(1);
    return 1;
}

static int mlo_hold_one(mlo *m, mlo_tensor *t) {
    mlo_graph *g = m->model->graph;
    const size_t at = mlo_input_called(m, "a value to hold", t->name);
    if (at == g->n_input) return mlo_failed(m);
    mlo_value_info *v = g->input[at];
    const mlo_form f = mlo_form_of(mlo_value_of(g, v->name));
    if (f.dtype != MLO_UNDEFINED && f.dtype != (mlo_dtype)t->data_type)
        return mlo_fail_at(m, MLO_E_TYPE, v->name,
            "the value to hold is %s, the input takes %s; convert it",
            mlo_dtype_name((mlo_dtype)t->data_type), mlo_dtype_name(f.dtype));
    mlo_shape *s = mlo_input_shape(m, v, t->n_dims);
    if (m->error.code) return mlo_failed(m);
    int fits = s != NULL;
    for (size_t i = 0; fits && i < t->n_dims; i++) fits = mlo_held_dim(m, &s->dim[i], t->dims[i]);
    if (!fits)
        return mlo_fail_at(m, MLO_E_SHAPE, v->name,
            "the value to hold is %s, the input takes %s; give that shape",
            mlo_dims_text(m, (int)t->n_dims, t->dims), mlo_dims_text(m, f.rank, f.dims));
    memmove(g->input + at, g->input + at + 1, (--g->n_input - at) * sizeof *g->input);
    if (m->model->ir_version < 4)
        m->model->ir_version = 4; /* the first that has initializers that are no inputs */
    return mlo_graph_init(m, g, t);
}

/* Each is used up, as the options that bind sizes are. */
static int mlo_hold_all(mlo *m) {
    for (size_t i = 0; i < m->n_held; i++) MLO_TRY(mlo_hold_one(m, m->held[i]));
    m->n_held = 0;
    return 0;
}

/* Words that a model is written with (mlo_words) have sizes for what it leaves open. */
static int mlo_words_sizes(mlo *m) {
    const mlo_graph *g = m->model->graph;
    for (size_t i = 0; i < m->n_words; i++) {
        const mlo_array *a = &m->words[i];
        const size_t at = mlo_input_of(g, a->name);
        const mlo_type *type = at < g->n_input ? g->input[at]->type : NULL;
        mlo_shape *s = type && type->tensor ? type->tensor->shape : NULL;
        for (int d = 0; s && s->n_dim == (size_t)a->rank && d < a->rank; d++)
            if (s->dim[d].param || !s->dim[d].has) mlo_held_dim(m, &s->dim[d], a->dims[d]);
    }
    return mlo_failed(m);
}

/* For stage read; the array is the caller's. */
static int mlo_held_add(mlo *m, const mlo_array *a) {
    mlo_tensor *t = mlo_tensor_from(m, mlo_or_empty(a->name), a);
    return t && MLO_PUSH(m, m->held, m->n_held, t) ? 0 : mlo_failed(m);
}
