/* roll: turns every loop that extract marked into one ONNX Scan.
 *
 * in:  nodes with metadata mlo.loop, mlo.instance (an instance is one layer's copy of the body) and
 *     mlo.position.
 * out: one Scan per loop, named as the loop.
 *     Inputs: the first values of what is carried; then stacks of what differs per iteration,
 *     along a new first axis. Body: the nodes of instance 0. Outputs: what is carried, after the
 *     last iteration; then taps.
 *
 * A tap is a value inside instance k that the outer graph uses: it becomes a scan output, and a
 * Gather picks slice k under the old name. An input of a body node, seen over all iterations, is
 * one of:
 *
 *     role           which values                             becomes
 *     internal       made by the same instance                a value of the body
 *     carried        made by the instance before              a state variable
 *     parameter      constants that differ, or that were      a scan input [iterations, ...]:
 *                    learned (even if equal: hardware must    Reshape(Concat(initializers))
 *                    not depend on learned values)
 *     selected       few different values, each used in       a scan input, which is an index;
 *                    several iterations (local and global     a Gather in the body picks from
 *                    masks)                                   the stack outside
 *     per-iteration  other values that differ                 a scan input: Concat(Unsqueezes)
 *     invariant      the same value in every iteration, or    a value captured from the outer
 *                    equal constants that were not learned    graph
 *
 * invariant: roll does not believe the marks. It compares ops, attributes, wiring, types and shapes
 *     of all instances again, and fails at a difference.
 * example: bert-tiny: 1 carried value, 16 parameters, no tap, 34 nodes.
 * cost: O(nodes); no weight is read.
 */
typedef enum {
    MLO_ROLE_INTERNAL,
    MLO_ROLE_CARRIED,
    MLO_ROLE_INVARIANT,
    MLO_ROLE_STACKED,
    MLO_ROLE_SELECTED
} mlo_role;

/* A feed: one value that the body gets from outside of its iteration. */
typedef struct {
    mlo_role role;
    mlo_value **value; /* [iterations]; carried: value[0] is the first value */
    int position; /* carried: of the node that feeds the next iteration */
    int output; /* carried: which of that node's */
    const char *name; /* in the body */
    const char *outer; /* of the scan input or state outside */
    int user; /* its first use: position of the node */
    int slot; /* its first use: which of that node's */
    /* 1: never merged with another feed: whether two biases are equal is an accident of training */
    int learned;
} mlo_feed;

typedef struct {
    mlo *m;
    mlo_graph *g;
    mlo_net *net;

    const char *name;
    int iterations; /* as mlo_layers, as are the two behind it */
    int size;
    int *node;
    const int *loop_of; /* per node of the net; MLO_NONE outside of loops */
    const int *instance; /* per node of the net */
    const int *position; /* per node of the net: in its instance */
    int self; /* this loop, in loop_of */
    const uint8_t *swap; /* per node: 1: its two operands are to be read in the other order */

    mlo_feed *feed;
    size_t n_feeds;
    int *feed_of; /* per slot of instance 0: its feed; MLO_NONE where the role is internal */
    mlo_map *names; /* taken names */
    mlo_map bound; /* body value of instance 0 (mlo_value) -> its name in the body */
    mlo_graph *body;
    mlo_node *scan;
    mlo_node **made; /* nodes for the outer graph */
    size_t n_made;
} mlo_roller;

/* ---- names, nodes, constants ---------------------------------------------- */

static const char *mlo_name_free(mlo *m, mlo_map *names, const char *wanted) {
    const char *s = mlo_intern(m, wanted);
    for (int i = 1; s && mlo_map_get(names, s); i++) s = mlo_format(m, "%s_%d", wanted, i);
    if (s) mlo_map_put(m, names, s, (void *)(uintptr_t)s);
    return s;
}

/* A node with one output, and one input or two (b NULL). What lacked memory is NULL and is passed
 * on: who adds the node hears of it. */
static mlo_node *mlo_roll_node(
    mlo_roller *r, const char *op, const char *output, const char *a, const char *b) {
    mlo_node *n = mlo_node_new(r->m, op, output);
    mlo_node_output(r->m, n, output);
    mlo_node_input(r->m, n, a);
    mlo_node_input(r->m, n, b);
    return n;
}

static const char *mlo_roll_ints(
    mlo_roller *r, const char *wanted, const int64_t *ints, int64_t count) {
    const char *name = mlo_name_free(r->m, r->names, wanted);
    return mlo_graph_init(r->m, r->g, mlo_tensor_of_ints(r->m, name, ints, count)) ? NULL : name;
}

/* One number (count 1: as a list), by a name that all who want it share. */
static const char *mlo_roll_number(mlo_roller *r, const char *name, int64_t number, int count) {
    name = mlo_intern(r->m, name);
    return mlo_map_get(r->names, name) ? name : mlo_roll_ints(r, name, &number, count);
}

static int mlo_roll_info(mlo_roller *r, mlo_graph *g, const char *name, const mlo_form *f) {
    /* the result of an unknown operator has no type to declare */
    if (f->dtype) MLO_PUSH(r->m, g->info, g->n_info, mlo_info_new(r->m, name, f));
    return mlo_failed(r->m);
}

static mlo_form mlo_form_stacked(const mlo_form *f, int64_t n) {
    mlo_form s = *f;
    if (f->rank < 0 || f->rank >= MLO_MAX_RANK) {
        s.rank = -1;
        return s;
    }
    s.rank = f->rank + 1;
    s.dims[0] = n;
    for (int i = 0; i < f->rank; i++) s.dims[i + 1] = f->dims[i];
    return s;
}

/* ---- comparing instances -------------------------------------------------- */

static int mlo_roll_at(const mlo_roller *r, int k, int p) { return r->node[k * r->size + p]; }

/* Slot s of the node at position p of instance k, its operands in instance 0's order. */
static int mlo_roll_slot(const mlo_roller *r, int k, int p, int s) {
    int x = mlo_roll_at(r, k, p);
    return r->net->in_at[x] + (r->swap[x] ? 1 - s : s);
}

/* How many iterations before k the value in slot i was made (0: in the same one); MLO_NONE when it
 * was made outside of this loop. */
static int mlo_roll_lag(const mlo_roller *r, int i, int k) {
    int p = r->net->from[i];
    return p >= 0 && r->loop_of[p] == r->self ? k - r->instance[p] : MLO_NONE;
}

/* Do slot i of instance k and slot j of instance 1 play the same role? 0: no; the larger, the
 * surer. */
