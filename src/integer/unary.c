/* unary: recognises a function of one value and makes it a table.
 *
 * in:  elementwise nodes between one value and another; all other operands are single numbers.
 * out: the table of the linear layer in front, whose only reader the function is.
 *
 * invariant: a table holds what the function's own nodes make of its index. Ends of the range over
 *     which the function hardly changes are cut off.
 * cost: an evaluation of 1025 points, and of the table's, per iteration.
 */

/* ---- recognising ---------------------------------------------------------- */

/* Collects, in topological order, the elementwise nodes between `source` and `name`. 0: something
 * else is in between. */
static int mlo_unary_nodes(
    mlo_recogniser *r, const char *name, const char *source, mlo_sublayer *b, int depth) {
    if (name == source || mlo_is_number(&r->in, name)) return 1;
    mlo_node *n = mlo_made_by(&r->in, name);
    for (size_t i = 0; i < b->n_inner; i++)
        if (b->inner[i] == n) return 1;
    if (!mlo_is_elementwise(n) || depth > 24) return 0;
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i) && !mlo_unary_nodes(r, n->input[i], source, b, depth + 1)) return 0;
    return MLO_PUSH(r->m, b->inner, b->n_inner, n);
}

/* The farthest value of which n's output is a function. The frontier holds what is still needed;
 * its latest member is replaced by what makes it, and whenever one member is left, that is a value
 * everything goes through. */
static const char *mlo_unary_source(mlo_recogniser *r, mlo_node *n) {
    const char *front[MLO_CHAIN] = { n->output[0] }, *best = NULL;
    int count = 1;
    for (int step = 0; step < 32; step++) {
        int last = 0;
        for (int i = 1; i < count; i++)
            if (mlo_map_get(&r->order, front[i]) > mlo_map_get(&r->order, front[last])) last = i;
        mlo_node *p = mlo_made_by(&r->in, front[last]);
        if (!mlo_is_inner(r, p)) break;
        front[last] = front[--count];
        for (size_t i = 0; i < p->n_input; i++)
            if (mlo_is_carried(&r->in, p->input[i])) {
                int known = 0;
                for (int k = 0; k < count; k++) known |= front[k] == p->input[i];
                if (!known && count == MLO_CHAIN) return best;
                if (!known) front[count++] = p->input[i];
            }
        if (count == 1) best = front[0];
    }
    return best;
}

static const char *mlo_block_unary(mlo_recogniser *r, mlo_node *n) {
    mlo_sublayer *b = mlo_block_new(r, n, n->output[0]);
    if (!b) return NULL;
    if (!(b->in[0] = mlo_unary_source(r, n))) {
        int both = n->n_input > 1 && mlo_is_carried(&r->in, n->input[0])
            && mlo_is_carried(&r->in, n->input[1]);
        mlo_form other = mlo_body_form(
            &r->in, n->input[n->n_input > 1 && mlo_is_carried(&r->in, n->input[0])]);
        if (both && mlo_is(n, "Sub"))
            return mlo_refuse_told(r, n,
                "an elementwise op that is no function of one value: a difference of two; hardware "
                "has sums, so put the minus into the weights of a linear layer that makes what is "
                "taken off (a difference of two attentions of one head, DiffLlama's, has no "
                "hardware)");
        int places = !both && mlo_is(n, "Add") && mlo_tokens_of(&other) > 1;
        return mlo_cannot(r, n,
            places ? "a value for each position that is added to the tokens inside of a layer and "
                     "is no constant of a number for each token and channel (positions that are "
                     "computed from a mask or another input: export them as constants)"
                   : "an elementwise op that is no function of one value");
    }
    b->n_in = 1;
    if (!mlo_unary_nodes(r, n->output[0], b->in[0], b, 0))
        return mlo_cannot(r, n, "an elementwise op of several values");
    /* what the function begins with rounding is given as its table's index */
    for (size_t i = 0; i < b->n_inner; i++) {
        mlo_rounding f;
        if (mlo_is_rounded(&r->in, b->inner[i]->output[0], &f) && f.from == b->in[0]
            && mlo_note_rounding(r, f.from, &f, 1))
            return NULL;
    }
    return mlo_block_finish(r, b);
}

