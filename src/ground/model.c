/* model: ONNX messages as C structs, and the index that turns names into values.
 *
 * in:  nothing: wire.c (binary), json.c (JSON) and the stages fill the structs.
 * out: the one representation that all stages share. A stage gets a graph, changes nodes and
 *     lists, and calls mlo_index again.
 *
 * Presence: proto2 tells absent from zero. A string, bytes or message is present when its pointer
 * is not NULL, a list when it has items, a number when bit 1 << (its protobuf field number) of
 * `has` is set. The constructors below set it.
 *
 * invariant: all names are interned (compare with ==; "" is an absent optional input); a graph's
 *     nodes are in topological order; value names are unique within a graph and its enclosing
 *     graphs.
 * example: mlo_value *v = mlo_value_of(g, node->input[0]); if (v->tensor) ...a constant...
 * cost: O(size of the graph) to index, O(1) to look up.
 */
/* protobuf `bytes`; borrowed or in the arena */
typedef struct {
    const char *data;
    size_t n;
} mlo_bytes;

/* StringStringEntryProto */
typedef struct {
    uint32_t has;
    const char *key;
    const char *value;
} mlo_entry;
/* OperatorSetIdProto */
typedef struct {
    uint32_t has;
    const char *domain;
    int64_t version;
} mlo_opset;

/* ---- types ---- */
typedef struct {
    uint32_t has;
    int64_t value;
    const char *param; /* NULL and no value: unknown */
    const char *denotation;
} mlo_dim;
typedef struct {
    uint32_t has;
    mlo_dim *dim;
    size_t n_dim;
} mlo_shape;
/* Tensor and SparseTensor */
typedef struct {
    uint32_t has;
    int32_t elem_type;
    mlo_shape *shape;
} mlo_tensor_type;
typedef struct mlo_type mlo_type;
/* Sequence and Optional */
typedef struct {
    uint32_t has;
    mlo_type *elem_type;
} mlo_sequence_type;
typedef struct {
    uint32_t has;
    int32_t key_type;
    mlo_type *value_type;
} mlo_map_type;
typedef struct {
    uint32_t has;
    const char *domain;
    const char *name;
} mlo_opaque_type;
struct mlo_type {
    uint32_t has;
    mlo_tensor_type *tensor;
    mlo_tensor_type *sparse;
    mlo_sequence_type *sequence;
    mlo_sequence_type *optional;
    mlo_map_type *map;
    mlo_opaque_type *opaque;
    const char *denotation;
};
typedef struct {
    uint32_t has;
    const char *name;
    mlo_type *type;
    const char *doc;
    mlo_entry *meta;
    size_t n_meta;
} mlo_value_info;

/* ---- tensors ---- */
/* Where bytes lie outside of memory: a file opened once. */
typedef struct mlo_source {
    struct mlo_source *next;
    const char *dir; /* the folder it lies in */
    const char *name; /* plain file name */
    const char *path;
    void *file;
    uint64_t size; /* bytes */
} mlo_source;

typedef struct {
    uint32_t has;
    int64_t begin;
    int64_t end;
} mlo_segment;
typedef struct mlo_tensor {
    uint32_t has;
    int64_t *dims;
    size_t n_dims;
    int32_t data_type;
    mlo_segment *segment;

    /* Exactly one of these holds the elements. External: `external` entries as in the file,
     * resolved into source/offset/length. */
    float *floats;
    size_t n_floats;
    int32_t *int32s;
    size_t n_int32s;
    mlo_bytes *strings;
    size_t n_strings;
    int64_t *int64s;
    size_t n_int64s;
    double *doubles;
    size_t n_doubles;
    uint64_t *uint64s;
    size_t n_uint64s;
    mlo_bytes raw;

    const char *name;
    const char *doc;
    mlo_entry *external;
    size_t n_external;
    int32_t location;
    mlo_entry *meta;
    size_t n_meta;

    /* not ONNX: set for bytes that stay in a file (location EXTERNAL when written) */
    mlo_source *source;
    uint64_t offset; /* bytes */
    uint64_t length; /* bytes */
} mlo_tensor;
typedef struct {
    uint32_t has;
    mlo_tensor *values;
    mlo_tensor *indices;
    int64_t *dims;
    size_t n_dims;
} mlo_sparse;

