/* tensor: the elements of a tensor, whatever they are encoded in.
 *
 * in:  an mlo_tensor: raw bytes, typed fields (float_data, int32_data, ...), or a reference into a
 *     source file.
 * out: elements in host form, as a whole array or a window at a time; numbers of any type as float
 *     or double; tensors made from arrays. Host form is one array element each: 4-bit and 2-bit
 *     integers become int8 / uint8, a FLOAT4E2M1 becomes its code.
 *
 * invariant: a window touches only its own bytes, so a pass over a big tensor needs MLO_WINDOW
 *     bytes of memory, not the tensor. A long one that lies in a file as the host has it is mapped,
 *     not copied: a Gather touches its rows alone.
 * example: mlo_array *w = mlo_tensor_load(m, t); ... mlo_array_free(m, w);
 *     or mlo_tensor_read(m, t, first, count, buffer);
 * cost: a copy; one read of the file per window.
 */

/* ---- sizes ---------------------------------------------------------------- */

/* Bits of one element in raw_data; 0 for strings and for types mlo does not know. */
static unsigned mlo_dtype_bits(mlo_dtype t) {
    switch (t) {
    case MLO_UINT2:
    case MLO_INT2: return 2;
    case MLO_UINT4:
    case MLO_INT4:
    case MLO_FLOAT4E2M1: return 4;
    case MLO_COMPLEX64: return 64;
    case MLO_COMPLEX128: return 128;
    default: return (unsigned)t > MLO_INT2 ? 0 : 8 * (unsigned)mlo_dtype_size(t);
    }
}

static const char *mlo_dtype_name(mlo_dtype t) {
    static const char *const names[] = { "undefined", "float", "uint8", "int8", "uint16", "int16",
        "int32", "int64", "string", "bool", "float16", "double", "uint32", "uint64", "complex64",
        "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
        "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2" };
    return (unsigned)t < sizeof names / sizeof *names ? names[t] : "unknown";
}

/* Has it numbers that mlo computes with? Not strings, complex numbers, types from the future. */
static int mlo_dtype_is_number(mlo_dtype t) { return mlo_dtype_bits(t) && mlo_dtype_size(t); }

static int mlo_dtype_is_float(mlo_dtype t) {
    return t == MLO_FLOAT || t == MLO_DOUBLE || t == MLO_FLOAT16 || t == MLO_BFLOAT16
        || (t >= MLO_FLOAT8E4M3FN && t <= MLO_FLOAT8E5M2FNUZ) || t == MLO_FLOAT4E2M1
        || t == MLO_FLOAT8E8M0;
}

/* Of 16 bits? */
static int mlo_dtype_is_half(mlo_dtype t) { return t == MLO_FLOAT16 || t == MLO_BFLOAT16; }

/* Are its elements numbers, so that they may be asked for? Else asking is a failure. */
static int mlo_tensor_is_numbers(const mlo_tensor *t) {
    return mlo_dtype_is_number((mlo_dtype)t->data_type);
}

/* Number of elements; -1 when a dimension is negative or the product is beyond 2^56. */
static int64_t mlo_tensor_count(const mlo_tensor *t) {
    int64_t n = 1;
    int zero = 0;
    for (size_t i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0) return -1;
        if (!t->dims[i]) {
            zero = 1;
            continue;
        }
        if (n > ((int64_t)1 << 56) / t->dims[i]) return -1;
        n *= t->dims[i];
    }
    return zero ? 0 : n;
}

/* Bytes of `count` elements in raw_data. */
static uint64_t mlo_raw_bytes(mlo_dtype t, int64_t count) {
    return ((uint64_t)count * mlo_dtype_bits(t) + 7) / 8;
}
static uint64_t mlo_tensor_bytes(const mlo_tensor *t) {
    return mlo_raw_bytes((mlo_dtype)t->data_type, mlo_tensor_count(t));
}

