/* expand_attention: attention and rotary embedding, as operators of ONNX, of ONNX Runtime and of its
 * tools write them, in standard operators.
 *
 * in, out, invariant: those of expand.c, whose table names what is here.
 * example: Attention(x, weights, bias) becomes a Split of its weights, a product and a sum for each of
 *     q, k and v, heads apart, MatMul, Mul, Softmax, MatMul, heads together.
 * cost: some twenty nodes for an attention.
 */

/* ---- attention ------------------------------------------------------------ */

typedef struct {
    const char *q;
    const char *k;
    const char *v;
    int64_t heads;
    double scale;
    size_t mask; /* which input it is */
    size_t bias; /* which input it is */
    int causal; /* 1: a query sees no later key */
    int64_t window; /* tokens before itself that a query of a causal one sees, -1: without end */
} mlo_x_attention;
enum { MLO_X_NONE = 0xffff }; /* no input */

/* [B, S, heads x C] -> [B, heads, S, C] */
static const char *mlo_x_heads(mlo_expansion *x, const char *v, int64_t heads) {
    const int64_t shape[] = { 0, 0, heads, -1 }, perm[] = { 0, 2, 1, 3 };
    v = mlo_x_reshape(x, v, shape, 4);
    return mlo_x_transpose(x, v, perm, 4);
}
/* ... and back */
static const char *mlo_x_joined(mlo_expansion *x, const char *v) {
    const int64_t shape[] = { 0, 0, -1 }, perm[] = { 0, 2, 1, 3 };
    v = mlo_x_transpose(x, v, perm, 4);
    return mlo_x_reshape(x, v, shape, 3);
}

/* What keys that a mask closes get added: mask_filter_value; what later keys get: the lowest
 * number of the type. */
static double mlo_x_closed(const mlo_expansion *x) {
    return (double)mlo_float(x->n, "mask_filter_value", -10000.0f);
}
static double mlo_x_lowest(const mlo_expansion *x) {
    return x->dtype == MLO_FLOAT16 ? -65504
        : x->dtype == MLO_BFLOAT16 ? -3.3895313892515355e38
        : x->dtype == MLO_DOUBLE   ? -DBL_MAX
                                   : (double)-FLT_MAX;
}
/* 0 where `open`, `closed` elsewhere. */
static const char *mlo_x_filter(mlo_expansion *x, const char *open, double closed) {
    const char *zero = mlo_x_number(x, 0), *low = mlo_x_number(x, closed);
    return MLO_X(x, "Where", open, zero, low);
}

/* One size of a value as a scalar. */
static const char *mlo_x_size(mlo_expansion *x, const char *shape, int64_t axis) {
    const char *at = mlo_x_whole(x, axis);
    return MLO_X(x, "Gather", shape, at);
}
/* 0, 1, .. up to a size. */
static const char *mlo_x_range(mlo_expansion *x, const char *size) {
    const char *from = mlo_x_whole(x, 0), *step = mlo_x_whole(x, 1);
    return MLO_X(x, "Range", from, size, step);
}

/* [S, T]: may query s see key t? The last query sees the last key, and each of them so many before its
 * own place (-1: all). */
static const char *mlo_x_causal(mlo_expansion *x, const char *scores, int64_t window) {
    const int64_t column[] = { -1, 1 };
    const char *shape = MLO_X(x, "Shape", scores);
    const char *s = mlo_x_size(x, shape, 2);
    const char *t = mlo_x_size(x, shape, 3);
    const char *open;
    const char *past = MLO_X(x, "Sub", t, s);
    const char *rows = mlo_x_range(x, s);
    const char *columns = mlo_x_range(x, t);
    rows = MLO_X(x, "Add", rows, past);
    rows = mlo_x_reshape(x, rows, column, 2);
    open = MLO_X(x, "Greater", columns, rows);
    open = MLO_X(x, "Not", open);
    if (window < 0) return open;
    past = mlo_x_whole(x, window);
    rows = MLO_X(x, "Sub", rows, past);
    columns = MLO_X(x, "Greater", columns, rows);
    return MLO_X(x, "And", open, columns);
}

/* The key mask as what is added to scores, by its rank: [B] lengths, [2B] ends then starts, [B, T]
 * or [B, S, T] ones and zeros. */
