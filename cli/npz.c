/* npz: NumPy's archives: a zip file of .npy files.
 *
 * in:  bytes of a file (hostile: nothing in them is believed before it is checked).
 * out: mlo_arrays; and back: a file.
 *
 * Formats: PKWARE APPNOTE 6.3 (central directory, local headers, zip64 sizes, methods 0 and 8);
 * NumPy's NEP 1 (.npy versions 1, 2, 3).
 *
 * invariant: arrays are row-major, little-endian on disk and in memory; Fortran order is transposed
 *     when it is read. Every size is bounded by what the archive can hold before memory is
 *     allocated for it (deflate gives at most 1032 bytes for one).
 * example: cli_npz z; cli_npz_read(c, "x.npz", &z); mlo_calibrate(m, z.array, z.n);
 * cost: the bytes; the file is read whole.
 */
typedef struct {
    mlo_array *array;
    size_t n;
    void **block;
    size_t n_block;
} cli_npz;

static const struct {
    const char *descr;
    mlo_dtype type;
    size_t size;
} cli_npy_types[] = { { "|b1", MLO_BOOL, 1 }, { "|i1", MLO_INT8, 1 }, { "|u1", MLO_UINT8, 1 },
    { "<i2", MLO_INT16, 2 }, { "<u2", MLO_UINT16, 2 }, { "<i4", MLO_INT32, 4 },
    { "<u4", MLO_UINT32, 4 }, { "<i8", MLO_INT64, 8 }, { "<u8", MLO_UINT64, 8 },
    { "<f2", MLO_FLOAT16, 2 }, { "<f4", MLO_FLOAT, 4 }, { "<f8", MLO_DOUBLE, 8 } };
enum { CLI_NPY_TYPES = sizeof cli_npy_types / sizeof *cli_npy_types };

static int cli_npy_type(mlo_dtype t) {
    for (int i = 0; i < CLI_NPY_TYPES; i++)
        if (cli_npy_types[i].type == t) return i;
    return -1;
}

static size_t cli_count(const mlo_array *a) {
    size_t n = 1;
    for (int i = 0; i < a->rank; i++) n *= (size_t)a->dims[i];
    return n;
}
static size_t cli_array_bytes(const mlo_array *a) {
    int t = cli_npy_type(a->dtype);
    return t < 0 ? 0 : cli_count(a) * cli_npy_types[t].size;
}

static void cli_npz_free(cli_npz *z) {
    for (size_t i = 0; i < z->n_block; i++) free(z->block[i]);
    free(z->block);
    free(z->array);
    memset(z, 0, sizeof *z);
}

/* Memory that lives as long as the archive. */
static void *cli_npz_alloc(cli *c, cli_npz *z, size_t n) {
    void **list = (void **)realloc(z->block, (z->n_block + 1) * sizeof *list),
         *p = n ? calloc(n, 1) : calloc(1, 1);
    if (list) z->block = list;
    if (!list || !p) {
        free(p);
        cli_fail(c, MLO_E_MEMORY, NULL, "no memory for %zu bytes", n);
        return NULL;
    }
    return z->block[z->n_block++] = p;
}

static mlo_array *cli_npz_add(
    cli *c, cli_npz *z, const char *name, mlo_dtype type, int rank, const int64_t *dims) {
    mlo_array *list = (mlo_array *)realloc(z->array, (z->n + 1) * sizeof *list), *a;
    int t = cli_npy_type(type);
    size_t n = t < 0 ? 0 : cli_npy_types[t].size;
    if (list) z->array = list;
    char *copy = list ? (char *)cli_npz_alloc(c, z, strlen(name) + 1) : NULL;
    if (!copy) {
        cli_fail(c, MLO_E_MEMORY, name, "no memory");
        return NULL;
    }
    strcpy(copy, name);
    a = &list[z->n];
    memset(a, 0, sizeof *a);
    a->name = copy;
    a->dtype = type;
    a->rank = rank;
    for (int i = 0; i < rank; i++) {
        a->dims[i] = dims[i];
        if (dims[i] && n > SIZE_MAX / 2 / (size_t)dims[i]) {
            cli_fail(c, MLO_E_FORMAT, name, "the shape is too large");
            return NULL;
        }
        n *= (size_t)dims[i];
    }
    if (!(a->data = cli_npz_alloc(c, z, n))) return NULL;
    z->n++;
    return a;
}

