/* exact_heads: attention of a network of integers, as kernels, exactly.
 *
 * in:  softmax(q k^T ..) v of heads in Deeploy's dialect: queries, keys and values are made by linear layers, taken
 *     apart into heads, and perhaps turned by a matrix for each token; a RequantShift behind each product; between
 *     scores and iSoftmax what is done number by number, and a mask's number that is added.
 * out: AttentionTable, and in front of it Rotary where queries and keys are turned. A past: keys and values of earlier
 *     tokens, which a Concat puts in front of a layer's own, come into each iteration; keys and values may leave it.
 *
 * invariant: all that is done between scores and mix is a function of 8 bits: it is asked for each of the 256, and
 *     that is the kernel's table. What is none (a mask of any numbers, scores of more bits) is refused, with the node.
 * example: microLlama's layers: 16 heads of 4 channels, pairs (i, i + 2), TrueIntegerDiv in front of iSoftmax.
 * cost: 256 numbers through a chain of operators in each iteration.
 */

/* ---- attention -------------------------------------------------------------- */

/* The constants of softmax, as exact/deeploy.c has them; n - 1 behind. */
enum { MLO_EXACT_SOFTMAX = 5 };

/* From a value back, through functions of a number and views: the functions, the first in front; the views, the last
 * in front; where both end. */
typedef struct {
    mlo_exact_chain done;
    mlo_chain views;
} mlo_exact_walk;

/* An attention, from its end to its beginning. */
typedef struct mlo_exact_heads {
    mlo_node *mix; /* probabilities by values */
    mlo_node *softmax;
    mlo_node *scores; /* queries by keys */
    mlo_exact_chain probs; /* behind the softmax */
    mlo_exact_chain masked; /* behind the mask */
    mlo_exact_chain scaled; /* behind the scores */
    const char *mask; /* what is added; NULL: nothing */
    int64_t heads;
    int64_t d;
    int64_t keys;
    int hide; /* of the kernel */
    int bits[2]; /* of weights: of the largest, of the least that a largest score has */
    const char *score; /* parameters */
    const char *weight;
    int64_t *order[3]; /* [d]: of queries', keys', values' channels within a head */
    mlo_exact_cache cache[3]; /* of keys, values (1, 2) */
} mlo_exact_heads;

/* A function of one number, the same for all there are: in whatever order they lie. */
static int mlo_exact_is_plain(const mlo_takeover *x, const mlo_node *n) {
    if (!mlo_exact_is_function(x, n)) return 0;
    for (size_t k = 1; k < n->n_input; k++)
        if (mlo_has_input(n, k) && !mlo_is_number(x->in, n->input[k])) return 0;
    return 1;
}

/* What a Concat hands on that joins it to nothing: a past without elements. NULL: it is none. */
static const char *mlo_exact_joined_to_none(const mlo_takeover *x, const mlo_node *n) {
    const char *from = NULL;
    for (size_t k = 0; mlo_is(n, "Concat") && k < n->n_input; k++) {
        const mlo_form f = mlo_body_form(x->in, n->input[k]);
        const int empty = mlo_form_known(&f) && !mlo_form_count(&f);
        if (!empty && from) return NULL;
        if (!empty) from = n->input[k];
    }
    return from && mlo_is_carried(x->in, from) ? from : NULL;
}

/* One step back, into w: a view, a function of a number, what is joined to nothing. NULL: it is neither. */
static const char *mlo_exact_step_back(const mlo_takeover *x, const char *name, mlo_exact_walk *w) {
    mlo_node *p = mlo_made_by(x->in, name);
    const char *from = p ? mlo_exact_joined_to_none(x, p) : NULL;
    if (!p || from) return from;
    if (mlo_is_layout(p) && mlo_is_carried(x->in, p->input[0]) && w->views.n < MLO_CHAIN) {
        w->views.node[w->views.n] = p;
        w->views.made[w->views.n++] = name;
    } else if (mlo_exact_is_plain(x, p) && w->done.n < MLO_EXACT_CHAIN)
        mlo_exact_push(&w->done, p);
    else
        return NULL;
    return p->input[0];
}

/* deep: to the end; else to where the last view is: what is behind that is in the stream's own order. */
static void mlo_exact_walk_back(
    const mlo_takeover *x, const char *name, int deep, mlo_exact_walk *w) {
    const char *end = name, *from;
    int n = 0, views = 0;
    memset(w, 0, sizeof *w);
    for (; (from = mlo_exact_step_back(x, name, w)) != NULL; name = from) {
        if (w->views.n == views) continue;
        views = w->views.n;
        end = from;
        n = w->done.n;
    }
    w->done.base = deep ? name : end;
    if (deep) return;
    for (int k = w->done.n - n, i = 0; i < n; i++) w->done.node[i] = w->done.node[i + k];
    w->done.n = n;
}

/* Functions alone, without views. */
static mlo_node *mlo_exact_behind(const mlo_takeover *x, const char *name, mlo_exact_chain *c) {
    mlo_node *p;
    c->n = 0;
    while (mlo_exact_is_plain(x, p = mlo_made_by(x->in, name)) && c->n < MLO_EXACT_CHAIN) {
        mlo_exact_push(c, p);
        name = p->input[0];
    }
    c->base = name;
    return p;
}

/* Is a value a product of two streams, behind functions and views, the first of which is a softmax's? */
static int mlo_exact_mixes(const mlo_takeover *x, const char *name, mlo_exact_walk *w) {
    mlo_exact_chain c;
    mlo_exact_walk_back(x, name, 1, w);
    const mlo_node *n = mlo_made_by(x->in, w->done.base);
    return mlo_is(n, "MatMul") && mlo_is_carried(x->in, n->input[0])
        && mlo_is_carried(x->in, n->input[1])
        && mlo_is(mlo_exact_behind(x, n->input[0], &c), "mlo.iSoftmax");
}

static int mlo_exact_is_identity_map(const mlo_array *map) {
    for (int64_t i = 0; map && i < mlo_array_count(map); i++)
        if (((const int32_t *)map->data)[i] != i) return 0;
    return map != NULL;
}

