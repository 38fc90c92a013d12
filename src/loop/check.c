/* check: proves that a rolled model computes what the original computes.
 *
 * in:  a rolled model, and the original after stage read.
 * out: 0, or MLO_E_MISMATCH and the first difference.
 *
 * Both graphs are written as terms over one table: input(name), constant(elements),
 * op(attributes, operands...). A term is made once, so equal terms have equal numbers; terms are
 * compared exactly, not by hash. A Scan is unrolled: its body is written once per iteration, with
 * slice k of each stack in place of the scan input. The models are equal when each output is the
 * same term in both.
 *
 * These rules simplify the terms of both sides; all of them are exact:
 *     operands of commutative ops            are sorted
 *     Identity(x)                            is x
 *     slice k of a Scan's output             is what iteration k makes
 *     slice k of Concat(Unsqueeze(p0), ..),
 *       or Reshape(Concat(p0, ..), [n, ..])  is pk
 *     each slice of Expand(x, [n, shape(x)]) is x
 *     Gather(stack, k)                       is slice k of the stack
 *     all of a Scan's output                 is one term, made of its slices
 *     x + (-0, ..), of x's form; Gemm + that is x; the Gemm
 *     x + rows that are alike, of x's form   is x + one row
 *     x cast int4 -> int8 -> int4            is x
 *
 * invariant: check shares no code with roll, extract and discover but the model itself.
 * example: an epsilon edited in a body gives "output 'layer_norm_4': LayerNormalization
 *     node_layer_norm_1: epsilon ..".
 * cost: O(nodes x iterations). A large constant is first compared by its place in its file; its
 *     elements are read only if the models then seem to differ.
 */
typedef enum {
    MLO_TERM_ABSENT,
    MLO_TERM_INPUT,
    MLO_TERM_FORMAL,
    MLO_TERM_CONSTANT,
    MLO_TERM_NODE
} mlo_term_kind;

typedef struct {
    mlo_term_kind kind;
    const char *op; /* interned in the checker's handle; of an input or formal: its name */
    const char *domain; /* interned, as op is */
    const char *attrs; /* interned, as op is */
    const int *in; /* terms that it is made of */
    int n_in;
    int output; /* which of the node's */
    int commutes; /* 1: its two operands may come in either order */
    const mlo_tensor *tensor;
    mlo *owner; /* of the tensor */
    const mlo_node *node; /* who made it first */
    uint64_t hash;
    int next; /* of the same bucket */
} mlo_term;

typedef struct {
    const int *slice;
    int n;
} mlo_slices;

typedef struct mlo_terms_env {
    struct mlo_terms_env *outer;
    mlo_graph *g;
    mlo_map id; /* name -> id + 1 */
    mlo_map slices; /* name -> mlo_slices */
} mlo_terms_env;

typedef struct {
    mlo *m; /* where the table lives */
    mlo *side; /* the model being written */
    mlo_term *term;
    size_t n;
    int *bucket;
    size_t n_buckets;
    int by_value; /* read large constants, too */
    /* subgraphs around the nodes at work, not counting unrolled loops */
    int binders;
    int64_t budget; /* nodes and slices that loops may still unroll to */
    int formals;
} mlo_terms;

/* ---- terms ---------------------------------------------------------------- */

static int mlo_terms_grow(mlo_terms *t) {
    size_t size = t->n_buckets ? t->n_buckets * 2 : 1024;
    int *bucket = MLO_NEW_N(t->m, int, size);
    if (!bucket) return mlo_failed(t->m);
    for (size_t i = 0; i < size; i++) bucket[i] = -1;
    for (size_t i = 0; i < t->n; i++) {
        size_t b = (size_t)t->term[i].hash & (size - 1);
        t->term[i].next = bucket[b];
        bucket[b] = (int)i;
    }
    t->bucket = bucket;
    t->n_buckets = size;
    return 0;
}

/* bytes up to which a constant is always compared by its elements */
enum { MLO_SMALL_TENSOR = 65536 };

static int mlo_is_reference(const mlo_terms *t, const mlo_tensor *x) {
    return x->source && !t->by_value && x->length > MLO_SMALL_TENSOR;
}

static int mlo_constants_same(const mlo_terms *t, const mlo_term *a, const mlo_term *b) {
    const mlo_tensor *x = a->tensor, *y = b->tensor;
    const int far = mlo_is_reference(t, x);
    if (!mlo_tensor_alike(x, y) || far != mlo_is_reference(t, y)) return 0;
    if (!far) return mlo_elements_same(a->owner, x, b->owner, y);
    /* of large ones: is it the same place of one file? */
    return (x->offset == y->offset) & (x->length == y->length)
        & mlo_eq(x->source->path, y->source->path);
}

