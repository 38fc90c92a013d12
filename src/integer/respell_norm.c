/* respell_norm: the rules of respell.c about norms: written out, of a deviation, over each head.
 *
 * in:  a node of a float loop body, the last one of a norm.
 * out: LayerNormalization or RMSNormalization; one over heads stands behind what makes the channels,
 *     between [1, T, H, D] and [1, T, H D].
 *
 * invariant: an epsilon outside of the root is another function, and is left alone, but where it is too small
 *     to be more than a guard against 0 (tutorials write (x - mean) / (std + 1e-6)).
 * example: x * Reciprocal(Sqrt(ReduceMean(x * x) + e)) * w is RMSNormalization(x, w).
 * cost: O(nodes of the norm); for one over heads an element map.
 */

/* ---- norms ---------------------------------------------------------------- */

/* A norm as it is found, from end to beginning: gamma factor (x - mean) / sqrt(mean((x - mean)^2) +
 * epsilon) + beta. */
typedef struct {
    const mlo_inside *in;
    mlo_form form; /* of its result */
    int64_t channels;
    const char *x;
    const char *gamma; /* NULL: 1 */
    const char *beta; /* NULL: 0 */
    double epsilon;
    double factor;
    int centred; /* 0: there is no mean in it */
    mlo_node *taken[24]; /* the nodes that it is made of */
    int n_taken;
} mlo_found_norm;

static void mlo_norm_take(mlo_found_norm *f, mlo_node *n) {
    if (f->n_taken < 24) f->taken[f->n_taken++] = n;
}

/* Is it reduced over this axis, and no other? */
static int mlo_reduces_only(const mlo_inside *in, const mlo_node *n, int64_t which) {
    int64_t axis = 0;
    const mlo_attr *a = mlo_attr_of(n, "axes");
    mlo_value *v = mlo_has_input(n, 1) ? mlo_value_of(in->body, n->input[1]) : NULL;
    if (a && a->n_ints == 1)
        axis = a->ints[0];
    else if (!v || !v->tensor || mlo_tensor_ints(in->m, v->tensor, &axis, 1) != 1)
        return 0;
    return axis == which || axis + mlo_body_form(in, n->input[0]).rank == which;
}
static int mlo_reduces_last(const mlo_inside *in, const mlo_node *n) {
    return mlo_reduces_only(in, n, mlo_body_form(in, n->input[0]).rank - 1);
}

/* What is reduced over the channels, by this operator? */
static const char *mlo_norm_reduced(mlo_found_norm *f, const char *name, const char *op) {
    mlo_node *n = mlo_made_by(f->in, name);
    if (!mlo_is(n, op) || !mlo_int(n, "keepdims", 1)) return NULL;
    mlo_form x = mlo_body_form(f->in, n->input[0]);
    if (!mlo_reduces_last(f->in, n) || mlo_last_dim(&x) != f->channels) return NULL;
    mlo_norm_take(f, n);
    return n->input[0];
}

/* What a value is, through casts to another kind of floats: a variance in double. */
static const char *mlo_norm_uncast(mlo_found_norm *f, const char *name) {
    mlo_node *n;
    for (int i = 0; i < 4 && mlo_is(n = mlo_made_by(f->in, name), "Cast"); i++) {
        if (!mlo_dtype_is_float(mlo_body_form(f->in, n->input[0]).dtype)
            || !mlo_dtype_is_float((mlo_dtype)mlo_int(n, "to", 0)))
            break;
        mlo_norm_take(f, n);
        name = n->input[0];
    }
    return name;
}

/* Does a condition hold only where all channels of x are the same number: min = max, and perhaps more? */
static int mlo_norm_of_equals(mlo_found_norm *f, const char *name, const char *x) {
    mlo_node *n = mlo_made_by(f->in, name);
    if (!mlo_is(n, "And") && !mlo_is(n, "Equal")) return 0;
    mlo_norm_take(f, n);
    if (mlo_is(n, "And"))
        return mlo_norm_of_equals(f, n->input[0], x) || mlo_norm_of_equals(f, n->input[1], x);
    for (int i = 0; i < 2; i++)
        if (mlo_norm_reduced(f, n->input[i], "ReduceMin") == x
            && mlo_norm_reduced(f, n->input[1 - i], "ReduceMax") == x)
            return 1;
    return 0;
}

/* What a deviation is that is set to 0 where it is 0: of a token whose channels are all the same number (jax2onnx). */
static const char *mlo_norm_unsteady(mlo_found_norm *f, const char *name) {
    mlo_node *n = mlo_made_by(f->in, name);
    double zero;
    if (!mlo_is(n, "Where") || !mlo_scalar(f->in, n->input[1], &zero) || mlo_differs(zero, 0))
        return name;
    const mlo_node *less = mlo_made_by(f->in, n->input[2]);
    if (!mlo_is(less, "Sub") || mlo_norm_reduced(f, less->input[1], "ReduceMean") != less->input[0]
        || !mlo_norm_of_equals(f, n->input[0], less->input[0]))
        return name;
    mlo_norm_take(f, n);
    return n->input[2];
}

/* Notes what a value is the deviation from its mean of, or (when it is no such thing) itself, and
 * which it is. */
