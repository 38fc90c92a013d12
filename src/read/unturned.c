/* unturned: layers without rotary embedding among layers that have it (SmolLM3, Cohere 2, EXAONE 4) get one by no
 * angle.
 *
 * in:  a model, indexed, with known shapes; some of its attentions turn queries and keys, x cos + r(x) sin, others
 *     do not.
 * out: the others turn theirs, too, cos being 1 and sin 0; so all layers are one body, and tables differ.
 *
 * invariant: x 1 + r(x) 0 is x: r only moves elements and changes signs. An attention is left alone unless what leads
 *     from the turned values to the scores is, op by op, what leads there from its own, of the same shape, and its
 *     queries and keys are projected from one value (to an encoder's keys nothing is done).
 * example: of four layers of SmolLM3 the last has no rotary embedding: a body of four layers before, of one now.
 * cost: O(nodes); for each layer without, as many nodes as a rotary embedding has.
 */
enum { MLO_WAY = 12, MLO_TURN = 24 };

/* x cos + r(x) sin */
typedef struct {
    const char *x;
    mlo_node *part[MLO_TURN]; /* of r, in order, then the two products and the sum */
    int n;
    const char *table[2]; /* cos, sin */
} mlo_even_turn;

/* An operand of scores, from there on backwards. */
typedef struct {
    mlo_node *scores;
    int side; /* 0: queries, 1: keys */
    const char *way[MLO_WAY + 1]; /* each value is made of the next one */
    mlo_node *node[MLO_WAY];
    int n;
    int turned; /* 1: the last of them is what `turn` makes */
    mlo_even_turn turn;
} mlo_even_operand;

static mlo_node *mlo_producer(const mlo_graph *g, const char *name) {
    const mlo_value *v = mlo_value_of(g, name);
    return v ? v->producer : NULL;
}

/* Is a value made of x alone, by moving elements and changing signs? Takes the nodes that do. */
static int mlo_even_moved(const mlo_graph *g, const char *name, mlo_even_turn *t, int depth) {
    mlo_node *n = mlo_producer(g, name);
    if (mlo_eq(name, t->x)) return 1;
    for (int i = 0; i < t->n; i++)
        if (t->part[i] == n) return 1;
    const int joins = mlo_is(n, "Concat"), moves = n && mlo_has_trait(n, MLO_MOVES);
    if (!n || depth > 8
        || (!joins && !moves && !mlo_is(n, "Neg") && !mlo_has_trait(n, MLO_RESHAPES)))
        return 0;
    for (size_t i = 0; i < (joins ? n->n_input : 1); i++)
        if (!mlo_even_moved(g, n->input[i], t, depth + 1)) return 0;
    if (t->n + 3 >= MLO_TURN) return 0;
    t->part[t->n++] = n;
    return 1;
}

/* Is it x cos + r(x) sin? direct: the product of x itself. */
static int mlo_even_turn_of(
    const mlo_graph *g, mlo_node *sum, mlo_node *direct, mlo_node *other, mlo_even_turn *t) {
    for (int k = 0; k < 4; k++) {
        t->n = 0;
        t->x = direct->input[k & 1];
        if (!mlo_even_moved(g, other->input[k >> 1], t, 0) || !t->n) continue;
        t->table[0] = direct->input[1 - (k & 1)];
        t->table[1] = other->input[1 - (k >> 1)];
        t->part[t->n++] = direct;
        t->part[t->n++] = other;
        t->part[t->n++] = sum;
        return 1;
    }
    return 0;
}
static int mlo_is_even_turn(const mlo_graph *g, const char *name, mlo_even_turn *t) {
    mlo_node *n = mlo_producer(g, name), *half[2] = { NULL, NULL };
    for (int i = 0; i < 2 && mlo_is(n, "Add"); i++)
        if (!mlo_is(half[i] = mlo_producer(g, n->input[i]), "Mul")) return 0;
    return half[1]
        && (mlo_even_turn_of(g, n, half[0], half[1], t)
            || mlo_even_turn_of(g, n, half[1], half[0], t));
}

