/* json: models from and to protobuf's JSON mapping, the text between the stages of a pipe.
 *
 * in:  JSON text as google.protobuf.json_format prints it (or jq, or a person).
 * out: an mlo_model; and back: JSON text, to a sink.
 *
 * The traps: int64 are strings (a double has 53 bits; so has jq); inf and NaN are strings; Python
 * refuses its own rounding of -FLT_MAX; printf and strtod follow the locale; cJSON cuts strings at
 * \u0000, accepts trailing text, and looks names up without regard to case. cJSON allocates with
 * its own hooks (malloc): its tree lives only inside mlo_json_read.
 *
 * invariant: json_format.Parse reads what is written here, and gives the model that binary ONNX
 *     gives; `jq .` changes nothing. Tensors that lie in a source file are written as external
 *     data: location, offset, length, and a digest.
 * example: mlo_json_write(m, model, sink, user);   {"irVersion":"10","graph":{"node":[
 *     {"input":["x"],"opType":"Relu",...
 * cost: writing streams and allocates next to nothing; reading holds the text and cJSON's tree of
 *     it for as long as it takes.
 */

/* ---- numbers -------------------------------------------------------------- */

/* The shortest text that reads back as v, a point whatever the locale says; `single`: as a float.
 * `to` holds 40 characters. */
static void mlo_print_number(char *to, double v, int single) {
    int digits = single ? 6 : 15, most = 17;
    for (;; digits++) {
        snprintf(to, 40, "%.*g", digits, v);
        double back = strtod(to, NULL);
        /* A rounding of FLT_MAX that is larger than FLT_MAX reads back here, but json_format
         * refuses it: keep adding digits. */
        if (digits >= most
            || (single ? (float)back == (float)v && fabs(back) <= (double)FLT_MAX
                       : !(back < v || back > v)))
            break;
    }
    mlo_pointed(to);
    if (mlo_eq(to, "-0")) strcpy(to, "-0.0");
}

/* A decimal number, whole, whatever the locale. */
static int mlo_parse_number(const char *s, double *to) {
    char half[16], text[80], *end;
    size_t n = strlen(s), point = strcspn(s, ".");
    if (!n || n > 60 || strspn(s, "0123456789.eE+-") != n) return 0;
    /* "0.5", or "0,5": what this locale calls a point */
    snprintf(half, sizeof half, "%.1f", 0.5);
    size_t width = strlen(half) - 2;
    memcpy(text, s, point);
    memcpy(text + point, half + 1, point < n ? width : 0);
    strcpy(text + point + (point < n ? width : 0), s + point + (point < n));
    *to = strtod(text, &end);
    return !*end;
}

/* ---- writing -------------------------------------------------------------- */

static void mlo_json_string(mlo_out *o, const char *s) {
    mlo_out_put(o, "\"", 1);
    for (const char *from = s;; s++) {
        unsigned char c = (unsigned char)*s;
        if (c >= 32 && c != '"' && c != '\\') continue;
        mlo_out_put(o, from, (size_t)(s - from));
        if (!c) break;
        char escape[8];
        if (c == '\n')
            strcpy(escape, "\\n");
        else if (c == '"' || c == '\\') {
            escape[0] = '\\';
            escape[1] = (char)c;
            escape[2] = 0;
        } else
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
        mlo_out_puts(o, escape);
        from = s + 1;
    }
    mlo_out_put(o, "\"", 1);
}

/* n bytes as base64; padded unless n is a multiple of 3, so pieces but the last must be. */
static void mlo_json_base64(mlo_out *o, const unsigned char *p, size_t n) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned b = n - i > 1 ? p[i + 1] : 0;
        unsigned c = n - i > 2 ? p[i + 2] : 0;
        unsigned v = (unsigned)p[i] << 16 | b << 8 | c;
        char four[4] = { digit[v >> 18], digit[v >> 12 & 63], n - i > 1 ? digit[v >> 6 & 63] : '=',
            n - i > 2 ? digit[v & 63] : '=' };
        mlo_out_put(o, four, 4);
    }
}

