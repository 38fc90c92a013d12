/* exact: a loop whose numbers are integers already (Deeploy's dialect) becomes kernels as it stands: no scales,
 * no calibration, no rounding of ours.
 *
 * in:  a loop's body of the dialect's operators: x W + b, depthwise convolutions, sums and products of two
 *     streams, each rounded by RequantShift; norms; functions of one number behind them.
 * out: the body as kernels, whose results are the network's own integers, every one.
 *
 *     network                                    kernel
 *     x W (+ b), RequantShift                    MVU: its own multipliers and shifts
 *     a convolution of 1 x 1                     the same: its grid's places are the tokens
 *     a depthwise convolution, RequantShift      Conv
 *     a + b, RequantShift;  a b, RequantShift    Add; Mul
 *     iRMSNorm, iLayerNorm                       ExactNorm
 *     RequantShift alone                         Requant
 *     what else is done number by number         a table, of what its own operators make of each number
 *     iSoftmax(q k^T ..) v, of heads             AttentionTable: all between is a function of 8 bits, and its tables
 *     a matrix for each token, of q's, k's heads Rotary, if it turns pairs: their own cosines and sines
 *
 * RequantShift is y = clip(floor((acc mul + add + div / 2) / div)), the kernels' rule is y = clip((acc M +
 * 2^(S-1)) >> S): with div = 2^S the same, if add is a multiple of mul (then it is part of the bias) and mul,
 * halved with div as long as it is even, has 15 bits. A mul of more bits on few numbers (a sum of two streams) is
 * a table. Hardware clips to all numbers of so many bits: other ends (0..255) are a table's, too, of norms as well.
 * A norm's D is a power of two.
 *
 * invariant: a number is taken over exactly or refused, with the node, the channel, and the number. What is
 *     unknown here is the first carried value: it is taken to be as wide as what layers hand on.
 * example: the four layers of MLPerf Tiny's keyword spotting: Conv 3 x 3, RequantTable, MVUTable.
 * cost: one layer's weights in memory at a time, and 8-bit copies of all.
 */

enum { MLO_EXACT_TABLE = 12, MLO_EXACT_CHAIN = 16, MLO_EXACT_DEPTH = 512 };

/* A value of the new body. */
typedef struct {
    const char *name;
    mlo_interval range; /* of its integers, in every iteration */
    int64_t channels;
} mlo_exact_value;

typedef struct {
    mlo_quantizer *q;
    const mlo_inside *in;
    int grid; /* 1: channels are in front of places: [1, C, H, W], [1, C, T] */
    int64_t tokens;
    double *one; /* [iterations]: the step of every value */
    mlo_map made; /* name in the old body -> mlo_exact_value */
    const char *result;
    mlo_interval carried; /* of what goes from layer to layer */
    const int64_t *order; /* of a linear layer's columns; NULL: as they are */
    int depth;
} mlo_takeover;

/* What is done number by number behind `base`, the first in front. */
typedef struct {
    const char *base;
    mlo_node *node[MLO_EXACT_CHAIN];
    int n;
} mlo_exact_chain;

/* A kernel on its way: what it is given beside words, and what is done with its sums. */
typedef struct mlo_exact_unit {
    const mlo_kernel *kernel;
    mlo_node *from; /* to blame */
    const char *in[3]; /* its streams */
    size_t n_in;
    const char *weight; /* its weights; NULL: it has none */
    const char *bias; /* in the old body; NULL: none */
    mlo_interval sums; /* where they are known: hi < lo: they are not */
    int64_t channels;
    /* what its node is given, `with` that; NULL: as most kernels */
    int (*inputs)(mlo_takeover *x, const struct mlo_exact_unit *u, const mlo_node *r,
        const char *name, mlo_node *n);
    const void *with;
} mlo_exact_unit;

static mlo_interval mlo_joined(mlo_interval a, mlo_interval b) {
    return mlo_from_to(mlo_min(a.lo, b.lo), mlo_max(a.hi, b.hi));
}

/* ---- parameters ----------------------------------------------------------- */

/* Whole numbers of a parameter in iteration i, in scratch memory (mlo_array_free); NULL: failed. */
static mlo_array *mlo_exact_whole(
    mlo_takeover *x, const mlo_graph *g, const mlo_node *n, const char *name, int64_t i) {
    mlo *m = x->q->m;
    mlo_array *a = mlo_value_array(m, &x->q->scan, g, name, i, 0);
    mlo_array *whole = a ? mlo_array_new(m, MLO_INT64, a->rank, a->dims) : NULL;
    const size_t size = a ? mlo_dtype_size(a->dtype) : 0;
    for (int64_t k = 0, count = whole ? mlo_array_count(a) : 0; k < count; k++) {
        double v;
        mlo_convert(MLO_DOUBLE, &v, a->dtype, (const char *)a->data + (size_t)k * size, 1);
        if (!(fabs(v) <= INT32_MAX) || mlo_differs(v, floor(v))) {
            mlo_fail(m, MLO_E_DATA, n,
                "element %lld of '%s' is %.9g in iteration %lld; the network's other numbers are "
                "integers, and this one has to be one of 32 bits",
                (long long)k, name, v, (long long)i);
            break;
        }
        ((int64_t *)whole->data)[k] = (int64_t)v;
    }
    mlo_array_free(m, a);
    if (!m->error.code) return whole;
    mlo_array_free(m, whole);
    return NULL;
}

/* div, lo, hi, log2 div of a RequantShift; D, lo, hi of a norm: as exact/deeploy.c has them. */
static int mlo_exact_shift(
    mlo_takeover *x, const mlo_graph *g, const mlo_node *n, int64_t i, int64_t *p) {
    int64_t given[MLO_DIALECT_NUMBERS] = { 0 };
    const mlo_dialect *d = mlo_dialect_of(n);
    for (int k = 0; d->numbers[k]; k++) {
        mlo_array *a = mlo_exact_whole(x, g, n, n->input[d->operands + k], i);
        if (!a) return mlo_failed(x->q->m);
        given[k] = mlo_get(a, 0);
        mlo_array_free(x->q->m, a);
    }
    const char *wrong = d->prepare(given, p);
    return wrong ? mlo_fail(x->q->m, MLO_E_DATA, n, "%s", wrong) : 0;
}

/* What a RequantShift or a norm clips to, in all iterations together; *same: in each of them. */
static int mlo_exact_clips(mlo_takeover *x, const mlo_graph *g, const mlo_node *n,
    int64_t iterations, mlo_interval *all, int *same) {
    *same = 1;
    for (int64_t i = 0; i < iterations; i++) {
        int64_t p[MLO_DIALECT_NUMBERS];
        MLO_TRY(mlo_exact_shift(x, g, n, i, p));
        const mlo_interval each = mlo_from_to(p[1], p[2]);
        if (i && (each.lo != all->lo || each.hi != all->hi)) *same = 0;
        *all = i ? mlo_joined(*all, each) : each;
    }
    return 0;
}

/* mul and add of a channel as the kernels' words, of a multiplier up to `most`; 0: they have none. */
static int mlo_exact_ratio(
    int64_t mul, int64_t add, int64_t places, int64_t most, int64_t *bias, int64_t *m, int64_t *s) {
    if (mul < 0 || places < 0 || (mul ? add % mul : add) != 0) return 0;
    *bias = mul ? add / mul : 0;
    if (!places) {
        mul *= 2;
        places = 1;
    }
    for (; mul % 2 == 0 && places > 1; places--) mul /= 2;
    *m = mul;
    *s = places;
    return mul <= most;
}

/* Does a node round to so many levels: a RequantShift, a norm? */
static int mlo_exact_is_rounding(const mlo_node *n) {
    const mlo_dialect *d = n ? mlo_dialect_of(n) : NULL;
    return mlo_is_requant_shift(n) || (d && d->norm);
}

/* The words of iteration i for what R (NULL: nothing) does with sums, of this bias. words: bias, M, S of each
 * channel. 1: there are such words, 0: there are none (why: channel, mul, add, div), or it failed. */
static int mlo_exact_words(mlo_takeover *x, const mlo_exact_unit *u, const mlo_node *r, int64_t i,
    int32_t *const words[3], int64_t why[4]) {
    mlo *m = x->q->m;
    int64_t p[MLO_DIALECT_NUMBERS] = { 1, 0, 0, 0 };
    mlo_array *list[3] = { NULL, NULL, NULL };
    int ok = !r || !mlo_exact_shift(x, x->in->body, r, i, p);
    const char *names[3] = { u->bias, r ? r->input[1] : NULL, r ? r->input[2] : NULL };
    for (int k = 0; k < 3 && ok; k++)
        ok = !names[k] || (list[k] = mlo_exact_whole(x, x->in->body, u->from, names[k], i)) != NULL;
    for (int64_t c = 0; c < u->channels && ok; c++) {
        int64_t v[3] = { 0, 1, 0 }, all[3];
        for (int k = 0; k < 3; k++)
            if (list[k])
                v[k] = mlo_get(list[k],
                    mlo_array_count(list[k]) < 2 ? 0
                        : x->order               ? x->order[c]
                                                 : c);
        const int64_t at[4] = { c, v[1], v[2], p[0] };
        memcpy(why, at, sizeof at);
        ok = mlo_exact_ratio(v[1], v[2], p[3], mlo_multipliers.hi, &all[0], &all[1], &all[2]);
        if (ok) all[0] += v[0];
        ok = ok && all[0] >= INT32_MIN && all[0] <= INT32_MAX;
        for (int k = 0; k < 3 && ok; k++) words[k][c] = (int32_t)all[k];
    }
    for (int k = 0; k < 3; k++) mlo_array_free(m, list[k]);
    return ok;
}

/* Is a parameter one number, or one for each channel of values of this form? */
static int mlo_exact_by_channel(const mlo_takeover *x, const char *name, const mlo_form *f) {
    const mlo_form p = mlo_body_form(x->in, name);
    const int axis = x->grid ? 1 : f->rank - 1, at = p.rank - f->rank + axis;
    if (mlo_is_carried(x->in, name)) return 0;
    return mlo_is_number(x->in, name)
        || (at >= 0 && p.dims[at] == f->dims[axis] && mlo_form_count(&p) == p.dims[at]);
}

/* ---- tables --------------------------------------------------------------- */

/* v := what the chain's nodes from `first` on make of it, in iteration i: the network's own operators. */
static int mlo_exact_apply(
    mlo_takeover *x, const mlo_exact_chain *c, int first, int64_t i, mlo_array **v) {
    mlo *m = x->q->m;
    for (int k = first; k < c->n; k++) {
        mlo_node *n = c->node[k];
        const mlo_op *op = mlo_op_of(m, n);
        mlo_array *in[8] = { *v }, *out[1] = { NULL };
        if (n->n_input > 8)
            return mlo_fail(m, MLO_E_UNSUPPORTED, n, "an operator that mlo cannot tabulate");
        for (size_t j = 1; j < n->n_input; j++)
            if (mlo_has_input(n, j) && !m->error.code)
                in[j] = mlo_scan_value(m, &x->q->scan, n->input[j], i);
        if (!m->error.code)
            mlo_call_node(m, op, n, mlo_opset_of(m), (const mlo_array *const *)in, out);
        for (size_t j = 0; j < n->n_input; j++) mlo_array_free(m, in[j]);
        *v = out[0];
        if (m->error.code) return mlo_failed(m);
    }
    return 0;
}

