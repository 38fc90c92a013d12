/* prefix: rows of keys and values that are parameters, beside a frame's own, and sinks.
 *
 * in:  an attention whose keys and values are views of a frame's own and of parameters, joined by Concat: memory
 *     keys, a prefix that was learned, PyTorch's bias_k, bias_v and rows of zeros; or scores that are joined with a
 *     number of each head, which takes part in the softmax and mixes nothing (a sink).
 * out: where each row's numbers are, in the order [row, channel]; what a sink adds to each head's row; a mask of the
 *     frame's own keys. The kernel is AttentionPrefix, or AttentionSink where rows have numbers of their own.
 *
 * How: every element of the operand is numbered by where it comes from, through layouts and Concats.
 *
 * invariant: a frame's own tokens are in their order, all behind one another; every query sees every row, which has
 *     one number for each head, whatever the query; beside rows the mask hides, and adds nothing.
 * example: Concat(rows [1, 4, 3, 8], k [1, 4, 12, 8]): 3 rows in front of 12 keys. A sink: a row of zeros.
 * cost: O(elements of the operands), and of the mask.
 */
enum { MLO_PREFIX_PARTS = 8, MLO_PREFIX_OTHER = 1 << 28 };

/* Where an operand's elements come from: 0: it is the number 0; up to MLO_PREFIX_OTHER: of the frame's own, the first
 * of which is 1; else a parameter's. */
typedef struct {
    const mlo_inside *in;
    int scaled; /* 1: products with constants are looked through */
    const char *own; /* NULL: not met yet */
    double factor; /* what it is multiplied by */
    const char *part[MLO_PREFIX_PARTS];
    double part_factor[MLO_PREFIX_PARTS];
    int64_t from[MLO_PREFIX_PARTS + 1]; /* the number of a parameter's first element */
    int n_part;
} mlo_prefix_origin;

/* Rows of an attention: [rows, channels] of keys, of values. */
typedef struct mlo_prefix {
    int64_t n;
    int64_t channels; /* of a row */
    int64_t first; /* the first key that is the frame's own */
    mlo_prefix_origin of[2];
    int32_t *at[2]; /* origins */
    const char
        *sink; /* what the last row's score is in each head (a parameter); NULL: nothing is known */
    float *number; /* [iteration, heads, rows]: what is added to scores; NULL: nothing */
} mlo_prefix;

/* ---- where elements come from ---------------------------------------------- */

/* A value that is no view: the frame's own, or a parameter. NULL: it is something else. */
static mlo_array *mlo_prefix_origin_leaf(mlo_prefix_origin *o, const char *name, double factor) {
    mlo *m = o->in->m;
    const mlo_form f = mlo_body_form(o->in, name);
    const int carried = mlo_is_carried(o->in, name);
    if (!mlo_form_known(&f) || mlo_form_count(&f) >= MLO_PREFIX_OTHER
        || (carried && o->own && o->own != name))
        return NULL;
    if (carried) {
        o->own = name;
        o->factor = factor;
        return mlo_numbered(m, &f, 1);
    }
    const int64_t from = o->n_part ? o->from[o->n_part] : MLO_PREFIX_OTHER;
    if (o->n_part == MLO_PREFIX_PARTS || from + mlo_form_count(&f) > INT32_MAX
        || !mlo_is_parameter(o->in->scan, o->in->body, name, 0))
        return NULL;
    o->part[o->n_part] = name;
    o->part_factor[o->n_part] = factor;
    o->from[o->n_part++] = from;
    o->from[o->n_part] = from + mlo_form_count(&f);
    return mlo_numbered(m, &f, from);
}

static mlo_array *mlo_prefix_origin_of(
    mlo_prefix_origin *o, const char *name, double factor, int depth);

/* Does a Pad put zeros beside? */
static int mlo_pads_zeros(const mlo_inside *in, const mlo_node *n) {
    double filler = 0;
    return mlo_is(n, "Pad") && mlo_string_is(n, "mode", "constant", 1)
        && (!mlo_has_input(n, 2) || mlo_scalar(in, n->input[2], &filler))
        && !mlo_differs(filler, 0);
}