/* Is a value another one of the same tokens and channels, in another form? */
static int mlo_exact_is_view(const mlo_takeover *x, const char *name, mlo_exact_walk *w) {
    const mlo_form to = mlo_body_form(x->in, name);
    mlo_exact_walk_back(x, name, 0, w);
    const mlo_form from = mlo_body_form(x->in, w->done.base);
    if (x->grid || w->done.n || !w->views.n || mlo_last_dim(&from) != mlo_last_dim(&to)) return 0;
    mlo_array *map = mlo_index_map(x->in, w->done.base, &w->views);
    const int same = mlo_exact_is_identity_map(map);
    mlo_array_free(x->in->m, map);
    return same;
}

static mlo_exact_value *mlo_exact_view(mlo_takeover *x, const mlo_exact_walk *w, const char *name) {
    const mlo_exact_value *v = mlo_exact_of(x, w->done.base);
    return v ? mlo_exact_made(x, name, v->name, v->range, v->channels) : NULL;
}

/* Does a chain leave all numbers of a range as they are, in every iteration? 1, 0 (or it failed). */
static int mlo_exact_is_nothing(mlo_takeover *x, const mlo_exact_chain *c, mlo_interval range) {
    const int bits = mlo_bits_for(range);
    const int64_t size = mlo_two_to(bits);
    if (!c->n || bits > MLO_EXACT_TABLE) return !c->n;
    int64_t *entry = (int64_t *)mlo_scratch(x->q->m, (size_t)size, sizeof *entry);
    int same = entry != NULL;
    for (int64_t i = 0; same && i < x->q->scan.iterations; i++) {
        same = !mlo_exact_entries(x, c, 0, i, bits, range, entry);
        for (int64_t k = 0; same && k < size; k++)
            same = entry[k] == mlo_clip(k - size / 2, range.lo, range.hi);
    }
    mlo_scratch_free(x->q->m, entry);
    return same;
}

/* An operand's stream: what is in front of its views, with what is done to its numbers between them. */
static mlo_exact_value *mlo_exact_operand(
    mlo_takeover *x, const mlo_exact_walk *w, const char *name) {
    mlo_exact_value *v = mlo_exact_of(x, w->done.base);
    mlo_exact_value *made = (mlo_exact_value *)mlo_map_get(&x->made, name);
    if (!v || made || mlo_exact_is_nothing(x, &w->done, v->range)) return made ? made : v;
    return x->q->m->error.code ? NULL : mlo_exact_alone(x, &w->done, name);
}

/* Is a value that lies as tokens of heads do seen as heads of tokens? */
static int mlo_exact_is_headed(
    const mlo_takeover *x, const char *source, const mlo_chain *views, const mlo_heads *v) {
    const mlo_form f = mlo_body_form(x->in, source);
    const int64_t width = v->heads * v->d;
    mlo_array *map = mlo_form_count(&f) == v->t * width ? mlo_index_map(x->in, source, views)
                                                        : NULL;
    int ok = map && mlo_array_count(map) == v->t * width;
    for (int64_t k = 0; ok && k < v->t * width; k++)
        ok = ((const int32_t *)map->data)[mlo_head_place(v, k % width / v->d, k / width, k % v->d)]
            == k;
    mlo_array_free(x->in->m, map);
    return ok;
}

/* ---- rotations ---------------------------------------------------------------- */

/* A matrix for each token that turns pairs of a head's channels. */
typedef struct {
    const mlo_node *node;
    int64_t d;
    int64_t tokens; /* of the matrices: one for all, or one for each */
    int64_t *order; /* [d]: pairs side by side */
    const char *table;
} mlo_exact_rotation;

/* x [.., T, H, D] times [.., T, D, D], which no layer makes. */
static int mlo_exact_is_turn(const mlo_takeover *x, const mlo_node *n) {
    if (!mlo_is(n, "MatMul") || !mlo_is_carried(x->in, n->input[0])
        || mlo_is_carried(x->in, n->input[1]))
        return 0;
    const mlo_form w = mlo_body_form(x->in, n->input[1]), y = mlo_body_form(x->in, n->output[0]);
    return w.rank > 2 && mlo_last_dim(&w) == w.dims[w.rank - 2]
        && mlo_last_dim(&w) == mlo_last_dim(&y);
}

/* The number of a token's matrix that channel i of what is turned has in channel j of the result. */
static int64_t mlo_exact_turn_at(
    const mlo_exact_rotation *t, const mlo_array *a, int64_t token, int64_t i, int64_t j) {
    return mlo_get(a, ((t->tokens > 1 ? token : 0) * t->d + i) * t->d + j);
}

/* Which channel turns with which, as these matrices say: partner[i], -1: with none. */
static int mlo_exact_partners(
    mlo_takeover *x, const mlo_exact_rotation *t, const mlo_array *a, int64_t *partner) {
    for (int64_t k = 0; k < t->tokens * t->d * t->d; k++) {
        const int64_t i = k / t->d % t->d, j = k % t->d;
        if (i == j || !mlo_exact_turn_at(t, a, k / (t->d * t->d), i, j)) continue;
        if ((partner[i] >= 0 && partner[i] != j) || (partner[j] >= 0 && partner[j] != i))
            return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, t->node,
                "a matrix for each token that mixes channel %lld of a head with channels %lld and "
                "%lld; hardware turns pairs of channels",
                (long long)i, (long long)j, (long long)(partner[i] >= 0 ? partner[i] : partner[j]));
        partner[i] = j;
        partner[j] = i;
    }
    return 0;
}

/* Pairs side by side; channels that stay as they are make pairs, too. */
static int mlo_exact_order(mlo_takeover *x, mlo_exact_rotation *t, const int64_t *partner) {
    int64_t n = 0, lone = -1;
    for (int64_t i = 0; i < t->d; i++) {
        if (partner[i] > i) {
            t->order[n++] = i;
            t->order[n++] = partner[i];
        } else if (partner[i] < 0 && lone >= 0) {
            t->order[n++] = lone;
            t->order[n++] = i;
            lone = -1;
        } else if (partner[i] < 0)
            lone = i;
    }
    return n == t->d
        ? 0
        : mlo_fail(x->q->m, MLO_E_UNSUPPORTED, t->node,
              "heads of %lld channels that are turned; pairs take an even number", (long long)t->d);
}

