/* SPDX-License-Identifier: MIT
 * mlo_driver: this core from a host's C: registers, frames, jobs, numbers, and a test of it all. Made by mlo @VERSION@.
 * C99 and <stdint.h>, nothing else: no allocation, no clock, no C library.
 *
 *     mlo_driver d = { .base = (volatile uint32_t *)0xA0000000, .send = my_send, .done = my_done, .patience = 1000000 };
 *     if (mlo_driver_open(&d, where_params_bin_lies) || mlo_driver_test(&d, room)) puts(d.line);
 *
 * What is a word here is an integer of the core: MLO_WORD_BYTES bytes, the low one first, channel after channel, token after
 * token. So it lies in memory, and so the streams take it, however wide they are. What moves it (a DMA) is yours: two hooks.
 * One frame at a time; a function returns MLO_OK, or what went wrong, of which d.line is the sentence. */
#ifndef MLO_DRIVER_H
#define MLO_DRIVER_H
#include <stdint.h>
#include "mlo_regs.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- this core ---- */
#define MLO_ITERATIONS       @ITERATIONS@   /* layers */
#define MLO_TOKENS           @TOKENS@   /* of a frame, at most */
#define MLO_CHANNELS         @CHANNELS@   /* of a token: so many words */
#define MLO_WORD_BYTES       @WORD_BYTES@
#define MLO_TOKEN_BYTES      (MLO_CHANNELS * MLO_WORD_BYTES)
#define MLO_BEAT_BYTES       @BEAT_BYTES@   /* of s_axis and m_axis (of ids, MLO_SAID_BYTES of m_axis): @LANES@ lanes of @BITS@ bits; narrower and wider ones need a converter */
#define MLO_SAID_BYTES       @SAID_BYTES@   /* of a core of token ids (compile --tokens): of {id, logit} that follow a job's tokens, a word each, or of what is made of a frame's first token; 0: of other cores */
#define MLO_MADE_BYTES       @MADE_BYTES@   /* of what comes out for a token that enters */
#define MLO_FRAMES           @FRAMES@   /* in flight */
#define MLO_CACHE            0x@CACHE@u   /* register 0x3C: {slots[31:24], positions[23:0]} of keys and values; 0: none, and no jobs */
#define MLO_KV_MEMORY        @KV_MEMORY@   /* 1: keys and values lie in memory, behind m_axi_kv: as the manifest's kv says */
@GIVEN@/* They are the model's own: a past is put in front of a job, and what is kept is read behind it. */
@GIVEN@#define MLO_KV_PAST          @KV_PAST@   /* positions in front of a job's tokens */
@GIVEN@#define MLO_KV_POSITIONS     @KV_POSITIONS@   /* with the job's own */
@GIVEN@#define MLO_KV_CHANNELS      @KV_CHANNELS@   /* of a position's key, and of its value: a byte each */
@GIVEN@#define MLO_KV_ROW_BYTES     @KV_ROW_BYTES@   /* that they take in memory: of each beat, */
@GIVEN@#define MLO_KV_BEAT_BYTES    @AXI_BYTES@   /* which has so many, */
@GIVEN@#define MLO_KV_USED_BYTES    @KV_USED_BYTES@   /* so many */
#define MLO_PARAMETER_BYTES  @PARAMETER_BYTES@   /* of params.bin, at an address that is a multiple of @AXI_BYTES@ */

/* The borders: word = round(number / scale) within low .. high, number = word * scale. A scale of 0: the model's own part on the
 * host (host/pre.onnx, host/post.onnx) makes words or takes them. */
typedef struct {
    float scale;
    int32_t low, high;
    uint32_t bytes; /* of a word */
} mlo_border;
#define MLO_INPUT            @INPUT@   /* s_axis */
#define MLO_OUTPUT           @OUTPUT@   /* m_axis */
#define MLO_MEMORY           @MEMORY@   /* s2_axis, if it is there */

/* ---- what goes through it ---- */
typedef struct {
    const void *data;
    uint32_t bytes;
} mlo_stream;

/* A frame of 1 to MLO_TOKENS tokens. in[0]: s_axis. in[1]: s1_axis, a byte a token, 1: it counts as a key. in[2], in[3]: s2_axis,
 * s3_axis, what every iteration reads again (an encoder's output), and its mask. Of what the core has not, bytes is 0. */
typedef struct {
    mlo_stream in[4];
    void *out; /* MLO_MADE_BYTES of each token; of a core of token ids, where they are not 0, MLO_SAID_BYTES of the job or frame, and of each token that goes on inside */
} mlo_frame;

/* Of a core with a cache: a frame is `tokens` tokens of sequence `slot`, the first of them at position `start`. Of a core of
 * token ids: up to `more` ids that it says become its next tokens; the transfer out ends sooner at the context's end, or behind a
 * stop id. */
typedef struct {
    uint32_t slot, start, tokens, more;
} mlo_job;

