/* unbiased: layers whose products lack a bias among layers that have it (GPT-NeoX-Japanese, whose last layer alone has
 * one behind its attention) get one of zeros.
 *
 * in:  a model with scopes. A product is a MatMul or a Gemm with a constant matrix of floats; its bias an Add of a
 *     constant, a number for each channel, or the Gemm's third input.
 * out: where some layers of what then repeats have a bias and some lack it, these get one; so all layers are one body.
 *     A bias that is written for each token, all rows alike, is written once there.
 *
 * Every product without a bias that has its like with one (the same op, a matrix of the same form) gets one on trial.
 * What repeats then says which of them are of use: those whose counterparts in other layers have a bias by themselves.
 * They stay if more products are in loops than without them.
 *
 * invariant: the zeros are -0: x + -0 is x, bit for bit, whatever x is; check knows that, too. A model whose layers all
 *     repeat as they are stays as it is.
 * example: of two layers of GPT-NeoX-Japanese nothing repeats as exported; with one bias more, both are one body.
 * cost: O(nodes); where a product without a bias has its like with one, a discovery of loops; where it is of use, two.
 */
typedef struct {
    mlo_node *product;
    mlo_node *sum; /* of a MatMul: the Add of its bias, or the one that it may get; NULL: a Gemm */
    const char *y; /* what the product makes as it is */
    const char *inner; /* what it makes in front of a bias that it gets */
    const char *bias; /* as it is; NULL: it has none */
    mlo_tensor
        *other; /* the bias that it may have in its place: -0, or one row of it; NULL: none */
    int64_t channels;
    size_t n_input; /* of a Gemm, as it is */
    int side; /* which input of `sum` the bias is */
    int on; /* 1: `other` is in place */
    int used; /* 1: it is to be there in the end */
} mlo_evened;

typedef struct {
    mlo *m;
    mlo_graph *g;
    mlo_evened *of;
    size_t n;
    mlo_map at; /* a product -> 1 + its place in `of` */
    mlo_graph as_it_is; /* the lists of the graph */
    int uses; /* places of loops where some iterations have a bias and others have none */
} mlo_evener;

/* ---- products and their biases -------------------------------------------- */

static const mlo_tensor *mlo_even_floats(const mlo_graph *g, const char *name) {
    const mlo_value *v = mlo_value_of(g, name);
    return v && v->tensor && v->tensor->data_type == MLO_FLOAT ? v->tensor : NULL;
}

/* Op and form of a product's matrix, its outputs counted; NULL: it is no such product. */
static const char *mlo_even_class(
    mlo *m, const mlo_graph *g, const mlo_node *n, int64_t *channels) {
    const int gemm = mlo_is(n, "Gemm");
    const mlo_tensor *w = gemm || mlo_is(n, "MatMul") ? mlo_even_floats(g, n->input[1]) : NULL;
    const mlo_attr *beta = gemm ? mlo_attr_of(n, "beta") : NULL;
    if (!w || w->n_dims != 2 || (beta && mlo_differs((double)beta->f, 1))) return NULL;
    const int turned = gemm && mlo_int(n, "transB", 0);
    *channels = w->dims[1 - turned];
    return mlo_format(m, "%s %d %s", n->op, turned, mlo_dims_text(m, 2, w->dims));
}

/* Is a constant one number for each channel: a row, or rows that are all alike? */
static int mlo_is_even_bias(mlo *m, const mlo_tensor *t, int64_t channels) {
    return t && t->n_dims && t->dims[t->n_dims - 1] == channels && mlo_tensor_rows_same(m, t);
}

/* The Add that alone reads a product, if a bias is what it adds. */
static void mlo_even_sum(mlo *m, const mlo_graph *g, mlo_evened *e) {
    const mlo_value *y = mlo_value_of(g, e->y);
    mlo_node *sum = y->n_uses == 1 && y->n_use == 1 ? y->use[0] : NULL;
    if (!mlo_is(sum, "Add")) return;
    e->side = mlo_eq(sum->input[0], e->y);
    if (!mlo_is_even_bias(m, mlo_even_floats(g, sum->input[e->side]), e->channels)) return;
    e->sum = sum;
    e->bias = sum->input[e->side];
}

