/* calls: the kernels that a layer uses, and the layer: a call of one after the other.
 *
 * in:  the body, its parameters.
 * out: model.c: the text of each kernel (share/c) once for each combination of widths, and the layer.
 *
 * invariant: a kernel's arithmetic is in src/exact (exact.h), its loops in share/c; here are names, places, sizes.
 * example: mlo_add_16_16_16((int16_t *)(a + 0) + 0, 128, (int16_t *)(a + 8192) + 0, 128, .., n, 128, p->add_0_p, ..);
 */
/* What files have of the model as a whole (whole_write.c); NULL: nothing. */
typedef struct {
    const char *header; /* of model.h */
    const char *test; /* of test.c */
    const char *signature;
    int (*weights)(void *writer); /* of weights.c, or weights.bin */
    int64_t weights_bytes;
    int64_t bytes; /* of its arena */
    int64_t numbers; /* that the test compares */
    void *writer;
} mlo_c_more;

typedef struct {
    mlo_emitter *e;
    mlo_c_body *b;
    const mlo_c_params *params;
    const mlo_c_narrow *narrow;
    mlo_map told; /* kernels whose text is there */
    mlo_c_more whole;
    int blocked; /* 1: what is written now is called for a block: `rows` tokens from r on */
} mlo_c_writer;

static int64_t mlo_c_row(mlo_c_writer *w, const char *name) {
    const mlo_c_value *v = mlo_c_value_of(w->b, name);
    return v ? v->row : 0;
}

/* Where an operand's first token is, that of the frame; */
static const char *mlo_c_first(mlo_c_writer *w, const char *name) {
    mlo *m = w->e->m;
    const mlo_c_value *v = mlo_c_value_of(w->b, name);
    if (!v) {
        mlo_fail_at(m, MLO_E_UNSUPPORTED, name, "is no value of the layer that C has");
        return "";
    }
    if (v->place == MLO_C_OUTSIDE) return "memory";
    return mlo_or_empty(mlo_format(m, "(%s *)(a + %lld) + %lld", mlo_c_type(v->dtype),
        (long long)w->b->plan.place[v->place].at, (long long)v->at));
}
/* that of the block, in a place that has all tokens of the frame. */
static const char *mlo_c_pointer(mlo_c_writer *w, const char *name) {
    const mlo_c_value *v = mlo_c_value_of(w->b, name);
    const char *first = mlo_c_first(w, name);
    if (!w->blocked || !v || v->place == MLO_C_OUTSIDE || w->b->few[v->place]) return first;
    return mlo_or_empty(mlo_format(w->e->m, "%s + r * %lld", first, (long long)v->row));
}
/* An operand or the result: "pointer, row". */
static const char *mlo_c_stream(mlo_c_writer *w, const char *name) {
    return mlo_format(w->e->m, "%s, %lld", mlo_c_pointer(w, name), (long long)mlo_c_row(w, name));
}

/* What lines in front of it begin with. */
static const char *mlo_c_margin(const mlo_c_writer *w) { return w->blocked ? "        " : "    "; }

/* A parameter; NULL in C where there is none. */
static const char *mlo_c_parameter(mlo_c_writer *w, const mlo_element *el, int k) {
    const mlo_c_param *p = mlo_c_param_of(w->params, el, k);
    return p ? mlo_format(w->e->m, p->common ? "model_common.%s" : "p->%s", p->name) : "NULL";
}
/* Parameters from .. to, each with a comma behind it. */
static const char *mlo_c_parameters(mlo_c_writer *w, const mlo_element *el, int from, int to) {
    const char *all = "";
    for (int k = from; k <= to; k++)
        all = mlo_or_empty(mlo_format(w->e->m, "%s%s, ", all, mlo_c_parameter(w, el, k)));
    return all;
}

/* ---- the kernels' texts --------------------------------------------------------- */

