/* respell_moved: tokens that change places, between windows, say, stay where they are.
 *
 * in:  a float loop body in respell.c's spelling.
 * out: the same function, in which no token moves. A window partition, its reverse and a cyclic shift
 *     only say which token is where: what works on each token by itself works on it in its own place;
 *     attention in windows becomes attention over all tokens, under a mask that hides the keys of other
 *     windows. What was added to the scores of a window, a table by distance or a mask, is a mask's
 *     part for the pairs of that window: expressions over the model's own parameters.
 *
 * A value whose tokens have moved gets a twin [1, T, C], the same tokens in the stream's order, and the
 * places: row i of the value is token at[i] of the twin. Where the tokens are back, the value is made of
 * its twin.
 *
 * invariant: which element goes where is found by following views element by element (layout.c). A node
 *     that is not understood reads what it read before, and recognise.c says what it is.
 * example: a grid of 8 x 8 in windows of 4 x 4: scores [4, H, 16, 16] become [1, H, 64, 64], of which a
 *     row has 48 hidden keys.
 * cost: the element maps of what moves; H T T numbers for each attention.
 */
typedef struct {
    const char *twin; /* [1, t, c] */
    int64_t t; /* tokens */
    int64_t c; /* channels */
    int32_t *at; /* row i is token at[i] of the twin */
    int moved; /* some is not at home */
} mlo_order;

typedef struct {
    mlo_inside in;
    mlo_map orders; /* value -> mlo_order */
    mlo_node **list; /* the new body */
    size_t n;
    int changed; /* 1: something is spelled anew */
    int told; /* 1: what attention over all tokens costs has been said */
} mlo_mover;
enum { MLO_WINDOW_MOST = 1 << 22 }; /* numbers of one attention's bias */

/* ---- rows ----------------------------------------------------------------- */

/* Of n numbers below n: is each there once? */
static int mlo_is_permutation(mlo *m, const int32_t *at, int64_t n) {
    char *seen = (char *)mlo_scratch(m, (size_t)n, 1);
    int ok = seen != NULL;
    if (seen) memset(seen, 0, (size_t)n);
    for (int64_t i = 0; ok && i < n; i++) ok = !seen[at[i]]++;
    mlo_scratch_free(m, seen);
    return ok;
}

/* Where each row of a map of n elements comes from, if whole rows of c elements change places: row i was
 * row at[i]. NULL: they do not, or no memory. */
static int32_t *mlo_rows_of(mlo *m, const mlo_array *map, int64_t n, int64_t c) {
    const int32_t *e = map ? (const int32_t *)map->data : NULL;
    const mlo_form f = mlo_form_of_array(map);
    if (!e || c <= 0 || mlo_array_count(map) != n || mlo_last_dim(&f) != c) return NULL;
    int32_t *at = MLO_NEW_N(m, int32_t, (size_t)(n / c));
    for (int64_t i = 0; at && i < n; i++) {
        if (e[i] % c != i % c || (i % c && e[i] / c != at[i / c])) return NULL;
        at[i / c] = (int32_t)(e[i] / c);
    }
    return at && mlo_is_permutation(m, at, n / c) ? at : NULL;
}

static int mlo_is_home(const int32_t *at, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (at[i] != i) return 0;
    return 1;
}

/* The parts of one value that a Concat joins, as places in it. NULL: they are of several, or of none. */
static mlo_array *mlo_joined_map(const mlo_inside *in, mlo_node *n, const char **source) {
    mlo_array *part[MLO_MOVE_INPUTS] = { 0 }, *map = NULL;
    int ok = n->n_input <= MLO_MOVE_INPUTS;
    for (size_t k = 0; ok && k < n->n_input; k++) {
        mlo_chain c;
        const char *from = mlo_chain_walk(in, n->input[k], &c, NULL);
        ok = mlo_is_carried(in, from) && !c.n_rounding && (!k || from == *source);
        *source = from;
        if (ok) part[k] = mlo_index_map(in, from, &c);
        ok = ok && part[k];
    }
    if (ok) map = mlo_made_of(in->m, n, n->output[0], (const mlo_array *const *)part);
    for (size_t k = 0; k < MLO_MOVE_INPUTS; k++) mlo_array_free(in->m, part[k]);
    return map;
}

