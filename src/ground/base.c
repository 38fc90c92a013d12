/* base: memory, failure, strings, maps.
 *
 * in:  a handle.
 * out: blocks, interned strings, maps, growing buffers, all owned by the handle's arena.
 *
 * mlo_fail records the first failure and returns its code; a function that returns a pointer
 * returns NULL after it. A NULL from mlo_alloc means that the failure is already recorded: just
 * return.
 *
 * invariant: the library allocates only with mlo_alloc, freed by mlo_close, and mlo_scratch, freed
 *     early. Sizes are multiplied with an overflow check.
 * example: return mlo_fail(m, MLO_E_SHAPE, node, "K=%d is not a multiple of SIMD=%d; try --simd 4",
 *     k, simd);
 * cost: a bump allocation; failing allocates nothing (the texts live inside the handle).
 */
typedef struct mlo_block {
    struct mlo_block *next;
    size_t used; /* bytes */
    size_t size; /* bytes */
} mlo_block;

typedef struct mlo_string_slot {
    const char *text;
    uint32_t n; /* bytes */
    uint32_t hash;
} mlo_string_slot;
typedef struct {
    mlo_string_slot *slot;
    size_t size; /* slots */
    size_t used; /* slots */
} mlo_strings;

typedef struct {
    const char *key;
    const char *value;
} mlo_option;

struct mlo_model; /* model.c */
struct mlo_source; /* model.c */
struct mlo_mapping; /* op.c */
struct mlo_numerics; /* numerics.c */
struct mlo_net; /* match.c */
struct mlo_seen; /* seen.c */

struct mlo {
    mlo_desc desc;
    mlo_block *arena;
    size_t arena_bytes;
    int pushed; /* 1: the list that was to grow last has room */
    mlo_strings strings;
    mlo_option *options;
    size_t n_options;
    size_t options_room; /* options that there is memory for */

    struct mlo_model *model; /* the model as it stands */
    int stale; /* 1: nodes, values or types have gone since mlo_index (where a pass keeps count) */
    struct mlo_model *body; /* template.c: the loop body to look for, NULL when there is none */
    struct mlo_source *sources; /* files that tensor bytes are read from */
    struct mlo_mapping *mapped; /* parts of these that are mapped now (op.c) */
    struct mlo_op_index *ops; /* ops/table.c: operators by name */
    /* match.c: of a graph, for as long as that graph and its index stay as they are */
    struct mlo_net *net;

    const mlo_array *words; /* of a network of integers: its inputs; NULL: they were not given */
    size_t n_words;
    const mlo_array *words_golden; /* and its outputs; NULL: mlo's own */
    size_t n_words_golden;
    struct mlo_tensor **held; /* inputs that are constants, until read is done */
    size_t n_held;
    const mlo_array *calib;
    size_t n_calib;
    int drew; /* 0: nobody was told yet that inputs are drawn, where there are none */
    int said; /* how many texts they are that the model itself said; 0: the caller's, if any */
    struct mlo *prefill; /* another export of the model, to be proved the same; NULL: none */
    struct mlo_seen *seen; /* what the calibration saw, kept where there is another export */
    const struct mlo_seen
        *like; /* what another export's saw: it is calibrated so; NULL: with samples */
    mlo_array *golden; /* the outputs of the bench's first frame, as emit saw them; NULL before */
    int holds; /* 1: lines for people wait until mlo_say_held */
    struct mlo_saying *first_saying; /* they do */
    struct mlo_saying *last_saying;
    const char *work; /* what goes on, for who looks; NULL: nothing that takes long */
    double work_from; /* where the part of it that goes on now begins, 0 to 1 */
    double work_to; /* and where it ends */
    mlo_watcher watch; /* who sees what mlo_run makes */
    void *watch_user;
    int64_t accumulator; /* the largest magnitude of the last matrix-vector unit's sums, in LSB */
    struct mlo_numerics *numerics; /* what quantize measured, NULL when nobody asked */

    const char *stage; /* the stage at work, for messages */
    mlo_error error; /* its texts are those behind it */
    char error_stage[32];
    char error_node[256];
    char error_op[64];
    char error_message[1024];
    char error_text[1536];
};

