/* token: what is around the loop of a decoder that goes on from call to call (--context), for one token.
 *
 * in:  the values of a model of N tokens, with their forms, and its operators.
 * out: the same values, of one token; of what the model knows of each position a row, that of where the sequence is.
 *
 * The model is a prompt of the N tokens that its cache holds (read/context.c). Each operator around its loop makes a
 * token's numbers of the same token's, or it is refused: so tokens may come one after the other, in calls of any
 * size, and a table of N positions is one to take a row from, at cache->tokens. Tokens lie outermost: axes in front of
 * theirs are of one element.
 *
 * The mask of an export is what each query adds to each key, which no token has alone; the loop reads a truth value for
 * each key of it. Where that is one number's of an input, by its symbol (integer/symbol.c), it is made of that number.
 *
 * invariant: what is made of a token is what the whole prompt makes of it.
 * example: Gather [500,64] by ids [1,16], Add [1,16,64]: ids [1,1]; of the positions mlo_take(1, 16, 1, 64, ..).
 * cost: O(nodes).
 */

static int mlo_token_refuse(mlo_flat *f, const char *what) {
    return mlo_fail(f->m, MLO_E_UNSUPPORTED, f->node,
        "%s, and --whole of a decoder that goes on from call to call makes a token at a time; "
        "leave --whole out, and the host does what is around the loop (host/pre.onnx, "
        "host/post.onnx), or --context, and a call takes a prompt as a whole",
        what);
}

/* ---- along which axis -------------------------------------------------------------------------- */

/* The axis of all tokens behind axes of one element; -1: there is none. */
static int mlo_token_front(const mlo_flat *f, const mlo_flat_value *v) {
    for (int i = 0; i < v->rank; i++) {
        if (v->dims[i] == f->core->chunk) return i;
        if (v->dims[i] != 1) return -1;
    }
    return -1;
}

/* A value has its tokens there (MLO_TOKEN_NONE: it is read as it is), wherever it is read. */
static int mlo_token_mark(mlo_flat *f, mlo_flat_value *v, int axis) {
    const int as = axis < 0 ? MLO_TOKEN_NONE : axis + 1;
    if (v->token && v->token != as)
        return mlo_token_refuse(f, mlo_format(f->m, "'%s' is read in two ways", v->name));
    v->token = as;
    v->reader = f->node;
    return 0;
}

/* Operand k, broadcast to a result whose tokens are `back` axes before its end. */
static int mlo_token_broadcast(mlo_flat *f, size_t k, int back) {
    mlo_flat_value *x = mlo_flat_in(f, k);
    const int axis = x ? x->rank - back : -1;
    if (!x) return 0;
    const int along = axis >= 0 && x->dims[axis] == f->core->chunk;
    if (!x->fixed && x->token != axis + 1)
        return mlo_token_refuse(f, "tokens of its operands are not side by side");
    return x->fixed ? mlo_token_mark(f, x, along ? axis : -1) : 0;
}
static int mlo_token_plain(mlo_flat *f, size_t first) {
    for (size_t k = first; k < f->node->n_input; k++) {
        mlo_flat_value *x = mlo_flat_in(f, k);
        if (x && !x->fixed) return mlo_token_refuse(f, "tokens choose among its weights");
        if (x) MLO_TRY(mlo_token_mark(f, x, -1));
    }
    return 0;
}

/* ---- operators: where their result's tokens are, or 0 and refused -------------------------------- */