/* Concat(Slice(v), Slice(v)), a cyclic shift of tokens, is a Gather. */
static void mlo_respell_joined(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *source = NULL;
    if (!mlo_is(x->n, "Concat") || !mlo_is_carried(in, x->n->output[0])) return;
    mlo_array *map = mlo_joined_map(in, x->n, &source);
    const mlo_form from = mlo_body_form(in, source), to = mlo_body_form(in, x->n->output[0]);
    const int64_t c = mlo_last_dim(&from), t = mlo_tokens_of(&from);
    int32_t *at = map ? mlo_rows_of(x->m, map, t * c, c) : NULL;
    int64_t *list = at ? (int64_t *)mlo_scratch(x->m, (size_t)t, sizeof *list) : NULL;
    for (int64_t i = 0; list && i < t; i++) list[i] = at[i];
    mlo_array_free(x->m, map);
    if (!list) return;
    const int64_t flat[] = { t, c };
    const char *rows = mlo_x_reshape(x, source, flat, 2), *which = mlo_x_list(x, list, (size_t)t);
    rows = mlo_x_take(x, rows, which, 0);
    mlo_x_out(x, 0, mlo_x_reshape(x, rows, to.dims, (size_t)to.rank));
    mlo_scratch_free(x->m, list);
}

/* ---- twins ---------------------------------------------------------------- */

static mlo_order *mlo_order_known(const mlo_mover *g, const char *name) {
    return (mlo_order *)mlo_map_get(&g->orders, name);
}
static int mlo_is_moved(const mlo_mover *g, const char *name) {
    const mlo_order *o = mlo_order_known(g, name);
    return o && o->moved;
}

/* From now on the value has this twin. */
static mlo_order *mlo_order_put(
    mlo_mover *g, const char *name, const char *twin, int64_t t, int64_t c, int32_t *at) {
    mlo_order *o = MLO_NEW(g->in.m, mlo_order);
    const mlo_order made = { twin, t, c, at, !mlo_is_home(at, t) };
    if (!o || mlo_map_put(g->in.m, &g->orders, name, o)) return NULL;
    *o = made;
    return o;
}

/* The order of any value of tokens; one whose tokens are at home is its own twin, reshaped. NULL: its
 * form is not known. */
static mlo_order *mlo_order_of(mlo_mover *g, mlo_expansion *x, const char *name) {
    mlo_order *o = mlo_order_known(g, name);
    const mlo_form f = mlo_body_form(&g->in, name);
    const int64_t t = mlo_tokens_of(&f), c = mlo_last_dim(&f), shape[] = { 1, t, c };
    if (o || t <= 0 || !mlo_is_carried(&g->in, name)) return o;
    int32_t *at = MLO_NEW_N(g->in.m, int32_t, (size_t)t);
    for (int64_t i = 0; at && i < t; i++) at[i] = (int32_t)i;
    return at ? mlo_order_put(g, name, mlo_x_reshape(x, name, shape, 3), t, c, at) : NULL;
}

static void mlo_moved_attributes(mlo_expansion *x) {
    mlo_node *n = mlo_x_last(x);
    for (size_t i = 0; n && i < x->n->n_attr; i++)
        if (strcmp(x->n->attr[i]->name, "axis") != 0
            && !MLO_PUSH(x->m, n->attr, n->n_attr, x->n->attr[i]))
            return;
}

/* ---- what works on each token by itself ----------------------------------- */

/* The order that all carried inputs of n have; NULL: they have none in common, or none has moved. */
static mlo_order *mlo_common_order(mlo_mover *g, mlo_expansion *x) {
    const mlo_node *n = x->n;
    mlo_order *first = NULL;
    int moved = 0;
    for (size_t i = 0; i < n->n_input; i++) moved |= mlo_is_moved(g, n->input[i]);
    for (size_t i = 0; moved && i < n->n_input; i++) {
        if (!mlo_is_carried(&g->in, n->input[i])) continue;
        mlo_order *o = mlo_order_of(g, x, n->input[i]);
        if (!o
            || (first
                && (o->t != first->t || memcmp(o->at, first->at, (size_t)o->t * sizeof *o->at))))
            return NULL;
        first = o;
    }
    return first;
}