/* The table of iteration i over all indices of so many bits; of those beyond `known` its end's. */
static int mlo_exact_entries(mlo_takeover *x, const mlo_exact_chain *c, int first, int64_t i,
    int bits, mlo_interval known, int64_t *entry) {
    mlo *m = x->q->m;
    const int64_t size = mlo_two_to(bits), lo = -size / 2;
    mlo_array *v = mlo_array_new(m, MLO_FLOAT, 1, &size);
    for (int64_t k = 0; v && k < size; k++)
        ((float *)v->data)[k] = (float)mlo_clip(lo + k, known.lo, known.hi);
    if (v && !mlo_exact_apply(x, c, first, i, &v)) {
        const size_t step = mlo_dtype_size(v->dtype);
        for (int64_t k = 0; k < size; k++)
            mlo_convert(
                MLO_INT64, &entry[k], v->dtype, (const char *)v->data + (size_t)k * step, 1);
    }
    mlo_array_free(m, v);
    return mlo_failed(m);
}

/* ---- kernels -------------------------------------------------------------- */

static mlo_dtype mlo_exact_type(const mlo_takeover *x, const char *name, int bits) {
    return name == x->result || bits > 8 ? MLO_INT16 : MLO_INT8;
}

/* Are these few enough for a stream? */
static int mlo_exact_streams(mlo_takeover *x, const mlo_node *from, mlo_interval range) {
    if (mlo_bits_for(range) <= 16) return 1;
    mlo_fail(x->q->m, MLO_E_UNSUPPORTED, from,
        "makes %lld..%lld; streams have 16 bits at most: round it (RequantShift)",
        (long long)range.lo, (long long)range.hi);
    return 0;
}

/* A node of a kernel that makes integers of so many bits, looked up by an index of so many (0: computed). */
static mlo_node *mlo_exact_node(
    mlo_takeover *x, const mlo_kernel *k, mlo_node *from, const char *out, int bits, int index) {
    mlo_sublayer b;
    memset(&b, 0, sizeof b);
    b.node = from;
    mlo_node *n = mlo_kernel_node(x->q, k, &b, out, mlo_exact_type(x, out, bits), bits, x->one);
    if (n && index) mlo_index_bounds(n, index);
    return n;
}

/* Weights that a norm's channels have in iteration i, or offsets, one behind the other. */
static int mlo_exact_along(
    mlo_takeover *x, const mlo_exact_unit *u, const char *name, int64_t i, int32_t *to) {
    mlo_array *a = mlo_exact_whole(x, x->in->body, u->from, name, i);
    for (int64_t c = 0; a && c < u->channels; c++)
        to[c] = (int32_t)mlo_get(a, mlo_array_count(a) > 1 ? c : 0);
    mlo_array_free(x->q->m, a);
    return mlo_failed(x->q->m);
}

/* log2 of a norm's D. */
static int mlo_exact_norm_shift(mlo_takeover *x, const mlo_exact_unit *u, int64_t i, int32_t *to) {
    int64_t p[MLO_DIALECT_NUMBERS];
    MLO_TRY(mlo_exact_shift(x, x->in->body, u->from, i, p));
    *to = p[0] > 0 ? mlo_log2(p[0]) : 0;
    return mlo_two_to(*to) == p[0]
        ? 0
        : mlo_fail(x->q->m, MLO_E_UNSUPPORTED, u->from,
              "D is %lld in iteration %lld; hardware divides a norm by powers of two: scale its "
              "weights (mlo run and --target c take any D)",
              (long long)p[0], (long long)i);
}

/* A norm's stream, weights, offsets (one, 0, where it has none), shift. */
static int mlo_exact_norm_inputs(
    mlo_takeover *x, const mlo_exact_unit *u, const mlo_node *r, const char *name, mlo_node *n) {
    (void)r;
    mlo *m = x->q->m;
    const int64_t all = x->q->scan.iterations, one = 1, c = u->channels;
    const int center = mlo_dialect_of(u->from)->norm > 1;
    const char *names[] = { u->in[0], mlo_format(m, "%s_w", name), mlo_format(m, "%s_b", name),
        mlo_format(m, "%s_p", name) };
    int32_t *w = (int32_t *)mlo_scratch(m, (size_t)(all * c), sizeof *w), *b = NULL, *p = NULL;
    mlo_interval weights = mlo_from_to(0, 0);
    if (w && !m->error.code) {
        b = (int32_t *)mlo_parameter(x->q, names[2], MLO_INT32, 1, center ? &c : &one);
        p = (int32_t *)mlo_parameter(x->q, names[3], MLO_INT32, 1, &one);
    }
    for (int64_t i = 0; p && i < all; i++)
        if (mlo_exact_along(x, u, u->from->input[1], i, w + i * c)
            || (center && mlo_exact_along(x, u, u->from->input[2], i, b + i * c))
            || mlo_exact_norm_shift(x, u, i, p + i))
            break;
    for (int64_t k = 0; p && k < all * c; k++) weights = mlo_joined(weights, mlo_just(w[k]));
    const mlo_dtype type = mlo_bits_for(weights) > 16 ? MLO_INT32 : MLO_INT16;
    void *to = p && !m->error.code ? mlo_parameter(x->q, names[1], type, 1, &c) : NULL;
    if (to) mlo_convert(type, to, MLO_INT32, w, (size_t)(all * c));
    mlo_scratch_free(m, w);
    return !to || mlo_attr_int(m, n, "center", center) ? mlo_failed(m) : mlo_inputs(m, n, names, 4);
}

/* Streams and weights, then words: of each channel; or, of two streams, one for all. */
static int mlo_exact_inputs(
    mlo_takeover *x, const mlo_exact_unit *u, const mlo_node *r, const char *name, mlo_node *n) {
    mlo_quantizer *q = x->q;
    const int64_t all = q->scan.iterations, words = u->kernel == &mlo_add_kernel ? 3 : 2;
    mlo_channel_words c;
    int64_t why[4];
    if (!n) return mlo_failed(q->m);
    if (u->inputs) return u->inputs(x, u, r, name, n);
    MLO_TRY(mlo_inputs(q->m, n, u->in, u->n_in));
    if (u->weight) MLO_TRY(mlo_node_input(q->m, n, u->weight));
    if (u->n_in < 2) {
        MLO_TRY(mlo_channel_parameters(q, name, u->channels, &c));
        for (int64_t i = 0, at = 0; i < all; i++, at += u->channels) {
            int32_t *const to[3] = { c.bias + at, c.mult + at, c.shift + at };
            if (!mlo_exact_words(x, u, r, i, to, why)) return mlo_failed(q->m);
        }
        return mlo_inputs(q->m, n, c.name, 3);
    }
    mlo_exact_unit one = *u;
    one.channels = 1;
    const char *p = mlo_format(q->m, "%s_p", name);
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &words) : NULL;
    for (int64_t i = 0; data && i < all; i++, data += words) {
        int32_t bias, *const to[3] = { &bias, data, data + words - 1 };
        if (!mlo_exact_words(x, &one, r, i, to, why)) return mlo_failed(q->m);
        if (words > 2) data[1] = data[0];
    }
    return q->m->error.code ? mlo_failed(q->m) : mlo_node_input(q->m, n, p);
}

/* What behind a kernel's own rounding is looked up. */
typedef struct {
    const mlo_node *shift; /* that rounding; NULL: none, its numbers are as they come */
    const mlo_node *clips; /* it, or a norm, which rounds by itself; NULL: nothing does */
    mlo_interval index; /* what it makes */
    int bits; /* of that */
    int first; /* of the chain: the first node that the table is of */
    int looked; /* 0: there is no table */
} mlo_exact_plan;

/* The table as a parameter of the loop; *range: of what is in it. */
static const char *mlo_exact_table(mlo_takeover *x, const mlo_exact_chain *c,
    const mlo_exact_plan *l, const char *name, mlo_interval *range) {
    mlo *m = x->q->m;
    const int64_t size = mlo_two_to(l->bits), all = x->q->scan.iterations;
    const char *table = mlo_format(m, "%s_table", name);
    const mlo_node *last = c->n ? c->node[c->n - 1] : l->clips;
    int64_t *entry = table ? (int64_t *)mlo_scratch(m, (size_t)(all * size), sizeof *entry) : NULL;
    void *data = NULL;
    int same;
    for (int64_t i = 0; entry && i < all; i++) {
        int64_t p[MLO_DIALECT_NUMBERS] = { 0, l->index.lo, l->index.hi, 0 };
        if (l->clips) mlo_exact_shift(x, x->in->body, l->clips, i, p);
        if (mlo_exact_entries(
                x, c, l->first, i, l->bits, mlo_from_to(p[1], p[2]), entry + i * size))
            break;
    }
    if (entry && !m->error.code) {
        *range = mlo_just(entry[0]);
        for (int64_t k = 0; k < all * size; k++) *range = mlo_joined(*range, mlo_just(entry[k]));
        /* what its rounding says, whatever was learned */
        if (mlo_exact_is_rounding(last)) mlo_exact_clips(x, x->in->body, last, all, range, &same);
        if (name == x->result) *range = mlo_joined(*range, x->carried);
        const mlo_dtype to = mlo_exact_type(x, name, mlo_bits_for(*range));
        if (mlo_exact_streams(x, last, *range)
            && (data = mlo_parameter(x->q, table, to, 1, &size)) != NULL)
            mlo_convert(to, data, MLO_INT64, entry, (size_t)(all * size));
    }
    mlo_scratch_free(m, entry);
    return data ? table : NULL;
}

/* Has R words, in every iteration? A sum of two streams has no bias, and one word for all channels. */
static int mlo_exact_has_words(
    mlo_takeover *x, const mlo_exact_unit *u, const mlo_node *r, int64_t why[4]) {
    mlo *m = x->q->m;
    const size_t n = (size_t)u->channels;
    int32_t *word = (int32_t *)mlo_scratch(m, 3 * n, sizeof *word);
    int ok = word != NULL;
    for (size_t k = 1; ok && u->n_in > 1 && k < 3; k++) ok = mlo_is_number(x->in, r->input[k]);
    for (int64_t i = 0; ok && i < x->q->scan.iterations; i++) {
        int32_t *const words[3] = { word, word + n, word + 2 * n };
        ok = mlo_exact_words(x, u, r, i, words, why) && (u->n_in < 2 || !word[0]);
    }
    mlo_scratch_free(m, word);
    return ok;
}