static const char *mlo_recognise_unary(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    (void)name;
    *is = mlo_is_elementwise(n);
    return *is ? mlo_block_unary(r, n) : NULL;
}

/* The unary function that is the only reader of a linear layer, NULL when there is none: they
 * become one MVUTable. */
static mlo_sublayer *mlo_fused_unary(const mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_sublayer *unary = NULL;
    int readers = 0;
    for (size_t i = 0; i < q->r.n_block; i++)
        for (int k = 0; k < q->r.block[i]->n_in; k++)
            if (q->r.block[i]->in[k] == b->out) {
                readers++;
                if (q->r.block[i]->kind == MLO_UNARY) unary = q->r.block[i];
            }
    return readers == 1 && b->out != q->result ? unary : NULL;
}

/* The type of a function of one value, by what it is made of. */
static const char *mlo_q_function(const mlo_sublayer *b) {
    int erf = 0, sigmoid = 0, tanh_ = 0, relu = 0, soft = 0, swish = 0;
    for (size_t i = 0; i < b->n_inner; i++) {
        const mlo_node *n = b->inner[i];
        erf |= mlo_is(n, "Erf") || mlo_is(n, "Gelu");
        sigmoid |= mlo_is(n, "Sigmoid");
        tanh_ |= mlo_is(n, "Tanh");
        relu |= mlo_is(n, "Relu");
        soft |= mlo_is(n, "Softplus");
        swish |= mlo_is(n, "Swish");
    }
    if (erf) return "gelu";
    if (swish) return "silu";
    if (b->n_inner == 1)
        return relu   ? "relu"
            : tanh_   ? "tanh"
            : sigmoid ? "sigmoid"
            : soft    ? "softplus"
                      : "function";
    return tanh_ ? "gelu" : sigmoid ? "silu" : "function";
}

/* ---- scales --------------------------------------------------------------- */

/* A table of Relu may have the steps of what it makes: then it is exact. */
static int mlo_given_relu(mlo_quantizer *q, mlo_sublayer *b) {
    mlo_signal *x = mlo_signal_of(q, b->in[0]), *y = mlo_signal_of(q, b->out);
    const mlo_given *g = mlo_narrow_given(y);
    if (b->n_inner != 1 || !mlo_is(b->inner[0], "Relu") || x->given || !mlo_given_scaled(g))
        return 0;
    for (int64_t i = 0; g->zero && i < q->scan.iterations; i++)
        if (mlo_differs(g->zero[i], 0)) return 0;
    mlo_given *same = MLO_NEW(q->m, mlo_given);
    if (!same) return mlo_failed(q->m);
    same->sign = 1;
    same->bits = g->bits + !g->sign;
    same->scale = g->scale;
    x->given = same;
    return 0;
}

static void mlo_one_scale(
    const mlo_quantizer *q, mlo_signal *s, int64_t i, double low, double high) {
    double top = mlo_top(s), scale = mlo_step(q, (high > low ? high - low : 1) / (2 * top + 1));
    /* more room than is needed: half of it at each end */
    if (q->pow2) low = (low + high - (2 * top + 1) * scale) / 2;
    s->narrow_scale[i] = scale;
    for (int64_t c = i * s->channels; c < (i + 1) * s->channels; c++)
        s->zero[c] = low + (top + 1) * scale;
}

static void mlo_range(const mlo_signal *s, int64_t i, double *low, double *high) {
    *low = s->low[i * s->channels];
    *high = s->high[i * s->channels];
    for (int64_t c = i * s->channels; c < (i + 1) * s->channels; c++) {
        if (s->low[c] < *low) *low = s->low[c];
        if (s->high[c] > *high) *high = s->high[c];
    }
}

/* No elementwise operator that has a name here takes more. */
enum { MLO_UNARY_INPUTS = 8 };

/* f(first + k step) in an iteration, k = 0..n-1, by evaluating the function's own nodes. Returns
 * scratch. */
