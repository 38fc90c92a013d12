/* attention_prefix: attention to rows of keys and values that are parameters, in front of each frame's own.
 *
 * in:  as Attention (AttentionSink: as AttentionBias), and keys [P, KVH*D], values [P, KVH*D] of the same type
 *     as k and v. Attributes: as there, and prefix = P.
 * out: y [B, TQ, H*D]. Verilog: mlo_attention_prefix.
 *
 *     k' = keys, k;  v' = values, v;  mask' = P times true, mask;  y = Attention (q, k', v', mask')
 *
 * causal = 1: query i sees the P rows, and keys 0..i of its frame. There is no band: what is in front is seen from
 * everywhere. AttentionSink adds bias [H or 1, 1, P + T] to scores: a sink is a row of zeros whose bias is a number
 * of each head's, so that it takes its part of a row's weights, whatever the query, and mixes nothing.
 *
 * error: as Attention.
 * cost: as Attention's of frames of P + T keys; P * KVH * D numbers of keys and as many of values are parameters of
 *     an iteration, and a frame's keys and values come P tokens' beats later.
 */

/* The operands that attention has with its rows in front: keys, values, and a bit of the mask for each. */
#define MLO_ATTENTION_JOIN                           \
    "j_axis = Constant <value_ints=[0]> ()\n"        \
    "j_one = Constant <value_ints=[1]> ()\n"         \
    "j_form = Shape (k_own)\n"                       \
    "j_frames = Gather (j_form, j_axis)\n"           \
    "j_keys = Unsqueeze <axes=[0]> (keys)\n"         \
    "j_values = Unsqueeze <axes=[0]> (values)\n"     \
    "j_rows = Shape (keys)\n"                        \
    "j_each = Concat <axis=0> (j_frames, j_rows)\n"  \
    "j_k = Expand (j_keys, j_each)\n"                \
    "j_v = Expand (j_values, j_each)\n"              \
    "k_ = Concat <axis=1> (j_k, k_own)\n"            \
    "v_ = Concat <axis=1> (j_v, v_own)\n"            \
    "j_count = Gather (j_rows, j_axis)\n"            \
    "j_bits = Concat <axis=0> (j_frames, j_count)\n" \
    "j_true = Cast <to=9> (j_one)\n"                 \
    "j_seen = Expand (j_true, j_bits)\n"             \
    "mask = Concat <axis=1> (j_seen, mask_own)\n"
/* Which keys count for which queries: those of the mask, and if causal those in front and up to the query's own. */
#define MLO_ATTENTION_SEEN_BEHIND                 \
    "p64 = Cast <to=7> (p)\n"                     \
    "i0 = Constant <value_int=0> ()\n"            \
    "i1 = Constant <value_int=1> ()\n"            \
    "i2 = Constant <value_int=2> ()\n"            \
    "causal_ = Constant <value_int=@causal> ()\n" \
    "causal = Cast <to=9> (causal_)\n"            \
    "partly = Cast <to=9> (i1)\n"                 \
    "rows_ = Constant <value_int=@prefix> ()\n"   \
    "q_shape = Shape (q_)\n"                      \
    "k_shape = Shape (k_)\n"                      \
    "tq = Gather (q_shape, i1)\n"                 \
    "tk = Gather (k_shape, i1)\n"                 \
    "q_at = Range (i0, tq, i1)\n"                 \
    "k_at = Range (i0, tk, i1)\n"                 \
    "q_behind = Add (q_at, rows_)\n"              \
    "until = Unsqueeze <axes=[1]> (q_behind)\n"   \
    "behind = Less (until, k_at)\n"               \
    "outside = And (behind, causal)\n"            \
    "inside = Not (outside)\n"                    \
    "mask4 = Unsqueeze <axes=[1, 2]> (mask)\n"

static const char mlo_attention_prefix_function[] =
    "AttentionPrefix <to, lo, hi, heads, lt, prefix, kv_heads=0, causal=0, exp_bits=8> "
    "(q_, k_own, v_own, mask_own, p, keys, values) => (y)\n" MLO_ATTENTION_JOIN MLO_ATTENTION_SCORES
        MLO_ATTENTION_SEEN_BEHIND MLO_ATTENTION_SEEN_ALL "scores = MatMul (qh, kh)\n";