/* Tokens with rows beside them: a Concat, or a Pad (whose filler is left out: 0 is what it is). */
static mlo_array *mlo_prefix_origin_beside(
    mlo_prefix_origin *o, mlo_node *n, double factor, int depth) {
    const mlo_array *args[MLO_MOVE_INPUTS] = { 0 };
    mlo_array *part[MLO_MOVE_INPUTS] = { 0 }, *all = NULL;
    const int joins = mlo_is(n, "Concat");
    int ok = n->n_input <= MLO_MOVE_INPUTS;
    for (size_t k = 0; ok && k < n->n_input; k++) {
        if (!joins && (k == 2 || !mlo_has_input(n, k))) continue;
        const mlo_value *v = mlo_value_of(o->in->body, n->input[k]);
        part[k] = joins || !k ? mlo_prefix_origin_of(o, n->input[k], factor, depth + 1)
            : v->tensor       ? mlo_tensor_load(o->in->m, v->tensor)
                              : NULL;
        args[k] = part[k];
        ok = part[k] != NULL;
    }
    if (ok) all = mlo_made_of(o->in->m, n, n->output[0], args);
    for (size_t k = 0; k < MLO_MOVE_INPUTS; k++) mlo_array_free(o->in->m, part[k]);
    return all;
}

/* The origins of a value's elements, in its own form. NULL: it is no view of tokens and parameters. */
static mlo_array *mlo_prefix_origin_of(
    mlo_prefix_origin *o, const char *name, double factor, int depth) {
    mlo_node *n = mlo_is_carried(o->in, name) ? mlo_made_by(o->in, name) : NULL;
    const char *inner = n && o->scaled ? mlo_unscaled(o->in, n, &factor) : NULL;
    if (depth > MLO_CHAIN) return NULL;
    if (inner) return mlo_prefix_origin_of(o, inner, factor, depth + 1);
    if (mlo_is_beside_rows(o->in, n) || mlo_pads_zeros(o->in, n))
        return mlo_prefix_origin_beside(o, n, factor, depth);
    if (!mlo_is_layout(n) || !mlo_is_carried(o->in, n->input[0]) || mlo_joined_norm(o->in, n))
        return mlo_prefix_origin_leaf(o, name, factor);
    mlo_array *map = mlo_prefix_origin_of(o, n->input[0], factor, depth + 1);
    return map ? mlo_laid_out(o->in, n, name, map) : NULL;
}

/* ---- rows ------------------------------------------------------------------- */

static int mlo_prefix_is_of_frame(int32_t origin) {
    return origin > 0 && origin < MLO_PREFIX_OTHER;
}

/* The first key of the frame's own; -1: there is none, or the map is not of heads. */
static int64_t mlo_prefix_first(const mlo_array *map, const mlo_heads *v) {
    if (mlo_array_count(map) != v->t * v->heads * v->d) return -1;
    for (int64_t j = 0; j < v->t; j++)
        if (mlo_prefix_is_of_frame(((const int32_t *)map->data)[mlo_head_place(v, 0, j, 0)]))
            return j;
    return -1;
}

/* Is key j of the view the frame's own token `token`, in every head, of which `shared` read one? */
static int mlo_prefix_is_own(
    const int32_t *at, const mlo_heads *v, int64_t shared, int64_t j, int64_t token) {
    const int64_t channels = v->heads / shared * v->d;
    for (int64_t c = 0; c < v->heads * v->d; c++)
        if (at[mlo_head_place(v, c / v->d, j, c % v->d)]
            != 1 + token * channels + mlo_shared_channel(v->d, shared, c))
            return 0;
    return 1;
}

/* Notes a row's origins, of key j; 0: it is the frame's own, or heads that share keys do not have the same. */
static int mlo_prefix_row(
    const int32_t *at, const mlo_heads *v, int64_t shared, int64_t j, int32_t *row) {
    for (int64_t c = 0; c < v->heads * v->d; c++) {
        const int64_t of = mlo_shared_channel(v->d, shared, c);
        const int32_t origin = at[mlo_head_place(v, c / v->d, j, c % v->d)];
        const int again = c / v->d % shared != 0;
        if (mlo_prefix_is_of_frame(origin) || (again && row[of] != origin)) return 0;
        row[of] = origin;
    }
    return 1;
}

