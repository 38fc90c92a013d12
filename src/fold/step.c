/* step: chooses the folding of a core with caches by what one more token costs.
 *
 * in:  a core that keeps keys and values, its menus (search.c), a position, limits, perhaps a target.
 * out: a plan.
 *
 * A frame of many tokens is as slow as its slowest kernel. A step is another thing: one token goes
 * from matrix to matrix, each waits for the one before, and the memory, which has all of a layer's
 * weights to bring for that one token, should be what everybody waits for. So the cycles of all
 * kernels add up, and what they add up to is worth no less than what the memory takes.
 *
 * How. A cycle is given a price: of each kernel the folding is taken for which cycles and price
 * together are least. The higher the price of a cycle, the faster the plan: one after the other, from
 * cheap to fast, all such plans are predicted. A target: the first that meets it. A budget: the
 * fastest within. Memory alone (--bandwidth): the cheapest that is
 * nearly the fastest. Else the one with the least step^2 x price: a percent of the step is worth two of
 * the price, so the walk ends where the memory begins to limit. What the memory covers, or a branch
 * beside it, is then made cheaper, the dearest kernel first, as long as the step does not change
 * (bisection: a slower kernel never makes a step faster); what is left of a budget buys what gains most.
 *
 * invariant: the same model and options get the same answer. The step is what mlo_predict_step says
 *     of the plan; plans are compared by what a few iterations of it say. It is not claimed that no other plan is
 *     cheaper.
 * example: two layers of a Llama of 2,048 channels with 4 bits and 512-bit beats, --memory block
 *     --bandwidth 64: 961,424 beats of weights a token (tests/test_step.py says how many cycles).
 * cost: some tens of predictions of two tokens through four iterations, and for each kernel a few.
 */
#define MLO_STEP_FINER 0.93 /* the price of a kernel's cycle, from one plan to the next */

#define MLO_STEP_SLOW 1.1 /* times the step of another plan: then that one is taken */
enum {
    MLO_STEP_NEAR = 50, /* part of the fastest step that may be lost */
    MLO_STEP_MOST = 1024, /* multipliers, where nobody says how many */
    MLO_STEP_UP = 3 /* choices that are looked at, to spend what is left */
};

/* What is asked for. */
typedef struct {
    int64_t target; /* cycles of a step; 0: none */
    int fastest; /* 1: without a target, the fastest within the limits; 0: what is worth it */
    int near; /* 1: the cheapest that is nearly the fastest */
    mlo_limits within;
    const mlo_fpga *device; /* it has to fit there; NULL: anywhere */
} mlo_step_wish;

/* A price in one number: multipliers, and lanes of the kernels that have none. */
static int64_t mlo_step_price(const mlo_price *p) { return p->multipliers + p->lanes; }

static int mlo_step_predict(const mlo_space *s, mlo_plan *p) {
    mlo_plan_sum(s, p);
    return mlo_plan_predict(s, p);
}

/* Of each kernel, what is best where so many cycles are worth a multiplier. 1: it is another plan. */
static int mlo_step_choose(const mlo_space *s, double worth, mlo_plan *plan) {
    int other = 0;
    for (int i = 0; i < s->c->n_element; i++) {
        size_t best = 0;
        double least = DBL_MAX;
        for (size_t k = 0; k < s->menu[i].n; k++) {
            const mlo_choice *c = &s->menu[i].item[k];
            const double cost = (double)c->interval + worth * (double)mlo_step_price(&c->price);
            if (cost > least) continue;
            least = cost;
            best = k;
        }
        other |= plan->item[i] != best;
        plan->item[i] = best;
    }
    return other;
}

/* Is the plan within the limits, and does it fit? */
static int mlo_step_fits(const mlo_space *s, const mlo_step_wish *w, const mlo_plan *p, int *fits) {
    mlo_area area;
    *fits = p->price.multipliers <= w->within.multipliers && p->bits <= w->within.bits;
    return *fits && w->device ? mlo_plan_fits(s, p, w->device, 0, &area, fits) : 0;
}

static double mlo_step_cost(const mlo_plan *p) {
    return (double)p->cycles * (double)p->cycles * (double)mlo_step_price(&p->price);
}

/* Does a plan that is dearer serve better? */
static int mlo_step_serves(const mlo_step_wish *w, const mlo_plan *a, const mlo_plan *b) {
    if (w->target || w->fastest) return a->cycles < b->cycles;
    return mlo_step_cost(a) < mlo_step_cost(b);
}

/* The best of some plans that is within the limits; each that is looked at leaves the list. *found: there is one. */
static int mlo_step_best(const mlo_space *s, const mlo_step_wish *w, mlo_plan *plans, size_t n,
    mlo_plan *best, int *found) {
    while (n && !*found) {
        size_t first = 0;
        for (size_t k = 1; k < n; k++)
            if (mlo_step_serves(w, &plans[k], &plans[first])) first = k;
        MLO_TRY(mlo_step_fits(s, w, &plans[first], found));
        *best = plans[first];
        memmove(plans + first, plans + first + 1, (--n - first) * sizeof *plans);
    }
    return 0;
}

/* From cheap to fast. *found: a plan is within the limits, and none that was seen serves better. (Whether one fits may
 * take longer to tell than its step.) */
