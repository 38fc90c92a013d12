/* respell: rewrites what exporters spell in many ways into one spelling, inside a loop body.
 *
 * in:  a float loop body.
 * out: the same function in the spelling that recognise.c reads; dead nodes are gone, the index and
 *     the shapes are fresh.
 *
 * The rules are in respell_linear.c, respell_rotary.c, respell_norm.c and respell_moved.c, those about masks here;
 * all of them are in the table at the end; respell_rows.c, respell_memory.c, respell_batch.c, respell_frame.c and
 * respell_grid.c go first. To add a spelling, add a rule there and a case in tests/test_spellings.py.
 *
 * invariant: a rule applies only where both spellings are provably the same function: views are
 *     followed element by element (layout.c), constants are compared by value. What matches no rule
 *     stays as it is, and recognise.c says what it is.
 * example: a projection to [T, 3 C] that Split, Slice, Gather or a reshape to [T, 3, H, D] cuts
 *     into queries, keys and values becomes three projections, whose weights are columns of the
 *     one (an expression over it; stage lower joins them to one matrix unit again).
 * cost: O(nodes of one body), and the element maps of attention's operands.
 */
/* ---- masks ---------------------------------------------------------------- */

/* Is a constant nowhere below `low` nor above `high`, in all iterations? */
static int mlo_is_within(const mlo_inside *in, const char *name, double low, double high) {
    int ok = mlo_is_parameter(in->scan, in->body, name, 0);
    for (int64_t i = 0; ok && i < in->scan->iterations; i++) {
        mlo_array *a = mlo_scan_value(in->m, in->scan, name, i);
        ok = a != NULL;
        for (int64_t k = 0; ok && k < mlo_array_count(a); k++)
            ok = mlo_number_at(a, k) >= low && mlo_number_at(a, k) <= high;
        mlo_array_free(in->m, a);
    }
    return ok;
}

/* Where(keeps, scores, -inf), or the other way round, is scores + Where(keeps, 0, -inf). */
static void mlo_respell_where(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    if (!mlo_is(x->n, "Where") || mlo_is_carried(in, x->n->input[0])) return;
    int kept = mlo_is_carried(in, x->n->input[1]) ? 1 : 2;
    if (!mlo_is_scores(in, x->n->input[kept]) || mlo_is_carried(in, x->n->input[3 - kept])
        || !mlo_is_within(in, x->n->input[3 - kept], -INFINITY, -10000))
        return;
    const char *zero = mlo_x_number(x, 0), *other = x->n->input[3 - kept];
    const char *mask = MLO_X(
        x, "Where", x->n->input[0], kept == 1 ? zero : other, kept == 1 ? other : zero);
    mlo_x_out(x, 0, MLO_X(x, "Add", x->n->input[kept], mask));
}

/* Is a factor of scores 0 or 1 everywhere, and hidden by the mask where it is 0, in all iterations? */
static int mlo_blanks_hidden(const mlo_inside *in, const char *factor, const char *mask) {
    const mlo_form a = mlo_body_form(in, factor), b = mlo_body_form(in, mask);
    int ok = mlo_form_known(&a) && mlo_form_known(&b) && a.rank == b.rank
        && mlo_is_parameter(in->scan, in->body, factor, 0)
        && mlo_is_parameter(in->scan, in->body, mask, 0);
    for (int k = 0; ok && k < a.rank; k++) ok = a.dims[k] == b.dims[k];
    for (int64_t i = 0; ok && i < in->scan->iterations; i++) {
        mlo_array *f = mlo_scan_value(in->m, in->scan, factor, i);
        mlo_array *g = f ? mlo_scan_value(in->m, in->scan, mask, i) : NULL;
        ok = g != NULL;
        for (int64_t k = 0; ok && k < mlo_array_count(f); k++) {
            const double by = mlo_number_at(f, k);
            const int one = by >= 1 && by <= 1, zero = by >= 0 && by <= 0;
            ok = one || (zero && mlo_number_at(g, k) <= -10000);
        }
        mlo_array_free(in->m, f);
        mlo_array_free(in->m, g);
    }
    return ok;
}

