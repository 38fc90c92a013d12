/* wire: ONNX messages from and to protobuf's binary form, and the files that tensor bytes stay in.
 *
 * in:  bytes (a source file read through a window, or borrowed memory).
 * out: an mlo_model; and back: bytes, to a sink.
 *
 * As in protobuf, fields come in any order; unknown fields and unknown enum values are skipped; the
 * last of several singular values wins; messages that come twice are merged; repeated numbers may
 * be packed or not.
 *
 * invariant: one table per message says everything about it (field numbers, JSON names, kinds, its
 *     place in the C struct) and drives reading and writing, binary here and JSON in json.c.
 *     raw_data is not copied: of a file it becomes source/offset/length, of borrowed memory a
 *     pointer. Any input is safe: the enclosing message bounds lengths, MLO_WIRE_DEPTH bounds
 *     depth.
 * example: mlo_model *model = mlo_wire_read(m, source, NULL, 0); ... mlo_wire_write(m, model, sink,
 *     user);
 * cost: O(bytes that are not tensor data); writing walks the model twice (sizes, then bytes) and
 *     tensor data once, 64 KB at a time.
 */

/* ---- the schema ----------------------------------------------------------- */

enum {
    MLO_K_STRING,
    MLO_K_BYTES,
    MLO_K_INT32,
    MLO_K_INT64,
    MLO_K_UINT64,
    MLO_K_FLOAT,
    MLO_K_DOUBLE,
    MLO_K_ENUM,
    MLO_K_MESSAGE
};
enum { MLO_F_LIST = 1, MLO_F_PACKED = 2, MLO_F_POINTERS = 4, MLO_F_ONEOF = 8, MLO_F_RAW = 16 };

/* One field. */
typedef struct {
    const char *json; /* its name there */
    uint8_t number;
    uint8_t kind; /* MLO_K_.. */
    uint8_t flags; /* MLO_F_.. */
    uint8_t sub; /* the message of a MESSAGE field, or the enum of an ENUM field */
    uint16_t at; /* offset of the value (or list), in bytes */
    uint16_t n; /* offset of its count, in bytes */
} mlo_field;

typedef enum {
    MLO_M_MODEL,
    MLO_M_GRAPH,
    MLO_M_NODE,
    MLO_M_ATTR,
    MLO_M_TENSOR,
    MLO_M_SEGMENT,
    MLO_M_SPARSE,
    MLO_M_VALUE_INFO,
    MLO_M_TYPE,
    MLO_M_TENSOR_TYPE,
    MLO_M_SEQUENCE,
    MLO_M_MAP,
    MLO_M_OPAQUE,
    MLO_M_SHAPE,
    MLO_M_DIM,
    MLO_M_ENTRY,
    MLO_M_OPSET,
    MLO_M_ANNOTATION,
    MLO_M_FUNCTION,
    MLO_M_TRAINING,
    MLO_M_DEVICE,
    MLO_M_NODE_DEVICE,
    MLO_M_SHARDING,
    MLO_M_DEVICE_GROUP,
    MLO_M_SHARDED_DIM,
    MLO_M_SIMPLE_SHARD,
    MLO_M_COUNT
} mlo_message_id;
enum { MLO_ENUM_ATTR, MLO_ENUM_LOCATION };