static int mlo_roll_fits(const mlo_roller *r, int i, int k, int j) {
    const mlo_value *v = r->net->in[i], *w = r->net->in[j];
    if (!v || !w) return v == w;
    int a = mlo_roll_lag(r, i, k);
    int b = mlo_roll_lag(r, j, 1);
    int p = r->net->from[i];
    int q = r->net->from[j];
    if (b == 0 || (b == 1 && k > 0))
        return a == b && r->position[p] == r->position[q] && v->output == w->output ? 8 : 0;
    if (a != MLO_NONE || (b != MLO_NONE && b != 1)) return 0;
    if (mlo_form_differs(v, w)) return 0;
    return v == w ? 6 : (v->tensor != NULL) == (w->tensor != NULL) ? 3 : 1;
}

/* Fails, since node x of instance k differs from node y of instance `like`: in these slots, or in
 * itself (slots MLO_NONE). */
static int mlo_roll_differs(
    const mlo_roller *r, int k, int x, int slot_x, int like, int y, int slot_y) {
    mlo_miss miss = { x, y, slot_x, slot_y, 0, 0, k };
    return mlo_fail(r->m, MLO_E_LOOP, r->g->node[x], "%s: not as in the other layers: %s", r->name,
        mlo_difference(r->m, r->net, &miss, 0, mlo_format(r->m, "layer %d", like)));
}

/* Decides the operand order of every node, and fails where an instance differs from the others. */
static int mlo_roll_compare(mlo_roller *r, uint8_t *swap) {
    const mlo_attr *which[2];
    for (int p = 0; p < r->size; p++) {
        int first = mlo_roll_at(r, 0, p);
        int one = mlo_roll_at(r, 1, p);
        int n = mlo_slot_count(r->net, one);
        int base = r->net->in_at[one];
        for (int k = 0; k < r->iterations; k++) {
            int x = mlo_roll_at(r, k, p);
            int at = r->net->in_at[x];
            int straight = 0;
            int crossed = 0;
            const mlo_node *a = r->g->node[first], *b = r->g->node[x];
            if (!mlo_op_same(a, b) || mlo_slot_count(r->net, x) != n
                || mlo_attr_difference(r->m, a, b, which))
                return mlo_roll_differs(r, k, x, MLO_NONE, 0, first, MLO_NONE);
            if (mlo_commutes(b)) {
                straight = mlo_roll_fits(r, at, k, base) && mlo_roll_fits(r, at + 1, k, base + 1)
                    ? mlo_roll_fits(r, at, k, base) + mlo_roll_fits(r, at + 1, k, base + 1)
                    : 0;
                crossed = mlo_roll_fits(r, at + 1, k, base) && mlo_roll_fits(r, at, k, base + 1)
                    ? mlo_roll_fits(r, at + 1, k, base) + mlo_roll_fits(r, at, k, base + 1)
                    : 0;
            }
            swap[x] = crossed > straight;
            for (int s = 0; s < n; s++) {
                const int slot = mlo_roll_slot(r, k, p, s);
                if (!mlo_roll_fits(r, slot, k, base + s))
                    return mlo_roll_differs(r, k, x, slot, 1, one, base + s);
            }
            for (size_t o = 0; o < a->n_output; o++)
                if (mlo_form_differs(
                        mlo_value_of(r->g, a->output[o]), mlo_value_of(r->g, b->output[o])))
                    return mlo_fail(r->m, MLO_E_LOOP, b,
                        "%s: instance %d makes %s, instance 0 makes %s", r->name, k,
                        mlo_form_text(r->m, mlo_value_of(r->g, b->output[o])),
                        mlo_form_text(r->m, mlo_value_of(r->g, a->output[o])));
        }
        /* the body has instance 0's order: where that one is swapped, swap all */
        if (swap[first])
            for (int k = r->iterations; k--;) swap[mlo_roll_at(r, k, p)] ^= 1;
    }
    return 0;
}

/* ---- roles ---------------------------------------------------------------- */

/* Is the constant at this input learned, which means set by training: a weight, a bias, the scale
 * of a norm or a quantizer? */
static int mlo_learned(const mlo_net *net, int x, int slot) {
    const mlo_node *n = net->g->node[x];
    const mlo_tensor *t = net->in[net->in_at[x] + slot]->tensor;
    int wide = 0, all = 1;
    for (size_t i = 0; i < t->n_dims; i++) wide += t->dims[i] > 1;
    if (mlo_named_with_trait(n, MLO_QUANTIZES)) return slot == 1 || (slot == 0 && t->n_dims > 0);
    if (!wide) return 0;
    for (int k = net->in_at[x]; k < net->in_at[x + 1]; k++)
        all &= !net->in[k] || net->in[k]->tensor != NULL;
    if (mlo_named_with_trait(n, MLO_MATRIX)) return 1;
    if (!mlo_dtype_is_float((mlo_dtype)t->data_type)) return 0;
    return all || (mlo_named_with_trait(n, MLO_TRAINED) && t->n_dims == 1);
}

enum { MLO_FEW = 8 };

static int mlo_value_same(mlo *m, const mlo_value *a, const mlo_value *b) {
    return a == b || (a->tensor && b->tensor && mlo_tensor_equal(m, a->tensor, b->tensor));
}

/* The role of an input made outside of the loop; v holds its value in each iteration. Single
 * numbers are not worth selecting. */
static mlo_role mlo_roll_role(mlo_roller *r, mlo_value **v, int x, int slot) {
    int distinct[MLO_FEW + 1], n = 0, elements = 1;
    if (v[0]->tensor && slot < (int)r->g->node[x]->n_input && mlo_learned(r->net, x, slot))
        return MLO_ROLE_STACKED;
    for (int k = 0; k < r->iterations && n <= MLO_FEW; k++) {
        int i = 0;
        while (i < n && !mlo_value_same(r->m, v[distinct[i]], v[k])) i++;
        if (i == n) distinct[n++] = k;
    }
    mlo_form f = mlo_form_of(v[0]);
    if (mlo_form_known(&f)) elements = mlo_form_count(&f) > 1;
    return n == 1                                       ? MLO_ROLE_INVARIANT
        : n < r->iterations && n <= MLO_FEW && elements ? MLO_ROLE_SELECTED
                                                        : MLO_ROLE_STACKED;
}

static const char *mlo_slot_title(mlo *m, const mlo_node *n, int slot, int constant) {
    static const char *const q[] = { "x", "scale", "zero_point", "bits" };
    if (!constant) return mlo_format(m, "in%d", slot);
    if (strstr(n->op, "Quant") || strstr(n->op, "quantize")) return slot < 4 ? q[slot] : "in4";
    if (strstr(n->op, "Normalization"))
        return slot == 1 ? "scale" : slot == 2 ? "bias" : mlo_format(m, "in%d", slot);
    if (mlo_named_with_trait(n, MLO_MATRIX))
        return slot == 1 ? "weight" : slot == 2 ? "bias" : mlo_format(m, "in%d", slot);
    return mlo_eq(n->op, "Add") ? "bias"
        : mlo_eq(n->op, "Mul")  ? "scale"
                                : mlo_format(m, "in%d", slot);
}

