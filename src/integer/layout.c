/* layout: tells which values of a loop's body depend on the carried value, and which element of one
 * value is which element of another.
 *
 * in:  a loop's body, indexed, with known shapes.
 * out: for any value, the value that it is a view of, and for each element its place in that.
 *
 * invariant: a view moves elements and computes nothing. How an operator moves elements is found by
 *     evaluating it on the numbers 0, 1, 2, ..: Slice or Transpose have no second definition here.
 * example: Transpose(Reshape(x, [1, 12, 4, 8])) is a view of x [1, 12, 32]; its element (h, t, j)
 *     is element (t, 8 h + j) of x.
 * cost: one evaluation over integers for each operator that moves elements; nothing for one that
 *     only renames dimensions.
 */
typedef struct {
    mlo *m;
    const mlo_scan *scan;
    mlo_graph *body;
    mlo_map carried; /* names that depend on a stream: a carried value, or the memory */
    mlo_map own; /* those that depend on a carried value */
    /* the value from around the loop that every iteration projects to keys and values (an encoder's
     * output), NULL: none */
    const char *memory;
} mlo_inside;

static int mlo_is_carried(const mlo_inside *in, const char *name) {
    return mlo_map_get(&in->carried, name) != NULL;
}

/* Does it come from the memory alone? */
static int mlo_is_memory(const mlo_inside *in, const char *name) {
    return mlo_is_carried(in, name) && !mlo_map_get(&in->own, name);
}

/* Adds to the set what depends on what is in it. */
static int mlo_mark_dependents(mlo *m, const mlo_graph *body, mlo_map *set) {
    for (size_t i = 0; i < body->n_node; i++) {
        mlo_node *n = body->node[i];
        int depends = 0;
        for (size_t k = 0; k < n->n_input; k++) depends |= mlo_map_get(set, n->input[k]) != NULL;
        for (size_t k = 0; depends && k < n->n_output; k++)
            MLO_TRY(mlo_map_put(m, set, n->output[k], n));
    }
    return 0;
}

/* The value from around the loop that a product with a parameter reads, behind layouts, if it is only
 * known when the model runs; else NULL. */
static const char *mlo_memory_read(const mlo_scan *s, const mlo_node *n) {
    if ((!mlo_is(n, "MatMul") && !mlo_is(n, "Gemm"))
        || !mlo_is_parameter(s, s->body, n->input[1], 0))
        return NULL;
    const char *name = n->input[0];
    for (mlo_node *p = mlo_maker_in(s->body, name); p; p = mlo_maker_in(s->body, name)) {
        if (!mlo_has_trait(p, (mlo_trait)(MLO_RESHAPES | MLO_MOVES))) return NULL;
        name = p->input[0];
    }
    const mlo_value *v = mlo_value_of(s->body, name);
    return v->graph != s->body && !mlo_is_parameter(s, v->graph, name, 0) ? name : NULL;
}

/* Finds the memory. */
static int mlo_find_memory(mlo *m, const mlo_scan *s, mlo_inside *in) {
    for (size_t i = 0; i < s->body->n_node; i++) {
        const char *name = mlo_memory_read(s, s->body->node[i]);
        if (name && in->memory && name != in->memory)
            return mlo_fail(m, MLO_E_UNSUPPORTED, s->body->node[i],
                "layers project two values from around the loop, '%s' and '%s'; hardware has one "
                "such stream, an encoder's output, to which parameters may be added (DETR's "
                "positions); build another loop (--loop NAME), or export with a picture's mask "
                "held",
                in->memory, name);
        if (name) in->memory = name;
    }
    return 0;
}

/* What depends on a stream has a known form: rules and recognisers need not ask. */
static int mlo_all_formed(mlo *m, const mlo_inside *in) {
    for (size_t i = 0; i < in->body->n_node; i++) {
        const mlo_node *n = in->body->node[i];
        for (size_t k = 0; k < n->n_output; k++) {
            const mlo_form f = mlo_form_of(mlo_value_of(in->body, n->output[k]));
            if (mlo_is_carried(in, n->output[k]) && !mlo_form_known(&f))
                return mlo_fail(m, MLO_E_UNSUPPORTED, n,
                    "every layer makes '%s', of a form that mlo does not know; the integer core "
                    "knows "
                    "linear layers, norms, attention, residual adds, products and functions of one "
                    "value, of fixed forms (--dim NAME=N binds an open dimension)",
                    n->output[k]);
        }
    }
    return 0;
}

