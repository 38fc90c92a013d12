/* real_rows: operators of floats that go by rows: products, windows, norms, softmax, reductions; and the table of
 * all operators of floats that C has.
 *
 * in:  a node (real.c), its operands' values.
 * out: the step that makes its result.
 *
 * invariant: sums are made as mlo makes them (ops/nn.c): products 64 at a time in floats, statistics of norms and
 *     reductions in doubles, in the order in which numbers lie.
 * example: Gemm: mlo_multiply_f32_f32_f32, then the bias, mlo_float_sum_each_f32_f32_f32, in place.
 * cost: O(nodes).
 */

/* ---- products ------------------------------------------------------------------------------- */

/* Matrices by their steps, along two more axes. */
typedef struct {
    int64_t m;
    int64_t k;
    int64_t n;
    int64_t xs[2]; /* elements from row to row, from column to column */
    int64_t ws[2];
    int batch; /* axes in front */
    mlo_flat_value *y;
} mlo_float_matrices;

/* Parts of a product: of several products one each, of one its rows, if all lies row by row. */
static void mlo_float_product_parts(mlo_flat *f, mlo_flat_step *s, const mlo_flat_value *x,
    const mlo_flat_value *w, const mlo_float_matrices *r, int64_t all) {
    const int64_t of_x = r->m * r->k, of_w = r->k * r->n;
    const int own = all > 1 && w->count == all * of_w;
    const char *const apart = mlo_format(
        f->m, "%s, %s", mlo_flat_list(f->m, r->xs, 2), mlo_flat_list(f->m, r->ws, 2));
    if (x->count != all * of_x || !(own || w->count == of_w)) return;
    if (all > 1) {
        s->units = all;
        s->part = mlo_format(f->m,
            "&(const mlo_matrices){ { 1, n }, %lld, %lld, %lld, { 0, %lld }, { 0, %lld }, %s }, ",
            (long long)r->m, (long long)r->k, (long long)r->n, (long long)of_x,
            own ? (long long)of_w : 0, apart);
        s->unit[0] = of_x;
        s->unit[1] = own ? of_w : 0;
        s->unit[MLO_FLAT_OPERANDS] = r->m * r->n;
    } else if (r->xs[1] == 1) {
        s->units = r->m;
        s->part = mlo_format(f->m,
            "&(const mlo_matrices){ { 1, 1 }, n, %lld, %lld, { 0, 0 }, { 0, 0 }, %s }, ",
            (long long)r->k, (long long)r->n, apart);
        s->unit[0] = r->k;
        s->unit[MLO_FLAT_OPERANDS] = r->n;
        s->rows = r->ws[1] == 1 ? r->m : 0;
        s->terms = r->k;
        s->channels = r->n;
    }
}

static int mlo_float_multiply(
    mlo_flat *f, mlo_flat_value *x, mlo_flat_value *w, const mlo_float_matrices *r) {
    mlo_walk walk = mlo_walk_over(r->batch, r->y->dims);
    int64_t batch[2] = { 1, 1 }, step[2][2] = { { 0 } };
    mlo_walk_add(&walk, x->rank > 2 ? x->rank - 2 : 0, x->dims);
    mlo_walk_add(&walk, w->rank > 2 ? w->rank - 2 : 0, w->dims);
    mlo_walk_merge(&walk);
    if (walk.rank > 2) return mlo_flat_refuse(f, "matrices along more than two axes");
    for (int i = 0; i < walk.rank; i++) {
        batch[2 - walk.rank + i] = walk.dims[i];
        step[0][2 - walk.rank + i] = walk.step[0][i] * r->m * r->k;
        step[1][2 - walk.rank + i] = walk.step[1][i] * r->k * r->n;
    }
    mlo_flat_step *s = mlo_flat_step_new(f, "c/multiply.c", "mlo_multiply", r->y);
    if (!s) return mlo_failed(f->m);
    s->before = mlo_format(f->m, "&(const mlo_matrices){ %s, %lld, %lld, %lld, %s, %s, %s, %s }, ",
        mlo_flat_list(f->m, batch, 2), (long long)r->m, (long long)r->k, (long long)r->n,
        mlo_flat_list(f->m, step[0], 2), mlo_flat_list(f->m, step[1], 2),
        mlo_flat_list(f->m, r->xs, 2), mlo_flat_list(f->m, r->ws, 2));
    mlo_float_product_parts(f, s, x, w, r, batch[0] * batch[1]);
    return mlo_flat_operand(f, s, x) ? mlo_failed(f->m) : mlo_flat_operand(f, s, w);
}