static const struct {
    const char *name;
    int status;
} mlo_code_names[] = { { "MLO_OK", 0 },
#define MLO_X(code, status, text) { #code, status },
    MLO_ERRORS(MLO_X)
#undef MLO_X
};

/* Bytes of the UTF-8 character at p, of which n > 0 may be read; 0 when it is none: overlong, a
 * surrogate, NUL. */
static size_t mlo_utf8_char(const unsigned char *p, size_t n) {
    unsigned c = *p;
    unsigned low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    unsigned high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    size_t size = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (!c || (c >= 0x80 && c < 0xC2) || c > 0xF4 || size > n) return 0;
    for (size_t i = 1; i < size; i++, low = 0x80, high = 0xBF)
        if (p[i] < low || p[i] > high) return 0;
    return size;
}
/* Are these eight bytes ASCII, and none of them NUL? */
static int mlo_ascii8(const unsigned char *p) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return !((w | (w - ones)) & 0x80 * ones);
}
static int mlo_utf8(const char *text, size_t n) {
    const unsigned char *p = (const unsigned char *)text, *end = p + n;
    for (size_t size; p < end; p += size)
        if (!(size = end - p >= 8 && mlo_ascii8(p) ? 8 : mlo_utf8_char(p, (size_t)(end - p))))
            return 0;
    return 1;
}

/* Copies whole characters into at most size-1 bytes; newlines and control characters become spaces
 * (a failure is one line), bytes that are no text '?'. */
static void mlo_copy_line(char *to, size_t size, const char *from) {
    size_t n = 0, left = from ? strlen(from) : 0;
    while (left) {
        size_t k = mlo_utf8_char((const unsigned char *)from, left), whole = k ? k : 1;
        if (n + whole >= size) break;
        if (k > 1)
            memcpy(to + n, from, k);
        else
            to[n] = !k ? '?' : (unsigned char)*from < 32 ? ' ' : *from;
        n += whole;
        from += whole;
        left -= whole;
    }
    to[n] = 0;
}

/* The code of the first failure, 0 while all is well; no handle: there was no memory for one. */
int mlo_failed(const mlo *m) { return m ? (int)m->error.code : (int)MLO_E_MEMORY; }

/* Returns the code of a call that failed. */
#define MLO_TRY(call)              \
    do {                           \
        int mlo_r_ = (call);       \
        if (mlo_r_) return mlo_r_; \
    } while (0)

/* Records the first failure. `node` and `op` may be NULL. Always returns the code that sticks. */
static int mlo_fail_v(
    mlo *m, mlo_code code, const char *node, const char *op, const char *format, va_list args) {
    if (m->error.code) return mlo_failed(m);
    mlo_error *e = &m->error;
    char line[sizeof m->error_message];
    vsnprintf(line, sizeof line, format, args);
    mlo_copy_line(m->error_message, sizeof m->error_message, line);
    mlo_copy_line(m->error_stage, sizeof m->error_stage, m->stage ? m->stage : "");
    mlo_copy_line(m->error_node, sizeof m->error_node, node);
    mlo_copy_line(m->error_op, sizeof m->error_op, op);
    e->code = code;
    e->status = mlo_code_names[code].status;
    e->name = mlo_code_names[code].name;
    e->stage = m->error_stage;
    e->node = m->error_node;
    e->op = m->error_op;
    e->message = m->error_message;
    snprintf(m->error_text, sizeof m->error_text, "mlo: %s%s%s%s%s%s%s%s [%s]", e->stage,
        *e->stage ? ": " : "", e->node, *e->op ? " (" : "", e->op, *e->op ? ")" : "",
        *e->node || *e->op ? ": " : "", e->message, e->name);
    e->text = m->error_text;
    return (int)code;
}

/* For a failure without a node; mlo_fail (model.c) is the one that takes a node. */
static int mlo_fail_at(mlo *m, mlo_code code, const char *where, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int r = mlo_fail_v(m, code, where, NULL, format, args);
    va_end(args);
    return r;
}

