/* recognise: reads the loop body as a short list of sublayers instead of a heap of nodes.
 *
 * in:  a float loop body.
 * out: blocks (sublayers) in topological order: linear, norm, attention, unary function, residual
 *     add.
 *
 * invariant: every node that depends on a carried value belongs to exactly one block, or
 *     recognition fails and names the node. Structure alone decides what a block computes: reshapes
 *     and transposes are followed as index maps and checked element by element.
 * example: 34 nodes of a BERT layer become 12 blocks: 6 linear, 1 attention, 1 unary (GELU), 2
 *     adds, 2 norms.
 * cost: O(nodes) and one walk over the index map of each chain of reshapes.
 */
/* Kinds that others ask for. */
typedef enum {
    MLO_OTHER,
    MLO_LINEAR,
    MLO_NORM,
    MLO_ATTENTION,
    MLO_UNARY,
    MLO_RESIDUAL,
    MLO_ROTARY,
    MLO_GATE,
    MLO_CONVOLUTION,
    MLO_BLOCK_KINDS
} mlo_block_kind;

typedef struct {
    const struct mlo_sublayer_kind *card; /* what there is to know of its kind */
    mlo_block_kind kind;
    mlo_node *node; /* the node to blame, and the one whose scope names the block */
    const char *in[3]; /* carried-dependent values: x | x | q, k, v | x | a, b */
    int raw[3]; /* 1: it reads the value itself, not what it is rounded to */
    int n_in;
    const char *out;

    const char *weight; /* linear: [K,N] (or [N,K] when transposed); norm: gamma, or NULL */
    const char *bias; /* linear: [N], or NULL; norm: beta, or NULL */
    int transposed; /* linear: 1: the weight is [N,K] */
    mlo_given *weight_given; /* of a linear layer; NULL: nothing is fixed */
    mlo_given *bias_given; /* of a linear layer; NULL: nothing is fixed */
    mlo_given *sum_given; /* of its sum before the bias; NULL: nothing is fixed */
    struct mlo_fed *fed; /* linear: its weights, where they are rounded already (aim.c) */

    float epsilon; /* norm */
    int center; /* norm: 1: the mean is taken off */
    int64_t frame; /* norm: tokens that it is of, all of them; 1: a token's own */
    int64_t groups; /* norm: parts of a token's channels, each with a norm of its own */

    int64_t heads; /* rotary; attention: of queries */
    int64_t kv_heads; /* attention: of keys and values */
    double scale; /* attention: what scores are multiplied by; gate: what the product is */
    double *steep; /* attention: [iteration]: what scores are multiplied by beside that, or NULL */
    double *cap; /* attention: [iteration]: what a soft cap limits them to, NULL: nothing does */
    const char *mask; /* attention: the additive mask's name, NULL for none */
    int crossed; /* attention: keys and values come from the memory */
    double mask_scale; /* attention: what the mask is multiplied by, once it is added */
    mlo_sight sight; /* attention: what the mask hides by place */
    struct mlo_prefix *prefix; /* attention: rows beside a frame's keys and values, NULL: none (prefix.c) */
    int64_t tokens; /* attention, window: of a frame */
    int64_t width; /* window: tokens of a row */
    int64_t top; /* window: rows above one */
    int64_t left; /* window: columns to the left of one */
    int64_t pool
        [2]; /* window: rows and columns of one that averages what is there of it; 0: it has weights */
    int zeros; /* window: 1: the average counts zeros beyond the border */
    int less; /* window: 1: the average less the token itself */
    /* attention: what scores (as the softmax reads them) are rounded to; NULL: nothing is fixed */
    mlo_given *scores_given;
    mlo_given *probs_given; /* attention: the same of probabilities */

    mlo_node **inner; /* unary: the nodes of the function, in order */
    size_t n_inner;
} mlo_sublayer;

struct mlo_recogniser;
struct mlo_quantizer; /* calibrate.c */