static mlo_array *mlo_tabulate(mlo_quantizer *q, const mlo_sublayer *u, int64_t iteration,
    double first, double step, int64_t count) {
    mlo *m = q->m;
    mlo_array **made = (mlo_array **)mlo_scratch(m, u->n_inner + 1, sizeof *made), *result = NULL;
    if (!made) return NULL;
    memset(made, 0, (u->n_inner + 1) * sizeof *made);
    mlo_array *x = made[u->n_inner] = mlo_array_new(m, MLO_FLOAT, 1, &count);
    for (int64_t i = 0; x && i < count; i++)
        ((float *)x->data)[i] = (float)(first + (double)i * step);
    for (size_t k = 0; x && k < u->n_inner && !m->error.code; k++) {
        mlo_node *n = u->inner[k];
        mlo_array *in[MLO_UNARY_INPUTS] = { 0 };
        int own[MLO_UNARY_INPUTS] = { 0 };
        const mlo_op *op = mlo_op_of(m, n);
        if (!op || !op->run || n->n_input > MLO_UNARY_INPUTS) {
            mlo_fail(m, MLO_E_UNSUPPORTED, n,
                "an activation function by an op that mlo cannot evaluate");
            break;
        }
        for (size_t i = 0; i < n->n_input && !m->error.code; i++)
            if (mlo_has_input(n, i)) {
                for (size_t j = 0; j < k && !in[i]; j++)
                    if (u->inner[j]->output[0] == n->input[i]) in[i] = made[j];
                /* the one value, or a reshape of it */
                if (!in[i] && mlo_is_carried(&q->r.in, n->input[i])) in[i] = x;
                if (!in[i]) {
                    in[i] = mlo_scan_value(m, &q->scan, n->input[i], iteration);
                    own[i] = 1;
                }
                if (in[i] && own[i] && mlo_array_count(in[i]) == 1) in[i]->rank = 0;
            }
        if (!m->error.code)
            mlo_call_node(m, op, n, mlo_opset_of(m), (const mlo_array *const *)in, &made[k]);
        for (size_t i = 0; i < n->n_input; i++)
            if (own[i]) mlo_array_free(m, in[i]);
    }
    if (!m->error.code) {
        result = made[u->n_inner - 1];
        made[u->n_inner - 1] = NULL;
    }
    for (size_t k = 0; k <= u->n_inner; k++) mlo_array_free(m, made[k]);
    mlo_scratch_free(m, made);
    return result;
}

/* The range of a table's index: what was seen, less the ends over which the function changes by
 * less than 1/32 of its step. */
static int mlo_index_range(
    mlo_quantizer *q, const mlo_sublayer *u, mlo_signal *x, const mlo_signal *y, int64_t i) {
    enum { POINTS = 1025 };
    double low, high, step = y->wide ? y->wide_scale[i] : y->narrow_scale[i];
    /* the result has 16 bits for what lies beyond what was seen */
    if (y->wide) mlo_widen(q, x);
    mlo_range(x, i, &low, &high);
    double each = (high - low) / (POINTS - 1);
    mlo_array *f = mlo_tabulate(q, u, i, low, each, POINTS);
    if (!f) return mlo_failed(q->m);
    const float *v = (const float *)f->data;
    int from = 0, to = POINTS - 1;
    while (from < to && fabs((double)(v[from + 1] - v[0])) <= step / 32) from++;
    while (to > from && fabs((double)(v[to - 1] - v[POINTS - 1])) <= step / 32) to--;
    mlo_array_free(q->m, f);
    mlo_one_scale(q, x, i, low + from * each, low + to * each);
    return 0;
}

static int mlo_unary_scales(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_signal *x = mlo_signal_of(q, b->in[0]), *y = mlo_signal_of(q, b->out);
    int given = mlo_given_scaled(mlo_narrow_given(y));
    if (given) mlo_obey(q, y);
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        double low, high;
        mlo_range(y, i, &low, &high);
        if (given) continue;
        if (mlo_absorbed(y) && !y->wide)
            mlo_one_scale(q, y, i, low, high);
        else
            mlo_fit(q, y, i);
    }
    for (int64_t i = 0; x->maker && mlo_fused_unary(q, x->maker) == b
        && !mlo_given_scaled(mlo_narrow_given(x)) && i < q->scan.iterations;
        i++)
        if (mlo_index_range(q, b, x, y, i)) return mlo_failed(q->m);
    return 0;
}

