/* stages: the table of stages; walks a model down it.
 *
 * in:  a loaded model, and the stage it should reach.
 * out: the model at that stage; metadata mlo.stage says which.
 *
 * invariant: every stage has run exactly once, in this order, whichever process ran it.
 * example: mlo_to(m, "fold") runs each stage that the model has not been through.
 * cost: that of the stages.
 */

/* The `lower` stage; with the export of a prompt: both are lowered, and compared. */
static int mlo_lower_as(mlo *m) {
    mlo *prompt = m->prefill;
    if (mlo_lower(m) || !prompt) return mlo_failed(m);
    if (!m->seen)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "the model is quantized already: --prefill is for a model in floats, from quantize on");
    prompt->like = m->seen;
    if (!mlo_to(prompt, "lower") && !mlo_prefill_same(m, prompt)) return 0;
    m->stage = "prefill";
    return mlo_fail_at(m, prompt->error.code, prompt->error.node, "%s", prompt->error.message);
}

static const struct {
    const char *name;
    int (*run)(mlo *m);
} mlo_stages[] = {
    { "read", mlo_read },
    { "scope", mlo_scope },
    { "extract", mlo_extract_as },
    { "roll", mlo_roll_as },
    { "quantize", mlo_quantize_as },
    { "lower", mlo_lower_as },
    { "fold", mlo_fold },
};
enum { MLO_STAGES = sizeof mlo_stages / sizeof *mlo_stages };

/* A stage's place in the table, -1 for "" and for names that are none. */
static int mlo_stage_at(const char *name) {
    for (int i = 0; i < MLO_STAGES; i++)
        if (mlo_eq(mlo_stages[i].name, name)) return i;
    return -1;
}

const char *mlo_stage(const mlo *m) {
    const char *s = m && m->model ? mlo_meta_get(m->model->meta, m->model->n_meta, mlo_key_stage)
                                  : NULL;
    return mlo_or_empty(s);
}

static int mlo_run_stage(mlo *m, int i) {
    m->stage = mlo_stages[i].name;
    return mlo_stages[i].run(m)
        ? mlo_failed(m)
        : mlo_meta_put(m, &m->model->meta, &m->model->n_meta, mlo_key_stage, mlo_stages[i].name);
}

int mlo_to(mlo *m, const char *stage) {
    if (m->error.code) return mlo_failed(m);
    int to = mlo_stage_at(stage), from = mlo_stage_at(mlo_stage(m)) + 1;
    if (to < 0)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "there is no stage '%s'; they are read, scope, extract, roll, quantize, lower, fold",
            mlo_or_empty(stage));
    if (!m->model) return mlo_fail_at(m, MLO_E_USAGE, NULL, "load a model first");
    /* dimensions may still be bound in what was read, and inputs held */
    if (from == 1
        && (mlo_opt(m, "dim") || mlo_opt(m, "shape") || mlo_opt(m, "context")
            || mlo_opt(m, "unbatch") || m->n_held))
        from = 0;
    if (from > 1) MLO_TRY(mlo_context_kept(m));
    for (int i = from; i <= to; i++)
        if (mlo_run_stage(m, i)) return mlo_failed(m);
    return 0;
}
