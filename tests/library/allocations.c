/* SPDX-License-Identifier: MIT
 * allocations: read .. fold (with what quantize measures) and emit with an allocator whose k-th call fails, for every k = first, first + step, ...
 *
 *     allocations MODEL.onnx FIRST STEP STICKY [roll]       STICKY 1: all later calls fail, too; 0: only the k-th; roll: read .. roll, check, show
 *
 * Each run must end in MLO_E_MEMORY (or, past the last allocation, in success) and give every block back. Prints the number of runs and of
 * allocations. Built with ASan and UBSan, so that a pointer nobody checked shows.
 */
#include "mlo.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct { long calls, fail_at, live; int sticky; } counter;

static void *count_alloc(void *user, size_t n) {
    counter *c = (counter *)user;
    c->calls++;
    if (c->fail_at && (c->sticky ? c->calls >= c->fail_at : c->calls == c->fail_at)) return NULL;
    void *p = malloc(n);
    if (p) c->live++;
    return p;
}
static void count_release(void *user, void *p) { ((counter *)user)->live--; free(p); }
static int count_sink(void *user, const char *file, const void *bytes, size_t n) { (void)file; (void)bytes; *(size_t *)user += n; return 0; }

static int finish(mlo *m) {
    int code = mlo_failed(m);
    if (code && (!mlo_failure(m)->text || !*mlo_failure(m)->text)) code = -1;
    mlo_close(m);
    return code;
}

/* Rolls, and proves it against the original, which has failures of its own. */
static int roll(mlo *m, mlo *original, const char *path) {
    size_t n = 0;
    mlo_load(m, path);
    mlo_to(m, "roll");
    mlo_report(m, "roll");
    mlo_write_json(m, count_sink, &n);
    mlo_write_onnx(m, count_sink, &n);
    mlo_show(m, "html", count_sink, &n);
    mlo_load(original, path);
    mlo_check(m, original);
    mlo_close(original);
    return finish(m);
}

static int build(counter *c, const char *path, int only_roll) {
    mlo_desc d = {0};
    size_t n = 0, n_sample;
    const mlo_array *sample;
    d.user = c; d.alloc = count_alloc; d.release = count_release;
    mlo *m = mlo_open(&d), *original = m && only_roll ? mlo_open(&d) : NULL;
    if (!m || (only_roll && !original)) { mlo_close(m); return MLO_E_MEMORY; }
    if (only_roll) return roll(m, original, path);
    mlo_load(m, path);
    mlo_set(m, "budget-macs", "40");
    mlo_set(m, "bandwidth", "0.5");
    mlo_set(m, "report", "numbers");
    if (!mlo_to(m, "read") && !mlo_draw(m, 0, &sample, &n_sample)) mlo_calibrate(m, sample, n_sample);      /* one, as each is evaluated four times */
    mlo_to(m, "quantize");
    mlo_report(m, "quantize");
    mlo_to(m, "fold");
    mlo_report(m, "folding");
    mlo_report(m, "pareto");
    mlo_write_json(m, count_sink, &n);
    mlo_write_onnx(m, count_sink, &n);
    mlo_emit(m, count_sink, &n);
    return finish(m);
}

int main(int argc, char **argv) {
    counter c = { 0, 0, 0, 0 };
    long runs = 0, total, step = argc > 3 ? atol(argv[3]) : 1;
    if ((argc != 5 && argc != 6) || build(&c, argv[1], argc == 6) || c.live) { fprintf(stderr, "it does not work with memory, either, or %ld blocks are left\n", c.live); return 1; }
    total = c.calls;
    for (long k = atol(argv[2]); k <= total; k += step, runs++) {
        counter f = { 0, 0, 0, 0 };
        f.fail_at = k; f.sticky = atoi(argv[4]);
        int code = build(&f, argv[1], argc == 6);
        if (code == MLO_E_MEMORY && !f.live) continue;
        fprintf(stderr, "allocation %ld of %ld: code %d, %ld blocks left\n", k, total, code, f.live);
        return 1;
    }
    printf("%ld %ld\n", runs, total);
    return 0;
}
