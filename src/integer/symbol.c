/* symbol: what each element of a value of the body is computed from.
 *
 * in:  a value of a loop's body, made of constants, parameters and model inputs, in the body or around
 *     it; an iteration.
 * out: a symbol for each of its elements. Equal operations on equal symbols are equal symbols; a symbol
 *     knows the least and the most that it can be, and whether it is another one plus a number.
 *
 * invariant: what symbols say holds for any input whose integer masks are 0 and 1 (the inputs that have
 *     `mask` in their names). Operators that move elements are evaluated, on the elements' own
 *     numbers; of the others, equal arguments make equal results, and no more is claimed.
 * example: Where(attention_mask != 0, 0, -3.4e38) has as many symbols as the mask has elements, each
 *     between -3.4e38 and 0.
 * cost: O(elements) for each node between the inputs and the value; values of the outer graph once,
 *     those of the body once an iteration.
 */

/* ---- symbols -------------------------------------------------------------- */

/* What an element of a mask can be: equal symbols, equal elements. */
typedef struct {
    double low;
    double high; /* low = high: it is that number */
    int64_t tested; /* the symbol that is 0 exactly where this one is, -1: none is known */
    int64_t base; /* the symbol that it is but for `more`, -1: itself */
    double more; /* than that */
    int64_t
        bit; /* the 0 or 1, of an input or a comparison, that alone decides it; 0: there is none */
    double is[2]; /* what it is where that is 0, and where it is 1 */
    /* made of two conditions, both of which have to hold: what it is of the one and of the other alone, and what it is
     * where one does not hold; 0: it is not */
    int64_t half[3];
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
    mlo_map known; /* values of the outer graph */
    mlo_map now; /* values of the body in this iteration */
    mlo_symbol *symbol; /* the first one is the number 0 */
    size_t n_symbol;
    mlo_noted *met; /* an open table; a power of two of places */
    size_t room; /* places */
    size_t used; /* places */
    int depth; /* nodes between the mask and where it is looked at */
    int bits; /* 1: what follows from one 0 or 1 is wanted (mlo_symbol.bit) */
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
    const mlo_symbol made = { low, high, tested, -1, 0, 0, { 0 }, { 0 } };
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
    static const char *const plain[] = { "Where", "And", "BitwiseAnd", "Or", "Not", "Xor", "Equal",
        "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Cast", "Add", "Sub", "Mul", "Div",
        "Neg", "Min", "Max", NULL };
    return mlo_mixed(mlo_name_number(mlo_is_one_of(n, plain) ? n->op : name), (uint64_t)type);
}

/* The number that it is where its bit is so; bit -1: whatever that is. NULL: it is not known. */
static const double *mlo_symbol_at(const mlo_tracer *t, int64_t i, int bit) {
    const mlo_symbol *s = &t->symbol[i];
    if (mlo_symbol_fixed(t, i)) return &s->low;
    return bit >= 0 && s->bit ? &s->is[bit] : NULL;
}

/* What the node makes of numbers, where their bit is so: the operator itself says. 0: it is not evaluated. */
static int mlo_symbol_evaluated(
    mlo_tracer *t, mlo_node *n, const char *name, const int64_t *arg, int bit, double *x) {
    mlo_array *in[MLO_MOVE_INPUTS] = { 0 }, *y = NULL;
    int ok = n->n_input <= MLO_MOVE_INPUTS;
    for (size_t k = 0; ok && k < n->n_input; k++) {
        if (!mlo_has_input(n, k)) continue;
        mlo_dtype type = mlo_form_of(mlo_value_of(t->s->body, n->input[k])).dtype;
        const double *number = mlo_symbol_at(t, arg[k], bit);
        ok = number && (in[k] = mlo_array_new(t->m, type, 0, NULL)) != NULL;
        if (ok) mlo_convert(type, in[k]->data, MLO_DOUBLE, number, 1);
    }
    if (ok) y = mlo_made_of(t->m, n, name, (const mlo_array *const *)in);
    if (y) *x = mlo_number_at(y, 0);
    ok = y != NULL;
    mlo_array_free(t->m, y);
    for (size_t k = 0; k < MLO_MOVE_INPUTS; k++) mlo_array_free(t->m, in[k]);
    return ok;
}

