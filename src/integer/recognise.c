/* recognise: the loop body as a short list of sublayers instead of a heap of nodes.
 *
 * in:  a float loop body.    out: blocks in topological order: linear, norm, attention, unary
 *     function, residual add.
 * invariant: every node that depends on a carried value belongs to exactly one block, or
 *     recognition fails and names it. What a block computes is decided by structure alone:
 *     reshapes and transposes are followed as index maps and checked element by element.
 * example: 34 nodes of a BERT layer become 12 blocks: 6 linear, 1 attention, 1 unary (GELU), 2
 *     adds, 2 norms.
 * cost: O(nodes) and one walk over the index map of each reshape chain.
 */
typedef enum { MLO_LINEAR = 1, MLO_NORM, MLO_ATTENTION, MLO_UNARY, MLO_RESIDUAL } mlo_block_kind;

typedef struct {
    mlo_block_kind kind;
    mlo_node *node; /* the node to blame, and the one whose scope names the block */
    const char *in[3]; /* carried-dependent values: x | x | q, k, v | x | a, b */
    int raw[3]; /* 1: it reads the value itself, not what it is rounded to */
    int n_in;
    const char *out;
    /* linear: [K,N] (or [N,K] when transposed) and [N] or NULL; norm: gamma, beta (each may be NULL) */
    const char *weight, *bias;
    int transposed;
    /* of a linear layer, and of its sum before the bias; NULL: nothing is fixed */
    mlo_given *weight_given, *bias_given, *sum_given;
    /* norm */
    float epsilon;
    int center;
    /* attention: heads, and what scores are multiplied by */
    int64_t heads;
    double scale;
    const char *mask; /* attention: the additive mask's name, NULL for none */
    int64_t tokens; /* attention: of a frame */
    /* attention: what scores (as the softmax reads them) and probabilities are rounded to; NULL:
     * nothing is fixed */
    mlo_given *scores_given, *probs_given;
    /* unary: the nodes of the function, in order */
    mlo_node **inner;
    size_t n_inner;
} mlo_sublayer;

typedef struct {
    mlo *m;
    mlo_graph *body;
    mlo_inside in;
    /* value name -> its block, or itself when it is a carried input */
    mlo_map done;
    mlo_sublayer **block;
    size_t n_block;
    mlo_map order; /* value name -> 1 + position of its node */
    const mlo_scan *scan;
    mlo_map given; /* value name -> mlo_given: what its readers round it to */
    size_t left_out; /* roundings that no integer form of ours has */
    int raw_result; /* as `raw`, of the carried output */
    int64_t tokens; /* of a frame, as attention sees it; 0: there is none */
    int depth;
} mlo_recogniser;

/* ---- roundings ------------------------------------------------------------ */

/* The value that `name` is, but for rounding. *given: the first rounding of it (it may be known
 * from further on), times factor; those behind that differ are left out. */
static const char *mlo_unrounded(
    mlo_recogniser *r, const char *name, double factor, mlo_given **given) {
    for (mlo_rounding f; mlo_is_rounded(&r->in, name, &f); name = f.from) {
        mlo_given *g = mlo_rounding_given(r->m, r->scan, r->body, &f, 1 / factor);
        r->left_out += g && *given && !mlo_given_equal(g, *given, r->scan->iterations);
        *given = g;
        if (!g) break;
    }
    return name;
}

/* Notes that `value`, times factor, is rounded. What is noted first is nearest to the reader, and
 * stays. */
static int mlo_note_rounding(
    mlo_recogniser *r, const char *value, const mlo_rounding *f, double factor) {
    mlo_given *g = mlo_rounding_given(r->m, r->scan, r->body, f, factor);
    mlo_given *known = (mlo_given *)mlo_map_get(&r->given, value);
    if (!g) return mlo_failed(r->m);
    if (known) {
        r->left_out += !mlo_given_equal(g, known, r->scan->iterations);
        return 0;
    }
    return mlo_map_put(r->m, &r->given, value, g);
}

