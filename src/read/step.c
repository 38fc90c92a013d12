/* step: a decoder's step that was exported for one new token: which model is one, and what its place decides.
 *
 * in:  a model of one token, ids [1, 1], with past keys and values in and present ones out (or buffers that rows are
 *      written into), read for a context of N tokens.
 * out: the same at the last of N tokens; what only a token's place decides is known at each of them (instants.c), and
 *      inputs of the model until prompt.c makes N tokens of the one.
 *
 * Such an export has no axis of tokens: its sizes are 1, nothing is masked, since a new token attends to all there is,
 * and what depends on where it is is one row: of a position that is an input, or computed from how long the past is.
 * What is computed from sizes that depend on an open past is found by a length that is no other size by chance.
 *
 * invariant: where the past has a fixed length, and no input says where the token is, k->placed is 0: its place may be
 *     a constant.
 * example: ids [1, 1], past [1, 2, P, 4], Cos(Shape(past)[2] * f) at 16 tokens: P is 15, cosines an input [1, 1, 4].
 * cost: O(nodes), and N evaluations of what depends on a token's place.
 */

/* ---- what is a step of one token ------------------------------------------ */

/* The axis of tokens of what is kept in an input: of a past, or of a buffer; -1: it is neither. *buffer: which. */
static int mlo_kept_axis(const mlo_cacheless *c, const mlo_value *v, mlo_node **buffer) {
    const mlo_past p = mlo_past_of(c, v);
    mlo_node *first = NULL;
    *buffer = NULL;
    if (!mlo_may_be_past(&p)) return -1;
    *buffer = mlo_written_by(c, p.v, 0);
    if (!*buffer && p.cacher && mlo_is(p.node, "TensorScatter")) *buffer = p.node;
    if (!*buffer) return p.joined && p.out && p.node->n_input == 2 ? p.axis : -1;
    if (mlo_is(*buffer, "TensorScatter")) return p.out ? p.axis : -1;
    if (!mlo_buffer_out(c, *buffer)) return -1;
    mlo_readers(p.v, &first);
    return (int)mlo_buffer_axis(*buffer, first != *buffer ? first : NULL, p.form.rank);
}

/* Is a value computed from an input? */
static int mlo_stands_on(const mlo_graph *g, const char *name, const char *input, int depth) {
    const mlo_node *n = mlo_value_of(g, name) ? mlo_value_of(g, name)->producer : NULL;
    int stands = name == input;
    for (size_t i = 0; n && depth < 8 && !stands && i < n->n_input; i++)
        stands = mlo_has_input(n, i) && mlo_stands_on(g, n->input[i], input, depth + 1);
    return stands;
}

/* Does an input say where the token is? One whole number, called a position; or it says where a buffer is written. */
static int mlo_says_where(const mlo_cacheless *c, const mlo_value *v) {
    const mlo_form f = mlo_form_of(v);
    mlo_node *buffer = NULL;
    if (mlo_dtype_is_float(f.dtype) || f.dtype == MLO_BOOL || f.rank < 0 || f.rank > 2) return 0;
    if (f.rank && f.dims[f.rank - 1] != 1) return 0;
    if (strstr(v->name, "pos")) return 1;
    for (size_t i = 0; f.rank < 2 && i < c->g->n_input; i++) {
        mlo_kept_axis(c, mlo_value_of(c->g, c->g->input[i]->name), &buffer);
        const size_t place = mlo_is(buffer, "TensorScatter") ? 2 : 1;
        if (buffer)
            return mlo_has_input(buffer, place)
                && mlo_stands_on(c->g, buffer->input[place], v->name, 0);
    }
    return 0;
}

/* Are rows of a table looked up by an input, as those of words by ids? */
static int mlo_looks_up(const mlo_value *v) {
    for (size_t i = 0; i < v->n_use; i++)
        if (mlo_is(v->use[i], "Gather") && v->use[i]->n_input > 1 && v->use[i]->input[1] == v->name)
            return 1;
    return 0;
}