/* Which of the chain is the kernel's, which the table's. */
static int mlo_exact_plan_of(mlo_takeover *x, const mlo_exact_unit *u, const mlo_exact_chain *c,
    const char *name, mlo_exact_plan *l) {
    mlo *m = x->q->m;
    const int known = u->sums.hi >= u->sums.lo;
    int64_t why[4] = { 0 };
    int same = 1;
    l->shift = c->n && mlo_is_requant_shift(c->node[0]) ? c->node[0] : NULL;
    l->index = u->sums;
    if (l->shift && !mlo_exact_has_words(x, u, l->shift, why)) {
        if (m->error.code) return mlo_failed(m);
        if (!known || mlo_bits_for(u->sums) > MLO_EXACT_TABLE
            || !mlo_is_number(x->in, l->shift->input[1])
            || !mlo_is_number(x->in, l->shift->input[2]))
            return mlo_fail(m, MLO_E_UNSUPPORTED, l->shift,
                "mul %lld, add %lld, div %lld (channel %lld) have no exact form in hardware: mul, "
                "halved with div as long as it is even, has 15 bits, div is a power of two, add a "
                "multiple of mul (of two streams: 0, and one mul for all channels)",
                (long long)why[1], (long long)why[2], (long long)why[3], (long long)why[0]);
        l->shift = NULL;
    }
    if (!l->shift && !known)
        return mlo_fail(m, MLO_E_UNSUPPORTED, u->from,
            "a sum that nothing rounds; hardware hands on 16 bits at most: RequantShift has to "
            "follow");
    l->clips = l->shift ? l->shift : u->kernel == &mlo_exactnorm_kernel ? u->from : NULL;
    if (l->clips)
        MLO_TRY(mlo_exact_clips(x, x->in->body, l->clips, x->q->scan.iterations, &l->index, &same));
    l->first = l->shift ? 1 : 0;
    const int wide = name == x->result ? mlo_bits_for(mlo_joined(l->index, x->carried)) : 0;
    /* (a RequantShift whose least number is that of some bits has their largest, too) */
    const int clips = l->clips
        && (!same || wide > mlo_bits_for(l->index)
            || l->index.lo != mlo_signed_bits(mlo_bits_for(l->index)).lo);
    l->looked = clips || c->n > l->first;
    l->bits = l->looked ? mlo_bits_for(l->index) : (int)mlo_max(wide, mlo_bits_for(l->index));
    if (l->looked && l->bits > MLO_EXACT_TABLE)
        return mlo_fail(m, MLO_E_UNSUPPORTED, c->n ? c->node[c->n - 1] : u->from,
            "a function of numbers of %d bits; tables have indices of %d at most", l->bits,
            (int)MLO_EXACT_TABLE);
    return mlo_exact_streams(x, u->from, l->index) ? 0 : mlo_failed(m);
}

static mlo_exact_value *mlo_exact_made(
    mlo_takeover *x, const char *old, const char *name, mlo_interval range, int64_t channels) {
    mlo_exact_value *v = MLO_NEW(x->q->m, mlo_exact_value);
    if (!v) return NULL;
    v->name = name;
    v->range = range;
    v->channels = channels;
    return mlo_map_put(x->q->m, &x->made, old, v) ? NULL : v;
}

/* The kernel and the chain behind it, as `name`. *own: the kernel's node; a table is its own, or, where it has none,
 * a Requant's behind it. */
static mlo_exact_value *mlo_exact_finish(mlo_takeover *x, const mlo_exact_unit *u,
    const mlo_exact_chain *c, const char *name, mlo_node **own) {
    mlo *m = x->q->m;
    mlo_exact_plan l;
    if (mlo_exact_plan_of(x, u, c, name, &l)) return NULL;
    mlo_interval range = l.index;
    const char *table = l.looked ? mlo_exact_table(x, c, &l, name, &range) : NULL;
    const int apart = l.looked && !u->kernel->with_table, bits = mlo_bits_for(range);
    const char *out = apart ? mlo_format(m, "%s_index", name) : name;
    if (m->error.code) return NULL;
    const mlo_kernel *k = l.looked && !apart ? u->kernel->with_table : u->kernel;
    mlo_node *n = mlo_exact_node(
        x, k, u->from, out, l.looked && !apart ? bits : l.bits, l.looked && !apart ? l.bits : 0);
    if (mlo_exact_inputs(x, u, l.shift, out, n)) return NULL;
    *own = n;
    if (apart) {
        mlo_exact_unit look = { &mlo_requant_kernel, u->from, { out, NULL, NULL }, 1, NULL, NULL,
            l.index, u->channels, NULL, NULL };
        n = mlo_exact_node(x, mlo_requant_kernel.with_table, u->from, name, bits, l.bits);
        if (mlo_exact_inputs(x, &look, NULL, name, n)) return NULL;
    }
    if (table && mlo_node_input(m, n, table)) return NULL;
    return mlo_exact_made(x, name, name, range, u->channels);
}

/* ---- kinds ---------------------------------------------------------------- */

static mlo_exact_value *mlo_exact_of(mlo_takeover *x, const char *name);

/* Channels of a value, which has the loop's tokens; 0: it has others. */
static int64_t mlo_exact_channels(mlo_takeover *x, const mlo_node *n, const char *name) {
    const mlo_form f = mlo_body_form(x->in, name);
    const int64_t c = x->grid ? f.dims[1] : mlo_last_dim(&f);
    if (c > 0 && mlo_form_count(&f) == c * x->tokens) return c;
    mlo_fail(x->q->m, MLO_E_UNSUPPORTED, n,
        "'%s' is %s; the layers work on %lld tokens, and so has it to be", name,
        mlo_dims_text(x->q->m, f.rank, f.dims), (long long)x->tokens);
    return 0;
}

/* The weights of all iterations, in 8 bits: [K, N], or of a window [C, KH, KW]. across: they lie as [N, K]. */
static int mlo_exact_weights(mlo_takeover *x, mlo_exact_unit *u, const char *name,
    const char *weight, int across, const mlo_form *f) {
    mlo *m = x->q->m;
    const int64_t count = mlo_form_count(f), columns = f->dims[1];
    u->weight = mlo_format(m, "%s_w8", name);
    int8_t *data = u->weight ? (int8_t *)mlo_parameter(x->q, u->weight, MLO_INT8, f->rank, f->dims)
                             : NULL;
    for (int64_t i = 0; data && i < x->q->scan.iterations; i++, data += count) {
        mlo_array *w = mlo_exact_whole(x, x->in->body, u->from, weight, i);
        for (int64_t k = 0; w && k < count; k++) {
            const int64_t column = x->order ? x->order[k % columns] : k % columns;
            const int64_t v = mlo_get(
                w, across ? column * f->dims[0] + k / columns : k / columns * columns + column);
            if (v < INT8_MIN || v > INT8_MAX)
                mlo_fail(m, MLO_E_UNSUPPORTED, u->from,
                    "weight %lld in iteration %lld; hardware has weights of 8 bits", (long long)v,
                    (long long)i);
            data[k] = (int8_t)v;
        }
        mlo_array_free(m, w);
        if (m->error.code) break;
    }
    return mlo_failed(m);
}

/* Is a convolution, which leaves as many places, a linear layer of each? */
static int mlo_exact_is_pointwise(const mlo_node *n, const mlo_form *w) {
    int plain = mlo_int(n, "group", 1) == 1;
    for (int k = 2; k < w->rank; k++)
        plain &= w->dims[k] == 1 && mlo_listed(n, "strides", (size_t)k - 2, 1) == 1
            && mlo_listed(n, "pads", (size_t)k - 2, 0) == 0;
    return plain;
}

/* A depthwise convolution. */
static mlo_exact_value *mlo_exact_window(mlo_takeover *x, mlo_exact_unit *u,
    const mlo_exact_chain *c, const char *name, const mlo_form *w) {
    mlo *m = x->q->m;
    mlo_sublayer b;
    mlo_node *n = NULL;
    memset(&b, 0, sizeof b);
    const char *why = mlo_window_form(&x->q->r, u->from, &b);
    const mlo_form f = { MLO_INT8, 3, { w->dims[0], w->dims[2], w->rank > 3 ? w->dims[3] : 1 } };
    if (why) mlo_fail(m, MLO_E_UNSUPPORTED, u->from, "%s", why);
    u->kernel = &mlo_conv_kernel;
    if (why || mlo_exact_weights(x, u, name, u->from->input[1], 0, &f)) return NULL;
    mlo_exact_value *v = mlo_exact_finish(x, u, c, name, &n);
    return v && !mlo_attr_int(m, n, "width", b.width) && !mlo_attr_int(m, n, "top", b.top)
            && !mlo_attr_int(m, n, "left", b.left)
        ? v
        : NULL;
}

/* x W, whatever it is spelled as. */
static mlo_exact_value *mlo_exact_product(mlo_takeover *x, mlo_exact_unit *u,
    const mlo_exact_chain *c, const char *name, int64_t inputs) {
    mlo *m = x->q->m;
    mlo_node *n = u->from, *own;
    const mlo_form w = mlo_body_form(x->in, n->input[1]);
    const mlo_form f = { MLO_INT8, 2, { inputs, u->channels } };
    const int conv = mlo_is(n, "Conv"), across = conv || mlo_int(n, "transB", 0) != 0;
    if (conv && !mlo_exact_is_pointwise(n, &w)) return mlo_exact_window(x, u, c, name, &w);
    if (conv != x->grid || mlo_is_scaled_gemm(n) || mlo_form_count(&w) != inputs * u->channels) {
        mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "a product of this form (weights %s) of values whose channels are %s",
            mlo_dims_text(m, w.rank, w.dims), x->grid ? "in front of their places" : "last");
        return NULL;
    }
    u->kernel = &mlo_mvu_kernel;
    return mlo_exact_weights(x, u, name, n->input[1], across, &f)
        ? NULL
        : mlo_exact_finish(x, u, c, name, &own);
}

/* The linear layer or convolution that makes `name`, its bias; NULL: none does. */
static mlo_node *mlo_exact_layer(const mlo_takeover *x, const char *name, const char **bias) {
    static const char *const ops[] = { "MatMul", "Gemm", "Conv", NULL };
    mlo_node *n = mlo_made_by(x->in, name);
    *bias = NULL;
    for (int k = 0; k < 2 && mlo_is(n, "Add"); k++) {
        const mlo_form f = mlo_body_form(x->in, name);
        const mlo_value *sum = mlo_value_of(x->in->body, n->input[1 - k]);
        if (sum->n_uses == 1 && mlo_exact_by_channel(x, n->input[k], &f)
            && mlo_is_one_of(mlo_made_by(x->in, sum->name), ops)) {
            *bias = n->input[k];
            n = sum->producer;
        }
    }
    if (!mlo_is_one_of(n, ops) || !mlo_is_carried(x->in, n->input[0])
        || mlo_is_carried(x->in, n->input[1]))
        return NULL;
    if (mlo_is(n, "MatMul") || !mlo_has_input(n, 2)) return n;
    if (*bias) return NULL;
    *bias = n->input[2];
    return n;
}

