/* Golden inputs and outputs: every word is compared. Ends with one line, MLO PASS .. or MLO FAIL .. */
#include "profile.h"

#include "model.h"

#include <stdio.h>
#include <string.h>

enum { FRAMES = @FRAMES@, TOKENS = @TOKENS@, CALLS = @CALLS@ };
static const int call[CALLS] = { @CALL@ }; /* tokens of each */
@WORDS@

@PAINTED@
@STATE@
@WHOLE@

static int same(int frame, const @WORD@ *y) {
    for (int i = 0; i < TOKENS@TIMES@ * MODEL_CHANNELS; i++)
        if (y[i] != golden[frame][i]) {
            printf("MLO FAIL frame %d, token %d, channel %d: expected %d, got %d\n", frame,
                i / MODEL_CHANNELS, i % MODEL_CHANNELS, golden[frame][i], y[i]);
            return 0;
        }
    return 1;
}

int main(void) {
    static @WORD@ y[TOKENS@TIMES@ * MODEL_CHANNELS];
    memset(arena, PAINT, sizeof arena);
    for (int f = 0; f < FRAMES; f++) {
        for (int i = 0, at = 0; i < CALLS; at += call[i++]) {
            const int status = model_run(@ARGUMENTS@, arena, MODEL_ARENA_BYTES);
            if (status) {
                printf("MLO FAIL frame %d: model_run returned %d\n", f, status);
                return 1;
            }
        }
        if (!same(f, y)) return 1;
    }
@WHOLE_CALL@    if (!whole()) return 1;
    const int used = touched(arena, MODEL_ARENA_BYTES);
    if (used < 0) return 1;
#ifdef MODEL_PROFILE
    print_profile();
#endif
    printf("MLO PASS frames=%d words=%d arena=%d touched=%d\n", FRAMES,
        FRAMES * TOKENS@TIMES@ * MODEL_CHANNELS, MODEL_ARENA_BYTES, used);
    return 0;
}