/* Cosines and sines of one iteration's pairs. */
static int mlo_exact_turns(
    mlo_takeover *x, const mlo_exact_rotation *t, const mlo_array *a, int64_t i, int16_t *to) {
    for (int64_t k = 0; k < x->tokens * t->d; k += 2) {
        const int64_t token = k / t->d, p = t->order[k % t->d], q = t->order[k % t->d + 1];
        const int64_t c = mlo_exact_turn_at(t, a, token, p, p);
        const int64_t s = mlo_exact_turn_at(t, a, token, p, q);
        if (mlo_exact_turn_at(t, a, token, q, q) != c || mlo_exact_turn_at(t, a, token, q, p) != -s
            || mlo_bits_for(mlo_joined(mlo_just(c), mlo_just(s))) > 16)
            return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, t->node,
                "the matrix of token %lld in iteration %lld has %lld, %lld, %lld, %lld for "
                "channels "
                "%lld and %lld of a head; a rotation has c, s, -s, c, of 16 bits",
                (long long)token, (long long)i, (long long)c, (long long)s,
                (long long)mlo_exact_turn_at(t, a, token, q, p),
                (long long)mlo_exact_turn_at(t, a, token, q, q), (long long)p, (long long)q);
        to[k] = (int16_t)c;
        to[k + 1] = (int16_t)s;
    }
    return 0;
}

/* Its matrices of all iterations: pairs, then their table, as a parameter. */
static int mlo_exact_turn_table(mlo_takeover *x, mlo_exact_rotation *t, const char *name) {
    mlo *m = x->q->m;
    const char *matrix = t->node->input[1];
    const int64_t shape[] = { x->tokens, t->d };
    int64_t *partner = (int64_t *)mlo_scratch(m, (size_t)t->d, sizeof *partner);
    int16_t *to = NULL;
    for (int64_t k = 0; partner && k < t->d; k++) partner[k] = -1;
    for (int pass = 0; pass < 2 && !m->error.code; pass++) {
        if (pass && !mlo_exact_order(x, t, partner)) {
            t->table = mlo_format(m, "%s_turns", name);
            to = t->table ? (int16_t *)mlo_parameter(x->q, t->table, MLO_INT16, 2, shape) : NULL;
        }
        for (int64_t i = 0; i < x->q->scan.iterations && !m->error.code; i++) {
            mlo_array *a = mlo_exact_whole(x, x->in->body, t->node, matrix, i);
            if (a && pass)
                mlo_exact_turns(x, t, a, i, to + i * x->tokens * t->d);
            else if (a)
                mlo_exact_partners(x, t, a, partner);
            mlo_array_free(m, a);
        }
    }
    mlo_scratch_free(m, partner);
    return mlo_failed(m);
}

static int mlo_exact_turn_inputs(
    mlo_takeover *x, const mlo_exact_unit *u, const mlo_node *r, const char *name, mlo_node *n) {
    mlo_quantizer *q = x->q;
    const mlo_exact_rotation *t = (const mlo_exact_rotation *)u->with;
    const int64_t two = 2;
    const char *p = mlo_format(q->m, "%s_p", name);
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &two) : NULL;
    for (int64_t i = 0; data && i < q->scan.iterations; i++, data += two)
        if (!mlo_exact_one(x, u, r, i, &data[0], &data[1])) return mlo_failed(q->m);
    const char *in[] = { u->in[0], t->table, p };
    if (q->m->error.code || mlo_attr_int(q->m, n, "heads", u->channels / t->d))
        return mlo_failed(q->m);
    return mlo_inputs(q->m, n, in, 3);
}

/* A stream whose heads have their channels in this order: the linear layer that makes it makes them so. */
static mlo_exact_value *mlo_exact_reordered(
    mlo_takeover *x, const mlo_node *blame, const char *base, const mlo_exact_rotation *t) {
    mlo *m = x->q->m;
    mlo_exact_chain c;
    const char *bias, *name = mlo_format(m, "%s_paired", base);
    if (mlo_is_identity(t->order, t->d)) return mlo_exact_of(x, base);
    mlo_exact_chain_of(x, base, &c);
    mlo_node *layer = mlo_exact_layer(x, c.base, &bias);
    const int64_t n = layer ? mlo_exact_channels(x, layer, c.base) : 0;
    if (!layer && !m->error.code)
        mlo_fail(m, MLO_E_UNSUPPORTED, blame,
            "pairs of channels that are not side by side, of '%s', which no linear layer makes; "
            "such a one "
            "makes its channels in the order that hardware takes",
            base);
    int64_t *order = n && mlo_exact_of(x, layer->input[0]) ? MLO_NEW_N(m, int64_t, (size_t)n)
                                                           : NULL;
    for (int64_t k = 0; order && k < n; k++) order[k] = k / t->d * t->d + t->order[k % t->d];
    if (!order || !name) return NULL;
    x->order = order;
    mlo_exact_value *v = mlo_exact_linear(x, layer, bias, &c, name);
    x->order = NULL;
    return v;
}

