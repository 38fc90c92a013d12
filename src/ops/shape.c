/* shape: operators that move elements, or that compute shapes; none computes with values.
 *
 * in:  types and shapes, and lists of integers (attributes of old opsets, inputs of new ones).
 * out: types and shapes; moved elements.
 *
 * invariant: a rule that needs a value which is not known yet leaves what depends on it unknown
 *     (-1); it never guesses.
 * example: Reshape [?,32,64] to [0,32,4,16] is [?,32,4,16].
 * cost: one pass over the output, element size 1, 2, 4 or 8; equal layouts are one memcpy.
 */

/* Elements in a form, -1 when a dimension is unknown. */
static int64_t mlo_count_of(const mlo_form *f) {
    for (int i = 0; i < f->rank; i++)
        if (f->dims[i] < 0) return -1;
    return f->rank < 0 ? -1 : mlo_form_count(f);
}

/* Identity, Reshape, Squeeze, ...: the same elements in another shape. Dropout's mask is all true. */
static int mlo_run_copy(mlo_call *c) {
    const mlo_array *x = c->in[0];
    if (mlo_array_count(c->out[0]) != mlo_array_count(x))
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "%lld elements do not make %s",
            (long long)mlo_array_count(x), mlo_dims_text(c->m, c->out[0]->rank, c->out[0]->dims));
    memcpy(c->out[0]->data, x->data, (size_t)mlo_array_count(x) * mlo_dtype_size(x->dtype));
    if (c->n_out > 1 && c->out[1]) memset(c->out[1]->data, 1, (size_t)mlo_array_count(c->out[1]));
    return 0;
}
static int mlo_run_Dropout(mlo_call *c) {
    if (c->n_in > 2 && c->in[2] && *(const uint8_t *)c->in[2]->data)
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, c->node,
            "drops at random (training_mode is true); export the model for inference");
    return mlo_run_copy(c);
}
static int mlo_shape_Dropout(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    if (s->n_out > 1) {
        s->out[1] = s->out[0];
        s->out[1].dtype = MLO_BOOL;
    }
    return 0;
}

/* ---- Reshape and kin ------------------------------------------------------ */

/* The one -1 of a Reshape, from the element counts; also checks what is fully known. */
static int mlo_reshape_rest(
    const mlo_shapes *s, const mlo_form *x, mlo_form *y, int rest, int unknown) {
    int64_t have = mlo_count_of(x), known = 1;
    for (int i = 0; i < y->rank; i++)
        if (y->dims[i] >= 0) known = mlo_times(known, y->dims[i]);
    if (have < 0 || known < 0 || unknown > 1) return 0;
    if (rest < 0 && unknown) return 0;
    if (rest >= 0) {
        if (!known)
            return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                "dimension %d of %s is -1, and any size would do, as another is 0", rest,
                mlo_dims_text(s->m, y->rank, y->dims));
        if (have % known)
            return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                "%s has %lld elements, which %s does not divide",
                mlo_dims_text(s->m, x->rank, x->dims), (long long)have,
                mlo_dims_text(s->m, y->rank, y->dims));
        y->dims[rest] = have / known;
    } else if (have != known)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "%s has %lld elements, %s has %lld",
            mlo_dims_text(s->m, x->rank, x->dims), (long long)have,
            mlo_dims_text(s->m, y->rank, y->dims), (long long)known);
    return 0;
}
static int mlo_shape_Reshape(mlo_shapes *s) {
    int64_t list[MLO_MAX_LIST];
    mlo_form x = mlo_form_in(s, 0), y = x, shape = mlo_form_in(s, 1);
    int n = mlo_ints(s, "shape", 1, list);
    int rest = -1;
    int unknown = 0;
    int zero = mlo_int(s->node, "allowzero", 0) != 0;
    y.rank = -1;
    s->out[0] = y;
    /* the values are not known, but perhaps how many there are */
    if (n < 0) {
        if (n != MLO_LATER || shape.rank != 1 || shape.dims[0] < 0 || shape.dims[0] > MLO_MAX_RANK)
            return mlo_failed(s->m);
        n = (int)shape.dims[0];
        for (int i = 0; i < n; i++) list[i] = MLO_UNKNOWN;
    }
    if (n > MLO_MAX_RANK)
        return mlo_fail(
            s->m, MLO_E_UNSUPPORTED, s->node, "rank %d; at most %d is supported", n, MLO_MAX_RANK);
    y.rank = n;
    for (int i = 0; i < n; i++) {
        y.dims[i] = list[i] == MLO_UNKNOWN ? -1 : list[i];
        if (list[i] == 0 && !zero) {
            if (x.rank >= 0 && i >= x.rank)
                return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                    "dimension %d is copied from an input of rank %d", i, x.rank);
            y.dims[i] = x.rank < 0 ? -1 : x.dims[i];
        } else if (list[i] == -1) {
            if (rest >= 0) return mlo_fail(s->m, MLO_E_SHAPE, s->node, "two dimensions are -1");
            rest = i;
        } else if (list[i] < -1 && list[i] != MLO_UNKNOWN)
            return mlo_fail(
                s->m, MLO_E_SHAPE, s->node, "dimension %d is %lld", i, (long long)list[i]);
        unknown += y.dims[i] < 0;
    }
    MLO_TRY(mlo_reshape_rest(s, &x, &y, rest, unknown));
    s->out[0] = y;
    return 0;
}

static int mlo_shape_Flatten(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0), y = x;
    int64_t axis = mlo_int(s->node, "axis", 1);
    s->out[0].dtype = x.dtype;
    if (x.rank < 0) return 0;
    if (axis < -x.rank || axis > x.rank)
        return mlo_fail(
            s->m, MLO_E_SHAPE, s->node, "axis %lld is outside of rank %d", (long long)axis, x.rank);
    if (axis < 0) axis += x.rank;
    y.rank = 2;
    y.dims[0] = y.dims[1] = 1;
    for (int i = 0; i < x.rank; i++) {
        int64_t *d = &y.dims[i >= axis];
        *d = mlo_times(*d, x.dims[i]);
    }
    s->out[0] = y;
    return 0;
}

