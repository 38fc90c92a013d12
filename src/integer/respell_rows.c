/* respell_rows: a stream of tokens without an axis for frames, [T, C], gets one.
 *
 * in:  a loop whose carried value is [T, C], as a model of one sequence without a batch has it.
 * out: the same function of a carried value [1, T, C]; reshapes in front of the loop, behind it, and at both ends of
 *     its body.
 *
 * invariant: what other nodes read, they still read.
 * example: torch.nn.TransformerEncoder of a sequence [T, C].
 * cost: four reshapes.
 */

static int mlo_rows_outside(mlo *m, const mlo_scan *s, const int64_t *frame) {
    mlo_expansion x = { m, s->outer, s->node, mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
    const char *made = s->node->output[0], *first = mlo_x_reshape(&x, s->node->input[0], frame, 3);
    mlo_node *before = mlo_x_last(&x);
    const char *last = mlo_x_name(&x, "frame");
    mlo_x_reshape(&x, last, frame + 1, 2);
    mlo_node *behind = mlo_x_last(&x);
    if (!before || !behind) return mlo_failed(m);
    behind->output[0] = made;
    s->node->input[0] = first;
    s->node->output[0] = last;
    return mlo_around_loop(m, s, before, behind);
}

static int mlo_rows_inside(mlo *m, const mlo_scan *s, const int64_t *frame) {
    mlo_graph *body = s->body, list = { 0 };
    mlo_expansion x = { m, body, body->node[0], mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
    const char *in = body->input[0]->name;
    mlo_form f = mlo_form_of(mlo_value_of(body, in)), open = mlo_form_of(NULL);
    f.rank = 3;
    for (int i = 0; i < 3; i++) f.dims[i] = frame[i];
    const char *rows = mlo_x_reshape(&x, in, frame + 1, 2);
    mlo_node *first = mlo_x_last(&x);
    const char *out = mlo_x_reshape(&x, body->output[0]->name, frame, 3);
    mlo_node *last = mlo_x_last(&x);
    if (!first || !last || mlo_graph_add(m, &list, first)) return mlo_failed(m);
    for (size_t i = 0; i < body->n_node; i++) {
        mlo_node *n = body->node[i];
        for (size_t k = 0; k < n->n_input; k++)
            if (mlo_eq(n->input[k], in)) n->input[k] = rows;
        MLO_TRY(mlo_graph_add(m, &list, n));
    }
    MLO_TRY(mlo_graph_add(m, &list, last));
    body->node = list.node;
    body->n_node = list.n_node;
    body->input[0] = mlo_info_new(m, in, &f);
    body->output[0] = mlo_info_new(m, out, &open);
    return mlo_failed(m);
}

static int mlo_respell_rows(mlo *m, mlo_scan *s) {
    const mlo_form f = mlo_form_of(mlo_value_of(s->body, s->body->input[0]->name));
    if (s->n_state != 1 || f.rank != 2 || !mlo_form_known(&f) || !s->body->n_node) return 0;
    const int64_t frame[] = { 1, f.dims[0], f.dims[1] };
    MLO_TRY(mlo_rows_inside(m, s, frame));
    MLO_TRY(mlo_rows_outside(m, s, frame));
    MLO_TRY(mlo_index(m, m->model->graph));
    return mlo_infer(m);
}
