/* A network of floats, as mlo wrote it: C99 and libm. Nothing is allocated and nothing is global: calls with arenas
 * of their own may run side by side. */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MODEL_ALIGN 16 /* of the arena */

/* What model_whole returns. */
enum { MODEL_OK, MODEL_E_ARENA = 2 };

@WHOLE@

#ifdef __cplusplus
}
#endif
#endif