/* Two operands of floats; 0: refused. */
static int mlo_float_pair(mlo_flat *f, mlo_flat_value **x, mlo_flat_value **w) {
    *x = mlo_flat_in(f, 0);
    *w = mlo_flat_in(f, 1);
    if (*x && *w && (*x)->dtype == MLO_FLOAT && (*w)->dtype == MLO_FLOAT) return 1;
    mlo_flat_refuse(f, "products of such a type");
    return 0;
}

static int mlo_float_matmul(mlo_flat *f) {
    mlo_flat_value *x, *w, *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    if (!y || !mlo_float_pair(f, &x, &w)) return mlo_failed(f->m);
    const int64_t k = x->dims[x->rank - 1], n = w->rank > 1 ? w->dims[w->rank - 1] : 1;
    const int64_t m = x->rank > 1 ? x->dims[x->rank - 2] : 1;
    mlo_float_matrices r = { m, k, n, { k, 1 }, { n, 1 }, y->rank - (x->rank > 1) - (w->rank > 1),
        y };
    if (w->rank <= 2 && x->rank > 1) { /* one matrix for all: taller, not more, products */
        r.m = x->count / k;
        r.batch = 0;
    }
    return mlo_float_multiply(f, x, w, &r);
}

/* y = y times, or plus, v, in place. */
static int mlo_float_then(mlo_flat *f, const char *exact, mlo_flat_value *v) {
    mlo_flat_value *y = mlo_flat_of(f, f->node->output[0]);
    return v ? mlo_float_each(f, exact, MLO_ITEMS(mlo_flat_value *, y, v), 2, NULL)
             : mlo_failed(f->m);
}
static int mlo_float_gemm(mlo_flat *f) {
    mlo_flat_value *x, *w, *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    mlo_flat_value *bias = mlo_flat_in(f, 2);
    const float alpha = mlo_float(f->node, "alpha", 1), beta = mlo_float(f->node, "beta", 1);
    if (!y || !mlo_float_pair(f, &x, &w)) return mlo_failed(f->m);
    if (x->rank > 2) {
        MLO_TRY(mlo_float_matmul(f));
    } else {
        const int tx = mlo_int(f->node, "transA", 0) != 0, tw = mlo_int(f->node, "transB", 0) != 0;
        const int64_t dims[2] = { w->dims[1], w->dims[0] }, step[2] = { 1, w->dims[1] };
        const int moved = tw && w->fixed;
        if (moved && !(w = mlo_flat_moved(f, w, 2, dims, step))) return mlo_failed(f->m);
        const int64_t n = y->dims[1];
        mlo_float_matrices r = { y->dims[0], x->dims[!tx], n, { x->dims[1], 1 }, { n, 1 }, 0, y };
        if (tx) r.xs[0] = 1;
        if (tx) r.xs[1] = x->dims[1];
        if (tw && !moved) r.ws[0] = 1;
        if (tw && !moved) r.ws[1] = w->dims[1];
        MLO_TRY(mlo_float_multiply(f, x, w, &r));
    }
    if (mlo_differs((double)alpha, 1))
        MLO_TRY(mlo_float_then(f, "mlo_real_product", mlo_float_constant(f, alpha)));
    if (bias && mlo_differs((double)beta, 1)) return mlo_flat_refuse(f, "a beta that is not 1");
    return bias ? mlo_float_then(f, "mlo_real_sum", bias) : 0;
}

/* ---- windows ---------------------------------------------------------------------------------- */