/* ---- graphs ---- */
typedef struct mlo_graph mlo_graph;
enum {
    MLO_ATTR_FLOAT = 1,
    MLO_ATTR_INT,
    MLO_ATTR_STRING,
    MLO_ATTR_TENSOR,
    MLO_ATTR_GRAPH,
    MLO_ATTR_FLOATS,
    MLO_ATTR_INTS,
    MLO_ATTR_STRINGS,
    MLO_ATTR_TENSORS,
    MLO_ATTR_GRAPHS,
    MLO_ATTR_SPARSE,
    MLO_ATTR_SPARSES,
    MLO_ATTR_TYPE,
    MLO_ATTR_TYPES
};
typedef struct {
    uint32_t has;
    const char *name;
    const char *ref;
    const char *doc;
    int32_t type;
    float f;
    int64_t i;
    mlo_bytes s;
    mlo_tensor *t;
    mlo_graph *g;
    mlo_sparse *sparse;
    mlo_type *tp;
    float *floats;
    size_t n_floats;
    int64_t *ints;
    size_t n_ints;
    mlo_bytes *strings;
    size_t n_strings;
    mlo_tensor **tensors;
    size_t n_tensors;
    mlo_graph **graphs;
    size_t n_graphs;
    mlo_sparse **sparses;
    size_t n_sparses;
    mlo_type **types;
    size_t n_types;
} mlo_attr;
/* Where a node should run: carried along, never looked at. */
/* SimpleShardedDimProto */
typedef struct {
    uint32_t has;
    int64_t value;
    const char *param;
    int64_t shards;
} mlo_simple_shard;
typedef struct {
    uint32_t has;
    int64_t axis;
    mlo_simple_shard *simple;
    size_t n_simple;
} mlo_sharded_dim;
/* IntIntListEntryProto */
typedef struct {
    uint32_t has;
    int64_t key;
    int64_t *values;
    size_t n_values;
} mlo_device_group;
typedef struct {
    uint32_t has;
    const char *tensor;
    int64_t *device;
    size_t n_device;
    mlo_device_group *group;
    size_t n_group;
    mlo_sharded_dim *dim;
    size_t n_dim;
} mlo_sharding;
/* NodeDeviceConfigurationProto */
typedef struct {
    uint32_t has;
    const char *id;
    mlo_sharding *sharding;
    size_t n_sharding;
    int32_t stage;
} mlo_node_device;
/* DeviceConfigurationProto */
typedef struct {
    uint32_t has;
    const char *name;
    int32_t n_devices;
    const char **device;
    size_t n_device;
} mlo_device;
typedef struct {
    uint32_t has;
    const char **input;
    size_t n_input;
    const char **output;
    size_t n_output;
    const char *name;
    const char *op;
    const char *domain;
    const char *overload;
    mlo_attr **attr;
    size_t n_attr;
    const char *doc;
    mlo_entry *meta;
    size_t n_meta;
    mlo_node_device *device;
    size_t n_device;
} mlo_node;
typedef struct {
    uint32_t has;
    const char *tensor_name;
    mlo_entry *params;
    size_t n_params;
} mlo_annotation;
struct mlo_graph {
    uint32_t has;
    mlo_node **node;
    size_t n_node;
    const char *name;
    mlo_tensor **init;
    size_t n_init;
    mlo_sparse **sparse;
    size_t n_sparse;
    const char *doc;
    mlo_value_info **input;
    size_t n_input;
    mlo_value_info **output;
    size_t n_output;
    mlo_value_info **info;
    size_t n_info;
    mlo_annotation *annotation;
    size_t n_annotation;
    mlo_entry *meta;
    size_t n_meta;
    /* the index (not ONNX), made by mlo_index */
    mlo_map values; /* name -> mlo_value */
    /* the graph whose node holds this one, NULL at the top and in functions */
    mlo_graph *outer;
};
typedef struct {
    uint32_t has;
    const char *name;
    const char **input;
    size_t n_input;
    const char **output;
    size_t n_output;
    const char **attr;
    size_t n_attr;
    mlo_attr **attr_proto;
    size_t n_attr_proto;
    mlo_node **node;
    size_t n_node;
    const char *doc;
    mlo_opset *opset;
    size_t n_opset;
    const char *domain;
    const char *overload;
    mlo_value_info **info;
    size_t n_info;
    mlo_entry *meta;
    size_t n_meta;
} mlo_function;
typedef struct {
    uint32_t has;
    mlo_graph *initial;
    mlo_graph *algorithm;
    mlo_entry *initial_binding;
    size_t n_initial_binding;
    mlo_entry *binding;
    size_t n_binding;
} mlo_training;
typedef struct mlo_model {
    uint32_t has;
    int64_t ir_version;
    mlo_opset *opset;
    size_t n_opset;
    const char *producer_name;
    const char *producer_version;
    const char *domain;
    int64_t model_version;
    const char *doc;
    mlo_graph *graph;
    mlo_entry *meta;
    size_t n_meta;
    mlo_function **function;
    size_t n_function;
    mlo_training *training;
    size_t n_training;
    mlo_device *device;
    size_t n_device;
} mlo_model;

