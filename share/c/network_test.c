/* Golden inputs and outputs: every word is compared. Ends with one line, MLO PASS .. or MLO FAIL .. */
#include "profile.h"

#include "model.h"

#include <stdio.h>
#include <string.h>

@WORDS@

@PAINTED@
@TILED@static _Alignas(MODEL_ALIGN) unsigned char memory[MODEL_MEMORY_BYTES];

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))
#define COMPARE(name, got, golden) \
    for (int i = 0; i < COUNT(golden); i++) \
        if (!(got[i] <= golden[i] && got[i] >= golden[i])) { \
            printf("MLO FAIL output %s, word %d: expected %.9g, got %.9g\n", name, i, \
                (double)golden[i], (double)got[i]); \
            return 1; \
        }

int main(void) {
    memset(arena, PAINT, sizeof arena);
    const int status = model_run(@CALL@, arena, MODEL_ARENA_BYTES);
    if (status) {
        printf("MLO FAIL model_run returned %d\n", status);
        return 1;
    }
@COMPARE@
    const int used = touched(arena, MODEL_ARENA_BYTES);
    if (used < 0) return 1;
#ifdef MODEL_PROFILE
    print_profile();
#endif
    printf("MLO PASS frames=1 words=%d arena=%d touched=%d\n", @TOTAL@, MODEL_ARENA_BYTES, used);
    return 0;
}
