/* flat_tile: a network in an arena that is smaller than its values.
 *
 * in:  the steps of a network, --arena.
 * out: where that holds what is there at a time: nothing. Else values lie in a second, larger memory of the
 *     caller's, and each step is a loop over parts of its result: rows of a product (columns, where w does not
 *     fit) or of a norm, channels of a convolution or of a pooling. What a part needs, parameters too, is
 *     copied into the arena, and the part out of it (MLO_COPY_START, MLO_COPY_WAIT). What only moves is copied
 *     within the larger memory.
 *
 * invariant: kernels read and write the arena alone; all that a step has there at a time fits; the bytes
 *     copied are those foretold.
 * example: a Conv of 64 channels in 64 KB: the picture once, then 4 times 16 kernels, their numbers, the result.
 * cost: O(steps).
 */

/* Does a step only move numbers? */
static int mlo_flat_moves_only(const mlo_flat_step *s) {
    return mlo_eq(s->text, "c/move.c") || mlo_eq(s->text, "c/fill.c");
}

/* The value of argument k: an operand, or behind those the result; NULL: there is none. */
static const mlo_flat_value *mlo_flat_part_of(const mlo_flat_step *s, int k) {
    return k == MLO_FLAT_OPERANDS ? s->out : k < s->n_in ? s->in[k] : NULL;
}

/* Bytes that argument k has in the arena, for a part of `tile` units. */
static int64_t mlo_flat_part_bytes(const mlo_flat_step *s, int k, int64_t tile) {
    const mlo_flat_value *v = mlo_flat_part_of(s, k);
    if (!v) return 0;
    return (s->unit[k] ? s->unit[k] * tile : v->count) * (int64_t)mlo_dtype_size(v->dtype);
}
static int64_t mlo_flat_aligned(int64_t bytes) {
    return mlo_parts(bytes, MLO_PLAN_ALIGN) * MLO_PLAN_ALIGN;
}

/* The byte of the arena that argument k begins at; of the scratch, behind all of them; then the end. */
static int64_t mlo_flat_part_at(const mlo_flat_step *s, int k, int64_t tile) {
    int64_t at = 0;
    for (int i = 0; i < k && i <= MLO_FLAT_OPERANDS; i++)
        at += mlo_flat_aligned(mlo_flat_part_bytes(s, i, tile));
    return k > MLO_FLAT_OPERANDS + 1 ? at + mlo_flat_aligned(s->scratch) : at;
}
static int64_t mlo_flat_tile_bytes(const mlo_flat_step *s, int64_t tile) {
    return mlo_flat_part_at(s, MLO_FLAT_OPERANDS + 2, tile);
}

/* Bytes that a step copies: what is whole once, the rest in parts, once as well. */
static int64_t mlo_flat_traffic(const mlo_flat_step *s) {
    int64_t all = 0;
    for (int k = 0; s->tile && k <= MLO_FLAT_OPERANDS; k++)
        all += mlo_flat_part_bytes(s, k, s->units);
    return all;
}

/* A product in columns: all rows of x, a part of each row of w and of the result. */
static int mlo_flat_into_columns(mlo_flat *f, mlo_flat_step *s) {
    if (!s->rows || s->channels < 2) return 0;
    s->units = s->pitch = s->channels;
    s->part = mlo_format(f->m,
        "&(const mlo_products){ { 1, 1 }, %lld, %lld, n, { 0, 0 }, { 0, 0 }, %s }, ",
        (long long)s->rows, (long long)s->terms, s->bias_row ? "n" : "0");
    s->unit[0] = 0;
    s->unit[1] = s->pieces[1] = s->terms;
    s->unit[2] = s->pieces[2] = s->bias_row ? s->rows : 1;
    s->unit[3] = s->along[0];
    s->unit[4] = s->along[1];
    s->unit[MLO_FLAT_OPERANDS] = s->pieces[MLO_FLAT_OPERANDS] = s->rows;
    return 1;
}

