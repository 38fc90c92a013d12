/* requant: y = requantize(x), one multiplier and shift for the whole tensor: 16-bit residual stream -> 8-bit matrix operands.
 * inputs: x [.., C], p = [M, S] int32.   Verilog: mlo_requant.   throughput: PE channels a cycle.   error: at most half a step. */

static const char mlo_requant_function[] =
    "Requant <to, lo, hi> (x, p) => (y)\n"
    "acc = Cast <to=7> (x)\n"
    "p64 = Cast <to=7> (p)\n"
    "i0 = Constant <value_int=0> ()\n"
    "i1 = Constant <value_int=1> ()\n"
    "m = Gather (p64, i0)\n"
    "s = Gather (p64, i1)\n"
    MLO_FUNCTION_REQUANTIZE
    "y = Cast <to=@to> (qc)\n";

static int mlo_requant_run(mlo_call *c) {
    if (mlo_kernel_inputs(c, 2) || mlo_kernel_count(c, 1, 2)) return (int)c->m->error.code;
    const mlo_array *x = c->in[0], *p = c->in[1];
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    if (!y) return (int)c->m->error.code;
    int64_t n = mlo_array_count(x), lo = mlo_int(c->node, "lo", -128), hi = mlo_int(c->node, "hi", 127);
    for (int64_t i = 0; i < n; i++) mlo_set_element(y, i, mlo_requantize(mlo_get(x, i), mlo_get(p, 0), (int)mlo_get(p, 1), lo, hi));
    return 0;
}

static const mlo_limit mlo_requant_limits[] = { { 1, 0, 2, 0, 32767, "multiplier" }, { 1, 1, 2, 1, 62, "shift" }, { 0, 0, 0, 0, 0, NULL } };

static int64_t mlo_last_dim(const mlo_form *f) { return f->rank > 0 ? f->dims[f->rank - 1] : 1; }

/* Kernels that work on PE lanes of a token: PE divides the channels. */
static int mlo_lanes_legal(const mlo_site *s, int64_t pe, int64_t simd) { return simd == 1 && pe >= 1 && mlo_last_dim(&s->out) % pe == 0; }

static int mlo_requant_unit(const mlo_site *s, int64_t pe, int64_t simd, mlo_unit *u) {
    int64_t channels = mlo_last_dim(&s->out); int xbits = mlo_bits_of(s->in[0].dtype), ybits = mlo_bits_of(s->out.dtype);
    (void)simd;
    u->module = "mlo_requant";
    u->in[u->n_in++] = mlo_port_make("s_axis", 0, pe, xbits, channels);
    u->out = mlo_port_make("m_axis", 0, pe, ybits, channels);
    mlo_unit_memory(u, "s_axis_c", 64, 1);
    mlo_unit_param(u, "C", channels); mlo_unit_param(u, "PE", pe); mlo_unit_param(u, "XBITS", xbits); mlo_unit_param(u, "YBITS", ybits);
    u->interval = channels / pe; u->latency = 9; u->other = pe;
    return 0;
}
static void mlo_requant_pack(const mlo_site *s, const mlo_unit *u, int k, int64_t word, const mlo_array *const *in, unsigned char *bits) {
    (void)s; (void)u; (void)k; (void)word;
    mlo_put_bits(bits, 0, 16, (uint64_t)mlo_get(in[1], 0));
    mlo_put_bits(bits, 16, 6, (uint64_t)mlo_get(in[1], 1));
}
