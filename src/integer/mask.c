/* mask: proves what an attention's additive mask hides, or refuses it in a person's words.
 *
 * in:  a mask as the body reads it: [.., T, T] or smaller, made of constants and model inputs, in
 *     the body or around it.
 * out: which keys a query may see by their places, in each iteration: all, those up to itself
 *     (causal), or those of a band around it; and a value of the outer graph with one number per
 *     key: 0 where the key counts, hugely negative where it doesn't. What is neither becomes a bias:
 *     numbers of each iteration, head, query and key.
 *
 * How: every element is traced to what it is computed from (symbol.c). What is at most -10000 whatever
 * the inputs are is hidden. The mask has to be a band (band.c) or a bias (bias.c) beside the keys' own
 * symbols; those are moved in front of the loop.
 *
 * invariant: what is proved holds for any input whose integer masks are 0 and 1 (the inputs that
 *     have `mask` in their names). Sample data prove nothing here. One wrong element is one too
 *     many: it is named.
 * example: Where(And(Range(T) <= Reshape(Range(T), [T, 1]), attention_mask != 0), 0, -3.4e38) is
 *     causal, and its diagonal is the key mask.
 * cost: O(elements) for each node between the inputs and the mask; for each iteration, where it
 *     differs from layer to layer.
 */

/* ---- out of the body ------------------------------------------------------ */

/* What the first iteration gets of a scan input, in the outer graph as `outside`; `list` takes the
 * node. NULL: failed. */
