/* eval: runs a graph on arrays.
 *
 * in:  a graph in topological order and arrays for its inputs, by name.
 * out: arrays for its outputs, which the caller frees.
 *
 * invariant: an array lives from its making to its last use; weights are loaded at their first use,
 *     and an iteration's go one by one.
 *     The node that holds a subgraph uses what the subgraph reads from outside. Stacks of weights
 *     for a Scan are never made: an iteration gets its slice. An array that is not what the model
 *     declares is a failure. The model does not change.
 * example: mlo_array *out[2]; mlo_eval(m, m->model->graph, inputs, n, NULL, out);
 * cost: the ops' work; memory: the widest point of the graph, plus the initializers of loop
 *     bodies, which stay for all iterations.
 */

/* Sees every node output, and the inputs of loop bodies in each iteration (iteration is -1 outside
 * of loops), before anybody reads them. Nonzero stops. */
typedef struct {
    void *user;
    int (*see)(void *user, const mlo_graph *g, int64_t iteration, const char *name,
        const mlo_array *value);
    const mlo_graph *last; /* the body of the loop behind which nothing is seen; NULL: all is */
    int64_t one; /* 1 + the only iteration of that loop to run; 0: all do */
} mlo_observer;

/* One value of a graph while it runs. */
typedef struct {
    mlo_array *array; /* NULL: not made yet, or freed */
    int lent; /* 1: somebody else's: never freed here */
    mlo_tensor *tensor; /* an initializer, loaded at first use */
    size_t uses; /* by nodes (with their subgraphs) and graph outputs */
    size_t left; /* uses to come */
    const char
        *part; /* of the graph outside, whose array this is in this iteration; NULL: it is none */
} mlo_cell;

typedef struct mlo_env {
    mlo *m;
    const mlo_graph *g;
    struct mlo_env *outer;
    const mlo_observer *observer;
    int64_t iteration;
    int opset;
    mlo_map map; /* name -> cell; the slots are scratch, never grown */
    mlo_cell *cell;
    size_t n;
} mlo_env;

static mlo_cell *mlo_env_own(const mlo_env *e, const char *name) {
    return name && *name ? (mlo_cell *)mlo_map_get(&e->map, name) : NULL;
}
static mlo_cell *mlo_env_cell(const mlo_env *e, const char *name) {
    for (; e; e = e->outer) {
        mlo_cell *c = mlo_env_own(e, name);
        if (c) return c;
    }
    return NULL;
}
static mlo_cell *mlo_env_add(mlo_env *e, const char *name) {
    mlo_cell *c = mlo_env_own(e, name);
    if (!c && name && *name) {
        c = &e->cell[e->n++];
        mlo_map_put(e->m, &e->map, name, c);
    }
    return c;
}

/* Calls `use` for every name that a node reads, in itself and in its subgraphs. */
static void mlo_each_read(mlo_env *e, const mlo_node *n, void (*use)(mlo_env *e, const char *name));
static void mlo_each_read_graph(
    mlo_env *e, const mlo_graph *g, void (*use)(mlo_env *e, const char *name)) {
    if (!g) return;
    for (size_t i = 0; i < g->n_node; i++) mlo_each_read(e, g->node[i], use);
    for (size_t i = 0; i < g->n_output; i++) use(e, g->output[i]->name);
}
static void mlo_each_read(
    mlo_env *e, const mlo_node *n, void (*use)(mlo_env *e, const char *name)) {
    for (size_t i = 0; i < n->n_input; i++) use(e, n->input[i]);
    for (size_t i = 0; i < n->n_attr; i++) {
        mlo_each_read_graph(e, n->attr[i]->g, use);
        for (size_t k = 0; k < n->attr[i]->n_graphs; k++)
            mlo_each_read_graph(e, n->attr[i]->graphs[k], use);
    }
}
static void mlo_env_use(mlo_env *e, const char *name) {
    mlo_cell *c = mlo_env_own(e, name);
    if (c) c->uses++;
}

static void mlo_cell_drop(mlo *m, mlo_cell *c) {
    if (!c->lent) mlo_array_free(m, c->array);
    c->array = NULL;
    c->lent = 0;
}
static void mlo_env_done(mlo_env *e, const char *name);
/* A part of a stack that an iteration was lent is back. */
static void mlo_part_done(mlo_env *e, mlo_cell *c) {
    const char *part = c->part;
    c->part = NULL;
    if (part) mlo_env_done(e->outer, part);
}
/* One use is done: frees after the last one. Weights of loop bodies stay (outer != NULL). */
static void mlo_env_done(mlo_env *e, const char *name) {
    mlo_cell *c = mlo_env_own(e, name);
    if (!c || !c->left || --c->left) return;
    if (c->tensor && e->outer) return;
    mlo_cell_drop(e->m, c);
    mlo_part_done(e, c);
}

