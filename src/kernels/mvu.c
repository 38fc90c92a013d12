/* mvu: the matrix-vector unit: y[n] = requantize(sum_k x[k] W[k][n] + bias[n]; M[n], S[n]). With a
 * table the result is table[y - lo].
 *
 * in:  x [.., K] int8, W [K, N] int8, bias [N] int32, mult [N] int32, shift [N] int32, perhaps
 *     table [hi - lo + 1]; then lo and hi are the bounds of y as an index.
 * out: y [.., N]. Verilog: mlo_mvu.
 *
 * x, W and bias may have any values of their types: C adds blocks that fit 32 bits into 64, ONNX
 * multiplies doubles (exact below 2^53), the hardware's accumulator is as wide as the worst sum.
 * In row blocks (the site has a tile) mlo_mvu_tiled keeps one block of W on chip instead of all,
 * and a tile (a group) of tokens passes block after block.
 *
 * error: the sum is exact; requantization half a step.
 * cost: (K/SIMD)(N/PE) cycles a token.
 */

#define MLO_FUNCTION_MVU            \
    "xd = Cast <to=11> (x)\n"       \
    "wd = Cast <to=11> (w)\n"       \
    "xw = MatMul (xd, wd)\n"        \
    "products = Cast <to=7> (xw)\n" \
    "b = Cast <to=7> (bias)\n"      \
    "acc = Add (products, b)\n"     \
    "m = Cast <to=7> (mult)\n"      \
    "s = Cast <to=7> (shift)\n" MLO_FUNCTION_REQUANTIZE

static const char mlo_mvu_function[] =
    "MVU <to, lo, hi> (x, w, bias, mult, shift) => (y)\n" MLO_FUNCTION_MVU
    "y = Cast <to=@to> (qc)\n";

static const char mlo_mvu_table_function[] =
    "MVUTable <to, lo, hi> (x, w, bias, mult, shift, table) => (y)\n" MLO_FUNCTION_MVU
        MLO_FUNCTION_TABLE;

static int mlo_mvu_shape(mlo_shapes *s) {
    if (s->n_in < 5 || s->in[0].rank < 1 || s->in[1].rank < 0) return 0;
    if (s->in[1].rank != 2)
        return mlo_fail(
            s->m, MLO_E_SHAPE, s->node, "W has %d dimensions; it must be [K, N]", s->in[1].rank);
    int64_t k = mlo_last_dim(&s->in[0]), wk = s->in[1].dims[0];
    if (k >= 0 && wk >= 0 && k != wk)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "x has %lld channels, W has %lld rows",
            (long long)k, (long long)wk);
    s->out[0] = s->in[0];
    s->out[0].dims[s->out[0].rank - 1] = s->in[1].dims[1];
    s->out[0].dtype = mlo_kernel_to(s->node);
    return 0;
}

/* The largest magnitude of an activation for which a float holds the sum of 64 products by 8-bit
 * weights exactly. */
enum { MLO_MVU_FLOATS = (1 << 24) / MLO_TILE_SUM / 128 };

/* z := x W, exactly: in floats, which processors multiply fastest; in doubles where activations are
 * too wide for floats. */
static int mlo_mvu_products(
    mlo *m, double *z, const mlo_array *x, const mlo_array *w, int64_t rows) {
    const int64_t k = w->dims[0], n = w->dims[1];
    int64_t most = 0;
    for (int64_t i = 0; i < rows * k; i++) {
        int64_t v = mlo_get(x, i);
        most = v > most ? v : -v > most ? -v : most;
    }
    const mlo_dtype core = most <= MLO_MVU_FLOATS ? MLO_FLOAT : MLO_DOUBLE;
    const mlo_array *a = mlo_as(m, x, core), *b = a ? mlo_as(m, w, core) : NULL;
    if (b && core == MLO_FLOAT)
        mlo_gemm_exact(m, z, (const float *)a->data, (const float *)b->data, rows, n, k);
    else if (b)
        mlo_gemm(m, core, z, a->data, k, 1, b->data, n, 1, rows, n, k);
    if (a) mlo_as_free(m, a, x);
    if (b) mlo_as_free(m, b, w);
    return mlo_failed(m);
}

