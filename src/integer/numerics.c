/* numerics: measures how far the integers are from the floats, value by value, and where the
 * difference comes from.
 *
 * in:  the float model as it was, the integer model that quantize made of it, and the samples of
 *     the calibration. Runs only with the option report or max-error.
 * out: for every value between kernels and every iteration: ranges, errors, saturation, the largest
 *     accumulator, and its share: the part of the noise of the loop's output that arises there.
 *     mlo_report(m, "quantize") writes it; mlo.h says what its members mean.
 *
 * Errors accumulate: each iteration reads what the one before it made. The noise of the output is
 * followed backwards. It is measured relative to how much a value varies, as
 * sum w m e^2 / sum w m (v - mean)^2. The metric m of a channel says how much the channel counts
 * for its readers: a channel with a large constant and small weights counts little. The weight w of
 * a token says how much the token counts behind the next norm, which divides by the variance of the
 * token's channels.
 *
 * A kernel's share is its noise beyond the sum of its operands' noise (an Add, a Mul: in the result's
 * terms).
 * A kernel that only rounds (Requant, Add, Mul, LayerNorm) gets no larger share than its rounding makes.
 * The rest passes on to the operands in proportion. The metric is 1 at the output. A linear layer
 * gives its operand the squares of its weights times the metric of its result; a norm gives the
 * squares of its scale; an attention gives its values its own metric, and its queries the squares
 * of the keys. So each kernel of each iteration gets a share, and all shares, with that of the
 * loop's input, sum to one. This is a model: it takes errors as independent, and what a softmax
 * amplifies counts as the attention's own.
 *
 * invariant: the model does not depend on the report. Memory is a few sums per channel, the
 *     integers of one sample and the floats of one iteration.
 * example: a residual Add whose operands carry noise of 1 and 3 passes on 4; a requantization that
 *     reads 1 and makes 5 adds 4 of its own.
 * cost: per sample an evaluation of the integer model and one of the float model, beyond the two of
 *     the calibration; the weights are read once.
 */

/* A value in one iteration, over all samples: floats v, what the integers stand for a, errors e =
 * a - v. */
typedef struct {
    double count; /* of v */
    double low; /* of v */
    double high; /* of v */
    int64_t least; /* of the integers */
    int64_t largest; /* of the integers */

    double most; /* the largest |e| */
    double error; /* the sum of |e| */
    double noise; /* the sum of e^2 */
    double power; /* the sum of v^2 */
    double got; /* the sum of a^2 */
    double both; /* the sum of a v */
    double clipped; /* values that end where the integers end */
    double lost; /* their part of the noise */

    int64_t accumulator; /* the largest sum behind it, as a magnitude */
    double flow; /* part of the output's noise that comes through here */
    double share; /* part of the output's noise that comes in here */
    const char *cause; /* of what comes in */
} mlo_sums;

enum { MLO_COMPARED_READS = 3 };
typedef struct {
    const mlo_node *node; /* the kernel that makes it; NULL: it is the carried value, coming in */
    const char *name;
    const mlo_signal *s; /* what its integers stand for */
    int wide; /* 1: in the wide form of s */
    int64_t lo; /* the least that its integers may be */
    int64_t hi; /* the largest that they may be */

    int reads[MLO_COMPARED_READS]; /* the compared values that the kernel reads */
    int n_reads;
    int anchor; /* the compared value whose tokens its errors are measured by */

    mlo_array **kept; /* of the sample at hand: the integers, per iteration */
    mlo_array *floats; /* of the sample and the iteration at hand */
    mlo_sums *at; /* per iteration */

    double *errors; /* per iteration and channel: the sum of w e^2, w a token's weight */
    double *means; /* per iteration and channel: the sum of w v */
    double *squares; /* per iteration and channel: the sum of w v^2 */
    double *weight; /* per iteration: the sum of w */
    double *metric; /* what a channel counts, in the iteration at hand */
} mlo_compared;

struct mlo_numerics {
    mlo *m;
    const mlo_graph *floats; /* the float body */
    const mlo_graph *integers; /* the integer body */

    mlo_keys keys[2]; /* of tokens: as in the calibration */
    const char *loop;
    int64_t iterations;
    int64_t samples;
    int drawn; /* 1: samples were drawn from the declared types */
    int said; /* samples that are texts the model itself said; 0: they are the caller's, if any */
    double cost; /* what widths were allowed */

    mlo_compared *value; /* the first is the carried one */
    int n;
    int result; /* the value that goes round */
    int64_t widest; /* channels, at most */
    mlo_map of; /* a value of the integer body -> mlo_compared */
};
typedef struct mlo_numerics mlo_numerics;

static int mlo_node_bits(const mlo_node *n) {
    return n ? (int)mlo_meta_int(n, mlo_key_bits, mlo_bits_of(mlo_kernel_to(n))) : 16;
}
static const float *mlo_compared_shape(const mlo_compared *v) {
    return v->wide ? v->s->wide_shape : v->s->shape;
}
static double mlo_compared_step(const mlo_compared *v, int64_t i, int64_t c) {
    const float *shape = mlo_compared_shape(v);
    return (v->wide ? v->s->wide_scale[i] : v->s->narrow_scale[i])
        * (shape ? (double)shape[i * v->s->channels + c] : 1);
}
static double mlo_compared_value(const mlo_compared *v, int64_t i, int64_t c, int64_t y) {
    return (v->wide ? 0 : v->s->zero[i * v->s->channels + c])
        + mlo_compared_step(v, i, c) * (double)y;
}
static int mlo_compared_sums(const mlo_compared *v) {
    return mlo_is_kernel(v->node, MLO_KERNEL_MATRIX);
}

/* ---- what there is to compare --------------------------------------------- */

