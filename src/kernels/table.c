/* kernels: the table. A line names a kernel; the card in the kernel's own file says all about it.
 * */
static const mlo_kernel *const mlo_kernels[] = {
    &mlo_mvu_kernel,
    &mlo_mvu_table_kernel,
    &mlo_attention_kernel,
    &mlo_attention_bias_kernel,
    &mlo_attention_cap_kernel,
    &mlo_attention_probs_kernel,
    &mlo_attention_rounded_kernel,
    &mlo_attention_table_kernel,
    &mlo_attention_prefix_kernel,
    &mlo_attention_sink_kernel,
    &mlo_layernorm_kernel,
    &mlo_framenorm_kernel,
    &mlo_exactnorm_kernel,
    &mlo_conv_kernel,
    &mlo_rotary_kernel,
    &mlo_place_kernel,
    &mlo_add_kernel,
    &mlo_mul_kernel,
    &mlo_requant_kernel,
    &mlo_requant_table_kernel,
    &mlo_replay_kernel,
    &mlo_argmax_kernel,
    &mlo_best_kernel,
    &mlo_quantize_kernel,
    &mlo_dequantize_kernel,
};
enum { MLO_N_KERNELS = sizeof mlo_kernels / sizeof *mlo_kernels };

/* The kernel of a node, NULL when it is none (or no node). */
static const mlo_kernel *mlo_kernel_of(const mlo_node *n) {
    if (!n || !n->domain || !mlo_eq(n->domain, "mlo")) return NULL;
    for (int i = 0; i < MLO_N_KERNELS; i++)
        if (mlo_is(n, mlo_kernels[i]->op.name)) return mlo_kernels[i];
    return NULL;
}

static int mlo_is_kernel(const mlo_node *n, mlo_kernel_kind kind) {
    const mlo_kernel *k = mlo_kernel_of(n);
    return k && k->kind == kind;
}
/* Of a token or of a frame. */
static int mlo_is_any_norm(const mlo_node *n) {
    return mlo_is_kernel(n, MLO_KERNEL_NORM) || mlo_is_kernel(n, MLO_KERNEL_FRAME_NORM);
}
static int mlo_has_table(const mlo_node *n) {
    const mlo_kernel *k = mlo_kernel_of(n);
    return k && k->table;
}

/* Gives the model the functions of all kernels its nodes use (and their opset import), replacing
 * those it had. */
static int mlo_add_functions(mlo *m, mlo_model *model) {
    const int opset = mlo_opset_of(m);
    size_t kept = 0;
    int imported = 0;
    if (opset < MLO_LIFTED)
        return mlo_fail_at(m, MLO_E_UNSUPPORTED, model->graph->name,
            "kernels take opset 13; convert the model from %d to that or a later one", opset);
    for (size_t i = 0; i < model->n_opset; i++) imported |= mlo_eq(model->opset[i].domain, "mlo");
    for (size_t i = 0; i < model->n_function; i++) {
        int kernel = 0;
        for (int k = 0; k < MLO_N_KERNELS; k++)
            kernel |= mlo_eq(model->function[i]->domain, "mlo")
                && mlo_eq(model->function[i]->name, mlo_kernels[k]->op.name + 4);
        if (!kernel) model->function[kept++] = model->function[i];
    }
    model->n_function = kept;
    for (int i = 0; i < MLO_N_KERNELS; i++) {
        mlo_function *f = mlo_function_of(
            m, mlo_kernels[i]->function, mlo_kernels[i]->ending, opset);
        if (!f || !MLO_PUSH(m, model->function, model->n_function, f)) return mlo_failed(m);
    }
    mlo_opset own = { MLO_HAS(2), mlo_intern(m, "mlo"), 1 };
    if (!imported && !MLO_PUSH(m, model->opset, model->n_opset, own)) return mlo_failed(m);
    return 0;
}
