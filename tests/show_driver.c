/* SPDX-License-Identifier: MIT
 * What test_show.py drives: a model shown after a stage, with options, in a locale, to a sink that takes nothing, or with every allocation refused.
 *
 *   show_driver MODEL STAGE FORMAT [KEY VALUE]..    STAGE "-": as it is; FORMAT one of mlo_show's, or summary, pareto, onnx, model, manifest, starve, all
 */
#include "mlo.h"
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { FILE *to; const char *only; int cancel; } out;
static int put(void *u, const char *file, const void *b, size_t n) {
    out *o = (out *)u;
    if (o->cancel) return 1;
    return o->only && strcmp(file, o->only) ? 0 : fwrite(b, 1, n, o->to) != n;
}
static long left = -1;                              /* allocations until one fails */
static void *take(void *u, size_t n) { (void)u; if (left == 0) return NULL; if (left > 0) left--; return malloc(n); }
static void drop(void *u, void *p) { (void)u; free(p); }
static void told(void *u, const char *what, double done) { (void)u; fprintf(stderr, "%.3f %s\n", done, what ? what : "over"); }
int main(int argc, char **argv) {                   /* MODEL STAGE FORMAT [KEY VALUE].. */
    mlo_desc d; memset(&d, 0, sizeof d); d.alloc = take; d.release = drop;
    if (getenv("MLO_TEST_PROGRESS")) d.progress = told;
    out o = { stdout, NULL, 0 };
    if (getenv("MLO_TEST_LOCALE")) setlocale(LC_ALL, getenv("MLO_TEST_LOCALE"));
    if (getenv("MLO_TEST_CANCEL")) o.cancel = 1;
    mlo *m = mlo_open(&d);
    for (int i = 4; i + 1 < argc; i += 2) mlo_set(m, argv[i], argv[i + 1]);
    mlo_load(m, argv[1]);
    if (strcmp(argv[2], "-")) mlo_to(m, argv[2]);
    if (!strcmp(argv[3], "summary")) { const char *s = mlo_summary(m); if (s) fputs(s, stdout); }
    else if (!strcmp(argv[3], "pareto")) { const char *s = mlo_report(m, "pareto"); if (s) fputs(s, stdout); }
    else if (!strcmp(argv[3], "onnx")) mlo_write_onnx(m, put, &o);
    else if (!strcmp(argv[3], "model")) mlo_write_json(m, put, &o);
    else if (!strcmp(argv[3], "manifest")) { o.only = "manifest.json"; mlo_emit(m, put, &o); }
    else if (!strcmp(argv[3], "starve")) {          /* fail every allocation of every format in turn */
        static const char *const formats[] = { "text", "json", "dot", "html", "svg" };
        FILE *nowhere = fopen("/dev/null", "wb"); o.to = nowhere;
        long tried = 0;
        for (int f = 0; f < 5; f++) for (long k = 0; ; k++, tried++) {
            mlo *x = mlo_open(&d);
            mlo_load(x, argv[1]); mlo_to(x, argv[2]);
            left = k;
            int r = mlo_show(x, formats[f], put, &o), starved = left == 0;
            left = -1;
            if (r && r != MLO_E_MEMORY) { printf("%s, allocation %ld: %s\n", formats[f], k, mlo_failure(x)->text); return 1; }
            mlo_close(x);
            if (!r && !starved) break;
            if (!r) continue;
        }
        printf("%ld", tried); fclose(nowhere);
    } else if (!strcmp(argv[3], "all")) {           /* each format, and JSON again, each followed by a NUL */
        static const char *const formats[] = { "text", "json", "dot", "html", "svg", "json" };
        for (int f = 0; f < 6; f++) { mlo_show(m, formats[f], put, &o); putchar(0); }
    } else mlo_show(m, argv[3], put, &o);
    if (mlo_failed(m)) fprintf(stderr, "%s\n", mlo_failure(m)->text);
    int r = mlo_failed(m) ? mlo_failure(m)->status : 0;
    mlo_close(m);
    return r;
}