/* Gives slot s at position p its feed: an existing one with the same values, or a new one. */
static int mlo_roll_feed(mlo_roller *r, mlo_map *by_first, int p, int s) {
    mlo *m = r->m;
    int one = mlo_roll_slot(r, 1, p, s), x = mlo_roll_at(r, 0, p), lag = mlo_roll_lag(r, one, 1);
    mlo_feed f = { MLO_ROLE_CARRIED, MLO_NEW_N(m, mlo_value *, (size_t)r->iterations), 0, 0, NULL,
        NULL, p, s, 0 };
    if (!f.value) return mlo_failed(m);
    for (int k = 0; k < r->iterations; k++) f.value[k] = r->net->in[mlo_roll_slot(r, k, p, s)];
    if (lag == 1) {
        f.position = r->position[r->net->from[one]];
        f.output = f.value[1]->output;
    } else
        f.role = mlo_roll_role(r, f.value, x, s);
    f.learned = lag != 1 && f.role == MLO_ROLE_STACKED && s < (int)r->g->node[x]->n_input
        && f.value[0]->tensor && mlo_learned(r->net, x, s)
        && !mlo_named_with_trait(r->g->node[x], MLO_QUANTIZES);
    /* feeds that begin with the same value are chained through by_first: the index of the latest,
     * + 1 */
    int *chain = (int *)mlo_map_get(by_first, f.value[0]);
    for (int i = chain ? *chain : MLO_NONE; i >= 0; i--) {
        const mlo_feed *o = &r->feed[i];
        if (f.learned || o->learned || o->role != f.role
            || memcmp(o->value, f.value, (size_t)r->iterations * sizeof *f.value))
            continue;
        r->feed_of[r->net->in_at[x] + s] = i;
        return 0;
    }
    if (!chain) {
        if (!(chain = MLO_NEW(m, int)) || mlo_map_put(m, by_first, f.value[0], chain))
            return mlo_failed(m);
    }
    *chain = (int)r->n_feeds;
    r->feed_of[r->net->in_at[x] + s] = (int)r->n_feeds;
    return MLO_PUSH(m, r->feed, r->n_feeds, f) ? 0 : mlo_failed(m);
}

static int mlo_roll_feeds(mlo_roller *r) {
    mlo_map by_first = { NULL, 0, 0 };
    for (int p = 0; p < r->size; p++) {
        int x = mlo_roll_at(r, 0, p), n = mlo_slot_count(r->net, x);
        for (int s = 0; s < n; s++) {
            r->feed_of[r->net->in_at[x] + s] = MLO_NONE;
            if (!r->net->in[r->net->in_at[x] + s]
                || mlo_roll_lag(r, mlo_roll_slot(r, 1, p, s), 1) == 0)
                continue;
            if (mlo_roll_feed(r, &by_first, p, s)) return mlo_failed(r->m);
        }
    }
    return 0;
}

/* ---- stacks --------------------------------------------------------------- */

static int mlo_roll_made(mlo_roller *r, mlo_node *n) {
    MLO_PUSH(r->m, r->made, r->n_made, n);
    return mlo_failed(r->m);
}

/* Adds axis 0 (of size 1) to a value by Unsqueeze. */
static const char *mlo_roll_unsqueeze(mlo_roller *r, const char *value, const char *row) {
    mlo_node *n = mlo_roll_node(r, "Unsqueeze", row, value, mlo_roll_number(r, "mlo.axes0", 0, 1));
    return mlo_roll_made(r, n) ? NULL : row;
}

/* One value of a stack in a form that Concat takes: 4-bit integers as int8, and, with `rows`, a new
 * first axis. */
static const char *mlo_roll_part(mlo_roller *r, const mlo_value *v, int rows, int nibbles) {
    const char *name = v->name;
    if (nibbles) {
        name = mlo_name_free(r->m, r->names, mlo_format(r->m, "%s.%s.int8", r->name, v->name));
        mlo_node *cast = mlo_roll_node(r, "Cast", name, v->name, NULL);
        mlo_attr_int(r->m, cast, "to", MLO_INT8);
        mlo_roll_made(r, cast);
        mlo_form f = mlo_form_of(v);
        f.dtype = MLO_INT8;
        mlo_roll_info(r, r->g, name, &f);
    }
    if (!rows) return name;
    const char *row = mlo_name_free(
        r->m, r->names, mlo_format(r->m, "%s.%s.row", r->name, v->name));
    if (!v->tensor || v->tensor->n_dims) return mlo_roll_unsqueeze(r, name, row);
    const char *shape = mlo_roll_number(r, "mlo.shape1", 1, 1);
    return mlo_roll_made(r, mlo_roll_node(r, "Reshape", row, name, shape)) ? NULL : row;
}

/* Stacks n values along a new first axis; returns the stack's name. */
static const char *mlo_roll_stack(
    mlo_roller *r, mlo_value *const *value, int n, const char *wanted) {
    mlo *m = r->m;
    mlo_form f = mlo_form_of(value[0]);
    int constant = 1, nibbles = f.dtype == MLO_INT4 || f.dtype == MLO_UINT4;
    for (int k = 0; k < n; k++) constant &= value[k]->tensor != NULL;
    /* Either each value gets a first axis before the Concat (rows), or the Concat's result is
     * reshaped. Reshape cannot say a size of 0, and a shape of full rank has no room for an
     * axis. */
    int rows = !constant || f.rank < 1 || f.rank >= MLO_MAX_RANK || !mlo_form_count(&f);
    if (nibbles) f.dtype = MLO_INT8;
    const char *name = mlo_name_free(m, r->names, wanted);
    if (!name) return NULL;
    const char *rowed = rows ? name : mlo_name_free(m, r->names, mlo_format(m, "%s.rows", wanted));
    mlo_node *concat = mlo_roll_node(r, "Concat", rowed, NULL, NULL);
    if (mlo_attr_int(m, concat, "axis", 0)) return NULL;
    for (int k = 0; k < n; k++) {
        const char *part = NULL;
        for (int j = 0; j < k && rows && !part; j++)
            if (value[j] == value[k]) part = concat->input[j];
        if (!part) part = mlo_roll_part(r, value[k], rows, nibbles);
        if (mlo_node_input(m, concat, part)) return NULL;
    }
    mlo_form stacked = mlo_form_stacked(&f, n);
    if (mlo_roll_made(r, concat) || mlo_roll_info(r, r->g, name, &stacked)) return NULL;
    if (rows) return name;
    const char *shape = mlo_roll_ints(
        r, mlo_format(m, "%s.shape", wanted), stacked.dims, stacked.rank);
    mlo_roll_made(r, mlo_roll_node(r, "Reshape", name, rowed, shape));
    f.dims[0] *= n;
    return mlo_roll_info(r, r->g, rowed, &f) ? NULL : name;
}

