/* respell_width: the rules of respell.c about heads that are of several values, or of other widths than each other:
 * latent attention (DeepSeek's, MiniCPM3's).
 *
 * in:  a product of queries and keys, of which one is made of several projections, a part of the channels each; a
 *     projection behind heads of values that are narrower, or wider, than those of queries and keys.
 * out: the same product of a Concat of the projections, out of which the parts are cut: the rules about rotary
 *     embedding, and about heads, make it a sum of projections, each of which has zeros for the others' channels.
 *     Narrower heads are as wide as the others: columns of zeros for values, queries and keys, and as many rows of
 *     zeros behind the values.
 *
 * invariant: a zero channel of queries and keys adds nothing to a score; one of values meets a row of zeros.
 * example: keys [K Wk | rope(x Wr) for all heads]: K [Wk | 0] + x [0 | Wr Wr ..], turned where the parts were.
 * cost: the products with zeros: of latent attention's keys, channels of the latent times those that turn, and so on.
 */

/* ---- channels of several projections -------------------------------------- */

/* The projections that an operand is made of by views, repeats, rotations and joins. */
typedef struct {
    const char *name[MLO_SIDES];
    int n;
} mlo_origins;

static int mlo_origin_put(mlo_origins *l, const char *name) {
    for (int i = 0; i < l->n; i++)
        if (l->name[i] == name) return 1;
    if (l->n == MLO_SIDES) return 0;
    l->name[l->n++] = name;
    return 1;
}

/* Two sides of a sum of the same projections are no sum of two. */
static int mlo_origins_same(const mlo_origins *a, mlo_origins *b) {
    for (int i = 0; i < a->n; i++)
        if (!mlo_origin_put(b, a->name[i])) return 0;
    return a->n == b->n;
}

/* 0: it is made in another way, or of too many. */
static int mlo_origins_of(const mlo_inside *in, const char *name, int depth, mlo_origins *l) {
    const mlo_node *n = mlo_made_by(in, name);
    const char *from, *factor;
    mlo_projection p;
    if (!n || depth > MLO_CHAIN) return 0;
    if (mlo_projection_of(in, name, &p)) return mlo_origin_put(l, name);
    if (mlo_is_of_sides(in, n)) return 0;
    if (mlo_is_mix(in, n)) {
        mlo_origins side[2] = { { { NULL }, 0 }, { { NULL }, 0 } };
        for (int i = 0; i < 2; i++)
            if (!mlo_origins_of(in, n->input[i], depth + 1, &side[i])) return 0;
        if (!mlo_origins_same(&side[0], &side[1])) return 0;
        for (int i = 0; i < side[0].n; i++)
            if (!mlo_origin_put(l, side[0].name[i])) return 0;
        return 1;
    }
    if (mlo_is_join(in, n)) {
        for (size_t k = 0; k < n->n_input; k++)
            if (!mlo_origins_of(in, n->input[k], depth + 1, l)) return 0;
        return 1;
    }
    if (mlo_is(n, "Neg") || mlo_is(n, "RotaryEmbedding") || mlo_is_repeat(in, n))
        return mlo_origins_of(in, n->input[0], depth + 1, l);
    return mlo_is_product_with(in, n, &from, &factor) && mlo_origins_of(in, from, depth + 1, l);
}

/* Several projections of as many tokens as the operand has? */
static int mlo_is_gathered(const mlo_inside *in, const char *name, int second, mlo_origins *l) {
    const mlo_heads at = mlo_operand_heads(in, name, second);
    l->n = 0;
    if (!at.heads || !mlo_origins_of(in, name, 0, l) || l->n < 2) return 0;
    for (int i = 0; i < l->n; i++) {
        const mlo_form f = mlo_body_form(in, l->name[i]);
        if (mlo_tokens_of(&f) != at.t) return 0;
    }
    return 1;
}

