/* quantize: turns one float loop into integers.
 *
 * in:  a rolled float model, and samples to calibrate with (else inputs drawn from the declared
 *     types, with a warning).
 * out: the same model, its loop's body made of mlo kernels; Quantize before the loop and Dequantize
 *     behind it. Weights stay references: the body says QuantizeLinear(W, scale), and stage lower
 *     evaluates that one layer at a time.
 *
 * scales.c decides what an integer stands for; this file computes the numbers. A linear layer that
 * reads y[c] = (x[c] - zero[c]) / (scale shape[c]) multiplies row c of its weights by shape[c]. Its
 * bias takes up the zeros times the weights, and what rounding the weights and the operands does on
 * average: so the mean over the calibration is exact.
 *
 * invariant: the Verilog depends on shapes and widths alone: every scale, multiplier, shift, table
 *     and bias is a per-iteration parameter, whether or not layers agree about it.
 * example: a MatMul + Add of a BERT layer becomes
 *         w8 = QuantizeLinear(w, w_scale, 0)      y = mlo.MVU(x8, w8, bias, mult, shift)
 *     (Weights of fewer bits get a Clip behind it; the model carries them as INT8, the hardware at
 *     their own width.)
 * cost: two float evaluations per sample; one layer's weights in memory at a time.
 */

/* ---- the mask ------------------------------------------------------------- */

/* A boolean [frames, tokens] value k->bits in the outer graph, true where a key counts. Without a mask:
 * a constant of ones. */
static int mlo_quantize_mask(
    mlo_quantizer *q, const mlo_keys *k, mlo_graph *before, int64_t tokens) {
    mlo *m = q->m;
    if (!k->mask) {
        const int64_t dims[] = { 1, tokens };
        char *ones = (char *)mlo_alloc(m, (size_t)tokens, 1);
        if (!ones) return mlo_failed(m);
        memset(ones, 1, (size_t)tokens);
        return mlo_graph_init(
            m, q->scan.outer, mlo_tensor_new(m, k->bits, MLO_BOOL, dims, 2, ones, (size_t)tokens));
    }
    if (k->bad)
        return mlo_fail_at(m, MLO_E_UNSUPPORTED, k->mask,
            "an additive attention bias: calibration saw values that are neither 0 nor below "
            "-10000; only masks are supported");
    static const float limit = -10000.0f;
    static const int64_t shape[] = { 1, -1 };
    const int64_t two = 2;
    const char *below = mlo_format(m, "%s_limit", k->bits);
    const char *keys = mlo_format(m, "%s_keys", k->bits);
    const char *row = mlo_format(m, "%s_shape", k->bits);
    if (m->error.code) return mlo_failed(m);
    mlo_node *compare = mlo_node_new(m, "Greater", mlo_format(m, "%s_compare", k->bits));
    mlo_node *reshape = mlo_node_new(m, "Reshape", mlo_format(m, "%s_reshape", k->bits));
    const char *in[] = { k->mask, below };
    const char *in2[] = { keys, row };
    if (m->error.code
        || mlo_graph_init(
            m, q->scan.outer, mlo_tensor_new(m, below, MLO_FLOAT, NULL, 0, &limit, sizeof limit))
        || mlo_graph_init(
            m, q->scan.outer, mlo_tensor_new(m, row, MLO_INT64, &two, 1, shape, sizeof shape))
        || mlo_inputs(m, compare, in, 2) || mlo_node_output(m, compare, keys)
        || mlo_graph_add(m, before, compare) || mlo_inputs(m, reshape, in2, 2)
        || mlo_node_output(m, reshape, k->bits) || mlo_graph_add(m, before, reshape))
        return mlo_failed(m);
    return 0;
}

/* Of a network of integers all keys are shown. */
static int mlo_quantize_shown(mlo_quantizer *q) {
    mlo_graph none = { 0 };
    return q->keys[0].bits ? mlo_quantize_mask(q, &q->keys[0], &none, q->r.tokens) : 0;
}

