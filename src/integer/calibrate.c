/* calibrate: finds out what the values of a loop look like.
 *
 * in:  a rolled float model, and samples (else inputs drawn from the declared types, with a
 *     warning).
 * out: for every value between sublayers, per iteration and channel: the smallest and the largest
 *     value, the mean and the mean square; where weights get few bits, also the mean products of
 *     channels (feedback.c). Tokens that an attention mask hides do not count: their
 *     results are never read, and they may be the majority.
 *
 * invariant: memory is a few numbers per channel (of products: MLO_GRAM), however many samples there
 *     are. Samples are read in order and summed in double, so the same samples give the same numbers
 *     everywhere.
 * example: in a BERT some channels of the residual stream are 50 times as large as the others, in
 *     every token: means and ranges show them.
 * cost: one float evaluation per sample; when the scales are chosen, the mean error of rounding
 *     (`drift`) is measured on the same values: on a tape of them where that is short (MLO_TAPE
 *     bytes), else in a second evaluation.
 */

enum {
    MLO_GRAM = 256,
    MLO_FEW_BITS = 5,
    MLO_SAMPLES_GRAM = 32,
    MLO_TOKENS_EACH = 32,
    MLO_TAPE = 64 << 20
};

/* A signal: a value between sublayers. Arrays have an element per iteration, or per iteration and
 * channel (`per`). An integer y stands for (wide form) wide_scale wide_shape[c] y, or (narrow form)
 * zero[c] + narrow_scale shape[c] y. */
typedef struct {
    const char *name;

    int narrow; /* 1: it is demanded in the width of a matrix operand */
    int wide; /* 1: it is demanded in the width of the residual stream */
    int raw; /* 1: the residual stream carries the value itself, not what it is rounded to */
    int memory; /* 1: its tokens are the memory's (layout.c) */
    int bits; /* of the narrow form */
    int wide_bits; /* of the wide form */

    mlo_given *given; /* what is given for the value, NULL: nothing */
    mlo_given *given_narrow; /* for its narrow form, NULL: nothing */
    mlo_given *given_wide; /* for its wide form, NULL: nothing */

    int index; /* 1: it is the index of a table */
    int roomy; /* 1: its ranges have been widened by their margins */
    int reads[MLO_BLOCK_KINDS]; /* how many sublayers of each kind read it */
    int operand; /* as which operand an attention reads it */
    mlo_sublayer *maker; /* the sublayer that makes it */
    int64_t channels;

    double *rows; /* per iteration: tokens seen */
    double *most; /* per iteration: the largest magnitude */
    double *inverse; /* per iteration: the mean of 1 / (a token's sum of squares) */

    double *low; /* per channel: the least */
    double *high; /* per channel: the largest */
    double *mean; /* per channel; a sum until all samples are seen */
    double *square; /* per channel: the mean square; a sum until all samples are seen */
    /* per channel: the mean products with those of its block of MLO_GRAM, up to itself; NULL: nobody
     * asks */
    double *gram;

    double *wide_scale; /* per iteration */
    double *narrow_scale; /* per iteration */
    double *zero; /* per channel: what the narrow form's 0 stands for */
    double *drift; /* per channel: the mean of (what the integer stands for - the value) */
    float *shape; /* factors of the channels of the narrow form, NULL: all have one scale */
    float *wide_shape; /* of the wide form, NULL: all have one scale */

    /* of the linear layers that read it: the expected square error of their results, relative to
     * these */
    double noise;
    double macs; /* products per token of the layers that read it */
    double blur; /* of an attention's queries: the expected square error of its scores, in nats */

    const char *narrow_name;
    const char *wide_name;
    const char *shape_name; /* of the parameter that has the shape; NULL: there is none yet */
} mlo_signal;

/* The tokens of the present sample that count: those that the attention mask keeps. The results of
 * the others are never read. */
typedef struct {
    unsigned char *kept; /* [token]: 1: it counts */
    int64_t tokens;
    int64_t room; /* tokens that there is memory for */
} mlo_counting;

