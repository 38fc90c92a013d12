/* flat_tile: a network in an arena that is smaller than its values.
 *
 * in:  the steps of a network, --arena.
 * out: where that holds what is there at a time: nothing. Else values lie in a second, larger memory of the
 *     caller's, and each step is a loop over parts of its result: rows of a product (columns, where w does not
 *     fit, block by block of rows, where x does not, either) or of a norm, channels of a convolution or of a
 *     pooling (rows, where the picture does not fit: what the windows of two parts see is copied twice). What a
 *     part needs, parameters too, is copied into the arena, and the part out of it (MLO_COPY_START,
 *     MLO_COPY_WAIT). What only moves is copied within the larger memory; what cannot be cut is one part. Networks of
 *     floats (--whole) likewise.
 *
 * What is cut has two places in the arena: while a part is computed in one, the next operand comes into the
 * other, or the result before it leaves there. Where two of all do not fit, the largest have one, and are
 * copied between two calls. What is whole, and a step of one part, has one.
 *
 * invariant: kernels read and write the arena alone; all that a step has there at a time fits; the bytes
 *     copied are those foretold. A place is not used between a START that names it and the next WAIT.
 * example: a Conv of 64 channels in 64 KB: the picture once, then 8 times 8 kernels, their numbers, the result.
 * cost: O(steps).
 */

/* Columns that a part of a product has, if it can be. */
enum { MLO_FLAT_COLUMNS = 4 };

/* Does a step only move numbers? */
static int mlo_flat_moves_only(const mlo_flat_step *s) {
    return mlo_eq(s->text, "c/move.c") || mlo_eq(s->text, "c/fill.c") || mlo_eq(s->text, "c/take.c")
        || mlo_eq(s->text, "c/take_nd.c");
}

/* The value of argument k: an operand, or behind those the result; NULL: there is none. */
static const mlo_flat_value *mlo_flat_part_of(const mlo_flat_step *s, int k) {
    return k == MLO_FLAT_OPERANDS ? s->out : k < s->n_in ? s->in[k] : NULL;
}

/* Rows of a picture that a window sees for n rows of the result. */
static int64_t mlo_flat_seen_most(const mlo_flat_step *s, int64_t n) {
    const int64_t *w = s->window, rows = (n - 1) * w[10] + (w[8] - 1) * w[14] + 1;
    return rows < w[4] ? rows : w[4];
}

/* The same for those from row u on: fewer, where some are beside the picture. */
static int64_t mlo_flat_seen(const mlo_flat_step *s, int64_t u, int64_t n) {
    const int64_t *w = s->window, begin = u * w[10] - w[12];
    const int64_t end = begin + (n - 1) * w[10] + (w[8] - 1) * w[14] + 1;
    return (end < w[4] ? end : w[4]) - mlo_max(begin, 0);
}

/* Bytes that argument k has in the arena, for a part of `tile` units. */
static int64_t mlo_flat_part_bytes(const mlo_flat_step *s, int k, int64_t tile) {
    const mlo_flat_value *v = mlo_flat_part_of(s, k);
    if (!v) return 0;
    const int64_t units = !k && s->by_rows ? mlo_flat_seen_most(s, tile) : tile;
    const int64_t whole = !k && s->block ? s->block * s->terms : v->count;
    return (s->unit[k] ? s->unit[k] * units : whole) * (int64_t)mlo_dtype_size(v->dtype);
}

/* Bytes that are copied for the part that begins at unit u. */
static int64_t mlo_flat_copied(const mlo_flat_step *s, int k, int64_t u) {
    const int64_t n = s->units - u < s->tile ? s->units - u : s->tile;
    return !k && s->by_rows
        ? s->unit[k] * mlo_flat_seen(s, u, n) * (int64_t)mlo_dtype_size(s->in[k]->dtype)
        : mlo_flat_part_bytes(s, k, n);
}
static int64_t mlo_flat_aligned(int64_t bytes) {
    return mlo_parts(bytes, MLO_PLAN_ALIGN) * MLO_PLAN_ALIGN;
}

/* Bytes of one place of argument k. */
static int64_t mlo_flat_place_bytes(const mlo_flat_step *s, int k, int64_t tile) {
    return mlo_flat_aligned(mlo_flat_part_bytes(s, k, tile));
}

