/* whole: a model as it stands, in its own types (--whole): float operators, and the loop in integers as one step.
 *
 * in:  a model; around a loop in integers its core, and how much its arena takes; or words of its inputs alone.
 * out: values, steps, a plan of one arena for all of them: what the loop needs is scratch of its step.
 *
 * What does not depend on inputs is computed here, once; of that only what somebody reads is kept, and so no
 * parameter of the loop in integers. Another loop (Scan: the encoder beside a decoder, a second stage) is written
 * round by round: its carried values are those of the round before, its parameters each round's own; flat_roll.c
 * finds the rounds again.
 *
 * invariant: inputs and outputs have the model's types and order.
 * example: bert-tiny: mlo_take, mlo_real_sum_each twice, mlo_normalize, mlo_real_steps_each, mlo_loop, ..
 * cost: an evaluation of the model.
 */

/* ---- what somebody reads ------------------------------------------------------------------------ */

static void mlo_whole_want(mlo_flat *f, const char *name) {
    if (name && *name) mlo_map_put(f->m, &f->wanted, name, f);
}
static void mlo_whole_want_inside(mlo_flat *f, const mlo_graph *g);
static void mlo_whole_want_node(mlo_flat *f, const mlo_node *n) {
    for (size_t i = 0; i < n->n_input; i++) mlo_whole_want(f, n->input[i]);
    for (size_t i = 0; i < n->n_attr; i++)
        if (n->attr[i]->g) mlo_whole_want_inside(f, n->attr[i]->g);
}
/* Does somebody read what a node makes? */
static int mlo_whole_wants(const mlo_flat *f, const mlo_node *n) {
    for (size_t k = 0; k < n->n_output; k++)
        if (mlo_map_get(&f->wanted, n->output[k])) return 1;
    return 0;
}
static void mlo_whole_want_inside(mlo_flat *f, const mlo_graph *g) {
    for (size_t i = 0; i < g->n_node; i++) mlo_whole_want_node(f, g->node[i]);
    for (size_t i = 0; i < g->n_output; i++) mlo_whole_want(f, g->output[i]->name);
}

/* What the loop in integers takes: tokens, their mask, the encoder's output and its mask, where there are such. */
enum { MLO_WHOLE_STREAMS = 4 };
static const char *mlo_whole_stream(mlo_flat *f, int k) {
    const mlo_core *c = f->core;
    switch (k) {
    case 0: return c->scan.node->input[0];
    case 1: return c->masked ? mlo_intern(f->m, "mlo_mask") : NULL;
    case 2: return c->replay >= 0 ? mlo_replay_name(c) : NULL;
    default: return c->replay_masked ? mlo_intern(f->m, mlo_memory_mask) : NULL;
    }
}
static int mlo_whole_is_core(const mlo_flat *f, const mlo_node *n) {
    return f->core && n == f->core->scan.node;
}

/* Does a node make the mask, and one input says it? */
static int mlo_whole_is_mask(mlo_flat *f, const mlo_node *n) {
    return f->mask_of && mlo_eq(n->output[0], mlo_whole_stream(f, 1));
}

/* From the outputs backwards; a value that does not depend on inputs is read as it is. */
static int mlo_whole_wanted(mlo_flat *f) {
    for (size_t i = 0; i < f->g->n_output; i++) mlo_whole_want(f, f->g->output[i]->name);
    for (size_t i = f->g->n_node; i--;) {
        const mlo_node *n = f->g->node[i];
        int wanted = 0;
        for (size_t k = 0; k < n->n_output; k++) {
            const mlo_flat_value *v = mlo_flat_of(f, n->output[k]);
            wanted |= v && !v->fixed && mlo_map_get(&f->wanted, n->output[k]) != NULL;
        }
        if (wanted && mlo_whole_is_core(f, n))
            for (int k = 0; k < MLO_WHOLE_STREAMS; k++) mlo_whole_want(f, mlo_whole_stream(f, k));
        else if (wanted && mlo_whole_is_mask(f, n))
            mlo_whole_want(f, f->mask_of->name);
        else if (wanted)
            mlo_whole_want_node(f, n);
    }
    return mlo_failed(f->m);
}

/* ---- values ------------------------------------------------------------------------------------- */