static mlo_exact_value *mlo_exact_linear(
    mlo_takeover *x, mlo_node *n, const char *bias, const mlo_exact_chain *c, const char *name) {
    mlo_exact_unit u = { NULL, n, { NULL, NULL, NULL }, 1, NULL, bias, mlo_from_to(1, 0), 0, NULL,
        NULL };
    const mlo_exact_value *v = mlo_exact_of(x, n->input[0]);
    if (!v || !(u.channels = mlo_exact_channels(x, n, n->output[0]))) return NULL;
    u.in[0] = v->name;
    return mlo_exact_product(x, &u, c, name, v->channels);
}

/* a + b or a b, of two streams. */
static mlo_exact_value *mlo_exact_pair(
    mlo_takeover *x, mlo_node *n, const mlo_exact_chain *c, const char *name) {
    const int sum = mlo_is(n, "Add");
    const mlo_exact_value *a = mlo_exact_of(x, n->input[0]);
    const mlo_exact_value *b = a ? mlo_exact_of(x, n->input[1]) : NULL;
    mlo_node *own;
    if (!b) return NULL;
    if (a->channels != b->channels) {
        mlo_fail(x->q->m, MLO_E_UNSUPPORTED, n, "streams of %lld and %lld channels",
            (long long)a->channels, (long long)b->channels);
        return NULL;
    }
    mlo_exact_unit u = { sum ? &mlo_add_kernel : &mlo_mul_kernel, n, { a->name, b->name, NULL }, 2,
        NULL, NULL, sum ? mlo_sum_of(a->range, b->range) : mlo_product_of(a->range, b->range),
        a->channels, NULL, NULL };
    return mlo_exact_finish(x, &u, c, name, &own);
}

/* Is it a norm of a token's channels, with weights of each? */
static int mlo_exact_is_norm(const mlo_takeover *x, const mlo_node *n) {
    const mlo_dialect *d = n ? mlo_dialect_of(n) : NULL;
    if (!d || !d->norm || x->grid || !mlo_is_carried(x->in, n->input[0])) return 0;
    const mlo_form f = mlo_body_form(x->in, n->output[0]);
    for (int k = 1; k < d->operands; k++)
        if (!mlo_exact_by_channel(x, n->input[k], &f)) return 0;
    return 1;
}

static mlo_exact_value *mlo_exact_norm(
    mlo_takeover *x, mlo_node *n, const mlo_exact_chain *c, const char *name) {
    const mlo_exact_value *v = mlo_exact_of(x, n->input[0]);
    mlo_exact_unit u = { &mlo_exactnorm_kernel, n, { NULL, NULL, NULL }, 1, NULL, NULL,
        mlo_from_to(1, 0), 0, mlo_exact_norm_inputs, NULL };
    mlo_node *own;
    int same;
    if (!v || mlo_exact_clips(x, x->in->body, n, x->q->scan.iterations, &u.sums, &same))
        return NULL;
    u.in[0] = v->name;
    u.channels = v->channels;
    return mlo_exact_finish(x, &u, c, name, &own);
}

/* What a value that is there already becomes. */
static mlo_exact_value *mlo_exact_alone(
    mlo_takeover *x, const mlo_exact_chain *c, const char *name) {
    const mlo_exact_value *v = mlo_exact_of(x, c->base);
    mlo_node *own;
    if (!v) return NULL;
    mlo_exact_unit u = { &mlo_requant_kernel, c->node[0], { v->name, NULL, NULL }, 1, NULL, NULL,
        v->range, v->channels, NULL, NULL };
    return mlo_exact_finish(x, &u, c, name, &own);
}

/* Is it done number by number, with the same for all of a channel, or (first: of the chain) for all there are? */
static int mlo_exact_is_function(const mlo_takeover *x, const mlo_node *n) {
    const mlo_dialect *d = n ? mlo_dialect_of(n) : NULL;
    if (!n || !mlo_is_carried(x->in, n->input[0])) return 0;
    const mlo_form f = mlo_body_form(x->in, n->output[0]);
    if (!mlo_is(n, "Relu") && !mlo_is(n, "Clip") && !(d && d->one && !d->norm)) return 0;
    for (size_t k = 1; k < n->n_input; k++)
        if (mlo_has_input(n, k)
            && !(mlo_is_requant_shift(n) ? mlo_exact_by_channel(x, n->input[k], &f)
                                         : mlo_is_number(x->in, n->input[k])))
            return 0;
    return 1;
}

/* The chain that ends with `name`. It begins with a value that others read, too, or that is no function of one. */
static int mlo_exact_chain_of(const mlo_takeover *x, const char *name, mlo_exact_chain *c) {
    mlo_node *n;
    c->n = 0;
    for (c->base = name; mlo_exact_is_function(x, n = mlo_made_by(x->in, c->base));
        c->base = n->input[0]) {
        const mlo_value *v = mlo_value_of(x->in->body, c->base);
        /* numbers of channels are the kernel's, which is in front of tables */
        const int own = c->n && mlo_is_requant_shift(c->node[0])
            && (!mlo_is_number(x->in, c->node[0]->input[1])
                || !mlo_is_number(x->in, c->node[0]->input[2]));
        if ((c->n && v->n_uses > 1) || own || c->n == MLO_EXACT_CHAIN) break;
        for (int k = c->n++; k > 0; k--) c->node[k] = c->node[k - 1];
        c->node[0] = n;
    }
    return c->n;
}

/* ---- attention -------------------------------------------------------------- */

/* The constants of softmax, as exact/deeploy.c has them; n - 1 behind. */
enum { MLO_EXACT_SOFTMAX = 5, MLO_EXACT_SCORES = 256 };

/* From a value back, through functions of a number and views: the functions, the first in front; the views, the last
 * in front; where both end. */
typedef struct {
    mlo_exact_chain done;
    mlo_chain views;
} mlo_exact_walk;

/* An attention, from its end to its beginning. */
typedef struct mlo_exact_heads {
    mlo_node *mix; /* probabilities by values */
    mlo_node *softmax;
    mlo_node *scores; /* queries by keys */
    mlo_exact_chain probs; /* behind the softmax */
    mlo_exact_chain masked; /* behind the mask */
    mlo_exact_chain scaled; /* behind the scores */
    const char *mask; /* what is added; NULL: nothing */
    int64_t heads;
    int64_t d;
    int64_t keys;
    int hide; /* of the kernel */
    int bits[2]; /* of weights: of the largest, of the least that a largest score has */
    const char *score; /* parameters */
    const char *weight;
    int64_t *order[3]; /* [d]: of queries', keys', values' channels within a head */
} mlo_exact_heads;

/* A function of one number, the same for all there are: in whatever order they lie. */
static int mlo_exact_is_plain(const mlo_takeover *x, const mlo_node *n) {
    if (!mlo_exact_is_function(x, n)) return 0;
    for (size_t k = 1; k < n->n_input; k++)
        if (mlo_has_input(n, k) && !mlo_is_number(x->in, n->input[k])) return 0;
    return 1;
}

static void mlo_exact_push(mlo_exact_chain *c, mlo_node *n) {
    for (int k = c->n++; k > 0; k--) c->node[k] = c->node[k - 1];
    c->node[0] = n;
}

/* What a Concat hands on that joins it to nothing: a past without elements. NULL: it is none. */
static const char *mlo_exact_joined_to_none(const mlo_takeover *x, const mlo_node *n) {
    const char *from = NULL;
    for (size_t k = 0; mlo_is(n, "Concat") && k < n->n_input; k++) {
        const mlo_form f = mlo_body_form(x->in, n->input[k]);
        const int empty = mlo_form_known(&f) && !mlo_form_count(&f);
        if (!empty && from) return NULL;
        if (!empty) from = n->input[k];
    }
    return from && mlo_is_carried(x->in, from) ? from : NULL;
}

/* deep: to the end; else to where the last view is: what is behind that is in the stream's own order. */
static void mlo_exact_walk_back(
    const mlo_takeover *x, const char *name, int deep, mlo_exact_walk *w) {
    const char *end = name;
    int n = 0;
    memset(w, 0, sizeof *w);
    for (mlo_node *p; (p = mlo_made_by(x->in, name)) != NULL;) {
        const char *from = mlo_exact_joined_to_none(x, p);
        if (from) {
            name = from;
            continue;
        }
        if (mlo_is_layout(p) && mlo_is_carried(x->in, p->input[0]) && w->views.n < MLO_CHAIN) {
            w->views.node[w->views.n] = p;
            w->views.made[w->views.n++] = name;
            end = p->input[0];
            n = w->done.n;
        } else if (mlo_exact_is_plain(x, p) && w->done.n < MLO_EXACT_CHAIN)
            mlo_exact_push(&w->done, p);
        else
            break;
        name = p->input[0];
    }
    w->done.base = deep ? name : end;
    if (deep) return;
    for (int k = w->done.n - n, i = 0; i < n; i++) w->done.node[i] = w->done.node[i + k];
    w->done.n = n;
}

/* Functions alone, without views. */
static mlo_node *mlo_exact_behind(const mlo_takeover *x, const char *name, mlo_exact_chain *c) {
    mlo_node *p;
    c->n = 0;
    while (mlo_exact_is_plain(x, p = mlo_made_by(x->in, name)) && c->n < MLO_EXACT_CHAIN) {
        mlo_exact_push(c, p);
        name = p->input[0];
    }
    c->base = name;
    return p;
}

/* Is a value a product of two streams, behind functions and views, the first of which is a softmax's? */
static int mlo_exact_mixes(const mlo_takeover *x, const char *name, mlo_exact_walk *w) {
    mlo_exact_chain c;
    mlo_exact_walk_back(x, name, 1, w);
    const mlo_node *n = mlo_made_by(x->in, w->done.base);
    return mlo_is(n, "MatMul") && mlo_is_carried(x->in, n->input[0])
        && mlo_is_carried(x->in, n->input[1])
        && mlo_is(mlo_exact_behind(x, n->input[0], &c), "mlo.iSoftmax");
}

static int mlo_exact_is_identity_map(const mlo_array *map) {
    for (int64_t i = 0; map && i < mlo_array_count(map); i++)
        if (((const int32_t *)map->data)[i] != i) return 0;
    return map != NULL;
}

/* Is a value another one of the same tokens and channels, in another form? */
static int mlo_exact_is_view(const mlo_takeover *x, const char *name, mlo_exact_walk *w) {
    const mlo_form to = mlo_body_form(x->in, name);
    mlo_exact_walk_back(x, name, 0, w);
    const mlo_form from = mlo_body_form(x->in, w->done.base);
    if (x->grid || w->done.n || !w->views.n || mlo_last_dim(&from) != mlo_last_dim(&to)) return 0;
    mlo_array *map = mlo_index_map(x->in, w->done.base, &w->views);
    const int same = mlo_exact_is_identity_map(map);
    mlo_array_free(x->in->m, map);
    return same;
}

