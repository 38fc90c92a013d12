/* instants: values that depend on nothing but how many tokens are past: what they are at each token.
 *
 * in:  an indexed model of one token with a past, at the last of N tokens: its inputs that say where the token is, and
 *      where a past's length is open what forms depend on it.
 * out: each such value that a node reads beside others (cosines and sines of a position, a row of a mask, a position
 *      itself) as N arrays, one behind the other; where they differ the node reads an input of that name from now on.
 *      What only says sizes is left: it is as at the last token; nodes of which they differ are noted.
 *
 * A value that has a place for each key grows from token to token. It does not differ where what each token has of it
 * is what the last one has. The places that are not there yet are as masks say of what is hidden: false, or the lowest
 * number; and a mask that hides nothing of what is there does differ, so that those of all layers are alike.
 *
 * invariant: array i is what ONNX makes of a past of i tokens.
 * example: Cos(Mul(Cast(Shape(past)[2]), inv_freq)) [1, 1, 4] at 16 tokens: 16 arrays [1, 1, 4].
 * cost: N evaluations of the nodes in front of such values.
 */

/* A length of a past that is no size of a model by chance: a prime. */
enum { MLO_INSTANT_PROBE = 9973 };

/* What a value is at each token. */
typedef struct {
    const char *name;
    mlo_form form; /* at the last token */
    int grows; /* the axis of keys; -1: it has none */
    mlo_array *all; /* [tokens, elements] */
    int put; /* 1: it is an input of that name from now on */
    int beside; /* 1: nodes read it beside others, not for sizes alone */
} mlo_instant;

/* What a value depends on. */
typedef enum { MLO_ON_INPUTS, MLO_ON_NOTHING, MLO_ON_INSTANT } mlo_dependence;

typedef struct {
    mlo *m;
    mlo_graph *g;
    int64_t tokens;
    int fixed; /* 1: the past has a length of its own */
    int placed; /* 1: something says where the token is */
    mlo_map at; /* a value's name -> its mlo_instant */
    mlo_instant **instant; /* all of them */
    size_t n_instant;
    /* a value's name -> its mlo_form, where MLO_INSTANT_PROBE tokens are past; empty: none is open */
    mlo_map forms;
    mlo_map sized; /* nodes of which sizes or places differ from token to token */
    /* at work */
    mlo_map on; /* a value's name -> 1 + its mlo_dependence */
    mlo_node **node; /* that are evaluated, in order */
    size_t n_node;
    mlo_instant **asked; /* what is asked for */
    size_t n_asked;
} mlo_instants;

static mlo_instant *mlo_instant_of(const mlo_instants *k, const char *name) {
    return (mlo_instant *)mlo_map_get(&k->at, name);
}
static mlo_instant *mlo_instant_new(mlo_instants *k, const char *name) {
    mlo_instant *o = MLO_NEW(k->m, mlo_instant);
    if (!o || !MLO_PUSH(k->m, k->instant, k->n_instant, o)) return NULL;
    o->name = name;
    o->grows = -1;
    return o;
}
static void mlo_instants_free(mlo_instants *k) {
    for (size_t i = 0; i < k->n_instant; i++) mlo_array_free(k->m, k->instant[i]->all);
    k->n_instant = 0;
}

/* What a value is at a token. */
static char *mlo_instant_array(const mlo_instant *o, int64_t token) {
    return (char *)o->all->data + (size_t)(token * o->all->dims[1]) * mlo_dtype_size(o->form.dtype);
}

/* An input that says where the token is: the number of those in front of it. */
static int mlo_instant_counts(mlo_instants *k, const char *name) {
    mlo_instant *o = mlo_instant_new(k, name);
    if (!o) return mlo_failed(k->m);
    o->form = mlo_form_of(mlo_value_of(k->g, name));
    const int64_t dims[2] = { k->tokens, 1 };
    o->all = mlo_array_new(k->m, o->form.dtype, 2, dims);
    for (int64_t i = 0; o->all && i < k->tokens; i++)
        mlo_convert(o->form.dtype, mlo_instant_array(o, i), MLO_INT64, &i, 1);
    return mlo_map_put(k->m, &k->at, name, o);
}

