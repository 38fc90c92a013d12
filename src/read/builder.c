/* builder: nodes that take the place of another one, one call each.
 *
 * in:  a node that is to be replaced; values by name: the node's inputs, and what builders gave.
 * out: the nodes that replace it, in order, and the constants they read, in the node's own graph;
 *     each has the node's metadata.
 *
 * Values are names. A builder that fails, or whose node stays, gives ""; every builder takes it and
 * hands it on, so that whoever builds needs no checks.
 *
 * invariant: names are new, and numbered in the order of calls: do not nest two builders in one
 *     call, as C leaves open which comes first.
 * example: y = MLO_X(x, "Add", a, b); y = MLO_X(x, "Relu", y); mlo_x_out(x, 0, y);
 * cost: one look at the index for each name.
 */
typedef struct {
    /* the fused node */
    mlo *m;
    mlo_graph *g;
    mlo_node *n;
    /* of the first input: what it computes in */
    int opset;
    mlo_dtype dtype;
    /* the nodes that replace it, in order */
    mlo_node **made;
    size_t n_made;
    const char *why; /* why it stays, NULL when it does not */
    size_t number; /* of the last name made */
} mlo_expansion;

static int mlo_x_stopped(const mlo_expansion *x) { return x->why || x->m->error.code; }

static void mlo_x_stay(mlo_expansion *x, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!x->why) x->why = mlo_intern(x->m, text);
}

/* A name that nothing has, and now is taken: that of the node's first output with a few letters
 * and a number. */
static const char *mlo_x_name(mlo_expansion *x, const char *what) {
    x->number = x->n_made;
    const char *name = mlo_x_stopped(x)
        ? NULL
        : mlo_name_new(x->m, x->g, x->n->output[0], what, &x->number);
    return name ? name : "";
}

static const char *mlo_x_in(const mlo_expansion *x, size_t i) {
    return mlo_has_input(x->n, i) ? x->n->input[i] : "";
}
static mlo_form mlo_x_form(const mlo_expansion *x, size_t i) {
    return mlo_form_of(mlo_value_of(x->g, mlo_x_in(x, i)));
}
/* The form of another node's input; not known where it has none. */
static mlo_form mlo_x_form_at(const mlo_expansion *x, const mlo_node *n, size_t i) {
    return mlo_form_of(mlo_has_input(n, i) ? mlo_value_of(x->g, n->input[i]) : NULL);
}
static int mlo_x_rank(const mlo_expansion *x, size_t i) {
    mlo_form f = mlo_x_form(x, i);
    return f.rank;
}
/* Dimension `axis` (from the end when negative) of input i, -1 when unknown. */
static int64_t mlo_x_dim(const mlo_expansion *x, size_t i, int axis) {
    mlo_form f = mlo_x_form(x, i);
    if (axis < 0) axis += f.rank;
    return axis >= 0 && axis < f.rank ? f.dims[axis] : -1;
}
/* Does anybody use output i? */
static int mlo_x_wanted(const mlo_expansion *x, size_t i) {
    const mlo_value *v = i < x->n->n_output ? mlo_value_of(x->g, x->n->output[i]) : NULL;
    return v && v->n_uses;
}

/* A node with these inputs; the name of its output. */
static const char *mlo_x_node(
    mlo_expansion *x, const char *op, const char *const *in, size_t n_in) {
    mlo *m = x->m;
    const char *out = mlo_x_name(x, op);
    mlo_node *n = *out
        ? mlo_node_new(m, op, mlo_format(m, "%s_%s%zu", mlo_node_name(x->n), op, x->number))
        : NULL;
    if (!n || mlo_node_output(m, n, out) || !MLO_PUSH(m, x->made, x->n_made, n)) return "";
    while (n_in && !*in[n_in - 1]) n_in--;
    for (size_t i = 0; i < n_in; i++)
        if (mlo_node_input(m, n, in[i])) return "";
    return mlo_node_meta(m, n, x->n) ? "" : out;
}
static const char *mlo_x_listed(mlo_expansion *x, const char *op, const char *const *in) {
    size_t n_in = 0;
    while (in[n_in]) n_in++;
    return mlo_x_node(x, op, in, n_in);
}
#define MLO_X(x, op, ...) mlo_x_listed((x), (op), MLO_ITEMS(const char *, __VA_ARGS__, NULL))

/* The node made last, to give it attributes and outputs; NULL when it could not be made. */
static mlo_node *mlo_x_last(const mlo_expansion *x) {
    return mlo_x_stopped(x) ? NULL : x->made[x->n_made - 1];
}
static void mlo_x_int(mlo_expansion *x, const char *name, int64_t i) {
    mlo_attr_int(x->m, mlo_x_last(x), name, i);
}
static void mlo_x_ints(mlo_expansion *x, const char *name, const int64_t *list, size_t n) {
    mlo_attr_ints(x->m, mlo_x_last(x), name, list, n);
}
/* Those of another node, but for the ones whose names begin with `but` (NULL: all). */
static void mlo_x_attrs_of(mlo_expansion *x, const mlo_node *from, const char *but) {
    mlo_node *n = mlo_x_last(x);
    for (size_t i = 0; n && i < from->n_attr; i++)
        if (!(but && mlo_starts(from->attr[i]->name, but))
            && !MLO_PUSH(x->m, n->attr, n->n_attr, from->attr[i]))
            return;
}
static void mlo_x_float(mlo_expansion *x, const char *name, float f) {
    mlo_attr *a = mlo_attr_new(x->m, mlo_x_last(x), name, MLO_ATTR_FLOAT);
    if (a) {
        a->f = f;
        a->has |= MLO_HAS(2);
    }
}
static void mlo_x_text(mlo_expansion *x, const char *name, const char *text) {
    mlo_attr *a = mlo_attr_new(x->m, mlo_x_last(x), name, MLO_ATTR_STRING);
    if (a) {
        a->s.data = text;
        a->s.n = strlen(text);
    }
}