/* The byte of the arena that argument k begins at; of the scratch, behind all of them; then the end. */
static int64_t mlo_flat_part_at(const mlo_flat_step *s, int k, int64_t tile) {
    int64_t at = 0;
    for (int i = 0; i < k && i <= MLO_FLAT_OPERANDS; i++)
        at += (s->twice[i] ? 2 : 1) * mlo_flat_place_bytes(s, i, tile);
    return k > MLO_FLAT_OPERANDS + 1 ? at + mlo_flat_aligned(s->scratch) : at;
}
static int64_t mlo_flat_tile_bytes(const mlo_flat_step *s, int64_t tile) {
    return mlo_flat_part_at(s, MLO_FLAT_OPERANDS + 2, tile);
}

/* Does an argument go along the rows of a product? */
static int mlo_flat_along_rows(const mlo_flat_step *s, int k) {
    return !k || k == MLO_FLAT_OPERANDS || (k == 2 && s->bias_row);
}

/* Bytes of all blocks of rows, from those of a whole one: what lies along columns comes with each. */
static int64_t mlo_flat_of_blocks(const mlo_flat_step *s, int k, int64_t bytes) {
    if (!s->block) return bytes;
    return mlo_flat_along_rows(s, k) ? bytes / s->block * s->rows
                                     : bytes * mlo_parts(s->rows, s->block);
}

/* Bytes that a step copies: what is whole once, else each part. */
static int64_t mlo_flat_traffic(const mlo_flat_step *s) {
    int64_t all = 0;
    for (int k = 0; s->tile && k <= MLO_FLAT_OPERANDS; k++)
        for (int64_t u = 0; u < s->units && (!u || s->unit[k]); u += s->tile)
            all += mlo_flat_of_blocks(s, k, mlo_flat_copied(s, k, u));
    return all;
}

/* Of those, what is copied while a part is computed: operands but the first part, the result but the last. */
static int64_t mlo_flat_overlapped(const mlo_flat_step *s) {
    int64_t all = 0;
    for (int k = 0; s->tile && k <= MLO_FLAT_OPERANDS; k++)
        for (int64_t u = 0; s->twice[k] && u < s->units; u += s->tile)
            if (k < MLO_FLAT_OPERANDS ? u > 0 : u + s->tile < s->units)
                all += mlo_flat_of_blocks(s, k, mlo_flat_copied(s, k, u));
    return all;
}

/* The first row that a window sees for row u on, as text; and how many for n. */
static const char *mlo_flat_row_first(mlo *m, const mlo_flat_step *s, const char *u) {
    return mlo_format(
        m, "MLO_LEAST(%s * %lld - %lld)", u, (long long)s->window[10], (long long)s->window[12]);
}
static const char *mlo_flat_rows_seen(
    mlo *m, const mlo_flat_step *s, const char *u, const char *n) {
    const int64_t *w = s->window, reach = (w[8] - 1) * w[14] + 1;
    return mlo_format(m, "(MLO_MOST((%s + %s - 1) * %lld + %lld, %lld) - %s)", u, n,
        (long long)w[10], (long long)(reach - w[12]), (long long)w[4], mlo_flat_row_first(m, s, u));
}

/* `part` of a product of so many rows, n columns of w: of floats it says how far rows and columns are apart. */
static const char *mlo_flat_product_part(mlo_flat *f, const mlo_flat_step *s, const char *rows) {
    const long long k = (long long)s->terms;
    return mlo_eq(s->text, "c/multiply.c")
        ? mlo_format(f->m,
              "&(const mlo_matrices){ { 1, 1 }, %s, %lld, n, { 0, 0 }, { 0, 0 }, { %lld, 1 }, { n, "
              "1 } }, ",
              rows, k, k)
        : mlo_format(f->m,
              "&(const mlo_products){ { 1, 1 }, %s, %lld, n, { 0, 0 }, { 0, 0 }, %s }, ", rows, k,
              s->bias_row ? "n" : "0");
}

