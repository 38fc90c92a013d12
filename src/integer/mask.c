/* mask: proves what an attention's additive mask hides, or refuses it in a person's words.
 *
 * in:  a mask as the body reads it: [.., T, T] or smaller, made of constants and model inputs, in
 *     the body or around it.
 * out: which keys a query may see by their places, in each iteration: all, those up to itself
 *     (causal), or those of a band around it; and a value of the outer graph with one number per
 *     key: 0 where the key counts, hugely negative where it doesn't. What is neither becomes a bias:
 *     numbers of each iteration, head, query and key.
 *
 * How: every element is traced to what it is computed from, as a symbol. Equal operations on equal
 * symbols are equal symbols; a symbol knows the least and the most that it can be. What is at most
 * -10000 whatever the inputs are is hidden. The hidden elements have to be those outside of a
 * band, one by one, and what is left in a column has to be one symbol: the key's own. If that is not
 * so, each element has to be the key's own symbol plus a number, which is the bias, or be hidden.
 * What all keys of a row have in common is taken off, as a softmax does not see it: ALiBi, a slope
 * times the distance, is then a slope times the key, the same for all queries.
 *
 * invariant: what is proved holds for any input whose integer masks are 0 and 1 (the inputs that
 *     have `mask` in their names). Sample data prove nothing here. One wrong element is one too
 *     many: it is named.
 * example: Where(And(Range(T) <= Reshape(Range(T), [T, 1]), attention_mask != 0), 0, -3.4e38) is
 *     causal, and its diagonal is the key mask.
 * cost: O(elements) for each node between the inputs and the mask; for each iteration, where it
 *     differs from layer to layer.
 */

/* ---- out of the body ------------------------------------------------------ */

/* What the first iteration gets of a scan input, in the outer graph as `outside`; `list` takes the
 * node. NULL: failed. */