/* Are the inputs that are not carried one number each, or one for each of c channels? */
static int mlo_has_token_parameters(const mlo_inside *in, const mlo_node *n, int64_t c) {
    for (size_t i = 0; i < n->n_input; i++) {
        if (!mlo_has_input(n, i) || mlo_is_carried(in, n->input[i])) continue;
        if (!mlo_is_number(in, n->input[i]) && !mlo_is_per_channel(in, n->input[i], c)) return 0;
    }
    return 1;
}

/* The twin of f(tokens, parameters): the same node over twins. */
static const char *mlo_moved_function(mlo_mover *g, mlo_expansion *x) {
    const mlo_node *n = x->n;
    const char **in = MLO_NEW_N(x->m, const char *, n->n_input + 1);
    if (!in) return "";
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_form f = mlo_body_form(&g->in, n->input[i]);
        const int64_t count = mlo_form_count(&f);
        in[i] = n->input[i];
        if (!mlo_has_input(n, i)) continue;
        if (mlo_is_carried(&g->in, n->input[i]))
            in[i] = mlo_order_known(g, n->input[i])->twin;
        else if (f.rank > 1)
            in[i] = mlo_x_reshape(x, n->input[i], &count, 1);
    }
    const char *y = mlo_x_node(x, n->op, in, n->n_input);
    mlo_moved_attributes(x);
    if (mlo_is_norm(&g->in, n)) mlo_x_int(x, "axis", -1);
    return y;
}

/* The twin of a projection, MatMul or Gemm. */
static const char *mlo_moved_projection(const mlo_order *o, mlo_expansion *x, int64_t channels) {
    const int64_t flat[] = { o->t, o->c }, back[] = { 1, o->t, channels };
    if (mlo_is(x->n, "MatMul")) return MLO_X(x, "MatMul", o->twin, x->n->input[1]);
    const char *from = mlo_x_reshape(x, o->twin, flat, 2);
    const char *y = MLO_X(x, "Gemm", from, x->n->input[1], mlo_x_in(x, 2));
    mlo_moved_attributes(x);
    return mlo_x_reshape(x, y, back, 3);
}

/* x W, W a parameter. */
static int mlo_is_projecting(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is(n, "MatMul") && !mlo_is(n, "Gemm")) return 0;
    return mlo_is_carried(in, n->input[0]) && !mlo_is_carried(in, n->input[1])
        && mlo_body_form(in, n->input[1]).rank == 2 && !mlo_int(n, "transA", 0)
        && (n->n_input < 3 || !mlo_is_carried(in, n->input[2]));
}

/* The twin of what a node makes of each token by itself; NULL: it does something else. */
static const char *mlo_moved_tokens(mlo_mover *g, mlo_expansion *x) {
    const mlo_inside *in = &g->in;
    const mlo_node *n = x->n;
    const mlo_form y = mlo_body_form(in, n->output[0]);
    const int64_t c = mlo_last_dim(&y);
    const int projecting = mlo_is_projecting(in, n);
    if (n->n_output != 1) return NULL;
    if (!projecting && !mlo_is_norm(in, n) && !(mlo_is_elementwise(n) && !mlo_is_layout(n)))
        return NULL;
    if (!projecting && !mlo_has_token_parameters(in, n, c)) return NULL;
    mlo_order *o = mlo_common_order(g, x);
    if (!o || o->t != mlo_tokens_of(&y) || (!projecting && o->c != c)) return NULL;
    const char *twin = projecting ? mlo_moved_projection(o, x, c) : mlo_moved_function(g, x);
    return mlo_order_put(g, n->output[0], twin, o->t, c, o->at) ? twin : NULL;
}

/* ---- attention ------------------------------------------------------------ */

/* (q k^T before + mask) after, a softmax, times v; keys [.., D, N], queries and values [.., N, D]. */
typedef struct {
    mlo_node *mix; /* the product with values */
    mlo_node *scores; /* the product of queries and keys */
    const char *mask; /* NULL: there is none */
    mlo_form at; /* of the sum */
    double before; /* what scores are multiplied by */
    double after; /* what their sum with the mask is */
    int64_t views; /* heads of windows */
    int64_t queries; /* of a view */
    int64_t keys; /* of a view */
    int64_t heads;
    int64_t t; /* tokens of all windows */
    int32_t *head; /* of each view */
    int32_t *token[3]; /* of each row of each view: of queries, keys, values */
    int64_t *column[3]; /* of the operands, for each channel of each head */
    int64_t width[3]; /* channels of a head */
    mlo_order *order[3]; /* of what the operands are views of */
} mlo_windows;

