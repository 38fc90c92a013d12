/* flat_ops: the operators that C has, each to its steps.
 *
 * in:  a node, its operands' values.
 * out: its results' ends and types; the steps that make them, or views where nothing is to be done.
 *
 * invariant: ends hold every sum on the way to a result, in any order; one that 64 bits might not hold is
 *     refused.
 * example: RequantShift: mlo_requant_shift_i32_i16_i32_i8(&grid, x, mul, add, y, {div, -128, 127}).
 * cost: O(parameters).
 */

/* ---- pieces --------------------------------------------------------------------------------- */

static const char *mlo_flat_list(mlo *m, const int64_t *v, int n) {
    const char *all = "{ ";
    for (int i = 0; i < n; i++)
        all = mlo_format(m, "%s%s%lld", all, i ? ", " : "", (long long)v[i]);
    return mlo_format(m, "%s }", all);
}

/* The same list, but for what is called n at `at`. */
static const char *mlo_flat_list_of_n(mlo *m, const int64_t *v, int n, int at) {
    const char *all = "{ ";
    for (int i = 0; i < n; i++)
        all = i == at ? mlo_format(m, "%s%sn", all, i ? ", " : "")
                      : mlo_format(m, "%s%s%lld", all, i ? ", " : "", (long long)v[i]);
    return mlo_format(m, "%s }", all);
}

/* The node's result, of these ends; of the model's own types, it has that. */
static mlo_flat_value *mlo_flat_result(mlo_flat *f, mlo_interval ends, int whole) {
    mlo_flat_value *y = mlo_flat_of(f, f->node->output[f->output]);
    if (!y) {
        mlo_flat_refuse(f, "a result without a name");
        return NULL;
    }
    if (f->real) return y;
    if (!mlo_holds(ends)) {
        mlo_fail(f->m, MLO_E_UNSUPPORTED, f->node,
            "its numbers may be %lld .. %lld, more than 64 bits hold; scale its operands down",
            (long long)ends.lo, (long long)ends.hi);
        return NULL;
    }
    y->whole = whole;
    y->ends = ends;
    y->dtype = whole ? mlo_flat_type(ends) : MLO_FLOAT;
    return y;
}

/* A step to begin with: parameters among operands are known as such. */
static mlo_flat_step *mlo_flat_step_new(
    mlo_flat *f, const char *text, const char *kind, mlo_flat_value *out) {
    mlo_flat_step s;
    memset(&s, 0, sizeof s);
    s.node = f->node;
    s.text = text;
    s.kind = kind;
    s.before = s.also = "";
    s.out = out;
    if (!out || !MLO_PUSH(f->m, f->step, f->n_step, s)) return NULL;
    return &f->step[f->n_step - 1];
}
static int mlo_flat_operand(mlo_flat *f, mlo_flat_step *s, mlo_flat_value *x) {
    s->in[s->n_in++] = x;
    if (x && !x->dtype) return mlo_flat_refuse(f, "operands of such a type; cast them to float");
    if (x && x->fixed && !mlo_flat_parameter(f, x)) return mlo_failed(f->m);
    return 0;
}

/* The result is `at` elements behind the operand's beginning, as it lies. */
static int mlo_flat_view(mlo_flat *f, mlo_flat_value *x, int64_t at) {
    mlo_flat_value *y = mlo_flat_result(f, x->ends, x->whole);
    if (!y) return mlo_failed(f->m);
    y->dtype = x->dtype;
    y->of = x->of;
    y->at = x->at + at;
    if (!x->fixed) return 0;
    return mlo_flat_refuse(f, "a view of a parameter");
}

/* An operand of whole numbers; NULL, and refused: it is missing, or of floats. */
static mlo_flat_value *mlo_flat_whole(mlo_flat *f, size_t operand, const char *otherwise) {
    mlo_flat_value *x = mlo_flat_in(f, operand);
    if (x && (x->whole || f->real)) return x;
    mlo_flat_refuse(f, otherwise);
    return NULL;
}

/* A list of an attribute, or of a fixed input. */
static int mlo_flat_ints(const mlo_flat *f, const char *attr, int input, int64_t *list) {
    const mlo_attr *a = attr ? mlo_attr_of(f->node, attr) : NULL;
    const mlo_flat_value *v = input < 0 ? NULL : mlo_flat_in(f, (size_t)input);
    if (v && v->fixed && v->whole && v->count <= MLO_MAX_RANK * 2) {
        memcpy(list, v->number->data, (size_t)v->count * sizeof *list);
        return (int)v->count;
    }
    if (!a || a->n_ints > MLO_MAX_RANK * 2) return 0;
    if (a->n_ints) memcpy(list, a->ints, a->n_ints * sizeof *list);
    return (int)a->n_ints;
}

/* ---- number by number ------------------------------------------------------------------------ */

/* Four axes that x and up to two more go along. */
static int mlo_flat_grid(mlo_flat *f, mlo_flat_step *s, const mlo_flat_value *y) {
    mlo_walk w = mlo_walk_over(y->rank, y->dims);
    int64_t n[4] = { 1, 1, 1, 1 }, step[3][4] = { { 0 } };
    for (int k = 0; k < s->n_in; k++) mlo_walk_add(&w, s->in[k]->rank, s->in[k]->dims);
    mlo_walk_merge(&w);
    if (w.rank > 4) return mlo_flat_refuse(f, "operands that go along more than four axes");
    for (int i = 0; i < w.rank; i++) {
        n[4 - w.rank + i] = w.dims[i];
        for (int k = 0; k < w.n; k++) step[k][4 - w.rank + i] = w.step[k][i];
    }
    memcpy(s->grid_size, n, sizeof n);
    memcpy(s->grid, step, sizeof step);
    int axis = 0;
    while (axis < 3 && n[axis] == 1) axis++;
    const char *const steps = mlo_format(f->m, "%s, %s, %s", mlo_flat_list(f->m, step[0], 4),
        mlo_flat_list(f->m, step[1], 4), mlo_flat_list(f->m, step[2], 4));
    const char *const form = "&(const mlo_grid){ %s, %s }, ";
    s->before = mlo_format(f->m, form, mlo_flat_list(f->m, n, 4), steps);
    s->part = mlo_format(f->m, form, mlo_flat_list_of_n(f->m, n, 4, axis), steps);
    s->units = n[axis];
    for (int k = 0; k < s->n_in; k++) s->unit[k] = step[k][axis];
    s->unit[MLO_FLAT_OPERANDS] = y->count / n[axis];
    return 0;
}