/* scores b + mask, b of zeros and ones, is scores + mask, where the mask hides what b takes away (GPT-1). */
static void mlo_respell_blanks(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *product, *mask, *scores, *factor;
    if (!mlo_is_half(in, x->n, "Add", &product, &mask) || !mlo_is_used_once(in, product)) return;
    if (!mlo_is_half(in, mlo_made_by(in, product), "Mul", &scores, &factor)) return;
    if (!mlo_is_scores(in, scores) || !mlo_blanks_hidden(in, factor, mask)) return;
    mlo_x_out(x, 0, MLO_X(x, "Add", scores, mask));
}

/* max(scores + mask, lowest) is scores + mask: what is hidden stays so. */
static void mlo_respell_lowest(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *scores, *other;
    double lowest;
    if (!mlo_is_half(in, x->n, "Max", &scores, &other) || !mlo_is_scores(in, scores)) return;
    if (!mlo_scalar(in, other, &lowest) || lowest > -10000) return;
    mlo_x_out(x, 0, MLO_X(x, "Identity", scores));
}

/* Is a factor of probabilities 0 or 1 everywhere: a condition that was cast, or such numbers? Returns the condition;
 * NULL: it is none. */
static const char *mlo_x_kept(const mlo_inside *in, mlo_expansion *x, const char *factor) {
    const mlo_value *v = mlo_value_of(in->body, factor);
    const mlo_node *cast = v ? v->producer : NULL; /* in the body, or outside */
    if (mlo_is(cast, "Cast") && mlo_has_input(cast, 0)
        && mlo_form_of(mlo_value_of(v->graph, cast->input[0])).dtype == MLO_BOOL)
        return cast->input[0];
    int ok = mlo_is_parameter(in->scan, in->body, factor, 0);
    for (int64_t i = 0; ok && i < in->scan->iterations; i++) {
        mlo_array *f = mlo_scan_value(in->m, in->scan, factor, i);
        ok = f != NULL;
        for (int64_t k = 0; ok && k < mlo_array_count(f); k++) {
            const double by = mlo_number_at(f, k);
            ok = !mlo_differs(by, 0) || !mlo_differs(by, 1);
        }
        mlo_array_free(in->m, f);
    }
    return ok ? mlo_x_cast(x, factor, MLO_BOOL) : NULL;
}

/* What a guard against a sum of nothing lets through: Where(sum > 0, v, number); else v itself. */
static const char *mlo_summed_guard(const mlo_inside *in, const char *v, const char **sum) {
    double zero, other;
    const mlo_node *n = mlo_made_by(in, v),
                   *above = mlo_is(n, "Where") ? mlo_made_by(in, n->input[0]) : NULL;
    if (!mlo_is(above, "Greater") || !mlo_scalar(in, above->input[1], &zero) || mlo_differs(zero, 0)
        || !mlo_scalar(in, n->input[2], &other) || (*sum && *sum != above->input[0]))
        return v;
    *sum = above->input[0];
    return n->input[1];
}

/* p b / sum(p b), p = softmax(scores), b of zeros and ones, is softmax(scores + Where(b, 0, -inf)): jax2onnx's
 * attention. A row of no key is 0 there, and padding anyway. */
static void mlo_respell_normalized(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *sum = NULL, *probabilities, *factor;
    const mlo_node *n = mlo_made_by(in, mlo_summed_guard(in, x->n->output[0], &sum));
    if (!mlo_is(n, "Div") || !mlo_is_carried(in, n->input[1])) return;
    const char *below = mlo_summed_guard(in, n->input[1], &sum);
    const mlo_node *add = mlo_made_by(in, below), *product = mlo_made_by(in, n->input[0]);
    if ((sum && below != sum) || !mlo_is(add, "ReduceSum") || add->input[0] != n->input[0]) return;
    if (!mlo_reduces_last(in, add) || !mlo_int(add, "keepdims", 1)) return;
    if (!mlo_is_half(in, product, "Mul", &probabilities, &factor)) return;
    const mlo_node *softmax = mlo_made_by(in, probabilities);
    if (!mlo_is(softmax, "Softmax") || !mlo_is_scores(in, softmax->input[0])) return;
    const char *kept = mlo_x_kept(in, x, factor);
    if (!kept) return;
    const char *mask = MLO_X(x, "Where", kept, mlo_x_number(x, 0), mlo_x_number(x, -1e9));
    const char *hidden = MLO_X(x, "Add", softmax->input[0], mask);
    mlo_x_out(x, 0, mlo_x_again(x, softmax, hidden));
}