/* The keys of a stream. */
typedef struct {
    const char *mask; /* the float mask that all attentions to them read, NULL for none */
    const char *bits; /* the boolean value that replaces it */
    int bad; /* 1: a value was seen in it that is neither 0 nor hugely negative */
    mlo_counting counting;
} mlo_keys;

/* A value that the calibration saw. */
typedef struct {
    const mlo_graph *g;
    int64_t iteration;
    const char *name;
    mlo_array *value;
} mlo_taped;

typedef struct mlo_quantizer {
    mlo *m;
    mlo_scan scan;
    mlo_recogniser r;
    const char *result;
    int head; /* 1: it is no loop, but what is behind one (head.c): nothing is carried */
    mlo_map signal; /* float value name -> mlo_signal */
    /* the same in the order in which they were met, which a map does not keep */
    mlo_signal **signals;
    size_t n_signals;

    mlo_node *loop; /* the new Scan */
    mlo_graph *body; /* of it */
    mlo_keys keys[2]; /* of the carried value, of the memory */
    const char *blank; /* what tokens are multiplied by behind the loop (blank.c), NULL: nothing */

    mlo_taped *tape; /* what was seen, in order, until scales are chosen */
    size_t n_tape;
    size_t tape_bytes; /* beyond MLO_TAPE: there is none */
    int64_t samples; /* of the calibration */
    int trusted; /* 1: they are enough, and the caller's */
    /* what the products may cost in all, relative to operands of --activations bits */
    double cost;
    int widest; /* the most bits that an operand may get within this cost */

    double fed; /* multiply-accumulates that all weights take that make up for each other, once */

    int weights; /* bits, where nothing else is said, as are those of the two behind it */
    int activations; /* bits of matrix operands */
    int residual; /* bits of the residual stream */
    int pow2; /* 1: every scale is a power of two */
} mlo_quantizer;

/* ---- signals -------------------------------------------------------------- */

/* In a sketch nothing is seen: signals of as many channels share what would be. */
static void mlo_signal_share(mlo_quantizer *q, mlo_signal *s) {
    for (size_t k = 0; k < q->n_signals && mlo_is_sketch(q->m); k++)
        if (q->signals[k]->channels == s->channels) {
            s->mean = q->signals[k]->mean;
            s->square = q->signals[k]->square;
            s->drift = q->signals[k]->drift;
            return;
        }
}

static mlo_signal *mlo_signal_of(mlo_quantizer *q, const char *name) {
    mlo_signal *s = (mlo_signal *)mlo_map_get(&q->signal, name);
    size_t n = (size_t)q->scan.iterations;
    if (s) return s;
    mlo_form f = mlo_body_form(&q->r.in, name);
    if (mlo_tokens_of(&f) < 1) {
        mlo_fail_at(q->m, MLO_E_SHAPE, name,
            "the shape of this value is not known; bind its dimensions with --dim or --shape");
        return NULL;
    }
    size_t per = n * (size_t)f.dims[f.rank - 1];
    if (!(s = MLO_NEW(q->m, mlo_signal))) return NULL;
    s->name = name;
    s->given = (mlo_given *)mlo_map_get(&q->r.given, name);
    s->channels = f.dims[f.rank - 1];
    s->memory = mlo_is_memory(&q->r.in, name);
    s->bits = q->activations;
    s->wide_bits = q->residual;
    double **const iteration[] = { &s->rows, &s->most, &s->inverse, &s->wide_scale,
        &s->narrow_scale },
                   **const channel[] = { &s->low, &s->high, &s->mean, &s->square, &s->zero,
                       &s->drift };
    for (size_t i = 0; i < 5; i++)
        if (!(*iteration[i] = MLO_NEW_N(q->m, double, n))) return NULL;
    mlo_signal_share(q, s);
    for (size_t i = 0; i < 6; i++)
        if (!*channel[i] && !(*channel[i] = MLO_NEW_N(q->m, double, per))) return NULL;
    MLO_PUSH(q->m, q->signals, q->n_signals, s);
    return mlo_map_put(q->m, &q->signal, name, s) ? NULL : s;
}