static int mlo_norm_input(mlo_found_norm *f, const char *name) {
    mlo_node *n = mlo_made_by(f->in, name = mlo_norm_unsteady(f, mlo_norm_uncast(f, name)));
    const char *x = name,
               *of = mlo_is(n, "Sub") ? mlo_norm_reduced(f, n->input[1], "ReduceMean") : NULL;
    int centred = of && of == n->input[0];
    if (centred) {
        x = of;
        mlo_norm_take(f, n);
    }
    if (f->x) return f->x == x && f->centred == centred;
    f->x = x;
    f->centred = centred;
    return mlo_is_carried(f->in, x);
}

/* What a square is the square of; NULL: it is none. */
static const char *mlo_norm_unsquared(mlo_found_norm *f, const char *name) {
    mlo_node *p = mlo_made_by(f->in, mlo_norm_uncast(f, name));
    double two = 0;
    const int pow = mlo_is(p, "Pow") && mlo_scalar(f->in, p->input[1], &two) && two >= 2
        && two <= 2;
    const int times = mlo_is(p, "Mul") && p->input[0] == p->input[1];
    if (!pow && !times) return NULL;
    mlo_norm_take(f, p);
    return p->input[0];
}

/* Is it mean(x^2) - mean(x)^2, the mean square of x's deviation? (Flax and Haiku compute it so.) */
static int mlo_norm_variance(mlo_found_norm *f, const char *name) {
    mlo_node *n = mlo_made_by(f->in, name);
    if (!mlo_is(n, "Sub") || f->x) return 0;
    mlo_norm_take(f, n);
    const char *square = mlo_norm_reduced(f, n->input[0], "ReduceMean");
    const char *x = square ? mlo_norm_unsquared(f, square) : NULL;
    const char *mean = x ? mlo_norm_unsquared(f, n->input[1]) : NULL;
    if (!mean || mlo_norm_reduced(f, mean, "ReduceMean") != x || !mlo_is_carried(f->in, x))
        return 0;
    f->x = x;
    f->centred = 1;
    return 1;
}

/* Is it *by mean(d^2), d being the deviation? */
static int mlo_norm_square(mlo_found_norm *f, const char *name, double *by) {
    const char *from;
    mlo_node *n = mlo_made_by(f->in, name = mlo_norm_uncast(f, name));
    for (*by = 1; n; n = mlo_made_by(f->in, name = from)) {
        if (!(from = mlo_unscaled(f->in, n, by))) break;
        mlo_norm_take(f, n);
    }
    const double channels = (double)f->channels;
    if (mlo_norm_variance(f, name)) return 1;
    if ((from = mlo_norm_reduced(f, name, "ReduceSumSquare")) != NULL) {
        *by *= channels;
        return mlo_norm_input(f, from);
    }
    if ((from = mlo_norm_reduced(f, name, "ReduceMean")) == NULL) {
        if ((from = mlo_norm_reduced(f, name, "ReduceSum")) == NULL) return 0;
        *by *= channels;
    }
    return (from = mlo_norm_unsquared(f, from)) != NULL && mlo_norm_input(f, from);
}

/* What a value is, when it is not smaller than a floor: that is no epsilon, but where it is as
 * small as this it decides of nothing but noise. A summand is one everywhere, and has to be smaller. */
#define MLO_NORM_FLOOR 1e-5
#define MLO_NORM_GUARD 1e-6
static const char *mlo_norm_unfloored(const mlo_inside *in, const mlo_node *n, double *least) {
    const int clip = mlo_is(n, "Clip") && n->n_input > 1 && !mlo_has_input(n, 2);
    if (!clip && !(mlo_is(n, "Max") && n->n_input == 2)) return NULL;
    if (mlo_scalar(in, n->input[1], least)) return n->input[0];
    return !clip && mlo_scalar(in, n->input[0], least) ? n->input[1] : NULL;
}

/* What a power is that a floor of 0 keeps from becoming less by rounding. */
static const char *mlo_norm_positive(mlo_found_norm *f, const char *name) {
    mlo_node *n = mlo_made_by(f->in, name);
    double least = 0;
    const char *from = n ? mlo_norm_unfloored(f->in, n, &least) : NULL;
    if (!from || least < 0 || least > 0) return name;
    mlo_norm_take(f, n);
    return from;
}

/* Is it *by (mean(d^2) + epsilon)? */
static int mlo_norm_power(mlo_found_norm *f, const char *name, double *by) {
    mlo_node *n = mlo_made_by(f->in, name);
    double epsilon = 0;
    if (mlo_is(n, "Add")) {
        int second = mlo_scalar(f->in, n->input[1], &epsilon);
        if (!second && !mlo_scalar(f->in, n->input[0], &epsilon)) return 0;
        mlo_norm_take(f, n);
        name = n->input[second ? 0 : 1];
    }
    name = mlo_norm_positive(f, name);
    if (!mlo_norm_square(f, name, by) || !(*by > 0) || epsilon < 0) return 0;
    f->epsilon = epsilon / *by;
    return 1;
}