/* Rows of sums on their way to what a unit makes of them. */
typedef struct {
    const double *sum; /* [rows, n] */
    const int64_t *word; /* [3, n]: bias, multiplier, shift */
    const mlo_array *table; /* NULL: it has none */
    mlo_array *y;
    int64_t rows;
    int64_t n;
    int64_t lo;
    int64_t hi;
    int64_t most[MLO_PIECES]; /* [piece]: the largest magnitude of a sum */
    int pieces;
} mlo_mvu_made;

static void mlo_mvu_piece(void *of, int piece) {
    mlo_mvu_made *r = (mlo_mvu_made *)of;
    const int64_t *bias = r->word, *mult = bias + r->n, *shift = mult + r->n;
    const int64_t end = mlo_piece_begins(r->rows, piece + 1, r->pieces) * r->n;
    int64_t most = 0;
    for (int64_t i = mlo_piece_begins(r->rows, piece, r->pieces) * r->n; i < end; i += r->n)
        for (int64_t j = 0; j < r->n; j++) {
            const int64_t acc = (int64_t)r->sum[i + j] + bias[j];
            const int64_t v = mlo_requantize(acc, mult[j], (int)shift[j], r->lo, r->hi);
            most = mlo_max(most, acc < 0 ? ~acc : acc);
            mlo_set_element(r->y, i + j, r->table ? mlo_get(r->table, v - r->lo) : v);
        }
    r->most[piece] = most;
}

/* y: what becomes of the sums; the handle keeps their largest magnitude. */
static void mlo_mvu_make(mlo_call *c, mlo_mvu_made *r) {
    int64_t *word = (int64_t *)mlo_scratch(c->m, 3 * (size_t)r->n + 1, sizeof *word);
    c->m->accumulator = 0;
    if (!word) return;
    for (int64_t i = 0; i < 3 * r->n; i++) word[i] = mlo_get(c->in[2 + i / r->n], i % r->n);
    r->word = word;
    r->pieces = mlo_pieces(c->m, r->rows, 8.0 * (double)(r->rows * r->n));
    mlo_pieces_do(c->m, mlo_mvu_piece, r, r->pieces);
    for (int i = 0; i < r->pieces; i++) c->m->accumulator = mlo_max(c->m->accumulator, r->most[i]);
    mlo_scratch_free(c->m, word);
}

static const mlo_limit mlo_mvu_limits[] = { { 2, 0, 1, INT32_MIN, INT32_MAX, "bias" },
    { 3, 0, 1, 0, 32767, "multiplier" }, { 4, 0, 1, 1, 62, "shift" }, { .what = NULL } };

static int mlo_mvu_run(mlo_call *c) {
    int table = mlo_is(c->node, "mlo.MVUTable");
    if (mlo_kernel_inputs(c, table ? 6 : 5)) return mlo_failed(c->m);
    const mlo_array *x = c->in[0], *w = c->in[1];
    if (mlo_kernel_activation(c, 0)) return mlo_failed(c->m);
    if (w->rank != 2 || x->rank < 1 || x->dims[x->rank - 1] != w->dims[0])
        return mlo_fail(c->m, MLO_E_SHAPE, c->node,
            "x %s and W %s do not fit; W must be [K, N] with K channels in x",
            mlo_dims_text(c->m, x->rank, x->dims), mlo_dims_text(c->m, w->rank, w->dims));
    if (w->dtype != MLO_INT8 || w->dims[0] < 1)
        return mlo_fail(c->m, MLO_E_SHAPE, c->node,
            "W is %s [%lld, %lld]; it must be INT8, with a row at least", mlo_dtype_name(w->dtype),
            (long long)w->dims[0], (long long)w->dims[1]);
    int64_t dims[MLO_MAX_RANK];
    int64_t k = w->dims[0];
    int64_t n = w->dims[1];
    int64_t rows = mlo_array_count(x) / k;
    for (size_t i = 2; i < 5; i++)
        if (mlo_kernel_count(c, i, n)) return mlo_failed(c->m);
    memcpy(dims, x->dims, sizeof dims);
    dims[x->rank - 1] = n;
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, dims);
    double *sum = (double *)mlo_scratch(c->m, (size_t)(rows * n) + 1, sizeof *sum);
    const int64_t lo = mlo_kernel_low(c->node), hi = mlo_kernel_high(c->node);
    mlo_mvu_made r = { sum, NULL, table ? c->in[5] : NULL, y, rows, n, lo, hi, { 0 }, 0 };
    if ((table && mlo_kernel_count(c, 5, hi - lo + 1)) || mlo_kernel_limits(c, mlo_mvu_limits) || !y
        || !sum || mlo_mvu_products(c->m, sum, x, w, rows))
        r.rows = 0;
    mlo_mvu_make(c, &r);
    mlo_scratch_free(c->m, sum);
    return mlo_failed(c->m);
}