/* The largest parts that fit, all of a size but the last. */
static int mlo_flat_cut(mlo_flat *f, mlo_flat_step *s, int64_t most) {
    f->node = s->node;
    if (mlo_flat_moves_only(s)) return 0;
    if (!s->units) return mlo_flat_refuse(f, "parts of this operator in a small arena");
    if (mlo_flat_tile_bytes(s, 1) > most) mlo_flat_into_columns(f, s);
    const int64_t least = mlo_flat_tile_bytes(s, 1);
    if (least > most)
        return mlo_fail(f->m, MLO_E_UNSUPPORTED, s->node,
            "--arena %lld: the smallest part of its result takes %lld bytes, with all that it is "
            "made from; give as much",
            (long long)most, (long long)least);
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

/* Copies a part that lies in pieces, each of n numbers. */
static void mlo_flat_copy_pieces(mlo_text *t, const mlo_flat_step *s, int k, const char *from) {
    const long long at = (long long)mlo_flat_part_at(s, k, s->tile), pitch = (long long)s->pitch;
    const long long size = (long long)mlo_dtype_size(mlo_flat_part_of(s, k)->dtype);
    mlo_printf(t, "            for (int r = 0; r < %lld; r++)\n                MLO_COPY_START(",
        (long long)s->pieces[k]);
    if (k < MLO_FLAT_OPERANDS)
        mlo_printf(t, "f + %lld + (size_t)r * n * %lld, %s + r * %lld + u", at, size, from, pitch);
    else
        mlo_printf(t, "%s + r * %lld + u, f + %lld + (size_t)r * n * %lld", from, pitch, at, size);
    mlo_printf(t, ", (size_t)n * %lld);\n", size);
}

/* Copies argument k, which lies at `from`, into the arena, or out of it. */
static void mlo_flat_copy(mlo_text *t, const mlo_flat_step *s, int k, const char *from) {
    const mlo_flat_value *v = mlo_flat_part_of(s, k);
    const long long at = (long long)mlo_flat_part_at(s, k, s->tile), unit = (long long)s->unit[k];
    const long long size = (long long)mlo_dtype_size(v->dtype);
    if (!unit)
        mlo_printf(t, "        MLO_COPY_START(f + %lld, %s, %lld);\n", at, from,
            (long long)v->count * size);
    else if (s->pieces[k] > 1)
        mlo_flat_copy_pieces(t, s, k, from);
    else if (k < MLO_FLAT_OPERANDS)
        mlo_printf(t, "            MLO_COPY_START(f + %lld, %s + u * %lld, (size_t)n * %lld);\n",
            at, from, unit, unit * size);
    else
        mlo_printf(t, "            MLO_COPY_START(%s + u * %lld, f + %lld, (size_t)n * %lld);\n",
            from, unit, at, unit * size);
}

/* A step's parts, one after the other; lies: where its operands and its result do, as text. `call` is how it
 * is called, with what is in front of its operands. */
static void mlo_flat_parts(mlo_text *t, const mlo_flat_step *s, const char *const *lies,
    const char *call, const char *numbers, int arity) {
    const long long units = (long long)s->units, tile = (long long)s->tile;
    mlo_puts(t, "    {\n");
    for (int k = 0; k < MLO_FLAT_OPERANDS; k++)
        if (mlo_flat_part_of(s, k) && !s->unit[k]) mlo_flat_copy(t, s, k, lies[k]);
    mlo_printf(t, "        for (int u = 0; u < %lld; u += %lld) {\n", units, tile);
    mlo_printf(t, "            const int n = %lld - u < %lld ? %lld - u : %lld;\n", units, tile,
        units, tile);
    for (int k = 0; k < MLO_FLAT_OPERANDS; k++)
        if (mlo_flat_part_of(s, k) && s->unit[k]) mlo_flat_copy(t, s, k, lies[k]);
    mlo_printf(t, "            MLO_COPY_WAIT();\n            %s", call);
    for (int k = 0; k <= MLO_FLAT_OPERANDS; k++) {
        /* where there is no such operand, each.c has the first one again */
        const int own = k < s->n_in || k == MLO_FLAT_OPERANDS ? k : 0;
        const mlo_flat_value *v = mlo_flat_part_of(s, own);
        if (k < MLO_FLAT_OPERANDS && k >= arity) continue;
        mlo_puts(t, k ? ", " : "");
        if (!v) mlo_puts(t, "NULL");
        if (v)
            mlo_printf(t, "(%s *)(f + %lld)", mlo_flat_c_type(v->dtype),
                (long long)mlo_flat_part_at(s, own, s->tile));
    }
    mlo_printf(t, "%s", numbers);
    if (s->scratch)
        mlo_printf(t, ", (int64_t *)(f + %lld)",
            (long long)mlo_flat_part_at(s, MLO_FLAT_OPERANDS + 1, s->tile));
    mlo_puts(t, "));\n");
    mlo_flat_copy(t, s, MLO_FLAT_OPERANDS, lies[MLO_FLAT_OPERANDS]);
    mlo_puts(t, "            MLO_COPY_WAIT();\n        }\n    }\n");
}