/* ---- what is seen --------------------------------------------------------- */

/* A mask that keeps no token is ignored. */
static int mlo_counting_see(mlo *m, mlo_counting *k, const mlo_array *a) {
    const int64_t tokens = a->rank > 0 ? a->dims[a->rank - 1] : 0;
    int64_t kept = 0;
    const float *x = (const float *)a->data;
    k->tokens = 0;
    if (tokens < 1 || mlo_array_count(a) < tokens) return 0;
    if (tokens > k->room && !(k->kept = MLO_NEW_N(m, unsigned char, (size_t)tokens)))
        return mlo_failed(m);
    if (tokens > k->room) k->room = tokens;
    for (int64_t i = 0; i < tokens; i++) kept += k->kept[i] = x[i] > -10000.0f;
    k->tokens = kept ? tokens : 0;
    return 0;
}

static int mlo_counts(const mlo_counting *k, int64_t rows, int64_t i) {
    return k->tokens != rows || k->kept[i];
}

static void mlo_mask_see(mlo_keys *k, const mlo_array *a) {
    const float *x = (const float *)a->data;
    for (int64_t i = 0, n = mlo_array_count(a); i < n; i++)
        if (!(x[i] == 0 || x[i] <= -10000.0f)) k->bad = 1;
}

static int64_t mlo_gram_width(const mlo_signal *s) {
    return s->channels < MLO_GRAM ? s->channels : MLO_GRAM;
}

/* Were tokens seen enough, for each channel so many, that what they say of weights of few bits holds of others, too?
 * (What follows fewer tokens closely makes other inputs' results worse.) */
static int mlo_is_well_seen(const mlo_signal *s) {
    return s->rows[0] >= (double)MLO_TOKENS_EACH * (double)s->channels;
}

/* A token's products. */
static void mlo_gram_see(mlo_signal *s, int64_t iteration, const float *x) {
    const int64_t width = mlo_gram_width(s);
    double *row = s->gram + iteration * s->channels * width;
    for (int64_t c = 0; c < s->channels; c++, row += width) {
        const int64_t first = c - c % MLO_GRAM;
        for (int64_t k = first; k <= c; k++) row[k - first] += (double)x[c] * (double)x[k];
    }
}

/* The signal for an observed value; NULL when the value is none of the loop's. */
static mlo_signal *mlo_signal_seen(
    const mlo_quantizer *q, const mlo_graph *g, const char *name, const mlo_array *a) {
    if (a->dtype != MLO_FLOAT || g != q->scan.body) return NULL;
    return (mlo_signal *)mlo_map_get(&q->signal, name);
}

/* If it is a mask: which tokens count. */
static int mlo_keys_see(mlo_quantizer *q, const char *name, const mlo_array *a) {
    for (int k = 0; k < 2; k++)
        if (q->keys[k].mask && name == q->keys[k].mask) {
            mlo_mask_see(&q->keys[k], a);
            MLO_TRY(mlo_counting_see(q->m, &q->keys[k].counting, a));
        }
    return 0;
}

