/* weights: a layer's parameters as the members of a struct, and weights.c, or weights.bin and weights.S.
 *
 * in:  a core.
 * out: model_layer, which the layer's code reads through a pointer that advances; model_common, what does
 *     not differ between layers because the body reads it from around the loop.
 *
 * A C compiler takes minutes and gigabytes for hundreds of megabytes of numbers. So above 16 MB, or where --parameters
 * bin says so, they leave as bytes, little-endian: the structs as they lie in memory, one behind the other, which an
 * assembler includes.
 *
 * A member is as wide as its numbers may get (the kernels' limits). The wide ones come first, so that
 * nothing is padded between them; what is missing to 8 bytes at the end is a member, too: so a struct lies the same on
 * every processor. A matrix lies row by row of outputs, as its products read it; a window likewise.
 *
 * invariant: what kernels refuse (numbers beyond their limits) is refused here, too.
 * example: int8_t mvu_0_w[384 * 128];
 * cost: one parameter of one layer in memory at a time.
 */
typedef struct {
    const mlo_element *element;
    int input; /* of its node */
    const char *name; /* of the member */
    mlo_dtype dtype;
    int64_t count; /* elements */
    int64_t
        rows; /* of a matrix that is turned: [rows, count / rows] becomes its transpose; 0: as it is */
    int common; /* 1: all layers share it */
} mlo_c_param;

enum { MLO_C_PARAMS = 6 * MLO_CORE_MOST };

typedef struct {
    mlo_c_param param[MLO_C_PARAMS];
    int n;
} mlo_c_params;

/* What an input is called in the struct, by its kind of kernel. */
static const char *mlo_c_input_name(const mlo_element *e, int k) {
    static const char *const matrix[] = { "x", "w", "bias", "mult", "shift", "table" };
    static const char *const rescale[] = { "x", "bias", "mult", "shift", "table" };
    static const char *const norm[] = { "x", "g", "b", "p" };
    static const char *const exact[] = { "x", "weight", "b", "p" };
    static const char *const rotary[] = { "x", "table", "p" };
    static const char *const place[] = { "x", "table", "mult", "shift" };
    static const char *const pair[] = { "a", "b", "p" };
    static const char *const attention[] = { "q", "k", "v", "mask", "p", "bias", "keys", "values" };
    static const char *const tables[] = { "q", "k", "v", "mask", "p", "score", "weight" };
    switch (e->kernel->kind) {
    case MLO_KERNEL_MATRIX:
    case MLO_KERNEL_WINDOW: return matrix[k];
    case MLO_KERNEL_RESCALE: return rescale[k];
    case MLO_KERNEL_NORM:
    case MLO_KERNEL_FRAME_NORM: return norm[k];
    case MLO_KERNEL_EXACT_NORM: return exact[k];
    case MLO_KERNEL_ROTATION: return rotary[k];
    case MLO_KERNEL_PLACE: return place[k];
    case MLO_KERNEL_ATTENTION:
        if (mlo_attention_tabled(e->node)) return tables[k];
        return attention[k + (k > 4 && !mlo_attention_biased(e->node))]; /* rows, without a bias */
    default: return pair[k];
    }
}

/* The type that holds its numbers: of multipliers, shifts and the like less than the model has. */
static mlo_dtype mlo_c_param_type(const mlo_element *e, int k, mlo_dtype dtype) {
    const char *name = mlo_c_input_name(e, k);
    if (mlo_eq(name, "shift")) return MLO_INT8;
    if (mlo_eq(name, "mult") || mlo_eq(name, "g")) return MLO_INT16;
    if (mlo_eq(name, "table"))
        return mlo_has_table(e->node) ? e->site.out.dtype : MLO_INT16; /* else by position */
    if (mlo_eq(name, "mask")) return MLO_UINT8;
    if (mlo_eq(name, "p")) return mlo_is_any_norm(e->node) ? MLO_INT64 : MLO_INT32;
    if (mlo_eq(name, "b") || mlo_eq(name, "weight")
        || (mlo_eq(name, "bias") && !mlo_is_kernel(e->node, MLO_KERNEL_ATTENTION)))
        return MLO_INT32;
    return dtype;
}

/* Is an input a stream, from a kernel or from outside? Then it is no parameter. */
static int mlo_c_is_stream(const mlo_core *c, const mlo_element *e, int k) {
    const mlo_value *v = mlo_value_of(c->scan.body, e->node->input[k]);
    for (int p = 0; p < e->unit.n_in; p++)
        if (e->unit.in[p].index == k) return 1;
    return v && v->graph != c->scan.body && !v->tensor;
}

