/* attention: softmax(q k^T scale) v per head, in integers, streaming.
 *
 * in:  q [B, TQ, H*D], k, v [B, TK, KVH*D] int8 or int16 (up to 512 channels a head), mask [B, TK]
 *     bool (true: the key may count), p = [MS, SS, MO, SO] int32. Attributes: heads = H; kv_heads =
 *     KVH, which divides H (absent: H): head h of the queries reads head h / (H/KVH) of the keys and
 *     values; causal = 1: key j counts for query i only if j <= i; band = 1: p has two more members,
 *     BACK and AHEAD (of each iteration its own), and key j counts only if i - BACK <= j <= i + AHEAD.
 * out: y [B, TQ, H*D]. Verilog: mlo_attention.
 *
 *     s[j] = q . k[j]                                 mx = the largest s[j] of a key that counts
 *                                                     (if no key counts: all do, with s = 0; causal
 *                                                     or banded: y = 0)
 *     t[j] = min(((mx - s[j]) MS + 2^(SS-1)) >> SS, 4095)
 *                                                     the distance below mx in 1/64 octaves
 *     e[j] = (ROM[t & 63] + 2^(15-EB+i)) >> (16-EB+i) i = t >> 6; 255 * 2^(EB-8-t/64), rounded;
 *                                                     0 for keys that don't count
 *     R    = floor(MO 2^(LT+EB) / sum e)              LT = ceil(log2(longest frame))
 *     y[d] = requantize(sum_j e[j] v[j][d]; R, SO)
 *
 * The row is normalised after the weighted sum, so a flat row over many keys keeps the precision
 * that 8-bit probabilities would lose.
 *
 * EB = exp_bits, the bits of an exponential: 8, or, where a row may have more than 256 keys, 12 (quantize
 * counts those of the frame, or of its widest band). Up to 2^24 keys, 2^19 with 12 bits.
 *
 * error: e is within 0.5 + 255 * 0.0055 = 1.9 of 255 exp(..) (rounding, 1/128 octave of t), with 12
 *     bits within 0.53 + 4080 * 0.0055 = 23 of 4080 exp(..); R within 2^-14; y half a step more. An
 *     error that is of t is some share of e, and those of many keys cancel; the half that is of rounding
 *     is one of the largest e, however small e is, and weights below it are lost, which many keys
 *     together have much of. Of the mix (relative, L2; scores of deviation 2, measured by
 *     tests/test_numerics.py against ONNX Runtime's floats), with 8 and with 12 bits: 1.2 and 0.2 %
 *     at 128 keys, 2.4 and 0.3 % at 512, 6.6 and 0.3 % at 2048, 16 and 1.0 % at 8192.
 * cost: H * max(groups D/SIMD, the divider) cycles a query token; groups: those of PE keys in which
 *     its keys lie, ceil(TK/PE) of them if there is neither causal nor band. A causal frame takes
 *     half the cycles of the square.
 *
 * A quantized source rounds on the way. Two more functions round as it does: AttentionProbs its
 * probabilities, AttentionRounded its scores too. Their p has more members: [.., MP, SP, HP], and
 * [.., MR, SR, ZR]. (BACK and AHEAD come behind them all.)
 *
 *     r[j] = min(max(((s[j] MR + 2^(SR-1)) >> SR) + ZR, -128), 127)
 *                                                     the scores in the source's steps
 *                                                     (AttentionProbs: r = s); mx is that of r
 *     t[j] = min(((mx - r[j]) MS + 2^(SS-1)) >> SS, 2^17 - 1)
 *                                                     in 1/4096 octaves: 5 + 6 + 6 bits i, f, g
 *     a    = FINE[f] - (((FINE[f] - FINE[f+1]) g + 32) >> 6)
 *                                                     262143 * 2^(-(64 f + g)/4096), by straight
 *                                                     lines between 65 points
 *     e[j] = (2 a + 2^i) >> (i+1)
 *     R    = floor(MP 2^(LT+18) / sum e)
 *     w[j] = min((e[j] R + 2^(SP-1)) >> SP, HP)       the probability in the source's steps, at
 *                                                     most HP <= 255
 *     y[d] = requantize(sum_j w[j] v[j][d]; MO, SO)
 *
 * error: r is within half a step and 2^-11. e is within 1.0e-4 + 2^-15 x of itself (half of t's
 *     unit 0.85e-4, the straight line 1.5e-5, MS's 15 bits; x: its distance in nats) and half of
 *     its last place, 2^-19 of the largest. R is within 2^-14. So some 2 in 10000 probabilities of
 *     real models are rounded otherwise than floats are. A w that is off by one moves y by v MO /
 *     2^SO steps, about one for the largest v.
 *
 * AttentionBias adds to the scores a parameter, bias [H or 1, T or 1, T] int16 in steps of 2^bias_shift
 * of theirs (1: the same for all heads, for all queries), so it may differ per iteration:
 *
 *     s[j] = q . k[j] + bias[h][i][j] 2^bias_shift    a key whose number is -2^15 does not count; if
 *                                                     none counts, y = 0
 *
 * A frame shorter than T uses its first rows and columns. It may be causal, but has no band: what a
 * band hides, the bias can. cost: no cycles (but up to 4 of an iteration's first row); its numbers are
 * parameters of each iteration, two banks on chip.
 *
 * AttentionCap puts scores under a soft cap, c tanh(s / c); its p has two more members, [.., MC, SC]:
 *
 *     u    = clip((s[j] MC + 2^(SC-1)) >> SC) to -65535..65535      s / c in steps of 1/8192
 *     c[j] = sign(u) (TANH[f] + (((TANH[f+1] - TANH[f]) g + 128) >> 8))    |u| = 256 f + g
 *                                                     65535 tanh(u / 8192), by straight lines
 *                                                     between 257 points, 1/32 apart
 *     t[j] = min(((mx - c[j]) MS + 2^(SS-1)) >> SS, 4095), mx that of c; the rest as above
 *
 * error: c is within 1.7e-4 of 65535 tanh(s / c), relative to 65535 (half a step of u and the straight
 *     line 1.5e-4, MC's 15 bits 0.2e-4): under a cap of 50, 0.0085 in the exponent. A distance has that
 *     twice at most, and less than a unit of u where scores are small beside the cap.
 * cost: no cycles in between, 10 more of latency; the table and two products for each exponential that
 *     is computed in parallel, and for the maximum: tanh never falls, so the largest stays the largest.
 */

#define MLO_TEXT_(...) #__VA_ARGS__
#define MLO_TEXT(...) MLO_TEXT_(__VA_ARGS__)

/* The functions in pieces: scores, [rounded], their distance to the largest, weights (coarse or
 * fine), their sum, [probabilities], the mix. */
#define MLO_ATTENTION_SCORES                                               \
    "heads_ = Constant <value_int=@heads> ()\n"                            \
    "one1 = Constant <value_ints=[1]> ()\n"                                \
    "heads1 = Reshape (heads_, one1)\n"                                    \
    "zeros = Constant <value_ints=[0, 0]> ()\n"                            \
    "rest1 = Constant <value_ints=[-1]> ()\n"                              \
    "kv_ = Constant <value_int=@kv_heads> ()\n"                            \
    "kv_any = Cast <to=9> (kv_)\n" /* 0: as many as heads */               \
    "kv_heads = Where (kv_any, kv_, heads_)\n"                             \
    "kv1 = Reshape (kv_heads, one1)\n"                                     \
    "readers1 = Div (heads1, kv1)\n"                                       \
    "ones3 = Constant <value_ints=[1, 1, 1]> ()\n"                         \
    "kv_split = Concat <axis=0> (zeros, kv1, one1, rest1)\n"               \
    "each = Concat <axis=0> (ones3, readers1, one1)\n"                     \
    "split = Concat <axis=0> (zeros, heads1, rest1)\n"                     \
    "join = Concat <axis=0> (zeros, rest1)\n"                              \
    "qd = Cast <to=11> (q_)\n" /* products of doubles: exact below 2^53 */ \
    "kd = Cast <to=11> (k_)\n"                                             \
    "vd = Cast <to=11> (v_)\n"                                             \
    "q4 = Reshape (qd, split)\n"                                           \
    "k5 = Reshape (kd, kv_split)\n"                                        \
    "v5 = Reshape (vd, kv_split)\n"                                        \
    "kx = Expand (k5, each)\n" /* a head for each that reads it */         \
    "vx = Expand (v5, each)\n"                                             \
    "k4 = Reshape (kx, split)\n"                                           \
    "v4 = Reshape (vx, split)\n"                                           \
    "qh = Transpose <perm=[0, 2, 1, 3]> (q4)\n"                            \
    "kh = Transpose <perm=[0, 2, 3, 1]> (k4)\n"                            \
    "vh = Transpose <perm=[0, 2, 1, 3]> (v4)\n"
/* Which keys count for which queries: those of the mask between the row's ends. Members of p from
 * `first` on are BACK and AHEAD, if band. */
#define MLO_ATTENTION_SEEN(first, also)                                        \
    "p64 = Cast <to=7> (p)\n"                                                  \
    "i0 = Constant <value_int=0> ()\n"                                         \
    "i1 = Constant <value_int=1> ()\n"                                         \
    "i2 = Constant <value_int=2> ()\n"                                         \
    "causal_ = Constant <value_int=@causal> ()\n"                              \
    "causal = Cast <to=9> (causal_)\n"                                         \
    "band_ = Constant <value_int=@band> ()\n"                                  \
    "band = Cast <to=9> (band_)\n"                                             \
    "partly = Or (causal, " also ")\n"                                         \
    "far2 = Constant <value_ints=[1099511627776, 1099511627776]> ()\n"         \
    "p_far = Concat <axis=0> (p64, far2)\n" /* no band: there are no others */ \
    "i_back = Constant <value_int=" #first "> ()\n"                            \
    "i_ahead = Add (i_back, i1)\n"                                             \
    "far = Constant <value_int=1099511627776> ()\n"                            \
    "p_back = Gather (p_far, i_back)\n"                                        \
    "p_ahead = Gather (p_far, i_ahead)\n"                                      \
    "back = Where (band, p_back, far)\n"                                       \
    "band_ahead = Where (band, p_ahead, far)\n"                                \
    "ahead = Where (causal, i0, band_ahead)\n"                                 \
    "q_shape = Shape (q_)\n"                                                   \
    "k_shape = Shape (k_)\n"                                                   \
    "tq = Gather (q_shape, i1)\n"                                              \
    "tk = Gather (k_shape, i1)\n"                                              \
    "q_at = Range (i0, tq, i1)\n"                                              \
    "k_at = Range (i0, tk, i1)\n"                                              \
    "q_col = Unsqueeze <axes=[1]> (q_at)\n"                                    \
    "from = Sub (q_col, back)\n"                                               \
    "until = Add (q_col, ahead)\n"                                             \
    "before = Less (k_at, from)\n"                                             \
    "behind = Less (until, k_at)\n"                                            \
    "outside = Or (before, behind)\n"                                          \
    "inside = Not (outside)\n"                                                 \
    "mask4 = Unsqueeze <axes=[1, 2]> (mask)\n"