/* Lists of messages that passes point at (nodes, attributes, tensors, value infos, graphs,
 * functions) are arrays of pointers; small ones (entries, dims, opsets, annotations) are arrays of
 * structs. A list grows with MLO_PUSH(m, list, n, item): the room is the next power of two, so no
 * field for it is needed. Lists that come from elsewhere may be exact: MLO_PUSH copies at powers
 * of two only, so a list that mlo did not grow must be allotted by mlo_room(n) items. Without
 * memory the list stays as it is, so that whoever walks it before the failure is seen may. */
static size_t mlo_room(size_t n) {
    size_t room = 4;
    while (room < n) room *= 2;
    return room;
}
#define MLO_PUSH(m, list, n, item)                                           \
    ((list) = MLO_AS(list, mlo_push_room((m), (list), (n), sizeof *(list))), \
        (m)->pushed ? ((list)[(n)++] = (item), 1) : 0)
static void *mlo_push_room(mlo *m, void *list, size_t n, size_t size) {
    size_t room = n;
    void *more = n && n < mlo_room(n) ? list : mlo_grow(m, list, n, &room, size);
    m->pushed = more != NULL;
    return more ? more : list;
}

/* ---- failing at a node ---------------------------------------------------- */

/* The name people know a node by: its own, else its first output's. */
static const char *mlo_node_name(const mlo_node *n) {
    return !n ? NULL : n->name && *n->name ? n->name : n->n_output ? n->output[0] : "";
}

static int mlo_fail(mlo *m, mlo_code code, const mlo_node *node, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int r = mlo_fail_v(m, code, mlo_node_name(node), node ? node->op : NULL, format, args);
    va_end(args);
    return r;
}

/* ---- the index ------------------------------------------------------------ */

/* One named value of a graph. Exactly one origin: an input, an initializer, or a node's output; a
 * subgraph also sees outer values. */
typedef struct {
    const char *name;

    mlo_node *producer; /* the node that makes it, NULL for inputs and initializers */
    int output; /* which of the producer's it is */
    int at; /* the producer's place in the graph */
    /* the constant it is: an initializer, or a Constant node's tensor; else NULL */
    mlo_tensor *tensor;

    mlo_value_info *info; /* NULL when nobody said */
    /* match.c: type and shape, interned: two that are known are equal or they are not */
    const char *form;
    mlo_graph *graph; /* the graph that owns it */
    int is_input; /* of that graph; an initializer that is also one counts as an initializer */
    int is_output; /* of that graph */

    int n_uses; /* node inputs in this graph and in subgraphs of its nodes, plus is_output */
    /* the using nodes of this graph (a node with a subgraph that uses it counts), each once per
     * use, in order */
    mlo_node **use;
    size_t n_use;
} mlo_value;

/* The value by that name, looked up in g and then in the graphs around it; NULL when there is none
 * or the name is "". */
