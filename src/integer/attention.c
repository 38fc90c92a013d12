/* attention: recognises an attention and makes it an attention kernel.
 *
 * in:  MatMul(softmax(q k^T scale + mask), v) between reshapes, each checked element by element;
 *     heads of keys and values may be repeated, each for several heads of queries.
 * out: the kernel Attention, or one that rounds its probabilities, and perhaps its scores, as the
 *     source model does. What a mask hides by place (causal, a window in each iteration) becomes
 *     attributes and two numbers, what it hides by key one bit per key; what else it says is a bias, a
 *     parameter in steps of scores: see mask.c.
 *
 * invariant: scores have no term for a zero point of the queries, so queries have none; under a soft
 *     cap, which sees what all scores of a row have in common, keys have none either. The result
 *     has the zero points of the values that are mixed. A query of a causal or banded attention
 *     that sees no key gives 0; floats give the mean of all values. It is padding itself.
 * cost: one walk over the index map of each chain of reshapes.
 */

/* ---- recognising ---------------------------------------------------------- */

/* Does the chain from `source` [.., T, C] split all its channels, in order, into heads, each of which
 * `shared` heads of the view read, one behind the other? */
static int mlo_is_heads(const mlo_recogniser *r, const char *source, const mlo_chain *c,
    const mlo_heads *v, int64_t shared) {
    mlo_form f = mlo_body_form(&r->in, source);
    int64_t n = v->heads * v->d;
    int64_t *column = mlo_last_dim(&f) * shared == n
        ? (int64_t *)mlo_scratch(r->m, (size_t)n, sizeof *column)
        : NULL;
    int ok = column && mlo_head_columns(&r->in, source, c, v, column);
    for (int64_t i = 0; ok && i < n; i++) ok = column[i] == mlo_shared_channel(v->d, shared, i);
    mlo_scratch_free(r->m, column);
    return ok;
}

/* Does the node keep rows as rows: is the last dimension what it was? */
static int mlo_keeps_rows(const mlo_recogniser *r, const mlo_node *n) {
    mlo_form from = mlo_body_form(&r->in, n->input[0]), to = mlo_body_form(&r->in, n->output[0]);
    return mlo_has_trait(n, MLO_RESHAPES) && mlo_last_dim(&from) == mlo_last_dim(&to);
}

/* For Where(IsNaN(p), 0, p), which makes rows without any key zeros: p. Else NULL. */
static const char *mlo_unguarded(const mlo_recogniser *r, const mlo_node *n) {
    double zero;
    mlo_node *test = mlo_is(n, "Where") ? mlo_made_by(&r->in, n->input[0]) : NULL;
    if (!mlo_is(test, "IsNaN") || test->input[0] != n->input[2]
        || !mlo_scalar(&r->in, n->input[1], &zero) || mlo_differs(zero, 0))
        return NULL;
    return n->input[2];
}

/* Finds the softmax that makes probabilities, through roundings, guards and reshapes. */
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

/* Scores are multiplied (or divided) by a number that each iteration has of its own. */
static int mlo_steepen(mlo_recogniser *r, mlo_sublayer *b, const char *number, int divided) {
    const size_t n = (size_t)r->scan->iterations;
    if (!b->steep) {
        b->steep = MLO_NEW_N(r->m, double, n);
        for (size_t i = 0; b->steep && i < n; i++) b->steep[i] = 1;
    }
    for (size_t i = 0; b->steep && i < n; i++) {
        const double x = mlo_parameter_number(r->m, r->scan, r->body, number, (int64_t)i);
        b->steep[i] *= divided ? 1 / x : x;
    }
    return mlo_failed(r->m);
}

/* Scores go through a tanh: what that is multiplied by is their cap. 0: it is none. */
static int mlo_under_cap(mlo_recogniser *r, mlo_sublayer *b) {
    const size_t n = (size_t)r->scan->iterations;
    double *cap = b->cap ? NULL : MLO_NEW_N(r->m, double, n);
    for (size_t i = 0; cap && i < n; i++) {
        cap[i] = b->scale * (b->steep ? b->steep[i] : 1);
        if (!(cap[i] > 0)) return 0;
    }
    b->cap = cap;
    b->steep = NULL;
    b->scale = 1;
    return cap != NULL;
}

/* Refuses what a softmax is over, p (NULL: nothing of the body), in a person's words. */
static void mlo_cannot_score(
    mlo_recogniser *r, const mlo_node *softmax, const mlo_node *p, int cap) {
    const char *told = mlo_told_scores(&r->in, p);
    if (mlo_is(p, "Tanh"))
        mlo_cannot(r, p, "a soft cap of attention scores, c tanh(s / c), whose c is not above 0");
    else if (cap && mlo_is(p, "Add"))
        mlo_cannot(r, p, "a mask or a bias that attention scores get before their soft cap");
    else if (told)
        mlo_refuse_told(r, softmax, told);
    else
        mlo_cannot(r, softmax, "a softmax over something that is not scale * q k^T + mask");
}

/* Walks from the softmax to the MatMul that makes the scores, and notes their additive mask and
 * scale. */
static mlo_node *mlo_scores(
    mlo_recogniser *r, mlo_node *softmax, const char *name, mlo_sublayer *b) {
    mlo_node *p = NULL;
    double x;
    for (int i = 0; i < MLO_CHAIN; i++) {
        p = mlo_made_by(&r->in, name = mlo_unrounded(r, name, b->scale, &b->scores_given));
        if (!p) break;
        if (mlo_is(p, "MatMul")) return p;
        int first = mlo_is_carried(&r->in, p->input[0]);
        const char *other = p->n_input > 1 ? p->input[first ? 1 : 0] : NULL;
        name = p->input[first ? 0 : 1];
        if (mlo_is(p, "Add") && !mlo_is_carried(&r->in, other) && !b->mask && !b->cap
            && !b->steep) {
            b->mask = other;
            b->mask_scale = b->scale;
        } else if (mlo_is(p, "Mul") && mlo_scalar(&r->in, other, &x))
            b->scale *= x;
        else if (mlo_is(p, "Div") && first && mlo_scalar(&r->in, other, &x))
            b->scale /= x;
        else if ((mlo_is(p, "Mul") || (mlo_is(p, "Div") && first))
            && mlo_is_number(&r->in, other)) {
            if (mlo_steepen(r, b, other, mlo_is(p, "Div"))) return NULL;
        } else if (mlo_is(p, "Tanh") && mlo_under_cap(r, b))
            name = p->input[0];
        else if (mlo_keeps_rows(r, p))
            name = p->input[0];
        else
            break;
    }
    mlo_cannot_score(r, softmax, p, b->cap != NULL);
    return NULL;
}

