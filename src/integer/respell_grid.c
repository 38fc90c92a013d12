/* respell_grid: values laid out channels first, [B, C, H, W], become tokens of a grid, [B, H, W, C].
 *
 * in:  a float loop body with convolutions, or average pooling, which becomes one; the loop.
 * out: the same function; every value of a grid has its channels last, but between the two
 *     transposes that are right around a convolution with a window. One of 1 x 1 over all channels
 *     is a MatMul. Where the carried value is such a grid, it is transposed in front of the loop and
 *     back behind it. So are lines of tokens, [B, C, T], where convolutions read one token at a time.
 *
 * A value is of a grid if a convolution reads or makes it, or if functions element by element, or a Split
 * of its channels, lead from it to one.
 *
 * invariant: what other nodes read, they still read: the value itself, as a transpose of its twin.
 *     A product in groups of channels is one whose matrix is 0 between different groups.
 * example: ConvNeXt's block, y = x + T(f(T'(Conv(x)))), becomes y' = x' + f(T'(Conv(T(x')))).
 * cost: O(nodes of one body).
 */
typedef struct {
    mlo_inside in;
    mlo_map marked; /* values of a grid */
    mlo_map twin; /* such a value -> itself, channels last */
    mlo_node **list; /* the new body */
    size_t n;
    const char *state; /* the carried value as it was; NULL: it is no grid */
} mlo_gridder;

enum { MLO_GRID_PARTS = 8 }; /* of a Split, at most */

/* Channels of a value of so many dimensions go to its end, and back. */
static const int64_t *mlo_grid_last(int rank) {
    static const int64_t line[] = { 0, 2, 1 }, plane[] = { 0, 2, 3, 1 };
    return rank == 3 ? line : plane;
}
static const int64_t *mlo_grid_first(int rank) {
    static const int64_t line[] = { 0, 2, 1 }, plane[] = { 0, 3, 1, 2 };
    return rank == 3 ? line : plane;
}
static const char *mlo_grid_turned(
    mlo_expansion *x, const char *name, const int64_t *(*way)(int), int rank) {
    return mlo_x_transpose(x, name, way(rank), (size_t)rank);
}

/* A convolution that looks at its own token alone. (Sizes do not tell: pads of 1 and steps of 2
 * make 3 of 3.) */
static int mlo_is_pointwise(const mlo_inside *in, const mlo_node *n) {
    const mlo_form w = mlo_body_form(in, n->input[1]);
    const mlo_form a = mlo_body_form(in, n->input[0]), b = mlo_body_form(in, n->output[0]);
    int is = w.rank == a.rank;
    for (int k = 2; is && k < w.rank; k++)
        is = w.dims[k] == 1 && a.dims[k] == b.dims[k] && !mlo_listed(n, "pads", (size_t)k - 2, 0);
    return is;
}

/* Is it over a grid? (An average that is left is over what is there of its window: others are convolutions.) */
static int mlo_is_convolved(const mlo_inside *in, const mlo_node *n) {
    if (mlo_is(n, "AveragePool"))
        return mlo_is_carried(in, n->input[0]) && mlo_body_form(in, n->input[0]).rank == 4;
    if (!mlo_is(n, "Conv") || !mlo_is_carried(in, n->input[0]) || mlo_is_carried(in, n->input[1]))
        return 0;
    const int rank = mlo_body_form(in, n->input[0]).rank;
    return rank == 4 || (rank == 3 && mlo_is_pointwise(in, n));
}

/* One number, or one for each channel of a grid: [C, 1, 1]. */
static int mlo_is_grid_parameter(const mlo_inside *in, const char *name, const mlo_form *grid) {
    const mlo_form f = mlo_body_form(in, name);
    const int64_t channels = grid->dims[1];
    if (mlo_is_carried(in, name)) return 0;
    return mlo_is_number(in, name)
        || (f.rank >= grid->rank - 1 && f.dims[f.rank - grid->rank + 1] == channels
            && mlo_form_count(&f) == channels);
}

