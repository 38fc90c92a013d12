/* show: any stage's model as text, JSON, DOT, one HTML page or one SVG picture.
 *
 * in:  a model.
 * out: one text; mlo_show (api.c) hands it to a sink.
 *
 * invariant: the same model gives the same bytes; the model does not change. The JSON keys of
 *     design section 7 stay; more may come.
 * example: the page of a model before roll shows it with the instances marked, then what they
 *     become; it needs nothing else.
 * cost: O(nodes); a page draws at most MLO_PICTURE_MOST vertices per graph.
 */

static void mlo_json_text(mlo_text *t, const char *key, const char *value) {
    mlo_printf(t, "\"%s\":", key);
    mlo_report_string(t, mlo_or_empty(value));
}

/* Names, types and shapes of the graph's inputs or outputs. A symbolic dimension is its name, an
 * unknown one null. */
static void mlo_json_values(
    const mlo_view *v, mlo_text *t, const char *key, mlo_value_info *const *list, size_t n) {
    int said = 0;
    mlo_printf(t, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        const mlo_value *x = mlo_view_listed(v, list[i]);
        if (!x) continue;
        const mlo_shape *s = mlo_view_declared(x);
        mlo_puts(t, said++ ? ",{" : "{");
        mlo_json_text(t, "name", x->name);
        mlo_puts(t, ",");
        mlo_json_text(t, "type", mlo_view_type(x));
        mlo_puts(t, s ? ",\"shape\":[" : ",\"shape\":null}");
        for (size_t k = 0; s && k < s->n_dim; k++) {
            if (k) mlo_puts(t, ",");
            if (s->dim[k].param && *s->dim[k].param)
                mlo_report_string(t, s->dim[k].param);
            else if (s->dim[k].has)
                mlo_printf(t, "%lld", (long long)s->dim[k].value);
            else
                mlo_puts(t, "null");
        }
        if (s) mlo_puts(t, "]}");
    }
    mlo_puts(t, "]");
}

static void mlo_json_loops(const mlo_view *v, mlo_text *t) {
    mlo_puts(t, "\"loops\":[");
    for (size_t i = 0; i < v->n_loops; i++) {
        const mlo_view_loop *l = &v->loop[i];
        mlo_puts(t, i ? ",{" : "{");
        mlo_json_text(t, "name", l->name);
        if (mlo_view_parent(v, l)) {
            mlo_puts(t, ",");
            mlo_json_text(t, "parent", mlo_view_parent(v, l)->name);
        } else
            mlo_puts(t, ",\"parent\":null");
        if (l->iterations < 0)
            mlo_puts(t, ",\"iterations\":null");
        else
            mlo_printf(t, ",\"iterations\":%lld", (long long)l->iterations);
        mlo_printf(t,
            ",\"body_nodes\":%zu,\"carried\":%zu,\"invariant\":%zu,\"per_iteration\":%zu,\"taps\":%"
            "zu,",
            l->body->n_node, l->states, l->n_outside, l->params, l->taps);
        mlo_json_text(t, "scope", l->scope);
        mlo_printf(t, ",\"depth\":%d,\"instances\":[", l->depth);
        for (int64_t k = 0; *l->instances && k < l->iterations; k++) {
            if (k) mlo_puts(t, ",");
            mlo_report_string(t, mlo_view_instance_scope(v->m, l, k));
        }
        mlo_puts(t, "]}");
    }
    mlo_puts(t, "],\"found\":[");
    for (size_t i = 0; i < v->n_marks; i++) {
        mlo_puts(t, i ? ",{" : "{");
        mlo_json_text(t, "name", v->mark[i].name);
        mlo_printf(t, ",\"instances\":%d,\"nodes\":%zu}", v->mark[i].instances, v->mark[i].nodes);
    }
    mlo_puts(t, "]");
}