/* How many sequences the carried value holds, as the attention's tokens show; 1 if it is no
 * batch. */
static int64_t mlo_batch_of(const mlo_recogniser *r) {
    mlo_form x = mlo_body_form(&r->in, r->body->input[0]->name);
    int64_t batch = r->tokens > 0 ? mlo_tokens_of(&x) / r->tokens : 1;
    return x.rank > 2 && (x.dims[0] == batch || x.dims[1] == batch) ? batch : 1;
}

/* Refuses a product of activations that is attention, but not as the hardware has it, and says what
 * a person would call it; `from`: what is no heads. */
static const char *mlo_cannot_attend(mlo_recogniser *r, const mlo_node *n, const mlo_node *scores,
    const char *from, const char *what) {
    int64_t batch = mlo_batch_of(r);
    const char *told = mlo_told_factor(&r->in, mlo_made_by(&r->in, from));
    for (size_t i = 0; !told && i < 2; i++)
        told = mlo_told_of(&r->in, scores->input[i], MLO_TELL_DEPTH);
    if (told) return mlo_refuse_told(r, n, told);
    const char *turned = mlo_why_not_turned(&r->in, scores);
    if (turned)
        return mlo_cannot(r, n,
            mlo_format(r->m,
                "queries or keys that are no rotary embedding: what they are made of %s", turned));
    if (batch > 1)
        mlo_fail(r->m, MLO_E_UNSUPPORTED, n,
            "a batch of %lld; export with a batch of 1, or leave that axis open and give "
            "--dim NAME=1: hardware takes frames one after the other (--unbatch takes it apart, or "
            "says which node mixes it)",
            (long long)batch);
    else
        return what ? mlo_cannot(r, n, what) : NULL;
    return NULL;
}

/* Refuses keys that are fewer or more than queries, of one stream. */
static const char *mlo_cannot_lengths(
    mlo_recogniser *r, const mlo_node *scores, const char *keys, int64_t tq, int64_t tk) {
    if (mlo_prefix_is_meant(r, mlo_made_by(&r->in, keys)))
        return mlo_refuse_told(r, scores,
            mlo_format(r->m,
                "keys of %lld tokens beside %lld rows of parameters, not laid out alike: values "
                "have "
                "as many, tokens stay in their order, and heads that read the same keys lie one "
                "behind the other and share a row (repeat_interleave)",
                (long long)tq, (long long)(tk - tq)));
    return mlo_refuse_told(r, scores,
        mlo_format(r->m,
            mlo_told_strided(&r->in, keys, MLO_TELL_FAR)
                ? "attention between sequences of two lengths, %lld queries and %lld keys, whose "
                  "map a convolution with a stride has shrunk (as PVT's and SegFormer's); build a "
                  "stage that has none (--loop NAME; the last one), or export with a reduction "
                  "ratio of 1"
                : "attention between sequences of two lengths, %lld queries and %lld keys; those "
                  "of one stream are as many (of a decoder with a cache: give --context N, or "
                  "export with use_cache=False)",
            (long long)tq, (long long)tk));
}

/* Refuses a product of two activations whose first is no softmax. */
static const char *mlo_cannot_mix_by(mlo_recogniser *r, const mlo_node *mix) {
    const mlo_node *by = mlo_made_by(&r->in, mix->input[0]);
    const char *told = by ? mlo_told_talking(&r->in, by) : NULL;
    if (!told) told = mlo_told_mixing(&r->in, mix->output[0], 0);
    return told ? mlo_refuse_told(r, mix, told)
                : mlo_cannot(r, mix, "a product of two activations that is not attention");
}

static int64_t mlo_width_of(const mlo_inside *in, const char *name) {
    const mlo_form f = mlo_body_form(in, name);
    return mlo_last_dim(&f);
}

/* Refuses heads of two widths that respell_width.c could not make one. */
static const char *mlo_cannot_widths(
    mlo_recogniser *r, const mlo_node *mix, const mlo_node *scores, int64_t values) {
    return mlo_refuse_told(r, mix,
        mlo_format(r->m,
            "heads of two widths, %lld channels of queries and keys and %lld of values, where more "
            "than views stands between the narrower and a linear layer; right behind linear "
            "layers, "
            "and values in front of one, they become hardware: give both as many channels "
            "(columns, "
            "and rows, of zeros)",
            (long long)mlo_width_of(&r->in, scores->input[0]), (long long)values));
}

/* Are operands heads of their tokens' channels? (Keys and values beside rows are: prefix.c.) 0: refused. */
static int mlo_is_of_heads_all(mlo_recogniser *r, const mlo_sublayer *b, const mlo_node *mix,
    const mlo_node *scores, const mlo_chain *chain) {
    static const char *const what[] = { "queries", "keys", "values" };
    const mlo_form s = mlo_body_form(&r->in, scores->output[0]);
    const int64_t d = mlo_width_of(&r->in, mix->output[0]), tq = s.dims[s.rank - 2];
    for (int i = 0; i < (b->prefix ? 1 : 3); i++) {
        const mlo_heads at = { i ? b->tokens : tq, b->heads, d, i == 1 };
        if (mlo_is_heads(r, b->in[i], &chain[i], &at, i ? b->heads / b->kv_heads : 1)) continue;
        mlo_cannot_attend(r, i < 2 ? scores : mix, scores, b->in[i],
            mlo_format(r->m,
                mlo_is_norm(&r->in, mlo_made_by(&r->in, b->in[i]))
                    ? "%s that have a norm over each head behind other work on heads than rotary "
                      "embedding, or one whose gain is not each channel's; norms over heads come "
                      "behind the projection or behind rotary embedding"
                    : "%s that are not laid out as heads of the token's channels",
                what[i]));
        return 0;
    }
    return 1;
}

