/* show, html: one page about a model; no network.
 *
 * in:  an mlo_view.
 * out: HTML: where in the pipeline the model is, cards of numbers, each loop with its instances,
 *     its body drawn and its per-iteration parameters; once the model is lowered, the kernels in
 *     numbers and the pictures of show/chart.c; of a build of C its arena (show/arena.c).
 *
 * invariant: every name goes through mlo_html_words; nothing in a model can become markup.
 * example: mlo show --html model.json -o model.html
 * cost: the pictures (show/picture.c, show/chart.c).
 */
static void mlo_html_steps(const mlo_view *v, mlo_text *t) {
    static const char *const steps[] = { "read", "scope", "extract", "roll", "quantize", "lower",
        "fold", "emit" };
    size_t at = 0, n = sizeof steps / sizeof *steps;
    for (size_t i = 0; i < n; i++)
        if (mlo_eq(steps[i], v->stage)) at = i;
    if (mlo_opt(v->m, "built")) at = n - 1;
    mlo_puts(t, "<ol class=steps>");
    for (size_t i = 0; i < n; i++)
        mlo_printf(t, "<li%s>%s</li>",
            i < at        ? " class=done"
                : i == at ? " class=now"
                          : "",
            steps[i]);
    mlo_puts(t, "</ol>");
}

static void mlo_html_header(const mlo_view *v, mlo_text *t) {
    const mlo_model *model = v->m->model;
    const char *title = mlo_opt(v->m, "title");
    const char *name = title ? title : v->g->name && *v->g->name ? v->g->name : "model";
    mlo_html_begin(t, name);
    mlo_html_escaped(t, "<h1>", name, "</h1><div class=sub>");
    if (model->producer_name && *model->producer_name)
        mlo_html_escaped(t, "made by ", model->producer_name, model->producer_version ? " " : "; ");
    if (model->producer_name && *model->producer_name && model->producer_version)
        mlo_html_escaped(t, "", model->producer_version, "; ");
    for (size_t i = 0; i < model->n_opset; i++) {
        mlo_html_escaped(t, i ? ", " : "opset ",
            model->opset[i].domain && *model->opset[i].domain ? model->opset[i].domain : "ai.onnx",
            "");
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
        mlo_html_card(t,
            l->iterations < 0
                ? mlo_format(m, "%zu", l->body->n_node)
                : mlo_format(m, "%lld \303\227 %zu", (long long)l->iterations, l->body->n_node),
            mlo_format(m, "iterations \303\227 nodes: %s", l->name));
    }
    for (size_t i = 0; i < v->n_marks && i < 4; i++)
        mlo_html_card(t,
            mlo_format(m, "%d \303\227 %zu", v->mark[i].instances,
                v->mark[i].instances > 0 ? v->mark[i].nodes / (size_t)v->mark[i].instances : 0),
            mlo_format(m, "instances \303\227 nodes: %s", v->mark[i].name));
    mlo_html_card(t, mlo_thousands(m, (int64_t)v->g->n_node),
        v->n_loops ? "nodes, a loop being one" : "nodes");
    mlo_html_card(t, mlo_thousands(m, v->parameters),
        mlo_format(m, "parameters, %s", mlo_size_text(m, v->bytes)));
    if (v->inferred) mlo_html_card(t, mlo_thousands(m, (int64_t)v->inferred), "scopes inferred");
    if (v->hw) {
        mlo_html_card(t, mlo_thousands(m, mlo_core_multipliers(v->hw)),
            mlo_format(m, "multipliers in %d kernels", mlo_core_kernels(v->hw)));
        mlo_html_card(t, mlo_thousands(m, v->p.interval),
            mlo_format(m, "cycles per frame of %lld tokens", (long long)v->hw->chunk));
        mlo_html_card(t, mlo_view_utilisation(v, v->sim ? v->sim->interval : (double)v->p.interval),
            v->sim ? "of multiplier cycles did useful work"
                   : "of multiplier cycles do useful work");
        mlo_html_card(t, mlo_view_utilisation(v, (double)v->best),
            "in the best legal folding of as many multipliers");
        mlo_html_card(t, mlo_size_text(m, mlo_core_layer_beats(v->hw) * v->hw->axi_bits / 8),
            "parameters loaded per iteration");
    }
    mlo_puts(t, "</div>");
}

