/* show, html: one page about a model; no network, no script.
 *
 * in:  an mlo_view.     out: HTML: where in the pipeline it is, cards of numbers, each loop with its instances, its body drawn and its
 *      per-iteration parameters; once lowered, the kernels with their cycles per token and the schedule as a chart of bars.
 * invariant: every name goes through mlo_html_words; nothing in a model can become markup.
 * example: mlo show --html model.json -o model.html
 * cost: the pictures (show_picture.c); at most MLO_BARS_MOST bars.
 */
enum { MLO_BARS_MOST = 3000, MLO_CHART = 860, MLO_CHART_LEFT = 108, MLO_CHART_ROW = 20 };

static const char *const mlo_html_style[] = {
    "<style>:root{--ink:#1c2733;--soft:#5c6b7a;--line:#d9e0e7;--page:#f4f6f8;--card:#fff;--wire:#7a8a99;--accent:#1f6feb;--hot:#c2410c;--io:#e8edf3;--mac:#cfe3fb;--table:#c4e8e4;--attention:#ffe0c2;--norm:#e6dcfa;--sum:#daf0d4;--move:#eef0f2;--loop:#fff0b3;--other:#f6f6f6}",
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa8b5;--line:#30393f;--page:#11161b;--card:#1a2127;--wire:#76848f;--accent:#6cb0ff;--hot:#ff9a62;--io:#2b353e;--mac:#1d4164;--table:#1b4a47;--attention:#5f3a1c;--norm:#3c3160;--sum:#264a2a;--move:#2a3036;--loop:#574613;--other:#262c31}}",
    "*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:14px/1.45 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}main{max-width:1320px;margin:0 auto;padding:26px 22px 60px}",
    "h1{font-size:24px;margin:0 0 2px}h1.after{margin:28px 0 10px}h2{font-size:17px;margin:0 0 10px}h3{font-size:12px;margin:18px 0 6px;color:var(--soft);font-weight:600;letter-spacing:.05em;text-transform:uppercase}",
    "section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;margin-top:18px}.quiet,.sub{color:var(--soft)}code,.n{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:12px}",
    ".steps{display:flex;flex-wrap:wrap;gap:6px;margin:16px 0 0;padding:0;list-style:none}.steps li{padding:4px 14px;border-radius:99px;border:1px solid var(--line);background:var(--card);color:var(--soft)}.steps .done{border-color:var(--accent);color:var(--accent)}.steps .now{background:var(--accent);border-color:var(--accent);color:var(--card);font-weight:600}",
    ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px;margin-top:18px}.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}.card b{display:block;font-size:21px;line-height:1.25;white-space:nowrap}.card span{color:var(--soft);font-size:12px}",
    "table{border-collapse:collapse;width:100%;font-size:13px}th{text-align:left;color:var(--soft);font-weight:500;font-size:12px}th,td{padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}td.r,th.r{text-align:right;white-space:nowrap}tr:last-child td{border-bottom:0}tfoot td{font-weight:600}td{overflow-wrap:break-word}td.n{overflow-wrap:anywhere}",
    ".two{display:flex;flex-wrap:wrap;gap:28px}.two>.wide{flex:2.2 1 470px;min-width:0}.two>.side{flex:1 1 330px;min-width:0}.draw{overflow:auto;border:1px solid var(--line);border-radius:8px;padding:6px}.tall{max-height:1500px}.chips{display:flex;flex-wrap:wrap;gap:5px}.chips span{border:1px solid var(--line);border-radius:6px;padding:2px 8px;border-left-width:6px}",
    ".bar{width:26%;min-width:130px}.bar i{display:block;height:11px;margin-top:4px;border-radius:3px;background:var(--accent);min-width:2px}",
    "svg text{font:11px system-ui,'DejaVu Sans',sans-serif;fill:var(--ink)}.picture{display:block;margin:0 auto;max-width:100%;height:auto}.picture path{fill:none;stroke:var(--wire);stroke-width:1.4}.picture path.back{stroke:var(--accent);stroke-dasharray:5 4}.v text{text-anchor:middle}.v rect{stroke:var(--wire);stroke-width:.8;fill:var(--other)}text.l0{font-weight:600;font-size:12px}text.l1,text.l2,text.shape,text.axis{fill:var(--soft);font-size:10px}text.shape{paint-order:stroke;stroke:var(--card);stroke-width:3px}text.fifo{fill:var(--hot);font-size:10px;font-weight:600}text.back{fill:var(--accent);font-size:10px}",
    ".io rect{fill:var(--io)}.mac rect{fill:var(--mac)}.table rect{fill:var(--table)}.attention rect{fill:var(--attention)}.norm rect{fill:var(--norm)}.sum rect{fill:var(--sum)}.move rect{fill:var(--move)}.loop rect{fill:var(--loop)}",
    "svg .i0{fill:#2f7ed8}svg .i1{fill:#e0742b}svg .i2{fill:#3a9f5b}svg .i3{fill:#8d5fd3}svg .i4{fill:#d4a017}svg .i5{fill:#d0457c}svg .i6{fill:#2aa6a6}svg .i7{fill:#7d6b5d}.chips .i0{border-left-color:#2f7ed8}.chips .i1{border-left-color:#e0742b}.chips .i2{border-left-color:#3a9f5b}.chips .i3{border-left-color:#8d5fd3}.chips .i4{border-left-color:#d4a017}.chips .i5{border-left-color:#d0457c}.chips .i6{border-left-color:#2aa6a6}.chips .i7{border-left-color:#7d6b5d}",
    ".chart line{stroke:var(--line)}.chart .load{opacity:.35}footer{margin-top:22px;color:var(--soft);font-size:12px}</style>" };

