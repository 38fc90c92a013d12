/* lift: a model of an old opset, as opset 13 says it.
 *
 * in:  a model of opset 7 to 12, types and shapes inferred.
 * out: the same model of opset 13: what was an attribute and became an input (axes, bounds, pads) is
 *     a constant, a Softmax over what follows its axis goes over one axis. Or the model as it was, and
 *     a warning that names the node which keeps it.
 *
 * So later stages know one spelling. And the functions of kernels need it: they use operators, and
 * forms of operators, that opset 12 has not.
 *
 * invariant: every value that had a name has it still, and its elements.
 * example: Clip<min=0, max=6>(x) of opset 9 -> Clip(x, x_c0, x_c1).
 * cost: O(nodes), for old models alone.
 */

enum { MLO_LIFTED = 13 };

/* An operator some of whose attributes became inputs behind its first: integers (l), a number of x's
 * type (n); -: the attribute went, since only training asked. NULL: it means something else since. */
typedef struct {
    const char *op;
    int since;
    const char *kinds;
    const char *attr[3];
} mlo_lift_rule;

static const mlo_lift_rule mlo_lift_rules[] = {
    { "Clip", 11, "nn", { "min", "max" } },
    { "Dropout", 12, "-", { "ratio" } },
    { "Pad", 11, "ln", { "pads", "value" } },
    { "ReduceSum", 13, "l", { "axes" } },
    { "Resize", 11, NULL, { NULL } },
    { "Scan", 9, NULL, { NULL } },
    { "Scatter", 13, NULL, { NULL } },
    { "Slice", 10, "lll", { "starts", "ends", "axes" } },
    { "Split", 13, "l", { "split" } },
    { "Squeeze", 13, "l", { "axes" } },
    { "TopK", 10, "l", { "k" } },
    { "Unsqueeze", 13, "l", { "axes" } },
    { "Upsample", 13, NULL, { NULL } },
};

static const mlo_lift_rule *mlo_lift_rule_of(const mlo_node *n, int opset) {
    for (size_t i = 0; i < sizeof mlo_lift_rules / sizeof *mlo_lift_rules; i++)
        if (opset < mlo_lift_rules[i].since && mlo_is(n, mlo_lift_rules[i].op))
            return &mlo_lift_rules[i];
    return NULL;
}

/* ---- may it? -------------------------------------------------------------- */

typedef struct {
    int opset;
    const mlo_node *kept; /* the node that keeps the model where it is; NULL: none does */
    const char *why;
} mlo_lifter;

static const char *mlo_lift_hindered(const mlo_lifter *l, const mlo_graph *g, const mlo_node *n) {
    const mlo_lift_rule *rule = mlo_lift_rule_of(n, l->opset);
    const mlo_value *x = n->n_input ? mlo_value_of(g, n->input[0]) : NULL;
    const mlo_value *mask = n->n_output > 1 ? mlo_value_of(g, n->output[1]) : NULL;
    if (rule && !rule->kinds) return "it means something else there";
    if (mlo_is(n, "BatchNormalization") && !mlo_int(n, "spatial", 1))
        return "its statistics are one for each place";
    if (rule && mlo_is(n, "Dropout") && l->opset < 10 && mask && mask->n_uses)
        return "its mask has the type of its input";
    if (rule && strchr(rule->kinds, 'n') && !mlo_dtype_is_number(mlo_form_of(x).dtype))
        return "the element type of its input is unknown";
    return NULL;
}

static int mlo_lift_asked(mlo *m, void *graph, void *user) {
    const mlo_graph *g = (const mlo_graph *)graph;
    mlo_lifter *l = (mlo_lifter *)user;
    (void)m;
    for (size_t i = 0; i < g->n_node && !l->why; i++) {
        l->kept = g->node[i];
        l->why = mlo_lift_hindered(l, g, g->node[i]);
    }
    return 0;
}

/* ---- doing ---------------------------------------------------------------- */

/* The constant that an attribute becomes. */
static const char *mlo_lift_constant(mlo_expansion *x, const mlo_attr *a, char kind) {
    if (kind == 'n') return mlo_x_number(x, (double)a->f);
    return a->type == MLO_ATTR_INT ? mlo_x_list(x, &a->i, 1) : mlo_x_list(x, a->ints, a->n_ints);
}

