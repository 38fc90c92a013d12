/* api: the public functions.
 *
 * in:  calls from outside.
 * out: what mlo.h promises.
 *
 * invariant: a handle that failed stays failed: every call returns the first code and does nothing
 *     else.
 * example: mlo_load(m, "bert.onnx"), mlo_to(m, "fold") (stages.c), mlo_emit(m, sink, user)
 *     (emit/host.c).
 * cost: nothing of its own.
 */

mlo *mlo_open(const mlo_desc *desc) {
    mlo_desc d;
    memset(&d, 0, sizeof d);
    if (desc) d = *desc;
    if (!d.alloc) {
        d.alloc = mlo_default_alloc;
        d.release = mlo_default_release;
    }
    if (!d.open) {
        d.open = mlo_default_open;
        d.read = mlo_default_read;
        d.close = mlo_default_close;
    }
    mlo *m = (mlo *)d.alloc(d.user, sizeof *m);
    if (!m) return NULL;
    memset(m, 0, sizeof *m);
    m->desc = d;
    return m;
}

void mlo_close(mlo *m) {
    if (!m) return;
    for (mlo_source *s = m->sources; s; s = s->next) m->desc.close(m->desc.user, s->file);
    mlo_scratch_free(m, m->strings.slot);
    for (mlo_block *b = m->arena, *next; b; b = next) {
        next = b->next;
        m->desc.release(m->desc.user, b);
    }
    m->desc.release(m->desc.user, m);
}

const mlo_error *mlo_failure(const mlo *m) { return m && m->error.code ? &m->error : NULL; }

int mlo_set(mlo *m, const char *key, const char *value) {
    if (m->error.code) return mlo_failed(m);
    if (!key || !*key || !value)
        return mlo_fail_at(m, MLO_E_USAGE, NULL, "an option needs a name and a value");
    if (!mlo_option_is(key))
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "there is no option '%.60s'; `mlo help --man` lists the flags, whose names options "
            "have",
            key);
    mlo_option o = { mlo_intern(m, key), mlo_intern(m, value) };
    if (m->error.code) return mlo_failed(m);
    mlo_option *options = (mlo_option *)mlo_grow(
        m, m->options, m->n_options, &m->options_room, sizeof o);
    if (!options) return mlo_failed(m);
    m->options = options;
    m->options[m->n_options++] = o;
    return 0;
}

int mlo_refuse(mlo *m, mlo_code code, const char *stage, const char *node, const char *message) {
    if (code <= MLO_OK || code >= MLO_E_COUNT) code = MLO_E_USAGE;
    if (stage && !m->error.code) m->stage = mlo_intern(m, stage);
    return mlo_fail_at(m, code, node, "%s", mlo_or_empty(message));
}

void mlo_digest(const void *bytes, size_t n, char hex[65]) {
    mlo_sha s;
    mlo_sha_begin(&s);
    if (n) mlo_sha_add(&s, bytes, n);
    mlo_sha_end(&s, hex);
}

/* ---- in ------------------------------------------------------------------- */

static int mlo_may_load(mlo *m) {
    if (m->error.code) return mlo_failed(m);
    m->stage = "read";
    if (m->model)
        return mlo_fail_at(
            m, MLO_E_USAGE, NULL, "the handle already holds a model; open another for another");
    for (int i = 0; i < MLO_N_KERNELS; i++)
        MLO_TRY(mlo_ops_add(m, &mlo_kernels[i]->op, 1, sizeof *mlo_kernels[i]));
    MLO_TRY(mlo_ops_add(m, &mlo_dialects[0].op, MLO_N_DIALECTS, sizeof mlo_dialects[0]));
    MLO_TRY(mlo_ops_add(m, &mlo_fused_ops[0].op, MLO_N_FUSED, sizeof mlo_fused_ops[0]));
    return mlo_ops_add(m, &mlo_qonnx_ops[0], MLO_N_QONNX, sizeof mlo_qonnx_ops[0]);
}