/* Are heads of the mix, behind a chain, the token's channels again? */
static int mlo_is_joined_back(const mlo_recogniser *r, const mlo_node *mix, const mlo_chain *joined,
    int64_t tokens, int64_t heads, int64_t d) {
    mlo_array *map = mlo_index_map(&r->in, mix->output[0], joined);
    int ok = map && mlo_array_count(map) == tokens * heads * d;
    for (int64_t h = 0; ok && h < heads; h++)
        for (int64_t i = 0; ok && i < tokens; i++)
            for (int64_t j = 0; ok && j < d; j++)
                ok = ((int32_t *)map->data)[(i * heads + h) * d + j] == (h * tokens + i) * d + j;
    mlo_array_free(r->m, map);
    return ok;
}

/* The softmax in front of `n`, which takes off what a sink got of it: *scores are what there is beside the sink. NULL:
 * it is none. */
static mlo_node *mlo_sunk(
    mlo_recogniser *r, mlo_node *n, mlo_sublayer *b, const char **scores, const char **sink) {
    mlo_node *softmax = mlo_has_input(n, 0) ? mlo_softmax_of(r, n->input[0], &b->probs_given)
                                            : NULL;
    return mlo_is(softmax, "Softmax") ? mlo_unsunk(r, n, softmax, scores, sink) : NULL;
}

/* Keys and values that have rows of parameters beside them, or scores a sink: what is left are the frame's own. */
static int mlo_rows_beside(mlo_recogniser *r, mlo_sublayer *b, const mlo_node *scores,
    const mlo_node *mix, int64_t tk, const char *sink) {
    const char *const operand[] = { scores->input[1], mix->input[1] };
    const mlo_heads keys = { tk, b->heads, mlo_width_of(&r->in, mix->output[0]), 1 };
    const mlo_node *joined = mlo_made_by(&r->in, b->in[1]);
    const int beside = mlo_is(joined, "Concat") || mlo_is(joined, "Pad");
    mlo_prefix *p = sink || beside ? mlo_prefix_of(r, operand, &keys) : NULL;
    if (sink && !p && !r->m->error.code)
        mlo_cannot(r, mix, "a sink of attention beside keys that are not a frame's own");
    if (!p || (!p->n && !sink)) return mlo_failed(r->m);
    p->n += sink != NULL;
    p->sink = sink;
    b->prefix = p;
    for (int k = 0; k < 2; k++) b->in[1 + k] = p->of[k].own;
    return 0;
}

/* Recognises MatMul(softmax(..), v) behind reshapes: an attention of tokens [T, C]. `out` is the
 * value after the reshapes; `joined` leads from there to `mix`, the MatMul. */
static const char *mlo_block_attention(
    mlo_recogniser *r, mlo_node *mix, const char *out, const mlo_chain *joined) {
    mlo_sublayer *b = mlo_block_new(r, mix, out);
    mlo_node *softmax = b ? mlo_softmax_of(r, mix->input[0], &b->probs_given) : NULL;
    mlo_chain chain[3];
    const char *logits = NULL, *sink = NULL;
    if (!b || r->m->error.code) return NULL;
    if (mlo_is_summed_up(&r->in, mix)) return mlo_refuse_told(r, mix, MLO_TOLD_SUMMED_UP);
    if (softmax && !mlo_is(softmax, "Softmax")) softmax = mlo_sunk(r, softmax, b, &logits, &sink);
    if (!mlo_is(softmax, "Softmax")) return mlo_cannot_mix_by(r, mix);
    mlo_node *scores = mlo_scores(r, softmax, logits ? logits : softmax->input[0], b);
    if (!scores || r->m->error.code) return NULL;
    mlo_form s = mlo_body_form(&r->in, scores->output[0]);
    mlo_form o = mlo_body_form(&r->in, mix->output[0]);
    int64_t axis = mlo_int(softmax, "axis", -1);
    if (s.rank < 3 || o.rank < 3)
        return mlo_cannot(r, scores, "scores that are not [.., queries, keys] of heads");
    if (axis != -1 && axis != mlo_body_form(&r->in, softmax->input[0]).rank - 1)
        return mlo_cannot(r, softmax, "a softmax that is not over the keys");
    int64_t tq = s.dims[s.rank - 2], tk = s.dims[s.rank - 1], d = o.dims[o.rank - 1];
    b->heads = mlo_form_count(&s) / (tq * tk);
    if (o.dims[o.rank - 2] != tq || mlo_form_count(&o) != b->heads * tq * d)
        return mlo_cannot(
            r, mix, "values that are mixed by other queries or heads than scores have");
    double scale[3] = { 1, 1, 1 };
    for (int i = 0; i < 3; i++)
        b->in[i] = mlo_chain_walk(
            &r->in, i < 2 ? scores->input[i] : mix->input[1], &chain[i], i < 2 ? &scale[i] : NULL);
    if (mlo_rows_beside(r, b, scores, mix, tk, sink)) return NULL;
    if (b->prefix) {
        scale[1] = b->prefix->of[0].factor;
        tk -= b->prefix->n - (sink != NULL);
    }
    b->scale *= scale[0] * scale[1];
    b->n_in = 3;
    b->tokens = tk;
    b->crossed = mlo_is_memory(&r->in, b->in[1]) && mlo_is_memory(&r->in, b->in[2])
        && !mlo_is_memory(&r->in, b->in[0]);
    if (tq != tk && !b->crossed) return mlo_cannot_lengths(r, scores, b->in[1], tq, tk);
    r->tokens = tq;
    if (b->crossed) r->keys = tk;
    if (mlo_width_of(&r->in, scores->input[0]) != d) return mlo_cannot_widths(r, mix, scores, d);
    b->kv_heads = b->heads / mlo_shared_by(r, b->in[1], b->heads, d);
    if (!mlo_is_of_heads_all(r, b, mix, scores, chain)) return NULL;
    if (!mlo_is_joined_back(r, mix, joined, tq, b->heads, d))
        return mlo_cannot(r, mix, "heads that are not joined back into the token's channels");
    if (!mlo_block_finish(r, b)) return NULL;
    for (int i = 0; i < (b->prefix ? 1 : 3); i++)
        if (mlo_chain_note(r, b->in[i], &chain[i], scale[i])) return NULL;
    return mlo_chain_note(r, out, joined, 1) ? NULL : out;
}