/* A name that nothing has. */
static const char *mlo_even_name(mlo_evener *u, const char *of, const char *what) {
    const char *name = mlo_format(u->m, "%s_%s", of, what);
    for (int i = 1; name && mlo_value_of(u->g, name); i++)
        name = mlo_format(u->m, "%s_%s%d", of, what, i);
    return name && mlo_index_value(u->m, u->g, name) ? name : NULL;
}

/* -0 for each channel, or a row of a bias that has several. */
static int mlo_even_row(mlo_evener *u, mlo_evened *e) {
    mlo *m = u->m;
    const mlo_tensor *bias = e->bias ? mlo_even_floats(u->g, e->bias) : NULL;
    if (e->bias && (!bias || bias->n_dims == 1)) return 0;
    float *row = MLO_NEW_N(m, float, (size_t)e->channels + 1);
    const char *name = mlo_even_name(u, e->bias ? e->bias : e->y, e->bias ? "row" : "zeros");
    if (!row || !name) return mlo_failed(m);
    for (int64_t i = 0; !bias && i < e->channels; i++) row[i] = -0.0f;
    if (bias) MLO_TRY(mlo_tensor_read(m, bias, 0, (size_t)e->channels, row));
    mlo_little_endian(row, (size_t)e->channels, sizeof *row);
    e->other = mlo_tensor_new(
        m, name, MLO_FLOAT, &e->channels, 1, row, (size_t)e->channels * sizeof *row);
    return mlo_failed(m);
}

/* The Add that a MatMul may get, with the MatMul's scope; a Gemm's third input. */
static int mlo_even_bare(mlo_evener *u, mlo_evened *e) {
    mlo *m = u->m;
    mlo_node *n = e->product;
    MLO_TRY(mlo_even_row(u, e));
    if (mlo_is(n, "Gemm")) {
        if (n->n_input == 2) MLO_TRY(mlo_node_input(m, n, ""));
        return 0;
    }
    e->side = 1;
    e->inner = mlo_even_name(u, e->y, "unbiased");
    e->sum = mlo_node_new(m, "Add", mlo_format(m, "%s_bias", mlo_node_name(n)));
    if (!e->inner || !e->sum) return mlo_failed(m);
    return mlo_node_meta(m, e->sum, n) || mlo_node_input(m, e->sum, e->inner)
            || mlo_node_input(m, e->sum, "") || mlo_node_output(m, e->sum, e->y)
        ? mlo_failed(m)
        : 0;
}

/* Notes each product that has a bias or has its like with one; says of how many of these it has none. */
static int mlo_even_collect(mlo_evener *u, size_t *bare) {
    mlo *m = u->m;
    mlo_map biased = { NULL, 0, 0 };
    const char **classes = NULL;
    for (size_t i = 0, k = 0; i < u->g->n_node; i++) {
        mlo_evened e = { u->g->node[i], NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0 };
        const char *its = mlo_even_class(m, u->g, e.product, &e.channels);
        if (!its) continue;
        e.y = e.product->output[0];
        e.n_input = e.product->n_input;
        if (mlo_is(e.product, "MatMul"))
            mlo_even_sum(m, u->g, &e);
        else if (mlo_has_input(e.product, 2))
            e.bias = e.product->input[2];
        if ((e.bias && mlo_map_put(m, &biased, its, u)) || !MLO_PUSH(m, classes, k, its)
            || !MLO_PUSH(m, u->of, u->n, e))
            return mlo_failed(m);
    }
    for (size_t i = 0; i < u->n; i++) {
        mlo_evened *e = &u->of[i];
        if (!mlo_map_get(&biased, classes[i])) continue;
        *bare += !e->bias;
        MLO_TRY(e->bias ? mlo_even_row(u, e) : mlo_even_bare(u, e));
        MLO_TRY(mlo_map_put(m, &u->at, e->product, (void *)(uintptr_t)(i + 1)));
    }
    return mlo_failed(m);
}

/* ---- the graph, with them and without ------------------------------------- */