/* A constant mask: its values are all there is to see. */
static int mlo_mask_constant(mlo_quantizer *q, mlo_keys *k) {
    mlo_value *v = mlo_value_of(q->scan.body, k->mask);
    if (!v || v->graph == q->scan.body || !mlo_is_parameter(&q->scan, q->scan.outer, k->mask, 0))
        return 0;
    mlo_array *a = mlo_value_array(q->m, &q->scan, q->scan.outer, k->mask, 0, 0);
    if (!a) return mlo_failed(q->m);
    int any = 0;
    mlo_mask_see(k, a);
    if (mlo_counting_see(q->m, &k->counting, a)) {
        mlo_array_free(q->m, a);
        return mlo_failed(q->m);
    }
    for (int64_t i = 0, n = mlo_array_count(a); i < n; i++) any |= ((float *)a->data)[i] != 0;
    mlo_array_free(q->m, a);
    if (!any) k->mask = NULL;
    return 0;
}

/* ---- putting it together -------------------------------------------------- */

/* The core's own layout of the carried value: where attention or a window has seen T tokens of it, [1, T, C],
 * however the source lays them out (sequence first: [T, 1, C]). 1: that differs. */
static int mlo_framed(const mlo_quantizer *q, mlo_form *f) {
    const mlo_form frame = { f->dtype, 3, { 1, q->r.tokens, mlo_last_dim(f) } };
    if (!q->r.tokens || f->rank < 2 || (f->rank < 4 && f->dims[f->rank - 2] == q->r.tokens))
        return 0;
    *f = frame;
    return 1;
}

/* The kinds of sublayers, in the order they are tried on a node. */
static const mlo_sublayer_kind *const mlo_sublayers[] = {
    &mlo_attention_sublayer,
    &mlo_window_sublayer,
    &mlo_linear_sublayer,
    &mlo_norm_sublayer,
    &mlo_rotary_sublayer,
    &mlo_place_sublayer,
    &mlo_residual_sublayer,
    &mlo_gate_sublayer,
    &mlo_affine_sublayer,
    &mlo_unary_sublayer,
    NULL,
};

/* What each iteration gets of the memory's integers: all of them again. */
static int mlo_memory_node(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_signal *s = mlo_signal_of(q, q->r.in.memory);
    const char *all = mlo_format(m, "%s_q", s->name);
    s->narrow_name = mlo_format(m, "%s_again", s->name);
    if (m->error.code) return mlo_failed(m);
    mlo_node *n = mlo_kernel_node(
        q, &mlo_replay_kernel, NULL, s->narrow_name, mlo_narrow_type(s), s->bits, s->narrow_scale);
    return n ? mlo_node_input(m, n, all) : mlo_failed(m);
}

/* The new body: the old one's parameters and what is computed from them, then one kernel after the
 * other. */
static int mlo_quantize_body(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_graph *old = q->scan.body;
    mlo_form f = mlo_form_of(mlo_value_of(old, old->input[0]->name));
    mlo_framed(q, &f);
    f.dtype = MLO_INT16;
    mlo_value_info *state = mlo_info_new(m, old->input[0]->name, &f);
    if (!state || !MLO_PUSH(m, q->body->input, q->body->n_input, state)) return mlo_failed(m);
    for (size_t i = 1; i < old->n_input; i++)
        if (!MLO_PUSH(m, q->body->input, q->body->n_input, old->input[i])) return mlo_failed(m);
    for (size_t i = 0; i < old->n_init; i++)
        if (mlo_graph_init(m, q->body, old->init[i])) return mlo_failed(m);
    for (size_t i = 0; i < old->n_node; i++)
        if (!mlo_is_carried(&q->r.in, old->node[i]->output[0])
            && mlo_graph_add(m, q->body, old->node[i]))
            return mlo_failed(m);
    if (mlo_narrow(q, NULL, state->name, mlo_signal_of(q, state->name))
        || (q->r.keys && mlo_memory_node(q)))
        return mlo_failed(m);
    for (size_t i = 0; i < q->r.n_block; i++) {
        const mlo_sublayer *b = q->r.block[i];
        mlo_work(m, "rounds parameters", (int64_t)i, (int64_t)q->r.n_block);
        MLO_TRY(b->card->quantize(q, b));
    }
    mlo_work_over(m);
    const char *result = mlo_signal_of(q, q->result)->wide_name;
    mlo_value_info *out = mlo_info_new(m, result, &f);
    if (!out || !MLO_PUSH(m, q->body->output, q->body->n_output, out)) return mlo_failed(m);
    return q->scan.n_tap ? mlo_taps_body(q, result, &f) : 0;
}