static const char *mlo_hoist_slice(
    mlo *m, mlo_scan *s, const char *name, const char *outside, mlo_graph *list) {
    for (size_t k = s->n_state; k < s->body->n_input; k++) {
        if (s->body->input[k]->name != name) continue;
        mlo_node bare = *s->node;
        bare.n_meta = 0;
        mlo_expansion x = { m, s->outer, &bare, mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
        const char *first = mlo_x_whole(&x, 0);
        mlo_node *n = mlo_node_new(m, "Gather", outside);
        if (!first || !n || mlo_node_input(m, n, s->node->input[k]) || mlo_node_input(m, n, first)
            || mlo_node_output(m, n, outside) || !mlo_index_value(m, s->outer, outside))
            return NULL;
        return mlo_graph_add(m, list, n) ? NULL : outside;
    }
    mlo_fail_at(m, MLO_E_UNSUPPORTED, name, "an attention mask that the layers themselves compute");
    return NULL;
}

/* Moves what makes a value of the body in front of the loop, as the first iteration has it; `list`
 * takes the nodes. Its name there; NULL: failed. */
static const char *mlo_hoist(mlo *m, mlo_scan *s, const char *name, mlo_graph *list, int depth) {
    mlo_value *v = mlo_value_of(s->body, name);
    if (v && v->graph != s->body) return name;
    const char *outside = mlo_format(m, "%s_outside", name);
    if (!outside || mlo_value_of(s->outer, outside)) return outside;
    if (v && v->tensor) {
        mlo_tensor *t = MLO_NEW(m, mlo_tensor);
        if (!t) return NULL;
        *t = *v->tensor;
        t->name = outside;
        return mlo_graph_init(m, s->outer, t) || !mlo_index_value(m, s->outer, outside) ? NULL
                                                                                        : outside;
    }
    if (v && v->is_input) return mlo_hoist_slice(m, s, name, outside, list);
    int inner = v && v->producer && depth <= 64;
    for (size_t i = 0; inner && i < v->producer->n_attr; i++) inner = !v->producer->attr[i]->g;
    if (!inner) {
        mlo_fail_at(m, MLO_E_UNSUPPORTED, name,
            "an attention mask that is computed inside of the loop in a way that mlo cannot move "
            "in front of it");
        return NULL;
    }
    mlo_node *n = mlo_node_new(
        m, v->producer->op, mlo_format(m, "%s_outside", mlo_node_name(v->producer)));
    if (!n) return NULL;
    n->domain = v->producer->domain;
    n->attr = v->producer->attr;
    n->n_attr = v->producer->n_attr;
    for (size_t i = 0; i < v->producer->n_input; i++) {
        const char *in = mlo_has_input(v->producer, i)
            ? mlo_hoist(m, s, v->producer->input[i], list, depth + 1)
            : "";
        if (!in || mlo_node_input(m, n, in)) return NULL;
    }
    for (size_t i = 0; i < v->producer->n_output; i++) {
        const char *out = mlo_format(m, "%s_outside", v->producer->output[i]);
        if (!out || mlo_node_output(m, n, out) || !mlo_index_value(m, s->outer, out)) return NULL;
    }
    return mlo_graph_add(m, list, n) ? NULL : outside;
}

/* Puts nodes in front of the loop. */
static int mlo_put_before(mlo *m, mlo_scan *s, const mlo_graph *list) {
    mlo_graph all = { 0 };
    for (size_t i = 0; i < s->outer->n_node; i++) {
        for (size_t k = 0; s->outer->node[i] == s->node && k < list->n_node; k++)
            MLO_TRY(mlo_graph_add(m, &all, list->node[k]));
        MLO_TRY(mlo_graph_add(m, &all, s->outer->node[i]));
    }
    s->outer->node = all.node;
    s->outer->n_node = all.n_node;
    MLO_TRY(mlo_index(m, m->model->graph));
    return mlo_infer(m);
}

/* ---- symbols -------------------------------------------------------------- */

/* What an element of a mask can be: equal symbols, equal elements. low = high: it is that number.
 * tested: the symbol that is 0 exactly where this one is, -1: none is known. It is symbol `base` plus
 * a number (base: -1, itself). */
typedef struct {
    double low, high;
    int64_t tested, base;
    double more;
} mlo_symbol;

/* What has been met: the hash of an operation on symbols, and the symbol that it is. */
typedef struct {
    uint64_t hash;
    int64_t symbol;
} mlo_noted;

typedef struct {
    mlo *m;
    const mlo_scan *s;
    int64_t iteration;
    mlo_map known, now; /* values of the outer graph; of the body in this iteration */
    mlo_symbol *symbol; /* the first one is the number 0 */
    size_t n_symbol;
    mlo_noted *met; /* an open table; a power of two of places */
    size_t room, used;
    int depth;
} mlo_tracer;
enum { MLO_TRACE_MOST = 1 << 24 }; /* elements of one value */

static uint64_t mlo_mixed(uint64_t a, uint64_t b) {
    uint64_t pair[2] = { a, b };
    return mlo_hash(pair, sizeof pair) | 1;
}
static uint64_t mlo_name_number(const char *name) { return mlo_hash(name, strlen(name)); }

/* The place of a hash in the table: its own, or the empty one where it belongs. NULL: no memory. */
static mlo_noted *mlo_noted_at(mlo_tracer *t, uint64_t hash) {
    if (t->used * 2 >= t->room) {
        size_t old = t->room, room = old ? old * 2 : 256;
        mlo_noted *met = (mlo_noted *)mlo_scratch(t->m, room, sizeof *met);
        if (!met) return NULL;
        memset(met, 0, room * sizeof *met);
        for (size_t i = 0; i < old; i++) {
            size_t at = t->met[i].hash >> 7 & (room - 1);
            if (!t->met[i].hash) continue;
            while (met[at].hash) at = (at + 1) & (room - 1);
            met[at] = t->met[i];
        }
        mlo_scratch_free(t->m, t->met);
        t->met = met;
        t->room = room;
    }
    size_t at = hash >> 7 & (t->room - 1);
    while (t->met[at].hash && t->met[at].hash != hash) at = (at + 1) & (t->room - 1);
    return &t->met[at];
}

/* From now on the hash is this symbol. */
static int64_t mlo_note_symbol(mlo_tracer *t, uint64_t hash, int64_t symbol) {
    mlo_noted *met = mlo_noted_at(t, hash);
    if (!met) return 0;
    t->used += !met->hash;
    met->hash = hash;
    met->symbol = symbol;
    return symbol;
}

/* The symbol of a hash, made if there is none yet. 0: no memory. */
static int64_t mlo_symbol_of(
    mlo_tracer *t, uint64_t hash, double low, double high, int64_t tested) {
    const mlo_noted *met = mlo_noted_at(t, hash);
    const mlo_symbol made = { low, high, tested, -1, 0 };
    if (!met || met->hash) return met ? met->symbol : 0;
    if (!MLO_PUSH(t->m, t->symbol, t->n_symbol, made)) return 0;
    return mlo_note_symbol(t, hash, (int64_t)t->n_symbol - 1);
}

/* Numbers: one symbol for each. Of NaN nothing is known. */
static int64_t mlo_symbol_number(mlo_tracer *t, double x) {
    int is = x == x;
    if (x >= 0 && x <= 0) x = 0; /* not -0 */
    return mlo_symbol_of(
        t, mlo_mixed(1, mlo_hash(&x, sizeof x)), is ? x : -INFINITY, is ? x : INFINITY, -1);
}

static int mlo_symbol_is(const mlo_tracer *t, int64_t i, double x) {
    return t->symbol[i].low >= x && t->symbol[i].high <= x;
}
static int mlo_symbol_fixed(const mlo_tracer *t, int64_t i) {
    return t->symbol[i].low >= t->symbol[i].high;
}

static int mlo_is_hidden(const mlo_tracer *t, int64_t id) { return t->symbol[id].high <= -10000; }

/* Is it a number that a bias can have? */
static int mlo_symbol_adds(const mlo_tracer *t, int64_t i) {
    return mlo_symbol_fixed(t, i) && !mlo_is_hidden(t, i) && t->symbol[i].high < INFINITY;
}

/* The symbol that, plus *more, is this one; of numbers 0. */
static int64_t mlo_symbol_base(const mlo_tracer *t, int64_t i, double *more) {
    const mlo_symbol *s = &t->symbol[i];
    *more = mlo_symbol_adds(t, i) ? s->low : s->more;
    return mlo_symbol_adds(t, i) ? 0 : s->base < 0 ? i : s->base;
}

/* ---- operations on symbols ------------------------------------------------ */

/* Of the same symbols, nodes of the same number make the same one. */
static uint64_t mlo_operation(const mlo_node *n, const char *name, mlo_dtype type) {
    static const char *const plain[] = { "Where", "And", "Or", "Not", "Xor", "Equal", "Less",
        "LessOrEqual", "Greater", "GreaterOrEqual", "Cast", "Add", "Sub", "Mul", "Div", "Neg",
        "Min", "Max", NULL };
    return mlo_mixed(mlo_name_number(mlo_is_one_of(n, plain) ? n->op : name), (uint64_t)type);
}

/* What the node makes of numbers: the operator itself says. 0: it is not evaluated. */
static int mlo_symbol_evaluated(
    mlo_tracer *t, mlo_node *n, const char *name, const int64_t *arg, double *x) {
    mlo_array *in[MLO_MOVE_INPUTS] = { 0 }, *y = NULL;
    int ok = n->n_input <= MLO_MOVE_INPUTS;
    for (size_t k = 0; ok && k < n->n_input; k++) {
        if (!mlo_has_input(n, k)) continue;
        mlo_dtype type = mlo_form_of(mlo_value_of(t->s->body, n->input[k])).dtype;
        ok = mlo_symbol_fixed(t, arg[k]) && (in[k] = mlo_array_new(t->m, type, 0, NULL)) != NULL;
        if (ok) mlo_convert(type, in[k]->data, MLO_DOUBLE, &t->symbol[arg[k]].low, 1);
    }
    if (ok) y = mlo_made_of(t->m, n, name, (const mlo_array *const *)in);
    if (y) *x = mlo_number_at(y, 0);
    ok = y != NULL;
    mlo_array_free(t->m, y);
    for (size_t k = 0; k < MLO_MOVE_INPUTS; k++) mlo_array_free(t->m, in[k]);
    return ok;
}

/* Where the operation is one of its operands, which? -1: it is none. */
static int64_t mlo_symbol_chosen(const mlo_tracer *t, const mlo_node *n, const int64_t *arg) {
    const int both = mlo_is(n, "And");
    if (mlo_is(n, "Where")) {
        if (mlo_symbol_is(t, arg[0], 0)) return arg[2];
        if (mlo_symbol_fixed(t, arg[0])) return arg[1];
        return arg[1] == arg[2] ? arg[1] : -1;
    }
    if (!both && !mlo_is(n, "Or")) return -1;
    for (int k = 0; k < 2; k++)
        if (mlo_symbol_fixed(t, arg[k]))
            return mlo_symbol_is(t, arg[k], 0) == both ? arg[k] : arg[1 - k];
    return arg[0] == arg[1] ? arg[0] : -1;
}

/* A comparison's outcome where ranges alone decide it, else -1. */
static int mlo_symbol_compared(const mlo_node *n, const mlo_symbol *a, const mlo_symbol *b) {
    int swap = mlo_starts(n->op, "Greater"), equal = mlo_is(n, "Equal");
    int strict = mlo_is(n, "Less") || mlo_is(n, "Greater");
    const mlo_symbol *x = swap ? b : a, *y = swap ? a : b;
    if (equal) return a->high < b->low || b->high < a->low ? 0 : -1;
    if (!strict && !mlo_is(n, "LessOrEqual") && !mlo_is(n, "GreaterOrEqual")) return -1;
    if (strict ? x->high < y->low : x->high <= y->low) return 1;
    return (strict ? x->low >= y->high : x->low > y->high) ? 0 : -1;
}

/* Widens a range by a number; by all of them, when it is none. */
static void mlo_range_take(mlo_symbol *r, double x) {
    if (!(x >= r->low)) r->low = x == x ? x : -INFINITY;
    if (!(x <= r->high)) r->high = x == x ? x : INFINITY;
}

/* The range of a result: sums, products and choices are followed; anything can come of the rest. */
static mlo_symbol mlo_symbol_range(
    const mlo_tracer *t, const mlo_node *n, const int64_t *arg, mlo_dtype type) {
    mlo_symbol r = { INFINITY, -INFINITY, -1, -1, 0 };
    const mlo_symbol any = { type == MLO_BOOL ? 0 : -INFINITY, type == MLO_BOOL ? 1 : INFINITY, -1,
        -1, 0 };
    const mlo_symbol *a = &t->symbol[arg[0]], *b = n->n_input > 1 ? &t->symbol[arg[1]] : a;
    double x[2] = { a->low, a->high }, y[2] = { b->low, b->high };
    int cast = mlo_is(n, "Cast") && mlo_dtype_is_float(type) && type != MLO_FLOAT16;
    if (mlo_is(n, "Where")) {
        const mlo_symbol *c = &t->symbol[arg[2]];
        int tested = t->symbol[arg[0]].tested == arg[2]; /* where c is chosen, it is 0 */
        mlo_range_take(&r, b->low);
        mlo_range_take(&r, b->high);
        mlo_range_take(&r, tested ? 0 : c->low);
        mlo_range_take(&r, tested ? 0 : c->high);
        return r;
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            if (mlo_is(n, "Add"))
                mlo_range_take(&r, x[i] + y[k]);
            else if (mlo_is(n, "Sub"))
                mlo_range_take(&r, x[i] - y[k]);
            else if (mlo_is(n, "Mul"))
                mlo_range_take(&r, x[i] * y[k]);
            else if (mlo_is(n, "Neg"))
                mlo_range_take(&r, -x[i]);
            else if (mlo_is(n, "Identity") || cast)
                mlo_range_take(&r, x[i]);
            else
                return any;
        }
    return r;
}

static int64_t mlo_symbol_made(
    mlo_tracer *t, mlo_node *n, const char *name, const int64_t *arg, mlo_dtype type);

/* Says what a new symbol is but for a number: of x + 3 x, of Where(c, 3, -inf) Where(c, 0, -inf). */
static int64_t mlo_symbol_split(mlo_tracer *t, mlo_node *n, const char *name, const int64_t *arg,
    mlo_dtype type, int64_t made) {
    const int minus = mlo_is(n, "Sub"), where = mlo_is(n, "Where");
    double more = 0;
    int64_t base = -1;
    for (int k = 0; k < 2 && (minus || mlo_is(n, "Add")); k++) {
        if (!mlo_symbol_adds(t, arg[1 - k]) || (minus && k)) continue;
        base = mlo_symbol_base(t, arg[k], &more);
        more += minus ? -t->symbol[arg[1]].low : t->symbol[arg[1 - k]].low;
    }
    for (int k = 1; k < 3 && where && !mlo_symbol_is(t, arg[k], 0); k++) {
        int64_t part[3] = { arg[0], arg[1], arg[2] };
        if (!mlo_symbol_adds(t, arg[k]) || !mlo_is_hidden(t, arg[3 - k])) continue;
        part[k] = 0;
        more = t->symbol[arg[k]].low;
        base = mlo_symbol_made(t, n, name, part, type);
    }
    if (base >= 0 && base != made) {
        t->symbol[made].base = base;
        t->symbol[made].more = more;
    }
    return made;
}

/* The symbol of a node's result from those of its operands. */
static int64_t mlo_symbol_made(
    mlo_tracer *t, mlo_node *n, const char *name, const int64_t *arg, mlo_dtype type) {
    uint64_t hash = mlo_operation(n, name, type);
    double x;
    int fixed = 1, known;
    for (size_t k = 0; k < n->n_input; k++) {
        hash = mlo_mixed(hash, mlo_has_input(n, k) ? (uint64_t)arg[k] : ~(uint64_t)0);
        fixed &= !mlo_has_input(n, k) || mlo_symbol_fixed(t, arg[k]);
    }
    const mlo_noted *met = mlo_noted_at(t, hash);
    if (!met || met->hash) return met ? met->symbol : 0;
    int64_t chosen = mlo_symbol_chosen(t, n, arg);
    if (chosen >= 0) return mlo_note_symbol(t, hash, chosen);
    if (fixed && mlo_symbol_evaluated(t, n, name, arg, &x))
        return mlo_note_symbol(t, hash, mlo_symbol_number(t, x));
    mlo_symbol r = mlo_symbol_range(t, n, arg, type);
    if (type == MLO_BOOL && mlo_is(n, "Cast")) {
        const mlo_symbol *a = &t->symbol[arg[0]];
        if (a->low > 0 || a->high < 0) return mlo_note_symbol(t, hash, mlo_symbol_number(t, 1));
        r.tested = arg[0];
    }
    if (type == MLO_BOOL && n->n_input > 1
        && (known = mlo_symbol_compared(n, &t->symbol[arg[0]], &t->symbol[arg[1]])) >= 0)
        return mlo_note_symbol(t, hash, mlo_symbol_number(t, known));
    if (r.low >= r.high) return mlo_note_symbol(t, hash, mlo_symbol_number(t, r.low));
    return mlo_symbol_split(t, n, name, arg, type, mlo_symbol_of(t, hash, r.low, r.high, r.tested));
}

/* ---- where elements come from --------------------------------------------- */

static const mlo_array *mlo_trace(mlo_tracer *t, const char *name);

/* Every element comes from itself alone: a model input, or what an operator makes that is not
 * followed. */
static mlo_array *mlo_trace_new(mlo_tracer *t, const char *name, const mlo_form *f) {
    const mlo_value *v = mlo_value_of(t->s->body, name);
    mlo_array *a = mlo_array_new(t->m, MLO_INT64, f->rank, f->dims);
    int bits = f->dtype == MLO_BOOL
        || (v->is_input && !mlo_dtype_is_float(f->dtype) && strstr(name, "mask"));
    uint64_t hash = mlo_mixed(2, mlo_name_number(name));
    if (v->graph == t->s->body) hash = mlo_mixed(hash, (uint64_t)t->iteration);
    for (int64_t i = 0; a && i < mlo_array_count(a); i++)
        ((int64_t *)a->data)[i] = mlo_symbol_of(
            t, mlo_mixed(hash, (uint64_t)i), bits ? 0 : -INFINITY, bits ? 1 : INFINITY, -1);
    return a;
}

/* A parameter in this iteration. NULL: it is none. */
static mlo_array *mlo_trace_numbers(mlo_tracer *t, const char *name) {
    const mlo_value *v = mlo_value_of(t->s->body, name);
    const mlo_graph *g = v->graph == t->s->body ? t->s->body : t->s->outer;
    if (!mlo_is_parameter(t->s, g, name, 0)) return NULL;
    return mlo_value_array(t->m, t->s, g, name, t->iteration, 0);
}

static mlo_array *mlo_trace_constant(mlo_tracer *t, const char *name) {
    mlo_array *a = mlo_trace_numbers(t, name);
    mlo_array *ids = a ? mlo_array_new(t->m, MLO_INT64, a->rank, a->dims) : NULL;
    for (int64_t i = 0; ids && i < mlo_array_count(ids); i++)
        ((int64_t *)ids->data)[i] = mlo_symbol_number(t, mlo_number_at(a, i));
    mlo_array_free(t->m, a);
    return ids;
}

/* Which element of a, broadcast to the form, is at place i? */
static int64_t mlo_broadcast_at(const mlo_array *a, const mlo_form *f, int64_t i) {
    int64_t at = 0, step = 1;
    for (int d = 1; d <= a->rank; d++) {
        int64_t size = f->dims[f->rank - d], own = a->dims[a->rank - d];
        at += own > 1 ? i % size * step : 0;
        step *= own;
        i /= size;
    }
    return at;
}

/* Element by element. NULL: not traced. */
static mlo_array *mlo_trace_elementwise(
    mlo_tracer *t, mlo_node *n, const char *name, const mlo_form *f) {
    const mlo_array *in[MLO_MOVE_INPUTS] = { 0 };
    for (size_t k = 0; k < n->n_input; k++) {
        if (k >= MLO_MOVE_INPUTS) return NULL;
        if (mlo_has_input(n, k) && (!(in[k] = mlo_trace(t, n->input[k])) || in[k]->rank > f->rank))
            return NULL;
    }
    mlo_array *ids = mlo_array_new(t->m, MLO_INT64, f->rank, f->dims);
    for (int64_t i = 0; ids && i < mlo_array_count(ids); i++) {
        int64_t arg[MLO_MOVE_INPUTS] = { 0 };
        for (size_t k = 0; k < n->n_input; k++)
            if (in[k]) arg[k] = ((const int64_t *)in[k]->data)[mlo_broadcast_at(in[k], f, i)];
        ((int64_t *)ids->data)[i] = mlo_symbol_made(t, n, name, arg, f->dtype);
    }
    return ids;
}

/* Is operand k one whose elements the node hands on, rather than one that says how? */
static int mlo_is_handed_on(const mlo_node *n, size_t k) {
    return !k || mlo_is(n, "Concat")
        || (k == 2 && (mlo_is(n, "ScatterND") || mlo_is(n, "ScatterElements")));
}

/* Operators that move elements: what they do to the elements, they do to the symbols. Where they
 * leave zeros, they leave the symbol of 0. NULL: not traced. */
static mlo_array *mlo_trace_move(mlo_tracer *t, mlo_node *n, const char *name) {
    mlo *m = t->m;
    const mlo_array *args[MLO_MOVE_INPUTS] = { 0 };
    mlo_array *constant[MLO_MOVE_INPUTS] = { 0 }, *result = NULL;
    int known = n->n_input <= MLO_MOVE_INPUTS;
    for (size_t k = 0; known && k < n->n_input; k++)
        if (mlo_has_input(n, k)) {
            if (mlo_is_handed_on(n, k))
                args[k] = mlo_trace(t, n->input[k]);
            else
                args[k] = constant[k] = mlo_trace_numbers(t, n->input[k]);
            known = args[k] != NULL;
        }
    if (known) result = mlo_made_of(m, n, name, args);
    for (size_t k = 0; k < MLO_MOVE_INPUTS; k++) mlo_array_free(m, constant[k]);
    return result;
}

static mlo_array *mlo_trace_node(mlo_tracer *t, mlo_node *n, const char *name, const mlo_form *f) {
    static const char *const moves[] = { "Expand", "Concat", "Tile", "GatherND", "Trilu",
        "ScatterND", "ScatterElements", NULL };
    static const char *const more[] = { "Where", "And", "Or", "Not", "Xor", "Equal", "Less",
        "LessOrEqual", "Greater", "GreaterOrEqual", "Cast", NULL };
    /* a scale may lie along one */
    static const char *const axes[] = { "QuantizeLinear", "DequantizeLinear", NULL };
    if (mlo_is_layout(n) || mlo_is_one_of(n, moves)) {
        if (mlo_is(n, "ScatterND") || mlo_is(n, "ScatterElements"))
            if (mlo_attr_of(n, "reduction")) return NULL;
        return mlo_trace_move(t, n, name);
    }
    int each = (mlo_is_elementwise(n) && !mlo_is_one_of(n, axes)) || mlo_is_one_of(n, more);
    return each ? mlo_trace_elementwise(t, n, name, f) : NULL;
}

/* A scan input that is no parameter: what this iteration gets of it. NULL: not traced. */
static mlo_array *mlo_trace_slice(mlo_tracer *t, const char *name) {
    const mlo_scan *s = t->s;
    for (size_t k = s->n_state; k < s->body->n_input; k++) {
        if (s->body->input[k]->name != name) continue;
        const mlo_array *whole = mlo_trace(t, s->node->input[k]);
        return whole ? mlo_part_of(t->m, whole, 0, t->iteration) : NULL;
    }
    return NULL;
}

/* The symbols of a value that the body knows; the tracer's. NULL: its shape is not known, or it is
 * too large. */
static const mlo_array *mlo_trace(mlo_tracer *t, const char *name) {
    mlo_value *v = mlo_value_of(t->s->body, name);
    if (!v) v = mlo_value_of(t->s->outer, name);
    int inside = v && v->graph == t->s->body;
    mlo_map *map = inside ? &t->now : &t->known;
    mlo_array *ids = (mlo_array *)mlo_map_get(map, name);
    mlo_form f = mlo_form_of(v);
    if (ids || !mlo_form_known(&f) || mlo_form_count(&f) > MLO_TRACE_MOST || t->m->error.code)
        return ids;
    if (t->depth < 64) {
        t->depth++;
        ids = mlo_trace_constant(t, name);
        if (!ids && inside && v->is_input && !t->m->error.code) ids = mlo_trace_slice(t, name);
        if (!ids && v->producer && !t->m->error.code)
            ids = mlo_trace_node(t, v->producer, name, &f);
        t->depth--;
    }
    if (!ids && !t->m->error.code) ids = mlo_trace_new(t, name, &f);
    if (ids && mlo_map_put(t->m, map, name, ids)) {
        mlo_array_free(t->m, ids);
        ids = NULL;
    }
    return ids;
}

static void mlo_trace_forget(mlo *m, mlo_map *map) {
    for (size_t i = 0; i < map->size; i++)
        if (map->slot[i].key) mlo_array_free(m, (mlo_array *)map->slot[i].value);
    mlo_map_clear(map);
}

static int mlo_trace_begin(mlo *m, const mlo_scan *s, mlo_tracer *t) {
    memset(t, 0, sizeof *t);
    t->m = m;
    t->s = s;
    mlo_symbol_number(t, 0);
    return mlo_failed(m);
}

static void mlo_trace_end(mlo_tracer *t) {
    mlo_trace_forget(t->m, &t->known);
    mlo_trace_forget(t->m, &t->now);
    mlo_scratch_free(t->m, t->met);
}

/* ---- bands ---------------------------------------------------------------- */

/* What is added to scores beside a key's own: numbers of `n` iterations (1: all alike), `heads`,
 * `queries` (1: all alike) and `keys`; -INFINITY: the key is hidden. */
typedef struct {
    int64_t n, heads, queries, keys;
    float *number; /* NULL: there is none */
} mlo_bias;

/* Which keys a query i sees by their places: i - back <= j <= i + ahead. One for each iteration. */
typedef struct {
    int causal, band; /* 1: nowhere a later key; some key is hidden otherwise by its place */
    int32_t *back, *ahead;
    mlo_bias bias; /* there is one: no band */
} mlo_sight;

/* A mask's elements in one iteration: `copies` (of heads) of `rows` queries (1: all alike). */
typedef struct {
    const int64_t *id;
    int64_t copies, rows, keys;
    int64_t back, ahead;
} mlo_mask_view;

/* What is wrong with a mask, and where. */
typedef struct {
    const char *what;
    int64_t head, query, key, iteration;
} mlo_wrong;

static int mlo_wrong_at(mlo_wrong *w, const char *what, int64_t head, int64_t query, int64_t key) {
    w->what = what;
    w->head = head;
    w->query = query;
    w->key = key;
    return 0;
}

/* Does some query see key j? */
static int mlo_is_alive(const mlo_tracer *t, const mlo_mask_view *v, int64_t j) {
    for (int64_t i = 0; i < v->rows; i++)
        if (!mlo_is_hidden(t, v->id[i * v->keys + j])) return 1;
    return 0;
}

/* The band that most elements speak for: a distance belongs to it where more elements are seen than
 * hidden. Keys that nobody sees say nothing. */
static int mlo_band_of(mlo_tracer *t, mlo_mask_view *v) {
    const int64_t n = v->keys;
    int64_t *votes = (int64_t *)mlo_scratch(t->m, (size_t)(2 * n), sizeof *votes);
    if (!votes) return mlo_failed(t->m);
    memset(votes, 0, (size_t)(2 * n) * sizeof *votes);
    for (int64_t j = 0; v->rows > 1 && j < n; j++)
        for (int64_t i = 0, alive = mlo_is_alive(t, v, j); alive && i < n; i++)
            votes[n + i - j] += mlo_is_hidden(t, v->id[i * n + j]) ? -1 : 1;
    v->back = v->ahead = 0;
    while (v->back < n - 1 && votes[n + v->back + 1] >= 0) v->back++;
    while (v->ahead < n - 1 && votes[n - v->ahead - 1] >= 0) v->ahead++;
    mlo_scratch_free(t->m, votes);
    return 0;
}

/* Is every element what the band says: hidden outside of it; inside of it the key's own, which the
 * diagonal has? */
static int mlo_is_band(const mlo_tracer *t, const mlo_mask_view *v, mlo_wrong *w) {
    const int64_t n = v->keys, step = v->rows > 1 ? n + 1 : 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0, alive = mlo_is_alive(t, v, j); alive && i < v->rows; i++) {
            int in = v->rows == 1 || (i - v->back <= j && j <= i + v->ahead);
            int64_t id = v->id[i * n + j];
            if (mlo_is_hidden(t, id) && in)
                return mlo_wrong_at(
                    w, "query %lld does not see key %lld, others as near do", 0, i, j);
            if (mlo_is_hidden(t, id)) continue;
            if (!in)
                return mlo_wrong_at(w, "query %lld sees key %lld, others as far do not", 0, i, j);
            if (id != v->id[j * step])
                return mlo_wrong_at(
                    w, "query %lld adds to key %lld what other queries do not", 0, i, j);
        }
    for (int64_t k = n * v->rows; k < n * v->rows * v->copies; k++) {
        int64_t a = v->id[k], b = v->id[k % (n * v->rows)];
        if (a != b && !(mlo_is_hidden(t, a) && mlo_is_hidden(t, b)))
            return mlo_wrong_at(w, "query %lld adds to key %lld what other heads do not",
                k / (n * v->rows), k / n % v->rows, k % n);
    }
    return 1;
}