static mlo_signal *mlo_signal_made(const mlo_quantizer *q, const char *name, int *wide) {
    for (size_t i = 0; i < q->n_signals; i++) {
        mlo_signal *s = q->signals[i];
        if (s->narrow_name != name && s->wide_name != name) continue;
        *wide = s->wide_name == name;
        return s;
    }
    return NULL;
}

static int mlo_compared_add(
    mlo_numerics *u, const mlo_quantizer *q, const mlo_node *node, const char *name) {
    mlo_compared *v = &u->value[u->n];
    size_t n = (size_t)u->iterations;
    if (!(v->s = mlo_signal_made(q, name, &v->wide))) return 0;
    v->node = node;
    v->name = name;
    v->hi = ((int64_t)1 << (mlo_node_bits(node) - 1)) - 1;
    v->lo = -v->hi - 1;
    for (size_t k = 0; node && k < node->n_input; k++) {
        const mlo_compared *x = (const mlo_compared *)mlo_map_get(&u->of, node->input[k]);
        if (x && v->n_reads < MLO_COMPARED_READS) v->reads[v->n_reads++] = (int)(x - u->value);
    }
    if (!(v->kept = MLO_NEW_N(u->m, mlo_array *, n)) || !(v->at = MLO_NEW_N(u->m, mlo_sums, n))
        || mlo_map_put(u->m, &u->of, name, v))
        return mlo_failed(u->m);
    double **const per[] = { &v->errors, &v->means, &v->squares };
    for (size_t k = 0; k < 3; k++)
        if (!(*per[k] = MLO_NEW_N(u->m, double, n *(size_t)v->s->channels)))
            return mlo_failed(u->m);
    if (!(v->metric = MLO_NEW_N(u->m, double, (size_t)v->s->channels))
        || !(v->weight = MLO_NEW_N(u->m, double, n)))
        return mlo_failed(u->m);
    if (v->s->channels > u->widest) u->widest = v->s->channels;
    if (name == u->integers->output[0]->name) u->result = u->n;
    u->n++;
    return 0;
}

/* Who reads a value last says by which tokens it is measured: a norm, by those it reads; all
 * others, by those that measure their result. */
static void mlo_numerics_anchors(mlo_numerics *u) {
    for (int k = 0; k < u->n; k++) u->value[k].anchor = -1;
    u->value[u->result].anchor = u->result;
    for (int k = u->n; k--;) {
        const mlo_compared *y = &u->value[k];
        for (int r = 0; r < y->n_reads; r++) {
            mlo_compared *x = &u->value[y->reads[r]];
            if (x->anchor < 0)
                x->anchor = mlo_is_any_norm(y->node) || y->anchor < 0 ? y->reads[r] : y->anchor;
        }
        if (y->anchor < 0) u->value[k].anchor = k;
    }
}

static int mlo_numerics_open(mlo_numerics *u, const mlo_quantizer *q) {
    u->m = q->m;
    u->floats = q->r.body;
    u->integers = q->body;
    memcpy(u->keys, q->keys, sizeof u->keys);
    u->iterations = q->scan.iterations;
    u->loop = mlo_node_name(q->loop);
    u->cost = q->cost;
    if (!(u->value = MLO_NEW_N(u->m, mlo_compared, u->integers->n_node + 1)))
        return mlo_failed(u->m);
    MLO_TRY(mlo_compared_add(u, q, NULL, u->integers->input[0]->name));
    for (size_t k = 0; k < u->integers->n_node; k++)
        if (u->integers->node[k]->n_output)
            MLO_TRY(mlo_compared_add(u, q, u->integers->node[k], u->integers->node[k]->output[0]));
    mlo_numerics_anchors(u);
    return 0;
}

/* ---- comparing ------------------------------------------------------------ */

static int mlo_integers_see(
    void *user, const mlo_graph *g, int64_t i, const char *name, const mlo_array *a) {
    mlo_numerics *u = (mlo_numerics *)user;
    mlo_compared *v = g == u->integers && i >= 0 && i < u->iterations
        ? (mlo_compared *)mlo_map_get(&u->of, name)
        : NULL;
    if (!v) return 0;
    if (mlo_compared_sums(v) && u->m->accumulator > v->at[i].accumulator)
        v->at[i].accumulator = u->m->accumulator;
    mlo_array_free(u->m, v->kept[i]);
    return (v->kept[i] = mlo_array_copy(u->m, a)) ? 0 : mlo_failed(u->m);
}

static void mlo_compare(const mlo_counting *counting, const mlo_compared *v, int64_t i,
    const float *x, const mlo_array *y) {
    mlo_sums *s = &v->at[i];
    int64_t channels = v->s->channels;
    for (int64_t k = 0, n = mlo_array_count(y); k < n; k++) {
        if (!mlo_counts(counting, n / channels, k / channels)) continue;
        int64_t c = k % channels, whole = mlo_get(y, k);
        double step = mlo_compared_step(v, i, c);
        double f = (double)x[k];
        double a = mlo_compared_value(v, i, c, whole);
        double e = a - f;
        if (s->count < 1 || f < s->low) s->low = f;
        if (s->count < 1 || f > s->high) s->high = f;
        if (s->count < 1 || whole < s->least) s->least = whole;
        if (s->count < 1 || whole > s->largest) s->largest = whole;
        if ((whole >= v->hi && -e > step / 2) || (whole <= v->lo && e > step / 2)) {
            s->clipped++;
            s->lost += e * e;
        }
        if (fabs(e) > s->most) s->most = fabs(e);
        s->error += fabs(e);
        s->noise += e * e;
        s->power += f * f;
        s->got += a * a;
        s->both += a * f;
        s->count++;
    }
}

