/* scales: decides what the integers stand for.
 *
 * in:  signals (the values between sublayers) with their statistics, and the float weights of the
 *     sublayers that read them.
 * out: scale, shape and zero of every signal. The integer of channel c is
 *     y[c] = (x[c] - zero[c]) / (scale shape[c]), rounded: the shape is a factor per channel.
 *
 * A signal has a wide form, a narrow form, or both. The wide form is the residual stream: 16 bits,
 * one scale, no zero, a quarter of headroom. The narrow form is what matrices and tables read: 8
 * bits and what --max-cost adds where it helps most (15 % more bits in products, in a decoder 25 %,
 * if nobody sets a width). As it has few bits, its readers decide what it gets:
 *
 *     a narrow form that is              gets
 *     read by linear layers alone        a scale, and a zero and a factor (shape) per channel. The
 *                                        shape is the best of a few between "ranges become equal"
 *                                        and "weights become equal", by the expected error of the
 *                                        product (Xiao et al., SmoothQuant, search alpha); where
 *                                        weights get few bits (and tokens enough were seen), each
 *                                        channel's factor then moves to where that error is least
 *     the values of an attention         the same; as the probabilities of a row sum to one, the
 *                                        result has the same zero and shape
 *     the keys of an attention           a zero per channel: a softmax ignores what is added to all
 *                                        scores of a row
 *     made by a table, read by linear    one scale and one zero
 *     the index of a table               one scale and one zero, over the range in which the
 *                                        function is not flat
 *     made by a product                  a scale, and a factor per channel where one of its operands
 *                                        can have it, too (gate.c); no zero
 *     anything else                      one scale
 *
 * With --scale pow2 every scale is a power of two, so that going from one to another is a shift.
 * What is given (mlo_given: by the source model, by a q_config) is taken as it is.
 *
 * invariant: nothing here costs hardware: all of it ends in multipliers, shifts, biases, tables and
 *     weights, which are parameters anyway.
 * example: one channel of a residual stream reaches 28, the others stay below 1. One scale for all
 *     leaves the others 4 of 127 steps. A scale per channel costs nothing where linear layers read
 *     the stream: row c of their weights is multiplied by shape[c], and zero W goes into the bias.
 * cost: reads the weights once, a layer at a time.
 */
enum { MLO_INDEX_BITS = 10, MLO_SAMPLES_FEW = 8, MLO_SHAPE_SWEEPS = 6 };

static const double mlo_headroom = 1.25;
/* The mean square error of scores, in nats, that is left alone: it changes a probability by a
 * seventh of itself. Rows of a softmax average over such errors. */
static const double mlo_blur_most = 0.02;

static double mlo_top(const mlo_signal *s) { return ldexp(1, s->bits - 1) - 1; }

static double mlo_wide_top(const mlo_signal *s) { return ldexp(1, s->wide_bits - 1) - 1; }

static int mlo_is_pow2(double x) {
    int e;
    return frexp(x, &e) <= 0.5 && x > 0;
}

static double mlo_pow2_up(double x) {
    int e;
    double f = frexp(x, &e);
    return ldexp(1, f <= 0.5 ? e - 1 : e);
}

static double mlo_pow2_near(double x) {
    int e;
    double f = frexp(x, &e);
    return ldexp(1, f < 0.70710678118654752 ? e - 1 : e);
}

/* A scale that is at least x, as it is stored: a float, or a power of two. */
static double mlo_step(const mlo_quantizer *q, double x) {
    return q->pow2 ? mlo_pow2_up(x) : (double)(float)x;
}

/* ---- what is given -------------------------------------------------------- */

/* The real value that the integer 0 stands for. Integers are signed here, so unsigned ones are
 * shifted by half their range. */
static double mlo_given_zero(const mlo_given *g, int64_t i) {
    return -g->scale[i] * ((g->zero ? g->zero[i] : 0) - (g->sign ? 0 : ldexp(1, g->bits - 1)));
}

static const mlo_given *mlo_narrow_given(const mlo_signal *s) {
    return s->given_narrow ? s->given_narrow : s->given;
}

/* What is given for the wide form. A wide form has no zero, so what has one is not taken over. */
static const mlo_given *mlo_wide_given(const mlo_quantizer *q, const mlo_signal *s) {
    const mlo_given *g = s->given_wide ? s->given_wide : s->given;
    for (int64_t i = 0; g && g->scale && i < q->scan.iterations; i++)
        if (mlo_differs(mlo_given_zero(g, i), 0)) return NULL;
    return g;
}

static int mlo_given_scaled(const mlo_given *g) { return g && g->scale; }

/* The value is given with zeros that a wide form cannot have: it is made in the narrow form, and
 * the residual stream gets its wide form from that. */
static int mlo_widened(const mlo_quantizer *q, const mlo_signal *s) {
    return s->wide && mlo_given_scaled(s->given) && !s->given_wide && !mlo_wide_given(q, s);
}

/* Both forms are given and are the same: nothing has to be done between them. */
static int mlo_one_form(const mlo_quantizer *q, const mlo_signal *s) {
    const mlo_given *n = mlo_narrow_given(s), *w = mlo_wide_given(q, s);
    if (!mlo_given_scaled(n) || !mlo_given_scaled(w) || s->bits != s->wide_bits) return 0;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        double off = n->scale[i] - w->scale[i], zero = mlo_given_zero(n, i);
        if (mlo_differs(off, 0) || mlo_differs(zero, 0)) return 0;
    }
    return 1;
}

static int mlo_given_check(
    mlo_quantizer *q, const char *name, const mlo_given *g, int least, int most, int64_t count) {
    if (g->bits < least || g->bits > most)
        return mlo_fail_at(q->m, MLO_E_UNSUPPORTED, name,
            "%d bits are fixed for this value; %d to %d are supported", g->bits, least, most);
    for (int64_t i = 0; g->scale && i < count; i++) {
        if (!(g->scale[i] > 0 && g->scale[i] < 1e30))
            return mlo_fail_at(q->m, MLO_E_DATA, name,
                "a scale of %g is fixed for this value; it must be above 0", g->scale[i]);
        if (q->pow2 && !mlo_is_pow2(g->scale[i]))
            return mlo_fail_at(q->m, MLO_E_UNSUPPORTED, name,
                "a scale of %g is fixed for this value, which is no power of two; --scale real "
                "takes it",
                g->scale[i]);
    }
    return 0;
}