/* The memory as integers [1, tokens, channels], once, in front of the loop; and its mask. */
static int mlo_quantize_memory(mlo_quantizer *q, mlo_graph *list) {
    mlo *m = q->m;
    mlo_signal *s = mlo_signal_of(q, q->r.in.memory);
    const mlo_form frame = { MLO_FLOAT, 3, { 1, q->r.keys, s->channels } };
    const mlo_form row = { MLO_FLOAT, 1, { s->channels } };
    const mlo_form f = mlo_form_of(mlo_value_of(q->scan.outer, s->name));
    const char *x = s->name, *to = mlo_format(m, "%s_q", s->name);
    if (!to || mlo_quantize_mask(q, &q->keys[1], list, q->r.keys)) return mlo_failed(m);
    if (f.rank != 3 || f.dims[1] != q->r.keys) {
        x = mlo_format(m, "%s_frame", s->name);
        MLO_TRY(mlo_reshape_edge(q, list, s->name, x, &frame));
    }
    float *zero = (float *)mlo_scratch(m, (size_t)s->channels, sizeof *zero);
    for (int64_t c = 0; zero && c < s->channels; c++) zero[c] = (float)s->zero[c];
    if (zero && !mlo_numbers_edge(q, list, "Sub", &x, "centred", zero, &row) && s->shape)
        mlo_numbers_edge(q, list, "Div", &x, "shaped", s->shape, &row);
    mlo_scratch_free(m, zero);
    if (m->error.code) return mlo_failed(m);
    return mlo_edge_node(q, list, mlo_quantize_kernel.op.name, x, to, s->narrow_scale[0], s->bits,
        mlo_narrow_type(s));
}

/* Replaces the old Scan in the outer graph by Quantize, the new Scan, Dequantize. */
static int mlo_quantize_replace(mlo_quantizer *q) {
    mlo *m = q->m;
    mlo_graph *g = q->scan.outer, list = { 0 };
    mlo_signal *in = mlo_signal_of(q, q->scan.body->input[0]->name);
    mlo_signal *out = mlo_signal_of(q, q->result);
    mlo_form f = mlo_body_form(&q->r.in, q->scan.body->input[0]->name), frame = f;
    int framed = mlo_framed(q, &frame);
    const char *x = q->scan.node->input[0];
    const char *y = q->scan.node->output[0];
    const char *xq = mlo_format(m, "%s_q", x);
    const char *yq = mlo_format(m, "%s_q", y);
    if (!xq || !yq) return mlo_failed(m);
    q->loop->input[0] = xq;
    for (size_t i = 0; i < g->n_node; i++) {
        if (g->node[i] != q->scan.node) {
            if (mlo_graph_add(m, &list, g->node[i])) return mlo_failed(m);
            continue;
        }
        if (mlo_quantize_mask(q, &q->keys[0], &list, mlo_tokens_of(&f))
            || (q->r.keys && mlo_quantize_memory(q, &list)))
            return mlo_failed(m);
        const char *from = framed ? mlo_format(m, "%s_frame", x) : x;
        if (framed) MLO_TRY(mlo_reshape_edge(q, &list, x, from, &frame));
        if (mlo_edge_node(q, &list, mlo_quantize_kernel.op.name, from, xq, in->wide_scale[0],
                in->wide_bits, MLO_INT16)
            || mlo_node_output(m, q->loop, yq)
            || (q->scan.n_tap
                && mlo_node_output(m, q->loop, mlo_format(m, "%s_q", q->scan.node->output[1])))
            || mlo_graph_add(m, &list, q->loop))
            return mlo_failed(m);
        if (q->scan.n_tap) {
            MLO_TRY(mlo_taps_behind(q, &list, out, &frame, &f));
            continue;
        }
        const char *back = framed ? mlo_format(m, "%s_frame", y) : y;
        MLO_TRY(mlo_edge_node(q, &list, mlo_dequantize_kernel.op.name, yq, back,
            out->wide_scale[q->scan.iterations - 1], out->wide_bits, MLO_INT16));
        if (framed) MLO_TRY(mlo_reshape_edge(q, &list, back, y, &f));
    }
    g->node = list.node;
    g->n_node = list.n_node;
    return 0;
}

