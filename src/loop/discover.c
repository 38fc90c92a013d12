/* discover: finds the loops of a graph from its structure alone.
 *
 * in:  a net (the graph as numbers, match.c); optionally the scope of each node (a hint, used for
 *     ties only) and a set of nodes that the body should consist of.
 * out: loops. An instance is one layer's copy of the body; the node of instance k at position p is
 *     node[k * size + p]. All instances are equal, as roll needs it.
 *
 * 1. Seeds are pairs of consecutive nodes with equal surroundings. Each seed grows into a shift
 *    (match.c): a map of every layer onto the next. Norms of queries and of keys may look alike from
 *    inside: a seed of one of each grows into a shift whose edges cross each other. Its pairs, right in
 *    most places, are forgotten.
 *    What several layers read at one position, and no layer makes (the mask of all local layers, which
 *    growth maps onto that of the global ones), belongs to no iteration, nor does what makes it: these
 *    leave the shift. So does what only reads what a layer hands to the next one (a head for each
 *    layer's hidden states, the norm in front of it): it need not be alike in all layers.
 * 2. A shift falls into chains x, next[x], next[next[x]], ..., one for each position of the body.
 *    Where one iteration ends and the next begins is still open. An alignment decides it: it gives
 *    every node a time, the number of its iteration. Candidates: the layer numbers in the scopes;
 *    for each chain S, "a value of S is read one iteration later" (all other times follow, as in
 *    retiming, or contradict each other); all chains begin together; all chains end together.
 * 3. An alignment cuts the nodes into instances, one for each time. A loop is a run of consecutive
 *    instances that are equal (attributes, shapes, wiring). A run is split where a path of outside
 *    nodes leads from one instance into a later one.
 * 4. The best alignment of the best shift wins. It is compared by, in this order: the overlap with
 *    the given set of nodes; the number of nodes rolled, less one instance for each carried value
 *    after the first; the depth of the scope that an instance has in common; the smaller body; the
 *    number of readers of carried values (a residual stream has several); carried values that are
 *    rounded (of Deeploy's RequantShift: 8 bits, where a sum has more); the earlier first node.
 *
 * invariant: no node is in two instances. A loop has at least two instances and carries at least
 *     one value. A body contains a matrix product, or has six nodes and carries more than int64
 *     (shapes).
 * example: gpt2-tiny: 4 instances of 35 nodes, whatever its nodes are called.
 * cost: O(nodes) per shift and alignment; growing all shifts takes at most MLO_EFFORT x nodes.
 */
enum { MLO_EFFORT = 64, MLO_LEAST_BODY = 6, MLO_DETOUR = -2 };

/* Where two neighbouring instances differ. With slot_x MLO_DETOUR they do not differ, but x reads
 * node y, which lies outside of the loop and depends on that layer. */
typedef struct {
    int x; /* a node */
    int y; /* its counterpart, MLO_NONE when it has none */
    int slot_x; /* the input of x that differs; MLO_NONE: they differ in themselves */
    int slot_y; /* the input of y that differs; MLO_NONE: they differ in themselves */
    int matched; /* nodes that are equal */
    int size; /* nodes of an instance */
    int layer; /* which x is in, counted from 0 */
} mlo_miss;

typedef struct {
    int iterations; /* instances */
    int size; /* nodes per instance */
    int *node; /* [iterations * size], positions in the order of instance 0 */
    int carried; /* values handed from one iteration to the next */
    long score; /* nodes rolled, less (carried - 1) * size */

    int cohesion; /* for ties: scope levels in common */
    int forks; /* for ties: readers of carried values */
    int rounded; /* for ties: how many of these read what is rounded */
    int overlap; /* for ties: how far one instance overlaps with the chosen nodes, in 1/10000 */
    int layers; /* all instances, those that differ included */
    mlo_miss before; /* why the instance in front is not in the loop; x MLO_NONE: there is none */
    mlo_miss after; /* why the instance behind is not in the loop; x MLO_NONE: there is none */
} mlo_layers;

typedef struct {
    /* in the order of their first nodes */
    mlo_layers **loop;
    size_t n_loops;
    /* loops that share nodes with a better one */
    mlo_layers **lost;
    size_t n_lost;
    /* of each shift without a loop: the two instances most alike */
    mlo_miss *near;
    size_t n_near;
    /* the most alike of these outside of all stacks with a loop; x is MLO_NONE when there is
     * none */
    mlo_miss closest;
    int tried; /* shifts looked at */
} mlo_found;

/* An edge between chains: member j of chain `to` reads member j - delta of chain `from`. */
typedef struct {
    int from; /* a chain */
    int to; /* a chain */
    int delta; /* members */
    int support; /* for how many j that is so */
} mlo_chain_edge;