/* Takes over the given widths, and refuses what cannot be. */
static int mlo_obey_widths(mlo_quantizer *q, mlo_signal *s) {
    const mlo_given *n = mlo_narrow_given(s), *w = mlo_wide_given(q, s);
    int index = s->reads[MLO_UNARY] > 0;
    if (n && (s->narrow || mlo_widened(q, s))
        && mlo_given_check(q, s->name, n, 2, index ? 12 : 16, q->scan.iterations))
        return mlo_failed(q->m);
    if (w && s->wide && mlo_given_check(q, s->name, w, 2, 16, q->scan.iterations))
        return mlo_failed(q->m);
    if (n) s->bits = n->bits;
    if (w) s->wide_bits = w->bits;
    return 0;
}

/* Takes over the given scale and zero of the narrow form. */
static void mlo_obey(mlo_quantizer *q, mlo_signal *s) {
    const mlo_given *g = mlo_narrow_given(s);
    s->shape = NULL;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        s->narrow_scale[i] = g->scale[i];
        for (int64_t c = 0; c < s->channels; c++)
            s->zero[i * s->channels + c] = mlo_given_zero(g, i);
    }
}

/* Takes over what the source model fixes. A rounding that the residual stream does not pass through
 * fixes the narrow form. */
static int mlo_demand_given(mlo_quantizer *q) {
    for (size_t k = 0; k < q->n_signals; k++) {
        mlo_signal *s = q->signals[k];
        if (s->given && s->raw) {
            s->given_narrow = s->given;
            s->given = NULL;
        }
    }
    for (size_t k = 0; k < q->r.n_block; k++) {
        mlo_sublayer *b = q->r.block[k];
        if (b->card->given && b->card->given(q, b)) break;
    }
    if (q->r.left_out)
        mlo_warn(q->m,
            "%zu roundings of the model are left out: inside attentions, and where readers round "
            "one value differently. The integer model is finer there",
            q->r.left_out);
    if (q->r.anew.count)
        mlo_warn(q->m,
            "%zu weights are quantized anew, with a scale for each output channel; %s (%s), the "
            "first: %s",
            q->r.anew.count, mlo_node_name(q->r.anew.node), q->r.anew.node->op, q->r.anew.why);
    return mlo_failed(q->m);
}

/* ---- demands -------------------------------------------------------------- */

static int mlo_demand(mlo_quantizer *q) {
    for (size_t i = 0; i < q->r.n_block; i++) {
        mlo_sublayer *b = q->r.block[i];
        int wide = b->card->reads_wide;
        for (int k = 0; k < b->n_in; k++) {
            mlo_signal *s = mlo_signal_of(q, b->in[k]);
            if (!s) return mlo_failed(q->m);
            if (wide)
                s->wide = 1;
            else
                s->narrow = 1;
            if (wide && b->raw[k]) s->raw = 1;
            s->reads[b->kind]++;
            s->operand = k;
            if (b->card->operand_bits) s->bits = b->card->operand_bits;
        }
        mlo_signal *out = mlo_signal_of(q, b->out);
        if (!out) return mlo_failed(q->m);
        out->maker = b;
        if (b->card->makes_wide) out->wide = 1;
    }
    mlo_signal *in = mlo_signal_of(q, q->scan.body->input[0]->name);
    mlo_signal *out = in ? mlo_signal_of(q, q->result) : NULL;
    if (!out) return mlo_failed(q->m);
    in->wide = out->wide = 1;
    if (q->r.raw_result) out->raw = 1;
    return mlo_demand_given(q);
}

/* What is fixed of the value that goes into a layer, and of what comes out of it, is one thing. */
static int mlo_carried_agrees(
    mlo_quantizer *q, const char *out, const mlo_given *a, const mlo_given *b) {
    if (a->bits != b->bits)
        return mlo_fail_at(q->m, MLO_E_UNSUPPORTED, out,
            "%d bits are fixed for what goes into a layer and %d for what comes out of it ('%s'), "
            "which the next layer reads; give both one width",
            a->bits, b->bits, out);
    for (int64_t i = 1; a->scale && b->scale && i < q->scan.iterations; i++)
        if (mlo_differs(a->scale[i], b->scale[i - 1]))
            return mlo_fail_at(q->m, MLO_E_UNSUPPORTED, out,
                "a scale of %g is fixed for what goes into a layer and %g for what comes out of "
                "the one before; give both one scale",
                a->scale[i], b->scale[i - 1]);
    return 0;
}

/* The carried value leaves an iteration as it enters the next: with one width, and the scales of
 * iteration k + 1 are those that iteration k leaves with. */
static int mlo_unite_carried(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_signal *in = mlo_signal_of(q, q->scan.body->input[0]->name);
    mlo_signal *out = mlo_signal_of(q, q->result);
    const mlo_given *a = mlo_wide_given(q, in), *b = mlo_wide_given(q, out), *one = a ? a : b;
    size_t n = (size_t)q->scan.iterations;
    /* both are the source model's, which agrees with itself */
    if (mlo_given_scaled(in->given) && mlo_given_scaled(out->given)) return 0;
    if (!one) return 0;
    if (a && b) return mlo_carried_agrees(q, out->name, a, b);
    mlo_given *other = MLO_NEW(m, mlo_given);
    if (!other) return mlo_failed(m);
    *other = *one;
    other->zero = other->scale = NULL;
    other->sign = 1;
    if (one->scale) other->scale = MLO_NEW_N(m, double, n);
    for (size_t i = 0; other->scale && i < n; i++)
        other->scale[i] = one->scale[a ? (i + 1 < n ? i + 1 : i) : i ? i - 1 : i];
    *(a ? &out->given_wide : &in->given_wide) = other;
    return mlo_failed(m);
}

/* When everything given is known: settles the widths of signals and weights. */
static int mlo_choose_given(mlo_quantizer *q) {
    if (!q->head && mlo_unite_carried(q)) return mlo_failed(q->m);
    for (size_t k = 0; k < q->n_signals; k++)
        if (mlo_obey_widths(q, q->signals[k])) return mlo_failed(q->m);
    for (size_t k = 0; k < q->r.n_block; k++) {
        const mlo_sublayer *b = q->r.block[k];
        if (b->card->check && b->card->check(q, b)) return mlo_failed(q->m);
    }
    return 0;
}

/* How many sublayers read the narrow form. */
static int mlo_narrow_readers(const mlo_signal *s) {
    return s->reads[MLO_LINEAR] + s->reads[MLO_ATTENTION] + s->reads[MLO_UNARY]
        + s->reads[MLO_CONVOLUTION];
}

/* Do only linear layers read the narrow form? Then they can absorb its shape and zero. */
static int mlo_absorbed(const mlo_signal *s) {
    return s->reads[MLO_LINEAR] && s->reads[MLO_LINEAR] == mlo_narrow_readers(s);
}

/* Does one of the linear layers that read this value have integer weights? Such weights cannot take
 * up a shape. */