static int mlo_c_param_add(
    mlo *m, mlo_c_params *l, const mlo_core *c, const mlo_element *e, int k) {
    const mlo_form f = e->site.in[k];
    const mlo_value *v = mlo_value_of(c->scan.body, e->node->input[k]);
    const mlo_kernel_kind kind = e->kernel->kind;
    const int turned = k == 1 && (kind == MLO_KERNEL_MATRIX || kind == MLO_KERNEL_WINDOW);
    const mlo_c_param p = { e, k, mlo_format(m, "%s_%s", e->name, mlo_c_input_name(e, k)),
        mlo_c_param_type(e, k, f.dtype), mlo_form_count(&f), turned ? f.dims[0] : 0,
        v->graph != c->scan.body };
    if (l->n == MLO_C_PARAMS)
        return mlo_fail(
            m, MLO_E_UNSUPPORTED, e->node, "a layer of more than %d parameters", MLO_C_PARAMS);
    l->param[l->n++] = p;
    return mlo_failed(m);
}

/* All parameters, wide ones first. */
static int mlo_c_params_of(mlo *m, const mlo_core *c, mlo_c_params *l) {
    l->n = 0;
    for (size_t size = 8; size; size /= 2)
        for (int i = 0; i < c->n_element; i++) {
            const mlo_element *e = &c->element[i];
            if (!e->kernel || e->kernel->kind == MLO_KERNEL_REPLAY) continue;
            for (int k = 0; k < (int)e->site.n_in; k++)
                if (!mlo_c_is_stream(c, e, k)
                    && mlo_dtype_size(mlo_c_param_type(e, k, e->site.in[k].dtype)) == size)
                    MLO_TRY(mlo_c_param_add(m, l, c, e, k));
        }
    return 0;
}

static const mlo_c_param *mlo_c_param_of(const mlo_c_params *l, const mlo_element *e, int k) {
    for (int i = 0; i < l->n; i++)
        if (l->param[i].element == e && l->param[i].input == k) return &l->param[i];
    return NULL;
}

static const char *mlo_c_type(mlo_dtype t) {
    switch (t) {
    case MLO_INT8: return "int8_t";
    case MLO_INT16: return "int16_t";
    case MLO_INT32: return "int32_t";
    case MLO_INT64: return "int64_t";
    default: return "uint8_t";
    }
}

/* ---- structs, the same on every processor ----------------------------------------- */

enum { MLO_C_GRAIN = 8, MLO_C_TEXT_MOST = 16 << 20 };

/* What a struct of so many bytes has at its end. */
static int64_t mlo_c_gap(int64_t bytes) {
    return mlo_parts(bytes, MLO_C_GRAIN) * MLO_C_GRAIN - bytes;
}
static void mlo_c_gap_member(mlo_emitter *e, int64_t bytes) {
    if (mlo_c_gap(bytes)) mlo_line(e, "    int8_t gap[%lld];", (long long)mlo_c_gap(bytes));
}

/* Bytes of a struct without that; the one that layers share begins with a number, lest it be empty. */
static int64_t mlo_c_struct_bytes(const mlo_c_params *l, int common) {
    int64_t bytes = common ? MLO_C_GRAIN : 0;
    for (int i = 0; i < l->n; i++)
        if (l->param[i].common == common)
            bytes += l->param[i].count * (int64_t)mlo_dtype_size(l->param[i].dtype);
    return bytes;
}
static int64_t mlo_c_struct_size(int64_t bytes) { return bytes + mlo_c_gap(bytes); }

/* Of all layers, and of what they share. */
static int64_t mlo_c_params_size(const mlo_emitter *e, const mlo_c_params *l) {
    return mlo_c_struct_size(mlo_c_struct_bytes(l, 0)) * e->c->scan.iterations
        + mlo_c_struct_size(mlo_c_struct_bytes(l, 1));
}

/* Do parameters of so many bytes leave as bytes? */
static int mlo_c_pack(mlo_emitter *e, int64_t bytes) {
    const char *as = mlo_opt(e->m, "parameters");
    if (as && !mlo_eq(as, "c") && !mlo_eq(as, "bin"))
        return mlo_fail_at(e->m, MLO_E_USAGE, NULL, "--parameters %s: there are c and bin", as);
    e->packed = as ? mlo_eq(as, "bin") : bytes > MLO_C_TEXT_MOST;
    return 0;
}