/* ---- sizes that depend on the past ---------------------------------------- */

/* A size where `past` tokens are past, that is `probed` where MLO_INSTANT_PROBE are: so many of them, or of them with
 * the new one. */
static int64_t mlo_instant_size(int64_t probed, int64_t past) {
    if (probed < MLO_INSTANT_PROBE) return probed;
    if (probed % (MLO_INSTANT_PROBE + 1) == 0) return probed / (MLO_INSTANT_PROBE + 1) * (past + 1);
    return probed % MLO_INSTANT_PROBE ? probed : probed / MLO_INSTANT_PROBE * past;
}
/* The form of a value that only a Shape reads, at a token; *varies: it depends on that. */
static mlo_form mlo_instant_form(
    const mlo_instants *k, const char *name, int64_t token, int *varies) {
    const mlo_form *probed = (const mlo_form *)mlo_map_get(&k->forms, name);
    mlo_form f = probed ? *probed : mlo_form_of(mlo_value_of(k->g, name));
    *varies = 0;
    for (int d = 0; probed && d < f.rank; d++) {
        const int64_t size = mlo_instant_size(f.dims[d], token);
        *varies |= size != f.dims[d];
        f.dims[d] = size;
    }
    return f;
}

/* ---- what depends on what ------------------------------------------------- */

static mlo_dependence mlo_depends(const mlo_instants *k, const char *name) {
    const mlo_value *v = mlo_value_of(k->g, name);
    const uintptr_t noted = (uintptr_t)mlo_map_get(&k->on, name);
    if (mlo_instant_of(k, name)) return MLO_ON_INSTANT;
    if (v && v->tensor) return MLO_ON_NOTHING;
    return noted ? (mlo_dependence)(noted - 1) : MLO_ON_INPUTS;
}

static mlo_dependence mlo_node_depends(const mlo_instants *k, const mlo_node *n) {
    const mlo_op *op = mlo_op_of(k->m, n);
    mlo_dependence on = MLO_ON_NOTHING;
    int varies;
    if (!op || !op->run || !n->n_output
        || (n->domain && *n->domain && !mlo_eq(n->domain, "ai.onnx")))
        return MLO_ON_INPUTS;
    for (size_t a = 0; a < n->n_attr; a++)
        if (n->attr[a]->g || n->attr[a]->n_graphs) return MLO_ON_INPUTS;
    if (mlo_reads_shape(n) && mlo_has_input(n, 0) && mlo_depends(k, n->input[0]) == MLO_ON_INPUTS) {
        const mlo_form f = mlo_instant_form(k, n->input[0], 0, &varies);
        return varies ? MLO_ON_INSTANT : mlo_form_known(&f) ? MLO_ON_NOTHING : MLO_ON_INPUTS;
    }
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_dependence d = mlo_has_input(n, i) ? mlo_depends(k, n->input[i]) : MLO_ON_NOTHING;
        if (d == MLO_ON_INPUTS) return d;
        if (d > on) on = d;
    }
    return on;
}

/* Does the input say how (sizes, axes, places), not what? */
static int mlo_says_how(const mlo_node *n, size_t input) {
    static const char *const how[] = { "Reshape", "Expand", "Slice", "Tile", "Pad", "Split",
        "Squeeze", "Unsqueeze", "ReduceSum", "ReduceMean", "ReduceMax", "CumSum", "Trilu",
        "Dropout", NULL };
    return input && mlo_is_one_of(n, how);
}

static int mlo_instant_is_put(const mlo_instants *k, const char *name) {
    const mlo_instant *o = mlo_instant_of(k, name);
    return o && o->put;
}
static int mlo_instant_asked(mlo_instants *k, const char *name, int beside) {
    mlo_instant *o = NULL;
    for (size_t i = 0; i < k->n_asked && !o; i++)
        if (k->asked[i]->name == name) o = k->asked[i];
    if (!o && (!(o = mlo_instant_new(k, name)) || !MLO_PUSH(k->m, k->asked, k->n_asked, o)))
        return mlo_failed(k->m);
    o->beside |= beside;
    return 0;
}