/* PE must divide the output's channels; where the output is split into parts (merged projections),
 * the channels of each part. */
static int mlo_mvu_legal(const mlo_site *s, int64_t pe, int64_t simd) {
    return s->in[1].dims[0] % simd == 0 && s->in[1].dims[1] / s->parts % pe == 0;
}

/* The width of the weights: the model carries them as INT8, metadata mlo.weight_bits has their real
 * width. */
static int mlo_site_weight_bits(const mlo_site *s) {
    return (int)mlo_meta_within(s->m, s->node, mlo_key_weight_bits, 8, 2, 8);
}
/* The interval of one product. */
static mlo_interval mlo_mvu_product(const mlo_site *s) {
    return mlo_product_of(mlo_signed_bits(s->in_bits[0]), mlo_signed_bits(mlo_site_weight_bits(s)));
}
/* The interval of k products of xbits and wbits, and any bias. */
static mlo_interval mlo_mvu_sums(int64_t k, int xbits, int wbits) {
    return mlo_sum_of(
        mlo_sum_of_many(k, mlo_product_of(mlo_signed_bits(xbits), mlo_signed_bits(wbits))),
        mlo_signed_bits(32));
}
static mlo_interval mlo_mvu_acc(const mlo_site *s) {
    return mlo_mvu_sums(s->in[1].dims[0], s->in_bits[0], mlo_site_weight_bits(s));
}

static void mlo_mvu_intermediates(const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    int pbits = s->in_bits[0] + mlo_site_weight_bits(s), abits = mlo_bits_for(mlo_mvu_acc(s));
    mlo_interval product = mlo_mvu_product(s);
    mlo_interval acc = mlo_mvu_acc(s);
    mlo_interval sum = mlo_sum_of_many(s->in[1].dims[0], product);
    mlo_intermediate products = { "x W", product, 1, MLO_IN_INT32, MLO_IN_DOUBLE, pbits, 1,
        "rows[0].u_dots.quad[0].row[0].a" };
    mlo_note(l, products);
    mlo_note_hardware(l, "SIMD products", mlo_sum_of_many(u->simd, product), 1,
        pbits + mlo_clog2(u->simd), 1, "row[0].sum");
    mlo_note_golden(l, "K products", sum, 1, MLO_IN_INT64, MLO_IN_DOUBLE);
    mlo_note_all(l, "acc", acc, 1, abits, 1, "lane[0].acc");
    mlo_note_requantize(l, mlo_product_of(acc, mlo_multipliers), abits + 16,
        "lane[0].u_requantize.prod2", s->n_in > 5 ? mlo_index_bits(s) : s->out_bits);
}

/* In how many turns the requantizers take a group of PE sums, which is done every K/SIMD cycles:
 * the largest divisor of PE that is at most that many. */
static int64_t mlo_mvu_turns(int64_t pe, int64_t cycles) {
    int64_t turns = pe < cycles ? pe : cycles;
    while (pe % turns) turns--;
    return turns;
}

/* The number of row blocks, which divides the groups of PE channels: as many as still leave a
 * tile's pass so many cycles, since a change of banks takes one, and a block more weights than the
 * table has entries, since the table comes with each block. 0: there is one group, nothing to
 * divide. */
static int64_t mlo_mvu_blocks(
    int64_t folds, int64_t groups, int64_t tile, int64_t weights, int64_t table) {
    enum { PASS = 64, TABLES = 8 };
    int64_t blocks = groups, least = 2;
    while (blocks > 1
        && (groups % blocks || groups / blocks * folds * tile < PASS
            || groups / blocks * folds * weights < TABLES * table))
        blocks--;
    while (least < groups && groups % least) least++;
    return groups < 2 ? 0 : mlo_max(blocks, least);
}