/* The text of share/c that has a kernel's loops; NULL: there is none. */
static const char *mlo_c_text(const mlo_kernel *k) {
    switch (k->kind) {
    case MLO_KERNEL_MATRIX: return "c/mvu.c";
    case MLO_KERNEL_WINDOW: return "c/conv.c";
    case MLO_KERNEL_SUM: return "c/add.c";
    case MLO_KERNEL_PRODUCT: return "c/mul.c";
    case MLO_KERNEL_NORM: return "c/layernorm.c";
    case MLO_KERNEL_FRAME_NORM: return "c/framenorm.c";
    case MLO_KERNEL_EXACT_NORM: return "c/exactnorm.c";
    case MLO_KERNEL_ATTENTION:
        return k == &mlo_attention_table_kernel ? "c/attention_table.c" : "c/attention.c";
    case MLO_KERNEL_RESCALE: return "c/requant.c";
    case MLO_KERNEL_ROTATION: return "c/rotary.c";
    case MLO_KERNEL_PLACE: return "c/place.c";
    default: return NULL;
    }
}

/* The widths of its operands that are streams, and of its result, in bits as C has them. */
typedef struct {
    int in[3];
    int out;
} mlo_c_widths;

static mlo_c_widths mlo_c_widths_of(const mlo_element *el) {
    mlo_c_widths w = { { 0, 0, 0 }, mlo_bits_of(el->site.out.dtype) };
    for (int k = 0; k < el->unit.n_in && k < 3; k++)
        w.in[k] = mlo_bits_of(el->site.in[el->unit.in[k].index].dtype);
    return w;
}

/* Products that a sum of 32 bits holds: of 8 by 8 bits 65536, of 8 by 16 bits 256. */
enum { MLO_C_NARROW = 65536, MLO_C_MIXED = 256, MLO_C_WIDE = 32768 };

/* Does a sum of weights (windows: products; attention: 8 or 12 bits by values) fit 32 bits? */
static int mlo_c_sum_fits(const mlo_element *el, const mlo_c_widths *w) {
    if (el->kernel->kind == MLO_KERNEL_WINDOW)
        return el->site.in[1].dims[1] * el->site.in[1].dims[2]
            <= (w->in[0] == 8 ? MLO_C_NARROW : MLO_C_MIXED);
    const int finer = mlo_attention_tabled(el->node) ? 0 : mlo_attention_weight_bits(el->node) - 9;
    return el->site.keys <= (w->in[2] == 8 ? MLO_C_WIDE : MLO_C_MIXED / 2) >> finer;
}

/* The `part` of an element's requantization, of an attention's scores; 0: that takes 64 bits, or there is none. */
static int mlo_c_part_of(const mlo_c_writer *w, const mlo_element *el) {
    return w->narrow->part[el - w->e->c->element];
}

/* Does an element have sums of 64 bits? */
static int mlo_c_is_long(const mlo_c_writer *w, const mlo_element *el, const mlo_c_widths *bits) {
    switch (el->kernel->kind) {
    case MLO_KERNEL_MATRIX:
    case MLO_KERNEL_RESCALE: return !mlo_c_part_of(w, el);
    case MLO_KERNEL_WINDOW:
    case MLO_KERNEL_ATTENTION: return !mlo_c_sum_fits(el, bits);
    default: return 0;
    }
}

/* Has an attention scores of 64 bits? */
static int mlo_c_is_wide(const mlo_c_writer *w, const mlo_element *el) {
    return el->kernel->kind == MLO_KERNEL_ATTENTION && !mlo_c_part_of(w, el);
}

/* "mlo_mvu_8_16": the kernel at its widths. */
static const char *mlo_c_name(const mlo_c_writer *writer, const mlo_element *el) {
    mlo *m = writer->e->m;
    const mlo_c_widths w = mlo_c_widths_of(el);
    const char *text = mlo_c_text(el->kernel) + 2;
    const char *name = mlo_format(m, "mlo_%.*s", (int)strlen(text) - 2, text);
    for (int k = 0; k < 3 && w.in[k]; k++) name = mlo_format(m, "%s_%d", name, w.in[k]);
    name = mlo_format(m, "%s_%d", name, w.out);
    if (mlo_c_is_long(writer, el, &w)) name = mlo_format(m, "%s_long", name);
    return mlo_c_is_wide(writer, el) ? mlo_format(m, "%s_wide", name) : name;
}

