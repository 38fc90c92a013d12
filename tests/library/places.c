/* SPDX-License-Identifier: MIT
 * places: each place of the library that asks for memory is told once that there is none.
 *
 *     places MODEL STEPS FIRST STEP [SEEN]      steps, separated by `;`: "to fold; report pareto; emit"
 *
 * A place is where an allocation was asked for and by whom: DEPTH return addresses, or as many as `set depth=6` says. There is one run, which has all the memory it wants. Where it
 * comes to a place for the first time, a child of it is refused there, and goes on: it must end in MLO_E_MEMORY and give every block back. In the
 * same way bytes of a file cannot be read, and a sink takes no more: MLO_E_IO. Of the places FIRST, FIRST + STEP, .. are refused. Prints how many
 * were, and of how many. Built with a block for each allocation. SEEN is a file of places that runs before this one have come to: they are not new
 * here, so a run of another model costs what that model alone has; those that it finds are added.
 */
#include "mlo.h"
#include <execinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 5, DEEPEST = 8, PLACES = 1 << 18 };

typedef struct {
    uint64_t *seen; /* places by hash; NULL in a child, which looks for no more */
    long next, step; /* the place that is refused next, and how far the one after it is */
    long places, refused, lost; /* places there are; refused; where that ended wrongly */
    long known; /* of `seen` */
    long live; /* blocks not given back */
    int right; /* what a child must end with */
    size_t written;
    int depth; /* return addresses that tell places apart */
    size_t n_kept;
    char kept[1 << 15]; /* a template */
} memory;

/* 1: this place is a new one, and is one no more. */
static int keep(memory *c, uint64_t h) {
    size_t at = (size_t)(h >> 20) % PLACES;
    for (; c->seen[at]; at = (at + 1) % PLACES)
        if (c->seen[at] == h) return 0;
    if (c->known >= PLACES / 2) return 0;
    c->seen[at] = h;
    c->known++;
    return 1;
}

/* Is this allocation asked for where none was before? Addresses count from this function, wherever the program is. */
static int is_new(memory *c) {
    void *frame[DEEPEST + 2];
    int n = backtrace(frame, c->depth + 2);
    uint64_t h = 14695981039346656037u;
    for (int i = 2; i < n; i++) h = (h ^ ((uint64_t)(uintptr_t)frame[i] - (uint64_t)(uintptr_t)is_new)) * 1099511628211u;
    return keep(c, h ? h : 1);
}

/* Places that runs before this one have come to, from a file; and to it, at the end. */
static void remember(memory *c, const char *path) {
    uint64_t h;
    FILE *f = fopen(path, "rb");
    while (f && fread(&h, sizeof h, 1, f) == 1) keep(c, h);
    if (f) fclose(f);
}
static int tell(const memory *c, const char *path) {
    FILE *f = fopen(path, "wb");
    for (size_t k = 0; f && k < PLACES; k++)
        if (c->seen[k]) fwrite(&c->seen[k], sizeof *c->seen, 1, f);
    return !f || fclose(f);
}

/* Goes on as a child that is refused (1), and as the run that waits for it, and gets what it asked for (0). */
static int refused(memory *c, mlo_code right) {
    if (!c->seen || !is_new(c) || c->places++ != c->next) return 0;
    c->next += c->step;
    c->refused++;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        c->seen = NULL;
        c->right = (int)right;
        return 1;
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && !status) return 0;
    fprintf(stderr, "place %ld: status %x\n", c->places - 1, (unsigned)status);
    c->lost++;
    return 0;
}

static void *ask(void *user, size_t n) {
    memory *c = (memory *)user;
    if (refused(c, MLO_E_MEMORY)) return NULL;
    void *p = malloc(n);
    if (p) c->live++;
    return p;
}
static void back(void *user, void *p) {
    ((memory *)user)->live--;
    free(p);
}
static size_t fetch(void *user, void *file, uint64_t offset, void *to, size_t n) {
    if (refused((memory *)user, MLO_E_IO)) return 0;
    return (size_t)pread(fileno((FILE *)file), to, n, (off_t)offset); /* parent and child share where a file is read */
}
static void *unlock(void *user, const char *path, uint64_t *size) {
    FILE *f = refused((memory *)user, MLO_E_IO) ? NULL : fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *size = (uint64_t)ftell(f);
    return f;
}
static void lock(void *user, void *file) {
    (void)user;
    fclose((FILE *)file);
}
static int drop(void *user, const char *file, const void *bytes, size_t n) {
    memory *c = (memory *)user;
    (void)file;
    (void)bytes;
    c->written += n;
    return refused(c, MLO_E_IO);
}
static int collect(void *user, const char *file, const void *bytes, size_t n) {
    memory *c = (memory *)user;
    (void)file;
    if (n > sizeof c->kept - c->n_kept) return 1;
    memcpy(c->kept + c->n_kept, bytes, n);
    c->n_kept += n;
    return 0;
}
static void told(void *user, int64_t token) {
    (void)user;
    (void)token;
}
static int watch(void *user, const char *name, int64_t iteration, const mlo_array *value) {
    (void)name;
    (void)iteration;
    (void)value;
    return refused((memory *)user, MLO_E_IO);
}

