/* band: which keys a query may see by their places: those up to itself (causal), or of a band around it.
 *
 * in:  the symbols of a mask's elements (symbol.c), an iteration at a time.
 * out: how far back and ahead a query sees, in each iteration, and each key's own symbol; or which element
 *     is wrong.
 *
 * invariant: the hidden elements are those outside of the band, one by one, and what is left in a column
 *     is one symbol, the key's own, in all iterations and masks of a loop; or what is left in a row is the query's,
 *     its padding, which softmax does not see. Of a query that is padding, nothing is asked.
 * example: hidden above the diagonal: back = T - 1, ahead = 0.
 * cost: O(elements).
 */

/* ---- bands ---------------------------------------------------------------- */

/* What is added to scores beside a key's own. */
typedef struct {
    int64_t n; /* iterations; 1: all alike */
    int64_t heads;
    int64_t queries; /* 1: all alike */
    int64_t keys;
    float *number; /* [n, heads, queries, keys]; -INFINITY: the key is hidden; NULL: none */
} mlo_bias;

/* Which keys a query i sees by their places: i - back <= j <= i + ahead. */
typedef struct {
    int causal; /* 1: nowhere a later key */
    int band; /* 1: some key is hidden otherwise by its place */
    int32_t *back; /* tokens, one for each iteration */
    int32_t *ahead; /* tokens, one for each iteration */
    mlo_bias bias; /* there is one: no band */
} mlo_sight;

/* A mask's elements in one iteration. */
typedef struct {
    const int64_t *id; /* symbols: [copies, rows, keys] */
    int64_t copies; /* of heads */
    int64_t rows; /* queries; 1: all alike */
    int64_t keys;
    int64_t back; /* tokens, as in mlo_sight */
    int64_t ahead; /* tokens, as in mlo_sight */
    int of_queries; /* 1: what is not hidden is the queries' own */
} mlo_mask_view;

/* What is wrong with a mask, and where. */
typedef struct {
    const char *what;
    int64_t head;
    int64_t query;
    int64_t key;
    int64_t iteration;
} mlo_wrong;

static int mlo_wrong_at(mlo_wrong *w, const char *what, int64_t head, int64_t query, int64_t key) {
    w->what = what;
    w->head = head;
    w->query = query;
    w->key = key;
    return 0;
}

/* Does some query see key j? */
static int mlo_is_alive(const mlo_tracer *t, const mlo_mask_view *v, int64_t j) {
    for (int64_t i = 0; i < v->rows; i++)
        if (!mlo_is_hidden(t, v->id[i * v->keys + j])) return 1;
    return 0;
}

/* The band that most elements speak for: a distance belongs to it where more elements are seen than
 * hidden. Keys that nobody sees say nothing. */
static int mlo_band_of(mlo_tracer *t, mlo_mask_view *v) {
    const int64_t n = v->keys;
    int64_t *votes = (int64_t *)mlo_scratch(t->m, (size_t)(2 * n), sizeof *votes);
    if (!votes) return mlo_failed(t->m);
    memset(votes, 0, (size_t)(2 * n) * sizeof *votes);
    for (int64_t j = 0; v->rows > 1 && j < n; j++)
        for (int64_t i = 0, alive = mlo_is_alive(t, v, j); alive && i < n; i++)
            votes[n + i - j] += mlo_is_hidden(t, v->id[i * n + j]) ? -1 : 1;
    v->back = v->ahead = 0;
    while (v->back < n - 1 && votes[n + v->back + 1] >= 0) v->back++;
    while (v->ahead < n - 1 && votes[n - v->ahead - 1] >= 0) v->ahead++;
    mlo_scratch_free(t->m, votes);
    return 0;
}

/* Is every element what the band says: hidden outside of it; inside of it the key's own, which the diagonal has? Or
 * the key's and the query's own: then a query whose own key is hidden sees nothing, as in Flax' and Keras' masks of
 * padding. It is padding itself. */
static int mlo_is_band(const mlo_tracer *t, const mlo_mask_view *v, mlo_wrong *w) {
    const int64_t n = v->keys, step = v->rows > 1 ? n + 1 : 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0, alive = mlo_is_alive(t, v, j); alive && i < v->rows; i++) {
            int in = v->rows == 1 || (i - v->back <= j && j <= i + v->ahead);
            int64_t id = v->id[i * n + j];
            if (mlo_is_hidden(t, id) && in)
                return mlo_wrong_at(
                    w, "query %lld does not see key %lld, others as near do", 0, i, j);
            if (mlo_is_hidden(t, id)) continue;
            if (!in)
                return mlo_wrong_at(w, "query %lld sees key %lld, others as far do not", 0, i, j);
            if (id != v->id[j * step]
                && !(v->rows > 1 && mlo_symbol_is_both(t, id, v->id[i * step], v->id[j * step])))
                return mlo_wrong_at(
                    w, "query %lld adds to key %lld what other queries do not", 0, i, j);
        }
    for (int64_t k = n * v->rows; k < n * v->rows * v->copies; k++) {
        int64_t a = v->id[k], b = v->id[k % (n * v->rows)];
        if (a != b && !(mlo_is_hidden(t, a) && mlo_is_hidden(t, b)))
            return mlo_wrong_at(w, "query %lld adds to key %lld what other heads do not",
                k / (n * v->rows), k / n % v->rows, k % n);
    }
    return 1;
}

