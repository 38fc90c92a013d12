/* expand_einsum: products in index notation are the standard operators that compute them.
 *
 * in:  an Einsum of operands of known forms, with a letter for each axis, or "..." for several.
 * out: of two operands, Transpose, MatMul, Transpose, with a Reshape where several letters play one part; without a
 *     letter to sum over, a Mul. Of more, one such product after the other, each of two; of one, a Transpose.
 *
 * Of more than two, the two whose product costs least come first, and their product keeps the letters that others or
 * the result have. Parameters by each other cost nothing where they do not grow: a gain goes into its weights, while
 * the two factors of a matrix of low rank stay two.
 *
 * invariant: a letter that one operand alone has is the result's. What is refused is said before anything is made.
 * example: "bnc,hcd,h->bnhd" is w' = Mul(w, h), then x w' as "bnc,hcd->bnhd"; "bhid,bhjd,bj->bhij" multiplies keys by
 *     their numbers and then queries by keys.
 * cost: O(operands^3), a handful.
 */

/* Einsum's equation, "bthd,bshd->bhts": a letter per axis; the result behind the operands. Axes that "..." stands for
 * are digits. */
enum { MLO_TERMS = 12 };
typedef struct {
    char term[MLO_TERMS + 1][MLO_MAX_RANK + 1];
    int n; /* operands */
} mlo_equation;

/* Puts digits for the axes that an ellipsis, '.', stands for: `axes` of them. 0: there is no room. */
static int mlo_equation_spell(char *term, int axes) {
    char *dot = strchr(term, '.'), tail[MLO_MAX_RANK + 1];
    const int length = (int)strlen(term);
    if (!dot) return 1;
    if (axes < 0 || axes > 9 || length - 1 + axes > MLO_MAX_RANK) return 0;
    memcpy(tail, dot + 1, strlen(dot + 1) + 1);
    for (int i = 0; i < axes; i++) *dot++ = (char)('0' + i);
    memcpy(dot, tail, strlen(tail) + 1);
    return 1;
}

/* All ellipses stand for as many axes as the operands' ranks say. 0: they differ, or a rank is unknown. */
static int mlo_equation_spelled(mlo_equation *e, const int *rank) {
    int axes = -1;
    for (int i = 0; i < e->n; i++) {
        const int own = rank[i] - (int)strlen(e->term[i]) + 1;
        if (!strchr(e->term[i], '.')) continue;
        if (rank[i] < 0 || own < 0 || (axes >= 0 && own != axes)) return 0;
        axes = own;
    }
    for (int i = 0; i <= e->n; i++)
        if (!mlo_equation_spell(e->term[i], axes)) return 0;
    return 1;
}

/* rank: of the operands. 0: another form. */
static int mlo_equation_of(const mlo_node *n, const int *rank, mlo_equation *e) {
    const mlo_attr *a = mlo_attr_of(n, "equation");
    int at = 0, length = 0;
    memset(e, 0, sizeof *e);
    for (size_t i = 0; a && i < a->s.n; i++) {
        char c = a->s.data[i];
        int arrow = c == '-' && i + 1 < a->s.n && a->s.data[i + 1] == '>';
        if (c == ' ') continue;
        if (!e->n && (arrow || (c == ',' && at + 1 < MLO_TERMS))) {
            at++;
            length = 0;
            i += (size_t)arrow;
            if (arrow) e->n = at;
            continue;
        }
        const int dots = i + 2 < a->s.n && !memcmp(&a->s.data[i], "...", 3);
        const int letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || dots;
        if (!letter || length == MLO_MAX_RANK || strchr(e->term[at], c)) return 0;
        e->term[at][length++] = c;
        i += dots ? 2 : 0;
    }
    return e->n && (size_t)e->n == n->n_input && mlo_equation_spelled(e, rank);
}

/* The size of a letter's axis; -1: unknown. */
static int64_t mlo_letter_size(const mlo_equation *e, const mlo_form *operand, char c) {
    int64_t size = -1;
    for (int i = 0; i < e->n; i++) {
        const char *p = strchr(e->term[i], c);
        if (!p || operand[i].rank != (int)strlen(e->term[i])) continue;
        if (size < 0 || operand[i].dims[p - e->term[i]] > 1) size = operand[i].dims[p - e->term[i]];
        if (size > 1) return size;
    }
    return size;
}

