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
 * invariant: mlo evaluates the text of exact/deeploy.c, which emitted C has, too; ONNX Runtime runs the
 *     function. Where 64 bits might wrap, or a value would be cut to fit (a fraction, a NaN, an 8-bit
 *     result of 200), ONNX Runtime goes on and mlo refuses: Deeploy means neither. The result has x's
 *     shape: parameters that would widen it are refused. ITAPartialMax, a loop over groups, has no
 *     function.
 * example: x = 300, mul = 3, add = 0, div = 16, 256 levels, signed: floor((900 + 8) / 16) = 56.
 * cost: some passes over the tensor.
 */
enum { MLO_DIALECT_NUMBERS = 6, MLO_DIALECT_OPERANDS = 3 };

/* The largest that an operator's numbers get on the way. */
typedef struct {
    mlo_interval all;
} mlo_on_the_way;

typedef struct {
    mlo_op op;
    const char *function;
    /* the attributes that become inputs, in order, ends with NULL; "a|b": either name */
    const char *const *numbers;
    int operands; /* x and what lies along it; 0: floats: its function is evaluated */
    /* the attributes' numbers to those that src/exact takes; what is wrong with them, or NULL */
    const char *(*prepare)(const int64_t *given, int64_t *p);
    /* of rows of n: how large the result gets, of operands of these sizes */
    mlo_interval (*bounds)(mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n);
    /* one of three: numbers, rows, a norm (2: around its mean) */
    int64_t (*one)(int64_t x, int64_t w, int64_t b, const int64_t *p);
    int64_t (*row)(int64_t *e, int64_t n, const int64_t *p);
    int norm;
    const char *exact; /* what that function is called */
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

/* ---- how large numbers get: the same question for arrays, and for all that a type holds --- */

static mlo_interval mlo_reached(mlo_on_the_way *r, mlo_interval a) {
    if (a.lo < r->all.lo) r->all.lo = a.lo;
    if (a.hi > r->all.hi) r->all.hi = a.hi;
    return a;
}
static mlo_interval mlo_just(int64_t v) { return mlo_from_to(v, v); }
static mlo_interval mlo_negative(mlo_interval a) { return mlo_from_to(-a.hi, -a.lo); }
static mlo_interval mlo_clipped(mlo_interval a, int64_t lo, int64_t hi) {
    return mlo_from_to(mlo_clip(a.lo, lo, hi), mlo_clip(a.hi, lo, hi));
}
static mlo_interval mlo_divided(mlo_interval a, int64_t by) {
    const int64_t x = mlo_floor_div(a.lo, by), y = mlo_floor_div(a.hi, by);
    return x < y ? mlo_from_to(x, y) : mlo_from_to(y, x);
}
static mlo_interval mlo_squared(mlo_interval a) {
    const mlo_interval all = mlo_product_of(a, a);
    return mlo_from_to(all.lo < 0 ? 0 : all.lo, all.hi);
}
/* Do 64 bits hold it, and what is next to it? */
static int mlo_holds(mlo_interval a) { return a.lo > -mlo_two_to(62) && a.hi < mlo_two_to(62); }

static mlo_interval mlo_requant_shift_bounds(
    mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n) {
    const mlo_interval product = mlo_reached(r, mlo_product_of(in[0], in[1]));
    const mlo_interval sum = mlo_sum_of(mlo_sum_of(product, in[2]), mlo_just(p[0] / 2));
    (void)n;
    return mlo_clipped(mlo_divided(mlo_reached(r, sum), p[0]), p[1], p[2]);
}
static mlo_interval mlo_inonorm_bounds(
    mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n) {
    const mlo_interval product = mlo_reached(r, mlo_product_of(in[0], in[1]));
    const mlo_interval sum = mlo_reached(r, mlo_sum_of(product, in[2]));
    const mlo_interval over = mlo_reached(r, mlo_product_of(sum, mlo_just(p[1])));
    (void)n;
    return mlo_clipped(mlo_divided(over, p[0]), p[2], p[3]);
}
static mlo_interval mlo_igelu_bounds(
    mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n) {
    const int64_t most = mlo_max(-in[0].lo, in[0].hi), edge = -p[0];
    const mlo_interval q = mlo_from_to(edge < 0 ? edge : 0, most < edge ? most : edge);
    const mlo_interval square = mlo_squared(mlo_sum_of(q, mlo_just(p[0])));
    const mlo_interval under = mlo_reached(
        r, mlo_sum_of(mlo_just(p[1]), mlo_negative(mlo_reached(r, square))));
    const int64_t size = mlo_max(0, mlo_max(-under.lo, under.hi));
    const mlo_interval both = mlo_sum_of(mlo_just(p[1]), mlo_from_to(-size, size));
    (void)n;
    return mlo_reached(r, mlo_product_of(in[0], mlo_divided(mlo_reached(r, both), 2)));
}
static mlo_interval mlo_ihardswish_bounds(
    mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n) {
    const mlo_interval moved = mlo_reached(r, mlo_sum_of(in[0], mlo_just(p[1])));
    const mlo_interval gate = mlo_product_of(mlo_clipped(moved, 0, p[2]), mlo_just(p[0]));
    (void)n;
    return mlo_reached(r, mlo_product_of(in[0], mlo_reached(r, gate)));
}
static mlo_interval mlo_integer_div_bounds(
    mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n) {
    (void)n;
    return mlo_divided(mlo_reached(r, mlo_product_of(in[0], mlo_just(p[0]))), p[1]);
}

/* Around zero, or around the mean of its row; a root is 1 at least. */
static mlo_interval mlo_inorm_bounds_of(
    mlo_on_the_way *r, const mlo_interval *in, mlo_interval c, const int64_t *p, int64_t n) {
    mlo_reached(r, mlo_sum_of_many(n, in[0]));
    mlo_reached(r, mlo_sum_of_many(n, mlo_squared(c)));
    const mlo_interval product = mlo_reached(r, mlo_product_of(c, in[1]));
    return mlo_clipped(mlo_divided(mlo_reached(r, mlo_sum_of(product, in[2])), p[0]), p[1], p[2]);
}
static mlo_interval mlo_irmsnorm_bounds(
    mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n) {
    return mlo_inorm_bounds_of(r, in, in[0], p, n);
}
static mlo_interval mlo_ilayernorm_bounds(
    mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n) {
    return mlo_inorm_bounds_of(r, in, mlo_sum_of(in[0], mlo_negative(in[0])), p, n);
}

/* What comes out is a share of n - 1, if no parabola is negative, and the largest's is not 0. */
static mlo_interval mlo_isoftmax_bounds(
    mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n) {
    const mlo_interval down = mlo_reached(r, mlo_sum_of(in[0], mlo_negative(in[0])));
    const int64_t left = mlo_max(p[3] - 1, mlo_add_ends(down.hi, mlo_times_ends(-31, p[3])));
    const mlo_interval at = mlo_sum_of(mlo_from_to(-left, 0), mlo_just(p[1]));
    const mlo_interval scaled = mlo_reached(
        r, mlo_product_of(mlo_reached(r, mlo_squared(at)), mlo_just(p[0])));
    const mlo_interval e = mlo_reached(r, mlo_sum_of(scaled, mlo_just(p[2])));
    const mlo_interval all = mlo_product_of(mlo_sum_of_many(n, e), mlo_just(p[4]));
    const int64_t most = mlo_add_ends(mlo_times_ends(p[0], mlo_times_ends(p[1], p[1])), p[2]);
    mlo_reached(r, all);
    return e.lo < 0 || most < 1 ? mlo_from_to(-INT64_MAX, INT64_MAX) : mlo_from_to(0, p[4]);
}
static mlo_interval mlo_itamax_bounds(
    mlo_on_the_way *r, const mlo_interval *in, const int64_t *p, int64_t n) {
    mlo_reached(r, mlo_sum_of(in[0], mlo_negative(in[0])));
    mlo_reached(r, mlo_just(mlo_times_ends(n, 256)));
    return mlo_from_to(0, p[0] / 256);
}

/* ---- the numbers of a node, as src/exact takes them ---------------------------------- */

static const char mlo_no_divisor[] = "divides by zero";
/* n levels around zero, half below it. */
static void mlo_around_zero(int64_t *p, int64_t n) {
    p[0] = -(n / 2);
    p[1] = p[0] + n - 1;
}
static const char *mlo_requant_shift_numbers(const int64_t *given, int64_t *p) {
    p[0] = given[0];
    p[1] = -(given[2] * given[1] / 2);
    p[2] = p[1] + given[1] - 1;
    for (p[3] = 0; p[3] < 31 && (int64_t)1 << p[3] < p[0];) p[3]++;
    if ((int64_t)1 << p[3] != p[0]) p[3] = -1;
    return p[0] ? NULL : mlo_no_divisor;
}
static const char *mlo_inorm_numbers(const int64_t *given, int64_t *p) {
    p[0] = given[0];
    mlo_around_zero(p + 1, given[1]);
    return p[0] ? NULL : mlo_no_divisor;
}
static const char *mlo_inonorm_numbers(const int64_t *given, int64_t *p) {
    p[0] = given[0];
    p[1] = given[1];
    mlo_around_zero(p + 2, given[2]);
    return p[0] ? NULL : mlo_no_divisor;
}
static const char *mlo_plain_numbers(const int64_t *given, int64_t *p) {
    memcpy(p, given, MLO_DIALECT_NUMBERS * sizeof *p);
    return NULL;
}
static const char *mlo_integer_div_numbers(const int64_t *given, int64_t *p) {
    p[0] = given[0] * given[2];
    p[1] = given[2] * given[3] + given[1];
    return p[1] ? NULL : mlo_no_divisor;
}
static const char *mlo_isoftmax_numbers(const int64_t *given, int64_t *p) {
    memcpy(p, given, 4 * sizeof *p);
    p[4] = given[4] - 1;
    return p[3] > 0 ? NULL : p[3] ? "its log2 is negative" : mlo_no_divisor;
}
static const char *mlo_itamax_numbers(const int64_t *given, int64_t *p) {
    p[0] = (given[0] - 1) * 256;
    p[1] = INT64_MAX;
    return given[0] < 1 ? "n_levels is less than 1" : NULL;
}
static const char *mlo_partial_max_numbers(const int64_t *given, int64_t *p) {
    p[0] = (given[0] / 2 - 1) * 256;
    p[1] = given[1];
    return given[0] < 2 || given[1] < 1 ? "n_levels is less than 2, or group_width than 1" : NULL;
}

/* ---- evaluating -------------------------------------------------------------------------- */

static const mlo_dialect *mlo_dialect_of(const mlo_node *n);

/* Does every element of a, made from b's by Cast, still say the same? What comes in as float may
 * be rounded already beyond 2^24. */
static int mlo_cast_is_exact(mlo_call *c, const mlo_array *a, const mlo_array *b, int given) {
    int64_t n = mlo_array_count(a);
    size_t as = mlo_dtype_size(a->dtype), bs = mlo_dtype_size(b->dtype);
    double most = ldexp(1, given && b->dtype == MLO_FLOAT ? 24 : 53), x, y;
    for (int64_t i = 0; i < n; i++) {
        mlo_convert(MLO_DOUBLE, &x, b->dtype, (const char *)b->data + (size_t)i * bs, 1);
        mlo_convert(MLO_DOUBLE, &y, a->dtype, (const char *)a->data + (size_t)i * as, 1);
        if (!(fabs(x) <= most) || mlo_differs(x, y))
            return mlo_fail(c->m, MLO_E_DATA, c->node,
                "%s element %lld is %.17g, not a whole number that %s holds%s",
                given ? "input" : "output", (long long)i, x, mlo_dtype_name(a->dtype),
                given && fabs(x) > most ? " (a float may have been rounded)" : "");
    }
    return 0;
}

/* Whole numbers of an operand, one for each of x's; NULL: it has others. */
static mlo_array *mlo_whole_operand(mlo_call *c, size_t i) {
    mlo *m = c->m;
    const mlo_array *y = c->out[0], *a = mlo_as(m, c->in[i], MLO_INT64);
    mlo_array *all = NULL;
    if (a && !mlo_cast_is_exact(c, a, c->in[i], i == 0))
        all = mlo_array_new(m, MLO_INT64, y->rank, y->dims);
    if (all) {
        mlo_walk w = mlo_walk_over(y->rank, y->dims);
        mlo_walk_add(&w, a->rank, a->dims);
        mlo_copy_strided(all->data, a->data, sizeof(int64_t), y->rank, y->dims, w.step[0], 0);
    }
    mlo_as_free(m, a, c->in[i]);
    return all;
}
static mlo_interval mlo_ends_of(const mlo_array *a) {
    const int64_t *v = (const int64_t *)a->data, n = mlo_array_count(a);
    mlo_interval all = { n ? v[0] : 0, n ? v[0] : 0 };
    for (int64_t i = 1; i < n; i++) {
        if (v[i] < all.lo) all.lo = v[i];
        if (v[i] > all.hi) all.hi = v[i];
    }
    return all;
}

/* The node's numbers, from inputs behind its operands. */
static int mlo_dialect_prepare(mlo *m, const mlo_node *node, const mlo_dialect *d,
    const mlo_array *const *in, size_t n_in, int64_t *p) {
    int64_t given[MLO_DIALECT_NUMBERS] = { 0 };
    for (size_t k = 0; d->numbers[k]; k++) {
        const size_t i = (size_t)d->operands + k;
        const int name = (int)strcspn(d->numbers[k], "|"); /* the first, where it has two */
        if (i >= n_in || !in[i] || mlo_array_count(in[i]) != 1)
            return mlo_fail(m, MLO_E_DATA, node, "its %.*s is no number", name, d->numbers[k]);
        mlo_convert(MLO_INT64, &given[k], in[i]->dtype, in[i]->data, 1);
        if (given[k] < -INT32_MAX || given[k] > INT32_MAX)
            return mlo_fail(m, MLO_E_DATA, node, "its %.*s is %lld, more than 32 bits hold", name,
                d->numbers[k], (long long)given[k]);
    }
    const char *wrong = d->prepare(given, p);
    return wrong ? mlo_fail(m, MLO_E_DATA, node, "%s", wrong) : 0;
}

/* The result's ends; fails where a number on the way may wrap. */
static int mlo_dialect_bounds(mlo *m, const mlo_node *node, const mlo_dialect *d,
    const mlo_interval *in, const int64_t *p, int64_t n, mlo_interval *y) {
    mlo_on_the_way r = { { 0, 0 } };
    *y = d->bounds(&r, in, p, n);
    if (mlo_holds(r.all)) return 0;
    return mlo_fail(m, MLO_E_DATA, node,
        "of operands %lld .. %lld, a number on its way may be %lld .. %lld, more than 64 bits "
        "hold; scale it down",
        (long long)in[0].lo, (long long)in[0].hi, (long long)r.all.lo, (long long)r.all.hi);
}

/* All rows, in place; 0 where one would be divided by zero. */
static int mlo_dialect_rows(
    const mlo_dialect *d, mlo_array *const *a, int64_t rows, int64_t n, const int64_t *p) {
    int64_t *e = (int64_t *)a[0]->data;
    const int64_t *w = a[1] ? (const int64_t *)a[1]->data : NULL;
    const int64_t *b = a[2] ? (const int64_t *)a[2]->data : NULL;
    for (int64_t i = 0; i < rows * n; i += n) {
        if (d->row && !d->row(e + i, n, p)) return 0;
        if (d->norm) mlo_inorm_row(e + i, w + i, b ? b + i : NULL, n, d->norm > 1, p);
        for (int64_t k = i; k < i + n && d->one; k++)
            e[k] = d->one(e[k], w ? w[k] : 0, b ? b[k] : 0, p);
    }
    return 1;
}

static int mlo_dialect_integers(mlo_call *c, const mlo_dialect *d, mlo_array **a) {
    mlo *m = c->m;
    mlo_array *y = c->out[0];
    const int64_t n = y->rank ? y->dims[y->rank - 1] : 1, total = mlo_array_count(y);
    int64_t p[MLO_DIALECT_NUMBERS];
    mlo_interval in[MLO_DIALECT_OPERANDS] = { { 0, 0 } }, ends;
    MLO_TRY(mlo_dialect_prepare(m, c->node, d, c->in, c->n_in, p));
    for (int i = 0; i < d->operands; i++) {
        if (!(a[i] = mlo_whole_operand(c, (size_t)i))) return mlo_failed(m);
        in[i] = mlo_ends_of(a[i]);
    }
    if (!total) return 0;
    MLO_TRY(mlo_dialect_bounds(m, c->node, d, in, p, n, &ends));
    if (!mlo_dialect_rows(d, a, total / n, n, p))
        return mlo_fail(m, MLO_E_DATA, c->node, "%s", mlo_no_divisor);
    mlo_convert(y->dtype, y->data, MLO_INT64, a[0]->data, (size_t)total);
    return mlo_cast_is_exact(c, y, a[0], 0);
}

static int mlo_dialect_run(mlo_call *c) {
    const mlo_dialect *d = mlo_dialect_of(c->node);
    mlo_array *a[MLO_DIALECT_OPERANDS] = { NULL };
    MLO_TRY(mlo_need_inputs(c, (size_t)d->operands));
    mlo_dialect_integers(c, d, a);
    for (int i = 0; i < MLO_DIALECT_OPERANDS; i++) mlo_array_free(c->m, a[i]);
    return mlo_failed(c->m);
}

/* ---- evaluating the float twins: the function's nodes, one after the other ------------ */

/* The array of a name: an input of the call, or what an earlier node made. */
static const mlo_array *mlo_function_value(const mlo_call *c, const mlo_function *f,
    mlo_array *const *made, size_t upto, const char *name) {
    for (size_t i = 0; i < f->n_input && i < c->n_in; i++)
        if (f->input[i] == name) return c->in[i];
    for (size_t i = upto; i--;)
        if (f->node[i]->output[0] == name) return made[i];
    return NULL;
}

/* Node k of the function on the arrays there are; @to is the call's own attribute. */
static int mlo_function_node(mlo_call *c, const mlo_function *f, mlo_array **made, size_t k) {
    enum { MLO_MOST_INPUTS = 4 }; /* of a node of the functions above */
    const mlo_array *in[MLO_MOST_INPUTS] = { NULL };
    mlo_node n = *f->node[k];
    mlo_attr resolved, *list[1];
    const mlo_op *op = mlo_op_of(c->m, &n);
    if (!op) return mlo_failed(c->m);
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
    return mlo_call_node(c->m, op, &n, c->opset, in, &made[k]);
}

static int mlo_twin_run(mlo_call *c) {
    mlo *m = c->m;
    const mlo_function *f = mlo_function_of(m, mlo_dialect_of(c->node)->function, NULL, c->opset);
    mlo_array **made = f ? (mlo_array **)mlo_scratch(m, f->n_node, sizeof *made) : NULL;
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
        mlo_numbers_requant_shift, 3, mlo_requant_shift_numbers, mlo_requant_shift_bounds,
        mlo_requant_shift, NULL, 0, "mlo_requant_shift" },
    { { "mlo.iSoftmax", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_isoftmax_function,
        mlo_numbers_isoftmax, 1, mlo_isoftmax_numbers, mlo_isoftmax_bounds, NULL, mlo_isoftmax, 0,
        "mlo_isoftmax" },
    { { "mlo.iRMSNorm", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_irmsnorm_function,
        mlo_numbers_norm, 2, mlo_inorm_numbers, mlo_irmsnorm_bounds, NULL, NULL, 1, "mlo_inorm" },
    { { "mlo.iLayerNorm", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_ilayernorm_function,
        mlo_numbers_norm, 3, mlo_inorm_numbers, mlo_ilayernorm_bounds, NULL, NULL, 2, "mlo_inorm" },
    { { "mlo.iNoNorm", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_inonorm_function,
        mlo_numbers_inonorm, 3, mlo_inonorm_numbers, mlo_inonorm_bounds, mlo_inonorm, NULL, 0,
        "mlo_inonorm" },
    { { "mlo.iGELU", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_igelu_function, mlo_numbers_igelu, 1,
        mlo_plain_numbers, mlo_igelu_bounds, mlo_igelu, NULL, 0, "mlo_igelu" },
    { { "mlo.iHardswish", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_ihardswish_function,
        mlo_numbers_ihardswish, 1, mlo_plain_numbers, mlo_ihardswish_bounds, mlo_ihardswish, NULL,
        0, "mlo_ihardswish" },
    { { "mlo.ITAMax", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_itamax_function, mlo_numbers_itamax,
        1, mlo_itamax_numbers, mlo_itamax_bounds, NULL, mlo_itamax, 0, "mlo_itamax" },
    { { "mlo.ITAPartialMax", mlo_shape_of_x, mlo_dialect_run, 1 }, NULL, mlo_numbers_partial_max, 1,
        mlo_partial_max_numbers, mlo_itamax_bounds, NULL, mlo_itamax, 0, "mlo_itamax" },
    { { "mlo.TrueIntegerDiv", mlo_shape_of_x, mlo_dialect_run, 1 }, mlo_integer_div_function,
        mlo_numbers_integer_div, 1, mlo_integer_div_numbers, mlo_integer_div_bounds,
        mlo_integer_div, NULL, 0, "mlo_integer_div" },
    { { "mlo.RMSNorm", mlo_shape_of_x, mlo_twin_run, 1 }, mlo_rmsnorm_function, mlo_numbers_none, 0,
        NULL, NULL, NULL, NULL, 0, NULL },
    { { "mlo.HardSwish", mlo_shape_of_x, mlo_twin_run, 1 }, mlo_hardswish_function,
        mlo_numbers_none, 0, NULL, NULL, NULL, NULL, 0, NULL },
};
enum { MLO_N_DIALECTS = sizeof mlo_dialects / sizeof *mlo_dialects };

/* The entry of a node, whether it has its mlo domain yet or not. */
static const mlo_dialect *mlo_dialect_of(const mlo_node *n) {
    static const char *const domains[] = { "", "ai.onnx", "ai.onnx.contrib", "mlo" };
    const char *domain = mlo_or_empty(n->domain);
    int theirs = 0;
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        theirs |= mlo_eq(domain, domains[i]);
    for (int i = 0; theirs && i < MLO_N_DIALECTS; i++)
        if (mlo_eq(n->op, mlo_dialects[i].op.name + 4)) return &mlo_dialects[i];
    return NULL;
}

static int mlo_is_requant_shift(const mlo_node *n) {
    const mlo_dialect *d = n ? mlo_dialect_of(n) : NULL;
    return d && d->one == mlo_requant_shift;
}

/* Is one of them in a graph, or in a graph inside of it? (Not of the two that are of floats.) */
static int mlo_has_dialect(const mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_node *n = g->node[i];
        const mlo_dialect *d = mlo_dialect_of(n);
        if (d && d->operands) return 1;
        for (size_t k = 0; k < n->n_attr; k++)
            if (n->attr[k]->g && mlo_has_dialect(n->attr[k]->g)) return 1;
    }
    return 0;
}

/* Is this one of Deeploy's networks: does it use an operator that only they have? */
static int mlo_dialect_speaks(const mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++)
        if (!mlo_eq(g->node[i]->op, "HardSwish") && mlo_dialect_of(g->node[i])
            && !mlo_eq(g->node[i]->domain, "mlo"))
            return 1;
    return 0;
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
