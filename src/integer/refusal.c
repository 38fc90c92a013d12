/* refusal: what a person calls a part of a model that has no hardware, and what helps.
 *
 * in:  a loop's body, and a value or a node of it that no kind of sublayer knows.
 * out: a line's words: what was seen, as those who build models say it, and a remedy; NULL: nothing telling is there.
 *
 * Recognition stops at the node where its forms fail, often several nodes behind what a person would name: a Gather
 * behind a Fourier transform, a Transpose behind a recurrence. So a few nodes in front are looked at, too.
 *
 * invariant: nothing is accepted or refused here. A remedy computes the same in a way that hardware has, or says what
 *   else becomes hardware.
 * example: of FNet's Gather of a DFT, not "a reshape that changes the channels", but "a Fourier transform".
 * cost: up to 3^MLO_TELL_DEPTH nodes, once, where a model is refused.
 */
enum { MLO_TELL_DEPTH = 6, MLO_TELL_FAR = 12 };

#define MLO_TOLD_MIXES "attention, a depthwise convolution or an average mixes tokens in hardware"
#define MLO_TOLD_STATE \
    "a state that goes from token to token (a recurrence, as Mamba's); " MLO_TOLD_MIXES

#define MLO_TOLD_QUANTIZED                                                                         \
    "an operator on integers (QuantFormat.QOperator); quantize with QuantFormat.QDQ, or give the " \
    "float model"

typedef struct {
    const char *op;
    const char *words;
} mlo_telling;

static const mlo_telling mlo_told_ops[] = {
    { "DFT", "a Fourier transform over tokens (as FNet's); " MLO_TOLD_MIXES },
    { "CumSum", MLO_TOLD_STATE },
    { "LSTM", MLO_TOLD_STATE },
    { "GRU", MLO_TOLD_STATE },
    { "RNN", MLO_TOLD_STATE },
    { "com.microsoft.QLinearAdd", MLO_TOLD_QUANTIZED },
    { "com.microsoft.QLinearMul", MLO_TOLD_QUANTIZED },
    { "com.microsoft.QGemm", MLO_TOLD_QUANTIZED },
    { "com.microsoft.QLinearConcat", MLO_TOLD_QUANTIZED },
    { "com.microsoft.QLinearSoftmax", MLO_TOLD_QUANTIZED },
    { "com.microsoft.QLinearSigmoid", MLO_TOLD_QUANTIZED },
    { "ScatterND",
        "values that are put where an index says (x[mask] = y, as X-MOD's adapter of each "
        "language); where that is all of them, export y itself" },
};

/* Is it a Concat of what single steps made, one behind the other? */
static int mlo_is_of_steps(const mlo_inside *in, const mlo_node *n) {
    if (!mlo_is(n, "Concat") || n->n_input < 4) return 0;
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_form f = mlo_body_form(in, n->input[i]);
        const int64_t axis = mlo_int(n, "axis", 0);
        const int at = (int)(axis < 0 ? axis + f.rank : axis);
        if (!mlo_is_carried(in, n->input[i]) || !mlo_form_known(&f) || at < 0 || at >= f.rank
            || f.dims[at] != 1)
            return 0;
    }
    return 1;
}

/* What a node tells by itself. */
static const char *mlo_told_node(const mlo_inside *in, const mlo_node *n) {
    for (size_t i = 0; i < sizeof mlo_told_ops / sizeof *mlo_told_ops; i++)
        if (mlo_is(n, mlo_told_ops[i].op)) return mlo_told_ops[i].words;
    return mlo_is_of_steps(in, n) ? MLO_TOLD_STATE : NULL;
}

/* What the nodes in front of a value tell. */
static const char *mlo_told_of(const mlo_inside *in, const char *name, int depth) {
    const mlo_node *n = mlo_is_carried(in, name) ? mlo_made_by(in, name) : NULL;
    const char *told = n ? mlo_told_node(in, n) : NULL;
    for (size_t i = 0; n && !told && depth > 0 && i < n->n_input && i < 3; i++)
        if (mlo_has_input(n, i)) told = mlo_told_of(in, n->input[i], depth - 1);
    return told;
}

/* Is the value a linear layer's, but for functions behind it? */
static int mlo_told_linear(const mlo_inside *in, const char *name, int depth) {
    const mlo_node *n = mlo_is_carried(in, name) ? mlo_made_by(in, name) : NULL;
    if (mlo_is(n, "MatMul")) return !mlo_is_carried(in, n->input[1]);
    if (!mlo_is_elementwise(n) || depth == 0) return 0;
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i) && mlo_told_linear(in, n->input[i], depth - 1)) return 1;
    return 0;
}

