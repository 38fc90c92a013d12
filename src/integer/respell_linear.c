/* respell_linear: the rules of respell.c about projections: what is cut out of one becomes one of its
 * own.
 *
 * in:  a node of a float loop body.
 * out: projections whose weights are columns of the model's own; the rest of the body reads them as
 *     it read the parts.
 *
 * What the other rules share stands first: looking at the body, and what a projection is.
 *
 * invariant: which channel goes where is found by following views element by element (layout.c).
 * example: Split(x W, 3) behind which each part is heads of a product becomes x W0, x W1, x W2, each
 *     W a Gather of W's columns.
 * cost: the element maps of the operands of products, and of what is cut.
 */
typedef struct {
    mlo_inside in;
    /* nodes that a rule has taken into another node: not looked at by themselves */
    mlo_map inner;
} mlo_respeller;

/* A rule: what node x->n becomes, if it is one that the rule respells. */
typedef void (*mlo_respelling)(mlo_respeller *r, mlo_expansion *x);

/* ---- looking at the body -------------------------------------------------- */

/* A value that has one number for each of n channels, the same for every token; not the loop's own. */
static int mlo_is_per_channel(const mlo_inside *in, const char *name, int64_t n) {
    mlo_form f = mlo_body_form(in, name);
    return !mlo_is_carried(in, name) && mlo_form_known(&f) && mlo_last_dim(&f) == n
        && mlo_form_count(&f) == n;
}

static int mlo_is_used_once(const mlo_inside *in, const char *name) {
    mlo_value *v = mlo_value_of(in->body, name);
    return v && v->n_uses == 1 && !v->is_output;
}

/* A reshape of whole tokens. */
static int mlo_is_of_rows(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_has_trait(n, MLO_RESHAPES)) return 0;
    const mlo_form a = mlo_body_form(in, n->input[0]), b = mlo_body_form(in, n->output[0]);
    return mlo_last_dim(&a) == mlo_last_dim(&b);
}

/* A Pad by nothing, on no side. */
static int mlo_pads_nothing(const mlo_inside *in, const mlo_node *n) {
    mlo_value *v = n->n_input > 1 ? mlo_value_of(in->body, n->input[1]) : NULL;
    const int64_t count = v && v->tensor ? mlo_tensor_count(v->tensor) : 0;
    double by = 0;
    for (int64_t i = 0; i < count && !mlo_differs(by, 0); i++)
        if (mlo_tensor_doubles(in->m, v->tensor, i, 1, &by)) return 0;
    return count && !mlo_differs(by, 0);
}

/* Is it a sum with 0, or a product with 1 (Paddle's scale)? */
static int mlo_is_neutral(const mlo_inside *in, const mlo_node *n) {
    const int sum = mlo_is(n, "Add") || mlo_is(n, "Sub");
    double number;
    if (!sum && !mlo_is(n, "Mul") && !mlo_is(n, "Div")) return 0;
    const mlo_form x = mlo_body_form(in, n->input[0]), y = mlo_body_form(in, n->output[0]);
    return mlo_is_carried(in, n->input[0]) && mlo_form_same(&x, &y)
        && mlo_scalar(in, n->input[1], &number) && !mlo_differs(number, sum ? 0 : 1);
}

/* Does a node hand on what it gets? */
static int mlo_is_plain(const mlo_inside *in, const mlo_node *n) {
    if (mlo_is_neutral(in, n)) return 1;
    if (mlo_is(n, "Identity") || (mlo_is(n, "Concat") && n->n_input == 1)) return 1;
    if (mlo_is(n, "Pad")) return mlo_pads_nothing(in, n);
    if (mlo_is(n, "Expand")) {
        const mlo_form x = mlo_body_form(in, n->input[0]), y = mlo_body_form(in, n->output[0]);
        return mlo_form_known(&x) && mlo_form_same(&x, &y);
    }
    return mlo_is(n, "Cast")
        && mlo_body_form(in, n->input[0]).dtype == mlo_body_form(in, n->output[0]).dtype;
}

/* What is joined without being anything: the channels that do not turn, where all do (Phi 3). */
static void mlo_drop_empty(const mlo_inside *in, mlo_node *n) {
    size_t kept = 0;
    for (size_t k = 0; k < n->n_input; k++) {
        const mlo_form f = mlo_body_form(in, n->input[k]);
        if (mlo_form_known(&f) && !mlo_form_count(&f)) continue;
        n->input[kept++] = n->input[k];
    }
    if (kept) n->n_input = kept;
}

/* Everybody reads what is in front of such nodes. */
static void mlo_respell_plain(const mlo_inside *in) {
    for (size_t i = 0; i < in->body->n_node; i++)
        if (mlo_is(in->body->node[i], "Concat")) mlo_drop_empty(in, in->body->node[i]);
    for (size_t i = 0; i < in->body->n_node; i++)
        for (size_t k = 0; k < in->body->node[i]->n_input; k++) {
            const char **name = &in->body->node[i]->input[k];
            for (mlo_node *n; mlo_is_plain(in, n = mlo_made_by(in, *name));) *name = n->input[0];
        }
}

/* A binary node of one carried operand and one that is not: which is which. */
static int mlo_is_half(const mlo_inside *in, const mlo_node *n, const char *op,
    const char **carried, const char **other) {
    if (!mlo_is(n, op)) return 0;
    int first = mlo_is_carried(in, n->input[0]);
    *carried = n->input[first ? 0 : 1];
    *other = n->input[first ? 1 : 0];
    return mlo_is_carried(in, *carried) && !mlo_is_carried(in, *other);
}

