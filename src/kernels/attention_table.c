/* attention_table: attention of a network of integers, exactly as it is rounded there.
 *
 * in:  q [B, TQ, H*D], k, v [B, TK, KVH*D] int8 or int16, mask [B, TK] bool (true: the key is shown),
 *     p = [N, MO, SO, MP, SP, HP, MR, SR] int32, score [256] int8 (hide: [512]), weight [256] int32.
 *     Attributes: heads = H; kv_heads = KVH (absent: H), as those of Attention; hide = 1: keys whose mask is
 *     false are hidden; hide = 2: those, and key j of query i where j > i + past; weight_bits: what the largest
 *     weight takes; least_bits: what weight[0], that of a row's largest score, takes at least; past = TK - TQ (absent:
 *     0): so many keys and values in front are those of earlier tokens.
 * out: y [B, TQ, H*D]. Verilog: mlo_attention_table.
 *
 *     r[j] = score[clip((q . k[j] MR + 2^(SR-1)) >> SR) + 128]     of 8 bits; of a hidden key 256 further
 *     e[j] = weight[max r - r[j]]
 *     w[j] = min((floor(e[j] N / sum e) MP + 2^(SP-1)) >> SP, HP)
 *     y[d] = requantize(sum_j w[j] v[j][d]; MO, SO)
 *
 * All keys count, those that are hidden by another part of the table: where a mask is a number that is added to
 * scores, a network of integers knows no minus infinity. Deeploy's iSoftmax is such a weight table of 256, since
 * it is of integers of 8 bits; what is done number by number in front of it is the score table.
 *
 * The hardware takes the largest sum of products, shown and hidden, and looks that up: so score must not fall.
 * It divides once a row, N 2^K by sum e, rounded up; e times that, K places down, is floor(e N / sum e), exactly,
 * with K = 2 weight_bits + LT places (mlo_attention_quotient.v says why).
 *
 * error: none: these are the network's own integers.
 * cost: as Attention; two tables a lane, PE products of 25 bits and more for the quotients.
 */
enum {
    MLO_TABLE_N,
    MLO_TABLE_MO,
    MLO_TABLE_SO,
    MLO_TABLE_MP,
    MLO_TABLE_SP,
    MLO_TABLE_HP,
    MLO_TABLE_MR,
    MLO_TABLE_SR,
    MLO_TABLE_NUMBERS,
    MLO_TABLE_SCORES = 256,
    MLO_TABLE_WEIGHT_BITS = 18,
    MLO_TABLE_PAST = 65534,
    MLO_TABLE_MP_MOST = 65535,
    MLO_TABLE_MR_MOST = 262143
};

static const char mlo_attention_table_function[] =
    "AttentionTable <to, lo, hi, heads, weight_bits, least_bits, kv_heads=0, hide=0, past=0> (q_, "
    "k_, v_, "
    "mask, p, score, "
    "weight) => (y)\n" MLO_ATTENTION_SCORES "products = MatMul (qh, kh)\n"
    "acc_s = Cast <to=7> (products)\n"
    "p64 = Cast <to=7> (p)\n"
    "i0 = Constant <value_int=0> ()\n"
    "i1 = Constant <value_int=1> ()\n"
    "i2 = Constant <value_int=2> ()\n"
    "i3 = Constant <value_int=3> ()\n"
    "i4 = Constant <value_int=4> ()\n"
    "i5 = Constant <value_int=5> ()\n"
    "i6 = Constant <value_int=6> ()\n"
    "i7 = Constant <value_int=7> ()\n"
    "mr = Gather (p64, i6)\n"
    "sr = Gather (p64, i7)\n"
    "dr = Pow (i2, sr)\n"
    "hr = Div (dr, i2)\n"
    "ra = Mul (acc_s, mr)\n"
    "rb = Add (ra, hr)\n"
    "rc = Mod (rb, dr)\n"
    "rd = Sub (rb, rc)\n"
    "re = Div (rd, dr)\n"
    "rl = Constant <value_int=-128> ()\n"
    "rh = Constant <value_int=127> ()\n"
    "low = Less (re, rl)\n"
    "rg = Where (low, rl, re)\n"
    "high = Less (rh, rg)\n"
    "rs = Where (high, rh, rg)\n"
    "at_ = Sub (rs, rl)\n";