typedef struct {
    mlo *m;
    mlo_net *net;
    mlo_shift *s;
    const char *const *scope;
    const uint8_t *chosen;

    int *chain; /* per node: its chain, MLO_NONE: none */
    int *index; /* per node: its place in the chain */
    int *deep; /* per node: the most matrix products on a way to it */
    /* per node: 1: its layer makes it; 2: what several layers share is made of it */
    uint8_t *made;
    uint8_t *side; /* per node: 1: it reads what layers hand on, and no layer needs it */
    uint8_t *way; /* per node: 1: on a way from a chain's first node; 2: to its last one; 3: both */

    int *root; /* per chain: its first node */
    int *length; /* per chain: nodes */
    int n_chains;
    mlo_chain_edge *edge;
    int n_edges;
    int *adj_at; /* per chain: where its edges begin in adj */
    int *adj; /* edges */
    int *offset; /* per chain: the place of its member in one and the same instance of all */
    int *queue; /* chains whose edges are to be followed */

    /* per node x: 1: x and next[x] differ too much to share a body node */
    uint8_t *bad;
    /* per node: 1: it is in a layer of a shift that has a loop, whether or not that layer is
     * rolled */
    uint8_t *stack;
    int *time; /* per node: its instance, MLO_NONE: none */
    int *reach; /* per node: the latest instance of a run that it depends on, -1: none */
    int *stamp; /* per chain: the walk that met it last */
    int stamps; /* walks */

    int *at; /* instance t: by_time[at[t] .. at[t+1]-1] */
    int *by_time; /* nodes */
    int n_times; /* instances */
    int *run_first; /* per run: its first instance */
    int *run_last; /* per run: its last instance */
    int n_runs;
    int *run_of; /* per instance: its run, MLO_NONE: none */
    int low; /* the first node of any run: nothing before it depends on one */
} mlo_align;

static int mlo_align_make(mlo *m, mlo_net *net, mlo_shift *s, mlo_align *a) {
    size_t n = (size_t)net->n + 2, slots = (size_t)net->in_at[net->n] + 1;
    int **all[] = { &a->chain, &a->index, &a->root, &a->length, &a->adj_at, &a->offset, &a->queue,
        &a->time, &a->reach, &a->stamp, &a->at, &a->by_time, &a->run_first, &a->run_last,
        &a->run_of, &a->deep };
    memset(a, 0, sizeof *a);
    a->m = m;
    a->net = net;
    a->s = s;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!(*all[i] = MLO_NEW_N(m, int, n))) return mlo_failed(m);
    a->edge = MLO_NEW_N(m, mlo_chain_edge, slots);
    a->adj = MLO_NEW_N(m, int, 2 * slots);
    a->bad = MLO_NEW_N(m, uint8_t, n);
    a->stack = MLO_NEW_N(m, uint8_t, n);
    a->made = MLO_NEW_N(m, uint8_t, n);
    a->side = MLO_NEW_N(m, uint8_t, n);
    a->way = MLO_NEW_N(m, uint8_t, n);
    if (m->error.code) return mlo_failed(m);
    for (size_t i = 0; i < n; i++) a->chain[i] = a->time[i] = MLO_NONE;
    for (int i = 0; i < net->n; i++) {
        for (int k = net->in_at[i]; k < net->in_at[i + 1]; k++)
            if (net->from[k] >= 0 && a->deep[net->from[k]] > a->deep[i])
                a->deep[i] = a->deep[net->from[k]];
        a->deep[i] += mlo_named_with_trait(net->g->node[i], MLO_MATRIX);
    }
    return 0;
}

/* ---- chains and the edges between them ------------------------------------ */

static int mlo_int_cmp(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}
static int mlo_chain_edge_cmp(const void *a, const void *b) {
    const mlo_chain_edge *x = (const mlo_chain_edge *)a, *y = (const mlo_chain_edge *)b;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->delta > y->delta) - (x->delta < y->delta);
}

static void mlo_align_chains(mlo_align *a) {
    const mlo_shift *s = a->s;
    a->n_chains = 0;
    for (int i = 0; i < s->n_pairs; i++)
        if (s->prev[s->pair[i]] < 0) a->root[a->n_chains++] = s->pair[i];
    qsort(a->root, (size_t)a->n_chains, sizeof *a->root, mlo_int_cmp);
    for (int c = 0; c < a->n_chains; c++) {
        int k = 0;
        for (int x = a->root[c]; x >= 0; x = s->next[x]) {
            a->chain[x] = c;
            a->index[x] = k++;
        }
        a->length[c] = k;
    }
}

/* Do x and y = next[x] differ too much to share a body node: in attributes, or in the type or shape
 * of an input or output? */
static int mlo_pair_bad(const mlo_align *a, int x, int y) {
    const mlo_net *net = a->net;
    const mlo_attr *which[2];
    if (mlo_attr_difference(a->m, net->g->node[x], net->g->node[y], which)) return 1;
    for (size_t i = 0; i < net->g->node[x]->n_output; i++)
        if (mlo_form_differs(mlo_value_of(net->g, net->g->node[x]->output[i]),
                mlo_value_of(net->g, net->g->node[y]->output[i])))
            return 1;
    int swap = mlo_shift_swapped(a->s, x, y), n = mlo_slot_count(net, x);
    for (int k = 0; k < n; k++) {
        mlo_value *v = net->in[net->in_at[x] + k], *w = net->in[net->in_at[y] + (swap ? 1 - k : k)];
        if (mlo_form_differs(v, w)) return 1;
    }
    return 0;
}

/* Do two members of one chain read what node x makes? Then it is none of their iterations'. */
static int mlo_align_shared(mlo_align *a, int x) {
    const mlo_net *net = a->net;
    a->stamps++;
    for (int k = net->use_at[x]; k < net->use_at[x + 1]; k++) {
        int r = net->reader[net->use[k]], c = a->chain[r];
        if (k > net->use_at[x] && r == net->reader[net->use[k - 1]]) continue;
        if (c >= 0 && a->stamp[c] == a->stamps) return 1;
        if (c >= 0) a->stamp[c] = a->stamps;
    }
    return 0;
}

