/* blocks: which kernels of a layer may run block by block of tokens, one behind the other.
 *
 * in:  a core.
 * out: its elements in chains. In a chain a few tokens go through all kernels before the next ones do: what
 *     lies between two of them is needed of a block only.
 *
 * Most kernels read of a token what they make of it; an attention reads so its queries, of keys and values all
 * tokens'. So a chain ends where all tokens of what it makes are read; a kernel that mixes tokens in another
 * way (windows, norms of a frame), or takes those of an encoder, is a chain by itself. `apart`: so is an
 * attention: then what it reads is needed no more when what is behind it runs, but its result is there whole.
 *
 * invariant: nothing that is read of all tokens is made in the chain that reads it so.
 * example: BERT: rescaling and projections of queries, keys and values; attention and all that is behind it.
 * cost: O(elements^2 * inputs).
 */
typedef struct {
    int of[MLO_CORE_MOST]; /* of each element: its chain */
    int n;
    int first[MLO_CORE_MOST]; /* of each chain: its elements, */
    int last[MLO_CORE_MOST];
    int64_t rows[MLO_CORE_MOST]; /* and tokens of a block: all of a frame's where it is whole */
} mlo_c_blocks;

/* May it run on a few tokens, on others later? */
static int mlo_c_by_rows(const mlo_element *e, int apart) {
    if (!e->kernel) return 1;
    switch (e->kernel->kind) {
    case MLO_KERNEL_MATRIX:
    case MLO_KERNEL_SUM:
    case MLO_KERNEL_PRODUCT:
    case MLO_KERNEL_RESCALE:
    case MLO_KERNEL_NORM:
    case MLO_KERNEL_EXACT_NORM:
    case MLO_KERNEL_ROTATION:
    case MLO_KERNEL_PLACE: return !e->side;
    case MLO_KERNEL_ATTENTION: return !apart;
    default: return 0;
    }
}

/* Does an element read all tokens of a value for each that it makes? */
static int mlo_c_reads_all(const mlo_element *e, const char *name) {
    return e->kernel && e->kernel->kind == MLO_KERNEL_ATTENTION
        && (e->node->input[1] == name || e->node->input[2] == name);
}

/* The element whose result a value is, or is a view of. */
static int mlo_c_maker(const mlo_core *c, const char *name) {
    int port, from = mlo_core_source(c, name, &port);
    while (from >= 0 && !c->element[from].kernel)
        from = mlo_core_source(c, c->element[from].node->input[0], &port);
    return from;
}

/* Does element i go on with the chain that the one in front of it is in? */
static int mlo_c_goes_on(const mlo_core *c, const mlo_c_blocks *k, int i, int apart) {
    const mlo_element *e = &c->element[i];
    if (!i || !mlo_c_by_rows(e, apart) || !mlo_c_by_rows(e - 1, apart)) return 0;
    for (size_t j = 0; j < e->node->n_input; j++) {
        const int from = mlo_c_maker(c, e->node->input[j]);
        if (from >= k->first[k->n - 1] && mlo_c_reads_all(e, e->node->input[j])) return 0;
    }
    return 1;
}

/* All elements, in chains of blocks of so many tokens. */
static void mlo_c_chains(const mlo_core *c, mlo_c_blocks *k, int apart, int64_t rows) {
    k->n = 0;
    for (int i = 0; i < c->n_element; i++) {
        if (!mlo_c_goes_on(c, k, i, apart)) {
            k->first[k->n] = i;
            k->rows[k->n++] = rows;
        }
        k->of[i] = k->n - 1;
        k->last[k->n - 1] = i;
    }
}

/* Is a value read outside of a chain? */
static int mlo_c_leaves(const mlo_core *c, const mlo_c_blocks *k, const char *name, int chain) {
    if (name == c->scan.body->output[0]->name) return 1;
    for (int i = 0; i < c->n_element; i++) {
        const mlo_node *n = c->element[i].node;
        for (size_t j = 0; j < n->n_input; j++) {
            if (n->input[j] != name) continue;
            if (c->element[i].kernel && k->of[i] != chain) return 1;
            for (size_t v = 0; !c->element[i].kernel && v < n->n_output; v++)
                if (mlo_c_leaves(c, k, n->output[v], chain)) return 1;
        }
    }
    return 0;
}