/* ---- the body ------------------------------------------------------------- */

/* Declares a value of the body: with the given form, or else with that of an outer value. */
static int mlo_roll_declare(mlo_roller *r, mlo_value_info ***list, size_t *n, const char *name,
    const mlo_value *like, const mlo_form *form) {
    mlo_form f = form ? *form : mlo_form_of(like);
    mlo_value_info *v = mlo_info_new(r->m, name, &f);
    if (!v) return mlo_failed(r->m);
    /* keeps symbolic dimensions */
    if (!form && like->info && like->info->type && !like->tensor)
        v->type = like->info->type;
    else if (!f.dtype)
        v->type = NULL;
    return MLO_PUSH(r->m, *list, *n, v) ? 0 : mlo_failed(r->m);
}

/* What is taken from a stack is called as the feed, unless that is a 4-bit integer, which the stack
 * holds as int8; *form becomes what is taken. */
static const char *mlo_roll_taken(mlo_roller *r, const mlo_feed *f, mlo_form *form) {
    if (form->dtype != MLO_INT4 && form->dtype != MLO_UINT4) return f->name;
    form->dtype = MLO_INT8;
    return mlo_name_free(r->m, r->names, mlo_format(r->m, "%s.int8", f->name));
}

/* The Cast back, where the body took int8. */
static int mlo_roll_narrow(mlo_roller *r, const mlo_feed *f, const char *taken) {
    const mlo_form form = mlo_form_of(f->value[0]);
    if (taken == f->name) return 0;
    mlo_node *cast = mlo_roll_node(r, "Cast", f->name, taken, NULL);
    mlo_attr_int(r->m, cast, "to", form.dtype);
    MLO_TRY(mlo_graph_add(r->m, r->body, cast));
    return mlo_roll_declare(r, &r->body->info, &r->body->n_info, f->name, NULL, &form);
}

/* Builds a selected value: an index per iteration, and a Gather in the body. Equal lists of indices
 * share one scan input. */
static int mlo_roll_select(mlo_roller *r, mlo_feed *f) {
    mlo *m = r->m;
    mlo_value *distinct[MLO_FEW];
    int n = 0;
    int64_t *pick = MLO_NEW_N(m, int64_t, (size_t)r->iterations);
    if (!pick) return mlo_failed(m);
    for (int k = 0; k < r->iterations; k++) {
        int i = 0;
        while (i < n && !mlo_value_same(m, distinct[i], f->value[k])) i++;
        if (i == n) distinct[n++] = f->value[k];
        pick[k] = i;
    }
    mlo_text key = { m, NULL, 0, 0 };
    mlo_printf(&key, "%s.select", r->name);
    for (int k = 0; k < r->iterations; k++) mlo_printf(&key, ".%d", (int)pick[k]);
    const char *inner;
    const char *wanted = mlo_intern(m, mlo_or_empty(key.text));
    const char *index = wanted ? (const char *)mlo_map_get(r->names, wanted) : NULL;
    mlo_text_free(&key);
    if (!wanted) return mlo_failed(m);
    if (index)
        inner = mlo_format(m, "%s.i", wanted);
    else {
        const mlo_form scalar = { MLO_INT64, 0, { 0 } };
        index = mlo_roll_ints(r, wanted, pick, r->iterations);
        inner = mlo_name_free(m, r->names, mlo_format(m, "%s.i", wanted));
        mlo_node_input(m, r->scan, index);
        MLO_TRY(mlo_roll_declare(r, &r->body->input, &r->body->n_input, inner, NULL, &scalar));
    }
    const char *choices = mlo_format(m, "%s.%s.choices", r->name, f->value[0]->name);
    const char *stack = mlo_roll_stack(r, distinct, n, choices);
    mlo_form form = mlo_form_of(f->value[0]);
    const char *taken = mlo_roll_taken(r, f, &form);
    mlo_node *gather = mlo_roll_node(r, "Gather", taken, stack, inner);
    mlo_attr_int(m, gather, "axis", 0);
    MLO_TRY(mlo_graph_add(m, r->body, gather));
    MLO_TRY(mlo_roll_declare(
        r, &r->body->info, &r->body->n_info, taken, f->value[0], taken == f->name ? NULL : &form));
    return mlo_roll_narrow(r, f, taken);
}

/* Builds a stacked value: a scan input, and for 4-bit integers the Cast back. */
static int mlo_roll_scan_input(mlo_roller *r, mlo_feed *f) {
    mlo *m = r->m;
    mlo_form form = mlo_form_of(f->value[0]);
    const char *stack = mlo_roll_stack(
        r, f->value, r->iterations, mlo_format(m, "%s.%s.all", r->name, f->name));
    const char *taken = mlo_roll_taken(r, f, &form);
    MLO_TRY(mlo_node_input(m, r->scan, stack));
    MLO_TRY(mlo_roll_narrow(r, f, taken));
    return mlo_roll_declare(
        r, &r->body->input, &r->body->n_input, taken, f->value[0], taken == f->name ? NULL : &form);
}

/* ONNX Runtime refuses a Scan without scan inputs: adds one that counts iterations. */
static int mlo_roll_count(mlo_roller *r) {
    mlo *m = r->m;
    const mlo_form scalar = { MLO_INT64, 0, { 0 } };
    int64_t *count = MLO_NEW_N(m, int64_t, (size_t)r->iterations);
    if (!count) return mlo_failed(m);
    for (int k = 0; k < r->iterations; k++) count[k] = k;
    const char *index = mlo_format(m, "%s.iterations", r->name);
    mlo_node_input(m, r->scan, mlo_roll_ints(r, index, count, r->iterations));
    const char *inner = mlo_name_free(m, r->names, mlo_format(m, "%s.iteration", r->name));
    return mlo_roll_declare(r, &r->body->input, &r->body->n_input, inner, NULL, &scalar);
}

