/* One head's row: scores of the keys from .. until - 1 (k: the first of them), and from them weights in e;
 * returns the multiplier of the weighted sum. */
static int64_t @NAME@_scores(const mlo_heads *a, const @X@ *q, const @Z@ *k, int from, int until,
    const int16_t *bias, int64_t *e) {
    for (int j = from; j < until; j++, k += a->k_row) {
        int64_t s = bias ? bias[j] * ((int64_t)1 << a->bias_shift) : 0;
        for (int i = 0; i < a->d; i += @BLOCK@) {
            const int to = a->d - i < @BLOCK@ ? a->d : i + @BLOCK@;
            @PRODUCT@ sum = 0;
            for (int c = i; c < to; c++) sum += (@PRODUCT@)q[c] * k[c];
            s += sum;
        }
        const int seen = (!a->mask || a->mask[j]) && (!bias || bias[j] != MLO_BIAS_HIDES);
        e[j - from] = seen ? s : MLO_NEVER;
    }
    return mlo_softmax_weigh(&a->round, e, until > from ? until - from : 0);
}

/* e: room for the weights of a row; sum: for a head's channels. */
static void @NAME@(const mlo_heads *a, const @X@ *q, const @Z@ *k, const @W@ *v, @Y@ *y, int64_t *e,
    @SUM@ *sum) {
    for (int t = 0; t < a->tokens; t++, q += a->q_row, y += a->y_row) {
        const int at = a->start + t;
        const int back = a->reach && a->reach[0] < at ? a->reach[0] : at;
        const int ahead = a->causal ? 0 : a->reach && a->reach[1] < a->keys ? a->reach[1] : a->keys;
        const int from = a->reach ? at - back : 0;
        const int until = at + 1 + ahead < a->keys && (a->causal || a->reach) ? at + 1 + ahead : a->keys;
        for (int h = 0; h < a->heads; h++) {
            const int kv = h / (a->heads / a->kv_heads) * a->d;
            const int16_t *bias = a->bias
                ? a->bias + (h % a->bias_heads * a->bias_rows + at % a->bias_rows) * a->bias_keys
                : NULL;
            const int64_t scale = @NAME@_scores(a, q + h * a->d,
                k + (ptrdiff_t)from * a->k_row + kv, from, until, bias, e);
            const @W@ *value = v + (ptrdiff_t)from * a->v_row + kv;
            for (int c = 0; c < a->d; c++) sum[c] = 0;
            for (int j = 0; j < until - from; j++, value += a->v_row) {
                const @SUM@ weight = (@SUM@)e[j];
                for (int c = 0; c < a->d; c++) sum[c] += weight * value[c];
            }
            for (int c = 0; c < a->d; c++)
                y[h * a->d + c] = (@Y@)mlo_requantize(
                    sum[c], scale, a->round.p[3], a->lo, a->hi);
        }
    }
}