/* ---- layouts -------------------------------------------------------------- */

/* Notes the roundings of a chain on the value it starts from, which all in all was multiplied by
 * `scale`. */
static int mlo_chain_note(mlo_recogniser *r, const char *value, const mlo_chain *c, double scale) {
    for (int i = 0; i < c->n_rounding; i++)
        if (mlo_note_rounding(r, value, &c->rounding[i], scale / c->behind[i])) break;
    return mlo_failed(r->m);
}

/* Does the chain from `source` [.., T, C] lay it out as those heads, of all its channels in order? */
static int mlo_is_heads(
    const mlo_recogniser *r, const char *source, const mlo_chain *c, const mlo_heads *v) {
    mlo_form f = mlo_body_form(&r->in, source);
    int64_t n = v->heads * v->d;
    int64_t *column = mlo_last_dim(&f) == n
        ? (int64_t *)mlo_scratch(r->m, (size_t)n, sizeof *column)
        : NULL;
    int ok = column && mlo_head_columns(&r->in, source, c, v, column) && mlo_is_identity(column, n);
    mlo_scratch_free(r->m, column);
    return ok;
}

/* Are tokens and channels, in that order, what they were at the other end of the chain? */
static int mlo_is_unmoved(const mlo_recogniser *r, const char *source, const mlo_chain *c) {
    mlo_array *map = mlo_index_map(&r->in, source, c);
    mlo_form f = mlo_body_form(&r->in, source);
    int ok = map && mlo_array_count(map) == mlo_form_count(&f);
    for (int64_t i = 0; ok && i < mlo_array_count(map); i++) ok = ((int32_t *)map->data)[i] == i;
    mlo_array_free(r->m, map);
    return ok;
}

/* ---- blocks --------------------------------------------------------------- */

/* recognises what makes `name`; returns the (canonical) value name, NULL on failure */
static const char *mlo_block_of(mlo_recogniser *r, const char *name);

static mlo_sublayer *mlo_block_new(
    mlo_recogniser *r, mlo_block_kind kind, mlo_node *node, const char *out) {
    mlo_sublayer *b = MLO_NEW(r->m, mlo_sublayer);
    if (!b) return NULL;
    b->kind = kind;
    b->node = node;
    b->out = out;
    b->scale = 1;
    return b;
}

/* Does who reads `name` see a rounding? */
static int mlo_reads_rounded(mlo_recogniser *r, const char *name) {
    mlo_rounding f;
    for (mlo_node *n; !mlo_is_rounded(&r->in, name, &f); name = n->input[0])
        if (!mlo_is_layout(n = mlo_made_by(&r->in, name))) return 0;
    return 1;
}

/* Recognises the block's inputs first, then enters it: topological order by construction. */
static const char *mlo_block_finish(mlo_recogniser *r, mlo_sublayer *b) {
    if (!b) return NULL;
    for (int i = 0; i < b->n_in; i++) {
        b->raw[i] = b->kind != MLO_ATTENTION && !mlo_reads_rounded(r, b->in[i]);
        if (!(b->in[i] = mlo_block_of(r, b->in[i]))) return NULL;
    }
    if (!MLO_PUSH(r->m, r->block, r->n_block, b)
        || mlo_map_put(r->m, &r->done, b->out, (void *)(uintptr_t)b->out))
        return NULL;
    return b->out;
}

static const char *mlo_cannot(mlo_recogniser *r, const mlo_node *n, const char *what) {
    mlo_fail(r->m, MLO_E_UNSUPPORTED, n,
        "%s; the integer core knows linear layers, norms, attention, residual adds and functions "
        "of one value",
        what);
    return NULL;
}

