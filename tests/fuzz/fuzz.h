/* SPDX-License-Identifier: MIT
 * fuzz.h: what the fuzz targets share: a handle whose memory is counted and whose files are made up, and texts kept from sinks.
 *
 * Memory beyond MEMORY + 16 x the input aborts: it has to be in proportion. So does MLO_E_BUG: that is mlo's own word for a bug.
 */
#include "../../mlo.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY = 64 << 20, HEADER = 16, EXTERNAL = 4096, CUT = 3072 };

typedef struct { size_t used, limit; const uint8_t *data; size_t n, end; } fuzz_world;     /* end: bytes of the input that can be read from a file */
typedef struct { char *text; size_t n, room; } fuzz_text;

#define FUZZ_STOP(...) do { fprintf(stderr, "fuzz: " __VA_ARGS__); fprintf(stderr, "\n"); abort(); } while (0)

static void *fuzz_alloc(void *user, size_t bytes) {
    fuzz_world *w = (fuzz_world *)user;
    if (bytes > w->limit || w->used > w->limit - bytes) FUZZ_STOP("%zu bytes and %zu more, for an input of %zu", w->used, bytes, w->n);
    char *p = (char *)malloc(bytes + HEADER);
    if (!p) return NULL;
    memcpy(p, &bytes, sizeof bytes);
    w->used += bytes;
    return p + HEADER;
}
static void fuzz_release(void *user, void *block) {
    size_t bytes;
    memcpy(&bytes, (char *)block - HEADER, sizeof bytes);
    ((fuzz_world *)user)->used -= bytes;
    free((char *)block - HEADER);
}

/* Two files: the input, and any other name: 4096 bytes, of which the last quarter cannot be read any more. */
static void *fuzz_open(void *user, const char *path, uint64_t *size) {
    fuzz_world *w = (fuzz_world *)user;
    static char external;
    int input = !strcmp(path, "./fuzz.onnx") || !strcmp(path, "fuzz.onnx");
    *size = input ? w->n : EXTERNAL;
    return input ? (void *)w : (void *)&external;
}
static size_t fuzz_read(void *user, void *file, uint64_t offset, void *to, size_t bytes) {
    fuzz_world *w = (fuzz_world *)user;
    size_t end = file == user ? w->end : CUT, got = offset > end ? 0 : bytes > end - offset ? end - (size_t)offset : bytes;
    if (got && file == user) memcpy(to, w->data + offset, got);
    else for (size_t i = 0; i < got; i++) ((uint8_t *)to)[i] = (uint8_t)((offset + i) * 37);
    return got;
}
static void fuzz_close(void *user, void *file) { (void)user; (void)file; }

static mlo *fuzz_start(fuzz_world *w, const uint8_t *data, size_t n) {
    mlo_desc d = { 0 };
    w->used = 0; w->limit = MEMORY + 16 * n; w->data = data; w->n = w->end = n;
    d.user = w; d.alloc = fuzz_alloc; d.release = fuzz_release; d.open = fuzz_open; d.read = fuzz_read; d.close = fuzz_close;
    mlo *m = mlo_open(&d);
    if (!m) FUZZ_STOP("no handle");
    return m;
}
static int fuzz_end(mlo *m, fuzz_world *w) {
    int code = mlo_failed(m);
    if (code == MLO_E_BUG) FUZZ_STOP("%s", mlo_failure(m)->text);
    if (code && !strstr(mlo_failure(m)->text, mlo_failure(m)->name)) FUZZ_STOP("no text for code %d", code);
    mlo_close(m);
    if (w->used) FUZZ_STOP("%zu bytes were not given back", w->used);
    return code;
}

static int fuzz_sink(void *user, const char *file, const void *bytes, size_t n) {
    fuzz_text *t = (fuzz_text *)user;
    (void)file;
    if (t->room < t->n + n) t->text = (char *)realloc(t->text, t->room = 2 * (t->n + n));
    if (n) memcpy(t->text + t->n, bytes, n);
    t->n += n;
    return 0;
}

/* A model, written by `write` and read again, gives the same bytes once more. Adds the bytes to *first. */
typedef int (*fuzz_write)(mlo *m, mlo_sink sink, void *user);
static void fuzz_again(mlo *m, fuzz_write write, const char *what, fuzz_text *first) {
    fuzz_world w;
    fuzz_text second = { NULL, 0, 0 };
    if (write(m, fuzz_sink, first)) return;
    mlo *again = fuzz_start(&w, (const uint8_t *)first->text, first->n);
    if (mlo_parse(again, first->text, first->n, ".")) FUZZ_STOP("%s is not read again: %s", what, mlo_failure(again)->text);
    write(again, fuzz_sink, &second);
    if (fuzz_end(again, &w) || first->n != second.n || memcmp(first->text, second.text, first->n)) FUZZ_STOP("%s is not the same again", what);
    free(second.text);
}

/* roll, and what rolls must be proved equal by check (which may say that it cannot compare some attribute). */
static void fuzz_roll(mlo *m, const uint8_t *data, size_t n) {
    fuzz_world w;
    if (mlo_to(m, "roll")) return;
    mlo *original = fuzz_start(&w, data, n);
    if (!mlo_parse(original, data, n, ".") && mlo_check(m, original) && mlo_failed(m) != MLO_E_UNSUPPORTED) FUZZ_STOP("%s", mlo_failure(m)->text);
    fuzz_end(original, &w);
}
