/* quant: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
 *
 * in:  values, scale, zero point (absent: 0).
 * out: y = saturate(round(x / scale) + zero), ties to even; or (q - zero) x scale.
 *
 * invariant: computed in float, as ONNX Runtime does; int32 inputs of DequantizeLinear go by
 *     double, exact up to 2^53.
 * example: x = 0.74, scale 0.5, zero 10: q = 11.
 * cost: one pass; scales per tensor, per axis, or per block along the axis.
 */

/* Bounds of an integer type. */
static void mlo_bounds(mlo_dtype t, double *lo, double *hi) {
    int bits = (int)mlo_dtype_bits(t);
    int is_signed = t == MLO_INT8 || t == MLO_INT16 || t == MLO_INT32 || t == MLO_INT4
        || t == MLO_INT2;
    *lo = is_signed ? -ldexp(1, bits - 1) : 0;
    *hi = ldexp(1, is_signed ? bits - 1 : bits) - 1;
}

/* How element i of x finds its scale: at (i / inner / n) for per-axis ones. */
typedef struct {
    int64_t inner; /* elements of x behind the axis */
    int64_t n; /* elements along the axis */
    int64_t block; /* elements along the axis that share a scale; 0: no blocks */
    int64_t per_axis; /* 1: there is an axis */
} mlo_scales;

static int mlo_scales_of(mlo_call *c, mlo_scales *q) {
    const mlo_array *x = c->in[0], *scale = c->in[1], *zero = c->n_in > 2 ? c->in[2] : NULL;
    int64_t count = mlo_array_count(scale);
    int axis;
    q->inner = 1;
    q->n = 1;
    q->block = 0;
    q->per_axis = 0;
    if (zero && mlo_array_count(zero) != count)
        return mlo_fail(c->m, MLO_E_SHAPE, c->node, "%lld zero points for %lld scales",
            (long long)mlo_array_count(zero), (long long)count);
    if (!scale->rank || (scale->rank == 1 && count == 1)) return 0;
    MLO_TRY(mlo_axis(c->forms, mlo_int(c->node, "axis", 1), x->rank, &axis));
    for (int i = axis + 1; i < x->rank; i++) q->inner *= x->dims[i];
    q->n = x->dims[axis];
    q->per_axis = 1;
    int64_t blocks = scale->rank == x->rank && x->rank > 1 ? scale->dims[axis] : 0;
    if (blocks > 0) q->block = (q->n + blocks - 1) / blocks;
    int64_t want = blocks > 0 ? mlo_array_count(x) / (q->n ? q->n : 1) * blocks : q->n;
    if (mlo_int(c->node, "block_size", 0) > 0 && blocks > 0)
        q->block = mlo_int(c->node, "block_size", 0);
    return count == want
        ? 0
        : mlo_fail(c->m, MLO_E_SHAPE, c->node, "%lld scales for %lld channels of axis %d",
              (long long)count, (long long)q->n, axis);
}
static int64_t mlo_scale_at(const mlo_scales *q, int64_t i) {
    if (!q->per_axis) return 0;
    int64_t k = i / q->inner % q->n;
    if (!q->block) return k;
    int64_t blocks = (q->n + q->block - 1) / q->block;
    return (i / q->inner / q->n * blocks + k / q->block) * q->inner + i % q->inner;
}

static int mlo_shape_QuantizeLinear(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    int64_t named = mlo_int(s->node, "output_dtype", 0);
    s->out[0].dtype = mlo_present(s, 2) ? mlo_form_in(s, 2).dtype
        : named                         ? (mlo_dtype)named
                                        : MLO_UINT8;
    return 0;
}
static int mlo_shape_DequantizeLinear(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    int64_t named = mlo_int(s->node, "output_dtype", 0);
    s->out[0].dtype = named ? (mlo_dtype)named : mlo_form_in(s, 1).dtype;
    return 0;
}

/* r[k] = x[k] / scale + zero, rounded unless the result is a float: elements i, i + 1, .. of the
 * whole. All pieces are of one length, which lets a compiler make vectors of them at -O2: what is
 * beyond n is 1. */
