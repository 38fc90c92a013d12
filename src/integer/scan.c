/* scan: a loop as the later stages see it: the Scan node, its body, and what each iteration gets.
 *
 * in:  a Scan node made by roll (or one like it).
 * out: its counts, and the value of any parameter of the body in iteration i.
 *
 * invariant: a parameter is what does not depend on a carried value. So it can be computed without
 *     running the loop, and is, one iteration at a time: no more than one layer's weights are ever
 *     in memory.
 * example: mlo_scan_value(m, &scan, "w_q", 3) is layer 3's weight, read from the model file where
 *     it lies.
 * cost: the bytes of the value.
 */
typedef struct {
    mlo_node *node;
    mlo_graph *outer;
    mlo_graph *body;
    size_t n_state; /* Scan's M: carried values */
    size_t n_param; /* its scan inputs */
    size_t n_tap; /* its scan outputs */
    int64_t iterations;
} mlo_scan;

static int mlo_scan_of(mlo *m, mlo_graph *outer, mlo_node *n, mlo_scan *s) {
    memset(s, 0, sizeof *s);
    s->body = mlo_graph_of(n, "body");
    if (!s->body) return mlo_fail(m, MLO_E_GRAPH, n, "a Scan without a body");
    s->node = n;
    s->outer = outer;
    s->n_param = mlo_scan_stacks(n);
    if (s->n_param < 1 || s->n_param > n->n_input || s->body->n_input != n->n_input)
        return mlo_fail(m, MLO_E_GRAPH, n, "num_scan_inputs %lld does not fit %zu inputs",
            (long long)s->n_param, n->n_input);
    s->n_state = n->n_input - s->n_param;
    s->n_tap = n->n_output - s->n_state;
    mlo_form f = mlo_form_of(mlo_value_of(outer, n->input[s->n_state]));
    if (f.rank < 1 || f.dims[0] < 1)
        return mlo_fail(m, MLO_E_SHAPE, n,
            "the number of iterations is unknown: scan input '%s' has no known first dimension",
            n->input[s->n_state]);
    s->iterations = f.dims[0];
    return 0;
}

static mlo_array *mlo_value_array(
    mlo *m, const mlo_scan *s, const mlo_graph *g, const char *name, int64_t i, int depth);

/* Evaluates a parameter-only node, inputs first. */
static mlo_array *mlo_param_node(
    mlo *m, const mlo_scan *s, const mlo_graph *g, mlo_node *n, int output, int64_t i, int depth) {
    const mlo_op *op = mlo_op_of(m, n);
    const size_t count = n->n_input + n->n_output;
    mlo_array *result = NULL;
    if (!op || !op->run) {
        mlo_fail(
            m, MLO_E_UNSUPPORTED, n, "a parameter is computed by an op that mlo cannot evaluate");
        return NULL;
    }
    mlo_array **in = (mlo_array **)mlo_scratch(m, count, sizeof *in);
    if (!in) return NULL;
    mlo_array **out = in + n->n_input;
    for (size_t k = 0; k < count; k++) in[k] = NULL;
    for (size_t k = 0; k < n->n_input && !m->error.code; k++)
        if (mlo_has_input(n, k)) in[k] = mlo_value_array(m, s, g, n->input[k], i, depth + 1);
    if (!m->error.code
        && !mlo_call_node(m, op, n, mlo_opset_of(m), (const mlo_array *const *)in, out)) {
        result = out[output];
        out[output] = NULL;
    }
    for (size_t k = 0; k < count; k++) mlo_array_free(m, in[k]);
    mlo_scratch_free(m, in);
    return m->error.code ? NULL : result;
}

/* Slice i along axis 0. */
static mlo_array *mlo_array_slice(mlo *m, mlo_array *a, int64_t i) {
    if (a->rank < 1 || i >= a->dims[0]) return NULL;
    mlo_array *r = mlo_array_new(m, a->dtype, a->rank - 1, a->dims + 1);
    size_t bytes = r ? (size_t)mlo_array_count(r) * mlo_dtype_size(a->dtype) : 0;
    if (r) memcpy(r->data, (char *)a->data + (size_t)i * bytes, bytes);
    return r;
}

