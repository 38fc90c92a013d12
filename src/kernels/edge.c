/* edge: where floats become the core's integers, and integers floats again. These kernels run on
 * the host (pre.onnx, post.onnx); they have no hardware.
 *
 *     Quantize:      y = clip(round_half_even(x / scale), lo, hi)      float32, as in ONNX
 *     Dequantize:    y = float(x) * scale                              float32, as in ONNX
 *     Valid:         y = x > -10000
 *
 * Valid makes the mask of attention: an additive mask is 0 where a key counts and hugely negative
 * where it doesn't.
 */

static const char mlo_quantize_function[] = "Quantize <to, lo, hi> (x, scale) => (y)\n"
                                            "steps = Div (x, scale)\n"
                                            "whole = Round (steps)\n"
                                            "l_ = Constant <value_int=@lo> ()\n"
                                            "h_ = Constant <value_int=@hi> ()\n"
                                            "l = Cast <to=1> (l_)\n"
                                            "h = Cast <to=1> (h_)\n"
                                            "wl = Max (whole, l)\n"
                                            "q = Min (wl, h)\n"
                                            "y = Cast <to=@to> (q)\n";

static const char mlo_dequantize_function[] = "Dequantize (x, scale) => (y)\n"
                                              "steps = Cast <to=1> (x)\n"
                                              "y = Mul (steps, scale)\n";

static int mlo_quantize_run(mlo_call *c) {
    if (mlo_kernel_present(c, 2) || mlo_kernel_result(c)) return mlo_failed(c->m);
    const mlo_array *x = c->in[0], *s = c->in[1];
    if (x->dtype != MLO_FLOAT || s->dtype != MLO_FLOAT)
        return mlo_fail(c->m, MLO_E_TYPE, c->node, "x and scale must be FLOAT");
    if (mlo_kernel_count(c, 1, 1)) return mlo_failed(c->m);
    mlo_array *y = mlo_call_out(c, 0, mlo_kernel_to(c->node), x->rank, x->dims);
    const int64_t ends[2] = { mlo_kernel_low(c->node), mlo_kernel_high(c->node) };
    const float scale = ((const float *)s->data)[0];
    for (int64_t i = 0, n = mlo_array_count(x); y && i < n; i++)
        mlo_set_element(y, i, mlo_real_steps(((const float *)x->data)[i], scale, 0, ends));
    return mlo_failed(c->m);
}

static int mlo_dequantize_run(mlo_call *c) {
    if (mlo_kernel_present(c, 2) || mlo_kernel_count(c, 1, 1)) return mlo_failed(c->m);
    const mlo_array *x = c->in[0];
    if (!mlo_is_whole(x->dtype) || c->in[1]->dtype != MLO_FLOAT)
        return mlo_fail(c->m, MLO_E_TYPE, c->node, "x must be of integers, scale FLOAT");
    mlo_array *y = mlo_call_out(c, 0, MLO_FLOAT, x->rank, x->dims);
    for (int64_t i = 0, n = mlo_array_count(x); y && i < n; i++)
        ((float *)y->data)[i] = (float)mlo_get(x, i) * ((const float *)c->in[1]->data)[0];
    return mlo_failed(c->m);
}

static int mlo_dequantize_shape(mlo_shapes *s) {
    if (s->in[0].rank < 0) return 0;
    s->out[0] = s->in[0];
    s->out[0].dtype = MLO_FLOAT;
    return 0;
}

/* ---- the cards -------------------------------------------------------------- */

static const mlo_kernel mlo_quantize_kernel = {
    .op = { "mlo.Quantize", mlo_kernel_same_shape, mlo_quantize_run, 2 },
    .kind = MLO_KERNEL_TO_INTEGERS,
    .series = "quantize",
    .function = mlo_quantize_function,
};

static const mlo_kernel mlo_dequantize_kernel = {
    .op = { "mlo.Dequantize", mlo_dequantize_shape, mlo_dequantize_run, 2 },
    .kind = MLO_KERNEL_TO_FLOATS,
    .series = "dequantize",
    .function = mlo_dequantize_function,
};
