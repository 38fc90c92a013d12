/* gate: recognises the product of two values of the loop and makes it a Mul of streams.
 *
 * in:  a Mul of two values that depend on the carried value, of one shape: silu(x Wg) * (x Wu), and
 *     any other two. What is a function of one value alone (x * sigmoid(x)) is that: see unary.c.
 * out: the kernel Mul of two wide streams, which have no zero points. A function that is all that
 *     reads the linear layer behind it has become that layer's table.
 *
 * The product of channels has one multiplier, but the channels of products differ more than those
 * of their operands, and 8 bits are few. So where linear layers alone read the product, and one of
 * the operands is a linear layer's result that nothing else reads, the product gets a factor per
 * channel (a shape), for nothing: the layer in front divides by it, in the multipliers that it has
 * anyway, and those behind have it in their weights.
 *
 * invariant: that operand has the shape of the product; the steps of both then are multiples of each
 *     other by one number.
 * example: a product whose channels reach 0.1 and 20 leaves the first of them one of 127 steps, or
 *     with shapes of 0.1 and 20 all.
 * cost: two multipliers a lane.
 */

/* ---- recognising ---------------------------------------------------------- */

/* The value that `name` is a positive constant times; *scale takes the constant. */
static const char *mlo_unscaled_operand(mlo_recogniser *r, const char *name, double *scale) {
    for (int i = 0; i < MLO_CHAIN; i++) {
        const mlo_node *n = mlo_made_by(&r->in, name);
        double by = 1;
        const char *from = n ? mlo_unscaled(&r->in, n, &by) : NULL;
        if (!from || !(by > 0) || !mlo_is_carried(&r->in, from)) break;
        *scale *= by;
        name = from;
    }
    return name;
}

/* Is it a product of two values, which is no function of one? */
static int mlo_is_gate(mlo_recogniser *r, mlo_node *n) {
    return mlo_is(n, "Mul") && mlo_is_carried(&r->in, n->input[0])
        && mlo_is_carried(&r->in, n->input[1]) && !mlo_unary_source(r, n);
}

static const char *mlo_block_gate(mlo_recogniser *r, mlo_node *n, const char *out, double scale) {
    mlo_sublayer *b = mlo_block_new(r, n, out);
    mlo_form f0 = mlo_body_form(&r->in, n->input[0]), f1 = mlo_body_form(&r->in, n->input[1]);
    if (!b) return NULL;
    if (mlo_last_dim(&f0) != mlo_last_dim(&f1) || mlo_form_count(&f0) != mlo_form_count(&f1))
        return mlo_cannot_spread(r, n, "a product");
    for (int k = 0; k < 2; k++) b->in[k] = mlo_unscaled_operand(r, n->input[k], &scale);
    b->n_in = 2;
    b->scale = scale;
    return mlo_block_finish(r, b);
}

/* The product may be multiplied by a constant: it is part of the multiplier. */
static const char *mlo_recognise_gate(mlo_recogniser *r, mlo_node *n, const char *name, int *is) {
    double scale = 1;
    const char *product = mlo_unscaled_operand(r, name, &scale);
    mlo_value *v = mlo_value_of(r->body, product);
    mlo_node *p = mlo_made_by(&r->in, product);
    *is = p && mlo_is_gate(r, p) && (p == n || (v && v->n_uses == 1));
    return *is ? mlo_block_gate(r, p, name, scale) : NULL;
}
static const char *mlo_type_gate(const mlo_sublayer *b) {
    (void)b;
    return "mul";
}

/* ---- scales --------------------------------------------------------------- */

static int mlo_is_read_once(const mlo_quantizer *q, const char *name) {
    int readers = 0;
    for (size_t i = 0; i < q->r.n_block; i++)
        for (int k = 0; k < q->r.block[i]->n_in; k++) readers += q->r.block[i]->in[k] == name;
    return readers == 1 && name != q->result;
}

/* The operand that can have a factor per channel; NULL: none can. */
static mlo_signal *mlo_gate_shaped(mlo_quantizer *q, const mlo_sublayer *b) {
    const mlo_signal *y = mlo_signal_of(q, b->out);
    if (y->wide || !mlo_absorbed(y) || mlo_narrow_given(y) || mlo_weights_fixed(q, y->name))
        return NULL;
    for (int k = 0; k < 2; k++) {
        mlo_signal *s = mlo_signal_of(q, b->in[k]);
        if (s->maker && s->maker->kind == MLO_LINEAR && !s->given && !s->given_wide && !s->narrow
            && mlo_is_read_once(q, s->name))
            return s;
    }
    return NULL;
}