static const char *mlo_c_width_type(int bits) { return bits == 8 ? "int8_t" : "int16_t"; }

/* The most keys that an attention of the layer has. */
static int64_t mlo_c_most_keys(const mlo_core *c) {
    int64_t most = 1;
    for (int i = 0; i < c->n_element; i++)
        if (mlo_is_kernel(c->element[i].node, MLO_KERNEL_ATTENTION))
            most = mlo_max(most, c->element[i].site.keys);
    return most;
}

/* A kernel's text, once. */
static int mlo_c_kernel(mlo_c_writer *w, const mlo_element *el) {
    mlo *m = w->e->m;
    const mlo_c_widths bits = mlo_c_widths_of(el);
    const char *name = mlo_intern(m, mlo_c_name(w, el));
    const int mixed = el->kernel->kind == MLO_KERNEL_ATTENTION ? bits.in[0] + bits.in[1]
                                                               : 8 + bits.in[0];
    const int few = mixed == 24
        || el->kernel->kind == MLO_KERNEL_MATRIX; /* a matrix has them wide */
    const int longer = mlo_c_is_long(w, el, &bits), wide = mlo_c_is_wide(w, el);
    const mlo_hole holes[] = { { "NAME", mlo_format(m, "%s", name), NULL },
        { "X", mlo_format(m, "%s", mlo_c_width_type(bits.in[0])), NULL },
        { "Z", mlo_format(m, "%s", mlo_c_width_type(bits.in[1])), NULL },
        { "W", mlo_format(m, "%s", mlo_c_width_type(bits.in[2])), NULL },
        { "Y", mlo_format(m, "%s", mlo_c_width_type(bits.out)), NULL },
        { "SUM", longer ? "int64_t" : "int32_t", NULL },
        { "REQUANTIZE", longer ? "mlo_requantize" : "mlo_requantize_narrow", NULL },
        { "PART", longer ? "" : "part, ", NULL }, { "PARTIS", longer ? "" : "int part, ", NULL },
        { "E", wide ? "int64_t" : "int32_t", NULL },
        { "KEYS", mlo_integer(m, mlo_c_most_keys(w->e->c)), NULL },
        { "NEVER", wide ? "MLO_NEVER" : "MLO_NEVER_NARROW", NULL },
        { "WEIGH", wide ? "mlo_softmax_weigh" : "mlo_softmax_weigh_narrow", NULL },
        { "SCORES", wide ? "" : "a->part, ", NULL },
        { "PRODUCT", wide && mixed == 32 ? "int64_t" : "int32_t", NULL },
        { "BLOCK", mlo_integer(m, few ? MLO_C_MIXED : MLO_C_NARROW), NULL }, { NULL, NULL, NULL } };
    (void)mlo_softmax_weigh_narrow; /* emitted C calls it, the library does not */
    if (!name || mlo_map_get(&w->told, name)) return mlo_failed(m);
    MLO_TRY(mlo_map_put(m, &w->told, name, w));
    mlo_line(w->e, "\n#ifndef %s", name);
    if (el->kernel->kind == MLO_KERNEL_ATTENTION)
        MLO_TRY(mlo_share_copy(&w->e->t, "c/mix.c", holes, w));
    MLO_TRY(mlo_share_copy(&w->e->t, mlo_c_text(el->kernel), holes, w));
    mlo_line(w->e, "#endif");
    return 0;
}

/* What kernels are told by. */
static void mlo_c_types(void *user) {
    mlo_c_writer *w = (mlo_c_writer *)user;
    static const mlo_hole none[] = { { NULL, NULL, NULL } };
    int heads = 0, joins = 0;
    for (int i = 0; i < w->e->c->n_element; i++) {
        heads |= mlo_is_kernel(w->e->c->element[i].node, MLO_KERNEL_ATTENTION);
        joins |= mlo_element_ahead(&w->e->c->element[i]) > 0;
    }
    if (heads) mlo_share_copy(&w->e->t, "c/heads.c", none, w);
    if (joins) mlo_share_copy(&w->e->t, "c/join.c", none, w);
}