/* Names all feeds, and makes the Scan's inputs: first the states, then at least one scan input. */
static int mlo_roll_inputs(mlo_roller *r) {
    mlo *m = r->m;
    size_t states = 0;
    for (size_t i = 0; i < r->n_feeds; i++) {
        mlo_feed *f = &r->feed[i];
        const mlo_node *user = r->g->node[mlo_roll_at(r, 0, f->user)];
        const char *first = user->n_output ? user->output[0] : mlo_node_name(user);
        if (f->role == MLO_ROLE_INVARIANT) {
            f->name = f->value[0]->name;
            continue;
        }
        if (f->role == MLO_ROLE_CARRIED)
            f->name = states++ ? mlo_format(m, "%s.carried_%zu", r->name, states - 1)
                               : mlo_format(m, "%s.carried", r->name);
        else
            f->name = mlo_format(
                m, "%s.%s", first, mlo_slot_title(m, user, f->slot, f->value[0]->tensor != NULL));
        if (!(f->name = mlo_name_free(m, r->names, f->name))) return mlo_failed(m);
        if (f->role != MLO_ROLE_CARRIED) continue;
        mlo_value *like = mlo_value_of(
            r->g, r->g->node[mlo_roll_at(r, 0, f->position)]->output[f->output]);
        mlo_node_input(m, r->scan, f->value[0]->name);
        MLO_TRY(mlo_roll_declare(r, &r->body->input, &r->body->n_input, f->name, like, NULL));
    }
    for (size_t i = 0; i < r->n_feeds; i++) {
        if (r->feed[i].role == MLO_ROLE_STACKED && mlo_roll_scan_input(r, &r->feed[i]))
            return mlo_failed(m);
        if (r->feed[i].role == MLO_ROLE_SELECTED && mlo_roll_select(r, &r->feed[i]))
            return mlo_failed(m);
    }
    if (r->scan->n_input == states) MLO_TRY(mlo_roll_count(r));
    return mlo_attr_int(m, r->scan, "num_scan_inputs", (int64_t)(r->scan->n_input - states));
}

/* Is output o of the node at position p of instance k used outside of this loop? */
static int mlo_roll_used_outside(const mlo_roller *r, int k, int p, int o) {
    int x = mlo_roll_at(r, k, p);
    const mlo_value *v = mlo_value_of(r->g, r->g->node[x]->output[o]);
    if (!v) return 0; /* an output that is left out */
    if (v->is_output) return 1;
    for (int u = r->net->use_at[x]; u < r->net->use_at[x + 1]; u++)
        if (r->net->in[r->net->use[u]] == v
            && r->loop_of[r->net->reader[r->net->use[u]]] != r->self)
            return 1;
    return 0;
}

/* What a value of instance 0 is called in the body: its own name, unless the outer graph keeps that
 * name for a tap. */
static const char *mlo_roll_inner(mlo_roller *r, const char *name) {
    const char *bound = (const char *)mlo_map_get(&r->bound, mlo_value_of(r->g, name));
    return bound ? bound : name;
}

static int mlo_roll_rename(mlo *m, mlo_node *n, const mlo_map *rename);

/* Copies of declarations, names replaced. NULL: no memory. */
static mlo_value_info **mlo_infos_renamed(
    mlo *m, mlo_value_info *const *list, size_t n, const mlo_map *rename) {
    mlo_value_info **copy = MLO_NEW_N(m, mlo_value_info *, mlo_room(n));
    for (size_t i = 0; copy && i < n; i++) {
        const char *to = (const char *)mlo_map_get(rename, list[i]->name);
        if (!(copy[i] = MLO_NEW(m, mlo_value_info))) return NULL;
        *copy[i] = *list[i];
        if (to) copy[i]->name = to;
    }
    return copy;
}

/* A copy of a graph, a body node's, say, in which the names of outer values are replaced. */
static mlo_graph *mlo_graph_renamed(mlo *m, const mlo_graph *g, const mlo_map *rename) {
    mlo_graph *c = MLO_NEW(m, mlo_graph);
    if (!c) return NULL;
    *c = *g;
    memset(&c->values, 0, sizeof c->values); /* an index of its own, later */
    if (!(c->node = MLO_NEW_N(m, mlo_node *, mlo_room(g->n_node)))
        || !(c->input = mlo_infos_renamed(m, g->input, g->n_input, rename))
        || !(c->info = mlo_infos_renamed(m, g->info, g->n_info, rename))
        || !(c->output = mlo_infos_renamed(m, g->output, g->n_output, rename)))
        return NULL;
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = MLO_NEW(m, mlo_node);
        if (!n) return NULL;
        *n = *g->node[i];
        c->node[i] = n;
        if (!(n->input = MLO_NEW_N(m, const char *, mlo_room(n->n_input)))
            || !(n->output = MLO_NEW_N(m, const char *, mlo_room(n->n_output))))
            return NULL;
        for (size_t k = 0; k < n->n_output; k++) n->output[k] = g->node[i]->output[k];
        for (size_t k = 0; k < n->n_input; k++) {
            const char *to = (const char *)mlo_map_get(rename, g->node[i]->input[k]);
            n->input[k] = to ? to : g->node[i]->input[k];
        }
        if (mlo_roll_rename(m, n, rename)) return NULL;
    }
    return c;
}

/* An attribute whose graphs are renamed copies; itself where it has none. */
static mlo_attr *mlo_attr_renamed(mlo *m, mlo_attr *from, const mlo_map *rename) {
    if (!from->g && !from->n_graphs) return from;
    mlo_attr *a = MLO_NEW(m, mlo_attr);
    if (!a) return NULL;
    *a = *from;
    if (from->g && !(a->g = mlo_graph_renamed(m, from->g, rename))) return NULL;
    if (!(a->graphs = MLO_NEW_N(m, mlo_graph *, mlo_room(from->n_graphs)))) return NULL;
    for (size_t k = 0; k < from->n_graphs; k++)
        if (!(a->graphs[k] = mlo_graph_renamed(m, from->graphs[k], rename))) return NULL;
    return a;
}

/* Replaces a node's subgraphs by renamed copies. */
static int mlo_roll_rename(mlo *m, mlo_node *n, const mlo_map *rename) {
    mlo_attr **old = n->attr;
    if (!(n->attr = MLO_NEW_N(m, mlo_attr *, mlo_room(n->n_attr)))) return mlo_failed(m);
    for (size_t k = 0; k < n->n_attr; k++)
        if (!(n->attr[k] = mlo_attr_renamed(m, old[k], rename))) return mlo_failed(m);
    return 0;
}

/* Adds a copy of instance 0's node at position p to the body. */
static int mlo_roll_copy(mlo_roller *r, int p) {
    mlo *m = r->m;
    int x = mlo_roll_at(r, 0, p), slots = mlo_slot_count(r->net, x);
    const mlo_node *from = r->g->node[x];
    mlo_node *n = MLO_NEW(m, mlo_node);
    mlo_map rename = { NULL, 0, 0 };
    if (!n) return mlo_failed(m);
    *n = *from;
    n->input = NULL;
    n->output = NULL;
    n->meta = NULL;
    n->n_input = n->n_output = n->n_meta = 0;
    for (int s = 0; s < slots; s++) {
        int at = r->net->in_at[x] + s, feed = r->feed_of[at];
        const mlo_value *v = r->net->in[at];
        const char *name = !v ? "" : feed >= 0 ? r->feed[feed].name : mlo_roll_inner(r, v->name);
        if (s >= (int)from->n_input) {
            if (mlo_map_put(m, &rename, v->name, (void *)(uintptr_t)name)) return mlo_failed(m);
        } else if (mlo_node_input(m, n, name))
            return mlo_failed(m);
    }
    for (size_t o = 0; o < from->n_output; o++) {
        const char *name = mlo_roll_inner(r, from->output[o]);
        const mlo_value *v = mlo_value_of(r->g, from->output[o]);
        if (mlo_node_output(m, n, mlo_or_empty(name))) return mlo_failed(m);
        if (v && v->info && mlo_roll_declare(r, &r->body->info, &r->body->n_info, name, v, NULL))
            return mlo_failed(m);
    }
    for (size_t k = 0; k < from->n_meta; k++) {
        if (mlo_is_mark(from->meta[k].key)) continue;
        if (!MLO_PUSH(m, n->meta, n->n_meta, from->meta[k])) return mlo_failed(m);
    }
    if (rename.used && mlo_roll_rename(m, n, &rename)) return mlo_failed(m);
    return mlo_graph_add(m, r->body, n);
}