/* A product in columns: all rows of x, a part of each row of w and of the result. */
static int mlo_flat_into_columns(mlo_flat *f, mlo_flat_step *s) {
    if (!s->rows || s->channels < 2) return 0;
    s->units = s->pitch[1] = s->pitch[2] = s->pitch[MLO_FLAT_OPERANDS] = s->channels;
    s->part = mlo_flat_product_part(f, s, mlo_integer(f->m, s->rows));
    s->unit[0] = 0;
    s->unit[1] = s->pieces[1] = s->terms;
    s->unit[2] = s->pieces[2] = s->bias_row ? s->rows : 1;
    s->unit[3] = s->along[0];
    s->unit[4] = s->along[1];
    s->unit[MLO_FLAT_OPERANDS] = s->pieces[MLO_FLAT_OPERANDS] = s->rows;
    return 1;
}

/* Of a product in columns so many rows at a time. */
static void mlo_flat_block(mlo_flat_step *s, int64_t rows) {
    s->block = rows;
    for (int k = 1; k <= MLO_FLAT_OPERANDS; k++)
        if (mlo_flat_along_rows(s, k)) s->unit[k] = s->pieces[k] = rows;
}

/* Blocks of rows, where not even a column of all of them fits: w comes with each block, so they are the largest that
 * leave room for some columns, or for fewer. */
static void mlo_flat_into_blocks(mlo_flat *f, mlo_flat_step *s, int64_t most) {
    int64_t some = s->units < MLO_FLAT_COLUMNS ? s->units : MLO_FLAT_COLUMNS;
    if (!s->rows || s->unit[0]) return;
    for (int64_t rows = 0; some && (!rows || mlo_flat_tile_bytes(s, some) > most);) {
        if (!rows) rows = s->rows;
        mlo_flat_block(s, --rows ? rows : 1);
        if (!rows) some /= 2;
    }
    s->part = mlo_flat_product_part(f, s, "m");
}

/* What a window goes over, in rows of the result: of all channels the rows that it sees. Each row sees one at
 * least. If a channel takes less, it stays one. */
static void mlo_flat_into_rows(mlo_flat *f, mlo_flat_step *s) {
    enum { Y = MLO_FLAT_OPERANDS };
    const int64_t *w = s->window, reach = (w[8] - 1) * w[14] + 1;
    const mlo_flat_step before = *s;
    if (w[0] != 1 || w[12] >= reach || (w[6] - 1) * w[10] - w[12] >= w[4]) return;
    const int64_t in = w[1] * w[2], out = w[1] * w[3];
    const char *all = "";
    for (int i = 0; i < MLO_FLAT_WINDOW; i++)
        all = mlo_format(f->m, "%s%s%s", all, i ? ", " : "",
            i == 4       ? mlo_flat_rows_seen(f->m, s, "u", "n")
                : i == 6 ? "n"
                : i == 12
                ? mlo_format(f->m, "MLO_LEAST(%lld - u * %lld)", (long long)w[12], (long long)w[10])
                : mlo_integer(f->m, w[i]));
    s->part = mlo_format(f->m, "&(const mlo_window){ %s }, ", all);
    s->by_rows = 1;
    s->units = w[6];
    for (int k = 0; k < Y; k++) s->unit[k] = s->pieces[k] = 0;
    s->unit[0] = in * w[5];
    s->pieces[0] = in;
    s->pitch[0] = w[4] * w[5];
    s->unit[Y] = out * w[7];
    s->pieces[Y] = out;
    s->pitch[Y] = w[6] * w[7];
    if (mlo_flat_tile_bytes(s, 1) >= mlo_flat_tile_bytes(&before, 1)) *s = before;
}

/* Is argument k cut? */
static int mlo_flat_is_cut(const mlo_flat_step *s, int k) {
    return mlo_flat_part_of(s, k) && s->unit[k];
}

/* Two places for what is cut; while not even parts of one unit fit so, the largest has one. */
static void mlo_flat_two_places(mlo_flat_step *s, int64_t most) {
    for (int k = 0; k <= MLO_FLAT_OPERANDS; k++) s->twice[k] = mlo_flat_is_cut(s, k);
    while (mlo_flat_tile_bytes(s, 1) > most) {
        int largest = MLO_FLAT_OPERANDS;
        for (int k = MLO_FLAT_OPERANDS; k >= 0; k--)
            if (s->twice[k]
                && (!s->twice[largest]
                    || mlo_flat_part_bytes(s, k, 1) > mlo_flat_part_bytes(s, largest, 1)))
                largest = k;
        s->twice[largest] = 0;
    }
}

