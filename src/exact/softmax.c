/* exact, softmax: a row of attention's scores becomes the weights of its values (kernels/attention.c says
 * what is what).
 *
 * This text is the definition: mlo is compiled with it, and puts it in front of the C that it emits. */

/* round(65280 * 2^(-f/64)) for f = 0..63: the same numbers as in verilog/mlo_exp2.v; a test
 * computes them. And round(262143 * 2^(-f/64)), f = 0..64, those of verilog/mlo_exp2_fine.v;
 * round(65535 * tanh(f / 32)), f = 0..256, those of verilog/mlo_attention_cap.v. */
#define MLO_EXP2_ROM                                                                               \
    65280, 64577, 63881, 63193, 62512, 61839, 61173, 60514, 59862, 59217, 58579, 57948, 57324,     \
        56707, 56096, 55491, 54894, 54302, 53717, 53139, 52566, 52000, 51440, 50886, 50338, 49796, \
        49259, 48729, 48204, 47684, 47171, 46663, 46160, 45663, 45171, 44684, 44203, 43727, 43256, \
        42790, 42329, 41873, 41422, 40976, 40534, 40098, 39666, 39238, 38816, 38398, 37984, 37575, \
        37170, 36770, 36374, 35982, 35594, 35211, 34831, 34456, 34085, 33718, 33355, 32995
#define MLO_EXP2_FINE                                                                           \
    262143, 259319, 256526, 253763, 251029, 248325, 245650, 243004, 240386, 237797, 235235,     \
        232701, 230195, 227715, 225262, 222835, 220435, 218061, 215712, 213388, 211089, 208816, \
        206566, 204341, 202140, 199962, 197808, 195678, 193570, 191485, 189422, 187382, 185363, \
        183366, 181391, 179437, 177504, 175592, 173701, 171830, 169979, 168148, 166336, 164545, \
        162772, 161019, 159284, 157568, 155871, 154192, 152531, 150888, 149263, 147655, 146064, \
        144491, 142934, 141395, 139872, 138365, 136875, 135400, 133942, 132499, 131072
#define MLO_TANH_ROM                                                                               \
    0, 2047, 4091, 6126, 8149, 10157, 12146, 14111, 16051, 17961, 19838, 21680, 23485, 25250,      \
        26972, 28651, 30285, 31872, 33412, 34903, 36346, 37739, 39083, 40378, 41624, 42822, 43972, \
        45074, 46130, 47141, 48107, 49030, 49911, 50751, 51551, 52313, 53038, 53727, 54381, 55003, \
        55592, 56152, 56682, 57184, 57659, 58110, 58535, 58938, 59319, 59679, 60019, 60340, 60643, \
        60929, 61198, 61453, 61693, 61919, 62133, 62334, 62523, 62702, 62870, 63028, 63178, 63318, \
        63450, 63575, 63692, 63802, 63906, 64003, 64095, 64181, 64263, 64339, 64411, 64478, 64542, \
        64602, 64658, 64711, 64760, 64807, 64851, 64892, 64931, 64967, 65002, 65034, 65064, 65092, \
        65119, 65144, 65168, 65190, 65211, 65231, 65249, 65266, 65282, 65298, 65312, 65326, 65338, \
        65350, 65361, 65372, 65382, 65391, 65400, 65408, 65416, 65423, 65430, 65436, 65442, 65448, \
        65453, 65458, 65463, 65467, 65471, 65475, 65479, 65482, 65485, 65488, 65491, 65494, 65496, \
        65499, 65501, 65503, 65505, 65507, 65508, 65510, 65511, 65513, 65514, 65515, 65517, 65518, \
        65519, 65520, 65521, 65522, 65522, 65523, 65524, 65525, 65525, 65526, 65526, 65527, 65527, \
        65528, 65528, 65529, 65529, 65529, 65530, 65530, 65530, 65531, 65531, 65531, 65531, 65532, \
        65532, 65532, 65532, 65532, 65533, 65533, 65533, 65533, 65533, 65533, 65533, 65533, 65533, \
        65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, \
        65534, 65534, 65534, 65534, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, \
        65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, \
        65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, \
        65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, \
        65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535