/* Does the attention mix values that come from outside of the loop, not through a projection? */
static int mlo_is_crossed(mlo_recogniser *r, const mlo_node *mix) {
    mlo_given *given = NULL;
    return mlo_is_carried(&r->in, mix->input[0])
        && mlo_is(mlo_softmax_of(r, mix->input[0], &given), "Softmax");
}

static const char *mlo_recognise_attention(
    mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    mlo_chain chain;
    const mlo_node *behind = n;
    chain.n = chain.n_rounding = 0;
    if (mlo_is_layout(n)) n = mlo_made_by(&r->in, mlo_chain_walk(&r->in, name, &chain, NULL));
    const int own = mlo_is(n, "MatMul") && mlo_is_carried(&r->in, n->input[1]);
    *is = own || (n != behind && mlo_is(n, "MatMul") && mlo_is_crossed(r, n));
    if (!*is) return NULL;
    return own
        ? mlo_block_attention(r, n, name, &chain)
        : mlo_cannot(r, n,
              "cross-attention to keys and values that no layer of the loop projects from an "
              "encoder's output (a cache of them: export with use_cache=False)");
}

/* ---- what is given -------------------------------------------------------- */

/* Are an operand's integers those of the source model, without a zero point? */
static int mlo_given_plain(const mlo_quantizer *q, const mlo_signal *x) {
    const mlo_given *g = mlo_narrow_given(x);
    if (!mlo_given_scaled(g)) return 0;
    for (int64_t i = 0; i < q->scan.iterations; i++)
        if (mlo_differs(mlo_given_zero(g, i), 0)) return 0;
    return 1;
}

/* Keeps those of the source's roundings inside an attention that a kernel can do: scores to 8 bits
 * and probabilities to at most 8, made of products of the source's own integers. */
static void mlo_given_inside(mlo_quantizer *q, mlo_sublayer *b) {
    const mlo_given *s = b->scores_given, *w = b->probs_given;
    int probs = w && w->bits <= 8 && mlo_given_plain(q, mlo_signal_of(q, b->in[2]));
    int scores = probs && s && s->bits == 8 && !s->narrow
        && mlo_given_plain(q, mlo_signal_of(q, b->in[0]))
        && mlo_given_plain(q, mlo_signal_of(q, b->in[1]));
    q->r.left_out += (size_t)((w && !probs) + (s && !scores));
    if (!probs) b->probs_given = NULL;
    if (!scores) b->scores_given = NULL;
}

/* Are numbers below 0 none of a given form's, as a Relu in front leaves none, and is its zero point not 0? */
static int mlo_given_begins(const mlo_given *g) {
    const double least = g && g->sign ? g->narrow - ldexp(1, g->bits - 1) : 0;
    return mlo_given_scaled(g) && mlo_differs(least, 0)
        && !mlo_differs(mlo_given_zero(g, 0), least);
}

/* Drops, with a warning, given zero points that an attention has no term for: of the queries, the
 * values and the result, and of the keys under a soft cap. */
static int mlo_given_attention(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_signal *x = mlo_signal_of(q, b->in[0]), *k = mlo_signal_of(q, b->in[1]);
    mlo_signal *v = mlo_signal_of(q, b->in[2]);
    mlo_signal *y = mlo_signal_of(q, b->out);
    mlo_signal *left = NULL;
    const mlo_given *gx = mlo_narrow_given(x), *gv = mlo_narrow_given(v), *gy = mlo_narrow_given(y);
    const mlo_given *gk = b->cap ? mlo_narrow_given(k) : NULL;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        double query = mlo_given_scaled(gx) ? mlo_given_zero(gx, i) : 0;
        double value = mlo_given_scaled(gv) ? mlo_given_zero(gv, i) : 0;
        double mix = mlo_given_scaled(gy) ? mlo_given_zero(gy, i) : 0;
        double key = mlo_given_scaled(gk) ? mlo_given_zero(gk, i) : 0;
        if (mlo_differs(key, 0)) {
            k->given = k->given_narrow = NULL;
            left = k;
        }
        if (mlo_differs(query, 0)) left = x;
        if (mlo_differs(value, 0) || mlo_differs(mix, 0)) {
            v->given = v->given_narrow = y->given = y->given_narrow = NULL;
            left = left ? left : v;
        }
    }
    if (left == x) x->given = x->given_narrow = NULL;
    if (left)
        mlo_warn(q->m,
            "%s: zero points of queries, values and their mix are not taken over (an attention "
            "knows none): scales of '%s' are chosen here",
            mlo_node_name(b->node), left->name);
    return mlo_failed(q->m);
}

static int mlo_given_of_attention(mlo_quantizer *q, mlo_sublayer *b) {
    if (mlo_given_begins(mlo_narrow_given(mlo_signal_of(q, b->in[2]))))
        return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
            "values that begin at 0, as behind a Relu, with another zero point than 0; an "
            "attention knows none");
    MLO_TRY(mlo_given_attention(q, b));
    mlo_given_inside(q, b);
    return 0;
}

/* ---- masks ---------------------------------------------------------------- */

/* An attention with a bias or a soft cap rounds neither scores nor probabilities as a source does, and
 * has one of them. */
static int mlo_settle_scores(mlo_quantizer *q, mlo_sublayer *b) {
    if (!b->sight.bias.number && !b->cap && !b->steep && !b->prefix) return 0;
    q->r.left_out += (size_t)((b->probs_given != NULL) + (b->scores_given != NULL));
    b->probs_given = b->scores_given = NULL;
    if (!b->sight.bias.number || !b->cap) return 0;
    return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
        "attention scores under a soft cap that get a bias: behind a cap keys are hidden, no more");
}

/* Between two sequences places say nothing. */
static int mlo_check_sight(mlo_quantizer *q, const mlo_sublayer *b) {
    if (!b->crossed || !(b->sight.causal || b->sight.band || b->sight.bias.number)) return 0;
    return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
        "a mask or bias '%s' of queries' and keys' places between two sequences; hardware hides "
        "keys of an encoder's output by one bit each",
        b->mask);
}

/* The masks of all attentions to one stream's keys (crossed: the memory's) become what they hide by
 * place, and one number per key in front of the loop, which is q's. */
