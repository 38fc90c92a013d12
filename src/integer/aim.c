/* aim: rounds weights of few bits, layer after layer, at what the floats make of a sample.
 *
 * in:  a quantizer whose scales are chosen, and its samples.
 * out: the rounded weights of its linear layers (b->fed), for those that feedback.c rounds.
 *
 * Rounding a layer for itself (feedback.c) leaves its own error alone; but what it reads has errors, too, of the
 * layers in front of it that are rounded. These errors depend on what it reads, so that part of them can be
 * taken back: of z, which stands where the floats have x, the weights V nearest to W in z V = x W are
 *     V = W + (H + damping)^-1 (C - H) W,    H = cov(z, z), C = cov(z, x)
 * and V is what is rounded, on the covariance H (GPTAQ, Li et al., 2025). What a layer makes is added to a
 * value r that has errors, too. What z says of them the layer makes up for:
 *     V = W + (H + damping)^-1 ((C - H) W + cov(z, r in floats - r))
 * (if tokens enough were seen). Three quarters of the way to V are gone: a covariance of a few thousand
 * tokens is a guess.
 *
 * An iteration of the loop runs alone: in floats, on every sample, from where the iteration before has left
 * it; then for each value that linear layers read, on what those in front of it make, once these are rounded.
 * Whoever is rounded gets its result replaced, as it is observed.
 *
 * invariant: nothing that a layer's weights depend on changes behind it. Means stay exact.
 * example: a Llama of 260,000 parameters with 4-bit weights: a text's cross entropy is 1.029 of the floats'
 *     (tests/test_stories.py four). On 128 other texts the divergence from the floats falls
 *     from 0.048 nats a token to 0.045 where sums are made up for.
 * cost: per sample as many float evaluations as an iteration has values that linear layers read (four, of a
 *     decoder), and two, and of the loops in front of it more; MLO_AIMED_MACS bounds them. What is read in an iteration
 *     is kept, of all samples, as is what is added to.
 */
#define MLO_AIMED_MACS 16e9 /* multiply-accumulates, all samples */
static const double mlo_aimed_part = 0.75;

/* A value that linear layers read, or that what they make is added to, in the present iteration. */
typedef struct {
    mlo_signal *s;
    int64_t rows;
    float *x; /* [sample, rows, channels]: in floats */
    float *z; /* [rows, channels]: in the present run */
    int made; /* 1: z is there */
} mlo_aimed_signal;

/* A linear layer in the present iteration. */
typedef struct {
    mlo_sublayer *b;
    mlo_aimed_signal *in;
    mlo_aimed_signal *sum; /* what its result is added to, made before in is; NULL: nothing */
    int64_t n; /* channels that it makes */
    double *lost; /* [1 + K, N]: sums of what the other summand has lost; of these times z */
    int rounded; /* 1: w is there */
    float *w; /* [K, N]: what the rounded weights stand for */
    float *bias; /* [N] */
} mlo_aimed_layer;

typedef struct {
    mlo_quantizer *q;
    mlo_aimed_signal *in;
    size_t n_in;
    size_t n_read; /* the first of them: those that linear layers read */
    mlo_aimed_layer *layer;
    size_t n_layer;
    int64_t iteration;
    int64_t sample;
    int64_t count; /* elements of the carried value */
    /* [sample, count]: what enters the iteration; in floats, with rounded weights */
    float *state[2];
    int rounding; /* 1: the run is one with rounded weights */
    const mlo_aimed_signal *of; /* whose products are summed in it, NULL: nobody's */
    double *cross; /* [K, MLO_GRAM]: sums of z x, of a block; then C - H */
    double *mean; /* [K]: sums of z */
} mlo_aimer;

/* ---- what is there -------------------------------------------------------- */

