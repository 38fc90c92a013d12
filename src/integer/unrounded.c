/* unrounded: a loop as it was before a quantizer rounded its values.
 *
 * in:  a loop with roundings (given.c).
 * out: its masks without them, always: each is 0 or hugely negative, rounded or not. And where a loop cannot be
 *     quantized with the roundings of its values (quantize.c), all of it: who read a rounded value reads it as it was.
 *
 * Quantizers take a Relu away where a rounding does what it did: one without a number below 0, behind a value that may
 * be below 0, becomes a Relu again.
 *
 * invariant: weights keep their integers; what is left computes what the model did before it was quantized, but for
 *     them, and for the largest numbers, which a rounding cut.
 * example: MatMul -> Q (uint8, zero 0) -> DQ -> MatMul was MatMul -> Relu -> MatMul.
 * cost: O(roundings x nodes).
 */

/* Who reads a value reads another one from now on, around the loop and in it. */
static void mlo_given_read(const mlo_scan *s, const char *name, const char *from) {
    const mlo_graph *const graph[] = { s->outer, s->body };
    for (int g = 0; g < 2; g++)
        for (size_t i = 0; i < graph[g]->n_node; i++)
            for (size_t k = 0; k < graph[g]->node[i]->n_input; k++)
                if (graph[g]->node[i]->input[k] == name) graph[g]->node[i]->input[k] = from;
}

/* Does the node hand on what masks are made of: element by element, or moved; out of no table of floats? */
static int mlo_given_makes_mask(const mlo_scan *s, const mlo_node *n) {
    static const char *const more[] = { "Expand", "Concat", "Range", "Shape", "Trilu", "CumSum",
        "ReduceSum", NULL };
    const mlo_form f = mlo_form_of(mlo_value_of(s->body, n->output[0]));
    if (mlo_is(n, "Gather") && mlo_dtype_is_float(f.dtype)) return 0;
    return mlo_has_trait(n, (mlo_trait)(MLO_ELEMENTWISE | MLO_RESHAPES | MLO_MOVES))
        || mlo_is_logic(n) || mlo_is_one_of(n, more);
}

/* Is it a constant, or an input of the model's of integers (a mask, words), or made of such alone? */
static int mlo_given_is_outside(const mlo_scan *s, const mlo_map *made, const char *name) {
    const mlo_value *v = mlo_value_of(s->body, name);
    if (!v || v->tensor || mlo_map_get(made, name)) return v != NULL;
    return !v->producer && v->graph != s->body && !mlo_dtype_is_float(mlo_form_of(v).dtype);
}

/* Notes what nodes make of such, in their order. */
static int mlo_given_outside(mlo *m, const mlo_scan *s, const mlo_graph *g, mlo_map *made) {
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_node *n = g->node[i];
        int outside = n->n_output && mlo_given_makes_mask(s, n);
        for (size_t k = 0; outside && k < n->n_input; k++)
            outside = !mlo_has_input(n, k) || mlo_given_is_outside(s, made, n->input[k]);
        for (size_t k = 0; outside && k < n->n_output; k++)
            MLO_TRY(mlo_map_put(m, made, n->output[k], (void *)(uintptr_t)n));
    }
    return 0;
}

/* Masks as they were before they were rounded: each is 0 or hugely negative, rounded or not. */
static int mlo_given_masks(mlo *m, const mlo_scan *s) {
    const mlo_graph *const graph[] = { s->outer, s->body };
    mlo_map made = { NULL, 0, 0 };
    size_t n = 0;
    MLO_TRY(mlo_given_outside(m, s, s->outer, &made) || mlo_given_outside(m, s, s->body, &made));
    for (int g = 0; g < 2; g++)
        for (size_t i = 0; i < graph[g]->n_node; i++) {
            const mlo_node *d = graph[g]->node[i];
            mlo_rounding r;
            if (!mlo_is(d, "DequantizeLinear") || !mlo_map_get(&made, d->output[0])
                || !mlo_rounding_of(m, s, graph[g], d->output[0], &r))
                continue;
            mlo_given_read(s, d->output[0], r.from);
            n++;
        }
    return n ? mlo_index(m, s->outer) : mlo_failed(m);
}

/* Does the node of this name round a value of the loop? NULL: does any? */
static int mlo_given_rounds(mlo *m, const mlo_scan *s, const char *name) {
    mlo_rounding r;
    for (size_t i = 0; i < s->body->n_node; i++) {
        const mlo_node *n = s->body->node[i];
        if (n->n_output == 1 && (!name || mlo_eq(mlo_node_name(n), name))
            && mlo_rounding_of(m, s, s->body, n->output[0], &r))
            return 1;
    }
    return 0;
}