static const char mlo_attention_table_ending[] =
    /* hidden keys */
    "q_shape = Shape (q_)\n"
    "k_shape = Shape (k_)\n"
    "tq = Gather (q_shape, i1)\n"
    "tk = Gather (k_shape, i1)\n"
    "q_at = Range (i0, tq, i1)\n"
    "k_at = Range (i0, tk, i1)\n"
    "past_ = Constant <value_int=@past> ()\n"
    "q_own = Add (q_at, past_)\n"
    "q_col = Unsqueeze <axes=[1]> (q_own)\n"
    "behind_ = Less (q_col, k_at)\n"
    "hide_ = Constant <value_int=@hide> ()\n"
    "hides = Less (i0, hide_)\n"
    "hides_behind = Less (i1, hide_)\n"
    "behind = And (behind_, hides_behind)\n"
    "mask4 = Unsqueeze <axes=[1, 2]> (mask)\n"
    "masked = Not (mask4)\n"
    "either = Or (masked, behind)\n"
    "hidden = And (either, hides)\n"
    "c256 = Constant <value_int=256> ()\n"
    "half_at = Where (hidden, c256, i0)\n"
    "at = Add (at_, half_at)\n"
    "r = Gather (score, at)\n"
    /* weights, exact quotients (the largest is of floats: ONNX Runtime has no ReduceMax of all integers) */
    "rf = Cast <to=1> (r)\n"
    "largest = ReduceMax <axes=[-1], keepdims=1> (rf)\n"
    "below_ = Sub (largest, rf)\n"
    "below = Cast <to=7> (below_)\n"
    "e_ = Gather (weight, below)\n"
    "e = Cast <to=7> (e_)\n"
    "sum_e = ReduceSum <axes=[-1], keepdims=1> (e)\n"
    "n = Gather (p64, i0)\n"
    "en = Mul (e, n)\n"
    "quotient = Div (en, sum_e)\n" /* nothing negative here, so Div rounds down */
    "mp = Gather (p64, i3)\n"
    "sp = Gather (p64, i4)\n"
    "hp = Gather (p64, i5)\n"
    "dp = Pow (i2, sp)\n"
    "hf = Div (dp, i2)\n"
    "wa = Mul (quotient, mp)\n"
    "wb = Add (wa, hf)\n"
    "w_ = Div (wb, dp)\n"
    "top_w = Less (hp, w_)\n"
    "w = Where (top_w, hp, w_)\n"
    "ed = Cast <to=11> (w)\n"
    "m = Gather (p64, i1)\n"
    "s = Gather (p64, i2)\n" MLO_ATTENTION_MIX;

static const mlo_limit mlo_attention_table_limits[] = { { 4, MLO_TABLE_N, MLO_TABLE_NUMBERS, 1, 255,
                                                            "largest quotient" },
    { 4, MLO_TABLE_MO, MLO_TABLE_NUMBERS, 0, 32767, "multiplier" },
    { 4, MLO_TABLE_SO, MLO_TABLE_NUMBERS, 1, 62, "shift" },
    { 4, MLO_TABLE_MP, MLO_TABLE_NUMBERS, 0, MLO_TABLE_MP_MOST, "multiplier of quotients" },
    { 4, MLO_TABLE_SP, MLO_TABLE_NUMBERS, 1, 62, "shift of quotients" },
    { 4, MLO_TABLE_HP, MLO_TABLE_NUMBERS, 0, 255, "largest weight of a value" },
    { 4, MLO_TABLE_MR, MLO_TABLE_NUMBERS, 0, MLO_TABLE_MR_MOST, "multiplier of scores" },
    { 4, MLO_TABLE_SR, MLO_TABLE_NUMBERS, 1, MLO_ATTENTION_SHIFT, "shift of scores" },
    { 6, 0, 1, 0, (1 << MLO_TABLE_WEIGHT_BITS) - 1, "weight" }, { .what = NULL } };