static const mlo_array *cli_npz_find(const cli_npz *z, const char *name) {
    for (size_t i = 0; i < z->n; i++)
        if (!strcmp(z->array[i].name, name)) return &z->array[i];
    return NULL;
}

/* ---- .npy ----------------------------------------------------------------- */

/* The value of a key in the header, which is a Python dict: {'descr': '<f4', 'fortran_order':
 * False, 'shape': (1, 32), } */
static const char *cli_npy_key(const char *header, const char *key) {
    const char *p = strstr(header, key);
    size_t n = strlen(key);
    if (!p || p == header || !strchr("'\"", p[-1]) || !p[n] || !strchr("'\"", p[n])) return NULL;
    p += n + 1;
    while (*p == ' ' || *p == ':') p++;
    return p;
}

static int cli_npy_shape(const char *p, int64_t *dims, int *rank) {
    *rank = 0;
    if (!p || *p++ != '(') return 0;
    for (;;) {
        while (*p == ' ' || *p == ',') p++;
        if (*p == ')') return 1;
        if (*p < '0' || *p > '9' || *rank == MLO_MAX_RANK) return 0;
        int64_t v = 0;
        for (; *p >= '0' && *p <= '9'; p++) {
            if (v > INT64_MAX / 16) return 0;
            v = v * 10 + (*p - '0');
        }
        if (*p == 'L') p++;
        dims[(*rank)++] = v;
    }
}

/* Column-major to row-major: the last index runs fastest. */
static void cli_npy_turn(mlo_array *a, const char *from, size_t size) {
    int64_t at[MLO_MAX_RANK] = { 0 };
    for (size_t i = 0, n = cli_count(a); i < n; i++) {
        size_t source = 0;
        for (int d = a->rank; d--;) source = source * (size_t)a->dims[d] + (size_t)at[d];
        memcpy((char *)a->data + i * size, from + source * size, size);
        for (int d = a->rank; d-- && ++at[d] == a->dims[d];) at[d] = 0;
    }
}

static int cli_npy_parse(cli *c, cli_npz *z, const char *name, const unsigned char *p, size_t n) {
    size_t head = 10, length;
    int64_t dims[MLO_MAX_RANK];
    int rank = 0, type = 0;
    if (n < 12 || memcmp(p, "\x93NUMPY", 6) || p[6] < 1 || p[6] > 3)
        return cli_fail(c, MLO_E_FORMAT, name, "is no .npy array");
    length = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1) {
        head = 12;
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    }
    if (length > n - head || length > 65535)
        return cli_fail(c, MLO_E_FORMAT, name, "the .npy header is cut off or too long");
    char *text = (char *)malloc(length + 1);
    if (!text) return cli_fail(c, MLO_E_MEMORY, name, "no memory");
    memcpy(text, p + head, length);
    text[length] = 0;
    const char *descr = cli_npy_key(text, "descr");
    const char *order = cli_npy_key(text, "fortran_order");
    const char *shape = cli_npy_key(text, "shape");
    int fortran = order && !strncmp(order, "True", 4);
    int good = order && (fortran || !strncmp(order, "False", 5))
        && cli_npy_shape(shape, dims, &rank);
    while (descr && type < CLI_NPY_TYPES
        && !(strchr("'\"", descr[0]) && descr[0]
            && !strncmp(descr + 1, cli_npy_types[type].descr, 3) && descr[4] == descr[0]))
        type++;
    int known = descr && type < CLI_NPY_TYPES;
    if (!good)
        cli_fail(c, MLO_E_FORMAT, name, "the .npy header is not as it should be: %.80s", text);
    else if (!known)
        cli_fail(c, MLO_E_TYPE, name,
            "arrays of type %.*s are not supported; use bool, int8..int64, uint8..uint64, float16, "
            "float32 or float64, little-endian",
            descr ? (int)strcspn(descr, ",}") : 1, descr ? descr : "?");
    free(text);
    if (!good || !known) return cli_failed(c);
    size_t size = cli_npy_types[type].size, room = n - head - length, want = size;
    for (int i = 0; i < rank; i++) {
        if (dims[i] && want > SIZE_MAX / 2 / (size_t)dims[i])
            return cli_fail(c, MLO_E_FORMAT, name, "the shape is too large");
        want *= (size_t)dims[i];
    }
    if (want > room)
        return cli_fail(
            c, MLO_E_FORMAT, name, "%zu bytes of data are announced, %zu are there", want, room);
    mlo_array *a = cli_npz_add(c, z, name, cli_npy_types[type].type, rank, dims);
    if (!a) return cli_failed(c);
    if (fortran && rank > 1)
        cli_npy_turn(a, (const char *)p + head + length, size);
    else if (want)
        memcpy(a->data, p + head + length, want);
    return 0;
}