static int mlo_settle_masks(mlo_quantizer *q, mlo_tracer *t, int crossed, int64_t *own) {
    const mlo_sublayer *bare = NULL, *masked = NULL;
    for (size_t i = 0; i < q->r.n_block; i++) {
        mlo_sublayer *b = q->r.block[i];
        const char *mask = b->mask;
        if (b->kind != MLO_ATTENTION || b->crossed != crossed) continue;
        if (mask && b->prefix && mlo_prefix_mask(t, &q->scan, b, &mask)) return mlo_failed(q->m);
        if (mask && mlo_key_mask(t, &q->scan, b->node, b->tokens, b->heads, own, &b->sight, &mask))
            return mlo_failed(q->m);
        if (mask && !q->keys[crossed].mask) q->keys[crossed].mask = mask;
        if (b->prefix) MLO_TRY(mlo_prefix_settle(q->m, &q->scan, b));
        MLO_TRY(mlo_check_sight(q, b));
        MLO_TRY(mlo_settle_scores(q, b));
        *(mask ? &masked : &bare) = b;
    }
    if (bare && masked)
        return mlo_fail(q->m, MLO_E_UNSUPPORTED, masked->node,
            "a loop of attentions of which some have a key mask and some have none ('%s'); all "
            "attentions of a loop read one",
            mlo_node_name(bare->node));
    return 0;
}

/* Of a mask whose ones are counted each key that is none has to be hidden. */
static int mlo_check_counted(mlo_quantizer *q, const mlo_tracer *t, const int64_t *own) {
    for (int64_t j = 0; j < q->r.tokens; j++)
        if (own[j] < 0 || mlo_symbol_is(t, own[j], 0))
            return mlo_fail(q->m, MLO_E_UNSUPPORTED, q->scan.node,
                "distances that count the ones of a mask, which does not hide key %lld; hide the "
                "keys that the mask says, or export without a mask",
                (long long)j);
    return 0;
}

/* Where padding was set to 0 in a layer, that is behind the loop now (blank.c): no other token may read it. */
static int mlo_check_blank(mlo_quantizer *q, mlo_tracer *t, const int64_t *own) {
    const int64_t wrong = q->blank ? mlo_blank_wrong(t, q->blank, own, q->r.tokens) : -1;
    int beside = 0;
    for (size_t i = 0; i < q->r.n_block; i++) beside |= q->r.block[i]->kind == MLO_CONVOLUTION;
    if (q->m->error.code || !q->blank || (wrong < 0 && !beside)) return mlo_failed(q->m);
    if (beside)
        return mlo_fail_at(q->m, MLO_E_UNSUPPORTED, q->blank,
            "each layer multiplies its tokens by '%s', and a convolution reads tokens beside each "
            "other; "
            "export without a mask",
            q->blank);
    return mlo_fail_at(q->m, MLO_E_UNSUPPORTED, q->blank,
        "each layer multiplies its tokens by '%s', which is neither 1 nor, as the mask hides key "
        "%lld, 0; "
        "hardware leaves out what a mask of 0 and 1 says of padding; export without a mask",
        q->blank, (long long)wrong);
}

static int mlo_settle_mask(mlo_quantizer *q) {
    const int64_t keys[] = { q->r.tokens, q->r.keys };
    int counted = 0;
    MLO_TRY(mlo_count_places(q->m, &q->scan, &counted));
    for (int k = 0; k < 2 && !q->m->error.code; k++) {
        mlo_tracer t;
        int64_t *own = (int64_t *)mlo_scratch(q->m, (size_t)keys[k] + 1, sizeof *own);
        if (!own) return mlo_failed(q->m);
        for (int64_t j = 0; j <= keys[k]; j++) own[j] = -1;
        mlo_trace_begin(q->m, &q->scan, &t);
        t.bits = !k && q->blank;
        if (!q->m->error.code && !mlo_settle_masks(q, &t, k, own) && !k
            && !mlo_check_blank(q, &t, own) && counted)
            mlo_check_counted(q, &t, own);
        mlo_trace_end(&t);
        mlo_scratch_free(q->m, own);
    }
    return mlo_failed(q->m);
}

static int mlo_check_attention(mlo_quantizer *q, const mlo_sublayer *b) {
    const mlo_signal *x[3];
    for (int i = 0; i < 3; i++) x[i] = mlo_signal_of(q, b->in[i]);
    return x[1]->bits == x[0]->bits && x[2]->bits == x[0]->bits
        ? 0
        : mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
              "queries of %d bits, keys of %d and values of %d; an attention takes one width",
              x[0]->bits, x[1]->bits, x[2]->bits);
}
static double mlo_products_attention(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_form f = mlo_body_form(&q->r.in, b->in[0]);
    return 2.0 * (double)mlo_form_count(&f);
}
static const char *mlo_type_attention(const mlo_sublayer *b) {
    (void)b;
    return "matmul";
}

/* ---- scales --------------------------------------------------------------- */

/* Refuses queries with a zero, as scores have no term for it, and a result whose zero is not that
 * of the values that are mixed. */
static int mlo_attention_zeros(mlo_quantizer *q, const mlo_sublayer *b) {
    const mlo_signal *x = mlo_signal_of(q, b->in[0]);
    const mlo_signal *v = mlo_signal_of(q, b->in[2]);
    const mlo_signal *y = mlo_signal_of(q, b->out);
    const int64_t d = y->channels / b->heads, shared = b->heads / b->kv_heads;
    for (int64_t c = 0; c < q->scan.iterations * y->channels; c++) {
        double from =
            v->zero[mlo_shared_channel(d, shared, c)]; /* of the head that it is mixed of */
        double far = y->wide ? from : y->zero[c] - from;
        if (mlo_differs(x->zero[c], 0))
            return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
                "a zero point is fixed for the queries '%s'; only symmetric ones are supported",
                x->name);
        if (mlo_differs(far, 0))
            return mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
                "the values '%s' and their mix '%s' have different zeros, %g and %g; only one is "
                "supported",
                v->name, y->name, from, y->wide ? 0 : y->zero[c]);
    }
    return 0;
}

/* Queries against keys: a score sums q[c] k[c], so a factor of a channel of the queries may be its
 * inverse in the keys. Rotary embedding mixes two channels, which share theirs. (Without rotary
 * embedding, operands keep one scale: ranges as tight as 8 samples show them saturate.) */
