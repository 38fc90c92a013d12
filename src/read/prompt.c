/* prompt: a decoder's step of one token becomes the prompt of as many as its cache holds.
 *
 * in:  what step.c leaves, constants folded.
 * out: the model without a cache at N tokens, as context.c makes it of a step for any number of tokens.
 *
 * It is followed where the keys lie, from where past and new ones are joined on, and where the token lies (lanes.c). N
 * tokens take the place of one; what is behind the joints has no past, but all keys, and each softmax over keys gets a
 * causal mask.
 *
 * invariant: row i of the prompt is what step i gives behind the rows before it. Keys that are summed over by anything
 *     but a masked softmax, or picked from, are refused, by node.
 * example: x [1, 1, 16], past [1, 2, 15, 4] -> [1, 2, 16, 4], scores [1, 4, 1, 16]: x [1, 16, 16], scores
 *     [1, 4, 16, 16] + causal.
 * cost: O(nodes).
 */

/* A node that puts past keys or values before the new ones, or writes those into a buffer. */
typedef struct {
    const char *past; /* the input */
    mlo_node *node;
    size_t fresh; /* of its inputs: the new ones */
    size_t place; /* of its inputs: where they are written; 0: behind the past */
    int axis; /* of tokens */
} mlo_join;

typedef struct {
    mlo *m;
    mlo_graph *g;
    mlo_instants *k;
    mlo_join *join;
    size_t n_join;
    mlo_map turns; /* nodes that take the last of what has a place for each key */
    mlo_map soft; /* names of what is behind a softmax over keys */
    mlo_node **softmax; /* those */
    size_t n_softmax;
    mlo_map made; /* a name with its axis and rank -> that of a constant for all tokens */
} mlo_prompt;

static int mlo_prompt_refuse(mlo *m, const mlo_node *n, const char *what) {
    return mlo_fail(m, MLO_E_UNSUPPORTED, n,
        "the step is exported for one new token, and what this node makes of %s is not known for "
        "several; export it for "
        "several, with that axis dynamic",
        what);
}

/* ---- where keys lie ------------------------------------------------------- */

static mlo_join *mlo_join_of(const mlo_prompt *p, const mlo_node *n) {
    for (size_t i = 0; i < p->n_join; i++)
        if (p->join[i].node == n) return &p->join[i];
    return NULL;
}

static int mlo_joins_find(mlo_prompt *p) {
    mlo_cacheless c = { p->m, p->g, p->k->tokens };
    for (size_t i = 0; i < p->g->n_input; i++) {
        const mlo_value *v = mlo_value_of(p->g, p->g->input[i]->name);
        mlo_join j = { v->name, NULL, 1, 0, -1 };
        j.axis = mlo_kept_axis(&c, v, &j.node);
        const mlo_past past = mlo_past_of(&c, v);
        const int short_of = past.readers > 1 || (past.last && past.last < c.tokens - 1);
        if (j.axis < 0 ? mlo_may_be_past(&past) && mlo_is_past(&past) : short_of && !j.node)
            MLO_TRY(mlo_refuse_past(&c, &past, v));
        if (j.axis < 0 && j.node) return mlo_prompt_refuse(p->m, j.node, "a buffer");
        if (j.axis < 0) continue;
        const int scatters = j.node && !mlo_is(j.node, "TensorScatter");
        j.place = !j.node ? 0 : scatters ? 1 : 2;
        j.fresh = scatters ? 2 : 1;
        if (!j.node) j.node = past.node;
        if (mlo_is(j.node, "ScatterND")) j.axis = 0; /* the buffer was moved */
        if (!mlo_has_input(j.node, j.place)) return mlo_prompt_refuse(p->m, j.node, "a buffer");
        if (!MLO_PUSH(p->m, p->join, p->n_join, j)) return mlo_failed(p->m);
    }
    return 0;
}

