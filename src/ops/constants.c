/* constants: evaluates what does not depend on the inputs, and drops what nothing uses.
 *
 * in:  a model with inferred types.
 * out: the same function of the inputs in fewer nodes; the index is stale (call mlo_index).
 *
 * invariant: graph inputs and outputs keep their names. Nothing over MLO_LARGE bytes is read or
 *     made, and all that is made stays within a budget of bytes and of work; beyond it nodes stay
 *     nodes, so that a small file cannot ask for much. QuantizeLinear, DequantizeLinear and ops of
 *     other domains stay, since they say how the model is quantized. New initializers come in the
 *     order of nodes.
 * example: Slice(position_ids, 0, Shape(input_ids)[1]) becomes one initializer once the sequence
 *     length is known.
 * cost: O(nodes + edges), and the evaluation of small constants.
 */

/* ---- evaluating ----------------------------------------------------------- */

static int64_t mlo_form_bytes(const mlo_form *f) {
    if (!mlo_form_known(f) || !mlo_dtype_size(f->dtype)) return -1;
    return mlo_form_count(f) > MLO_LARGE ? INT64_MAX
                                         : mlo_form_count(f) * (int64_t)mlo_dtype_size(f->dtype);
}
/* What folding may still spend. */
typedef struct {
    int64_t bytes; /* that it makes */
    int64_t products; /* multiplications */
} mlo_constant_budget;
enum { MLO_FOLD_BYTES = 32 << 20, MLO_FOLD_PRODUCTS = 1 << 26 };

/* Multiplications of a product or convolution with known operands (at least its true number), 0
 * for other nodes. */
static int64_t mlo_constant_products(const mlo_graph *g, const mlo_node *n) {
    int conv = mlo_is(n, "Conv");
    if (n->n_input < 2
        || !(conv || mlo_is(n, "MatMul") || mlo_is(n, "MatMulInteger") || mlo_is(n, "Gemm")))
        return 0;
    mlo_form out = mlo_form_of(mlo_value_of(g, n->output[0]));
    mlo_form w = mlo_form_of(mlo_value_of(g, n->input[1]));
    if (!mlo_form_known(&out) || !mlo_form_known(&w)) return INT64_MAX;
    int64_t channels = conv && out.rank > 1 ? out.dims[1]
        : !conv && out.rank && w.rank > 1   ? out.dims[out.rank - 1]
                                            : 1;
    return mlo_form_count(&out) * (channels ? mlo_form_count(&w) / channels : 0);
}

/* A number that a quantizer has rounded (1 / sqrt(D), GELU's 0.5) is a number: what is kept is how tensors are
 * rounded. */
static int mlo_scales_number(const mlo_graph *g, const mlo_node *n) {
    const mlo_form f = mlo_form_of(mlo_has_input(n, 0) ? mlo_value_of(g, n->input[0]) : NULL);
    return f.rank == 0 || (f.rank == 1 && f.dims[0] == 1);
}

/* A table that is added to values, or multiplied by (cosines, positions, a mask), is one of numbers, too. */
static int mlo_is_table(const mlo_graph *g, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(g, name);
    int table = v && v->n_use && mlo_form_of(v).rank > 1 && depth < 8;
    for (size_t i = 0; table && i < v->n_use; i++) {
        const mlo_node *r = v->use[i];
        const int half = (mlo_is(r, "Add") || mlo_is(r, "Mul")) && r->n_input == 2;
        const mlo_value *other = half ? mlo_value_of(g, r->input[r->input[0] == v->name]) : NULL;
        table = half ? other && !other->tensor
                     : mlo_has_trait(r, (mlo_trait)(MLO_QUANTIZES | MLO_RESHAPES))
                && r->input[0] == v->name && mlo_is_table(g, r->output[0], depth + 1);
    }
    return table;
}

/* May the node be evaluated now? Shape and Size need only the form of their input. */
static int mlo_foldable(const mlo_graph *g, const mlo_node *n, const mlo_op *op) {
    if (!op || !op->run || !n->n_output
        || (n->domain && *n->domain && !mlo_eq(n->domain, "ai.onnx")))
        return 0;
    if (mlo_is(n, "Round") || mlo_is(n, "DynamicQuantizeLinear")
        || (mlo_has_trait(n, MLO_QUANTIZES) && !mlo_scales_number(g, n)
            && !mlo_is_table(g, n->output[0], 0)))
        return 0;
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_value *v = mlo_value_of(g, n->input[i]);
        mlo_form f = mlo_form_of(v);
        if (!mlo_has_input(n, i)) continue;
        if ((mlo_is(n, "Shape") || mlo_is(n, "Size")) && mlo_form_known(&f)
            && mlo_dtype_size(f.dtype) && mlo_form_count(&f) < MLO_MAX_DIM)
            continue;
        if (!v || !v->tensor || mlo_form_bytes(&f) < 0 || mlo_form_bytes(&f) > MLO_LARGE) return 0;
    }
    for (size_t i = 0; i < n->n_output; i++) {
        const mlo_value *v = mlo_value_of(g, n->output[i]);
        mlo_form f = mlo_form_of(v);
        if (v
            && (v->is_output || mlo_form_bytes(&f) > MLO_LARGE
                || (f.dtype && !mlo_dtype_size(f.dtype))))
            return 0;
    }
    return 1;
}