typedef struct {
    mlo_signal *s[2]; /* of queries, keys: what the attention reads */
    mlo_signal *from[2]; /* of queries, keys: what the rotation in front of it reads */
    int64_t heads; /* of queries */
    int64_t kv_heads; /* of keys */
    int64_t d; /* channels of a head */

    /* of queries, keys; per channel of the keys (the first of each pair) */
    double *most[2]; /* the largest magnitudes */
    double *square[2]; /* mean squares; of keys: variances */
    float *factor; /* of the queries */
} mlo_balance;

/* Is it narrow, made here, and read by one sublayer alone? */
static int mlo_may_balance(const mlo_signal *s) {
    int reads = 0;
    for (int k = 0; k < MLO_BLOCK_KINDS; k++) reads += s->reads[k];
    return reads == 1 && s->narrow && !s->wide && !mlo_given_scaled(mlo_narrow_given(s))
        && s->maker;
}

/* Can both operands get factors: are they made by linear layers, turned, and read here alone? */
static int mlo_balance_of(mlo_quantizer *q, const mlo_sublayer *b, mlo_balance *t) {
    memset(t, 0, sizeof *t);
    t->heads = b->heads;
    t->kv_heads = b->kv_heads;
    for (int k = 0; k < 2; k++) {
        mlo_signal *s = t->s[k] = mlo_signal_of(q, b->in[k]);
        if (!mlo_may_balance(s) || s->maker->kind != MLO_ROTARY) return 0;
        t->from[k] = s = mlo_signal_of(q, s->maker->in[0]);
        if (!mlo_may_balance(s) || s->maker->kind != MLO_LINEAR) return 0;
    }
    t->d = t->s[1]->channels / t->kv_heads;
    return 1;
}

/* The key's channel, the first of its pair, that a channel of operand k meets. */
static int64_t mlo_balance_at(const mlo_balance *t, int k, int64_t c) {
    const int64_t head = c / t->d / (k ? 1 : t->heads / t->kv_heads);
    return head * t->d + c % t->d / 2 * 2;
}

/* What there is to see of both operands in iteration i. What all keys of a row have in common moves
 * no softmax: their variance counts. */
static void mlo_balance_see(const mlo_balance *t, int64_t i) {
    for (int k = 0; k < 2; k++) {
        const mlo_signal *s = t->s[k];
        for (int64_t c = 0; c < t->s[1]->channels; c++) t->most[k][c] = t->square[k][c] = 0;
        for (int64_t c = 0; c < s->channels; c++) {
            const int64_t at = i * s->channels + c, to = mlo_balance_at(t, k, c);
            t->most[k][to] = fmax(t->most[k][to], mlo_reach(s, at));
            t->square[k][to] += s->square[at] - (k ? s->mean[at] * s->mean[at] : 0);
        }
    }
}

/* The expected square error of scores, up to a factor: of either operand, what its steps are times
 * what it meets. */
static double mlo_balance_error(const mlo_balance *t) {
    double step[2] = { 0, 0 }, sum[2] = { 0, 0 };
    for (int64_t c = 0; c < t->s[1]->channels; c += 2) {
        const double f = (double)t->factor[c];
        step[0] = fmax(step[0], t->most[0][c] / f);
        step[1] = fmax(step[1], t->most[1][c] * f);
        sum[0] += f * f * t->square[1][c] * (double)(t->heads / t->kv_heads);
        sum[1] += t->square[0][c] / (f * f);
    }
    return step[0] * step[0] * sum[0] + step[1] * step[1] * sum[1];
}

static double mlo_largest_of(const double *x, int64_t n) {
    double most = 0;
    for (int64_t c = 0; c < n; c++) most = fmax(most, x[c]);
    return most;
}

/* factor[c] := queries^a / keys^(1-a), of the largest magnitudes, relative to those of all channels;
 * one that hardly moves is taken as 1/256 of these. */
static void mlo_balance_factors(const mlo_quantizer *q, const mlo_balance *t, int eighths) {
    const int64_t n = t->s[1]->channels;
    const double most[2] = { mlo_largest_of(t->most[0], n), mlo_largest_of(t->most[1], n) };
    for (int64_t c = 0; c < n; c += 2) {
        double f = 1;
        if (eighths >= 0 && most[0] > 1e-20 && most[1] > 1e-20)
            f = mlo_eighths(fmax(t->most[0][c] / most[0], 1.0 / 256), eighths)
                / mlo_eighths(fmax(t->most[1][c] / most[1], 1.0 / 256), 8 - eighths);
        t->factor[c] = (float)(q->pow2 ? mlo_pow2_near(f) : f);
    }
}

/* The best factors of iteration i, of none and queries^a / keys^(1-a) for a of 0, 1/8, .. 1. */
static void mlo_balance_choose(const mlo_quantizer *q, const mlo_balance *t, int64_t i) {
    int best = -1;
    double least = -1;
    mlo_balance_see(t, i);
    for (int a = -1; a <= 8; a++) {
        mlo_balance_factors(q, t, a);
        const double e = mlo_balance_error(t);
        if (least >= 0 && !(e < least)) continue;
        least = e;
        best = a;
    }
    mlo_balance_factors(q, t, best);
}

static int mlo_balance_shape(mlo_quantizer *q, mlo_signal *s) {
    if (s->shape) return 0;
    s->shape = MLO_NEW_N(q->m, float, (size_t)(q->scan.iterations * s->channels));
    return mlo_failed(q->m);
}

/* Gives an operand of iteration i its factors, and steps to go with them. */
static void mlo_balance_fit(const mlo_quantizer *q, const mlo_balance *t, int k, int64_t i) {
    mlo_signal *const sides[] = { t->s[k], t->from[k] };
    for (int j = 0; j < 2; j++) {
        mlo_signal *s = sides[j];
        for (int64_t c = 0; c < s->channels; c++) {
            const float f = t->factor[mlo_balance_at(t, k, c)];
            s->shape[i * s->channels + c] = k ? 1 / f : f;
        }
        mlo_fit_roomy(q, s, i);
    }
}