static int mlo_calibrate_see(
    void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *a) {
    mlo_quantizer *q = (mlo_quantizer *)user;
    MLO_TRY(mlo_keys_see(q, name, a));
    /* the memory is the same in all iterations */
    if (name == q->r.in.memory && g != q->scan.body) {
        for (int64_t i = 0; i < q->scan.iterations; i++)
            MLO_TRY(mlo_calibrate_see(user, q->scan.body, i, name, a));
        return 0;
    }
    mlo_signal *s = mlo_signal_seen(q, g, name, a);
    if (!s) return 0;
    const float *x = (const float *)a->data;
    int64_t rows = mlo_array_count(a) / s->channels, at = iteration * s->channels;
    double *low = s->low + at;
    double *high = s->high + at;
    double *mean = s->mean + at;
    double *square = s->square + at;
    double most = s->most[iteration];
    for (int64_t i = 0; i < rows; i++, x += s->channels) {
        double power = 0;
        int first = s->rows[iteration] < 1;
        if (!mlo_counts(&q->keys[s->memory].counting, rows, i)) continue;
        for (int64_t c = 0; c < s->channels; c++) {
            double v = (double)x[c];
            if (v < low[c] || first) low[c] = v;
            if (v > high[c] || first) high[c] = v;
            mean[c] += v;
            square[c] += v * v;
            power += v * v;
            /* also true of NaN, which then stays */
            if (!(fabs(v) <= most)) most = fabs(v);
        }
        if (power > 1e-30) s->inverse[iteration] += 1 / power;
        if (s->gram) mlo_gram_see(s, iteration, x);
        s->rows[iteration]++;
    }
    s->most[iteration] = most;
    return most <= 1e30
        ? 0
        : mlo_fail_at(q->m, MLO_E_DATA, name,
              "calibration saw %g in iteration %lld; a mask or an overflow is in the data path%s",
              most, (long long)iteration,
              most > 0 ? ""
                       : ", or a norm without epsilon divides by a token of zeros (padding): give "
                         "samples without such tokens (--calib FILE.npz)");
}

static void mlo_calibrate_means(mlo_quantizer *q) {
    for (size_t i = 0; i < q->n_signals; i++) {
        mlo_signal *s = q->signals[i];
        for (int64_t k = 0; k < q->scan.iterations; k++)
            if (s->rows[k] > 0) s->inverse[k] /= s->rows[k];
        for (int64_t k = 0; k < q->scan.iterations * s->channels; k++) {
            double rows = s->rows[k / s->channels];
            if (rows > 0) {
                s->mean[k] /= rows;
                s->square[k] /= rows;
            }
            for (int64_t w = mlo_gram_width(s), j = 0; s->gram && rows > 0 && j < w; j++)
                s->gram[k * w + j] /= rows;
        }
    }
}

/* What 1 stands for in the narrow form of a channel. */
static double mlo_narrow_step(const mlo_signal *s, int64_t i, int64_t c) {
    return s->narrow_scale[i] * (s->shape ? (double)s->shape[i * s->channels + c] : 1);
}

/* drift[c] += the c-th value, rounded to its narrow integer (half to even, below 2^51; above it is clipped anyway)
 * and back, less that value, as part of all rows. */
static void mlo_drifts(const float *MLO_RESTRICT x, const double *MLO_RESTRICT step,
    const double *MLO_RESTRICT zero, double hi, double rows, double *MLO_RESTRICT drift,
    int64_t n) {
    const double magic = 6755399441055744.0;
    for (int64_t c = 0; c < n; c++) {
        const double v = (double)x[c];
        double y = (v - zero[c]) / step[c] + magic;
        y -= magic;
        y = y > hi ? hi : y;
        y = y < -hi - 1 ? -hi - 1 : y;
        drift[c] += (zero[c] + step[c] * y - v) / rows;
    }
}

static void mlo_drift_row(mlo_signal *s, int64_t iteration, const double *step, const float *x) {
    const double hi = ldexp(1, s->bits - 1) - 1, rows = s->rows[iteration];
    const double *zero = s->zero + iteration * s->channels;
    double *drift = s->drift + iteration * s->channels;
    int64_t c = 0;
    for (; c + MLO_LANES <= s->channels; c += MLO_LANES)
        mlo_drifts(x + c, step + c, zero + c, hi, rows, drift + c, MLO_LANES);
    mlo_drifts(x + c, step + c, zero + c, hi, rows, drift + c, s->channels - c);
}

