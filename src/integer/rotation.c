/* rotation: proves that an operand of a product of activations is a value whose channels were
 * turned in pairs, by angles that are the token's alone: rotary position embedding.
 *
 * in:  an operand of a product in a loop's body: [.., T, D], or (the second) [.., D, T].
 * out: the value that is turned, and which of its elements each pair of each head is made of.
 *
 * However exporters write it, rotary embedding is made of views, sums, and products with numbers.
 * So each element of the operand is a sum of at most two elements of one value, times factors:
 *     y[e] = f1 x[i1] + f2 x[i2]
 * The elements come from following views by evaluating them on 0, 1, 2, .. (layout.c), the factors
 * from evaluating the model's own tables. Then y is held against a rotation of pairs,
 *     y[i] = c x[i] - s x[j],   y[j] = s x[i] + c x[j]
 * c and s being functions of token and pair, the same for all heads. They need not lie on a circle:
 * a factor of the queries, or of the tables, may be in them.
 *
 * invariant: whatever passes is a rotation of pairs in every iteration (factors may differ by
 *     mlo_turn_loose of the largest, far below a step of the kernel's table). Names and the order
 *     of operators play no part.
 * example: x cos + Concat(-x2, x1) sin over heads of 8 channels: the pairs are 0 4, 1 5, 2 6, 3 7.
 * cost: a few walks over the operand's elements for each operator, per iteration whose tables
 *     differ.
 */
static const double mlo_turn_loose = 1e-6;
enum { MLO_TURN_VALUES = 64, MLO_TURN_PARTS = MLO_MOVE_INPUTS };

/* What the elements of a value are made of: by[k][e] times element from[k][e] of the source; -1:
 * nothing. */
typedef struct {
    const char *name;
    mlo_form form;
    int64_t n;
    int32_t *from[2];
    double *by[2];
} mlo_turn_terms;

typedef struct {
    const mlo_inside *in;
    int64_t iteration;
    const char *source;
    mlo_turn_terms value[MLO_TURN_VALUES];
    int n_value;
    int depth; /* nodes between the operand and where it is looked at */
    int varies; /* 1: a factor may differ from iteration to iteration */
    const mlo_node *passed; /* a norm behind the rotation, as if it were not there; NULL: none */
    const char *why; /* what the operand is that is no rotation, in a person's words */
} mlo_turner;

/* ---- elements ------------------------------------------------------------- */

static const mlo_turn_terms *mlo_terms_of(mlo_turner *w, const char *name);

static const char mlo_turned_by_input[] =
    "is turned by angles that come from an input of the model, not from constants; bind its "
    "dimensions, hold it (--hold FILE.npz with an array of its name), or export without "
    "position_ids";

static int mlo_no_rotation(mlo_turner *w, const char *why) {
    if (!w->why) w->why = why;
    return 0;
}
static const mlo_turn_terms *mlo_no_terms(mlo_turner *w, const char *why) {
    mlo_no_rotation(w, why);
    return NULL;
}

/* Room for the terms of a value; none of its elements is made of anything yet. */
static mlo_turn_terms *mlo_terms_new(mlo_turner *w, const char *name) {
    mlo *m = w->in->m;
    const mlo_form f = mlo_body_form(w->in, name);
    const int64_t n = mlo_form_known(&f) ? mlo_form_count(&f) : -1;
    if (w->n_value == MLO_TURN_VALUES || n < 1 || n > INT32_MAX / 2) return NULL;
    mlo_turn_terms *t = &w->value[w->n_value];
    memset(t, 0, sizeof *t);
    t->from[0] = (int32_t *)mlo_scratch(m, 2 * (size_t)n, sizeof *t->from[0]);
    t->by[0] = (double *)mlo_scratch(m, 2 * (size_t)n, sizeof *t->by[0]);
    if (!t->from[0] || !t->by[0]) {
        mlo_scratch_free(m, t->from[0]);
        mlo_scratch_free(m, t->by[0]);
        return NULL;
    }
    w->n_value++;
    t->name = name;
    t->form = f;
    t->n = n;
    t->from[1] = t->from[0] + n;
    t->by[1] = t->by[0] + n;
    for (int64_t e = 0; e < 2 * n; e++) {
        t->from[0][e] = -1;
        t->by[0][e] = 0;
    }
    return t;
}

