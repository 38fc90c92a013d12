/* sketch: the hardware of a model before anybody has looked at its numbers (--sketch).
 *
 * in:  what the stages quantize and lower would calibrate and round.
 * out: values that are taken to be between -1 and 1, and matrices that have a form and no numbers of their own
 *      (Expand of a zero). Widths, kernels, folding, cycles and areas follow from forms alone.
 *
 * invariant: no matrix is read, whatever its size (of --tokens the table of rows is). What cannot be known without
 *     them is as if nothing had been asked for: all operands have --activations bits, where calibration gives some
 *     of them more (--max-cost). A sketch is for fold and show: it is refused where its numbers would count.
 * example: a Llama of 1.1 billion parameters is folded (--pe 8 --simd 8) in half a second.
 * cost: the parameters of channels; nothing that grows with a matrix.
 */

/* Marks the model, where --sketch asks for it; beside it, nothing may ask for what is measured. */
static int mlo_sketch_begin(mlo *m) {
    static const char *const measured[] = { "report", "max-error", "max-cost" };
    if (!mlo_opt(m, "sketch")) return 0;
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        if (mlo_opt(m, measured[i]))
            return mlo_fail_at(m, MLO_E_USAGE, "sketch",
                "--%s is of values that are measured, and a sketch looks at none; leave one of the "
                "two out",
                measured[i]);
    if (m->n_calib || m->prefill || m->like)
        return mlo_fail_at(m, MLO_E_USAGE, "sketch",
            "a sketch looks at no values: leave --%s out, or --sketch",
            m->n_calib ? "calib" : "prefill");
    return mlo_meta_put(m, &m->model->meta, &m->model->n_meta, mlo_key_sketch, "1");
}

static void mlo_sketch_values(mlo_quantizer *q) {
    for (size_t i = 0; i < q->n_signals; i++) {
        mlo_signal *s = q->signals[i];
        for (int64_t k = 0; k < q->scan.iterations; k++)
            s->rows[k] = s->most[k] = s->inverse[k] = 1;
        for (int64_t k = 0; k < q->scan.iterations * s->channels; k++) {
            s->low[k] = -1;
            s->high[k] = s->square[k] = 1;
        }
    }
}

/* A value of the graph by that name and form, all zeros, which take no room. */
static int mlo_sketch_zeros(mlo *m, mlo_graph *g, const char *name, const mlo_form *f) {
    const int64_t rank = f->rank;
    int64_t *dims = MLO_NEW_N(m, int64_t, mlo_room((size_t)rank));
    char *zero = (char *)mlo_alloc(m, mlo_dtype_size(f->dtype), 1);
    const char *in[] = { mlo_format(m, "%s_none", name), mlo_format(m, "%s_form", name) };
    if (m->error.code) return mlo_failed(m);
    for (int i = 0; i < f->rank; i++) dims[i] = f->dims[i];
    mlo_little_endian((char *)dims, (size_t)rank, sizeof *dims);
    mlo_node *n = mlo_node_new(m, "Expand", name);
    return mlo_graph_init(
               m, g, mlo_tensor_new(m, in[0], f->dtype, NULL, 0, zero, mlo_dtype_size(f->dtype)))
            || mlo_graph_init(m, g,
                mlo_tensor_new(m, in[1], MLO_INT64, &rank, 1, dims, (size_t)rank * sizeof *dims))
            || mlo_inputs(m, n, in, 2) || mlo_node_output(m, n, name) || mlo_graph_add(m, g, n)
        ? mlo_failed(m)
        : mlo_graph_to_front(g);
}