static int mlo_shape_einsum(mlo_shapes *s) {
    mlo_form operand[MLO_TERMS];
    mlo_equation e;
    s->out[0] = mlo_form_in(s, 0);
    s->out[0].rank = -1;
    int rank[MLO_TERMS];
    for (int i = 0; i < MLO_TERMS; i++) {
        operand[i] = mlo_form_in(s, (size_t)i);
        rank[i] = operand[i].rank;
    }
    if (!mlo_equation_of(s->node, rank, &e)) return 0;
    s->out[0].rank = (int)strlen(e.term[e.n]);
    for (int i = 0; i < s->out[0].rank; i++)
        s->out[0].dims[i] = mlo_letter_size(&e, operand, e.term[e.n][i]);
    return 0;
}

/* ---- two operands ---------------------------------------------------------- */

/* The letters of an equation by what MatMul does with them. */
enum {
    MLO_LETTER_BOTH,
    MLO_LETTER_LEFT,
    MLO_LETTER_SUMMED,
    MLO_LETTER_RIGHT,
    MLO_LETTER_SPREAD,
    MLO_LETTER_KINDS
};

typedef struct {
    char list[MLO_LETTER_KINDS][MLO_MAX_RANK + 1];
    int64_t size[MLO_LETTER_KINDS][MLO_MAX_RANK];
    int n[MLO_LETTER_KINDS];
} mlo_letters;

/* Of the left alone: is it there a batch over which the right one spreads? So are heads, where all have the same
 * keys: "bhid,bjd->bhij". Rows are the last such letter in `order`. (Without a letter of both, the right one may
 * be weights, of which there is one matrix.) */
static int mlo_letter_spreads(const mlo_equation *e, const char *order, const char *letter) {
    int shared = 0;
    for (const char *p = e->term[0]; *p; p++)
        shared |= strchr(e->term[1], *p) && strchr(e->term[2], *p);
    const char *behind = strchr(order, *letter);
    while (shared && behind && *++behind)
        if (strchr(e->term[0], *behind) && !strchr(e->term[1], *behind)) return 1;
    return 0;
}

static int mlo_letter_kind(
    const mlo_equation *e, const mlo_form *operand, const char *order, const char *letter) {
    const int left = strchr(e->term[0], *letter) != NULL;
    const int right = strchr(e->term[1], *letter) != NULL;
    const int kept = strchr(e->term[2], *letter) != NULL;
    if (left && right) return kept ? MLO_LETTER_BOTH : MLO_LETTER_SUMMED;
    if (right) return MLO_LETTER_RIGHT;
    const int spreads = mlo_letter_size(e, operand, *letter) > 1
        && mlo_letter_spreads(e, order, letter);
    return spreads ? MLO_LETTER_SPREAD : MLO_LETTER_LEFT;
}

static void mlo_sort_letters(
    const mlo_equation *e, const mlo_form *operand, const char *order, mlo_letters *l) {
    memset(l, 0, sizeof *l);
    for (int i = 0; i < 2; i++)
        for (const char *p = e->term[i]; *p; p++) {
            const int kind = mlo_letter_kind(e, operand, order, p);
            if (i && strchr(e->term[0], *p)) continue;
            l->size[kind][l->n[kind]] = mlo_letter_size(e, operand, *p);
            l->list[kind][l->n[kind]++] = *p;
        }
}

/* An operand, its axes in the order of four kinds of letters: those of both, those that spread, and two more, which
 * become one axis each. */
