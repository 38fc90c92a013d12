/* emit, host: the model in three parts, the register map, and the manifest.
 *
 * pre.onnx: float, up to the core's integer inputs and whatever post needs.  core.onnx: integers,
 * what the hardware computes.  post.onnx: float, from the core's output on. Run one after the
 * other, each fed by name from what came before, they are the quantized model. */

typedef struct {
    mlo *m;
    const mlo_graph *g;
    const char *part;
    mlo_map made; /* values that a node of the part makes */
    mlo_map wanted; /* values that a node of the part reads */
    mlo_graph *out;
    mlo_map kept;
} mlo_part;

static const char *mlo_part_name(const mlo_node *n) {
    const char *s = mlo_meta_get(n->meta, n->n_meta, mlo_key_part);
    return s ? s : "constant";
}

/* Marks what a node reads; also what its subgraphs read from around it. */
static int mlo_part_want(mlo_part *p, const mlo_node *n) {
    for (size_t i = 0; i < n->n_input; i++)
        if (mlo_has_input(n, i)) MLO_TRY(mlo_map_put(p->m, &p->wanted, n->input[i], p));
    for (size_t i = 0; i < n->n_attr; i++)
        if (n->attr[i]->g)
            for (size_t k = 0; k < n->attr[i]->g->n_node; k++)
                MLO_TRY(mlo_part_want(p, n->attr[i]->g->node[k]));
    return 0;
}

/* Nodes of the part, and constant nodes somebody in it wants. */
static int mlo_part_nodes(mlo_part *p) {
    unsigned char *take = (unsigned char *)mlo_scratch(p->m, p->g->n_node + 1, 1);
    if (!take) return mlo_failed(p->m);
    for (size_t i = p->g->n_node; i--;) {
        const mlo_node *n = p->g->node[i];
        int wanted = 0;
        for (size_t k = 0; k < n->n_output; k++)
            wanted |= mlo_map_get(&p->wanted, n->output[k]) != NULL;
        take[i] = mlo_eq(mlo_part_name(n), p->part)
            || (mlo_eq(mlo_part_name(n), "constant") && wanted);
        if (take[i] && mlo_part_want(p, n)) break;
    }
    for (size_t i = 0; i < p->g->n_node && !p->m->error.code; i++)
        if (take[i]) {
            mlo_graph_add(p->m, p->out, p->g->node[i]);
            for (size_t k = 0; k < p->g->node[i]->n_output && !p->m->error.code; k++)
                mlo_map_put(p->m, &p->made, p->g->node[i]->output[k], p);
        }
    mlo_scratch_free(p->m, take);
    return mlo_failed(p->m);
}

/* A graph input or output of the part: the type it has in the whole. */
static mlo_value_info *mlo_part_info(mlo_part *p, const char *name) {
    mlo_value *v = mlo_value_of(p->g, name);
    mlo_form f = mlo_form_of(v);
    return v && v->info && v->info->type ? v->info : mlo_info_new(p->m, name, &f);
}

/* What the part reads and does not make: constants come along, the rest become its inputs, in the
 * order they appear in the whole. */
static int mlo_part_edges(mlo_part *p) {
    const mlo_graph *g = p->g;
    for (size_t i = 0; i < g->n_init; i++)
        if (mlo_map_get(&p->wanted, g->init[i]->name))
            MLO_TRY(mlo_graph_init(p->m, p->out, g->init[i]));
    for (size_t i = 0; i < g->n_input; i++)
        if (mlo_map_get(&p->wanted, g->input[i]->name)
            && !mlo_value_of(g, g->input[i]->name)->tensor
            && !MLO_PUSH(p->m, p->out->input, p->out->n_input, g->input[i]))
            return mlo_failed(p->m);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++) {
            const char *name = g->node[i]->output[k];
            if (!mlo_map_get(&p->wanted, name) || mlo_map_get(&p->made, name)) continue;
            mlo_value_info *info = mlo_part_info(p, name);
            if (!info || !MLO_PUSH(p->m, p->out->input, p->out->n_input, info))
                return mlo_failed(p->m);
        }
    return 0;
}