/* A token's weight: one over the variance of its channels, which is what a norm divides by. */
static double mlo_token_weight(const float *x, int64_t channels) {
    double sum = 0, squares = 0, spread;
    for (int64_t c = 0; c < channels; c++) {
        sum += (double)x[c];
        squares += (double)x[c] * (double)x[c];
    }
    spread = squares - sum * sum / (double)channels;
    return spread > 1e-30 ? (double)channels / spread : 0;
}

/* The sums of channels, where a token counts by its weight at the anchor. */
static void mlo_compare_channels(
    const mlo_counting *counting, const mlo_compared *v, const mlo_compared *anchor, int64_t i) {
    int64_t channels = v->s->channels;
    int64_t rows = mlo_array_count(v->floats) / channels;
    int64_t others = anchor->floats ? mlo_array_count(anchor->floats) / anchor->s->channels : 0;
    const float *x = (const float *)v->floats->data;
    for (int64_t r = 0; r < rows; r++, x += channels) {
        if (!mlo_counts(counting, rows, r)) continue;
        double w = rows == others
            ? mlo_token_weight((const float *)anchor->floats->data + r * anchor->s->channels,
                  anchor->s->channels)
            : 1;
        v->weight[i] += w;
        for (int64_t c = 0; c < channels; c++) {
            int64_t at = i * channels + c;
            double f = (double)x[c];
            double e = mlo_compared_value(v, i, c, mlo_get(v->kept[i], r * channels + c)) - f;
            v->errors[at] += w * e * e;
            v->means[at] += w * f;
            v->squares[at] += w * f * f;
        }
    }
}

/* An iteration is over: everything of it is compared, and let go. */
static void mlo_compare_all(mlo_numerics *u, int64_t i) {
    for (int k = 0; k < u->n; k++) {
        const mlo_compared *v = &u->value[k];
        if (!v->floats || !v->kept[i]) continue;
        mlo_compare(
            &u->keys[v->s->memory].counting, v, i, (const float *)v->floats->data, v->kept[i]);
        mlo_compare_channels(&u->keys[v->s->memory].counting, v, &u->value[v->anchor], i);
    }
    for (int k = 0; k < u->n; k++) {
        mlo_compared *v = &u->value[k];
        mlo_array_free(u->m, v->kept[i]);
        mlo_array_free(u->m, v->floats);
        v->kept[i] = NULL;
        v->floats = NULL;
    }
}

static int mlo_floats_see(
    void *user, const mlo_graph *g, int64_t i, const char *name, const mlo_array *a) {
    mlo_numerics *u = (mlo_numerics *)user;
    for (int k = 0; k < 2; k++)
        if (u->keys[k].mask && name == u->keys[k].mask)
            MLO_TRY(mlo_counting_see(u->m, &u->keys[k].counting, a));
    if (g != u->floats || i < 0 || i >= u->iterations || a->dtype != MLO_FLOAT) return 0;
    for (int k = 0; k < u->n; k++) {
        mlo_compared *v = &u->value[k];
        mlo_array *y = v->s->name == name ? v->kept[i] : NULL;
        if (!y) continue;
        if (mlo_array_count(y) != mlo_array_count(a))
            return mlo_fail(u->m, MLO_E_BUG, v->node, "makes %lld integers of %lld floats",
                (long long)mlo_array_count(y), (long long)mlo_array_count(a));
        mlo_array_free(u->m, v->floats);
        if (!(v->floats = mlo_array_copy(u->m, a))) return mlo_failed(u->m);
    }
    /* nothing of the body comes behind its result */
    if (u->value[u->result].floats) mlo_compare_all(u, i);
    return 0;
}

/* Both models on every sample, the integers first: they are what has to be kept, and are the
 * smaller ones. */
static int mlo_numerics_run(mlo_numerics *u, mlo_graph *before) {
    mlo *m = u->m;
    mlo_graph *now = m->model->graph;
    mlo_observer integers = { .user = u, .see = mlo_integers_see, .last = u->integers };
    mlo_observer floats = { .user = u, .see = mlo_floats_see, .last = u->floats };
    u->drawn = !m->n_calib;
    u->said = m->said;
    if (mlo_calib_check(m, &u->samples)) return mlo_failed(m);
    for (int64_t k = 0; k < u->samples && !m->error.code; k++) {
        mlo_work(m, "measures the integers", 2 * k, 2 * u->samples);
        if (mlo_sample_run(m, k, &integers)) break;
        mlo_work(m, "measures the integers", 2 * k + 1, 2 * u->samples);
        m->model->graph = before;
        mlo_sample_run(m, k, &floats);
        m->model->graph = now;
    }
    mlo_work_over(m);
    for (int k = 0; k < u->n; k++) {
        mlo_array_free(m, u->value[k].floats);
        for (int64_t i = 0; i < u->iterations; i++) mlo_array_free(m, u->value[k].kept[i]);
    }
    return mlo_failed(m);
}

/* ---- where the noise comes from ------------------------------------------- */

static double mlo_noise(const mlo_sums *s) {
    return s->power > 0 ? s->noise / s->power : s->noise > 0;
}

/* Sums over the channels of a value, in a metric: of errors, and of what moves. */
static double mlo_metric_noise(const mlo_compared *v, int64_t i, const double *metric) {
    double sum = 0;
    for (int64_t c = 0; c < v->s->channels; c++)
        sum += metric[c] * v->errors[i * v->s->channels + c];
    return sum;
}
static double mlo_variation(const mlo_compared *v, int64_t i, int64_t c) {
    int64_t at = i * v->s->channels + c;
    double moves = v->weight[i] > 0 ? v->squares[at] - v->means[at] * v->means[at] / v->weight[i]
                                    : 0;
    return moves > 0 ? moves : 0;
}
static double mlo_metric_power(const mlo_compared *v, int64_t i, const double *metric) {
    double sum = 0;
    for (int64_t c = 0; c < v->s->channels; c++) sum += metric[c] * mlo_variation(v, i, c);
    return sum;
}
static double mlo_part_of_power(double noise, double power) {
    return power > 0 ? noise / power : 0;
}

