/* knee: chooses the folding that a person would choose, where no option says which.
 *
 * in:  a core, its menus (search.c), perhaps a limit of multipliers.
 * out: a plan of the front (the foldings that no other one beats).
 *
 * Cycles times multipliers is what a frame costs. On the front most foldings whose kernels are
 * equally busy cost nearly as little as the best one. Of the foldings within MLO_KNEE_PERCENT of
 * the least cost, the knee is the one with the fewest multipliers that simulates in under a minute;
 * where none does (a BERT-base), the fastest one with at most MLO_KNEE_MOST multipliers.
 *
 * The time of a simulation: Icarus spends it on cycles of the core as a whole and on products; the
 * numbers below are those of bert-tiny, with 28 to 224 multipliers, on one core of a server.
 *
 * invariant: the plan is on the front of `fold --pareto`: its steady_cycles x multipliers is at
 *     most 1.1 times the least of all lines. The same model gets the same answer.
 * example: bert-tiny (2 layers of 64 channels, 32 tokens): 112 multipliers, where the front has
 *     plans with 6 to 748.
 * cost: a solve for every plan of the front; predictions of the few that could simulate soon
 *     enough.
 */
enum {
    MLO_KNEE_PERCENT = 10,
    MLO_KNEE_MOST = 512,
    MLO_KNEE_SECONDS = 40,
    MLO_ICARUS_CYCLES = 4500,
    MLO_ICARUS_PRODUCTS = 120000
};

/* Steady cycles times multipliers. */
static double mlo_plan_cost(const mlo_plan *p) {
    return (double)p->steady * (double)p->price.multipliers;
}

/* Is a core that takes so many cycles a frame simulated soon enough? All frames in flight are, as
 * the bench plays them. */
static int mlo_knee_soon(const mlo_core *c, int frames, int64_t cycles) {
    double macs = 0;
    for (int i = 0; i < c->n_element; i++) macs += (double)mlo_frame_macs(&c->element[i]);
    macs *= (double)c->scan.iterations;
    const double seconds = (double)cycles / (double)MLO_ICARUS_CYCLES
        + macs / (double)MLO_ICARUS_PRODUCTS;
    return frames * seconds <= (double)MLO_KNEE_SECONDS;
}

/* All plans of the front that cost little, the slowest first. */
static int mlo_knee_front(const mlo_space *s, const mlo_limits *l, mlo_plan **plans, size_t *n) {
    mlo_limits tried = *l;
    mlo_plan plan;
    double least = DBL_MAX;
    size_t kept = 0;
    for (int found = 1; found; tried.steady = plan.steady - 1) {
        if (mlo_search_solve(s, &tried, &plan, &found)
            || (found && !MLO_PUSH(s->m, *plans, *n, plan)))
            return mlo_failed(s->m);
        if (found && mlo_plan_cost(&plan) < least) least = mlo_plan_cost(&plan);
    }
    for (size_t i = 0; i < *n; i++)
        if (mlo_plan_cost(&(*plans)[i]) * 100 <= least * (100 + MLO_KNEE_PERCENT))
            (*plans)[kept++] = (*plans)[i];
    *n = kept;
    return 0;
}

/* The choice, predicted. */
static int mlo_knee(const mlo_space *s, const mlo_limits *l, mlo_plan *best, int *found) {
    const int64_t iterations = s->c->scan.iterations;
    mlo_plan *plans = NULL;
    size_t n = 0, at = 0;
    *found = 0;
    if (mlo_knee_front(s, l, &plans, &n) || !n) return mlo_failed(s->m);
    for (size_t i = 0; i < n && (i == 0 || plans[i].price.multipliers <= MLO_KNEE_MOST) && !*found;
        i++) {
        at = i;
        if (!mlo_knee_soon(s->c, plans[i].frames, plans[i].steady * iterations)) continue;
        if (mlo_plan_predict(s, &plans[i])) return mlo_failed(s->m);
        *found = mlo_knee_soon(s->c, plans[i].frames, plans[i].cycles);
    }
    *best = plans[at];
    if (*found) return 0;
    *found = 1;
    return mlo_plan_predict(s, best);
}
