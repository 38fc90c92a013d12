/* scope: says where in the source model's module tree each node belongs.
 *
 * in:  nodes with metadata pkg.torch.onnx.name_scopes or namespace (a Python list, or text with
 *     slashes; read has made metadata of attributes), or with telling names
 *     ("/encoder/layer.0/attention/Add", "encoder.layer.0.bias_DequantizeLinear"), or with nothing.
 * out: node metadata mlo.scope: the levels from the root, each with its full dotted name, joined by
 *     slashes: "encoder/encoder.layer.0/encoder.layer.0.attention". The nameless root is "". Where
 *     the scope was inferred, mlo.scope_from says from what.
 *
 * A missing scope is inferred from the node at the same place of another instance (another layer's
 * copy of the body: so structure decides about a node between two layers, or about a whole layer);
 * else from neighbours in the same instance; else from any neighbour, forwards and backwards until
 * nothing changes.
 *
 * invariant: scopes are hints. They name things and break ties; later stages trust the structure.
 * example: a QuantizeLinear that a tool put between two nodes of layer 3 gets layer 3's scope,
 *     because its twins in layers 0..2 have theirs.
 * cost: O(nodes), and one discovery of loops when scopes are missing.
 */

/* ---- reading what exporters write ----------------------------------------- */

enum { MLO_MAX_LEVELS = 64 };
typedef struct {
    const char *level[MLO_MAX_LEVELS];
    int n;
} mlo_levels;

static void mlo_levels_add(mlo *m, mlo_levels *l, const char *text, size_t n) {
    const char *s = mlo_intern_n(m, text, n);
    if (s && l->n < MLO_MAX_LEVELS) l->level[l->n++] = s;
}

/* The quoted strings of a Python or JSON list ("['', 'encoder']"). Returns where the list ended,
 * NULL when it is none. */
static const char *mlo_levels_list(mlo *m, const char *s, mlo_levels *l) {
    char part[512];
    l->n = 0;
    while (*s == ' ') s++;
    if (*s++ != '[') return NULL;
    for (;;) {
        while (*s == ' ' || *s == ',' || *s == '\n' || *s == '\t') s++;
        if (*s == ']') return s + 1;
        if (*s != '\'' && *s != '"') return NULL;
        char quote = *s++;
        size_t n = 0;
        for (; *s && *s != quote; s++) {
            if (*s == '\\' && s[1]) s++;
            if (n < sizeof part) part[n++] = *s;
        }
        if (!*s++) return NULL;
        mlo_levels_add(m, l, part, n);
    }
}

/* "a/b/c", and torch's namespace "a: Class/b: Class/node_c: aten.c": what stands before the colons. */
static void mlo_levels_slashes(mlo *m, const char *s, mlo_levels *l) {
    l->n = 0;
    for (const char *end;; s = end + 1) {
        end = strchr(s, '/');
        size_t n = end ? (size_t)(end - s) : strlen(s);
        const char *colon = (const char *)memchr(s, ':', n);
        mlo_levels_add(m, l, s, colon ? (size_t)(colon - s) : n);
        if (!end) return;
    }
}

/* "encoder.layer.0.attention.bias": one level per part, a number joined to the part before it. */
static void mlo_levels_dots(mlo *m, const char *s, size_t n, mlo_levels *l) {
    size_t i = 0;
    l->n = 0;
    while (i < n) {
        size_t end = i;
        while (end < n && s[end] != '.') end++;
        int digits = end > i && strspn(s + i, "0123456789") >= end - i;
        if (digits && l->n) l->n--;
        mlo_levels_add(m, l, s, end);
        i = end + 1;
    }
}

static int mlo_extends(const char *whole, const char *part) {
    size_t n = strlen(part);
    return !strncmp(whole, part, n) && whole[n] == '.';
}

/* Is the last level the traced operation rather than a module? A module's name extends its
 * parent's; at the root its class tells. */
static int mlo_last_is_op(mlo *m, const mlo_node *node, const mlo_levels *l, const char *classes) {
    static const char *const ops[] = { "aten.", "prims.", "_operator.", "<", "torch.ops." };
    mlo_levels c;
    const char *last = l->level[l->n - 1];
    if (l->n > 1 && *l->level[l->n - 2]) return !mlo_extends(last, l->level[l->n - 2]);
    if (classes && mlo_levels_list(m, classes, &c) && c.n == l->n)
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            if (mlo_starts(c.level[c.n - 1], ops[i])) return 1;
    return !strchr(last, '.') || (node->n_output && mlo_eq(last, node->output[0]));
}

