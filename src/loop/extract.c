/* extract: chooses the loop bodies and marks their instances.
 *
 * in:  a graph, with scopes where the model has them; perhaps the option "hierarchy"
 *     ('[["encoder","encoder.layer.0"]]'), which selects scopes. Without it, discover.c decides.
 * out: node metadata mlo.loop (name), mlo.instance (iteration, from 0), mlo.position (place in the
 *     body, from 0); model metadata mlo.extract: what was considered, as JSON.
 *
 * --nested: after roll has made a body, the same search looks for loops within it.
 *
 * invariant: the structure decides. A hierarchy selects among what repeats: several groups in one
 *     stack of layers make one body of consecutive layers; groups in different stacks make
 *     different loops. A hierarchy that disagrees with what repeats is refused, and the error says
 *     how they differ.
 * example: [["","encoder","encoder.layer.0"],["","encoder","encoder.layer.1"]] on 12 layers gives 6
 *     iterations of two layers.
 * cost: O(nodes), see discover.c.
 */

/* ---- the hierarchy option ------------------------------------------------- */

typedef struct {
    mlo_levels *group;
    size_t n;
} mlo_hierarchy;

/* '[["a","a.b"], ["c"]]'; also FINN's older '["a","a.b"]' and a bare 'a.b'. */
static int mlo_hierarchy_parse(mlo *m, const char *text, mlo_hierarchy *h) {
    const char *s = text;
    mlo_levels one;
    memset(h, 0, sizeof *h);
    while (*s == ' ') s++;
    if (!*s)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--hierarchy names no scope; write [[\"encoder\",\"encoder.layer.0\"]]");
    if (*s != '[') {
        mlo_levels_dots(m, s, strlen(s), &one);
        return MLO_PUSH(m, h->group, h->n, one) ? 0 : mlo_failed(m);
    }
    if (mlo_levels_list(m, s, &one) && one.n)
        return MLO_PUSH(m, h->group, h->n, one) ? 0 : mlo_failed(m);
    for (s++;;) {
        while (*s == ' ' || *s == ',' || *s == '\n') s++;
        if (*s == ']') break;
        s = mlo_levels_list(m, s, &one);
        if (!s || !one.n)
            return mlo_fail_at(m, MLO_E_USAGE, NULL,
                "--hierarchy %.200s is not a list of lists of scope names; write "
                "[[\"encoder\",\"encoder.layer.0\"]]",
                text);
        if (!MLO_PUSH(m, h->group, h->n, one)) return mlo_failed(m);
    }
    return h->n ? 0
                : mlo_fail_at(m, MLO_E_USAGE, NULL,
                      "--hierarchy names no scope; write [[\"encoder\",\"encoder.layer.0\"]]");
}

/* Is a scope `want` or below it? By whole levels: encoder.layer.1 does not hold encoder.layer.10. */
static int mlo_scope_within(const char *scope, const char *want) {
    size_t n = strlen(want);
    return scope && (!n || (!strncmp(scope, want, n) && (!scope[n] || scope[n] == '/')));
}

static int mlo_hierarchy_miss(
    mlo *m, const mlo_net *net, const char *const *scope, const char *want) {
    mlo_map seen = { NULL, 0, 0 };
    const char *list[6];
    int n = 0, depth = mlo_scope_common(want, want);
    for (int i = 0; i < net->n; i++) {
        const char *p = scope[i];
        for (int level = 0; p && level < depth; level++) p = strchr(level ? p + 1 : p, '/');
        const char *s = scope[i]
            ? mlo_intern_n(m, scope[i], p ? (size_t)(p - scope[i]) : strlen(scope[i]))
            : NULL;
        if (!s || !*s) continue;
        uintptr_t count = (uintptr_t)mlo_map_get(&seen, s);
        if (!count && n < 6 && mlo_scope_common(s, s) == depth) list[n++] = s;
        if (mlo_map_put(m, &seen, s, (void *)(count + 1))) return mlo_failed(m);
    }
    mlo_text t = { m, NULL, 0, 0 };
    for (int i = 0; i < n; i++)
        mlo_printf(&t, "%s%s (%lu)", i ? ", " : "", list[i],
            (unsigned long)(uintptr_t)mlo_map_get(&seen, list[i]));
    mlo_fail_at(m, MLO_E_USAGE, NULL,
        "--hierarchy: no node has the scope '%s'; scopes as deep, with their nodes: %s", want,
        n ? t.text : "none (no scopes in this model; leave --hierarchy out)");
    mlo_text_free(&t);
    return mlo_failed(m);
}

/* chosen[i]: the number of the group that node i belongs to, from 1; 0 for none. */
static int mlo_hierarchy_choose(
    mlo *m, const mlo_net *net, const char *const *scope, const mlo_hierarchy *h, uint8_t *chosen) {
    for (size_t g = 0; g < h->n; g++) {
        int hits = 0;
        const char *want[2] = { mlo_levels_scope(m, &h->group[g], h->group[g].n, 0),
            mlo_levels_scope(m, &h->group[g], h->group[g].n, 1) };
        if (m->error.code) return mlo_failed(m);
        for (int form = 0; form < 2 && !hits; form++)
            for (int i = 0; i < net->n; i++)
                if (mlo_scope_within(scope[i], want[form])) {
                    chosen[i] = 1;
                    hits++;
                }
        if (!hits) return mlo_hierarchy_miss(m, net, scope, want[1]);
    }
    return 0;
}

/* ---- saying where two instances differ ------------------------------------ */

static void mlo_put_number(mlo_text *t, const char *before, double v, int single) {
    char digits[40];
    mlo_print_number(digits, v, single);
    mlo_puts(t, before);
    mlo_puts(t, digits);
}

static const char *mlo_attr_text_of(mlo *m, const mlo_attr *a) {
    if (!a) return "absent";
    mlo_text t = { m, NULL, 0, 0 };
    switch (a->type) {
    case MLO_ATTR_FLOAT: mlo_put_number(&t, "", (double)a->f, 1); break;
    case MLO_ATTR_INT: mlo_printf(&t, "%lld", (long long)a->i); break;
    case MLO_ATTR_STRING:
        mlo_printf(&t, "'%.*s'", (int)(a->s.n < 60 ? a->s.n : 60), mlo_or_empty(a->s.data));
        break;
    case MLO_ATTR_INTS:
        for (size_t i = 0; i < a->n_ints && i < 8; i++)
            mlo_printf(&t, "%s%lld", i ? "," : "[", (long long)a->ints[i]);
        mlo_puts(&t, a->n_ints ? "]" : "[]");
        break;
    case MLO_ATTR_FLOATS:
        for (size_t i = 0; i < a->n_floats && i < 8; i++)
            mlo_put_number(&t, i ? "," : "[", (double)a->floats[i], 1);
        mlo_puts(&t, a->n_floats ? "]" : "[]");
        break;
    case MLO_ATTR_TENSOR: {
        double v[4];
        int64_t n = mlo_tensor_count(a->t);
        if (n < 1 || n > 4 || !mlo_tensor_is_numbers(a->t)
            || mlo_tensor_doubles(m, a->t, 0, (size_t)n, v)) {
            mlo_printf(&t, "a tensor of %lld", (long long)n);
            break;
        }
        for (int64_t i = 0; i < n; i++)
            mlo_put_number(&t, i ? "," : "[", v[i], a->t->data_type != MLO_DOUBLE);
        mlo_puts(&t, "]");
        break;
    }
    default: mlo_puts(&t, "another value"); break;
    }
    const char *s = mlo_intern(m, mlo_or_empty(t.text));
    mlo_text_free(&t);
    return mlo_or_empty(s);
}

static const char *mlo_form_text(mlo *m, const mlo_value *v) {
    mlo_form f = mlo_form_of(v);
    mlo_text t = { m, NULL, 0, 0 };
    mlo_printf(&t, "%s[", mlo_dtype_name(f.dtype));
    for (int i = 0; i < f.rank; i++) {
        if (i) mlo_puts(&t, ",");
        if (f.dims[i] < 0)
            mlo_puts(&t, "?");
        else
            mlo_printf(&t, "%lld", (long long)f.dims[i]);
    }
    mlo_puts(&t, "]");
    const char *s = mlo_intern(m, mlo_or_empty(t.text));
    mlo_text_free(&t);
    return mlo_or_empty(s);
}

/* What a slot reads, for people. */
static const char *mlo_slot_text(mlo *m, const mlo_net *net, int slot) {
    const mlo_value *v = net->in[slot];
    if (!v) return "nothing";
    if (net->from[slot] >= 0)
        return mlo_format(m, "%s %s", net->g->node[net->from[slot]]->op,
            mlo_node_name(net->g->node[net->from[slot]]));
    return mlo_format(m, v->tensor ? "constant %s" : "input %s", v->name);
}

static const mlo_value *mlo_output_of(const mlo_net *net, const mlo_node *n, size_t i) {
    return mlo_value_of(net->g, n->output[i]);
}

/* The number of the layer that x is in: as the scopes have it, else counted. */
static int mlo_miss_layer(const mlo_net *net, const mlo_miss *miss) {
    const mlo_node *x = net->g->node[miss->x], *y = miss->y < 0 ? NULL : net->g->node[miss->y];
    long number;
    if (y
        && mlo_scope_number(mlo_meta_get(x->meta, x->n_meta, mlo_key_scope),
            mlo_meta_get(y->meta, y->n_meta, mlo_key_scope), &number)
        && number >= 0 && number < 1000000)
        return (int)number;
    return miss->layer;
}

/* In one line: how the odd layer of two differs: which of its nodes, what it has there, and what
 * `others` have. */
static const char *mlo_difference(
    mlo *m, const mlo_net *net, const mlo_miss *miss, int odd_is_y, const char *others) {
    const mlo_attr *which[2];
    const mlo_node *reader = net->g->node[miss->x];
    const mlo_node *detour = miss->slot_x == MLO_DETOUR ? net->g->node[miss->y] : NULL;
    if (detour)
        return mlo_format(m, "%s %s reads %s %s, which is not in the loop and depends on layer %d",
            reader->op, mlo_node_name(reader), detour->op, mlo_node_name(detour), miss->layer);
    int i = odd_is_y ? miss->y : miss->x;
    int k = odd_is_y ? miss->x : miss->y;
    int layer = mlo_miss_layer(net, miss) + odd_is_y;
    if (i < 0)
        return mlo_format(m, "layer %d has no counterpart of %s %s", layer, net->g->node[k]->op,
            mlo_node_name(net->g->node[k]));
    const mlo_node *a = net->g->node[i], *b = k < 0 ? NULL : net->g->node[k];
    const char *who = mlo_format(m, "layer %d: %s %s", layer, a->op, mlo_node_name(a));
    if (!who) return NULL;
    if (!b) return mlo_format(m, "%s has no counterpart in %s", who, others);
    const char *attr = mlo_attr_difference(m, a, b, which);
    if (attr)
        return mlo_format(m, "%s: %s %s, %s %s", who, attr, mlo_attr_text_of(m, which[0]), others,
            mlo_attr_text_of(m, which[1]));
    for (int s = 0; s < mlo_slot_count(net, i) && s < mlo_slot_count(net, k); s++) {
        mlo_value *v = net->in[net->in_at[i] + s], *w = net->in[net->in_at[k] + s];
        if (mlo_form_differs(v, w))
            return mlo_format(m, "%s: input %d is %s, %s %s", who, s, mlo_form_text(m, v), others,
                mlo_form_text(m, w));
    }
    for (size_t o = 0; o < a->n_output && o < b->n_output; o++) {
        const mlo_value *v = mlo_output_of(net, a, o), *w = mlo_output_of(net, b, o);
        if (mlo_form_differs(v, w))
            return mlo_format(m, "%s: output %zu is %s, %s %s", who, o, mlo_form_text(m, v), others,
                mlo_form_text(m, w));
    }
    if (miss->slot_x < 0)
        return mlo_format(m, "%s is not where it is in %s (%s)", who, others, mlo_node_name(b));
    int mine = odd_is_y ? miss->slot_y : miss->slot_x;
    int theirs = odd_is_y ? miss->slot_x : miss->slot_y;
    return mlo_format(m, "%s: input %d is %s; %s (%s) %s", who, mine - net->in_at[i],
        mlo_slot_text(m, net, mine), others, mlo_node_name(b), mlo_slot_text(m, net, theirs));
}

/* ---- choosing ------------------------------------------------------------- */

/* m consecutive instances become one. */
static int mlo_layers_group(mlo *m, mlo_layers *l, int by) {
    int size = l->size * by;
    int rounds = l->iterations / by;
    int *order = MLO_NEW_N(m, int, (size_t)size * 2);
    int *node = MLO_NEW_N(m, int, (size_t)(size * rounds));
    if (!order || !node) return mlo_failed(m);
    for (int i = 0; i < size; i++) {
        order[2 * i] = l->node[i];
        order[2 * i + 1] = i;
    }
    qsort(order, (size_t)size, 2 * sizeof *order, mlo_int_cmp);
    for (int k = 0; k < rounds; k++)
        for (int i = 0; i < size; i++) node[k * size + i] = l->node[k * size + order[2 * i + 1]];
    l->node = node;
    l->size = size;
    l->iterations = rounds;
    return 0;
}

/* Fits a found loop to what the hierarchy chose: how many instances make one body, or why that is
 * not possible. */
static int mlo_layers_fit(mlo *m, const mlo_net *net, mlo_layers *l, const uint8_t *chosen) {
    int whole = 0, inside = 0, odd = MLO_NONE;
    for (int k = 0; k < l->iterations; k++) {
        int hits = 0;
        for (int p = 0; p < l->size; p++) hits += chosen[l->node[k * l->size + p]];
        inside += hits;
        whole += hits * 10 >= l->size * 9;
        for (int p = 0; p < l->size && hits && hits * 10 < l->size * 9 && odd < 0; p++)
            if (!chosen[l->node[k * l->size + p]]) odd = l->node[k * l->size + p];
    }
    const mlo_node *out = odd < 0 ? NULL : net->g->node[odd];
    const char *scope = out ? mlo_meta_get(out->meta, out->n_meta, mlo_key_scope) : NULL;
    if (!whole)
        return mlo_fail(m, MLO_E_LOOP, out,
            "is not in the hierarchy, which selects %d of the %d nodes that repeat %d times; add "
            "its scope, '%s', and those of its "
            "neighbours, select the whole layer, or leave --hierarchy out",
            inside, l->size, l->iterations, mlo_or_empty(scope));
    if (l->iterations / whole < 2)
        return mlo_fail_at(m, MLO_E_LOOP, NULL,
            "the hierarchy selects %d of %d equal layers: that leaves %d iteration; select one "
            "layer",
            whole, l->iterations, l->iterations / whole);
    if (l->iterations % whole)
        mlo_warn(m, "matched %d of %d layers: bodies of %d leave the last %d outside",
            l->iterations - l->iterations % whole, l->iterations, whole, l->iterations % whole);
    return whole > 1 ? mlo_layers_group(m, l, whole) : 0;
}

static int mlo_extract_mark(mlo *m, const mlo_net *net, const mlo_layers *l, const char *name) {
    for (int k = 0; k < l->iterations; k++)
        for (int p = 0; p < l->size; p++) {
            mlo_node *n = net->g->node[l->node[k * l->size + p]];
            const char *instance = mlo_format(m, "%d", k), *position = mlo_format(m, "%d", p);
            if (!instance || !position || mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_loop, name))
                return mlo_failed(m);
            if (mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_instance, instance)
                || mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_position, position))
                return mlo_failed(m);
        }
    return 0;
}

