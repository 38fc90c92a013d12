/* blank: padding that every layer sets to 0 at its end (XLM, FlauBERT): done once, behind the loop.
 *
 * in:  a layer whose result is multiplied by a number for each token, 0 where the mask says padding.
 * out: the layer without that product; the product of the last layer's result, behind the loop.
 *
 * Attention hides the keys that are padding, and all else in a layer is token by token, so what padding's
 * own rows hold reaches no other token; behind the loop they are 0 as before.
 *
 * invariant: a number is 1 wherever the key counts: it and what hides the key are decided by one element of
 *     an input's mask (symbol.c), which is proved once masks are settled (attention.c).
 * example: y = norm(x) Cast(attention_mask)[:, :, None] is y = norm(x), and the model's result is multiplied.
 * cost: O(nodes of the body); two evaluations for each symbol of the masks.
 */

/* The operand of the product that is a number for each token, made in front of the loop when the model runs. -1:
 * there is none. */
static int mlo_blank_operand(const mlo_scan *s, const mlo_node *n) {
    for (int k = 0; k < 2 && mlo_is(n, "Mul"); k++) {
        const mlo_value *v = mlo_value_of(s->body, n->input[k]);
        const mlo_form f = mlo_form_of(v), y = mlo_form_of(mlo_value_of(s->body, n->output[0]));
        if (v->graph != s->body && f.rank == y.rank && mlo_last_dim(&f) == 1
            && mlo_form_count(&f) == mlo_tokens_of(&y) && mlo_form_count(&f) > 1
            && !mlo_is_parameter(s, s->outer, n->input[k], 0))
            return k;
    }
    return -1;
}

/* What the loop gives is multiplied by these behind it. */
static int mlo_blank_behind(mlo *m, mlo_scan *s, const char *blank) {
    const char *y = s->node->output[0], *whole = mlo_format(m, "%s_whole", y);
    mlo_node *n = whole ? mlo_node_new(m, "Mul", y) : NULL;
    mlo_graph all = { 0 };
    if (!n || mlo_node_input(m, n, whole) || mlo_node_input(m, n, blank)
        || mlo_node_output(m, n, y))
        return mlo_failed(m);
    s->node->output[0] = whole;
    for (size_t i = 0; i < s->outer->n_node; i++) {
        MLO_TRY(mlo_graph_add(m, &all, s->outer->node[i]));
        if (s->outer->node[i] == s->node) MLO_TRY(mlo_graph_add(m, &all, n));
    }
    s->outer->node = all.node;
    s->outer->n_node = all.n_node;
    MLO_TRY(mlo_index(m, m->model->graph));
    return mlo_infer(m);
}

/* The product at a layer's end goes behind the loop. *blank: its numbers, NULL: there is none. */
static int mlo_unblank(mlo *m, mlo_scan *s, const char **blank) {
    mlo_node *n = s->n_state == 1 && !s->n_tap ? mlo_maker_in(s->body, s->body->output[0]->name)
                                               : NULL;
    while (mlo_is(n, "Identity")) n = mlo_maker_in(s->body, n->input[0]);
    const int k = n ? mlo_blank_operand(s, n) : -1;
    *blank = NULL;
    if (k < 0) return 0;
    const char *x = n->input[1 - k];
    *blank = n->input[k];
    n->op = "Identity";
    n->n_input = 0;
    return mlo_node_input(m, n, x) || mlo_blank_behind(m, s, *blank);
}

/* Is each token's number 1, or one that what hides its key knows: 0 where it is hidden? own: the keys' symbols.
 * The first token that is otherwise, or -1. */
static int64_t mlo_blank_wrong(mlo_tracer *t, const char *blank, const int64_t *own, int64_t keys) {
    const mlo_array *a = mlo_trace(t, blank);
    if (!a || mlo_array_count(a) != keys) return 0;
    for (int64_t j = 0; j < keys; j++) {
        const int64_t id = ((const int64_t *)a->data)[j];
        const mlo_symbol *s = &t->symbol[id], *k = own[j] < 0 ? NULL : &t->symbol[own[j]];
        if (mlo_symbol_is(t, id, 1)) continue;
        const int known = k && s->bit && s->bit == k->bit;
        for (int i = 0; i < 2; i++)
            if (!known || (mlo_differs(s->is[i], 1) && k->is[i] > -10000)) return j;
    }
    return -1;
}