/* Is a node of the shift nearer to the inputs than its counterpart, by whole matrix products? */
static int mlo_align_layered(const mlo_align *a, int x) {
    int next = a->s->next[x], prev = a->s->prev[x];
    return (next >= 0 && a->deep[next] != a->deep[x]) || (prev >= 0 && a->deep[prev] != a->deep[x]);
}

/* Takes nodes out of the shift. 1: there were such, and chains are to be made anew. */
static int mlo_align_leave(mlo_align *a, const uint8_t *mark, int which) {
    mlo_shift *s = a->s;
    int any = 0, kept = 0;
    for (int i = 0; i < s->n_pairs; i++) {
        int x = s->pair[i], y = s->next[x];
        if (mark[x] != which && mark[y] != which) {
            s->pair[kept++] = x;
            continue;
        }
        s->next[x] = s->prev[y] = a->chain[x] = a->chain[y] = MLO_NONE;
        any = 1;
    }
    s->n_pairs = kept;
    return any;
}

/* Takes out of the shift what layers share and none of them makes, and what that is made of. 1: there
 * was such. */
static int mlo_align_unshare(mlo_align *a) {
    const mlo_net *net = a->net;
    for (int x = 0; x < net->n; x++) {
        a->made[x] = (uint8_t)mlo_align_layered(a, x);
        for (int k = net->in_at[x]; k < net->in_at[x + 1] && !a->made[x]; k++)
            a->made[x] = net->from[k] >= 0 && a->made[net->from[k]];
    }
    for (int x = net->n; x--;) {
        for (int u = net->use_at[x]; u < net->use_at[x + 1] && !a->made[x]; u++)
            if (a->made[net->reader[net->use[u]]] == 2) a->made[x] = 2;
        if (!a->made[x] && a->chain[x] >= 0 && mlo_align_shared(a, x)) a->made[x] = 2;
    }
    return mlo_align_leave(a, a->made, 2);
}

/* Marks what is on a way from the first node of a chain to its last one. (What only knows a value's
 * shape needs no layer.) */
static void mlo_align_ways(mlo_align *a, int first, int last) {
    const mlo_net *net = a->net;
    memset(a->way, 0, (size_t)net->n);
    a->way[first] = 1;
    for (int x = first + 1; x < net->n; x++)
        for (int k = net->in_at[x]; k < net->in_at[x + 1] && !a->way[x]; k++)
            a->way[x] = net->from[k] >= 0 && a->way[net->from[k]] == 1
                && !mlo_is(net->g->node[x], "Shape");
    a->way[last] |= 2;
    for (int x = last; x > first; x--)
        for (int k = net->in_at[x]; k < net->in_at[x + 1] && (a->way[x] & 2); k++)
            if (net->from[k] >= 0) a->way[net->from[k]] |= 2;
}

/* Is each inner node of a chain all that the layers in front of it hand on: does every way lead through it? (Nodes are
 * in an order in which they can be computed.) */
static int mlo_align_narrow(mlo_align *a, int c) {
    const mlo_net *net = a->net;
    int last = a->root[c];
    while (a->s->next[last] >= 0) last = a->s->next[last];
    mlo_align_ways(a, a->root[c], last);
    int cut = a->s->next[a->root[c]];
    for (int x = a->root[c]; x < last; x++) {
        if (a->way[x] != 3) continue;
        if (x == cut) cut = a->s->next[cut];
        for (int u = net->use_at[x]; u < net->use_at[x + 1]; u++) {
            int r = net->reader[net->use[u]];
            if (a->way[r] == 3 && r > cut) return 0;
        }
    }
    return cut == last && a->way[last] == 3;
}

/* Takes out of the shift what reads a value that a layer hands on, where that is one value, and
 * leads to no layer. 1: there was such. */
static int mlo_align_aside(mlo_align *a) {
    const mlo_net *net = a->net;
    memset(a->side, 0, (size_t)net->n);
    for (int c = 0; c < a->n_chains; c++) {
        const int second = a->s->next[a->root[c]];
        if (a->length[c] < 3 || net->use_at[second + 1] - net->use_at[second] < 2
            || !mlo_align_narrow(a, c))
            continue;
        for (int x = a->root[c]; a->s->next[x] >= 0; x = a->s->next[x])
            for (int u = net->use_at[x]; u < net->use_at[x + 1]; u++)
                if (!(a->way[net->reader[net->use[u]]] & 2)) a->side[net->reader[net->use[u]]] = 1;
        for (int x = a->root[c]; x < net->n; x++)
            for (int k = net->in_at[x]; k < net->in_at[x + 1] && !(a->way[x] & 2); k++)
                a->side[x] |= net->from[k] >= 0 && a->side[net->from[k]];
    }
    return mlo_align_leave(a, a->side, 1);
}