/* A bias goes along the channels. */
static mlo_flat_value *mlo_float_channels(mlo_flat *f, const mlo_flat_value *v, int rank) {
    mlo_flat_value *y = mlo_flat_new(f, NULL);
    int64_t dims[MLO_MAX_RANK] = { v->count };
    if (!y) return NULL;
    *y = *v;
    if (v->of == v) y->of = v->fixed ? y : v->of;
    y->name = NULL;
    for (int i = 1; i < rank - 1; i++) dims[i] = 1;
    mlo_flat_form(y, rank - 1, dims);
    return y;
}
static int mlo_float_conv(mlo_flat *f) {
    mlo_flat_value *x, *w, *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    mlo_flat_value *bias = mlo_flat_in(f, 2);
    const int64_t groups = mlo_int(f->node, "group", 1);
    if (!y || !mlo_float_pair(f, &x, &w)) return mlo_failed(f->m);
    mlo_flat_step *s = mlo_flat_step_new(f, "c/convolve.c", "mlo_convolve", y);
    if (!s
        || mlo_flat_window(f, s, x, w->dims + 2, groups, x->dims[1] / groups, w->dims[0] / groups)
        || mlo_flat_operand(f, s, x) || mlo_flat_operand(f, s, w))
        return mlo_failed(f->m);
    return bias ? mlo_float_then(f, "mlo_real_sum", mlo_float_channels(f, bias, y->rank)) : 0;
}
static int mlo_float_mean_pool(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    int64_t kernel[2 * MLO_MAX_RANK] = { 0 };
    if (!x || !y || !mlo_flat_ints(f, "kernel_shape", -1, kernel))
        return mlo_flat_refuse(f, "a window without a shape");
    const int all = mlo_int(f->node, "count_include_pad", 0) != 0;
    if (all && mlo_int(f->node, "ceil_mode", 0))
        return mlo_flat_refuse(f, "windows beyond padding that counts");
    mlo_flat_step *s = mlo_flat_step_new(f, "c/mean.c", "mlo_mean", y);
    if (!s || mlo_flat_window(f, s, x, kernel, x->dims[1], 1, 1)) return mlo_failed(f->m);
    s->also = mlo_format(f->m, "%d, ", all);
    return mlo_flat_operand(f, s, x);
}

/* ---- norms, softmax ----------------------------------------------------------------------------- */

/* What goes along an axis is made by itself for each place in front of that. */
static void mlo_float_axis_parts(mlo_flat_step *s, const int64_t *size, const char *behind) {
    s->units = size[0];
    s->part = behind;
    s->unit[0] = size[1] * size[2];
    s->unit[MLO_FLAT_OPERANDS] = s->out->count / size[0];
}

/* x's numbers in front of an axis, along it, behind it; below opset 13 a softmax has all behind in a row. */
static int mlo_float_axis(
    mlo_flat *f, const mlo_flat_value *x, int64_t axis, int flat, int64_t *size) {
    if (axis < 0) axis += x->rank;
    if (x->rank && (axis < 0 || axis >= x->rank)) return mlo_flat_refuse(f, "such an axis");
    size[0] = size[1] = size[2] = 1;
    for (int i = 0; i < x->rank; i++) size[i < axis ? 0 : i == axis || flat ? 1 : 2] *= x->dims[i];
    return 0;
}
static int mlo_float_softmax_of(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    const int flat = mlo_opset_of(f->m) < 13;
    int64_t size[3];
    if (!x || x->dtype != MLO_FLOAT) return mlo_flat_refuse(f, "it of such a type");
    MLO_TRY(mlo_float_axis(f, x, mlo_int(f->node, "axis", flat ? 1 : -1), flat, size));
    mlo_flat_step *s = mlo_flat_step_new(
        f, "c/softmax.c", "mlo_softmax", mlo_flat_result(f, mlo_from_to(0, 0), 0));
    if (!s) return mlo_failed(f->m);
    s->over = 1;
    s->before = mlo_format(f->m, "%lld, %lld, %lld, %d, ", (long long)size[0], (long long)size[1],
        (long long)size[2], mlo_is(f->node, "LogSoftmax"));
    mlo_float_axis_parts(s, size,
        mlo_format(f->m, "n, %lld, %lld, %d, ", (long long)size[1], (long long)size[2],
            mlo_is(f->node, "LogSoftmax")));
    return mlo_flat_operand(f, s, x);
}

/* Rows of n, normalised; weights w and b (NULL: none), each for `div` numbers that lie together, the same again
 * behind `period` rows. */
typedef struct {
    int64_t n;
    int64_t period;
    double epsilon;
    int mean;
} mlo_float_norm;

