/* SPDX-License-Identifier: MIT
 * mlo_driver: see mlo_driver.h. */
#include "mlo_driver.h"

enum { ID = 0x4D4C4F31, ENABLE = 1, SOFT_RESET = 2, BUS_ERROR = 2, REFUSED = 4, MISCOUNTED = 16 };

/* ---- registers ---- */

static uint32_t get(const mlo_driver *d, uint32_t offset) {
    return d->base ? d->base[offset / 4] : d->read(d->user, offset);
}
static void put(const mlo_driver *d, uint32_t offset, uint32_t value) {
    if (d->base) d->base[offset / 4] = value;
    else d->write(d->user, offset, value);
}

/* ---- what went wrong ---- */

static char *digits(char *to, int64_t n) {
    char text[20];
    int k = 0;
    if (n < 0) *to++ = '-';
    for (uint64_t rest = (uint64_t)(n < 0 ? -n : n); rest || !k; rest /= 10) text[k++] = (char)('0' + rest % 10);
    while (k) *to++ = text[--k];
    return to;
}

/* The status, with its sentence: each % is the next of three numbers. */
static mlo_status fail(mlo_driver *d, mlo_status status, const char *text, int64_t a, int64_t b, int64_t c) {
    const int64_t number[3] = { a, b, c };
    const char *const end = d->line + sizeof d->line - 24;
    char *to = d->line;
    for (int k = 0; *text && to < end; text++)
        if (*text == '%' && k < 3) to = digits(to, number[k++]);
        else *to++ = *text;
    *to = 0;
    return status;
}

mlo_status mlo_driver_check(mlo_driver *d) {
    const uint32_t status = get(d, MLO_REG_STATUS);
    if (status & BUS_ERROR) return fail(d, MLO_BUS_ERROR, "memory answered a read of parameters with an error: is their address right?", 0, 0, 0);
    if (status & REFUSED) return fail(d, MLO_REFUSED, "a job was refused: it began behind its slot's end, or did not fit", 0, 0, 0);
    if (status & MISCOUNTED) return fail(d, MLO_MISCOUNTED, "a frame had not the tokens of its job", 0, 0, 0);
    return MLO_OK;
}

/* ---- control ---- */

mlo_status mlo_driver_reset(mlo_driver *d) {
    put(d, MLO_REG_CONTROL, SOFT_RESET);
    for (int i = 0; i < 8; i++) (void)get(d, MLO_REG_STATUS); /* a reset takes 16 cycles, a read three or more */
    put(d, MLO_REG_CONTROL, ENABLE);
    return mlo_driver_check(d);
}

mlo_status mlo_driver_open(mlo_driver *d, uint64_t parameters) {
    const uint32_t id = get(d, MLO_REG_ID), cache = get(d, MLO_REG_CONTEXT);
    if (id != ID) return fail(d, MLO_NO_CORE, "no core: its first register reads %, not %: is the base address right?", id, ID, 0);
    if (get(d, MLO_REG_VERSION) >> 16 != 1) return fail(d, MLO_OTHER_CORE, "another core: its registers are of version %, not 1", get(d, MLO_REG_VERSION) >> 16, 0, 0);
    if (cache != MLO_CACHE) return fail(d, MLO_OTHER_CORE, "another core: it has % slots of % positions", cache >> 24, cache & 0xFFFFFF, 0);
    put(d, MLO_REG_FRAMES, 255); /* it takes as many as it was made for */
    if (get(d, MLO_REG_FRAMES) != MLO_FRAMES) return fail(d, MLO_OTHER_CORE, "another core: it has % frames in flight, not %", get(d, MLO_REG_FRAMES), MLO_FRAMES, 0);
    put(d, MLO_REG_ITERATIONS, MLO_ITERATIONS);
    if (get(d, MLO_REG_ITERATIONS) != MLO_ITERATIONS) return fail(d, MLO_OTHER_CORE, "another core: it has no room for % layers", MLO_ITERATIONS, 0, 0);
    put(d, MLO_REG_BASE_LOW, (uint32_t)parameters);
    put(d, MLO_REG_BASE_HIGH, (uint32_t)(parameters >> 32));
    if (MLO_KV_MEMORY) {
        put(d, MLO_REG_KV_BASE_LOW, (uint32_t)d->cache);
        put(d, MLO_REG_KV_BASE_HIGH, (uint32_t)(d->cache >> 32));
    }
    return mlo_driver_reset(d);
}

/* ---- frames ---- */

mlo_status mlo_driver_run(mlo_driver *d, const mlo_frame *frame) {
    if (d->send(d->user, frame)) return fail(d, MLO_NOT_SENT, "the transfers of a frame were not begun", 0, 0, 0);
    for (uint32_t left = d->patience; left; left--) {
        const int done = d->done(d->user, frame);
        const mlo_status status = mlo_driver_check(d);
        if (status) return status;
        if (done < 0) return fail(d, MLO_NOT_SENT, "a transfer failed", 0, 0, 0);
        if (done) return MLO_OK;
    }
    return fail(d, MLO_TIMED_OUT, "no answer: looked % times, % beats of parameters were read and % frames finished", d->patience,
        get(d, MLO_REG_PARAM_BEATS), get(d, MLO_REG_DONE));
}

