/* A model's loop in integers, as mlo wrote it: C99 without libraries. @ABOUT@
 *
 *     static _Alignas(MODEL_ALIGN) unsigned char arena[MODEL_ARENA_BYTES];
 *     int status = model_run(@EXAMPLE@, arena, sizeof arena);
 *
 * Nothing is allocated and nothing is global: calls with arenas of their own may run side by side. */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MODEL_LAYERS @LAYERS@
#define MODEL_TOKENS @TOKENS@ /* @TOKENSARE@ */
#define MODEL_CHANNELS @CHANNELS@ /* of a token, in and out */
@EVERY@#define MODEL_TIMES MODEL_LAYERS /* out: all tokens of the first layer, of the second, ..: so many times as come in */
#define MODEL_ALIGN 16 /* of the arena */
#define MODEL_ARENA_BYTES @ARENA@ /* @PROOF@ */
#define MODEL_PARAMETER_BYTES (sizeof(model_layer) * MODEL_LAYERS + sizeof(model_shared))
@SCALES@

/* What model_run returns. */
enum { MODEL_OK, MODEL_E_TOKENS, MODEL_E_ARENA };

/* A layer's parameters, and those that all layers share. */
typedef struct {
@LAYER@
} model_layer;
extern const model_layer model_layers[MODEL_LAYERS];
extern const int model_depth; /* MODEL_LAYERS, which the code need not know: it is the same for any depth */
typedef struct {
    int64_t none;
@SHARED@
} model_shared;
extern const model_shared model_common;
@CACHE@

@SIGNATURE@;
@WHOLE@

#ifdef __cplusplus
}
#endif
#endif
