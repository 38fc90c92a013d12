/* mask: proves that the additive mask of an attention is one bit per key, or refuses it in a
 * person's words.
 *
 * in:  a mask as the body reads it: [.., T, T] or smaller, made of constants and model inputs, in
 *     the body or around it.
 * out: a value of the outer graph with one number per key: 0 where the key counts, hugely negative
 *     where it doesn't.
 *
 * invariant: rows are dropped only where they are proved equal for any input: each element is
 *     traced to what it is computed from, and two elements are equal when they come from equal
 *     elements by equal operations. Sample data prove nothing here.
 * example: Where(Cast(1 - Expand(Unsqueeze(attention_mask))), -3.4e38, ..) of shape [1, 1, T, T]
 *     becomes its row 0.
 * cost: O(elements) for each node between the inputs and the mask.
 */

/* ---- out of the body ------------------------------------------------------ */

/* Moves what makes a value of the body in front of the loop; `list` takes the nodes. Its name
 * there; NULL: failed. */
static const char *mlo_hoist(mlo *m, mlo_scan *s, const char *name, mlo_graph *list, int depth) {
    mlo_value *v = mlo_value_of(s->body, name);
    if (v && v->graph != s->body) return name;
    const char *outside = mlo_format(m, "%s_outside", name);
    if (!outside || mlo_value_of(s->outer, outside)) return outside;
    if (v && v->tensor) {
        mlo_tensor *t = MLO_NEW(m, mlo_tensor);
        if (!t) return NULL;
        *t = *v->tensor;
        t->name = outside;
        return mlo_graph_init(m, s->outer, t) || !mlo_index_value(m, s->outer, outside) ? NULL
                                                                                        : outside;
    }
    int inner = v && v->producer && depth <= 64;
    for (size_t i = 0; inner && i < v->producer->n_attr; i++) inner = !v->producer->attr[i]->g;
    if (!inner) {
        mlo_fail_at(m, MLO_E_UNSUPPORTED, name,
            "attention masks that differ from layer to layer (local and global "
            "attention); one mask for all layers is supported");
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

/* ---- where elements come from --------------------------------------------- */

/* For each value a number per element: equal numbers, equal elements. */
typedef struct {
    mlo *m;
    const mlo_scan *s;
    mlo_map known;
    int depth;
} mlo_tracer;
enum { MLO_TRACE_MOST = 1 << 24 }; /* elements of one value */

static int64_t mlo_mixed(int64_t a, int64_t b) {
    uint64_t pair[2] = { (uint64_t)a, (uint64_t)b };
    return (int64_t)mlo_hash(pair, sizeof pair);
}
static int64_t mlo_name_number(const char *name) { return (int64_t)mlo_hash(name, strlen(name)); }

static const mlo_array *mlo_trace(mlo_tracer *t, const char *name);

/* Every element comes from itself alone: a model input, or what an operator makes that is not
 * followed. */
static mlo_array *mlo_trace_new(mlo_tracer *t, const char *name, const mlo_form *f) {
    mlo_array *a = mlo_array_new(t->m, MLO_INT64, f->rank, f->dims);
    for (int64_t i = 0; a && i < mlo_array_count(a); i++)
        ((int64_t *)a->data)[i] = mlo_mixed(mlo_name_number(name), i);
    return a;
}

/* Constants: equal when their values are. */
static mlo_array *mlo_trace_constant(mlo_tracer *t, const char *name) {
    mlo_array *a = mlo_value_array(t->m, t->s, t->s->outer, name, 0, 0);
    mlo_array *ids = a ? mlo_array_new(t->m, MLO_INT64, a->rank, a->dims) : NULL;
    for (int64_t i = 0; ids && i < mlo_array_count(ids); i++) {
        double x = mlo_number_at(a, i);
        ((int64_t *)ids->data)[i] = (int64_t)mlo_hash(&x, sizeof x);
    }
    mlo_array_free(t->m, a);
    return ids;
}

/* Which element of a, broadcast to the form, is at place i? */
static int64_t mlo_broadcast_at(const mlo_array *a, const mlo_form *f, int64_t i) {
    int64_t at = 0, step = 1;
    for (int d = 1; d <= a->rank; d++) {
        int64_t size = f->dims[f->rank - d], own = a->dims[a->rank - d];
        at += own > 1 ? i % size * step : 0;
        step *= own;
        i /= size;
    }
    return at;
}

/* Element by element: the same function of equal operands is equal. NULL: not traced. */
static mlo_array *mlo_trace_elementwise(
    mlo_tracer *t, const mlo_node *n, const char *name, const mlo_form *f) {
    mlo_array *ids = mlo_array_new(t->m, MLO_INT64, f->rank, f->dims);
    for (int64_t i = 0; ids && i < mlo_array_count(ids); i++)
        ((int64_t *)ids->data)[i] = mlo_name_number(name);
    for (size_t k = 0; ids && k < n->n_input; k++) {
        const mlo_array *a = mlo_has_input(n, k) ? mlo_trace(t, n->input[k]) : NULL;
        if (mlo_has_input(n, k) && (!a || a->rank > f->rank)) {
            mlo_array_free(t->m, ids);
            return NULL;
        }
        for (int64_t i = 0; a && i < mlo_array_count(ids); i++) {
            int64_t *id = (int64_t *)ids->data + i;
            *id = mlo_mixed(*id, ((const int64_t *)a->data)[mlo_broadcast_at(a, f, i)]);
        }
    }
    return ids;
}

/* Operators that move elements: what they do to the elements, they do to the numbers. NULL: not
 * traced. */
static mlo_array *mlo_trace_move(mlo_tracer *t, mlo_node *n, const char *name) {
    mlo *m = t->m;
    const mlo_array *args[MLO_MOVE_INPUTS] = { 0 };
    mlo_array *constant[MLO_MOVE_INPUTS] = { 0 }, *result = NULL;
    int known = n->n_input <= MLO_MOVE_INPUTS, all = mlo_is(n, "Concat");
    for (size_t k = 0; known && k < n->n_input; k++)
        if (mlo_has_input(n, k)) {
            if (!k || all)
                args[k] = mlo_trace(t, n->input[k]);
            else if (mlo_is_parameter(t->s, t->s->outer, n->input[k], 0))
                args[k] = constant[k] = mlo_value_array(m, t->s, t->s->outer, n->input[k], 0, 0);
            known = args[k] != NULL;
        }
    if (known) result = mlo_made_of(m, n, name, args);
    for (size_t k = 0; k < MLO_MOVE_INPUTS; k++) mlo_array_free(m, constant[k]);
    return result;
}

static mlo_array *mlo_trace_node(mlo_tracer *t, mlo_node *n, const char *name, const mlo_form *f) {
    static const char *const moves[] = { "Expand", "Concat", "Tile", "GatherND", NULL };
    static const char *const more[] = { "Where", "And", "Or", "Not", "Xor", "Equal", "Less",
        "LessOrEqual", "Greater", "GreaterOrEqual", "Cast", NULL };
    /* a scale may lie along one */
    static const char *const axes[] = { "QuantizeLinear", "DequantizeLinear", NULL };
    if (mlo_is_layout(n) || mlo_is_one_of(n, moves)) return mlo_trace_move(t, n, name);
    int each = (mlo_is_elementwise(n) && !mlo_is_one_of(n, axes)) || mlo_is_one_of(n, more);
    return each ? mlo_trace_elementwise(t, n, name, f) : NULL;
}

/* The numbers of a value of the outer graph; the tracer's. NULL: its shape is not known, or it is
 * too large. */
static const mlo_array *mlo_trace(mlo_tracer *t, const char *name) {
    mlo_array *ids = (mlo_array *)mlo_map_get(&t->known, name);
    mlo_value *v = mlo_value_of(t->s->outer, name);
    mlo_form f = mlo_form_of(v);
    if (ids || !mlo_form_known(&f) || mlo_form_count(&f) > MLO_TRACE_MOST || t->m->error.code)
        return ids;
    if (mlo_is_parameter(t->s, t->s->outer, name, 0))
        ids = mlo_trace_constant(t, name);
    else if (v->producer && t->depth < 64) {
        t->depth++;
        ids = mlo_trace_node(t, v->producer, name, &f);
        t->depth--;
    }
    if (!ids && !t->m->error.code) ids = mlo_trace_new(t, name, &f);
    return ids && mlo_map_put(t->m, &t->known, name, ids) ? NULL : ids;
}

static void mlo_trace_end(mlo_tracer *t) {
    for (size_t i = 0; i < t->known.size; i++)
        if (t->known.slot[i].key) mlo_array_free(t->m, (mlo_array *)t->known.slot[i].value);
}

/* Is every row of the mask the same, whatever the inputs are? */
static int mlo_rows_equal(mlo *m, const mlo_scan *s, const char *name, int64_t keys) {
    mlo_tracer t = { m, s, { NULL, 0, 0 }, 0 };
    const mlo_array *a = mlo_trace(&t, name);
    int64_t n = a ? mlo_array_count(a) : 0;
    const int64_t *id = n ? (const int64_t *)a->data : NULL;
    int equal = n > 0;
    for (int64_t i = keys; equal && i < n; i++) equal = id[i] == id[i % keys];
    mlo_trace_end(&t);
    return equal;
}

/* ---- what else it is, for people ------------------------------------------ */

/* Does a constant [.., T, T] tell keys behind the query from those before it: one value for all
 * above the diagonal, and another one on and below it? */
static int mlo_is_triangle(mlo *m, const mlo_tensor *tensor, int64_t t) {
    size_t rank = tensor->n_dims;
    int square = rank >= 2 && tensor->dims[rank - 1] == t && tensor->dims[rank - 2] == t;
    mlo_array *a = square ? mlo_tensor_load(m, tensor) : NULL;
    int is = a && t > 1;
    for (int64_t i = 0; is && i < t; i++)
        for (int64_t k = 0; is && k < t; k++) {
            double x = mlo_number_at(a, i * t + k);
            double future = mlo_number_at(a, t - 1);
            double present = mlo_number_at(a, 0);
            int same = x >= future && x <= future;
            is = (future < present || future > present) && (k > i ? same : k < i || !same);
        }
    mlo_array_free(m, a);
    return is;
}

/* Does the value depend on a constant triangle? */
static int mlo_is_causal(mlo *m, const mlo_graph *g, const char *name, int64_t t, int depth) {
    mlo_value *v = mlo_value_of(g, name);
    if (!v || depth > 32) return 0;
    if (v->tensor) return mlo_is_triangle(m, v->tensor, t);
    if (mlo_is(v->producer, "Trilu")) return 1;
    for (size_t i = 0; v->producer && i < v->producer->n_input; i++)
        if (mlo_has_input(v->producer, i)
            && mlo_is_causal(m, g, v->producer->input[i], t, depth + 1))
            return 1;
    return 0;
}

static int mlo_refuse_mask(
    mlo *m, const mlo_scan *s, const mlo_node *reader, const char *name, int64_t t) {
    mlo_form f = mlo_form_of(mlo_value_of(s->outer, name));
    if (m->error.code) return mlo_failed(m);
    if (mlo_is_causal(m, s->outer, name, t, 0))
        return mlo_fail(m, MLO_E_UNSUPPORTED, reader,
            "a decoder: its attention is causal ('%s': a query does not see the "
            "keys behind it); mlo rolls and runs decoders, hardware is for encoders",
            name);
    return mlo_fail(m, MLO_E_UNSUPPORTED, reader,
        "attention mask or bias '%s' of shape %s is not the same for every query "
        "and head (a sliding window, or relative positions); hardware has one bit per key",
        name, mlo_dims_text(m, f.rank, f.dims));
}

/* ---- the mask ------------------------------------------------------------- */

/* The first of equal rows. */
static int mlo_first_row(
    mlo *m, const mlo_scan *s, const char *whole, int64_t keys, mlo_graph *list, const char **row) {
    mlo_node bare = *s->node;
    bare.n_meta = 0;
    mlo_expansion x = { m, s->outer, &bare, mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
    const int64_t shape[] = { -1, keys };
    const char *rows = mlo_x_reshape(&x, whole, shape, 2), *first = mlo_x_whole(&x, 0);
    *row = mlo_x_take(&x, rows, first, 0);
    for (size_t i = 0; i < x.n_made; i++) MLO_TRY(mlo_graph_add(m, list, x.made[i]));
    return mlo_failed(m);
}

/* *mask, which `reader` reads, becomes one number per key, in the outer graph; NULL where it
 * changes nothing. */
static int mlo_key_mask(
    mlo *m, mlo_scan *s, const mlo_node *reader, int64_t keys, const char **mask) {
    mlo_graph list = { 0 };
    mlo_form f = mlo_form_of(mlo_value_of(s->body, *mask));
    if (!mlo_form_known(&f) || f.rank < 1)
        return mlo_fail(m, MLO_E_SHAPE, reader,
            "an attention mask '%s' of unknown shape; bind open dimensions (%s) with "
            "--dim NAME=N",
            *mask, mlo_open_dims(m));
    int64_t last = f.dims[f.rank - 1], rows = mlo_form_count(&f) / (last ? last : 1);
    if (last == 1) { /* the same for all keys of a row: softmax does not see it */
        *mask = NULL;
        return 0;
    }
    const char *whole = mlo_hoist(m, s, *mask, &list, 0), *row = whole;
    if (!whole) return mlo_failed(m);
    if (last != keys)
        return mlo_fail(m, MLO_E_UNSUPPORTED, reader,
            "an attention mask '%s' of shape %s for %lld keys", *mask,
            mlo_dims_text(m, f.rank, f.dims), (long long)keys);
    if (rows > 1) MLO_TRY(mlo_first_row(m, s, whole, keys, &list, &row));
    if (list.n_node) MLO_TRY(mlo_put_before(m, s, &list));
    if (rows > 1 && !mlo_rows_equal(m, s, whole, keys))
        return mlo_refuse_mask(m, s, reader, whole, keys);
    *mask = row;
    return 0;
}
