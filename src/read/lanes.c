/* lanes: where a part of something lies in each value, and how a graph for so many parts becomes one for others.
 *
 * in:  an indexed model, constants folded, every size known; where the parts lie in its inputs.
 * out: where they lie behind each node that treats them each by itself, and alike; and what nodes have to say then of
 *      so many others. Two do that: a batch of some becomes one (unbatch.c), one token becomes many (prompt.c).
 *
 * A value has the parts in one dimension, and within it behind how many others, as heads and windows are often folded
 * into it. What a reshape or an Expand says of sizes is said anew; of a constant that has a part for each of them one
 * is left. Below they are called a batch.
 *
 * invariant: a node that sums over the parts, picks from them, or is not known here is where following ends.
 * example: [2, 16, 32] -> Reshape [2, 16, 4, 8] -> Transpose [2, 4, 16, 8] -> Reshape [8, 16, 8]: axis 0, inner 4.
 * cost: O(nodes), and a look at each constant that has the batch in it.
 */

/* Where the batch lies in a value. */
typedef struct {
    int axis; /* -1: it has none */
    int64_t outer; /* of that dimension: what is in front of the batch */
    int64_t inner; /* what is behind it */
} mlo_lane;

/* What a node reads in the place of its input, or what it is from now on. */
typedef struct {
    mlo_node *node;
    size_t input;
    mlo_array *value; /* a new constant; NULL: it is there, or none */
    const char *name; /* of one that is there; NULL: none */
    const char *op; /* NULL: what it was */
    int from; /* its first input's axis that comes first, and */
    int into; /* its output's first axis comes there; 0: none does */
} mlo_lane_edit;

/* What is followed, and how many parts it has. */
typedef struct mlo_lanes {
    mlo *m;
    mlo_graph *g;
    int64_t batch; /* parts that there are */
    int64_t to; /* parts that there will be */
    int second; /* 1: where one part could be in either of two dimensions it is in the second */
    /* rules of who follows, asked first, and of inputs that have no batch: *done = 1 where they say what happens. What
     * they return is what rules return; NULL: there are none. */
    int (*rule)(struct mlo_lanes *l, mlo_node *n, int *done);
    int (*meets)(struct mlo_lanes *l, mlo_node *n, size_t k, mlo_lane at, int rank, int *done);
    void *user; /* theirs */
    mlo_map at; /* a value's name -> its mlo_lane */
    mlo_map pairs; /* indices (b, i), or b n + i, by name: b counts the batch */
    mlo_lane_edit *edit;
    size_t n_edit;
    const mlo_node *stop; /* that does not treat the batch's parts each by itself */
} mlo_lanes;

static const mlo_lane mlo_no_lane = { -1, 1, 1 };

static mlo_lane mlo_lane_of(const mlo_lanes *l, const char *name) {
    const mlo_lane *at = (const mlo_lane *)mlo_map_get(&l->at, name);
    return at ? *at : mlo_no_lane;
}
static mlo_lane mlo_lane_in(const mlo_lanes *l, const mlo_node *n, size_t k) {
    return mlo_has_input(n, k) ? mlo_lane_of(l, n->input[k]) : mlo_no_lane;
}
static mlo_form mlo_lane_form(const mlo_lanes *l, const mlo_node *n, size_t k) {
    const mlo_form none = { MLO_UNDEFINED, -1, { 0 } };
    return mlo_has_input(n, k) ? mlo_form_of(mlo_value_of(l->g, n->input[k])) : none;
}

static int mlo_lane_put(mlo_lanes *l, const char *name, int axis, int64_t outer, int64_t inner) {
    const mlo_form f = mlo_form_of(mlo_value_of(l->g, name));
    mlo_lane *at = MLO_NEW(l->m, mlo_lane);
    if (!at || !mlo_form_known(&f) || axis < 0 || axis >= f.rank || outer < 1 || inner < 1
        || f.dims[axis] != outer * l->batch * inner)
        return 0;
    at->axis = axis;
    at->outer = outer;
    at->inner = inner;
    return !mlo_map_put(l->m, &l->at, name, at);
}
/* All outputs of a node have the batch at an axis, as `like` has it. */
static int mlo_lane_all(mlo_lanes *l, const mlo_node *n, int axis, mlo_lane like) {
    for (size_t i = 0; i < n->n_output; i++)
        if (n->output[i] && *n->output[i]
            && !mlo_lane_put(l, n->output[i], axis, like.outer, like.inner))
            return 0;
    return 1;
}

/* ---- what is said anew ---------------------------------------------------- */

static int mlo_lane_note(mlo_lanes *l, mlo_lane_edit e) {
    if (MLO_PUSH(l->m, l->edit, l->n_edit, e)) return 1;
    mlo_array_free(l->m, e.value);
    return 0;
}
static int mlo_lane_edits(mlo_lanes *l, mlo_node *n, size_t input, mlo_array *value) {
    const mlo_lane_edit e = { n, input, value, NULL, NULL, 0, 0 };
    return value && mlo_lane_note(l, e);
}
/* The node is another one, of the first input and of that value, if there is one. */
static int mlo_lane_becomes(mlo_lanes *l, mlo_node *n, const char *op, mlo_array *value) {
    const mlo_lane_edit e = { n, 1, value, NULL, op, 0, 0 };
    return mlo_lane_note(l, e);
}

static mlo_array *mlo_lane_numbers(mlo_lanes *l, const int64_t *list, int64_t count) {
    mlo_array *a = mlo_array_new(l->m, MLO_INT64, 1, &count);
    if (a && count) memcpy(a->data, list, (size_t)count * sizeof *list);
    return a;
}
/* An input is this list from now on. */
static int mlo_lane_says(
    mlo_lanes *l, mlo_node *n, size_t input, const int64_t *list, int64_t count) {
    return mlo_lane_edits(l, n, input, mlo_lane_numbers(l, list, count));
}