/* What depends on what, and which values that depend on the token are read beside others. */
static int mlo_instants_ask(mlo_instants *k) {
    k->on = (mlo_map){ NULL, 0, 0 };
    k->n_asked = 0;
    for (size_t i = 0; i < k->g->n_node; i++) {
        const mlo_node *n = k->g->node[i];
        const mlo_dependence on = mlo_node_depends(k, n);
        for (size_t j = 0; j < n->n_output; j++)
            if (n->output[j] && *n->output[j])
                MLO_TRY(mlo_map_put(k->m, &k->on, n->output[j], (void *)((uintptr_t)on + 1)));
        for (size_t j = 0; on == MLO_ON_INPUTS && j < n->n_input; j++)
            if (mlo_has_input(n, j) && !mlo_instant_is_put(k, n->input[j])
                && mlo_depends(k, n->input[j]) == MLO_ON_INSTANT)
                MLO_TRY(mlo_instant_asked(k, n->input[j], !mlo_says_how(n, j)));
    }
    return 0;
}

/* ---- evaluating ----------------------------------------------------------- */

/* The nodes that values stand on which are this dependent, in order, to k->node. `wanted`: names. */
static int mlo_instants_nodes(mlo_instants *k, mlo_dependence on, mlo_map *wanted) {
    k->n_node = 0;
    for (size_t i = k->g->n_node; i--;) {
        mlo_node *n = k->g->node[i];
        int needed = 0;
        for (size_t j = 0; j < n->n_output; j++)
            needed |= mlo_map_get(wanted, n->output[j]) && mlo_depends(k, n->output[j]) == on
                && !mlo_instant_of(k, n->output[j]);
        if (!needed) continue;
        if (!MLO_PUSH(k->m, k->node, k->n_node, n)) return mlo_failed(k->m);
        for (size_t j = 0; j < n->n_input; j++)
            if (mlo_has_input(n, j)) MLO_TRY(mlo_map_put(k->m, wanted, n->input[j], n));
    }
    for (size_t i = 0; i < k->n_node / 2; i++) {
        mlo_node *n = k->node[i];
        k->node[i] = k->node[k->n_node - 1 - i];
        k->node[k->n_node - 1 - i] = n;
    }
    return 0;
}

/* A graph of k->node: what it reads from elsewhere are its inputs, or its constants. */
static int mlo_instants_graph(mlo_instants *k, mlo_graph *of) {
    mlo *m = k->m;
    mlo_map made = { NULL, 0, 0 };
    memset(of, 0, sizeof *of);
    of->node = k->node;
    of->n_node = k->n_node;
    for (size_t i = 0; i < k->n_node; i++) {
        const mlo_node *n = k->node[i];
        for (size_t j = 0; j < n->n_input; j++) {
            const mlo_value *v = mlo_has_input(n, j) ? mlo_value_of(k->g, n->input[j]) : NULL;
            if (!v || mlo_map_get(&made, v->name)) continue;
            MLO_TRY(mlo_map_put(m, &made, v->name, of));
            MLO_TRY(v->tensor ? mlo_graph_init(m, of, v->tensor)
                              : mlo_info_add(m, &of->input, &of->n_input, v->name, NULL));
        }
        for (size_t j = 0; j < n->n_output; j++)
            if (n->output[j] && *n->output[j]) MLO_TRY(mlo_map_put(m, &made, n->output[j], of));
    }
    return mlo_failed(m);
}

/* The inputs of the graph at a token: constants that are known, what was asked for before, forms for a Shape. */
static int mlo_instants_inputs(
    mlo_instants *k, const mlo_graph *of, const mlo_map *has, int64_t token, mlo_array *in) {
    for (size_t i = 0; i < of->n_input; i++) {
        const char *name = of->input[i]->name;
        const mlo_array *known = (const mlo_array *)mlo_map_get(has, name);
        const mlo_instant *o = mlo_instant_of(k, name);
        int varies;
        const mlo_form f = o ? o->form : mlo_instant_form(k, name, token, &varies);
        if (known) in[i] = *known;
        in[i].name = name;
        if (known) continue;
        in[i].dtype = f.dtype;
        in[i].rank = f.rank;
        memcpy(in[i].dims, f.dims, sizeof f.dims);
        in[i].data = o ? mlo_instant_array(o, token) : NULL;
    }
    return mlo_failed(k->m);
}