static const char mlo_attention_table_name[] = "mlo.AttentionTable";
static int mlo_attention_tabled(const mlo_node *n) { return mlo_is(n, mlo_attention_table_name); }
static int mlo_table_hides(const mlo_node *n) { return (int)mlo_int(n, "hide", 0); }
static int mlo_table_weight_bits(const mlo_node *n) { return (int)mlo_int(n, "weight_bits", 0); }
static int mlo_table_least_bits(const mlo_node *n) { return (int)mlo_int(n, "least_bits", 0); }
/* Keys and values of earlier tokens, in front of the frame's own. */
static int64_t mlo_table_past(const mlo_node *n) { return mlo_int(n, "past", 0); }
static int64_t mlo_table_scores(const mlo_node *n) {
    return MLO_TABLE_SCORES << (mlo_table_hides(n) > 0);
}

/* Does a score never fall, has the largest one a weight, and do weights have the bits they are said to have? */
static int mlo_table_check(
    mlo *m, const mlo_node *n, const mlo_array *score, const mlo_array *weight) {
    const int64_t most = mlo_two_to(mlo_table_weight_bits(n));
    for (int64_t i = 1; i < mlo_table_scores(n); i++)
        if (i % MLO_TABLE_SCORES && mlo_get(score, i) < mlo_get(score, i - 1))
            return mlo_fail(m, MLO_E_DATA, n,
                "score %lld follows %lld in its table; hardware takes the largest before it looks "
                "them up, so none may be below the one before",
                (long long)mlo_get(score, i), (long long)mlo_get(score, i - 1));
    for (int64_t i = 0; i < MLO_TABLE_SCORES; i++)
        if (mlo_get(weight, i) < 0 || mlo_get(weight, i) >= most)
            return mlo_fail(m, MLO_E_DATA, n, "weight %lld is not within 0..%lld",
                (long long)mlo_get(weight, i), (long long)most - 1);
    if (mlo_get(weight, 0) < mlo_two_to(mlo_table_least_bits(n) - 1))
        return mlo_fail(m, MLO_E_DATA, n,
            "weight %lld of a row's largest score; by least_bits it is %lld at least",
            (long long)mlo_get(weight, 0), (long long)mlo_two_to(mlo_table_least_bits(n) - 1));
    return 0;
}

/* Are the attributes what hardware can be built for? */
static int mlo_table_attributes(mlo *m, const mlo_node *n) {
    const int bits = mlo_table_weight_bits(n), least = mlo_table_least_bits(n);
    if (bits < 2 || bits > MLO_TABLE_WEIGHT_BITS || least < 1 || least > bits)
        return mlo_fail(m, MLO_E_DATA, n,
            "weight_bits %d, least_bits %d; weights have 2..%d bits, and that of the largest score "
            "1 of them at least",
            bits, least, (int)MLO_TABLE_WEIGHT_BITS);
    if (mlo_table_hides(n) < 0 || mlo_table_hides(n) > 2)
        return mlo_fail(m, MLO_E_DATA, n, "hide %d is not 0, 1 or 2", mlo_table_hides(n));
    if (mlo_table_past(n) < 0 || mlo_table_past(n) > MLO_TABLE_PAST)
        return mlo_fail(m, MLO_E_DATA, n, "past %lld is not within 0..%d",
            (long long)mlo_table_past(n), (int)MLO_TABLE_PAST);
    return 0;
}

