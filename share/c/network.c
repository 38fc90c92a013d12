/* A network of integers, operator by operator.
 *
 * What an integer operator computes is in exact.h, word for word what mlo itself is compiled with; below, standard
 * operators, and the loops. */
#include "profile.h"

#include "model.h"

#include "exact.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

@COPIES@
@NUMBERS@
@KERNELS@

_Static_assert(MODEL_ARENA_BYTES % MODEL_ALIGN == 0, "places in the arena are aligned");
_Static_assert(@LARGEST@ <= @ROOM@, "every place lies in there");
_Static_assert(sizeof(model_parameters) == @BYTES@, "parameters have no gaps");

#ifdef MODEL_PROFILE
model_step model_profile[] = {
@STEPS@
};
const int model_steps = (int)(sizeof model_profile / sizeof *model_profile);
#endif

@SIGNATURE@ {
    unsigned char *const a = @WHOLE@;
    (void)a;
@TILED@    unsigned char *const f = arena;
@TILED@    if (!memory || (uintptr_t)memory % MODEL_ALIGN || memory_bytes < MODEL_MEMORY_BYTES) return MODEL_E_ARENA;
    if (!arena || (uintptr_t)arena % MODEL_ALIGN || arena_bytes < MODEL_ARENA_BYTES) return MODEL_E_ARENA;
@BODY@
    return MODEL_OK;
}
