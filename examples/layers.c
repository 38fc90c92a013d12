/* layers: which layer of a model repeats, and how fast it would run as hardware of several sizes.
 *
 *     cc -I. examples/layers.c mlo.c -o layers -lprotobuf-nanopb -lcjson -lm && ./layers examples/bert-tiny.onnx
 */
#include "mlo.h"
#include <stdio.h>

/* Folds a fresh copy of the model with the same limit on rows and columns of every multiplier array. */
static int predict(const char *path, const char *limit) {
    int64_t cycles = 0, interval = 0;
    mlo *m = mlo_open(NULL);
    if (!m) return 2;
    mlo_load(m, path);                      /* nothing to check in between: the first failure sticks, */
    mlo_set(m, "pe", limit);                /* and every later call does nothing */
    mlo_set(m, "simd", limit);
    mlo_to(m, "fold");
    if (!mlo_cycles(m, 1, &cycles, &interval)) printf("up to %s x %s: %lld cycles a frame\n", limit, limit, (long long)cycles);
    int status = mlo_failed(m) ? mlo_failure(m)->status : 0;
    if (status) fprintf(stderr, "%s\n", mlo_failure(m)->text);
    mlo_close(m);
    return status;
}

int main(int argc, char **argv) {
    mlo *m = argc == 2 ? mlo_open(NULL) : NULL;
    if (!m) { fprintf(stderr, "layers MODEL.onnx\n"); return 2; }
    if (!mlo_load(m, argv[1]) && !mlo_to(m, "roll")) puts(mlo_summary(m));
    int status = mlo_failed(m) ? mlo_failure(m)->status : 0;
    if (status) fprintf(stderr, "%s\n", mlo_failure(m)->text);
    mlo_close(m);
    return status ? status : predict(argv[1], "1") || predict(argv[1], "4") || predict(argv[1], "16");
}