/* What is behind a rotation, as `name`, of heads of tokens; the order that its channels have then: into h. */
static mlo_exact_value *mlo_exact_turned(
    mlo_takeover *x, const mlo_exact_heads *h, int k, mlo_exact_walk *w, const char *name) {
    mlo *m = x->q->m;
    mlo_node *n = mlo_made_by(x->in, w->done.base), *own;
    const mlo_form f = mlo_body_form(x->in, n->input[1]);
    const mlo_heads as_tokens = { x->tokens, 1, h->heads * h->d, 0 };
    mlo_exact_rotation t = { n, h->d, mlo_form_count(&f) / (h->d * h->d), h->order[k], NULL };
    mlo_exact_walk from;
    mlo_exact_walk_back(x, n->input[0], 0, &from);
    if (mlo_last_dim(&f) != h->d || (t.tokens != 1 && t.tokens != x->tokens) || from.done.n
        || !mlo_exact_is_headed(x, from.done.base, &from.views, &as_tokens)) {
        mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "a matrix %s for heads of %lld channels; a rotation is of [tokens, heads, channels], "
            "with a "
            "matrix for each token, or one for all",
            mlo_dims_text(m, f.rank, f.dims), (long long)h->d);
        return NULL;
    }
    if (!mlo_is_parameter(&x->q->scan, x->in->body, n->input[1], 0)) {
        mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "a rotation by '%s', which is known when the model runs; hardware has tables of "
            "constants: "
            "--hold FILE.npz makes one of it",
            n->input[1]);
        return NULL;
    }
    if (mlo_exact_turn_table(x, &t, name)) return NULL;
    const mlo_exact_value *v = mlo_exact_reordered(x, n, from.done.base, &t);
    if (!v) return NULL;
    const mlo_exact_unit u = { &mlo_rotary_kernel, n, { v->name, NULL, NULL }, 2, NULL, NULL,
        mlo_from_to(1, 0), v->channels, mlo_exact_turn_inputs, &t };
    mlo_exact_chain rest = w->done;
    mlo_interval clips;
    int same;
    for (rest.n = 0; rest.n + 1 < w->done.n; rest.n++) rest.node[rest.n] = w->done.node[rest.n + 1];
    if (w->done.n && mlo_is_requant_shift(w->done.node[0])
        && !mlo_exact_clips(x, x->in->body, w->done.node[0], x->q->scan.iterations, &clips, &same)
        && mlo_exact_is_nothing(x, &rest, clips))
        w->done.n = 1;
    return m->error.code ? NULL : mlo_exact_finish(x, &u, &w->done, name, &own);
}

/* ---- what stays ------------------------------------------------------------------ */

/* Back to a value: what is between. 1: it leads there. */
static int mlo_exact_back_to(
    const mlo_takeover *x, const char *name, const char *to, mlo_exact_walk *w) {
    memset(w, 0, sizeof *w);
    while (name && name != to) name = mlo_exact_step_back(x, name, w);
    w->done.base = to;
    return name != NULL;
}

/* Is a value that lies as heads of tokens seen so (key: as tokens of channels)? */
static int mlo_exact_is_handed(
    const mlo_takeover *x, const mlo_exact_heads *h, const mlo_exact_walk *w, int key) {
    const mlo_heads to = { h->keys, h->heads, h->d, key };
    mlo_array *map = mlo_index_map(x->in, w->done.base, &w->views);
    const int64_t count = h->heads * h->keys * h->d;
    int ok = map && mlo_array_count(map) == count;
    for (int64_t k = 0; ok && k < count; k++)
        ok = ((const int32_t *)map->data)[mlo_head_place(
                 &to, k / (h->d * h->keys), k / h->d % h->keys, k % h->d)]
            == k;
    mlo_array_free(x->in->m, map);
    return ok;
}

/* The past that a Concat puts in front: it comes into each iteration when the model runs. NULL: it is none. */
static const char *mlo_exact_past_of(const mlo_takeover *x, const mlo_node *n) {
    if (!mlo_is(n, "Concat") || n->n_input != 2 || mlo_is_carried(x->in, n->input[0])
        || !mlo_is_carried(x->in, n->input[1]))
        return NULL;
    for (size_t k = x->q->scan.n_state; k < x->in->body->n_input; k++)
        if (x->in->body->input[k]->name == n->input[0])
            return mlo_is_parameter(&x->q->scan, x->in->body, n->input[0], 0) ? NULL : n->input[0];
    return NULL;
}

/* Keys (k = 1) or values with a past in front: *name becomes what is put behind it. */
static int mlo_exact_past(mlo_takeover *x, mlo_exact_heads *h, int k, const char **name) {
    mlo_exact_cache *c = &h->cache[k];
    mlo_exact_walk w;
    mlo_exact_walk_back(x, *name, 1, &w);
    const mlo_node *n = mlo_made_by(x->in, w.done.base);
    c->past = n ? mlo_exact_past_of(x, n) : NULL;
    if (!c->past) return mlo_failed(x->q->m);
    const mlo_form f = mlo_body_form(x->in, c->past), all = mlo_body_form(x->in, w.done.base);
    const int at = f.rank - 2;
    const int64_t axis = mlo_int(n, "axis", 0);
    c->from = n;
    c->tokens = at < 0 ? 0 : f.dims[at];
    if (at < 1 || (axis < 0 ? axis + f.rank : axis) != at || all.dims[at] != h->keys
        || c->tokens != h->keys - x->tokens || f.dims[at + 1] != h->d
        || mlo_form_count(&f) != h->heads * c->tokens * h->d
        || !mlo_exact_is_handed(x, h, &w, k == 1))
        return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, n,
            "a past '%s', %s, in front of %s of %lld heads of %lld channels; one is of [1, %lld, "
            "tokens, %lld], joined along the tokens, and read as it is",
            c->past, mlo_dims_text(x->q->m, f.rank, f.dims), k == 1 ? "keys" : "values",
            (long long)h->heads, (long long)h->d, (long long)h->heads, (long long)h->d);
    *name = n->input[1];
    return 0;
}

/* The value on the way to keys or values that leaves the iteration, the last one; NULL: none does. */
static const char *mlo_exact_tapped(const mlo_takeover *x, const char *name) {
    const mlo_graph *body = x->in->body;
    mlo_exact_walk w;
    memset(&w, 0, sizeof w);
    for (; name; name = mlo_exact_step_back(x, name, &w))
        for (size_t i = x->q->scan.n_state; i < body->n_output; i++)
            if (body->output[i]->name == name) return name;
    return NULL;
}

/* Is what leaves the iteration what attention reads, as heads of tokens? */
static int mlo_exact_leaves(mlo_takeover *x, const mlo_exact_heads *h, int k,
    const mlo_exact_walk *own, int turned, mlo_interval range) {
    const mlo_exact_cache *c = &h->cache[k];
    const mlo_node *reader = k < 2 ? h->scores : h->mix;
    const mlo_heads at = { x->tokens, h->heads, h->d, 0 };
    mlo_exact_walk w;
    if (!mlo_exact_back_to(x, reader->input[1], c->tap, &w)
        || !mlo_exact_is_nothing(x, &w.done, range))
        return 0;
    if (c->past)
        return mlo_exact_back_to(x, c->tap, c->from->output[0], &w)
            && mlo_exact_is_handed(x, h, &w, 0);
    mlo_exact_walk_back(x, c->tap, turned, &w);
    return w.done.base == own->done.base && mlo_exact_is_headed(x, w.done.base, &w.views, &at);
}