/* The constant list of integers that an attribute or an input is; -1: none is there, -2: it is not known. */
static int mlo_lane_list(
    const mlo_lanes *l, const mlo_node *n, const char *attr, size_t input, int64_t *list) {
    const mlo_attr *a = mlo_attr_of(n, attr);
    for (size_t i = 0; a && i < a->n_ints && i < MLO_MAX_LIST; i++) list[i] = a->ints[i];
    if (a) return a->n_ints <= MLO_MAX_LIST ? (int)a->n_ints : -2;
    if (!mlo_has_input(n, input)) return -1;
    const mlo_value *v = mlo_value_of(l->g, n->input[input]);
    const int64_t count = v && v->tensor ? mlo_tensor_count(v->tensor) : -1;
    mlo_array *had = count >= 0 && count <= MLO_MAX_LIST ? mlo_tensor_load(l->m, v->tensor) : NULL;
    if (!had) return -2;
    mlo_convert(MLO_INT64, list, had->dtype, had->data, (size_t)count);
    mlo_array_free(l->m, had);
    return (int)count;
}

/* Of a constant [outer B inner] along an axis, alike for each of the batch, one part; NULL: it is no constant, or its
 * parts differ. */
static mlo_array *mlo_lane_part(mlo_lanes *l, const char *name, mlo_lane at) {
    const mlo_value *v = mlo_value_of(l->g, name);
    mlo_array *all = v && v->tensor ? mlo_tensor_load(l->m, v->tensor) : NULL;
    int64_t dims[MLO_MAX_RANK], before = at.outer, behind = at.inner;
    if (!all) return NULL;
    for (int i = 0; i < all->rank; i++) {
        dims[i] = i == at.axis ? at.outer * at.inner : all->dims[i];
        if (i < at.axis) before *= dims[i];
        if (i > at.axis) behind *= dims[i];
    }
    mlo_array *part = mlo_array_new(l->m, all->dtype, all->rank, dims);
    const size_t bytes = (size_t)behind * mlo_dtype_size(all->dtype);
    int same = part != NULL;
    for (int64_t i = 0; same && i < before; i++) {
        const char *first = (const char *)all->data + (size_t)(i * l->batch) * bytes;
        for (int64_t b = 1; same && b < l->batch; b++)
            same = !memcmp(first, first + (size_t)b * bytes, bytes);
        memcpy((char *)part->data + (size_t)i * bytes, first, bytes);
    }
    mlo_array_free(l->m, all);
    if (same) return part;
    mlo_array_free(l->m, part);
    return NULL;
}

/* An Expand of one part to the batch, whose result nothing else reads, expands it to one. */
static int mlo_lane_expanded(mlo_lanes *l, const char *name, mlo_lane at) {
    const mlo_value *v = mlo_value_of(l->g, name);
    int64_t to[MLO_MAX_LIST];
    mlo_node *n = v && v->n_use == 1 && v->n_uses == 1 ? v->producer : NULL;
    const mlo_form x = mlo_is(n, "Expand") ? mlo_lane_form(l, n, 0) : mlo_form_of(NULL);
    const int rank = mlo_is(n, "Expand") ? mlo_lane_list(l, n, "", 1, to) : -1;
    const int from = x.rank - rank + at.axis;
    if (rank <= at.axis || rank < x.rank || (from >= 0 && x.dims[from] != 1)) return 0;
    to[at.axis] = at.outer * l->to * at.inner;
    return mlo_lane_says(l, n, 1, to, rank) && mlo_lane_put(l, name, at.axis, at.outer, at.inner);
}

/* Input k, without a batch of its own, meets one that lies `right` dimensions from the end: it is alike for all of it.
 */
static int mlo_lane_meets(mlo_lanes *l, mlo_node *n, size_t k, int right, mlo_lane at) {
    const mlo_form f = mlo_lane_form(l, n, k);
    int done = 0;
    at.axis = f.rank - right;
    if (!mlo_form_known(&f)) return 0;
    const int met = l->meets ? l->meets(l, n, k, at, right, &done) : 0;
    if (done) return met;
    if (at.axis < 0 || f.dims[at.axis] == 1) return 1;
    if (f.dims[at.axis] != at.outer * l->batch * at.inner) return 0;
    return mlo_lane_edits(l, n, k, mlo_lane_part(l, n->input[k], at))
        || mlo_lane_expanded(l, n->input[k], at);
}

/* ---- operators ------------------------------------------------------------ */

/* Has no operand but the first one the batch? */
static int mlo_lane_is_alone(const mlo_lanes *l, const mlo_node *n) {
    for (size_t k = 1; k < n->n_input; k++)
        if (mlo_lane_in(l, n, k).axis >= 0) return 0;
    return 1;
}

/* Operands that broadcast have the batch in one place, counted from the end. */
static int mlo_lane_broadcast(mlo_lanes *l, mlo_node *n, size_t first, mlo_lane *of, int *right) {
    *right = 0;
    for (size_t k = first; k < n->n_input; k++) {
        const mlo_lane at = mlo_lane_in(l, n, k);
        const int from = mlo_lane_form(l, n, k).rank - at.axis;
        if (at.axis < 0) continue;
        if (*right && (from != *right || at.outer != of->outer || at.inner != of->inner)) return 0;
        *right = from;
        *of = at;
    }
    for (size_t k = first; k < n->n_input; k++)
        if (mlo_has_input(n, k) && mlo_lane_in(l, n, k).axis < 0
            && !mlo_lane_meets(l, n, k, *right, *of))
            return 0;
    return 1;
}
static int mlo_lane_elements(mlo_lanes *l, mlo_node *n) {
    mlo_lane of = mlo_no_lane;
    int right;
    if (!mlo_lane_broadcast(l, n, 0, &of, &right)) return 0;
    return mlo_lane_all(l, n, mlo_form_of(mlo_value_of(l->g, n->output[0])).rank - right, of);
}

