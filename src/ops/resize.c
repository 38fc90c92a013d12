/* resize: a grid at other points than those it was given at.
 *
 * in:  a call of Resize with its output made: X, and scales or sizes of all axes, or of those listed.
 * out: the output, filled.
 *
 * An axis at a time. A point of the result lies at some place of the axis, by the coordinate
 * transformation. Nearest takes one element; linear and cubic weigh those that a kernel reaches, 1
 * or 2 elements to either side, or that much further where antialiasing makes a smaller axis.
 * Beyond the border lies the border's element, or nothing, where exclude_outside says so. Exporters
 * write it where positions that were learned for one image are taken to another; a model's loop
 * does not contain it, but what it makes is often constant.
 *
 * invariant: the weights of a point are divided by their sum.
 * example: [0, 4] by linear to 4 points, half_pixel: [0, 1, 3, 4].
 * cost: elements of the result, and between axes, x elements that a kernel reaches; in double.
 */

/* One axis of it. */
typedef struct {
    int64_t in; /* elements */
    int64_t out; /* points */
    double scale; /* points for an element */
} mlo_resized;

/* ---- how many points ------------------------------------------------------ */

/* Scales as they are said, of so many axes, to each. 0: they are not known. */
static int mlo_resize_scales(const mlo_shapes *s, int n, const int *axis, mlo_resized *to) {
    const mlo_array *a = mlo_present(s, 2) ? mlo_shape_value(s, 2) : NULL;
    if (!a || a->dtype != MLO_FLOAT || mlo_array_count(a) != n) return 0;
    for (int i = 0; i < n; i++) {
        const double scale = ((const float *)a->data)[i];
        mlo_resized *r = &to[axis[i]];
        if (!(scale > 0 && scale * (double)r->in < MLO_MAX_DIM))
            return mlo_fail(s->m, MLO_E_SHAPE, s->node, "a scale of %g", scale), 0;
        r->scale = scale;
        r->out = (int64_t)floor((double)r->in * (double)(float)scale);
    }
    return 1;
}

/* Sizes as they are said, stretched to, or the nearest that keep the ratio. 0: they are not known. */
static int mlo_resize_sizes(const mlo_shapes *s, int n, const int *axis, mlo_resized *to) {
    const int larger = mlo_string_is(s->node, "keep_aspect_ratio_policy", "not_smaller", 0),
              smaller = mlo_string_is(s->node, "keep_aspect_ratio_policy", "not_larger", 0);
    int64_t sizes[MLO_MAX_LIST];
    double one = 0;
    if (mlo_ints(s, NULL, 3, sizes) != n || !mlo_ints_known(sizes, n)) return 0;
    for (int i = 0; i < n; i++) {
        mlo_resized *r = &to[axis[i]];
        if (sizes[i] < 0 || sizes[i] > MLO_MAX_DIM || (!r->in && sizes[i]))
            return mlo_fail(s->m, MLO_E_SHAPE, s->node, "a size of %lld", (long long)sizes[i]), 0;
        r->out = sizes[i];
        r->scale = r->in ? (double)r->out / (double)r->in : 1;
        if (!i || (larger ? r->scale > one : r->scale < one)) one = r->scale;
    }
    for (int i = 0; (larger || smaller) && i < n; i++) {
        to[axis[i]].scale = one;
        to[axis[i]].out = (int64_t)floor(one * (double)to[axis[i]].in + 0.5);
    }
    return 1;
}