/* What the samples are; then, with the scales chosen, what rounding makes of it. */
static int mlo_quantize_samples(mlo_quantizer *q) {
    if (mlo_calibrate_run(q, mlo_calibrate_tape) || mlo_prefixes_see(q)) return mlo_failed(q->m);
    q->trusted = q->m->n_calib && q->samples >= MLO_SAMPLES_FEW;
    if ((q->m->prefill && mlo_seen_keep(q)) || mlo_choose_scales(q)) return mlo_failed(q->m);
    return mlo_drift_run(q);
}

static int mlo_quantize_calibrate(mlo_quantizer *q) {
    if (mlo_is_sketch(q->m)) {
        mlo_sketch_values(q);
        return mlo_choose_scales(q);
    }
    /* another export has seen what there is to see: texts are what is measured on, if anything is */
    const int measured = mlo_opt(q->m, "report") || mlo_opt(q->m, "max-error");
    if (q->m->like)
        return (measured && mlo_said_begin(q)) || mlo_gram_open(q) || mlo_seen_take(q, 0)
            || mlo_choose_scales(q) || mlo_seen_take(q, 1);
    int64_t drawn = mlo_samples_drawn(q->m, MLO_SAMPLES_GRAM);
    const int asked = !q->m->n_calib;
    if (mlo_said_begin(q) || mlo_gram_open(q)) return mlo_failed(q->m);
    if (asked && q->m->said)
        mlo_warn(q->m,
            "no calibration data; calibrated on %d text%s that the model says itself. Give real "
            "ones with --calib FILE.npz",
            q->m->said, q->m->said == 1 ? "" : "s");
    else if (asked && !q->m->drew++)
        mlo_warn(q->m,
            "no calibration data; calibrated on %lld input%s drawn from the declared types. Give "
            "real ones with --calib FILE.npz",
            (long long)drawn, drawn == 1 ? "" : "s");
    mlo_quantize_samples(q);
    mlo_tape_free(q);
    return q->m->error.code ? mlo_failed(q->m) : mlo_aim(q);
}

static int mlo_quantize_options(mlo_quantizer *q) {
    mlo *m = q->m;
    const char *scale = mlo_opt(m, "scale");
    q->weights = (int)mlo_opt_int(m, "weights", 8, 2, 8);
    q->activations = (int)mlo_opt_int(m, "activations", 8, 4, 16);
    q->residual = (int)mlo_opt_int(m, "residual", 16, 8, 16);
    q->pow2 = scale && !strcmp(scale, "pow2");
    return scale && !q->pow2 && strcmp(scale, "real")
        ? mlo_fail_at(m, MLO_E_USAGE, NULL,
              "--scale %s: there is real (a multiplier and a shift) and pow2 (a shift)", scale)
        : mlo_failed(m);
}

/* The node because of which a value's form is unknown: the farthest in front of it that makes a value of unknown
 * form; NULL: an input has none. */
static const mlo_node *mlo_form_lost(const mlo_graph *g, const char *name) {
    const mlo_node *lost = NULL;
    for (const mlo_value *v = mlo_value_of(g, name); v && v->producer;) {
        const mlo_node *n = v->producer;
        size_t i = 0;
        lost = n;
        for (v = NULL; i < n->n_input && !v; i++) {
            const mlo_value *from = mlo_has_input(n, i) ? mlo_value_of(g, n->input[i]) : NULL;
            const mlo_form f = mlo_form_of(from);
            if (from && !mlo_form_known(&f)) v = from;
        }
        if (v && !v->producer) return NULL;
    }
    return lost;
}

/* A carried value of unknown form: an input's dimension is open, or a node makes what nobody can tell the form of. */
static int mlo_refuse_form(mlo *m, const mlo_scan *s, const mlo_form *x) {
    const mlo_node *lost = mlo_form_lost(m->model->graph, s->node->input[0]);
    const char *open = mlo_open_dims(m);
    const int all = mlo_eq(
        open, "none"); /* an If may depend on dimensions that are open (read/branch.c) */
    for (size_t i = 0; i < s->body->n_node; i++)
        if (!mlo_op_of(m, s->body->node[i]) && (all || !mlo_is(s->body->node[i], "If")))
            return mlo_fail(m, MLO_E_UNSUPPORTED, s->body->node[i],
                "mlo does not know %s, which is in every layer, so the form of what the layers "
                "work on is unknown; hardware has linear layers, norms, attention, sums, products "
                "and functions of one value: write it as these",
                s->body->node[i]->op);
    if (lost && !mlo_op_of(m, lost))
        return mlo_fail(m, MLO_E_UNSUPPORTED, lost,
            "mlo cannot evaluate %s, so the form of what the layers work on is unknown; export the "
            "model without it, or with dynamo=True, which writes forms down",
            lost->op);
    const int past = strstr(open, "past") != NULL;
    return mlo_fail(m, past ? MLO_E_UNSUPPORTED : MLO_E_SHAPE, s->node,
        "the carried value is %s%s%s: bind the open dimensions (%s) with --dim NAME=N%s",
        mlo_dims_text(m, x->rank, x->dims), lost ? ", from node " : "",
        lost ? mlo_node_name(lost) : "", open,
        past ? "; of a decoder with a past, --context N says how many tokens its cache holds" : "");
}

