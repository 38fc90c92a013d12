/* Golden inputs and outputs: every word is compared. Ends with one line, MLO PASS .. or MLO FAIL .. */
#include "model.h"

#include <stdio.h>
#include <string.h>

@WORDS@

/* The arena, and behind it what nobody must touch. */
enum { GUARD = 64, PAINT = 0xA5 };
static _Alignas(MODEL_ALIGN) unsigned char arena[MODEL_ARENA_BYTES + GUARD];

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
    int touched = MODEL_ARENA_BYTES;
    while (touched && arena[touched - 1] == PAINT) touched--;
    for (int i = 0; i < GUARD; i++)
        if (arena[MODEL_ARENA_BYTES + i] != PAINT) {
            printf("MLO FAIL a byte behind the arena was written\n");
            return 1;
        }
    printf("MLO PASS frames=1 words=%d arena=%d touched=%d\n", @TOTAL@, MODEL_ARENA_BYTES, touched);
    return 0;
}