/* Does anything outside of the part (another part, or the model's outputs) read this value? */
static int mlo_part_leaves(const mlo_part *p, const mlo_map *elsewhere, const char *name) {
    for (size_t i = 0; i < p->g->n_output; i++)
        if (p->g->output[i]->name == name) return 1;
    return mlo_map_get(elsewhere, name) != NULL;
}

static int mlo_part_outputs(mlo_part *p, const mlo_map *elsewhere) {
    for (size_t i = 0; i < p->out->n_node; i++)
        for (size_t k = 0; k < p->out->node[i]->n_output; k++) {
            const char *name = p->out->node[i]->output[k];
            if (!mlo_eq(mlo_part_name(p->out->node[i]), p->part) || !*name
                || !mlo_part_leaves(p, elsewhere, name))
                continue;
            mlo_value_info *info = mlo_part_info(p, name);
            if (!info || !MLO_PUSH(p->m, p->out->output, p->out->n_output, info))
                return mlo_failed(p->m);
        }
    return 0;
}

/* What nodes of other parts read. */
static int mlo_part_elsewhere(mlo *m, const mlo_graph *g, const char *part, mlo_map *elsewhere) {
    mlo_part other = { m, g, part, { 0 }, { 0 }, NULL, { 0 } };
    for (size_t i = 0; i < g->n_node; i++)
        if (!mlo_eq(mlo_part_name(g->node[i]), part)) MLO_TRY(mlo_part_want(&other, g->node[i]));
    *elsewhere = other.wanted;
    return 0;
}

static mlo_model *mlo_part_model(mlo *m, const char *part) {
    mlo_model *whole = m->model, *model = MLO_NEW(m, mlo_model);
    mlo_part p = { m, whole->graph, part, { 0 }, { 0 }, MLO_NEW(m, mlo_graph), { 0 } };
    mlo_map elsewhere = { 0 };
    if (!model || !p.out || mlo_part_nodes(&p) || mlo_part_edges(&p)
        || mlo_part_elsewhere(m, whole->graph, part, &elsewhere)
        || mlo_part_outputs(&p, &elsewhere))
        return NULL;
    p.out->name = mlo_intern(m, part);
    model->has = whole->has;
    model->ir_version = whole->ir_version;
    model->opset = whole->opset;
    model->n_opset = whole->n_opset;
    model->producer_name = mlo_intern(m, "mlo");
    model->producer_version = mlo_intern(m, MLO_VERSION);
    model->graph = p.out;
    model->function = whole->function;
    model->n_function = whole->n_function;
    for (size_t i = 0; i < whole->n_meta; i++)
        if ((mlo_eq(whole->meta[i].key, mlo_key_stage)
                || mlo_eq(whole->meta[i].key, mlo_key_context)
                || mlo_eq(whole->meta[i].key, mlo_key_integers))
            && mlo_meta_put(
                m, &model->meta, &model->n_meta, whole->meta[i].key, whole->meta[i].value))
            return NULL;
    return m->error.code ? NULL : model;
}

static int mlo_emit_sink(void *user, const char *file, const void *bytes, size_t n) {
    (void)file;
    return mlo_file_write((mlo_emitter *)user, bytes, n);
}

static int mlo_emit_parts(mlo_emitter *e) {
    static const char *const parts[] = { "pre", "core", "post" };
    for (int i = 0; i < 3; i++) {
        mlo_model *model = mlo_part_model(e->m, parts[i]);
        if (!model || mlo_file_begin(e, mlo_format(e->m, "host/%s.onnx", parts[i]))
            || mlo_wire_write(e->m, model, mlo_emit_sink, e) || mlo_file_end(e))
            return mlo_failed(e->m);
    }
    return mlo_index(e->m, e->m->model->graph); /* the parts share nodes, not the index */
}

static void mlo_regs_kernels(void *user) {
    mlo_emitter *e = (mlo_emitter *)user;
    int at = 0x80;
    for (int l = 0; l < e->layers; l++)
        for (int i = 0; i < e->c->n_element; i++) {
            if (!e->c->element[i].kernel) continue;
            char name[64];
            int k = 0;
            for (const char *p = mlo_copy_name(e, l, e->c->element[i].name); *p && k < 63; p++)
                name[k++] = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p == '.' ? '_' : *p);
            name[k] = 0;
            mlo_line(e,
                "#define MLO_REG_%s_BUSY 0x%03X\n#define MLO_REG_%s_STARVED 0x%03X\n#define "
                "MLO_REG_%s_BLOCKED 0x%03X",
                name, at, name, at + 4, name, at + 8);
            at += 16;
        }
}

