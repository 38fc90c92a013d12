/* infer: finds the element type and shape of every value, and evaluates constants away.
 *
 * in:  an indexed model whose graph inputs have types.
 * out: mlo_value.info of every value; then a graph without what is constant.
 *
 * invariant: what cannot be known stays unknown (-1). What is known twice must agree (MLO_E_SHAPE,
 *     MLO_E_TYPE), where ONNX Runtime warns and goes on; a symbol agrees with any size. Types that
 *     an exporter wrote fill in what no rule knows.
 * example: Reshape's target often is Concat(Shape(x)[0], 32, 64): small integer values are inferred
 *     too, with MLO_UNKNOWN for elements that are not known yet.
 * cost: O(nodes); reads only the bytes of small constants that a shape depends on.
 */
/* elements of a value that inference follows; bytes of what folding touches */
enum { MLO_SMALL = 64, MLO_LARGE = 1 << 20 };

typedef struct {
    mlo *m;
    int opset;
    mlo_map known; /* mlo_value -> mlo_array */
    /* all of them, freed at the end */
    mlo_array **made;
    size_t n_made;
    /* at work */
    mlo_graph *g;
    mlo_node *node;
} mlo_inference;

/* ---- small values --------------------------------------------------------- */

static int mlo_learn(mlo_inference *k, mlo_value *v, mlo_array *a) {
    if (!a) return mlo_failed(k->m);
    if (!MLO_PUSH(k->m, k->made, k->n_made, a)) {
        mlo_array_free(k->m, a);
        return mlo_failed(k->m);
    }
    return mlo_map_put(k->m, &k->known, v, a);
}

/* The value of a name, at most `most` elements: known, or a constant (loaded now), or - int64
 * lists of known length - all unknown. */
static const mlo_array *mlo_known(mlo_inference *k, const char *name, int64_t most) {
    mlo_value *v = mlo_value_of(k->g, name);
    const mlo_array *a = (const mlo_array *)mlo_map_get(&k->known, v);
    mlo_form f = mlo_form_of(v);
    if (a || !v || !mlo_form_known(&f) || !mlo_dtype_size(f.dtype)) return a;
    if (mlo_form_count(&f) > most) return NULL;
    if (v->tensor) {
        if (mlo_learn(k, v, mlo_tensor_load(k->m, v->tensor))) return NULL;
    } else if (f.dtype == MLO_INT64 && f.rank <= 1) {
        mlo_array *blank = mlo_array_new(k->m, f.dtype, f.rank, f.dims);
        for (int64_t i = 0; blank && i < mlo_form_count(&f); i++)
            ((int64_t *)blank->data)[i] = MLO_UNKNOWN;
        if (mlo_learn(k, v, blank)) return NULL;
    }
    return (const mlo_array *)mlo_map_get(&k->known, v);
}
static const mlo_array *mlo_infer_value(const mlo_shapes *s, size_t i) {
    mlo_inference *k = (mlo_inference *)s->from;
    return mlo_has_input(s->node, i) ? mlo_known(k, s->node->input[i], 1024) : NULL;
}