static uint64_t mlo_constant_hash(const mlo_terms *t, mlo *owner, const mlo_tensor *x) {
    if (!mlo_is_reference(t, x)) return mlo_tensor_hash(owner, x);
    return mlo_hash(x->source->name, strlen(x->source->name)) ^ x->offset * 0x9E3779B97F4A7C15u
        ^ x->length;
}

static int mlo_terms_equal(const mlo_terms *t, const mlo_term *a, const mlo_term *b) {
    int same = (a->hash == b->hash) & (a->kind == b->kind) & (a->op == b->op)
        & (a->domain == b->domain) & (a->attrs == b->attrs) & (a->output == b->output)
        & (a->n_in == b->n_in);
    if (!same) return 0;
    if (a->kind == MLO_TERM_CONSTANT) return mlo_constants_same(t, a, b);
    for (int i = 0; i < a->n_in; i++) same &= a->in[i] == b->in[i];
    return same;
}

/* The number of a term, -1 without memory. */
static int mlo_terms_put(mlo_terms *t, mlo_term x) {
    if (t->n * 2 >= t->n_buckets && mlo_terms_grow(t)) return -1;
    uint64_t h = (uint64_t)x.kind * 1000003u + (uint64_t)x.output;
    const char *texts[3] = { x.op, x.domain, x.attrs };
    for (int i = 0; i < 3; i++)
        if (texts[i]) h = h * 0x9E3779B97F4A7C15u ^ mlo_hash(texts[i], strlen(texts[i]));
    for (int i = 0; i < x.n_in; i++)
        h = (h ^ (uint64_t)x.in[i]) * 0xFF51AFD7ED558CCDu, h ^= h >> 29;
    if (x.tensor) h ^= mlo_constant_hash(t, x.owner, x.tensor);
    x.hash = h;
    size_t b = (size_t)h & (t->n_buckets - 1);
    for (int i = t->bucket[b]; i >= 0; i = t->term[i].next)
        if (mlo_terms_equal(t, &t->term[i], &x)) return i;
    x.next = t->bucket[b];
    if (!MLO_PUSH(t->m, t->term, t->n, x)) return -1;
    t->bucket[b] = (int)t->n - 1;
    return (int)t->n - 1;
}

static int mlo_terms_leaf(
    mlo_terms *t, mlo_term_kind kind, const char *name, const mlo_tensor *tensor) {
    mlo_term x;
    memset(&x, 0, sizeof x);
    x.kind = kind;
    x.op = name ? mlo_intern(t->m, name) : NULL;
    x.tensor = tensor;
    x.owner = t->side;
    return mlo_terms_put(t, x);
}

static int mlo_terms_number(mlo_terms *t, int64_t value) { /* an int64 scalar */
    mlo_tensor *x = mlo_tensor_of_ints(t->m, NULL, &value, -1);
    return x ? mlo_terms_leaf(t, MLO_TERM_CONSTANT, NULL, x) : -1;
}

/* ---- names ---------------------------------------------------------------- */

/* What a Scan stacked, as one term, made of what each iteration made. */
static int mlo_terms_all(mlo_terms *t, const mlo_terms_env *env, const mlo_value *v) {
    const mlo_slices *s = (const mlo_slices *)mlo_map_get(&env->slices, v->name);
    if (!s) {
        mlo_fail_at(t->m, MLO_E_GRAPH, v->name, "is read before it is made");
        return -1;
    }
    mlo_term x;
    memset(&x, 0, sizeof x);
    x.kind = MLO_TERM_NODE;
    x.op = mlo_intern(t->m, "all iterations of");
    x.in = s->slice;
    x.n_in = s->n;
    x.node = v->producer;
    x.owner = t->side;
    return mlo_terms_put(t, x);
}

/* The term of a name, -1 when that fails. Initializers, and whole stacks, become terms when first
 * used. */
static int mlo_terms_get(mlo_terms *t, mlo_terms_env *env, const char *name) {
    if (!*name) return mlo_terms_leaf(t, MLO_TERM_ABSENT, NULL, NULL);
    for (mlo_terms_env *e = env; e; e = e->outer) {
        uintptr_t id = (uintptr_t)mlo_map_get(&e->id, name);
        if (id) return (int)id - 1;
        mlo_value *v = (mlo_value *)mlo_map_get(&e->g->values, name);
        if (!v) continue;
        int c = v->tensor ? mlo_terms_leaf(t, MLO_TERM_CONSTANT, NULL, v->tensor)
                          : mlo_terms_all(t, e, v);
        return c < 0 || mlo_map_put(t->m, &e->id, name, (void *)(uintptr_t)(c + 1)) ? -1 : c;
    }
    mlo_fail_at(t->m, MLO_E_GRAPH, name, "nothing makes this value");
    return -1;
}