static void mlo_turner_free(mlo_turner *w) {
    for (int i = 0; i < w->n_value; i++) {
        mlo_scratch_free(w->in->m, w->value[i].from[0]);
        mlo_scratch_free(w->in->m, w->value[i].by[0]);
    }
    w->n_value = 0;
}

/* The value that everything is made of. */
static const mlo_turn_terms *mlo_terms_source(mlo_turner *w, const char *name) {
    if (w->source && w->source != name) return mlo_no_terms(w, "is a sum of two values");
    w->source = name;
    mlo_turn_terms *t = mlo_terms_new(w, name);
    for (int64_t e = 0; t && e < t->n; e++) {
        t->from[0][e] = (int32_t)e;
        t->by[0][e] = 1;
    }
    return t;
}

/* Element `to` of t is element `from` of x, times a factor. */
static void mlo_terms_copy(
    mlo_turn_terms *t, int64_t to, const mlo_turn_terms *x, int64_t from, double by) {
    for (int k = 0; k < 2; k++) {
        t->from[k][to] = x->from[k][from];
        t->by[k][to] = x->by[k][from] * by;
    }
}

/* Which element of a value of form `own`, broadcast to `f`, is at place e? */
static int64_t mlo_spread_at(const mlo_form *own, const mlo_form *f, int64_t e) {
    int64_t at = 0, step = 1;
    for (int d = 1; d <= own->rank; d++) {
        const int64_t size = f->dims[f->rank - d], mine = own->dims[own->rank - d];
        if (mine > 1) at += e % size * step;
        step *= mine;
        e /= size;
    }
    return at;
}

/* The numbers of `base`, `base` + 1, .. in a value's form. */
static mlo_array *mlo_counted(mlo *m, const mlo_form *f, int64_t base) {
    mlo_array *a = mlo_array_new(m, MLO_INT32, f->rank, f->dims);
    for (int64_t e = 0; a && e < mlo_array_count(a); e++)
        ((int32_t *)a->data)[e] = (int32_t)(base + e);
    return a;
}

/* An operator that moves elements, keeps some, or repeats them. */
static const mlo_turn_terms *mlo_terms_moved(mlo_turner *w, mlo_node *n, const char *name) {
    const mlo_turn_terms *x = mlo_terms_of(w, n->input[0]);
    mlo_turn_terms *t = x ? mlo_terms_new(w, name) : NULL;
    if (!t) return NULL;
    if (mlo_has_trait(n, MLO_RESHAPES)) {
        for (int64_t e = 0; t->n == x->n && e < t->n; e++) mlo_terms_copy(t, e, x, e, 1);
        return t->n == x->n ? t : NULL;
    }
    mlo *m = w->in->m;
    mlo_array *from = mlo_counted(m, &x->form, 0);
    mlo_array *map = from ? mlo_moved(w->in, n, name, from) : NULL;
    const int ok = map && mlo_array_count(map) == t->n;
    for (int64_t e = 0; ok && e < t->n; e++)
        mlo_terms_copy(t, e, x, ((const int32_t *)map->data)[e], 1);
    mlo_array_free(m, from);
    mlo_array_free(m, map);
    return ok ? t : NULL;
}