/* Is this a product of two activations? */
static int mlo_is_inner_product(const mlo_inside *in, const mlo_node *n) {
    return mlo_is(n, "MatMul") && mlo_is_carried(in, n->input[0])
        && mlo_is_carried(in, n->input[1]);
}

/* What `n` is times, or over, a parameter of one number, perhaps another one in each iteration; NULL: it is no such
 * product. */
static const char *mlo_unnumbered(const mlo_inside *in, const mlo_node *n) {
    const char *from, *number;
    if (mlo_is_half(in, n, "Mul", &from, &number)) return mlo_is_number(in, number) ? from : NULL;
    if (!mlo_is(n, "Div") || !mlo_is_carried(in, n->input[0])) return NULL;
    return mlo_is_number(in, n->input[1]) ? n->input[0] : NULL;
}

/* Is this value scores of attention, perhaps scaled, masked, capped or rounded: made by a product of two
 * activations, nothing else? */
static int mlo_is_scores(const mlo_inside *in, const char *name) {
    for (int i = 0; i < MLO_CHAIN; i++) {
        const mlo_node *n = mlo_made_by(in, name);
        const char *other;
        mlo_rounding f;
        if (mlo_is_inner_product(in, n)) return 1;
        if (mlo_is_rounded(in, name, &f)) {
            name = f.from;
            continue;
        }
        const char *from = n ? mlo_unnumbered(in, n) : NULL;
        if (!from && (mlo_has_trait(n, MLO_RESHAPES) || mlo_is(n, "Tanh"))) from = n->input[0];
        if (!from && !mlo_is_half(in, n, "Add", &from, &other)) return 0;
        name = from;
    }
    return 0;
}

/* Are the values that a product mixes a product themselves, as queries times what all tokens sum up to? */
static int mlo_is_summed_up(const mlo_inside *in, const mlo_node *mix) {
    mlo_chain c;
    double scale = 1;
    return mlo_is_inner_product(in, mix)
        && mlo_is_inner_product(in, mlo_made_by(in, mlo_chain_walk(in, mix->input[1], &c, &scale)));
}
#define MLO_TOLD_SUMMED_UP                                                                       \
    "linear attention, q (k^T v): what tokens sum up to, of the size of the channels; hardware " \
    "has "                                                                                       \
    "softmax(scale * q k^T + mask) v"

/* ---- what was done to a value, once more ----------------------------------- */

/* The nodes of a chain once more, from another value. */
static const char *mlo_x_along(mlo_expansion *x, const mlo_chain *c, const char *v) {
    for (int k = c->n; k--;) {
        const mlo_node *n = c->node[k];
        const char *input[MLO_MOVE_INPUTS];
        for (size_t i = 0; i < n->n_input; i++) input[i] = i ? n->input[i] : v;
        v = mlo_x_node(x, n->op, input, n->n_input);
        mlo_node *made = mlo_x_last(x);
        for (size_t i = 0; made && i < n->n_attr; i++)
            if (!MLO_PUSH(x->m, made->attr, made->n_attr, n->attr[i])) return "";
    }
    return v;
}

/* Does a chain round with one scale for all channels alone? That is the same in front of a view and behind. */
static int mlo_rounds_alike(const mlo_inside *in, const mlo_chain *c) {
    for (int i = 0; i < c->n_rounding; i++)
        if (!mlo_is_number(in, c->rounding[i].scale)
            || (c->rounding[i].zero && !mlo_is_number(in, c->rounding[i].zero)))
            return 0;
    return 1;
}

/* A value, times a factor. */
static const char *mlo_x_times(mlo_expansion *x, const char *y, double factor) {
    return mlo_differs(factor, 1) ? MLO_X(x, "Mul", y, mlo_x_number(x, factor)) : y;
}

/* A value rounded as the chain rounds it, and multiplied as it is there, `scale` all in all. */
static const char *mlo_x_rounded_again(
    mlo_expansion *x, const char *y, const mlo_chain *c, double scale) {
    for (int i = c->n_rounding; i--;) {
        mlo_node *n = mlo_maker_in(x->g, c->rounding[i].node->output[0]);
        mlo_chain again;
        again.n = 0;
        y = mlo_x_times(x, y, scale / c->behind[i]);
        scale = c->behind[i];
        while (again.n < MLO_CHAIN && n) {
            again.node[again.n++] = n;
            n = n->input[0] == c->rounding[i].from ? NULL : mlo_maker_in(x->g, n->input[0]);
        }
        y = mlo_x_along(x, &again, y);
    }
    return mlo_x_times(x, y, scale);
}

/* ---- linear layers -------------------------------------------------------- */

/* x W (+ bias), W a parameter: MatMul, perhaps with an Add behind it, or Gemm. */
typedef struct {
    mlo_node *product;
    mlo_node *sum; /* the Add, NULL: there is none */
    const char *bias; /* NULL: there is none */
    int transposed; /* 1: the product reads W as [N, K] */
    mlo_chain between; /* roundings between the product and the sum */
} mlo_projection;

/* A Gemm of other factors than 1, or of its operand across; a MatMul has no such attributes. */
static int mlo_is_scaled_gemm(const mlo_node *n) {
    return mlo_differs(mlo_float(n, "alpha", 1), 1)
        || (mlo_has_input(n, 2) && mlo_differs(mlo_float(n, "beta", 1), 1))
        || mlo_int(n, "transA", 0);
}

