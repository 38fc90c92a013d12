/* respell_batch: batch norms of inference, in one spelling.
 *
 * in:  a float loop body: BatchNormalization of [N, C], of [1, C, T] or of [1, C, H, W].
 * out: a factor and an offset for each channel, x * (scale / sqrt(variance + epsilon)) + (bias - mean * factor),
 *     expressions over the model's own parameters: affine.c, or what they stand behind, has them. Between a
 *     transpose that brings the channels to axis 1 and one that takes them back both are of the tokens themselves.
 *
 * invariant: statistics are parameters; what takes them from its own batch, or is told them when the model runs, is
 *     refused.
 * example: PatchTST's norms, Transpose(BatchNormalization(Transpose(x))), become x * w + b.
 * cost: O(nodes of one body).
 */

/* Are the statistics, the scale and the bias known when the model is compiled? */
static int mlo_refuse_batch(mlo *m, const mlo_inside *in, const mlo_node *n) {
    if (mlo_int(n, "training_mode", 0))
        return mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "a batch norm that takes its statistics from its own batch (training_mode = 1); export "
            "the model for "
            "inference (model.eval())");
    for (size_t k = 1; k < 5; k++)
        if (!mlo_is_parameter(in->scan, in->body, n->input[k], 0))
            return mlo_fail(m, MLO_E_UNSUPPORTED, n,
                "a batch norm whose input %zu, '%s', is known only when the model runs; hardware "
                "has norms over the "
                "channels of each token, and batch norms whose statistics, scale and bias are "
                "constants",
                k, n->input[k]);
    return 0;
}

/* What has its channels last, where a transpose brings them to axis 1 for this value; NULL: none does. */
static const char *mlo_channels_last(const mlo_inside *in, const char *name) {
    const mlo_node *n = mlo_made_by(in, name);
    const mlo_attr *perm = mlo_is(n, "Transpose") ? mlo_attr_of(n, "perm") : NULL;
    const int rank = mlo_body_form(in, name).rank;
    if (!perm || rank < 3 || perm->n_ints != (size_t)rank) return NULL;
    for (int i = 0; i < rank; i++)
        if (perm->ints[i] != (i == 1 ? rank - 1 : i ? i - 1 : 0)) return NULL;
    return n->input[0];
}

/* The factor [C] of a batch norm; *offset: what is added. */
static const char *mlo_x_batch(mlo_expansion *x, const char **offset) {
    const mlo_node *n = x->n;
    const char *epsilon = mlo_x_number(x, (double)mlo_float(n, "epsilon", 1e-5f));
    const char *root = MLO_X(x, "Sqrt", MLO_X(x, "Add", n->input[4], epsilon));
    const char *factor = MLO_X(x, "Div", n->input[1], root);
    *offset = MLO_X(x, "Sub", n->input[2], MLO_X(x, "Mul", n->input[3], factor));
    return factor;
}

static void mlo_respell_batch_norm(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const mlo_node *n = x->n;
    if (!mlo_is(n, "BatchNormalization") || !mlo_is_carried(in, n->input[0])) return;
    const mlo_form f = mlo_body_form(in, n->input[0]);
    if (f.rank < 2 || mlo_refuse_batch(x->m, in, n)) return;
    const char *offset, *factor = mlo_x_batch(x, &offset);
    const char *last = f.rank == 2 ? n->input[0] : mlo_channels_last(in, n->input[0]);
    int64_t shape[MLO_MAX_RANK];
    for (int k = 0; k < f.rank; k++) shape[k] = k ? 1 : f.dims[1];
    if (!last) {
        factor = mlo_x_reshape(x, factor, shape, (size_t)f.rank - 1);
        offset = mlo_x_reshape(x, offset, shape, (size_t)f.rank - 1);
    }
    const char *y = MLO_X(x, "Add", MLO_X(x, "Mul", last ? last : n->input[0], factor), offset);
    if (last && f.rank > 2) {
        const mlo_attr *perm = mlo_attr_of(mlo_made_by(in, n->input[0]), "perm");
        y = mlo_x_transpose(x, y, perm->ints, perm->n_ints);
    }
    mlo_x_out(x, 0, y);
}

static const mlo_respelling mlo_batch_rules[] = { mlo_respell_batch_norm, mlo_respell_round };
enum { MLO_N_BATCH_RULES = sizeof mlo_batch_rules / sizeof *mlo_batch_rules };