static mlo_array *mlo_stack_slice(
    mlo *m, const mlo_scan *s, const char *stack, int64_t i, int depth) {
    const char *part = mlo_stack_part(s->outer, stack, s->iterations, i);
    const mlo_value *v = mlo_value_of(s->outer, stack);
    if (!part && v->tensor) return mlo_tensor_slice(m, v->tensor, i);
    mlo_array *whole = mlo_value_array(m, s, s->outer, part ? part : stack, i, depth), *r = whole;
    if (!whole) return NULL;
    if (part)
        mlo_stack_form(s->outer, stack, whole);
    else {
        r = mlo_array_slice(m, whole, i);
        mlo_array_free(m, whole);
    }
    return r;
}

static mlo_array *mlo_value_array(
    mlo *m, const mlo_scan *s, const mlo_graph *g, const char *name, int64_t i, int depth) {
    mlo_value *v = mlo_value_of(g, name);
    if (!v || depth > 64) {
        mlo_fail_at(m, MLO_E_GRAPH, name, "a parameter that cannot be found");
        return NULL;
    }
    if (v->tensor) return mlo_tensor_load(m, v->tensor);
    for (size_t k = s->n_state; v->graph == s->body && v->is_input && k < s->body->n_input; k++)
        if (s->body->input[k]->name == name)
            return mlo_stack_slice(m, s, s->node->input[k], i, depth + 1);
    if (!v->producer) {
        mlo_fail_at(m, MLO_E_UNSUPPORTED, name,
            "a parameter of the loop comes from a model input; only constants can be parameters "
            "yet");
        return NULL;
    }
    return mlo_param_node(m, s, v->graph, v->producer, v->output, i, depth);
}

/* A parameter of the body in iteration i, in scratch memory (mlo_array_free). NULL: failed. */
static mlo_array *mlo_scan_value(mlo *m, const mlo_scan *s, const char *name, int64_t i) {
    return mlo_value_array(m, s, s->body, name, i, 0);
}

/* The bits of a value on a stream: what its maker says (metadata mlo.bits), else its type's. What
 * goes into the loop is as wide as what comes out. */
static int mlo_value_bits(const mlo_graph *g, const char *name) {
    mlo_value *v = mlo_value_of(g, name);
    const mlo_node *n = v ? v->producer : NULL;
    if (g->n_input && g->n_output && name == g->input[0]->name && name != g->output[0]->name)
        return mlo_value_bits(g, g->output[0]->name);
    if (n && mlo_is(n, "Split")) return mlo_value_bits(g, n->input[0]);
    return n && v->graph == g && mlo_kernel_of(n)
        ? (int)mlo_meta_int(n, mlo_key_bits, mlo_bits_of(mlo_form_of(v).dtype))
        : mlo_bits_of(mlo_form_of(v).dtype);
}

/* Multiply-accumulates of a node: matrix products, and attention's scores and sums. */
static int64_t mlo_node_macs(const mlo_graph *g, const mlo_node *n) {
    mlo_form a = mlo_form_of(mlo_value_of(g, n->input[0]));
    mlo_form y = mlo_form_of(mlo_value_of(g, n->output[0]));
    if (!mlo_form_known(&a) || !mlo_form_known(&y) || !a.rank || !y.rank) return 0;
    if (mlo_is(n, "MatMul") || mlo_is(n, "Gemm") || mlo_is_kernel(n, MLO_KERNEL_MATRIX))
        return mlo_form_count(&y) * a.dims[a.rank - 1];
    mlo_form k = mlo_form_of(mlo_value_of(g, mlo_has_input(n, 1) ? n->input[1] : n->input[0]));
    if (mlo_is_kernel(n, MLO_KERNEL_WINDOW)) return mlo_form_count(&y) * k.dims[1] * k.dims[2];
    if (!mlo_is_kernel(n, MLO_KERNEL_ATTENTION) || k.rank < 1) return 0;
    return mlo_form_count(&k) / k.dims[k.rank - 1] * (mlo_form_count(&a) + mlo_form_count(&y));
}

static int64_t mlo_body_macs(const mlo_graph *g) {
    int64_t macs = 0;
    for (size_t i = 0; i < g->n_node; i++)
        if (g->node[i]->n_input && g->node[i]->n_output) macs += mlo_node_macs(g, g->node[i]);
    return macs;
}