/* Where(c, softmax(Where(c, scores, -inf)), 0) is that softmax: what is hidden is 0 in it (Keras). */
static void mlo_respell_hidden_twice(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    double zero, fill;
    if (!mlo_is(x->n, "Where") || !mlo_scalar(in, x->n->input[2], &zero) || mlo_differs(zero, 0))
        return;
    const mlo_node *softmax = mlo_made_by(in, x->n->input[1]);
    const mlo_node *mask = mlo_is(softmax, "Softmax") ? mlo_made_by(in, softmax->input[0]) : NULL;
    if (!mlo_is(mask, "Where") || mask->input[0] != x->n->input[0]
        || !mlo_is_scores(in, mask->input[1]) || !mlo_scalar(in, mask->input[2], &fill)
        || fill > -10000)
        return;
    mlo_x_out(x, 0, MLO_X(x, "Identity", softmax->output[0]));
}

/* softmax(scores + mask) b + 0, b 0 where the mask hides and 1 elsewhere, is that softmax: the same of constants. */
static void mlo_respell_blank_twice(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *p, *other, *scores, *mask;
    const int sum = mlo_is_half(in, x->n, "Add", &p, &other);
    if (!sum && !mlo_is_half(in, x->n, "Mul", &p, &other)) return;
    const mlo_node *made = mlo_made_by(in, p);
    if (sum && mlo_is_half(in, made, "Mul", &scores, &mask)) made = mlo_made_by(in, scores);
    if (!mlo_is(made, "Softmax") || (sum && !mlo_is_within(in, other, 0, 0))) return;
    if (!sum
        && (!mlo_is_half(in, mlo_made_by(in, made->input[0]), "Add", &scores, &mask)
            || !mlo_blanks_hidden(in, other, mask)))
        return;
    mlo_x_out(x, 0, MLO_X(x, "Identity", p));
}

/* scores - mask is scores + (-mask). */
static void mlo_respell_minus(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    if (!mlo_is(x->n, "Sub") || mlo_is_carried(in, x->n->input[1])
        || mlo_is_number(in, x->n->input[1]))
        return;
    if (!mlo_is_scores(in, x->n->input[0])) return;
    const char *mask = MLO_X(x, "Neg", x->n->input[1]);
    mlo_x_out(x, 0, MLO_X(x, "Add", x->n->input[0], mask));
}

/* (scores + mask) + mask is scores + (mask + mask). */
static void mlo_respell_masks(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *sum, *outer, *scores, *inner;
    if (!mlo_is_half(in, x->n, "Add", &sum, &outer)) return;
    if (!mlo_is_half(in, mlo_made_by(in, sum), "Add", &scores, &inner)) return;
    if (!mlo_is_used_once(in, sum) || !mlo_is_scores(in, scores)) return;
    const char *mask = MLO_X(x, "Add", inner, outer);
    mlo_x_out(x, 0, MLO_X(x, "Add", scores, mask));
}

/* What is between two masks, a reshape that keeps rows or a factor: of its operand `carried`. NULL: it is
 * neither. *scale: the factor. */
static const char *mlo_between_masks(const mlo_inside *in, const mlo_node *n, double *scale) {
    const char *from = n ? mlo_unscaled(in, n, scale) : NULL;
    if (from || !mlo_is(n, "Reshape")) return from;
    const mlo_form a = mlo_body_form(in, n->input[0]), b = mlo_body_form(in, n->output[0]);
    if (!mlo_form_known(&a) || !mlo_form_known(&b) || a.rank < 2 || b.rank < 2) return NULL;
    for (int i = 1; i <= 2; i++)
        if (a.dims[a.rank - i] != b.dims[b.rank - i]) return NULL;
    return n->input[0];
}

