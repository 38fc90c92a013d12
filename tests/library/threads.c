/* SPDX-License-Identifier: MIT
 * threads: the same models built at the same time in several threads, a handle each, and one after the other. Everything written must be equal.
 *
 *     threads MODEL.onnx MODEL.onnx ...              prints one digest per model
 */
#include "mlo.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct { const char *path; char digest[65]; int code; } job;

static int digest_sink(void *user, const char *file, const void *bytes, size_t n) {         /* a chain of digests: files, pieces, order */
    job *j = (job *)user;
    char line[65 * 2 + 256];
    char piece[65];
    mlo_digest(bytes, n, piece);
    snprintf(line, sizeof line, "%s %s %.200s", j->digest, piece, file);
    mlo_digest(line, strlen(line), j->digest);
    return 0;
}

static void *build(void *user) {
    job *j = (job *)user;
    mlo *m = mlo_open(NULL);
    mlo_load(m, j->path);
    mlo_set(m, "pe", "4");
    mlo_set(m, "simd", "4");
    mlo_to(m, "fold");
    mlo_write_json(m, digest_sink, j);
    mlo_emit(m, digest_sink, j);
    j->code = mlo_failed(m);
    if (j->code) fprintf(stderr, "%s\n", mlo_failure(m)->text);
    mlo_close(m);
    return NULL;
}

enum { MOST = 8 };

int main(int argc, char **argv) {
    job alone[MOST], at_once[2 * MOST];
    pthread_t thread[2 * MOST];
    int n = argc - 1 < MOST ? argc - 1 : MOST, bad = 0;
    memset(alone, 0, sizeof alone);
    memset(at_once, 0, sizeof at_once);
    for (int i = 0; i < 2 * n; i++) { at_once[i].path = argv[1 + i % n]; if (pthread_create(&thread[i], NULL, build, &at_once[i])) return 2; }
    for (int i = 0; i < 2 * n; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < n; i++) { alone[i].path = argv[1 + i]; build(&alone[i]); }
    for (int i = 0; i < 2 * n; i++) bad += at_once[i].code || !*at_once[i].digest || strcmp(at_once[i].digest, alone[i % n].digest);
    for (int i = 0; i < n; i++) printf("%s\n", alone[i].digest);
    return bad != 0;
}
