/* kernel: what every integer kernel is: one entry of one table.
 *
 * in:  a node of domain mlo.
 * out: its shapes, its golden result, its ONNX function, its hardware unit, its parameter words.
 *
 * Activations are signed integers of 2..16 bits, carried as INT8 or INT16. Requantization is
 *     y = clip((acc * M + 2^(S-1)) >> S, lo, hi),   0 <= M < 2^15, 1 <= S <= 62, the shift rounds
 *     down.
 * A node with metadata mlo.pow2 has only powers of two for M, and hardware without multipliers:
 * M = 1 is a shift to the right; M = 2^(k+1) and S = 1 is a shift to the left by k <= 13. The
 * hardware gets one shift for both: acc * 2^14 is shifted right by S + 14 - log2 M.
 *
 * To add a kernel: its file, its Verilog, its bench, one line in kernels/table.c.
 *
 * invariant: the C evaluation, the ONNX function body and the Verilog module compute the same bits;
 *     tests hold them together. No number inside can overflow: a kernel lists its intermediate
 *     values, and the code that makes hardware of it checks them (mlo_kernel_fits).
 * example: kernels/requant.c, the shortest.
 * cost: nothing here depends on the number of layers.
 */

/* One stream port of a unit. */
typedef struct {
    const char *port; /* the Verilog prefix */
    int index; /* the node input (or output) that it carries */
    int lanes; /* elements of a beat */
    int bits; /* of an element */
    int64_t channels; /* elements of a token */
} mlo_port;

/* One parameter memory of a unit: `depth` words of `width` bits per iteration, from the loader. */
typedef struct {
    const char *port;
    int width;
    int64_t depth;
    int kept; /* 1: it is the same in all iterations: one bank, which is read once */
} mlo_memory;

/* What a unit is told of the job that is inside, where the core keeps caches: nothing; where in its sequence the
 * frame starts; that, and which banks are its sequence's. */
typedef enum { MLO_JOB_UNTOLD, MLO_JOB_START, MLO_JOB_BANK } mlo_told;

enum { MLO_UNIT_PORTS = 4, MLO_UNIT_MEMORIES = 3, MLO_UNIT_PARAMS = 16 };

/* How tokens go through a unit: see core/flow_*.c, which know when. */
typedef enum {
    MLO_FLOW_BEATS,
    MLO_FLOW_MATRIX,
    MLO_FLOW_TILES,
    MLO_FLOW_NORM,
    MLO_FLOW_ROWS,
    MLO_FLOW_WINDOW,
    MLO_FLOW_REPLAY
} mlo_flow;

