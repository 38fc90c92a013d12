/* @ABOUT@
 *
 * What an operator computes is in real.h, word for word what mlo itself is compiled with; below, the loops. */
@PROFILED@#include "profile.h"

#include "model.h"

#include <math.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#include "real.h"

@PLAIN@#define MODEL_STEP(i, call) call /* (a profile is of the loop's steps) */
@COPIES@
@KERNELS@

_Static_assert(MODEL_WHOLE_BYTES % MODEL_ALIGN == 0, "places in the arena are aligned");
_Static_assert(@LARGEST@ <= @ROOM@, "every place lies in there");
_Static_assert(sizeof(model_parameters) == @BYTES@, "parameters have no gaps");
@PLAIN@_Static_assert(MODEL_ARENA_BYTES <= @LOOP@, "what the loop needs is one of them");

@STEPS@
@EACH@/* One token, at its position: cache->tokens. */
@EACH@static int token(@TAKES@) {
@EACH@    (void)@POSITION@;
@ONCE@@SIGNATURE@ {
@ONCE@    unsigned char *const a = @MEMORY@;
    int bad = 0;
    (void)a;
@TILED@    unsigned char *const f = arena;
@TILED@    if (!memory || (uintptr_t)memory % MODEL_ALIGN || memory_bytes < MODEL_MEMORY_BYTES) return MODEL_E_ARENA;
@ONCE@    if (!arena || (uintptr_t)arena % MODEL_ALIGN || arena_bytes < MODEL_WHOLE_BYTES) return MODEL_E_ARENA;
@BODY@
@ONCE@    return bad ? MODEL_E_INDEX : MODEL_OK;
@EACH@    return bad;
}
@EACH@
@EACH@@SIGNATURE@ {
@EACH@    int bad = 0;
@EACH@    if (!arena || (uintptr_t)arena % MODEL_ALIGN || arena_bytes < MODEL_WHOLE_BYTES) return MODEL_E_ARENA;
@EACH@    if (tokens < 1 || cache->tokens < 0 || tokens > MODEL_TOKENS - cache->tokens) return MODEL_E_TOKENS;
@EACH@    for (int t = 0; t < tokens; t++) {
@EACH@        const int64_t position = cache->tokens;
@EACH@        bad |= token(@GIVES@);
@EACH@    }
@EACH@    return bad ? MODEL_E_INDEX : MODEL_OK;
@EACH@}
