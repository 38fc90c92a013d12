/* lower: the integer loop becomes a dataflow graph of streaming kernels.
 *
 * in:  a quantized model.    out: the same model; projections that share an input are one
 *      matrix-vector unit with a Split behind it, in front of rotations and norms where there are;
 *      weights are the integers that they were rounded
 *      to, of all iterations in one constant; every kernel has a name (metadata mlo.kernel); every
 *      outer node says where it runs (mlo.part: pre, core, post).
 * invariant: nothing is renumbered or rounded: the lowered model gives the same bits as the
 *      quantized one. There is hardware for each kernel, and no number inside can overflow in it:
 *      what does not fit is refused here.
 * example: MVU(x, Wq), MVU(x, Wk), MVU(x, Wv) -> MVU(x, Concat(Wq, Wk, Wv)) -> Split.
 * cost: O(nodes of the body), and a pass over the weights.
 */

static int mlo_rename_kernels(mlo *m, mlo_graph *body) {
    int count[MLO_N_KERNELS] = { 0 }; /* of each series, at the first kernel that has it */
    for (size_t i = 0; i < body->n_node; i++) {
        mlo_node *n = body->node[i];
        const mlo_kernel *k = mlo_kernel_of(n);
        if (!k) continue;
        int first = 0;
        while (!mlo_eq(mlo_kernels[first]->series, k->series)) first++;
        const char *name = mlo_format(m, "%s_%d", k->series, count[first]++);
        if (!name || mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_kernel, name))
            return mlo_failed(m);
    }
    return 0;
}

/* Metadata that the hardware of a matrix-vector unit depends on. */
static int mlo_same_widths(const mlo_node *a, const mlo_node *b) {
    static const char *const keys[] = { mlo_key_bits, mlo_key_weight_bits, mlo_key_pow2 };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (mlo_meta_int(a, keys[i], 0) != mlo_meta_int(b, keys[i], 0)) return 0;
    return 1;
}

enum { MLO_BETWEEN_MOST = 8 };

/* What makes a value for one reader alone; NULL: nothing does, or it has others. */
static mlo_node *mlo_made_for_one(const mlo_value *v) {
    return v && v->n_uses == 1 ? v->producer : NULL; /* an input left out has no value */
}

/* The rotation or norm that makes a value for one reader alone, between a projection and its
 * attention; NULL. */
static mlo_node *mlo_between(const mlo_value *v) {
    mlo_node *n = mlo_made_for_one(v);
    return n && (mlo_is_kernel(n, MLO_KERNEL_ROTATION) || mlo_is_kernel(n, MLO_KERNEL_NORM)) ? n
                                                                                             : NULL;
}

/* Three projections of one value, made for one attention and nothing else, whatever is between: the
 * node of each, or 0. */
static int mlo_projections(const mlo_graph *body, const mlo_node *attention, mlo_node **p) {
    for (int i = 0; i < 3; i++) {
        mlo_value *v = mlo_value_of(body, attention->input[i]);
        for (int n = 0; n < MLO_BETWEEN_MOST && mlo_between(v); n++)
            v = mlo_value_of(body, v->producer->input[0]);
        p[i] = mlo_made_for_one(v); /* so that they are three */
        if (!p[i] || !mlo_is_kernel(p[i], MLO_KERNEL_MATRIX) || mlo_has_table(p[i])) return 0;
        mlo_form w = mlo_form_of(mlo_value_of(body, p[i]->input[1]));
        mlo_form w0 = mlo_form_of(mlo_value_of(body, p[0]->input[1]));
        if (p[i]->input[0] != p[0]->input[0] || mlo_kernel_to(p[i]) != mlo_kernel_to(p[0])
            || !mlo_same_widths(p[i], p[0]) || w.rank != 2 || w.dims[1] != w0.dims[1])
            return 0;
    }
    return 1;
}

/* Concat of the projections' k-th inputs along the output channels. */
static const char *mlo_concat_inputs(mlo *m, mlo_graph *list, mlo_node **p, size_t k) {
    const char *name = mlo_format(m, "%s_qkv", p[0]->input[k]);
    mlo_node *n = mlo_node_new(m, "Concat", name);
    if (!name || !n || mlo_attr_int(m, n, "axis", k == 1 ? 1 : 0)) return NULL;
    for (int i = 0; i < 3; i++)
        if (mlo_node_input(m, n, p[i]->input[k])) return NULL;
    return mlo_node_output(m, n, name) || mlo_graph_add(m, list, n) ? NULL : name;
}

