/* respell_heads: channels of several values side by side: heads of attention that are modules of their own (a
 * lecture's GPT) are one attention; what else a projection reads side by side, it reads part by part.
 *
 * in:  a Concat of channels, each part of which is softmax(x Wq (x Wk)^T) (x Wv), made by nodes of its own; a
 *     projection behind a Concat of other parts.
 * out: x [Wq ..], x [Wk ..], x [Wv ..], cut into heads in front of the first head's nodes, which work on all of them;
 *     a sum of projections, each of one part by its rows of the matrix.
 *
 * The heads are walked from their ends side by side: at each place they have the same operator, the same attributes,
 * and the same numbers or projections of one value. What each head makes as [.., T, D] all of them make as
 * [.., H, T, D].
 *
 * invariant: nothing is made unless the whole walk succeeds. A parameter that heads share stays as it is; one that
 *     each has of its own (the slope of a bias) gets an axis for heads. What a source model has rounded stays.
 * example: torch.cat([head(x) for head in heads], -1) of nn.ModuleList: four heads of three Linear(32, 8) each become
 *     three projections of 32 channels.
 * cost: O(nodes of the heads).
 */
enum { MLO_APART_MOST = 64, MLO_APART_DEEP = 16, MLO_APART_INPUTS = 3 };

typedef struct {
    const mlo_inside *in;
    mlo_expansion *x; /* NULL: it is only asked whether heads are alike */
    size_t heads;
} mlo_apart;

/* What the heads' values v are together; NULL: they are not alike. */
static const char *mlo_joined_heads(const mlo_apart *a, const char *const *v, int depth);

/* Are two parameters the same numbers, in all iterations? */
static int mlo_is_same_parameter(const mlo_inside *in, const char *a, const char *b) {
    const mlo_form f = mlo_body_form(in, a), g = mlo_body_form(in, b);
    int ok = mlo_form_known(&f) && mlo_form_known(&g) && mlo_form_same(&f, &g);
    for (int64_t i = 0; ok && i < in->scan->iterations; i++) {
        mlo_array *u = mlo_scan_value(in->m, in->scan, a, i);
        mlo_array *w = u ? mlo_scan_value(in->m, in->scan, b, i) : NULL;
        ok = w != NULL;
        for (int64_t k = 0; ok && k < mlo_array_count(u); k++)
            ok = !mlo_differs(mlo_number_at(u, k), mlo_number_at(w, k));
        mlo_array_free(in->m, u);
        mlo_array_free(in->m, w);
    }
    return ok;
}

/* A parameter [T, T], or less, once for each head: [H, T, T]. */
static const char *mlo_x_stacked(const mlo_apart *a, const char *const *v) {
    const mlo_form f = mlo_body_form(a->in, v[0]);
    const int64_t one[] = { 1, f.rank > 1 ? f.dims[f.rank - 2] : 1,
        f.rank ? f.dims[f.rank - 1] : 1 };
    const char *part[MLO_APART_MOST];
    for (size_t h = 0; h < a->heads; h++) part[h] = mlo_x_reshape(a->x, v[h], one, 3);
    const char *y = mlo_x_node(a->x, "Concat", part, a->heads);
    mlo_x_int(a->x, "axis", 0);
    return y;
}

/* Parameters that meet the heads' values: one for all, or one for each. */
static const char *mlo_joined_parameters(const mlo_apart *a, const char *const *v) {
    const mlo_form f = mlo_body_form(a->in, v[0]);
    int shared = 1;
    if (!mlo_form_known(&f)) return NULL;
    for (int i = 0; i + 2 < f.rank; i++)
        if (f.dims[i] != 1) return NULL;
    for (size_t h = 0; h < a->heads; h++) {
        const mlo_form g = mlo_body_form(a->in, v[h]);
        if (!strcmp(v[h], v[0])) continue;
        if (!mlo_form_same(&f, &g) || !mlo_is_parameter(a->in->scan, a->in->body, v[h], 0))
            return NULL;
        shared &= mlo_is_same_parameter(a->in, v[0], v[h]);
    }
    return shared || !a->x ? v[0] : mlo_x_stacked(a, v);
}

/* Are two carried values one and the same, or views of one that keep elements in their order? */
static int mlo_is_same_view(const mlo_inside *in, const char *a, const char *b) {
    const mlo_form f = mlo_body_form(in, a), g = mlo_body_form(in, b);
    const mlo_node *u = mlo_made_by(in, a), *w = mlo_made_by(in, b);
    if (!strcmp(a, b)) return 1;
    return u && w && mlo_has_trait(u, MLO_RESHAPES) && mlo_has_trait(w, MLO_RESHAPES)
        && mlo_form_known(&f) && mlo_form_known(&g) && mlo_form_same(&f, &g)
        && !strcmp(u->input[0], w->input[0]);
}