static int mlo_emit_regs(mlo_emitter *e) {
    const mlo_hole holes[] = { { "DEEPEST", mlo_integer(e->m, mlo_core_deepest(e->c)), NULL },
        { "KERNELS", NULL, mlo_regs_kernels }, { NULL, NULL, NULL } };
    return mlo_emit_shared(e, "host/mlo_regs.h", holes, e);
}

/* ---- the manifest --------------------------------------------------------- */

static void mlo_manifest_area(mlo_emitter *e, const mlo_core *c, const mlo_element *el) {
    const mlo_area area = mlo_kernel_area(c, el, &el->unit, el->memory);
    mlo_puts(&e->t, ", \"area\": ");
    mlo_area_json(&area, &e->t);
}

static void mlo_manifest_kernels(mlo_emitter *e) {
    const mlo_core *c = e->c;
    mlo_line(e, "  \"kernels\": [");
    int n = 0, kernels = e->layers * mlo_core_kernels(c);
    for (int l = 0; l < e->layers; l++)
        for (int i = 0; i < c->n_element; i++)
            if (c->element[i].kernel) {
                const mlo_element *el = &c->element[i];
                const mlo_unit *u = &el->unit;
                mlo_printf(&e->t,
                    "    {\"name\": \"%s\", \"op\": \"%s\", \"module\": \"%s\", \"pe\": %d, "
                    "\"simd\": %d, \"multipliers\": %lld, \"other_multipliers\": %lld, \"macs\": "
                    "%lld, \"interval\": %lld, \"value\": ",
                    mlo_copy_name(e, l, el->name), el->node->op, u->module, u->pe, u->simd,
                    (long long)u->multipliers, (long long)u->other,
                    (long long)(mlo_frame_macs(el) * (c->scan.iterations / e->layers)),
                    (long long)u->interval);
                mlo_report_string(&e->t, el->node->output[0]);
                mlo_puts(&e->t, ", \"scope\": ");
                const char *scope = mlo_meta_get(el->node->meta, el->node->n_meta, mlo_key_scope);
                mlo_report_string(&e->t, mlo_or_empty(scope));
                mlo_printf(&e->t,
                    ", \"memory\": \"%s\", %s\"lanes\": %d, \"bits\": %d, \"channels\": %lld",
                    mlo_memory_name(el),
                    u->blocks ? mlo_format(e->m,
                                    "\"tile\": %lld, \"blocks\": %lld, \"tile_beats\": %lld, ",
                                    (long long)u->tile, (long long)u->blocks,
                                    (long long)mlo_unit_beats(u, c->axi_bits))
                              : "",
                    u->out.lanes, u->out.bits, (long long)u->out.channels);
                if (mlo_core_block_beats(c) && mlo_memory_whole(el)) {
                    mlo_puts(&e->t, ", \"memory_why\": ");
                    mlo_report_string(&e->t, mlo_memory_whole(el));
                }
                if (u->exp_bits) mlo_printf(&e->t, ", \"exp_bits\": %d", u->exp_bits);
                mlo_manifest_area(e, c, el);
                mlo_puts(&e->t, ++n < kernels ? "},\n" : "}\n");
            }
    mlo_line(e, "  ],");
}

/* How large each integer inside of a kernel gets, whatever comes in, and what the words say. */
static int mlo_emit_intermediates(mlo_emitter *e) {
    const mlo_core *c = e->c;
    int n = 0;
    mlo_puts(&e->t,
        "{\n  \"legend\": {\n"
        "    \"name\": \"what is computed\",\n"
        "    \"lo, hi\": \"the least and the largest that it can be, whatever comes in\",\n"
        "    \"bits\": \"which takes so many bits\",\n"
        "    \"tight\": \"whether some weights and inputs reach both of them\",\n"
        "    \"verilog, signed\": \"bits of the register; whether it is in two's complement\",\n"
        "    \"register\": \"its path inside of the kernel's instance\",\n"
        "    \"c, onnx\": \"bits that it has in mlo run, and in host/core.onnx\"\n"
        "  },\n  \"kernels\": [\n");
    for (int i = 0; i < c->n_element; i++) {
        const mlo_element *el = &c->element[i];
        if (!el->kernel) continue;
        mlo_printf(&e->t,
            "%s    {\"name\": \"%s\", \"module\": \"%s\", \"intermediates\": ", n++ ? ",\n" : "",
            el->name, el->unit.module);
        mlo_element_intermediates(el, &e->t);
        mlo_puts(&e->t, "}");
    }
    mlo_puts(&e->t, "\n  ]\n}\n");
    return mlo_file_text(e, "intermediates.json");
}