/* `rounded`: the product may be rounded in front of its sum with a bias, as QDQ models have it. */
static int mlo_projection_as(
    const mlo_inside *in, const char *name, int rounded, mlo_projection *p) {
    mlo_node *n = mlo_made_by(in, name);
    const char *from;
    memset(p, 0, sizeof *p);
    if (mlo_is_half(in, n, "Add", &from, &p->bias)) {
        p->sum = n;
        if (!mlo_is_used_once(in, from)) return 0;
        if (rounded) from = mlo_chain_walk(in, from, &p->between, NULL);
        n = mlo_made_by(in, from);
        if (!mlo_is(n, "MatMul") || p->between.n || !mlo_rounds_alike(in, &p->between)) return 0;
    }
    if (!mlo_is(n, "MatMul") && !mlo_is(n, "Gemm")) return 0;
    const mlo_form w = mlo_body_form(in, n->input[1]);
    if (w.rank != 2 || !mlo_is_carried(in, n->input[0]) || mlo_is_carried(in, n->input[1]))
        return 0;
    p->product = n;
    p->transposed = mlo_int(n, "transB", 0) != 0;
    if (mlo_has_input(n, 2)) p->bias = n->input[2];
    if (mlo_is_scaled_gemm(n)) return 0;
    return !p->bias || mlo_is_per_channel(in, p->bias, w.dims[!p->transposed]);
}
static int mlo_projection_of(const mlo_inside *in, const char *name, mlo_projection *p) {
    return mlo_projection_as(in, name, 0, p);
}

/* A projection like this one of another value, with other weights and bias (NULL: none), which are expressions over
 * its own. */
static const char *mlo_x_projected(mlo_expansion *x, const mlo_projection *p, const char *from,
    const char *weight, const char *bias) {
    if (mlo_is(p->product, "MatMul")) {
        const char *y = mlo_x_rounded_again(x, MLO_X(x, "MatMul", from, weight), &p->between, 1);
        return mlo_x_plus(x, y, mlo_or_empty(bias));
    }
    const char *y = MLO_X(x, "Gemm", from, weight, mlo_or_empty(bias));
    mlo_x_int(x, "transB", p->transposed);
    return y;
}
static const char *mlo_x_projection(
    mlo_expansion *x, const mlo_projection *p, const char *weight, const char *bias) {
    return mlo_x_projected(x, p, p->product->input[0], weight, bias);
}

/* Some of the elements of v along an axis. */
static const char *mlo_x_take(mlo_expansion *x, const char *v, const char *which, int64_t axis) {
    const char *y = MLO_X(x, "Gather", v, which);
    mlo_x_int(x, "axis", axis);
    return y;
}

/* Some columns of a matrix; the integers of one that is given as integers, with their own scales. */
static const char *mlo_x_taken(mlo_expansion *x, const char *w, const char *which, int64_t axis) {
    const mlo_node *d = mlo_maker_in(x->g, w);
    const char *part[3] = { "", "", "" };
    if (!mlo_is(d, "DequantizeLinear") || d->n_input > 3) return mlo_x_take(x, w, which, axis);
    const mlo_form f = mlo_form_of(mlo_value_of(x->g, d->input[1]));
    const int each = f.rank == 1 && f.dims[0] > 1 && mlo_int(d, "axis", 1) == axis;
    for (size_t k = 0; k < d->n_input; k++) {
        part[k] = d->input[k];
        if (*part[k] && (!k || each)) part[k] = mlo_x_take(x, part[k], which, k ? 0 : axis);
    }
    const char *y = mlo_x_node(x, d->op, part, d->n_input);
    mlo_x_attrs_of(x, d, NULL);
    return y;
}

/* n of the projection's channels. */
static const char *mlo_x_columns(
    mlo_expansion *x, const mlo_projection *p, const int64_t *column, int64_t n) {
    const char *which = mlo_x_list(x, column, (size_t)n);
    const char *weight = mlo_x_taken(x, p->product->input[1], which, p->transposed ? 0 : 1);
    const char *bias = p->bias ? mlo_x_take(x, p->bias, which, -1) : NULL;
    return mlo_x_projection(x, p, weight, bias);
}

/* ---- projections side by side --------------------------------------------- */

/* Channels that projections of several values make: side by side (Concat(x W, z V)), or each of them as a sum of
 * theirs (x W + z V). A projection by itself is one side. */
enum { MLO_SIDES = 4 };
typedef struct {
    mlo_projection part[MLO_SIDES];
    int64_t from[MLO_SIDES]; /* the first channel that the part makes */
    int64_t channels[MLO_SIDES];
    int n;
} mlo_sides;

/* Another part; 0: it is none, or of other tokens. */
static int mlo_side_put(const mlo_inside *in, const char *name, int64_t from, mlo_sides *s) {
    const mlo_form f = mlo_body_form(in, name);
    if (s->n == MLO_SIDES || !mlo_projection_as(in, name, 1, &s->part[s->n])) return 0;
    const mlo_form first = mlo_body_form(in, s->part[0].product->output[0]);
    s->from[s->n] = from;
    s->channels[s->n++] = mlo_last_dim(&f);
    return mlo_tokens_of(&f) == mlo_tokens_of(&first);
}