static int mlo_weights_fixed(const mlo_quantizer *q, const char *name) {
    for (size_t k = 0; k < q->r.n_block; k++)
        if (q->r.block[k]->kind == MLO_LINEAR && q->r.block[k]->in[0] == name
            && mlo_given_scaled(q->r.block[k]->weight_given))
            return 1;
    return 0;
}

/* ---- weights -------------------------------------------------------------- */

/* The weight of a linear layer in iteration i as [K,N] floats, in scratch memory. NULL: failed. */
static mlo_array *mlo_weight(mlo_quantizer *q, const mlo_sublayer *b, int64_t i) {
    mlo *m = q->m;
    mlo_array *w = mlo_scan_value(m, &q->scan, b->weight, i), *t = NULL;
    if (w && (w->dtype != MLO_FLOAT || w->rank != 2)) {
        mlo_fail(m, MLO_E_TYPE, b->node, "weights of type %s; a float32 matrix is supported",
            mlo_dtype_name(w->dtype));
        mlo_array_free(m, w);
        return NULL;
    }
    if (!w || !b->transposed) return w;
    const int64_t dims[] = { w->dims[1], w->dims[0] };
    if ((t = mlo_array_new(m, MLO_FLOAT, 2, dims)))
        for (int64_t k = 0; k < dims[0]; k++)
            for (int64_t n = 0; n < dims[1]; n++)
                ((float *)t->data)[k * dims[1] + n] = ((float *)w->data)[n * dims[0] + k];
    mlo_array_free(m, w);
    return t;
}

/* Bits of the integer weights. */
static int mlo_weight_bits(const mlo_quantizer *q, const mlo_sublayer *b) {
    return b->weight_given ? b->weight_given->bits : q->weights;
}

/* The integers a weight may become. */
typedef struct {
    float lo;
    float hi;
    int clipped; /* 1: INT8 holds more */
} mlo_weight_range;

/* Of few integers the one that only negative numbers have is a good part; of 2 bits, -1, 0 and 1 are
 * better than -2 to 1. */
static mlo_weight_range mlo_weight_range_of(const mlo_quantizer *q, const mlo_sublayer *b) {
    const int bits = mlo_weight_bits(q, b);
    const int whole = b->weight_given ? !b->weight_given->narrow : bits > 2 && bits < 8;
    float hi = (float)(ldexp(1, bits - 1) - 1);
    mlo_weight_range r = { whole ? -hi - 1 : -hi, hi, bits < 8 || (b->weight_given && !whole) };
    return r;
}

/* v, rounded as QuantizeLinear does: half to even. Adding 1.5 * 2^23 rounds to an integer. */
static float mlo_rounded_weight(float v, const mlo_weight_range *r) {
    const float magic = 12582912.0f;
    v = v < r->lo ? r->lo : v > r->hi ? r->hi : v;
    v += magic;
    return v - magic;
}

static void mlo_most_of(const float *MLO_RESTRICT x, float f, float *MLO_RESTRICT most, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float v = fabsf(x[i] * f);
        most[i] = v > most[i] ? v : most[i];
    }
}

/* The same of four rows at once: their maxima are read and written once. */
static void mlo_most_of_four(
    const float *MLO_RESTRICT x, int64_t columns, const float f[4], float *MLO_RESTRICT most) {
    const float *y = x + columns, *z = y + columns, *last = z + columns;
    const float f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3];
    for (int64_t i = 0; i < MLO_LANES; i++) {
        float m = most[i], v = fabsf(x[i] * f0);
        m = v > m ? v : m;
        v = fabsf(y[i] * f1);
        m = v > m ? v : m;
        v = fabsf(z[i] * f2);
        m = v > m ? v : m;
        v = fabsf(last[i] * f3);
        most[i] = v > m ? v : m;
    }
}

/* The largest of each column of a weight, times the factors of its rows. */
typedef struct {
    const mlo_array *w;
    const float *t; /* per row; NULL: 1 */
    float *most; /* per column */
    int pieces;
} mlo_column_maxima;

static void mlo_column_piece(void *of, int piece) {
    const mlo_column_maxima *c = (const mlo_column_maxima *)of;
    const int64_t columns = c->w->dims[1], lanes = (columns + MLO_LANES - 1) / MLO_LANES;
    const int64_t from = mlo_piece_begins(lanes, piece, c->pieces) * MLO_LANES;
    const int64_t to = mlo_min(columns, mlo_piece_begins(lanes, piece + 1, c->pieces) * MLO_LANES);
    const float *x = (const float *)c->w->data;
    int64_t k = 0;
    for (; k + 4 <= c->w->dims[0]; k += 4, x += 4 * columns) {
        static const float ones[4] = { 1, 1, 1, 1 };
        const float *f = c->t ? c->t + k : ones;
        int64_t n = from;
        for (; n + MLO_LANES <= to; n += MLO_LANES)
            mlo_most_of_four(x + n, columns, f, c->most + n);
        for (int r = 0; r < 4; r++) mlo_most_of(x + r * columns + n, f[r], c->most + n, to - n);
    }
    for (; k < c->w->dims[0]; k++, x += columns) {
        const float f = c->t ? c->t[k] : 1;
        int64_t n = from;
        for (; n + MLO_LANES <= to; n += MLO_LANES) mlo_most_of(x + n, f, c->most + n, MLO_LANES);
        mlo_most_of(x + n, f, c->most + n, to - n);
    }
}

/* most[n] := max(most[n], |w[k][n]| t[k]). */
static void mlo_column_most(const mlo *m, const mlo_array *w, const float *t, float *most) {
    mlo_column_maxima c = { w, t, most,
        mlo_pieces(m, w->dims[1] / 64, 2.0 * (double)mlo_array_count(w)) };
    mlo_pieces_do(m, mlo_column_piece, &c, c.pieces);
}

/* Returns the sum of squares of n numbers, and raises *most to their largest magnitude. Four
 * partial sums, so that no addition waits for another. */
static double mlo_row_norm(const float *x, int64_t n, double *most) {
    double sum[4] = { 0 }, top[4] = { 0 };
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++) {
            double v = fabs((double)x[i + j]);
            top[j] = v > top[j] ? v : top[j];
            sum[j] += v * v;
        }
    for (; i < n; i++) {
        double v = fabs((double)x[i]);
        top[0] = v > top[0] ? v : top[0];
        sum[0] += v * v;
    }
    for (int j = 0; j < 4; j++)
        if (top[j] > *most) *most = top[j];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* ---- the shape of a signal ------------------------------------------------ */

/* x^(e/8) by square roots, whose results are the same on every machine. */
static double mlo_eighths(double x, int e) {
    double y = e & 8 ? x : 1;
    for (int bit = 4; bit; bit >>= 1) {
        x = sqrt(x);
        if (e & bit) y *= x;
    }
    return y;
}