static const mlo_turn_terms *mlo_terms_joined(mlo_turner *w, mlo_node *n, const char *name) {
    mlo *m = w->in->m;
    const mlo_turn_terms *part[MLO_TURN_PARTS];
    mlo_array *from[MLO_TURN_PARTS] = { 0 };
    const mlo_array *args[MLO_TURN_PARTS] = { 0 };
    int64_t base[MLO_TURN_PARTS + 1] = { 0 };
    if (n->n_input > MLO_TURN_PARTS) return NULL;
    for (size_t k = 0; k < n->n_input; k++) {
        if (!(part[k] = mlo_terms_of(w, n->input[k]))) return NULL;
        base[k + 1] = base[k] + part[k]->n;
    }
    mlo_turn_terms *t = mlo_terms_new(w, name);
    int ok = t != NULL;
    for (size_t k = 0; ok && k < n->n_input; k++)
        ok = (args[k] = from[k] = mlo_counted(m, &part[k]->form, base[k])) != NULL;
    mlo_array *map = ok ? mlo_made_of(m, n, name, args) : NULL;
    for (int64_t e = 0; map && e < t->n; e++) {
        const int64_t at = ((const int32_t *)map->data)[e];
        size_t k = 0;
        while (at >= base[k + 1]) k++;
        mlo_terms_copy(t, e, part[k], at - base[k], 1);
    }
    for (size_t k = 0; k < n->n_input; k++) mlo_array_free(m, from[k]);
    ok = map != NULL;
    mlo_array_free(m, map);
    return ok ? t : NULL;
}

/* Does a parameter of the body differ from iteration to iteration, as far as one can see? */
static int mlo_may_vary(const mlo_inside *in, const char *name) {
    const mlo_value *v = mlo_value_of(in->body, name);
    if (!v || v->graph != in->body || v->tensor) return 0;
    if (!v->producer) return 1;
    for (size_t k = 0; k < v->producer->n_input; k++)
        if (mlo_may_vary(in, v->producer->input[k])) return 1;
    return 0;
}

/* x times (or divided by) a parameter. */
static const mlo_turn_terms *mlo_terms_scaled(
    mlo_turner *w, const char *name, const char *operand, const char *factor, int divides) {
    mlo *m = w->in->m;
    const mlo_turn_terms *x = mlo_terms_of(w, operand);
    if (!x) return NULL;
    if (!mlo_is_parameter(w->in->scan, w->in->body, factor, 0))
        return mlo_no_terms(w, mlo_turned_by_input);
    mlo_array *a = mlo_scan_value(m, w->in->scan, factor, w->iteration);
    mlo_turn_terms *t = a ? mlo_terms_new(w, name) : NULL;
    const mlo_form f = a ? mlo_form_of_array(a) : mlo_form_of(NULL);
    w->varies |= mlo_may_vary(w->in, factor);
    for (int64_t e = 0; t && e < t->n; e++) {
        const double by = mlo_number_at(a, mlo_spread_at(&f, &t->form, e));
        mlo_terms_copy(t, e, x, mlo_spread_at(&x->form, &t->form, e), divides ? 1 / by : by);
    }
    mlo_array_free(m, a);
    return t;
}

/* Adds element `from` of x, times a sign, to element e. 0: that would be a third term. */
static int mlo_terms_add(
    mlo_turn_terms *t, int64_t e, const mlo_turn_terms *x, int64_t from, double sign) {
    for (int k = 0; k < 2; k++) {
        const int32_t i = x->from[k][from];
        if (i < 0) continue;
        const int at = t->from[0][e] < 0 || t->from[0][e] == i ? 0 : 1;
        if (at && t->from[1][e] >= 0 && t->from[1][e] != i) return 0;
        t->from[at][e] = i;
        t->by[at][e] += sign * x->by[k][from];
    }
    return 1;
}

static const mlo_turn_terms *mlo_terms_sum(mlo_turner *w, const mlo_node *n, const char *name) {
    const mlo_turn_terms *a = mlo_terms_of(w, n->input[0]);
    const mlo_turn_terms *b = a ? mlo_terms_of(w, n->input[1]) : NULL;
    mlo_turn_terms *t = b ? mlo_terms_new(w, name) : NULL;
    const double sign = mlo_is(n, "Sub") ? -1 : 1;
    for (int64_t e = 0; t && e < t->n; e++)
        if (!mlo_terms_add(t, e, a, mlo_spread_at(&a->form, &t->form, e), 1)
            || !mlo_terms_add(t, e, b, mlo_spread_at(&b->form, &t->form, e), sign))
            return mlo_no_terms(w, "mixes more than two channels");
    return t;
}

static const mlo_turn_terms *mlo_terms_negated(mlo_turner *w, const mlo_node *n, const char *name) {
    const mlo_turn_terms *x = mlo_terms_of(w, n->input[0]);
    mlo_turn_terms *t = x ? mlo_terms_new(w, name) : NULL;
    for (int64_t e = 0; t && e < t->n; e++) mlo_terms_copy(t, e, x, e, -1);
    return t;
}