/* Is it of that form, or one number for each place, [B, 1, ..], which channels share? */
static int mlo_is_grid_operand(const mlo_form *f, const mlo_form *grid) {
    mlo_form each = *grid;
    each.dims[1] = 1;
    return mlo_form_same(f, grid) || mlo_form_same(f, &each);
}

/* A function element by element of grids of one form. */
static int mlo_is_grid_function(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is_elementwise(n) || n->n_output != 1 || !mlo_is_carried(in, n->output[0])) return 0;
    const mlo_form y = mlo_body_form(in, n->output[0]);
    if (y.rank < 3 || y.rank > 4) return 0;
    for (size_t i = 0; i < n->n_input; i++) {
        if (!mlo_has_input(n, i)) continue;
        const mlo_form f = mlo_body_form(in, n->input[i]);
        if (mlo_is_carried(in, n->input[i]) ? !mlo_is_grid_operand(&f, &y)
                                            : !mlo_is_grid_parameter(in, n->input[i], &y))
            return 0;
    }
    return 1;
}

/* A mean or a sum over the channels of each place, which keeps their axis: of a norm that is written out. */
static int mlo_is_grid_reduced(const mlo_inside *in, const mlo_node *n) {
    const int reduces = mlo_is(n, "ReduceMean") || mlo_is(n, "ReduceSum");
    if (!reduces || !mlo_is_carried(in, n->input[0]) || !mlo_int(n, "keepdims", 1)) return 0;
    const int rank = mlo_body_form(in, n->input[0]).rank;
    return (rank == 3 || rank == 4) && mlo_reduces_only(in, n, 1);
}

/* A norm over all channels of all places of one frame (respell_frame.c). */
static int mlo_is_grid_norm(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is(n, "LayerNormalization") || !mlo_is_carried(in, n->input[0])) return 0;
    const mlo_form x = mlo_body_form(in, n->input[0]);
    if ((x.rank != 3 && x.rank != 4) || x.dims[0] != 1 || mlo_int(n, "axis", -1) != 1) return 0;
    for (size_t i = 1; i < n->n_input; i++)
        if (mlo_has_input(n, i) && !mlo_is_grid_parameter(in, n->input[i], &x)) return 0;
    return 1;
}

/* Channels of a grid that go apart: a gate's two halves. */
static int mlo_is_grid_split(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is(n, "Split") || !mlo_is_carried(in, n->input[0])) return 0;
    const mlo_form x = mlo_body_form(in, n->input[0]);
    const int64_t axis = mlo_int(n, "axis", 0);
    return (x.rank == 3 || x.rank == 4) && (axis == 1 || axis + x.rank == 1)
        && n->n_output <= MLO_GRID_PARTS;
}

/* ... one part of them at a time. */
static int mlo_is_grid_slice(const mlo_inside *in, const mlo_node *n) {
    double axis = 0;
    if (!mlo_is(n, "Slice") || !mlo_has_input(n, 3) || !mlo_is_carried(in, n->input[0])) return 0;
    const int rank = mlo_body_form(in, n->input[0]).rank;
    if ((rank != 3 && rank != 4) || !mlo_scalar(in, n->input[3], &axis)) return 0;
    return !mlo_differs(axis < 0 ? axis + rank : axis, 1);
}

/* A line of tokens, [B, C, T], as a grid of one row or column, or that as a line: a convolution of one dimension is
 * one of two to some exporters. */
static int mlo_is_grid_view(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_has_trait(n, MLO_RESHAPES) || !mlo_is_carried(in, n->input[0])) return 0;
    const mlo_form x = mlo_body_form(in, n->input[0]), y = mlo_body_form(in, n->output[0]);
    const mlo_form *plane = x.rank == 4 ? &x : &y, *line = x.rank == 4 ? &y : &x;
    if (plane->rank != 4 || line->rank != 3 || !mlo_form_known(&x) || !mlo_form_known(&y)) return 0;
    return plane->dims[0] == line->dims[0] && plane->dims[1] == line->dims[1]
        && (plane->dims[2] == 1 || plane->dims[3] == 1);
}