static const char *mlo_x_mask(mlo_expansion *x, const char *scores, size_t i) {
    static const int64_t over_heads_and_queries[] = { 1, 2 };
    static const int64_t over_heads[] = { 1 };
    static const int64_t per_batch[] = { -1, 1, 1, 1 };
    const char *mask = mlo_x_in(x, i), *open, *c;
    int rank = mlo_x_rank(x, i);
    if (rank == 2 || rank == 3) {
        c = mlo_x_tensor(x, mlo_x_form(x, i).dtype, 0, 1, MLO_ITEMS(int64_t, 0), 0);
        open = MLO_X(x, "Greater", mask, c);
        open = rank == 2 ? mlo_x_unsqueeze(x, open, over_heads_and_queries, 2)
                         : mlo_x_unsqueeze(x, open, over_heads, 1);
        return mlo_x_filter(x, open, mlo_x_closed(x));
    }
    int64_t batch = mlo_x_dim(x, 0, 0), n = mlo_x_dim(x, i, 0), halves[] = { batch, batch };
    if (rank != 1)
        mlo_x_stay(x, rank < 0 ? "the rank of its mask is unknown" : "its mask has rank %d", rank);
    else if (n < 0 || batch < 0)
        mlo_x_stay(x, "the batch or its mask's length is unknown; bind them with --dim");
    else if (n != batch && n - batch != batch)
        mlo_x_stay(x, "its mask of %lld elements does not fit a batch of %lld", (long long)n,
            (long long)batch);
    if (mlo_x_stopped(x)) return "";
    const char *part[2] = { mask, "" };
    const char *shape = MLO_X(x, "Shape", scores);
    const char *t = mlo_x_size(x, shape, 3);
    const char *keys = mlo_x_range(x, t);
    if (n != batch) mlo_x_split(x, mask, 0, halves, part, 2);
    for (int k = 0; k < 2 && *part[k]; k++) {
        part[k] = mlo_x_cast(x, part[k], MLO_INT64);
        part[k] = mlo_x_reshape(x, part[k], per_batch, 4);
    }
    open = MLO_X(x, "Less", keys, part[0]);
    if (*part[1]) {
        const char *early = MLO_X(x, "Less", keys, part[1]);
        early = MLO_X(x, "Not", early);
        open = MLO_X(x, "And", open, early);
    }
    return mlo_x_filter(x, open, mlo_x_closed(x));
}

/* softcap tanh(scores / softcap) */
static const char *mlo_x_capped(mlo_expansion *x, const char *scores) {
    float cap = mlo_float(x->n, "softcap", 0);
    if (!(cap > 0)) return scores;
    const char *c = mlo_x_number(x, (double)cap), *y = MLO_X(x, "Div", scores, c);
    y = MLO_X(x, "Tanh", y);
    return MLO_X(x, "Mul", y, c);
}

/* softmax(scale q k' + bias + mask) v, heads side by side: [B, S, heads x C]. q, k, v: [B, heads,
 * S or T, C]. */
static const char *mlo_x_attend(mlo_expansion *x, const mlo_x_attention *a) {
    const int64_t swap[] = { 0, 1, 3, 2 };
    const char *y;
    const char *k = mlo_x_transpose(x, a->k, swap, 4);
    const char *scores = MLO_X(x, "MatMul", a->q, k);
    const char *c = mlo_x_number(x, a->scale);
    const char *add = "";
    scores = mlo_x_capped(x, MLO_X(x, "Mul", scores, c));
    if (*mlo_x_in(x, a->mask)) add = mlo_x_mask(x, scores, a->mask);
    if (a->causal) {
        c = mlo_x_causal(x, scores, a->window);
        c = mlo_x_filter(x, c, mlo_x_lowest(x));
        add = *add ? MLO_X(x, "Add", add, c) : c;
    }
    /* the bias first: what is added to -10000 loses bits */
    y = mlo_x_plus(x, scores, mlo_x_in(x, a->bias));
    y = mlo_x_plus(x, y, add);
    y = MLO_X(x, "Softmax", y);
    mlo_x_int(x, "axis", -1);
    return mlo_x_joined(x, MLO_X(x, "MatMul", y, a->v));
}
/* What multiplies the scores: the attribute, or 1 / sqrt(channels of a head). */
static double mlo_x_scale(mlo_expansion *x, int64_t channels) {
    double scale = (double)mlo_float(x->n, "scale", 0);
    int64_t heads = mlo_int(x->n, "num_heads", 0);
    if (heads < 1 || channels < 1 || channels % heads) {
        mlo_x_stay(x, "%lld channels are not %lld heads", (long long)channels, (long long)heads);
        return 1;
    }
    return mlo_differs(scale, 0) ? scale : 1 / sqrt((double)(channels / heads));
}

static int mlo_x_is_size(int64_t n) { return n > 0 && n <= MLO_MAX_DIM; }

/* Attention(x, weights [D, q + k + v], bias, mask, past [2, B, heads, P, C], attention bias) -> y,
 * present */
