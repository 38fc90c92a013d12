/* respell: rewrites what exporters spell in many ways into one spelling, inside a loop body.
 *
 * in:  a float loop body.
 * out: the same function in the spelling that recognise.c reads; dead nodes are gone, the index and
 *     the shapes are fresh.
 *
 * The rules, a few lines each, are in a table at the end. To add a spelling, add a rule there and a
 * case in tests/test_spellings.py.
 *
 * invariant: a rule applies only where both spellings are provably the same function: views are
 *     followed element by element (layout.c), constants are compared by value. What matches no rule
 *     stays as it is, and recognise.c says what it is.
 * example: a projection to [T, 3 C] that Split, Slice, Gather or a reshape to [T, 3, H, D] cuts
 *     into queries, keys and values becomes three projections, whose weights are columns of the
 *     one (an expression over it; stage lower joins them to one matrix unit again).
 * cost: O(nodes of one body), and the element maps of attention's operands.
 */
typedef struct {
    mlo_inside in;
    /* nodes that a rule has taken into another node: not looked at by themselves */
    mlo_map inner;
} mlo_respeller;

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

/* Does a node hand on what it gets? */
static int mlo_is_plain(const mlo_inside *in, const mlo_node *n) {
    if (mlo_is(n, "Identity")) return 1;
    return mlo_is(n, "Cast")
        && mlo_body_form(in, n->input[0]).dtype == mlo_body_form(in, n->output[0]).dtype;
}

/* Everybody reads what is in front of such nodes. */
static void mlo_respell_plain(const mlo_inside *in) {
    for (size_t i = 0; i < in->body->n_node; i++)
        for (size_t k = 0; k < in->body->node[i]->n_input; k++) {
            const char **name = &in->body->node[i]->input[k];
            for (mlo_node *n; mlo_is_plain(in, n = mlo_made_by(in, *name));) *name = n->input[0];
        }
}