/* Is there a convolution with a stride not far in front of the value? */
static int mlo_told_strided(const mlo_inside *in, const char *name, int depth) {
    const mlo_node *n = mlo_is_carried(in, name) ? mlo_made_by(in, name) : NULL;
    if (mlo_is(n, "Conv")) return mlo_listed(n, "strides", 0, 1) > 1;
    return n && depth > 0 && mlo_told_strided(in, n->input[0], depth - 1);
}

/* Is the value a sum of products, but for places that change? */
static int mlo_told_product(const mlo_inside *in, const char *name, int depth) {
    static const char *const ops[] = { "Add", "Mul", "Div", "Gather", "GatherElements", "Slice",
        "Concat", "Where", "Pad", NULL };
    const mlo_node *n = mlo_is_carried(in, name) ? mlo_made_by(in, name) : NULL;
    if (mlo_is(n, "MatMul") || mlo_is(n, "Einsum")) return 1;
    if (!n || depth == 0 || (!mlo_is_layout(n) && !mlo_is_one_of(n, ops))) return 0;
    if (mlo_is(n, "Mul") && mlo_is_carried(in, n->input[0]) && mlo_is_carried(in, n->input[1]))
        return 0;
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i) && mlo_told_product(in, n->input[i], depth - 1)) return 1;
    return 0;
}

/* Is the value what an attention mixes, but for places that change and for factors? */
static int mlo_told_attended(const mlo_inside *in, const char *name, int depth) {
    const mlo_node *n = mlo_is_carried(in, name) ? mlo_made_by(in, name) : NULL;
    const char *from, *by;
    if (mlo_is_inner_product(in, n)) return mlo_is_probabilities(in, n->input[0]);
    if (!n || depth == 0) return 0;
    if (mlo_is_half(in, n, "Mul", &from, &by)) return mlo_told_attended(in, from, depth - 1);
    return (mlo_is_layout(n) || mlo_is(n, "Concat"))
        && mlo_told_attended(in, n->input[0], depth - 1);
}

/* Are numbers of products of two activations, behind functions alone, no softmax of them? */
static int mlo_told_no_softmax(const mlo_inside *in, const char *name, int depth) {
    const mlo_node *n = mlo_is_carried(in, name) ? mlo_made_by(in, name) : NULL;
    if (mlo_is_inner_product(in, n)) return depth < MLO_TELL_FAR;
    if (!n || depth == 0 || mlo_is(n, "Where")) return 0;
    if (!mlo_is_elementwise(n) && !mlo_is_layout(n) && !mlo_is(n, "Acos")) return 0;
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i) && mlo_told_no_softmax(in, n->input[i], depth - 1)) return 1;
    return 0;
}

/* Of what mixes tokens, or channels, not as attention does, a few nodes in front of a value. */
static const char *mlo_told_mixing(const mlo_inside *in, const char *name, int depth) {
    const mlo_node *n = mlo_is_carried(in, name) ? mlo_made_by(in, name) : NULL;
    const char *told = NULL;
    if (!n) return NULL;
    if (mlo_is(n, "Sub") && mlo_told_attended(in, n->input[0], MLO_TELL_FAR)
        && mlo_told_attended(in, n->input[1], MLO_TELL_FAR))
        return "a difference of two attentions in each head (differential attention, as "
               "DiffLlama's); in hardware each head has one softmax(scale * q k^T + mask) v";
    if (mlo_is_inner_product(in, n) && mlo_is_probabilities(in, n->input[1]))
        return "a convolution whose kernel the tokens make (span-based dynamic convolution, as "
               "ConvBERT's); in hardware kernels are weights, and attention is what tokens make";
    if (mlo_is_inner_product(in, n) && mlo_told_no_softmax(in, n->input[0], MLO_TELL_FAR))
        return "attention whose weights are a function of q k^T that is no softmax (as YOSO's); "
               "hardware has softmax(scale * q k^T + mask) v";
    for (size_t i = 0; !told && depth > 0 && i < n->n_input && i < 3; i++)
        if (mlo_has_input(n, i)) told = mlo_told_mixing(in, n->input[i], depth - 1);
    return told;
}