/* All axes of an input of this form; 0: not known (yet). */
static int mlo_resized_of(const mlo_shapes *s, const mlo_form *x, mlo_resized *to) {
    int64_t listed[MLO_MAX_LIST];
    int axis[MLO_MAX_RANK];
    const int k = mlo_ints(s, "axes", -1, listed), n = k < 0 ? x->rank : k;
    if (s->opset < 11)
        return mlo_fail(
                   s->m, MLO_E_UNSUPPORTED, s->node, "Resize of opset 10; export at 11 or more"),
               0;
    if (x->rank >= 0 && k > x->rank)
        return mlo_fail(s->m, MLO_E_SHAPE, s->node, "%d axes of %d", k, x->rank), 0;
    if (!mlo_form_known(x)) return 0;
    for (int i = 0; i < x->rank; i++) {
        to[i].in = to[i].out = x->dims[i];
        to[i].scale = 1;
    }
    for (int i = 0; i < n; i++) {
        axis[i] = i;
        if (k >= 0 && mlo_axis(s, listed[i], x->rank, &axis[i])) return 0;
    }
    return mlo_resize_scales(s, n, axis, to)
        || (!s->m->error.code && mlo_resize_sizes(s, n, axis, to));
}

static int mlo_shape_Resize(mlo_shapes *s) {
    const mlo_form x = mlo_form_in(s, 0);
    mlo_resized r[MLO_MAX_RANK];
    const int known = mlo_resized_of(s, &x, r);
    s->out[0] = x;
    for (int i = 0; i < x.rank; i++) s->out[0].dims[i] = known ? r[i].out : -1;
    return mlo_failed(s->m);
}

/* ---- their values --------------------------------------------------------- */

/* What all axes have in common. */
typedef struct {
    const mlo_node *node;
    double reach; /* of the kernel, elements; 0: nearest */
    double a; /* of the cubic kernel */
    int antialias;
    int exclude; /* 1: beyond the border there is nothing */
} mlo_resizing;

/* Where point i lies, in elements. */
static double mlo_resize_place(const mlo_node *n, const mlo_resized *r, int64_t i) {
    const char *const name = "coordinate_transformation_mode";
    const double at = (double)i, length = r->scale * (double)r->in,
                 half = (at + 0.5) / r->scale - 0.5;
    if (mlo_string_is(n, name, "align_corners", 0))
        return length == 1 ? 0 : at * (double)(r->in - 1) / (length - 1);
    if (mlo_string_is(n, name, "asymmetric", 0)) return at / r->scale;
    if (mlo_string_is(n, name, "pytorch_half_pixel", 0)) return r->out > 1 ? half : 0;
    if (mlo_string_is(n, name, "half_pixel_symmetric", 0))
        return half + (double)r->in / 2 * (1 - (double)r->out / length);
    return half;
}

/* The kernel at a distance in elements: a tent, or Keys' cubic. */
static double mlo_resize_weight(const mlo_resizing *z, double distance) {
    const double x = fabs(distance), a = z->a;
    if (x >= z->reach) return 0;
    if (z->reach == 1) return 1 - x;
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static double mlo_resize_nearest(const mlo_node *n, double place) {
    const char *const name = "nearest_mode";
    if (mlo_string_is(n, name, "floor", 0)) return floor(place);
    if (mlo_string_is(n, name, "ceil", 0)) return ceil(place);
    return mlo_string_is(n, name, "round_prefer_ceil", 0) ? floor(place + 0.5) : ceil(place - 0.5);
}

/* to += weight x element i of an axis with `inner` elements behind each. Beyond the border: its last one. */
static void mlo_resize_take(
    const mlo_resized *r, const double *x, int64_t inner, double i, double weight, double *to) {
    const double last = (double)(r->in - 1);
    const int64_t at = (int64_t)(i < 0 ? 0 : i > last ? last : i);
    for (int64_t k = 0; k < inner; k++) to[k] += weight * x[at * inner + k];
}

/* One point: `inner` elements. */
static void mlo_resize_point(const mlo_resizing *z, const mlo_resized *r, const double *x,
    int64_t inner, int64_t i, double *to) {
    const double place = mlo_resize_place(z->node, r, i),
                 wide = z->antialias && r->scale < 1 ? r->scale : 1;
    double sum = 0;
    memset(to, 0, (size_t)inner * sizeof *to);
    if (z->reach == 0) {
        mlo_resize_take(r, x, inner, mlo_resize_nearest(z->node, place), 1, to);
        return;
    }
    for (double at = ceil(place - z->reach / wide); at <= place + z->reach / wide; at++) {
        const double weight = mlo_resize_weight(z, (at - place) * wide);
        if (weight == 0 || (z->exclude && (at < 0 || at > (double)(r->in - 1)))) continue;
        mlo_resize_take(r, x, inner, at, weight, to);
        sum += weight;
    }
    for (int64_t k = 0; k < inner; k++) to[k] /= sum;
}

/* Is the axis as it was? */
static int mlo_resize_stays(const mlo_resized *r) { return r->in == r->out && r->scale == 1; }

/* Axis d of `dims` gets its points: a new array, the old one is freed. */
static double *mlo_resize_axis(mlo *m, const mlo_resizing *z, const mlo_resized *r, int rank,
    int64_t *dims, int d, double *x) {
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < d; i++) outer *= dims[i];
    for (int i = d + 1; i < rank; i++) inner *= dims[i];
    double *y = (double *)mlo_scratch(m, (size_t)(outer * r->out * inner) + 1, sizeof *y);
    for (int64_t o = 0; y && o < outer; o++)
        for (int64_t i = 0; i < r->out; i++)
            mlo_resize_point(z, r, x + o * r->in * inner, inner, i, y + (o * r->out + i) * inner);
    dims[d] = r->out;
    mlo_scratch_free(m, x);
    return y;
}