/* How long a form is along its first axis; what is static is fixed, whatever it is the form of. */
static int mlo_whole_of_form(const mlo_node *n) { return mlo_is(n, "Shape") || mlo_is(n, "Size"); }

static int mlo_whole_outputs_of(mlo_flat *f, const mlo_node *n, const char *scope) {
    int fixed = 1;
    f->scope = scope;
    for (size_t i = 0; i < n->n_input && !mlo_whole_of_form(n); i++) {
        const mlo_flat_value *x = mlo_flat_of(f, n->input[i]);
        fixed &= !*n->input[i] || (x && x->fixed);
    }
    f->scope = NULL;
    for (size_t i = 0; i < n->n_output; i++) {
        const char *name = n->output[i];
        if (!*name) continue;
        mlo_flat_value *v = mlo_flat_new(f, scope ? mlo_flat_scoped(f, scope, name) : name);
        if (v) v->fixed = fixed;
    }
    return mlo_failed(f->m);
}

/* A round's inputs are as fixed as what they are parts of, or as the carried value so far. */
static int mlo_whole_round_inputs(mlo_flat *f, const mlo_flat_rounds *r, int64_t t) {
    const char *scope = mlo_flat_scope(f, r, t), *before = t ? mlo_flat_scope(f, r, t - 1) : NULL;
    const size_t states = r->node->n_input - mlo_scan_stacks(r->node);
    for (size_t k = 0; k < r->body->n_input; k++) {
        f->scope = t && k < states ? before : NULL;
        const mlo_flat_value *x = mlo_flat_of(
            f, f->scope ? r->body->output[k]->name : r->node->input[k]);
        f->scope = NULL;
        mlo_flat_value *v = mlo_flat_new(f, mlo_flat_scoped(f, scope, r->body->input[k]->name));
        if (v) v->fixed = x && x->fixed;
    }
    return mlo_failed(f->m);
}
static int mlo_whole_round_values(mlo_flat *f, const mlo_flat_rounds *r, int64_t t) {
    const char *scope = mlo_flat_scope(f, r, t);
    MLO_TRY(mlo_whole_round_inputs(f, r, t));
    for (size_t i = 0; i < r->body->n_init; i++) {
        const mlo_tensor *tensor = r->body->init[i];
        mlo_array *a = mlo_tensor_load(f->m, tensor);
        mlo_flat_value *v = a ? mlo_flat_new(f, mlo_flat_scoped(f, scope, tensor->name)) : NULL;
        if (v) mlo_flat_numbers(f, v, a);
        if (v) v->fixed = 1;
        mlo_array_free(f->m, a);
    }
    for (size_t i = 0; i < r->body->n_node; i++)
        MLO_TRY(mlo_whole_outputs_of(f, r->body->node[i], scope));
    return mlo_failed(f->m);
}

/* A loop of floats: how often it goes round is how long what it goes along is. */
static int mlo_whole_loop_values(mlo_flat *f, const mlo_node *n) {
    mlo_flat_rounds r = { n, mlo_graph_of(n, "body"), 0 };
    const size_t stacks = mlo_scan_stacks(n);
    if (!r.body || !stacks || r.body->n_input != n->n_input)
        return mlo_flat_refuse(f, "a loop that goes along nothing");
    for (size_t k = n->n_input - stacks; k < n->n_input; k++) {
        const mlo_form form = mlo_form_of(mlo_value_of(f->g, n->input[k]));
        const size_t i = k + stacks - n->n_input;
        if (form.rank < 1 || form.dims[0] < 1 || mlo_int_at(n, "scan_input_axes", i, 0)
            || mlo_int_at(n, "scan_input_directions", i, 0))
            return mlo_flat_refuse(f, "a loop along another axis, or from the end");
        r.rounds = form.dims[0];
    }
    for (size_t i = 0; i < r.body->n_node; i++)
        if (mlo_graph_of(r.body->node[i], "body")) return mlo_flat_refuse(f, "a loop in a loop");
    if (!MLO_PUSH(f->m, f->rounds, f->n_rounds, r)) return mlo_failed(f->m);
    for (int64_t t = 0; t < r.rounds; t++) MLO_TRY(mlo_whole_round_values(f, &r, t));
    return 0;
}

