/* qconfig: fixed point as MASE's q_config says it.
 *
 * in:  the text of a JSON object, by op type or by node name (option q-config-json; the command
 *     line's --q-config FILE.json).
 * out: what it fixes on the signals and sublayers it names (mlo_given): widths, and scales 2^-frac.
 *
 * A number of width w and fraction f is clip(round(x 2^f), -2^(w-1), 2^(w-1) - 1) 2^-f. The keys:
 *     data_in     how the sublayer reads its operands (of matmul: the queries)
 *     data_out    how its result is made
 *     weight      of linear and of a norm (gamma); of matmul: the keys and the values
 *     bias        of linear and of a norm (beta): rounded to its own fraction, then aligned to the
 *                 accumulator
 * Weights and biases are rounded half to even; activations half up, which is adding one half before
 * the shift. The name null, or bypass: true, fixes nothing. The softmax inside an attention is no
 * op of its own: its probabilities have 8 bits. A config fixes all the layers of a loop alike.
 *
 * invariant: nothing is passed over: an unknown key, type or name, an impossible width, and two
 *     entries that contradict each other are refused; the error names the sublayer, the value and
 *     what to write instead.
 * example: {"by": "type", "default": {"config": {"name": null}}, "linear": {"config":
 *     {"name": "integer", "data_in_width": 8, "data_in_frac_width": 3, "weight_width": 8,
 *     "weight_frac_width": 3, "bias_width": 8, "bias_frac_width": 3}}}
 * cost: negligible.
 */
enum { MLO_Q_IN, MLO_Q_WEIGHT, MLO_Q_BIAS, MLO_Q_OUT, MLO_Q_PARTS };

static const char *const mlo_q_part[] = { "data_in", "weight", "bias", "data_out" };

typedef struct {
    int width; /* bits */
    int frac; /* bits of them behind the point */
    int is; /* 1: it is given */
} mlo_q_fixed;

typedef struct {
    mlo_given **slot;
    const mlo_sublayer *by;
    int part;
    mlo_q_fixed f;
} mlo_q_done;

typedef struct {
    mlo_quantizer *q;
    cJSON *json;
    int by_name;
    mlo_q_done *done;
    size_t n_done;
    mlo_q_fixed part[MLO_Q_PARTS];
} mlo_q_config;

/* MASE's op types: what a sublayer of that type has. Those without parts are known, but never in a
 * loop. */
static const struct {
    const char *type;
    mlo_block_kind kind;
    const char *has;
} mlo_q_types[] = {

    { "linear", MLO_LINEAR, "0123" },
    { "matmul", MLO_ATTENTION, "013" },
    { "bmm", MLO_ATTENTION, "013" },
    { "layer_norm", MLO_NORM, "0123" },
    { "rms_norm", MLO_NORM, "0123" },
    { "add", MLO_RESIDUAL, "03" },
    { "rotary", MLO_ROTARY, "03" },
    { "mul", MLO_GATE, "03" },
    { "gelu", MLO_UNARY, "03" },
    { "relu", MLO_UNARY, "03" },
    { "silu", MLO_UNARY, "03" },
    { "tanh", MLO_UNARY, "03" },
    { "sigmoid", MLO_UNARY, "03" },
    { "selu", MLO_UNARY, "03" },
    { "softplus", MLO_UNARY, "03" },
    { "softsign", MLO_UNARY, "03" },
    { "function", MLO_UNARY, "03" },
    { "conv1d", MLO_CONVOLUTION, "" },
    { "conv2d", MLO_CONVOLUTION, "" },
    { "batch_norm2d", MLO_NORM, "" },
    { "embedding", MLO_LINEAR, "" },
};

enum { MLO_Q_TYPES = sizeof mlo_q_types / sizeof *mlo_q_types };

static int mlo_q_type_is(const mlo_sublayer *b, const char *type) {
    return mlo_eq(b->card->type(b), mlo_eq(type, "bmm") ? "matmul" : type);
}

static int mlo_q_type_at(const char *type) {
    for (int i = 0; i < MLO_Q_TYPES; i++)
        if (mlo_eq(mlo_q_types[i].type, type)) return i;
    return -1;
}

/* Equal but for what separates words: MASE has _ where scopes have dots. The name may have more in
 * front. */