static void mlo_html_values(const mlo_view *v, mlo_text *t) {
    mlo_puts(t, "<section><h2>Inputs and outputs</h2><table>");
    for (size_t i = 0; i < v->g->n_input + v->g->n_output; i++) {
        int in = i < v->g->n_input;
        const mlo_value *x = mlo_view_listed(
            v, in ? v->g->input[i] : v->g->output[i - v->g->n_input]);
        if (!x) continue;
        const char *const cells[] = { in ? "input" : "output", x->name, mlo_view_form(v->m, x),
            NULL };
        mlo_html_cells(t, "td", cells);
    }
    mlo_puts(t, "</table></section>");
}

/* ---- a loop --------------------------------------------------------------- */

static void mlo_html_instances(const mlo_view *v, const mlo_view_loop *l, mlo_text *t) {
    if (!*l->instances) return;
    mlo_puts(t, "<h3>Instances</h3><div class=chips>");
    for (int64_t i = 0; i < l->iterations && i < 200; i++) {
        mlo_printf(t, "<span class='n i%d'>", (int)(i % 8));
        mlo_html_words(t, mlo_last_level(mlo_view_instance_scope(v->m, l, i)), 60);
        mlo_puts(t, "</span>");
    }
    if (l->iterations > 200)
        mlo_printf(t, "<span>and %lld more</span>", (long long)l->iterations - 200);
    mlo_puts(t, "</div>");
}

static void mlo_html_edge(const mlo_view *v, const mlo_view_loop *l, mlo_text *t) {
    mlo *m = v->m;
    size_t constants = 0;
    mlo_puts(t, "<h3>At the loop's edge</h3><table>");
    for (size_t i = 0; i < l->states; i++) {
        const char *const cells[] = { "carried", l->body->input[i]->name,
            mlo_view_form(m, mlo_value_of(l->body, l->body->input[i]->name)), NULL };
        mlo_html_cells(t, "td", cells);
    }
    for (size_t i = 0; i < l->n_outside; i++) {
        if (!mlo_view_lives(v, l->outside[i])) {
            constants++;
            continue;
        }
        const char *const cells[] = { "invariant", l->outside[i]->name,
            mlo_view_form(m, l->outside[i]), NULL };
        mlo_html_cells(t, "td", cells);
    }
    for (size_t i = 0; i < l->taps; i++) {
        const char *const cells[] = { "tap", l->node->output[l->states + i],
            mlo_view_form(m, mlo_value_of(l->outer, l->node->output[l->states + i])), NULL };
        mlo_html_cells(t, "td", cells);
    }
    if (constants)
        mlo_printf(t, "<tr><td>invariant<td>%zu constant%s<td>", constants,
            mlo_plural((int64_t)constants));
    mlo_puts(t, "</table>");
}

static int mlo_html_params(const mlo_view *v, const mlo_view_loop *l, mlo_text *t) {
    mlo_view_params *list;
    size_t n;
    int64_t bytes = 0;
    MLO_TRY(mlo_view_params_of(v, l, &list, &n));
    for (size_t i = 0; i < n; i++) bytes += list[i].bytes;
    mlo_printf(t, "<h3>Per iteration: %zu value%s, %s</h3><table>", l->params,
        mlo_plural((int64_t)l->params), mlo_size_text(v->m, bytes));
    for (size_t i = 0; i < n; i++) {
        mlo_puts(t, "<tr><td>");
        mlo_html_words(t, list[i].place, 40);
        mlo_puts(t, "<td class=n>");
        for (size_t k = 0; k < list[i].n; k++) {
            const char *name = l->body->input[list[i].param[k]]->name;
            mlo_html_escaped(t, k ? "<br><span title=\"" : "<span title=\"", name, "\">");
            mlo_html_words(t, name, 44);
            mlo_puts(t, "</span> ");
            mlo_html_escaped(t, "<span class=quiet>",
                mlo_view_shape(v->m, mlo_value_of(l->body, name)), "</span>");
        }
        mlo_html_escaped(t, "<td class=r>", mlo_size_text(v->m, list[i].bytes), "");
    }
    mlo_puts(t, "</table>");
    return mlo_failed(v->m);
}

enum {
    MLO_FOLDED_FROM = 3000
}; /* pixels: two screens of nodes around or without a loop are drawn when asked for */

/* A drawing under a heading, as wide as it needs to be read; what stands beside it goes below when
 * there is no room. */
