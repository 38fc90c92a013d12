/* given: what a quantized source model fixes: integers, their widths, what they stand for.
 *
 * in:  a loop whose model says where it rounds: QuantizeLinear and DequantizeLinear (QDQ), QONNX's
 *     Quant and BipolarQuant, chains of Div, Round, Clip, Mul (fake quantization), quantized
 *     operators.
 * out: the same loop, in which every rounding is a QDQ pair or a chain of standard operators; and,
 *     for any value, the `rounding` that makes it.
 *
 * Recognition (recognise.c) passes through a rounding as it passes through a reshape, and notes on
 * the value what the rounding fixes. A rounding inside a function of one value stays: the table
 * that replaces the function evaluates it.
 *
 * An integer differs from the source's by at most one step, next to a tie, for three reasons:
 * multipliers have 15 bits; a float bias is rounded to the steps of the sum (which are coarse if
 * weights have few bits); an attention has an arithmetic of its own.
 *
 * invariant: what is fixed is taken over, not estimated: scale and zero point of each iteration,
 *     and the integers of weights bit for bit.
 * example: DequantizeLinear(QuantizeLinear(x, 0.02, 3), 0.02, 3) over uint8 rounds x to
 *     0.02 (q - 3), q = 0..255.
 * cost: a few nodes per rounding; scales are single numbers. Weights are read only where they have
 *     a zero point.
 */

/* What a source model, or a q_config, fixes of a value: its width, and where `scale` is given what
 * its integers stand for: scale x (integer - zero). */
typedef struct {
    int bits;
    int sign; /* 1: the least integer is -2^(bits-1); 0: it is 0 */
    int narrow; /* 1: the least integer is one more than that */
    double *scale; /* per iteration (of a weight: per iteration and column); NULL: not given */
    double *zero; /* as many, in steps; NULL: 0 */
} mlo_given;

/* A value is `from`, rounded to scale x (q - zero), lo <= q <= hi. */
typedef struct {
    const char *from;
    const char *scale; /* a parameter */
    const char *zero; /* a parameter, in steps; NULL: 0 */
    double lo; /* the least q */
    double hi; /* the largest q */
    const mlo_node *node;
} mlo_rounding;

/* ---- parameters ----------------------------------------------------------- */

/* Can this value be computed without running the loop, or the model? */
static int mlo_is_parameter(const mlo_scan *s, const mlo_graph *g, const char *name, int depth) {
    mlo_value *v = mlo_value_of(g, name);
    if (!v || depth > 32) return 0;
    if (v->tensor) return 1;
    for (size_t k = 0; v->graph == s->body && v->is_input && k < s->body->n_input; k++)
        if (s->body->input[k]->name == name)
            return k >= s->n_state && mlo_is_parameter(s, s->outer, s->node->input[k], depth + 1);
    if (!v->producer) return 0;
    for (size_t k = 0; k < v->producer->n_input; k++)
        if (mlo_has_input(v->producer, k)
            && !mlo_is_parameter(s, v->graph, v->producer->input[k], depth + 1))
            return 0;
    return 1;
}

/* Element i of an array as a number. */
static double mlo_number_at(const mlo_array *a, int64_t i) {
    double x = 0;
    mlo_convert(
        MLO_DOUBLE, &x, a->dtype, (const char *)a->data + (size_t)i * mlo_dtype_size(a->dtype), 1);
    return x;
}

/* The number that a parameter is in iteration i. NULL is 0. */
static double mlo_parameter_number(
    mlo *m, const mlo_scan *s, const mlo_graph *g, const char *name, int64_t i) {
    mlo_array *a = name && !m->error.code ? mlo_value_array(m, s, g, name, i, 0) : NULL;
    double x = a && mlo_array_count(a) ? mlo_number_at(a, 0) : 0;
    mlo_array_free(m, a);
    return x;
}

/* Elements of a parameter, -1 when that is not known. */
static int64_t mlo_parameter_count(const mlo_graph *g, const char *name) {
    mlo_form f = mlo_form_of(mlo_value_of(g, name));
    return mlo_form_known(&f) ? mlo_form_count(&f) : -1;
}