/* Which typed field holds elements of this type when there is no raw_data. */
typedef struct {
    const void *list;
    size_t n; /* items */
    size_t size; /* bytes of an item */
} mlo_typed;
static mlo_typed mlo_tensor_typed(const mlo_tensor *t) {
    mlo_typed f = { t->int32s, t->n_int32s, 4 };
    switch (t->data_type) {
    case MLO_FLOAT:
    case MLO_COMPLEX64:
        f.list = t->floats;
        f.n = t->n_floats;
        break;
    case MLO_DOUBLE:
    case MLO_COMPLEX128:
        f.list = t->doubles;
        f.n = t->n_doubles;
        f.size = 8;
        break;
    case MLO_INT64:
        f.list = t->int64s;
        f.n = t->n_int64s;
        f.size = 8;
        break;
    case MLO_UINT32:
    case MLO_UINT64:
        f.list = t->uint64s;
        f.n = t->n_uint64s;
        f.size = 8;
        break;
    default: break;
    }
    return f;
}
/* Is the element data raw bytes (in memory or in a source)? */
static int mlo_tensor_is_raw(const mlo_tensor *t) { return t->source || t->raw.data; }

/* Fails unless dims, type and the amount of data agree. */
static int mlo_tensor_check(mlo *m, const mlo_tensor *t) {
    int64_t count = mlo_tensor_count(t);
    mlo_dtype type = (mlo_dtype)t->data_type;
    const char *name = mlo_or_empty(t->name);
    unsigned bits = mlo_dtype_bits(type);
    if (count < 0)
        return mlo_fail_at(
            m, MLO_E_SHAPE, name, "the tensor's dimensions are negative or too large");
    if (type == MLO_UNDEFINED)
        return mlo_fail_at(m, MLO_E_TYPE, name, "the tensor has no element type");
    if (type == MLO_STRING)
        return (int64_t)t->n_strings == count
            ? 0
            : mlo_fail_at(m, MLO_E_DATA, name, "the tensor has %zu strings, its shape needs %lld",
                  t->n_strings, (long long)count);
    /* a type from the future: carried through unseen */
    if (!bits) return 0;
    if (mlo_tensor_is_raw(t)) {
        uint64_t have = t->source ? t->length : t->raw.n;
        return have == mlo_tensor_bytes(t)
            ? 0
            : mlo_fail_at(m, MLO_E_DATA, name,
                  "the tensor has %llu bytes, its shape and type (%s) need %llu",
                  (unsigned long long)have, mlo_dtype_name(type),
                  (unsigned long long)mlo_tensor_bytes(t));
    }
    uint64_t want = bits < 8                                              ? mlo_tensor_bytes(t)
        : bits >= 64 && (type == MLO_COMPLEX64 || type == MLO_COMPLEX128) ? 2 * (uint64_t)count
                                                                          : (uint64_t)count;
    mlo_typed f = mlo_tensor_typed(t);
    return f.n == want ? 0
                       : mlo_fail_at(m, MLO_E_DATA, name,
                             "the tensor has %zu values, its shape and type (%s) need %llu", f.n,
                             mlo_dtype_name(type), (unsigned long long)want);
}

/* ---- small floats --------------------------------------------------------- */

static float mlo_float_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
/* A float of 1 sign bit, `mantissa` bits and the rest exponent with this bias, all codes finite;
 * infinities are the callers' business. The product with a power of two is exact: no small format reaches
 * what is subnormal here. */
