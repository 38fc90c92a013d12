/* expand_packed: weights of a few bits, several in a byte, become standard operators.
 *
 * in:  MatMulNBits and GatherBlockQuantized: weights whose last axis is bytes of `bits` bits each, the lowest of
 *     a byte first; for each block along that axis a scale and a zero point.
 * out: (digit - zero) x scale as an expression over these parameters, and MatMul or Gather.
 *
 * The digits of a byte b are floor(b / 2^(bits k)) - 2^bits floor(b / 2^(bits (k + 1))): exact in float, and
 * written in operators that every opset and every runtime has.
 *
 * invariant: the weights are those of the source, in its own float arithmetic. What a runtime rounds
 *     beside them (accuracy_level) is not part of the model.
 * example: byte 0x52 of 4 bits is 2, 5; less a zero of 8, at a scale of 0.5: -3, -1.5.
 * cost: some ten nodes a weight; nothing is unpacked before it is used.
 */

/* v [.., c] of rank `rank` with its last axis cut into [.., c / size, size]; of rank `rank` + 1 with its last two
 * made one (size 0). */
static const char *mlo_x_last_axis(mlo_expansion *x, const char *v, int rank, int64_t size) {
    int64_t to[MLO_MAX_RANK + 1] = { 0 };
    to[rank - 1] = -1;
    to[rank] = size;
    return mlo_x_reshape(x, v, to, (size_t)rank + (size > 0));
}

/* The digits of bytes as floats: [.., n] becomes [.., n x digits of a byte]. */
static const char *mlo_x_digits(mlo_expansion *x, const char *bytes, int rank, int64_t bits) {
    const char *digit[8], *above = mlo_x_last_axis(x, mlo_x_cast(x, bytes, MLO_FLOAT), rank, 1);
    const int64_t n = 8 / bits;
    const mlo_dtype made = x->dtype;
    x->dtype = MLO_FLOAT;
    for (int64_t k = 0; k < n - 1; k++) {
        const char *here = above, *down = mlo_x_number(x, ldexp(1, -(int)bits));
        const char *up = mlo_x_number(x, ldexp(1, (int)bits));
        above = MLO_X(x, "Floor", MLO_X(x, "Mul", here, down));
        digit[k] = MLO_X(x, "Sub", here, MLO_X(x, "Mul", above, up));
    }
    x->dtype = made;
    digit[n - 1] = above;
    const char *all = mlo_x_node(x, "Concat", digit, (size_t)n);
    mlo_x_int(x, "axis", -1);
    return mlo_x_last_axis(x, all, rank, 0);
}

/* (digit - zero) x scale of weights [.., blocks x bytes of a block], in x's type; zero [.., bytes] ("": the middle)
 * and scale [.., blocks]. */
static const char *mlo_x_unpacked(mlo_expansion *x, const char *bytes, const char *scale,
    const char *zero, int rank, int64_t bits, int64_t blocks, int64_t block) {
    const mlo_dtype made = x->dtype;
    x->dtype = MLO_FLOAT;
    const char *middle = *zero ? zero : mlo_x_number(x, ldexp(1, (int)bits - 1));
    if (*zero) middle = mlo_x_last_axis(x, mlo_x_part(x, zero, 0, blocks, 1), rank, 1);
    const char *v = mlo_x_last_axis(x, mlo_x_digits(x, bytes, rank, bits), rank, block);
    const char *by = mlo_x_last_axis(x, mlo_x_cast(x, scale, MLO_FLOAT), rank, 1);
    v = MLO_X(x, "Mul", MLO_X(x, "Sub", v, middle), by);
    v = mlo_x_last_axis(x, v, rank, 0);
    x->dtype = made;
    return made == MLO_FLOAT ? v : mlo_x_cast(x, v, made);
}

static void mlo_x_check_packed(mlo_expansion *x, int64_t bits, int64_t block) {
    if (bits != 2 && bits != 4 && bits != 8)
        mlo_x_stay(x, "its weights have %lld bits", (long long)bits);
    if (block < 8 || block > MLO_MAX_DIM || block & (block - 1))
        mlo_x_stay(x, "its blocks have %lld weights", (long long)block);
}

