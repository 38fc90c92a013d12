/* context: a decoder becomes the prompt of as many tokens as its cache is to hold.
 *
 * in:  a model exported as a prompt (ids in, logits out) or as a step (with past keys and values in, present
 *     ones out), indexed; the option "context": N; of a step "open" says N where that does not.
 * out: the model without a cache at N tokens, metadata mlo.context = N.
 *
 * Causal attention makes that sound: what comes out for token i depends on tokens 0..i, whether they come at
 * once, in chunks or one by one. So a cache is how a core is built, not what it computes, and every later
 * stage works on a prompt.
 *
 * Pasts go (cache.c). What was computed from how much is past (positions, masks) is constant, and folds. Inputs called
 * positions count from 0, since the core knows where a token is. Axes that are open hold N tokens, the first of two or
 * more is that of sequences: 1. A step that was exported for one new token alone has no such axis: that is step.c's.
 *
 * invariant: tokens come in as many as there are to be.
 * example: ids [1, S], past [1, 4, P, 8] with --context 16: ids [1, 16].
 * cost: O(nodes).
 */
enum { MLO_MAX_CONTEXT = 65536 }; /* tokens */

/* ---- tokens --------------------------------------------------------------- */

/* Open axes of inputs of this rank: sequences, tokens. */
static void mlo_bind_tokens(mlo_cacheless *c, size_t least, size_t most) {
    for (size_t i = 0; i < c->g->n_input; i++) {
        const mlo_type *type = c->g->input[i]->type;
        mlo_shape *s = type && type->tensor ? type->tensor->shape : NULL;
        for (size_t d = 0; s && s->n_dim >= least && s->n_dim <= most && d < s->n_dim; d++) {
            const int64_t n = s->n_dim > 1 && !d ? 1 : c->tokens;
            if (s->dim[d].param)
                mlo_bind(c->m, s->dim[d].param, n);
            else if (!(s->dim[d].has & MLO_HAS(1))) {
                s->dim[d].value = n;
                s->dim[d].has |= MLO_HAS(1);
            }
        }
    }
}

/* The tokens of an input [1, tokens] or [1, tokens, channels], sequences and tokens in either order; -1: it
 * has none. */
static int64_t mlo_tokens_fed(const mlo_form *f, int64_t wanted) {
    if (f->rank != 2 && (f->rank != 3 || !mlo_dtype_is_float(f->dtype))) return -1;
    return f->dims[1] != wanted && f->dims[0] == wanted ? wanted : f->dims[1];
}

/* Tokens come in, as many as there are to be: in all inputs [1, tokens]; in one [1, tokens, channels], where
 * others are of another sequence. */
static int mlo_check_tokens(mlo_cacheless *c) {
    const char *other = NULL;
    int64_t others = 0, said = 0, strict = 0;
    for (size_t i = 0; i < c->g->n_input && !strict; i++) {
        const mlo_form f = mlo_form_of(mlo_value_of(c->g, c->g->input[i]->name));
        const int64_t tokens = mlo_tokens_fed(&f, c->tokens);
        said += tokens == c->tokens;
        if (tokens < 0 || tokens == c->tokens) continue;
        other = c->g->input[i]->name;
        others = tokens;
        strict = f.rank == 2;
    }
    if (said && !strict) return 0;
    if (other)
        return mlo_fail_at(c->m, MLO_E_SHAPE, other,
            "it was exported for %lld tokens, --context says %lld; export it for as many, or with "
            "that "
            "axis dynamic",
            (long long)others, (long long)c->tokens);
    return mlo_fail_at(c->m, MLO_E_SHAPE, NULL,
        "--context %lld: no input is tokens, [1, tokens] or [1, tokens, channels]; what reads "
        "other "
        "things has no past to keep",
        (long long)c->tokens);
}

/* Does an input bring tokens, besides that one? (Else what looks like positions is ids under a mask.) */
static int mlo_tokens_beside(const mlo_cacheless *c, const char *name) {
    for (size_t i = 0; i < c->g->n_input; i++) {
        const char *other = c->g->input[i]->name;
        const mlo_form f = mlo_form_of(mlo_value_of(c->g, other));
        if (other != name && mlo_tokens_fed(&f, c->tokens) == c->tokens && !strstr(other, "mask")
            && !mlo_called_position(other) && !mlo_counts_tokens(c->g, other))
            return 1;
    }
    return 0;
}

/* Inputs of positions (places.c) count tokens from 0: constants. */
static int mlo_count_positions(mlo_cacheless *c) {
    for (size_t i = c->g->n_input; i--;) {
        const char *name = c->g->input[i]->name;
        mlo_form f = mlo_form_of(mlo_value_of(c->g, name));
        if (mlo_dtype_is_float(f.dtype) || f.dtype == MLO_BOOL || f.rank < 1 || !mlo_form_known(&f)
            || f.dims[f.rank - 1] != c->tokens)
            continue;
        if (!mlo_called_position(name)
            && !(mlo_counts_tokens(c->g, name) && mlo_tokens_beside(c, name)))
            continue;
        MLO_TRY(mlo_fix_input(c, name, &f, 0, 1));
    }
    return mlo_index(c->m, c->g);
}

/* Is it called a mask of what is attended to, 1, and no other one (a Longformer's global_attention_mask)? */
static int mlo_called_mask(const char *name) {
    const char *tail = strstr(name, "attention_mask");
    return mlo_eq(name, "mask")
        || (tail && mlo_eq(tail, "attention_mask") && !strstr(name, "global"));
}