/* x W (+ bias): MatMul or Gemm with a parameter as its second operand. */
static const char *mlo_block_linear(
    mlo_recogniser *r, mlo_node *n, const char *bias, const char *out) {
    mlo_sublayer *b = mlo_block_new(r, MLO_LINEAR, n, out);
    mlo_form w = mlo_body_form(&r->in, n->input[1]);
    if (!b) return NULL;
    if (w.rank != 2) return mlo_cannot(r, n, "a weight that is not a matrix");
    if (mlo_is(n, "Gemm")
        && (mlo_float(n, "alpha", 1) != 1 || mlo_float(n, "beta", 1) != 1
            || mlo_int(n, "transA", 0)))
        return mlo_cannot(r, n, "Gemm with alpha, beta or transA");
    b->in[0] = n->input[0];
    b->n_in = 1;
    b->weight = n->input[1];
    b->transposed = mlo_is(n, "Gemm") && mlo_int(n, "transB", 0);
    b->bias = bias ? bias : mlo_is(n, "Gemm") && mlo_has_input(n, 2) ? n->input[2] : NULL;
    return mlo_block_finish(r, b);
}

/* Add of a carried value and a parameter behind a MatMul: its bias. */
static const char *mlo_block_bias(mlo_recogniser *r, mlo_node *n) {
    for (size_t i = 0; i < 2; i++) {
        mlo_rounding f;
        int rounded = mlo_is_rounded(&r->in, n->input[i], &f);
        const char *sum = rounded ? f.from : n->input[i];
        mlo_node *p = mlo_made_by(&r->in, sum);
        mlo_value *v = mlo_value_of(r->body, sum);
        if (mlo_is(p, "MatMul") && v->n_uses == 1 && mlo_is_carried(&r->in, p->input[0])
            && !mlo_is_carried(&r->in, p->input[1]) && !mlo_is_carried(&r->in, n->input[1 - i])) {
            mlo_form bias = mlo_body_form(&r->in, n->input[1 - i]);
            mlo_form y = mlo_body_form(&r->in, n->output[0]);
            if (!mlo_form_known(&bias) || y.rank < 1 || mlo_form_count(&bias) != y.dims[y.rank - 1])
                continue;
            const char *out = mlo_block_linear(r, p, n->input[1 - i], n->output[0]);
            if (out && rounded)
                r->block[r->n_block - 1]->sum_given = mlo_rounding_given(
                    r->m, r->scan, r->body, &f, 1);
            return out;
        }
    }
    return NULL;
}

/* Do rows stay rows: is the last dimension what it was? */
static int mlo_keeps_rows(const mlo_recogniser *r, const mlo_node *n) {
    mlo_form from = mlo_body_form(&r->in, n->input[0]), to = mlo_body_form(&r->in, n->output[0]);
    return mlo_is_reshape(n) && mlo_form_known(&from) && mlo_form_known(&to)
        && mlo_last_dim(&from) == mlo_last_dim(&to);
}

/* Where(IsNaN(p), 0, p): rows without any key become zeros. p, or NULL. */
static const char *mlo_unguarded(const mlo_recogniser *r, const mlo_node *n) {
    double zero;
    mlo_node *test = mlo_is(n, "Where") ? mlo_made_by(&r->in, n->input[0]) : NULL;
    if (!mlo_is(test, "IsNaN") || test->input[0] != n->input[2]
        || !mlo_scalar(&r->in, n->input[1], &zero) || zero < 0 || zero > 0)
        return NULL;
    return n->input[2];
}

/* The softmax that makes probabilities, behind roundings, guards and reshapes. */
static mlo_node *mlo_softmax_of(mlo_recogniser *r, const char *name, mlo_given **given) {
    for (int i = 0; i < MLO_CHAIN; i++) {
        mlo_node *n = mlo_made_by(&r->in, name = mlo_unrounded(r, name, 1, given));
        const char *from = n ? mlo_unguarded(r, n) : NULL;
        if (!from && n && mlo_keeps_rows(r, n)) from = n->input[0];
        if (!from) return n;
        name = from;
    }
    return NULL;
}