static void mlo_env_close(mlo_env *e) {
    for (size_t i = 0; i < e->n; i++) mlo_cell_drop(e->m, &e->cell[i]);
    mlo_scratch_free(e->m, e->cell);
    mlo_scratch_free(e->m, e->map.slot);
    e->n = 0;
    e->cell = NULL;
    e->map.slot = NULL;
    e->map.size = 0;
}

/* Makes the cells of a graph and counts uses. On failure everything is closed again. */
static int mlo_env_open(
    mlo *m, mlo_env *e, const mlo_graph *g, mlo_env *outer, const mlo_observer *observer) {
    size_t n = g->n_init + g->n_input + 1, size = 64;
    memset(e, 0, sizeof *e);
    for (size_t i = 0; i < g->n_node; i++) n += g->node[i]->n_output;
    /* so roomy that mlo_map_put never grows it */
    while (size < 4 * n) size *= 2;
    e->m = m;
    e->g = g;
    e->outer = outer;
    e->observer = observer;
    e->iteration = -1;
    e->opset = mlo_opset_of(m);
    if (!(e->cell = (mlo_cell *)mlo_scratch(m, n, sizeof *e->cell))) return mlo_failed(m);
    if (!(e->map.slot = (mlo_pair *)mlo_scratch(m, size, sizeof *e->map.slot))) {
        mlo_env_close(e);
        return mlo_failed(m);
    }
    memset(e->cell, 0, n * sizeof *e->cell);
    memset(e->map.slot, 0, size * sizeof *e->map.slot);
    e->map.size = size;
    for (size_t i = 0; i < g->n_init; i++) {
        mlo_cell *c = mlo_env_add(e, g->init[i]->name); /* it has a name: mlo_check_graph */
        c->tensor = g->init[i];
    }
    for (size_t i = 0; i < g->n_input; i++) mlo_env_add(e, g->input[i]->name);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++) mlo_env_add(e, g->node[i]->output[k]);
    for (size_t i = 0; i < g->n_node; i++) mlo_each_read(e, g->node[i], mlo_env_use);
    for (size_t i = 0; i < g->n_output; i++) mlo_env_use(e, g->output[i]->name);
    for (size_t i = 0; i < e->n; i++) e->cell[i].left = e->cell[i].uses;
    return 0;
}
/* Ready for the next iteration: all but the weights is gone. */
static void mlo_env_again(mlo_env *e) {
    for (size_t i = 0; i < e->n; i++) {
        if (!e->cell[i].tensor) mlo_cell_drop(e->m, &e->cell[i]);
        e->cell[i].left = e->cell[i].uses;
    }
}

/* The array of a name: made, lent, or now loaded. NULL (failure recorded) when there is none. */
static const mlo_array *mlo_env_get(const mlo_env *e, const mlo_node *node, const char *name) {
    mlo_cell *c = mlo_env_cell(e, name);
    if (c && !c->array && c->tensor) c->array = mlo_tensor_load(e->m, c->tensor);
    if (c && c->array) return c->array;
    mlo_fail(e->m, MLO_E_GRAPH, node, "'%s' has no value", name);
    return NULL;
}
/* Binds an input to an array that stays the caller's. */
static void mlo_env_lend(mlo_env *e, const char *name, const mlo_array *a) {
    mlo_cell *c = mlo_env_own(e, name);
    if (!c) return;
    mlo_cell_drop(e->m, c);
    c->array = (mlo_array *)(uintptr_t)a;
    c->lent = 1;
}
/* A graph output, owned by the caller from now on: taken when nobody else needs it, else copied. */
static mlo_array *mlo_env_take(mlo_env *e, const char *name) {
    mlo_cell *own = mlo_env_own(e, name);
    const mlo_array *a = mlo_env_get(e, NULL, name);
    if (!a) return NULL;
    if (own && !own->lent && !own->tensor && own->left <= 1) {
        mlo_array *taken = own->array;
        own->array = NULL;
        own->left = 0;
        return taken;
    }
    if (own && own->left) own->left--;
    mlo_array *copy = mlo_array_new(e->m, a->dtype, a->rank, a->dims);
    if (copy) memcpy(copy->data, a->data, (size_t)mlo_array_count(a) * mlo_dtype_size(a->dtype));
    return copy;
}

static int mlo_see(const mlo_env *e, const char *name, const mlo_array *a) {
    if (!e->observer || !e->observer->see || !a
        || !e->observer->see(e->observer->user, e->g, e->iteration, name, a))
        return 0;
    return e->m->error.code
        ? mlo_failed(e->m)
        : mlo_fail_at(e->m, MLO_E_IO, name, "the observer stopped the evaluation");
}

