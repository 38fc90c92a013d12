/* array: dense arrays in memory: converting elements, walking with strides, broadcasting.
 *
 * in:  arrays (mlo.h).
 * out: arrays. The operator families (math.c, shape.c, ..) access elements only through this file.
 *
 * invariant: arithmetic happens in four core types: float (also for 16 and 8-bit floats), double,
 *     int64 (all integers but the widest; bool) and uint64. Results are converted back with
 *     wrap-around, so int8..int32 behave as in C: exact, modulo 2^n.
 * example: z = x + y with broadcasting: mlo_walk w = mlo_walk_of(z); mlo_walk_add(&w, x);
 *     mlo_walk_add(&w, y); mlo_walk_run(&w, add, ...).
 * cost: one pass over the output; the inner loop runs over merged dimensions, so equal shapes cost
 *     one plain loop.
 */
/* ---- small floats --------------------------------------------------------- */

/* A float format. Codes are without the sign bit. */
typedef struct {
    int exponent; /* bits */
    int fraction; /* bits */
    int bias; /* of the exponent */
    int max; /* the largest finite code */
    int inf; /* its code, -1: has none */
    int nan; /* its code, -1: has none */
    /* 1: what does not fit becomes the largest value (Cast's default for 8 bits and less); 0:
     * infinity */
    int saturate;
    int negative_zero; /* 1: has one */
} mlo_float_format;

static int mlo_small_format(mlo_dtype t, mlo_float_format *f) {
    /* IEEE 754; bfloat16; OCP 8-bit formats; onnx/technical-details/float8 */
    static const struct {
        mlo_dtype t;
        mlo_float_format f;
    } formats[] = { { MLO_FLOAT16, { 5, 10, 15, 0x7bff, 0x7c00, 0x7e00, 0, 1 } },
        { MLO_BFLOAT16, { 8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, 0, 1 } },
        { MLO_FLOAT8E4M3FN, { 4, 3, 7, 0x7e, -1, 0x7f, 1, 1 } },
        { MLO_FLOAT8E5M2, { 5, 2, 15, 0x7b, 0x7c, 0x7e, 1, 1 } },
        { MLO_FLOAT8E4M3FNUZ, { 4, 3, 8, 0x7f, -1, 0x80, 1, 0 } },
        { MLO_FLOAT8E5M2FNUZ, { 5, 2, 16, 0x7f, -1, 0x80, 1, 0 } },
        { MLO_FLOAT4E2M1, { 2, 1, 1, 7, -1, -1, 1, 1 } } };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].t == t) {
            *f = formats[i].f;
            return 1;
        }
    return 0;
}

/* v rounded to nearest, ties to even, as a code of the format. */
static unsigned mlo_small_encode(const mlo_float_format *f, double v) {
    unsigned sign = signbit(v) ? 1u << (f->exponent + f->fraction) : 0;
    if (v != v) return f->nan < 0 ? 0 : (unsigned)f->nan | (f->negative_zero ? sign : 0);
    double a = fabs(v);
    int e, code;
    if (a > 1e300 || a == 0)
        code = a == 0 ? 0 : INT_MAX;
    else {
        frexp(a, &e);
        if (--e < 1 - f->bias) e = 1 - f->bias;
        double q = rint(ldexp(a, f->fraction - e));
        /* a subnormal's exponent field is 0 */
        code = e + f->bias > 1 << f->exponent ? INT_MAX
                                              : (int)q + ((e + f->bias - 1) << f->fraction);
    }
    if (code > f->max) code = f->saturate ? f->max : f->inf >= 0 ? f->inf : f->nan;
    if (!code && !f->negative_zero) sign = 0;
    return (unsigned)code | sign;
}

/* ---- converting ----------------------------------------------------------- */

/* The type that values of type t are computed in. */
static mlo_dtype mlo_core_type(mlo_dtype t) {
    return t == MLO_DOUBLE || t == MLO_UINT64 ? t : mlo_dtype_is_float(t) ? MLO_FLOAT : MLO_INT64;
}

enum { MLO_CHUNK = 256 };