/* The raw data of a tensor that lies in a source, embedded. */
static void mlo_json_inline(mlo_out *o, const mlo_tensor *t) {
    enum { STEP = MLO_WINDOW / 3 * 3 };
    unsigned char *window = (unsigned char *)mlo_scratch(o->m, STEP, 1);
    o->failed |= !window;
    for (uint64_t at = 0; at < t->length && !o->failed; at += STEP) {
        size_t n = (size_t)mlo_min((int64_t)(t->length - at), STEP);
        if (mlo_source_read(o->m, t->source, t->offset + at, window, n))
            o->failed = 1;
        else
            mlo_json_base64(o, window, n);
    }
    mlo_scratch_free(o->m, window);
}

static void mlo_json_scalar(mlo_out *o, const mlo_field *f, const void *message, const void *p) {
    char text[40] = "";
    const mlo_bytes *b = (const mlo_bytes *)p;
    double v = f->kind == MLO_K_FLOAT ? (double)*(const float *)p
        : f->kind == MLO_K_DOUBLE     ? *(const double *)p
                                      : 0;
    switch (f->kind) {
    case MLO_K_STRING: mlo_json_string(o, *(const char *const *)p); break;
    case MLO_K_BYTES:
        mlo_out_put(o, "\"", 1);
        if (f->flags & MLO_F_RAW && ((const mlo_tensor *)message)->source)
            mlo_json_inline(o, (const mlo_tensor *)message);
        else
            mlo_json_base64(o, (const unsigned char *)b->data, b->n);
        mlo_out_put(o, "\"", 1);
        return;
    case MLO_K_INT32: snprintf(text, sizeof text, "%ld", (long)*(const int32_t *)p); break;
    case MLO_K_INT64:
        snprintf(text, sizeof text, "\"%lld\"", (long long)*(const int64_t *)p);
        break;
    case MLO_K_UINT64:
        snprintf(text, sizeof text, "\"%llu\"", (unsigned long long)*(const uint64_t *)p);
        break;
    case MLO_K_ENUM:
        snprintf(text, sizeof text, "\"%s\"", mlo_enums[f->sub].name[*(const int32_t *)p]);
        break;
    default:
        if (v != v)
            strcpy(text, "\"NaN\"");
        else if (isinf(v))
            strcpy(text, v < 0 ? "\"-Infinity\"" : "\"Infinity\"");
        else
            mlo_print_number(text, v, f->kind == MLO_K_FLOAT);
    }
    mlo_out_puts(o, text);
}

/* What a JSON writer goes by. `dir` is the folder whose files may be referred to, NULL to embed
 * everything. */
typedef struct {
    mlo_out out;
    const char *dir;
} mlo_json_out;

static void mlo_json_message(mlo_json_out *j, int id, const void *message, int depth);

static void mlo_json_field(mlo_json_out *j, const mlo_field *f, const void *message, int depth) {
    mlo_out *o = &j->out;
    size_t size = mlo_field_size(f);
    size_t n = f->flags & MLO_F_LIST ? *(const size_t *)(const void *)((const char *)message + f->n)
                                     : 1;
    const char *p = f->flags & MLO_F_LIST ? *MLO_AT_CONST(char *, message, f)
                                          : MLO_AT_CONST(char, message, f);
    mlo_json_string(o, f->json);
    mlo_out_puts(o, f->flags & MLO_F_LIST ? ":[" : ":");
    for (size_t i = 0; i < n; i++, p += size) {
        if (i) mlo_out_put(o, ",", 1);
        /* a line for each node, tensor, value: diff and less like it */
        if (f->flags & MLO_F_POINTERS && depth < 2) mlo_out_put(o, "\n", 1);
        if (f->kind == MLO_K_MESSAGE)
            mlo_json_message(j, f->sub, mlo_field_message(message, f, i), depth + 1);
        else
            mlo_json_scalar(o, f, message, p);
    }
    if (f->flags & MLO_F_LIST) mlo_out_put(o, "]", 1);
}