/* Present keys and values leave no more, nor what was done to them for that. */
static int mlo_joins_keep(mlo_prompt *p) {
    mlo_cacheless c = { p->m, p->g, p->k->tokens };
    for (size_t i = 0; i < p->n_join; i++) {
        const mlo_join *j = &p->join[i];
        const mlo_past past = mlo_past_of(&c, mlo_value_of(p->g, j->past));
        const char *out = j->place ? mlo_buffer_out(&c, j->node) : past.out;
        if (out) mlo_drop_output(&c, out);
        while ((out = mlo_given_out(p->m, p->g, j->node->output[0])) != NULL)
            mlo_drop_output(&c, out);
        const mlo_form f = mlo_form_of(mlo_value_of(p->g, j->past));
        if (mlo_is(j->node, "TensorScatter")) /* what its output was declared as went with that */
            MLO_TRY(mlo_info_add(p->m, &p->g->info, &p->g->n_info, j->node->output[0], &f));
    }
    for (size_t i = p->g->n_input; i--;) { /* a stack of which sizes were read */
        const mlo_value *v = mlo_value_of(p->g, p->g->input[i]->name);
        if (!v->n_uses && mlo_form_of(v).rank > 4)
            mlo_drop_info(p->g->input, &p->g->n_input, v->name);
    }
    return mlo_drop_dead(p->m, p->g) || mlo_index(p->m, p->g) || mlo_infer(p->m);
}

/* Does a Slice take the last along an axis of so many? */
static int mlo_takes_last(const mlo_lanes *l, const mlo_node *n, int axis, int64_t size) {
    int64_t start[MLO_MAX_LIST], end[MLO_MAX_LIST], axes[MLO_MAX_LIST], step[MLO_MAX_LIST];
    const int rank = mlo_lane_form(l, n, 0).rank;
    if (mlo_lane_list(l, n, "", 1, start) != 1 || mlo_lane_list(l, n, "", 2, end) != 1
        || mlo_lane_list(l, n, "", 3, axes) != 1)
        return 0;
    const int steps = mlo_lane_list(l, n, "", 4, step);
    return (axes[0] < 0 ? axes[0] + rank : axes[0]) == axis
        && (start[0] == -1 || start[0] == size - 1) && end[0] >= size
        && (steps < 0 || (steps == 1 && step[0] == 1));
}

/* Elements of a mask, by constant indices that count keys: (0, key) of [1, keys], or key alone along its axis. */
static int mlo_keys_picked(mlo_lanes *l, mlo_node *n, mlo_lane at) {
    const mlo_value *v = mlo_has_input(n, 1) ? mlo_value_of(l->g, n->input[1]) : NULL;
    const mlo_form x = mlo_lane_form(l, n, 0), f = mlo_form_of(v);
    const int pairs = mlo_is(n, "GatherND"), axis = f.rank - 1 - pairs;
    const int64_t said = mlo_int(n, "axis", 0), parts = pairs ? 2 : 1;
    const int picks = pairs || mlo_is(n, "Gather");
    mlo_array *all = picks && v && v->tensor && f.dtype == MLO_INT64 && axis >= 0
        ? mlo_tensor_load(l->m, v->tensor)
        : NULL;
    int counts = all && f.dims[axis] == l->batch && mlo_array_count(all) == l->batch * parts
        && (pairs ? x.rank == 2 && at.axis == 1 && x.dims[0] == 1 && f.dims[axis + 1] == 2
                    && !mlo_int(n, "batch_dims", 0)
                  : at.axis == (said < 0 ? said + x.rank : said));
    for (int64_t i = 0; counts && i < mlo_array_count(all); i++)
        counts = ((const int64_t *)all->data)[i] == (i % parts < parts - 1 ? 0 : i / parts);
    mlo_array_free(l->m, all);
    return counts && mlo_lane_put(l, n->output[0], pairs ? axis : at.axis + axis, 1, 1);
}