/* Are two single numbers the same in every iteration? A NULL is 0. */
static int mlo_same_number(
    mlo *m, const mlo_scan *s, const mlo_graph *g, const char *a, const char *b) {
    if (a == b) return 1;
    for (int i = 0; i < 2; i++) {
        const char *x = i ? a : b;
        if (x && (mlo_parameter_count(g, x) != 1 || !mlo_is_parameter(s, g, x, 0))) return 0;
    }
    for (int64_t i = 0; i < s->iterations; i++) {
        double off = mlo_parameter_number(m, s, g, a, i) - mlo_parameter_number(m, s, g, b, i);
        if (mlo_differs(off, 0)) return 0;
    }
    return 1;
}

/* ---- roundings ------------------------------------------------------------ */

static mlo_node *mlo_maker_in(const mlo_graph *g, const char *name) {
    mlo_value *v = mlo_value_of(g, name);
    return v && v->graph == g ? v->producer : NULL;
}
static const char *mlo_zero_input(const mlo_node *n) {
    return mlo_has_input(n, 2) ? n->input[2] : NULL;
}

static int mlo_rounding_pair(
    mlo *m, const mlo_scan *s, const mlo_graph *g, const mlo_node *n, mlo_rounding *r) {
    const mlo_node *q = mlo_maker_in(g, n->input[0]);
    if (!mlo_is(q, "QuantizeLinear") || !mlo_same_number(m, s, g, q->input[1], n->input[1])
        || !mlo_same_number(m, s, g, mlo_zero_input(q), mlo_zero_input(n)))
        return 0;
    mlo_form f = mlo_form_of(mlo_value_of(g, q->output[0]));
    if (!f.dtype || mlo_dtype_is_float(f.dtype)) return 0;
    r->from = q->input[0];
    r->scale = q->input[1];
    r->zero = mlo_zero_input(q);
    r->node = n;
    mlo_bounds(f.dtype, &r->lo, &r->hi);
    return 1;
}

/* A bound of Clip, as one number. */
static int mlo_clip_bound(mlo *m, const mlo_graph *g, const mlo_node *n, size_t i, double *x) {
    return mlo_has_input(n, i) && mlo_lone_number(m, mlo_value_of(g, n->input[i]), x);
}

/* Mul(Sub(Round(Clip(Add(Div(x, scale), zero), lo, hi)), zero), scale): Round and Clip in any
 * order, Add and Sub both or none. */
static int mlo_rounding_chain(
    mlo *m, const mlo_scan *s, const mlo_graph *g, const mlo_node *n, mlo_rounding *r) {
    const mlo_node *p = mlo_maker_in(g, n->input[0]);
    int rounded = 0, clipped = 0;
    r->scale = n->input[1];
    r->zero = NULL;
    r->node = n;
    if (mlo_is(p, "Sub")) {
        r->zero = p->input[1];
        p = mlo_maker_in(g, p->input[0]);
    }
    for (int i = 0; i < 2; i++) {
        if (mlo_is(p, "Round") && !rounded)
            rounded = 1;
        else if (mlo_is(p, "Clip") && !clipped && mlo_clip_bound(m, g, p, 1, &r->lo)
            && mlo_clip_bound(m, g, p, 2, &r->hi))
            clipped = 1;
        else
            return 0;
        p = mlo_maker_in(g, p->input[0]);
    }
    if (r->zero) {
        if (!mlo_is(p, "Add") || !mlo_same_number(m, s, g, p->input[1], r->zero)) return 0;
        p = mlo_maker_in(g, p->input[0]);
    }
    if (!mlo_is(p, "Div") || !mlo_same_number(m, s, g, p->input[1], r->scale)) return 0;
    r->from = p->input[0];
    return 1;
}

/* Is `name` made by rounding another value? */
static int mlo_rounding_of(
    mlo *m, const mlo_scan *s, const mlo_graph *g, const char *name, mlo_rounding *r) {
    const mlo_node *n = mlo_maker_in(g, name);
    if (!(mlo_is(n, "DequantizeLinear") ? mlo_rounding_pair(m, s, g, n, r)
                                        : mlo_is(n, "Mul") && mlo_rounding_chain(m, s, g, n, r)))
        return 0;
    return mlo_is_parameter(s, g, r->scale, 0) && (!r->zero || mlo_is_parameter(s, g, r->zero, 0))
        && !mlo_is_parameter(s, g, r->from, 0);
}