static void mlo_expand_attention(mlo_expansion *x) {
    const mlo_attr *sizes = mlo_attr_of(x->n, "qkv_hidden_sizes");
    int64_t third = mlo_x_dim(x, 1, 1) / 3;
    int64_t size[3] = { third, third, third };
    int64_t pair[] = { 1, 1 };
    int64_t first = 0;
    const char *w[3], *b[3] = { "", "", "" }, **part[3];
    if (mlo_int(x->n, "do_rotary", 0)) mlo_x_stay(x, "do_rotary is set");
    if (mlo_int(x->n, "past_present_share_buffer", 0) || *mlo_x_in(x, 6))
        mlo_x_stay(x, "past and present share a buffer");
    if (sizes && sizes->n_ints == 3) memcpy(size, sizes->ints, sizeof size);
    if (!mlo_x_is_size(size[0]) || size[1] != size[0] || !mlo_x_is_size(size[2])
        || (mlo_x_dim(x, 1, 1) >= 0 && size[0] + size[1] + size[2] != mlo_x_dim(x, 1, 1)))
        mlo_x_stay(x, "the channels of q, k and v cannot be told");
    mlo_x_attention a = { NULL, NULL, NULL, mlo_int(x->n, "num_heads", 0), mlo_x_scale(x, size[0]),
        3, 5, mlo_int(x->n, "unidirectional", 0) != 0, -1 };
    mlo_x_split(x, mlo_x_in(x, 1), 1, size, w, 3);
    if (*mlo_x_in(x, 2)) mlo_x_split(x, mlo_x_in(x, 2), 0, size, b, 3);
    part[0] = &a.q;
    part[1] = &a.k;
    part[2] = &a.v;
    for (int i = 0; i < 3; i++) {
        const char *y = MLO_X(x, "MatMul", mlo_x_in(x, 0), w[i]);
        y = mlo_x_plus(x, y, b[i]);
        *part[i] = mlo_x_heads(x, y, a.heads);
    }
    if (*mlo_x_in(x, 4)) {
        mlo_x_split(x, mlo_x_in(x, 4), 0, pair, w, 2);
        for (int i = 0; i < 2; i++) {
            w[i] = mlo_x_axes(x, "Squeeze", w[i], &first, 1, 13);
            *part[i + 1] = MLO_X(x, "Concat", w[i], *part[i + 1]);
            mlo_x_int(x, "axis", 2);
        }
    }
    mlo_x_out(x, 0, mlo_x_attend(x, &a));
    if (!mlo_x_wanted(x, 1)) return;
    const char *k = mlo_x_unsqueeze(x, a.k, &first, 1);
    const char *v = mlo_x_unsqueeze(x, a.v, &first, 1);
    const char *present = MLO_X(x, "Concat", k, v);
    mlo_x_int(x, "axis", 0);
    mlo_x_out(x, 1, present);
}

/* MultiHeadAttention(q, k, v, bias, key mask, attention bias, past k, past v) -> y, present k,
 * present v. k and v are [B, T, heads x C], or
 * [B, heads, T, C] as a decoder keeps them of its encoder, their biases added. */
static void mlo_expand_multi_head(mlo_expansion *x) {
    int64_t size[3];
    const char *b[3] = { "", "", "" }, *part[3];
    for (size_t i = 0; i < 3; i++) {
        part[i] = mlo_x_in(x, i);
        size[i] = mlo_x_dim(x, i, -1);
    }
    int kept = mlo_x_rank(x, 1) == 4 && mlo_x_rank(x, 2) == 4;
    if (mlo_x_rank(x, 0) != 3 || (!kept && (mlo_x_rank(x, 1) != 3 || mlo_x_rank(x, 2) != 3)))
        mlo_x_stay(x, "q, k and v have ranks %d, %d and %d", mlo_x_rank(x, 0), mlo_x_rank(x, 1),
            mlo_x_rank(x, 2));
    if (*mlo_x_in(x, 8) || *mlo_x_in(x, 9) || mlo_x_wanted(x, 3))
        mlo_x_stay(x, "past and present share a buffer, or its qk is used");
    if (kept && *mlo_x_in(x, 6)) mlo_x_stay(x, "k and v of rank 4 come with a past");
    mlo_x_attention a = { NULL, NULL, NULL, mlo_int(x->n, "num_heads", 0), mlo_x_scale(x, size[0]),
        4, 5, mlo_int(x->n, "unidirectional", 0) != 0, -1 };
    if (kept)
        for (int i = 1; i < 3; i++)
            size[i] = mlo_times(mlo_x_dim(x, (size_t)i, 1), mlo_x_dim(x, (size_t)i, 3));
    if (*mlo_x_in(x, 3)) {
        if (size[1] < 1 || size[2] < 1) mlo_x_stay(x, "the channels of k and v are unknown");
        mlo_x_split(x, mlo_x_in(x, 3), 0, size, b, 3);
    }
    for (int i = 0; i < 3; i++) {
        if (!i || !kept) part[i] = mlo_x_plus(x, part[i], b[i]);
        if (!i || !kept) part[i] = mlo_x_heads(x, part[i], a.heads);
        if (i && *mlo_x_in(x, (size_t)i + 5)) {
            part[i] = MLO_X(x, "Concat", mlo_x_in(x, (size_t)i + 5), part[i]);
            mlo_x_int(x, "axis", 2);
        }
    }
    a.q = part[0];
    a.k = part[1];
    a.v = part[2];
    mlo_x_out(x, 0, mlo_x_attend(x, &a));
    for (size_t i = 1; i < 3; i++)
        if (mlo_x_wanted(x, i)) mlo_x_out(x, i, part[i]);
}

/* ---- rotary embedding ----------------------------------------------------- */

/* Channels start, start + step, .. of v, before `end`. */
static const char *mlo_x_part(
    mlo_expansion *x, const char *v, int64_t start, int64_t end, int64_t step) {
    const int64_t last = -1;
    const char *from = mlo_x_list(x, &start, 1), *to = mlo_x_list(x, &end, 1);
    const char *axis = mlo_x_list(x, &last, 1), *by = mlo_x_list(x, &step, 1);
    return MLO_X(x, "Slice", v, from, to, axis, by);
}

/* Which rows of the tables: positions of each token, or that of the first. */
static const char *mlo_x_positions(mlo_expansion *x) {
    if (mlo_x_rank(x, 1) == 2) return mlo_x_in(x, 1);
    const char *shape = MLO_X(x, "Shape", mlo_x_in(x, 0));
    const char *tokens = mlo_x_size(x, shape, mlo_x_rank(x, 0) == 3 ? 1 : 2);
    const char *rows = mlo_x_range(x, tokens);
    return MLO_X(x, "Add", rows, mlo_x_in(x, 1));
}