static int mlo_shape_Squeeze(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0), y = x;
    int flag[MLO_MAX_RANK], all = !mlo_attr_of(s->node, "axes") && !mlo_present(s, 1);
    s->out[0].dtype = x.dtype;
    if (x.rank < 0 || !mlo_axes(s, "axes", 1, x.rank, 1, flag)) return mlo_failed(s->m);
    for (int i = y.rank = 0; i < x.rank; i++) {
        if (all && x.dims[i] < 0) return 0;
        if (flag[i] && !(all && x.dims[i] != 1)) {
            if (x.dims[i] > 1 || !x.dims[i])
                return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                    "dimension %d of %s is squeezed but is not 1", i,
                    mlo_dims_text(s->m, x.rank, x.dims));
        } else
            y.dims[y.rank++] = x.dims[i];
    }
    s->out[0] = y;
    return 0;
}
static int mlo_shape_Unsqueeze(mlo_shapes *s) {
    int64_t list[MLO_MAX_LIST];
    mlo_form x = mlo_form_in(s, 0), y = x;
    int n = mlo_ints(s, "axes", 1, list), flag[MLO_MAX_RANK] = { 0 }, at;
    s->out[0].dtype = x.dtype;
    s->out[0].rank = -1;
    if (x.rank < 0 || !mlo_ints_known(list, n)) return mlo_failed(s->m);
    if ((y.rank = x.rank + n) > MLO_MAX_RANK)
        return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node, "rank %d; at most %d is supported",
            y.rank, MLO_MAX_RANK);
    for (int i = 0; i < n; i++) {
        MLO_TRY(mlo_axis(s, list[i], y.rank, &at));
        if (flag[at]++) return mlo_fail(s->m, MLO_E_SHAPE, s->node, "axis %d is given twice", at);
    }
    for (int i = 0, k = 0; i < y.rank; i++) y.dims[i] = flag[i] ? 1 : x.dims[k++];
    s->out[0] = y;
    return 0;
}

/* ---- Transpose, Slice, Split, Expand, Tile -------------------------------- */

/* Where output axis i comes from. */
static int mlo_permutation(const mlo_shapes *s, int rank, int *perm) {
    const mlo_attr *a = mlo_attr_of(s->node, "perm");
    int seen[MLO_MAX_RANK] = { 0 };
    if (a && a->n_ints != (size_t)rank)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "perm has %zu entries, the input has rank %d",
            a->n_ints, rank);
    for (int i = 0; i < rank; i++) {
        int64_t from = a ? a->ints[i] : rank - 1 - i;
        if (from < 0 || from >= rank || seen[from]++)
            return mlo_fail(
                s->m, MLO_E_SHAPE, s->node, "perm is not a permutation of 0..%d", rank - 1);
        perm[i] = (int)from;
    }
    return 0;
}
static int mlo_shape_Transpose(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0), y = x;
    int perm[MLO_MAX_RANK];
    s->out[0].dtype = x.dtype;
    if (x.rank < 0) return 0;
    MLO_TRY(mlo_permutation(s, x.rank, perm));
    for (int i = 0; i < x.rank; i++) y.dims[i] = x.dims[perm[i]];
    s->out[0] = y;
    return 0;
}
static int mlo_run_Transpose(mlo_call *c) {
    int perm[MLO_MAX_RANK];
    int64_t from[MLO_MAX_RANK], step[MLO_MAX_RANK];
    const mlo_array *x = c->in[0];
    MLO_TRY(mlo_permutation(c->forms, x->rank, perm));
    mlo_steps(x->rank, x->dims, from);
    for (int i = 0; i < x->rank; i++) step[i] = from[perm[i]];
    mlo_copy_strided(
        c->out[0]->data, x->data, mlo_dtype_size(x->dtype), x->rank, c->out[0]->dims, step, 0);
    return 0;
}

/* What a Slice does to each axis. */
typedef struct {
    int64_t start[MLO_MAX_RANK]; /* where it starts */
    int64_t step[MLO_MAX_RANK];
    int64_t n[MLO_MAX_RANK]; /* how many, -1: unknown */
} mlo_slice;

static void mlo_slice_axis(
    mlo_slice *c, int i, int64_t dim, int64_t start, int64_t end, int64_t step) {
    c->n[i] = -1;
    c->step[i] = step;
    c->start[i] = 0;
    if (dim < 0 || start == MLO_UNKNOWN || end == MLO_UNKNOWN) return;
    if (start < 0) start = start < -dim ? (step < 0 ? -1 : 0) : start + dim;
    if (end < 0) end = end < -dim ? -1 : end + dim;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? dim - 1 : dim;
    start = start < 0 ? 0 : start > high ? high : start;
    end = end < low ? low : end > dim ? dim : end;
    int64_t span = step > 0 ? end - start : start - end;
    int64_t stride = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
    c->start[i] = start;
    c->n[i] = span <= 0 ? 0 : (span - 1) / stride + 1;
}
/* 1 when starts, ends, axes and steps are there (elements may be unknown), 0 when not yet. */
static int mlo_slice_of(const mlo_shapes *s, const mlo_form *x, mlo_slice *c) {
    int64_t starts[MLO_MAX_LIST], ends[MLO_MAX_LIST], axes[MLO_MAX_LIST], steps[MLO_MAX_LIST];
    int flag[MLO_MAX_RANK] = { 0 };
    int n = mlo_ints(s, "starts", 1, starts);
    int e = mlo_ints(s, "ends", 2, ends);
    int a = mlo_ints(s, "axes", 3, axes);
    int k = mlo_ints(s, mlo_attr_of(s->node, "starts") ? "steps" : NULL, 4, steps);
    if (n < 0 || e < 0 || a == MLO_LATER || k == MLO_LATER || (a >= 0 && !mlo_ints_known(axes, a))
        || (k >= 0 && !mlo_ints_known(steps, k)))
        return 0;
    if (e != n || (a >= 0 && a != n) || (k >= 0 && k != n)) {
        mlo_fail(s->m, MLO_E_SHAPE, s->node,
            "starts, ends, axes and steps have %d, %d, %d, %d elements", n, e, a, k);
        return 0;
    }
    for (int i = 0; i < x->rank; i++) {
        c->start[i] = 0;
        c->step[i] = 1;
        c->n[i] = x->dims[i];
    }
    for (int i = 0, at; i < n; i++) {
        if (mlo_axis(s, a >= 0 ? axes[i] : i, x->rank, &at)) return 0;
        if (flag[at]++) {
            mlo_fail(s->m, MLO_E_SHAPE, s->node, "axis %d is given twice", at);
            return 0;
        }
        if (k >= 0 && !steps[i]) {
            mlo_fail(s->m, MLO_E_SHAPE, s->node, "step 0 of axis %d", at);
            return 0;
        }
        mlo_slice_axis(c, at, x->dims[at], starts[i], ends[i], k >= 0 ? steps[i] : 1);
    }
    return 1;
}
static int mlo_shape_Slice(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0);
    mlo_slice c;
    s->out[0] = x;
    if (x.rank < 0) return 0;
    int known = mlo_slice_of(s, &x, &c);
    for (int i = 0; i < x.rank; i++) s->out[0].dims[i] = known ? c.n[i] : -1;
    return mlo_failed(s->m);
}
static int mlo_run_Slice(mlo_call *c) {
    const mlo_array *x = c->in[0];
    mlo_slice slice;
    int64_t step[MLO_MAX_RANK], start = 0;
    mlo_form f = c->forms->in[0];
    if (!mlo_slice_of(c->forms, &f, &slice))
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "starts or ends are missing");
    mlo_steps(x->rank, x->dims, step);
    for (int i = 0; i < x->rank; i++) {
        start += slice.start[i] * step[i];
        step[i] = c->out[0]->dims[i] > 1 ? step[i] * slice.step[i] : 0;
    }
    mlo_copy_strided(
        c->out[0]->data, x->data, mlo_dtype_size(x->dtype), x->rank, c->out[0]->dims, step, start);
    return 0;
}