static void mlo_given_width(mlo_given *g, double lo, double hi) {
    g->sign = lo < 0;
    g->bits = 1;
    while (g->bits < 32 && ldexp(1, g->bits - g->sign) - 1 < hi) g->bits++;
    g->narrow = g->sign ? lo > -ldexp(1, g->bits - 1) : hi < ldexp(1, g->bits) - 1;
}

/* What a rounding fixes of x, when it rounds factor * x. NULL: failed. */
static mlo_given *mlo_rounding_given(
    mlo *m, const mlo_scan *s, const mlo_graph *g, const mlo_rounding *r, double factor) {
    mlo_given *y = MLO_NEW(m, mlo_given);
    if (!y) return NULL;
    if (mlo_parameter_count(g, r->scale) != 1
        || (r->zero && mlo_parameter_count(g, r->zero) != 1)) {
        mlo_fail(m, MLO_E_UNSUPPORTED, r->node,
            "activations rounded with a scale per channel; one scale per value is supported");
        return NULL;
    }
    mlo_given_width(y, r->lo, r->hi);
    if (!(y->scale = MLO_NEW_N(m, double, (size_t)s->iterations))
        || !(y->zero = MLO_NEW_N(m, double, (size_t)s->iterations)))
        return NULL;
    for (int64_t i = 0; i < s->iterations; i++) {
        y->scale[i] = mlo_parameter_number(m, s, g, r->scale, i) / factor;
        y->zero[i] = mlo_parameter_number(m, s, g, r->zero, i);
        if (!m->error.code && mlo_differs(y->zero[i], rint(y->zero[i])))
            mlo_fail(m, MLO_E_UNSUPPORTED, r->node,
                "a zero point of %g; zero points are whole steps", y->zero[i]);
    }
    return m->error.code ? NULL : y;
}

/* Do both fix the same, as far as floats can tell? */
static int mlo_given_equal(const mlo_given *a, const mlo_given *b, int64_t n) {
    if (a->bits != b->bits || a->sign != b->sign) return 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs(a->scale[i] - b->scale[i]) > 1e-5 * b->scale[i]
            || fabs(a->zero[i] - b->zero[i]) > 0.5)
            return 0;
    return 1;
}

/* ---- weights -------------------------------------------------------------- */

/* How integers q become a weight: scale x (q - zero). */
typedef struct {
    const char *scale;
    const char *zero; /* in steps; NULL: 0 */
    const char *integers;
    int64_t stored; /* the axis of q that both are along, -1: they are per tensor */
    int64_t axis; /* that axis of the weight */
    double lo; /* the least q */
    double hi; /* the largest q */
    /* 1: nothing says how large q may be; it is looked at, and taken when it fits 8 bits */
    int open;
    const mlo_node *node;
} mlo_weight_source;

/* The axis of q that a scale of this form varies along (rank 2): 0, 1; -1: none; -2: that cannot be. */
static int mlo_scale_axis(const mlo_form *f, int64_t axis) {
    if (!mlo_form_known(f)) return -2;
    if (mlo_form_count(f) == 1) return -1;
    if (f->rank == 1) return axis < 0 ? (int)axis + 2 : (int)axis;
    if (f->rank != 2 || (f->dims[0] != 1 && f->dims[1] != 1)) return -2;
    return f->dims[0] == 1;
}

static int mlo_is_rounder(const mlo_node *n) {
    return mlo_is(n, "Round") || mlo_is(n, "Floor") || mlo_is(n, "Ceil");
}

/* Mul(integers, scale), the integers made by rounding: Round, Floor, Ceil, or one of the size
 * times Sign; Clip before or behind; or Sign alone. */