static int mlo_sides_of(const mlo_inside *in, const char *name, mlo_sides *s) {
    const mlo_node *n = mlo_made_by(in, name);
    const mlo_form f = mlo_body_form(in, name);
    int64_t from = 0;
    s->n = 0;
    if (mlo_side_put(in, name, 0, s)) return 1;
    s->n = 0;
    if (!n) return 0;
    const int64_t axis = mlo_int(n, "axis", 0);
    const int sum = mlo_is(n, "Add");
    if (!sum && (!mlo_is(n, "Concat") || (axis != -1 && axis != f.rank - 1))) return 0;
    for (size_t k = 0; k < n->n_input; k++) {
        const char *part = n->input[k];
        while (mlo_is_of_rows(in, mlo_made_by(in, part))) part = mlo_made_by(in, part)->input[0];
        if (!mlo_side_put(in, part, from, s)) return 0;
        if (sum && s->channels[k] != mlo_last_dim(&f)) return 0;
        from += sum ? 0 : s->channels[k];
    }
    return 1;
}

/* Is it a value of several such parts? */
static int mlo_is_of_sides(const mlo_inside *in, const mlo_node *n) {
    mlo_sides s;
    return (mlo_is(n, "Concat") || mlo_is(n, "Add")) && mlo_sides_of(in, n->output[0], &s)
        && s.n > 1;
}

/* Of a parameter along `axis` those that a list names, times whether they are meant at all. */
static const char *mlo_x_own(mlo_expansion *x, const char *v, const char *which, const char *own,
    int64_t n, int64_t axis, int rank) {
    const int64_t across[] = { n, 1 };
    const char *y = mlo_x_take(x, v, which, axis);
    if (axis == 0 && rank == 2) own = mlo_x_reshape(x, own, across, 2);
    return MLO_X(x, "Mul", y, own);
}

/* n of the channels of one part; where `column` names another part's, or none, 0. NULL: it has none of them. */
static const char *mlo_x_side(
    mlo_expansion *x, const mlo_sides *s, int k, const int64_t *column, int64_t n) {
    const mlo_projection *p = &s->part[k];
    int64_t *at = (int64_t *)mlo_scratch(x->m, 2 * (size_t)n, sizeof *at), some = 0;
    for (int64_t i = 0; at && i < n; i++) {
        const int64_t c = column[i] - s->from[k];
        at[n + i] = column[i] >= 0 && c >= 0 && c < s->channels[k];
        at[i] = at[n + i] ? c : 0;
        some += at[n + i];
    }
    const char *y = NULL;
    if (at && some == n)
        y = mlo_x_columns(x, p, at, n);
    else if (at && some) {
        const char *which = mlo_x_list(x, at, (size_t)n);
        const char *own = mlo_x_cast(x, mlo_x_list(x, at + n, (size_t)n), x->dtype);
        const char *weight = p->product->input[1];
        weight = mlo_x_own(x, weight, which, own, n, p->transposed ? 0 : 1, 2);
        const char *bias = p->bias ? mlo_x_own(x, p->bias, which, own, n, -1, 1) : NULL;
        y = mlo_x_projection(x, p, weight, bias);
    }
    mlo_scratch_free(x->m, at);
    return y;
}

/* n of the channels that the parts make; column -1 is 0. */
static const char *mlo_x_sides(
    mlo_expansion *x, const mlo_sides *s, const int64_t *column, int64_t n) {
    const mlo_form f = mlo_form_of(mlo_value_of(x->g, s->part[0].product->output[0]));
    const int64_t shape[] = { 1, mlo_tokens_of(&f), n };
    const char *sum = NULL;
    mlo_node *self = x->n;
    for (int k = 0; k < s->n; k++) {
        x->n = s->part[k].sum ? s->part[k].sum : s->part[k].product; /* its name, its scope */
        const char *y = mlo_x_side(x, s, k, column, n);
        if (y && s->n > 1) y = mlo_x_reshape(x, y, shape, 3);
        sum = sum && y ? MLO_X(x, "Add", sum, y) : y ? y : sum;
    }
    x->n = self;
    return sum ? sum : "";
}

/* ---- queries, keys and values out of one projection ----------------------- */

/* An operand of a product of activations, as heads of a projection's channels, each of which
 * `shared` heads of the operand are, one behind the other. */
typedef struct {
    mlo_sides s;
    mlo_form form;
    mlo_heads at;
    int64_t shared;
    int64_t *column;
    mlo_chain views; /* of which the roundings are done once more */
    double scale;
} mlo_head_view;

/* How many heads one behind the other have the same columns, all along; the columns are left of one
 * of each. */
static int64_t mlo_share_columns(const mlo_heads *at, int64_t *column) {
    int64_t shared = at->heads, same = 0;
    for (; !same; shared -= !same) {
        if (at->heads % shared) continue;
        same = 1;
        for (int64_t i = 0; i < at->heads * at->d; i++)
            same &= column[i] == column[i / (at->d * shared) * (at->d * shared) + i % at->d];
    }
    for (int64_t i = 0; i < at->heads / shared * at->d; i++)
        column[i] = column[i / at->d * at->d * shared + i % at->d];
    return shared;
}

static int mlo_view_as(
    const mlo_inside *in, const char *source, const mlo_chain *c, int order, mlo_head_view *v) {
    const mlo_form *f = &v->form;
    mlo_heads at = { f->dims[f->rank - (order ? 1 : 2)], 0, f->dims[f->rank - (order ? 2 : 1)],
        order };
    if (mlo_form_count(f) < 1) return 0;
    at.heads = mlo_form_count(f) / (at.t * at.d);
    v->at = at;
    return mlo_head_columns(in, source, c, &at, v->column);
}