static int mlo_q_same_name(const char *name, const char *scope) {
    size_t n = strlen(name), k = strlen(scope);
    if (!k || n < k) return 0;
    for (size_t i = 0; i < k; i++) {
        char a = name[n - k + i], b = scope[i];
        if (a != b && !((a == '_' || a == '.' || a == '/') && (b == '_' || b == '.' || b == '/')))
            return 0;
    }
    return n == k || name[n - k - 1] == '_' || name[n - k - 1] == '.' || name[n - k - 1] == '/';
}

/* Is this the sublayer's name: of its node, of its value, or of the module it is? */
static int mlo_q_named(const mlo_sublayer *b, const char *name) {
    const char *scope = mlo_meta_get(b->node->meta, b->node->n_meta, mlo_key_scope);
    const char *last = scope ? strrchr(scope, '/') : NULL;
    return mlo_eq(name, mlo_node_name(b->node)) || mlo_eq(name, b->out)
        || (scope && b->kind != MLO_RESIDUAL && mlo_q_same_name(name, last ? last + 1 : scope));
}

/* ---- reading -------------------------------------------------------------- */

static int mlo_q_whole(mlo *m, const char *entry, const cJSON *v, int low, int high, int *to) {
    double x = cJSON_IsNumber(v) ? v->valuedouble : low - 1;
    if (!(x >= low && x <= high) || floor(x) < x)
        return mlo_fail_at(m, MLO_E_FORMAT, entry,
            "\"%s\" of the q_config is no whole number from %d to %d", v->string, low, high);
    *to = (int)x;
    return 0;
}

/* One key of a config. `has`: the parts that ops of this kind have. */
static int mlo_q_key(
    mlo_q_config *c, const char *entry, const char *has, const cJSON *v, int *seen) {
    mlo *m = c->q->m;
    if (mlo_eq(v->string, "name") || mlo_eq(v->string, "noparse") || mlo_eq(v->string, "bypass"))
        return 0;
    if (mlo_eq(v->string, "floor"))
        return cJSON_IsFalse(v) ? 0
                                : mlo_fail_at(m, MLO_E_UNSUPPORTED, entry,
                                      "\"floor\" of the q_config: mlo rounds to the nearest; leave "
                                      "it out, or write false");
    for (int p = 0; p < MLO_Q_PARTS; p++) {
        size_t n = strlen(mlo_q_part[p]);
        if (strncmp(v->string, mlo_q_part[p], n)) continue;
        int width = mlo_eq(v->string + n, "_width"), frac = mlo_eq(v->string + n, "_frac_width");
        if (!width && !frac) continue;
        if (!strchr(has, '0' + p))
            return mlo_fail_at(m, MLO_E_UNSUPPORTED, entry,
                "\"%s\" of the q_config: there is no %s in this op; leave it out", v->string,
                mlo_q_part[p]);
        seen[p] |= width ? 1 : 2;
        c->part[p].is = 1;
        return width ? mlo_q_whole(m, entry, v, 2, 32, &c->part[p].width)
                     : mlo_q_whole(m, entry, v, -32, 32, &c->part[p].frac);
    }
    return mlo_fail_at(m, MLO_E_FORMAT, entry,
        "\"%s\" of the q_config is not known; there are "
        "{data_in,weight,bias,data_out}_{width,frac_width}%s",
        v->string, strstr(v->string, "isqrt") ? "; mlo's norm is exact inside" : "");
}

/* Reads {"config": {...}} into c->part. */
static int mlo_q_entry(mlo_q_config *c, const char *has, const cJSON *entry) {
    mlo *m = c->q->m;
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(entry, "config");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(config, "name");
    const cJSON *v = NULL;
    int seen[MLO_Q_PARTS] = { 0 };
    memset(c->part, 0, sizeof c->part);
    if (!cJSON_IsObject(config) || (entry->child && entry->child->next))
        return mlo_fail_at(m, MLO_E_FORMAT, entry->string,
            "this entry of the q_config is not {\"config\": {\"name\": .., ..}}");
    if (cJSON_IsNull(name) || cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(config, "bypass")))
        return 0;
    if (!cJSON_IsString(name)
        || (strcmp(name->valuestring, "integer") && strcmp(name->valuestring, "fixed")))
        return mlo_fail_at(m, MLO_E_UNSUPPORTED, entry->string,
            "\"name\" of the q_config is %s; \"integer\" (fixed point) and null are supported",
            cJSON_IsString(name) ? name->valuestring : "missing");
    cJSON_ArrayForEach(v, config) if (mlo_q_key(c, entry->string, has, v, seen)) return mlo_failed(
        m);
    for (int p = 0; p < MLO_Q_PARTS; p++)
        if (seen[p] && seen[p] != 3)
            return mlo_fail_at(m, MLO_E_FORMAT, entry->string,
                "the q_config has \"%s_%s\" without \"%s_%s\"; give both", mlo_q_part[p],
                seen[p] == 1 ? "width" : "frac_width", mlo_q_part[p],
                seen[p] == 1 ? "frac_width" : "width");
    return 0;
}

