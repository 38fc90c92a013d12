/* feedback: rounds weights of few bits, such that the channels of an operand make up for each other.
 *
 * in:  a layer's weights [K, N] and their scales; the mean products of the K channels that it reads,
 *      as the calibration saw them.
 * out: integers [K, N]; or the expected square error of each column, which says which scales are best.
 *
 * Rounding each weight for itself is best where channels are independent; they are not. Of a column,
 * w - s q = d, the result has the square error d' H d, H being the channels' covariance (the means
 * are the bias's business, linear.c). With H = U D U', U unit upper triangular, that is the sum over
 * the channels k of
 *     D_k (d_k + U_0k d_0 + .. + U_(k-1)k d_(k-1))^2
 * so one channel after the other is rounded, not to its own weight, but to w_k plus what those before
 * it have left: GPTQ (Frantar et al., 2022), in the form that QuIP (Chee et al., 2023) gives it. The
 * channels that move most come first, as the most may still be made up for.
 *
 * What is rounded early cannot know what comes behind it. So each weight then moves, in turn, to the integer at
 * which its column's error is least, all others being what they are; a few times, if tokens enough were seen.
 *
 * A covariance of a few thousand tokens is a guess: a tenth of the mean variance is added to each. Of
 * more than MLO_GRAM channels, only those of one block make up for each other.
 *
 * invariant: every weight is in its range. A matrix of channels that are independent is rounded to the
 *     nearest. Sums are taken in one order, in double: the same model gives the same weights.
 * example: 4-bit weights of a Llama of 260,000 parameters: a text's cross entropy is 1.06 of the floats'; where
 *     there is time, aim.c makes it 1.03.
 * cost: K min(K, MLO_GRAM) N / 2 multiply-accumulates, per layer and scale that is tried; and the integers
 *     of all iterations are in memory.
 */
enum { MLO_SETTLES = 4 }; /* turns, which leave little to gain */
static const double mlo_damping = 0.1; /* of the mean variance */

/* A linear layer's weights that are rounded already (aim.c). */
typedef struct mlo_fed {
    int8_t *word; /* [iteration, K, N] */
    float *scale; /* [iteration, N] */
    double *off; /* [iteration, K]: the mean that its channels had then, less that of the floats */
} mlo_fed;

/* Is the layer rounded so? Weights that are given are what they are; so is a layer whose bias is. */
static int mlo_is_fed_back(const mlo_quantizer *q, const mlo_sublayer *b) {
    return b->kind == MLO_LINEAR && q->weights <= MLO_FEW_BITS && !b->weight_given && !b->bias_given
        && !b->sum_given && !mlo_is_sketch(q->m);
}

/* Are the layer's scales those that are best for weights that make up for each other? It takes as many times as
 * long as scales are tried: small models have the time. */
static int mlo_is_searched(const mlo_quantizer *q, const mlo_sublayer *b) {
    return mlo_is_fed_back(q, b) && q->fed < 4e8;
}

/* Asks the calibration for the products of channels that such layers read. */
static int mlo_gram_open(mlo_quantizer *q) {
    for (size_t k = 0; k < q->r.n_block && !q->m->error.code; k++) {
        const mlo_sublayer *b = q->r.block[k];
        mlo_signal *s = mlo_signal_of(q, b->in[0]), *y = mlo_signal_of(q, b->out);
        if (!s || !y || !mlo_is_fed_back(q, b)) continue;
        const int64_t products = q->scan.iterations * s->channels * mlo_gram_width(s);
        q->fed += (double)products * (double)y->channels / 2;
        if (!s->gram) s->gram = MLO_NEW_N(q->m, double, (size_t)products);
    }
    return mlo_failed(q->m);
}

/* A block of channels. */
typedef struct {
    int n; /* channels */
    int order[MLO_GRAM]; /* which comes k-th, counted from the first of the block */
    double *h; /* [n, n]: U above the diagonal of their covariance, D on it */
    double *whole; /* [n, n]: the covariance itself */
    double *left; /* [n, MLO_LANES]: what is left of the weights of a few columns */
} mlo_block_fed;

/* The covariance of the operand's channels c and k, in steps of their shapes. */
static double mlo_covariance(const mlo_signal *x, int64_t i, int64_t c, int64_t k) {
    const int64_t at = i * x->channels, low = c < k ? c : k, high = c < k ? k : c;
    const double product = x->gram[(at + high) * mlo_gram_width(x) + low % MLO_GRAM];
    return (product - x->mean[at + c] * x->mean[at + k])
        / (mlo_shape_at(x, at + c) * mlo_shape_at(x, at + k));
}

/* The channels from `first` on, those of large variance in front. */
static void mlo_block_order(mlo_block_fed *f, const mlo_signal *x, int64_t i, int64_t first) {
    double variance[MLO_GRAM];
    for (int k = 0; k < f->n; k++) {
        const double v = mlo_covariance(x, i, first + k, first + k);
        int at = k;
        for (; at && v > variance[at - 1]; at--) {
            variance[at] = variance[at - 1];
            f->order[at] = f->order[at - 1];
        }
        variance[at] = v;
        f->order[at] = k;
    }
}