/* Sizes of the parts; 1 when known. */
static int mlo_split_of(const mlo_shapes *s, int64_t dim, int64_t *part) {
    int64_t list[MLO_MAX_LIST], sum = 0, n = (int64_t)s->n_out;
    const int64_t said = mlo_int(s->node, "num_outputs", n);
    int k = mlo_ints(s, "split", 1, list);
    if (said != n) {
        mlo_fail(s->m, MLO_E_SHAPE, s->node, "num_outputs is %lld, but there are %lld outputs",
            (long long)said, (long long)n);
        return 0;
    }
    if (n > MLO_MAX_LIST || k == MLO_LATER || (k >= 0 && !mlo_ints_known(list, k))) return 0;
    if (k == MLO_ABSENT) {
        if (dim < 0) return 0;
        for (int64_t i = 0, each = (dim + n - 1) / n; i < n; i++)
            part[i] = dim - i * each < each ? (dim - i * each > 0 ? dim - i * each : 0) : each;
        return 1;
    }
    if (k < n) {
        mlo_fail(
            s->m, MLO_E_SHAPE, s->node, "split has %d entries for %lld outputs", k, (long long)n);
        return 0;
    }
    for (int64_t i = 0; i < k; i++) {
        if (list[i] < 0 || (dim >= 0 && list[i] > dim)) {
            mlo_fail(s->m, MLO_E_SHAPE, s->node, "a part of %lld of a dimension of %lld",
                (long long)list[i], (long long)dim);
            return 0;
        }
        if (i < n) part[i] = list[i];
        sum += list[i];
    }
    if (dim >= 0 && sum != dim) {
        mlo_fail(s->m, MLO_E_SHAPE, s->node, "parts add up to %lld, the dimension is %lld",
            (long long)sum, (long long)dim);
        return 0;
    }
    return 1;
}
static int mlo_shape_Split(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0);
    int64_t part[MLO_MAX_LIST];
    int axis;
    for (size_t i = 0; i < s->n_out; i++) s->out[i] = x;
    if (x.rank < 0) return 0;
    MLO_TRY(mlo_axis(s, mlo_int(s->node, "axis", 0), x.rank, &axis));
    int known = mlo_split_of(s, x.dims[axis], part);
    for (size_t i = 0; i < s->n_out; i++) s->out[i].dims[axis] = known ? part[i] : -1;
    return mlo_failed(s->m);
}
static int mlo_run_Split(mlo_call *c) {
    const mlo_array *x = c->in[0];
    int64_t part[MLO_MAX_LIST], step[MLO_MAX_RANK], start = 0;
    int axis;
    MLO_TRY(mlo_axis(c->forms, mlo_int(c->node, "axis", 0), x->rank, &axis));
    if (!mlo_split_of(c->forms, x->dims[axis], part))
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "cannot be split");
    mlo_steps(x->rank, x->dims, step);
    for (size_t i = 0; i < c->n_out; start += part[i++] * step[axis])
        if (c->out[i])
            mlo_copy_strided(c->out[i]->data, x->data, mlo_dtype_size(x->dtype), x->rank,
                c->out[i]->dims, step, start);
    return 0;
}

static int mlo_shape_Expand(mlo_shapes *s) {
    int64_t list[MLO_MAX_LIST];
    mlo_form x = mlo_form_in(s, 0), y = x;
    int n = mlo_ints(s, NULL, 1, list);
    s->out[0].dtype = x.dtype;
    if (n < 0 || x.rank < 0) return mlo_failed(s->m);
    if (n > MLO_MAX_RANK)
        return mlo_fail(
            s->m, MLO_E_UNSUPPORTED, s->node, "rank %d; at most %d is supported", n, MLO_MAX_RANK);
    y.rank = n;
    for (int i = 0; i < n; i++) {
        if (list[i] < 0 && list[i] != MLO_UNKNOWN)
            return mlo_fail(
                s->m, MLO_E_SHAPE, s->node, "dimension %d is %lld", i, (long long)list[i]);
        y.dims[i] = list[i] == MLO_UNKNOWN ? -1 : list[i];
    }
    y.dtype = x.dtype;
    MLO_TRY(mlo_broadcast(s, &x, &y));
    s->out[0] = x;
    return 0;
}
static int mlo_run_Expand(mlo_call *c) {
    mlo_walk w = mlo_walk_over(c->out[0]->rank, c->out[0]->dims);
    int64_t step[MLO_MAX_RANK];
    mlo_walk_add(&w, c->in[0]->rank, c->in[0]->dims);
    memcpy(step, w.step[0], sizeof step);
    mlo_copy_strided(c->out[0]->data, c->in[0]->data, mlo_dtype_size(c->in[0]->dtype),
        c->out[0]->rank, c->out[0]->dims, step, 0);
    return 0;
}

static int mlo_shape_Tile(mlo_shapes *s) {
    int64_t list[MLO_MAX_LIST];
    mlo_form x = mlo_form_in(s, 0);
    int n = mlo_ints(s, NULL, 1, list);
    s->out[0] = x;
    if (x.rank < 0) return 0;
    if (n >= 0 && n != x.rank)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "%d repeats for rank %d", n, x.rank);
    for (int i = 0; i < x.rank; i++) {
        if (n >= 0 && list[i] < 0 && list[i] != MLO_UNKNOWN)
            return mlo_fail(
                s->m, MLO_E_SHAPE, s->node, "repeats axis %d %lld times", i, (long long)list[i]);
        s->out[0].dims[i] = n < 0 || list[i] == MLO_UNKNOWN || x.dims[i] < 0
            ? -1
            : mlo_times(x.dims[i], list[i]);
    }
    return mlo_failed(s->m);
}
/* Axis by axis: the block that is there already is repeated behind itself. */
static int mlo_run_Tile(mlo_call *c) {
    const mlo_array *x = c->in[0];
    mlo_array *y = c->out[0];
    size_t size = mlo_dtype_size(x->dtype), inner = size;
    int64_t step[MLO_MAX_RANK], at[MLO_MAX_RANK] = { 0 }, i;
    if (!mlo_array_count(y)) return 0;
    mlo_steps(x->rank, x->dims, step);
    if (!x->rank) {
        memcpy(y->data, x->data, size);
        return 0;
    }
    inner *= (size_t)x->dims[x->rank - 1];
    for (char *o = (char *)y->data;;) {
        int64_t from = 0;
        for (i = 0; i < x->rank - 1; i++) from += at[i] % x->dims[i] * step[i];
        for (int64_t k = 0; k < y->dims[x->rank - 1]; k += x->dims[x->rank - 1], o += inner)
            memcpy(o, (const char *)x->data + (size_t)from * size, inner);
        for (i = x->rank - 2; i >= 0; i--) {
            if (++at[i] < y->dims[i]) break;
            at[i] = 0;
        }
        if (i < 0) return 0;
    }
}