/* ---- zip, reading --------------------------------------------------------- */

static uint64_t cli_le(const unsigned char *p, int n) {
    uint64_t v = 0;
    while (n--) v = v << 8 | p[n];
    return v;
}

typedef struct {
    const unsigned char *p;
    size_t n;
} cli_view;

/* Sizes and offset of a central directory entry; zip64's extra field replaces those that are all
 * ones, in this order. */
static int cli_zip_sizes(const unsigned char *entry, size_t name, size_t extra, uint64_t v[3]) {
    v[0] = cli_le(entry + 24, 4);
    v[1] = cli_le(entry + 20, 4);
    v[2] = cli_le(entry + 42, 4);
    const unsigned char *x = entry + 46 + name, *end = x + extra;
    while (end - x >= 4) {
        size_t id = (size_t)cli_le(x, 2), n = (size_t)cli_le(x + 2, 2);
        const unsigned char *q = x + 4;
        if (n > (size_t)(end - q)) return 0;
        if (id == 1)
            for (int i = 0; i < 3; i++)
                if (v[i] == 0xffffffffu) {
                    if (x + 4 + n - q < 8) return 0;
                    v[i] = cli_le(q, 8);
                    q += 8;
                }
        x += 4 + n;
    }
    return 1;
}

/* The bytes of a member: in place when stored, inflated into *made otherwise. */
static int cli_zip_member(cli *c, const char *name, cli_view z, int method, const uint64_t v[3],
    uint32_t crc, cli_view *out, unsigned char **made) {
    uint64_t whole = v[0], packed = v[1], at = v[2];
    if (at > z.n || z.n - at < 30 || cli_le(z.p + at, 4) != 0x04034b50)
        return cli_fail(c, MLO_E_FORMAT, name, "the archive is damaged: no local header");
    uint64_t start = at + 30 + cli_le(z.p + at + 26, 2) + cli_le(z.p + at + 28, 2);
    if (start > z.n || packed > z.n - start)
        return cli_fail(c, MLO_E_FORMAT, name, "the archive is cut off");
    if (method == 0 && packed != whole)
        return cli_fail(c, MLO_E_FORMAT, name,
            "the archive is damaged: stored as %llu bytes, said to be %llu",
            (unsigned long long)packed, (unsigned long long)whole);
    if (method == 0) {
        out->p = z.p + start;
        out->n = (size_t)whole;
    } else if (method == 8) {
        if (whole / 1032 > packed + 1)
            return cli_fail(c, MLO_E_FORMAT, name,
                "%llu bytes cannot come out of %llu deflated ones", (unsigned long long)whole,
                (unsigned long long)packed);
        if (packed > UINT_MAX || whole > UINT_MAX)
            return cli_fail(c, MLO_E_UNSUPPORTED, name,
                "a compressed array over 4 GB; save it uncompressed (numpy.savez)");
        z_stream s;
        memset(&s, 0, sizeof s);
        if (!(*made = (unsigned char *)malloc((size_t)whole + 1))
            || inflateInit2(&s, -MAX_WBITS) != Z_OK)
            return cli_fail(c, MLO_E_MEMORY, name, "no memory to inflate it");
        union {
            const unsigned char *in;
            unsigned char *next;
        } from = { z.p + start };
        s.next_in = from.next;
        s.avail_in = (uInt)packed;
        s.next_out = *made;
        s.avail_out = (uInt)whole;
        int r = inflate(&s, Z_FINISH);
        inflateEnd(&s);
        if (r != Z_STREAM_END || s.avail_out)
            return cli_fail(c, MLO_E_FORMAT, name, "the archive is damaged: it does not inflate");
        out->p = *made;
        out->n = (size_t)whole;
    } else
        return cli_fail(c, MLO_E_UNSUPPORTED, name,
            "zip method %d; numpy.savez and numpy.savez_compressed make the ones that are "
            "supported",
            method);
    uLong sum = crc32(0, NULL, 0);
    for (size_t i = 0; i < out->n; i += 1 << 30)
        sum = crc32(sum, out->p + i, (uInt)cli_at_once(out->n - i));
    return sum == crc
        ? 0
        : cli_fail(c, MLO_E_FORMAT, name, "the archive is damaged: its checksum differs");
}