/* Marks what depends on streams. */
static int mlo_inside_of(mlo *m, const mlo_scan *scan, mlo_inside *in) {
    memset(in, 0, sizeof *in);
    in->m = m;
    in->scan = scan;
    in->body = scan->body;
    MLO_TRY(mlo_find_memory(m, scan, in));
    for (size_t i = 0; i < scan->n_state; i++)
        if (mlo_map_put(m, &in->own, in->body->input[i]->name, in->body)
            || mlo_map_put(m, &in->carried, in->body->input[i]->name, in->body))
            return mlo_failed(m);
    if (in->memory) MLO_TRY(mlo_map_put(m, &in->carried, in->memory, in->body));
    MLO_TRY(mlo_mark_dependents(m, in->body, &in->own));
    MLO_TRY(mlo_mark_dependents(m, in->body, &in->carried));
    return mlo_all_formed(m, in);
}

static mlo_node *mlo_made_by(const mlo_inside *in, const char *name) {
    return mlo_maker_in(in->body, name);
}
static mlo_form mlo_body_form(const mlo_inside *in, const char *name) {
    return mlo_form_of(mlo_value_of(in->body, name));
}

/* The one number a constant is, if it is one: learned or not, it must be the same in all iterations. */
static int mlo_scalar(const mlo_inside *in, const char *name, double *x) {
    return mlo_lone_number(in->m, mlo_value_of(in->body, name), x);
}

/* A parameter that is one number, perhaps another one in each iteration. */
static int mlo_is_number(const mlo_inside *in, const char *name) {
    mlo_form f = mlo_body_form(in, name);
    return !mlo_is_carried(in, name) && mlo_form_known(&f) && mlo_form_count(&f) == 1;
}

static int mlo_is_rounded(const mlo_inside *in, const char *name, mlo_rounding *f) {
    return mlo_is_carried(in, name) && mlo_rounding_of(in->m, in->scan, in->body, name, f);
}

/* ---- views ---------------------------------------------------------------- */

static int mlo_is_elementwise(const mlo_node *n) { return mlo_has_trait(n, MLO_ELEMENTWISE); }
static int mlo_is_layout(const mlo_node *n) {
    return mlo_has_trait(n, (mlo_trait)(MLO_RESHAPES | MLO_MOVES));
}

/* Is it a Concat of one value of the loop's own with parameters: rows beside tokens (prefix.c)? */
static int mlo_is_beside_rows(const mlo_inside *in, const mlo_node *n) {
    int carried = 0;
    for (size_t k = 0; mlo_is(n, "Concat") && k < n->n_input; k++)
        carried += mlo_is_carried(in, n->input[k]);
    return carried == 1 && n->n_input > 1;
}

/* The value a chain of layout nodes and roundings (and, with `scale`, multiplications by
 * constants) starts from; fills the chain, last node first; made: the value that each node makes
 * in it. Roundings: each with what is still multiplied behind it. */
enum { MLO_CHAIN = 24 };
typedef struct {
    mlo_node *node[MLO_CHAIN];
    const char *made[MLO_CHAIN];
    int n;
    mlo_rounding rounding[MLO_CHAIN];
    double behind[MLO_CHAIN];
    int n_rounding;
} mlo_chain;

/* What `name` is a constant times of: the operand; *scale takes the constant. NULL: it is no such
 * product. */
static const char *mlo_unscaled(const mlo_inside *in, const mlo_node *p, double *scale) {
    double x;
    int product = mlo_is(p, "Mul");
    if (!product && !mlo_is(p, "Div")) return NULL;
    if (mlo_scalar(in, p->input[1], &x)) {
        *scale *= product ? x : 1 / x;
        return p->input[0];
    }
    if (product && mlo_scalar(in, p->input[0], &x)) {
        *scale *= x;
        return p->input[1];
    }
    return NULL;
}

/* Of heads of D channels: the channel of keys (or values) that channel c of the queries (or of the
 * result) meets, where `shared` heads one behind the other read each head of keys. */
static int64_t mlo_shared_channel(int64_t d, int64_t shared, int64_t c) {
    return c / (d * shared) * d + c % d;
}