/* A node whose attributes become inputs stays the node that it is. */
static void mlo_lift_attributes(mlo_expansion *x, const mlo_lift_rule *rule) {
    for (size_t k = 0; rule->kinds[k]; k++) {
        const mlo_attr *a = mlo_attr_of(x->n, rule->attr[k]);
        if (rule->kinds[k] != '-')
            mlo_node_input(x->m, x->n, a ? mlo_lift_constant(x, a, rule->kinds[k]) : "");
        mlo_attr_drop(x->n, rule->attr[k]);
    }
    while (x->n->n_input && !*x->n->input[x->n->n_input - 1]) x->n->n_input--;
}

/* A softmax over all that follows its axis, which is 1 where it says none: over the last axis, or
 * over what is flattened from there. Deeploy's networks mean the last one. */
static void mlo_lift_softmax(mlo_expansion *x, int deeploy) {
    const mlo_attr *given = mlo_attr_of(x->n, "axis");
    const int64_t axis = given ? given->i : deeploy ? -1 : 1;
    const int rank = mlo_x_rank(x, 0);
    mlo_attr_drop(x->n, "axis");
    if (axis == -1 || (rank > 0 && axis == rank - 1)) {
        mlo_attr_int(x->m, x->n, "axis", -1);
        return;
    }
    const char *shape = MLO_X(x, "Shape", mlo_x_in(x, 0));
    const char *flat = MLO_X(x, "Flatten", mlo_x_in(x, 0));
    mlo_x_int(x, "axis", axis);
    const char *y = MLO_X(x, x->n->op, flat);
    mlo_x_int(x, "axis", -1);
    mlo_x_out(x, 0, MLO_X(x, "Reshape", y, shape));
}

static int mlo_lift_graph(mlo *m, void *graph, void *user) {
    const mlo_lifter *l = (const mlo_lifter *)user;
    mlo_graph *g = (mlo_graph *)graph;
    mlo_node **list = NULL;
    size_t n = 0;
    const int deeploy = mlo_dialect_speaks(g);
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_expansion x = { m, g, g->node[i], MLO_LIFTED, MLO_UNDEFINED, NULL, 0, NULL, 0 };
        const mlo_lift_rule *rule = mlo_lift_rule_of(x.n, l->opset);
        x.dtype = mlo_x_form(&x, 0).dtype;
        if (rule) mlo_lift_attributes(&x, rule);
        if (mlo_is(x.n, "BatchNormalization")) mlo_attr_drop(x.n, "spatial");
        if (mlo_is(x.n, "Softmax") || mlo_is(x.n, "LogSoftmax") || mlo_is(x.n, "Hardmax"))
            mlo_lift_softmax(&x, deeploy);
        for (size_t k = 0; k < x.n_made; k++)
            if (!MLO_PUSH(m, list, n, x.made[k])) return mlo_failed(m);
        if (!x.n_made && !MLO_PUSH(m, list, n, x.n)) return mlo_failed(m);
    }
    g->node = list;
    g->n_node = n;
    return mlo_failed(m);
}

static int mlo_lift(mlo *m) {
    mlo_graph *g = m->model->graph;
    mlo_lifter l = { mlo_opset_of(m), NULL, NULL };
    if (l.opset < 7 || l.opset >= MLO_LIFTED) return 0;
    MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_GRAPH, mlo_lift_asked, &l));
    if (l.why) {
        mlo_warn(m, "%s (%s) keeps the model in opset %d: %s; convert it to opset 13 or later",
            mlo_node_name(l.kept), l.kept->op, l.opset, l.why);
        return 0;
    }
    MLO_TRY(mlo_each_message(m, MLO_M_GRAPH, g, MLO_M_GRAPH, mlo_lift_graph, &l));
    for (size_t i = 0; i < m->model->n_opset; i++)
        if (!*mlo_standard(m->model->opset[i].domain)) m->model->opset[i].version = MLO_LIFTED;
    return mlo_index(m, g) || mlo_infer(m);
}
