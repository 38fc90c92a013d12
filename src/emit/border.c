/* emit, border: where the host's floats become the core's words, and words floats again.
 *
 * in:  a core in its model. Around it are Quantize and Dequantize nodes, unless the source's own
 *     operators make the integers.
 * out: of each border its scale and bounds, and some numbers of the bench's first frame beside the
 *     words that they are: with them a host's driver sees whether it has the right scale.
 *
 * invariant: the numbers are the floats whose words come first in tb/input.hex, tb/golden.hex and
 *     tb/replay.hex.
 * example: { "layer_norm", 0.000193723594, -32768, 32767, { 0.31, -1.2, .. }, 16 }
 */

enum { MLO_BORDER_IN, MLO_BORDER_OUT, MLO_BORDER_MEMORY, MLO_BORDERS, MLO_BORDER_NUMBERS = 16 };

typedef struct {
    const char
        *floats; /* the value on the host's side; NULL: the host's part has no floats there */
    double scale; /* 0: likewise */
    int64_t low;
    int64_t high;
    int bytes; /* of a word */
    double number[MLO_BORDER_NUMBERS]; /* the first floats */
    int n;
    /* where each layer's tokens leave, in its own steps (integer/taps.c): these, as a list; else NULL */
    const char *steps;
} mlo_border;

/* What the core calls the stream from around the loop; "" for none. */
static const char *mlo_replay_name(const mlo_core *c) {
    return c->replay < 0 ? "" : c->element[c->replay].node->input[0];
}

/* The node between floats and an edge of the core. */
static const mlo_node *mlo_border_node(const mlo_graph *g, const char *edge, int is_output) {
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_node *n = g->node[i];
        if (is_output ? mlo_is_kernel(n, MLO_KERNEL_TO_FLOATS) && n->input[0] == edge
                      : mlo_is_kernel(n, MLO_KERNEL_TO_INTEGERS) && n->output[0] == edge)
            return n;
    }
    return NULL;
}

/* The numbers that what a Cast makes of an edge of the core is multiplied by. */
static const char *mlo_border_steps(mlo *m, const mlo_graph *g, const char *edge) {
    const mlo_value *by = NULL;
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_node *n = g->node[i];
        const mlo_node *cast = mlo_is(n, "Mul") && n->n_input == 2 ? mlo_maker_in(g, n->input[0])
                                                                   : NULL;
        if (cast && mlo_is(cast, "Cast") && mlo_has_input(cast, 0) && cast->input[0] == edge)
            by = mlo_value_of(g, n->input[1]);
    }
    mlo_text t = { m, NULL, 0, 0 };
    for (int64_t i = 0; by && by->tensor && i < mlo_tensor_count(by->tensor); i++) {
        double x;
        if (mlo_tensor_doubles(m, by->tensor, i, 1, &x)) break;
        mlo_printf(&t, "%s%s", i ? ", " : "", mlo_number_text(m, x));
    }
    const char *list = t.n ? mlo_intern(m, t.text) : NULL;
    mlo_text_free(&t);
    return list;
}

static int mlo_border_find(
    mlo *m, const mlo_graph *g, const char *edge, int is_output, int bits, mlo_border *b) {
    const mlo_node *n = mlo_border_node(g, edge, is_output);
    const mlo_value *scale = n ? mlo_value_of(g, n->input[1]) : NULL;
    const mlo_border none = { NULL, 0, mlo_signed_bits(bits).lo, mlo_signed_bits(bits).hi,
        mlo_padded(bits) / 8, { 0 }, 0, NULL };
    *b = none;
    if (!scale || !scale->tensor) return 0;
    b->floats = is_output ? n->output[0] : n->input[0];
    if (!is_output) b->low = mlo_kernel_low(n);
    if (!is_output) b->high = mlo_kernel_high(n);
    return mlo_tensor_doubles(m, scale->tensor, 0, 1, &b->scale);
}

static int mlo_borders(mlo_emitter *e, mlo_border border[MLO_BORDERS]) {
    const mlo_core *c = e->c;
    const char *const edge[] = { mlo_in_name(e), mlo_out_name(e), mlo_replay_name(c) };
    const int bits[] = { e->h ? 32 : c->bits, mlo_emit_says(e) ? 32 : mlo_emit_made(e)->bits,
        mlo_replay_port(c).bits };
    for (int k = 0; k < MLO_BORDERS; k++)
        MLO_TRY(mlo_border_find(
            e->m, c->scan.outer, edge[k], k == MLO_BORDER_OUT, bits[k], &border[k]));
    if (c->every)
        border[MLO_BORDER_OUT].steps = mlo_border_steps(e->m, c->scan.outer, mlo_out_name(e));
    return mlo_failed(e->m);
}

/* A value of the bench's frames goes by: the first numbers of the first one. */
static void mlo_border_see(mlo_border *b, const char *name, const mlo_array *a) {
    if (!b->floats || !mlo_eq(name, b->floats) || b->n || a->dtype != MLO_FLOAT) return;
    b->n = (int)mlo_min(MLO_BORDER_NUMBERS, mlo_array_count(a));
    for (int i = 0; i < b->n; i++) b->number[i] = ((const float *)a->data)[i];
}

/* Who observes a model sees what nodes make; what comes from outside is among the inputs of sample k. */
static int mlo_border_given(mlo *m, int64_t k, mlo_border border[MLO_BORDERS]) {
    size_t n;
    mlo_array **in = mlo_sample_inputs(m, k, &n);
    for (size_t i = 0; in && i < n; i++)
        for (int b = 0; b < MLO_BORDERS; b++) mlo_border_see(&border[b], in[i]->name, in[i]);
    mlo_sample_free(m, in, n);
    return mlo_failed(m);
}

/* The numbers in braces or brackets. suffix: "f" makes them C's floats. */
static const char *mlo_border_numbers(mlo *m, const mlo_border *b, const char *suffix) {
    mlo_text t = { m, NULL, 0, 0 };
    for (int i = 0; i < b->n; i++) {
        char text[40];
        mlo_puts(&t, i ? ", " : "");
        mlo_puts(&t, mlo_digits(b->number[i], text));
        if (*suffix) mlo_puts(&t, strpbrk(text, ".e") ? suffix : ".0f");
    }
    const char *list = mlo_intern(m, t.n ? t.text : "");
    mlo_text_free(&t);
    return list;
}

/* Its members in the manifest. */
static const char *mlo_border_json(mlo *m, const mlo_border *b) {
    if (b->steps) return mlo_format(m, "\"scale\": null, \"scales\": [%s]", b->steps);
    if (!b->floats) return "\"scale\": null";
    return mlo_format(m, "\"scale\": %s, \"low\": %lld, \"high\": %lld, \"numbers\": [%s]",
        mlo_number_text(m, b->scale), (long long)b->low, (long long)b->high,
        mlo_border_numbers(m, b, ""));
}