static const char *mlo_x_letters(mlo_expansion *x, const char *v, const char *term,
    const mlo_letters *l, int second, int third) {
    const int kinds[] = { MLO_LETTER_BOTH, MLO_LETTER_SPREAD, second, third };
    int64_t perm[MLO_MAX_RANK], shape[MLO_MAX_RANK + 2];
    size_t n = 0, rank = 0;
    int moved = 0, same = l->n[second] == 1 && l->n[third] == 1;
    for (int k = 0; k < 4; k++) {
        int64_t all = 1;
        for (int i = 0; i < l->n[kinds[k]]; i++) {
            const char *axis = strchr(term, l->list[kinds[k]][i]);
            const int64_t size = axis ? l->size[kinds[k]][i] : 1;
            same &= axis != NULL;
            if (axis) {
                perm[n] = axis - term;
                moved |= perm[n] != (int64_t)n;
                n++;
            }
            all *= size;
            if (k < 2) shape[rank++] = size;
        }
        if (k >= 2) shape[rank++] = all;
    }
    if (moved) v = mlo_x_transpose(x, v, perm, n);
    return same ? v : mlo_x_reshape(x, v, shape, rank);
}

/* Is the left operand a softmax's probabilities? Then the rows are theirs, else the result's: scores, as a rule. */
static int mlo_x_weighs(const mlo_expansion *x, const char *left) {
    const mlo_value *v = mlo_value_of(x->g, left);
    for (int k = 0; k < 4 && v && v->producer && v->producer->n_input; k++) {
        if (mlo_is(v->producer, "Softmax")) return 1;
        v = mlo_value_of(x->g, v->producer->input[0]);
    }
    return 0;
}

/* Two operands, what each is, and whether the model knows it. */
typedef struct {
    const char *v;
    mlo_form form;
    int given;
} mlo_operand;

/* An operand with its axes where those of the result are, to be multiplied by another one. */
static const char *mlo_x_beside(
    mlo_expansion *x, const mlo_operand *o, const char *term, const char *result) {
    int64_t perm[MLO_MAX_RANK], shape[MLO_MAX_RANK];
    const char *v = o->v;
    size_t n = 0, rank = 0;
    int moved = 0, apart = 0;
    for (const char *p = result; *p; p++) {
        const char *axis = strchr(term, *p);
        apart |= !axis && n;
        if (!axis && !n) continue; /* in front of all that it has: so it broadcasts anyway */
        shape[rank++] = axis ? o->form.dims[axis - term] : 1;
        if (!axis) continue;
        perm[n] = axis - term;
        moved |= perm[n] != (int64_t)n;
        n++;
    }
    if (moved) v = mlo_x_transpose(x, v, perm, n);
    return apart ? mlo_x_reshape(x, v, shape, rank) : v;
}

/* The result of a product, whose axes MatMul makes in another order. */
static const char *mlo_x_sorted(
    mlo_expansion *x, const char *y, const mlo_letters *l, const char *result) {
    const int parts[] = { MLO_LETTER_BOTH, MLO_LETTER_SPREAD, MLO_LETTER_LEFT, MLO_LETTER_RIGHT };
    char made[MLO_MAX_RANK + 1];
    int64_t shape[MLO_MAX_RANK], perm[MLO_MAX_RANK];
    size_t n = 0;
    int moved = 0;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < l->n[parts[k]]; i++) {
            shape[n] = l->size[parts[k]][i];
            made[n++] = l->list[parts[k]][i];
        }
    made[n] = 0;
    for (size_t i = 0; i < n; i++) {
        perm[i] = strchr(made, result[i]) - made;
        moved |= perm[i] != (int64_t)i;
    }
    if (l->n[MLO_LETTER_LEFT] != 1 || l->n[MLO_LETTER_RIGHT] != 1)
        y = mlo_x_reshape(x, y, shape, n);
    return moved ? mlo_x_transpose(x, y, perm, n) : y;
}