#define MLO_ATTENTION_SEEN_ALL "seen4 = And (mask4, inside)\n"
/* Keys that don't count score so low that any other is the maximum; when none counts they are all
 * equal. The largest is of doubles: ONNX Runtime's of int64 is wrong beyond 31 bits (measured,
 * 1.31). */
#define MLO_ATTENTION_DISTANCE                              \
    "never_ = Constant <value_int=-1099511627776> ()\n"     \
    "never = Cast <to=11> (never_)\n"                       \
    "score = Where (seen4, scores, never)\n"                \
    "largest = ReduceMax <axes=[-1], keepdims=1> (score)\n" \
    "below = Sub (largest, score)\n"                        \
    "distance = Cast <to=7> (below)\n"                      \
    "i3 = Constant <value_int=3> ()\n"                      \
    "two_ = Constant <value_int=2> ()\n"                    \
    "ms = Gather (p64, i0)\n"                               \
    "ss = Gather (p64, i1)\n"                               \
    "mo = Gather (p64, i2)\n"                               \
    "s = Gather (p64, i3)\n"                                \
    "sd = Pow (two_, ss)\n"                                 \
    "shalf = Div (sd, two_)\n"                              \
    "scaled = Mul (distance, ms)\n"                         \
    "scaled_ = Add (scaled, shalf)\n"                       \
    "octaves_ = Div (scaled_, sd)\n" /* nothing negative here, so Div rounds down */
#define MLO_ATTENTION_COARSE                                                                  \
    "most = Constant <value_int=4095> ()\n"                                                   \
    "farther = Less (most, octaves_)\n"                                                       \
    "t = Where (farther, most, octaves_)\n"                                                   \
    "c64 = Constant <value_int=64> ()\n"                                                      \
    "fraction = Mod (t, c64)\n"                                                               \
    "i_ = Div (t, c64)\n"                                                                     \
    "c20 = Constant <value_int=20> ()\n"                                                      \
    "e_bits = Constant <value_int=@exp_bits> ()\n"                                            \
    "c8 = Constant <value_int=8> ()\n"                                                        \
    "c16 = Constant <value_int=16> ()\n"                                                      \
    "c255 = Constant <value_int=255> ()\n"                                                    \
    "finer = Sub (e_bits, c8)\n"                                                              \
    "finer_ = Pow (two_, finer)\n"                                                            \
    "most_e = Mul (c255, finer_)\n"                                                           \
    "down = Sub (c16, e_bits)\n"                                                              \
    "tiny = Less (c20, i_)\n"                                                                 \
    "i = Where (tiny, c20, i_)\n"                                                             \
    "rom = Constant <value_ints=[" MLO_TEXT(MLO_EXP2_ROM) "]> ()\n"                           \
                                                          "entry = Gather (rom, fraction)\n"  \
                                                          "i8 = Add (i, down)\n"              \
                                                          "unit = Pow (two_, i8)\n"           \
                                                          "unit_half = Div (unit, two_)\n"    \
                                                          "entry_ = Add (entry, unit_half)\n" \
                                                          "e_ = Div (entry_, unit)\n"
#define MLO_ATTENTION_COUNT                                                                  \
    /* the same none-counts rule: a masked key is out unless the maximum itself is masked */ \
    "none_ = Equal (largest, never)\n"                                                       \
    "every = Not (partly)\n"                                                                 \
    "none = And (none_, every)\n"                                                            \
    "counts = Or (seen4, none)\n"                                                            \
    "zero = Constant <value_int=0> ()\n"                                                     \
    "e = Where (counts, e_, zero)\n"                                                         \
    "sum_e = ReduceSum <axes=[-1], keepdims=1> (e)\n" /* 0: nothing is weighted with it */   \
    "empty = Equal (sum_e, zero)\n"                                                          \
    "total = Where (empty, most_e, sum_e)\n"
#define MLO_ATTENTION_NORMALISE           \
    "lt_ = Constant <value_int=@lt> ()\n" \
    "lt8 = Add (lt_, e_bits)\n"           \
    "top_ = Pow (two_, lt8)\n"            \
    "top = Mul (mo, top_)\n"              \
    "m = Div (top, total)\n"
#define MLO_ATTENTION_MIX                                                                          \
    "ev = MatMul (ed, vh)\n"                                                                       \
    "acc = Cast <to=7> (ev)\n" MLO_FUNCTION_REQUANTIZE "yt = Transpose <perm=[0, 2, 1, 3]> (qc)\n" \
    "y3 = Reshape (yt, join)\n"                                                                    \
    "y = Cast <to=@to> (y3)\n"
#define MLO_ATTENTION_ROUND               \
    "raw = Cast <to=7> (products)\n"      \
    "pr = Cast <to=7> (p)\n"              \
    "i7 = Constant <value_int=7> ()\n"    \
    "i8_ = Constant <value_int=8> ()\n"   \
    "i9 = Constant <value_int=9> ()\n"    \
    "mr = Gather (pr, i7)\n"              \
    "sr = Gather (pr, i8_)\n"             \
    "zr = Gather (pr, i9)\n"              \
    "b2 = Constant <value_int=2> ()\n"    \
    "dr = Pow (b2, sr)\n"                 \
    "hr = Div (dr, b2)\n"                 \
    "ra = Mul (raw, mr)\n"                \
    "rb = Add (ra, hr)\n"                 \
    "rc = Mod (rb, dr)\n"                 \
    "rd = Sub (rb, rc)\n"                 \
    "re = Div (rd, dr)\n"                 \
    "rf = Add (re, zr)\n"                 \
    "rl = Constant <value_int=-128> ()\n" \
    "rh = Constant <value_int=127> ()\n"  \
    "low = Less (rf, rl)\n"               \
    "rg = Where (low, rl, rf)\n"          \
    "high = Less (rh, rg)\n"              \
    "rs = Where (high, rh, rg)\n"         \
    "scores = Cast <to=11> (rs)\n"
/* Scores under their cap; the function has its table already. */
#define MLO_ATTENTION_UNDER                     \
    "raw = Cast <to=7> (products)\n"            \
    "i4 = Constant <value_int=4> ()\n"          \
    "i5 = Constant <value_int=5> ()\n"          \
    "mc = Gather (p64, i4)\n"                   \
    "sc = Gather (p64, i5)\n"                   \
    "b2 = Constant <value_int=2> ()\n"          \
    "dc = Pow (b2, sc)\n"                       \
    "hc = Div (dc, b2)\n"                       \
    "ca = Mul (raw, mc)\n"                      \
    "cb = Add (ca, hc)\n"                       \
    "cm = Mod (cb, dc)\n"                       \
    "cd = Sub (cb, cm)\n"                       \
    "ce = Div (cd, dc)\n"                       \
    "ch = Constant <value_int=65535> ()\n"      \
    "cs = Abs (ce)\n"                           \
    "cl = Less (ch, cs)\n"                      \
    "cu = Where (cl, ch, cs)\n"                 \
    "c256 = Constant <value_int=256> ()\n"      \
    "c128 = Constant <value_int=128> ()\n"      \
    "cg = Mod (cu, c256)\n"                     \
    "cf = Div (cu, c256)\n"                     \
    "cn = Add (cf, i1)\n"                       \
    "c_here = Gather (c_rom, cf)\n"             \
    "c_next = Gather (c_rom, cn)\n"             \
    "c_slope = Sub (c_next, c_here)\n"          \
    "c_way = Mul (c_slope, cg)\n"               \
    "c_way_ = Add (c_way, c128)\n"              \
    "c_more = Div (c_way_, c256)\n"             \
    "c_size = Add (c_here, c_more)\n"           \
    "c_less = Neg (c_size)\n"                   \
    "c_below = Less (ce, i0)\n"                 \
    "c_out = Where (c_below, c_less, c_size)\n" \
    "scores = Cast <to=11> (c_out)\n"
#define MLO_ATTENTION_FINE                                                                      \
    "most = Constant <value_int=131071> ()\n"                                                   \
    "farther = Less (most, octaves_)\n"                                                         \
    "t = Where (farther, most, octaves_)\n"                                                     \
    "c64 = Constant <value_int=64> ()\n"                                                        \
    "most_e = Constant <value_int=262143> ()\n"                                                 \
    "g = Mod (t, c64)\n"                                                                        \
    "if_ = Div (t, c64)\n"                                                                      \
    "f = Mod (if_, c64)\n"                                                                      \
    "i = Div (if_, c64)\n"                                                                      \
    "rom = Constant <value_ints=[" MLO_TEXT(MLO_EXP2_FINE) "]> ()\n"                            \
                                                           "one = Constant <value_int=1> ()\n"  \
                                                           "next = Add (f, one)\n"              \
                                                           "fa = Gather (rom, f)\n"             \
                                                           "fb = Gather (rom, next)\n"          \
                                                           "fs = Sub (fa, fb)\n"                \
                                                           "fc = Mul (fs, g)\n"                 \
                                                           "c32 = Constant <value_int=32> ()\n" \
                                                           "fd = Add (fc, c32)\n"               \
                                                           "fe = Div (fd, c64)\n"               \
                                                           "a = Sub (fa, fe)\n"                 \
                                                           "u = Pow (two_, i)\n"                \
                                                           "a2 = Add (a, a)\n"                  \
                                                           "u2 = Add (u, u)\n"                  \
                                                           "a3 = Add (a2, u)\n"                 \
                                                           "e_ = Div (a3, u2)\n"
