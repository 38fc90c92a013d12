/* said: samples for a decoder that nobody gave samples for: texts that it says itself.
 *
 * in:  a float model from token ids [1, T] to logits [1, T, V], whose attentions are all causal and
 *     whose ids index a table of V rows; inputs beside it are masks.
 * out: calibration data like those of --calib, 8 texts (128 where weights get few bits; fewer of large
 *     models). Of any other model:
 *     nothing.
 *
 * Random ids are no text: what a trained decoder computes of them has other means and longer tails
 * than what it will see. So ids are drawn, and in each of R rounds the model is run, and one id of R (but
 * the first of the text) is replaced by one drawn from what the model expects behind those before it. So
 * each of R neighbours follows from those in front of it, as in a text. Were all replaced in every round,
 * each would follow from what has been replaced since.
 *
 * Where weights get few bits, texts also begin as the model's own do. A decoder that was trained on texts
 * one behind the other says, between two, an id that takes back what was before it: a start of texts. Which one
 * that is shows in what the model expects behind an id: elsewhere that depends on the words before the id, behind
 * a start it is always the same. Of what it expects behind an id c, the entropy of the mean less the mean entropy
 * is how much the words before c say (their mutual information with the next one). The id of which that is
 * the least part of the entropy is the start, if it is far less than with ids on the whole; then all texts begin
 * with it. (It is sought in texts of two rounds: that half of the neighbours do not follow from each other shows
 * it better.)
 *
 * invariant: the numbers that decide are drawn once per place from fixed seeds, so the same model
 *     says the same texts.
 * example: a Llama of 260,000 parameters, trained on stories, with 8-bit operands: the
 *     Kullback-Leibler divergence from the floats is 0.033 calibrated on random ids, 0.015 to 0.022
 *     on texts of its own (by the seeds), 0.015 on texts that were sampled token by token. (By the
 *     kernels of today 0.0028 with all replaced in every round, 0.0017 so; 4-bit weights: 0.063, 0.060, and
 *     0.047 where they begin with a start.)
 *     Its id 1 begins stories: what is before it has 1 % of the entropy behind it, of ids on the whole 30 %.
 * cost: a float evaluation per text and round: 2 rounds, or 1 where these take 2e9
 *     multiply-accumulates; 8 where weights get few bits, whose errors the texts balance (feedback.c),
 *     or fewer where these take 24e9; three more of MLO_START_TEXTS to find a start, for which
 *     MLO_START_GROUPS floats per word are kept.
 */
enum {
    MLO_SAID_ROUNDS = 2,
    MLO_SAID_ROUNDS_FEW = 8,
    MLO_SAID_TEXTS_FEW = 128,
    MLO_SAID_INPUTS = 4,
    MLO_START_TEXTS = 64, /* in which a start is sought */
    MLO_START_SEEN = 6, /* how often it is there, at least */
    MLO_START_GROUPS = 128 /* of words, whose probabilities are summed */
};
/* Of what the words before ids say on the whole: what they say before a start, at most. */
static const double mlo_start_part = 1.0 / 16;
/* Of the entropy behind ids on the whole: that behind a start, at least. (A word's second half tells the
 * next as little of what was before, as there is but one that can follow.) */
static const double mlo_start_open = 1.0 / 8;

typedef struct {
    const mlo_value_info *in[MLO_SAID_INPUTS]; /* token ids; masks behind them */
    size_t n;
    size_t out; /* which output the logits are */
    int64_t tokens; /* of a text */
    int64_t words; /* of the vocabulary */
} mlo_speaker;

/* ---- who can speak -------------------------------------------------------- */

static int mlo_is_causal(const mlo_quantizer *q) {
    int attentions = 0;
    for (size_t i = 0; i < q->r.n_block; i++) {
        if (q->r.block[i]->kind != MLO_ATTENTION) continue;
        if (!q->r.block[i]->sight.causal) return 0;
        attentions++;
    }
    return attentions > 0;
}