/* The product of two operands; what the model knows stands on the right, as weights do. */
static const char *mlo_x_of_two(
    mlo_expansion *x, const mlo_equation *given, const mlo_operand *operand) {
    const int swap = operand[0].given && !operand[1].given;
    const mlo_operand o[] = { operand[swap], operand[!swap] };
    const mlo_form form[] = { o[0].form, o[1].form };
    mlo_equation e = *given;
    mlo_letters l;
    memcpy(e.term[0], given->term[swap], sizeof e.term[0]);
    memcpy(e.term[1], given->term[!swap], sizeof e.term[1]);
    mlo_sort_letters(&e, form, e.term[mlo_x_weighs(x, o[0].v) ? 0 : 2], &l);
    const int sums = l.n[MLO_LETTER_SUMMED] > 0;
    if (sums && l.n[MLO_LETTER_BOTH] + l.n[MLO_LETTER_SPREAD] + 2 > MLO_MAX_RANK)
        mlo_x_stay(x, "its product has more than %d axes", MLO_MAX_RANK);
    const char *a = sums
        ? mlo_x_letters(x, o[0].v, e.term[0], &l, MLO_LETTER_LEFT, MLO_LETTER_SUMMED)
        : mlo_x_beside(x, &o[0], e.term[0], e.term[2]);
    const char *b = sums
        ? mlo_x_letters(x, o[1].v, e.term[1], &l, MLO_LETTER_SUMMED, MLO_LETTER_RIGHT)
        : mlo_x_beside(x, &o[1], e.term[1], e.term[2]);
    const char *y = MLO_X(x, sums ? "MatMul" : "Mul", a, b);
    return sums ? mlo_x_sorted(x, y, &l, e.term[2]) : y;
}

/* ---- more than two --------------------------------------------------------- */

/* Operands i and j of an equation, and their product: the letters that others or the result have, in their order. 0:
 * it would have too many axes. */
static int mlo_equation_pair(const mlo_equation *e, int i, int j, mlo_equation *two) {
    int n = 0;
    memset(two, 0, sizeof *two);
    two->n = 2;
    memcpy(two->term[0], e->term[i], sizeof two->term[0]);
    memcpy(two->term[1], e->term[j], sizeof two->term[1]);
    if (e->n == 2) memcpy(two->term[2], e->term[2], sizeof two->term[2]);
    for (int k = 0; e->n > 2 && k < 2; k++)
        for (const char *p = two->term[k]; *p; p++) {
            int wanted = !strchr(two->term[2], *p) && strchr(e->term[e->n], *p);
            for (int o = 0; o < e->n; o++)
                wanted |= o != i && o != j && !strchr(two->term[2], *p) && strchr(e->term[o], *p);
            if (wanted && n == MLO_MAX_RANK) return 0;
            if (wanted) two->term[2][n++] = *p;
        }
    return 1;
}

/* The elements of a term. */
static double mlo_term_count(const mlo_equation *e, const mlo_form *form, const char *term) {
    double n = 1;
    for (const char *p = term; *p; p++) n *= (double)mlo_letter_size(e, form, *p);
    return n;
}

/* How many multiplications a product of two is. What the model knows is multiplied when it is compiled: for nothing,
 * unless there is more of it then. A softmax's probabilities are weights of a sum first. */
static double mlo_pair_cost(
    const mlo_expansion *x, const mlo_equation *two, const mlo_operand *a, const mlo_operand *b) {
    const mlo_form form[] = { a->form, b->form };
    const double left = mlo_term_count(two, form, two->term[0]);
    const double right = mlo_term_count(two, form, two->term[1]);
    const double made = mlo_term_count(two, form, two->term[2]);
    double all = left;
    int sums = 0;
    if (a->given && b->given) return made <= (left > right ? left : right) ? 0 : HUGE_VAL;
    for (const char *p = two->term[0]; *p; p++) sums |= !strchr(two->term[2], *p);
    if (!sums && (mlo_x_weighs(x, a->v) || mlo_x_weighs(x, b->v))) return HUGE_VAL;
    for (const char *p = two->term[1]; *p; p++)
        if (!strchr(two->term[0], *p)) all *= (double)mlo_letter_size(two, form, *p);
    return all;
}