/* Is this operand heads of a projection's channels? *plain: all of them in order, each as often as the next one.
 * v->column is scratch. */
static int mlo_head_view_of(
    const mlo_inside *in, const char *name, int transposable, mlo_head_view *v, int *plain) {
    mlo_chain *c = &v->views;
    v->scale = 1;
    v->form = mlo_body_form(in, name);
    v->column = NULL;
    const char *source = mlo_chain_walk(in, name, c, &v->scale);
    mlo_form whole = mlo_body_form(in, source);
    if (v->form.rank < 2 || !c->n || !mlo_rounds_alike(in, c)) return 0;
    if (!mlo_sides_of(in, source, &v->s)) return 0;
    int64_t n = mlo_form_count(&v->form);
    v->column = (int64_t *)mlo_scratch(in->m, (size_t)n, sizeof *v->column);
    if (!v->column) return 0;
    if (!(transposable && mlo_view_as(in, source, c, 1, v)) && !mlo_view_as(in, source, c, 0, v))
        return 0;
    v->shared = mlo_share_columns(&v->at, v->column);
    n = v->at.heads / v->shared * v->at.d;
    *plain = mlo_last_dim(&whole) == n && mlo_is_identity(v->column, n)
        && !mlo_is(mlo_made_by(in, source), "Concat");
    return 1;
}

/* Does this operand want respelling? */
static int mlo_packed_view(
    const mlo_inside *in, const char *name, int transposable, mlo_head_view *v) {
    int plain;
    return mlo_head_view_of(in, name, transposable, v, &plain) && !plain;
}

/* A projection's result as heads of the form that they had. */
static const char *mlo_x_as_heads(
    mlo_expansion *x, const char *y, const mlo_heads *at, const mlo_form *form) {
    const int64_t split[] = { 1, at->t, at->heads, at->d };
    const int64_t perm[] = { 0, 2, at->order ? 3 : 1, at->order ? 1 : 3 };
    y = mlo_x_transpose(x, mlo_x_reshape(x, y, split, 4), perm, 4);
    return mlo_x_reshape(x, y, form->dims, (size_t)form->rank);
}

/* The operand, from a projection of its own. */
static const char *mlo_x_head_view(mlo_expansion *x, const mlo_head_view *v) {
    const int64_t heads = v->at.heads / v->shared, two = 2;
    const int64_t split[] = { 1, v->at.t, heads, v->at.d }, times[] = { 1, 1, v->shared, 1, 1 };
    const int64_t perm[] = { 0, 2, v->at.order ? 3 : 1, v->at.order ? 1 : 3 };
    const char *y = mlo_x_sides(x, &v->s, v->column, heads * v->at.d);
    y = mlo_x_reshape(x, y, split, 4);
    y = mlo_x_transpose(x, y, perm, 4);
    if (v->shared > 1) {
        y = mlo_x_unsqueeze(x, y, &two, 1);
        y = MLO_X(x, "Expand", y, mlo_x_list(x, times, 5));
    }
    y = mlo_x_reshape(x, y, v->form.dims, (size_t)v->form.rank);
    return mlo_x_rounded_again(x, y, &v->views, v->scale);
}

/* MatMul(view of a projection, view of a projection) */
static void mlo_respell_packed(mlo_respeller *r, mlo_expansion *x) {
    if (!mlo_is_inner_product(&r->in, x->n)) return;
    const char *operand[2] = { x->n->input[0], x->n->input[1] };
    int packed = 0;
    for (int i = 0; i < 2; i++) {
        mlo_head_view v;
        int wanted = mlo_packed_view(&r->in, operand[i], i, &v);
        if (wanted) operand[i] = mlo_x_head_view(x, &v);
        mlo_scratch_free(r->in.m, v.column);
        packed |= wanted;
    }
    if (packed) mlo_x_out(x, 0, MLO_X(x, "MatMul", operand[0], operand[1]));
}

/* ---- views that lead nowhere ----------------------------------------------- */

/* Views one behind another that lead back to where they began: an axis of one that went round, say. */
static void mlo_respell_round(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    mlo_chain c;
    if (!mlo_is_layout(x->n) || x->n->n_output != 1) return;
    const char *from = mlo_chain_walk(in, x->n->output[0], &c, NULL);
    const mlo_form a = mlo_body_form(in, from), b = mlo_body_form(in, x->n->output[0]);
    if (c.n < 2 || c.n_rounding || !mlo_form_known(&a) || !mlo_form_same(&a, &b)) return;
    mlo_array *map = mlo_index_map(in, from, &c);
    int same = map && mlo_array_count(map) == mlo_form_count(&a);
    for (int64_t k = 0; same && k < mlo_array_count(map); k++)
        same = ((const int32_t *)map->data)[k] == k;
    mlo_array_free(in->m, map);
    if (same) mlo_x_out(x, 0, MLO_X(x, "Identity", from));
}

/* ---- a projection that is cut into parts for functions and products ------- */

/* Do elementwise operators work on the value, rather than attention or rotations? A constant factor
 * may be attention's own, and a sign a rotation's. */