/* Is it one of the keys of mlo_extract_mark? */
static int mlo_is_mark(const char *key) {
    static const char *const marks[] = { mlo_key_loop, mlo_key_instance, mlo_key_position };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (mlo_eq(key, marks[i])) return 1;
    return 0;
}

/* Marks that an earlier extract left must not survive. */
static void mlo_extract_unmark(mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *n = g->node[i];
        size_t kept = 0;
        for (size_t k = 0; k < n->n_meta; k++)
            if (!mlo_is_mark(n->meta[k].key)) n->meta[kept++] = n->meta[k];
        n->n_meta = kept;
    }
}

/* A string in JSON, for reports; NULL, which is what names are without memory, as if it were empty. */
static void mlo_report_string(mlo_text *t, const char *s) {
    mlo_puts(t, "\"");
    for (; s && *s; s++) {
        if (*s == '"' || *s == '\\')
            mlo_printf(t, "\\%c", *s);
        else if ((unsigned char)*s < 32)
            mlo_printf(t, "\\u%04x", (unsigned)(unsigned char)*s);
        else
            mlo_put(t, s, 1);
    }
    mlo_puts(t, "\"");
}

/* The node of the layer left out, on one side of a loop; the other layer's where it has none. */
static int mlo_miss_odd(const mlo_layers *l, int after) {
    const mlo_miss *miss = after ? &l->after : &l->before;
    return miss->x >= 0 && after && miss->y >= 0 && miss->slot_x != MLO_DETOUR ? miss->y : miss->x;
}