/* The additive mask of scores, and their scale: walks from the softmax to the MatMul that made them. */
static mlo_node *mlo_scores(mlo_recogniser *r, mlo_node *softmax, mlo_sublayer *b) {
    const char *name = softmax->input[0];
    double x;
    for (int i = 0; i < MLO_CHAIN; i++) {
        mlo_node *p = mlo_made_by(
            &r->in, name = mlo_unrounded(r, name, b->scale, &b->scores_given));
        if (!p) break;
        if (mlo_is(p, "MatMul")) return p;
        int first = mlo_is_carried(&r->in, p->input[0]);
        const char *other = p->n_input > 1 ? p->input[first ? 1 : 0] : NULL;
        name = p->input[first ? 0 : 1];
        if (mlo_is(p, "Add") && !mlo_is_carried(&r->in, other) && !b->mask)
            b->mask = other;
        else if (mlo_is(p, "Mul") && mlo_scalar(&r->in, other, &x))
            b->scale *= x;
        else if (mlo_is(p, "Div") && first && mlo_scalar(&r->in, other, &x))
            b->scale /= x;
        else if (mlo_keeps_rows(r, p))
            name = p->input[0];
        else
            break;
    }
    mlo_cannot(r, softmax, "a softmax over something that is not scale * q k^T + mask");
    return NULL;
}

/* Is an operand of attention the sum of two products of the token with something of its position:
 * rotary embedding? */
static int mlo_is_rotary(const mlo_recogniser *r, const char *name) {
    mlo_chain c;
    double scale = 1;
    mlo_node *n = mlo_made_by(&r->in, mlo_chain_walk(&r->in, name, &c, &scale));
    if (mlo_is(n, "RotaryEmbedding") || mlo_is(n, "Concat")) return 1;
    if (!mlo_is(n, "Add")) return 0;
    for (int i = 0; i < 2; i++) {
        const mlo_node *p = mlo_made_by(&r->in, n->input[i]);
        if (!mlo_is(p, "Mul")
            || mlo_is_carried(&r->in, p->input[0]) == mlo_is_carried(&r->in, p->input[1]))
            return 0;
    }
    return 1;
}

/* Key heads that are repeated for several query heads: behind an Expand or a Tile, how many are
 * there? 0: none are. */
static int64_t mlo_key_heads(const mlo_recogniser *r, const char *name, int64_t d) {
    for (int i = 0; i < MLO_CHAIN; i++) {
        mlo_chain c;
        double scale = 1;
        const mlo_node *n = mlo_made_by(&r->in, name = mlo_chain_walk(&r->in, name, &c, &scale));
        if (!mlo_is(n, "Expand") && !mlo_is(n, "Tile")) return 0;
        mlo_form from = mlo_body_form(&r->in, n->input[0]), to = mlo_body_form(&r->in, name);
        if (mlo_form_known(&from) && mlo_form_known(&to)
            && mlo_form_count(&from) < mlo_form_count(&to) && r->tokens > 0)
            return mlo_form_count(&from) / (r->tokens * d);
        name = n->input[0];
    }
    return 0;
}

/* Is the carried value a batch of several, as attention with its tokens sees it? How many; else 1. */
static int64_t mlo_batch_of(const mlo_recogniser *r) {
    mlo_form x = mlo_body_form(&r->in, r->body->input[0]->name);
    int64_t batch = r->tokens > 0 ? mlo_tokens_of(&x) / r->tokens : 1;
    return x.rank > 2 && (x.dims[0] == batch || x.dims[1] == batch) ? batch : 1;
}

/* A product of activations that is attention, but not as hardware has it: what a person would call
 * it. */