static int mlo_is_worked_on(const mlo_inside *in, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(in->body, name);
    for (size_t i = 0; i < v->n_use && depth < MLO_CHAIN; i++) {
        const mlo_node *n = v->use[i];
        double scale = 1;
        if (mlo_has_trait(n, MLO_RESHAPES)) {
            if (mlo_is_worked_on(in, n->output[0], depth + 1)) return 1;
            continue;
        }
        int works = mlo_is_elementwise(n) && !mlo_is(n, "Neg") && !mlo_has_trait(n, MLO_QUANTIZES)
            && !mlo_unscaled(in, n, &scale);
        if (mlo_is_norm(in, n)) return 1;
        for (size_t k = 0; works && k < n->n_input; k++)
            works = !mlo_has_input(n, k) || mlo_is_carried(in, n->input[k])
                || mlo_is_number(in, n->input[k]);
        if (works) return 1;
    }
    return 0;
}

/* Is the value, of each token, some channels of a projection? Which, goes to *column, which is
 * scratch. */
static int mlo_is_cut(const mlo_inside *in, const char *name, mlo_projection *p, mlo_heads *at,
    mlo_chain *c, int64_t **column) {
    mlo_form f = mlo_body_form(in, name);
    const char *source = mlo_chain_walk(in, name, c, NULL);
    mlo_form whole = mlo_body_form(in, source);
    *column = NULL;
    if (!mlo_rounds_alike(in, c) || !mlo_projection_as(in, source, 1, p)) return 0;
    const mlo_heads one = { mlo_tokens_of(&f), 1, mlo_last_dim(&f), 0 };
    *at = one;
    if (at->d < 1 || at->d > mlo_last_dim(&whole)) return 0;
    *column = (int64_t *)mlo_scratch(in->m, (size_t)at->d, sizeof **column);
    return *column && mlo_head_columns(in, source, c, at, *column)
        && (mlo_last_dim(&whole) != at->d || !mlo_is_identity(*column, at->d));
}

/* A value that is some channels of a projection: from a projection of its own. NULL: it is something else. */
static const char *mlo_x_cut_value(const mlo_inside *in, mlo_expansion *x, const char *name) {
    mlo_node *self = x->n;
    mlo_projection p;
    mlo_chain views;
    mlo_heads at;
    int64_t *column;
    const char *y = NULL;
    const mlo_form f = mlo_body_form(in, name);
    if (mlo_is_cut(in, name, &p, &at, &views, &column)) {
        x->n = p.sum ? p.sum : p.product; /* its name, its scope */
        y = mlo_x_columns(x, &p, column, at.d);
        x->n = self;
        y = mlo_x_rounded_again(x, mlo_x_reshape(x, y, f.dims, (size_t)f.rank), &views, 1);
    }
    mlo_scratch_free(in->m, column);
    return y;
}

/* Output k of a node, likewise. 0: it is something else. */
static int mlo_x_cut(const mlo_inside *in, mlo_expansion *x, size_t k) {
    const char *y = mlo_x_cut_value(in, x, x->n->output[k]);
    if (y) mlo_x_out(x, k, y);
    return y != NULL;
}

/* Channels of a projection, as tokens or as heads, from a projection of its own; NULL: it is none, or has them all. */
static const char *mlo_x_own_part(const mlo_inside *in, mlo_expansion *x, const char *name) {
    mlo_head_view v;
    const char *y = mlo_x_cut_value(in, x, name);
    if (y) return y;
    if (mlo_packed_view(in, name, 0, &v)) y = mlo_x_head_view(x, &v);
    mlo_scratch_free(in->m, v.column);
    return y;
}

/* Concat(rows that are parameters, part of a projection): keys and values with a prefix (prefix.c). */
static void mlo_respell_beside_rows(mlo_respeller *r, mlo_expansion *x) {
    const char *part[MLO_MOVE_INPUTS];
    size_t cut = 0;
    if (!mlo_is_beside_rows(&r->in, x->n) || x->n->n_input > MLO_MOVE_INPUTS) return;
    for (size_t k = 0; k < x->n->n_input; k++) {
        const char *own = mlo_is_carried(&r->in, x->n->input[k])
            ? mlo_x_own_part(&r->in, x, x->n->input[k])
            : NULL;
        part[k] = own ? own : x->n->input[k];
        cut += own != NULL;
    }
    if (!cut) return;
    const char *y = mlo_x_node(x, "Concat", part, x->n->n_input);
    mlo_x_attrs_of(x, x->n, NULL);
    mlo_x_out(x, 0, y);
}

/* Split, Slice, Gather of a projection: each part that is asked for is a projection. */
static void mlo_respell_parts(mlo_respeller *r, mlo_expansion *x) {
    const mlo_node *self = x->n;
    int wanted = 0;
    if (!mlo_has_trait(self, MLO_MOVES) || !mlo_is_carried(&r->in, self->input[0])) return;
    for (size_t k = 0; k < self->n_output; k++)
        wanted |= mlo_is_worked_on(&r->in, self->output[k], 0);
    for (size_t k = 0; wanted && k < self->n_output; k++) {
        const mlo_value *v = mlo_value_of(r->in.body, self->output[k]);
        if (v->n_use || v->is_output) wanted = mlo_x_cut(&r->in, x, k);
    }
    if (!wanted) x->n_made = 0; /* all of them, or none */
}

