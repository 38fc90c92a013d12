/* One head's row, of the query at `at`: scores of all keys (k: the first of them), and from them weights in e, which lies
 * apart from all that is read. */
static void @NAME@_scores(
    const mlo_heads *a, const @X@ *restrict q, const @Z@ *restrict k, int at, int64_t *restrict e) {
    for (int j = 0; j < a->keys; j++, k += a->k_row) {
        const int hidden = (a->mask && !a->mask[j]) || (a->tables.hide == 2 && j > at);
        int64_t s = 0;
        for (int c = 0; c < a->d; c++) s += (int32_t)q[c] * k[c];
        e[j] = mlo_table_score(&a->tables, s, hidden);
    }
    mlo_table_weigh(&a->tables, e, a->keys);
}

/* e: room for the weights of a row; sum: for a head's channels. */
static void @NAME@(const mlo_heads *a, const @X@ *q, const @Z@ *k, const @W@ *v, @Y@ *y, int64_t *e,
    @SUM@ *sum) {
    for (int t = 0; t < a->tokens; t++, q += a->q_row, y += a->y_row)
        for (int h = 0; h < a->heads; h++) {
            const int kv = h / (a->heads / a->kv_heads) * a->d;
            @NAME@_scores(a, q + h * a->d, k + kv, a->start + t, e);
            @NAME@_mix(e, v + kv, a->v_row, a->keys, a->d, sum);
            for (int c = 0; c < a->d; c++)
                y[h * a->d + c] = (@Y@)mlo_requantize(
                    sum[c], a->tables.p[1], a->tables.p[2], a->lo, a->hi);
        }
}