/* ---- pieces -------------------------------------------------------------------------------------------------------------------------------- */

static void mlo_html_escaped(mlo_text *t, const char *before, const char *s, const char *after) { mlo_puts(t, before); mlo_html_words(t, s, 2000); mlo_puts(t, after); }

static void mlo_html_card(mlo_text *t, const char *value, const char *what) { mlo_html_escaped(t, "<div class=card><b>", value ? value : "", "</b>"); mlo_html_escaped(t, "<span>", what ? what : "", "</span></div>"); }

/* Opens or closes a table row of cells: a NULL-terminated list; a leading '>' puts a cell to the right. */
static void mlo_html_cells(mlo_text *t, const char *tag, const char *const *cell) {
    mlo_puts(t, "<tr>");
    for (; *cell; cell++) {
        int right = **cell == '>';
        mlo_printf(t, "<%s%s>", tag, right ? " class=r" : "");
        mlo_html_words(t, *cell + right, 400);
        mlo_printf(t, "</%s>", tag);
    }
    mlo_puts(t, "</tr>");
}
static const char *mlo_right(mlo *m, const char *s) { const char *r = mlo_format(m, ">%s", s); return r ? r : ""; }

static void mlo_html_steps(const mlo_view *v, mlo_text *t) {
    static const char *const steps[] = { "read", "scope", "extract", "roll", "quantize", "lower", "fold", "emit" };
    size_t at = 0, n = sizeof steps / sizeof *steps;
    for (size_t i = 0; i < n; i++) if (mlo_eq(steps[i], v->stage)) at = i;
    mlo_puts(t, "<ol class=steps>");
    for (size_t i = 0; i < n; i++) mlo_printf(t, "<li%s>%s</li>", i < at ? " class=done" : i == at ? " class=now" : "", steps[i]);
    mlo_puts(t, "</ol>");
}

static void mlo_html_header(const mlo_view *v, mlo_text *t) {
    const mlo_model *model = v->m->model;
    const char *name = v->g->name && *v->g->name ? v->g->name : "model";
    mlo_html_escaped(t, "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width,initial-scale=1'><title>mlo: ", name, "</title>");
    for (size_t i = 0; i < sizeof mlo_html_style / sizeof *mlo_html_style; i++) mlo_puts(t, mlo_html_style[i]);
    mlo_puts(t, "</head><body><svg width=0 height=0 style='position:absolute'><defs><marker id=tip viewBox='0 0 8 8' refX=7 refY=4 markerWidth=7 markerHeight=7 orient=auto><path d='M0,0L8,4L0,8z' fill='#7a8a99'/></marker></defs></svg><main>");
    mlo_html_escaped(t, "<h1>", name, "</h1><div class=sub>");
    if (model->producer_name && *model->producer_name) mlo_html_escaped(t, "made by ", model->producer_name, model->producer_version ? " " : "; ");
    if (model->producer_name && *model->producer_name && model->producer_version) mlo_html_escaped(t, "", model->producer_version, "; ");
    for (size_t i = 0; i < model->n_opset; i++) {
        mlo_html_escaped(t, i ? ", " : "opset ", model->opset[i].domain && *model->opset[i].domain ? model->opset[i].domain : "ai.onnx", "");
        mlo_printf(t, " %lld", (long long)model->opset[i].version);
    }
    mlo_puts(t, "</div>");
    mlo_html_steps(v, t);
}