/* Scale and zero point are one number each, or lie along another axis. */
static int mlo_lane_quantized(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const mlo_form x = mlo_lane_form(l, n, 0), scale = mlo_lane_form(l, n, 1);
    const int64_t axis = mlo_int(n, "axis", 1);
    const int apart = mlo_form_count(&scale) == 1
        || (scale.rank == 1 && (axis < 0 ? axis + x.rank : axis) != at.axis);
    return mlo_lane_is_alone(l, n) && at.axis >= 0 && apart && mlo_lane_all(l, n, at.axis, at);
}

/* Rows of the left operand, or products side by side. */
static int mlo_lane_matmul(mlo_lanes *l, mlo_node *n) {
    mlo_lane a = mlo_lane_in(l, n, 0), b = mlo_lane_in(l, n, 1);
    const mlo_form x = mlo_lane_form(l, n, 0), y = mlo_lane_form(l, n, 1);
    const int rank = mlo_form_of(mlo_value_of(l->g, n->output[0])).rank;
    int right;
    if (x.rank < 2 || y.rank < 2 || (b.axis >= 0 && b.axis > y.rank - 3)) return 0;
    if (a.axis == x.rank - 2 && b.axis < 0) return mlo_lane_all(l, n, rank - 2, a);
    if (a.axis > x.rank - 3) return 0;
    return mlo_lane_broadcast(l, n, 0, &a, &right) && mlo_lane_all(l, n, rank - right, a);
}
static int mlo_lane_gemm(mlo_lanes *l, mlo_node *n) {
    const mlo_lane a = mlo_lane_in(l, n, 0);
    if (a.axis || mlo_int(n, "transA", 0) || mlo_lane_in(l, n, 1).axis >= 0) return 0;
    if (mlo_has_input(n, 2) && (mlo_lane_in(l, n, 2).axis >= 0 || !mlo_lane_meets(l, n, 2, 2, a)))
        return 0;
    return mlo_lane_all(l, n, 0, a);
}

/* Dimensions of 1 around one of them: the first, and how many. */
static int mlo_lane_ones(const mlo_form *f, int axis, int *count) {
    int first = axis, last = axis;
    while (first > 0 && f->dims[first - 1] == 1) first--;
    while (last < f->rank && f->dims[last] == 1) last++;
    *count = last - first;
    return first;
}
/* Which dimension of 1 of y that of x, at an axis, is, where it is moved: each of x's others has one of y. -1: none. */
static int mlo_lane_spare(const mlo_lanes *l, const mlo_form *x, int axis, const mlo_form *y) {
    int before = 0, others = -1, ones = 0, at = -1;
    for (int d = 0; d < x->rank; d++) {
        before += d < axis && x->dims[d] == 1;
        others += x->dims[d] == 1;
    }
    for (int d = 0; d < y->rank; d++) ones += y->dims[d] == 1;
    if (ones <= others) return -1;
    if (!others && ones > 1) before = l->second;
    for (int d = 0; d < y->rank && before >= 0; d++) {
        before -= y->dims[d] == 1;
        at = d;
    }
    return at;
}

/* A reshape of one part may move it past others, which no reshape of many does: it comes first, and then where it
 * belongs. [1, 40] to heads [5, 1, 8], say. */
static int mlo_lane_moved(
    mlo_lanes *l, mlo_node *n, mlo_lane at, const mlo_form *x, const mlo_form *y) {
    const int axis = mlo_lane_spare(l, x, at.axis, y);
    int64_t to[MLO_MAX_RANK] = { l->to };
    if (axis < 0) return 0;
    for (int d = 0, k = 1; d < y->rank; d++)
        if (d != axis) to[k++] = y->dims[d];
    if (!mlo_lane_becomes(l, n, "Reshape", mlo_lane_numbers(l, to, y->rank))) return 0;
    l->edit[l->n_edit - 1].from = at.axis;
    l->edit[l->n_edit - 1].into = axis;
    return mlo_lane_put(l, n->output[0], axis, 1, 1);
}

/* Of one part, a dimension of 1, any of those that lie behind as many elements could be the one: that in the same
 * place among them, or, where there is no choice in front of the reshape and one behind it, the one that who follows
 * prefers. */
static int mlo_lane_one(
    mlo_lanes *l, mlo_node *n, mlo_lane at, const mlo_form *x, const mlo_form *y) {
    int64_t before = at.outer, outer = 1, to[MLO_MAX_RANK];
    int had, has, axis = 0;
    const int place = at.axis - mlo_lane_ones(x, at.axis, &had);
    for (int i = 0; i < at.axis; i++) before *= x->dims[i];
    for (int64_t first = 1; axis < y->rank && first < before; axis++) first *= y->dims[axis];
    mlo_lane_ones(y, axis, &has);
    if (!has && at.outer * at.inner == 1 && mlo_lane_moved(l, n, at, x, y)) return 1;
    if (at.inner != 1 || (!has && !axis)) return 0;
    if (has)
        axis += (int)mlo_min(had == 1 && has > 1 ? l->second : place, has - 1);
    else
        outer = y->dims[--axis]; /* as of each head */
    for (int i = 0; i < y->rank; i++) to[i] = i == axis ? outer * l->to : y->dims[i];
    return mlo_lane_becomes(l, n, "Reshape", mlo_lane_numbers(l, to, y->rank))
        && mlo_lane_put(l, n->output[0], axis, outer, 1);
}

/* Where new dimensions come is said. */
static int mlo_lane_unsqueezed(mlo_lanes *l, const mlo_node *n, mlo_lane at, int rank) {
    int64_t list[MLO_MAX_LIST];
    const int count = mlo_lane_list(l, n, "axes", 1, list);
    int axis = -1;
    for (int i = 0, old = -1; axis < 0 && count >= 0 && i < rank; i++) {
        int made = 0;
        for (int k = 0; k < count; k++) made |= (list[k] < 0 ? list[k] + rank : list[k]) == i;
        old += !made;
        if (!made && old == at.axis) axis = i;
    }
    return axis >= 0 && mlo_lane_all(l, n, axis, at);
}