/* What the loop gets from outside, as it was before it was rounded, and what it was added to. */
static size_t mlo_given_unrounded_outside(mlo *m, const mlo_scan *s, const char *name, int depth) {
    mlo_node *n = mlo_maker_in(s->outer, name);
    mlo_rounding r;
    size_t found = 0;
    if (!n || n == s->node || depth > 8) return 0;
    if (mlo_rounding_of(m, s, s->outer, name, &r)) {
        mlo_given_read(s, name, r.from);
        return 1 + mlo_given_unrounded_outside(m, s, r.from, depth + 1);
    }
    for (size_t k = 0; mlo_is(n, "Add") && k < n->n_input; k++)
        found += mlo_given_unrounded_outside(m, s, n->input[k], depth + 1);
    return found;
}

/* Is a value known to be nowhere below 0: a number, or one that was noted? */
static int mlo_given_is_positive(
    mlo *m, const mlo_graph *g, const mlo_map *positive, const char *name) {
    const mlo_value *v = mlo_value_of(g, name);
    double x;
    if (v && v->tensor) return mlo_lone_number(m, v, &x) && x >= 0;
    return mlo_map_get(positive, name) != NULL;
}

/* Is a node's result nowhere below 0, whatever the model's inputs are? */
static int mlo_given_makes_positive(
    mlo *m, const mlo_graph *g, const mlo_map *positive, const mlo_node *n) {
    static const char *const known[] = { "Relu", "Softmax", "Sigmoid", "Exp", "Abs", "Sqrt",
        "ReduceL2", "ReduceSumSquare", "HardSigmoid", NULL };
    static const char *const keeps[] = { "Add", "Mul", "Div", "ReduceMean", "ReduceSum",
        "ReduceMax", "Max", "Cast", "Reciprocal", "Where", "Expand", "DequantizeLinear",
        "QuantizeLinear", NULL };
    double x;
    if (mlo_is_one_of(n, known)) return 1;
    if (mlo_is(n, "Clip") || mlo_is(n, "Pow")) {
        const int said = n->n_input > 1 && mlo_lone_number(m, mlo_value_of(g, n->input[1]), &x);
        return said && x >= 0 && (mlo_is(n, "Clip") || !mlo_differs(fmod(x, 2), 0));
    }
    if (mlo_is(n, "Mul") && n->input[0] == n->input[1]) return 1;
    if (!mlo_is_one_of(n, keeps) && !mlo_has_trait(n, (mlo_trait)(MLO_RESHAPES | MLO_MOVES)))
        return 0;
    const int each = mlo_has_trait(n, MLO_ELEMENTWISE) && !mlo_has_trait(n, MLO_QUANTIZES);
    for (size_t k = mlo_is(n, "Where") ? 1 : 0; k < (each ? n->n_input : 1); k++)
        if (!mlo_given_is_positive(m, g, positive, n->input[k])) return 0;
    return 1;
}

/* Has a rounding no number below 0? */
static int mlo_given_from_zero(mlo *m, const mlo_scan *s, const mlo_rounding *r) {
    return !mlo_differs(r->lo, mlo_parameter_number(m, s, s->body, r->zero, 0));
}

/* Notes all of the loop's, in the order of its nodes. */
static int mlo_given_positives(mlo *m, const mlo_scan *s, mlo_map *positive) {
    for (size_t i = 0; i < s->body->n_node; i++) {
        const mlo_node *n = s->body->node[i];
        mlo_rounding r;
        if (!n->n_input || !n->n_output) continue;
        const int is = mlo_given_makes_positive(m, s->body, positive, n)
            || (mlo_rounding_of(m, s, s->body, n->output[0], &r) && mlo_given_from_zero(m, s, &r));
        for (size_t k = 0; is && k < n->n_output; k++)
            MLO_TRY(mlo_map_put(m, positive, n->output[k], (void *)(uintptr_t)n));
    }
    return mlo_failed(m);
}

/* Values of the loop's own are no longer rounded, nor are those that it gets beside its state: who read one rounded
 * reads it as it was. *n takes how many were. */
static int mlo_given_unrounded(mlo *m, const mlo_scan *s, size_t *n) {
    mlo_graph *g = s->body;
    mlo_map positive = { NULL, 0, 0 };
    *n = 0;
    MLO_TRY(mlo_given_positives(m, s, &positive));
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_rounding r;
        mlo_node *d = g->node[i];
        const char *name = d->n_output == 1 ? d->output[0] : "";
        for (size_t k = 0; k < d->n_input; k++)
            if (mlo_has_input(d, k)) *n += mlo_given_unrounded_outside(m, s, d->input[k], 0);
        const mlo_value *v = *name ? mlo_value_of(g, name) : NULL;
        if (!v || !mlo_rounding_of(m, s, g, name, &r)) continue;
        ++*n;
        /* what a Relu does, which quantizers leave to it: it cuts what is below 0, and there might be some */
        const int relu = mlo_given_from_zero(m, s, &r)
            && !mlo_given_is_positive(m, g, &positive, r.from);
        if (relu || v->is_output) mlo_node_passes(d, r.from);
        if (relu)
            d->op = "Relu";
        else
            mlo_given_read(s, name, r.from);
    }
    MLO_TRY(mlo_failed(m) || mlo_drop_dead(m, g));
    return mlo_index(m, s->outer);
}