/* From probabilities down to the softmax that makes them; NULL: none does. */
static mlo_node *mlo_moved_softmax(const mlo_inside *in, const char *name, int64_t keys) {
    for (int i = 0; i < MLO_CHAIN; i++) {
        mlo_node *n = mlo_made_by(in, name);
        const mlo_form f = mlo_body_form(in, name);
        if (mlo_last_dim(&f) != keys) return NULL;
        if (mlo_is(n, "Softmax"))
            return mlo_int(n, "axis", -1) == -1 || mlo_int(n, "axis", -1) == f.rank - 1 ? n : NULL;
        if (mlo_has_trait(n, MLO_RESHAPES))
            name = n->input[0];
        else if (mlo_is(n, "Where") && mlo_is(mlo_made_by(in, n->input[0]), "IsNaN"))
            name = n->input[2];
        else
            return NULL;
    }
    return NULL;
}

/* The product below a softmax, and what is between. 0: something else is. */
static int mlo_moved_scores(const mlo_inside *in, const mlo_node *softmax, mlo_windows *w) {
    const char *name = softmax->input[0];
    for (int i = 0; i < MLO_CHAIN; i++) {
        mlo_node *n = mlo_made_by(in, name);
        const mlo_form f = mlo_body_form(in, name);
        const char *from, *other;
        if (mlo_last_dim(&f) != w->keys) return 0;
        if (mlo_is_inner_product(in, n)) {
            w->scores = n;
            return 1;
        }
        if (!w->mask && mlo_is_half(in, n, "Add", &from, &other)) {
            const mlo_form g = mlo_body_form(in, from);
            if (!mlo_form_same(&f, &g)) return 0;
            w->mask = other;
            w->at = f;
        } else if ((from = mlo_unscaled(in, n, w->mask ? &w->before : &w->after)) == NULL) {
            if (!mlo_has_trait(n, MLO_RESHAPES)) return 0;
            from = n->input[0];
        }
        name = from;
    }
    return 0;
}

/* Which head each view is, and (view, query) for each row and head of the joined value: place[row H +
 * head]. NULL: heads are not joined to the channels of tokens. */
static int32_t *mlo_window_places(
    mlo_mover *g, const mlo_chain *c, const char *out, mlo_windows *w) {
    mlo *m = g->in.m;
    const mlo_form y = mlo_body_form(&g->in, out);
    const int64_t d = w->width[2], t = mlo_tokens_of(&y), n = mlo_last_dim(&y);
    w->heads = n / d;
    w->t = t;
    if (t <= 0 || n % d || w->heads * t != w->views * w->queries) return NULL;
    mlo_array *map = mlo_index_map(&g->in, w->mix->output[0], c);
    int32_t *place = MLO_NEW_N(m, int32_t, (size_t)(t * w->heads));
    w->head = MLO_NEW_N(m, int32_t, (size_t)w->views);
    int ok = map && place && w->head;
    for (int64_t l = 0; ok && l < w->views; l++) w->head[l] = -1;
    for (int64_t e = 0; ok && e < t * n; e++) {
        const int32_t from = ((const int32_t *)map->data)[e];
        int32_t *p = &place[e / d], *head = &w->head[from / (d * w->queries)];
        const int32_t h = (int32_t)(e / d % w->heads);
        if (e % d == 0) *p = (int32_t)(from / d);
        if (*head < 0) *head = h;
        ok = from % d == e % d && *p == from / d && *head == h;
    }
    mlo_array_free(m, map);
    return ok && mlo_is_permutation(m, place, t * w->heads) ? place : NULL;
}

/* Which token each row of each view of operand k is, and which channels it reads, the same ones in all
 * windows. 0: it is laid out in another way. */
