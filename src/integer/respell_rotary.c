/* respell_rotary: the rule of respell.c about rotary embedding.
 *
 * in:  a product of queries and keys that rotation.c proves to be turned in pairs.
 * out: the same product of RotaryEmbedding of [1, T, C], whose pairs are neighbours.
 *
 * Pairs become neighbours by the order of the projection's columns (and of the gains of a norm behind
 * it); queries and keys get the same order, so their products stay what they are. The table is what
 * the model's own nodes, copied, make of ones in the first member of each pair and zeros in the
 * second: of the first members cosines, of the second sines.
 *
 * invariant: other readers of what is turned keep reading the old nodes.
 * example: halves of 8 channels, pairs 0 4, 1 5, ..: columns 0 4 1 5 2 6 3 7 of W.
 * cost: that of rotation.c.
 */
/* An operand that is turned in pairs, and what makes the value that is turned: channels of a
 * projection or of any value, perhaps behind a norm over each head or over the token. */
typedef struct {
    mlo_rotation_found r;
    mlo_sides s;
    const char *from; /* the value whose channels they are, [.., T, N] */
    mlo_node *norm;
    mlo_node *late; /* a norm over each head behind the rotation; NULL: there is none */
    int64_t *place; /* of late: the places in its row of a head's channels, in pairs */
    int64_t heads; /* of their own */
    int64_t channels; /* of from */
    int64_t row; /* channels that the norm is over: of a head, or of all heads */
    int64_t gains; /* of the norm: as many, or one for each channel of all heads */
    int64_t *column; /* the channels of `from`, in pairs */
    int64_t *gain; /* their places in the norm's row, in pairs */
    mlo_node *
        beside; /* joins what is turned with rows of parameters, in front of the product; NULL: nothing does */
    int projected; /* 1: from is a projection */
    int whole; /* 1: all channels of from, in order */
    const char *why;
} mlo_turned;

static void mlo_turned_free(mlo *m, mlo_turned *t) {
    mlo_rotation_free(m, &t->r);
    mlo_scratch_free(m, t->column);
    mlo_scratch_free(m, t->place);
    t->column = t->gain = t->place = NULL;
}

/* A norm over the last axis, whose gain (and bias) is one for all rows, or one for each head of a
 * token [.., H, D]; *gains takes how many numbers the larger of them has. */
static int mlo_is_head_norm(const mlo_inside *in, const mlo_node *n, int64_t *gains) {
    if (!mlo_is_norm(in, n)) return 0;
    const mlo_form f = mlo_body_form(in, n->input[0]);
    const int64_t row = *gains = f.dims[f.rank - 1];
    const int64_t token = f.rank > 1 ? row * f.dims[f.rank - 2] : row;
    for (size_t k = 1; k < n->n_input; k++) {
        const mlo_form g = mlo_body_form(in, mlo_has_input(n, k) ? n->input[k] : "");
        if (!mlo_has_input(n, k) || mlo_is_per_channel(in, n->input[k], row)) continue;
        if (mlo_is_carried(in, n->input[k]) || g.rank < 2 || mlo_last_dim(&g) != row
            || mlo_form_count(&g) != token || g.dims[g.rank - 2] * row != token)
            return 0;
        *gains = token;
    }
    return 1;
}

/* Are the norm's rows those of the heads (or of the tokens), and is the order in them, and are the
 * gains, the same for every token? Member (h, i, k), being element e of the norm, lies in its row at
 * e % row, and has gain e % gains. */