/* Scores, or values that masked scores weigh. */
static int mlo_keys_product(mlo_lanes *l, const mlo_prompt *p, mlo_node *n, int *done) {
    const mlo_lane a = mlo_lane_in(l, n, 0), b = mlo_lane_in(l, n, 1);
    const int x = mlo_lane_form(l, n, 0).rank, y = mlo_lane_form(l, n, 1).rank;
    const int weighs = a.axis == x - 1 && b.axis == y - 2;
    *done = a.axis != x - 2 || b.axis >= 0;
    if (weighs)
        return a.outer * a.inner * b.outer * b.inner == 1 && mlo_map_get(&p->soft, n->input[0]);
    return a.axis < 0 && b.axis == y - 1
        && mlo_lane_all(l, n, mlo_form_of(mlo_value_of(l->g, n->output[0])).rank - 1, b);
}

static int mlo_keys_softmax(mlo_lanes *l, mlo_prompt *p, mlo_node *n, mlo_lane at) {
    const int rank = mlo_lane_form(l, n, 0).rank;
    const int64_t said = mlo_int(n, "axis", -1), axis = said < 0 ? said + rank : said;
    return axis == at.axis && at.outer * at.inner == 1 && !mlo_map_get(&p->soft, n->input[0])
        && MLO_PUSH(l->m, p->softmax, p->n_softmax, n)
        && !mlo_map_put(l->m, &p->soft, n->output[0], n) && mlo_lane_all(l, n, at.axis, at);
}

/* Does a node read what is behind a softmax over keys? */
static int mlo_keys_soft(const mlo_prompt *p, const mlo_node *n) {
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i) && mlo_map_get(&p->soft, n->input[i])) return 1;
    return 0;
}
/* Is an operand such, or 0? */
static int mlo_keys_zero(const mlo_lanes *l, const mlo_prompt *p, const mlo_node *n, size_t k) {
    const mlo_value *v = mlo_has_input(n, k) ? mlo_value_of(l->g, n->input[k]) : NULL;
    mlo_array *a = v && v->tensor && mlo_tensor_count(v->tensor) == 1
        ? mlo_tensor_load(l->m, v->tensor)
        : NULL;
    float x = 1;
    if (a) mlo_convert(MLO_FLOAT, &x, a->dtype, a->data, 1);
    mlo_array_free(l->m, a);
    return v && (mlo_map_get(&p->soft, v->name) || (x >= 0 && x <= 0));
}
/* What weighs no key that is hidden, 0, behind a softmax: does it behind the node, too? */
static int mlo_keys_none(const mlo_lanes *l, const mlo_prompt *p, const mlo_node *n) {
    static const char *const keeps[] = { "Cast", "Identity", "Dropout", "IsNaN", "Mul", "Neg",
        "Abs", "Relu", "Transpose", "Expand", NULL };
    if (mlo_is(n, "Where")) return mlo_keys_zero(l, p, n, 1) && mlo_keys_zero(l, p, n, 2);
    if (mlo_is(n, "Div")) return mlo_keys_zero(l, p, n, 0);
    return mlo_is_one_of(n, keeps) || mlo_has_trait(n, MLO_RESHAPES);
}