static int mlo_flat_each(mlo_flat *f, mlo_flat_value *y, const char *exact,
    mlo_flat_value *const *x, int n, const int64_t *p) {
    mlo_flat_step *s = mlo_flat_step_new(f, "c/each.c", exact, y);
    if (!s) return mlo_failed(f->m);
    s->exact = exact;
    s->over = 1;
    s->numbers = p ? mlo_flat_list(f->m, p, MLO_DIALECT_NUMBERS) : NULL;
    for (int k = 0; k < n; k++) MLO_TRY(mlo_flat_operand(f, s, x[k]));
    return mlo_flat_grid(f, s, y);
}

/* What a standard operator makes of ranges. */
static mlo_interval mlo_flat_sum(const mlo_interval *in) { return mlo_sum_of(in[0], in[1]); }
static mlo_interval mlo_flat_difference(const mlo_interval *in) {
    return mlo_sum_of(in[0], mlo_negative(in[1]));
}
static mlo_interval mlo_flat_product(const mlo_interval *in) {
    return mlo_product_of(in[0], in[1]);
}
/* Towards zero; by nothing that can be zero. */
static mlo_interval mlo_flat_quotient(const mlo_interval *in) {
    const int64_t most = mlo_max(-in[0].lo, in[0].hi);
    return in[1].lo > 0 ? mlo_from_to(in[0].lo < 0 ? -most : 0, in[0].hi > 0 ? most : 0)
                        : mlo_from_to(-INT64_MAX, INT64_MAX);
}
static mlo_interval mlo_flat_rest(const mlo_interval *in) {
    return in[1].lo > 0 ? mlo_from_to(0, in[1].hi - 1) : mlo_from_to(-INT64_MAX, INT64_MAX);
}
static mlo_interval mlo_flat_larger(const mlo_interval *in) {
    return mlo_from_to(mlo_max(in[0].lo, in[1].lo), mlo_max(in[0].hi, in[1].hi));
}
static mlo_interval mlo_flat_smaller(const mlo_interval *in) {
    return mlo_negative(
        mlo_flat_larger(MLO_ITEMS(mlo_interval, mlo_negative(in[0]), mlo_negative(in[1]))));
}
static mlo_interval mlo_flat_within(const mlo_interval *in) {
    return mlo_from_to(
        mlo_clip(in[0].lo, in[1].lo, in[2].lo), mlo_clip(in[0].hi, in[1].hi, in[2].hi));
}
static mlo_interval mlo_flat_positive(const mlo_interval *in) {
    return mlo_from_to(mlo_max(0, in[0].lo), mlo_max(0, in[0].hi));
}
static mlo_interval mlo_flat_same(const mlo_interval *in) { return in[0]; }

typedef struct {
    const char *op;
    int operands;
    const char *exact; /* of whole numbers */
    const char *real; /* of floats; NULL: there is none */
    mlo_interval (*ends)(const mlo_interval *in);
} mlo_flat_number;

static const mlo_flat_number mlo_flat_numbers_known[] = {
    { "Add", 2, "mlo_sum", "mlo_real_sum", mlo_flat_sum },
    { "Sub", 2, "mlo_difference", "mlo_real_difference", mlo_flat_difference },
    { "Mul", 2, "mlo_product", "mlo_real_product", mlo_flat_product },
    { "Div", 2, "mlo_quotient", "mlo_real_quotient", mlo_flat_quotient },
    { "Mod", 2, "mlo_rest", NULL, mlo_flat_rest },
    { "Max", 2, "mlo_larger", NULL, mlo_flat_larger },
    { "Min", 2, "mlo_smaller", NULL, mlo_flat_smaller },
    { "Clip", 3, "mlo_within", "mlo_real_within", mlo_flat_within },
    { "Relu", 1, "mlo_positive", "mlo_real_positive", mlo_flat_positive },
    { "Round", 1, "mlo_same", "mlo_real_round", mlo_flat_same },
    { "Floor", 1, "mlo_same", NULL, mlo_flat_same },
};

/* Div of floats is no integer division. */
static int mlo_flat_is_real(const mlo_flat *f, const mlo_flat_number *o, mlo_flat_value **x) {
    const mlo_value *y = mlo_value_of(f->g, f->node->output[0]);
    for (int k = 0; k < o->operands; k++)
        if (x[k]->dtype == MLO_FLOAT) return 1;
    return mlo_is(f->node, "Div") && mlo_dtype_is_float(mlo_form_of(y).dtype);
}

static int mlo_flat_number_steps(mlo_flat *f, const mlo_flat_number *o) {
    mlo_flat_value *x[MLO_FLAT_EACH];
    mlo_interval in[MLO_FLAT_EACH];
    if ((int)f->node->n_input != o->operands) return mlo_flat_refuse(f, "so many operands");
    for (int k = 0; k < o->operands; k++) {
        if (!(x[k] = mlo_flat_in(f, (size_t)k))) return mlo_flat_refuse(f, "a missing operand");
        in[k] = x[k]->ends;
    }
    const int real = mlo_flat_is_real(f, o, x);
    if (real && !o->real) return mlo_flat_refuse(f, "floats");
    const int clips = real && mlo_is(f->node, "Clip") && x[0]->whole && x[1]->whole && x[2]->whole;
    const mlo_interval ends = clips ? mlo_from_to(in[1].lo, in[2].hi)
        : real                      ? mlo_from_to(0, 0)
                                    : o->ends(in);
    mlo_flat_value *y = mlo_flat_result(f, ends, !real || clips);
    if (!y) return mlo_failed(f->m);
    if (real && mlo_is(f->node, "Round")) y->whole = 1;
    return mlo_flat_each(f, y, real ? o->real : o->exact, x, o->operands, NULL);
}

