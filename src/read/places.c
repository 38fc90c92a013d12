/* places: which inputs of a decoder say where its tokens are, by what is made of them.
 *
 * in:  an indexed model, its tokens bound, constants not folded.
 * out: mlo_counts_tokens: is an input of whole numbers one of positions? mlo_called_position: is it called so?
 *
 * A position becomes an angle, or picks rows of tables of them, which turn queries and keys; or it is compared with
 * others (a causal mask), or says where in a cache is written. Everything made of it has to end so. What ids pick goes
 * on to norms and sums, as rows of learned positions do: those are told apart by their names alone.
 *
 * invariant: an input of which anything else is made is none.
 * example: cos[at], sin[at] -> Unsqueeze -> Mul with queries; at >= arange -> Where: positions, whatever the name.
 * cost: O(nodes between an input and those ends).
 */
enum { MLO_PLACE_DEPTH = 16, MLO_PLACE_STEPS = 1 << 16 };

typedef enum {
    MLO_PLACE_NOT,
    MLO_PLACE_ON,
    MLO_PLACE_END
} mlo_place_use; /* no position; goes on; ends as one */

/* What is looked at, and how many values more it may be. */
typedef struct {
    const mlo_graph *g;
    size_t steps;
} mlo_places;

/* Is an operand beside `name` a constant? */
static int mlo_beside_constant(const mlo_graph *g, const mlo_node *n, size_t k, int lone) {
    const mlo_value *v = n->n_input == 2 ? mlo_value_of(g, n->input[1 - k]) : NULL;
    return v && v->tensor && (!lone || mlo_tensor_count(v->tensor) == 1);
}

/* Is a value computed by a product of matrices, as queries and keys are and masks are not? */
static int mlo_is_projected(mlo_places *p, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(p->g, name);
    const mlo_node *n = v ? v->producer : NULL;
    if (!n || depth > MLO_PLACE_DEPTH || !p->steps || !p->steps--) return 0;
    if (strstr(n->op, "MatMul") || mlo_is(n, "Gemm") || mlo_is(n, "Einsum")) return 1;
    for (size_t k = 0; k < n->n_input; k++)
        if (mlo_is_projected(p, n->input[k], depth + 1)) return 1;
    return 0;
}

/* Are rows that were picked multiplied with queries or keys? */
static int mlo_place_turns(mlo_places *p, const mlo_node *n, size_t k) {
    return n->n_input == 2 && mlo_is_projected(p, n->input[1 - k], 0);
}

/* What a node makes of it, its input k; looked: it is rows that it has picked. */
static mlo_place_use mlo_place_taken(mlo_places *p, const mlo_node *n, size_t k, int looked) {
    static const char *const compares[] = { "Less", "LessOrEqual", "Greater", "GreaterOrEqual",
        NULL };
    static const char *const keeps[] = { "Cast", "Unsqueeze", "Squeeze", "Reshape", "Transpose",
        "Expand", "Identity", "Slice", "Split", "Flatten", "Neg", NULL };
    static const char *const sums[] = { "Add", "Sub", NULL };
    static const char *const products[] = { "Mul", "MatMul", NULL };
    if (mlo_is_one_of(n, compares))
        return looked || mlo_beside_constant(p->g, n, k, 1) ? MLO_PLACE_NOT : MLO_PLACE_END;
    if (mlo_is(n, "Equal")) /* with each other: segments, or documents, are */
        return !looked && mlo_beside_constant(p->g, n, k, 0) && !mlo_beside_constant(p->g, n, k, 1)
            ? MLO_PLACE_END
            : MLO_PLACE_NOT;
    if (mlo_is(n, "Sin") || mlo_is(n, "Cos") || (n->op && mlo_eq(n->op, "RotaryEmbedding") && k))
        return MLO_PLACE_END;
    if (mlo_is(n, "ScatterND") || mlo_is(n, "ScatterElements") || mlo_is(n, "TensorScatter"))
        return k && !looked ? MLO_PLACE_END : MLO_PLACE_NOT;
    if (mlo_is(n, "Where")) return looked && !k ? MLO_PLACE_END : MLO_PLACE_NOT;
    if (mlo_is_one_of(n, products))
        return looked && mlo_place_turns(p, n, k)           ? MLO_PLACE_END
            : looked && !mlo_beside_constant(p->g, n, k, 0) ? MLO_PLACE_NOT
                                                            : MLO_PLACE_ON;
    if (mlo_is_one_of(n, sums)) return looked ? MLO_PLACE_NOT : MLO_PLACE_ON;
    if (mlo_is(n, "Gather")) return looked && k ? MLO_PLACE_NOT : MLO_PLACE_ON;
    return mlo_is(n, "Concat") || (!k && mlo_is_one_of(n, keeps)) ? MLO_PLACE_ON : MLO_PLACE_NOT;
}

/* Does all that is made of a value end as a position does? MLO_PLACE_ON: nothing is made of it. */
static mlo_place_use mlo_place_made(mlo_places *p, const char *name, int looked, int depth) {
    const mlo_value *v = mlo_value_of(p->g, name);
    mlo_place_use all = MLO_PLACE_ON;
    if (!v || v->is_output || depth > MLO_PLACE_DEPTH || !p->steps || !p->steps--)
        return MLO_PLACE_NOT;
    for (size_t i = 0; i < v->n_use && all != MLO_PLACE_NOT; i++) {
        const mlo_node *n = v->use[i];
        const size_t k = mlo_input_at(n, name);
        if (mlo_reads_shape(n)) continue;
        mlo_place_use use = mlo_place_taken(p, n, k, looked);
        const int picks = mlo_is(n, "Gather") && k == 1;
        for (size_t o = 0; use == MLO_PLACE_ON && o < n->n_output; o++) {
            const mlo_place_use made = mlo_place_made(p, n->output[o], looked || picks, depth + 1);
            if (made != MLO_PLACE_ON) use = made;
        }
        if (use != MLO_PLACE_ON) all = use;
    }
    return all;
}

static int mlo_is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Is it called a position: position_ids, cache_position, input_pos, pos? */
static int mlo_called_position(const char *name) {
    const char *at = strstr(name, "pos");
    for (; at; at = strstr(at + 1, "pos")) {
        const int begins = at == name || !mlo_is_letter(at[-1]);
        if (mlo_starts(at, "position") || (begins && !mlo_is_letter(at[3]))) return 1;
    }
    return 0;
}

/* By what is made of it alone? */
static int mlo_counts_tokens(const mlo_graph *g, const char *name) {
    mlo_places p = { g, MLO_PLACE_STEPS };
    return mlo_place_made(&p, name, 0, 0) == MLO_PLACE_END;
}