/* The axis of tokens of an input, ids or hidden states; -1: it has none. */
static int mlo_tokens_axis(const mlo_cacheless *c, const mlo_value *v) {
    const mlo_form f = mlo_form_of(v);
    mlo_node *buffer;
    if (mlo_says_where(c, v) || mlo_kept_axis(c, v, &buffer) >= 0) return -1;
    if (mlo_dtype_is_float(f.dtype)) return f.rank == 3 ? 1 : -1;
    if (f.rank != 1 && f.rank != 2) return -1;
    return mlo_looks_up(v) || (f.rank == 2 && f.dims[1] == 1) ? f.rank - 1 : -1;
}

/* Does one token come in? */
static int mlo_steps_by_one(const mlo_cacheless *c) {
    int one = 0, more = 0;
    for (size_t i = 0; i < c->g->n_input; i++) {
        const mlo_value *v = mlo_value_of(c->g, c->g->input[i]->name);
        const mlo_form f = mlo_form_of(v);
        const int tokens = mlo_tokens_axis(c, v);
        one |= tokens >= 0 && f.dims[tokens] == 1;
        more |= tokens >= 0 && f.dims[tokens] != 1 && mlo_looks_up(v);
    }
    return one && !more;
}

/* How many tokens the cache of a step of one token keeps with the new one: as its past is long, or its buffers; -1:
 * that is open; 0: it is no such step. */
static int64_t mlo_step_tokens(const mlo_cacheless *c) {
    for (size_t i = 0; i < c->g->n_input; i++) {
        const mlo_value *v = mlo_value_of(c->g, c->g->input[i]->name);
        const mlo_form f = mlo_form_of(v);
        mlo_node *buffer;
        const int axis = mlo_kept_axis(c, v, &buffer);
        if (axis >= 0 && mlo_steps_by_one(c)) return f.dims[axis] < 0 ? -1 : f.dims[axis] + !buffer;
    }
    return 0;
}

/* Are there buffers? */
static int mlo_step_buffers(const mlo_cacheless *c) {
    mlo_node *buffer = NULL;
    for (size_t i = 0; i < c->g->n_input && !buffer; i++)
        mlo_kept_axis(c, mlo_value_of(c->g, c->g->input[i]->name), &buffer);
    return buffer != NULL;
}

/* ---- before constants are folded ------------------------------------------ */

/* A size of an input that is open: that of a past and so many more. */
typedef struct {
    mlo_dim *of;
    int64_t more;
} mlo_open_size_of;

typedef struct {
    mlo_open_size_of *size;
    size_t n;
} mlo_open_sizes;

/* All of them: sequences are one, what has a place for each key is one longer than the past. */
static int mlo_open_find(mlo_cacheless *c, mlo_open_sizes *open) {
    for (size_t i = 0; i < c->g->n_input; i++) {
        const mlo_value *v = mlo_value_of(c->g, c->g->input[i]->name);
        mlo_shape *s = v->info && v->info->type && v->info->type->tensor
            ? v->info->type->tensor->shape
            : NULL;
        mlo_node *buffer;
        const int axis = mlo_kept_axis(c, v, &buffer);
        for (size_t d = 0; s && d < s->n_dim; d++) {
            if (!s->dim[d].param && s->dim[d].has & MLO_HAS(1)) continue;
            const int sequences = !d && s->n_dim > 1 && axis != 0;
            const int stack = s->n_dim > 4; /* of which sizes alone are read */
            const mlo_open_size_of one = { &s->dim[d], axis != (int)d && !stack };
            s->dim[d].param = NULL;
            s->dim[d].has = MLO_HAS(1);
            s->dim[d].value = 1;
            if (!sequences && !MLO_PUSH(c->m, open->size, open->n, one)) return mlo_failed(c->m);
        }
    }
    return 0;
}
static int mlo_open_bind(mlo_cacheless *c, const mlo_open_sizes *open, int64_t past) {
    for (size_t i = 0; i < open->n; i++) open->size[i].of->value = past + open->size[i].more;
    return mlo_index(c->m, c->g);
}