/* How many query heads read each head of keys, by how many channels the keys have. */
static int64_t mlo_shared_by(const mlo_recogniser *r, const char *keys, int64_t heads, int64_t d) {
    mlo_form f = mlo_body_form(&r->in, keys);
    int64_t own = mlo_last_dim(&f) / d;
    return own > 0 && own < heads && heads % own == 0 ? heads / own : 1;
}

/* Is operand k (0: keys, 1: values), a view of heads, a frame's own tokens with rows beside them? Rows of zeros have
 * room behind those for a sink. */
static int mlo_prefix_operand(
    mlo_recogniser *r, const char *name, const mlo_heads *v, mlo_prefix *p, int k) {
    mlo_prefix_origin *o = &p->of[k];
    memset(o, 0, sizeof *o);
    o->in = &r->in;
    o->scaled = !k;
    mlo_array *map = mlo_prefix_origin_of(o, name, 1, 0);
    const int32_t *at = map ? (const int32_t *)map->data : NULL;
    const mlo_form f = mlo_body_form(&r->in, o->own ? o->own : name);
    const int64_t own = mlo_tokens_of(&f), n = v->t - own,
                  first = map && own > 0 ? mlo_prefix_first(map, v) : -1;
    const int64_t shared = o->own ? mlo_shared_by(r, o->own, v->heads, v->d) : 1;
    const int64_t channels = v->heads / shared * v->d;
    int ok = map && mlo_last_dim(&f) == channels && n >= 0 && first >= 0 && first <= n
        && (!k || (first == p->first && n == p->n));
    p->at[k] = ok ? MLO_NEW_N(r->m, int32_t, (size_t)((n + 1) * channels)) : NULL;
    ok = p->at[k] != NULL;
    for (int64_t j = 0, row = 0; ok && j < v->t; j++)
        ok = j >= first && j < first + own
            ? mlo_prefix_is_own(at, v, shared, j, j - first)
            : mlo_prefix_row(at, v, shared, j, p->at[k] + channels * row++);
    mlo_array_free(r->m, map);
    p->first = first;
    p->n = n;
    p->channels = channels;
    return ok;
}

/* Is it a Concat of tokens with parameters (a past is none)? */
static int mlo_prefix_is_meant(const mlo_recogniser *r, const mlo_node *n) {
    int is = mlo_is_beside_rows(&r->in, n);
    for (size_t k = 0; is && k < n->n_input; k++)
        is = mlo_is_carried(&r->in, n->input[k])
            || mlo_is_parameter(r->scan, r->body, n->input[k], 0);
    return is;
}

/* Are keys and values, views of `heads` heads of `tk` keys, a frame's own with rows beside them? NULL: they are not, or
 * it failed. */
static mlo_prefix *mlo_prefix_of(
    mlo_recogniser *r, const char *const name[2], const mlo_heads *keys) {
    const mlo_heads values = { keys->t, keys->heads, keys->d, 0 };
    mlo_prefix *p = MLO_NEW(r->m, mlo_prefix);
    return p && mlo_prefix_operand(r, name[0], keys, p, 0)
            && mlo_prefix_operand(r, name[1], &values, p, 1)
        ? p
        : NULL;
}

/* ---- sinks ------------------------------------------------------------------ */

/* A softmax whose largest was taken off first: the same. */
static const char *mlo_unshifted(const mlo_inside *in, const char *name) {
    const mlo_node *n = mlo_made_by(in, name);
    const mlo_node *most = mlo_is(n, "Sub") ? mlo_made_by(in, n->input[1]) : NULL;
    return mlo_is(most, "ReduceMax") && most->input[0] == n->input[0] && mlo_reduces_last(in, most)
        ? n->input[0]
        : name;
}

/* Does a node take the `keys` of rows of `all` that begin at `first`, and nothing else? */
static int mlo_takes_keys(
    const mlo_inside *in, mlo_node *n, int64_t first, int64_t keys, int64_t all) {
    const mlo_form f = mlo_body_form(in, n->input[0]);
    mlo_array *map = mlo_numbered(in->m, &f, 0),
              *moved = map ? mlo_moved(in, n, n->output[0], map) : NULL;
    const int32_t *at = moved ? (const int32_t *)moved->data : NULL;
    int ok = moved && mlo_array_count(moved) * all == mlo_form_count(&f) * keys;
    for (int64_t i = 0; ok && i < mlo_array_count(moved); i++)
        ok = at[i] == first + i / keys * all + i % keys;
    mlo_array_free(in->m, map);
    mlo_array_free(in->m, moved);
    return ok;
}