static int mlo_shape_Concat(mlo_shapes *s) {
    mlo_form y = mlo_form_in(s, 0);
    int axis = 0;
    int64_t sum = 0;
    if (!mlo_attr_of(s->node, "axis"))
        return mlo_fail(s->m, MLO_E_GRAPH, s->node, "has no attribute axis");
    for (size_t i = 0; i < s->n_in; i++) {
        const mlo_form *x = &s->in[i];
        MLO_TRY(mlo_same_type(s, 0, i));
        if (x->rank < 0) y.rank = -1;
        if (y.rank < 0) continue;
        if (x->rank != y.rank)
            return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                "input %zu has rank %d, input 0 has rank %d", i, x->rank, y.rank);
        MLO_TRY(mlo_axis(s, mlo_int(s->node, "axis", 0), y.rank, &axis));
        for (int k = 0; k < y.rank; k++)
            if (k != axis) {
                if (y.dims[k] < 0)
                    y.dims[k] = x->dims[k];
                else if (x->dims[k] >= 0 && x->dims[k] != y.dims[k])
                    return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                        "dimension %d of input %zu is %lld, before it was %lld", k, i,
                        (long long)x->dims[k], (long long)y.dims[k]);
            }
        sum = sum < 0 || x->dims[axis] < 0 ? -1 : sum + x->dims[axis];
    }
    if (y.rank >= 0 && !s->n_in) y.rank = -1;
    if (y.rank >= 0) y.dims[axis] = sum;
    s->out[0] = y;
    return 0;
}
static int mlo_run_Concat(mlo_call *c) {
    int axis;
    mlo_array *y = c->out[0];
    MLO_TRY(mlo_need_inputs(c, c->n_in));
    MLO_TRY(mlo_axis(c->forms, mlo_int(c->node, "axis", 0), y->rank, &axis));
    size_t size = mlo_dtype_size(y->dtype), outer = 1, inner = size, at = 0;
    for (int i = 0; i < axis; i++) outer *= (size_t)y->dims[i];
    for (int i = axis + 1; i < y->rank; i++) inner *= (size_t)y->dims[i];
    size_t row = inner * (size_t)y->dims[axis];
    for (size_t k = 0; k < c->n_in; k++) {
        size_t part = inner * (size_t)c->in[k]->dims[axis];
        if (part)
            mlo_copy_pieces((char *)y->data + at, row, (const char *)c->in[k]->data, part, outer);
        at += part;
    }
    return 0;
}

/* ---- shapes as values ----------------------------------------------------- */

static mlo_form mlo_form_list(mlo_dtype t, int64_t n) {
    mlo_form f = { t, 1, { 0 } };
    f.dims[0] = n;
    return f;
}
static mlo_form mlo_form_scalar(mlo_dtype t) {
    mlo_form f = { t, 0, { 0 } };
    return f;
}

static void mlo_shape_range(const mlo_node *n, int rank, int *start, int *end) {
    int64_t a = mlo_int(n, "start", 0), b = mlo_int(n, "end", rank);
    if (a < 0) a += rank;
    if (b < 0) b += rank;
    a = a < 0 ? 0 : a > rank ? rank : a;
    b = b < a ? a : b > rank ? rank : b;
    *start = (int)a;
    *end = (int)b;
}
static int mlo_shape_Shape(mlo_shapes *s) {
    int a, b;
    s->out[0] = mlo_form_list(MLO_INT64, -1);
    if (mlo_form_in(s, 0).rank < 0) return 0;
    mlo_shape_range(s->node, s->in[0].rank, &a, &b);
    s->out[0].dims[0] = b - a;
    return 0;
}
static int mlo_run_Shape(mlo_call *c) {
    int a, b;
    mlo_shape_range(c->node, c->in[0]->rank, &a, &b);
    for (int i = a; i < b; i++) ((int64_t *)c->out[0]->data)[i - a] = c->in[0]->dims[i];
    return 0;
}
static int mlo_shape_Size(mlo_shapes *s) {
    s->out[0] = mlo_form_scalar(MLO_INT64);
    return 0;
}
static int mlo_run_Size(mlo_call *c) {
    *(int64_t *)c->out[0]->data = mlo_array_count(c->in[0]);
    return 0;
}

static int mlo_shape_ConstantOfShape(mlo_shapes *s) {
    int64_t list[MLO_MAX_LIST];
    int n = mlo_ints(s, NULL, 0, list);
    mlo_form shape = mlo_form_in(s, 0);
    const mlo_attr *a = mlo_attr_of(s->node, "value");
    s->out[0].dtype = a && a->t ? (mlo_dtype)a->t->data_type : MLO_FLOAT;
    if (n < 0 && (shape.rank != 1 || shape.dims[0] < 0)) return mlo_failed(s->m);
    int64_t rank = n < 0 ? shape.dims[0] : n;
    if (rank > MLO_MAX_RANK)
        return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node, "rank %lld; at most %d is supported",
            (long long)rank, MLO_MAX_RANK);
    s->out[0].rank = (int)rank;
    for (int i = 0; i < (int)rank; i++) {
        if (n >= 0 && list[i] < 0 && list[i] != MLO_UNKNOWN)
            return mlo_fail(
                s->m, MLO_E_SHAPE, s->node, "dimension %d is %lld", i, (long long)list[i]);
        s->out[0].dims[i] = n < 0 || list[i] == MLO_UNKNOWN ? -1 : list[i];
    }
    return 0;
}
static int mlo_run_ConstantOfShape(mlo_call *c) {
    const mlo_attr *a = mlo_attr_of(c->node, "value");
    mlo_array *y = c->out[0], *one = NULL;
    int64_t step[MLO_MAX_RANK] = { 0 };
    if (!a || !a->t) {
        memset(y->data, 0, (size_t)mlo_array_count(y) * mlo_dtype_size(y->dtype));
        return 0;
    }
    if (!(one = mlo_tensor_load(c->m, a->t))) return mlo_failed(c->m);
    if (mlo_array_count(one) < 1)
        mlo_fail(c->m, MLO_E_SHAPE, c->node, "value has no element");
    else
        mlo_copy_strided(y->data, one->data, mlo_dtype_size(y->dtype), y->rank, y->dims, step, 0);
    mlo_array_free(c->m, one);
    return mlo_failed(c->m);
}