static int mlo_speaker_inputs(const mlo_graph *g, mlo_speaker *d) {
    d->n = 1; /* the ids' place */
    for (size_t i = 0; i < g->n_input; i++) {
        const mlo_value *v = mlo_value_of(g, g->input[i]->name);
        const mlo_form f = mlo_form_of(v);
        const int64_t rows = mlo_rows_indexed(g, g->input[i]->name, 0);
        if (v->tensor) continue;
        if (!mlo_form_known(&f) || (f.dtype != MLO_INT64 && f.dtype != MLO_INT32)) return 0;
        if (rows > 2 && !d->in[0] && f.rank == 2 && f.dims[0] == 1 && f.dims[1] > 1) {
            d->in[0] = g->input[i];
            d->tokens = f.dims[1];
            d->words = rows;
        } else if (!rows && strstr(g->input[i]->name, "mask") && d->n < MLO_SAID_INPUTS)
            d->in[d->n++] = g->input[i];
        else
            return 0;
    }
    return d->in[0] != NULL;
}

/* Does the model say, behind each token of a text, which the next may be? */
static int mlo_speaker_of(const mlo_quantizer *q, mlo_speaker *d) {
    const mlo_graph *g = q->m->model->graph;
    memset(d, 0, sizeof *d);
    if (!mlo_is_causal(q) || !mlo_speaker_inputs(g, d)) return 0;
    for (; d->out < g->n_output; d->out++) {
        const mlo_form f = mlo_form_of(mlo_value_of(g, g->output[d->out]->name));
        if (f.dtype == MLO_FLOAT && f.rank == 3 && f.dims[0] == 1 && f.dims[1] == d->tokens
            && f.dims[2] == d->words)
            return 1;
    }
    return 0;
}

/* ---- speaking ------------------------------------------------------------- */

/* A number from 0 to 1. */
static double mlo_random_part(uint64_t *seed) {
    return ldexp((double)(mlo_random(seed) >> 11), -53);
}

/* Which word is drawn by a number from 0 to 1, of words as likely as their logits say. */
static int64_t mlo_word_drawn(const float *logit, int64_t words, double u, double *likely) {
    double most = (double)logit[0], sum = 0, drawn;
    int64_t k = 0;
    for (int64_t i = 1; i < words; i++) most = fmax(most, (double)logit[i]);
    for (int64_t i = 0; i < words; i++) {
        const double far = (double)logit[i] - most;
        sum += likely[i] = far < -30 ? 0 : exp(far); /* so unlikely that nobody ever says it */
    }
    drawn = u * sum;
    while (k + 1 < words && !(likely[k] > drawn)) drawn -= likely[k++];
    return k;
}

/* ---- how texts begin ------------------------------------------------------ */

/* What the model expects behind each id. */
typedef struct {
    double *seen; /* [words]: how often the id was there */
    double *unsure; /* [words]: the sum of entropies */
    float *likely; /* [words, MLO_START_GROUPS]: sums of probabilities */
} mlo_sought;

static double mlo_entropy(const float *part, double of) {
    double sum = 0;
    for (int i = 0; i < MLO_START_GROUPS; i++)
        if (part[i] > 0) sum -= (double)part[i] / of * log((double)part[i] / of);
    return sum;
}

/* An id, and the logits behind it. likely: scratch for all words. */
static void mlo_sought_see(
    const mlo_sought *s, int64_t id, const float *logit, int64_t words, double *likely) {
    float part[MLO_START_GROUPS] = { 0 }, *all = s->likely + id * MLO_START_GROUPS;
    double sum = 0;
    mlo_word_drawn(logit, words, 0, likely);
    for (int64_t i = 0; i < words; i++) sum += likely[i];
    for (int64_t i = 0; i < words; i++) part[i % MLO_START_GROUPS] += (float)(likely[i] / sum);
    for (int i = 0; i < MLO_START_GROUPS; i++) all[i] += part[i];
    s->unsure[id] += mlo_entropy(part, 1);
    s->seen[id]++;
}