int mlo_load(mlo *m, const char *path) {
    if (mlo_may_load(m)) return mlo_failed(m);
    const char *name = path ? strrchr(path, '/') : NULL;
    const char *dir = !name ? "."
        : name == path      ? "/"
                            : mlo_intern_n(m, path, (size_t)(name - path));
    if (!path || !*path) return mlo_fail_at(m, MLO_E_USAGE, NULL, "a file name is needed");
    mlo_source *s = dir ? mlo_source_open(m, dir, name ? name + 1 : path) : NULL;
    return s ? mlo_decode(m, s, NULL, 0, dir) : mlo_failed(m);
}

int mlo_parse(mlo *m, const void *bytes, size_t n, const char *data_dir) {
    if (mlo_may_load(m)) return mlo_failed(m);
    return mlo_decode(m, NULL, bytes ? bytes : "", bytes ? n : 0, data_dir ? data_dir : ".");
}

/* ---- out ------------------------------------------------------------------ */

static int mlo_may_write(mlo *m) {
    if (m->error.code) return mlo_failed(m);
    return m->model ? 0 : mlo_fail_at(m, MLO_E_USAGE, NULL, "load a model first");
}

/* On a handle that failed, writes the error document instead (and returns its code): what a pipe
 * passes on. */
int mlo_write_json(mlo *m, mlo_sink sink, void *user) {
    if (!mlo_may_write(m)) return mlo_json_write(m, m->model, sink, user);
    mlo_json_write_error(m, sink, user);
    return mlo_failed(m);
}

int mlo_write_onnx(mlo *m, mlo_sink sink, void *user) {
    return mlo_may_write(m) ? mlo_failed(m) : mlo_wire_write(m, m->model, sink, user);
}

/* ---- showing -------------------------------------------------------------- */

static int mlo_text_sink(void *user, const char *name, const void *bytes, size_t n) {
    mlo_text *t = (mlo_text *)user;
    (void)name;
    mlo_put(t, (const char *)bytes, n);
    return mlo_failed(t->m);
}

/* The same model after roll, on a handle of its own that warns nobody; it has failed where the
 * model does not roll. */
static mlo *mlo_rolled(mlo *m) {
    mlo_text text = { m, NULL, 0, 0 };
    mlo_desc quiet = m->desc;
    quiet.warn = NULL;
    mlo *r = mlo_json_write(m, m->model, mlo_text_sink, &text) ? NULL : mlo_open(&quiet);
    for (size_t i = 0; r && i < m->n_options; i++)
        mlo_set(r, m->options[i].key, m->options[i].value);
    if (r && !mlo_parse(r, text.text, text.n, NULL)) mlo_to(r, "roll");
    mlo_text_free(&text);
    return r;
}

/* A model that no stage has seen is shown with the loops that extract finds; one that does not
 * roll, as it was read. */
static int mlo_show_model(mlo *m, const char *format, mlo_text *t) {
    int raw = !*mlo_stage(m);
    if (m->error.code || mlo_to(m, "read")) return mlo_failed(m);
    int wanted = raw
        || (mlo_eq(format, "html") && mlo_stage_at(mlo_stage(m)) < mlo_stage_at("roll"));
    mlo *rolled = wanted ? mlo_rolled(m) : NULL;
    if (wanted && mlo_failed(rolled) == MLO_E_MEMORY)
        mlo_fail_at(m, MLO_E_MEMORY, NULL, "no memory for a copy to roll");
    int rolls = rolled && !mlo_failed(rolled);
    if (!m->error.code && !(raw && rolls && mlo_to(m, "extract")))
        mlo_show_as(m, rolls ? rolled : NULL, format, t);
    mlo_close(rolled);
    return mlo_failed(m);
}