/* The arguments of a foldable node. An array without elements stands for the input of Shape and
 * Size. */
static int mlo_fold_arguments(mlo *m, const mlo_graph *g, const mlo_node *n, mlo_array **in) {
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_value *v = mlo_value_of(g, n->input[i]);
        mlo_form f = mlo_form_of(v);
        int64_t none = 0;
        in[i] = NULL;
        if (!v) continue;
        if (!mlo_is(n, "Shape") && !mlo_is(n, "Size"))
            in[i] = mlo_tensor_load(m, v->tensor);
        else if ((in[i] = mlo_array_new(m, f.dtype, 1, &none)) != NULL) {
            in[i]->rank = f.rank;
            memcpy(in[i]->dims, f.dims, sizeof f.dims);
        }
        if (!in[i]) return mlo_failed(m);
    }
    return 0;
}
/* Evaluates a node; its outputs become initializers. *folded = 0: the budget does not allow it. */
static int mlo_fold_node(
    mlo *m, mlo_graph *g, mlo_node *n, const mlo_op *op, mlo_constant_budget *left, int *folded) {
    int64_t limit = left->bytes < MLO_LARGE ? left->bytes / 8 : MLO_LARGE;
    int64_t products = mlo_constant_products(g, n);
    *folded = 0;
    if (products > left->products) return 0;
    left->products -= products;
    size_t room = n->n_input + n->n_output + 1;
    mlo_array **in = (mlo_array **)mlo_scratch(m, room, sizeof *in);
    mlo_array **out = in ? in + n->n_input : NULL;
    if (!in) return mlo_failed(m);
    for (size_t i = 0; i < room; i++) in[i] = NULL;
    if (!mlo_fold_arguments(m, g, n, in)
        && !mlo_call_limited(
            m, op, n, mlo_opset_of(m), limit, (const mlo_array *const *)(void *)in, out))
        for (size_t i = 0; i < n->n_output; i++) {
            mlo_value *v = mlo_value_of(g, n->output[i]);
            if (out[i]) {
                left->bytes -= mlo_array_count(out[i]) * (int64_t)mlo_dtype_size(out[i]->dtype);
                *folded = 1;
            }
            if (v && out[i]
                && ((v->tensor = mlo_tensor_from(m, v->name, out[i])) == NULL
                    || mlo_graph_init(m, g, v->tensor)))
                break;
        }
    for (size_t i = 0; i < room; i++) mlo_array_free(m, in[i]);
    mlo_scratch_free(m, in);
    return mlo_failed(m);
}

/* ---- renaming ------------------------------------------------------------- */

static const char *mlo_renamed(const mlo_map *names, const char *name) {
    for (const char *to = name; to; to = (const char *)mlo_map_get(names, to)) name = to;
    return name;
}
static void mlo_rename_graph(const mlo_map *names, mlo_graph *g, int outputs_too);
static void mlo_rename_node(const mlo_map *names, mlo_node *n) {
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i)) n->input[i] = mlo_renamed(names, n->input[i]);
    for (size_t i = 0; i < n->n_output; i++)
        if (n->output[i] && *n->output[i]) n->output[i] = mlo_renamed(names, n->output[i]);
    for (size_t i = 0; i < n->n_attr; i++) {
        if (n->attr[i]->g) mlo_rename_graph(names, n->attr[i]->g, 1);
        for (size_t k = 0; k < n->attr[i]->n_graphs; k++)
            mlo_rename_graph(names, n->attr[i]->graphs[k], 1);
    }
}
/* Names are unique over nested graphs, so an outer name can be replaced wherever it stands. */
static void mlo_rename_graph(const mlo_map *names, mlo_graph *g, int outputs_too) {
    for (size_t i = 0; i < g->n_node; i++) mlo_rename_node(names, g->node[i]);
    for (size_t i = 0; outputs_too && i < g->n_output; i++)
        g->output[i]->name = mlo_renamed(names, g->output[i]->name);
}

/* The axis along which a ScatterND or a ScatterElements writes rows by numbers of this form, as many rows as there
 * are; -1: it does otherwise. */