static mlo_value *mlo_value_of(const mlo_graph *g, const char *name) {
    for (; name && *name && g; g = g->outer) {
        mlo_value *v = (mlo_value *)mlo_map_get(&g->values, name);
        if (v) return v;
    }
    return NULL;
}

static mlo_attr *mlo_attr_of(const mlo_node *n, const char *name) {
    for (size_t i = 0; i < n->n_attr; i++)
        if (mlo_eq(n->attr[i]->name, name)) return n->attr[i];
    return NULL;
}
static void mlo_attr_drop(mlo_node *n, const char *name) {
    size_t kept = 0;
    for (size_t i = 0; i < n->n_attr; i++)
        if (!mlo_eq(n->attr[i]->name, name)) n->attr[kept++] = n->attr[i];
    n->n_attr = kept;
}
/* The graph that an attribute holds, NULL where there is none. */
static mlo_graph *mlo_graph_of(const mlo_node *n, const char *name) {
    mlo_attr *a = mlo_attr_of(n, name);
    return a ? a->g : NULL;
}
static int64_t mlo_int(const mlo_node *n, const char *name, int64_t otherwise) {
    mlo_attr *a = mlo_attr_of(n, name);
    return a ? a->i : otherwise;
}
static float mlo_float(const mlo_node *n, const char *name, float otherwise) {
    mlo_attr *a = mlo_attr_of(n, name);
    return a ? a->f : otherwise;
}
/* Element i of a list of integers, or what it is where there is none. */
static int64_t mlo_listed(const mlo_node *n, const char *name, size_t i, int64_t none) {
    const mlo_attr *a = mlo_attr_of(n, name);
    return a && i < a->n_ints ? a->ints[i] : none;
}
/* Is this node op `op` of the standard domain ("" or "ai.onnx")? With a dot, "mlo.MVU": domain and
 * op. */
static int mlo_is(const mlo_node *n, const char *op) {
    if (!n) return 0;
    const char *dot = strrchr(op, '.'), *domain = mlo_or_empty(n->domain);
    if (!dot) return mlo_eq(n->op, op) && (!*domain || mlo_eq(domain, "ai.onnx"));
    return mlo_eq(n->op, dot + 1) && strlen(domain) == (size_t)(dot - op)
        && !strncmp(domain, op, (size_t)(dot - op));
}
static int mlo_is_one_of(const mlo_node *n, const char *const *ops) {
    for (; n && *ops; ops++)
        if (mlo_is(n, *ops)) return 1;
    return 0;
}

/* A Scan, or the same in FINN's form (finn.c): one carried value, all other inputs stacks. */
static const char mlo_finn_loop_op[] = "finn.custom_op.fpgadataflow.rtl.FINNLoop";
static int mlo_is_scan(const mlo_node *n) {
    return mlo_is(n, "Scan") || mlo_is(n, mlo_finn_loop_op);
}
/* How many of its inputs come in slices, one per iteration: the last ones. May be more than there
 * are, in a bad model. */
static size_t mlo_scan_stacks(const mlo_node *n) {
    return mlo_is(n, "Scan") ? (size_t)mlo_int(n, "num_scan_inputs", 0)
        : n->n_input         ? n->n_input - 1
                             : 0;
}
/* Does input i exist (present and not "")? */
static int mlo_has_input(const mlo_node *n, size_t i) {
    return i < n->n_input && n->input[i] && *n->input[i];
}

/* metadata_props of anything that has them. */
static const char *mlo_meta_get(const mlo_entry *meta, size_t n, const char *key) {
    for (size_t i = 0; i < n; i++)
        if (mlo_eq(meta[i].key, key)) return meta[i].value;
    return NULL;
}
static int64_t mlo_meta_int(const mlo_node *n, const char *key, int64_t otherwise) {
    const char *s = mlo_meta_get(n->meta, n->n_meta, key);
    return s ? (int64_t)strtol(s, NULL, 10) : otherwise;
}

/* Has the loop shapes alone (integer/sketch.c)? */
static int mlo_is_sketch(const mlo *m) {
    return m->model && mlo_meta_get(m->model->meta, m->model->n_meta, mlo_key_sketch) != NULL;
}

