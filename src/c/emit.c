/* emit: target c: the layer that a loop runs, or a network of integers as it stands.
 *
 * in:  a model; words of its inputs (mlo_words), if it is a network of integers.
 * out: the files, to a sink.
 *
 * invariant: where words were given, nothing is quantized.
 * example: mlo_words(m, inputs, n, golden, k), option target = c, then mlo_emit.
 * cost: an evaluation of the model.
 */

/* C is of the loop: what a core of ids has around it is not written, and so nothing is. */
static int mlo_c_fits(mlo *m, const mlo_core *c) {
    if (c->given)
        return mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node,
            "keys and values are the model's own inputs and outputs, of which C of a layer has "
            "none; C of the network as it stands has them: give words (--inputs)");
    return mlo_around_rows(m, c) ? mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node,
                                       "--tokens has no C yet: it is of the loop alone; leave "
                                       "--tokens out, and the host does "
                                       "what is around it (host/pre.onnx, host/post.onnx)")
                                 : 0;
}

/* A network as it stands, of integers or, with --whole, of floats. */
static int mlo_emit_flat(mlo *m, mlo_sink sink, void *user) {
    if (mlo_emit_begin(m, "read")) return mlo_failed(m);
    const size_t n_input = m->model->graph->n_input;
    mlo_emitter *e = MLO_NEW(m, mlo_emitter);
    mlo_flat *f = MLO_NEW(m, mlo_flat);
    mlo_array *bound = MLO_NEW_N(m, mlo_array, n_input + 1);
    mlo_array **made = MLO_NEW_N(m, mlo_array *, n_input + 1);
    size_t count = 0;
    if (!e || !f || !bound || !made || mlo_infer(m)) return mlo_failed(m);
    e->m = e->t.m = f->m = m;
    e->sink = sink;
    e->user = user;
    f->g = m->model->graph;
    mlo_flat_writer w = { e, f, NULL, { 0 }, { 0, 0, 1 }, 0, NULL, 0, 0 };
    if (!mlo_flat_bind(m, bound, made, &count)) {
        if (mlo_opt(m, "whole"))
            mlo_whole_network(&w, bound, count);
        else if (!mlo_flat_values(f, bound, count) && !mlo_flat_steps(f) && !mlo_flat_fuse(f)
            && !mlo_flat_plan(f) && !mlo_flat_room(f))
            mlo_flat_files(&w);
    }
    for (size_t i = 0; i < n_input; i++) mlo_array_free(m, made[i]);
    for (size_t i = 0; f->result && i < f->g->n_output; i++) mlo_array_free(m, f->result[i]);
    mlo_text_free(&e->t);
    return mlo_failed(m);
}

/* The texts of src/exact that kernels call. */
static const char *const *mlo_c_exact(const mlo_core *c) {
    static const char *const dialect[] = { "round.c", "norm.c", "softmax.c", "deeploy.c", NULL };
    static const char *const plain[] = { "round.c", "norm.c", "softmax.c", NULL };
    for (int i = 0; i < c->n_element; i++)
        if (mlo_is_kernel(c->element[i].node, MLO_KERNEL_EXACT_NORM)) return dialect;
    return plain;
}

static int mlo_emit_c(mlo *m, mlo_sink sink, void *user) {
    if (m->n_words) return mlo_emit_flat(m, sink, user);
    if (mlo_emit_begin(m, "lower")) return mlo_failed(m);
    mlo_emitter *e = MLO_NEW(m, mlo_emitter);
    mlo_c_body *b = MLO_NEW(m, mlo_c_body);
    mlo_c_params *params = MLO_NEW(m, mlo_c_params);
    mlo_c_narrow *narrow = MLO_NEW(m, mlo_c_narrow);
    mlo_c_words *words = MLO_NEW(m, mlo_c_words);
    mlo_border border[MLO_BORDERS];
    if (!e || !b || !params || !narrow || !words || !(e->c = MLO_NEW(m, mlo_core)) || mlo_infer(m)
        || mlo_core_build(m, e->c) || mlo_c_fits(m, e->c))
        return mlo_failed(m);
    e->m = e->t.m = m;
    e->sink = sink;
    e->user = user;
    mlo_c_writer w = { e, b, params, narrow, { 0 }, { NULL, NULL, NULL, NULL, 0, 0, 0, NULL }, 0 };
    const int whole = mlo_opt(m, "whole") != NULL;
    if (!mlo_borders(e, border) && !mlo_c_body_build(m, e->c, b)
        && !mlo_c_params_of(m, e->c, params) && !mlo_c_narrow_of(m, e->c, narrow)
        && !(whole && mlo_whole_around(e, b->plan.bytes, &w.whole))
        && !mlo_c_pack(e, mlo_c_params_size(e, params) + w.whole.weights_bytes)
        && !mlo_emit_c_header(&w, border) && !mlo_emit_c_exact(e, mlo_c_exact(e->c))
        && !mlo_emit_c_model(&w)
        && !(whole && mlo_whole_emit_code((mlo_flat_writer *)w.whole.writer, "whole.c"))
        && !mlo_emit_c_weights(e, params, w.whole.weights, w.whole.writer, w.whole.weights_bytes)
        && !mlo_c_words_play(e, words) && !mlo_emit_c_test(e, words, &w.whole)
        && !mlo_emit_c_make(e, whole ? MLO_C_AROUND : MLO_C_INTEGERS) && !mlo_emit_parts(e)
        && !mlo_emit_c_guide(&w, border))
        mlo_emit_c_manifest(&w, words);
    for (int k = 0; k < MLO_C_STREAMS; k++)
        if (words->text[k].m) mlo_text_free(&words->text[k]);
    mlo_text_free(&e->t);
    return mlo_failed(m);
}