/* The rules of keys. */
static int mlo_keys_rule(mlo_lanes *l, mlo_node *n, int *done) {
    mlo_prompt *p = (mlo_prompt *)l->user;
    const mlo_join *j = mlo_join_of(p, n);
    const mlo_lane at = mlo_lane_in(l, n, 0);
    int64_t axis[MLO_MAX_LIST];
    *done = n->n_output > 0;
    if (!*done) return 0;
    if (j) return mlo_lane_put(l, n->output[0], j->axis, 1, 1);
    if (at.axis < 0 && mlo_map_get(&p->k->sized, n)) return 0; /* that are no keys */
    if (mlo_is(n, "Softmax") && at.axis >= 0) return mlo_keys_softmax(l, p, n, at);
    if (at.axis >= 0 && mlo_keys_picked(l, n, at)) return 1;
    if (mlo_is(n, "Slice") && at.axis >= 0 && mlo_takes_last(l, n, at.axis, l->batch))
        return (p->k->placed = 1) && !mlo_map_put(l->m, &p->turns, n, n);
    if (mlo_is(n, "CumSum") && at.axis >= 0 && !mlo_int(n, "reverse", 0)
        && mlo_lane_list(l, n, "", 1, axis) == 1)
        return mlo_lane_all(l, n, at.axis, at);
    *done = 0;
    if (mlo_is(n, "MatMul") && (at.axis >= 0 || mlo_lane_in(l, n, 1).axis >= 0))
        return mlo_keys_product(l, p, n, done);
    if (!mlo_keys_soft(p, n)) return 0;
    *done = !mlo_keys_none(l, p, n) || mlo_map_put(l->m, &p->soft, n->output[0], n);
    return 0;
}

/* Does a constant change from key to key by the same amount, if at all? *changes: it does. */
static int mlo_keys_even(const mlo_array *a, int axis, int *changes) {
    int64_t inner = 1;
    for (int d = axis + 1; d < a->rank; d++) inner *= a->dims[d];
    int even = a->dtype == MLO_FLOAT;
    const float *v = (const float *)a->data;
    for (int64_t i = 0, n = a->dims[axis] * inner; even && i < mlo_array_count(a); i++) {
        const int64_t key = i % n / inner;
        if (key < 2) continue;
        const float first = v[i - (key - 1) * inner] - v[i - key * inner],
                    here = v[i] - v[i - inner];
        even = fabsf(here - first) <= 1e-4f * fabsf(first);
        *changes |= first < 0 || first > 0;
    }
    return even;
}
/* Is a constant the same for all keys? */
static int mlo_keys_alike(const mlo_array *a) {
    const size_t size = mlo_dtype_size(a->dtype);
    for (int64_t i = 1; i < mlo_array_count(a); i++)
        if (memcmp(a->data, (const char *)a->data + (size_t)i * size, size) != 0) return 0;
    return 1;
}

/* What meets keys may have a place for each; but where the past has a fixed length a constant that differs from key to
 * key is what the last token sees. ALiBi's is seen by all: what is added to scores in even steps is another one's but
 * for a number for all keys, which no softmax sees; and such a model has no other positions. */
static int mlo_keys_meet(mlo_lanes *l, mlo_node *n, size_t k, mlo_lane at, int rank, int *done) {
    const mlo_prompt *p = (const mlo_prompt *)l->user;
    const mlo_value *v = mlo_value_of(l->g, n->input[k]);
    int changes = 0;
    (void)rank;
    *done = 1;
    if (!p->k->fixed || !v || !v->tensor || at.axis < 0 || mlo_form_of(v).dims[at.axis] != l->batch)
        return 1;
    mlo_array *all = mlo_tensor_load(l->m, v->tensor);
    const int alike = all && mlo_keys_alike(all);
    const int even = all && !alike && mlo_is(n, "Add") && mlo_keys_even(all, at.axis, &changes);
    mlo_array_free(l->m, all);
    p->k->placed |= even && changes;
    return alike || even;
}

/* ---- where tokens lie ----------------------------------------------------- */