static void mlo_manifest_descriptors(mlo_emitter *e) {
    const mlo_core *c = e->c;
    /* in the loader's part of an iteration; in that of row blocks */
    int64_t at[2] = { 0, 0 };
    int n = 0;
    mlo_line(e, "  \"descriptors\": [");
    for (int i = 0; i < c->n_element; i++) {
        const mlo_element *el = &c->element[i];
        const int64_t block = mlo_is_block(el)
            ? mlo_unit_beats(&el->unit, c->axi_bits) / el->unit.blocks * c->axi_bits / 8
            : 0;
        for (int k = 0; k < el->unit.n_memory; k++) {
            const mlo_memory *mem = &el->unit.memory[k];
            const int64_t beats = mlo_memory_beats(mem, c->axi_bits);
            mlo_printf(&e->t,
                "%s    {\"kernel\": \"%s\", \"port\": \"%s\", \"offset\": %lld, \"beats\": %lld, "
                "\"word_bits\": %d, \"words\": %lld, \"banks\": %lld",
                n++ ? ",\n" : "", el->name, mem->port, (long long)at[block > 0], (long long)beats,
                mem->width, (long long)mem->depth,
                mem->kept ? 1 : (long long)mlo_banks(c, el->memory));
            if (block)
                mlo_printf(&e->t, ", \"blocks\": %lld, \"block_bytes\": %lld",
                    (long long)el->unit.blocks, (long long)block);
            mlo_puts(&e->t, "}");
            at[block > 0] += beats * c->axi_bits / 8;
        }
        if (block) at[1] += (el->unit.blocks - 1) * block;
    }
    mlo_line(e, "\n  ],\n  \"iteration_bytes\": %lld,", (long long)at[0]);
    if (at[1])
        mlo_line(e, "  \"row_blocks\": {\"offset\": %lld, \"iteration_bytes\": %lld},",
            (long long)(at[0] * c->scan.iterations), (long long)at[1]);
    mlo_line(e,
        "  \"parameter_beats\": {\"per_iteration\": %lld, \"per_frame\": %s, \"once\": %lld},\n  "
        "\"most_iterations\": %lld,",
        (long long)mlo_core_layer_beats(c), mlo_number_text(e->m, mlo_core_frame_beats(c)),
        (long long)(mlo_core_resident_beats(c) * c->scan.iterations),
        (long long)mlo_core_deepest(c));
}

/* Which values lie there, in front of a frame and behind it, where they are the model's own. */
static const char *mlo_manifest_given(mlo_emitter *e) {
    const mlo_core *c = e->c;
    mlo_text t = { e->m, NULL, 0, 0 };
    if (!c->given) return "";
    mlo_printf(&t, ", \"past\": %lld", (long long)(c->keys - c->chunk));
    for (int k = 0; k < 4; k++) {
        if (!c->kept[k]) continue;
        mlo_puts(&t, k % 2 ? ", " : k ? ", \"kept\": [" : ", \"given\": [");
        mlo_report_string(&t, c->kept[k]);
        if (k % 2) mlo_puts(&t, "]");
    }
    const char *s = mlo_intern_n(e->m, mlo_or_empty(t.text), t.n);
    mlo_text_free(&t);
    return mlo_or_empty(s);
}

/* What lies where in the memory of keys and values. */
static void mlo_manifest_kv(mlo_emitter *e) {
    const mlo_core *c = e->c;
    const mlo_port *k = mlo_kv_keys(c);
    if (!c->dram) return;
    mlo_line(e,
        "  \"kv\": {\"order\": [\"slot\", \"iteration\", \"key or value\", \"position\"], "
        "\"row_beats\": %lld, \"lanes\": %d, \"bits\": %d, \"channels\": %lld, \"bytes\": "
        "%lld%s},",
        (long long)mlo_kv_row(c), k->lanes, k->bits, (long long)k->channels,
        (long long)mlo_kv_bytes(c), mlo_manifest_given(e));
}