int mlo_show(mlo *m, const char *format, mlo_sink sink, void *user) {
    mlo_text t = { m, NULL, 0, 0 };
    if (!mlo_show_model(m, format, &t) && t.n && sink(user, "", t.text, t.n))
        mlo_fail_at(m, MLO_E_IO, NULL, "writing was cancelled");
    mlo_text_free(&t);
    return mlo_failed(m);
}

/* One of the two that are compared: a core. What is wrong with the second is a failure of the first, too. */
static int mlo_compared_view(mlo *m, mlo *one, mlo_view *v) {
    if (!one->error.code && !mlo_may_write(one) && !mlo_view_of(one, v) && !v->hw)
        mlo_fail_at(one, MLO_E_USAGE, NULL,
            "cores are compared, and %s is none (stage: %s); give build directories, or models "
            "that lower or fold has seen",
            mlo_opt(one, "title") ? mlo_opt(one, "title") : "this model",
            *mlo_stage(one) ? mlo_stage(one) : "none yet");
    if (one != m && one->error.code)
        mlo_fail_at(m, one->error.code, one->error.node, "%s", one->error.message);
    return mlo_failed(m);
}

int mlo_show_against(mlo *m, mlo *other, const char *format, mlo_sink sink, void *user) {
    mlo_text t = { m, NULL, 0, 0 };
    mlo_view a, b;
    if (!other)
        return mlo_fail_at(m, MLO_E_USAGE, NULL, "there is no second model to compare with");
    if (!mlo_compared_view(m, m, &a) && !mlo_compared_view(m, other, &b)
        && !mlo_compare_views(&a, &b, format, &t) && sink(user, "", t.text, t.n))
        mlo_fail_at(m, MLO_E_IO, NULL, "writing was cancelled");
    mlo_text_free(&t);
    return mlo_failed(m);
}

int mlo_show_sweep(
    mlo *m, const char *lines, size_t n, const char *format, mlo_sink sink, void *user) {
    mlo_text t = { m, NULL, 0, 0 };
    if (!m->error.code && !mlo_sweep_as(m, lines ? lines : "", lines ? n : 0, format, &t)
        && sink(user, "", t.text, t.n))
        mlo_fail_at(m, MLO_E_IO, NULL, "writing was cancelled");
    mlo_text_free(&t);
    return mlo_failed(m);
}

const char *mlo_summary(mlo *m) {
    mlo_text t = { m, NULL, 0, 0 };
    const char *s = mlo_show_model(m, "json", &t) ? NULL : mlo_intern_n(m, t.text, t.n);
    mlo_text_free(&t);
    return s;
}

/* ---- reports -------------------------------------------------------------- */

static const char *mlo_kept(mlo *m, mlo_text *t) {
    const char *s = m->error.code ? NULL : mlo_intern_n(m, mlo_or_empty(t->text), t->n);
    mlo_text_free(t);
    return s;
}

/* Where every node is, and how that is known. */
static void mlo_scope_report(mlo *m, mlo_text *t) {
    const mlo_graph *g = m->model->graph;
    int said = 0, n = 0;
    for (size_t i = 0; i < g->n_node; i++)
        said += mlo_meta_get(g->node[i]->meta, g->node[i]->n_meta, mlo_key_scope)
            && !mlo_meta_get(g->node[i]->meta, g->node[i]->n_meta, mlo_key_scope_from);
    mlo_printf(t, "{\"nodes\":%zu,\"said\":%d,\"inferred\":[", g->n_node, said);
    for (size_t i = 0; i < g->n_node; i++) {
        const mlo_node *node = g->node[i];
        const char *from = mlo_meta_get(node->meta, node->n_meta, mlo_key_scope_from);
        const char *scope = mlo_meta_get(node->meta, node->n_meta, mlo_key_scope);
        if (!from || !scope) continue;
        mlo_puts(t, n++ ? ",{\"node\":" : "{\"node\":");
        mlo_report_string(t, mlo_node_name(node));
        mlo_puts(t, ",\"scope\":");
        mlo_report_string(t, scope);
        mlo_puts(t, ",\"why\":");
        mlo_report_string(t, from);
        mlo_puts(t, "}");
    }
    mlo_puts(t, "]}\n");
}

