/* respell_frame: norms over all tokens of a frame, in one spelling.
 *
 * in:  a float loop body: GroupNormalization of one group, or the same as exporters write it out, an
 *     InstanceNormalization of [1, 1, N] between two reshapes, with a factor and a summand for each channel
 *     behind it.
 * out: LayerNormalization over channels, rows and columns, axis 1 of [1, C, H, W], whose scale and bias are
 *     [C, 1, 1]; respell_grid.c turns it.
 *
 * invariant: of more groups, or frames, it is another function, and is left alone.
 * example: PoolFormer's norms.
 * cost: O(nodes of one body).
 */

/* A parameter of one number for each channel, [C, 1, ..] of values [1, C, ..] of so many dimensions, or [C]. */
static int mlo_is_leading(const mlo_inside *in, const char *name, const mlo_form *x) {
    const mlo_form f = mlo_body_form(in, name);
    return mlo_form_known(&f) && !mlo_is_carried(in, name) && mlo_form_count(&f) == x->dims[1]
        && (f.rank == x->rank - 1 ? f.dims[0] == x->dims[1]
                                  : f.rank == x->rank && f.dims[1] == x->dims[1]);
}

/* Values [1, C, H, W], or [1, C, T]. */
static int mlo_is_frame(const mlo_form *x) {
    return mlo_form_known(x) && (x->rank == 3 || x->rank == 4) && x->dims[0] == 1;
}

/* What a written out norm of a whole frame ends in, without scale and bias, is a norm of; NULL: it is none. */
static const char *mlo_frame_normed(const mlo_inside *in, const char *name, const mlo_node **norm) {
    const mlo_node *back = mlo_made_by(in, name);
    const mlo_node *n = mlo_is(back, "Reshape") ? mlo_made_by(in, back->input[0]) : NULL;
    const mlo_node *to = mlo_is(n, "InstanceNormalization") ? mlo_made_by(in, n->input[0]) : NULL;
    double scale = 0, bias = 1;
    if (!mlo_is(to, "Reshape") || !mlo_is_carried(in, to->input[0])) return NULL;
    const mlo_form x = mlo_body_form(in, to->input[0]), y = mlo_body_form(in, name);
    const mlo_form z = mlo_body_form(in, n->input[0]);
    if (!mlo_is_frame(&x) || !mlo_form_same(&x, &y) || z.rank < 3 || z.dims[0] != 1
        || z.dims[1] != 1)
        return NULL;
    if (!mlo_scalar(in, n->input[1], &scale) || !mlo_scalar(in, n->input[2], &bias)) return NULL;
    if (mlo_differs(scale, 1) || mlo_differs(bias, 0)) return NULL;
    *norm = n;
    return to->input[0];
}

/* gamma n + beta, n written out. */
static void mlo_respell_frame_norm(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *product, *normed, *gamma, *beta;
    const mlo_node *norm = NULL;
    if (!mlo_is_half(in, x->n, "Add", &product, &beta) || !mlo_is_used_once(in, product)) return;
    if (!mlo_is_half(in, mlo_made_by(in, product), "Mul", &normed, &gamma)) return;
    const char *from = mlo_is_used_once(in, normed) ? mlo_frame_normed(in, normed, &norm) : NULL;
    const mlo_form f = mlo_body_form(in, normed);
    if (!from || !mlo_is_leading(in, gamma, &f) || !mlo_is_leading(in, beta, &f)) return;
    const char *y = MLO_X(x, "LayerNormalization", from, gamma, beta);
    mlo_x_int(x, "axis", 1);
    mlo_x_float(x, "epsilon", mlo_float(norm, "epsilon", 1e-5f));
    mlo_x_out(x, 0, y);
}

/* GroupNormalization of one group, with a scale and a bias for each channel (opset 21). */
static void mlo_respell_group_norm(mlo_respeller *r, mlo_expansion *x) {
    const mlo_node *n = x->n;
    int64_t lead[MLO_MAX_RANK] = { 0 };
    const char *part[2];
    if (!mlo_is(n, "GroupNormalization") || mlo_int(n, "num_groups", 0) != 1 || n->n_input < 3)
        return;
    const mlo_form f = mlo_body_form(&r->in, n->input[0]);
    if (!mlo_is_frame(&f) || !mlo_is_carried(&r->in, n->input[0])) return;
    for (size_t k = 0; k < 2; k++)
        if (!mlo_is_per_channel(&r->in, n->input[k + 1], f.dims[1])) return;
    for (int k = 0; k < f.rank - 1; k++) lead[k] = k ? 1 : f.dims[1];
    for (size_t k = 0; k < 2; k++)
        part[k] = mlo_x_reshape(x, n->input[k + 1], lead, (size_t)f.rank - 1);
    const char *y = MLO_X(x, "LayerNormalization", n->input[0], part[0], part[1]);
    mlo_x_int(x, "axis", 1);
    mlo_x_float(x, "epsilon", mlo_float(n, "epsilon", 1e-5f));
    mlo_x_out(x, 0, y);
}

static const mlo_respelling mlo_frame_rules[] = { mlo_respell_frame_norm, mlo_respell_group_norm };
enum { MLO_N_FRAME_RULES = sizeof mlo_frame_rules / sizeof *mlo_frame_rules };