/* The product behind which a softmax is, through what masks and scales do. */
static mlo_node *mlo_scores_above(const mlo_graph *g, const char *name, int depth) {
    mlo_node *n = mlo_producer(g, name), *found = NULL;
    if (!n || depth > 6 || mlo_is(n, "MatMul")) return depth > 6 ? NULL : n;
    if (!mlo_has_trait(n, MLO_ELEMENTWISE) && !mlo_has_trait(n, MLO_RESHAPES)) return NULL;
    for (size_t i = 0; i < n->n_input && !found; i++)
        found = mlo_scores_above(g, n->input[i], depth + 1);
    return found;
}

/* Follows an operand of scores up to where it is turned, or as far as elements are moved and multiplied by one
 * number. */
static void mlo_even_way(mlo *m, const mlo_graph *g, mlo_even_operand *o) {
    const char *name = o->scores->input[o->side];
    for (o->n = o->turned = 0;;) {
        mlo_node *n = mlo_producer(g, name);
        double number;
        size_t from = 0;
        o->way[o->n] = name;
        if ((o->turned = mlo_is_even_turn(g, name, &o->turn)) || !n || o->n == MLO_WAY) return;
        if (mlo_is(n, "Mul") || mlo_is(n, "Div")) {
            const int second = mlo_lone_number(m, mlo_value_of(g, n->input[1]), &number);
            if (!second && !mlo_lone_number(m, mlo_value_of(g, n->input[0]), &number)) return;
            from = !second;
        } else if (!mlo_has_trait(n, MLO_MOVES) && !mlo_has_trait(n, MLO_RESHAPES))
            return;
        o->node[o->n++] = n;
        name = n->input[from];
    }
}

/* What the projection reads that makes a value, behind norms and heads; NULL: none does. */
static const char *mlo_projected_from(const mlo_graph *g, const char *name) {
    for (int i = 0; i < 32; i++) {
        const mlo_node *n = mlo_producer(g, name);
        if (!n || mlo_is(n, "MatMul") || mlo_is(n, "Gemm")) return n ? n->input[0] : NULL;
        const mlo_form y = mlo_form_of(mlo_value_of(g, name));
        const char *from = mlo_has_trait(n, MLO_MOVES) ? n->input[0] : NULL;
        for (size_t k = 0; k < n->n_input && !from; k++) {
            const mlo_value *v = mlo_value_of(g, n->input[k]);
            const mlo_form f = mlo_form_of(v);
            if (v && !v->tensor && mlo_form_count(&f) == mlo_form_count(&y)) from = n->input[k];
        }
        if (!from) return NULL;
        name = from;
    }
    return NULL;
}

/* Does an operand that is not turned lead to the scores as that one does from where it is? */
static int mlo_leads_alike(
    const mlo_graph *g, const mlo_even_operand *o, const mlo_even_operand *like) {
    if (o->turned || !like->turned || o->n < like->n) return 0;
    for (int i = 0; i < like->n; i++)
        if (!mlo_eq(o->node[i]->op, like->node[i]->op)) return 0;
    const mlo_form f = mlo_form_of(mlo_value_of(g, o->way[like->n]));
    const mlo_form t = mlo_form_of(mlo_value_of(g, like->way[like->n]));
    return f.dtype == MLO_FLOAT && mlo_form_known(&f) && mlo_form_same(&f, &t);
}

/* A table of one number, of the form of another one. */
static const char *mlo_even_table(mlo *m, mlo_graph *g, const char *like, float number) {
    const mlo_form f = mlo_form_of(mlo_value_of(g, like));
    const char *name = mlo_format(m, "%s_%s", like, number > 0 ? "unturned_cos" : "unturned_sin");
    const int64_t n = mlo_form_known(&f) ? mlo_form_count(&f) : 0;
    if (!name || n < 1 || mlo_value_of(g, name)) return n < 1 ? NULL : name;
    float *data = MLO_NEW_N(m, float, (size_t)n);
    for (int64_t i = 0; data && i < n; i++) data[i] = number;
    if (!data
        || mlo_graph_init(m, g,
            mlo_tensor_new(
                m, name, MLO_FLOAT, f.dims, (size_t)f.rank, data, (size_t)n * sizeof *data))
        || !mlo_index_value(m, g, name))
        return NULL;
    return name;
}