/* The operator RotaryEmbedding, whose tables (and positions) are constants. */
static const mlo_turn_terms *mlo_terms_rotary(mlo_turner *w, mlo_node *n, const char *name) {
    mlo *m = w->in->m;
    mlo_array *a[3] = { NULL, NULL, NULL };
    const mlo_shapes shapes = { .m = m, .node = n };
    mlo_rotation r;
    const mlo_turn_terms *x = mlo_terms_of(w, n->input[0]);
    mlo_turn_terms *t = x ? mlo_terms_new(w, name) : NULL;
    int ok = t && mlo_rotation_of(&shapes, &t->form, &r) > 0;
    for (size_t k = 1; ok && k < n->n_input && k < 4; k++) {
        if (!mlo_has_input(n, k)) continue;
        if (!mlo_is_parameter(w->in->scan, w->in->body, n->input[k], 0))
            ok = mlo_no_rotation(w, mlo_turned_by_input);
        else
            w->varies |= mlo_may_vary(w->in, n->input[k]);
        ok = ok && (a[k - 1] = mlo_scan_value(m, w->in->scan, n->input[k], w->iteration)) != NULL;
    }
    for (int64_t e = 0; ok && e < t->n; e++) {
        const int64_t row = e / r.width, j = e % r.width, half = r.turned / 2;
        const int64_t i = r.flat ? row / r.heads
                                 : row / r.tokens / r.heads * r.tokens + row % r.tokens;
        const int64_t at = a[2] ? (int64_t)mlo_number_at(a[2], i) : i;
        const int64_t k = r.interleaved ? j / 2 : half ? j % half : 0;
        const int second = r.interleaved ? j % 2 == 1 : j >= half;
        const int64_t other = e + (second ? -1 : 1) * (r.interleaved ? 1 : half);
        if (j >= r.turned) {
            mlo_terms_copy(t, e, x, e, 1);
            continue;
        }
        ok = at >= 0 && (at + 1) * half <= mlo_array_count(a[0])
            && (at + 1) * half <= mlo_array_count(a[1])
            && mlo_terms_add(t, e, x, e, mlo_number_at(a[0], at * half + k))
            && mlo_terms_add(
                t, e, x, other, (second ? 1 : -1) * mlo_number_at(a[1], at * half + k));
    }
    for (int k = 0; k < 3; k++) mlo_array_free(m, a[k]);
    return ok ? t : NULL;
}

/* A sum, or a difference, of two carried values. */
static int mlo_is_mix(const mlo_inside *in, const mlo_node *n) {
    return (mlo_is(n, "Add") || mlo_is(n, "Sub")) && mlo_is_carried(in, n->input[0])
        && mlo_is_carried(in, n->input[1]);
}
static int mlo_is_repeat(const mlo_inside *in, const mlo_node *n) {
    return (mlo_is(n, "Expand") || mlo_is(n, "Tile") || mlo_has_trait(n, MLO_MOVES)
               || mlo_has_trait(n, MLO_RESHAPES))
        && mlo_is_carried(in, n->input[0]);
}
/* A product with a parameter: *x is what it multiplies. */
static int mlo_is_product_with(
    const mlo_inside *in, const mlo_node *n, const char **x, const char **factor) {
    const int divides = mlo_is(n, "Div");
    if (!divides && !mlo_is(n, "Mul")) return 0;
    const int first = mlo_is_carried(in, n->input[0]);
    *x = n->input[!first];
    *factor = n->input[first];
    return mlo_is_carried(in, *x) && !mlo_is_carried(in, *factor) && (first || !divides);
}
static int mlo_is_join(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is(n, "Concat")) return 0;
    for (size_t k = 0; k < n->n_input; k++)
        if (!mlo_is_carried(in, n->input[k])) return 0;
    return 1;
}