/* What a channel that a linear layer reads counts: the squares of its weights, times what the
 * channels out count. Behind a table these count as far as the table lets them move. */
static int mlo_pull_linear(const mlo_quantizer *q, const mlo_compared *y, const mlo_compared *x,
    int64_t i, double *metric) {
    mlo *m = q->m;
    mlo_array *in[3] = { NULL, NULL, NULL }; /* weight, multiplier, shift */
    static const int from[3] = { 1, 3, 4 };
    int64_t channels = y->s->channels;
    double *gain = (double *)mlo_scratch(m, (size_t)channels, sizeof *gain);
    for (int k = 0; gain && k < 3; k++)
        in[k] = mlo_scan_value(m, &q->scan, y->node->input[from[k]], i);
    for (int64_t n = 0; !m->error.code && n < channels; n++) {
        double g = ldexp((double)mlo_get(in[1], n), -(int)mlo_get(in[2], n)), made = 0;
        int table = mlo_has_table(y->node);
        if (!table) g *= mlo_compared_step(y, i, n);
        gain[n] = g * g * y->metric[n];
        for (int64_t k = 0; table && k < x->s->channels; k++) {
            double w = g * (double)mlo_get(in[0], k * channels + n) / mlo_compared_step(x, i, k);
            made += w * w * mlo_variation(x, i, k);
        }
        if (table) gain[n] *= mlo_part_of_power(mlo_variation(y, i, n), made);
    }
    for (int64_t k = 0; !m->error.code && k < x->s->channels; k++) {
        double sum = 0, step = mlo_compared_step(x, i, k);
        for (int64_t n = 0; n < channels; n++) {
            double w = (double)mlo_get(in[0], k * channels + n);
            sum += w * w * gain[n];
        }
        metric[k] = sum / (step * step);
    }
    for (int k = 0; k < 3; k++) mlo_array_free(m, in[k]);
    mlo_scratch_free(m, gain);
    return mlo_failed(m);
}

/* What channel c of one operand of an attention meets in x, a number per channel of another one or of
 * the result: that of its own head, or, where several heads share what it is, their sum. */
static double mlo_across_heads(
    const mlo_node *n, const double *x, int64_t channels, int64_t others, int64_t c) {
    const int64_t heads = mlo_int(n, "heads", 1), kv = mlo_int(n, "kv_heads", heads);
    const int64_t d = (channels < others ? channels : others) / kv, shared = heads / kv;
    double sum = 0;
    if (channels == others) return x[c];
    if (channels > others) return x[mlo_shared_channel(d, shared, c)];
    for (int64_t h = 0; h < shared; h++) sum += x[(c / d * shared + h) * d + c % d];
    return sum;
}

/* The metric in which a kernel sees its operand r: what errors in its channels do to the result in
 * its own metric. Up to a factor. */
static int mlo_pull(const mlo_quantizer *q, const mlo_numerics *u, const mlo_compared *y, int r,
    int64_t i, double *metric) {
    const mlo_compared *x = &u->value[y->reads[r]];
    int product = mlo_is_kernel(y->node, MLO_KERNEL_PRODUCT) && y->n_reads == 2;
    const mlo_compared *other = y->n_reads == 3 || product ? &u->value[y->reads[r == 0]] : NULL;
    int64_t channels = x->s->channels;
    if (mlo_compared_sums(y)) return mlo_pull_linear(q, y, x, i, metric);
    mlo_array *g = mlo_is_any_norm(y->node) ? mlo_scan_value(q->m, &q->scan, y->node->input[1], i)
                                            : NULL;
    for (int64_t c = 0; c < channels && !q->m->error.code; c++) {
        double gain = g ? (double)mlo_get(g, c) * mlo_compared_step(y, i, c) : 1;
        double square = other ? mlo_across_heads(y->node, other->squares + i * other->s->channels,
                                    channels, other->s->channels, c)
                              : 0;
        double met = other && !product && r == 2
            ? mlo_across_heads(y->node, y->metric, channels, y->s->channels, c)
            : y->metric[c < y->s->channels ? c : 0];
        /* queries by keys, and back; what a product multiplies by */
        metric[c] = product && other->weight[i] > 0 ? met * square / other->weight[i]
            : other && !product && r < 2            ? square
                                                    : met * gain * gain;
    }
    mlo_array_free(q->m, g);
    return mlo_failed(q->m);
}

/* What rounding to its steps, and cutting off at its ends, is of a value's noise (`noise` in its
 * metric). */
static double mlo_rounding_part(const mlo_compared *v, int64_t i, double noise) {
    double rounding = 0;
    for (int64_t c = 0; c < v->s->channels; c++)
        rounding += v->metric[c] * mlo_compared_step(v, i, c) * mlo_compared_step(v, i, c) / 12;
    return mlo_part_of_power(rounding * v->weight[i], noise)
        + mlo_part_of_power(v->at[i].lost, v->at[i].noise);
}

/* What makes most of the noise that a kernel adds, `own` of its noise. */
static const char *mlo_noise_cause(const mlo_compared *v, int64_t i, double own, double rounding) {
    if (v->at[i].lost > v->at[i].noise * own / 2) return "saturation";
    return rounding > own / 2 ? "width" : mlo_compared_sums(v) ? "weights" : "arithmetic";
}

/* Is the noise of its operands measured by its result? What they are alone says nothing there. */
static int mlo_in_result(const mlo_node *n) {
    return mlo_is_kernel(n, MLO_KERNEL_SUM) || mlo_is_kernel(n, MLO_KERNEL_PRODUCT);
}