/* f(scores + mask) + mask, f a reshape or a factor, is f(scores) + (f(mask) + mask). */
static void mlo_respell_masks_apart(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *sum, *outer, *scores, *inner;
    double scale = 1;
    if (!mlo_is_half(in, x->n, "Add", &sum, &outer) || !mlo_is_used_once(in, sum)) return;
    const mlo_node *f = mlo_made_by(in, sum);
    const char *from = mlo_between_masks(in, f, &scale);
    if (!from || !mlo_is_half(in, mlo_made_by(in, from), "Add", &scores, &inner)) return;
    if (!mlo_is_used_once(in, from) || !mlo_is_scores(in, scores)) return;
    if (mlo_is(f, "Reshape")) {
        const mlo_form a = mlo_body_form(in, from), b = mlo_body_form(in, sum);
        scores = mlo_x_reshape(x, scores, b.dims, (size_t)b.rank);
        const char *to = mlo_x_list(x, a.dims, (size_t)a.rank);
        inner = mlo_x_reshape(x, MLO_X(x, "Expand", inner, to), b.dims, (size_t)b.rank);
    } else {
        scores = MLO_X(x, "Mul", scores, mlo_x_number(x, scale));
        inner = MLO_X(x, "Mul", inner, mlo_x_number(x, scale));
    }
    mlo_x_out(x, 0, MLO_X(x, "Add", scores, MLO_X(x, "Add", inner, outer)));
}

/* ---- views ---------------------------------------------------------------- */

/* An axis of one behind the last that comes and goes again never was (tf2onnx's einsum puts one behind the keys of
 * scores). */
static void mlo_respell_view(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const mlo_node *view = x->n;
    const mlo_node *inner = mlo_has_trait(view, MLO_RESHAPES) ? mlo_made_by(in, view->input[0])
                                                              : NULL;
    if (!inner || !mlo_has_trait(inner, MLO_RESHAPES) || !mlo_is_carried(in, inner->input[0]))
        return;
    const mlo_form a = mlo_body_form(in, inner->input[0]), b = mlo_body_form(in, inner->output[0]);
    const mlo_form c = mlo_body_form(in, view->output[0]);
    if (mlo_last_dim(&b) != 1 || mlo_last_dim(&a) != mlo_last_dim(&c) || mlo_last_dim(&a) == 1)
        return;
    if (mlo_form_known(&c))
        mlo_x_out(x, 0, mlo_x_reshape(x, inner->input[0], c.dims, (size_t)c.rank));
}

/* ---- parameters that are spread ------------------------------------------- */

/* Are all rows of a constant the same, in all iterations? */
static int mlo_is_one_row(const mlo_inside *in, const char *name, int64_t n) {
    int ok = mlo_is_parameter(in->scan, in->body, name, 0);
    for (int64_t i = 0; ok && i < in->scan->iterations; i++) {
        mlo_array *a = mlo_scan_value(in->m, in->scan, name, i);
        ok = a && a->dtype == MLO_FLOAT;
        for (int64_t k = n; ok && k < mlo_array_count(a); k++)
            ok = !mlo_differs(mlo_number_at(a, k), mlo_number_at(a, k % n));
        mlo_array_free(in->m, a);
    }
    return ok;
}

/* A bias or a gain that was spread over the tokens is one row of it (Haiku). */
static void mlo_respell_spread_row(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const char *part[2];
    int at = 0;
    if (!mlo_is(x->n, "Add") && !mlo_is(x->n, "Mul")) return;
    const mlo_form y = mlo_body_form(in, x->n->output[0]);
    while (at < 2 && mlo_is_carried(in, x->n->input[at])) at++;
    if (at == 2 || y.rank < 2 || !mlo_is_carried(in, x->n->input[1 - at])) return;
    const mlo_form f = mlo_body_form(in, x->n->input[at]),
                   v = mlo_body_form(in, x->n->input[1 - at]);
    const int64_t n = mlo_last_dim(&f), rows[] = { -1, n };
    if (f.rank < 2 || n < 2 || mlo_form_count(&f) <= n || !mlo_form_same(&v, &y)
        || n != mlo_last_dim(&y))
        return;
    if (!mlo_is_one_row(in, x->n->input[at], n)) return;
    const char *row = mlo_x_take(
        x, mlo_x_reshape(x, x->n->input[at], rows, 2), mlo_x_whole(x, 0), 0);
    part[at] = row;
    part[1 - at] = x->n->input[1 - at];
    mlo_x_out(x, 0, mlo_x_node(x, x->n->op, part, 2));
}