/* Of the work that goes on, the part that mlo_work named: so much of it is done, 0 to 1. */
static void mlo_done(mlo *m, double part) {
    if (m->work && m->desc.progress)
        m->desc.progress(m->desc.user, m->work, m->work_from + (m->work_to - m->work_from) * part);
}
/* Part i of n of work begins. */
static void mlo_work(mlo *m, const char *what, int64_t i, int64_t n) {
    m->work = what;
    m->work_from = (double)i / (double)n;
    m->work_to = (double)(i + 1) / (double)n;
    mlo_done(m, 0);
}
static void mlo_work_over(mlo *m) {
    if (m->work && m->desc.progress) m->desc.progress(m->desc.user, NULL, 1);
    m->work = NULL;
}

static int64_t mlo_max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t mlo_min(int64_t a, int64_t b) { return a < b ? a : b; }

/* Pieces of work that share nothing but what none of them writes: they ask for no memory, cannot fail, and do the
 * same in any order. */
typedef void (*mlo_piece)(void *of, int piece);
enum { MLO_PIECES = 8 };
#ifndef MLO_PIECES_WORK
#define MLO_PIECES_WORK \
    2e6 /* operations that a thread's beginning is worth; tests make all work worth it */
#endif

/* How many pieces to make of work that falls into so many parts: of what is done before a thread
 * has begun, one. work: operations. */
static int mlo_pieces(const mlo *m, int64_t parts, double work) {
    return m->desc.crew && work >= MLO_PIECES_WORK ? (int)mlo_max(1, mlo_min(parts, MLO_PIECES))
                                                   : 1;
}
/* The first of n parts that belongs to a piece. */
static int64_t mlo_piece_begins(int64_t n, int piece, int pieces) { return n * piece / pieces; }
/* Does them all: at the same time, if the caller has somebody for it. */
static void mlo_pieces_do(const mlo *m, mlo_piece piece, void *of, int n) {
    if (n > 1)
        m->desc.crew(m->desc.user, piece, of, n);
    else
        piece(of, 0);
}

/* Numbers are walked so many at a time where it counts: a loop of known length is what compilers
 * vectorise at -O2. */
enum { MLO_LANES = 16 };

/* A function that is not to be inlined: its inner loop needs all registers. */
#ifdef __GNUC__
#define MLO_APART __attribute__((noinline))
#else
#define MLO_APART
#endif

/* Where C++, which compiles all this as well, has other words than C: a list that is written where a
 * call takes a pointer (C++ keeps it no longer than the call); memory as what a list has; a pointer
 * to what no other pointer of the function leads to. */
#ifdef __cplusplus
#define MLO_ITEMS(type, ...) (std::initializer_list<type>{ __VA_ARGS__ }.begin())
#define MLO_AS(list, memory) mlo_as((list), (memory))
#define MLO_RESTRICT __restrict
template <typename T> static T *mlo_as(T *, void *memory) { return (T *)memory; }
#else
#define MLO_ITEMS(type, ...) ((type const[]){ __VA_ARGS__ })
#define MLO_AS(list, memory) (memory)
#define MLO_RESTRICT restrict
#endif

/* The same C once more for wider vectors, taken where the processor has them. Sums keep their
 * order, so results keep their bits. With MLO_PLAIN it is C alone. */
#if defined(__GNUC__) && defined(__x86_64__) && !defined(MLO_PLAIN)
#define MLO_WIDER
#define MLO_WIDE __attribute__((target("avx2")))
#define MLO_WIDEST __attribute__((target("avx512f")))
static int mlo_has_wide(void) { return __builtin_cpu_supports("avx2") != 0; }
static int mlo_has_widest(void) { return __builtin_cpu_supports("avx512f") != 0; }
#else
#define MLO_WIDE
#define MLO_WIDEST
static int mlo_has_wide(void) { return 0; }
static int mlo_has_widest(void) { return 0; }
#endif

/* ---- memory --------------------------------------------------------------- */

static void *mlo_default_alloc(void *user, size_t bytes) {
    (void)user;
    return malloc(bytes);
}
static void mlo_default_release(void *user, void *block) {
    (void)user;
    free(block);
}

#ifndef MLO_SMALL_BLOCK
#define MLO_SMALL_BLOCK \
    (64 * 1024) /* smaller, every allocation is a block of its own, which a sanitizer can watch */
#endif
/* an arena that has become large grows by what is one page where pages can be large */
enum { MLO_ALIGN = 16, MLO_MANY = 4 << 20, MLO_LARGE_BLOCK = 2 << 20 };