/* A past comes into the new body, in front of stream v. */
static int mlo_exact_joined(mlo_takeover *x, mlo_exact_cache *c, const mlo_exact_value *v) {
    mlo *m = x->q->m;
    const mlo_form f = { mlo_exact_type(x, v->name, c->bits), 3, { 1, c->tokens, v->channels } };
    const char *past = mlo_format(m, "%s_past", v->name);
    mlo_value_info *info = past ? mlo_info_new(m, past, &f) : NULL;
    c->name = mlo_format(m, "%s_all", v->name);
    c->stack = mlo_format(m, "%s_past_stack", v->name);
    mlo_node *n = c->name ? mlo_node_new(m, "Concat", c->name) : NULL;
    const char *in[] = { past, v->name };
    return !n || !info || !c->stack || mlo_node_input(m, x->q->loop, c->stack)
        || !MLO_PUSH(m, x->q->body->input, x->q->body->n_input, info)
        || mlo_attr_int(m, n, "axis", 1) || mlo_inputs(m, n, in, 2)
        || mlo_node_output(m, n, c->name) || mlo_graph_add(m, x->q->body, n);
}

/* What stays of keys (k = 1) or values, whose stream is v; own: the way back to it. */
static int mlo_exact_kept(mlo_takeover *x, mlo_exact_heads *h, int k, const mlo_exact_value *v,
    const mlo_exact_walk *own, int turned) {
    mlo *m = x->q->m;
    mlo_exact_cache *c = &h->cache[k];
    const mlo_node *reader = k < 2 ? h->scores : h->mix;
    c->tap = mlo_exact_tapped(x, reader->input[1]);
    if (!c->past && !c->tap) return 0;
    c->order = h->order[k];
    c->heads = h->heads;
    c->d = h->d;
    c->keys = h->keys;
    c->name = v->name;
    c->bits = mlo_bits_for(v->range);
    const mlo_interval range = c->past ? mlo_signed_bits(c->bits) : v->range;
    mlo_exact_walk w;
    if (c->past
        && (!mlo_exact_back_to(x, reader->input[1], c->from->output[0], &w)
            || !mlo_exact_is_nothing(x, &w.done, range)))
        return m->error.code ? mlo_failed(m)
                             : mlo_fail(m, MLO_E_UNSUPPORTED, c->from,
                                   "a past '%s' of integers that are changed behind it; those of "
                                   "%d bits, as layers put behind it, are read as they are",
                                   c->past, c->bits);
    if (c->tap && !mlo_exact_leaves(x, h, k, own, turned, range))
        return m->error.code
            ? mlo_failed(m)
            : mlo_fail(m, MLO_E_UNSUPPORTED, reader,
                  "'%s' leaves every layer, on the way to %s, and is not what attention reads; "
                  "what "
                  "leaves is of [1, %lld, %lld, %lld], the numbers that are multiplied",
                  c->tap, k == 1 ? "keys" : "values", (long long)h->heads, (long long)h->keys,
                  (long long)h->d);
    if (c->past && mlo_exact_joined(x, c, v)) return mlo_failed(m);
    return MLO_PUSH(m, x->cache, x->n_cache, *c) ? 0 : mlo_failed(m);
}

/* Operand k of an attention (queries, keys, values), laid out as heads of a token's channels. */
static mlo_exact_value *mlo_exact_of_heads(mlo_takeover *x, mlo_exact_heads *h, int k) {
    static const char *const what[] = { "queries", "keys", "values" };
    mlo *m = x->q->m;
    const mlo_node *n = k < 2 ? h->scores : h->mix;
    const char *name = n->input[k > 0];
    mlo_exact_walk w;
    if (k && mlo_exact_past(x, h, k, &name)) return NULL;
    const mlo_heads at = { x->tokens, h->heads, h->d, k == 1 && !h->cache[k].past };
    for (int64_t c = 0; c < h->d; c++) h->order[k][c] = c;
    mlo_exact_walk_back(x, name, 1, &w);
    const int turned = mlo_exact_is_turn(x, mlo_made_by(x->in, w.done.base));
    if (!turned) mlo_exact_walk_back(x, name, 0, &w);
    const mlo_form f = mlo_body_form(x->in, w.done.base), last = mlo_body_form(x->in, name);
    if ((!turned && mlo_last_dim(&f) != h->heads * h->d)
        || !mlo_exact_is_headed(x, w.done.base, &w.views, &at)) {
        if (!m->error.code)
            mlo_fail(m, MLO_E_UNSUPPORTED, n,
                "%s that are no heads of a token's channels: '%s', %s, behind '%s', %s (a past "
                "that is a constant, "
                "keys that heads share have no exact kernel)",
                what[k], name, mlo_dims_text(m, last.rank, last.dims), w.done.base,
                mlo_dims_text(m, f.rank, f.dims));
        return NULL;
    }
    const mlo_exact_walk own = w;
    mlo_exact_value *v = turned ? mlo_exact_turned(x, h, k, &w, name)
                                : mlo_exact_operand(x, &w, name);
    return v && k && mlo_exact_kept(x, h, k, v, &own, turned) ? NULL : v;
}

/* Are heads joined to tokens again, [heads, tokens, d] to [tokens, heads d]? */
static int mlo_exact_joins(const mlo_takeover *x, const mlo_exact_heads *h, const mlo_chain *c) {
    mlo_array *map = mlo_index_map(x->in, h->mix->output[0], c);
    const int64_t width = h->heads * h->d;
    int ok = map && mlo_array_count(map) == x->tokens * width;
    for (int64_t i = 0; ok && i < x->tokens * width; i++)
        ok = ((const int32_t *)map->data)[i]
            == (i % width / h->d * x->tokens + i / width) * h->d + i % h->d;
    mlo_array_free(x->in->m, map);
    return ok;
}