enum { MLO_READERS = 8 };

typedef struct {
    mlo_array *w[MLO_READERS]; /* the weights of the layers that read the signal */
    int n; /* layers */
    int64_t channels;
    int pieces; /* of the channels */

    double *range; /* per channel: half of it */
    double *square; /* per channel: mean square about zero */
    double *weight; /* per channel: largest weight */
    double *norm; /* per channel: sum of squares of weights */

    float *t; /* per channel: the factor that is tried */
    float *most; /* per column of a weight: the largest of it, times the factors */
    double weight_top; /* the largest integer of a weight */
    int pow2; /* 1: factors are powers of two */
} mlo_shaper;

static void mlo_shaper_free(mlo *m, mlo_shaper *h) {
    for (int i = 0; i < h->n; i++) mlo_array_free(m, h->w[i]);
    mlo_scratch_free(m, h->range);
    mlo_scratch_free(m, h->t);
    mlo_scratch_free(m, h->most);
}

/* How large the weights of a channel are, of a piece of the channels. */
static void mlo_shaper_piece(void *of, int piece) {
    mlo_shaper *h = (mlo_shaper *)of;
    const int64_t end = mlo_piece_begins(h->channels, piece + 1, h->pieces);
    for (int64_t c = mlo_piece_begins(h->channels, piece, h->pieces); c < end; c++) {
        h->weight[c] = h->norm[c] = 0;
        for (int k = 0; k < h->n; k++)
            h->norm[c] += mlo_row_norm((const float *)h->w[k]->data + c * h->w[k]->dims[1],
                h->w[k]->dims[1], &h->weight[c]);
    }
}

static int mlo_shaper_open(
    mlo_quantizer *q, const char *reads, int64_t channels, int64_t i, mlo_shaper *h) {
    mlo *m = q->m;
    memset(h, 0, sizeof *h);
    h->weight_top = ldexp(1, q->weights - 1) - 1;
    h->pow2 = q->pow2;
    int64_t widest = 1;
    double numbers = 0;
    h->range = (double *)mlo_scratch(m, 4 * (size_t)channels, sizeof *h->range);
    h->t = (float *)mlo_scratch(m, (size_t)channels, sizeof *h->t);
    for (size_t k = 0; k < q->r.n_block && !m->error.code; k++) {
        const mlo_sublayer *b = q->r.block[k];
        if (b->kind != MLO_LINEAR || b->in[0] != reads || h->n == MLO_READERS || mlo_is_sketch(m))
            continue;
        if (!(h->w[h->n] = mlo_weight(q, b, i))) break;
        if (h->w[h->n++]->dims[0] != channels)
            mlo_fail(m, MLO_E_SHAPE, b->node,
                "a weight whose rows are not the %lld channels it reads", (long long)channels);
        widest = mlo_max(widest, h->w[h->n - 1]->dims[1]);
        numbers += (double)mlo_array_count(h->w[h->n - 1]);
    }
    h->most = (float *)mlo_scratch(m, (size_t)widest, sizeof *h->most);
    if (m->error.code) {
        mlo_shaper_free(m, h);
        return mlo_failed(m);
    }
    h->square = h->range + channels;
    h->weight = h->square + channels;
    h->norm = h->weight + channels;
    h->channels = channels;
    h->pieces = mlo_pieces(m, channels, 2.0 * numbers);
    mlo_pieces_do(m, mlo_shaper_piece, h, h->pieces);
    return 0;
}

/* What the noise of a linear layer's result is relative to: the residual sum that the result is
 * added to, or else the result. */
static const mlo_signal *mlo_noise_in(mlo_quantizer *q, const mlo_sublayer *b) {
    for (size_t k = 0; k < q->r.n_block; k++) {
        const mlo_sublayer *add = q->r.block[k];
        if (add->kind == MLO_RESIDUAL && (add->in[0] == b->out || add->in[1] == b->out))
            return mlo_signal_of(q, add->out);
    }
    return mlo_signal_of(q, b->out);
}

/* The expected square error of what linear layers make of a signal, relative to the value that it
 * becomes part of, summed over the iterations; and the layers' products per token. */
static int mlo_expected_noise(mlo_quantizer *q, mlo_signal *s) {
    s->noise = s->macs = 0;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        mlo_shaper h;
        double power = 0, noise = 0;
        if (mlo_shaper_open(q, s->name, s->channels, i, &h)) return mlo_failed(q->m);
        for (size_t k = 0; k < q->r.n_block; k++)
            if (q->r.block[k]->kind == MLO_LINEAR && q->r.block[k]->in[0] == s->name) {
                const mlo_signal *y = mlo_signal_of(q, q->r.block[k]->out);
                const mlo_signal *in = mlo_noise_in(q, q->r.block[k]);
                power += in->inverse[i] > 0 ? 1 / in->inverse[i] : 0;
                if (i == 0) s->macs += (double)(s->channels * y->channels);
            }
        for (int64_t c = 0; c < s->channels; c++) {
            double step = s->narrow_scale[i]
                * (s->shape ? (double)s->shape[i * s->channels + c] : 1);
            noise += step * step / 12 * h.norm[c];
        }
        mlo_shaper_free(q->m, &h);
        s->noise += power > 0 ? noise / power : 0;
    }
    return 0;
}

/* The expected square error, times 12, of what the readers compute: from rounding the signal, and
 * from rounding the weights. */
static double mlo_shape_error(const mlo *m, mlo_shaper *h, int64_t channels, double top) {
    double step = 0, signal = 0, energy = 0, weights = 0;
    for (int64_t c = 0; c < channels; c++)
        if (h->range[c] / (double)h->t[c] > step) step = h->range[c] / (double)h->t[c];
    step /= top;
    for (int64_t c = 0; c < channels; c++) {
        double t = (double)h->t[c];
        signal += step * step * t * t * h->norm[c];
        energy += h->square[c] / (t * t);
    }
    for (int k = 0; k < h->n; k++) {
        int64_t n = h->w[k]->dims[1];
        memset(h->most, 0, (size_t)n * sizeof *h->most);
        mlo_column_most(m, h->w[k], h->t, h->most);
        for (int64_t c = 0; c < n; c++)
            weights += (double)h->most[c] * (double)h->most[c] / (h->weight_top * h->weight_top);
    }
    return signal + weights * energy;
}

/* shape[c] = range^a / weight^(1-a) for the best a of 0 (no shape), 4/8, 5/8, .. 1. A channel that
 * hardly moves or counts is taken as 1/256 of the largest. */