static int mlo_window_operand(mlo_mover *g, mlo_expansion *x, mlo_windows *w, int k) {
    mlo *m = g->in.m;
    const char *name = k < 2 ? w->scores->input[k] : w->mix->input[1];
    mlo_chain c;
    double scale = 1;
    const char *source = mlo_chain_walk(&g->in, name, &c, k < 2 ? &scale : NULL);
    const int64_t rows = k ? w->keys : w->queries, d = w->width[k];
    const mlo_order *o = w->order[k] = c.n_rounding ? NULL : mlo_order_of(g, x, source);
    mlo_array *map = o && o->t == w->t ? mlo_index_map(&g->in, source, &c) : NULL;
    int32_t *token = w->token[k] = MLO_NEW_N(m, int32_t, (size_t)(w->views * rows));
    int64_t *column = w->column[k] = MLO_NEW_N(m, int64_t, (size_t)(w->heads * d));
    int ok = map && token && column && mlo_array_count(map) == w->views * rows * d;
    for (int64_t i = 0; ok && i < w->heads * d; i++) column[i] = -1;
    for (int64_t e = 0; ok && e < w->views * rows * d; e++) {
        const int64_t l = e / (rows * d), r = e / d % rows, j = e % d;
        const int32_t from = ((const int32_t *)map->data)[k == 1 ? (l * d + j) * rows + r : e];
        int64_t *to = &column[w->head[l] * d + j];
        if (!j) token[l * rows + r] = o->at[from / o->c];
        if (*to < 0) *to = from % o->c;
        ok = token[l * rows + r] == o->at[from / o->c] && *to == from % o->c;
    }
    w->before *= scale;
    mlo_array_free(m, map);
    return ok;
}

/* Is the carried value a batch, of other sequences than windows? */
static int mlo_is_batch(const mlo_mover *g, int64_t windows) {
    const mlo_form f = mlo_body_form(&g->in, g->in.body->input[0]->name);
    return f.rank > 2 && f.dims[0] > 1 && (f.dims[0] == windows || f.dims[1] == windows);
}

/* Refuses windows that are not understood; 0. */
static int mlo_window_strange(mlo_mover *g, const mlo_windows *w, const char *what) {
    mlo_chain c;
    const char *from = mlo_chain_walk(&g->in, w->mix->input[1], &c, NULL);
    const mlo_form f = mlo_body_form(&g->in, from);
    if (mlo_is_summed_up(&g->in, w->mix))
        mlo_fail(g->in.m, MLO_E_UNSUPPORTED, w->mix, MLO_TOLD_SUMMED_UP);
    else if (mlo_tokens_of(&f) == w->t && w->views > w->heads
        && !mlo_is_batch(g, w->views / w->heads))
        mlo_fail(g->in.m, MLO_E_UNSUPPORTED, w->scores ? w->scores : w->mix,
            "attention in windows of %lld of %lld tokens, whose %s; hardware has softmax(scale * q "
            "k^T "
            "+ mask) v, of queries and keys that may have a norm over each head, a scale for each "
            "head "
            "in it (Swin V2's cosines)",
            (long long)w->keys, (long long)w->t, what);
    return 0;
}

/* Reads the attention that ends in mix, of which x's result is a view. 0: it is none that is
 * understood. */
static int mlo_windows_of(mlo_mover *g, mlo_expansion *x, mlo_node *mix, mlo_windows *w,
    const mlo_chain *c, int32_t **place) {
    const mlo_inside *in = &g->in;
    const mlo_form p = mlo_body_form(in, mix->input[0]), y = mlo_body_form(in, mix->output[0]);
    memset(w, 0, sizeof *w);
    w->mix = mix;
    w->before = w->after = 1;
    if (p.rank < 3 || y.rank != p.rank) return 0;
    w->keys = p.dims[p.rank - 1];
    w->queries = p.dims[p.rank - 2];
    w->views = mlo_form_count(&p) / (w->keys * w->queries);
    w->width[2] = mlo_last_dim(&y);
    *place = w->width[2] > 0 ? mlo_window_places(g, c, x->n->output[0], w) : NULL;
    const mlo_node *softmax = *place ? mlo_moved_softmax(in, mix->input[0], w->keys) : NULL;
    if (!softmax) return 0;
    if (!mlo_moved_scores(in, softmax, w))
        return mlo_window_strange(g, w, "scores are not scale * q k^T + mask");
    const mlo_form q = mlo_body_form(in, w->scores->input[0]);
    w->width[0] = w->width[1] = mlo_last_dim(&q);
    for (int k = 0; k < 3; k++)
        if (w->width[0] <= 0 || !mlo_window_operand(g, x, w, k))
            return mlo_window_strange(
                g, w, "queries, keys or values are not heads of the channels of tokens");
    return !memcmp(w->token[1], w->token[2], (size_t)(w->views * w->keys) * sizeof *w->token[1]);
}