mlo_status mlo_driver_order(mlo_driver *d, const mlo_job *job) {
    uint32_t left = d->patience;
    while (left && !get(d, MLO_REG_JOB_ROOM)) left--;
    if (!left) return fail(d, MLO_NO_ROOM, "no room for a job: those that wait have no frames", 0, 0, 0);
    put(d, MLO_REG_JOB_A, job->slot << 24 | job->start);
    put(d, MLO_REG_JOB_B, job->more << 16 | job->tokens);
    return MLO_OK;
}

void mlo_driver_stop(mlo_driver *d, uint32_t id) { put(d, MLO_REG_STOP, id); }

mlo_status mlo_driver_job(mlo_driver *d, const mlo_job *job, const mlo_frame *frame) {
    const mlo_status status = mlo_driver_order(d, job);
    return status ? status : mlo_driver_run(d, frame);
}

@GIVEN@/* ---- keys and values that are the model's own ---- */
@GIVEN@
@GIVEN@/* Where word n of [MLO_ITERATIONS][positions][MLO_KV_CHANNELS] is, of keys (0) or of values (1). */
@GIVEN@static volatile uint8_t *place(const mlo_driver *d, uint32_t which, uint32_t positions, uint32_t n) {
@GIVEN@    const uint32_t i = n % MLO_KV_CHANNELS, position = n / MLO_KV_CHANNELS % positions, layer = n / MLO_KV_CHANNELS / positions;
@GIVEN@    const uint32_t row = (layer * 2 + which) * MLO_KV_POSITIONS + position;
@GIVEN@    return d->kv + row * MLO_KV_ROW_BYTES + i / MLO_KV_USED_BYTES * MLO_KV_BEAT_BYTES + i % MLO_KV_USED_BYTES;
@GIVEN@}
@GIVEN@static mlo_status there(mlo_driver *d) {
@GIVEN@    return d->kv ? MLO_OK : fail(d, MLO_NO_MEMORY, "no memory for keys and values: kv is not set", 0, 0, 0);
@GIVEN@}
@GIVEN@
@GIVEN@mlo_status mlo_driver_past(mlo_driver *d, const int8_t *keys, const int8_t *values) {
@GIVEN@    for (uint32_t n = 0; n < MLO_ITERATIONS * MLO_KV_PAST * MLO_KV_CHANNELS && d->kv; n++) {
@GIVEN@        *place(d, 0, MLO_KV_PAST, n) = (uint8_t)keys[n];
@GIVEN@        *place(d, 1, MLO_KV_PAST, n) = (uint8_t)values[n];
@GIVEN@    }
@GIVEN@    return there(d);
@GIVEN@}
@GIVEN@
@GIVEN@static int8_t kept(const mlo_driver *d, uint32_t which, uint32_t n) { return (int8_t)*place(d, which, MLO_KV_POSITIONS, n); }
@GIVEN@
@GIVEN@mlo_status mlo_driver_kept(mlo_driver *d, int8_t *keys, int8_t *values) {
@GIVEN@    for (uint32_t n = 0; n < MLO_ITERATIONS * MLO_KV_POSITIONS * MLO_KV_CHANNELS && d->kv; n++) {
@GIVEN@        keys[n] = kept(d, 0, n);
@GIVEN@        values[n] = kept(d, 1, n);
@GIVEN@    }
@GIVEN@    return there(d);
@GIVEN@}

/* ---- numbers ---- */

int32_t mlo_driver_word(const mlo_border *border, const void *words, uint32_t i) {
    const uint8_t *const bytes = (const uint8_t *)words + i * border->bytes;
    const uint32_t sign = 1u << (8 * border->bytes - 1);
    uint32_t word = 0;
    for (uint32_t k = border->bytes; k--;) word = word << 8 | bytes[k];
    return (int32_t)((word ^ sign) - sign);
}

/* Half to even, as ONNX rounds. */
static int32_t nearest(float x) {
    const int32_t whole = (int32_t)x, away = x < 0 ? -1 : 1;
    const float rest = (x - (float)whole) * (float)away;
    return rest > 0.5f || (rest == 0.5f && whole % 2) ? whole + away : whole;
}

void mlo_driver_quantize(const mlo_border *border, const float *numbers, uint32_t n, void *words) {
    uint8_t *to = (uint8_t *)words;
    const float low = (float)border->low, high = (float)border->high;
    for (uint32_t i = 0; i < n; i++) {
        const float x = numbers[i] / border->scale;
        const uint32_t word = (uint32_t)nearest(x > low ? x < high ? x : high : low);
        for (uint32_t k = 0; k < border->bytes; k++) *to++ = (uint8_t)(word >> (8 * k));
    }
}