static void mlo_shape_choose(
    const mlo *m, mlo_shaper *h, int64_t channels, double top, float *shape) {
    static const int eighths[] = { 0, 4, 5, 6, 7, 8 };
    double least = -1, most = 0, heaviest = 0;
    for (int64_t c = 0; c < channels; c++) {
        if (h->range[c] > most) most = h->range[c];
        if (h->weight[c] > heaviest) heaviest = h->weight[c];
    }
    for (size_t a = 0; a < sizeof eighths / sizeof *eighths; a++) {
        for (int64_t c = 0; c < channels; c++) {
            double r = h->range[c] > most / 256 ? h->range[c] : most / 256;
            double w = h->weight[c] > heaviest / 256 ? h->weight[c] : heaviest / 256;
            h->t[c] = !eighths[a] || !(most > 1e-20) || !(heaviest > 1e-20)
                ? 1
                : (float)(mlo_eighths(r / most, eighths[a])
                      / mlo_eighths(w / heaviest, 8 - eighths[a]));
            if (h->pow2) h->t[c] = (float)mlo_pow2_near((double)h->t[c]);
        }
        double e = mlo_shape_error(m, h, channels, top);
        if (least >= 0 && !(e < least)) continue;
        least = e;
        memcpy(shape, h->t, (size_t)channels * sizeof *shape);
    }
}

/* ---- a shape for weights of few bits ---------------------------------------- */

/* What the error of a shape is made of, but for the channel whose factor is moved. */
typedef struct {
    int64_t columns; /* of all readers */
    float *behind; /* [channels, columns]: the largest of those behind a channel, times factors */
    float *front; /* [columns]: likewise of those in front of the channel */
    float *row; /* [columns]: the channel's own, magnitudes */
    double step; /* of the signal, as the other channels need it, times its largest integer */
    double signal; /* sums over the other channels */
    double energy;
} mlo_shape_rest;

/* The channel's weights, of all readers. */
static void mlo_shape_row(const mlo_shaper *h, int64_t c, float *row) {
    for (int k = 0; k < h->n; k++) {
        const int64_t n = h->w[k]->dims[1];
        const float *w = (const float *)h->w[k]->data + c * n;
        for (int64_t i = 0; i < n; i++) *row++ = fabsf(w[i]);
    }
}

/* to[n] := max(a[n], row[n] t). */
static void mlo_shape_most(const mlo_shape_rest *r, const float *a, float t, float *to) {
    for (int64_t n = 0; n < r->columns; n++) {
        const float v = r->row[n] * t;
        to[n] = v > a[n] ? v : a[n];
    }
}

static void mlo_shape_behind(const mlo_shaper *h, int64_t channels, mlo_shape_rest *r) {
    const size_t bytes = (size_t)r->columns * sizeof(float);
    memset(r->front, 0, bytes);
    memset(r->behind + (channels - 1) * r->columns, 0, bytes);
    for (int64_t c = channels - 1; c > 0; c--) {
        float *behind = r->behind + c * r->columns;
        mlo_shape_row(h, c, r->row);
        mlo_shape_most(r, behind, h->t[c], behind - r->columns);
    }
}

static void mlo_shape_others(const mlo_shaper *h, int64_t channels, int64_t c, mlo_shape_rest *r) {
    r->step = r->signal = r->energy = 0;
    for (int64_t k = 0; k < channels; k++) {
        const double t = (double)h->t[k];
        if (k == c) continue;
        r->step = fmax(r->step, h->range[k] / t);
        r->signal += t * t * h->norm[k];
        r->energy += h->square[k] / (t * t);
    }
    mlo_shape_row(h, c, r->row);
}

/* mlo_shape_error, with factor t for channel c. */
static double mlo_shape_moved(
    const mlo_shaper *h, int64_t c, const mlo_shape_rest *r, double top, double t) {
    const float *behind = r->behind + c * r->columns;
    const double step = fmax(r->step, h->range[c] / t) / top;
    double weights = 0;
    for (int64_t n = 0; n < r->columns; n++) {
        const float v = r->row[n] * (float)t, other = fmaxf(r->front[n], behind[n]);
        weights += (double)(v > other ? v * v : other * other);
    }
    return step * step * (r->signal + t * t * h->norm[c])
        + weights / (h->weight_top * h->weight_top) * (r->energy + h->square[c] / (t * t));
}

/* Each channel's factor in turn moves by `by`, up or down, where that makes the error less. */
static void mlo_shape_sweep(
    mlo_shaper *h, int64_t channels, double top, double by, mlo_shape_rest *r) {
    mlo_shape_behind(h, channels, r);
    for (int64_t c = 0; c < channels; c++) {
        const double t = (double)h->t[c];
        mlo_shape_others(h, channels, c, r);
        double least = mlo_shape_moved(h, c, r, top, t);
        for (int up = 0; up < 2; up++) {
            const float moved = (float)(up ? t * by : t / by);
            const double e = mlo_shape_moved(h, c, r, top, (double)moved);
            if (!(e < least)) continue;
            least = e;
            h->t[c] = moved;
        }
        mlo_shape_most(r, r->front, h->t[c], r->front);
    }
}

/* Makes the best shape of a few better, from channel to channel: by half octaves, quarters, eighths. */
static int mlo_shape_refine(mlo *m, mlo_shaper *h, int64_t channels, double top, float *shape) {
    mlo_shape_rest r = { 0 };
    double by = h->pow2 ? 2 : sqrt(2);
    for (int k = 0; k < h->n; k++) r.columns += h->w[k]->dims[1];
    const size_t all = (size_t)((channels + 2) * r.columns);
    if (!all || !(r.behind = (float *)mlo_scratch(m, all, sizeof *r.behind))) return mlo_failed(m);
    r.front = r.behind + channels * r.columns;
    r.row = r.front + r.columns;
    memcpy(h->t, shape, (size_t)channels * sizeof *shape);
    for (int sweep = 0; sweep < MLO_SHAPE_SWEEPS; sweep++) {
        mlo_shape_sweep(h, channels, top, by, &r);
        if (sweep % 2 && !h->pow2) by = sqrt(by);
    }
    memcpy(shape, h->t, (size_t)channels * sizeof *shape);
    mlo_scratch_free(m, r.behind);
    return mlo_failed(m);
}

/* ---- ranges ----------------------------------------------------------------- */

/* Widens the ranges of channels to what other samples, also text of another kind, may contain: to
 * so many standard deviations about the mean, and to a quarter more at each end than was seen. This
 * makes rounding a little coarser, but saturation costs far more. Where samples are few, or drawn,
 * deviations say more than ends. What a norm or a product makes has the longest tails. */