static const mlo_turn_terms *mlo_terms_made(mlo_turner *w, const char *name) {
    mlo_node *n = mlo_made_by(w->in, name);
    const char *x, *factor;
    if (n && n == w->passed) return mlo_terms_of(w, n->input[0]);
    if (mlo_is_of_sides(w->in, n)) return mlo_terms_source(w, name);
    if (mlo_is_mix(w->in, n)) return mlo_terms_sum(w, n, name);
    if (mlo_is(n, "Neg")) return mlo_terms_negated(w, n, name);
    if (mlo_is_product_with(w->in, n, &x, &factor))
        return mlo_terms_scaled(w, name, x, factor, mlo_is(n, "Div"));
    if (mlo_is_join(w->in, n)) return mlo_terms_joined(w, n, name);
    if (mlo_is(n, "RotaryEmbedding") && n->n_input > 2) return mlo_terms_rotary(w, n, name);
    if (mlo_is_repeat(w->in, n)) return mlo_terms_moved(w, n, name);
    return mlo_terms_source(w, name);
}

/* NULL: the value is not made that way, or memory is short. */
static const mlo_turn_terms *mlo_terms_of(mlo_turner *w, const char *name) {
    for (int i = 0; i < w->n_value; i++)
        if (w->value[i].name == name) return &w->value[i];
    if (w->depth > MLO_TURN_VALUES) return NULL;
    w->depth++;
    const mlo_turn_terms *t = mlo_terms_made(w, name);
    w->depth--;
    return w->in->m->error.code ? NULL : t;
}

/* Is it RotaryEmbedding in the one spelling: of pairs that are neighbours, on tokens [1, T, C], by
 * tables that are parameters, a row a token? */
static int mlo_is_turned(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is(n, "RotaryEmbedding") || n->n_input < 3 || mlo_has_input(n, 3)) return 0;
    const mlo_form x = mlo_body_form(in, n->input[0]), cos = mlo_body_form(in, n->input[1]);
    const int64_t heads = mlo_int(n, "num_heads", 0),
                  turned = mlo_int(n, "rotary_embedding_dim", 0);
    if (!mlo_form_known(&cos) || x.rank != 3 || x.dims[0] != 1 || heads < 1
        || !mlo_int(n, "interleaved", 0))
        return 0;
    for (size_t k = 1; k < 3; k++)
        if (mlo_is_carried(in, n->input[k])
            || !mlo_is_parameter(in->scan, in->body, n->input[k], 0))
            return 0;
    return (!turned || turned * heads == x.dims[2]) && 2 * heads * mlo_last_dim(&cos) == x.dims[2];
}

/* ... right behind a projection or a norm? */
static int mlo_is_turned_behind(const mlo_inside *in, const mlo_node *n) {
    const char *factor;
    if (!mlo_is_turned(in, n)) return 0;
    const char *x = n->input[0];
    while (mlo_has_trait(mlo_made_by(in, x), MLO_RESHAPES)) x = mlo_made_by(in, x)->input[0];
    n = mlo_made_by(in, x);
    if (mlo_is_of_sides(in, n)) return 1;
    return !mlo_is_mix(in, n) && !mlo_is_join(in, n) && !mlo_is(n, "Neg") && !mlo_is_repeat(in, n)
        && !mlo_is_product_with(in, n, &x, &factor);
}

/* Does a sum of two values, or a join, come up behind views and factors? Whatever has none is no
 * rotation, and is not looked at any closer. */
static int mlo_may_turn(const mlo_inside *in, const char *name) {
    for (int i = 0; i < MLO_CHAIN; i++) {
        const mlo_node *n = mlo_made_by(in, name);
        const char *factor;
        if (mlo_is_of_sides(in, n)) return 0;
        if (mlo_is_mix(in, n) || mlo_is_join(in, n)) return 1;
        if (mlo_is(n, "RotaryEmbedding")) return !mlo_is_turned_behind(in, n);
        if (mlo_is(n, "Neg") || mlo_is_repeat(in, n))
            name = n->input[0];
        else if (!mlo_is_product_with(in, n, &name, &factor))
            return 0;
    }
    return 0;
}

/* ---- pairs ---------------------------------------------------------------- */

