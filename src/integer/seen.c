/* seen: what a calibration saw, handed on to another export of the same model.
 *
 * in:  a quantizer whose samples have been run.
 * out: a copy of the sums of each signal, before scales are chosen of them; and the same put into another
 *      quantizer, whose sublayers must be those of the first, one by one.
 *
 * Two exports of one model compute the same numbers but for the order in which floats are added, and a last bit
 * may move a scale. With one calibration for both, what comes out is equal in every integer, or they are not one
 * model (core/prefill.c).
 *
 * invariant: nobody else's scales depend on it. The first export's handle outlives the second's use of it.
 * example: stories260k-step.onnx and stories260k-prompt.onnx: 20 signals.
 * cost: six numbers a channel and iteration, and for weights of few bits their products.
 */
enum { MLO_SEEN = 9 }; /* arrays of a signal */

typedef struct {
    const char *name;
    mlo_block_kind kind; /* of the sublayer that makes it; MLO_OTHER: it comes in */
    int64_t channels;
    double *sum[MLO_SEEN];
    const mlo_sublayer *maker; /* the sublayer itself, for weights that it has rounded by then */
} mlo_seen_signal;

typedef struct mlo_seen {
    mlo_seen_signal *signal;
    size_t n;
    int64_t iterations;
    int64_t samples;
    int trusted;
    double cost; /* what the products might cost */
    struct mlo_seen
        *head; /* of what is behind the loop (head.c); NULL: nothing of it is quantized */
} mlo_seen;

/* The arrays of a signal that a calibration fills, and how many elements each has; NULL: nobody asks. The last is
 * filled when scales are chosen. */
static void mlo_seen_arrays(
    const mlo_signal *s, int64_t iterations, double *sum[], int64_t size[]) {
    double *const found[MLO_SEEN] = { s->rows, s->most, s->inverse, s->low, s->high, s->mean,
        s->square, s->gram, s->drift };
    for (int i = 0; i < MLO_SEEN; i++) {
        sum[i] = found[i];
        size[i] = iterations * (i < 3 ? 1 : s->channels * (i == 7 ? mlo_gram_width(s) : 1));
    }
}

static mlo_block_kind mlo_seen_kind(const mlo_signal *s) {
    return s->maker ? s->maker->kind : MLO_OTHER;
}

static int mlo_seen_keep_signal(
    mlo *m, const mlo_signal *s, int64_t iterations, mlo_seen_signal *k) {
    double *sum[MLO_SEEN];
    int64_t size[MLO_SEEN];
    k->name = s->name;
    k->kind = mlo_seen_kind(s);
    k->channels = s->channels;
    k->maker = s->maker;
    mlo_seen_arrays(s, iterations, sum, size);
    for (int i = 0; i < MLO_SEEN; i++) {
        k->sum[i] = sum[i] && i < MLO_SEEN - 1 ? MLO_NEW_N(m, double, (size_t)size[i]) : sum[i];
        if (m->error.code) return mlo_failed(m);
        if (k->sum[i] != sum[i]) memcpy(k->sum[i], sum[i], (size_t)size[i] * sizeof *sum[i]);
    }
    return 0;
}

/* Keeps what the samples showed, for the other export. */
static int mlo_seen_keep(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_seen *k = MLO_NEW(m, mlo_seen);
    if (!k || !(k->signal = MLO_NEW_N(m, mlo_seen_signal, mlo_room(q->n_signals))))
        return mlo_failed(m);
    k->n = q->n_signals;
    k->iterations = q->scan.iterations;
    k->samples = q->samples;
    k->trusted = q->trusted;
    k->cost = q->cost;
    *(q->head ? &m->seen->head : &m->seen) = k;
    for (size_t i = 0; i < k->n; i++)
        MLO_TRY(mlo_seen_keep_signal(m, q->signals[i], k->iterations, &k->signal[i]));
    return 0;
}

/* "'query' (linear, 64 channels)" */
static const char *mlo_seen_text(mlo *m, const char *name, mlo_block_kind kind, int64_t channels) {
    static const char *const kinds[MLO_BLOCK_KINDS] = { "the loop's input", "linear", "norm",
        "attention", "function", "sum", "rotary", "product", "convolution" };
    return mlo_format(m, "'%s' (%s, %lld channels)", name, kinds[kind], (long long)channels);
}

static int mlo_seen_differs(mlo_quantizer *q, const mlo_signal *s, const mlo_seen_signal *k) {
    mlo *m = q->m;
    return mlo_fail_at(m, MLO_E_MISMATCH, s ? s->name : mlo_node_name(q->scan.node),
        "the prompt's export has %s where the other has %s: they are not of one model",
        s ? mlo_seen_text(m, s->name, mlo_seen_kind(s), s->channels) : "nothing",
        k ? mlo_seen_text(m, k->name, k->kind, k->channels) : "nothing");
}

/* What the other export saw, in place of running samples: all of it, or (drift) what it saw of its roundings. */
static int mlo_seen_take(mlo_quantizer *q, int drift) {
    const mlo_seen *k = q->head ? q->m->like->head : q->m->like;
    double *sum[MLO_SEEN];
    int64_t size[MLO_SEEN];
    if (!k)
        return mlo_fail(q->m, MLO_E_MISMATCH, q->scan.node,
            "the prompt's export has layers behind the loop, the other none");
    if (q->scan.iterations != k->iterations)
        return mlo_fail(q->m, MLO_E_MISMATCH, q->scan.node,
            "the prompt's export has %lld layers, the other %lld", (long long)q->scan.iterations,
            (long long)k->iterations);
    for (size_t i = 0; i < k->n || i < q->n_signals; i++) {
        const mlo_signal *s = i < q->n_signals ? q->signals[i] : NULL;
        const mlo_seen_signal *other = i < k->n ? &k->signal[i] : NULL;
        if (!s || !other || s->channels != other->channels || mlo_seen_kind(s) != other->kind)
            return mlo_seen_differs(q, s, other);
        mlo_seen_arrays(s, k->iterations, sum, size);
        for (int a = drift ? MLO_SEEN - 1 : 0; a < MLO_SEEN - !drift; a++)
            if (sum[a] && other->sum[a])
                memcpy(sum[a], other->sum[a], (size_t)size[a] * sizeof *sum[a]);
        if (drift && s->maker) s->maker->fed = other->maker->fed;
    }
    q->samples = k->samples;
    q->trusted = k->trusted;
    return 0;
}