static mlo_exact_value *mlo_exact_view(mlo_takeover *x, const mlo_exact_walk *w, const char *name) {
    const mlo_exact_value *v = mlo_exact_of(x, w->done.base);
    return v ? mlo_exact_made(x, name, v->name, v->range, v->channels) : NULL;
}

/* Does a chain leave all numbers of a range as they are, in every iteration? 1, 0 (or it failed). */
static int mlo_exact_is_nothing(mlo_takeover *x, const mlo_exact_chain *c, mlo_interval range) {
    const int bits = mlo_bits_for(range);
    const int64_t size = mlo_two_to(bits);
    if (!c->n || bits > MLO_EXACT_TABLE) return !c->n;
    int64_t *entry = (int64_t *)mlo_scratch(x->q->m, (size_t)size, sizeof *entry);
    int same = entry != NULL;
    for (int64_t i = 0; same && i < x->q->scan.iterations; i++) {
        same = !mlo_exact_entries(x, c, 0, i, bits, range, entry);
        for (int64_t k = 0; same && k < size; k++)
            same = entry[k] == mlo_clip(k - size / 2, range.lo, range.hi);
    }
    mlo_scratch_free(x->q->m, entry);
    return same;
}

/* An operand's stream: what is in front of its views, with what is done to its numbers between them. */
static mlo_exact_value *mlo_exact_operand(
    mlo_takeover *x, const mlo_exact_walk *w, const char *name) {
    mlo_exact_value *v = mlo_exact_of(x, w->done.base);
    mlo_exact_value *made = (mlo_exact_value *)mlo_map_get(&x->made, name);
    if (!v || made || mlo_exact_is_nothing(x, &w->done, v->range)) return made ? made : v;
    return x->q->m->error.code ? NULL : mlo_exact_alone(x, &w->done, name);
}

/* Is a value that lies as tokens of heads do seen as heads of tokens? */
static int mlo_exact_is_headed(
    const mlo_takeover *x, const char *source, const mlo_chain *views, const mlo_heads *v) {
    const mlo_form f = mlo_body_form(x->in, source);
    const int64_t width = v->heads * v->d;
    mlo_array *map = mlo_form_count(&f) == v->t * width ? mlo_index_map(x->in, source, views)
                                                        : NULL;
    int ok = map && mlo_array_count(map) == v->t * width;
    for (int64_t k = 0; ok && k < v->t * width; k++)
        ok = ((const int32_t *)map->data)[mlo_head_place(v, k % width / v->d, k / width, k % v->d)]
            == k;
    mlo_array_free(x->in->m, map);
    return ok;
}

/* ---- rotations ---------------------------------------------------------------- */

/* A matrix for each token that turns pairs of a head's channels. */
typedef struct {
    const mlo_node *node;
    int64_t d;
    int64_t tokens; /* of the matrices: one for all, or one for each */
    int64_t *order; /* [d]: pairs side by side */
    const char *table;
} mlo_exact_rotation;

/* x [.., T, H, D] times [.., T, D, D], which no layer makes. */
static int mlo_exact_is_turn(const mlo_takeover *x, const mlo_node *n) {
    if (!mlo_is(n, "MatMul") || !mlo_is_carried(x->in, n->input[0])
        || mlo_is_carried(x->in, n->input[1]))
        return 0;
    const mlo_form w = mlo_body_form(x->in, n->input[1]), y = mlo_body_form(x->in, n->output[0]);
    return w.rank > 2 && mlo_last_dim(&w) == w.dims[w.rank - 2]
        && mlo_last_dim(&w) == mlo_last_dim(&y);
}

/* The number of a token's matrix that channel i of what is turned has in channel j of the result. */
static int64_t mlo_exact_turn_at(
    const mlo_exact_rotation *t, const mlo_array *a, int64_t token, int64_t i, int64_t j) {
    return mlo_get(a, ((t->tokens > 1 ? token : 0) * t->d + i) * t->d + j);
}

/* Which channel turns with which, as these matrices say: partner[i], -1: with none. */
static int mlo_exact_partners(
    mlo_takeover *x, const mlo_exact_rotation *t, const mlo_array *a, int64_t *partner) {
    for (int64_t k = 0; k < t->tokens * t->d * t->d; k++) {
        const int64_t i = k / t->d % t->d, j = k % t->d;
        if (i == j || !mlo_exact_turn_at(t, a, k / (t->d * t->d), i, j)) continue;
        if ((partner[i] >= 0 && partner[i] != j) || (partner[j] >= 0 && partner[j] != i))
            return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, t->node,
                "a matrix for each token that mixes channel %lld of a head with channels %lld and "
                "%lld; hardware turns pairs of channels",
                (long long)i, (long long)j, (long long)(partner[i] >= 0 ? partner[i] : partner[j]));
        partner[i] = j;
        partner[j] = i;
    }
    return 0;
}

/* Pairs side by side; channels that stay as they are make pairs, too. */
static int mlo_exact_order(mlo_takeover *x, mlo_exact_rotation *t, const int64_t *partner) {
    int64_t n = 0, lone = -1;
    for (int64_t i = 0; i < t->d; i++) {
        if (partner[i] > i) {
            t->order[n++] = i;
            t->order[n++] = partner[i];
        } else if (partner[i] < 0 && lone >= 0) {
            t->order[n++] = lone;
            t->order[n++] = i;
            lone = -1;
        } else if (partner[i] < 0)
            lone = i;
    }
    return n == t->d
        ? 0
        : mlo_fail(x->q->m, MLO_E_UNSUPPORTED, t->node,
              "heads of %lld channels that are turned; pairs take an even number", (long long)t->d);
}

/* Cosines and sines of one iteration's pairs. */
static int mlo_exact_turns(
    mlo_takeover *x, const mlo_exact_rotation *t, const mlo_array *a, int64_t i, int16_t *to) {
    for (int64_t k = 0; k < x->tokens * t->d; k += 2) {
        const int64_t token = k / t->d, p = t->order[k % t->d], q = t->order[k % t->d + 1];
        const int64_t c = mlo_exact_turn_at(t, a, token, p, p);
        const int64_t s = mlo_exact_turn_at(t, a, token, p, q);
        if (mlo_exact_turn_at(t, a, token, q, q) != c || mlo_exact_turn_at(t, a, token, q, p) != -s
            || mlo_bits_for(mlo_joined(mlo_just(c), mlo_just(s))) > 16)
            return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, t->node,
                "the matrix of token %lld in iteration %lld has %lld, %lld, %lld, %lld for "
                "channels "
                "%lld and %lld of a head; a rotation has c, s, -s, c, of 16 bits",
                (long long)token, (long long)i, (long long)c, (long long)s,
                (long long)mlo_exact_turn_at(t, a, token, q, p),
                (long long)mlo_exact_turn_at(t, a, token, q, q), (long long)p, (long long)q);
        to[k] = (int16_t)c;
        to[k + 1] = (int16_t)s;
    }
    return 0;
}

/* Its matrices of all iterations: pairs, then their table, as a parameter. */
static int mlo_exact_turn_table(mlo_takeover *x, mlo_exact_rotation *t, const char *name) {
    mlo *m = x->q->m;
    const char *matrix = t->node->input[1];
    const int64_t shape[] = { x->tokens, t->d };
    int64_t *partner = (int64_t *)mlo_scratch(m, (size_t)t->d, sizeof *partner);
    int16_t *to = NULL;
    for (int64_t k = 0; partner && k < t->d; k++) partner[k] = -1;
    for (int pass = 0; pass < 2 && !m->error.code; pass++) {
        if (pass && !mlo_exact_order(x, t, partner)) {
            t->table = mlo_format(m, "%s_turns", name);
            to = t->table ? (int16_t *)mlo_parameter(x->q, t->table, MLO_INT16, 2, shape) : NULL;
        }
        for (int64_t i = 0; i < x->q->scan.iterations && !m->error.code; i++) {
            mlo_array *a = mlo_exact_whole(x, x->in->body, t->node, matrix, i);
            if (a && pass)
                mlo_exact_turns(x, t, a, i, to + i * x->tokens * t->d);
            else if (a)
                mlo_exact_partners(x, t, a, partner);
            mlo_array_free(m, a);
        }
    }
    mlo_scratch_free(m, partner);
    return mlo_failed(m);
}

static int mlo_exact_turn_inputs(
    mlo_takeover *x, const mlo_exact_unit *u, const mlo_node *r, const char *name, mlo_node *n) {
    mlo_quantizer *q = x->q;
    const mlo_exact_rotation *t = (const mlo_exact_rotation *)u->with;
    const int64_t two = 2;
    const char *p = mlo_format(q->m, "%s_p", name);
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &two) : NULL;
    mlo_exact_unit one = *u;
    int64_t why[4];
    one.channels = 1;
    for (int64_t i = 0; data && i < q->scan.iterations; i++, data += two) {
        int32_t bias, *const to[3] = { &bias, &data[0], &data[1] };
        if (!mlo_exact_words(x, &one, r, i, to, why)) return mlo_failed(q->m);
    }
    const char *in[] = { u->in[0], t->table, p };
    if (q->m->error.code || mlo_attr_int(q->m, n, "heads", u->channels / t->d))
        return mlo_failed(q->m);
    return mlo_inputs(q->m, n, in, 3);
}

/* A stream whose heads have their channels in this order: the linear layer that makes it makes them so. */
static mlo_exact_value *mlo_exact_reordered(
    mlo_takeover *x, const mlo_node *blame, const char *base, const mlo_exact_rotation *t) {
    mlo *m = x->q->m;
    mlo_exact_chain c;
    const char *bias, *name = mlo_format(m, "%s_paired", base);
    if (mlo_is_identity(t->order, t->d)) return mlo_exact_of(x, base);
    mlo_exact_chain_of(x, base, &c);
    mlo_node *layer = mlo_exact_layer(x, c.base, &bias);
    const int64_t n = layer ? mlo_exact_channels(x, layer, c.base) : 0;
    if (!layer && !m->error.code)
        mlo_fail(m, MLO_E_UNSUPPORTED, blame,
            "pairs of channels that are not side by side, of '%s', which no linear layer makes; "
            "such a one "
            "makes its channels in the order that hardware takes",
            base);
    int64_t *order = n && mlo_exact_of(x, layer->input[0]) ? MLO_NEW_N(m, int64_t, (size_t)n)
                                                           : NULL;
    for (int64_t k = 0; order && k < n; k++) order[k] = k / t->d * t->d + t->order[k % t->d];
    if (!order || !name) return NULL;
    x->order = order;
    mlo_exact_value *v = mlo_exact_linear(x, layer, bias, &c, name);
    x->order = NULL;
    return v;
}