static int mlo_mvu_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    int64_t k = s->in[1].dims[0], n = s->in[1].dims[1];
    int64_t turns = mlo_mvu_turns(pe, k / simd), lanes = pe / turns;
    int table = s->n_in > 5;
    int wbits = mlo_site_weight_bits(s);
    int xbits = s->in_bits[0];
    int ybits = s->out_bits;
    int index = mlo_index_bits(s);
    u->blocks = s->tile
        ? mlo_mvu_blocks(k / simd, n / pe, s->tile, pe * simd, table ? (int64_t)1 << index : 0)
        : 0;
    u->tile = u->blocks ? s->tile : 0;
    /* channels whose weights are on chip */
    const int64_t held = n / mlo_max(1, u->blocks);
    u->module = u->blocks ? "mlo_mvu_tiled" : "mlo_mvu";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, simd, xbits, k);
    u->out = mlo_port_make("m_axis", 0, pe, ybits, n);
    mlo_unit_memory(u, "s_axis_w", pe * simd * wbits, held / pe * (k / simd));
    mlo_unit_memory(u, "s_axis_c", lanes * 64, held / lanes);
    if (table)
        mlo_unit_memory(u, "s_axis_t", ybits, (int64_t)1 << index);
    else
        u->idle = "s_axis_t";
    mlo_unit_param(u, "K", k);
    mlo_unit_param(u, "N", n);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "SIMD", simd);
    mlo_unit_param(u, "XBITS", xbits);
    mlo_unit_param(u, "WBITS", wbits);
    mlo_unit_param(u, "ABITS", mlo_bits_for(mlo_mvu_acc(s)));
    mlo_unit_param(u, "YBITS", ybits);
    mlo_unit_param(u, "TABLE", table);
    if (table) mlo_unit_param(u, "TBITS", index);
    if (u->blocks) {
        mlo_unit_param(u, "TILE", u->tile);
        mlo_unit_param(u, "BLOCKS", u->blocks);
    }
    mlo_unit_shift(s, u);
    u->interval = k / simd * (n / pe);
    /* each pass takes a cycle more */
    if (u->blocks) u->interval += mlo_parts(mlo_parts(s->chunk, u->tile) * u->blocks, s->chunk);
    u->latency = (mlo_clog2(simd) + 1) / 2 + 11 + turns + table;
    u->multipliers = pe * simd;
    u->other = mlo_site_pow2(s) ? 0 : lanes;
    u->macs = k * n;
    u->flow = u->blocks ? MLO_FLOW_TILES : MLO_FLOW_MATRIX;
    u->turns = turns;
    return mlo_failed(s->m); /* reading the metadata may have failed */
}

static int mlo_mvu_promises(const mlo_site *s, const mlo_array *const *in) {
    int bits = mlo_site_weight_bits(s);
    if (s->m->error.code || mlo_pow2_channels(s, in[3], in[4])) return mlo_failed(s->m);
    for (int64_t i = 0, n = bits < 8 ? mlo_array_count(in[1]) : 0, top = (int64_t)1 << (bits - 1);
        i < n; i++)
        if (mlo_get(in[1], i) < -top || mlo_get(in[1], i) >= top)
            return mlo_fail(s->m, MLO_E_DATA, s->node,
                "weight %lld does not fit %d bits, though metadata say mlo.weight_bits",
                (long long)mlo_get(in[1], i), bits);
    return 0;
}

static void mlo_mvu_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    int64_t pe = u->pe, simd = u->simd, n = s->in[1].dims[1], folds = s->in[1].dims[0] / simd;
    const int wbits = (int)(u->memory[0].width / (pe * simd));
    if (k == 0) {
        int64_t nf = word / folds, kf = word % folds;
        const char *w = in[1]->dtype == MLO_INT8 && wbits == 8
            ? (const char *)in[1]->data + kf * simd * n + nf * pe
            : NULL;
        for (int64_t i = 0; w && i < simd; i++)
            for (int64_t p = 0; p < pe; p++) bits[p * simd + i] = (unsigned char)w[i * n + p];
        for (int64_t p = 0; !w && p < pe; p++)
            for (int64_t i = 0; i < simd; i++)
                mlo_put_bits(bits, (p * simd + i) * wbits, wbits,
                    (uint64_t)mlo_get(in[1], (kf * simd + i) * n + nf * pe + p));
    } else if (k == 1)
        mlo_pack_channels(s, u->memory[1].width / 64, word, in, 2, bits);
    /* all blocks have the same */
    else
        mlo_put_bits(bits, 0, u->out.bits, (uint64_t)mlo_get(in[5], word % u->memory[2].depth));
}

/* Counts two vectors of x, weights and channel words; PE dot products of SIMD, in pairs that share
 * multipliers; PE accumulators, and a tray of as many sums, from which the requantizers take in
 * turns: a multiplexer of LUTs with four ways each. A row's adder is that of its accumulator; a row
 * has none where a group takes one cycle. The bias's adder is not counted: the LUT coefficients are
 * fitted without it. */