/* ---- outputs -------------------------------------------------------------- */

/* Makes output o at position p an output of the body, and of the Scan under the name `outer`. A
 * body value that is an output already goes through an Identity. */
static int mlo_roll_output(mlo_roller *r, int p, int o, const char *outer) {
    mlo *m = r->m;
    const char *old = r->g->node[mlo_roll_at(r, 0, p)]->output[o], *name = mlo_roll_inner(r, old);
    mlo_value *v = mlo_value_of(r->g, old);
    for (size_t i = 0; i < r->body->n_output; i++)
        if (mlo_eq(r->body->output[i]->name, name)) {
            const char *copy = mlo_name_free(m, r->names, mlo_format(m, "%s.copy", name));
            MLO_TRY(mlo_graph_add(m, r->body, mlo_roll_node(r, "Identity", copy, name, NULL)));
            name = copy;
            break;
        }
    if (mlo_roll_declare(r, &r->body->output, &r->body->n_output, name, v, NULL))
        return mlo_failed(m);
    return mlo_node_output(m, r->scan, outer);
}

static int mlo_roll_states(mlo_roller *r) {
    mlo *m = r->m;
    for (size_t i = 0; i < r->n_feeds; i++) {
        mlo_feed *f = &r->feed[i];
        if (f->role != MLO_ROLE_CARRIED) continue;
        const char *last =
            r->g->node[mlo_roll_at(r, r->iterations - 1, f->position)]->output[f->output];
        for (size_t k = 0; k < r->scan->n_output; k++)
            if (mlo_eq(r->scan->output[k], last))
                last = mlo_name_free(m, r->names, mlo_format(m, "%s.last", f->name));
        MLO_TRY(mlo_roll_output(r, f->position, f->output, last));
    }
    return 0;
}

/* Makes the taps of output o at position p: a stack of all iterations' values, and a Gather for
 * each one that is used outside. */
static int mlo_roll_tap(mlo_roller *r, int p, int o) {
    mlo *m = r->m;
    int carried = 0, any = 0;
    for (size_t i = 0; i < r->n_feeds; i++)
        carried |= r->feed[i].role == MLO_ROLE_CARRIED && r->feed[i].position == p
            && r->feed[i].output == o;
    int upto = r->iterations - carried;
    for (int k = 0; k < upto; k++) any |= mlo_roll_used_outside(r, k, p, o);
    if (!any) return 0;
    const char *first = r->g->node[mlo_roll_at(r, 0, p)]->output[o];
    const char *stack = mlo_name_free(m, r->names, mlo_format(m, "%s.%s.taps", r->name, first));
    mlo_form f = mlo_form_of(mlo_value_of(r->g, first));
    mlo_form stacked = mlo_form_stacked(&f, r->iterations);
    mlo_roll_output(r, p, o, stack);
    MLO_TRY(mlo_roll_info(r, r->g, stack, &stacked));
    for (int k = 0; k < upto; k++) {
        if (!mlo_roll_used_outside(r, k, p, o)) continue;
        const char *name = r->g->node[mlo_roll_at(r, k, p)]->output[o];
        const char *index = mlo_roll_number(r, mlo_format(m, "mlo.index%d", k), k, -1);
        mlo_node *n = mlo_roll_node(r, "Gather", name, stack, index);
        mlo_attr_int(m, n, "axis", 0);
        MLO_TRY(mlo_roll_made(r, n));
    }
    return 0;
}

/* The outer graph keeps the names of instance 0's taps: gives these values new names in the
 * body. */
static int mlo_roll_bind(mlo_roller *r) {
    for (int p = 0; p < r->size; p++) {
        const mlo_node *n = r->g->node[mlo_roll_at(r, 0, p)];
        for (size_t o = 0; o < n->n_output; o++) {
            if (!mlo_roll_used_outside(r, 0, p, (int)o)) continue;
            const char *name = mlo_name_free(
                r->m, r->names, mlo_format(r->m, "%s.%s", r->name, n->output[o]));
            MLO_TRY(mlo_map_put(r->m, &r->bound, mlo_map_get(&r->g->values, n->output[o]),
                (void *)(uintptr_t)name));
        }
    }
    return 0;
}

/* Writes metadata for people and later stages: the number of iterations, and the instances'
 * scopes. */
static int mlo_roll_describe(mlo_roller *r) {
    mlo *m = r->m;
    mlo_node *n = r->scan;
    const char *all = NULL, *text = mlo_format(m, "%d", r->iterations);
    mlo_text scopes = { m, NULL, 0, 0 };
    for (int k = 0; k < r->iterations; k++) {
        const char *meet = NULL;
        for (int p = 0; p < r->size; p++) {
            const mlo_node *x = r->g->node[mlo_roll_at(r, k, p)];
            const char *s = mlo_meta_get(x->meta, x->n_meta, mlo_key_scope);
            if (s) meet = meet ? mlo_scope_meet(m, meet, s) : s;
        }
        if (!k) all = meet;
        mlo_printf(&scopes, "%s%s", k ? " " : "", mlo_or_empty(meet));
    }
    if (text && !m->error.code) mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_iterations, text);
    if (all && !m->error.code) {
        mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_scope, all);
        mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_instances, scopes.text);
    }
    mlo_text_free(&scopes);
    return mlo_failed(m);
}

/* Drops the body's value_info of outputs: an output declares its own type, and strict readers
 * refuse a second declaration. */
static void mlo_roll_once(mlo_graph *body) {
    size_t kept = 0;
    for (size_t i = 0; i < body->n_info; i++) {
        size_t k = 0;
        while (k < body->n_output && !mlo_eq(body->output[k]->name, body->info[i]->name)) k++;
        if (k == body->n_output) body->info[kept++] = body->info[i];
    }
    body->n_info = kept;
}