static void mlo_html_cards(const mlo_view *v, mlo_text *t) {
    mlo *m = v->m;
    mlo_puts(t, "<div class=cards>");
    for (size_t i = 0; i < v->n_loops && i < 4; i++) {
        const mlo_view_loop *l = &v->loop[i];
        mlo_html_card(t, l->iterations < 0 ? mlo_format(m, "%zu", l->body->n_node) : mlo_format(m, "%lld \303\227 %zu", (long long)l->iterations, l->body->n_node), mlo_format(m, "iterations \303\227 nodes: %s", l->name));
    }
    for (size_t i = 0; i < v->n_marks && i < 4; i++) mlo_html_card(t, mlo_format(m, "%d \303\227 %zu", v->mark[i].instances, v->mark[i].instances > 0 ? v->mark[i].nodes / (size_t)v->mark[i].instances : 0), mlo_format(m, "instances \303\227 nodes: %s", v->mark[i].name));
    mlo_html_card(t, mlo_thousands(m, (int64_t)v->g->n_node), v->n_loops ? "nodes, a loop being one" : "nodes");
    mlo_html_card(t, mlo_thousands(m, v->parameters), mlo_format(m, "parameters, %s", mlo_size_text(m, v->bytes)));
    if (v->inferred) mlo_html_card(t, mlo_thousands(m, (int64_t)v->inferred), "scopes inferred");
    if (v->hw) {
        mlo_html_card(t, mlo_thousands(m, mlo_core_multipliers(v->hw)), mlo_format(m, "multipliers in %d kernels", mlo_core_kernels(v->hw)));
        mlo_html_card(t, mlo_thousands(m, v->p.interval), mlo_format(m, "cycles per frame of %lld tokens", (long long)v->hw->tokens));
        mlo_html_card(t, mlo_format(m, "%lld %%", (long long)mlo_view_utilisation(v)), "of multiplier cycles do useful work");
        mlo_html_card(t, mlo_size_text(m, mlo_core_beats(v->hw) * v->hw->axi_bits / 8), "parameters loaded per iteration");
    }
    mlo_puts(t, "</div>");
}

static void mlo_html_values(const mlo_view *v, mlo_text *t) {
    mlo_puts(t, "<section><h2>Inputs and outputs</h2><table>");
    for (size_t i = 0; i < v->g->n_input + v->g->n_output; i++) {
        int in = i < v->g->n_input;
        const mlo_value *x = mlo_value_of(v->g, in ? v->g->input[i]->name : v->g->output[i - v->g->n_input]->name);
        if (!x || (x->tensor && x->is_input)) continue;
        const char *const cells[] = { in ? "input" : "output", x->name, mlo_view_form(v->m, x), NULL };
        mlo_html_cells(t, "td", cells);
    }
    mlo_puts(t, "</table></section>");
}

/* ---- a loop --------------------------------------------------------------------------------------------------------------------------------- */

static void mlo_html_instances(const mlo_view *v, const mlo_view_loop *l, mlo_text *t) {
    if (!*l->instances) return;
    mlo_puts(t, "<h3>Instances</h3><div class=chips>");
    for (int64_t i = 0; i < l->iterations && i < 200; i++) {
        mlo_printf(t, "<span class='n i%d'>", (int)(i % 8));
        mlo_html_words(t, mlo_last_level(mlo_view_instance_scope(v->m, l, i)), 60);
        mlo_puts(t, "</span>");
    }
    if (l->iterations > 200) mlo_printf(t, "<span>and %lld more</span>", (long long)l->iterations - 200);
    mlo_puts(t, "</div>");
}

