#include <math.h>

/* The model as a whole: floats within a part of the largest, whole numbers as they are. */
#define TOLERANCE 1e-4
enum { WHOLE_FRAMES = @FRAMES@ };
@WORDS@
static _Alignas(MODEL_ALIGN) unsigned char room[MODEL_WHOLE_BYTES + GUARD];
@TILED@static _Alignas(MODEL_ALIGN) unsigned char memory[MODEL_MEMORY_BYTES];

#define SIZE(x) ((x) < 0 ? -(x) : (x))
#define NEAR(name, n, got, golden, tolerance) \
    do { \
        double largest = 0; \
        for (int i = 0; i < (n); i++) \
            if (SIZE((double)golden[i]) > largest && SIZE((double)golden[i]) < 1e30) \
                largest = SIZE((double)golden[i]); \
        for (int i = 0; i < (n); i++) { \
            const double is = (double)got[i], wanted = (double)golden[i]; \
            const int same = (is <= wanted && is >= wanted) || (is != is && wanted != wanted); \
            if (same || SIZE(is - wanted) <= (tolerance)*largest) continue; \
            printf("MLO FAIL output %s, frame %d, number %d: expected %.9g, got %.9g\n", name, f, i, wanted, is); \
            return 0; \
        } \
    } while (0)

static int whole(void) {
    memset(room, PAINT, sizeof room);
    for (int f = 0; f < WHOLE_FRAMES; f++) {
@ONCE@        const int status = model_whole(@CALL@, room, MODEL_WHOLE_BYTES);
@EACH@        int status = 0;
@EACH@        memset(&cache, 0, sizeof cache);
@EACH@        for (int i = 0, at = 0; i < CALLS && !status; at += call[i++])
@EACH@            status = model_whole(@CALL@, room, MODEL_WHOLE_BYTES);
        if (status) {
            printf("MLO FAIL frame %d: model_whole returned %d\n", f, status);
            return 0;
        }
@COMPARE@
    }
    const int used = touched(room, MODEL_WHOLE_BYTES);
@BODY@    printf("whole: %d numbers of %d frames; an arena of %d bytes, %d of them touched\n", @TOTAL@, WHOLE_FRAMES,
@BODY@        MODEL_WHOLE_BYTES, used);
@ALONE@    if (used >= 0) printf("MLO PASS frames=%d words=%d arena=%d touched=%d\n", WHOLE_FRAMES, @TOTAL@,
@ALONE@        MODEL_WHOLE_BYTES, used);
    return used >= 0;
}