/* Which sizes depend on an open past: the model is looked at with a length that is no size by chance. */
static int mlo_step_probe(mlo_cacheless *c, const mlo_open_sizes *open, mlo_instants *k) {
    mlo *m = c->m;
    mlo_graph *g = c->g;
    const size_t n_info = g->n_info;
    mlo_value_info **info = g->info;
    mlo_type **type = MLO_NEW_N(m, mlo_type *, n_info + g->n_output + 1);
    if (!type) return mlo_failed(m);
    for (size_t i = 0; i < n_info; i++) type[i] = info[i]->type;
    for (size_t i = 0; i < g->n_output; i++) type[n_info + i] = g->output[i]->type;
    g->info = NULL;
    g->n_info = 0;
    if (mlo_open_bind(c, open, MLO_INSTANT_PROBE) || mlo_infer(m)) return mlo_failed(m);
    for (size_t i = 0; i < g->n_node; i++) {
        const int asks = mlo_reads_shape(g->node[i]) && mlo_has_input(g->node[i], 0);
        mlo_form *f = asks ? MLO_NEW(m, mlo_form) : NULL;
        if (!f) continue;
        *f = mlo_form_of(mlo_value_of(g, g->node[i]->input[0]));
        if (mlo_form_known(f)) MLO_TRY(mlo_map_put(m, &k->forms, g->node[i]->input[0], f));
    }
    g->info = info;
    g->n_info = n_info;
    for (size_t i = 0; i < n_info; i++) info[i]->type = type[i];
    for (size_t i = 0; i < g->n_output; i++) g->output[i]->type = type[n_info + i];
    return mlo_failed(m);
}

/* Inputs that say where the token is are known at each, and are that of the last one where sizes are computed. */
static int mlo_step_places(mlo_cacheless *c, mlo_instants *k) {
    for (size_t i = 0; i < c->g->n_input; i++) {
        const mlo_value *v = mlo_value_of(c->g, c->g->input[i]->name);
        const mlo_form f = mlo_form_of(v);
        if (!mlo_says_where(c, v)) {
            if (f.rank || mlo_dtype_is_float(f.dtype)) continue;
            return mlo_fail_at(c->m, MLO_E_UNSUPPORTED, v->name,
                "whether it says where the step's new token is, or how many there are with it, is "
                "not known; call it a "
                "position, or export the step for several new tokens, with that axis dynamic");
        }
        k->placed = 1;
        MLO_TRY(mlo_instant_counts(k, v->name));
    }
    MLO_TRY(mlo_instants_take(k));
    for (size_t i = c->g->n_input; i--;) {
        const char *name = c->g->input[i]->name;
        const mlo_instant *o = mlo_instant_of(k, name);
        if (o && !o->put) MLO_TRY(mlo_fix_input(c, name, &o->form, c->tokens - 1, 0));
    }
    return mlo_index(c->m, c->g);
}

static int mlo_step_begin(mlo_cacheless *c, mlo_instants *k) {
    mlo *m = c->m;
    const int64_t said = mlo_step_tokens(c);
    mlo_open_sizes open = { NULL, 0 };
    k->m = m;
    k->g = c->g;
    k->tokens = c->tokens;
    k->fixed = said > 0 && !mlo_step_buffers(c);
    if (said > 0 && said != c->tokens)
        return mlo_fail_at(m, MLO_E_SHAPE, NULL,
            "--context %lld: the step is exported for a past of fixed length, with which it keeps "
            "%lld tokens; give "
            "--context %lld, or export it with that axis dynamic",
            (long long)c->tokens, (long long)said, (long long)said);
    MLO_TRY(mlo_open_find(c, &open));
    if (said < 0) MLO_TRY(mlo_step_probe(c, &open, k));
    return mlo_open_bind(c, &open, c->tokens - 1) || mlo_infer(m) || mlo_step_places(c, k)
        ? mlo_failed(m)
        : 0;
}