/* What is behind a rotation, as `name`, of heads of tokens; the order that its channels have then: into h. */
static mlo_exact_value *mlo_exact_turned(
    mlo_takeover *x, const mlo_exact_heads *h, int k, mlo_exact_walk *w, const char *name) {
    mlo *m = x->q->m;
    mlo_node *n = mlo_made_by(x->in, w->done.base), *own;
    const mlo_form f = mlo_body_form(x->in, n->input[1]);
    const mlo_heads as_tokens = { x->tokens, 1, h->heads * h->d, 0 };
    mlo_exact_rotation t = { n, h->d, mlo_form_count(&f) / (h->d * h->d), h->order[k], NULL };
    mlo_exact_walk from;
    mlo_exact_walk_back(x, n->input[0], 0, &from);
    if (mlo_last_dim(&f) != h->d || (t.tokens != 1 && t.tokens != x->tokens) || from.done.n
        || !mlo_exact_is_headed(x, from.done.base, &from.views, &as_tokens)) {
        mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "a matrix %s for heads of %lld channels; a rotation is of [tokens, heads, channels], "
            "with a "
            "matrix for each token, or one for all",
            mlo_dims_text(m, f.rank, f.dims), (long long)h->d);
        return NULL;
    }
    if (!mlo_is_parameter(&x->q->scan, x->in->body, n->input[1], 0)) {
        mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "a rotation by '%s', which is known when the model runs; hardware has tables of "
            "constants: "
            "make it an initializer",
            n->input[1]);
        return NULL;
    }
    if (mlo_exact_turn_table(x, &t, name)) return NULL;
    const mlo_exact_value *v = mlo_exact_reordered(x, n, from.done.base, &t);
    if (!v) return NULL;
    const mlo_exact_unit u = { &mlo_rotary_kernel, n, { v->name, NULL, NULL }, 2, NULL, NULL,
        mlo_from_to(1, 0), v->channels, mlo_exact_turn_inputs, &t };
    mlo_exact_chain rest = w->done;
    mlo_interval clips;
    int same;
    for (rest.n = 0; rest.n + 1 < w->done.n; rest.n++) rest.node[rest.n] = w->done.node[rest.n + 1];
    if (w->done.n && mlo_is_requant_shift(w->done.node[0])
        && !mlo_exact_clips(x, x->in->body, w->done.node[0], x->q->scan.iterations, &clips, &same)
        && mlo_exact_is_nothing(x, &rest, clips))
        w->done.n = 1;
    return m->error.code ? NULL : mlo_exact_finish(x, &u, &w->done, name, &own);
}

/* Operand k of an attention (queries, keys, values), laid out as heads of a token's channels. */
static mlo_exact_value *mlo_exact_of_heads(mlo_takeover *x, const mlo_exact_heads *h, int k) {
    static const char *const what[] = { "queries", "keys", "values" };
    mlo *m = x->q->m;
    const mlo_node *n = k < 2 ? h->scores : h->mix;
    const char *name = n->input[k > 0];
    const mlo_heads at = { x->tokens, h->heads, h->d, k == 1 };
    mlo_exact_walk w;
    for (int64_t c = 0; c < h->d; c++) h->order[k][c] = c;
    mlo_exact_walk_back(x, name, 1, &w);
    const int turned = mlo_exact_is_turn(x, mlo_made_by(x->in, w.done.base));
    if (!turned) mlo_exact_walk_back(x, name, 0, &w);
    const mlo_form f = mlo_body_form(x->in, w.done.base), last = mlo_body_form(x->in, name);
    if ((!turned && mlo_last_dim(&f) != h->heads * h->d)
        || !mlo_exact_is_headed(x, w.done.base, &w.views, &at)) {
        if (!m->error.code)
            mlo_fail(m, MLO_E_UNSUPPORTED, n,
                "%s that are no heads of a token's channels: '%s', %s, behind '%s', %s (a cache in "
                "front, "
                "keys that heads share have no exact kernel)",
                what[k], name, mlo_dims_text(m, last.rank, last.dims), w.done.base,
                mlo_dims_text(m, f.rank, f.dims));
        return NULL;
    }
    return turned ? mlo_exact_turned(x, h, k, &w, name) : mlo_exact_operand(x, &w, name);
}

/* Are heads joined to tokens again, [heads, tokens, d] to [tokens, heads d]? */
static int mlo_exact_joins(const mlo_takeover *x, const mlo_exact_heads *h, const mlo_chain *c) {
    mlo_array *map = mlo_index_map(x->in, h->mix->output[0], c);
    const int64_t width = h->heads * h->d;
    int ok = map && mlo_array_count(map) == x->tokens * width;
    for (int64_t i = 0; ok && i < x->tokens * width; i++)
        ok = ((const int32_t *)map->data)[i]
            == (i % width / h->d * x->tokens + i / width) * h->d + i % h->d;
    mlo_array_free(x->in->m, map);
    return ok;
}

/* Finds an attention's parts from its mix on. */
static int mlo_exact_parts(mlo_takeover *x, mlo_node *mix, mlo_exact_heads *h) {
    mlo *m = x->q->m;
    memset(h, 0, sizeof *h);
    h->mix = mix;
    h->softmax = mlo_exact_behind(x, mix->input[0], &h->probs);
    mlo_node *n = mlo_exact_behind(x, h->softmax->input[0], &h->masked);
    if (mlo_is(n, "Add")) {
        const int first = mlo_is_carried(x->in, n->input[0]);
        if (mlo_is_carried(x->in, n->input[first]))
            return mlo_fail(m, MLO_E_UNSUPPORTED, n, "scores that get a sum of the layer's own");
        h->mask = n->input[first];
        n = mlo_exact_behind(x, n->input[1 - first], &h->scaled);
    } else
        h->scaled = h->masked;
    if (!h->mask) h->masked.n = 0;
    h->scores = n;
    if (!mlo_is(n, "MatMul") || !mlo_is_carried(x->in, n->input[0])
        || !mlo_is_carried(x->in, n->input[1]))
        return mlo_fail(m, MLO_E_UNSUPPORTED, h->softmax,
            "a softmax of what is no product of queries and keys, with functions of one number and "
            "at "
            "most one mask behind");
    const mlo_form s = mlo_body_form(x->in, n->output[0]);
    const mlo_form o = mlo_body_form(x->in, mix->output[0]);
    if (x->grid || s.rank < 3 || o.rank != s.rank || s.dims[s.rank - 2] != x->tokens
        || s.dims[s.rank - 1] != x->tokens)
        return mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "scores %s of %lld tokens; attention is of [.., heads, %lld, %lld]",
            mlo_dims_text(m, s.rank, s.dims), (long long)x->tokens, (long long)x->tokens,
            (long long)x->tokens);
    h->keys = x->tokens;
    h->heads = mlo_form_count(&s) / (x->tokens * x->tokens);
    h->d = mlo_last_dim(&o);
    return 0;
}

/* What a mask adds to scores of keys that it shows, and hides: an iteration's. Those behind the query are hidden, or
 * all are alike. */
static int mlo_exact_mask(mlo_takeover *x, mlo_exact_heads *h, int64_t i, int64_t add[2]) {
    mlo *m = x->q->m;
    const mlo_node *reader = mlo_made_by(
        x->in, h->masked.n ? h->masked.node[0]->input[0] : h->softmax->input[0]);
    add[0] = add[1] = 0;
    if (!h->mask) return 0;
    if (!mlo_is_parameter(&x->q->scan, x->in->body, h->mask, 0))
        return mlo_fail(m, MLO_E_UNSUPPORTED, reader,
            "a mask '%s' that is known when the model runs; attention of integers has masks that "
            "are "
            "constants: make it an initializer",
            h->mask);
    mlo_array *a = mlo_exact_whole(x, x->in->body, reader, h->mask, i);
    if (!a) return mlo_failed(m);
    const int64_t t = h->keys, count = mlo_array_count(a);
    const int64_t columns = a->rank ? a->dims[a->rank - 1] : 1,
                  rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    const int64_t copies = count / mlo_max(1, columns * rows);
    int ok = count > 0;
    for (int64_t k = 0; ok && k < copies * t * t; k++) {
        const int64_t query = k / t % t, key = k % t,
                      v = mlo_get(a,
                          (k / (t * t) * rows + (rows > 1 ? query : 0)) * columns
                              + (columns > 1 ? key : 0));
        if (!k) add[0] = add[1] = v;
        if (k == 1 && key > query) add[1] = v;
        ok = v == add[key > query];
        if (!ok)
            mlo_fail(m, MLO_E_UNSUPPORTED, reader,
                "mask '%s' adds %lld for query %lld and key %lld in iteration %lld, and %lld "
                "elsewhere; "
                "hardware adds one number to scores of keys up to the query, one to those behind "
                "it",
                h->mask, (long long)v, (long long)query, (long long)key, (long long)i,
                (long long)add[key > query]);
    }
    mlo_array_free(m, a);
    if (add[0] != add[1]) h->hide = 2;
    return mlo_failed(m);
}

/* Numbers of one array, all changed: + add. */
static void mlo_exact_shifted(mlo_array *a, int64_t add) {
    const size_t size = mlo_dtype_size(a->dtype);
    for (int64_t k = 0; k < mlo_array_count(a); k++) {
        double v;
        char *at = (char *)a->data + (size_t)k * size;
        mlo_convert(MLO_DOUBLE, &v, a->dtype, at, 1);
        v += (double)add;
        mlo_convert(a->dtype, at, MLO_DOUBLE, &v, 1);
    }
}

/* What 256 scores become in iteration i, in front of the softmax, with a mask's number. */
static int mlo_exact_score_row(
    mlo_takeover *x, const mlo_exact_heads *h, int64_t i, int64_t add, int8_t *to) {
    mlo *m = x->q->m;
    int64_t p[MLO_DIALECT_NUMBERS];
    const int64_t size = MLO_EXACT_SCORES;
    MLO_TRY(mlo_exact_shift(x, x->in->body, h->scaled.node[0], i, p));
    mlo_array *v = mlo_array_new(m, MLO_FLOAT, 1, &size);
    for (int64_t k = 0; v && k < size; k++)
        ((float *)v->data)[k] = (float)mlo_clip(k - size / 2, p[1], p[2]);
    if (v && !mlo_exact_apply(x, &h->scaled, 1, i, &v)) {
        mlo_exact_shifted(v, add);
        mlo_exact_apply(x, &h->masked, 0, i, &v);
    }
    for (int64_t k = 0; v && !m->error.code && k < size; k++) {
        int64_t r;
        mlo_convert(MLO_INT64, &r, v->dtype,
            (const char *)v->data + (size_t)k * mlo_dtype_size(v->dtype), 1);
        if (r < INT8_MIN || r > INT8_MAX)
            mlo_fail(m, MLO_E_UNSUPPORTED, h->softmax,
                "score %lld becomes %lld in front of the softmax in iteration %lld; attention of "
                "integers "
                "has 8 bits there: round it (RequantShift)",
                (long long)(k - size / 2), (long long)r, (long long)i);
        to[k] = (int8_t)r;
    }
    mlo_array_free(m, v);
    return mlo_failed(m);
}