/* A job, and behind one that goes on inside its tokens one by one. */
static int mlo_orders_add(mlo *m, mlo_ordered **list, size_t *n, mlo_ordered one, int64_t more) {
    for (int64_t i = 0; i <= more; i++) {
        if (!MLO_PUSH(m, *list, *n, one)) return mlo_failed(m);
        one.start += one.tokens;
        one.tokens = 1;
    }
    return 0;
}

/* Option "jobs": SLOT:START+TOKENS, with commas between them, of a core with caches; +MORE: so many tokens go on
 * inside (of one with --tokens). */
static int mlo_orders(mlo *m, mlo_core *c) {
    const char *text = mlo_opt(m, "jobs");
    mlo_ordered *list = NULL;
    size_t count = 0;
    int texts = 0;
    if (!text || !c->slots) return 0;
    for (const char *p = text; *p; p += *p == ',') {
        long long slot, start, tokens, more = 0;
        int n = 0, behind = 0;
        const int read = sscanf(
            p, "%lld:%lld+%lld%n+%lld%n", &slot, &start, &tokens, &n, &more, &behind);
        if (read > 3) n = behind;
        if (read < 3 || (p[n] && p[n] != ',') || slot < 0 || slot >= c->slots || start < 0
            || tokens < 1 || tokens > c->keys - start || more < 0
            || more > (c->around ? c->chunk - start - tokens + 1 : 0))
            return mlo_fail_at(m, MLO_E_USAGE, NULL,
                "jobs '%.40s' do not begin with SLOT:START+TOKENS, a slot below %lld and at most "
                "%lld positions",
                p, (long long)c->slots, (long long)c->keys);
        const mlo_ordered one = { slot, start, tokens, texts || more > 0 };
        texts = more > 0;
        MLO_TRY(mlo_orders_add(m, &list, &count, one, more));
        p += n;
    }
    c->order = list;
    c->n_order = (int64_t)count;
    return mlo_failed(m);
}

/* A run of option "frames" frames as it is predicted: when, and what kernels wait for. */
static int mlo_cycles_report(mlo *m, mlo_text *t) {
    mlo_prediction p;
    int kernels = 0;
    mlo_core *c = MLO_NEW(m, mlo_core);
    if (!c || mlo_infer(m) || mlo_core_build(m, c) || mlo_orders(m, c)) return mlo_failed(m);
    const int64_t frames = c->order ? c->n_order : mlo_opt_int(m, "frames", c->frames, 1, 1 << 20);
    if (mlo_predict_peaks(m, c, frames, MLO_FOLLOWED_ALL, &p)) return mlo_failed(m);
    mlo_printf(t, "{\"cycles\":%lld,\"interval\":%lld,\"kernels\":[", (long long)p.cycles,
        (long long)p.interval);
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel) {
            mlo_printf(t, "%s{\"name\":", kernels++ ? "," : "");
            mlo_report_string(t, c->element[i].name);
            mlo_puts(t, ",");
            mlo_spent_json(&p.spent[i], t);
            mlo_puts(t, "}");
        }
    mlo_puts(t, "],\"fifos\":[");
    for (int k = 0, said = 0; k <= c->n_edge; k++)
        if (k == c->n_edge || c->edge[k].fifo) {
            mlo_printf(t, "%s{\"name\":", said++ ? "," : "");
            mlo_report_string(t,
                k < c->n_edge
                    ? mlo_format(m, "%s_in%d", c->element[c->edge[k].to].name, c->edge[k].to_port)
                    : "feed");
            mlo_printf(t, ",\"peak\":%lld}", (long long)p.peak[k]);
        }
    mlo_puts(t, "]}\n");
    return mlo_failed(m);
}