static void mlo_align_edges(mlo_align *a) {
    const mlo_net *net = a->net;
    int n = 0, out = 0;
    for (int c = 0; c < a->n_chains; c++)
        for (int y = a->root[c]; y >= 0; y = a->s->next[y])
            for (int k = net->in_at[y]; k < net->in_at[y + 1]; k++) {
                int p = net->from[k];
                if (p < 0 || a->chain[p] < 0) continue;
                mlo_chain_edge e = { a->chain[p], c, a->index[y] - a->index[p], 1 };
                a->edge[n++] = e;
            }
    qsort(a->edge, (size_t)n, sizeof *a->edge, mlo_chain_edge_cmp);
    for (int i = 0; i < n; i++) {
        if (out && !mlo_chain_edge_cmp(&a->edge[out - 1], &a->edge[i]))
            a->edge[out - 1].support++;
        else
            a->edge[out++] = a->edge[i];
    }
    /* what happens only at the ends of a stack says nothing about the period */
    a->n_edges = 0;
    for (int i = 0; i < out; i++) {
        int p = a->length[a->edge[i].from], q = a->length[a->edge[i].to];
        if (a->edge[i].support * 2 >= (p < q ? p : q)) a->edge[a->n_edges++] = a->edge[i];
    }
    memset(a->adj_at, 0, (size_t)(a->n_chains + 1) * sizeof *a->adj_at);
    for (int i = 0; i < a->n_edges; i++) {
        a->adj_at[a->edge[i].from + 1]++;
        a->adj_at[a->edge[i].to + 1]++;
    }
    for (int c = 0; c < a->n_chains; c++) a->adj_at[c + 1] += a->adj_at[c];
    for (int c = 0; c < a->n_chains; c++) a->queue[c] = a->adj_at[c];
    for (int i = 0; i < a->n_edges; i++) {
        a->adj[a->queue[a->edge[i].from]++] = i;
        a->adj[a->queue[a->edge[i].to]++] = i;
    }
}

/* ---- alignments: a time for every chain ----------------------------------- */

/* Sets the offsets for which the values of chain `cut` are carried: their readers belong to the
 * next iteration. Returns 0 when that contradicts itself. (A node's time is its index in its chain,
 * less the chain's offset.) */
static int mlo_align_cut(mlo_align *a, int cut) {
    int head = 0, tail = 0;
    for (int c = 0; c < a->n_chains; c++) a->offset[c] = INT_MAX;
    a->offset[0] = 0;
    a->queue[tail++] = 0;
    while (head < tail) {
        int c = a->queue[head++];
        for (int k = a->adj_at[c]; k < a->adj_at[c + 1]; k++) {
            const mlo_chain_edge *e = &a->edge[a->adj[k]];
            int step = e->delta - (e->from == cut), other = e->from == c ? e->to : e->from;
            int want = e->from == c ? a->offset[c] + step : a->offset[c] - step;
            if (e->from == e->to) {
                if (step) return 0;
                continue;
            }
            if (a->offset[other] == INT_MAX) {
                a->offset[other] = want;
                a->queue[tail++] = other;
            } else if (a->offset[other] != want)
                return 0;
        }
    }
    return tail == a->n_chains;
}

/* Do scopes x and y differ first in a number, which is larger by one in y? *number is that of x. */
static int mlo_scope_number(const char *x, const char *y, long *number) {
    size_t i = 0;
    if (!x || !y) return 0;
    while (x[i] && x[i] == y[i]) i++;
    while (i && x[i - 1] >= '0' && x[i - 1] <= '9') i--;
    char *end, *other;
    long n = strtol(x + i, &end, 10), k = strtol(y + i, &other, 10);
    *number = n;
    return end != x + i && other != y + i && n < k && k - 1 == n;
}
/* Sets the offsets by the layer numbers in the scopes. Returns 0 when a chain has none. */
static int mlo_align_scopes(mlo_align *a) {
    for (int c = 0; c < a->n_chains; c++) {
        long number = 0;
        int x = a->root[c], i = 0;
        for (;
            a->s->next[x] >= 0 && !mlo_scope_number(a->scope[x], a->scope[a->s->next[x]], &number);
            x = a->s->next[x])
            i++;
        if (a->s->next[x] < 0 || number > 1000000) return 0;
        a->offset[c] = i - (int)number;
    }
    return 1;
}

/* Sets the offsets for which all chains begin (or, with `last`, end) together. */
static int mlo_align_ends(mlo_align *a, int last) {
    for (int c = 0; c < a->n_chains; c++) a->offset[c] = last ? a->length[c] - 1 : 0;
    return 1;
}

/* ---- instances and runs --------------------------------------------------- */

static int mlo_align_times(mlo_align *a) {
    int low = INT_MAX, high = INT_MIN, n = 0;
    for (int c = 0; c < a->n_chains; c++) {
        if (-a->offset[c] < low) low = -a->offset[c];
        if (a->length[c] - 1 - a->offset[c] > high) high = a->length[c] - 1 - a->offset[c];
    }
    for (int c = 0; c < a->n_chains; c++) n += a->length[c];
    a->n_times = high - low + 1;
    /* so many times: these chains have nothing to do with each other */
    if (a->n_times > n) return 0;
    memset(a->at, 0, (size_t)(a->n_times + 1) * sizeof *a->at);
    for (int c = 0; c < a->n_chains; c++)
        for (int x = a->root[c]; x >= 0; x = a->s->next[x]) {
            a->time[x] = a->index[x] - a->offset[c] - low;
            a->at[a->time[x] + 1]++;
        }
    for (int t = 0; t < a->n_times; t++) {
        a->at[t + 1] += a->at[t];
        a->run_of[t] = a->at[t];
    }
    for (int c = 0; c < a->n_chains; c++)
        for (int x = a->root[c]; x >= 0; x = a->s->next[x]) a->by_time[a->run_of[a->time[x]]++] = x;
    return 1;
}

/* Do slots i (of x) and j (of y = next[x]) play the same role? 0: no; 1: yes; 2: yes, if x is in
 * the first iteration. */