static void mlo_store_double(mlo_dtype t, void *to, const double *from, size_t n) {
    mlo_float_format f;
    if (t == MLO_FLOAT)
        for (size_t i = 0; i < n; i++) ((float *)to)[i] = (float)from[i];
    else if (t == MLO_DOUBLE)
        memcpy(to, from, n * sizeof *from);
    else if (mlo_small_format(t, &f))
        for (size_t i = 0; i < n; i++) {
            unsigned code = mlo_small_encode(&f, from[i]);
            if (mlo_dtype_size(t) == 2)
                ((uint16_t *)to)[i] = (uint16_t)code;
            else
                ((uint8_t *)to)[i] = (uint8_t)code;
        }
}

/* The low bits of v as a signed number of `bits` bits. */
static int8_t mlo_wrap(int64_t v, int bits) {
    int low = (int)((uint64_t)v & ((1u << bits) - 1));
    return (int8_t)(low >= 1 << (bits - 1) ? low - (1 << bits) : low);
}

static void mlo_store_int(mlo_dtype t, void *to, const int64_t *from, size_t n) {
    switch (t) {
    case MLO_BOOL:
        for (size_t i = 0; i < n; i++) ((uint8_t *)to)[i] = from[i] != 0;
        break;
    case MLO_INT4:
    case MLO_INT2:
        for (size_t i = 0; i < n; i++) ((int8_t *)to)[i] = mlo_wrap(from[i], t == MLO_INT4 ? 4 : 2);
        break;
    case MLO_UINT4:
    case MLO_UINT2:
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = (uint8_t)((uint64_t)from[i] & (t == MLO_UINT4 ? 15u : 3u));
        break;
#define MLO_X(tag, type)                                                \
    case tag:                                                           \
        for (size_t i = 0; i < n; i++) ((type *)to)[i] = (type)from[i]; \
        break;
        MLO_X(MLO_INT8, int8_t)
        MLO_X(MLO_UINT8, uint8_t)
        MLO_X(MLO_INT16, int16_t)
        MLO_X(MLO_UINT16, uint16_t)
        MLO_X(MLO_INT32, int32_t)
        MLO_X(MLO_UINT32, uint32_t)
        MLO_X(MLO_INT64, int64_t)
        MLO_X(MLO_UINT64, uint64_t)
#undef MLO_X
    default: break;
    }
}

/* Towards zero; what lies outside of int64 (uint64 when asked) goes to its end, NaN to 0: defined,
 * where C is not. */
static int64_t mlo_double_to_int(double v, mlo_dtype to) {
    if (v != v) return 0;
    if (to == MLO_UINT64 && v >= 9223372036854775808.0)
        return (int64_t)(v >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)v);
    return v >= 9223372036854775808.0 ? INT64_MAX
        : v < -9223372036854775808.0  ? INT64_MIN
                                      : (int64_t)v;
}

/* Of weights there are many: their way to floats is a short one. */
static void mlo_bytes_to_floats(const int8_t *MLO_RESTRICT from, float *MLO_RESTRICT to, size_t n) {
    size_t i = 0;
    for (; i + MLO_LANES <= n; i += MLO_LANES)
        for (size_t k = 0; k < MLO_LANES; k++) to[i + k] = from[i + k];
    for (; i < n; i++) to[i] = from[i];
}

/* n elements of one type to another, as Cast does: floats round to nearest even, integers wrap,
 * bool is "not zero". */
