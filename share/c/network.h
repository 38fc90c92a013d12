/* A network of integers, as mlo wrote it: C99 without libraries.
 *
 *     static _Alignas(MODEL_ALIGN) unsigned char arena[MODEL_ARENA_BYTES];
@TILED@ *     static _Alignas(MODEL_ALIGN) unsigned char memory[MODEL_MEMORY_BYTES];
 *     int status = model_run(@EXAMPLE@, arena, sizeof arena);
 *
 * An argument's type is its words' range: for any of them, no number inside wraps. Nothing is allocated and
 * nothing is global: calls with arenas of their own may run side by side. */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MODEL_ALIGN 16 /* of the arena */
#define MODEL_ARENA_BYTES @ARENA@ /* @PROOF@ */
@TILED@#define MODEL_MEMORY_BYTES @MEMORY@ /* of a larger memory, which has values as a whole */

/* What model_run returns. */
enum { MODEL_OK, MODEL_E_TOKENS, MODEL_E_ARENA };

/* What was learned. */
typedef struct {
    int64_t none;
@PARAMETERS@
} model_parameters;
extern const model_parameters model_weights;

@ARGUMENTS@
@SIGNATURE@;

#ifdef __cplusplus
}
#endif
#endif