/* Levels to a scope: without the nameless root, every level by its full name (when `join`), joined
 * by slashes. */
static const char *mlo_levels_scope(mlo *m, const mlo_levels *l, int n, int join) {
    mlo_text t = { m, NULL, 0, 0 };
    const char *parent = "";
    for (int i = 0; i < n; i++) {
        const char *level = l->level[i];
        if (!*level) continue;
        if (join && *parent && !mlo_extends(level, parent))
            level = mlo_format(m, "%s.%s", parent, level);
        if (!level) break;
        if (t.n) mlo_puts(&t, "/");
        mlo_puts(&t, level);
        parent = level;
    }
    const char *s = mlo_intern(m, mlo_or_empty(t.text));
    mlo_text_free(&t);
    return s;
}

/* The scope in a node's metadata, NULL when there is none. */
static const char *mlo_scope_said(mlo *m, const mlo_node *n) {
    mlo_levels l;
    const char *s = mlo_meta_get(n->meta, n->n_meta, mlo_key_scope);
    const char *classes = mlo_meta_get(n->meta, n->n_meta, "pkg.torch.onnx.class_hierarchy");
    if (s) return s;
    s = mlo_meta_get(n->meta, n->n_meta, "pkg.torch.onnx.name_scopes");
    if (s && (strstr(s, "_empty_nn_module_stack") || !*s)) s = NULL;
    if (s && mlo_levels_list(m, s, &l)) {
        if (!l.n) return NULL;
        return mlo_levels_scope(m, &l, l.n - mlo_last_is_op(m, n, &l, classes), 0);
    }
    if (s) {
        mlo_levels_slashes(m, s, &l);
        return mlo_levels_scope(m, &l, l.n, 1);
    }
    s = mlo_meta_get(n->meta, n->n_meta, "namespace");
    if (!s || !*s || strstr(s, "_empty_nn_module_stack")) return NULL;
    mlo_levels_slashes(m, s, &l);
    return mlo_levels_scope(m, &l, l.n > 1 ? l.n - 1 : l.n, 1);
}

/* The scope in a node's name: "/encoder/layer.0/attention/Add_1", or
 * "encoder.layer.0.bias_DequantizeLinear". NULL when it has no such form. */
static const char *mlo_scope_named(mlo *m, const mlo_node *n) {
    const char *s = mlo_or_empty(n->name), *last = strrchr(s, '/');
    mlo_levels l;
    if (last && last != s) {
        mlo_levels_slashes(m, s, &l);
        return mlo_levels_scope(m, &l, l.n - 1, 1);
    }
    last = strrchr(s, '.');
    if (!last || strspn(s, "0123456789.") == strlen(s)) return NULL;
    mlo_levels_dots(m, s, (size_t)(last - s), &l);
    return mlo_levels_scope(m, &l, l.n, 0);
}

/* ---- inference ------------------------------------------------------------ */

typedef struct {
    mlo *m;
    mlo_net *net;
    const char **scope; /* per node */
    const char **why; /* per node: where that comes from */
    int *instance; /* per node: a number of its instance (over all loops), 0 for none */
    int inside; /* 1: look at neighbours of the same instance only */
} mlo_scopes;

/* The levels two scopes share, as a scope. */
static const char *mlo_scope_meet(mlo *m, const char *a, const char *b) {
    size_t i = 0, end = 0;
    if (a == b) return a;
    for (;; i++) {
        int end_a = !a[i] || a[i] == '/', end_b = !b[i] || b[i] == '/';
        if (end_a && end_b) end = i;
        if (a[i] != b[i] || !a[i]) break;
    }
    return mlo_intern_n(m, a, end);
}

static const char *mlo_instance_scope(mlo_scopes *s, const mlo_layers *l, int k) {
    const char *meet = NULL;
    for (int p = 0; p < l->size; p++) {
        const char *one = s->scope[l->node[k * l->size + p]];
        if (one) meet = meet ? mlo_scope_meet(s->m, meet, one) : one;
    }
    return meet;
}

static const char *mlo_last_level(const char *scope) {
    const char *s = strrchr(scope, '/');
    return s ? s + 1 : scope;
}

/* "encoder/encoder.layer.3" for "encoder/encoder.layer.2" moved by 1; NULL when it has no number. */
static const char *mlo_scope_moved(mlo *m, const char *scope, int by) {
    size_t end = strlen(scope), at;
    while (end && !(scope[end - 1] >= '0' && scope[end - 1] <= '9')) end--;
    for (at = end; at && scope[at - 1] >= '0' && scope[at - 1] <= '9'; at--) {
    }
    if (at == end || strchr(scope + end, '/')) return NULL;
    long n = strtol(scope + at, NULL, 10);
    if (n > INT_MAX / 2 || n + by < 0) return NULL; /* no layer's number */
    return mlo_format(m, "%.*s%ld%s", (int)at, scope, n + by, scope + end);
}

