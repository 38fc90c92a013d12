/* bind: sizes for dimensions that a model leaves open.
 *
 * in:  a model; the options "dim" (NAME=N) and "shape" (INPUT=1x128), each as often as you like; "open" (N, NxSIDE).
 * out: the sizes, in the types of its values. With "open", what nobody bound is one frame of N tokens, or one
 *      image, where it can be told what it is.
 *
 * invariant: a symbol is bound wherever it stands; a size that the model says does not change.
 * example: --dim seq=32: input_ids [1, seq] is [1, 32].
 * cost: O(values) for each option.
 */

typedef struct {
    const char *name;
    int64_t value;
    size_t hits;
} mlo_binding;

static int mlo_bind_dim(mlo *m, void *dim, void *user) {
    mlo_dim *d = (mlo_dim *)dim;
    mlo_binding *b = (mlo_binding *)user;
    (void)m;
    if (mlo_eq(d->param, b->name)) {
        d->param = NULL;
        d->value = b->value;
        d->has |= MLO_HAS(1);
        b->hits++;
    }
    return 0;
}

/* Appends a dimension's symbol to a list of names in text, once. */
static int mlo_list_dim(mlo *m, void *dim, void *user) {
    mlo_dim *d = (mlo_dim *)dim;
    mlo_text *t = (mlo_text *)user;
    if (!d->param || !*d->param || t->n > 400) return 0;
    const char *quoted = mlo_format(m, "'%s'", d->param);
    if (!quoted || (t->n && strstr(t->text, quoted))) return mlo_failed(m);
    if (t->n) mlo_puts(t, ", ");
    mlo_puts(t, quoted);
    return mlo_failed(m);
}

/* The symbolic dimensions of the graph's inputs, for people: "'batch', 'seq'". Valid until the
 * handle closes. */
static const char *mlo_open_dims(mlo *m) {
    mlo_text t = { m, NULL, 0, 0 };
    mlo_graph *g = m->model->graph;
    for (size_t i = 0; i < g->n_input; i++)
        if (mlo_each_message(m, MLO_M_VALUE_INFO, g->input[i], MLO_M_DIM, mlo_list_dim, &t)) break;
    const char *s = mlo_intern(m, t.n ? t.text : "none");
    mlo_text_free(&t);
    return mlo_or_empty(s);
}

/* "NAME=VALUE", cut at the last '='. */
static int mlo_cut_option(mlo *m, const char *flag, const char *text, const char **name,
    const char **value, const char *form) {
    const char *eq = strrchr(text, '=');
    if (!eq || eq == text)
        return mlo_fail_at(
            m, MLO_E_USAGE, NULL, "--%s %s: write it as --%s %s", flag, text, flag, form);
    *value = eq + 1;
    return (*name = mlo_intern_n(m, text, (size_t)(eq - text))) ? 0 : mlo_failed(m);
}

static int mlo_bind(mlo *m, const char *name, int64_t value) {
    mlo_binding b = { name, value, 0 };
    mlo_each_message(m, MLO_M_GRAPH, m->model->graph, MLO_M_DIM, mlo_bind_dim, &b);
    return b.hits > 0;
}

static int mlo_option_dim(mlo *m, const char *text) {
    const char *name, *value;
    uint64_t n;
    if (mlo_cut_option(m, "dim", text, &name, &value, "seq=32")) return mlo_failed(m);
    if (!mlo_parse_u64(value, &n) || !n || n > INT32_MAX)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--dim %s: '%s' is not a size, a whole number of 1 or more", text, value);
    if (mlo_bind(m, name, (int64_t)n)) return 0;
    return mlo_fail_at(m, MLO_E_USAGE, NULL,
        "--dim %s: no open dimension is called '%s' (is it bound already?); open dimensions of the "
        "inputs: %s",
        text, name, mlo_open_dims(m));
}

/* The shape of an input, made when it had none of this rank. NULL when the input already has
 * another rank. */
static mlo_shape *mlo_input_shape(mlo *m, mlo_value_info *v, size_t rank) {
    mlo_form none = { MLO_UNDEFINED, -1, { 0 } };
    if (!v->type && !(v->type = mlo_type_new(m, &none))) return NULL;
    if (!v->type->tensor) return NULL;
    mlo_shape *s = v->type->tensor->shape;
    if (s) return s->n_dim == rank ? s : NULL;
    if (!(s = MLO_NEW(m, mlo_shape)) || !(s->dim = MLO_NEW_N(m, mlo_dim, mlo_room(rank))))
        return NULL;
    s->n_dim = rank;
    return v->type->tensor->shape = s;
}

/* Which of the graph's inputs has a name, n_input: none. */
static size_t mlo_input_of(const mlo_graph *g, const char *name) {
    size_t i = 0;
    while (i < g->n_input && !mlo_eq(g->input[i]->name, name)) i++;
    return i;
}