/* One row: the query that is key i of one head, of keys and values whose rows are `stride` apart. */
static void mlo_table_row(const mlo_row_tables *t, const mlo_node *n, const mlo_row *r, int64_t i,
    const int32_t *q, const int32_t *k, const int32_t *v, mlo_array *y, int64_t y_at, int64_t *e) {
    for (int64_t j = 0; j < r->tk; j++) {
        int64_t s = 0;
        const int hidden = !mlo_get(r->mask, r->mask_at + j) || (t->hide == 2 && j > i);
        for (int64_t d = 0; d < r->d; d++) s += (int64_t)q[d] * k[j * r->stride + d];
        e[j] = mlo_table_score(t, s, hidden);
    }
    mlo_table_weigh(t, e, r->tk);
    for (int64_t d = 0; d < r->d; d++) {
        int64_t acc = 0;
        for (int64_t j = 0; j < r->tk; j++) acc += e[j] * v[j * r->stride + d];
        mlo_set_element(y, y_at + d,
            mlo_requantize(acc, t->p[MLO_TABLE_MO], t->p[MLO_TABLE_SO], mlo_kernel_low(n),
                mlo_kernel_high(n)));
    }
}

/* All frames, tokens, heads. */
static void mlo_table_rows(const mlo_call *c, const mlo_row_tables *t, const int32_t *const x[3],
    mlo_array *y, int64_t *e) {
    const mlo_array *q = c->in[0], *k = c->in[1];
    const int64_t heads = mlo_attention_heads(c->node), ch = q->dims[2], width = k->dims[2];
    const int64_t readers = heads / mlo_attention_kv_heads(c->node);
    mlo_row r;
    memset(&r, 0, sizeof r);
    r.tk = k->dims[1];
    r.d = ch / heads;
    r.stride = width;
    r.mask = c->in[3];
    for (int64_t f = 0; f < q->dims[0]; f++)
        for (int64_t i = 0; i < q->dims[1]; i++)
            for (int64_t h = 0; h < heads; h++) {
                const int64_t at = (f * q->dims[1] + i) * ch + h * r.d;
                const int64_t kv = f * r.tk * width + h / readers * r.d;
                r.mask_at = f * r.tk;
                mlo_table_row(t, c->node, &r, i + mlo_table_past(c->node), x[0] + at, x[1] + kv,
                    x[2] + kv, y, at, e);
            }
}

static int mlo_attention_table_run(mlo_call *c) {
    mlo *m = c->m;
    const int64_t past = mlo_table_past(c->node);
    int32_t p[MLO_TABLE_NUMBERS], weight[MLO_TABLE_SCORES];
    int8_t score[2 * MLO_TABLE_SCORES];
    if (mlo_kernel_inputs(c, 7) || mlo_table_attributes(m, c->node)
        || mlo_kernel_count(c, 4, MLO_TABLE_NUMBERS)
        || mlo_kernel_counts(c, 5, mlo_table_scores(c->node), 2 * (int64_t)MLO_TABLE_SCORES)
        || mlo_kernel_count(c, 6, MLO_TABLE_SCORES) || mlo_attention_forms(c)
        || mlo_kernel_limits(c, mlo_attention_table_limits)
        || mlo_table_check(m, c->node, c->in[5], c->in[6]))
        return mlo_failed(m);
    if (past && c->in[1]->dims[1] != c->in[0]->dims[1] + past)
        return mlo_fail(m, MLO_E_SHAPE, c->node,
            "%lld keys for %lld queries and %lld earlier ones; they are to be as many together",
            (long long)c->in[1]->dims[1], (long long)c->in[0]->dims[1], (long long)past);
    for (int k = 0; k < MLO_TABLE_NUMBERS; k++) p[k] = (int32_t)mlo_get(c->in[4], k);
    for (int64_t k = 0; k < mlo_table_scores(c->node); k++) score[k] = (int8_t)mlo_get(c->in[5], k);
    for (int k = 0; k < MLO_TABLE_SCORES; k++) weight[k] = (int32_t)mlo_get(c->in[6], k);
    const mlo_row_tables t = { p, score, weight, mlo_table_hides(c->node) };
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), 3, c->in[0]->dims);
    int64_t *e = (int64_t *)mlo_scratch(m, (size_t)c->in[1]->dims[1], sizeof *e);
    int32_t *x[3];
    for (int k = 0; k < 3; k++) x[k] = mlo_attention_wide(m, c->in[k]);
    const int32_t *const given[3] = { x[0], x[1], x[2] };
    if (y && e && x[0] && x[1] && x[2]) mlo_table_rows(c, &t, given, y, e);
    for (int k = 0; k < 3; k++) mlo_scratch_free(m, x[k]);
    mlo_scratch_free(m, e);
    return mlo_failed(m);
}