static int mlo_roll_build(mlo_roller *r) {
    mlo *m = r->m;
    r->scan = mlo_node_new(m, "Scan", r->name);
    r->body = MLO_NEW(m, mlo_graph);
    if (!r->scan || !r->body || !(r->body->name = mlo_format(m, "%s_body", r->name)))
        return mlo_failed(m);
    if (mlo_roll_bind(r) || mlo_roll_inputs(r)) return mlo_failed(m);
    for (int p = 0; p < r->size; p++)
        if (mlo_roll_copy(r, p)) return mlo_failed(m);
    if (mlo_roll_states(r)) return mlo_failed(m);
    for (int p = 0; p < r->size; p++)
        for (size_t o = 0; o < r->g->node[mlo_roll_at(r, 0, p)]->n_output; o++)
            if (mlo_roll_tap(r, p, (int)o)) return mlo_failed(m);
    mlo_roll_once(r->body);
    if (mlo_attr_graph(m, r->scan, "body", r->body) || mlo_roll_describe(r)) return mlo_failed(m);
    return mlo_roll_made(r, r->scan);
}

/* ---- the stage ------------------------------------------------------------ */

typedef struct {
    const char *name;
    int iterations;
    int size; /* nodes per iteration */
    int first; /* the first node that is marked */
    int count; /* nodes that are marked */
    int *node; /* as in mlo_layers */
} mlo_marked;

static int mlo_mark_number(const mlo_node *n, const char *key) {
    const char *s = mlo_meta_get(n->meta, n->n_meta, key);
    char *end;
    long v = s ? strtol(s, &end, 10) : -1;
    return s && *s && !*end && v >= 0 && v < INT_MAX / 2 ? (int)v : MLO_NONE;
}

/* Reads extract's marks: the loops, in the order of their first nodes, and per node its loop,
 * instance and position. */
static int mlo_marks_read(mlo *m, mlo_graph *g, mlo_marked **loops, size_t *n, int *loop_of,
    int *instance, int *position) {
    for (size_t i = 0; i < g->n_node; i++) {
        const char *name = mlo_meta_get(g->node[i]->meta, g->node[i]->n_meta, mlo_key_loop);
        size_t l = 0;
        loop_of[i] = MLO_NONE;
        if (!name) continue;
        instance[i] = mlo_mark_number(g->node[i], mlo_key_instance);
        position[i] = mlo_mark_number(g->node[i], mlo_key_position);
        if (instance[i] < 0 || position[i] < 0 || instance[i] >= (int)g->n_node
            || position[i] >= (int)g->n_node)
            return mlo_fail(m, MLO_E_LOOP, g->node[i],
                "is marked for %s, but its mlo.instance or mlo.position is no number in range; run "
                "extract again",
                name);
        while (l < *n && !mlo_eq((*loops)[l].name, name)) l++;
        if (l == *n) {
            mlo_marked one = { name, 0, 0, (int)i, 0, NULL };
            if (!MLO_PUSH(m, *loops, *n, one)) return mlo_failed(m);
        }
        mlo_marked *k = &(*loops)[l];
        if (instance[i] >= k->iterations) k->iterations = instance[i] + 1;
        if (position[i] >= k->size) k->size = position[i] + 1;
        k->count++;
        loop_of[i] = (int)l;
    }
    for (size_t l = 0; l < *n; l++) {
        mlo_marked *k = &(*loops)[l];
        if (k->iterations < 2)
            return mlo_fail(m, MLO_E_LOOP, g->node[k->first],
                "%s has %d iteration; a loop needs two", k->name, k->iterations);
        if ((int64_t)k->iterations * k->size != k->count)
            return mlo_fail(m, MLO_E_LOOP, g->node[k->first],
                "%s has %d instances of %d nodes, but %d nodes are marked; run extract again",
                k->name, k->iterations, k->size, k->count);
        if (!(k->node = MLO_NEW_N(m, int, (size_t)k->count))) return mlo_failed(m);
        for (int i = 0; i < k->count; i++) k->node[i] = MLO_NONE;
    }
    for (size_t i = 0; i < g->n_node; i++) {
        if (loop_of[i] < 0) continue;
        mlo_marked *k = &(*loops)[loop_of[i]];
        int *at = &k->node[instance[i] * k->size + position[i]];
        if (*at >= 0)
            return mlo_fail(m, MLO_E_LOOP, g->node[i],
                "%s has two nodes at position %d of instance %d", k->name, position[i],
                instance[i]);
        *at = (int)i;
    }
    return 0;
}

/* Drops what is no longer used: types of values that are gone, and initializers that only the
 * replaced nodes read. */
static int mlo_roll_tidy(mlo *m, mlo_graph *g, const mlo_map *used_before) {
    size_t kept = 0;
    for (size_t i = 0; i < g->n_info; i++)
        if (mlo_map_get(&g->values, g->info[i]->name)) g->info[kept++] = g->info[i];
    g->n_info = kept;
    kept = 0;
    for (size_t i = 0; i < g->n_init; i++) {
        const mlo_value *v = (const mlo_value *)mlo_map_get(&g->values, g->init[i]->name);
        if (v->n_uses || !mlo_map_get(used_before, g->init[i]->name)) g->init[kept++] = g->init[i];
    }
    g->n_init = kept;
    return mlo_index(m, g);
}

static int mlo_roll_loop(mlo *m, mlo_net *net, const mlo_marked *k, int self, const int *loop_of,
    const int *instance, const int *position, uint8_t *swap, int *feed_of, mlo_map *names,
    mlo_roller *r) {
    memset(r, 0, sizeof *r);
    r->m = m;
    r->g = net->g;
    r->net = net;
    r->name = k->name;
    r->iterations = k->iterations;
    r->size = k->size;
    r->node = k->node;
    r->loop_of = loop_of;
    r->instance = instance;
    r->position = position;
    r->self = self;
    r->swap = swap;
    r->feed_of = feed_of;
    r->names = names;
    if (mlo_opset_of(m) < MLO_LIFTED)
        return mlo_fail_at(m, MLO_E_UNSUPPORTED, k->name,
            "a loop takes opset 13; convert the model from %d to that or a later one",
            mlo_opset_of(m));
    if (mlo_roll_compare(r, swap) || mlo_roll_feeds(r)) return mlo_failed(m);
    return mlo_roll_build(r);
}

/* Every name of a graph and of the graphs inside it. */
static int mlo_names_taken(mlo *m, const mlo_graph *g, mlo_map *names) {
    for (size_t i = 0; i < g->values.size; i++)
        if (g->values.slot[i].key)
            MLO_TRY(mlo_map_put(
                m, names, g->values.slot[i].key, (void *)(uintptr_t)g->values.slot[i].key));
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t a = 0; a < g->node[i]->n_attr; a++) {
            if (g->node[i]->attr[a]->g) MLO_TRY(mlo_names_taken(m, g->node[i]->attr[a]->g, names));
            for (size_t k = 0; k < g->node[i]->attr[a]->n_graphs; k++)
                MLO_TRY(mlo_names_taken(m, g->node[i]->attr[a]->graphs[k], names));
        }
    return 0;
}