void mlo_driver_dequantize(const mlo_border *border, const void *words, uint32_t n, float *numbers) {
    for (uint32_t i = 0; i < n; i++) numbers[i] = (float)mlo_driver_word(border, words, i) * border->scale;
}

/* ---- the test ---- */

static const mlo_border input = MLO_INPUT, output = MLO_OUTPUT, memory = MLO_MEMORY;

static mlo_status compare(mlo_driver *d, const uint8_t *want, const uint8_t *got, uint32_t bytes, uint32_t before) {
    for (uint32_t i = 0; i < bytes / output.bytes; i++) {
        const int32_t a = mlo_driver_word(&output, want, i), b = mlo_driver_word(&output, got, i);
        if (a != b)
            return fail(d, MLO_OTHER_WORDS, "word % of the frame is %, not %: are the parameters those of this core?", before + i, b, a);
    }
    return MLO_OK;
}

static mlo_status into(mlo_driver *d, const mlo_border *border, const mlo_numbers *known, const void *words) {
    uint8_t word[4];
    for (uint32_t i = 0; i < known->n; i++) {
        mlo_driver_quantize(border, known->number + i, 1, word);
        const int32_t want = mlo_driver_word(border, words, i), got = mlo_driver_word(border, word, 0);
        if (got != want) return fail(d, MLO_OTHER_SCALE, "number % becomes word %, not %: the input's scale is another core's", i, got, want);
    }
    return MLO_OK;
}

static mlo_status out_of(mlo_driver *d, const mlo_border *border, const mlo_numbers *known, const void *words) {
    for (uint32_t i = 0; i < known->n; i++) {
        float number;
        mlo_driver_dequantize(border, (const uint8_t *)words + i * border->bytes, 1, &number);
        if (number != known->number[i])
            return fail(d, MLO_OTHER_SCALE, "word %, %, becomes another number: the output's scale is another core's", i, mlo_driver_word(border, words, i), 0);
    }
    return MLO_OK;
}

static mlo_status borders(mlo_driver *d) {
    const mlo_example *const e = &mlo_driver_example;
    mlo_status status = into(d, &input, &e->before, e->frame.in[0].data);
    if (!status) status = into(d, &memory, &e->memory, e->frame.in[2].data);
    return status ? status : out_of(d, &output, &e->behind, e->out);
}

/* Job k, from token `first` on. Of a core of token ids a word follows each job. */
static mlo_status part(mlo_driver *d, uint32_t first, uint32_t k, const mlo_job *job, uint8_t *room) {
    const mlo_example *const e = &mlo_driver_example;
    const uint32_t at = first * MLO_TOKEN_BYTES, bytes = job ? job->tokens * MLO_TOKEN_BYTES : e->frame.in[0].bytes;
    const uint32_t from = MLO_SAID_BYTES ? k * MLO_SAID_BYTES : first * MLO_MADE_BYTES;
    const uint32_t made = MLO_SAID_BYTES ? MLO_SAID_BYTES : bytes / MLO_TOKEN_BYTES * MLO_MADE_BYTES;
    mlo_frame frame = e->frame;
    frame.in[0].data = (const uint8_t *)frame.in[0].data + at;
    frame.in[0].bytes = bytes;
    if (job && frame.in[1].bytes) {
        frame.in[1].data = (const uint8_t *)frame.in[1].data + first;
        frame.in[1].bytes = job->tokens;
    }
    frame.out = room;
    for (uint32_t i = 0; i < made; i++) room[i] = 0;
    const mlo_status status = job ? mlo_driver_job(d, job, &frame) : mlo_driver_run(d, &frame);
    return status ? status : compare(d, (const uint8_t *)e->out + from, room, made, from / output.bytes);
}

@GIVEN@static mlo_status compare_kept(mlo_driver *d) {
@GIVEN@    for (uint32_t n = 0; n < 2 * MLO_ITERATIONS * MLO_KV_POSITIONS * MLO_KV_CHANNELS; n++) {
@GIVEN@        const int8_t want = mlo_driver_example.kept[n % 2][n / 2], got = kept(d, n % 2, n / 2);
@GIVEN@        if (got != want)
@GIVEN@            return fail(d, MLO_OTHER_WORDS, n % 2 ? "word % of values that are kept is %, not %: is kv the memory behind m_axi_kv?"
@GIVEN@                : "word % of keys that are kept is %, not %: is kv the memory behind m_axi_kv?", n / 2, got, want);
@GIVEN@    }
@GIVEN@    return MLO_OK;
@GIVEN@}

mlo_status mlo_driver_test(mlo_driver *d, void *room) {
    const mlo_example *const e = &mlo_driver_example;
    mlo_status status = borders(d);
@GIVEN@    if (!status) status = mlo_driver_past(d, e->past[0], e->past[1]);
    if (!status && !e->jobs) status = part(d, 0, 0, 0, (uint8_t *)room);
    for (uint32_t i = 0, first = 0; i < e->jobs && !status; first += e->job[i++].tokens) status = part(d, first, i, &e->job[i], (uint8_t *)room);
@GIVEN@    if (!status) status = compare_kept(d);
    return status;
}
