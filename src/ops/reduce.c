/* reduce: operators that combine elements along some axes: sums, means, extremes, ArgMax, TopK.
 *
 * in:  a call with its output made.
 * out: the output, filled.
 *
 * invariant: floats are summed in double, integers exactly modulo 2^64; an empty sum is 0, an
 *     empty product 1.
 * example: ReduceMean of [2,3,4] over axes [-1] is [2,3,1], or [2,3] with keepdims=0.
 * cost: one pass over the input (two for means of logs).
 */

/* Output shape; `flag` says which axes go. 1 when known. */
static int mlo_reduce_axes(const mlo_shapes *s, const mlo_form *x, int *flag) {
    int all = !mlo_int(s->node, "noop_with_empty_axes", 0);
    int64_t list[MLO_MAX_LIST];
    if (!mlo_axes(s, "axes", 1, x->rank, all, flag)) return 0;
    if (!all && mlo_ints(s, "axes", 1, list) <= 0)
        for (int i = 0; i < MLO_MAX_RANK; i++) flag[i] = 0;
    return 1;
}
static mlo_form mlo_reduced(const mlo_form *x, const int *flag, int keep) {
    mlo_form y = *x;
    y.rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (!flag[i])
            y.dims[y.rank++] = x->dims[i];
        else if (keep)
            y.dims[y.rank++] = 1;
    return y;
}
static int mlo_shape_Reduce(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0);
    int flag[MLO_MAX_RANK], keep = mlo_int(s->node, "keepdims", 1) != 0;
    s->out[0].dtype = x.dtype;
    if (x.rank < 0) return 0;
    if (mlo_reduce_axes(s, &x, flag)) {
        s->out[0] = mlo_reduced(&x, flag, keep);
        return 0;
    }
    if (keep && !s->m->error.code) {
        s->out[0] = x;
        for (int i = 0; i < x.rank; i++) s->out[0].dims[i] = -1;
    }
    return mlo_failed(s->m);
}

/* Walks x once; every element goes to the accumulator of its output. Accumulators are doubles or
 * int64s, as x is. */
static void mlo_reduce_pass(
    const mlo_array *x, const int *flag, int how, void *acc, const double *most) {
    int64_t step[MLO_MAX_RANK], s = 1, at[MLO_MAX_RANK] = { 0 }, o = 0, n = mlo_array_count(x);
    for (int i = x->rank; i--;) {
        step[i] = flag[i] ? 0 : s;
        if (!flag[i]) s *= x->dims[i];
    }
    for (int64_t i = 0; i < n; i++) {
        if (x->dtype == MLO_DOUBLE)
            ((double *)acc)[o] = mlo_real_combined(
                how, ((double *)acc)[o], ((const double *)x->data)[i], most ? most[o] : 0);
        else
            ((int64_t *)acc)[o] = mlo_whole_combined(
                how, ((int64_t *)acc)[o], ((const int64_t *)x->data)[i], 0);
        for (int k = x->rank - 1; k >= 0; k--) {
            o += step[k];
            if (++at[k] < x->dims[k]) break;
            o -= step[k] * x->dims[k];
            at[k] = 0;
        }
    }
}
/* What an empty reduction gives: for extremes the type's other end. */
static void mlo_reduce_start(mlo_array *acc, int how, int64_t n, mlo_dtype t) {
    int bits = (int)mlo_dtype_bits(t);
    int has_sign = t == MLO_INT8 || t == MLO_INT16 || t == MLO_INT32 || t == MLO_INT64;
    int64_t most = t == MLO_BOOL ? 1
        : bits == 64             ? INT64_MAX
                                 : ((int64_t)1 << (has_sign ? bits - 1 : bits)) - 1;
    int64_t least = has_sign ? -most - 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        if (acc->dtype == MLO_DOUBLE)
            ((double *)acc->data)[i] = how == MLO_PRODUCT ? 1
                : how == MLO_LEAST                        ? (double)INFINITY
                : how == MLO_MOST                         ? -(double)INFINITY
                                                          : 0;
        else
            ((int64_t *)acc->data)[i] = how == MLO_PRODUCT ? 1
                : how == MLO_LEAST                         ? most
                : how == MLO_MOST                          ? least
                                                           : 0;
    }
}

/* finish: 0 nothing, 'm' mean, 's' square root, 'l' logarithm (with the maximum subtracted before
 * when how is EXPONENTIALS) */