static int mlo_slot_role(const mlo_align *a, int x, int y, int i, int j) {
    const mlo_net *net = a->net;
    const mlo_value *v = net->in[i], *w = net->in[j];
    if (!v || !w) return v == w;
    int p = net->from[i], q = net->from[j];
    int lag_p = p >= 0 && a->time[p] >= 0 ? a->time[x] - a->time[p] : -1;
    int lag_q = q >= 0 && a->time[q] >= 0 ? a->time[y] - a->time[q] : -1;
    int linked = p >= 0 && q >= 0 && a->s->next[p] == q && v->output == w->output && lag_p >= 0;
    if (linked && lag_p <= 1) return 1;
    if (v == w) return 1;
    if (lag_q == 1 && lag_p != 0 && lag_p != 1) return mlo_form_differs(v, w) ? 0 : 2;
    if (lag_q == 0 || lag_p == 0 || lag_p == 1) return 0;
    return !mlo_form_differs(v, w);
}

/* Is instance t + 1 the same as instance t? 0: no; 1: yes; 2: yes, if t is the first iteration.
 * *miss (may be NULL) names a pair of nodes that differ. */
static int mlo_instances_same(const mlo_align *a, int t, mlo_miss *miss) {
    int all = 1, size = a->at[t + 1] - a->at[t], other = a->at[t + 2] - a->at[t + 1], matched = 0;
    mlo_miss first = { MLO_NONE, MLO_NONE, MLO_NONE, MLO_NONE, 0, 0, 0 };
    for (int i = a->at[t]; i < a->at[t + 1]; i++) {
        int x = a->by_time[i];
        int y = a->s->next[x];
        int good = y >= 0 && !a->bad[x]; /* y is in instance t + 1, as it is next in the chain */
        int where = MLO_NONE;
        int there = MLO_NONE;
        if (good) {
            int swap = mlo_shift_swapped(a->s, x, y), n = mlo_slot_count(a->net, x);
            for (int k = 0; k < n && good; k++) {
                int i_x = a->net->in_at[x] + k;
                int i_y = a->net->in_at[y] + (swap ? 1 - k : k);
                int role = mlo_slot_role(a, x, y, i_x, i_y);
                if (role == 2) all = all ? 2 : 0;
                if (!role) {
                    good = 0;
                    where = i_x;
                    there = i_y;
                }
            }
        }
        matched += good;
        if (!good) {
            all = 0;
            if (first.x < 0 || (first.y < 0 && y >= 0)) {
                first.x = x;
                first.y = y;
                first.slot_x = where;
                first.slot_y = there;
            }
        }
    }
    if (size != other) all = 0;
    if (miss) {
        first.matched = matched;
        first.size = size > other ? size : other;
        *miss = first;
    }
    return all;
}

static void mlo_run_add(mlo_align *a, int first, int last) {
    if (last <= first) return;
    a->run_first[a->n_runs] = first;
    a->run_last[a->n_runs] = last;
    for (int t = first; t <= last; t++) a->run_of[t] = a->n_runs;
    a->n_runs++;
}

static void mlo_align_runs(mlo_align *a) {
    a->n_runs = 0;
    for (int t = 0; t < a->n_times; t++) a->run_of[t] = MLO_NONE;
    int first = 0;
    for (int t = 0; t < a->n_times; t++) {
        int same = t + 1 < a->n_times ? mlo_instances_same(a, t, NULL) : 0;
        if (same == 2 && t > first) {
            mlo_run_add(a, first, t - 1);
            first = t;
        }
        if (!same) {
            mlo_run_add(a, first, t);
            first = t + 1;
        }
    }
}

/* The latest iteration that slot k depends on; -1 when it depends on none. (This may be later than
 * the iteration of the node read: in a bad alignment a node reads from later iterations.) */
static int mlo_slot_reach(const mlo_align *a, int k) {
    int p = a->net->from[k];
    if (p < a->low) return -1;
    int own = a->time[p] >= 0 && a->run_of[a->time[p]] >= 0 ? a->time[p] : -1;
    return own > a->reach[p] ? own : a->reach[p];
}

/* Splits a run where a node outside depends on one of its iterations and feeds a later one: the
 * loop would have to be left and entered again. */
static void mlo_align_convex(mlo_align *a) {
    const mlo_net *net = a->net;
    int runs = a->n_runs, high = 0;
    a->low = net->n;
    for (int r = 0; r < runs; r++)
        for (int i = a->at[a->run_first[r]]; i < a->at[a->run_last[r] + 1]; i++) {
            if (a->by_time[i] < a->low) a->low = a->by_time[i];
            if (a->by_time[i] > high) high = a->by_time[i];
        }
    for (int i = a->low; i <= high; i++) {
        a->reach[i] = -1;
        for (int k = net->in_at[i]; k < net->in_at[i + 1]; k++) {
            int r = mlo_slot_reach(a, k);
            if (r > a->reach[i]) a->reach[i] = r;
        }
    }
    for (int r = 0; r < runs; r++) {
        int first = a->run_first[r], last = a->run_last[r], start = first;
        for (int t = first; t <= last; t++) {
            int need = -1;
            for (int i = a->at[t]; i < a->at[t + 1]; i++)
                for (int x = a->by_time[i], k = net->in_at[x]; k < net->in_at[x + 1]; k++) {
                    int p = net->from[k], far = mlo_slot_reach(a, k);
                    int inside = p >= 0 && a->time[p] >= start
                        && (a->time[p] == t || a->time[p] == t - 1);
                    if (!inside && far >= start && far > need) need = far;
                }
            if (need < start) continue;
            mlo_run_add(a, start, need < t ? need : t - 1);
            start = need < t ? need + 1 : t + 1;
        }
        for (int t = first; t < start; t++)
            if (a->run_of[t] == r) a->run_of[t] = MLO_NONE;
        a->run_first[r] = start;
    }
}