/* Elements keep their order: the batch lies behind as many others as before. */
static int mlo_lane_reshape(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const mlo_form x = mlo_lane_form(l, n, 0);
    const mlo_form y = mlo_form_of(mlo_value_of(l->g, n->output[0]));
    int64_t before = at.outer, first = 1;
    int axis = 0;
    if (at.axis < 0 || !mlo_form_known(&y)) return 0;
    if (l->batch == 1 && mlo_is(n, "Unsqueeze")) return mlo_lane_unsqueezed(l, n, at, y.rank);
    if (l->batch == 1) return mlo_lane_one(l, n, at, &x, &y);
    if (mlo_is(n, "Squeeze") && !mlo_attr_of(n, "axes") && !mlo_has_input(n, 1)) return 0;
    for (int i = 0; i < at.axis; i++) before *= x.dims[i];
    while (axis < y.rank && first * y.dims[axis] <= before) first *= y.dims[axis++];
    if (axis == y.rank || before % first) return 0;
    const int64_t outer = before / first, part = outer * l->batch;
    if (y.dims[axis] % part
        || !mlo_lane_all(l, n, axis, (mlo_lane){ axis, outer, y.dims[axis] / part }))
        return 0;
    int64_t to[MLO_MAX_RANK];
    for (int i = 0; i < y.rank; i++) to[i] = i == axis ? y.dims[i] / l->batch * l->to : y.dims[i];
    return !mlo_is(n, "Reshape") || (mlo_has_input(n, 1) && mlo_lane_says(l, n, 1, to, y.rank));
}

static int mlo_lane_transpose(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const int rank = mlo_lane_form(l, n, 0).rank;
    for (int i = 0; i < rank; i++)
        if (mlo_listed(n, "perm", (size_t)i, rank - 1 - i) == at.axis)
            return mlo_lane_all(l, n, i, at);
    return 0;
}

/* Along an axis, or from one on, where the batch is not; what else is read has none. */
static int mlo_lane_along(mlo_lanes *l, mlo_node *n, int64_t otherwise, int on) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const int rank = mlo_lane_form(l, n, 0).rank;
    const int64_t said = mlo_int(n, "axis", otherwise), axis = said < 0 ? said + rank : said;
    return mlo_lane_is_alone(l, n) && at.axis >= 0 && (on ? at.axis < axis : at.axis != axis)
        && mlo_lane_all(l, n, at.axis, at);
}

static int mlo_lane_reduce(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const int rank = mlo_lane_form(l, n, 0).rank, keeps = (int)mlo_int(n, "keepdims", 1);
    int64_t list[MLO_MAX_LIST];
    const int count = mlo_lane_list(l, n, "axes", 1, list);
    int axis = at.axis;
    if (count < 1) return 0;
    for (int i = 0; i < count; i++) {
        const int64_t k = list[i] < 0 ? list[i] + rank : list[i];
        if (k == at.axis) return 0;
        axis -= k < at.axis && !keeps;
    }
    return mlo_lane_all(l, n, axis, at);
}

static int mlo_lane_so_far(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const int rank = mlo_lane_form(l, n, 0).rank;
    int64_t axis[MLO_MAX_LIST];
    return at.axis >= 0 && mlo_lane_list(l, n, "", 1, axis) == 1
        && (axis[0] < 0 ? axis[0] + rank : axis[0]) != at.axis && mlo_lane_all(l, n, at.axis, at);
}
static int mlo_lane_best(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const int rank = mlo_lane_form(l, n, 0).rank;
    const int64_t said = mlo_int(n, "axis", 0), axis = said < 0 ? said + rank : said;
    if (at.axis < 0 || axis == at.axis) return 0;
    return mlo_lane_all(l, n, at.axis - (axis < at.axis && !mlo_int(n, "keepdims", 1)), at);
}

/* The batch is the first dimension, and each of its parts is treated by itself (MaxPool counts places in all of it). */
static int mlo_lane_first(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    return mlo_lane_is_alone(l, n) && at.axis == 0 && !mlo_int(n, "training_mode", 0)
        && !(mlo_is(n, "MaxPool") && n->n_output > 1) && mlo_lane_all(l, n, 0, at);
}

/* Constant indices [B, ..] of which each `every`-th counts the batch: it says a place within that part of it, `inner`
 * behind the part in front of it; the others are alike for all of the batch. Those of one part; NULL: they are not
 * so. */
static mlo_array *mlo_lane_indices(mlo_lanes *l, const char *name, int64_t every, int64_t inner) {
    const mlo_value *v = mlo_value_of(l->g, name);
    mlo_array *all = v && v->tensor && v->tensor->data_type == MLO_INT64
        ? mlo_tensor_load(l->m, v->tensor)
        : NULL,
              *one = NULL;
    const int usual = all && all->rank && all->dims[0] == l->batch;
    const int64_t part = usual ? mlo_array_count(all) / l->batch : 0;
    const int64_t *at = all ? (const int64_t *)all->data : NULL;
    int same = part > 0;
    for (int64_t e = 0; same && e < l->batch * part; e++)
        same = e % every
            ? at[e] == at[e % part]
            : at[e] - e / part * inner == at[e % part] && at[e % part] >= 0 && at[e % part] < inner;
    if (same) {
        int64_t dims[MLO_MAX_RANK];
        for (int i = 0; i < all->rank; i++) dims[i] = i ? all->dims[i] : 1;
        one = mlo_array_new(l->m, MLO_INT64, all->rank, dims);
    }
    if (one) memcpy(one->data, at, (size_t)part * sizeof *at);
    mlo_array_free(l->m, all);
    return one;
}

