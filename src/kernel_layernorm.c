/* layernorm: LayerNormalization over the channels of a token, in integers. With center = 0: RMSNormalization.
 * inputs: x [.., C] int16, g [C] int32 (fits int16), b [C] int32, p = [EPS (int64), SH].
 *
 *     u[c] = C x[c] - sum x           V = C sum x^2 - (sum x)^2 + EPS         u / sqrt(V) is the normalised value: no division by C
 *     k    = leading base-4 zeros of V, so that V 4^k is in [2^60, 2^62)
 *     root = floor(sqrt(V 4^k / 2^30))            R = floor(2^31 / root)      16 bits of the reciprocal root
 *     n[c] = (u[c] R + half) >> (32 - k)          14 fraction bits            y[c] = clip((n[c] g[c] + b[c]) >> SH)
 *
 * g holds gamma / scale(y) * 2^(SH-14), b holds beta / scale(y) * 2^SH + 2^(SH-1): the rounding half is in b.
 * error: n within 2^-13.9 relative (root, R) + 2^-15; y half a step more.
 * Verilog: mlo_layernorm.   throughput: max(C/PE, 43) cycles a token. */

static const char mlo_layernorm_function[] =
    "LayerNorm <to, lo, hi, center> (x, g, b, p) => (y)\n"
    "x64 = Cast <to=7> (x)\n"
    "g64 = Cast <to=7> (g)\n"
    "b64 = Cast <to=7> (b)\n"
    "i0 = Constant <value_int=0> ()\n"
    "i1 = Constant <value_int=1> ()\n"
    "eps = Gather (p, i0)\n"
    "sh = Gather (p, i1)\n"
    "center_ = Constant <value_int=@center> ()\n"
    "total_ = ReduceSum <axes=[-1], keepdims=1> (x64)\n"
    "total = Mul (total_, center_)\n"
    "channels = Size (g)\n"
    "cx = Mul (x64, channels)\n"
    "u = Sub (cx, total)\n"
    "square = Mul (x64, x64)\n"
    "squares = ReduceSum <axes=[-1], keepdims=1> (square)\n"
    "csquares = Mul (squares, channels)\n"
    "total2 = Mul (total, total)\n"
    "v_ = Sub (csquares, total2)\n"
    "v = Add (v_, eps)\n"
    "powers = Constant <value_ints=[4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864, 268435456, 1073741824,"
    " 4294967296, 17179869184, 68719476736, 274877906944, 1099511627776, 4398046511104, 17592186044416, 70368744177664, 281474976710656,"
    " 1125899906842624, 4503599627370496, 18014398509481984, 72057594037927936, 288230376151711744, 1152921504606846976]> ()\n"
    "less = Less (v, powers)\n"                    /* k = how many of 4^1..4^30 exceed V */
    "less64 = Cast <to=7> (less)\n"
    "k = ReduceSum <axes=[-1], keepdims=1> (less64)\n"
    "four = Constant <value_int=4> ()\n"
    "two = Constant <value_int=2> ()\n"
    "up = Pow (four, k)\n"
    "normal = Mul (v, up)\n"
    "c30 = Constant <value_int=1073741824> ()\n"
    "w32 = Div (normal, c30)\n"
    "wd = Cast <to=11> (w32)\n"
    "rootd = Sqrt (wd)\n"                          /* correctly rounded, so its floor is the integer root of anything below 2^52 */
    "rootf = Floor (rootd)\n"
    "root = Cast <to=7> (rootf)\n"
    "c31 = Constant <value_int=2147483648> ()\n"
    "r = Div (c31, root)\n"
    "ur = Mul (u, r)\n"
    "c32 = Constant <value_int=32> ()\n"
    "down = Sub (c32, k)\n"
    "nd = Pow (two, down)\n"
    "nhalf = Div (nd, two)\n"
    "ur_ = Add (ur, nhalf)\n"
    "nrest = Mod (ur_, nd)\n"
    "nwhole = Sub (ur_, nrest)\n"
    "n = Div (nwhole, nd)\n"
    "ng = Mul (n, g64)\n"
    "acc = Add (ng, b64)\n"
    "d = Pow (two, sh)\n"
    "rest = Mod (acc, d)\n"
    "whole = Sub (acc, rest)\n"
    "q = Div (whole, d)\n"
    MLO_FUNCTION_CLIP
    "y = Cast <to=@to> (qc)\n";

