/* transposed: ConvTranspose, a convolution backwards.
 *
 * in:  a call with its output made: X [N, C, ..], weights [C, M / group, ..], perhaps a bias [M].
 * out: the output [N, M, ..], filled.
 *
 * Each element of X adds its multiple of the kernel to the places of the output that begin at its own times the
 * stride, less the padding. A product of matrices makes all multiples, [M / group taps, positions]; then they are
 * added up. A model's loop does not contain it; behind encoders it brings maps back to the size of an image.
 *
 * invariant: the sizes are those of ONNX: padding takes off what it would add to a convolution; output_shape says the
 *     padding, more of it in front where auto_pad is not SAME_UPPER.
 * example: stride 2 and a kernel of 2: each element becomes a square of 2 x 2.
 * cost: the product, C M / group taps positions.
 */

/* The sizes that come out. */
static int mlo_transposed_out(
    const mlo_shapes *s, mlo_window *w, const int64_t *more, const int64_t *pads) {
    const mlo_attr *said = mlo_attr_of(s->node, "output_shape");
    const int upper = mlo_string_is(s->node, "auto_pad", "SAME_UPPER", 0);
    const int same = upper || mlo_string_is(s->node, "auto_pad", "SAME_LOWER", 0);
    for (int i = 0; i < w->axes; i++) {
        const int64_t whole = w->size[i] < 0
            ? -1
            : w->stride[i] * (w->size[i] - 1) + more[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        w->pad[i] = pads[i];
        w->out[i] = whole < 0 ? -1 : whole - pads[i] - pads[i + w->axes];
        if (whole < 0 || (!said && !same)) continue;
        w->out[i] = said ? said->ints[said->n_ints - (size_t)(w->axes - i)]
                         : w->size[i] * w->stride[i];
        const int64_t all = whole > w->out[i] ? whole - w->out[i] : 0;
        w->pad[i] = upper ? all / 2 : all - all / 2;
    }
    for (int i = 0; i < w->axes; i++)
        if (w->size[i] >= 0 && (w->out[i] < 0 || w->out[i] > INT32_MAX))
            return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                "%lld elements along axis %d would come out", (long long)w->out[i], i + 2);
    return 0;
}

static int mlo_transposed_window(
    const mlo_shapes *s, const mlo_form *x, const mlo_form *k, mlo_window *w) {
    int64_t more[MLO_MAX_RANK], pads[2 * MLO_MAX_RANK];
    const int64_t group = mlo_int(s->node, "group", 1);
    const mlo_attr *kernel = mlo_attr_of(s->node, "kernel_shape");
    const mlo_attr *out = mlo_attr_of(s->node, "output_shape");
    if (x->rank < 3 || k->rank != x->rank || group < 1 || group > INT32_MAX
        || (x->dims[1] >= 0 && k->dims[0] >= 0 && (x->dims[1] != k->dims[0] || k->dims[0] % group)))
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "input %s, weights %s, %lld groups",
            mlo_dims_text(s->m, x->rank, x->dims), mlo_dims_text(s->m, k->rank, k->dims),
            (long long)group);
    w->axes = x->rank - 2;
    if ((kernel && kernel->n_ints != (size_t)w->axes) || (out && out->n_ints < (size_t)w->axes))
        return mlo_fail(
            s->m, MLO_E_SHAPE, s->node, "kernel_shape or output_shape has too few sizes");
    for (int i = 0; i < w->axes; i++) {
        w->size[i] = x->dims[i + 2];
        w->kernel[i] = k->dims[i + 2];
        if (w->kernel[i] < 0) w->size[i] = -1;
        if (kernel && w->kernel[i] >= 0 && kernel->ints[i] != w->kernel[i])
            return mlo_fail(s->m, MLO_E_SHAPE, s->node,
                "kernel_shape is not that of the weights %s",
                mlo_dims_text(s->m, k->rank, k->dims));
    }
    MLO_TRY(mlo_window_list(s, "strides", w->axes, 1, w->stride));
    MLO_TRY(mlo_window_list(s, "dilations", w->axes, 1, w->dilation));
    MLO_TRY(mlo_window_list(s, "output_padding", w->axes, 0, more));
    MLO_TRY(mlo_window_list(s, "pads", 2 * w->axes, 0, pads));
    for (int i = 0; i < w->axes; i++)
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->size[i] > MLO_MAX_DIM
            || w->kernel[i] > INT32_MAX || w->size[i] == 0 || w->kernel[i] == 0)
            return mlo_fail(
                s->m, MLO_E_SHAPE, s->node, "sizes, strides and dilations must be at least 1");
    return mlo_transposed_out(s, w, more, pads);
}