static int mlo_merge_projections(mlo *m, mlo_graph *body, mlo_graph *list, mlo_node **p) {
    const char *in[5] = { p[0]->input[0] };
    const char *out = mlo_format(m, "%s_qkv", p[0]->output[0]);
    const char *sizes = mlo_format(m, "%s_parts", mlo_or_empty(out));
    for (size_t k = 1; k < 5; k++)
        if (!(in[k] = mlo_concat_inputs(m, list, p, k))) return mlo_failed(m);
    mlo_node *n = mlo_node_new(m, mlo_mvu_kernel.op.name, out),
             *split = mlo_node_new(m, "Split", sizes);
    int64_t *parts = MLO_NEW_N(m, int64_t, 3);
    const int64_t three = 3;
    if (!n || !split || !parts || !sizes) return mlo_failed(m);
    for (int i = 0; i < 3; i++) parts[i] = mlo_form_of(mlo_value_of(body, p[i]->input[1])).dims[1];
    n->attr = p[0]->attr;
    n->n_attr = p[0]->n_attr;
    for (size_t i = 0; i < p[0]->n_meta; i++)
        if (!mlo_eq(p[0]->meta[i].key, mlo_key_scale)
            && mlo_meta_put(m, &n->meta, &n->n_meta, p[0]->meta[i].key, p[0]->meta[i].value))
            return mlo_failed(m);
    if (mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_parts, "3") || mlo_inputs(m, n, in, 5)
        || mlo_node_output(m, n, out) || mlo_graph_add(m, list, n))
        return mlo_failed(m);
    if (mlo_graph_init(
            m, body, mlo_tensor_new(m, sizes, MLO_INT64, &three, 1, parts, 3 * sizeof *parts)))
        return mlo_failed(m);
    if (mlo_node_input(m, split, out) || mlo_node_input(m, split, sizes)
        || mlo_attr_int(m, split, "axis", -1))
        return mlo_failed(m);
    for (int i = 0; i < 3; i++) {
        if (mlo_node_output(m, split, p[i]->output[0])) return mlo_failed(m);
        const char *scale = mlo_meta_get(p[i]->meta, p[i]->n_meta, mlo_key_scale);
        const char *key = mlo_format(m, "%s.%d", mlo_key_scale, i);
        if (scale && (!key || mlo_meta_put(m, &split->meta, &split->n_meta, key, scale)))
            return mlo_failed(m);
    }
    return mlo_graph_add(m, list, split);
}

/* What is between the projections and their attention, in its order: into `list`, or (NULL) with
 * the projections into `gone`. */
static int mlo_merge_between(
    mlo *m, const mlo_graph *body, const char *name, mlo_graph *list, mlo_map *gone) {
    const mlo_value *v = mlo_value_of(body, name);
    mlo_node *n = mlo_between(v);
    if (!n) return list ? 0 : mlo_map_put(m, gone, v->producer, v->producer);
    MLO_TRY(mlo_merge_between(m, body, n->input[0], list, gone));
    return list ? mlo_graph_add(m, list, n) : mlo_map_put(m, gone, n, n);
}

static int mlo_merge_all(mlo *m, mlo_graph *body) {
    mlo_graph list = { 0 };
    /* projections, and what is between them and their attention: all of it goes in front of that */
    mlo_map gone = { 0 };
    for (size_t i = 0; i < body->n_node; i++) {
        mlo_node *p[3];
        if (!mlo_is_kernel(body->node[i], MLO_KERNEL_ATTENTION)
            || !mlo_projections(body, body->node[i], p))
            continue;
        for (int k = 0; k < 3; k++)
            MLO_TRY(mlo_merge_between(m, body, body->node[i]->input[k], NULL, &gone));
    }
    for (size_t i = 0; i < body->n_node; i++) {
        mlo_node *n = body->node[i], *p[3];
        if (mlo_is_kernel(n, MLO_KERNEL_ATTENTION) && mlo_projections(body, n, p)) {
            MLO_TRY(mlo_merge_projections(m, body, &list, p));
            for (int k = 0; k < 3; k++)
                MLO_TRY(mlo_merge_between(m, body, n->input[k], &list, &gone));
        }
        if (!mlo_map_get(&gone, n) && mlo_graph_add(m, &list, n)) return mlo_failed(m);
    }
    body->node = list.node;
    body->n_node = list.n_node;
    return 0;
}

/* ---- parameters ----------------------------------------------------------- */

/* Is a value of the body computed from parameters alone? What kernels make is no parameter, nor is
 * what comes from around the loop. */
static int mlo_is_computed_parameter(const mlo_scan *s, const char *name) {
    const mlo_value *v = mlo_value_of(s->body, name);
    const mlo_node *n = v && v->graph == s->body ? v->producer : NULL;
    if (!n || mlo_kernel_of(n)) return 0;
    for (size_t k = 0; k < n->n_input; k++) {
        const mlo_value *in = mlo_has_input(n, k) ? mlo_value_of(s->body, n->input[k]) : NULL;
        size_t at = 0;
        if (!in || in->tensor) continue;
        if (in->producer && !mlo_is_computed_parameter(s, in->name)) return 0;
        while (!in->producer && at < s->n_state && s->body->input[at]->name != in->name) at++;
        if (!in->producer && (in->graph != s->body || at < s->n_state)) return 0;
    }
    return 1;
}