/* n * size zeroed bytes from the arena, NULL (and the failure recorded) when there are none. */
static void *mlo_alloc(mlo *m, size_t n, size_t size) {
    if (size && n > (SIZE_MAX / 2) / size) {
        mlo_fail_at(m, MLO_E_MEMORY, NULL, "%zu x %zu bytes is more than there can be", n, size);
        return NULL;
    }
    size_t bytes = (n * size + MLO_ALIGN - 1) / MLO_ALIGN * MLO_ALIGN;
    size_t head = (sizeof(mlo_block) + MLO_ALIGN - 1) / MLO_ALIGN * MLO_ALIGN;
    mlo_block *b = m->arena;
    if (!b || b->size - b->used < bytes) {
        size_t block = m->arena_bytes < MLO_MANY ? MLO_SMALL_BLOCK : MLO_LARGE_BLOCK;
        size_t room = bytes + head > block / 4 ? bytes : block - head;
        b = (mlo_block *)m->desc.alloc(m->desc.user, head + room);
        if (!b) {
            mlo_fail_at(m, MLO_E_MEMORY, NULL, "no memory for %zu bytes", bytes);
            return NULL;
        }
        b->size = room;
        b->used = 0;
        m->arena_bytes += room;
        /* a big block: keep filling the current one */
        if (m->arena && room == bytes) {
            b->next = m->arena->next;
            m->arena->next = b;
        } else {
            b->next = m->arena;
            m->arena = b;
        }
    }
    char *p = (char *)b + head + b->used;
    b->used += bytes;
    memset(p, 0, bytes);
    return p;
}
#define MLO_NEW(m, type) ((type *)mlo_alloc((m), 1, sizeof(type)))
#define MLO_NEW_N(m, type, n) ((type *)mlo_alloc((m), (n), sizeof(type)))

/* Scratch: a malloc-like pair for big temporary buffers (tensor windows, evaluated activations),
 * freed early. */
static void *mlo_scratch(mlo *m, size_t n, size_t size) {
    if (size && n > (SIZE_MAX / 2) / size) {
        mlo_fail_at(m, MLO_E_MEMORY, NULL, "%zu x %zu bytes is more than there can be", n, size);
        return NULL;
    }
    size_t bytes = n * size;
    void *p = m->desc.alloc(m->desc.user, bytes ? bytes : 1);
    if (!p) mlo_fail_at(m, MLO_E_MEMORY, NULL, "no memory for %zu bytes", bytes);
    return p;
}
static void mlo_scratch_free(mlo *m, void *p) {
    if (p) m->desc.release(m->desc.user, p);
}

/* Makes room for one more item in an arena vector: items of `size` bytes, `n` used, *room
 * allotted. Returns the (moved) items or NULL. */
static void *mlo_grow(mlo *m, void *items, size_t n, size_t *room, size_t size) {
    if (n < *room) return items;
    size_t more = *room ? *room * 2 : 4;
    void *p = mlo_alloc(m, more, size);
    if (!p) return NULL;
    if (n) memcpy(p, items, n * size);
    *room = more;
    return p;
}

/* ---- strings -------------------------------------------------------------- */

static uint64_t mlo_hash(const void *bytes, size_t n) { /* FNV-1a, 64 bits */
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return h;
}

/* A quick hash, eight bytes at a time, for tables only: it is another one on another machine. */
static uint32_t mlo_hash_text(const char *text, size_t n) {
    uint64_t h = n, word;
    for (; n; text += sizeof word) {
        size_t k = n < sizeof word ? n : sizeof word;
        word = 0;
        memcpy(&word, text, k);
        h = (h ^ word) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
        n -= k;
    }
    return (uint32_t)(h >> 16 ^ h);
}

/* The one copy of a string: equal texts give equal pointers, so names compare with ==. NULL only
 * without memory. */
static int mlo_strings_room(mlo *m) {
    mlo_strings *s = &m->strings;
    size_t size = s->size ? s->size * 2 : 256;
    if (s->used * 4 < s->size * 3) return 0;
    mlo_string_slot *slot = (mlo_string_slot *)mlo_scratch(m, size, sizeof *slot);
    if (!slot) return mlo_failed(m);
    memset(slot, 0, size * sizeof *slot);
    for (size_t i = 0; i < s->size; i++)
        if (s->slot[i].text) {
            size_t at = s->slot[i].hash & (size - 1);
            while (slot[at].text) at = (at + 1) & (size - 1);
            slot[at] = s->slot[i];
        }
    mlo_scratch_free(m, s->slot);
    s->slot = slot;
    s->size = size;
    return 0;
}