/* ---- Deeploy's operators --------------------------------------------------------------------- */

/* A norm's weights lie along its row. */
static int mlo_flat_norm(mlo_flat *f, const mlo_dialect *d, mlo_flat_value **x, mlo_flat_value *y,
    int64_t n, const int64_t *p) {
    mlo_flat_step *s = mlo_flat_step_new(f, "c/inorm.c", "mlo_inorm", y);
    if (!s) return mlo_failed(f->m);
    for (int k = 1; k < d->operands; k++)
        if (!x[k]->fixed || x[k]->count != n)
            return mlo_flat_refuse(f, "weights that do not lie along the last axis");
    s->exact = d->exact;
    s->over = 1;
    s->before = mlo_format(
        f->m, "%lld, %lld, %d, ", (long long)(y->count / n), (long long)n, d->norm > 1);
    s->part = mlo_format(f->m, "n, %lld, %d, ", (long long)n, d->norm > 1);
    s->units = y->count / n;
    s->unit[0] = s->unit[MLO_FLAT_OPERANDS] = n;
    s->numbers = mlo_flat_list(f->m, p, MLO_DIALECT_NUMBERS);
    for (int k = 0; k < 3; k++) MLO_TRY(mlo_flat_operand(f, s, k < d->operands ? x[k] : NULL));
    return 0;
}
static int mlo_flat_rows(mlo_flat *f, const mlo_dialect *d, mlo_flat_value *x, mlo_flat_value *y,
    int64_t n, const int64_t *p) {
    mlo_flat_step *s = mlo_flat_step_new(f, "c/rows.c", d->exact, y);
    if (!s) return mlo_failed(f->m);
    s->exact = d->exact;
    s->over = 1;
    s->scratch = 8 * n;
    s->before = mlo_format(f->m, "%lld, %lld, ", (long long)(y->count / n), (long long)n);
    s->part = mlo_format(f->m, "n, %lld, ", (long long)n);
    s->units = y->count / n;
    s->unit[0] = s->unit[MLO_FLAT_OPERANDS] = n;
    s->numbers = mlo_flat_list(f->m, p, MLO_DIALECT_NUMBERS);
    return mlo_flat_operand(f, s, x);
}

static int mlo_flat_dialect(mlo_flat *f, const mlo_dialect *d) {
    const mlo_array *in[(int)MLO_FLAT_EACH + MLO_DIALECT_NUMBERS] = { NULL };
    mlo_flat_value *x[MLO_FLAT_EACH];
    mlo_interval ends[MLO_FLAT_EACH] = { { 0, 0 } }; /* of an operand that there is not: 0 */
    mlo_interval all;
    int64_t p[MLO_DIALECT_NUMBERS] = { 0 };
    if (!d->operands) return mlo_flat_refuse(f, "this operator of floats");
    for (size_t k = 0; k < f->node->n_input && k < sizeof in / sizeof *in; k++) {
        mlo_flat_value *v = mlo_flat_in(f, k);
        if (!v || !v->whole) return mlo_flat_refuse(f, "floats");
        in[k] = v->fixed ? v->number : NULL;
        if (k < (size_t)d->operands) ends[k] = v->ends;
        if (k < (size_t)d->operands) x[k] = v;
    }
    MLO_TRY(mlo_dialect_prepare(f->m, f->node, d, in, f->node->n_input, p));
    mlo_flat_value *y = mlo_flat_of(f, f->node->output[0]);
    const int64_t n = y && y->rank ? y->dims[y->rank - 1] : 1;
    MLO_TRY(mlo_dialect_bounds(f->m, f->node, d, ends, p, n, &all));
    if (!(y = mlo_flat_result(f, all, 1))) return mlo_failed(f->m);
    return d->norm ? mlo_flat_norm(f, d, x, y, n, p)
        : d->row   ? mlo_flat_rows(f, d, x[0], y, n, p)
                   : mlo_flat_each(f, y, d->exact, x, d->operands, p);
}

/* ---- products ---------------------------------------------------------------------------------- */

/* A sum of n products of x by numbers of w, `step` apart, from `at`; and every sum on the way. */
static mlo_interval mlo_flat_dot(
    mlo_interval x, const mlo_flat_value *w, int64_t at, int64_t step, int64_t n) {
    const int64_t *v = (const int64_t *)w->number->data;
    mlo_interval sum = { 0, 0 };
    for (int64_t i = 0; i < n; i++) {
        const mlo_interval one = mlo_product_of(x, mlo_just(v[at + i * step]));
        sum = mlo_sum_of(sum, mlo_from_to(one.lo < 0 ? one.lo : 0, one.hi > 0 ? one.hi : 0));
    }
    return sum;
}
static mlo_interval mlo_flat_union(mlo_interval a, mlo_interval b) {
    return mlo_from_to(a.lo < b.lo ? a.lo : b.lo, mlo_max(a.hi, b.hi));
}

/* w's columns, each with its number of the bias. */
static mlo_interval mlo_flat_columns(const mlo_flat_value *x, const mlo_flat_value *w,
    const mlo_flat_value *bias, int64_t k, int64_t n) {
    if (!w->fixed || (bias && !bias->fixed) || (bias && bias->count != n)) {
        const mlo_interval all = mlo_sum_of_many(k, mlo_product_of(x->ends, w->ends));
        return bias ? mlo_flat_union(bias->ends, mlo_sum_of(all, bias->ends)) : all;
    }
    mlo_interval all = { 0, 0 };
    for (int64_t c = 0; c < w->count / k; c++) {
        const mlo_interval sum = mlo_flat_dot(x->ends, w, c / n * n * k + c % n, n, k);
        const int64_t b = bias ? ((const int64_t *)bias->number->data)[c % n] : 0;
        all = mlo_flat_union(all, mlo_sum_of(sum, mlo_just(b)));
    }
    return all;
}