/* What a value is, less a summand; as small as a floor is, that decides of nothing, either. */
static const char *mlo_norm_unguarded(const mlo_inside *in, const mlo_node *n, double *guard) {
    if (!mlo_is(n, "Add")) return NULL;
    if (mlo_scalar(in, n->input[1], guard)) return n->input[0];
    return mlo_scalar(in, n->input[0], guard) ? n->input[1] : NULL;
}

/* *by sqrt(power), or (inverse) *by / sqrt(power) */
static int mlo_norm_root(mlo_found_norm *f, const char *name, int inverse, double *by) {
    mlo_node *n = mlo_made_by(f->in, name);
    double x = 0;
    const char *from;
    if (!n || !mlo_is_carried(f->in, name)) return 0;
    mlo_norm_take(f, n);
    if (mlo_is(n, "Expand")) return mlo_norm_root(f, n->input[0], inverse, by);
    double scale = 1;
    if ((from = mlo_unscaled(f->in, n, &scale)) != NULL) {
        if (!mlo_norm_root(f, from, inverse, by)) return 0;
        *by *= scale;
        return 1;
    }
    int over = inverse && mlo_is(n, "Div") && mlo_scalar(f->in, n->input[0], &x);
    if (over || (inverse && mlo_is(n, "Reciprocal"))) {
        if (!mlo_norm_root(f, n->input[over], 0, by)) return 0;
        *by = (over ? x : 1) / *by;
        return 1;
    }
    const char *floored = mlo_norm_unfloored(f->in, n, &x);
    if (!inverse && (from = floored ? floored : mlo_norm_unguarded(f->in, n, &x)) != NULL) {
        const double most = floored ? MLO_NORM_FLOOR : MLO_NORM_GUARD;
        if (!mlo_norm_root(f, from, 0, by) || x < 0 || x > most * *by) return 0;
        f->epsilon = f->epsilon > 0 ? f->epsilon : x / *by * (x / *by);
        return 1;
    }
    if (!inverse && (from = mlo_norm_reduced(f, name, "ReduceL2")) != NULL) {
        *by = sqrt((double)f->channels);
        return mlo_norm_input(f, from);
    }
    int power = mlo_is(n, "Pow") && mlo_scalar(f->in, n->input[1], &x), half = inverse ? -1 : 1;
    if (!(mlo_is(n, "Sqrt") && !inverse) && !(power && 2 * x >= half && 2 * x <= half)) return 0;
    if (!mlo_norm_power(f, n->input[0], by)) return 0;
    *by = inverse ? 1 / sqrt(*by) : sqrt(*by);
    return 1;
}

/* A parameter of one number for each channel, for all channels (perhaps another one in each layer), or
 * for each channel of each head: [H, D], with ones in between. */
static int mlo_is_norm_parameter(const mlo_found_norm *f, const char *name) {
    const mlo_form p = mlo_body_form(f->in, name);
    int64_t parts = 1;
    if (mlo_is_per_channel(f->in, name, f->channels) || mlo_is_number(f->in, name)) return 1;
    if (mlo_is_carried(f->in, name) || !mlo_form_known(&p) || mlo_last_dim(&p) != f->channels
        || p.rank > f->form.rank)
        return 0;
    for (int i = 0; i < p.rank - 1; i++) {
        if (p.dims[i] > 1 && (parts > 1 || p.dims[i] != f->form.dims[f->form.rank - p.rank + i]))
            return 0;
        parts *= p.dims[i];
    }
    return 1;
}

/* Takes a factor or a summand per channel off the end. Returns what is left. */
static const char *mlo_norm_strip(
    mlo_found_norm *f, const char *name, const char *op, const char **parameter, int inside) {
    mlo_node *n = mlo_made_by(f->in, name);
    const char *rest, *other;
    if (*parameter || !mlo_is_half(f->in, n, op, &rest, &other)) return name;
    double same;
    if (!mlo_is_norm_parameter(f, other) || (f->channels > 1 && mlo_scalar(f->in, other, &same)))
        return name;
    if (inside && !mlo_is_used_once(f->in, name)) return name;
    mlo_norm_take(f, n);
    *parameter = other;
    return rest;
}

/* Takes a constant factor off the end. */
static const char *mlo_norm_unscale(mlo_found_norm *f, const char *name) {
    mlo_node *n = mlo_made_by(f->in, name);
    const char *from = mlo_is_carried(f->in, name) ? mlo_unscaled(f->in, n, &f->factor) : NULL;
    if (!from) return name;
    mlo_norm_take(f, n);
    return from;
}

/* deviation / root, or deviation * (1 / root), in any order; a factor per channel, or a constant,
 * may hide in the deviation, or the factor in 1 / root. */
static int mlo_norm_quotient(mlo_found_norm *f, const char *name) {
    mlo_node *n = mlo_made_by(f->in, name);
    int quotient = mlo_is(n, "Div");
    if (!quotient && !mlo_is(n, "Mul")) return 0;
    mlo_norm_take(f, n);
    for (int i = 0; i < (quotient ? 1 : 2); i++) {
        mlo_found_norm tried = *f;
        double by = 1;
        const char *top = mlo_norm_strip(&tried, n->input[i], "Mul", &tried.gamma, 1);
        const char *root = n->input[1 - i];
        if (!quotient) root = mlo_norm_strip(&tried, root, "Mul", &tried.gamma, 1);
        if (!mlo_norm_root(&tried, root, !quotient, &by)) continue;
        if (tried.x != top && mlo_is_used_once(f->in, top)) top = mlo_norm_unscale(&tried, top);
        if (!mlo_norm_input(&tried, top)) continue;
        tried.factor *= quotient ? 1 / by : by;
        *f = tried;
        return 1;
    }
    return 0;
}

