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
    return mlo_around_rows(m, c) ? mlo_fail(m, MLO_E_UNSUPPORTED, c->scan.node,
                                       "--tokens has no C yet: it is of the loop alone; leave "
                                       "--tokens out, and the host does "
                                       "what is around it (host/pre.onnx, host/post.onnx)")
                                 : 0;
}

static int mlo_emit_c(mlo *m, mlo_sink sink, void *user) {
    static const char *const exact[] = { "round.c", "norm.c", "softmax.c", NULL };
    if (m->n_words) return mlo_emit_flat(m, sink, user);
    if (mlo_to(m, "lower")) return mlo_failed(m);
    m->stage = "emit";
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
    mlo_c_writer w = { e, b, params, narrow, { 0 }, 0 };
    if (!mlo_borders(e, border) && !mlo_c_body_build(m, e->c, b)
        && !mlo_c_params_of(m, e->c, params) && !mlo_c_narrow_of(m, e->c, narrow)
        && !mlo_emit_c_header(&w, border) && !mlo_emit_c_exact(e, exact) && !mlo_emit_c_model(&w)
        && !mlo_emit_c_weights(e, params) && !mlo_c_words_play(e, words)
        && !mlo_emit_c_test(e, words) && !mlo_emit_c_make(e) && !mlo_emit_parts(e)
        && !mlo_emit_c_guide(e, b, border))
        mlo_emit_c_manifest(e, b, words);
    for (int k = 0; k < MLO_C_STREAMS; k++)
        if (words->text[k].m) mlo_text_free(&words->text[k]);
    mlo_text_free(&e->t);
    return mlo_failed(m);
}