static const char *mlo_intern_n(mlo *m, const char *text, size_t n) {
    mlo_strings *s = &m->strings;
    if (n > UINT32_MAX) {
        mlo_fail_at(m, MLO_E_FORMAT, NULL, "a text of %zu bytes is longer than there can be", n);
        return NULL;
    }
    if (mlo_strings_room(m)) return NULL;
    uint32_t hash = mlo_hash_text(text, n);
    size_t at = hash & (s->size - 1);
    for (; s->slot[at].text; at = (at + 1) & (s->size - 1))
        if (s->slot[at].hash == hash && s->slot[at].n == n && !memcmp(s->slot[at].text, text, n))
            return s->slot[at].text;
    char *copy = (char *)mlo_alloc(m, n + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, text, n);
    s->slot[at].text = copy;
    s->slot[at].n = (uint32_t)n;
    s->slot[at].hash = hash;
    s->used++;
    return copy;
}
/* NULL: of a failure before */
static const char *mlo_intern(mlo *m, const char *text) {
    return text ? mlo_intern_n(m, text, strlen(text)) : NULL;
}

/* ---- lines for people ----------------------------------------------------- */

typedef struct mlo_saying {
    const char *text;
    struct mlo_saying *next;
} mlo_saying;

/* It waits. (One that there is no memory for is lost; the failure is told.) */
static void mlo_hold_line(mlo *m, const char *text) {
    mlo_saying *l = MLO_NEW(m, mlo_saying);
    if (!l || !(l->text = mlo_intern(m, text))) return;
    l->next = NULL;
    if (m->last_saying)
        m->last_saying->next = l;
    else
        m->first_saying = l;
    m->last_saying = l;
}

/* A line for people: "mlo: fold: ..", with `kind` in front of the stage. */
static void mlo_say_v(mlo *m, const char *kind, const char *format, va_list args) {
    if (!m->desc.warn) return;
    char line[1024], text[1100];
    vsnprintf(line, sizeof line, format, args);
    mlo_copy_line(text, sizeof text, line);
    snprintf(line, sizeof line, "mlo: %s%s%s%.960s", kind, m->stage ? m->stage : "",
        m->stage ? ": " : "", text);
    if (m->holds)
        mlo_hold_line(m, line);
    else
        m->desc.warn(m->desc.user, line);
}
/* What was held is said, or (said = 0) is not: what was tried has come to nothing. */
static void mlo_say_held(mlo *m, int said) {
    for (mlo_saying *l = m->first_saying; said && l; l = l->next)
        m->desc.warn(m->desc.user, l->text);
    m->holds = 0;
    m->first_saying = m->last_saying = NULL;
}
static void mlo_warn(mlo *m, const char *format, ...) {
    va_list args;
    va_start(args, format);
    mlo_say_v(m, "warning: ", format, args);
    va_end(args);
}
/* What was decided where nobody said: no reason to worry. */
static void mlo_inform(mlo *m, const char *format, ...) {
    va_list args;
    va_start(args, format);
    mlo_say_v(m, "", format, args);
    va_end(args);
}

/* What the locale has for a decimal point, a comma or two bytes beyond ASCII, becomes a point. */
static const char *mlo_pointed(char *text) {
    char *to = text;
    for (const char *p = text; *p; p++) {
        const int strange = *p == ',' || (unsigned char)*p > 127;
        if (!strange)
            *to++ = *p;
        else if (to == text || to[-1] != '.')
            *to++ = '.';
    }
    *to = 0;
    return text;
}
/* An interned string made by a format of one number, which no locale changes. */
static const char *mlo_decimal(mlo *m, const char *format, double x) {
    char text[64];
    snprintf(text, sizeof text, format, x);
    return mlo_intern(m, mlo_pointed(text));
}