/* Refuses a sketch where its numbers would count. */
static int mlo_sketch_refuse(mlo *m) {
    return mlo_is_sketch(m) ? mlo_fail_at(m, MLO_E_USAGE, "sketch",
                                  "the model is a sketch: its integers are nobody's, it is for "
                                  "fold and show; quantize the model without "
                                  "--sketch")
                            : 0;
}

/* The same, and that it is a whole number within limits: models come from anywhere. */
static int64_t mlo_meta_within(
    mlo *m, const mlo_node *n, const char *key, int64_t otherwise, int64_t low, int64_t high) {
    const char *s = mlo_meta_get(n->meta, n->n_meta, key);
    if (!s) return otherwise;
    char *end;
    const long long v = strtoll(s, &end, 10);
    if (end != s && !*end && v >= low && v <= high) return v;
    mlo_fail(m, MLO_E_DATA, n,
        "metadata say %s = '%.40s', which is no whole number from %lld to %lld; leave it to mlo",
        key, s, (long long)low, (long long)high);
    return otherwise;
}

static mlo_value *mlo_index_value(mlo *m, mlo_graph *g, const char *name) {
    mlo_value *v = (mlo_value *)mlo_map_get(&g->values, name);
    if (v) return v;
    v = MLO_NEW(m, mlo_value);
    if (!v) return NULL;
    v->name = name;
    v->graph = g;
    return mlo_map_put(m, &g->values, name, v) ? NULL : v;
}

static int mlo_index_use(mlo *m, mlo_value *v, mlo_node *n) {
    v->n_uses++;
    return MLO_PUSH(m, v->use, v->n_use, n) ? 0 : mlo_failed(m);
}

enum { MLO_MAX_DEPTH = 32 }; /* of graphs within graphs, and of types within types */
static int mlo_index_at(mlo *m, mlo_graph *g, mlo_graph *outer, mlo_node *holder, int depth);

/* Uses of outer values inside g's subgraphs count as uses by the node that holds the subgraph. */
static int mlo_index_node(mlo *m, mlo_graph *g, size_t at, mlo_node *holder, int depth) {
    mlo_node *n = g->node[at];
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i)) {
            mlo_value *v = mlo_value_of(g, n->input[i]);
            if (!v)
                return mlo_fail(m, MLO_E_GRAPH, n,
                    "input %zu, '%s', is made by nothing before this node; is the graph in "
                    "topological order?",
                    i, n->input[i]);
            if (mlo_index_use(m, v, v->graph == g ? n : holder ? holder : n)) return mlo_failed(m);
        }
    for (size_t a = 0; a < n->n_attr; a++) {
        if (n->attr[a]->g && mlo_index_at(m, n->attr[a]->g, g, holder ? holder : n, depth + 1))
            return mlo_failed(m);
        for (size_t i = 0; i < n->attr[a]->n_graphs; i++)
            if (mlo_index_at(m, n->attr[a]->graphs[i], g, holder ? holder : n, depth + 1))
                return mlo_failed(m);
    }
    for (size_t i = 0; i < n->n_output; i++)
        if (n->output[i] && *n->output[i]) {
            mlo_value *v = (mlo_value *)mlo_map_get(&g->values, n->output[i]);
            if (v && (v->producer || v->is_input || v->tensor))
                return mlo_fail(m, MLO_E_GRAPH, n, "output '%s' is made twice", n->output[i]);
            if (!(v = mlo_index_value(m, g, n->output[i]))) return mlo_failed(m);
            v->producer = n;
            v->output = (int)i;
            v->at = (int)at;
            if (mlo_is(n, "Constant")) {
                mlo_attr *t = mlo_attr_of(n, "value");
                v->tensor = t ? t->t : NULL;
            }
        }
    return 0;
}