/* What a kernel adds stays with it; the rest of what flows through its result goes to its
 * operands, and so does the metric. */
static int mlo_flow_kernel(
    const mlo_quantizer *q, mlo_numerics *u, mlo_compared *y, int64_t i, double *pulled) {
    double part[MLO_COMPARED_READS], scale[MLO_COMPARED_READS], own;
    double noise = mlo_metric_noise(y, i, y->metric);
    double power = mlo_metric_power(y, i, y->metric);
    double all = 0;
    double flow = y->at[i].flow;
    for (int r = 0; r < y->n_reads; r++) {
        const mlo_compared *x = &u->value[y->reads[r]];
        double *metric = pulled + r * u->widest;
        if (mlo_pull(q, u, y, r, i, metric)) return mlo_failed(u->m);
        scale[r] = mlo_metric_power(x, i, metric);
        all += part[r] = mlo_part_of_power(
            mlo_metric_noise(x, i, metric), mlo_in_result(y->node) ? power : scale[r]);
    }
    double rounding = mlo_rounding_part(y, i, noise);
    noise = mlo_part_of_power(noise, power);
    own = !(all > 0) ? 1 : noise > all ? 1 - all / noise : 0;
    if (all > 0 && own > rounding && !mlo_compared_sums(y)
        && !mlo_is_kernel(y->node, MLO_KERNEL_ATTENTION))
        own = rounding;
    y->at[i].share = flow * own;
    y->at[i].cause = mlo_noise_cause(y, i, own, rounding);
    for (int r = 0; r < y->n_reads && all > 0; r++) {
        mlo_compared *x = &u->value[y->reads[r]];
        double through = flow * (1 - own) * part[r] / all;
        x->at[i].flow += through;
        for (int64_t c = 0; c < x->s->channels && scale[r] > 0; c++)
            x->metric[c] += pulled[r * u->widest + c] * through / scale[r];
    }
    return 0;
}

/* From the output of the last iteration back to the input of the first. */
static int mlo_noise_flow(const mlo_quantizer *q, mlo_numerics *u) {
    mlo_compared *in = &u->value[0], *out = &u->value[u->result];
    double *pulled = (double *)mlo_scratch(
        u->m, MLO_COMPARED_READS * (size_t)u->widest, sizeof *pulled);
    for (int64_t i = u->iterations; pulled && i-- && !u->m->error.code;) {
        int last = i + 1 == u->iterations;
        out->at[i].flow = last ? 1 : in->at[i + 1].flow;
        for (int64_t c = 0; c < out->s->channels; c++) out->metric[c] = last ? 1 : in->metric[c];
        for (int k = 0; k < u->n; k++)
            if (k != u->result)
                memset(u->value[k].metric, 0, (size_t)u->value[k].s->channels * sizeof *in->metric);
        for (int k = u->n; --k && !u->m->error.code;)
            mlo_flow_kernel(q, u, &u->value[k], i, pulled);
    }
    in->at[0].share = in->at[0].flow;
    for (int64_t i = 0; i < u->iterations; i++) in->at[i].cause = "width";
    mlo_scratch_free(u->m, pulled);
    return mlo_failed(u->m);
}

/* The expected noise of rounding to the value's steps: a twelfth of their square. */
static double mlo_rounding_noise(const mlo_compared *v, int64_t i) {
    double sum = 0, power = v->at[i].count > 0 ? v->at[i].power / v->at[i].count : 0;
    for (int64_t c = 0; c < v->s->channels; c++)
        sum += mlo_compared_step(v, i, c) * mlo_compared_step(v, i, c) / 12;
    return power > 0 ? sum / (double)v->s->channels / power : 0;
}

/* ---- the report ----------------------------------------------------------- */

static void mlo_report_number(mlo_text *t, double x) {
    char text[40];
    mlo_puts(t, x - x == 0 ? mlo_digits(x, text) : "null");
}
static double mlo_decibels(double noise) { return noise > 0 ? -10 * log10(noise) : INFINITY; }
static double mlo_cosine(const mlo_sums *s) {
    return s->got > 0 && s->power > 0 ? s->both / sqrt(s->got * s->power)
        : s->got > 0 || s->power > 0  ? 0
                                      : 1;
}
/* The largest difference, relative to the largest value. */
static double mlo_relative_error(const mlo_sums *s) {
    double most = fabs(s->low) > fabs(s->high) ? fabs(s->low) : fabs(s->high);
    return most > 0 ? s->most / most : s->most;
}
static int mlo_accumulator_bits(const mlo_sums *s) { return mlo_clog2(s->accumulator + 1) + 1; }

/* One column of the report: a number per iteration. */
enum {
    MLO_OF_LOW,
    MLO_OF_HIGH,
    MLO_OF_LEAST,
    MLO_OF_LARGEST,
    MLO_OF_SATURATED,
    MLO_OF_SUM_BITS,
    MLO_OF_ROUNDING,
    MLO_OF_ERROR_MAX,
    MLO_OF_ERROR_MEAN,
    MLO_OF_COSINE,
    MLO_OF_SQNR,
    MLO_OF_SHARE
};
static double mlo_column_at(const mlo_compared *v, int what, int64_t i) {
    const mlo_sums *s = &v->at[i];
    switch (what) {
    case MLO_OF_LOW: return s->low;
    case MLO_OF_HIGH: return s->high;
    case MLO_OF_LEAST: return (double)s->least;
    case MLO_OF_LARGEST: return (double)s->largest;
    case MLO_OF_SATURATED: return s->count > 0 ? s->clipped / s->count : 0;
    case MLO_OF_SUM_BITS: return mlo_accumulator_bits(s);
    case MLO_OF_ROUNDING: return mlo_decibels(mlo_rounding_noise(v, i));
    case MLO_OF_ERROR_MAX: return s->most;
    case MLO_OF_ERROR_MEAN: return s->count > 0 ? s->error / s->count : 0;
    case MLO_OF_COSINE: return mlo_cosine(s);
    case MLO_OF_SQNR: return mlo_decibels(mlo_noise(s));
    default: return s->share;
    }
}