/* A rotation: `heads` heads of d channels, the first of every `repeats` being a head of its own;
 * d / 2 pairs. Pair k is channels pair[2 k] < pair[2 k + 1] of the operand's heads; its members are
 * made of elements x[(h t d/2 + ..)] of the source. */
typedef struct {
    const char *source;
    mlo_heads at;
    int64_t repeats;
    int64_t *pair; /* [d] */
    int32_t *member; /* [heads, t, d]: elements of the source, in pairs */
    int turns; /* at least one pair has two terms */
} mlo_rotation_found;

static int mlo_near(double a, double b, double most) {
    return fabs(a - b) <= most * mlo_turn_loose;
}

/* The factor of element i of the source in element e; 0 where it is no part of it. */
static double mlo_factor_of(const mlo_turn_terms *t, int64_t e, int32_t i) {
    return i < 0 ? 0
                 : (t->from[0][e] == i ? t->by[0][e] : 0) + (t->from[1][e] == i ? t->by[1][e] : 0);
}
static int mlo_is_made_of(const mlo_turn_terms *t, int64_t e, int32_t a, int32_t b) {
    return (t->from[0][e] == a && t->from[1][e] == b) || (t->from[0][e] == b && t->from[1][e] == a);
}

/* The token at which most channels of the first head are made of two elements: others (a class
 * token, registers) may not turn at all. */
static int64_t mlo_turning_token(const mlo_turn_terms *t, const mlo_rotation_found *r) {
    int64_t best = 0, most = -1;
    for (int64_t i = 0; i < r->at.t; i++) {
        int64_t n = 0;
        for (int64_t j = 0; j < r->at.d; j++) n += t->from[1][mlo_head_place(&r->at, 0, i, j)] >= 0;
        if (n <= most) continue;
        most = n;
        best = i;
    }
    return best;
}

/* The channel behind i that is made of the same two elements at a token; d: there is none. */
static int64_t mlo_partner_of(
    const mlo_turn_terms *t, const mlo_rotation_found *r, int64_t token, int64_t i) {
    const int64_t e = mlo_head_place(&r->at, 0, token, i);
    int64_t j = i + 1;
    while (j < r->at.d
        && !mlo_is_made_of(t, mlo_head_place(&r->at, 0, token, j), t->from[0][e], t->from[1][e]))
        j++;
    return j;
}

/* Finds the pairs of the first head: two channels made of the same two elements; behind them, as
 * they come, those that are made of one. */
static int mlo_find_pairs(mlo_turner *w, const mlo_turn_terms *t, mlo_rotation_found *r) {
    const int64_t d = r->at.d, token = mlo_turning_token(t, r);
    int64_t n = 0;
    for (int64_t i = 0; i < d; i++) {
        int64_t known = 0;
        while (known < n && r->pair[known] != i) known++;
        if (known < n || t->from[1][mlo_head_place(&r->at, 0, token, i)] < 0) continue;
        const int64_t j = mlo_partner_of(t, r, token, i);
        if (j == d) return mlo_no_rotation(w, "does not mix its channels in pairs");
        r->pair[n++] = i;
        r->pair[n++] = j;
    }
    r->turns = n > 0;
    for (int64_t i = 0; i < d && n < d; i++)
        if (t->from[1][mlo_head_place(&r->at, 0, token, i)] < 0) r->pair[n++] = i;
    return 1;
}

/* The members of pair k of head h at token i, x being the first: y[i] = c x - s z, y[j] = s x + c z;
 * c and s go to turn[2]. 0: it is no rotation that way. */
static int mlo_turn_of(const mlo_turn_terms *t, const mlo_rotation_found *r, int64_t h, int64_t i,
    int64_t k, int32_t x, int32_t z, double most, double turn[2]) {
    const int64_t e = mlo_head_place(&r->at, h, i, r->pair[2 * k]);
    const int64_t g = mlo_head_place(&r->at, h, i, r->pair[2 * k + 1]);
    turn[0] = mlo_factor_of(t, e, x);
    turn[1] = mlo_factor_of(t, g, x);
    return mlo_near(turn[0], mlo_factor_of(t, g, z), most)
        && mlo_near(turn[1], -mlo_factor_of(t, e, z), most);
}