/* What a row is rounded by. */
typedef struct {
    const int32_t *p; /* MS, SS, MO, SO; MP, SP, HP; MR, SR, ZR: or MC, SC behind the first four */
    int lt; /* log2 of the longest frame */
    int probs; /* 1: the source rounded its probabilities */
    int rounded; /* 1: its scores, too */
    int capped; /* 1: scores are under a soft cap */
    int all; /* 1: where no key counts, all do */
    int bits; /* of an exponential: 8, 12; if probs: 18 */
} mlo_row_rounding;

/* The score of a key that does not count: lower than any other; and of 32 bits. */
#define MLO_NEVER (-((int64_t)1 << 40))
#define MLO_NEVER_NARROW (-((int32_t)1 << 30))
enum { MLO_CAP_MOST = 65535, MLO_BIAS_HIDES = -32768, MLO_FAR = 4095 };

/* 255 * 2^(bits - 8 - t/64), rounded: half of the last place is added where there is one place more. */
static inline int32_t mlo_exp2_weight(int32_t t, int bits) {
    static const int32_t rom[64] = { MLO_EXP2_ROM };
    const int32_t i = t >> 6 < 20 ? t >> 6 : 20;
    return ((rom[t & 63] >> (15 - bits + i)) + 1) >> 1;
}

/* 262143 * 2^(-t/4096), rounded: between two points of the table on a straight line. */
static inline int64_t mlo_exp2_fine_weight(int64_t t) {
    static const int32_t fine[65] = { MLO_EXP2_FINE };
    const int64_t i = t >> 12, f = t >> 6 & 63;
    const int64_t a = fine[f] - ((((int64_t)fine[f] - fine[f + 1]) * (t & 63) + 32) >> 6);
    return (2 * a + ((int64_t)1 << i)) >> (i + 1);
}
static inline int64_t mlo_softmax_weight(const mlo_row_rounding *r, int64_t t) {
    return r->probs ? mlo_exp2_fine_weight(t < 131071 ? t : 131071)
                    : mlo_exp2_weight((int32_t)(t < MLO_FAR ? t : MLO_FAR), r->bits);
}

/* 65535 tanh(u / 8192), rounded: between two points of the table on a straight line. */
static inline int64_t mlo_tanh_steps(int64_t u) {
    static const int32_t rom[257] = { MLO_TANH_ROM };
    const int64_t size = u < 0 ? -u : u, f = size >> 8, g = size & 255;
    if (!g) return u < 0 ? -rom[f] : rom[f];
    const int64_t slope = rom[f + 1] - rom[f];
    const int64_t y = rom[f] + ((slope * g + 128) >> 8);
    return u < 0 ? -y : y;
}

/* A score in the source's steps, or under its cap. */
static inline int64_t mlo_softmax_score(const mlo_row_rounding *r, int64_t s) {
    const int64_t far = (int64_t)1 << 40;
    if (r->capped)
        return mlo_tanh_steps(mlo_requantize(s, r->p[4], r->p[5], -MLO_CAP_MOST, MLO_CAP_MOST));
    return r->rounded
        ? mlo_clip(mlo_requantize(s, r->p[7], r->p[8], -far, far) + r->p[9], -128, 127)
        : s;
}

/* Scores to weights, in place; returns their sum, and of a row where nothing counts what it is
 * divided by all the same. */