static int mlo_index_at(mlo *m, mlo_graph *g, mlo_graph *outer, mlo_node *holder, int depth) {
    if (depth > MLO_MAX_DEPTH)
        return mlo_fail_at(
            m, MLO_E_GRAPH, g->name, "graphs are nested more than %d deep", MLO_MAX_DEPTH);
    mlo_value *v;
    g->outer = outer;
    mlo_map_clear(&g->values);
    if (mlo_map_room(m, &g->values, g->n_init + g->n_input + g->n_node)) return mlo_failed(m);
    for (size_t i = 0; i < g->n_init; i++) {
        if (!(v = mlo_index_value(m, g, mlo_or_empty(g->init[i]->name)))) return mlo_failed(m);
        if (v->tensor)
            return mlo_fail_at(m, MLO_E_GRAPH, v->name, "two initializers have this name");
        v->tensor = g->init[i];
    }
    for (size_t i = 0; i < g->n_input; i++) {
        if (!(v = mlo_index_value(m, g, mlo_or_empty(g->input[i]->name)))) return mlo_failed(m);
        if (v->is_input)
            return mlo_fail_at(m, MLO_E_GRAPH, v->name, "two graph inputs have this name");
        v->info = g->input[i];
        v->is_input = 1;
    }
    for (size_t i = 0; i < g->n_node; i++)
        if (mlo_index_node(m, g, i, holder, depth)) return mlo_failed(m);
    for (size_t i = 0; i < g->n_info; i++)
        if ((v = (mlo_value *)mlo_map_get(&g->values, g->info[i]->name)) && !v->info)
            v->info = g->info[i];
    for (size_t i = 0; i < g->n_output; i++) {
        v = mlo_value_of(g, g->output[i]->name);
        if (!v)
            return mlo_fail_at(
                m, MLO_E_GRAPH, g->output[i]->name, "graph output is made by no node");
        v->is_output = 1;
        v->n_uses++;
        if (v->graph == g && !v->info) v->info = g->output[i];
    }
    return 0;
}

/* (Re)makes the index of a graph and of all graphs inside it. Call after changing nodes. Fails
 * when a value is missing or made twice. */
static int mlo_index(mlo *m, mlo_graph *g) {
    m->net = NULL;
    m->stale = 0;
    return mlo_index_at(m, g, g->outer, NULL, 0);
}

/* ---- types of values ------------------------------------------------------ */

/* Element type and shape of a value in the form passes use. rank -1: unknown; dims -1: unknown (a
 * symbol or nothing said). */
typedef struct {
    mlo_dtype dtype;
    int rank;
    int64_t dims[MLO_MAX_RANK];
} mlo_form;

static int mlo_form_known(const mlo_form *f) {
    if (f->rank < 0 || !f->dtype) return 0;
    for (int i = 0; i < f->rank; i++)
        if (f->dims[i] < 0) return 0;
    return 1;
}
/* Elements of a known form; INT64_MAX for more than that. */
static int64_t mlo_form_count(const mlo_form *f) {
    int64_t n = 1;
    for (int i = 0; i < f->rank; i++) {
        if (f->dims[i] > 0 && n > INT64_MAX / f->dims[i]) return INT64_MAX;
        n *= f->dims[i];
    }
    return n;
}

static mlo_form mlo_form_of(const mlo_value *v) {
    mlo_form f = { MLO_UNDEFINED, -1, { 0 } };
    if (v && v->tensor) {
        f.dtype = (mlo_dtype)v->tensor->data_type;
        if (v->tensor->n_dims > MLO_MAX_RANK) return f;
        f.rank = (int)v->tensor->n_dims;
        for (int i = 0; i < f.rank; i++) f.dims[i] = v->tensor->dims[i];
        return f;
    }
    mlo_tensor_type *t = v && v->info && v->info->type ? v->info->type->tensor : NULL;
    if (!t) return f;
    f.dtype = (mlo_dtype)t->elem_type;
    if (!t->shape || t->shape->n_dim > MLO_MAX_RANK) return f;
    f.rank = (int)t->shape->n_dim;
    for (int i = 0; i < f.rank; i++)
        f.dims[i] = t->shape->dim[i].param || !t->shape->dim[i].has ? -1 : t->shape->dim[i].value;
    return f;
}

/* ---- making things -----------------------------------------------------------
 * All return NULL without memory (the failure is recorded; mlo_node_add and friends accept NULLs
 * and pass them on). */
#define MLO_HAS(tag) (1u << (tag))