const char *mlo_report(mlo *m, const char *what) {
    mlo_text t = { m, NULL, 0, 0 };
    if (mlo_may_write(m)) return NULL;
    if (mlo_eq(what, "scope"))
        mlo_scope_report(m, &t);
    else if (mlo_eq(what, "roll"))
        mlo_roll_report(m, &t);
    else if (mlo_eq(what, "quantize"))
        mlo_quantize_report(m, &t);
    else if (mlo_eq(what, "cycles"))
        mlo_cycles_report(m, &t);
    else if (mlo_eq(what, "pareto")) {
        m->stage = "fold";
        mlo_fold_pareto(m, &t);
    } else if (mlo_eq(what, "folding")) {
        mlo_core *c = MLO_NEW(m, mlo_core);
        if (c && !mlo_infer(m) && !mlo_core_build(m, c)) mlo_folding_text(c, &t);
    } else
        mlo_fail_at(m, MLO_E_USAGE, NULL,
            "there is no report '%s'; they are scope, roll, quantize, folding, pareto, cycles",
            mlo_or_empty(what));
    return mlo_kept(m, &t);
}

int mlo_cycles(mlo *m, int64_t frames, int64_t *cycles, int64_t *interval) {
    mlo_prediction p;
    if (mlo_may_write(m)) return mlo_failed(m);
    if (frames < 1 || frames > 1 << 20)
        return mlo_fail_at(
            m, MLO_E_USAGE, NULL, "%lld frames cannot be predicted", (long long)frames);
    mlo_core *c = MLO_NEW(m, mlo_core);
    /* host/core.onnx holds no shapes inside */
    if (!c || mlo_infer(m) || mlo_core_build(m, c) || mlo_predict(m, c, frames, &p))
        return mlo_failed(m);
    *cycles = p.cycles;
    *interval = p.interval;
    return 0;
}

/* ---- around a run --------------------------------------------------------- */

int mlo_watch(mlo *m, mlo_watcher see, void *user) {
    m->watch = see;
    m->watch_user = user;
    return mlo_failed(m);
}

int mlo_calibrate(mlo *m, const mlo_array *arrays, size_t n) {
    if (m->error.code) return mlo_failed(m);
    m->calib = arrays;
    m->n_calib = n;
    return 0;
}

int mlo_hold(mlo *m, const mlo_array *arrays, size_t n) {
    if (m->error.code) return mlo_failed(m);
    for (size_t i = 0; i < n; i++) MLO_TRY(mlo_held_add(m, &arrays[i]));
    return 0;
}

int mlo_words(mlo *m, const mlo_array *inputs, size_t n, const mlo_array *golden, size_t n_golden) {
    if (m->error.code) return mlo_failed(m);
    m->words = inputs;
    m->n_words = n;
    m->words_golden = golden;
    m->n_words_golden = n_golden;
    return 0;
}

int mlo_signature(mlo *m, int of_outputs, const mlo_array **values, size_t *n) {
    if (mlo_may_write(m)) return mlo_failed(m);
    const mlo_graph *g = m->model->graph;
    size_t count = of_outputs ? g->n_output : g->n_input;
    mlo_array *a = MLO_NEW_N(m, mlo_array, count + 1);
    if (!a) return mlo_failed(m);
    *n = 0;
    for (size_t i = 0; i < count; i++) {
        const mlo_value *v = mlo_value_of(g, of_outputs ? g->output[i]->name : g->input[i]->name);
        mlo_form f = mlo_form_of(v);
        if (!v || (!of_outputs && v->tensor)) continue;
        a[*n].name = v->name;
        a[*n].dtype = f.dtype;
        a[*n].rank = f.rank;
        for (int k = 0; k < f.rank; k++) a[*n].dims[k] = f.dims[k];
        ++*n;
    }
    *values = a;
    return 0;
}