/* A mask of whole numbers, ones for tokens and zeros for padding: a sequence that has a slot of its own has none. Where
 * nothing but ids can come (--tokens), or no mask is kept with keys (--kv dram), it is ones. */
static int mlo_count_all(mlo_cacheless *c) {
    if (!mlo_opt(c->m, "tokens") && !mlo_eq(mlo_opt(c->m, "kv"), "dram")) return 0;
    for (size_t i = c->g->n_input; i--;) {
        const char *name = c->g->input[i]->name;
        mlo_form f = mlo_form_of(mlo_value_of(c->g, name));
        if (!mlo_called_mask(name) || (f.dtype != MLO_INT64 && f.dtype != MLO_INT32) || f.rank != 2
            || f.dims[0] != 1 || f.dims[1] != c->tokens)
            continue;
        mlo_warn(c->m, "'%s' is ones: a sequence in a slot of its own has no padding", name);
        MLO_TRY(mlo_fix_input(c, name, &f, 1, 0));
    }
    return mlo_index(c->m, c->g);
}

/* ---- all of it ------------------------------------------------------------ */

/* What the model was read for; 0: no context. */
static int64_t mlo_context_said(mlo *m) {
    const char *s = mlo_meta_get(m->model->meta, m->model->n_meta, mlo_key_context);
    uint64_t n = 0;
    if (s && (!mlo_parse_u64(s, &n) || n < 2 || n > MLO_MAX_CONTEXT))
        mlo_fail_at(m, MLO_E_DATA, NULL,
            "metadata say %s = '%.40s', which is no whole number from 2 to %d; leave it to mlo",
            mlo_key_context, s, MLO_MAX_CONTEXT);
    return m->error.code ? 0 : (int64_t)n;
}

/* The option's value; 0: there is none. */
static int64_t mlo_context_wanted(mlo *m) {
    const char *text = mlo_opt(m, "context");
    uint64_t n = 0;
    if (text && (!mlo_parse_u64(text, &n) || n < 2 || n > MLO_MAX_CONTEXT))
        mlo_fail_at(m, MLO_E_USAGE, NULL, "--context %s: '%s' is no number of tokens from 2 to %d",
            text, text, MLO_MAX_CONTEXT);
    return m->error.code ? 0 : (int64_t)n;
}

/* The option "open" gives a context to a model that has a past whose length is open, or that of one token, whose past
 * is as long as it is; 0: it has none. */
static int64_t mlo_context_open(mlo_cacheless *c) {
    const int64_t tokens = mlo_open_said(c->m).tokens, one = tokens ? mlo_step_tokens(c) : 0;
    if (one > 1) {
        mlo_warn(c->m,
            "the step is exported for one new token behind a past of fixed length: the core keeps "
            "%lld tokens",
            (long long)one);
        return one;
    }
    for (size_t i = 0; tokens > 1 && i < c->g->n_input; i++) {
        const mlo_past p = mlo_past_of(c, mlo_value_of(c->g, c->g->input[i]->name));
        if (!mlo_may_be_past(&p) || !mlo_is_past(&p) || p.axis < 0 || p.form.dims[p.axis] >= 0)
            continue;
        mlo_warn(c->m,
            "'%s' is a past: the core keeps %lld tokens of it; --context N says otherwise",
            c->g->input[i]->name, (long long)tokens);
        return tokens;
    }
    return 0;
}

/* A model that has been read keeps its context. */
static int mlo_context_kept(mlo *m) {
    const int64_t wanted = mlo_context_wanted(m), said = mlo_context_said(m);
    const char *stage = mlo_meta_get(m->model->meta, m->model->n_meta, mlo_key_stage);
    if (m->error.code || !wanted || wanted == said) return mlo_failed(m);
    return mlo_fail_at(m, MLO_E_USAGE, NULL,
        said ? "--context %lld: the model has been through %s with %lld; read it anew"
             : "--context %lld: the model has been through %s without; read it anew",
        (long long)wanted, stage, (long long)said);
}

static int mlo_context_of_tokens(mlo_cacheless *c) {
    MLO_TRY(mlo_take_pasts(c));
    MLO_TRY(mlo_count_keys(c));
    mlo_bind_tokens(c, 2, MLO_MAX_RANK);
    mlo_bind_tokens(c, 1, 1);
    MLO_TRY(mlo_index(c->m, c->g));
    MLO_TRY(mlo_check_tokens(c));
    MLO_TRY(mlo_count_positions(c));
    return mlo_count_all(c);
}

static int mlo_context(mlo *m, mlo_instants *one) {
    mlo_cacheless c = { m, m->model->graph, mlo_context_wanted(m) };
    const int64_t said = mlo_context_said(m);
    if ((c.tokens || mlo_opt(m, "open")) && !said) MLO_TRY(mlo_hot(&c) || mlo_unstack(&c));
    if (!c.tokens && !said && !m->error.code) c.tokens = mlo_context_open(&c);
    if (m->error.code || !c.tokens || said == c.tokens) return mlo_failed(m);
    if (said)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--context %lld: the model was read with a context of %lld; read the export anew",
            (long long)c.tokens, (long long)said);
    MLO_TRY(mlo_step_tokens(&c) ? mlo_step_begin(&c, one) : mlo_context_of_tokens(&c));
    const char *value = mlo_format(m, "%lld", (long long)c.tokens);
    return value ? mlo_meta_put(m, &m->model->meta, &m->model->n_meta, mlo_key_context, value)
                 : mlo_failed(m);
}