/* The numbers of a parameter of all iterations, one behind the other: an initializer by the name of `stack`. */
static int mlo_settle_numbers(
    mlo *m, mlo_scan *s, const char *name, const char *stack, const mlo_form *all) {
    const size_t count = (size_t)mlo_form_count(all), bytes = count * mlo_dtype_size(all->dtype);
    const size_t each = bytes / (size_t)s->iterations;
    char *data = (char *)mlo_alloc(m, bytes, 1);
    if (!data) return mlo_failed(m);
    for (int64_t i = 0; i < s->iterations; i++) {
        mlo_array *a = mlo_scan_value(m, s, name, i);
        if (a) memcpy(data + (size_t)i * each, a->data, each);
        mlo_array_free(m, a);
        if (!a) return mlo_failed(m);
    }
    mlo_little_endian(data, count, mlo_dtype_size(all->dtype));
    return mlo_graph_init(m, s->outer,
        mlo_tensor_new(m, stack, all->dtype, all->dims, (size_t)all->rank, data, bytes));
}

/* The value of all iterations becomes a constant that the loop scans; a sketch's matrix one without numbers. */
static int mlo_settle_parameter(mlo *m, mlo_scan *s, const char *name, int matrix) {
    mlo_form f = mlo_form_of(mlo_value_of(s->body, name)), all = f;
    if (!mlo_form_known(&f) || f.rank >= MLO_MAX_RANK)
        return mlo_fail_at(m, MLO_E_SHAPE, name, "a parameter of the loop has no known shape");
    all.rank = f.rank + 1;
    all.dims[0] = s->iterations;
    memcpy(all.dims + 1, f.dims, (size_t)f.rank * sizeof *f.dims);
    const char *stack = mlo_format(m, "%s_stack", name);
    mlo_value_info *info = mlo_info_new(m, name, &f);
    if (!stack || !info
        || (matrix && mlo_is_sketch(m) ? mlo_sketch_zeros(m, s->outer, stack, &all)
                                       : mlo_settle_numbers(m, s, name, stack, &all)))
        return mlo_failed(m);
    return mlo_node_input(m, s->node, stack) || !MLO_PUSH(m, s->body->input, s->body->n_input, info)
        ? mlo_failed(m)
        : 0;
}

/* What kernels read and nobody streams: integers, computed here for good, so that nothing after
 * lower needs the floats they came from. */
static int mlo_settle_parameters(mlo *m, mlo_scan *s) {
    mlo_map settled = { 0 }; /* node -> itself: its output is an input of the body now */
    size_t kept = 0;
    for (size_t i = 0; i < s->body->n_node; i++)
        for (size_t k = 0; mlo_kernel_of(s->body->node[i]) && k < s->body->node[i]->n_input; k++) {
            const char *name = s->body->node[i]->input[k];
            const int matrix = k == 1 && mlo_is_kernel(s->body->node[i], MLO_KERNEL_MATRIX);
            mlo_value *v = mlo_value_of(s->body, name);
            if (!mlo_is_computed_parameter(s, name) || v->producer->n_output != 1
                || mlo_map_get(&settled, v->producer))
                continue;
            MLO_TRY(mlo_settle_parameter(m, s, name, matrix));
            MLO_TRY(mlo_map_put(m, &settled, v->producer, v->producer));
        }
    for (size_t i = 0; i < s->body->n_node; i++)
        if (!mlo_map_get(&settled, s->body->node[i])) s->body->node[kept++] = s->body->node[i];
    s->body->n_node = kept;
    MLO_TRY(mlo_attr_int(m, s->node, "num_scan_inputs", (int64_t)(s->body->n_input - s->n_state)));
    return mlo_index(m, s->outer) || mlo_scan_prune(m, s) ? mlo_failed(m) : 0;
}

/* ---- parts ---------------------------------------------------------------- */

/* The latest part that a node's operands come from, and what its subgraphs read from around them;
 * NULL for constants. */
static const char *mlo_part_of_operands(const mlo_map *live, const mlo_node *n, const char *post) {
    const char *part = NULL;
    for (size_t k = 0; k < n->n_input && part != post; k++) {
        const char *p = (const char *)mlo_map_get(live, n->input[k]);
        if (p) part = p;
    }
    for (size_t i = 0; i < n->n_attr; i++)
        if (n->attr[i]->g)
            for (size_t k = 0; k < n->attr[i]->g->n_node && part != post; k++) {
                const char *p = mlo_part_of_operands(live, n->attr[i]->g->node[k], post);
                if (p) part = p;
            }
    return part;
}