static const char *mlo_x_ones(mlo_expansion *x, int64_t n) {
    const char *one = mlo_x_number(x, 1), *shape = mlo_x_list(x, &n, 1);
    return MLO_X(x, "Expand", one, shape);
}

/* A norm's parameter; one number for each channel, or one for all, is a list. */
static const char *mlo_x_norm_parameter(
    mlo_expansion *x, const mlo_found_norm *f, const char *name) {
    const int64_t one = 1;
    if (mlo_is_per_channel(f->in, name, f->channels))
        return mlo_x_reshape(x, name, &f->channels, 1);
    if (!mlo_is_number(f->in, name)) return name;
    const char *number = mlo_x_reshape(x, name, &one, 1);
    const char *shape = mlo_x_list(x, &f->channels, 1);
    return MLO_X(x, "Expand", number, shape);
}

/* A norm's gamma, with its factor. */
static const char *mlo_x_gamma(mlo_expansion *x, const mlo_found_norm *f) {
    const char *gamma = f->gamma ? mlo_x_norm_parameter(x, f, f->gamma)
                                 : mlo_x_ones(x, f->channels);
    if (fabs(f->factor - 1) <= 1e-7) return gamma;
    const char *factor = mlo_x_number(x, f->factor);
    return MLO_X(x, "Mul", gamma, factor);
}

/* The other factor of a product with s; NULL: it is none. */
static const char *mlo_norm_cofactor(mlo_found_norm *f, const char *name, const char *s) {
    mlo_node *n = mlo_made_by(f->in, name);
    if (!mlo_is(n, "Mul") || (n->input[0] != s && n->input[1] != s)) return NULL;
    mlo_norm_take(f, n);
    return n->input[n->input[0] == s];
}

/* What is mean(x) in beta - mean(x) s, or in -mean(x) s + beta; NULL: it is something else. */
static const char *mlo_norm_shift(mlo_found_norm *f, const char *name, const char *s) {
    mlo_node *n = mlo_made_by(f->in, name);
    if (mlo_is(n, "Sub") && mlo_is_norm_parameter(f, n->input[0])) {
        mlo_norm_take(f, n);
        f->beta = n->input[0];
        return mlo_norm_cofactor(f, n->input[1], s);
    }
    const char *less = mlo_norm_cofactor(f, mlo_norm_strip(f, name, "Add", &f->beta, 1), s);
    n = less ? mlo_made_by(f->in, less) : NULL;
    if (!mlo_is(n, "Neg")) return NULL;
    mlo_norm_take(f, n);
    return n->input[0];
}

/* Is it x s + (beta - mean(x) s) with s = gamma / root, as TensorFlow writes it out? */
static int mlo_norm_affine(mlo_found_norm *f, const char *out) {
    mlo_node *n = mlo_made_by(f->in, out);
    for (int i = 0; mlo_is(n, "Add") && i < 4; i++) {
        mlo_found_norm g = *f;
        mlo_node *top = mlo_made_by(f->in, n->input[i & 1]);
        double by = 1;
        if (!mlo_is(top, "Mul")) continue;
        mlo_norm_take(&g, n);
        mlo_norm_take(&g, top);
        const char *x = top->input[i >> 1], *s = top->input[1 - (i >> 1)];
        const char *mean = mlo_norm_shift(&g, n->input[1 - (i & 1)], s);
        if (!mean || mlo_norm_reduced(&g, mean, "ReduceMean") != x) continue;
        if (!mlo_norm_root(&g, mlo_norm_strip(&g, s, "Mul", &g.gamma, 0), 1, &by)) continue;
        if (g.x != x || !g.centred) continue;
        g.factor *= by;
        *f = g;
        return 1;
    }
    return 0;
}

/* From its end to the quotient: beta, then gamma and constants in any order. */
static int mlo_norm_find(mlo_found_norm *f, const char *out) {
    const char *rest = mlo_norm_strip(f, out, "Add", &f->beta, 0);
    for (int i = 0; i < 4; i++) {
        rest = mlo_norm_uncast(f, rest);
        mlo_found_norm tried = *f;
        if (mlo_norm_quotient(&tried, rest)) {
            *f = tried;
            return 1;
        }
        if (rest != out && !mlo_is_used_once(f->in, rest)) return 0;
        const char *inner = mlo_norm_strip(f, rest, "Mul", &f->gamma, 0);
        if (inner == rest) inner = mlo_norm_unscale(f, rest);
        if (inner == rest) return 0;
        rest = inner;
    }
    return 0;
}

/* Nothing is known yet of the norm that ends in `out`. */
static mlo_found_norm mlo_norm_unfound(const mlo_inside *in, const char *out) {
    mlo_found_norm f = { in, mlo_body_form(in, out), 0, NULL, NULL, NULL, 0, 1, 0, { 0 }, 0 };
    f.channels = mlo_last_dim(&f.form);
    return f;
}