/* ---- hardware ------------------------------------------------------------------ */

/* As mlo_attention_table.v derives them: the quotient's places, its bits; cycles of a division. */
static int64_t mlo_table_places(const mlo_site *s) {
    return 2 * mlo_table_weight_bits(s->node) + mlo_clog2(s->keys);
}
static int64_t mlo_table_quotient(const mlo_site *s) {
    return mlo_table_places(s) + 9 - mlo_table_least_bits(s->node);
}
/* Cycles more than mlo_attention's: of weights, of the mix; from a row's last step to other tables. */
enum { MLO_TABLE_LATER = 8, MLO_TABLE_MIXES = 10, MLO_TABLE_MOVES = 11 };

static void mlo_attention_table_rows(const mlo_site *s, mlo_unit *u, int64_t heads, int64_t steps) {
    const int64_t groups = mlo_parts(s->keys, u->pe), lanes = mlo_parts(u->pe, steps);
    const int64_t divide = mlo_parts(mlo_table_quotient(s), 2);
    const int64_t ring = 2 * groups + 2 * ((divide + steps) / steps)
        + (14 + MLO_TABLE_LATER + MLO_TABLE_MIXES) / steps + 2;
    u->flow = MLO_FLOW_ROWS;
    u->rows.heads = heads;
    u->rows.groups = groups;
    u->rows.keys = s->keys;
    u->rows.iterations = 1;
    u->rows.all = 1;
    u->rows.constants = 3;
    u->rows.moves = MLO_TABLE_MOVES;
    u->rows.steps = steps;
    u->rows.exps = mlo_parts(u->pe, lanes);
    u->rows.divide = divide;
    u->rows.queue = groups + (12 + mlo_clog2(u->simd)) / steps + 2;
    u->rows.ring = mlo_min(ring, 4 * groups + 2);
    u->rows.waiting = 8;
    u->rows.held = 16 + mlo_clog2(u->pe) + MLO_TABLE_MIXES;
    u->rows.to_max = 8 + mlo_clog2(u->simd);
    u->rows.to_sum = 8 + MLO_TABLE_LATER;
    u->rows.to_out = 12 + MLO_TABLE_MIXES + mlo_clog2(u->pe);
}

static void mlo_attention_table_ports(
    const mlo_site *s, int64_t simd, int64_t channels, int64_t width, mlo_unit *u) {
    static const char *const ports[3] = { "s_axis_q", "s_axis_k", "s_axis_v" };
    u->module = "mlo_attention_table";
    for (int i = 0; i < 3; i++)
        u->in[u->n_in++] = mlo_port_make(ports[i], i, simd, s->in_bits[i], i ? width : channels);
    u->out = mlo_port_make("m_axis", 0, simd, s->out_bits, channels);
    mlo_unit_memory(u, "s_axis_c", 128, 1);
    mlo_unit_memory(u, "s_axis_s", 8, mlo_table_scores(s->node));
    mlo_unit_memory(u, "s_axis_e", mlo_table_weight_bits(s->node), MLO_TABLE_SCORES);
}

