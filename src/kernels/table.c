/* kernels: the table. One line a kernel, with a table right behind without; everything else about
 * it is in its own file. */
static const mlo_kernel mlo_kernels[] = {
    { { "mlo.MVU", mlo_mvu_shape, mlo_mvu_run, 5 }, mlo_mvu_function, mlo_mvu_limits,
        "output channels", "input channels", mlo_mvu_legal, mlo_mvu_unit, mlo_mvu_intermediates,
        mlo_mvu_area, mlo_mvu_promises, mlo_mvu_pack },
    { { "mlo.MVUTable", mlo_mvu_shape, mlo_mvu_run, 6 }, mlo_mvu_table_function, mlo_mvu_limits,
        "output channels", "input channels", mlo_mvu_legal, mlo_mvu_unit, mlo_mvu_intermediates,
        mlo_mvu_area, mlo_mvu_promises, mlo_mvu_pack },
    { { "mlo.Attention", mlo_kernel_same_shape, mlo_attention_run, 5 }, mlo_attention_function,
        mlo_attention_limits, "keys", "head channels", mlo_attention_legal, mlo_attention_unit,
        mlo_attention_intermediates, mlo_attention_area, NULL, mlo_attention_pack },
    { { "mlo.AttentionProbs", mlo_kernel_same_shape, mlo_attention_run, 5 },
        mlo_attention_probs_function, mlo_attention_probs_limits, "keys", "head channels",
        mlo_attention_legal, mlo_attention_unit, mlo_attention_intermediates, mlo_attention_area,
        NULL, mlo_attention_pack },
    { { "mlo.AttentionRounded", mlo_kernel_same_shape, mlo_attention_run, 5 },
        mlo_attention_rounded_function, mlo_attention_rounded_limits, "keys", "head channels",
        mlo_attention_legal, mlo_attention_unit, mlo_attention_intermediates, mlo_attention_area,
        NULL, mlo_attention_pack },
    { { "mlo.LayerNorm", mlo_kernel_same_shape, mlo_layernorm_run, 4 }, mlo_layernorm_function,
        mlo_layernorm_limits, "channels", NULL, mlo_lanes_legal, mlo_layernorm_unit,
        mlo_layernorm_intermediates, mlo_layernorm_area, NULL, mlo_layernorm_pack },
    { { "mlo.Add", mlo_kernel_same_shape, mlo_add_run, 3 }, mlo_add_function, mlo_add_limits,
        "channels", NULL, mlo_lanes_legal, mlo_add_unit, mlo_add_intermediates, mlo_add_area,
        mlo_add_promises, mlo_add_pack },
    { { "mlo.Requant", mlo_kernel_same_shape, mlo_requant_run, 4 }, mlo_requant_function,
        mlo_requant_limits, "channels", NULL, mlo_lanes_legal, mlo_requant_unit,
        mlo_requant_intermediates, mlo_requant_area, mlo_requant_promises, mlo_requant_pack },
    { { "mlo.RequantTable", mlo_kernel_same_shape, mlo_requant_run, 5 }, mlo_requant_table_function,
        mlo_requant_limits, "channels", NULL, mlo_lanes_legal, mlo_requant_unit,
        mlo_requant_intermediates, mlo_requant_area, mlo_requant_promises, mlo_requant_pack },
    { { "mlo.Quantize", mlo_kernel_same_shape, mlo_quantize_run, 2 }, mlo_quantize_function, NULL,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL },
    { { "mlo.Dequantize", mlo_dequantize_shape, mlo_dequantize_run, 2 }, mlo_dequantize_function,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};
enum { MLO_N_KERNELS = sizeof mlo_kernels / sizeof *mlo_kernels };

/* The kernel of a node, NULL when it is none. */
static const mlo_kernel *mlo_kernel_of(const mlo_node *n) {
    if (!n->domain || !mlo_eq(n->domain, "mlo")) return NULL;
    for (int i = 0; i < MLO_N_KERNELS; i++)
        if (mlo_is(n, mlo_kernels[i].op.name)) return &mlo_kernels[i];
    return NULL;
}

/* Gives the model the functions of all kernels its nodes use (and their opset import), replacing
 * those it had. */
static int mlo_add_functions(mlo *m, mlo_model *model) {
    int64_t opset = 18;
    size_t kept = 0;
    int imported = 0;
    for (size_t i = 0; i < model->n_opset; i++) {
        if (!model->opset[i].domain || !*model->opset[i].domain) opset = model->opset[i].version;
        if (mlo_eq(model->opset[i].domain, "mlo")) imported = 1;
    }
    for (size_t i = 0; i < model->n_function; i++) {
        int kernel = 0;
        for (int k = 0; k < MLO_N_KERNELS; k++)
            kernel |= mlo_eq(model->function[i]->domain, "mlo")
                && mlo_eq(model->function[i]->name, mlo_kernels[k].op.name + 4);
        if (!kernel) model->function[kept++] = model->function[i];
    }
    model->n_function = kept;
    for (int i = 0; i < MLO_N_KERNELS; i++) {
        mlo_function *f = mlo_function_of(m, mlo_kernels[i].function, opset);
        if (!f || !MLO_PUSH(m, model->function, model->n_function, f)) return mlo_failed(m);
    }
    mlo_opset own = { MLO_HAS(2), mlo_intern(m, "mlo"), 1 };
    if (!imported && !MLO_PUSH(m, model->opset, model->n_opset, own)) return mlo_failed(m);
    return 0;
}