/* Gives a name its term. */
static int mlo_terms_bind(mlo_terms *t, mlo_terms_env *env, const char *name, int id) {
    return id < 0 || mlo_map_put(t->m, &env->id, name, (void *)(uintptr_t)(id + 1)) ? -1 : 0;
}

/* The value behind a name, and the environment it lives in. */
static mlo_value *mlo_terms_value(mlo_terms_env *env, const char *name, mlo_terms_env **home) {
    for (; env; env = env->outer) {
        mlo_value *v = (mlo_value *)mlo_map_get(&env->g->values, name);
        if (v) {
            *home = env;
            return v;
        }
    }
    return NULL;
}

/* ---- stacks --------------------------------------------------------------- */

/* The elements of a node's second input, a small constant of integers; -1 when it is none. */
static int mlo_terms_ints(
    mlo_terms *t, mlo_terms_env *env, const mlo_node *n, int64_t *to, size_t max) {
    mlo_terms_env *home;
    mlo_value *v = n->n_input > 1 ? mlo_terms_value(env, n->input[1], &home) : NULL;
    return v ? mlo_tensor_ints(t->side, v->tensor, to, max) : -1;
}

/* What a part of a stack is without its first axis: x of Unsqueeze(x, 0), or of Reshape(scalar x,
 * [1]). NULL: neither. */
static const char *mlo_terms_part(mlo_terms *t, mlo_terms_env *env, const char *name) {
    mlo_terms_env *home = env;
    int64_t axis[2];
    mlo_value *v = mlo_terms_value(env, name, &home);
    mlo_node *n = v ? v->producer : NULL;
    if (mlo_is(n, "Unsqueeze")) {
        mlo_attr *a = mlo_attr_of(n, "axes");
        if (a ? a->n_ints == 1 && !a->ints[0]
              : mlo_terms_ints(t, home, n, axis, 2) == 1 && !axis[0])
            return n->input[0];
    }
    if (mlo_is(n, "Reshape") && mlo_terms_ints(t, home, n, axis, 2) == 1 && axis[0] == 1
        && mlo_form_of(mlo_terms_value(home, n->input[0], &home)).rank == 0)
        return n->input[0];
    return NULL;
}

/* Does the Reshape turn a Concat of parts of equal form into [parts, ...form]? */
static int mlo_is_unstacking(
    mlo_terms *t, mlo_terms_env *env, const mlo_node *reshape, const mlo_node *concat) {
    int64_t shape[MLO_MAX_RANK + 1];
    mlo_terms_env *home;
    int rank = mlo_terms_ints(t, env, reshape, shape, MLO_MAX_RANK + 1);
    if (rank < 1 || shape[0] != (int64_t)concat->n_input) return 0;
    for (size_t k = 0; k < concat->n_input; k++) {
        mlo_form f = mlo_form_of(mlo_terms_value(env, concat->input[k], &home));
        if (!mlo_form_known(&f) || f.rank != rank - 1) return 0;
        for (int i = 0; i < f.rank; i++)
            if (f.dims[i] != shape[i + 1]) return 0;
    }
    return 1;
}

/* Does the Expand repeat its input along a new first axis? How often, else 0. */
static int64_t mlo_repeats(mlo_terms *t, mlo_terms_env *env, const mlo_node *expand) {
    int64_t shape[MLO_MAX_RANK + 1];
    mlo_terms_env *home;
    if (!mlo_is(expand, "Expand")) return 0;
    int rank = mlo_terms_ints(t, env, expand, shape, MLO_MAX_RANK + 1);
    mlo_form f = mlo_form_of(mlo_terms_value(env, expand->input[0], &home));
    if (!mlo_form_known(&f) || f.rank != rank - 1 || shape[0] < 1) return 0;
    for (int i = 0; i < f.rank; i++)
        if (f.dims[i] != shape[i + 1]) return 0;
    return shape[0];
}

