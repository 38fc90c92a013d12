/* show, text: a model for people at a terminal, and for Graphviz.
 *
 * in:  an mlo_view.
 * out: plain text of at most MLO_SHEET columns; or a DOT graph with each loop's body as a cluster.
 *
 * invariant: all text but names is ASCII; a control character in a name is printed as '?'; columns
 *     count characters, not bytes.
 * example: mlo_show(m, "text", ..) of a folded BERT: inputs, the loop in its box, the kernels with
 *     their share of the busiest one's time.
 * cost: O(nodes printed).
 */
enum { MLO_SHEET = 112 };

/* ---- columns -------------------------------------------------------------- */

typedef struct {
    mlo_text *out;
    mlo_text line;
    int column; /* characters in line */
    int boxed; /* 1: lines are in a box */
} mlo_sheet;

/* Characters in UTF-8 text. NULL, which is what formatting gives without memory, has none. */
static int mlo_columns(const char *s) {
    int n = 0;
    for (; s && *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

/* Writes at most `most` characters of a name to the line; a longer one loses its middle. */
static void mlo_say(mlo_sheet *t, const char *s, int most) {
    if (!s) return;
    int n = mlo_columns(s), head = n, skip = 0, at = 0;
    if (n > most) {
        head = most < 8 ? most : (most - 2) / 2;
        skip = most < 8 ? n : n - (most - 2 - head);
    }
    for (; *s && most > 0; s++) {
        int begins = ((unsigned char)*s & 0xC0) != 0x80, shown;
        at += begins;
        shown = at <= head || at > skip;
        if (begins && n > most && most >= 8 && at == head + 1) {
            mlo_puts(&t->line, "..");
            t->column += 2;
        }
        if (!shown) continue;
        if ((unsigned char)*s < 32 || *s == 127)
            mlo_puts(&t->line, "?");
        else
            mlo_put(&t->line, s, 1);
        t->column += begins;
    }
}
static void mlo_to_column(mlo_sheet *t, int column) {
    while (t->column < column) {
        mlo_puts(&t->line, " ");
        t->column++;
    }
}
/* A cell `width` wide, then a space. */
static void mlo_say_cell(mlo_sheet *t, const char *s, int width) {
    int at = t->column;
    mlo_say(t, s, width);
    mlo_to_column(t, at + width + 1);
}
static void mlo_say_right(mlo_sheet *t, const char *s, int width) {
    mlo_to_column(t, t->column + width - mlo_columns(s));
    mlo_say(t, s, width);
    mlo_to_column(t, t->column + 1);
}

static void mlo_end_line(mlo_sheet *t) {
    if (t->boxed)
        mlo_to_column(t, MLO_SHEET - 4);
    else
        while (t->line.n && t->line.text[t->line.n - 1] == ' ') t->line.text[--t->line.n] = 0;
    if (t->boxed) mlo_puts(t->out, "| ");
    if (t->line.n) mlo_put(t->out, t->line.text, t->line.n);
    mlo_puts(t->out, t->boxed ? " |\n" : "\n");
    t->line.n = 0;
    t->column = 0;
}
static void mlo_tell(mlo_sheet *t, const char *s) {
    mlo_say(t, s, MLO_SHEET - 4 - t->column);
    mlo_end_line(t);
}

/* One more item of a list that wraps: begins a new line, indented, where it does not fit. */
static void mlo_item(mlo_sheet *t, const char *s, int indent, int last) {
    int room = MLO_SHEET - 4;
    if (t->column > indent && t->column + mlo_columns(s) + 2 > room) {
        mlo_end_line(t);
        mlo_to_column(t, indent);
    }
    mlo_say(t, s, room - t->column - 2 > 8 ? room - t->column - 2 : 8);
    if (!last) {
        mlo_puts(&t->line, ", ");
        t->column += 2;
    }
}

/* The top or bottom of a box: +-- left ---- right --+ */
static void mlo_rule(mlo_sheet *t, const char *left, const char *right) {
    int boxed = t->boxed, n;
    t->boxed = 0;
    mlo_say(t, "+--", 3);
    if (*left) {
        mlo_say(t, " ", 1);
        mlo_say(t, left, 70);
        mlo_say(t, " ", 1);
    }
    n = mlo_columns(right);
    if (n > MLO_SHEET - t->column - 10) n = MLO_SHEET - t->column - 10;
    while (t->column < MLO_SHEET - 3 - (n > 0 ? n + 2 : 0)) mlo_say(t, "-", 1);
    if (n > 0) {
        mlo_say(t, " ", 1);
        mlo_say(t, right, n);
        mlo_say(t, " ", 1);
    }
    mlo_say(t, "--+", 3);
    mlo_end_line(t);
    t->boxed = boxed;
}

enum { MLO_LABEL = 15 }; /* the column of what stands behind a label */

/* ---- the model ------------------------------------------------------------ */

static void mlo_text_values(
    const mlo_view *v, mlo_sheet *t, const char *label, mlo_value_info *const *list, size_t n) {
    int said = 0;
    for (size_t i = 0; i < n; i++) {
        const mlo_value *x = mlo_view_listed(v, list[i]);
        if (!x) continue;
        mlo_say_cell(t, said++ ? "" : label, MLO_LABEL - 1);
        mlo_say_cell(t, x->name, 32);
        mlo_tell(t, mlo_view_form(v->m, x));
    }
}

static void mlo_text_header(const mlo_view *v, mlo_sheet *t) {
    mlo *m = v->m;
    const mlo_model *model = m->model;
    mlo_say_cell(t, "model", MLO_LABEL - 1);
    mlo_say(t, v->g->name && *v->g->name ? v->g->name : "(unnamed)", 40);
    if (model->producer_name && *model->producer_name) {
        mlo_say(t, ", made by ", 12);
        mlo_say(t, model->producer_name, 24);
        if (model->producer_version) {
            mlo_say(t, " ", 1);
            mlo_say(t, model->producer_version, 16);
        }
    }
    mlo_end_line(t);
    mlo_say_cell(t, "stage", MLO_LABEL - 1);
    mlo_tell(t, *v->stage ? v->stage : "(not read)");
    if (mlo_is_sketch(m)) {
        mlo_say_cell(t, "a sketch", MLO_LABEL - 1);
        mlo_tell(t,
            "no matrix was read, nothing calibrated: kernels, folding, cycles and areas alone are "
            "true");
    }
    mlo_say_cell(t, "opset", MLO_LABEL - 1);
    for (size_t i = 0; i < model->n_opset; i++) {
        const char *domain = model->opset[i].domain && *model->opset[i].domain
            ? model->opset[i].domain
            : "ai.onnx";
        const char *s = mlo_format(m, "%s %lld", domain, (long long)model->opset[i].version);
        mlo_item(t, mlo_or_empty(s), MLO_LABEL, i + 1 == model->n_opset);
    }
    mlo_end_line(t);
    mlo_say_cell(t, "size", MLO_LABEL - 1);
    const char *s = mlo_format(m, "%zu node%s, %zu in subgraphs; %s parameters, %s", v->g->n_node,
        mlo_plural((int64_t)v->g->n_node), v->subgraph_nodes, mlo_thousands(m, v->parameters),
        mlo_size_text(m, v->bytes));
    mlo_tell(t, mlo_or_empty(s));
    mlo_text_values(v, t, "inputs", v->g->input, v->g->n_input);
    mlo_text_values(v, t, "outputs", v->g->output, v->g->n_output);
    if (v->inferred) {
        mlo_say_cell(t, "scopes", MLO_LABEL - 1);
        mlo_tell(t,
            mlo_format(m, "of %zu node%s inferred", v->inferred, mlo_plural((int64_t)v->inferred)));
    }
}

/* Nodes outside of loops, by scope: how many of which op. */
static int mlo_text_outside(const mlo_view *v, mlo_sheet *t) {
    mlo_view_groups groups;
    MLO_TRY(mlo_view_grouped(v, &groups));
    if (!groups.n) return 0;
    mlo_end_line(t);
    mlo_tell(t, v->n_loops || v->n_marks ? "nodes outside of the loops" : "nodes, by scope");
    for (size_t i = 0; i < groups.n; i++) {
        const mlo_view_group *g = &groups.group[i];
        mlo_say(t, "  ", 2);
        mlo_say_cell(t, mlo_last_level(g->scope), 34);
        mlo_say_right(t, mlo_thousands(v->m, (int64_t)g->nodes), 6);
        mlo_say(t, "  ", 2);
        for (size_t k = 0; k < g->n_ops; k++) {
            const char *s = g->count[k] > 1 ? mlo_format(v->m, "%zu %s", g->count[k], g->op[k])
                                            : g->op[k];
            mlo_item(t, mlo_or_empty(s), 46, k + 1 == g->n_ops);
        }
        mlo_end_line(t);
    }
    return mlo_failed(v->m);
}

/* ---- a loop --------------------------------------------------------------- */

static void mlo_text_instances(const mlo_view *v, const mlo_view_loop *l, mlo_sheet *t) {
    if (!*l->instances) return;
    mlo_say_cell(t, "instances", MLO_LABEL - 1);
    for (int64_t i = 0; i < l->iterations && i < 16; i++)
        mlo_item(t, mlo_last_level(mlo_view_instance_scope(v->m, l, i)), MLO_LABEL,
            i + 1 == l->iterations);
    if (l->iterations > 16) {
        const char *s = mlo_format(v->m, "and %lld more", (long long)l->iterations - 16);
        mlo_item(t, mlo_or_empty(s), MLO_LABEL, 1);
    }
    mlo_end_line(t);
}

/* Carried values and taps: what comes in first, what each iteration makes, what is left. */
static void mlo_text_states(const mlo_view *v, const mlo_view_loop *l, mlo_sheet *t) {
    for (size_t i = 0; i < l->states; i++) {
        mlo_say_cell(t, i ? "" : "carried", MLO_LABEL - 1);
        mlo_say_cell(t, l->body->input[i]->name, 30);
        mlo_tell(t, mlo_view_form(v->m, mlo_value_of(l->body, l->body->input[i]->name)));
        const char *out = i < l->node->n_output ? l->node->output[i] : "";
        const char *s = mlo_format(v->m, "first %s, then %s%s%s", l->node->input[i],
            l->body->output[i]->name, *out ? ", left as " : "", out);
        mlo_to_column(t, MLO_LABEL);
        mlo_tell(t, mlo_or_empty(s));
    }
    for (size_t i = 0; i < l->taps; i++) {
        mlo_say_cell(t, i ? "" : "taps", MLO_LABEL - 1);
        mlo_say_cell(t, l->body->output[l->states + i]->name, 30);
        mlo_say_cell(
            t, mlo_view_form(v->m, mlo_value_of(l->outer, l->node->output[l->states + i])), 26);
        const char *s = mlo_format(v->m, "all iterations, as %s", l->node->output[l->states + i]);
        mlo_tell(t, mlo_or_empty(s));
    }
}

static void mlo_text_invariants(const mlo_view *v, const mlo_view_loop *l, mlo_sheet *t) {
    size_t constants = 0;
    int said = 0;
    for (size_t i = 0; i < l->n_outside; i++) {
        const mlo_value *x = l->outside[i];
        if (!mlo_view_lives(v, x)) {
            constants++;
            continue;
        }
        mlo_say_cell(t, said++ ? "" : "invariant", MLO_LABEL - 1);
        mlo_say_cell(t, x->name, 30);
        mlo_tell(t, mlo_view_form(v->m, x));
    }
    if (!constants) return;
    mlo_say_cell(t, said ? "" : "invariant", MLO_LABEL - 1);
    const char *s = mlo_format(v->m, "%zu constant%s: ", constants, mlo_plural((int64_t)constants));
    mlo_say(t, mlo_or_empty(s), 24);
    for (size_t i = 0, n = 0; i < l->n_outside; i++)
        if (!mlo_view_lives(v, l->outside[i]))
            mlo_item(t, l->outside[i]->name, MLO_LABEL, ++n == constants);
    mlo_end_line(t);
}

static int mlo_text_params(const mlo_view *v, const mlo_view_loop *l, mlo_sheet *t) {
    mlo_view_params *list;
    size_t n;
    int64_t bytes = 0;
    MLO_TRY(mlo_view_params_of(v, l, &list, &n));
    for (size_t i = 0; i < n; i++) bytes += list[i].bytes;
    mlo_say_cell(t, "per iteration", MLO_LABEL - 1);
    const char *s = mlo_format(v->m, "%zu value%s, %s", l->params, mlo_plural((int64_t)l->params),
        mlo_size_text(v->m, bytes));
    mlo_tell(t, mlo_or_empty(s));
    for (size_t i = 0; i < n; i++) {
        mlo_to_column(t, MLO_LABEL);
        mlo_say_cell(t, list[i].place, 30);
        for (size_t k = 0; k < list[i].n; k++) {
            const char *name = l->body->input[list[i].param[k]]->name;
            s = mlo_format(v->m, "%s %s", name, mlo_view_shape(v->m, mlo_value_of(l->body, name)));
            mlo_item(t, mlo_or_empty(s), MLO_LABEL + 31, k + 1 == list[i].n);
        }
        mlo_end_line(t);
    }
    return mlo_failed(v->m);
}

static void mlo_text_body(const mlo_view *v, const mlo_view_loop *l, mlo_sheet *t) {
    size_t hidden = 0;
    mlo_end_line(t);
    mlo_say_cell(t, "op", 20);
    mlo_say_cell(t, "name", 30);
    mlo_say_cell(t, "where", 28);
    mlo_tell(t, "makes");
    for (size_t i = 0; i < l->body->n_node; i++) {
        const mlo_node *n = l->body->node[i];
        const char *kernel = mlo_view_kernel(n);
        if (!mlo_node_lives(v, l->body, n)) {
            hidden++;
            continue;
        }
        mlo_say_cell(t, mlo_view_op(v->m, n), 20);
        mlo_say_cell(t, kernel ? kernel : mlo_node_name(n), 30);
        mlo_say_cell(t, mlo_view_tail(l->scope, mlo_view_scope(n)), 28);
        mlo_tell(t, n->n_output ? mlo_view_form(v->m, mlo_value_of(l->body, n->output[0])) : "");
    }
    if (hidden)
        mlo_tell(t,
            mlo_format(v->m, "and %zu node%s that prepare%s parameters", hidden,
                mlo_plural((int64_t)hidden), hidden == 1 ? "s" : ""));
}

static int mlo_text_loop(const mlo_view *v, const mlo_view_loop *l, mlo_sheet *t) {
    const char *times = l->iterations < 0
        ? mlo_format(v->m, "%s: %zu nodes", l->name, l->body->n_node)
        : mlo_format(v->m, "%s: %lld iteration%s of %zu nodes", l->name, (long long)l->iterations,
              mlo_plural(l->iterations), l->body->n_node);
    mlo_end_line(t);
    mlo_rule(t, mlo_or_empty(times), mlo_last_level(l->scope));
    t->boxed = 1;
    mlo_text_instances(v, l, t);
    mlo_text_states(v, l, t);
    mlo_text_invariants(v, l, t);
    if (l->params) mlo_text_params(v, l, t);
    mlo_text_body(v, l, t);
    t->boxed = 0;
    mlo_rule(t, "", "");
    return mlo_failed(v->m);
}

static void mlo_text_marks(const mlo_view *v, mlo_sheet *t) {
    if (v->n_marks) {
        mlo_end_line(t);
        mlo_tell(t, "found, not rolled yet");
    }
    for (size_t i = 0; i < v->n_marks; i++) {
        const mlo_view_mark *k = &v->mark[i];
        const char *s = mlo_format(v->m, "%d instances of %zu nodes", k->instances,
            k->instances > 0 ? k->nodes / (size_t)k->instances : k->nodes);
        mlo_say(t, "  ", 2);
        mlo_say_cell(t, k->name, 34);
        mlo_tell(t, mlo_or_empty(s));
    }
}

/* ---- the core ------------------------------------------------------------- */

static void mlo_text_kernel(const mlo_view *v, const mlo_element *e, mlo_sheet *t) {
    mlo *m = v->m;
    const mlo_unit *u = &e->unit;
    int64_t work = mlo_element_work(v->hw, e);
    int64_t bar = v->p.interval > 0 ? (work * 7 + v->p.interval / 2) / v->p.interval : 0;
    const char *sizes = mlo_format(
        m, "%lld -> %lld", (long long)u->in[0].channels, (long long)u->out.channels);
    const char *fold = mlo_format(m, "%d x %d", u->pe, u->simd);
    mlo_say_cell(t, e->name, 12);
    mlo_say_cell(t, mlo_view_what(v, e->node), 31);
    mlo_say_right(t, mlo_or_empty(sizes), 12);
    mlo_say_right(t, mlo_or_empty(fold), 9);
    mlo_say_right(t, u->multipliers ? mlo_thousands(m, u->multipliers) : "-", 6);
    mlo_say_right(t, mlo_thousands(m, u->interval), 9);
    mlo_say_right(t, mlo_share_text(m, (double)work, (double)v->p.interval), 7);
    if (v->sim)
        mlo_say_right(t,
            mlo_share_text(m, (double)v->sim->busy[e - v->hw->element],
                (double)v->sim->frames * v->sim->interval),
            7);
    else
        mlo_say_cell(t, &"#######"[7 - (bar > 7 ? 7 : bar)], 7);
    mlo_say_right(t, mlo_size_text(m, mlo_unit_bytes(v->hw, u)), 10);
    mlo_end_line(t);
}

static void mlo_text_kernels(const mlo_view *v, mlo_sheet *t) {
    mlo *m = v->m;
    const mlo_core *c = v->hw;
    int64_t bytes = mlo_core_beats(c) * c->axi_bits / 8;
    mlo_end_line(t);
    mlo_say_cell(t, "kernel", 12);
    mlo_say_cell(t, "what it is", 31);
    mlo_say_right(t, "channels", 12);
    mlo_say_right(t, "PE x SIMD", 9);
    mlo_say_right(t, "mults", 6);
    mlo_say_right(t, "cyc/token", 9);
    mlo_say_right(t, "busy", 7);
    mlo_say_right(t, v->sim ? "in sim" : "", 7);
    mlo_say_right(t, "parameters", 10);
    mlo_end_line(t);
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel) mlo_text_kernel(v, &c->element[i], t);
    mlo_say_cell(t, "", 12);
    mlo_say_cell(t, "all, per iteration", 31);
    mlo_say_cell(t, "", 12);
    mlo_say_cell(t, "", 9);
    mlo_say_right(t, mlo_thousands(m, mlo_core_multipliers(c)), 6);
    mlo_say_right(t, mlo_thousands(m, mlo_core_interval(c)), 9);
    mlo_say_cell(t, "", 7);
    mlo_say_cell(t, "", 7);
    mlo_say_right(t, mlo_size_text(m, bytes), 10);
    mlo_end_line(t);
}

static void mlo_text_fifos(const mlo_view *v, mlo_sheet *t) {
    const mlo_core *c = v->hw;
    int said = 0;
    for (int k = 0; k < c->n_edge; k++) {
        const mlo_edge *e = &c->edge[k];
        if (!e->fifo || e->to == MLO_OUTSIDE) continue;
        if (!said++) mlo_end_line(t);
        mlo_say_cell(t, said == 1 ? "FIFOs" : "", MLO_LABEL - 1);
        mlo_say_cell(t, mlo_edge_end(c, e->from), 14);
        mlo_say_cell(t, "->", 2);
        mlo_say_cell(t, mlo_edge_end(c, e->to), 14);
        mlo_say_right(t, mlo_thousands(v->m, e->fifo), 7);
        const char *s = mlo_format(
            v->m, "tokens, %s", mlo_size_text(v->m, e->fifo * e->channels * e->bits / 8));
        mlo_tell(t, mlo_or_empty(s));
    }
    if (!said) mlo_end_line(t);
    mlo_say_cell(t, said ? "" : "FIFOs", MLO_LABEL - 1);
    mlo_say_cell(t, "feedback", 32);
    mlo_say_right(t, mlo_thousands(v->m, c->feedback), 7);
    const char *s = mlo_format(
        v->m, "tokens, %s", mlo_size_text(v->m, c->feedback * c->channels * c->bits / 8));
    mlo_tell(t, mlo_or_empty(s));
}

/* What the core takes of an FPGA: of kernels, of what lies between them, of the shell around them. */
static void mlo_text_area_line(mlo *m, const char *name, const mlo_area *a, mlo_sheet *t) {
    mlo_say_cell(t, name, 31);
    mlo_say_right(t, mlo_thousands(m, a->lut), 10);
    mlo_say_right(t, mlo_thousands(m, a->ff), 10);
    mlo_say_right(t, mlo_thousands(m, a->dsp), 8);
    mlo_say_right(t, mlo_bram_text(m, a), 8);
    mlo_end_line(t);
}
static void mlo_text_area(const mlo_view *v, mlo_sheet *t) {
    mlo_end_line(t);
    mlo_say_cell(t, "area of an UltraScale+, estimate", 32);
    mlo_say_right(t, "LUT", 9);
    mlo_say_right(t, "FF", 10);
    mlo_say_right(t, "DSP", 8);
    mlo_say_right(t, "BRAM", 8);
    mlo_end_line(t);
    for (int i = 0; i < v->hw->n_element; i++)
        if (v->hw->element[i].kernel)
            mlo_text_area_line(v->m, v->hw->element[i].name, &v->area.element[i], t);
    mlo_text_area_line(v->m, "streams between them", &v->area.streams, t);
    mlo_text_area_line(v->m, "loop, loader, registers", &v->area.shell, t);
    if (v->hw->around) mlo_text_area_line(v->m, "ids' rows, head, words", &v->area.around, t);
    mlo_text_area_line(v->m, "all", &v->area.all, t);
    if (!v->device) return;
    mlo_say_cell(t, mlo_format(v->m, "of the device, %s", v->device->name), 31);
    for (int k = 0; k < MLO_N_RESOURCES; k++)
        mlo_say_right(t,
            mlo_share_text(
                v->m, (double)mlo_area_takes(&v->area.all, k), (double)mlo_fpga_has(v->device, k)),
            k < 2 ? 10 : 8);
    mlo_end_line(t);
}

static void mlo_text_prediction(const mlo_view *v, mlo_sheet *t) {
    mlo *m = v->m;
    const mlo_core *c = v->hw;
    const char *s = mlo_format(m,
        "%d frame%s of %lld tokens, %lld iterations: %s cycles, %s per frame", c->frames,
        mlo_plural(c->frames), (long long)c->chunk, (long long)c->scan.iterations,
        mlo_thousands(m, v->p.cycles), mlo_thousands(m, v->p.interval));
    mlo_say_cell(t, "prediction", MLO_LABEL - 1);
    mlo_tell(t, mlo_or_empty(s));
    s = mlo_format(m, "%s multiply-accumulates per frame: the multipliers are busy %s of the time;",
        mlo_thousands(m, mlo_core_macs(c)), mlo_view_utilisation(v, (double)v->p.interval));
    mlo_to_column(t, MLO_LABEL);
    mlo_tell(t, mlo_or_empty(s));
    s = mlo_format(m,
        "%s if the slowest kernel never rests, %s in the best legal folding of as many",
        mlo_view_utilisation(v, (double)v->bound), mlo_view_utilisation(v, (double)v->best));
    mlo_to_column(t, MLO_LABEL);
    mlo_tell(t, mlo_or_empty(s));
    s = mlo_format(m, "%s of parameters per iteration over %d bits of AXI, %s beats per frame",
        mlo_size_text(m, mlo_core_layer_beats(c) * c->axi_bits / 8), c->axi_bits,
        mlo_thousands(m, (int64_t)ceil(mlo_core_frame_beats(c))));
    mlo_to_column(t, MLO_LABEL);
    mlo_tell(t, mlo_or_empty(s));
    if (c->slots && !c->given) {
        s = mlo_format(m, "%s: %s cycles at the first position, %s at number %lld",
            v->sequences > 1
                ? mlo_format(m, "a token of each of %lld sequences", (long long)v->sequences)
                : "a token at a time",
            mlo_thousands(m, v->step[0]), mlo_thousands(m, v->step[1]), (long long)v->position);
        mlo_to_column(t, MLO_LABEL);
        mlo_tell(t, mlo_or_empty(s));
    }
    if (mlo_core_resident_beats(c)) {
        s = mlo_format(m, "%s of parameters are read once and stay on chip",
            mlo_size_text(m, mlo_core_stays(c) * c->axi_bits / 8));
        mlo_to_column(t, MLO_LABEL);
        mlo_tell(t, mlo_or_empty(s));
    }
    if (mlo_eq(v->stage, "lower")) {
        mlo_to_column(t, MLO_LABEL);
        mlo_tell(t, "not folded yet: every kernel is taken as 1 x 1");
    }
}

static void mlo_text_simulation(const mlo_view *v, mlo_sheet *t) {
    mlo *m = v->m;
    if (!v->sim) return;
    const char *s = mlo_format(m,
        "%lld frame%s: %s cycles, %s per frame; the multipliers are busy %s of the time",
        (long long)v->sim->frames, mlo_plural(v->sim->frames), mlo_thousands(m, v->sim->cycles),
        mlo_thousands(m, (int64_t)(v->sim->interval + 0.5)),
        mlo_view_utilisation(v, v->sim->interval));
    mlo_say_cell(t, "simulation", MLO_LABEL - 1);
    mlo_tell(t, mlo_or_empty(s));
    s = mlo_format(m, "parameters came in %s of the cycles", mlo_share_text(m, v->sim->channel, 1));
    mlo_to_column(t, MLO_LABEL);
    mlo_tell(t, mlo_or_empty(s));
}

/* ---- an arena --------------------------------------------------------------- */

/* A step in parts. */
static void mlo_text_cut(mlo *m, const cJSON *tile, mlo_sheet *t) {
    static const char *const keys[] = { "bytes", "traffic", "overlapped" };
    mlo_say_right(t, mlo_thousands(m, mlo_cuts_number(tile, "step")), 5);
    mlo_say_cell(t, mlo_cuts_word(tile, "node"), 40);
    mlo_say_right(t, mlo_thousands(m, mlo_cuts_calls(tile)), 6);
    mlo_say_right(t, mlo_thousands(m, mlo_cuts_number(tile, "units")), 8);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        mlo_say_right(t, mlo_thousands(m, mlo_cuts_number(tile, keys[k])), 10);
    mlo_tell(t, mlo_cuts_places(m, tile));
}
static void mlo_text_cuts(mlo *m, const mlo_cuts *c, mlo_sheet *t) {
    mlo_say_right(t, "step", 5);
    mlo_say_cell(t, "node", 40);
    mlo_say_right(t, "parts", 6);
    mlo_say_right(t, "units", 8);
    mlo_say_right(t, "bytes", 10);
    mlo_say_right(t, "copied", 10);
    mlo_say_right(t, "beside", 10);
    mlo_tell(t, "places");
    for (int i = 0; i < c->steps; i++)
        if (c->tile[i] && !mlo_cuts_again(c, i)) mlo_text_cut(m, c->tile[i], t);
}

/* What a build of C has in memory, and how its steps are cut. */
static int mlo_text_arena(const mlo_view *v, mlo_sheet *t) {
    mlo *m = v->m;
    mlo_cuts *c = MLO_NEW(m, mlo_cuts);
    if (!c || mlo_cuts_read(m, c) || !c->plan) return mlo_failed(m);
    const char *s = mlo_format(
        m, "%s bytes", mlo_thousands(m, mlo_cuts_number(c->plan, "arena_bytes")));
    if (mlo_cuts_any(c))
        s = mlo_format(m, "%s of parts, %s of a larger memory; %s copied, %s beside a kernel", s,
            mlo_thousands(m, mlo_cuts_number(c->plan, "memory_bytes")),
            mlo_thousands(m, mlo_cuts_number(c->plan, "traffic_bytes")),
            mlo_thousands(m, mlo_cuts_number(c->plan, "overlapped_bytes")));
    mlo_end_line(t);
    mlo_say_cell(t, "arena", MLO_LABEL - 1);
    mlo_tell(t, mlo_or_empty(s));
    for (const cJSON *k = mlo_cuts_list(c->plan, "blocks"); k; k = k->next) {
        mlo_to_column(t, MLO_LABEL);
        mlo_tell(t, mlo_cuts_word(k, "what"));
    }
    if (mlo_cuts_any(c)) mlo_text_cuts(m, c, t);
    mlo_cuts_free(c);
    return mlo_failed(m);
}

static int mlo_show_text(const mlo_view *v, mlo_text *out) {
    mlo_sheet t = { out, { v->m, NULL, 0, 0 }, 0, 0 };
    mlo_text_header(v, &t);
    mlo_text_marks(v, &t);
    for (size_t i = 0; i < v->n_loops && !v->m->error.code; i++) mlo_text_loop(v, &v->loop[i], &t);
    if (!v->m->error.code) mlo_text_outside(v, &t);
    if (!v->m->error.code) mlo_text_arena(v, &t);
    if (v->hw && !v->m->error.code) {
        mlo_text_kernels(v, &t);
        mlo_text_fifos(v, &t);
        mlo_text_area(v, &t);
        mlo_end_line(&t);
        mlo_text_prediction(v, &t);
        mlo_text_simulation(v, &t);
    }
    mlo_text_free(&t.line);
    return mlo_failed(v->m);
}

/* ---- Graphviz ------------------------------------------------------------- */

/* A quoted DOT string. */
static void mlo_dot_words(mlo_text *t, const char *s) {
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') mlo_puts(t, "\\");
        if ((unsigned char)*s < 32 || *s == 127)
            mlo_puts(t, "?");
        else
            mlo_put(t, s, 1);
    }
}