/* Rows for each index, the same indices for all of the batch, or each of the batch its own rows. */
static int mlo_lane_gather(mlo_lanes *l, mlo_node *n) {
    const mlo_lane data = mlo_lane_in(l, n, 0), ids = mlo_lane_in(l, n, 1);
    const int rank = mlo_lane_form(l, n, 0).rank, more = mlo_lane_form(l, n, 1).rank;
    const int64_t said = mlo_int(n, "axis", 0);
    const int axis = (int)(said < 0 ? said + rank : said);
    if (mlo_map_get(&l->pairs, n->input[1]))
        return data.axis == 0 && data.outer == 1 && mlo_lane_all(l, n, ids.axis, ids);
    if ((data.axis >= 0) == (ids.axis >= 0)) return 0;
    if (data.axis == axis && l->batch == 1) {
        const mlo_form x = mlo_lane_form(l, n, 0),
                       y = mlo_form_of(mlo_value_of(l->g, n->output[0]));
        return mlo_lane_one(l, n, data, &x, &y);
    }
    if (data.axis == axis)
        return data.outer == 1
            && mlo_lane_edits(l, n, 1, mlo_lane_indices(l, n->input[1], 1, data.inner))
            && mlo_lane_put(l, n->output[0], axis, 1, 1);
    if (ids.axis >= 0) return mlo_lane_all(l, n, axis + ids.axis, ids);
    return mlo_lane_all(l, n, data.axis + (data.axis > axis ? more - 1 : 0), data);
}

/* A constant [.., B, ..] whose elements say where along that axis they are, times `by`: 0, of one part. NULL: it is
 * none, or there will be more parts. */
static mlo_array *mlo_lane_counter(mlo_lanes *l, const char *name, int axis, int64_t by) {
    const mlo_value *v = mlo_value_of(l->g, name);
    mlo_array *all = v && v->tensor && v->tensor->data_type == MLO_INT64
        ? mlo_tensor_load(l->m, v->tensor)
        : NULL;
    int64_t dims[MLO_MAX_RANK], behind = 1;
    int counts = all && l->to == 1 && axis >= 0 && axis < all->rank && all->dims[axis] == l->batch;
    for (int i = 0; counts && i < all->rank; i++) {
        dims[i] = i == axis ? 1 : all->dims[i];
        if (i > axis) behind *= all->dims[i];
    }
    for (int64_t e = 0; counts && e < mlo_array_count(all); e++)
        counts = ((const int64_t *)all->data)[e] == e / behind % l->batch * by;
    mlo_array *one = counts ? mlo_array_new(l->m, MLO_INT64, all->rank, dims) : NULL;
    if (one) memset(one->data, 0, (size_t)mlo_array_count(one) * sizeof(int64_t));
    mlo_array_free(l->m, all);
    return one;
}

/* Who alone reads a node's output, as indices; NULL: another operator does, or several do. */
static const mlo_node *mlo_lane_reader(const mlo_lanes *l, const mlo_node *n, const char *op) {
    const mlo_value *y = mlo_value_of(l->g, n->output[0]);
    const mlo_node *reader = y->n_use == 1 && y->n_uses == 1 ? y->use[0] : NULL;
    return mlo_is(reader, op) && reader->n_input > 1 && reader->input[1] == n->output[0] ? reader
                                                                                         : NULL;
}

/* Indices (b, i) that GatherND alone reads, b counted by a constant, i of each of the batch: its last token, say. */
static int mlo_lane_pairs(mlo_lanes *l, mlo_node *n) {
    const mlo_value *y = mlo_value_of(l->g, n->output[0]);
    const mlo_node *reader = mlo_lane_reader(l, n, "GatherND");
    const int64_t axis = mlo_int(n, "axis", 0);
    const mlo_lane at = n->n_input == 2 ? mlo_lane_in(l, n, 1) : mlo_no_lane;
    const mlo_form counter = mlo_lane_form(l, n, 0);
    if (!reader || at.axis < 0 || at.outer * at.inner != 1 || mlo_lane_in(l, n, 0).axis >= 0
        || (axis != -1 && axis != mlo_form_of(y).rank - 1) || counter.rank < 1
        || counter.dims[counter.rank - 1] != 1)
        return 0;
    return mlo_lane_edits(l, n, 0, mlo_lane_counter(l, n->input[0], at.axis, 1))
        && !mlo_map_put(l->m, &l->pairs, y->name, n) && mlo_lane_all(l, n, at.axis, at);
}

/* Is it known of integers that they are from 0 on, less than `most`: places of a row's best number, or a number? */
static int mlo_lane_is_place(const mlo_lanes *l, const char *name, int64_t most, int depth) {
    const mlo_value *v = mlo_value_of(l->g, name);
    const mlo_node *n = v ? v->producer : NULL;
    double at;
    if (v && v->tensor) return mlo_lone_number(l->m, v, &at) && at >= 0 && at < (double)most;
    if (!n || depth > 8) return 0;
    if (mlo_has_trait(n, MLO_RESHAPES) || (mlo_is(n, "Cast") && mlo_int(n, "to", 0) == MLO_INT64))
        return mlo_lane_is_place(l, n->input[0], most, depth + 1);
    if (mlo_is(n, "Where"))
        return mlo_lane_is_place(l, n->input[1], most, depth + 1)
            && mlo_lane_is_place(l, n->input[2], most, depth + 1);
    const mlo_form f = mlo_is(n, "ArgMax") ? mlo_lane_form(l, n, 0) : mlo_form_of(NULL);
    const int64_t axis = f.rank > 0 ? mlo_int(n, "axis", 0) : -1;
    return f.rank > 0 && f.dims[axis < 0 ? axis + f.rank : axis] <= most;
}

/* Indices b n + i that Gather alone reads, of the rows of all of the batch, n of each: b n is counted by a constant, i
 * is of each of the batch. */