/* Of a core with caches: what they hold, and the jobs of the bench. */
static void mlo_manifest_jobs(mlo_emitter *e) {
    mlo_ordered list[MLO_BENCH_JOBS];
    const int64_t n = mlo_bench_orders(e->c, list);
    mlo_printf(&e->t, "  \"context\": %lld,\n  \"slots\": %lld,\n  \"jobs\": [",
        (long long)e->c->keys, (long long)e->c->slots);
    for (int64_t i = 0; i < n; i++)
        mlo_printf(&e->t, "%s{\"slot\": %lld, \"start\": %lld, \"tokens\": %lld}", i ? ", " : "",
            (long long)list[i].slot, (long long)list[i].start, (long long)list[i].tokens);
    mlo_line(e, "],");
    if (!e->c->given)
        mlo_line(e, "  \"predicted_step\": {\"first\": %lld, \"last\": %lld},",
            (long long)e->step[0], (long long)e->step[1]);
    mlo_manifest_kv(e);
}

static void mlo_manifest_around_kernels(mlo_emitter *e, const mlo_core *h, int more) {
    for (int i = 0; i < h->n_element; i++) {
        const mlo_element *el = &h->element[i];
        mlo_printf(&e->t,
            "%s{\"name\": \"%s\", \"module\": \"%s\", \"pe\": %d, \"simd\": %d, \"interval\": "
            "%lld, "
            "\"memory\": \"%s\"",
            i || more ? ", " : "", el->name, el->unit.module, el->unit.pe, el->unit.simd,
            (long long)el->unit.interval, mlo_memory_name(el));
        mlo_manifest_area(e, h, el);
        mlo_puts(&e->t, "}");
    }
}

/* What is around the loop: its kernels, and what lies where in the image, in bytes. */
static void mlo_manifest_around(mlo_emitter *e) {
    const int64_t at = mlo_core_image_bytes(e->c), rows = at + mlo_core_image_bytes(e->h);
    mlo_printf(&e->t,
        "  \"around\": {\"ids\": %lld, \"rows\": {\"offset\": %lld, \"bytes\": %lld}, "
        "\"%s\": {\"offset\": %lld, \"bytes\": %lld}, ",
        (long long)e->c->ids, (long long)rows, (long long)mlo_around_rows_bytes(e->c),
        mlo_emit_says(e) ? "head" : "front", (long long)at, (long long)(rows - at));
    if (mlo_emit_says(e)) mlo_printf(&e->t, "\"best\": %d, ", mlo_emit_best(e));
    if (mlo_core_types(e->c) > 1)
        mlo_printf(&e->t, "\"types\": %lld, ", (long long)mlo_core_types(e->c));
    if (e->c->places)
        mlo_printf(&e->t, "\"positions\": {\"offset\": %lld, \"bytes\": %lld}, ",
            (long long)(rows + mlo_around_rows_bytes(e->c)),
            (long long)mlo_around_places_bytes(e->c));
    if (e->tail)
        mlo_printf(&e->t,
            "\"tail\": {\"offset\": %lld, \"bytes\": %lld, \"channels\": %lld, \"lanes\": %d, "
            "\"bits\": %d}, ",
            (long long)mlo_tail_offset(e->c), (long long)mlo_core_image_bytes(e->tail),
            (long long)e->tail->channels, e->tail->lanes, e->tail->bits);
    mlo_printf(&e->t, "\"kernels\": [");
    mlo_manifest_around_kernels(e, e->h, 0);
    if (e->tail) mlo_manifest_around_kernels(e, e->tail, 1);
    mlo_line(e, "]},");
}