/* Rows that have all weights among them; where there are just these, each row with its own. */
static void mlo_float_norm_parts(mlo_flat *f, mlo_flat_step *s, const mlo_float_norm *r,
    mlo_flat_value *const *x, const char *behind) {
    const int64_t rows = s->out->count / r->n;
    int own = rows == r->period;
    for (int k = 1; k < 3; k++) own &= !x[k] || x[k]->count % rows == 0;
    const int64_t each = own ? 1 : r->period;
    s->units = rows / each;
    s->unit[0] = s->unit[MLO_FLAT_OPERANDS] = r->n * each;
    for (int k = 1; own && k < 3; k++) s->unit[k] = x[k] ? x[k]->count / rows : 0;
    s->part = own ? mlo_format(f->m, "n, %lld, n%s", (long long)r->n, behind)
                  : mlo_format(f->m, "n * %lld, %lld, %lld%s", (long long)each, (long long)r->n,
                        (long long)each, behind);
}
static int mlo_float_normalized(mlo_flat *f, const mlo_float_norm *r, mlo_flat_value *const *x) {
    mlo_flat_value *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    mlo_flat_step *s = mlo_flat_step_new(f, "c/normalize.c", "mlo_normalize", y);
    int64_t div[2] = { 1, 1 };
    if (!s) return mlo_failed(f->m);
    for (int k = 0; k < 3; k++)
        if ((!k || x[k]) && (!x[k] || x[k]->dtype != MLO_FLOAT))
            return mlo_flat_refuse(f, "it of such a type");
    for (int k = 1; k < 3; k++) {
        const int64_t all = r->n * r->period;
        if (x[k] && (x[k]->count > all || all % x[k]->count))
            return mlo_flat_refuse(f, "weights of that form");
        div[k - 1] = x[k] ? all / x[k]->count : 1;
    }
    s->over = 1;
    s->scratch = 8 * r->n;
    const char *const behind = mlo_format(f->m, ", %d, %s, %lld, %lld, ", r->mean,
        mlo_or_empty(mlo_decimal(f->m, "%.17g", r->epsilon)), (long long)div[0], (long long)div[1]);
    s->before = mlo_format(f->m, "%lld, %lld, %lld%s", (long long)(y->count / r->n),
        (long long)r->n, (long long)r->period, behind);
    mlo_float_norm_parts(f, s, r, x, behind);
    for (int k = 0; k < 3; k++) MLO_TRY(mlo_flat_operand(f, s, x[k]));
    return 0;
}
static int mlo_float_row_norm(mlo_flat *f, int mean) {
    mlo_flat_value *x[3] = { mlo_flat_in(f, 0), mlo_flat_in(f, 1), mlo_flat_in(f, 2) };
    int64_t size[3];
    if (!x[0]) return mlo_flat_refuse(f, "a missing operand");
    MLO_TRY(mlo_float_axis(f, x[0], mlo_int(f->node, "axis", -1), 1, size));
    for (int k = 1; k < 3; k++)
        if (x[k] && x[k]->count != 1 && x[k]->count != size[1])
            return mlo_flat_refuse(f, "weights that do not lie along the row");
    const mlo_float_norm r = { size[1], 1, (double)mlo_float(f->node, "epsilon", 1e-5f), mean };
    return mlo_float_normalized(f, &r, x);
}
static int mlo_float_layer_norm(mlo_flat *f) { return mlo_float_row_norm(f, 1); }
static int mlo_float_rms_norm(mlo_flat *f) { return mlo_float_row_norm(f, 0); }
/* Deeploy's; its epsilon, 1e-6, is nowhere said. */
static int mlo_float_deeploy_norm(mlo_flat *f) {
    mlo_flat_value *x[3] = { mlo_flat_in(f, 0), mlo_flat_in(f, 1), NULL };
    if (!x[0] || !x[1] || x[1]->count != x[0]->dims[x[0]->rank - 1])
        return mlo_flat_refuse(f, "weights that do not lie along the row");
    const mlo_float_norm r = { x[1]->count, 1, 1e-6, 0 };
    return mlo_float_normalized(f, &r, x);
}
static int mlo_float_group_norm(mlo_flat *f) {
    mlo_flat_value *x[3] = { mlo_flat_in(f, 0), mlo_flat_in(f, 1), mlo_flat_in(f, 2) };
    if (!x[0] || !x[1] || !x[2] || x[0]->rank < 2) return mlo_flat_refuse(f, "a missing operand");
    const int64_t groups = mlo_is(f->node, "InstanceNormalization")
        ? x[0]->dims[1]
        : mlo_int(f->node, "num_groups", 1);
    const mlo_float_norm r = { x[0]->count / x[0]->dims[0] / groups, groups,
        (double)mlo_float(f->node, "epsilon", 1e-5f), 1 };
    return mlo_float_normalized(f, &r, x);
}
/* Channels of one picture, or pictures. */
static void mlo_float_channel_parts(mlo_flat *f, mlo_flat_step *s, const mlo_flat_value *x) {
    const int one = x->dims[0] == 1;
    const long long channels = (long long)x->dims[1],
                    each = (long long)x->count / (long long)x->dims[0] / channels;
    const char *const behind = mlo_format(f->m, "%lld, %s, ", each,
        mlo_or_empty(mlo_decimal(f->m, "%.17g", (double)mlo_float(f->node, "epsilon", 1e-5f))));
    s->before = mlo_format(f->m, "%lld, %lld, %s", (long long)x->dims[0], channels, behind);
    s->part = one ? mlo_format(f->m, "1, n, %s", behind)
                  : mlo_format(f->m, "n, %lld, %s", channels, behind);
    s->units = x->dims[one];
    s->unit[0] = s->unit[MLO_FLAT_OPERANDS] = x->count / s->units;
    for (int k = 1; k < MLO_FLAT_OPERANDS; k++) s->unit[k] = one;
}
static int mlo_float_batch_norm(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *y = mlo_flat_result(f, mlo_from_to(0, 0), 0);
    mlo_flat_step *s = mlo_flat_step_new(f, "c/batchnorm.c", "mlo_batch_norm", y);
    if (!s || !x || x->rank < 2) return mlo_flat_refuse(f, "a missing operand");
    s->over = 1;
    mlo_float_channel_parts(f, s, x);
    for (size_t k = 0; k < 5; k++) {
        mlo_flat_value *v = mlo_flat_in(f, k);
        if (!v || v->dtype != MLO_FLOAT || (k && v->count != x->dims[1]))
            return mlo_flat_refuse(f, "weights of that form");
        MLO_TRY(mlo_flat_operand(f, s, v));
    }
    return 0;
}

