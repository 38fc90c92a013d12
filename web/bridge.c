/* SPDX-License-Identifier: MIT
 *
 * bridge: what web/worker.js calls beside mlo.h: functions that hand what mlo writes, and its warnings, to JavaScript.
 *
 * in:  a handle. out: Module.piece(file, bytes) for each piece of each file, in order; Module.warned(line).
 */
#include "mlo.h"
#include <emscripten.h>
#include <string.h>

EM_JS(void, web_piece, (const char *file, const void *bytes, size_t n),
    { Module.piece(UTF8ToString(file), HEAPU8.slice(bytes, bytes + n)); })
EM_JS(void, web_warned, (const char *line), { Module.warned(UTF8ToString(line)); })

static int web_sink(void *user, const char *file, const void *bytes, size_t n) {
    (void)user;
    web_piece(file, bytes, n);
    return 0;
}

static void web_warn(void *user, const char *line) {
    (void)user;
    web_warned(line);
}

EMSCRIPTEN_KEEPALIVE mlo *web_open(void) {
    mlo_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.warn = web_warn;
    return mlo_open(&desc);
}

EMSCRIPTEN_KEEPALIVE int web_json(mlo *m) { return mlo_write_json(m, web_sink, NULL); }
EMSCRIPTEN_KEEPALIVE int web_onnx(mlo *m) { return mlo_write_onnx(m, web_sink, NULL); }
EMSCRIPTEN_KEEPALIVE int web_emit(mlo *m) { return mlo_emit(m, web_sink, NULL); }

EMSCRIPTEN_KEEPALIVE int web_show(mlo *m, const char *format) {
    return mlo_show(m, format, web_sink, NULL);
}

/* The line for people; "" while all is well. */
EMSCRIPTEN_KEEPALIVE const char *web_failure(const mlo *m) {
    const mlo_error *e = mlo_failure(m);
    return e ? e->text : "";
}