static int mlo_weight_chain(mlo *m, const mlo_graph *g, const mlo_node *n, mlo_weight_source *w) {
    const mlo_node *p = mlo_maker_in(g, n->input[0]);
    const mlo_node *from = mlo_is(p, "Sub") ? mlo_maker_in(g, p->input[0]) : p;
    int sized = mlo_is(from, "Mul") && mlo_is_rounder(mlo_maker_in(g, from->input[0]))
        && mlo_is(mlo_maker_in(g, from->input[1]), "Sign");
    if (!sized && !mlo_is_rounder(from) && !mlo_is(from, "Clip") && !mlo_is(from, "Sign")) return 0;
    /* of one dimension: the last */
    w->scale = n->input[1];
    w->zero = NULL;
    w->integers = n->input[0];
    w->node = n;
    w->axis = 1;
    /* of Sign */
    w->lo = -1;
    w->hi = 1;
    if (mlo_is(from, "Sign") && !mlo_is(p, "Sub")) return 1;
    while (
        mlo_is_rounder(from) || mlo_is(from, "Mul") || mlo_is(from, "Abs") || mlo_is(from, "Add"))
        from = mlo_maker_in(g, from->input[0]);
    w->open = mlo_is(p, "Sub") || !mlo_is(from, "Clip") || !mlo_clip_bound(m, g, from, 1, &w->lo)
        || !mlo_clip_bound(m, g, from, 2, &w->hi);
    if (w->open) {
        w->lo = -128;
        w->hi = 127;
    }
    return 1;
}

/* Where the integers of weight `name` come from, through transposes. */
static int mlo_weight_source_of(
    mlo *m, const mlo_scan *s, const mlo_graph *g, const char *name, mlo_weight_source *w) {
    int swapped = 0;
    const mlo_node *n = mlo_maker_in(g, name);
    for (; mlo_is(n, "Transpose") || mlo_is(n, "Identity"); n = mlo_maker_in(g, n->input[0])) {
        const mlo_attr *perm = mlo_attr_of(n, "perm");
        if (mlo_is(n, "Transpose")) swapped ^= !perm || (perm->n_ints == 2 && perm->ints[0] == 1);
    }
    memset(w, 0, sizeof *w);
    if (mlo_is(n, "DequantizeLinear")) {
        mlo_form f = mlo_form_of(mlo_value_of(g, n->input[0]));
        if (!f.dtype || f.rank != 2) return 0;
        w->scale = n->input[1];
        w->zero = mlo_zero_input(n);
        w->integers = n->input[0];
        w->axis = mlo_int(n, "axis", 1);
        w->node = n;
        mlo_bounds(f.dtype, &w->lo, &w->hi);
    } else if (!mlo_is(n, "Mul") || !mlo_weight_chain(m, g, n, w))
        return 0;
    mlo_form f = mlo_form_of(mlo_value_of(g, w->scale));
    w->axis = w->stored = mlo_is_parameter(s, g, w->scale, 0) ? mlo_scale_axis(&f, w->axis) : -2;
    if (w->axis >= 0 && swapped) w->axis = 1 - w->axis;
    return 1;
}

/* Are there integers that take more than 8 bits less their zero point, in iteration i? *zero becomes 1 when
 * there is one that is not 0. Looks only where there might be. */
static int mlo_weight_wide(mlo *m, const mlo_scan *s, const mlo_graph *g,
    const mlo_weight_source *w, int64_t i, int *zero) {
    mlo_array *z = w->zero ? mlo_value_array(m, s, g, w->zero, i, 0) : NULL, *q = NULL;
    int64_t n = z ? mlo_array_count(z) : 0;
    int any = 0, wide = 0;
    for (int64_t k = 0; k < n; k++) any |= mlo_differs(mlo_number_at(z, k), 0);
    if ((any || w->open) && (q = mlo_value_array(m, s, g, w->integers, i, 0)) != NULL
        && q->rank == 2) {
        for (int64_t k = 0; k < mlo_array_count(q) && !wide; k++) {
            double at = n
                ? mlo_number_at(z, n == 1 ? 0 : (w->stored ? k % q->dims[1] : k / q->dims[1]) % n)
                : 0;
            double v = mlo_number_at(q, k);
            wide = v - at < -128 || v - at > 127;
        }
    }
    *zero |= any;
    mlo_array_free(m, z);
    mlo_array_free(m, q);
    return wide;
}

/* Weights whose integers are not taken over: the first, and how many. */
typedef struct {
    const mlo_node *node;
    const char *why;
    size_t count;
} mlo_anew;

/* Why a weight's integers cannot be taken over, NULL: they can. *zero: one has a zero point. */
static const char *mlo_weight_anew(
    mlo *m, const mlo_scan *s, const mlo_weight_source *w, int transposed, int *zero) {
    if (w->axis == -2) return "its scales are neither one per tensor nor one per channel";
    if (w->axis == (transposed ? 1 : 0)) return "it has a scale per input channel";
    for (int64_t i = 0; (w->zero || w->open) && i < s->iterations; i++)
        if (mlo_weight_wide(m, s, s->body, w, i, zero))
            return "less their zero point its integers take more than 8 bits";
    return NULL;
}