static int mlo_emit_manifest(mlo_emitter *e, const mlo_border *border, int64_t frames) {
    const mlo_core *c = e->c;
    mlo_line(e,
        "{\n  \"mlo\": \"%s\",\n  \"iterations\": %lld,\n  \"tokens\": %lld,\n  \"channels\": "
        "%lld,\n  \"frames_in_flight\": %d,",
        MLO_VERSION, (long long)c->scan.iterations, (long long)c->chunk, (long long)c->channels,
        c->frames);
    if (c->slots) mlo_manifest_jobs(e);
    mlo_line(e, "  \"stream\": {\"lanes\": %d, \"bits\": %d, \"bytes\": %d, \"masked\": %s},",
        c->lanes, c->bits, c->lanes * mlo_padded(c->bits) / 8, c->masked ? "true" : "false");
    mlo_line(e,
        "  \"axi_bits\": %d,\n  \"multipliers\": %lld,\n  \"interval_per_token\": %lld,\n  "
        "\"bench_frames\": %lld,",
        c->axi_bits, (long long)(e->layers * mlo_core_multipliers(c)),
        (long long)mlo_core_interval(c), (long long)frames);
    if (e->h) mlo_manifest_around(e);
    /* what is predicted is a loop */
    if (e->unrolled) mlo_line(e, "  \"unrolled\": true,");
    mlo_line(e,
        e->unrolled ? "  \"predicted_cycles\": null,\n  \"predicted_interval\": null,"
                    : "  \"predicted_cycles\": %lld,\n  \"predicted_interval\": %lld,",
        (long long)e->cycles, (long long)e->each);
    if (c->replay >= 0) {
        const mlo_port y = mlo_replay_port(c);
        mlo_printf(&e->t, "  \"replay\": {\"name\": ");
        mlo_report_string(&e->t, mlo_replay_name(c));
        mlo_line(e,
            ", \"tokens\": %lld, \"channels\": %lld, \"lanes\": %d, \"bits\": %d, \"masked\": "
            "%s, %s},",
            (long long)mlo_replay_frame(c), (long long)y.channels, y.lanes, y.bits,
            c->replay_masked ? "true" : "false", mlo_border_json(e->m, &border[2]));
    }
    mlo_printf(&e->t, "  \"input\": {\"name\": ");
    mlo_report_string(&e->t, mlo_in_name(e));
    mlo_line(e, ", %s},", mlo_border_json(e->m, &border[0]));
    mlo_printf(&e->t, "  \"output\": {\"name\": ");
    mlo_report_string(&e->t, mlo_out_name(e));
    if (c->every) mlo_printf(&e->t, ", \"times\": %lld", (long long)c->scan.iterations);
    mlo_line(e, ", %s},", mlo_border_json(e->m, &border[1]));
    mlo_manifest_kernels(e);
    mlo_manifest_descriptors(e);
    return mlo_manifest_end(e);
}

static int mlo_emit_verilog(mlo *m, mlo_sink sink, void *user) {
    if (mlo_emit_begin(m, "fold")) return mlo_failed(m);
    mlo_emitter *e = MLO_NEW(m, mlo_emitter);
    if (!e || !(e->c = MLO_NEW(m, mlo_core)) || mlo_infer(m) || mlo_core_build(m, e->c))
        return mlo_failed(m);
    e->m = m;
    e->sink = sink;
    e->user = user;
    e->t.m = m;
    if (mlo_around(m, e->c, &e->h) || mlo_emit_copies(e)) return mlo_failed(m);
    e->tail = e->c->tail;
    /* of a core with caches one sequence comes, in parts */
    int64_t frames = e->c->slots ? 1 : e->c->frames;
    mlo_border border[MLO_BORDERS];
    if (mlo_borders(e, border)) return mlo_failed(m);
    mlo_bench_words w = mlo_bench_words_new(e, frames, border);
    if (!mlo_emit_top(e) && !mlo_emit_around(e) && !mlo_emit_library(e) && !mlo_emit_params(e)
        && !mlo_emit_tb(e, frames) && !mlo_bench_play(&w) && !mlo_emit_bench_words(e, &w)
        && !mlo_emit_scripts(e) && !mlo_emit_regs(e) && !mlo_emit_driver(e, border, &w)
        && !mlo_emit_parts(e) && !mlo_emit_predict(e) && !mlo_emit_intermediates(e)
        && !mlo_emit_guide(e, border))
        mlo_emit_manifest(e, border, frames);
    mlo_bench_words_free(&w);
    mlo_text_free(&e->t);
    return mlo_failed(m);
}