/* Those that the layer calls. */
static void mlo_c_kernels(void *user) {
    mlo_c_writer *w = (mlo_c_writer *)user;
    for (int i = 0; i < w->e->c->n_element && !w->e->m->error.code; i++) {
        const mlo_element *el = &w->e->c->element[i];
        if (el->kernel && el->kernel->kind != MLO_KERNEL_REPLAY) mlo_c_kernel(w, el);
    }
}

/* ---- the layer -------------------------------------------------------------------- */

/* Keys and values of a decoder's earlier tokens are the caller's: new ones go there first. */
static void mlo_c_keep(mlo_c_writer *w, const mlo_element *el, int k) {
    static const char *const kinds[] = { "q", "k", "v" };
    mlo_line(w->e, "    memcpy(cache->%s_%s[l][at], %s, sizeof cache->%s_%s[l][at]);", el->name,
        kinds[k], mlo_c_pointer(w, el->node->input[k]), el->name, kinds[k]);
}

static const char *mlo_c_mask(mlo_c_writer *w, const mlo_element *el) {
    if (!mlo_c_is_stream(w->e->c, el, 3)) return mlo_c_parameter(w, el, 3);
    return mlo_eq(el->node->input[3], mlo_memory_mask) ? "memory_mask"
        : w->e->c->slots                               ? "cache->mask"
                                                       : "mask";
}

/* Keys and values, and the mask, with an attention's rows in front of them, in its scratch. */
typedef struct {
    int64_t at[3]; /* bytes into the arena: keys, values, mask */
    const char *tokens; /* of the frame's own, in C */
} mlo_c_joined;

static mlo_c_joined mlo_c_joined_of(const mlo_element *el, int64_t scratch) {
    mlo_c_joined j = { { 0, 0, 0 }, el->crossed ? "memory_tokens" : "n" };
    int64_t at = scratch + 8 * el->site.keys;
    for (int k = 0; k < 3; k++) {
        j.at[k] = at;
        if (k < 2) at += mlo_c_join_bytes(el, k);
    }
    return j;
}

static void mlo_c_join(mlo_c_writer *w, const mlo_element *el, const mlo_c_joined *j) {
    const char *const *in = (const char *const *)el->node->input;
    const int64_t ahead = mlo_element_ahead(el), first = (int64_t)mlo_prefix_input(el->node);
    const char *mask = mlo_c_mask(w, el), *margin = mlo_c_margin(w);
    for (int k = 0; k < 2; k++) {
        const int64_t size = (int64_t)mlo_dtype_size(el->site.in[1 + k].dtype);
        const int64_t width = mlo_last_dim(&el->site.in[1 + k]) * size;
        mlo_line(w->e, "%smlo_join(%s, %lld, %s, %s, %lld, %lld, a + %lld);", margin,
            mlo_c_parameter(w, el, (int)first + k), (long long)(ahead * width),
            mlo_c_first(w, in[1 + k]), j->tokens, (long long)(mlo_c_row(w, in[1 + k]) * size),
            (long long)width, (long long)j->at[k]);
    }
    if (mlo_eq(mask, "NULL")) return;
    mlo_line(w->e, "%smemset(a + %lld, 1, %lld);", margin, (long long)j->at[2], (long long)ahead);
    mlo_line(w->e, "%smemcpy(a + %lld, %s, (size_t)%s);", margin, (long long)(j->at[2] + ahead),
        mask, j->tokens);
}

/* An operand of attention: the joined one, where there is one. */
static const char *mlo_c_keys(
    mlo_c_writer *w, const mlo_element *el, const mlo_c_joined *j, int k) {
    return mlo_element_ahead(el) ? mlo_format(w->e->m, "(%s *)(a + %lld)",
                                       mlo_c_type(el->site.in[k].dtype), (long long)j->at[k - 1])
                                 : mlo_c_first(w, el->node->input[k]);
}