static int mlo_reduce(mlo_call *c, int how, char finish) {
    mlo *m = c->m;
    int flag[MLO_MAX_RANK];
    int64_t terms = 1;
    mlo_array *y = c->out[0], *most = NULL;
    mlo_form f = c->forms->in[0];
    mlo_reduce_axes(c->forms, &f, flag); /* as the shape rule had them, which knew y's form */
    for (int i = 0; i < f.rank; i++)
        if (flag[i]) terms *= f.dims[i];
    mlo_dtype core = mlo_dtype_is_float(f.dtype) || finish == 's' || finish == 'l' ? MLO_DOUBLE
                                                                                   : MLO_INT64;
    const mlo_array *x = mlo_as(m, c->in[0], core);
    mlo_array *acc = x ? mlo_array_new(m, core, y->rank, y->dims) : NULL;
    int64_t n = mlo_array_count(y);
    if (acc && how == MLO_EXPONENTIALS
        && (most = mlo_array_new(m, core, y->rank, y->dims)) != NULL) {
        mlo_reduce_start(most, MLO_MOST, n, f.dtype);
        mlo_reduce_pass(x, flag, MLO_MOST, most->data, NULL);
        for (int64_t i = 0; i < n; i++)
            if (!(fabs(((double *)most->data)[i]) < 1e300)) ((double *)most->data)[i] = 0;
    }
    if (acc && !m->error.code) {
        mlo_reduce_start(acc, how, n, f.dtype);
        mlo_reduce_pass(x, flag, how, acc->data, most ? (const double *)most->data : NULL);
        for (int64_t i = 0; i < n; i++) {
            if (core == MLO_INT64) {
                if (finish == 'm')
                    ((int64_t *)acc->data)[i] = terms ? ((int64_t *)acc->data)[i] / terms : 0;
                continue;
            }
            double *v = (double *)acc->data + i;
            *v = finish == 'm'  ? *v / (double)terms
                : finish == 's' ? sqrt(*v)
                : finish == 'l' ? log(*v) + (most ? ((double *)most->data)[i] : 0)
                                : *v;
        }
        mlo_convert(y->dtype, y->data, core, acc->data, (size_t)n);
    }
    mlo_as_free(m, x, c->in[0]);
    mlo_array_free(m, acc);
    mlo_array_free(m, most);
    return mlo_failed(m);
}
#define MLO_REDUCE(op, how, finish) \
    static int mlo_run_##op(mlo_call *c) { return mlo_reduce(c, how, finish); }
MLO_REDUCE(ReduceSum, MLO_SUM, 0)
MLO_REDUCE(ReduceMean, MLO_SUM, 'm')
MLO_REDUCE(ReduceMax, MLO_MOST, 0)
MLO_REDUCE(ReduceMin, MLO_LEAST, 0)
MLO_REDUCE(ReduceProd, MLO_PRODUCT, 0)
MLO_REDUCE(ReduceSumSquare, MLO_SQUARES, 0)
MLO_REDUCE(ReduceL1, MLO_ABSOLUTES, 0)
MLO_REDUCE(ReduceL2, MLO_SQUARES, 's')
MLO_REDUCE(ReduceLogSum, MLO_SUM, 'l')
MLO_REDUCE(ReduceLogSumExp, MLO_EXPONENTIALS, 'l')

/* ---- ArgMax, ArgMin ------------------------------------------------------- */

static int mlo_shape_ArgMax(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0);
    int flag[MLO_MAX_RANK] = { 0 }, axis;
    s->out[0].dtype = MLO_INT64;
    if (x.rank < 0) return 0;
    MLO_TRY(mlo_axis(s, mlo_int(s->node, "axis", 0), x.rank, &axis));
    flag[axis] = 1;
    s->out[0] = mlo_reduced(&x, flag, mlo_int(s->node, "keepdims", 1) != 0);
    s->out[0].dtype = MLO_INT64;
    return 0;
}
static int mlo_arg_extreme(mlo_call *c, double sign) {
    if (!mlo_array_count(c->in[0]) && mlo_array_count(c->out[0]))
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "has no element to choose in %s",
            mlo_dims_text(c->m, c->in[0]->rank, c->in[0]->dims));
    int axis;
    int64_t outer = 1, inner = 1, last = mlo_int(c->node, "select_last_index", 0);
    MLO_TRY(mlo_axis(c->forms, mlo_int(c->node, "axis", 0), c->in[0]->rank, &axis));
    const mlo_array *x = mlo_as(c->m, c->in[0], MLO_DOUBLE);
    if (!x) return mlo_failed(c->m);
    for (int i = 0; i < x->rank; i++)
        if (i < axis)
            outer *= x->dims[i];
        else if (i > axis)
            inner *= x->dims[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < inner; k++) {
            const double *v = (const double *)x->data + o * x->dims[axis] * inner + k;
            int64_t best = 0;
            for (int64_t i = 1; i < x->dims[axis]; i++) {
                double d = sign * (v[i * inner] - v[best * inner]);
                if (d > 0 || (last && !(d < 0))) best = i;
            }
            ((int64_t *)c->out[0]->data)[o * inner + k] = best;
        }
    mlo_as_free(c->m, x, c->in[0]);
    return 0;
}
static int mlo_run_ArgMax(mlo_call *c) { return mlo_arg_extreme(c, 1); }
static int mlo_run_ArgMin(mlo_call *c) { return mlo_arg_extreme(c, -1); }