static int mlo_drift_see(
    void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *a) {
    mlo_quantizer *q = (mlo_quantizer *)user;
    MLO_TRY(mlo_keys_see(q, name, a));
    if (name == q->r.in.memory && g != q->scan.body) {
        for (int64_t i = 0; i < q->scan.iterations; i++)
            MLO_TRY(mlo_drift_see(user, q->scan.body, i, name, a));
        return 0;
    }
    mlo_signal *s = mlo_signal_seen(q, g, name, a);
    if (!s || !s->narrow) return 0;
    const float *x = (const float *)a->data;
    const int64_t rows = mlo_array_count(a) / s->channels;
    double *step = (double *)mlo_scratch(q->m, (size_t)s->channels, sizeof *step);
    if (!step) return mlo_failed(q->m);
    for (int64_t c = 0; c < s->channels; c++) step[c] = mlo_narrow_step(s, iteration, c);
    for (int64_t i = 0; i < rows; i++, x += s->channels)
        if (mlo_counts(&q->keys[s->memory].counting, rows, i)) mlo_drift_row(s, iteration, step, x);
    mlo_scratch_free(q->m, step);
    return 0;
}

/* ---- what was seen -------------------------------------------------------- */

static void mlo_tape_free(mlo_quantizer *q) {
    for (size_t i = 0; i < q->n_tape; i++) mlo_array_free(q->m, q->tape[i].value);
    q->n_tape = 0;
}

/* Does mlo_drift_see look at the value? */
static int mlo_is_taped(
    const mlo_quantizer *q, const mlo_graph *g, const char *name, const mlo_array *a) {
    for (int k = 0; k < 2; k++)
        if (q->keys[k].mask && name == q->keys[k].mask) return 1;
    const mlo_signal *s = mlo_signal_seen(q, g, name, a);
    return name == q->r.in.memory || (s && s->narrow);
}

/* Calibrates, and keeps the value where the tape has room for it. */
static int mlo_calibrate_tape(
    void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *a) {
    mlo_quantizer *q = (mlo_quantizer *)user;
    MLO_TRY(mlo_calibrate_see(user, g, iteration, name, a));
    if (q->tape_bytes > MLO_TAPE || !mlo_is_taped(q, g, name, a)) return 0;
    q->tape_bytes += (size_t)mlo_array_count(a) * mlo_dtype_size(a->dtype);
    if (q->tape_bytes > MLO_TAPE) {
        mlo_tape_free(q);
        return 0;
    }
    mlo_taped one = { g, iteration, name, mlo_array_copy(q->m, a) };
    if (one.value && !MLO_PUSH(q->m, q->tape, q->n_tape, one)) mlo_array_free(q->m, one.value);
    return mlo_failed(q->m);
}

/* ---- samples -------------------------------------------------------------- */

/* A small generator, the same everywhere: xorshift64*. */
static uint64_t mlo_random(uint64_t *s) {
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 2685821657736338717u;
}

/* How many values an integer input may take: the rows of the table that it indexes; 2 when it is no
 * index (a mask). */
static int64_t mlo_input_range(const mlo_graph *g, const char *name) {
    int64_t rows = mlo_rows_indexed(g, name, 0);
    return rows ? rows : 2;
}

/* Does a node read a value, and else constants alone? */
static int mlo_takes_alone(const mlo_graph *g, const mlo_node *n, const char *name) {
    int takes = 0;
    for (size_t i = 0; i < n->n_input; i++) {
        if (!mlo_has_input(n, i)) continue;
        if (n->input[i] != name && !mlo_value_of(g, n->input[i])->tensor) return 0;
        takes |= n->input[i] == name;
    }
    return takes;
}

/* Is a value weighed, behind nodes that take it alone? An image is, a sound: a mask is not. */
static int mlo_is_weighed(const mlo_graph *g, const char *name, int depth) {
    enum { NODES = 12 };
    int weighed = 0;
    for (size_t i = 0; i < g->n_node && depth < NODES && !weighed; i++) {
        const mlo_node *n = g->node[i];
        if (!mlo_takes_alone(g, n, name)) continue;
        weighed = mlo_has_trait(n, MLO_MATRIX);
        for (size_t k = 0; k < n->n_output && !weighed; k++)
            weighed = mlo_is_weighed(g, n->output[k], depth + 1);
    }
    return weighed;
}

/* Are its numbers those of samples, of all that the type can hold? */
static int mlo_is_sampled(const mlo_graph *g, const char *name, mlo_dtype dtype) {
    const int narrow = dtype == MLO_UINT8 || dtype == MLO_INT8 || dtype == MLO_UINT16
        || dtype == MLO_INT16;
    return narrow && mlo_is_weighed(g, name, 0);
}