static int mlo_html_drawing(const mlo_figure *s, const char *heading, mlo_text *t) {
    mlo_picture p;
    const char *id = mlo_format(s->v->m, "drawn-%zu", t->n); /* the only one that begins here */
    MLO_TRY(mlo_picture_make(s, &p));
    const int folded = !s->loop && p.height > MLO_FOLDED_FROM;
    mlo_printf(t, "<div class=wide style='min-width:min(100%%,%lldpx)'><h3>%s</h3>",
        (long long)p.width * 8 / 10, heading);
    if (folded) mlo_printf(t, "<details><summary>Draw its %zu nodes</summary>", s->n_vertex);
    mlo_printf(t, "<div class='draw%s'>",
        p.height > 5000            ? " tall long"
            : mlo_picture_long(&p) ? " long"
                                   : "");
    if (mlo_picture_none(&p))
        mlo_html_escaped(t, "<p class=quiet>", mlo_picture_none(&p), "</p>");
    else
        mlo_picture_svg(&p, "", id, t, NULL);
    mlo_puts(t, "</div>");
    if (mlo_picture_long(&p)) mlo_picture_sheets(&p, id, t);
    if (folded) mlo_puts(t, "</details>");
    if (s->hidden)
        mlo_printf(t, "<p class=quiet>Not drawn: %zu node%s that only prepare%s parameters.</p>",
            s->hidden, mlo_plural((int64_t)s->hidden), s->hidden == 1 ? "s" : "");
    if (!s->loop && s->v->n_marks)
        mlo_puts(t,
            "<p class=quiet>The colour at a node's left edge says which instance of a loop it "
            "belongs to.</p>");
    mlo_puts(t, "</div>");
    return mlo_failed(s->v->m);
}

static int mlo_html_loop(const mlo_view *v, const mlo_view_loop *l, mlo_text *t) {
    mlo_figure s;
    MLO_TRY(mlo_figure_make(v, l, &s));
    mlo_html_escaped(t, "<section><h2>", l->name, "");
    if (l->iterations >= 0)
        mlo_printf(t, ": %lld iteration%s", (long long)l->iterations, mlo_plural(l->iterations));
    mlo_printf(t, " of %zu nodes</h2>", l->body->n_node);
    if (*l->scope)
        mlo_html_escaped(t, "<div class=sub>drawn as <code>", mlo_last_level(l->scope),
            "</code>, the first instance</div>");
    mlo_puts(t, "<div class=two>");
    MLO_TRY(mlo_html_drawing(&s, "The body", t));
    mlo_puts(t, "<div class=side>");
    mlo_html_instances(v, l, t);
    mlo_html_edge(v, l, t);
    if (l->params) MLO_TRY(mlo_html_params(v, l, t));
    mlo_puts(t, "</div></div></section>");
    return mlo_failed(v->m);
}

/* The model around the loops, drawn; and counted by scope. */
static int mlo_html_whole(const mlo_view *v, mlo_text *t) {
    mlo_view_groups groups;
    mlo_figure s;
    MLO_TRY(mlo_view_grouped(v, &groups));
    MLO_TRY(mlo_figure_make(v, NULL, &s));
    mlo_printf(t, "<section><h2>%s</h2><div class=two>",
        v->n_loops ? "Around the loop" : "The whole model");
    MLO_TRY(mlo_html_drawing(&s, "Graph", t));
    mlo_puts(t, "<div class=side>");
    /* behind quantize, nothing is around the loop */
    if (groups.n) mlo_puts(t, "<h3>Nodes by scope</h3>");
    mlo_puts(t, "<table>");
    for (size_t i = 0; i < groups.n; i++) {
        const mlo_view_group *g = &groups.group[i];
        mlo_html_escaped(t, "<tr><td>", mlo_last_level(g->scope), "<td class=quiet>");
        for (size_t k = 0; k < g->n_ops; k++) {
            if (g->count[k] > 1) mlo_printf(t, "%zu ", g->count[k]);
            mlo_html_escaped(t, "", g->op[k], k + 1 < g->n_ops ? ", " : "");
        }
        mlo_printf(t, "<td class=r>%zu", g->nodes);
    }
    mlo_puts(t, "</table></div></div></section>");
    return mlo_failed(v->m);
}

/* ---- the core ------------------------------------------------------------- */

/* What a kernel did in the cycles of the run (or is predicted to): busy, blocked; the rest it
 * starved. */
static void mlo_html_share(mlo_text *t, double busy, double blocked, double cycles) {
    int64_t a = cycles > 0 ? (int64_t)(busy / cycles * 1000 + 0.5) : 0;
    int64_t b = cycles > 0 ? (int64_t)(blocked / cycles * 1000 + 0.5) : 0;
    if (a > 1000) a = 1000;
    if (a + b > 1000) b = 1000 - a;
    mlo_printf(t,
        "<td class=bar><span title='%lld.%lld %% busy, %lld.%lld %% blocked'><i "
        "style='width:%lld.%lld%%'></i><i class=held style='width:%lld.%lld%%'></i></span></td>",
        (long long)(a / 10), (long long)(a % 10), (long long)(b / 10), (long long)(b % 10),
        (long long)(a / 10), (long long)(a % 10), (long long)(b / 10), (long long)(b % 10));
}