/* The axes of a result are those of operand 0 up to its tokens; `axis` is not among those. */
static int mlo_token_behind(mlo_flat *f, int64_t axis) {
    const mlo_flat_value *x = mlo_flat_in(f, 0);
    if (axis < 0) axis += x->rank;
    return axis < x->token ? mlo_token_refuse(f, "it mixes tokens") : mlo_token_plain(f, 1);
}
static int mlo_token_form(mlo_flat *f) { return mlo_token_plain(f, 1); }
static int mlo_token_rows(mlo_flat *f) { return mlo_token_behind(f, mlo_int(f->node, "axis", -1)); }
static int mlo_token_softmax(mlo_flat *f) {
    return mlo_token_behind(f, mlo_int(f->node, "axis", mlo_opset_of(f->m) < 13 ? 1 : -1));
}
static int mlo_token_extreme(mlo_flat *f) {
    return mlo_token_behind(f, mlo_int(f->node, "axis", 0));
}
static int mlo_token_reduce(mlo_flat *f) {
    int64_t axes[2 * MLO_MAX_RANK];
    const int n = mlo_flat_ints(f, "axes", 1, axes);
    if (!n) return mlo_token_refuse(f, "it mixes tokens");
    for (int i = 0; i < n; i++) MLO_TRY(mlo_token_behind(f, axes[i]));
    return 0;
}
static int mlo_token_gather(mlo_flat *f) {
    mlo_flat_value *x = mlo_flat_in(f, 0), *index = mlo_flat_in(f, 1);
    const int64_t axis = mlo_int(f->node, "axis", 0);
    if (!x->fixed) return index ? mlo_token_behind(f, axis) : mlo_failed(f->m);
    return axis ? mlo_token_refuse(f, "its tokens are not outermost") : mlo_token_mark(f, x, -1);
}
static int mlo_token_matmul(mlo_flat *f) {
    const mlo_flat_value *x = mlo_flat_in(f, 0), *w = mlo_flat_in(f, 1);
    if (x->token < 1 || x->token == x->rank || !w || w->rank != 2)
        return mlo_token_refuse(f, "it mixes tokens");
    return mlo_token_plain(f, 1);
}
static int mlo_token_gemm(mlo_flat *f) {
    const mlo_flat_value *x = mlo_flat_in(f, 0);
    mlo_flat_value *w = mlo_flat_in(f, 1);
    if (x->token != 1 || mlo_int(f->node, "transA", 0) || !w || !w->fixed)
        return mlo_token_refuse(f, "it mixes tokens");
    return mlo_token_mark(f, w, -1) ? mlo_failed(f->m) : mlo_token_broadcast(f, 2, 2);
}
static int mlo_token_split(mlo_flat *f) { return mlo_token_behind(f, mlo_int(f->node, "axis", 0)); }
static int mlo_token_concat(mlo_flat *f) {
    const mlo_flat_value *y = mlo_flat_of(f, f->node->output[0]);
    const int front = mlo_token_front(f, y);
    int64_t axis = mlo_int(f->node, "axis", 0);
    if (axis < 0) axis += y->rank;
    if (axis <= front) return mlo_token_refuse(f, "it mixes tokens");
    for (size_t k = 0; k < f->node->n_input; k++)
        MLO_TRY(mlo_token_broadcast(f, k, y->rank - front));
    return 0;
}
/* All tokens, as they come. */
static int mlo_token_slice(mlo_flat *f) {
    int64_t axes[2 * MLO_MAX_RANK], steps[2 * MLO_MAX_RANK];
    const mlo_flat_value *x = mlo_flat_in(f, 0), *y = mlo_flat_of(f, f->node->output[0]);
    const int n = mlo_flat_ints(f, "axes", 3, axes), by = mlo_flat_ints(f, NULL, 4, steps);
    int some = x->token < 1 || x->rank != y->rank || y->dims[x->token - 1] != f->core->chunk;
    for (int i = 0; i < by; i++) {
        const int64_t axis = i >= n ? i : axes[i] < 0 ? axes[i] + x->rank : axes[i];
        some |= steps[i] != 1 && axis < x->token;
    }
    return some ? mlo_token_refuse(f, "it takes tokens in another order") : mlo_token_plain(f, 1);
}
static int mlo_token_transpose(mlo_flat *f) {
    const mlo_flat_value *x = mlo_flat_in(f, 0), *y = mlo_flat_of(f, f->node->output[0]);
    const mlo_attr *perm = mlo_attr_of(f->node, "perm");
    const int front = mlo_token_front(f, y);
    const int64_t from = perm && (size_t)front < perm->n_ints ? perm->ints[front]
                                                              : x->rank - 1 - front;
    return from + 1 != x->token ? mlo_token_refuse(f, "its tokens are not outermost") : 0;
}
/* Number by number. */
static int mlo_token_each(mlo_flat *f) {
    const mlo_flat_value *y = mlo_flat_of(f, f->node->output[0]);
    for (size_t k = 0; k < f->node->n_input; k++)
        MLO_TRY(mlo_token_broadcast(f, k, y->rank - mlo_token_front(f, y)));
    return 0;
}
static int mlo_token_expand(mlo_flat *f) {
    const mlo_flat_value *y = mlo_flat_of(f, f->node->output[0]);
    MLO_TRY(mlo_token_broadcast(f, 0, y->rank - mlo_token_front(f, y)));
    return mlo_token_plain(f, 1);
}
/* The loop: its tokens, their mask. */
static int mlo_token_core(mlo_flat *f) {
    const mlo_flat_value *x = mlo_flat_of(f, mlo_whole_stream(f, 0));
    const char *const name = mlo_whole_stream(f, 1);
    const mlo_flat_value *mask = name ? mlo_flat_of(f, name) : NULL;
    if (x->token != x->rank - 1 || (name && (!mask || mask->token != mask->rank)))
        return mlo_token_refuse(f, "the loop's tokens are not those of its inputs");
    return f->core->replay >= 0 ? mlo_token_refuse(f, "its layers read another sequence, too") : 0;
}