static int mlo_balance_scores(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_balance t;
    if (!mlo_balance_of(q, b, &t)) return mlo_failed(q->m);
    for (int k = 0; k < 2; k++)
        if (mlo_balance_shape(q, t.s[k]) || mlo_balance_shape(q, t.from[k]))
            return mlo_failed(q->m);
    const size_t n = (size_t)t.s[1]->channels;
    double *seen = (double *)mlo_scratch(q->m, 4 * n, sizeof *seen);
    t.factor = (float *)mlo_scratch(q->m, n, sizeof *t.factor);
    for (size_t k = 0; seen && k < 2; k++) {
        t.most[k] = seen + 2 * k * n;
        t.square[k] = t.most[k] + n;
    }
    for (int64_t i = 0; !q->m->error.code && i < q->scan.iterations; i++) {
        mlo_balance_choose(q, &t, i);
        for (int k = 0; k < 2; k++) mlo_balance_fit(q, &t, k, i);
    }
    mlo_scratch_free(q->m, seen);
    mlo_scratch_free(q->m, t.factor);
    return mlo_failed(q->m);
}

/* Sets the scales of an attention's result and of the values it mixes. Values that several query
 * heads share get no scale per channel: the layer behind has other weights for each of them. */
static int mlo_attention_scales(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_signal *v = mlo_signal_of(q, b->in[2]), *y = mlo_signal_of(q, b->out);
    int given = mlo_given_scaled(mlo_narrow_given(y));
    MLO_TRY(mlo_balance_scores(q, b));
    if (!given && !mlo_given_scaled(mlo_narrow_given(v)) && !mlo_weights_fixed(q, y->name)
        && v->channels == y->channels && mlo_absorbed(y) && !y->wide && !v->wide
        && mlo_narrow_readers(v) == 1 && v->maker && v->maker->kind == MLO_LINEAR) {
        if (mlo_shape_signal(q, v, y->name)) return mlo_failed(q->m);
        y->shape = v->shape;
        y->zero = v->zero;
        mlo_widen(q, y);
    }
    if (given)
        mlo_obey(q, y);
    else
        for (int64_t i = 0; i < q->scan.iterations; i++) mlo_fit(q, y, i);
    return mlo_attention_zeros(q, b);
}

/* ---- making it ------------------------------------------------------------ */

/* Computes the constants of one iteration: see kernels/attention.c. score: what one unit of q k is
 * in the softmax, or in the tanh of a cap; v, y: the steps of the values and of the result. */
static void mlo_attention_numbers(const mlo_sublayer *b, int64_t i, int lt, int exp_bits,
    double score, double v, double y, int32_t *p) {
    const mlo_given *w = b->probs_given, *s = w ? b->scores_given : NULL;
    const double octave = 1.4426950408889634;
    const double unit = s ? s->scale[i] : b->cap ? b->cap[i] / (double)MLO_CAP_MOST : score;
    int64_t mult[4] = { 0 };
    int shift[4] = { 0 };
    mlo_fixed(unit * octave * (w ? 4096 : 64), 40, &mult[0], &shift[0]);
    if (w)
        mlo_fixed(v * w->scale[i] / y, 62, &mult[1], &shift[1]);
    else {
        mlo_fixed(v / y, 62 - lt - exp_bits, &mult[1], &shift[1]);
        shift[1] += lt + exp_bits;
    }
    if (w) {
        mlo_fixed(1 / w->scale[i], 62 - lt - 18, &mult[2], &shift[2]);
        shift[2] += lt + 18;
    }
    if (b->cap) mlo_fixed(8192 * score, 40, &mult[2], &shift[2]);
    if (s) mlo_fixed_to(score / s->scale[i], 18, 40, &mult[3], &shift[3]);
    for (int k = 0; k < (s ? 4 : w || b->cap ? 3 : 2); k++) {
        int at = 2 * k + (k == 3);
        p[at] = (int32_t)mult[k];
        p[at + 1] = shift[k];
    }
    if (w) p[6] = (int32_t)(ldexp(1, w->bits - w->sign) - 1 - (!w->sign && w->narrow) - w->zero[i]);
    if (s) p[9] = (int32_t)(s->zero[i] - (s->sign ? 0 : 128));
}

/* What one unit of q k is in the softmax, in iteration i. */
static double mlo_score_step(mlo_quantizer *q, const mlo_sublayer *b, int64_t i) {
    return mlo_signal_of(q, b->in[0])->narrow_scale[i] * mlo_signal_of(q, b->in[1])->narrow_scale[i]
        * fabs(b->scale) * (b->steep ? b->steep[i] : 1);
}

/* How a bias becomes integers in one iteration. */
typedef struct {
    double factor; /* what it is multiplied by */
    double step; /* one unit of q k */
    /* how far below its row's largest number one counts at most: whatever the scores are, e^-20 is
     * the least that is left of a weight there */
    double reach;
} mlo_bias_scale;

static mlo_bias_scale mlo_bias_scale_of(mlo_quantizer *q, const mlo_sublayer *b, int64_t i) {
    const mlo_signal *x = mlo_signal_of(q, b->in[0]), *k = mlo_signal_of(q, b->in[1]);
    const double step = mlo_score_step(q, b, i);
    const double scores = step * (double)(x->channels / b->heads) * ldexp(1, x->bits + k->bits - 2);
    const mlo_bias_scale s = { fabs(b->mask_scale), step, 20 + 2 * scores };
    return s;
}

/* A row's number, of which `most` is the largest, in units of q k. */
static double mlo_bias_units(const mlo_bias_scale *s, double x, double most) {
    return fmax(x * s->factor, most * s->factor - s->reach) / s->step;
}

/* Row r of a bias in iteration i, and the largest number of it. */
static const float *mlo_bias_row(const mlo_bias *a, int64_t i, int64_t r, double *most) {
    const float *row = a->number + ((a->n > 1 ? i : 0) * a->heads * a->queries + r) * a->keys;
    *most = -INFINITY;
    for (int64_t j = 0; j < a->keys; j++) *most = fmax(*most, (double)row[j]);
    return row;
}