static int mlo_attention_table_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    const int64_t ch = mlo_last_dim(&s->in[0]), heads = mlo_attention_heads(s->node);
    const int64_t kv = mlo_attention_kv_heads(s->node), d = ch / heads, steps = d / simd;
    if (mlo_table_attributes(s->m, s->node)) return mlo_failed(s->m);
    if (s->caches)
        return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node,
            "keys and values that stay on chip, for an attention of integers, whose hidden keys "
            "count; leave --context out");
    for (int i = 1; i < 3; i++)
        if (s->in_bits[i] != s->in_bits[0])
            return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node,
                "q has %d bits, input %d has %d; they must have one width", s->in_bits[0], i,
                s->in_bits[i]);
    mlo_attention_table_ports(s, simd, ch, kv * d, u);
    mlo_unit_param(u, "H", heads);
    mlo_unit_param(u, "D", d);
    mlo_unit_param(u, "T", s->keys);
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "SIMD", simd);
    mlo_unit_param(u, "XBITS", u->in[0].bits);
    mlo_unit_param(u, "YBITS", u->out.bits);
    mlo_unit_param(u, "EBITS", mlo_table_weight_bits(s->node));
    mlo_unit_param(u, "LEAST", mlo_table_least_bits(s->node));
    if (mlo_table_hides(s->node)) mlo_unit_param(u, "HIDE", mlo_table_hides(s->node));
    if (kv != heads) mlo_unit_param(u, "KVH", kv);
    mlo_attention_keeps(s, u);
    u->pe = (int)pe;
    mlo_attention_table_rows(s, u, heads, steps);
    const int64_t row = mlo_max(u->rows.groups * steps, u->rows.divide + 1);
    const int64_t lanes = mlo_parts(pe, steps), maxima = mlo_table_hides(s->node) ? 2 : 1;
    u->interval = heads * row;
    u->latency = u->rows.groups * (steps + u->rows.exps + 1) + u->rows.divide + 28 + mlo_clog2(simd)
        + mlo_clog2(pe) - row + steps + MLO_TABLE_LATER + MLO_TABLE_MIXES;
    u->multipliers = 2 * pe * simd;
    u->other = simd + 2 * pe + lanes + maxima;
    u->macs = 2 * s->keys * ch;
    u->whole_frame = 1;
    return 0;
}