/* Does the layer call a kernel for an element? As the how many-th? */
static int mlo_c_is_call(const mlo_element *el) {
    return el->kernel && el->kernel->kind != MLO_KERNEL_REPLAY;
}
static int mlo_c_step_number(const mlo_c_writer *w, int i) {
    int n = 0;
    for (int k = 0; k < i; k++) n += mlo_c_is_call(&w->b->core->element[k]);
    return n;
}

static void mlo_c_attention(mlo_c_writer *w, int i) {
    mlo *m = w->e->m;
    const mlo_element *el = &w->b->core->element[i];
    const mlo_node *n = el->node;
    const int kept = w->e->c->slots > 0, biased = mlo_attention_biased(n);
    const int64_t d = mlo_last_dim(&el->site.in[0]) / mlo_attention_heads(n);
    const char *const *in = (const char *const *)n->input;
    const char *p = mlo_c_parameter(w, el, 4), *margin = mlo_c_margin(w);
    const int64_t scratch = w->b->plan.place[w->b->scratch[i]].at;
    const int64_t ahead = mlo_element_ahead(el);
    const mlo_c_joined joined = mlo_c_joined_of(el, scratch);
    const int packed = kept || ahead; /* keys and values lie one behind the other */
    const char *mask = mlo_c_mask(w, el);
    if (ahead && !mlo_eq(mask, "NULL")) mask = mlo_format(m, "a + %lld", (long long)joined.at[2]);
    if (kept) mlo_c_keep(w, el, 1);
    if (kept) mlo_c_keep(w, el, 2);
    if (ahead) mlo_c_join(w, el, &joined);
    mlo_line(w->e, "%sconst mlo_heads %s = {", margin, el->name);
    mlo_line(w->e,
        "%s    .start = %s, .tokens = %s, .keys = %s, .heads = %lld, .kv_heads = %lld, .d = %lld,",
        margin,
        kept             ? "at"
            : ahead      ? mlo_format(m, w->blocked ? "%lld + r" : "%lld", (long long)ahead)
            : w->blocked ? "r"
                         : "0",
        w->blocked ? "rows" : "n",
        kept        ? "at + n"
            : ahead ? mlo_format(m, "%lld + %s", (long long)ahead, joined.tokens)
                    : joined.tokens,
        (long long)mlo_attention_heads(n), (long long)mlo_attention_kv_heads(n), (long long)d);
    mlo_line(w->e,
        "%s    .q_row = %lld, .k_row = %lld, .v_row = %lld, .y_row = %lld, .causal = %d,", margin,
        (long long)mlo_c_row(w, in[0]),
        (long long)(packed ? mlo_last_dim(&el->site.in[1]) : mlo_c_row(w, in[1])),
        (long long)(packed ? mlo_last_dim(&el->site.in[2]) : mlo_c_row(w, in[2])),
        (long long)mlo_c_row(w, n->output[0]), mlo_attention_causal(n));
    if (mlo_attention_banded(n))
        mlo_line(w->e, "%s    .reach = %s + %d,", margin, p, mlo_attention_constants(n));
    mlo_line(w->e, "%s    .mask = %s,", margin, mask);
    if (biased)
        mlo_line(w->e,
            "%s    .bias = %s, .bias_heads = %lld, .bias_rows = %lld, .bias_keys = %lld, "
            ".bias_shift = %lld,",
            margin, mlo_c_parameter(w, el, 5), (long long)el->site.in[5].dims[0],
            (long long)el->site.in[5].dims[1], (long long)el->site.in[5].dims[2],
            (long long)mlo_attention_shift(n));
    const mlo_row_rounding r = mlo_attention_rounding(n, NULL);
    if (mlo_attention_tabled(n))
        mlo_line(w->e, "%s    .tables = { .p = %s, .score = %s, .weight = %s, .hide = %d },",
            margin, p, mlo_c_parameter(w, el, 5), mlo_c_parameter(w, el, 6), mlo_table_hides(n));
    else
        mlo_line(w->e,
            "%s    .round = { .p = %s, .lt = %d, .probs = %d, .rounded = %d, .capped = %d, .all = "
            "%d, .bits = %d }, .part = %d,",
            margin, p, r.lt, r.probs, r.rounded, r.capped, r.all, r.bits, mlo_c_part_of(w, el));
    mlo_line(w->e, "%s    .lo = %lld, .hi = %lld };", margin, (long long)mlo_kernel_low(n),
        (long long)mlo_kernel_high(n));
    mlo_line(w->e,
        "%sMODEL_STEP(%d, %s(&%s, %s, %s, %s, %s, (void *)(a + %lld), (void *)(a + %lld)));",
        margin, mlo_c_step_number(w, i), mlo_c_name(w, el), el->name, mlo_c_pointer(w, in[0]),
        kept ? mlo_format(m, "cache->%s_k[l][0]", el->name) : mlo_c_keys(w, el, &joined, 1),
        kept ? mlo_format(m, "cache->%s_v[l][0]", el->name) : mlo_c_keys(w, el, &joined, 2),
        mlo_c_pointer(w, n->output[0]), (long long)scratch,
        (long long)(scratch + mlo_c_scratch(w->b, el) - 8 * d));
}

