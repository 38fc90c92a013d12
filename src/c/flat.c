/* flat: a network of integers as C sees it: values in places, steps one after the other.
 *
 * in:  a model behind read; the arrays of its inputs.
 * out: for each value its form, what numbers it can be, and where it lies; for each operator its steps
 *     (flat_ops.c); the plan of the arena.
 *
 * Deeploy's networks carry integers in floats; here each value gets the narrowest type that holds all that
 * it can be: an input that of its words, a parameter that of its numbers, a result what interval
 * arithmetic says. So the types of model_run's arguments are all that has to be true of them. What does
 * not depend on inputs is computed once, here.
 *
 * invariant: a value lies dense, in row-major order. No number wraps, for any words of the inputs' types.
 * example: int8 inputs, 64 products by int8 weights: int32; requantized to 256 levels: int8 again, in the
 *     same place if nobody reads the sums any more.
 * cost: one evaluation of the model.
 */
enum { MLO_FLAT_EACH = 3, MLO_FLAT_OPERANDS = 5, MLO_FLAT_NOWHERE = -1 };
enum { MLO_FLAT_WINDOW = 16 }; /* members of mlo_window */
enum { MLO_TOKEN_NONE = -1 };

typedef struct mlo_flat_value mlo_flat_value;
struct mlo_flat_value {
    const char *name; /* NULL: a parameter that was made here */
    int rank;
    int64_t dims[MLO_MAX_RANK];
    int64_t count;
    mlo_dtype dtype; /* in C; MLO_FLOAT: perhaps no whole numbers */
    int whole; /* 1: whole numbers, whatever the type */
    mlo_interval ends;
    int fixed; /* 1: does not depend on inputs */
    const mlo_array *number; /* what it is then: int64, or floats */
    mlo_flat_value *of; /* it is a part of that value: itself, mostly */
    int64_t at; /* elements behind that one's first */
    int place; /* in the arena, of the model's inputs, its outputs, the parameters; or nowhere */
    int in;
    int out;
    int parameter;
    int made; /* the step that makes it */
    int last; /* the step that reads it last */
    int token; /* token.c: 1 + the axis of its tokens; MLO_TOKEN_NONE: a reader takes it as it is */
    const mlo_node *reader; /* the one that says so */
};

typedef struct {
    const mlo_node *node;
    const char *text; /* the file of share/c that has its loops */
    const char *kind; /* what its function is called, without the types */
    const char *exact; /* the function of a number or a row; NULL: none */
    const char *before; /* arguments in front of the operands, each with a comma behind it */
    const char *also; /* and behind those */
    const char *numbers; /* "{ .. }", behind the result; NULL: there are none */
    /* NULL: there is none; of sums the last two are of `exact` */
    mlo_flat_value *in[MLO_FLAT_OPERANDS];
    int n_in;
    mlo_flat_value *out;
    int64_t to; /* elements behind its first */
    int64_t scratch; /* bytes */
    int scratch_place;
    const char *how; /* of a reduction: how numbers are combined, and what becomes of that */
    const char *finish;
    const char
        *given[MLO_FLAT_OPERANDS]; /* of the loop in integers: what is given behind each stream */
    int fails; /* 1: it says whether an index of it was outside */
    mlo_dtype sum; /* of a sum, before `exact` */
    int64_t inner; /* of sums: numbers of a channel that lie together; 0: these are none */
    int64_t channels;
    int64_t grid_size[4]; /* of what goes number by number; and steps of its operands */
    int64_t grid[MLO_FLAT_EACH][4];
    int64_t units; /* of the result, that may be made by themselves; 0: there are none */
    const char *part; /* `before` of n of them */
    /* elements of a unit in operands and result; 0: all is whole */
    int64_t unit[MLO_FLAT_OPERANDS + 1];
    int64_t pieces[MLO_FLAT_OPERANDS + 1]; /* a part lies in so many, `pitch` apart; 0: in one */
    int64_t pitch[MLO_FLAT_OPERANDS + 1];
    int64_t window[MLO_FLAT_WINDOW]; /* members of mlo_window; 0: there is none */
    int by_rows; /* 1: a unit is a row of the result's picture, of operand 0 what a window sees for it */
    int64_t rows; /* of a product that may be cut into columns; 0: none */
    int64_t terms; /* of a sum of it */
    int64_t block; /* of those rows, whose columns are cut; 0: all of them */
    int64_t bias_row;
    int along[2]; /* of the numbers of `exact`: 1 by channel */
    int64_t tile; /* units at a time in a small arena; 0: all, where they lie */
    int twice[MLO_FLAT_OPERANDS + 1]; /* 1: it has two places there */
    int over; /* 1: each number of an operand is read before the same one of the result is written */
} mlo_flat_step;