static int cli_zip_entry(
    cli *c, cli_npz *to, cli_view z, const unsigned char *e, size_t name_n, size_t extra) {
    char name[1024];
    uint64_t v[3];
    cli_view data = { NULL, 0 };
    unsigned char *made = NULL;
    if (name_n >= sizeof name)
        return cli_fail(
            c, MLO_E_FORMAT, NULL, "an array's name is longer than %d", (int)sizeof name);
    memcpy(name, e + 46, name_n);
    name[name_n] = 0;
    if (strlen(name) != name_n || !cli_zip_sizes(e, name_n, extra, v))
        return cli_fail(c, MLO_E_FORMAT, name, "the archive's directory is damaged");
    if (name_n && name[name_n - 1] == '/') return 0;
    if (cli_le(e + 8, 2) & 1)
        return cli_fail(c, MLO_E_UNSUPPORTED, name, "the archive is encrypted");
    if (!cli_zip_member(
            c, name, z, (int)cli_le(e + 10, 2), v, (uint32_t)cli_le(e + 16, 4), &data, &made)) {
        if (name_n > 4 && !strcmp(name + name_n - 4, ".npy")) name[name_n - 4] = 0;
        if (cli_npz_find(to, name))
            cli_fail(c, MLO_E_FORMAT, name, "two arrays have this name");
        else
            cli_npy_parse(c, to, name, data.p, data.n);
    }
    free(made);
    return cli_failed(c);
}