static int mlo_lane_counted(mlo_lanes *l, mlo_node *n) {
    const mlo_node *reader = mlo_is(n, "Add") ? mlo_lane_reader(l, n, "Gather") : NULL;
    const size_t own = reader && mlo_lane_in(l, n, 1).axis >= 0;
    const mlo_lane at = reader ? mlo_lane_in(l, n, own) : mlo_no_lane;
    const mlo_form rows = reader ? mlo_lane_form(l, reader, 0) : mlo_form_of(NULL);
    const mlo_form i = mlo_lane_form(l, n, own), counter = mlo_lane_form(l, n, 1 - own);
    if (at.axis < 0 || at.outer * at.inner != 1 || rows.rank < 1 || rows.dims[0] % l->batch
        || mlo_int(reader, "axis", 0) || counter.rank != i.rank
        || !mlo_lane_is_place(l, n->input[own], rows.dims[0] / l->batch, 0))
        return 0;
    mlo_array *one = mlo_lane_counter(l, n->input[1 - own], at.axis, rows.dims[0] / l->batch);
    return mlo_lane_edits(l, n, 1 - own, one) && !mlo_map_put(l->m, &l->pairs, n->output[0], n)
        && mlo_lane_all(l, n, at.axis, at);
}
static int mlo_lane_sum(mlo_lanes *l, mlo_node *n) {
    return mlo_lane_counted(l, n) || mlo_lane_elements(l, n);
}

/* What indices say of dimensions in front of the batch; or of each of it what those say whose first counts it: as
 * transformers' masks pick what is no padding, or classifiers the last token. */
static int mlo_lane_gather_nd(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0), ids = mlo_lane_in(l, n, 1);
    const mlo_form f = mlo_lane_form(l, n, 1); /* [.., k] */
    if (f.rank < 1 || mlo_int(n, "batch_dims", 0)) return 0;
    if (ids.axis < 0 && at.axis >= f.dims[f.rank - 1])
        return mlo_lane_all(l, n, at.axis + f.rank - 1 - (int)f.dims[f.rank - 1], at);
    if (at.axis || at.outer * at.inner != 1) return 0;
    if (ids.axis >= 0)
        return mlo_map_get(&l->pairs, n->input[1]) && mlo_lane_all(l, n, ids.axis, ids);
    return f.rank > 1 /* [B, .., k]: the first of the k counts the batch */
        && mlo_lane_edits(l, n, 1, mlo_lane_indices(l, n->input[1], f.dims[f.rank - 1], 1))
        && mlo_lane_all(l, n, 0, at);
}

/* All of the batch, or a part of something else. */
static int mlo_lane_slice(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const mlo_form x = mlo_lane_form(l, n, 0);
    const mlo_form y = mlo_form_of(mlo_value_of(l->g, n->output[0]));
    int64_t start[MLO_MAX_LIST], end[MLO_MAX_LIST], axes[MLO_MAX_LIST], step[MLO_MAX_LIST];
    const int count = mlo_lane_list(l, n, "", 1, start), given = mlo_lane_list(l, n, "", 3, axes);
    if (at.axis < 0 || count < 0 || mlo_lane_list(l, n, "", 2, end) != count || given == -2)
        return 0;
    const int steps = mlo_lane_list(l, n, "", 4, step);
    for (int i = 0; i < count; i++) {
        const int64_t axis = given < 0 ? i : axes[i] < 0 ? axes[i] + x.rank : axes[i];
        if (axis != at.axis) continue;
        if (l->batch == 1 && count == 1 && y.dims[axis] == 1)
            return mlo_lane_becomes(l, n, "Identity", NULL) && mlo_lane_all(l, n, at.axis, at);
        if (start[i] || end[i] < x.dims[axis] || (steps >= 0 && step[i] != 1)) return 0;
    }
    return steps != -2 && mlo_lane_all(l, n, at.axis, at);
}

/* Is it said already what a node reads there? */
static int mlo_lane_edited(const mlo_lanes *l, const mlo_node *n, size_t k) {
    for (size_t i = l->n_edit; i--;)
        if (l->edit[i].node == n && l->edit[i].input == k) return 1;
    return 0;
}
/* A constant of one part, which no broadcast repeats: it is there for all of them. */
static int mlo_lane_repeats(mlo_lanes *l, mlo_node *n, size_t k, mlo_lane at) {
    const mlo_value *v = mlo_value_of(l->g, n->input[k]);
    const int64_t parts = at.outer * l->to * at.inner;
    mlo_array *one = v->tensor ? mlo_tensor_load(l->m, v->tensor) : NULL, *all = NULL;
    if (one && one->dims[at.axis] == 1) {
        int64_t dims[MLO_MAX_RANK], rows = 1;
        for (int i = 0; i < one->rank; i++) dims[i] = i == at.axis ? parts : one->dims[i];
        for (int i = 0; i < at.axis; i++) rows *= dims[i];
        all = mlo_array_new(l->m, one->dtype, one->rank, dims);
        const size_t bytes = all && rows
            ? (size_t)(mlo_array_count(one) / rows) * mlo_dtype_size(one->dtype)
            : 0;
        for (int64_t i = 0; all && i < rows * parts; i++)
            memcpy((char *)all->data + (size_t)i * bytes,
                (const char *)one->data + (size_t)(i / parts) * bytes, bytes);
    }
    mlo_array_free(l->m, one);
    return mlo_lane_edits(l, n, k, all);
}

/* Operands that have the batch in one place, and something else along an axis. */
static int mlo_lane_gather_elements(mlo_lanes *l, mlo_node *n) {
    const mlo_form y = mlo_form_of(mlo_value_of(l->g, n->output[0]));
    const int64_t axis = mlo_int(n, "axis", 0);
    mlo_lane of = mlo_no_lane;
    int right;
    if (!mlo_lane_broadcast(l, n, 0, &of, &right) || of.axis == (axis < 0 ? axis + y.rank : axis))
        return 0;
    for (size_t k = 0; k < n->n_input && l->batch == 1; k++)
        if (mlo_has_input(n, k) && mlo_lane_in(l, n, k).axis < 0 && !mlo_lane_edited(l, n, k)
            && !mlo_lane_repeats(l, n, k, of))
            return 0;
    return mlo_lane_all(l, n, of.axis, of);
}
static int mlo_lane_concat(mlo_lanes *l, mlo_node *n) {
    return mlo_lane_pairs(l, n) || mlo_lane_gather_elements(l, n);
}