static const char *mlo_dot_fill(const mlo_vertex *x) {
    static const char *const looks[][2] = { { "io", "#e8edf3" }, { "mac", "#cfe3fb" },
        { "table", "#c4e8e4" }, { "attention", "#ffe0c2" }, { "norm", "#e6dcfa" },
        { "sum", "#d9f0d3" }, { "move", "#eeeeee" }, { "loop", "#fff1b8" },
        { "other", "#f6f6f6" } };
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (mlo_eq(looks[i][0], x->look)) return looks[i][1];
    return "#ffffff";
}

/* The names of vertices: g<which figure>v<which vertex>. A loop stands for itself by its body's
 * vertices. */
typedef struct {
    const mlo_view *v;
    mlo_text *t;
    mlo_figure *body;
    mlo_figure whole;
} mlo_dot;

static size_t mlo_dot_loop(const mlo_dot *d, const mlo_vertex *x) {
    for (size_t i = 0; x->kind == MLO_FIGURE_NODE && i < d->v->n_loops; i++)
        if (d->v->loop[i].node == x->node) return i + 1;
    return 0;
}

/* The vertex of a body that stands for a value going in (or coming out); its first vertex when
 * there is none such. */
static int mlo_dot_inner(
    const mlo_figure *s, mlo_figure_kind kind, int port, const mlo_value *value) {
    for (size_t i = 0; i < s->n_vertex; i++) {
        const mlo_vertex *x = &s->vertex[i];
        if (kind == MLO_FIGURE_OUTSIDE ? x->kind == kind && x->value == value
                                       : x->kind == kind && x->port == port)
            return (int)i;
    }
    return 0;
}