/* The slices of a stack along its first axis; 0 when the value is no stack that check knows. */
static int mlo_terms_slices(mlo_terms *t, mlo_terms_env *env, const char *name, mlo_slices *out) {
    mlo_terms_env *home;
    mlo_value *v = mlo_terms_value(env, name, &home);
    if (!v) return 0;
    const mlo_slices *known = (const mlo_slices *)mlo_map_get(&home->slices, name);
    if (known) {
        *out = *known;
        return 1;
    }
    mlo_node *n = v->producer, *concat = n;
    const int unstack = mlo_is(n, "Reshape");
    const int64_t repeats = mlo_repeats(t, home, n);
    if (unstack) {
        mlo_terms_env *inner;
        mlo_value *c = mlo_terms_value(home, n->input[0], &inner);
        concat = c ? c->producer : NULL;
    }
    int numbers = !n && v->tensor && v->tensor->data_type == MLO_INT64 && v->tensor->n_dims == 1;
    if (!numbers && !repeats && (!mlo_is(concat, "Concat") || mlo_int(concat, "axis", 1))) return 0;
    if (!numbers && unstack && !mlo_is_unstacking(t, home, n, concat)) return 0;
    const int64_t count = numbers ? v->tensor->dims[0]
        : repeats                 ? repeats
                                  : (int64_t)concat->n_input;
    if (count > t->budget) return 0;
    t->budget -= count;
    int *slice = MLO_NEW_N(t->m, int, (size_t)count + 1);
    int64_t *value = numbers ? MLO_NEW_N(t->m, int64_t, (size_t)count + 1) : NULL;
    if (!slice
        || (numbers && (!value || mlo_tensor_read(t->side, v->tensor, 0, (size_t)count, value))))
        return 0;
    for (int k = 0; k < count; k++) {
        const char *part = numbers ? NULL
            : repeats              ? n->input[0]
            : unstack              ? concat->input[k]
                                   : mlo_terms_part(t, home, concat->input[k]);
        if (!numbers && !part) return 0;
        slice[k] = numbers ? mlo_terms_number(t, value[k]) : mlo_terms_get(t, home, part);
        if (slice[k] < 0) return 0;
    }
    mlo_slices *s = MLO_NEW(t->m, mlo_slices);
    if (!s) return 0;
    s->slice = slice;
    s->n = (int)count;
    *out = *s;
    return !mlo_map_put(t->m, &home->slices, name, s);
}

/* ---- nodes ---------------------------------------------------------------- */

static int mlo_terms_graph(mlo_terms *t, mlo_terms_env *env);

/* A subgraph as text: the terms of its outputs, over formal inputs, which are called alike at any
 * depth of unrolled loops. */
static int mlo_terms_subgraph(mlo_terms *t, mlo_terms_env *outer, mlo_graph *g, mlo_text *text) {
    mlo_terms_env env = { outer, g, { NULL, 0, 0 }, { NULL, 0, 0 } };
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = mlo_format(t->m, "formal %d.%zu", t->binders, i);
        int id = mlo_terms_leaf(t, MLO_TERM_FORMAL, name, NULL);
        if (mlo_terms_bind(t, &env, g->input[i]->name, id)) return mlo_failed(t->m);
    }
    t->binders++;
    if (mlo_terms_graph(t, &env)) return mlo_failed(t->m);
    t->binders--;
    mlo_puts(text, "{");
    for (size_t i = 0; i < g->n_output; i++)
        mlo_printf(text, " %d", mlo_terms_get(t, &env, g->output[i]->name));
    mlo_puts(text, "}");
    return mlo_failed(t->m);
}

static int mlo_terms_attr(mlo_terms *t, mlo_terms_env *env, const mlo_attr *a, mlo_text *text) {
    uint32_t bits;
    mlo_printf(text, "%s:%d=", a->name, (int)a->type);
    switch (a->type) {
    case MLO_ATTR_FLOAT:
        memcpy(&bits, &a->f, 4);
        mlo_printf(text, "%08x", (unsigned)bits);
        break;
    case MLO_ATTR_INT: mlo_printf(text, "%lld", (long long)a->i); break;
    case MLO_ATTR_STRING:
        for (size_t i = 0; i < a->s.n; i++)
            mlo_printf(text, "%02x", (unsigned)(unsigned char)a->s.data[i]);
        break;
    case MLO_ATTR_TENSOR:
        mlo_printf(text, "t%d", mlo_terms_leaf(t, MLO_TERM_CONSTANT, NULL, a->t));
        break;
    case MLO_ATTR_GRAPH: mlo_terms_subgraph(t, env, a->g, text); break;
    case MLO_ATTR_FLOATS:
        for (size_t i = 0; i < a->n_floats; i++) {
            memcpy(&bits, &a->floats[i], 4);
            mlo_printf(text, "%08x,", (unsigned)bits);
        }
        break;
    case MLO_ATTR_INTS:
        for (size_t i = 0; i < a->n_ints; i++) mlo_printf(text, "%lld,", (long long)a->ints[i]);
        break;
    case MLO_ATTR_STRINGS:
        for (size_t i = 0; i < a->n_strings; i++) {
            for (size_t k = 0; k < a->strings[i].n; k++)
                mlo_printf(text, "%02x", (unsigned)(unsigned char)a->strings[i].data[k]);
            mlo_puts(text, ",");
        }
        break;
    case MLO_ATTR_GRAPHS:
        for (size_t i = 0; i < a->n_graphs; i++) mlo_terms_subgraph(t, env, a->graphs[i], text);
        break;
    case MLO_ATTR_TENSORS:
        for (size_t i = 0; i < a->n_tensors; i++)
            mlo_printf(text, "t%d,", mlo_terms_leaf(t, MLO_TERM_CONSTANT, NULL, a->tensors[i]));
        break;
    default:
        return mlo_fail_at(t->m, MLO_E_UNSUPPORTED, a->name,
            "check cannot compare attributes of type %d", (int)a->type);
    }
    mlo_puts(text, ";");
    return mlo_failed(t->m);
}