/* MatMulNBits(x, weights, scales, zeros, order, bias) */
static void mlo_expand_nbits(mlo_expansion *x) {
    static const int64_t flip[] = { 1, 0 };
    const int64_t K = mlo_int(x->n, "K", 0), N = mlo_int(x->n, "N", 0),
                  bits = mlo_int(x->n, "bits", 4);
    const int64_t block = mlo_int(x->n, "block_size", 0);
    mlo_x_check_packed(x, bits, block);
    if (*mlo_x_in(x, 4)) mlo_x_stay(x, "its rows are reordered (g_idx)");
    if (K < 1 || N < 1 || K > MLO_MAX_DIM || N > MLO_MAX_DIM)
        mlo_x_stay(x, "its weights are %lld by %lld", (long long)K, (long long)N);
    if (x->why) return;
    const int64_t blocks = (K + block - 1) / block;
    const int64_t columns[] = { N, blocks * (block * bits / 8) }, of_blocks[] = { N, blocks };
    const int64_t of_zeros[] = { N, (blocks * bits + 7) / 8 };
    const mlo_form w = mlo_x_form(x, 1), z = mlo_x_form(x, 3);
    if (!mlo_form_known(&w) || w.dtype != MLO_UINT8
        || mlo_form_count(&w) != mlo_times(columns[0], columns[1]))
        mlo_x_stay(x, "its weights are not %lld columns of %lld in blocks of %lld", (long long)N,
            (long long)K, (long long)block);
    const char *zero = mlo_x_in(x, 3), *bytes = mlo_x_reshape(x, mlo_x_in(x, 1), columns, 2);
    const int whole = *zero && z.dtype != MLO_UINT8;
    if (*zero) zero = mlo_x_reshape(x, zero, whole ? of_blocks : of_zeros, 2);
    if (*zero) zero = whole ? mlo_x_cast(x, zero, MLO_FLOAT) : mlo_x_digits(x, zero, 2, bits);
    const char *scale = mlo_x_reshape(x, mlo_x_in(x, 2), of_blocks, 2);
    const char *v = mlo_x_unpacked(x, bytes, scale, zero, 2, bits, blocks, block);
    if (blocks * block > K) v = mlo_x_part(x, v, 0, K, 1);
    v = MLO_X(x, "MatMul", mlo_x_in(x, 0), mlo_x_transpose(x, v, flip, 2));
    mlo_x_out(x, 0, mlo_x_plus(x, v, mlo_x_in(x, 5)));
}

/* GatherBlockQuantized(weights, rows, scales, zeros): rows of a table whose last axis is in blocks. */
static void mlo_expand_gather_blocks(mlo_expansion *x) {
    const int64_t bits = mlo_int(x->n, "bits", 4), block = mlo_int(x->n, "block_size", 128);
    const mlo_form w = mlo_x_form(x, 0), s = mlo_x_form(x, 2), rows = mlo_x_form(x, 1);
    const int64_t last = w.rank - 1, axis = mlo_int(x->n, "quantize_axis", 1);
    mlo_x_check_packed(x, bits, block);
    if (w.dtype != MLO_UINT8)
        mlo_x_stay(x, "its table is of %s, not uint8", mlo_dtype_name(w.dtype));
    if (w.rank < 2 || s.rank != w.rank || s.dims[last] < 1 || rows.rank < 0
        || rows.rank + w.rank - 1 >= MLO_MAX_RANK)
        mlo_x_stay(x, "the shape of its table, rows or scales is unknown");
    if (mlo_int(x->n, "gather_axis", 0) || (axis != last && axis != -1))
        mlo_x_stay(
            x, "it gathers along another axis than 0, or its blocks are not along the last one");
    if (x->why) return;
    const int rank = rows.rank + w.rank - 1;
    const char *part[4] = { "", "", "", "" };
    x->dtype = s.dtype;
    for (size_t i = 0; i < 4; i++)
        if (i != 1 && *mlo_x_in(x, i)) part[i] = MLO_X(x, "Gather", mlo_x_in(x, i), mlo_x_in(x, 1));
    if (*part[3]) part[3] = mlo_x_digits(x, part[3], rank, bits);
    mlo_x_out(x, 0, mlo_x_unpacked(x, part[0], part[2], part[3], rank, bits, s.dims[last], block));
}