/* Channels [*from, *from + count) that a Slice takes of a value; NULL: it takes something else. */
static const char *mlo_sliced_channels(const mlo_inside *in, const mlo_node *n, int64_t *from) {
    double start = 0, axis = 0, step = 1;
    if (!mlo_is(n, "Slice") || !mlo_is_carried(in, n->input[0]) || !mlo_has_input(n, 3)
        || !mlo_scalar(in, n->input[1], &start) || !mlo_scalar(in, n->input[3], &axis)
        || (mlo_has_input(n, 4) && !mlo_scalar(in, n->input[4], &step)) || mlo_differs(step, 1))
        return NULL;
    const mlo_form x = mlo_body_form(in, n->input[0]);
    *from = (int64_t)(start < 0 ? start + (double)mlo_last_dim(&x) : start);
    return mlo_form_known(&x) && !mlo_differs(axis < 0 ? axis + x.rank : axis, x.rank - 1)
        ? n->input[0]
        : NULL;
}

/* Rows of zeros, of so many columns; columns where the matrix is transposed. */
static const char *mlo_x_zeros(mlo_expansion *x, int64_t rows, int64_t columns, int transposed) {
    const int64_t to[] = { transposed ? columns : rows, transposed ? rows : columns };
    const char *zero = mlo_x_number(x, 0);
    return MLO_X(x, "Expand", zero, mlo_x_list(x, to, 2));
}

/* x[.., a:b] W is x W', W' with rows of zeros: a head reads its part of the channels alone (a tutorial's ViT). */
static void mlo_respell_sliced(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    mlo_projection p;
    mlo_rounding given;
    int64_t from = 0;
    const char *part[3];
    size_t n = 0;
    if (x->n->n_output != 1 || !mlo_projection_of(in, x->n->output[0], &p)) return;
    const mlo_node *cut = mlo_made_by(in, p.product->input[0]);
    const char *source = mlo_sliced_channels(in, cut, &from);
    if (!source || mlo_rounding_of(in->m, in->scan, in->body, p.product->input[1], &given)) return;
    const mlo_form of = mlo_body_form(in, source), w = mlo_body_form(in, p.product->input[1]);
    const int64_t rows = w.dims[p.transposed], columns = w.dims[!p.transposed];
    const int64_t behind = mlo_last_dim(&of) - from - rows;
    if (from < 0 || behind < 0) return;
    if (p.sum && mlo_map_put(x->m, &r->inner, p.product, x->n)) return;
    if (from) part[n++] = mlo_x_zeros(x, from, columns, p.transposed);
    part[n++] = p.product->input[1];
    if (behind) part[n++] = mlo_x_zeros(x, behind, columns, p.transposed);
    const char *weight = mlo_x_node(x, "Concat", part, n);
    mlo_x_int(x, "axis", p.transposed);
    mlo_x_out(x, 0, mlo_x_projected(x, &p, source, weight, p.bias));
}

/* Reshape, Squeeze of what was taken apart: joined to tokens of channels again, it is a projection. So are parts that
 * lie interleaved, y.view(.., D, 2)[.., 0], or side by side in each head. */
static void mlo_respell_rejoined(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    if (!mlo_has_trait(x->n, MLO_RESHAPES) || !mlo_is_carried(in, x->n->input[0])) return;
    const mlo_form f = mlo_body_form(in, x->n->input[0]), g = mlo_body_form(in, x->n->output[0]);
    if (mlo_last_dim(&f) != mlo_last_dim(&g) && mlo_is_worked_on(in, x->n->output[0], 0))
        mlo_x_cut(in, x, 0);
}

/* The sizes in front of the last two that two operands have together; 0: they do not fit, or are
 * those of both already. */
static int mlo_is_spread(const mlo_form *a, const mlo_form *b, mlo_form *to) {
    int same = a->rank == b->rank;
    *to = a->rank > b->rank ? *a : *b;
    if (a->rank < 2 || b->rank < 2) return 0;
    for (int d = 3; d <= to->rank; d++) {
        int64_t m = d > a->rank ? 1 : a->dims[a->rank - d],
                n = d > b->rank ? 1 : b->dims[b->rank - d];
        if (m != n && m != 1 && n != 1) return 0;
        same &= m == n;
        to->dims[to->rank - d] = m > n ? m : n;
    }
    return !same;
}

/* MatMul of activations, of which one is spread over the heads of the other, is MatMul behind an
 * Expand: [1, KV heads, G, T, D] times [1, KV heads, 1, D, T]. */
static void mlo_respell_spread(mlo_respeller *r, mlo_expansion *x) {
    const char *operand[2];
    mlo_form form[2], to;
    if (!mlo_is_inner_product(&r->in, x->n)) return;
    for (int i = 0; i < 2; i++) form[i] = mlo_body_form(&r->in, operand[i] = x->n->input[i]);
    if (!mlo_is_spread(&form[0], &form[1], &to)) return;
    for (int i = 0; i < 2; i++) {
        memcpy(to.dims + to.rank - 2, form[i].dims + form[i].rank - 2, 2 * sizeof *to.dims);
        if (to.rank == form[i].rank && mlo_form_count(&to) == mlo_form_count(&form[i])) continue;
        const char *shape = mlo_x_list(x, to.dims, (size_t)to.rank);
        operand[i] = MLO_X(x, "Expand", operand[i], shape);
    }
    mlo_x_out(x, 0, MLO_X(x, "MatMul", operand[0], operand[1]));
}

/* ---- factors per channel -------------------------------------------------- */