/* The id that begins texts; -1: there is none. */
static int64_t mlo_start_of(const mlo_sought *s, int64_t words) {
    double said = 0, open = 0, all = 0, least = 1;
    int64_t start = -1;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t c = 0; c < words; c++) {
            const double n = s->seen[c];
            if (n < 2) continue;
            const double entropy = mlo_entropy(s->likely + c * MLO_START_GROUPS, n);
            const double before = (entropy - s->unsure[c] / n) * n / (n - 1);
            if (!pass) {
                said += n * before;
                open += n * entropy;
                all += n;
            } else if (n >= (double)MLO_START_SEEN && entropy >= mlo_start_open * open / all
                && before < least * entropy) {
                least = before / entropy;
                start = c;
            }
        }
    return open > 0 && least < mlo_start_part * said / open ? start : -1;
}

/* ---- saying --------------------------------------------------------------- */

/* One round: ids first, first + step, .. are drawn anew. likely: scratch for all words; starts: what is behind
 * ids is added to it, or NULL. */
static int mlo_say_round(mlo *m, const mlo_speaker *d, mlo_array *inputs, int64_t first,
    int64_t step, const double *number, double *likely, const mlo_sought *starts) {
    const size_t n = m->model->graph->n_output;
    mlo_array **out = (mlo_array **)mlo_scratch(m, n, sizeof *out);
    if (!out) return mlo_failed(m);
    mlo_run_model(m, inputs, d->n, NULL, out);
    for (int64_t t = 1; starts && t < d->tokens && !m->error.code; t++)
        mlo_sought_see(starts, mlo_get(&inputs[0], t),
            (const float *)out[d->out]->data + t * d->words, d->words, likely);
    for (int64_t t = first; t < d->tokens && !m->error.code; t += step)
        mlo_set_element(&inputs[0], t,
            mlo_word_drawn((const float *)out[d->out]->data + (t - 1) * d->words, d->words,
                number[t], likely));
    for (size_t i = 0; i < n; i++) mlo_array_free(m, out[i]);
    mlo_scratch_free(m, out);
    return mlo_failed(m);
}

/* Text k, in place of inputs[0]. start: its first id, -1: any; starts: what is behind its ids is added to it, or
 * NULL. */
static int mlo_say_text(mlo *m, const mlo_speaker *d, int64_t k, int rounds, int64_t start,
    const mlo_sought *starts, mlo_array *inputs) {
    uint64_t seed = 0x6d6c6f2e73616964u + (uint64_t)k * 0x9E3779B97F4A7C15u;
    double *number = (double *)mlo_scratch(m, (size_t)(d->tokens + d->words), sizeof *number);
    for (int64_t t = 0; number && t < d->tokens; t++) {
        number[t] = mlo_random_part(&seed);
        mlo_set_element(&inputs[0], t, (int64_t)(mlo_random(&seed) >> 11) % d->words);
    }
    if (number && start >= 0) mlo_set_element(&inputs[0], 0, start);
    for (int r = 1; number && r <= rounds && !m->error.code; r++)
        mlo_say_round(m, d, inputs, r, rounds, number, number + d->tokens, NULL);
    if (number && starts && !m->error.code)
        mlo_say_round(m, d, inputs, d->tokens, 1, number, number + d->tokens, starts);
    mlo_scratch_free(m, number);
    return mlo_failed(m);
}

/* ---- texts as calibration data -------------------------------------------- */

/* Room for `texts` of the ids, and masks that keep every token. */
static mlo_array *mlo_speaker_arrays(mlo *m, const mlo_speaker *d, int64_t texts) {
    mlo_array *all = MLO_NEW_N(m, mlo_array, d->n);
    for (size_t i = 0; all && i < d->n; i++) {
        const mlo_form f = mlo_form_of(mlo_value_of(m->model->graph, d->in[i]->name));
        int64_t count = mlo_form_count(&f) * (i ? 1 : texts);
        all[i].name = d->in[i]->name;
        all[i].dtype = f.dtype;
        all[i].rank = f.rank + !i;
        if (!i) all[i].dims[0] = texts;
        memcpy(all[i].dims + !i, f.dims, (size_t)f.rank * sizeof *f.dims);
        all[i].data = mlo_alloc(m, (size_t)count * mlo_dtype_size(f.dtype), 1);
        for (int64_t e = 0; i && all[i].data && e < count; e++) mlo_set_element(&all[i], e, 1);
    }
    return m->error.code ? NULL : all;
}