static int mlo_rewritten_axis(const mlo_node *n, const mlo_form *data, mlo_form numbers) {
    const int64_t said = mlo_int(n, "axis", 0), axis = said < 0 ? said + data->rank : said;
    if (numbers.dtype != MLO_INT64 || data->rank < 1 || !mlo_form_known(data)) return -1;
    if (mlo_is(n, "ScatterND"))
        return numbers.rank == 2 && numbers.dims[1] == 1 && numbers.dims[0] == data->dims[0] ? 0
                                                                                             : -1;
    numbers.dtype = data->dtype;
    return axis >= 0 && axis < data->rank && !mlo_forms_differ(&numbers, data) ? (int)axis : -1;
}

/* Does a ScatterND or a ScatterElements write every row of its own updates, in order? */
static int mlo_rewrites(mlo *m, const mlo_graph *g, const mlo_node *n) {
    if (n->n_input != 3 || n->input[0] != n->input[2] || !mlo_string_is(n, "reduction", "none", 1))
        return 0;
    const mlo_value *at = mlo_value_of(g, n->input[1]);
    const mlo_form f = mlo_form_of(at), data = mlo_form_of(mlo_value_of(g, n->input[0]));
    const int axis = at && at->tensor ? mlo_rewritten_axis(n, &data, f) : -1;
    mlo_array *a = axis >= 0 ? mlo_tensor_load(m, at->tensor) : NULL;
    if (!a) return 0;
    int64_t i = 0, inner = 1;
    for (int d = axis + 1; d < f.rank; d++) inner *= f.dims[d];
    while (i < mlo_array_count(a) && ((const int64_t *)a->data)[i] == i / inner % f.dims[axis]) i++;
    const int all = i == mlo_array_count(a);
    mlo_array_free(m, a);
    return all;
}

/* Which of its operands a choice by a constant is; -1: it is none, or of another form. */
static int mlo_chosen_operand(mlo *m, const mlo_graph *g, const mlo_node *n) {
    const mlo_value *c = n->n_input == 3 ? mlo_value_of(g, n->input[0]) : NULL;
    mlo_array *a = c && c->tensor ? mlo_tensor_load(m, c->tensor) : NULL;
    const int one = a && a->dtype == MLO_BOOL && mlo_array_count(a) == 1;
    const int which = one && *(const uint8_t *)a->data ? 1 : 2;
    mlo_array_free(m, a);
    if (!one) return -1;
    const mlo_form x = mlo_form_of(mlo_value_of(g, n->input[which]));
    const mlo_form y = mlo_form_of(mlo_value_of(g, n->output[0]));
    return mlo_form_known(&x) && !mlo_forms_differ(&x, &y) && mlo_form_known(&y) ? which : -1;
}

/* Does the node hand its input through? */
static int mlo_is_passthrough(mlo *m, const mlo_graph *g, const mlo_node *n) {
    if (!n->n_input || !n->n_output || !*n->output[0]) return 0;
    if (mlo_is(n, "Identity") || mlo_is(n, "Concat")) return n->n_input == 1 && n->n_output == 1;
    if (mlo_is(n, "CastLike") && n->n_input == 2) {
        const mlo_dtype a = mlo_form_of(mlo_value_of(g, n->input[0])).dtype;
        return a && a == mlo_form_of(mlo_value_of(g, n->input[1])).dtype;
    }
    if (mlo_is(n, "ScatterND") || mlo_is(n, "ScatterElements")) return mlo_rewrites(m, g, n);
    if (!mlo_is(n, "Dropout")) return 0;
    const mlo_value *mask = n->n_output > 1 ? mlo_value_of(g, n->output[1]) : NULL;
    const mlo_value *training = n->n_input > 2 ? mlo_value_of(g, n->input[2]) : NULL;
    int64_t on = 0;
    if (mask && mask->n_uses) return 0;
    if (training && (!training->tensor || mlo_tensor_ints(m, training->tensor, &on, 1) != 1))
        return 0;
    return !on;
}
/* The operand that a node hands through; -1: it does something. */
static int mlo_passed_operand(mlo *m, const mlo_graph *g, const mlo_node *n) {
    if (mlo_is(n, "Where") && n->n_output == 1) return mlo_chosen_operand(m, g, n);
    return mlo_is_passthrough(m, g, n) ? 0 : -1;
}
/* Notes the renaming that makes a pass-through node superfluous; 0 when it must stay (an input or
 * constant that is an output). */
static int mlo_pass(mlo *m, mlo_map *names, mlo_graph *g, const mlo_node *n, int operand) {
    const char *from = mlo_renamed(names, n->input[operand]);
    const mlo_value *out = mlo_value_of(g, n->output[0]), *in = mlo_value_of(g, from);
    if (!out || !in) return 0;
    if (!out->is_output) return !mlo_map_put(m, names, out->name, (void *)(uintptr_t)from);
    if (!in->producer || in->is_output || in->tensor || in->graph != g) return 0;
    return !mlo_map_put(m, names, from, (void *)(uintptr_t)out->name);
}