/* A constant for all tokens: of rank `rank`, tokens along `axis`, of arrays that each token has. */
static const char *mlo_prompt_constant(mlo_prompt *p, const mlo_instant *o, int axis, int rank) {
    mlo *m = p->m;
    const int64_t n = p->k->tokens;
    const char *name = NULL;
    const char *key = mlo_format(m, "%s %d %d", o->name, axis, rank);
    if (!key || (name = (const char *)mlo_map_get(&p->made, key)) != NULL) return name;
    int64_t dims[MLO_MAX_RANK] = { 0 }, rows = 1;
    for (int d = 0; d < rank; d++) {
        const int of = d - (rank - o->form.rank);
        dims[d] = d == axis ? n : of < 0 ? 1 : o->form.dims[of];
        if (d < axis) rows *= dims[d];
    }
    mlo_array *all = mlo_array_new(m, o->form.dtype, rank, dims);
    const size_t row = (size_t)(o->all->dims[1] / (rows ? rows : 1))
        * mlo_dtype_size(o->form.dtype);
    for (int64_t i = 0; all && i < rows * n; i++)
        memcpy((char *)all->data + (size_t)i * row,
            mlo_instant_array(o, i % n) + (size_t)(i / n) * row, row);
    size_t number = 0;
    if (all) name = mlo_name_new(m, p->g, o->name, "of_all", &number);
    const int made = name && !mlo_graph_init(m, p->g, mlo_tensor_from(m, name, all))
        && !mlo_map_put(m, &p->made, key, (void *)(uintptr_t)name);
    mlo_array_free(m, all);
    return made ? name : NULL;
}

/* An operand that differs from token to token is read for all of them, along an axis. */
static int mlo_tokens_reads(
    mlo_lanes *l, mlo_prompt *p, mlo_node *n, size_t k, int axis, int rank) {
    const mlo_lane_edit e = { n, k, NULL,
        mlo_prompt_constant(p, mlo_instant_of(p->k, n->input[k]), axis, rank), NULL, 0, 0 };
    return e.name && MLO_PUSH(l->m, l->edit, l->n_edit, e);
}
/* What differs from token to token is read for all of them. */
static int mlo_tokens_meet(mlo_lanes *l, mlo_node *n, size_t k, mlo_lane at, int rank, int *done) {
    mlo_prompt *p = (mlo_prompt *)l->user;
    const mlo_instant *o = mlo_instant_of(p->k, n->input[k]);
    *done = o != NULL;
    if (!o || at.outer * at.inner != 1 || (at.axis >= 0 && o->form.dims[at.axis] != 1)) return 0;
    return mlo_tokens_reads(
        l, p, n, k, at.axis < 0 ? 0 : at.axis, at.axis < 0 ? rank : o->form.rank);
}

/* Beside keys alone, what differs has its tokens in front of its keys: [.., 1, keys]. */
static int mlo_tokens_begin(mlo_lanes *l, const mlo_prompt *p, const mlo_node *n) {
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_instant *o = mlo_has_input(n, i) ? mlo_instant_of(p->k, n->input[i]) : NULL;
        int keys = o ? o->grows : -1;
        if (!o) continue;
        if (keys < 0 && o->form.rank > 1 && o->form.dims[o->form.rank - 1] == p->k->tokens)
            keys = o->form.rank - 1;
        return keys > 0 && mlo_lane_put(l, o->name, keys - 1, 1, 1);
    }
    return 0;
}

/* New keys or values are all there are. */
static int mlo_tokens_join(const mlo_lanes *l, const mlo_prompt *p, const mlo_join *j) {
    const mlo_lane at = mlo_lane_in(l, j->node, j->fresh);
    const mlo_instant *o = j->place ? mlo_instant_of(p->k, j->node->input[j->place]) : NULL;
    int in_order = at.axis == j->axis && at.outer * at.inner == 1 && (!j->place || o);
    for (int64_t i = 0; o && in_order && i < mlo_array_count(o->all); i++) {
        int64_t place;
        mlo_convert(MLO_INT64, &place, o->all->dtype,
            (char *)o->all->data + (size_t)i * mlo_dtype_size(o->all->dtype), 1);
        in_order = place == i / o->all->dims[1];
    }
    return in_order;
}