static void mlo_convert(mlo_dtype to, void *out, mlo_dtype from, const void *in, size_t n) {
    size_t os = mlo_dtype_size(to), is = mlo_dtype_size(from);
    if (to == from) {
        if (n) memcpy(out, in, n * os);
        return;
    }
    if (from == MLO_INT8 && to == MLO_FLOAT) {
        mlo_bytes_to_floats((const int8_t *)in, (float *)out, n);
        return;
    }
    double d[MLO_CHUNK];
    int64_t v[MLO_CHUNK];
    for (size_t at = 0; at < n; at += MLO_CHUNK) {
        size_t k = n - at < MLO_CHUNK ? n - at : MLO_CHUNK;
        void *o = (char *)out + at * os;
        const void *p = (const char *)in + at * is;
        if (mlo_dtype_is_float(from)) {
            mlo_to_doubles(from, p, k, d);
            if (mlo_dtype_is_float(to)) {
                mlo_store_double(to, o, d, k);
                continue;
            }
            for (size_t i = 0; i < k; i++)
                v[i] = to == MLO_BOOL ? d[i] != 0 : mlo_double_to_int(d[i], to);
            mlo_store_int(to, o, v, k);
        } else {
            mlo_to_ints(from, p, k, v);
            if (from == MLO_BOOL)
                for (size_t i = 0; i < k; i++) v[i] = v[i] != 0;
            if (!mlo_dtype_is_float(to)) {
                mlo_store_int(to, o, v, k);
                continue;
            }
            if (to == MLO_FLOAT) {
                for (size_t i = 0; i < k; i++)
                    ((float *)o)[i] = from == MLO_UINT64 ? (float)(uint64_t)v[i] : (float)v[i];
                continue;
            }
            for (size_t i = 0; i < k; i++)
                d[i] = from == MLO_UINT64 ? (double)(uint64_t)v[i] : (double)v[i];
            mlo_store_double(to, o, d, k);
        }
    }
}

static mlo_array *mlo_array_copy(mlo *m, const mlo_array *a) {
    mlo_array *copy = mlo_array_new(m, a->dtype, a->rank, a->dims);
    if (copy) memcpy(copy->data, a->data, (size_t)mlo_array_count(a) * mlo_dtype_size(a->dtype));
    return copy;
}

/* *to := a, with a copy of its data that stays as long as the handle. */
static int mlo_array_keep(mlo *m, const mlo_array *a, mlo_array *to) {
    size_t bytes = (size_t)mlo_array_count(a) * mlo_dtype_size(a->dtype);
    *to = *a;
    if ((to->data = mlo_alloc(m, bytes + 1, 1)) != NULL && bytes) memcpy(to->data, a->data, bytes);
    return mlo_failed(m);
}

/* The same elements in two types. */
typedef struct {
    const mlo_array *from;
    mlo_array *to;
    int pieces;
} mlo_converted;

static void mlo_converted_piece(void *of, int piece) {
    const mlo_converted *w = (const mlo_converted *)of;
    const mlo_array *a = w->from, *b = w->to;
    const int64_t n = mlo_array_count(a);
    const size_t i = (size_t)mlo_piece_begins(n, piece, w->pieces);
    const size_t end = (size_t)mlo_piece_begins(n, piece + 1, w->pieces);
    mlo_convert(b->dtype, (char *)b->data + i * mlo_dtype_size(b->dtype), a->dtype,
        (const char *)a->data + i * mlo_dtype_size(a->dtype), end - i);
}

/* a in type t: a itself when it has it, else a new array, which the caller frees when it is not a.
 * NULL without memory. */
static const mlo_array *mlo_as(mlo *m, const mlo_array *a, mlo_dtype t) {
    if (a->dtype == t) return a;
    mlo_array *b = mlo_array_new(m, t, a->rank, a->dims);
    if (!b) return NULL;
    mlo_converted w = { a, b, mlo_pieces(m, INT64_MAX, 2.0 * (double)mlo_array_count(a)) };
    mlo_pieces_do(m, mlo_converted_piece, &w, w.pieces);
    return b;
}
/* What mlo_as made of an array, which may be that array, or NULL. */
static void mlo_as_free(mlo *m, const mlo_array *a, const mlo_array *of) {
    /* mlo_as made it, so it may be freed */
    union {
        const mlo_array *from;
        mlo_array *to;
    } cast = { a };
    if (a != of) mlo_array_free(m, cast.to);
}

/* ---- walking -------------------------------------------------------------- */

enum { MLO_WALK_TERMS = 3 };

/* A walk over `dims` in row-major order, with terms that move along by their own steps. */
typedef struct {
    int rank;
    int n; /* terms */
    int64_t dims[MLO_MAX_RANK];
    int64_t step[MLO_WALK_TERMS][MLO_MAX_RANK]; /* elements; 0 where a term broadcasts */
} mlo_walk;

