/* SPDX-License-Identifier: MIT
 *
 * mlo: a transformer exported as ONNX in, a verified streaming Verilog accelerator out.
 *
 * One C file and this header. Compile it in:
 *
 *     cp mlo.h mlo.c tool/ && cc tool.c mlo.c -lprotobuf-nanopb -lcjson -lm
 *
 * or `#include "mlo.c"` at the end of your own file. A program in C++ (98 and later) takes this header as it is.
 * mlo.c is C99, and C++20 for g++ and clang++ (C++17, too: they take its initializers): `c++ -x c++ -c mlo.c`; what it writes is the same, byte for byte.
 *
 * A handle holds one model and walks it down the stages, each of which can be looked at:
 *
 *     read -> scope -> extract -> roll -> quantize -> lower -> fold -> emit
 *
 *     #include "mlo.h"
 *     #include <stdio.h>
 *     int main(int argc, char **argv) {
 *         mlo *m = mlo_open(NULL);
 *         if (argc > 1 && !mlo_load(m, argv[1]) && !mlo_set(m, "target-cycles", "20000") && !mlo_to(m, "fold"))
 *             printf("%s\n", mlo_summary(m));
 *         if (mlo_failed(m)) fprintf(stderr, "%s\n", mlo_failure(m)->text);
 *         mlo_close(m);
 *     }
 *
 * Every function that can fail returns 0, or an MLO_E_ code; the first failure sticks to the handle, and every later call on it
 * returns the same code. Strings and tensors that mlo hands out live as long as the handle. Nothing is shared between handles, so
 * two threads may each use their own; cJSON keeps one process-global error pointer, which mlo never reads.
 */
#ifndef MLO_H
#define MLO_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define MLO_VERSION "0.1.0"

/* The ways to fail: code, and the exit status of the command line. One list makes the enum, the names and the statuses. */
#define MLO_ERRORS(X) \
    X(MLO_E_MEMORY,      2, "the allocator returned NULL") \
    X(MLO_E_USAGE,       2, "an option or a call that makes no sense") \
    X(MLO_E_IO,          2, "a file could not be read or written") \
    X(MLO_E_FORMAT,      3, "not an ONNX model, or not JSON of one, or not the npz it should be") \
    X(MLO_E_GRAPH,       3, "the graph contradicts itself: a missing value, a cycle, a duplicate") \
    X(MLO_E_SHAPE,       3, "shapes that do not fit, or a dimension nobody bound") \
    X(MLO_E_TYPE,        3, "an element type that does not fit the op") \
    X(MLO_E_DATA,        3, "tensor bytes missing, changed or out of range") \
    X(MLO_E_UNSUPPORTED, 4, "legal, but not supported here") \
    X(MLO_E_LOOP,        4, "no loop found, or a layer that differs") \
    X(MLO_E_FOLDING,     1, "a folding that does not divide or does not fit") \
    X(MLO_E_MISMATCH,    1, "the answer is no: two things that should be equal differ") \
    X(MLO_E_BUG,         5, "a bug in mlo: please report it")

typedef enum {
    MLO_OK = 0,
#define MLO_X(code, status, text) code,
    MLO_ERRORS(MLO_X)
#undef MLO_X
    MLO_E_COUNT
} mlo_code;

/* A failure, whole. `text` is the line for people: "mlo: roll: node_linear_9: <what>; <remedy> [MLO_E_SHAPE]". */
typedef struct {
    mlo_code code;
    int status;            /* what a command line should exit with: 1..5 */
    const char *name;      /* "MLO_E_SHAPE" */
    const char *stage;     /* "roll" */
    const char *node;      /* "" where no node is to blame */
    const char *op;        /* "" likewise */
    const char *message;   /* what, with values; then the remedy */
    const char *text;
} mlo_error;

/* ONNX element types, by ONNX's own numbers. */
typedef enum {
    MLO_UNDEFINED = 0, MLO_FLOAT = 1, MLO_UINT8, MLO_INT8, MLO_UINT16, MLO_INT16, MLO_INT32, MLO_INT64, MLO_STRING, MLO_BOOL,
    MLO_FLOAT16, MLO_DOUBLE, MLO_UINT32, MLO_UINT64, MLO_COMPLEX64, MLO_COMPLEX128, MLO_BFLOAT16, MLO_FLOAT8E4M3FN,
    MLO_FLOAT8E4M3FNUZ, MLO_FLOAT8E5M2, MLO_FLOAT8E5M2FNUZ, MLO_UINT4, MLO_INT4, MLO_FLOAT4E2M1, MLO_FLOAT8E8M0,
    MLO_UINT2, MLO_INT2
} mlo_dtype;

