/* @ABOUT@
 *
 * What a kernel computes is in exact.h, word for word what mlo itself is compiled with. Here are the kernels'
 * loops; then the layer, once, in a loop over its parameters. */
#include "profile.h"

#include "model.h"

#include "exact.h"

#include <string.h>
@TYPES@
/* Kernels of your own: in MODEL_KERNELS, a file ("mine.h"), a macro of a kernel's name (mlo_mvu_16_8) stands for what
 * takes the same arguments, and the one below is left out. */
#ifdef MODEL_KERNELS
#include MODEL_KERNELS
#endif
@KERNELS@

_Static_assert(MODEL_ARENA_BYTES % MODEL_ALIGN == 0, "places in the arena are aligned");
_Static_assert(@LARGEST@ <= MODEL_ARENA_BYTES, "every place lies in the arena");
_Static_assert(sizeof(model_layer) == @LAYER_BYTES@ && sizeof(model_shared) == @SHARED_BYTES@, "parameters have no gaps");

#ifdef MODEL_PROFILE
model_step model_profile[] = {
@STEPS@
};
const int model_steps = (int)(sizeof model_profile / sizeof *model_profile);
#endif

/* The layer, for n tokens. */
static void layer(@PARAMETERS@) {
@BODY@
}

@SIGNATURE@ {
    unsigned char *const a = arena;
    if (!arena || (uintptr_t)arena % MODEL_ALIGN || arena_bytes < MODEL_ARENA_BYTES) return MODEL_E_ARENA;
@RUN@
    return MODEL_OK;
}