/* Are the heads' values projections of one value, and alike? */
static int mlo_is_projected_apart(const mlo_apart *a, const char *const *v, mlo_projection *p) {
    const mlo_form f = mlo_body_form(a->in, v[0]);
    mlo_rounding given;
    if (!mlo_form_known(&f) || f.rank < 2 || f.rank >= MLO_MAX_RANK) return 0;
    for (size_t h = 0; h < a->heads; h++) {
        const mlo_form g = mlo_body_form(a->in, v[h]);
        if (!mlo_form_same(&f, &g) || !mlo_projection_of(a->in, v[h], &p[h])) return 0;
        if (mlo_rounding_of(a->in->m, a->in->scan, a->in->body, p[h].product->input[1], &given))
            return 0;
        if (!mlo_is_same_view(a->in, p[h].product->input[0], p[0].product->input[0])
            || strcmp(p[h].product->op, p[0].product->op) || p[h].transposed != p[0].transposed
            || !p[h].bias != !p[0].bias)
            return 0;
    }
    return 1;
}

/* An axis and the next one change places. */
static const char *mlo_x_swapped(mlo_expansion *x, const char *v, int rank, int axis) {
    int64_t perm[MLO_MAX_RANK];
    for (int i = 0; i < rank; i++) perm[i] = i == axis ? i + 1 : i == axis + 1 ? i - 1 : i;
    return mlo_x_transpose(x, v, perm, (size_t)rank);
}

/* One projection for all of them, cut into heads. */
static const char *mlo_x_projections(
    const mlo_apart *a, const char *const *v, const mlo_projection *p) {
    mlo_expansion *x = a->x;
    mlo_node *self = x->n;
    mlo_form f = mlo_body_form(a->in, v[0]);
    const int64_t own = mlo_last_dim(&f);
    int64_t split[MLO_MAX_RANK];
    const char *weight[MLO_APART_MOST], *bias[MLO_APART_MOST], *all = NULL;
    x->n = p->sum ? p->sum : p->product; /* its name, its scope */
    for (size_t h = 0; h < a->heads; h++) weight[h] = p[h].product->input[1];
    for (size_t h = 0; p->bias && h < a->heads; h++) bias[h] = mlo_x_reshape(x, p[h].bias, &own, 1);
    if (p->bias) {
        all = mlo_x_node(x, "Concat", bias, a->heads);
        mlo_x_int(x, "axis", 0);
    }
    const char *w = mlo_x_node(x, "Concat", weight, a->heads);
    mlo_x_int(x, "axis", p->transposed ? 0 : 1);
    const char *y = mlo_x_projection(x, p, w, all);
    for (int i = 0; i <= f.rank; i++)
        split[i] = i < f.rank - 1 ? f.dims[i] : i < f.rank ? (int64_t)a->heads : own;
    y = mlo_x_reshape(x, y, split, (size_t)f.rank + 1);
    y = mlo_x_swapped(x, y, f.rank + 1, f.rank - 2);
    x->n = self;
    return y;
}

/* Does a Transpose turn the last two axes, and no other? */
static int mlo_turns_last(const mlo_inside *in, const mlo_node *n) {
    const mlo_form f = mlo_body_form(in, n->output[0]);
    const mlo_attr *perm = mlo_attr_of(n, "perm");
    if (!mlo_is(n, "Transpose") || !mlo_form_known(&f) || f.rank < 2) return 0;
    if (!perm) return f.rank == 2;
    for (int i = 0; i < f.rank; i++) {
        const int64_t from = i < f.rank - 2 ? i : 2 * f.rank - 3 - i;
        if (perm->ints[i] != from) return 0;
    }
    return 1;
}

/* A node whose result for all heads is that for each, side by side. */
static int mlo_works_on_heads(const mlo_inside *in, const mlo_node *n) {
    if (!n || n->n_output != 1 || mlo_has_trait(n, MLO_QUANTIZES)) return 0;
    if (mlo_is(n, "Softmax")) {
        const int64_t axis = mlo_int(n, "axis", -1);
        return axis == -1 || axis == mlo_body_form(in, n->output[0]).rank - 1;
    }
    return mlo_is_elementwise(n) || mlo_is(n, "Where") || mlo_is_inner_product(in, n)
        || mlo_turns_last(in, n);
}

/* The first head's node once more, of what all heads have. */
static const char *mlo_x_of_heads(const mlo_apart *a, const mlo_node *n, const char *const *input) {
    const int rank = mlo_body_form(a->in, n->output[0]).rank;
    if (mlo_is(n, "Transpose")) return mlo_x_swapped(a->x, input[0], rank + 1, rank - 1);
    const char *y = mlo_x_node(a->x, n->op, input, n->n_input);
    mlo_node *made = mlo_x_last(a->x);
    if (mlo_is(n, "Softmax"))
        mlo_x_int(a->x, "axis", -1);
    else
        for (size_t i = 0; made && i < n->n_attr; i++)
            if (!MLO_PUSH(a->x->m, made->attr, made->n_attr, n->attr[i])) return NULL;
    return y;
}