#define MLO_ONE(json, number, kind, type, member) \
    { json, number, MLO_K_##kind, 0, 0, offsetof(type, member), 0 }
#define MLO_ONEOF(json, number, kind, sub, type, member) \
    { json, number, MLO_K_##kind, MLO_F_ONEOF, sub, offsetof(type, member), 0 }
#define MLO_MSG(json, number, sub, type, member) \
    { json, number, MLO_K_MESSAGE, 0, sub, offsetof(type, member), 0 }
#define MLO_LIST(json, number, kind, packed, type, member)                          \
    { json, number, MLO_K_##kind, MLO_F_LIST | (packed), 0, offsetof(type, member), \
        offsetof(type, n_##member) }
#define MLO_STRUCTS(json, number, sub, type, member)                        \
    { json, number, MLO_K_MESSAGE, MLO_F_LIST, sub, offsetof(type, member), \
        offsetof(type, n_##member) }
#define MLO_POINTERS(json, number, sub, type, member)                                        \
    { json, number, MLO_K_MESSAGE, MLO_F_LIST | MLO_F_POINTERS, sub, offsetof(type, member), \
        offsetof(type, n_##member) }
#define MLO_ENUM(json, number, sub, type, member) \
    { json, number, MLO_K_ENUM, 0, sub, offsetof(type, member), 0 }

/* Fields in the order of their numbers, in which they are written. From onnx/onnx.proto, release
 * 1.23. */
static const mlo_field mlo_model_fields[] = {
    MLO_ONE("irVersion", 1, INT64, mlo_model, ir_version),
    MLO_ONE("producerName", 2, STRING, mlo_model, producer_name),
    MLO_ONE("producerVersion", 3, STRING, mlo_model, producer_version),
    MLO_ONE("domain", 4, STRING, mlo_model, domain),
    MLO_ONE("modelVersion", 5, INT64, mlo_model, model_version),
    MLO_ONE("docString", 6, STRING, mlo_model, doc),
    MLO_MSG("graph", 7, MLO_M_GRAPH, mlo_model, graph),
    MLO_STRUCTS("opsetImport", 8, MLO_M_OPSET, mlo_model, opset),
    MLO_STRUCTS("metadataProps", 14, MLO_M_ENTRY, mlo_model, meta),
    MLO_STRUCTS("trainingInfo", 20, MLO_M_TRAINING, mlo_model, training),
    MLO_POINTERS("functions", 25, MLO_M_FUNCTION, mlo_model, function),
    MLO_STRUCTS("configuration", 26, MLO_M_DEVICE, mlo_model, device),
};
static const mlo_field mlo_graph_fields[] = {
    MLO_POINTERS("node", 1, MLO_M_NODE, mlo_graph, node),
    MLO_ONE("name", 2, STRING, mlo_graph, name),
    MLO_POINTERS("initializer", 5, MLO_M_TENSOR, mlo_graph, init),
    MLO_ONE("docString", 10, STRING, mlo_graph, doc),
    MLO_POINTERS("input", 11, MLO_M_VALUE_INFO, mlo_graph, input),
    MLO_POINTERS("output", 12, MLO_M_VALUE_INFO, mlo_graph, output),
    MLO_POINTERS("valueInfo", 13, MLO_M_VALUE_INFO, mlo_graph, info),
    MLO_STRUCTS("quantizationAnnotation", 14, MLO_M_ANNOTATION, mlo_graph, annotation),
    MLO_POINTERS("sparseInitializer", 15, MLO_M_SPARSE, mlo_graph, sparse),
    MLO_STRUCTS("metadataProps", 16, MLO_M_ENTRY, mlo_graph, meta),
};
static const mlo_field mlo_node_fields[] = {
    MLO_LIST("input", 1, STRING, 0, mlo_node, input),
    MLO_LIST("output", 2, STRING, 0, mlo_node, output),
    MLO_ONE("name", 3, STRING, mlo_node, name),
    MLO_ONE("opType", 4, STRING, mlo_node, op),
    MLO_POINTERS("attribute", 5, MLO_M_ATTR, mlo_node, attr),
    MLO_ONE("docString", 6, STRING, mlo_node, doc),
    MLO_ONE("domain", 7, STRING, mlo_node, domain),
    MLO_ONE("overload", 8, STRING, mlo_node, overload),
    MLO_STRUCTS("metadataProps", 9, MLO_M_ENTRY, mlo_node, meta),
    MLO_STRUCTS("deviceConfigurations", 10, MLO_M_NODE_DEVICE, mlo_node, device),
};
static const mlo_field mlo_attr_fields[] = {
    MLO_ONE("name", 1, STRING, mlo_attr, name),
    MLO_ONE("f", 2, FLOAT, mlo_attr, f),
    MLO_ONE("i", 3, INT64, mlo_attr, i),
    MLO_ONE("s", 4, BYTES, mlo_attr, s),
    MLO_MSG("t", 5, MLO_M_TENSOR, mlo_attr, t),
    MLO_MSG("g", 6, MLO_M_GRAPH, mlo_attr, g),
    MLO_LIST("floats", 7, FLOAT, 0, mlo_attr, floats),
    MLO_LIST("ints", 8, INT64, 0, mlo_attr, ints),
    MLO_LIST("strings", 9, BYTES, 0, mlo_attr, strings),
    MLO_POINTERS("tensors", 10, MLO_M_TENSOR, mlo_attr, tensors),
    MLO_POINTERS("graphs", 11, MLO_M_GRAPH, mlo_attr, graphs),
    MLO_ONE("docString", 13, STRING, mlo_attr, doc),
    MLO_MSG("tp", 14, MLO_M_TYPE, mlo_attr, tp),
    MLO_POINTERS("typeProtos", 15, MLO_M_TYPE, mlo_attr, types),
    MLO_ENUM("type", 20, MLO_ENUM_ATTR, mlo_attr, type),
    MLO_ONE("refAttrName", 21, STRING, mlo_attr, ref),
    MLO_MSG("sparseTensor", 22, MLO_M_SPARSE, mlo_attr, sparse),
    MLO_POINTERS("sparseTensors", 23, MLO_M_SPARSE, mlo_attr, sparses),
};
static const mlo_field mlo_tensor_fields[] = {
    MLO_LIST("dims", 1, INT64, 0, mlo_tensor, dims),
    MLO_ONE("dataType", 2, INT32, mlo_tensor, data_type),
    MLO_MSG("segment", 3, MLO_M_SEGMENT, mlo_tensor, segment),
    MLO_LIST("floatData", 4, FLOAT, MLO_F_PACKED, mlo_tensor, floats),
    MLO_LIST("int32Data", 5, INT32, MLO_F_PACKED, mlo_tensor, int32s),
    MLO_LIST("stringData", 6, BYTES, 0, mlo_tensor, strings),
    MLO_LIST("int64Data", 7, INT64, MLO_F_PACKED, mlo_tensor, int64s),
    MLO_ONE("name", 8, STRING, mlo_tensor, name),
    { "rawData", 9, MLO_K_BYTES, MLO_F_RAW, 0, offsetof(mlo_tensor, raw), 0 },
    MLO_LIST("doubleData", 10, DOUBLE, MLO_F_PACKED, mlo_tensor, doubles),
    MLO_LIST("uint64Data", 11, UINT64, MLO_F_PACKED, mlo_tensor, uint64s),
    MLO_ONE("docString", 12, STRING, mlo_tensor, doc),
    MLO_STRUCTS("externalData", 13, MLO_M_ENTRY, mlo_tensor, external),
    MLO_ENUM("dataLocation", 14, MLO_ENUM_LOCATION, mlo_tensor, location),
    MLO_STRUCTS("metadataProps", 16, MLO_M_ENTRY, mlo_tensor, meta),
};
static const mlo_field mlo_segment_fields[] = { MLO_ONE("begin", 1, INT64, mlo_segment, begin),
    MLO_ONE("end", 2, INT64, mlo_segment, end) };
static const mlo_field mlo_sparse_fields[] = {
    MLO_MSG("values", 1, MLO_M_TENSOR, mlo_sparse, values),
    MLO_MSG("indices", 2, MLO_M_TENSOR, mlo_sparse, indices),
    MLO_LIST("dims", 3, INT64, 0, mlo_sparse, dims),
};
static const mlo_field mlo_value_info_fields[] = {
    MLO_ONE("name", 1, STRING, mlo_value_info, name),
    MLO_MSG("type", 2, MLO_M_TYPE, mlo_value_info, type),
    MLO_ONE("docString", 3, STRING, mlo_value_info, doc),
    MLO_STRUCTS("metadataProps", 4, MLO_M_ENTRY, mlo_value_info, meta),
};
static const mlo_field mlo_type_fields[] = {
    MLO_ONEOF("tensorType", 1, MESSAGE, MLO_M_TENSOR_TYPE, mlo_type, tensor),
    MLO_ONEOF("sequenceType", 4, MESSAGE, MLO_M_SEQUENCE, mlo_type, sequence),
    MLO_ONEOF("mapType", 5, MESSAGE, MLO_M_MAP, mlo_type, map),
    MLO_ONE("denotation", 6, STRING, mlo_type, denotation),
    MLO_ONEOF("opaqueType", 7, MESSAGE, MLO_M_OPAQUE, mlo_type, opaque),
    MLO_ONEOF("sparseTensorType", 8, MESSAGE, MLO_M_TENSOR_TYPE, mlo_type, sparse),
    MLO_ONEOF("optionalType", 9, MESSAGE, MLO_M_SEQUENCE, mlo_type, optional),
};
static const mlo_field mlo_tensor_type_fields[] = { MLO_ONE("elemType", 1, INT32, mlo_tensor_type,
                                                        elem_type),
    MLO_MSG("shape", 2, MLO_M_SHAPE, mlo_tensor_type, shape) };
static const mlo_field mlo_sequence_fields[] = { MLO_MSG(
    "elemType", 1, MLO_M_TYPE, mlo_sequence_type, elem_type) };
static const mlo_field mlo_map_fields[] = { MLO_ONE("keyType", 1, INT32, mlo_map_type, key_type),
    MLO_MSG("valueType", 2, MLO_M_TYPE, mlo_map_type, value_type) };
static const mlo_field mlo_opaque_fields[] = { MLO_ONE(
                                                   "domain", 1, STRING, mlo_opaque_type, domain),
    MLO_ONE("name", 2, STRING, mlo_opaque_type, name) };
static const mlo_field mlo_shape_fields[] = { MLO_STRUCTS("dim", 1, MLO_M_DIM, mlo_shape, dim) };
static const mlo_field mlo_dim_fields[] = {
    MLO_ONEOF("dimValue", 1, INT64, 0, mlo_dim, value),
    MLO_ONEOF("dimParam", 2, STRING, 0, mlo_dim, param),
    MLO_ONE("denotation", 3, STRING, mlo_dim, denotation),
};
static const mlo_field mlo_entry_fields[] = { MLO_ONE("key", 1, STRING, mlo_entry, key),
    MLO_ONE("value", 2, STRING, mlo_entry, value) };
static const mlo_field mlo_opset_fields[] = { MLO_ONE("domain", 1, STRING, mlo_opset, domain),
    MLO_ONE("version", 2, INT64, mlo_opset, version) };
static const mlo_field mlo_annotation_fields[] = {
    MLO_ONE("tensorName", 1, STRING, mlo_annotation, tensor_name),
    MLO_STRUCTS("quantParameterTensorNames", 2, MLO_M_ENTRY, mlo_annotation, params),
};
static const mlo_field mlo_function_fields[] = {
    MLO_ONE("name", 1, STRING, mlo_function, name),
    MLO_LIST("input", 4, STRING, 0, mlo_function, input),
    MLO_LIST("output", 5, STRING, 0, mlo_function, output),
    MLO_LIST("attribute", 6, STRING, 0, mlo_function, attr),
    MLO_POINTERS("node", 7, MLO_M_NODE, mlo_function, node),
    MLO_ONE("docString", 8, STRING, mlo_function, doc),
    MLO_STRUCTS("opsetImport", 9, MLO_M_OPSET, mlo_function, opset),
    MLO_ONE("domain", 10, STRING, mlo_function, domain),
    MLO_POINTERS("attributeProto", 11, MLO_M_ATTR, mlo_function, attr_proto),
    MLO_POINTERS("valueInfo", 12, MLO_M_VALUE_INFO, mlo_function, info),
    MLO_ONE("overload", 13, STRING, mlo_function, overload),
    MLO_STRUCTS("metadataProps", 14, MLO_M_ENTRY, mlo_function, meta),
};
static const mlo_field mlo_training_fields[] = {
    MLO_MSG("initialization", 1, MLO_M_GRAPH, mlo_training, initial),
    MLO_MSG("algorithm", 2, MLO_M_GRAPH, mlo_training, algorithm),
    MLO_STRUCTS("initializationBinding", 3, MLO_M_ENTRY, mlo_training, initial_binding),
    MLO_STRUCTS("updateBinding", 4, MLO_M_ENTRY, mlo_training, binding),
};
static const mlo_field mlo_device_fields[] = {
    MLO_ONE("name", 1, STRING, mlo_device, name),
    MLO_ONE("numDevices", 2, INT32, mlo_device, n_devices),
    MLO_LIST("device", 3, STRING, 0, mlo_device, device),
};
static const mlo_field mlo_node_device_fields[] = {
    MLO_ONE("configurationId", 1, STRING, mlo_node_device, id),
    MLO_STRUCTS("shardingSpec", 2, MLO_M_SHARDING, mlo_node_device, sharding),
    MLO_ONE("pipelineStage", 3, INT32, mlo_node_device, stage),
};
static const mlo_field mlo_sharding_fields[] = {
    MLO_ONE("tensorName", 1, STRING, mlo_sharding, tensor),
    MLO_LIST("device", 2, INT64, 0, mlo_sharding, device),
    MLO_STRUCTS("indexToDeviceGroupMap", 3, MLO_M_DEVICE_GROUP, mlo_sharding, group),
    MLO_STRUCTS("shardedDim", 4, MLO_M_SHARDED_DIM, mlo_sharding, dim),
};
static const mlo_field mlo_device_group_fields[] = { MLO_ONE(
                                                         "key", 1, INT64, mlo_device_group, key),
    MLO_LIST("value", 2, INT64, 0, mlo_device_group, values) };
static const mlo_field mlo_sharded_dim_fields[] = {
    MLO_ONE("axis", 1, INT64, mlo_sharded_dim, axis),
    MLO_STRUCTS("simpleSharding", 2, MLO_M_SIMPLE_SHARD, mlo_sharded_dim, simple),
};
static const mlo_field mlo_simple_shard_fields[] = {
    MLO_ONEOF("dimValue", 1, INT64, 0, mlo_simple_shard, value),
    MLO_ONEOF("dimParam", 2, STRING, 0, mlo_simple_shard, param),
    MLO_ONE("numShards", 3, INT64, mlo_simple_shard, shards),
};

#define MLO_MESSAGE(name, fields, type) \
    { name, fields, sizeof fields / sizeof *fields, sizeof(type) }
/* In the order of mlo_message_id. Every struct begins with its `has`. */
static const struct {
    const char *name;
    const mlo_field *field;
    size_t n; /* fields */
    size_t size; /* bytes of the struct */
} mlo_messages[MLO_M_COUNT] = {
    MLO_MESSAGE("ModelProto", mlo_model_fields, mlo_model),
    MLO_MESSAGE("GraphProto", mlo_graph_fields, mlo_graph),
    MLO_MESSAGE("NodeProto", mlo_node_fields, mlo_node),
    MLO_MESSAGE("AttributeProto", mlo_attr_fields, mlo_attr),
    MLO_MESSAGE("TensorProto", mlo_tensor_fields, mlo_tensor),
    MLO_MESSAGE("TensorProto.Segment", mlo_segment_fields, mlo_segment),
    MLO_MESSAGE("SparseTensorProto", mlo_sparse_fields, mlo_sparse),
    MLO_MESSAGE("ValueInfoProto", mlo_value_info_fields, mlo_value_info),
    MLO_MESSAGE("TypeProto", mlo_type_fields, mlo_type),
    MLO_MESSAGE("TypeProto.Tensor", mlo_tensor_type_fields, mlo_tensor_type),
    MLO_MESSAGE("TypeProto.Sequence", mlo_sequence_fields, mlo_sequence_type),
    MLO_MESSAGE("TypeProto.Map", mlo_map_fields, mlo_map_type),
    MLO_MESSAGE("TypeProto.Opaque", mlo_opaque_fields, mlo_opaque_type),
    MLO_MESSAGE("TensorShapeProto", mlo_shape_fields, mlo_shape),
    MLO_MESSAGE("Dimension", mlo_dim_fields, mlo_dim),
    MLO_MESSAGE("StringStringEntryProto", mlo_entry_fields, mlo_entry),
    MLO_MESSAGE("OperatorSetIdProto", mlo_opset_fields, mlo_opset),
    MLO_MESSAGE("TensorAnnotation", mlo_annotation_fields, mlo_annotation),
    MLO_MESSAGE("FunctionProto", mlo_function_fields, mlo_function),
    MLO_MESSAGE("TrainingInfoProto", mlo_training_fields, mlo_training),
    MLO_MESSAGE("DeviceConfigurationProto", mlo_device_fields, mlo_device),
    MLO_MESSAGE("NodeDeviceConfigurationProto", mlo_node_device_fields, mlo_node_device),
    MLO_MESSAGE("ShardingSpecProto", mlo_sharding_fields, mlo_sharding),
    MLO_MESSAGE("IntIntListEntryProto", mlo_device_group_fields, mlo_device_group),
    MLO_MESSAGE("ShardedDimProto", mlo_sharded_dim_fields, mlo_sharded_dim),
    MLO_MESSAGE("SimpleShardedDimProto", mlo_simple_shard_fields, mlo_simple_shard),
};

/* Enum names by number. */
static const char *const mlo_attr_type_names[] = { "UNDEFINED", "FLOAT", "INT", "STRING", "TENSOR",
    "GRAPH", "FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS",
    "TYPE_PROTO", "TYPE_PROTOS" };
static const char *const mlo_location_names[] = { "DEFAULT", "EXTERNAL" };
static const struct {
    const char *const *name;
    size_t n;
} mlo_enums[] = { { mlo_attr_type_names, 15 }, { mlo_location_names, 2 } };

/* The place of a field's value (or list pointer), of its count, and of its message's `has`. */
#define MLO_AT(type, message, f) ((type *)(void *)((char *)(message) + (f)->at))
#define MLO_N(message, f) ((size_t *)(void *)((char *)(message) + (f)->n))
#define MLO_HAS_OF(message) ((uint32_t *)(message))
#define MLO_AT_CONST(type, message, f) \
    ((type const *)(const void *)((const char *)(message) + (f)->at))

static size_t mlo_field_size(const mlo_field *f) {
    switch (f->kind) {
    case MLO_K_STRING: return sizeof(const char *);
    case MLO_K_BYTES: return sizeof(mlo_bytes);
    case MLO_K_INT32:
    case MLO_K_ENUM: return sizeof(int32_t);
    case MLO_K_FLOAT: return sizeof(float);
    case MLO_K_MESSAGE:
        return f->flags & MLO_F_LIST && !(f->flags & MLO_F_POINTERS) ? mlo_messages[f->sub].size
                                                                     : sizeof(void *);
    default: return 8;
    }
}

/* Is there anything to write? */
static int mlo_field_present(const void *message, const mlo_field *f) {
    if (f->flags & MLO_F_LIST)
        return *(const size_t *)(const void *)((const char *)message + f->n) > 0;
    if (f->flags & MLO_F_RAW && ((const mlo_tensor *)message)->source) return 1;
    if (f->kind == MLO_K_STRING || f->kind == MLO_K_MESSAGE)
        return *MLO_AT_CONST(void *, message, f) != NULL;
    if (f->kind == MLO_K_BYTES) return MLO_AT_CONST(mlo_bytes, message, f)->data != NULL;
    return (*(const uint32_t *)message >> f->number & 1) != 0;
}

/* Item i of a list of messages, or the message of a singular field (i = 0). */
static void *mlo_field_message(const void *message, const mlo_field *f, size_t i) {
    char *p = *MLO_AT_CONST(char *, message, f);
    if (!(f->flags & MLO_F_LIST)) return p;
    return f->flags & MLO_F_POINTERS ? ((void **)(void *)p)[i]
                                     : (void *)(p + i * mlo_messages[f->sub].size);
}

/* Makes room for a new value of field f and returns the slot to fill. Sets presence; of a oneof,
 * the last one set stays. NULL when there is no memory. */
static void *mlo_field_slot(mlo *m, int id, void *message, const mlo_field *f) {
    if (f->flags & MLO_F_LIST) {
        size_t *n = MLO_N(message, f), size = mlo_field_size(f);
        char *list = (char *)mlo_push_room(m, *MLO_AT(void *, message, f), *n, size);
        if (!m->pushed) return NULL;
        *MLO_AT(void *, message, f) = list;
        return list + (*n)++ * size;
    }
    if (f->flags & MLO_F_ONEOF)
        for (size_t i = 0; i < mlo_messages[id].n; i++) {
            const mlo_field *other = &mlo_messages[id].field[i];
            if (other == f || !(other->flags & MLO_F_ONEOF)) continue;
            *MLO_HAS_OF(message) &= ~(1u << other->number);
            if (other->kind == MLO_K_STRING || other->kind == MLO_K_MESSAGE)
                *MLO_AT(void *, message, other) = NULL;
        }
    if (f->kind > MLO_K_BYTES && f->kind != MLO_K_MESSAGE) *MLO_HAS_OF(message) |= 1u << f->number;
    return MLO_AT(char, message, f);
}

/* The message that a MESSAGE field is read into: a new one (list items; first occurrence), or the
 * one that is there. */
static void *mlo_field_submessage(mlo *m, int id, void *message, const mlo_field *f) {
    if (f->flags & MLO_F_LIST && !(f->flags & MLO_F_POINTERS)) {
        void *item = mlo_field_slot(m, id, message, f);
        if (item) memset(item, 0, mlo_messages[f->sub].size);
        return item;
    }
    if (!(f->flags & MLO_F_LIST) && *MLO_AT(void *, message, f)) return *MLO_AT(void *, message, f);
    void *made = mlo_alloc(m, 1, mlo_messages[f->sub].size),
         *slot = made ? mlo_field_slot(m, id, message, f) : NULL;
    return slot ? *(void **)slot = made : NULL;
}

/* The messages that are `want` or may hold one, as bits: a search for `want` has to look into
 * these. */
static uint32_t mlo_messages_holding(int want) {
    uint32_t holding = 1u << want, before = 0;
    while (holding != before) {
        before = holding;
        for (int id = 0; id < MLO_M_COUNT; id++)
            for (size_t i = 0; i < mlo_messages[id].n; i++) {
                const mlo_field *f = &mlo_messages[id].field[i];
                if (f->kind == MLO_K_MESSAGE && holding >> f->sub & 1) holding |= 1u << id;
            }
    }
    return holding;
}

typedef int (*mlo_visit)(mlo *m, void *message, void *user);
typedef struct {
    mlo *m;
    int want;
    uint32_t holding;
    mlo_visit visit;
    void *user;
} mlo_search;

static int mlo_search_in(const mlo_search *s, int id, void *message) {
    int r = id == s->want ? s->visit(s->m, message, s->user) : 0;
    for (size_t i = 0; !r && i < mlo_messages[id].n; i++) {
        const mlo_field *f = &mlo_messages[id].field[i];
        if (f->kind != MLO_K_MESSAGE || !(s->holding >> f->sub & 1)) continue;
        size_t n = !mlo_field_present(message, f) ? 0
            : f->flags & MLO_F_LIST               ? *MLO_N(message, f)
                                                  : 1;
        for (size_t k = 0; !r && k < n; k++)
            r = mlo_search_in(s, f->sub, mlo_field_message(message, f, k));
    }
    return r;
}

/* Calls `visit` for every message of type `want` inside a message, wherever it is (tensors:
 * initializers, attributes, subgraphs, functions, sparse tensors), outer ones first. Stops at the
 * first nonzero answer and returns it. */
static int mlo_each_message(mlo *m, int id, void *message, int want, mlo_visit visit, void *user) {
    mlo_search s = { m, want, mlo_messages_holding(want), visit, user };
    return mlo_search_in(&s, id, message);
}

/* ---- text ----------------------------------------------------------------- */

/* Do these first bytes look like something a person wrote? Asked only about bytes that did not
 * decode. */
static int mlo_looks_text(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n && i < 64; i++)
        if (p[i] < 32 && !strchr("\t\r\n", p[i])) return 0;
    return n > 0;
}

/* ---- source files --------------------------------------------------------- */

/* The C99 default of mlo_desc.open. It cannot tell a symlink from a file: a caller who must, gives
 * a function of its own (main.c does). Nor can it open files beyond LONG_MAX bytes. */
static void *mlo_default_open(void *user, const char *path, uint64_t *size) {
    (void)user;
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long end = ftell(f);
    rewind(f);
    /* a directory opens, but does not read */
    if (end < 0 || (end > 0 && getc(f) == EOF)) {
        fclose(f);
        return NULL;
    }
    *size = (uint64_t)end;
    return f;
}
static size_t mlo_default_read(void *user, void *file, uint64_t offset, void *to, size_t bytes) {
    (void)user;
    return offset > (uint64_t)LONG_MAX || fseek((FILE *)file, (long)offset, SEEK_SET)
        ? 0
        : fread(to, 1, bytes, (FILE *)file);
}
static void mlo_default_close(void *user, void *file) {
    (void)user;
    fclose((FILE *)file);
}

/* The source with that folder and name; opens it the first time. The list keeps the order of
 * opening. */
static mlo_source *mlo_source_open(mlo *m, const char *dir, const char *name) {
    mlo_source **end = &m->sources, *s;
    const char *path = !*dir || mlo_eq(dir, ".")
        ? mlo_intern(m, name)
        : mlo_format(m, dir[strlen(dir) - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
    if (!path) return NULL;
    for (; *end; end = &(*end)->next)
        if ((*end)->path == path) return *end;
    if (!(s = MLO_NEW(m, mlo_source)) || !(s->dir = mlo_intern(m, *dir ? dir : "."))
        || !(s->name = mlo_intern(m, name)))
        return NULL;
    s->path = path;
    s->file = m->desc.open(m->desc.user, path, &s->size);
    if (!s->file) {
        mlo_fail_at(
            m, MLO_E_IO, NULL, "cannot open '%s'; is it there, readable, and a plain file?", path);
        return NULL;
    }
    return *end = s;
}

/* Closes the source opened last, which turned out to hold no tensors. */
static void mlo_source_drop(mlo *m, mlo_source *s) {
    for (mlo_source **p = &m->sources; *p; p = &(*p)->next)
        if (*p == s) {
            *p = s->next;
            m->desc.close(m->desc.user, s->file);
            return;
        }
}

/* Reads exactly n bytes at offset, or fails. */
static int mlo_source_read(mlo *m, mlo_source *s, uint64_t offset, void *to, size_t n) {
    if (offset > s->size || n > s->size - offset)
        return mlo_fail_at(m, MLO_E_DATA, NULL,
            "'%s' has %llu bytes, but bytes %llu to %llu are asked for; was it replaced or cut?",
            s->path, (unsigned long long)s->size, (unsigned long long)offset,
            (unsigned long long)(offset + n));
    if (n && m->desc.read(m->desc.user, s->file, offset, to, n) != n)
        return mlo_fail_at(m, MLO_E_IO, NULL,
            "cannot read %zu bytes at %llu of '%s'; was it cut while mlo read it?", n,
            (unsigned long long)offset, s->path);
    return 0;
}

/* Writes what a reference remembers of its bytes: the file's size, and a hash of the first and last
 * 64 of them. `text` has room for 40 characters. */
static int mlo_source_digest(mlo *m, mlo_source *s, uint64_t offset, uint64_t length, char *text) {
    unsigned char ends[128];
    size_t n = length < 64 ? (size_t)length : 64;
    if (mlo_source_read(m, s, offset, ends, n)
        || mlo_source_read(m, s, offset + length - n, ends + n, n))
        return mlo_failed(m);
    snprintf(text, 40, "%llu:%016llx", (unsigned long long)s->size,
        (unsigned long long)mlo_hash(ends, 2 * n));
    return 0;
}

/* ---- reading -------------------------------------------------------------- */

/* MLO_REFERENCE: raw_data longer than this stays in its file */
enum { MLO_WIRE_DEPTH = 100, MLO_WINDOW = 64 * 1024, MLO_FIRST_WINDOW = 1024, MLO_REFERENCE = 256 };

/* a part of a tensor that is longer is mapped, not read (tensor.c) */
enum { MLO_MAPPED = 256 * 1024 };

/* The bytes behind the nanopb stream: a window that slides over a file, or a whole memory. */
typedef struct {
    mlo *m;
    mlo_source *source; /* NULL: a memory */
    const unsigned char *window;
    unsigned char *buffer;
    size_t n; /* bytes in the window */
    uint64_t start; /* of the window: its first byte's place */
    uint64_t at; /* the place of the byte that is read next */
    uint64_t size; /* bytes of all */
    int where; /* the message that is read, for messages */
} mlo_wire;

/* Returns the window's bytes from `at` on; *n says how many. A window grows while reads follow each
 * other, and is small after skipped tensor data. *n is 0 at the end and when reading fails. */
static const unsigned char *mlo_wire_look(mlo_wire *w, size_t *n) {
    if (w->source && (w->at < w->start || w->at >= w->start + w->n)) {
        size_t want = !w->n || w->at != w->start + w->n ? MLO_FIRST_WINDOW
            : w->n * 2 < MLO_WINDOW                     ? w->n * 2
                                                        : MLO_WINDOW;
        w->start = w->at;
        w->n = 0;
        if (want > w->size - w->at) want = (size_t)(w->size - w->at);
        if (mlo_source_read(w->m, w->source, w->at, w->buffer, want)) {
            *n = 0;
            return NULL;
        }
        w->n = want;
    }
    *n = w->n - (size_t)(w->at - w->start);
    return w->window + (w->at - w->start);
}

static bool mlo_wire_pull(pb_istream_t *s, pb_byte_t *to, size_t count) {
    mlo_wire *w = (mlo_wire *)s->state;
    while (count) {
        size_t n;
        const unsigned char *p = mlo_wire_look(w, &n);
        if (!n) return false;
        if (n > count) n = count;
        if (n == 1)
            *to = *p;
        else
            memcpy(to, p, n);
        to += n;
        count -= n;
        w->at += n;
    }
    return true;
}

/* The length in front of a string, no larger than what is left. */
static bool mlo_wire_length(pb_istream_t *s, uint32_t *n) {
    return pb_decode_varint32(s, n) && *n <= s->bytes_left;
}

static bool mlo_wire_skip(pb_istream_t *s, pb_wire_type_t type) {
    uint32_t n;
    if (type != PB_WT_STRING) return pb_skip_field(s, type);
    if (!mlo_wire_length(s, &n)) return false;
    ((mlo_wire *)s->state)->at += n;
    s->bytes_left -= n;
    return true;
}

/* The next n bytes of the stream: in the window if they all lie there, else copied to *scratch (to
 * be freed). NULL when that fails. */
static const char *mlo_wire_bytes(pb_istream_t *s, size_t n, void **scratch) {
    mlo_wire *w = (mlo_wire *)s->state;
    size_t have = 0;
    const unsigned char *p = n ? mlo_wire_look(w, &have) : (const unsigned char *)"";
    if (n <= have) {
        w->at += n;
        s->bytes_left -= n;
        return (const char *)p;
    }
    if (!(*scratch = mlo_scratch(w->m, n, 1)) || !pb_read(s, (pb_byte_t *)*scratch, n)) return NULL;
    return (const char *)*scratch;
}

static bool mlo_wire_string(pb_istream_t *s, const char **to) {
    mlo_wire *w = (mlo_wire *)s->state;
    uint32_t n;
    void *scratch = NULL;
    if (!mlo_wire_length(s, &n)) return false;
    const char *p = mlo_wire_bytes(s, n, &scratch);
    if (p && !mlo_utf8(p, n))
        mlo_fail_at(w->m, MLO_E_FORMAT, NULL,
            "a string of %lu bytes before byte %llu is not UTF-8 text; the file is damaged, or no "
            "ONNX model",
            (unsigned long)n, (unsigned long long)w->at);
    else if (p)
        *to = mlo_intern_n(w->m, p, n);
    mlo_scratch_free(w->m, scratch);
    return p && !w->m->error.code;
}

/* Reads bytes: in memory they are pointed at; in a file a tensor's long ones are referenced; others
 * are copied into the arena. */
static bool mlo_wire_data(pb_istream_t *s, const mlo_field *f, void *message, mlo_bytes *to) {
    mlo_wire *w = (mlo_wire *)s->state;
    mlo_tensor *t = f->flags & MLO_F_RAW ? (mlo_tensor *)message : NULL;
    uint32_t n;
    if (!mlo_wire_length(s, &n)) return false;
    if (t) {
        t->source = NULL;
        t->offset = t->length = 0;
    }
    to->n = n;
    if (t && w->source && n > MLO_REFERENCE) {
        t->source = w->source;
        t->offset = w->at;
        t->length = n;
        to->data = NULL;
        to->n = 0;
    } else if (!w->source)
        to->data = (const char *)w->window + w->at;
    else {
        char *copy = (char *)mlo_alloc(w->m, (size_t)n + 1, 1);
        to->data = copy;
        return copy && pb_read(s, (pb_byte_t *)copy, n);
    }
    w->at += n;
    s->bytes_left -= n;
    return true;
}

static pb_wire_type_t mlo_wire_type(const mlo_field *f) {
    switch (f->kind) {
    case MLO_K_FLOAT: return PB_WT_32BIT;
    case MLO_K_DOUBLE: return PB_WT_64BIT;
    case MLO_K_STRING:
    case MLO_K_BYTES:
    case MLO_K_MESSAGE: return PB_WT_STRING;
    default: return PB_WT_VARINT;
    }
}

/* Reads one number into a new slot. */
static bool mlo_wire_number(pb_istream_t *s, int id, void *message, const mlo_field *f) {
    mlo *m = ((mlo_wire *)s->state)->m;
    uint64_t bits = 0;
    float single = 0;
    double twice = 0;
    if (f->kind == MLO_K_FLOAT        ? !pb_decode_fixed32(s, &single)
            : f->kind == MLO_K_DOUBLE ? !pb_decode_fixed64(s, &twice)
                                      : !pb_decode_varint(s, &bits))
        return false;
    /* as protobuf does: what is no value of this enum is an unknown field */
    if (f->kind == MLO_K_ENUM && bits >= mlo_enums[f->sub].n) return true;
    void *slot = mlo_field_slot(m, id, message, f);
    if (!slot) return false;
    if (f->kind == MLO_K_FLOAT)
        *(float *)slot = single;
    else if (f->kind == MLO_K_DOUBLE)
        *(double *)slot = twice;
    else if (f->kind == MLO_K_INT64 || f->kind == MLO_K_UINT64)
        memcpy(slot, &bits, sizeof bits);
    else {
        uint32_t low = (uint32_t)(bits & 0xFFFFFFFFu);
        memcpy(slot, &low, sizeof low);
    }
    return true;
}

static bool mlo_wire_packed(pb_istream_t *s, int id, void *message, const mlo_field *f) {
    pb_istream_t sub;
    if (!pb_make_string_substream(s, &sub)) return false;
    while (sub.bytes_left)
        if (!mlo_wire_number(&sub, id, message, f)) return false;
    return pb_close_string_substream(s, &sub);
}

static bool mlo_wire_message(pb_istream_t *s, int id, void *message, int depth);

static bool mlo_wire_field(
    pb_istream_t *s, int id, void *message, const mlo_field *f, pb_wire_type_t type, int depth) {
    mlo *m = ((mlo_wire *)s->state)->m;
    int number = f->kind > MLO_K_BYTES && f->kind < MLO_K_MESSAGE;
    if (number && f->flags & MLO_F_LIST && type == PB_WT_STRING)
        return mlo_wire_packed(s, id, message, f);
    if (type != mlo_wire_type(f)) return mlo_wire_skip(s, type);
    if (number) return mlo_wire_number(s, id, message, f);
    if (f->kind == MLO_K_MESSAGE) {
        pb_istream_t sub;
        void *to = mlo_field_submessage(m, id, message, f);
        return to && pb_make_string_substream(s, &sub)
            && mlo_wire_message(&sub, f->sub, to, depth + 1) && pb_close_string_substream(s, &sub);
    }
    const char *text = NULL;
    mlo_bytes bytes = { NULL, 0 };
    if (f->kind == MLO_K_STRING ? !mlo_wire_string(s, &text)
                                : !mlo_wire_data(s, f, message, &bytes))
        return false;
    void *slot = mlo_field_slot(m, id, message, f);
    if (!slot) return false;
    if (f->kind == MLO_K_STRING)
        *(const char **)slot = text;
    else
        *(mlo_bytes *)slot = bytes;
    return true;
}

static const mlo_field *mlo_field_numbered(int id, uint32_t number) {
    for (size_t i = 0; i < mlo_messages[id].n; i++)
        if (mlo_messages[id].field[i].number == number) return &mlo_messages[id].field[i];
    return NULL;
}

static bool mlo_wire_message(pb_istream_t *s, int id, void *message, int depth) {
    mlo_wire *w = (mlo_wire *)s->state;
    if (depth > MLO_WIRE_DEPTH) {
        mlo_fail_at(w->m, MLO_E_FORMAT, NULL, "messages are nested more than %d deep at byte %llu",
            MLO_WIRE_DEPTH, (unsigned long long)w->at);
        return false;
    }
    while (s->bytes_left) {
        pb_wire_type_t type;
        uint32_t number;
        bool eof;
        w->where = id;
        if (!pb_decode_tag(s, &type, &number, &eof) || !number) return false;
        const mlo_field *f = mlo_field_numbered(id, number);
        if (f ? !mlo_wire_field(s, id, message, f, type, depth) : !mlo_wire_skip(s, type))
            return false;
    }
    return true;
}

/* Fails: says why a file is no model, in words that fit what it looks like. */
static void mlo_wire_refuse(mlo_wire *w) {
    size_t n, shown = 0;
    unsigned long long at = w->at, size = w->size;
    w->at = 0;
    const unsigned char *p = mlo_wire_look(w, &n);
    if (p && mlo_looks_text(p, n)) {
        while (shown < n && shown < 20 && p[shown] >= 32) shown++;
        mlo_fail_at(w->m, MLO_E_FORMAT, NULL,
            "this is text, '%.*s...', neither binary ONNX nor JSON; give the .onnx file",
            (int)shown, (const char *)p);
    } else
        mlo_fail_at(w->m, MLO_E_FORMAT, NULL,
            "not an ONNX model, or cut short: %s breaks off at byte %llu of %llu; export or fetch "
            "it again",
            mlo_messages[w->where].name, at, size);
}

/* Decodes a ModelProto from a source, or from memory when source is NULL. Checks nothing but the
 * encoding. NULL when it fails. */
static mlo_model *mlo_wire_read(mlo *m, mlo_source *source, const void *bytes, size_t n) {
    mlo_wire w = { m, source, (const unsigned char *)bytes, NULL, n, 0, 0,
        source ? source->size : n, 0 };
    pb_istream_t s = { mlo_wire_pull, NULL, 0, NULL };
    mlo_model *model = MLO_NEW(m, mlo_model);
    if (!model) return NULL;
    if (w.size > SIZE_MAX / 2) {
        mlo_fail_at(m, MLO_E_FORMAT, NULL, "%llu bytes are more than an ONNX file can have (2 GB)",
            (unsigned long long)w.size);
        return NULL;
    }
    if (source) {
        if (!(w.buffer = (unsigned char *)mlo_scratch(m, MLO_WINDOW, 1))) return NULL;
        w.window = w.buffer;
        w.n = 0;
        w.start = 0;
    }
    s.state = &w;
    s.bytes_left = (size_t)w.size;
    if (!mlo_wire_message(&s, MLO_M_MODEL, model, 0))
        mlo_wire_refuse(&w);
    else if (!model->graph)
        mlo_fail_at(m, MLO_E_FORMAT, NULL, "%llu bytes without a graph: not an ONNX model",
            (unsigned long long)w.size);
    mlo_scratch_free(m, w.buffer);
    return m->error.code ? NULL : model;
}

/* ---- writing -------------------------------------------------------------- */

/* A buffer in front of a sink. It allocates nothing, so that it can also report that there is no
 * memory. */
typedef struct {
    mlo *m;
    mlo_sink sink;
    void *user;
    const char *file;
    int failed;
    size_t n;
    char buffer[4096];
} mlo_out;

static void mlo_out_flush(mlo_out *o) {
    if (!o->failed && o->n && o->sink(o->user, o->file, o->buffer, o->n)) o->failed = 1;
    o->n = 0;
}
static void mlo_out_put(mlo_out *o, const void *bytes, size_t n) {
    if (n > sizeof o->buffer - o->n) mlo_out_flush(o);
    if (n >= sizeof o->buffer) {
        if (!o->failed && o->sink(o->user, o->file, bytes, n)) o->failed = 1;
        return;
    }
    memcpy(o->buffer + o->n, bytes, n);
    o->n += n;
}
static void mlo_out_puts(mlo_out *o, const char *s) { mlo_out_put(o, s, strlen(s)); }

/* Flushes, and returns how writing went. */
static int mlo_out_end(mlo_out *o) {
    mlo_out_flush(o);
    return o->failed ? mlo_fail_at(o->m, MLO_E_IO, NULL, "the output could not be written")
                     : mlo_failed(o->m);
}

/* A failure sticks to mlo_out (and to the handle), and what is written after it goes nowhere: none
 * of the functions below says how it went, mlo_out_end does.
 * A first pass, on nanopb's sizing stream, notes the sizes of all submessages in the order of
 * writing; the second pass uses them up. */
typedef struct {
    mlo_out *out;
    mlo *m;
    uint64_t *size; /* bytes of each submessage */
    size_t n; /* sizes */
    size_t room; /* sizes that there is memory for */
    size_t at; /* sizes that are used up */
    const char *data; /* the file that long tensors go to, one after the other, or NULL */
    uint64_t data_at; /* where the next one goes there, in bytes */
} mlo_encoder;

static bool mlo_encode_push(pb_ostream_t *s, const pb_byte_t *bytes, size_t n) {
    mlo_out *o = ((mlo_encoder *)s->state)->out;
    mlo_out_put(o, bytes, n);
    return !o->failed;
}

/* Writes all raw bytes of a tensor, through a window when they lie in a file. */
static void mlo_out_tensor(mlo_out *o, const mlo_tensor *t) {
    if (!t->source) {
        mlo_out_put(o, t->raw.data, t->raw.n);
        return;
    }
    char *window = (char *)mlo_scratch(o->m, MLO_WINDOW, 1);
    o->failed |= !window;
    for (uint64_t at = 0; at < t->length && !o->failed; at += MLO_WINDOW) {
        size_t n = (size_t)mlo_min((int64_t)(t->length - at), MLO_WINDOW);
        if (mlo_source_read(o->m, t->source, t->offset + at, window, n))
            o->failed = 1;
        else
            mlo_out_put(o, window, n);
    }
    mlo_scratch_free(o->m, window);
}

/* Writes raw_data that lies in a source: the first pass counts it, the second streams it past
 * nanopb. */
static void mlo_encode_raw(pb_ostream_t *s, mlo_encoder *e, const mlo_tensor *t) {
    pb_encode_varint(s, t->length);
    s->bytes_written += (size_t)t->length;
    if (s->callback) mlo_out_tensor(e->out, t);
}

static void mlo_encode_number(pb_ostream_t *s, const mlo_field *f, const void *p) {
    uint64_t bits;
    switch (f->kind) {
    case MLO_K_FLOAT: pb_encode_fixed32(s, p); break;
    case MLO_K_DOUBLE: pb_encode_fixed64(s, p); break;
    case MLO_K_INT64:
    case MLO_K_UINT64:
        memcpy(&bits, p, sizeof bits);
        pb_encode_varint(s, bits);
        break;
    default: pb_encode_varint(s, (uint64_t)(int64_t)*(const int32_t *)p);
    }
}

static void mlo_encode_packed(pb_ostream_t *s, const mlo_field *f, const char *list, size_t n) {
    pb_ostream_t sizing = PB_OSTREAM_SIZING;
    size_t size = mlo_field_size(f);
    for (size_t i = 0; i < n; i++) mlo_encode_number(&sizing, f, list + i * size);
    pb_encode_tag(s, PB_WT_STRING, f->number);
    pb_encode_varint(s, sizing.bytes_written);
    for (size_t i = 0; i < n; i++) mlo_encode_number(s, f, list + i * size);
}

static void mlo_encode_message(pb_ostream_t *s, mlo_encoder *e, int id, const void *message);

enum { MLO_DATA_ALIGN = 64 };
static uint64_t mlo_data_bytes(const mlo_tensor *t) { return t->source ? t->length : t->raw.n; }

/* Writes a tensor whose bytes go to the data file: the same message, as external data. */
static void mlo_encode_external(pb_ostream_t *s, mlo_encoder *e, const mlo_tensor *t) {
    char offset[24], length[24];
    mlo_entry external[3] = { { 0, "location", e->data }, { 0, "offset", offset },
        { 0, "length", length } };
    mlo_tensor view = *t;
    snprintf(offset, sizeof offset, "%llu", (unsigned long long)e->data_at);
    snprintf(length, sizeof length, "%llu", (unsigned long long)mlo_data_bytes(t));
    e->data_at += (mlo_data_bytes(t) + MLO_DATA_ALIGN - 1) / MLO_DATA_ALIGN * MLO_DATA_ALIGN;
    view.source = NULL;
    view.raw.data = NULL;
    view.raw.n = 0;
    view.external = external;
    view.n_external = 3;
    view.location = 1;
    view.has |= MLO_HAS(14);
    mlo_encode_message(s, e, MLO_M_TENSOR, &view);
}

/* Writes the bytes that mlo_encode_external promised, in the same order. */
static int mlo_encode_data(mlo *m, void *tensor, void *user) {
    static const char zeros[MLO_DATA_ALIGN] = { 0 };
    const mlo_tensor *t = (const mlo_tensor *)tensor;
    mlo_out *o = (mlo_out *)user;
    (void)m;
    if (mlo_data_bytes(t) <= MLO_REFERENCE) return 0;
    mlo_out_tensor(o, t);
    mlo_out_put(
        o, zeros, (size_t)((MLO_DATA_ALIGN - mlo_data_bytes(t) % MLO_DATA_ALIGN) % MLO_DATA_ALIGN));
    return o->failed;
}

static void mlo_encode_submessage(pb_ostream_t *s, mlo_encoder *e, int id, const void *message) {
    if (s->callback) {
        pb_encode_varint(s, e->size[e->at++]);
        mlo_encode_message(s, e, id, message);
        return;
    }
    size_t slot = e->n, before = s->bytes_written;
    uint64_t *size = (uint64_t *)mlo_grow(e->m, e->size, e->n, &e->room, sizeof *size);
    if (!size) return;
    e->size = size;
    e->n++;
    mlo_encode_message(s, e, id, message);
    e->size[slot] = s->bytes_written - before;
    pb_encode_varint(s, e->size[slot]);
}

/* One item of a field that is neither a number nor a message: bytes. */
static void mlo_encode_bytes(
    pb_ostream_t *s, mlo_encoder *e, const mlo_field *f, const void *message, const void *p) {
    const mlo_bytes *b = (const mlo_bytes *)p;
    if (f->flags & MLO_F_RAW && ((const mlo_tensor *)message)->source)
        mlo_encode_raw(s, e, (const mlo_tensor *)message);
    else
        pb_encode_string(s, (const pb_byte_t *)b->data, b->n);
}

static void mlo_encode_field(
    pb_ostream_t *s, mlo_encoder *e, const mlo_field *f, const void *message) {
    size_t n = f->flags & MLO_F_LIST ? *(const size_t *)(const void *)((const char *)message + f->n)
                                     : 1;
    size_t size = mlo_field_size(f);
    const char *p = f->flags & MLO_F_LIST ? *MLO_AT_CONST(char *, message, f)
                                          : MLO_AT_CONST(char, message, f);
    if (f->flags & MLO_F_PACKED) {
        mlo_encode_packed(s, f, p, n);
        return;
    }
    for (size_t i = 0; i < n; i++, p += size) {
        const char *text = f->kind == MLO_K_STRING ? *(const char *const *)(const void *)p : NULL;
        pb_encode_tag(s, mlo_wire_type(f), f->number);
        switch (f->kind) {
        case MLO_K_MESSAGE:
            mlo_encode_submessage(s, e, f->sub, mlo_field_message(message, f, i));
            break;
        case MLO_K_STRING: pb_encode_string(s, (const pb_byte_t *)text, strlen(text)); break;
        case MLO_K_BYTES: mlo_encode_bytes(s, e, f, message, p); break;
        default: mlo_encode_number(s, f, p);
        }
    }
}

static void mlo_encode_message(pb_ostream_t *s, mlo_encoder *e, int id, const void *message) {
    if (id == MLO_M_TENSOR && e->data
        && mlo_data_bytes((const mlo_tensor *)message) > MLO_REFERENCE) {
        mlo_encode_external(s, e, (const mlo_tensor *)message);
        return;
    }
    for (size_t i = 0; i < mlo_messages[id].n; i++)
        if (mlo_field_present(message, &mlo_messages[id].field[i]))
            mlo_encode_field(s, e, &mlo_messages[id].field[i], message);
}

/* Notes all sizes; returns the size of the whole, or 0 and a failure. */
static uint64_t mlo_encode_sizes(mlo_encoder *e, const mlo_model *model) {
    pb_ostream_t sizing = PB_OSTREAM_SIZING;
    e->n = 0;
    e->data_at = 0;
    mlo_encode_message(&sizing, e, MLO_M_MODEL, model);
    return e->m->error.code ? 0 : sizing.bytes_written;
}

/* Writes a model as self-contained binary ONNX: referenced bytes are streamed in from their
 * sources. A model beyond the 2 GB that protobuf can do needs the option "data-file": the sink gets
 * a file of that name after the model, with the bytes of all long tensors. (The option "data-limit"
 * is for tests: another limit than 2 GB.) */
static int mlo_wire_write(mlo *m, mlo_model *model, mlo_sink sink, void *user) {
    mlo_out out = { m, sink, user, "", 0, 0, { 0 } };
    mlo_encoder e = { &out, m, NULL, 0, 0, 0, NULL, 0 };
    pb_ostream_t s = { mlo_encode_push, NULL, SIZE_MAX, 0, NULL };
    uint64_t limit = (uint64_t)mlo_opt_int(m, "data-limit", INT32_MAX, 0, INT32_MAX);
    uint64_t size = mlo_encode_sizes(&e, model);
    s.state = &e;
    if (size > limit && (e.data = mlo_opt(m, "data-file")) != NULL)
        size = mlo_encode_sizes(&e, model);
    if (size > INT32_MAX)
        return mlo_fail_at(m, MLO_E_UNSUPPORTED, NULL,
            "%llu bytes are more than one ONNX file can hold (2 GB); write to a file with -o, "
            "which gets a .data file beside it, or write JSON",
            (unsigned long long)size);
    e.data_at = 0;
    if (m->error.code) return mlo_failed(m);
    mlo_encode_message(&s, &e, MLO_M_MODEL, model);
    if (mlo_out_end(&out) || !e.data) return mlo_failed(m);
    out.file = e.data;
    mlo_each_message(m, MLO_M_MODEL, model, MLO_M_TENSOR, mlo_encode_data, &out);
    return mlo_out_end(&out);
}