static void mlo_mvu_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    const int64_t pe = u->pe;
    const int64_t simd = u->simd;
    const int64_t pairs = pe / 2;
    const int64_t k = s->in[1].dims[0];
    const int64_t folds = k / simd;
    const int64_t held = s->in[1].dims[1] / pe / mlo_max(1, u->blocks);
    const int64_t x = s->in_bits[0];
    const int64_t w = mlo_site_weight_bits(s);
    const int64_t acc = mlo_bits_for(mlo_mvu_acc(s));
    const int64_t sum = x + w + mlo_clog2(simd);
    const int64_t total = mlo_min(x + w + mlo_clog2(k) + 1, acc);
    const int table = s->n_in > 5;
    const int shift = mlo_site_pow2(s);
    const int q = table ? mlo_index_bits(s) : s->out_bits;
    const int word = 38 + (shift ? 0 : 16);
    const int64_t lanes = pe / u->turns;
    enum { CONTROL_LUTS = 60, CONTROL_FFS = 24 };
    const int64_t sums = folds > 1 ? total : 0;
    mlo_area row = { sums, simd * (w + x + w) + sums + total, 0, 0 };
    mlo_area lane = { total * mlo_parts(u->turns - 1, 3), total + word, 0, 0 };
    mlo_area_vector(a, simd * x, folds);
    mlo_area_param(a, pe * simd * w, pe * simd * w, folds * held, axi, banks);
    mlo_area_param(a, 64 * lanes, lanes * word, held * u->turns, axi, banks);
    mlo_area_tree4(&row, simd, x + w, 0);
    mlo_area_requantize(&lane, acc, 16, q, 1, shift);
    mlo_area_times(a, pe, &row);
    mlo_area_times(a, lanes, &lane);
    a->dsp += simd * (pairs * mlo_product_dsps(x + 2 * w, x) + pe % 2 * mlo_product_dsps(x, w));
    a->ff += simd * x + (pe - lanes) * q;
    /* the correction of low halves is summed once */
    if (pairs) {
        a->lut += pairs * (sum + simd);
        a->ff += simd * x;
        mlo_area_tree4(a, simd, x, 0);
    }
    if (table) mlo_area_lookup(a, pe, q, s->out_bits, axi, banks);
    mlo_area_skid(a, pe * s->out_bits + 3);
    if (u->blocks) {
        mlo_area_tile(a, simd * x, folds, u->tile, u->blocks);
        mlo_area_untile(a, pe * s->out_bits, held, u->tile, u->blocks);
    }
    a->lut += CONTROL_LUTS;
    a->ff += CONTROL_FFS + mlo_clog2(u->turns) + mlo_clog2(folds) + 2 * mlo_clog2(held)
        + mlo_clog2(folds * held);
}

/* ---- the cards -------------------------------------------------------------- */

static const mlo_kernel mlo_mvu_table_kernel = {
    .op = { "mlo.MVUTable", mlo_mvu_shape, mlo_mvu_run, 6 },
    .kind = MLO_KERNEL_MATRIX,
    .series = "mvu",
    .finn = "MVAU",
    .table = 1,
    .shifts = 1,
    .function = mlo_mvu_table_function,
    .limits = mlo_mvu_limits,
    .pe_axis = "output channels",
    .simd_axis = "input channels",
    .legal = mlo_mvu_legal,
    .unit = mlo_mvu_unit,
    .intermediates = mlo_mvu_intermediates,
    .area = mlo_mvu_area,
    .promises = mlo_mvu_promises,
    .pack = mlo_mvu_pack,
};

static const mlo_kernel mlo_mvu_kernel = {
    .op = { "mlo.MVU", mlo_mvu_shape, mlo_mvu_run, 5 },
    .kind = MLO_KERNEL_MATRIX,
    .series = "mvu",
    .finn = "MVAU",
    .with_table = &mlo_mvu_table_kernel,
    .shifts = 1,
    .function = mlo_mvu_function,
    .limits = mlo_mvu_limits,
    .pe_axis = "output channels",
    .simd_axis = "input channels",
    .legal = mlo_mvu_legal,
    .unit = mlo_mvu_unit,
    .intermediates = mlo_mvu_intermediates,
    .area = mlo_mvu_area,
    .promises = mlo_mvu_promises,
    .pack = mlo_mvu_pack,
};