/* The nodes that turn x as `like` does, by no angle; *y: what they make. */
static int mlo_turn_by_none(mlo *m, mlo_graph *g, const char *x, const mlo_even_turn *like,
    mlo_graph *list, const char **y) {
    const mlo_node *own = mlo_producer(g, x);
    const char *table[2] = { mlo_even_table(m, g, like->table[0], 1),
        mlo_even_table(m, g, like->table[1], 0) };
    mlo_map name = { 0 };
    if (!table[0] || !table[1] || mlo_map_put(m, &name, like->x, (void *)(uintptr_t)x)
        || mlo_map_put(m, &name, like->table[0], (void *)(uintptr_t)table[0])
        || mlo_map_put(m, &name, like->table[1], (void *)(uintptr_t)table[1]))
        return mlo_failed(m);
    for (int i = 0; i < like->n; i++) {
        const mlo_node *from = like->part[i];
        mlo_node *n = mlo_node_new(m, from->op, mlo_format(m, "%s_turn%d", x, i));
        if (!n) return mlo_failed(m);
        n->domain = from->domain;
        n->attr = from->attr;
        n->n_attr = from->n_attr;
        if (own) MLO_TRY(mlo_node_meta(m, n, own));
        for (size_t k = 0; k < from->n_input; k++) {
            const char *in = (const char *)mlo_map_get(&name, from->input[k]);
            MLO_TRY(mlo_node_input(m, n, in ? in : from->input[k]));
        }
        for (size_t k = 0; k < from->n_output; k++) {
            *y = mlo_format(m, "%s_turn%d_%zu", x, i, k);
            if (!*y || mlo_node_output(m, n, *y) || !mlo_index_value(m, g, *y)
                || mlo_map_put(m, &name, from->output[k], (void *)(uintptr_t)*y))
                return mlo_failed(m);
        }
        MLO_TRY(mlo_graph_add(m, list, n));
    }
    return 0;
}

/* Puts a turn by no angle into an operand's way, where the other one is turned. */
static int mlo_turn_operand(
    mlo *m, mlo_graph *g, const mlo_even_operand *o, const mlo_even_operand *like) {
    const char *x = o->way[like->n], *y = x;
    mlo_node *reader = like->n ? o->node[like->n - 1] : o->scores;
    mlo_graph made = { 0 }, all = { 0 };
    MLO_TRY(mlo_turn_by_none(m, g, x, &like->turn, &made, &y));
    for (size_t k = 0; k < reader->n_input; k++)
        if (mlo_eq(reader->input[k], x) && (like->n || k == (size_t)o->side)) reader->input[k] = y;
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; g->node[i] == reader && k < made.n_node; k++)
            MLO_TRY(mlo_graph_add(m, &all, made.node[k]));
        MLO_TRY(mlo_graph_add(m, &all, g->node[i]));
    }
    g->node = all.node;
    g->n_node = all.n_node;
    return 0;
}

/* Where some attentions turn queries and keys, those that are like them but for that turn theirs by nothing. */
static int mlo_turn_all(mlo *m, mlo_graph *g) {
    mlo_even_operand *o = MLO_NEW_N(m, mlo_even_operand, mlo_room(2 * g->n_node));
    size_t n = 0, like = 0, changed = 0;
    if (!o) return mlo_failed(m);
    for (size_t i = 0; i < g->n_node; i++) {
        mlo_node *s = mlo_is(g->node[i], "Softmax") ? mlo_scores_above(g, g->node[i]->input[0], 0)
                                                    : NULL;
        for (int side = 0; s && side < 2; side++, n++) {
            o[n].scores = s;
            o[n].side = side;
            mlo_even_way(m, g, &o[n]);
        }
    }
    while (like < n && !(o[like].turned && o[like + 1].turned)) like += 2;
    for (size_t i = 0; like < n && i < n; i += 2) {
        const mlo_even_operand *q = &o[like], *k = &o[like + 1];
        if (!mlo_leads_alike(g, &o[i], q) || !mlo_leads_alike(g, &o[i + 1], k)) continue;
        const char *from = mlo_projected_from(g, o[i].way[q->n]);
        if (!from || !mlo_eq(from, mlo_or_empty(mlo_projected_from(g, o[i + 1].way[k->n]))))
            continue;
        changed++;
        if (mlo_turn_operand(m, g, &o[i], q) || mlo_turn_operand(m, g, &o[i + 1], k))
            return mlo_failed(m);
    }
    return changed ? mlo_index(m, g) || mlo_infer(m) : mlo_failed(m);
}