/* The end record is the last thing in the file but a comment of at most 65535 bytes. */
static int cli_npz_parse(cli *c, cli_npz *to, const char *file, cli_view z) {
    size_t end = z.n;
    if (z.n >= 6 && !memcmp(z.p, "\x93NUMPY", 6)) return cli_npy_parse(c, to, "arr_0", z.p, z.n);
    if (z.n < 22 || cli_le(z.p, 2) != 0x4b50)
        return cli_fail(c, MLO_E_FORMAT, file, "is no .npz file; numpy.savez makes one");
    for (end = z.n - 22; end && z.n - end < 65557 && cli_le(z.p + end, 4) != 0x06054b50; end--);
    if (cli_le(z.p + end, 4) != 0x06054b50)
        return cli_fail(c, MLO_E_FORMAT, file, "the archive is cut off: it has no directory");
    uint64_t count = cli_le(z.p + end + 10, 2), at = cli_le(z.p + end + 16, 4);
    /* zip64 */
    if ((count == 0xffff || at == 0xffffffffu) && end >= 20
        && cli_le(z.p + end - 20, 4) == 0x07064b50) {
        uint64_t record = cli_le(z.p + end - 12, 8);
        if (record > end || end - record < 56 || cli_le(z.p + record, 4) != 0x06064b50)
            return cli_fail(c, MLO_E_FORMAT, file, "the archive's zip64 directory is damaged");
        count = cli_le(z.p + record + 32, 8);
        at = cli_le(z.p + record + 48, 8);
    }
    for (uint64_t i = 0; i < count && !cli_failed(c); i++) {
        if (at > z.n || z.n - at < 46 || cli_le(z.p + at, 4) != 0x02014b50)
            return cli_fail(c, MLO_E_FORMAT, file, "the archive's directory is damaged");
        size_t name = (size_t)cli_le(z.p + at + 28, 2);
        size_t extra = (size_t)cli_le(z.p + at + 30, 2);
        size_t comment = (size_t)cli_le(z.p + at + 32, 2);
        if (z.n - at - 46 < name + extra + comment)
            return cli_fail(c, MLO_E_FORMAT, file, "the archive's directory is cut off");
        cli_zip_entry(c, to, z, z.p + at, name, extra);
        at += 46 + name + extra + comment;
    }
    return cli_failed(c);
}

/* Arrays of an .npz (or the one of an .npy, as arr_0). Free with cli_npz_free, also after a failure. */
static int cli_npz_read(cli *c, const char *path, cli_npz *z) {
    cli_bytes b;
    memset(z, 0, sizeof *z);
    if (!cli_slurp(c, path, &b)) {
        cli_view v = { (const unsigned char *)b.data, b.n };
        cli_npz_parse(c, z, path, v);
    }
    free(b.data);
    return cli_failed(c);
}

/* ---- zip, writing: stored; sizes and places are in zip64's fields, as numpy has them */

static void cli_put_le(unsigned char *p, uint64_t v, int n) {
    for (int i = 0; i < n; i++) p[i] = (unsigned char)(v >> (8 * i));
}

static size_t cli_npy_header(const mlo_array *a, char *to, size_t room) {
    char shape[256];
    size_t n = 0;
    shape[0] = 0;
    for (int i = 0; i < a->rank; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n,
            a->rank == 1 ? "%lld,"
                : i      ? ", %lld"
                         : "%lld",
            (long long)a->dims[i]);
    size_t length = (size_t)snprintf(to + 10, room - 10,
        "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
        cli_npy_types[cli_npy_type(a->dtype)].descr, shape);
    size_t padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    memset(to + 10 + length, ' ', padded - length);
    to[10 + padded - 1] = '\n';
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    cli_put_le((unsigned char *)to + 8, padded, 2);
    return 10 + padded;
}

/* A local header (central = 0) or a directory entry. Dates are 1980-01-01: same input, same bytes. */
static void cli_zip_header(
    cli_out *o, int central, const char *name, uint64_t size, uint32_t crc, uint64_t at) {
    unsigned char h[46] = { 0 }, x[28] = { 0 };
    int i = central ? 6 : 4;
    size_t n = strlen(name) + 4;
    cli_put_le(h, central ? 0x02014b50 : 0x04034b50, 4);
    if (central) cli_put_le(h + 4, 45, 2);
    cli_put_le(h + i, 45, 2);
    cli_put_le(h + i + 2, 0x800, 2); /* names are UTF-8 */
    cli_put_le(h + i + 8, 0x21, 2);
    cli_put_le(h + i + 10, crc, 4);
    cli_put_le(h + i + 14, 0xffffffffu, 4);
    cli_put_le(h + i + 18, 0xffffffffu, 4);
    cli_put_le(h + i + 22, n, 2);
    cli_put_le(h + i + 24, central ? 28 : 20, 2);
    if (central) cli_put_le(h + 42, 0xffffffffu, 4);
    cli_put_le(x, 1, 2);
    cli_put_le(x + 2, central ? 24 : 16, 2);
    cli_put_le(x + 4, size, 8);
    cli_put_le(x + 12, size, 8);
    cli_put_le(x + 20, at, 8);
    cli_out_put(o, h, central ? 46 : 30);
    cli_out_text(o, name);
    cli_out_text(o, ".npy");
    cli_out_put(o, x, central ? 28 : 20);
}