/* An array is what its graph declares, and what inference wrote down, under its name. */
static int mlo_eval_check(
    const mlo_env *e, const mlo_node *n, const char *name, const mlo_array *a) {
    mlo_form declared = mlo_form_of((const mlo_value *)mlo_map_get(&e->g->values, name));
    mlo_form is = mlo_form_of_array(a);
    return mlo_as_declared(e->m, n, name, &declared, &is);
}

/* ---- subgraphs ------------------------------------------------------------ */

static int mlo_eval_env(mlo_env *e);

/* A subgraph that has so many inputs and outputs; NULL: it has not, or is none, which is said. */
static mlo_graph *mlo_fitting(
    mlo *m, const mlo_node *n, const char *name, size_t inputs, size_t outputs) {
    mlo_graph *g = mlo_graph_of(n, name);
    if (g && g->n_input == inputs && g->n_output == outputs) return g;
    mlo_fail(m, MLO_E_GRAPH, n, "%zu inputs and %zu outputs do not fit the %s's %zu and %zu",
        n->n_input, n->n_output, name, g ? g->n_input : 0, g ? g->n_output : 0);
    return NULL;
}
static mlo_graph *mlo_scan_body(mlo *m, const mlo_node *n) {
    if (mlo_scan_stacks(n) <= n->n_input) return mlo_fitting(m, n, "body", n->n_input, n->n_output);
    mlo_fail(m, MLO_E_GRAPH, n, "has %zu inputs, of which %lld are said to be scanned", n->n_input,
        (long long)mlo_scan_stacks(n));
    return NULL;
}
/* Iteration and condition come in, given their ends or not, then the states; the condition goes out
 * first. */
static mlo_graph *mlo_loop_body(mlo *m, const mlo_node *n) {
    if (n->n_input >= 2) return mlo_fitting(m, n, "body", n->n_input, n->n_output + 1);
    mlo_fail(m, MLO_E_GRAPH, n, "has %zu inputs, needs 2", n->n_input);
    return NULL;
}

/* Part `index` of n parts of `whole` along `axis`, and `part` alone: copies one into the other. */
static void mlo_copy_part(
    mlo_array *whole, mlo_array *part, int axis, int64_t index, int into_whole) {
    size_t size = mlo_dtype_size(whole->dtype);
    size_t outer = 1;
    size_t inner = size;
    size_t n = (size_t)whole->dims[axis];
    for (int i = 0; i < axis; i++) outer *= (size_t)whole->dims[i];
    for (int i = axis + 1; i < whole->rank; i++) inner *= (size_t)whole->dims[i];
    for (size_t o = 0; inner && o < outer; o++) {
        char *w = (char *)whole->data + (o * n + (size_t)index) * inner;
        char *p = (char *)part->data + o * inner;
        if (into_whole)
            memcpy(w, p, inner);
        else
            memcpy(p, w, inner);
    }
}
/* The part of a stack that iteration i gets, when the stack is Reshape(Concat(part 0, part 1, ..))
 * with a part for each: its name. */
static const char *mlo_stack_part(
    const mlo_graph *g, const char *stack, int64_t iterations, int64_t i) {
    const mlo_value *v = mlo_value_of(g, stack);
    const mlo_node *reshape = v ? v->producer : NULL;
    mlo_form f = mlo_form_of(v);
    if (!mlo_is(reshape, "Reshape") || !mlo_form_known(&f) || f.rank < 1 || f.dims[0] != iterations)
        return NULL;
    const mlo_value *rows = mlo_value_of(g, reshape->input[0]);
    const mlo_node *concat = rows ? rows->producer : NULL;
    if (!mlo_is(concat, "Concat") || mlo_int(concat, "axis", 0)
        || (int64_t)concat->n_input != iterations)
        return NULL;
    mlo_form part = mlo_form_of(mlo_value_of(g, concat->input[i]));
    return mlo_form_known(&part) && mlo_form_count(&part) * iterations == mlo_form_count(&f)
        ? concat->input[i]
        : NULL;
}
/* Shapes a part as the stack has it: the reshape may have made [1] of a scalar, or [K,N] of [1,K,N]. */
static void mlo_stack_form(const mlo_graph *g, const char *stack, mlo_array *part) {
    mlo_form f = mlo_form_of(mlo_value_of(g, stack));
    part->rank = f.rank - 1;
    memcpy(part->dims, f.dims + 1, (size_t)part->rank * sizeof *part->dims);
}