/* The heads have nodes alike. */
static const char *mlo_joined_nodes(const mlo_apart *a, const char *const *v, int depth) {
    const mlo_attr *which[2];
    const char *input[MLO_APART_INPUTS], *of[MLO_APART_MOST];
    const mlo_node *n = mlo_made_by(a->in, v[0]);
    if (!mlo_works_on_heads(a->in, n) || n->n_input > MLO_APART_INPUTS) return NULL;
    for (size_t h = 1; h < a->heads; h++) {
        const mlo_node *o = mlo_made_by(a->in, v[h]);
        if (!o || !mlo_op_same(n, o) || mlo_attr_difference(a->in->m, n, o, which)) return NULL;
    }
    for (size_t i = 0; i < n->n_input; i++) {
        input[i] = "";
        if (!mlo_has_input(n, i)) continue;
        for (size_t h = 0; h < a->heads; h++) of[h] = mlo_made_by(a->in, v[h])->input[i];
        if (!(input[i] = mlo_joined_heads(a, of, depth + 1))) return NULL;
    }
    return a->x ? mlo_x_of_heads(a, n, input) : v[0];
}

static const char *mlo_joined_heads(const mlo_apart *a, const char *const *v, int depth) {
    mlo_projection p[MLO_APART_MOST];
    if (depth > MLO_APART_DEEP) return NULL;
    if (!mlo_is_carried(a->in, v[0])) return mlo_joined_parameters(a, v);
    if (mlo_is_projected_apart(a, v, p)) return a->x ? mlo_x_projections(a, v, p) : v[0];
    return mlo_joined_nodes(a, v, depth);
}

/* Concat(part, part, ..) along the channels, which the loop's own make. */
static int mlo_is_side_by_side(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is(n, "Concat") || n->n_input < 2 || n->n_input > MLO_APART_MOST) return 0;
    const mlo_form f = mlo_body_form(in, n->output[0]);
    const int64_t axis = mlo_int(n, "axis", 0);
    int ok = mlo_form_known(&f) && f.rank >= 2 && f.rank < MLO_MAX_RANK
        && (axis == -1 || axis == f.rank - 1);
    for (size_t k = 0; ok && k < n->n_input; k++) ok = mlo_is_carried(in, n->input[k]);
    return ok;
}

/* Are the parts heads that are alike? */
static int mlo_is_of_heads(const mlo_inside *in, const mlo_node *n) {
    const mlo_apart a = { in, NULL, n->n_input };
    return mlo_is_side_by_side(in, n) && mlo_is_inner_product(in, mlo_made_by(in, n->input[0]))
        && mlo_joined_heads(&a, n->input, 0);
}

static void mlo_respell_heads(mlo_respeller *r, mlo_expansion *x) {
    if (!mlo_is_of_heads(&r->in, x->n)) return;
    const mlo_form f = mlo_body_form(&r->in, x->n->output[0]);
    const mlo_apart a = { &r->in, x, x->n->n_input };
    const char *y = mlo_joined_heads(&a, x->n->input, 0);
    if (!y) return;
    y = mlo_x_swapped(x, y, f.rank + 1, f.rank - 2);
    mlo_x_out(x, 0, mlo_x_reshape(x, y, f.dims, (size_t)f.rank));
}

/* Concat(a, b) W + c is a W' + c + b W'', W' and W'' rows of W: attention and an FFN beside it share the projection
 * that joins them (ViT-22B's blocks, PaLM's, FLUX's). */
static void mlo_respell_side_by_side(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    mlo_projection p;
    mlo_rounding given;
    if (x->n->n_output != 1 || !mlo_projection_of(in, x->n->output[0], &p)) return;
    const mlo_node *parts = mlo_made_by(in, p.product->input[0]);
    const char *weight = p.product->input[1], *y = NULL;
    if (!mlo_is_side_by_side(in, parts) || mlo_is_of_heads(in, parts)
        || mlo_rounding_of(in->m, in->scan, in->body, weight, &given))
        return;
    if (p.sum && mlo_map_put(x->m, &r->inner, p.product, x->n)) return;
    const mlo_form all = mlo_body_form(in, parts->output[0]);
    int64_t at = 0, *row = MLO_NEW_N(x->m, int64_t, (size_t)mlo_last_dim(&all));
    for (size_t k = 0; row && k < parts->n_input; k++) {
        const mlo_form f = mlo_body_form(in, parts->input[k]);
        const int64_t own = mlo_last_dim(&f);
        for (int64_t i = 0; i < own; i++) row[i] = at++;
        const char *which = mlo_x_list(x, row, (size_t)own);
        const char *w = mlo_x_take(x, weight, which, p.transposed ? 1 : 0);
        const char *part = mlo_x_projected(x, &p, parts->input[k], w, k ? NULL : p.bias);
        y = y ? MLO_X(x, "Add", y, part) : part;
    }
    if (y) mlo_x_out(x, 0, y);
}