static int mlo_turned_rows(mlo *m, mlo_turned *t) {
    const int64_t d = t->r.at.d, tokens = t->r.at.t, n = t->heads * d;
    const int64_t each = t->row == d ? d : n;
    if (!t->norm) return 1;
    if (t->row != each || (t->gains > each && t->gains != n)) return 0;
    char *seen = (char *)mlo_scratch(m, (size_t)t->gains, 1);
    int ok = seen != NULL;
    if (ok) memset(seen, 0, (size_t)t->gains);
    for (int64_t k = 0; ok && k < n; k++) {
        const int32_t *at = t->r.member + k / d * t->r.repeats * tokens * d + k % d;
        const int32_t *first = t->r.member + k / each * each / d * t->r.repeats * tokens * d;
        if (k % t->gains == 0) memset(seen, 0, (size_t)t->gains);
        t->gain[k] = at[0] % t->gains;
        ok = !seen[t->gain[k]] && (k < t->gains || t->gain[k] == t->gain[k % t->gains])
            && t->gain[k] % t->row == t->gain[k % each] % t->row;
        seen[t->gain[k]] = 1;
        for (int64_t i = 0; ok && i < tokens; i++)
            ok = at[i * d] % t->gains == t->gain[k] && at[i * d] / t->row == first[i * d] / t->row;
    }
    mlo_scratch_free(m, seen);
    return ok;
}

/* Which channels of `from` the members are, the same for every token. map: which element of `from`
 * each element of the turned value is, NULL: itself. */
static int mlo_turned_columns(mlo_turned *t, const int32_t *map) {
    const int64_t d = t->r.at.d, tokens = t->r.at.t;
    for (int64_t k = 0; k < t->heads * d; k++) {
        const int32_t *at = t->r.member + k / d * t->r.repeats * tokens * d + k % d;
        for (int64_t i = 0; i < tokens; i++) {
            const int64_t e = map ? map[at[i * d]] : at[i * d];
            if (!i) t->column[k] = e % t->channels;
            if (e != i * t->channels + t->column[k]) return 0;
        }
    }
    return 1;
}

/* Follows the value that is turned to its projection. */
static int mlo_turned_source(const mlo_inside *in, mlo_turned *t) {
    mlo_chain c;
    mlo_array *map = NULL;
    const int64_t n = t->heads * t->r.at.d;
    mlo_node *maker = mlo_made_by(in, t->r.source);
    c.n = c.n_rounding = 0;
    t->norm = mlo_is_head_norm(in, maker, &t->gains) ? maker : NULL;
    t->from = t->norm ? mlo_chain_walk(in, t->norm->input[0], &c, NULL) : t->r.source;
    const mlo_form f = mlo_body_form(in, t->from), s = mlo_body_form(in, t->r.source);
    t->channels = mlo_last_dim(&f);
    t->row = mlo_last_dim(&s);
    t->column = (int64_t *)mlo_scratch(in->m, 2 * (size_t)n, sizeof *t->column);
    t->gain = t->column ? t->column + n : NULL;
    if (!t->column || c.n_rounding || mlo_tokens_of(&f) != t->r.at.t) return 0;
    if (t->norm && !(map = mlo_index_map(in, t->from, &c))) return 0;
    const int ok = mlo_turned_columns(t, map ? (const int32_t *)map->data : NULL)
        && mlo_turned_rows(in->m, t);
    mlo_array_free(in->m, map);
    t->projected = mlo_sides_of(in, t->from, &t->s);
    t->whole = ok && t->channels == n && mlo_is_identity(t->column, n)
        && !mlo_is(mlo_made_by(in, t->from), "Concat");
    return ok && (t->projected || t->whole);
}

/* The norm over what is turned, behind which there are but views and repeats (HunYuan); NULL: none. */
static mlo_node *mlo_norm_behind(const mlo_inside *in, const char *name) {
    mlo_node *n = mlo_made_by(in, name);
    for (int i = 0; i < MLO_CHAIN && mlo_is_repeat(in, n); i++) n = mlo_made_by(in, n->input[0]);
    return mlo_is_norm(in, n) && mlo_may_turn(in, n->input[0]) ? n : NULL;
}

/* Are the rows of the norm behind the rotation heads, with a gain for each channel? Then in pairs they
 * are normed as well: a mean, and one of squares, know no order. */
