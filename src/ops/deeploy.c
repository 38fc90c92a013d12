/* deeploy: the integer operators of Deeploy's networks, as functions of domain mlo.
 *
 * in:  nodes like RequantShift(x, mul, add; div, n_levels, signed), of the standard domain or
 *     ai.onnx.contrib: integers, carried in the element type that the model declares, or that x
 *     has.
 * out: mlo.RequantShift(x, mul, add, div, n_levels, signed). Every number is an input, so that
 *     layers that differ in one share a body, and the number becomes a parameter of the loop.
 *
 * Division rounds towards zero, as ONNX's Div of integers does; floor(a / b) is (a - Mod(a, b)) /
 * b.
 *
 * invariant: one definition: mlo evaluates the function that ONNX Runtime runs, node by node, in
 *     64-bit integers. Where these would wrap, or a value would be cut to fit (a fraction, a NaN,
 *     an 8-bit result of 200), ONNX Runtime goes on and mlo refuses: Deeploy means neither. The
 *     result has x's shape: parameters that would widen it are refused. ITAPartialMax, a loop over
 *     groups, has no function: only mlo evaluates it.
 * example: x = 300, mul = 3, add = 0, div = 16, 256 levels, signed: floor((900 + 8) / 16) = 56.
 * cost: some twenty passes over the tensor.
 */
typedef struct {
    mlo_op op;
    const char *function;
    /* the attributes that become inputs, in order, ends with NULL; "a|b": either name */
    const char *const *numbers;
} mlo_dialect;

#define MLO_FLOOR(q, a, b)                                                                 \
    q "_rest = Mod (" a ", " b ")\n" q "_whole = Sub (" a ", " q "_rest)\n" q " = Div (" q \
      "_whole, " b ")\n"
#define MLO_CLIP(y, x, lo, hi)                                                            \
    y "_under = Less (" x ", " lo ")\n" y "_low = Where (" y "_under, " lo ", " x ")\n" y \
      "_over = Greater (" y "_low, " hi ")\n" y " = Where (" y "_over, " hi ", " y "_low)\n"
#define MLO_POWER(d, z)                                                                      \
    d "_base = Constant <value_int=2> ()\n" d "_b = Cast <to=11> (" d "_base)\n" d           \
      "_e = Cast <to=11> (" z ")\n" d "_p = Pow (" d "_b, " d "_e)\n" d " = Cast <to=7> (" d \
      "_p)\n"
#define MLO_INT_NUMBERS \
    "one = Constant <value_int=1> ()\ntwo = Constant <value_int=2> ()\nx = Cast <to=7> (given)\n"
/* n levels around zero: half below it */
#define MLO_LEVELS \
    "half = Div (n, two)\nlow = Neg (half)\nupto = Add (low, n)\nhigh = Sub (upto, one)\n"
#define MLO_ROW_LENGTH \
    "zeros = Sub (x, x)\nones = Add (zeros, one)\nlength = ReduceSum <axes=[-1]> (ones)\n"
#define MLO_ROOT(r, s)                                                                        \
    r "_wide = Cast <to=11> (" s ")\n" r "_root = Sqrt (" r "_wide)\n" r " = Cast <to=7> (" r \
      "_root)\n"

/* floor((x mul + add + div / 2) / div), clipped */
static const char mlo_requant_shift_function[] =
    "RequantShift <to> (given, mul, add, div, n, signed) => (y)\n" MLO_INT_NUMBERS
    "m = Cast <to=7> (mul)\na = Cast <to=7> (add)\nproduct = Mul (x, m)\nsum = Add (product, a)\n"
    "bias = Div (div, two)\nrounded = Add (sum, bias)\n" MLO_FLOOR(
        "q", "rounded", "div") "span = Mul (signed, n)\nhalf = Div (span, two)\nlow = Neg "
                               "(half)\nupto = Add (low, n)\nhigh = Sub (upto, one)\n" MLO_CLIP(
                                   "c", "q", "low", "high") "y = Cast <to=@to> (c)\n";

