/* nn: matrix products, convolution, norms, softmax, rotary embedding.
 *
 * in:  a call with its output made.
 * out: the output, filled.
 *
 * invariant: sums over K are made in the core type, 64 products at a time, so they equal ONNX
 *     Runtime's but for the order of additions (1e-6 relative); statistics of norms are summed in
 *     double. Integer products are exact modulo 2^64, then narrowed.
 * example: mlo_gemm(m, MLO_FLOAT, z, a, k, 1, b, n, 1, rows, n, k) is z = a b for row-major
 *     matrices.
 * cost: about 2 x rows x n x k operations in tiles that fit the registers of the vector unit (4 x
 *     8 of 128 bits, 4 x 16 of 256, 4 x 32 of 512); b is read once, in the order in which it lies,
 *     and packed in panels as wide as a tile, 256 x 64 of it at a time, which fit the cache.
 */

/* MLO_TILE_PACKED: columns that are packed at a time, of several panels; MLO_TILE_DEPTH: a multiple
 * of MLO_TILE_SUM */
enum { MLO_TILE_ROWS = 4, MLO_TILE_SUM = 64, MLO_TILE_PACKED = 64, MLO_TILE_DEPTH = 256 };

/* z (dense, rows x n) := a b; the elements of a and b by row and column steps. Columns fall into pieces. */
typedef struct {
    void *z;
    const void *a;
    const void *b;
    int64_t ar;
    int64_t ac;
    int64_t br;
    int64_t bc;
    int64_t rows;
    int64_t n;
    int64_t k;
    int64_t from; /* the step of K at work: its first row of b */
    int64_t deep; /* and its rows */
    int pieces;
    int64_t panel; /* elements of a piece's panels */
    void *panels; /* [pieces, panel] */
} mlo_product;

/* Columns in parts that are packed at a time. */
static int64_t mlo_bands(int64_t n) { return (n + MLO_TILE_PACKED - 1) / MLO_TILE_PACKED; }

/* The first column of a piece. */
static int64_t mlo_piece_from(const mlo_product *p, int piece) {
    return mlo_min(p->n, mlo_piece_begins(mlo_bands(p->n), piece, p->pieces) * MLO_TILE_PACKED);
}

/* acc += four rows of a (their pointers; elements `step` apart) times the packed panel b of k x
 * COLUMNS. The constant inner trip count is what lets a compiler keep s in vector registers at
 * -O2; partial sums of 64 products keep float's rounding error from growing with k. T is what is
 * multiplied and summed, SUM what the partial sums add up in. name: a piece of a
 * product, of a step of K; MLO_TILE_PACKED columns are packed at a time, since b comes fast along its rows only. */
#define MLO_TILE_ADD(row, x, COLUMNS) \
    for (int j = 0; j < COLUMNS; j++) s[row][j] += x * b[j];
#define MLO_TILE(name, T, SUM, COLUMNS, WIDE)                                                      \
    WIDE MLO_APART static void name##_tile(                                                        \
        SUM acc[MLO_TILE_ROWS][COLUMNS], const T *const *a, int64_t step, const T *b, int64_t k) { \
        T s[MLO_TILE_ROWS][COLUMNS];                                                               \
        const T *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3];                                    \
        for (int64_t i = 0; i < k;) {                                                              \
            int64_t end = k - i < MLO_TILE_SUM ? k : i + MLO_TILE_SUM;                             \
            memset(s, 0, sizeof s);                                                                \
            for (; i < end; i++, b += COLUMNS) {                                                   \
                T x0 = a0[i * step], x1 = a1[i * step], x2 = a2[i * step], x3 = a3[i * step];      \
                MLO_TILE_ADD(0, x0, COLUMNS)                                                       \
                MLO_TILE_ADD(1, x1, COLUMNS)                                                       \
                MLO_TILE_ADD(2, x2, COLUMNS) MLO_TILE_ADD(3, x3, COLUMNS)                          \
            }                                                                                      \
            for (int r = 0; r < MLO_TILE_ROWS; r++)                                                \
                for (int j = 0; j < COLUMNS; j++) acc[r][j] += (SUM)s[r][j];                       \
        }                                                                                          \
    }                                                                                              \
    WIDE static void name##_pack(                                                                  \
        T *panels, const T *b, int64_t br, int64_t bc, int64_t width, int64_t k) {                 \
        for (int64_t i = 0; i < k; i++, b += br)                                                   \
            for (int64_t q = 0; q * COLUMNS < width; q++) {                                        \
                T *to = panels + (q * k + i) * COLUMNS;                                            \
                if (bc == 1 && (q + 1) * COLUMNS <= width)                                         \
                    memcpy(to, b + q * COLUMNS, COLUMNS * sizeof *to);                             \
                else                                                                               \
                    for (int64_t j = 0, at = q * COLUMNS; j < COLUMNS; j++, at++)                  \
                        to[j] = at < width ? b[at * bc] : 0;                                       \
            }                                                                                      \
    }                                                                                              \
    WIDE static void name##_band(SUM *z, const T *a, int64_t ar, int64_t ac, const T *panel,       \
        int64_t rows, int64_t n, int64_t w, int64_t k, int more) {                                 \
        SUM acc[MLO_TILE_ROWS][COLUMNS];                                                           \
        const T *p[MLO_TILE_ROWS];                                                                 \
        for (int64_t r = 0; r < rows; r += MLO_TILE_ROWS) {                                        \
            int64_t h = rows - r < MLO_TILE_ROWS ? rows - r : MLO_TILE_ROWS;                       \
            for (int64_t i = 0; i < MLO_TILE_ROWS; i++) p[i] = a + (r + (i < h ? i : 0)) * ar;     \
            memset(acc, 0, sizeof acc);                                                            \
            for (int64_t i = 0; more && i < h; i++)                                                \
                memcpy(acc[i], z + (r + i) * n, (size_t)w * sizeof *z);                            \
            name##_tile(acc, p, ac, panel, k);                                                     \
            for (int64_t i = 0; i < h; i++)                                                        \
                memcpy(z + (r + i) * n, acc[i], (size_t)w * sizeof *z);                            \
        }                                                                                          \
    }                                                                                              \
    WIDE static void name(void *of, int piece) {                                                   \
        const mlo_product *p = (const mlo_product *)of;                                            \
        const T *a = (const T *)p->a + p->from * p->ac, *b = (const T *)p->b + p->from * p->br;    \
        T *panels = (T *)p->panels + piece * p->panel;                                             \
        for (int64_t c = mlo_piece_from(p, piece); c < mlo_piece_from(p, piece + 1);               \
            c += COLUMNS) {                                                                        \
            const int64_t q = c % MLO_TILE_PACKED / COLUMNS;                                       \
            if (!q)                                                                                \
                name##_pack(panels, b + c * p->bc, p->br, p->bc,                                   \
                    mlo_min(p->n - c, MLO_TILE_PACKED), p->deep);                                  \
            name##_band((SUM *)p->z + c, a, p->ar, p->ac, panels + q * p->deep * COLUMNS, p->rows, \
                p->n, mlo_min(p->n - c, COLUMNS), p->deep, p->from > 0);                           \
        }                                                                                          \
    }
MLO_TILE(mlo_gemm_f32, float, float, 8, )
MLO_TILE(mlo_gemm_f32_wide, float, float, 16, MLO_WIDE)
MLO_TILE(mlo_gemm_f32_widest, float, float, 32, MLO_WIDEST)
MLO_TILE(mlo_gemm_f64, double, double, 8, )
MLO_TILE(mlo_gemm_f64_wide, double, double, 8, MLO_WIDE)
MLO_TILE(mlo_gemm_u64, uint64_t, uint64_t, 8, )
MLO_TILE(mlo_gemm_whole, float, double, 8, )
MLO_TILE(mlo_gemm_whole_wide, float, double, 16, MLO_WIDE)
MLO_TILE(mlo_gemm_whole_widest, float, double, 32, MLO_WIDEST)