/* What a graph of k->node makes at a token of outputs of these names. */
static int mlo_instants_eval(
    mlo_instants *k, mlo_graph *of, const mlo_map *has, int64_t token, mlo_array **out) {
    mlo_array *in = (mlo_array *)mlo_scratch(k->m, of->n_input + 1, sizeof *in);
    if (!in) return mlo_failed(k->m);
    if (!mlo_instants_inputs(k, of, has, token, in)) mlo_eval(k->m, of, in, of->n_input, NULL, out);
    mlo_scratch_free(k->m, in);
    return mlo_failed(k->m);
}

/* An output of the graph, by name, which may be an input, too. */
static int mlo_instants_wants(mlo_instants *k, mlo_graph *of, const char *name) {
    MLO_TRY(mlo_info_add(k->m, &of->output, &of->n_output, name, NULL));
    return mlo_instant_of(k, name) ? mlo_info_add(k->m, &of->input, &of->n_input, name, NULL) : 0;
}

/* What is the same at all tokens is evaluated once: arrays by name, to `has`; *made: those. */
static int mlo_instants_constants(
    mlo_instants *k, const mlo_map *wanted, mlo_map *has, mlo_array ***made, size_t *n_made) {
    mlo *m = k->m;
    mlo_graph of;
    mlo_map none = { NULL, 0, 0 }, more = { NULL, 0, 0 };
    for (size_t i = 0; i < wanted->size; i++)
        if (wanted->slot[i].key) MLO_TRY(mlo_map_put(m, &more, wanted->slot[i].key, k));
    MLO_TRY(mlo_instants_nodes(k, MLO_ON_NOTHING, &more));
    MLO_TRY(mlo_instants_graph(k, &of));
    for (size_t i = 0; i < k->n_node; i++)
        for (size_t j = 0; j < k->node[i]->n_output; j++)
            if (mlo_map_get(wanted, k->node[i]->output[j]))
                MLO_TRY(mlo_info_add(m, &of.output, &of.n_output, k->node[i]->output[j], NULL));
    *made = (mlo_array **)mlo_scratch(m, of.n_output + 1, sizeof **made);
    if (!*made) return mlo_failed(m);
    memset(*made, 0, (of.n_output + 1) * sizeof **made);
    *n_made = of.n_output;
    MLO_TRY(mlo_instants_eval(k, &of, &none, 0, *made));
    for (size_t i = 0; i < of.n_output; i++)
        if ((*made)[i]) MLO_TRY(mlo_map_put(m, has, of.output[i]->name, (*made)[i]));
    return 0;
}

/* ---- what was asked for --------------------------------------------------- */

/* All elements say that there is nothing. */
static void mlo_instant_hide(mlo_array *a) {
    const float lowest = -FLT_MAX;
    memset(a->data, 0, (size_t)mlo_array_count(a) * mlo_dtype_size(a->dtype));
    for (int64_t i = 0; mlo_dtype_is_float(a->dtype) && i < mlo_array_count(a); i++)
        mlo_convert(a->dtype, (char *)a->data + (size_t)i * mlo_dtype_size(a->dtype), MLO_FLOAT,
            &lowest, 1);
}

/* Is it a mask [.., 1, keys] that hides nothing? */
static int mlo_instant_is_bare(const mlo_instants *k, const mlo_instant *o) {
    const int64_t n = o->all->dims[1];
    int bare = o->grows > 0 && o->form.dims[o->grows - 1] == 1
        && (mlo_dtype_is_float(o->form.dtype) || o->form.dtype == MLO_BOOL);
    for (int64_t i = 0; bare && i < n; i++) {
        float v;
        mlo_convert(MLO_FLOAT, &v, o->form.dtype,
            mlo_instant_array(o, k->tokens - 1) + (size_t)i * mlo_dtype_size(o->form.dtype), 1);
        bare = o->form.dtype == MLO_BOOL ? v > 0 : v >= 0 && v <= 0;
    }
    return bare;
}