/* LayerNorm or RMSNorm, written out. */
static void mlo_respell_norm(mlo_respeller *r, mlo_expansion *x) {
    const char *out = x->n->output[0];
    mlo_found_norm f = mlo_norm_unfound(&r->in, out);
    static const char *const ends[] = { "Add", "Mul", "Div", "Cast", NULL };
    if (!mlo_is_carried(&r->in, out) || f.channels < 1 || !mlo_is_one_of(x->n, ends)) return;
    if (!mlo_norm_affine(&f, out) && !mlo_norm_find(&f, out)) return;
    /* one in double of what is not ends at the cast back */
    if (mlo_body_form(&r->in, f.x).dtype != f.form.dtype) return;
    for (int i = 0; i < f.n_taken; i++)
        if (mlo_map_put(r->in.m, &r->inner, f.taken[i], x->n)) return;
    const char *gamma = mlo_x_gamma(x, &f);
    const char *beta = f.beta ? mlo_x_norm_parameter(x, &f, f.beta) : "";
    const char *y = MLO_X(
        x, f.centred ? "LayerNormalization" : "RMSNormalization", f.x, gamma, beta);
    mlo_x_int(x, "axis", -1);
    mlo_x_float(x, "epsilon", (float)f.epsilon);
    mlo_x_out(x, 0, y);
}

/* The RMS norm of what is left of a token without its mean is a layer norm. */
static void mlo_respell_deviation(mlo_respeller *r, mlo_expansion *x) {
    const mlo_node *n = x->n;
    if (!mlo_is(n, "RMSNormalization") || !mlo_is_norm(&r->in, n)) return;
    mlo_found_norm f = mlo_norm_unfound(&r->in, n->output[0]);
    if (!mlo_norm_input(&f, n->input[0]) || !f.centred) return;
    const char *y = MLO_X(x, "LayerNormalization", f.x, n->input[1]);
    mlo_x_int(x, "axis", -1);
    mlo_x_float(x, "epsilon", mlo_float(n, "epsilon", 1e-5f));
    mlo_x_out(x, 0, y);
}

/* A node once more, of another first input. */
static const char *mlo_x_again(mlo_expansion *x, const mlo_node *n, const char *first) {
    const char **in = MLO_NEW_N(x->m, const char *, n->n_input + 1);
    if (!in) return "";
    for (size_t i = 0; i < n->n_input; i++) in[i] = i ? n->input[i] : first;
    const char *y = mlo_x_node(x, n->op, in, n->n_input);
    mlo_node *made = mlo_x_last(x);
    for (size_t i = 0; made && i < n->n_attr; i++)
        if (!MLO_PUSH(x->m, made->attr, made->n_attr, n->attr[i])) return "";
    return y;
}

/* A norm between two views that do and undo the same, [.., T, D] as [.., T, 1, D], is one of the value itself. */
static void mlo_respell_viewed_norm(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const mlo_node *norm = mlo_made_by(in, mlo_is(x->n, "Reshape") ? x->n->input[0] : "");
    const mlo_node *view = norm && mlo_is_norm(in, norm) ? mlo_made_by(in, norm->input[0]) : NULL;
    if (!mlo_is(view, "Reshape") || !mlo_is_used_once(in, x->n->input[0])) return;
    const mlo_form from = mlo_body_form(in, view->input[0]),
                   to = mlo_body_form(in, x->n->output[0]);
    const mlo_form seen = mlo_body_form(in, norm->input[0]);
    if (!mlo_form_known(&from) || !mlo_form_same(&from, &to)
        || mlo_last_dim(&from) != mlo_last_dim(&seen))
        return;
    for (size_t k = 1; k < norm->n_input; k++)
        if (mlo_has_input(norm, k) && mlo_body_form(in, norm->input[k]).rank > 1) return;
    mlo_x_out(x, 0, mlo_x_again(x, norm, view->input[0]));
}

/* A norm over heads, [.., H, T, D] or [.., T, H, D], times a gain of [H, 1, D] or [D], has it in its own. */
static void mlo_respell_head_gain(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *normed, *gain, *part[2] = { "", "" };
    if (!mlo_is_half(in, x->n, "Mul", &normed, &gain) || !mlo_is_used_once(in, normed)) return;
    const mlo_node *norm = mlo_made_by(in, normed);
    const mlo_form y = mlo_body_form(in, normed), g = mlo_body_form(in, gain);
    const mlo_form to = mlo_body_form(in, x->n->output[0]);
    if (!mlo_is_norm(in, norm) || y.rank < 4 || !mlo_form_same(&y, &to) || !mlo_form_known(&g)
        || mlo_last_dim(&g) != mlo_last_dim(&y) || !mlo_is_parameter(in->scan, in->body, gain, 0))
        return;
    for (size_t k = 0; k < 2; k++)
        if (mlo_has_input(norm, k + 1)) part[k] = MLO_X(x, "Mul", gain, norm->input[k + 1]);
    mlo_x_out(x, 0, mlo_x_normed(x, norm, norm->input[0], *part[0] ? part[0] : gain, part[1]));
}