/* The token of each row of the joined value; NULL: its heads are of several. */
static int32_t *mlo_window_rows(mlo *m, const mlo_windows *w, const int32_t *place) {
    int32_t *at = MLO_NEW_N(m, int32_t, (size_t)w->t);
    for (int64_t i = 0; at && i < w->t * w->heads; i++) {
        const int32_t token = w->token[0][place[i]];
        if (i % w->heads == 0) at[i / w->heads] = token;
        if (at[i / w->heads] != token) return NULL;
    }
    return at && mlo_is_permutation(m, at, w->t) ? at : NULL;
}

/* Where the number for each head, query and key in the stream's order is among the scores of windows;
 * behind them all, where the key is in none of the query's. NULL: a window has a token twice. */
static int64_t *mlo_window_pairs(mlo *m, const mlo_windows *w) {
    const int64_t all = w->heads * w->t * w->t, none = w->views * w->queries * w->keys;
    int64_t *pair = (int64_t *)mlo_scratch(m, (size_t)all, sizeof *pair);
    for (int64_t i = 0; pair && i < all; i++) pair[i] = none;
    for (int64_t e = 0; pair && e < none; e++) {
        const int64_t row = e / w->keys, l = row / w->queries;
        int64_t *to = &pair[(w->head[l] * w->t + w->token[0][row]) * w->t
            + w->token[1][l * w->keys + e % w->keys]];
        if (*to == none) {
            *to = e;
            continue;
        }
        mlo_scratch_free(m, pair);
        pair = NULL;
    }
    return pair;
}

/* The mask [1, H, T, T] of attention over all tokens. */
static const char *mlo_window_mask(mlo_expansion *x, const mlo_windows *w) {
    const double hidden = -1e30; /* what float models write, and no score makes up for */
    const int64_t flat = -1, scores = w->views * w->queries * w->keys, all = w->heads * w->t * w->t,
                  shape[] = { 1, w->heads, w->t, w->t };
    int64_t *pair = mlo_window_pairs(x->m, w);
    if (!pair) return NULL;
    const char *in = w->mask ? w->mask : mlo_x_number(x, 0);
    const char *to = w->mask ? mlo_x_list(x, w->at.dims, (size_t)w->at.rank)
                             : mlo_x_list(x, &scores, 1);
    in = mlo_x_reshape(x, MLO_X(x, "Expand", in, to), &flat, 1);
    const char *none = mlo_x_tensor(x, MLO_FLOAT, 1, 1, NULL, hidden);
    in = MLO_X(x, "Concat", in, none);
    mlo_x_int(x, "axis", 0);
    const char *which = mlo_x_list(x, pair, (size_t)all);
    mlo_scratch_free(x->m, pair);
    return mlo_x_reshape(x, mlo_x_take(x, in, which, 0), shape, 4);
}

/* Operand k as heads of all tokens, [1, H, T, D], keys [1, H, D, T]. */
static const char *mlo_window_heads(mlo_expansion *x, const mlo_windows *w, int k) {
    static const int64_t rows[] = { 0, 2, 1, 3 }, columns[] = { 0, 2, 3, 1 };
    const int64_t n = w->heads * w->width[k], shape[] = { 1, w->t, w->heads, w->width[k] };
    const char *y = w->order[k]->twin;
    if (n != w->order[k]->c || !mlo_is_identity(w->column[k], n)) {
        const char *which = mlo_x_list(x, w->column[k], (size_t)n);
        y = mlo_x_take(x, y, which, 2);
    }
    return mlo_x_transpose(x, mlo_x_reshape(x, y, shape, 4), k == 1 ? columns : rows, 4);
}

/* The attention over all tokens, [1, T, H D]. */
static const char *mlo_window_attention(mlo_expansion *x, const mlo_windows *w, const char *mask) {
    static const int64_t joined[] = { 0, 2, 1, 3 };
    const int64_t shape[] = { 1, w->t, w->heads * w->width[2] };
    const char *q = mlo_window_heads(x, w, 0), *k = mlo_window_heads(x, w, 1);
    const char *y = mlo_x_times(x, MLO_X(x, "MatMul", q, k), w->before);
    y = mlo_x_times(x, MLO_X(x, "Add", y, mask), w->after);
    y = MLO_X(x, "Softmax", y);
    mlo_x_int(x, "axis", -1);
    const char *v = mlo_window_heads(x, w, 2);
    y = mlo_x_transpose(x, MLO_X(x, "MatMul", y, v), joined, 4);
    return mlo_x_reshape(x, y, shape, 3);
}