static mlo_aimed_signal *mlo_aim_signal(mlo_aimer *a, mlo_signal *s) {
    mlo *m = a->q->m;
    const mlo_form f = mlo_body_form(&a->q->r.in, s->name);
    const size_t count = (size_t)mlo_form_count(&f);
    mlo_aimed_signal *in = a->in;
    while (in < a->in + a->n_in && in->s != s) in++;
    if (in < a->in + a->n_in) return in;
    a->n_in++;
    in->s = s;
    in->rows = mlo_form_count(&f) / s->channels;
    in->x = MLO_NEW_N(m, float, (size_t)(a->q->samples * mlo_form_count(&f)));
    in->z = MLO_NEW_N(m, float, count);
    return in;
}

static int mlo_aim_layer(mlo_aimer *a, mlo_sublayer *b, mlo_signal *x) {
    mlo *m = a->q->m;
    const size_t n = (size_t)mlo_signal_of(a->q, b->out)->channels, k = (size_t)x->channels;
    const size_t iterations = (size_t)a->q->scan.iterations;
    mlo_aimed_layer *l = &a->layer[a->n_layer++];
    if (!(b->fed = MLO_NEW(m, mlo_fed))) return mlo_failed(m);
    b->fed->word = MLO_NEW_N(m, int8_t, (size_t)(iterations * k * n));
    b->fed->scale = MLO_NEW_N(m, float, (size_t)(iterations * n));
    b->fed->off = MLO_NEW_N(m, double, (size_t)(iterations * k));
    l->b = b;
    l->in = mlo_aim_signal(a, x);
    l->n = (int64_t)n;
    l->w = MLO_NEW_N(m, float, (size_t)(k * n));
    l->bias = MLO_NEW_N(m, float, n);
    return mlo_failed(m);
}

/* What a layer's result is added to. */
static int mlo_aim_sum(mlo_aimer *a, mlo_aimed_layer *l) {
    mlo *m = a->q->m;
    for (size_t i = 0; mlo_is_well_seen(l->in->s) && i < a->q->r.n_block && !l->sum; i++) {
        const mlo_sublayer *b = a->q->r.block[i];
        const int k = b->in[0] == l->b->out;
        if (b->kind == MLO_RESIDUAL && (k || b->in[1] == l->b->out))
            l->sum = mlo_aim_signal(a, mlo_signal_of(a->q, b->in[k]));
    }
    if (l->sum && (l->sum->rows != l->in->rows || l->sum->s->channels != l->n)) l->sum = NULL;
    if (l->sum) l->lost = MLO_NEW_N(m, double, (size_t)((1 + l->in->s->channels) * l->n));
    return mlo_failed(m);
}

/* The layers, and what they read, in order. The memory is nobody's result. */
static int mlo_aim_open(mlo_aimer *a) {
    mlo_quantizer *q = a->q;
    mlo *m = q->m;
    const mlo_form f = mlo_body_form(&q->r.in, q->scan.body->input[0]->name);
    int64_t most = 1;
    a->in = MLO_NEW_N(m, mlo_aimed_signal, 2 * q->r.n_block);
    a->layer = MLO_NEW_N(m, mlo_aimed_layer, q->r.n_block);
    a->count = mlo_form_count(&f);
    for (int k = 0; k < 2; k++) a->state[k] = MLO_NEW_N(m, float, (size_t)(a->count * q->samples));
    for (size_t k = 0; k < q->r.n_block && !m->error.code; k++) {
        mlo_sublayer *b = q->r.block[k];
        mlo_signal *x = mlo_signal_of(q, b->in[0]);
        if (!mlo_is_fed_back(q, b) || x->memory) continue;
        most = x->channels > most ? x->channels : most;
        mlo_aim_layer(a, b, x);
    }
    a->n_read = a->n_in;
    for (size_t k = 0; k < a->n_layer && !m->error.code; k++) mlo_aim_sum(a, &a->layer[k]);
    a->cross = MLO_NEW_N(m, double, (size_t)most *MLO_GRAM);
    a->mean = MLO_NEW_N(m, double, (size_t)most);
    return mlo_failed(m);
}