/* Is what is added to scores within a causal band the query's own, the same for all its keys? Softmax does not see
 * that; where it is as low as what hides keys the query is padding, which no query in front of it sees. */
static int mlo_is_of_queries(const mlo_tracer *t, const mlo_mask_view *v) {
    const int64_t n = v->keys, all = n * v->rows * v->copies;
    for (int64_t k = 0; k < all; k++) {
        const int64_t i = k / n % v->rows, j = k % n, own = v->id[i * (n + 1)];
        const int in = i - v->back <= j && j <= i + v->ahead;
        if (mlo_is_hidden(t, v->id[k]) == in) return 0;
        if (in && v->id[k] != own) return 0;
    }
    return v->rows > 1 && v->ahead == 0;
}

/* ---- the mask ------------------------------------------------------------- */

/* The elements of a mask in the tracer's iteration. 0: *w says what is wrong, or it has failed. */
static int mlo_view_elements(
    mlo_tracer *t, const char *name, int64_t keys, mlo_mask_view *v, mlo_wrong *w) {
    const mlo_array *a = mlo_trace(t, name);
    if (!a) return mlo_wrong_at(w, "it is too large to be followed", 0, 0, 0);
    v->id = (const int64_t *)a->data;
    v->keys = keys;
    v->rows = a->rank > 1 && a->dims[a->rank - 2] == keys ? keys : 1;
    v->copies = mlo_array_count(a) / (v->rows * keys);
    return 1;
}

/* Looks at a mask in the tracer's iteration. 0: *w says what is wrong, or it has failed. */
static int mlo_view_mask(
    mlo_tracer *t, const char *name, int64_t keys, mlo_mask_view *v, mlo_wrong *w) {
    v->of_queries = 0;
    if (!mlo_view_elements(t, name, keys, v, w) || mlo_band_of(t, v)) return 0;
    if (mlo_is_band(t, v, w)) return 1;
    v->of_queries = mlo_is_of_queries(t, v);
    if (!v->of_queries) return 0;
    w->what = NULL;
    if (!t->iteration)
        mlo_warn(t->m,
            "the mask '%s' hides all keys from queries that are padding, and padding's keys from "
            "none: padding behind all tokens changes nothing for them, padding in front of some "
            "does",
            name);
    return 1;
}

/* The key's own symbols, which all iterations and all masks of a loop have to share. */
static int mlo_same_keys(mlo_tracer *t, const mlo_mask_view *v, int64_t *own, mlo_wrong *w) {
    const int64_t step = v->rows > 1 ? v->keys + 1 : 1;
    for (int64_t j = 0; j < v->keys; j++) {
        const int64_t id = v->of_queries ? mlo_symbol_number(t, 0) : v->id[j * step];
        if (own[j] < 0) own[j] = id;
        if (own[j] != id && !(mlo_is_hidden(t, own[j]) && mlo_is_hidden(t, id)))
            return mlo_wrong_at(
                w, "query %lld adds to key %lld what other layers or attentions do not", 0, j, j);
    }
    return 1;
}

/* Causal, or a band, or neither: in all iterations together. */
static int mlo_sight_of(mlo *m, const int64_t *back, const int64_t *ahead, int64_t iterations,
    int64_t keys, mlo_sight *s) {
    s->causal = keys > 1;
    s->band = 0;
    s->back = MLO_NEW_N(m, int32_t, (size_t)iterations);
    s->ahead = MLO_NEW_N(m, int32_t, (size_t)iterations);
    if (!s->back || !s->ahead) return mlo_failed(m);
    for (int64_t i = 0; i < iterations; i++) {
        s->causal &= ahead[i] == 0;
        s->back[i] = (int32_t)back[i];
        s->ahead[i] = (int32_t)ahead[i];
    }
    for (int64_t i = 0; i < iterations; i++)
        s->band |= back[i] < keys - 1 || (!s->causal && ahead[i] < keys - 1);
    return 0;
}

/* What a mask is in all iterations; own: its keys' symbols (-1: not known yet). */
static int mlo_follow_mask(
    mlo_tracer *t, const char *name, int64_t keys, int64_t *own, mlo_sight *sight, mlo_wrong *w) {
    int64_t n = t->s->iterations, *back = MLO_NEW_N(t->m, int64_t, (size_t)(2 * n)), *ahead;
    if (!back) return mlo_failed(t->m);
    ahead = back + n;
    const mlo_value *v = mlo_value_of(t->s->body, name);
    const int varies = v && v->graph == t->s->body;
    for (int64_t i = 0; i < n; i++) {
        mlo_mask_view seen;
        w->iteration = t->iteration = i;
        back[i] = back[0];
        ahead[i] = ahead[0];
        if (i && !varies) continue;
        mlo_trace_forget(t->m, &t->now);
        if (!mlo_view_mask(t, name, keys, &seen, w) || !mlo_same_keys(t, &seen, own, w))
            return mlo_failed(t->m);
        back[i] = seen.back;
        ahead[i] = seen.ahead;
    }
    return mlo_sight_of(t->m, back, ahead, n, keys, sight);
}