static void mlo_json_fields(mlo_json_out *j, int id, const void *message, int depth) {
    int first = 1;
    mlo_out_put(&j->out, "{", 1);
    for (size_t i = 0; i < mlo_messages[id].n; i++) {
        const mlo_field *f = &mlo_messages[id].field[i];
        if (!mlo_field_present(message, f)) continue;
        if (!first) mlo_out_put(&j->out, ",", 1);
        first = 0;
        mlo_json_field(j, f, message, depth);
    }
    mlo_out_put(&j->out, "}", 1);
}

/* A tensor that stays in its file: the same message, dressed as external data. */
static void mlo_json_reference(mlo_json_out *j, const mlo_tensor *t, int depth) {
    mlo *m = j->out.m;
    char offset[24], length[24], digest[40];
    mlo_entry external[3] = { { 0, "location", t->source->name }, { 0, "offset", offset },
        { 0, "length", length } };
    mlo_entry *meta = (mlo_entry *)mlo_scratch(m, t->n_meta + 1, sizeof *meta);
    mlo_entry extra = { 0, mlo_key_digest, digest };
    if (!meta || mlo_source_digest(m, t->source, t->offset, t->length, digest)) {
        mlo_scratch_free(m, meta);
        j->out.failed = 1;
        return;
    }
    snprintf(offset, sizeof offset, "%llu", (unsigned long long)t->offset);
    snprintf(length, sizeof length, "%llu", (unsigned long long)t->length);
    if (t->n_meta) memcpy(meta, t->meta, t->n_meta * sizeof *meta);
    meta[t->n_meta] = extra;
    mlo_tensor view = *t;
    view.source = NULL;
    view.external = external;
    view.n_external = 3;
    view.meta = meta;
    view.n_meta++;
    view.location = 1;
    view.has |= MLO_HAS(14);
    mlo_json_fields(j, MLO_M_TENSOR, &view, depth);
    mlo_scratch_free(m, meta);
}

static void mlo_json_message(mlo_json_out *j, int id, const void *message, int depth) {
    const mlo_tensor *t = id == MLO_M_TENSOR ? (const mlo_tensor *)message : NULL;
    if (t && t->source && t->source->dir == j->dir)
        mlo_json_reference(j, t, depth);
    else
        mlo_json_fields(j, id, message, depth);
}

/* The folder of the first tensor that lies in a file. */
static int mlo_json_find_dir(mlo *m, void *tensor, void *user) {
    const mlo_tensor *t = (const mlo_tensor *)tensor;
    (void)m;
    if (t->source) *(const char **)user = t->source->dir;
    return t->source != NULL;
}

/* Writes a model. Tensors that lie in files of one folder (the first one's) are referred to,
 * unless the option "inline" is set. */
static int mlo_json_write(mlo *m, mlo_model *model, mlo_sink sink, void *user) {
    mlo_json_out j = { { m, sink, user, "", 0, 0, { 0 } }, NULL };
    if (!mlo_opt(m, "inline"))
        mlo_each_message(m, MLO_M_MODEL, model, MLO_M_TENSOR, mlo_json_find_dir, &j.dir);
    mlo_model view = *model;
    if (j.dir) {
        mlo_entry dir = { 0, mlo_key_data_dir, j.dir };
        view.meta = (mlo_entry *)mlo_scratch(m, model->n_meta + 1, sizeof dir);
        if (!view.meta) return mlo_failed(m);
        if (model->n_meta) memcpy(view.meta, model->meta, model->n_meta * sizeof dir);
        view.meta[view.n_meta++] = dir;
    }
    mlo_json_fields(&j, MLO_M_MODEL, &view, 0);
    if (j.dir) mlo_scratch_free(m, view.meta);
    mlo_out_put(&j.out, "\n", 1);
    return mlo_out_end(&j.out);
}