/* Element `index` along `axis` as a new array of one rank less. */
static mlo_array *mlo_part_of(mlo *m, const mlo_array *a, int axis, int64_t index) {
    int64_t dims[MLO_MAX_RANK];
    int r = 0;
    for (int i = 0; i < a->rank; i++)
        if (i != axis) dims[r++] = a->dims[i];
    mlo_array *part = mlo_array_new(m, a->dtype, r, dims);
    if (part) mlo_copy_part((mlo_array *)(uintptr_t)a, part, axis, index, 0);
    return part;
}
/* The stack of n arrays of one form (every `stride`-th of the list) along a new axis. */
static mlo_array *mlo_stack(mlo *m, const mlo_node *node, mlo_array **list, size_t n, size_t stride,
    int64_t axis, int reverse, const mlo_form *empty) {
    mlo_form f = n ? mlo_form_of_array(list[0]) : *empty;
    int64_t dims[MLO_MAX_RANK];
    if (f.rank < 0 || f.rank >= MLO_MAX_RANK) {
        mlo_fail(m, MLO_E_SHAPE, node, "a stacked output of rank %d", f.rank);
        return NULL;
    }
    if (axis < 0) axis += f.rank + 1;
    if (axis < 0 || axis > f.rank) {
        mlo_fail(m, MLO_E_SHAPE, node, "outputs are stacked along axis %lld of rank %d",
            (long long)axis, f.rank + 1);
        return NULL;
    }
    for (int i = 0; i <= f.rank; i++)
        dims[i] = i < axis ? f.dims[i] : i == axis ? (int64_t)n : f.dims[i - 1];
    for (int i = 0; i <= f.rank; i++)
        if (dims[i] < 0) dims[i] = 0;
    mlo_array *whole = mlo_array_new(m, f.dtype, f.rank + 1, dims);
    for (size_t k = 0; whole && k < n; k++) {
        mlo_form g = mlo_form_of_array(list[k * stride]);
        if (mlo_forms_differ(&g, &f)) {
            mlo_fail(m, MLO_E_SHAPE, node, "iteration %zu stacks %s, the first %s", k,
                mlo_dims_text(m, g.rank, g.dims), mlo_dims_text(m, f.rank, f.dims));
            mlo_array_free(m, whole);
            return NULL;
        }
        mlo_copy_part(whole, list[k * stride], (int)axis, (int64_t)(reverse ? n - 1 - k : k), 1);
    }
    return whole;
}
static int64_t mlo_int_at(const mlo_node *n, const char *name, size_t i, int64_t otherwise) {
    const mlo_attr *a = mlo_attr_of(n, name);
    return a && i < a->n_ints ? a->ints[i] : otherwise;
}

/* What Scan and Loop share. */
typedef struct {
    mlo_array **state; /* owned */
    mlo_array **next; /* the next states */
    size_t n_state;
    mlo_array **stacked; /* everything stacked so far: [rounds, n_stacked] */
    size_t n_stacked; /* in a round */
    size_t rounds;
    size_t room; /* rounds that there is memory for */
} mlo_rounds;

static int mlo_rounds_open(mlo *m, mlo_rounds *r, const mlo_node *n,
    const mlo_array *const *initial, size_t n_state, size_t n_stacked) {
    memset(r, 0, sizeof *r);
    if (n->n_output < n_state)
        return mlo_fail(m, MLO_E_GRAPH, n, "has %zu states and %zu outputs", n_state, n->n_output);
    for (size_t i = 0; i < n_state; i++)
        if (!initial[i]) return mlo_fail(m, MLO_E_GRAPH, n, "state %zu has no initial value", i);
    r->n_state = n_state;
    r->n_stacked = n_stacked;
    if (!(r->state = (mlo_array **)mlo_scratch(m, 2 * n_state + 1, sizeof *r->state)))
        return mlo_failed(m);
    r->next = r->state + n_state;
    for (size_t i = 0; i < 2 * n_state; i++) r->state[i] = NULL;
    return 0;
}
static void mlo_rounds_close(mlo *m, mlo_rounds *r) {
    for (size_t i = 0; r->state && i < 2 * r->n_state; i++) mlo_array_free(m, r->state[i]);
    for (size_t i = 0; i < r->rounds * r->n_stacked; i++) mlo_array_free(m, r->stacked[i]);
    mlo_scratch_free(m, r->state);
    mlo_scratch_free(m, r->stacked);
}
/* Room for one more round of stacked outputs. */
static int mlo_rounds_grow(mlo *m, mlo_rounds *r) {
    if (r->n_stacked && r->rounds == r->room) {
        size_t room = r->room ? 2 * r->room : 8;
        mlo_array **list = (mlo_array **)mlo_scratch(m, room * r->n_stacked, sizeof *list);
        if (!list) return mlo_failed(m);
        if (r->rounds) memcpy(list, r->stacked, r->rounds * r->n_stacked * sizeof *list);
        mlo_scratch_free(m, r->stacked);
        r->stacked = list;
        r->room = room;
    }
    for (size_t i = 0; i < r->n_stacked; i++) r->stacked[r->rounds * r->n_stacked + i] = NULL;
    r->rounds++;
    return 0;
}
/* Runs n's body once (its inputs are lent already) and takes its outputs behind the first `skip`:
 * states, then what is stacked. */