/* ---- what nobody needs ---------------------------------------------------- */

static int mlo_need_graph(mlo *m, mlo_map *needed, mlo_graph *g);
static int mlo_need_node(mlo *m, mlo_map *needed, mlo_node *n) {
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i)) MLO_TRY(mlo_map_put(m, needed, n->input[i], n));
    for (size_t i = 0; i < n->n_attr; i++) {
        if (n->attr[i]->g) MLO_TRY(mlo_need_graph(m, needed, n->attr[i]->g));
        for (size_t k = 0; k < n->attr[i]->n_graphs; k++)
            MLO_TRY(mlo_need_graph(m, needed, n->attr[i]->graphs[k]));
    }
    return 0;
}
static int mlo_need_graph(mlo *m, mlo_map *needed, mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++) MLO_TRY(mlo_need_node(m, needed, g->node[i]));
    for (size_t i = 0; i < g->n_output; i++) MLO_TRY(mlo_map_put(m, needed, g->output[i]->name, g));
    return 0;
}

/* With a fresh index: does every node make something that is used, and is every initializer used,
 * and every type that of a node's value? */
static int mlo_all_needed(const mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        int used = 0;
        for (size_t k = 0; k < g->node[i]->n_output && !used; k++) {
            const mlo_value *v = mlo_value_of(g, g->node[i]->output[k]);
            used = v && v->n_uses;
        }
        if (!used) return 0;
    }
    for (size_t i = 0; i < g->n_init; i++) {
        const mlo_value *v = mlo_value_of(g, g->init[i]->name);
        if (!v || !v->n_uses) return 0;
    }
    for (size_t i = 0; i < g->n_info; i++) {
        const mlo_value *v = mlo_value_of(g, g->info[i]->name);
        if (!v || !v->producer) return 0;
    }
    return 1;
}

/* Drops nodes, initializers and types that no output depends on. */
static int mlo_drop_dead(mlo *m, mlo_graph *g) {
    m->stale = 1;
    mlo_map needed = { NULL, 0, 0 }, made = { NULL, 0, 0 };
    size_t kept = g->n_node, n = 0;
    if (mlo_map_room(m, &needed, g->n_node + g->n_init) || mlo_map_room(m, &made, g->n_node))
        return mlo_failed(m);
    for (size_t i = 0; i < g->n_output; i++)
        MLO_TRY(mlo_map_put(m, &needed, g->output[i]->name, g));
    for (size_t i = g->n_node; i--;) {
        int alive = 0;
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            alive |= mlo_map_get(&needed, g->node[i]->output[k]) != NULL;
        if (!alive) continue;
        MLO_TRY(mlo_need_node(m, &needed, g->node[i]));
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (*g->node[i]->output[k]) MLO_TRY(mlo_map_put(m, &made, g->node[i]->output[k], g));
        g->node[--kept] = g->node[i];
    }
    for (size_t i = kept; i < g->n_node; i++) g->node[i - kept] = g->node[i];
    g->n_node -= kept;
    for (size_t i = 0; i < g->n_init; i++)
        if (mlo_map_get(&needed, g->init[i]->name)) g->init[n++] = g->init[i];
    g->n_init = n;
    n = 0;
    for (size_t i = 0; i < g->n_info; i++)
        if (mlo_map_get(&made, g->info[i]->name)) g->info[n++] = g->info[i];
    g->n_info = n;
    return 0;
}

static int mlo_fold_graph(mlo *m, mlo_graph *g, mlo_constant_budget *left) {
    mlo_map names = { NULL, 0, 0 };
    size_t kept = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = g->node[i];
        int folded = 0;
        const mlo_op *op = mlo_op_of(m, n);
        mlo_rename_node(&names, n);
        const int passed = mlo_passed_operand(m, g, n);
        if (passed >= 0 && mlo_pass(m, &names, g, n, passed)) continue;
        if (m->error.code) return mlo_failed(m);
        if (mlo_foldable(g, n, op)) MLO_TRY(mlo_fold_node(m, g, n, op, left, &folded));
        if (!folded) g->node[kept++] = n;
    }
    m->stale |= kept < g->n_node;
    g->n_node = kept;
    if (names.used) mlo_rename_graph(&names, g, 0);
    return !m->stale && mlo_all_needed(g) ? 0 : mlo_drop_dead(m, g);
}

/* Folds the bodies of the model's own loops, then the top graph. */
static int mlo_fold_constants(mlo *m) {
    mlo_graph *g = m->model->graph;
    mlo_constant_budget left = { MLO_FOLD_BYTES, MLO_FOLD_PRODUCTS };
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_graph *body = mlo_is_scan(g->node[i]) ? mlo_graph_of(g->node[i], "body") : NULL;
        if (body) MLO_TRY(mlo_fold_graph(m, body, &left));
    }
    return mlo_fold_graph(m, g, &left);
}