static float mlo_small_float(uint32_t code, int bits, int mantissa, int bias) {
    const uint32_t frac = code & ((1u << mantissa) - 1);
    const uint32_t exp = code >> mantissa & ((1u << (bits - 1 - mantissa)) - 1);
    const uint32_t power = (exp ? exp : 1) + (uint32_t)(127 - bias - mantissa);
    const float v = (float)(exp ? frac | 1u << mantissa : frac) * mlo_float_bits(power << 23);
    return code >> (bits - 1) & 1 ? -v : v;
}
/* Without a branch: models have millions of them. */
static float mlo_half_float(uint16_t h) {
    const uint32_t exp = h >> 10 & 31u, frac = h & 1023u;
    const uint32_t power = exp + (exp == 0) + 127 - 15 - 10;
    const float finite = (float)(int32_t)(frac | (uint32_t)(exp > 0) << 10)
        * mlo_float_bits(power << 23);
    uint32_t bits;
    memcpy(&bits, &finite, sizeof bits);
    if (exp == 31) bits = 0x7F800000u | frac << 13;
    return mlo_float_bits(bits | (uint32_t)(h & 0x8000) << 16);
}
static float mlo_bfloat_float(uint16_t h) { return mlo_float_bits((uint32_t)h << 16); }
static float mlo_float8_float(mlo_dtype t, uint8_t c) {
    switch (t) {
    case MLO_FLOAT8E4M3FN:
        return (c & 0x7F) == 0x7F ? mlo_float_bits(0x7FC00000u) : mlo_small_float(c, 8, 3, 7);
    case MLO_FLOAT8E4M3FNUZ:
        return c == 0x80 ? mlo_float_bits(0x7FC00000u) : mlo_small_float(c, 8, 3, 8);
    case MLO_FLOAT8E5M2: return mlo_half_float((uint16_t)(c << 8));
    case MLO_FLOAT8E5M2FNUZ:
        return c == 0x80 ? mlo_float_bits(0x7FC00000u) : mlo_small_float(c, 8, 2, 16);
    case MLO_FLOAT8E8M0: return c == 0xFF ? mlo_float_bits(0x7FC00000u) : ldexpf(1, (int)c - 127);
    default: return mlo_small_float(c & 15u, 4, 1, 1); /* FLOAT4E2M1 */
    }
}
/* Elements in host form (as in mlo_array) as doubles: any type that is a number; int64 beyond 2^53
 * rounds. */
static void mlo_to_doubles(mlo_dtype t, const void *from, size_t n, double *to) {
#define MLO_CASE(id, type)                                                      \
    case id:                                                                    \
        for (size_t i = 0; i < n; i++) to[i] = (double)((const type *)from)[i]; \
        break
    switch (t) {
        MLO_CASE(MLO_FLOAT, float);
        MLO_CASE(MLO_DOUBLE, double);
        MLO_CASE(MLO_INT64, int64_t);
        MLO_CASE(MLO_INT32, int32_t);
        MLO_CASE(MLO_INT16, int16_t);
        MLO_CASE(MLO_INT8, int8_t);
        MLO_CASE(MLO_INT4, int8_t);
        MLO_CASE(MLO_INT2, int8_t);
        MLO_CASE(MLO_UINT64, uint64_t);
        MLO_CASE(MLO_UINT32, uint32_t);
        MLO_CASE(MLO_UINT16, uint16_t);
        MLO_CASE(MLO_UINT8, uint8_t);
        MLO_CASE(MLO_UINT4, uint8_t);
        MLO_CASE(MLO_UINT2, uint8_t);
        MLO_CASE(MLO_BOOL, uint8_t);
    case MLO_FLOAT16:
        for (size_t i = 0; i < n; i++) to[i] = (double)mlo_half_float(((const uint16_t *)from)[i]);
        break;
    case MLO_BFLOAT16:
        for (size_t i = 0; i < n; i++)
            to[i] = (double)mlo_bfloat_float(((const uint16_t *)from)[i]);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            to[i] = (double)mlo_float8_float(t, ((const uint8_t *)from)[i]);
    }
#undef MLO_CASE
}

/* ---- reading -------------------------------------------------------------- */

/* raw_data is little-endian: turns n elements of `size` bytes to (or from) the host's order. */
static int mlo_is_little(void) {
    const uint16_t one = 1;
    unsigned char low;
    memcpy(&low, &one, 1);
    return low;
}
static void mlo_little_endian(void *data, size_t n, size_t size) {
    unsigned char *p = (unsigned char *)data;
    if (mlo_is_little()) return;
    for (; n--; p += size)
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char c = p[i];
            p[i] = p[size - 1 - i];
            p[size - 1 - i] = c;
        }
}

/* Bytes [at, at + n) of the raw data of a tensor that is raw. They are there: mlo_tensor_check. */
static int mlo_tensor_raw(mlo *m, const mlo_tensor *t, uint64_t at, void *to, size_t n) {
    if (t->source) return mlo_source_read(m, t->source, t->offset + at, to, n);
    if (n) memcpy(to, t->raw.data + at, n);
    return 0;
}

/* Packed bytes [at, at + n): from raw data, or from int32_data, which holds one packed byte per
 * item. */
static int mlo_tensor_packed(mlo *m, const mlo_tensor *t, uint64_t at, uint8_t *to, size_t n) {
    if (mlo_tensor_is_raw(t)) return mlo_tensor_raw(m, t, at, to, n);
    for (size_t i = 0; i < n; i++) to[i] = (uint8_t)(t->int32s[at + i] & 0xFF);
    return 0;
}