static int mlo_shape_ConvTranspose(mlo_shapes *s) {
    const mlo_form x = mlo_form_in(s, 0), k = mlo_form_in(s, 1);
    mlo_window w;
    s->out[0].dtype = x.dtype;
    MLO_TRY(mlo_same_type(s, 0, 1));
    if (x.rank < 0 || k.rank < 0) return 0;
    MLO_TRY(mlo_transposed_window(s, &x, &k, &w));
    s->out[0] = x;
    s->out[0].dims[1] = mlo_times(k.dims[1], mlo_int(s->node, "group", 1));
    for (int i = 0; i < w.axes; i++) s->out[0].dims[i + 2] = w.out[i];
    return 0;
}

/* Adds multiples [channels taps, positions] to z [channels, ..]. */
static void mlo_fold_back(float *z, const float *multiples, const mlo_window *w, int64_t channels) {
    const int64_t positions = mlo_window_all(w, w->size), taps = mlo_window_all(w, w->kernel);
    const int64_t area = mlo_window_all(w, w->out);
    for (int64_t row = 0; row < channels * taps; row++)
        for (int64_t p = 0; p < positions; p++) {
            int64_t tap = row % taps, at = p, offset = 0, step = 1;
            int inside = 1;
            for (int i = w->axes; i--;) {
                const int64_t v = at % w->size[i] * w->stride[i]
                    + tap % w->kernel[i] * w->dilation[i] - w->pad[i];
                inside &= v >= 0 && v < w->out[i];
                offset += v * step;
                step *= w->out[i];
                at /= w->size[i];
                tap /= w->kernel[i];
            }
            if (inside) z[row / taps * area + offset] += multiples[row * positions + p];
        }
}

/* z := the sums, of each frame and group; z begins as zeros. */
static int mlo_transposed_groups(
    mlo_call *c, float *z, const float *x, const float *k, const mlo_window *w) {
    const int64_t group = mlo_int(c->node, "group", 1), out = c->in[1]->dims[1];
    const int64_t in = c->in[1]->dims[0] / group;
    const int64_t positions = mlo_window_all(w, w->size), taps = mlo_window_all(w, w->kernel);
    const int64_t area = mlo_window_all(w, w->out);
    const int64_t rows = out * taps;
    float *all = (float *)mlo_scratch(c->m, (size_t)mlo_times(rows, positions), sizeof *all);
    for (int64_t i = 0; all && i < c->in[0]->dims[0] * group; i++) {
        if (mlo_gemm(c->m, MLO_FLOAT, all, k + i % group * in * rows, 1, rows,
                x + i * in * positions, positions, 1, rows, positions, in))
            break;
        mlo_fold_back(z + i * out * area, all, w, out);
    }
    mlo_scratch_free(c->m, all);
    return mlo_failed(c->m);
}

static int mlo_run_ConvTranspose(mlo_call *c) {
    mlo *m = c->m;
    mlo_window w;
    mlo_array *y = c->out[0];
    MLO_TRY(mlo_need_inputs(c, 2));
    MLO_TRY(mlo_transposed_window(c->forms, &c->forms->in[0], &c->forms->in[1], &w));
    const mlo_array *x = mlo_as(m, c->in[0], MLO_FLOAT);
    const mlo_array *k = x ? mlo_as(m, c->in[1], MLO_FLOAT) : NULL;
    mlo_array *z = k ? mlo_array_new(m, MLO_FLOAT, y->rank, y->dims) : NULL;
    if (z) {
        float *to = (float *)z->data;
        memset(to, 0, (size_t)mlo_array_count(z) * sizeof *to);
        mlo_transposed_groups(c, to, (const float *)x->data, (const float *)k->data, &w);
        if (!m->error.code && !mlo_conv_bias(c, z, w.axes))
            mlo_convert(y->dtype, y->data, MLO_FLOAT, to, (size_t)mlo_array_count(z));
    }
    mlo_array_free(m, z);
    mlo_as_free(m, x, c->in[0]);
    mlo_as_free(m, k, c->in[1]);
    return mlo_failed(m);
}