/* The struct's members. */
static void mlo_c_members(mlo_emitter *e, const mlo_c_params *l, int common) {
    for (int i = 0; i < l->n; i++)
        if (l->param[i].common == common)
            mlo_line(e, "    %s %s[%lld];", mlo_c_type(l->param[i].dtype), l->param[i].name,
                (long long)l->param[i].count);
    mlo_c_gap_member(e, mlo_c_struct_bytes(l, common));
}

/* ---- numbers ---------------------------------------------------------------------- */

/* The low bytes of a number, the lowest first. */
static void mlo_c_low_bytes(mlo_text *t, uint64_t v, size_t size) {
    char bytes[8];
    for (size_t i = 0; i < size; i++) bytes[i] = (char)(unsigned char)(v >> 8 * i);
    mlo_put(t, bytes, size);
}

/* A struct begins, with the number that it may have there; and ends. */
static void mlo_c_struct_begin(mlo_emitter *e, const char *head, int none) {
    if (!e->packed) mlo_line(e, none ? "%s {\n    0," : "%s {", head);
    if (e->packed && none) mlo_c_low_bytes(&e->t, 0, MLO_C_GRAIN);
}
static void mlo_c_struct_end(mlo_emitter *e, const char *end, int64_t bytes) {
    const int64_t gap = mlo_c_gap(bytes);
    if (e->packed) mlo_c_low_bytes(&e->t, 0, (size_t)gap);
    if (!e->packed && gap) mlo_line(e, "    { 0 },");
    if (!e->packed) mlo_line(e, "}%s", end);
}

/* Numbers with commas, some to a line. */
static void mlo_c_number(mlo_text *t, int64_t i, int64_t v) {
    enum { LINE = 24 };
    if (i) mlo_puts(t, i % LINE ? ", " : ",\n");
    mlo_printf(t, "%lld", (long long)v);
}

static int mlo_c_param_write(mlo_emitter *e, const mlo_c_param *p, int64_t iteration) {
    mlo_array *in[8] = { 0 };
    MLO_TRY(mlo_element_inputs(e->m, e->c, p->element, iteration, in));
    const mlo_array *a = in[p->input];
    const int64_t columns = p->rows ? p->count / p->rows : 1;
    if (p->input == 1 || mlo_element_numbers(e->m, p->element, (const mlo_array *const *)in) == 0) {
        mlo_puts(&e->t, e->packed ? "" : "    { ");
        for (int64_t i = 0; i < p->count; i++) {
            const int64_t v = mlo_get(a, p->rows ? i % p->rows * columns + i / p->rows : i);
            if (e->packed)
                mlo_c_low_bytes(&e->t, (uint64_t)v, mlo_dtype_size(p->dtype));
            else
                mlo_c_number(&e->t, i, v);
        }
        mlo_puts(&e->t, e->packed ? "" : " },\n");
    }
    for (int k = 0; k < 8; k++) mlo_array_free(e->m, in[k]);
    return mlo_failed(e->m);
}

/* What has been composed goes on in the file. */
static int mlo_c_flush(mlo_emitter *e) {
    const int r = mlo_file_write(e, mlo_or_empty(e->t.text), e->t.n);
    e->t.n = 0;
    return r;
}

/* ---- files ------------------------------------------------------------------------ */

/* A struct, or an array of them, in weights.bin: its symbol, and its bytes. */
typedef struct {
    const char *symbol;
    int64_t bytes;
} mlo_c_piece;
enum { MLO_C_PIECES = 3 };
typedef struct {
    mlo_emitter *e;
    const mlo_c_piece *piece; /* up to one without a symbol */
    int64_t depth; /* layers; 0: it is a network as it stands */
} mlo_c_pieces;

static const char *mlo_c_weights_file(const mlo_emitter *e) {
    return e->packed ? "weights.bin" : "weights.c";
}