#define MLO_ATTENTION_PROBABILITIES                          \
    "i4 = Constant <value_int=4> ()\n"                       \
    "i5 = Constant <value_int=5> ()\n"                       \
    "i6 = Constant <value_int=6> ()\n"                       \
    "mp = Gather (p64, i4)\n"                                \
    "sp = Gather (p64, i5)\n"                                \
    "hp = Gather (p64, i6)\n"                                \
    "lt_ = Constant <value_int=@lt> ()\n"                    \
    "c18 = Constant <value_int=18> ()\n"                     \
    "lt18 = Add (lt_, c18)\n"                                \
    "top_ = Pow (two_, lt18)\n"                              \
    "top = Mul (mp, top_)\n"                                 \
    "r = Div (top, total)\n"                                 \
    "dp = Pow (two_, sp)\n"                                  \
    "hf = Div (dp, two_)\n"                                  \
    "sa = Mul (e, r)\n"                                      \
    "sb = Add (sa, hf)\n"                                    \
    "w_ = Div (sb, dp)\n" /* nothing negative here either */ \
    "top_w = Less (hp, w_)\n"                                \
    "w = Where (top_w, hp, w_)\n"                            \
    "m = Identity (mo)\n"

/* The three functions, in two texts each: a string of C99 has 4095 characters at most. */
#define MLO_ATTENTION_BEGIN(name, more, first)                        \
    name " <to, lo, hi, heads, lt, kv_heads=0, causal=0, band=0" more \
         "> (q_, k_, v_, mask, p) => "                                \
         "(y)\n" MLO_ATTENTION_SCORES                                 \
         MLO_ATTENTION_SEEN(first, "band") MLO_ATTENTION_SEEN_ALL
/* The numbers of the bias for the frame at hand; those that hide are as if the mask did, and of a row
 * of which no key counts is nothing left. */
#define MLO_ATTENTION_BIAS                            \
    "axes2 = Constant <value_ints=[1, 2]> ()\n"       \
    "tq1 = Reshape (tq, one1)\n"                      \
    "tk1 = Reshape (tk, one1)\n"                      \
    "until2 = Concat <axis=0> (tq1, tk1)\n"           \
    "b64 = Cast <to=7> (bias)\n"                      \
    "b3 = Slice (b64, zeros, until2, axes2)\n"        \
    "b4 = Unsqueeze <axes=[0]> (b3)\n"                \
    "b_hides = Constant <value_int=-32768> ()\n"      \
    "b_hidden = Equal (b4, b_hides)\n"                \
    "b_seen = Not (b_hidden)\n"                       \
    "b_shift = Constant <value_int=@bias_shift> ()\n" \
    "b_two = Constant <value_int=2> ()\n"             \
    "b_step = Pow (b_two, b_shift)\n"                 \
    "b_steps = Mul (b4, b_step)\n"                    \
    "bd = Cast <to=11> (b_steps)\n"                   \
    "products = MatMul (qh, kh)\n"                    \
    "scores = Add (products, bd)\n"                   \
    "seen4 = And (keys4, b_seen)\n"
static const char mlo_attention_bias_function[] =
    "AttentionBias <to, lo, hi, heads, lt, kv_heads=0, causal=0, band=0, bias_shift=0, exp_bits=8> "
    "(q_, k_, "
    "v_, "
    "mask, p, bias) => (y)\n" MLO_ATTENTION_SCORES "yes_ = Constant <value_int=1> ()\n"
    "yes = Cast <to=9> (yes_)\n" MLO_ATTENTION_SEEN(
        4, "yes") "keys4 = And (mask4, inside)\n" MLO_ATTENTION_BIAS;
static const char mlo_attention_function[] = MLO_ATTENTION_BEGIN(
    "Attention", ", exp_bits=8", 4) "scores = MatMul (qh, kh)\n";
static const char mlo_attention_ending[] =
    MLO_ATTENTION_DISTANCE MLO_ATTENTION_COARSE MLO_ATTENTION_COUNT MLO_ATTENTION_NORMALISE
    "ed = Cast <to=11> (e)\n" MLO_ATTENTION_MIX;
static const char mlo_attention_cap_function[] = MLO_ATTENTION_BEGIN("AttentionCap", ", exp_bits=8",
    6) "products = MatMul (qh, kh)\n"
       "c_rom = Constant <value_ints=[" MLO_TEXT(MLO_TANH_ROM) "]> ()\n";
static const char mlo_attention_cap_ending[] = MLO_ATTENTION_UNDER MLO_ATTENTION_DISTANCE
    MLO_ATTENTION_COARSE MLO_ATTENTION_COUNT MLO_ATTENTION_NORMALISE
    "ed = Cast <to=11> (e)\n" MLO_ATTENTION_MIX;
static const char mlo_attention_probs_function[] = MLO_ATTENTION_BEGIN(
    "AttentionProbs", "", 7) "scores = MatMul (qh, kh)\n";
static const char mlo_attention_rounded_function[] = MLO_ATTENTION_BEGIN(
    "AttentionRounded", "", 10) "products = MatMul (qh, kh)\n" MLO_ATTENTION_ROUND;
static const char mlo_attention_probs_ending[] =
    MLO_ATTENTION_DISTANCE MLO_ATTENTION_FINE MLO_ATTENTION_COUNT MLO_ATTENTION_PROBABILITIES
    "ed = Cast <to=11> (w)\n" MLO_ATTENTION_MIX;

/* One row: query q against keys k of one head. */
typedef struct {
    int64_t tk; /* tokens of keys */
    int64_t d; /* channels of the head */
    int64_t stride; /* elements from a key to the next one */

    const mlo_array *mask;
    int64_t mask_at; /* the element of mask that is the first key's */
    mlo_row_rounding round;

    int64_t from; /* the first key that may count */
    int64_t until; /* the key behind the last one that may */
    const mlo_array *bias; /* NULL: there is none */
    int64_t bias_at; /* the element of bias that is the first key's */
    int bias_shift; /* bits to the left, into units of a score */
} mlo_row;

/* What the source rounded: its probabilities, its scores too. */
static int mlo_attention_probs(const mlo_node *n) {
    return mlo_is(n, "mlo.AttentionProbs") || mlo_is(n, "mlo.AttentionRounded");
}
static int mlo_attention_rounded(const mlo_node *n) { return mlo_is(n, "mlo.AttentionRounded"); }

/* Are scores under a soft cap? */
static int mlo_attention_capped(const mlo_node *n) { return mlo_is(n, "mlo.AttentionCap"); }

/* Is there a bias? What hides a key; its steps. */
static int mlo_attention_biased(const mlo_node *n) {
    return mlo_is(n, "mlo.AttentionBias") || mlo_is(n, "mlo.AttentionSink");
}
enum { MLO_BIAS_MOST = 32767, MLO_BIAS_SHIFT = 23 };
static int64_t mlo_attention_shift(const mlo_node *n) { return mlo_int(n, "bias_shift", 0); }

/* Which keys count, beside the mask; heads of keys and values; members of p without BACK, AHEAD. */
static int mlo_attention_causal(const mlo_node *n) { return mlo_int(n, "causal", 0) != 0; }
static int mlo_attention_banded(const mlo_node *n) { return mlo_int(n, "band", 0) != 0; }
static int mlo_attention_partly(const mlo_node *n) {
    return mlo_attention_causal(n) || mlo_attention_banded(n);
}
/* Rows of keys and values that are parameters, in front of a frame's own (attention_prefix.c). */
static int64_t mlo_attention_ahead(const mlo_node *n) { return mlo_int(n, "prefix", 0); }
static int64_t mlo_attention_heads(const mlo_node *n) { return mlo_int(n, "heads", 1); }
static int64_t mlo_attention_kv_heads(const mlo_node *n) {
    return mlo_int(n, "kv_heads", mlo_attention_heads(n));
}
static int mlo_attention_constants(const mlo_node *n) {
    return mlo_attention_rounded(n) ? 10
        : mlo_attention_probs(n)    ? 7
        : mlo_attention_capped(n)   ? 6
                                    : 4;
}

/* Bits of an exponential; the largest one. */
enum { MLO_EXP_BITS = 8, MLO_EXP_WIDE = 12, MLO_EXP_FINE = 18 };
static int mlo_attention_exp_bits(const mlo_node *n) {
    return mlo_attention_probs(n) ? MLO_EXP_FINE : (int)mlo_int(n, "exp_bits", MLO_EXP_BITS);
}
static int64_t mlo_attention_exp_most(const mlo_node *n) {
    const int bits = mlo_attention_exp_bits(n);
    return bits == MLO_EXP_FINE ? 262143 : 255 * ((int64_t)1 << (bits - MLO_EXP_BITS));
}

/* Do so many channels of queries, so many of keys make these heads? */
static int mlo_attention_divides(const mlo_node *n, int64_t q, int64_t k) {
    const int64_t heads = mlo_attention_heads(n), kv = mlo_attention_kv_heads(n);
    return heads >= 1 && kv >= 1 && heads % kv == 0 && q % heads == 0 && k == q / heads * kv;
}

/* How its rows are rounded; p: its constants. */
static mlo_row_rounding mlo_attention_rounding(const mlo_node *n, const int32_t *p) {
    const mlo_row_rounding r = { p, (int)mlo_int(n, "lt", 0), mlo_attention_probs(n),
        mlo_attention_rounded(n), mlo_attention_capped(n),
        !mlo_attention_partly(n) && !mlo_attention_biased(n), mlo_attention_exp_bits(n) };
    return r;
}

/* Does key j count? */
static int mlo_row_sees(const mlo_row *r, int64_t j) {
    return j >= r->from && j < r->until && mlo_get(r->mask, r->mask_at + j)
        && (!r->bias || mlo_get(r->bias, r->bias_at + j) != MLO_BIAS_HIDES);
}

/* e is scratch of tk + d elements. */
static void mlo_attention_row(const mlo_row *r, const mlo_node *n, const int32_t *q,
    const int32_t *k, const int32_t *v, mlo_array *y, int64_t y_at, int64_t *e) {
    for (int64_t j = 0; j < r->tk; j++) {
        int64_t s = r->bias ? mlo_get(r->bias, r->bias_at + j) * ((int64_t)1 << r->bias_shift) : 0;
        for (int64_t d = 0; d < r->d; d++) s += (int64_t)q[d] * k[j * r->stride + d];
        e[j] = mlo_row_sees(r, j) ? s : MLO_NEVER;
    }
    const int64_t scale = mlo_softmax_weigh(&r->round, e, r->tk);
    int64_t lo = mlo_kernel_low(n), hi = mlo_kernel_high(n);
    /* (values as they lie in memory) */
    int64_t *acc = e + r->tk;
    memset(acc, 0, (size_t)r->d * sizeof *acc);
    for (int64_t j = 0; j < r->tk; j++)
        for (int64_t d = 0; d < r->d; d++) acc[d] += e[j] * v[j * r->stride + d];
    for (int64_t d = 0; d < r->d; d++)
        mlo_set_element(y, y_at + d, mlo_requantize(acc[d], scale, r->round.p[3], lo, hi));
}