static void mlo_extract_near(mlo *m, mlo_text *t, int *n, const char *line) {
    if (!line) return;
    mlo_warn(m, "%s", line);
    mlo_puts(t, (*n)++ ? "," : "");
    mlo_report_string(t, line);
}

/* What kept the k-th loop from being longer: warned about, and noted in the report. A layer
 * between two loops is told once. */
static void mlo_extract_misses(mlo *m, const mlo_net *net, const mlo_found *f, size_t k,
    const char *name, mlo_text *t, int *n) {
    const mlo_layers *l = f->loop[k];
    for (int after = 0; after < 2; after++) {
        int odd = mlo_miss_odd(l, after), matched = l->iterations, seen = 0;
        if (odd < 0) continue;
        for (size_t i = 0; i < f->n_loops; i++)
            for (int side = 0; side < 2 && i != k; side++)
                if (mlo_miss_odd(f->loop[i], side) == odd) {
                    matched += f->loop[i]->iterations;
                    seen |= i < k;
                }
        if (seen) continue;
        const char *why = mlo_difference(m, net, after ? &l->after : &l->before, after, "others");
        if (why)
            mlo_extract_near(
                m, t, n, mlo_format(m, "%s: matched %d of %d: %s", name, matched, l->layers, why));
    }
}

/* Layers that almost repeat but make no loop at all: told when they are as large as half a body
 * that was rolled. */