/* Two operands of an equation of more become one. 0: none of their products has few enough axes. */
static int mlo_x_fewer(mlo_expansion *x, mlo_equation *e, mlo_operand *operand) {
    mlo_equation best, two;
    double least = -1;
    int at[2] = { 0, 0 };
    for (int i = 0; i < e->n; i++)
        for (int j = i + 1; j < e->n; j++) {
            if (!mlo_equation_pair(e, i, j, &two)) continue;
            const double cost = mlo_pair_cost(x, &two, &operand[i], &operand[j]);
            if (least >= 0 && cost >= least) continue;
            least = cost;
            best = two;
            at[0] = i;
            at[1] = j;
        }
    if (least < 0) return 0;
    const mlo_operand of[] = { operand[at[0]], operand[at[1]] };
    const mlo_form form[] = { of[0].form, of[1].form };
    mlo_operand *made = &operand[at[0]];
    made->v = mlo_x_of_two(x, &best, of);
    made->given = of[0].given && of[1].given;
    made->form.rank = (int)strlen(best.term[2]);
    for (int k = 0; k < made->form.rank; k++)
        made->form.dims[k] = mlo_letter_size(&best, form, best.term[2][k]);
    memcpy(e->term[at[0]], best.term[2], sizeof best.term[2]);
    for (int k = at[1]; k < e->n; k++) {
        memcpy(e->term[k], e->term[k + 1], sizeof *e->term);
        if (k + 1 < e->n) operand[k] = operand[k + 1];
    }
    e->n--;
    return 1;
}

/* How many operands have a letter? */
static int mlo_letter_owners(const mlo_equation *e, char c) {
    int n = 0;
    for (int i = 0; i < e->n; i++) n += strchr(e->term[i], c) != NULL;
    return n;
}

/* An axis without a size of its own, or that is summed where no product is: the node stays. */
static void mlo_x_equation_checked(
    mlo_expansion *x, const mlo_equation *e, const mlo_operand *operand) {
    mlo_form form[MLO_TERMS];
    for (int i = 0; i < e->n; i++) {
        form[i] = operand[i].form;
        if (form[i].rank != (int)strlen(e->term[i]))
            mlo_x_stay(x, "operand %d has %d axes and %d letters", i, form[i].rank,
                (int)strlen(e->term[i]));
        for (const char *p = e->term[i]; *p; p++)
            if (mlo_letter_owners(e, *p) == 1 && !strchr(e->term[e->n], *p))
                mlo_x_stay(x, "it sums over an axis of one operand alone");
    }
    for (const char *p = e->term[e->n]; *p; p++)
        if (!mlo_letter_owners(e, *p)) mlo_x_stay(x, "no operand has the result's axis '%c'", *p);
    for (int i = 0; i < e->n && !x->why; i++)
        for (const char *p = e->term[i]; *p; p++)
            if (form[i].dims[p - e->term[i]] != mlo_letter_size(e, form, *p))
                mlo_x_stay(x, "axis '%c' broadcasts", *p);
}

/* One operand, whose axes come in another order. */
static const char *mlo_x_of_one(mlo_expansion *x, const mlo_equation *e, const char *v) {
    int64_t perm[MLO_MAX_RANK];
    const size_t n = strlen(e->term[1]);
    for (size_t i = 0; i < n; i++) perm[i] = strchr(e->term[0], e->term[1][i]) - e->term[0];
    return mlo_x_transpose(x, v, perm, n);
}

static void mlo_expand_einsum(mlo_expansion *x) {
    mlo_operand operand[MLO_TERMS];
    mlo_equation e;
    int rank[MLO_TERMS];
    for (int i = 0; i < MLO_TERMS; i++) rank[i] = mlo_x_rank(x, (size_t)i);
    if (!mlo_equation_of(x->n, rank, &e)) {
        mlo_x_stay(
            x, "its equation is not of %d operands at most with a letter for each axis", MLO_TERMS);
        return;
    }
    for (int i = 0; i < e.n; i++) {
        const mlo_value *v = mlo_value_of(x->g, mlo_x_in(x, (size_t)i));
        operand[i].v = mlo_x_in(x, (size_t)i);
        operand[i].form = mlo_form_of(v);
        operand[i].given = v && v->tensor;
        if (!mlo_form_known(&operand[i].form))
            mlo_x_stay(x, "the shape of an operand is not known");
    }
    if (!mlo_x_stopped(x)) mlo_x_equation_checked(x, &e, operand);
    while (!mlo_x_stopped(x) && e.n > 2)
        if (!mlo_x_fewer(x, &e, operand))
            mlo_x_stay(x, "its product has more than %d axes", MLO_MAX_RANK);
    if (mlo_x_stopped(x)) return;
    mlo_x_out(x, 0, e.n > 1 ? mlo_x_of_two(x, &e, operand) : mlo_x_of_one(x, &e, operand[0].v));
}