/* A dense tensor in memory: row-major, packed, host byte order. `data` belongs to whoever made it. */
#define MLO_MAX_RANK 8
typedef struct {
    const char *name;
    mlo_dtype dtype;
    int rank;
    int64_t dims[MLO_MAX_RANK];
    void *data;
} mlo_array;

/* What a handle may be given; zero means the default (malloc, C99 stdio, silence). */
typedef struct {
    void *user;
    void *(*alloc)(void *user, size_t bytes);                /* NULL: malloc. Blocks are freed by `release`, all at mlo_close */
    void (*release)(void *user, void *block);
    void (*warn)(void *user, const char *line);              /* a warning, or what was decided where no option says it; without newline; never changes the outcome */
    /* Random access to source files (the model, its external data). NULL: fopen/fseek/fread. `open` returns NULL when it can't;
       it must refuse what is not a plain file. `size` is filled in. */
    void *(*open)(void *user, const char *path, uint64_t *size);
    size_t (*read)(void *user, void *file, uint64_t offset, void *to, size_t bytes);
    void (*close)(void *user, void *file);
    /* The same bytes as memory that holds no more of them than were touched, until `unmap`; what is written there stays out of the file.
       NULL: there is none, and they are read. `map` returns NULL when it can't. `forget` makes a part of it as if it had never been touched. */
    void *(*map)(void *user, void *file, uint64_t offset, size_t bytes);
    void (*unmap)(void *user, void *data, size_t bytes);
    void (*forget)(void *user, void *data, size_t bytes);
    /* Does independent pieces of work, at the same time: calls piece(of, k) for each k < n, on any thread and in any order, and returns when all are done.
       NULL: mlo does them one after the other. No result depends on it. */
    void (*crew)(void *user, void (*piece)(void *of, int k), void *of, int n);
    void (*progress)(void *user, const char *what, double done);   /* of long work: what goes on ("calibrates"), and how much of it is done, 0 to 1; `what` is NULL when that is over. NULL: nobody looks */
} mlo_desc;

typedef struct mlo mlo;

/* Where output goes: whole files, in order, in pieces; `file` is a relative path ("rtl/mlo_top.v"). Nonzero cancels (MLO_E_IO). */
typedef int (*mlo_sink)(void *user, const char *file, const void *bytes, size_t n);

mlo *mlo_open(const mlo_desc *desc);         /* NULL when there is no memory */
void mlo_close(mlo *m);                      /* frees everything the handle ever handed out */

int mlo_failed(const mlo *m);                /* the code of the first failure, 0 while all is well */
const mlo_error *mlo_failure(const mlo *m);  /* NULL while all is well */

/* An option, by the name of its command line flag without dashes ("pe", "target-cycles", "dim"). Repeatable options accumulate. What a flag's
   file holds goes by "folding-json", "q-config-json", "simulation", "waves" (streams, as `sim --trace` prints them), "plan" (manifest.json of a build of C), "accuracy" (accuracy.json of a build). "title" is
   what a page is called, "built" says that it is of a build directory. "jobs" is what the report
   "cycles" is asked about, of a core with caches: "SLOT:START+TOKENS,..". An unknown name fails with MLO_E_USAGE. */
int mlo_set(mlo *m, const char *key, const char *value);

int mlo_load(mlo *m, const char *path);                                        /* .onnx or JSON, from a file */
int mlo_parse(mlo *m, const void *bytes, size_t n, const char *data_dir);      /* the same, from memory; bytes are borrowed until close */

/* Runs the stages that are missing up to and including `stage` ("read" .. "fold"). */
int mlo_to(mlo *m, const char *stage);
const char *mlo_stage(const mlo *m);         /* the last stage done, "" before read */

/* The loop body that extract is to find, as mlo_write_template wrote it, perhaps edited. Borrowed until extract is done. */
int mlo_template(mlo *m, const void *bytes, size_t n);

/* Calibration samples for quantize: arrays named as the model's inputs; the first axis may be samples. Tokens that the attention mask hides do not
   count; an array for what is no input of the model that was read is left out, with a warning. Borrowed until quantize is done. The option "max-cost"
   says what wider operands may cost; unset: 1.15, 1 where "activations" or the model says widths. The option "sketch" asks for no calibration and reads no matrix: what it makes is for fold and mlo_show, mlo_emit and mlo_run refuse it. */