static int mlo_rounds_run(mlo_env *body, mlo_rounds *r, const mlo_node *n, size_t skip) {
    mlo *m = body->m;
    const mlo_graph *g = body->g;
    for (size_t i = 0; i < g->n_input; i++) {
        const mlo_array *a = mlo_env_get(body, NULL, g->input[i]->name);
        if (a) MLO_TRY(mlo_eval_check(body, n, g->input[i]->name, a));
        MLO_TRY(mlo_see(body, g->input[i]->name, a));
    }
    MLO_TRY(mlo_eval_env(body));
    MLO_TRY(mlo_rounds_grow(m, r));
    for (size_t i = 0; i < r->n_state; i++)
        if (!(r->next[i] = mlo_env_take(body, g->output[skip + i]->name))) return mlo_failed(m);
    for (size_t i = 0; i < r->n_stacked; i++)
        if (!(r->stacked[(r->rounds - 1) * r->n_stacked + i] = mlo_env_take(
                  body, g->output[skip + r->n_state + i]->name)))
            return mlo_failed(m);
    for (size_t i = 0; i < r->n_state; i++) {
        mlo_array_free(m, r->state[i]);
        r->state[i] = r->next[i];
        r->next[i] = NULL;
    }
    return 0;
}
/* Final states (copies of the initial ones when the body never ran) and stacks become the node's
 * outputs. */
static int mlo_rounds_finish(mlo_env *body, mlo_rounds *r, const mlo_node *n,
    const mlo_array *const *initial, size_t skip, mlo_array **out) {
    mlo *m = body->m;
    for (size_t i = 0; i < n->n_output; i++) {
        if (!*n->output[i]) continue;
        if (i < r->n_state && r->state[i]) {
            out[i] = r->state[i];
            r->state[i] = NULL;
        } else if (i < r->n_state) {
            if ((out[i] = mlo_array_new(m, initial[i]->dtype, initial[i]->rank, initial[i]->dims))
                != NULL)
                memcpy(out[i]->data, initial[i]->data,
                    (size_t)mlo_array_count(initial[i]) * mlo_dtype_size(initial[i]->dtype));
        } else {
            mlo_value v;
            memset(&v, 0, sizeof v);
            v.info = body->g->output[skip + i];
            mlo_form empty = mlo_form_of(&v);
            out[i] = mlo_stack(m, n, r->rounds ? r->stacked + (i - r->n_state) : NULL, r->rounds,
                r->n_stacked, mlo_int_at(n, "scan_output_axes", i - r->n_state, 0),
                mlo_int_at(n, "scan_output_directions", i - r->n_state, 0) != 0, &empty);
        }
        if (!out[i]) return mlo_failed(m);
    }
    return 0;
}

/* Is the value a stack of parts, or an initializer, that one Scan reads and nobody else? Then nobody
 * makes it: each iteration gets its part where that lies, and no more than a layer's weights are in
 * memory. */
static int mlo_is_spared(const mlo_graph *g, const char *stack) {
    const mlo_value *v = mlo_value_of(g, stack);
    mlo_form f = mlo_form_of(v);
    if (!v || v->graph != g || v->n_uses != 1 || v->n_use != 1 || f.rank < 1) return 0;
    const mlo_node *scan = v->use[0], *reshape = v->producer;
    const size_t stacks = mlo_scan_stacks(scan);
    size_t k = 0;
    while (k < scan->n_input && scan->input[k] != stack) k++;
    if (!mlo_is(scan, "Scan") || k == scan->n_input || k + stacks < scan->n_input
        || mlo_int_at(scan, "scan_input_axes", k + stacks - scan->n_input, 0)
        || mlo_int_at(scan, "scan_input_directions", k + stacks - scan->n_input, 0))
        return 0;
    if (v->tensor) return !v->is_input && f.dims[0] > 0;
    if (!mlo_is(reshape, "Reshape")) return 0;
    const mlo_value *rows = mlo_value_of(g, reshape->input[0]);
    if (!rows || rows->graph != g || rows->n_uses != 1) return 0;
    for (int64_t i = 0; i < f.dims[0]; i++)
        if (!mlo_stack_part(g, stack, f.dims[0], i)) return 0;
    return f.dims[0] > 0;
}
/* ... and is the node one of the two that would make it? */
static int mlo_makes_spared(const mlo_graph *g, const mlo_node *n) {
    if (mlo_is(n, "Reshape")) return mlo_is_spared(g, n->output[0]);
    const mlo_value *rows = mlo_is(n, "Concat") ? mlo_value_of(g, n->output[0]) : NULL;
    return rows && rows->n_use == 1 && mlo_is(rows->use[0], "Reshape")
        && rows->use[0]->input[0] == rows->name && mlo_is_spared(g, rows->use[0]->output[0]);
}