static void mlo_widen(const mlo_quantizer *q, mlo_signal *s) {
    int normed = !s->maker || s->maker->kind == MLO_NORM;
    int product = s->maker && s->maker->kind == MLO_GATE;
    double deviations = (q->trusted ? 4 : normed ? 8 : 6) + 2 * product, margin = 0.25;
    if (s->roomy) return;
    s->roomy = 1;
    for (int64_t c = 0; c < q->scan.iterations * s->channels; c++) {
        double variance = s->square[c] - s->mean[c] * s->mean[c];
        double far = variance > 0 ? deviations * sqrt(variance) : 0;
        double more = (s->high[c] - s->low[c]) * margin;
        s->low[c] = s->mean[c] - far < s->low[c] - more ? s->mean[c] - far : s->low[c] - more;
        s->high[c] = s->mean[c] + far > s->high[c] + more ? s->mean[c] + far : s->high[c] + more;
    }
}

/* Puts zero in the middle of each channel's range. The narrow form of a signal that also has a wide
 * form can only have zeros that the wide form can express. */
static void mlo_middle(mlo_signal *s, int64_t i) {
    for (int64_t c = i * s->channels; c < (i + 1) * s->channels; c++) {
        s->zero[c] = (s->low[c] + s->high[c]) / 2;
        if (!s->wide) continue;
        double steps = rint(s->zero[c] / s->wide_scale[i]);
        s->zero[c] = (steps > mlo_wide_top(s)           ? mlo_wide_top(s)
                             : steps < -mlo_wide_top(s) ? -mlo_wide_top(s)
                                                        : steps)
            * s->wide_scale[i];
    }
}

/* Sets narrow_scale to the smallest at which every channel fits. */
static void mlo_fit(const mlo_quantizer *q, mlo_signal *s, int64_t i) {
    double most = 0;
    for (int64_t c = i * s->channels; c < (i + 1) * s->channels; c++) {
        double shape = s->shape ? (double)s->shape[c] : 1;
        double up = (s->high[c] - s->zero[c]) / shape;
        double down = (s->zero[c] - s->low[c]) / shape;
        if (up > most) most = up;
        if (down > most) most = down;
    }
    /* if nothing but zeros was seen, any scale will do */
    s->narrow_scale[i] = mlo_step(q, (most > 1e-20 ? most : 1) / mlo_top(s));
}

/* The largest magnitude of a channel. */
static double mlo_reach(const mlo_signal *s, int64_t at) {
    return fabs(s->low[at]) > fabs(s->high[at]) ? fabs(s->low[at]) : fabs(s->high[at]);
}

/* Sets narrow_scale for the largest magnitude of any channel, in steps of its shape, with room for
 * what other samples hold; there is no zero. */
static void mlo_fit_roomy(const mlo_quantizer *q, mlo_signal *s, int64_t i) {
    double most = 0;
    for (int64_t c = i * s->channels; c < (i + 1) * s->channels; c++) {
        s->zero[c] = 0;
        most = fmax(most, mlo_reach(s, c) / (s->shape ? (double)s->shape[c] : 1));
    }
    s->narrow_scale[i] = mlo_step(q, (most > 1e-20 ? most : 1) * mlo_headroom / mlo_top(s));
}

/* Sets shape and scale of a signal whose shape is absorbed by the linear layers that read `reads`;
 * also its zero, unless that is to be nothing. */
static int mlo_shape_about(mlo_quantizer *q, mlo_signal *s, const char *reads, int centred) {
    mlo *m = q->m;
    if (!s->shape && !(s->shape = MLO_NEW_N(m, float, (size_t)(q->scan.iterations * s->channels))))
        return mlo_failed(m);
    const int few = q->weights <= MLO_FEW_BITS && mlo_is_well_seen(s);
    mlo_widen(q, s);
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        mlo_shaper h;
        if (centred) mlo_middle(s, i);
        if (mlo_shaper_open(q, reads, s->channels, i, &h)) return mlo_failed(m);
        for (int64_t c = 0; c < s->channels; c++) {
            int64_t at = i * s->channels + c;
            h.range[c] = centred ? (s->high[at] - s->low[at]) / 2 : mlo_reach(s, at);
            /* (a bias makes up for what few bits' weights make of the mean) */
            const double off = few ? s->mean[at] : s->zero[at];
            h.square[c] = s->square[at] - 2 * off * s->mean[at] + off * off;
        }
        mlo_shape_choose(m, &h, s->channels, mlo_top(s), s->shape + i * s->channels);
        if (few) mlo_shape_refine(m, &h, s->channels, mlo_top(s), s->shape + i * s->channels);
        mlo_shaper_free(m, &h);
        mlo_fit(q, s, i);
    }
    return mlo_failed(m);
}

static int mlo_shape_signal(mlo_quantizer *q, mlo_signal *s, const char *reads) {
    return mlo_shape_about(q, s, reads, 1);
}
static int mlo_shape_symmetric(mlo_quantizer *q, mlo_signal *s, const char *reads) {
    return mlo_shape_about(q, s, reads, 0);
}

/* ---- all of them ---------------------------------------------------------- */

/* What an iteration begins with is what the one before it made: in the same steps, the coarser ones.
 * 1: some became coarser. */
static int mlo_coarsen_carried(mlo_quantizer *q) {
    double *in = mlo_signal_of(q, q->scan.body->input[0]->name)->wide_scale;
    double *out = mlo_signal_of(q, q->result)->wide_scale;
    int changed = 0;
    for (int64_t i = 1; i < q->scan.iterations; i++) {
        changed |= mlo_differs(in[i], out[i - 1]);
        in[i] = out[i - 1] = fmax(in[i], out[i - 1]);
    }
    return changed;
}

/* Steps as coarse as the sublayers' words need them, until all agree. */
static int mlo_coarsen(mlo_quantizer *q) {
    for (int64_t turn = 0; turn <= q->scan.iterations; turn++) {
        for (size_t k = 0; k < q->r.n_block; k++) {
            const mlo_sublayer *b = q->r.block[k];
            for (int64_t i = 0; b->card->coarsen && i < q->scan.iterations; i++)
                MLO_TRY(b->card->coarsen(q, b, i));
        }
        if (q->head || !mlo_coarsen_carried(q)) break;
    }
    return 0;
}

static int mlo_wide_scales(mlo_quantizer *q) {
    for (size_t k = 0; k < q->n_signals; k++) {
        mlo_signal *s = q->signals[k];
        const mlo_given *g = mlo_wide_given(q, s);
        for (int64_t i = 0; i < q->scan.iterations; i++)
            s->wide_scale[i] = mlo_given_scaled(g) ? g->scale[i]
                : mlo_widened(q, s)
                ? s->given->scale[i]
                : mlo_step(
                      q, (s->most[i] > 1e-20 ? s->most[i] : 1) * mlo_headroom / mlo_wide_top(s));
    }
    return mlo_coarsen(q);
}