/* The operand, made by the same nodes of channels of one value, in which the projections stand side by side. */
static const char *mlo_x_gathered(
    mlo_expansion *x, const mlo_inside *in, const char *name, const mlo_origins *l) {
    mlo_copier c = { in, x, NULL, { NULL }, { NULL }, 0 };
    const char *part[MLO_SIDES];
    int64_t from = 0;
    for (int i = 0; i < l->n; i++) {
        const mlo_form f = mlo_body_form(in, l->name[i]);
        const int64_t flat[] = { 1, mlo_tokens_of(&f), mlo_last_dim(&f) };
        part[i] = f.rank == 3 ? l->name[i] : mlo_x_reshape(x, l->name[i], flat, 3);
    }
    const char *all = mlo_x_node(x, "Concat", part, (size_t)l->n);
    mlo_x_int(x, "axis", -1);
    for (int i = 0; i < l->n; i++) {
        const mlo_form f = mlo_body_form(in, l->name[i]);
        const int64_t n = mlo_last_dim(&f);
        int64_t *own = (int64_t *)mlo_scratch(x->m, (size_t)n, sizeof *own);
        for (int64_t k = 0; own && k < n; k++) own[k] = from++;
        const char *y = own ? mlo_x_take(x, all, mlo_x_list(x, own, (size_t)n), -1) : "";
        mlo_scratch_free(x->m, own);
        mlo_copied_as(&c, l->name[i], mlo_x_reshape(x, y, f.dims, (size_t)f.rank));
    }
    return mlo_copy(&c, name);
}

/* MatMul of queries and keys, of which one is of several projections. */
static void mlo_respell_gathered(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    mlo_node *self = x->n;
    int gathered = 0;
    if (!mlo_is_inner_product(in, self)) return;
    const char *operand[2] = { self->input[0], self->input[1] };
    for (int i = 0; i < 2; i++) {
        mlo_origins l;
        if (!mlo_is_gathered(in, operand[i], i, &l)) continue;
        operand[i] = mlo_x_gathered(x, in, operand[i], &l);
        x->n = self;
        gathered = 1;
    }
    if (gathered) mlo_x_out(x, 0, MLO_X(x, "MatMul", operand[0], operand[1]));
}

/* Fills which channel of what it is made of each channel of each head is, the same for every token. */
static int mlo_copied_columns(
    const mlo_turn_terms *t, const mlo_heads *at, int64_t n, int64_t *column) {
    for (int64_t k = 0; k < at->heads * at->d; k++)
        for (int64_t i = 0; i < at->t; i++) {
            const int64_t e = mlo_head_place(at, k / at->d, i, k % at->d), from = t->from[0][e];
            if (from < 0 || t->from[1][e] >= 0 || mlo_differs(t->by[0][e], 1)) return 0;
            if (!i) column[k] = from % n;
            if (from != i * n + column[k]) return 0;
        }
    return 1;
}

/* Is the operand joined out of channels of projections, nothing turned? v->column is scratch. */
static int mlo_copied_view(const mlo_inside *in, const char *name, int second, mlo_head_view *v) {
    v->column = NULL;
    v->at = mlo_operand_heads(in, name, second);
    if (!v->at.heads || !mlo_may_turn(in, name)) return 0;
    mlo_turner *w = (mlo_turner *)mlo_scratch(in->m, 1, sizeof *w);
    if (!w) return 0;
    memset(w, 0, sizeof *w);
    w->in = in;
    const mlo_turn_terms *t = mlo_terms_of(w, name);
    int ok = t && mlo_sides_of(in, w->source, &v->s);
    if (ok) v->column = (int64_t *)mlo_scratch(in->m, (size_t)t->n, sizeof *v->column);
    const mlo_form f = mlo_body_form(in, ok ? w->source : name);
    ok = ok && v->column && mlo_tokens_of(&f) == v->at.t
        && mlo_copied_columns(t, &v->at, mlo_last_dim(&f), v->column);
    mlo_turner_free(w);
    mlo_scratch_free(in->m, w);
    if (!ok) return 0;
    v->form = mlo_body_form(in, name);
    v->scale = 1;
    v->views.n = v->views.n_rounding = 0;
    v->shared = mlo_share_columns(&v->at, v->column);
    return 1;
}

