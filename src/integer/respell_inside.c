/* respell_inside: the rules of respell.c about what stands on heads, inside of attention.
 *
 * in:  a node of a float loop body: a product or a sum with a parameter on heads, or a projection of joined heads.
 * out: a factor for each head, or for each channel of each head, of queries, keys, values, scores or results goes
 *     into the weights of the projection of queries, keys or values, a summand into a projection's bias; heads that
 *     are joined in another order than theirs (b t (d h), say) are joined in theirs, and the rows of the projection
 *     behind them change places.
 *
 * invariant: which number meets which channel is found by following views element by element (layout.c); a factor
 *     that tokens differ in, a rotation's cosines, say, stays where it is.
 * example: NormFormer's head_scale, y[1, T, H, D] * c[H, 1] behind softmax(..) v, becomes v's weights times c.
 * cost: the element maps of what is multiplied, and of what is joined.
 */

/* A factor or a summand on a view: y = carried * by, carried / by, carried + by; by is a parameter. */
typedef struct {
    const char *carried;
    const char *by;
    const char *op; /* Mul, Div, Add */
    mlo_form form; /* of carried, and of y */
    mlo_form own; /* of by */
    mlo_chain chain; /* from the value that carried is a view of */
    const char *source;
    double scale; /* what else is multiplied in the chain */
} mlo_inside_factor;

static int mlo_inside_factor_of(const mlo_inside *in, const mlo_node *n, mlo_inside_factor *f) {
    int half = mlo_is_half(in, n, "Mul", &f->carried, &f->by)
        || mlo_is_half(in, n, "Add", &f->carried, &f->by);
    if (!half && mlo_is(n, "Div") && mlo_is_carried(in, n->input[0])
        && !mlo_is_carried(in, n->input[1])) {
        f->carried = n->input[0];
        f->by = n->input[1];
        half = 1;
    }
    if (!half || !mlo_is_parameter(in->scan, in->body, f->by, 0)) return 0;
    const mlo_form y = mlo_body_form(in, n->output[0]);
    f->op = n->op;
    f->form = mlo_body_form(in, f->carried);
    f->own = mlo_body_form(in, f->by);
    f->scale = 1;
    if (!mlo_form_known(&f->own) || !mlo_form_same(&f->form, &y)) return 0;
    f->source = mlo_chain_walk(in, f->carried, &f->chain, &f->scale);
    return !f->chain.n_rounding;
}

/* Which element of the factor element e of the view meets. */
static int64_t mlo_inside_meets(const mlo_inside_factor *f, int64_t e) {
    int64_t at = 0, size = 1;
    for (int k = 1; k <= f->form.rank; k++) {
        const int64_t n = f->form.dims[f->form.rank - k], i = e % n;
        e /= n;
        if (k > f->own.rank) continue;
        const int64_t m = f->own.dims[f->own.rank - k];
        at += (m > 1 ? i : 0) * size;
        size *= m;
    }
    return at;
}

/* The elements of the factor that a list names. */
static const char *mlo_x_factors(
    mlo_expansion *x, const mlo_inside_factor *f, const int64_t *which, int64_t n) {
    const int64_t all = mlo_form_count(&f->own);
    const char *list = mlo_x_reshape(x, f->by, &all, 1);
    return mlo_x_take(x, list, mlo_x_list(x, which, (size_t)n), 0);
}

/* ---- a factor of queries, keys, values ------------------------------------ */

/* Do products of attention alone read it, as heads, perhaps times a number? */
static int mlo_is_only_attended(const mlo_inside *in, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(in->body, name);
    double scale = 1;
    if (!v || !v->n_uses || v->is_output || depth > MLO_CHAIN) return 0;
    for (size_t i = 0; i < v->n_use; i++) {
        const mlo_node *n = v->use[i];
        if (mlo_is_inner_product(in, n)) continue;
        if (!mlo_is_layout(n) && !mlo_unscaled(in, n, &scale)) return 0;
        for (size_t k = 0; k < n->n_output; k++)
            if (!mlo_is_only_attended(in, n->output[k], depth + 1)) return 0;
    }
    return 1;
}

/* Is the value a softmax's, but for views? */
static int mlo_is_probabilities(const mlo_inside *in, const char *name) {
    mlo_chain c;
    const mlo_node *n = mlo_made_by(in, mlo_chain_walk(in, name, &c, NULL));
    if (mlo_is(n, "Where")) n = mlo_made_by(in, mlo_chain_walk(in, n->input[2], &c, NULL));
    return mlo_is(n, "Softmax");
}