/* A table by position: its rows from the first token's on. */
static const char *mlo_c_rows(mlo_c_writer *w, const mlo_element *el) {
    const long long row = (long long)mlo_last_dim(&el->site.in[1]);
    const char *table = mlo_c_parameter(w, el, 1);
    const char *from = w->e->c->slots ? "at" : w->blocked ? "r" : NULL;
    return from ? mlo_format(w->e->m, "%s + %s * %lld", table, from, row) : table;
}

/* The `part` as an argument, where there is one. */
static const char *mlo_c_part_given(mlo_c_writer *w, const mlo_element *el) {
    const int part = mlo_c_part_of(w, el);
    return part ? mlo_format(w->e->m, "%d, ", part) : "";
}

/* What stands between a kernel's sizes and its bounds. */
static const char *mlo_c_arguments(mlo_c_writer *w, const mlo_element *el) {
    mlo *m = w->e->m;
    const mlo_node *n = el->node;
    const int64_t channels = mlo_last_dim(&el->site.out);
    mlo_pane v;
    switch (el->kernel->kind) {
    case MLO_KERNEL_MATRIX:
        return mlo_format(m, "%lld, %lld, %s%s", (long long)el->site.in[1].dims[0],
            (long long)el->site.in[1].dims[1], mlo_c_parameters(w, el, 1, 5),
            mlo_c_part_given(w, el));
    case MLO_KERNEL_RESCALE:
        return mlo_format(m, "%lld, %s%s", (long long)channels, mlo_c_parameters(w, el, 1, 4),
            mlo_c_part_given(w, el));
    case MLO_KERNEL_NORM:
        return mlo_format(m, "%lld, %lld, %lld, %lld, %s",
            (long long)(channels / mlo_norm_groups(n)), (long long)mlo_norm_groups(n),
            (long long)(mlo_norm_own(&el->site.in[1]) ? channels / mlo_norm_groups(n) : 0),
            (long long)mlo_int(n, "center", 1), mlo_c_parameters(w, el, 1, 3));
    case MLO_KERNEL_FRAME_NORM:
    case MLO_KERNEL_EXACT_NORM:
        return mlo_format(m, "%lld, %lld, %s", (long long)channels,
            (long long)mlo_int(n, "center", 1), mlo_c_parameters(w, el, 1, 3));
    case MLO_KERNEL_ROTATION:
        return mlo_format(m, "%lld, %lld, %s, %s", (long long)channels,
            (long long)mlo_last_dim(&el->site.in[1]), mlo_c_rows(w, el),
            mlo_c_parameters(w, el, 2, 2));
    case MLO_KERNEL_PLACE:
        return mlo_format(m, "%lld, %s, %s", (long long)channels, mlo_c_rows(w, el),
            mlo_c_parameters(w, el, 2, 3));
    case MLO_KERNEL_WINDOW:
        if (!mlo_site_pane(&el->site, &v)) return "";
        return mlo_format(m, "%lld, %lld, %lld, %lld, %lld, %lld, %lld, %s", (long long)channels,
            (long long)v.kh, (long long)v.kw, (long long)v.width, (long long)v.top,
            (long long)v.left, (long long)v.edges, mlo_c_parameters(w, el, 1, 4));
    default: return mlo_format(m, "%lld, %s", (long long)channels, mlo_c_parameters(w, el, 2, 2));
    }
}