/* The elements that pair k of head h at token i is made of, one way round or the other (where they
 * are not mixed there is but one). */
static int mlo_pair_members(const mlo_turn_terms *t, const mlo_rotation_found *r, int64_t h,
    int64_t i, int64_t k, int swapped, int32_t member[2]) {
    const int64_t e = mlo_head_place(&r->at, h, i, r->pair[2 * k]);
    const int64_t g = mlo_head_place(&r->at, h, i, r->pair[2 * k + 1]);
    const int32_t a = t->from[0][e], b = t->from[1][e];
    if (b < 0) {
        member[0] = a;
        member[1] = t->from[0][g];
        return a >= 0 && member[1] >= 0 && a != member[1] && t->from[1][g] < 0;
    }
    member[swapped] = a < b ? a : b;
    member[!swapped] = a < b ? b : a;
    return mlo_is_made_of(t, g, a, b);
}

/* Is pair k, one way round, a rotation for all heads and tokens, by angles that are equal for all
 * heads? Fills in its members. */
static int mlo_pair_turns(
    const mlo_turn_terms *t, mlo_rotation_found *r, int64_t k, int swapped, double most) {
    const int64_t d = r->at.d, tokens = r->at.t;
    for (int64_t i = 0; i < tokens; i++) {
        double first[2] = { 0, 0 };
        for (int64_t h = 0; h < r->at.heads; h++) {
            int32_t *member = r->member + (h * tokens + i) * d + 2 * k;
            double turn[2];
            if (!mlo_pair_members(t, r, h, i, k, swapped, member)
                || !mlo_turn_of(t, r, h, i, k, member[0], member[1], most, turn))
                return 0;
            if (!h) memcpy(first, turn, sizeof turn);
            if (!mlo_near(first[0], turn[0], most) || !mlo_near(first[1], turn[1], most)) return 0;
        }
    }
    return 1;
}

static double mlo_most_factor(const mlo_turn_terms *t) {
    double most = 0;
    for (int64_t e = 0; e < 2 * t->n; e++)
        if (fabs(t->by[0][e]) > most) most = fabs(t->by[0][e]);
    return most;
}

/* How many heads in a row are the same one. */
static int64_t mlo_head_repeats(const mlo_rotation_found *r) {
    const size_t one = (size_t)(r->at.t * r->at.d) * sizeof *r->member;
    const char *head = (const char *)r->member;
    int64_t n = 1;
    while (n < r->at.heads && !memcmp(head, head + (size_t)n * one, one)) n++;
    if (r->at.heads % n) return 1;
    for (int64_t h = 0; h < r->at.heads; h++)
        if (memcmp(head + (size_t)h * one, head + (size_t)(h - h % n) * one, one)) return 1;
    return n;
}

static int mlo_rotation_in(mlo_turner *w, const char *name, mlo_rotation_found *r) {
    const mlo_turn_terms *t = mlo_terms_of(w, name);
    if (!t) return mlo_no_rotation(w, "is mixed in a way that is not followed");
    const double most = mlo_most_factor(t);
    r->source = w->source;
    r->turns = 0;
    if (!mlo_find_pairs(w, t, r)) return 0;
    if (!(most < 1e30)) return mlo_no_rotation(w, "is turned by angles that are no numbers");
    for (int64_t k = 0; k < r->at.d / 2; k++)
        if (!mlo_pair_turns(t, r, k, 0, most) && !mlo_pair_turns(t, r, k, 1, most))
            return mlo_no_rotation(w,
                "mixes pairs of channels by other numbers than the cosine and "
                "sine of one angle for each token and pair");
    r->repeats = mlo_head_repeats(r);
    return 1;
}

static void mlo_rotation_free(mlo *m, mlo_rotation_found *r) {
    mlo_scratch_free(m, r->pair);
    mlo_scratch_free(m, r->member);
    r->pair = NULL;
    r->member = NULL;
}

static int mlo_rotation_new(mlo *m, mlo_rotation_found *r, const mlo_heads *at) {
    const int64_t n = at->heads * at->t * at->d;
    memset(r, 0, sizeof *r);
    r->at = *at;
    r->pair = (int64_t *)mlo_scratch(m, (size_t)at->d, sizeof *r->pair);
    r->member = (int32_t *)mlo_scratch(m, (size_t)n, sizeof *r->member);
    return r->pair && r->member;
}