/* Is it hardware around a decoder's loop: what makes rows of ids, or a kernel behind it? */
static int mlo_is_around(mlo *m, const mlo_graph *g, const mlo_node *n) {
    const mlo_kernel *k = mlo_kernel_of(n);
    return mlo_value_of(g, mlo_intern(m, mlo_head_rows)) != NULL
        && ((k && k->unit) || mlo_meta_get(n->meta, n->n_meta, mlo_key_front));
}

/* Where outer nodes run: what depends on the loop is post, what depends on a model input is pre,
 * constants go with who uses them. But a mask that is constant is pre, too: hardware has it as a
 * stream. */
static int mlo_mark_parts(mlo *m, mlo_graph *g, const mlo_node *loop) {
    mlo_map live = { 0 }; /* value -> "pre" or "post" */
    static const char pre[] = "pre", post[] = "post";
    for (size_t i = 0; i < g->n_input; i++)
        MLO_TRY(mlo_map_put(m, &live, g->input[i]->name, (void *)(uintptr_t)pre));
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = g->node[i];
        const char *part = n == loop ? post : mlo_part_of_operands(&live, n, post);
        const int around = mlo_is_around(m, g, n);
        if (!part && n->n_output
            && (mlo_eq(n->output[0], "mlo_mask") || mlo_eq(n->output[0], mlo_memory_mask)))
            part = pre;
        if (mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_part,
                n == loop || around ? "core"
                    : part          ? part
                                    : "constant"))
            return mlo_failed(m);
        for (size_t k = 0; part && k < n->n_output; k++)
            if (mlo_map_put(m, &live, n->output[k], (void *)(uintptr_t)part)) return mlo_failed(m);
    }
    return 0;
}

/* "loop_1 (decoder/decoder.layers.0)" */
static const char *mlo_loop_text(mlo *m, const mlo_node *n) {
    const char *scope = mlo_meta_get(n->meta, n->n_meta, mlo_key_scope);
    return mlo_format(m, scope ? "%s (%s)" : "%s", mlo_node_name(n), scope);
}

/* Of several loops one becomes hardware: which, how much of the loops' work that is, where the
 * others go, how another one is chosen. */
static int mlo_inform_loops(mlo *m, mlo_graph *g, const mlo_node *chosen) {
    mlo_text others = { m, NULL, 0, 0 };
    const char *next = NULL;
    double all = 0, own = 0;
    for (size_t i = 0; i < g->n_node; i++)
        if (mlo_is_scan(g->node[i])) {
            const mlo_node *n = g->node[i];
            mlo_scan s;
            if (mlo_scan_of(m, g, g->node[i], &s)) return mlo_failed(m);
            const double macs = (double)mlo_body_macs(s.body) * (double)s.iterations;
            all += macs;
            if (n == chosen) {
                own = macs;
                continue;
            }
            const char *part = mlo_meta_get(n->meta, n->n_meta, mlo_key_part);
            if (!next) next = mlo_node_name(n);
            mlo_printf(&others, "; %s goes to %s.onnx", mlo_loop_text(m, n),
                mlo_eq(part, "post") ? "post" : "pre");
        }
    if (next && others.text)
        mlo_inform(m,
            "%s becomes hardware: %.0f %% of the loops' multiply-accumulates%s; --loop %s chooses "
            "it",
            mlo_loop_text(m, chosen), all > 0 ? 100 * own / all : 0, others.text, next);
    mlo_text_free(&others);
    return mlo_failed(m);
}

/* The `lower` stage. */
static int mlo_lower(mlo *m) {
    mlo_scan s;
    if (mlo_scan_choose(m, &s)) return mlo_failed(m);
    if (mlo_form_of(mlo_value_of(s.outer, s.node->input[0])).dtype != MLO_INT16)
        return mlo_fail(m, MLO_E_UNSUPPORTED, s.node,
            "the loop is not quantized; `mlo quantize` first (and choose the same --loop)");
    if (mlo_merge_all(m, s.body) || mlo_index(m, m->model->graph) || mlo_infer(m)
        || mlo_settle_parameters(m, &s) || mlo_infer(m))
        return mlo_failed(m);
    mlo_core *c = MLO_NEW(m, mlo_core);
    if (!c || mlo_rename_kernels(m, s.body)
        || (mlo_value_of(s.outer, mlo_intern(m, mlo_head_rows)) && mlo_rename_kernels(m, s.outer))
        || mlo_mark_parts(m, s.outer, s.node)
        || mlo_meta_put(m, &s.node->meta, &s.node->n_meta, mlo_key_core, "1"))
        return mlo_failed(m);
    return mlo_core_build(m, c) ? mlo_failed(m) : mlo_inform_loops(m, s.outer, s.node);
}
