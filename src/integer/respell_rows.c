/* respell_rows: streams of tokens without an axis for frames, [T, C], and several sequences, [B, T, C], are one frame.
 *
 * in:  a loop whose carried value is [T, C], as a model of one sequence without a batch has it; or [B, T, C], where
 *     the model itself made B sequences of something that is no batch (of a series' channels, say).
 * out: the same function of a carried value [1, T, C], or [1, B T, C]; reshapes in front of the loop, behind it, and at
 *     both ends of its body. Sequences are then windows, which respell_moved.c knows.
 *
 * invariant: what other nodes read, they still read. A batch that an input of the model has stays one: it is refused
 *     later, since frames that come one after the other are less work.
 * example: torch.nn.TransformerEncoder of a sequence [T, C]; PatchTST of three channels.
 * cost: four reshapes.
 */
typedef struct {
    int64_t as_it_is[MLO_MAX_RANK]; /* the carried value's shape */
    int rank;
    int64_t frame[3]; /* what it becomes */
} mlo_rows;

static int mlo_rows_outside(mlo *m, const mlo_scan *s, const mlo_rows *r) {
    mlo_expansion x = { m, s->outer, s->node, mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
    const char *made = s->node->output[0],
               *first = mlo_x_reshape(&x, s->node->input[0], r->frame, 3);
    mlo_node *before = mlo_x_last(&x);
    const char *last = mlo_x_name(&x, "frame");
    mlo_x_reshape(&x, last, r->as_it_is, (size_t)r->rank);
    mlo_node *behind = mlo_x_last(&x);
    if (!before || !behind) return mlo_failed(m);
    behind->output[0] = made;
    s->node->input[0] = first;
    s->node->output[0] = last;
    return mlo_around_loop(m, s, before, behind);
}

static int mlo_rows_inside(mlo *m, const mlo_scan *s, const mlo_rows *r) {
    mlo_graph *body = s->body, list = { 0 };
    mlo_expansion x = { m, body, body->node[0], mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
    const char *in = body->input[0]->name;
    mlo_form f = mlo_form_of(mlo_value_of(body, in)), open = mlo_form_of(NULL);
    f.rank = 3;
    for (int i = 0; i < 3; i++) f.dims[i] = r->frame[i];
    const char *rows = mlo_x_reshape(&x, in, r->as_it_is, (size_t)r->rank);
    mlo_node *first = mlo_x_last(&x);
    const char *out = mlo_x_reshape(&x, body->output[0]->name, r->frame, 3);
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

/* Has an input of the model this batch, on one of the first two axes of [B, T, C] or [T, B, C]? Then so many frames are
 * asked for at once, and later stages say so. */
static int mlo_is_given_batch(const mlo_graph *g, const mlo_form *f) {
    for (size_t i = 0; i < g->n_input; i++) {
        const mlo_form x = mlo_form_of(mlo_value_of(g, g->input[i]->name));
        const int64_t batch = x.rank > 0 ? x.dims[0] : 1;
        if (batch > 1 && (batch == f->dims[0] || batch == f->dims[1])) return 1;
    }
    return 0;
}

/* Are there several sequences, a batch that the model made of something else? */
static int mlo_is_made_batch(const mlo *m, const mlo_form *f) {
    return f->rank == 3 && f->dims[0] > 1 && f->dims[1] > 1
        && !mlo_is_given_batch(m->model->graph, f);
}

static int mlo_respell_rows(mlo *m, mlo_scan *s) {
    const mlo_form f = mlo_form_of(mlo_value_of(s->body, s->body->input[0]->name));
    mlo_rows r = { { 0 }, f.rank, { 1, 1, 0 } };
    if (s->n_state != 1 || !mlo_form_known(&f) || !s->body->n_node) return 0;
    if (f.rank != 2 && !mlo_is_made_batch(m, &f)) return 0;
    for (int i = 0; i < f.rank; i++) {
        r.as_it_is[i] = f.dims[i];
        if (i + 1 < f.rank) r.frame[1] *= f.dims[i];
    }
    r.frame[2] = f.dims[f.rank - 1];
    MLO_TRY(mlo_rows_inside(m, s, &r));
    MLO_TRY(mlo_rows_outside(m, s, &r));
    MLO_TRY(mlo_index(m, m->model->graph));
    return mlo_infer(m);
}