static int mlo_rotation_same(const mlo_rotation_found *a, const mlo_rotation_found *b) {
    const size_t n = (size_t)(a->at.heads * a->at.t * a->at.d);
    return !memcmp(a->pair, b->pair, (size_t)a->at.d * sizeof *a->pair)
        && !memcmp(a->member, b->member, n * sizeof *a->member);
}

/* The heads of an operand of a product, [.., T, D], or (the second) [.., D, T]; 0 of them: it has none. */
static mlo_heads mlo_operand_heads(const mlo_inside *in, const char *name, int second) {
    const mlo_form f = mlo_body_form(in, name);
    mlo_heads at = { 0, 0, 0, 0 };
    if (f.rank < 2 || mlo_form_count(&f) < 1) return at;
    at.t = f.dims[f.rank - (second ? 1 : 2)];
    at.heads = mlo_form_count(&f) / (f.dims[f.rank - 1] * f.dims[f.rank - 2]);
    at.d = f.dims[f.rank - (second ? 2 : 1)];
    at.order = second;
    return at;
}

/* order[j] := which element of its row of a value channel j of an operand's heads is, where the operand
 * is views and repeats of that value and each of its rows one head at one token. 0: it is not. */
static int mlo_rows_are_heads(
    const mlo_inside *in, const char *name, const mlo_heads *at, int64_t row, int64_t *order) {
    mlo_turner *w = (mlo_turner *)mlo_scratch(in->m, 1, sizeof *w);
    if (w) memset(w, 0, sizeof *w);
    if (w) w->in = in;
    const mlo_turn_terms *t = w ? mlo_terms_of(w, name) : NULL;
    int ok = t && at->d == row;
    for (int64_t k = 0; ok && k < at->heads * at->t; k++) {
        const int64_t h = k / at->t, i = k % at->t;
        const int32_t first = t->from[0][mlo_head_place(at, h, i, 0)];
        for (int64_t j = 0; ok && j < row; j++) {
            const int64_t e = mlo_head_place(at, h, i, j);
            if (!k) order[j] = t->from[0][e] % row;
            ok = t->from[0][e] >= 0 && t->from[1][e] < 0 && t->by[0][e] == 1
                && t->from[0][e] / row == first / row && t->from[0][e] % row == order[j];
        }
    }
    if (w) mlo_turner_free(w);
    mlo_scratch_free(in->m, w);
    return ok;
}

/* The rotation that makes an operand (but for a norm that is passed), in all iterations; the caller
 * frees it. 0: there is none; *why says what is there in its place, if something is. */
static int mlo_rotation_find(const mlo_inside *in, const char *name, int second,
    const mlo_node *passed, mlo_rotation_found *r, const char **why) {
    mlo *m = in->m;
    const mlo_heads at = mlo_operand_heads(in, name, second);
    memset(r, 0, sizeof *r);
    if (!at.heads || !(passed || mlo_may_turn(in, name))) return 0;
    mlo_turner *w = (mlo_turner *)mlo_scratch(m, 1, sizeof *w);
    int ok = w && at.d % 2 == 0 && mlo_rotation_new(m, r, &at), more = ok;
    for (int64_t i = 0; ok && more && i < in->scan->iterations; i++) {
        mlo_rotation_found next = { 0 };
        memset(w, 0, sizeof *w);
        w->in = in;
        w->iteration = i;
        w->passed = passed;
        ok = !i ? mlo_rotation_in(w, name, r)
                : mlo_rotation_new(m, &next, &at) && mlo_rotation_in(w, name, &next)
                && mlo_rotation_same(&next, r);
        if (!ok) *why = w->why ? w->why : "is turned in other pairs in other layers";
        more = w->varies;
        mlo_turner_free(w);
        mlo_rotation_free(m, &next);
    }
    mlo_scratch_free(m, w);
    if (ok && r->turns && !m->error.code) return 1;
    mlo_rotation_free(m, r);
    return 0;
}
