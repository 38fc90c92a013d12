/* SPDX-License-Identifier: MIT
 * threads: the same models built at the same time in several threads, a handle each, some of them with a crew, and one after the other without.
 * Everything written must be equal.
 *
 *     threads MODEL.onnx MODEL.onnx ...              prints one digest per model
 */
#include "mlo.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct { const char *path; char digest[65]; int code, crew, pieces; } job;

typedef struct { void (*piece)(void *of, int k); void *of; int k; } part;

static void *part_run(void *user) {
    part *p = (part *)user;
    p->piece(p->of, p->k);
    return NULL;
}

static void crew(void *user, void (*piece)(void *of, int k), void *of, int n) {             /* a thread for each, the last piece first */
    pthread_t thread[16];
    part p[16];
    int begun = 0;
    ((job *)user)->pieces += n;
    for (int k = n; k--;) {
        p[k] = (part){ piece, of, k };
        if (k >= 16 || pthread_create(&thread[begun], NULL, part_run, &p[k])) piece(of, k); else begun++;
    }
    while (begun) pthread_join(thread[--begun], NULL);
}

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
    mlo_desc desc = { 0 };
    desc.user = j;
    desc.crew = j->crew ? crew : NULL;
    mlo *m = mlo_open(&desc);
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
    for (int i = 0; i < n; i++) at_once[i].crew = 1;
    for (int i = 0; i < 2 * n; i++) { at_once[i].path = argv[1 + i % n]; if (pthread_create(&thread[i], NULL, build, &at_once[i])) return 2; }
    for (int i = 0; i < 2 * n; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < n; i++) { alone[i].path = argv[1 + i]; build(&alone[i]); }
    for (int i = 0; i < 2 * n; i++) bad += at_once[i].code || !*at_once[i].digest || strcmp(at_once[i].digest, alone[i % n].digest);
#ifdef MLO_PIECES_WORK
    for (int i = 0; i < 2 * n; i++) bad += (at_once[i].pieces > 99) != at_once[i].crew;     /* all work is worth a thread */
#endif
    for (int i = 0; i < n; i++) printf("%s\n", alone[i].digest);
    return bad != 0;
}