/* The hardware of one node at a given folding. */
typedef struct {
    const char *module;
    mlo_port in[MLO_UNIT_PORTS];
    int n_in;
    mlo_port out;
    mlo_memory memory[MLO_UNIT_MEMORIES];
    int n_memory;
    struct {
        const char *name;
        int64_t value;
    } param[MLO_UNIT_PARAMS];
    int n_param;

    int64_t interval; /* cycles per token in steady state */
    /* cycles from the end of its work to a token's last output beat (units with macs), or from
     * last input beat to last output beat */
    int64_t latency;
    int64_t multipliers; /* of the matrix arrays */
    int64_t other; /* multipliers of requantizers, norms, softmax */
    int exp_bits; /* of an exponential, where the node says so; 0: as ever */
    int64_t macs; /* useful multiply-accumulates per token */
    /* a parameter port of the module that this node does not use, NULL for none */
    const char *idle;
    int whole_frame; /* 1: the first output token needs the whole input frame (attention) */
    mlo_told told; /* its ports for that, which are 0 where there are no caches */

    mlo_flow flow;
    /* MLO_FLOW_BEATS: 1: all memories are read where beats come in; 0: those behind the first where
     * they leave */
    int at_once;
    /* MLO_FLOW_NORM */
    struct {
        int64_t finish; /* cycles from a norm's sums to what its root is of */
        int64_t root; /* cycles from there to the lanes */
        int64_t stages; /* of the lanes */
        int64_t keeps; /* beats between its input and the lanes */
    } norm;
    /* MLO_FLOW_MATRIX, _TILES: cycles in which the requantizers take a group of sums; _NORM: norms
     * of a token */
    int64_t turns;
    int64_t tile; /* MLO_FLOW_TILES: tokens of a tile; 0: no tiles */
    int64_t blocks; /* row blocks, each of which a tile passes; memories are those of a block */
    /* MLO_FLOW_ROWS */
    struct {
        int64_t heads; /* rows per token */
        int64_t groups; /* words of a row */
        int64_t steps; /* beats of a row */
        int64_t exps; /* cycles of an exponential's word */
        int64_t divide; /* cycles of a division */

        int64_t queue; /* words of scores that there is room for */
        int64_t ring; /* words of exponentials that there is room for */
        int64_t waiting; /* rows between that there is room for */
        int64_t held; /* beats out that there is room for */

        int64_t to_max; /* cycles from the last score to the maximum */
        int64_t to_sum; /* cycles from the last exponential to its sum */
        int64_t to_out; /* cycles from its sum to the output */
        int64_t constants; /* cycles from an iteration's first row to its constants */
        int early; /* 1: it begins with them (else it ends) */
        int64_t moves; /* cycles from a row's last exponential to other tables; 0: there are none */

        int partly; /* 1: not all keys count for all rows (mlo_row_groups) */
        int causal; /* 1: later keys do not */
        int all; /* 1: all keys of a frame do, and those of a past in front of it */
        int64_t keys; /* tokens of a frame, and rows in front of it */
        int64_t ahead; /* rows of parameters in front of a frame's keys */
        int64_t iterations; /* of reach */
        int64_t stride; /* numbers of an iteration in reach */
        const int64_t *reach; /* BACK and AHEAD of each iteration, in tokens; NULL: no bounds */
    } rows;
    /* MLO_FLOW_WINDOW; MLO_FLOW_NORM, where a norm is of a frame */
    struct {
        int64_t cycles; /* of a group of sums */
        int64_t behind; /* tokens behind its own that a token waits for, at most */
        int64_t slots; /* tokens it keeps */
        int64_t room; /* tokens of those that there is room for and that are not worked on yet */
    } window;

    int pe; /* the folding this describes */
    int simd;
} mlo_unit;

/* What `unit` and `pack` may look at: the node with the forms and bits of its inputs and output,
 * and how it is used. */
typedef struct {
    mlo *m;
    const mlo_node *node;
    mlo_form in[8];
    size_t n_in;
    mlo_form out;
    int in_bits[8]; /* of an element */
    int out_bits; /* of an element */

    int64_t parts; /* into which a Split deals the output; else 1 */
    int64_t chunk; /* tokens that go through together, at most; the longest frame today */
    int64_t keys; /* tokens that a query can see, at most; the longest frame today */
    int64_t caches; /* banks in which keys and values of earlier frames stay; 0: they don't */
    int past; /* 1: they come with each frame, in front of its own (mlo_kv) */
    /* tokens for which a matrix is to be read block by block (--memory block); 0: it is to be on
     * chip */
    int64_t tile;

    const int64_t *known; /* what `knows` asks for: [iterations, n_known]; NULL: nothing */
    int64_t n_known; /* numbers of each iteration */
    int64_t iterations;
    int same; /* 1: what the kernel `keeps` is to be kept */
} mlo_site;

/* What a parameter may be. The bits of its word in the image. */
typedef struct {
    size_t input;
    int64_t at; /* the first element of input that it is about */
    int64_t step; /* elements to the next one */
    int64_t low; /* the least; low > high: what a number of input 0's width may be */
    int64_t high; /* the largest */
    const char *what;
} mlo_limit;