/* Where each of them begins: for people, and for the assembler. */
static void mlo_c_write_distances(void *user) {
    const mlo_c_pieces *p = (const mlo_c_pieces *)user;
    int64_t at = 0;
    for (int i = 0; i < MLO_C_PIECES && p->piece[i].symbol; at += p->piece[i++].bytes)
        mlo_line(p->e, " *     %s: %lld", p->piece[i].symbol, (long long)at);
}
static void mlo_c_write_symbols(void *user) {
    const mlo_c_pieces *p = (const mlo_c_pieces *)user;
    int64_t at = 0;
    for (int i = 0; i < MLO_C_PIECES && p->piece[i].symbol; at += p->piece[i++].bytes) {
        mlo *m = p->e->m;
        const mlo_hole holes[] = { { "NAME", p->piece[i].symbol, NULL },
            { "FILE",
                mlo_format(m, "MODEL_WEIGHTS_FILE, %lld, %lld", (long long)at,
                    (long long)p->piece[i].bytes),
                NULL },
            { "BYTES", mlo_integer(m, p->piece[i].bytes), NULL }, { NULL, NULL, NULL } };
        mlo_share_copy(&p->e->t, "c/symbol.S", holes, p->e);
    }
}
/* How many layers there are is no part of weights.bin: an int's bytes need not be. */
static void mlo_c_write_depth(void *user) {
    const mlo_c_pieces *p = (const mlo_c_pieces *)user;
    const mlo_hole holes[] = { { "NAME", "model_depth", NULL },
        { "DEPTH", mlo_integer(p->e->m, p->depth), NULL }, { NULL, NULL, NULL } };
    if (p->depth) mlo_share_copy(&p->e->t, "c/depth.S", holes, p->e);
}

/* What was written ends; of weights.bin there is what an assembler makes of it. */
static int mlo_c_weights_end(mlo_emitter *e, const mlo_c_piece *piece, int64_t depth) {
    mlo_c_pieces all = { e, piece, depth };
    const mlo_hole holes[] = { { "DISTANCES", NULL, mlo_c_write_distances },
        { "SYMBOLS", NULL, mlo_c_write_symbols }, { "DEPTH", NULL, mlo_c_write_depth },
        { NULL, NULL, NULL } };
    if (mlo_c_flush(e) || mlo_file_end(e)) return mlo_failed(e->m);
    if (!e->packed) return 0;
    MLO_TRY(mlo_share_copy(&e->t, "c/weights.S", holes, &all));
    return mlo_file_text(e, "weights.S");
}

/* The members of a struct. */
static int mlo_c_params_write(
    mlo_emitter *e, const mlo_c_params *l, int common, int64_t iteration) {
    for (int k = 0; k < l->n; k++)
        if (l->param[k].common == common
            && (mlo_c_param_write(e, &l->param[k], iteration) || mlo_c_flush(e)))
            return mlo_failed(e->m);
    return 0;
}

/* more: parameters of what is around the layers, of more_bytes, behind those; NULL: there are none. */
static int mlo_emit_c_weights(mlo_emitter *e, const mlo_c_params *l, int (*more)(void *user),
    void *user, int64_t more_bytes) {
    const int64_t each = mlo_c_struct_bytes(l, 0), shared = mlo_c_struct_bytes(l, 1);
    const int64_t depth = e->c->scan.iterations;
    const mlo_c_piece pieces[] = { { "model_layers", mlo_c_struct_size(each) * depth },
        { "model_common", mlo_c_struct_size(shared) },
        { more ? "model_weights" : NULL, more_bytes }, { NULL, 0 } };
    if (!e->packed)
        mlo_line(e,
            "/* The parameters of all layers, and those that layers share. */\n#include "
            "\"model.h\"\n");
    if (!e->packed && more) mlo_line(e, "#include <math.h>\n");
    if (!e->packed)
        mlo_line(e,
            "const int model_depth = MODEL_LAYERS;\nconst model_layer model_layers[MODEL_LAYERS] = "
            "{");
    MLO_TRY(mlo_file_begin(e, mlo_c_weights_file(e)));
    for (int64_t i = 0; i < depth; i++) {
        mlo_c_struct_begin(e, mlo_format(e->m, "/* layer %lld */", (long long)i), 0);
        MLO_TRY(mlo_c_params_write(e, l, 0, i));
        mlo_c_struct_end(e, ",", each);
    }
    mlo_puts(&e->t, e->packed ? "" : "};\n\n");
    mlo_c_struct_begin(e, "const model_shared model_common =", 1);
    MLO_TRY(mlo_c_params_write(e, l, 1, 0));
    mlo_c_struct_end(e, ";", shared);
    if (more && more(user)) return mlo_failed(e->m);
    return mlo_c_weights_end(e, pieces, depth);
}