/* ---- tables --------------------------------------------------------------- */

static int mlo_table_fill(mlo_quantizer *q, const mlo_sublayer *u, const mlo_signal *x,
    const mlo_form_made *y, void *table) {
    double hi = ldexp(1, y->bits - 1) - 1;
    int64_t size = (int64_t)1 << x->bits, per = mlo_signal_of(q, u->out)->channels;
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        mlo_array *f = mlo_tabulate(q, u, i,
            x->zero[i * x->channels] - x->narrow_scale[i] * (double)(size / 2), x->narrow_scale[i],
            size);
        if (!f) return mlo_failed(q->m);
        for (int64_t k = 0; k < size; k++) {
            double v = rint(
                ((double)((float *)f->data)[k] - (y->zero ? y->zero[i * per] : 0)) / y->scale[i]);
            v = v > hi ? hi : v < -hi - 1 ? -hi - 1 : v == v ? v : 0;
            if (y->type == MLO_INT8)
                ((int8_t *)table)[i * size + k] = (int8_t)v;
            else
                ((int16_t *)table)[i * size + k] = (int16_t)v;
        }
        mlo_array_free(q->m, f);
    }
    return 0;
}

/* lo and hi of an MVUTable are those of its table's index. */
static void mlo_index_bounds(mlo_node *n, int bits) {
    mlo_attr *lo = mlo_attr_of(n, "lo"), *hi = mlo_attr_of(n, "hi");
    hi->i = ((int64_t)1 << (bits - 1)) - 1;
    lo->i = -hi->i - 1;
}

/* The kernel that makes what is behind a requantization to `made`: the function `unary` of it by a
 * table, or (NULL) itself. in: its inputs but the table. */
static mlo_node *mlo_requantizing_node(mlo_quantizer *q, const mlo_kernel *k, const mlo_sublayer *b,
    const mlo_sublayer *unary, const mlo_form_made *made, const char *const *in, size_t n_in) {
    mlo *m = q->m;
    mlo_form_made y = unary ? mlo_made_at(q, mlo_signal_of(q, unary->out)) : *made;
    const mlo_signal *pre = mlo_signal_of(q, b->out);
    const int64_t size = (int64_t)1 << pre->bits;
    const char *table = unary ? mlo_format(m, "%s_table", unary->out) : NULL;
    void *entries = table ? mlo_parameter(q, table, y.type, 1, &size) : NULL;
    if (m->error.code || (unary && (!entries || mlo_table_fill(q, unary, pre, &y, entries))))
        return NULL;
    mlo_node *n = mlo_kernel_node(
        q, unary ? k->with_table : k, b, unary ? unary->out : b->out, y.type, y.bits, y.scale);
    if (n && unary) mlo_index_bounds(n, pre->bits);
    return !n || mlo_inputs(m, n, in, n_in) || (unary && mlo_node_input(m, n, table)) ? NULL : n;
}

/* It is made together with the linear layer in front. */
static int mlo_quantize_unary(mlo_quantizer *q, const mlo_sublayer *b) {
    const mlo_signal *y = mlo_signal_of(q, b->out);
    return y->narrow_name || y->wide_name
        ? 0
        : mlo_fail(q->m, MLO_E_UNSUPPORTED, b->node,
              "a function of '%s', which is no linear layer of its own; only activations right "
              "behind a linear layer are supported",
              b->in[0]);
}

static const mlo_sublayer_kind mlo_unary_sublayer = {
    .kind = MLO_UNARY,
    .operand_bits = MLO_INDEX_BITS,
    .recognise = mlo_recognise_unary,
    .given = mlo_given_relu,
    .scales = mlo_unary_scales,
    .quantize = mlo_quantize_unary,
    .type = mlo_q_function,
};