/* ---- judging -------------------------------------------------------------- */

/* How many whole levels do a and b share? */
static int mlo_scope_common(const char *a, const char *b) {
    int levels = 0;
    for (size_t i = 0;; i++) {
        int end_a = !a[i] || a[i] == '/', end_b = !b[i] || b[i] == '/';
        if (end_a && end_b) levels++;
        if (a[i] != b[i] || !a[i]) return levels;
    }
}

static int mlo_instance_cohesion(const mlo_align *a, int t) {
    const char *first = NULL;
    int levels = 1000;
    for (int i = a->at[t]; i < a->at[t + 1]; i++) {
        const char *s = a->scope[a->by_time[i]];
        if (!s) continue;
        if (!first) first = s;
        int common = mlo_scope_common(first, s);
        if (common < levels) levels = common;
    }
    return levels == 1000 ? 0 : levels;
}

static int mlo_instance_overlap(const mlo_align *a, int t, int n_chosen) {
    int both = 0, size = a->at[t + 1] - a->at[t];
    for (int i = a->at[t]; i < a->at[t + 1]; i++) both += a->chosen[a->by_time[i]];
    return (int)(10000L * both / (size + n_chosen - both));
}

/* Fills in a loop (all but its nodes) from run r. Returns 0 when the run is no loop. */
static int mlo_run_judge(mlo_align *a, int r, mlo_layers *loop) {
    const mlo_net *net = a->net;
    int first = a->run_first[r];
    int last = a->run_last[r];
    int size = a->at[first + 1] - a->at[first];
    int work = 0;
    int n_chosen = 0;
    memset(loop, 0, sizeof *loop);
    if (last <= first) return 0;
    a->stamps++;
    for (int i = a->at[first + 1]; i < a->at[first + 2]; i++) {
        int x = a->by_time[i];
        work |= mlo_named_with_trait(net->g->node[x], MLO_MATRIX);
        for (int k = net->in_at[x]; k < net->in_at[x + 1]; k++) {
            int p = net->from[k];
            if (p < 0 || a->time[p] != first) continue;
            loop->forks++;
            loop->rounded += mlo_is_requant_shift(net->g->node[p]);
            /* what carries only shapes is no layer */
            work |= size >= MLO_LEAST_BODY && mlo_form_of(net->in[k]).dtype != MLO_INT64;
            if (a->stamp[a->chain[p]] != a->stamps) {
                a->stamp[a->chain[p]] = a->stamps;
                loop->carried++;
            }
        }
    }
    loop->iterations = last - first + 1;
    loop->size = size;
    loop->score = (long)size * (loop->iterations - (loop->carried - 1));
    loop->cohesion = mlo_instance_cohesion(a, first) + mlo_instance_cohesion(a, first + 1);
    if (a->chosen) {
        for (int i = 0; i < net->n; i++) n_chosen += a->chosen[i];
        for (int t = first; t <= last; t++) {
            int o = mlo_instance_overlap(a, t, n_chosen);
            if (o > loop->overlap) loop->overlap = o;
        }
        if (!loop->overlap) return 0;
    }
    return work && loop->carried > 0 && loop->score > 0;
}

typedef struct {
    long score; /* as in mlo_layers, of all loops together */
    int overlap; /* as in mlo_layers, the largest; so are the four behind it */
    int cohesion;
    int forks;
    int rounded;
    int size; /* nodes */
    int first; /* the first node */
} mlo_rank;

/* Above 0: a is better. */
static int mlo_rank_cmp(const mlo_rank *a, const mlo_rank *b) {
    if (a->overlap != b->overlap) return a->overlap > b->overlap ? 1 : -1;
    if (a->score != b->score) return a->score > b->score ? 1 : -1;
    if (a->cohesion != b->cohesion) return a->cohesion > b->cohesion ? 1 : -1;
    if (a->size != b->size) return a->size < b->size ? 1 : -1;
    if (a->forks != b->forks) return a->forks > b->forks ? 1 : -1;
    if (a->rounded != b->rounded) return a->rounded > b->rounded ? 1 : -1;
    return a->first < b->first ? 1 : a->first > b->first ? -1 : 0;
}

/* Cuts the nodes into instances by the present offsets and ranks the result. Returns 0 when there
 * is no loop. */
static int mlo_align_judge(mlo_align *a, mlo_rank *rank) {
    mlo_layers loop;
    memset(rank, 0, sizeof *rank);
    if (!mlo_align_times(a)) return 0;
    mlo_align_runs(a);
    mlo_align_convex(a);
    for (int r = 0; r < a->n_runs; r++) {
        if (!mlo_run_judge(a, r, &loop)) continue;
        rank->score += loop.score;
        if (loop.cohesion > rank->cohesion) rank->cohesion = loop.cohesion;
        if (loop.overlap > rank->overlap) rank->overlap = loop.overlap;
        if (loop.forks > rank->forks) rank->forks = loop.forks;
        if (loop.rounded > rank->rounded) rank->rounded = loop.rounded;
        if (loop.size > rank->size) rank->size = loop.size;
    }
    return rank->score > 0;
}

/* ---- one shift: its best alignment, its loops ----------------------------- */

/* Sets the offsets of the k-th candidate: the scopes, then every cut, then both ends. Returns 0
 * when this candidate does not exist, -1 after the last. */