/* Elements of 2 or 4 bits, low bits first, widened to a byte each; signed types keep their sign. */
static int mlo_tensor_read_small(
    mlo *m, const mlo_tensor *t, int64_t first, size_t count, uint8_t *to) {
    unsigned bits = mlo_dtype_bits((mlo_dtype)t->data_type);
    unsigned per = 8 / bits;
    unsigned sign = t->data_type == MLO_INT4 ? 8 : t->data_type == MLO_INT2 ? 2 : 0;
    uint8_t packed[512];
    while (count) {
        size_t skip = (size_t)(first % per);
        size_t n = sizeof packed * per - skip < count ? sizeof packed * per - skip : count;
        if (mlo_tensor_packed(m, t, (uint64_t)first / per, packed, (skip + n + per - 1) / per))
            return mlo_failed(m);
        for (size_t i = 0; i < n; i++) {
            unsigned v = packed[(skip + i) / per] >> (skip + i) % per * bits & ((1u << bits) - 1);
            *to++ = (uint8_t)((v ^ sign) - sign);
        }
        first += (int64_t)n;
        count -= n;
    }
    return 0;
}

/* Elements [first, first + count) in host form into `to` (mlo_dtype_size bytes each; complex
 * numbers: their parts). They are there, of a type that has bits: mlo_tensor_check. */
static int mlo_tensor_read(mlo *m, const mlo_tensor *t, int64_t first, size_t count, void *to) {
    unsigned bits = mlo_dtype_bits((mlo_dtype)t->data_type);
    if (bits < 8) return mlo_tensor_read_small(m, t, first, count, (uint8_t *)to);
    size_t size = bits / 8, unit = bits == 128 || t->data_type == MLO_COMPLEX64 ? size / 2 : size;
    if (mlo_tensor_is_raw(t)) {
        if (mlo_tensor_raw(m, t, (uint64_t)first * size, to, count * size)) return mlo_failed(m);
        mlo_little_endian(to, count * (size / unit), unit);
        return 0;
    }
    mlo_typed f = mlo_tensor_typed(t);
    size_t parts = size / unit, at = (size_t)first * parts, n = count * parts;
    if (!n) return 0;
    if (unit == f.size) {
        memcpy(to, (const char *)f.list + at * f.size, n * f.size);
        return 0;
    }
    /* narrow types that sit in wider fields */
    for (size_t i = 0; i < n; i++) {
        uint64_t v = f.size == 8 ? ((const uint64_t *)f.list)[at + i]
                                 : (uint64_t)(uint32_t)((const int32_t *)f.list)[at + i];
        if (unit == 1)
            ((uint8_t *)to)[i] = (uint8_t)(v & 0xFF);
        else if (unit == 2)
            ((uint16_t *)to)[i] = (uint16_t)(v & 0xFFFF);
        else
            ((uint32_t *)to)[i] = (uint32_t)(v & 0xFFFFFFFFu);
    }
    return 0;
}

/* Elements [first, ..) of a long tensor where they lie in their file, when that is the host's form; NULL: they are to
 * be read. */
static mlo_array *mlo_tensor_mapped(
    mlo *m, const mlo_tensor *t, int64_t first, size_t rank, const int64_t *dims) {
    const mlo_dtype type = (mlo_dtype)t->data_type;
    const size_t size = mlo_dtype_size(type);
    size_t bytes = size;
    for (size_t i = 0; i < rank; i++) bytes *= (size_t)dims[i];
    const uint64_t at = t->offset + (uint64_t)first * bytes;
    if (!m->desc.map || !t->source || bytes < MLO_MAPPED || mlo_dtype_bits(type) != 8 * size
        || at % size || !mlo_is_little())
        return NULL;
    void *data = m->desc.map(m->desc.user, t->source->file, at, bytes);
    mlo_array *a = data ? mlo_array_over(m, type, (int)rank, dims, data, bytes) : NULL;
    if (data && !a) m->desc.unmap(m->desc.user, data, bytes);
    return a;
}