static const char mlo_attention_sink_function[] =
    "AttentionSink <to, lo, hi, heads, lt, prefix, kv_heads=0, causal=0, bias_shift=0, exp_bits=8> "
    "(q_, k_own, v_own, mask_own, p, bias, keys, values) => (y)\n" MLO_ATTENTION_JOIN
        MLO_ATTENTION_SCORES MLO_ATTENTION_SEEN_BEHIND "keys4 = And (mask4, inside)\n";
static const char mlo_attention_sink_ending[] = MLO_ATTENTION_BIAS MLO_ATTENTION_DISTANCE
    MLO_ATTENTION_COARSE MLO_ATTENTION_COUNT MLO_ATTENTION_NORMALISE
    "ed = Cast <to=11> (e)\n" MLO_ATTENTION_MIX;

/* The first of the two inputs that are rows. */
static size_t mlo_prefix_input(const mlo_node *n) { return mlo_attention_biased(n) ? 6 : 5; }

/* ---- evaluation ---------------------------------------------------------------- */

/* Do the rows' forms fit to what they lie in front of? */
static int mlo_prefix_forms(
    mlo *m, const mlo_node *n, const mlo_form *rows, const mlo_form *own, const char *what) {
    const int64_t prefix = mlo_attention_ahead(n);
    if (prefix < 1) return mlo_fail(m, MLO_E_DATA, n, "prefix %lld is below 1", (long long)prefix);
    if (rows->rank != 2 || rows->dtype != own->dtype)
        return mlo_fail(m, MLO_E_TYPE, n, "rows of %s must be %s [rows, channels]", what,
            mlo_dtype_name(own->dtype));
    if (rows->dims[0] == prefix && rows->dims[1] == mlo_last_dim(own)) return 0;
    return mlo_fail(m, MLO_E_SHAPE, n,
        "rows of %s are [%lld, %lld]; prefix and channels are %lld and %lld", what,
        (long long)rows->dims[0], (long long)rows->dims[1], (long long)prefix,
        (long long)mlo_last_dim(own));
}

/* Rows in front of each frame's tokens; bits that are true in front of a mask. NULL: failed. */
static mlo_array *mlo_prefix_join(
    mlo *m, const mlo_array *rows, const mlo_array *own, int64_t prefix) {
    const int64_t width = own->rank == 3 ? own->dims[2] : 1, tokens = prefix + own->dims[1];
    const int64_t dims[] = { own->dims[0], tokens, width };
    mlo_array *a = mlo_array_new(m, own->dtype, own->rank, dims);
    for (int64_t f = 0; a && f < own->dims[0]; f++)
        for (int64_t i = 0; i < tokens * width; i++) {
            const int64_t at = i - prefix * width;
            const int64_t x = at >= 0 ? mlo_get(own, f * own->dims[1] * width + at)
                : rows                ? mlo_get(rows, i)
                                      : 1;
            mlo_set_element(a, f * tokens * width + i, x);
        }
    return a;
}

/* The attention of the operands with their rows in front. */
static int mlo_attention_prefix_run(mlo_call *c) {
    mlo *m = c->m;
    const size_t first = mlo_prefix_input(c->node);
    const int64_t prefix = mlo_attention_ahead(c->node);
    if (mlo_kernel_inputs(c, first + 2) || mlo_attention_forms(c)) return mlo_failed(m);
    for (size_t k = 0; k < 2; k++) {
        const mlo_form rows = mlo_array_form(c->in[first + k]), own = mlo_array_form(c->in[1 + k]);
        MLO_TRY(mlo_prefix_forms(m, c->node, &rows, &own, k ? "values" : "keys"));
    }
    const mlo_array *in[6] = { c->in[0], NULL, NULL, NULL, c->in[4], c->in[5] };
    mlo_array *joined[3];
    for (size_t k = 0; k < 3; k++)
        in[1 + k] = joined[k] = mlo_prefix_join(
            m, k < 2 ? c->in[first + k] : NULL, c->in[1 + k], prefix);
    mlo_call whole = *c;
    whole.in = in;
    whole.n_in = first;
    if (joined[0] && joined[1] && joined[2]) mlo_attention_run(&whole);
    for (size_t k = 0; k < 3; k++) mlo_array_free(m, joined[k]);
    return mlo_failed(m);
}

/* ---- hardware ------------------------------------------------------------------ */