/* The model's own loops are as those that are made here. */
static int mlo_roll_own(mlo *m, mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = g->node[i];
        const size_t stacks = mlo_scan_stacks(n);
        const mlo_form f = mlo_form_of(
            stacks && stacks <= n->n_input ? mlo_value_of(g, n->input[n->n_input - stacks]) : NULL);
        if (!mlo_is_scan(n) || f.rank < 1 || f.dims[0] < 1) continue;
        MLO_TRY(mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_iterations,
            mlo_format(m, "%lld", (long long)f.dims[0])));
    }
    return 0;
}

/* Rolls the marked loops of one graph. */
static int mlo_roll_graph(mlo *m, mlo_graph *g, mlo_map *names) {
    mlo_net *net = mlo_net_of(m, g);
    mlo_marked *loops = NULL;
    size_t n = 0, slots;
    if (!net) return mlo_failed(m);
    slots = (size_t)net->in_at[net->n] + 1;
    int *loop_of = MLO_NEW_N(m, int, (size_t)net->n + 1);
    int *instance = MLO_NEW_N(m, int, (size_t)net->n + 1);
    int *position = MLO_NEW_N(m, int, (size_t)net->n + 1);
    int *feed_of = MLO_NEW_N(m, int, slots);
    uint8_t *swap = MLO_NEW_N(m, uint8_t, (size_t)net->n + 1);
    if (m->error.code || mlo_marks_read(m, g, &loops, &n, loop_of, instance, position))
        return mlo_failed(m);
    if (!n && mlo_own_loop(g, "Scan")) return mlo_roll_own(m, g);
    if (!n)
        return mlo_fail_at(
            m, MLO_E_LOOP, NULL, "no node is marked as part of a loop; run extract first");
    mlo_map used = { NULL, 0, 0 };
    for (size_t i = 0; i < g->n_init; i++) {
        const mlo_value *v = mlo_value_of(g, g->init[i]->name);
        if (v->n_uses) mlo_map_put(m, &used, g->init[i]->name, (void *)(uintptr_t)1);
    }
    mlo_roller *roller = MLO_NEW_N(m, mlo_roller, n);
    mlo_node **nodes = NULL;
    size_t n_nodes = 0;
    if (!roller || m->error.code) return mlo_failed(m);
    for (size_t l = 0; l < n; l++)
        if (mlo_roll_loop(m, net, &loops[l], (int)l, loop_of, instance, position, swap, feed_of,
                names, &roller[l]))
            return mlo_failed(m);
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t l = 0; l < n; l++)
            for (size_t k = 0; loops[l].first == (int)i && k < roller[l].n_made; k++)
                if (!MLO_PUSH(m, nodes, n_nodes, roller[l].made[k])) return mlo_failed(m);
        if (loop_of[i] < 0 && !MLO_PUSH(m, nodes, n_nodes, g->node[i])) return mlo_failed(m);
    }
    g->node = nodes;
    g->n_node = n_nodes;
    if (mlo_sort(m, g, 0) || mlo_index(m, g)) return mlo_failed(m);
    return mlo_roll_tidy(m, g, &used);
}

/* Rolls what repeats within the bodies of the loops just made, and within those bodies in turn. */
static int mlo_roll_inside(mlo *m, mlo_graph *g, mlo_map *names) {
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_attr *body = mlo_is(g->node[i], "Scan")
                && mlo_meta_get(g->node[i]->meta, g->node[i]->n_meta, mlo_key_iterations)
            ? mlo_attr_of(g->node[i], "body")
            : NULL;
        size_t n = 0;
        if (!body) continue;
        MLO_TRY(mlo_extract_inner(m, body->g, mlo_node_name(g->node[i]), &n));
        if (n) MLO_TRY(mlo_roll_graph(m, body->g, names));
        if (n) MLO_TRY(mlo_roll_inside(m, body->g, names));
    }
    return 0;
}

/* The stage; finn.c may rewrite the Scans in FINN's form. */
static int mlo_roll(mlo *m) {
    mlo_graph *g = m->model->graph;
    mlo_map names = { NULL, 0, 0 };
    MLO_TRY(mlo_names_taken(m, g, &names));
    MLO_TRY(mlo_roll_graph(m, g, &names));
    if (!mlo_opt(m, "nested")) return 0;
    MLO_TRY(mlo_roll_inside(m, g, &names));
    return mlo_index(m, g);
}

/* Reports one loop, and the loops in its body. */
static void mlo_roll_report_loop(
    mlo *m, mlo_text *out, const mlo_node *s, const char *parent, int *n) {
    const char *iterations = mlo_meta_get(s->meta, s->n_meta, mlo_key_iterations);
    const char *scopes = mlo_meta_get(s->meta, s->n_meta, mlo_key_instances);
    const mlo_graph *body = mlo_graph_of(s, "body");
    if (!mlo_is_scan(s) || !iterations) return;
    size_t inputs = mlo_scan_stacks(s), carried = s->n_input - inputs;
    mlo_puts(out, (*n)++ ? ",{\"name\":" : "{\"name\":");
    mlo_report_string(out, mlo_node_name(s));
    mlo_puts(out, ",\"parent\":");
    if (parent)
        mlo_report_string(out, parent);
    else
        mlo_puts(out, "null");
    mlo_printf(out,
        ",\"iterations\":%s,\"body_nodes\":%zu,\"carried\":%zu,\"per_iteration\":%zu,\"taps\":%zu,"
        "\"instances\":[",
        iterations, body->n_node, carried, inputs, s->n_output - carried);
    for (const char *p = scopes; p && *p;) {
        size_t len = strcspn(p, " ");
        mlo_report_string(out, mlo_intern_n(m, p, len));
        p += len + (p[len] == ' ');
        if (*p) mlo_puts(out, ",");
    }
    mlo_puts(out, "]}");
    for (size_t i = 0; i < body->n_node; i++)
        mlo_roll_report_loop(m, out, body->node[i], mlo_node_name(s), n);
}

/* Writes the report: every loop with its counts and the scopes of its instances; then what extract
 * considered. */
static int mlo_roll_report(mlo *m, mlo_text *out) {
    mlo_graph *g = m->model->graph;
    const char *considered = mlo_meta_get(m->model->meta, m->model->n_meta, mlo_key_extract);
    int n = 0;
    mlo_puts(out, "{\"loops\":[");
    for (size_t i = 0; i < g->n_node; i++) mlo_roll_report_loop(m, out, g->node[i], NULL, &n);
    mlo_printf(out, "],\"considered\":");
    mlo_puts(out, considered ? considered : "null");
    mlo_puts(out, "}\n");
    return mlo_failed(m);
}