/* ---- norms over each head ------------------------------------------------- */

/* A norm over heads of a token's channels. */
typedef struct {
    const char *from; /* the value whose channels they are */
    mlo_projection p; /* that makes it */
    mlo_form form;
    int64_t t; /* tokens */
    int64_t heads;
    int64_t d; /* channels of a head */
    int64_t *column; /* [h d + j]: the channel of `from` that is j of head h */
    int64_t *part[2]; /* [h]: the row of gamma, of beta that is head h's, -1: there is one */
    int by_heads; /* 1: rows are in the order of heads, and of tokens in each; 0: the other way */
    int whole; /* 1: the channels are all of `from`, in order */
    int64_t
        *row; /* [t heads + h]: where rows are in an order of their own (of windows); else NULL */
    mlo_form source; /* of `from` */
    mlo_chain views; /* between `from` and the norm */
} mlo_head_norm;

static int64_t mlo_norm_row(const mlo_head_norm *v, int64_t t, int64_t h) {
    if (v->row) return v->row[t * v->heads + h];
    return v->by_heads ? h * v->t + t : t * v->heads + h;
}

/* The heads of the first token by the channels that they begin with, in order, to `first`. 0: it has more or fewer. */
static int mlo_norm_heads(
    const mlo_head_norm *v, const int32_t *map, int64_t channels, int64_t *first) {
    int64_t n = 0;
    for (int64_t k = 0; k < v->t * v->heads; k++) {
        const int64_t from = map[k * v->d];
        if (from >= channels) continue;
        if (n == v->heads) return 0;
        int64_t at = n++;
        for (; at > 0 && first[at - 1] > from; at--) first[at] = first[at - 1];
        first[at] = from;
    }
    return n == v->heads;
}

/* Rows in an order of their own, to `row`: each a head of a token, every token's the same ones. 0: they are none.
 * `first` is scratch. */
static int mlo_norm_rows(
    mlo_head_norm *v, const int32_t *map, int64_t channels, int64_t *first, int64_t *row) {
    const int64_t rows = v->t * v->heads;
    if (!mlo_norm_heads(v, map, channels, first)) return 0;
    for (int64_t k = 0; k < rows; k++) row[k] = -1;
    for (int64_t k = 0; k < rows; k++) {
        const int64_t from = map[k * v->d];
        int64_t h = 0, *to;
        while (h < v->heads && first[h] != from % channels) h++;
        to = &row[from / channels * v->heads + h];
        if (h == v->heads || *to >= 0) return 0;
        *to = k;
    }
    v->row = row;
    return 1;
}

/* Which channels the rows are, the same for every token. */
static int mlo_norm_columns(mlo_head_norm *v, const int32_t *map, int64_t channels) {
    const int64_t rows = v->t * v->heads, d = v->d;
    v->by_heads = v->t > 1; /* (of one token the order is the same) */
    for (int64_t k = 0; k < rows; k++) v->by_heads &= map[k * d] / channels == k % v->t;
    for (int64_t t = 0; t < v->t; t++)
        for (int64_t k = 0; k < v->heads * d; k++) {
            const int64_t e = map[mlo_norm_row(v, t, k / d) * d + k % d];
            if (!t) v->column[k] = e % channels;
            if (e != t * channels + v->column[k]) return 0;
        }
    return 1;
}

/* Which rows of a parameter [.., D] the heads read, the same for every token. */
static int mlo_norm_parts(const mlo_inside *in, const char *name, mlo_head_norm *v, int64_t *part) {
    const mlo_form p = mlo_body_form(in, name), *f = &v->form;
    if (!mlo_form_known(&p) || mlo_last_dim(&p) != v->d || p.rank > f->rank) return 0;
    for (int64_t h = 0; h < v->heads; h++)
        for (int64_t t = 0; t < v->t; t++) {
            int64_t row = mlo_norm_row(v, t, h), at = 0, size = 1;
            for (int i = 2; i <= f->rank; i++) {
                const int64_t here = row % f->dims[f->rank - i];
                row /= f->dims[f->rank - i];
                if (i > p.rank) continue;
                if (p.dims[p.rank - i] > 1) at += here * size;
                size *= p.dims[p.rank - i];
            }
            if (!t) part[h] = at;
            if (part[h] != at) return 0;
        }
    if (mlo_form_count(&p) == v->d) part[0] = -1;
    return 1;
}

/* Is the norm in its place already: are its rows a token's heads in order, joined behind it? */
static int mlo_is_placed(const mlo_inside *in, const mlo_node *n, const mlo_head_norm *v) {
    if (!v->whole || v->by_heads || v->row || v->form.dims[v->form.rank - 2] != v->heads
        || !mlo_is_used_once(in, n->output[0]))
        return 0;
    for (int k = 0; k < 2; k++)
        if (mlo_has_input(n, (size_t)k + 1) && mlo_body_form(in, n->input[k + 1]).rank > 2)
            return 0;
    for (size_t i = 0; i < in->body->n_node; i++) {
        const mlo_node *j = in->body->node[i];
        if (!j->n_input || j->input[0] != n->output[0]) continue;
        const mlo_form f = mlo_body_form(in, j->output[0]);
        return mlo_joined_norm(in, j) == n && mlo_last_dim(&f) == v->heads * v->d;
    }
    return 0;
}