/* ---- a run ---------------------------------------------------------------- */

/* A token's products: of the channels with each other, and with those in floats. */
static void mlo_aim_products(mlo_aimer *a, const float *z, const float *x) {
    mlo_signal *s = a->of->s;
    mlo_gram_see(s, a->iteration, z);
    for (int64_t c = 0; c < s->channels; c++) {
        const int64_t first = c - c % MLO_GRAM;
        const int64_t end = first + MLO_GRAM < s->channels ? first + MLO_GRAM : s->channels;
        double *row = a->cross + c * MLO_GRAM;
        a->mean[c] += (double)z[c];
        for (int64_t k = first; k < end; k++) row[k - first] += (double)z[c] * (double)x[k];
    }
}

/* A token's products with what the other summand of a layer's result has lost. */
static void mlo_aim_lost(const mlo_aimed_layer *l, int64_t sample, int64_t token, const float *z) {
    const mlo_aimed_signal *sum = l->sum;
    const float *now = sum->z + token * l->n;
    const float *x = sum->x + (sample * sum->rows + token) * l->n;
    double *row = l->lost;
    for (int64_t n = 0; n < l->n; n++) row[n] += (double)x[n] - (double)now[n];
    for (int64_t k = 0; k < l->in->s->channels; k++) {
        row += l->n;
        for (int64_t n = 0; n < l->n; n++) row[n] += (double)z[k] * ((double)x[n] - (double)now[n]);
    }
}

static void mlo_aim_read(mlo_aimer *a, mlo_aimed_signal *in, const float *value) {
    const int64_t channels = in->s->channels, count = in->rows * channels;
    float *x = in->x + a->sample * count;
    in->made = 1;
    memcpy(in->z, value, (size_t)count * sizeof *value);
    if (!a->rounding) memcpy(x, value, (size_t)count * sizeof *value);
    for (size_t k = 0; k < a->n_layer; k++)
        if (a->layer[k].in == in && a->layer[k].sum && !a->layer[k].sum->made)
            a->layer[k].sum = NULL; /* it may be made of what the layer makes */
    for (int64_t i = 0; in == a->of && i < in->rows; i++) {
        if (!mlo_counts(&a->q->keys[0].counting, in->rows, i)) continue;
        mlo_aim_products(a, value + i * channels, x + i * channels);
        for (size_t k = 0; k < a->n_layer; k++)
            if (a->layer[k].in == in && a->layer[k].sum)
                mlo_aim_lost(&a->layer[k], a->sample, i, value + i * channels);
    }
}

/* y := what a layer makes with rounded weights. */
static void mlo_aim_make(const mlo_aimed_layer *l, float *y) {
    const int64_t channels = l->in->s->channels;
    const float *z = l->in->z;
    for (int64_t i = 0; i < l->in->rows; i++, y += l->n) {
        const float *w = l->w;
        memcpy(y, l->bias, (size_t)l->n * sizeof *y);
        for (int64_t k = 0; k < channels; k++, w += l->n) {
            const float v = *z++;
            for (int64_t n = 0; n < l->n; n++) y[n] += v * w[n];
        }
    }
}

static int mlo_aim_see(
    void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *array) {
    mlo_aimer *a = (mlo_aimer *)user;
    float *value = (float *)array->data, *state;
    MLO_TRY(mlo_keys_see(a->q, name, array));
    if (g != a->q->scan.body || array->dtype != MLO_FLOAT) return 0;
    state = a->state[a->rounding] + a->sample * a->count;
    if (name == g->input[0]->name && iteration)
        memcpy(value, state, (size_t)a->count * sizeof *value);
    for (size_t k = 0; a->rounding && k < a->n_layer; k++)
        if (a->layer[k].rounded && name == a->layer[k].b->out) mlo_aim_make(&a->layer[k], value);
    for (size_t k = 0; k < a->n_in; k++)
        if (name == a->in[k].s->name) mlo_aim_read(a, &a->in[k], value);
    /* the state is read before it is left, and may be left only when nobody runs this iteration again */
    if (name == g->output[0]->name && !a->of)
        memcpy(state, value, (size_t)a->count * sizeof *value);
    return 0;
}