/* What the source fixes of a linear layer's weight [K,N] (or [N,K] when transposed): NULL when
 * nothing (in *anew where it is quantized otherwise), or failed. */
static mlo_given *mlo_weight_given(
    mlo *m, const mlo_scan *s, const char *name, int transposed, int64_t columns, mlo_anew *anew) {
    mlo_weight_source w;
    int zero = 0;
    const mlo_graph *g = s->body;
    if (!mlo_weight_source_of(m, s, g, name, &w)) return NULL;
    const char *why = mlo_weight_anew(m, s, &w, transposed, &zero);
    if (why && !anew->count++) {
        anew->node = w.node;
        anew->why = why;
    }
    if (why || m->error.code) return NULL;
    mlo_given *y = MLO_NEW(m, mlo_given);
    if (!y || !(y->scale = MLO_NEW_N(m, double, (size_t)(s->iterations * columns)))) return NULL;
    mlo_given_width(y, zero ? -128 : w.lo, zero ? 127 : w.hi);
    /* 0 .. 2^bits - 1, as signed integers */
    if (!zero && !y->sign) {
        y->sign = 1;
        y->bits++;
    }
    for (int64_t i = 0; i < s->iterations && !m->error.code; i++) {
        mlo_array *a = mlo_value_array(m, s, g, w.scale, i, 0);
        int64_t n = a ? mlo_array_count(a) : 0;
        for (int64_t k = 0; n && k < columns; k++)
            y->scale[i * columns + k] = mlo_number_at(a, k % n);
        mlo_array_free(m, a);
    }
    return m->error.code ? NULL : y;
}

/* ---- QONNX's operators, and quantized ones, as standard operators --------- */

static int mlo_x_constant(mlo_expansion *x, size_t i, double *v) {
    if (mlo_lone_number(x->m, mlo_value_of(x->g, mlo_x_in(x, i)), v)) return 1;
    mlo_x_stay(x, "input %zu is not one constant for all layers", i);
    return 0;
}

/* The rounding that QONNX's rounding_mode names. */
static const char *mlo_x_rounded(mlo_expansion *x, const char *v, const char *otherwise) {
    const mlo_rounding_mode *mode = mlo_rounding_mode_of(x->n, otherwise);
    if (!mode) {
        mlo_x_stay(x,
            "its rounding mode is unknown; ROUND, FLOOR, CEIL, UP, DOWN, HALF_UP, HALF_DOWN and "
            "ROUND_TO_ZERO are supported");
        return "";
    }
    if (!mode->of_size) return MLO_X(x, mode->op, v);
    const char *sign = MLO_X(x, "Sign", v);
    const char *size = MLO_X(x, "Abs", v);
    const char *offset = mlo_x_number(x, mode->offset);
    if (mlo_differs(mode->offset, 0)) size = MLO_X(x, "Add", size, offset);
    size = MLO_X(x, mode->op, size);
    return MLO_X(x, "Mul", size, sign);
}

static int mlo_x_is_zero(mlo_expansion *x, size_t i) {
    double zero = 1;
    return mlo_lone_number(x->m, mlo_value_of(x->g, mlo_x_in(x, i)), &zero)
        && !mlo_differs(zero, 0);
}

/* A width that kernels could have. */
static int mlo_x_bits(mlo_expansion *x, size_t i, double *bits) {
    if (!mlo_x_constant(x, i, bits)) return 0;
    if (!(*bits >= 1 && *bits <= 24) || *bits > rint(*bits) || *bits < rint(*bits))
        mlo_x_stay(x, "a width of %g bits; whole numbers from 1 to 24 are supported", *bits);
    return !x->why;
}

static const char *mlo_x_clip_to(mlo_expansion *x, const char *v, double bits) {
    int sign = mlo_int(x->n, "signed", 1) != 0, narrow = mlo_int(x->n, "narrow", 0) != 0;
    const char *lo = mlo_x_number(x, sign ? -ldexp(1, (int)bits - 1) + narrow : 0);
    const char *hi = mlo_x_number(x, ldexp(1, (int)bits - sign) - 1 - (sign ? 0 : narrow));
    return MLO_X(x, "Clip", v, lo, hi);
}