/* Writes the failure as the document that later stages pass on. */
static void mlo_json_write_error(mlo *m, mlo_sink sink, void *user) {
    mlo_out o = { m, sink, user, "", 0, 0, { 0 } };
    const char *const field[][2] = { { "{\"error\":{\"stage\":", m->error.stage },
        { ",\"code\":", m->error.name }, { ",\"node\":", m->error.node },
        { ",\"op\":", m->error.op }, { ",\"message\":", m->error.message } };
    for (size_t i = 0; i < 5; i++) {
        mlo_out_puts(&o, field[i][0]);
        mlo_json_string(&o, field[i][1]);
    }
    mlo_out_puts(&o, "}}\n");
    mlo_out_flush(&o);
}

/* ---- reading -------------------------------------------------------------- */

/* What cJSON lets pass, but protobuf does not: NUL, bytes that are not UTF-8, \u0000, depth
 * without end. */
static int mlo_json_scan(mlo *m, const char *text, size_t n) {
    int depth = 0, quoted = 0;
    if (!mlo_utf8(text, n))
        return mlo_fail_at(
            m, MLO_E_FORMAT, NULL, "the JSON is not UTF-8 text, or holds a NUL byte");
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (quoted && c == '\\') {
            if (n - i > 5 && !memcmp(text + i, "\\u0000", 6))
                return mlo_fail_at(m, MLO_E_FORMAT, NULL,
                    "byte %zu: \\u0000 in a string; ONNX strings are text without NUL", i);
            i++;
        } else if (c == '"')
            quoted = !quoted;
        else if (quoted && (unsigned char)c < 32)
            return mlo_fail_at(m, MLO_E_FORMAT, NULL,
                "byte %zu: a control character in a string; write \\n or \\u%04x", i, (unsigned)c);
        else if (!quoted && (c == '{' || c == '[')) {
            if (++depth > 4 * MLO_WIRE_DEPTH)
                return mlo_fail_at(m, MLO_E_FORMAT, NULL, "byte %zu: JSON nested more than %d deep",
                    i, 4 * MLO_WIRE_DEPTH);
        } else if (!quoted && (c == '}' || c == ']'))
            depth--;
    }
    return 0;
}

/* A reader remembers where it is: field and index at each depth, for messages. */
typedef struct {
    mlo *m;
    struct {
        const char *name;
        long index;
    } path[MLO_WIRE_DEPTH + 2];
    int depth;
} mlo_json_in;

static int mlo_json_fail(mlo_json_in *j, const char *what, const char *value) {
    char where[240];
    size_t n = 0;
    where[0] = 0;
    for (int i = 0; i <= j->depth && n < sizeof where - 60; i++) {
        n += (size_t)snprintf(
            where + n, sizeof where - n, "%s%.40s", i ? "." : "", j->path[i].name);
        if (j->path[i].index >= 0)
            n += (size_t)snprintf(where + n, sizeof where - n, "[%ld]", j->path[i].index);
    }
    return mlo_fail_at(j->m, MLO_E_FORMAT, NULL, "JSON: %s: %s%.80s", where, what, value);
}

/* Is this JSON name field f's: "opType", or "op_type"? */
static int mlo_json_is(const char *name, const mlo_field *f) {
    const char *s = f->json;
    if (mlo_eq(name, s)) return 1;
    for (; *s; s++, name++) {
        if (*s >= 'A' && *s <= 'Z') {
            if (*name++ != '_' || *name != *s - 'A' + 'a') return 0;
        } else if (*name != *s)
            return 0;
    }
    return !*name;
}

/* A whole number in [low, high], from a number that a double holds exactly or from a string. */
static int mlo_json_whole(const cJSON *v, int64_t low, uint64_t high, uint64_t *to) {
    const char *s = cJSON_IsString(v) ? v->valuestring : NULL;
    uint64_t size;
    double d = v->valuedouble;
    int minus = s ? *s == '-' : d < 0;
    if (!s && (!cJSON_IsNumber(v) || floor(d) < d || fabs(d) > 9007199254740991.0)) return 0;
    if (!s) size = (uint64_t)fabs(d);
    /* as json_format: "1e3" and "2.0" are whole numbers too */
    else if (!mlo_parse_u64(s + minus, &size)) {
        if (!mlo_parse_number(s, &d) || floor(d) < d || fabs(d) > 9007199254740991.0) return 0;
        size = (uint64_t)fabs(d);
    }
    if (minus ? size > (uint64_t)0 - (uint64_t)low : size > high) return 0;
    *to = minus ? (uint64_t)0 - size : size;
    return 1;
}