/* 0: something of the node is not known here. */
static int mlo_resize_check(mlo_call *c, mlo_resizing *z) {
    const mlo_node *n = c->node;
    const int linear = mlo_string_is(n, "mode", "linear", 0),
              cubic = mlo_string_is(n, "mode", "cubic", 0);
    z->node = n;
    z->reach = linear ? 1 : cubic ? 2 : 0;
    z->a = mlo_float(n, "cubic_coeff_a", -0.75f);
    z->antialias = mlo_int(n, "antialias", 0) != 0;
    z->exclude = mlo_int(n, "exclude_outside", 0) != 0;
    if (!linear && !cubic && !mlo_string_is(n, "mode", "nearest", 1))
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, n, "mode is none of nearest, linear, cubic"), 0;
    if (mlo_string_is(n, "coordinate_transformation_mode", "tf_crop_and_resize", 0)
        || mlo_string_is(n, "coordinate_transformation_mode", "tf_half_pixel_for_nn", 0))
        return mlo_fail(c->m, MLO_E_UNSUPPORTED, n,
                   "coordinates by tf_crop_and_resize or tf_half_pixel_for_nn; export with "
                   "half_pixel"),
               0;
    return 1;
}

static int mlo_run_Resize(mlo_call *c) {
    const mlo_array *x = c->in[0];
    const mlo_form f = mlo_form_in(c->forms, 0);
    mlo_array *y = c->out[0];
    mlo_resized r[MLO_MAX_RANK];
    mlo_resizing z;
    int64_t dims[MLO_MAX_RANK];
    if (!mlo_resize_check(c, &z)) return mlo_failed(c->m);
    if (!mlo_array_count(y)) return 0;
    if (!mlo_resized_of(c->forms, &f, r))
        return c->m->error.code ? mlo_failed(c->m)
                                : mlo_fail(c->m, MLO_E_SHAPE, c->node, "neither scales nor sizes");
    double *v = (double *)mlo_scratch(c->m, (size_t)mlo_array_count(x) + 1, sizeof *v);
    if (v) mlo_convert(MLO_DOUBLE, v, x->dtype, x->data, (size_t)mlo_array_count(x));
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    for (int d = 0; v && d < x->rank; d++)
        if (!mlo_resize_stays(&r[d])) v = mlo_resize_axis(c->m, &z, &r[d], x->rank, dims, d, v);
    if (v) mlo_convert(y->dtype, y->data, MLO_DOUBLE, v, (size_t)mlo_array_count(y));
    mlo_scratch_free(c->m, v);
    return mlo_failed(c->m);
}