/* A tensor type of known form. */
static mlo_type *mlo_type_new(mlo *m, const mlo_form *f) {
    mlo_type *t = MLO_NEW(m, mlo_type);
    if (!t || !(t->tensor = MLO_NEW(m, mlo_tensor_type))) return NULL;
    t->tensor->elem_type = (int32_t)f->dtype;
    t->tensor->has = MLO_HAS(1);
    if (f->rank < 0) return t;
    mlo_shape *s = t->tensor->shape = MLO_NEW(m, mlo_shape);
    if (!s || !(s->dim = MLO_NEW_N(m, mlo_dim, mlo_room((size_t)f->rank)))) return NULL;
    s->n_dim = (size_t)f->rank;
    for (int i = 0; i < f->rank; i++)
        if (f->dims[i] >= 0) {
            s->dim[i].value = f->dims[i];
            s->dim[i].has = MLO_HAS(1);
        }
    return t;
}

static mlo_value_info *mlo_info_new(mlo *m, const char *name, const mlo_form *f) {
    mlo_value_info *v = MLO_NEW(m, mlo_value_info);
    if (!v) return NULL;
    v->name = mlo_intern(m, name);
    v->type = mlo_type_new(m, f);
    return v->name && v->type ? v : NULL;
}

/* One more value with a type in such a list; f: NULL where nobody knows it. */
static int mlo_info_add(
    mlo *m, mlo_value_info ***list, size_t *n, const char *name, const mlo_form *f) {
    const mlo_form unknown = { MLO_UNDEFINED, -1, { 0 } };
    mlo_value_info *v = mlo_info_new(m, name, f ? f : &unknown);
    return v && MLO_PUSH(m, *list, *n, v) ? 0 : mlo_failed(m);
}

/* A node gets what another one's metadata say, as a list of its own: marks are written there. */
static int mlo_node_meta(mlo *m, mlo_node *n, const mlo_node *from) {
    n->meta = NULL;
    n->n_meta = 0;
    for (size_t i = 0; i < from->n_meta; i++)
        if (!MLO_PUSH(m, n->meta, n->n_meta, from->meta[i])) return mlo_failed(m);
    return 0;
}

/* A node. inputs, outputs: names separated by spaces, "-" for an absent optional one; names with
 * spaces need mlo_node_input instead. */
static int mlo_node_input(mlo *m, mlo_node *n, const char *name) {
    return n && (name = mlo_intern(m, name)) && MLO_PUSH(m, n->input, n->n_input, name)
        ? 0
        : mlo_failed(m);
}
static int mlo_node_output(mlo *m, mlo_node *n, const char *name) {
    return n && (name = mlo_intern(m, name)) && MLO_PUSH(m, n->output, n->n_output, name)
        ? 0
        : mlo_failed(m);
}

/* A name that nothing has, and now is taken: `of`_`what` and a number, *number or a later one. NULL: no memory. */
static const char *mlo_name_new(
    mlo *m, mlo_graph *g, const char *of, const char *what, size_t *number) {
    for (;; ++*number) {
        const char *name = mlo_format(m, "%s_%s%zu", of, what, *number);
        if (!name || !mlo_value_of(g, name))
            return name && mlo_index_value(m, g, name) ? name : NULL;
    }
}

/* The node hands a value on, and does nothing else. It had an input. */
static void mlo_node_passes(mlo_node *n, const char *name) {
    n->op = "Identity";
    n->input[0] = name;
    n->n_input = 1;
    n->n_attr = 0;
}

/* op as for mlo_is: "MatMul" or "mlo.MVU". */
static mlo_node *mlo_node_new(mlo *m, const char *op, const char *name) {
    /* an op that had no memory for its name */
    mlo_node *n = op ? MLO_NEW(m, mlo_node) : NULL;
    const char *dot = n ? strrchr(op, '.') : NULL;
    if (!n) return NULL;
    n->op = mlo_intern(m, dot ? dot + 1 : op);
    n->name = name ? mlo_intern(m, name) : NULL;
    n->domain = dot ? mlo_intern_n(m, op, (size_t)(dot - op)) : NULL;
    return m->error.code ? NULL : n;
}
static int mlo_graph_add(mlo *m, mlo_graph *g, mlo_node *n) {
    return n && MLO_PUSH(m, g->node, g->n_node, n) ? 0 : mlo_failed(m);
}