static const char *mlo_cannot_attend(mlo_recogniser *r, const mlo_node *n, const mlo_sublayer *b,
    const mlo_node *scores, int64_t d, const char *what) {
    mlo *m = r->m;
    int64_t batch = mlo_batch_of(r), groups = mlo_key_heads(r, scores->input[1], d);
    int causal = b->mask && mlo_is_causal(m, r->body, b->mask, r->tokens, 0);
    int rotary = mlo_is_rotary(r, scores->input[0]);
    if (groups >= b->heads) groups = 0;
    if (!causal && !rotary && !groups && batch == 1) return what ? mlo_cannot(r, n, what) : NULL;
    const char *heads = "";
    if (groups)
        heads = mlo_format(m, "grouped-query attention (%lld query heads on %lld of keys)",
            (long long)b->heads, (long long)groups);
    if (!heads) return NULL;
    if (!causal && !rotary && !groups)
        mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "a batch of %lld; export with a batch of 1, or leave that axis open and give "
            "--dim NAME=1: hardware takes frames one after the other",
            (long long)batch);
    else
        mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "%s%s%s%s%s; mlo rolls, checks and runs such models, hardware is for encoders "
            "without",
            causal ? "a decoder: its attention is causal" : "",
            causal && (rotary || groups) ? ", with " : "", rotary ? "rotary embedding" : "",
            rotary && groups ? " and " : "", heads);
    return NULL;
}

/* MatMul(softmax(..), v) behind reshapes: an attention of [T, C] tokens. `out` is the value after
 * the reshapes, chain leads to `mix`. */
static const char *mlo_block_attention(
    mlo_recogniser *r, mlo_node *mix, const char *out, const mlo_chain *joined) {
    mlo_sublayer *b = mlo_block_new(r, MLO_ATTENTION, mix, out);
    mlo_node *softmax = b ? mlo_softmax_of(r, mix->input[0], &b->probs_given) : NULL;
    mlo_chain chain[3];
    if (!b || r->m->error.code) return NULL;
    if (!mlo_is(softmax, "Softmax"))
        return mlo_cannot(r, mix, "a product of two activations that is not attention");
    mlo_node *scores = mlo_scores(r, softmax, b);
    if (!scores || r->m->error.code) return NULL;
    mlo_form s = mlo_body_form(&r->in, scores->output[0]);
    mlo_form o = mlo_body_form(&r->in, mix->output[0]);
    int64_t axis = mlo_int(softmax, "axis", -1);
    if (!mlo_form_known(&s) || !mlo_form_known(&o) || s.rank < 3 || o.rank != s.rank)
        return mlo_cannot(r, scores, "scores of unknown shape (bind dimensions with --dim)");
    if (axis != -1 && axis != s.rank - 1)
        return mlo_cannot(r, softmax, "a softmax that is not over the keys");
    int64_t tq = s.dims[s.rank - 2], tk = s.dims[s.rank - 1], d = o.dims[o.rank - 1];
    b->heads = mlo_form_count(&s) / (tq * tk);
    double scale[3] = { 1, 1, 1 };
    for (int i = 0; i < 3; i++)
        b->in[i] = mlo_chain_walk(
            &r->in, i < 2 ? scores->input[i] : mix->input[1], &chain[i], i < 2 ? &scale[i] : NULL);
    b->scale *= scale[0] * scale[1];
    b->n_in = 3;
    b->tokens = r->tokens = tk;
    if (tq != tk)
        return mlo_cannot(
            r, scores, "attention between sequences of two lengths (cross-attention, or a cache)");
    static const char *const what[] = { "queries", "keys", "values" };
    for (int i = 0; i < 3; i++) {
        const mlo_heads at = { tk, b->heads, d, i == 1 };
        if (mlo_is_heads(r, b->in[i], &chain[i], &at)) continue;
        return mlo_cannot_attend(r, i < 2 ? scores : mix, b, scores, d,
            mlo_format(r->m, "%s that are not laid out as heads of the token's channels", what[i]));
    }
    mlo_array *map = mlo_index_map(&r->in, mix->output[0], joined);
    int ok = map && mlo_array_count(map) == tq * b->heads * d;
    for (int64_t h = 0; ok && h < b->heads; h++)
        for (int64_t i = 0; ok && i < tq; i++)
            for (int64_t j = 0; ok && j < d; j++)
                ok = ((int32_t *)map->data)[(i * b->heads + h) * d + j] == (h * tq + i) * d + j;
    mlo_array_free(r->m, map);
    if (!ok) return mlo_cannot(r, mix, "heads that are not joined back into the token's channels");
    if (!mlo_block_finish(r, b)) return NULL;
    for (int i = 0; i < 3; i++)
        if (mlo_chain_note(r, b->in[i], &chain[i], scale[i])) return NULL;
    return mlo_chain_note(r, out, joined, 1) ? NULL : out;
}