/* ---- fixing --------------------------------------------------------------- */

/* *slot := width and fraction of `part`, for `count` scales, unless another entry has said so
 * already. */
static int mlo_q_fix(mlo_q_config *c, const mlo_sublayer *b, int part, mlo_given **slot,
    const char *what, int64_t count) {
    mlo *m = c->q->m;
    mlo_q_fixed f = c->part[part];
    for (size_t i = 0; i < c->n_done; i++)
        if (c->done[i].slot == slot) {
            mlo_q_done *d = &c->done[i];
            if (d->f.width == f.width && d->f.frac == f.frac) return 0;
            return mlo_fail(m, MLO_E_UNSUPPORTED, b->node,
                "the q_config contradicts itself about '%s': %s of '%s' (%s) says width %d, "
                "fraction %d, and %s of '%s' (%s) width %d, fraction %d; give both the same",
                what, mlo_q_part[d->part], d->by->out, d->by->card->type(d->by), d->f.width,
                d->f.frac, mlo_q_part[part], b->out, b->card->type(b), f.width, f.frac);
        }
    mlo_q_done *done = MLO_NEW(m, mlo_q_done);
    mlo_given *g = MLO_NEW(m, mlo_given);
    if (!done || !g || !(g->scale = MLO_NEW_N(m, double, (size_t)count))) return mlo_failed(m);
    g->bits = f.width;
    g->sign = 1;
    for (int64_t i = 0; i < count; i++) g->scale[i] = ldexp(1, -f.frac);
    *slot = g;
    mlo_q_done record = { slot, b, part, f };
    mlo_q_done *more = MLO_NEW_N(m, mlo_q_done, c->n_done + 1);
    if (!more) return mlo_failed(m);
    if (c->n_done) memcpy(more, c->done, c->n_done * sizeof *more);
    c->done = more;
    c->done[c->n_done++] = record;
    return 0;
}

/* What c->part says, of one sublayer. */
static int mlo_q_sublayer(mlo_q_config *c, mlo_sublayer *b) {
    mlo_quantizer *q = c->q;
    int64_t loops = q->scan.iterations;
    int wide = b->card->reads_wide;
    for (int k = 0; k < b->n_in; k++) {
        mlo_signal *s = mlo_signal_of(q, b->in[k]);
        int part = b->kind == MLO_ATTENTION && k && c->part[MLO_Q_WEIGHT].is ? MLO_Q_WEIGHT
                                                                             : MLO_Q_IN;
        if (!s
            || (c->part[part].is
                && mlo_q_fix(c, b, part, wide ? &s->given_wide : &s->given_narrow, s->name, loops)))
            return mlo_failed(q->m);
    }
    mlo_signal *y = mlo_signal_of(q, b->out);
    if (!y
        || (c->part[MLO_Q_OUT].is
            && mlo_q_fix(
                c, b, MLO_Q_OUT, y->wide ? &y->given_wide : &y->given_narrow, y->name, loops)))
        return mlo_failed(q->m);
    if (b->kind == MLO_ATTENTION) return 0;
    if (b->weight && c->part[MLO_Q_WEIGHT].is
        && mlo_q_fix(c, b, MLO_Q_WEIGHT, &b->weight_given, b->weight, loops * y->channels))
        return mlo_failed(q->m);
    if (b->bias && c->part[MLO_Q_BIAS].is
        && mlo_q_fix(c, b, MLO_Q_BIAS, &b->bias_given, b->bias, loops * y->channels))
        return mlo_failed(q->m);
    return 0;
}