static void mlo_html_edge(const mlo_view *v, const mlo_view_loop *l, mlo_text *t) {
    mlo *m = v->m;
    size_t constants = 0;
    mlo_puts(t, "<h3>At the loop's edge</h3><table>");
    for (size_t i = 0; i < l->states; i++) {
        const char *const cells[] = { "carried", l->body->input[i]->name, mlo_view_form(m, mlo_value_of(l->body, l->body->input[i]->name)), NULL };
        mlo_html_cells(t, "td", cells);
    }
    for (size_t i = 0; i < l->n_outside; i++) {
        if (!mlo_view_lives(v, l->outside[i])) { constants++; continue; }
        const char *const cells[] = { "invariant", l->outside[i]->name, mlo_view_form(m, l->outside[i]), NULL };
        mlo_html_cells(t, "td", cells);
    }
    for (size_t i = 0; i < l->taps; i++) {
        const char *const cells[] = { "tap", l->node->output[l->states + i], mlo_view_form(m, mlo_value_of(l->outer, l->node->output[l->states + i])), NULL };
        mlo_html_cells(t, "td", cells);
    }
    if (constants) mlo_printf(t, "<tr><td>invariant<td>%zu constant%s<td>", constants, mlo_plural((int64_t)constants));
    mlo_puts(t, "</table>");
}

static int mlo_html_params(const mlo_view *v, const mlo_view_loop *l, mlo_text *t) {
    mlo_view_params *list; size_t n; int64_t bytes = 0;
    MLO_TRY(mlo_view_params_of(v, l, &list, &n));
    for (size_t i = 0; i < n; i++) bytes += list[i].bytes;
    mlo_printf(t, "<h3>Per iteration: %zu value%s, %s</h3><table>", l->params, mlo_plural((int64_t)l->params), mlo_size_text(v->m, bytes));
    for (size_t i = 0; i < n; i++) {
        mlo_puts(t, "<tr><td>"); mlo_html_words(t, list[i].place, 40); mlo_puts(t, "<td class=n>");
        for (size_t k = 0; k < list[i].n; k++) {
            const char *name = l->body->input[list[i].param[k]]->name;
            mlo_html_escaped(t, k ? "<br><span title=\"" : "<span title=\"", name, "\">");
            mlo_html_words(t, name, 44);
            mlo_puts(t, "</span> ");
            mlo_html_escaped(t, "<span class=quiet>", mlo_view_shape(v->m, mlo_value_of(l->body, name)), "</span>");
        }
        mlo_html_escaped(t, "<td class=r>", mlo_size_text(v->m, list[i].bytes), "");
    }
    mlo_puts(t, "</table>");
    return (int)v->m->error.code;
}

/* A drawing under a heading, as wide as it needs to be read; what stands beside it goes below when there is no room. */
static int mlo_html_drawing(const mlo_sketch *s, const char *heading, mlo_text *t) {
    mlo_picture p;
    MLO_TRY(mlo_picture_make(s, &p));
    mlo_printf(t, "<div class=wide style='min-width:min(100%%,%lldpx)'><h3>%s</h3><div class='draw%s'>", (long long)p.width * 8 / 10, heading, p.height > 5000 ? " tall" : "");
    mlo_picture_svg(&p, t);
    mlo_puts(t, "</div>");
    if (s->hidden) mlo_printf(t, "<p class=quiet>Not drawn: %zu node%s that only prepare%s parameters.</p>", s->hidden, mlo_plural((int64_t)s->hidden), s->hidden == 1 ? "s" : "");
    if (!s->loop && s->v->n_marks) mlo_puts(t, "<p class=quiet>The colour at a node's left edge says which instance of a loop it belongs to.</p>");
    mlo_puts(t, "</div>");
    return (int)s->v->m->error.code;
}

static int mlo_html_loop(const mlo_view *v, const mlo_view_loop *l, mlo_text *t) {
    mlo_sketch s;
    MLO_TRY(mlo_sketch_make(v, l, &s));
    mlo_html_escaped(t, "<section><h2>", l->name, "");
    if (l->iterations >= 0) mlo_printf(t, ": %lld iteration%s", (long long)l->iterations, mlo_plural(l->iterations));
    mlo_printf(t, " of %zu nodes</h2>", l->body->n_node);
    if (*l->scope) mlo_html_escaped(t, "<div class=sub>drawn as <code>", mlo_last_level(l->scope), "</code>, the first instance</div>");
    mlo_puts(t, "<div class=two>");
    MLO_TRY(mlo_html_drawing(&s, "The body", t));
    mlo_puts(t, "<div class=side>");
    mlo_html_instances(v, l, t);
    mlo_html_edge(v, l, t);
    if (l->params) MLO_TRY(mlo_html_params(v, l, t));
    mlo_puts(t, "</div></div></section>");
    return (int)v->m->error.code;
}