/* What there is to know of a kind of sublayer: a card in its own file. NULL: nothing to do. */
typedef struct mlo_sublayer_kind {
    mlo_block_kind kind;
    int reads_wide; /* 1: operands are of the residual stream */
    int makes_wide; /* 1: so is the result */
    int operand_bits; /* of an operand's narrow form, 0: as --activations says */
    /* Is the node the end of one (*is)? The value that it makes, NULL when it fails. */
    const char *(*recognise)(struct mlo_recogniser *r, mlo_node *n, const char *name, int *is);
    /* what it needs of the loop; what the source model fixes of it; whether that can be */
    int (*given)(struct mlo_quantizer *q, mlo_sublayer *b);
    int (*check)(struct mlo_quantizer *q, const mlo_sublayer *b);
    /* the scales of its result, where they are not fitted to its range */
    int (*scales)(struct mlo_quantizer *q, const mlo_sublayer *b);
    /* makes the steps of streams coarser than their ranges ask, where its words need that */
    int (*coarsen)(struct mlo_quantizer *q, const mlo_sublayer *b, int64_t iteration);
    /* products per token */
    double (*products)(struct mlo_quantizer *q, const mlo_sublayer *b);
    int (*quantize)(struct mlo_quantizer *q, const mlo_sublayer *b);
    const char *(*type)(const mlo_sublayer *b); /* as a q_config calls it */
} mlo_sublayer_kind;

typedef struct mlo_recogniser {
    mlo *m;
    const mlo_sublayer_kind *const *kinds; /* in the order they are tried; ends with NULL */
    const mlo_sublayer_kind *card; /* the one that is being tried */
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
    mlo_anew anew;
    int raw_result; /* as `raw`, of the carried output */
    int64_t tokens; /* of a frame, as attention sees it; 0: there is none */
    int64_t keys; /* of a frame of the memory; 0: there is none */
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

/* A sublayer of the kind that is being tried. */
static mlo_sublayer *mlo_block_new(mlo_recogniser *r, mlo_node *node, const char *out) {
    mlo_sublayer *b = MLO_NEW(r->m, mlo_sublayer);
    if (!b) return NULL;
    b->card = r->card;
    b->kind = r->card->kind;
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

/* Tokens of the memory meet those of the loop's own stream in attention alone, and the memory itself is
 * what linear layers read: it goes through no residual stream. 0: so it is. */
static int mlo_cannot_mix(mlo_recogniser *r, const mlo_sublayer *b) {
    int memory = 0;
    for (int i = 0; i < b->n_in; i++) {
        memory += mlo_is_memory(&r->in, b->in[i]);
        if (b->in[i] == r->in.memory && b->kind != MLO_LINEAR)
            return mlo_fail(r->m, MLO_E_UNSUPPORTED, b->node,
                "'%s', which comes from around the loop, is read by a layer as it is; hardware has "
                "linear layers (keys and values) read it",
                r->in.memory);
    }
    if (!memory || memory == b->n_in || (b->kind == MLO_ATTENTION && b->crossed)) return 0;
    return mlo_fail(r->m, MLO_E_UNSUPPORTED, b->node,
        "tokens of '%s', which comes from around the loop, meet the loop's own outside of keys and "
        "values",
        r->in.memory);
}

/* Recognises the block's inputs first, then enters it: topological order by construction. */
static const char *mlo_block_finish(mlo_recogniser *r, mlo_sublayer *b) {
    if (!b) return NULL;
    for (int i = 0; i < b->n_in; i++) {
        b->raw[i] = b->kind != MLO_ATTENTION && !mlo_reads_rounded(r, b->in[i]);
        if (!(b->in[i] = mlo_block_of(r, b->in[i]))) return NULL;
    }
    if (mlo_cannot_mix(r, b)) return NULL;
    if (!MLO_PUSH(r->m, r->block, r->n_block, b)
        || mlo_map_put(r->m, &r->done, b->out, (void *)(uintptr_t)b->out))
        return NULL;
    return b->out;
}

static const char *mlo_cannot(mlo_recogniser *r, const mlo_node *n, const char *what) {
    mlo_fail(r->m, MLO_E_UNSUPPORTED, n,
        "%s; the integer core knows linear layers, norms, attention, residual adds, products and "
        "functions of one value",
        what);
    return NULL;
}

/* Refuses in words that have a remedy of their own. */
static const char *mlo_refuse_told(mlo_recogniser *r, const mlo_node *n, const char *told) {
    mlo_fail(r->m, MLO_E_UNSUPPORTED, n, "%s", told);
    return NULL;
}

/* Refuses an operator on two values of which one has to be spread over the other. */
static const char *mlo_cannot_spread(mlo_recogniser *r, const mlo_node *n, const char *what) {
    const mlo_form f0 = mlo_body_form(&r->in, n->input[0]), f1 = mlo_body_form(&r->in, n->input[1]);
    const char *told = mlo_told_spread(&r->in, n);
    if (told) return mlo_refuse_told(r, n, told);
    return mlo_refuse_told(r, n,
        mlo_format(r->m,
            "%s of two shapes, %lld tokens of %lld channels and %lld of %lld; give both as many "
            "(a linear layer whose one output is spread has its column repeated for each channel)",
            what, (long long)mlo_tokens_of(&f0), (long long)mlo_last_dim(&f0),
            (long long)mlo_tokens_of(&f1), (long long)mlo_last_dim(&f1)));
}

/* ---- functions of one value ----------------------------------------------- */

/* A node a function of one value may contain: elementwise, all other operands single numbers. */
static int mlo_is_inner(mlo_recogniser *r, const mlo_node *n) {
    if (!mlo_is_elementwise(n)) return 0;
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i) && !mlo_is_carried(&r->in, n->input[i])
            && !mlo_is_number(&r->in, n->input[i]))
            return 0;
    return 1;
}