/* Part `first` of the tensor as an array in scratch memory (mlo_array_free), shaped as its last
 * `rank` dimensions. NULL when it fails. */
static mlo_array *mlo_tensor_part(mlo *m, const mlo_tensor *t, int64_t first, size_t rank) {
    if (t->n_dims > MLO_MAX_RANK) {
        mlo_fail_at(
            m, MLO_E_UNSUPPORTED, t->name, "rank %zu is more than %d", t->n_dims, MLO_MAX_RANK);
        return NULL;
    }
    if (!mlo_tensor_is_numbers(t)) {
        mlo_fail_at(m, MLO_E_TYPE, t->name, "%s tensors cannot be evaluated",
            mlo_dtype_name((mlo_dtype)t->data_type));
        return NULL;
    }
    const int64_t *dims = rank ? t->dims + (t->n_dims - rank) : NULL; /* a scalar's are NULL */
    mlo_array *a = mlo_tensor_mapped(m, t, first, rank, dims);
    if (a) a->name = t->name;
    if (a || m->error.code) return a;
    if (!(a = mlo_array_new(m, (mlo_dtype)t->data_type, (int)rank, dims))) return NULL;
    a->name = t->name;
    if (mlo_tensor_read(m, t, first * mlo_array_count(a), (size_t)mlo_array_count(a), a->data)) {
        mlo_array_free(m, a);
        return NULL;
    }
    return a;
}
static mlo_array *mlo_tensor_load(mlo *m, const mlo_tensor *t) {
    return mlo_tensor_part(m, t, 0, t->n_dims);
}
/* Slice i along axis 0. */
static mlo_array *mlo_tensor_slice(mlo *m, const mlo_tensor *t, int64_t i) {
    if (t->n_dims < 1 || i >= t->dims[0]) {
        mlo_fail_at(m, MLO_E_SHAPE, t->name, "the tensor has no slice %lld", (long long)i);
        return NULL;
    }
    return mlo_tensor_part(m, t, i, t->n_dims - 1);
}

/* Elements [first, first + count) as doubles: any numeric type. */
static int mlo_tensor_doubles(
    mlo *m, const mlo_tensor *t, int64_t first, size_t count, double *to) {
    const mlo_dtype type = (mlo_dtype)t->data_type;
    uint64_t window[512];
    if (!mlo_tensor_is_numbers(t))
        return mlo_fail_at(m, MLO_E_TYPE, t->name, "%s is not a number", mlo_dtype_name(type));
    while (count) {
        size_t n = count < 512 ? count : 512;
        if (mlo_tensor_read(m, t, first, n, window)) return mlo_failed(m);
        mlo_to_doubles(type, window, n, to);
        first += (int64_t)n;
        count -= n;
        to += n;
    }
    return 0;
}
/* The one number that a constant is, if it is one. */
static int mlo_lone_number(mlo *m, const mlo_value *v, double *x) {
    return v && v->tensor && mlo_tensor_count(v->tensor) == 1 && mlo_tensor_is_numbers(v->tensor)
        && !mlo_tensor_doubles(m, v->tensor, 0, 1, x);
}

/* Element i of integers in host form, as int64. 0 when the type is no integer. */
static int mlo_to_ints(mlo_dtype t, const void *from, size_t n, int64_t *to) {
#define MLO_CASE(id, type)                                                       \
    case id:                                                                     \
        for (size_t i = 0; i < n; i++) to[i] = (int64_t)((const type *)from)[i]; \
        return 1
    switch (t) {
        MLO_CASE(MLO_INT64, int64_t);
        MLO_CASE(MLO_INT32, int32_t);
        MLO_CASE(MLO_INT16, int16_t);
        MLO_CASE(MLO_INT8, int8_t);
        MLO_CASE(MLO_INT4, int8_t);
        MLO_CASE(MLO_INT2, int8_t);
        MLO_CASE(MLO_UINT64, uint64_t);
        MLO_CASE(MLO_UINT32, uint32_t);
        MLO_CASE(MLO_UINT16, uint16_t);
        MLO_CASE(MLO_UINT8, uint8_t);
        MLO_CASE(MLO_UINT4, uint8_t);
        MLO_CASE(MLO_UINT2, uint8_t);
        MLO_CASE(MLO_BOOL, uint8_t);
    default: return 0;
    }
#undef MLO_CASE
}