static const struct {
    const char *op;
    int (*of)(mlo_flat *f);
} mlo_token_ops[] = { { "Reshape", mlo_token_form }, { "Flatten", mlo_token_form },
    { "Squeeze", mlo_token_form }, { "Unsqueeze", mlo_token_form }, { "Identity", mlo_token_form },
    { "Dropout", mlo_token_form }, { "LayerNormalization", mlo_token_rows },
    { "RMSNormalization", mlo_token_rows }, { "Softmax", mlo_token_softmax },
    { "LogSoftmax", mlo_token_softmax }, { "ArgMax", mlo_token_extreme },
    { "ArgMin", mlo_token_extreme }, { "Gather", mlo_token_gather }, { "MatMul", mlo_token_matmul },
    { "Gemm", mlo_token_gemm }, { "Split", mlo_token_split }, { "Concat", mlo_token_concat },
    { "Slice", mlo_token_slice }, { "Transpose", mlo_token_transpose },
    { "Expand", mlo_token_expand }, { "Greater", mlo_token_each },
    { "GreaterOrEqual", mlo_token_each }, { "Gelu", mlo_token_each }, { "Where", mlo_token_each },
    { "Clip", mlo_token_each }, { "Cast", mlo_token_each }, { "CastLike", mlo_token_each } };

static int mlo_token_operator(mlo_flat *f, const mlo_node *n) {
    const int own = mlo_eq(n->domain, "mlo");
    if (own && (mlo_eq(n->op, "Quantize") || mlo_eq(n->op, "Dequantize"))) return mlo_token_each(f);
    for (size_t i = 0; !own && i < sizeof mlo_token_ops / sizeof *mlo_token_ops; i++)
        if (mlo_is(n, mlo_token_ops[i].op)) return mlo_token_ops[i].of(f);
    for (size_t i = 0; !own && i < sizeof mlo_float_numbers / sizeof *mlo_float_numbers; i++)
        if (mlo_is(n, mlo_float_numbers[i].op)) return mlo_token_each(f);
    for (int i = 0; !own && i < MLO_REAL_REDUCTIONS; i++)
        if (mlo_is(n, mlo_float_reductions[i].op)) return mlo_token_reduce(f);
    return mlo_token_refuse(f, "what it makes of several tokens is not known");
}

/* ---- the mask ------------------------------------------------------------------------------------ */

/* Is symbol s 1 where the bit is, else 0? */
static int mlo_token_tells(const mlo_tracer *t, int64_t s, int64_t bit) {
    const mlo_symbol *a = &t->symbol[s];
    const int as = a->is[0] >= 0 && a->is[0] <= 0 && a->is[1] >= 1 && a->is[1] <= 1;
    return s == bit || (a->bit && a->bit == bit && as);
}
static int mlo_token_mask_is(mlo_flat *f, mlo_tracer *t, const mlo_flat_value *v) {
    const mlo_array *mask = mlo_trace(t, mlo_whole_stream(f, 1));
    const mlo_array *x = mask && v->count == f->core->chunk ? mlo_trace(t, v->name) : NULL;
    int same = x && mlo_array_count(mask) == v->count;
    for (int64_t k = 0; same && k < v->count; k++)
        same = mlo_token_tells(t, ((const int64_t *)mask->data)[k], ((const int64_t *)x->data)[k]);
    return same;
}

/* Exports make of the mask what each query adds to each key, which mixes tokens; the loop wants one truth value for
 * each key. If that is the same key's in an input (integer masks are 0 and 1, symbol.c), it is made of that. */
static int mlo_token_mask(mlo_flat *f) {
    mlo_tracer t;
    if (!f->core->masked || mlo_trace_begin(f->m, &f->core->scan, &t)) return mlo_failed(f->m);
    t.bits = 1;
    for (size_t i = 0; i < f->n_value && !f->mask_of; i++) {
        mlo_flat_value *v = f->value[i];
        if (v->in >= 0 && v->name && mlo_token_mask_is(f, &t, v)) f->mask_of = v;
    }
    mlo_trace_end(&t);
    mlo_map_clear(&f->wanted);
    return mlo_whole_wanted(f);
}