/* What cannot be cut is one part. */
static void mlo_flat_in_one(mlo_flat_step *s) {
    s->units = 1;
    s->part = s->before;
    for (int k = 0; k < MLO_FLAT_OPERANDS; k++) s->unit[k] = 0;
    s->unit[MLO_FLAT_OPERANDS] = s->out->count;
}

/* The largest parts that fit, all of a size but the last. */
static int mlo_flat_cut(mlo_flat *f, mlo_flat_step *s, int64_t most) {
    f->node = s->node;
    if (mlo_flat_moves_only(s)) return 0;
    if (!s->units) mlo_flat_in_one(s);
    if (mlo_flat_tile_bytes(s, 1) > most) mlo_flat_into_columns(f, s);
    if (mlo_flat_tile_bytes(s, 1) > most) mlo_flat_into_blocks(f, s, most);
    if (mlo_flat_tile_bytes(s, 1) > most) mlo_flat_into_rows(f, s);
    const int64_t least = mlo_flat_tile_bytes(s, 1), all = f->plan.bytes;
    if (least > most)
        return mlo_fail(f->m, MLO_E_UNSUPPORTED, s->node,
            least < all ? "--arena %lld: the smallest part of its result takes %lld bytes, with "
                          "all that it is "
                          "made from; give as much"
                        : "--arena %lld: all values take %lld bytes as a whole, and parts of its "
                          "result no less; "
                          "give as much",
            (long long)most, (long long)(least < all ? least : all));
    if (mlo_flat_tile_bytes(s, s->units) > most) mlo_flat_two_places(s, most);
    int64_t tile = s->units;
    while (tile > 1 && mlo_flat_tile_bytes(s, tile) > most)
        tile = tile > 64 ? tile - tile / 64 : tile - 1;
    s->tile = mlo_parts(s->units, mlo_parts(s->units, tile));
    f->tile_bytes = mlo_max(f->tile_bytes, mlo_flat_tile_bytes(s, s->tile));
    return 0;
}

/* Is the arena as small as it has to be? Else all steps are cut. */
static int mlo_flat_room(mlo_flat *f) {
    const long most = mlo_opt_int(f->m, "arena", LONG_MAX, 1, LONG_MAX);
    if (f->m->error.code || f->plan.bytes <= most) return mlo_failed(f->m);
    for (size_t i = 0; i < f->n_step; i++) MLO_TRY(mlo_flat_cut(f, &f->step[i], most));
    f->tiled = 1;
    for (size_t i = 0; i < f->n_value; i++) f->value[i]->place = MLO_FLAT_NOWHERE;
    f->plan.n = 0;
    for (size_t i = 0; i < f->n_step; i++) MLO_TRY(mlo_flat_lay(f, (int)i));
    mlo_plan_solve(&f->plan);
    return mlo_failed(f->m);
}

/* ---- as text ------------------------------------------------------------------------------------ */

/* A part: its first unit, how many there are, and which of two places it has; NULL: the first. */
typedef struct {
    const char *first;
    const char *n;
    const char *other;
} mlo_flat_part;

/* Where in the arena a part of argument k lies. */
static const char *mlo_flat_part_lies(
    mlo *m, const mlo_flat_step *s, int k, const mlo_flat_part *part) {
    const char *const at = mlo_format(m, "f + %lld", (long long)mlo_flat_part_at(s, k, s->tile));
    return s->twice[k] && part->other ? mlo_format(m, "%s + %s * %lld", at, part->other,
                                            (long long)mlo_flat_place_bytes(s, k, s->tile))
                                      : at;
}

/* A copy into the arena, or out of it. */
static void mlo_flat_copy(
    mlo_text *t, int k, const char *inside, const char *outside, const char *bytes) {
    const int in = k < MLO_FLAT_OPERANDS;
    mlo_printf(
        t, "MLO_COPY_START(%s, %s, %s);\n", in ? inside : outside, in ? outside : inside, bytes);
}