/* MatMul of an operand whose channels are joined out of others' (keys of two values that do not turn). */
static void mlo_respell_copied(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    int copied = 0;
    if (!mlo_is_inner_product(in, x->n)) return;
    const char *operand[2] = { x->n->input[0], x->n->input[1] };
    for (int i = 0; i < 2; i++) {
        mlo_head_view v;
        const int is = mlo_copied_view(in, operand[i], i, &v);
        if (is) operand[i] = mlo_x_head_view(x, &v);
        mlo_scratch_free(in->m, v.column);
        copied |= is;
    }
    if (copied) mlo_x_out(x, 0, MLO_X(x, "MatMul", operand[0], operand[1]));
}

/* ---- what is put in its place part by part -------------------------------- */

/* Of each element of a value that ScatterNDs fill, one behind the other, which element of what they put there it is,
 * counted over all of them; and along one axis, of which of them each slice is, and of which of its slices. */
typedef struct {
    mlo_node *node[MLO_MOVE_INPUTS]; /* the last one first */
    const char *put[MLO_MOVE_INPUTS];
    int64_t base[MLO_MOVE_INPUTS + 1];
    int64_t slices[MLO_MOVE_INPUTS]; /* along the axis, of what is put */
    int n;
    mlo_form form;
    mlo_array *map;
    int *by;
    int64_t *from;
} mlo_scattered;

/* A ScatterND by places that are the same in all iterations, of values that lie as those they fill. */
static int mlo_is_scatter(const mlo_inside *in, const mlo_node *n, const mlo_form *all) {
    if (!mlo_is(n, "ScatterND") || !mlo_string_is(n, "reduction", "none", 1)) return 0;
    const mlo_form f = mlo_body_form(in, n->output[0]), put = mlo_body_form(in, n->input[2]);
    return mlo_form_same(&f, all) && mlo_form_known(&put) && put.rank == f.rank
        && mlo_is_carried(in, n->input[2]) && mlo_is_parameter(in->scan, in->body, n->input[1], 0)
        && !mlo_may_vary(in, n->input[1]);
}

/* What one more ScatterND makes of the places. NULL: places do not fit, or memory is short. */
static mlo_array *mlo_scattered_on(const mlo_inside *in, mlo_scattered *s, int k, mlo_array *map) {
    const mlo_form put = mlo_body_form(in, s->put[k]);
    mlo_array *at = mlo_scan_value(in->m, in->scan, s->node[k]->input[1], 0);
    mlo_array *own = at ? mlo_counted(in->m, &put, s->base[k]) : NULL;
    const mlo_array *args[MLO_MOVE_INPUTS] = { map, at, own };
    mlo_array *y = own ? mlo_made_of(in->m, s->node[k], s->node[k]->output[0], args) : NULL;
    mlo_array_free(in->m, at);
    mlo_array_free(in->m, own);
    return y;
}

/* 0: some element is nothing that the body put there. */
static int mlo_scattered_map(const mlo_inside *in, mlo_node *n, mlo_scattered *s) {
    for (; mlo_is_scatter(in, n, &s->form); n = mlo_made_by(in, n->input[0])) {
        const mlo_form put = mlo_body_form(in, n->input[2]);
        if (s->n == MLO_MOVE_INPUTS) break;
        s->base[s->n + 1] = s->base[s->n] + mlo_form_count(&put);
        s->node[s->n] = n;
        s->put[s->n++] = n->input[2];
    }
    if (!s->n || s->base[s->n] > INT32_MAX / 2) return 0;
    s->map = mlo_array_new(in->m, MLO_INT32, s->form.rank, s->form.dims);
    for (int64_t e = 0; s->map && e < mlo_array_count(s->map); e++)
        ((int32_t *)s->map->data)[e] = -1;
    for (int k = s->n; s->map && k--;) {
        mlo_array *next = mlo_scattered_on(in, s, k, s->map);
        mlo_array_free(in->m, s->map);
        s->map = next;
    }
    for (int64_t e = 0; s->map && e < mlo_array_count(s->map); e++)
        if (((const int32_t *)s->map->data)[e] < 0) return 0;
    return s->map != NULL;
}

