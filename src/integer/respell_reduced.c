/* respell_reduced: the rules of respell.c about what is reduced over the last axis: means and softmaxes by hand.
 *
 * in:  a node of a float loop body.
 * out: what loses the axis and gets it back as one of one keeps it; a sum over so many channels, divided by their
 *     number, is a mean; e^(x - m) over the sum of that is a softmax, whatever m is that a row's numbers share.
 *
 * invariant: shapes are compared, so that a row meets its own numbers; what a softmax is made of is scores.
 * example: jnp.mean(x, -1) is ReduceSum(x, keepdims = 0), [1, T], reshaped to [1, T, 1] and divided by C.
 * cost: O(nodes between what is reduced and where its axis comes back).
 */

/* Does it reduce over its last axis alone, and loses it (kept: keeps it)? */
static int mlo_is_row_reduction(const mlo_inside *in, const mlo_node *n, int kept) {
    return n && mlo_starts(n->op, "Reduce") && n->n_output == 1 && mlo_is_carried(in, n->input[0])
        && (mlo_int(n, "keepdims", 1) != 0) == kept && mlo_reduces_last(in, n);
}

/* The same reduction, or another one, of x over its last axis, which stays as one of one. */
static const char *mlo_x_row_reduction(mlo_expansion *x, const char *op, const char *of) {
    const int64_t last = -1;
    return mlo_x_axes(x, op, of, &last, 1, mlo_eq(op, "ReduceSum") ? 13 : 18);
}

/* What is made, number by number, of reductions that lose their axis, once more with it. NULL: it is made of something
 * else. */
static const char *mlo_x_axis_kept(
    const mlo_inside *in, mlo_expansion *x, const char *name, const mlo_form *f, int depth) {
    const mlo_node *n = mlo_made_by(in, name);
    const mlo_form own = mlo_body_form(in, name);
    const char *part[2] = { "", "" };
    if (!n || !mlo_is_carried(in, name) || depth > MLO_CHAIN || !mlo_form_same(&own, f))
        return NULL;
    if (mlo_is_row_reduction(in, n, 0)) return mlo_x_row_reduction(x, n->op, n->input[0]);
    if (!mlo_is_elementwise(n) || n->n_input > 2 || n->n_attr) return NULL;
    for (size_t i = 0; i < n->n_input; i++) {
        part[i] = mlo_is_number(in, n->input[i])
            ? n->input[i]
            : mlo_x_axis_kept(in, x, n->input[i], f, depth + 1);
        if (!part[i]) return NULL;
    }
    return mlo_x_node(x, n->op, part, n->n_input);
}

/* The axis comes back. */
static void mlo_respell_axis_kept(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    if (!mlo_is(x->n, "Reshape") && !mlo_is(x->n, "Unsqueeze")) return;
    const mlo_form a = mlo_body_form(in, x->n->input[0]), b = mlo_body_form(in, x->n->output[0]);
    mlo_form one = a;
    if (!mlo_form_known(&a) || a.rank < 1 || a.rank >= MLO_MAX_RANK) return;
    one.dims[one.rank++] = 1;
    if (!mlo_form_same(&one, &b)) return;
    const char *y = mlo_x_axis_kept(in, x, x->n->input[0], &a, 0);
    if (y)
        mlo_x_out(x, 0, y);
    else
        x->n_made = 0;
}

/* A sum over channels, by their number. */
static void mlo_respell_mean(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    double by = 1;
    const char *from = mlo_unscaled(in, x->n, &by);
    const mlo_node *sum = from ? mlo_made_by(in, from) : NULL;
    if (!mlo_is_row_reduction(in, sum, 1)) return;
    const mlo_form f = mlo_body_form(in, sum->input[0]);
    const int squares = mlo_is(sum, "ReduceSumSquare");
    if ((!squares && !mlo_is(sum, "ReduceSum")) || fabs(by * (double)mlo_last_dim(&f) - 1) > 1e-6)
        return;
    const char *v = squares ? MLO_X(x, "Mul", sum->input[0], sum->input[0]) : sum->input[0];
    mlo_x_out(x, 0, mlo_x_row_reduction(x, "ReduceMean", v));
}

/* e^(x - m) over its sum. */
static void mlo_respell_softmax(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const mlo_node *e = mlo_is(x->n, "Div") ? mlo_made_by(in, x->n->input[0]) : NULL;
    const mlo_node *sum = mlo_is(e, "Exp") ? mlo_made_by(in, x->n->input[1]) : NULL;
    if (!mlo_is(sum, "ReduceSum") || !mlo_is_row_reduction(in, sum, 1)
        || sum->input[0] != x->n->input[0])
        return;
    const mlo_node *less = mlo_made_by(in, e->input[0]);
    const mlo_form m = mlo_body_form(in, mlo_is(less, "Sub") ? less->input[1] : "");
    const char *scores = mlo_is(less, "Sub") && m.rank > 0 && mlo_last_dim(&m) == 1 ? less->input[0]
                                                                                    : e->input[0];
    if (!mlo_is_scores(in, scores)) return;
    const char *y = MLO_X(x, "Softmax", scores);
    mlo_x_int(x, "axis", -1);
    mlo_x_out(x, 0, y);
}