/* Constant has one of several attributes. */
static int mlo_shape_Constant(mlo_shapes *s) {
    const mlo_attr *a = s->node->n_attr == 1 ? s->node->attr[0] : NULL;
    mlo_value v;
    memset(&v, 0, sizeof v);
    if (!a)
        return mlo_fail(s->m, MLO_E_GRAPH, s->node,
            "a Constant must have one attribute; it has %zu", s->node->n_attr);
    if (mlo_eq(a->name, "value") && a->t) {
        v.tensor = a->t;
        s->out[0] = mlo_form_of(&v);
    } else if (mlo_eq(a->name, "value_int"))
        s->out[0] = mlo_form_scalar(MLO_INT64);
    else if (mlo_eq(a->name, "value_float"))
        s->out[0] = mlo_form_scalar(MLO_FLOAT);
    else if (mlo_eq(a->name, "value_string"))
        s->out[0] = mlo_form_scalar(MLO_STRING);
    else if (mlo_eq(a->name, "value_ints"))
        s->out[0] = mlo_form_list(MLO_INT64, (int64_t)a->n_ints);
    else if (mlo_eq(a->name, "value_floats"))
        s->out[0] = mlo_form_list(MLO_FLOAT, (int64_t)a->n_floats);
    else if (mlo_eq(a->name, "value_strings"))
        s->out[0] = mlo_form_list(MLO_STRING, (int64_t)a->n_strings);
    return 0;
}
static int mlo_run_Constant(mlo_call *c) {
    const mlo_attr *a = c->node->attr[0];
    mlo_array *y = c->out[0];
    if (a->t) {
        mlo_array *v = mlo_tensor_load(c->m, a->t);
        mlo_array_free(c->m, y);
        c->out[0] = v;
        return mlo_failed(c->m);
    }
    size_t n = (size_t)mlo_array_count(y);
    if (!n) return 0;
    /* integers or floats: mlo_call_prepare refuses texts */
    if (y->dtype == MLO_INT64)
        memcpy(y->data, y->rank ? a->ints : &a->i, n * sizeof(int64_t));
    else
        memcpy(y->data, y->rank ? a->floats : &a->f, n * sizeof(float));
    return 0;
}

static double mlo_number_in(const mlo_array *a) {
    double d = 0;
    mlo_convert(MLO_DOUBLE, &d, a->dtype, a->data, 1);
    return d;
}

static int mlo_shape_Range(mlo_shapes *s) {
    const mlo_array *v[3];
    s->out[0] = mlo_form_list(mlo_form_in(s, 0).dtype, -1);
    for (size_t i = 0; i < 3; i++) {
        if (!(v[i] = mlo_shape_value(s, i)) || mlo_array_count(v[i]) != 1
            || !mlo_dtype_size(v[i]->dtype))
            return 0;
        if (v[i]->dtype == MLO_INT64 && *(const int64_t *)v[i]->data == MLO_UNKNOWN) return 0;
    }
    double start = mlo_number_in(v[0]);
    double limit = mlo_number_in(v[1]);
    double delta = mlo_number_in(v[2]);
    double n = ceil((limit - start) / delta);
    if (!mlo_differs(delta, 0) || !(n < 1e15))
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "a range by steps of 0, or without end");
    s->out[0].dims[0] = n > 0 ? (int64_t)n : 0;
    return 0;
}
static int mlo_run_Range(mlo_call *c) {
    mlo_array *y = c->out[0];
    int64_t n = mlo_array_count(y), start, delta;
    if (mlo_dtype_is_float(y->dtype)) {
        double a = mlo_number_in(c->in[0]), d = mlo_number_in(c->in[2]), v;
        for (int64_t i = 0; i < n; i++) {
            v = a + (double)i * d;
            mlo_convert(y->dtype, (char *)y->data + (size_t)i * mlo_dtype_size(y->dtype),
                MLO_DOUBLE, &v, 1);
        }
        return 0;
    }
    mlo_convert(MLO_INT64, &start, c->in[0]->dtype, c->in[0]->data, 1);
    mlo_convert(MLO_INT64, &delta, c->in[2]->dtype, c->in[2]->data, 1);
    for (int64_t i = 0, v; i < n; i++) {
        v = MLO_WRAPPED(start, +, MLO_WRAPPED(i, *, delta));
        mlo_convert(
            y->dtype, (char *)y->data + (size_t)i * mlo_dtype_size(y->dtype), MLO_INT64, &v, 1);
    }
    return 0;
}
/* ---- Gather and kin ------------------------------------------------------- */

static int mlo_is_indices(mlo_call *c, const mlo_array *index) {
    return mlo_core_type(index->dtype) == MLO_INT64
        ? 0
        : mlo_fail(c->m, MLO_E_TYPE, c->node, "indices are %s; they must be integers",
              mlo_dtype_name(index->dtype));
}

/* The indices as int64, each brought from [-dim, dim) to [0, dim); the caller frees. */
static mlo_array *mlo_indices(mlo_call *c, const mlo_array *index, int64_t dim) {
    if (mlo_is_indices(c, index)) return NULL;
    mlo_array *a = mlo_array_new(c->m, MLO_INT64, index->rank, index->dims);
    if (!a) return NULL;
    int64_t n = mlo_array_count(index), *v = (int64_t *)a->data;
    mlo_convert(MLO_INT64, v, index->dtype, index->data, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        if (v[i] < 0) v[i] += dim;
        if (v[i] >= 0 && v[i] < dim) continue;
        mlo_fail(c->m, MLO_E_DATA, c->node, "index %lld is outside of a dimension of %lld%s",
            (long long)v[i], (long long)dim,
            mlo_opt(c->m, "context") ? "; a smaller --context, if these are positions" : "");
        mlo_array_free(c->m, a);
        return NULL;
    }
    return a;
}