/* Puts U of H = U D U' above the diagonal of H. */
static void mlo_block_factor(double *h, int n) {
    for (int k = n; k-- > 1;)
        for (int j = 0; j < k; j++) {
            const double u = h[j * n + k] / h[k * n + k];
            for (int e = 0; e <= j; e++) h[e * n + j] -= u * h[e * n + k];
        }
    for (int j = 0; j < n; j++)
        for (int k = j + 1; k < n; k++) h[j * n + k] /= h[k * n + k];
}

static void mlo_block_open(mlo_block_fed *f, const mlo_signal *x, int64_t i, int64_t first) {
    const int n = f->n;
    double mean = 0;
    mlo_block_order(f, x, i, first);
    for (int j = 0; j < n; j++)
        for (int k = j; k < n; k++)
            f->h[j * n + k] = mlo_covariance(x, i, first + f->order[j], first + f->order[k]);
    for (int k = 0; k < n; k++) mean += f->h[k * n + k] / n;
    for (int k = 0; k < n; k++) f->h[k * n + k] += mean > 1e-30 ? mlo_damping * mean : 1;
    for (int j = 0; j < n; j++)
        for (int k = j; k < n; k++) f->whole[j * n + k] = f->whole[k * n + j] = f->h[j * n + k];
    mlo_block_factor(f->h, n);
}

/* Rounds `lanes` columns of the block; adds their expected square errors, where they are asked for. w, word: its
 * first row, at the first of these columns. */
static void mlo_block_round(const mlo_block_fed *f, const float *w, const float *shape,
    int64_t columns, const mlo_weight_range *r, const float *scale, int lanes, int8_t *word,
    float *error) {
    for (int k = 0; k < f->n; k++) {
        const int64_t c = f->order[k];
        double *own = f->left + k * MLO_LANES, more[MLO_LANES] = { 0 };
        for (int j = 0; j < k; j++)
            for (int n = 0; n < MLO_LANES; n++)
                more[n] += f->h[j * f->n + k] * f->left[j * MLO_LANES + n];
        for (int n = 0; n < lanes; n++) {
            const double v = (double)w[c * columns + n] * (shape ? (double)shape[c] : 1);
            const float y = mlo_rounded_weight((float)((v + more[n]) / (double)scale[n]), r);
            own[n] = v - (double)scale[n] * (double)y;
            more[n] += own[n];
            if (error)
                error[n] += (float)(f->h[k * f->n + k] * more[n] * more[n]);
            else
                word[c * columns + n] = (int8_t)y;
        }
    }
}

/* Moves rounded weights of `lanes` columns, one after the other, to where the columns' errors are least. f->left:
 * what mlo_block_round has left. */
static void mlo_block_settle(const mlo_block_fed *f, int64_t columns, const mlo_weight_range *r,
    const float *scale, int lanes, int8_t *word) {
    for (int k = 0; k < f->n; k++) {
        int8_t *own = word + f->order[k] * columns;
        const double *row = f->whole + k * f->n;
        double slope[MLO_LANES] = { 0 };
        for (int j = 0; j < f->n; j++)
            for (int n = 0; n < MLO_LANES; n++) slope[n] += row[j] * f->left[j * MLO_LANES + n];
        for (int n = 0; n < lanes; n++) {
            const double step = (double)scale[n];
            const float y = mlo_rounded_weight((float)(own[n] + slope[n] / row[k] / step), r);
            f->left[k * MLO_LANES + n] -= step * ((double)y - own[n]);
            own[n] = (int8_t)y;
        }
    }
}

/* One iteration's weights: to integers, or their columns' errors alone. One of word and error is NULL. */
static int mlo_feedback(mlo *m, const mlo_array *w, const mlo_signal *x, int64_t i,
    const mlo_weight_range *r, const float *scale, int8_t *word, float *error) {
    const int64_t rows = w->dims[0], columns = w->dims[1], width = mlo_gram_width(x);
    const float *weight = (const float *)w->data;
    const int settles = mlo_is_well_seen(x);
    mlo_block_fed f = { 0 };
    f.h = (double *)mlo_scratch(m, (size_t)(width * (2 * width + MLO_LANES)), sizeof *f.h);
    f.whole = f.h ? f.h + width * width : NULL;
    f.left = f.h ? f.whole + width * width : NULL;
    if (error) memset(error, 0, (size_t)columns * sizeof *error);
    for (int64_t first = 0; f.h && first < rows; first += MLO_GRAM) {
        const float *shape = x->shape ? x->shape + i * rows + first : NULL;
        f.n = (int)(rows - first < width ? rows - first : width);
        mlo_block_open(&f, x, i, first);
        for (int64_t n = 0; n < columns; n += MLO_LANES) {
            const int lanes = (int)(columns - n < MLO_LANES ? columns - n : MLO_LANES);
            int8_t *to = word ? word + first * columns + n : NULL;
            mlo_block_round(&f, weight + first * columns + n, shape, columns, r, scale + n, lanes,
                to, error ? error + n : NULL);
            for (int turn = 0; to && settles && turn < MLO_SETTLES; turn++)
                mlo_block_settle(&f, columns, r, scale + n, lanes, to);
        }
    }
    mlo_scratch_free(m, f.h);
    return mlo_failed(m);
}