/* The loop that is to be hardware, of a model in standard operators on 32-bit floats. */
static int mlo_quantize_loop(mlo *m, mlo_scan *s) {
    MLO_TRY(mlo_given_standard(m) || mlo_scan_choose(m, s) || mlo_given_dynamic(m, s->body));
    if (!mlo_widens(s->body)) return 0;
    MLO_TRY(mlo_widen_model(m));
    return mlo_scan_choose(m, s);
}

/* Refuses a loop that has no integer form, whatever is in its body. */
static int mlo_quantizable(mlo *m, const mlo_scan *s) {
    mlo_form x = mlo_form_of(mlo_value_of(s->body, s->body->input[0]->name));
    if (s->n_state != 1)
        return mlo_fail(m, MLO_E_UNSUPPORTED, s->node,
            "%zu values go from layer to layer; one is supported", s->n_state);
    if (!mlo_form_known(&x)) return mlo_refuse_form(m, s, &x);
    if (mlo_dtype_is_float(x.dtype) && x.dtype != MLO_FLOAT)
        return mlo_fail(m, MLO_E_UNSUPPORTED, s->node,
            "the model computes in %s; export it in float32 (model.float()), mlo chooses the "
            "integers",
            mlo_dtype_name(x.dtype));
    return 0;
}

/* Why rows of a prompt are not what its chunks give, one after the other; NULL: they are. */
static const char *mlo_no_context(const mlo_sublayer *b) {
    if (b->kind == MLO_CONVOLUTION) return "a convolution reads tokens beside each other";
    if (b->kind != MLO_ATTENTION) return NULL;
    if (b->crossed) return "an attention to an encoder's output";
    return b->sight.causal ? NULL : "an attention whose queries see later keys";
}

/* With a context (read/context.c), each token depends on those up to itself alone. */
static int mlo_check_context(const mlo_quantizer *q) {
    const int64_t context = mlo_context_said(q->m);
    if (q->m->error.code || !context || q->head) return mlo_failed(q->m);
    for (size_t i = 0; i < q->r.n_block; i++) {
        const char *why = mlo_no_context(q->r.block[i]);
        if (why)
            return mlo_fail(q->m, MLO_E_UNSUPPORTED, q->r.block[i]->node,
                "%s; a core with a cache (--context %lld) needs a decoder: attention that is "
                "causal, "
                "and all else token by token",
                why, (long long)context);
    }
    if (q->r.tokens == context) return 0;
    return mlo_fail(q->m, MLO_E_UNSUPPORTED, q->scan.node,
        q->r.tokens ? "its attentions see %lld tokens, --context says %lld; they are to be the same"
                    : "%lld attentions: there is nothing to keep; leave --context %lld out",
        (long long)q->r.tokens, (long long)context);
}

/* The sublayers of q->scan's body, and what is fixed of them. */
static int mlo_quantize_recognise(mlo_quantizer *q) {
    mlo *m = q->m;
    return mlo_given_masks(m, &q->scan) || mlo_unblank(m, &q->scan, &q->blank)
        || mlo_respell(m, &q->scan) || mlo_recognise(m, &q->scan, mlo_sublayers, &q->r, &q->result)
        || mlo_demand(q);
}