static mlo_walk mlo_walk_over(int rank, const int64_t *dims) {
    mlo_walk w;
    memset(&w, 0, sizeof w);
    w.rank = rank;
    for (int i = 0; i < rank; i++) w.dims[i] = dims[i];
    return w;
}
/* Row-major steps of a shape. */
static void mlo_steps(int rank, const int64_t *dims, int64_t *step) {
    int64_t s = 1;
    for (int i = rank; i--;) {
        step[i] = s;
        s *= dims[i];
    }
}
/* Adds a term of that shape, broadcast to the walk's (which the caller has checked). */
static void mlo_walk_add(mlo_walk *w, int rank, const int64_t *dims) {
    int64_t s = 1, *step = w->step[w->n++];
    for (int i = w->rank, k = rank; i--;) {
        int64_t d = --k >= 0 ? dims[k] : 1;
        step[i] = d == 1 ? 0 : s;
        s *= d;
    }
}

/* Drops dimensions of 1 and merges neighbours that all terms cross evenly. */
static void mlo_walk_merge(mlo_walk *w) {
    int r = 0;
    for (int i = 0; i < w->rank; i++) {
        if (w->dims[i] == 1) continue;
        int merge = r > 0;
        for (int k = 0; k < w->n; k++)
            if (r && w->step[k][r - 1] != w->step[k][i] * w->dims[i]) merge = 0;
        if (merge)
            w->dims[--r] *= w->dims[i];
        else
            w->dims[r] = w->dims[i];
        for (int k = 0; k < w->n; k++) w->step[k][r] = w->step[k][i];
        r++;
    }
    w->rank = r;
}

/* out, terms: n elements; term k advances by step[k] elements. */
typedef void (*mlo_loop)(
    void *out, const void *const *in, const int64_t *step, int64_t n, const double *arg);

/* Runs the loop over the whole walk. Element sizes in bytes; the output is dense. */
static void mlo_walk_run(mlo_walk *w, mlo_loop loop, void *out, size_t out_size,
    const void *const *in, const size_t *in_size, const double *arg) {
    int64_t index[MLO_MAX_RANK] = { 0 }, step[MLO_WALK_TERMS] = { 0 };
    const char *at[MLO_WALK_TERMS] = { 0 };
    const void *p[MLO_WALK_TERMS] = { 0 };
    for (int i = 0; i < w->rank; i++)
        if (!w->dims[i]) return;
    mlo_walk_merge(w);
    int last = w->rank - 1;
    int64_t n = last < 0 ? 1 : w->dims[last];
    for (int k = 0; k < w->n; k++) {
        at[k] = (const char *)in[k];
        step[k] = last < 0 ? 0 : w->step[k][last];
    }
    for (char *o = (char *)out;; o += (size_t)n * out_size) {
        for (int k = 0; k < w->n; k++) p[k] = at[k];
        loop(o, p, step, n, arg);
        int i = last - 1;
        for (; i >= 0; i--) {
            for (int k = 0; k < w->n; k++) at[k] += w->step[k][i] * (int64_t)in_size[k];
            if (++index[i] < w->dims[i]) break;
            for (int k = 0; k < w->n; k++)
                at[k] -= w->step[k][i] * (int64_t)in_size[k] * w->dims[i];
            index[i] = 0;
        }
        if (i < 0) return;
    }
}

#define MLO_COPY_LOOP(name, T)                                                                 \
    static void name(                                                                          \
        void *out, const void *const *in, const int64_t *step, int64_t n, const double *arg) { \
        T *z = (T *)out;                                                                       \
        const T *x = (const T *)in[0];                                                         \
        int64_t s = step[0];                                                                   \
        (void)arg;                                                                             \
        if (s == 1)                                                                            \
            memcpy(z, x, (size_t)n * sizeof *z);                                               \
        else                                                                                   \
            for (int64_t i = 0; i < n; i++) z[i] = x[i * s];                                   \
    }
MLO_COPY_LOOP(mlo_copy1, uint8_t)
MLO_COPY_LOOP(mlo_copy2, uint16_t)
MLO_COPY_LOOP(mlo_copy4, uint32_t)
MLO_COPY_LOOP(mlo_copy8, uint64_t)