static int mlo_late_rows(const mlo_inside *in, const char *name, int second, mlo_turned *t) {
    const mlo_heads at = mlo_operand_heads(in, name, second);
    const int64_t d = at.d;
    int64_t gains, *order = (int64_t *)mlo_scratch(in->m, 2 * (size_t)d, sizeof *order);
    t->place = order;
    if (!order || !mlo_is_head_norm(in, t->late, &gains) || gains != d
        || !mlo_rows_are_heads(in, name, &at, d, order + d))
        return 0;
    for (int64_t k = 0; k < d; k++) order[k] = order[d + t->r.pair[k]];
    return 1;
}

/* 1: the operand is turned. 0: it is not, or not in a way that can be respelled: *why says which. */
static int mlo_turned_find(const mlo_inside *in, const char *name, int second, mlo_turned *t) {
    memset(t, 0, sizeof *t);
    t->late = mlo_norm_behind(in, name);
    if (!mlo_rotation_find(in, name, second, t->late, &t->r, &t->why)) return 0;
    if (t->late && !mlo_late_rows(in, name, second, t)) {
        t->why =
            "have a norm behind the rotation that is not over each head, or whose gain is not each "
            "channel's";
        return 0;
    }
    t->heads = t->r.at.heads / t->r.repeats;
    if (mlo_turned_source(in, t)) return 1;
    t->why = "is rotary embedding of what are not heads of a projection's channels";
    return 0;
}

/* Queries and keys turned in the same pairs; where only one of them is turned, its pairs must be
 * neighbours already. */
static int mlo_turned_alike(const mlo_turned t[2], const int found[2]) {
    const int64_t d = t[found[0] ? 0 : 1].r.at.d;
    for (int i = 0; i < 2; i++)
        if (!found[i]) return mlo_is_identity(t[1 - i].r.pair, d);
    return d == t[1].r.at.d && !memcmp(t[0].r.pair, t[1].r.pair, (size_t)d * sizeof *t[0].r.pair);
}

/* An operand of a product before numbers multiply it, which may as well multiply the products: *scale takes them. */
static const char *mlo_operand_unscaled(const mlo_inside *in, const char *name, double *scale) {
    for (const char *x; (x = mlo_unscaled(in, mlo_made_by(in, name), scale)); name = x) continue;
    return name;
}

/* The same of keys that lie beside rows of parameters, [.., rows, D], as heads: of those that are the loop's own. */
static int mlo_turned_find_beside(const mlo_inside *in, const char *name, mlo_turned *t) {
    mlo_node *n = mlo_made_by(in, name);
    for (int i = 0; i < MLO_CHAIN && mlo_is_layout(n); i++) n = mlo_made_by(in, n->input[0]);
    memset(t, 0, sizeof *t);
    if (!mlo_is_beside_rows(in, n) || n->n_input > MLO_MOVE_INPUTS) return 0;
    const int64_t axis = mlo_int(n, "axis", 0);
    if (axis != -2 && axis != mlo_body_form(in, n->output[0]).rank - 2) return 0;
    size_t k = 0;
    while (!mlo_is_carried(in, n->input[k])) k++;
    const int found = mlo_turned_find(in, n->input[k], 0, t);
    t->beside = n;
    return found;
}

/* Finds what is turned of the operands of a product. 0: nothing is; *why: what stands in its place,
 * NULL when there is nothing of the kind. */
static int mlo_turned_pair(
    const mlo_inside *in, const mlo_node *n, mlo_turned t[2], int found[2], const char **why) {
    double scale = 1;
    const char *operand[2];
    for (int i = 0; i < 2; i++) {
        operand[i] = mlo_operand_unscaled(in, n->input[i], &scale);
        found[i] = mlo_turned_find(in, operand[i], i, &t[i]);
    }
    if (!found[1] && !t[1].why) {
        mlo_turned_free(in->m, &t[1]);
        found[1] = mlo_turned_find_beside(in, operand[1], &t[1]);
    }
    *why = t[0].why ? t[0].why : t[1].why;
    if (*why || (!found[0] && !found[1])) return 0;
    if (mlo_turned_alike(t, found)) return 1;
    *why = "is turned in other pairs than what it is multiplied by";
    return 0;
}