/* Which input of the model is called so; their number, when none is: `asks`, who wants it, says which may be meant. */
static size_t mlo_input_called(mlo *m, const char *asks, const char *name) {
    const mlo_graph *g = m->model->graph;
    const size_t at = mlo_input_of(g, name);
    const char *near = NULL;
    if (at < g->n_input) return at;
    for (size_t i = 0; i < g->n_input; i++) mlo_nearer(name, g->input[i]->name, &near);
    const char *first = g->n_input ? g->input[0]->name : "";
    mlo_fail_at(m, MLO_E_USAGE, NULL, "%s: no input is called '%s'; %s '%s'%s", asks, name,
        near ? "did you mean" : "the first is called", near ? near : first, near ? "?" : "");
    return g->n_input;
}

static int mlo_option_shape(mlo *m, const char *text) {
    const char *name, *value;
    uint64_t dims[MLO_MAX_RANK];
    size_t rank = 0;
    mlo_graph *g = m->model->graph;
    if (mlo_cut_option(m, "shape", text, &name, &value, "input_ids=1x128")) return mlo_failed(m);
    const size_t at = mlo_input_called(m, mlo_format(m, "--shape %s", text), name);
    if (at == g->n_input) return mlo_failed(m);
    mlo_value_info *input = g->input[at];
    for (int more = *value != 0; more;) {
        char digits[20];
        size_t n = strcspn(value, "x");
        if (n) {
            memcpy(digits, value, n < sizeof digits ? n : 0);
            digits[n < sizeof digits ? n : 0] = 0;
        }
        if (!n || rank == MLO_MAX_RANK || !mlo_parse_u64(digits, &dims[rank])
            || dims[rank] > INT32_MAX)
            return mlo_fail_at(m, MLO_E_USAGE, NULL,
                "--shape %s: write at most %d sizes with x between them, as in 1x128", text,
                MLO_MAX_RANK);
        rank++;
        more = value[n] == 'x';
        value += n + (size_t)more;
    }
    mlo_shape *s = mlo_input_shape(m, input, rank);
    if (!s)
        return mlo_fail_at(
            m, MLO_E_SHAPE, name, "--shape %s has rank %zu, the input has another", text, rank);
    for (size_t i = 0; i < rank; i++) {
        mlo_dim *d = &s->dim[i];
        if (d->param) {
            mlo_bind(m, d->param, (int64_t)dims[i]);
            continue;
        }
        if (d->has && d->value != (int64_t)dims[i])
            return mlo_fail_at(m, MLO_E_SHAPE, name,
                "--shape %s: dimension %zu is %lld in the model and cannot be changed; export it "
                "anew",
                text, i, (long long)d->value);
        d->value = (int64_t)dims[i];
        d->has |= MLO_HAS(1);
    }
    return 0;
}

/* Dims before shapes: a shape may say again what a dim said, but a dim that a shape bound is no
 * longer there to be named. Each option is used up: a later run of the stage, on the same handle,
 * does not look for names that are gone. */
static int mlo_bind_options(mlo *m) {
    for (int shapes = 0; shapes < 2; shapes++)
        for (size_t i = 0; i < m->n_options; i++)
            if (mlo_eq(m->options[i].key, shapes ? "shape" : "dim")
                && (shapes ? mlo_option_shape : mlo_option_dim)(m, m->options[i].value))
                return mlo_failed(m);
    mlo_opt_used(m, "dim");
    mlo_opt_used(m, "shape");
    return 0;
}

/* ---- what nobody bound -------------------------------------------------------- */

static int mlo_is_ids(const mlo_tensor_type *t) {
    return t->elem_type == MLO_INT64 || t->elem_type == MLO_INT32;
}

/* The form of weights, quantized or not. */
static mlo_form mlo_weights_form(const mlo_graph *g, const char *name) {
    const mlo_value *v = mlo_value_of(g, name);
    const mlo_node *n = v && !v->tensor ? v->producer : NULL;
    const int given = mlo_is(n, "DequantizeLinear") && mlo_has_input(n, 0);
    return mlo_form_of(given ? mlo_value_of(g, n->input[0]) : v);
}

/* The channels of an image, of the convolution over so many dimensions that reads it, cast, quantized or not, or of a
 * sound; 0: none does, it is neither. */
static int64_t mlo_open_channels(const mlo_graph *g, const char *input, int over, int depth) {
    const mlo_value *v = mlo_value_of(g, input);
    int64_t channels = 0;
    for (size_t i = 0; v && i < v->n_use && depth < 4 && !channels; i++) {
        const mlo_node *n = v->use[i];
        const int conv = mlo_is(n, "Conv") || mlo_is(n, "ConvInteger");
        if (conv && mlo_has_input(n, 1) && n->input[0] == input) {
            const mlo_form w = mlo_weights_form(g, n->input[1]);
            if (w.rank == over + 2) channels = mlo_times(w.dims[1], mlo_int(n, "group", 1));
        } else if (n->n_output
            && (mlo_is(n, "Cast") || mlo_is(n, "Identity") || mlo_is(n, "Unsqueeze")
                || mlo_is(n, "QuantizeLinear") || mlo_is(n, "DequantizeLinear")
                || mlo_is(n, "DynamicQuantizeLinear")))
            channels = mlo_open_channels(g, n->output[0], over, depth + 1);
    }
    return channels;
}