static int mlo_shape_Gather(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0), index = mlo_form_in(s, 1), y = x;
    int axis;
    s->out[0].dtype = x.dtype;
    if (x.rank < 0) return 0;
    MLO_TRY(mlo_axis(s, mlo_int(s->node, "axis", 0), x.rank, &axis));
    if (index.rank < 0) return 0;
    y.rank = x.rank - 1 + index.rank;
    if (y.rank > MLO_MAX_RANK)
        return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node, "rank %d; at most %d is supported",
            y.rank, MLO_MAX_RANK);
    for (int i = 0; i < y.rank; i++)
        y.dims[i] = i < axis        ? x.dims[i]
            : i < axis + index.rank ? index.dims[i - axis]
                                    : x.dims[i - index.rank + 1];
    s->out[0] = y;
    return 0;
}
static int mlo_run_Gather(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    const mlo_array *x = c->in[0];
    int axis;
    MLO_TRY(mlo_axis(c->forms, mlo_int(c->node, "axis", 0), x->rank, &axis));
    size_t outer = 1, inner = mlo_dtype_size(x->dtype);
    for (int i = 0; i < axis; i++) outer *= (size_t)x->dims[i];
    for (int i = axis + 1; i < x->rank; i++) inner *= (size_t)x->dims[i];
    mlo_array *index = mlo_indices(c, c->in[1], x->dims[axis]);
    if (!index) return mlo_failed(c->m);
    size_t n = (size_t)mlo_array_count(index), block = inner * (size_t)x->dims[axis];
    char *o = (char *)c->out[0]->data;
    for (size_t k = 0; k < outer; k++)
        for (size_t i = 0; i < n; i++, o += inner)
            if (inner)
                memcpy(o,
                    (const char *)x->data + k * block
                        + (size_t)((const int64_t *)index->data)[i] * inner,
                    inner);
    mlo_array_free(c->m, index);
    return 0;
}

static int mlo_shape_GatherElements(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 1);
    s->out[0].dtype = mlo_form_in(s, 0).dtype;
    return 0;
}

/* Offset in x (row-major steps) of position `at` (row-major) in the index array's shape, the axis
 * left out. */
static int64_t mlo_offset_without(
    const mlo_array *shape, int64_t at, const int64_t *step, int axis) {
    int64_t o = 0;
    for (int i = shape->rank; i--; at /= shape->dims[i])
        if (i != axis) o += at % shape->dims[i] * step[i];
    return o;
}
static int mlo_run_GatherElements(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    const mlo_array *x = c->in[0];
    int axis;
    int64_t step[MLO_MAX_RANK];
    MLO_TRY(mlo_axis(c->forms, mlo_int(c->node, "axis", 0), x->rank, &axis));
    if (c->in[1]->rank != x->rank)
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "indices have rank %d, the data %d",
            c->in[1]->rank, x->rank);
    for (int i = 0; i < x->rank; i++)
        if (i != axis && c->in[1]->dims[i] > x->dims[i])
            return mlo_fail(c->m, MLO_E_SHAPE, c->node,
                "dimension %d of the indices is larger than that of the data", i);
    mlo_array *index = mlo_indices(c, c->in[1], x->dims[axis]);
    if (!index) return mlo_failed(c->m);
    mlo_steps(x->rank, x->dims, step);
    size_t size = mlo_dtype_size(x->dtype);
    for (int64_t i = 0, n = mlo_array_count(index); i < n; i++)
        memcpy((char *)c->out[0]->data + (size_t)i * size,
            (const char *)x->data
                + (size_t)(mlo_offset_without(index, i, step, axis)
                      + ((const int64_t *)index->data)[i] * step[axis])
                    * size,
            size);
    mlo_array_free(c->m, index);
    return 0;
}

/* GatherND: rows of the indices address blocks of the data; ScatterND writes such blocks. Both may
 * leave leading batch axes alone (`batch`). */
/* sizes in elements */
typedef struct {
    int batch; /* leading axes */
    int depth; /* axes that a row of the indices points into */
    size_t rows; /* of the indices */
    size_t block; /* elements that a row addresses */
    size_t per_batch; /* rows */
    size_t whole; /* elements of the data in a batch */
    int64_t step[MLO_MAX_RANK]; /* elements, along each axis of the data */
} mlo_blocks;

static int mlo_blocks_of(
    mlo_call *c, const mlo_array *x, const mlo_array *index, int batch, mlo_blocks *b) {
    MLO_TRY(mlo_is_indices(c, index));
    b->batch = batch;
    if (index->rank < 1 || batch >= index->rank || batch + index->dims[index->rank - 1] > x->rank
        || index->dims[index->rank - 1] < 1)
        return mlo_fail(c->m, MLO_E_SHAPE, c->node,
            "indices of rank %d do not fit data of rank %d with %d batch axes", index->rank,
            x->rank, batch);
    b->depth = (int)index->dims[index->rank - 1];
    b->rows = b->block = b->whole = 1;
    for (int i = 0; i < index->rank - 1; i++) b->rows *= (size_t)index->dims[i];
    for (int i = batch + b->depth; i < x->rank; i++) b->block *= (size_t)x->dims[i];
    for (int i = batch; i < x->rank; i++) b->whole *= (size_t)x->dims[i];
    size_t batches = 1;
    for (int i = 0; i < batch; i++) {
        if (index->dims[i] != x->dims[i])
            return mlo_fail(c->m, MLO_E_SHAPE, c->node, "batch axis %d is %lld and %lld", i,
                (long long)x->dims[i], (long long)index->dims[i]);
        batches *= (size_t)x->dims[i];
    }
    b->per_batch = batches ? b->rows / batches : 0;
    mlo_steps(x->rank, x->dims, b->step);
    return 0;
}

/* The element of x where row r of the indices points; fails outside of it. */
static int mlo_block_at(mlo_call *c, const mlo_array *x, const mlo_array *index,
    const mlo_blocks *b, size_t r, size_t *at) {
    *at = b->batch ? r / b->per_batch * b->whole : 0;
    for (int i = 0; i < b->depth; i++) {
        int64_t v, dim = x->dims[b->batch + i];
        mlo_convert(MLO_INT64, &v, index->dtype,
            (const char *)index->data
                + (r * (size_t)b->depth + (size_t)i) * mlo_dtype_size(index->dtype),
            1);
        if (v < -dim || v >= dim)
            return mlo_fail(c->m, MLO_E_DATA, c->node,
                "index %lld is outside of a dimension of %lld", (long long)v, (long long)dim);
        *at += (size_t)((v < 0 ? v + dim : v) * b->step[b->batch + i]);
    }
    return 0;
}