/* A scope under layer `from` as it is called under layer `to`: each level that begins with from's
 * name begins with to's. */
static const char *mlo_scope_rebased(mlo *m, const char *scope, const char *from, const char *to) {
    const char *old = mlo_last_level(from), *fresh = mlo_last_level(to);
    size_t n = strlen(from), old_n = strlen(old);
    if (strncmp(scope, from, n) || (scope[n] && scope[n] != '/')) return NULL;
    mlo_text t = { m, NULL, 0, 0 };
    mlo_puts(&t, to);
    for (const char *p = scope + n; *p;) { /* at a slash */
        const char *end = strchr(p + 1, '/');
        size_t part = end ? (size_t)(end - p) : strlen(p);
        if (part > old_n && !strncmp(p + 1, old, old_n)
            && (p[1 + old_n] == '.' || p[1 + old_n] == '/' || !p[1 + old_n])) {
            mlo_puts(&t, "/");
            mlo_puts(&t, fresh);
            mlo_put(&t, p + 1 + old_n, part - 1 - old_n);
        } else
            mlo_put(&t, p, part);
        p += part;
    }
    const char *s = mlo_intern(m, mlo_or_empty(t.text));
    mlo_text_free(&t);
    return s;
}

/* Fills in one loop's missing scopes from the other instances. */
static int mlo_scope_by_structure(mlo_scopes *s, const mlo_layers *l) {
    mlo *m = s->m;
    const char **at = MLO_NEW_N(m, const char *, (size_t)l->iterations);
    if (!at) return mlo_failed(m);
    for (int k = 0; k < l->iterations; k++) at[k] = mlo_instance_scope(s, l, k);
    /* a layer that lost all: numbered on from another, once that is known to be numbered */
    for (int k = 0; k < l->iterations; k++)
        for (int j = 0; j < l->iterations && !at[k]; j++)
            if (at[j] && j != k) at[k] = mlo_scope_moved(m, at[j], k - j);
    for (int p = 0; p < l->size; p++)
        for (int k = 0; k < l->iterations; k++) {
            int x = l->node[k * l->size + p];
            for (int j = 0; j < l->iterations && !s->scope[x]; j++) {
                int y = l->node[j * l->size + p];
                if (!s->scope[y] || s->why[y] || !at[k] || !at[j] || at[k] == at[j]) continue;
                s->scope[x] = mlo_scope_rebased(m, s->scope[y], at[j], at[k]);
                if (s->scope[x])
                    s->why[x] = mlo_format(
                        m, "same place as %s in instance %d", mlo_node_name(s->net->g->node[y]), j);
            }
        }
    return mlo_failed(m);
}

/* What a node's known neighbours on one side share; NULL when none is known. *whose names one of
 * them. */
static const char *mlo_scope_around(mlo_scopes *s, int i, int readers, int *whose) {
    const mlo_net *net = s->net;
    const char *meet = NULL;
    int from = readers ? net->use_at[i] : net->in_at[i];
    int to = readers ? net->use_at[i + 1] : net->in_at[i + 1];
    for (int k = from; k < to; k++) {
        int other = readers ? net->reader[net->use[k]] : net->from[k];
        if (other < 0 || !s->scope[other] || (s->inside && s->instance[other] != s->instance[i]))
            continue;
        meet = meet ? mlo_scope_meet(s->m, meet, s->scope[other]) : s->scope[other];
        *whose = other;
    }
    return meet;
}

static int mlo_scope_by_neighbours(mlo_scopes *s, int i) {
    int maker = MLO_NONE, reader = MLO_NONE;
    const char *before = mlo_scope_around(s, i, 0, &maker);
    const char *after = mlo_scope_around(s, i, 1, &reader);
    if (!before && !after) return 0;
    s->scope[i] = before && after ? mlo_scope_meet(s->m, before, after) : before ? before : after;
    if (before && after)
        s->why[i] = mlo_format(s->m, "between %s and %s", mlo_node_name(s->net->g->node[maker]),
            mlo_node_name(s->net->g->node[reader]));
    else
        s->why[i] = mlo_format(s->m, before ? "reads from %s" : "feeds %s",
            mlo_node_name(s->net->g->node[before ? maker : reader]));
    return 1;
}

/* Forwards and backwards until nothing changes: first the nodes between two known ones, then those
 * with one known side. */
