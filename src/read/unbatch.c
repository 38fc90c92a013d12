/* unbatch: a batch that an export has fixed becomes one sequence, or one image.
 *
 * in:  an indexed model, constants folded, every size known; the option "unbatch": "1", or "try".
 * out: where every operator treats the batch's parts each by itself, and alike, the model of one of them. A core takes
 *      frames one after the other: it needs no batch.
 *
 * From the inputs on it is followed where the batch lies in each value: in which dimension, and within it behind how
 * many others, as heads and windows are often folded into it. What a reshape or an Expand says of sizes is said anew;
 * of a constant that has a part for each of the batch (positions that were expanded) one is left.
 *
 * invariant: y[b] of the old model is y of the new one for x[b]. An operator that sums over the batch, picks from it,
 *     or whose constants differ within it leaves the model as it is, or is refused where the option is "1"; so does
 *     one that is not known here.
 * example: ids [2, 16], [2 * 4, 16, 8] of 4 heads: ids [1, 16], [4, 16, 8].
 * cost: O(nodes), and a look at each constant that has the batch in it.
 */

/* ---- the model ------------------------------------------------------------ */

/* Where an input has the batch, if it has it: in front, or behind tokens, vectors [T, B, C], ids [T, B] (but masks
 * [B, T]). */
static int mlo_lane_axis(const mlo_form *f, int behind) {
    const int ids = f->rank == 2 && !mlo_dtype_is_float(f->dtype) && f->dtype != MLO_BOOL;
    return behind && (f->rank == 3 || ids);
}

/* Sounds [B, N], which become [B, 1, N] for a convolution. */
static int mlo_lane_is_sound(const mlo_graph *g, const mlo_value *v) {
    const mlo_form f = mlo_form_of(v);
    int sound = f.rank == 2 && v->n_use > 0;
    for (size_t i = 0; sound && i < v->n_use; i++) {
        const mlo_node *n = v->use[i];
        const mlo_form y = mlo_form_of(n->n_output ? mlo_value_of(g, n->output[0]) : NULL);
        sound = mlo_has_trait(n, MLO_RESHAPES) && y.rank == 3 && y.dims[1] == 1
            && y.dims[0] == f.dims[0];
    }
    return sound;
}

/* Which size is that of the batch: that of the first input that has more than one there, of ids, of sounds, or of
 * vectors of more than one token. 0: none has. */
static int64_t mlo_lane_batch(const mlo_graph *g, int behind) {
    for (size_t i = 0; i < g->n_input; i++) {
        const mlo_value *v = mlo_value_of(g, g->input[i]->name);
        const mlo_form f = mlo_form_of(v);
        const int axis = mlo_lane_axis(&f, behind);
        const int ids = f.rank == 2 && (!mlo_dtype_is_float(f.dtype) || mlo_lane_is_sound(g, v));
        if (!mlo_form_known(&f)) return 0;
        if (f.rank > 2 ? f.dims[0] > 1 && f.dims[1] > 1 : ids && f.dims[0] > 1 && f.dims[axis] > 1)
            return f.dims[axis];
    }
    return 0;
}

/* Notes the batch in the inputs. 0: there is none. */
static int mlo_lane_inputs(mlo_lanes *l, int behind) {
    const mlo_graph *g = l->g;
    l->batch = mlo_lane_batch(g, behind);
    for (size_t i = 0; l->batch && i < g->n_input; i++) {
        const mlo_form f = mlo_form_of(mlo_value_of(g, g->input[i]->name));
        const int axis = mlo_lane_axis(&f, behind);
        if (f.rank > axis && f.dims[axis] == l->batch
            && !mlo_lane_put(l, g->input[i]->name, axis, 1, 1))
            return 0;
    }
    return l->batch > 0;
}

static int mlo_lane_follow(mlo_lanes *l, int behind) {
    const mlo_graph *g = l->g;
    if (!mlo_lane_inputs(l, behind)) return 0;
    for (size_t i = 0; i < g->n_node; i++) {
        l->stop = g->node[i];
        if (!mlo_lane_node(l, g->node[i])) return 0;
    }
    l->stop = NULL;
    for (size_t i = 0; i < g->n_output; i++)
        if (mlo_lane_of(l, g->output[i]->name).axis >= 0) return 1;
    return 0;
}

static int mlo_unbatch(mlo *m) {
    mlo_graph *g = m->model->graph;
    const char *asked = mlo_opt(m, "unbatch");
    const int must = mlo_eq(asked, "1");
    const mlo_node *stop = NULL;
    int64_t batch = 0;
    int done = 0;
    if (!asked) return mlo_failed(m);
    mlo_opt_used(m, "unbatch");
    if (m->stale) MLO_TRY(mlo_index(m, g));
    for (int behind = 0; behind < 2 && !done; behind++) {
        mlo_lanes l = { m, g, 0, 1, 0, NULL, NULL, NULL, { NULL, 0, 0 }, { NULL, 0, 0 }, NULL, 0,
            NULL };
        done = mlo_lane_follow(&l, behind);
        if (done)
            mlo_inform(m,
                "the model is exported for a batch of %lld; its parts do not depend on each other, "
                "and are "
                "taken as frames, one after the other",
                (long long)l.batch);
        const int failed = done ? mlo_lane_apply(&l) : mlo_failed(m);
        mlo_lane_free(&l);
        MLO_TRY(failed);
        if (!stop) batch = l.batch;
        if (!stop) stop = l.stop;
    }
    if (done || !stop || !must) return 0;
    return mlo_fail(m, MLO_E_UNSUPPORTED, stop,
        "--unbatch: what this node makes of each of a batch of %lld is not known to be of that one "
        "alone; export with a batch of 1, or leave that axis open and give --dim NAME=1",
        (long long)batch);
}