/* A loop of floats, which is written round by round. */
typedef struct {
    const mlo_node *node;
    const mlo_graph *body;
    int64_t rounds;
} mlo_flat_rounds;

typedef struct {
    mlo *m;
    const mlo_graph *g;
    int real; /* 1: values have the model's own types, floats too (real.c) */
    const mlo_core *core; /* of its loop in integers; NULL: it has none */
    int64_t core_bytes; /* of that loop's arena */
    mlo_flat_value
        *position; /* of the token, where it goes on from call to call (token.c); or NULL */
    mlo_flat_value
        *mask_of; /* the input that tells each token's mask by itself (token.c); or NULL */
    mlo_map wanted; /* values that somebody reads, but that loop */
    mlo_flat_rounds *rounds;
    size_t n_rounds;
    const char
        *scope; /* what names of the round that is being written begin with; NULL: there is none */
    size_t output; /* of the node: the one that is being made */
    mlo_map by_name;
    mlo_flat_value **value;
    size_t n_value;
    mlo_flat_step *step;
    size_t n_step;
    mlo_flat_value **parameter;
    size_t n_parameter;
    const mlo_node *node; /* the one that is being looked at */
    mlo_arena plan;
    int tiled; /* 1: the plan is of a second memory, the arena has parts */
    int64_t tile_bytes; /* the most that parts take */
    mlo_array **result; /* the outputs, as mlo evaluates them */
} mlo_flat;

/* The node has no C. */
static int mlo_flat_refuse(mlo_flat *f, const char *what) {
    return mlo_fail(f->m, MLO_E_UNSUPPORTED, f->node, "C has no text for %s; %s", what,
        f->core ? "leave --whole out, and the host does what is around the loop (host/pre.onnx, "
                  "host/post.onnx)"
            : f->real ? "let the host do it, in a model of its own in front or behind"
                      : "let the host do it, in a model of its own in front or behind; a network "
                        "of floats is built with --whole");
}

/* ---- types -------------------------------------------------------------------------------- */

static mlo_dtype mlo_flat_type(mlo_interval a) {
    if (a.lo >= -128 && a.hi <= 127) return MLO_INT8;
    if (a.lo >= 0 && a.hi <= 255) return MLO_UINT8;
    if (a.lo >= -32768 && a.hi <= 32767) return MLO_INT16;
    return a.lo >= INT32_MIN && a.hi <= INT32_MAX ? MLO_INT32 : MLO_INT64;
}
static const char *mlo_flat_c_type(mlo_dtype t) { return t == MLO_FLOAT ? "float" : mlo_c_type(t); }

/* The model's own type, as C has it; MLO_UNDEFINED: it has none. */
static mlo_dtype mlo_flat_own(mlo_dtype t) {
    switch (t) {
    case MLO_BOOL: return MLO_UINT8;
    case MLO_FLOAT:
    case MLO_UINT8:
    case MLO_INT8:
    case MLO_INT16:
    case MLO_INT32:
    case MLO_INT64: return t;
    default: return MLO_UNDEFINED;
    }
}

/* All that a type holds. */
static mlo_interval mlo_flat_all(mlo_dtype t) {
    return t == MLO_UINT8 ? mlo_from_to(0, 255)
        : t == MLO_INT64  ? mlo_from_to(-INT64_MAX, INT64_MAX)
                          : mlo_signed_bits(mlo_bits_of(t));
}

/* ---- values -------------------------------------------------------------------------------- */

/* "loop[2]/add": what a value of a loop's body is called in a round. */
static const char *mlo_flat_scoped(const mlo_flat *f, const char *scope, const char *name) {
    return mlo_intern(f->m, mlo_format(f->m, "%s/%s", scope, name));
}
static const char *mlo_flat_scope(const mlo_flat *f, const mlo_flat_rounds *r, int64_t round) {
    return mlo_intern(f->m, mlo_format(f->m, "%s[%lld]", r->node->output[0], (long long)round));
}
/* The value of a name; in a round of a loop that of the round, if it has one. */
static mlo_flat_value *mlo_flat_of(const mlo_flat *f, const char *name) {
    if (!name || !*name) return NULL;
    void *own = f->scope ? mlo_map_get(&f->by_name, mlo_flat_scoped(f, f->scope, name)) : NULL;
    return (mlo_flat_value *)(own ? own : mlo_map_get(&f->by_name, name));
}
static mlo_flat_value *mlo_flat_in(const mlo_flat *f, size_t i) {
    return i < f->node->n_input ? mlo_flat_of(f, f->node->input[i]) : NULL;
}