static void mlo_dot_end(const mlo_dot *d, const mlo_figure *s, size_t which, int vertex, int slot,
    const mlo_value *value, int is_from, char *to, size_t size) {
    const mlo_vertex *x = &s->vertex[vertex];
    size_t loop = mlo_dot_loop(d, x);
    if (loop) {
        const mlo_view_loop *l = &d->v->loop[loop - 1];
        mlo_figure_kind kind = is_from        ? MLO_FIGURE_OUTPUT
            : (size_t)slot < l->node->n_input ? MLO_FIGURE_INPUT
                                              : MLO_FIGURE_OUTSIDE;
        snprintf(to, size, "g%zuv%d", loop, mlo_dot_inner(&d->body[loop - 1], kind, slot, value));
    } else
        snprintf(to, size, "g%zuv%d", which, vertex);
}

static void mlo_dot_vertices(mlo_dot *d, const mlo_figure *s, size_t which);

static void mlo_dot_cluster(mlo_dot *d, size_t loop) {
    const mlo_view_loop *l = &d->v->loop[loop - 1];
    mlo_printf(d->t,
        "subgraph cluster_%zu {\nstyle=\"rounded,filled\"; color=\"#c9a227\"; "
        "fillcolor=\"#fffdf3\"; label=\"",
        loop);
    mlo_dot_words(d->t, l->name);
    if (l->iterations >= 0) mlo_printf(d->t, ": %lld iterations", (long long)l->iterations);
    mlo_printf(d->t, " of %zu nodes, %zu per-iteration values\";\n", l->body->n_node, l->params);
    mlo_dot_vertices(d, &d->body[loop - 1], loop);
    mlo_puts(d->t, "}\n");
}

