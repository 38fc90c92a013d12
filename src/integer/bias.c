/* bias: what a mask that is no band adds to scores: numbers of each iteration, head, query and key.
 *
 * in:  the symbols of a mask's elements (symbol.c), an iteration at a time.
 * out: the numbers, -INFINITY where a key is hidden; each key's own symbol, beside them.
 *
 * What all keys of a row have in common is taken off, as a softmax does not see it; queries and heads that
 * then are alike are joined. So ALiBi, a slope times the distance, becomes a slope times the key, the
 * same for all queries.
 *
 * invariant: each element is the key's own symbol plus a number, or hidden; every query sees a key.
 * example: a table by distance of 4 heads and 7 tokens: [4, 7, 7], the same in all iterations.
 * cost: O(elements), in each iteration where layers differ.
 */

/* ---- biases --------------------------------------------------------------- */

/* What is known of each key. */
typedef struct {
    int64_t *at; /* an element that is seen in the first iteration, -1: none */
    int64_t *seen; /* how many elements are */
    int64_t *before; /* its own symbol as it was before */
    float *more; /* the number of the element `at` */
} mlo_bias_keys;

/* The numbers of one iteration. 0: *w says what is wrong. */
static int mlo_bias_numbers(const mlo_tracer *t, const mlo_mask_view *v, int64_t *own,
    const mlo_bias_keys *k, float *number, mlo_wrong *w) {
    for (int64_t e = 0; e < v->copies * v->rows * v->keys; e++) {
        const int64_t j = e % v->keys;
        double more = 0;
        const int64_t base = mlo_symbol_base(t, v->id[e], &more);
        number[e] = -INFINITY;
        if (mlo_is_hidden(t, v->id[e])) continue;
        if (own[j] < 0) own[j] = base;
        if (!t->iteration && k->at[j] < 0) {
            k->at[j] = e;
            k->more[j] = (float)more;
        }
        k->seen[j]++;
        if (own[j] != base)
            return mlo_wrong_at(w,
                e / v->keys % v->rows ? "query %lld adds to key %lld what other queries do not"
                                      : "query %lld adds to key %lld what other heads, layers or "
                                        "attentions do not",
                e / (v->rows * v->keys), e / v->keys % v->rows, j);
        number[e] = (float)more;
    }
    for (int64_t r = 0; r < v->copies * v->rows; r++) {
        int64_t j = 0;
        while (j < v->keys && number[r * v->keys + j] <= -INFINITY) j++;
        if (j == v->keys)
            return mlo_wrong_at(w, "query %lld sees no key", r / v->rows, r % v->rows, 0);
    }
    return 1;
}

/* Is no later key seen anywhere? */
static int mlo_bias_causal(const mlo_bias *b) {
    const int64_t n = b->keys, all = b->n * b->heads * b->queries * n;
    int is = b->queries > 1;
    for (int64_t e = 0; is && e < all; e++) is = e % n <= e / n % n || b->number[e] <= -INFINITY;
    return is;
}

/* Do rows a and b of so many keys differ by one number? */
static int mlo_bias_parallel(const float *a, const float *b, int64_t keys, double tolerance) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t j = 0; j < keys; j++) {
        if ((a[j] <= -INFINITY) != (b[j] <= -INFINITY)) return 0;
        if (a[j] <= -INFINITY) continue;
        low = fmin(low, (double)a[j] - (double)b[j]);
        high = fmax(high, (double)a[j] - (double)b[j]);
    }
    return !(high - low > tolerance);
}

/* Where a causal query or the last one sees the same as the last one, one row does for all. */
static void mlo_bias_join_queries(mlo_bias *b, int causal) {
    const double tolerance = 1.0 / 10000; /* of a nat: a hundredth of what hardware tells apart */
    const int64_t n = b->keys, blocks = b->n * b->heads;
    for (int64_t r = 0; r < blocks * b->queries; r++) {
        const float *last = b->number + ((r / b->queries + 1) * b->queries - 1) * n;
        if (!mlo_bias_parallel(b->number + r * n, last, causal ? r % n + 1 : n, tolerance)) return;
    }
    for (int64_t k = 0; k < blocks; k++)
        memmove(b->number + k * n, b->number + ((k + 1) * b->queries - 1) * n,
            (size_t)n * sizeof *b->number);
    b->queries = 1;
}

