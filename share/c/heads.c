/* What an attention is about. */
typedef struct {
    int start; /* the place of the first query among the keys */
    int tokens; /* queries */
    int keys;
    int heads;
    int kv_heads; /* of keys and values */
    int d; /* channels of a head, at most 512 */
    int q_row; /* elements from a token's queries to the next one's */
    int k_row;
    int v_row;
    int y_row;
    int causal; /* 1: later keys do not count */
    const int32_t *reach; /* keys back, keys ahead; NULL: no bounds */
    const uint8_t *mask; /* of each key, 1: it may count; NULL: all may */
    const int16_t *bias; /* [bias_heads, bias_rows, bias_keys]; NULL: none */
    int bias_heads;
    int bias_rows;
    int bias_keys;
    int bias_shift; /* bits to the left, into units of a score */
    mlo_row_rounding round;
    mlo_row_tables tables; /* of a network of integers, instead */
    int part; /* of scores in 32 bits */
    int lo;
    int hi;
} mlo_heads;