static void mlo_json_kernels(const mlo_view *v, mlo_text *t) {
    const mlo_core *c = v->hw;
    int said = 0;
    mlo_puts(t, ",\"kernels\":[");
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel) {
            const mlo_element *e = &c->element[i];
            const mlo_unit *u = &e->unit;
            mlo_puts(t, said++ ? ",{" : "{");
            mlo_json_text(t, "name", e->name);
            mlo_puts(t, ",");
            mlo_json_text(t, "op", e->node->op);
            mlo_puts(t, ",");
            mlo_json_text(t, "value", e->node->output[0]);
            mlo_puts(t, ",");
            mlo_json_text(t, "scope", mlo_view_scope(e->node));
            mlo_printf(t,
                ",\"channels_in\":%lld,\"channels_out\":%lld,\"pe\":%d,\"simd\":%d,\"multipliers\":"
                "%lld,\"other_multipliers\":%lld,\"macs\":%lld,\"interval\":%lld,\"latency\":%lld,"
                "\"parameter_bytes\":%lld,\"memory\":\"%s\",\"predicted\":{",
                (long long)u->in[0].channels, (long long)u->out.channels, u->pe, u->simd,
                (long long)u->multipliers, (long long)u->other,
                (long long)(mlo_frame_macs(e) * c->scan.iterations), (long long)u->interval,
                (long long)u->latency, (long long)mlo_unit_bytes(c, u), mlo_memory_name(e));
            mlo_spent_json(&v->p.spent[i], t);
            mlo_puts(t, "},\"area\":");
            mlo_area_json(&v->area.element[i], t);
            if (u->exp_bits) mlo_printf(t, ",\"exp_bits\":%d", u->exp_bits);
            if (u->blocks)
                mlo_printf(
                    t, ",\"tile\":%lld,\"blocks\":%lld", (long long)u->tile, (long long)u->blocks);
            mlo_puts(t, "}");
        }
    mlo_puts(t, "]");
}

/* A ratio of six digits, from integers: the locale has no say. */
static void mlo_json_utilisation(const mlo_view *v, mlo_text *t, const char *key, double cycles) {
    double most = (double)mlo_core_multipliers(v->hw) * cycles;
    int64_t millionths = most > 0 ? (int64_t)((double)mlo_core_macs(v->hw) / most * 1e6 + 0.5) : 0;
    mlo_printf(t, ",\"%s\":%lld.%06lld", key, (long long)(millionths / 1000000),
        (long long)(millionths % 1000000));
}

static void mlo_json_core(const mlo_view *v, mlo_text *t) {
    const mlo_core *c = v->hw;
    int said = 0;
    mlo_json_kernels(v, t);
    mlo_puts(t, ",\"fifo\":[");
    for (int k = 0; k < c->n_edge; k++)
        if (c->edge[k].fifo && c->edge[k].to != MLO_OUTSIDE) {
            mlo_puts(t, said++ ? ",{" : "{");
            mlo_json_text(t, "from", mlo_edge_end(c, c->edge[k].from));
            mlo_puts(t, ",");
            mlo_json_text(t, "to", mlo_edge_end(c, c->edge[k].to));
            mlo_printf(t, ",\"port\":%d,\"tokens\":%lld,\"bits\":%lld}", c->edge[k].to_port,
                (long long)c->edge[k].fifo,
                (long long)(c->edge[k].fifo * c->edge[k].channels * c->edge[k].bits));
        }
    mlo_printf(t,
        "],\"feedback_tokens\":%lld,\"tokens\":%lld,\"channels\":%lld,\"frames_in_flight\":%d,"
        "\"axi_bits\":%d",
        (long long)c->feedback, (long long)c->chunk, (long long)c->channels, c->frames,
        c->axi_bits);
    mlo_printf(t,
        ",\"multipliers\":%lld,\"macs\":%lld,\"interval_per_token\":%lld,\"predicted_cycles\":%lld,"
        "\"predicted_interval\":%lld,\"parameter_bytes_per_iteration\":%lld,\"on_chip_bits\":%lld",
        (long long)mlo_core_multipliers(c), (long long)mlo_core_macs(c),
        (long long)mlo_core_interval(c), (long long)v->p.cycles, (long long)v->p.interval,
        (long long)(mlo_core_layer_beats(c) * c->axi_bits / 8), (long long)mlo_core_bits(c));
    mlo_printf(t, ",\"parameter_beats\":{\"per_iteration\":%lld,\"per_frame\":%s,\"once\":%lld}",
        (long long)mlo_core_layer_beats(c), mlo_number_text(v->m, mlo_core_frame_beats(c)),
        (long long)(mlo_core_resident_beats(c) * c->scan.iterations));
    if (c->slots && !c->given)
        mlo_printf(t,
            ",\"context\":%lld,\"slots\":%lld,\"step\":{\"first\":%lld,\"position\":%lld,"
            "\"sequences\":%lld,\"cycles\":%lld}",
            (long long)c->chunk, (long long)c->slots, (long long)v->step[0], (long long)v->position,
            (long long)v->sequences, (long long)v->step[1]);
    mlo_puts(t, ",\"area\":");
    mlo_area_json(&v->area.all, t);
    if (v->device) {
        mlo_puts(t, ",\"device\":{");
        mlo_json_text(t, "name", v->device->name);
        for (int k = 0; k < MLO_N_RESOURCES; k++)
            mlo_printf(
                t, ",\"%s\":%lld", mlo_resources[k].key, (long long)mlo_fpga_has(v->device, k));
        mlo_puts(t, ",\"most_percent\":{");
        for (int k = 0; k < MLO_N_RESOURCES; k++)
            mlo_printf(
                t, "%s\"%s\":%d", k ? "," : "", mlo_resources[k].key, mlo_resources[k].percent);
        mlo_puts(t, "}}");
    }
    mlo_puts(t, ",\"area_streams\":");
    mlo_area_json(&v->area.streams, t);
    mlo_puts(t, ",\"area_shell\":");
    mlo_area_json(&v->area.shell, t);
    if (v->hw->around) mlo_puts(t, ",\"area_around\":");
    if (v->hw->around) mlo_area_json(&v->area.around, t);
    mlo_printf(t, ",\"bound\":%lld,\"best\":%lld", (long long)v->bound, (long long)v->best);
    mlo_json_utilisation(v, t, "utilization", (double)v->p.interval);
    mlo_json_utilisation(v, t, "bound_utilization", (double)v->bound);
    mlo_json_utilisation(v, t, "best_utilization", (double)v->best);
    if (v->sim) mlo_json_utilisation(v, t, "measured_utilization", v->sim->interval);
}