static int mlo_shape_GatherND(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0), index = mlo_form_in(s, 1), y = x;
    int64_t batch = mlo_int(s->node, "batch_dims", 0);
    int64_t depth = index.rank > 0 ? index.dims[index.rank - 1] : -1;
    s->out[0].dtype = x.dtype;
    if (x.rank < 0 || depth < 0 || batch < 0 || batch + depth > x.rank) return 0;
    y.rank = index.rank - 1 + x.rank - (int)(batch + depth);
    if (y.rank > MLO_MAX_RANK)
        return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node, "rank %d; at most %d is supported",
            y.rank, MLO_MAX_RANK);
    for (int i = 0; i < y.rank; i++)
        y.dims[i] = i < index.rank - 1 ? index.dims[i]
                                       : x.dims[i - (index.rank - 1) + batch + depth];
    s->out[0] = y;
    return 0;
}
static int mlo_run_GatherND(mlo_call *c) {
    mlo_blocks b;
    size_t at;
    MLO_TRY(mlo_need_inputs(c, 2));
    const mlo_array *x = c->in[0], *index = c->in[1];
    MLO_TRY(mlo_blocks_of(c, x, index, (int)mlo_int(c->node, "batch_dims", 0), &b));
    size_t size = mlo_dtype_size(x->dtype) * b.block;
    for (size_t r = 0; r < b.rows && size; r++) {
        MLO_TRY(mlo_block_at(c, x, index, &b, r, &at));
        memcpy((char *)c->out[0]->data + r * size,
            (const char *)x->data + at * mlo_dtype_size(x->dtype), size);
    }
    return 0;
}

/* One element of ScatterND with a reduction: y = y (how) u, in int64 or double. */
static void mlo_scatter_one(mlo_dtype t, char how, char *y, const char *u) {
    if (mlo_dtype_is_float(t)) {
        double a, b;
        mlo_convert(MLO_DOUBLE, &a, t, y, 1);
        mlo_convert(MLO_DOUBLE, &b, t, u, 1);
        a = how == 'a'        ? a + b
            : how == 'u'      ? a * b
            : how == 'x'      ? (b > a || b != b ? b : a)
            : b < a || b != b ? b
                              : a;
        mlo_convert(t, y, MLO_DOUBLE, &a, 1);
    } else {
        int64_t a, b;
        mlo_convert(MLO_INT64, &a, t, y, 1);
        mlo_convert(MLO_INT64, &b, t, u, 1);
        a = how == 'a'   ? (int64_t)((uint64_t)a + (uint64_t)b)
            : how == 'u' ? (int64_t)((uint64_t)a * (uint64_t)b)
            : how == 'x' ? (b > a ? b : a)
            : b < a      ? b
                         : a;
        mlo_convert(t, y, MLO_INT64, &a, 1);
    }
}
/* How an update joins what is there: none, add, mUl, mAx, mIn. */
static int mlo_scatter_how(mlo_call *c, char *how) {
    static const char *const names[] = { "none", "add", "mul", "max", "min" };
    const int k = mlo_which_text(c->node, "reduction", names, 5);
    if (k < 0)
        return mlo_fail(
            c->m, MLO_E_UNSUPPORTED, c->node, "reduction is none of none, add, mul, max, min");
    *how = "nauxi"[k];
    return 0;
}
static int mlo_run_ScatterND(mlo_call *c) {
    mlo_blocks b;
    size_t at;
    MLO_TRY(mlo_need_inputs(c, 3));
    const mlo_array *x = c->in[0], *index = c->in[1], *u = c->in[2];
    char how;
    MLO_TRY(mlo_scatter_how(c, &how));
    MLO_TRY(mlo_blocks_of(c, x, index, 0, &b));
    if ((size_t)mlo_array_count(u) != b.rows * b.block || u->dtype != x->dtype)
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "%lld updates; %zu are needed",
            (long long)mlo_array_count(u), b.rows * b.block);
    size_t size = mlo_dtype_size(x->dtype);
    char *y = (char *)c->out[0]->data;
    if (mlo_array_count(x)) memcpy(y, x->data, (size_t)mlo_array_count(x) * size);
    for (size_t r = 0; r < b.rows && b.block; r++) {
        MLO_TRY(mlo_block_at(c, x, index, &b, r, &at));
        const char *from = (const char *)u->data + r * b.block * size;
        if (how == 'n') {
            memcpy(y + at * size, from, b.block * size);
            continue;
        }
        for (size_t i = 0; i < b.block; i++)
            mlo_scatter_one(x->dtype, how, y + (at + i) * size, from + i * size);
    }
    return 0;
}

/* Updates go where the indices say along an axis, and where they are along the others. */
static int mlo_run_ScatterElements(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 3));
    const mlo_array *x = c->in[0], *u = c->in[2];
    const mlo_form f = mlo_form_in(c->forms, 1), g = mlo_form_in(c->forms, 2);
    int axis;
    int64_t step[MLO_MAX_RANK];
    char how, *y = (char *)c->out[0]->data;
    MLO_TRY(mlo_scatter_how(c, &how));
    MLO_TRY(mlo_axis(c->forms, mlo_int(c->node, "axis", 0), x->rank, &axis));
    for (int i = 0; i < x->rank; i++)
        if (f.rank != x->rank || g.rank != f.rank || g.dims[i] != f.dims[i]
            || (i != axis && f.dims[i] > x->dims[i]))
            return mlo_fail(c->m, MLO_E_SHAPE, c->node,
                "indices %s, updates %s and data %s do not fit",
                mlo_dims_text(c->m, f.rank, f.dims), mlo_dims_text(c->m, g.rank, g.dims),
                mlo_dims_text(c->m, x->rank, x->dims));
    if (u->dtype != x->dtype)
        return mlo_fail(c->m, MLO_E_TYPE, c->node, "updates are %s, the data %s",
            mlo_dtype_name(u->dtype), mlo_dtype_name(x->dtype));
    mlo_array *index = mlo_indices(c, c->in[1], x->dims[axis]);
    if (!index) return mlo_failed(c->m);
    const size_t size = mlo_dtype_size(x->dtype);
    mlo_steps(x->rank, x->dims, step);
    if (mlo_array_count(x)) memcpy(y, x->data, (size_t)mlo_array_count(x) * size);
    for (int64_t i = 0, n = mlo_array_count(index); i < n; i++) {
        const int64_t at = mlo_offset_without(index, i, step, axis)
            + ((const int64_t *)index->data)[i] * step[axis];
        const char *from = (const char *)u->data + (size_t)i * size;
        if (how == 'n')
            memcpy(y + (size_t)at * size, from, size);
        else
            mlo_scatter_one(x->dtype, how, y + (size_t)at * size, from);
    }
    mlo_array_free(c->m, index);
    return 0;
}