/* What is no rotary embedding, though it looks like one, of a product's operands; NULL: nothing. */
static const char *mlo_why_not_turned(const mlo_inside *in, const mlo_node *n) {
    mlo_turned t[2];
    int found[2];
    const char *why = NULL;
    mlo_turned_pair(in, n, t, found, &why);
    for (int i = 0; i < 2; i++) mlo_turned_free(in->m, &t[i]);
    return why;
}

/* Copies of the nodes between a value and what is made of it, with another value in its place. */
typedef struct {
    const mlo_inside *in;
    mlo_expansion *x;
    const mlo_node *passed; /* is not copied; NULL: all are */
    const char *name[MLO_TURN_VALUES]; /* what is copied */
    const char *copy[MLO_TURN_VALUES]; /* its copy */
    int n;
} mlo_copier;

static const char *mlo_copied_as(mlo_copier *c, const char *name, const char *copy) {
    if (c->n == MLO_TURN_VALUES) return "";
    c->name[c->n] = name;
    return c->copy[c->n++] = copy;
}

static const char *mlo_copy(mlo_copier *c, const char *name) {
    const char *in[MLO_TURN_PARTS], *result = "";
    mlo_node *n = mlo_made_by(c->in, name);
    for (int i = 0; i < c->n; i++)
        if (c->name[i] == name) return c->copy[i];
    if (!mlo_is_carried(c->in, name)) return name;
    if (n->n_input > MLO_TURN_PARTS) return ""; /* (every path ends in the source) */
    if (n == c->passed) return mlo_copy(c, n->input[0]);
    for (size_t k = 0; k < n->n_input; k++)
        in[k] = mlo_has_input(n, k) ? mlo_copy(c, n->input[k]) : "";
    c->x->n = n;
    const char *first = mlo_x_node(c->x, n->op, in, n->n_input);
    mlo_node *made = mlo_x_last(c->x);
    if (!made) return "";
    made->attr = n->attr;
    made->n_attr = n->n_attr;
    for (size_t k = 0; k < n->n_output; k++) {
        const char *y = mlo_copied_as(c, n->output[k], k ? mlo_x_output(c->x) : first);
        if (n->output[k] == name) result = y;
    }
    return result;
}

/* 1 for the first member of each pair of the first head, 0 for all other elements: what the model's
 * own nodes make of that are the cosines (in the first members) and the sines. NULL: it depends on
 * more than the channel. */
static const char *mlo_x_probe(mlo_expansion *x, const mlo_inside *in, const mlo_turned *t) {
    const mlo_form f = mlo_body_form(in, t->r.source);
    const int64_t n = t->row, d = t->r.at.d;
    int64_t *is = (int64_t *)mlo_scratch(x->m, (size_t)n, sizeof *is);
    int ok = is != NULL;
    for (int64_t c = 0; ok && c < n; c++) is[c] = -1;
    for (int64_t k = 0; ok && k < t->r.at.t * d; k++) {
        int64_t *at = &is[t->r.member[k] % n], one = k % 2 == 0;
        ok = *at < 0 || *at == one;
        *at = one;
    }
    for (int64_t c = 0; ok && c < n; c++) is[c] = is[c] > 0;
    const char *ones = ok ? mlo_x_list(x, is, (size_t)n) : "";
    mlo_scratch_free(x->m, is);
    if (!ok) return NULL;
    const char *shape = mlo_x_list(x, f.dims, (size_t)f.rank);
    ones = mlo_x_cast(x, ones, x->dtype);
    return MLO_X(x, "Expand", ones, shape);
}

/* The cosines (odd: sines) of all tokens and pairs, [1, T, D/2], out of what the model makes of the
 * probe. */
static const char *mlo_x_turns(mlo_expansion *x, const mlo_turned *t, const char *made, int odd) {
    const int64_t half = t->r.at.d / 2, n = t->r.at.t * half, shape[] = { 1, t->r.at.t, half };
    int64_t *at = (int64_t *)mlo_scratch(x->m, (size_t)n, sizeof *at);
    for (int64_t k = 0; at && k < n; k++)
        at[k] = mlo_head_place(&t->r.at, 0, k / half, t->r.pair[2 * (k % half) + odd]);
    const char *which = at ? mlo_x_list(x, at, (size_t)n) : "";
    mlo_scratch_free(x->m, at);
    return mlo_x_reshape(x, mlo_x_take(x, made, which, 0), shape, 3);
}