/* Copies argument k, which lies at `from`, as a whole. */
static void mlo_flat_copy_whole(mlo_text *t, const mlo_flat_step *s, int k, const char *from) {
    const mlo_flat_part all = { "0", "0", NULL };
    mlo_puts(t, "        ");
    const long long bytes = (long long)mlo_flat_part_bytes(s, k, 0);
    const char *count = !k && s->block
        ? mlo_format(t->m, "(size_t)m * %lld", bytes / (long long)s->block)
        : mlo_integer(t->m, bytes);
    mlo_flat_copy(t, k, mlo_flat_part_lies(t->m, s, k, &all), from, count);
}

/* Copies a part of argument k; what lies in pieces piece by piece. */
static void mlo_flat_copy_part(mlo_text *t, const mlo_flat_step *s, int k, const char *from,
    const mlo_flat_part *part, const char *indent) {
    mlo *m = t->m;
    const int rows = !k && s->by_rows;
    const long long pieces = s->pieces[k] > 1 ? (long long)s->pieces[k] : 1;
    const long long each = (long long)s->unit[k] / pieces; /* elements */
    const long long size = (long long)mlo_dtype_size(mlo_flat_part_of(s, k)->dtype);
    const char *first = rows ? mlo_flat_row_first(m, s, part->first) : part->first;
    const char *n = rows ? mlo_flat_rows_seen(m, s, part->first, part->n) : part->n;
    const char *inside = mlo_flat_part_lies(m, s, k, part);
    const char *outside = mlo_format(m, "%s + %s * %lld", from, first, each);
    mlo_puts(t, indent);
    if (pieces > 1) {
        mlo_printf(t, "for (int r = 0; r < %s; r++)\n%s    ",
            s->block && mlo_flat_along_rows(s, k) ? "m" : mlo_integer(m, pieces), indent);
        inside = mlo_format(m, "%s + (size_t)r * %s * %lld", inside, n, each * size);
        outside = mlo_format(m, "%s + r * %lld", outside, (long long)s->pitch[k]);
    }
    mlo_flat_copy(t, k, inside, outside, mlo_format(m, "(size_t)%s * %lld", n, each * size));
}

/* Operands that are cut and have two places; or one. */
static int mlo_flat_has_cut(const mlo_flat_step *s, int twice) {
    int n = 0;
    for (int k = 0; k < MLO_FLAT_OPERANDS; k++) n += mlo_flat_is_cut(s, k) && s->twice[k] == twice;
    return n;
}

/* Copies the next part of those operands. */
static void mlo_flat_copy_next(
    mlo_text *t, const mlo_flat_step *s, const char *const *lies, int twice) {
    const mlo_flat_part next = { mlo_format(t->m, "(u + %lld)", (long long)s->tile), "next", "!b" };
    if (s->tile == s->units || !mlo_flat_has_cut(s, twice)) return;
    mlo_puts(t, "            if (next) {\n");
    for (int k = 0; k < MLO_FLAT_OPERANDS; k++)
        if (mlo_flat_is_cut(s, k) && s->twice[k] == twice)
            mlo_flat_copy_part(t, s, k, lies[k], &next, "                ");
    mlo_puts(t, "            }\n");
}

/* What is there before the first part is computed. */
static void mlo_flat_copy_first(mlo_text *t, const mlo_flat_step *s, const char *const *lies) {
    const mlo_flat_part first = { "0", mlo_integer(t->m, s->tile), NULL };
    for (int k = 0; k < MLO_FLAT_OPERANDS; k++) {
        if (mlo_flat_is_cut(s, k))
            mlo_flat_copy_part(t, s, k, lies[k], &first, "        ");
        else if (mlo_flat_part_of(s, k))
            mlo_flat_copy_whole(t, s, k, lies[k]);
    }
}