/* The present iteration on every sample: in floats or with rounded weights; for the products of a value, or to
 * leave it. */
static int mlo_aim_run(mlo_aimer *a, int rounding, const mlo_aimed_signal *of) {
    const mlo_observer see = {
        .user = a, .see = mlo_aim_see, .last = a->q->scan.body, .one = 1 + a->iteration
    };
    a->rounding = rounding;
    a->of = of;
    for (a->sample = 0; a->sample < a->q->samples && !a->q->m->error.code; a->sample++) {
        for (size_t k = 0; k < a->n_in; k++) a->in[k].made = 0;
        mlo_sample_run(a->q->m, a->sample, &see);
    }
    return mlo_failed(a->q->m);
}

/* ---- rounding ------------------------------------------------------------- */

/* Sums to covariances: cross to C - H; the products as if they were about the means of the floats. */
static void mlo_aim_covariances(const mlo_aimer *a) {
    const mlo_signal *s = a->of->s;
    const int64_t at = a->iteration * s->channels, width = mlo_gram_width(s);
    const double rows = s->rows[a->iteration], *mean = s->mean + at;
    for (int64_t c = 0; c < s->channels; c++) a->mean[c] /= rows;
    for (int64_t c = 0; c < s->channels; c++) {
        const int64_t first = c - c % MLO_GRAM;
        double *row = s->gram + (at + c) * width - first;
        for (int64_t k = first; k <= c; k++)
            row[k] = row[k] / rows - a->mean[c] * a->mean[k] + mean[c] * mean[k];
    }
    for (int64_t c = 0; c < s->channels; c++) {
        const int64_t first = c - c % MLO_GRAM;
        for (int64_t k = first; k < first + MLO_GRAM && k < s->channels; k++) {
            const double step = mlo_shape_at(s, at + c) * mlo_shape_at(s, at + k);
            double *both = &a->cross[c * MLO_GRAM + k - first];
            *both = (*both / rows - a->mean[c] * mean[k]) / step
                - mlo_covariance(s, a->iteration, c, k);
        }
    }
}

/* Sums to covariances: of what the other summand has lost with z, a block's part of it. */
static void mlo_aim_lost_covariances(const mlo_aimer *a, mlo_aimed_layer *l) {
    const mlo_signal *s = l->in->s;
    const double rows = s->rows[a->iteration];
    const double blocks = ceil((double)s->channels / (double)MLO_GRAM);
    for (int64_t k = 0; k < s->channels; k++) {
        const double step = mlo_shape_at(s, a->iteration * s->channels + k) * blocks;
        double *row = l->lost + (1 + k) * l->n;
        for (int64_t n = 0; n < l->n; n++)
            row[n] = (row[n] - a->mean[k] * l->lost[n]) / rows / step;
    }
}

/* z := (U D U')^-1 z, of so many columns. */
static void mlo_block_solve(const mlo_block_fed *f, double *z, int lanes) {
    const int n = f->n;
    for (int j = n; j-- > 0;)
        for (int k = j + 1; k < n; k++)
            for (int c = 0; c < lanes; c++)
                z[j * MLO_LANES + c] -= f->h[j * n + k] * z[k * MLO_LANES + c];
    for (int j = 0; j < n; j++)
        for (int c = 0; c < lanes; c++) z[j * MLO_LANES + c] /= f->h[j * n + j];
    for (int j = 0; j < n; j++)
        for (int k = 0; k < j; k++)
            for (int c = 0; c < lanes; c++)
                z[j * MLO_LANES + c] -= f->h[k * n + j] * z[k * MLO_LANES + c];
}