/* ---- the mask ------------------------------------------------------------- */

/* The elements of a mask in the tracer's iteration. 0: *w says what is wrong, or it has failed. */
static int mlo_view_elements(
    mlo_tracer *t, const char *name, int64_t keys, mlo_mask_view *v, mlo_wrong *w) {
    const mlo_array *a = mlo_trace(t, name);
    if (!a) return mlo_wrong_at(w, "it is too large to be followed", 0, 0, 0);
    v->id = (const int64_t *)a->data;
    v->keys = keys;
    v->rows = a->rank > 1 && a->dims[a->rank - 2] == keys ? keys : 1;
    v->copies = mlo_array_count(a) / (v->rows * keys);
    return 1;
}

/* Looks at a mask in the tracer's iteration. 0: *w says what is wrong, or it has failed. */
static int mlo_view_mask(
    mlo_tracer *t, const char *name, int64_t keys, mlo_mask_view *v, mlo_wrong *w) {
    return mlo_view_elements(t, name, keys, v, w) && !mlo_band_of(t, v) && mlo_is_band(t, v, w);
}

/* The key's own symbols, which all iterations and all masks of a loop have to share. */
static int mlo_same_keys(const mlo_tracer *t, const mlo_mask_view *v, int64_t *own, mlo_wrong *w) {
    const int64_t step = v->rows > 1 ? v->keys + 1 : 1;
    for (int64_t j = 0; j < v->keys; j++) {
        int64_t id = v->id[j * step];
        if (own[j] < 0) own[j] = id;
        if (own[j] != id && !(mlo_is_hidden(t, own[j]) && mlo_is_hidden(t, id)))
            return mlo_wrong_at(
                w, "query %lld adds to key %lld what other layers or attentions do not", 0, j, j);
    }
    return 1;
}