static void mlo_report_column(
    mlo_text *t, const mlo_numerics *u, const mlo_compared *v, const char *key, int what) {
    mlo_printf(t, "\"%s\":[", key);
    for (int64_t i = 0; i < u->iterations; i++) {
        mlo_puts(t, i ? "," : "");
        mlo_report_number(t, mlo_column_at(v, what, i));
    }
    mlo_puts(t, "]");
}

/* Numbers per iteration and channel; one per iteration where all channels agree. */
static void mlo_report_channels(mlo_text *t, const mlo_numerics *u, const mlo_compared *v,
    const char *key, const double *x, const float *y) {
    int64_t channels = v->s->channels;
    mlo_printf(t, ",\"%s\":[", key);
    for (int64_t i = 0; i < u->iterations; i++) {
        int same = 1;
        for (int64_t c = i * channels + 1; c < (i + 1) * channels; c++)
            same &= x ? x[c] == x[c - 1] : y[c] == y[c - 1];
        mlo_puts(t, i ? "," : "");
        mlo_puts(t, same ? "" : "[");
        for (int64_t c = 0; c < (same ? 1 : channels); c++) {
            mlo_puts(t, c ? "," : "");
            mlo_report_number(t, x ? x[i * channels + c] : (double)y[i * channels + c]);
        }
        mlo_puts(t, same ? "" : "]");
    }
    mlo_puts(t, "]");
}

static void mlo_report_compared(mlo_text *t, const mlo_numerics *u, const mlo_compared *v) {
    static const struct {
        const char *key;
        int what;
    } columns[] = { { "low", MLO_OF_LOW }, { "high", MLO_OF_HIGH }, { "least", MLO_OF_LEAST },
        { "largest", MLO_OF_LARGEST }, { "saturated", MLO_OF_SATURATED },
        { "rounding_db", MLO_OF_ROUNDING }, { "share", MLO_OF_SHARE } };
    static const struct {
        const char *key;
        int what;
    } errors[] = { { "max", MLO_OF_ERROR_MAX }, { "mean", MLO_OF_ERROR_MEAN },
        { "cosine", MLO_OF_COSINE }, { "sqnr_db", MLO_OF_SQNR } };
    if (mlo_compared_shape(v)) mlo_report_channels(t, u, v, "shapes", NULL, mlo_compared_shape(v));
    if (!v->wide) mlo_report_channels(t, u, v, "zeros", v->s->zero, NULL);
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        mlo_puts(t, ",");
        mlo_report_column(t, u, v, columns[k].key, columns[k].what);
    }
    const mlo_compared *x = v->n_reads ? &u->value[v->reads[0]] : NULL;
    if (mlo_compared_sums(v) && x) {
        mlo_printf(t, ",\"accumulator\":{\"bits\":%d,",
            mlo_bits_for(mlo_mvu_sums(x->s->channels, mlo_node_bits(x->node),
                (int)mlo_meta_int(v->node, mlo_key_weight_bits, 8))));
        mlo_report_column(t, u, v, "used", MLO_OF_SUM_BITS);
        mlo_puts(t, "}");
    }
    mlo_puts(t, ",\"error\":{");
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++) {
        mlo_puts(t, k ? "," : "");
        mlo_report_column(t, u, v, errors[k].key, errors[k].what);
    }
    mlo_puts(t, "}");
}

/* Where most noise comes in, of an iteration. The carried value counts in the first one, as what
 * quantizing the loop's input adds. */
static const mlo_compared *mlo_noisiest(const mlo_numerics *u, int64_t i) {
    const mlo_compared *best = &u->value[0];
    for (int k = 1; k < u->n; k++)
        if (u->value[k].at[i].share > best->at[i].share) best = &u->value[k];
    return best;
}
static double mlo_layer_share(const mlo_numerics *u, int64_t i) {
    double sum = 0;
    for (int k = 0; k < u->n; k++) sum += u->value[k].at[i].share;
    return sum;
}
static int64_t mlo_worst_layer(const mlo_numerics *u) {
    int64_t worst = 0;
    for (int64_t i = 1; i < u->iterations; i++)
        if (mlo_layer_share(u, i) > mlo_layer_share(u, worst)) worst = i;
    return worst;
}

static void mlo_report_noisiest(mlo_text *t, const mlo_numerics *u, int64_t i) {
    const mlo_compared *v = mlo_noisiest(u, i);
    mlo_puts(t, "\"name\":");
    mlo_report_string(t, v->name);
    mlo_printf(t, ",\"op\":\"%s\",\"share\":", v->node ? v->node->op : "Quantize");
    mlo_report_number(t, v->at[i].share);
    mlo_printf(t, ",\"cause\":\"%s\"}", v->at[i].cause);
}

static void mlo_report_layers(mlo_text *t, const mlo_numerics *u) {
    mlo_puts(t, ",\"layers\":[");
    for (int64_t i = 0; i < u->iterations; i++) {
        mlo_puts(t, i ? ",{\"sqnr_db\":" : "{\"sqnr_db\":");
        mlo_report_number(t, mlo_decibels(mlo_noise(&u->value[u->result].at[i])));
        mlo_puts(t, ",\"share\":");
        mlo_report_number(t, mlo_layer_share(u, i));
        mlo_puts(t, ",\"worst\":{");
        mlo_report_noisiest(t, u, i);
        mlo_puts(t, "}");
    }
    mlo_printf(t, "],\"worst\":{\"iteration\":%lld,", (long long)mlo_worst_layer(u));
    mlo_report_noisiest(t, u, mlo_worst_layer(u));
}