/* of 8, of 16 bits: no score is as low as `never` */
enum {
    MLO_ATTENTION_LT = 24,
    MLO_ATTENTION_WIDE_LT = 19, /* exponentials of 12 bits: their sum has 31 */
    MLO_ATTENTION_CHANNELS = 32768,
    MLO_ATTENTION_WIDE_CHANNELS = 512,
    MLO_ATTENTION_SHIFT = 40
};
/* (of p, with a step beyond its end: each member by itself) */
#define MLO_ATTENTION_LIMITS                                                                       \
    { 4, 0, 12, 0, 32767, "score multiplier" },                                                    \
        { 4, 1, 12, 1, MLO_ATTENTION_SHIFT, "score shift" }, { 4, 2, 12, 0, 32767, "multiplier" }, \
        { 4, 3, 12, 1, 62, "shift" }
#define MLO_ATTENTION_PROBS_LIMITS                                          \
    MLO_ATTENTION_LIMITS, { 4, 4, 12, 0, 32767, "probability multiplier" }, \
        { 4, 5, 12, 1, 62, "probability shift" }, { 4, 6, 12, 0, 255, "largest probability" }
#define MLO_ATTENTION_BAND_LIMITS(n)                              \
    { 4, n, 12, 0, INT32_MAX, "number of keys back" },            \
        { 4, n + 1, 12, 0, INT32_MAX, "number of keys ahead" }, { \
        0, 0, 0, 0, 0, NULL                                       \
    }
static const mlo_limit mlo_attention_limits[] = { MLO_ATTENTION_LIMITS,
    MLO_ATTENTION_BAND_LIMITS(4) };
static const mlo_limit mlo_attention_cap_limits[] = { MLO_ATTENTION_LIMITS,
    { 4, 4, 12, 0, 32767, "multiplier of the soft cap" },
    { 4, 5, 12, 1, MLO_ATTENTION_SHIFT, "shift of the soft cap" }, MLO_ATTENTION_BAND_LIMITS(6) };
static const mlo_limit mlo_attention_probs_limits[] = { MLO_ATTENTION_PROBS_LIMITS,
    MLO_ATTENTION_BAND_LIMITS(7) };
static const mlo_limit mlo_attention_rounded_limits[] = { MLO_ATTENTION_PROBS_LIMITS,
    { 4, 7, 12, 0, 262143, "multiplier of scores' steps" },
    { 4, 8, 12, 1, MLO_ATTENTION_SHIFT, "shift of scores' steps" },
    { 4, 9, 12, -128, 127, "zero point of scores" }, MLO_ATTENTION_BAND_LIMITS(10) };

/* Is a bias of this form one for so many heads, queries and keys? */
static int mlo_bias_check(
    mlo *m, const mlo_node *n, const mlo_form *f, int64_t heads, int64_t queries, int64_t keys) {
    const int64_t shift = mlo_attention_shift(n);
    if (f->dtype != MLO_INT16 || f->rank != 3)
        return mlo_fail(m, MLO_E_TYPE, n, "the bias must be INT16 [heads, queries, keys]");
    if ((f->dims[0] != 1 && f->dims[0] != heads) || (f->dims[1] != 1 && f->dims[1] < queries)
        || f->dims[2] < keys)
        return mlo_fail(m, MLO_E_SHAPE, n,
            "a bias of shape %s for %lld heads, %lld queries and %lld keys",
            mlo_dims_text(m, f->rank, f->dims), (long long)heads, (long long)queries,
            (long long)keys);
    if (shift < 0 || shift > MLO_BIAS_SHIFT)
        return mlo_fail(m, MLO_E_DATA, n, "bias_shift %lld is not within 0..%d", (long long)shift,
            MLO_BIAS_SHIFT);
    return mlo_attention_banded(n)
        ? mlo_fail(m, MLO_E_UNSUPPORTED, n, "a band beside a bias; let the bias hide (-32768)")
        : 0;
}

/* Is an exponential as wide as there are, for so long frames? */
static int mlo_exp_bits_check(mlo *m, const mlo_node *n, int64_t lt) {
    const int64_t bits = mlo_int(n, "exp_bits", MLO_EXP_BITS);
    const int wide = bits == MLO_EXP_WIDE, most = wide ? MLO_ATTENTION_WIDE_LT : MLO_ATTENTION_LT;
    if (!wide && bits != MLO_EXP_BITS)
        return mlo_fail(m, MLO_E_DATA, n, "exp_bits %lld is neither 8 nor 12", (long long)bits);
    return lt < 0 || lt > most
        ? mlo_fail(m, MLO_E_DATA, n, "lt %lld is not within 0..%d", (long long)lt, most)
        : 0;
}

static int mlo_attention_forms(mlo_call *c) {
    const mlo_array *q = c->in[0], *k = c->in[1], *v = c->in[2], *mask = c->in[3];
    const int64_t heads = mlo_attention_heads(c->node);
    int64_t lt = mlo_int(c->node, "lt", 0), kv = mlo_attention_kv_heads(c->node);
    for (int i = 0; i < 3; i++)
        if (c->in[i]->rank != 3 || (c->in[i]->dtype != MLO_INT8 && c->in[i]->dtype != MLO_INT16))
            return mlo_fail(c->m, MLO_E_TYPE, c->node,
                "input %d must be INT8 or INT16 [frames, tokens, channels]", i);
    if (!mlo_attention_divides(c->node, q->dims[2], k->dims[2]) || k->dims[2] != v->dims[2]
        || k->dims[1] != v->dims[1])
        return mlo_fail(c->m, MLO_E_SHAPE, c->node,
            "q, k, v of %lld, %lld, %lld channels do not make %lld heads, %lld of keys and values",
            (long long)q->dims[2], (long long)k->dims[2], (long long)v->dims[2], (long long)heads,
            (long long)kv);
    if (k->dims[0] != q->dims[0] || v->dims[0] != q->dims[0])
        return mlo_fail(c->m, MLO_E_SHAPE, c->node,
            "q, k, v of %lld, %lld, %lld frames; they must be of the same", (long long)q->dims[0],
            (long long)k->dims[0], (long long)v->dims[0]);
    if (mask->rank != 2 || mask->dtype != MLO_BOOL || mask->dims[0] != q->dims[0]
        || mask->dims[1] != k->dims[1])
        return mlo_fail(c->m, MLO_E_SHAPE, c->node,
            "the mask is %s %s; it must be BOOL [%lld, %lld], a bit for each key of each frame",
            mlo_dtype_name(mask->dtype), mlo_dims_text(c->m, mask->rank, mask->dims),
            (long long)q->dims[0], (long long)k->dims[1]);
    MLO_TRY(mlo_exp_bits_check(c->m, c->node, lt));
    int most = q->dtype == MLO_INT16 || k->dtype == MLO_INT16 ? MLO_ATTENTION_WIDE_CHANNELS
                                                              : MLO_ATTENTION_CHANNELS;
    if (q->dims[2] / heads > most)
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, c->node,
            "heads of %lld channels; up to %d are supported", (long long)(q->dims[2] / heads),
            most);
    return 0;
}

static int mlo_attention_check(mlo_call *c) {
    MLO_TRY(mlo_attention_forms(c));
    const mlo_limit *limits = mlo_attention_rounded(c->node) ? mlo_attention_rounded_limits
        : mlo_attention_probs(c->node)                       ? mlo_attention_probs_limits
        : mlo_attention_capped(c->node)                      ? mlo_attention_cap_limits
                                                             : mlo_attention_limits;
    return mlo_kernel_limits(c, limits);
}

/* The elements of an operand, whatever its width. */
static int32_t *mlo_attention_wide(mlo *m, const mlo_array *a) {
    int64_t n = mlo_array_count(a);
    int32_t *x = (int32_t *)mlo_scratch(m, (size_t)n, sizeof *x);
    for (int64_t i = 0; x && i < n; i++) x[i] = (int32_t)mlo_get(a, i);
    return x;
}

/* The keys that may count for query i. */
static void mlo_attention_ends(mlo_row *r, const mlo_node *n, int64_t i) {
    const int32_t *reach = r->round.p + mlo_attention_constants(n);
    r->from = 0;
    r->until = r->tk;
    if (mlo_attention_banded(n)) {
        r->from = i - reach[0];
        r->until = mlo_min(r->until, i + 1 + reach[1]);
    }
    if (mlo_attention_causal(n)) r->until = mlo_min(r->until, i + 1 + mlo_attention_ahead(n));
}

/* Rows of an attention, which fall into pieces. */
typedef struct {
    const mlo_node *node;
    mlo_row row; /* but for where it is */
    int64_t frames;
    int64_t queries;
    int64_t heads;
    int64_t readers; /* heads that share keys and values */
    mlo_form bias;
    int32_t *x[3]; /* queries, keys, values */
    mlo_array *y;
    int pieces;
    int64_t *e; /* [pieces, keys + channels of a head] */
} mlo_attention_queries;

/* All heads of a frame's query. */
static void mlo_attention_query(
    const mlo_attention_queries *w, int64_t frame, int64_t i, int64_t *e) {
    mlo_row r = w->row;
    r.mask_at = frame * r.tk;
    mlo_attention_ends(&r, w->node, i);
    for (int64_t h = 0; h < w->heads; h++) {
        const int64_t at = ((frame * w->queries + i) * w->heads + h) * r.d;
        const int64_t kv = frame * r.tk * r.stride + h / w->readers * r.d;
        if (r.bias)
            r.bias_at = (h % w->bias.dims[0] * w->bias.dims[1] + i % w->bias.dims[1])
                * w->bias.dims[2];
        mlo_attention_row(&r, w->node, w->x[0] + at, w->x[1] + kv, w->x[2] + kv, w->y, at, e);
    }
}