/* The call of a part. */
static void mlo_flat_part_call(
    mlo_text *t, const mlo_flat_step *s, const char *call, const char *numbers, int arity) {
    const mlo_flat_part now = { "u", "n", "b" };
    mlo_printf(t, "            %s", call);
    for (int k = 0; k <= MLO_FLAT_OPERANDS; k++) {
        /* where there is no such operand, each.c has the first one again */
        const int own = k < s->n_in || k == MLO_FLAT_OPERANDS ? k : 0;
        const mlo_flat_value *v = mlo_flat_part_of(s, own);
        if (k < MLO_FLAT_OPERANDS && k >= arity) continue;
        mlo_puts(t, k ? ", " : "");
        if (!v) mlo_puts(t, "NULL");
        if (v)
            mlo_printf(
                t, "(%s *)(%s)", mlo_flat_c_type(v->dtype), mlo_flat_part_lies(t->m, s, own, &now));
    }
    mlo_printf(t, "%s", numbers);
    if (s->scratch)
        mlo_printf(t, ", (int64_t *)(f + %lld)",
            (long long)mlo_flat_part_at(s, MLO_FLAT_OPERANDS + 1, s->tile));
    mlo_puts(t, "));\n");
}

/* The loop's head: part u of n units; `next` of the one behind it; b: which of two places it has. */
static void mlo_flat_part_loop(mlo_text *t, const mlo_flat_step *s) {
    const long long units = (long long)s->units, tile = (long long)s->tile;
    int two = 0;
    for (int k = 0; k <= MLO_FLAT_OPERANDS; k++) two |= s->twice[k];
    mlo_printf(t, "        for (int u = 0%s; u < %lld; u += %lld%s) {\n", two ? ", b = 0" : "",
        units, tile, two ? ", b = !b" : "");
    mlo_printf(t, "            const int n = %lld - u < %lld ? %lld - u : %lld;\n", units, tile,
        units, tile);
    if (tile < units)
        mlo_printf(t, "            const int next = %lld - u - n < %lld ? %lld - u - n : %lld;\n",
            units, tile, units, tile);
    mlo_puts(t, "            MLO_COPY_WAIT();\n");
}

/* A step begins: all of it, or block by block. */
static void mlo_flat_part_head(mlo_text *t, const mlo_flat_step *s) {
    const long long rows = (long long)s->rows, block = (long long)s->block;
    if (!block) mlo_puts(t, "    {\n");
    if (!block) return;
    mlo_printf(t, "    for (int o = 0; o < %lld; o += %lld) {\n", rows, block);
    mlo_printf(
        t, "        const int m = %lld - o < %lld ? %lld - o : %lld;\n", rows, block, rows, block);
}

/* Where an argument lies; of a product in blocks its rows from the block's on. */
static const char *mlo_flat_part_from(mlo *m, const mlo_flat_step *s, int k, const char *lies) {
    return s->block && lies && mlo_flat_along_rows(s, k)
        ? mlo_format(m, "%s + o * %lld", lies, (long long)(k ? s->channels : s->terms))
        : lies;
}

/* A step's parts, one after the other; lies: where its operands and its result do, as text. `call` is how it
 * is called, with what is in front of its operands. */
static void mlo_flat_parts(mlo_text *t, const mlo_flat_step *s, const char *const *lies,
    const char *call, const char *numbers, int arity) {
    enum { Y = MLO_FLAT_OPERANDS };
    mlo *m = t->m;
    const int64_t last = (s->units - 1) / s->tile * s->tile;
    const mlo_flat_part now = { "u", "n", NULL };
    const mlo_flat_part before = { mlo_format(m, "(u - %lld)", (long long)s->tile),
        mlo_integer(m, s->tile), "!b" };
    const mlo_flat_part end = { mlo_integer(m, last), mlo_integer(m, s->units - last),
        last / s->tile % 2 ? "1" : NULL };
    mlo_flat_part_head(t, s);
    mlo_flat_copy_first(t, s, lies);
    mlo_flat_part_loop(t, s);
    mlo_flat_copy_next(t, s, lies, 1);
    if (s->twice[Y]) mlo_puts(t, "            if (u)\n");
    if (s->twice[Y]) mlo_flat_copy_part(t, s, Y, lies[Y], &before, "                ");
    mlo_flat_part_call(t, s, call, numbers, arity);
    mlo_flat_copy_next(t, s, lies, 0);
    if (!s->twice[Y]) mlo_flat_copy_part(t, s, Y, lies[Y], &now, "            ");
    mlo_puts(t, "        }\n");
    if (s->twice[Y]) mlo_flat_copy_part(t, s, Y, lies[Y], &end, "        ");
    mlo_puts(t, "        MLO_COPY_WAIT();\n    }\n");
}
