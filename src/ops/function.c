/* function: ONNX functions, written as text.
 *
 * in:  a text, one node a line, as in a textbook.
 * out: the FunctionProto, at the model's own opset.
 *
 *     Requant <to, lo, hi> (x, p) => (y)
 *     acc = Cast <to=7> (x)
 *     l = Constant <value_int=@lo> ()
 *
 * @name refers to an attribute of the function; <.., groups=1> says what it is where a node has
 * none. The text gives a reduction its axes as an
 * attribute; they become an input where the opset wants one. Integer constants become tensors where
 * the opset wants these.
 *
 * cost: O(text).
 */

typedef struct {
    mlo *m;
    const char *p;
    mlo_function *f;
    int64_t opset;
} mlo_reader;

static void mlo_skip_spaces(mlo_reader *r) {
    while (*r->p == ' ' || *r->p == '\n') r->p++;
}
static int mlo_take(mlo_reader *r, const char *token) {
    mlo_skip_spaces(r);
    if (!mlo_starts(r->p, token)) return 0;
    r->p += strlen(token);
    return 1;
}
static const char *mlo_word(mlo_reader *r) {
    mlo_skip_spaces(r);
    const char *start = r->p;
    while ((*r->p >= 'a' && *r->p <= 'z') || (*r->p >= 'A' && *r->p <= 'Z')
        || (*r->p >= '0' && *r->p <= '9') || *r->p == '_')
        r->p++;
    return mlo_intern_n(r->m, start, (size_t)(r->p - start));
}
static int64_t mlo_number(mlo_reader *r) {
    char *end;
    mlo_skip_spaces(r);
    long long v = strtoll(r->p, &end, 10);
    r->p = end;
    return v;
}

/* One attribute after its name: an integer, a list of integers, or @reference. */
static void mlo_read_attr(mlo_reader *r, mlo_node *n, const char *name) {
    enum { MOST = 260 }; /* the longest table of a kernel has 257 */
    int64_t list[MOST];
    size_t count = 0;
    if (mlo_take(r, "@")) {
        mlo_attr *a = mlo_attr_new(r->m, n, name, MLO_ATTR_INT);
        if (a) a->ref = mlo_word(r);
    } else if (mlo_take(r, "[")) {
        while (!mlo_take(r, "]") && count < MOST) {
            list[count++] = mlo_number(r);
            mlo_take(r, ",");
        }
        mlo_attr_ints(r->m, n, name, list, count);
    } else
        mlo_attr_int(r->m, n, name, mlo_number(r));
}

/* axes as an attribute -> a Constant before the node, where the node's opset has axes as an input. */
static void mlo_axes_to_input(mlo_reader *r, mlo_node *n) {
    mlo_attr *axes = mlo_attr_of(n, "axes");
    int input = r->opset >= (mlo_eq(n->op, "ReduceSum") || mlo_eq(n->op, "Unsqueeze") ? 13 : 18);
    if (!axes || !input) return;
    const char *name = mlo_format(r->m, "%s_axes", n->output[0]);
    mlo_node *c = mlo_node_new(r->m, "Constant", name);
    if (!c || mlo_node_output(r->m, c, name)
        || mlo_attr_ints(r->m, c, "value_ints", axes->ints, axes->n_ints))
        return;
    if (MLO_PUSH(r->m, r->f->node, r->f->n_node, c)) mlo_node_input(r->m, n, name);
    mlo_attr_drop(n, "axes");
}

/* An integer constant as a tensor, where the opset has no value_int yet. */
static void mlo_int_to_tensor(mlo_reader *r, mlo_node *n) {
    mlo_attr *a = mlo_attr_of(n, "value_int");
    mlo_array *v = a && !a->ref && r->opset < 12 ? mlo_array_new(r->m, MLO_INT64, 0, NULL) : NULL;
    if (!v) return;
    *(int64_t *)v->data = a->i;
    a->name = mlo_intern(r->m, "value");
    a->type = MLO_ATTR_TENSOR;
    a->has = MLO_HAS(20);
    a->i = 0;
    a->t = mlo_tensor_from(r->m, NULL, v);
    mlo_array_free(r->m, v);
}

static void mlo_read_node(mlo_reader *r) {
    const char *out = mlo_word(r), *second = mlo_take(r, ",") ? mlo_word(r) : NULL;
    mlo_take(r, "=");
    mlo_node *n = mlo_node_new(r->m, mlo_word(r), NULL);
    if (!n || mlo_node_output(r->m, n, out) || (second && mlo_node_output(r->m, n, second))) return;
    n->name = out;
    if (mlo_take(r, "<"))
        while (!mlo_take(r, ">") && *r->p) {
            const char *name = mlo_word(r);
            mlo_take(r, "=");
            mlo_read_attr(r, n, name);
            mlo_take(r, ",");
        }
    mlo_take(r, "(");
    while (!mlo_take(r, ")") && *r->p && !r->m->error.code) {
        mlo_node_input(r->m, n, mlo_word(r));
        mlo_take(r, ",");
    }
    mlo_axes_to_input(r, n);
    mlo_int_to_tensor(r, n);
    MLO_PUSH(r->m, r->f->node, r->f->n_node, n);
}

/* What an attribute of the function is where a node does not say. */
static void mlo_read_default(mlo_reader *r, const char *name) {
    mlo_attr *a = MLO_NEW(r->m, mlo_attr);
    if (!a) return;
    a->name = name;
    a->type = MLO_ATTR_INT;
    a->i = mlo_number(r);
    a->has = MLO_HAS(20) | MLO_HAS(3);
    MLO_PUSH(r->m, r->f->attr_proto, r->f->n_attr_proto, a);
}

/* The FunctionProto of a text and of what follows it (NULL: nothing), at an opset. NULL without
 * memory. */
static mlo_function *mlo_function_of(mlo *m, const char *text, const char *ending, int64_t opset) {
    mlo_reader r = { m, text, MLO_NEW(m, mlo_function), opset };
    mlo_function *f = r.f;
    if (!f || !(f->opset = MLO_NEW_N(m, mlo_opset, mlo_room(1)))) return NULL;
    f->name = mlo_word(&r);
    f->domain = mlo_intern(m, "mlo");
    f->opset[0].version = opset;
    f->opset[0].has = MLO_HAS(2);
    f->opset[0].domain = mlo_intern(m, "");
    f->n_opset = 1;
    if (mlo_take(&r, "<"))
        while (!mlo_take(&r, ">") && *r.p && !m->error.code) {
            const char *a = mlo_word(&r);
            if (mlo_take(&r, "="))
                mlo_read_default(&r, a);
            else
                MLO_PUSH(m, f->attr, f->n_attr, a);
            mlo_take(&r, ",");
        }
    mlo_take(&r, "(");
    while (!mlo_take(&r, ")") && *r.p && !m->error.code) {
        const char *x = mlo_word(&r);
        MLO_PUSH(m, f->input, f->n_input, x);
        mlo_take(&r, ",");
    }
    mlo_take(&r, "=>");
    mlo_take(&r, "(");
    while (!mlo_take(&r, ")") && *r.p && !m->error.code) {
        const char *y = mlo_word(&r);
        MLO_PUSH(m, f->output, f->n_output, y);
        mlo_take(&r, ",");
    }
    for (mlo_skip_spaces(&r); *r.p && !m->error.code; mlo_skip_spaces(&r)) mlo_read_node(&r);
    r.p = mlo_or_empty(ending);
    for (mlo_skip_spaces(&r); *r.p && !m->error.code; mlo_skip_spaces(&r)) mlo_read_node(&r);
    return m->error.code ? NULL : f;
}