/* ---- functions of one value ----------------------------------------------- */

/* Collects, in topological order, the elementwise nodes between `source` and `name`. 0: something
 * else is in between. */
static int mlo_unary_nodes(
    mlo_recogniser *r, const char *name, const char *source, mlo_sublayer *b, int depth) {
    if (name == source || mlo_is_number(&r->in, name)) return 1;
    mlo_node *n = mlo_made_by(&r->in, name);
    for (size_t i = 0; i < b->n_inner; i++)
        if (b->inner[i] == n) return 1;
    if (!mlo_is_elementwise(n) || depth > 24) return 0;
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i) && !mlo_unary_nodes(r, n->input[i], source, b, depth + 1)) return 0;
    return MLO_PUSH(r->m, b->inner, b->n_inner, n);
}

/* A node a function of one value may contain: elementwise, all other operands single numbers. */
static int mlo_is_inner(mlo_recogniser *r, const mlo_node *n) {
    if (!mlo_is_elementwise(n)) return 0;
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i) && !mlo_is_carried(&r->in, n->input[i])
            && !mlo_is_number(&r->in, n->input[i]))
            return 0;
    return 1;
}

/* The farthest value of which n's output is a function. The frontier holds what is still needed;
 * its latest member is replaced by what makes it, and whenever one member is left, that is a value
 * everything goes through. */
static const char *mlo_unary_source(mlo_recogniser *r, mlo_node *n) {
    const char *front[MLO_CHAIN] = { n->output[0] }, *best = NULL;
    int count = 1;
    for (int step = 0; step < 32; step++) {
        int last = 0;
        for (int i = 1; i < count; i++)
            if (mlo_map_get(&r->order, front[i]) > mlo_map_get(&r->order, front[last])) last = i;
        mlo_node *p = mlo_made_by(&r->in, front[last]);
        if (!mlo_is_inner(r, p)) break;
        front[last] = front[--count];
        for (size_t i = 0; i < p->n_input; i++)
            if (mlo_has_input(p, i) && mlo_is_carried(&r->in, p->input[i])) {
                int known = 0;
                for (int k = 0; k < count; k++) known |= front[k] == p->input[i];
                if (!known && count == MLO_CHAIN) return best;
                if (!known) front[count++] = p->input[i];
            }
        if (count == 1) best = front[0];
    }
    return best;
}

static const char *mlo_block_unary(mlo_recogniser *r, mlo_node *n) {
    mlo_sublayer *b = mlo_block_new(r, MLO_UNARY, n, n->output[0]);
    if (!b) return NULL;
    if (!(b->in[0] = mlo_unary_source(r, n))) {
        int both = n->n_input > 1 && mlo_is_carried(&r->in, n->input[0])
            && mlo_is_carried(&r->in, n->input[1]);
        mlo_form other = mlo_body_form(
            &r->in, n->input[n->n_input > 1 && mlo_is_carried(&r->in, n->input[0])]);
        int gate = both && mlo_is(n, "Mul");
        int places = !both && mlo_is(n, "Add") && mlo_tokens_of(&other) > 1;
        return mlo_cannot(r, n,
            gate         ? "a gate, the product of two activations (SwiGLU, GeGLU)"
                : places ? "a value that is added to the tokens inside of a layer (position "
                           "embeddings in every layer)"
                         : "an elementwise op that is no function of one value");
    }
    b->n_in = 1;
    if (!mlo_unary_nodes(r, n->output[0], b->in[0], b, 0))
        return mlo_cannot(r, n, "an elementwise op of several values");
    /* what the function begins with rounding is given as its table's index */
    for (size_t i = 0; i < b->n_inner; i++) {
        mlo_rounding f;
        if (mlo_is_rounded(&r->in, b->inner[i]->output[0], &f) && f.from == b->in[0]
            && mlo_note_rounding(r, f.from, &f, 1))
            return NULL;
    }
    return mlo_block_finish(r, b);
}