/* e^x by halving: 2^-z times a parabola */
static const char mlo_isoftmax_function[] =
    "iSoftmax <to> (given, A, B, C, log2, n) => (y)\n" MLO_INT_NUMBERS
    "most = ReduceMax <axes=[-1]> (x)\nxt = Sub (x, most)\ndown = Sub (most, x)\n"
    "steps = Div (down, log2)\nlast = Constant <value_int=31> ()\nbeyond = Greater (steps, "
    "last)\nz = Where (beyond, last, steps)\n"
    "back = Mul (z, log2)\np = Add (xt, back)\nat = Add (p, B)\nsquare = Mul (at, at)\nscaled = "
    "Mul (A, square)\nl = Add (scaled, C)\n" MLO_POWER("d", "z") MLO_FLOOR(
        "e", "l", "d") "top = Sub (n, one)\nlevels = Mul (e, top)\nsum = ReduceSum <axes=[-1]> "
                       "(e)\n" MLO_FLOOR("q", "levels", "sum") "y = Cast <to=@to> (q)\n";

static const char mlo_irmsnorm_function[] =
    "iRMSNorm <to> (given, weight, D, n) => (y)\n" MLO_INT_NUMBERS MLO_ROW_LENGTH
    "w = Cast <to=7> (weight)\nsquare = Mul (x, x)\nsum = ReduceSum <axes=[-1]> (square)\nmean = "
    "Div (sum, length)\ns = Add (mean, one)\n" MLO_ROOT(
        "r", "s") "xw = Mul (x, w)\nt = Div (xw, r)\n" MLO_FLOOR("q", "t", "D")
        MLO_LEVELS MLO_CLIP("c", "q", "low", "high") "y = Cast <to=@to> (c)\n";

static const char mlo_ilayernorm_function[] =
    "iLayerNorm <to> (given, weight, bias, D, n) => (y)\n" MLO_INT_NUMBERS MLO_ROW_LENGTH
    "w = Cast <to=7> (weight)\nb = Cast <to=7> (bias)\ntotal = ReduceSum <axes=[-1]> (x)\nmean = "
    "Div (total, length)\nc0 = Sub (x, mean)\n"
    "square = Mul (c0, c0)\nsum = ReduceSum <axes=[-1]> (square)\nvariance = Div (sum, length)\ns "
    "= Add (variance, one)\n" MLO_ROOT(
        "r", "s") "cw = Mul (c0, w)\nt = Div (cw, r)\ntb = Add (t, b)\n" MLO_FLOOR("q", "tb", "D")
        MLO_LEVELS MLO_CLIP("c", "q", "low", "high") "y = Cast <to=@to> (c)\n";

/* floor((x w + b) mul / D): the place of a norm, without its statistics */
static const char mlo_inonorm_function[] =
    "iNoNorm <to> (given, weight, bias, D, mul, n) => (y)\n" MLO_INT_NUMBERS
    "w = Cast <to=7> (weight)\nb = Cast <to=7> (bias)\nxw = Mul (x, w)\nsum = Add (xw, b)\nt = Mul "
    "(sum, mul)\n" MLO_FLOOR("q", "t", "D")
        MLO_LEVELS MLO_CLIP("c", "q", "low", "high") "y = Cast <to=@to> (c)\n";

static const char mlo_igelu_function[] =
    "iGELU <to> (given, b, unit) => (y)\n" MLO_INT_NUMBERS
    "s = Sign (x)\nsize = Abs (x)\nedge = Neg (b)\nbeyond = Greater (size, edge)\nq = Where "
    "(beyond, edge, size)\n"
    "qb = Add (q, b)\nsquare = Mul (qb, qb)\nunder = Sub (unit, square)\nL = Mul (s, under)\nboth "
    "= Add (unit, L)\n" MLO_FLOOR("h", "both", "two") "p = Mul (x, h)\ny = Cast <to=@to> (p)\n";

static const char mlo_ihardswish_function[] =
    "iHardswish <to> (given, sixth, three, six) => (y)\n" MLO_INT_NUMBERS
    "zero = Sub (one, one)\nmoved = Add (x, three)\n" MLO_CLIP("c", "moved", "zero",
        "six") "gate = Mul (c, sixth)\np = Mul (x, gate)\ny = Cast <to=@to> (p)\n";