/* Of a product with numbers that are none of a head, or of a channel. */
static const char *mlo_told_factor(const mlo_inside *in, const mlo_node *n) {
    const char *from, *by;
    const int times = mlo_is_half(in, n, "Mul", &from, &by);
    if (!times && (!mlo_is(n, "Div") || mlo_is_carried(in, n->input[1]))) return NULL;
    if (!times) by = n->input[1];
    const mlo_form f = mlo_body_form(in, by), x = mlo_body_form(in, in->body->input[0]->name);
    int tokens = 0;
    for (int i = 0; i < f.rank; i++) tokens |= f.dims[i] > 1 && f.dims[i] == mlo_tokens_of(&x);
    if (!tokens) return NULL;
    return "heads, or their scores, times a number that tokens differ in; factors of heads and of "
           "their channels go into weights, and keys are hidden by a mask that is added (-inf "
           "where it hides)";
}

/* Of a sum of what attention mixes and of another product, head by head. */
static const char *mlo_told_beside(const mlo_inside *in, const mlo_node *sum) {
    mlo_chain c;
    if (!mlo_is(sum, "Add") || mlo_body_form(in, sum->output[0]).rank < 3) return NULL;
    for (size_t i = 0; i < 2; i++) {
        const mlo_node *mix = mlo_made_by(in, mlo_chain_walk(in, sum->input[i], &c, NULL));
        if (!mlo_is_inner_product(in, mix) || !mlo_is_carried(in, sum->input[1 - i])
            || !mlo_told_product(in, sum->input[1 - i], MLO_TELL_FAR))
            continue;
        return "a second product beside the values that attention mixes (relative positions of "
               "values, as VITS'); "
               "positions by rotary embedding, by a bias of distance (T5's, ALiBi) or added in "
               "front of the layers become hardware";
    }
    return NULL;
}

/* Of a value that linear layers over heads make of scores, or of what a softmax makes of them. */
static const char *mlo_told_talking(const mlo_inside *in, const mlo_node *n) {
    mlo_chain c;
    const char *from, *bias;
    double scale = 1;
    if (mlo_is_layout(n)) n = mlo_made_by(in, mlo_chain_walk(in, n->output[0], &c, NULL));
    if (mlo_is_half(in, n, "Add", &from, &bias)) n = mlo_made_by(in, from);
    if ((!mlo_is(n, "Conv") && !mlo_is(n, "MatMul")) || mlo_is_inner_product(in, n)) return NULL;
    from = n->input[!mlo_is_carried(in, n->input[0])];
    from = mlo_chain_walk(in, from, &c, &scale);
    return mlo_is_scores(in, from) || mlo_is_probabilities(in, from)
        ? "scores of heads that are mixed with each other (talking heads); in hardware each head "
          "has its own softmax(scale * q k^T + mask)"
        : NULL;
}

/* Of scores that are a sum of two values of the tokens, or mixed, or times what is none of a head. */
static const char *mlo_told_scores(const mlo_inside *in, const mlo_node *sum) {
    const char *talking = sum ? mlo_told_talking(in, sum) : NULL;
    if (talking) return talking;
    if (mlo_is(sum, "Mul") || mlo_is(sum, "Div")) return mlo_told_factor(in, sum);
    if (!mlo_is(sum, "Add") || !mlo_is_carried(in, sum->input[0])
        || !mlo_is_carried(in, sum->input[1]))
        return NULL;
    if (mlo_told_product(in, sum->input[0], MLO_TELL_FAR)
        && mlo_told_product(in, sum->input[1], MLO_TELL_FAR))
        return "a softmax over something that is not scale * q k^T + mask: a second product is in "
               "it (relative positions by content, as XLNet's, DeBERTa's and Conformer's); "
               "positions by rotary embedding, by a bias of distance (T5's, ALiBi) or added in "
               "front of the layers become hardware";
    return "a softmax over something that is not scale * q k^T + mask: tokens make the bias (as "
           "WavLM's gated positions); a bias that is the same for all inputs becomes hardware";
}

/* Of an elementwise operator with an operand that is of one token, while the other is of all. */
static const char *mlo_told_spread(const mlo_inside *in, const mlo_node *n) {
    for (size_t i = 0; i < 2; i++) {
        const mlo_form f = mlo_body_form(in, n->input[i]), to = mlo_body_form(in, n->output[0]);
        if (mlo_last_dim(&f) != mlo_last_dim(&to) || mlo_tokens_of(&f) != 1
            || mlo_tokens_of(&to) <= 1)
            continue;
        return mlo_is_memory(in, n->input[i])
            ? "a value for all tokens at once that a condition makes (as DiT's modulation by time "
              "and class); export with the condition as a constant, and it becomes weights"
            : "a value for all tokens at once that the tokens make (as "
              "squeeze-and-excitation's); " MLO_TOLD_MIXES;
    }
    return NULL;
}