/* What a kernel does, for those who treat all of a kind alike. */
typedef enum {
    MLO_KERNEL_MATRIX, /* sums of products with weights */
    MLO_KERNEL_WINDOW, /* the same of each channel, over neighbours */
    MLO_KERNEL_SUM, /* of streams */
    MLO_KERNEL_PRODUCT, /* of streams */
    MLO_KERNEL_NORM,
    MLO_KERNEL_FRAME_NORM, /* of all tokens of a frame */
    MLO_KERNEL_EXACT_NORM, /* as a network of integers says */
    MLO_KERNEL_ATTENTION,
    MLO_KERNEL_RESCALE, /* one stream in other steps */
    MLO_KERNEL_ROTATION, /* of pairs of channels, by position */
    MLO_KERNEL_PLACE, /* a row for each position, added */
    MLO_KERNEL_REPLAY, /* from around the loop, in every iteration */
    MLO_KERNEL_CHOICE, /* of the largest channel */
    MLO_KERNEL_TO_INTEGERS, /* the edges of the loop */
    MLO_KERNEL_TO_FLOATS
} mlo_kernel_kind;

typedef struct mlo_kernel {
    mlo_op op; /* name, shapes, golden result */
    mlo_kernel_kind kind;
    /* "mvu" of the names mvu_0, mvu_1, ..: one series for all that share a module */
    const char *series;
    const char *finn; /* what FINN calls its kind, in a folding; NULL: it has none */
    int table; /* 1: its result is looked up, by what would be the result */
    const struct mlo_kernel *with_table; /* the kernel that does the same and looks it up, if any */
    int shifts; /* 1: its multipliers may be powers of two: no multipliers in hardware (mlo.pow2) */
    const char *function; /* the ONNX function body, in the notation of ops/function.c */
    const char *ending; /* how it goes on, NULL if it is whole */
    const mlo_limit *limits; /* ends with a NULL `what` */
    const char *pe_axis; /* what PE divides, for messages; NULL: the kernel has no such knob */
    const char *simd_axis; /* what SIMD divides; NULL: the kernel has no such knob */
    /* Can this folding, of numbers from 1 on, be built? The largest legal PE (or SIMD) not above the cap is what fold
     * takes. */
    int (*legal)(const mlo_site *s, int64_t pe, int64_t simd);
    /* Keys in front of those of a frame that a query sees, too; NULL: none */
    int64_t (*ahead)(const mlo_node *n);
    int (*unit)(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u);
    /* The parameter whose numbers say how much work there is; 0: none (NULL: never any) */
    size_t (*knows)(const mlo_node *n);
    /* The parameter of which a token needs a row: it is kept on chip where frames are parts of a sequence and all
     * iterations have the same; 0: none */
    size_t keeps;
    /* The numbers inside that could grow too large, and the bits there are for them at this
     * folding. */
    void (*intermediates)(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l);
    /* What it takes of an FPGA, at this folding. banks: those of its parameter memories that are
     * resident; 0: two in turn. */
    void (*area)(const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a);
    /* Do one iteration's parameters keep what metadata promise of them: powers of two, weights of
     * fewer bits? NULL: nothing is promised. */
    int (*promises)(const mlo_site *s, const mlo_array *const *in);
    /* Writes word `word` of memory `k` into `bits` (zeroed, little-endian), from the node's
     * evaluated inputs of one iteration. */
    void (*pack)(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
        const mlo_array *const *in, unsigned char *bits);
} mlo_kernel;

/* Keys from[0]..from[1] are those that may count for a row of query `at`, in an iteration; those of parameters in
 * front of a frame are the first. */
static void mlo_row_keys(const mlo_unit *u, int64_t iteration, int64_t at, int64_t from[2]) {
    const int64_t *reach = u->rows.reach ? u->rows.reach + iteration * u->rows.stride : NULL;
    from[0] = reach && at > reach[0] ? at - reach[0] : 0;
    from[1] = u->rows.keys - 1;
    if (reach && from[1] - at > reach[1]) from[1] = at + reach[1];
    if (u->rows.causal && from[1] > u->rows.ahead + at) from[1] = u->rows.ahead + at;
}