/* floor(sqrt(w)), w below 2^32, bit by bit: exact without any floating point. */
static int64_t mlo_isqrt(int64_t w) {
    int64_t root = 0;
    for (int64_t bit = (int64_t)1 << 15; bit; bit >>= 1) if ((root + bit) * (root + bit) <= w) root += bit;
    return root;
}

static void mlo_layernorm_row(mlo_call *c, const mlo_array *x, int64_t at, int64_t channels, mlo_array *y) {
    int64_t total = 0, squares = 0, eps = mlo_get(c->in[3], 0), lo = mlo_int(c->node, "lo", -32768), hi = mlo_int(c->node, "hi", 32767);
    int sh = (int)mlo_get(c->in[3], 1), k = 0;
    for (int64_t i = 0; i < channels; i++) { int64_t v = mlo_get(x, at + i); total += v; squares += v * v; }
    if (!mlo_int(c->node, "center", 1)) total = 0;
    int64_t v = channels * squares - total * total + eps;
    while (v < (int64_t)1 << 60) { v *= 4; k++; }
    int64_t r = ((int64_t)1 << 31) / mlo_isqrt(v >> 30);
    for (int64_t i = 0; i < channels; i++) {
        int64_t u = channels * mlo_get(x, at + i) - total;
        int64_t n = mlo_shift_down(u * r + ((int64_t)1 << (31 - k)), 32 - k);
        mlo_set_element(y, at + i, mlo_clip(mlo_shift_down(n * mlo_get(c->in[1], i) + mlo_get(c->in[2], i), sh), lo, hi));
    }
}

static int mlo_layernorm_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 4) || mlo_kernel_activation(c, 0)) return (int)c->m->error.code;
    const mlo_array *x = c->in[0];
    int64_t channels = x->rank ? x->dims[x->rank - 1] : 1, rows = channels ? mlo_array_count(x) / channels : 0;
    if (mlo_kernel_count(c, 1, channels) || mlo_kernel_count(c, 2, channels) || mlo_kernel_count(c, 3, 2)) return (int)c->m->error.code;
    if (channels > 1 << 14) return mlo_fail(c->m, MLO_E_UNSUPPORTED, c->node, "%lld channels; the integer norm takes up to 16384", (long long)channels);
    if (mlo_get(c->in[3], 0) < 1) return mlo_fail(c->m, MLO_E_DATA, c->node, "epsilon %lld is below 1", (long long)mlo_get(c->in[3], 0));
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    for (int64_t i = 0; y && i < rows; i++) mlo_layernorm_row(c, x, i * channels, channels, y);
    return (int)c->m->error.code;
}

static const mlo_limit mlo_layernorm_limits[] = { { 1, 0, 1, -32768, 32767, "scale" }, { 3, 0, 2, 1, (int64_t)1 << 47, "epsilon" }, { 3, 1, 2, 0, 40, "shift" }, { 0, 0, 0, 0, 0, NULL } };

static int mlo_layernorm_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    int64_t ch = mlo_last_dim(&s->out); int xbits = s->in_bits[0], ybits = s->out_bits;
    (void)simd;
    u->module = "mlo_layernorm";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, pe, xbits, ch);
    u->out = mlo_port_make("m_axis", 0, pe, ybits, ch);
    mlo_unit_memory(u, "s_axis_c", pe * 64, ch / pe);
    mlo_unit_memory(u, "s_axis_e", 64, 1);
    mlo_unit_param(u, "C", ch); mlo_unit_param(u, "PE", pe); mlo_unit_param(u, "XBITS", xbits); mlo_unit_param(u, "YBITS", ybits);
    mlo_unit_param(u, "CENTER", mlo_int(s->node, "center", 1));
    u->interval = ch / pe > 43 ? ch / pe : 43;           /* 43: the serial root and reciprocal */
    u->latency = 65 + mlo_clog2(pe) + ch / pe; u->other = 4 * pe;
    return 0;
}

static void mlo_layernorm_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word, const mlo_array *const *in, unsigned char *bits) {
    (void)s;
    if (k) { mlo_put_bits(bits, 0, 48, (uint64_t)mlo_get(in[3], 0)); mlo_put_bits(bits, 48, 6, (uint64_t)mlo_get(in[3], 1)); return; }
    for (int64_t p = 0; p < u->pe; p++) {
        mlo_put_bits(bits, 64 * p, 16, (uint64_t)mlo_get(in[1], word * u->pe + p));
        mlo_put_bits(bits, 64 * p + 32, 32, (uint64_t)mlo_get(in[2], word * u->pe + p));
    }
}