/* Sizes to expand to, pads and repeats leave the batch as it is. */
static int mlo_lane_expand(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const mlo_form x = mlo_lane_form(l, n, 0);
    int64_t to[MLO_MAX_LIST];
    const int rank = mlo_lane_list(l, n, "", 1, to), axis = rank - x.rank + at.axis;
    if (at.axis < 0 || rank < 0) return 0;
    if (axis >= 0 && to[axis] != 1) to[axis] = at.outer * l->to * at.inner;
    return mlo_lane_says(l, n, 1, to, rank)
        && mlo_lane_all(l, n, (rank > x.rank ? rank : x.rank) - x.rank + at.axis, at);
}
static int mlo_lane_tile(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    int64_t list[MLO_MAX_LIST];
    return at.axis >= 0 && mlo_lane_list(l, n, "", 1, list) > at.axis && list[at.axis] == 1
        && mlo_lane_all(l, n, at.axis, at);
}
static int mlo_lane_pad(mlo_lanes *l, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    const int rank = mlo_lane_form(l, n, 0).rank;
    int64_t list[MLO_MAX_LIST];
    if (at.axis < 0 || mlo_has_input(n, 3)) return 0;
    if (mlo_lane_list(l, n, "pads", 1, list) != 2 * rank) return 0;
    return !list[at.axis] && !list[rank + at.axis] && mlo_lane_all(l, n, at.axis, at);
}

static int mlo_lane_softmax(mlo_lanes *l, mlo_node *n) { return mlo_lane_along(l, n, -1, 0); }
static int mlo_lane_norm(mlo_lanes *l, mlo_node *n) { return mlo_lane_along(l, n, -1, 1); }
static int mlo_lane_split(mlo_lanes *l, mlo_node *n) { return mlo_lane_along(l, n, 0, 0); }

static const struct {
    const char *op;
    int (*rule)(mlo_lanes *l, mlo_node *n);
} mlo_lane_rules[] = {
    { "Add", mlo_lane_sum },
    { "And", mlo_lane_elements },
    { "Xor", mlo_lane_elements },
    { "BitwiseAnd", mlo_lane_elements },
    { "BitwiseOr", mlo_lane_elements },
    { "BitwiseXor", mlo_lane_elements },
    { "BitwiseNot", mlo_lane_elements },
    { "Mod", mlo_lane_elements },
    { "Sum", mlo_lane_elements },
    { "Mean", mlo_lane_elements },
    { "PRelu", mlo_lane_elements },
    { "IsInf", mlo_lane_elements },
    { "CastLike", mlo_lane_elements },
    { "Or", mlo_lane_elements },
    { "Not", mlo_lane_elements },
    { "Equal", mlo_lane_elements },
    { "Cast", mlo_lane_elements },
    { "IsNaN", mlo_lane_elements },
    { "Sin", mlo_lane_elements },
    { "Cos", mlo_lane_elements },
    { "QuantizeLinear", mlo_lane_quantized },
    { "DequantizeLinear", mlo_lane_quantized },
    { "MatMul", mlo_lane_matmul },
    { "Gemm", mlo_lane_gemm },
    { "Transpose", mlo_lane_transpose },
    { "Softmax", mlo_lane_softmax },
    { "LogSoftmax", mlo_lane_softmax },
    { "LayerNormalization", mlo_lane_norm },
    { "RMSNormalization", mlo_lane_norm },
    { "ReduceMean", mlo_lane_reduce },
    { "ReduceSum", mlo_lane_reduce },
    { "ReduceMax", mlo_lane_reduce },
    { "ReduceMin", mlo_lane_reduce },
    { "ReduceProd", mlo_lane_reduce },
    { "ReduceL1", mlo_lane_reduce },
    { "ReduceL2", mlo_lane_reduce },
    { "ReduceLogSumExp", mlo_lane_reduce },
    { "ReduceSumSquare", mlo_lane_reduce },
    { "ArgMax", mlo_lane_best },
    { "ArgMin", mlo_lane_best },
    { "CumSum", mlo_lane_so_far },
    { "Conv", mlo_lane_first },
    { "MaxPool", mlo_lane_first },
    { "AveragePool", mlo_lane_first },
    { "GlobalAveragePool", mlo_lane_first },
    { "GlobalMaxPool", mlo_lane_first },
    { "ConvTranspose", mlo_lane_first },
    { "BatchNormalization", mlo_lane_first },
    { "InstanceNormalization", mlo_lane_first },
    { "GroupNormalization", mlo_lane_first },
    { "Gather", mlo_lane_gather },
    { "GatherND", mlo_lane_gather_nd },
    { "GatherElements", mlo_lane_gather_elements },
    { "Slice", mlo_lane_slice },
    { "Split", mlo_lane_split },
    { "Concat", mlo_lane_concat },
    { "Expand", mlo_lane_expand },
    { "Tile", mlo_lane_tile },
    { "Pad", mlo_lane_pad },
};

/* Does the node do the same with each element of what it broadcasts? */
static int mlo_lane_is_elements(const mlo_node *n) {
    for (size_t i = 0; i < sizeof mlo_lane_rules / sizeof *mlo_lane_rules; i++)
        if (mlo_is(n, mlo_lane_rules[i].op))
            return mlo_lane_rules[i].rule == mlo_lane_elements
                || mlo_lane_rules[i].rule == mlo_lane_sum;
    return mlo_has_trait(n, MLO_ELEMENTWISE);
}