/* Groups of keys that such a row walks. */
static int64_t mlo_row_groups(const mlo_unit *u, int64_t iteration, int64_t at) {
    int64_t from[2];
    if (!u->rows.partly) return u->rows.groups;
    mlo_row_keys(u, iteration, at, from);
    return from[1] / u->pe - from[0] / u->pe + 1;
}

static void mlo_unit_param(mlo_unit *u, const char *name, int64_t value) {
    if (u->n_param < MLO_UNIT_PARAMS) {
        u->param[u->n_param].name = name;
        u->param[u->n_param++].value = value;
    }
}
static mlo_port mlo_port_make(
    const char *port, int index, int64_t lanes, int bits, int64_t channels) {
    mlo_port p = { port, index, (int)lanes, bits, channels };
    return p;
}
static void mlo_unit_memory(mlo_unit *u, const char *port, int64_t width, int64_t depth) {
    mlo_memory k = { port, (int)width, depth, 0 };
    u->memory[u->n_memory++] = k;
}

/* Bits [at, at+n) of a word := the low n bits of v. */
static void mlo_put_bits(unsigned char *bits, int64_t at, int n, uint64_t v) {
    for (int i = 0; i < n; i++, at++)
        if (v >> i & 1) bits[at / 8] = (unsigned char)(bits[at / 8] | 1u << at % 8);
}

/* ---- integer arithmetic --------------------------------------------------- */

/* What M is: 15 bits, as limits say. */
static const mlo_interval mlo_multipliers = { 0, 32767 };

static int mlo_log2(int64_t v) {
    int n = 0;
    while (v > 1) {
        v /= 2;
        n++;
    }
    return n;
}

/* The types whose elements mlo_get gets. */
static int mlo_is_whole(mlo_dtype t) {
    return t == MLO_INT8 || t == MLO_UINT8 || t == MLO_BOOL || t == MLO_INT16 || t == MLO_INT32
        || t == MLO_INT64;
}
/* Element i of an integer array, and storing one. */
static int64_t mlo_get(const mlo_array *a, int64_t i) {
    switch (a->dtype) {
    case MLO_INT8: return ((const int8_t *)a->data)[i];
    case MLO_UINT8:
    case MLO_BOOL: return ((const uint8_t *)a->data)[i];
    case MLO_INT16: return ((const int16_t *)a->data)[i];
    case MLO_INT32: return ((const int32_t *)a->data)[i];
    case MLO_INT64: return ((const int64_t *)a->data)[i];
    default: return 0;
    }
}
static void mlo_set_element(mlo_array *a, int64_t i, int64_t v) {
    switch (a->dtype) {
    case MLO_INT8: ((int8_t *)a->data)[i] = (int8_t)v; break;
    case MLO_UINT8:
    case MLO_BOOL: ((uint8_t *)a->data)[i] = (uint8_t)v; break;
    case MLO_INT16: ((int16_t *)a->data)[i] = (int16_t)v; break;
    case MLO_UINT16: ((uint16_t *)a->data)[i] = (uint16_t)v; break;
    case MLO_INT32: ((int32_t *)a->data)[i] = (int32_t)v; break;
    case MLO_INT64: ((int64_t *)a->data)[i] = v; break;
    default: break;
    }
}

static mlo_form mlo_array_form(const mlo_array *a) {
    mlo_form f = { a->dtype, a->rank, { 0 } };
    for (int i = 0; i < f.rank; i++) f.dims[i] = a->dims[i];
    return f;
}

/* Attributes every kernel shares: the output's element type and bounds. */
static mlo_dtype mlo_kernel_to(const mlo_node *n) { return (mlo_dtype)mlo_int(n, "to", MLO_INT8); }
static int mlo_bits_of(mlo_dtype t) {
    return t == MLO_INT8 ? 8 : t == MLO_INT16 ? 16 : t == MLO_BOOL ? 1 : 32;
}

/* What the result is clipped to, or the number that it is looked up by. */
static int64_t mlo_kernel_low(const mlo_node *n) {
    return mlo_int(n, "lo", mlo_signed_bits(mlo_bits_of(mlo_kernel_to(n))).lo);
}
static int64_t mlo_kernel_high(const mlo_node *n) {
    return mlo_int(n, "hi", mlo_signed_bits(mlo_bits_of(mlo_kernel_to(n))).hi);
}
/* Does a node say what its result is: INT8 or INT16, clipped to an interval (of so many numbers as a
 * table may have entries)? */