static const char *mlo_hoist_slice(
    mlo *m, mlo_scan *s, const char *name, const char *outside, mlo_graph *list) {
    for (size_t k = s->n_state; k < s->body->n_input; k++) {
        if (s->body->input[k]->name != name) continue;
        mlo_node bare = *s->node;
        bare.n_meta = 0;
        mlo_expansion x = { m, s->outer, &bare, mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
        const char *first = mlo_x_whole(&x, 0);
        mlo_node *n = mlo_node_new(m, "Gather", outside);
        if (!first || !n || mlo_node_input(m, n, s->node->input[k]) || mlo_node_input(m, n, first)
            || mlo_node_output(m, n, outside) || !mlo_index_value(m, s->outer, outside))
            return NULL;
        return mlo_graph_add(m, list, n) ? NULL : outside;
    }
    mlo_fail_at(m, MLO_E_UNSUPPORTED, name, "an attention mask that the layers themselves compute");
    return NULL;
}

/* Moves what makes a value of the body in front of the loop, as the first iteration has it; `list`
 * takes the nodes. Its name there; NULL: failed. */
static const char *mlo_hoist(mlo *m, mlo_scan *s, const char *name, mlo_graph *list, int depth) {
    mlo_value *v = mlo_value_of(s->body, name);
    if (v->graph != s->body) return name;
    const char *outside = mlo_format(m, "%s_outside", name);
    if (!outside || mlo_value_of(s->outer, outside)) return outside;
    if (v->tensor) {
        mlo_tensor *t = MLO_NEW(m, mlo_tensor);
        if (!t) return NULL;
        *t = *v->tensor;
        t->name = outside;
        return mlo_graph_init(m, s->outer, t) || !mlo_index_value(m, s->outer, outside) ? NULL
                                                                                        : outside;
    }
    if (v->is_input) return mlo_hoist_slice(m, s, name, outside, list);
    int inner = v->producer && depth <= 64;
    for (size_t i = 0; inner && i < v->producer->n_attr; i++) inner = !v->producer->attr[i]->g;
    if (!inner) {
        mlo_fail_at(m, MLO_E_UNSUPPORTED, name,
            "an attention mask that is computed inside of the loop in a way that mlo cannot move "
            "in front of it");
        return NULL;
    }
    mlo_node *n = mlo_node_new(
        m, v->producer->op, mlo_format(m, "%s_outside", mlo_node_name(v->producer)));
    if (!n) return NULL;
    n->domain = v->producer->domain;
    n->attr = v->producer->attr;
    n->n_attr = v->producer->n_attr;
    for (size_t i = 0; i < v->producer->n_input; i++) {
        const char *in = mlo_has_input(v->producer, i)
            ? mlo_hoist(m, s, v->producer->input[i], list, depth + 1)
            : "";
        if (!in || mlo_node_input(m, n, in)) return NULL;
    }
    for (size_t i = 0; i < v->producer->n_output; i++) {
        const char *out = mlo_format(m, "%s_outside", v->producer->output[i]);
        if (!out || mlo_node_output(m, n, out) || !mlo_index_value(m, s->outer, out)) return NULL;
    }
    return mlo_graph_add(m, list, n) ? NULL : outside;
}

/* Puts nodes in front of the loop. */
static int mlo_put_before(mlo *m, mlo_scan *s, const mlo_graph *list) {
    mlo_graph all = { 0 };
    for (size_t i = 0; i < s->outer->n_node; i++) {
        for (size_t k = 0; s->outer->node[i] == s->node && k < list->n_node; k++)
            MLO_TRY(mlo_graph_add(m, &all, list->node[k]));
        MLO_TRY(mlo_graph_add(m, &all, s->outer->node[i]));
    }
    s->outer->node = all.node;
    s->outer->n_node = all.n_node;
    MLO_TRY(mlo_index(m, m->model->graph));
    return mlo_infer(m);
}

/* ---- what a person is told, and what others get --------------------------- */

static int mlo_refuse_mask(
    mlo *m, const mlo_scan *s, const mlo_node *reader, const char *name, const mlo_wrong *w) {
    mlo_form f = mlo_form_of(mlo_value_of(s->body, name));
    char what[160], layer[64] = "", head[64] = "";
    snprintf(what, sizeof what, w->what, (long long)w->query, (long long)w->key);
    if (w->iteration) snprintf(layer, sizeof layer, "in layer %lld ", (long long)w->iteration);
    if (w->head) snprintf(head, sizeof head, "in head %lld ", (long long)w->head);
    return mlo_fail(m, MLO_E_UNSUPPORTED, reader,
        "attention mask or bias '%s' of shape %s: %s%s%s; hardware hides keys by one bit each, and "
        "adds to scores what parameters alone say (for each layer, head, query and key), not what "
        "depends on the model's inputs. Export with a mask of one number per token, or without a "
        "mask; if the input is always the same one, --hold FILE.npz makes it a constant",
        name, mlo_dims_text(m, f.rank, f.dims), layer, head, what);
}

/* Numbers as a constant of the outer graph. */
static const char *mlo_key_numbers(mlo_expansion *x, const float *number, int64_t n) {
    const size_t bytes = (size_t)n * sizeof *number;
    const char *name = mlo_x_name(x, "c");
    float *data = (float *)mlo_alloc(x->m, (size_t)n, sizeof *number);
    if (!data) return "";
    memcpy(data, number, bytes);
    mlo_tensor *t = mlo_tensor_new(x->m, name, MLO_FLOAT, &n, 1, data, bytes);
    return mlo_graph_init(x->m, x->g, t) ? "" : name;
}

/* One row of a mask as a value of the outer graph: of each key element at[j] (NULL: the first row), less
 * more[j] (NULL: nothing), rounded sums put right. */
static int mlo_key_row(mlo *m, mlo_scan *s, const char *whole, int64_t keys, int64_t count,
    const int64_t *at, const float *more, mlo_graph *list, const char **row) {
    mlo_node bare = *s->node;
    bare.n_meta = 0;
    mlo_expansion x = { m, s->outer, &bare, mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
    const int64_t shape[] = { -1, at ? count : keys };
    const char *copies = mlo_x_reshape(&x, whole, shape, 2), *first = mlo_x_whole(&x, 0);
    *row = mlo_x_take(&x, copies, first, 0);
    if (at) *row = mlo_x_take(&x, *row, mlo_x_list(&x, at, (size_t)keys), 0);
    if (more) {
        const char *bare_row = MLO_X(&x, "Sub", *row, mlo_key_numbers(&x, more, keys));
        const char *size = MLO_X(&x, "Abs", bare_row);
        const char *none = MLO_X(&x, "Less", size, mlo_x_number(&x, 1.0 / 1024));
        const char *far = MLO_X(&x, "Mul", bare_row, mlo_x_number(&x, 1 + 1.0 / 1024));
        *row = MLO_X(&x, "Where", none, mlo_x_number(&x, 0), far);
    }
    for (size_t i = 0; i < x.n_made; i++) MLO_TRY(mlo_graph_add(m, list, x.made[i]));
    return mlo_failed(m);
}

/* Are all keys' own symbols 0 or hidden, or such that calibration can tell? A number that some key gets
 * is a bias. */
static int mlo_keys_plain(const mlo_tracer *t, const int64_t *own, int64_t keys) {
    for (int64_t j = 0; j < keys; j++)
        if (mlo_symbol_adds(t, own[j]) && !mlo_symbol_is(t, own[j], 0)) return 0;
    return 1;
}

/* Follows a mask as a band, or else as a bias. biased: which of them it was. */
static int mlo_follow(mlo_tracer *t, const char *name, int64_t keys, int64_t heads, int64_t *own,
    const mlo_bias_keys *k, mlo_sight *sight, mlo_wrong *w, int *biased) {
    for (int64_t j = 0; j < keys; j++) k->before[j] = own[j];
    MLO_TRY(mlo_follow_mask(t, name, keys, own, sight, w));
    *biased = w->what != NULL || !mlo_keys_plain(t, own, keys);
    if (!*biased) return 0;
    for (int64_t j = 0; j < keys; j++) own[j] = k->before[j];
    memset(w, 0, sizeof *w);
    return mlo_follow_bias(t, name, keys, heads, own, k, sight, w);
}

/* The keys' own part of a mask that was followed, as one number per key in the outer graph. NULL: all
 * are 0. */
static int mlo_own_row(mlo_tracer *t, mlo_scan *s, const mlo_form *f, int64_t keys,
    const int64_t *own, const mlo_bias_keys *k, int biased, const mlo_sight *sight,
    const char **mask) {
    mlo *m = t->m;
    mlo_graph list = { 0 };
    const int64_t count = mlo_form_count(f);
    int64_t zeros = 0;
    for (int64_t j = 0; j < keys; j++) zeros += mlo_symbol_is(t, own[j], 0);
    const char *whole = zeros < keys ? mlo_hoist(m, s, *mask, &list, 0) : NULL;
    if (zeros < keys && !whole) return mlo_failed(m);
    *mask = whole;
    const int square = f->rank > 1 && f->dims[f->rank - 2] == keys
        && (sight->causal || sight->band);
    if (whole && biased)
        MLO_TRY(mlo_key_row(m, s, whole, keys, count, k->at, k->more, &list, mask));
    else if (whole && count > keys) {
        for (int64_t j = 0; j < keys; j++) k->at[j] = j * (keys + 1);
        MLO_TRY(
            mlo_key_row(m, s, whole, keys, keys * keys, square ? k->at : NULL, NULL, &list, mask));
    }
    return list.n_node ? mlo_put_before(m, s, &list) : 0;
}

/* *mask, which `reader` reads, becomes one number per key, in the outer graph; NULL where every key
 * counts. *sight: what it hides by place, and adds. own: see mlo_follow_mask. */
static int mlo_key_mask(mlo_tracer *t, mlo_scan *s, const mlo_node *reader, int64_t keys,
    int64_t heads, int64_t *own, mlo_sight *sight, const char **mask) {
    mlo *m = t->m;
    mlo_wrong w = { NULL, 0, 0, 0, 0 };
    mlo_form f = mlo_form_of(mlo_value_of(s->body, *mask));
    if (!mlo_form_known(&f) || f.rank < 1)
        return mlo_fail(m, MLO_E_SHAPE, reader,
            "an attention mask '%s' of unknown shape; bind open dimensions (%s) with "
            "--dim NAME=N",
            *mask, mlo_open_dims(m));
    const int64_t last = f.dims[f.rank - 1];
    int biased = 0;
    if (last == 1 && keys > 1) { /* the same for all keys of a row: softmax does not see it */
        *mask = NULL;
        return 0;
    }
    if (last != keys)
        return mlo_fail(m, MLO_E_UNSUPPORTED, reader,
            "an attention mask '%s' of shape %s for %lld keys", *mask,
            mlo_dims_text(m, f.rank, f.dims), (long long)keys);
    const mlo_bias_keys k = { MLO_NEW_N(m, int64_t, (size_t)keys),
        MLO_NEW_N(m, int64_t, (size_t)keys), MLO_NEW_N(m, int64_t, (size_t)keys),
        MLO_NEW_N(m, float, (size_t)keys) };
    if (!k.at || !k.seen || !k.before || !k.more
        || mlo_follow(t, *mask, keys, heads, own, &k, sight, &w, &biased))
        return mlo_failed(m);
    if (w.what) return mlo_refuse_mask(m, s, reader, *mask, &w);
    return mlo_own_row(t, s, &f, keys, own, &k, biased, sight, mask);
}
