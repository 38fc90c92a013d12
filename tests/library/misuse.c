/* SPDX-License-Identifier: MIT
 * misuse: what mlo.h says of calls at the wrong time or with nothing in them. Says what is otherwise.
 *
 *     misuse MODEL.onnx [DECODER.onnx]      the second one: which jobs a core of 16 positions and two slots can be given
 */
#include "mlo.h"
#include <stdio.h>
#include <string.h>

static const mlo_array *values;
static size_t n;
static int64_t cycles, interval;

static int full(void *user, const char *file, const void *bytes, size_t k) {
    (void)user;
    (void)file;
    (void)bytes;
    return k > 0;
}
static int keep(void *user, const char *file, const void *bytes, size_t k) {
    (void)file;
    size_t *used = (size_t *)user;
    if (k > (1 << 22) - *used - sizeof *used) return 1;
    memcpy((char *)user + sizeof *used + *used, bytes, k);
    *used += k;
    return 0;
}

/* Each call on a handle of its own: with no model, a model as it was loaded, a folded one; the code it must end with. */
enum { NOTHING, LOADED, FOLDED };
#define CASE(state, code, call)                                                                                             \
    do {                                                                                                                    \
        mlo *m = mlo_open(NULL);                                                                                            \
        if (state == FOLDED) mlo_set(m, "pe", "4"), mlo_set(m, "simd", "4");                                                \
        if (state != NOTHING) mlo_load(m, path);                                                                            \
        if (state == FOLDED) mlo_to(m, "fold");                                                                             \
        call;                                                                                                               \
        const mlo_error *e = mlo_failure(m);                                                                                \
        if (mlo_failed(m) != (int)code || (e && (!*e->text || !*e->message || strncmp(e->name, "MLO_E_", 6)))) printf("%s: %s\n", #call, e ? e->text : "no failure"); \
        int first = mlo_failed(m);                                                                                          \
        if (first && (mlo_to(m, "read") != first || mlo_run(m, NULL, 0, &values, &n) != first || mlo_write_json(m, full, NULL) != first || mlo_summary(m))) printf("%s: the failure did not stick\n", #call); \
        mlo_close(m);                                                                                                       \
    } while (0)

static union { size_t used; char room[(1 << 22)]; } text;

/* A decoder, folded; each list of jobs on a handle of its own. ids: tokens come in, and texts go on inside. */
static void jobs(const char *path, const char *ids) {
    static const struct { const char *list; int right, with_ids; } lists[] = { /* the code it ends with; that of ids */
        { "0:0+4", MLO_OK, MLO_OK }, { "0:0+4,1:0+3,0:4+1", MLO_OK, MLO_OK }, { "1:0+16", MLO_OK, MLO_OK }, { "0:0+4,", MLO_OK, MLO_OK }, { "", MLO_OK, MLO_OK },
        { "0:0+4+3", MLO_E_USAGE, MLO_OK }, { "0:0+4+0", MLO_OK, MLO_OK }, { "0:0+4+13", MLO_E_USAGE, MLO_OK }, { "0:0+4+14", MLO_E_USAGE, MLO_E_USAGE }, { "0:0+4+-1", MLO_E_USAGE, MLO_E_USAGE },
        { "0:0+4+2,0:6+1", MLO_E_USAGE, MLO_OK }, { "0:0+4+2,0:6+1,1:0+2+1", MLO_E_USAGE, MLO_OK }, { "x", MLO_E_USAGE, MLO_E_USAGE }, { "0:0", MLO_E_USAGE, MLO_E_USAGE }, { "0:0+4;", MLO_E_USAGE, MLO_E_USAGE },
        { "2:0+1", MLO_E_USAGE, MLO_E_USAGE }, { "-1:0+1", MLO_E_USAGE, MLO_E_USAGE }, { "0:-1+2", MLO_E_USAGE, MLO_E_USAGE }, { "0:0+0", MLO_E_USAGE, MLO_E_USAGE }, { "0:0+17", MLO_E_USAGE, MLO_E_USAGE }, { "0:15+2", MLO_E_USAGE, MLO_E_USAGE },
    };
    mlo *m = mlo_open(NULL);
    mlo_set(m, "context", "16"), mlo_set(m, "slots", "2"), mlo_set(m, "pe", "2"), mlo_set(m, "simd", "2");
    if (*ids) mlo_set(m, "tokens", ids);
    text.used = 0;
    mlo_load(m, path), mlo_to(m, "fold"), mlo_write_json(m, keep, &text);
    if (mlo_failed(m)) printf("%s\n", mlo_failure(m)->text);
    mlo_close(m);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const int right = *ids ? lists[i].with_ids : lists[i].right;
        m = mlo_open(NULL);
        mlo_set(m, "jobs", lists[i].list);
        mlo_parse(m, (char *)&text + sizeof text.used, text.used, NULL);
        const char *said = mlo_report(m, "cycles");
        if (mlo_failed(m) != right || !said != !!right || (right && !strstr(mlo_failure(m)->text, "SLOT:START+TOKENS"))) printf("jobs '%s'%s: %s\n", lists[i].list, *ids ? " of ids" : "", mlo_failed(m) ? mlo_failure(m)->text : "no failure");
        mlo_close(m);
    }
}

/* What follows a prompt, of a decoder that was read with 16 positions: what the call must end with. */
static void texts(const char *path) {
    static const int64_t prompt[17] = { 1, 2, 3 }, below[1] = { -1 }, beyond[1] = { 1 << 20 };
    static const struct { const int64_t *prompt; size_t n; size_t count; size_t behind; mlo_code right; } calls[] = {
        { prompt, 3, 2, 0, MLO_OK }, { prompt, 16, 0, 0, MLO_OK }, { prompt, 15, 1, 0, MLO_OK }, { prompt, 0, 1, 0, MLO_E_USAGE }, { prompt, 17, 0, 0, MLO_E_USAGE }, { prompt, 3, 14, 0, MLO_E_USAGE },
        { below, 1, 1, 0, MLO_E_USAGE }, { beyond, 1, 1, 0, MLO_E_USAGE }, { prompt, 3, 2, 1, MLO_E_USAGE }, { prompt, 3, 2, 2, MLO_E_USAGE }, { prompt, 3, 2, 4, MLO_E_USAGE },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        mlo *m = mlo_open(NULL), *empty = mlo_open(NULL), *failed = mlo_open(NULL), *behind[4];
        const int64_t *tokens = NULL;
        size_t n_tokens = 0;
        mlo_load(failed, "/nowhere");
        for (int k = 0; k < 4; k++) behind[k] = calls[i].behind == 2 ? failed : empty;
        mlo_set(m, "context", "16"), mlo_load(m, path), mlo_to(m, "read");
        const int code = mlo_generate(m, behind, calls[i].behind, calls[i].prompt, calls[i].n, calls[i].count, -1, NULL, NULL, &tokens, &n_tokens);
        if (code != (int)calls[i].right || mlo_failed(m) != code || (!code && (n_tokens != calls[i].n + calls[i].count || memcmp(tokens, prompt, calls[i].n * sizeof *prompt)))) printf("text %zu: %s, %zu tokens\n", i, code ? mlo_failure(m)->text : "no failure", n_tokens);
        if (code && mlo_generate(m, NULL, 0, prompt, 3, 1, -1, NULL, NULL, &tokens, &n_tokens) != code) printf("text %zu: the failure did not stick\n", i);
        mlo_close(m), mlo_close(empty), mlo_close(failed);
    }
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "";
    char hex[65];
    mlo_close(NULL);
    mlo_digest(NULL, 0, hex); /* of nothing: FIPS 180-4 */
    if (strcmp(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")) printf("digest of nothing: %s\n", hex);
    if (!mlo_failed(NULL) || mlo_failure(NULL) || *mlo_stage(NULL)) printf("no handle is no failure\n");
    CASE(NOTHING, MLO_E_USAGE, mlo_set(m, NULL, "1"));
    CASE(NOTHING, MLO_E_USAGE, mlo_set(m, "", "1"));
    CASE(NOTHING, MLO_E_USAGE, mlo_set(m, "pe", NULL));
    CASE(NOTHING, MLO_E_USAGE, mlo_set(m, "paint", "1"));
    CASE(NOTHING, MLO_E_USAGE, mlo_load(m, NULL));
    CASE(NOTHING, MLO_E_USAGE, mlo_load(m, ""));
    CASE(NOTHING, MLO_E_IO, mlo_load(m, "/nowhere"));
    CASE(NOTHING, MLO_E_IO, mlo_load(m, "/"));
    CASE(NOTHING, MLO_E_IO, mlo_load(m, "nowhere"));
    CASE(NOTHING, MLO_E_FORMAT, mlo_parse(m, NULL, 7, NULL));
    CASE(NOTHING, MLO_E_FORMAT, mlo_parse(m, "x", 1, "somewhere"));
    CASE(NOTHING, MLO_E_USAGE, mlo_to(m, "read"));
    CASE(NOTHING, MLO_E_USAGE, mlo_report(m, "scope"));
    CASE(NOTHING, MLO_E_USAGE, mlo_signature(m, 0, &values, &n));
    CASE(NOTHING, MLO_E_USAGE, mlo_draw(m, 0, &values, &n));
    CASE(NOTHING, MLO_E_USAGE, mlo_golden(m, &values, &n));
    CASE(NOTHING, MLO_E_USAGE, mlo_cycles(m, 1, &cycles, &interval));
    CASE(NOTHING, MLO_E_USAGE, mlo_resize(m, 1));
    CASE(NOTHING, MLO_E_USAGE, mlo_write_onnx(m, full, NULL));
    CASE(NOTHING, MLO_E_USAGE, mlo_write_json(m, full, NULL));
    CASE(NOTHING, MLO_E_USAGE, mlo_check(m, m));
    CASE(NOTHING, MLO_E_SHAPE, mlo_refuse(m, MLO_E_SHAPE, NULL, NULL, "mine"));
    CASE(NOTHING, MLO_E_USAGE, mlo_refuse(m, MLO_OK, "mine", "node", "no code"));
    CASE(NOTHING, MLO_E_USAGE, mlo_refuse(m, MLO_E_COUNT, "mine", "node", "no code"));
    CASE(LOADED, MLO_E_USAGE, mlo_load(m, path));
    CASE(LOADED, MLO_E_USAGE, mlo_to(m, NULL));
    CASE(LOADED, MLO_E_USAGE, mlo_to(m, "nowhere"));
    CASE(LOADED, MLO_E_USAGE, mlo_report(m, NULL));
    CASE(LOADED, MLO_E_USAGE, mlo_report(m, "weather"));
    CASE(LOADED, MLO_E_USAGE, mlo_golden(m, &values, &n));
    CASE(LOADED, MLO_E_USAGE, mlo_cycles(m, 0, &cycles, &interval));
    CASE(LOADED, MLO_E_USAGE, mlo_cycles(m, (int64_t)1 << 40, &cycles, &interval));
    CASE(LOADED, MLO_E_IO, mlo_write_onnx(m, full, NULL));
    CASE(LOADED, MLO_E_IO, mlo_write_json(m, full, NULL));
    CASE(LOADED, MLO_E_IO, mlo_show(m, "text", full, NULL));
    CASE(FOLDED, MLO_OK, mlo_to(m, "read"));
    CASE(FOLDED, MLO_E_SHAPE, mlo_resize(m, 0));
    CASE(FOLDED, MLO_E_SHAPE, mlo_resize(m, 1 << 20));
    CASE(FOLDED, MLO_OK, mlo_resize(m, 1));
    CASE(FOLDED, MLO_E_IO, mlo_emit(m, full, NULL));
    CASE(LOADED, MLO_OK, mlo_write_json(m, keep, &text));
    CASE(NOTHING, MLO_OK, mlo_parse(m, (char *)&text + sizeof text.used, text.used, NULL); mlo_to(m, "roll"));
    CASE(NOTHING, MLO_E_USAGE, mlo_show(m, "text", full, NULL));
    CASE(LOADED, MLO_E_USAGE, mlo_show(m, NULL, full, NULL));
    CASE(LOADED, MLO_E_USAGE, mlo_show(m, "pdf", full, NULL));
    CASE(LOADED, MLO_OK, mlo_signature(m, 1, &values, &n); if (n != 2) printf("%zu outputs\n", n));
    CASE(LOADED, MLO_OK, mlo_signature(m, 0, &values, &n); if (n != 1) printf("%zu inputs\n", n));
    CASE(LOADED, MLO_E_LOOP, mlo_resize(m, 1));
    CASE(FOLDED, MLO_OK, mlo_cycles(m, 1, &cycles, &interval); if (cycles < 1 || interval < 1) printf("no cycles\n"));
    CASE(FOLDED, MLO_E_USAGE, mlo_set(m, "frames", "0"); mlo_report(m, "cycles"));
    CASE(FOLDED, MLO_E_USAGE, mlo_calibrate(m, NULL, 0); mlo_words(m, NULL, 0, NULL, 0); mlo_golden(m, &values, &n));
    static int64_t one[2];
    static int32_t small[1];
    static float half[1] = { 0.5f }, whole[1] = { 3 };
    const mlo_array ids = { "input_ids", MLO_INT64, 2, { 1, 1 }, one }, unnamed[2] = { { NULL, MLO_INT64, 2, { 1, 1 }, one }, { NULL, MLO_INT64, 2, { 1, 1 }, one } };
    const mlo_array named[2] = { { "another", MLO_INT64, 2, { 1, 1 }, NULL }, ids }, other = { "another", MLO_INT64, 2, { 1, 1 }, one };
    const mlo_array less = { "input_ids", MLO_INT64, -1, { 1, 1 }, one }, more = { "input_ids", MLO_INT64, MLO_MAX_RANK + 1, { 1, 1 }, one }, words = { "input_ids", MLO_STRING, 2, { 1, 1 }, one };
    const mlo_array hollow = { "input_ids", MLO_INT64, 2, { 1, 1 }, NULL }, wide = { "input_ids", MLO_INT64, 2, { 1, 2 }, one }, nothing = { "input_ids", MLO_INT64, 2, { 1, 0 }, NULL };
    const mlo_array narrow = { "input_ids", MLO_INT32, 2, { 1, 1 }, small }, floats = { "input_ids", MLO_FLOAT, 2, { 1, 1 }, half }, round = { "input_ids", MLO_FLOAT, 2, { 1, 1 }, whole };
    int64_t prompt[1] = { 1 };
    const int64_t *tokens;
    CASE(NOTHING, MLO_E_USAGE, mlo_run(m, &ids, 1, &values, &n));
    CASE(NOTHING, MLO_E_USAGE, mlo_generate(m, NULL, 0, prompt, 1, 1, -1, NULL, NULL, &tokens, &n));
    CASE(LOADED, MLO_OK, mlo_run(m, &ids, 1, &values, &n); if (n != 2) printf("%zu outputs of a run\n", n));
    CASE(LOADED, MLO_OK, mlo_run(m, unnamed, 1, &values, &n));
    CASE(LOADED, MLO_OK, mlo_run(m, named, 2, &values, &n));
    CASE(LOADED, MLO_OK, mlo_run(m, &other, 1, &values, &n));
    CASE(LOADED, MLO_OK, mlo_run(m, &narrow, 1, &values, &n));
    CASE(LOADED, MLO_E_USAGE, mlo_run(m, unnamed, 2, &values, &n));
    CASE(LOADED, MLO_E_USAGE, mlo_run(m, NULL, 0, &values, &n));
    CASE(LOADED, MLO_E_USAGE, mlo_run(m, &less, 1, &values, &n));
    CASE(LOADED, MLO_E_USAGE, mlo_run(m, &more, 1, &values, &n));
    CASE(LOADED, MLO_E_USAGE, mlo_run(m, &words, 1, &values, &n));
    CASE(LOADED, MLO_E_USAGE, mlo_run(m, &hollow, 1, &values, &n));
    CASE(LOADED, MLO_E_SHAPE, mlo_run(m, &wide, 1, &values, &n));
    CASE(LOADED, MLO_E_SHAPE, mlo_run(m, &nothing, 1, &values, &n));
    CASE(LOADED, MLO_E_TYPE, mlo_run(m, &floats, 1, &values, &n));
    CASE(LOADED, MLO_E_TYPE, mlo_run(m, &round, 1, &values, &n));
    if (argc > 2) texts(argv[2]);
    if (argc > 2) jobs(argv[2], ""), jobs(argv[2], "1");
    return 0;
}