int mlo_calibrate(mlo *m, const mlo_array *arrays, size_t n);

/* Inputs that are constants of the model, with these values: stage read makes initializers of them. By name; each has its input's type and shape, and
   binds what the model leaves open. Copied. */
int mlo_hold(mlo *m, const mlo_array *arrays, size_t n);

/* A network whose numbers are whole, whatever their type: with target c, mlo_emit writes it as it stands, each input in the narrowest type that holds
   these words, each result in one that is proved to hold it. golden: the outputs that the test compares with; n_golden 0: mlo's own. By name, or by
   position; what the model leaves open is as large as an input's words of its name. Borrowed until mlo_emit is done; n 0: none, and the model is
   quantized. */
int mlo_words(mlo *m, const mlo_array *inputs, size_t n, const mlo_array *golden, size_t n_golden);

/* Another export of the same decoder, loaded, with the options of m: a prompt, where m is a step with a cache ("context" makes both N tokens). Stages
   quantize and lower take it along, with m's calibration, and lower ends in MLO_E_MISMATCH, with the first difference, unless both are one body:
   the same kernels, every integer equal. Borrowed until lower is done; NULL: none. */
int mlo_prefill(mlo *m, mlo *prompt);

/* Evaluates the model as it stands. Inputs by name, or by position when no name fits. *outputs belong to the handle. */
int mlo_run(mlo *m, const mlo_array *inputs, size_t n, const mlo_array **outputs, size_t *n_outputs);

/* A decoder, [1, N] ids to [1, N, V] logits, goes on with a text: up to `count` tokens, the likeliest one by one (of equals the lowest), until `stop`
   (-1: none), which is the last. Masks are ones, positions count from 0. behind: further parts of the model, in their order (host/core.onnx and
   host/post.onnx behind host/pre.onnx), each of which takes by name what those before it made. says (or NULL) hears of each token as it is known.
   *tokens: the prompt's and those, the handle's. Of a model with DynamicQuantizeLinear, whose roundings see what stands behind the text, products with
   weights are taken without them, then and from then on. */
typedef void (*mlo_says)(void *user, int64_t token);
int mlo_generate(mlo *m, mlo *const *behind, size_t n_behind, const int64_t *prompt, size_t n, size_t count, int64_t stop,
                 mlo_says says, void *user, const int64_t **tokens, size_t *n_tokens);

/* Sees every value that mlo_run makes: node outputs, and the inputs of loop bodies; iteration is -1 outside of loops. The array lives
   only during the call. Nonzero stops the run (MLO_E_IO). NULL: nobody watches. */
typedef int (*mlo_watcher)(void *user, const char *name, int64_t iteration, const mlo_array *value);
int mlo_watch(mlo *m, mlo_watcher see, void *user);

/* What the model takes, or gives: names, types, shapes (rank -1 or dims -1: not known), without data. */
int mlo_signature(mlo *m, int of_outputs, const mlo_array **values, size_t *n);

/* The k-th of an endless row of inputs, drawn from the declared types; the same everywhere. Calibration without data takes the first ones, the
   bench's frames are draws MLO_BENCH_DRAW, MLO_BENCH_DRAW + 1, ..: inputs that calibration did not see. */
enum { MLO_BENCH_DRAW = 1000 };
int mlo_draw(mlo *m, uint64_t k, const mlo_array **inputs, size_t *n);

/* After mlo_emit: what the model made of the bench's first frame. MLO_E_USAGE before. */
int mlo_golden(mlo *m, const mlo_array **outputs, size_t *n);

/* Makes a core (host/core.onnx) take frames of this many tokens, at most those it was made for. Integers do not change with it. */
int mlo_resize(mlo *m, int64_t tokens);

/* Predicted cycles of a folded core for so many frames of the longest length, and per frame once it is warm. */
int mlo_cycles(mlo *m, int64_t frames, int64_t *cycles, int64_t *interval);