/* The model around the loops, drawn; and counted by scope. */
static int mlo_html_whole(const mlo_view *v, mlo_text *t) {
    mlo_view_groups groups; mlo_sketch s;
    MLO_TRY(mlo_view_grouped(v, &groups));
    MLO_TRY(mlo_sketch_make(v, NULL, &s));
    mlo_printf(t, "<section><h2>%s</h2><div class=two>", v->n_loops ? "Around the loop" : "The whole model");
    MLO_TRY(mlo_html_drawing(&s, "Graph", t));
    mlo_puts(t, "<div class=side><h3>Nodes by scope</h3><table>");
    for (size_t i = 0; i < groups.n; i++) {
        const mlo_view_group *g = &groups.group[i];
        mlo_html_escaped(t, "<tr><td>", mlo_last_level(g->scope), "<td class=quiet>");
        for (size_t k = 0; k < g->n_ops; k++) { if (g->count[k] > 1) mlo_printf(t, "%zu ", g->count[k]); mlo_html_escaped(t, "", g->op[k], k + 1 < g->n_ops ? ", " : ""); }
        mlo_printf(t, "<td class=r>%zu", g->nodes);
    }
    mlo_puts(t, "</table></div></div></section>");
    return (int)v->m->error.code;
}

/* ---- the core ------------------------------------------------------------------------------------------------------------------------------- */

static void mlo_html_kernel(const mlo_view *v, const mlo_element *e, mlo_text *t) {
    mlo *m = v->m;
    const mlo_unit *u = &e->unit;
    int64_t percent = u->interval * 100 / mlo_core_interval(v->hw);
    const char *sizes = mlo_format(m, "%lld \342\206\222 %lld", (long long)u->in[0].channels, (long long)u->out.channels), *fold = mlo_format(m, ">%d \303\227 %d", u->pe, u->simd);
    const char *const cells[] = { e->name, mlo_view_what(v, e->node), sizes ? sizes : "", fold ? fold : "", mlo_right(m, u->multipliers ? mlo_thousands(m, u->multipliers) : "\342\200\223"),
        mlo_right(m, mlo_size_text(m, mlo_unit_bytes(v->hw, u))), mlo_right(m, mlo_thousands(m, u->interval)), NULL };
    mlo_html_cells(t, "td", cells);
    t->n -= strlen("</tr>");                                /* one cell more: the bar */
    mlo_printf(t, "<td class=bar title='%lld %% of the busiest'><i style='width:%lld%%'></i></td></tr>", (long long)percent, (long long)percent);
}

static void mlo_html_fifos(const mlo_view *v, mlo_text *t) {
    mlo *m = v->m;
    const mlo_hw *c = v->hw;
    mlo_puts(t, "<h3>FIFOs</h3><table>");
    for (int k = 0; k < c->n_edge; k++) if (c->edge[k].fifo && c->edge[k].to != MLO_OUTSIDE) {
        const mlo_edge *e = &c->edge[k];
        const char *ends = mlo_format(m, "%s \342\206\222 %s", mlo_edge_end(c, e->from), mlo_edge_end(c, e->to)), *depth = mlo_format(m, ">%lld tokens", (long long)e->fifo);
        const char *const cells[] = { ends ? ends : "", depth ? depth : "", mlo_right(m, mlo_size_text(m, e->fifo * e->channels * e->bits / 8)), NULL };
        mlo_html_cells(t, "td", cells);
    }
    const char *depth = mlo_format(m, ">%lld tokens", (long long)c->feedback);
    const char *const cells[] = { "feedback", depth ? depth : "", mlo_right(m, mlo_size_text(m, c->feedback * c->channels * c->bits / 8)), NULL };
    mlo_html_cells(t, "td", cells);
    mlo_puts(t, "</table>");
}