/* Causal, or a band, or neither: in all iterations together. */
static int mlo_sight_of(mlo *m, const int64_t *back, const int64_t *ahead, int64_t iterations,
    int64_t keys, mlo_sight *s) {
    s->causal = keys > 1;
    s->band = 0;
    s->back = MLO_NEW_N(m, int32_t, (size_t)iterations);
    s->ahead = MLO_NEW_N(m, int32_t, (size_t)iterations);
    if (!s->back || !s->ahead) return mlo_failed(m);
    for (int64_t i = 0; i < iterations; i++) {
        s->causal &= ahead[i] == 0;
        s->back[i] = (int32_t)back[i];
        s->ahead[i] = (int32_t)ahead[i];
    }
    for (int64_t i = 0; i < iterations; i++)
        s->band |= back[i] < keys - 1 || (!s->causal && ahead[i] < keys - 1);
    return 0;
}

/* What a mask is in all iterations; own: its keys' symbols (-1: not known yet). */
static int mlo_follow_mask(
    mlo_tracer *t, const char *name, int64_t keys, int64_t *own, mlo_sight *sight, mlo_wrong *w) {
    int64_t n = t->s->iterations, *back = MLO_NEW_N(t->m, int64_t, (size_t)(2 * n)), *ahead;
    if (!back) return mlo_failed(t->m);
    ahead = back + n;
    const mlo_value *v = mlo_value_of(t->s->body, name);
    const int varies = v && v->graph == t->s->body;
    for (int64_t i = 0; i < n; i++) {
        mlo_mask_view seen;
        w->iteration = t->iteration = i;
        back[i] = back[0];
        ahead[i] = ahead[0];
        if (i && !varies) continue;
        mlo_trace_forget(t->m, &t->now);
        if (!mlo_view_mask(t, name, keys, &seen, w) || !mlo_same_keys(t, &seen, own, w))
            return mlo_failed(t->m);
        back[i] = seen.back;
        ahead[i] = seen.ahead;
    }
    return mlo_sight_of(t->m, back, ahead, n, keys, sight);
}

