/* fit: a layer in an arena that is as small as --arena says.
 *
 * in:  a core; the option arena.
 * out: the body: whole values where they fit. Else chains of kernels go in blocks of tokens (blocks.c), as few blocks
 *     as fit, since each reads its matrices anew; or a failure that names the least that would do.
 *
 * First all chains go token by token, which takes the least; then one after the other gets larger blocks, as long as
 * that fits. Done twice, an attention being a chain by itself or not, and what reads fewer weights is taken.
 *
 * invariant: the arena is what the plan of the blocks that are emitted takes, nothing is estimated.
 * example: BERT of 32 tokens in 12288 bytes instead of 16384: attention and FFN in 4 blocks of 8 tokens.
 * cost: chains * log(tokens) plans.
 */
enum { MLO_FIT_GROUP = 4 }; /* tokens that share a row of weights (share/c/mvu.c) */

/* Numbers of matrices that a layer's call reads. */
static int64_t mlo_c_reads(const mlo_c_body *b) {
    int64_t sum = 0;
    for (int i = 0; i < b->core->n_element; i++) {
        const mlo_element *e = &b->core->element[i];
        if (e->kernel && e->kernel->kind == MLO_KERNEL_MATRIX)
            sum += mlo_form_count(&e->site.in[1])
                * mlo_parts(b->tokens, b->blocks.rows[b->blocks.of[i]]);
    }
    return sum;
}

/* Tokens of each of so many blocks: whole groups of those that share weights, if it is more than one group. */
static int64_t mlo_c_rows_of(const mlo_c_body *b, int64_t blocks) {
    const int64_t rows = mlo_parts(b->tokens, blocks);
    if (rows <= MLO_FIT_GROUP) return rows;
    return mlo_min(mlo_parts(rows, MLO_FIT_GROUP) * MLO_FIT_GROUP, b->tokens);
}

/* A chain in as few blocks as fit, the others as they are. */
static int mlo_c_enlarge(mlo *m, mlo_c_body *b, int chain, int64_t most) {
    int64_t below = 0, blocks = b->tokens; /* too few, and so many fit */
    while (blocks - below > 1) {
        const int64_t tried = (below + blocks) / 2;
        b->blocks.rows[chain] = mlo_c_rows_of(b, tried);
        MLO_TRY(mlo_c_lay(m, b));
        if (b->plan.bytes <= most)
            blocks = tried;
        else
            below = tried;
    }
    b->blocks.rows[chain] = mlo_c_rows_of(b, blocks);
    return 0;
}

/* Blocks that fit; *least: the bytes that they take at least. */
static int mlo_c_shrink(mlo *m, mlo_c_body *b, int64_t most, int64_t *least) {
    mlo_c_blocks best;
    int64_t reads = INT64_MAX;
    best.n = 0;
    for (int apart = 1; apart >= 0; apart--) {
        mlo_c_chains(b->core, &b->blocks, apart, 1);
        MLO_TRY(mlo_c_lay(m, b));
        *least = mlo_min(*least, b->plan.bytes);
        if (b->plan.bytes > most) continue;
        for (int k = 0; k < b->blocks.n; k++) MLO_TRY(mlo_c_enlarge(m, b, k, most));
        if (mlo_c_reads(b) >= reads) continue;
        reads = mlo_c_reads(b);
        best = b->blocks;
    }
    if (!best.n) return 0;
    b->blocks = best;
    return mlo_c_lay(m, b);
}

/* Whole values, or blocks, in what there is. */
static int mlo_c_body_build(mlo *m, const mlo_core *c, mlo_c_body *b) {
    const long most = mlo_opt_int(m, "arena", LONG_MAX, 1, LONG_MAX);
    if (m->error.code) return mlo_failed(m);
    memset(b, 0, sizeof *b);
    b->core = c;
    b->tokens = c->slots ? 1 : c->chunk;
    mlo_c_chains(c, &b->blocks, 1, b->tokens);
    MLO_TRY(mlo_c_lay(m, b));
    const int64_t whole = b->plan.bytes;
    int64_t least = whole;
    if (whole > most && b->tokens > 1) MLO_TRY(mlo_c_shrink(m, b, most, &least));
    if (least > most)
        return mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node,
            "--arena %ld: the layer's values take %lld bytes at a time, and %lld at least, %s; "
            "give as much%s",
            most, (long long)whole, (long long)least,
            b->tokens > 1 ? "where a token at a time goes through its kernels"
                          : "a token at a time as they are",
            b->tokens > 1 ? ", or export shorter frames" : "");
    mlo_c_names(m, b);
    return mlo_failed(m);
}

/* "attention_0 to layernorm_1 in blocks of 8 tokens", for people. */
static const char *mlo_c_chain_text(mlo *m, const mlo_c_body *b, int chain) {
    const mlo_element *e = b->core->element;
    const int first = b->blocks.first[chain];
    int last = b->blocks.last[chain];
    while (last > first && !e[last].kernel) last--; /* views */
    const char *what = last > first ? mlo_format(m, "%s to %s", e[first].name, e[last].name)
                                    : e[first].name;
    if (b->blocks.rows[chain] == 1) return mlo_format(m, "%s token by token", what);
    return mlo_format(m, "%s in blocks of %lld tokens", what, (long long)b->blocks.rows[chain]);
}

/* The blocks, and why the arena is no smaller. */
static const char *mlo_c_fit_text(mlo *m, const mlo_c_body *b) {
    const char *text = "";
    for (int k = 0; k < b->blocks.n; k++)
        if (mlo_c_blocked(b, k))
            text = mlo_or_empty(mlo_format(m, "%s%s; ", text, mlo_c_chain_text(m, b, k)));
    return mlo_format(m, "%s%s%s", text, mlo_plan_text(m, &b->plan), *text ? ", so cut" : "");
}