/* Runs a product: step after step of K, each of them by who is there. `tile`: its kind. */
static int mlo_product_run(mlo *m, mlo_product *p, mlo_piece tile, size_t size) {
    p->deep = mlo_min(p->k, MLO_TILE_DEPTH);
    p->panel = p->deep * MLO_TILE_PACKED;
    p->pieces = mlo_pieces(m, mlo_bands(p->n), (double)p->rows * (double)p->n * (double)p->deep);
    p->panels = mlo_scratch(m, (size_t)(p->pieces * p->panel), size);
    if (!p->panels) return mlo_failed(m);
    do {
        p->deep = mlo_min(p->k - p->from, MLO_TILE_DEPTH);
        mlo_pieces_do(m, tile, p, p->pieces);
        if (p->bc == 1)
            mlo_mapping_forget(m, (const char *)p->b + (size_t)(p->from * p->br) * size,
                (size_t)(p->deep * p->br) * size);
        p->from += p->deep;
    } while (p->from < p->k);
    mlo_scratch_free(m, p->panels);
    return 0;
}

/* z := a b in a core type (int64 as uint64: the same bits). */
static int mlo_gemm(mlo *m, mlo_dtype core, void *z, const void *a, int64_t ar, int64_t ac,
    const void *b, int64_t br, int64_t bc, int64_t rows, int64_t n, int64_t k) {
    mlo_product p = { z, a, b, ar, ac, br, bc, rows, n, k, 0, 0, 0, 0, NULL };
    const mlo_piece f32 = mlo_has_widest() ? mlo_gemm_f32_widest
        : mlo_has_wide()                   ? mlo_gemm_f32_wide
                                           : mlo_gemm_f32;
    const mlo_piece f64 = mlo_has_wide() ? mlo_gemm_f64_wide : mlo_gemm_f64;
    const mlo_piece tile = core == MLO_FLOAT ? f32 : core == MLO_DOUBLE ? f64 : mlo_gemm_u64;
    return mlo_product_run(m, &p, tile, mlo_dtype_size(core));
}

/* z := a b, whole numbers in floats, exactly: 64 products of 18 bits are whole numbers that a
 * float holds, their sums a double. */
static int mlo_gemm_exact(
    mlo *m, double *z, const float *a, const float *b, int64_t rows, int64_t n, int64_t k) {
    mlo_product p = { z, a, b, k, 1, n, 1, rows, n, k, 0, 0, 0, 0, NULL };
    const mlo_piece tile = mlo_has_widest() ? mlo_gemm_whole_widest
        : mlo_has_wide()                    ? mlo_gemm_whole_wide
                                            : mlo_gemm_whole;
    return mlo_product_run(m, &p, tile, sizeof *a);
}

/* ---- MatMul --------------------------------------------------------------- */

static int mlo_shape_MatMul(mlo_shapes *s) {
    mlo_form a = mlo_form_in(s, 0), b = mlo_form_in(s, 1), y, z;
    MLO_TRY(mlo_same_type(s, 0, 1));
    s->out[0].dtype = a.dtype ? a.dtype : b.dtype;
    if (a.rank < 0 || b.rank < 0) return 0;
    if (!a.rank || !b.rank) return mlo_fail(s->m, MLO_E_SHAPE, s->node, "an operand is a scalar");
    int64_t k = a.dims[a.rank - 1], l = b.dims[b.rank > 1 ? b.rank - 2 : 0];
    if (k >= 0 && l >= 0 && k != l)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node,
            "%s x %s: inner dimensions %lld and %lld differ", mlo_dims_text(s->m, a.rank, a.dims),
            mlo_dims_text(s->m, b.rank, b.dims), (long long)k, (long long)l);
    y = a;
    y.rank = a.rank > 2 ? a.rank - 2 : 0;
    z = b;
    z.rank = b.rank > 2 ? b.rank - 2 : 0;
    MLO_TRY(mlo_broadcast(s, &y, &z));
    if (a.rank > 1) y.dims[y.rank++] = a.dims[a.rank - 2];
    if (b.rank > 1) y.dims[y.rank++] = b.dims[b.rank - 1];
    y.dtype = s->out[0].dtype;
    s->out[0] = y;
    return 0;
}

/* z := a b with broadcast batches, all in one core type. */
static int mlo_matmul(mlo *m, const mlo_array *z, const mlo_array *a, const mlo_array *b) {
    int64_t k = a->dims[a->rank - 1];
    int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    int64_t n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    int batch = z->rank - (a->rank > 1) - (b->rank > 1);
    mlo_walk w = mlo_walk_over(batch, z->dims);
    mlo_walk_add(&w, a->rank > 2 ? a->rank - 2 : 0, a->dims);
    mlo_walk_add(&w, b->rank > 2 ? b->rank - 2 : 0, b->dims);
    int64_t count = 1;
    size_t size = mlo_dtype_size(z->dtype);
    for (int i = 0; i < batch; i++) count *= z->dims[i];
    /* one matrix for all batches: taller, not more, products */
    if (b->rank <= 2 && a->rank > 1) {
        rows *= count;
        count = 1;
    }
    if (!rows || !n) return 0;
    for (int64_t t = 0; t < count; t++) {
        int64_t at = t, ao = 0, bo = 0;
        for (int i = batch; i--; at /= z->dims[i]) {
            ao += at % z->dims[i] * w.step[0][i];
            bo += at % z->dims[i] * w.step[1][i];
        }
        if (count == 1) ao = bo = 0;
        MLO_TRY(mlo_gemm(m, z->dtype, (char *)z->data + (size_t)(t * rows * n) * size,
            (const char *)a->data + (size_t)(ao * rows * k) * size, k, 1,
            (const char *)b->data + (size_t)(bo * k * n) * size, n, 1, rows, n, k));
    }
    return 0;
}

/* The same with operands of any type: converted to `core`, the result to z's type. */
static int mlo_matmul_any(
    mlo *m, mlo_array *z, const mlo_array *a, const mlo_array *b, mlo_dtype core) {
    const mlo_array *x = mlo_as(m, a, core), *y = x ? mlo_as(m, b, core) : NULL;
    mlo_array *r = !y || z->dtype == core ? z : mlo_array_new(m, core, z->rank, z->dims);
    if (y && r) mlo_matmul(m, r, x, y);
    if (!m->error.code && r != z)
        mlo_convert(z->dtype, z->data, core, r->data, (size_t)mlo_array_count(z));
    mlo_as_free(m, x, a);
    mlo_as_free(m, y, b);
    if (r != z) mlo_array_free(m, r);
    return mlo_failed(m);
}
static int mlo_run_MatMul(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    return mlo_matmul_any(c->m, c->out[0], c->in[0], c->in[1], mlo_core_type(c->in[0]->dtype));
}

/* Gemm: alpha A' B' + beta C. Fusing tools make it of products of higher rank too: without
 * transposes, that is a MatMul. */