static mlo_flat_value *mlo_flat_new(mlo_flat *f, const char *name) {
    mlo_flat_value *v = MLO_NEW(f->m, mlo_flat_value);
    if (!v || !MLO_PUSH(f->m, f->value, f->n_value, v)) return NULL;
    if (name && mlo_map_put(f->m, &f->by_name, name, v)) return NULL;
    v->name = name;
    v->of = v;
    v->place = v->in = v->out = v->parameter = v->made = v->last = MLO_FLAT_NOWHERE;
    return v;
}
static void mlo_flat_form(mlo_flat_value *v, int rank, const int64_t *dims) {
    v->rank = rank;
    v->count = 1;
    for (int i = 0; i < rank; i++) v->count *= v->dims[i] = dims[i];
}

/* Of a form that is known, which has no elements. (What has none may stand beside others in a Concat.) */
static int mlo_flat_is_empty(const mlo_flat_value *v) { return v && v->rank && !v->count; }

/* Are all numbers whole, and such as a double has? */
static int mlo_flat_are_whole(mlo *m, const mlo_array *a) {
    const mlo_array *wide = mlo_as(m, a, MLO_DOUBLE);
    if (!wide) return 0;
    const double *x = (const double *)wide->data, most = ldexp(1, 53);
    int whole = 1;
    for (int64_t i = 0; i < mlo_array_count(a) && whole; i++)
        whole = fabs(x[i]) <= most && x[i] >= floor(x[i]) && x[i] <= floor(x[i]);
    mlo_as_free(m, wide, a);
    return whole;
}

/* What an array holds; whole numbers as int64, others as floats. */
static int mlo_flat_numbers(mlo_flat *f, mlo_flat_value *v, const mlo_array *a) {
    mlo_array *kept = MLO_NEW(f->m, mlo_array);
    v->whole = f->real ? !mlo_dtype_is_float(a->dtype) : mlo_flat_are_whole(f->m, a);
    const mlo_array *as = mlo_as(f->m, a, v->whole ? MLO_INT64 : MLO_FLOAT);
    if (kept && as) mlo_array_keep(f->m, as, kept);
    mlo_as_free(f->m, as, a);
    if (f->m->error.code) return mlo_failed(f->m);
    mlo_flat_form(v, a->rank, a->dims);
    v->number = kept;
    v->ends = v->whole ? mlo_ends_of(kept) : mlo_from_to(0, 0);
    v->dtype = f->real ? mlo_flat_own(a->dtype) : v->whole ? mlo_flat_type(v->ends) : MLO_FLOAT;
    return 0;
}

/* A parameter of these numbers; one that has them already. */
static mlo_flat_value *mlo_flat_parameter(mlo_flat *f, mlo_flat_value *v) {
    for (size_t i = 0; i < f->n_parameter && v->parameter < 0; i++) {
        const mlo_flat_value *o = f->parameter[i];
        const size_t bytes = (size_t)v->count * mlo_dtype_size(v->number->dtype);
        if (o->dtype == v->dtype && o->count == v->count
            && !memcmp(o->number->data, v->number->data, bytes))
            v->parameter = (int)i;
    }
    if (v->parameter >= 0) return v;
    v->parameter = (int)f->n_parameter;
    return MLO_PUSH(f->m, f->parameter, f->n_parameter, v) ? v : NULL;
}

/* A parameter whose numbers are those of another value, moved: dims, and steps through the other's. */
static mlo_flat_value *mlo_flat_moved(
    mlo_flat *f, const mlo_flat_value *x, int rank, const int64_t *dims, const int64_t *step) {
    mlo_flat_value *v = mlo_flat_new(f, NULL);
    mlo_array *made = v ? mlo_array_new(f->m, x->number->dtype, rank, dims) : NULL;
    if (!made) return NULL;
    mlo_copy_strided(made->data, x->number->data, mlo_dtype_size(made->dtype), rank, dims, step, 0);
    mlo_flat_numbers(f, v, made);
    mlo_array_free(f->m, made);
    v->fixed = 1;
    return f->m->error.code ? NULL : v;
}