/* Is it a norm over the last axis? */
static int mlo_is_norm(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is(n, "RMSNormalization") && !mlo_is(n, "LayerNormalization")) return 0;
    const mlo_form f = mlo_body_form(in, n->input[0]);
    const int64_t axis = mlo_int(n, "axis", -1);
    return axis == -1 || axis == f.rank - 1;
}

/* Tokens of a norm over all channels of all tokens of one frame, [1, .., C], with a scale and a bias for each channel
 * or none; 0: it is another one. */
static int64_t mlo_frame_norm_tokens(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is(n, "RMSNormalization") && !mlo_is(n, "LayerNormalization")) return 0;
    const mlo_form f = mlo_body_form(in, n->input[0]);
    const int64_t axis = mlo_int(n, "axis", -1), at = axis < 0 ? axis + f.rank : axis;
    if (!mlo_form_known(&f) || at < 0 || at > f.rank - 2) return 0;
    for (int64_t k = 0; k < at; k++)
        if (f.dims[k] != 1) return 0;
    for (size_t k = 1; k < 3; k++) {
        const mlo_form p = mlo_body_form(in, mlo_has_input(n, k) ? n->input[k] : "");
        if (mlo_has_input(n, k)
            && (!mlo_form_known(&p) || mlo_last_dim(&p) != mlo_last_dim(&f)
                || mlo_form_count(&p) != mlo_last_dim(&f)))
            return 0;
    }
    return mlo_form_count(&f) / mlo_last_dim(&f);
}

/* The norm over parts of a token's channels (each head's, say) behind which n joins them again:
 * there views end, as what is read is the token. NULL: n does no such thing. */
static mlo_node *mlo_joined_norm(const mlo_inside *in, const mlo_node *n) {
    mlo_node *p = mlo_has_trait(n, MLO_RESHAPES) ? mlo_made_by(in, n->input[0]) : NULL;
    if (!mlo_is_norm(in, p)) return NULL;
    const mlo_form from = mlo_body_form(in, n->input[0]), to = mlo_body_form(in, n->output[0]);
    const int64_t d = mlo_last_dim(&from), c = mlo_last_dim(&to);
    return d > 0 && c > d && c % d == 0 ? p : NULL;
}

static const char *mlo_chain_walk(
    const mlo_inside *in, const char *name, mlo_chain *c, double *scale) {
    for (c->n = c->n_rounding = 0; c->n + c->n_rounding < MLO_CHAIN;) {
        mlo_node *p = mlo_made_by(in, name);
        const char *factor = NULL;
        if (mlo_is_rounded(in, name, &c->rounding[c->n_rounding])) {
            c->behind[c->n_rounding] = scale ? *scale : 1;
            name = c->rounding[c->n_rounding++].from;
        } else if (mlo_is_layout(p) && mlo_is_carried(in, p->input[0]) && !mlo_joined_norm(in, p)) {
            c->node[c->n] = p;
            c->made[c->n++] = name;
            name = p->input[0];
        } else if (p && scale && (factor = mlo_unscaled(in, p, scale)) != NULL)
            name = factor;
        else
            break;
    }
    return name;
}

enum { MLO_MOVE_INPUTS = 8, MLO_MOVE_OUTPUTS = 16 };

/* What operator n makes of at most MLO_MOVE_INPUTS arrays, of its outputs the one called `made`. NULL: it has too many,
 * or it failed. */
static mlo_array *mlo_made_of(mlo *m, mlo_node *n, const char *made, const mlo_array *const *args) {
    const mlo_op *op = mlo_op_of(m, n);
    mlo_array *out[MLO_MOVE_OUTPUTS] = { 0 }, *result = NULL;
    if (n->n_output > MLO_MOVE_OUTPUTS) return NULL;
    if (mlo_call_node(m, op, n, mlo_opset_of(m), args, out)) return NULL;
    for (size_t k = 0; k < n->n_output; k++) {
        if (n->output[k] == made)
            result = out[k];
        else
            mlo_array_free(m, out[k]);
    }
    return result;
}

/* The elements of `map`, which lies as n's first input does, moved as n moves them to `made`.
 * NULL: how is not known before the model runs. */