/* Refuses what would be too large, and windows in a batch; says what the others cost. */
static int mlo_windows_fit(mlo_mover *g, const mlo_windows *w) {
    mlo *m = g->in.m;
    const mlo_form f = mlo_body_form(&g->in, g->in.body->input[0]->name);
    const int64_t numbers = w->heads * w->t * w->t;
    if (f.rank > 2 && f.dims[0] > 1 && !(f.rank == 3 && f.dims[1] == 1))
        return mlo_fail(m, MLO_E_UNSUPPORTED, w->mix,
            "attention in windows, in a batch of %lld; export with a batch of 1, or leave that "
            "axis "
            "open and give --dim NAME=1: hardware takes frames one after the other",
            (long long)f.dims[0]);
    if (numbers > MLO_WINDOW_MOST)
        return mlo_fail(m, MLO_E_UNSUPPORTED, w->mix,
            "attention in windows of %lld of %lld tokens: hardware attends to all tokens under a "
            "bias "
            "for each of %lld heads, each query and key, here %lld numbers; %d are supported. Take "
            "a "
            "smaller image, or a later stage (--loop NAME)",
            (long long)w->keys, (long long)w->t, (long long)w->heads, (long long)numbers,
            MLO_WINDOW_MOST);
    if (!g->told)
        mlo_inform(m,
            "%s: attention in windows of %lld of %lld tokens becomes attention to all of them, the "
            "others hidden: %.3g times the products, and %lld bytes of biases in each layer",
            mlo_node_name(w->mix), (long long)w->keys, (long long)w->t,
            (double)w->t / (double)w->keys, (long long)(2 * numbers));
    g->told = 1;
    return 0;
}

/* The twin of heads that are joined behind an attention in windows, or over tokens that have moved. NULL:
 * it is none. */
static const char *mlo_moved_attention(
    mlo_mover *g, mlo_expansion *x, mlo_node *mix, const mlo_chain *c) {
    mlo_windows w;
    int32_t *place;
    if (!mlo_windows_of(g, x, mix, &w, c, &place)) return NULL;
    int moved = w.views > w.heads;
    for (int k = 0; k < 3; k++) moved |= w.order[k]->moved;
    if (mlo_is_batch(g, w.views / w.heads)) return NULL;
    int32_t *at = moved ? mlo_window_rows(g->in.m, &w, place) : NULL;
    if (!at || mlo_windows_fit(g, &w)) return NULL;
    const char *mask = mlo_window_mask(x, &w);
    if (!mask) return NULL;
    const char *twin = mlo_window_attention(x, &w, mask);
    return mlo_order_put(g, x->n->output[0], twin, w.t, w.heads * w.width[2], at) ? twin : NULL;
}

/* ---- the walk ------------------------------------------------------------- */

/* A parameter [D] or [H, D] of a norm over heads, whatever ones are around; "": there is none, NULL: it is another. */
static const char *mlo_moved_parameter(
    mlo_mover *g, mlo_expansion *x, const mlo_node *norm, size_t i, const int64_t *heads) {
    if (!mlo_has_input(norm, i)) return "";
    const mlo_form f = mlo_body_form(&g->in, norm->input[i]);
    const int each = mlo_form_count(&f) == heads[0] * heads[1];
    if (!each && mlo_form_count(&f) != heads[1]) return NULL;
    if (mlo_last_dim(&f) != heads[1] || (each && heads[0] > 1 && f.dims[f.rank - 2] != heads[0]))
        return NULL;
    return mlo_x_reshape(x, norm->input[i], each ? heads : heads + 1, each ? 2 : 1);
}

/* The twin of a norm over the heads of each token, [.., C] -> [.., H, D] -> [.., C]: n joins them again. NULL: it
 * does not. */