/* ---- what the model is, on these inputs -------------------------------------------------- */

static int mlo_flat_see(
    void *user, const mlo_graph *g, int64_t iteration, const char *name, const mlo_array *a) {
    mlo_flat *f = (mlo_flat *)user;
    mlo_flat_value *v = iteration < 0 && g == f->g ? mlo_flat_of(f, name) : NULL;
    for (size_t i = 0; iteration >= 0 && i < f->n_rounds; i++)
        if (f->rounds[i].body == g) {
            const char *scope = mlo_flat_scope(f, &f->rounds[i], iteration);
            v = (mlo_flat_value *)mlo_map_get(&f->by_name, mlo_flat_scoped(f, scope, name));
        }
    if (!v || v->count) return mlo_failed(f->m); /* (it is known from the first frame) */
    if (v->fixed && f->real && g == f->g && !mlo_map_get(&f->wanted, name)) return 0;
    if (v->fixed) return mlo_flat_numbers(f, v, a);
    mlo_flat_form(v, a->rank, a->dims);
    if (f->real) v->dtype = mlo_flat_own(a->dtype);
    return 0;
}

/* An input has the type of its words. */
static int mlo_flat_input(mlo_flat *f, const mlo_array *a, int k) {
    mlo_flat_value *v = mlo_flat_new(f, a->name);
    if (!v || mlo_flat_numbers(f, v, a)) return mlo_failed(f->m);
    if (!v->dtype)
        return mlo_fail_at(f->m, MLO_E_UNSUPPORTED, a->name,
            "C has no text for an input of %s; cast it to it in the model",
            mlo_dtype_name(a->dtype));
    v->in = k;
    if (v->whole) v->ends = mlo_flat_all(v->dtype);
    return 0;
}
static int mlo_flat_initializers(mlo_flat *f) {
    for (size_t i = 0; i < f->g->n_init; i++) {
        const mlo_tensor *t = f->g->init[i];
        mlo_array *a = mlo_tensor_load(f->m, t);
        mlo_flat_value *v = a ? mlo_flat_new(f, t->name) : NULL;
        if (v) mlo_flat_numbers(f, v, a);
        if (v) v->fixed = 1;
        mlo_array_free(f->m, a);
        if (f->m->error.code) return mlo_failed(f->m);
    }
    return 0;
}
static int mlo_flat_outputs_of(mlo_flat *f, const mlo_node *n) {
    int fixed = 1;
    for (size_t i = 0; i < n->n_input; i++) {
        const mlo_flat_value *x = mlo_flat_of(f, n->input[i]);
        fixed &= !x || x->fixed;
    }
    for (size_t i = 0; i < n->n_output; i++) {
        mlo_flat_value *v = *n->output[i] ? mlo_flat_new(f, n->output[i]) : NULL;
        if (v) v->fixed = fixed;
    }
    return mlo_failed(f->m);
}

/* What lies along an operand of the dialect is as wide in every layer. */
static void mlo_flat_widen(mlo_flat *f, const mlo_node *n) {
    const mlo_dialect *d = mlo_dialect_of(n);
    for (size_t k = 1; d && k < (size_t)d->operands && k < n->n_input; k++) {
        mlo_flat_value *v = mlo_flat_of(f, n->input[k]);
        if (v && v->fixed && v->whole && mlo_dtype_size(v->dtype) < 4) v->dtype = MLO_INT32;
    }
}

/* Values, with their forms; those that are fixed with their numbers. */
static int mlo_flat_values(mlo_flat *f, const mlo_array *inputs, size_t n) {
    const mlo_observer see = { .user = f, .see = mlo_flat_see };
    for (size_t i = 0; i < n; i++) MLO_TRY(mlo_flat_input(f, &inputs[i], (int)i));
    MLO_TRY(mlo_flat_initializers(f));
    for (size_t i = 0; i < f->g->n_node; i++) MLO_TRY(mlo_flat_outputs_of(f, f->g->node[i]));
    if (!(f->result = MLO_NEW_N(f->m, mlo_array *, f->g->n_output + 1))) return mlo_failed(f->m);
    MLO_TRY(mlo_run_model(f->m, inputs, n, &see, f->result));
    for (size_t i = 0; i < f->g->n_node; i++) mlo_flat_widen(f, f->g->node[i]);
    return 0;
}

/* ---- where they lie ------------------------------------------------------------------------ */