static void mlo_html_kernels(const mlo_view *v, mlo_text *t) {
    static const char *const heads[] = { "Kernel", "What it is", "Channels", ">PE \303\227 SIMD", ">Multipliers", ">Parameters", ">Cycles/token", "", NULL };
    mlo *m = v->m;
    const mlo_hw *c = v->hw;
    const char *const feet[] = { "", "all, per iteration", "", "", mlo_right(m, mlo_thousands(m, mlo_core_multipliers(c))), mlo_right(m, mlo_size_text(m, mlo_core_beats(c) * c->axi_bits / 8)), mlo_right(m, mlo_thousands(m, mlo_core_interval(c))), "", NULL };
    mlo_puts(t, mlo_eq(v->stage, "lower") ? "<section><h2>Kernels</h2><p class=quiet>Not folded yet: every kernel is taken as 1 \303\227 1.</p><table><thead>" : "<section><h2>Folding</h2><table><thead>");
    mlo_html_cells(t, "th", heads);
    mlo_puts(t, "</thead><tbody>");
    for (int i = 0; i < c->n_element; i++) if (c->element[i].kernel) mlo_html_kernel(v, &c->element[i], t);
    mlo_puts(t, "</tbody><tfoot>");
    mlo_html_cells(t, "td", feet);
    mlo_puts(t, "</tfoot></table>");
    mlo_html_fifos(v, t);
    mlo_puts(t, "</section>");
}

/* ---- the schedule ----------------------------------------------------------------------------------------------------------------------------- */

/* What the chart needs of a prediction: from when to when each kernel works in each pass. The walk is mlo_predict's, for one group of frames. */
typedef struct { const mlo_view *v; mlo_text *t; int64_t iterations, end; int *row; } mlo_chart;

static int64_t mlo_chart_x(const mlo_chart *h, double at) { return MLO_CHART_LEFT + (int64_t)(at * MLO_CHART / (double)(h->end ? h->end : 1)); }

static void mlo_chart_bar(const mlo_chart *h, const mlo_schedule *s, int k, int64_t iteration, int64_t frame) {
    const mlo_element *e = &h->v->hw->element[k];
    const double *out = mlo_schedule_row(s, k);
    double busy = (double)e->unit.interval, begin = out[0] - (double)e->unit.latency - busy, end = out[h->v->hw->tokens - 1];
    int64_t x = mlo_chart_x(h, begin < 0 ? 0 : begin), w = mlo_chart_x(h, end) - x;
    mlo_printf(h->t, "<rect class=i%d x=%lld y=%d width=%lld height=%d%s><title>%s, iteration %lld", (int)(iteration % 8), (long long)x, 8 + h->row[k] * MLO_CHART_ROW, (long long)(w > 1 ? w - 1 : 1), MLO_CHART_ROW - 5, frame % 2 ? " opacity=.6" : "", e->name, (long long)iteration);
    if (h->v->hw->frames > 1) mlo_printf(h->t, ", frame %lld", (long long)frame);
    mlo_printf(h->t, ": cycles %lld to %lld</title></rect>", (long long)(begin < 0 ? 0 : begin), (long long)end);
}

static void mlo_chart_walk(mlo_chart *h, mlo_schedule *s) {
    const mlo_hw *c = h->v->hw;
    double *input = s->out + c->n_element * c->tokens, beats = (double)(c->channels / c->lanes), clock = 0;
    const double *end = mlo_schedule_row(s, c->edge[c->n_edge - 1].from);
    for (int64_t i = 0; i < h->iterations; i++) {
        mlo_schedule_load(s, i);
        for (int64_t f = 0; f < c->frames; f++) {
            for (int64_t t = 0; t < c->tokens; t++) clock = input[t] = mlo_most(clock + beats, i ? s->kept[f * c->tokens + t] + 4 : 0);
            for (int k = 0; k < c->n_element; k++) mlo_schedule_element(s, k, f == 0);
            memcpy(s->kept + f * c->tokens, end, (size_t)c->tokens * sizeof *end);
            for (int k = 0; k < c->n_element; k++) if (c->element[k].kernel && h->t) mlo_chart_bar(h, s, k, i, f);
            if (!h->t) h->end = (int64_t)end[c->tokens - 1] + 4;
        }
    }
}

