/* SPDX-License-Identifier: MIT
 * places: each place of the library that asks for memory is told once that there is none.
 *
 *     places MODEL STEPS FIRST STEP      steps, separated by `;`: "to fold; report pareto; emit"
 *
 * A place is where an allocation was asked for and by whom: DEPTH return addresses. The first run has all the memory it wants and says which places
 * there are; then of the places FIRST, FIRST + STEP, .. each is refused, the first time it is reached, in a run of its own, which must end in
 * MLO_E_MEMORY and give every block back. Prints how many were refused, and of how many. Built with a block for each allocation.
 */
#include "mlo.h"
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 5, PLACES = 1 << 16 };

typedef struct {
    long calls, refuse, live;
    uint64_t *seen; /* places by hash; NULL: nobody asks which */
    long *first, places; /* the call that was first in each */
} memory;

static void place(memory *c) {
    void *frame[DEPTH + 2];
    int n = backtrace(frame, DEPTH + 2);
    uint64_t h = 14695981039346656037u;
    for (int i = 2; i < n; i++) h = (h ^ (uint64_t)(uintptr_t)frame[i]) * 1099511628211u;
    if (!h) h = 1;
    size_t at = (size_t)(h >> 20) % PLACES;
    for (; c->seen[at]; at = (at + 1) % PLACES)
        if (c->seen[at] == h) return;
    if (c->places >= PLACES / 2) return;
    c->seen[at] = h;
    c->first[c->places++] = c->calls;
}

static void *ask(void *user, size_t n) {
    memory *c = (memory *)user;
    c->calls++;
    if (c->seen) place(c);
    if (c->calls == c->refuse) return NULL;
    void *p = malloc(n);
    if (p) c->live++;
    return p;
}
static void back(void *user, void *p) {
    ((memory *)user)->live--;
    free(p);
}
static int drop(void *user, const char *file, const void *bytes, size_t n) {
    (void)file;
    (void)bytes;
    *(size_t *)user += n;
    return 0;
}
static int watch(void *user, const char *name, int64_t iteration, const mlo_array *value) {
    (void)name;
    (void)iteration;
    (void)value;
    ++*(size_t *)user;
    return 0;
}

/* One step of a run: a verb, and what it is about. */
static int step(mlo *m, mlo *other, const char *path, char *verb, char *about, size_t *n) {
    const mlo_array *drawn, *outputs;
    size_t drawns, n_outputs;
    int64_t cycles, interval;
    char *value = strchr(about, '=');
    if (!strcmp(verb, "set")) {
        if (value) *value++ = 0;
        mlo_set(m, about, value ? value : "1");
    } else if (!strcmp(verb, "to")) mlo_to(m, about);
    else if (!strcmp(verb, "report")) mlo_report(m, about);
    else if (!strcmp(verb, "show")) mlo_show(m, about, drop, n);
    else if (!strcmp(verb, "json")) mlo_write_json(m, drop, n);
    else if (!strcmp(verb, "onnx")) mlo_write_onnx(m, drop, n);
    else if (!strcmp(verb, "template")) mlo_write_template(m, drop, n);
    else if (!strcmp(verb, "emit")) mlo_emit(m, drop, n);
    else if (!strcmp(verb, "golden")) mlo_golden(m, &outputs, &n_outputs);
    else if (!strcmp(verb, "cycles")) mlo_cycles(m, 3, &cycles, &interval);
    else if (!strcmp(verb, "signature")) mlo_signature(m, 1, &outputs, &n_outputs);
    else if (!strcmp(verb, "watch")) mlo_watch(m, watch, n);
    else if (!strcmp(verb, "summary")) mlo_summary(m);
    else if (!strcmp(verb, "run")) {
        if (!mlo_draw(m, 1, &drawn, &drawns)) mlo_run(m, drawn, drawns, &outputs, &n_outputs);
    } else if (!strcmp(verb, "calibrate")) {
        if (!mlo_draw(m, 0, &drawn, &drawns)) mlo_calibrate(m, drawn, drawns);
    } else if (!strcmp(verb, "check")) {
        mlo_load(other, path);
        mlo_check(m, other);
    } else return 1;
    return 0;
}

/* All steps; MLO_E_MEMORY when it was memory that lacked, -1 for a verb nobody knows, -2 for a failure without words. */
static int play(memory *c, const char *path, const char *steps) {
    char text[1024], *next = text;
    size_t n = 0;
    mlo_desc d = { 0 };
    d.user = c;
    d.alloc = ask;
    d.release = back;
    snprintf(text, sizeof text, "%s", steps);
    mlo *m = mlo_open(&d), *other = m ? mlo_open(&d) : NULL;
    int code = m && other ? 0 : (int)MLO_E_MEMORY, loaded = 0;
    while (!code && next) {
        char *verb = next + strspn(next, " ");
        next = strchr(verb, ';');
        if (next) *next++ = 0;
        char *about = strchr(verb, ' ');
        if (about) *about++ = 0;
        if (!loaded && strcmp(verb, "set")) {
            mlo_load(m, path);
            loaded = 1;
        }
        if (step(m, other, path, verb, about ? about : verb + strlen(verb), &n)) code = -1;
        else code = mlo_failed(m) ? mlo_failed(m) : mlo_failed(other);
        if (code > 0 && code != (int)MLO_E_MEMORY && !c->refuse) fprintf(stderr, "%s\n", mlo_failure(mlo_failed(m) ? m : other)->text);
        if (code > 0 && !*mlo_failure(mlo_failed(m) ? m : other)->text) code = -2;
    }
    mlo_close(other);
    mlo_close(m);
    return code;
}

int main(int argc, char **argv) {
    memory all = { 0 };
    all.seen = (uint64_t *)calloc(PLACES, sizeof *all.seen);
    all.first = (long *)calloc(PLACES, sizeof *all.first);
    if (argc != 5 || !all.seen || !all.first) return 2;
    int code = play(&all, argv[1], argv[2]);
    if (code || all.live) fprintf(stderr, "with all the memory it wants: code %d, %ld blocks left\n", code, all.live);
    long refused = 0;
    for (long k = atol(argv[3]); k < all.places && !code; k += atol(argv[4]), refused++) {
        memory c = { 0 };
        c.refuse = all.first[k];
        int said = play(&c, argv[1], argv[2]);
        if (said == (int)MLO_E_MEMORY && !c.live) continue;
        fprintf(stderr, "place %ld of %ld, allocation %ld: code %d, %ld blocks left\n", k, all.places, c.refuse, said, c.live);
        code = 1;
    }
    printf("%ld %ld\n", refused, all.places);
    free(all.seen);
    free(all.first);
    return code || all.live;
}