/* Names, and which do not depend on inputs; then what somebody reads; then the forms, and the numbers of that. */
static int mlo_whole_names(mlo_flat *f) {
    for (size_t i = 0; i < f->g->n_init; i++) {
        const char *name = f->g->init[i]->name;
        mlo_flat_value *v = mlo_flat_of(f, name) ? NULL : mlo_flat_new(f, name);
        if (v) v->fixed = 1;
    }
    for (size_t i = 0; i < f->g->n_node; i++) {
        const mlo_node *n = f->g->node[i];
        f->node = n;
        MLO_TRY(mlo_whole_outputs_of(f, n, NULL));
        if (mlo_is(n, "Scan") && !mlo_whole_is_core(f, n)) MLO_TRY(mlo_whole_loop_values(f, n));
    }
    return mlo_whole_wanted(f);
}
static int mlo_whole_initializers(mlo_flat *f) {
    for (size_t i = 0; i < f->g->n_init; i++) {
        mlo_flat_value *v = mlo_flat_of(f, f->g->init[i]->name);
        if (!v || !v->fixed || !mlo_map_get(&f->wanted, v->name)) continue;
        mlo_array *a = mlo_tensor_load(f->m, f->g->init[i]);
        if (a) mlo_flat_numbers(f, v, a);
        mlo_array_free(f->m, a);
    }
    return mlo_failed(f->m);
}
static int mlo_whole_values(mlo_flat *f, const mlo_array *inputs, size_t n) {
    const mlo_observer see = { .user = f, .see = mlo_flat_see };
    for (size_t i = 0; i < n; i++) MLO_TRY(mlo_flat_input(f, &inputs[i], (int)i));
    MLO_TRY(mlo_whole_names(f));
    MLO_TRY(mlo_whole_initializers(f));
    if (!(f->result = MLO_NEW_N(f->m, mlo_array *, f->g->n_output + 1))) return mlo_failed(f->m);
    return mlo_run_model(f->m, inputs, n, &see, f->result);
}

/* ---- steps -------------------------------------------------------------------------------------- */

/* y is x, from `at` on. */
static int mlo_whole_alias(mlo_flat *f, mlo_flat_value *y, const mlo_flat_value *x, int64_t at) {
    if (!x || !y) return mlo_flat_refuse(f, "a carried value that is missing");
    if (y->fixed) return 0;
    if (x->fixed) return mlo_flat_refuse(f, "a carried value that begins as a constant");
    y->dtype = x->dtype;
    y->of = x->of;
    y->at = x->at + at;
    return 0;
}

static int mlo_whole_node(mlo_flat *f, const mlo_node *n);

/* A round: its inputs are there already; what it stacks goes to its place. */
static int mlo_whole_round(
    mlo_flat *f, const mlo_flat_rounds *r, int64_t t, mlo_flat_value **state) {
    const size_t states = r->node->n_input - mlo_scan_stacks(r->node);
    mlo_flat_value *stack[MLO_CORE_MOST] = { NULL };
    for (size_t k = 0; k < r->node->n_output && k < MLO_CORE_MOST; k++)
        if (k >= states) stack[k] = mlo_flat_of(f, r->node->output[k]);
    for (size_t k = 0; k < r->node->n_input; k++) {
        const mlo_flat_value *x = k < states ? state[k] : mlo_flat_of(f, r->node->input[k]);
        f->scope = mlo_flat_scope(f, r, t);
        mlo_flat_value *y = mlo_flat_of(f, r->body->input[k]->name);
        f->scope = NULL;
        MLO_TRY(mlo_whole_alias(f, y, x, k < states || !x ? 0 : x->count / r->rounds * t));
    }
    f->scope = mlo_flat_scope(f, r, t);
    for (size_t i = 0; i < r->body->n_node; i++) MLO_TRY(mlo_whole_node(f, r->body->node[i]));
    f->node = r->node;
    for (size_t k = 0; k < r->body->n_output && k < MLO_CORE_MOST; k++) {
        mlo_flat_value *x = mlo_flat_of(f, r->body->output[k]->name);
        int64_t own[MLO_MAX_RANK];
        if (k < states) state[k] = x;
        if (k < states || !x || !stack[k] || stack[k]->fixed) continue;
        mlo_steps(x->rank, x->dims, own);
        mlo_flat_value *part = mlo_flat_new(f, NULL);
        if (!part) return mlo_failed(f->m);
        *part = *stack[k]; /* in the form of its parts */
        part->name = NULL;
        mlo_flat_form(part, x->rank, x->dims);
        part->of = stack[k];
        part->at = x->count * t;
        MLO_TRY(mlo_flat_move(f, x, 0, own, part, 0, x->rank, x->dims));
    }
    f->scope = NULL;
    return 0;
}
static int mlo_whole_loop(mlo_flat *f, const mlo_node *n) {
    const mlo_flat_rounds *r = NULL;
    mlo_flat_value *state[MLO_CORE_MOST] = { NULL };
    const size_t states = n->n_input - mlo_scan_stacks(n);
    for (size_t i = 0; i < f->n_rounds; i++)
        if (f->rounds[i].node == n) r = &f->rounds[i];
    if (!r || states > MLO_CORE_MOST || n->n_output > MLO_CORE_MOST)
        return mlo_flat_refuse(f, "this loop");
    for (size_t k = 0; k < states; k++) state[k] = mlo_flat_of(f, n->input[k]);
    for (int64_t t = 0; t < r->rounds; t++) MLO_TRY(mlo_whole_round(f, r, t, state));
    for (size_t k = 0; k < states; k++)
        MLO_TRY(mlo_whole_alias(f, mlo_flat_of(f, n->output[k]), state[k], 0));
    for (size_t k = 0; k < n->n_output && k >= states; k++)
        if (mlo_int_at(n, "scan_output_axes", k - states, 0)
            || mlo_int_at(n, "scan_output_directions", k - states, 0))
            return mlo_flat_refuse(f, "a loop that stacks along another axis, or from the end");
    return 0;
}