/* Are the norm's rows heads of a value's channels? v->column is scratch. */
static int mlo_head_norm_of(const mlo_inside *in, const mlo_node *n, mlo_head_norm *v) {
    memset(v, 0, sizeof *v);
    if (!mlo_is_norm(in, n) || !mlo_is_carried(in, n->input[0])) return 0;
    v->form = mlo_body_form(in, n->input[0]);
    v->from = mlo_chain_walk(in, n->input[0], &v->views, NULL);
    v->source = mlo_body_form(in, v->from);
    const int64_t channels = mlo_last_dim(&v->source);
    v->d = mlo_last_dim(&v->form);
    v->t = mlo_tokens_of(&v->source);
    if (!v->views.n || v->views.n_rounding || v->form.rank < 2 || v->t < 1 || v->d == channels
        || mlo_form_count(&v->form) % (v->t * v->d))
        return 0;
    v->heads = mlo_form_count(&v->form) / (v->t * v->d);
    const int64_t all = v->heads * v->d;
    v->column = (int64_t *)mlo_scratch(
        in->m, (size_t)(all + (2 + v->t) * v->heads), sizeof *v->column);
    mlo_array *map = v->column && all <= channels ? mlo_index_map(in, v->from, &v->views) : NULL;
    const int32_t *at = map ? (const int32_t *)map->data : NULL;
    int ok = at
        && (mlo_norm_columns(v, at, channels)
            || (mlo_norm_rows(v, at, channels, v->column + all, v->column + all + 2 * v->heads)
                && mlo_norm_columns(v, at, channels)));
    mlo_array_free(in->m, map);
    for (int k = 0; ok && k < 2; k++) {
        v->part[k] = v->column + all + k * v->heads;
        if (mlo_has_input(n, (size_t)k + 1))
            ok = mlo_norm_parts(in, n->input[k + 1], v, v->part[k]);
    }
    v->whole = ok && all == channels && mlo_is_identity(v->column, all);
    return ok && (v->whole || mlo_projection_of(in, v->from, &v->p));
}

/* Gamma or beta, as heads read it: [D], or [H, D]. */
static const char *mlo_x_head_parameter(
    mlo_expansion *x, const char *name, const mlo_head_norm *v, const int64_t *part) {
    const int64_t rows[] = { -1, v->d };
    if (part[0] < 0) return mlo_x_reshape(x, name, rows + 1, 1);
    const char *which = mlo_x_list(x, part, (size_t)v->heads);
    return mlo_x_take(x, mlo_x_reshape(x, name, rows, 2), which, 0);
}

/* The rows of a norm over [1, T, H, D] where they were: in an order of their own, heads first, or as they are. */
static const char *mlo_x_norm_views(
    mlo_expansion *x, const mlo_head_norm *v, const int64_t *split, const char *y) {
    static const int64_t perm[] = { 0, 2, 1, 3 };
    const int64_t n = v->t * v->heads, rows[] = { n, v->d };
    int64_t *from = v->row ? (int64_t *)mlo_scratch(x->m, (size_t)n, sizeof *from) : NULL;
    for (int64_t i = 0; from && i < n; i++) from[v->row[i]] = i;
    if (from) {
        const char *which = mlo_x_list(x, from, (size_t)n);
        y = mlo_x_take(x, mlo_x_reshape(x, y, rows, 2), which, 0);
    } else if (v->by_heads)
        y = mlo_x_transpose(x, mlo_x_reshape(x, y, split, 4), perm, 4);
    mlo_scratch_free(x->m, from);
    return mlo_x_reshape(x, y, v->form.dims, (size_t)v->form.rank);
}

/* A norm over heads, wherever it stands between reshapes and transposes: behind what makes the
 * channels, between [1, T, H, D] and [1, T, H D]. */
static void mlo_respell_head_norm(mlo_respeller *r, mlo_expansion *x) {
    mlo_head_norm v;
    mlo_node *n = x->n;
    int ok = mlo_head_norm_of(&r->in, n, &v) && !mlo_is_placed(&r->in, n, &v);
    const int64_t split[] = { 1, v.t, v.heads, v.d }, flat[] = { 1, v.t, v.heads * v.d };
    const char *y = v.from, *part[2] = { "", "" };
    if (ok && !v.whole) {
        x->n = v.p.sum ? v.p.sum : v.p.product; /* its name, its scope */
        y = mlo_x_columns(x, &v.p, v.column, v.heads * v.d);
        x->n = n;
    }
    for (size_t k = 0; ok && k < 2; k++)
        if (mlo_has_input(n, k + 1))
            part[k] = mlo_x_head_parameter(x, n->input[k + 1], &v, v.part[k]);
    if (ok) {
        y = mlo_x_reshape(x, y, split, 4);
        y = mlo_x_reshape(x, mlo_x_normed(x, n, y, part[0], part[1]), flat, 3);
        mlo_x_out(x, 0, mlo_x_norm_views(x, &v, split, y));
    }
    mlo_scratch_free(r->in.m, v.column);
}

/* ---- a norm for each head -------------------------------------------------- */