/* Those rows, for heads that lie at `axis` of [B, .., .., C]. */
static const char *mlo_x_angles(mlo_expansion *x, size_t i, const char *rows, int flat) {
    const int64_t axis = mlo_x_rank(x, 1) == 2 ? (flat ? 2 : 1) : flat ? 1 : 0;
    const char *y = MLO_X(x, "Gather", mlo_x_in(x, i), rows);
    mlo_x_int(x, "axis", 0);
    return mlo_x_unsqueeze(x, y, &axis, 1);
}

/* (a cos - b sin, a sin + b cos) of the first `turned` of v's channels; by_two: pairs are neighbours. */
static const char *mlo_x_rotated(
    mlo_expansion *x, const char *v, int64_t turned, const char *cos, const char *sin, int by_two) {
    const int64_t four = 4, whole[] = { 0, 0, 0, turned };
    const char *a = mlo_x_part(x, v, 0, by_two ? turned : turned / 2, by_two ? 2 : 1);
    const char *b = mlo_x_part(x, v, by_two ? 1 : turned / 2, turned, by_two ? 2 : 1);
    const char *ac = MLO_X(x, "Mul", a, cos)
    , *bs = MLO_X(x, "Mul", b, sin);
    const char *re = MLO_X(x, "Sub", ac, bs);
    const char *bc = MLO_X(x, "Mul", b, cos)
    , *as = MLO_X(x, "Mul", a, sin);
    const char *im = MLO_X(x, "Add", bc, as)
    , *y;
    if (by_two) re = mlo_x_unsqueeze(x, re, &four, 1);
    if (by_two) im = mlo_x_unsqueeze(x, im, &four, 1);
    y = MLO_X(x, "Concat", re, im);
    mlo_x_int(x, "axis", by_two ? 4 : -1);
    return by_two ? mlo_x_reshape(x, y, whole, 4) : y;
}

/* v of `width` channels a head, the first `turned` of which turn. */
static const char *mlo_x_partly_rotated(mlo_expansion *x, const char *v, int64_t width,
    int64_t turned, const char *cos, const char *sin, int by_two) {
    const char *y = mlo_x_rotated(x, v, turned, cos, sin, by_two);
    if (width == turned) return y;
    const char *rest = mlo_x_part(x, v, turned, width, 1);
    y = MLO_X(x, "Concat", y, rest);
    mlo_x_int(x, "axis", -1);
    return y;
}

/* RotaryEmbedding(x, positions, cosines, sines): x is [B, S, heads x C] or [B, heads, S, C]; the
 * standard operator came with opset 23 only, so its parts are written out. */
static void mlo_expand_rotary(mlo_expansion *x) {
    const int flat = mlo_x_rank(x, 0) == 3, listed = mlo_x_rank(x, 1);
    const int64_t half = mlo_x_dim(x, 2, -1), channels = mlo_x_dim(x, 0, -1);
    const int64_t heads = mlo_int(x->n, "num_heads", 0), turned = half > 0 ? 2 * half : 0;
    const int64_t said = mlo_int(x->n, "rotary_embedding_dim", 0);
    const int64_t width = flat && heads > 0 ? channels / heads : flat ? turned : channels;
    const float scale = mlo_float(x->n, "scale", 1);
    const int64_t split[] = { 0, 0, -1, width }, joined[] = { 0, 0, channels };
    if (!flat && mlo_x_rank(x, 0) != 4) mlo_x_stay(x, "its rank is %d", mlo_x_rank(x, 0));
    if (half < 1 || (said && said != turned) || channels < 1 || width < turned || channels % width)
        mlo_x_stay(x, "%lld channels, of which %lld turn in each head, cannot be told apart",
            (long long)channels, (long long)turned);
    if (listed != 1 && listed != 2) mlo_x_stay(x, "the rank of its positions is unknown");
    if (listed == 1 && mlo_x_dim(x, 1, 0) != 1) mlo_x_stay(x, "its positions are a list");
    if (mlo_differs(scale, 1) || mlo_int(x->n, "is_packed_batching", 0))
        mlo_x_stay(x, "it has a scale, or tokens of several sequences in a row");
    const char *rows = mlo_x_positions(x), *v = mlo_x_in(x, 0);
    const char *cos = mlo_x_angles(x, 2, rows, flat), *sin = mlo_x_angles(x, 3, rows, flat);
    if (flat) v = mlo_x_reshape(x, v, split, 4);
    const char *y = mlo_x_partly_rotated(
        x, v, width, turned, cos, sin, mlo_int(x->n, "interleaved", 0) != 0);
    mlo_x_out(x, 0, flat ? mlo_x_reshape(x, y, joined, 3) : y);
}

/* ---- ONNX's own attention ----------------------------------------------------
 * Attention(q, k, v, mask, past k, past v, number of keys) -> y, present k, present v, scores:
 * what the function in ONNX's schema says, in as few operators as a case needs. q, k, v: [B, S or
 * T, heads x C] or [B, heads, S or T, C] */