/* Sums are kept in 32 bits at least: so no product wraps that is added to them. */
static mlo_flat_value *mlo_flat_sums(mlo_flat *f, mlo_interval ends) {
    mlo_flat_value *y = mlo_flat_result(f, ends, 1);
    if (y && mlo_dtype_size(y->dtype) < 4) y->dtype = MLO_INT32;
    return y;
}

/* A step of sums by channels, of `inner` numbers each: x, w, a bias or none; what is done with each sum
 * takes up to two more (flat_fuse.c), here nothing is. */
static int mlo_flat_sum_step(
    mlo_flat *f, mlo_flat_step *s, mlo_flat_value *const *x, int64_t inner, int64_t channels) {
    s->exact = "mlo_same";
    s->also = "0, 0, ";
    s->sum = s->out->dtype;
    s->inner = inner;
    s->channels = channels;
    for (int k = 0; k < MLO_FLAT_OPERANDS; k++)
        MLO_TRY(mlo_flat_operand(f, s, k < MLO_FLAT_EACH ? x[k] : NULL));
    return 0;
}

/* Elements from one matrix to the next, along the two axes in front of them. */
static int mlo_flat_batch(
    mlo_flat *f, const mlo_flat_value *x, const mlo_flat_value *y, int64_t *step) {
    int64_t whole = x->rank > 1 ? x->dims[x->rank - 1] * x->dims[x->rank - 2] : x->count;
    step[0] = step[1] = 0;
    for (int back = 3; back <= y->rank; back++) {
        const int64_t n = back <= x->rank ? x->dims[x->rank - back] : 1;
        if (back > 4 && y->dims[y->rank - back] > 1)
            return mlo_flat_refuse(f, "matrices along more than two axes");
        if (back <= 4) step[4 - back] = n > 1 ? whole : 0;
        whole *= n;
    }
    return 0;
}

/* Parts of a product: matrices, if w has them, too; else rows, if all lie one behind the other. */
static void mlo_flat_matrix_parts(mlo_flat *f, mlo_flat_step *s, mlo_flat_value *const *x,
    const int64_t *batch, int64_t bias_row) {
    const int64_t k = x[0]->dims[x[0]->rank - 1], n = x[1]->dims[x[1]->rank - 1];
    const int64_t all = batch[0] * batch[1], m = s->out->count / (all * n);
    const int matrices = all > 1 && x[1]->count == all * k * n;
    if (x[0]->count != all * m * k || !(matrices || x[1]->count == k * n)) return;
    if (bias_row && all > 1) return;
    s->rows = matrices ? 0 : all * m;
    s->terms = k;
    s->bias_row = bias_row;
    s->units = matrices ? all : all * m;
    s->part = matrices
        ? mlo_format(f->m,
              "&(const mlo_products){ { 1, n }, %lld, %lld, %lld, { 0, %lld }, { 0, %lld }, 0 }, ",
              (long long)m, (long long)k, (long long)n, (long long)(m * k), (long long)(k * n))
        : mlo_format(f->m,
              "&(const mlo_products){ { 1, 1 }, n, %lld, %lld, { 0, 0 }, { 0, 0 }, %lld }, ",
              (long long)k, (long long)n, (long long)bias_row);
    s->unit[0] = matrices ? m * k : k;
    s->unit[1] = matrices ? k * n : 0;
    s->unit[2] = bias_row;
    s->unit[MLO_FLAT_OPERANDS] = matrices ? m * n : n;
}

static int mlo_flat_matrices(
    mlo_flat *f, mlo_flat_value *x, mlo_flat_value *w, mlo_flat_value *bias, int64_t bias_row) {
    const int64_t k = x->dims[x->rank - 1], n = w->dims[w->rank - 1];
    mlo_flat_value *y = mlo_flat_sums(f, mlo_flat_columns(x, w, bias, k, n));
    mlo_flat_step *s = mlo_flat_step_new(f, "c/product.c", "mlo_matmul", y);
    int64_t xs[2], ws[2], batch[2] = { 1, 1 };
    if (!s || mlo_flat_batch(f, x, y, xs) || mlo_flat_batch(f, w, y, ws)) return mlo_failed(f->m);
    for (int i = 0; i < 2; i++)
        if (y->rank > 3 - i) batch[i] = y->dims[y->rank - 4 + i];
    s->before = mlo_format(f->m, "&(const mlo_products){ %s, %lld, %lld, %lld, %s, %s, %lld }, ",
        mlo_flat_list(f->m, batch, 2), (long long)(y->count / (batch[0] * batch[1] * n)),
        (long long)k, (long long)n, mlo_flat_list(f->m, xs, 2), mlo_flat_list(f->m, ws, 2),
        (long long)bias_row);
    mlo_flat_matrix_parts(f, s, MLO_ITEMS(mlo_flat_value *, x, w, bias), batch, bias_row);
    return mlo_flat_sum_step(f, s, MLO_ITEMS(mlo_flat_value *, x, w, bias), 1, n);
}

static int mlo_flat_matmul(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_whole(f, 0, "products of floats");
    mlo_flat_value *w = mlo_flat_whole(f, 1, "products of floats");
    if (!x || !w) return mlo_failed(f->m);
    if (x->rank < 2 || w->rank < 2) return mlo_flat_refuse(f, "products of vectors");
    return mlo_flat_matrices(f, x, w, NULL, 0);
}