/* The numbers of a softmax in iteration i: A, B, C, log2, n - 1. */
static int mlo_exact_softmax(mlo_takeover *x, const mlo_exact_heads *h, int64_t i, int64_t *p) {
    int64_t given[MLO_DIALECT_NUMBERS] = { 0 };
    for (size_t k = 0; k < MLO_EXACT_SOFTMAX; k++) {
        mlo_array *a = mlo_exact_whole(x, x->in->body, h->softmax, h->softmax->input[k + 1], i);
        if (!a) return mlo_failed(x->q->m);
        given[k] = mlo_get(a, 0);
        mlo_array_free(x->q->m, a);
    }
    const char *wrong = mlo_isoftmax_numbers(given, p);
    if (wrong) return mlo_fail(x->q->m, MLO_E_DATA, h->softmax, "%s", wrong);
    return p[4] >= 1 && p[4] <= 255
        ? 0
        : mlo_fail(x->q->m, MLO_E_UNSUPPORTED, h->softmax,
              "an iSoftmax of %lld levels; hardware has 2..256", (long long)p[4] + 1);
}

static int mlo_exact_weight_row(
    mlo_takeover *x, mlo_exact_heads *h, int64_t i, const int64_t *p, int32_t *to) {
    int64_t most = 0;
    for (int64_t k = 0; k < MLO_EXACT_SCORES; k++) {
        const int64_t e = mlo_isoftmax_weight(k, p);
        if (e < 0 || e >= mlo_two_to(MLO_TABLE_WEIGHT_BITS) || (!k && !e))
            return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, h->softmax,
                "its coefficients weigh a score that is %lld below the largest by %lld in "
                "iteration %lld; "
                "hardware has weights of 0..%lld, and of the largest score more than 0",
                (long long)k, (long long)e, (long long)i,
                (long long)mlo_two_to(MLO_TABLE_WEIGHT_BITS) - 1);
        most = mlo_max(most, e);
        to[k] = (int32_t)e;
    }
    const int bits = mlo_bits_for(mlo_from_to(0, most)) - 1,
              least = mlo_bits_for(mlo_just(to[0])) - 1;
    h->bits[0] = (int)mlo_max(h->bits[0], mlo_max(2, bits));
    h->bits[1] = h->bits[1] ? (int)mlo_min(h->bits[1], least) : least;
    return 0;
}

/* Both tables of all iterations, as parameters. */
static int mlo_exact_head_tables(mlo_takeover *x, mlo_exact_heads *h, const char *name) {
    mlo *m = x->q->m;
    const int64_t all = x->q->scan.iterations, size = MLO_EXACT_SCORES;
    int64_t add[2], p[MLO_DIALECT_NUMBERS];
    for (int64_t i = 0; i < all; i++) MLO_TRY(mlo_exact_mask(x, h, i, add));
    const int64_t scores = h->hide ? 2 * size : size;
    h->score = mlo_format(m, "%s_score", name);
    h->weight = mlo_format(m, "%s_weight", name);
    if (m->error.code) return mlo_failed(m);
    int8_t *score = (int8_t *)mlo_parameter(x->q, h->score, MLO_INT8, 1, &scores);
    int32_t *weight = score ? (int32_t *)mlo_parameter(x->q, h->weight, MLO_INT32, 1, &size) : NULL;
    for (int64_t i = 0; weight && i < all; i++, score += scores, weight += size) {
        MLO_TRY(mlo_exact_mask(x, h, i, add));
        MLO_TRY(mlo_exact_score_row(x, h, i, add[0], score));
        if (h->hide) MLO_TRY(mlo_exact_score_row(x, h, i, add[1], score + size));
        for (int64_t k = 1; k < scores; k++)
            if (k % size && score[k] < score[k - 1])
                return mlo_fail(m, MLO_E_UNSUPPORTED, h->softmax,
                    "what is done to scores in front of the softmax falls, from %d to %d, in "
                    "iteration "
                    "%lld; hardware looks for the largest before it: functions that never fall",
                    score[k - 1], score[k], (long long)i);
        MLO_TRY(mlo_exact_softmax(x, h, i, p));
        MLO_TRY(mlo_exact_weight_row(x, h, i, p, weight));
    }
    return mlo_failed(m);
}

/* Multiplier and shift of a RequantShift in iteration i, of a multiplier up to `most`, without an add; what it clips
 * to. Without one: numbers stay. */
static int mlo_exact_lone_ratio(mlo_takeover *x, const mlo_node *r, int64_t i, int64_t most,
    int32_t *mult, int32_t *shift, mlo_interval *clips) {
    mlo *m = x->q->m;
    int64_t p[MLO_DIALECT_NUMBERS], own[2] = { 0, 0 }, bias, a, b;
    *mult = 2;
    *shift = 1;
    if (!r) return 0;
    MLO_TRY(mlo_exact_shift(x, x->in->body, r, i, p));
    for (size_t k = 0; k < 2; k++) {
        mlo_array *v = mlo_exact_whole(x, x->in->body, r, r->input[k + 1], i);
        if (!v) return mlo_failed(m);
        own[k] = mlo_get(v, 0);
        mlo_array_free(m, v);
    }
    if (!mlo_exact_ratio(own[0], own[1], p[3], most, &bias, &a, &b) || bias
        || b > MLO_ATTENTION_SHIFT)
        return mlo_fail(m, MLO_E_UNSUPPORTED, r,
            "mul %lld, add %lld, div %lld inside an attention have no exact form in hardware: mul, "
            "halved "
            "with div as long as it is even, is at most %lld, add is 0, div is a power of two",
            (long long)own[0], (long long)own[1], (long long)p[0], (long long)most);
    *mult = (int32_t)a;
    *shift = (int32_t)b;
    *clips = mlo_from_to(p[1], p[2]);
    return 0;
}

/* The constants of iteration i, without those of the result. */
static int mlo_exact_head_numbers(
    mlo_takeover *x, const mlo_exact_heads *h, int64_t i, int32_t *p) {
    mlo *m = x->q->m;
    int64_t s[MLO_DIALECT_NUMBERS];
    mlo_interval scores = mlo_signed_bits(8), probs = mlo_from_to(0, 255);
    const mlo_node *first = h->scaled.node[0], *behind = h->probs.n ? h->probs.node[0] : NULL;
    if (mlo_exact_softmax(x, h, i, s)
        || mlo_exact_lone_ratio(
            x, first, i, MLO_TABLE_MR_MOST, &p[MLO_TABLE_MR], &p[MLO_TABLE_SR], &scores)
        || mlo_exact_lone_ratio(
            x, behind, i, MLO_TABLE_MP_MOST, &p[MLO_TABLE_MP], &p[MLO_TABLE_SP], &probs))
        return mlo_failed(m);
    if (scores.lo < -128 || scores.hi > 127)
        return mlo_fail(m, MLO_E_UNSUPPORTED, first,
            "scores of %lld..%lld; attention of integers rounds them to 8 bits, -128..127",
            (long long)scores.lo, (long long)scores.hi);
    if (probs.lo > 0 || probs.hi < 0 || probs.hi > 255)
        return mlo_fail(m, MLO_E_UNSUPPORTED, behind,
            "probabilities of %lld..%lld; attention of integers has 0..255 at most",
            (long long)probs.lo, (long long)probs.hi);
    p[MLO_TABLE_N] = (int32_t)s[4];
    p[MLO_TABLE_HP] = (int32_t)probs.hi;
    return 0;
}

/* What an attention's node is given: its streams, its constants, its tables. */
static int mlo_exact_head_inputs(
    mlo_takeover *x, const mlo_exact_unit *u, const mlo_node *r, const char *name, mlo_node *n) {
    mlo_quantizer *q = x->q;
    const mlo_exact_heads *h = (const mlo_exact_heads *)u->with;
    const int64_t size = MLO_TABLE_NUMBERS;
    const char *p = mlo_format(q->m, "%s_p", name);
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &size) : NULL;
    mlo_exact_unit one = *u;
    int64_t why[4];
    one.channels = 1;
    for (int64_t i = 0; data && i < q->scan.iterations; i++, data += size) {
        int32_t bias, *const to[3] = { &bias, &data[MLO_TABLE_MO], &data[MLO_TABLE_SO] };
        if (!mlo_exact_words(x, &one, r, i, to, why) || mlo_exact_head_numbers(x, h, i, data))
            return mlo_failed(q->m);
    }
    const char *in[] = { u->in[0], u->in[1], u->in[2], q->keys[0].bits, p, h->score, h->weight };
    if (q->m->error.code || mlo_attr_int(q->m, n, "heads", h->heads)
        || mlo_attr_int(q->m, n, "weight_bits", h->bits[0])
        || mlo_attr_int(q->m, n, "least_bits", h->bits[1])
        || (h->hide && mlo_attr_int(q->m, n, "hide", h->hide)))
        return mlo_failed(q->m);
    return mlo_inputs(q->m, n, in, 7);
}

/* Are what rounds inside RequantShifts where hardware has them: behind scores, at most one behind the softmax? */
static int mlo_exact_rounds_inside(mlo_takeover *x, const mlo_exact_heads *h) {
    if (!h->scaled.n || !mlo_is_requant_shift(h->scaled.node[0]))
        return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, h->scores,
            "scores that no RequantShift rounds to 8 bits; attention of integers has such scores");
    if (h->probs.n > 1 || (h->probs.n && !mlo_is_requant_shift(h->probs.node[0])))
        return mlo_fail(x->q->m, MLO_E_UNSUPPORTED, h->softmax,
            "%d functions of its probabilities; attention of integers has one RequantShift there",
            h->probs.n);
    return 0;
}

/* softmax(q k^T ..) v, of heads: joined to tokens, and what is done to its numbers. */
static mlo_exact_value *mlo_exact_attention(
    mlo_takeover *x, const mlo_exact_walk *w, const char *name) {
    mlo *m = x->q->m;
    mlo_exact_heads h;
    mlo_node *mix = mlo_made_by(x->in, w->done.base), *own;
    mlo_exact_unit u = { &mlo_attention_table_kernel, mix, { NULL, NULL, NULL }, 3, NULL, NULL,
        mlo_from_to(1, 0), 0, mlo_exact_head_inputs, &h };
    if (mlo_exact_parts(x, mix, &h) || mlo_exact_rounds_inside(x, &h)) return NULL;
    u.channels = h.heads * h.d;
    if (!mlo_exact_joins(x, &h, &w->views)) {
        mlo_fail(
            m, MLO_E_UNSUPPORTED, mix, "heads that are not joined back into the token's channels");
        return NULL;
    }
    for (int k = 0; k < 3; k++) h.order[k] = MLO_NEW_N(m, int64_t, (size_t)h.d);
    for (int k = 0; k < 3 && !m->error.code; k++) {
        const mlo_exact_value *v = mlo_exact_of_heads(x, &h, k);
        if (!v) return NULL;
        u.in[k] = v->name;
    }
    for (int64_t c = 0; c < h.d && !m->error.code; c++)
        if (h.order[0][c] != h.order[1][c])
            mlo_fail(m, MLO_E_UNSUPPORTED, h.scores,
                "queries and keys that are turned in other pairs: channel %lld of a head with "
                "%lld, %lld",
                (long long)c, (long long)h.order[0][c], (long long)h.order[1][c]);
    if (m->error.code) return NULL;
    if (mlo_exact_head_tables(x, &h, name)) return NULL;
    x->q->keys[0].bits = mlo_intern(m, "mlo_mask");
    x->q->r.tokens = x->tokens;
    return mlo_exact_finish(x, &u, &w->done, name, &own);
}