/* Is it And (Or) of 0 and 1, as bits or numbers? */
static int mlo_symbol_joins(
    const mlo_tracer *t, const mlo_node *n, const int64_t *arg, const char *op, const char *bits) {
    const mlo_symbol *a = &t->symbol[arg[0]], *b = &t->symbol[arg[1]];
    return mlo_is(n, op)
        || (mlo_is(n, bits) && a->low >= 0 && b->low >= 0 && a->high <= 1 && b->high <= 1);
}

/* Where the operation is one of its operands, which? -1: it is none. */
static int64_t mlo_symbol_chosen(const mlo_tracer *t, const mlo_node *n, const int64_t *arg) {
    const int both = n->n_input == 2 && mlo_symbol_joins(t, n, arg, "And", "BitwiseAnd");
    if (mlo_is(n, "Cast")
        && mlo_form_of(mlo_value_of(t->s->body, n->input[0])).dtype
            == (mlo_dtype)mlo_int(n, "to", 0))
        return arg[0];
    if (mlo_is(n, "Where")) {
        if (mlo_symbol_is(t, arg[0], 0)) return arg[2];
        if (mlo_symbol_fixed(t, arg[0])) return arg[1];
        return arg[1] == arg[2] ? arg[1] : -1;
    }
    if (n->n_input == 2 && (mlo_is(n, "Min") || mlo_is(n, "Max"))) {
        const mlo_symbol *a = &t->symbol[arg[0]], *b = &t->symbol[arg[1]];
        const int least = mlo_is(n, "Min");
        if (a->high <= b->low) return arg[least ? 0 : 1];
        return b->high <= a->low ? arg[least ? 1 : 0] : -1;
    }
    if (!both && (n->n_input != 2 || !mlo_symbol_joins(t, n, arg, "Or", "BitwiseOr"))) return -1;
    for (int k = 0; k < 2; k++)
        if (mlo_symbol_fixed(t, arg[k]))
            return mlo_symbol_is(t, arg[k], 0) == both ? arg[k] : arg[1 - k];
    for (int k = 0; both && k < 2; k++) { /* a b and a is a b (not of the opposite of a b) */
        const int64_t *half = t->symbol[arg[k]].half;
        if ((half[0] == arg[1 - k] || half[1] == arg[1 - k]) && mlo_symbol_is(t, half[2], 0))
            return arg[k];
    }
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
    mlo_symbol r = { INFINITY, -INFINITY, -1, -1, 0, 0, { 0 }, { 0 } };
    const mlo_symbol any = { type == MLO_BOOL ? 0 : -INFINITY, type == MLO_BOOL ? 1 : INFINITY, -1,
        -1, 0, 0, { 0 }, { 0 } };
    const mlo_symbol *a = &t->symbol[arg[0]], *b = n->n_input > 1 ? &t->symbol[arg[1]] : a;
    double x[2] = { a->low, a->high }, y[2] = { b->low, b->high };
    /* (small whole numbers are the same in any type; what is between them is cut towards 0) */
    const int small = a->low >= 0 && a->high <= 127;
    int cast = mlo_is(n, "Cast")
        && (mlo_dtype_is_float(type) ? type != MLO_FLOAT16
                                     : type != MLO_BOOL && small && floor(a->low) == a->low
                    && floor(a->high) == a->high);
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

/* The bit that decides all operands; 0: there is none, or more than one. */
static int64_t mlo_symbol_bit(const mlo_tracer *t, const mlo_node *n, const int64_t *arg) {
    int64_t bit = 0;
    for (size_t k = 0; k < n->n_input; k++) {
        if (!mlo_has_input(n, k) || mlo_symbol_fixed(t, arg[k])) continue;
        if (!t->symbol[arg[k]].bit || (bit && bit != t->symbol[arg[k]].bit)) return 0;
        bit = t->symbol[arg[k]].bit;
    }
    return bit;
}

/* Says what a new symbol is in either case, where one bit decides it. What compares other things (places
 * with how many words there are) is a bit itself. */
static void mlo_symbol_decide(mlo_tracer *t, mlo_node *n, const char *name, const int64_t *arg,
    mlo_dtype type, int64_t made) {
    const int64_t bit = mlo_symbol_bit(t, n, arg);
    double is[2] = { 0, 1 };
    int known = bit != 0;
    for (int i = 0; known && i < 2; i++) known = mlo_symbol_evaluated(t, n, name, arg, i, &is[i]);
    if (!known && type != MLO_BOOL) return;
    t->symbol[made].bit = known ? bit : made;
    for (int i = 0; i < 2; i++) t->symbol[made].is[i] = known ? is[i] : i;
}

/* Says what a new symbol is of either of two conditions alone: of And, and of what is made of that and of numbers. */
static void mlo_symbol_halve(mlo_tracer *t, mlo_node *n, const char *name, const int64_t *arg,
    mlo_dtype type, int64_t made) {
    size_t at = 0, found = 0;
    int64_t half[3];
    for (size_t k = 0; k < n->n_input; k++) {
        if (!mlo_has_input(n, k) || mlo_symbol_fixed(t, arg[k])) continue;
        found++;
        at = k;
    }
    if (mlo_is(n, "And") && found == 2 && !t->symbol[arg[0]].half[0]
        && !t->symbol[arg[1]].half[0]) {
        t->symbol[made].half[0] = arg[0];
        t->symbol[made].half[1] = arg[1];
        return;
    }
    if (found != 1 || !t->symbol[arg[at]].half[0] || n->n_input > MLO_MOVE_INPUTS) return;
    for (int i = 0; i < 3; i++) {
        int64_t part[MLO_MOVE_INPUTS] = { 0 };
        for (size_t k = 0; k < n->n_input; k++)
            part[k] = k == at ? t->symbol[arg[at]].half[i] : arg[k];
        half[i] = mlo_symbol_made(t, n, name, part, type);
    }
    memcpy(t->symbol[made].half, half, sizeof half);
}

/* Is it what x and y are, together: hidden wherever one of them is? */
static int mlo_symbol_is_both(const mlo_tracer *t, int64_t id, int64_t x, int64_t y) {
    const int64_t *half = t->symbol[id].half;
    return half[0] && mlo_is_hidden(t, half[2])
        && ((half[0] == x && half[1] == y) || (half[0] == y && half[1] == x));
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
    if (fixed && mlo_symbol_evaluated(t, n, name, arg, -1, &x))
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
    const int64_t made = mlo_symbol_of(t, hash, r.low, r.high, r.tested);
    if (t->bits && !t->m->error.code) mlo_symbol_decide(t, n, name, arg, type, made);
    if (!t->m->error.code) mlo_symbol_halve(t, n, name, arg, type, made);
    return mlo_symbol_split(t, n, name, arg, type, made);
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
    for (int64_t i = 0; a && i < mlo_array_count(a); i++) {
        const int64_t id = mlo_symbol_of(
            t, mlo_mixed(hash, (uint64_t)i), bits ? 0 : -INFINITY, bits ? 1 : INFINITY, -1);
        ((int64_t *)a->data)[i] = id;
        t->symbol[id].bit = bits ? id : 0;
        t->symbol[id].is[1] = bits;
    }
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

/* What a Pad fills with, a number, as its symbol. NULL: it is not known. */
static mlo_array *mlo_trace_filler(mlo_tracer *t, const char *name) {
    mlo_array *number = mlo_trace_numbers(t, name), *symbol = NULL;
    const int64_t one = 1;
    if (number && mlo_array_count(number) == 1
        && (symbol = mlo_array_new(t->m, MLO_INT64, 1, &one)) != NULL)
        ((int64_t *)symbol->data)[0] = mlo_symbol_number(t, mlo_number_at(number, 0));
    mlo_array_free(t->m, number);
    return symbol;
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
            else if (k == 2 && mlo_is(n, "Pad"))
                args[k] = constant[k] = mlo_trace_filler(t, n->input[k]);
            else
                args[k] = constant[k] = mlo_trace_numbers(t, n->input[k]);
            known = args[k] != NULL;
        }
    if (known) result = mlo_made_of(m, n, name, args);
    for (size_t k = 0; k < MLO_MOVE_INPUTS; k++) mlo_array_free(m, constant[k]);
    return result;
}

static mlo_array *mlo_trace_node(mlo_tracer *t, mlo_node *n, const char *name, const mlo_form *f) {
    static const char *const moves[] = { "Expand", "Concat", "Tile", "GatherND", "Trilu", "Pad",
        "ScatterND", "ScatterElements", NULL };
    /* a scale may lie along one */
    static const char *const axes[] = { "QuantizeLinear", "DequantizeLinear", NULL };
    if (mlo_is_layout(n) || mlo_is_one_of(n, moves)) {
        if (mlo_is(n, "ScatterND") || mlo_is(n, "ScatterElements"))
            if (mlo_attr_of(n, "reduction")) return NULL;
        return mlo_trace_move(t, n, name);
    }
    int each = (mlo_is_elementwise(n) && !mlo_is_one_of(n, axes)) || mlo_is_logic(n);
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