/* ---- all of them --------------------------------------------------------------------------------- */

/* Each result has its tokens outermost, and what it is made of, too. */
static int mlo_token_node(mlo_flat *f, const mlo_node *n) {
    f->node = n;
    for (size_t i = 0; i < n->n_output; i++) {
        const mlo_flat_value *y = mlo_flat_of(f, n->output[i]);
        if (!y || !mlo_map_get(&f->wanted, n->output[i])) continue;
        if (y->fixed) return 0;
        if (mlo_token_front(f, y) < 0)
            return mlo_token_refuse(f, "what it makes is not of each token");
    }
    const mlo_flat_value *x = n->n_input ? mlo_flat_in(f, 0) : NULL;
    if (!x) return mlo_token_refuse(f, "an operand is missing");
    MLO_TRY(mlo_whole_is_core(f, n)   ? mlo_token_core(f)
            : mlo_whole_is_mask(f, n) ? 0
                                      : mlo_token_operator(f, n));
    for (size_t i = 0; i < n->n_output; i++) {
        mlo_flat_value *y = mlo_flat_of(f, n->output[i]);
        const int front = y ? mlo_token_front(f, y) : -1;
        if (front >= 0) MLO_TRY(mlo_token_mark(f, y, front));
    }
    return 0;
}

/* ---- one of them --------------------------------------------------------------------------------- */

static void mlo_token_shrink(mlo_flat_value *v) {
    v->count /= v->dims[v->token - 1];
    v->dims[v->token - 1] = 1;
}
/* Of what is known of all positions, that of the next token. */
static int mlo_token_row(mlo_flat *f, mlo_flat_value *v) {
    mlo_flat_value *row = mlo_flat_new(f, NULL);
    f->node = v->reader;
    if (!row) return mlo_failed(f->m);
    row->dtype = v->dtype;
    row->whole = v->whole;
    row->token = v->token;
    mlo_flat_form(row, v->rank, v->dims);
    mlo_token_shrink(row);
    mlo_flat_step *s = mlo_flat_step_new(f, "c/take.c", "mlo_take", row);
    if (!s) return mlo_failed(f->m);
    s->before = mlo_format(
        f->m, "1, %lld, 1, %lld, ", (long long)f->core->chunk, (long long)row->count);
    MLO_TRY(mlo_flat_operand(f, s, v));
    MLO_TRY(mlo_flat_operand(f, s, f->position));
    row->name = v->name;
    return mlo_map_put(f->m, &f->by_name, v->name, row);
}

static int mlo_token_ends(mlo_flat *f, size_t n_in) {
    for (size_t i = 0; i < f->n_value; i++) {
        mlo_flat_value *v = f->value[i];
        if (v->in < 0) continue;
        if ((v->token = mlo_token_front(f, v) + 1) < 1)
            return mlo_token_refuse(f, mlo_format(f->m, "input '%s' is not of tokens", v->name));
    }
    if (!(f->position = mlo_flat_new(f, NULL))) return mlo_failed(f->m);
    f->position->dtype = MLO_INT64;
    f->position->whole = 1;
    f->position->in = (int)n_in;
    mlo_flat_form(f->position, 0, NULL);
    return 0;
}

/* All values of one token, and the steps that take rows of positions. */
static int mlo_token_values(mlo_flat *f, size_t n_in) {
    f->node = f->core->scan.node;
    MLO_TRY(mlo_token_mask(f));
    MLO_TRY(mlo_token_ends(f, n_in));
    for (size_t i = 0; i < f->g->n_node; i++) {
        const mlo_node *n = f->g->node[i];
        if (mlo_whole_wants(f, n)) MLO_TRY(mlo_token_node(f, n));
    }
    f->node = f->core->scan.node;
    for (size_t i = 0; i < f->g->n_output; i++) {
        const mlo_flat_value *v = mlo_flat_of(f, f->g->output[i]->name);
        if (!v || v->token < 1)
            return mlo_token_refuse(
                f, mlo_format(f->m, "output '%s' is not of tokens", f->g->output[i]->name));
    }
    for (size_t i = 0, n = f->n_value; i < n; i++) {
        mlo_flat_value *v = f->value[i];
        if (v->token < 1) continue;
        if (v->fixed && mlo_token_row(f, v)) return mlo_failed(f->m);
        if (!v->fixed) mlo_token_shrink(v);
    }
    return mlo_failed(f->m);
}