/* -1 below 0, else 1, times scale. */
static void mlo_given_bipolar(mlo_expansion *x) {
    const char *y = MLO_X(x, "Sign", mlo_x_in(x, 0))
    , *half = mlo_x_number(x, 0.5);
    y = MLO_X(x, "Add", y, half);
    y = MLO_X(x, "Sign", y);
    mlo_x_out(x, 0, MLO_X(x, "Mul", y, mlo_x_in(x, 1)));
}

/* Quant(x, scale, zero, bits) */
static void mlo_given_quant(mlo_expansion *x) {
    double bits;
    int offset = !mlo_x_is_zero(x, 2);
    if (!mlo_x_bits(x, 3, &bits)) return;
    if (bits < 2 && mlo_int(x->n, "signed", 1)) {
        mlo_given_bipolar(x);
        return;
    }
    const char *y = MLO_X(x, "Div", mlo_x_in(x, 0), mlo_x_in(x, 1));
    if (offset) y = MLO_X(x, "Add", y, mlo_x_in(x, 2));
    y = mlo_x_clip_to(x, y, bits);
    y = mlo_x_rounded(x, y, "ROUND");
    if (offset) y = MLO_X(x, "Sub", y, mlo_x_in(x, 2));
    mlo_x_out(x, 0, MLO_X(x, "Mul", y, mlo_x_in(x, 1)));
}

/* The power of two next to input a / input b. */
static const char *mlo_x_power_between(mlo_expansion *x, size_t a, size_t b) {
    const char *two = mlo_x_number(x, 2);
    const char *log_two = mlo_x_number(x, log(2));
    const char *y = MLO_X(x, "Div", mlo_x_in(x, a), mlo_x_in(x, b));
    y = MLO_X(x, "Log", y);
    y = MLO_X(x, "Div", y, log_two);
    y = MLO_X(x, "Round", y);
    return MLO_X(x, "Pow", two, y);
}

/* Trunc(x, scale, zero, bits, new bits), and Trunc(x, scale, zero, bits, new scale, new bits): see
 * ops/qonnx.c. */
static void mlo_given_trunc(mlo_expansion *x) {
    int second = *mlo_x_in(x, 5) != 0, offset = !mlo_x_is_zero(x, 2);
    double bits, to;
    if (!mlo_x_bits(x, 3, &bits) || !mlo_x_bits(x, second ? 5 : 4, &to)) return;
    const char *y = MLO_X(x, "Div", mlo_x_in(x, 0), mlo_x_in(x, 1));
    const char *zero = mlo_x_in(x, 2);
    const char *by = second ? mlo_x_power_between(x, 4, 1)
                            : mlo_x_number(x, ldexp(1, (int)(bits - to)));
    if (offset) y = MLO_X(x, "Add", y, zero);
    y = MLO_X(x, "Round", y);
    y = MLO_X(x, "Div", y, by);
    if (second) y = mlo_x_clip_to(x, y, to);
    y = mlo_x_rounded(x, y, "FLOOR");
    if (offset && second) zero = MLO_X(x, "Div", zero, by);
    if (offset) y = MLO_X(x, "Sub", y, zero);
    mlo_x_out(x, 0, MLO_X(x, "Mul", y, mlo_x_in(x, second ? 4 : 1)));
}

static const char *mlo_x_dequantized(mlo_expansion *x, size_t i, int axis) {
    const char *y = MLO_X(
        x, "DequantizeLinear", mlo_x_in(x, i), mlo_x_in(x, i + 1), mlo_x_in(x, i + 2));
    mlo_x_int(x, "axis", axis);
    return y;
}

/* QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero) */
static void mlo_given_qlinear_matmul(mlo_expansion *x) {
    const char *a = mlo_x_dequantized(x, 0, mlo_x_rank(x, 0) - 2);
    const char *b = mlo_x_dequantized(x, 3, mlo_x_rank(x, 3) - 1);
    const char *y = MLO_X(x, "MatMul", a, b);
    mlo_x_out(x, 0, MLO_X(x, "QuantizeLinear", y, mlo_x_in(x, 6), mlo_x_in(x, 7)));
}