typedef enum {
    MLO_OK,
    MLO_NO_CORE,       /* the registers are not there */
    MLO_OTHER_CORE,    /* the core was made for something else */
    MLO_BUS_ERROR,     /* memory answered a read of parameters with an error */
    MLO_REFUSED,       /* a job that does not fit its slot */
    MLO_MISCOUNTED,    /* a job's frame had not its tokens */
    MLO_NO_ROOM,       /* jobs are waiting that no frame was sent for */
    MLO_NOT_SENT,      /* a hook said so */
    MLO_TIMED_OUT,
    MLO_OTHER_SCALE,   /* test: numbers do not become the words that they should */
    MLO_OTHER_WORDS,   /* test: the core makes other words */
    MLO_NO_MEMORY      /* of keys and values that are the model's own: kv is not set */
} mlo_status;

typedef struct {
    volatile uint32_t *base;   /* of the registers; or NULL and two functions in its place, which take byte offsets */
    uint32_t (*read)(void *user, uint32_t offset);
    void (*write)(void *user, uint32_t offset, uint32_t value);
    int (*send)(void *user, const mlo_frame *frame);   /* begins all transfers of a frame, the way out first; 0: begun */
    int (*done)(void *user, const mlo_frame *frame);   /* 1: the last byte of frame->out is in memory; 0: not yet; below: failed */
    void *user;
    uint64_t cache;            /* MLO_KV_MEMORY: where keys and values may lie, in the memory behind m_axi_kv */
    volatile uint8_t *kv;      /* that memory as this processor sees it, uncached: only where keys and values are the model's own */
    uint32_t patience;         /* how often to look before giving up; each time a register is read */
    char line[160];            /* what went wrong */
} mlo_driver;

/* Is this the core? Then settings, a soft reset, and it runs. parameters: where params.bin lies in the core's memory. */
mlo_status mlo_driver_open(mlo_driver *d, uint64_t parameters);

/* A soft reset: frames, jobs and errors are forgotten, of a cache all slots are empty, counters begin at 0. The way back from any error;
 * first stop what is left of transfers. */
mlo_status mlo_driver_reset(mlo_driver *d);

/* A frame through the core, to its last byte out. */
mlo_status mlo_driver_run(mlo_driver *d, const mlo_frame *frame);

/* Of a core with a cache: the same as a job. */
mlo_status mlo_driver_job(mlo_driver *d, const mlo_job *job, const mlo_frame *frame);

/* Only orders a job, for hosts that send frames themselves: as many may wait as the core has room for. */
mlo_status mlo_driver_order(mlo_driver *d, const mlo_job *job);

/* Of a core of token ids: the id behind which no text goes on; after `open` there is none. */
void mlo_driver_stop(mlo_driver *d, uint32_t id);

@GIVEN@/* The model's own keys and values: a past into memory, before the job behind it, words [MLO_ITERATIONS][MLO_KV_PAST][MLO_KV_CHANNELS] of
@GIVEN@ * keys and of values, as host/pre.onnx makes what the manifest's kv.given names; and behind the job all that is kept, [MLO_ITERATIONS]
@GIVEN@ * [MLO_KV_POSITIONS][MLO_KV_CHANNELS] of each, as host/post.onnx takes what kv.kept names. A job after a reset is one of position MLO_KV_PAST. */
@GIVEN@mlo_status mlo_driver_past(mlo_driver *d, const int8_t *keys, const int8_t *values);
@GIVEN@mlo_status mlo_driver_kept(mlo_driver *d, int8_t *keys, int8_t *values);
/* What the status register says of errors. */
mlo_status mlo_driver_check(mlo_driver *d);

/* n numbers to words and back. */
void mlo_driver_quantize(const mlo_border *border, const float *numbers, uint32_t n, void *words);
void mlo_driver_dequantize(const mlo_border *border, const void *words, uint32_t n, float *numbers);

/* Word i. */
int32_t mlo_driver_word(const mlo_border *border, const void *words, uint32_t i);

/* ---- the test: mlo_frame.c ---- */

/* Numbers on the host's side of a border, whose words come first in a stream. */
typedef struct {
    const float *number;
    uint32_t n;
} mlo_numbers;

/* What the bench in tb/ plays and expects. */
typedef struct {
    mlo_frame frame;           /* all tokens; with a cache, all jobs' */
    const mlo_job *job;
    uint32_t jobs;             /* 0: it is one frame */
    const void *out;
@GIVEN@    const int8_t *past[2], *kept[2]; /* keys, values */
    mlo_numbers before, memory, behind;
} mlo_example;
extern const mlo_example mlo_driver_example;
#define MLO_TEST_BYTES       @TEST_BYTES@   /* of `room` */

/* Holds the borders, and every word of a frame (of a cache, of some jobs; slot 0 is then what they left), to what they should be. */
@GIVEN@/* And every word of keys and values that is kept behind it. */
mlo_status mlo_driver_test(mlo_driver *d, void *room);

#ifdef __cplusplus
}
#endif
#endif