/* The steps of a bias as a power of two of those of scores: the finest that 16 bits have room for. */
static int mlo_bias_shift_of(mlo_quantizer *q, const mlo_sublayer *b) {
    const mlo_bias *a = &b->sight.bias;
    double need = 0, most;
    int shift = 0;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        const mlo_bias_scale s = mlo_bias_scale_of(q, b, i);
        for (int64_t r = 0; r < a->heads * a->queries; r++) {
            const float *row = mlo_bias_row(a, i, r, &most);
            for (int64_t j = 0; j < a->keys; j++)
                if (row[j] > -INFINITY) need = fmax(need, fabs(mlo_bias_units(&s, row[j], most)));
        }
    }
    while (shift < MLO_BIAS_SHIFT && rint(ldexp(need, -shift)) > (double)MLO_BIAS_MOST) shift++;
    return shift;
}

/* The bias as a parameter, [heads, queries, keys] in each iteration; -2^15 hides. */
static const char *mlo_quantize_bias(mlo_quantizer *q, const mlo_sublayer *b, mlo_node *n) {
    const mlo_bias *a = &b->sight.bias;
    const int64_t shape[] = { a->heads, a->queries, a->keys };
    const char *name = mlo_format(q->m, "%s_bias", b->out);
    const int shift = mlo_bias_shift_of(q, b);
    int16_t *to = name ? (int16_t *)mlo_parameter(q, name, MLO_INT16, 3, shape) : NULL;
    double most;
    if (!to || mlo_attr_int(q->m, n, "bias_shift", shift)) return NULL;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        const mlo_bias_scale s = mlo_bias_scale_of(q, b, i);
        for (int64_t r = 0; r < a->heads * a->queries; r++) {
            const float *row = mlo_bias_row(a, i, r, &most);
            for (int64_t j = 0; j < a->keys; j++) {
                const double x = rint(ldexp(mlo_bias_units(&s, row[j], most), -shift));
                *to++ = row[j] > -INFINITY ? (int16_t)fmin(fmax(x, -MLO_BIAS_MOST), MLO_BIAS_MOST)
                                           : MLO_BIAS_HIDES;
            }
        }
    }
    return name;
}

/* Keys that a row has at most: those of the frame, or of the widest band. */
static int64_t mlo_row_most(const mlo_quantizer *q, const mlo_sublayer *b, int64_t keys) {
    int64_t most = 0;
    if (!b->sight.band) return keys;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        const int64_t ahead = b->sight.causal ? 0 : b->sight.ahead[i];
        most = mlo_max(most, mlo_min(keys, 1 + b->sight.back[i] + ahead));
    }
    return most;
}

/* Bits of an exponential (kernels/attention.c: what they cost of the result). */
static int mlo_exp_bits_for(int64_t keys, int lt) {
    enum { MOST_KEYS = 256 };
    return keys > MOST_KEYS && lt <= MLO_ATTENTION_WIDE_LT ? MLO_EXP_WIDE : MLO_EXP_BITS;
}

static int mlo_quantize_attention(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    mlo_signal *s[3], *y = mlo_signal_of(q, b->out);
    for (int i = 0; i < 3; i++) s[i] = mlo_signal_of(q, b->in[i]);
    mlo_form_made made = mlo_made_at(q, y);
    mlo_form f = mlo_body_form(&q->r.in, b->in[1]);
    const int64_t ahead = b->prefix ? b->prefix->n : 0;
    const int64_t keys = mlo_form_count(&f) / f.dims[f.rank - 1] + ahead;
    int lt = mlo_clog2(keys);
    const char *p = mlo_format(m, "%s_p", b->out);
    const int64_t count = b->probs_given ? b->scores_given ? 10 : 7 : b->cap ? 6 : 4;
    const int64_t all = count + 2 * b->sight.band;
    const int exp_bits = b->probs_given ? MLO_EXP_BITS
                                        : mlo_exp_bits_for(mlo_row_most(q, b, keys), lt);
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &all) : NULL;
    mlo_node *n = data ? mlo_kernel_node(q,
                             ahead && b->sight.bias.number ? &mlo_attention_sink_kernel
                                 : ahead                   ? &mlo_attention_prefix_kernel
                                 : b->sight.bias.number    ? &mlo_attention_bias_kernel
                                 : count == 4              ? &mlo_attention_kernel
                                 : count == 6              ? &mlo_attention_cap_kernel
                                 : count == 7              ? &mlo_attention_probs_kernel
                                                           : &mlo_attention_rounded_kernel,
                             b, b->out, made.type, made.bits, made.scale)
                       : NULL;
    if (!n || mlo_attr_int(m, n, "heads", b->heads) || mlo_attr_int(m, n, "lt", lt))
        return mlo_failed(m);
    if ((b->kv_heads < b->heads && mlo_attr_int(m, n, "kv_heads", b->kv_heads))
        || (ahead && mlo_attr_int(m, n, "prefix", ahead))
        || (b->sight.causal && mlo_attr_int(m, n, "causal", 1))
        || (b->sight.band && mlo_attr_int(m, n, "band", 1))
        || (exp_bits != MLO_EXP_BITS && mlo_attr_int(m, n, "exp_bits", exp_bits)))
        return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++, data += all) {
        mlo_attention_numbers(b, i, lt, exp_bits, mlo_score_step(q, b, i), s[2]->narrow_scale[i],
            made.scale[i], data);
        if (!b->sight.band) continue;
        data[count] = b->sight.back[i];
        data[count + 1] = b->sight.ahead[i];
    }
    if (b->scale < 0)
        return mlo_fail(
            m, MLO_E_UNSUPPORTED, b->node, "attention scores with a negative scale %g", b->scale);
    const char *bias = b->sight.bias.number ? mlo_quantize_bias(q, b, n) : NULL;
    const char *in[] = { s[0]->narrow_name, s[1]->narrow_name, s[2]->narrow_name,
        q->keys[b->crossed].bits, p, bias };
    if (m->error.code || mlo_inputs(m, n, in, bias ? 6 : 5)
        || (ahead && mlo_prefix_parameters(q, b, n)))
        return mlo_failed(m);
    return mlo_narrow(q, b, b->out, y);
}

static const mlo_sublayer_kind mlo_attention_sublayer = {
    .kind = MLO_ATTENTION,
    .recognise = mlo_recognise_attention,
    .given = mlo_given_of_attention,
    .check = mlo_check_attention,
    .scales = mlo_attention_scales,
    .products = mlo_products_attention,
    .quantize = mlo_quantize_attention,
    .type = mlo_type_attention,
};