/* RotaryEmbedding(x [.., tokens, channels], cosines, sines [1, tokens, ..], or tables of all, positions). */
static int mlo_tokens_rotary(mlo_lanes *l, mlo_prompt *p, mlo_node *n) {
    const mlo_lane at = mlo_lane_in(l, n, 0);
    if (at.axis != mlo_lane_form(l, n, 0).rank - 2 || at.outer * at.inner != 1) return 0;
    const size_t first = mlo_has_input(n, 3) ? 3 : 1, last = first == 3 ? 3 : 2;
    for (size_t k = first; k <= last; k++) {
        const mlo_instant *o = mlo_has_input(n, k) ? mlo_instant_of(p->k, n->input[k]) : NULL;
        if (!o || mlo_lane_in(l, n, k).axis >= 0 || o->form.rank < 2 || o->form.dims[1] != 1
            || !mlo_tokens_reads(l, p, n, k, 1, o->form.rank))
            return 0;
    }
    for (size_t k = 1; k < first; k++)
        if (first == 3 && mlo_has_input(n, k) && mlo_instant_of(p->k, n->input[k])) return 0;
    return mlo_lane_all(l, n, at.axis, at);
}

/* The last of keys, or of what a mask says of each, is each token's own. (Of scores it would be that of a token for
 * itself.) */
static int mlo_tokens_own(mlo_lanes *l, mlo_node *n) {
    const mlo_form f = mlo_lane_form(l, n, 0);
    int axis = f.rank - 1;
    if (mlo_lane_in(l, n, 0).axis >= 0) return 0;
    while (axis > 0 && f.dims[axis] == mlo_form_of(mlo_value_of(l->g, n->output[0])).dims[axis])
        axis--;
    return mlo_lane_becomes(l, n, "Identity", NULL) && mlo_lane_put(l, n->output[0], axis, 1, 1);
}

/* The rules of tokens. */
static int mlo_tokens_rule(mlo_lanes *l, mlo_node *n, int *done) {
    mlo_prompt *p = (mlo_prompt *)l->user;
    const mlo_join *j = mlo_join_of(p, n);
    int instant = 0, laned = 0;
    *done = 1;
    if (j) return mlo_tokens_join(l, p, j);
    if (mlo_is(n, "RotaryEmbedding")) return mlo_tokens_rotary(l, p, n);
    if (mlo_map_get(&p->turns, n)) return mlo_tokens_own(l, n);
    for (size_t i = 0; i < n->n_input; i++) {
        instant |= mlo_has_input(n, i) && mlo_instant_of(p->k, n->input[i]) != NULL;
        laned |= mlo_lane_in(l, n, i).axis >= 0;
    }
    *done = 0;
    if (!instant) return 0;
    *done = !mlo_lane_is_elements(n) && !mlo_is(n, "Concat");
    if (!*done && !laned) *done = !mlo_tokens_begin(l, p, n);
    return 0;
}

/* ---- the prompt ----------------------------------------------------------- */

static int mlo_prompt_follow(mlo_prompt *p, mlo_lanes *l) {
    for (size_t i = 0; i < p->g->n_node; i++) {
        l->stop = p->g->node[i];
        if (!mlo_lane_node(l, p->g->node[i])) return 0;
    }
    l->stop = NULL;
    return 1;
}

/* From joints on, and from masks [1, keys] or [1, 1, 1, keys]. */
static int mlo_prompt_keys(mlo_prompt *p, mlo_lanes *l) {
    l->batch = l->to = p->k->tokens;
    l->rule = mlo_keys_rule;
    l->meets = mlo_keys_meet;
    for (size_t i = 0; i < p->g->n_input; i++) {
        const char *name = p->g->input[i]->name;
        const mlo_form f = mlo_form_of(mlo_value_of(p->g, name));
        if ((f.rank == 2 || f.rank == 4) && !mlo_instant_of(p->k, name) && f.dims[f.rank - 2] == 1
            && f.dims[f.rank - 1] == p->k->tokens && !mlo_lane_put(l, name, f.rank - 1, 1, 1))
            return 0;
    }
    return mlo_prompt_follow(p, l);
}

