/* The model as a whole: its own inputs and outputs, in its own types and order. @NEEDS@
 *
 *     static _Alignas(MODEL_ALIGN) unsigned char arena[MODEL_WHOLE_BYTES];
@TILED@ *     static _Alignas(MODEL_ALIGN) unsigned char memory[MODEL_MEMORY_BYTES];
 *     int status = model_whole(@EXAMPLE@, arena, sizeof arena);
 *
@EACH@ * Tokens go on where the last call ended, as cache says (zeroes: they begin); of each of them there are so many
@EACH@ * numbers in and out.
@EACH@ *
 * MODEL_E_INDEX: an index (a token's id, say) is outside of its table; the nearest row was taken. */
@ARGUMENTS@
#define MODEL_WHOLE_BYTES @ARENA@ /* of model_whole's arena: @PROOF@ */
@TILED@#define MODEL_MEMORY_BYTES @MEMORY@ /* of a larger memory, which has values as a whole */
enum { MODEL_E_INDEX = 3 };

/* What was learned@AROUND@. */
typedef struct {
    int64_t none;
@PARAMETERS@
} model_parameters;
extern const model_parameters model_weights;

@SIGNATURE@;
