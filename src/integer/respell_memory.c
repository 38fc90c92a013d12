/* respell_memory: keys that read an encoder's output with positions, values that read it without (DETR's decoder).
 *
 * in:  a float loop body whose projections read the memory, and the memory with parameters added in front of the loop.
 * out: projections that read the memory alone; what the positions are projected to is added behind them, a row of
 *     parameters for each token (place.c).
 *
 * invariant: (m + p) W + b = m W + (p W + b). p W + b is a parameter, each layer's own, computed in floats.
 * example: MatMul(Add(memory, positions), Wk) + bk becomes MatMul(memory, Wk) + (MatMul(positions, Wk) + bk).
 * cost: O(nodes of the body).
 */

/* The nodes of a body, each replaced by those made of it, x's at the same place. */
static int mlo_respelled(mlo *m, mlo_graph *g, const mlo_expansion *x) {
    mlo_node **list = NULL;
    size_t n = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        if (!x[i].n_made && !MLO_PUSH(m, list, n, g->node[i])) return mlo_failed(m);
        for (size_t k = 0; k < x[i].n_made; k++)
            if (!MLO_PUSH(m, list, n, x[i].made[k])) return mlo_failed(m);
    }
    if (m->error.code) return mlo_failed(m);
    g->node = list;
    g->n_node = n;
    return 0;
}

/* x W, where x is a value from around the loop with parameters added to it: those. */
typedef struct {
    const char *memory;
    const char *places;
    const char *weight;
} mlo_placed_read;

/* Is the node such a product? */
static int mlo_reads_placed(const mlo_scan *s, const mlo_node *n, mlo_placed_read *p) {
    const mlo_value *v = mlo_is(n, "MatMul") ? mlo_value_of(s->body, n->input[0]) : NULL;
    if (!v || v->graph == s->body || !mlo_is(v->producer, "Add")
        || mlo_is_parameter(s, v->graph, v->name, 0)
        || !mlo_is_parameter(s, s->body, n->input[1], 0))
        return 0;
    const int k = mlo_is_parameter(
        s, v->graph, v->producer->input[0], 0); /* the memory's operand */
    p->memory = v->producer->input[k];
    p->places = v->producer->input[1 - k];
    p->weight = n->input[1];
    const mlo_form y = mlo_form_of(v), f = mlo_form_of(mlo_value_of(v->graph, p->memory));
    return mlo_is_parameter(s, v->graph, p->places, 0) && mlo_form_known(&y) && mlo_form_known(&f)
        && mlo_form_count(&y) == mlo_form_count(&f);
}

/* Puts the projected positions behind a product, or into the bias behind it. */
static void mlo_respell_places(const mlo_scan *s, mlo_expansion *x) {
    mlo_placed_read p;
    const char *bias = NULL;
    const mlo_node *n = x->n;
    for (int k = 0; k < 2 && !bias && mlo_is(n, "Add"); k++) {
        const mlo_node *from = mlo_maker_in(s->body, n->input[k]);
        if (from && mlo_reads_placed(s, from, &p)
            && mlo_is_parameter(s, s->body, n->input[1 - k], 0))
            bias = n->input[1 - k];
    }
    if (!bias && !mlo_reads_placed(s, n, &p)) return;
    const char *product = MLO_X(x, "MatMul", p.memory, p.weight);
    const char *rows = MLO_X(x, "MatMul", p.places, p.weight);
    if (bias) rows = MLO_X(x, "Add", rows, bias);
    mlo_x_out(x, 0, MLO_X(x, "Add", product, rows));
}

static int mlo_respell_memory(mlo *m, mlo_scan *s) {
    mlo_graph *g = s->body;
    size_t changed = 0;
    mlo_expansion *x = MLO_NEW_N(m, mlo_expansion, mlo_room(g->n_node));
    if (!x) return mlo_failed(m);
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_expansion fresh = { m, g, g->node[i], mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL,
            0 };
        x[i] = fresh;
        mlo_respell_places(s, &x[i]);
        changed += x[i].n_made > 0;
    }
    if (!changed) return mlo_failed(m);
    return mlo_respelled(m, g, x) || mlo_drop_dead(m, g) || mlo_index(m, m->model->graph)
        || mlo_infer(m);
}