/* Is the value, along an axis, whole slices of what was put? Then which, is known. */
static int mlo_scattered_along(const mlo_inside *in, mlo_scattered *s, int axis) {
    const int32_t *map = (const int32_t *)s->map->data;
    const int64_t rows = s->form.dims[axis], all = mlo_array_count(s->map);
    int64_t inner = 1;
    for (int i = axis + 1; i < s->form.rank; i++) inner *= s->form.dims[i];
    for (int k = 0; k < s->n; k++) {
        const mlo_form put = mlo_body_form(in, s->put[k]);
        s->slices[k] = put.dims[axis];
        for (int i = 0; i < put.rank; i++)
            if (i != axis && put.dims[i] != s->form.dims[i]) return 0;
    }
    for (int64_t i = 0; i < rows; i++) {
        s->by[i] = 0;
        while (map[i * inner] >= s->base[s->by[i] + 1]) s->by[i]++;
        s->from[i] = (map[i * inner] - s->base[s->by[i]]) / inner;
    }
    for (int64_t e = 0; e < all; e++) {
        const int64_t i = e / inner % rows, k = s->by[i];
        const int64_t at = (e / inner / rows * s->slices[k] + s->from[i]) * inner + e % inner;
        if (map[e] != s->base[k] + at) return 0;
    }
    return 1;
}

/* The slices, side by side: at .. end - 1 of them are of one value, in order. */
static void mlo_x_scattered(mlo_expansion *x, const mlo_scattered *s, int axis) {
    const char *part[MLO_MOVE_INPUTS];
    const int64_t rows = s->form.dims[axis];
    size_t runs = 0;
    for (int64_t at = 0, end; at < rows; at = end) {
        for (end = at + 1; end < rows && s->by[end] == s->by[at]; end++)
            if (s->from[end] != s->from[end - 1] + 1) break;
        if (runs == MLO_MOVE_INPUTS) {
            x->n_made = 0;
            return;
        }
        const char *put = s->put[s->by[at]];
        if (end - at < s->slices[s->by[at]])
            put = mlo_x_take(x, put, mlo_x_list(x, s->from + at, (size_t)(end - at)), axis);
        part[runs++] = put;
    }
    const char *y = runs > 1 ? mlo_x_node(x, "Concat", part, runs) : MLO_X(x, "Identity", part[0]);
    if (runs > 1) mlo_x_int(x, "axis", axis);
    mlo_x_out(x, 0, y);
}

/* y[.., :n] = a, y[.., n:] = b is Concat(a, b), whatever y was (keys that are filled in parts). */
static void mlo_respell_scattered(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    mlo_scattered s;
    memset(&s, 0, sizeof s);
    if (!mlo_is(x->n, "ScatterND") || !mlo_is_carried(in, x->n->output[0])) return;
    s.form = mlo_body_form(in, x->n->output[0]);
    if (mlo_scattered_map(in, x->n, &s)) {
        int64_t most = 1;
        for (int i = 0; i < s.form.rank; i++) most = s.form.dims[i] > most ? s.form.dims[i] : most;
        s.by = MLO_NEW_N(x->m, int, (size_t)most);
        s.from = MLO_NEW_N(x->m, int64_t, (size_t)most);
        int axis = s.by && s.from ? 0 : s.form.rank;
        while (axis < s.form.rank && !mlo_scattered_along(in, &s, axis)) axis++;
        if (axis < s.form.rank) mlo_x_scattered(x, &s, axis);
    }
    mlo_array_free(x->m, s.map);
}