/* How often a Scan runs: the length of every scan input along its axis. A stack that is spared is
 * no array. */
static int mlo_scan_length(const mlo_env *e, const mlo_node *n, const mlo_array *const *in,
    size_t n_state, size_t n_scan, int *axis, int64_t *length) {
    mlo *m = e->m;
    *length = -1;
    for (size_t k = 0; k < n_scan; k++) {
        if (!in[n_state + k] && mlo_is_spared(e->g, n->input[n_state + k])) {
            *length = mlo_form_of(mlo_value_of(e->g, n->input[n_state + k])).dims[0];
            axis[k] = 0;
            continue;
        }
        const mlo_array *a = in[n_state + k];
        int64_t at = mlo_int_at(n, "scan_input_axes", k, 0);
        if (!a) return mlo_fail(m, MLO_E_GRAPH, n, "scan input %zu is absent", k);
        if (at < 0) at += a->rank;
        if (at < 0 || at >= a->rank)
            return mlo_fail(m, MLO_E_SHAPE, n, "scan input %zu, '%s', has rank %d and no axis %lld",
                k, n->input[n_state + k], a->rank, (long long)at);
        axis[k] = (int)at;
        if (*length >= 0 && a->dims[at] != *length)
            return mlo_fail(m, MLO_E_SHAPE, n, "scan input '%s' has %lld iterations, others %lld",
                n->input[n_state + k], (long long)a->dims[at], (long long)*length);
        *length = a->dims[at];
    }
    return 0;
}
/* An input of the body gets an array of its own, until it is used for the last time. */
static int mlo_scan_give(mlo_env *body, mlo_cell *c, mlo_array *part) {
    if (!part) return mlo_failed(body->m);
    mlo_cell_drop(body->m, c);
    c->array = part;
    if (!c->uses) c->left = 1;
    return 0;
}
/* One iteration's inputs: the states, and this iteration's part of every scan input. */
static int mlo_scan_bind(mlo_env *body, const mlo_rounds *r, const mlo_node *n,
    const mlo_array *const *in, const int *axis, mlo_array *lent, size_t n_scan, int64_t i,
    int64_t length) {
    const mlo_graph *g = body->g;
    for (size_t k = 0; k < r->n_state; k++)
        mlo_env_lend(body, g->input[k]->name, r->state[k] ? r->state[k] : in[k]);
    for (size_t k = 0; k < n_scan; k++) {
        mlo_cell *c = mlo_env_own(body, g->input[r->n_state + k]->name);
        const mlo_value *stack = mlo_value_of(body->outer->g, n->input[r->n_state + k]);
        if (!in[r->n_state + k] && stack->tensor) {
            MLO_TRY(mlo_scan_give(body, c, mlo_tensor_slice(body->m, stack->tensor, i)));
            continue;
        }
        if (!in[r->n_state + k]) {
            const char *name = mlo_stack_part(body->outer->g, n->input[r->n_state + k], length, i);
            const mlo_array *part = mlo_env_get(body->outer, n, name);
            if (!part) return mlo_failed(body->m);
            lent[k] = *part;
            mlo_stack_form(body->outer->g, n->input[r->n_state + k], &lent[k]);
            mlo_env_lend(body, g->input[r->n_state + k]->name, &lent[k]);
            c->part = name;
            continue;
        }
        MLO_TRY(mlo_scan_give(body, c,
            mlo_part_of(body->m, in[r->n_state + k], axis[k],
                mlo_int_at(n, "scan_input_directions", k, 0) ? length - 1 - i : i)));
    }
    return 0;
}
/* The iteration is done with the parts of stacks that nobody used. */
static void mlo_scan_release(mlo_env *body) {
    for (size_t i = 0; i < body->n; i++) mlo_part_done(body, &body->cell[i]);
}
static int mlo_eval_scan(mlo_env *e, mlo_node *n, const mlo_array *const *in, mlo_array **out) {
    mlo *m = e->m;
    mlo_env body;
    mlo_rounds r;
    size_t n_scan = mlo_scan_stacks(n), n_state = n->n_input - n_scan;
    int64_t length;
    if (e->opset < 9)
        return mlo_fail(m, MLO_E_UNSUPPORTED, n,
            "the Scan of opset 8 has a batch axis; convert the model to opset 9 or newer");
    const mlo_graph *g = mlo_scan_body(m, n);
    if (!g) return mlo_failed(m);
    mlo_array *lent = (mlo_array *)mlo_scratch(m, n_scan + 1, sizeof *lent + sizeof(int));
    if (!lent) return mlo_failed(m);
    int *axis = (int *)(void *)(lent + n_scan + 1);
    if (mlo_scan_length(e, n, in, n_state, n_scan, axis, &length)
        || mlo_env_open(m, &body, g, e, e->observer)) {
        mlo_scratch_free(m, lent);
        return mlo_failed(m);
    }
    mlo_rounds_open(m, &r, n, in, n_state, n->n_output - n_state);
    const int64_t one = e->observer && e->observer->last == g ? e->observer->one : 0;
    const int64_t end = one ? one : length;
    for (body.iteration = one ? end - 1 : 0; body.iteration < end && !m->error.code;
        body.iteration++) {
        mlo_env_again(&body);
        if (!mlo_scan_bind(&body, &r, n, in, axis, lent, n_scan, body.iteration, length)
            && !mlo_rounds_run(&body, &r, n, 0))
            mlo_scan_release(&body);
        if (!one) mlo_done(m, (double)(body.iteration + 1) / (double)end);
    }
    if (!m->error.code) mlo_rounds_finish(&body, &r, n, in, 0, out);
    mlo_rounds_close(m, &r);
    mlo_env_close(&body);
    mlo_scratch_free(m, lent);
    return mlo_failed(m);
}

