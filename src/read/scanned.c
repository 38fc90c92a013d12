/* scanned: a Loop over layers whose weights lie in stacks becomes a Scan, the form that roll makes.
 *
 * in:  an indexed model, types inferred.
 * out: each such Loop of the graph as a Scan: what it takes from a stack by the number of the iteration is a scan
 *     input, what it passes on as it is comes from outside, the rest is carried. Its index is stale.
 *
 * A model that scans its layers (jax.lax.scan, flax.nnx.scan) is exported so. It is rolled already.
 *
 * invariant: a Loop stays one whose count is not known, that may end before it, or that picks from no stack of that
 *     many.
 * example: Loop(12, true, x, W) { w = Gather(W, i); y = MatMul(x, w); W' = Identity(W) } becomes
 *     Scan(x, W) { y = MatMul(x, w) }.
 * cost: O(nodes of the bodies).
 */
typedef struct {
    mlo *m;
    mlo_graph *g;
    mlo_node *n; /* the Loop */
    mlo_graph *body;
    const char *number; /* of the iteration, in the body */
    size_t states;
    int64_t trips;
    mlo_map outside; /* a state of the body that never changes -> the value that it is */
} mlo_scanning;

/* What a value of the body is, through Identity. */
static const char *mlo_scanning_from(const mlo_graph *body, const char *name) {
    for (int i = 0; i < 64; i++) {
        const mlo_value *v = mlo_value_of(body, name);
        if (!v || v->graph != body || !mlo_is(v->producer, "Identity") || !v->producer->n_input)
            break;
        name = v->producer->input[0];
    }
    return name;
}

/* Is a value a constant of one number? */
static int mlo_number_known(mlo *m, const mlo_graph *g, const char *name, double *x) {
    const mlo_value *v = mlo_value_of(g, name);
    const int single = v && v->tensor && mlo_tensor_count(v->tensor) == 1;
    mlo_array *a = single ? mlo_tensor_load(m, v->tensor) : NULL;
    const int one = a && a->dtype != MLO_STRING;
    if (one) mlo_convert(MLO_DOUBLE, x, a->dtype, a->data, 1);
    mlo_array_free(m, a);
    return one;
}
static int mlo_scanning_on(mlo *m, const mlo_graph *g, const char *name) {
    double on = 0;
    return mlo_number_known(m, g, name, &on) && on > 0;
}

/* Does the Loop run so often, whatever it computes? Then *c is what it is made of. */
static int mlo_scanning_of(mlo *m, mlo_graph *g, mlo_node *n, mlo_scanning *c) {
    mlo_graph *body = mlo_is(n, "Loop") && n->n_input > 2 ? mlo_graph_of(n, "body") : NULL;
    memset(c, 0, sizeof *c);
    if (!body || body->n_input != n->n_input || body->n_output != n->n_output + 1
        || n->n_output + 2 < n->n_input)
        return 0;
    c->m = m;
    c->g = g;
    c->n = n;
    c->body = body;
    c->number = body->input[0]->name;
    c->states = n->n_input - 2;
    const char *on = mlo_scanning_from(body, body->output[0]->name);
    double trips;
    if (on != body->input[1]->name && !mlo_scanning_on(m, body, on)) return 0;
    if (*n->input[1] && !mlo_scanning_on(m, g, n->input[1])) return 0;
    if (!mlo_number_known(m, g, n->input[0], &trips) || trips < 2 || trips > INT32_MAX) return 0;
    c->trips = (int64_t)trips;
    return 1;
}

/* Does the body hand a value out once more, in every iteration? */
static int mlo_scanning_taps(const mlo_scanning *c, const char *name) {
    size_t k = c->states + 1;
    while (k < c->body->n_output && c->body->output[k]->name != name) k++;
    return k < c->body->n_output;
}

/* Which of its states never change? */
static int mlo_scanning_outside(mlo_scanning *c) {
    for (size_t k = 0; k < c->states; k++) {
        const char *name = c->body->input[k + 2]->name;
        if (mlo_scanning_from(c->body, c->body->output[k + 1]->name) == name
            && !mlo_scanning_taps(c, name))
            MLO_TRY(mlo_map_put(c->m, &c->outside, name, (void *)(uintptr_t)c->n->input[k + 2]));
    }
    return 0;
}

/* The stack outside that a node of the body picks this iteration's part from; NULL: it is no such node. */
static const char *mlo_scanning_stack(const mlo_scanning *c, const mlo_node *n) {
    if (!mlo_is(n, "Gather") || n->n_input < 2 || n->n_output != 1 || mlo_int(n, "axis", 0)
        || mlo_scanning_from(c->body, n->input[1]) != c->number)
        return NULL;
    const char *from = mlo_scanning_from(c->body, n->input[0]);
    const char *outside = (const char *)mlo_map_get(&c->outside, from);
    const mlo_value *own = mlo_value_of(c->body, from);
    if (!outside && own && own->graph == c->body) return NULL;
    const char *stack = outside ? outside : from;
    const mlo_form f = mlo_form_of(mlo_value_of(c->g, stack));
    return mlo_form_known(&f) && f.rank > 0 && f.dims[0] == c->trips ? stack : NULL;
}
static int mlo_scanning_stacks(const mlo_scanning *c) {
    int stacks = 0;
    for (size_t i = 0; i < c->body->n_node; i++)
        stacks += mlo_scanning_stack(c, c->body->node[i]) != NULL;
    return stacks;
}