/* What has its twin from those of its operands. */
static int mlo_is_of_grids(const mlo_inside *in, const mlo_node *n) {
    return mlo_is_grid_function(in, n) || mlo_is_grid_norm(in, n) || mlo_is_grid_split(in, n)
        || mlo_is_grid_slice(in, n) || mlo_is_grid_view(in, n) || mlo_is_grid_reduced(in, n);
}

static int mlo_grid_mark(mlo_gridder *g, const char *name, int *changed) {
    if (mlo_map_get(&g->marked, name)) return 0;
    *changed = 1;
    return mlo_map_put(g->in.m, &g->marked, name, (void *)(uintptr_t)name);
}

/* All that such a node reads and makes is of the grid. */
static int mlo_grid_mark_node(mlo_gridder *g, const mlo_node *n, int *changed) {
    int any = mlo_is_convolved(&g->in, n);
    if (!any && !mlo_is_of_grids(&g->in, n)) return 0;
    for (size_t k = 0; k < n->n_output; k++) any |= mlo_map_get(&g->marked, n->output[k]) != NULL;
    for (size_t i = 0; i < n->n_input; i++) any |= mlo_map_get(&g->marked, n->input[i]) != NULL;
    for (size_t i = 0; any && i < n->n_input; i++)
        if (mlo_is_carried(&g->in, n->input[i])) MLO_TRY(mlo_grid_mark(g, n->input[i], changed));
    for (size_t k = 0; any && k < n->n_output; k++)
        MLO_TRY(mlo_grid_mark(g, n->output[k], changed));
    return 0;
}

static int mlo_grid_mark_all(mlo_gridder *g) {
    const mlo_graph *body = g->in.body;
    const char *in = body->input[0]->name, *out = body->output[0]->name;
    for (int changed = 1; changed;) {
        changed = 0;
        for (size_t i = 0; i < body->n_node; i++)
            MLO_TRY(mlo_grid_mark_node(g, body->node[i], &changed));
        if (mlo_map_get(&g->marked, in)) MLO_TRY(mlo_grid_mark(g, out, &changed));
        if (mlo_map_get(&g->marked, out)) MLO_TRY(mlo_grid_mark(g, in, &changed));
    }
    return 0;
}

static const char *mlo_twin(const mlo_gridder *g, const char *name) {
    return (const char *)mlo_map_get(&g->twin, name);
}

static void mlo_grid_attributes(mlo_expansion *x) {
    mlo_node *n = mlo_x_last(x);
    for (size_t i = 0; n && i < x->n->n_attr; i++)
        if (!MLO_PUSH(x->m, n->attr, n->n_attr, x->n->attr[i])) return;
}

/* The matrix [channels out, channels in] of a convolution that looks at its own token alone. */
static const char *mlo_grid_matrix(mlo_expansion *x, const mlo_form *w, int64_t groups) {
    const int64_t rows = w->dims[0], columns = w->dims[1], whole[] = { rows, groups * columns };
    const int64_t parts[] = { rows, 1, columns }, own[] = { rows, groups, 1 };
    if (groups == 1) return mlo_x_reshape(x, x->n->input[1], w->dims, 2);
    int64_t *is = MLO_NEW_N(x->m, int64_t, (size_t)(rows * groups));
    for (int64_t i = 0; is && i < rows * groups; i++)
        is[i] = i / groups / (rows / groups) == i % groups;
    if (!is) return "";
    const char *flat = mlo_x_tensor(x, MLO_FLOAT, 1, rows * groups, is, 0);
    const char *mine = mlo_x_reshape(x, flat, own, 3);
    const char *each = mlo_x_reshape(x, x->n->input[1], parts, 3);
    return mlo_x_reshape(x, MLO_X(x, "Mul", each, mine), whole, 2);
}