/* ---- scores of keys and queries, in this order ---------------------------- */

/* The last two axes of an operand, or of a mask or a bias of scores, change places. */
static const char *mlo_x_last_turned(const mlo_inside *in, mlo_expansion *x, const char *name) {
    const mlo_form f = mlo_body_form(in, name);
    const int64_t column[] = { -1, 1 };
    if (mlo_is_number(in, name)) return name;
    return f.rank < 2 ? mlo_x_reshape(x, name, column, 2)
                      : mlo_x_swapped(x, name, f.rank, f.rank - 2);
}

/* What is made of scores [.., keys, queries], with queries in front: softmax, mask and scale go along. NULL: something
 * else is made of them. */
static const char *mlo_x_turned_scores(
    const mlo_inside *in, mlo_expansion *x, const char *name, int depth) {
    const mlo_node *n = mlo_made_by(in, name);
    const mlo_form f = mlo_body_form(in, name);
    const char *part[3] = { "", "", "" };
    if (!n || depth > MLO_CHAIN || n->n_input > 3 || f.rank < 3) return NULL;
    if (mlo_is_inner_product(in, n)) {
        for (int i = 0; i < 2; i++) part[i] = mlo_x_last_turned(in, x, n->input[1 - i]);
        return MLO_X(x, "MatMul", part[0], part[1]);
    }
    const int softmax = !depth && mlo_is(n, "Softmax");
    if (!softmax && (!mlo_is_elementwise(n) || n->n_attr)) return NULL;
    for (size_t i = 0; i < n->n_input; i++) {
        part[i] = mlo_is_carried(in, n->input[i])
            ? mlo_x_turned_scores(in, x, n->input[i], depth + 1)
            : mlo_x_last_turned(in, x, n->input[i]);
        if (!part[i]) return NULL;
    }
    const char *y = mlo_x_node(x, n->op, part, n->n_input);
    if (softmax) mlo_x_int(x, "axis", -1);
    return y;
}

/* Is a softmax made of it? */
static int mlo_feeds_softmax(const mlo_inside *in, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(in->body, name);
    for (size_t i = 0; v && i < v->n_use && depth < MLO_CHAIN; i++) {
        const mlo_node *n = v->use[i];
        if (mlo_is(n, "Softmax")) return 1;
        if (n->n_output && mlo_is_elementwise(n) && mlo_feeds_softmax(in, n->output[0], depth + 1))
            return 1;
    }
    return 0;
}

/* Transpose(softmax over keys of [.., keys, queries]) is softmax of [.., queries, keys]: Keras where it may drop
 * weights. So is Transpose(keys queries^T). */
static void mlo_respell_keys_first(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    const mlo_node *made = mlo_turns_last(in, x->n) ? mlo_made_by(in, x->n->input[0]) : NULL;
    const int64_t axis = mlo_is(made, "Softmax") ? mlo_int(made, "axis", -1) : 0;
    const int columns = axis && (axis == -2 || axis == mlo_body_form(in, x->n->output[0]).rank - 2);
    const int scores = mlo_is_inner_product(in, made) && mlo_feeds_softmax(in, x->n->output[0], 0);
    if (!columns && !scores) return;
    const char *y = mlo_x_turned_scores(in, x, x->n->input[0], 0);
    if (y)
        mlo_x_out(x, 0, y);
    else
        x->n_made = 0;
}

/* ---- the rules, and the walk ---------------------------------------------- */