/* The operand takes over the product's shape. Rounding x to its steps moves the product by up to
 * `other` (the other operand) times these; that is to stay well below the product's own steps, so
 * channels in which x is large while the product is small have a larger factor. */
static void mlo_gate_shape(
    const mlo_quantizer *q, mlo_signal *x, const mlo_signal *other, mlo_signal *y, int64_t i) {
    double most = 0, reach = 0;
    const int64_t from = i * y->channels, to = from + y->channels;
    for (int64_t c = from; c < to; c++) {
        double r = mlo_reach(y, c) / (double)y->shape[c];
        if (r > most) most = r;
    }
    /* of an operand's step, times the other, in steps of the product: a quarter at most */
    double least = 4 * other->most[i] * mlo_headroom * mlo_top(y)
        / (mlo_wide_top(x) * (most > 1e-20 ? most : 1));
    for (int64_t c = from; c < to; c++) {
        double t = mlo_reach(x, c) * least;
        if (t > (double)y->shape[c]) y->shape[c] = (float)(q->pow2 ? mlo_pow2_up(t) : t);
    }
    for (int64_t c = from; c < to; c++) {
        double r = mlo_reach(x, c) / (double)y->shape[c];
        if (r > reach) reach = r;
    }
    x->wide_scale[i] = mlo_step(q, (reach > 1e-20 ? reach : 1) * mlo_headroom / mlo_wide_top(x));
    x->wide_shape = y->shape;
    mlo_fit(q, y, i);
}

static int mlo_gate_scales(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo_signal *y = mlo_signal_of(q, b->out), *x = mlo_gate_shaped(q, b);
    if (!y->narrow) return 0;
    if (y->wide || mlo_given_scaled(mlo_narrow_given(y))) return mlo_narrow_scales(q, y);
    if (x && mlo_shape_symmetric(q, y, y->name)) return mlo_failed(q->m);
    if (!x) mlo_widen(q, y);
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        if (x)
            mlo_gate_shape(q, x, mlo_signal_of(q, b->in[b->in[0] == x->name]), y, i);
        else
            mlo_fit(q, y, i);
    }
    return 0;
}

/* ---- making it ------------------------------------------------------------ */

/* Is a zero given for the product, which no product of streams has? */
static int mlo_gate_offset(const mlo_quantizer *q, const mlo_signal *y) {
    for (int64_t c = 0; !y->wide && c < q->scan.iterations * y->channels; c++)
        if (mlo_differs(y->zero[c], 0)) return 1;
    return mlo_widened(q, y);
}

/* A product with a zero is made without one, in the same steps, but 16 bits of them. */
static int mlo_quantize_gate(mlo_quantizer *q, const mlo_sublayer *b) {
    mlo *m = q->m;
    const mlo_signal *a = mlo_signal_of(q, b->in[0]), *c = mlo_signal_of(q, b->in[1]);
    mlo_signal *y = mlo_signal_of(q, b->out);
    const int offset = mlo_gate_offset(q, y);
    const mlo_form_made plain = { y->narrow_scale, NULL, NULL, MLO_INT16, 16 };
    const mlo_form_made made = offset ? plain : mlo_made_at(q, y);
    const char *out = offset ? mlo_format(m, "%s_product", b->out) : b->out;
    const char *p = mlo_format(m, "%s_p", b->out);
    const int64_t two = 2;
    int32_t *data = p && out ? (int32_t *)mlo_parameter(q, p, MLO_INT32, 1, &two) : NULL;
    mlo_node *n = data
        ? mlo_kernel_node(q, &mlo_mul_kernel, b, out, made.type, made.bits, made.scale)
        : NULL;
    if (!n) return mlo_failed(m);
    for (int64_t i = 0; i < q->scan.iterations; i++) {
        int64_t mult;
        int shift;
        MLO_TRY(mlo_ratio(q, b->node,
            a->wide_scale[i] * c->wide_scale[i] * b->scale / made.scale[i], 62, &mult, &shift));
        data[2 * i] = (int32_t)mult;
        data[2 * i + 1] = shift;
    }
    const char *in[] = { a->wide_name, c->wide_name, p };
    if (mlo_inputs(m, n, in, 3)
        || (offset && mlo_offset_node(q, b, out, b->out, mlo_narrow_type(y), y->bits, y, -1)))
        return mlo_failed(m);
    return mlo_narrow(q, b, b->out, y);
}

static const mlo_sublayer_kind mlo_gate_sublayer = {
    .kind = MLO_GATE,
    .reads_wide = 1,
    .recognise = mlo_recognise_gate,
    .scales = mlo_gate_scales,
    .quantize = mlo_quantize_gate,
    .type = mlo_type_gate,
};