/* The twin of a convolution's result. One in groups is a product where a token is read; of a grid of channels
 * each by itself, the kernel Conv (window.c). */
static const char *mlo_grid_conv(mlo_gridder *g, mlo_expansion *x) {
    static const int64_t turned[] = { 1, 0 };
    const mlo_node *n = x->n;
    const int conv = mlo_is(n, "Conv");
    const mlo_form w = mlo_body_form(&g->in, conv ? n->input[1] : "");
    const int64_t groups = mlo_int(n, "group", 1);
    const char *from = mlo_twin(g, n->input[0]), *y;
    if (conv && mlo_is_pointwise(&g->in, n) && (groups == 1 || w.rank == 3 || w.dims[1] > 1)) {
        y = mlo_x_transpose(x, mlo_grid_matrix(x, &w, groups), turned, 2);
        return mlo_x_plus(x, MLO_X(x, "MatMul", from, y), mlo_x_in(x, 2));
    }
    const int rank = mlo_body_form(&g->in, n->input[0]).rank; /* (a filter's may be unknown) */
    y = mlo_grid_turned(x, from, mlo_grid_first, rank);
    y = conv ? MLO_X(x, "Conv", y, n->input[1], mlo_x_in(x, 2)) : MLO_X(x, n->op, y);
    mlo_grid_attributes(x);
    return mlo_grid_turned(x, y, mlo_grid_last, rank);
}

/* The twin of what a function element by element, or a norm, makes. */
static const char *mlo_grid_function(mlo_gridder *g, mlo_expansion *x) {
    const mlo_node *n = x->n;
    const char **in = MLO_NEW_N(x->m, const char *, n->n_input + 1);
    if (!in) return "";
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_form f = mlo_body_form(&g->in, n->input[i]);
        const int64_t count = mlo_form_count(&f);
        in[i] = n->input[i];
        if (!mlo_has_input(n, i)) continue;
        if (mlo_is_carried(&g->in, n->input[i]))
            in[i] = mlo_twin(g, n->input[i]);
        else if (count > 1)
            in[i] = mlo_x_reshape(x, n->input[i], &count, 1);
    }
    const char *y = mlo_x_node(x, n->op, in, n->n_input);
    mlo_grid_attributes(x);
    return y;
}

/* The twin of a view: its channels stay behind. */
static const char *mlo_grid_view(mlo_gridder *g, mlo_expansion *x) {
    const mlo_form y = mlo_body_form(&g->in, x->n->output[0]);
    int64_t to[4];
    for (int i = 0; i < y.rank; i++) to[i] = y.dims[mlo_grid_last(y.rank)[i]];
    return mlo_x_reshape(x, mlo_twin(g, x->n->input[0]), to, (size_t)y.rank);
}

/* The twin of a mean over channels. */
static const char *mlo_grid_reduced(mlo_gridder *g, mlo_expansion *x) {
    const int64_t last = mlo_body_form(&g->in, x->n->input[0]).rank - 1;
    return mlo_x_axes(
        x, x->n->op, mlo_twin(g, x->n->input[0]), &last, 1, mlo_is(x->n, "ReduceSum") ? 13 : 18);
}

/* The twin of a part of a value's channels. */
static const char *mlo_grid_slice(mlo_gridder *g, mlo_expansion *x) {
    const mlo_node *n = x->n;
    const int64_t last = mlo_body_form(&g->in, n->input[0]).rank - 1;
    const char *axes = mlo_x_list(x, &last, 1), *step = mlo_x_in(x, 4);
    return MLO_X(x, "Slice", mlo_twin(g, n->input[0]), n->input[1], n->input[2], axes, step);
}