static void mlo_attention_piece(void *of, int piece) {
    const mlo_attention_queries *w = (const mlo_attention_queries *)of;
    const int64_t n = w->frames * w->queries;
    const int64_t end = mlo_piece_begins(n, piece + 1, w->pieces);
    for (int64_t i = mlo_piece_begins(n, piece, w->pieces); i < end; i++)
        mlo_attention_query(
            w, i / w->queries, i % w->queries, w->e + piece * (w->row.tk + w->row.d));
}

static int mlo_attention_run(mlo_call *c) {
    const int biased = mlo_attention_biased(c->node);
    if (mlo_kernel_inputs(c, biased ? 6 : 5)
        || mlo_kernel_count(
            c, 4, mlo_attention_constants(c->node) + 2 * mlo_attention_banded(c->node))
        || mlo_attention_check(c))
        return mlo_failed(c->m);
    const mlo_array *q = c->in[0], *k = c->in[1];
    int64_t frames = q->dims[0], tq = q->dims[1], ch = q->dims[2];
    int64_t heads = mlo_attention_heads(c->node);
    int64_t readers = heads / mlo_attention_kv_heads(c->node);
    const mlo_form form = biased ? mlo_array_form(c->in[5]) : mlo_array_form(q);
    if (biased && mlo_bias_check(c->m, c->node, &form, heads, tq, k->dims[1]))
        return mlo_failed(c->m);
    int32_t p[12] = { 0 };
    for (int64_t i = 0; i < 12 && i < mlo_array_count(c->in[4]); i++)
        p[i] = (int32_t)mlo_get(c->in[4], i);
    mlo_row r = { k->dims[1], ch / heads, k->dims[2], c->in[3], 0,
        mlo_attention_rounding(c->node, p), 0, 0, biased ? c->in[5] : NULL, 0,
        (int)mlo_attention_shift(c->node) };
    mlo_attention_queries w = { c->node, r, frames, tq, heads, readers, form, { NULL }, NULL, 0,
        NULL };
    w.y = mlo_call_out(c, 0, mlo_kernel_to(c->node), 3, q->dims);
    w.pieces = mlo_pieces(c->m, frames * tq, 2.0 * (double)(frames * tq) * (double)(r.tk * ch));
    w.e = (int64_t *)mlo_scratch(c->m, (size_t)(w.pieces * (r.tk + r.d)), sizeof *w.e);
    for (int i = 0; i < 3; i++) w.x[i] = mlo_attention_wide(c->m, c->in[i]);
    if (w.y && w.e && w.x[0] && w.x[1] && w.x[2])
        mlo_pieces_do(c->m, mlo_attention_piece, &w, w.pieces);
    for (int i = 0; i < 3; i++) mlo_scratch_free(c->m, w.x[i]);
    mlo_scratch_free(c->m, w.e);
    return mlo_failed(c->m);
}

static int mlo_attention_legal(const mlo_site *s, int64_t pe, int64_t simd) {
    int64_t ch = mlo_last_dim(&s->in[0]), heads = mlo_attention_heads(s->node);
    if (!mlo_attention_divides(s->node, ch, mlo_last_dim(&s->in[1]))) {
        mlo_fail(s->m, MLO_E_SHAPE, s->node,
            "%lld and %lld channels do not make %lld heads, %lld of keys and values", (long long)ch,
            (long long)mlo_last_dim(&s->in[1]), (long long)heads,
            (long long)mlo_attention_kv_heads(s->node));
        return 0;
    }
    /* where a frame starts among earlier ones' keys is a shift, not a division */
    const int starts = s->caches || s->past
        || (mlo_attention_ahead(s->node) && mlo_attention_causal(s->node));
    if (starts && (pe & (pe - 1))) return 0;
    return pe <= s->keys && ch / heads % simd == 0;
}

/* Words of a bias, PE numbers each; of its constants, behind them. */
static int64_t mlo_bias_words(const mlo_site *s, int64_t pe) {
    const mlo_form *f = &s->in[5];
    return mlo_attention_biased(s->node) ? f->dims[0] * f->dims[1] * mlo_parts(f->dims[2], pe) : 0;
}
static int64_t mlo_bias_parts(const mlo_site *s, int64_t pe) {
    return mlo_attention_biased(s->node) ? mlo_parts(64, 16 * pe) : 0;
}

/* A bias lies in the memory of the constants. */
static int mlo_bias_unit(const mlo_site *s, int64_t pe, int64_t heads, mlo_unit *u) {
    const mlo_form *f = &s->in[5];
    if (mlo_bias_check(s->m, s->node, f, heads, s->keys, s->keys)) return mlo_failed(s->m);
    if (f->dims[2] != s->keys || (f->dims[1] != 1 && f->dims[1] != s->keys))
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "a bias of shape %s for frames of %lld tokens",
            mlo_dims_text(s->m, f->rank, f->dims), (long long)s->keys);
    mlo_unit_memory(u, "s_axis_c", 16 * pe, mlo_bias_words(s, pe) + mlo_bias_parts(s, pe));
    mlo_unit_param(u, "BIAS", 1);
    mlo_unit_param(u, "BIASH", f->dims[0]);
    if (!mlo_attention_ahead(s->node)) mlo_unit_param(u, "BIAST", f->dims[1]);
    mlo_unit_param(u, "SHIFT", mlo_attention_shift(s->node));
    return 0;
}

/* Bits of its constants' word, without a band. */
static int mlo_attention_word(const mlo_node *n) {
    return mlo_attention_probs(n) || mlo_attention_capped(n) ? 128 : 64;
}

/* Stages and queues as in mlo_attention.v and its parts. */
static void mlo_attention_rows(const mlo_site *s, mlo_unit *u, int64_t heads, int64_t groups,
    int64_t steps, int64_t exps, int64_t divide) {
    int probs = mlo_attention_probs(s->node);
    int rounded = mlo_attention_rounded(s->node);
    int capped = mlo_attention_capped(s->node);
    int tree = mlo_clog2(u->simd);
    int wide = mlo_clog2(u->pe);
    int64_t most = 4 * groups + 2;
    int64_t ring = 2 * groups + 2 * ((divide + steps) / steps)
        + (14 + 9 * probs + 7 * rounded + 10 * capped) / steps + 2;
    u->flow = MLO_FLOW_ROWS;
    u->rows.heads = heads;
    u->rows.groups = groups;
    u->rows.partly = mlo_attention_partly(s->node);
    u->rows.causal = mlo_attention_causal(s->node);
    u->rows.keys = s->keys;
    u->rows.ahead = mlo_attention_ahead(s->node);
    u->rows.iterations = s->known ? s->iterations : 1;
    u->rows.early = mlo_attention_banded(s->node) || mlo_attention_biased(s->node);
    u->rows.constants = 3 + mlo_bias_parts(s, u->pe);
    u->rows.reach = s->known ? s->known + mlo_attention_constants(s->node) : NULL;
    u->rows.stride = s->n_known;
    u->rows.steps = steps;
    u->rows.exps = exps;
    u->rows.divide = divide;
    u->rows.queue = groups + (12 + tree) / steps + 2;
    u->rows.ring = ring < most ? ring : most;
    u->rows.waiting = probs || capped ? 8 : 4;
    u->rows.held = 16 + wide + 7 * probs;
    u->rows.to_max = 8 + tree;
    u->rows.to_sum = 8 + 2 * probs + 7 * rounded + 10 * capped;
    u->rows.to_out = 12 + 7 * probs + wide;
}

/* Are the keys of two iterations the same? */
static int mlo_reach_equal(const mlo_unit *u, int64_t i, int64_t k) {
    const int64_t *a = u->rows.reach ? u->rows.reach + i * u->rows.stride : NULL;
    const int64_t *b = u->rows.reach ? u->rows.reach + k * u->rows.stride : NULL;
    return !a || (a[0] == b[0] && a[1] == b[1]);
}

/* Where rows differ: the average over a frame's tokens and the iterations, of cycles (no row is
 * faster than the divider) and of products that count. */
static void mlo_attention_average(mlo_unit *u, int64_t least, int64_t channels) {
    const int64_t tokens = u->rows.keys - u->rows.ahead, iterations = u->rows.iterations;
    int64_t cycles = 0, keys = 0, from[2];
    for (int64_t i = 0; i < iterations; i++) {
        int64_t like = 0, alike = 0;
        while (!mlo_reach_equal(u, like, i)) like++;
        if (like < i) continue; /* counted with the first that is like it */
        for (int64_t k = i; k < iterations; k++) alike += mlo_reach_equal(u, k, i);
        for (int64_t at = 0; at < tokens; at++) {
            mlo_row_keys(u, i, at, from);
            keys += alike * (from[1] - from[0] + 1);
            cycles += alike * mlo_max(mlo_row_groups(u, i, at) * u->rows.steps, least);
        }
    }
    u->interval = mlo_parts(u->rows.heads * cycles, tokens * iterations);
    u->macs = 2 * channels * keys / (tokens * iterations);
}

/* Where keys and values of earlier frames are: in banks of its own, or they come with each frame. */
static void mlo_attention_keeps(const mlo_site *s, mlo_unit *u) {
    if (s->caches) mlo_unit_param(u, "CACHE", s->caches);
    if (s->past) mlo_unit_param(u, "PAST", 1);
    u->told = MLO_JOB_BANK;
}

/* Is lt that of frames of t tokens, and an exponential as wide as there are for it? */
static int mlo_attention_lengths(const mlo_site *s, int64_t t) {
    const int64_t lt = mlo_int(s->node, "lt", 0);
    if (lt != mlo_clog2(t))
        return mlo_fail(s->m, MLO_E_DATA, s->node, "lt is %lld; for frames of %lld tokens it is %d",
            (long long)lt, (long long)t, mlo_clog2(t));
    return mlo_exp_bits_check(s->m, s->node, lt);
}