/* gamma * (x W + b) is x (W gamma) + b gamma: LayerScale. */
static void mlo_respell_factor(mlo_respeller *r, mlo_expansion *x) {
    const char *from, *gamma;
    mlo_projection p;
    if (!mlo_is_half(&r->in, x->n, "Mul", &from, &gamma) || !mlo_is_used_once(&r->in, from)) return;
    if (!mlo_projection_of(&r->in, from, &p)) return;
    mlo_form w = mlo_body_form(&r->in, p.product->input[1]);
    const int64_t n = w.dims[!p.transposed], column[] = { n, 1 };
    if (n < 2 || !mlo_is_per_channel(&r->in, gamma, n)) return;
    gamma = mlo_x_reshape(x, gamma, &n, 1);
    const char *along = p.transposed ? mlo_x_reshape(x, gamma, column, 2) : gamma;
    const char *weight = MLO_X(x, "Mul", p.product->input[1], along);
    const char *bias = p.bias ? MLO_X(x, "Mul", p.bias, gamma) : NULL;
    mlo_x_out(x, 0, mlo_x_projection(x, &p, weight, bias));
}

/* x w + b, w and b for each channel, or one number; NULL: there is none. */
typedef struct {
    const char *x;
    const char *w;
    const char *b;
} mlo_fed_line;

/* Takes a factor, or a summand, off a value: what is left. NULL: there is none. (The factor behind a rounding is the
 * rounding's own.) */
static const char *mlo_unlined(
    const mlo_inside *in, const char *name, const char *op, const char **by) {
    const mlo_node *n = mlo_made_by(in, name);
    const mlo_form y = mlo_body_form(in, name);
    const char *x, *other;
    mlo_rounding given;
    if (!n || mlo_rounding_of(in->m, in->scan, in->body, name, &given)) return NULL;
    if (!mlo_is_half(in, n, op, &x, &other)) return NULL;
    const mlo_form f = mlo_body_form(in, x);
    if (!mlo_form_same(&f, &y)) return NULL;
    if (!mlo_is_number(in, other) && !mlo_is_per_channel(in, other, mlo_last_dim(&y))) return NULL;
    *by = other;
    return x;
}

/* Do projections alone read it, as what they project? */
static int mlo_is_only_projected(const mlo_inside *in, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(in->body, name);
    for (size_t i = 0; v && i < v->n_use; i++) {
        const mlo_node *n = v->use[i];
        if (mlo_is_of_rows(in, n) && depth < MLO_CHAIN
            && mlo_is_only_projected(in, n->output[0], depth + 1))
            continue;
        if ((!mlo_is(n, "MatMul") && !mlo_is(n, "Gemm")) || mlo_is_scaled_gemm(n)
            || n->input[0] != name || mlo_is_carried(in, n->input[1])
            || mlo_body_form(in, n->input[1]).rank != 2)
            return 0;
    }
    return v && v->n_use && !v->is_output;
}

/* Is what a projection reads such a line, perhaps reshaped? */
static int mlo_is_fed_line(const mlo_inside *in, const char *name, mlo_fed_line *l) {
    memset(l, 0, sizeof *l);
    for (const mlo_node *n; mlo_is_of_rows(in, n = mlo_made_by(in, name));) name = n->input[0];
    if (!mlo_is_only_projected(in, name, 0)) return 0;
    const char *sum = mlo_unlined(in, name, "Add", &l->b);
    if (!sum || mlo_is_used_once(in, sum)) l->x = mlo_unlined(in, sum ? sum : name, "Mul", &l->w);
    if (!l->x) l->x = sum;
    return (l->w && !mlo_is_number(in, l->w)) || (l->b && !mlo_is_number(in, l->b));
}

/* A factor or a summand of a line as a list: of each channel, or of one number. */
static const char *mlo_x_line_list(mlo_expansion *x, const mlo_inside *in, const char *name) {
    const mlo_form f = mlo_body_form(in, name);
    const int64_t n = mlo_form_count(&f);
    return mlo_x_reshape(x, name, &n, 1);
}

/* (x w + b) W + c is x (w W) + (b W + c): a norm of constant statistics in front of projections. */
static void mlo_respell_fed(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    mlo_fed_line l;
    mlo_projection p;
    mlo_rounding given;
    if (x->n->n_output != 1 || !mlo_projection_of(in, x->n->output[0], &p)) return;
    if (!mlo_is_fed_line(in, p.product->input[0], &l)) return;
    const char *weight = p.product->input[1], *bias = p.bias;
    if (mlo_rounding_of(in->m, in->scan, in->body, weight, &given)) return;
    if (p.sum && mlo_map_put(x->m, &r->inner, p.product, x->n)) return;
    const mlo_form f = mlo_body_form(in, p.product->input[0]);
    const int64_t c = mlo_last_dim(&f), one = 1;
    if (l.b) {
        const char *b = MLO_X(x, "Expand", mlo_x_line_list(x, in, l.b), mlo_x_list(x, &c, 1));
        b = p.transposed ? MLO_X(x, "MatMul", weight, b) : MLO_X(x, "MatMul", b, weight);
        bias = mlo_x_plus(x, b, mlo_or_empty(bias));
    }
    if (l.w) {
        const char *w = mlo_x_line_list(x, in, l.w);
        weight = MLO_X(x, "Mul", weight, p.transposed ? w : mlo_x_unsqueeze(x, w, &one, 1));
    }
    const char *from = mlo_x_reshape(x, l.x, f.dims, (size_t)f.rank);
    mlo_x_out(x, 0, mlo_x_projected(x, &p, from, weight, bias));
}