static void mlo_dot_vertices(mlo_dot *d, const mlo_figure *s, size_t which) {
    for (size_t i = 0; i < s->n_vertex; i++) {
        const mlo_vertex *x = &s->vertex[i];
        size_t loop = mlo_dot_loop(d, x);
        if (loop) {
            mlo_dot_cluster(d, loop);
            continue;
        }
        mlo_printf(d->t, "g%zuv%zu [label=\"", which, i);
        for (int k = 0; k < 3; k++)
            if (*x->line[k]) {
                if (k) mlo_puts(d->t, "\\n");
                mlo_dot_words(d->t, x->line[k]);
            }
        mlo_printf(d->t, "\", fillcolor=\"%s\"%s];\n", mlo_dot_fill(x),
            x->kind == MLO_FIGURE_NODE ? "" : ", shape=ellipse");
    }
}

static void mlo_dot_arrows(mlo_dot *d, const mlo_figure *s, size_t which) {
    char from[64], to[64];
    for (size_t i = 0; i < s->n_arrow; i++) {
        const mlo_arrow *a = &s->arrow[i];
        mlo_dot_end(d, s, which, a->from, a->from_slot, a->value, 1, from, sizeof from);
        mlo_dot_end(d, s, which, a->to, a->to_slot, a->value, 0, to, sizeof to);
        mlo_printf(d->t, "%s -> %s [label=\"", from, to);
        mlo_dot_words(d->t, mlo_view_form(d->v->m, a->value));
        if (a->fifo) mlo_printf(d->t, "\\nFIFO %lld", (long long)a->fifo);
        mlo_puts(d->t, "\"];\n");
    }
    for (size_t i = 0; s->loop && i < s->loop->states; i++)
        mlo_printf(d->t,
            "g%zuv%d -> g%zuv%d [style=dashed, constraint=false, label=\"next iteration\"];\n",
            which, mlo_dot_inner(s, MLO_FIGURE_OUTPUT, (int)i, NULL), which,
            mlo_dot_inner(s, MLO_FIGURE_INPUT, (int)i, NULL));
}

static int mlo_show_dot(const mlo_view *v, mlo_text *t) {
    mlo_dot d;
    memset(&d, 0, sizeof d);
    d.v = v;
    d.t = t;
    d.body = MLO_NEW_N(v->m, mlo_figure, v->n_loops + 1);
    if (!d.body || mlo_figure_make(v, NULL, &d.whole)) return mlo_failed(v->m);
    for (size_t i = 0; i < v->n_loops; i++) MLO_TRY(mlo_figure_make(v, &v->loop[i], &d.body[i]));
    mlo_puts(t,
        "digraph mlo {\ngraph [fontname=\"Helvetica\", fontsize=11, labeljust=l];\nnode "
        "[fontname=\"Helvetica\", fontsize=10, shape=box, style=\"rounded,filled\", "
        "color=\"#667788\"];\n"
        "edge [fontname=\"Helvetica\", fontsize=8, color=\"#667788\"];\n");
    mlo_dot_vertices(&d, &d.whole, 0);
    mlo_dot_arrows(&d, &d.whole, 0);
    for (size_t i = 0; i < v->n_loops; i++) mlo_dot_arrows(&d, &d.body[i], i + 1);
    mlo_puts(t, "}\n");
    return mlo_failed(v->m);
}