/* A small list of integers (a shape, axes, a scalar) of any integer type, at most `max` (64 at
 * most): how many, or -1 when it is no such list (no failure recorded for a type or size that does not fit; one is
 * for bytes that cannot be read). */
static int mlo_tensor_ints(mlo *m, const mlo_tensor *t, int64_t *to, size_t max) {
    uint64_t window[64] = { 0 };
    int64_t n = t ? mlo_tensor_count(t) : -1;
    if ((uint64_t)n > max || !mlo_to_ints((mlo_dtype)t->data_type, window, 0, to)) return -1;
    if (mlo_tensor_read(m, t, 0, (size_t)n, window)) return -1;
    mlo_to_ints((mlo_dtype)t->data_type, window, (size_t)n, to);
    return (int)n;
}

/* ---- comparing ------------------------------------------------------------ */

static int mlo_lists_equal(const void *a, size_t n, const void *b, size_t k, size_t size) {
    return n == k && (!n || !memcmp(a, b, n * size));
}

/* Tensors of a type from the future: the bytes and numbers as they were given. */
static int mlo_unknown_same(mlo *ma, const mlo_tensor *a, mlo *mb, const mlo_tensor *b) {
    uint64_t n = a->source ? a->length : a->raw.n, at = 0;
    char x[512], y[sizeof x];
    if (n != (b->source ? b->length : b->raw.n)) return 0;
    for (size_t step; at < n; at += step) {
        step = n - at < sizeof x ? (size_t)(n - at) : sizeof x;
        if (mlo_tensor_raw(ma, a, at, x, step) || mlo_tensor_raw(mb, b, at, y, step)
            || memcmp(x, y, step))
            return 0;
    }
    return mlo_lists_equal(a->floats, a->n_floats, b->floats, b->n_floats, sizeof *a->floats)
        && mlo_lists_equal(a->int32s, a->n_int32s, b->int32s, b->n_int32s, sizeof *a->int32s)
        && mlo_lists_equal(a->int64s, a->n_int64s, b->int64s, b->n_int64s, sizeof *a->int64s)
        && mlo_lists_equal(a->doubles, a->n_doubles, b->doubles, b->n_doubles, sizeof *a->doubles)
        && mlo_lists_equal(a->uint64s, a->n_uint64s, b->uint64s, b->n_uint64s, sizeof *a->uint64s);
}

/* Do tensors of one type and shape have the same elements, bit for bit? Each is read through its
 * own handle, whatever the encoding. */
static int mlo_elements_same(mlo *ma, const mlo_tensor *a, mlo *mb, const mlo_tensor *b) {
    if (a->data_type == MLO_STRING) {
        if (a->n_strings != b->n_strings) return 0;
        for (size_t i = 0; i < a->n_strings; i++)
            if (!mlo_lists_equal(
                    a->strings[i].data, a->strings[i].n, b->strings[i].data, b->strings[i].n, 1))
                return 0;
        return 1;
    }
    unsigned bits = mlo_dtype_bits((mlo_dtype)a->data_type);
    if (!bits) return mlo_unknown_same(ma, a, mb, b);
    size_t size = bits < 8 ? 1 : bits / 8, step = MLO_WINDOW / 2 / size;
    int64_t count = mlo_tensor_count(a), at = 0;
    if (count < (int64_t)step) step = (size_t)count + 1;
    char *window = (char *)mlo_scratch(ma, 2 * step, size);
    int same = window != NULL;
    for (; same && at < count; at += (int64_t)step) {
        size_t n = count - at < (int64_t)step ? (size_t)(count - at) : step;
        same = !mlo_tensor_read(ma, a, at, n, window)
            && !mlo_tensor_read(mb, b, at, n, window + step * size)
            && !memcmp(window, window + step * size, n * size);
    }
    mlo_scratch_free(ma, window);
    return same;
}

/* Do they have one type and one shape, of any rank? */
static int mlo_tensor_alike(const mlo_tensor *a, const mlo_tensor *b) {
    return a->data_type == b->data_type
        && mlo_lists_equal(a->dims, a->n_dims, b->dims, b->n_dims, sizeof *a->dims);
}