/* The cells of an area. */
#define MLO_HTML_AREA(m, a)                                                            \
    mlo_right(m, mlo_thousands(m, (a)->lut)), mlo_right(m, mlo_thousands(m, (a)->ff)), \
        mlo_right(m, mlo_thousands(m, (a)->dsp)), mlo_right(m, mlo_bram_text(m, a))

/* A row of the folding table for what is no kernel. */
static void mlo_html_area(const mlo_view *v, const char *what, const mlo_area *a, mlo_text *t) {
    mlo *m = v->m;
    const char *const cells[] = { "", what, "", "", "", "", "", "", "", MLO_HTML_AREA(m, a), "", "",
        NULL };
    mlo_html_cells(t, "td", cells);
}

static void mlo_html_kernel(const mlo_view *v, const mlo_element *e, mlo_text *t) {
    mlo *m = v->m;
    const mlo_unit *u = &e->unit;
    const mlo_measured *sim = v->sim;
    int i = (int)(e - v->hw->element);
    const mlo_area *a = &v->area.element[i];
    double work = (double)mlo_element_work(v->hw, e), cycles = (double)v->p.interval;
    const char *sizes = mlo_format(
        m, "%lld \342\206\222 %lld", (long long)u->in[0].channels, (long long)u->out.channels);
    const char *none = "\342\200\223";
    const char *const cells[] = { e->name, mlo_view_what(v, e->node), mlo_or_empty(sizes),
        mlo_right(m, mlo_thousands(m, u->pe)),
        mlo_right(m, e->kernel->simd_axis ? mlo_thousands(m, u->simd) : none),
        mlo_right(m, u->multipliers ? mlo_thousands(m, u->multipliers) : none),
        mlo_right(m, mlo_thousands(m, u->interval)), mlo_right(m, mlo_thousands(m, u->latency)),
        mlo_right(m, mlo_size_text(m, mlo_unit_bytes(v->hw, u))), MLO_HTML_AREA(m, a),
        mlo_right(m, mlo_share_text(m, work, cycles)),
        sim ? mlo_right(
                  m, mlo_share_text(m, (double)sim->busy[i], (double)sim->frames * sim->interval))
            : NULL,
        NULL };
    mlo_html_cells(t, "td", cells);
    t->n -= strlen("</tr>"); /* one cell more: the bar */
    if (sim)
        mlo_html_share(t, (double)sim->busy[i], (double)sim->blocked[i], (double)sim->cycles);
    else
        mlo_html_share(t, work, 0, cycles);
    mlo_puts(t, "</tr>");
}

static void mlo_html_fifos(const mlo_view *v, mlo_text *t) {
    mlo *m = v->m;
    const mlo_core *c = v->hw;
    mlo_puts(t, "<h3>FIFOs</h3><table class=narrow>");
    for (int k = 0; k < c->n_edge; k++)
        if (c->edge[k].fifo && c->edge[k].to != MLO_OUTSIDE) {
            const mlo_edge *e = &c->edge[k];
            const char *ends = mlo_format(
                m, "%s \342\206\222 %s", mlo_edge_end(c, e->from), mlo_edge_end(c, e->to));
            const char *depth = mlo_format(m, ">%lld tokens", (long long)e->fifo);
            const char *const cells[] = { mlo_or_empty(ends), mlo_or_empty(depth),
                mlo_right(m, mlo_size_text(m, e->fifo * e->channels * e->bits / 8)), NULL };
            mlo_html_cells(t, "td", cells);
        }
    const char *depth = mlo_format(m, ">%lld tokens", (long long)c->feedback);
    const char *const cells[] = { "feedback", mlo_or_empty(depth),
        mlo_right(m, mlo_size_text(m, c->feedback * c->channels * c->bits / 8)), NULL };
    mlo_html_cells(t, "td", cells);
    mlo_puts(t, "</table>");
}

