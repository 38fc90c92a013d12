/* flat_roll: steps that repeat are written once, in a loop.
 *
 * in:  the steps of a network, planned.
 * out: the stretch of them that is `rounds` times the same calls, but for what they are called with; of each
 *     argument that differs a table, by round.
 *
 * invariant: the calls and their order are those of the straight line.
 * example: 8 layers of microLlama, 457 steps: 57 calls in a loop of 8 rounds, and one behind it.
 * cost: O(steps^2).
 */
/* ---- names ------------------------------------------------------------------------------------ */

static const char *mlo_flat_suffix(mlo_dtype t) {
    switch (t) {
    case MLO_FLOAT: return "f32";
    case MLO_UINT8: return "u8";
    case MLO_INT8: return "i8";
    case MLO_INT16: return "i16";
    case MLO_INT32: return "i32";
    default: return "i64";
    }
}

/* The type that operand k has in the step's function; where there is none, the first one's. */
static mlo_dtype mlo_flat_operand_type(const mlo_flat_step *s, int k) {
    return k < s->n_in && s->in[k] ? s->in[k]->dtype : s->n_in ? s->in[0]->dtype : s->out->dtype;
}

/* "mlo_matmul_i8_i8_i32": a function for each combination of types. */
static const char *mlo_flat_name(mlo *m, const mlo_flat_step *s) {
    const char *name = mlo_eq(s->kind, mlo_or_empty(s->exact)) ? mlo_format(m, "%s_each", s->kind)
                                                               : s->kind;
    for (int k = 0; k < s->n_in; k++)
        name = mlo_format(m, "%s_%s", name, mlo_flat_suffix(mlo_flat_operand_type(s, k)));
    if (s->inner && s->sum != MLO_INT32) name = mlo_format(m, "%s_long", name);
    return mlo_format(m, "%s_%s", name, mlo_flat_suffix(s->out->dtype));
}

/* Where a value begins. */
static const char *mlo_flat_pointer(
    mlo *m, const mlo_flat *f, const mlo_flat_value *v, int64_t to) {
    const mlo_flat_value *of = v->of;
    const long long at = (long long)(v->at + to);
    if (v->parameter >= 0) return mlo_format(m, "model_weights.w%d", v->parameter);
    const char *from = of->in >= 0 ? mlo_format(m, "in%d", of->in)
        : of->out >= 0             ? mlo_format(m, "out%d", of->out)
                                   : mlo_format(m, "(%s *)(a + %lld)", mlo_flat_c_type(of->dtype),
                                         (long long)f->plan.place[of->place].at);
    return at ? mlo_format(m, "%s + %lld", from, at) : from;
}

/* ---- what repeats ----------------------------------------------------------------------------- */

typedef struct {
    size_t start;
    size_t length; /* steps of a round */
    size_t rounds; /* 1: nothing repeats */
} mlo_flat_loop;

/* "mlo_matmul_i8_i8_i32(&..": what has to be the same of two steps. */
static const char *mlo_flat_form_of_step(mlo *m, const mlo_flat_step *s) {
    int places = 0;
    for (int k = 0; k <= MLO_FLAT_OPERANDS; k++) places |= s->twice[k] << k;
    return mlo_intern(m,
        mlo_format(m, "%d%s(%s%s %lld %lld %lld %d %d", s->fails, mlo_flat_name(m, s), s->before,
            s->also, (long long)s->scratch, (long long)s->tile, (long long)s->block, places,
            s->by_rows));
}