static int mlo_attention_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    int64_t ch = mlo_last_dim(&s->in[0]);
    int64_t heads = mlo_attention_heads(s->node), kv = mlo_attention_kv_heads(s->node);
    int64_t d = ch / heads;
    int64_t t = s->keys;
    static const char *const ports[3] = { "s_axis_q", "s_axis_k", "s_axis_v" };
    MLO_TRY(mlo_attention_lengths(s, t));
    for (int i = 1; i < 3; i++)
        if (s->in_bits[i] != s->in_bits[0])
            return mlo_fail(s->m, MLO_E_UNSUPPORTED, s->node,
                "q has %d bits, input %d has %d; they must have one width", s->in_bits[0], i,
                s->in_bits[i]);
    if (s->known && s->n_known < mlo_attention_constants(s->node) + 2)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "a band needs %d parameters; there are %lld",
            mlo_attention_constants(s->node) + 2, (long long)s->n_known);
    u->module = "mlo_attention";
    u->exp_bits = (int)mlo_int(s->node, "exp_bits", 0);
    for (int i = 0; i < 3; i++)
        u->in[u->n_in++] = mlo_port_make(ports[i], i, simd, s->in_bits[i], i ? kv * d : ch);
    u->out = mlo_port_make("m_axis", 0, simd, s->out_bits, ch);
    int probs = mlo_attention_probs(s->node), rounded = mlo_attention_rounded(s->node);
    int banded = mlo_attention_banded(s->node), capped = mlo_attention_capped(s->node);
    if (!mlo_attention_biased(s->node))
        mlo_unit_memory(u, "s_axis_c", mlo_attention_word(s->node) << banded, 1);
    else if (mlo_bias_unit(s, pe, heads, u))
        return mlo_failed(s->m);
    mlo_unit_param(u, "H", heads);
    mlo_unit_param(u, "D", d);
    mlo_unit_param(u, "T", t - mlo_attention_ahead(s->node));
    mlo_unit_param(u, "PE", pe);
    mlo_unit_param(u, "SIMD", simd);
    mlo_unit_param(u, "XBITS", u->in[0].bits);
    mlo_unit_param(u, "YBITS", u->out.bits);
    if (probs) mlo_unit_param(u, "PROB", 1);
    if (rounded) mlo_unit_param(u, "ROUND", 1);
    if (capped) mlo_unit_param(u, "CAP", 1);
    if (!probs && mlo_attention_exp_bits(s->node) != MLO_EXP_BITS)
        mlo_unit_param(u, "EBITS", mlo_attention_exp_bits(s->node));
    if (kv != heads) mlo_unit_param(u, "KVH", kv);
    if (mlo_attention_causal(s->node)) mlo_unit_param(u, "CAUSAL", 1);
    if (banded) mlo_unit_param(u, "BAND", 1);
    mlo_attention_keeps(s, u);
    /* as in mlo_attention.v: rows of `groups` x `steps` cycles, but no faster than the divider */
    int64_t groups = (t + pe - 1) / pe;
    int64_t steps = d / simd;
    int64_t divider = (17 + mlo_clog2(t) + 1) / 2;
    int64_t row = groups * steps > divider + 1 ? groups * steps : divider + 1;
    int64_t lanes = (pe + steps - 1) / steps, exp_steps = (pe + lanes - 1) / lanes;
    u->interval = heads * row;
    u->latency = groups * (steps + exp_steps + 1) + divider + 28 + mlo_clog2(simd) + mlo_clog2(pe)
        - row + steps + 9 * probs + 7 * rounded + 10 * capped;
    u->multipliers = 2 * pe * simd;
    u->other = simd + pe + probs * (pe + lanes) + (rounded + 2 * capped) * (lanes + 1);
    u->macs = 2 * t * ch;
    u->whole_frame = 1;
    u->pe = (int)pe;
    mlo_attention_rows(s, u, heads, groups, steps, exp_steps, divider);
    if (u->rows.partly) mlo_attention_average(u, divider + 1, ch);
    return 0;
}

/* Bits of a score with a bias: a distance of two has one less. */
static int mlo_bias_score_bits(int dot, int shift) {
    return 1 + (dot > 17 + shift ? dot : 17 + shift);
}

/* What an attention's intermediates depend on. */
typedef struct {
    int sbits; /* of a score */
    int lt; /* log2 of the longest frame */
    mlo_interval score;
} mlo_attention_bounds;