enum { MLO_QUANT_PIECE = 256 };
static void mlo_quantize_piece(const float *x, const float *scale, const double *zero,
    const mlo_scales *q, int64_t i, int64_t n, int round, double *r) {
    float v[MLO_QUANT_PIECE], by[MLO_QUANT_PIECE];
    double offset[MLO_QUANT_PIECE];
    int64_t next = mlo_scale_at(q, i);
    int64_t step = q->per_axis && q->inner == 1 && !q->block;
    memcpy(v, x, (size_t)n * sizeof *v);
    /* the last axis: scales as they lie in memory */
    for (int64_t k = 0, run; step && k < n; k += run, next = 0) {
        run = mlo_min(n - k, q->n - next);
        memcpy(by + k, scale + next, (size_t)run * sizeof *by);
        for (int64_t j = 0; j < run; j++) offset[k + j] = zero ? zero[next + j] : 0;
    }
    for (int64_t k = 0; !step && k < n; k++) {
        by[k] = scale[next];
        offset[k] = zero ? zero[next] : 0;
        if (q->per_axis) next = mlo_scale_at(q, i + k + 1);
    }
    for (int64_t k = n; k < MLO_QUANT_PIECE; k++) offset[k] = v[k] = by[k] = 1;
    for (int64_t k = 0; k < MLO_QUANT_PIECE; k++) r[k] = (double)(v[k] / by[k]);
    /* to an integer, half to even, below 2^51; above it is clipped anyway */
    for (int64_t k = 0; round && k < MLO_QUANT_PIECE; k++)
        r[k] = (r[k] + 6755399441055744.0) - 6755399441055744.0;
    for (int64_t k = 0; zero && k < MLO_QUANT_PIECE; k++) r[k] += offset[k];
}

/* A tensor's way to its integers. */
typedef struct {
    const float *x;
    int64_t n;
    const float *scale;
    const double *zero; /* NULL: 0 */
    mlo_scales q;
    mlo_dtype to;
    char *y;
    double lo;
    double hi;
    int pieces;
} mlo_quantized;

/* A piece that is clipped already: weights, of which there are many. */
static void mlo_quantized_bytes(const double *r, int8_t *y, int64_t n) {
    int8_t byte[MLO_QUANT_PIECE];
    for (int64_t k = 0; k < MLO_QUANT_PIECE; k++) byte[k] = (int8_t)(int)r[k];
    memcpy(y, byte, (size_t)n);
}

static void mlo_quantized_piece(void *of, int piece) {
    const mlo_quantized *w = (const mlo_quantized *)of;
    const int64_t parts = (w->n + MLO_QUANT_PIECE - 1) / MLO_QUANT_PIECE;
    const int64_t first = mlo_piece_begins(parts, piece, w->pieces) * MLO_QUANT_PIECE;
    const int64_t last = mlo_piece_begins(parts, piece + 1, w->pieces) * MLO_QUANT_PIECE;
    const int64_t end = mlo_min(w->n, last);
    for (int64_t i = first; i < end; i += MLO_QUANT_PIECE) {
        const int64_t n = mlo_min(end - i, MLO_QUANT_PIECE);
        double r[MLO_QUANT_PIECE];
        mlo_quantize_piece(w->x + i, w->scale, w->zero, &w->q, i, n, !mlo_dtype_is_float(w->to), r);
        for (int64_t k = 0; k < MLO_QUANT_PIECE; k++) {
            const double v = r[k] > w->lo ? r[k] : w->lo;
            r[k] = v < w->hi ? v : w->hi;
        }
        if (w->to == MLO_INT8)
            mlo_quantized_bytes(r, (int8_t *)(void *)w->y + i, n);
        else
            mlo_convert(w->to, w->y + (size_t)i * mlo_dtype_size(w->to), MLO_DOUBLE, r, (size_t)n);
    }
}