static int mlo_shape_Gemm(mlo_shapes *s) {
    mlo_form a = mlo_form_in(s, 0), b = mlo_form_in(s, 1), c = mlo_form_in(s, 2), y = a;
    int ta = mlo_int(s->node, "transA", 0) != 0, tb = mlo_int(s->node, "transB", 0) != 0;
    MLO_TRY(mlo_same_type(s, 0, 1));
    s->out[0].dtype = a.dtype;
    if (a.rank < 0 || b.rank < 0) return 0;
    if (a.rank > 2 && b.rank >= 2 && !ta && !tb) {
        MLO_TRY(mlo_shape_MatMul(s));
        y = s->out[0];
        return mlo_present(s, 2) ? mlo_broadcast(s, &y, &c) : 0;
    }
    if (a.rank != 2 || b.rank != 2)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node,
            "operands of rank %d and %d; matrices are needed", a.rank, b.rank);
    int64_t k = a.dims[!ta], l = b.dims[tb];
    if (k >= 0 && l >= 0 && k != l)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "inner dimensions %lld and %lld differ",
            (long long)k, (long long)l);
    y.dims[0] = a.dims[ta];
    y.dims[1] = b.dims[!tb];
    s->out[0] = y;
    return mlo_present(s, 2) ? mlo_broadcast(s, &y, &c) : 0;
}
/* z := alpha z + beta c, c broadcast (NULL: absent), in core types. */
static int mlo_gemm_tail(mlo_call *c, mlo_array *z, const mlo_array *bias) {
    double alpha = (double)mlo_float(c->node, "alpha", 1.0f);
    double beta = (double)mlo_float(c->node, "beta", 1.0f);
    const mlo_array *pair[2];
    pair[0] = z;
    pair[1] = bias;
    mlo_array *scaled = NULL;
    int r = 0;
    if (mlo_differs(alpha, 1))
        r = mlo_elements_any(c->m, c->node, z, pair, 1, &mlo_loops_scale,
            mlo_dtype_is_float(z->dtype) ? z->dtype : MLO_DOUBLE, &alpha);
    if (!r && bias && mlo_differs(beta, 1)) {
        if (!(scaled = mlo_array_new(c->m, z->dtype, bias->rank, bias->dims)))
            return mlo_failed(c->m);
        const mlo_array *one[1];
        one[0] = bias;
        r = mlo_elements_any(c->m, c->node, scaled, one, 1, &mlo_loops_scale,
            mlo_dtype_is_float(z->dtype) ? z->dtype : MLO_DOUBLE, &beta);
        pair[1] = scaled;
    }
    if (!r && bias)
        r = mlo_elements_any(
            c->m, c->node, z, pair, 2, &mlo_loops_Add, mlo_core_type(z->dtype), NULL);
    mlo_array_free(c->m, scaled);
    return r;
}
static int mlo_gemm_product(mlo_call *c, mlo_array *z, const mlo_array *a, const mlo_array *b) {
    int ta = mlo_int(c->node, "transA", 0) != 0, tb = mlo_int(c->node, "transB", 0) != 0;
    if (a->rank > 2) return mlo_matmul(c->m, z, a, b);
    return mlo_gemm(c->m, z->dtype, z->data, a->data, ta ? 1 : a->dims[1], ta ? a->dims[1] : 1,
        b->data, tb ? 1 : b->dims[1], tb ? b->dims[1] : 1, z->dims[0], z->dims[1], a->dims[!ta]);
}
static int mlo_run_Gemm(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    mlo *m = c->m;
    mlo_dtype core = mlo_core_type(c->in[0]->dtype);
    const mlo_array *a = mlo_as(m, c->in[0], core), *b = a ? mlo_as(m, c->in[1], core) : NULL;
    mlo_array *y = c->out[0];
    mlo_array *z = !b || y->dtype == core ? y : mlo_array_new(m, core, y->rank, y->dims);
    if (b && z && !mlo_gemm_product(c, z, a, b)
        && !mlo_gemm_tail(c, z, c->n_in > 2 ? c->in[2] : NULL) && z != y)
        mlo_convert(y->dtype, y->data, core, z->data, (size_t)mlo_array_count(y));
    mlo_as_free(m, a, c->in[0]);
    mlo_as_free(m, b, c->in[1]);
    if (z != y) mlo_array_free(m, z);
    return mlo_failed(m);
}

/* MatMulInteger: int32 sums of (a - za)(b - zb); zero points per tensor, per row of a, per column
 * of b. */
static int mlo_shape_MatMulInteger(mlo_shapes *s) {
    mlo_form in[2];
    in[0] = mlo_form_in(s, 0);
    in[1] = mlo_form_in(s, 1);
    in[0].dtype = in[1].dtype = MLO_INT32;
    mlo_shapes t = *s;
    t.in = in;
    t.n_in = 2;
    return mlo_shape_MatMul(&t);
}
/* QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero): as MatMul, in the type
 * of y_zero. The other rules for such operators, which are carried through, follow the same way. */
static int mlo_shape_of_two(
    mlo_shapes *s, size_t a, size_t b, size_t type, int (*rule)(mlo_shapes *s)) {
    mlo_form in[2];
    in[0] = mlo_form_in(s, a);
    in[1] = mlo_form_in(s, b);
    mlo_shapes t = *s;
    in[0].dtype = in[1].dtype = mlo_form_in(s, type).dtype;
    t.in = in;
    t.n_in = 2;
    return rule(&t);
}
static int mlo_shape_QLinearMatMul(mlo_shapes *s) {
    return mlo_shape_of_two(s, 0, 3, 7, mlo_shape_MatMul);
}
/* a minus its zero point in int64; a vector of zero points counts rows (of the first operand) or
 * columns. NULL without memory. */
static mlo_array *mlo_minus_zero(mlo_call *c, const mlo_array *a, const mlo_array *zero, int rows) {
    mlo_array *z = mlo_array_new(c->m, MLO_INT64, a->rank, a->dims), shape;
    const mlo_array *pair[2];
    pair[0] = a;
    pair[1] = &shape;
    if (!z) return NULL;
    mlo_convert(MLO_INT64, z->data, a->dtype, a->data, (size_t)mlo_array_count(a));
    if (!zero) return z;
    shape = *zero;
    pair[0] = z;
    if (rows && zero->rank == 1 && a->rank > 1) {
        shape.rank = 2;
        shape.dims[1] = 1;
    }
    mlo_form x = { MLO_INT64, a->rank, { 0 } }, y = { MLO_INT64, shape.rank, { 0 } };
    memcpy(x.dims, a->dims, sizeof x.dims);
    memcpy(y.dims, shape.dims, sizeof y.dims);
    if (!mlo_broadcast(c->forms, &x, &y) && x.rank == a->rank)
        mlo_elements_any(c->m, c->node, z, pair, 2, &mlo_loops_Sub, MLO_INT64, NULL);
    return z;
}
static int mlo_run_MatMulInteger(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    mlo_array *a = mlo_minus_zero(c, c->in[0], c->n_in > 2 ? c->in[2] : NULL, 1);
    mlo_array *b = a ? mlo_minus_zero(c, c->in[1], c->n_in > 3 ? c->in[3] : NULL, 0) : NULL;
    if (b && !c->m->error.code) mlo_matmul_any(c->m, c->out[0], a, b, MLO_INT64);
    mlo_array_free(c->m, a);
    mlo_array_free(c->m, b);
    return mlo_failed(c->m);
}

/* ---- Softmax -------------------------------------------------------------- */

/* One row of doubles, elements `step` apart: e^(x - max), normalised; or its logarithm. (Of floats:
 * exact/real.c.) */