/* Are a model's numbers integers, whatever carries them? */
static int mlo_of_integers(const mlo *m, const mlo_graph *g) {
    return mlo_meta_get(m->model->meta, m->model->n_meta, mlo_key_integers) || mlo_has_dialect(g);
}

/* Draws an input from its type where no sample is given: normal floats (in a network of integers
 * those of 8 bits); indices over their table; numbers of an image or a sound, all that their type
 * holds; masks that keep a random prefix. A boolean mask that is
 * called after padding marks what does not count, as PyTorch's key_padding_mask does: all behind the
 * prefix. Another one may mean that, too: it is never all true, so that some keys always count. */
static mlo_array *mlo_draw_input(
    mlo *m, const mlo_graph *g, const mlo_value_info *info, uint64_t *seed) {
    mlo_form f = mlo_form_of(mlo_value_of(g, info->name));
    if (!mlo_form_known(&f)) {
        mlo_fail_at(m, MLO_E_SHAPE, info->name,
            "the shape of this input is not known; bind its dimensions with --dim or --shape");
        return NULL;
    }
    mlo_array *a = mlo_array_new(m, f.dtype, f.rank, f.dims);
    if (!a) return NULL;
    a->name = info->name;
    int64_t n = mlo_form_count(&f);
    const int whole = mlo_of_integers(m, g);
    const int hides = f.dtype == MLO_BOOL && strstr(info->name, "pad") != NULL;
    int64_t range = mlo_input_range(g, info->name);
    int64_t keep = n / 2 + (int64_t)(mlo_random(seed) % (uint64_t)(n / 2 + 1));
    if (range == 2 && !whole && mlo_is_sampled(g, info->name, f.dtype))
        range = 1 << 8 * mlo_dtype_size(f.dtype);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = mlo_random(seed);
        double sum = 0;
        for (int k = 0; k < 4; k++) sum += (double)(bits >> (16 * k) & 0xffff) / 65536.0 - 0.5;
        const float x = whole ? (float)floor(sum * 64) : (float)(sum * 1.7320508);
        if (mlo_dtype_is_float(f.dtype))
            mlo_convert(
                f.dtype, (char *)a->data + (size_t)i * mlo_dtype_size(f.dtype), MLO_FLOAT, &x, 1);
        else
            mlo_set_element(a, i,
                range > 2 ? (int64_t)((bits >> 11) % (uint64_t)range)
                          : (i < keep || keep == 0) != hides);
        if (f.dtype == MLO_BOOL && !hides && n > 1 && i == n - 1) mlo_set_element(a, i, 0);
    }
    return a;
}

/* Sample k of a calibration array: the array itself when it has the input's rank, else its k-th
 * slice. */
static mlo_array *mlo_calib_sample(
    mlo *m, const mlo_graph *g, const mlo_value_info *info, const mlo_array *a, int64_t k) {
    mlo_form f = mlo_form_of(mlo_value_of(g, info->name));
    int stacked = a->rank == f.rank + 1, first = a->rank == f.rank && f.rank > 0 && f.dims[0] == 1;
    int64_t count = stacked || first ? a->dims[0] : 1;
    int fits = stacked || a->rank == f.rank;
    for (int i = 0; fits && i < f.rank; i++)
        fits = f.dims[i] == a->dims[i + stacked] || (i == 0 && first);
    if (a->dtype != f.dtype) {
        mlo_fail_at(m, MLO_E_TYPE, info->name,
            "the calibration data are %s, the input takes %s; convert them",
            mlo_dtype_name(a->dtype), mlo_dtype_name(f.dtype));
        return NULL;
    }
    if (!fits) {
        mlo_fail_at(m, MLO_E_SHAPE, info->name,
            "the calibration data are %s, the input takes %s; give that shape, or one more axis of "
            "samples in front",
            mlo_dims_text(m, a->rank, a->dims), mlo_dims_text(m, f.rank, f.dims));
        return NULL;
    }
    if (count < 1) {
        mlo_fail_at(
            m, MLO_E_SHAPE, info->name, "the calibration data hold no sample; give at least one");
        return NULL;
    }
    mlo_array *s = mlo_array_new(m, f.dtype, f.rank, f.dims);
    size_t bytes = s ? (size_t)mlo_array_count(s) * mlo_dtype_size(f.dtype) : 0;
    if (s) {
        memcpy(s->data, (const char *)a->data + (size_t)(k % count) * bytes, bytes);
        s->name = info->name;
    }
    return s;
}