static mlo_exact_value *mlo_exact_new(mlo_takeover *x, const char *name) {
    const char *bias;
    mlo_exact_chain c;
    mlo_exact_walk w;
    if (mlo_exact_mixes(x, name, &w)) return mlo_exact_attention(x, &w, name);
    mlo_exact_chain_of(x, name, &c);
    mlo_node *n = mlo_made_by(x->in, c.base), *layer = mlo_exact_layer(x, c.base, &bias);
    const mlo_value *base = mlo_value_of(x->in->body, c.base);
    const int norm = mlo_exact_is_norm(x, n);
    if (c.n && (!n || norm || mlo_exact_is_function(x, n) || base->n_uses > 1 || mlo_is_layout(n)))
        return mlo_exact_alone(x, &c, name);
    if (layer) return mlo_exact_linear(x, layer, bias, &c, name);
    if (norm) return mlo_exact_norm(x, n, &c, name);
    if (mlo_is_layout(n) && mlo_exact_is_view(x, name, &w)) return mlo_exact_view(x, &w, name);
    if ((mlo_is(n, "Add") || mlo_is(n, "Mul")) && mlo_is_carried(x->in, n->input[0])
        && mlo_is_carried(x->in, n->input[1]))
        return mlo_exact_pair(x, n, &c, name);
    if (n)
        mlo_fail(x->q->m, MLO_E_UNSUPPORTED, n,
            "no kernel makes these integers exactly; there are kernels for linear layers, "
            "depthwise convolutions, sums and products of two streams, norms over channels, "
            "attention "
            "with iSoftmax, and functions of one number (mlo run and --target c know all of "
            "Deeploy's "
            "operators)");
    else
        mlo_fail_at(x->q->m, MLO_E_UNSUPPORTED, c.base,
            "layers read this value, which does not come from the carried one");
    return NULL;
}

static mlo_exact_value *mlo_exact_of(mlo_takeover *x, const char *name) {
    mlo_exact_value *v = (mlo_exact_value *)mlo_map_get(&x->made, name);
    if (v) return v;
    if (++x->depth > MLO_EXACT_DEPTH) {
        mlo_fail_at(x->q->m, MLO_E_UNSUPPORTED, name, "a loop body deeper than %d layers",
            (int)MLO_EXACT_DEPTH);
        return NULL;
    }
    v = mlo_exact_new(x, name);
    x->depth--;
    return v;
}

/* ---- the loop ------------------------------------------------------------- */

/* What goes from layer to layer, and into the first. */
static int mlo_exact_carried(mlo_takeover *x) {
    mlo_quantizer *q = x->q;
    const mlo_node *last = mlo_made_by(x->in, x->result);
    const mlo_node *first = mlo_maker_in(q->scan.outer, q->scan.node->input[0]);
    mlo_interval before;
    int same;
    if (!mlo_exact_is_rounding(last))
        return mlo_fail(q->m, MLO_E_UNSUPPORTED, last ? last : q->scan.node,
            "makes what goes from layer to layer, '%s', and rounds nothing; hardware hands on what "
            "a RequantShift or a norm makes",
            x->result);
    MLO_TRY(mlo_exact_clips(x, x->in->body, last, q->scan.iterations, &x->carried, &same));
    if (mlo_exact_is_rounding(first)) {
        MLO_TRY(mlo_exact_clips(x, q->scan.outer, first, 1, &before, &same));
        x->carried = mlo_joined(x->carried, before);
    } else
        mlo_inform(q->m, "'%s' is taken to be integers of %lld..%lld, as layers hand on",
            q->scan.node->input[0], (long long)x->carried.lo, (long long)x->carried.hi);
    return mlo_exact_streams(x, last, x->carried) ? 0 : mlo_failed(q->m);
}

/* Options that choose integers have nothing to choose. */
static void mlo_exact_options(mlo_quantizer *q) {
    static const char *const options[] = { "weights", "activations", "residual", "scale",
        "max-cost", "max-error", "q-config", NULL };
    for (int k = 0; options[k]; k++)
        if (mlo_opt(q->m, options[k]))
            mlo_warn(q->m, "--%s changes nothing: the network's own integers are taken over",
                options[k]);
    q->pow2 = 0;
}

static int mlo_exact_open(mlo_takeover *x, mlo_quantizer *q) {
    mlo *m = q->m;
    const mlo_graph *body = q->scan.body;
    memset(x, 0, sizeof *x);
    x->q = q;
    q->r.m = m;
    q->r.body = q->scan.body;
    q->r.scan = &q->scan;
    MLO_TRY(mlo_inside_of(m, &q->scan, &q->r.in));
    x->in = &q->r.in;
    x->result = body->output[0]->name;
    const mlo_form f = mlo_body_form(x->in, body->input[0]->name);
    for (size_t i = 0; i < body->n_node; i++) x->grid |= mlo_is(body->node[i], "Conv");
    const int64_t channels = f.rank < 2 ? 1 : x->grid ? f.dims[1] : mlo_last_dim(&f);
    x->tokens = mlo_form_count(&f) / mlo_max(1, channels);
    if (f.rank < 2 || (x->grid && f.dims[0] != 1))
        return mlo_fail(m, MLO_E_UNSUPPORTED, q->scan.node,
            "layers hand on %s; tokens with channels are supported: [.., T, C], or with "
            "convolutions [1, C, H, W]",
            mlo_dims_text(m, f.rank, f.dims));
    if (!(x->one = MLO_NEW_N(m, double, (size_t)q->scan.iterations))) return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++) x->one[i] = 1;
    if (mlo_exact_carried(x)) return mlo_failed(m);
    return mlo_exact_made(x, body->input[0]->name, body->input[0]->name, x->carried, channels)
        ? 0
        : mlo_failed(m);
}

/* [1, C, ..] to [1, .., C], or back. */
static int mlo_exact_turn(
    mlo_takeover *x, mlo_graph *list, const char *in, const char *out, int rank, int back) {
    mlo *m = x->q->m;
    int64_t perm[MLO_MAX_RANK] = { 0 };
    for (int k = 1; k < rank; k++) perm[k] = back ? (k == 1 ? rank - 1 : k - 1) : k + 1;
    if (!back) perm[rank - 1] = 1;
    mlo_node *n = mlo_node_new(m, "Transpose", out);
    return !n || mlo_attr_ints(m, n, "perm", perm, (size_t)rank) || mlo_node_input(m, n, in)
        || mlo_node_output(m, n, out) || mlo_graph_add(m, list, n);
}

/* In the place of the old loop: integers of its tokens, the new loop, and back. */
static int mlo_exact_edges(mlo_takeover *x, mlo_graph *list) {
    mlo_quantizer *q = x->q;
    mlo *m = q->m;
    const char *in = q->scan.node->input[0], *out = q->scan.node->output[0];
    const mlo_form f = mlo_body_form(x->in, q->scan.body->input[0]->name);
    const mlo_exact_value *v = (mlo_exact_value *)mlo_map_get(
        &x->made, q->scan.body->input[0]->name);
    const mlo_form frame = { MLO_FLOAT, 3, { 1, x->tokens, v->channels } };
    mlo_form turned = f;
    const int bits = mlo_bits_for(x->carried);
    const char *a = mlo_format(m, "%s_turned", in), *b = mlo_format(m, "%s_frame", in);
    const char *y = mlo_format(m, "%s_q", out), *c = mlo_format(m, "%s_frame", out);
    const char *d = mlo_format(m, "%s_turned", out);
    if (m->error.code) return mlo_failed(m);
    for (int k = 1; x->grid && k < f.rank; k++) turned.dims[k] = f.dims[k + 1 < f.rank ? k + 1 : 1];
    if ((x->grid && mlo_exact_turn(x, list, in, a, f.rank, 0))
        || mlo_reshape_edge(q, list, x->grid ? a : in, b, &frame)
        || mlo_edge_node(
            q, list, mlo_quantize_kernel.op.name, b, q->loop->input[0], 1, bits, MLO_INT16)
        || mlo_node_output(m, q->loop, y) || mlo_graph_add(m, list, q->loop)
        || mlo_edge_node(q, list, mlo_dequantize_kernel.op.name, y, c, 1, bits, MLO_INT16)
        || mlo_reshape_edge(q, list, c, x->grid ? d : out, x->grid ? &turned : &f))
        return mlo_failed(m);
    return x->grid && mlo_exact_turn(x, list, d, out, f.rank, 1) ? mlo_failed(m) : 0;
}

/* Puts the new loop where the old one is. */
static int mlo_exact_replace(mlo_takeover *x) {
    mlo_quantizer *q = x->q;
    mlo_graph *g = q->scan.outer, list = { 0 };
    for (size_t i = 0; i < g->n_node; i++)
        if (g->node[i] == q->scan.node ? mlo_exact_edges(x, &list)
                                       : mlo_graph_add(q->m, &list, g->node[i]))
            return mlo_failed(q->m);
    g->node = list.node;
    g->n_node = list.n_node;
    return 0;
}

/* The loop of integers as kernels, in the model. */
static int mlo_quantize_exact(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_takeover x;
    mlo_exact_options(q);
    if (mlo_exact_open(&x, q)
        || mlo_meta_put(m, &m->model->meta, &m->model->n_meta, mlo_key_integers, "1"))
        return mlo_failed(m);
    q->loop = mlo_node_new(m, "Scan", mlo_node_name(q->scan.node));
    q->body = MLO_NEW(m, mlo_graph);
    const char *in = mlo_format(m, "%s_q", q->scan.node->input[0]);
    const mlo_form f = { MLO_INT16, 3,
        { 1, x.tokens,
            ((mlo_exact_value *)mlo_map_get(&x.made, q->scan.body->input[0]->name))->channels } };
    mlo_value_info *state = mlo_info_new(m, q->scan.body->input[0]->name, &f);
    if (!q->loop || !q->body || !state || mlo_node_input(m, q->loop, in)
        || !MLO_PUSH(m, q->body->input, q->body->n_input, state))
        return mlo_failed(m);
    q->body->name = q->scan.body->name;
    const mlo_exact_value *y = mlo_exact_of(&x, x.result);
    mlo_value_info *out = y ? mlo_info_new(m, y->name, &f) : NULL;
    if (!out || !MLO_PUSH(m, q->body->output, q->body->n_output, out)) return mlo_failed(m);
    return mlo_exact_replace(&x);
}