/* One step of a run: a verb, and what it is about. */
static int step(mlo *m, mlo *other, const char *path, char *verb, char *about, memory *n) {
    const mlo_array *drawn, *outputs;
    const int64_t prompt[] = { 1, 2 }, *text;
    size_t drawns, n_outputs, n_text;
    int64_t cycles, interval;
    char *value = strchr(about, '=');
    if (!strcmp(verb, "set")) {
        if (value) *value++ = 0;
        if (value && !strcmp(about, "depth")) n->depth = *value >= '1' && *value <= '0' + DEEPEST ? *value - '0' : DEPTH;
        else mlo_set(m, about, value ? value : "1");
    } else if (!strcmp(verb, "to")) mlo_to(m, about);
    else if (!strcmp(verb, "report")) mlo_report(m, about);
    else if (!strcmp(verb, "show")) mlo_show(m, about, drop, n);
    else if (!strcmp(verb, "json")) mlo_write_json(m, drop, n);
    else if (!strcmp(verb, "onnx")) mlo_write_onnx(m, drop, n);
    else if (!strcmp(verb, "template")) mlo_write_template(m, drop, n);
    else if (!strcmp(verb, "emit")) mlo_emit(m, drop, n);
    else if (!strcmp(verb, "words")) {
        if (!mlo_draw(m, 1, &drawn, &drawns) && !mlo_run(m, drawn, drawns, &outputs, &n_outputs)) mlo_words(m, drawn, drawns, outputs, n_outputs);
    }
    else if (!strcmp(verb, "golden")) mlo_golden(m, &outputs, &n_outputs);
    else if (!strcmp(verb, "cycles")) mlo_cycles(m, 3, &cycles, &interval);
    else if (!strcmp(verb, "signature")) mlo_signature(m, 1, &outputs, &n_outputs);
    else if (!strcmp(verb, "watch")) mlo_watch(m, watch, n);
    else if (!strcmp(verb, "summary")) mlo_summary(m);
    else if (!strcmp(verb, "generate")) mlo_generate(m, NULL, 0, prompt, 2, 2, -1, told, n, &text, &n_text);
    else if (!strcmp(verb, "find")) {
        mlo_load(other, path);
        mlo_to(other, "extract");
        mlo_write_template(other, collect, n);
        if (!mlo_failed(other)) mlo_template(m, n->kept, n->n_kept);
    }
    else if (!strcmp(verb, "run")) {
        if (!mlo_draw(m, 1, &drawn, &drawns)) mlo_run(m, drawn, drawns, &outputs, &n_outputs);
    } else if (!strcmp(verb, "prefill")) { /* another export of the same, beside it */
        char beside[512];
        const char *slash = strrchr(path, '/');
        snprintf(beside, sizeof beside, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, about);
        mlo_set(other, "context", "16");
        mlo_load(other, beside);
        mlo_prefill(m, other);
    } else if (!strcmp(verb, "calibrate")) {
        if (!mlo_draw(m, 0, &drawn, &drawns)) mlo_calibrate(m, drawn, drawns);
    } else if (!strcmp(verb, "check")) {
        mlo_load(other, path);
        mlo_check(m, other);
    } else return 1;
    return 0;
}

/* All steps; the code of a failure, -1 for a verb nobody knows, -2 for a failure without words. */
static int play(memory *c, const char *path, const char *steps) {
    char text[1024], *next = text;
    mlo_desc d = { 0 };
    d.user = c;
    d.open = unlock;
    d.read = fetch;
    d.close = lock;
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
        if (step(m, other, path, verb, about ? about : verb + strlen(verb), c)) code = -1;
        else code = mlo_failed(m) ? mlo_failed(m) : mlo_failed(other);
        if (code > 0 && code != c->right) fprintf(stderr, "%s\n", mlo_failure(mlo_failed(m) ? m : other)->text);
        if (code > 0 && !*mlo_failure(mlo_failed(m) ? m : other)->text) code = -2;
    }
    mlo_close(other);
    mlo_close(m);
    return code;
}

int main(int argc, char **argv) {
    uint64_t *seen = (uint64_t *)calloc(PLACES, sizeof *seen);
    if (argc < 5 || argc > 6 || !seen) return 2;
    setlocale(LC_ALL, ""); /* one whose decimal point is a comma, if the environment says so */
    static memory c;
    c.seen = seen;
    c.next = atol(argv[3]);
    c.step = atol(argv[4]);
    c.depth = DEPTH;
    if (argc > 5) remember(&c, argv[5]);
    int code = play(&c, argv[1], argv[2]), child = !c.seen;
    if (code != c.right || c.live) fprintf(stderr, "%s: code %d, %ld blocks left\n", child ? "refused" : "with all it wants", code, c.live);
    if (!child) printf("%ld %ld\n", c.refused, c.places);
    if (!child && argc > 5 && tell(&c, argv[5])) c.lost++;
    free(seen);
    return code != c.right || c.live || c.lost;
}