static const mlo_array *mlo_calib_of(const mlo *m, const char *name) {
    for (size_t i = 0; i < m->n_calib; i++)
        if (mlo_eq(m->calib[i].name, name)) return &m->calib[i];
    return NULL;
}

/* Multiply-accumulates of the loops, all iterations. */
static double mlo_loop_macs(const mlo_graph *g) {
    double macs = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_graph *body = mlo_is_scan(g->node[i]) ? mlo_graph_of(g->node[i], "body") : NULL;
        mlo_form stack = mlo_form_of(
            body ? mlo_value_of(g, g->node[i]->input[g->node[i]->n_input - 1]) : NULL);
        if (body && stack.rank > 0) macs += (double)mlo_body_macs(body) * (double)stack.dims[0];
    }
    return macs;
}

/* How many inputs to draw where no samples are given: 8 (`few` where products of channels are asked
 * for: these are more numbers), or fewer (4, 2, 1) where evaluating a large model would take longer than
 * seconds. Such a model has many tokens, or channels whose statistics are alike. */
static int64_t mlo_samples_drawn(mlo *m, int64_t few) {
    const double most = 16e9; /* multiply-accumulates in the loops, all samples */
    const double macs = mlo_loop_macs(m->model->graph);
    int64_t samples = mlo_opt_int(m, "weights", 8, 2, 8) <= MLO_FEW_BITS ? few : 8;
    while (samples > 1 && macs * (double)samples > most) samples /= 2;
    return samples;
}

/* Arrays for what is no input: perhaps of the export, which positions, pasts and masks have gone from. */
static void mlo_calib_others(mlo *m) {
    for (size_t i = 0; i < m->n_calib; i++)
        if (mlo_input_of(m->model->graph, m->calib[i].name) == m->model->graph->n_input)
            mlo_warn(m,
                "the calibration data have '%s', which is no input of what was read: it is left "
                "out",
                m->calib[i].name);
}

/* An input that the calibration data have nothing for; NULL: there is none, or no such data. */
static const char *mlo_calib_missing(const mlo *m) {
    const mlo_graph *g = m->model->graph;
    for (size_t k = 0; m->n_calib && k < g->n_input; k++)
        if (!mlo_value_of(g, g->input[k]->name)->tensor && !mlo_calib_of(m, g->input[k]->name))
            return g->input[k]->name;
    return NULL;
}

static int mlo_calib_check(mlo *m, int64_t *samples) {
    const mlo_graph *g = m->model->graph;
    const char *missing = mlo_calib_missing(m);
    *samples = m->n_calib ? 1 : mlo_samples_drawn(m, MLO_SAMPLES_GRAM);
    for (size_t i = 0; i < m->n_calib; i++) {
        const size_t k = mlo_input_of(g, m->calib[i].name);
        if (k == g->n_input && missing)
            return mlo_fail_at(m, MLO_E_FORMAT, m->calib[i].name,
                "calibration data for an input the model does not have; it has '%s'%s", missing,
                g->n_input > 1 ? " and more" : "");
        if (k == g->n_input) continue; /* mlo_calib_others says so */
        mlo_form f = mlo_form_of(mlo_value_of(g, g->input[k]->name));
        if (m->calib[i].rank == f.rank + 1
            || (f.rank && f.dims[0] == 1 && m->calib[i].rank == f.rank))
            *samples = m->calib[i].dims[0] > *samples ? m->calib[i].dims[0] : *samples;
    }
    return missing ? mlo_fail_at(m, MLO_E_FORMAT, missing,
                         "the calibration data have no array of this input's name; add it")
                   : 0;
}