/* The twins of parts of a value's channels, and the parts themselves. */
static int mlo_grid_split(mlo_gridder *g, mlo_expansion *x) {
    const mlo_node *n = x->n;
    int64_t sizes[MLO_GRID_PARTS];
    const char *part[MLO_GRID_PARTS];
    const int rank = mlo_body_form(&g->in, n->input[0]).rank;
    for (size_t k = 0; k < n->n_output; k++) sizes[k] = mlo_body_form(&g->in, n->output[k]).dims[1];
    mlo_x_split(x, mlo_twin(g, n->input[0]), rank - 1, sizes, part, n->n_output);
    for (size_t k = 0; k < n->n_output; k++) {
        MLO_TRY(mlo_map_put(g->in.m, &g->twin, n->output[k], (void *)(uintptr_t)part[k]));
        mlo_x_out(x, k, mlo_grid_turned(x, part[k], mlo_grid_first, rank));
    }
    return mlo_failed(g->in.m);
}

static int mlo_grid_take(mlo_gridder *g, const mlo_expansion *x) {
    for (size_t i = 0; i < x->n_made; i++)
        if (!MLO_PUSH(g->in.m, g->list, g->n, x->made[i])) break;
    return mlo_failed(g->in.m);
}

static mlo_expansion mlo_grid_expansion(mlo_gridder *g, mlo_graph *graph, mlo_node *n) {
    const mlo_expansion x = { g->in.m, graph, n, mlo_opset_of(g->in.m), MLO_FLOAT, NULL, 0, NULL,
        0 };
    return x;
}

/* A node of the old body. */
static int mlo_grid_node(mlo_gridder *g, mlo_node *n) {
    mlo *m = g->in.m;
    mlo_expansion x = mlo_grid_expansion(g, g->in.body, n);
    const char *y = NULL;
    const int of_grid = mlo_map_get(&g->marked, n->output[0]) != NULL;
    const int rank = mlo_body_form(&g->in, n->output[0]).rank;
    if (of_grid && mlo_is_grid_split(&g->in, n))
        return mlo_grid_split(g, &x) ? mlo_failed(m) : mlo_grid_take(g, &x);
    if (of_grid && mlo_is_convolved(&g->in, n)) y = mlo_grid_conv(g, &x);
    if (of_grid && !y && mlo_is_grid_view(&g->in, n)) y = mlo_grid_view(g, &x);
    if (of_grid && !y && mlo_is_grid_reduced(&g->in, n)) y = mlo_grid_reduced(g, &x);
    if (of_grid && !y && mlo_is_grid_slice(&g->in, n)) y = mlo_grid_slice(g, &x);
    if (of_grid && !y && mlo_is_of_grids(&g->in, n)) y = mlo_grid_function(g, &x);
    if (y) {
        const char *own = mlo_grid_turned(&x, y, mlo_grid_first, rank);
        MLO_TRY(mlo_map_put(m, &g->twin, n->output[0], (void *)(uintptr_t)y));
        mlo_x_out(&x, 0, own);
        return m->error.code ? mlo_failed(m) : mlo_grid_take(g, &x);
    }
    for (size_t i = 0; g->state && i < n->n_input; i++)
        if (n->input[i] == g->in.body->input[0]->name) n->input[i] = g->state;
    if (!MLO_PUSH(m, g->list, g->n, n)) return mlo_failed(m);
    for (size_t k = 0; k < n->n_output; k++) {
        if (!mlo_map_get(&g->marked, n->output[k])) continue;
        y = mlo_grid_turned(
            &x, n->output[k], mlo_grid_last, mlo_body_form(&g->in, n->output[k]).rank);
        MLO_TRY(mlo_map_put(m, &g->twin, n->output[k], (void *)(uintptr_t)y));
    }
    return mlo_grid_take(g, &x);
}