/* The loop in integers. */
static int mlo_whole_core(mlo_flat *f) {
    const mlo_node *n = f->core->scan.node;
    const size_t made = (size_t)f->core->every; /* what it returns */
    for (size_t k = 0; k < n->n_output; k++)
        if (k != made && mlo_map_get(&f->wanted, n->output[k]))
            return mlo_flat_refuse(f, "another result of the loop than its carried value");
    mlo_flat_step *s = mlo_flat_step_new(
        f, "c/loop.c", "mlo_loop", mlo_flat_of(f, n->output[made]));
    if (!s) return mlo_failed(f->m);
    s->scratch = f->core_bytes;
    if (f->position) s->before = "cache, ";
    for (int k = 0; k < MLO_WHOLE_STREAMS; k++) {
        const char *name = mlo_whole_stream(f, k);
        if (!name) continue;
        s->given[s->n_in] = !k ? f->position ? ", 1" : ", MODEL_TOKENS"
            : k == 2           ? mlo_format(f->m, ", %lld", (long long)mlo_replay_frame(f->core))
                               : NULL;
        MLO_TRY(mlo_flat_operand(f, s, mlo_flat_of(f, name)));
    }
    return 0;
}

static int mlo_whole_node(mlo_flat *f, const mlo_node *n) {
    const mlo_flat_value *y = mlo_flat_of(f, n->output[0]);
    f->node = n;
    if (y && y->fixed) return 0;
    if (n->n_output == 1 && mlo_flat_is_empty(y)) return 0;
    if (mlo_whole_is_core(f, n)) return mlo_whole_core(f);
    if (mlo_whole_is_mask(f, n))
        return mlo_float_each(f, f->mask_of->dtype == MLO_FLOAT ? "mlo_real_is" : "mlo_whole_is",
            &f->mask_of, 1, NULL);
    return mlo_is(n, "Scan") ? mlo_whole_loop(f, n) : mlo_float_node(f, n);
}

/* Steps of all nodes that depend on inputs and that somebody reads. Outputs that depend on none are parameters. */
static int mlo_whole_steps(mlo_flat *f) {
    for (size_t i = 0; i < f->g->n_node; i++) {
        const mlo_node *n = f->g->node[i];
        if (mlo_whole_wants(f, n)) MLO_TRY(mlo_whole_node(f, n));
    }
    for (size_t i = 0; i < f->g->n_output; i++) {
        mlo_flat_value *v = mlo_flat_of(f, f->g->output[i]->name);
        if (v && !v->dtype)
            return mlo_fail_at(f->m, MLO_E_UNSUPPORTED, v->name,
                "C has no text for an output of such a type; cast it to float in the model");
        if (v && v->fixed && !mlo_flat_parameter(f, v)) return mlo_failed(f->m);
    }
    return mlo_failed(f->m);
}