static mlo_array *mlo_moved(
    const mlo_inside *in, mlo_node *n, const char *made, const mlo_array *map) {
    const mlo_array *args[MLO_MOVE_INPUTS] = { map };
    mlo_array *list[MLO_MOVE_INPUTS] = { 0 }, *result = NULL;
    int known = n->n_input <= MLO_MOVE_INPUTS;
    for (size_t k = 1; known && k < n->n_input; k++) {
        if (!mlo_has_input(n, k)) continue;
        const mlo_value *v = mlo_value_of(in->body, n->input[k]);
        args[k] = list[k] = v->tensor ? mlo_tensor_load(in->m, v->tensor) : NULL;
        known = list[k] != NULL;
    }
    if (known) result = mlo_made_of(in->m, n, made, args);
    for (size_t k = 0; k < MLO_MOVE_INPUTS; k++) mlo_array_free(in->m, list[k]);
    return result;
}

/* Elements of a form, numbered from `from` on. NULL without memory. */
static mlo_array *mlo_numbered(mlo *m, const mlo_form *f, int64_t from) {
    mlo_array *a = mlo_array_new(m, MLO_INT32, f->rank, f->dims);
    for (int64_t i = 0; a && i < mlo_form_count(f); i++)
        ((int32_t *)a->data)[i] = (int32_t)(from + i);
    return a;
}

/* The elements of `map`, which lies as n's first input does, as the layout n has them in `made`; takes the map. NULL:
 * how is not known. */
static mlo_array *mlo_laid_out(
    const mlo_inside *in, mlo_node *n, const char *made, mlo_array *map) {
    const mlo_form to = mlo_body_form(in, made);
    if (mlo_has_trait(n, MLO_RESHAPES) && mlo_form_count(&to) == mlo_array_count(map)) {
        map->rank = to.rank;
        for (int d = 0; d < to.rank; d++) map->dims[d] = to.dims[d];
        return map;
    }
    mlo_array *moved = mlo_has_trait(n, MLO_MOVES) ? mlo_moved(in, n, made, map) : NULL;
    mlo_array_free(in->m, map);
    return moved;
}

/* map[i] = which element of the source element i of the chain's end is. NULL without memory, or a
 * form is unknown. */
static mlo_array *mlo_index_map(const mlo_inside *in, const char *source, const mlo_chain *c) {
    mlo_form f = mlo_body_form(in, source);
    if (!mlo_form_known(&f) || mlo_form_count(&f) > INT32_MAX) return NULL;
    mlo_array *map = mlo_numbered(in->m, &f, 0);
    for (int k = c->n; map && k--;) map = mlo_laid_out(in, c->node[k], c->made[k], map);
    return map;
}

/* The tokens of a value [.., T, C], flattened: how many, of how many channels. */
static int64_t mlo_tokens_of(const mlo_form *f) {
    int64_t c = mlo_last_dim(f);
    return mlo_form_known(f) && f->rank > 0 && c > 0 ? mlo_form_count(f) / c : -1;
}

/* How a view stands for heads of some channels of each token. */
typedef struct {
    int64_t t; /* tokens */
    int64_t heads;
    int64_t d; /* channels of a head */
    int order; /* 0: as [heads, t, d]; 1: as [heads, d, t] */
} mlo_heads;

/* Where element j of head h at token i lies in such a view. */
static int64_t mlo_head_place(const mlo_heads *v, int64_t h, int64_t i, int64_t j) {
    return v->order ? (h * v->d + j) * v->t + i : (h * v->t + i) * v->d + j;
}

/* column[h d + j] := the channel of the source [.., T, N] that the view takes for j of head h, the
 * same for every token. 0: it is laid out in another way. */
static int mlo_head_columns(const mlo_inside *in, const char *source, const mlo_chain *c,
    const mlo_heads *v, int64_t *column) {
    mlo_form f = mlo_body_form(in, source);
    int64_t n = mlo_last_dim(&f);
    mlo_array *map = mlo_tokens_of(&f) == v->t ? mlo_index_map(in, source, c) : NULL;
    const int32_t *at = map ? (const int32_t *)map->data : NULL;
    int ok = map && mlo_array_count(map) == v->t * v->heads * v->d;
    for (int64_t k = 0; ok && k < v->heads * v->d; k++) {
        int64_t h = k / v->d, j = k % v->d;
        column[k] = at[mlo_head_place(v, h, 0, j)];
        ok = column[k] < n;
        for (int64_t i = 0; ok && i < v->t; i++)
            ok = at[mlo_head_place(v, h, i, j)] == i * n + column[k];
    }
    mlo_array_free(in->m, map);
    return ok;
}

static int mlo_is_identity(const int64_t *column, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (column[i] != i) return 0;
    return 1;
}
