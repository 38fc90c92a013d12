/* flat_fuse: what goes number by number behind sums is done with each sum as it is there.
 *
 * in:  the steps of a network.
 * out: fewer of them: a convolution or a product and the one step that reads it, number by number, are one
 *     step, if what that takes beside the sum is fixed, one number for all or one for each channel. A sum
 *     with a fixed number for each channel in between is a bias.
 *
 * invariant: the functions of numbers are the same; of a sum's own value nothing is in the arena.
 * example: Conv and RequantShift: mlo_conv_requant_shift_i8_i8_i8_i32_i32_i8, and no map of 32 bits.
 * cost: O(steps^2), and the numbers of the maps.
 */

/* How operand k of a step goes along the channels of its result, `inner` numbers each: 1 by one, 0 not at
 * all; -1: otherwise. */
static int mlo_flat_along(const mlo_flat_step *t, int k, int64_t inner, int64_t channels) {
    const int64_t *n = t->grid_size;
    int step = -1;
    for (int64_t i = 0; i < n[0] * n[1] * n[2] * n[3]; i++) {
        const int64_t at[4] = { i / n[3] / n[2] / n[1], i / n[3] / n[2] % n[1], i / n[3] % n[2],
            i % n[3] };
        const int64_t channel = i / inner % channels;
        int64_t to = 0;
        for (int d = 0; d < 4; d++) to += at[d] * t->grid[k][d];
        if (step < 0 && channel) step = to != 0;
        if (to != (step > 0 ? channel : 0)) return -1;
    }
    return step < 0 ? 0 : step;
}

/* Does a step read a value, or a part of it? */
static int mlo_flat_reads(const mlo_flat_step *t, const mlo_flat_value *y) {
    int reads = 0;
    for (int k = 0; k < t->n_in; k++) reads += t->in[k] && t->in[k]->of == y;
    return reads;
}

/* The one step that reads a value, and nobody else does; n_step: there is none. */
static size_t mlo_flat_reader(const mlo_flat *f, const mlo_flat_value *y) {
    size_t found = f->n_step;
    int reads = 0;
    for (size_t i = 0; i < f->n_step; i++) {
        const int r = mlo_flat_reads(&f->step[i], y);
        if (r) found = i;
        reads += r;
    }
    for (size_t i = 0; i < f->g->n_output; i++) {
        const mlo_flat_value *v = mlo_flat_of(f, f->g->output[i]->name);
        reads += v && v->of == y ? 2 : 0;
    }
    return reads == 1 ? found : f->n_step;
}

/* May step t be done with each sum of s? along: of its two other operands. */
static int mlo_flat_fits(const mlo_flat_step *s, const mlo_flat_step *t, int *along) {
    const mlo_flat_value *x = t->in[0];
    if (!mlo_eq(t->text, "c/each.c") || x->of != s->out || x->at || x->count != s->out->count
        || t->out->dtype == MLO_FLOAT || t->out->count != x->count || t->to)
        return 0;
    for (int k = 1; k < t->n_in; k++) {
        if (!t->in[k]->fixed || t->in[k]->dtype == MLO_FLOAT) return 0;
        if ((along[k - 1] = mlo_flat_along(t, k, s->inner, s->channels)) < 0) return 0;
    }
    return 1;
}

/* The result of step i is that of step j, which is no step any more. */
static void mlo_flat_drop(mlo_flat *f, size_t i, size_t j) {
    f->step[i].out = f->step[j].out;
    memmove(&f->step[j], &f->step[j + 1], (f->n_step - j - 1) * sizeof *f->step);
    f->n_step--;
}

/* Is step t a sum with a fixed number for each channel? Then that is the bias. */
static int mlo_flat_bias(mlo_flat_step *s, const mlo_flat_step *t) {
    if (t->n_in != 2) return 0;
    const int own = t->in[1]->of == s->out; /* which operand is s's */
    mlo_flat_value *b = t->in[!own];
    const mlo_flat_value *x = t->in[own];
    if (s->in[2] || !mlo_eq(t->exact, "mlo_sum") || !mlo_eq(s->exact, "mlo_same") || !b->fixed
        || x->at || x->count != s->out->count || t->out->count != x->count
        || mlo_flat_along(t, !own, s->inner, s->channels) != 1)
        return 0;
    s->in[2] = b;
    s->sum = mlo_dtype_size(t->out->dtype) > 4 ? t->out->dtype : s->sum;
    return 1;
}

/* Channels that a part of a step makes: a row of a product has all of them. */
static int64_t mlo_flat_channels_of_unit(const mlo_flat_step *s) {
    return mlo_eq(s->text, "c/product.c") || !s->units ? 0 : s->channels / s->units;
}

/* Step i takes over what step j does. */
static void mlo_flat_take(mlo_flat *f, size_t i, size_t j, const int *along) {
    mlo_flat_step *s = &f->step[i];
    const mlo_flat_step *t = &f->step[j];
    s->kind = mlo_format(f->m, "%s_%s", s->kind, t->exact + strlen("mlo_"));
    s->exact = t->exact;
    s->numbers = t->numbers;
    s->also = mlo_format(f->m, "%d, %d, ", along[0], along[1]);
    for (int k = 1; k < t->n_in; k++) {
        s->in[MLO_FLAT_EACH + k - 1] = t->in[k];
        s->along[k - 1] = along[k - 1];
        s->unit[MLO_FLAT_EACH + k - 1] = along[k - 1] * mlo_flat_channels_of_unit(s);
    }
    mlo_flat_drop(f, i, j);
}

static int mlo_flat_fuse(mlo_flat *f) {
    for (size_t i = 0; i < f->n_step && !f->m->error.code; i++) {
        int along[2] = { 0, 0 };
        if (!f->step[i].inner) continue;
        size_t j = mlo_flat_reader(f, f->step[i].out);
        if (j < f->n_step && mlo_eq(f->step[j].text, "c/each.c")
            && mlo_flat_bias(&f->step[i], &f->step[j])) {
            mlo_flat_drop(f, i, j);
            j = mlo_flat_reader(f, f->step[i].out);
        }
        if (j < f->n_step && mlo_flat_fits(&f->step[i], &f->step[j], along))
            mlo_flat_take(f, i, j, along);
    }
    return mlo_failed(f->m);
}