static int mlo_prompt_tokens(mlo_prompt *p, mlo_lanes *l) {
    l->batch = 1;
    l->to = p->k->tokens;
    l->rule = mlo_tokens_rule;
    l->meets = mlo_tokens_meet;
    const mlo_cacheless c = { p->m, p->g, p->k->tokens };
    for (size_t i = 0; i < p->g->n_input; i++) {
        const mlo_value *v = mlo_value_of(p->g, p->g->input[i]->name);
        const int axis = mlo_instant_of(p->k, v->name) ? -1 : mlo_tokens_axis(&c, v);
        if (axis < 0 || mlo_form_of(v).dims[axis] != 1) continue;
        if (!mlo_lane_put(l, v->name, l->second ? axis : 0, 1, 1)) return 0;
    }
    return mlo_prompt_follow(p, l);
}

/* A mask [.., tokens, .., keys] for scores: what comes later is hidden. */
static const char *mlo_prompt_causal(mlo_prompt *p, const mlo_form *scores, int token, int key) {
    mlo *m = p->m;
    const int64_t n = p->k->tokens, size[2] = { n, n };
    const float zero = 0, hidden = -INFINITY;
    mlo_instant o = { NULL, { scores->dtype, scores->rank, { 0 } }, key, NULL, 0, 0 };
    const char *name = NULL;
    o.name = mlo_format(m, "causal_%s_%d", mlo_dtype_name(scores->dtype), key);
    for (int d = 0; d < scores->rank; d++) o.form.dims[d] = d == key ? n : 1;
    o.all = o.name && token < key ? mlo_array_new(m, scores->dtype, 2, size) : NULL;
    for (int64_t i = 0; o.all && i < n * n; i++)
        mlo_convert(scores->dtype, (char *)o.all->data + (size_t)i * mlo_dtype_size(scores->dtype),
            MLO_FLOAT, i % n > i / n ? &hidden : &zero, 1);
    if (o.all) name = mlo_prompt_constant(p, &o, token, scores->rank);
    mlo_array_free(m, o.all);
    return name;
}

/* The node that puts a mask in front of a softmax over keys. */
static mlo_node *mlo_prompt_masked(mlo_prompt *p, const mlo_lanes *l, mlo_node *softmax) {
    mlo *m = p->m;
    const mlo_form f = mlo_lane_form(l, softmax, 0);
    const int64_t said = mlo_int(softmax, "axis", -1), axis = said < 0 ? said + f.rank : said;
    const mlo_lane at = mlo_lane_in(l, softmax, 0);
    const char *mask = at.axis < 0 || at.outer * at.inner != 1
        ? NULL
        : mlo_prompt_causal(p, &f, at.axis, (int)axis);
    const char *out = mask ? mlo_format(m, "%s_causal", softmax->output[0]) : NULL;
    mlo_node *add = out ? mlo_node_new(m, "Add", out) : NULL;
    if (!mask && !m->error.code)
        mlo_prompt_refuse(m, softmax, "scores that are not [.., tokens, keys]");
    if (!add || mlo_node_input(m, add, softmax->input[0]) || mlo_node_input(m, add, mask)
        || mlo_node_output(m, add, out))
        return NULL;
    add->meta = softmax->meta;
    add->n_meta = softmax->n_meta;
    softmax->input[0] = add->output[0];
    return add;
}

/* A mask in front of each softmax over keys. */
static int mlo_prompt_mask(mlo_prompt *p, const mlo_lanes *l) {
    mlo_node **node = NULL;
    size_t n = 0, k = 0;
    for (size_t i = 0; i < p->g->n_node; i++) {
        const int masked = k < p->n_softmax && p->softmax[k] == p->g->node[i];
        mlo_node *add = masked ? mlo_prompt_masked(p, l, p->softmax[k++]) : NULL;
        if ((masked && (!add || !MLO_PUSH(p->m, node, n, add)))
            || !MLO_PUSH(p->m, node, n, p->g->node[i]))
            return mlo_failed(p->m);
    }
    p->g->node = node;
    p->g->n_node = n;
    return 0;
}