/* The first of a value's arrays, that of the last token: its form, and room for all of them. */
static int mlo_instant_begin(mlo_instants *k, mlo_instant *o, const mlo_array *last) {
    o->form = mlo_form_of_array(last);
    const int64_t dims[2] = { k->tokens, mlo_array_count(last) };
    o->all = mlo_array_new(k->m, last->dtype, 2, dims);
    if (o->all) mlo_instant_hide(o->all);
    return mlo_failed(k->m);
}

/* The axis along which an array of a token is shorter than that of the last one; -1: none is, -2: it is another one. */
static int mlo_instant_grows(const mlo_instant *o, const mlo_array *a, int64_t less) {
    int axis = -1;
    if (a->rank != o->form.rank || a->dtype != o->form.dtype) return -2;
    for (int d = 0; d < a->rank; d++) {
        if (a->dims[d] == o->form.dims[d]) continue;
        if (axis >= 0 || a->dims[d] + less != o->form.dims[d]) return -2;
        axis = d;
    }
    return axis;
}

/* Notes the array of a token. *same: is it what the last one has there? */
static int mlo_instant_note(
    mlo_instants *k, mlo_instant *o, const mlo_array *a, int64_t token, int *same) {
    const int axis = mlo_instant_grows(o, a, k->tokens - 1 - token);
    const size_t size = mlo_dtype_size(a->dtype);
    int64_t rows = 1, row = 1, all = 1;
    if (axis < -1 || (axis >= 0 && o->grows >= 0 && axis != o->grows))
        return mlo_fail(k->m, MLO_E_UNSUPPORTED, mlo_value_of(k->g, o->name)->producer,
            "'%s' is %s where %lld tokens are past, and %s where %lld are; export the step for "
            "several new tokens, with "
            "that axis dynamic",
            o->name, mlo_dims_text(k->m, a->rank, a->dims), (long long)token,
            mlo_dims_text(k->m, o->form.rank, o->form.dims), (long long)k->tokens - 1);
    if (axis >= 0) o->grows = axis;
    for (int d = 0; d < a->rank; d++) {
        if (d < axis) rows *= a->dims[d];
        if (d >= axis) row *= a->dims[d];
        if (d >= axis) all *= o->form.dims[d];
    }
    char *to = mlo_instant_array(o, token);
    const char *last = mlo_instant_array(o, k->tokens - 1);
    for (int64_t i = 0; i < rows; i++) {
        memcpy(to + (size_t)(i * all) * size, (const char *)a->data + (size_t)(i * row) * size,
            (size_t)row * size);
        *same &= !memcmp(
            to + (size_t)(i * all) * size, last + (size_t)(i * all) * size, (size_t)row * size);
    }
    return 0;
}

/* All arrays of what was asked for, from the last token on. */
static int mlo_instants_note(
    mlo_instants *k, mlo_graph *of, const mlo_map *has, mlo_array **out, int *same) {
    for (int64_t token = k->tokens; token-- && !k->m->error.code;) {
        mlo_instants_eval(k, of, has, token, out);
        for (size_t i = 0; i < k->n_asked && !k->m->error.code; i++)
            if (token < k->tokens - 1 || !mlo_instant_begin(k, k->asked[i], out[i]))
                mlo_instant_note(k, k->asked[i], out[i], token, &same[i]);
        for (size_t i = 0; i < k->n_asked; i++) {
            mlo_array_free(k->m, out[i]);
            out[i] = NULL;
        }
    }
    return mlo_failed(k->m);
}

/* A value that is the same at all tokens is a constant where it is read beside others; one that differs an input, of
 * the form it has at the last one. */
