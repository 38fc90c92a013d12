/* narrow: which kernels requantize in 32 bits, and which attentions have scores of 32.
 *
 * in:  a core, the parameters of all its layers.
 * out: for each matrix and each rescaling the `part` of mlo_requantize_narrow that suits all its sums, for
 *     each attention that of mlo_softmax_weigh_narrow, or 0: those take mlo_requantize and
 *     mlo_softmax_weigh, in 64 bits. Both give the same numbers; of 32 bits processors have lanes.
 *
 * A sum is at most its bias and each weight by the largest operand there may be: of a value that a kernel of
 * the layer made as many bits as that clips to, of one from outside all that its type holds.
 *
 * invariant: for any words of the caller's, what mlo_requantize_narrow wants of its arguments is true. (A cache holds
 *     what runs have written there.)
 * example: 64 operands of 11 bits, shifts from 24 to 26: sums below 2^23, part 16.
 * cost: one element's parameters of one layer in memory at a time; each is read once.
 */
enum { MLO_NARROW_PART = 16, MLO_NARROW_DOWN = 30 };

typedef struct {
    int64_t sum; /* the largest */
    int64_t least; /* of the shifts */
    int64_t most;
} mlo_c_sums;

typedef struct {
    int part[MLO_CORE_MOST]; /* of each element; 0: its sums take 64 bits */
} mlo_c_narrow;

/* Bits of a value: as many as its kernel clips to; all of its type where no kernel made it. */
static int mlo_c_bits(const mlo_core *c, const char *name, int said, mlo_dtype dtype) {
    for (int i = 0; i < c->n_element; i++)
        for (size_t k = 0; k < c->element[i].node->n_output; k++) {
            const mlo_element *e = &c->element[i];
            if (e->node->output[k] != name) continue;
            if (!e->kernel) return mlo_c_bits(c, e->node->input[0], said, dtype);
            return e->kernel->kind == MLO_KERNEL_REPLAY ? mlo_bits_of(dtype) : said;
        }
    return mlo_bits_of(dtype);
}

/* The largest sum of column j: of a rescaling there is one operand, as it is. */
static int64_t mlo_c_largest(
    const mlo_element *e, mlo_array *const *in, int64_t j, int64_t operand) {
    const int matrix = e->kernel->kind == MLO_KERNEL_MATRIX;
    const int64_t bias = mlo_get(in[matrix ? 2 : 1], j);
    int64_t weights = !matrix;
    for (int64_t i = 0; matrix && i < in[1]->dims[0]; i++) {
        const int64_t w = mlo_get(in[1], i * in[1]->dims[1] + j);
        weights += w < 0 ? -w : w;
    }
    return (bias < 0 ? -bias : bias) + weights * operand;
}

/* What iteration i has. */
static int mlo_c_sums_see(
    mlo *m, const mlo_core *c, const mlo_element *e, int64_t i, mlo_c_sums *s) {
    mlo_array *in[8] = { 0 };
    const int matrix = e->kernel->kind == MLO_KERNEL_MATRIX;
    const int bits = mlo_c_bits(c, e->node->input[0], e->site.in_bits[0], e->site.in[0].dtype);
    if (!mlo_element_inputs(m, c, e, i, in)) {
        const mlo_array *shift = in[matrix ? 4 : 3];
        for (int64_t j = 0; j < mlo_array_count(shift); j++) {
            s->sum = mlo_max(s->sum, mlo_c_largest(e, in, j, (int64_t)1 << (bits - 1)));
            s->least = mlo_min(s->least, mlo_get(shift, j));
            s->most = mlo_max(s->most, mlo_get(shift, j));
        }
    }
    for (int k = 0; k < 8; k++) mlo_array_free(m, in[k]);
    return mlo_failed(m);
}

/* What iteration i has of an attention: the largest score there may be, by two: so much lies between two of them.
 * (What the source rounds, or caps, or has a bias for, takes 64 bits: it is as if that were too much.) */
static int mlo_c_scores_see(
    mlo *m, const mlo_core *c, const mlo_element *e, int64_t i, mlo_c_sums *s) {
    mlo_array *in[8] = { 0 };
    const mlo_node *n = e->node;
    const mlo_row_rounding r = mlo_attention_rounding(n, NULL);
    const int64_t d = mlo_last_dim(&e->site.in[0]) / mlo_attention_heads(n);
    const int q = mlo_c_bits(c, n->input[0], e->site.in_bits[0], e->site.in[0].dtype);
    const int k = mlo_c_bits(c, n->input[1], e->site.in_bits[1], e->site.in[1].dtype);
    const int plain = !r.probs && !r.rounded && !r.capped && !mlo_attention_biased(n)
        && !mlo_attention_tabled(n);
    if (!mlo_element_inputs(m, c, e, i, in)) {
        const int64_t mult = mlo_get(in[4], 0), shift = mlo_get(in[4], 1);
        const int fits = plain && mult >= 0 && mult < 1 << 15;
        s->sum = mlo_max(s->sum, fits ? d << (q + k - 1) : INT64_MAX);
        s->least = mlo_min(s->least, shift);
        s->most = mlo_max(s->most, shift);
    }
    for (int j = 0; j < 8; j++) mlo_array_free(m, in[j]);
    return mlo_failed(m);
}

/* The `part` of such sums. */
static int mlo_c_part(const mlo_c_sums *s) {
    const int64_t part = mlo_min(MLO_NARROW_PART, s->least - 1);
    if (part < 1 || s->most > part + MLO_NARROW_DOWN) return 0;
    return s->sum < (int64_t)1 << (15 + part) ? (int)part : 0;
}

static int mlo_c_narrow_of(mlo *m, const mlo_core *c, mlo_c_narrow *n) {
    for (int i = 0; i < c->n_element; i++) {
        const mlo_element *e = &c->element[i];
        mlo_c_sums s = { 0, INT32_MAX, 0 };
        n->part[i] = 0;
        if (!e->kernel) continue;
        const int scores = e->kernel->kind == MLO_KERNEL_ATTENTION;
        if (!scores && e->kernel->kind != MLO_KERNEL_MATRIX
            && e->kernel->kind != MLO_KERNEL_RESCALE)
            continue;
        for (int64_t k = 0; k < c->scan.iterations; k++)
            MLO_TRY(scores ? mlo_c_scores_see(m, c, e, k, &s) : mlo_c_sums_see(m, c, e, k, &s));
        n->part[i] = mlo_c_part(&s);
    }
    return 0;
}