/* Past keys and values go; what differs from token to token is constant. */
static int mlo_prompt_forget(mlo_prompt *p, const mlo_lanes *l) {
    for (size_t i = 0; i < p->n_join; i++) {
        const mlo_join *j = &p->join[i];
        mlo_drop_info(p->g->input, &p->g->n_input, j->past);
        mlo_node_passes(j->node, j->node->input[j->fresh]);
    }
    for (size_t i = 0; i < p->k->n_instant; i++) {
        const mlo_instant *o = p->k->instant[i];
        const int axis = o->put ? mlo_lane_of(l, o->name).axis : -1;
        if (!o->put) continue;
        mlo_drop_info(p->g->input, &p->g->n_input, o->name);
        const char *all = axis >= 0 ? mlo_prompt_constant(p, o, axis, o->form.rank) : NULL;
        const mlo_value *v = mlo_value_of(p->g, o->name);
        for (size_t u = 0; all && u < v->n_use; u++)
            for (size_t k = 0; k < v->use[u]->n_input; k++)
                if (v->use[u]->input[k] == o->name) v->use[u]->input[k] = all;
    }
    return mlo_failed(p->m);
}

static int mlo_prompt_make(mlo_prompt *p) {
    mlo *m = p->m;
    const mlo_lanes none = { m, p->g, 0, 0, 0, NULL, NULL, p, { NULL, 0, 0 }, { NULL, 0, 0 }, NULL,
        0, NULL };
    mlo_lanes keys = none, l = none;
    const mlo_node *stop = NULL;
    int done = mlo_prompt_keys(p, &keys);
    mlo_lane_free(&keys);
    if (!done)
        return m->error.code ? mlo_failed(m) : mlo_prompt_refuse(m, keys.stop, "keys and values");
    if (p->k->fixed && !p->k->placed)
        return mlo_fail_at(m, MLO_E_UNSUPPORTED, NULL,
            "the step is exported for one new token behind a past of fixed length, and no input "
            "says where it is: what "
            "depends on its place is a constant of the last one; export it with the past's length "
            "dynamic, or with "
            "position_ids");
    for (int second = 1; second >= 0 && !(done = 0); second--) {
        l = none;
        l.second = second;
        done = mlo_prompt_tokens(p, &l);
        if (done) break;
        if (second) stop = l.stop;
        mlo_lane_free(&l);
    }
    if (!done) return m->error.code ? mlo_failed(m) : mlo_prompt_refuse(m, stop, "it");
    const int failed = mlo_prompt_mask(p, &l) || mlo_lane_write(&l) || mlo_prompt_forget(p, &l)
        || mlo_drop_dead(m, p->g) || mlo_index(m, p->g) || mlo_infer(m);
    mlo_lane_free(&l);
    return failed ? mlo_failed(m) : 0;
}

/* A step of one token, constants folded, becomes the prompt. */
static int mlo_step_end(mlo *m, mlo_instants *k) {
    mlo_prompt p = { m, m->model->graph, k, NULL, 0, { NULL, 0, 0 }, { NULL, 0, 0 }, NULL, 0,
        { NULL, 0, 0 } };
    if (m->stale) MLO_TRY(mlo_index(m, p.g));
    k->forms = (mlo_map){ NULL, 0, 0 };
    if (mlo_ungroup(m, p.g) || mlo_instants_take(k) || mlo_index(m, p.g) || mlo_infer(m)
        || mlo_joins_find(&p) || mlo_joins_keep(&p))
        return mlo_failed(m);
    return mlo_prompt_make(&p);
}