/* A scan input: `name` in the body is an iteration's part of a stack. */
static int mlo_scanning_scan(mlo_scanning *c, const char *stack, const char *name) {
    mlo_form f = mlo_form_of(mlo_value_of(c->g, stack));
    for (int i = 1; i < f.rank; i++) f.dims[i - 1] = f.dims[i];
    f.rank--;
    mlo_value_info *info = mlo_info_new(c->m, name, &f);
    return info && MLO_PUSH(c->m, c->body->input, c->body->n_input, info)
        ? mlo_node_input(c->m, c->n, stack)
        : mlo_failed(c->m);
}

/* The numbers of the iterations, as a stack of them. */
static const char *mlo_scanning_numbers(mlo_scanning *c) {
    const char *name = mlo_format(c->m, "%s.iterations", mlo_node_name(c->n));
    while (name && mlo_value_of(c->g, name)) name = mlo_format(c->m, "%s_", name);
    int64_t *all = MLO_NEW_N(c->m, int64_t, (size_t)c->trips);
    for (int64_t i = 0; all && i < c->trips; i++) all[i] = i;
    mlo_tensor *t = name && all
        ? mlo_tensor_new(c->m, name, MLO_INT64, &c->trips, 1, all, (size_t)c->trips * sizeof *all)
        : NULL;
    return t && !mlo_graph_init(c->m, c->g, t) && mlo_index_value(c->m, c->g, name) ? name : NULL;
}

/* The nodes of the body: those that pick are inputs now, the others read from outside what never changes. */
static int mlo_scanning_nodes(mlo_scanning *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->body->n_node; i++) {
        mlo_node *n = c->body->node[i];
        const char *stack = mlo_scanning_stack(c, n);
        if (stack) {
            MLO_TRY(mlo_scanning_scan(c, stack, n->output[0]));
            continue;
        }
        c->body->node[kept++] = n;
    }
    c->body->n_node = kept;
    for (size_t i = 0; i < kept; i++) mlo_rename_node(&c->outside, c->body->node[i]);
    return 0;
}

/* Its ends: what is carried, then what is scanned; the number of the iteration is a scan input, the condition a
 * constant. What never changes is, behind it, what it was before. */
static int mlo_scanning_ends(mlo_scanning *c, mlo_node_list *behind) {
    mlo *m = c->m;
    mlo_value_info **in = c->body->input, **out = c->body->output;
    const char **from = c->n->input, **to = c->n->output;
    const size_t n_out = c->n->n_output;
    c->body->input = c->body->output = NULL;
    c->n->input = c->n->output = NULL;
    c->body->n_input = c->body->n_output = c->n->n_input = c->n->n_output = 0;
    for (size_t k = 0; k < n_out; k++) {
        const char *outside = k < c->states
            ? (const char *)mlo_map_get(&c->outside, in[k + 2]->name)
            : NULL;
        if (outside) {
            mlo_node *same = *to[k] ? mlo_node_new(m, "Identity", to[k]) : NULL;
            if (*to[k]
                && (mlo_node_input(m, same, outside) || mlo_node_output(m, same, to[k])
                    || !MLO_PUSH(m, behind->node, behind->n, same)))
                return mlo_failed(m);
            continue;
        }
        if (k < c->states
            && (!MLO_PUSH(m, c->body->input, c->body->n_input, in[k + 2])
                || mlo_node_input(m, c->n, from[k + 2])))
            return mlo_failed(m);
        if (!MLO_PUSH(m, c->body->output, c->body->n_output, out[k + 1])
            || !MLO_PUSH(m, c->n->output, c->n->n_output, to[k]))
            return mlo_failed(m);
    }
    const size_t carried = c->body->n_input;
    const char *numbers = mlo_scanning_numbers(c);
    if (!numbers || mlo_scanning_scan(c, numbers, c->number) || mlo_scanning_nodes(c))
        return mlo_failed(m);
    uint8_t *yes = (uint8_t *)mlo_alloc(m, 1, 1);
    if (yes) *yes = 1;
    mlo_tensor *on = yes ? mlo_tensor_new(m, in[1]->name, MLO_BOOL, NULL, 0, yes, 1) : NULL;
    if (!on || mlo_graph_init(m, c->body, on)) return mlo_failed(m);
    c->n->op = "Scan";
    c->n->n_attr = 0;
    return mlo_attr_graph(m, c->n, "body", c->body)
        || mlo_attr_int(m, c->n, "num_scan_inputs", (int64_t)(c->body->n_input - carried))
        || mlo_drop_dead(m, c->body);
}

/* *any: was there one? */
static int mlo_scanned(mlo *m, int *any) {
    mlo_graph *g = m->model->graph;
    mlo_node_list list = { NULL, 0 };
    *any = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_scanning c;
        mlo_node_list behind = { NULL, 0 };
        if (mlo_opset_of(m) >= 9 && mlo_scanning_of(m, g, g->node[i], &c)) {
            MLO_TRY(mlo_scanning_outside(&c));
            if (mlo_scanning_stacks(&c)) {
                MLO_TRY(mlo_scanning_ends(&c, &behind));
                *any = 1;
            }
        }
        if (!MLO_PUSH(m, list.node, list.n, g->node[i])) return mlo_failed(m);
        for (size_t k = 0; k < behind.n; k++)
            if (!MLO_PUSH(m, list.node, list.n, behind.node[k])) return mlo_failed(m);
    }
    if (!*any) return mlo_failed(m);
    g->node = list.node;
    g->n_node = list.n;
    return mlo_index(m, g);
}