/* The carried value: in the loop with its channels last, as it was in front of it and behind it. */
static int mlo_grid_state(mlo_gridder *g, const mlo_scan *s) {
    mlo *m = g->in.m;
    mlo_graph *body = g->in.body;
    mlo_value_info *in = body->input[0];
    mlo_form f = mlo_body_form(&g->in, in->name);
    mlo_expansion x = mlo_grid_expansion(g, body, body->node[0]);
    mlo_expansion before = mlo_grid_expansion(g, s->outer, s->node), after = before;
    const int64_t channels = f.dims[1];
    for (int k = 1; k < f.rank - 1; k++) f.dims[k] = f.dims[k + 1];
    f.dims[f.rank - 1] = channels;
    MLO_TRY(mlo_map_put(m, &g->twin, in->name, (void *)(uintptr_t)in->name));
    g->state = mlo_grid_turned(&x, in->name, mlo_grid_first, f.rank);
    mlo_value_info *state = mlo_info_new(m, in->name, &f);
    if (!state || mlo_grid_take(g, &x)) return mlo_failed(m);
    body->input[0] = state;
    const char *first = mlo_grid_turned(&before, s->node->input[0], mlo_grid_last, f.rank);
    const char *made = s->node->output[0], *last = mlo_x_name(&after, "grid");
    mlo_node *back = mlo_node_new(m, "Transpose", mlo_format(m, "%s_back", mlo_node_name(s->node)));
    if (m->error.code || !back || mlo_node_input(m, back, last) || mlo_node_output(m, back, made)
        || mlo_attr_ints(m, back, "perm", mlo_grid_first(f.rank), (size_t)f.rank))
        return mlo_failed(m);
    s->node->input[0] = first;
    s->node->output[0] = last;
    return mlo_around_loop(m, s, mlo_x_last(&before), back);
}

static int mlo_grid_body(mlo_gridder *g, const mlo_scan *s) {
    mlo *m = g->in.m;
    mlo_graph *body = g->in.body;
    const char *out = body->output[0]->name;
    if (mlo_map_get(&g->marked, body->input[0]->name)) MLO_TRY(mlo_grid_state(g, s));
    for (size_t i = 0; i < body->n_node; i++) MLO_TRY(mlo_grid_node(g, body->node[i]));
    if (g->state) {
        const mlo_form f = mlo_form_of(NULL);
        if (!(body->output[0] = mlo_info_new(m, mlo_twin(g, out), &f))) return mlo_failed(m);
    }
    body->node = g->list;
    body->n_node = g->n;
    return 0;
}

/* The node that takes off what the pooling reads, pool(x) - x; NULL: there is none, or others read the
 * mean. */
static mlo_node *mlo_pool_less(const mlo_inside *in, const mlo_node *n) {
    const mlo_value *v = mlo_value_of(in->body, n->output[0]);
    for (size_t i = 0; v->n_uses == 1 && !v->is_output && i < in->body->n_node; i++) {
        mlo_node *p = in->body->node[i];
        if (mlo_is(p, "Sub") && p->input[0] == n->output[0] && p->input[1] == n->input[0]) return p;
    }
    return NULL;
}

/* Does it pad by as much as leaves as many tokens? */
static int mlo_is_padded_alike(const mlo_node *n) {
    return mlo_string_is(n, "auto_pad", "SAME_UPPER", 0)
        || mlo_string_is(n, "auto_pad", "SAME_LOWER", 0);
}

/* Which tap of the window is the token itself; -1: none is. */
static int64_t mlo_pool_own(const mlo_node *n, const mlo_attr *kernel) {
    const mlo_attr *pads = mlo_attr_of(n, "pads");
    int64_t own = 0;
    for (size_t i = 0; i < kernel->n_ints; i++) {
        const int64_t before = pads && i < pads->n_ints ? pads->ints[i] : 0;
        if (mlo_is_padded_alike(n) || before < 0 || before >= kernel->ints[i]) return -1;
        own = own * kernel->ints[i] + before;
    }
    return own;
}

/* Makes an AveragePool of c channels, whose windows count what is beyond the border as zeros, the Conv that
 * it is; and pool(x) - x with it, whose weight of the token itself is one less. */