/* The distance of a score to the maximum, times MS. `dbits`: the hardware's; d1, p2: its registers. */
static void mlo_attention_note_distance(
    mlo_intermediates *l, mlo_interval score, int dbits, const char *d1, const char *p2) {
    mlo_interval distance = mlo_from_to(0, mlo_add_ends(score.hi, -score.lo));
    mlo_interval far = mlo_from_to(0, mlo_add_ends(score.hi, mlo_two_to(40)));
    mlo_interval scaled = mlo_product_of(far, mlo_multipliers);
    mlo_note_all(l, "mx - s", distance, 1, dbits, 0, d1);
    mlo_note_golden(l, "mx - never", far, 1, MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_hardware(
        l, "(mx - s) * MS", mlo_product_of(distance, mlo_multipliers), 1, dbits + 16, 0, p2);
    mlo_note_golden(l, "(mx - s) * MS + 2^(SS-1)",
        mlo_sum_of(scaled, mlo_from_to(1, mlo_two_to(MLO_ATTENTION_SHIFT - 1))), 1, MLO_IN_INT64,
        MLO_IN_INT64);
}

static void mlo_attention_note_capped(const mlo_attention_bounds *b, mlo_intermediates *l) {
    const mlo_interval most = mlo_from_to(-MLO_CAP_MOST, MLO_CAP_MOST);
    mlo_interval scaled = mlo_product_of(b->score, mlo_multipliers);
    mlo_interval half = mlo_from_to(1, mlo_two_to(MLO_ATTENTION_SHIFT - 1));
    mlo_interval sum = mlo_sum_of(scaled, half);
    mlo_note_all(l, "s * MC", scaled, 1, b->sbits + 16, 1,
        "u_softmax.g_rounded.g_round[0].g_cap.u_cap.u_requantize.prod2");
    mlo_note_golden(l, "s * MC + 2^(SC-1)", sum, 1, MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_golden(l, "whole steps of s", mlo_from_to(mlo_times_ends(2, scaled.lo), sum.hi), 0,
        MLO_NOWHERE, MLO_IN_INT64);
    mlo_note_all(l, "c", most, 1, 17, 1, "u_softmax.g_rounded.g_round[0].g_cap.u_cap.out_reg");
}

/* Bounds beyond interval arithmetic, because R knows the sum of e: a row's largest score has the
 * largest e, so that the sum is that at least, and |sum e v| R <= |v| sum e R <= |v| MO 2^(LT+EB).
 * Likewise e R <= MP 2^(LT+18). */
static void mlo_attention_note_weights(
    const mlo_site *s, const mlo_attention_bounds *b, mlo_intermediates *l) {
    const int bits = mlo_attention_exp_bits(s->node), places = b->lt + bits;
    mlo_interval e = mlo_from_to(0, mlo_attention_exp_most(s->node));
    mlo_interval top = mlo_product_of(mlo_multipliers, mlo_from_to(1, mlo_two_to(places)));
    mlo_intermediate weights = { "sum e", mlo_sum_of_many(s->keys, e), 1, MLO_IN_INT64,
        MLO_IN_DOUBLE, places, 0, "u_softmax.sum_reg" };
    const int capped = mlo_attention_capped(s->node);
    if (capped) {
        mlo_attention_note_capped(b, l);
        mlo_attention_note_distance(l, mlo_from_to(-MLO_CAP_MOST, MLO_CAP_MOST), 17,
            "u_softmax.g_rounded.g_exp2[0].g_coarse.u_exp2.d1",
            "u_softmax.g_rounded.g_exp2[0].g_coarse.u_exp2.p2");
    } else
        mlo_attention_note_distance(l, b->score, b->sbits - 1,
            "u_softmax.g_exact.g_exp2[0].g_coarse.u_exp2.d1",
            "u_softmax.g_exact.g_exp2[0].g_coarse.u_exp2.p2");
    mlo_note_all(l, "e", e, 1, bits, 0,
        capped ? "u_softmax.g_rounded.g_exp2[0].g_coarse.u_exp2.e5"
               : "u_softmax.g_exact.g_exp2[0].g_coarse.u_exp2.e5");
    mlo_note(l, weights);
    mlo_note_all(l, bits == MLO_EXP_BITS ? "MO * 2^(LT+8)" : "MO * 2^(LT+12)", top, 1, 16 + places,
        0, "u_divide.s_n");
    mlo_note_all(l, "R", mlo_from_to(0, top.hi / e.hi), 1, 17 + b->lt, 0, "u_divide.out_q_reg");
}

static void mlo_attention_note_rounded(const mlo_attention_bounds *b, mlo_intermediates *l) {
    mlo_interval scaled = mlo_product_of(b->score, mlo_from_to(0, 262143));
    mlo_interval half = mlo_from_to(1, mlo_two_to(MLO_ATTENTION_SHIFT - 1));
    mlo_interval sum = mlo_sum_of(scaled, half);
    mlo_note_all(l, "s * MR", scaled, 1, b->sbits + 19, 1,
        "u_softmax.g_rounded.g_round[0].g_steps.u_round.u_requantize.prod2");
    mlo_note_golden(l, "s * MR + 2^(SR-1)", sum, 1, MLO_IN_INT64, MLO_IN_INT64);
    mlo_note_golden(l, "whole steps of s", mlo_from_to(mlo_times_ends(2, scaled.lo), sum.hi), 0,
        MLO_NOWHERE, MLO_IN_INT64);
    mlo_note_all(l, "r", mlo_signed_bits(8), 1, 8, 1,
        "u_softmax.g_rounded.g_round[0].g_steps.u_round.out_reg");
}

static void mlo_attention_note_probs(
    const mlo_site *s, const mlo_attention_bounds *b, mlo_intermediates *l) {
    int rounded = mlo_attention_rounded(s->node);
    mlo_interval e = mlo_from_to(0, 262143);
    mlo_interval top = mlo_product_of(mlo_multipliers, mlo_from_to(1, mlo_two_to(b->lt + 18)));
    mlo_intermediate weights = { "sum e", mlo_sum_of_many(s->keys, e), 1, MLO_IN_INT64,
        MLO_IN_DOUBLE, 18 + b->lt, 0, "u_softmax.sum_reg" };
    if (rounded) {
        mlo_attention_note_rounded(b, l);
        mlo_attention_note_distance(l, mlo_signed_bits(8), 8,
            "u_softmax.g_rounded.g_exp2[0].g_fine.u_exp2.d1",
            "u_softmax.g_rounded.g_exp2[0].g_fine.u_exp2.p2");
    } else
        mlo_attention_note_distance(l, b->score, b->sbits - 1,
            "u_softmax.g_exact.g_exp2[0].g_fine.u_exp2.d1",
            "u_softmax.g_exact.g_exp2[0].g_fine.u_exp2.p2");
    mlo_note_all(l, "e", e, 1, 18, 0,
        rounded ? "u_softmax.g_rounded.g_exp2[0].g_fine.u_exp2.e7"
                : "u_softmax.g_exact.g_exp2[0].g_fine.u_exp2.e7");
    mlo_note(l, weights);
    mlo_note_all(l, "MP * 2^(LT+18)", top, 1, 34 + b->lt, 0, "u_divide.s_n");
    mlo_note_all(l, "R", mlo_from_to(0, top.hi / 262143), 1, 17 + b->lt, 0, "u_divide.out_q_reg");
    mlo_note_all(l, "e * R", mlo_from_to(0, top.hi), 1, 37 + b->lt, 1,
        "u_mix.g_prob.g_rounded.g_weight[0].u_weight.u_requantize.prod2");
    mlo_note_golden(l, "e * R + 2^(SP-1)", mlo_from_to(0, mlo_add_ends(top.hi, mlo_two_to(61))), 1,
        MLO_IN_INT64, MLO_IN_INT64);
}

/* What a score begins with, and is with it. */
static void mlo_attention_note_bias(
    const mlo_site *s, mlo_attention_bounds *b, mlo_intermediates *l) {
    const int shift = (int)mlo_attention_shift(s->node);
    const mlo_interval bias = mlo_product_of(
        mlo_from_to(-MLO_BIAS_MOST, MLO_BIAS_MOST), mlo_from_to(1, mlo_two_to(shift)));
    b->sbits = mlo_bias_score_bits(b->sbits, shift);
    b->score = mlo_sum_of(b->score, bias);
    mlo_note_all(l, "bias * 2^bias_shift", bias, 1, b->sbits, 1, "u_score.start");
}

/* Bits of what a value is multiplied with, signed. */
static int mlo_attention_weight_bits(const mlo_node *n) {
    return 1 + (mlo_attention_probs(n) ? 8 : mlo_attention_exp_bits(n));
}

static void mlo_attention_intermediates(
    const mlo_site *s, const mlo_unit *u, mlo_intermediates *l) {
    int64_t d = mlo_last_dim(&s->in[0]) / mlo_attention_heads(s->node);
    int bits = s->in_bits[0];
    int lt = mlo_clog2(s->keys);
    int probs = mlo_attention_probs(s->node);
    int exps = mlo_attention_exp_bits(s->node);
    int wbits = mlo_attention_weight_bits(s->node);
    int abits = bits + wbits + lt;
    mlo_interval x = mlo_signed_bits(bits);
    mlo_interval qk = mlo_product_of(x, x);
    mlo_interval w = mlo_product_of(
        mlo_from_to(0, probs ? 255 : mlo_attention_exp_most(s->node)), x);
    mlo_interval mix = mlo_sum_of_many(s->keys, w);
    mlo_attention_bounds b = { 2 * bits + (d > 1 ? mlo_clog2(d) : 1), lt, mlo_sum_of_many(d, qk) };
    if (mlo_attention_biased(s->node)) mlo_attention_note_bias(s, &b, l);
    /* above `never`, -2^40 */
    mlo_intermediate scores = { "s", b.score, 1, 41, 41, b.sbits, 1, "u_score.row_max" };
    mlo_intermediate sums = { "sum e v", mix, 1, MLO_IN_INT64, MLO_IN_DOUBLE, abits, 1,
        "u_mix.g_sum[0].sum_reg" };
    mlo_note_hardware(l, "SIMD products", mlo_sum_of_many(u->simd, qk), 1,
        2 * bits + mlo_clog2(u->simd), 1, "u_score.g_dot[0].u_dot.sum");
    mlo_note(l, scores);
    if (probs)
        mlo_attention_note_probs(s, &b, l);
    else
        mlo_attention_note_weights(s, &b, l);
    mlo_note_hardware(l, "PE products", mlo_sum_of_many(u->pe, w), 1,
        bits + wbits + mlo_clog2(u->pe), 1, "u_mix.g_dot[0].u_dot.sum");
    mlo_note(l, sums);
    mlo_interval scaled = probs
        ? mlo_product_of(mix, mlo_multipliers)
        : mlo_product_of(x, mlo_product_of(mlo_multipliers, mlo_from_to(1, mlo_two_to(lt + exps))));
    mlo_note_requantize(l, scaled, abits + (probs ? 17 : 18 + lt),
        "u_mix.g_sum[0].u_requantize.prod2", s->out_bits);
}

/* The constants of an iteration, as s_axis_c of mlo_attention.v has them. */
static void mlo_attention_pack_constants(
    const mlo_node *n, const mlo_array *p, unsigned char *bits) {
    static const int at[] = { 0, 16, 32, 48, 64, 80, 88, 96, 114, 120, 128 };
    for (int i = 0; i < mlo_attention_constants(n); i++) /* (only the last may be negative) */
        mlo_put_bits(bits, at[i], at[i + 1] - at[i], (uint64_t)mlo_get(p, i));
}

/* A row of the bias after the other, a token's heads one behind the other; then the constants. */
static void mlo_bias_pack(const mlo_site *s, const mlo_unit *u, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    const int64_t pe = u->pe, heads = s->in[5].dims[0], rows = s->in[5].dims[1],
                  keys = s->in[5].dims[2];
    const int64_t groups = mlo_parts(keys, pe), row = word / groups;
    const int64_t first = word - mlo_bias_words(s, pe);
    unsigned char all[8] = { 0 };
    if (first < 0) {
        const int64_t from = (row % heads * rows + row / heads) * keys;
        for (int64_t p = 0, j = word % groups * pe; p < pe && j < keys; p++, j++)
            mlo_put_bits(bits, 16 * p, 16, (uint64_t)mlo_get(in[5], from + j));
        return;
    }
    mlo_attention_pack_constants(s->node, in[4], all);
    for (int64_t i = 0; i < 2 * pe && 2 * pe * first + i < 8; i++)
        bits[i] = all[2 * pe * first + i];
}

static void mlo_attention_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word,
    const mlo_array *const *in, unsigned char *bits) {
    const int n = mlo_attention_constants(s->node);
    (void)k;
    if (mlo_attention_biased(s->node)) {
        mlo_bias_pack(s, u, word, in, bits);
        return;
    }
    mlo_attention_pack_constants(s->node, in[4], bits);
    if (!mlo_attention_banded(s->node)) return;
    const int base = mlo_attention_word(s->node), causal = mlo_attention_causal(s->node);
    const int64_t back = mlo_min(mlo_get(in[4], n), s->keys - 1);
    const int64_t ahead = causal ? 0 : mlo_min(mlo_get(in[4], n + 1), s->keys - 1);
    mlo_put_bits(bits, base, 24, (uint64_t)back);
    mlo_put_bits(bits, base + 24, 24, (uint64_t)(ahead / u->pe));
    mlo_put_bits(bits, base + 48, 16, (uint64_t)(ahead % u->pe));
}

/* Of a band, p says how many keys a row has. */
static size_t mlo_attention_knows(const mlo_node *n) { return mlo_attention_banded(n) ? 4 : 0; }

/* A frame of keys or values twice (mlo_attention_kv): groups of PE tokens, each written alone, and
 * which lanes of the last one count. */
static void mlo_attention_frames_area(
    int64_t pe, int64_t width, int64_t words, int64_t groups, mlo_area *a) {
    mlo_area_words(a, pe * width, pe * width, pe * 9 * mlo_parts(width, 9), words);
    a->lut += 3 * pe + 4 * mlo_clog2(words) + 15;
    a->ff += 3 * pe + 3 * mlo_clog2(words) + 3 * mlo_clog2(groups) + 12;
}

/* Where rows begin and end (mlo_attention_walk): a place in groups and lanes that moves, and of a band
 * another one, with an address. */
static void mlo_attention_walk_area(
    int64_t pe, int64_t groups, int banded, int64_t walk, mlo_area *a) {
    const int64_t place = mlo_max(mlo_clog2(groups), 1) + 1 + pe;
    a->lut += (3 + 2 * banded) * place + 2 * walk;
    a->ff += (1 + banded) * place + banded * 2 * walk;
}

/* 2^x of a score's distance to the maximum, a lane: mlo_exp2 (wider: of bits beyond 8), mlo_exp2_fine. */
static void mlo_attention_exp_area(int64_t bits, int fine, int64_t wider, mlo_area *a) {
    enum { LUTS = 100, FFS = 60, FINE_LUTS = 130, FINE_FFS = 150, SHIFTER = 2 };
    a->lut += bits + SHIFTER * (bits + 15) + (fine ? FINE_LUTS : LUTS + 3 * wider);
    a->ff += 2 * bits + 31 + (fine ? FINE_FFS : FFS + 2 * wider);
    a->dsp += mlo_product_dsps(bits, 17) + fine;
}

/* A score under its cap: its requantizer, a table and its slopes, a product, signs (mlo_attention_cap).
 * Alone, of 17, 20 and 24 bits, it is 324, 349, 363 LUTs (170 of the table) and 310, 320, 332
 * flip-flops; of three kernels in tests/areas.txt two have as many, one has 400 of each table. */
static void mlo_attention_cap_area(int64_t bits, mlo_area *a) {
    enum { TABLE_LUTS = 250, FFS = 114 };
    mlo_area_requantize(a, bits, 16, 17, 1, 0);
    a->lut += TABLE_LUTS;
    a->ff += FFS;
    a->dsp += mlo_product_dsps(11, 8);
}

/* Three stages: scores and their maximum; exponentials, their sum and a division; the weighted sum. */
/* The widths of an attention's three stages, in bits, and how many there are of each. */
typedef struct {
    int64_t pe;
    int64_t simd;
    int64_t steps; /* beats of a row */

    int64_t x; /* bits of the operands */
    int64_t score; /* bits of a sum of products */
    int64_t constants; /* bits of what comes with each row */
    int64_t e; /* bits of an exponential */
    int64_t weight; /* bits of what a value is multiplied with, signed */
    int64_t sum; /* bits of the exponentials' sum */
    int64_t r; /* bits of the quotient */
    int64_t on; /* bits of what goes on to the last stage */
    int64_t walk; /* bits of it: which groups a row walks */

    int probs; /* 1: the source rounded its probabilities */
    int rounded; /* 1: its scores, too */
    int capped; /* 1: scores are under a soft cap */
} mlo_attention_widths;

static mlo_attention_widths mlo_attention_widths_of(const mlo_site *s, const mlo_unit *u) {
    const int probs = mlo_attention_probs(s->node), rounded = mlo_attention_rounded(s->node);
    const int64_t lt = mlo_clog2(s->keys), d = u->simd * u->rows.steps;
    mlo_attention_widths w = { u->pe, u->simd, u->rows.steps, s->in_bits[0], 0, 0, 0, 0, 0, 0, 0, 0,
        probs, rounded, mlo_attention_capped(s->node) };
    w.score = 2 * w.x + mlo_max(mlo_clog2(d), 1);
    if (mlo_attention_biased(s->node))
        w.score = mlo_bias_score_bits((int)w.score, (int)mlo_attention_shift(s->node));
    w.constants = 44 + 30 * probs + 32 * rounded + 22 * w.capped;
    w.e = mlo_attention_exp_bits(s->node);
    w.weight = mlo_attention_weight_bits(s->node);
    w.sum = w.e + lt;
    w.r = 17 + lt;
    w.walk = u->rows.partly * mlo_max(mlo_clog2(u->rows.groups), 1)
        + mlo_attention_banded(s->node)
            * mlo_clog2(u->rows.groups * mlo_attention_kv_heads(s->node) * w.steps);
    w.on = 22 + 30 * probs + w.walk;
    return w;
}

/* Scores: a dot product for each key, the sum over the steps, the largest. */
static void mlo_attention_score_area(const mlo_attention_widths *w, int64_t queue, mlo_area *a) {
    mlo_area key = { w->score, w->simd * 3 * w->x + w->score, 0, 0 };
    mlo_area_tree2(&key, w->simd, 2 * w->x);
    key.dsp = w->simd * mlo_product_dsps(w->x, w->x);
    key.lut += 3 * w->score / 2 + 2;
    mlo_area_times(a, w->pe, &key);
    a->ff += w->simd * w->x + 2 * w->score + w->pe * 2;
    a->lut += w->score;
    mlo_area_fifo(a, w->pe * (w->score + 1) + 1, queue);
    mlo_area_fifo(a, w->constants + w->walk + 3, 4);
    mlo_area_fifo(a, w->score, 4);
}

/* Exponentials: scores move down lane by lane, weights move up. Then mlo_divide, two bits a cycle. */
static void mlo_attention_rounding_area(const mlo_attention_widths *w, mlo_area *a) {
    const int64_t lanes = mlo_parts(w->pe, w->steps), places = mlo_parts(w->pe, lanes) * lanes;
    mlo_area lane = { 0, 0, 0, 0 };
    a->lut += places * (w->score + 1);
    a->ff += places * (w->score + 1) + places * w->e + w->score + 22;
    if (w->rounded) {
        mlo_area_requantize(&lane, w->score, 19, 9, 1, 0);
        lane.lut += 18;
        lane.ff += 24;
        mlo_area_sum(a, &lane);
    }
    if (w->capped) {
        /* a row's constants wait beside: shift registers */
        enum { CONSTANTS = 22, CYCLES = 10 };
        mlo_attention_cap_area(w->score, &lane);
        mlo_area_sum(a, &lane);
        a->lut += lanes + CONSTANTS;
        a->ff += CONSTANTS + CYCLES;
    }
    mlo_attention_exp_area(w->rounded ? 9
            : w->capped               ? 18
                                      : w->score,
        w->probs, w->e - MLO_EXP_BITS, &lane);
    lane.lut += w->sum;
    mlo_area_times(a, lanes, &lane);
    a->lut += w->sum;
    a->ff += w->sum;
    mlo_area_fifo(a, w->on + 3, w->probs || w->capped ? 8 : 4);
    mlo_area_fifo(a, w->sum, w->probs || w->capped ? 8 : 4);
    a->lut += 4 * w->sum + w->r;
    a->ff += 2 * w->sum + 2 * w->r + 2 * (9 + 30 * w->probs + w->walk) + 8;
}

/* The weighted sum: a dot product of PE for each channel. */
static void mlo_attention_mix_area(
    const mlo_attention_widths *w, const mlo_site *s, int64_t ring, mlo_area *a) {
    const int64_t product = w->x + w->weight, acc = product + mlo_clog2(s->keys);
    const int64_t mult = (w->probs ? 16 : w->r) + 1;
    mlo_area value = { acc, w->pe * (w->x + product) + acc, 0, 0 };
    mlo_area weight = { 0, 0, 0, 0 };
    mlo_area_memory(a, w->pe * w->e, ring);
    a->lut += 6 * mlo_clog2(ring);
    a->ff += 4 * mlo_clog2(ring);
    if (w->probs) {
        mlo_area_requantize(&weight, w->e + 1, w->r + 1, 9, 1, 0);
        weight.lut += 12 + w->simd * w->x;
        weight.ff += 8 + w->simd * w->x;
        mlo_area_times(a, w->pe, &weight);
    }
    mlo_area_tree2(&value, w->pe, product);
    value.dsp = w->pe * mlo_product_dsps(w->x, w->weight);
    mlo_area_requantize(&value, acc, mult, s->out_bits, 1, 0);
    mlo_area_times(a, w->simd, &value);
    a->ff += (w->weight - 1) * w->pe + 2 * mult;
}

/* The memory of a bias, its address, the register of constants; its numbers wait for their products, a
 * shift register. */
static void mlo_bias_area(
    const mlo_site *s, const mlo_attention_widths *w, int axi, int64_t banks, mlo_area *a) {
    const int64_t words = mlo_bias_words(s, w->pe), parts = mlo_bias_parts(s, w->pe);
    const int64_t bits = 16 * w->pe, stages = 2 + mlo_clog2(w->simd);
    mlo_area_param(a, bits, bits, words + parts, axi, banks);
    a->lut += 3 * mlo_clog2(words + parts) + w->pe * 4;
    a->ff += 2 * mlo_clog2(words + parts) + parts * bits + stages * bits;
}

static void mlo_attention_area(
    const mlo_site *s, const mlo_unit *u, int axi, int64_t banks, mlo_area *a) {
    enum { CONTROL_LUTS = 60, CONTROL_FFS = 25 };
    const mlo_attention_widths w = mlo_attention_widths_of(s, u);
    const int banded = mlo_attention_banded(s->node);
    const int64_t reach = mlo_clog2(s->keys) + mlo_clog2(u->rows.groups) + mlo_clog2(u->pe);
    const int64_t groups = u->rows.groups, kv = mlo_attention_kv_heads(s->node);
    const int64_t words = (s->caches ? s->caches : 2) * groups * kv * w.steps;
    mlo_area_vector(a, w.simd * w.x, w.steps);
    mlo_attention_frames_area(w.pe, w.simd * w.x + 1, words, groups, a);
    mlo_attention_frames_area(w.pe, w.simd * w.x, words, groups, a);
    if (mlo_attention_biased(s->node))
        mlo_bias_area(s, &w, axi, banks, a);
    else
        mlo_area_param(
            a, mlo_attention_word(s->node) << banded, w.constants + banded * reach, 1, axi, banks);
    if (u->rows.partly) mlo_attention_walk_area(w.pe, groups, banded, w.walk, a);
    mlo_attention_score_area(&w, u->rows.queue, a);
    mlo_attention_rounding_area(&w, a);
    mlo_attention_mix_area(&w, s, u->rows.ring, a);
    mlo_area_fifo(a, w.simd * s->out_bits + 3, u->rows.held);
    a->lut += CONTROL_LUTS;
    a->ff += CONTROL_FFS;
}

/* ---- the cards -------------------------------------------------------------- */

/* What all of them share; the rest of a card says how they differ. */
#define MLO_ATTENTION_CARD                                                         \
    .pe_axis = "keys", .simd_axis = "head channels", .legal = mlo_attention_legal, \
    .unit = mlo_attention_unit, .knows = mlo_attention_knows,                      \
    .intermediates = mlo_attention_intermediates, .area = mlo_attention_area,      \
    .pack = mlo_attention_pack

static const mlo_kernel mlo_attention_kernel = {
    .op = { "mlo.Attention", mlo_kernel_same_shape, mlo_attention_run, 5 },
    .kind = MLO_KERNEL_ATTENTION,
    .series = "attention",
    .function = mlo_attention_function,
    .ending = mlo_attention_ending,
    .limits = mlo_attention_limits,
    MLO_ATTENTION_CARD,
};

static const mlo_kernel mlo_attention_bias_kernel = {
    .op = { "mlo.AttentionBias", mlo_kernel_same_shape, mlo_attention_run, 6 },
    .kind = MLO_KERNEL_ATTENTION,
    .series = "attention",
    .function = mlo_attention_bias_function,
    .ending = mlo_attention_ending,
    .limits = mlo_attention_limits,
    MLO_ATTENTION_CARD,
};

static const mlo_kernel mlo_attention_cap_kernel = {
    .op = { "mlo.AttentionCap", mlo_kernel_same_shape, mlo_attention_run, 5 },
    .kind = MLO_KERNEL_ATTENTION,
    .series = "attention",
    .function = mlo_attention_cap_function,
    .ending = mlo_attention_cap_ending,
    .limits = mlo_attention_cap_limits,
    MLO_ATTENTION_CARD,
};

static const mlo_kernel mlo_attention_probs_kernel = {
    .op = { "mlo.AttentionProbs", mlo_kernel_same_shape, mlo_attention_run, 5 },
    .kind = MLO_KERNEL_ATTENTION,
    .series = "attentionprobs",
    .function = mlo_attention_probs_function,
    .ending = mlo_attention_probs_ending,
    .limits = mlo_attention_probs_limits,
    MLO_ATTENTION_CARD,
};

static const mlo_kernel mlo_attention_rounded_kernel = {
    .op = { "mlo.AttentionRounded", mlo_kernel_same_shape, mlo_attention_run, 5 },
    .kind = MLO_KERNEL_ATTENTION,
    .series = "attentionrounded",
    .function = mlo_attention_rounded_function,
    .ending = mlo_attention_probs_ending,
    .limits = mlo_attention_rounded_limits,
    MLO_ATTENTION_CARD,
};