static void cli_zip_end(cli_out *o, uint64_t count, uint64_t at, uint64_t size) {
    unsigned char r[56] = { 0 }, l[20] = { 0 }, e[22] = { 0 };
    cli_put_le(r, 0x06064b50, 4);
    cli_put_le(r + 4, 44, 8);
    cli_put_le(r + 12, 45, 2);
    cli_put_le(r + 14, 45, 2);
    cli_put_le(r + 24, count, 8);
    cli_put_le(r + 32, count, 8);
    cli_put_le(r + 40, size, 8);
    cli_put_le(r + 48, at, 8);
    cli_put_le(l, 0x07064b50, 4);
    cli_put_le(l + 8, at + size, 8);
    cli_put_le(l + 16, 1, 4);
    cli_out_put(o, r, 56);
    cli_out_put(o, l, 20);
    cli_put_le(e, 0x06054b50, 4);
    cli_put_le(e + 8, 0xffff, 2);
    cli_put_le(e + 10, 0xffff, 2);
    cli_put_le(e + 12, 0xffffffffu, 4);
    cli_put_le(e + 16, 0xffffffffu, 4);
    cli_out_put(o, e, 22);
}

static int cli_npz_write(cli *c, const char *path, const mlo_array *array, size_t n) {
    typedef struct {
        uint64_t at; /* bytes in front of it in the archive */
        uint64_t size; /* bytes */
        uint32_t crc;
    } member;
    member *m = (member *)calloc(n + 1, sizeof *m);
    uint64_t at = 0;
    cli_out o;
    for (size_t i = 0; i < n; i++)
        if (cli_npy_type(array[i].dtype) < 0 || strlen(array[i].name) > 1000) {
            free(m);
            return cli_fail(c, MLO_E_UNSUPPORTED, array[i].name,
                "an array of this type or name has no place in an .npz");
        }
    if (!m) return cli_fail(c, MLO_E_MEMORY, path, "no memory");
    cli_out_open(c, &o, path);
    for (size_t i = 0; i < n && !o.error; i++) {
        char head[1024];
        size_t length = cli_npy_header(&array[i], head, sizeof head);
        size_t bytes = cli_array_bytes(&array[i]);
        m[i].at = at;
        m[i].size = length + bytes;
        uLong crc = crc32(crc32(0, NULL, 0), (const unsigned char *)head, (uInt)length);
        for (size_t k = 0; k < bytes; k += 1 << 30)
            crc = crc32(
                crc, (const unsigned char *)array[i].data + k, (uInt)cli_at_once(bytes - k));
        m[i].crc = (uint32_t)crc;
        cli_zip_header(&o, 0, array[i].name, m[i].size, m[i].crc, at);
        cli_out_put(&o, head, length);
        cli_out_put(&o, array[i].data, bytes);
        at += 30 + strlen(array[i].name) + 4 + 20 + m[i].size;
    }
    uint64_t start = at;
    for (size_t i = 0; i < n; i++) {
        cli_zip_header(&o, 1, array[i].name, m[i].size, m[i].crc, m[i].at);
        at += 46 + strlen(array[i].name) + 4 + 28;
    }
    cli_zip_end(&o, n, start, at - start);
    free(m);
    return cli_out_close(c, &o);
}