static int mlo_scan_unknown(mlo *m, const char *wanted) {
    const mlo_graph *g = m->model->graph;
    mlo_text known = { m, NULL, 0, 0 };
    for (size_t i = 0; i < g->n_node; i++)
        if (mlo_is_scan(g->node[i]))
            mlo_printf(&known, "%s%s", known.n ? ", " : "", mlo_node_name(g->node[i]));
    if (!m->error.code)
        mlo_fail_at(m, MLO_E_LOOP, NULL, "--loop %s: there is no loop of this name; %s%s", wanted,
            known.n ? "there are: " : "there is none", known.n ? known.text : "");
    mlo_text_free(&known);
    return mlo_failed(m);
}

/* The loop to build: option "loop" by name, else the one that lower has chosen, else the Scan with
 * the most multiply-accumulates. */
static int mlo_scan_choose(mlo *m, mlo_scan *s) {
    mlo_graph *g = m->model->graph;
    const char *wanted = mlo_opt(m, "loop");
    mlo_node *best = NULL;
    int64_t most = -1;
    for (size_t i = 0; i < g->n_node; i++)
        if (mlo_is_scan(g->node[i])) {
            const mlo_graph *body = mlo_graph_of(g->node[i], "body");
            mlo_scan each;
            if (!body || (wanted && !mlo_eq(wanted, mlo_node_name(g->node[i])))) continue;
            if (mlo_scan_of(m, g, g->node[i], &each)) return mlo_failed(m);
            int64_t macs = mlo_meta_get(g->node[i]->meta, g->node[i]->n_meta, mlo_key_core)
                ? INT64_MAX
                : mlo_body_macs(body) * each.iterations;
            if (macs > most) {
                most = macs;
                best = g->node[i];
            }
        }
    if (best) return mlo_scan_of(m, g, best, s);
    return wanted ? mlo_scan_unknown(m, wanted)
                  : mlo_fail_at(m, MLO_E_LOOP, NULL,
                        "the model has no loop; roll found nothing that repeats");
}

/* Drops what no output needs: dead nodes of the body, scan inputs it no longer reads, then dead
 * nodes outside. */
static int mlo_scan_prune(mlo *m, mlo_scan *s) {
    mlo_graph *body = s->body;
    MLO_TRY(mlo_drop_dead(m, body));
    MLO_TRY(mlo_index(m, s->outer));
    size_t kept = s->n_state;
    for (size_t i = s->n_state; i < body->n_input; i++) {
        if (!mlo_value_of(body, body->input[i]->name)->n_uses) continue;
        body->input[kept] = body->input[i];
        s->node->input[kept++] = s->node->input[i];
    }
    body->n_input = s->node->n_input = kept;
    s->n_param = kept - s->n_state;
    MLO_TRY(mlo_attr_int(m, s->node, "num_scan_inputs", (int64_t)s->n_param));
    MLO_TRY(mlo_drop_dead(m, s->outer));
    return mlo_index(m, s->outer);
}

/* Puts one node in front of the loop, one behind it. */
static int mlo_around_loop(mlo *m, const mlo_scan *s, mlo_node *before, mlo_node *behind) {
    mlo_graph list = { 0 };
    for (size_t i = 0; i < s->outer->n_node; i++) {
        mlo_node *n = s->outer->node[i];
        if (n == s->node) MLO_TRY(mlo_graph_add(m, &list, before));
        MLO_TRY(mlo_graph_add(m, &list, n));
        if (n == s->node) MLO_TRY(mlo_graph_add(m, &list, behind));
    }
    s->outer->node = list.node;
    s->outer->n_node = list.n_node;
    return 0;
}

/* The loop's own names of what it is given of a value, and of what it returns of it; NULL: nothing. */
static const char *mlo_scan_outside(const mlo_scan *s, const char *name, int returned) {
    const size_t n = returned ? s->body->n_output : s->body->n_input;
    for (size_t k = s->n_state; name && k < n; k++)
        if ((returned ? s->body->output[k] : s->body->input[k])->name == name)
            return returned ? s->node->output[k] : s->node->input[k];
    return NULL;
}