static void mlo_extract_unrolled(
    mlo *m, const mlo_net *net, const mlo_found *f, mlo_text *t, int *n) {
    const mlo_miss *c = &f->closest;
    if (c->x < 0 || c->y < 0 || c->size < MLO_LEAST_BODY || c->matched * 4 < c->size * 3) return;
    for (size_t i = 0; i < f->n_loops; i++)
        if (c->size * 2 < f->loop[i]->size) return;
    const char *why = mlo_difference(
        m, net, c, 1, mlo_format(m, "layer %d", mlo_miss_layer(net, c)));
    if (why)
        mlo_extract_near(m, t, n,
            mlo_format(m, "not rolled: two layers share %d of %d nodes, but %s", c->matched,
                c->size, why));
}

static int mlo_extract_report(
    mlo *m, const mlo_net *net, const mlo_found *f, const char *const *name) {
    mlo_text t = { m, NULL, 0, 0 };
    int n = 0;
    mlo_printf(&t, "{\"shifts\":%d,\"near\":[", f->tried);
    for (size_t i = 0; i < f->n_loops; i++)
        if (name[i]) mlo_extract_misses(m, net, f, i, name[i], &t, &n);
    mlo_extract_unrolled(m, net, f, &t, &n);
    mlo_puts(&t, "],\"lost\":[");
    n = 0;
    for (size_t i = 0; i < f->n_lost && i < 20; i++) {
        const mlo_layers *l = f->lost[i];
        mlo_printf(&t,
            "%s{\"iterations\":%d,\"body_nodes\":%d,\"carried\":%d,\"first\":", n++ ? "," : "",
            l->iterations, l->size, l->carried);
        mlo_report_string(&t, mlo_node_name(net->g->node[l->node[0]]));
        mlo_puts(&t,
            ",\"why\":\"shares nodes with a loop that covers more, or as much with a smaller "
            "body\"}");
    }
    mlo_puts(&t, "]}");
    int r = m->error.code
        ? mlo_failed(m)
        : mlo_meta_put(m, &m->model->meta, &m->model->n_meta, mlo_key_extract, t.text);
    mlo_text_free(&t);
    return r;
}