/* An interned string made by a format. NULL only without memory. */
static const char *mlo_format(mlo *m, const char *format, ...) {
    char small[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n < (int)sizeof small) return mlo_intern_n(m, small, (size_t)n);
    char *big = (char *)mlo_scratch(m, (size_t)n + 1, 1);
    if (!big) return NULL;
    va_start(args, format);
    vsnprintf(big, (size_t)n + 1, format, args);
    va_end(args);
    const char *s = mlo_intern_n(m, big, (size_t)n);
    mlo_scratch_free(m, big);
    return s;
}

/* A text that may be missing, so that it can be printed: of a failure before there is none. */
static const char *mlo_or_empty(const char *s) { return s ? s : ""; }

static int mlo_eq(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }
/* Is one number less than the other? (Not so where one is no number.) */
static int mlo_differs(double a, double b) { return a < b || a > b; }
static int mlo_starts(const char *s, const char *prefix) {
    return !strncmp(s, prefix, strlen(prefix));
}

/* ---- maps: pointer -> pointer, for interned strings and for nodes --------- */

typedef struct {
    const void *key;
    void *value;
} mlo_pair;
typedef struct {
    mlo_pair *slot;
    size_t size; /* slots */
    size_t used; /* slots */
} mlo_map;

/* Keys that lie near each other (in the arena: were made one after the other, and are asked for
 * so) find themselves near each other in the table, too: only the address's kilobyte is scattered.
 * In a model of 16,000 nodes a look-up costs what its cache misses cost. */
static size_t mlo_map_at(const mlo_map *map, const void *key) {
    uint64_t unit = (uint64_t)(uintptr_t)key / MLO_ALIGN;
    size_t at = (size_t)(((unit >> 6) * 0x9E3779B97F4A7C15u >> 32) + (unit & 63)) & (map->size - 1);
    while (map->slot[at].key && map->slot[at].key != key) at = (at + 1) & (map->size - 1);
    return at;
}
static void *mlo_map_get(const mlo_map *map, const void *key) {
    return map->size && key ? map->slot[mlo_map_at(map, key)].value : NULL;
}
/* Room for n keys: then none of the next puts, up to that many, moves what is there. */
static int mlo_map_room(mlo *m, mlo_map *map, size_t n) {
    mlo_map bigger = { NULL, map->size ? map->size : 64, map->used };
    while (bigger.size < n * 2) bigger.size *= 2;
    if (bigger.size == map->size) return 0;
    if (!(bigger.slot = MLO_NEW_N(m, mlo_pair, bigger.size))) return mlo_failed(m);
    for (size_t i = 0; i < map->size; i++)
        if (map->slot[i].key) bigger.slot[mlo_map_at(&bigger, map->slot[i].key)] = map->slot[i];
    *map = bigger;
    return 0;
}
/* Forgets all keys; the room stays. */
static void mlo_map_clear(mlo_map *map) {
    if (map->size) memset(map->slot, 0, map->size * sizeof *map->slot);
    map->used = 0;
}
/* Sets (or replaces) key's value. Iteration order is nobody's business: walk the graph, not the map. */
static int mlo_map_put(mlo *m, mlo_map *map, const void *key, void *value) {
    if (mlo_map_room(m, map, map->used + 1)) return mlo_failed(m);
    size_t at = mlo_map_at(map, key);
    if (!map->slot[at].key) {
        map->slot[at].key = key;
        map->used++;
    }
    map->slot[at].value = value;
    return 0;
}

/* ---- text buffers --------------------------------------------------------- */

/* A growing text (or bytes) that is handed to a sink or kept. Failure sticks to the handle;
 * writing on is harmless. */
typedef struct {
    mlo *m;
    char *text; /* NULL: nothing yet */
    size_t n; /* bytes */
    size_t room; /* bytes that there is memory for */
} mlo_text;