/* Norm k of what is joined: of the k-th part of a Split along the same axis, of one head, with the gain (and
 * bias, if the first one has it) of a head's channels. NULL: it is another one. */
static const mlo_node *mlo_split_norm(const mlo_inside *in, const mlo_node *join, size_t k) {
    const mlo_node *n = mlo_made_by(in, join->input[k]), *first = mlo_made_by(in, join->input[0]);
    const mlo_node *split = mlo_is_norm(in, n) ? mlo_made_by(in, n->input[0]) : NULL;
    if (!mlo_is(split, "Split") || k >= split->n_output || split->output[k] != n->input[0]
        || split->n_output != join->n_input || split != mlo_made_by(in, first->input[0])
        || !mlo_eq(n->op, first->op) || !mlo_is_used_once(in, join->input[k])
        || mlo_differs(mlo_float(n, "epsilon", 1e-5f), mlo_float(first, "epsilon", 1e-5f)))
        return NULL;
    const mlo_form f = mlo_body_form(in, n->input[0]);
    if (f.rank != 4 || f.dims[1] != 1 || mlo_int(split, "axis", 0) != mlo_int(join, "axis", 0)
        || mlo_int(join, "axis", 0) != 1)
        return NULL;
    for (size_t i = 1; i < 3; i++) {
        if (mlo_has_input(n, i) != mlo_has_input(first, i)) return NULL;
        if (mlo_has_input(n, i) && !mlo_is_per_channel(in, n->input[i], f.dims[3])) return NULL;
    }
    return n;
}

/* [H, D] of the gains (or biases) of norms that are joined. */
static const char *mlo_x_joined_gains(
    mlo_expansion *x, const mlo_inside *in, const mlo_node *join, size_t input, int64_t d) {
    const int64_t row[] = { 1, d };
    const char **part = (const char **)mlo_scratch(x->m, join->n_input, sizeof *part);
    for (size_t k = 0; part && k < join->n_input; k++)
        part[k] = mlo_x_reshape(x, mlo_made_by(in, join->input[k])->input[input], row, 2);
    const char *y = part ? mlo_x_node(x, "Concat", part, join->n_input) : "";
    mlo_x_int(x, "axis", 0);
    mlo_scratch_free(x->m, part);
    return y;
}

/* Heads that are split, normed one by one and joined again are normed with a gain each (StableLM 2). */
static void mlo_respell_split_norms(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const mlo_node *join = x->n, *norm;
    if (!mlo_is_join(in, join) || join->n_input < 2) return;
    for (size_t k = 0; k < join->n_input; k++)
        if (!(norm = mlo_split_norm(in, join, k))) return;
    const mlo_form f = mlo_body_form(in, norm->input[0]);
    const int64_t swap[] = { 0, 2, 1, 3 };
    const char *gain[2] = { "", "" };
    for (size_t i = 0; i < 2; i++)
        if (mlo_has_input(norm, i + 1)) gain[i] = mlo_x_joined_gains(x, in, join, i + 1, f.dims[3]);
    const char *y = mlo_x_transpose(x, mlo_made_by(in, norm->input[0])->input[0], swap, 4);
    y = mlo_x_normed(x, norm, y, gain[0], gain[1]);
    mlo_x_out(x, 0, mlo_x_transpose(x, y, swap, 4));
}

/* Is it one number for each head of queries [.., H, T, D]? */
static int mlo_is_head_scale(const mlo_form *scale, const mlo_form *queries) {
    const int r = scale->rank;
    return r >= 3 && r <= queries->rank && scale->dims[r - 1] == 1 && scale->dims[r - 2] == 1
        && scale->dims[r - 3] == queries->dims[queries->rank - 3]
        && mlo_form_count(scale) == scale->dims[r - 3];
}

/* Scores times a number for each head are those of queries whose norm has it in its gamma and beta: the
 * scale of Swin V2's cosines. */
static void mlo_respell_head_scale(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *scores, *scale, *part[2] = { "", "" };
    double all_alike;
    if (!mlo_is_half(in, x->n, "Mul", &scores, &scale) || !mlo_is_used_once(in, scores)
        || mlo_scalar(in, scale, &all_alike))
        return;
    const mlo_node *product = mlo_made_by(in, scores);
    if (!mlo_is_inner_product(in, product)) return;
    const mlo_node *norm = mlo_made_by(in, product->input[0]);
    const mlo_form q = mlo_body_form(in, product->input[0]), s = mlo_body_form(in, scale);
    if (!mlo_is_norm(in, norm) || !mlo_is_head_scale(&s, &q)) return;
    mlo_form wide = s;
    wide.dims[s.rank - 1] = mlo_last_dim(&q);
    const char *to = mlo_x_list(x, wide.dims, (size_t)wide.rank);
    const char *all = MLO_X(x, "Expand", scale, to);
    for (size_t k = 0; k < 2; k++)
        if (mlo_has_input(norm, k + 1)) part[k] = MLO_X(x, "Mul", all, norm->input[k + 1]);
    const char *y = mlo_x_normed(
        x, norm, norm->input[0], mlo_has_input(norm, 1) ? part[0] : all, part[1]);
    mlo_x_out(x, 0, MLO_X(x, "MatMul", y, product->input[1]));
}
