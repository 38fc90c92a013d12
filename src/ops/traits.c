/* traits: what operators have in common, as one table, for code that treats all of a kind alike.
 *
 * in:  a node.
 * out: whether its operator has a trait.
 *
 * invariant: a name stands here once; a new operator that commutes, or multiplies matrices, is one
 *     line here and in no other list.
 * example: mlo_has_trait(n, MLO_COMMUTES) && n->n_input == 2.
 * cost: a walk over the table.
 */
typedef enum {
    MLO_MATRIX = 1, /* multiplies matrices, or contains such products */
    MLO_COMMUTES = 2, /* two operands may come in either order */
    MLO_ELEMENTWISE = 4, /* each element of the result is a function of the elements at its place */
    MLO_RESHAPES = 8, /* elements keep their order */
    MLO_MOVES = 16, /* elements move, some may be left out or repeated */
    MLO_QUANTIZES = 32, /* to integers, or back */
    MLO_TRAINED = 64 /* an operand may be something that training sets: a bias, a gain */
} mlo_trait;

/* clang-format off */
static const struct {
    const char *op;
    unsigned traits; /* the sum of those it has */
} mlo_traits[] = {
    { "MatMul",                            MLO_MATRIX },
    { "Gemm",                              MLO_MATRIX },
    { "Conv",                              MLO_MATRIX },
    { "ConvTranspose",                     MLO_MATRIX },
    { "MatMulInteger",                     MLO_MATRIX },
    { "QLinearMatMul",                     MLO_MATRIX },
    { "QLinearConv",                       MLO_MATRIX },
    { "ConvInteger",                       MLO_MATRIX },
    { "Attention",                         MLO_MATRIX },
    { "Einsum",                            MLO_MATRIX },
    { "LSTM",                              MLO_MATRIX },
    { "GRU",                               MLO_MATRIX },
    { "RNN",                               MLO_MATRIX },
    { "FusedMatMul",                       MLO_MATRIX },
    { "FusedGemm",                         MLO_MATRIX },
    { "MultiHeadAttention",                MLO_MATRIX },
    { "GroupQueryAttention",               MLO_MATRIX },
    { "MatMulNBits",                       MLO_MATRIX },
    { "QAttention",                        MLO_MATRIX },
    { "Add",                               MLO_COMMUTES | MLO_ELEMENTWISE | MLO_TRAINED },
    { "Mul",                               MLO_COMMUTES | MLO_ELEMENTWISE | MLO_TRAINED },
    { "And",                               MLO_COMMUTES },
    { "Or",                                MLO_COMMUTES },
    { "Xor",                               MLO_COMMUTES },
    { "Equal",                             MLO_COMMUTES },
    { "Max",                               MLO_COMMUTES | MLO_ELEMENTWISE },
    { "Min",                               MLO_COMMUTES | MLO_ELEMENTWISE },
    { "Sum",                               MLO_COMMUTES },
    { "Mean",                              MLO_COMMUTES },
    { "BitwiseAnd",                        MLO_COMMUTES },
    { "BitwiseOr",                         MLO_COMMUTES },
    { "BitwiseXor",                        MLO_COMMUTES },
    { "Div",                               MLO_ELEMENTWISE | MLO_TRAINED },
    { "Sub",                               MLO_ELEMENTWISE | MLO_TRAINED },
    { "Erf",                               MLO_ELEMENTWISE },
    { "Tanh",                              MLO_ELEMENTWISE },
    { "Sigmoid",                           MLO_ELEMENTWISE },
    { "Relu",                              MLO_ELEMENTWISE },
    { "Gelu",                              MLO_ELEMENTWISE },
    { "Exp",                               MLO_ELEMENTWISE },
    { "Neg",                               MLO_ELEMENTWISE },
    { "Pow",                               MLO_ELEMENTWISE },
    { "Sqrt",                              MLO_ELEMENTWISE },
    { "Clip",                              MLO_ELEMENTWISE },
    { "Abs",                               MLO_ELEMENTWISE },
    { "Reciprocal",                        MLO_ELEMENTWISE },
    { "HardSwish",                         MLO_ELEMENTWISE },
    { "HardSigmoid",                       MLO_ELEMENTWISE },
    { "Elu",                               MLO_ELEMENTWISE },
    { "LeakyRelu",                         MLO_ELEMENTWISE },
    { "Softplus",                          MLO_ELEMENTWISE },
    { "Identity",                          MLO_ELEMENTWISE | MLO_RESHAPES },
    { "Sign",                              MLO_ELEMENTWISE },
    { "Mish",                              MLO_ELEMENTWISE },
    { "Log",                               MLO_ELEMENTWISE },
    { "Round",                             MLO_ELEMENTWISE },
    { "Floor",                             MLO_ELEMENTWISE },
    { "Ceil",                              MLO_ELEMENTWISE },
    { "QuantizeLinear",                    MLO_ELEMENTWISE | MLO_QUANTIZES },
    { "DequantizeLinear",                  MLO_ELEMENTWISE | MLO_QUANTIZES },
    { "Swish",                             MLO_ELEMENTWISE },
    { "Selu",                              MLO_ELEMENTWISE },
    { "Celu",                              MLO_ELEMENTWISE },
    { "Softsign",                          MLO_ELEMENTWISE },
    { "ThresholdedRelu",                   MLO_ELEMENTWISE },
    { "Shrink",                            MLO_ELEMENTWISE },
    { "Where",                             MLO_ELEMENTWISE },
    { "Greater",                           MLO_ELEMENTWISE },
    { "GreaterOrEqual",                    MLO_ELEMENTWISE },
    { "Less",                              MLO_ELEMENTWISE },
    { "LessOrEqual",                       MLO_ELEMENTWISE },
    { "Reshape",                           MLO_RESHAPES },
    { "Unsqueeze",                         MLO_RESHAPES },
    { "Squeeze",                           MLO_RESHAPES },
    { "Flatten",                           MLO_RESHAPES },
    { "Transpose",                         MLO_MOVES },
    { "Slice",                             MLO_MOVES },
    { "Split",                             MLO_MOVES },
    { "Gather",                            MLO_MOVES },
    { "GatherND",                          MLO_MOVES },
    { "Expand",                            MLO_MOVES },
    { "Tile",                              MLO_MOVES },
    { "Quant",                             MLO_QUANTIZES },
    { "BipolarQuant",                      MLO_QUANTIZES },
    { "IntQuant",                          MLO_QUANTIZES },
    { "FloatQuant",                        MLO_QUANTIZES },
    { "PRelu",                             MLO_TRAINED },
    { "LayerNormalization",                MLO_TRAINED },
    { "RMSNormalization",                  MLO_TRAINED },
    { "BatchNormalization",                MLO_TRAINED },
    { "InstanceNormalization",             MLO_TRAINED },
    { "GroupNormalization",                MLO_TRAINED },
    { "SkipLayerNormalization",            MLO_TRAINED },
    { "SimplifiedLayerNormalization",      MLO_TRAINED },
    { "SkipSimplifiedLayerNormalization",  MLO_TRAINED },
    { "BiasGelu",                          MLO_TRAINED },
    { "EmbedLayerNormalization",           MLO_TRAINED },
};
/* clang-format on */

/* ... in any domain. */
static int mlo_named_with_trait(const mlo_node *n, mlo_trait trait) {
    for (size_t i = 0; n && i < sizeof mlo_traits / sizeof *mlo_traits; i++)
        if (mlo_traits[i].traits & trait && mlo_eq(n->op, mlo_traits[i].op)) return 1;
    return 0;
}
/* ... in the standard domain. */
static int mlo_has_trait(const mlo_node *n, mlo_trait trait) {
    return n && (!n->domain || !*n->domain || mlo_eq(n->domain, "ai.onnx"))
        && mlo_named_with_trait(n, trait);
}

/* Works it element by element on conditions or bits, or from one type to another? (No trait: most passes over floats do
 * not mean those.) */
static int mlo_is_logic(const mlo_node *n) {
    static const char *const ops[] = { "And", "Or", "Not", "Xor", "Equal", "Cast", "BitwiseAnd",
        "BitwiseOr", NULL };
    return mlo_is_one_of(n, ops);
}