static int mlo_pool_conv(
    mlo *m, const mlo_inside *in, mlo_node *n, int64_t c, const mlo_attr *kernel) {
    int64_t dims[MLO_MAX_RANK] = { c, 1 }, taps = 1;
    const int rank = (int)kernel->n_ints + 2;
    const int64_t own = mlo_pool_own(n, kernel);
    mlo_node *less = own < 0 ? NULL : mlo_pool_less(in, n);
    for (int i = 2; i < rank; i++) taps *= dims[i] = kernel->ints[i - 2];
    const char *name = mlo_format(m, "%s_pool", n->output[0]);
    float *data = name ? MLO_NEW_N(m, float, (size_t)(c * taps)) : NULL;
    for (int64_t i = 0; data && i < c * taps; i++)
        data[i] = 1 / (float)taps - (less && i % taps == own ? 1 : 0);
    mlo_tensor *w = data ? mlo_tensor_new(m, name, MLO_FLOAT, dims, (size_t)rank, data,
                               (size_t)(c * taps) * sizeof *data)
                         : NULL;
    if (!w || mlo_graph_init(m, in->body, w) || !mlo_index_value(m, in->body, name))
        return mlo_failed(m);
    n->op = "Conv";
    if (less) {
        less->op = "Identity";
        less->n_input = 1;
    }
    return mlo_node_input(m, n, name) ? mlo_failed(m) : mlo_attr_int(m, n, "group", c);
}

/* An average over a window of zeros and tokens along a line is a convolution with a window of equal weights. */
static int mlo_respell_pool(mlo *m, const mlo_inside *in, mlo_node *n) {
    const mlo_form x = mlo_body_form(in, n->input[0]);
    const mlo_attr *kernel = mlo_attr_of(n, "kernel_shape"), *pads = mlo_attr_of(n, "pads");
    int64_t padded = mlo_is_padded_alike(n);
    if (!kernel || (int)kernel->n_ints + 2 != x.rank) return 0;
    for (size_t i = 0; pads && i < pads->n_ints; i++) padded |= pads->ints[i];
    if (x.rank == 4) return 0; /* window.c has those */
    if (padded && !mlo_int(n, "count_include_pad", 0))
        return mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "an average pooling over fewer tokens at the border (count_include_pad = 0) along a "
            "line of "
            "tokens; hardware has those over a grid: count zeros there (count_include_pad = 1)");
    return mlo_pool_conv(m, in, n, x.dims[1], kernel);
}

static int mlo_respell_pools(mlo *m, mlo_scan *scan) {
    mlo_inside in;
    size_t n = 0;
    MLO_TRY(mlo_inside_of(m, scan, &in));
    for (size_t i = 0; i < scan->body->n_node; i++) {
        mlo_node *p = scan->body->node[i];
        if (!mlo_is(p, "AveragePool") || !mlo_is_carried(&in, p->input[0])) continue;
        MLO_TRY(mlo_respell_pool(m, &in, p));
        n++;
    }
    if (!n) return 0;
    MLO_TRY(mlo_index(m, m->model->graph));
    return mlo_infer(m);
}

/* Tokens of a carried value [1, C, H, W] or [1, H, W, C], the fewer of the two, or of [.., tokens, C]. */
static int64_t mlo_grid_tokens(const mlo_form *f) {
    const int64_t last = f->rank == 4 ? f->dims[2] * f->dims[3] : 0,
                  first = f->rank == 4 ? f->dims[1] * f->dims[2] : mlo_tokens_of(f);
    return f->rank == 4 && last < first ? last : first;
}

/* A norm with fewer statistics than there are tokens has some of several tokens. */
static int mlo_refuse_frame_norm(mlo *m, const mlo_inside *in) {
    const mlo_form x = mlo_body_form(in, in->body->input[0]->name);
    for (size_t i = 0; i < in->body->n_node; i++) {
        const mlo_node *n = in->body->node[i];
        const int instance = mlo_is(n, "InstanceNormalization");
        if ((!instance && !mlo_is(n, "GroupNormalization")) || !mlo_is_carried(in, n->input[0]))
            continue;
        const mlo_form f = mlo_body_form(in, n->input[0]);
        if (f.rank < 2) continue;
        if (f.dims[0] * (instance ? f.dims[1] : mlo_int(n, "num_groups", 1)) < mlo_grid_tokens(&x))
            return mlo_fail(m, MLO_E_UNSUPPORTED, n,
                "a norm over the channels of several tokens, but not of one group of all channels "
                "of "
                "all tokens, with a scale and a bias for each channel; hardware's norms are over "
                "all of "
                "a frame (GroupNorm of 1 group) or over the channels of each token (LayerNorm)");
    }
    return 0;
}