/* Are these keys of which nothing but a softmax sees what they have in common? Then they may have a
 * zero; a soft cap does see it. */
static int mlo_keys_may_shift(mlo_quantizer *q, const mlo_signal *s) {
    if (s->wide || !s->reads[MLO_ATTENTION] || mlo_narrow_readers(s) != 1 || s->operand != 1)
        return 0;
    for (size_t k = 0; k < q->r.n_block; k++) {
        const mlo_sublayer *b = q->r.block[k];
        if (b->kind == MLO_ATTENTION && b->cap && mlo_signal_of(q, b->in[1]) == s) return 0;
    }
    return 1;
}

/* Sets the narrow scales of a signal that neither a table nor an attention makes. */
static int mlo_narrow_scales(mlo_quantizer *q, mlo_signal *s) {
    if (mlo_given_scaled(mlo_narrow_given(s))) {
        mlo_obey(q, s);
        return 0;
    }
    if (mlo_absorbed(s) && !mlo_weights_fixed(q, s->name)) return mlo_shape_signal(q, s, s->name);
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        if (mlo_keys_may_shift(q, s)) mlo_middle(s, i);
        mlo_fit(q, s, i);
    }
    return 0;
}

/* The memory is made once, so all iterations read it in the steps of the first one. */
static void mlo_unite_memory(mlo_quantizer *q, mlo_signal *s) {
    for (int64_t at = s->channels; at < q->scan.iterations * s->channels; at++) {
        s->narrow_scale[at / s->channels] = s->narrow_scale[0];
        s->zero[at] = s->zero[at % s->channels];
        if (s->shape) s->shape[at] = s->shape[at % s->channels];
    }
}

static int mlo_fit_all(mlo_quantizer *q) {
    for (size_t k = 0; k < q->n_signals; k++) {
        mlo_signal *s = q->signals[k];
        if ((s->narrow || mlo_widened(q, s)) && !(s->maker && s->maker->card->scales)
            && mlo_narrow_scales(q, s))
            return mlo_failed(q->m);
        if (s->name == q->r.in.memory) mlo_unite_memory(q, s);
    }
    for (size_t k = 0; k < q->r.n_block; k++) {
        const mlo_sublayer *b = q->r.block[k];
        if (b->card->scales && b->card->scales(q, b)) return mlo_failed(q->m);
    }
    return 0;
}

/* ---- widths --------------------------------------------------------------- */

static int mlo_max_cost(mlo *m, double *most) {
    const char *text = mlo_opt(m, "max-cost");
    *most = 1;
    return text && (!mlo_parse_number(text, most) || !(*most >= 1 && *most <= 2))
        ? mlo_fail_at(m, MLO_E_USAGE, "max-cost",
              "'%s' is not a number from 1 to 2: what products may cost, relative to all of them "
              "with 8-bit operands",
              text)
        : 0;
}

/* Is the width of any operand set: by --activations, or by the source model? */
static int mlo_widths_said(const mlo_quantizer *q) {
    for (size_t k = 0; k < q->n_signals; k++)
        if (mlo_narrow_given(q->signals[k])) return 1;
    return mlo_opt(q->m, "activations") != NULL;
}

static int mlo_has_causal(const mlo_quantizer *q) {
    for (size_t k = 0; k < q->r.n_block; k++)
        if (q->r.block[k]->kind == MLO_ATTENTION && q->r.block[k]->sight.causal) return 1;
    return 0;
}

/* The default cost: enough that a trained encoder computes as it did before, and that a trained decoder
 * says what it said (tests/test_context.py integers). A decoder's attention has the more products the longer
 * its context is: two more bits there are a quarter of their cost, and leave one for the products of gates,
 * whose ranges are the longest. No operand gets so wide that two products no longer share a multiplier of 27
 * bits (mlo_dots.v). */
static double mlo_default_cost(const mlo_quantizer *q) {
    return q->head || mlo_has_causal(q) ? 1.25 : 1.15;
}

static int mlo_choose_cost(mlo_quantizer *q) {
    double most;
    if (mlo_max_cost(q->m, &most)) return mlo_failed(q->m);
    q->widest = 16;
    if (mlo_is_sketch(q->m)) q->cost = 1; /* nobody knows where wider operands help */
    if (q->cost >= 1) return 0; /* --max-error tries one */
    q->cost = most;
    if (mlo_opt(q->m, "max-cost") || mlo_widths_said(q)) return 0;
    q->cost = mlo_default_cost(q);
    q->widest = 27 - 2 * q->weights < 16 ? 27 - 2 * q->weights : 16;
    return 0;
}

/* Products per token of all linear layers and attentions. */
static double mlo_products(mlo_quantizer *q) {
    double sum = 0;
    for (size_t k = 0; k < q->r.n_block; k++) {
        const mlo_sublayer *b = q->r.block[k];
        if (b->card->products) sum += b->card->products(q, b);
    }
    return sum;
}

/* May an attention's operands get more bits? They have one width, which nobody else reads. */
static int mlo_attention_free(mlo_quantizer *q, const mlo_sublayer *b) {
    for (int k = 0; k < 3; k++) {
        const mlo_signal *s = mlo_signal_of(q, b->in[k]);
        if (s->wide || mlo_narrow_readers(s) != 1 || mlo_narrow_given(s)) return 0;
    }
    return mlo_absorbed(mlo_signal_of(q, b->out));
}

static double mlo_variance(const mlo_signal *s, int64_t at) {
    const double v = s->square[at] - s->mean[at] * s->mean[at];
    return v > 0 ? v : 0;
}

/* The expected square error of a score, in nats, from rounding queries and keys. What all keys have
 * in common moves no softmax, so of the keys their variance counts. */
static double mlo_score_noise(mlo_quantizer *q, const mlo_sublayer *b, int64_t i) {
    const mlo_signal *x = mlo_signal_of(q, b->in[0]), *k = mlo_signal_of(q, b->in[1]);
    const int64_t d = x->channels / b->heads, shared = b->heads / b->kv_heads;
    double sum = 0;
    for (int64_t c = 0; c < x->channels; c++) {
        const int64_t from = mlo_shared_channel(d, shared, c);
        const double step[] = { mlo_narrow_step(x, i, c), mlo_narrow_step(k, i, from) };
        sum += step[0] * step[0] / 12 * mlo_variance(k, i * k->channels + from)
            + step[1] * step[1] / 12 * x->square[i * x->channels + c];
    }
    return sum / (double)b->heads * b->scale * b->scale;
}