static void mlo_attention_table_intermediates(
    const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    const int64_t d = mlo_last_dim(&s->in[0]) / mlo_attention_heads(s->node);
    const int bits = s->in_bits[0], lt = mlo_clog2(s->keys), wb = mlo_table_weight_bits(s->node);
    const int sbits = 2 * bits + (d > 1 ? mlo_clog2(d) : 1), abits = bits + 9 + lt;
    const int places = (int)mlo_table_places(s), rb = (int)mlo_table_quotient(s);
    const mlo_interval x = mlo_signed_bits(bits), qk = mlo_product_of(x, x);
    const mlo_interval w = mlo_product_of(mlo_from_to(0, 255), x), sum = mlo_sum_of_many(d, qk);
    const mlo_interval e = mlo_from_to(0, mlo_two_to(wb) - 1), mix = mlo_sum_of_many(s->keys, w);
    const mlo_interval scaled = mlo_product_of(sum, mlo_from_to(0, MLO_TABLE_MR_MOST));
    const mlo_interval quotients = mlo_product_of(
        mlo_from_to(0, 255), mlo_from_to(0, MLO_TABLE_MP_MOST));
    const mlo_interval top = mlo_from_to(0, 255 * mlo_two_to(places) - 1);
    const mlo_intermediate sums = { "sum w v", mix, 1, MLO_IN_INT64, MLO_IN_DOUBLE, abits, 1,
        "u_mix.g_sum[0].sum_reg" };
    const mlo_intermediate scores = { "s", sum, 1, MLO_IN_INT64, MLO_IN_DOUBLE, sbits, 1,
        "u_score.score" };
    mlo_note_hardware(l, "SIMD products", mlo_sum_of_many(u->simd, qk), 1,
        2 * bits + mlo_clog2(u->simd), 1, "u_score.g_dot[0].u_dot.sum");
    mlo_note(l, scores);
    mlo_note_all(l, "s * MR", scaled, 1, sbits + 19, 1, "u_look.g_number[0].u_requantize.prod2");
    mlo_note_golden(l, "s * MR + 2^(SR-1)",
        mlo_sum_of(scaled, mlo_from_to(1, mlo_two_to(MLO_ATTENTION_SHIFT - 1))), 1, MLO_IN_INT64,
        MLO_IN_INT64);
    mlo_note_all(l, "e", e, 1, wb, 0, "u_look.e12");
    mlo_note_all(l, "sum e", mlo_sum_of_many(s->keys, e), 1, wb + lt, 0, "u_look.sum_reg");
    mlo_note_golden(
        l, "e * N", mlo_product_of(e, mlo_from_to(1, 255)), 1, MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_hardware(l, "N * 2^K - 1", top, 1, places + 8, 0, "u_divide.s_n");
    mlo_note_hardware(l, "R", mlo_from_to(0, mlo_two_to(rb) - 1), 0, rb, 0, "u_divide.out_q_reg");
    mlo_note_all(l, "p * MP", quotients, 1, 26, 1,
        "u_mix.g_prob.g_exact.u_weights.g_lane[0].u_requantize.prod2");
    mlo_note_golden(l, "p * MP + 2^(SP-1)",
        mlo_from_to(0, mlo_add_ends(quotients.hi, mlo_two_to(61))), 1, MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_hardware(l, "PE products", mlo_sum_of_many(u->pe, w), 1, bits + 9 + mlo_clog2(u->pe),
        1, "u_mix.g_dot[0].u_dot.sum");
    mlo_note(l, sums);
    mlo_note_requantize(l, mlo_product_of(mix, mlo_multipliers), abits + 17,
        "u_mix.g_sum[0].u_requantize.prod2", s->out_bits);
}

static int mlo_attention_table_promises(const mlo_site *s, const mlo_array *const *in) {
    return mlo_table_check(s->m, s->node, in[5], in[6]);
}

static void mlo_attention_table_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    static const int at[] = { 0, 32, 48, 64, 80, 88, 96, 114 };
    static const int wide[] = { 8, 16, 6, 16, 6, 8, 18, 6 };
    (void)s;
    if (k)
        mlo_put_bits(bits, 0, u->memory[k].width, (uint64_t)mlo_get(in[4 + k], word));
    else
        for (int i = 0; i < MLO_TABLE_NUMBERS; i++)
            mlo_put_bits(bits, at[i], wide[i], (uint64_t)mlo_get(in[4], i));
}

/* mlo_attention_word: rows of mlo_param, a part of one, a word of that. */
static void mlo_table_word_area(
    mlo_area *a, int64_t width, int64_t depth, int64_t axi, int64_t banks) {
    const int64_t padded = mlo_max((int64_t)1 << mlo_clog2(width), 8);
    const int64_t words = mlo_min(mlo_max(axi / padded, 1), depth);
    const int64_t part = words > 16 ? 8 : (words + 1) / 2;
    mlo_area_param(a, words * mlo_max(width, 8), words * width, depth / words, axi, banks);
    a->lut += part * width * mlo_mux_luts(words / part) + width * mlo_mux_luts(part);
    a->ff += part * width + 1 + mlo_clog2(words) + mlo_clog2(part);
}

/* Numbers of 8 bits, tables, weights, their sum and a division. */
static void mlo_table_look_area(const mlo_attention_widths *w, const mlo_site *s, int64_t quotient,
    int axi, int64_t banks, mlo_area *a) {
    const int hides = mlo_table_hides(s->node) > 0;
    const int64_t lanes = mlo_parts(w->pe, w->steps), places = mlo_parts(w->pe, lanes) * lanes;
    mlo_area number = { 1, 0, 0, 0 }, lane = { 0, 0, 0, 0 };
    a->lut += places * (w->score + 1 + hides);
    a->ff += places * (w->score + 1 + hides) + places * w->e + (1 + hides) * w->score + 24 + 16;
    mlo_area_requantize(&number, w->score, 19, 8, 1, 0);
    mlo_table_word_area(&number, 8, mlo_table_scores(s->node), axi, banks);
    mlo_area_times(a, lanes + 1 + hides, &number);
    mlo_table_word_area(&lane, w->e, MLO_TABLE_SCORES, axi, banks);
    lane.lut += 8 + w->e + w->sum;
    lane.ff += 16 + 8 + w->e;
    mlo_area_times(a, lanes, &lane);
    a->lut += w->sum + 30;
    a->ff += w->sum + 8;
    mlo_area_fifo(a, w->on + 3, 8);
    mlo_area_fifo(a, w->sum, 8);
    a->lut += 4 * w->sum + quotient;
    a->ff += 2 * w->sum + 2 * quotient + 2 * 55 + 8;
}

/* Exact quotients and the weighted sum. */
static void mlo_table_mix_area(
    const mlo_attention_widths *w, const mlo_site *s, int64_t quotient, int64_t ring, mlo_area *a) {
    const int64_t acc = w->x + 9 + mlo_clog2(s->keys);
    mlo_area value = { acc, w->pe * (w->x + w->x + 9) + acc, 0, 0 };
    mlo_area weight = { 0, 0, 0, 0 };
    mlo_area_memory(a, w->pe * w->e, ring);
    a->lut += 6 * mlo_clog2(ring) + quotient;
    a->ff += 4 * mlo_clog2(ring) + quotient + 100;
    mlo_area_requantize(&weight, 9, 17, 9, 1, 0);
    weight.lut += 8 + w->simd * w->x;
    weight.ff += 8 + w->simd * w->x;
    weight.dsp += mlo_product_dsps(w->e + 1, quotient + 1);
    mlo_area_times(a, w->pe, &weight);
    mlo_area_tree2(&value, w->pe, w->x + 9);
    value.dsp = w->pe * mlo_product_dsps(w->x, 9);
    mlo_area_requantize(&value, acc, 17, s->out_bits, 1, 0);
    mlo_area_times(a, w->simd, &value);
    a->ff += 8 * w->pe + 2 * 17;
}

static void mlo_attention_table_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    enum { CONTROL_LUTS = 230, CONTROL_FFS = 40 };
    const int hides = mlo_table_hides(s->node) > 0;
    const int64_t lt = mlo_clog2(s->keys), d = u->simd * u->rows.steps;
    mlo_attention_widths w = { u->pe, u->simd, u->rows.steps, s->in_bits[0], 0, 106, 0, 9, 0, 0, 60,
        0, 1, 1, 0 };
    const int64_t groups = u->rows.groups, quotient = mlo_table_quotient(s);
    const int64_t words = 2 * groups * mlo_attention_kv_heads(s->node) * w.steps;
    w.score = 2 * w.x + mlo_max(mlo_clog2(d), 1);
    w.e = mlo_table_weight_bits(s->node);
    w.sum = w.e + lt;
    mlo_area_vector(a, w.simd * w.x, w.steps);
    mlo_attention_frames_area(w.pe, w.simd * w.x + hides, words, groups, a);
    mlo_attention_frames_area(w.pe, w.simd * w.x, words, groups, a);
    mlo_area_param(a, 128, 98, 1, axi, banks);
    if (mlo_table_hides(s->node) == 2) mlo_attention_walk_area(w.pe, groups, 0, 0, a);
    mlo_attention_score_area(&w, u->rows.queue, a);
    if (hides) {
        a->lut += w.pe * (3 * w.score / 2 + 2) + w.score;
        a->ff += 2 * w.score + w.pe * (4 + mlo_clog2(w.simd));
        mlo_area_fifo(a, w.score, 4);
    }
    mlo_table_look_area(&w, s, quotient, axi, banks, a);
    mlo_table_mix_area(&w, s, quotient, u->rows.ring, a);
    mlo_area_fifo(a, w.simd * s->out_bits + 3, u->rows.held);
    a->lut += CONTROL_LUTS;
    a->ff += CONTROL_FFS;
}

static const mlo_kernel mlo_attention_table_kernel = {
    .op = { mlo_attention_table_name, mlo_kernel_same_shape, mlo_attention_table_run, 7 },
    .kind = MLO_KERNEL_ATTENTION,
    .series = "attentiontable",
    .function = mlo_attention_table_function,
    .ending = mlo_attention_table_ending,
    .limits = mlo_attention_table_limits,
    .pe_axis = "keys",
    .simd_axis = "head channels",
    .legal = mlo_attention_legal,
    .unit = mlo_attention_table_unit,
    .intermediates = mlo_attention_table_intermediates,
    .area = mlo_attention_table_area,
    .promises = mlo_attention_table_promises,
    .pack = mlo_attention_table_pack,
};