/* ---- biases --------------------------------------------------------------- */

/* Of each key: an element that is seen in the first iteration, -1: none; how many are; its own symbol
 * as it was before; the element's number. */
typedef struct {
    int64_t *at, *seen, *before;
    float *more;
} mlo_bias_keys;

/* The numbers of one iteration. 0: *w says what is wrong. */
static int mlo_bias_numbers(const mlo_tracer *t, const mlo_mask_view *v, int64_t *own,
    const mlo_bias_keys *k, float *number, mlo_wrong *w) {
    for (int64_t e = 0; e < v->copies * v->rows * v->keys; e++) {
        const int64_t j = e % v->keys;
        double more = 0;
        const int64_t base = mlo_symbol_base(t, v->id[e], &more);
        number[e] = -INFINITY;
        if (mlo_is_hidden(t, v->id[e])) continue;
        if (own[j] < 0) own[j] = base;
        if (!t->iteration && k->at[j] < 0) {
            k->at[j] = e;
            k->more[j] = (float)more;
        }
        k->seen[j]++;
        if (own[j] != base)
            return mlo_wrong_at(w,
                e / v->keys % v->rows ? "query %lld adds to key %lld what other queries do not"
                                      : "query %lld adds to key %lld what other heads, layers or "
                                        "attentions do not",
                e / (v->rows * v->keys), e / v->keys % v->rows, j);
        number[e] = (float)more;
    }
    for (int64_t r = 0; r < v->copies * v->rows; r++) {
        int64_t j = 0;
        while (j < v->keys && number[r * v->keys + j] <= -INFINITY) j++;
        if (j == v->keys)
            return mlo_wrong_at(w, "query %lld sees no key", r / v->rows, r % v->rows, 0);
    }
    return 1;
}