/* ---- heads of two widths -------------------------------------------------- */

/* softmax(q k^T ..) v in front of a projection, v of other channels a head than q and k. */
typedef struct {
    mlo_projection p;
    mlo_node *mix;
    mlo_node *scores;
    mlo_head_view q;
    mlo_head_view k;
    mlo_head_view v;
    int64_t *order; /* for each channel of the heads, head by head, where it is joined */
    mlo_heads joined;
    int64_t d; /* channels a head, of the wider */
} mlo_widths;

static void mlo_widths_free(mlo *m, mlo_widths *w) {
    mlo_scratch_free(m, w->q.column);
    mlo_scratch_free(m, w->k.column);
    mlo_scratch_free(m, w->v.column);
    w->q.column = w->k.column = w->v.column = NULL;
}

/* The product that makes what a softmax is over; NULL: none. */
static mlo_node *mlo_scores_behind(const mlo_inside *in, const char *probabilities) {
    mlo_chain c;
    mlo_node *n = mlo_made_by(in, mlo_chain_walk(in, probabilities, &c, NULL));
    if (mlo_is(n, "Where")) n = mlo_made_by(in, mlo_chain_walk(in, n->input[2], &c, NULL));
    if (!mlo_is(n, "Softmax") || !mlo_is_scores(in, n->input[0])) return NULL;
    n = mlo_made_by(in, n->input[0]);
    while (n && !mlo_is_inner_product(in, n))
        n = mlo_made_by(in, n->input[!mlo_is_carried(in, n->input[0])]);
    return n;
}

/* Are queries and keys, where they are the narrower, heads that can be made wider? */
static int mlo_widths_of_scores(const mlo_inside *in, mlo_widths *w) {
    int plain;
    return mlo_head_view_of(in, w->scores->input[0], 0, &w->q, &plain)
        && mlo_head_view_of(in, w->scores->input[1], 1, &w->k, &plain) && w->k.at.order
        && w->q.at.d == w->k.at.d;
}

static int mlo_widths_of(const mlo_inside *in, const mlo_node *n, mlo_widths *w) {
    mlo_chain c;
    mlo_rounding given;
    int plain;
    memset(w, 0, sizeof *w);
    if (n->n_output != 1 || !mlo_projection_of(in, n->output[0], &w->p)) return 0;
    const mlo_form f = mlo_body_form(in, w->p.product->input[0]);
    const char *source = mlo_chain_walk(in, w->p.product->input[0], &c, NULL);
    w->mix = mlo_made_by(in, source);
    const mlo_form o = mlo_body_form(in, source);
    if (!c.n || c.n_rounding || !mlo_is_inner_product(in, w->mix) || o.rank < 3
        || mlo_rounding_of(in->m, in->scan, in->body, w->p.product->input[1], &given))
        return 0;
    w->scores = mlo_scores_behind(in, w->mix->input[0]);
    const int64_t t = o.dims[o.rank - 2], own = mlo_last_dim(&o), all = mlo_last_dim(&f);
    if (!w->scores || own < 1 || all % own || mlo_form_count(&o) != t * all) return 0;
    const mlo_form q = mlo_body_form(in, w->scores->input[0]);
    const mlo_heads joined = { t, all / own, own, 0 };
    w->joined = joined;
    w->d = own > mlo_last_dim(&q) ? own : mlo_last_dim(&q);
    if (mlo_last_dim(&q) == own || mlo_tokens_of(&f) != t) return 0;
    if (!mlo_head_view_of(in, w->mix->input[1], 0, &w->v, &plain) || w->v.at.order
        || w->v.at.d != own || w->v.at.heads != joined.heads)
        return 0;
    if (w->d == own && !mlo_widths_of_scores(in, w)) return 0;
    int64_t *row = MLO_NEW_N(in->m, int64_t, (size_t)all);
    w->order = MLO_NEW_N(in->m, int64_t, (size_t)all);
    return row && w->order && mlo_inside_rows(in, source, &c, &joined, row, w->order);
}