static const mlo_respelling mlo_respellings[] = { mlo_respell_view, mlo_respell_round,
    mlo_respell_spread_row, mlo_respell_axis_kept, mlo_respell_mean, mlo_respell_softmax,
    mlo_respell_keys_first, mlo_respell_heads, mlo_respell_side_by_side, mlo_respell_where,
    mlo_respell_blanks, mlo_respell_normalized, mlo_respell_hidden_twice, mlo_respell_blank_twice,
    mlo_respell_lowest, mlo_respell_minus, mlo_respell_masks, mlo_respell_masks_apart,
    mlo_respell_scattered, mlo_respell_gathered, mlo_respell_copied, mlo_respell_turned,
    mlo_respell_spread, mlo_respell_packed, mlo_respell_parts, mlo_respell_beside_rows,
    mlo_respell_sliced, mlo_respell_rejoined, mlo_respell_norm, mlo_respell_split_norms,
    mlo_respell_deviation, mlo_respell_viewed_norm, mlo_respell_head_gain, mlo_respell_head_scale,
    mlo_respell_head_norm, mlo_respell_factor, mlo_respell_joined, mlo_respell_inside_projection,
    mlo_respell_inside_product, mlo_respell_inside_probabilities, mlo_respell_inside_joined,
    mlo_respell_widths };
enum { MLO_N_RESPELLINGS = sizeof mlo_respellings / sizeof *mlo_respellings };

/* One walk by these rules, the last node first, so that a norm is found from its end; what it took in is not
 * looked at again. *changed counts. */
static int mlo_respell_walk(
    mlo_respeller *r, const mlo_respelling *rule, size_t rules, size_t *changed) {
    mlo *m = r->in.m;
    mlo_graph *g = r->in.body;
    mlo_expansion *x = MLO_NEW_N(m, mlo_expansion, mlo_room(g->n_node));
    if (!x) return mlo_failed(m);
    for (size_t i = g->n_node; i-- && !m->error.code;) {
        const mlo_expansion fresh = { m, g, g->node[i], mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL,
            0 };
        x[i] = fresh;
        if (mlo_map_get(&r->inner, g->node[i])) continue;
        for (size_t k = 0; k < rules && !x[i].n_made; k++) rule[k](r, &x[i]);
        *changed += x[i].n_made > 0;
    }
    return mlo_respelled(m, g, x);
}

/* Respells a loop's body until no rule finds anything, in so many walks at most. */
static int mlo_respell_rules(
    mlo *m, mlo_scan *scan, const mlo_respelling *rule, size_t rules, int walks) {
    for (int i = 0; i < walks; i++) {
        mlo_respeller r;
        size_t changed = 0;
        memset(&r, 0, sizeof r);
        MLO_TRY(mlo_inside_of(m, scan, &r.in));
        mlo_respell_plain(&r.in);
        MLO_TRY(mlo_respell_walk(&r, rule, rules, &changed));
        if (!changed) return 0;
        MLO_TRY(mlo_drop_dead(m, scan->body));
        MLO_TRY(mlo_index(m, m->model->graph));
        MLO_TRY(mlo_infer(m));
    }
    return 0;
}

static int mlo_respell_all(mlo *m, mlo_scan *scan) {
    return mlo_respell_rules(m, scan, mlo_respellings, MLO_N_RESPELLINGS, 8);
}

/* What was a projection's own has gone back into it: what stands in front of projections alone goes on. */
static const mlo_respelling mlo_fed_rules[] = { mlo_respell_fed };

static int mlo_respell(mlo *m, mlo_scan *scan) {
    int moved = 0;
    MLO_TRY(mlo_respell_rows(m, scan));
    MLO_TRY(mlo_respell_memory(m, scan));
    MLO_TRY(mlo_respell_rules(m, scan, mlo_batch_rules, MLO_N_BATCH_RULES, 3));
    MLO_TRY(mlo_respell_rules(m, scan, mlo_frame_rules, MLO_N_FRAME_RULES, 1));
    MLO_TRY(mlo_respell_rules(m, scan, mlo_grid_rules, 1, 1));
    MLO_TRY(mlo_respell_grid(m, scan));
    MLO_TRY(mlo_respell_all(m, scan));
    MLO_TRY(mlo_respell_moved(m, scan, &moved));
    if (moved) MLO_TRY(mlo_respell_all(m, scan));
    return mlo_respell_rules(m, scan, mlo_fed_rules, 1, 4);
}