static int mlo_all_known(const mlo_array *a) {
    if (a->dtype == MLO_INT64)
        for (int64_t i = 0; i < mlo_array_count(a); i++)
            if (((const int64_t *)a->data)[i] == MLO_UNKNOWN) return 0;
    return 1;
}
/* Ops that only move elements: they carry unknown ones along. */
static int mlo_moves(const mlo_node *n) {
    static const char *const ops[] = { "Gather", "Concat", "Unsqueeze", "Squeeze", "Slice",
        "Identity", "Reshape", "Transpose", "Expand", "Tile", "Split", "Flatten" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (mlo_is(n, ops[i])) return 1;
    return 0;
}

/* Shape's value, as far as the form is known. */
static int mlo_infer_shape_value(mlo_inference *k, const mlo_form *x) {
    mlo_value *v = mlo_value_of(k->g, k->node->output[0]);
    int a, b;
    if (x->rank < 0 || !v) return 0;
    mlo_shape_range(k->node, x->rank, &a, &b);
    int64_t n = b - a;
    mlo_array *list = mlo_array_new(k->m, MLO_INT64, 1, &n);
    for (int i = a; list && i < b; i++)
        ((int64_t *)list->data)[i - a] = x->dims[i] < 0 ? MLO_UNKNOWN : x->dims[i];
    return mlo_learn(k, v, list);
}

/* Is the output small enough to be followed? Integers that shapes are made of, and a few floats
 * that they come from. */
static int mlo_worth_knowing(const mlo_form *f) {
    if (!mlo_form_known(f) || !mlo_dtype_size(f->dtype)) return 0;
    return mlo_form_count(f) <= (mlo_dtype_is_float(f->dtype) ? 4 : MLO_SMALL);
}

/* Evaluates a node whose inputs are known and whose outputs are small. */
static int mlo_infer_values(
    mlo_inference *k, const mlo_op *op, const mlo_form *in, const mlo_form *out) {
    mlo_node *n = k->node;
    mlo *m = k->m;
    const mlo_array *args[MLO_MAX_LIST];
    mlo_array *made[MLO_MAX_LIST];
    if (mlo_is(n, "Shape")) return mlo_infer_shape_value(k, in);
    if (!op->run || n->n_input > MLO_MAX_LIST || n->n_output > MLO_MAX_LIST
        || (n->domain && *n->domain && !mlo_eq(n->domain, "ai.onnx")))
        return 0;
    for (size_t i = 0; i < n->n_output; i++)
        if (*n->output[i] && !mlo_worth_knowing(&out[i])) return 0;
    int moves = mlo_moves(n), all = mlo_is(n, "Concat");
    for (size_t i = 0; i < n->n_input; i++) {
        args[i] = mlo_known(k, n->input[i], MLO_SMALL);
        if (mlo_has_input(n, i)
            && (!args[i] || (!(moves && (all || !i)) && !mlo_all_known(args[i]))))
            return mlo_failed(m);
    }
    MLO_TRY(mlo_call_node(m, op, n, k->opset, args, made));
    for (size_t i = 0; i < n->n_output; i++) {
        mlo_value *v = mlo_value_of(k->g, n->output[i]);
        if (made[i] && v) {
            if (mlo_learn(k, v, made[i])) return mlo_failed(m);
        } else
            mlo_array_free(m, made[i]);
    }
    return 0;
}

/* ---- writing types down --------------------------------------------------- */

/* The type of a form; dimensions it does not know keep what the old type calls them. */
static mlo_type *mlo_type_merged(mlo *m, const mlo_form *f, const mlo_type *old) {
    mlo_type *t = mlo_type_new(m, f);
    const mlo_shape *s = old && old->tensor ? old->tensor->shape : NULL;
    if (!t || f->rank < 0 || !s || s->n_dim != (size_t)f->rank) return t;
    for (int i = 0; i < f->rank; i++) {
        if (f->dims[i] < 0)
            t->tensor->shape->dim[i] = s->dim[i];
        else
            t->tensor->shape->dim[i].denotation = s->dim[i].denotation;
    }
    t->denotation = old->denotation;
    return t;
}

/* f := f and what was written before, which must agree. */
static int mlo_form_merge(
    mlo *m, const mlo_node *n, const char *name, mlo_form *f, const mlo_form *old) {
    MLO_TRY(mlo_as_declared(m, n, name, old, f));
    if (!f->dtype) f->dtype = old->dtype;
    if (old->rank < 0) return 0;
    if (f->rank < 0) {
        f->rank = old->rank;
        memcpy(f->dims, old->dims, sizeof f->dims);
        return 0;
    }
    for (int i = 0; i < f->rank; i++)
        if (f->dims[i] < 0) f->dims[i] = old->dims[i];
    return 0;
}

static int mlo_form_same(const mlo_form *a, const mlo_form *b) {
    if (a->dtype != b->dtype || a->rank != b->rank) return 0;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return 0;
    return 1;
}

/* Records what is now known of a value. */
static int mlo_infer_store(mlo *m, mlo_graph *g, const mlo_node *n, mlo_value *v, mlo_form f) {
    mlo_form old = mlo_form_of(v);
    if (!f.dtype && f.rank < 0) return 0;
    MLO_TRY(mlo_form_merge(m, n, v->name, &f, &old));
    /* a shape without a type cannot be written down */
    if (!f.dtype) return 0;
    if (mlo_form_same(&f, &old)) return 0;
    if (!v->info) {
        if (!(v->info = mlo_info_new(m, v->name, &f)) || !MLO_PUSH(m, g->info, g->n_info, v->info))
            return mlo_failed(m);
        return 0;
    }
    v->info->type = mlo_type_merged(m, &f, v->info->type);
    return mlo_failed(m);
}

/* ---- subgraphs ------------------------------------------------------------ */

static int mlo_infer_graph(mlo_inference *k, mlo_graph *g);

static mlo_form mlo_unknown_form(void) {
    mlo_form f = { MLO_UNDEFINED, -1, { 0 } };
    return f;
}
/* Sizes beyond MLO_MAX_DIM, which only a hostile model declares, count as unknown. */
static mlo_form mlo_form_named(const mlo_graph *g, const char *name) {
    mlo_form f = mlo_form_of(mlo_value_of(g, name));
    for (int i = 0; i < f.rank; i++)
        if (f.dims[i] > MLO_MAX_DIM || f.dims[i] < 0) f.dims[i] = -1;
    return f;
}

static int mlo_infer_input(mlo_inference *k, mlo_graph *body, size_t i, const mlo_form *f) {
    mlo_value *v = mlo_value_of(body, body->input[i]->name);
    return v ? mlo_infer_store(k->m, body, k->node, v, *f) : 0;
}
/* Infers a subgraph and comes back to this node. */
static int mlo_infer_body(mlo_inference *k, mlo_graph *body) {
    mlo_graph *g = k->g;
    mlo_node *n = k->node;
    int r = mlo_infer_graph(k, body);
    k->g = g;
    k->node = n;
    return r;
}

static mlo_form mlo_form_without(const mlo_form *f, int axis) {
    mlo_form r = *f;
    r.rank = 0;
    for (int i = 0; i < f->rank; i++)
        if (i != axis) r.dims[r.rank++] = f->dims[i];
    return r;
}
static mlo_form mlo_form_with(const mlo_form *f, int64_t axis, int64_t n) {
    mlo_form r = *f;
    if (f->rank < 0 || f->rank >= MLO_MAX_RANK) {
        r.rank = -1;
        return r;
    }
    if (axis < 0) axis += f->rank + 1;
    r.rank = f->rank + 1;
    for (int i = 0; i < r.rank; i++)
        r.dims[i] = i < axis ? f->dims[i] : i == axis ? n : f->dims[i - 1];
    return r;
}

static int mlo_infer_scan(mlo_inference *k, const mlo_form *in, mlo_form *out) {
    mlo_node *n = k->node;
    mlo *m = k->m;
    mlo_graph *g = mlo_scan_body(m, n);
    size_t n_state = n->n_input - mlo_scan_stacks(n);
    int64_t length = -1;
    if (!g) return mlo_failed(m);
    for (size_t i = 0; i < n->n_input; i++) {
        mlo_form f = in[i];
        if (i >= n_state && f.rank >= 0) {
            int64_t axis = mlo_int_at(n, "scan_input_axes", i - n_state, 0);
            if (axis < 0) axis += f.rank;
            if (axis < 0 || axis >= f.rank)
                return mlo_fail(m, MLO_E_SHAPE, n, "scan input '%s' has rank %d and no axis %lld",
                    n->input[i], f.rank, (long long)axis);
            if (length >= 0 && f.dims[axis] >= 0 && length != f.dims[axis])
                return mlo_fail(m, MLO_E_SHAPE, n,
                    "scan input '%s' has %lld iterations, others %lld", n->input[i],
                    (long long)f.dims[axis], (long long)length);
            if (f.dims[axis] >= 0) length = f.dims[axis];
            f = mlo_form_without(&f, (int)axis);
        }
        MLO_TRY(mlo_infer_input(k, g, i, &f));
    }
    MLO_TRY(mlo_infer_body(k, g));
    for (size_t i = 0; i < n->n_output; i++) {
        mlo_form f = mlo_form_named(g, g->output[i]->name);
        if (i >= n_state) {
            int64_t axis = mlo_int_at(n, "scan_output_axes", i - n_state, 0);
            if (f.rank >= 0 && (axis < -f.rank - 1 || axis > f.rank))
                return mlo_fail(m, MLO_E_SHAPE, n, "scan output '%s' has rank %d and no axis %lld",
                    n->output[i], f.rank + 1, (long long)axis);
            out[i] = mlo_form_with(&f, axis, length);
            continue;
        }
        out[i] = in[i];
        if (mlo_meta_get(n->meta, n->n_meta, mlo_key_head))
            out[i] = f;
        else if (mlo_form_known(&f) && mlo_form_known(&in[i]) && !mlo_form_same(&f, &in[i]))
            return mlo_fail(m, MLO_E_SHAPE, n, "state '%s' comes in as %s %s and leaves as %s %s",
                n->input[i], mlo_dtype_name(in[i].dtype), mlo_dims_text(m, in[i].rank, in[i].dims),
                mlo_dtype_name(f.dtype), mlo_dims_text(m, f.rank, f.dims));
    }
    return 0;
}

/* Loop: states may change shape from one iteration to the next, so only type and rank of the
 * initial ones are passed in. */
static int mlo_infer_loop(mlo_inference *k, const mlo_form *in, mlo_form *out) {
    mlo_node *n = k->node;
    mlo_graph *g = mlo_loop_body(k->m, n);
    if (!g) return mlo_failed(k->m);
    for (size_t i = 0; i < n->n_input; i++) {
        mlo_form f = in[i];
        if (i < 2) f = mlo_form_scalar(i ? MLO_BOOL : MLO_INT64);
        for (int d = 0; d < f.rank; d++) f.dims[d] = -1;
        MLO_TRY(mlo_infer_input(k, g, i, &f));
    }
    MLO_TRY(mlo_infer_body(k, g));
    for (size_t i = 0; i < n->n_output; i++) {
        mlo_form f = mlo_form_named(g, g->output[i + 1]->name);
        out[i] = i + 2 < n->n_input ? f : mlo_form_with(&f, 0, -1);
        if (i + 2 < n->n_input && !mlo_form_same(&f, &in[i + 2])) {
            out[i].rank = -1;
            out[i].dtype = in[i + 2].dtype;
        }
    }
    return 0;
}

/* If: what both branches agree on. */
static int mlo_infer_if(mlo_inference *k, mlo_form *out) {
    mlo_node *n = k->node;
    mlo_form f;
    for (int b = 0; b < 2; b++) {
        mlo_graph *g = mlo_fitting(k->m, n, b ? "else_branch" : "then_branch", 0, n->n_output);
        if (!g) return mlo_failed(k->m);
        MLO_TRY(mlo_infer_body(k, g));
        for (size_t i = 0; i < n->n_output; i++) {
            f = mlo_form_named(g, g->output[i]->name);
            if (!b) {
                out[i] = f;
                continue;
            }
            if (f.dtype != out[i].dtype) out[i].dtype = MLO_UNDEFINED;
            if (f.rank != out[i].rank) out[i].rank = -1;
            for (int d = 0; d < out[i].rank; d++)
                if (f.dims[d] != out[i].dims[d]) out[i].dims[d] = -1;
        }
    }
    return 0;
}

/* ---- nodes ---------------------------------------------------------------- */

static int mlo_infer_node(mlo_inference *k, mlo_node *n) {
    mlo *m = k->m;
    mlo_graph *g = k->g;
    const mlo_op *op = mlo_op_of(m, n);
    if (op && n->n_input < op->least)
        return mlo_fail(m, MLO_E_GRAPH, n, "has %zu inputs, needs %zu", n->n_input, op->least);
    mlo_form *form = (mlo_form *)mlo_scratch(m, n->n_input + n->n_output + 1, sizeof *form), *out;
    if (!form) return mlo_failed(m);
    out = form + n->n_input;
    k->node = n;
    for (size_t i = 0; i < n->n_input; i++)
        form[i] = mlo_has_input(n, i) ? mlo_form_named(g, n->input[i]) : mlo_unknown_form();
    for (size_t i = 0; i < n->n_output; i++) {
        out[i] = mlo_unknown_form();
        /* for rules that leave the type open */
        out[i].dtype = mlo_form_named(g, n->output[i]).dtype;
    }
    mlo_shapes s = { m, n, k->opset, form, n->n_input, out, n->n_output, mlo_infer_value, NULL };
    s.from = k;
    if (mlo_is_scan(n) && k->opset >= 9)
        mlo_infer_scan(k, form, out);
    else if (mlo_is(n, "Loop"))
        mlo_infer_loop(k, form, out);
    else if (mlo_is(n, "If"))
        mlo_infer_if(k, out);
    else if (op && n->n_output)
        op->shape(&s);
    for (size_t i = 0; i < n->n_output && !m->error.code; i++) {
        mlo_value *v = mlo_value_of(g, n->output[i]);
        for (int d = 0; d < out[i].rank; d++)
            if (out[i].dims[d] > MLO_MAX_DIM)
                mlo_fail(m, MLO_E_SHAPE, n,
                    "output %zu has a dimension of %lld, more than mlo can handle", i,
                    (long long)out[i].dims[d]);
        if (v && !m->error.code) mlo_infer_store(m, g, n, v, out[i]);
    }
    if (!m->error.code && op && n->n_output) mlo_infer_values(k, op, form, out);
    mlo_scratch_free(m, form);
    return mlo_failed(m);
}

/* Graph outputs declare a type of their own: it gets what was found out. */
static int mlo_infer_outputs(mlo *m, mlo_graph *g) {
    for (size_t i = 0; i < g->n_output; i++) {
        mlo_value *v = mlo_value_of(g, g->output[i]->name), declared;
        mlo_form f = mlo_form_of(v), old;
        if (v->info == g->output[i]) continue;
        declared = *v;
        declared.tensor = NULL;
        declared.info = g->output[i];
        old = mlo_form_of(&declared);
        if (!f.dtype && f.rank < 0) continue;
        MLO_TRY(mlo_form_merge(m, v->producer, v->name, &f, &old));
        if (!mlo_form_same(&f, &old))
            g->output[i]->type = mlo_type_merged(m, &f, g->output[i]->type);
    }
    return mlo_failed(m);
}
/* A shape without an element type (past an operator that nobody knows) is no type to write down:
 * ONNX Runtime refuses the file. */
static void mlo_infer_forget(mlo_graph *g) {
    size_t kept = 0;
    for (size_t i = 0; i < g->n_info; i++) {
        const mlo_tensor_type *t = g->info[i]->type ? g->info[i]->type->tensor : NULL;
        if (!t || t->elem_type) {
            g->info[kept++] = g->info[i];
            continue;
        }
        mlo_value *v = (mlo_value *)mlo_map_get(&g->values, g->info[i]->name);
        if (v && v->info == g->info[i]) v->info = NULL;
    }
    g->n_info = kept;
}
static int mlo_infer_graph(mlo_inference *k, mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        k->g = g;
        MLO_TRY(mlo_infer_node(k, g->node[i]));
    }
    mlo_infer_forget(g);
    return mlo_infer_outputs(k->m, g);
}

/* Types and shapes of all values of the model, which must be indexed. */
static int mlo_infer(mlo *m) {
    mlo_inference k;
    memset(&k, 0, sizeof k);
    k.m = m;
    k.opset = mlo_opset_of(m);
    mlo_infer_graph(&k, m->model->graph);
    for (size_t i = 0; i < k.n_made; i++) mlo_array_free(m, k.made[i]);
    return mlo_failed(m);
}