/* The model's own loop that multiplies matrices, a Scan or a Loop (read/scanned.c); NULL: it has none. */
static const mlo_node *mlo_own_loop(const mlo_graph *g, const char *op) {
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_graph *body = mlo_is(g->node[i], op) ? mlo_graph_of(g->node[i], "body") : NULL;
        for (size_t k = 0; body && k < body->n_node; k++)
            if (mlo_is(body->node[k], "MatMul") || mlo_is(body->node[k], "Gemm")) return g->node[i];
    }
    return NULL;
}

static int mlo_extract_none(mlo *m, const mlo_net *net, const mlo_found *f) {
    const mlo_miss *c = &f->closest;
    const char *why = c->x < 0
        ? NULL
        : mlo_difference(m, net, c, 1, mlo_format(m, "layer %d", mlo_miss_layer(net, c)));
    const mlo_node *own = why ? NULL : mlo_own_loop(net->g, "Loop");
    if (own)
        return mlo_fail(m, MLO_E_LOOP, own,
            "no layer repeats, and the model's own loop does not pick its weights from stacks by a "
            "count that is known: nothing to roll");
    if (!why)
        return mlo_fail_at(
            m, MLO_E_LOOP, NULL, "no layer repeats among the %d nodes: nothing to roll", net->n);
    return mlo_fail(m, MLO_E_LOOP, net->g->node[c->y < 0 ? c->x : c->y],
        "no layer repeats; the closest two layers share %d of %d nodes, but %s", c->matched,
        c->size, why);
}