/* As mlo_expected_noise, of rounding an attention's operands, taken as if each row weighed two keys
 * alike: half of a score's square error times the values' variance, and half of the values' own.
 * The queries hold the sum for all three. */
static int mlo_attention_noise(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_signal *x = mlo_signal_of(q, b->in[0]), *v = mlo_signal_of(q, b->in[2]);
    mlo_signal *y = mlo_signal_of(q, b->out);
    const int64_t d = y->channels / b->heads, shared = b->heads / b->kv_heads;
    x->noise = x->blur = 0;
    x->macs = b->card->products(q, b);
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        const double score = mlo_score_noise(q, b, i);
        double noise = 0, power = 0;
        mlo_shaper h;
        x->blur += score / (double)q->scan.iterations;
        if (mlo_shaper_open(q, y->name, y->channels, i, &h)) return mlo_failed(q->m);
        for (size_t k = 0; k < q->r.n_block; k++)
            if (q->r.block[k]->kind == MLO_LINEAR && q->r.block[k]->in[0] == y->name) {
                const mlo_signal *in = mlo_noise_in(q, q->r.block[k]);
                power += in->inverse[i] > 0 ? 1 / in->inverse[i] : 0;
            }
        for (int64_t c = 0; c < y->channels; c++) {
            const int64_t from = mlo_shared_channel(d, shared, c);
            const double step = mlo_narrow_step(v, i, from);
            noise += h.norm[c] / 2
                * (score * mlo_variance(v, i * v->channels + from) + step * step / 12);
        }
        mlo_shaper_free(q->m, &h);
        x->noise += power > 0 ? noise / power : 0;
    }
    return 0;
}

/* The operand that gains most from one more bit, per product that becomes dearer. One more bit
 * takes away 3/4 of its noise. A sum of products stays within 31 bits. */
static mlo_signal *mlo_neediest(mlo_quantizer *q, double budget) {
    mlo_signal *best = NULL;
    /* in the order of the model, so that ties are decided the same everywhere */
    for (size_t k = 0; k < q->r.n_block; k++) {
        const mlo_sublayer *b = q->r.block[k];
        const int linear = b->kind == MLO_LINEAR, attends = b->kind == MLO_ATTENTION;
        mlo_signal *s = linear || attends ? mlo_signal_of(q, b->in[0]) : NULL;
        if (!s || s->bits >= q->widest || s->macs > budget
            || (linear
                && (!mlo_absorbed(s) || mlo_narrow_given(s)
                    || ldexp((double)s->channels, s->bits + mlo_weight_bits(q, b) - 1)
                        > ldexp(1, 30)))
            || (attends && (!mlo_attention_free(q, b) || !(s->blur > mlo_blur_most))))
            continue;
        if (!best || s->noise / s->macs > best->noise / best->macs) best = s;
    }
    return best;
}

/* One more bit takes away 3/4 of the noise. Keys and values get what queries get. */
static void mlo_wider(mlo_quantizer *q, mlo_signal *s) {
    s->bits++;
    s->noise /= 4;
    s->blur /= 4;
    for (size_t k = 0; k < q->r.n_block; k++) {
        const mlo_sublayer *b = q->r.block[k];
        if (b->kind != MLO_ATTENTION || mlo_signal_of(q, b->in[0]) != s) continue;
        for (int i = 1; i < 3; i++) mlo_signal_of(q, b->in[i])->bits++;
    }
}

/* Spends what --max-cost allows beyond operands of --activations bits. The cost is products x bits
 * of the operand. */
static int mlo_choose_widths(mlo_quantizer *q, double most) {
    double budget = mlo_products(q) * (most - 1) * q->activations;
    for (size_t k = 0; k < q->r.n_block; k++) {
        mlo_signal *s = mlo_signal_of(q, q->r.block[k]->in[0]);
        if (q->r.block[k]->kind == MLO_LINEAR && mlo_absorbed(s) && mlo_expected_noise(q, s))
            return mlo_failed(q->m);
        if (q->r.block[k]->kind == MLO_ATTENTION && mlo_attention_free(q, q->r.block[k])
            && mlo_attention_noise(q, q->r.block[k]))
            return mlo_failed(q->m);
    }
    for (mlo_signal *s; (s = mlo_neediest(q, budget)) != NULL; mlo_wider(q, s)) budget -= s->macs;
    return 0;
}

static int mlo_choose_scales(mlo_quantizer *q) {
    if (mlo_choose_cost(q)) return mlo_failed(q->m);
    mlo_calibrate_means(q);
    if (mlo_wide_scales(q)) return mlo_failed(q->m);
    if (mlo_fit_all(q)) return mlo_failed(q->m);
    return q->cost > 1 ? mlo_choose_widths(q, q->cost) || mlo_fit_all(q) : 0;
}

/* real = mult / 2^shift with 15 significant bits, 1 <= shift <= most. */
static void mlo_fixed_to(double real, int bits, int most, int64_t *mult, int *shift) {
    int e;
    double f = frexp(real, &e), top = ldexp(1, bits);
    *mult = (int64_t)floor(f * top + 0.5);
    if (*mult == (int64_t)top) {
        *mult = (int64_t)top / 2;
        e++;
    }
    *shift = bits - e;
    if (*shift > most) {
        *mult = (int64_t)floor(ldexp(real, most) + 0.5);
        *shift = most;
    }
    if (*shift < 1) {
        *mult = (int64_t)top - 1;
        *shift = 1;
    }
}

static void mlo_fixed(double real, int most, int64_t *mult, int *shift) {
    mlo_fixed_to(real, 15, most, mult, shift);
}

/* The same for a power of two, as a shift alone: mult is 1; for a shift to the left, mult is the
 * power of two that goes with a shift of 1. */
static int mlo_shifted(mlo *m, const mlo_node *blame, double real, int64_t *mult, int *shift) {
    int e;
    frexp(real, &e);
    *mult = e <= 0 ? 1 : e > 14 ? 0 : (int64_t)1 << e;
    *shift = e <= 0 ? (1 - e > 48 ? 48 : 1 - e) : 1;
    return *mult
        ? 0
        : mlo_fail(m, MLO_E_UNSUPPORTED, blame,
              "what it makes must be shifted by %d places to the left; up to 13 are supported: a "
              "coarser scale of the output, or finer ones of what it reads, are needed",
              e - 1);
}

/* How requantization multiplies by a real number: real = mult / 2^shift. */
static int mlo_ratio(
    mlo_quantizer *q, const mlo_node *blame, double real, int most, int64_t *mult, int *shift) {
    if (q->pow2) return mlo_shifted(q->m, blame, real, mult, shift);
    mlo_fixed(real, most, mult, shift);
    return 0;
}