static int mlo_align_try(mlo_align *a, int k) {
    if (k == 0) return mlo_align_scopes(a);
    if (k <= a->n_chains) return mlo_align_cut(a, k - 1);
    if (k <= a->n_chains + 2) return mlo_align_ends(a, k - a->n_chains - 1);
    return -1;
}

/* How many layers of about this size begin before time t. */
static int mlo_align_layer(const mlo_align *a, int t, int size) {
    int n = 0;
    for (int u = 0; u < t; u++) n += (a->at[u + 1] - a->at[u]) * 2 >= size;
    return n;
}

/* Compares instances t and t + 1. If they are more alike than those of *best, *best becomes the
 * place where they differ. */
static void mlo_miss_keep(const mlo_align *a, int t, mlo_miss *best) {
    mlo_miss miss;
    if (mlo_instances_same(a, t, &miss) || miss.x < 0 || miss.matched * 2 < miss.size
        || miss.size <= 2 || (best->x >= 0 && miss.matched <= best->matched))
        return;
    *best = miss;
    best->layer = mlo_align_layer(a, t, miss.size);
}

/* Instances t and t + 1 are equal, yet no loop holds both. Finds the node of t + 1 or later that
 * reads what a node outside made of instance t. */
static void mlo_align_detour(const mlo_align *a, int t, mlo_miss *miss) {
    const mlo_net *net = a->net;
    for (int i = a->at[t + 1]; i < a->at[a->n_times]; i++)
        for (int x = a->by_time[i], k = net->in_at[x]; k < net->in_at[x + 1]; k++) {
            int p = net->from[k];
            if (p < a->low || a->time[p] == t || (a->time[p] >= 0 && a->run_of[a->time[p]] >= 0)
                || a->reach[p] != t)
                continue;
            miss->x = x;
            miss->y = p;
            miss->slot_x = MLO_DETOUR;
            miss->layer = mlo_align_layer(a, t, miss->size);
            return;
        }
}

/* One of the instances t and t + 1 is in a loop, the other is not: says why. */
static void mlo_align_why(const mlo_align *a, int t, mlo_miss *why) {
    mlo_miss miss;
    if (!mlo_instances_same(a, t, &miss)) {
        mlo_miss_keep(a, t, why);
        return;
    }
    mlo_align_detour(a, t, &miss);
    if (miss.slot_x == MLO_DETOUR) *why = miss;
}

/* Stores the loops of the present alignment. */
static int mlo_align_take(mlo_align *a, mlo_layers ***loops, size_t *n) {
    mlo_layers judged;
    for (int r = 0; r < a->n_runs; r++) {
        if (!mlo_run_judge(a, r, &judged)) continue;
        mlo_layers *loop = MLO_NEW(a->m, mlo_layers);
        int *first;
        if (!loop
            || !(
                judged.node = MLO_NEW_N(a->m, int, (size_t)judged.iterations *(size_t)judged.size)))
            return mlo_failed(a->m);
        *loop = judged;
        first = a->by_time + a->at[a->run_first[r]];
        memcpy(loop->node, first, (size_t)loop->size * sizeof *first);
        qsort(loop->node, (size_t)loop->size, sizeof *loop->node, mlo_int_cmp);
        for (int i = loop->size; i < loop->size * loop->iterations; i++)
            loop->node[i] = a->s->next[loop->node[i - loop->size]];
        loop->before.x = loop->after.x = MLO_NONE;
        loop->layers = mlo_align_layer(a, a->n_times, loop->size);
        if (a->run_first[r] > 0) mlo_align_why(a, a->run_first[r] - 1, &loop->before);
        if (a->run_last[r] + 1 < a->n_times) mlo_align_why(a, a->run_last[r], &loop->after);
        if (!MLO_PUSH(a->m, *loops, *n, loop)) return mlo_failed(a->m);
    }
    return 0;
}

/* Adds the loops of the present shift in its best alignment. Finding none is no failure. */
static int mlo_shift_loops(mlo_align *a, mlo_layers ***loops, size_t *n, mlo_found *found) {
    mlo_rank best = { 0, 0, 0, 0, 0, 0, 0 }, rank;
    int way = -1, r = 0;
    mlo_miss near;
    near.x = MLO_NONE;
    mlo_align_chains(a);
    if (mlo_align_unshare(a)) mlo_align_chains(a);
    if (mlo_align_aside(a)) mlo_align_chains(a);
    for (int c = 0; c < a->n_chains; c++)
        for (int x = a->root[c]; a->s->next[x] >= 0; x = a->s->next[x])
            a->bad[x] = (uint8_t)mlo_pair_bad(a, x, a->s->next[x]);
    mlo_align_edges(a);
    for (int k = 0; a->n_chains && (r = mlo_align_try(a, k)) >= 0; k++) {
        if (!r) continue;
        if (mlo_align_judge(a, &rank) && (way < 0 || mlo_rank_cmp(&rank, &best) > 0)) {
            best = rank;
            way = k;
        }
        for (int t = 0; way < 0 && a->n_runs == 0 && t + 1 < a->n_times; t++)
            mlo_miss_keep(a, t, &near);
    }
    if (way < 0 && near.x >= 0 && !MLO_PUSH(a->m, found->near, found->n_near, near))
        return mlo_failed(a->m);
    if (way >= 0) {
        mlo_align_try(a, way);
        mlo_align_judge(a, &rank);
        if (mlo_align_take(a, loops, n)) return mlo_failed(a->m);
        for (int i = 0; i < a->at[a->n_times]; i++) a->stack[a->by_time[i]] = 1;
    }
    for (int c = 0; c < a->n_chains; c++)
        for (int x = a->root[c]; x >= 0; x = a->s->next[x]) {
            a->chain[x] = a->time[x] = MLO_NONE;
        }
    return 0;
}