/* 1 when type, shape and every element's bits agree (so NaN equals NaN, and 0 differs from -0),
 * whatever the encoding; else 0. A failure is recorded. */
static int mlo_tensor_equal(mlo *m, const mlo_tensor *a, const mlo_tensor *b) {
    if (a == b) return 1;
    if (!mlo_tensor_alike(a, b)) return 0;
    if (a->source && a->source == b->source && a->offset == b->offset && a->length == b->length)
        return 1;
    return mlo_elements_same(m, a, m, b);
}

/* Are all rows of a tensor, along its last axis, the same bits? A failure is recorded. */
static int mlo_tensor_rows_same(mlo *m, const mlo_tensor *t) {
    const size_t size = mlo_dtype_size((mlo_dtype)t->data_type);
    const int64_t count = mlo_tensor_count(t), width = t->n_dims ? t->dims[t->n_dims - 1] : 1;
    if (count < 1 || mlo_dtype_bits((mlo_dtype)t->data_type) != 8 * size) return 0;
    if (count == width) return 1;
    char *row = (char *)mlo_scratch(m, (size_t)width, 2 * size);
    int same = row && !mlo_tensor_read(m, t, 0, (size_t)width, row);
    for (int64_t at = width; same && at < count; at += width)
        same = !mlo_tensor_read(m, t, at, (size_t)width, row + (size_t)width * size)
            && !memcmp(row, row + (size_t)width * size, (size_t)width * size);
    mlo_scratch_free(m, row);
    return same;
}

/* A hash of type, shape and elements, equal for tensors that mlo_tensor_equal finds equal. Reads
 * it all: prefer a comparison where one will do. */
static uint64_t mlo_tensor_hash(mlo *m, const mlo_tensor *t) {
    uint64_t h = mlo_hash(t->dims ? (const void *)t->dims : "", t->n_dims * sizeof *t->dims)
        ^ (uint64_t)(uint32_t)t->data_type * 0x9E3779B97F4A7C15u;
    unsigned bits = mlo_dtype_bits((mlo_dtype)t->data_type);
    size_t size = bits < 8 ? 1 : bits / 8, step = MLO_WINDOW / size;
    int64_t count = mlo_tensor_count(t);
    for (size_t i = 0; t->data_type == MLO_STRING && i < t->n_strings; i++)
        h = (h ^ mlo_hash(t->strings[i].data, t->strings[i].n)) * 1099511628211u;
    if (count < (int64_t)step) step = (size_t)count + 1;
    char *window = bits ? (char *)mlo_scratch(m, step, size) : NULL;
    for (int64_t at = 0; window && at < count; at += (int64_t)step) {
        size_t n = count - at < (int64_t)step ? (size_t)(count - at) : step;
        if (mlo_tensor_read(m, t, at, n, window)) break;
        h = (h ^ mlo_hash(window, n * size)) * 1099511628211u;
    }
    mlo_scratch_free(m, window);
    return h;
}

/* ---- making --------------------------------------------------------------- */

/* A tensor with a copy of an array's elements, as raw data (2-bit and 4-bit types packed). NULL
 * when it fails. */
static mlo_tensor *mlo_tensor_from(mlo *m, const char *name, const mlo_array *a) {
    size_t count = (size_t)mlo_array_count(a);
    size_t bytes = (size_t)mlo_raw_bytes(a->dtype, (int64_t)count);
    size_t size = mlo_dtype_size(a->dtype);
    unsigned bits = mlo_dtype_bits(a->dtype);
    char *raw = (char *)mlo_alloc(m, bytes + 1, 1);
    if (!raw) return NULL;
    if (bits < 8)
        for (size_t i = 0, per = 8 / bits; i < count; i++)
            raw[i / per] = (char)((unsigned char)raw[i / per]
                | (((const unsigned char *)a->data)[i] & ((1u << bits) - 1)) << i % per * bits);
    else {
        if (bytes) memcpy(raw, a->data, bytes);
        mlo_little_endian(raw, count, size);
    }
    return mlo_tensor_new(m, name, a->dtype, a->dims, (size_t)a->rank, raw, bytes);
}