static void mlo_softmax_row_f64(
    double *z, const double *x, int64_t n, int64_t step, int logarithm) {
    double max = -(double)INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i * step] > max || x[i * step] != x[i * step]) max = x[i * step];
    for (int64_t i = 0; i < n; i++) {
        double e = exp(x[i * step] - max);
        sum += e;
        if (!logarithm) z[i * step] = e;
    }
    if (logarithm) {
        sum = log(sum);
        for (int64_t i = 0; i < n; i++) z[i * step] = x[i * step] - max - sum;
        return;
    }
    for (int64_t i = 0; i < n; i++) z[i * step] /= sum;
}
/* Below opset 13 everything from `axis` on is one row. */
static int mlo_softmax(mlo_call *c, int logarithm) {
    mlo *m = c->m;
    mlo_dtype core = mlo_core_type(c->in[0]->dtype);
    int64_t outer = 1, n = 1, inner = 1;
    int axis = 0;
    if (!mlo_dtype_is_float(core))
        return mlo_fail(
            m, MLO_E_TYPE, c->node, "is not defined for %s", mlo_dtype_name(c->in[0]->dtype));
    const mlo_array *x = c->in[0];
    if (x->rank)
        MLO_TRY(
            mlo_axis(c->forms, mlo_int(c->node, "axis", c->opset < 13 ? 1 : -1), x->rank, &axis));
    for (int i = 0; i < x->rank; i++)
        if (i < axis)
            outer *= x->dims[i];
        else if (i == axis || c->opset < 13)
            n *= x->dims[i];
        else
            inner *= x->dims[i];
    x = mlo_as(m, x, core);
    mlo_array *y = c->out[0];
    mlo_array *z = !x || y->dtype == core ? y : mlo_array_new(m, core, y->rank, y->dims);
    for (int64_t o = 0; x && z && o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t at = o * n * inner + i;
            if (core == MLO_FLOAT)
                mlo_real_softmax(
                    (float *)z->data + at, (const float *)x->data + at, n, inner, logarithm);
            else
                mlo_softmax_row_f64(
                    (double *)z->data + at, (const double *)x->data + at, n, inner, logarithm);
        }
    if (x && z && z != y) mlo_convert(y->dtype, y->data, core, z->data, (size_t)mlo_array_count(z));
    mlo_as_free(m, x, c->in[0]);
    if (z != y) mlo_array_free(m, z);
    return mlo_failed(m);
}
static int mlo_run_Softmax(mlo_call *c) { return mlo_softmax(c, 0); }
static int mlo_run_LogSoftmax(mlo_call *c) { return mlo_softmax(c, 1); }

/* ---- norms ---------------------------------------------------------------- */

static int mlo_shape_LayerNormalization(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0);
    int axis;
    for (size_t i = 1; i < 3; i++)
        if (mlo_present(s, i)) {
            mlo_form y = mlo_form_in(s, 0), p = mlo_form_in(s, i);
            MLO_TRY(mlo_broadcast(s, &y, &p));
        }
    s->out[0] = x;
    if (x.rank < 0) return 0;
    MLO_TRY(mlo_axis(s, mlo_int(s->node, "axis", -1), x.rank, &axis));
    for (size_t k = 1; k < s->n_out && k < 3; k++) {
        s->out[k] = x;
        s->out[k].dtype = (mlo_dtype)mlo_int(s->node, "stash_type", MLO_FLOAT);
        for (int i = axis; i < x.rank; i++) s->out[k].dims[i] = 1;
    }
    return 0;
}
static void mlo_stash(mlo_call *c, size_t i, int64_t at, double v) {
    mlo_array *a = i < c->n_out ? c->out[i] : NULL;
    if (a)
        mlo_convert(
            a->dtype, (char *)a->data + (size_t)at * mlo_dtype_size(a->dtype), MLO_DOUBLE, &v, 1);
}
/* z := normalised x; without `mean` the root mean square alone. Statistics in double. */
static void mlo_normalize(
    mlo_call *c, double *z, int64_t rows, int64_t n, double epsilon, int mean) {
    double stash[2];
    for (int64_t r = 0; r < rows; r++, z += n) {
        mlo_real_normalize(z, n, epsilon, mean, stash);
        if (mean) mlo_stash(c, 1, r, stash[0]);
        if (mean) mlo_stash(c, 2, r, stash[1]);
    }
}
static int mlo_norm(mlo_call *c, int mean) {
    const mlo_array *x = c->in[0], *pair[2];
    int axis;
    int64_t rows = 1, n = 1;
    MLO_TRY(mlo_axis(c->forms, mlo_int(c->node, "axis", -1), x->rank, &axis));
    for (int i = 0; i < x->rank; i++)
        if (i < axis)
            rows *= x->dims[i];
        else
            n *= x->dims[i];
    mlo_array *z = mlo_array_new(c->m, MLO_DOUBLE, x->rank, x->dims);
    if (!z) return mlo_failed(c->m);
    mlo_convert(MLO_DOUBLE, z->data, x->dtype, x->data, (size_t)(rows * n));
    mlo_normalize(
        c, (double *)z->data, rows, n, (double)mlo_float(c->node, "epsilon", 1e-5f), mean);
    pair[0] = z;
    int r = 0;
    for (size_t i = 1; i < c->n_in && i < 3 && !r; i++)
        if ((pair[1] = c->in[i]) != NULL)
            r = mlo_elements_any(c->m, c->node, z, pair, 2,
                i == 1 ? &mlo_loops_Mul : &mlo_loops_Add, MLO_DOUBLE, NULL);
    if (!r) mlo_convert(c->out[0]->dtype, c->out[0]->data, MLO_DOUBLE, z->data, (size_t)(rows * n));
    mlo_array_free(c->m, z);
    return r;
}
/* A number for each channel, or for each of so many groups of them, with every element of [N, C, ..]: times, plus. */
static void mlo_channel_line(
    const mlo_array *x, double *z, const mlo_array *scale, const mlo_array *bias) {
    const int64_t channels = x->dims[1], all = mlo_array_count(x),
                  each = all / (x->dims[0] * channels);
    const int64_t shared = channels / mlo_array_count(scale);
    for (int64_t i = 0; i < all; i++) {
        const int64_t k = i / each % channels / shared;
        z[i] = z[i] * ((const double *)scale->data)[k] + ((const double *)bias->data)[k];
    }
}