/* ... as values: behind probabilities? (One number of queries and keys is the scale of their scores.) */
static int mlo_is_values(const mlo_inside *in, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(in->body, name);
    for (size_t i = 0; v && depth < MLO_CHAIN && i < v->n_use; i++) {
        const mlo_node *n = v->use[i];
        if (mlo_is_inner_product(in, n))
            return n->input[1] == name && mlo_is_probabilities(in, n->input[0]);
        if (mlo_is_layout(n) && n->n_output) return mlo_is_values(in, n->output[0], depth + 1);
    }
    return 0;
}

/* which[k] := the element of the factor that channel k of the heads meets. 0: tokens differ in it. */
static int mlo_inside_by_channel(const mlo_inside_factor *f, const mlo_heads *at, int64_t *which) {
    for (int64_t k = 0; k < at->heads * at->d; k++) {
        which[k] = mlo_inside_meets(f, mlo_head_place(at, k / at->d, 0, k % at->d));
        for (int64_t i = 1; i < at->t; i++)
            if (mlo_inside_meets(f, mlo_head_place(at, k / at->d, i, k % at->d)) != which[k])
                return 0;
    }
    return 1;
}

/* How the view lies: token by token, or head by head, as rows or as columns; -1: in another way. Fills the channels
 * of the projection, and of the factor. */
static int mlo_inside_layout(const mlo_inside *in, const mlo_inside_factor *f, mlo_heads *at,
    int64_t *column, int64_t *which) {
    const mlo_form whole = mlo_body_form(in, f->source), *y = &f->form;
    const int64_t t = mlo_tokens_of(&whole), n = mlo_form_count(y);
    if (y->rank < 2 || t < 2 || n < t || n % t) return 0;
    for (int order = -1; order < 2; order++) {
        const int64_t d = order < 0 ? n / t : y->dims[y->rank - (order ? 2 : 1)];
        const mlo_heads as = { t, n / t / d, d, order > 0 };
        if (order >= 0 && (y->dims[y->rank - (order ? 1 : 2)] != t || n / t % d)) continue;
        if (!mlo_head_columns(in, f->source, &f->chain, &as, column)
            || !mlo_inside_by_channel(f, &as, which))
            continue;
        *at = as;
        return 1;
    }
    return 0;
}

/* Weights, or a bias, of those columns; times a number. */
static const char *mlo_x_inside_columns(
    mlo_expansion *x, const char *from, const char *columns, int axis, double scale) {
    const char *y = mlo_x_take(x, from, columns, axis);
    return mlo_differs(scale, 1) ? MLO_X(x, "Mul", y, mlo_x_number(x, scale)) : y;
}

/* view(x W + b) * c is view(x (W c') + b c'): c' is c for each channel. view(x W + b) + c is view(x W + (b + c')). */
static void mlo_respell_inside_projection(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    mlo_node *self = x->n;
    mlo_inside_factor f;
    mlo_projection p;
    mlo_rounding given;
    mlo_heads at;
    const int sum = mlo_is(self, "Add");
    if (!mlo_inside_factor_of(in, self, &f) || !f.chain.n) return;
    if (mlo_is_number(in, f.by) && (sum || !mlo_is_values(in, self->output[0], 0))) return;
    if (!mlo_projection_of(in, f.source, &p)
        || !(sum ? mlo_is_used_once(in, f.carried) : mlo_is_only_attended(in, self->output[0], 0)))
        return;
    if (mlo_rounding_of(in->m, in->scan, in->body, p.product->input[1], &given)) return;
    const int64_t room = mlo_form_count(&f.form);
    int64_t *column = MLO_NEW_N(x->m, int64_t, (size_t)room),
            *which = MLO_NEW_N(x->m, int64_t, (size_t)room);
    if (!column || !which || !mlo_inside_layout(in, &f, &at, column, which)) return;
    const int64_t n = at.heads * at.d, across[] = { n, 1 };
    x->n = p.sum ? p.sum : p.product; /* its name, its scope */
    const char *by = mlo_x_factors(x, &f, which, n), *list = mlo_x_list(x, column, (size_t)n);
    const char *weight = mlo_x_inside_columns(
        x, p.product->input[1], list, p.transposed ? 0 : 1, f.scale);
    const char *bias = p.bias ? mlo_x_inside_columns(x, p.bias, list, -1, f.scale) : NULL;
    if (!sum) weight = MLO_X(x, f.op, weight, p.transposed ? mlo_x_reshape(x, by, across, 2) : by);
    if (bias) bias = MLO_X(x, f.op, bias, by);
    const char *y = mlo_x_projection(x, &p, weight, sum && !bias ? by : bias);
    x->n = self;
    mlo_x_out(x, 0, mlo_x_as_heads(x, y, &at, &f.form));
}

