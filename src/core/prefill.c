/* prefill: proves two exports of a decoder to be one body: the prompt, and the step with a cache.
 *
 * in:  two lowered models, the second quantized with what the first's calibration saw (integer/seen.c).
 * out: 0, or MLO_E_MISMATCH and the first difference.
 *
 * A lowered body is a list of kernels in an order that the computation gives, so they are compared one by one:
 * operator, attributes, what each reads, and the elements of every parameter in every iteration. Names are each
 * exporter's own. Integers are compared, not floats: equal ones are the same hardware and the same words.
 *
 * invariant: what is not compared is what comes in from outside of the loop: ids' embeddings, a mask.
 * example: stories260k-step.onnx with --context 64 and stories260k-prompt.onnx: 15 kernels, 31 parameters.
 * cost: one pass over the parameters of both.
 */
typedef struct {
    mlo *m;
    mlo *prompt;
    mlo_scan own;
    mlo_scan other;
    mlo_map name; /* a value of one's body -> that of the other's */
    int64_t parameters;
} mlo_twins;

static int mlo_twins_differ(const mlo_twins *t, const mlo_node *a, const char *what) {
    return mlo_fail(t->m, MLO_E_MISMATCH, a,
        "%s; the two exports are not of one model, or not of one version of it", what);
}

/* The elements of a parameter in an iteration, equal in both? */
static int mlo_twins_elements(mlo_twins *t, const char *x, const char *y, int64_t i, int *equal) {
    mlo_array *a = mlo_scan_value(t->m, &t->own, x, i);
    mlo_array *b = mlo_scan_value(t->prompt, &t->other, y, i);
    *equal = mlo_array_equal(a, b);
    mlo_array_free(t->m, a);
    mlo_array_free(t->prompt, b);
    return mlo_failed(t->m) || mlo_failed(t->prompt);
}

static int mlo_twins_parameter(mlo_twins *t, const mlo_node *n, const char *x, const char *y) {
    for (int64_t i = 0; i < t->own.iterations; i++) {
        int equal;
        if (mlo_twins_elements(t, x, y, i, &equal)) return -1;
        if (!equal)
            return mlo_twins_differ(t, n,
                mlo_format(t->m, "'%s' differs from the prompt's '%s' in iteration %lld", x, y,
                    (long long)i));
    }
    t->parameters++;
    return 0;
}

/* Does it come from around the loop: a mask, all ones in one export and an input of the other? */
static int mlo_twins_around(const mlo_scan *s, const char *name) {
    const mlo_value *v = mlo_value_of(s->body, name);
    return v && v->graph != s->body;
}

/* What a kernel reads: known by what made it, or a parameter, or from around the loop. */
static int mlo_twins_input(mlo_twins *t, const mlo_node *n, const char *x, const char *y) {
    const char *known = (const char *)mlo_map_get(&t->name, x);
    const int own = mlo_is_parameter(&t->own, t->own.body, x, 0);
    const int other = mlo_is_parameter(&t->other, t->other.body, y, 0);
    if (known && strcmp(known, y))
        return mlo_twins_differ(
            t, n, mlo_format(t->m, "it reads '%s', where the prompt's reads '%s'", x, y));
    if (known
        || (mlo_twins_around(&t->own, x) && mlo_twins_around(&t->other, y) && !(own && other)))
        return 0;
    if (!own || !other)
        return mlo_twins_differ(
            t, n, mlo_format(t->m, "it reads '%s', the prompt's reads '%s'", x, y));
    MLO_TRY(mlo_twins_parameter(t, n, x, y));
    return mlo_map_put(t->m, &t->name, x, (void *)(uintptr_t)y);
}

static int mlo_twins_node(mlo_twins *t, const mlo_node *a, const mlo_node *b) {
    const mlo_attr *which[2];
    const char *attr;
    if (strcmp(a->op, b->op) || a->n_input != b->n_input || a->n_output != b->n_output)
        return mlo_twins_differ(
            t, a, mlo_format(t->m, "where the prompt has '%s' (%s)", mlo_node_name(b), b->op));
    if ((attr = mlo_attr_difference(t->m, a, b, which)))
        return mlo_twins_differ(t, a,
            mlo_format(t->m, "its %s is not that of the prompt's '%s'", attr, mlo_node_name(b)));
    for (size_t i = 0; i < a->n_input; i++) {
        if (mlo_has_input(a, i) != mlo_has_input(b, i))
            return mlo_twins_differ(t, a, "it has an input more, or fewer, than the prompt's");
        if (mlo_has_input(a, i)) MLO_TRY(mlo_twins_input(t, a, a->input[i], b->input[i]));
    }
    for (size_t i = 0; i < a->n_output; i++)
        MLO_TRY(mlo_map_put(t->m, &t->name, a->output[i], (void *)(uintptr_t)b->output[i]));
    return 0;
}

static int mlo_twins_bodies(mlo_twins *t) {
    const mlo_graph *a = t->own.body, *b = t->other.body;
    if (a->n_node != b->n_node || t->own.iterations != t->other.iterations)
        return mlo_twins_differ(t, t->own.node,
            mlo_format(t->m, "%zu kernels, %lld times; the prompt has %zu, %lld times", a->n_node,
                (long long)t->own.iterations, b->n_node, (long long)t->other.iterations));
    MLO_TRY(mlo_map_put(t->m, &t->name, a->input[0]->name, (void *)(uintptr_t)b->input[0]->name));
    for (size_t i = 0; i < a->n_node; i++) MLO_TRY(mlo_twins_node(t, a->node[i], b->node[i]));
    return mlo_twins_input(t, t->own.node, a->output[0]->name, b->output[0]->name);
}

int mlo_prefill(mlo *m, mlo *prompt) {
    m->prefill = prompt;
    return mlo_failed(m);
}

/* 0: two lowered models have one body. Else what differs is the first's failure, or the prompt's is why nobody
 * knows. */
static int mlo_prefill_same(mlo *m, mlo *prompt) {
    mlo_twins t;
    memset(&t, 0, sizeof t);
    t.m = m;
    t.prompt = prompt;
    m->stage = prompt->stage = "prefill";
    if (mlo_scan_choose(prompt, &t.other) || mlo_scan_choose(m, &t.own) || mlo_twins_bodies(&t))
        return -1;
    mlo_inform(m,
        "the prompt's export is the same body: %zu kernels, %lld parameters, every integer equal",
        t.own.body->n_node, (long long)t.parameters);
    return mlo_failed(m);
}