/* ---- all shifts ----------------------------------------------------------- */

typedef struct {
    uint64_t key;
    int node;
} mlo_seed;
static int mlo_seed_cmp(const void *a, const void *b) {
    const mlo_seed *x = (const mlo_seed *)a, *y = (const mlo_seed *)b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Grows every seed whose surroundings are equal up to `radius`, and collects the loops. */
static int mlo_discover_at(mlo_align *a, int radius, mlo_seed *seed, mlo_pairs *seen, long *effort,
    mlo_found *found, mlo_layers ***loops, size_t *n) {
    mlo_net *net = a->net;
    size_t count = 0;
    for (int i = 0; i < net->n; i++)
        if (!net->constant[i]) {
            seed[count].key = net->context[radius][i];
            seed[count++].node = i;
        }
    qsort(seed, count, sizeof *seed, mlo_seed_cmp);
    for (size_t i = 0; i + 1 < count; i++) {
        int x = seed[i].node, y = seed[i + 1].node;
        if (seed[i].key != seed[i + 1].key || mlo_pairs_has(seen, x, y)) continue;
        if (*effort > (long)MLO_EFFORT * net->n + 100000) return 0;
        found->tried++;
        int whole = mlo_shift_grow(a->s, x, y, seen, effort);
        /* one that crosses itself is right in most pairs: they must not keep the right one out */
        for (int k = 0; k < (a->s->crossed ? 1 : a->s->n_pairs) && whole; k++)
            if (mlo_pairs_put(a->m, seen, a->s->pair[k], a->s->next[a->s->pair[k]]))
                return mlo_failed(a->m);
        *effort += a->s->n_pairs;
        if (whole && a->s->n_pairs > 1 && mlo_shift_loops(a, loops, n, found))
            return mlo_failed(a->m);
        mlo_shift_clear(a->s);
    }
    return 0;
}

static mlo_rank mlo_layers_rank(const mlo_layers *l) {
    mlo_rank r = { l->score, l->overlap, l->cohesion, l->forks, l->rounded, l->size, l->node[0] };
    return r;
}
static int mlo_layers_better(const void *a, const void *b) {
    mlo_rank x = mlo_layers_rank(*(mlo_layers *const *)a);
    mlo_rank y = mlo_layers_rank(*(mlo_layers *const *)b);
    return -mlo_rank_cmp(&x, &y);
}
static int mlo_layers_earlier(const void *a, const void *b) {
    return mlo_int_cmp((*(mlo_layers *const *)a)->node, (*(mlo_layers *const *)b)->node);
}

/* Does a explain better than b why there is no loop? A pair of nodes that differ explains more than
 * a node without a counterpart. */
static int mlo_miss_nearer(const mlo_miss *a, const mlo_miss *b) {
    if (b->x < 0) return 1;
    return (a->y >= 0) != (b->y >= 0) ? a->y >= 0 : a->matched > b->matched;
}

/* Finds the loops of a graph. Where two loops share nodes, the better one is taken and the other is
 * lost. scope and chosen have an entry per node; chosen may be NULL (see the top of this file). */
static int mlo_discover(
    mlo *m, mlo_net *net, const char *const *scope, const uint8_t *chosen, mlo_found *found) {
    mlo_shift shift;
    mlo_align align;
    mlo_pairs seen = { NULL, 0, 0 };
    mlo_layers **loops = NULL;
    size_t n = 0;
    long effort = 0;
    memset(found, 0, sizeof *found);
    found->closest.x = MLO_NONE;
    mlo_seed *seed = MLO_NEW_N(m, mlo_seed, (size_t)net->n + 1);
    uint8_t *taken = MLO_NEW_N(m, uint8_t, (size_t)net->n + 1);
    if (!seed || !taken || mlo_shift_make(net, &shift) || mlo_align_make(m, net, &shift, &align))
        return mlo_failed(m);
    align.scope = scope;
    align.chosen = chosen;
    for (int r = MLO_RADII; r--;)
        if (mlo_discover_at(&align, r, seed, &seen, &effort, found, &loops, &n))
            return mlo_failed(m);
    if (n) qsort(loops, n, sizeof *loops, mlo_layers_better);
    for (size_t i = 0; i < n; i++) {
        int clash = 0, total = loops[i]->iterations * loops[i]->size;
        for (int k = 0; k < total; k++) clash |= taken[loops[i]->node[k]];
        for (int k = 0; k < total && !clash; k++) taken[loops[i]->node[k]] = 1;
        if (clash ? !MLO_PUSH(m, found->lost, found->n_lost, loops[i])
                  : !MLO_PUSH(m, found->loop, found->n_loops, loops[i]))
            return mlo_failed(m);
    }
    for (size_t i = 0; i < found->n_near; i++) {
        const mlo_miss *near = &found->near[i];
        if (align.stack[near->x] || (near->y >= 0 && align.stack[near->y])) continue;
        if (mlo_miss_nearer(near, &found->closest)) found->closest = *near;
    }
    if (found->n_loops) qsort(found->loop, found->n_loops, sizeof *found->loop, mlo_layers_earlier);
    return 0;
}