/* a and b, each perhaps absent */
static const char *mlo_x_both(mlo_expansion *x, const char *a, const char *b) {
    if (!*a) return b;
    return *b ? MLO_X(x, "And", a, b) : a;
}
/* S or T of [B, heads, S or T, C] */
static const char *mlo_x_length(mlo_expansion *x, const char *v) {
    return mlo_x_size(x, MLO_X(x, "Shape", v), 2);
}

/* Which key a query is at: [S, 1], or [B, 1, S, 1] with a count of keys ([B, 1, 1, 1], or absent) */
static const char *mlo_x_place(mlo_expansion *x, const char *q, const char *count) {
    const int64_t column[] = { -1, 1 };
    const char *length = mlo_x_length(x, q), *past = "", *at;
    if (*mlo_x_in(x, 4))
        past = mlo_x_length(x, mlo_x_in(x, 4));
    else if (*count)
        past = MLO_X(x, "Sub", count, length);
    at = mlo_x_reshape(x, mlo_x_range(x, length), column, 2);
    return mlo_x_plus(x, at, past);
}

/* May a query see a key, by order, window and number of keys? Broadcasts to [B, heads, S, T]; ""
 * for always. */
static const char *mlo_x_in_sight(mlo_expansion *x, const char *q, const char *k) {
    const int64_t per_batch[] = { -1, 1, 1, 1 };
    int64_t left = mlo_int(x->n, "left_window_size", -1);
    int64_t right = mlo_int(x->n, "right_window_size", -1);
    const char *count = mlo_x_in(x, 6), *open = "", *at, *edge;
    int causal = mlo_int(x->n, "is_causal", 0) != 0;
    const int everywhere = !causal && left < 0 && right < 0;
    if (everywhere && !*count) return "";
    const char *keys = mlo_x_range(x, mlo_x_length(x, k));
    if (*count) count = mlo_x_reshape(x, count, per_batch, 4);
    if (*count) open = MLO_X(x, "Less", keys, count);
    if (everywhere) return open;
    at = mlo_x_place(x, q, count);
    if (causal) open = mlo_x_both(x, open, MLO_X(x, "LessOrEqual", keys, at));
    if (left >= 0) {
        edge = mlo_x_whole(x, left);
        edge = MLO_X(x, "Sub", at, edge);
        open = mlo_x_both(x, open, MLO_X(x, "GreaterOrEqual", keys, edge));
    }
    if (right >= 0) {
        edge = mlo_x_whole(x, right);
        edge = MLO_X(x, "Add", at, edge);
        open = mlo_x_both(x, open, MLO_X(x, "LessOrEqual", keys, edge));
    }
    return open;
}

/* How many keys there are with those that are past, -1 when unknown. */
static int64_t mlo_x_keys(const mlo_expansion *x) {
    int64_t keys = mlo_x_dim(x, 1, mlo_x_rank(x, 1) - 2); /* of [.., T, C] in either layout */
    return *mlo_x_in(x, 4) ? mlo_dim_sum(keys, mlo_x_dim(x, 4, 2)) : keys;
}

/* From opset 24 on, a mask may end before the keys do: the rest of them are closed. */
static const char *mlo_x_padded(mlo_expansion *x, const char *mask, const char *k) {
    const int64_t zero = 0, last = -1, keys = mlo_x_keys(x);
    mlo_dtype type = mlo_x_form(x, 3).dtype;
    if (x->opset < 24 || (keys >= 0 && keys == mlo_x_dim(x, 3, -1))) return mask;
    const char *have, *more, *closed;
    const char *from = mlo_x_list(x, &zero, 1);
    const char *axis = mlo_x_list(x, &last, 1);
    have = MLO_X(x, "Shape", mask);
    mlo_x_int(x, "start", -1);
    more = MLO_X(x, "Shape", k);
    mlo_x_int(x, "start", 2);
    mlo_x_int(x, "end", 3);
    more = MLO_X(x, "Sub", more, have);
    more = MLO_X(x, "Concat", from, more);
    mlo_x_int(x, "axis", 0);
    closed = mlo_x_tensor(x, type, 0, 1, NULL, type == MLO_BOOL ? 0 : -(double)INFINITY);
    return MLO_X(x, "Pad", mask, more, closed, axis);
}

/* Is the mask a constant that closes nothing and adds nothing? PyTorch exports one where none was
 * given. */
static int mlo_x_idle_mask(const mlo_expansion *x) {
    const mlo_value *v = mlo_value_of(x->g, mlo_x_in(x, 3));
    double number[512], idle = mlo_x_form(x, 3).dtype == MLO_BOOL;
    if (!v || !v->tensor || mlo_x_dim(x, 3, -1) != mlo_x_keys(x)) return 0;
    for (int64_t at = 0, n, all = mlo_tensor_count(v->tensor); at < all; at += n) {
        n = all - at < 512 ? all - at : 512;
        if (mlo_tensor_doubles(x->m, v->tensor, at, (size_t)n, number)) return 0;
        for (int64_t i = 0; i < n; i++)
            if (!(number[i] >= idle && number[i] <= idle)) return 0;
    }
    return 1;
}