int mlo_draw(mlo *m, uint64_t k, const mlo_array **inputs, size_t *n) {
    const size_t n_calib = m->n_calib;
    MLO_TRY(mlo_may_write(m));
    m->n_calib = 0;
    mlo_array **drawn = mlo_sample_inputs(m, (int64_t)k, n);
    mlo_array *kept = drawn ? MLO_NEW_N(m, mlo_array, *n + 1) : NULL;
    for (size_t i = 0; kept && i < *n; i++) mlo_array_keep(m, drawn[i], &kept[i]);
    mlo_sample_free(m, drawn, *n);
    m->n_calib = n_calib;
    *inputs = kept;
    return mlo_failed(m);
}

int mlo_golden(mlo *m, const mlo_array **outputs, size_t *n) {
    if (mlo_may_write(m)) return mlo_failed(m);
    if (!m->golden) return mlo_fail_at(m, MLO_E_USAGE, NULL, "nothing was emitted: mlo_emit first");
    *outputs = m->golden;
    *n = m->model->graph->n_output;
    return 0;
}

/* A value's token axis, where it is declared: the last of a mask, the last but one of all else. */
static void mlo_resize_declared(const mlo_value_info *info, int64_t whole, int64_t tokens) {
    mlo_tensor_type *t = info->type ? info->type->tensor : NULL;
    size_t rank = t && t->shape ? t->shape->n_dim : 0;
    size_t axis = mlo_eq(info->name, "mlo_mask") ? 1 : 2;
    if (rank >= 2 && t->shape->dim[rank - axis].value == whole)
        t->shape->dim[rank - axis].value = tokens;
}

/* The token axis of a graph's edges, of the loop's state and of a constant mask; what is noted of
 * values in between goes. */
int mlo_resize(mlo *m, int64_t tokens) {
    mlo_scan s;
    if (mlo_may_write(m) || mlo_infer(m) || mlo_scan_choose(m, &s)) return mlo_failed(m);
    mlo_graph *g = m->model->graph;
    mlo_form f = mlo_form_of(mlo_value_of(g, s.node->input[0]));
    if (f.rank < 2 || tokens < 1 || tokens > f.dims[f.rank - 2])
        return mlo_fail_at(m, MLO_E_SHAPE, s.node->input[0],
            "frames of %lld tokens do not fit a core of %s", (long long)tokens,
            mlo_dims_text(m, f.rank, f.dims));
    int64_t whole = f.dims[f.rank - 2];
    for (size_t i = 0; i < g->n_input; i++) mlo_resize_declared(g->input[i], whole, tokens);
    for (size_t i = 0; i < g->n_output; i++) mlo_resize_declared(g->output[i], whole, tokens);
    for (size_t i = 0; i < s.n_state; i++) mlo_resize_declared(s.body->input[i], whole, tokens);
    for (size_t i = 0; i < s.body->n_output; i++)
        mlo_resize_declared(s.body->output[i], whole, tokens);
    g->n_info = s.body->n_info = 0;
    MLO_TRY(mlo_index(m, g));
    mlo_value *mask = mlo_value_of(g, mlo_intern(m, "mlo_mask"));
    if (!mask || !mask->tensor || mask->tensor->n_dims < 1) return 0;
    mlo_array *a = mlo_tensor_load(m, mask->tensor);
    const int64_t dims[2] = { 1, tokens };
    void *bits = a ? mlo_alloc(m, (size_t)tokens, 1) : NULL;
    if (bits && mlo_array_count(a) == whole) memcpy(bits, a->data, (size_t)tokens);
    mlo_tensor *cut = bits ? mlo_tensor_new(m, "mlo_mask", MLO_BOOL, dims, 2, bits, (size_t)tokens)
                           : NULL;
    if (cut) *mask->tensor = *cut;
    mlo_array_free(m, a);
    return mlo_failed(m);
}

int mlo_check(mlo *m, mlo *original) {
    if (mlo_may_write(m) || mlo_to(m, "read")) return mlo_failed(m);
    if (mlo_to(original, "read"))
        return mlo_refuse(
            m, original->error.code, "check", original->error.node, original->error.message);
    m->stage = "check";
    return mlo_check_models(m, original);
}