static int mlo_instant_put(mlo_instants *k, mlo_instant *o, int same) {
    mlo *m = k->m;
    const mlo_value *v = mlo_value_of(k->g, o->name);
    size_t number = 0;
    const char *name = mlo_name_new(m, k->g, o->name, "at", &number);
    if (!name) return mlo_failed(m);
    for (size_t i = 0; i < v->n_use; i++)
        for (size_t j = 0; j < v->use[i]->n_input; j++)
            if (v->use[i]->input[j] == o->name && !mlo_says_how(v->use[i], j)
                && mlo_node_depends(k, v->use[i]) == MLO_ON_INPUTS)
                v->use[i]->input[j] = name;
    if (same) {
        mlo_array last = { name, o->form.dtype, o->form.rank, { 0 }, NULL };
        memcpy(last.dims, o->form.dims, sizeof last.dims);
        last.data = mlo_instant_array(o, k->tokens - 1);
        return mlo_graph_init(m, k->g, mlo_tensor_from(m, name, &last));
    }
    o->put = 1;
    o->name = name;
    return mlo_info_add(m, &k->g->input, &k->g->n_input, name, &o->form)
        || mlo_map_put(m, &k->at, name, o);
}

/* Nodes of which a value says sizes that differ from token to token. */
static int mlo_instants_size(mlo_instants *k, const mlo_instant *o) {
    const mlo_value *v = mlo_value_of(k->g, o->name);
    for (size_t i = 0; i < v->n_use; i++)
        for (size_t j = 0; j < v->use[i]->n_input; j++)
            if (v->use[i]->input[j] == o->name && mlo_says_how(v->use[i], j))
                MLO_TRY(mlo_map_put(k->m, &k->sized, v->use[i], k));
    return 0;
}

/* What was asked for, at each token. `same`: 1 for each that all tokens have alike. */
static int mlo_instants_known(mlo_instants *k, mlo_array **out, int *same) {
    mlo *m = k->m;
    mlo_map wanted = { NULL, 0, 0 }, has = { NULL, 0, 0 };
    mlo_array **made = NULL;
    size_t n_made = 0;
    mlo_graph of;
    for (size_t i = 0; i < k->n_asked; i++) {
        out[i] = NULL;
        same[i] = 1;
        MLO_TRY(mlo_map_put(m, &wanted, k->asked[i]->name, k));
    }
    MLO_TRY(mlo_instants_nodes(k, MLO_ON_INSTANT, &wanted));
    mlo_node **node = k->node;
    const size_t n_node = k->n_node;
    k->node = NULL;
    const int failed = mlo_instants_constants(k, &wanted, &has, &made, &n_made);
    k->node = node;
    k->n_node = n_node;
    if (!failed && !mlo_instants_graph(k, &of)) {
        for (size_t i = 0; i < k->n_asked && !m->error.code; i++)
            mlo_instants_wants(k, &of, k->asked[i]->name);
        if (!m->error.code) mlo_instants_note(k, &of, &has, out, same);
    }
    for (size_t i = 0; i < n_made; i++) mlo_array_free(m, made[i]);
    mlo_scratch_free(m, made);
    return mlo_failed(m);
}

/* What becomes of a value, the same at all tokens or not. */
static int mlo_instant_known(mlo_instants *k, mlo_instant *o, int same) {
    if (!same) MLO_TRY(mlo_instants_size(k, o));
    return o->beside ? mlo_instant_put(k, o, same && !mlo_instant_is_bare(k, o)) : 0;
}

/* What nodes read that depends on the token alone becomes known at each of them. */
static int mlo_instants_take(mlo_instants *k) {
    mlo *m = k->m;
    MLO_TRY(mlo_instants_ask(k));
    mlo_array **out = (mlo_array **)mlo_scratch(m, k->n_asked + 1, sizeof *out);
    int *same = (int *)mlo_scratch(m, k->n_asked + 1, sizeof *same);
    if (out && same && !mlo_instants_known(k, out, same))
        for (size_t i = 0; i < k->n_asked && !m->error.code; i++)
            mlo_instant_known(k, k->asked[i], same[i]);
    mlo_scratch_free(m, same);
    mlo_scratch_free(m, out);
    return mlo_failed(m);
}