/* A bias is of heads and keys: all queries have the same. */
static int mlo_sink_form(const mlo_site *s) {
    const mlo_form *f = &s->in[5];
    if (!mlo_attention_biased(s->node) || (f->rank == 3 && f->dims[1] == 1)) return 0;
    return mlo_fail(s->m, MLO_E_SHAPE, s->node,
        "a bias of shape %s beside rows in front of keys; all queries are to have the same",
        mlo_dims_text(s->m, f->rank, f->dims));
}

static int mlo_attention_prefix_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const size_t first = mlo_prefix_input(s->node);
    const int64_t rows = mlo_attention_ahead(s->node), width = mlo_last_dim(&s->in[1]);
    if (s->caches || s->past)
        return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node,
            "keys and values that stay, for an attention with rows in front of each frame's; leave "
            "--context out");
    for (size_t k = 0; k < 2; k++)
        MLO_TRY(mlo_prefix_forms(
            s->m, s->node, &s->in[first + k], &s->in[1 + k], k ? "values" : "keys"));
    if (mlo_sink_form(s) || mlo_attention_unit(s, pe, simd, u)) return mlo_failed(s->m);
    u->module = "mlo_attention_prefix";
    mlo_unit_memory(u, "s_axis_kp", simd * s->in_bits[1], rows * width / simd);
    mlo_unit_memory(u, "s_axis_vp", simd * s->in_bits[2], rows * width / simd);
    mlo_unit_param(u, "P", rows);
    u->told = MLO_JOB_UNTOLD;
    return 0;
}

/* Those of attention, which is an instance of this module. */
static void mlo_attention_prefix_intermediates(
    const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    const int before = l->n;
    mlo_attention_intermediates(s, u, l);
    for (int i = before; i < l->n; i++)
        if (l->item[i].reg) l->item[i].reg = mlo_format(s->m, "u_attention.%s", l->item[i].reg);
}

/* A counter, a multiplexer and its register in front of keys and of values, and the rows. */
static void mlo_attention_prefix_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    enum { CONTROL_LUTS = 16, CONTROL_FFS = 8 };
    mlo_attention_area(s, u, axi, banks, a);
    for (int k = 1; k < 3; k++) {
        const int64_t bits = u->memory[k].width, words = u->memory[k].depth;
        mlo_area_param(a, bits, bits, words, axi, banks);
        mlo_area_skid(a, bits + 3);
        a->lut += bits + CONTROL_LUTS + 2 * mlo_clog2(words);
        a->ff += bits + CONTROL_FFS + 2 * mlo_clog2(words);
    }
}

static void mlo_attention_prefix_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    if (!k) {
        mlo_attention_pack(s, u, k, word, in, bits);
        return;
    }
    const mlo_array *rows = in[mlo_prefix_input(s->node) + (size_t)k - 1];
    for (int64_t i = 0; i < u->simd; i++)
        mlo_put_bits(
            bits, s->in_bits[k] * i, s->in_bits[k], (uint64_t)mlo_get(rows, word * u->simd + i));
}

/* ---- the cards -------------------------------------------------------------- */

#define MLO_ATTENTION_PREFIX_CARD                                                           \
    .pe_axis = "keys", .simd_axis = "head channels", .legal = mlo_attention_legal,          \
    .ahead = mlo_attention_ahead, .unit = mlo_attention_prefix_unit,                        \
    .intermediates = mlo_attention_prefix_intermediates, .area = mlo_attention_prefix_area, \
    .pack = mlo_attention_prefix_pack

static const mlo_kernel mlo_attention_prefix_kernel = {
    .op = { "mlo.AttentionPrefix", mlo_kernel_same_shape, mlo_attention_prefix_run, 7 },
    .kind = MLO_KERNEL_ATTENTION,
    .series = "attention",
    .function = mlo_attention_prefix_function,
    .ending = mlo_attention_ending,
    .limits = mlo_attention_limits,
    MLO_ATTENTION_PREFIX_CARD,
};

static const mlo_kernel mlo_attention_sink_kernel = {
    .op = { "mlo.AttentionSink", mlo_kernel_same_shape, mlo_attention_prefix_run, 8 },
    .kind = MLO_KERNEL_ATTENTION,
    .series = "attention",
    .function = mlo_attention_sink_function,
    .ending = mlo_attention_sink_ending,
    .limits = mlo_attention_limits,
    MLO_ATTENTION_PREFIX_CARD,
};