/* The heads, each with channels of zeros up to d. */
static const char *mlo_x_widened(mlo_expansion *x, const mlo_head_view *from, int64_t d) {
    const int64_t heads = from->at.heads / from->shared, own = from->at.d, n = heads * d;
    mlo_head_view v = *from;
    v.column = (int64_t *)mlo_scratch(x->m, (size_t)n, sizeof *v.column);
    for (int64_t i = 0; v.column && i < n; i++)
        v.column[i] = i % d < own ? from->column[i / d * own + i % d] : -1;
    v.at.d = d;
    v.form.dims[v.form.rank - (v.at.order ? 2 : 1)] = d;
    const char *y = v.column ? mlo_x_head_view(x, &v) : "";
    mlo_scratch_free(x->m, v.column);
    return y;
}

/* The probabilities, of wider queries and keys. */
static const char *mlo_x_probabilities(
    mlo_expansion *x, const mlo_inside *in, const mlo_widths *w) {
    if (!w->q.column) return w->mix->input[0];
    mlo_copier c = { in, x, NULL, { NULL }, { NULL }, 0 };
    mlo_node *self = x->n;
    const char *q = mlo_x_widened(x, &w->q, w->d), *k = mlo_x_widened(x, &w->k, w->d);
    x->n = w->scores;
    mlo_copied_as(&c, w->scores->output[0], MLO_X(x, "MatMul", q, k));
    const char *y = mlo_copy(&c, w->mix->input[0]);
    x->n = self;
    return y;
}

/* The projection's weight, with a row of zeros for each channel that heads did not have. */
static const char *mlo_x_rows_of(mlo_expansion *x, const mlo_widths *w) {
    const int64_t own = w->joined.d, n = w->joined.heads * w->d;
    int64_t *row = (int64_t *)mlo_scratch(x->m, 2 * (size_t)n, sizeof *row);
    for (int64_t i = 0; row && i < n; i++) {
        row[n + i] = i % w->d < own;
        row[i] = row[n + i] ? w->order[i / w->d * own + i % w->d] : 0;
    }
    const char *which = row ? mlo_x_list(x, row, (size_t)n) : "";
    const char *is = row ? mlo_x_cast(x, mlo_x_list(x, row + n, (size_t)n), x->dtype) : "";
    mlo_scratch_free(x->m, row);
    return mlo_x_own(x, w->p.product->input[1], which, is, n, w->p.transposed ? 1 : 0, 2);
}

/* join(softmax(q k^T) v) W, v of other channels a head than q and k, is that of heads of one width. */
static void mlo_respell_widths(mlo_respeller *r, mlo_expansion *x) {
    static const int64_t perm[] = { 0, 2, 1, 3 };
    const mlo_inside *in = &r->in;
    mlo_node *self = x->n;
    mlo_widths w;
    int ok = mlo_widths_of(in, self, &w);
    if (ok && w.p.sum && mlo_map_put(x->m, &r->inner, w.p.product, self)) ok = 0;
    if (ok) {
        mlo_form f = mlo_body_form(in, w.p.product->input[0]);
        const int64_t split[] = { 1, w.joined.heads, w.joined.t, w.d };
        const char *probabilities = mlo_x_probabilities(x, in, &w);
        const char *v = w.joined.d < w.d ? mlo_x_widened(x, &w.v, w.d) : w.mix->input[1];
        x->n = w.mix;
        const char *y = MLO_X(x, "MatMul", probabilities, v);
        x->n = self;
        y = mlo_x_transpose(x, mlo_x_reshape(x, y, split, 4), perm, 4);
        f.dims[f.rank - 1] = w.joined.heads * w.d;
        y = mlo_x_reshape(x, y, f.dims, (size_t)f.rank);
        mlo_x_out(x, 0, mlo_x_projected(x, &w.p, y, mlo_x_rows_of(x, &w), w.p.bias));
    }
    mlo_widths_free(in->m, &w);
}