/* Probabilities without their first or last column, n, of a softmax over scores and a parameter: *scores are those,
 * *sink that. NULL: it is no such thing. */
static mlo_node *mlo_unsunk(
    mlo_recogniser *r, mlo_node *n, mlo_node *softmax, const char **scores, const char **sink) {
    const mlo_form f = mlo_body_form(&r->in, softmax->output[0]);
    const mlo_node *joined = mlo_made_by(&r->in, mlo_unshifted(&r->in, softmax->input[0]));
    const int64_t all = mlo_last_dim(&f), axis = mlo_int(softmax, "axis", -1);
    if (!mlo_is_beside_rows(&r->in, joined) || joined->n_input != 2 || f.rank < 3
        || (axis != -1 && axis != f.rank - 1))
        return NULL;
    const int at = !mlo_is_carried(&r->in, joined->input[0]); /* the sink is in front */
    const mlo_form s = mlo_body_form(&r->in, joined->input[at]);
    if (s.rank != f.rank || mlo_last_dim(&s) != all - 1
        || !mlo_is_parameter(r->scan, r->body, joined->input[1 - at], 0)
        || !mlo_takes_keys(&r->in, n, at, all - 1, all))
        return NULL;
    *scores = joined->input[at];
    *sink = joined->input[1 - at];
    return softmax;
}

/* ---- what masks and sinks say of rows ------------------------------------------ */

/* Where numbers of rows are kept. NULL: failed. */
static float *mlo_prefix_numbers(mlo *m, const mlo_scan *s, mlo_sublayer *b) {
    const size_t n = (size_t)(s->iterations * b->heads * b->prefix->n);
    if (!b->prefix->number) b->prefix->number = MLO_NEW_N(m, float, n);
    return b->prefix->number;
}

static int mlo_prefix_cannot(mlo *m, const mlo_sublayer *b, const char *what) {
    return mlo_fail(m, MLO_E_UNSUPPORTED, b->node,
        "attention to rows of parameters beside a frame's keys, %s; hardware hides keys behind "
        "them by one bit each, "
        "and later ones (causal)",
        what);
}

/* Looks at the mask's elements in the tracer's iteration. */
static int mlo_prefix_look(mlo_tracer *t, mlo_sublayer *b, const mlo_array *a, int64_t sunk) {
    const mlo_prefix *p = b->prefix;
    const int64_t rows = p->n - sunk, all = rows + b->tokens,
                  queries = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    const int64_t *id = (const int64_t *)a->data;
    for (int64_t e = 0; e < mlo_array_count(a); e++) {
        const int64_t key = e % all, head = e / (all * queries) % b->heads;
        const int own = key >= p->first && key < p->first + b->tokens;
        const int64_t row = key < p->first ? key : key - b->tokens;
        if (own && mlo_symbol_adds(t, id[e]) && !mlo_symbol_is(t, id[e], 0))
            return mlo_prefix_cannot(t->m, b, "and a mask that adds a number to keys");
        if (own) continue;
        if (!mlo_symbol_adds(t, id[e]))
            return mlo_prefix_cannot(
                t->m, b, "and a mask that hides rows, or adds to them what inputs say");
        if (e / all % queries
            && t->symbol[id[e]].low != t->symbol[id[e - e / all % queries * all]].low)
            return mlo_prefix_cannot(
                t->m, b, "and a mask that adds to a row another number for each query");
        if (mlo_symbol_is(t, id[e], 0) && !p->number) continue;
        float *number = mlo_prefix_numbers(t->m, t->s, b);
        if (!number) return mlo_failed(t->m);
        for (int64_t h = 0; h < b->heads; h++)
            if (h == head || mlo_array_count(a) == queries * all)
                number[(t->iteration * b->heads + h) * p->n + row] = (float)(t->symbol[id[e]].low
                    * b->mask_scale);
    }
    return 0;
}