static int mlo_kernel_result(mlo_call *c) {
    const mlo_dtype to = mlo_kernel_to(c->node);
    const int64_t lo = mlo_kernel_low(c->node), hi = mlo_kernel_high(c->node);
    if (to != MLO_INT8 && to != MLO_INT16)
        return mlo_fail(
            c->m, MLO_E_TYPE, c->node, "makes %s; it must be INT8 or INT16", mlo_dtype_name(to));
    if (lo < INT16_MIN || lo > hi || hi > INT16_MAX)
        return mlo_fail(c->m, MLO_E_DATA, c->node,
            "clips to %lld..%lld, which is no interval within 16 bits", (long long)lo,
            (long long)hi);
    return 0;
}
static int mlo_kernel_present(mlo_call *c, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (i >= c->n_in || !c->in[i])
            return mlo_fail(c->m, MLO_E_GRAPH, c->node, "has no input %zu; it takes %zu", i, n);
    return 0;
}
/* Are n inputs there, integers all of them, and is the result one? (mlo_get makes 0 of floats.) */
static int mlo_kernel_inputs(mlo_call *c, size_t n) {
    MLO_TRY(mlo_kernel_present(c, n));
    for (size_t i = 0; i < n; i++)
        if (!mlo_is_whole(c->in[i]->dtype))
            return mlo_fail(c->m, MLO_E_TYPE, c->node, "input %zu is %s; it must be of integers", i,
                mlo_dtype_name(c->in[i]->dtype));
    return mlo_kernel_result(c);
}
/* Has input i from so many to so many elements? */
static int mlo_kernel_counts(mlo_call *c, size_t i, int64_t least, int64_t most) {
    int64_t n = mlo_array_count(c->in[i]);
    return n >= least && n <= most
        ? 0
        : mlo_fail(c->m, MLO_E_SHAPE, c->node, "input %zu has %lld elements, needs %lld", i,
              (long long)n, (long long)least);
}
static int mlo_kernel_count(mlo_call *c, size_t i, int64_t count) {
    return mlo_kernel_counts(c, i, count, count);
}

/* Is every parameter within the bits its word has for it? What quantize makes is; what a user
 * edited may not be. Then there is no hardware for it, and sums might not fit. xbits: the width of
 * input 0. */
static int mlo_kernel_numbers(
    mlo *m, const mlo_node *node, const mlo_limit *limits, const mlo_array *const *in, int xbits) {
    for (const mlo_limit *k = limits; k->what; k++) {
        const mlo_array *a = in[k->input];
        mlo_interval r = k->low > k->high ? mlo_signed_bits(xbits) : mlo_from_to(k->low, k->high);
        for (int64_t i = k->at, n = a ? mlo_array_count(a) : 0; i < n; i += k->step)
            if (mlo_get(a, i) < r.lo || mlo_get(a, i) > r.hi)
                return mlo_fail(m, MLO_E_DATA, node, "%s %lld is not within %lld..%lld", k->what,
                    (long long)mlo_get(a, i), (long long)r.lo, (long long)r.hi);
    }
    return 0;
}
static int mlo_kernel_limits(mlo_call *c, const mlo_limit *limits) {
    return mlo_kernel_numbers(c->m, c->node, limits, c->in, mlo_bits_of(c->in[0]->dtype));
}

