/* op: what an operator is to mlo: a name, a shape rule, an evaluation.
 *
 * in:  a node with the forms (element type and shape), or the arrays, of its inputs.
 * out: the forms, or the arrays, of its outputs.
 *
 * invariant: `shape` and `run` agree; neither keeps state. An op without `run` passes through the
 *     stages, but cannot be evaluated.
 * example: { "MatMul", mlo_matmul_shape, mlo_matmul_run } is all there is to say about MatMul.
 * cost: shape O(rank); run O(the op's work).
 */

/* What a shape rule sees. in[i].rank < 0: unknown or absent. Leave out[i] alone when unknown.
 * mlo_shape_value(s, i): the constant that input i is, NULL when it is not known; elements of an
 * integer value may be MLO_UNKNOWN. */
#define MLO_UNKNOWN (INT64_MIN + 0x6d6c6f) /* not INT64_MIN itself, which reversing slices say */
typedef struct mlo_shapes mlo_shapes;
struct mlo_shapes {
    mlo *m;
    mlo_node *node;
    int opset;
    const mlo_form *in;
    size_t n_in;
    mlo_form *out;
    size_t n_out;
    /* who knows the values */
    const mlo_array *(*value)(const mlo_shapes *s, size_t i);
    void *from;
};
static const mlo_array *mlo_shape_value(const mlo_shapes *s, size_t i) {
    return i < s->n_in ? s->value(s, i) : NULL;
}

/* What an evaluation sees. in[i] is NULL for an absent input. Before `run`, the op's shape rule
 * has been asked (forms holds the answer) and out[i] been made where it knew the form and somebody
 * wants that output; mlo_call_out makes (or takes) one of given form. */
typedef struct {
    mlo *m;
    mlo_node *node;
    int opset;
    const mlo_array *const *in;
    size_t n_in;
    mlo_array **out;
    size_t n_out;
    const mlo_shapes *forms;
} mlo_call;

typedef struct {
    const char *name; /* as for mlo_is: "MatMul", "mlo.MVU" */
    int (*shape)(mlo_shapes *s); /* NULL: nothing is known of its outputs */
    int (*run)(mlo_call *c); /* NULL: cannot be evaluated */
    /* how many inputs a node of it has at least: read refuses it with fewer, so nobody need look */
    size_t least;
} mlo_op;

static int64_t mlo_array_count(const mlo_array *a) {
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++) n *= a->dims[i];
    return n;
}

/* Bytes of one element in an mlo_array (4-bit and smaller types take a byte each), 0 for types
 * that have no arrays (strings, complex). */
static size_t mlo_dtype_size(mlo_dtype t) {
    switch (t) {
    case MLO_FLOAT:
    case MLO_INT32:
    case MLO_UINT32: return 4;
    case MLO_DOUBLE:
    case MLO_INT64:
    case MLO_UINT64: return 8;
    case MLO_FLOAT16:
    case MLO_BFLOAT16:
    case MLO_INT16:
    case MLO_UINT16: return 2;
    case MLO_STRING:
    case MLO_COMPLEX64:
    case MLO_COMPLEX128:
    case MLO_UNDEFINED: return 0;
    default: return 1;
    }
}

/* A new array in scratch memory (freed by mlo_array_free, or by the evaluator when its last user
 * is done). */
static void *mlo_array_own(mlo_array *a) { return (char *)a + (sizeof *a + 15) / 16 * 16; }
static mlo_array *mlo_array_new(mlo *m, mlo_dtype dtype, int rank, const int64_t *dims) {
    uint64_t bytes = mlo_dtype_size(dtype);
    int empty = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0 || (dims[i] && bytes > (uint64_t)(SIZE_MAX / 4) / (uint64_t)dims[i])) {
            mlo_fail_at(m, MLO_E_SHAPE, NULL, "a tensor of rank %d is too large to evaluate", rank);
            return NULL;
        }
        if (dims[i])
            bytes *= (uint64_t)dims[i];
        else
            empty = 1;
    }
    if (empty) bytes = 0;
    char *block = (char *)mlo_scratch(m, sizeof(mlo_array) + 16 + (size_t)bytes, 1);
    if (!block) return NULL;
    mlo_array *a = (mlo_array *)(void *)block;
    memset(a, 0, sizeof *a);
    a->dtype = dtype;
    a->rank = rank;
    for (int i = 0; i < rank; i++) a->dims[i] = dims[i];
    a->data = mlo_array_own(a);
    return a;
}
/* Mapped bytes of a file (mlo_desc.map). */
typedef struct mlo_mapping {
    struct mlo_mapping *next;
    char *data;
    size_t bytes;
} mlo_mapping;

/* An array over mapped bytes: behind its head is the mapping of them. */
static mlo_array *mlo_array_over(
    mlo *m, mlo_dtype dtype, int rank, const int64_t *dims, void *data, size_t bytes) {
    const int64_t head = sizeof(mlo_mapping);
    mlo_array *a = mlo_array_new(m, MLO_UINT8, 1, &head);
    if (!a) return NULL;
    mlo_mapping *v = (mlo_mapping *)a->data;
    v->next = m->mapped;
    v->data = (char *)data;
    v->bytes = bytes;
    m->mapped = v;
    a->dtype = dtype;
    a->rank = rank;
    for (int i = 0; i < rank; i++) a->dims[i] = dims[i];
    a->data = data;
    return a;
}
static void mlo_mapping_close(mlo *m, mlo_mapping *gone) {
    mlo_mapping **p = &m->mapped;
    while (*p != gone) p = &(*p)->next;
    *p = gone->next;
    m->desc.unmap(m->desc.user, gone->data, gone->bytes);
}
/* Elements that were read, and will not be again soon, need no memory: where they are mapped, it is
 * let go. */
static void mlo_mapping_forget(mlo *m, const void *data, size_t bytes) {
    const char *p = (const char *)data;
    for (mlo_mapping *v = m->mapped; v; v = v->next)
        if (p >= v->data && p + bytes <= v->data + v->bytes)
            m->desc.forget(m->desc.user, v->data + (p - v->data), bytes);
}
static void mlo_array_free(mlo *m, mlo_array *a) {
    if (a && a->data != mlo_array_own(a)) mlo_mapping_close(m, (mlo_mapping *)mlo_array_own(a));
    mlo_scratch_free(m, a);
}

/* Are two arrays of one type, and their elements the same? NULL is like nothing. */
static int mlo_array_equal(const mlo_array *a, const mlo_array *b) {
    return a && b && a->dtype == b->dtype && mlo_array_count(a) == mlo_array_count(b)
        && !memcmp(a->data, b->data, (size_t)mlo_array_count(a) * mlo_dtype_size(a->dtype));
}

/* Output i of a call, in this form: the one made by the shape rule when it fits, else a new one.
 * NULL without memory. */
static mlo_array *mlo_call_out(
    mlo_call *c, size_t i, mlo_dtype dtype, int rank, const int64_t *dims) {
    if (i >= c->n_out) {
        mlo_fail(c->m, MLO_E_GRAPH, c->node, "has %zu outputs, needs %zu", c->n_out, i + 1);
        return NULL;
    }
    mlo_array *a = c->out[i];
    if (a && a->dtype == dtype && a->rank == rank
        && (!rank || !memcmp(a->dims, dims, (size_t)rank * sizeof *dims)))
        return a;
    mlo_array_free(c->m, a);
    return c->out[i] = mlo_array_new(c->m, dtype, rank, dims);
}