/* ---- many to one ------------------------------------------------------------------------------ */

static const struct {
    const char *op;
    const char *how;
    const char *finish; /* of the double z */
} mlo_float_reductions[] = { { "ReduceSum", "MLO_SUM", "z" }, { "ReduceMean", "MLO_SUM", "z / t" },
    { "ReduceMax", "MLO_MOST", "z" }, { "ReduceMin", "MLO_LEAST", "z" },
    { "ReduceProd", "MLO_PRODUCT", "z" }, { "ReduceSumSquare", "MLO_SQUARES", "z" },
    { "ReduceL1", "MLO_ABSOLUTES", "z" }, { "ReduceL2", "MLO_SQUARES", "sqrt(z)" },
    { "ReduceLogSum", "MLO_SUM", "log(z)" } };
enum { MLO_REAL_REDUCTIONS = sizeof mlo_float_reductions / sizeof *mlo_float_reductions };

/* Four axes of those that are flagged so. */
static int mlo_float_axes(
    mlo_flat *f, const mlo_flat_value *x, const int *flag, int as, int64_t *n, int64_t *step) {
    int64_t own[MLO_MAX_RANK];
    mlo_walk w = mlo_walk_over(0, x->dims);
    mlo_steps(x->rank, x->dims, own);
    w.n = 1;
    for (int i = 0; i < x->rank; i++)
        if (flag[i] == as) {
            w.dims[w.rank] = x->dims[i];
            w.step[0][w.rank++] = own[i];
        }
    mlo_walk_merge(&w);
    if (w.rank > 4) return mlo_flat_refuse(f, "reductions of more than four axes");
    for (int i = 0; i < 4; i++) {
        n[i] = i < 4 - w.rank ? 1 : w.dims[i - 4 + w.rank];
        step[i] = i < 4 - w.rank ? 0 : w.step[0][i - 4 + w.rank];
    }
    return 0;
}
/* Along what stays and lies outermost: the first axis of more than one, if the others are within its steps. */
static void mlo_float_reduced_parts(
    mlo_flat *f, mlo_flat_step *s, const mlo_flat_value *x, int64_t n[2][4], int64_t step[2][4]) {
    int i = 0;
    while (i < 3 && n[0][i] == 1) i++;
    if (n[0][i] * step[0][i] != x->count) return;
    s->units = n[0][i];
    s->part = mlo_format(f->m, "&(const mlo_axes){ %s, %s, %s, %s }, ",
        mlo_flat_list_of_n(f->m, n[0], 4, i), mlo_flat_list(f->m, step[0], 4),
        mlo_flat_list(f->m, n[1], 4), mlo_flat_list(f->m, step[1], 4));
    s->unit[0] = step[0][i];
    s->unit[MLO_FLAT_OPERANDS] = s->out->count / s->units;
}
static int mlo_float_reduce(mlo_flat *f, int which) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    int64_t axes[2 * MLO_MAX_RANK], n[2][4], step[2][4];
    int flag[MLO_MAX_RANK] = { 0 };
    if (!x) return mlo_flat_refuse(f, "a missing operand");
    const int given = mlo_flat_ints(f, "axes", 1, axes);
    const int all = !given && !mlo_int(f->node, "noop_with_empty_axes", 0);
    for (int i = 0; i < x->rank; i++) flag[i] = all;
    for (int i = 0; i < given; i++) flag[axes[i] < 0 ? axes[i] + x->rank : axes[i]] = 1;
    MLO_TRY(mlo_float_axes(f, x, flag, 0, n[0], step[0]));
    MLO_TRY(mlo_float_axes(f, x, flag, 1, n[1], step[1]));
    const char *finish = mlo_float_reductions[which].finish;
    if (x->dtype != MLO_FLOAT && !mlo_eq(finish, "z"))
        return mlo_flat_refuse(f, "it of whole numbers");
    mlo_flat_step *s = mlo_flat_step_new(f, "c/combine.c",
        mlo_format(f->m, "mlo_%s", mlo_float_reductions[which].op),
        mlo_flat_result(f, mlo_from_to(0, 0), 0));
    if (!s) return mlo_failed(f->m);
    s->before = mlo_format(f->m, "&(const mlo_axes){ %s, %s, %s, %s }, ",
        mlo_flat_list(f->m, n[0], 4), mlo_flat_list(f->m, step[0], 4), mlo_flat_list(f->m, n[1], 4),
        mlo_flat_list(f->m, step[1], 4));
    s->how = mlo_float_reductions[which].how;
    s->finish = finish;
    mlo_float_reduced_parts(f, s, x, n, step);
    return mlo_flat_operand(f, s, x);
}