static int mlo_json_float(const cJSON *v, int single, double *to) {
    if (cJSON_IsNumber(v))
        *to = v->valuedouble;
    else if (!cJSON_IsString(v))
        return 0;
    else if (mlo_eq(v->valuestring, "NaN")) {
        *to = (double)mlo_float_bits(0x7FC00000u);
        return 1;
    } else if (mlo_eq(v->valuestring, "Infinity")) {
        *to = (double)mlo_float_bits(0x7F800000u);
        return 1;
    } else if (mlo_eq(v->valuestring, "-Infinity")) {
        *to = (double)mlo_float_bits(0xFF800000u);
        return 1;
    } else if (!mlo_parse_number(v->valuestring, to))
        return 0;
    /* half a step above FLT_MAX rounds to infinity */
    return !isinf(*to) && (!single || fabs(*to) < 3.4028235677973366e38);
}

/* base64, either alphabet, padded or not. */
static int mlo_json_bytes(mlo_json_in *j, const char *s, mlo_bytes *to) {
    size_t n = strlen(s), used = 0;
    while (n && s[n - 1] == '=' && strlen(s) - n < 2) n--;
    unsigned char *out = (unsigned char *)mlo_alloc(j->m, n / 4 * 3 + 4, 1);
    uint32_t v = 0;
    if (!out) return mlo_failed(j->m);
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        int digit = c >= 'A' && c <= 'Z' ? c - 'A'
            : c >= 'a' && c <= 'z'       ? c - 'a' + 26
            : c >= '0' && c <= '9'       ? c - '0' + 52
            : c == '+' || c == '-'       ? 62
            : c == '/' || c == '_'       ? 63
                                         : -1;
        if (digit < 0) return mlo_json_fail(j, "is not base64", "");
        v = v << 6 | (uint32_t)digit;
        if (i % 4 == 1) out[used++] = (unsigned char)(v >> 4 & 0xFF);
        if (i % 4 == 2) out[used++] = (unsigned char)(v >> 2 & 0xFF);
        if (i % 4 == 3) out[used++] = (unsigned char)(v & 0xFF);
    }
    if (n % 4 == 1) return mlo_json_fail(j, "is not base64: one character is left over", "");
    to->data = (const char *)out;
    to->n = used;
    return 0;
}

static int mlo_json_enum(const mlo_field *f, const cJSON *v, int32_t *to) {
    uint64_t number;
    for (size_t i = 0; i < mlo_enums[f->sub].n; i++)
        if (cJSON_IsString(v) && mlo_eq(v->valuestring, mlo_enums[f->sub].name[i])) {
            *to = (int32_t)i;
            return 1;
        }
    if (!mlo_json_whole(v, 0, mlo_enums[f->sub].n - 1, &number)) return 0;
    *to = (int32_t)number;
    return 1;
}