/* Statistics of each of so many groups of channels, over all places. */
static int mlo_group_norm(mlo_call *c, int64_t groups) {
    MLO_TRY(mlo_need_inputs(c, 3));
    const mlo_array *x = c->in[0];
    const int64_t all = mlo_array_count(x);
    if (x->rank < 2 || groups < 1 || x->dims[1] % groups
        || mlo_array_count(c->in[1]) != mlo_array_count(c->in[2])
        || (mlo_array_count(c->in[1]) != x->dims[1] && mlo_array_count(c->in[1]) != groups))
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "%lld groups and %lld scales do not fit %s",
            (long long)groups, (long long)mlo_array_count(c->in[1]),
            mlo_dims_text(c->m, x->rank, x->dims));
    const mlo_array *scale = mlo_as(c->m, c->in[1], MLO_DOUBLE),
                    *bias = mlo_as(c->m, c->in[2], MLO_DOUBLE);
    mlo_array *z = mlo_array_new(c->m, MLO_DOUBLE, x->rank, x->dims);
    if (z && scale && bias && all) {
        const int64_t rows = x->dims[0] * groups;
        mlo_convert(MLO_DOUBLE, z->data, x->dtype, x->data, (size_t)all);
        mlo_normalize(c, (double *)z->data, rows, all / rows,
            (double)mlo_float(c->node, "epsilon", 1e-5f), 1);
        mlo_channel_line(x, (double *)z->data, scale, bias);
        mlo_convert(c->out[0]->dtype, c->out[0]->data, MLO_DOUBLE, z->data, (size_t)all);
    }
    mlo_array_free(c->m, z);
    mlo_as_free(c->m, scale, c->in[1]);
    mlo_as_free(c->m, bias, c->in[2]);
    return mlo_failed(c->m);
}
static int mlo_run_GroupNormalization(mlo_call *c) {
    return mlo_group_norm(c, mlo_int(c->node, "num_groups", 1));
}
static int mlo_run_InstanceNormalization(mlo_call *c) {
    return mlo_group_norm(c, c->in[0]->rank > 1 ? c->in[0]->dims[1] : 0);
}
/* Of a batch norm: a factor for each channel in scale, an offset in bias. */
static void mlo_batch_line(const mlo_array *scale, const mlo_array *bias, const mlo_array *mean,
    const mlo_array *variance, double epsilon) {
    double *w = (double *)scale->data, *b = (double *)bias->data;
    for (int64_t k = 0; k < mlo_array_count(scale); k++) {
        w[k] /= sqrt(((const double *)variance->data)[k] + epsilon);
        b[k] -= ((const double *)mean->data)[k] * w[k];
    }
}
static int mlo_batch_fits(mlo_call *c) {
    const mlo_array *x = c->in[0];
    MLO_TRY(mlo_need_inputs(c, 5));
    if (mlo_int(c->node, "training_mode", 0))
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, c->node,
            "takes its statistics from its batch (training_mode is true); export the model for "
            "inference");
    for (size_t i = 1; i < 5; i++)
        if (x->rank < 2 || mlo_array_count(c->in[i]) != x->dims[1])
            return mlo_fail(c->m, MLO_E_SHAPE, c->node,
                "%lld numbers of input %zu do not fit the channels of %s",
                (long long)mlo_array_count(c->in[i]), i, mlo_dims_text(c->m, x->rank, x->dims));
    return 0;
}
static int mlo_run_BatchNormalization(mlo_call *c) {
    mlo_array *part[5] = { 0 };
    MLO_TRY(mlo_batch_fits(c));
    int ok = 1;
    for (size_t i = 0; ok && i < 5; i++) {
        const mlo_array *a = c->in[i];
        part[i] = mlo_array_new(c->m, MLO_DOUBLE, a->rank, a->dims);
        ok = part[i] != NULL;
        if (ok)
            mlo_convert(MLO_DOUBLE, part[i]->data, a->dtype, a->data, (size_t)mlo_array_count(a));
    }
    if (ok && mlo_array_count(c->in[0])) {
        mlo_batch_line(
            part[1], part[2], part[3], part[4], (double)mlo_float(c->node, "epsilon", 1e-5f));
        mlo_channel_line(c->in[0], (double *)part[0]->data, part[1], part[2]);
        mlo_convert(c->out[0]->dtype, c->out[0]->data, MLO_DOUBLE, part[0]->data,
            (size_t)mlo_array_count(part[0]));
    }
    for (size_t i = 0; i < 5; i++) mlo_array_free(c->m, part[i]);
    return mlo_failed(c->m);
}
static int mlo_run_LayerNormalization(mlo_call *c) { return mlo_norm(c, 1); }
static int mlo_run_RMSNormalization(mlo_call *c) { return mlo_norm(c, 0); }

/* ---- Conv ----------------------------------------------------------------- */

/* Geometry of a convolution or pooling window over the axes after batch and channel. */
typedef struct {
    int axes;
    int64_t size[MLO_MAX_RANK]; /* elements of the input along each axis; so are all that follow */
    int64_t kernel[MLO_MAX_RANK];
    int64_t stride[MLO_MAX_RANK];
    int64_t dilation[MLO_MAX_RANK];
    int64_t pad[MLO_MAX_RANK]; /* in front */
    int64_t after[MLO_MAX_RANK]; /* padding behind */
    int64_t out[MLO_MAX_RANK]; /* of the output; -1: not known */
} mlo_window;

static int mlo_window_list(
    const mlo_shapes *s, const char *name, int n, int64_t otherwise, int64_t *to) {
    const mlo_attr *a = mlo_attr_of(s->node, name);
    if (a && a->n_ints && a->n_ints != (size_t)n)
        return mlo_fail(
            s->m, MLO_E_SHAPE, s->node, "%s has %zu entries, %d are needed", name, a->n_ints, n);
    for (int i = 0; i < n; i++) {
        to[i] = a && a->n_ints ? a->ints[i] : otherwise;
        if (to[i] > INT32_MAX || to[i] < INT32_MIN)
            return mlo_fail(
                s->m, MLO_E_SHAPE, s->node, "%s has an entry of %lld", name, (long long)to[i]);
    }
    return 0;
}
/* Fills in everything but size and kernel, which the caller knows; out -1 where size is. */
static int mlo_window_of(const mlo_shapes *s, mlo_window *w) {
    int64_t pads[2 * MLO_MAX_RANK];
    static const char *const kinds[] = { "NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER" };
    const int kind = mlo_which_text(s->node, "auto_pad", kinds, 5), same = kind > 2,
              lower = kind == 4;
    if (kind < 0)
        return mlo_fail(s->m, MLO_E_GRAPH, s->node,
            "auto_pad is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
    MLO_TRY(mlo_window_list(s, "strides", w->axes, 1, w->stride));
    MLO_TRY(mlo_window_list(s, "dilations", w->axes, 1, w->dilation));
    MLO_TRY(mlo_window_list(s, "pads", 2 * w->axes, 0, pads));
    for (int i = 0; i < w->axes; i++) {
        if (w->kernel[i] > INT32_MAX)
            return mlo_fail(
                s->m, MLO_E_SHAPE, s->node, "a kernel of %lld", (long long)w->kernel[i]);
        int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t before = pads[i];
        int64_t after = pads[i + w->axes];
        if (w->stride[i] < 1 || w->dilation[i] < 1 || extent < 1)
            return mlo_fail(
                s->m, MLO_E_SHAPE, s->node, "kernel, stride and dilation must be at least 1");
        w->pad[i] = before;
        w->after[i] = after;
        w->out[i] = -1;
        if (w->size[i] < 0) continue;
        if (same) {
            int64_t out = (w->size[i] + w->stride[i] - 1) / w->stride[i];
            int64_t all = (out - 1) * w->stride[i] + extent - w->size[i];
            all = all < 0 ? 0 : all;
            before = lower ? (all + 1) / 2 : all / 2;
            after = all - before;
            w->pad[i] = before;
            w->after[i] = after;
        }
        int64_t room = w->size[i] + before + after - extent;
        if (mlo_int(s->node, "ceil_mode", 0)) room += w->stride[i] - 1;
        w->out[i] = room < 0 ? 0 : room / w->stride[i] + 1;
        /* a window must start inside */
        if (mlo_int(s->node, "ceil_mode", 0)
            && (w->out[i] - 1) * w->stride[i] >= w->size[i] + before)
            w->out[i]--;
    }
    return 0;
}

static int mlo_conv_window(
    const mlo_shapes *s, const mlo_form *x, const mlo_form *k, mlo_window *w) {
    int64_t group = mlo_int(s->node, "group", 1);
    if (x->rank < 3 || k->rank != x->rank)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "input of rank %d with weights of rank %d",
            x->rank, k->rank);
    if (group < 1 || group > INT32_MAX
        || (x->dims[1] >= 0 && k->dims[1] >= 0 && x->dims[1] != k->dims[1] * group)
        || (k->dims[0] >= 0 && k->dims[0] % group))
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "%lld channels, %lld groups, weights %s",
            (long long)x->dims[1], (long long)group, mlo_dims_text(s->m, k->rank, k->dims));
    w->axes = x->rank - 2;
    for (int i = 0; i < w->axes; i++) {
        w->size[i] = x->dims[i + 2];
        w->kernel[i] = k->dims[i + 2] < 0 ? 1 : k->dims[i + 2];
    }
    const mlo_attr *said = mlo_attr_of(s->node, "kernel_shape");
    for (int i = 0; said && i < w->axes; i++)
        if (said->n_ints != (size_t)w->axes
            || (k->dims[i + 2] >= 0 && said->ints[i] != k->dims[i + 2]))
            return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                "kernel_shape is not that of the weights %s",
                mlo_dims_text(s->m, k->rank, k->dims));
    MLO_TRY(mlo_window_of(s, w));
    for (int i = 0; i < w->axes; i++)
        if (k->dims[i + 2] < 0) w->out[i] = -1;
    return 0;
}
static int mlo_shape_Conv(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0), k = mlo_form_in(s, 1);
    mlo_window w;
    s->out[0].dtype = x.dtype;
    MLO_TRY(mlo_same_type(s, 0, 1));
    if (x.rank < 0 || k.rank < 0) return 0;
    MLO_TRY(mlo_conv_window(s, &x, &k, &w));
    s->out[0] = x;
    s->out[0].dims[1] = k.dims[0];
    for (int i = 0; i < w.axes; i++) s->out[0].dims[i + 2] = w.out[i];
    return 0;
}