/* What is added to scores: -infinity where a key is closed, and a mask of numbers; "" for nothing. */
static const char *mlo_x_openings(
    mlo_expansion *x, const char *mask, const char *q, const char *k) {
    mlo_dtype type = *mask ? mlo_x_form(x, 3).dtype : MLO_BOOL;
    if (*mask) mask = mlo_x_padded(x, mask, k);
    const char *open = mlo_x_in_sight(x, q, k);
    if (type == MLO_BOOL) open = mlo_x_both(x, mask, open);
    if (*open) open = mlo_x_filter(x, open, -(double)INFINITY);
    if (type == MLO_BOOL) return open;
    if (type != x->dtype) mask = mlo_x_cast(x, mask, x->dtype);
    return mlo_x_plus(x, mask, open);
}

/* Heads of keys or values, each as often as queries share it: [B, heads, T, C] to [B, all heads,
 * T, C]. */
static const char *mlo_x_shared(
    mlo_expansion *x, const char *v, int64_t heads, int64_t all, int64_t channels) {
    const int64_t behind_heads = 2;
    const int64_t times[] = { 1, 1, all / heads, 1, 1 };
    const int64_t shape[] = { 0, all, -1, channels };
    if (heads == all) return v;
    if (channels < 1) mlo_x_stay(x, "the channels of a head are unknown; bind them with --dim");
    v = mlo_x_unsqueeze(x, v, &behind_heads, 1);
    v = MLO_X(x, "Expand", v, mlo_x_list(x, times, 5));
    return mlo_x_reshape(x, v, shape, 4);
}

/* The root of the scale, by which q and k are multiplied each: made in float, as the function does. */
static double mlo_x_root_scale(mlo_expansion *x, int64_t channels) {
    const mlo_attr *a = mlo_attr_of(x->n, "scale");
    float scale = a ? a->f : channels < 1 ? 1 : 1 / sqrtf((float)channels);
    if (!a && channels < 1)
        mlo_x_stay(x, "the channels of a head are unknown; bind them with --dim");
    if (!(scale >= 0)) mlo_x_stay(x, "its scale is %g", (double)scale);
    return (double)sqrtf(scale);
}

/* Softmax in the precision that is asked for. A query that sees no key takes nothing: its row of
 * -infinity, whose softmax is NaN, gives 0 (so does a row in which a score is NaN already). By
 * order alone, every query sees a key. */
static const char *mlo_x_weights(mlo_expansion *x, const char *scores, const char *mask) {
    mlo_dtype type = (mlo_dtype)mlo_int(x->n, "softmax_precision", x->dtype);
    const char *y = type == x->dtype ? scores : mlo_x_cast(x, scores, type), *empty, *zero;
    y = MLO_X(x, "Softmax", y);
    mlo_x_int(x, "axis", -1);
    if (type != x->dtype) y = mlo_x_cast(x, y, x->dtype);
    if (!*mask && !*mlo_x_in(x, 6) && mlo_int(x->n, "left_window_size", -1) < 0) return y;
    empty = MLO_X(x, "IsNaN", y);
    zero = mlo_x_number(x, 0);
    return MLO_X(x, "Where", empty, zero, y);
}

/* Stays when it has an attribute that the function does not know. */
static void mlo_x_check_attributes(mlo_expansion *x) {
    static const char *const known[] = { "is_causal", "kv_num_heads", "left_window_size",
        "q_num_heads", "qk_matmul_output_mode", "right_window_size", "scale", "softcap",
        "softmax_precision" };
    int64_t mode = mlo_int(x->n, "qk_matmul_output_mode", 0);
    int64_t type = mlo_int(x->n, "softmax_precision", MLO_FLOAT);
    for (size_t i = 0, k; i < x->n->n_attr; i++) {
        const char *name = x->n->attr[i]->name;
        for (k = 0; k < sizeof known / sizeof *known && !mlo_eq(name, known[k]); k++) {
        }
        if (k == sizeof known / sizeof *known)
            mlo_x_stay(x, "its attribute %.60s is not known", name);
    }
    if (mode < 0 || mode > 3) mlo_x_stay(x, "its qk_matmul_output_mode is %lld", (long long)mode);
    if (!mlo_dtype_is_float((mlo_dtype)type))
        mlo_x_stay(x, "its softmax_precision is no float type");
}

/* Stays when its inputs are not as the schema says. */
static void mlo_x_check_inputs(mlo_expansion *x) {
    int rank = mlo_x_rank(x, 0), past = *mlo_x_in(x, 4) || *mlo_x_in(x, 5);
    if (rank != 3 && rank != 4)
        mlo_x_stay(x, rank < 0 ? "the rank of q is unknown" : "q has rank %d", rank);
    if (mlo_x_rank(x, 1) != rank || mlo_x_rank(x, 2) != rank)
        mlo_x_stay(
            x, "q, k and v have ranks %d, %d and %d", rank, mlo_x_rank(x, 1), mlo_x_rank(x, 2));
    for (size_t i = 1; i < 6; i++) {
        mlo_dtype type = mlo_x_form(x, i).dtype;
        if ((i < 3 || (past && i > 3)) && type != x->dtype)
            mlo_x_stay(
                x, "q is %s, input %zu is %s", mlo_dtype_name(x->dtype), i, mlo_dtype_name(type));
    }
    if (*mlo_x_in(x, 3) && !mlo_x_form(x, 3).dtype)
        mlo_x_stay(x, "the element type of its mask is unknown");
    if (past && *mlo_x_in(x, 6)) mlo_x_stay(x, "it has past keys and a number of keys");
}

