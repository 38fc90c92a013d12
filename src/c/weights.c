/* weights: a layer's parameters as the members of a struct, and weights.c.
 *
 * in:  a core.
 * out: model_layer, which the layer's code reads through a pointer that advances; model_common, what does
 *     not differ between layers because the body reads it from around the loop.
 *
 * A member is as wide as its numbers may get (the kernels' limits). The wide ones come first, so that
 * nothing is padded. A matrix lies row by row of outputs, as its products read it; a window likewise.
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
    static const char *const attention[] = { "q", "k", "v", "mask", "p", "bias" };
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
    case MLO_KERNEL_ATTENTION: return mlo_attention_tabled(e->node) ? tables[k] : attention[k];
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

/* The struct's members. */
static void mlo_c_members(mlo_emitter *e, const mlo_c_params *l, int common) {
    for (int i = 0; i < l->n; i++)
        if (l->param[i].common == common)
            mlo_line(e, "    %s %s[%lld];", mlo_c_type(l->param[i].dtype), l->param[i].name,
                (long long)l->param[i].count);
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
        mlo_puts(&e->t, "    { ");
        for (int64_t i = 0; i < p->count; i++)
            mlo_c_number(&e->t, i, mlo_get(a, p->rows ? i % p->rows * columns + i / p->rows : i));
        mlo_puts(&e->t, " },\n");
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

/* more: parameters of what is around the layers, behind those; NULL: there are none. */
static int mlo_emit_c_weights(
    mlo_emitter *e, const mlo_c_params *l, int (*more)(void *user), void *user) {
    mlo_line(e,
        "/* The parameters of all layers, and those that layers share. */\n#include \"model.h\"\n");
    if (more) mlo_line(e, "#include <math.h>\n");
    mlo_line(e,
        "const int model_depth = MODEL_LAYERS;\nconst model_layer model_layers[MODEL_LAYERS] = {");
    MLO_TRY(mlo_file_begin(e, "weights.c"));
    for (int64_t i = 0; i < e->c->scan.iterations; i++) {
        mlo_line(e, "{ /* layer %lld */", (long long)i);
        for (int k = 0; k < l->n; k++)
            if (!l->param[k].common && (mlo_c_param_write(e, &l->param[k], i) || mlo_c_flush(e)))
                return mlo_failed(e->m);
        mlo_line(e, "},");
    }
    mlo_line(e, "};\n\nconst model_shared model_common = {\n    0,");
    for (int k = 0; k < l->n; k++)
        if (l->param[k].common && (mlo_c_param_write(e, &l->param[k], 0) || mlo_c_flush(e)))
            return mlo_failed(e->m);
    mlo_line(e, "};");
    if (more && more(user)) return mlo_failed(e->m);
    return mlo_c_flush(e) || mlo_file_end(e) ? mlo_failed(e->m) : 0;
}