static int mlo_flat_place(mlo_flat *f, int64_t bytes) {
    if (f->plan.n == MLO_PLAN_PLACES) {
        mlo_fail(f->m, MLO_E_UNSUPPORTED, f->node, "more than %d values at a time; cut the model",
            MLO_PLAN_PLACES);
        return 0;
    }
    mlo_arena_place *p = &f->plan.place[f->plan.n];
    memset(p, 0, sizeof *p);
    p->bytes = bytes;
    return f->plan.n++;
}
static int64_t mlo_flat_bytes(const mlo_flat_value *v) {
    return v->count * (int64_t)mlo_dtype_size(v->dtype);
}

/* Where each value is read last: what a part of it is read counts. */
static void mlo_flat_lasts(mlo_flat *f) {
    for (size_t i = 0; i < f->n_step; i++) {
        mlo_flat_step *s = &f->step[i];
        if (s->out->of->made < 0) s->out->of->made = (int)i;
        for (int k = 0; k < s->n_in; k++)
            if (s->in[k]) s->in[k]->of->last = (int)i;
        s->out->of->last = (int)i;
    }
    for (size_t i = 0; i < f->g->n_output; i++) {
        mlo_flat_value *v = mlo_flat_of(f, f->g->output[i]->name);
        if (v) v->of->last = (int)f->n_step;
    }
}

/* May a step write its result over that operand? Of another type only byte by byte: compilers know that
 * those may be anything's. */
static int mlo_flat_over(const mlo_flat_step *s, int i, const mlo_flat_value *x) {
    const mlo_flat_value *y = s->out;
    for (int k = 0; x && k < s->n_in; k++)
        if (s->in[k] && s->in[k] != x && s->in[k]->of == x) return 0;
    return s->over && x && x->of == x && x->place >= 0 && x->last == i && x->count == y->count
        && y->of == y && (y->dtype == x->dtype || mlo_dtype_size(y->dtype) == 1);
}

static int mlo_flat_lay(mlo_flat *f, int i) {
    mlo_flat_step *s = &f->step[i];
    mlo_flat_value *y = s->out->of;
    f->node = s->node;
    const int scratch = s->scratch && !f->tiled;
    s->scratch_place = scratch ? mlo_flat_place(f, s->scratch) : MLO_FLAT_NOWHERE;
    if (scratch) f->plan.place[s->scratch_place].live[i] = 1;
    if (scratch) mlo_plan_name(f->m, &f->plan.place[s->scratch_place], "scratch");
    if (y->out >= 0 || y->made != i) return mlo_failed(f->m);
    for (int k = 0; k < s->n_in && y->place < 0; k++)
        if (mlo_flat_over(s, i, s->in[k])) y->place = s->in[k]->place;
    if (y->place < 0) y->place = mlo_flat_place(f, mlo_flat_bytes(y));
    mlo_plan_name(f->m, &f->plan.place[y->place], mlo_or_empty(y->name));
    for (int t = y->made; t <= y->last; t++) /* no later than f->n_step, which has room */
        f->plan.place[y->place].live[t] = 1;
    return mlo_failed(f->m);
}

/* Results that are whole values lie where the caller wants them; all else in the arena. */
static int mlo_flat_plan(mlo_flat *f) {
    for (size_t i = 0; i < f->g->n_output; i++) {
        mlo_flat_value *v = mlo_flat_of(f, f->g->output[i]->name);
        if (v && !v->count)
            return mlo_fail_at(f->m, MLO_E_UNSUPPORTED, v->name,
                "C has no text for an output that has no elements; leave it out of the model");
        if (v && v->of == v && v->in < 0 && !v->fixed && v->out < 0) v->out = (int)i;
    }
    f->plan.steps = (int)f->n_step + 1;
    if (f->n_step >= MLO_PLAN_STEPS)
        return mlo_fail_at(f->m, MLO_E_UNSUPPORTED, NULL,
            "%zu steps, more than the %d of a plan; cut the model", f->n_step, MLO_PLAN_STEPS - 1);
    mlo_flat_lasts(f);
    for (size_t i = 0; i < f->n_step; i++) MLO_TRY(mlo_flat_lay(f, (int)i));
    mlo_plan_solve(&f->plan);
    if (f->plan.bytes > INT32_MAX)
        return mlo_fail_at(f->m, MLO_E_UNSUPPORTED, NULL,
            "its values need %lld bytes at a time, more than the 2^31 - 1 of C's int; cut the "
            "model",
            (long long)f->plan.bytes);
    return mlo_failed(f->m);
}