/* What goes along an axis in one of two ways, twice. */
static void mlo_float_along_axis(
    mlo_flat *f, mlo_flat_step *s, const int64_t *size, int how, int also) {
    const char *const behind = mlo_format(
        f->m, "%lld, %lld, %d, %d, ", (long long)size[1], (long long)size[2], how, also);
    s->before = mlo_format(f->m, "%lld, %s", (long long)size[0], behind);
    mlo_float_axis_parts(s, size, mlo_format(f->m, "n, %s", behind));
}
static int mlo_float_extreme(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    int64_t size[3];
    if (!x) return mlo_flat_refuse(f, "a missing operand");
    MLO_TRY(mlo_float_axis(f, x, mlo_int(f->node, "axis", 0), 0, size));
    mlo_flat_step *s = mlo_flat_step_new(
        f, "c/extreme.c", "mlo_extreme", mlo_flat_result(f, mlo_from_to(0, 0), 0));
    if (!s) return mlo_failed(f->m);
    mlo_float_along_axis(f, s, size, mlo_is(f->node, "ArgMin") ? -1 : 1,
        mlo_int(f->node, "select_last_index", 0) != 0);
    return mlo_flat_operand(f, s, x);
}
static int mlo_float_cumsum(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    int64_t size[3], axis[2 * MLO_MAX_RANK];
    if (!x || mlo_flat_ints(f, NULL, 1, axis) != 1) return mlo_flat_refuse(f, "such an axis");
    MLO_TRY(mlo_float_axis(f, x, axis[0], 0, size));
    mlo_flat_step *s = mlo_flat_step_new(
        f, "c/cumsum.c", "mlo_cumsum", mlo_flat_result(f, mlo_from_to(0, 0), 0));
    if (!s) return mlo_failed(f->m);
    mlo_float_along_axis(
        f, s, size, mlo_int(f->node, "exclusive", 0) != 0, mlo_int(f->node, "reverse", 0) != 0);
    return mlo_flat_operand(f, s, x);
}

/* ---- the table ------------------------------------------------------------------------------------ */