/* Finds an attention's parts from its mix on. */
static int mlo_exact_parts(mlo_takeover *x, mlo_node *mix, mlo_exact_heads *h) {
    mlo *m = x->q->m;
    memset(h, 0, sizeof *h);
    h->mix = mix;
    h->softmax = mlo_exact_behind(x, mix->input[0], &h->probs);
    mlo_node *n = mlo_exact_behind(x, h->softmax->input[0], &h->masked);
    if (mlo_is(n, "Add")) {
        const int first = mlo_is_carried(x->in, n->input[0]);
        if (mlo_is_carried(x->in, n->input[first]))
            return mlo_fail(m, MLO_E_UNSUPPORTED, n, "scores that get a sum of the layer's own");
        h->mask = n->input[first];
        n = mlo_exact_behind(x, n->input[1 - first], &h->scaled);
    } else
        h->scaled = h->masked;
    if (!h->mask) h->masked.n = 0;
    h->scores = n;
    if (!mlo_is(n, "MatMul") || !mlo_is_carried(x->in, n->input[0])
        || !mlo_is_carried(x->in, n->input[1]))
        return mlo_fail(m, MLO_E_UNSUPPORTED, h->softmax,
            "a softmax of what is no product of queries and keys, with functions of one number and "
            "at "
            "most one mask behind");
    const mlo_form s = mlo_body_form(x->in, n->output[0]);
    const mlo_form o = mlo_body_form(x->in, mix->output[0]);
    if (x->grid || s.rank < 3 || o.rank != s.rank || s.dims[s.rank - 2] != x->tokens
        || s.dims[s.rank - 1] < x->tokens)
        return mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "scores %s of %lld tokens; attention is of [.., heads, %lld, %lld and those of a past]",
            mlo_dims_text(m, s.rank, s.dims), (long long)x->tokens, (long long)x->tokens,
            (long long)x->tokens);
    h->keys = s.dims[s.rank - 1];
    h->heads = mlo_form_count(&s) / (x->tokens * h->keys);
    h->d = mlo_last_dim(&o);
    return 0;
}

/* What a mask adds to scores of keys that it shows, and hides: an iteration's. Those behind the query are hidden, or
 * all are alike. */
static int mlo_exact_mask(mlo_takeover *x, mlo_exact_heads *h, int64_t i, int64_t add[2]) {
    mlo *m = x->q->m;
    const mlo_node *reader = mlo_made_by(
        x->in, h->masked.n ? h->masked.node[0]->input[0] : h->softmax->input[0]);
    add[0] = add[1] = 0;
    if (!h->mask) return 0;
    if (!mlo_is_parameter(&x->q->scan, x->in->body, h->mask, 0))
        return mlo_fail(m, MLO_E_UNSUPPORTED, reader,
            "a mask '%s' that is known when the model runs; attention of integers has masks that "
            "are "
            "constants: --hold FILE.npz makes one of it",
            h->mask);
    mlo_array *a = mlo_exact_whole(x, x->in->body, reader, h->mask, i);
    if (!a) return mlo_failed(m);
    const int64_t t = x->tokens, keys = h->keys, count = mlo_array_count(a);
    const int64_t columns = a->rank ? a->dims[a->rank - 1] : 1,
                  rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    const int64_t copies = count / mlo_max(1, columns * rows);
    int ok = count > 0, seen = 0;
    for (int64_t k = 0; ok && k < copies * t * keys; k++) {
        const int64_t query = k / keys % t, key = k % keys;
        const int behind = key > query + keys - t;
        const int64_t v = mlo_get(a,
            (k / (t * keys) * rows + (rows > 1 ? query : 0)) * columns + (columns > 1 ? key : 0));
        if (!k) add[0] = add[1] = v;
        if (behind && !seen++) add[1] = v;
        ok = v == add[behind];
        if (!ok)
            mlo_fail(m, MLO_E_UNSUPPORTED, reader,
                "mask '%s' adds %lld for query %lld and key %lld in iteration %lld, and %lld "
                "elsewhere; "
                "hardware adds one number to scores of keys up to the query, one to those behind "
                "it",
                h->mask, (long long)v, (long long)query, (long long)key, (long long)i,
                (long long)add[behind]);
    }
    mlo_array_free(m, a);
    if (add[0] != add[1]) h->hide = 2;
    return mlo_failed(m);
}

/* Numbers of one array, all changed: + add. */
static void mlo_exact_shifted(mlo_array *a, int64_t add) {
    const size_t size = mlo_dtype_size(a->dtype);
    for (int64_t k = 0; k < mlo_array_count(a); k++) {
        double v;
        char *at = (char *)a->data + (size_t)k * size;
        mlo_convert(MLO_DOUBLE, &v, a->dtype, at, 1);
        v += (double)add;
        mlo_convert(a->dtype, at, MLO_DOUBLE, &v, 1);
    }
}

/* What 256 scores become in iteration i, in front of the softmax, with a mask's number. */
static int mlo_exact_score_row(
    mlo_takeover *x, const mlo_exact_heads *h, int64_t i, int64_t add, int8_t *to) {
    mlo *m = x->q->m;
    int64_t p[MLO_DIALECT_NUMBERS];
    const int64_t size = MLO_TABLE_SCORES;
    MLO_TRY(mlo_exact_shift(x, x->in->body, h->scaled.node[0], i, p));
    mlo_array *v = mlo_array_new(m, MLO_FLOAT, 1, &size);
    for (int64_t k = 0; v && k < size; k++)
        ((float *)v->data)[k] = (float)mlo_clip(k - size / 2, p[1], p[2]);
    if (v && !mlo_exact_apply(x, &h->scaled, 1, i, &v)) {
        mlo_exact_shifted(v, add);
        mlo_exact_apply(x, &h->masked, 0, i, &v);
    }
    for (int64_t k = 0; v && !m->error.code && k < size; k++) {
        int64_t r;
        mlo_convert(MLO_INT64, &r, v->dtype,
            (const char *)v->data + (size_t)k * mlo_dtype_size(v->dtype), 1);
        if (r < INT8_MIN || r > INT8_MAX)
            mlo_fail(m, MLO_E_UNSUPPORTED, h->softmax,
                "score %lld becomes %lld in front of the softmax in iteration %lld; attention of "
                "integers "
                "has 8 bits there: round it (RequantShift)",
                (long long)(k - size / 2), (long long)r, (long long)i);
        to[k] = (int8_t)r;
    }
    mlo_array_free(m, v);
    return mlo_failed(m);
}