static void mlo_html_kernels(const mlo_view *v, mlo_text *t) {
    mlo *m = v->m;
    const mlo_core *c = v->hw;
    const char *const heads[] = { "Kernel", "What it is", "Channels", ">PE", ">SIMD",
        ">Multipliers", ">Cycles/token", ">Latency", ">Parameters", ">LUT", ">FF", ">DSP", ">BRAM",
        v->sim ? ">Busy, predicted" : ">Busy", v->sim ? ">simulated" : "", v->sim ? "" : NULL,
        NULL };
    const mlo_area *all = &v->area.all;
    const char *const feet[] = { "", "all, per iteration", "", "", "",
        mlo_right(m, mlo_thousands(m, mlo_core_multipliers(c))),
        mlo_right(m, mlo_thousands(m, mlo_core_interval(c))), "",
        mlo_right(m, mlo_size_text(m, mlo_core_beats(c) * c->axi_bits / 8)), MLO_HTML_AREA(m, all),
        mlo_right(m, mlo_view_utilisation(v, (double)v->p.interval)),
        v->sim ? mlo_right(m, mlo_view_utilisation(v, v->sim->interval)) : "", v->sim ? "" : NULL,
        NULL };
    mlo_puts(t,
        mlo_eq(v->stage, "lower") ? "<section><h2>Kernels</h2><p class=quiet>Not folded yet: every "
                                    "kernel is taken as 1 \303\227 1.</p><table class=fold><thead>"
                                  : "<section><h2>Folding</h2><table class=fold><thead>");
    mlo_html_cells(t, "th", heads);
    mlo_puts(t, "</thead><tbody>");
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel) mlo_html_kernel(v, &c->element[i], t);
    mlo_html_area(v, "streams between them", &v->area.streams, t);
    mlo_html_area(v, "loop, loader, registers", &v->area.shell, t);
    if (v->hw->around) mlo_html_area(v, "ids' rows, head, words", &v->area.around, t);
    mlo_puts(t, "</tbody><tfoot>");
    mlo_html_cells(t, "td", feet);
    mlo_puts(t, "</tfoot></table>");
    mlo_puts(t,
        v->sim ? "<p class=quiet>Bars: of all simulated cycles, <span "
                 "class=key><i></i></span>busy, <span class=key><i class=held></i></span>blocked "
                 "by the kernel behind; the rest starved.</p>"
               : "<p class=quiet>Bars: of the cycles per frame, predicted, <span "
                 "class=key><i></i></span>busy.</p>");
    mlo_puts(t,
        "<p class=quiet>LUT, FF, DSP, BRAM: estimates for AMD UltraScale+, as Yosys maps it; BRAM: "
        "of 36 Kbit.</p>");
    mlo_html_fifos(v, t);
    mlo_puts(t, "</section>");
}

/* ---- all ------------------------------------------------------------------ */

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
    MLO_TRY(mlo_html_arena(v, t));
    if (v->hw) {
        mlo_html_kernels(v, t);
        MLO_TRY(mlo_html_roofline(v, t));
        MLO_TRY(mlo_html_timeline(v, 0, t));
        if (v->sim) MLO_TRY(mlo_html_timeline(v, 1, t));
        if (v->sim || v->waves) MLO_TRY(mlo_html_waves(v, t));
        MLO_TRY(mlo_html_run(v, t));
    }
    for (size_t i = 0; i < v->n_loops; i++) MLO_TRY(mlo_html_loop(v, &v->loop[i], t));
    MLO_TRY(mlo_html_whole(v, t));
    if (v->after) MLO_TRY(mlo_html_after(v->after, t));
    mlo_html_values(v, t);
    mlo_html_end(t);
    return mlo_failed(v->m);
}

/* ---- one picture ---------------------------------------------------------- */

static void mlo_svg_style(mlo_text *t) {
    mlo_html_style(t, 0);
    mlo_puts(t, MLO_SVG_TIP);
}

/* The body of the largest loop, or a model without loops, as an SVG file of its own. */
static int mlo_show_svg(const mlo_view *v, mlo_text *t) {
    static const char root[] = " xmlns='http://www.w3.org/2000/svg'";
    const mlo_view_loop *most = NULL;
    mlo_figure s;
    mlo_picture p;
    for (size_t i = 0; i < v->n_loops; i++)
        if (!most || v->loop[i].body->n_node > most->body->n_node) most = &v->loop[i];
    MLO_TRY(mlo_figure_make(v, most, &s));
    MLO_TRY(mlo_picture_make(&s, &p));
    if (mlo_picture_none(&p))
        mlo_printf(t, "<svg%s width='560' height='30'><text x='8' y='20'>%s</text></svg>", root,
            mlo_picture_none(&p));
    else
        mlo_picture_svg(&p, root, "drawn", t, mlo_svg_style);
    mlo_puts(t, "\n");
    return mlo_failed(v->m);
}