/* The loop's output, and its input, as far as they are from the floats. */
static void mlo_report_end(mlo_text *t, const char *key, const mlo_compared *v, int64_t i) {
    const mlo_sums *s = &v->at[i];
    mlo_printf(t, ",\"%s\":{\"name\":", key);
    mlo_report_string(t, v->name);
    mlo_puts(t, ",\"max\":");
    mlo_report_number(t, s->most);
    mlo_puts(t, ",\"relative\":");
    mlo_report_number(t, mlo_relative_error(s));
    mlo_puts(t, ",\"mean\":");
    mlo_report_number(t, mlo_column_at(v, MLO_OF_ERROR_MEAN, i));
    mlo_puts(t, ",\"cosine\":");
    mlo_report_number(t, mlo_cosine(s));
    mlo_puts(t, ",\"sqnr_db\":");
    mlo_report_number(t, mlo_decibels(mlo_noise(s)));
    mlo_puts(t, ",\"share\":");
    mlo_report_number(t, s->share);
    mlo_puts(t, "}");
}

/* ---- what to do about it -------------------------------------------------- */

static const double mlo_sqnr_low = 25, mlo_saturated_high = 0.001;

static void mlo_advise(mlo_text *t, int *n, const char *line) {
    if (!line) return;
    mlo_puts(t, (*n)++ ? "," : "");
    mlo_report_string(t, line);
}

static const char *mlo_remedy(const mlo_compared *v, const char *cause) {
    if (mlo_eq(cause, "saturation")) return "calibrate on more samples (--calib)";
    if (mlo_eq(cause, "weights"))
        return "its weights are what is rounded; give them more bits where --weights allows";
    if (mlo_eq(cause, "arithmetic"))
        return "it is the kernel's own approximation, or what it amplifies: wider operands before "
               "it help (--max-cost)";
    return v->wide
        ? "calibrate on samples without outliers (--calib): the step follows the largest value"
        : mlo_absorbed(v->s)
        ? "a larger --max-cost widens operands, those that need it most first"
        : "operands of tables do not get wider by --max-cost, those of attention where "
          "scores need it";
}

static void mlo_report_advice(mlo_text *t, const mlo_numerics *u) {
    int n = 0;
    int64_t i = mlo_worst_layer(u);
    const mlo_compared *v = mlo_noisiest(u, i);
    double sqnr = mlo_decibels(mlo_noise(&u->value[u->result].at[u->iterations - 1]));
    mlo_puts(t, ",\"advice\":[");
    if (u->drawn)
        mlo_advise(t, &n,
            "the samples were drawn from the declared types; calibrate on real ones (--calib)");
    else if (u->said)
        mlo_advise(t, &n,
            "the samples are texts that the model says itself; calibrate on real ones (--calib)");
    else if (u->samples < MLO_SAMPLES_FEW)
        mlo_advise(t, &n,
            mlo_format(u->m,
                "only %lld sample%s to calibrate on; ranges of %d or more can be trusted",
                (long long)u->samples, u->samples > 1 ? "s" : "", MLO_SAMPLES_FEW));
    if (sqnr < mlo_sqnr_low) {
        const char *cause = v->at[i].cause;
        mlo_advise(t, &n,
            mlo_format(u->m,
                "the output is %.1f dB above its noise; most of that comes in at iteration %lld, "
                "%s (%s): %s",
                sqnr, (long long)i, v->name, cause, mlo_remedy(v, cause)));
    }
    for (int k = 0; k < u->n; k++)
        for (i = 0; i < u->iterations; i++) {
            double part = mlo_column_at(&u->value[k], MLO_OF_SATURATED, i);
            if (part > mlo_saturated_high)
                mlo_advise(t, &n,
                    mlo_format(u->m, "%.1f %% of %s saturate in iteration %lld: %s", 100 * part,
                        u->value[k].name, (long long)i, mlo_remedy(&u->value[k], "saturation")));
        }
    mlo_puts(t, "]");
}

/* ---- all of it ------------------------------------------------------------ */

/* The integer values of the loops' bodies; what the quantize stage of this handle measured of
 * them, when it was asked to. */
static void mlo_quantize_report(mlo *m, mlo_text *t) {
    const mlo_graph *g = m->model->graph;
    const mlo_numerics *u = m->numerics;
    int n = 0;
    mlo_puts(t, "{\"values\":[");
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_graph *body = mlo_is(g->node[i], "Scan") ? mlo_graph_of(g->node[i], "body")
                                                           : NULL;
        for (size_t k = 0; body && k < body->n_node; k++) {
            const mlo_node *node = body->node[k];
            const char *scale = mlo_meta_get(node->meta, node->n_meta, mlo_key_scale);
            const mlo_compared *v = u && body == u->integers
                ? (const mlo_compared *)mlo_map_get(&u->of, node->output[0])
                : NULL;
            if (!scale) continue;
            mlo_puts(t, n++ ? ",{\"name\":" : "{\"name\":");
            mlo_report_string(t, node->output[0]);
            mlo_puts(t, ",\"op\":");
            mlo_report_string(t, node->op);
            mlo_printf(t, ",\"bits\":%d,\"scales\":[", mlo_node_bits(node));
            for (; *scale; scale++) mlo_put(t, *scale == ' ' ? "," : scale, 1);
            mlo_puts(t, "]");
            if (v) mlo_report_compared(t, u, v);
            mlo_puts(t, "}");
        }
    }
    mlo_puts(t, "]");
    if (u) {
        mlo_puts(t, ",\"loop\":");
        mlo_report_string(t, u->loop);
        mlo_printf(t, ",\"samples\":%lld,\"max_cost\":", (long long)u->samples);
        mlo_report_number(t, u->cost);
        mlo_report_end(t, "input", &u->value[0], 0);
        mlo_report_end(t, "output", &u->value[u->result], u->iterations - 1);
        mlo_report_layers(t, u);
        mlo_report_advice(t, u);
    }
    mlo_puts(t, "}\n");
}