/* q, k and v as [B, heads, S or T, C], k and v behind what is past; how many heads, and how many
 * channels each has. */
static void mlo_x_heads_of(mlo_expansion *x, const char **part, int64_t *heads, int64_t *channels) {
    int flat = mlo_x_rank(x, 0) == 3;
    for (size_t i = 0; i < 3; i++) {
        heads[i] = flat ? mlo_int(x->n, i ? "kv_num_heads" : "q_num_heads", 0) : mlo_x_dim(x, i, 1);
        channels[i] = flat ? mlo_dim_part(mlo_x_dim(x, i, 2), heads[i]) : mlo_x_dim(x, i, 3);
        part[i] = flat ? mlo_x_heads(x, mlo_x_in(x, i), heads[i]) : mlo_x_in(x, i);
        if (!i || !*mlo_x_in(x, i + 3)) continue;
        part[i] = MLO_X(x, "Concat", mlo_x_in(x, i + 3), part[i]);
        mlo_x_int(x, "axis", 2);
    }
    if (heads[0] < 0 || heads[1] < 0 || heads[2] < 0)
        mlo_x_stay(x, "its number of heads is unknown; bind it with --dim");
    else if (heads[0] < 1 || heads[1] < 1 || heads[2] != heads[1] || heads[0] % heads[1])
        mlo_x_stay(x, "it has %lld heads of queries, %lld of keys, %lld of values",
            (long long)heads[0], (long long)heads[1], (long long)heads[2]);
}

static void mlo_expand_standard_attention(mlo_expansion *x) {
    const int64_t swap[] = { 0, 1, 3, 2 };
    int64_t heads[3], channels[3];
    const char *part[3], *stage[4], *k, *v, *mask, *y;
    mlo_x_check_attributes(x);
    mlo_x_check_inputs(x);
    mlo_x_heads_of(x, part, heads, channels);
    if (mlo_x_stopped(x)) return;
    k = mlo_x_shared(x, part[1], heads[1], heads[0], channels[1]);
    v = mlo_x_shared(x, part[2], heads[1], heads[0], channels[2]);
    k = mlo_x_transpose(x, k, swap, 4);
    y = mlo_x_number(x, mlo_x_root_scale(x, channels[0]));
    k = MLO_X(x, "Mul", k, y);
    y = MLO_X(x, "Mul", part[0], y);
    stage[0] = MLO_X(x, "MatMul", y, k);
    stage[1] = mlo_x_capped(x, stage[0]);
    mask = mlo_x_idle_mask(x) ? "" : mlo_x_in(x, 3);
    y = mlo_x_openings(x, mask, part[0], part[1]);
    stage[2] = mlo_x_plus(x, stage[1], y);
    stage[3] = mlo_x_weights(x, stage[2], mask);
    y = MLO_X(x, "MatMul", stage[3], v);
    mlo_x_out(x, 0, mlo_x_rank(x, 0) == 3 ? mlo_x_joined(x, y) : y);
    for (size_t i = 1; i < 3; i++)
        if (mlo_x_wanted(x, i)) mlo_x_out(x, i, part[i]);
    if (mlo_x_wanted(x, 3)) mlo_x_out(x, 3, stage[mlo_int(x->n, "qk_matmul_output_mode", 0)]);
}

/* ---- grouped-query attention -------------------------------------------------
 * GroupQueryAttention(q, k, v, past k, past v, keys - 1, most keys, cosines, sines, positions) -> y,
 * present k, present v: causal, as ONNX Runtime's tools write decoders. q may hold k and v, too; inputs 14 and
 * 15 are gains of a norm of each head. A prompt only: nothing is past. (Which keys of a batch are padding,
 * `keys - 1`, is not asked: they come last, where only the padding's own rows could see them; those rows are
 * nobody's.) */

enum {
    MLO_GQA_PAST = 3,
    MLO_GQA_COS = 7,
    MLO_GQA_SIN = 8,
    MLO_GQA_POSITIONS = 9,
    MLO_GQA_GAIN = 14
};

typedef struct {
    int64_t heads[3]; /* of q, k, v */
    int64_t channels; /* of a head */
    const char *part[3]; /* [B, heads, S, C] */
} mlo_x_group;

/* Stays when nothing here, or in ONNX Runtime's documentation, says what it means. */
static void mlo_x_check_group(mlo_expansion *x) {
    static const struct {
        size_t input;
        const char *why;
    } odd[] = { { 10, "it has a bias" }, { 11, "it has sinks" }, { 12, "its keys are quantized" },
        { 13, "its values are quantized" } };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (*mlo_x_in(x, odd[i].input)) mlo_x_stay(x, "%s", odd[i].why);
    for (size_t i = MLO_GQA_PAST; i < MLO_GQA_PAST + 2; i++)
        if (*mlo_x_in(x, i) && mlo_x_dim(x, i, 2) != 0)
            mlo_x_stay(x, "it has past keys and values: a prompt has none");
    if (!mlo_int(x->n, "local_window_size", -1)) mlo_x_stay(x, "its window is empty");
    if (mlo_int(x->n, "smooth_softmax", 0) > 0) mlo_x_stay(x, "smooth_softmax is set");
    if (mlo_int(x->n, "qk_output", 0) || mlo_x_wanted(x, 3)) mlo_x_stay(x, "its qk is used");
    if (mlo_x_rank(x, 0) != 3) mlo_x_stay(x, "the rank of q is %d", mlo_x_rank(x, 0));
    if (!*mlo_x_in(x, 1) != !*mlo_x_in(x, 2)) mlo_x_stay(x, "it has k or v, but not both");
}