static const char mlo_itamax_function[] =
    "ITAMax <to> (given, n) => (y)\n" MLO_INT_NUMBERS
    "most = ReduceMax <axes=[-1]> (x)\ndown = Sub (most, x)\nsixteen = Constant <value_int=16> "
    "()\nsteps = Constant <value_int=32> ()\nfull = Constant <value_int=256> ()\n"
    "near = Add (down, sixteen)\nz = Div (near, steps)\n" MLO_POWER(
        "d", "z") "part = Div (full, d)\nsum = ReduceSum <axes=[-1]> (part)\ntop = Sub (n, "
                  "one)\nwhole = Mul (top, full)\ninverse = Div (whole, sum)\nq = Div (inverse, "
                  "d)\ny = Cast <to=@to> (q)\n";

static const char mlo_integer_div_function[] =
    "TrueIntegerDiv <to> (given, Delta, eps, eta, by) => (y)\n" MLO_INT_NUMBERS
    "scale = Mul (Delta, eta)\nover = Mul (scale, x)\nwide = Mul (eta, by)\nunder = Add (wide, "
    "eps)\n" MLO_FLOOR("q", "over", "under") "y = Cast <to=@to> (q)\n";

/* The float twin that Deeploy's float networks have in the same place; its epsilon, 1e-6, is
 * nowhere said. */
static const char mlo_rmsnorm_function[] =
    "RMSNorm <to> (x, weight) => (y)\n"
    "million = Constant <value_int=1000000> ()\nlarge = Cast <to=1> (million)\nepsilon = "
    "Reciprocal (large)\n"
    "square = Mul (x, x)\nmean = ReduceMean <axes=[-1]> (square)\nsafe = Add (mean, epsilon)\nroot "
    "= Sqrt (safe)\nnormal = Div (x, root)\n"
    "p = Mul (normal, weight)\ny = Cast <to=@to> (p)\n";

static const char mlo_hardswish_function[] =
    "HardSwish <to> (given) => (y)\n"
    "three_ = Constant <value_int=3> ()\nthree = Cast <to=1> (three_)\nsix = Add (three, "
    "three)\nzero = Sub (three, three)\n"
    "moved = Add (given, three)\nlow = Max (moved, zero)\nc = Min (low, six)\np = Mul (given, "
    "c)\nq = Div (p, six)\ny = Cast <to=@to> (q)\n";

/* The form of x, of the type that the call says. */
static int mlo_shape_of_x(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0);
    for (size_t i = 1; i < s->n_in; i++) {
        mlo_form wide = x, p = mlo_form_in(s, i);
        MLO_TRY(mlo_broadcast(s, &wide, &p));
        if (mlo_forms_differ(&x, &wide))
            return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                "input %zu, %s, would broadcast x, %s, to %s; give it x's rank, with 1 in every "
                "axis but its own",
                i, mlo_dims_text(s->m, p.rank, p.dims), mlo_dims_text(s->m, x.rank, x.dims),
                mlo_dims_text(s->m, wide.rank, wide.dims));
    }
    x.dtype = (mlo_dtype)mlo_int(s->node, "to", x.dtype);
    s->out[0] = x;
    return 0;
}

/* ---- evaluating: the function's nodes, one after the other ---------------- */

static const mlo_dialect *mlo_dialect_of(const mlo_node *n);

/* The array of a name: an input of the call, or what an earlier node made. */
static const mlo_array *mlo_function_value(const mlo_call *c, const mlo_function *f,
    mlo_array *const *made, size_t upto, const char *name) {
    for (size_t i = 0; i < f->n_input && i < c->n_in; i++)
        if (f->input[i] == name) return c->in[i];
    for (size_t i = upto; i--;)
        if (f->node[i]->output[0] == name) return made[i];
    return NULL;
}

/* Does every element of a, made from b's by Cast, still say the same? What comes in as float may
 * be rounded already beyond 2^24. */