/* The part of a mask that is of the frame's own keys. NULL: failed. */
static const char *mlo_prefix_mask_own(mlo *m, mlo_scan *s, const mlo_sublayer *b) {
    mlo_node bare = *b->node;
    bare.n_meta = 0;
    mlo_expansion x = { m, s->body, &bare, mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
    const int64_t from = b->prefix->first, until = from + b->tokens, axis = -1;
    const char *first = mlo_x_list(&x, &from, 1), *last = mlo_x_list(&x, &until, 1),
               *at = mlo_x_list(&x, &axis, 1);
    const char *own = MLO_X(&x, "Slice", b->mask, first, last, at);
    for (size_t i = 0; i < x.n_made; i++)
        if (mlo_graph_add(m, s->body, x.made[i])) return NULL;
    return mlo_index(m, m->model->graph) || mlo_infer(m) ? NULL : own;
}

/* A mask of rows and keys: what it says of rows is noted, *mask becomes that of the frame's own keys. */
static int mlo_prefix_mask(mlo_tracer *t, mlo_scan *s, mlo_sublayer *b, const char **mask) {
    const mlo_form f = mlo_form_of(mlo_value_of(s->body, *mask));
    const mlo_value *v = mlo_value_of(s->body, *mask);
    const int64_t sunk = b->prefix->sink != NULL, rows = b->prefix->n - sunk;
    if (!mlo_form_known(&f) || f.rank < 1 || mlo_last_dim(&f) != rows + b->tokens) return 0;
    const int64_t n = v && v->graph == s->body ? s->iterations : 1;
    for (int64_t i = 0; i < s->iterations; i++) {
        t->iteration = i;
        if (n > 1) mlo_trace_forget(t->m, &t->now);
        const mlo_array *a = mlo_trace(t, *mask);
        if (!a)
            return t->m->error.code
                ? mlo_failed(t->m)
                : mlo_prefix_cannot(t->m, b, "and a mask too large to be followed");
        MLO_TRY(mlo_prefix_look(t, b, a, sunk));
    }
    t->iteration = 0;
    if (n > 1) mlo_trace_forget(t->m, &t->now);
    if (rows) *mask = mlo_prefix_mask_own(t->m, s, b);
    return *mask ? 0 : mlo_failed(t->m);
}

/* A sink's number in each head: the same for all queries. */
static int mlo_prefix_sink(mlo *m, const mlo_scan *s, mlo_sublayer *b) {
    mlo_prefix *p = b->prefix;
    float *number = p->sink ? mlo_prefix_numbers(m, s, b) : NULL;
    for (int64_t i = 0; number && i < s->iterations; i++) {
        mlo_array *a = mlo_scan_value(m, s, p->sink, i);
        const int64_t n = a ? mlo_array_count(a) : 0, queries = n / b->heads;
        int ok = n > 0 && n % b->heads == 0;
        for (int64_t e = 0; ok && e < n; e++) {
            const double x = mlo_number_at(a, e);
            float *to = &number[(i * b->heads + e / queries) * p->n + p->n - 1];
            ok = x > -10000 && x < 10000 && (e % queries == 0 || !mlo_differs(x, (double)*to));
            *to = (float)x;
        }
        mlo_array_free(m, a);
        if (!ok && !m->error.code)
            return mlo_prefix_cannot(m, b, "and a sink that is not one number for each head");
    }
    return mlo_failed(m);
}

/* What rows get besides their products becomes a bias of heads and keys: rows first, then the frame's own. */
static int mlo_prefix_settle(mlo *m, const mlo_scan *s, mlo_sublayer *b) {
    mlo_prefix *p = b->prefix;
    if (b->sight.band || b->sight.bias.number)
        return mlo_prefix_cannot(m, b, "and a window, or a bias by place");
    if (b->cap) return mlo_prefix_cannot(m, b, "and a soft cap");
    MLO_TRY(mlo_prefix_sink(m, s, b));
    if (!p->number) return mlo_failed(m);
    const int64_t keys = p->n + b->tokens, blocks = s->iterations * b->heads;
    const mlo_bias all = { s->iterations, b->heads, 1, keys,
        MLO_NEW_N(m, float, (size_t)(blocks * keys)) };
    for (int64_t k = 0; all.number && k < blocks; k++)
        for (int64_t j = 0; j < p->n; j++) all.number[k * keys + j] = p->number[k * p->n + j];
    b->sight.bias = all;
    b->mask_scale = 1;
    return mlo_failed(m);
}

/* ---- numbers of rows ------------------------------------------------------------- */

/* The rows of keys (k = 0) or values in iteration i, as the frame's own are in front of what these are multiplied by:
 * to[row, channel]. */
static int mlo_prefix_values(mlo_quantizer *q, const mlo_prefix *p, int k, int64_t i, double *to) {
    const mlo_prefix_origin *o = &p->of[k];
    for (int64_t e = 0; e < p->n * p->channels; e++) to[e] = 0;
    for (int part = 0; part < o->n_part; part++) {
        mlo_array *a = mlo_scan_value(q->m, &q->scan, o->part[part], i);
        if (!a) return mlo_failed(q->m);
        for (int64_t e = 0; e < p->n * p->channels; e++)
            if (p->at[k][e] >= o->from[part] && p->at[k][e] < o->from[part + 1])
                to[e] = mlo_number_at(a, p->at[k][e] - o->from[part]) * o->part_factor[part]
                    / o->factor;
        mlo_array_free(q->m, a);
    }
    return 0;
}

/* What attentions read beside a frame's own counts, too, where ranges are asked for. */
static int mlo_prefix_see(mlo_quantizer *q, const mlo_sublayer *b, int k) {
    const mlo_prefix *p = b->prefix;
    mlo_signal *s = mlo_signal_of(q, b->in[1 + k]);
    double *x = (double *)mlo_scratch(q->m, (size_t)(p->n * p->channels), sizeof *x);
    for (int64_t i = 0; x && i < q->scan.iterations && !mlo_prefix_values(q, p, k, i, x); i++)
        for (int64_t e = 0; e < p->n * p->channels; e++) {
            const int64_t at = i * p->channels + e % p->channels;
            s->low[at] = fmin(s->low[at], x[e]);
            s->high[at] = fmax(s->high[at], x[e]);
            s->most[i] = fmax(s->most[i], fabs(x[e]));
        }
    mlo_scratch_free(q->m, x);
    return mlo_failed(q->m);
}

/* The same of all attentions, behind the samples. */
static int mlo_prefixes_see(mlo_quantizer *q) {
    for (size_t i = 0; i < q->r.n_block; i++)
        for (int k = 0; q->r.block[i]->prefix && k < 2; k++)
            MLO_TRY(mlo_prefix_see(q, q->r.block[i], k));
    return 0;
}

/* The integers of iteration i, in the steps of the frame's own. */
static void mlo_prefix_round(
    const mlo_prefix *p, const mlo_signal *s, int64_t i, const double *x, void *to) {
    const double most = ldexp(1, s->bits - 1) - 1;
    for (int64_t e = 0; e < p->n * p->channels; e++) {
        const int64_t at = i * p->channels + e % p->channels;
        const double step = mlo_narrow_step(s, i, e % p->channels);
        const double y = fmax(-most - 1, fmin(most, rint((x[e] - s->zero[at]) / step)));
        if (mlo_narrow_type(s) == MLO_INT8)
            ((int8_t *)to)[i * p->n * p->channels + e] = (int8_t)y;
        else
            ((int16_t *)to)[i * p->n * p->channels + e] = (int16_t)y;
    }
}

/* The rows as parameters of a kernel, behind its other inputs. */
static int mlo_prefix_parameters(mlo_quantizer *q, const mlo_sublayer *b, mlo_node *n) {
    const mlo_prefix *p = b->prefix;
    const int64_t shape[] = { p->n, p->channels };
    double *x = (double *)mlo_scratch(q->m, (size_t)(p->n * p->channels), sizeof *x);
    for (int k = 0; x && k < 2 && !q->m->error.code; k++) {
        const mlo_signal *s = mlo_signal_of(q, b->in[1 + k]);
        const char *name = mlo_format(q->m, "%s_%s", b->out, k ? "values" : "keys");
        void *to = name ? mlo_parameter(q, name, mlo_narrow_type(s), 2, shape) : NULL;
        for (int64_t i = 0; to && i < q->scan.iterations && !mlo_prefix_values(q, p, k, i, x); i++)
            mlo_prefix_round(p, s, i, x, to);
        if (to) mlo_node_input(q->m, n, name);
    }
    mlo_scratch_free(q->m, x);
    return mlo_failed(q->m);
}