static const char *mlo_block_norm(mlo_recogniser *r, mlo_node *n) {
    mlo_sublayer *b = mlo_block_new(r, MLO_NORM, n, n->output[0]);
    mlo_form f = mlo_body_form(&r->in, n->input[0]);
    int64_t axis = mlo_int(n, "axis", -1);
    if (!b) return NULL;
    if (axis != -1 && axis != f.rank - 1)
        return mlo_cannot(r, n, "a norm that is not over the channels");
    b->in[0] = n->input[0];
    b->n_in = 1;
    b->weight = mlo_has_input(n, 1) ? n->input[1] : NULL;
    b->bias = mlo_has_input(n, 2) ? n->input[2] : NULL;
    b->epsilon = mlo_float(n, "epsilon", 1e-5f);
    b->center = mlo_is(n, "LayerNormalization");
    return mlo_block_finish(r, b);
}

static const char *mlo_block_residual(mlo_recogniser *r, mlo_node *n) {
    mlo_sublayer *b = mlo_block_new(r, MLO_RESIDUAL, n, n->output[0]);
    mlo_form f0 = mlo_body_form(&r->in, n->input[0]), f1 = mlo_body_form(&r->in, n->input[1]);
    if (!b) return NULL;
    if (!mlo_form_known(&f0) || !mlo_form_known(&f1) || mlo_form_count(&f0) != mlo_form_count(&f1))
        return mlo_cannot(r, n, "an add of two shapes");
    b->in[0] = n->input[0];
    b->in[1] = n->input[1];
    b->n_in = 2;
    return mlo_block_finish(r, b);
}

/* Probabilities times values that are not the loop's own. */
static int mlo_is_crossed(mlo_recogniser *r, const mlo_node *mix) {
    mlo_given *given = NULL;
    return mlo_is_carried(&r->in, mix->input[0])
        && mlo_is(mlo_softmax_of(r, mix->input[0], &given), "Softmax");
}

/* Reshapes: the end of an attention, or nothing at all when tokens and channels stay what they were. */
static const char *mlo_block_layout(mlo_recogniser *r, mlo_node *n, const char *name) {
    mlo_chain chain;
    const char *source = mlo_chain_walk(&r->in, name, &chain, NULL);
    mlo_node *p = mlo_made_by(&r->in, source);
    mlo_form from = mlo_body_form(&r->in, source), to = mlo_body_form(&r->in, name);
    if (mlo_is(p, "MatMul") && mlo_is_carried(&r->in, p->input[1]))
        return mlo_block_attention(r, p, name, &chain);
    if (mlo_is(p, "MatMul") && mlo_is_crossed(r, p))
        return mlo_cannot(r, p,
            "cross-attention: keys and values that come from another stream (an encoder's output)");
    if (!mlo_form_known(&from) || !mlo_form_known(&to) || mlo_last_dim(&from) != mlo_last_dim(&to))
        return mlo_cannot(r, n, "a reshape that changes the channels");
    if (!mlo_is_unmoved(r, source, &chain))
        return mlo_cannot(r, n, "tokens or channels that change places outside of attention");
    const char *out = mlo_block_of(r, source);
    return out && mlo_chain_note(r, out, &chain, 1) ? NULL : out;
}

/* A rounding is a note on what it rounds. */
static const char *mlo_note_block(mlo_recogniser *r, const mlo_rounding *f) {
    const char *out = mlo_block_of(r, f->from);
    return out && mlo_note_rounding(r, out, f, 1) ? NULL : out;
}

