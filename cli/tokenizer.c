/* tokenizer: text to token numbers and back, with a vocabulary in llama2.c's form.
 *
 * in:  FILE: the longest piece's length (int32), then of each token its score (float32), its piece's
 *      length (int32) and bytes, little-endian, to the end of the file. (examples/tokenizer.py makes one
 *      of a Hugging Face tokenizer.json.)
 * out: numbers of a text's tokens; the bytes of a token.
 *
 * As SentencePiece's byte-pair encoding does: a text begins with a space, its characters (or, where there
 * is no such piece, their bytes: tokens 3 .. 258) are tokens, and of two neighbours that together are a
 * piece those of the best score are joined, until none are.
 *
 * invariant: 1 begins a text.
 * example: "Once upon a time": 1, 403, 407, 261, 378 with the 512 pieces of stories260k.
 * cost: O(length^2 log pieces) for a text.
 */
typedef struct {
    const char *text; /* not ended by 0 */
    int length; /* bytes */
    int id;
    float score; /* the higher, the sooner joined */
} cli_piece;

typedef struct {
    cli_bytes file;
    cli_piece *piece; /* by id */
    cli_piece *sorted; /* by text */
    int n;
} cli_tokenizer;

enum { CLI_TOKEN_BEGIN = 1, CLI_TOKEN_BYTES = 3, CLI_TOKENS_MOST = 1 << 20 };

static int cli_piece_order(const void *a, const void *b) {
    const cli_piece *x = (const cli_piece *)a, *y = (const cli_piece *)b;
    const int shorter = x->length < y->length ? x->length : y->length;
    const int differs = memcmp(x->text, y->text, (size_t)shorter);
    return differs ? differs : x->length - y->length;
}

static uint32_t cli_little(const char *p) {
    const unsigned char *u = (const unsigned char *)p;
    return (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

static void cli_tokenizer_free(cli_tokenizer *t) {
    free(t->file.data);
    free(t->piece);
    free(t->sorted);
    memset(t, 0, sizeof *t);
}

/* Counts the pieces of the file, or lists them. -1: it is no such file. */
static int cli_tokenizer_pieces(const cli_tokenizer *t, cli_piece *to) {
    size_t at = 4;
    int n = 0;
    for (; at + 8 <= t->file.n && n < CLI_TOKENS_MOST; n++) {
        const uint32_t bits = cli_little(t->file.data + at),
                       length = cli_little(t->file.data + at + 4);
        at += 8;
        if (length > t->file.n - at) return -1;
        if (to) {
            to[n].text = t->file.data + at;
            to[n].length = (int)length;
            to[n].id = n;
            memcpy(&to[n].score, &bits, sizeof bits);
        }
        at += length;
    }
    return at == t->file.n ? n : -1;
}

static int cli_tokenizer_open(cli *c, const char *path, cli_tokenizer *t) {
    memset(t, 0, sizeof *t);
    if (cli_slurp(c, path, &t->file)) return cli_failed(c);
    t->n = cli_tokenizer_pieces(t, NULL);
    if (t->n < CLI_TOKEN_BYTES + 256)
        return cli_fail(c, MLO_E_FORMAT, path,
            "is no tokenizer in llama2.c's form (a length, then score, length and bytes of each "
            "piece); examples/tokenizer.py makes one of a tokenizer.json of SentencePiece's kind, "
            "examples/generate.py takes any");
    t->piece = (cli_piece *)calloc((size_t)t->n, sizeof *t->piece);
    t->sorted = (cli_piece *)calloc((size_t)t->n, sizeof *t->sorted);
    if (!t->piece || !t->sorted) return cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
    cli_tokenizer_pieces(t, t->piece);
    memcpy(t->sorted, t->piece, (size_t)t->n * sizeof *t->piece);
    qsort(t->sorted, (size_t)t->n, sizeof *t->sorted, cli_piece_order);
    return 0;
}

/* The token whose piece is these bytes; NULL: there is none. */
static const cli_piece *cli_token_of(const cli_tokenizer *t, const char *text, int length) {
    const cli_piece key = { text, length, 0, 0 };
    return (const cli_piece *)bsearch(&key, t->sorted, (size_t)t->n, sizeof key, cli_piece_order);
}

/* A text's characters as tokens, or their bytes. Returns how many; ids has room for a token a byte. */
static int cli_token_characters(const cli_tokenizer *t, const char *text, int64_t *ids) {
    int n = 0;
    for (const char *p = text, *next; *p; p = next) {
        next = p + 1;
        while ((*next & 0xC0) == 0x80 && next - p < 4) next++;
        const cli_piece *one = cli_token_of(t, p, (int)(next - p));
        if (one)
            ids[n++] = one->id;
        else
            for (const char *byte = p; byte < next; byte++)
                ids[n++] = CLI_TOKEN_BYTES + (unsigned char)*byte;
    }
    return n;
}

/* The piece that two neighbours make; NULL: they make none. */
static const cli_piece *cli_token_joined(const cli_tokenizer *t, int64_t a, int64_t b) {
    char both[512];
    const cli_piece *x = &t->piece[a], *y = &t->piece[b];
    if ((size_t)(x->length + y->length) > sizeof both) return NULL;
    memcpy(both, x->text, (size_t)x->length);
    memcpy(both + x->length, y->text, (size_t)y->length);
    return cli_token_of(t, both, x->length + y->length);
}

/* The tokens of a text; ids has room for its bytes and two more. Returns how many. */
static int cli_token_encode(const cli_tokenizer *t, const char *text, int64_t *ids) {
    const cli_piece *space = cli_token_of(t, " ", 1);
    int n = 1;
    ids[0] = CLI_TOKEN_BEGIN;
    if (*text && space) ids[n++] = space->id;
    n += cli_token_characters(t, text, ids + n);
    for (;;) {
        const cli_piece *best = NULL;
        int at = 0;
        for (int i = 1; i + 1 < n; i++) {
            const cli_piece *both = cli_token_joined(t, ids[i], ids[i + 1]);
            if (!both || (best && both->score <= best->score)) continue;
            best = both;
            at = i;
        }
        if (!best) return n;
        ids[at] = best->id;
        memmove(ids + at + 1, ids + at + 2, (size_t)(n - at - 2) * sizeof *ids);
        n--;
    }
}

/* A token's bytes, behind another one, into `to`; returns how many. A text's first space is not its own. */
static int cli_token_decode(const cli_tokenizer *t, int64_t before, int64_t id, char to[512]) {
    if (id < 0 || id >= t->n || id == CLI_TOKEN_BEGIN) return 0;
    if (id >= CLI_TOKEN_BYTES && id < CLI_TOKEN_BYTES + 256) {
        to[0] = (char)(id - CLI_TOKEN_BYTES);
        return 1;
    }
    const cli_piece *p = &t->piece[id];
    const int skip = before == CLI_TOKEN_BEGIN && p->length && p->text[0] == ' ';
    const int n = p->length - skip < 512 ? p->length - skip : 512;
    memcpy(to, p->text + skip, (size_t)n);
    return n;
}