static int mlo_shape_QLinearConv(mlo_shapes *s) {
    return mlo_shape_of_two(s, 0, 3, 7, mlo_shape_Conv);
}
static int mlo_shape_ConvInteger(mlo_shapes *s) {
    MLO_TRY(mlo_shape_of_two(s, 0, 1, 0, mlo_shape_Conv));
    s->out[0].dtype = MLO_INT32;
    return 0;
}

/* The product of a window's sizes along all axes: of the input, of the kernel, of the output. */
static int64_t mlo_window_all(const mlo_window *w, const int64_t *sizes) {
    int64_t all = 1;
    for (int i = 0; i < w->axes; i++) all *= sizes[i];
    return all;
}

/* to[tap][position] := the input under kernel tap `tap` of output position `position`, for
 * `channels` channels. */
static void mlo_unfold(float *to, const float *x, const mlo_window *w, int64_t channels) {
    const int64_t positions = mlo_window_all(w, w->out), taps = mlo_window_all(w, w->kernel);
    const int64_t area = mlo_window_all(w, w->size);
    for (int64_t row = 0; row < channels * taps; row++)
        for (int64_t p = 0; p < positions; p++) {
            int64_t tap = row % taps, at = p, offset = 0, step = 1;
            int inside = 1;
            for (int i = w->axes; i--;) {
                int64_t v = at % w->out[i] * w->stride[i] + tap % w->kernel[i] * w->dilation[i]
                    - w->pad[i];
                if (v < 0 || v >= w->size[i]) inside = 0;
                offset += v * step;
                step *= w->size[i];
                at /= w->out[i];
                tap /= w->kernel[i];
            }
            to[row * positions + p] = inside ? x[row / taps * area + offset] : 0.0f;
        }
}
/* Per batch and group: weights x unfolded input. */
static int mlo_conv_groups(
    mlo_call *c, float *z, const float *x, const float *k, const mlo_window *w, int64_t group) {
    int64_t batch = c->in[0]->dims[0];
    int64_t in = c->in[1]->dims[1];
    int64_t out = c->in[1]->dims[0] / group;
    const int64_t positions = mlo_window_all(w, w->out), taps = mlo_window_all(w, w->kernel);
    const int64_t area = mlo_window_all(w, w->size);
    float *columns = (float *)mlo_scratch(c->m, (size_t)(in * taps * positions), sizeof *columns);
    if (!columns) return mlo_failed(c->m);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t g = 0; g < group; g++) {
            mlo_unfold(columns, x + (b * group + g) * in * area, w, in);
            if (mlo_gemm(c->m, MLO_FLOAT, z + (b * group + g) * out * positions,
                    k + g * out * in * taps, in * taps, 1, columns, positions, 1, out, positions,
                    in * taps))
                break;
        }
    mlo_scratch_free(c->m, columns);
    return mlo_failed(c->m);
}
/* Adds a number for each channel, the third operand, if there is one. */
static int mlo_conv_bias(mlo_call *c, mlo_array *z, int axes) {
    if (c->n_in < 3 || !c->in[2]) return 0;
    mlo_array bias = *c->in[2]; /* [M] -> [M,1,1]: along the channel axis */
    const mlo_array *pair[] = { z, &bias };
    bias.rank = 1 + axes;
    for (int i = 0; i < axes; i++) bias.dims[i + 1] = 1;
    if (mlo_array_count(&bias) != z->dims[1])
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "%lld biases for %lld channels",
            (long long)mlo_array_count(&bias), (long long)z->dims[1]);
    return mlo_elements_any(c->m, c->node, z, pair, 2, &mlo_loops_Add, MLO_FLOAT, NULL);
}
static int mlo_run_Conv(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    mlo *m = c->m;
    mlo_window w;
    mlo_array *y = c->out[0], *z;
    MLO_TRY(mlo_conv_window(c->forms, &c->forms->in[0], &c->forms->in[1], &w));
    const mlo_array *x = mlo_as(m, c->in[0], MLO_FLOAT);
    const mlo_array *k = x ? mlo_as(m, c->in[1], MLO_FLOAT) : NULL;
    z = !k || y->dtype == MLO_FLOAT ? y : mlo_array_new(m, MLO_FLOAT, y->rank, y->dims);
    if (k && z
        && !mlo_conv_groups(c, (float *)z->data, (const float *)x->data, (const float *)k->data, &w,
            mlo_int(c->node, "group", 1)))
        mlo_conv_bias(c, z, w.axes);
    if (!m->error.code && z != y)
        mlo_convert(y->dtype, y->data, MLO_FLOAT, z->data, (size_t)mlo_array_count(z));
    mlo_as_free(m, x, c->in[0]);
    mlo_as_free(m, k, c->in[1]);
    if (z != y) mlo_array_free(m, z);
    return mlo_failed(m);
}

/* Sums of products of 8-bit numbers less their zero points, in float and yet exact: an operand is 16 high + low, so
 * that so many products stay below 2^24. */
enum { MLO_CONV_EXACT = (1 << 24) / (16 * 255) };
static int mlo_conv_integer(
    mlo_call *c, const mlo_array *x, const mlo_array *k, const mlo_window *w) {
    mlo *m = c->m;
    const size_t n = (size_t)mlo_array_count(x), n_k = (size_t)mlo_array_count(k);
    const size_t n_y = (size_t)mlo_array_count(c->out[0]);
    int32_t *y = (int32_t *)c->out[0]->data;
    float *xs = (float *)mlo_scratch(m, n + n_k + n_y, sizeof *xs);
    if (!xs) return mlo_failed(m);
    float *ks = xs + n, *ys = ks + n_k;
    mlo_convert(MLO_FLOAT, ks, MLO_INT64, k->data, n_k);
    for (int high = 0; high < 2 && !m->error.code; high++) {
        for (size_t i = 0; i < n; i++) {
            const int64_t v = ((const int64_t *)x->data)[i], low = ((v % 16) + 16) % 16;
            xs[i] = (float)(high ? (v - low) / 16 : low);
        }
        if (mlo_conv_groups(c, ys, xs, ks, w, mlo_int(c->node, "group", 1))) break;
        for (size_t i = 0; i < n_y; i++) y[i] = high ? y[i] + 16 * (int32_t)ys[i] : (int32_t)ys[i];
    }
    mlo_scratch_free(m, xs);
    return mlo_failed(m);
}
static int mlo_run_ConvInteger(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    mlo_window w;
    MLO_TRY(mlo_conv_window(c->forms, &c->forms->in[0], &c->forms->in[1], &w));
    const mlo_array *k = c->in[1], *of_x = c->n_in > 2 ? c->in[2] : NULL;
    const mlo_array *of_k = c->n_in > 3 ? c->in[3] : NULL;
    mlo_array zero = of_k ? *of_k : *k;
    for (int i = 1; i < k->rank && zero.rank == 1; i++) zero.dims[i] = 1; /* one for each channel */
    if (zero.rank == 1) zero.rank = k->rank;
    if (k->dims[0] && mlo_array_count(k) / k->dims[0] > MLO_CONV_EXACT)
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, c->node,
            "%lld products in a sum; up to %d are evaluated",
            (long long)(mlo_array_count(k) / k->dims[0]), (int)MLO_CONV_EXACT);
    mlo_array *a = mlo_minus_zero(c, c->in[0], of_x, 0);
    mlo_array *b = a ? mlo_minus_zero(c, k, of_k ? &zero : NULL, 0) : NULL;
    if (b && !c->m->error.code) mlo_conv_integer(c, a, b, &w);
    mlo_array_free(c->m, a);
    mlo_array_free(c->m, b);
    return mlo_failed(c->m);
}