/* The last node becomes the first: what reads no other's result. */
static int mlo_graph_to_front(mlo_graph *g) {
    mlo_node *last = g->node[g->n_node - 1];
    memmove(g->node + 1, g->node, (g->n_node - 1) * sizeof *g->node);
    g->node[0] = last;
    return 0;
}

/* The attribute by that name, made if it was not there. */
static mlo_attr *mlo_attr_new(mlo *m, mlo_node *n, const char *name, int type) {
    if (!n) return NULL;
    mlo_attr *a = mlo_attr_of(n, name);
    if (!a) {
        if (!(a = MLO_NEW(m, mlo_attr)) || !(a->name = mlo_intern(m, name))
            || !MLO_PUSH(m, n->attr, n->n_attr, a))
            return NULL;
    }
    a->type = type;
    a->has = MLO_HAS(20);
    return a;
}
static int mlo_attr_int(mlo *m, mlo_node *n, const char *name, int64_t i) {
    mlo_attr *a = mlo_attr_new(m, n, name, MLO_ATTR_INT);
    if (!a) return mlo_failed(m);
    a->i = i;
    a->has |= MLO_HAS(3);
    return 0;
}
static int mlo_attr_ints(mlo *m, mlo_node *n, const char *name, const int64_t *ints, size_t count) {
    mlo_attr *a = mlo_attr_new(m, n, name, MLO_ATTR_INTS);
    if (!a || !(a->ints = MLO_NEW_N(m, int64_t, mlo_room(count)))) return mlo_failed(m);
    if (count) memcpy(a->ints, ints, count * sizeof *ints);
    a->n_ints = count;
    return 0;
}
static int mlo_attr_string(mlo *m, mlo_node *n, const char *name, const char *s) {
    mlo_attr *a = mlo_attr_new(m, n, name, MLO_ATTR_STRING);
    if (!a || !(s = mlo_intern(m, s))) return mlo_failed(m);
    a->s.data = s;
    a->s.n = strlen(s);
    return 0;
}
static int mlo_attr_graph(mlo *m, mlo_node *n, const char *name, mlo_graph *g) {
    mlo_attr *a = mlo_attr_new(m, n, name, MLO_ATTR_GRAPH);
    if (!a) return mlo_failed(m);
    a->g = g;
    return 0;
}

/* A tensor in memory: `raw` (little-endian, as ONNX's raw_data) is borrowed and must live as long
 * as the handle. */
static mlo_tensor *mlo_tensor_new(mlo *m, const char *name, mlo_dtype dtype, const int64_t *dims,
    size_t rank, const void *raw, size_t bytes) {
    mlo_tensor *t = MLO_NEW(m, mlo_tensor);
    if (!t || !(t->dims = MLO_NEW_N(m, int64_t, mlo_room(rank)))) return NULL;
    if (rank) memcpy(t->dims, dims, rank * sizeof *dims);
    t->n_dims = rank;
    t->data_type = (int32_t)dtype;
    t->has = MLO_HAS(2);
    t->name = name ? mlo_intern(m, name) : NULL;
    t->raw.data = raw ? (const char *)raw : "";
    t->raw.n = bytes;
    return m->error.code ? NULL : t;
}
static int mlo_graph_init(mlo *m, mlo_graph *g, mlo_tensor *t) {
    return t && MLO_PUSH(m, g->init, g->n_init, t) ? 0 : mlo_failed(m);
}

/* Sets a metadata entry of a node, graph, model, ... (replaces the value of a key that is there). */
static int mlo_meta_put(mlo *m, mlo_entry **meta, size_t *n, const char *key, const char *value) {
    if (!(key = mlo_intern(m, key)) || !(value = mlo_intern(m, value))) return mlo_failed(m);
    for (size_t i = 0; i < *n; i++)
        if ((*meta)[i].key == key) {
            (*meta)[i].value = value;
            return 0;
        }
    mlo_entry e = { 0, key, value };
    return MLO_PUSH(m, *meta, *n, e) ? 0 : mlo_failed(m);
}
