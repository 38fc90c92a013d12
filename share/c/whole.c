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
@KERNELS@

_Static_assert(MODEL_WHOLE_BYTES % MODEL_ALIGN == 0, "places in the arena are aligned");
_Static_assert(@LARGEST@ <= MODEL_WHOLE_BYTES, "every place lies in the arena");
@PLAIN@_Static_assert(MODEL_ARENA_BYTES <= @LOOP@, "what the loop needs is one of them");

@STEPS@
@SIGNATURE@ {
    unsigned char *const a = arena;
    int bad = 0;
    (void)a;
    if (!arena || (uintptr_t)arena % MODEL_ALIGN || arena_bytes < MODEL_WHOLE_BYTES) return MODEL_E_ARENA;
@BODY@
    return bad ? MODEL_E_INDEX : MODEL_OK;
}