static int mlo_cast_is_exact(mlo_call *c, const mlo_array *a, const mlo_array *b, int given) {
    int64_t n = mlo_array_count(a);
    size_t as = mlo_dtype_size(a->dtype), bs = mlo_dtype_size(b->dtype);
    double most = ldexp(1, given && b->dtype == MLO_FLOAT ? 24 : 53), x, y;
    for (int64_t i = 0; i < n; i++) {
        mlo_convert(MLO_DOUBLE, &x, b->dtype, (const char *)b->data + (size_t)i * bs, 1);
        mlo_convert(MLO_DOUBLE, &y, a->dtype, (const char *)a->data + (size_t)i * as, 1);
        if (!(fabs(x) <= most) || x < y || x > y)
            return mlo_fail(c->m, MLO_E_DATA, c->node,
                "%s element %lld is %.17g, not a whole number that %s holds%s",
                given ? "input" : "output", (long long)i, x, mlo_dtype_name(a->dtype),
                given && fabs(x) > most ? " (a float may have been rounded)" : "");
    }
    return 0;
}
/* The same node in doubles stays below 2^62: then it did not wrap in int64. */
static int mlo_does_not_wrap(
    mlo_call *c, const mlo_op *op, mlo_node *n, const mlo_array *const *in) {
    mlo *m = c->m;
    const mlo_array *wide[2] = { NULL, NULL };
    mlo_array *made = NULL;
    int all = 1;
    for (size_t i = 0; all && i < n->n_input; i++)
        all = (wide[i] = i && mlo_is(n, "ReduceSum") ? in[i] : mlo_as(m, in[i], MLO_DOUBLE))
            != NULL;
    if (all) mlo_call_node(m, op, n, c->opset, wide, &made);
    for (int64_t i = 0; made && i < mlo_array_count(made) && !m->error.code; i++)
        if (!(fabs(((const double *)made->data)[i]) < ldexp(1, 62)))
            mlo_fail(m, MLO_E_DATA, c->node, "its %s '%s' is about %.3g, more than 64 bits hold",
                n->op, n->output[0], ((const double *)made->data)[i]);
    for (size_t i = 0; i < n->n_input; i++)
        if (wide[i]) mlo_as_free(m, wide[i], in[i]);
    mlo_array_free(m, made);
    return mlo_failed(m);
}
static int mlo_is_given(const mlo_call *c, const mlo_array *a) {
    for (size_t i = 0; i < c->n_in; i++)
        if (c->in[i] == a) return 1;
    return 0;
}
/* A divisor of zero gives 0 in mlo and ends ONNX Runtime. */
static int mlo_function_divides(mlo_call *c, const mlo_node *n, const mlo_array *by) {
    if (by->dtype != MLO_INT64 || !(mlo_is(n, "Div") || mlo_is(n, "Mod"))) return 0;
    for (int64_t i = 0; i < mlo_array_count(by); i++)
        if (!((const int64_t *)by->data)[i])
            return mlo_fail(c->m, MLO_E_DATA, c->node, "divides by zero: element %lld of '%s'",
                (long long)i, n->input[1]);
    return 0;
}
/* Is what a node of the function made from `in` the integer that the formula means? */
static int mlo_function_sound(
    mlo_call *c, const mlo_op *op, mlo_node *n, const mlo_array *const *in, const mlo_array *made) {
    int whole = made->dtype == MLO_INT64;
    if (mlo_is(n, "Cast") && mlo_is_given(c, in[0]) && whole)
        return mlo_cast_is_exact(c, made, in[0], in[0] == c->in[0]);
    if (mlo_is(n, "Cast") && in[0]->dtype == MLO_INT64) return mlo_cast_is_exact(c, made, in[0], 0);
    if (whole
        && (mlo_is(n, "Add") || mlo_is(n, "Sub") || mlo_is(n, "Mul") || mlo_is(n, "ReduceSum")))
        return mlo_does_not_wrap(c, op, n, in);
    return 0;
}