static int mlo_flat_gemm(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_whole(f, 0, "products of floats");
    mlo_flat_value *w = mlo_flat_whole(f, 1, "products of floats");
    mlo_flat_value *bias = mlo_flat_in(f, 2) ? mlo_flat_whole(f, 2, "a bias of floats") : NULL;
    if (f->m->error.code) return mlo_failed(f->m);
    if (mlo_differs((double)mlo_float(f->node, "alpha", 1), 1)
        || mlo_differs((double)mlo_float(f->node, "beta", 1), 1))
        return mlo_flat_refuse(f, "alpha and beta that are not 1");
    if (mlo_int(f->node, "transA", 0)) return mlo_flat_refuse(f, "transA");
    if (mlo_int(f->node, "transB", 0)) {
        const int64_t dims[2] = { w->dims[1], w->dims[0] }, step[2] = { 1, w->dims[1] };
        if (!w->fixed) return mlo_flat_refuse(f, "transB of a matrix that is not fixed");
        if (!(w = mlo_flat_moved(f, w, 2, dims, step))) return mlo_failed(f->m);
    }
    if (bias && bias->count != w->dims[1] && bias->count != w->dims[1] * x->dims[0])
        return mlo_flat_refuse(f, "a bias of that shape");
    return mlo_flat_matrices(f, x, w, bias, bias && bias->count > w->dims[1] ? w->dims[1] : 0);
}

/* ---- windows ---------------------------------------------------------------------------------- */

/* Channels of a group from which on what a window sees is gathered. */
enum { MLO_FLAT_PATCHED = 4 };

/* One number for each axis of the picture: of two, or of one, which is the second. */
static void mlo_flat_pair(
    const mlo_flat *f, const char *attr, int spatial, int64_t otherwise, int64_t *at) {
    int64_t list[2 * MLO_MAX_RANK] = { 0 };
    const int n = mlo_flat_ints(f, attr, -1, list);
    at[0] = n && spatial > 1 ? list[0] : otherwise;
    at[1] = n ? list[spatial - 1] : otherwise;
}

/* Parts of what a window goes over: channels of the result of one picture; of groups, these. */
static void mlo_flat_window_parts(mlo_flat *f, mlo_flat_step *s, const int64_t *w) {
    const int grouped = w[1] > 1,
              pools = mlo_eq(s->text, "c/pool.c") || mlo_eq(s->text, "c/mean.c");
    const int64_t each = w[2] * w[8] * w[9];
    if (w[0] != 1) return;
    s->part = mlo_format(f->m, "&(const mlo_window)%s, ",
        mlo_flat_list_of_n(f->m, w, MLO_FLAT_WINDOW, grouped || pools ? 1 : 3));
    s->units = grouped || pools ? w[1] : w[3];
    s->unit[0] = grouped || pools ? w[2] * w[4] * w[5] : 0;
    s->unit[1] = pools ? 0 : grouped ? w[3] * each : each;
    s->unit[2] = pools ? 0 : grouped ? w[3] : 1;
    s->unit[MLO_FLAT_OPERANDS] = (grouped ? w[3] : 1) * w[6] * w[7];
}

/* The members of mlo_window; channels of a group: in, out. */
static int mlo_flat_window(mlo_flat *f, mlo_flat_step *s, const mlo_flat_value *x,
    const int64_t *kernel, int64_t groups, int64_t in, int64_t out) {
    const mlo_flat_value *y = s->out;
    const int spatial = x->rank - 2;
    int64_t w[MLO_FLAT_WINDOW] = { x->dims[0], groups, in, out, 1, 1, 1, 1 };
    if (spatial != 1 && spatial != 2) return mlo_flat_refuse(f, "windows of that rank");
    if (!mlo_string_is(f->node, "auto_pad", "NOTSET", 1))
        return mlo_flat_refuse(f, "auto_pad other than NOTSET");
    for (int i = 2 - spatial; i < 2; i++) {
        w[4 + i] = x->dims[x->rank - 2 + i];
        w[6 + i] = y->dims[y->rank - 2 + i];
    }
    w[8] = spatial > 1 ? kernel[0] : 1;
    w[9] = kernel[spatial - 1];
    mlo_flat_pair(f, "strides", spatial, 1, w + 10);
    int64_t pads[2 * MLO_MAX_RANK] = { 0 };
    if (mlo_flat_ints(f, "pads", -1, pads)) {
        w[12] = spatial > 1 ? pads[0] : 0;
        w[13] = pads[spatial - 1];
    }
    mlo_flat_pair(f, "dilations", spatial, 1, w + 14);
    s->before = mlo_format(
        f->m, "&(const mlo_window)%s, ", mlo_flat_list(f->m, w, MLO_FLAT_WINDOW));
    memcpy(s->window, w, sizeof w);
    mlo_flat_window_parts(f, s, w);
    return mlo_failed(f->m);
}

/* Do 16 bits hold its numbers? */
static int mlo_flat_is_narrow(const mlo_flat_value *x) {
    return x->dtype != MLO_FLOAT && mlo_dtype_size(x->dtype) <= 2;
}

static int mlo_flat_conv(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_whole(f, 0, "convolutions of floats");
    mlo_flat_value *w = mlo_flat_whole(f, 1, "convolutions of floats");
    mlo_flat_value *bias = mlo_flat_in(f, 2) ? mlo_flat_whole(f, 2, "a bias of floats") : NULL;
    const int64_t groups = mlo_int(f->node, "group", 1);
    if (f->m->error.code) return mlo_failed(f->m);
    if (!w->fixed || (bias && !bias->fixed))
        return mlo_flat_refuse(f, "convolutions by what is not fixed");
    const int64_t out = w->dims[0], each = w->count / out;
    mlo_interval ends = { 0, 0 };
    for (int64_t o = 0; o < out; o++) {
        const int64_t b = bias ? ((const int64_t *)bias->number->data)[o] : 0;
        const mlo_interval sum = mlo_flat_dot(x->ends, w, o * each, 1, each);
        ends = mlo_flat_union(ends, mlo_sum_of(sum, mlo_just(b)));
    }
    mlo_flat_value *y = mlo_flat_sums(f, ends);
    const int patches = w->dims[1] >= MLO_FLAT_PATCHED && mlo_flat_is_narrow(x)
        && mlo_flat_is_narrow(w);
    mlo_flat_step *s = patches ? mlo_flat_step_new(f, "c/patches.c", "mlo_conv", y)
                               : mlo_flat_step_new(f, "c/windows.c", "mlo_conv_lines", y);
    if (s && patches) s->scratch = 4 * 2 * each;
    if (!s || mlo_flat_window(f, s, x, w->dims + 2, groups, x->dims[1] / groups, out / groups))
        return mlo_failed(f->m);
    return mlo_flat_sum_step(
        f, s, MLO_ITEMS(mlo_flat_value *, x, w, bias), y->count / y->dims[0] / out, out);
}