/* Puts a product's bias in place, or what it has by itself. */
static int mlo_even_place(mlo_evener *u, mlo_evened *e) {
    mlo *m = u->m;
    const char *bias = e->on ? e->other->name : mlo_or_empty(e->bias);
    if (!e->sum && e->other) {
        e->product->input[2] = bias;
        e->product->n_input = e->on ? 3 : e->n_input;
    }
    if (e->sum) e->sum->input[e->side] = bias;
    if (e->inner) e->product->output[0] = e->on ? e->inner : e->y;
    if (!e->on) return 0;
    MLO_TRY(mlo_graph_init(m, u->g, e->other));
    if (!e->inner) return 0;
    const mlo_value *y = mlo_value_of(u->g, e->y);
    const mlo_form form = mlo_form_of(y);
    mlo_value_info *info = mlo_info_new(m, e->inner, &form);
    return info && MLO_PUSH(m, u->g->info, u->g->n_info, info) ? 0 : mlo_failed(m);
}

/* Makes the graph anew: each product as `on` says. */
static int mlo_even_write(mlo_evener *u) {
    mlo *m = u->m;
    mlo_graph *g = u->g;
    g->node = NULL;
    g->n_node = 0;
    g->n_init = u->as_it_is.n_init;
    g->n_info = u->as_it_is.n_info;
    for (size_t i = 0; i < u->as_it_is.n_node; i++) {
        mlo_node *n = u->as_it_is.node[i];
        const uintptr_t at = (uintptr_t)mlo_map_get(&u->at, n);
        mlo_evened *e = at ? &u->of[at - 1] : NULL;
        if ((e && mlo_even_place(u, e)) || mlo_graph_add(m, g, n)) return mlo_failed(m);
        if (e && e->on && e->inner) MLO_TRY(mlo_graph_add(m, g, e->sum));
    }
    return mlo_index(m, g);
}

/* What stands at place p of iteration k of a loop, if it is one of these products. */
static mlo_evened *mlo_even_at(const mlo_evener *u, const mlo_layers *l, int p, int k) {
    const uintptr_t at = (uintptr_t)mlo_map_get(&u->at, u->g->node[l->node[k * l->size + p]]);
    return at ? &u->of[at - 1] : NULL;
}

/* Notes which biases are of use in a loop: where some iterations have one by themselves and others do not. */
static void mlo_even_mark(mlo_evener *u, const mlo_layers *l) {
    for (int p = 0; p < l->size; p++) {
        int own = 0, k;
        for (k = 0; k < l->iterations && mlo_even_at(u, l, p, k); k++)
            own += mlo_even_at(u, l, p, k)->bias != NULL;
        if (k < l->iterations || !own || own == k) continue;
        for (k = 0; k < l->iterations; k++) mlo_even_at(u, l, p, k)->used = 1;
        u->uses++;
    }
}

/* Finds the loops of the graph as it is now. How many products they hold; with `mark`: which biases are of use. */
static int mlo_even_look(mlo_evener *u, int mark, long *products) {
    mlo_found found;
    mlo_net *net = mlo_net_of(u->m, u->g);
    const char **scope = net ? mlo_scopes_of(u->m, net) : NULL;
    if (!scope || mlo_discover(u->m, net, scope, NULL, &found)) return mlo_failed(u->m);
    *products = 0;
    for (size_t i = 0; i < found.n_loops; i++) {
        const mlo_layers *l = found.loop[i];
        for (int p = 0; p < l->size; p++)
            *products += mlo_named_with_trait(u->g->node[l->node[p]], MLO_MATRIX)
                * (long)l->iterations;
        if (mark) mlo_even_mark(u, l);
    }
    return 0;
}

/* Gives layers the biases that they lack and others have, where more of them repeat by that. */
static int mlo_even_biases(mlo *m) {
    mlo_evener u;
    size_t bare = 0;
    long with = 0, without = 0;
    memset(&u, 0, sizeof u);
    u.m = m;
    u.g = m->model->graph;
    u.as_it_is = *u.g;
    if (mlo_even_collect(&u, &bare) || !bare) return mlo_failed(m);
    for (size_t i = 0; i < u.n; i++) u.of[i].on = u.of[i].other != NULL;
    if (mlo_even_write(&u) || mlo_even_look(&u, 1, &with)) return mlo_failed(m);
    for (size_t i = 0; i < u.n; i++) u.of[i].on = 0;
    MLO_TRY(mlo_even_write(&u));
    if (!u.uses || mlo_even_look(&u, 0, &without) || with <= without) return mlo_failed(m);
    for (size_t i = 0; i < u.n; i++) u.of[i].on = u.of[i].used && u.of[i].other;
    return mlo_even_write(&u);
}