/* The stretch that saves most calls. */
static mlo_flat_loop mlo_flat_find_loop(const mlo_flat *f) {
    mlo_flat_loop best = { 0, f->n_step, 1 };
    const char **form = MLO_NEW_N(f->m, const char *, f->n_step + 1);
    size_t saved = 0;
    for (size_t i = 0; form && i < f->n_step; i++)
        form[i] = mlo_flat_form_of_step(f->m, &f->step[i]);
    for (size_t length = 1; form && 2 * length <= f->n_step; length++)
        for (size_t i = 0, same = 0; i + length < f->n_step; i++) {
            same = form[i] == form[i + length] ? same + 1 : 0;
            const size_t rounds = same / length + 1;
            if (rounds < 2 || length * (rounds - 1) <= saved) continue;
            saved = length * (rounds - 1);
            best.start = i + 1 - (rounds - 1) * length;
            best.length = length;
            best.rounds = rounds;
        }
    return best;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* What a step is called with: operands, the result, the numbers, the scratch. */
enum {
    MLO_FLAT_RESULT = MLO_FLAT_OPERANDS,
    MLO_FLAT_NUMBERS,
    MLO_FLAT_SCRATCH,
    MLO_FLAT_ARGUMENTS
};

/* Operands of a function: each.c takes three, and the first one for those that there are not. */
static int mlo_flat_arity(const mlo_flat_step *s) {
    return mlo_eq(s->text, "c/each.c") ? MLO_FLAT_EACH : s->n_in;
}
static int mlo_flat_takes(const mlo_flat_step *s, int k) {
    return k < MLO_FLAT_OPERANDS ? k < mlo_flat_arity(s)
        : k == MLO_FLAT_NUMBERS  ? s->numbers != NULL
        : k == MLO_FLAT_SCRATCH  ? s->scratch_place >= 0
                                 : 1;
}
static const mlo_flat_value *mlo_flat_value_at(const mlo_flat_step *s, int k) {
    return k == MLO_FLAT_RESULT ? s->out : k < s->n_in ? s->in[k] : s->in[0];
}

/* The byte of the arena that an argument begins at; -1: it is not in there. */
static int64_t mlo_flat_offset(const mlo_flat *f, const mlo_flat_step *s, int k) {
    if (k == MLO_FLAT_SCRATCH) return f->plan.place[s->scratch_place].at;
    const mlo_flat_value *v = k == MLO_FLAT_NUMBERS ? NULL : mlo_flat_value_at(s, k);
    if (!v || v->parameter >= 0 || v->of->in >= 0 || v->of->out >= 0) return -1;
    return f->plan.place[v->of->place].at
        + (v->at + (k == MLO_FLAT_RESULT ? s->to : 0)) * (int64_t)mlo_dtype_size(v->dtype);
}
static const char *mlo_flat_argument_type(const mlo_flat_step *s, int k) {
    const mlo_flat_value *v = k == MLO_FLAT_SCRATCH ? NULL : mlo_flat_value_at(s, k);
    return v ? mlo_flat_c_type(v->dtype) : "int64_t";
}
static const char *mlo_flat_argument(mlo *m, const mlo_flat *f, const mlo_flat_step *s, int k) {
    const int64_t offset = mlo_flat_offset(f, s, k);
    if (k == MLO_FLAT_NUMBERS) return mlo_format(m, "(const int64_t[])%s", s->numbers);
    if (offset >= 0)
        return mlo_format(m, "(%s *)(a + %lld)", mlo_flat_argument_type(s, k), (long long)offset);
    const mlo_flat_value *v = mlo_flat_value_at(s, k);
    return v ? mlo_flat_pointer(m, f, v, k == MLO_FLAT_RESULT ? s->to : 0) : "NULL";
}

/* ---- tables ------------------------------------------------------------------------------------ */

typedef struct {
    mlo *m;
    const mlo_flat *f;
    mlo_flat_loop loop;
    mlo_map table; /* their texts, interned -> how an argument is taken from them */
    int n; /* tables */
    int call; /* calls that were written */
    mlo_text *t;
} mlo_flat_tables;

/* The declaration of a table of argument k of a step of the loop, with %d for its number, and how it is
 * taken from there. */
static const char *mlo_flat_table(
    mlo_flat_tables *l, size_t i, int k, const char **declared, const char **taken) {
    mlo *m = l->m;
    const mlo_flat_step *first = &l->f->step[i];
    const char *type = mlo_flat_argument_type(first, k == MLO_FLAT_NUMBERS ? MLO_FLAT_SCRATCH : k);
    const char *all = "";
    int inside = k != MLO_FLAT_NUMBERS, fixed = 1;
    for (size_t r = 0; r < l->loop.rounds; r++) {
        const mlo_flat_step *s = first + r * l->loop.length;
        inside &= mlo_flat_offset(l->f, s, k) >= 0;
        fixed &= k < MLO_FLAT_OPERANDS && mlo_flat_value_at(s, k)
            && mlo_flat_value_at(s, k)->parameter >= 0;
    }
    for (size_t r = 0; r < l->loop.rounds; r++) {
        const mlo_flat_step *s = first + r * l->loop.length;
        const char *one = inside    ? mlo_integer(m, mlo_flat_offset(l->f, s, k))
            : k == MLO_FLAT_NUMBERS ? s->numbers
                                    : mlo_flat_argument(m, l->f, s, k);
        all = mlo_format(m, "%s%s%s", all, r ? ", " : "", one);
    }
    *declared = inside ? "static const int t%d[]"
        : k == MLO_FLAT_NUMBERS
        ? mlo_format(m, "static const int64_t t%%d[][%d]", MLO_DIALECT_NUMBERS)
        : fixed                ? mlo_format(m, "static const %s *const t%%d[]", type)
        : k == MLO_FLAT_RESULT ? mlo_format(m, "%s *const t%%d[]", type)
                               : mlo_format(m, "const %s *const t%%d[]", type);
    *taken = inside ? mlo_format(m, "(%s *)(a + t%%d[l])", type) : "t%d[l]";
    return all;
}

/* Argument k of step i, where it is the same in each round, or as it is taken from its table, which is
 * written when it is met first. */
static const char *mlo_flat_rolled(mlo_flat_tables *l, size_t i, int k) {
    mlo *m = l->m;
    const char *own = mlo_flat_argument(m, l->f, &l->f->step[i], k), *declared, *taken;
    int same = 1;
    for (size_t r = 1; r < l->loop.rounds; r++)
        same &= mlo_eq(own, mlo_flat_argument(m, l->f, &l->f->step[i + r * l->loop.length], k));
    if (same) return own;
    const char *all = mlo_flat_table(l, i, k, &declared, &taken);
    if (!own || !all || !declared || !taken) return ""; /* (there is no memory) */
    const char *key = mlo_intern(m, mlo_format(m, "%s%s%s", declared, all, taken));
    const char *known = key ? (const char *)mlo_map_get(&l->table, key) : "";
    if (known) return known;
    mlo_puts(l->t, "    ");
    mlo_printf(l->t, declared, l->n);
    mlo_printf(l->t, " = { %s };\n", all);
    const char *use = mlo_intern(m, mlo_format(m, taken, l->n++));
    union {
        const char *from;
        void *to;
    } cast = { use };
    return use && !mlo_map_put(m, &l->table, key, cast.to) ? use : "";
}

/* Tables of all that the loop's steps take. */
static void mlo_flat_all_tables(mlo_flat_tables *l) {
    for (size_t i = l->loop.start; i < l->loop.start + l->loop.length; i++)
        for (int k = 0; k < MLO_FLAT_ARGUMENTS && !l->m->error.code; k++)
            if (mlo_flat_takes(&l->f->step[i], k)) mlo_flat_rolled(l, i, k);
}

/* Functions of numbers take them even where there are none. */
static const char *mlo_flat_without_numbers(const mlo_flat_step *s) {
    return !s->numbers && (s->inner || mlo_eq(s->text, "c/each.c")) ? ", NULL" : "";
}

/* An argument of step i; in the loop with what its round has. */
static const char *mlo_flat_given(mlo_flat_tables *l, size_t i, int k, int looped) {
    return looped ? mlo_flat_rolled(l, i, k) : mlo_flat_argument(l->m, l->f, &l->f->step[i], k);
}

/* Step i in parts. */
static void mlo_flat_call_parts(mlo_flat_tables *l, size_t i, int looped) {
    const mlo_flat_step *s = &l->f->step[i];
    const char *lies[MLO_FLAT_OPERANDS + 1] = { NULL };
    for (int k = 0; k <= MLO_FLAT_OPERANDS; k++)
        if (mlo_flat_part_of(s, k))
            lies[k] = mlo_flat_part_from(l->m, s, k, mlo_flat_given(l, i, k, looped));
    const char *const call = mlo_format(
        l->m, "MODEL_STEP(%d, %s(%s%s", l->call++, mlo_flat_name(l->m, s), s->part, s->also);
    const char *const numbers = s->numbers
        ? mlo_format(l->m, ", %s", mlo_flat_given(l, i, MLO_FLAT_NUMBERS, looped))
        : mlo_flat_without_numbers(s);
    mlo_flat_parts(l->t, s, lies, call, numbers, mlo_flat_arity(s));
}

/* The call of step i; in the loop with what its round has. */
static void mlo_flat_call(mlo_flat_tables *l, size_t i, int looped) {
    const mlo_flat_step *s = &l->f->step[i];
    if (s->tile) {
        mlo_flat_call_parts(l, i, looped);
        return;
    }
    const char *comma = "";
    mlo_printf(l->t, "    %sMODEL_STEP(%d, %s%s(%s%s", looped ? "    " : "", l->call++,
        s->fails ? "bad |= " : "", mlo_flat_name(l->m, s), s->before, s->also);
    for (int k = 0; k < MLO_FLAT_ARGUMENTS; k++) {
        if (k == MLO_FLAT_NUMBERS) mlo_puts(l->t, mlo_flat_without_numbers(s));
        if (!mlo_flat_takes(s, k)) continue;
        mlo_printf(l->t, "%s%s", comma, mlo_flat_given(l, i, k, looped));
        comma = ", ";
    }
    mlo_puts(l->t, "));\n");
}

/* All calls, in their order. */
static void mlo_flat_calls(mlo_flat_tables *l) {
    const size_t end = l->loop.start + l->loop.length * l->loop.rounds;
    const int loops = l->loop.rounds > 1;
    for (size_t i = 0; i < l->f->n_step && !l->m->error.code; i++) {
        if (loops && i == l->loop.start) {
            mlo_flat_all_tables(l);
            mlo_printf(l->t, "    for (int l = 0; l < %lld; l++) {\n", (long long)l->loop.rounds);
            for (size_t k = i; k < i + l->loop.length; k++) mlo_flat_call(l, k, 1);
            mlo_puts(l->t, "    }\n");
        }
        if (!loops || i < l->loop.start || i >= end) mlo_flat_call(l, i, 0);
    }
}