/* Mul(Cast(MatMulInteger(a, b, a's zero, b's zero)), scale), or ConvInteger, a made by QuantizeLinear or
 * DynamicQuantizeLinear: the product of what they stand for. NULL: it is none. */
static const mlo_node *mlo_given_product(const mlo_expansion *x, const char **scale) {
    for (size_t i = 0; i < 2 && mlo_is(x->n, "Mul"); i++) {
        const mlo_node *cast = mlo_maker_in(x->g, x->n->input[i]);
        const mlo_node *product = mlo_is(cast, "Cast") ? mlo_maker_in(x->g, cast->input[0]) : NULL;
        *scale = x->n->input[1 - i];
        const int of_weights = mlo_is(product, "MatMulInteger") || mlo_is(product, "ConvInteger");
        const mlo_node *a = of_weights ? mlo_maker_in(x->g, product->input[0]) : NULL;
        if (mlo_is(a, "QuantizeLinear")
            || (mlo_is(a, "DynamicQuantizeLinear") && a->n_output == 3 && mlo_has_input(product, 2)
                && product->input[2] == a->output[2]))
            return product;
    }
    return NULL;
}
/* What is left of a product's scale where that of its dynamic operand `a` is taken out; NULL: it is not
 * their product. */
static const char *mlo_given_other_scale(
    const mlo_expansion *x, const mlo_node *a, const char *scale) {
    const mlo_node *both = mlo_maker_in(x->g, scale);
    for (size_t i = 0; i < 2 && mlo_is(both, "Mul"); i++)
        if (both->input[i] == a->output[1]) return both->input[1 - i];
    return NULL;
}
/* The zero point of the weights, of which there must be as many as scales; "" where it is 0. */
static const char *mlo_given_product_zero(
    mlo_expansion *x, const mlo_node *product, int64_t scales) {
    const mlo_value *z = mlo_has_input(product, 3) ? mlo_value_of(x->g, product->input[3]) : NULL;
    int64_t n = z && z->tensor ? mlo_tensor_count(z->tensor) : 0;
    int any = z && !z->tensor;
    for (int64_t k = 0; k < n && !any; k++) {
        double v;
        any = mlo_tensor_doubles(x->m, z->tensor, k, 1, &v) || mlo_differs(v, 0);
    }
    if (any && mlo_parameter_count(x->g, z->name) != scales)
        mlo_fail(x->m, MLO_E_UNSUPPORTED, product,
            "zero points of weights, not as many as there are scales (%lld); quantize the weights "
            "symmetrically",
            (long long)scales);
    return any ? z->name : "";
}
static void mlo_given_matmul(mlo_expansion *x, const mlo_node *product, const char *scale) {
    static const int64_t flat[] = { -1 };
    const mlo_node *a = mlo_maker_in(x->g, product->input[0]);
    const int dynamic = mlo_is(a, "DynamicQuantizeLinear");
    const char *y = a->input[0];
    if (dynamic) scale = mlo_given_other_scale(x, a, scale);
    mlo_form f = mlo_form_of(scale ? mlo_value_of(x->g, scale) : NULL);
    mlo_form w = mlo_form_of(mlo_value_of(x->g, product->input[1]));
    const int conv = mlo_is(product, "ConvInteger");
    if (!mlo_form_known(&f) || (conv ? w.rank < 3 : w.rank != 2)) {
        mlo_fail(x->m, MLO_E_UNSUPPORTED, product,
            "a product whose weights are no matrix, or whose scale is of unknown shape");
        return;
    }
    const char *zero = mlo_given_product_zero(x, product, mlo_form_count(&f));
    if (!dynamic) {
        y = MLO_X(x, "DequantizeLinear", a->output[0], a->input[1],
            mlo_has_input(a, 2) ? a->input[2] : "");
        scale = MLO_X(x, "Div", scale, a->input[1]);
    }
    if (f.rank != 1 && mlo_form_count(&f) > 1) scale = mlo_x_reshape(x, scale, flat, 1);
    const char *b = MLO_X(x, "DequantizeLinear", product->input[1], scale, zero);
    mlo_x_int(x, "axis", !conv);
    y = MLO_X(x, conv ? "Conv" : "MatMul", y, b);
    if (conv) mlo_x_attrs_of(x, product, NULL);
    mlo_x_out(x, 0, y);
}