static int mlo_respell_grid(mlo *m, mlo_scan *scan) {
    mlo_gridder g;
    int any = 0;
    memset(&g, 0, sizeof g);
    MLO_TRY(mlo_respell_pools(m, scan));
    MLO_TRY(mlo_inside_of(m, scan, &g.in));
    MLO_TRY(mlo_refuse_frame_norm(m, &g.in));
    for (size_t i = 0; i < scan->body->n_node; i++)
        any |= mlo_is_convolved(&g.in, scan->body->node[i]);
    if (!any) return 0;
    mlo_respell_plain(&g.in);
    MLO_TRY(mlo_grid_mark_all(&g));
    MLO_TRY(mlo_grid_body(&g, scan));
    MLO_TRY(mlo_index(m, m->model->graph));
    MLO_TRY(mlo_drop_dead(m, scan->body));
    MLO_TRY(mlo_index(m, m->model->graph));
    return mlo_infer(m);
}

/* ---- padding in front of a convolution ------------------------------------- */

/* Rows that a Pad puts around values [B, C, ..], in front and behind for each axis behind C. 0: it is no Pad of zeros
 * there alone. */
static int mlo_grid_pads(const mlo_inside *in, const mlo_node *n, int rank, double *by) {
    const mlo_value *v = mlo_is(n, "Pad") && n->n_input > 1 ? mlo_value_of(in->body, n->input[1])
                                                            : NULL;
    double zero = 0;
    if (!v || !v->tensor || mlo_tensor_count(v->tensor) != 2 * rank || mlo_has_input(n, 3)
        || !mlo_string_is(n, "mode", "constant", 1)
        || (mlo_has_input(n, 2) && !mlo_scalar(in, n->input[2], &zero)) || mlo_differs(zero, 0)
        || mlo_tensor_doubles(in->m, v->tensor, 0, (size_t)(2 * rank), by))
        return 0;
    for (int k = 0; k < 2 * rank; k++)
        if (by[k] < 0 || (k % rank < 2 && by[k] > 0)) return 0;
    return 1;
}

/* A convolution of what is padded with zeros pads itself (Conformer's, of an odd or causal window). */
static void mlo_respell_padded(mlo_respeller *r, mlo_expansion *x) {
    const mlo_inside *in = &r->in;
    mlo_node *conv = x->n;
    if (!mlo_is(conv, "Conv") || !mlo_string_is(conv, "auto_pad", "NOTSET", 1)) return;
    const mlo_node *pad = mlo_made_by(in, conv->input[0]);
    const int rank = mlo_body_form(in, conv->input[0]).rank;
    double by[2 * MLO_MAX_RANK];
    int64_t pads[2 * MLO_MAX_RANK];
    if (rank < 3 || !mlo_grid_pads(in, pad, rank, by)) return;
    const char *bias = mlo_x_in(x, 2);
    const char *y = MLO_X(x, "Conv", pad->input[0], conv->input[1], bias);
    const size_t axes = (size_t)rank - 2;
    for (size_t i = 0; i < 2 * axes; i++)
        pads[i] = mlo_listed(conv, "pads", i, 0)
            + (int64_t)by[2 + i % axes + i / axes * (size_t)rank];
    mlo_x_attrs_of(x, conv, "pads");
    mlo_x_ints(x, "pads", pads, 2 * axes);
    mlo_x_out(x, 0, y);
}

static const mlo_respelling mlo_grid_rules[] = { mlo_respell_padded };