/* The option "open": N tokens, and the side of an image behind an x. */
typedef struct {
    int64_t tokens; /* 0: it is not given */
    int64_t side; /* 0: that is not */
} mlo_opening;

static mlo_opening mlo_open_said(mlo *m) {
    const char *said = mlo_opt(m, "open"), *x = said ? strchr(said, 'x') : NULL;
    const char *first = x ? mlo_intern_n(m, said, (size_t)(x - said)) : said;
    mlo_opening o = { 0, 0 };
    uint64_t tokens = 0, side = 0;
    if (!first) return o;
    if (!mlo_parse_u64(first, &tokens) || tokens < 1 || tokens > INT32_MAX
        || (x && (!mlo_parse_u64(x + 1, &side) || side < 1 || side > INT32_MAX))) {
        mlo_fail_at(m, MLO_E_USAGE, NULL,
            "open is '%s'; give a number of tokens, and the side of images behind an x", said);
        return o;
    }
    o.tokens = (int64_t)tokens;
    o.side = (int64_t)side;
    return o;
}

enum { MLO_OPEN_SAMPLES = 16000 }; /* of a sound: a second of it, as speech models take it */

/* What an input is, by what reads it, in the order in which names get their sizes: a sound, [batch, samples] or
 * [batch, 1, samples]; ids, or a mask; others. */
typedef enum { MLO_OPEN_SOUND, MLO_OPEN_IDS, MLO_OPEN_OTHERS } mlo_opened;

static mlo_opened mlo_open_kind(const mlo_graph *g, const mlo_value_info *input) {
    const mlo_tensor_type *t = input->type->tensor;
    const size_t rank = t->shape->n_dim;
    if (mlo_is_ids(t)) return MLO_OPEN_IDS;
    return (rank == 2 || rank == 3) && mlo_open_channels(g, input->name, 1, 0) == 1
        ? MLO_OPEN_SOUND
        : MLO_OPEN_OTHERS;
}

/* What dimension d of an input is, where its place or its name tells: of ids and their masks [batch, tokens], of
 * images [batch, channels, side, side], of others the name, of hidden states [batch, tokens, C], C known, their
 * place; or [batch, n, ..] where n is more than one and not open. 0: nothing does, as of a size that follows from
 * others ("n + 1"). */
static int64_t mlo_open_size(
    const mlo_tensor_type *t, mlo_opened kind, size_t d, const mlo_opening *o, int64_t channels) {
    const char *name = t->shape->dim[d].param;
    if (strpbrk(name, " +-*/")) return 0;
    if (kind == MLO_OPEN_SOUND) return d + 1 < t->shape->n_dim ? 1 : MLO_OPEN_SAMPLES;
    if (kind == MLO_OPEN_IDS && t->shape->n_dim == 2) return d ? o->tokens : 1;
    if (channels > 0 && t->shape->n_dim == 4) return !d ? 1 : d == 1 ? channels : o->side;
    if (strstr(name, "batch")) return 1;
    if (strstr(name, "seq")) return o->tokens;
    if (t->shape->n_dim == 3 && t->shape->dim[2].value > 1) return d ? o->tokens : 1;
    return !d && t->shape->n_dim > 2 && t->shape->dim[1].value > 1 ? 1 : 0;
}
/* (Of a context all that is open is bound already.) */
static int mlo_bind_open(mlo *m) {
    const mlo_graph *g = m->model->graph;
    const mlo_opening o = mlo_open_said(m);
    mlo_text list = { m, NULL, 0, 0 };
    if (!o.tokens || mlo_opt(m, "context")) return mlo_failed(m);
    for (int kind = MLO_OPEN_SOUND; kind <= MLO_OPEN_OTHERS;
        kind++) /* sounds and ids say what others' names mean */
        for (size_t i = 0; i < g->n_input; i++) {
            const mlo_tensor_type *t = g->input[i]->type ? g->input[i]->type->tensor : NULL;
            if (!t || !t->shape || mlo_open_kind(g, g->input[i]) != (mlo_opened)kind) continue;
            const int64_t channels = mlo_open_channels(g, g->input[i]->name, 2, 0);
            for (size_t d = 0; d < t->shape->n_dim; d++) {
                const char *name = t->shape->dim[d].param;
                const int64_t n = name && *name
                    ? mlo_open_size(t, (mlo_opened)kind, d, &o, channels)
                    : 0;
                if (!n) continue;
                mlo_printf(&list, "%s'%s' is %lld", list.n ? ", " : "", name, (long long)n);
                mlo_bind(m, name, n);
            }
        }
    if (list.n)
        mlo_warn(
            m, "dimensions that the model leaves open: %s; --dim NAME=N says otherwise", list.text);
    mlo_text_free(&list);
    return mlo_failed(m);
}