/* One value that is not a message. */
static int mlo_json_value(
    mlo_json_in *j, int id, void *message, const mlo_field *f, const cJSON *v) {
    uint64_t bits = 0;
    double d = 0;
    int32_t small = 0;
    mlo_bytes bytes = { NULL, 0 };
    const char *text = NULL;
    int ok = 1;
    switch (f->kind) {
    case MLO_K_STRING:
        ok = cJSON_IsString(v) && ((text = mlo_intern(j->m, v->valuestring)) != NULL);
        break;
    case MLO_K_BYTES: ok = cJSON_IsString(v) && !mlo_json_bytes(j, v->valuestring, &bytes); break;
    case MLO_K_INT32:
        ok = mlo_json_whole(v, INT32_MIN, INT32_MAX, &bits);
        small = (int32_t)(int64_t)bits;
        break;
    case MLO_K_INT64: ok = mlo_json_whole(v, INT64_MIN, INT64_MAX, &bits); break;
    case MLO_K_UINT64: ok = mlo_json_whole(v, 0, UINT64_MAX, &bits); break;
    case MLO_K_ENUM: ok = mlo_json_enum(f, v, &small); break;
    default: ok = mlo_json_float(v, f->kind == MLO_K_FLOAT, &d);
    }
    static const char *const wants[] = { "is not a string", "is not base64",
        "is not a whole number that an int32 holds",
        "is not a whole number that an int64 holds (write it as a string)",
        "is not a whole number that a uint64 holds (write it as a string)", "is not a float",
        "is not a double", "is not one of the enum's names" };
    if (!ok) return mlo_json_fail(j, wants[f->kind], "");
    void *slot = mlo_field_slot(j->m, id, message, f);
    if (!slot) return mlo_failed(j->m);
    switch (f->kind) {
    case MLO_K_STRING: *(const char **)slot = text; break;
    case MLO_K_BYTES: *(mlo_bytes *)slot = bytes; break;
    case MLO_K_INT32:
    case MLO_K_ENUM: *(int32_t *)slot = small; break;
    case MLO_K_INT64:
    case MLO_K_UINT64: memcpy(slot, &bits, sizeof bits); break;
    case MLO_K_FLOAT:
        *(float *)slot = fabs(d) > (double)FLT_MAX && !isinf(d) ? (d < 0 ? -FLT_MAX : FLT_MAX)
                                                                : (float)d;
        break;
    default: *(double *)slot = d;
    }
    return 0;
}

static int mlo_json_object(mlo_json_in *j, int id, const cJSON *object, void *message);

static int mlo_json_item(
    mlo_json_in *j, int id, void *message, const mlo_field *f, const cJSON *v) {
    if (cJSON_IsNull(v)) return mlo_json_fail(j, "is null; leave it out", "");
    if (f->kind != MLO_K_MESSAGE) return mlo_json_value(j, id, message, f, v);
    void *to = mlo_field_submessage(j->m, id, message, f);
    if (!to) return mlo_failed(j->m);
    if (j->depth >= MLO_WIRE_DEPTH) return mlo_json_fail(j, "is nested too deep", "");
    j->depth++;
    int r = mlo_json_object(j, f->sub, v, to);
    j->depth--;
    return r;
}

static int mlo_json_object(mlo_json_in *j, int id, const cJSON *object, void *message) {
    uint32_t seen = 0;
    /* a complaint about the object itself is about its holder's field */
    j->depth--;
    if (!cJSON_IsObject(object))
        return mlo_json_fail(j, "is not an object: ", mlo_messages[id].name);
    j->depth++;
    for (const cJSON *v = object->child; v; v = v->next) {
        const mlo_field *f = NULL;
        for (size_t i = 0; i < mlo_messages[id].n; i++)
            if (mlo_json_is(v->string, &mlo_messages[id].field[i])) f = &mlo_messages[id].field[i];
        j->path[j->depth].name = v->string;
        j->path[j->depth].index = -1;
        if (!f) return mlo_json_fail(j, "there is no such field in ", mlo_messages[id].name);
        if (seen >> f->number & 1) return mlo_json_fail(j, "comes twice in one object", "");
        seen |= 1u << f->number;
        if (cJSON_IsNull(v)) continue;
        if (!(f->flags & MLO_F_LIST)) {
            if (mlo_json_item(j, id, message, f, v)) return mlo_failed(j->m);
            continue;
        }
        if (!cJSON_IsArray(v)) return mlo_json_fail(j, "is not an array", "");
        j->path[j->depth].index = 0;
        for (const cJSON *item = v->child; item; item = item->next, j->path[j->depth].index++)
            if (mlo_json_item(j, id, message, f, item)) return mlo_failed(j->m);
    }
    return 0;
}

static int mlo_fail_as(
    mlo *m, mlo_code code, const char *node, const char *op, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int r = mlo_fail_v(m, code, node, op, format, args);
    va_end(args);
    return r;
}