static const char *mlo_moved_head_norm(mlo_mover *g, mlo_expansion *x) {
    const mlo_inside *in = &g->in;
    const mlo_node *norm = mlo_joined_norm(in, x->n);
    const mlo_node *split = norm ? mlo_made_by(in, norm->input[0]) : NULL;
    if (!mlo_has_trait(split, MLO_RESHAPES) || !mlo_is_moved(g, split->input[0])) return NULL;
    const mlo_order *o = mlo_order_of(g, x, split->input[0]);
    const mlo_form f = mlo_body_form(in, norm->input[0]), y = mlo_body_form(in, x->n->output[0]);
    const int64_t d = mlo_last_dim(&f);
    if (!o || f.rank < 2 || mlo_last_dim(&y) != o->c || f.dims[f.rank - 2] * d != o->c) return NULL;
    const int64_t heads[] = { o->c / d, d }, apart[] = { 1, o->t, heads[0], d },
                  back[] = { 1, o->t, o->c };
    const char *gamma = mlo_moved_parameter(g, x, norm, 1, heads),
               *beta = mlo_moved_parameter(g, x, norm, 2, heads);
    if (!gamma || !beta) return NULL;
    const char *twin = mlo_x_normed(x, norm, mlo_x_reshape(x, o->twin, apart, 4), gamma, beta);
    twin = mlo_x_reshape(x, twin, back, 3);
    return mlo_order_put(g, x->n->output[0], twin, o->t, o->c, o->at) ? twin : NULL;
}

/* A node that moves elements: whole tokens of one value, or heads behind an attention. Gives the result
 * an order if it has another one than its source or that has a twin. */
static void mlo_moved_layout(mlo_mover *g, mlo_expansion *x) {
    mlo *m = g->in.m;
    const mlo_node *n = x->n;
    mlo_chain c;
    const char *source = mlo_chain_walk(&g->in, n->output[0], &c, NULL);
    mlo_node *made = mlo_made_by(&g->in, source);
    if (n->n_output != 1 || mlo_moved_head_norm(g, x) || c.n_rounding || !c.n) return;
    if (mlo_is_inner_product(&g->in, made) && mlo_moved_attention(g, x, made, &c)) return;
    const mlo_form f = mlo_body_form(&g->in, source);
    const int64_t t = mlo_tokens_of(&f), channels = mlo_last_dim(&f);
    mlo_array *map = t > 0 ? mlo_index_map(&g->in, source, &c) : NULL;
    int32_t *at = map ? mlo_rows_of(m, map, t * channels, channels) : NULL;
    mlo_array_free(m, map);
    if (!at || (!mlo_is_moved(g, source) && mlo_is_home(at, t))) return;
    const mlo_order *o = mlo_order_of(g, x, source);
    for (int64_t i = 0; o && i < t; i++) at[i] = o->at[at[i]];
    if (o) mlo_order_put(g, n->output[0], o->twin, t, channels, at);
}

/* A node of the old body: it stays, and its twin with it; where its tokens are home again it is made of the
 * twin. */
static int mlo_moved_node(mlo_mover *g, mlo_node *n) {
    mlo *m = g->in.m;
    mlo_expansion x = { m, g->in.body, n, mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
    const int carried = mlo_is_carried(&g->in, n->output[0]);
    if (carried && mlo_is_layout(n))
        mlo_moved_layout(g, &x);
    else if (carried)
        mlo_moved_tokens(g, &x);
    const mlo_order *o = mlo_order_known(g, n->output[0]);
    const mlo_form f = mlo_body_form(&g->in, n->output[0]);
    const int back = o && !o->moved;
    if (back) mlo_x_out(&x, 0, mlo_x_reshape(&x, o->twin, f.dims, (size_t)f.rank));
    g->changed |= o != NULL;
    if (!back && !MLO_PUSH(m, g->list, g->n, n)) return mlo_failed(m);
    for (size_t i = 0; i < x.n_made; i++)
        if (!MLO_PUSH(m, g->list, g->n, x.made[i])) return mlo_failed(m);
    return mlo_failed(m);
}

/* *changed: were there tokens that moved? */
static int mlo_respell_moved(mlo *m, mlo_scan *scan, int *changed) {
    mlo_mover g;
    memset(&g, 0, sizeof g);
    MLO_TRY(mlo_inside_of(m, scan, &g.in));
    for (size_t i = 0; i < scan->body->n_node; i++)
        MLO_TRY(mlo_moved_node(&g, scan->body->node[i]));
    *changed = g.changed;
    if (!g.changed) return 0;
    scan->body->node = g.list;
    scan->body->n_node = g.n;
    MLO_TRY(mlo_index(m, m->model->graph));
    MLO_TRY(mlo_drop_dead(m, scan->body));
    MLO_TRY(mlo_index(m, m->model->graph));
    return mlo_infer(m);
}