/* Is no later key seen anywhere? */
static int mlo_bias_causal(const mlo_bias *b) {
    const int64_t n = b->keys, all = b->n * b->heads * b->queries * n;
    int is = b->queries > 1;
    for (int64_t e = 0; is && e < all; e++) is = e % n <= e / n % n || b->number[e] <= -INFINITY;
    return is;
}

/* Do rows a and b of so many keys differ by one number? */
static int mlo_bias_parallel(const float *a, const float *b, int64_t keys, double tolerance) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t j = 0; j < keys; j++) {
        if ((a[j] <= -INFINITY) != (b[j] <= -INFINITY)) return 0;
        if (a[j] <= -INFINITY) continue;
        low = fmin(low, (double)a[j] - (double)b[j]);
        high = fmax(high, (double)a[j] - (double)b[j]);
    }
    return !(high - low > tolerance);
}

/* Where a causal query or the last one sees the same as the last one, one row does for all. */
static void mlo_bias_join_queries(mlo_bias *b, int causal) {
    enum { TOLERANCE = 10000 }; /* of a nat, one part: a hundredth of what hardware tells apart */
    const int64_t n = b->keys, blocks = b->n * b->heads;
    for (int64_t r = 0; r < blocks * b->queries; r++) {
        const float *last = b->number + ((r / b->queries + 1) * b->queries - 1) * n;
        if (!mlo_bias_parallel(b->number + r * n, last, causal ? r % n + 1 : n, 1.0 / TOLERANCE))
            return;
    }
    for (int64_t k = 0; k < blocks; k++)
        memmove(b->number + k * n, b->number + ((k + 1) * b->queries - 1) * n,
            (size_t)n * sizeof *b->number);
    b->queries = 1;
}