/* What a node without a kernel does. */
static const char *mlo_without_kernel(const mlo_recogniser *r, const mlo_node *n) {
    const mlo_form y = mlo_body_form(&r->in, n->output[0]);
    const mlo_form x = mlo_body_form(&r->in, r->body->input[0]->name);
    int64_t axis = mlo_int(n, "axis", 0), before = 1;
    const char *told = mlo_told_node(&r->in, n);
    if (axis < 0) axis += y.rank;
    for (int i = 0; i < axis && i < y.rank; i++) before *= y.dims[i];
    if (!told && mlo_is(n, "Concat")) told = mlo_told_mixing(&r->in, n->output[0], MLO_TELL_DEPTH);
    if (told) return told;
    if (mlo_is(n, "Concat") && (axis + 1 == y.rank || before >= mlo_tokens_of(&x)))
        return "channels of several values side by side; a linear layer behind it is a sum of "
               "linear layers, one for each of the values with its part of the weights: export "
               "that";
    if (mlo_is(n, "Concat"))
        return "tokens of several values behind each other, as where a class token goes a way of "
               "its own (TimeSformer's: attention_type='joint_space_time' has none); in hardware "
               "all tokens of a frame go one way";
    return NULL;
}

static const char *mlo_refuse_op(mlo_recogniser *r, const mlo_node *n) {
    const char *told = mlo_without_kernel(r, n);
    return told ? mlo_refuse_told(r, n, told) : mlo_cannot(r, n, "an op without an integer kernel");
}