/* ---- Attention: its form; it is carried through, not evaluated ------------ */

static int64_t mlo_dim_sum(int64_t a, int64_t b) { return a < 0 || b < 0 ? -1 : a + b; }
static int64_t mlo_dim_part(int64_t a, int64_t parts) {
    return a < 0 || parts < 1 ? -1 : a / parts;
}

/* Queries, keys, values as [batch, heads, length, width], or as [batch, length, heads x width]
 * with the numbers of heads as attributes. Outputs: as the queries; the keys and values with the
 * past ones before them, always of rank 4; the scores. */
static int mlo_shape_Attention(mlo_shapes *s) {
    mlo_form q = mlo_form_in(s, 0);
    mlo_form k = mlo_form_in(s, 1);
    mlo_form v = mlo_form_in(s, 2);
    mlo_form past = mlo_form_in(s, 4);
    mlo_form y = q;
    int64_t heads = mlo_int(s->node, "kv_num_heads", 0);
    int64_t queries = mlo_int(s->node, "q_num_heads", 0);
    s->out[0].dtype = q.dtype;
    if (q.rank < 3 || k.rank != q.rank || v.rank != q.rank) return 0;
    int flat = q.rank == 3;
    mlo_form keys = { k.dtype, 4,
        { k.dims[0], flat ? heads : k.dims[1], k.dims[flat ? 1 : 2],
            flat ? mlo_dim_part(k.dims[2], heads) : k.dims[3] } };
    mlo_form values = keys;
    values.dims[3] = flat ? mlo_dim_part(v.dims[2], heads) : v.dims[3];
    values.dtype = v.dtype;
    if (past.rank == 4)
        keys.dims[2] = values.dims[2] = mlo_dim_sum(past.dims[2], keys.dims[2]);
    else if (mlo_has_input(s->node, 4))
        keys.dims[2] = values.dims[2] = -1;
    y.dims[y.rank - 1] = !flat              ? v.dims[3]
        : values.dims[3] < 0 || queries < 1 ? -1
                                            : values.dims[3] * queries;
    mlo_form scores = { q.dtype, 4,
        { q.dims[0], flat ? queries : q.dims[1], q.dims[flat ? 1 : 2], keys.dims[2] } };
    const mlo_form all[] = { y, keys, values, scores };
    for (size_t i = 0; i < s->n_out && i < 4; i++) s->out[i] = all[i];
    return 0;
}

/* ---- RotaryEmbedding ------------------------------------------------------ */

/* Pairs of a head's channels turned by angles of the token's position: as [batch, heads, tokens,
 * width], or as [batch, tokens, heads x width] with the number of heads as an attribute. */
typedef struct {
    int64_t batch;
    int64_t tokens;
    int64_t heads;
    int64_t width; /* channels of a head */
    int64_t turned; /* channels of a head that turn, the first ones */
    int flat; /* 1: the second form */
    int interleaved; /* 1: pairs are neighbours; 0: halves */
    const int64_t *position; /* [batch, tokens] rows of the tables, NULL: row by row */
} mlo_rotation;

/* Takes the geometry from the forms; 0 where they are not known. -1: refused. */
static int mlo_rotation_of(const mlo_shapes *s, const mlo_form *x, mlo_rotation *r) {
    const mlo_node *n = s->node;
    const int64_t heads = mlo_int(n, "num_heads", 0),
                  turned = mlo_int(n, "rotary_embedding_dim", 0);
    memset(r, 0, sizeof *r);
    r->interleaved = mlo_int(n, "interleaved", 0) != 0;
    if (x->rank < 0) return 0;
    if (x->rank != 3 && x->rank != 4) {
        mlo_fail(s->m, MLO_E_SHAPE, n, "input of rank %d; 3 or 4 is needed", x->rank);
        return -1;
    }
    r->flat = x->rank == 3;
    r->heads = r->flat ? heads : x->dims[1];
    if (!mlo_form_known(x)) return 0;
    r->batch = x->dims[0];
    r->tokens = x->dims[r->flat ? 1 : 2];
    int64_t channels = x->dims[x->rank - 1];
    r->width = !r->flat ? channels : heads > 0 && channels % heads == 0 ? channels / heads : 0;
    r->turned = turned ? turned : r->width;
    if (r->width < 1 || r->turned < 0 || r->turned % 2 || r->turned > r->width) {
        mlo_fail(s->m, MLO_E_SHAPE, n,
            "%lld channels in %lld heads of which %lld turn; pairs are needed, and num_heads where "
            "the input has rank 3",
            (long long)channels, (long long)r->heads, (long long)r->turned);
        return -1;
    }
    return 1;
}
static int mlo_shape_RotaryEmbedding(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0);
    mlo_rotation r;
    s->out[0] = x;
    return mlo_rotation_of(s, &x, &r) < 0 ? mlo_failed(s->m) : mlo_same_type(s, 0, 1);
}
/* A table has a row for every token of the batch, or for every position. */
static int mlo_rotation_table(mlo_call *c, const mlo_rotation *r, size_t i, int64_t *rows) {
    const mlo_array *a = c->in[i];
    const int rank = r->position ? 2 : 3;
    *rows = a->rank == rank ? mlo_array_count(a) / (r->turned ? r->turned / 2 : 1) : 0;
    if (a->rank == rank && a->dims[rank - 1] == r->turned / 2
        && (r->position || (a->dims[0] == r->batch && a->dims[1] == r->tokens)))
        return 0;
    return mlo_fail(c->m, MLO_E_SHAPE, c->node, "a table %s for %lld tokens with %lld pairs",
        mlo_dims_text(c->m, a->rank, a->dims), (long long)r->tokens, (long long)r->turned / 2);
}
static void mlo_rotate(
    const mlo_rotation *r, const double *x, double *y, const double *cos, const double *sin) {
    const int64_t half = r->turned / 2;
    memcpy(y, x, (size_t)r->width * sizeof *y);
    for (int64_t k = 0; k < half; k++) {
        int64_t a = r->interleaved ? 2 * k : k, b = r->interleaved ? 2 * k + 1 : k + half;
        y[a] = x[a] * cos[k] - x[b] * sin[k];
        y[b] = x[a] * sin[k] + x[b] * cos[k];
    }
}
static int mlo_rotate_all(mlo_call *c, const mlo_rotation *r, const mlo_array *x, double *y,
    const mlo_array *cos, const mlo_array *sin, int64_t rows) {
    const int64_t half = r->turned / 2;
    for (int64_t i = 0; i < r->batch * r->tokens; i++) {
        int64_t row = r->position ? r->position[i] : i;
        if (row < 0 || row >= rows)
            return mlo_fail(c->m, MLO_E_DATA, c->node, "position %lld of a table of %lld",
                (long long)row, (long long)rows);
        for (int64_t h = 0; h < r->heads; h++) {
            int64_t at = r->flat ? i * r->heads + h
                                 : (i / r->tokens * r->heads + h) * r->tokens + i % r->tokens;
            mlo_rotate(r, (const double *)x->data + at * r->width, y + at * r->width,
                (const double *)cos->data + row * half, (const double *)sin->data + row * half);
        }
    }
    return 0;
}
static int mlo_run_RotaryEmbedding(mlo_call *c) {
    mlo *m = c->m;
    const mlo_array *in[4] = { NULL, NULL, NULL, NULL };
    mlo_rotation r;
    int64_t rows[2];
    MLO_TRY(mlo_need_inputs(c, 3));
    if (mlo_rotation_of(c->forms, &c->forms->in[0], &r) < 1) return mlo_failed(m);
    for (size_t i = 0; i < 4 && i < c->n_in; i++)
        if (c->in[i] && !(in[i] = mlo_as(m, c->in[i], i < 3 ? MLO_DOUBLE : MLO_INT64))) break;
    if (in[3] && !m->error.code) {
        r.position = (const int64_t *)in[3]->data;
        if (mlo_array_count(in[3]) != r.batch * r.tokens)
            mlo_fail(m, MLO_E_SHAPE, c->node, "positions %s for %lld tokens",
                mlo_dims_text(m, in[3]->rank, in[3]->dims), (long long)(r.batch * r.tokens));
    }
    mlo_array *y = m->error.code ? NULL : mlo_array_new(m, MLO_DOUBLE, in[0]->rank, in[0]->dims);
    if (y && !mlo_rotation_table(c, &r, 1, &rows[0]) && !mlo_rotation_table(c, &r, 2, &rows[1])
        && !mlo_rotate_all(
            c, &r, in[0], (double *)y->data, in[1], in[2], rows[0] < rows[1] ? rows[0] : rows[1]))
        mlo_convert(
            c->out[0]->dtype, c->out[0]->data, MLO_DOUBLE, y->data, (size_t)mlo_array_count(y));
    mlo_array_free(m, y);
    for (size_t i = 0; i < 4; i++)
        if (in[i]) mlo_as_free(m, in[i], c->in[i]);
    return mlo_failed(m);
}