/* Moves columns of a block's weights. w: its first row, at the first of these; lost: likewise, or NULL; cross: C - H
 * of it. */
static void mlo_block_aim(const mlo_block_fed *f, const double *cross, const float *shape, float *w,
    const double *lost, int64_t columns, int lanes) {
    memset(f->left, 0, (size_t)f->n * MLO_LANES * sizeof *f->left);
    for (int j = 0; lost && j < f->n; j++)
        memcpy(f->left + j * MLO_LANES, lost + f->order[j] * columns, (size_t)lanes * sizeof *lost);
    for (int j = 0; j < f->n; j++)
        for (int k = 0; k < f->n; k++) {
            const double v = cross[f->order[j] * MLO_GRAM + k] * (shape ? (double)shape[k] : 1);
            for (int c = 0; c < lanes; c++)
                f->left[j * MLO_LANES + c] += v * (double)w[k * columns + c];
        }
    mlo_block_solve(f, f->left, lanes);
    for (int j = 0; j < f->n; j++) {
        const int k = f->order[j];
        const double part = mlo_aimed_part / (shape ? (double)shape[k] : 1);
        for (int c = 0; c < lanes; c++)
            w[k * columns + c] += (float)(part * f->left[j * MLO_LANES + c]);
    }
}

/* The weights that are to be rounded, in place of the source's. */
static int mlo_aim_weights(const mlo_aimer *a, const mlo_aimed_layer *l, mlo_array *w) {
    mlo *m = a->q->m;
    const mlo_signal *x = a->of->s;
    const int64_t rows = w->dims[0], columns = w->dims[1], width = mlo_gram_width(x);
    mlo_block_fed f = { 0 };
    f.h = (double *)mlo_scratch(m, (size_t)(width * (2 * width + MLO_LANES)), sizeof *f.h);
    f.whole = f.h ? f.h + width * width : NULL;
    f.left = f.h ? f.whole + width * width : NULL;
    for (int64_t first = 0; f.h && first < rows; first += MLO_GRAM) {
        f.n = (int)(rows - first < width ? rows - first : width);
        mlo_block_open(&f, x, a->iteration, first);
        for (int64_t n = 0; n < columns; n += MLO_LANES)
            mlo_block_aim(&f, a->cross + first * MLO_GRAM,
                x->shape ? x->shape + a->iteration * rows + first : NULL,
                (float *)w->data + first * columns + n,
                l->sum ? l->lost + (1 + first) * columns + n : NULL, columns,
                (int)(columns - n < MLO_LANES ? columns - n : MLO_LANES));
    }
    mlo_scratch_free(m, f.h);
    return mlo_failed(m);
}

/* What the rounded weights stand for, and the bias with which the mean stays that of the floats. */
static void mlo_aim_known(
    mlo_aimer *a, mlo_aimed_layer *l, const int8_t *word, const float *scale, const double *exact) {
    const mlo_signal *x = l->in->s;
    for (int64_t n = 0; n < l->n; n++) l->bias[n] = (float)exact[n];
    for (int64_t k = 0; k < x->channels; k++)
        for (int64_t n = 0; n < l->n; n++) {
            float *w = &l->w[k * l->n + n];
            *w = (float)((double)scale[n] * word[k * l->n + n]
                / mlo_shape_at(x, a->iteration * x->channels + k));
            l->bias[n] -= (float)(a->mean[k] * (double)*w);
        }
    l->rounded = 1;
}