/* Twice: to learn when it ends, and to draw. */
static int mlo_chart_run(mlo_chart *h) {
    mlo *m = h->v->m;
    const mlo_hw *c = h->v->hw;
    size_t n = (size_t)c->n_element, rows = (n + 1 + (size_t)c->frames) * (size_t)c->tokens + 3 * n;
    mlo_schedule s = { c, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, 60 };
    if (!(s.out = (double *)mlo_scratch(m, rows, sizeof *s.out))) return (int)m->error.code;
    for (size_t i = 0; i < rows; i++) s.out[i] = 0;
    s.kept = s.out + (n + 1) * (size_t)c->tokens; s.last = s.kept + (size_t)c->frames * (size_t)c->tokens; s.begun = s.last + n; s.ready = s.begun + n;
    mlo_chart_walk(h, &s);
    mlo_scratch_free(m, s.out);
    return 0;
}

static int mlo_html_schedule(const mlo_view *v, mlo_text *t) {
    mlo *m = v->m;
    const mlo_hw *c = v->hw;
    int rows = 0, height;
    mlo_chart h = { v, NULL, c->scan.iterations, 0, MLO_NEW_N(m, int, (size_t)c->n_element + 1) };
    if (!h.row) return (int)m->error.code;
    for (int i = 0; i < c->n_element; i++) if (c->element[i].kernel) h.row[i] = rows++;
    if (h.iterations * c->frames * rows > MLO_BARS_MOST) h.iterations = MLO_BARS_MOST / (c->frames * rows) > 1 ? MLO_BARS_MOST / (c->frames * rows) : 1;
    MLO_TRY(mlo_chart_run(&h));
    height = 8 + rows * MLO_CHART_ROW;
    mlo_printf(t, "<section><h2>Predicted schedule</h2><p class=sub>%d frame%s of %lld tokens through %lld iterations: <b>%s cycles</b>, %s per frame", c->frames, mlo_plural(c->frames), (long long)c->tokens, (long long)c->scan.iterations, mlo_thousands(m, v->p.cycles), mlo_thousands(m, v->p.interval));
    if (h.iterations < c->scan.iterations) mlo_printf(t, "; the first %lld iterations drawn", (long long)h.iterations);
    mlo_printf(t, ". A bar is one iteration of one kernel; a frame goes from left to right, and down.</p><svg class=chart data-end=%lld viewBox='0 0 %d %d' width='100%%'>", (long long)h.end, MLO_CHART_LEFT + MLO_CHART + 40, height + 22);
    for (int i = 0; i < c->n_element; i++) if (c->element[i].kernel) {
        mlo_printf(t, "<text x=0 y=%d>", 8 + h.row[i] * MLO_CHART_ROW + 12); mlo_html_words(t, c->element[i].name, 18); mlo_puts(t, "</text>");
    }
    for (int i = 0; i <= 4; i++) {
        int64_t x = MLO_CHART_LEFT + (int64_t)MLO_CHART * i / 4;
        mlo_printf(t, "<line x1=%lld y1=4 x2=%lld y2=%d /><text class=axis text-anchor=middle x=%lld y=%d>%s</text>", (long long)x, (long long)x, height, (long long)x, height + 15, mlo_thousands(m, h.end * i / 4));
    }
    h.t = t;
    MLO_TRY(mlo_chart_run(&h));
    mlo_puts(t, "</svg></section>");
    return (int)m->error.code;
}

/* What roll makes of the model above: the loops, and what is left around them. */
static int mlo_html_after(const mlo_view *v, mlo_text *t) {
    mlo_puts(t, "<h1 class=after>Rolled</h1>");
    mlo_html_cards(v, t);
    for (size_t i = 0; i < v->n_loops; i++) MLO_TRY(mlo_html_loop(v, &v->loop[i], t));
    return mlo_html_whole(v, t);
}

static int mlo_show_html(const mlo_view *v, mlo_text *t) {
    mlo_html_header(v, t);
    mlo_html_cards(v, t);
    if (v->hw) { mlo_html_kernels(v, t); MLO_TRY(mlo_html_schedule(v, t)); }
    for (size_t i = 0; i < v->n_loops; i++) MLO_TRY(mlo_html_loop(v, &v->loop[i], t));
    MLO_TRY(mlo_html_whole(v, t));
    if (v->after) MLO_TRY(mlo_html_after(v->after, t));
    mlo_html_values(v, t);
    mlo_printf(t, "<footer>mlo %s</footer></main></body></html>\n", MLO_VERSION);
    return (int)v->m->error.code;
}
