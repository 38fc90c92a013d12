/* unstacked: past keys and values of all layers in one tensor become an input for each.
 *
 * in:  an indexed model, of which nodes take parts of an input [layers, 2, .., past, channels] along axes in front,
 *      join what is new to each or write it into it, and stack the presents to one output.
 * out: each part is an input, each present an output; of the stack, if its sizes are asked for, these alone.
 *
 * invariant: the same numbers. Where anything else is done to a part or to the stack, all stays as it is.
 * example: Gather(Gather(past [3, 2, 1, 4, P, 8], 0), 1) is an input [1, 4, P, 8].
 * cost: O(nodes).
 */
typedef struct {
    const mlo_value *v;
    mlo_form form;
} mlo_pile_part;

typedef struct {
    const mlo_cacheless *c;
    mlo_pile_part *part; /* that are joined to, or written into */
    size_t n;
} mlo_pile;

/* What a node takes of a value of that form, along an axis in front; 0: it takes no such part. */
static int mlo_pile_takes(
    const mlo_cacheless *c, const mlo_node *n, const char *name, mlo_form *f) {
    const int64_t said = mlo_int(n, "axis", 0), axis = said < 0 ? said + f->rank : said;
    const mlo_attr *axes = mlo_attr_of(n, "axes");
    int64_t squeezed = axes && axes->n_ints == 1 ? axes->ints[0] : -1;
    if (!n->n_input || n->input[0] != name || f->rank < 4) return 0;
    if (mlo_is(n, "Split") && axis < f->rank - 3 && f->dims[axis] == (int64_t)n->n_output) {
        f->dims[axis] = 1;
        return 1;
    }
    const mlo_form by = mlo_form_of(n->n_input > 1 ? mlo_value_of(c->g, n->input[1]) : NULL);
    const int picks = mlo_is(n, "Gather") && by.rank == 0 && axis >= 0 && axis < f->rank;
    int64_t at = 0;
    if (mlo_is(n, "Squeeze") && !axes && !mlo_whole_number(c, n->input[n->n_input - 1], &squeezed))
        return 0;
    if (picks && !mlo_whole_number(c, n->input[1], &at)) return 0;
    if (picks && f->dims[axis] >= 0 && (at < -f->dims[axis] || at >= f->dims[axis])) return 0;
    const int64_t gone = picks ? axis : mlo_is(n, "Squeeze") ? squeezed : -1;
    if (gone < 0 || gone >= f->rank - 2 || (!picks && f->dims[gone] != 1)) return 0;
    for (int d = (int)gone; d + 1 < f->rank; d++) f->dims[d] = f->dims[d + 1];
    f->rank--;
    return 1;
}

/* All parts of a value. 0: something else reads it. */
static int mlo_pile_parts(mlo_pile *s, const mlo_value *v, const mlo_form *f, int depth) {
    size_t taken = 0, others = 0;
    for (size_t i = 0; i < v->n_use; i++) {
        const mlo_node *u = v->use[i];
        mlo_form part = *f;
        if (!depth && mlo_reads_shape(u)) continue;
        if (depth > 3 || !mlo_pile_takes(s->c, u, v->name, &part)) {
            others++;
            continue;
        }
        taken++;
        for (size_t k = 0; k < u->n_output; k++)
            if (*u->output[k]
                && !mlo_pile_parts(s, mlo_value_of(s->c->g, u->output[k]), &part, depth + 1))
                return 0;
    }
    const mlo_pile_part whole = { v, *f };
    if (taken) return !others;
    return depth && others && MLO_PUSH(s->c->m, s->part, s->n, whole);
}

/* The output that stacks a present with others; NULL: none does. */
static const char *mlo_stacked_out(const mlo_cacheless *c, const char *name, int depth) {
    const mlo_value *v = mlo_value_of(c->g, name);
    const char *out = v->is_output ? name : NULL;
    for (size_t i = 0; depth < 8 && !out && i < v->n_use; i++)
        if (mlo_is(v->use[i], "Unsqueeze") || mlo_is(v->use[i], "Concat"))
            out = mlo_stacked_out(c, v->use[i]->output[0], depth + 1);
    return out;
}

/* The value that leaves with others, of a part that a node alone puts in front of what is new, or writes that into;
 * NULL: none does. */
static const char *mlo_pile_present(const mlo_cacheless *c, const mlo_value *part) {
    part = mlo_handed_through(c->m, c->g, part);
    mlo_node *n = mlo_written_by(c, part, 0);
    const int joins = !n && mlo_readers(part, &n) == 1 && mlo_is(n, "Concat") && n->n_input == 2
        && n->input[0] == part->name;
    if (!n || (!joins && mlo_is(n, "Concat"))) return NULL;
    const mlo_value *made = mlo_value_of(c->g, n->output[0]);
    for (int moved = 0; made && moved < 2; moved++) {
        if (mlo_stacked_out(c, made->name, 0)) return made->name;
        size_t i = 0;
        while (i < made->n_use && !mlo_is(made->use[i], "Transpose")) i++;
        made = i < made->n_use ? mlo_value_of(c->g, made->use[i]->output[0]) : NULL;
    }
    return NULL;
}

/* Makes inputs and outputs of the parts. */
static int mlo_pile_apart(mlo_pile *s, const char *name) {
    mlo *m = s->c->m;
    mlo_graph *g = s->c->g;
    const size_t before = g->n_output;
    for (size_t i = 0; i < s->n; i++) {
        const char *present = mlo_pile_present(s->c, s->part[i].v);
        mlo_drop_node(g, s->part[i].v->producer);
        MLO_TRY(mlo_info_add(m, &g->input, &g->n_input, s->part[i].v->name, &s->part[i].form));
        MLO_TRY(mlo_info_add(m, &g->output, &g->n_output, present, NULL));
    }
    for (size_t i = before; i < g->n_output; i++)
        for (const char *out; (out = mlo_stacked_out(s->c, g->output[i]->name, 0)) != NULL
            && out != g->output[i]->name;) {
            mlo_cacheless c = *s->c;
            mlo_drop_output(&c, out);
        }
    MLO_TRY(mlo_drop_dead(m, g));
    const mlo_value *stack = mlo_value_of(g, name);
    int asked = 0;
    for (size_t i = 0; i < stack->n_use; i++) asked |= mlo_reads_shape(stack->use[i]);
    if (!asked) mlo_drop_info(g->input, &g->n_input, name);
    return mlo_index(m, g);
}

/* Stacks that are inputs. */
static int mlo_unstack(mlo_cacheless *c) {
    for (size_t i = 0; i < c->g->n_input; i++) {
        const mlo_value *v = mlo_value_of(c->g, c->g->input[i]->name);
        const mlo_form f = mlo_form_of(v);
        mlo_pile s = { c, NULL, 0 };
        int parts = mlo_dtype_is_float(f.dtype) && f.rank > 4 && mlo_pile_parts(&s, v, &f, 0)
            && s.n > 1;
        for (size_t k = 0; parts && k < s.n; k++)
            parts = mlo_pile_present(c, s.part[k].v) != NULL
                && s.part[k].v->producer->n_output == 1;
        if (c->m->error.code) return mlo_failed(c->m);
        if (!parts) continue;
        MLO_TRY(mlo_pile_apart(&s, v->name));
        i = (size_t)-1; /* inputs have moved; keys and values may be a stack each */
    }
    return mlo_failed(c->m);
}