/* Takes off each row what its keys have in common. Returns the largest magnitude left; INFINITY where a
 * key is hidden that counts otherwise. */
static double mlo_bias_center(mlo_bias *b, int causal) {
    const int64_t n = b->keys;
    double most = 0;
    for (int64_t r = 0; r < b->n * b->heads * b->queries; r++) {
        float *row = b->number + r * n;
        const int64_t until = causal && b->queries > 1 ? r % n + 1 : n;
        double low = INFINITY, high = -INFINITY;
        for (int64_t j = 0; j < n; j++) {
            if (row[j] <= -INFINITY) continue;
            low = fmin(low, (double)row[j]);
            high = fmax(high, (double)row[j]);
        }
        for (int64_t j = 0; j < n; j++) {
            if (row[j] > -INFINITY) row[j] = (float)((double)row[j] - (low + high) / 2);
            if (j < until) most = fmax(most, fabs((double)row[j]));
        }
    }
    return most;
}

static void mlo_bias_join_heads(mlo_bias *b) {
    const int64_t each = b->queries * b->keys;
    for (int64_t k = 0; k < b->n * b->heads; k++)
        for (int64_t e = 0; e < each; e++) {
            const float x = b->number[k * each + e],
                        y = b->number[k / b->heads * b->heads * each + e];
            if (x < y || x > y) return;
        }
    for (int64_t i = 0; i < b->n; i++)
        memmove(b->number + i * each, b->number + i * b->heads * each,
            (size_t)each * sizeof *b->number);
    b->heads = 1;
}

/* The numbers of all iterations, before anything is joined. */
static int mlo_follow_numbers(mlo_tracer *t, const char *name, int64_t keys, int64_t heads,
    int64_t *own, const mlo_bias_keys *k, mlo_bias *b, mlo_wrong *w) {
    const mlo_value *value = mlo_value_of(t->s->body, name);
    b->n = value && value->graph == t->s->body ? t->s->iterations : 1;
    for (int64_t i = 0; i < b->n; i++) {
        mlo_mask_view v;
        w->iteration = t->iteration = i;
        if (b->n > 1) mlo_trace_forget(t->m, &t->now);
        if (!mlo_view_elements(t, name, keys, &v, w)) return mlo_failed(t->m);
        if (v.copies != 1 && v.copies != heads) {
            mlo_wrong_at(w, "it is of other heads than the scores", 0, 0, 0);
            return 0;
        }
        const int64_t each = v.copies * v.rows * keys;
        b->heads = v.copies;
        b->queries = v.rows;
        b->keys = keys;
        if (!b->number) b->number = MLO_NEW_N(t->m, float, (size_t)(b->n * each));
        if (!b->number || !mlo_bias_numbers(t, &v, own, k, b->number + i * each, w))
            return mlo_failed(t->m);
        for (int64_t j = 0; j < keys; j++) /* nobody sees it: it is hidden */
            if (!k->seen[j] && own[j] < 0) own[j] = v.id[j];
    }
    for (int64_t j = 0; j < keys; j++)
        if ((k->seen[j] && k->at[j] < 0) || (!k->seen[j] && !mlo_is_hidden(t, own[j]))) {
            mlo_wrong_at(
                w, "query %lld hides key %lld, which other layers or attentions do not", 0, 0, j);
            return 0;
        }
    return 0;
}

/* What a mask is in all iterations that is no band: numbers that parameters say, beside the keys' own
 * symbols. */
static int mlo_follow_bias(mlo_tracer *t, const char *name, int64_t keys, int64_t heads,
    int64_t *own, const mlo_bias_keys *k, mlo_sight *sight, mlo_wrong *w) {
    mlo_bias b = { 0, 0, 0, 0, NULL };
    for (int64_t j = 0; j < keys; j++) {
        k->at[j] = -1;
        k->seen[j] = 0;
    }
    if (mlo_follow_numbers(t, name, keys, heads, own, k, &b, w) || w->what) return mlo_failed(t->m);
    memset(sight, 0, sizeof *sight);
    sight->causal = mlo_bias_causal(&b);
    if (b.queries > 1) mlo_bias_join_queries(&b, sight->causal);
    const double most = mlo_bias_center(&b, sight->causal);
    mlo_bias_join_heads(&b);
    if (most > 1e-6) sight->bias = b;
    return 0;
}

/* ---- what a person is told, and what others get --------------------------- */

static int mlo_refuse_mask(
    mlo *m, const mlo_scan *s, const mlo_node *reader, const char *name, const mlo_wrong *w) {
    mlo_form f = mlo_form_of(mlo_value_of(s->body, name));
    char what[160], layer[64] = "", head[64] = "";
    snprintf(what, sizeof what, w->what, (long long)w->query, (long long)w->key);
    if (w->iteration) snprintf(layer, sizeof layer, "in layer %lld ", (long long)w->iteration);
    if (w->head) snprintf(head, sizeof head, "in head %lld ", (long long)w->head);
    return mlo_fail(m, MLO_E_UNSUPPORTED, reader,
        "attention mask or bias '%s' of shape %s: %s%s%s; hardware hides keys by one bit each, and "
        "adds to scores what parameters alone say (for each layer, head, query and key), not what "
        "depends on the model's inputs. Export with a mask of one number per token, or without a "
        "mask",
        name, mlo_dims_text(m, f.rank, f.dims), layer, head, what);
}