/* All attributes in the order of their names, as one interned text. */
static const char *mlo_terms_attrs(mlo_terms *t, mlo_terms_env *env, const mlo_node *n) {
    mlo_text text = { t->m, NULL, 0, 0 };
    const char *after = "";
    for (size_t round = 0; round < n->n_attr; round++) {
        const mlo_attr *least = NULL;
        for (size_t i = 0; i < n->n_attr; i++)
            if (strcmp(n->attr[i]->name, after) > 0
                && (!least || strcmp(n->attr[i]->name, least->name) < 0))
                least = n->attr[i];
        if (!least) break;
        if (!mlo_attr_is_default(n, least) && mlo_terms_attr(t, env, least, &text)) break;
        after = least->name;
    }
    const char *s = t->m->error.code ? NULL : mlo_intern(t->m, mlo_or_empty(text.text));
    mlo_text_free(&text);
    return s;
}

/* The rules that make a node's output another term; -2: none applies. */
static int mlo_terms_simplify(mlo_terms *t, mlo_terms_env *env, const mlo_node *n) {
    int64_t index[1];
    mlo_slices s;
    if (mlo_is(n, "Identity")) return mlo_terms_get(t, env, n->input[0]);
    if (mlo_is(n, "Gather") && n->n_input == 2 && !mlo_int(n, "axis", 0)
        && mlo_terms_slices(t, env, n->input[0], &s)) {
        int id = mlo_terms_get(t, env, n->input[1]);
        const mlo_tensor *x = id >= 0 ? t->term[id].tensor : NULL;
        if (x && !x->n_dims && mlo_tensor_ints(t->term[id].owner, x, index, 1) == 1 && index[0] >= 0
            && index[0] < s.n)
            return s.slice[index[0]];
    }
    if (mlo_is(n, "Cast")) {
        int id = mlo_terms_get(t, env, n->input[0]);
        int64_t to = mlo_int(n, "to", 0);
        const mlo_node *inner = id >= 0 ? t->term[id].node : NULL;
        if (mlo_is(inner, "Cast") && mlo_int(inner, "to", 0) == MLO_INT8
            && (to == MLO_INT4 || to == MLO_UINT4)) {
            const mlo_tensor *x = t->term[t->term[id].in[0]].tensor;
            if (x && x->data_type == to) return t->term[id].in[0];
        }
    }
    return -2;
}

/* A constant of floats that a sum or a Gemm adds, in rows that are all alike; else NULL. */
static const mlo_tensor *mlo_terms_rows(mlo_terms *t, int id) {
    const mlo_tensor *x = id >= 0 ? t->term[id].tensor : NULL;
    return x && x->data_type == MLO_FLOAT && x->n_dims && mlo_tensor_rows_same(t->term[id].owner, x)
        ? x
        : NULL;
}

/* Does a sum leave x, its input i, the form that x has? */
static int mlo_terms_keeps_form(mlo_terms_env *env, const mlo_node *sum, size_t i) {
    mlo_terms_env *home;
    const mlo_form x = mlo_form_of(mlo_terms_value(env, sum->input[i], &home));
    const mlo_form y = mlo_form_of(mlo_terms_value(env, sum->output[0], &home));
    return mlo_form_known(&x) && mlo_form_same(&x, &y);
}

/* One row of them, as a term; *none: it is -0 everywhere. */
static int mlo_terms_row(mlo_terms *t, int id, const mlo_tensor *rows, int *none) {
    const int64_t n = rows->dims[rows->n_dims - 1];
    float *row = MLO_NEW_N(t->m, float, (size_t)n + 1);
    if (!row || mlo_tensor_read(t->term[id].owner, rows, 0, (size_t)n, row)) return -1;
    *none = 1;
    for (int64_t i = 0; i < n; i++) *none &= signbit(row[i]) && !mlo_differs((double)row[i], 0);
    if (rows->n_dims == 1) return id;
    const mlo_tensor *x = mlo_tensor_of_floats(t->m, NULL, row, n);
    return x ? mlo_terms_leaf(t, MLO_TERM_CONSTANT, NULL, x) : -1;
}