/* n pieces of `size` bytes, one behind another in `in`, `step` apart in `out`. */
static void mlo_copy_pieces(char *out, size_t step, const char *in, size_t size, size_t n) {
    for (size_t i = 0; size != sizeof(float) && i < n; i++)
        memcpy(out + i * step, in + i * size, size);
    for (size_t i = 0; size == sizeof(float) && i < n; i++)
        memcpy(out + i * step, in + i * sizeof(float), sizeof(float));
}

/* out [rows, n] := in transposed: neighbours of a column lie beside each other there, those of a row `step` apart. A
 * cache line is read at once. */
enum { MLO_STRIP = 16 };
#define MLO_TRANSPOSE_LOOP(name, T)                                                      \
    static void name(void *out, const void *in, int64_t step, int64_t rows, int64_t n) { \
        for (int64_t first = 0; first < rows; first += MLO_STRIP) {                      \
            const int64_t here = rows - first < MLO_STRIP ? rows - first : MLO_STRIP;    \
            for (int64_t i = 0; i < n; i++) {                                            \
                const T *x = (const T *)in + i * step + first;                           \
                T *z = (T *)out + first * n + i;                                         \
                for (int64_t r = 0; r < here; r++) z[r * n] = x[r];                      \
            }                                                                            \
        }                                                                                \
    }
MLO_TRANSPOSE_LOOP(mlo_transpose1, uint8_t)
MLO_TRANSPOSE_LOOP(mlo_transpose2, uint16_t)
MLO_TRANSPOSE_LOOP(mlo_transpose4, uint32_t)
MLO_TRANSPOSE_LOOP(mlo_transpose8, uint64_t)

/* Is what is copied a transposed matrix, or several of them one after another? The walk is merged. */
static int mlo_walk_transposes(const mlo_walk *w) {
    const int last = w->rank - 1;
    return last >= 1 && w->step[0][last - 1] == 1 && w->step[0][last] != 1 && w->dims[last] > 0;
}
static void mlo_copy_transposed(const mlo_walk *w, char *out, const char *in, size_t size) {
    const int last = w->rank - 1;
    const int64_t rows = w->dims[last - 1], n = w->dims[last];
    int64_t matrices = 1;
    for (int i = 0; i < last - 1; i++) matrices *= w->dims[i];
    for (int64_t k = 0; k < matrices; k++, out += rows * n * (int64_t)size) {
        int64_t at = 0, left = k;
        for (int i = last - 1; i--; left /= w->dims[i]) at += left % w->dims[i] * w->step[0][i];
        (size == 1          ? mlo_transpose1
                : size == 2 ? mlo_transpose2
                : size == 4
                ? mlo_transpose4
                : mlo_transpose8)(out, in + at * (int64_t)size, w->step[0][last], rows, n);
    }
}

/* out (dense, of shape dims) := elements of `in`, from element `start`, by steps: transposes,
 * slices, expands, splits, tiles. */
static void mlo_copy_strided(void *out, const void *in, size_t size, int rank, const int64_t *dims,
    const int64_t *step, int64_t start) {
    mlo_walk w = mlo_walk_over(rank, dims);
    w.n = 1;
    for (int i = 0; i < rank; i++) w.step[0][i] = step[i];
    const void *p[1];
    p[0] = (const char *)in + start * (int64_t)size;
    mlo_walk_merge(&w);
    if (mlo_walk_transposes(&w)) {
        mlo_copy_transposed(&w, (char *)out, (const char *)p[0], size);
        return;
    }
    mlo_walk_run(&w,
        size == 1       ? mlo_copy1
            : size == 2 ? mlo_copy2
            : size == 4 ? mlo_copy4
                        : mlo_copy8,
        out, size, p, &size, NULL);
}

/* ---- texts for messages --------------------------------------------------- */