/* Takes off each row what its keys have in common. Returns the largest magnitude left; INFINITY where a
 * key is hidden that counts otherwise. */
static double mlo_bias_center(mlo_bias *b, int causal) {
    const int64_t n = b->keys;
    double most = 0;
    for (int64_t r = 0; r < b->n * b->heads * b->queries; r++) {
        float *row = b->number + r * n;
        const int64_t until = causal && b->queries > 1 ? r % n + 1 : n;
        double low = INFINITY, high = -INFINITY;
        for (int64_t j = 0; j < n; j++) {
            if (row[j] <= -INFINITY) continue;
            low = fmin(low, (double)row[j]);
            high = fmax(high, (double)row[j]);
        }
        for (int64_t j = 0; j < n; j++) {
            if (row[j] > -INFINITY) row[j] = (float)((double)row[j] - (low + high) / 2);
            if (j < until) most = fmax(most, fabs((double)row[j]));
        }
    }
    return most;
}

static void mlo_bias_join_heads(mlo_bias *b) {
    const int64_t each = b->queries * b->keys;
    for (int64_t k = 0; k < b->n * b->heads; k++)
        for (int64_t e = 0; e < each; e++) {
            const float x = b->number[k * each + e],
                        y = b->number[k / b->heads * b->heads * each + e];
            if (mlo_differs(x, y)) return;
        }
    for (int64_t i = 0; i < b->n; i++)
        memmove(b->number + i * each, b->number + i * b->heads * each,
            (size_t)each * sizeof *b->number);
    b->heads = 1;
}

/* The numbers of all iterations, before anything is joined. */
static int mlo_follow_numbers(mlo_tracer *t, const char *name, int64_t keys, int64_t heads,
    int64_t *own, const mlo_bias_keys *k, mlo_bias *b, mlo_wrong *w) {
    const mlo_value *value = mlo_value_of(t->s->body, name);
    b->n = value && value->graph == t->s->body ? t->s->iterations : 1;
    for (int64_t i = 0; i < b->n; i++) {
        mlo_mask_view v;
        w->iteration = t->iteration = i;
        if (b->n > 1) mlo_trace_forget(t->m, &t->now);
        if (!mlo_view_elements(t, name, keys, &v, w)) return mlo_failed(t->m);
        if (v.copies != 1 && v.copies != heads) {
            mlo_wrong_at(w, "it is of other heads than the scores", 0, 0, 0);
            return 0;
        }
        const int64_t each = v.copies * v.rows * keys;
        b->heads = v.copies;
        b->queries = v.rows;
        b->keys = keys;
        if (!b->number) b->number = MLO_NEW_N(t->m, float, (size_t)(b->n * each));
        if (!b->number || !mlo_bias_numbers(t, &v, own, k, b->number + i * each, w))
            return mlo_failed(t->m);
        for (int64_t j = 0; j < keys; j++) /* nobody sees it: it is hidden */
            if (!k->seen[j] && own[j] < 0) own[j] = v.id[j];
    }
    w->iteration = 0; /* what is said now is so of all */
    for (int64_t j = 0; j < keys; j++)
        if ((k->seen[j] && k->at[j] < 0) || (!k->seen[j] && !mlo_is_hidden(t, own[j]))) {
            mlo_wrong_at(
                w, "query %lld hides key %lld, which other layers or attentions do not", 0, 0, j);
            return 0;
        }
    return 0;
}

/* What a mask is in all iterations that is no band: numbers that parameters say, beside the keys' own
 * symbols. */
static int mlo_follow_bias(mlo_tracer *t, const char *name, int64_t keys, int64_t heads,
    int64_t *own, const mlo_bias_keys *k, mlo_sight *sight, mlo_wrong *w) {
    mlo_bias b = { 0, 0, 0, 0, NULL };
    for (int64_t j = 0; j < keys; j++) {
        k->at[j] = -1;
        k->seen[j] = 0;
    }
    if (mlo_follow_numbers(t, name, keys, heads, own, k, &b, w) || w->what) return mlo_failed(t->m);
    memset(sight, 0, sizeof *sight);
    sight->causal = mlo_bias_causal(&b);
    if (b.queries > 1) mlo_bias_join_queries(&b, sight->causal);
    const double most = mlo_bias_center(&b, sight->causal);
    mlo_bias_join_heads(&b);
    if (most > 1e-6) sight->bias = b;
    return 0;
}