static const char *mlo_block_of(mlo_recogniser *r, const char *name) {
    const char *known = (const char *)mlo_map_get(&r->done, name);
    mlo_node *n = mlo_made_by(&r->in, name);
    if (known) return known;
    if (!n) {
        mlo_fail_at(r->m, MLO_E_UNSUPPORTED, name,
            "a sublayer reads a value that does not come from the carried one; such inputs are not "
            "supported yet");
        return NULL;
    }
    if (++r->depth > 512) return mlo_cannot(r, n, "a loop body deeper than 512 sublayers");
    const char *out;
    mlo_rounding f;
    mlo_chain none;
    none.n = none.n_rounding = 0;
    if (mlo_is_rounded(&r->in, name, &f))
        out = mlo_note_block(r, &f);
    else if (mlo_is_layout(n))
        out = mlo_block_layout(r, n, name);
    else if (mlo_is(n, "MatMul") && mlo_is_carried(&r->in, n->input[1]))
        out = mlo_block_attention(r, n, name, &none);
    else if (mlo_is(n, "MatMul") || mlo_is(n, "Gemm"))
        out = mlo_block_linear(r, n, NULL, name);
    else if (mlo_is(n, "LayerNormalization") || mlo_is(n, "RMSNormalization"))
        out = mlo_block_norm(r, n);
    else if (mlo_is(n, "Add") && !mlo_is_inner(r, n)
        && (out = mlo_block_bias(r, n), out || r->m->error.code)) {
    } else if (mlo_is(n, "Add") && mlo_is_carried(&r->in, n->input[0])
        && mlo_is_carried(&r->in, n->input[1]))
        out = mlo_block_residual(r, n);
    else if (mlo_is_elementwise(n))
        out = mlo_block_unary(r, n);
    else
        out = mlo_cannot(r, n, "an op without an integer kernel");
    r->depth--;
    if (out && out != name && mlo_map_put(r->m, &r->done, name, (void *)(uintptr_t)out))
        return NULL;
    return out;
}

/* What leaves an iteration rounded enters the next one so; the first gets what the outer graph
 * rounds it to. */
static int mlo_given_carried(mlo_recogniser *r, const char *result) {
    mlo *m = r->m;
    const mlo_given *out = r->raw_result ? NULL : (const mlo_given *)mlo_map_get(&r->given, result);
    const char *in = r->body->input[0]->name, *first = r->scan->node->input[0];
    mlo_rounding f;
    if (!out || mlo_map_get(&r->given, in)
        || !mlo_rounding_of(m, r->scan, r->scan->outer, first, &f))
        return mlo_failed(m);
    mlo_given *g = mlo_rounding_given(m, r->scan, r->scan->outer, &f, 1);
    if (!g || g->bits != out->bits || g->sign != out->sign) return mlo_failed(m);
    for (int64_t i = 1; i < r->scan->iterations; i++) {
        g->scale[i] = out->scale[i - 1];
        g->zero[i] = out->zero[i - 1];
    }
    for (size_t i = 0; i < r->n_block; i++)
        for (int k = 0; k < r->block[i]->n_in; k++)
            if (r->block[i]->in[k] == in) r->block[i]->raw[k] = 0;
    return mlo_map_put(m, &r->given, in, g);
}

/* The blocks of a loop's body. The carried output's canonical name goes to *result. */
static int mlo_recognise(mlo *m, const mlo_scan *scan, mlo_recogniser *r, const char **result) {
    memset(r, 0, sizeof *r);
    r->m = m;
    r->body = scan->body;
    r->scan = scan;
    if (mlo_inside_of(m, scan, &r->in)) return mlo_failed(m);
    for (size_t i = 0; i < r->body->n_node; i++)
        for (size_t k = 0; k < r->body->node[i]->n_output; k++)
            if (mlo_map_put(m, &r->order, r->body->node[i]->output[k], (void *)(uintptr_t)(i + 1)))
                return mlo_failed(m);
    for (size_t i = 0; i < scan->n_state; i++)
        if (mlo_map_put(
                m, &r->done, r->body->input[i]->name, (void *)(uintptr_t)r->body->input[i]->name))
            return mlo_failed(m);
    r->raw_result = !mlo_reads_rounded(r, r->body->output[0]->name);
    *result = mlo_block_of(r, r->body->output[0]->name);
    return *result ? mlo_given_carried(r, *result) : mlo_failed(m);
}