static int mlo_flat_pool(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    int64_t kernel[2 * MLO_MAX_RANK] = { 0 };
    if (!x || f->node->n_output != 1 || !mlo_flat_ints(f, "kernel_shape", -1, kernel))
        return mlo_flat_refuse(f, "indices, or a window without a shape");
    mlo_flat_value *y = mlo_flat_result(f, x->ends, x->whole);
    mlo_flat_step *s = mlo_flat_step_new(f, "c/pool.c", "mlo_pool", y);
    if (!s || mlo_flat_window(f, s, x, kernel, x->dims[1], 1, 1)) return mlo_failed(f->m);
    return mlo_flat_operand(f, s, x);
}

/* ---- sums ---------------------------------------------------------------------------------------- */

static int mlo_flat_reduce(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_whole(f, 0, "sums of floats");
    int64_t axes[2 * MLO_MAX_RANK] = { 0 }, size[3] = { 1, 1, 1 };
    const int n = mlo_flat_ints(f, "axes", 1, axes);
    if (!x) return mlo_failed(f->m);
    int first = x->rank, last = -1;
    for (int i = 0; i < n; i++) {
        const int axis = (int)(axes[i] < 0 ? axes[i] + x->rank : axes[i]);
        first = axis < first ? axis : first;
        last = axis > last ? axis : last;
    }
    if (!n || last - first + 1 != n) return mlo_flat_refuse(f, "axes that are not neighbours");
    for (int i = 0; i < x->rank; i++) size[i < first ? 0 : i > last ? 2 : 1] *= x->dims[i];
    mlo_flat_value *y = mlo_flat_sums(f, mlo_sum_of_many(size[1], x->ends));
    mlo_flat_step *s = mlo_flat_step_new(f, "c/reduce.c", "mlo_reduce", y);
    if (!s) return mlo_failed(f->m);
    s->before = mlo_format(
        f->m, "%lld, %lld, %lld, ", (long long)size[0], (long long)size[1], (long long)size[2]);
    s->part = mlo_format(f->m, "n, %lld, %lld, ", (long long)size[1], (long long)size[2]);
    s->units = size[0];
    s->unit[0] = size[1] * size[2];
    s->unit[MLO_FLAT_OPERANDS] = size[2];
    return mlo_flat_operand(f, s, x);
}

/* ---- elements that move -------------------------------------------------------------------------- */

/* Elements go from x, from `start` on, to y, from `to` on, as the walk w has them: of both steps along each axis. */
static int mlo_flat_move_walk(mlo_flat *f, mlo_flat_value *x, int64_t start, mlo_flat_value *y,
    int64_t to, const mlo_walk *w) {
    int64_t n[4] = { 1, 1, 1, 1 }, step[2][4] = { { 0 } };
    for (int i = 0; i < w->rank; i++) {
        n[4 - w->rank + i] = w->dims[i];
        for (int k = 0; k < 2; k++) step[k][4 - w->rank + i] = w->step[k][i];
    }
    mlo_flat_step *s = mlo_flat_step_new(f, "c/move.c", "mlo_move", y);
    if (!s) return mlo_failed(f->m);
    s->before = mlo_format(f->m, "&(const mlo_moves){ %s, %s, %s }, ", mlo_flat_list(f->m, n, 4),
        mlo_flat_list(f->m, step[0], 4), mlo_flat_list(f->m, step[1], 4));
    s->to = to;
    mlo_flat_value *part = start ? mlo_flat_new(f, NULL) : x;
    if (!part) return mlo_failed(f->m);
    if (start && x->fixed) return mlo_flat_refuse(f, "a part of a parameter");
    if (start) {
        *part = *x;
        part->name = NULL;
        part->at += start;
    }
    return mlo_flat_operand(f, s, part);
}

/* Along more than four axes (pixels into patches), place by place of the shortest: so many steps. */
enum { MLO_FLAT_MOVES = 16 };
static int mlo_flat_moves(mlo_flat *f, mlo_flat_value *x, int64_t start, mlo_flat_value *y,
    int64_t to, const mlo_walk *w) {
    if (w->rank <= 4) return mlo_flat_move_walk(f, x, start, y, to, w);
    int axis = 0;
    for (int i = 1; i < w->rank; i++)
        if (w->dims[i] < w->dims[axis]) axis = i;
    if (w->rank > 5 || w->dims[axis] > MLO_FLAT_MOVES)
        return mlo_flat_refuse(f, "elements that move along more than four axes");
    mlo_walk less = *w;
    for (int i = axis; i + 1 < w->rank; i++) {
        less.dims[i] = w->dims[i + 1];
        for (int k = 0; k < 2; k++) less.step[k][i] = w->step[k][i + 1];
    }
    less.rank--;
    for (int64_t i = 0; i < w->dims[axis]; i++)
        MLO_TRY(mlo_flat_move_walk(
            f, x, start + i * w->step[0][axis], y, to + i * w->step[1][axis], &less));
    return 0;
}