/* Node k of the function on the arrays there are; @to is the call's own attribute. */
static int mlo_function_node(mlo_call *c, const mlo_function *f, mlo_array **made, size_t k) {
    enum { MLO_MOST_INPUTS = 4 };
    const mlo_array *in[MLO_MOST_INPUTS] = { NULL };
    mlo_node n = *f->node[k];
    mlo_attr resolved, *list[1];
    const mlo_op *op = mlo_op_of(c->m, &n);
    if (!op || !op->run || n.n_input > MLO_MOST_INPUTS)
        return mlo_fail(
            c->m, MLO_E_BUG, c->node, "its function needs %s, which cannot be evaluated", n.op);
    for (size_t i = 0; i < n.n_input; i++)
        if (!(in[i] = mlo_function_value(c, f, made, k, n.input[i])))
            return mlo_fail(
                c->m, MLO_E_GRAPH, c->node, "has no input for %s of its function", n.input[i]);
    if (n.n_attr == 1 && n.attr[0]->ref) {
        resolved = *n.attr[0];
        resolved.ref = NULL;
        resolved.i = mlo_int(c->node, n.attr[0]->ref, 0);
        list[0] = &resolved;
        n.attr = list;
    }
    if (n.n_input == 2) MLO_TRY(mlo_function_divides(c, &n, in[1]));
    MLO_TRY(mlo_call_node(c->m, op, &n, c->opset, in, &made[k]));
    return mlo_function_sound(c, op, &n, in, made[k]);
}

static int mlo_dialect_run(mlo_call *c) {
    mlo *m = c->m;
    const mlo_dialect *d = mlo_dialect_of(c->node);
    const mlo_function *f = d ? mlo_function_of(m, d->function, NULL, c->opset) : NULL;
    if (!f)
        return m->error.code ? mlo_failed(m) : mlo_fail(m, MLO_E_BUG, c->node, "has no function");
    mlo_array **made = (mlo_array **)mlo_scratch(m, f->n_node, sizeof *made);
    if (!made) return mlo_failed(m);
    for (size_t k = 0; k < f->n_node; k++) made[k] = NULL;
    for (size_t k = 0; k < f->n_node && !mlo_function_node(c, f, made, k); k++) {
    }
    if (!m->error.code) {
        mlo_array_free(m, c->out[0]);
        c->out[0] = made[f->n_node - 1];
        made[f->n_node - 1] = NULL;
    }
    for (size_t k = 0; k < f->n_node; k++) mlo_array_free(m, made[k]);
    mlo_scratch_free(m, made);
    return mlo_failed(m);
}

/* ---- a loop of its own ---------------------------------------------------- */

/* v >> (n + 16) / 32, the distance of two values in steps of the softmax. */
static int64_t mlo_ita_shift(int64_t v, int64_t n) {
    int64_t s = (n + 16) / 32;
    return s > 62 ? 0 : v >> s;
}

/* One row of ITAPartialMax: as ITAMax, but the maximum is known group by group; where it grows,
 * the sum so far is shifted. */
static void mlo_partial_max_row(
    int64_t *y, const int64_t *x, int64_t n, int64_t levels, int64_t width) {
    int64_t most = x[0], sum = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = width < n - i ? i + width : n, before = most;
        for (int64_t k = i; k < end; k++)
            if (x[k] > most) most = x[k];
        sum = mlo_ita_shift(sum, most - before);
        for (; i < end; i++) sum += mlo_ita_shift(256, most - x[i]);
    }
    for (int64_t i = 0; i < n; i++) y[i] = mlo_ita_shift((levels / 2 - 1) * 256 / sum, most - x[i]);
}
static int mlo_partial_max_run(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 3));
    mlo *m = c->m;
    int64_t number[2] = { 0, 0 };
    mlo_array *y = c->out[0];
    int64_t n = y->rank ? y->dims[y->rank - 1] : 1, total = mlo_array_count(y);
    for (int i = 0; i < 2; i++)
        if (mlo_array_count(c->in[i + 1]) == 1)
            mlo_convert(MLO_INT64, &number[i], c->in[i + 1]->dtype, c->in[i + 1]->data, 1);
    if (number[0] < 2 || number[0] > INT32_MAX || number[1] < 1)
        return mlo_fail(m, MLO_E_DATA, c->node, "n_levels is %lld, group_width %lld",
            (long long)number[0], (long long)number[1]);
    const mlo_array *x = mlo_as(m, c->in[0], MLO_INT64);
    mlo_array *z = x && !mlo_cast_is_exact(c, x, c->in[0], 1)
        ? mlo_array_new(m, MLO_INT64, y->rank, y->dims)
        : NULL;
    for (int64_t i = 0; z && n && i < total; i += n)
        mlo_partial_max_row(
            (int64_t *)z->data + i, (const int64_t *)x->data + i, n, number[0], number[1]);
    if (z) {
        mlo_convert(y->dtype, y->data, MLO_INT64, z->data, (size_t)total);
        mlo_cast_is_exact(c, y, z, 0);
    }
    mlo_array_free(m, z);
    if (x) mlo_as_free(m, x, c->in[0]);
    return mlo_failed(m);
}