/* ---- pooling -------------------------------------------------------------- */

static int mlo_pool_window(const mlo_shapes *s, const mlo_form *x, mlo_window *w) {
    if (x->rank < 3)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node,
            "input of rank %d; batch, channel and more are needed", x->rank);
    w->axes = x->rank - 2;
    MLO_TRY(mlo_window_list(s, "kernel_shape", w->axes, 1, w->kernel));
    for (int i = 0; i < w->axes; i++) w->size[i] = x->dims[i + 2];
    return mlo_window_of(s, w);
}
static int mlo_shape_MaxPool(mlo_shapes *s) {
    mlo_form x = mlo_form_in(s, 0);
    mlo_window w;
    s->out[0] = x;
    if (!mlo_attr_of(s->node, "kernel_shape"))
        return mlo_fail(s->m, MLO_E_GRAPH, s->node, "has no attribute kernel_shape");
    if (x.rank < 0) return 0;
    MLO_TRY(mlo_pool_window(s, &x, &w));
    for (int i = 0; i < w.axes; i++) s->out[0].dims[i + 2] = w.out[i];
    if (s->n_out > 1) {
        s->out[1] = s->out[0];
        s->out[1].dtype = MLO_INT64;
    }
    return 0;
}
/* The mean of the values under the window at output position `at`; padding counts as zeros, or for
 * nothing. */
static double mlo_pool_mean(
    const double *x, const mlo_window *w, int64_t at, int64_t taps, int padding) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t t = 0; t < taps; t++) {
        int64_t tap = t, p = at, offset = 0, step = 1;
        int inside = 1, counts = padding;
        for (int i = w->axes; i--; p /= w->out[i], tap /= w->kernel[i], step *= w->size[i]) {
            int64_t v = p % w->out[i] * w->stride[i] + tap % w->kernel[i] * w->dilation[i]
                - w->pad[i];
            if (v < 0 || v >= w->size[i]) inside = 0;
            if (v >= w->size[i] + w->after[i]) counts = 0;
            offset += v * step;
        }
        sum += inside ? x[offset] : 0;
        count += inside || counts;
    }
    return sum / (double)count;
}
static int mlo_run_AveragePool(mlo_call *c) {
    mlo_window w;
    mlo_array *y = c->out[0];
    int64_t positions = 1, taps = 1, area = 1;
    MLO_TRY(mlo_pool_window(c->forms, &c->forms->in[0], &w));
    for (int i = 0; i < w.axes; i++) {
        positions *= w.out[i];
        taps *= w.kernel[i];
        area *= w.size[i];
    }
    const int padding = mlo_int(c->node, "count_include_pad", 0) != 0;
    const mlo_array *x = mlo_as(c->m, c->in[0], MLO_DOUBLE);
    for (int64_t i = 0, n = x ? mlo_array_count(y) : 0; i < n; i++) {
        const double mean = mlo_pool_mean(
            (const double *)x->data + i / positions * area, &w, i % positions, taps, padding);
        mlo_convert(
            y->dtype, (char *)y->data + (size_t)i * mlo_dtype_size(y->dtype), MLO_DOUBLE, &mean, 1);
    }
    mlo_as_free(c->m, x, c->in[0]);
    return mlo_failed(c->m);
}
/* The largest value under the window at output position `at`, and where it lies (by rows, or by
 * columns); padding counts for nothing. */
static double mlo_pool_most(
    const double *x, const mlo_window *w, int64_t at, int64_t taps, int columns, int64_t *where) {
    double most = -(double)INFINITY;
    *where = 0;
    for (int64_t t = 0; t < taps; t++) {
        int64_t tap = t, p = at, offset = 0, step = 1, across = 0;
        int inside = 1;
        for (int i = w->axes; i--; p /= w->out[i], tap /= w->kernel[i], step *= w->size[i]) {
            int64_t v = p % w->out[i] * w->stride[i] + tap % w->kernel[i] * w->dilation[i]
                - w->pad[i];
            if (v < 0 || v >= w->size[i]) inside = 0;
            offset += v * step;
            across = across * w->size[i] + v;
        }
        if (inside && (x[offset] > most || x[offset] != x[offset])) {
            most = x[offset];
            *where = columns ? across : offset;
        }
    }
    return most;
}
static int mlo_run_MaxPool(mlo_call *c) {
    mlo *m = c->m;
    mlo_window w;
    mlo_array *y = c->out[0];
    int64_t positions = 1, taps = 1, area = 1, where;
    MLO_TRY(mlo_pool_window(c->forms, &c->forms->in[0], &w));
    int64_t *index = c->n_out > 1 && c->out[1] ? (int64_t *)c->out[1]->data : NULL;
    for (int i = 0; i < w.axes; i++) {
        positions *= w.out[i];
        taps *= w.kernel[i];
        area *= w.size[i];
    }
    const mlo_array *x = mlo_as(m, c->in[0], MLO_DOUBLE);
    for (int64_t i = 0, n = x ? mlo_array_count(y) : 0; i < n; i++) {
        double most = mlo_pool_most((const double *)x->data + i / positions * area, &w,
            i % positions, taps, mlo_int(c->node, "storage_order", 0) == 1, &where);
        mlo_convert(
            y->dtype, (char *)y->data + (size_t)i * mlo_dtype_size(y->dtype), MLO_DOUBLE, &most, 1);
        if (index) index[i] = i / positions * area + where;
    }
    mlo_as_free(m, x, c->in[0]);
    return mlo_failed(m);
}