/* The entry of a sublayer, else the default; NULL: none. */
static const cJSON *mlo_q_entry_of(const mlo_q_config *c, const mlo_sublayer *b) {
    const cJSON *e = NULL;
    cJSON_ArrayForEach(e, c->json) if (!mlo_eq(e->string, "by") && !mlo_eq(e->string, "default")
        && (c->by_name ? mlo_q_named(b, e->string) : mlo_q_type_is(b, e->string))) return e;
    return cJSON_GetObjectItemCaseSensitive(c->json, "default");
}

/* A name or type that fits nothing: refused, unless it is a type that loops without it may have. */
static int mlo_q_unused(mlo_q_config *c, const cJSON *e) {
    mlo *m = c->q->m;
    for (size_t k = 0; k < c->q->r.n_block; k++)
        if (c->by_name ? mlo_q_named(c->q->r.block[k], e->string)
                       : mlo_q_type_is(c->q->r.block[k], e->string))
            return 0;
    if (!c->by_name && mlo_q_type_at(e->string) >= 0) {
        mlo_warn(m, "the q_config has an entry for %s, of which the loop has none", e->string);
        return 0;
    }
    mlo_text t = { m, NULL, 0, 0 };
    for (size_t k = 0; k < c->q->r.n_block; k++) {
        const mlo_sublayer *b = c->q->r.block[k];
        int again = 0;
        for (size_t j = 0; j < k && !c->by_name; j++)
            again |= mlo_q_type_is(b, c->q->r.block[j]->card->type(c->q->r.block[j]));
        if (!again)
            mlo_printf(&t, "%s%s", t.n ? ", " : "",
                c->by_name ? mlo_node_name(b->node) : b->card->type(b));
    }
    mlo_fail_at(m, MLO_E_FORMAT, e->string,
        "the q_config names %s that the loop does not have; it has: %s%s",
        c->by_name ? "a node" : "an op type", t.text ? t.text : "nothing",
        c->by_name ? " (one name stands for all layers)" : "");
    mlo_text_free(&t);
    return mlo_failed(m);
}

static int mlo_q_apply(mlo_q_config *c) {
    const cJSON *by = cJSON_GetObjectItemCaseSensitive(c->json, "by"), *e = NULL;
    mlo *m = c->q->m;
    if (!cJSON_IsString(by) || (strcmp(by->valuestring, "type") && strcmp(by->valuestring, "name")))
        return mlo_fail_at(m, MLO_E_FORMAT, NULL,
            "\"by\" of the q_config is %s; it must be \"type\" or \"name\"",
            cJSON_IsString(by) ? by->valuestring : "missing");
    c->by_name = !strcmp(by->valuestring, "name");
    cJSON_ArrayForEach(e, c->json) if (!mlo_eq(e->string, "by") && !mlo_eq(e->string, "default")
        && mlo_q_unused(c, e)) return mlo_failed(m);
    for (size_t k = 0; k < c->q->r.n_block; k++) {
        mlo_sublayer *b = c->q->r.block[k];
        int at = mlo_q_type_at(b->card->type(b));
        if (!(e = mlo_q_entry_of(c, b))) continue;
        /* a default is for all kinds of ops: what one does not have is passed over */
        if (mlo_q_entry(
                c, mlo_eq(e->string, "default") ? "0123" : mlo_q_types[at < 0 ? 0 : at].has, e)
            || mlo_q_sublayer(c, b))
            return mlo_failed(m);
    }
    return 0;
}

/* Fixes what the q_config says, if there is one. */
static int mlo_qconfig(mlo_quantizer *q) {
    mlo *m = q->m;
    const char *text = mlo_opt(m, "q-config-json"), *scale = mlo_opt(m, "scale"), *end = NULL;
    mlo_q_config c = { q, NULL, 0, NULL, 0, { { 0, 0, 0 } } };
    if (!text) return 0;
    if (scale && strcmp(scale, "pow2"))
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--scale %s with a q_config: its scales are powers of two; leave --scale out", scale);
    q->pow2 = 1;
    c.json = cJSON_ParseWithOpts(text, &end, 1);
    if (!cJSON_IsObject(c.json))
        mlo_fail_at(m, MLO_E_FORMAT, NULL,
            "the q_config is no JSON object like {\"by\": \"type\", \"linear\": {\"config\": "
            "{\"name\": \"integer\", ..}}}");
    else
        mlo_q_apply(&c);
    cJSON_Delete(c.json);
    return mlo_failed(m);
}