/* A binary node of one carried operand and one that is not: which is which. */
static int mlo_is_half(const mlo_inside *in, const mlo_node *n, const char *op,
    const char **carried, const char **other) {
    if (!mlo_is(n, op) || n->n_input != 2) return 0;
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

/* Is this value scores of attention, perhaps scaled, masked or rounded: made by a product of two
 * activations, nothing else? */
static int mlo_is_scores(const mlo_inside *in, const char *name) {
    for (int i = 0; i < MLO_CHAIN; i++) {
        const mlo_node *n = mlo_made_by(in, name);
        const char *other;
        double scale = 1;
        mlo_rounding f;
        if (mlo_is_inner_product(in, n)) return 1;
        if (mlo_is_rounded(in, name, &f)) {
            name = f.from;
            continue;
        }
        const char *from = n ? mlo_unscaled(in, n, &scale) : NULL;
        if (!from && mlo_has_trait(n, MLO_RESHAPES)) from = n->input[0];
        if (!from && !mlo_is_half(in, n, "Add", &from, &other)) return 0;
        name = from;
    }
    return 0;
}

/* ---- linear layers -------------------------------------------------------- */

/* x W (+ bias), W a parameter: MatMul, perhaps with an Add behind it, or Gemm. */
typedef struct {
    mlo_node *product, *sum;
    const char *bias;
    int transposed;
} mlo_projection;

static int mlo_projection_of(const mlo_inside *in, const char *name, mlo_projection *p) {
    mlo_node *n = mlo_made_by(in, name);
    const char *from;
    memset(p, 0, sizeof *p);
    if (mlo_is_half(in, n, "Add", &from, &p->bias)) {
        p->sum = n;
        if (!mlo_is_used_once(in, from)) return 0;
        n = mlo_made_by(in, from);
        if (!mlo_is(n, "MatMul")) return 0;
    }
    mlo_form w = n && n->n_input > 1 ? mlo_body_form(in, n->input[1]) : mlo_form_of(NULL);
    if (w.rank != 2 || !mlo_is_carried(in, n->input[0]) || mlo_is_carried(in, n->input[1]))
        return 0;
    p->product = n;
    p->transposed = mlo_is(n, "Gemm") && mlo_int(n, "transB", 0);
    if (mlo_is(n, "Gemm") && mlo_has_input(n, 2)) p->bias = n->input[2];
    int gemm = mlo_is(n, "Gemm") && mlo_float(n, "alpha", 1) == 1 && mlo_float(n, "beta", 1) == 1;
    if (!(gemm && !mlo_int(n, "transA", 0)) && !mlo_is(n, "MatMul")) return 0;
    return !p->bias || mlo_is_per_channel(in, p->bias, w.dims[!p->transposed]);
}

/* The projection with other weights and bias (NULL: none), which are expressions over its own. */
static const char *mlo_x_projection(
    mlo_expansion *x, const mlo_projection *p, const char *weight, const char *bias) {
    if (mlo_is(p->product, "MatMul")) {
        const char *y = MLO_X(x, "MatMul", p->product->input[0], weight);
        return mlo_x_plus(x, y, bias ? bias : "");
    }
    const char *y = MLO_X(x, "Gemm", p->product->input[0], weight, bias ? bias : "");
    mlo_x_int(x, "transB", p->transposed);
    return y;
}

/* Some of the elements of v along an axis. */
static const char *mlo_x_take(mlo_expansion *x, const char *v, const char *which, int64_t axis) {
    const char *y = MLO_X(x, "Gather", v, which);
    mlo_x_int(x, "axis", axis);
    return y;
}

/* n of the projection's channels. */
static const char *mlo_x_columns(
    mlo_expansion *x, const mlo_projection *p, const int64_t *column, int64_t n) {
    const char *which = mlo_x_list(x, column, (size_t)n);
    const char *weight = mlo_x_take(x, p->product->input[1], which, p->transposed ? 0 : 1);
    const char *bias = p->bias ? mlo_x_take(x, p->bias, which, -1) : NULL;
    return mlo_x_projection(x, p, weight, bias);
}

/* ---- queries, keys and values out of one projection ----------------------- */

/* An operand of a product of activations, as heads of a projection's channels, each of which
 * `shared` heads of the operand are, one behind the other. */
typedef struct {
    mlo_projection p;
    mlo_form form;
    mlo_heads at;
    int64_t shared;
    int64_t *column;
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
    at.heads = at.t > 0 && at.d > 0 ? mlo_form_count(f) / (at.t * at.d) : 0;
    v->at = at;
    return at.heads > 0 && mlo_head_columns(in, source, c, &at, v->column);
}

/* Does this operand want respelling: is it heads of a projection, but not all of its channels in
 * order, or not each as often as the next one? v->column is scratch. */
static int mlo_packed_view(
    const mlo_inside *in, const char *name, int transposable, mlo_head_view *v) {
    mlo_chain c;
    v->scale = 1;
    v->form = mlo_body_form(in, name);
    v->column = NULL;
    const char *source = mlo_chain_walk(in, name, &c, &v->scale);
    mlo_form whole = mlo_body_form(in, source);
    if (!mlo_form_known(&v->form) || v->form.rank < 2 || !mlo_form_known(&whole) || c.n_rounding
        || !c.n)
        return 0;
    if (!mlo_projection_of(in, source, &v->p)) return 0;
    int64_t n = mlo_form_count(&v->form);
    v->column = (int64_t *)mlo_scratch(in->m, (size_t)n, sizeof *v->column);
    if (!v->column) return 0;
    if (!(transposable && mlo_view_as(in, source, &c, 1, v)) && !mlo_view_as(in, source, &c, 0, v))
        return 0;
    v->shared = mlo_share_columns(&v->at, v->column);
    n = v->at.heads / v->shared * v->at.d;
    return mlo_last_dim(&whole) != n || !mlo_is_identity(v->column, n);
}

/* The operand, from a projection of its own. */
static const char *mlo_x_head_view(mlo_expansion *x, const mlo_head_view *v) {
    mlo_node *self = x->n;
    const int64_t heads = v->at.heads / v->shared, two = 2;
    const int64_t split[] = { 1, v->at.t, heads, v->at.d }, times[] = { 1, 1, v->shared, 1, 1 };
    const int64_t perm[] = { 0, 2, v->at.order ? 3 : 1, v->at.order ? 1 : 3 };
    x->n = v->p.sum ? v->p.sum : v->p.product; /* its name, its scope */
    const char *y = mlo_x_columns(x, &v->p, v->column, heads * v->at.d);
    x->n = self;
    y = mlo_x_reshape(x, y, split, 4);
    y = mlo_x_transpose(x, y, perm, 4);
    if (v->shared > 1) {
        y = mlo_x_unsqueeze(x, y, &two, 1);
        y = MLO_X(x, "Expand", y, mlo_x_list(x, times, 5));
    }
    y = mlo_x_reshape(x, y, v->form.dims, (size_t)v->form.rank);
    if (v->scale < 1 || v->scale > 1) {
        const char *scale = mlo_x_number(x, v->scale);
        y = MLO_X(x, "Mul", y, scale);
    }
    return y;
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

/* ---- rotary embedding ----------------------------------------------------- */

/* An operand that is turned in pairs, and what makes the value that is turned: channels of a
 * projection or of any value, perhaps behind a norm over each head or over the token. */
typedef struct {
    mlo_rotation_found r;
    mlo_projection p;
    const char *from; /* the value whose channels they are, [.., T, N] */
    mlo_node *norm;
    int64_t heads, channels; /* heads of their own; channels of from */
    int64_t row; /* channels that the norm is over: of a head, or of all heads */
    int64_t gains; /* of the norm: as many, or one for each channel of all heads */
    /* the channels of `from`, and their places in the norm's row, in pairs */
    int64_t *column, *gain;
    int projected, whole; /* from is a projection; all of its channels, in order */
    const char *why;
} mlo_turned;

static void mlo_turned_free(mlo *m, mlo_turned *t) {
    mlo_rotation_free(m, &t->r);
    mlo_scratch_free(m, t->column);
    t->column = t->gain = NULL;
}

/* A norm over the last axis, whose gain (and bias) is one for all rows, or one for each head of a
 * token [.., H, D]; *gains takes how many numbers the larger of them has. */
static int mlo_is_head_norm(const mlo_inside *in, const mlo_node *n, int64_t *gains) {
    if (!mlo_is(n, "RMSNormalization") && !mlo_is(n, "LayerNormalization")) return 0;
    const mlo_form f = mlo_body_form(in, n->input[0]);
    const int64_t axis = mlo_int(n, "axis", -1);
    if (!mlo_form_known(&f) || (axis != -1 && axis != f.rank - 1)) return 0;
    const int64_t row = *gains = f.dims[f.rank - 1];
    const int64_t token = f.rank > 1 ? row * f.dims[f.rank - 2] : row;
    for (size_t k = 1; k < n->n_input; k++) {
        const mlo_form g = mlo_body_form(in, mlo_has_input(n, k) ? n->input[k] : "");
        if (!mlo_has_input(n, k) || mlo_is_per_channel(in, n->input[k], row)) continue;
        if (mlo_is_carried(in, n->input[k]) || !mlo_form_known(&g) || g.rank < 2
            || mlo_last_dim(&g) != row || mlo_form_count(&g) != token
            || g.dims[g.rank - 2] * row != token)
            return 0;
        *gains = token;
    }
    return 1;
}

/* Are the norm's rows those of the heads (or of the tokens), and is the order in them, and are the
 * gains, the same for every token? Member (h, i, k), being element e of the norm, lies in its row at
 * e % row, and has gain e % gains. */
static int mlo_turned_rows(mlo *m, mlo_turned *t) {
    const int64_t d = t->r.at.d, tokens = t->r.at.t, n = t->heads * d;
    const int64_t each = t->row == d ? d : n;
    if (!t->norm) return 1;
    if (t->row != each || (t->gains > each && t->gains != n)) return 0;
    char *seen = (char *)mlo_scratch(m, (size_t)t->gains, 1);
    int ok = seen != NULL;
    if (ok) memset(seen, 0, (size_t)t->gains);
    for (int64_t k = 0; ok && k < n; k++) {
        const int32_t *at = t->r.member + k / d * t->r.repeats * tokens * d + k % d;
        const int32_t *first = t->r.member + k / each * each / d * t->r.repeats * tokens * d;
        if (k % t->gains == 0) memset(seen, 0, (size_t)t->gains);
        t->gain[k] = at[0] % t->gains;
        ok = !seen[t->gain[k]] && (k < t->gains || t->gain[k] == t->gain[k % t->gains])
            && t->gain[k] % t->row == t->gain[k % each] % t->row;
        seen[t->gain[k]] = 1;
        for (int64_t i = 0; ok && i < tokens; i++)
            ok = at[i * d] % t->gains == t->gain[k] && at[i * d] / t->row == first[i * d] / t->row;
    }
    mlo_scratch_free(m, seen);
    return ok;
}

/* Which channels of `from` the members are, the same for every token. map: which element of `from`
 * each element of the turned value is, NULL: itself. */
static int mlo_turned_columns(mlo_turned *t, const int32_t *map) {
    const int64_t d = t->r.at.d, tokens = t->r.at.t;
    for (int64_t k = 0; k < t->heads * d; k++) {
        const int32_t *at = t->r.member + k / d * t->r.repeats * tokens * d + k % d;
        for (int64_t i = 0; i < tokens; i++) {
            const int64_t e = map ? map[at[i * d]] : at[i * d];
            if (!i) t->column[k] = e % t->channels;
            if (e != i * t->channels + t->column[k]) return 0;
        }
    }
    return 1;
}

/* Follows the value that is turned to its projection. */
static int mlo_turned_source(const mlo_inside *in, mlo_turned *t) {
    mlo_chain c;
    mlo_array *map = NULL;
    const int64_t n = t->heads * t->r.at.d;
    mlo_node *maker = mlo_made_by(in, t->r.source);
    c.n = c.n_rounding = 0;
    t->norm = mlo_is_head_norm(in, maker, &t->gains) ? maker : NULL;
    t->from = t->norm ? mlo_chain_walk(in, t->norm->input[0], &c, NULL) : t->r.source;
    const mlo_form f = mlo_body_form(in, t->from), s = mlo_body_form(in, t->r.source);
    t->channels = mlo_last_dim(&f);
    t->row = mlo_last_dim(&s);
    t->column = (int64_t *)mlo_scratch(in->m, 2 * (size_t)n, sizeof *t->column);
    t->gain = t->column + n;
    if (!t->column || c.n_rounding || mlo_tokens_of(&f) != t->r.at.t) return 0;
    if (t->norm && !(map = mlo_index_map(in, t->from, &c))) return 0;
    const int ok = mlo_turned_columns(t, map ? (const int32_t *)map->data : NULL)
        && mlo_turned_rows(in->m, t);
    mlo_array_free(in->m, map);
    t->projected = mlo_projection_of(in, t->from, &t->p);
    t->whole = ok && t->channels == n && mlo_is_identity(t->column, n);
    return ok && (t->projected || t->whole);
}

/* 1: the operand is turned. 0: it is not, or not in a way that can be respelled: *why says which. */
static int mlo_turned_find(const mlo_inside *in, const char *name, int second, mlo_turned *t) {
    memset(t, 0, sizeof *t);
    if (!mlo_rotation_find(in, name, second, &t->r, &t->why)) return 0;
    t->heads = t->r.at.heads / t->r.repeats;
    if (mlo_turned_source(in, t)) return 1;
    t->why = "is rotary embedding of what are not heads of a projection's channels";
    return 0;
}

/* Queries and keys turned in the same pairs; where only one of them is turned, its pairs must be
 * neighbours already. */
static int mlo_turned_alike(const mlo_turned t[2], const int found[2]) {
    const int64_t d = t[found[0] ? 0 : 1].r.at.d;
    for (int i = 0; i < 2; i++)
        if (!found[i]) return mlo_is_identity(t[1 - i].r.pair, d);
    return d == t[1].r.at.d && !memcmp(t[0].r.pair, t[1].r.pair, (size_t)d * sizeof *t[0].r.pair);
}

/* Finds what is turned of the operands of a product. 0: nothing is; *why: what stands in its place,
 * NULL when there is nothing of the kind. */
static int mlo_turned_pair(
    const mlo_inside *in, const mlo_node *n, mlo_turned t[2], int found[2], const char **why) {
    for (int i = 0; i < 2; i++) found[i] = mlo_turned_find(in, n->input[i], i, &t[i]);
    *why = t[0].why ? t[0].why : t[1].why;
    if (*why || (!found[0] && !found[1])) return 0;
    if (mlo_turned_alike(t, found)) return 1;
    *why = "is turned in other pairs than what it is multiplied by";
    return 0;
}

/* What is no rotary embedding, though it looks like one, of a product's operands; NULL: nothing. */
static const char *mlo_why_not_turned(const mlo_inside *in, const mlo_node *n) {
    mlo_turned t[2];
    int found[2];
    const char *why = NULL;
    mlo_turned_pair(in, n, t, found, &why);
    for (int i = 0; i < 2; i++) mlo_turned_free(in->m, &t[i]);
    return why;
}

/* Copies of the nodes between a value and what is made of it, with another value in its place. */
typedef struct {
    const mlo_inside *in;
    mlo_expansion *x;
    const char *name[MLO_TURN_VALUES], *copy[MLO_TURN_VALUES];
    int n;
} mlo_copier;

static const char *mlo_copied_as(mlo_copier *c, const char *name, const char *copy) {
    if (c->n == MLO_TURN_VALUES) return "";
    c->name[c->n] = name;
    return c->copy[c->n++] = copy;
}

static const char *mlo_copy(mlo_copier *c, const char *name) {
    const char *in[MLO_TURN_PARTS], *result = "";
    mlo_node *n = mlo_made_by(c->in, name);
    for (int i = 0; i < c->n; i++)
        if (c->name[i] == name) return c->copy[i];
    if (!mlo_is_carried(c->in, name)) return name;
    if (!n || n->n_input > MLO_TURN_PARTS) return "";
    for (size_t k = 0; k < n->n_input; k++)
        in[k] = mlo_has_input(n, k) ? mlo_copy(c, n->input[k]) : "";
    c->x->n = n;
    const char *first = mlo_x_node(c->x, n->op, in, n->n_input);
    mlo_node *made = mlo_x_last(c->x);
    if (!made) return "";
    made->attr = n->attr;
    made->n_attr = n->n_attr;
    for (size_t k = 0; k < n->n_output; k++) {
        const char *y = mlo_copied_as(c, n->output[k], k ? mlo_x_output(c->x) : first);
        if (n->output[k] == name) result = y;
    }
    return result;
}

/* 1 for the first member of each pair of the first head, 0 for all other elements: what the model's
 * own nodes make of that are the cosines (in the first members) and the sines. NULL: it depends on
 * more than the channel. */
static const char *mlo_x_probe(mlo_expansion *x, const mlo_inside *in, const mlo_turned *t) {
    const mlo_form f = mlo_body_form(in, t->r.source);
    const int64_t n = t->row, d = t->r.at.d;
    int64_t *is = (int64_t *)mlo_scratch(x->m, (size_t)n, sizeof *is);
    int ok = is != NULL;
    for (int64_t c = 0; ok && c < n; c++) is[c] = -1;
    for (int64_t k = 0; ok && k < t->r.at.t * d; k++) {
        int64_t *at = &is[t->r.member[k] % n], one = k % 2 == 0;
        ok = *at < 0 || *at == one;
        *at = one;
    }
    for (int64_t c = 0; ok && c < n; c++) is[c] = is[c] > 0;
    const char *ones = ok ? mlo_x_list(x, is, (size_t)n) : "";
    mlo_scratch_free(x->m, is);
    if (!ok) return NULL;
    const char *shape = mlo_x_list(x, f.dims, (size_t)f.rank);
    ones = mlo_x_cast(x, ones, x->dtype);
    return MLO_X(x, "Expand", ones, shape);
}

/* The cosines (odd: sines) of all tokens and pairs, [1, T, D/2], out of what the model makes of the
 * probe. */
static const char *mlo_x_turns(mlo_expansion *x, const mlo_turned *t, const char *made, int odd) {
    const int64_t half = t->r.at.d / 2, n = t->r.at.t * half, shape[] = { 1, t->r.at.t, half };
    int64_t *at = (int64_t *)mlo_scratch(x->m, (size_t)n, sizeof *at);
    for (int64_t k = 0; at && k < n; k++)
        at[k] = mlo_head_place(&t->r.at, 0, k / half, t->r.pair[2 * (k % half) + odd]);
    const char *which = at ? mlo_x_list(x, at, (size_t)n) : "";
    mlo_scratch_free(x->m, at);
    return mlo_x_reshape(x, mlo_x_take(x, made, which, 0), shape, 3);
}

/* A norm's gain (or bias) in pairs: of a row's channels, or [heads, D]. */
static const char *mlo_x_gain(mlo_expansion *x, const mlo_turned *t, const char *name) {
    const int64_t all = -1, rows[] = { -1, t->row };
    const mlo_form f = mlo_form_of(mlo_value_of(x->g, name));
    const int64_t n = mlo_form_count(&f);
    int64_t *at = (int64_t *)mlo_scratch(x->m, (size_t)n, sizeof *at);
    for (int64_t k = 0; at && k < n; k++) at[k] = t->gain[k] % n;
    const char *order = at ? mlo_x_list(x, at, (size_t)n) : "";
    mlo_scratch_free(x->m, at);
    const char *y = mlo_x_reshape(x, name, &all, 1);
    y = mlo_x_take(x, y, order, 0);
    return n > t->row ? mlo_x_reshape(x, y, rows, 2) : y;
}

/* The projection's channels in pairs, and the norm of them: [1, T, heads D]. */
static const char *mlo_x_paired(mlo_expansion *x, const mlo_turned *t) {
    const int64_t d = t->r.at.d, n = t->heads * d;
    const int64_t flat[] = { 1, t->r.at.t, n }, split[] = { 1, t->r.at.t, t->heads, d };
    const char *y = t->from, *gain[2] = { "", "" };
    if (!t->whole) {
        const char *which = mlo_x_list(x, t->column, (size_t)n);
        const char *weight = mlo_x_take(x, t->p.product->input[1], which, t->p.transposed ? 0 : 1);
        const char *bias = t->p.bias ? mlo_x_take(x, t->p.bias, which, -1) : NULL;
        y = mlo_x_projection(x, &t->p, weight, bias);
    }
    if (!t->norm) return mlo_x_reshape(x, y, flat, 3);
    y = t->row == d ? mlo_x_reshape(x, y, split, 4) : mlo_x_reshape(x, y, flat, 3);
    for (size_t k = 0; k < 2; k++)
        if (mlo_has_input(t->norm, k + 1)) gain[k] = mlo_x_gain(x, t, t->norm->input[k + 1]);
    y = MLO_X(x, t->norm->op, y, gain[0], gain[1]);
    mlo_x_int(x, "axis", -1);
    mlo_x_float(x, "epsilon", mlo_float(t->norm, "epsilon", 1e-5f));
    return mlo_x_reshape(x, y, flat, 3);
}

/* From [1, T, heads D] to the operand's form. */
static const char *mlo_x_as_operand(
    mlo_expansion *x, const mlo_turned *t, const char *y, const mlo_form *form) {
    const int64_t tokens = t->r.at.t, d = t->r.at.d, g = t->r.repeats;
    const int64_t split[] = { 1, tokens, t->heads, d }, perm[] = { 0, 2, 1, 3 };
    const int64_t apart[] = { 1, t->heads, 1, tokens, d }, all[] = { 1, t->heads, g, tokens, d };
    const int64_t heads[] = { 1, t->heads * g, tokens, d }, swap[] = { 0, 1, 3, 2 };
    y = mlo_x_reshape(x, y, split, 4);
    y = mlo_x_transpose(x, y, perm, 4);
    if (g > 1) {
        y = mlo_x_reshape(x, y, apart, 5);
        const char *shape = mlo_x_list(x, all, 5);
        y = MLO_X(x, "Expand", y, shape);
        y = mlo_x_reshape(x, y, heads, 4);
    }
    if (t->r.at.order) y = mlo_x_transpose(x, y, swap, 4);
    return mlo_x_reshape(x, y, form->dims, (size_t)form->rank);
}

/* The operand by RotaryEmbedding, of pairs that are neighbours; the table is made by the model's own
 * nodes. NULL: its table is not to be had that way. */
static const char *mlo_x_turned(
    mlo_expansion *x, const mlo_inside *in, const mlo_turned *t, const char *operand) {
    mlo_node *self = x->n;
    mlo_copier c = { in, x, { NULL }, { NULL }, 0 };
    const mlo_form form = mlo_body_form(in, operand);
    const char *probe = mlo_x_probe(x, in, t);
    const int64_t all = -1;
    if (!probe) return NULL;
    mlo_copied_as(&c, t->r.source, probe);
    const char *made = mlo_copy(&c, operand);
    mlo_node *maker = mlo_made_by(in, t->from);
    x->n = maker ? maker : self; /* its name, its scope */
    made = mlo_x_reshape(x, made, &all, 1);
    const char *cos = mlo_x_turns(x, t, made, 0), *sin = mlo_x_turns(x, t, made, 1);
    const char *y = mlo_x_paired(x, t);
    y = MLO_X(x, "RotaryEmbedding", y, cos, sin);
    mlo_x_int(x, "interleaved", 1);
    mlo_x_int(x, "num_heads", t->heads);
    y = mlo_x_as_operand(x, t, y, &form);
    x->n = self;
    return y;
}

/* Queries and keys that are turned by their position. Both are put in pairs in the same order, so
 * their products stay what they are. */
static void mlo_respell_turned(mlo_respeller *r, mlo_expansion *x) {
    mlo_turned t[2];
    int found[2];
    const char *why, *operand[2];
    mlo_node *n = x->n;
    if (!mlo_is_inner_product(&r->in, n)) return;
    int ok = mlo_turned_pair(&r->in, n, t, found, &why);
    for (int i = 0; i < 2; i++) {
        operand[i] = n->input[i];
        if (ok && found[i]) operand[i] = mlo_x_turned(x, &r->in, &t[i], operand[i]);
        ok = ok && operand[i];
    }
    for (int i = 0; i < 2; i++) mlo_turned_free(r->in.m, &t[i]);
    if (ok)
        mlo_x_out(x, 0, MLO_X(x, "MatMul", operand[0], operand[1]));
    else
        x->n_made = 0;
}

/* ---- a projection that is cut into parts for functions and products ------- */

/* Do elementwise operators work on the value, rather than attention or rotations? A constant factor
 * may be attention's own, and a sign a rotation's. */
static int mlo_is_worked_on(const mlo_inside *in, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(in->body, name);
    for (size_t i = 0; v && i < v->n_use && depth < MLO_CHAIN; i++) {
        const mlo_node *n = v->use[i];
        double scale = 1;
        if (mlo_has_trait(n, MLO_RESHAPES)) {
            if (mlo_is_worked_on(in, n->output[0], depth + 1)) return 1;
            continue;
        }
        int works = mlo_is_elementwise(n) && !mlo_is(n, "Neg") && !mlo_has_trait(n, MLO_QUANTIZES)
            && !mlo_unscaled(in, n, &scale);
        for (size_t k = 0; works && k < n->n_input; k++)
            works = !mlo_has_input(n, k) || mlo_is_carried(in, n->input[k])
                || mlo_is_number(in, n->input[k]);
        if (works) return 1;
    }
    return 0;
}

/* Is the value, of each token, some channels of a projection? Which, goes to *column, which is
 * scratch. */
static int mlo_is_cut(
    const mlo_inside *in, const char *name, mlo_projection *p, mlo_heads *at, int64_t **column) {
    mlo_chain c;
    mlo_form f = mlo_body_form(in, name);
    const char *source = mlo_chain_walk(in, name, &c, NULL);
    mlo_form whole = mlo_body_form(in, source);
    *column = NULL;
    if (!mlo_form_known(&f) || f.rank < 1 || !mlo_form_known(&whole) || c.n_rounding) return 0;
    if (!mlo_projection_of(in, source, p)) return 0;
    const mlo_heads one = { mlo_tokens_of(&f), 1, mlo_last_dim(&f), 0 };
    *at = one;
    if (at->d < 1 || at->d > mlo_last_dim(&whole)) return 0;
    *column = (int64_t *)mlo_scratch(in->m, (size_t)at->d, sizeof **column);
    return *column && mlo_head_columns(in, source, &c, at, *column)
        && (mlo_last_dim(&whole) != at->d || !mlo_is_identity(*column, at->d));
}

/* Split, Slice, Gather of a projection: each part that is asked for is a projection. */
static void mlo_respell_parts(mlo_respeller *r, mlo_expansion *x) {
    mlo_node *self = x->n;
    int wanted = 0;
    if (!mlo_has_trait(self, MLO_MOVES) || !mlo_is_carried(&r->in, self->input[0])) return;
    for (size_t k = 0; k < self->n_output; k++)
        wanted |= mlo_is_worked_on(&r->in, self->output[k], 0);
    for (size_t k = 0; wanted && k < self->n_output; k++) {
        mlo_projection p;
        mlo_heads at;
        int64_t *column;
        const mlo_value *v = mlo_value_of(r->in.body, self->output[k]);
        if (!v || (!v->n_use && !v->is_output)) continue;
        if (!mlo_is_cut(&r->in, self->output[k], &p, &at, &column)) wanted = 0;
        mlo_scratch_free(r->in.m, column);
    }
    for (size_t k = 0; wanted && k < self->n_output; k++) {
        mlo_projection p;
        mlo_heads at;
        int64_t *column;
        mlo_form f = mlo_body_form(&r->in, self->output[k]);
        if (mlo_is_cut(&r->in, self->output[k], &p, &at, &column)) {
            x->n = p.sum ? p.sum : p.product; /* its name, its scope */
            const char *y = mlo_x_columns(x, &p, column, at.d);
            x->n = self;
            mlo_x_out(x, k, mlo_x_reshape(x, y, f.dims, (size_t)f.rank));
        }
        mlo_scratch_free(r->in.m, column);
    }
}

/* The sizes in front of the last two that two operands have together; 0: they do not fit, or are
 * those of both already. */
static int mlo_is_spread(const mlo_form *a, const mlo_form *b, mlo_form *to) {
    int same = a->rank == b->rank;
    *to = a->rank > b->rank ? *a : *b;
    if (!mlo_form_known(a) || !mlo_form_known(b) || a->rank < 2 || b->rank < 2) return 0;
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

/* ---- masks ---------------------------------------------------------------- */

/* Where(keeps, scores, -inf), or the other way round, is scores + Where(keeps, 0, -inf). */
static void mlo_respell_where(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    double fill;
    if (!mlo_is(x->n, "Where") || mlo_is_carried(in, x->n->input[0])) return;
    int kept = mlo_is_carried(in, x->n->input[1]) ? 1 : 2;
    if (!mlo_is_scores(in, x->n->input[kept]) || !mlo_scalar(in, x->n->input[3 - kept], &fill)
        || fill > -10000)
        return;
    const char *zero = mlo_x_number(x, 0), *other = x->n->input[3 - kept];
    const char *mask = MLO_X(
        x, "Where", x->n->input[0], kept == 1 ? zero : other, kept == 1 ? other : zero);
    mlo_x_out(x, 0, MLO_X(x, "Add", x->n->input[kept], mask));
}

/* max(scores + mask, lowest) is scores + mask: what is hidden stays so. */
static void mlo_respell_lowest(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *scores, *other;
    double lowest;
    if (!mlo_is_half(in, x->n, "Max", &scores, &other) || !mlo_is_scores(in, scores)) return;
    if (!mlo_scalar(in, other, &lowest) || lowest > -10000) return;
    mlo_x_out(x, 0, MLO_X(x, "Identity", scores));
}

/* scores - mask is scores + (-mask). */
static void mlo_respell_minus(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    if (!mlo_is(x->n, "Sub") || mlo_is_carried(in, x->n->input[1])
        || mlo_is_number(in, x->n->input[1]))
        return;
    if (!mlo_is_scores(in, x->n->input[0])) return;
    const char *mask = MLO_X(x, "Neg", x->n->input[1]);
    mlo_x_out(x, 0, MLO_X(x, "Add", x->n->input[0], mask));
}

/* (scores + mask) + mask is scores + (mask + mask). */
static void mlo_respell_masks(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *sum, *outer, *scores, *inner;
    if (!mlo_is_half(in, x->n, "Add", &sum, &outer)) return;
    if (!mlo_is_half(in, mlo_made_by(in, sum), "Add", &scores, &inner)) return;
    if (!mlo_is_used_once(in, sum) || !mlo_is_scores(in, scores)) return;
    const char *mask = MLO_X(x, "Add", inner, outer);
    mlo_x_out(x, 0, MLO_X(x, "Add", scores, mask));
}

/* ---- norms ---------------------------------------------------------------- */

/* A norm as it is found, from end to beginning: gamma factor (x - mean) / sqrt(mean((x - mean)^2) +
 * epsilon) + beta. */
typedef struct {
    const mlo_inside *in;
    mlo_form form; /* of its result */
    int64_t channels;
    const char *x, *gamma, *beta;
    double epsilon, factor;
    int centred;
    mlo_node *taken[24]; /* the nodes that it is made of */
    int n_taken;
} mlo_found_norm;

static void mlo_norm_take(mlo_found_norm *f, mlo_node *n) {
    if (n && f->n_taken < 24) f->taken[f->n_taken++] = n;
}

/* What is reduced over the channels, by this operator? */
static const char *mlo_norm_reduced(mlo_found_norm *f, const char *name, const char *op) {
    mlo_node *n = mlo_made_by(f->in, name);
    int64_t axis = 0;
    if (!mlo_is(n, op) || !mlo_int(n, "keepdims", 1)) return NULL;
    const mlo_attr *a = mlo_attr_of(n, "axes");
    mlo_value *v = mlo_has_input(n, 1) ? mlo_value_of(f->in->body, n->input[1]) : NULL;
    if (a && a->n_ints == 1)
        axis = a->ints[0];
    else if (!v || !v->tensor || mlo_tensor_ints(f->in->m, v->tensor, &axis, 1) != 1)
        return NULL;
    mlo_form x = mlo_body_form(f->in, n->input[0]);
    if ((axis != -1 && axis != x.rank - 1) || mlo_last_dim(&x) != f->channels) return NULL;
    mlo_norm_take(f, n);
    return n->input[0];
}

/* Notes what a value is the deviation from its mean of, or (when it is no such thing) itself, and
 * which it is. */
static int mlo_norm_input(mlo_found_norm *f, const char *name) {
    mlo_node *n = mlo_made_by(f->in, name);
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

/* Is it *by mean(d^2), d being the deviation? */
static int mlo_norm_square(mlo_found_norm *f, const char *name, double *by) {
    const char *from;
    mlo_node *n = mlo_made_by(f->in, name);
    double two = 0;
    for (*by = 1; (from = n ? mlo_unscaled(f->in, n, by) : NULL) != NULL;) {
        mlo_norm_take(f, n);
        n = mlo_made_by(f->in, name = from);
    }
    const double channels = (double)f->channels;
    if ((from = mlo_norm_reduced(f, name, "ReduceSumSquare")) != NULL) {
        *by *= channels;
        return mlo_norm_input(f, from);
    }
    if ((from = mlo_norm_reduced(f, name, "ReduceMean")) == NULL) {
        if ((from = mlo_norm_reduced(f, name, "ReduceSum")) == NULL) return 0;
        *by *= channels;
    }
    mlo_node *p = mlo_made_by(f->in, from);
    int pow = mlo_is(p, "Pow") && mlo_scalar(f->in, p->input[1], &two) && two >= 2 && two <= 2;
    int times = mlo_is(p, "Mul") && p->input[0] == p->input[1];
    if (!pow && !times) return 0;
    mlo_norm_take(f, p);
    return mlo_norm_input(f, p->input[0]);
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
    if (!mlo_norm_square(f, name, by) || !(*by > 0) || epsilon < 0) return 0;
    f->epsilon = epsilon / *by;
    return 1;
}

/* What a value is, when it is not smaller than a floor: that is no epsilon, but where it is as
 * small as this it decides of nothing but noise. */
#define MLO_NORM_FLOOR 1e-6
static const char *mlo_norm_unfloored(const mlo_inside *in, const mlo_node *n, double *least) {
    const int clip = mlo_is(n, "Clip") && n->n_input > 1 && !mlo_has_input(n, 2);
    if (!clip && !(mlo_is(n, "Max") && n->n_input == 2)) return NULL;
    if (mlo_scalar(in, n->input[1], least)) return n->input[0];
    return !clip && mlo_scalar(in, n->input[0], least) ? n->input[1] : NULL;
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
    if (!inverse && (from = mlo_norm_unfloored(f->in, n, &x)) != NULL) {
        if (!mlo_norm_root(f, from, 0, by) || x < 0 || x > MLO_NORM_FLOOR * *by) return 0;
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

/* A parameter of one number for each channel, or for each channel of each head: [H, D], with ones
 * in between. */
static int mlo_is_norm_parameter(const mlo_found_norm *f, const char *name) {
    const mlo_form p = mlo_body_form(f->in, name);
    int64_t parts = 1;
    if (mlo_is_per_channel(f->in, name, f->channels)) return 1;
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
    if (!mlo_is_norm_parameter(f, other) || (mlo_is_number(f->in, other) && f->channels > 1))
        return name;
    if (inside && !mlo_is_used_once(f->in, name)) return name;
    mlo_norm_take(f, n);
    *parameter = other;
    return rest;
}

/* Takes a constant factor off the end. */
static const char *mlo_norm_unscale(mlo_found_norm *f, const char *name) {
    mlo_node *n = mlo_made_by(f->in, name);
    const char *from = n && mlo_is_carried(f->in, name) ? mlo_unscaled(f->in, n, &f->factor) : NULL;
    if (!from) return name;
    mlo_norm_take(f, n);
    return from;
}

/* deviation / root, or deviation * (1 / root), in any order; a factor per channel, or a constant,
 * may hide in the deviation. */
static int mlo_norm_quotient(mlo_found_norm *f, const char *name) {
    mlo_node *n = mlo_made_by(f->in, name);
    int quotient = mlo_is(n, "Div");
    if (!quotient && !mlo_is(n, "Mul")) return 0;
    mlo_norm_take(f, n);
    for (int i = 0; i < (quotient ? 1 : 2); i++) {
        mlo_found_norm tried = *f;
        double by = 1;
        const char *top = mlo_norm_strip(&tried, n->input[i], "Mul", &tried.gamma, 1);
        if (!mlo_norm_root(&tried, n->input[1 - i], !quotient, &by)) continue;
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

/* A norm's gamma, with its factor; one number for each channel is a list. */
static const char *mlo_x_gamma(mlo_expansion *x, const mlo_found_norm *f) {
    const char *gamma = f->gamma ? f->gamma : mlo_x_ones(x, f->channels);
    if (!f->gamma || mlo_is_per_channel(f->in, f->gamma, f->channels))
        gamma = mlo_x_reshape(x, gamma, &f->channels, 1);
    if (fabs(f->factor - 1) <= 1e-7) return gamma;
    const char *factor = mlo_x_number(x, f->factor);
    return MLO_X(x, "Mul", gamma, factor);
}

/* From its end to the quotient: beta, then gamma and constants in any order. */
static int mlo_norm_find(mlo_found_norm *f, const char *out) {
    const char *rest = mlo_norm_strip(f, out, "Add", &f->beta, 0);
    for (int i = 0; i < 4; i++) {
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

/* LayerNorm or RMSNorm, written out. */
static void mlo_respell_norm(mlo_respeller *r, mlo_expansion *x) {
    const char *out = x->n->output[0];
    mlo_found_norm f = { &r->in, mlo_body_form(&r->in, out), 0, NULL, NULL, NULL, 0, 1, 0, { 0 },
        0 };
    static const char *const ends[] = { "Add", "Mul", "Div", NULL };
    f.channels = mlo_last_dim(&f.form);
    if (!mlo_is_carried(&r->in, out) || f.channels < 1 || !mlo_is_one_of(x->n, ends)) return;
    if (!mlo_norm_find(&f, out)) return;
    for (int i = 0; i < f.n_taken; i++)
        if (mlo_map_put(r->in.m, &r->inner, f.taken[i], x->n)) return;
    const char *gamma = mlo_x_gamma(x, &f), *beta = f.beta ? f.beta : "";
    if (*beta && mlo_is_per_channel(&r->in, beta, f.channels))
        beta = mlo_x_reshape(x, beta, &f.channels, 1);
    const char *y = MLO_X(
        x, f.centred ? "LayerNormalization" : "RMSNormalization", f.x, gamma, beta);
    mlo_x_int(x, "axis", -1);
    mlo_x_float(x, "epsilon", (float)f.epsilon);
    mlo_x_out(x, 0, y);
}

/* The RMS norm of what is left of a token without its mean is a layer norm. */
static void mlo_respell_deviation(mlo_respeller *r, mlo_expansion *x) {
    const mlo_node *n = x->n;
    mlo_found_norm f = { &r->in, mlo_body_form(&r->in, n->output[0]), 0, NULL, NULL, NULL, 0, 1, 0,
        { 0 }, 0 };
    const int64_t axis = mlo_int(n, "axis", -1);
    f.channels = mlo_last_dim(&f.form);
    if (!mlo_is(n, "RMSNormalization") || (axis != -1 && axis != f.form.rank - 1)) return;
    if (f.channels < 1 || !mlo_norm_input(&f, n->input[0]) || !f.centred) return;
    const char *y = MLO_X(x, "LayerNormalization", f.x, n->input[1]);
    mlo_x_int(x, "axis", -1);
    mlo_x_float(x, "epsilon", mlo_float(n, "epsilon", 1e-5f));
    mlo_x_out(x, 0, y);
}

/* ---- norms over each head ------------------------------------------------- */

/* A norm over heads of a token's channels: of which value, and which of its channels column[h D + j]
 * is j of head h; are its rows in the order of heads, and of tokens in each (or of tokens, and of
 * heads in each)? part: which row of gamma and beta are head h's, -1: there is one. */
typedef struct {
    const char *from;
    mlo_projection p;
    mlo_form form;
    int64_t t, heads, d, *column, *part[2];
    int by_heads, whole;
} mlo_head_norm;

static int64_t mlo_norm_row(const mlo_head_norm *v, int64_t t, int64_t h) {
    return v->by_heads ? h * v->t + t : t * v->heads + h;
}

/* Which channels the rows are, the same for every token. */
static int mlo_norm_columns(mlo_head_norm *v, const int32_t *map, int64_t channels) {
    const int64_t rows = v->t * v->heads, d = v->d;
    v->by_heads = 1;
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
    if (!v->whole || v->by_heads || v->form.dims[v->form.rank - 2] != v->heads
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
    mlo_chain c;
    memset(v, 0, sizeof *v);
    if (!mlo_is_norm(in, n) || !mlo_is_carried(in, n->input[0])) return 0;
    v->form = mlo_body_form(in, n->input[0]);
    v->from = mlo_chain_walk(in, n->input[0], &c, NULL);
    const mlo_form s = mlo_body_form(in, v->from);
    const int64_t channels = mlo_last_dim(&s);
    v->d = mlo_last_dim(&v->form);
    v->t = mlo_tokens_of(&s);
    if (!c.n || c.n_rounding || v->form.rank < 2 || !mlo_form_known(&v->form) || v->t < 1
        || v->d == channels || mlo_form_count(&v->form) % (v->t * v->d))
        return 0;
    v->heads = mlo_form_count(&v->form) / (v->t * v->d);
    const int64_t all = v->heads * v->d;
    v->column = (int64_t *)mlo_scratch(in->m, (size_t)(all + 2 * v->heads), sizeof *v->column);
    mlo_array *map = v->column && all <= channels ? mlo_index_map(in, v->from, &c) : NULL;
    int ok = map && mlo_array_count(map) == mlo_form_count(&v->form)
        && mlo_norm_columns(v, (const int32_t *)map->data, channels);
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

/* A norm over heads, wherever it stands between reshapes and transposes: behind what makes the
 * channels, between [1, T, H, D] and [1, T, H D]. */
static void mlo_respell_head_norm(mlo_respeller *r, mlo_expansion *x) {
    mlo_head_norm v;
    mlo_node *n = x->n;
    int ok = mlo_head_norm_of(&r->in, n, &v) && !mlo_is_placed(&r->in, n, &v);
    const int64_t split[] = { 1, v.t, v.heads, v.d }, flat[] = { 1, v.t, v.heads * v.d };
    const int64_t perm[] = { 0, 2, 1, 3 };
    const char *y = v.from, *part[2] = { "", "" };
    if (ok && !v.whole) {
        x->n = v.p.sum ? v.p.sum : v.p.product; /* its name, its scope */
        const char *which = mlo_x_list(x, v.column, (size_t)(v.heads * v.d));
        const char *weight = mlo_x_take(x, v.p.product->input[1], which, v.p.transposed ? 0 : 1);
        const char *bias = v.p.bias ? mlo_x_take(x, v.p.bias, which, -1) : NULL;
        y = mlo_x_projection(x, &v.p, weight, bias);
        x->n = n;
    }
    for (size_t k = 0; ok && k < 2; k++)
        if (mlo_has_input(n, k + 1))
            part[k] = mlo_x_head_parameter(x, n->input[k + 1], &v, v.part[k]);
    mlo_scratch_free(r->in.m, v.column);
    if (!ok) return;
    y = mlo_x_reshape(x, y, split, 4);
    y = MLO_X(x, n->op, y, part[0], part[1]);
    mlo_x_int(x, "axis", -1);
    mlo_x_float(x, "epsilon", mlo_float(n, "epsilon", 1e-5f));
    y = mlo_x_reshape(x, y, flat, 3);
    if (v.by_heads) {
        y = mlo_x_reshape(x, y, split, 4);
        y = mlo_x_transpose(x, y, perm, 4);
    }
    mlo_x_out(x, 0, mlo_x_reshape(x, y, v.form.dims, (size_t)v.form.rank));
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

/* ---- the rules, and the walk ---------------------------------------------- */

static void (*const mlo_respellings[])(mlo_respeller *r, mlo_expansion *x) = { mlo_respell_where,
    mlo_respell_lowest, mlo_respell_minus, mlo_respell_masks, mlo_respell_turned,
    mlo_respell_spread, mlo_respell_packed, mlo_respell_parts, mlo_respell_norm,
    mlo_respell_deviation, mlo_respell_head_norm, mlo_respell_factor };
enum { MLO_N_RESPELLINGS = sizeof mlo_respellings / sizeof *mlo_respellings };

/* One walk, the last node first, so that a norm is found from its end; what it took in is not
 * looked at again. *changed counts. */
static int mlo_respell_walk(mlo_respeller *r, size_t *changed) {
    mlo *m = r->in.m;
    mlo_graph *g = r->in.body;
    mlo_expansion *x = MLO_NEW_N(m, mlo_expansion, mlo_room(g->n_node));
    mlo_node **list = NULL;
    size_t n = 0;
    if (!x) return mlo_failed(m);
    for (size_t i = g->n_node; i-- && !m->error.code;) {
        const mlo_expansion fresh = { m, g, g->node[i], mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL,
            0 };
        x[i] = fresh;
        if (mlo_map_get(&r->inner, g->node[i])) continue;
        for (size_t k = 0; k < MLO_N_RESPELLINGS && !x[i].n_made; k++) mlo_respellings[k](r, &x[i]);
        *changed += x[i].n_made > 0;
    }
    for (size_t i = 0; i < g->n_node; i++) {
        if (!x[i].n_made && !MLO_PUSH(m, list, n, g->node[i])) return mlo_failed(m);
        for (size_t k = 0; k < x[i].n_made; k++)
            if (!MLO_PUSH(m, list, n, x[i].made[k])) return mlo_failed(m);
    }
    if (m->error.code) return mlo_failed(m);
    g->node = list;
    g->n_node = n;
    return 0;
}

/* Respells a loop's body until no rule finds anything. */
static int mlo_respell(mlo *m, mlo_scan *scan) {
    for (int i = 0; i < 8; i++) {
        mlo_respeller r;
        size_t changed = 0;
        memset(&r, 0, sizeof r);
        MLO_TRY(mlo_inside_of(m, scan, &r.in));
        mlo_respell_plain(&r.in);
        MLO_TRY(mlo_respell_walk(&r, &changed));
        if (!changed) return 0;
        MLO_TRY(mlo_drop_dead(m, scan->body));
        MLO_TRY(mlo_index(m, m->model->graph));
        MLO_TRY(mlo_infer(m));
    }
    return 0;
}
