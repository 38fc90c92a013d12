/* body: the layer as C sees it: values in places, one step after the other.
 *
 * in:  a core (its kernels and splits, in dataflow order).
 * out: for each value that is streamed, where it lies: a place of the arena, elements behind its beginning,
 *     elements from a token to the next one; the plan of the places.
 *
 * A Split makes views. A kernel that treats each number (or each token) by itself writes over an operand
 * that nobody reads any more, if its result is no wider. The loop's result becomes its next input: it has
 * the same place where the input is not needed any more when the result comes; else it is copied there at
 * the end of the step.
 *
 * Of a chain that goes in blocks (blocks.c), what it makes for itself has room for a block's tokens; a place of
 * all tokens that it reads or writes is in use from its first step to its last one: the next block comes.
 *
 * invariant: no value is written over before its last reader has read it.
 * example: BERT: 11 values and the scratch of attention, 7 places.
 * cost: O(values * steps).
 */
enum { MLO_C_OUTSIDE = -1, MLO_C_VALUES = 2 * MLO_CORE_MOST };

typedef struct {
    const char *name;
    int place; /* MLO_C_OUTSIDE: the caller's */
    int64_t at; /* elements behind its beginning */
    int64_t row; /* elements from a token to the next one */
    int64_t tokens;
    int64_t channels;
    mlo_dtype dtype;
    int last; /* the step that reads it last */
} mlo_c_value;

typedef struct {
    const mlo_core *core;
    mlo_c_value value[MLO_C_VALUES];
    int n_value;
    mlo_arena plan;
    int64_t tokens; /* of a call of the layer: a frame's, or of a decoder with a cache one */
    mlo_c_blocks blocks;
    char few[MLO_PLAN_PLACES]; /* of each place, 1: it has room for a block of tokens only */
    int scratch[MLO_CORE_MOST]; /* of each element: its place, or MLO_C_OUTSIDE */
    int copied; /* 1: the loop's result is copied to where its input lies */
} mlo_c_body;

static mlo_c_value *mlo_c_value_of(mlo_c_body *b, const char *name) {
    for (int i = 0; i < b->n_value; i++)
        if (b->value[i].name == name) return &b->value[i];
    return NULL;
}

static int mlo_c_place(mlo_c_body *b, int64_t bytes, int few) {
    mlo_arena_place *p = &b->plan.place[b->plan.n];
    memset(p, 0, sizeof *p);
    p->bytes = bytes;
    b->few[b->plan.n] = (char)few;
    return b->plan.n++;
}

static int64_t mlo_c_bytes(const mlo_c_value *v) {
    return v->tokens * v->channels * (int64_t)mlo_dtype_size(v->dtype);
}

/* Is it all of its place? */
static int mlo_c_whole(const mlo_c_value *v) {
    return v->place != MLO_C_OUTSIDE && !v->at && v->row == v->channels;
}

/* The last step that reads anything in a place. */
static int mlo_c_last(const mlo_c_body *b, int place) {
    int last = -1;
    for (int i = 0; i < b->n_value; i++)
        if (b->value[i].place == place && b->value[i].last > last) last = b->value[i].last;
    return last;
}

/* Kernels that read a number, or a token, before they write it. */
static int mlo_c_in_place(const mlo_element *e) {
    switch (e->kernel->kind) {
    case MLO_KERNEL_SUM:
    case MLO_KERNEL_PRODUCT:
    case MLO_KERNEL_RESCALE:
    case MLO_KERNEL_NORM:
    case MLO_KERNEL_FRAME_NORM:
    case MLO_KERNEL_EXACT_NORM:
    case MLO_KERNEL_ROTATION:
    case MLO_KERNEL_PLACE: return 1;
    default: return 0;
    }
}

/* Does a chain go in blocks? */
static int mlo_c_blocked(const mlo_c_body *b, int chain) {
    return b->blocks.rows[chain] < b->tokens;
}

/* Of what element i makes, are there only a block's tokens at a time? */
static int mlo_c_is_few(const mlo_c_body *b, int i) {
    const int chain = b->blocks.of[i];
    return mlo_c_blocked(b, chain)
        && !mlo_c_leaves(b->core, &b->blocks, b->core->element[i].node->output[0], chain);
}

/* Does each block of a chain read all tokens of anything in a place? */
static int mlo_c_kept(const mlo_c_body *b, int place, int chain) {
    for (int i = b->blocks.first[chain]; mlo_c_blocked(b, chain) && i <= b->blocks.last[chain]; i++)
        for (int k = 0; k < b->n_value; k++)
            if (b->value[k].place == place
                && mlo_c_reads_all(&b->core->element[i], b->value[k].name))
                return 1;
    return 0;
}