/* Text about the model as it stands, NULL when that fails: "scope", "roll", "quantize" (JSON reports), "folding" (a folding JSON),
   "pareto" (after lower: the foldings that no other one beats, as the options of fold limit them), "cycles" (after fold: a run of as many
   frames as the option "frames" says, with a memory as the options "bandwidth" and "axi-latency" have it, or as the core was folded for).

   "cycles": {"cycles","interval","kernels":[{"name","busy","starved_parameters","starved_input","blocked"},..],
   "fifos":[{"name","peak"},..]}: as predicted; peak: the most beats that the FIFO holds, "feed" is that of the way back; of each kernel,
   cycles in which its multipliers or lanes work, in which they wait for parameters, for input, for their output to be taken.

   "pareto": a JSON object a line, the fastest first: {"cycles": per frame, as predicted, "steady_cycles": without filling and draining,
   "interval_per_token": cycles of the slowest kernel, "frames_in_flight", "multipliers": of MVU and attention, "other_multipliers",
   "on_chip_bits", "parameter_beats": to load in each iteration (those of resident kernels are not; row blocks for each tile of all frames in flight), "utilization": useful multiply-accumulates / (multipliers x cycles),
   "area": {"lut","ff","dsp","bram" (36 Kbit)} of an UltraScale+, an estimate, "folding"}; the option "folding-json" takes such a line as it takes a folding.

   "quantize": {"values":[{"name","op","bits","scales":[..]},..]}: each value of the integer loops; lists have a number per iteration.
   When the option "report" is set (to anything) before quantize runs, that compares the integer loop with the float one on the calibration
   samples (two more evaluations of each) and adds to each value, e being what its integers stand for - the float value v (of tokens that the
   attention mask keeps):
       "shapes", "zeros"          an integer y stands for zero + scale * shape * y (no shapes: 1); lists of channels where these differ
       "low", "high"              the range of v;  "least", "largest": that of the integers
       "saturated"                the part of the values that the integers' range cuts off, by more than half a step
       "accumulator"              {"bits","used":[..]}: the bits a matrix-vector unit has for its sums, which any sum fits into, and how many these needed
       "error"                    {"max","mean" (of |e|),"cosine","sqnr_db" (10 log10(sum v^2 / sum e^2))}
       "rounding_db"              what sqnr_db would be if rounding to the value's steps were all
       "share"                    the part of the noise of the loop's output that comes in here (src/integer/numerics.c says how it is reckoned)
   and to all: "loop", "samples", "max_cost" (allowed); "input" and "output" of the loop: {"name","max","relative","mean","cosine","sqnr_db","share"}; "layers":
   [{"sqnr_db" of what it passes on,"share","worst":{"name","op","share","cause": saturation|width|weights|arithmetic}},..]; "worst": the worst
   of the layer with the largest share, and its "iteration"; "advice": sentences. null stands for an infinite number (no error at all). */
const char *mlo_report(mlo *m, const char *what);

/* Records a failure of the caller's own (stage, node may be NULL), so that it is written and passed on like mlo's. Returns the code that sticks. */
int mlo_refuse(mlo *m, mlo_code code, const char *stage, const char *node, const char *message);

/* SHA-256, as manifest.json has it: 64 hexadecimal digits and a NUL. */
void mlo_digest(const void *bytes, size_t n, char hex[65]);

/* For "did you mean": *best becomes `name` where that is nearer to `word` than *best is (NULL: there is none yet), and near enough to ask. */
void mlo_nearer(const char *word, const char *name, const char **best);

int mlo_write_json(mlo *m, mlo_sink sink, void *user);       /* protobuf's canonical JSON; the file name passed to sink is "" */
int mlo_write_onnx(mlo *m, mlo_sink sink, void *user);       /* binary, self-contained */
int mlo_write_template(mlo *m, mlo_sink sink, void *user);   /* after extract: the body of the largest loop, as binary ONNX; the file name is "" */
int mlo_emit(mlo *m, mlo_sink sink, void *user);             /* the build directory; manifest.json comes last */
int mlo_check(mlo *m, mlo *original);                        /* MLO_E_MISMATCH, with the first difference, when not equal */
int mlo_show(mlo *m, const char *format, mlo_sink sink, void *user);   /* "text", "json", "dot", "html", "svg"; a model no stage has seen is extracted first, if it has loops */
int mlo_show_against(mlo *m, mlo *other, const char *format, mlo_sink sink, void *user);   /* two cores side by side: "text", "json", "html"; what is wrong with `other` is m's failure, too */
int mlo_show_sweep(mlo *m, const char *lines, size_t n, const char *format, mlo_sink sink, void *user);   /* points of a sweep, a JSON object a line (examples/sweep/sweep.sh): "text", "html", with their Pareto fronts; no model is needed */
const char *mlo_summary(mlo *m);                             /* `show --json` as one string */

#ifdef __cplusplus
}
#endif
#endif
