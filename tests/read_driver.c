/* SPDX-License-Identifier: MIT
 * What test_read.py drives: the library from the inside, where the command line cannot reach.
 *
 *   read_driver copy  FILE json|onnx [OPTION=VALUE]..   load and write, without the read stage
 *   read_driver read  FILE json|onnx [OPTION=VALUE]..   load, run the read stage, write
 *   read_driver twice FILE json|onnx [OPTION=VALUE]..   the same, with the read stage run again
 *   read_driver dump  FILE                              every tensor: name, type, then its elements as doubles, in odd windows
 *   read_driver equal FILE                              compares all tensors pairwise: a matrix of 0 and 1
 *   read_driver abuse FILE                              truncated at every byte, mutated, every allocation failed, from file and from memory
 *   read_driver numbers                                 prints and parses numbers in the current locale
 * FILE may be "mem:FILE": the same bytes, from memory. Option dir=D: the folder for external data then.
 */
#include "../src/mlo.c"
#include <locale.h>

/* The model to stdout, other files beside. */
static int driver_sink(void *user, const char *file, const void *bytes, size_t n) {
    FILE *f = *file ? fopen(file, "ab") : (FILE *)user;
    int r = !f || fwrite(bytes, 1, n, f) != n;
    if (f && *file) fclose(f);
    return r;
}
static int driver_drop(void *user, const char *file, const void *bytes, size_t n) { (void)user; (void)file; (void)bytes; (void)n; return 0; }
static void driver_warn(void *user, const char *line) { (void)user; fprintf(stderr, "%s\n", line); }

static char *driver_slurp(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    char *bytes = NULL;
    *n = 0;
    if (!f) return (char *)calloc(1, 1);
    for (size_t room = 1 << 16, got = 1; got; room *= 2) { bytes = (char *)realloc(bytes, room); got = fread(bytes + *n, 1, room - *n, f); *n += got; }
    fclose(f);
    char *exact = (char *)malloc(*n ? *n : 1);              /* so that ASan sees a step beyond */
    memcpy(exact, bytes, *n);
    free(bytes);
    return exact;
}

typedef struct { long left; } driver_budget;
static void *driver_alloc(void *user, size_t n) { driver_budget *b = (driver_budget *)user; return b->left-- > 0 ? malloc(n) : NULL; }
static void driver_release(void *user, void *p) { (void)user; free(p); }

/* One whole life; returns the code. */
static int driver_life(mlo_desc *d, const char *path, const void *bytes, size_t n, const char *dir) {
    mlo *m = mlo_open(d);
    if (!m) return MLO_E_MEMORY;
    if (path) mlo_load(m, path); else mlo_parse(m, bytes, n, dir);
    mlo_to(m, "read");
    mlo_write_json(m, driver_drop, NULL);
    if (!mlo_failed(m)) mlo_set(m, "inline", "1");
    mlo_write_json(m, driver_drop, NULL);
    mlo_write_onnx(m, driver_drop, NULL);
    int r = mlo_failed(m);
    mlo_close(m);
    return r;
}

static int driver_both(const char *scratch, const char *bytes, size_t n, const char *dir, long *count) {
    char *exact = (char *)malloc(n ? n : 1);
    memcpy(exact, bytes, n);
    mlo_desc d; memset(&d, 0, sizeof d);
    int a = driver_life(&d, NULL, exact, n, dir);
    FILE *f = fopen(scratch, "wb"); fwrite(bytes, 1, n, f); fclose(f);
    int b = driver_life(&d, scratch, NULL, 0, dir);
    free(exact);
    if (a == MLO_E_BUG || b == MLO_E_BUG || (a == 0) != (b == 0)) { printf("differ: memory %d, file %d at %zu bytes\n", a, b, n); return 1; }
    if (!a) ++*count;
    return 0;
}

static int driver_abuse(const char *path, const char *dir) {
    size_t n; char *bytes = driver_slurp(path, &n), scratch[512];
    long ok = 0; uint32_t seed = 1;
    snprintf(scratch, sizeof scratch, "%s.scratch", path);
    for (size_t i = 0; i < n; i++) if (driver_both(scratch, bytes, i, dir, &ok)) return 1;
    printf("truncated %zu, accepted %ld\n", n, ok);
    ok = 0;
    char *copy = (char *)malloc(n + 16);
    for (int round = 0; round < 2000; round++) {
        memcpy(copy, bytes, n);
        for (int k = 0; k < 1 + round % 4; k++) { seed = seed * 1664525u + 1013904223u; size_t at = (seed >> 8) % n; seed = seed * 1664525u + 1013904223u; copy[at] = (char)(round & 4 ? copy[at] ^ 1 << (seed >> 24 & 7) : (int)(seed >> 24)); }
        if (driver_both(scratch, copy, n, dir, &ok)) return 1;
    }
    printf("mutated 2000, accepted %ld\n", ok);
    long k = 0; int r = MLO_E_MEMORY;
    for (; r; k++) {
        driver_budget b = { k }; mlo_desc d; memset(&d, 0, sizeof d);
        d.user = &b; d.alloc = driver_alloc; d.release = driver_release;
        r = k % 2 ? driver_life(&d, NULL, bytes, n, dir) : driver_life(&d, path, NULL, 0, dir);
        if (r && r != MLO_E_MEMORY) { printf("allocation %ld failed: code %d\n", k, r); return 1; }
    }
    printf("allocations failed %ld\n", k - 1);
    free(bytes); free(copy); remove(scratch);
    return 0;
}

