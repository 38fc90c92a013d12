/* One head's row: scores of the keys from .. until - 1 (k: the first of them), and from them weights in e, which lies
 * apart from all that is read; returns the multiplier of the weighted sum. */
static int64_t @NAME@_scores(const mlo_heads *a, const @X@ *restrict q, const @Z@ *restrict k, int from, int until,
    const int16_t *bias, @E@ *restrict e) {
    int16_t own[512]; /* of 16 bits: of two such factors compilers know the sum of products */
    for (int c = 0; c < a->d; c++) own[c] = q[c];
    for (int j = from; j < until; j++, k += a->k_row) {
        @E@ s = bias ? bias[j] * ((@E@)1 << a->bias_shift) : 0;
        for (int i = 0; i < a->d; i += @BLOCK@) {
            const int to = a->d - i < @BLOCK@ ? a->d : i + @BLOCK@;
            @PRODUCT@ sum = 0;
            for (int c = i; c < to; c++) sum += (@PRODUCT@)own[c] * (int16_t)k[c];
            s += sum;
        }
        const int seen = (!a->mask || a->mask[j]) && (!bias || bias[j] != MLO_BIAS_HIDES);
        e[j - from] = seen ? s : @NEVER@;
    }
    return @WEIGH@(&a->round, @SCORES@e, until > from ? until - from : 0);
}

/* Head h of token t. */
static inline void @NAME@_head(const mlo_heads *a, int t, int h, const @X@ *q, const @Z@ *k, const @W@ *v, @Y@ *y,
    @E@ *e, @SUM@ *sum) {
    const int at = a->start + t, partly = a->causal || a->reach;
    const int ahead = a->causal ? 0 : a->reach && a->reach[1] < a->keys ? a->reach[1] : a->keys;
    const int from = a->reach && a->reach[0] < at ? at - a->reach[0] : 0;
    const int until = partly && at + 1 + ahead < a->keys ? at + 1 + ahead : a->keys;
    const int kv = h / (a->heads / a->kv_heads) * a->d;
    const int16_t *bias = a->bias
        ? a->bias + (h % a->bias_heads * a->bias_rows + at % a->bias_rows) * a->bias_keys
        : NULL;
    const int64_t scale = @NAME@_scores(a, q + h * a->d,
        k + (ptrdiff_t)from * a->k_row + kv, from, until, bias, e);
    @NAME@_mix(e, v + (ptrdiff_t)from * a->v_row + kv, a->v_row, until - from, a->d, sum);
    for (int c = 0; c < a->d; c++)
        y[h * a->d + c] = (@Y@)mlo_requantize(sum[c], scale, a->round.p[3], a->lo, a->hi);
}

/* e: room for the weights of a row; sum: for a head's channels. Threads have their own. */
static void @NAME@(const mlo_heads *a, const @X@ *q, const @Z@ *k, const @W@ *v, @Y@ *y, @E@ *e,
    @SUM@ *sum) {
    (void)e, (void)sum;
    MODEL_HEADS
    for (int i = 0; i < a->tokens * a->heads; i++) {
        const int t = i / a->heads;
        MODEL_OWN(@E@, e, @KEYS@)
        MODEL_OWN(@SUM@, sum, 512)
        @NAME@_head(a, t, i % a->heads, q + (ptrdiff_t)t * a->q_row, k, v, y + (ptrdiff_t)t * a->y_row, e, sum);
    }
}