/* Loop: trip count and condition, both optional; body (iteration, condition, states) ->
 * (condition, states, stacked). */
static int mlo_eval_loop(mlo_env *e, mlo_node *n, const mlo_array *const *in, mlo_array **out) {
    mlo *m = e->m;
    mlo_env body;
    mlo_rounds r;
    const mlo_graph *g = mlo_loop_body(m, n);
    const size_t n_state = n->n_input - 2;
    int64_t trips = INT64_MAX, i = 0;
    uint8_t go = 1;
    if (!g) return mlo_failed(m);
    for (size_t k = 0; k < 2; k++)
        if (in[k] && mlo_array_count(in[k]) != 1)
            return mlo_fail(m, MLO_E_SHAPE, n, "its %s has %lld elements; one is needed",
                k ? "condition" : "trip count", (long long)mlo_array_count(in[k]));
    if (in[0]) mlo_convert(MLO_INT64, &trips, in[0]->dtype, in[0]->data, 1);
    if (in[1]) go = *(const uint8_t *)in[1]->data;
    mlo_array count = { NULL, MLO_INT64, 0, { 0 }, NULL };
    mlo_array flag = { NULL, MLO_BOOL, 0, { 0 }, NULL };
    count.data = &i;
    flag.data = &go;
    MLO_TRY(mlo_env_open(m, &body, g, e, e->observer));
    mlo_rounds_open(m, &r, n, in + 2, n_state, n->n_output - n_state);
    for (; i < trips && go && !m->error.code; i++) {
        mlo_env_again(&body);
        body.iteration = i;
        mlo_env_lend(&body, g->input[0]->name, &count);
        mlo_env_lend(&body, g->input[1]->name, &flag);
        for (size_t k = 0; k < n_state; k++)
            mlo_env_lend(&body, g->input[k + 2]->name, r.state[k] ? r.state[k] : in[k + 2]);
        if (mlo_rounds_run(&body, &r, n, 1)) break;
        mlo_array *next = mlo_env_take(&body, g->output[0]->name);
        if (next) go = mlo_array_count(next) == 1 ? *(const uint8_t *)next->data : 0;
        mlo_array_free(m, next);
    }
    if (!m->error.code) mlo_rounds_finish(&body, &r, n, in + 2, 1, out);
    mlo_rounds_close(m, &r);
    mlo_env_close(&body);
    return mlo_failed(m);
}

static int mlo_eval_if(mlo_env *e, mlo_node *n, const mlo_array *const *in, mlo_array **out) {
    mlo *m = e->m;
    mlo_env branch;
    if (n->n_input < 1 || !in[0] || in[0]->dtype != MLO_BOOL || mlo_array_count(in[0]) != 1)
        return mlo_fail(m, MLO_E_TYPE, n, "the condition must be one bool");
    const char *taken = *(const uint8_t *)in[0]->data ? "then_branch" : "else_branch";
    const mlo_graph *g = mlo_fitting(m, n, taken, 0, n->n_output);
    if (!g) return mlo_failed(m);
    MLO_TRY(mlo_env_open(m, &branch, g, e, e->observer));
    branch.iteration = e->iteration;
    if (!mlo_eval_env(&branch))
        for (size_t i = 0; i < n->n_output; i++)
            if (!(out[i] = mlo_env_take(&branch, g->output[i]->name))) break;
    mlo_env_close(&branch);
    return mlo_failed(m);
}