/* Terms of a sum whose constant is the same for every token: of one row; 1: nothing is added to in[0], 0: something,
 * -1: it failed. */
static int mlo_terms_added(mlo_terms *t, mlo_terms_env *env, const mlo_node *n, int *in) {
    const mlo_attr *beta = mlo_attr_of(n, "beta");
    const int gemm = mlo_is(n, "Gemm") && n->n_input == 3
        && !(beta && mlo_differs((double)beta->f, 1));
    int none = 0;
    if (!gemm && !mlo_is(n, "Add")) return 0;
    for (size_t i = gemm ? 2 : 0; i < n->n_input && !none; i++) {
        const mlo_tensor *rows = mlo_terms_rows(t, in[i]);
        if (!rows || (!gemm && !mlo_terms_keeps_form(env, n, 1 - i)) || (gemm && rows->n_dims > 1))
            continue;
        if ((in[i] = mlo_terms_row(t, in[i], rows, &none)) < 0) return -1;
        if (none && !gemm) in[0] = in[1 - i];
    }
    return none;
}

/* nodes that a model's own loops may unroll to; what rolling saved comes on top */
enum { MLO_UNROLLED = 1 << 14 };

/* Runs a Scan, or a FINNLoop, symbolically. 0: done; -2: not one that can be unrolled, or one too
 * long to be a rolled stack of layers, or without iterations. */
static int mlo_terms_scan(mlo_terms *t, mlo_terms_env *env, const mlo_node *n) {
    mlo *m = t->m;
    mlo_graph *g = mlo_graph_of(n, "body");
    int64_t inputs = (int64_t)mlo_scan_stacks(n);
    int64_t rounds = mlo_is(n, "Scan") ? -1 : mlo_int(n, "iteration", 1);
    if (!g || inputs < 1 || inputs > (int64_t)n->n_input || g->n_input != n->n_input
        || g->n_output != n->n_output || n->n_attr != (mlo_is(n, "Scan") ? 2 : 5))
        return -2;
    size_t states = n->n_input - (size_t)inputs;
    if (g->n_output < states) return -2;
    mlo_slices *s = MLO_NEW_N(m, mlo_slices, (size_t)inputs);
    int *state = MLO_NEW_N(m, int, states + 1);
    if (!s || !state) return -1;
    for (size_t i = 0; i < (size_t)inputs; i++) {
        if (!mlo_terms_slices(t, env, n->input[states + i], &s[i])) return m->error.code ? -1 : -2;
        if (rounds >= 0 && s[i].n != rounds) return -2;
        rounds = s[i].n;
    }
    const int64_t cost = rounds * (int64_t)(g->n_node + g->n_input + 1);
    if (!rounds || cost > t->budget) return -2;
    t->budget -= cost;
    int *taps = MLO_NEW_N(m, int, (g->n_output - states) * (size_t)rounds + 1);
    if (!taps) return -1;
    for (size_t i = 0; i < states; i++)
        if ((state[i] = mlo_terms_get(t, env, n->input[i])) < 0) return -1;
    for (int k = 0; k < rounds; k++) {
        mlo_terms_env inner = { env, g, { NULL, 0, 0 }, { NULL, 0, 0 } };
        for (size_t i = 0; i < g->n_input; i++)
            if (mlo_terms_bind(
                    t, &inner, g->input[i]->name, i < states ? state[i] : s[i - states].slice[k]))
                return -1;
        if (mlo_terms_graph(t, &inner)) return -1;
        for (size_t i = 0; i < g->n_output; i++) {
            int id = mlo_terms_get(t, &inner, g->output[i]->name);
            if (id < 0) return -1;
            if (i < states)
                state[i] = id;
            else
                taps[(i - states) * (size_t)rounds + (size_t)k] = id;
        }
    }
    for (size_t i = 0; i < states; i++)
        if (mlo_terms_bind(t, env, n->output[i], state[i])) return -1;
    for (size_t i = states; i < n->n_output; i++) {
        mlo_slices *tap = MLO_NEW(m, mlo_slices);
        if (!tap) return -1;
        tap->slice = taps + (i - states) * (size_t)rounds;
        tap->n = (int)rounds;
        if (mlo_map_put(m, &env->slices, n->output[i], tap)) return -1;
    }
    return 0;
}