/* Refuses reshapes that change the channels of what `source` is. */
static const char *mlo_refuse_layout(
    mlo_recogniser *r, const mlo_node *n, const char *source, const char *name) {
    const mlo_form from = mlo_body_form(&r->in, source), to = mlo_body_form(&r->in, name);
    const int64_t a = mlo_last_dim(&from), b = mlo_last_dim(&to);
    const mlo_node *made = mlo_made_by(&r->in, source);
    const char *factor = mlo_told_factor(&r->in, made);
    const char *told = factor ? factor : mlo_told_beside(&r->in, made);
    const int crossed = from.rank > 1 && to.rank > 1 && from.dims[from.rank - 2] == b
        && to.dims[to.rank - 2] == a;
    if (!told) told = mlo_told_of(&r->in, source, MLO_TELL_FAR);
    if (!told) told = mlo_told_mixing(&r->in, source, MLO_TELL_DEPTH);
    if (told) return mlo_refuse_told(r, n, told);
    if (mlo_is(made, "Concat")) return mlo_refuse_op(r, made);
    if (crossed && (from.rank != 3 || mlo_told_linear(&r->in, source, MLO_TELL_DEPTH)))
        return mlo_refuse_told(r, n,
            "tokens and channels that change places, as around a linear layer over tokens (a "
            "mixer's); hardware's linear layers are over the channels of each "
            "token; " MLO_TOLD_MIXES);
    if (mlo_is(n, "Transpose") && from.rank == 3)
        return mlo_cannot(r, n,
            "a stream with its channels in front of its tokens, [1, C, T], where no convolution of "
            "size 1 reads it; write what does on [1, T, C]");
    return mlo_refuse_told(r, n,
        mlo_format(r->m,
            "a reshape that changes the channels, from %lld to %lld, behind '%s'%s%s%s; a layer's "
            "values are [tokens, channels], and only attention takes them apart, into heads",
            (long long)a, (long long)b, source, made ? " (" : "", made ? made->op : "",
            made ? ")" : ""));
}

/* Reshapes that leave tokens and channels what they were are nothing at all. */
static const char *mlo_block_layout(mlo_recogniser *r, mlo_node *n, const char *name) {
    mlo_chain chain;
    const char *source = mlo_chain_walk(&r->in, name, &chain, NULL);
    mlo_form from = mlo_body_form(&r->in, source), to = mlo_body_form(&r->in, name);
    if (mlo_last_dim(&from) != mlo_last_dim(&to)) return mlo_refuse_layout(r, n, source, name);
    if (!mlo_is_unmoved(r, source, &chain)) {
        const char *told = mlo_told_of(&r->in, source, MLO_TELL_DEPTH);
        return told
            ? mlo_refuse_told(r, n, told)
            : mlo_cannot(r, n, "tokens or channels that change places outside of attention");
    }
    const char *out = mlo_block_of(r, source);
    return out && mlo_chain_note(r, out, &chain, 1) ? NULL : out;
}

/* A rounding is a note on what it rounds. */
static const char *mlo_note_block(mlo_recogniser *r, const mlo_rounding *f) {
    const char *out = mlo_block_of(r, f->from);
    return out && mlo_note_rounding(r, out, f, 1) ? NULL : out;
}

/* The block of the first kind that knows the node. The inputs of a block are recognised meanwhile. */
static const char *mlo_block_by_kind(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    const mlo_sublayer_kind *outer = r->card;
    const char *out = NULL;
    for (size_t k = 0; !*is && r->kinds[k]; k++) {
        r->card = r->kinds[k];
        out = r->card->recognise(r, n, name, is);
    }
    r->card = outer;
    return out;
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
    const char *out = NULL;
    mlo_rounding f;
    int is = mlo_is_rounded(&r->in, name, &f);
    if (is) out = mlo_note_block(r, &f);
    if (!is && mlo_is_plain(&r->in, n)) {
        is = 1;
        out = mlo_block_of(r, n->input[0]);
    }
    if (!is) out = mlo_block_by_kind(r, n, name, &is);
    if (!is) out = mlo_is_layout(n) ? mlo_block_layout(r, n, name) : mlo_refuse_op(r, n);
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
static int mlo_recognise(mlo *m, const mlo_scan *scan, const mlo_sublayer_kind *const *kinds,
    mlo_recogniser *r, const char **result) {
    memset(r, 0, sizeof *r);
    r->m = m;
    r->kinds = kinds;
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
    if (r->in.memory && mlo_map_put(m, &r->done, r->in.memory, (void *)(uintptr_t)r->in.memory))
        return mlo_failed(m);
    r->raw_result = !mlo_reads_rounded(r, r->body->output[0]->name);
    *result = mlo_block_of(r, r->body->output[0]->name);
    return *result ? mlo_given_carried(r, *result) : mlo_failed(m);
}