static int mlo_show_json(const mlo_view *v, mlo_text *t) {
    const mlo_model *model = v->m->model;
    mlo_puts(t, "{");
    mlo_json_text(t, "stage", v->stage);
    if (mlo_is_sketch(v->m)) mlo_puts(t, ",\"sketch\":true");
    mlo_printf(t, ",\"nodes\":%zu,\"subgraph_nodes\":%zu,", v->g->n_node, v->subgraph_nodes);
    mlo_json_text(t, "graph", v->g->name);
    mlo_puts(t, ",");
    mlo_json_values(v, t, "inputs", v->g->input, v->g->n_input);
    mlo_puts(t, ",");
    mlo_json_values(v, t, "outputs", v->g->output, v->g->n_output);
    mlo_puts(t, ",\"opsets\":{");
    for (size_t i = 0, said = 0; i < model->n_opset; i++) {
        const char *domain = model->opset[i].domain && *model->opset[i].domain
            ? model->opset[i].domain
            : "ai.onnx";
        /* a domain twice: the first one counts */
        int again = 0;
        for (size_t k = 0; k < i; k++)
            again |= mlo_eq(domain,
                model->opset[k].domain && *model->opset[k].domain ? model->opset[k].domain
                                                                  : "ai.onnx");
        if (again) continue;
        if (said++) mlo_puts(t, ",");
        mlo_report_string(t, domain);
        mlo_printf(t, ":%lld", (long long)model->opset[i].version);
    }
    mlo_printf(t, "},\"parameters\":%lld,\"parameter_bytes\":%lld,\"scopes_inferred\":%zu,",
        (long long)v->parameters, (long long)v->bytes, v->inferred);
    mlo_json_loops(v, t);
    if (v->hw) mlo_json_core(v, t);
    mlo_puts(t, "}\n");
    return mlo_failed(v->m);
}

/* A view of a model of any stage. */
static int mlo_view_of(mlo *m, mlo_view *v) {
    m->stage = "show";
    /* host/core.onnx holds no shapes inside */
    if (mlo_stage_at(mlo_stage(m)) >= mlo_stage_at("lower") && mlo_infer(m)) return mlo_failed(m);
    return mlo_view_make(m, v);
}

/* ---- any format ----------------------------------------------------------- */

/* One text. rolled: the same model after roll, on a handle of its own, for pages to show beside
 * it; NULL when there is none. */
static int mlo_show_as(mlo *m, mlo *rolled, const char *format, mlo_text *t) {
    static const struct {
        const char *name;
        int (*print)(const mlo_view *v, mlo_text *t);
    } formats[] = { { "text", mlo_show_text }, { "json", mlo_show_json }, { "dot", mlo_show_dot },
        { "html", mlo_show_html }, { "svg", mlo_show_svg } };
    mlo_view v, after;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (!mlo_eq(formats[i].name, format)) continue;
        if (mlo_view_of(m, &v)) return mlo_failed(m);
        if (rolled && !mlo_view_make(rolled, &after)) v.after = &after;
        return formats[i].print(&v, t);
    }
    return mlo_fail_at(m, MLO_E_USAGE, NULL,
        "there is no format '%s'; they are text, json, dot, html, svg", mlo_or_empty(format));
}