static int mlo_step_walk(const mlo_space *s, const mlo_step_wish *w, mlo_plan *best, int *found) {
    mlo_plan plan, *plans = NULL;
    size_t n = 0;
    double worth = 1;
    *found = 0;
    memset(&plan, 0, sizeof plan);
    for (int i = 0; i < s->c->n_element; i++)
        if (s->menu[i].n) worth = fmax(worth, (double)s->menu[i].item[s->menu[i].n - 1].interval);
    for (int first = 1; worth > 1e-3 && !*found; worth *= MLO_STEP_FINER, first = 0) {
        if (!mlo_step_choose(s, worth, &plan) && !first) continue;
        if (mlo_step_predict(s, &plan)) return mlo_failed(s->m);
        if (plan.cycles > w->target) {
            if (!MLO_PUSH(s->m, plans, n, plan)) return mlo_failed(s->m);
            continue;
        }
        *best = plan;
        if (mlo_step_fits(s, w, best, found)) return mlo_failed(s->m);
    }
    return mlo_step_best(s, w, plans, n, best, found);
}

/* Makes all kernels as cheap as a step of so many cycles allows, the dearest first. */
static int mlo_step_trim(const mlo_space *s, int64_t cycles, mlo_plan *plan) {
    char done[MLO_CORE_MOST] = { 0 };
    for (int n = 0; n < s->c->n_element; n++) {
        int64_t most = -1;
        int dearest = 0;
        for (int i = 0; i < s->c->n_element; i++) {
            if (done[i]) continue;
            const int64_t price = s->menu[i].n
                ? mlo_step_price(&s->menu[i].item[plan->item[i]].price)
                : 0;
            if (price > most) {
                most = price;
                dearest = i;
            }
        }
        done[dearest] = 1;
        if (s->menu[dearest].n && mlo_plan_trim(s, dearest, cycles, plan)) return mlo_failed(s->m);
    }
    return mlo_step_predict(s, plan);
}

/* Of all plans in which one kernel is a little faster, the one that gains most for its price; *found:
 * there is one within the limits. */
static int mlo_step_up(
    const mlo_space *s, const mlo_step_wish *w, const mlo_plan *plan, mlo_plan *best, int *found) {
    double most = 0;
    *found = 0;
    for (int i = 0; i < s->c->n_element; i++)
        for (size_t k = plan->item[i], n = 0; s->menu[i].n && k-- && n < MLO_STEP_UP; n++) {
            mlo_plan other = *plan;
            int fits;
            other.item[i] = k;
            mlo_plan_sum(s, &other);
            if (other.price.multipliers > w->within.multipliers) continue;
            if (mlo_step_predict(s, &other)) return mlo_failed(s->m);
            const double costs = (double)(mlo_step_price(&other.price)
                - mlo_step_price(&plan->price));
            const double gains = (double)(plan->cycles - other.cycles) / fmax(1, costs);
            if (gains <= most) continue;
            if (mlo_step_fits(s, w, &other, &fits)) return mlo_failed(s->m);
            if (!fits) continue;
            most = gains;
            *best = other;
            *found = 1;
        }
    return 0;
}

/* Spends what is left of a budget. */
static int mlo_step_spend(const mlo_space *s, const mlo_step_wish *w, mlo_plan *plan) {
    mlo_plan other;
    int found = w->fastest && !w->target;
    while (found) {
        if (mlo_step_up(s, w, plan, &other, &found)) return mlo_failed(s->m);
        if (found) *plan = other;
    }
    return 0;
}

/* A target near the fastest step that is seen. */
static int mlo_step_near(const mlo_space *s, mlo_step_wish *w) {
    mlo_plan plan;
    int found;
    w->fastest = 1;
    if (mlo_step_walk(s, w, &plan, &found)) return mlo_failed(s->m);
    if (found) w->target = plan.cycles + plan.cycles / MLO_STEP_NEAR;
    return 0;
}

/* With a step as s->whole says. */
static int mlo_step_found(const mlo_space *s, mlo_step_wish *w, mlo_plan *plan, int *found) {
    if (w->near && mlo_step_near(s, w)) return mlo_failed(s->m);
    if (mlo_step_walk(s, w, plan, found) || !*found) return mlo_failed(s->m);
    if (mlo_step_trim(s, mlo_max(plan->cycles, w->target), plan) || mlo_step_spend(s, w, plan))
        return mlo_failed(s->m);
    return mlo_step_trim(s, mlo_max(plan->cycles, w->target), plan);
}

/* *found: the plan is within the limits; if its step is above the target, none is faster. A target that is met by a
 * few iterations and missed by all is looked for again, by all. */
static int mlo_step_search(const mlo_space *s, const mlo_step_wish *w, mlo_plan *plan, int *found) {
    mlo_space whole = *s;
    mlo_step_wish wish = *w;
    whole.whole = 1;
    if (mlo_step_found(s, &wish, plan, found) || !*found) return mlo_failed(s->m);
    const int met = plan->cycles <= w->target;
    if (mlo_step_predict(&whole, plan)) return mlo_failed(s->m);
    if (!met || plan->cycles <= w->target) return 0;
    wish = *w;
    return mlo_step_found(&whole, &wish, plan, found);
}