static int mlo_rounds_said(mlo *m, int64_t texts) {
    const mlo_graph *g = m->model->graph;
    const int few = mlo_opt_int(m, "weights", 8, 2, 8) <= MLO_FEW_BITS;
    const double most = few ? 24e9 : 2e9; /* multiply-accumulates, all texts */
    const double macs = (mlo_loop_macs(g) + (double)mlo_body_macs(g)) * (double)texts;
    int rounds = few ? MLO_SAID_ROUNDS_FEW : MLO_SAID_ROUNDS;
    while (rounds > 1 && macs * rounds > most) rounds /= 2;
    return rounds;
}

/* The first texts of all. */
static int mlo_say_texts(mlo *m, const mlo_speaker *d, const mlo_array *all, int64_t texts,
    int rounds, int64_t start, const mlo_sought *starts) {
    mlo_array one[MLO_SAID_INPUTS];
    memcpy(one, all, d->n * sizeof *one);
    one[0].rank--;
    memmove(one[0].dims, one[0].dims + 1, (size_t)one[0].rank * sizeof *one[0].dims);
    const size_t bytes = (size_t)d->tokens * mlo_dtype_size(one[0].dtype);
    for (int64_t k = 0; k < texts && !m->error.code; k++) {
        one[0].data = (char *)all[0].data + (size_t)k * bytes;
        mlo_say_text(m, d, k, rounds, start, starts, one);
    }
    return mlo_failed(m);
}

/* The id that texts of few bits' models begin with; -1: any. The texts in which it is sought are lost. */
static int64_t mlo_start_sought(mlo *m, const mlo_speaker *d, const mlo_array *all) {
    const int64_t texts = all[0].dims[0], some = texts < MLO_START_TEXTS ? texts : MLO_START_TEXTS;
    const size_t words = (size_t)d->words;
    mlo_sought s = { 0 };
    int64_t start = -1;
    if (mlo_opt_int(m, "weights", 8, 2, 8) > MLO_FEW_BITS) return -1;
    s.seen = (double *)mlo_scratch(m, 2 * words, sizeof *s.seen);
    s.likely = (float *)mlo_scratch(m, words * MLO_START_GROUPS, sizeof *s.likely);
    if (s.seen && s.likely) {
        memset(s.seen, 0, 2 * words * sizeof *s.seen);
        memset(s.likely, 0, words * MLO_START_GROUPS * sizeof *s.likely);
        s.unsure = s.seen + words;
        if (!mlo_say_texts(m, d, all, some, MLO_SAID_ROUNDS, -1, &s))
            start = mlo_start_of(&s, d->words);
    }
    mlo_scratch_free(m, s.seen);
    mlo_scratch_free(m, s.likely);
    return start;
}

/* Lets a decoder say its samples, where there are none. They go with mlo_said_end. */
static int mlo_said_begin(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_speaker d;
    if (m->n_calib || !mlo_speaker_of(q, &d)) return 0;
    const int64_t texts = mlo_samples_drawn(m, MLO_SAID_TEXTS_FEW);
    mlo_array *all = mlo_speaker_arrays(m, &d, texts);
    if (!all) return mlo_failed(m);
    const int64_t start = mlo_start_sought(m, &d, all);
    MLO_TRY(mlo_say_texts(m, &d, all, texts, mlo_rounds_said(m, texts), start, NULL));
    m->calib = all;
    m->n_calib = d.n;
    m->said = (int)texts;
    return 0;
}

static void mlo_said_end(mlo *m) {
    if (!m->said) return;
    m->said = 0;
    m->calib = NULL;
    m->n_calib = 0;
}