static int mlo_terms_node(mlo_terms *t, mlo_terms_env *env, const mlo_node *n) {
    mlo *m = t->m;
    /* a constant: mlo_terms_get */
    if (mlo_is(n, "Constant") && n->n_output == 1 && mlo_attr_of(n, "value")) return 0;
    int r = mlo_is_scan(n) ? mlo_terms_scan(t, env, n) : -2;
    if (r != -2) return r;
    if ((r = mlo_terms_simplify(t, env, n)) != -2) return mlo_terms_bind(t, env, n->output[0], r);
    int *in = MLO_NEW_N(m, int, n->n_input + 1);
    if (!in) return -1;
    mlo_term x;
    memset(&x, 0, sizeof x);
    for (size_t i = 0; i < n->n_input; i++) {
        in[i] = mlo_terms_get(t, env, n->input[i]);
        if (in[i] < 0) return -1;
    }
    if ((r = mlo_terms_added(t, env, n, in)) < 0) return -1;
    if (r && mlo_is(n, "Add")) return mlo_terms_bind(t, env, n->output[0], in[0]);
    x.commutes = mlo_commutes(n);
    if (x.commutes && in[0] > in[1]) {
        int swap = in[0];
        in[0] = in[1];
        in[1] = swap;
    }
    x.kind = MLO_TERM_NODE;
    x.op = mlo_intern(m, n->op);
    x.in = in;
    x.n_in = (int)n->n_input - r;
    x.node = n;
    x.owner = t->side;
    x.domain = mlo_intern(m, mlo_domain(n));
    if (!(x.attrs = mlo_terms_attrs(t, env, n))) return -1;
    for (size_t o = 0; o < n->n_output; o++) {
        x.output = (int)o;
        if (mlo_terms_bind(t, env, n->output[o], mlo_terms_put(t, x))) return -1;
    }
    return 0;
}

/* An indexed graph is not nested too deep. */
static int mlo_terms_graph(mlo_terms *t, mlo_terms_env *env) {
    for (size_t i = 0; i < env->g->n_node; i++)
        if (mlo_terms_node(t, env, env->g->node[i])) return -1;
    return 0;
}

/* ---- differences ---------------------------------------------------------- */

static const char *mlo_term_text(mlo *m, const mlo_term *x) {
    switch (x->kind) {
    case MLO_TERM_ABSENT: return "nothing";
    case MLO_TERM_FORMAL:
    case MLO_TERM_INPUT: return mlo_format(m, "input %s", x->op);
    case MLO_TERM_CONSTANT:
        return mlo_format(m, "constant %s (%s %s)", mlo_or_empty(x->tensor->name),
            mlo_dtype_name((mlo_dtype)x->tensor->data_type),
            mlo_dims_text(m, x->tensor->n_dims > MLO_MAX_RANK ? -1 : (int)x->tensor->n_dims,
                x->tensor->dims));
    default: return mlo_format(m, "%s %s", x->op, mlo_node_name(x->node));
    }
}

/* Goes down from two different terms to where they first differ: in op, attributes or number of
 * operands, or in a leaf, of which the node that reads it is named. */
static int mlo_terms_blame(mlo_terms *t, const char *output, int a, int b) {
    mlo *m = t->m;
    const mlo_node *reader = NULL;
    for (;;) {
        const mlo_term *x = &t->term[a], *y = &t->term[b];
        int same = (x->kind == MLO_TERM_NODE) & (x->kind == y->kind) & (x->op == y->op)
            & (x->domain == y->domain) & (x->n_in == y->n_in) & (x->output == y->output);
        if (same && x->attrs != y->attrs)
            return mlo_fail(m, MLO_E_MISMATCH, x->node,
                "output '%s' differs: attributes here %.120s, in the original's %s %.120s", output,
                x->attrs, mlo_node_name(y->node), y->attrs);
        if (!same)
            return mlo_fail(m, MLO_E_MISMATCH, x->node ? x->node : reader,
                "output '%s' differs: %s here, %s in the original", output, mlo_term_text(m, x),
                mlo_term_text(m, y));
        int i = 0, j;
        while (x->in[i] == y->in[i]) i++; /* in something they do differ */
        j = i;
        /* operands are sorted by number: pair up what is not shared, which is one of them or both */
        if (x->commutes) {
            i = (x->in[0] == y->in[0]) | (x->in[0] == y->in[1]);
            j = (y->in[0] == x->in[0]) | (y->in[0] == x->in[1]);
            if (!i && !j && t->term[x->in[0]].op != t->term[y->in[0]].op
                && t->term[x->in[0]].op == t->term[y->in[1]].op)
                j = 1;
        }
        reader = x->node;
        a = x->in[i];
        b = y->in[j];
    }
}