/* A norm's gain (or bias) in pairs: of a row's channels, or [heads, D]. */
static const char *mlo_x_gain(mlo_expansion *x, const mlo_turned *t, const char *name) {
    const int64_t all = -1, rows[] = { -1, t->row };
    const mlo_form f = mlo_form_of(mlo_value_of(x->g, name));
    const int64_t n = mlo_form_count(&f);
    int64_t *at = (int64_t *)mlo_scratch(x->m, (size_t)n, sizeof *at);
    for (int64_t k = 0; at && k < n; k++) at[k] = t->gain[k] % n;
    const char *order = at ? mlo_x_list(x, at, (size_t)n) : "";
    mlo_scratch_free(x->m, at);
    const char *y = mlo_x_reshape(x, name, &all, 1);
    y = mlo_x_take(x, y, order, 0);
    return n > t->row ? mlo_x_reshape(x, y, rows, 2) : y;
}

/* The projection's channels in pairs, and the norm of them: [1, T, heads D]. */
static const char *mlo_x_paired(mlo_expansion *x, const mlo_turned *t) {
    const int64_t d = t->r.at.d, n = t->heads * d;
    const int64_t flat[] = { 1, t->r.at.t, n }, split[] = { 1, t->r.at.t, t->heads, d };
    const char *y = t->from, *gain[2] = { "", "" };
    if (!t->whole) y = mlo_x_sides(x, &t->s, t->column, n);
    if (!t->norm) return mlo_x_reshape(x, y, flat, 3);
    y = t->row == d ? mlo_x_reshape(x, y, split, 4) : mlo_x_reshape(x, y, flat, 3);
    for (size_t k = 0; k < 2; k++)
        if (mlo_has_input(t->norm, k + 1)) gain[k] = mlo_x_gain(x, t, t->norm->input[k + 1]);
    y = mlo_x_normed(x, t->norm, y, gain[0], gain[1]);
    return mlo_x_reshape(x, y, flat, 3);
}

/* The norm over each head of what is turned: [1, T, heads D]. */
static const char *mlo_x_normed_late(mlo_expansion *x, const mlo_turned *t, const char *y) {
    const int64_t d = t->r.at.d, all = -1;
    const int64_t flat[] = { 1, t->r.at.t, t->heads * d }, split[] = { 1, t->r.at.t, t->heads, d };
    const char *order = mlo_x_list(x, t->place, (size_t)d), *gain[2] = { "", "" };
    y = mlo_x_reshape(x, y, split, 4);
    for (size_t k = 0; k < 2; k++)
        if (mlo_has_input(t->late, k + 1))
            gain[k] = mlo_x_take(x, mlo_x_reshape(x, t->late->input[k + 1], &all, 1), order, 0);
    y = mlo_x_normed(x, t->late, y, gain[0], gain[1]);
    return mlo_x_reshape(x, y, flat, 3);
}

/* From [1, T, heads D] to the operand's form. */
static const char *mlo_x_as_operand(
    mlo_expansion *x, const mlo_turned *t, const char *y, const mlo_form *form) {
    const int64_t tokens = t->r.at.t, d = t->r.at.d, g = t->r.repeats;
    const int64_t split[] = { 1, tokens, t->heads, d }, perm[] = { 0, 2, 1, 3 };
    const int64_t apart[] = { 1, t->heads, 1, tokens, d }, all[] = { 1, t->heads, g, tokens, d };
    const int64_t heads[] = { 1, t->heads * g, tokens, d }, swap[] = { 0, 1, 3, 2 };
    y = mlo_x_reshape(x, y, split, 4);
    y = mlo_x_transpose(x, y, perm, 4);
    if (g > 1) {
        y = mlo_x_reshape(x, y, apart, 5);
        const char *shape = mlo_x_list(x, all, 5);
        y = MLO_X(x, "Expand", y, shape);
        y = mlo_x_reshape(x, y, heads, 4);
    }
    if (t->r.at.order) y = mlo_x_transpose(x, y, swap, 4);
    return mlo_x_reshape(x, y, form->dims, (size_t)form->rank);
}