static int mlo_run_QuantizeLinear(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    mlo *m = c->m;
    mlo_array *y = c->out[0];
    mlo_quantized w = { .lo = -(double)INFINITY, .hi = (double)INFINITY };
    MLO_TRY(mlo_scales_of(c, &w.q));
    const mlo_array *zero = c->n_in > 2 ? c->in[2] : NULL;
    const mlo_array *x = mlo_as(m, c->in[0], MLO_FLOAT);
    const mlo_array *s = x ? mlo_as(m, c->in[1], MLO_FLOAT) : NULL;
    const mlo_array *z = s && zero ? mlo_as(m, zero, MLO_DOUBLE) : NULL;
    if (!mlo_dtype_is_float(y->dtype)) mlo_bounds(y->dtype, &w.lo, &w.hi);
    if (!m->error.code) {
        w.x = (const float *)x->data;
        w.n = mlo_array_count(x);
        w.scale = (const float *)s->data;
        w.zero = z ? (const double *)z->data : NULL;
        w.to = y->dtype;
        w.y = (char *)y->data;
        w.pieces = mlo_pieces(m, w.n / MLO_QUANT_PIECE, 8.0 * (double)w.n);
        mlo_pieces_do(m, mlo_quantized_piece, &w, w.pieces);
    }
    mlo_as_free(m, x, c->in[0]);
    mlo_as_free(m, s, c->in[1]);
    mlo_as_free(m, z, zero);
    return mlo_failed(m);
}
static int mlo_run_DequantizeLinear(mlo_call *c) {
    MLO_TRY(mlo_need_inputs(c, 2));
    mlo *m = c->m;
    mlo_array *y = c->out[0];
    mlo_scales q;
    MLO_TRY(mlo_scales_of(c, &q));
    const mlo_array *zero = c->n_in > 2 ? c->in[2] : NULL;
    const mlo_array *x = mlo_as(m, c->in[0], MLO_DOUBLE);
    const mlo_array *s = x ? mlo_as(m, c->in[1], MLO_FLOAT) : NULL;
    const mlo_array *z = s && zero ? mlo_as(m, zero, MLO_DOUBLE) : NULL;
    int64_t n = x ? mlo_array_count(x) : 0;
    for (int64_t i = 0; s && i < n && !m->error.code; i++) {
        int64_t at = mlo_scale_at(&q, i);
        double d = ((const double *)x->data)[i] - (z ? ((const double *)z->data)[at] : 0.0);
        float v = (float)d * ((const float *)s->data)[at];
        mlo_convert(
            y->dtype, (char *)y->data + (size_t)i * mlo_dtype_size(y->dtype), MLO_FLOAT, &v, 1);
    }
    mlo_as_free(m, x, c->in[0]);
    mlo_as_free(m, s, c->in[1]);
    mlo_as_free(m, z, zero);
    return mlo_failed(m);
}

/* DynamicQuantizeLinear: uint8, its range always containing 0. */
static int mlo_shape_DynamicQuantizeLinear(mlo_shapes *s) {
    s->out[0] = mlo_form_in(s, 0);
    s->out[0].dtype = MLO_UINT8;
    if (s->n_out > 1) s->out[1] = mlo_form_scalar(MLO_FLOAT);
    if (s->n_out > 2) s->out[2] = mlo_form_scalar(MLO_UINT8);
    return 0;
}
static int mlo_run_DynamicQuantizeLinear(mlo_call *c) {
    if (c->in[0]->dtype != MLO_FLOAT)
        return mlo_fail(
            c->m, MLO_E_TYPE, c->node, "is not defined for %s", mlo_dtype_name(c->in[0]->dtype));
    const float *x = (const float *)c->in[0]->data;
    float lo = 0, hi = 0;
    int64_t n = mlo_array_count(c->in[0]);
    for (int64_t i = 0; i < n; i++) {
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
    }
    float scale = (hi - lo) / 255.0f;
    float zero = scale > 0 ? rintf(fmaxf(0.0f, fminf(255.0f, -lo / scale))) : 0.0f;
    if (c->n_out > 1 && c->out[1]) *(float *)c->out[1]->data = scale;
    if (c->n_out > 2 && c->out[2]) *(uint8_t *)c->out[2]->data = (uint8_t)zero;
    for (int64_t i = 0; i < n; i++) {
        float v = scale > 0 ? rintf(x[i] / scale) + zero : 0.0f;
        ((uint8_t *)c->out[0]->data)[i] = (uint8_t)(v > 0 ? v < 255 ? v : 255 : 0);
    }
    return 0;
}