/* The numbers of a softmax in iteration i: A, B, C, log2, n - 1. */
static int mlo_exact_softmax(mlo_takeover *x, const mlo_exact_heads *h, int64_t i, int64_t *p) {
    int64_t given[MLO_DIALECT_NUMBERS] = { 0 };
    for (size_t k = 0; k < MLO_EXACT_SOFTMAX; k++) {
        mlo_array *a = mlo_exact_whole(x, x->in->body, h->softmax, h->softmax->input[k + 1], i);
        if (!a) return mlo_failed(x->q->m);
        given[k] = mlo_get(a, 0);
        mlo_array_free(x->q->m, a);
    }
    const char *wrong = mlo_isoftmax_numbers(given, p);
    if (wrong) return mlo_fail(x->q->m, MLO_E_DATA, h->softmax, "%s", wrong);
    return p[4] >= 1 && p[4] <= 255
        ? 0
        : mlo_fail(x->q->m, MLO_E_UNSUPPORTED, h->softmax,
              "an iSoftmax of %lld levels; hardware has 2..256", (long long)p[4] + 1);
}

static int mlo_exact_weight_row(
    mlo_takeover *x, mlo_exact_heads *h, int64_t i, const int64_t *p, int32_t *to) {
    int64_t most = 0;
    for (int64_t k = 0; k < MLO_TABLE_SCORES; k++) {
        const int64_t e = mlo_isoftmax_weight(k, p);
        if (e < 0 || e >= mlo_two_to(MLO_TABLE_WEIGHT_BITS) || (!k && !e))
            return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, h->softmax,
                "its coefficients weigh a score that is %lld below the largest by %lld in "
                "iteration %lld; "
                "hardware has weights of 0..%lld, and of the largest score more than 0",
                (long long)k, (long long)e, (long long)i,
                (long long)mlo_two_to(MLO_TABLE_WEIGHT_BITS) - 1);
        most = mlo_max(most, e);
        to[k] = (int32_t)e;
    }
    const int bits = mlo_bits_for(mlo_from_to(0, most)) - 1,
              least = mlo_bits_for(mlo_just(to[0])) - 1;
    h->bits[0] = (int)mlo_max(h->bits[0], mlo_max(2, bits));
    h->bits[1] = h->bits[1] ? (int)mlo_min(h->bits[1], least) : least;
    return 0;
}

/* Both tables of all iterations, as parameters. */
static int mlo_exact_head_tables(mlo_takeover *x, mlo_exact_heads *h, const char *name) {
    mlo *m = x->q->m;
    const int64_t all = x->q->scan.iterations, size = MLO_TABLE_SCORES;
    int64_t add[2], p[MLO_DIALECT_NUMBERS];
    for (int64_t i = 0; i < all; i++) MLO_TRY(mlo_exact_mask(x, h, i, add));
    const int64_t scores = h->hide ? 2 * size : size;
    h->score = mlo_format(m, "%s_score", name);
    h->weight = mlo_format(m, "%s_weight", name);
    if (m->error.code) return mlo_failed(m);
    int8_t *score = (int8_t *)mlo_parameter(x->q, h->score, MLO_INT8, 1, &scores);
    int32_t *weight = score ? (int32_t *)mlo_parameter(x->q, h->weight, MLO_INT32, 1, &size) : NULL;
    for (int64_t i = 0; weight && i < all; i++, score += scores, weight += size) {
        MLO_TRY(mlo_exact_mask(x, h, i, add));
        MLO_TRY(mlo_exact_score_row(x, h, i, add[0], score));
        if (h->hide) MLO_TRY(mlo_exact_score_row(x, h, i, add[1], score + size));
        for (int64_t k = 1; k < scores; k++)
            if (k % size && score[k] < score[k - 1])
                return mlo_fail(m, MLO_E_UNSUPPORTED, h->softmax,
                    "what is done to scores in front of the softmax falls, from %d to %d, in "
                    "iteration "
                    "%lld; hardware looks for the largest before it: functions that never fall",
                    score[k - 1], score[k], (long long)i);
        MLO_TRY(mlo_exact_softmax(x, h, i, p));
        MLO_TRY(mlo_exact_weight_row(x, h, i, p, weight));
    }
    return mlo_failed(m);
}

/* Multiplier and shift of a RequantShift in iteration i, of a multiplier up to `most`, without an add; what it clips
 * to. Without one: numbers stay. */
static int mlo_exact_lone_ratio(mlo_takeover *x, const mlo_node *r, int64_t i, int64_t most,
    int32_t *mult, int32_t *shift, mlo_interval *clips) {
    mlo *m = x->q->m;
    int64_t p[MLO_DIALECT_NUMBERS], own[2] = { 0, 0 }, bias, a, b;
    *mult = 2;
    *shift = 1;
    if (!r) return 0;
    MLO_TRY(mlo_exact_shift(x, x->in->body, r, i, p));
    for (size_t k = 0; k < 2; k++) {
        mlo_array *v = mlo_exact_whole(x, x->in->body, r, r->input[k + 1], i);
        if (!v) return mlo_failed(m);
        own[k] = mlo_get(v, 0);
        mlo_array_free(m, v);
    }
    if (!mlo_exact_ratio(own[0], own[1], p[3], most, &bias, &a, &b) || bias
        || b > MLO_ATTENTION_SHIFT)
        return mlo_fail(m, MLO_E_UNSUPPORTED, r,
            "mul %lld, add %lld, div %lld inside an attention have no exact form in hardware: mul, "
            "halved "
            "with div as long as it is even, is at most %lld, add is 0, div is a power of two",
            (long long)own[0], (long long)own[1], (long long)p[0], (long long)most);
    *mult = (int32_t)a;
    *shift = (int32_t)b;
    *clips = mlo_from_to(p[1], p[2]);
    return 0;
}