/* Numbers as a constant of the outer graph. */
static const char *mlo_key_numbers(mlo_expansion *x, const float *number, int64_t n) {
    const size_t bytes = (size_t)n * sizeof *number;
    const char *name = mlo_x_name(x, "c");
    float *data = (float *)mlo_alloc(x->m, (size_t)n, sizeof *number);
    if (!data) return "";
    memcpy(data, number, bytes);
    mlo_tensor *t = mlo_tensor_new(x->m, name, MLO_FLOAT, &n, 1, data, bytes);
    return mlo_graph_init(x->m, x->g, t) ? "" : name;
}

/* One row of a mask as a value of the outer graph: of each key element at[j] (NULL: the first row), less
 * more[j] (NULL: nothing), rounded sums put right. */
static int mlo_key_row(mlo *m, mlo_scan *s, const char *whole, int64_t keys, int64_t count,
    const int64_t *at, const float *more, mlo_graph *list, const char **row) {
    mlo_node bare = *s->node;
    bare.n_meta = 0;
    mlo_expansion x = { m, s->outer, &bare, mlo_opset_of(m), MLO_FLOAT, NULL, 0, NULL, 0 };
    const int64_t shape[] = { -1, at ? count : keys };
    const char *copies = mlo_x_reshape(&x, whole, shape, 2), *first = mlo_x_whole(&x, 0);
    *row = mlo_x_take(&x, copies, first, 0);
    if (at) *row = mlo_x_take(&x, *row, mlo_x_list(&x, at, (size_t)keys), 0);
    if (more) {
        const char *bare_row = MLO_X(&x, "Sub", *row, mlo_key_numbers(&x, more, keys));
        const char *size = MLO_X(&x, "Abs", bare_row);
        const char *none = MLO_X(&x, "Less", size, mlo_x_number(&x, 1.0 / 1024));
        const char *far = MLO_X(&x, "Mul", bare_row, mlo_x_number(&x, 1 + 1.0 / 1024));
        *row = MLO_X(&x, "Where", none, mlo_x_number(&x, 0), far);
    }
    for (size_t i = 0; i < x.n_made; i++) MLO_TRY(mlo_graph_add(m, list, x.made[i]));
    return mlo_failed(m);
}

/* Are all keys' own symbols 0 or hidden, or such that calibration can tell? A number that some key gets
 * is a bias. */
static int mlo_keys_plain(const mlo_tracer *t, const int64_t *own, int64_t keys) {
    for (int64_t j = 0; j < keys; j++)
        if (mlo_symbol_adds(t, own[j]) && !mlo_symbol_is(t, own[j], 0)) return 0;
    return 1;
}

/* Follows a mask as a band, or else as a bias. biased: which of them it was. */
static int mlo_follow(mlo_tracer *t, const char *name, int64_t keys, int64_t heads, int64_t *own,
    const mlo_bias_keys *k, mlo_sight *sight, mlo_wrong *w, int *biased) {
    for (int64_t j = 0; j < keys; j++) k->before[j] = own[j];
    MLO_TRY(mlo_follow_mask(t, name, keys, own, sight, w));
    *biased = w->what != NULL || !mlo_keys_plain(t, own, keys);
    if (!*biased) return 0;
    for (int64_t j = 0; j < keys; j++) own[j] = k->before[j];
    memset(w, 0, sizeof *w);
    return mlo_follow_bias(t, name, keys, heads, own, k, sight, w);
}

/* The keys' own part of a mask that was followed, as one number per key in the outer graph. NULL: all
 * are 0. */
static int mlo_own_row(mlo_tracer *t, mlo_scan *s, const mlo_form *f, int64_t keys,
    const int64_t *own, const mlo_bias_keys *k, int biased, const mlo_sight *sight,
    const char **mask) {
    mlo *m = t->m;
    mlo_graph list = { 0 };
    const int64_t count = mlo_form_count(f);
    int64_t zeros = 0;
    for (int64_t j = 0; j < keys; j++) zeros += mlo_symbol_is(t, own[j], 0);
    const char *whole = zeros < keys ? mlo_hoist(m, s, *mask, &list, 0) : NULL;
    if (zeros < keys && !whole) return mlo_failed(m);
    *mask = whole;
    const int square = f->rank > 1 && f->dims[f->rank - 2] == keys
        && (sight->causal || sight->band);
    if (whole && biased)
        MLO_TRY(mlo_key_row(m, s, whole, keys, count, k->at, k->more, &list, mask));
    else if (whole && count > keys) {
        for (int64_t j = 0; j < keys; j++) k->at[j] = j * (keys + 1);
        MLO_TRY(
            mlo_key_row(m, s, whole, keys, keys * keys, square ? k->at : NULL, NULL, &list, mask));
    }
    return list.n_node ? mlo_put_before(m, s, &list) : 0;
}

/* *mask, which `reader` reads, becomes one number per key, in the outer graph; NULL where every key
 * counts. *sight: what it hides by place, and adds. own: see mlo_follow_mask. */
static int mlo_key_mask(mlo_tracer *t, mlo_scan *s, const mlo_node *reader, int64_t keys,
    int64_t heads, int64_t *own, mlo_sight *sight, const char **mask) {
    mlo *m = t->m;
    mlo_wrong w = { NULL, 0, 0, 0, 0 };
    mlo_form f = mlo_form_of(mlo_value_of(s->body, *mask));
    if (!mlo_form_known(&f) || f.rank < 1)
        return mlo_fail(m, MLO_E_SHAPE, reader,
            "an attention mask '%s' of unknown shape; bind open dimensions (%s) with "
            "--dim NAME=N",
            *mask, mlo_open_dims(m));
    const int64_t last = f.dims[f.rank - 1];
    int biased = 0;
    if (last == 1 && keys > 1) { /* the same for all keys of a row: softmax does not see it */
        *mask = NULL;
        return 0;
    }
    if (last != keys)
        return mlo_fail(m, MLO_E_UNSUPPORTED, reader,
            "an attention mask '%s' of shape %s for %lld keys", *mask,
            mlo_dims_text(m, f.rank, f.dims), (long long)keys);
    const mlo_bias_keys k = { MLO_NEW_N(m, int64_t, (size_t)keys),
        MLO_NEW_N(m, int64_t, (size_t)keys), MLO_NEW_N(m, int64_t, (size_t)keys),
        MLO_NEW_N(m, float, (size_t)keys) };
    if (!k.at || !k.seen || !k.before || !k.more
        || mlo_follow(t, *mask, keys, heads, own, &k, sight, &w, &biased))
        return mlo_failed(m);
    if (w.what) return mlo_refuse_mask(m, s, reader, *mask, &w);
    return mlo_own_row(t, s, &f, keys, own, &k, biased, sight, mask);
}
