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

/* Keys, or values, that stay: those of earlier tokens come into each iteration, and all leave it. */
typedef struct {
    const mlo_node *from; /* what joins them, or reads them: to blame */
    const char *past; /* in the old body; NULL: there is none */
    const char *tap; /* in the old body; NULL: none leave */
    const char *name; /* in the new body: of all tokens */
    const char *stack; /* what comes into the new loop of the past */
    const int64_t *order; /* [d]: of a head's channels */
    int64_t heads;
    int64_t d;
    int64_t tokens; /* of the past */
    int64_t keys; /* with it */
    int bits;
} mlo_exact_cache;

typedef struct mlo_takeover {
    mlo_quantizer *q;
    const mlo_inside *in;
    /* makes a value that is not there yet: exact_loop.c, which knows all kinds */
    mlo_exact_value *(*make)(struct mlo_takeover *x, const char *name);
    int grid; /* 1: channels are in front of places: [1, C, H, W], [1, C, T] */
    int64_t tokens;
    double *one; /* [iterations]: the step of every value */
    mlo_map made; /* name in the old body -> mlo_exact_value */
    const char *result;
    mlo_interval carried; /* of what goes from layer to layer */
    const int64_t *order; /* of a linear layer's columns; NULL: as they are */
    mlo_exact_cache *cache;
    size_t n_cache;
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

/* The multiplier and shift of all channels in iteration i; 1 and 0 as mlo_exact_words. */
static int mlo_exact_one(mlo_takeover *x, const mlo_exact_unit *u, const mlo_node *r, int64_t i,
    int32_t *mult, int32_t *shift) {
    int32_t bias, *const to[3] = { &bias, mult, shift };
    mlo_exact_unit one = *u;
    int64_t why[4];
    one.channels = 1;
    return mlo_exact_words(x, &one, r, i, to, why);
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
    const char *p = mlo_format(q->m, "%s_p", name);
    int32_t *data = p ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &words) : NULL;
    for (int64_t i = 0; data && i < all; i++, data += words) {
        if (!mlo_exact_one(x, u, r, i, data, data + words - 1)) return mlo_failed(q->m);
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
        const int one = mlo_is_number(x->in, l->shift->input[1])
            && mlo_is_number(x->in, l->shift->input[2]);
        if (u->n_in > 1 && !one)
            return mlo_fail(m, MLO_E_UNSUPPORTED, l->shift,
                "mul and add have a number for each channel; in hardware a sum or product of two "
                "streams has one mul for all channels, and add 0");
        if (!known || mlo_bits_for(u->sums) > MLO_EXACT_TABLE || !one)
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

/* What a value of the old body becomes. */
static mlo_exact_value *mlo_exact_of(mlo_takeover *x, const char *name) {
    mlo_exact_value *v = (mlo_exact_value *)mlo_map_get(&x->made, name);
    if (v) return v;
    if (++x->depth > MLO_EXACT_DEPTH) {
        mlo_fail_at(x->q->m, MLO_E_UNSUPPORTED, name, "a loop body deeper than %d layers",
            (int)MLO_EXACT_DEPTH);
        return NULL;
    }
    v = x->make(x, name);
    x->depth--;
    return v;
}

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

/* In front of all that is in a chain. */
static void mlo_exact_push(mlo_exact_chain *c, mlo_node *n) {
    for (int k = c->n++; k > 0; k--) c->node[k] = c->node[k - 1];
    c->node[0] = n;
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
        mlo_exact_push(c, n);
    }
    return c->n;
}