/* The constants of iteration i, without those of the result. */
static int mlo_exact_head_numbers(
    mlo_takeover *x, const mlo_exact_heads *h, int64_t i, int32_t *p) {
    mlo *m = x->q->m;
    int64_t s[MLO_DIALECT_NUMBERS];
    mlo_interval scores = mlo_signed_bits(8), probs = mlo_from_to(0, 255);
    const mlo_node *first = h->scaled.node[0], *behind = h->probs.n ? h->probs.node[0] : NULL;
    if (mlo_exact_softmax(x, h, i, s)
        || mlo_exact_lone_ratio(
            x, first, i, MLO_TABLE_MR_MOST, &p[MLO_TABLE_MR], &p[MLO_TABLE_SR], &scores)
        || mlo_exact_lone_ratio(
            x, behind, i, MLO_TABLE_MP_MOST, &p[MLO_TABLE_MP], &p[MLO_TABLE_SP], &probs))
        return mlo_failed(m);
    if (scores.lo < -128 || scores.hi > 127)
        return mlo_fail(m, MLO_E_UNSUPPORTED, first,
            "scores of %lld..%lld; attention of integers rounds them to 8 bits, -128..127",
            (long long)scores.lo, (long long)scores.hi);
    if (probs.lo > 0 || probs.hi < 0 || probs.hi > 255)
        return mlo_fail(m, MLO_E_UNSUPPORTED, behind,
            "probabilities of %lld..%lld; attention of integers has 0..255 at most",
            (long long)probs.lo, (long long)probs.hi);
    p[MLO_TABLE_N] = (int32_t)s[4];
    p[MLO_TABLE_HP] = (int32_t)probs.hi;
    return 0;
}

/* What an attention's node is given: its streams, its constants, its tables. */
static int mlo_exact_head_inputs(
    mlo_takeover *x, const mlo_exact_unit *u, const mlo_node *r, const char *name, mlo_node *n) {
    mlo_quantizer *q = x->q;
    const mlo_exact_heads *h = (const mlo_exact_heads *)u->with;
    const int64_t size = MLO_TABLE_NUMBERS;
    const char *p = mlo_format(q->m, "%s_p", name);
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &size) : NULL;
    for (int64_t i = 0; data && i < q->scan.iterations; i++, data += size)
        if (!mlo_exact_one(x, u, r, i, &data[MLO_TABLE_MO], &data[MLO_TABLE_SO])
            || mlo_exact_head_numbers(x, h, i, data))
            return mlo_failed(q->m);
    const char *in[] = { u->in[0], u->in[1], u->in[2], q->keys[0].bits, p, h->score, h->weight };
    if (q->m->error.code || mlo_attr_int(q->m, n, "heads", h->heads)
        || mlo_attr_int(q->m, n, "weight_bits", h->bits[0])
        || mlo_attr_int(q->m, n, "least_bits", h->bits[1])
        || (h->hide && mlo_attr_int(q->m, n, "hide", h->hide))
        || (h->keys > x->tokens && mlo_attr_int(q->m, n, "past", h->keys - x->tokens)))
        return mlo_failed(q->m);
    return mlo_inputs(q->m, n, in, 7);
}

/* Are what rounds inside RequantShifts where hardware has them: behind scores, at most one behind the softmax? */
static int mlo_exact_rounds_inside(mlo_takeover *x, const mlo_exact_heads *h) {
    if (!h->scaled.n || !mlo_is_requant_shift(h->scaled.node[0]))
        return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, h->scores,
            "scores that no RequantShift rounds to 8 bits; attention of integers has such scores");
    if (h->probs.n > 1 || (h->probs.n && !mlo_is_requant_shift(h->probs.node[0])))
        return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, h->softmax,
            "%d functions of its probabilities; attention of integers has one RequantShift there",
            h->probs.n);
    return 0;
}

/* softmax(q k^T ..) v, of heads: joined to tokens, and what is done to its numbers. */
static mlo_exact_value *mlo_exact_attention(
    mlo_takeover *x, const mlo_exact_walk *w, const char *name) {
    mlo *m = x->q->m;
    mlo_exact_heads h;
    mlo_node *mix = mlo_made_by(x->in, w->done.base), *own;
    mlo_exact_unit u = { &mlo_attention_table_kernel, mix, { NULL, NULL, NULL }, 3, NULL, NULL,
        mlo_from_to(1, 0), 0, mlo_exact_head_inputs, &h };
    if (mlo_exact_parts(x, mix, &h) || mlo_exact_rounds_inside(x, &h)) return NULL;
    u.channels = h.heads * h.d;
    if (!mlo_exact_joins(x, &h, &w->views)) {
        mlo_fail(
            m, MLO_E_UNSUPPORTED, mix, "heads that are not joined back into the token's channels");
        return NULL;
    }
    for (int k = 0; k < 3; k++) h.order[k] = MLO_NEW_N(m, int64_t, (size_t)h.d);
    for (int k = 0; k < 3 && !m->error.code; k++) {
        const mlo_exact_value *v = mlo_exact_of_heads(x, &h, k);
        if (!v) return NULL;
        u.in[k] = k && h.cache[k].past ? h.cache[k].name : v->name;
    }
    if (!m->error.code && !h.cache[1].past != !h.cache[2].past)
        mlo_fail(m, MLO_E_UNSUPPORTED, h.scores,
            "a past '%s' of %s alone; attention keeps keys and values side by side",
            h.cache[h.cache[1].past ? 1 : 2].past, h.cache[1].past ? "keys" : "values");
    for (int64_t c = 0; c < h.d && !m->error.code; c++)
        if (h.order[0][c] != h.order[1][c])
            mlo_fail(m, MLO_E_UNSUPPORTED, h.scores,
                "queries and keys that are turned in other pairs: channel %lld of a head with "
                "%lld, %lld",
                (long long)c, (long long)h.order[0][c], (long long)h.order[1][c]);
    if (m->error.code) return NULL;
    if (mlo_exact_head_tables(x, &h, name)) return NULL;
    x->q->keys[0].bits = mlo_intern(m, "mlo_mask");
    x->q->r.tokens = h.keys;
    return mlo_exact_finish(x, &u, &w->done, name, &own);
}