static int mlo_scope_fixpoint(mlo_scopes *s) {
    int n = s->net->n, again = 1;
    for (int round = 0; again && round < 64 && !s->m->error.code; round++) {
        again = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int k = 0; k < n; k++) {
                int i = pass ? n - 1 - k : k, unused;
                if (s->scope[i] || (s->inside && !s->instance[i])) continue;
                if (!round
                    && (!mlo_scope_around(s, i, 0, &unused)
                        || !mlo_scope_around(s, i, 1, &unused))) {
                    again = 1;
                    continue;
                }
                again |= mlo_scope_by_neighbours(s, i);
            }
    }
    return mlo_failed(s->m);
}

/* ---- the stage ------------------------------------------------------------ */

static int mlo_scope_infer(mlo_scopes *s, int missing) {
    mlo_found found;
    if (!missing || missing == s->net->n) return 0;
    if (mlo_discover(s->m, s->net, s->scope, NULL, &found)) return mlo_failed(s->m);
    if (!(s->instance = MLO_NEW_N(s->m, int, (size_t)s->net->n + 1))) return mlo_failed(s->m);
    for (size_t i = 0; i < found.n_loops; i++) {
        const mlo_layers *l = found.loop[i];
        for (int k = 0; k < l->iterations * l->size; k++)
            s->instance[l->node[k]] = l->node[k / l->size * l->size] + 1;
        if (mlo_scope_by_structure(s, l)) return mlo_failed(s->m);
    }
    /* a node at the edge of a layer has neighbours in two: first ask those of its own */
    s->inside = 1;
    if (mlo_scope_fixpoint(s)) return mlo_failed(s->m);
    s->inside = 0;
    return mlo_scope_fixpoint(s);
}

/* Where scopes were inferred, FINN's key is written too, so that it can read the result. */
static int mlo_scope_write(mlo_scopes *s, int i) {
    mlo *m = s->m;
    mlo_node *n = s->net->g->node[i];
    if (mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_scope, s->scope[i])) return mlo_failed(m);
    if (!s->why[i]) return 0;
    mlo_text t = { m, NULL, 0, 0 };
    mlo_puts(&t, "['");
    for (const char *p = s->scope[i]; *p; p++) {
        if (p == s->scope[i] || *p == '/') mlo_puts(&t, "', '");
        if (*p != '/') mlo_put(&t, p, 1);
    }
    mlo_printf(&t, "', '%s']", n->n_output ? n->output[0] : "");
    int r = mlo_failed(m);
    if (!r) r = mlo_meta_put(m, &n->meta, &n->n_meta, "pkg.torch.onnx.name_scopes", t.text);
    mlo_text_free(&t);
    return r ? r : mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_scope_from, s->why[i]);
}

/* The stage. */
static int mlo_scope(mlo *m) {
    mlo_net *net = mlo_net_of(m, m->model->graph);
    int missing = 0, inferred = 0, unknown = 0, first = MLO_NONE;
    if (!net) return mlo_failed(m);
    mlo_scopes s = { m, net, MLO_NEW_N(m, const char *, (size_t)net->n + 1),
        MLO_NEW_N(m, const char *, (size_t)net->n + 1), NULL, 0 };
    if (m->error.code) return mlo_failed(m);
    for (int i = 0; i < net->n; i++) {
        s.scope[i] = mlo_scope_said(m, net->g->node[i]);
        if (!s.scope[i]) s.scope[i] = mlo_scope_named(m, net->g->node[i]);
        missing += !s.scope[i];
    }
    if (mlo_scope_infer(&s, missing)) return mlo_failed(m);
    for (int i = 0; i < net->n; i++) {
        if (!s.scope[i]) {
            unknown++;
            continue;
        }
        if (s.why[i] && !inferred++) first = i;
        if (mlo_scope_write(&s, i)) return mlo_failed(m);
    }
    if (inferred)
        mlo_warn(m, "inferred the scopes of %d of %d nodes, e.g. %s: '%s' (%s)", inferred, net->n,
            mlo_node_name(net->g->node[first]), s.scope[first], s.why[first]);
    if (unknown == net->n && net->n)
        mlo_warn(m, "no node says where it belongs; the loops will be found by structure alone");
    return mlo_failed(m);
}

/* What it wrote, per node. */
static const char **mlo_scopes_of(mlo *m, const mlo_net *net) {
    const char **scope = MLO_NEW_N(m, const char *, (size_t)net->n + 1);
    for (int i = 0; scope && i < net->n; i++)
        scope[i] = mlo_meta_get(net->g->node[i]->meta, net->g->node[i]->n_meta, mlo_key_scope);
    return scope;
}