/* What the i-th loop of a model is called. */
static const char *mlo_loop_name(mlo *m, size_t i) {
    return i ? mlo_format(m, "loop_%zu", i) : mlo_intern(m, "loop");
}

/* Marks what repeats in the body of a loop; says how many loops that is. */
static int mlo_extract_inner(mlo *m, mlo_graph *body, const char *loop, size_t *n) {
    mlo_found found;
    mlo_net *net = mlo_net_of(m, body);
    if (!net) return mlo_failed(m);
    const char **scope = mlo_scopes_of(m, net);
    if (!scope || mlo_discover(m, net, scope, NULL, &found)) return mlo_failed(m);
    for (size_t i = 0; i < found.n_loops; i++) {
        const char *name = mlo_format(m, i ? "%s.inner_%zu" : "%s.inner", loop, i);
        if (!name || mlo_extract_mark(m, net, found.loop[i], name)) return mlo_failed(m);
    }
    *n = found.n_loops;
    return 0;
}

/* The stage, without a template (template.c). */
static int mlo_extract(mlo *m) {
    mlo_found found;
    mlo_hierarchy h;
    mlo_graph *g = m->model->graph;
    MLO_TRY(mlo_even_biases(m));
    mlo_net *net = mlo_net_of(m, g);
    const char *option = mlo_opt(m, "hierarchy");
    if (!net) return mlo_failed(m);
    mlo_extract_unmark(g);
    const char **scope = mlo_scopes_of(m, net), **name;
    uint8_t *chosen = option ? MLO_NEW_N(m, uint8_t, (size_t)net->n + 1) : NULL;
    if (m->error.code) return mlo_failed(m);
    if (option
        && (mlo_hierarchy_parse(m, option, &h) || mlo_hierarchy_choose(m, net, scope, &h, chosen)))
        return mlo_failed(m);
    if (mlo_discover(m, net, scope, chosen, &found)) return mlo_failed(m);
    if (!found.n_loops && mlo_own_loop(g, "Scan")) return 0; /* rolled it is */
    if (!found.n_loops) return mlo_extract_none(m, net, &found);
    if (!(name = MLO_NEW_N(m, const char *, found.n_loops))) return mlo_failed(m);
    for (size_t i = 0; i < found.n_loops; i++) {
        mlo_layers *l = found.loop[i];
        if (option && mlo_layers_fit(m, net, l, chosen)) return mlo_failed(m);
        name[i] = mlo_loop_name(m, i);
        if (!name[i] || mlo_extract_mark(m, net, l, name[i])) return mlo_failed(m);
    }
    return mlo_extract_report(m, net, &found, name);
}