/* A list (rank 1) or, with count < 0, a scalar of int64. */
static mlo_tensor *mlo_tensor_of_ints(
    mlo *m, const char *name, const int64_t *ints, int64_t count) {
    mlo_array a = { name, MLO_INT64, count < 0 ? 0 : 1, { 0 }, NULL };
    a.dims[0] = count;
    a.data = (void *)(uintptr_t)ints;
    return mlo_tensor_from(m, name, &a);
}
static mlo_tensor *mlo_tensor_of_floats(
    mlo *m, const char *name, const float *floats, int64_t count) {
    mlo_array a = { name, MLO_FLOAT, count < 0 ? 0 : 1, { 0 }, NULL };
    a.dims[0] = count;
    a.data = (void *)(uintptr_t)floats;
    return mlo_tensor_from(m, name, &a);
}

/* ---- external data -------------------------------------------------------- */

/* A decimal number, whole. */
static int mlo_parse_u64(const char *s, uint64_t *to) {
    uint64_t v = 0;
    if (!s || !*s) return 0;
    for (; *s >= '0' && *s <= '9'; s++) {
        uint64_t digit = (uint64_t)(*s - '0');
        if (v > (UINT64_MAX - digit) / 10) return 0;
        v = v * 10 + digit;
    }
    *to = v;
    return !*s;
}

/* A name in its own folder: not absolute, no folder, no "..". The same names onnx and ONNX Runtime
 * accept. */
static int mlo_plain_name(const char *s) {
    return s && *s && !strpbrk(s, "/\\:") && !mlo_eq(s, ".") && !mlo_eq(s, "..");
}

/* Turns location EXTERNAL into source, offset and length, and checks the digest when there is one.
 * `user` is the folder (const char *). */
static int mlo_tensor_resolve(mlo *m, void *tensor, void *user) {
    mlo_tensor *t = (mlo_tensor *)tensor;
    const char *name = mlo_or_empty(t->name);
    const char *location = mlo_meta_get(t->external, t->n_external, "location");
    const char *digest = mlo_meta_get(t->meta, t->n_meta, mlo_key_digest);
    const char *offset = mlo_meta_get(t->external, t->n_external, "offset");
    const char *length = mlo_meta_get(t->external, t->n_external, "length");
    char now[40];
    if (t->location != 1 || t->source) return 0;
    if (!mlo_plain_name(location))
        return mlo_fail_at(m, MLO_E_DATA, name,
            "external data lies in '%s'; a plain file name is needed: put the file beside the "
            "model",
            mlo_or_empty(location));
    if (mlo_tensor_count(t) < 0 || !mlo_dtype_bits((mlo_dtype)t->data_type))
        return mlo_fail_at(m, MLO_E_TYPE, name, "a %s tensor of this shape cannot be external",
            mlo_dtype_name((mlo_dtype)t->data_type));
    t->length = mlo_tensor_bytes(t);
    if ((offset && !mlo_parse_u64(offset, &t->offset))
        || (length && !mlo_parse_u64(length, &t->length)))
        return mlo_fail_at(m, MLO_E_FORMAT, name,
            "external offset '%s' or length '%s' is no number", mlo_or_empty(offset),
            mlo_or_empty(length));
    if (!(t->source = mlo_source_open(m, (const char *)user, location))) return mlo_failed(m);
    if (t->offset > t->source->size || t->length > t->source->size - t->offset)
        return mlo_fail_at(m, MLO_E_DATA, name,
            "bytes %llu + %llu are beyond the end of '%s' (%llu bytes)",
            (unsigned long long)t->offset, (unsigned long long)t->length, t->source->path,
            (unsigned long long)t->source->size);
    if (digest) {
        if (mlo_source_digest(m, t->source, t->offset, t->length, now)) return mlo_failed(m);
        if (!mlo_eq(now, digest))
            return mlo_fail_at(m, MLO_E_DATA, name,
                "'%s' changed since this model was read from it (digest %s, now %s); read it again",
                t->source->path, digest, now);
        size_t n = 0;
        for (size_t i = 0; i < t->n_meta; i++)
            if (!mlo_eq(t->meta[i].key, mlo_key_digest)) t->meta[n++] = t->meta[i];
        t->n_meta = n;
    }
    t->raw.data = NULL;
    t->raw.n = 0;
    t->external = NULL;
    t->n_external = 0;
    t->location = 0;
    t->has &= ~MLO_HAS(14);
    return 0;
}