static void mlo_c_call(mlo_c_writer *w, int i) {
    const mlo_element *el = &w->b->core->element[i];
    mlo *m = w->e->m;
    if (!mlo_c_is_call(el)) return;
    if (el->kernel->kind == MLO_KERNEL_ATTENTION) {
        mlo_c_attention(w, i);
        return;
    }
    const char *streams = "";
    for (int k = 0; k < el->unit.n_in; k++)
        streams = mlo_format(
            m, "%s%s, ", streams, mlo_c_stream(w, el->node->input[el->unit.in[k].index]));
    mlo_printf(&w->e->t, "%sMODEL_STEP(%d, %s(%s%s, %s,\n%s    %s%lld, %lld", mlo_c_margin(w),
        mlo_c_step_number(w, i), mlo_c_name(w, el), streams, mlo_c_stream(w, el->node->output[0]),
        el->side         ? "memory_tokens"
            : w->blocked ? "rows"
                         : "n",
        mlo_c_margin(w), mlo_c_arguments(w, el), (long long)mlo_kernel_low(el->node),
        (long long)mlo_kernel_high(el->node));
    if (w->b->scratch[i] != MLO_C_OUTSIDE)
        mlo_printf(
            &w->e->t, ", (void *)(a + %lld)", (long long)w->b->plan.place[w->b->scratch[i]].at);
    mlo_puts(&w->e->t, "));\n");
}

/* The names of all calls, for a profile. */
static void mlo_c_steps(void *user) {
    mlo_c_writer *w = (mlo_c_writer *)user;
    for (int i = 0; i < w->b->core->n_element; i++) {
        const mlo_element *el = &w->b->core->element[i];
        if (mlo_c_is_call(el))
            mlo_line(w->e, "    { \"%s\", \"%s\", 0, 0 },", el->name, mlo_c_name(w, el));
    }
}

/* A chain of calls: for all tokens, or for a block of them after the other. */
static void mlo_c_chain(mlo_c_writer *w, int chain) {
    const mlo_c_blocks *k = &w->b->blocks;
    const long long rows = (long long)k->rows[chain];
    w->blocked = mlo_c_blocked(w->b, chain);
    if (w->blocked)
        mlo_line(w->e,
            "    for (int r = 0; r < n; r += %lld) {\n        const int rows = n - r < %lld ? n - "
            "r : %lld;",
            rows, rows, rows);
    for (int i = k->first[chain]; i <= k->last[chain] && !w->e->m->error.code; i++)
        mlo_c_call(w, i);
    if (w->blocked) mlo_line(w->e, "    }");
    w->blocked = 0;
}

static void mlo_c_layer(void *user) {
    mlo_c_writer *w = (mlo_c_writer *)user;
    const mlo_c_body *b = w->b;
    for (int k = 0; k < b->blocks.n && !w->e->m->error.code; k++) mlo_c_chain(w, k);
    if (!b->copied) return;
    const mlo_c_value *out = mlo_c_value_of(w->b, b->core->scan.body->output[0]->name);
    mlo_line(w->e, "    memcpy(a + %lld, a + %lld, (size_t)n * %lld);",
        (long long)b->plan.place[0].at, (long long)b->plan.place[out->place].at,
        (long long)(out->channels * (int64_t)mlo_dtype_size(out->dtype)));
}