/* ---- a factor of scores, of results --------------------------------------- */

static int mlo_can_go_along(const mlo_chain *c) {
    for (int k = 0; k < c->n; k++)
        if (c->node[k]->n_output != 1 || c->node[k]->n_input > MLO_MOVE_INPUTS) return 0;
    return 1;
}

/* Is the operand heads of a projection, each head its own: as many channels as `heads` have? */
static int mlo_is_projected_heads(
    const mlo_inside *in, const char *name, int64_t heads, int64_t d) {
    mlo_chain c;
    mlo_projection p;
    double scale = 1;
    const mlo_form f = mlo_body_form(in, name);
    const char *source = mlo_chain_walk(in, name, &c, &scale);
    return c.n && !c.n_rounding && mlo_projection_of(in, source, &p)
        && mlo_form_count(&f) == heads * d * f.dims[f.rank - 2];
}

/* which[h * n + j] := the element of the factor that column j of matrix h of the product meets, in all rows; *each:
 * columns differ in it. 0: rows differ in it. */
static int mlo_inside_by_matrix(const mlo_inside *in, const mlo_inside_factor *f, const mlo_form *o,
    int64_t *which, int *each) {
    const int64_t n = mlo_last_dim(o), rows = o->dims[o->rank - 2], all = mlo_form_count(o);
    mlo_array *map = mlo_index_map(in, f->source, &f->chain);
    int ok = map && mlo_array_count(map) == all && rows > 1;
    for (int64_t k = 0; ok && k < all / rows; k++) which[k] = -1;
    for (int64_t e = 0; ok && e < all; e++) {
        const int64_t from = ((const int32_t *)map->data)[e], meets = mlo_inside_meets(f, e);
        int64_t *to = &which[from / (rows * n) * n + from % n];
        ok = *to < 0 || *to == meets;
        *to = meets;
    }
    mlo_array_free(in->m, map);
    for (int64_t k = 0; ok && k < all / rows; k++) {
        ok = which[k] >= 0;
        *each |= which[k] != which[k / n * n];
    }
    return ok;
}

/* view(q k) * c is view((q c') k), and view(softmax(..) v) * c is view(softmax(..) (v c')). */
static void mlo_respell_inside_product(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    mlo_inside_factor f;
    int each = 0;
    if (mlo_is(x->n, "Add") || !mlo_inside_factor_of(in, x->n, &f) || mlo_is_number(in, f.by)
        || !mlo_can_go_along(&f.chain))
        return;
    const mlo_node *product = mlo_made_by(in, f.source);
    const mlo_form o = mlo_body_form(in, f.source);
    if (!mlo_is_inner_product(in, product) || o.rank < 3 || mlo_form_count(&o) < 1) return;
    const int mixes = mlo_is_probabilities(in, product->input[0]);
    const char *operand = product->input[mixes ? 1 : 0];
    mlo_form to = mlo_body_form(in, operand);
    const int64_t n = mlo_last_dim(&o), heads = mlo_form_count(&o) / n / o.dims[o.rank - 2];
    int64_t *which = MLO_NEW_N(x->m, int64_t, (size_t)(heads * n));
    if (!which || to.rank < 3 || !mlo_is_projected_heads(in, operand, heads, mlo_last_dim(&to))
        || !mlo_inside_by_matrix(in, &f, &o, which, &each) || (each && !mixes))
        return;
    for (int64_t h = 0; !each && h < heads; h++) which[h] = which[h * n];
    const char *by = mlo_x_factors(x, &f, which, each ? heads * n : heads);
    to.dims[to.rank - 2] = 1;
    to.dims[to.rank - 1] = each ? n : 1;
    by = mlo_x_reshape(x, by, to.dims, (size_t)to.rank);
    const char *y = MLO_X(x, f.op, operand, by);
    if (mlo_differs(f.scale, 1)) y = MLO_X(x, "Mul", y, mlo_x_number(x, f.scale));
    y = mixes ? MLO_X(x, "MatMul", product->input[0], y) : MLO_X(x, "MatMul", y, product->input[1]);
    mlo_x_out(x, 0, mlo_x_along(x, &f.chain, y));
}