/* dims elements of x, from `start` by steps `from`, go to y, from `to` by its own steps. */
static int mlo_flat_move(mlo_flat *f, mlo_flat_value *x, int64_t start, const int64_t *from,
    mlo_flat_value *y, int64_t to, int rank, const int64_t *dims) {
    mlo_walk w = mlo_walk_over(rank, dims);
    int64_t own[MLO_MAX_RANK];
    mlo_steps(y->rank, y->dims, own);
    w.n = 2;
    for (int i = 0; i < rank; i++) {
        w.step[0][i] = from[i];
        w.step[1][i] = own[i];
    }
    mlo_walk_merge(&w);
    return mlo_flat_moves(f, x, start, y, to, &w);
}

/* The result is elements of x, from `start` by steps: a view where they lie so. */
static int mlo_flat_taken(mlo_flat *f, mlo_flat_value *x, int64_t start, const int64_t *from) {
    mlo_flat_value *y = mlo_flat_result(f, x->ends, x->whole);
    int64_t own[MLO_MAX_RANK];
    int dense = 1;
    if (!y) return mlo_failed(f->m);
    mlo_steps(y->rank, y->dims, own);
    for (int i = 0; i < y->rank; i++) dense &= y->dims[i] == 1 || own[i] == from[i];
    if (dense && !x->fixed) return mlo_flat_view(f, x, start);
    return mlo_flat_move(f, x, start, from, y, 0, y->rank, y->dims);
}

static int mlo_flat_reshape(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    return x ? mlo_flat_view(f, x, 0) : mlo_flat_refuse(f, "a missing operand");
}
/* A type says nothing of the numbers; but one that they do not fit would change them. */
static int mlo_flat_cast(mlo_flat *f) {
    const mlo_dtype to = (mlo_dtype)mlo_int(f->node, "to", MLO_FLOAT);
    mlo_flat_value *x = mlo_flat_in(f, 0);
    const int wide = to == MLO_FLOAT || to == MLO_DOUBLE || to == MLO_INT64;
    if (!x || !x->whole || x->dtype == MLO_FLOAT || !(wide || to == MLO_INT32)
        || (to == MLO_INT32 && x->dtype == MLO_INT64))
        return mlo_flat_refuse(f, "a cast that may change numbers");
    return mlo_flat_view(f, x, 0);
}
static int mlo_flat_transpose(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    int64_t perm[2 * MLO_MAX_RANK], own[MLO_MAX_RANK], step[MLO_MAX_RANK];
    if (!x) return mlo_flat_refuse(f, "a missing operand");
    const int n = mlo_flat_ints(f, "perm", -1, perm);
    mlo_steps(x->rank, x->dims, own);
    for (int i = 0; i < x->rank; i++) step[i] = own[n ? perm[i] : x->rank - 1 - i];
    return mlo_flat_taken(f, x, 0, step);
}
static int mlo_flat_slice(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0);
    int64_t starts[2 * MLO_MAX_RANK], axes[2 * MLO_MAX_RANK], steps[2 * MLO_MAX_RANK];
    int64_t own[MLO_MAX_RANK], at = 0;
    if (!x) return mlo_flat_refuse(f, "a missing operand");
    const int n = mlo_flat_ints(f, "starts", 1, starts);
    const int n_axes = mlo_flat_ints(f, "axes", 3, axes);
    const int n_steps = mlo_flat_ints(f, NULL, 4, steps);
    if (!n) return mlo_flat_refuse(f, "a slice that is not fixed");
    mlo_steps(x->rank, x->dims, own);
    for (int i = 0; i < n; i++) {
        const int64_t axis = !n_axes ? i : axes[i] < 0 ? axes[i] + x->rank : axes[i];
        const int64_t from = starts[i] < 0 ? starts[i] + x->dims[axis] : starts[i];
        const int64_t step = n_steps ? steps[i] : 1;
        at += mlo_clip(from, 0, x->dims[axis] - (step < 0)) * own[axis];
        own[axis] *= step;
    }
    return mlo_flat_taken(f, x, at, own);
}
/* One place of an axis. */
static int mlo_flat_gather(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *index = mlo_flat_in(f, 1);
    int64_t own[MLO_MAX_RANK], step[MLO_MAX_RANK] = { 0 };
    if (!x || !index || !index->fixed || index->count != 1 || index->rank > 1)
        return mlo_flat_refuse(f, "more than one place that is fixed");
    int64_t axis = mlo_int(f->node, "axis", 0), at = ((const int64_t *)index->number->data)[0];
    if (axis < 0) axis += x->rank;
    if (at < 0) at += x->dims[axis];
    mlo_steps(x->rank, x->dims, own);
    int k = 0;
    for (int i = 0; i < x->rank; i++)
        if (i != axis || index->rank) step[k++] = own[i];
    return mlo_flat_taken(f, x, at * own[axis], step);
}
static int mlo_flat_concat(mlo_flat *f) {
    int64_t axis = mlo_int(f->node, "axis", 0), at = 0, own[MLO_MAX_RANK];
    mlo_interval ends = { 0, 0 };
    for (size_t i = 0; i < f->node->n_input; i++) {
        const mlo_flat_value *x = mlo_flat_whole(f, i, "parts that are floats");
        if (!x) return mlo_failed(f->m);
        ends = i ? mlo_flat_union(ends, x->ends) : x->ends;
    }
    mlo_flat_value *y = mlo_flat_result(f, ends, 1);
    if (!y) return mlo_failed(f->m);
    if (axis < 0) axis += y->rank;
    for (size_t i = 0; i < f->node->n_input; i++) {
        mlo_flat_value *x = mlo_flat_in(f, i);
        if (f->real && mlo_flat_is_empty(x))
            continue; /* (a step of none reads its argument, at least) */
        mlo_steps(x->rank, x->dims, own);
        int64_t y_own[MLO_MAX_RANK];
        mlo_steps(y->rank, y->dims, y_own);
        MLO_TRY(mlo_flat_move(f, x, 0, own, y, at * y_own[axis], x->rank, x->dims));
        at += x->dims[axis];
    }
    return 0;
}
static int mlo_flat_pad(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_whole(f, 0, "pads around floats");
    mlo_flat_value *with = mlo_flat_in(f, 2) ? mlo_flat_whole(f, 2, "pads of floats") : NULL;
    const mlo_attr *value = mlo_attr_of(f->node, "value");
    int64_t pads[2 * MLO_MAX_RANK], own[MLO_MAX_RANK], at = 0;
    if (f->m->error.code) return mlo_failed(f->m);
    if (!mlo_string_is(f->node, "mode", "constant", 1))
        return mlo_flat_refuse(f, "a mode that is not constant");
    if (mlo_flat_ints(f, "pads", 1, pads) != 2 * x->rank || (with && !with->fixed))
        return mlo_flat_refuse(f, "pads that are not fixed, or axes");
    const int64_t v = with && with->count ? ((const int64_t *)with->number->data)[0]
        : value                           ? (int64_t)value->f
                                          : 0;
    mlo_flat_value *y = mlo_flat_result(f, mlo_flat_union(x->ends, mlo_just(v)), 1);
    mlo_flat_step *s = mlo_flat_step_new(f, "c/fill.c", "mlo_fill", y);
    if (!s) return mlo_failed(f->m);
    s->before = mlo_format(f->m, "%lld, %lld, ", (long long)y->count, (long long)v);
    mlo_steps(y->rank, y->dims, own);
    for (int i = 0; i < x->rank; i++) {
        if (pads[i] < 0 || pads[x->rank + i] < 0) return mlo_flat_refuse(f, "pads that cut");
        at += pads[i] * own[i];
    }
    mlo_steps(x->rank, x->dims, own);
    return mlo_flat_move(f, x, 0, own, y, at, x->rank, x->dims);
}