/* The place of an operand that step i may write over; MLO_C_OUTSIDE: there is none. The loop's own is the
 * best: then its result needs no copy. Where all tokens have room, a block has its own, too. */
static int mlo_c_reuse(mlo_c_body *b, int i, const mlo_c_value *y, int few) {
    const mlo_element *e = &b->core->element[i];
    int found = MLO_C_OUTSIDE;
    for (int k = 0; mlo_c_in_place(e) && k < e->unit.n_in; k++) {
        const mlo_c_value *x = mlo_c_value_of(b, e->node->input[e->unit.in[k].index]);
        if (x && mlo_c_whole(x) && mlo_c_last(b, x->place) == i
            && mlo_dtype_size(y->dtype) <= mlo_dtype_size(x->dtype) && b->few[x->place] <= few
            && !mlo_c_kept(b, x->place, b->blocks.of[i])
            && (found == MLO_C_OUTSIDE || x->place == 0))
            found = x->place;
    }
    return found;
}

/* When a value is read last: `steps`, if it is the loop's result. */
static int mlo_c_read_last(const mlo_core *c, const char *name) {
    int last = name == c->scan.body->output[0]->name ? c->n_element : -1;
    for (int i = 0; i < c->n_element && last < c->n_element; i++)
        for (size_t k = 0; k < c->element[i].node->n_input; k++)
            if (c->element[i].node->input[k] == name) last = i;
    return last;
}

/* A new value, of the form that the model says. */
static mlo_c_value *mlo_c_value_new(mlo *m, mlo_c_body *b, const char *name, int64_t tokens) {
    const mlo_form f = mlo_form_of(mlo_value_of(b->core->scan.body, name));
    const mlo_c_value v = { name, MLO_C_OUTSIDE, 0, mlo_last_dim(&f), tokens, mlo_last_dim(&f),
        f.dtype, mlo_c_read_last(b->core, name) };
    if (b->n_value == MLO_C_VALUES) {
        mlo_fail_at(m, MLO_E_UNSUPPORTED, name, "a loop body of more than %d values", MLO_C_VALUES);
        return NULL;
    }
    b->value[b->n_value] = v;
    return &b->value[b->n_value++];
}

/* Views of what is split. */
static int mlo_c_split(mlo *m, mlo_c_body *b, const mlo_element *e) {
    const mlo_c_value *of = mlo_c_value_of(b, e->node->input[0]);
    int64_t at = 0;
    for (size_t k = 0; of && k < e->node->n_output; k++) {
        mlo_c_value *v = mlo_c_value_new(m, b, e->node->output[k], of->tokens);
        if (!v) return mlo_failed(m);
        v->place = of->place;
        v->at = of->at + at;
        v->row = of->row;
        at += v->channels;
    }
    return 0;
}

/* Bytes of keys (k = 0), values, the mask (2) with those rows in front; 0: there are none. */
static int64_t mlo_c_join_bytes(const mlo_element *e, int k) {
    const mlo_form *f = &e->site.in[1 + (k < 2 ? k : 0)];
    const int64_t each = k < 2 ? mlo_last_dim(f) * (int64_t)mlo_dtype_size(f->dtype) : 1;
    return mlo_element_ahead(e) ? (e->site.keys * each + 7) / 8 * 8 : 0;
}

/* Bytes that a kernel needs beside its operands. */
static int64_t mlo_c_scratch(const mlo_c_body *b, const mlo_element *e) {
    if (e->kernel->kind == MLO_KERNEL_WINDOW) return 8 * mlo_last_dim(&e->site.out);
    if (e->kernel->kind != MLO_KERNEL_ATTENTION) return 0;
    const int64_t own = b->core->slots ? b->core->chunk : mlo_tokens_of(&e->site.in[1]);
    const int64_t keys = own + mlo_element_ahead(e);
    return mlo_c_join_bytes(e, 0) + mlo_c_join_bytes(e, 1) + mlo_c_join_bytes(e, 2) + 8 * keys
        + 8 * (mlo_last_dim(&e->site.in[0]) / mlo_attention_heads(e->node));
}