/* An error document from an earlier stage of a pipe becomes this handle's failure, word for word. */
static int mlo_json_passed_on(mlo *m, const cJSON *root) {
    static const char *const keys[] = { "stage", "code", "node", "op", "message" };
    const cJSON *error = root->child;
    const char *text[5];
    mlo_code code = MLO_E_FORMAT;
    if (!error || error->next || !mlo_eq(error->string, "error") || !cJSON_IsObject(error))
        return 0;
    for (int i = 0; i < 5; i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(error, keys[i]);
        text[i] = cJSON_IsString(v) ? v->valuestring : "";
    }
    for (int i = 1; i < MLO_E_COUNT; i++)
        if (mlo_eq(text[1], mlo_code_names[i].name)) code = (mlo_code)i;
    const char *stage = m->stage;
    m->stage = text[0];
    int r = mlo_fail_as(m, code, text[2], text[3], "%s", text[4]);
    m->stage = stage;
    return r;
}

/* The same text with every number that has a point made a string, in scratch memory, *n its
 * length: cJSON reads numbers with strtod, whose point is the locale's and may be several bytes.
 * NULL when it fails. */
static char *mlo_json_quote_numbers(mlo *m, const char *text, size_t *n) {
    char *out = (char *)mlo_scratch(m, 2 * *n + 2, 1), *to = out;
    int quoted = 0;
    for (size_t i = 0; out && i < *n;) {
        size_t length = 1;
        if (quoted && text[i] == '\\' && i + 1 < *n)
            length = 2;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && strchr("0123456789-", text[i]))
            while (i + length < *n && strchr("0123456789+-.eE", text[i + length])) length++;
        int quote = !quoted && length > 2 && memchr(text + i, '.', length);
        if (quote) *to++ = '"';
        memcpy(to, text + i, length);
        to += length;
        i += length;
        if (quote) *to++ = '"';
    }
    *n = (size_t)(to - out);
    return out;
}

static mlo_model *mlo_json_model(mlo *m, const char *text, size_t n);

/* Reads a model from JSON text. NULL when it fails. */
static mlo_model *mlo_json_read(mlo *m, const char *text, size_t n) {
    char half[16];
    if (mlo_json_scan(m, text, n)) return NULL;
    snprintf(half, sizeof half, "%.1f", 0.5);
    if (mlo_eq(half, "0.5")) return mlo_json_model(m, text, n);
    char *quoted = mlo_json_quote_numbers(m, text, &n);
    mlo_model *model = quoted ? mlo_json_model(m, quoted, n) : NULL;
    mlo_scratch_free(m, quoted);
    return model;
}

static mlo_model *mlo_json_model(mlo *m, const char *text, size_t n) {
    const char *end = text;
    cJSON *root = cJSON_ParseWithLengthOpts(text, n, &end, 0);
    size_t at = (size_t)(end - text);
    if (!root) {
        mlo_fail_at(m, MLO_E_FORMAT, NULL,
            "the JSON breaks off or goes wrong at byte %zu of %zu: '%.*s'", at, n,
            (int)(n - at < 20 ? n - at : 20), text + at);
        return NULL;
    }
    while (at < n && strchr(" \t\r\n", text[at])) at++;
    mlo_model *model = NULL;
    if (at < n)
        mlo_fail_at(m, MLO_E_FORMAT, NULL,
            "more text follows the JSON model, at byte %zu of %zu: '%.*s'", at, n,
            (int)(n - at < 20 ? n - at : 20), text + at);
    else if (!mlo_json_passed_on(m, root) && (model = MLO_NEW(m, mlo_model)) != NULL) {
        mlo_json_in *j = (mlo_json_in *)mlo_scratch(m, 1, sizeof *j);
        if (j) {
            memset(j, 0, sizeof *j);
            j->m = m;
            j->path[0].name = "";
            j->path[0].index = -1;
            mlo_json_object(j, MLO_M_MODEL, root, model);
        }
        mlo_scratch_free(m, j);
    }
    cJSON_Delete(root);
    return m->error.code ? NULL : model;
}
