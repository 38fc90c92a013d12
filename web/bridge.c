/* SPDX-License-Identifier: MIT
 *
 * bridge: what web/library.js calls beside mlo.h: functions that hand what mlo writes, its warnings and the values of a run to JavaScript, and read files there.
 *
 * in:  a handle. out: host.piece(file, bytes) for each piece of each file, in order; host.warned(line); host.seen(name, iteration, where an mlo_array lies).
 * Where the host opens no files, there are none: weights have to be in the model.
 */
#include "mlo.h"
#include <emscripten.h>
#include <string.h>

EM_JS(void, web_piece, (const char *file, const void *bytes, size_t n),
    { Module.host.piece(UTF8ToString(file), HEAPU8.slice(bytes, bytes + n)); })
EM_JS(void, web_warned, (const char *line), { if (Module.host.warned) Module.host.warned(UTF8ToString(line)); })
EM_JS(void, web_seen, (const char *name, double iteration, const mlo_array *value),
    { Module.host.seen(UTF8ToString(name), iteration, value); })
EM_JS(int, web_file, (const char *path), {
    try { return Module.host.open ? Module.host.open(UTF8ToString(path)) : 0; } catch (e) { return 0; }
})
EM_JS(double, web_size, (int file), { return Module.host.size(file); })
EM_JS(int, web_read, (int file, double offset, void *to, size_t n), {
    try { return Module.host.read(file, offset, HEAPU8.subarray(to, to + n)); } catch (e) { return 0; }
})
EM_JS(void, web_close, (int file), { Module.host.close(file); })

static void *web_file_open(void *user, const char *path, uint64_t *size) {
    (void)user;
    const int file = web_file(path);
    if (file) *size = (uint64_t)web_size(file);
    return (void *)(intptr_t)file;
}

static size_t web_file_read(void *user, void *file, uint64_t offset, void *to, size_t bytes) {
    (void)user;
    return (size_t)web_read((int)(intptr_t)file, (double)offset, to, bytes);
}

static void web_file_close(void *user, void *file) {
    (void)user;
    web_close((int)(intptr_t)file);
}

static int web_sink(void *user, const char *file, const void *bytes, size_t n) {
    (void)user;
    web_piece(file, bytes, n);
    return 0;
}

static void web_warn(void *user, const char *line) {
    (void)user;
    web_warned(line);
}

static int web_see(void *user, const char *name, int64_t iteration, const mlo_array *value) {
    (void)user;
    web_seen(name, (double)iteration, value);
    return 0;
}

EMSCRIPTEN_KEEPALIVE mlo *web_open(void) {
    mlo_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.warn = web_warn;
    desc.open = web_file_open;
    desc.read = web_file_read;
    desc.close = web_file_close;
    return mlo_open(&desc);
}

EMSCRIPTEN_KEEPALIVE void web_watch(mlo *m) { mlo_watch(m, web_see, NULL); }
EMSCRIPTEN_KEEPALIVE int web_json(mlo *m) { return mlo_write_json(m, web_sink, NULL); }
EMSCRIPTEN_KEEPALIVE int web_onnx(mlo *m) { return mlo_write_onnx(m, web_sink, NULL); }
EMSCRIPTEN_KEEPALIVE int web_emit(mlo *m) { return mlo_emit(m, web_sink, NULL); }

EMSCRIPTEN_KEEPALIVE int web_generate(
    mlo *m, const int64_t *prompt, size_t n, size_t count, const int64_t **tokens, size_t *n_tokens) {
    return mlo_generate(m, NULL, 0, prompt, n, count, -1, NULL, NULL, tokens, n_tokens);
}

EMSCRIPTEN_KEEPALIVE int web_show(mlo *m, const char *format) {
    return mlo_show(m, format, web_sink, NULL);
}