/* Do all numbers inside have room, and is what comes out what the hardware's clipping makes? */
static int mlo_kernel_fits(const mlo_kernel *k, const mlo_site *s, const mlo_unit *u) {
    mlo_intermediates l;
    int has = 0;
    l.n = l.clip = 0;
    k->intermediates(s, u, &l);
    mlo_interval y = mlo_signed_bits(l.clip);
    int64_t lo = mlo_int(s->node, "lo", y.lo), hi = mlo_int(s->node, "hi", y.hi);
    if (lo != y.lo || hi != y.hi)
        return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node,
            "clips to %lld..%lld; the hardware clips to all numbers of %d bits, %lld..%lld",
            (long long)lo, (long long)hi, l.clip, (long long)y.lo, (long long)y.hi);
    for (int i = 0; i < l.n; i++) {
        const char *where = mlo_no_room(&l.item[i], &has);
        if (where)
            return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node,
                "'%s' can be %lld..%lld, which takes %d bits; %s has %d: narrower operands "
                "(metadata mlo.bits), or fewer channels, are needed",
                l.item[i].name, (long long)l.item[i].range.lo, (long long)l.item[i].range.hi,
                mlo_bits_for(l.item[i].range), where, has);
    }
    return 0;
}

/* A value on a stream: INT8 or INT16, so that the sums of every kernel have their bounds. */
static int mlo_kernel_activation(mlo_call *c, size_t i) {
    mlo_dtype t = c->in[i]->dtype;
    return t == MLO_INT8 || t == MLO_INT16
        ? 0
        : mlo_fail(c->m, MLO_E_TYPE, c->node, "input %zu is %s; it must be INT8 or INT16", i,
              mlo_dtype_name(t));
}

/* Inputs 0 and 1: two streams, token by token and channel by channel. */
static int mlo_kernel_pair(mlo_call *c) {
    const mlo_array *a = c->in[0], *b = c->in[1];
    int same = a->rank == b->rank;
    MLO_TRY(mlo_kernel_activation(c, 0));
    MLO_TRY(mlo_kernel_activation(c, 1));
    for (int i = 0; i < a->rank && same; i++) same = a->dims[i] == b->dims[i];
    return same ? 0
                : mlo_fail(c->m, MLO_E_SHAPE, c->node,
                      "operands of shapes %s and %s; they must have one shape",
                      mlo_dims_text(c->m, a->rank, a->dims), mlo_dims_text(c->m, b->rank, b->dims));
}

/* The shape rule of kernels whose output is shaped as input 0. */
static int mlo_kernel_same_shape(mlo_shapes *s) {
    if (s->n_in < 1 || s->in[0].rank < 0) return 0;
    s->out[0] = s->in[0];
    s->out[0].dtype = mlo_kernel_to(s->node);
    return 0;
}

/* The end of most functions: int64 acc, m, s -> clipped y. floor(x / d) = (x - Mod(x, d)) / d. */
#define MLO_FUNCTION_REQUANTIZE         \
    "two = Constant <value_int=2> ()\n" \
    "d = Pow (two, s)\n"                \
    "half = Div (d, two)\n"             \
    "product = Mul (acc, m)\n"          \
    "sum_ = Add (product, half)\n"      \
    "rest = Mod (sum_, d)\n"            \
    "whole = Sub (sum_, rest)\n"        \
    "q = Div (whole, d)\n" MLO_FUNCTION_CLIP
/* (Less and Where: Max, Min and Clip of int64 are wrong for some numbers beyond 32 bits in ONNX
 * Runtime 1.31.) */
#define MLO_FUNCTION_CLIP               \
    "l = Constant <value_int=@lo> ()\n" \
    "h = Constant <value_int=@hi> ()\n" \
    "q_low = Less (q, l)\n"             \
    "ql = Where (q_low, l, q)\n"        \
    "q_high = Less (h, ql)\n"           \
    "qc = Where (q_high, h, ql)\n"

/* The end of a function with a table: its index is the requantized number, so lo and hi are about
 * that, whatever the table holds. */
#define MLO_FUNCTION_TABLE            \
    "index = Sub (qc, l)\n"           \
    "entry = Gather (table, index)\n" \
    "y = Cast <to=@to> (entry)\n"
/* mlo_kernel_fits looks at hi */
static int mlo_index_bits(const mlo_site *s) {
    return mlo_clog2(mlo_min(mlo_int(s->node, "hi", 127), INT32_MAX) + 1) + 1;
}