/* Step i: its result and its scratch get places. */
static int mlo_c_step(mlo *m, mlo_c_body *b, int i) {
    const mlo_element *e = &b->core->element[i];
    b->scratch[i] = MLO_C_OUTSIDE;
    if (!e->kernel) return mlo_c_split(m, b, e);
    const int few = mlo_c_is_few(b, i);
    const int64_t tokens = e->side ? mlo_tokens_of(&e->site.out)
        : few                      ? b->blocks.rows[b->blocks.of[i]]
                                   : b->tokens;
    mlo_c_value *v = mlo_c_value_new(m, b, e->node->output[0], tokens);
    if (!v || e->kernel->kind == MLO_KERNEL_REPLAY) return mlo_failed(m);
    const int place = mlo_c_reuse(b, i, v, few);
    v->place = place == MLO_C_OUTSIDE ? mlo_c_place(b, mlo_c_bytes(v), few) : place;
    b->plan.place[v->place].live[i] = 1;
    const int64_t scratch = mlo_c_scratch(b, e);
    if (!scratch) return 0;
    b->scratch[i] = mlo_c_place(b, scratch, 1);
    b->plan.place[b->scratch[i]].live[i] = 1;
    return 0;
}

/* The first step at which a value needs its place, or the last one: all steps of a chain that goes in blocks, if the
 * place has room for all tokens. */
static int mlo_c_step_of(const mlo_c_body *b, const mlo_c_value *v, int step, int last) {
    const int inside = step >= 0 && step < b->core->n_element && !b->few[v->place];
    const int chain = inside ? b->blocks.of[step] : 0;
    if (!inside || !mlo_c_blocked(b, chain)) return step;
    return last ? b->blocks.last[chain] : b->blocks.first[chain];
}

/* The steps at which places are in use: from a value's making to its last reading. */
static void mlo_c_live(mlo_c_body *b) {
    for (int k = 0; k < b->n_value; k++) {
        const mlo_c_value *v = &b->value[k];
        int port, from = mlo_core_source(b->core, v->name, &port);
        if (v->place == MLO_C_OUTSIDE) continue;
        const int end = mlo_c_step_of(b, v, v->last, 1);
        from = mlo_c_step_of(b, v, from, 0);
        for (int s = from < 0 ? 0 : from; s <= end && s < b->plan.steps; s++)
            b->plan.place[v->place].live[s] = 1;
    }
}

/* The loop's result goes to where its input is: at once, if nothing else is there by then. */
static int mlo_c_carry(mlo *m, mlo_c_body *b) {
    const mlo_c_value *in = &b->value[0];
    mlo_c_value *out = mlo_c_value_of(b, b->core->scan.body->output[0]->name);
    if (!out || !mlo_c_whole(out) || out->channels != in->channels || out->dtype != in->dtype)
        return mlo_fail(m, MLO_E_UNSUPPORTED, b->core->scan.node,
            "the loop's result is a part of a value, or none that a kernel makes; C has no copy "
            "for "
            "that");
    mlo_arena_place *to = &b->plan.place[0], *from = &b->plan.place[out->place];
    const int taken = out->place;
    to->live[b->core->n_element] = 0;
    b->copied = taken && mlo_places_meet(&b->plan, to, from);
    to->live[b->core->n_element] = 1;
    if (!taken || b->copied) return 0;
    for (int s = 0; s < b->plan.steps; s++) to->live[s] |= from->live[s];
    to->bytes = mlo_max(to->bytes, from->bytes);
    memset(from, 0, sizeof *from);
    for (int k = 0; k < b->n_value; k++)
        if (b->value[k].place == taken) b->value[k].place = 0;
    return 0;
}

/* What lies where, for people. */
static void mlo_c_names(mlo *m, mlo_c_body *b) {
    for (int k = 0; k < b->n_value; k++)
        if (b->value[k].place != MLO_C_OUTSIDE)
            mlo_plan_name(m, &b->plan.place[b->value[k].place], b->value[k].name);
    for (int i = 0; i < b->core->n_element; i++)
        if (b->scratch[i] != MLO_C_OUTSIDE)
            mlo_plan_name(m, &b->plan.place[b->scratch[i]],
                mlo_format(m, "scratch of %s", b->core->element[i].name));
}

/* Values, places and the plan of the layer, in blocks as they are said. */
static int mlo_c_lay(mlo *m, mlo_c_body *b) {
    const mlo_core *c = b->core;
    b->n_value = b->plan.n = b->copied = 0;
    b->plan.steps = c->n_element + 1;
    mlo_c_value *in = mlo_c_value_new(m, b, c->scan.body->input[0]->name, b->tokens);
    if (!in) return mlo_failed(m);
    in->place = mlo_c_place(b, mlo_c_bytes(in), 0);
    for (int i = 0; i < c->n_element; i++) MLO_TRY(mlo_c_step(m, b, i));
    mlo_c_live(b);
    MLO_TRY(mlo_c_carry(m, b));
    mlo_plan_solve(&b->plan);
    return 0;
}