/* ---- nodes ---------------------------------------------------------------- */

/* Stores what a node made, shows it, and lets go of what it read. */
static int mlo_eval_store(mlo_env *e, mlo_node *n, mlo_array **out) {
    for (size_t i = 0; i < n->n_output; i++) {
        mlo_cell *c = out[i] ? mlo_env_own(e, n->output[i]) : NULL;
        if (!c) {
            mlo_array_free(e->m, out[i]);
            out[i] = NULL;
            continue;
        }
        MLO_TRY(mlo_eval_check(e, n, n->output[i], out[i]));
        mlo_cell_drop(e->m, c);
        c->array = out[i];
        c->array->name = n->output[i];
        out[i] = NULL;
    }
    for (size_t i = 0; i < n->n_output; i++) {
        mlo_cell *c = mlo_env_own(e, n->output[i]);
        if (c) MLO_TRY(mlo_see(e, n->output[i], c->array));
        if (c && !c->left) mlo_cell_drop(e->m, c);
    }
    mlo_each_read(e, n, mlo_env_done);
    return 0;
}
static int mlo_eval_node(mlo_env *e, mlo_node *n) {
    mlo *m = e->m;
    const mlo_op *op = mlo_op_of(m, n);
    mlo_array **out = (mlo_array **)mlo_scratch(m, n->n_input + n->n_output + 1, sizeof *out);
    if (!out) return mlo_failed(m);
    const mlo_array **in = (const mlo_array **)(void *)(out + n->n_output);
    for (size_t i = 0; i < n->n_output; i++) out[i] = NULL;
    for (size_t i = 0; i < n->n_input; i++)
        in[i] = mlo_has_input(n, i) && !(mlo_is_scan(n) && mlo_is_spared(e->g, n->input[i]))
            ? mlo_env_get(e, n, n->input[i])
            : NULL;
    if (m->error.code) {
        mlo_scratch_free(m, out);
        return mlo_failed(m);
    }
    if (mlo_is_scan(n))
        mlo_eval_scan(e, n, in, out);
    else if (mlo_is(n, "Loop"))
        mlo_eval_loop(e, n, in, out);
    else if (mlo_is(n, "If"))
        mlo_eval_if(e, n, in, out);
    else if (op && op->run)
        mlo_call_node(m, op, n, e->opset, in, out);
    else
        mlo_fail(m, MLO_E_UNSUPPORTED, n, "mlo cannot evaluate %s%s%s",
            n->domain && *n->domain ? n->domain : "", n->domain && *n->domain ? "." : "", n->op);
    if (!m->error.code) mlo_eval_store(e, n, out);
    for (size_t i = 0; i < n->n_output; i++) mlo_array_free(m, out[i]);
    mlo_scratch_free(m, out);
    return mlo_failed(m);
}
/* Is the node the loop behind which the observer sees nothing? */
static int mlo_is_last(const mlo_env *e, const mlo_node *n) {
    const mlo_attr *body = e->observer && e->observer->last ? mlo_attr_of(n, "body") : NULL;
    return body && body->g == e->observer->last;
}
static int mlo_eval_env(mlo_env *e) {
    for (size_t i = 0; i < e->g->n_node; i++) {
        if (mlo_makes_spared(e->g, e->g->node[i])) continue;
        MLO_TRY(mlo_eval_node(e, e->g->node[i]));
        if (mlo_is_last(e, e->g->node[i])) break;
    }
    return mlo_failed(e->m);
}

/* Evaluates a graph on named inputs (an input with an initializer may be left out). out:
 * g->n_output arrays, NULL before, the caller's to free, whether this fails or not; they stay NULL
 * where the observer has a last loop. */
static int mlo_eval(mlo *m, const mlo_graph *g, const mlo_array *inputs, size_t n,
    const mlo_observer *observer, mlo_array **out) {
    mlo_env e;
    MLO_TRY(mlo_env_open(m, &e, g, NULL, observer));
    for (size_t i = 0; i < n && !m->error.code; i++)
        mlo_env_lend(&e, mlo_intern(m, mlo_or_empty(inputs[i].name)), &inputs[i]);
    for (size_t i = 0; i < g->n_input && !m->error.code; i++) {
        const mlo_cell *c = mlo_env_own(&e, g->input[i]->name);
        if (c && !c->array && !c->tensor)
            mlo_fail_at(m, MLO_E_USAGE, g->input[i]->name, "the graph input has no value");
    }
    if (!m->error.code && !mlo_eval_env(&e))
        for (size_t i = 0; i < g->n_output && !(observer && observer->last); i++) {
            if (!(out[i] = mlo_env_take(&e, g->output[i]->name))) break;
            out[i]->name = g->output[i]->name;
        }
    mlo_env_close(&e);
    return mlo_failed(m);
}