/* (softmax(..) c) v is softmax(..) (v c), of one number. */
static void mlo_respell_inside_probabilities(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    double scale = 1;
    if (!mlo_is_inner_product(in, x->n)) return;
    const mlo_node *n = mlo_made_by(in, x->n->input[0]);
    const char *from = n && mlo_is_used_once(in, x->n->input[0]) ? mlo_unscaled(in, n, &scale)
                                                                 : NULL;
    if (!from || !mlo_is_probabilities(in, from)) return;
    const char *factor = mlo_x_number(x, scale);
    const char *v = MLO_X(x, "Mul", x->n->input[1], factor);
    mlo_x_out(x, 0, MLO_X(x, "MatMul", from, v));
}

/* ---- heads that are joined in another order ------------------------------- */

/* row[k] := the channel, head by head, that channel k of the joined heads is. 0: tokens differ in it, or some channel
 * is missing. */
static int mlo_inside_rows(const mlo_inside *in, const char *source, const mlo_chain *c,
    const mlo_heads *at, int64_t *row, int64_t *order) {
    const int64_t n = at->heads * at->d;
    mlo_array *map = mlo_index_map(in, source, c);
    int ok = map && mlo_array_count(map) == at->t * n;
    for (int64_t k = 0; ok && k < n; k++) order[k] = -1;
    for (int64_t e = 0; ok && e < at->t * n; e++) {
        const int64_t from = ((const int32_t *)map->data)[e];
        const int64_t k = from / (at->t * at->d) * at->d + from % at->d;
        ok = from / at->d % at->t == e / n && (e < n ? order[k] < 0 : row[e % n] == k);
        row[e % n] = k;
        if (e < n) order[k] = e;
    }
    mlo_array_free(in->m, map);
    return ok;
}

/* join'(heads) W is join(heads) W', W' the rows of W in the heads' own order. */
static void mlo_respell_inside_joined(mlo_respeller *r, mlo_expansion *x) {
    static const int64_t perm[] = { 0, 2, 1, 3 };
    const mlo_inside *in = &r->in;
    mlo_projection p;
    mlo_rounding given;
    mlo_chain c;
    if (x->n->n_output != 1 || !mlo_projection_of(in, x->n->output[0], &p)) return;
    const mlo_form f = mlo_body_form(in, p.product->input[0]);
    const char *source = mlo_chain_walk(in, p.product->input[0], &c, NULL);
    const mlo_node *mix = mlo_made_by(in, source);
    const mlo_form o = mlo_body_form(in, source);
    if (!c.n || c.n_rounding || !mlo_is_inner_product(in, mix) || o.rank < 3
        || mlo_form_count(&o) < 1)
        return;
    const int64_t t = o.dims[o.rank - 2], d = mlo_last_dim(&o), n = mlo_last_dim(&f);
    const mlo_heads at = { t, n / d, d, 0 };
    if (mlo_form_count(&o) != t * n || n % d || mlo_tokens_of(&f) != t
        || !mlo_is_probabilities(in, mix->input[0])
        || mlo_rounding_of(in->m, in->scan, in->body, p.product->input[1], &given))
        return;
    int64_t *row = MLO_NEW_N(x->m, int64_t, (size_t)n),
            *order = MLO_NEW_N(x->m, int64_t, (size_t)n);
    if (!row || !order || !mlo_inside_rows(in, source, &c, &at, row, order)
        || mlo_is_identity(row, n))
        return;
    if (p.sum && mlo_map_put(x->m, &r->inner, p.product, x->n)) return;
    const int64_t split[] = { 1, at.heads, t, d };
    const char *list = mlo_x_list(x, order, (size_t)n);
    const char *weight = mlo_x_take(x, p.product->input[1], list, p.transposed ? 1 : 0);
    const char *y = mlo_x_transpose(x, mlo_x_reshape(x, source, split, 4), perm, 4);
    y = mlo_x_reshape(x, y, f.dims, (size_t)f.rank);
    mlo_x_out(x, 0, mlo_x_projected(x, &p, y, weight, p.bias));
}