/* Trilu: keeps the upper (or lower) triangle of the last two axes. */
static int mlo_run_Trilu(mlo_call *c) {
    const mlo_array *x = c->in[0];
    if (x->rank < 2)
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "rank %d; a matrix is needed", x->rank);
    int64_t list[MLO_MAX_LIST] = { 0 };
    int64_t rows = x->dims[x->rank - 2];
    int64_t columns = x->dims[x->rank - 1];
    int64_t n = mlo_array_count(x);
    int upper = mlo_int(c->node, "upper", 1) != 0, k = mlo_ints(c->forms, NULL, 1, list);
    int64_t diagonal = k > 0 ? list[0] : 0;
    if (k > 1) return mlo_fail(c->m, MLO_E_SHAPE, c->node, "k must be one integer");
    size_t size = mlo_dtype_size(x->dtype);
    diagonal = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
    for (int64_t i = 0; i < n; i++) {
        int64_t d = i % columns - i / columns % rows - diagonal;
        if (upper ? d >= 0 : d <= 0)
            memcpy((char *)c->out[0]->data + (size_t)i * size,
                (const char *)x->data + (size_t)i * size, size);
        else
            memset((char *)c->out[0]->data + (size_t)i * size, 0, size);
    }
    return 0;
}

/* EyeLike: ones on a diagonal. */
static int mlo_shape_EyeLike(mlo_shapes *s) {
    const mlo_form x = mlo_form_in(s, 0);
    if (x.rank >= 0 && x.rank != 2)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "rank %d; a matrix is needed", x.rank);
    s->out[0] = x;
    s->out[0].dtype = (mlo_dtype)mlo_int(s->node, "dtype", (int64_t)x.dtype);
    return 0;
}
static int mlo_run_EyeLike(mlo_call *c) {
    mlo_array *y = c->out[0];
    const int64_t rows = y->dims[0], columns = y->dims[1], k = mlo_int(c->node, "k", 0);
    const size_t size = mlo_dtype_size(y->dtype);
    const float one = 1;
    memset(y->data, 0, (size_t)mlo_array_count(y) * size);
    for (int64_t i = 0; i < rows && k <= columns && k >= -rows; i++)
        if (i + k >= 0 && i + k < columns)
            mlo_convert(y->dtype, (char *)y->data + (size_t)(i * columns + i + k) * size, MLO_FLOAT,
                &one, 1);
    return 0;
}

/* ---- Pad ------------------------------------------------------------------ */

/* Is it more than any dimension, in either direction? */
static int mlo_far(int64_t pad) { return pad > MLO_MAX_DIM || pad < -MLO_MAX_DIM; }
/* before, after per axis; 1 when known. */
static int mlo_pads_of(const mlo_shapes *s, int rank, int64_t *before, int64_t *after) {
    int64_t pads[MLO_MAX_LIST], axes[MLO_MAX_LIST];
    int n = mlo_ints(s, "pads", 1, pads), k = mlo_ints(s, NULL, 3, axes), at;
    for (int i = 0; i < rank; i++) before[i] = after[i] = 0;
    if (n < 0 || !mlo_ints_known(pads, n) || k == MLO_LATER || (k >= 0 && !mlo_ints_known(axes, k)))
        return 0;
    int count = k >= 0 ? k : rank;
    if (n != 2 * count) {
        mlo_fail(s->m, MLO_E_SHAPE, s->node, "%d pads for %d axes", n, count);
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if (mlo_axis(s, k >= 0 ? axes[i] : i, rank, &at)) return 0;
        before[at] = pads[i];
        after[at] = pads[i + count];
        if (mlo_far(pads[i]) || mlo_far(pads[i + count])) {
            mlo_fail(s->m, MLO_E_SHAPE, s->node, "a pad of %lld or %lld", (long long)pads[i],
                (long long)pads[i + count]);
            return 0;
        }
    }
    return 1;
}
static int mlo_shape_Pad(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0);
    int64_t before[MLO_MAX_RANK], after[MLO_MAX_RANK];
    s->out[0] = x;
    if (x.rank < 0) return 0;
    int known = mlo_pads_of(s, x.rank, before, after);
    for (int i = 0; i < x.rank; i++) {
        s->out[0].dims[i] = known && x.dims[i] >= 0 ? x.dims[i] + before[i] + after[i] : -1;
        if (known && x.dims[i] >= 0 && s->out[0].dims[i] < 0)
            return mlo_fail(s->m, MLO_E_SHAPE, s->node, "dimension %d becomes negative", i);
    }
    return mlo_failed(s->m);
}
enum { MLO_PAD_CONSTANT, MLO_PAD_REFLECT, MLO_PAD_EDGE, MLO_PAD_WRAP };
/* Where position i of a padded axis comes from; -1: the constant. */
static int64_t mlo_pad_from(int64_t i, int64_t dim, int mode) {
    if (i >= 0 && i < dim) return i;
    if (mode == MLO_PAD_CONSTANT || dim < 1) return -1;
    if (mode == MLO_PAD_EDGE) return i < 0 ? 0 : dim - 1;
    if (mode == MLO_PAD_WRAP) return (i % dim + dim) % dim;
    int64_t period = dim > 1 ? 2 * (dim - 1) : 1;
    i = (i % period + period) % period;
    return i < dim ? i : period - i;
}
static int mlo_run_Pad(mlo_call *c) {
    const mlo_array *x = c->in[0];
    mlo_array *y = c->out[0];
    int64_t before[MLO_MAX_RANK], after[MLO_MAX_RANK], step[MLO_MAX_RANK], n = mlo_array_count(y);
    static const char *const modes[] = { "constant", "reflect", "edge", "wrap" };
    const int mode = mlo_which_text(c->node, "mode", modes, 4);
    char fill[8] = { 0 };
    size_t size = mlo_dtype_size(x->dtype);
    float value = mlo_float(c->node, "value", 0);
    if (mode < 0)
        return mlo_fail(
            c->m, MLO_E_UNSUPPORTED, c->node, "mode is none of constant, reflect, edge, wrap");
    mlo_pads_of(c->forms, x->rank, before, after); /* known, or y had no form */
    if (c->n_in > 2 && c->in[2])
        mlo_convert(x->dtype, fill, c->in[2]->dtype, c->in[2]->data, 1);
    else
        mlo_convert(x->dtype, fill, MLO_FLOAT, &value, 1);
    mlo_steps(x->rank, x->dims, step);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i, from = 0, p = 0;
        for (int k = y->rank; k-- && p >= 0; at /= y->dims[k])
            if ((p = mlo_pad_from(at % y->dims[k] - before[k], x->dims[k], mode)) >= 0)
                from += p * step[k];
        memcpy((char *)y->data + (size_t)i * size,
            p < 0 ? fill : (const char *)x->data + (size_t)from * size, size);
    }
    return 0;
}