/* Room for `room` bytes in all, those that are there among them. */
static int mlo_text_room(mlo_text *t, size_t room) {
    char *p = (char *)mlo_scratch(t->m, room, 1);
    if (!p) return mlo_failed(t->m);
    if (t->n) memcpy(p, t->text, t->n);
    mlo_scratch_free(t->m, t->text);
    t->text = p;
    t->room = room;
    return 0;
}
/* Appends n bytes, and says where they are to be written; NULL without memory. */
static char *mlo_put_room(mlo_text *t, size_t n) {
    if (t->m->error.code) return NULL;
    if (t->room - t->n < n + 1
        && mlo_text_room(t, (t->n + n + 1) * 2 > 4096 ? (t->n + n + 1) * 2 : 4096))
        return NULL;
    t->n += n;
    t->text[t->n] = 0;
    return t->text + t->n - n;
}
static void mlo_put(mlo_text *t, const void *bytes, size_t n) {
    char *to = mlo_put_room(t, n);
    if (to && n) memcpy(to, bytes, n);
}
static void mlo_puts(mlo_text *t, const char *s) { mlo_put(t, s, strlen(s)); }
static void mlo_printf(mlo_text *t, const char *format, ...) {
    char small[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n < (int)sizeof small) {
        mlo_put(t, small, (size_t)n);
        return;
    }
    char *big = (char *)mlo_scratch(t->m, (size_t)n + 1, 1);
    if (!big) return;
    va_start(args, format);
    vsnprintf(big, (size_t)n + 1, format, args);
    va_end(args);
    mlo_put(t, big, (size_t)n);
    mlo_scratch_free(t->m, big);
}
static void mlo_text_free(mlo_text *t) {
    mlo_scratch_free(t->m, t->text);
    t->text = NULL;
    t->n = t->room = 0;
}

/* ---- options -------------------------------------------------------------- */

/* Every option there is: flags by their names; for flags that name a file, what lies in it; and
 * what only programs give. */
static const char *const mlo_option_names[] = { "accuracy", "activations", "arena", "as",
    "axi-latency", "axi-width", "bandwidth", "best", "budget-bits", "budget-macs", "built",
    "clock-mhz", "context", "data-file", "data-limit", "device", "dim", "folding-json", "frames",
    "frames-in-flight", "hierarchy", "inline", "jobs", "kv", "loop", "max-cost", "max-error",
    "memory", "nested", "open", "parameters", "pareto", "pe", "plan", "position", "q-config-json",
    "report", "residual", "scale", "sequences", "shape", "simd", "simulation", "sketch", "slots",
    "target", "target-cycles", "target-fps", "tile", "title", "tokens", "unbatch", "unrolled",
    "waves", "weights", "whole" };

static int mlo_option_is(const char *key) {
    for (size_t i = 0; i < sizeof mlo_option_names / sizeof *mlo_option_names; i++)
        if (mlo_eq(mlo_option_names[i], key)) return 1;
    return 0;
}

/* The last value given for an option, NULL when it was not given. */
static const char *mlo_opt(const mlo *m, const char *key) {
    for (size_t i = m->n_options; i--;)
        if (mlo_eq(m->options[i].key, key)) return m->options[i].value;
    return NULL;
}

/* An option has been used up: a later run of the stage, on the same handle, does not find it again. */
static void mlo_opt_used(mlo *m, const char *key) {
    size_t kept = 0;
    for (size_t i = 0; i < m->n_options; i++)
        if (!mlo_eq(m->options[i].key, key)) m->options[kept++] = m->options[i];
    m->n_options = kept;
}

/* Letters to insert, drop or change to get from one word to the other. */
static int mlo_distance(const char *a, const char *b) {
    int row[64], n = (int)strlen(b);
    if (n >= 64 || strlen(a) >= 64) return 99;
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = corner + (a[i - 1] != b[j - 1]);
            int other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            corner = row[j];
            row[j] = change < other ? change : other;
        }
    }
    return row[n];
}

void mlo_nearer(const char *word, const char *name, const char **best) {
    int most = *best ? mlo_distance(word, *best) : (int)strlen(word) / 2 + 1;
    if (mlo_distance(word, name) < most) *best = name;
}

/* An integer option within [low, high]; `otherwise` when not given. Check mlo_failed after a batch. */
static long mlo_opt_int(mlo *m, const char *key, long otherwise, long low, long high) {
    const char *s = mlo_opt(m, key);
    if (!s) return otherwise;
    char *end;
    errno = 0;
    long v = strtol(s, &end, 10);
    if (end == s || *end || errno || v < low || v > high) {
        if (high >= INT32_MAX)
            mlo_fail_at(
                m, MLO_E_USAGE, NULL, "--%s %s is not a whole number of %ld or more", key, s, low);
        else
            mlo_fail_at(m, MLO_E_USAGE, NULL, "--%s %s is not a whole number from %ld to %ld", key,
                s, low, high);
        return otherwise;
    }
    return v;
}