static int mlo_aim_round(mlo_aimer *a, mlo_aimed_layer *l) {
    mlo_quantizer *q = a->q;
    mlo_sublayer *b = l->b;
    mlo_signal *x = l->in->s;
    const mlo_weight_range r = mlo_weight_range_of(q, b);
    const int64_t i = a->iteration, channels = x->channels;
    mlo_array *w = mlo_weight(q, b, i);
    mlo_array *bias = w && b->bias ? mlo_scan_value(q->m, &q->scan, b->bias, i) : NULL;
    double *exact = (double *)mlo_scratch(q->m, (size_t)l->n, sizeof *exact);
    float *most = (float *)mlo_scratch(q->m, (size_t)l->n, sizeof *most);
    float *scale = b->fed->scale + i * l->n;
    int8_t *word = b->fed->word + i * channels * l->n;
    if (!q->m->error.code) {
        mlo_exact_means(q->m, b, i, w, bias, x, exact);
        if (l->sum) mlo_aim_lost_covariances(a, l);
        if (!mlo_aim_weights(a, l, w) && !mlo_weight_scales(q, b, i, w, x, exact, most, scale)
            && !mlo_feedback(q->m, w, x, i, &r, scale, word, NULL))
            mlo_aim_known(a, l, word, scale, exact);
        for (int64_t k = 0; k < channels; k++)
            b->fed->off[i * channels + k] = a->mean[k] - x->mean[i * channels + k];
    }
    mlo_array_free(q->m, w);
    mlo_array_free(q->m, bias);
    mlo_scratch_free(q->m, exact);
    mlo_scratch_free(q->m, most);
    return mlo_failed(q->m);
}

/* Rounds the layers that read a value, once those in front of it are rounded. */
static int mlo_aim_signal_round(mlo_aimer *a, const mlo_aimed_signal *in) {
    mlo_signal *s = in->s;
    const int64_t products = s->channels * mlo_gram_width(s);
    memset(s->gram + a->iteration * products, 0, (size_t)products * sizeof *s->gram);
    memset(a->cross, 0, (size_t)(s->channels * MLO_GRAM) * sizeof *a->cross);
    memset(a->mean, 0, (size_t)s->channels * sizeof *a->mean);
    for (size_t k = 0; k < a->n_layer; k++)
        if (a->layer[k].in == in && a->layer[k].sum)
            memset(
                a->layer[k].lost, 0, (size_t)((1 + s->channels) * a->layer[k].n) * sizeof(double));
    MLO_TRY(mlo_aim_run(a, 1, in));
    mlo_aim_covariances(a);
    for (size_t k = 0; k < a->n_layer; k++)
        if (a->layer[k].in == in) MLO_TRY(mlo_aim_round(a, &a->layer[k]));
    return 0;
}

/* Is there time for it? */
static int mlo_is_aimed(const mlo_quantizer *q) {
    double layers = 0, values = 0;
    for (size_t k = 0; k < q->r.n_block; k++) layers += mlo_is_searched(q, q->r.block[k]);
    for (size_t k = 0; k < q->n_signals; k++) values += q->signals[k]->gram != NULL;
    const double own = (double)mlo_body_macs(q->scan.body), iterations = (double)q->scan.iterations;
    const double others = mlo_loop_macs(q->scan.outer) - own * iterations;
    return layers > 0 && !q->head
        && (own + others) * iterations * (values + 2) * (double)q->samples < MLO_AIMED_MACS;
}

static int mlo_aim(mlo_quantizer *q) {
    mlo_aimer a = { .q = q };
    if (!mlo_is_aimed(q)) return 0;
    MLO_TRY(mlo_aim_open(&a));
    for (; a.iteration < q->scan.iterations; a.iteration++) {
        for (size_t k = 0; k < a.n_layer; k++) a.layer[k].rounded = 0;
        MLO_TRY(mlo_aim_run(&a, 0, NULL));
        for (size_t k = 0; k < a.n_read; k++) {
            mlo_work(q->m, "aims at the floats", a.iteration * (int64_t)a.n_read + (int64_t)k,
                q->scan.iterations * (int64_t)a.n_read);
            MLO_TRY(mlo_aim_signal_round(&a, &a.in[k]));
        }
        MLO_TRY(mlo_aim_run(&a, 1, NULL));
    }
    mlo_work_over(q->m);
    return mlo_failed(q->m);
}
