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

@NUMBERS@
@KERNELS@

_Static_assert(MODEL_ARENA_BYTES % MODEL_ALIGN == 0, "places in the arena are aligned");
_Static_assert(@LARGEST@ <= MODEL_ARENA_BYTES, "every place lies in the arena");

#ifdef MODEL_PROFILE
model_step model_profile[] = {
@STEPS@
};
const int model_steps = (int)(sizeof model_profile / sizeof *model_profile);
#endif

@SIGNATURE@ {
    unsigned char *const a = arena;
    (void)a;
    if (!arena || (uintptr_t)arena % MODEL_ALIGN || arena_bytes < MODEL_ARENA_BYTES) return MODEL_E_ARENA;
@BODY@
    return MODEL_OK;
}