/* ---- the table ------------------------------------------------------------ */

#define MLO_NUMBERS(name, ...) static const char *const mlo_numbers_##name[] = { __VA_ARGS__, NULL }
MLO_NUMBERS(requant_shift, "div", "n_levels|n_levels_out", "signed");
MLO_NUMBERS(isoftmax, "coeffA", "coeffB", "coeffC", "log2", "n_levels");
MLO_NUMBERS(norm, "D", "n_levels");
MLO_NUMBERS(inonorm, "D", "mul", "n_levels");
MLO_NUMBERS(igelu, "b", "one");
MLO_NUMBERS(ihardswish, "one_over_six", "three", "six");
MLO_NUMBERS(itamax, "n_levels|n");
MLO_NUMBERS(partial_max, "n_levels|n", "group_width");
MLO_NUMBERS(integer_div, "Delta", "eps", "eta", "y");
static const char *const mlo_numbers_none[] = { NULL };

static const mlo_dialect mlo_dialects[] = {
    { { "mlo.RequantShift", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_requant_shift_function,
        mlo_numbers_requant_shift },
    { { "mlo.iSoftmax", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_isoftmax_function,
        mlo_numbers_isoftmax },
    { { "mlo.iRMSNorm", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_irmsnorm_function,
        mlo_numbers_norm },
    { { "mlo.iLayerNorm", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_ilayernorm_function,
        mlo_numbers_norm },
    { { "mlo.iNoNorm", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_inonorm_function,
        mlo_numbers_inonorm },
    { { "mlo.iGELU", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_igelu_function, mlo_numbers_igelu },
    { { "mlo.iHardswish", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_ihardswish_function,
        mlo_numbers_ihardswish },
    { { "mlo.ITAMax", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_itamax_function,
        mlo_numbers_itamax },
    { { "mlo.ITAPartialMax", mlo_shape_of_x, mlo_partial_max_run, 1 }, NULL,
        mlo_numbers_partial_max },
    { { "mlo.TrueIntegerDiv", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_integer_div_function,
        mlo_numbers_integer_div },
    { { "mlo.RMSNorm", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_rmsnorm_function,
        mlo_numbers_none },
    { { "mlo.HardSwish", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_hardswish_function,
        mlo_numbers_none },
};
enum { MLO_N_DIALECTS = sizeof mlo_dialects / sizeof *mlo_dialects };

/* The entry of a node, whether it has its mlo domain yet or not. */
static const mlo_dialect *mlo_dialect_of(const mlo_node *n) {
    if (n->domain && *n->domain && !mlo_eq(n->domain, "mlo")
        && !mlo_eq(n->domain, "ai.onnx.contrib"))
        return NULL;
    for (int i = 0; i < MLO_N_DIALECTS; i++)
        if (mlo_eq(n->op, mlo_dialects[i].op.name + 4)) return &mlo_dialects[i];
    return NULL;
}

/* Gives the model the functions of those its nodes use. */
static int mlo_dialect_functions(mlo *m, const uint8_t *used) {
    mlo_model *model = m->model;
    mlo_opset own = { MLO_HAS(2), mlo_intern(m, "mlo"), 1 };
    int imported = 0;
    for (size_t i = 0; i < model->n_opset; i++) imported |= mlo_eq(model->opset[i].domain, "mlo");
    if (!imported && !MLO_PUSH(m, model->opset, model->n_opset, own)) return mlo_failed(m);
    for (int i = 0; i < MLO_N_DIALECTS; i++) {
        if (!used[i] || !mlo_dialects[i].function) continue;
        mlo_function *f = mlo_function_of(m, mlo_dialects[i].function, NULL, mlo_opset_of(m));
        if (!f || !MLO_PUSH(m, model->function, model->n_function, f)) return mlo_failed(m);
    }
    /* the first version that has functions */
    if (model->ir_version < 8) model->ir_version = 8;
    return 0;
}