static void mlo_sample_free(mlo *m, mlo_array **arrays, size_t n) {
    for (size_t i = 0; arrays && i < n; i++) mlo_array_free(m, arrays[i]);
    mlo_scratch_free(m, arrays);
}

/* The inputs of sample k: from the calibration data, or drawn. *n arrays, in scratch memory
 * (mlo_sample_free); NULL when it fails. */
static mlo_array **mlo_sample_inputs(mlo *m, int64_t k, size_t *n) {
    mlo_graph *g = m->model->graph;
    uint64_t seed = 0x6d6c6f2e6f6e6e78u + (uint64_t)k * 0x9E3779B97F4A7C15u;
    mlo_array **arrays = (mlo_array **)mlo_scratch(m, g->n_input + 1, sizeof *arrays);
    *n = 0;
    for (size_t i = 0; arrays && i < g->n_input && !m->error.code; i++) {
        if (mlo_value_of(g, g->input[i]->name)->tensor) continue;
        const mlo_array *a = mlo_calib_of(m, g->input[i]->name);
        arrays[(*n)++] = a ? mlo_calib_sample(m, g, g->input[i], a, k)
                           : mlo_draw_input(m, g, g->input[i], &seed);
    }
    if (!m->error.code) return arrays;
    mlo_sample_free(m, arrays, *n);
    return NULL;
}

/* Evaluates the model as it stands on sample k; `see` gets its values. */
static int mlo_sample_run(mlo *m, int64_t k, const mlo_observer *see) {
    size_t n;
    mlo_array **in = mlo_sample_inputs(m, k, &n);
    mlo_array *flat = in ? (mlo_array *)mlo_scratch(m, n + 1, sizeof *flat) : NULL;
    for (size_t i = 0; flat && i < n; i++) flat[i] = *in[i];
    if (flat) mlo_eval_observed(m, flat, n, see);
    mlo_scratch_free(m, flat);
    mlo_sample_free(m, in, n);
    return mlo_failed(m);
}

typedef int (*mlo_value_seen)(
    void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *value);

/* Who observes a model sees what nodes make: a memory that is an input of the model is shown here. */
static int mlo_show_memory(mlo_quantizer *q, int64_t k, mlo_value_seen what) {
    const mlo_value *v = mlo_value_of(q->scan.outer, q->r.in.memory);
    size_t n;
    if (!v || v->producer) return 0;
    mlo_array **in = mlo_sample_inputs(q->m, k, &n);
    for (size_t i = 0; in && i < n && !q->m->error.code; i++)
        if (mlo_eq(in[i]->name, q->r.in.memory)) what(q, q->scan.outer, -1, q->r.in.memory, in[i]);
    mlo_sample_free(q->m, in, n);
    return mlo_failed(q->m);
}

/* The float model on every sample there is. */
static int mlo_calibrate_run(mlo_quantizer *q, mlo_value_seen what) {
    mlo *m = q->m;
    if (mlo_calib_check(m, &q->samples)) return mlo_failed(m);
    mlo_observer see = { .user = q, .see = what, .last = q->scan.body };
    for (int64_t k = 0; k < q->samples && !m->error.code; k++) {
        mlo_work(m, "calibrates", k, q->samples);
        if (!mlo_show_memory(q, k, what)) mlo_sample_run(m, k, &see);
    }
    mlo_work_over(m);
    return mlo_failed(m);
}

/* What rounding makes of what was seen: from the tape, or by another evaluation. */
static int mlo_drift_run(mlo_quantizer *q) {
    if (q->tape_bytes > MLO_TAPE) return mlo_calibrate_run(q, mlo_drift_see);
    for (size_t i = 0; i < q->n_tape; i++) {
        const mlo_taped *t = &q->tape[i];
        MLO_TRY(mlo_drift_see(q, t->g, t->iteration, t->name, t->value));
    }
    return 0;
}