typedef struct {
    const char *op;
    const char *inputs; /* an x for each that it must have */
    void (*expand)(mlo_expansion *x);
} mlo_given_op;
static const mlo_given_op mlo_given_ops[] = {
    { "qonnx.custom_op.general.Quant", "xxxx", mlo_given_quant },
    { "qonnx.custom_op.general.IntQuant", "xxxx", mlo_given_quant },
    { "onnx.brevitas.Quant", "xxxx", mlo_given_quant },
    { "finn.custom_op.general.Quant", "xxxx", mlo_given_quant },
    { "qonnx.custom_op.general.BipolarQuant", "xx", mlo_given_bipolar },
    { "onnx.brevitas.BipolarQuant", "xx", mlo_given_bipolar },
    { "finn.custom_op.general.BipolarQuant", "xx", mlo_given_bipolar },
    { "qonnx.custom_op.general.Trunc", "xxxxx", mlo_given_trunc },
    { "onnx.brevitas.Trunc", "xxxxx", mlo_given_trunc },
    { "finn.custom_op.general.Trunc", "xxxxx", mlo_given_trunc },
    { "QLinearMatMul", "xxxxxxxx", mlo_given_qlinear_matmul },
};

static int mlo_given_node(mlo_expansion *x) {
    for (size_t i = 0; i < sizeof mlo_given_ops / sizeof *mlo_given_ops; i++)
        if (mlo_is(x->n, mlo_given_ops[i].op)) {
            x->dtype = MLO_FLOAT;
            for (size_t k = 0; mlo_given_ops[i].inputs[k]; k++)
                if (!*mlo_x_in(x, k)) mlo_x_stay(x, "it has no input %zu", k);
            if (!x->why) mlo_given_ops[i].expand(x);
            if (x->why && !x->m->error.code) mlo_fail(x->m, MLO_E_UNSUPPORTED, x->n, "%s", x->why);
            return 1;
        }
    const char *scale;
    const mlo_node *product = mlo_given_product(x, &scale);
    x->dtype = MLO_FLOAT;
    if (product) {
        mlo_given_matmul(x, product, scale);
        return 1;
    }
    return 0;
}

typedef struct {
    size_t expanded;
} mlo_given_walk;
static int mlo_given_graph(mlo *m, void *graph, void *user) {
    mlo_graph *g = (mlo_graph *)graph;
    mlo_node **list = NULL;
    size_t n = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_expansion x = { m, g, g->node[i], mlo_opset_of(m), MLO_UNDEFINED, NULL, 0, NULL, 0 };
        int expanded = mlo_given_node(&x);
        if (m->error.code) return mlo_failed(m);
        if (!expanded) {
            x.made = &g->node[i];
            x.n_made = 1;
        }
        ((mlo_given_walk *)user)->expanded += (size_t)expanded;
        for (size_t k = 0; k < x.n_made; k++)
            if (!MLO_PUSH(m, list, n, x.made[k])) return mlo_failed(m);
    }
    g->node = list;
    g->n_node = n;
    return 0;
}

static int mlo_given_pruned(mlo *m, void *graph, void *user) {
    (void)user;
    return mlo_drop_dead(m, (mlo_graph *)graph);
}

/* A dynamic rounding whose products are others than those of weights stays, and no core has it. */
static int mlo_given_dynamic(mlo *m, const mlo_graph *body) {
    for (size_t i = 0; i < body->n_node; i++)
        if (mlo_is(body->node[i], "DynamicQuantizeLinear"))
            return mlo_fail(m, MLO_E_UNSUPPORTED, body->node[i],
                "its scale depends on the data, and more than products with weights use it; a core "
                "needs scales that are known before. Quantize the model statically, or give the "
                "float model");
    return 0;
}

/* Every graph of the model in standard operators. */
static int mlo_given_standard(mlo *m) {
    mlo_given_walk w = { 0 };
    mlo_graph *g = m->model->graph;
    MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_GRAPH, mlo_given_graph, &w));
    if (!w.expanded) return 0;
    MLO_TRY(mlo_index(m, g)
        || mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_GRAPH, mlo_given_pruned, NULL));
    MLO_TRY(mlo_index(m, g));
    return mlo_infer(m);
}
