/* SPDX-License-Identifier: MIT
 * replay: a fuzz target without libFuzzer, for any compiler. Linked with fuzz_onnx.c or fuzz_json.c.
 *
 *     replay run FILE..      the target on each file
 *     replay cut FILE..      ... on every beginning of each file
 *     replay shrink FILE..   reads each file from a source that says its size, but cannot be read beyond byte 0, 1, 2, ...: cut while it was read
 * Prints the number of runs; aborts, as the target does, when something is wrong.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The file in a block of just its size, so that a sanitizer sees a step beyond. */
static uint8_t *replay_slurp(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) FUZZ_STOP("cannot read %s", path);
    *n = (size_t)ftell(f);
    uint8_t *data = (uint8_t *)malloc(*n ? *n : 1);
    rewind(f);
    if (fread(data, 1, *n, f) != *n) FUZZ_STOP("cannot read %s", path);
    fclose(f);
    return data;
}

static void replay_cut(const uint8_t *data, size_t n) {
    uint8_t *exact = (uint8_t *)malloc(n ? n : 1);
    memcpy(exact, data, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

static void replay_shrink(const uint8_t *data, size_t n, size_t end) {
    fuzz_world w;
    fuzz_text text = { NULL, 0, 0 };
    mlo *m = fuzz_start(&w, data, n);
    w.end = end;
    mlo_load(m, "fuzz.onnx");
    mlo_to(m, "roll");
    mlo_set(m, "inline", "1");
    mlo_write_onnx(m, fuzz_sink, &text);
    fuzz_end(m, &w);
    free(text.text);
}

int main(int argc, char **argv) {
    long runs = 0;
    for (int i = 2; i < argc; i++) {
        size_t n;
        uint8_t *data = replay_slurp(argv[i], &n);
        fprintf(stderr, "%s\n", argv[i]);
        if (!strcmp(argv[1], "run")) { LLVMFuzzerTestOneInput(data, n); runs++; }
        else for (size_t k = 0; k <= n; k++, runs++) if (!strcmp(argv[1], "cut")) replay_cut(data, k); else replay_shrink(data, n, k);
        free(data);
    }
    printf("%ld\n", runs);
    return 0;
}