/* Where the batch is behind a node. 0: the node does not treat it part by part. */
static int mlo_lane_node(mlo_lanes *l, mlo_node *n) {
    int carried = 0, done = 0;
    const int ruled = l->rule ? l->rule(l, n, &done) : 0;
    if (done) return ruled;
    for (size_t k = 0; k < n->n_input; k++) carried |= mlo_lane_in(l, n, k).axis >= 0;
    for (size_t a = 0; a < n->n_attr; a++)
        if (n->attr[a]->g || n->attr[a]->n_graphs)
            return 0; /* what it reads from outside is not followed */
    if (!carried) return 1;
    if (!n->n_output || !mlo_has_input(n, 0)) return 0;
    if (n->domain && *n->domain && !mlo_eq(n->domain, "ai.onnx")) return 0;
    for (size_t i = 0; i < sizeof mlo_lane_rules / sizeof *mlo_lane_rules; i++)
        if (mlo_is(n, mlo_lane_rules[i].op)) return mlo_lane_rules[i].rule(l, n);
    if (mlo_has_trait(n, MLO_RESHAPES)) return mlo_lane_reshape(l, n);
    return mlo_has_trait(n, MLO_ELEMENTWISE) && mlo_lane_elements(l, n);
}

/* ---- the model ------------------------------------------------------------ */

/* The types of these values say as many parts as there are now. */
static void mlo_lane_types(const mlo_lanes *l, mlo_value_info **list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const mlo_lane at = mlo_lane_of(l, list[i]->name);
        const mlo_type *type = at.axis >= 0 ? list[i]->type : NULL;
        mlo_shape *s = type && type->tensor ? type->tensor->shape : NULL;
        if (s && (size_t)at.axis < s->n_dim) s->dim[at.axis].value = at.outer * l->to * at.inner;
    }
}

/* A Transpose that brings an axis to another place. */
static mlo_node *mlo_lane_turn(mlo_lanes *l, const mlo_node *like, const char *in, const char *out,
    int rank, int from, int into) {
    int64_t perm[MLO_MAX_RANK];
    mlo_node *n = mlo_node_new(l->m, "Transpose", out);
    for (int d = 0, k = 0; d < rank; d++) {
        k += k == from;
        perm[d] = d == into ? from : k++;
    }
    if (!n || mlo_node_input(l->m, n, in) || mlo_node_output(l->m, n, out)
        || mlo_node_meta(l->m, n, like))
        return NULL;
    mlo_attr_ints(l->m, n, "perm", perm, (size_t)rank);
    return n;
}

/* What is turned, by a name of its own. */
static const char *mlo_lane_turned(const mlo_lanes *l, const char *of) {
    size_t number = 0;
    return mlo_name_new(l->m, l->g, of, "turned", &number);
}

/* The node with what moves in front of it and behind. */
static int mlo_lane_turns(mlo_lanes *l, const mlo_lane_edit *e, mlo_graph *to) {
    mlo_node *n = e->node;
    const char *out = n->output[0];
    const int had = mlo_form_of(mlo_value_of(l->g, n->input[0])).rank,
              rank = mlo_form_of(mlo_value_of(l->g, out)).rank;
    const char *first = e->from ? mlo_lane_turned(l, n->input[0]) : NULL;
    if (first) {
        MLO_TRY(mlo_graph_add(l->m, to, mlo_lane_turn(l, n, n->input[0], first, had, e->from, 0)));
        n->input[0] = first;
    }
    const char *made = e->into ? mlo_lane_turned(l, out) : NULL;
    if (made) n->output[0] = made;
    MLO_TRY(mlo_graph_add(l->m, to, n));
    return made ? mlo_graph_add(l->m, to, mlo_lane_turn(l, n, made, out, rank, 0, e->into))
                : mlo_failed(l->m);
}

/* Nodes that move parts come among the others. */
static int mlo_lane_turn_all(mlo_lanes *l) {
    mlo_graph all = { 0 };
    for (size_t i = 0; i < l->g->n_node; i++) {
        const mlo_lane_edit *e = NULL;
        for (size_t k = 0; k < l->n_edit && !e; k++)
            if (l->edit[k].node == l->g->node[i] && (l->edit[k].from || l->edit[k].into))
                e = &l->edit[k];
        MLO_TRY(e ? mlo_lane_turns(l, e, &all) : mlo_graph_add(l->m, &all, l->g->node[i]));
    }
    l->g->node = all.node;
    l->g->n_node = all.n_node;
    return 0;
}

/* Nodes and types say as many parts as there are to be; the index is stale. */
static int mlo_lane_write(mlo_lanes *l) {
    mlo *m = l->m;
    mlo_graph *g = l->g;
    for (size_t i = 0; i < l->n_edit; i++) {
        const mlo_lane_edit *e = &l->edit[i];
        size_t number = i;
        const char *name = e->value ? mlo_name_new(m, g, e->node->output[0], "of_one", &number)
                                    : e->name;
        if (e->value && (!name || mlo_graph_init(m, g, mlo_tensor_from(m, name, e->value))))
            return mlo_failed(m);
        if (e->op) {
            e->node->op = mlo_intern(m, e->op);
            e->node->n_input = 1;
            e->node->n_attr = 0;
        }
        if (e->op && name)
            MLO_TRY(mlo_node_input(m, e->node, name));
        else if (name)
            e->node->input[e->input] = name;
    }
    MLO_TRY(mlo_lane_turn_all(l));
    mlo_lane_types(l, g->input, g->n_input);
    mlo_lane_types(l, g->output, g->n_output);
    mlo_lane_types(l, g->info, g->n_info);
    return mlo_failed(m);
}

/* Makes the model one of so many. */
static int mlo_lane_apply(mlo_lanes *l) {
    MLO_TRY(mlo_lane_write(l));
    return mlo_drop_dead(l->m, l->g) || mlo_index(l->m, l->g) || mlo_infer(l->m);
}

static void mlo_lane_free(mlo_lanes *l) {
    for (size_t i = 0; i < l->n_edit; i++) mlo_array_free(l->m, l->edit[i].value);
    l->n_edit = 0;
}