/* "[1,32,?]" in the handle's strings; for messages only. */
static const char *mlo_dims_text(mlo *m, int rank, const int64_t *dims) {
    char text[200];
    int n = snprintf(text, sizeof text, "[");
    if (rank < 0) return "of unknown rank";
    for (int i = 0; i < rank; i++)
        n += dims[i] < 0 ? snprintf(text + n, sizeof text - (size_t)n, "%s?", i ? "," : "")
                         : snprintf(text + n, sizeof text - (size_t)n, "%s%lld", i ? "," : "",
                               (long long)dims[i]);
    snprintf(text + n, sizeof text - (size_t)n, "]");
    const char *s = mlo_intern(m, text);
    return mlo_or_empty(s);
}

/* ---- what shape rules and runs share -------------------------------------- */

/* a * b of dimensions; -1 (unknown) when one is, or when there is no such tensor. */
static int64_t mlo_times(int64_t a, int64_t b) {
    return a < 0 || b < 0 || (a && b > INT64_MAX / a) ? -1 : a * b;
}

/* The form of input i; rank -1 when it is absent or unknown. */
static mlo_form mlo_form_in(const mlo_shapes *s, size_t i) {
    mlo_form unknown = { MLO_UNDEFINED, -1, { 0 } };
    return i < s->n_in ? s->in[i] : unknown;
}
static int mlo_present(const mlo_shapes *s, size_t i) { return mlo_has_input(s->node, i); }

/* Is an attribute this text? `otherwise` when there is none. */
static int mlo_string_is(const mlo_node *n, const char *name, const char *text, int otherwise) {
    const mlo_attr *a = mlo_attr_of(n, name);
    return a ? a->s.n == strlen(text) && !memcmp(a->s.data, text, a->s.n) : otherwise;
}
/* Which of the texts an attribute is; the first where there is none, -1 where it is another. */
static int mlo_which_text(
    const mlo_node *n, const char *name, const char *const *texts, int count) {
    for (int i = 0; i < count; i++)
        if (mlo_string_is(n, name, texts[i], !i)) return i;
    return -1;
}

/* axis in [-rank, rank) to [0, rank). */
static int mlo_axis(const mlo_shapes *s, int64_t axis, int rank, int *out) {
    *out = 0;
    if (axis < -rank || axis >= rank)
        return mlo_fail(
            s->m, MLO_E_SHAPE, s->node, "axis %lld is outside of rank %d", (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return 0;
}

enum { MLO_MAX_LIST = 64, MLO_ABSENT = -1, MLO_LATER = -2 };
#define MLO_MAX_DIM ((int64_t)1 << 40) /* sums and products of a few sizes then fit int64 */

/* A list of integers that older opsets give as an attribute (NULL: never) and newer ones as input
 * i (-1: never). Returns its length, MLO_ABSENT when neither is there, MLO_LATER when the input's
 * value is not known yet. Elements may be MLO_UNKNOWN. */
static int mlo_ints(const mlo_shapes *s, const char *attr, int input, int64_t *list) {
    const mlo_attr *a = attr ? mlo_attr_of(s->node, attr) : NULL;
    if (a) {
        if (a->n_ints > MLO_MAX_LIST) {
            mlo_fail(s->m, MLO_E_SHAPE, s->node, "%s has %zu elements, at most %d are supported",
                attr, a->n_ints, MLO_MAX_LIST);
            return MLO_LATER;
        }
        for (size_t i = 0; i < a->n_ints; i++) list[i] = a->ints[i];
        if (!a->n_ints && a->type == MLO_ATTR_INT) {
            list[0] = a->i;
            return 1;
        }
        return (int)a->n_ints;
    }
    if (input < 0 || !mlo_present(s, (size_t)input)) return MLO_ABSENT;
    const mlo_array *v = mlo_shape_value(s, (size_t)input);
    if (!v) return MLO_LATER;
    int64_t n = mlo_array_count(v);
    if (n > MLO_MAX_LIST || v->rank > 1 || mlo_core_type(v->dtype) != MLO_INT64) {
        mlo_fail(s->m, MLO_E_SHAPE, s->node, "input %d, %s %s, is not a short list of integers",
            input, mlo_dtype_name(v->dtype), mlo_dims_text(s->m, v->rank, v->dims));
        return MLO_LATER;
    }
    mlo_convert(MLO_INT64, list, v->dtype, v->data, (size_t)n);
    return (int)n;
}
static int mlo_ints_known(const int64_t *list, int n) {
    for (int i = 0; i < n; i++)
        if (list[i] == MLO_UNKNOWN) return 0;
    return n >= 0;
}

/* A set of axes as flags. Returns 1 when known, 0 when not yet (or failed). `all`: what absence
 * means. */
static int mlo_axes(
    const mlo_shapes *s, const char *attr, int input, int rank, int all, int *flag) {
    int64_t list[MLO_MAX_LIST];
    int n = mlo_ints(s, attr, input, list);
    for (int i = 0; i < MLO_MAX_RANK; i++) flag[i] = n == MLO_ABSENT ? all : 0;
    if (n == MLO_LATER || (n > 0 && !mlo_ints_known(list, n))) return 0;
    for (int i = 0, k; i < n; i++) {
        if (mlo_axis(s, list[i], rank, &k)) return 0;
        flag[k] = 1;
    }
    if (!n && all)
        for (int i = 0; i < MLO_MAX_RANK; i++) flag[i] = 1;
    return 1;
}

/* dims := the broadcast of dims and b's. -1 (unknown) with k > 1 gives k: whatever it is, it must
 * be 1 or k. */
static int mlo_broadcast(const mlo_shapes *s, mlo_form *a, const mlo_form *b) {
    if (a->rank < 0 || b->rank < 0) {
        a->rank = -1;
        return 0;
    }
    mlo_form r = *a;
    r.rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= r.rank; i++) {
        int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
        int64_t y = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (x > 1 && y > 1 && x != y)
            return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                "shapes %s and %s do not broadcast: %lld against %lld",
                mlo_dims_text(s->m, a->rank, a->dims), mlo_dims_text(s->m, b->rank, b->dims),
                (long long)x, (long long)y);
        if ((x == 0 && y > 1) || (y == 0 && x > 1))
            return mlo_fail(s->m, MLO_E_SHAPE, s->node, "dimensions %lld and %lld do not broadcast",
                (long long)x, (long long)y);
        r.dims[r.rank - i] = x == 1 ? y : y == 1 || y < 0 ? x : x < 0 ? y : x;
    }
    *a = r;
    return 0;
}