/* Their numbers: the new body, and a Scan for it that has its parameters. */
static int mlo_quantize_integers(mlo_quantizer *q) {
    mlo *m = q->m;
    if (mlo_choose_given(q) || mlo_settle_mask(q) || mlo_check_context(q)
        || mlo_mask_constant(q, &q->keys[0]) || mlo_mask_constant(q, &q->keys[1])
        || mlo_quantize_calibrate(q))
        return mlo_failed(m);
    q->loop = mlo_node_new(m, "Scan", mlo_node_name(q->scan.node));
    q->body = MLO_NEW(m, mlo_graph);
    if (!q->loop || !q->body) return mlo_failed(m);
    q->body->name = q->scan.body->name;
    q->keys[0].bits = mlo_intern(m, "mlo_mask");
    q->keys[1].bits = mlo_intern(m, mlo_memory_mask);
    for (size_t i = 0; i < q->scan.node->n_input; i++)
        if (mlo_node_input(m, q->loop, q->scan.node->input[i])) return mlo_failed(m);
    return mlo_quantize_body(q);
}

/* A loop of floats becomes one of integers. */
static int mlo_quantize_floats(mlo_quantizer *q) {
    return mlo_taps_leave(q) || mlo_quantize_recognise(q) || mlo_qconfig(q)
        || mlo_quantize_integers(q) || mlo_quantize_replace(q);
}

/* Once more, of the model as it was, if that rounds values within its layers and no rounding is what was refused:
 * without them. */
static int mlo_quantize_unrounded(mlo_quantizer *q, mlo_graph *as_it_was) {
    mlo *m = q->m;
    const char *node = mlo_or_empty(mlo_intern(m, m->error.node));
    const char *why = mlo_or_empty(mlo_intern(m, m->error.message));
    const mlo_error said = m->error;
    size_t n;
    memset(&m->error, 0, sizeof m->error);
    m->model->graph = as_it_was;
    MLO_TRY(mlo_index(m, as_it_was) || mlo_infer(m) || mlo_scan_choose(m, &q->scan));
    if (mlo_given_rounds(m, &q->scan, node)) {
        m->error = said;
        return mlo_failed(m);
    }
    MLO_TRY(mlo_given_unrounded(m, &q->scan, &n) || mlo_quantize_floats(q));
    mlo_warn(m,
        "the model's %zu roundings of values are left out, as layers that round so are not known "
        "(%s: %s); the values' integers are chosen here, weights keep theirs",
        n, node, why);
    return 0;
}
static int mlo_quantize_rounded(mlo_quantizer *q) {
    mlo *m = q->m;
    const mlo_map same = { NULL, 0, 0 };
    const mlo_quantizer before = *q;
    mlo_graph *as_it_was = mlo_given_rounds(m, &q->scan, NULL)
        ? mlo_graph_renamed(m, m->model->graph, &same)
        : NULL;
    m->holds = as_it_was != NULL;
    const int failed = m->error.code || mlo_quantize_floats(q);
    const int again = failed && as_it_was && m->error.code == MLO_E_UNSUPPORTED;
    mlo_say_held(m, !again);
    if (!again) return mlo_failed(m);
    *q = before;
    return mlo_quantize_unrounded(q, as_it_was);
}

/* The stage itself. What it calibrated and chose goes to *made, which holds the cost that widths
 * may have, 0: the option says. */
static int mlo_quantize(mlo *m, mlo_quantizer *made) {
    mlo_quantizer q;
    memset(&q, 0, sizeof q);
    q.m = m;
    q.cost = m->like ? m->like->cost : made->cost;
    MLO_TRY(mlo_sketch_begin(m) || mlo_quantize_options(&q) || mlo_quantize_loop(m, &q.scan));
    MLO_TRY(mlo_quantizable(m, &q.scan));
    mlo_calib_others(m);
    if (mlo_has_dialect(q.scan.body))
        MLO_TRY(mlo_taps_leave(&q) || mlo_quantize_exact(&q) || mlo_quantize_shown(&q));
    else
        MLO_TRY(mlo_quantize_rounded(&q));
    q.loop->meta = q.scan.node->meta;
    q.loop->n_meta = q.scan.node->n_meta;
    if (mlo_attr_graph(m, q.loop, "body", q.body)
        || mlo_attr_int(m, q.loop, "num_scan_inputs", (int64_t)q.body->n_input - 1))
        return mlo_failed(m);
    q.scan.node = q.loop;
    q.scan.body = q.body;
    MLO_TRY(mlo_index(m, m->model->graph));
    MLO_TRY(mlo_scan_prune(m, &q.scan));
    MLO_TRY(mlo_add_functions(m, m->model));
    *made = q;
    made->r.scan = &made->scan;
    return mlo_infer(m);
}