static const struct {
    const char *op;
    int (*steps)(mlo_flat *f);
} mlo_float_ops[] = { { "Greater", mlo_float_greater },
    { "GreaterOrEqual", mlo_float_greater_equal }, { "Gelu", mlo_float_gelu },
    { "Where", mlo_float_where }, { "Clip", mlo_float_clip }, { "Cast", mlo_float_cast },
    { "CastLike", mlo_float_cast }, { "QuantizeLinear", mlo_float_quantize_linear },
    { "DequantizeLinear", mlo_float_dequantize_linear }, { "Expand", mlo_float_expand },
    { "Split", mlo_float_split }, { "Pad", mlo_float_pad }, { "Gather", mlo_float_gather },
    { "GatherND", mlo_float_gather_nd }, { "MatMul", mlo_float_matmul }, { "Gemm", mlo_float_gemm },
    { "Conv", mlo_float_conv }, { "MaxPool", mlo_flat_pool },
    { "AveragePool", mlo_float_mean_pool }, { "Softmax", mlo_float_softmax_of },
    { "LogSoftmax", mlo_float_softmax_of }, { "LayerNormalization", mlo_float_layer_norm },
    { "RMSNormalization", mlo_float_rms_norm }, { "GroupNormalization", mlo_float_group_norm },
    { "InstanceNormalization", mlo_float_group_norm },
    { "BatchNormalization", mlo_float_batch_norm }, { "ArgMax", mlo_float_extreme },
    { "ArgMin", mlo_float_extreme }, { "CumSum", mlo_float_cumsum },
    { "Reshape", mlo_flat_reshape }, { "Flatten", mlo_flat_reshape },
    { "Squeeze", mlo_flat_reshape }, { "Unsqueeze", mlo_flat_reshape },
    { "Identity", mlo_flat_reshape }, { "Dropout", mlo_flat_reshape },
    { "Transpose", mlo_flat_transpose }, { "Slice", mlo_flat_slice },
    { "Concat", mlo_flat_concat } };

/* mlo's own operators, and Deeploy's two of floats. */
static const struct {
    const char *op;
    int (*steps)(mlo_flat *f);
} mlo_float_own[] = { { "Quantize", mlo_float_quantize }, { "Dequantize", mlo_float_dequantize },
    { "RMSNorm", mlo_float_deeploy_norm } };

static int mlo_float_own_node(mlo_flat *f, const mlo_node *n) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    for (size_t i = 0; i < sizeof mlo_float_own / sizeof *mlo_float_own; i++)
        if (mlo_eq(n->op, mlo_float_own[i].op)) return mlo_float_own[i].steps(f);
    if (mlo_eq(n->op, "HardSwish")) return mlo_float_each(f, "mlo_real_hard_swish", &x, 1, NULL);
    return mlo_flat_refuse(f, "this operator; it is of integers in floats (leave --whole out)");
}

/* A second result (indices, statistics, a mask) is made by no step; parts are. */
static int mlo_float_results(mlo_flat *f, const mlo_node *n) {
    for (size_t i = 1; i < n->n_output && !mlo_is(n, "Split"); i++)
        if (*n->output[i] && mlo_map_get(&f->wanted, n->output[i]))
            return mlo_flat_refuse(f, mlo_format(f->m, "its result %zu", i));
    return 0;
}

static int mlo_float_node(mlo_flat *f, const mlo_node *n) {
    f->node = n;
    MLO_TRY(mlo_flat_may(f));
    MLO_TRY(mlo_float_results(f, n));
    if (mlo_eq(n->domain, "mlo")) return mlo_float_own_node(f, n);
    for (size_t i = 0; i < sizeof mlo_float_ops / sizeof *mlo_float_ops; i++)
        if (mlo_is(n, mlo_float_ops[i].op)) return mlo_float_ops[i].steps(f);
    for (size_t i = 0; i < sizeof mlo_float_numbers / sizeof *mlo_float_numbers; i++)
        if (mlo_is(n, mlo_float_numbers[i].op))
            return mlo_float_number_steps(f, &mlo_float_numbers[i]);
    for (int i = 0; i < MLO_REAL_REDUCTIONS; i++)
        if (mlo_is(n, mlo_float_reductions[i].op)) return mlo_float_reduce(f, i);
    return mlo_flat_refuse(f, "this operator");
}