/* Do two forms of one value contradict each other, as far as both are known? */
static int mlo_forms_differ(const mlo_form *a, const mlo_form *b) {
    if (a->dtype && b->dtype && a->dtype != b->dtype) return 1;
    if (a->rank < 0 || b->rank < 0) return 0;
    if (a->rank != b->rank) return 1;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i]) return 1;
    return 0;
}

/* A value is what the model declares it to be, or nothing goes on: one of the two is not what its
 * author meant. */
static int mlo_as_declared(
    mlo *m, const mlo_node *n, const char *name, const mlo_form *said, const mlo_form *is) {
    if (!mlo_forms_differ(said, is)) return 0;
    int type = said->dtype && is->dtype && said->dtype != is->dtype;
    return mlo_fail(m, type ? MLO_E_TYPE : MLO_E_SHAPE, n,
        "'%s' is declared as %s, but is %s; correct or remove its declaration", name,
        type ? mlo_dtype_name(said->dtype) : mlo_dims_text(m, said->rank, said->dims),
        type ? mlo_dtype_name(is->dtype) : mlo_dims_text(m, is->rank, is->dims));
}

/* Both element types, when known, must agree. */
static int mlo_same_type(const mlo_shapes *s, size_t i, size_t k) {
    mlo_dtype a = mlo_form_in(s, i).dtype, b = mlo_form_in(s, k).dtype;
    if (!a || !b || a == b) return 0;
    return mlo_fail(s->m, MLO_E_TYPE, s->node,
        "input %zu is %s but input %zu is %s; they must have one type", i, mlo_dtype_name(a), k,
        mlo_dtype_name(b));
}

/* The usual rule: output 0 is as input 0. */
static int mlo_shape_same(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    return 0;
}

static int mlo_need_inputs(const mlo_call *c, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (i >= c->n_in || !c->in[i])
            return mlo_fail(
                c->m, MLO_E_GRAPH, c->node, "has no input %zu; it takes at least %zu", i, n);
    return 0;
}