/* ---- what no operator has C for ------------------------------------------------------------------ */

/* Operands that say forms, axes or places, a bit each: the C is written for what they are. */
static const struct {
    const char *op;
    unsigned operands;
} mlo_flat_sizes[] = { { "Reshape", 2 }, { "Squeeze", 2 }, { "Unsqueeze", 2 }, { "Expand", 2 },
    { "Split", 2 }, { "CumSum", 2 }, { "Slice", 2 + 4 + 8 + 16 }, { "Pad", 2 + 8 } };

static int mlo_flat_is_size(const mlo_node *n, size_t operand) {
    if (!strncmp(n->op, "Reduce", 6)) return operand == 1;
    for (size_t i = 0; i < sizeof mlo_flat_sizes / sizeof *mlo_flat_sizes; i++)
        if (mlo_is(n, mlo_flat_sizes[i].op)) return (mlo_flat_sizes[i].operands >> operand) & 1;
    return 0;
}

/* Said before a node's operator is asked: none divides by how many elements there are, or reads what is not known;
 * and an int counts them. */
static int mlo_flat_may(mlo_flat *f) {
    const mlo_node *n = f->node;
    const mlo_flat_value *y = mlo_flat_of(f, n->output[0]);
    if (y && y->count > INT32_MAX) return mlo_flat_refuse(f, "results of 2^31 elements");
    for (size_t i = 0; i < n->n_input && i < 32; i++) {
        const mlo_flat_value *x = mlo_flat_in(f, i);
        if (!x || x->fixed) continue;
        if (mlo_flat_is_size(n, i))
            return mlo_flat_refuse(f, mlo_format(f->m, "operand %zu that is no constant", i));
        if (mlo_flat_is_empty(x) && !mlo_is(n, "Concat"))
            return mlo_flat_refuse(f, "operands that have no elements");
    }
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------------ */

static const struct {
    const char *op;
    int (*steps)(mlo_flat *f);
} mlo_flat_ops[] = { { "MatMul", mlo_flat_matmul }, { "Gemm", mlo_flat_gemm },
    { "Conv", mlo_flat_conv }, { "MaxPool", mlo_flat_pool }, { "ReduceSum", mlo_flat_reduce },
    { "Reshape", mlo_flat_reshape }, { "Flatten", mlo_flat_reshape },
    { "Squeeze", mlo_flat_reshape }, { "Unsqueeze", mlo_flat_reshape },
    { "Identity", mlo_flat_reshape }, { "Cast", mlo_flat_cast },
    { "Transpose", mlo_flat_transpose }, { "Slice", mlo_flat_slice }, { "Gather", mlo_flat_gather },
    { "Concat", mlo_flat_concat }, { "Pad", mlo_flat_pad } };

static int mlo_flat_node(mlo_flat *f, const mlo_node *n) {
    f->node = n;
    MLO_TRY(mlo_flat_may(f));
    const mlo_dialect *d = mlo_dialect_of(n);
    if (d) return mlo_flat_dialect(f, d);
    for (size_t i = 0; i < sizeof mlo_flat_ops / sizeof *mlo_flat_ops; i++)
        if (mlo_is(n, mlo_flat_ops[i].op)) return mlo_flat_ops[i].steps(f);
    for (size_t i = 0; i < sizeof mlo_flat_numbers_known / sizeof *mlo_flat_numbers_known; i++)
        if (mlo_is(n, mlo_flat_numbers_known[i].op))
            return mlo_flat_number_steps(f, &mlo_flat_numbers_known[i]);
    return mlo_flat_refuse(f, "this operator");
}

/* Steps of all nodes that depend on inputs and that somebody reads. */
static int mlo_flat_steps(mlo_flat *f) {
    for (size_t i = 0; i < f->g->n_node; i++) {
        const mlo_flat_value *y = mlo_flat_of(f, f->g->node[i]->output[0]);
        if (!y || !(y->fixed || mlo_flat_is_empty(y))) MLO_TRY(mlo_flat_node(f, f->g->node[i]));
    }
    return 0;
}