static inline int64_t mlo_softmax_weights(const mlo_row_rounding *r, int64_t *e, int64_t n) {
    int64_t largest = MLO_NEVER, total = 0;
    for (int64_t j = 0; j < n; j++) {
        if (e[j] != MLO_NEVER) e[j] = mlo_softmax_score(r, e[j]);
        if (e[j] > largest) largest = e[j];
    }
    for (int64_t j = 0; j < n; j++) {
        const int counts = e[j] != MLO_NEVER || (largest == MLO_NEVER && r->all);
        const int64_t t = mlo_requantize(largest - e[j], r->p[0], r->p[1], INT64_MIN, INT64_MAX);
        total += e[j] = counts ? mlo_softmax_weight(r, t) : 0;
    }
    return total ? total : mlo_softmax_weight(r, 0);
}

/* Scores to what their values are multiplied with, in place; returns the multiplier of the sum,
 * whose shift is p[3]. */
static inline int64_t mlo_softmax_weigh(const mlo_row_rounding *r, int64_t *e, int64_t n) {
    const int64_t total = mlo_softmax_weights(r, e, n);
    if (!r->probs) return ((int64_t)r->p[2] << (r->lt + r->bits)) / total;
    const int64_t share = ((int64_t)r->p[4] << (r->lt + 18)) / total;
    for (int64_t j = 0; j < n; j++) e[j] = mlo_requantize(e[j], share, r->p[5], 0, r->p[6]);
    return r->p[2];
}

/* The same of a row that the source did not round, in 32 bits, of which processors have lanes: scores are below 2^30
 * in size, of keys that do not count MLO_NEVER_NARROW; part is one that mlo_requantize_narrow takes for what is
 * between any two of them. */
static inline int64_t mlo_softmax_weigh_narrow(
    const mlo_row_rounding *r, int part, int32_t *e, int n) {
    const int32_t mult = r->p[0], shift = r->p[1];
    int32_t largest = MLO_NEVER_NARROW, total = 0;
    for (int j = 0; j < n; j++) largest = e[j] > largest ? e[j] : largest;
    const int32_t never = largest == MLO_NEVER_NARROW && r->all ? 0 : MLO_FAR;
    for (int j = 0; j < n; j++) {
        const int32_t below = e[j] == MLO_NEVER_NARROW ? 0 : largest - e[j];
        const int32_t t = mlo_requantize_narrow(below, mult, shift, part, 0, MLO_FAR);
        e[j] = e[j] == MLO_NEVER_NARROW ? never : t;
    }
    for (int j = 0; j < n; j++) total += e[j] = mlo_exp2_weight(e[j], r->bits);
    return ((int64_t)r->p[2] << (r->lt + r->bits)) / (total ? total : mlo_exp2_weight(0, r->bits));
}

/* ---- as a network of integers rounds -------------------------------------------------------- */

/* What a row of such a network is rounded by (kernels/attention_table.c says what is what). */
typedef struct {
    const int32_t *p; /* N, MO, SO, MP, SP, HP, MR, SR */
    const int8_t *score; /* of 256 numbers; if keys are hidden, then of theirs */
    const int32_t *weight; /* by how far a score is below the largest one */
    int hide; /* 0: no key is hidden; 2: those behind the query are, too */
} mlo_row_tables;

/* What is looked up of a sum of products. */
static inline int64_t mlo_table_score(const mlo_row_tables *t, int64_t s, int hidden) {
    const int64_t r = mlo_requantize(s, t->p[6], t->p[7], -128, 127);
    return t->score[r + 128 + (t->hide && hidden ? 256 : 0)];
}

/* Such scores to what their values are multiplied with, in place: at most HP. */
static inline void mlo_table_weigh(const mlo_row_tables *t, int64_t *e, int64_t n) {
    int64_t most = n ? e[0] : 0, sum = 0;
    for (int64_t j = 1; j < n; j++)
        if (e[j] > most) most = e[j];
    for (int64_t j = 0; j < n; j++) sum += e[j] = t->weight[most - e[j]];
    for (int64_t j = 0; j < n && sum; j++)
        e[j] = mlo_requantize(e[j] * t->p[0] / sum, t->p[3], t->p[4], 0, t->p[5]);
}