/* q, k and v, whose channels are counted. */
static void mlo_x_group_parts(mlo_expansion *x, mlo_x_group *g) {
    const int packed = !*mlo_x_in(x, 1);
    const int64_t all = mlo_x_dim(x, 0, 2);
    g->heads[0] = mlo_int(x->n, "num_heads", 0);
    g->heads[1] = g->heads[2] = mlo_int(x->n, "kv_num_heads", 0);
    if (g->heads[0] < 1 || g->heads[1] < 1 || g->heads[0] % g->heads[1]) {
        mlo_x_stay(x, "it has %lld heads of queries, %lld of keys", (long long)g->heads[0],
            (long long)g->heads[1]);
        return;
    }
    g->channels = mlo_dim_part(all, g->heads[0] + (packed ? 2 * g->heads[1] : 0));
    if (g->channels < 1) mlo_x_stay(x, "%lld channels are not its heads", (long long)all);
    if (mlo_x_stopped(x)) return;
    const int64_t size[] = { g->heads[0] * g->channels, g->heads[1] * g->channels,
        g->heads[2] * g->channels };
    for (size_t i = 0; i < 3; i++) g->part[i] = mlo_x_in(x, i);
    if (packed) mlo_x_split(x, mlo_x_in(x, 0), 2, size, g->part, 3);
    for (size_t i = 0; i < 3; i++) g->part[i] = mlo_x_heads(x, g->part[i], g->heads[i]);
}

/* Each head of queries and keys has an RMS norm of its own, in front of all else. */
static void mlo_x_group_norm(mlo_expansion *x, mlo_x_group *g) {
    static const char *const epsilon[] = { "q_norm_epsilon", "k_norm_epsilon" };
    const float both = mlo_float(x->n, "qk_norm_epsilon", 1e-6f);
    if (!*mlo_x_in(x, MLO_GQA_GAIN) != !*mlo_x_in(x, MLO_GQA_GAIN + 1))
        mlo_x_stay(x, "it has a norm of q or of k, but not of both");
    for (size_t i = 0; i < 2 && *mlo_x_in(x, MLO_GQA_GAIN) && !mlo_x_stopped(x); i++)
        g->part[i] = mlo_x_norm(
            x, g->part[i], mlo_x_in(x, MLO_GQA_GAIN + i), "", mlo_float(x->n, epsilon[i], both), 0);
}

/* Queries and keys turn: the rows of the tables are those of the tokens' places. */
static void mlo_x_group_turn(mlo_expansion *x, mlo_x_group *g) {
    const int64_t heads = 1, half = mlo_x_dim(x, MLO_GQA_COS, -1);
    const int listed = *mlo_x_in(x, MLO_GQA_POSITIONS) != 0;
    const char *table[2];
    if (!mlo_int(x->n, "do_rotary", 0)) return;
    if (half < 1 || 2 * half > g->channels)
        mlo_x_stay(x, "%lld channels of a head, of which %lld turn", (long long)g->channels,
            (long long)(2 * half));
    const char *rows = mlo_x_in(x, MLO_GQA_POSITIONS);
    if (!listed) rows = mlo_x_range(x, mlo_x_length(x, g->part[0]));
    for (size_t i = 0; i < 2; i++) {
        table[i] = MLO_X(x, "Gather", mlo_x_in(x, MLO_GQA_COS + i), rows);
        mlo_x_int(x, "axis", 0);
        if (listed) table[i] = mlo_x_unsqueeze(x, table[i], &heads, 1);
    }
    for (size_t i = 0; i < 2; i++)
        g->part[i] = mlo_x_partly_rotated(x, g->part[i], g->channels, 2 * half, table[0], table[1],
            mlo_int(x->n, "rotary_interleaved", 0) != 0);
}

static void mlo_expand_group_query(mlo_expansion *x) {
    mlo_x_group g = { { 0, 0, 0 }, 0, { "", "", "" } };
    mlo_x_check_group(x);
    mlo_x_group_parts(x, &g);
    mlo_x_group_norm(x, &g);
    mlo_x_group_turn(x, &g);
    if (mlo_x_stopped(x)) return;
    const char *k = mlo_x_shared(x, g.part[1], g.heads[1], g.heads[0], g.channels);
    const char *v = mlo_x_shared(x, g.part[2], g.heads[2], g.heads[0], g.channels);
    const mlo_x_attention a = { g.part[0], k, v, g.heads[0],
        mlo_x_scale(x, g.heads[0] * g.channels), MLO_X_NONE, MLO_X_NONE,
        mlo_int(x->n, "causal", 1) != 0, mlo_int(x->n, "local_window_size", -1) };
    mlo_x_out(x, 0, mlo_x_attend(x, &a));
    for (size_t i = 1; i < 3; i++)
        if (mlo_x_wanted(x, i)) mlo_x_out(x, i, g.part[i]);
}