static int mlo_check_inputs(mlo *m, const mlo_graph *a, const mlo_graph *b) {
    if (a->n_input != b->n_input)
        return mlo_fail_at(m, MLO_E_MISMATCH, NULL, "%zu inputs here, %zu in the original",
            a->n_input, b->n_input);
    for (size_t i = 0; i < a->n_input; i++) {
        const mlo_value_info *x = a->input[i], *y = b->input[i];
        if (!mlo_eq(x->name, y->name))
            return mlo_fail_at(
                m, MLO_E_MISMATCH, x->name, "input %zu is called '%s' in the original", i, y->name);
        mlo_form f = mlo_form_of(mlo_value_of(a, x->name));
        mlo_form g = mlo_form_of(mlo_value_of(b, y->name));
        int same = f.dtype == g.dtype && f.rank == g.rank;
        for (int k = 0; same && k < f.rank; k++) same = f.dims[k] == g.dims[k];
        if (!same)
            return mlo_fail_at(
                m, MLO_E_MISMATCH, x->name, "the input's type or shape is not the original's");
    }
    return 0;
}

/* Writes one model's graph; its terms' names stay in env. */
static int mlo_check_write(mlo_terms *t, mlo *side, const mlo *original, mlo_terms_env *env) {
    mlo_graph *g = side->model->graph;
    env->g = g;
    t->side = side;
    t->budget = MLO_UNROLLED + 8 * (int64_t)original->model->graph->n_node;
    for (size_t i = 0; i < g->n_input; i++)
        if (mlo_terms_bind(t, env, g->input[i]->name,
                mlo_terms_leaf(t, MLO_TERM_INPUT, g->input[i]->name, NULL)))
            return mlo_failed(t->m);
    mlo_terms_graph(t, env);
    return mlo_failed(t->m);
}

static int mlo_check_once(mlo *rolled, mlo *original, int by_value, int *last) {
    mlo_terms t;
    mlo_terms_env here = { NULL, NULL, { NULL, 0, 0 }, { NULL, 0, 0 } }, there = here;
    const mlo_graph *a = rolled->model->graph, *b = original->model->graph;
    memset(&t, 0, sizeof t);
    t.m = rolled;
    t.by_value = by_value;
    if (mlo_check_write(&t, original, original, &there)
        || mlo_check_write(&t, rolled, original, &here))
        return mlo_failed(rolled);
    if (original->error.code)
        return mlo_fail_at(rolled, original->error.code, original->error.node,
            "the original cannot be compared: %s", original->error.message);
    for (size_t i = 0; i < a->n_output; i++) {
        int x = mlo_terms_get(&t, &here, a->output[i]->name), y;
        t.side = original;
        y = mlo_terms_get(&t, &there, b->output[i]->name);
        t.side = rolled;
        if (x < 0 || y < 0) return mlo_failed(rolled);
        if (x == y) continue;
        /* perhaps only a large constant in another place: look again, reading */
        if (!by_value) {
            *last = 0;
            return 0;
        }
        return mlo_terms_blame(&t, a->output[i]->name, x, y);
    }
    return 0;
}

/* Proves that `rolled` computes what `original` (after read) computes; the failure is recorded in
 * `rolled`. */
static int mlo_check_models(mlo *rolled, mlo *original) {
    const mlo_graph *a = rolled->model->graph, *b = original->model->graph;
    int last = 1;
    if (mlo_check_inputs(rolled, a, b)) return mlo_failed(rolled);
    if (a->n_output != b->n_output)
        return mlo_fail_at(rolled, MLO_E_MISMATCH, NULL, "%zu outputs here, %zu in the original",
            a->n_output, b->n_output);
    for (size_t i = 0; i < a->n_output; i++)
        if (!mlo_eq(a->output[i]->name, b->output[i]->name))
            return mlo_fail_at(rolled, MLO_E_MISMATCH, a->output[i]->name,
                "output %zu is called '%s' in the original", i, b->output[i]->name);
    for (size_t i = 0; i < original->model->n_opset; i++) {
        const mlo_opset *o = &original->model->opset[i];
        int found = 0;
        for (size_t k = 0; k < rolled->model->n_opset; k++)
            found |= mlo_eq(mlo_standard(rolled->model->opset[k].domain), mlo_standard(o->domain))
                && rolled->model->opset[k].version == o->version;
        if (!found)
            return mlo_fail_at(rolled, MLO_E_MISMATCH, NULL,
                "the original imports version %lld of the operators '%s'", (long long)o->version,
                mlo_standard(o->domain));
    }
    if (mlo_check_once(rolled, original, 0, &last) || last) return mlo_failed(rolled);
    return mlo_check_once(rolled, original, 1, &last);
}