/* The operand by RotaryEmbedding, of pairs that are neighbours; the table is made by the model's own
 * nodes. NULL: its table is not to be had that way. */
static const char *mlo_x_turned(
    mlo_expansion *x, const mlo_inside *in, const mlo_turned *t, const char *operand) {
    mlo_node *self = x->n;
    mlo_copier c = { in, x, t->late, { NULL }, { NULL }, 0 };
    const mlo_form form = mlo_body_form(in, operand);
    const char *probe = mlo_x_probe(x, in, t);
    const int64_t all = -1;
    if (!probe) return NULL;
    mlo_copied_as(&c, t->r.source, probe);
    const char *made = mlo_copy(&c, operand);
    mlo_node *maker = mlo_made_by(in, t->from);
    x->n = maker ? maker : self; /* its name, its scope */
    made = mlo_x_reshape(x, made, &all, 1);
    const char *cos = mlo_x_turns(x, t, made, 0), *sin = mlo_x_turns(x, t, made, 1);
    const char *y = mlo_x_paired(x, t);
    y = MLO_X(x, "RotaryEmbedding", y, cos, sin);
    mlo_x_int(x, "interleaved", 1);
    mlo_x_int(x, "num_heads", t->heads);
    if (t->late) y = mlo_x_normed_late(x, t, y);
    y = mlo_x_as_operand(x, t, y, &form);
    x->n = self;
    return y;
}

/* The operand beside its rows, whose channels get the same order. */
static const char *mlo_x_turned_beside(
    mlo_expansion *x, const mlo_inside *in, const mlo_turned *t, const char *operand) {
    const mlo_node *n = t->beside;
    mlo_copier c = { in, x, NULL, { NULL }, { NULL }, 0 };
    mlo_node *self = x->n;
    const char *part[MLO_MOVE_INPUTS];
    for (size_t k = 0; k < n->n_input; k++) {
        const mlo_form f = mlo_body_form(in, n->input[k]);
        const char *order = mlo_x_list(x, t->r.pair, (size_t)t->r.at.d);
        part[k] = mlo_is_carried(in, n->input[k]) ? mlo_x_turned(x, in, t, n->input[k])
                                                  : mlo_x_take(x, n->input[k], order, f.rank - 1);
        if (!part[k]) return NULL;
    }
    const char *y = mlo_x_node(x, "Concat", part, n->n_input);
    mlo_x_attrs_of(x, n, NULL);
    mlo_copied_as(&c, n->output[0], y);
    y = mlo_copy(&c, operand);
    x->n = self;
    return y;
}

/* Queries and keys that are turned by their position. Both are put in pairs in the same order, so
 * their products stay what they are. */
static void mlo_respell_turned(mlo_respeller *r, mlo_expansion *x) {
    mlo_turned t[2];
    int found[2];
    const char *why, *operand[2];
    double scale = 1;
    mlo_node *n = x->n;
    if (!mlo_is_inner_product(&r->in, n)) return;
    int ok = mlo_turned_pair(&r->in, n, t, found, &why);
    for (int i = 0; i < 2; i++) {
        operand[i] = mlo_operand_unscaled(&r->in, n->input[i], &scale);
        if (ok && found[i])
            operand[i] = t[i].beside ? mlo_x_turned_beside(x, &r->in, &t[i], operand[i])
                                     : mlo_x_turned(x, &r->in, &t[i], operand[i]);
        ok = ok && operand[i];
    }
    for (int i = 0; i < 2; i++) mlo_turned_free(r->in.m, &t[i]);
    if (!ok) {
        x->n_made = 0;
        return;
    }
    const char *y = MLO_X(x, "MatMul", operand[0], operand[1]);
    mlo_x_out(x, 0, scale == 1 ? y : MLO_X(x, "Mul", y, mlo_x_number(x, scale)));
}