static int driver_dump_one(mlo *m, void *tensor, void *user) {
    const mlo_tensor *t = (const mlo_tensor *)tensor;
    double v[37]; int64_t n = mlo_tensor_count(t);
    (void)user;
    printf("%s %d %lld", t->name ? t->name : "", (int)t->data_type, (long long)n);
    if (mlo_dtype_size((mlo_dtype)t->data_type)) for (int64_t at = 0, step = 1; at < n; at += step, step = step % 37 + 3) {
        if (step > 37) step = 37;
        if (step > n - at) step = n - at;
        if (mlo_tensor_doubles(m, t, at, (size_t)step, v)) return 1;
        for (int i = 0; i < step; i++) printf(" %.17g", v[i]);
    }
    printf("\n");
    if (mlo_dtype_size((mlo_dtype)t->data_type)) {          /* load -> tensor_from -> equal */
        mlo_array *a = mlo_tensor_load(m, t);
        if (!a) return 1;
        mlo_tensor *back = mlo_tensor_from(m, "back", a);
        if (!back || mlo_tensor_check(m, back) || !mlo_tensor_equal(m, t, back) || mlo_tensor_hash(m, t) != mlo_tensor_hash(m, back)) { printf("NOT EQUAL after load and from\n"); return 1; }
        mlo_array_free(m, a);
    }
    return 0;
}

static void driver_numbers(void) {
    static const double v[] = { 0, -0.0, 0.1, 1, 1e-12, 3.4028234663852886e38, -3.4028234663852886e38, 1e-45, 16777217, 0.333333343267440796, 1.5e300, 5e-324, 123456.7 };
    printf("%s\n", setlocale(LC_ALL, NULL));
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) for (int single = 0; single < 2; single++) {
        char text[40]; double back;
        mlo_print_number(text, single ? (double)(float)v[i] : v[i], single);
        if (single && isinf((float)v[i])) continue;
        int ok = mlo_parse_number(text, &back) && (single ? (float)back == (float)v[i] : back == v[i]);
        printf("%s %s\n", text, ok ? "ok" : "WRONG");
    }
}

int main(int argc, char **argv) {
    mlo_desc d; memset(&d, 0, sizeof d); d.warn = driver_warn;
    const char *path = argc > 2 ? argv[2] : "", *dir = NULL;
    char *bytes = NULL; size_t n; int status = 0;
    setlocale(LC_ALL, "");
    if (argc > 1 && !strcmp(argv[1], "numbers")) { driver_numbers(); return 0; }
    if (argc < 3) return 2;
    for (int i = 3; i < argc; i++) if (!strncmp(argv[i], "dir=", 4)) dir = argv[i] + 4;
    if (!strcmp(argv[1], "abuse")) return driver_abuse(path, dir);
    mlo *m = mlo_open(&d);
    for (int i = 4; i < argc; i++) { char *eq = strchr(argv[i], '='); if (eq && strncmp(argv[i], "dir=", 4)) { *eq = 0; mlo_set(m, argv[i], eq + 1); } }
    if (!strncmp(path, "mem:", 4)) { bytes = driver_slurp(path + 4, &n); mlo_parse(m, bytes, n, dir); } else mlo_load(m, path);
    if (!strcmp(argv[1], "read") || !strcmp(argv[1], "twice")) mlo_to(m, "read");
    if (!strcmp(argv[1], "twice")) mlo_to(m, "read");
    if (!strcmp(argv[1], "dump")) { if (!mlo_failed(m)) mlo_each_message(m, MLO_M_MODEL, m->model, MLO_M_TENSOR, driver_dump_one, NULL); }
    else if (!strcmp(argv[1], "equal")) {
        mlo_graph *g = m->model->graph;
        for (size_t i = 0; i < g->n_init; i++, printf("\n")) for (size_t k = 0; k < g->n_init; k++) {
            int e = mlo_tensor_equal(m, g->init[i], g->init[k]);
            printf("%d", e && mlo_tensor_hash(m, g->init[i]) == mlo_tensor_hash(m, g->init[k]));
        }
    }
    else if (argc > 3 && !strcmp(argv[3], "onnx")) mlo_write_onnx(m, driver_sink, stdout);
    else mlo_write_json(m, driver_sink, stdout);
    if (mlo_failed(m)) { fprintf(stderr, "%s\n", mlo_failure(m)->text); status = mlo_failure(m)->status; }
    mlo_close(m);
    free(bytes);
    return status;
}