/* One more output of the node made last. */
static const char *mlo_x_output(mlo_expansion *x) {
    const char *name = mlo_x_name(x, "part");
    return *name && !mlo_node_output(x->m, mlo_x_last(x), name) ? name : "";
}

/* A new initializer. The node stays where no number has that type: undefined, or a string. */
static const char *mlo_x_tensor(
    mlo_expansion *x, mlo_dtype dtype, int rank, int64_t n, const int64_t *ints, double number) {
    mlo *m = x->m;
    if (!mlo_dtype_is_number(dtype))
        mlo_x_stay(x, "it would compute in the element type %s", mlo_dtype_name(dtype));
    const char *name = mlo_x_name(x, "c");
    mlo_array *a = *name ? mlo_array_new(m, dtype, rank, &n) : NULL;
    if (!a) return "";
    if (ints)
        mlo_convert(dtype, a->data, MLO_INT64, ints, (size_t)n);
    else
        mlo_convert(dtype, a->data, MLO_DOUBLE, &number, 1);
    mlo_tensor *t = mlo_tensor_from(m, name, a);
    mlo_array_free(m, a);
    return mlo_graph_init(m, x->g, t) ? "" : t->name;
}
static const char *mlo_x_list(mlo_expansion *x, const int64_t *list, size_t n) {
    return mlo_x_tensor(x, MLO_INT64, 1, (int64_t)n, list, 0);
}
static const char *mlo_x_whole(mlo_expansion *x, int64_t v) {
    return mlo_x_tensor(x, MLO_INT64, 0, 1, &v, 0);
}
static const char *mlo_x_number(mlo_expansion *x, double v) {
    return mlo_x_tensor(x, x->dtype, 0, 1, NULL, v);
}

static const char *mlo_x_cast(mlo_expansion *x, const char *v, mlo_dtype to) {
    const char *y = MLO_X(x, "Cast", v);
    mlo_x_int(x, "to", to);
    return y;
}
static const char *mlo_x_transpose(mlo_expansion *x, const char *v, const int64_t *perm, size_t n) {
    const char *y = MLO_X(x, "Transpose", v);
    mlo_x_ints(x, "perm", perm, n);
    return y;
}
static const char *mlo_x_reshape(mlo_expansion *x, const char *v, const int64_t *shape, size_t n) {
    const char *to = mlo_x_list(x, shape, n);
    return MLO_X(x, "Reshape", v, to);
}
/* A norm over the last axis like `norm`, of another value, with another gain and bias ("": none). */
static const char *mlo_x_normed(
    mlo_expansion *x, const mlo_node *norm, const char *v, const char *gamma, const char *beta) {
    const char *y = MLO_X(x, norm->op, v, gamma, beta);
    mlo_x_int(x, "axis", -1);
    mlo_x_float(x, "epsilon", mlo_float(norm, "epsilon", 1e-5f));
    return y;
}
/* Ops whose axes are an attribute before opset `since` and an input from there on. */
static const char *mlo_x_axes(
    mlo_expansion *x, const char *op, const char *v, const int64_t *axes, size_t n, int since) {
    const char *list = x->opset >= since ? mlo_x_list(x, axes, n) : "", *y = MLO_X(x, op, v, list);
    if (x->opset < since) mlo_x_ints(x, "axes", axes, n);
    return y;
}
static const char *mlo_x_unsqueeze(mlo_expansion *x, const char *v, const int64_t *axes, size_t n) {
    return mlo_x_axes(x, "Unsqueeze", v, axes, n, 13);
}
/* v cut into parts of these sizes. */
static void mlo_x_split(mlo_expansion *x, const char *v, int64_t axis, const int64_t *sizes,
    const char **part, size_t n) {
    part[0] = MLO_X(x, "Split", v, mlo_x_list(x, sizes, n));
    mlo_x_int(x, "axis", axis);
    for (size_t i = 1; i < n; i++) part[i] = mlo_x_output(x);
}
/* v + w, or v when w is absent. */
static const char *mlo_x_plus(mlo_expansion *x, const char *v, const char *w) {
    return *w ? MLO_X(x, "Add", v, w) : v;
}

/* `value` is what output i is: the node that makes it makes it under that name. */
static void mlo_x_out(mlo_expansion *x, size_t i, const char *value) {
    const char *name = i < x->n->n_output ? x->n->output[i] : "";
    if (mlo_x_stopped(x) || !*name) return;
    for (size_t k = x->n_made; k--;)
        for (size_t o = 0; o < x->made[k]->n_output; o++)
            if (x->made[k]->output[o] == value) {
                x->made[k]->output[o] = name;
                for (k++; k < x->n_made; k++)
                    for (size_t j = 0; j < x->made[k]->n_input; j++)
                        if (x->made[k]->input[j] == value) x->made[k]->input[j] = name;
                return;
            }
    MLO_X(x, "Identity", value);
    if (mlo_x_last(x)) mlo_x_last(x)->output[0] = name;
}