/* A graph as it is now, with an index of its own: its lists will be changed in place, what is in
 * them will not. */
static int mlo_graph_keep(mlo *m, const mlo_graph *g, mlo_graph *kept) {
    *kept = *g;
    memset(&kept->values, 0, sizeof kept->values);
    kept->node = MLO_NEW_N(m, mlo_node *, mlo_room(g->n_node));
    kept->init = MLO_NEW_N(m, mlo_tensor *, mlo_room(g->n_init));
    kept->info = MLO_NEW_N(m, mlo_value_info *, mlo_room(g->n_info));
    if (m->error.code) return mlo_failed(m);
    if (g->n_node) memcpy(kept->node, g->node, g->n_node * sizeof *g->node);
    if (g->n_init) memcpy(kept->init, g->init, g->n_init * sizeof *g->init);
    if (g->n_info) memcpy(kept->info, g->info, g->n_info * sizeof *g->info);
    return mlo_index(m, kept);
}

/* Quantizes the float graph, whatever has become of the model's since, at a cost (0: the
 * option's), and measures what comes out. NULL: failed. */
static mlo_numerics *mlo_quantize_try(mlo *m, mlo_graph *floats, double cost) {
    mlo_quantizer q;
    mlo_numerics *u = MLO_NEW(m, mlo_numerics);
    memset(&q, 0, sizeof q);
    q.cost = cost;
    if (!u || mlo_graph_keep(m, floats, m->model->graph) || mlo_quantize(m, &q)
        || mlo_numerics_open(u, &q) || mlo_numerics_run(u, floats))
        return NULL;
    return mlo_noise_flow(&q, u) ? NULL : u;
}

static double mlo_output_error(const mlo_numerics *u) {
    return mlo_relative_error(&u->value[u->result].at[u->iterations - 1]);
}

/* Even the widest operands do not do. */
static int mlo_search_fail(const mlo_numerics *u, double before, double target) {
    int64_t i = mlo_worst_layer(u);
    const mlo_compared *v = mlo_noisiest(u, i);
    const char *cause = v->at[i].cause;
    return mlo_fail_at(u->m, MLO_E_MISMATCH, "max-error",
        "the loop's output is %.3g of its largest value off, and still %.3g at --max-cost %g, "
        "above %g; most of that comes in at iteration %lld, %s (%s): %s",
        before, mlo_output_error(u), u->cost, target, (long long)i, v->name, cause,
        mlo_remedy(v, cause));
}

/* --max-error: the least cost at which the output is near enough, to 1/32, between that of 8 bits
 * and --max-cost (2, when that is not given). */
static mlo_numerics *mlo_quantize_search(mlo *m, mlo_graph *floats, double target) {
    enum { STEPS = 5 };
    double low = 1, high = 2, last;
    void (*warn)(void *, const char *) = m->desc.warn;
    if (mlo_opt(m, "max-cost") && mlo_max_cost(m, &high)) return NULL;
    mlo_numerics *u = mlo_quantize_try(m, floats, 1), *best;
    if (!u || mlo_output_error(u) <= target) return u;
    /* everything was said the first time */
    m->desc.warn = NULL;
    best = mlo_quantize_try(m, floats, last = high);
    if (best && !(mlo_output_error(best) <= target))
        mlo_search_fail(best, mlo_output_error(u), target);
    for (int k = 0; k < STEPS && !m->error.code; k++) {
        if (!(u = mlo_quantize_try(m, floats, last = (low + high) / 2))) break;
        if (mlo_output_error(u) <= target) {
            high = last;
            best = u;
        } else
            low = last;
    }
    if (!m->error.code && last < high) best = mlo_quantize_try(m, floats, high);
    m->desc.warn = warn;
    return m->error.code ? NULL : best;
}

/* Plain, measured (`report`), or searched (`max-error`), which measures, too. */
static int mlo_quantize_measured(mlo *m) {
    mlo_quantizer q;
    mlo_graph floats;
    const char *error = mlo_opt(m, "max-error");
    double target = 0;
    memset(&q, 0, sizeof q);
    if (error && (!mlo_parse_number(error, &target) || !(target > 0)))
        return mlo_fail_at(m, MLO_E_USAGE, "max-error",
            "'%s' is no number above 0: how far the loop's output may be off, relative to its "
            "largest value",
            error);
    if (!error && !mlo_opt(m, "report")) return mlo_quantize(m, &q);
    MLO_TRY(mlo_quantize_loop(m, &q.scan) || mlo_quantizable(m, &q.scan));
    if (mlo_has_dialect(q.scan.body)) return mlo_quantize(m, &q); /* nothing is off */
    if (mlo_respell_grid(m, &q.scan) /* what carries a grid is what floats are run with */
        || mlo_graph_keep(m, m->model->graph, &floats))
        return mlo_failed(m);
    m->numerics = error ? mlo_quantize_search(m, &floats, target) : mlo_quantize_try(m, &floats, 0);
    return mlo_failed(m);
}

/* The `quantize` stage. */
static int mlo_quantize_as(mlo *m) {
    if (mlo_opt(m, "best") && !mlo_opt(m, "tokens"))
        return mlo_fail_at(
            m, MLO_E_USAGE, "best", "it is of ids that a core says; give --tokens, too");
    if (!mlo_quantize_measured(m) && mlo_opt(m, "tokens")) mlo_quantize_tokens(m);
    mlo_said_end(m);
    return mlo_failed(m);
}
