/* search: finds the best folding there is, under a model of what foldings cost.
 *
 * in:  a core (mlo_core); limits: multipliers, on-chip bits, memory bandwidth; foldings that are
 *     given for kernels by name (pinned).
 * out: the cheapest folding that is fast enough, or the fastest one that is cheap enough, or the
 *     front: all foldings that no other one beats.
 *
 * The model. A folding gives every kernel PE and SIMD. A beat is one transfer on a bus. With T
 * tokens a frame, G frames in flight and a memory that brings rate / 256 beats of parameters a
 * cycle, and sums and maxima over kernels,
 *
 *     pace   = max(cycles per token)
 *     load   = ceil(256 sum(beats) / (rate G))
 *     steady = max(T pace, load)           cycles of an iteration per frame, once the core is full
 *     price  = sum(multipliers, lanes, skew, traffic)             compared in this order
 *     bits   = sum(bits on chip) + FIFOs
 *
 * Lanes are the channels at a time of kernels without multiplier arrays; skew is how far a folding
 * is from SIMD = 4 PE. FIFOs count as deep as if all kernels that may be were in row blocks, so
 * that no folding changes them.
 *
 * A kernel with resident parameters has no beats, and its bits are those of all iterations. A
 * kernel in row blocks reads its parameters anew for each tile of the G frames, and has the
 * bits of two blocks and of its tiles. With --memory auto each kernel may be either, which
 * multiplies the choices. The price then ends with traffic, the sum of beats: of the foldings that
 * are as fast and as cheap, the one that reads least wins. The cycles with filling and draining are
 * what mlo_predict says; a target is held against those.
 *
 * Why the answer is the best. mlo_search_solve(s) is the cheapest folding with steady <= s within
 * the limits. steady <= s means that every kernel's interval is at most s / T, and that beats add
 * up to at most s rate G / 256. The first condition is about each kernel alone; the second, and the
 * limits, are about sums. If each kernel's cheapest choice satisfies the sums, no folding is
 * cheaper, as prices add up. If not, dynamic programming: of the partial foldings of the first k
 * kernels, those are kept that no other one dominates in price, bits and beats, since whatever
 * completes a dominated one completes the other for no more. From solve follow:
 *
 *     the least steady    whether s can be met is monotone in s, so bisection finds the least s;
 *                         solve(s) is the cheapest there
 *     the front           solve without a limit on s, then again and again with one less than the
 *                         last steady: nothing between two results can be cheaper
 *     causal attention    has rows of unlike length, which a pace does not know: behind the fastest folding it takes
 *                         what is left of the limits, as long as predicted cycles become fewer
 *     a target            along the front from target / iterations on, to the first folding whose
 *                         predicted cycles meet the target. With two frames or more in flight
 *                         steady is reached, so it is the cheapest of all; with one, it is the
 *                         cheapest with an even pace. (Then filling and draining are about 7 / T of
 *                         a frame; an uneven pace buys part of that at a high price. It is used for
 *                         targets that cannot be met otherwise: mlo_search_rush, which does not
 *                         claim to be the cheapest.)
 *
 * invariant: the same model and options get the same answer; ties are broken by price, bits, beats,
 *     SIMD, PE.
 * example: 768 channels, --budget-macs 1024: 6 912 cycles a token for each of QKV, FFN in and FFN
 *     out.
 * cost: kernels x foldings to list them (some hundreds each); a solve is kernels x log foldings,
 *     unless bits or beats are scarce.
 */

/* Prices add up, and are compared from the first member on. */
typedef struct {
    /* cycles that a token takes through a kernel with multipliers, where multipliers are given and
     * time is the price; else 0 */
    int64_t way;
    int64_t multipliers;
    int64_t lanes; /* channels at a time of kernels without multipliers */
    int64_t skew; /* how far it is from SIMD = 4 PE */
    int64_t traffic; /* beats of parameters */
} mlo_price;

/* One way to fold one kernel. */
typedef struct {
    int64_t pe;
    int64_t simd;
    int64_t interval; /* cycles per token */
    int64_t bits; /* on chip */
    int64_t beats; /* of parameters per iteration */
    int memory; /* MLO_LAYER, MLO_RESIDENT or MLO_BLOCK */
    mlo_price price;
} mlo_choice;

/* The choices of one kernel, faster ones first. None is beaten in speed, price, bits and beats at
 * once. */
typedef struct {
    mlo_choice *item;
    size_t n;
} mlo_menu;

/* The most that a folding as a whole may take. */
typedef struct {
    int64_t steady; /* cycles of an iteration per frame, once the core is full */
    int64_t multipliers;
    int64_t bits; /* on chip */
} mlo_limits;

/* A folding as a whole. */
typedef struct {
    size_t item[MLO_CORE_MOST]; /* the choice of each kernel's menu */
    mlo_price price;
    int64_t pace; /* cycles per token, of the slowest kernel */
    int64_t steady; /* cycles of an iteration per frame, once the core is full */
    int64_t bits; /* on chip */
    int64_t beats; /* of parameters per iteration */
    int64_t cycles; /* per frame, as predicted */
    int frames; /* in flight */
} mlo_plan;

typedef struct {
    mlo *m;
    mlo_core *c;
    mlo_menu menu[MLO_CORE_MOST];
    int64_t fifo_bits; /* with c->frames in flight */
    int timed; /* 1: prices count `way` */
    int tiled; /* 1: some kernels may be in row blocks */
    int64_t position; /* of the token whose step is a plan's cycles; -1: a frame's are */
    int64_t sequences; /* that take the step together */
    int whole; /* 1: all iterations of a step are predicted; 0: a few */
    /* 1: prices count traffic, since for some kernels the place of the parameters is open */
    int thrifty;
} mlo_space;

enum { MLO_SEARCH_FRAMES = 8 }; /* the most frames in flight, when that is open */
#define MLO_UNLIMITED (INT64_MAX / 1024)

static int mlo_sign(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

static int mlo_price_order(const mlo_price *a, const mlo_price *b) {
    if (a->way != b->way) return mlo_sign(a->way, b->way);
    if (a->multipliers != b->multipliers) return mlo_sign(a->multipliers, b->multipliers);
    if (a->lanes != b->lanes) return mlo_sign(a->lanes, b->lanes);
    return a->skew != b->skew ? mlo_sign(a->skew, b->skew) : mlo_sign(a->traffic, b->traffic);
}
static mlo_price mlo_price_sum(mlo_price a, const mlo_price *b) {
    a.way += b->way;
    a.multipliers += b->multipliers;
    a.lanes += b->lanes;
    a.skew += b->skew;
    a.traffic += b->traffic;
    return a;
}

/* ---- menus ---------------------------------------------------------------- */

/* Least at SIMD = 4 PE, for a given number of multipliers: wide adder trees save requantizers, very
 * wide ones cost routing. */
static int64_t mlo_fold_skew(int64_t pe, int64_t simd) { return simd > 4 * pe ? simd : 4 * pe; }

/* Lists of keys in the order of the first that differ. */
static int mlo_keys_order(const int64_t *a, const int64_t *b, size_t n) {
    size_t i = 0;
    while (i + 1 < n && a[i] == b[i]) i++;
    return mlo_sign(a[i], b[i]);
}

static int mlo_choice_order(const void *x, const void *y) {
    const mlo_choice *a = (const mlo_choice *)x, *b = (const mlo_choice *)y;
    const int64_t p[] = { a->interval, mlo_price_order(&a->price, &b->price), a->bits, a->beats,
        a->memory, a->simd, a->pe };
    const int64_t q[] = { b->interval, 0, b->bits, b->beats, b->memory, b->simd, b->pe };
    return mlo_keys_order(p, q, sizeof p / sizeof *p);
}

/* Is a beat of keys wider than memory's, where that keeps them (mlo_kv_lane)? */
static int mlo_menu_too_wide(const mlo_core *c, const mlo_unit *u) {
    return c->dram && u->told == MLO_JOB_BANK && mlo_kv_step(&u->in[1]) > c->axi_bits;
}

/* Adds a folding for each of these places of parameters; row blocks only if the site has a tile. */
static int mlo_menu_add(mlo_space *s, mlo_menu *menu, const mlo_element *e, const mlo_site *site,
    int memories, int64_t pe, int64_t simd) {
    mlo_unit u;
    memset(&u, 0, sizeof u);
    u.pe = (int)pe;
    u.simd = (int)simd;
    if (e->kernel->unit(site, pe, simd, &u)) return mlo_failed(s->m);
    if (!e->pinned && mlo_menu_too_wide(s->c, &u)) return 0;
    /* one group of channels: no row blocks */
    if (site->tile && !u.blocks) memories = e->memories & MLO_LAYER ? 0 : MLO_LAYER;
    for (int memory = MLO_LAYER; memory <= MLO_BLOCK; memory *= 2)
        if (memories & memory) {
            const int64_t beats = memory == MLO_RESIDENT
                ? 0
                : (mlo_unit_beats(&u, s->c->axi_bits) - mlo_unit_kept(&u, s->c->axi_bits))
                    * (u.blocks ? mlo_core_tiles(s->c, &u, site->chunk) : 1);
            mlo_choice c = { pe, simd, mlo_site_interval(s->c, site, &u),
                mlo_unit_bits(site, &u, s->c->axi_bits, mlo_banks(s->c, memory)), beats, memory,
                { s->timed && u.multipliers ? u.interval + u.latency : 0, u.multipliers, 0, 0,
                    s->thrifty ? beats : 0 } };
            if (u.multipliers)
                c.price.skew = mlo_fold_skew(pe, simd);
            else
                c.price.lanes = pe;
            if (!MLO_PUSH(s->m, menu->item, menu->n, c)) return mlo_failed(s->m);
        }
    return 0;
}

/* Drops choices that another one, at least as fast, beats. */
static void mlo_menu_thin(mlo_menu *menu) {
    size_t kept = 0;
    if (menu->n) qsort(menu->item, menu->n, sizeof *menu->item, mlo_choice_order);
    for (size_t i = 0; i < menu->n; i++) {
        const mlo_choice *c = &menu->item[i];
        int beaten = 0;
        for (size_t k = 0; k < kept && !beaten; k++)
            beaten = mlo_price_order(&menu->item[k].price, &c->price) <= 0
                && menu->item[k].price.multipliers <= c->price.multipliers
                && menu->item[k].bits <= c->bits && menu->item[k].beats <= c->beats;
        if (!beaten) menu->item[kept++] = *c;
    }
    menu->n = kept;
}

/* Lists all legal foldings of a kernel, or the given one if it is pinned. What is legal as (PE,
 * SIMD) is legal as (PE, 1) and as (the least PE, SIMD). */
static int mlo_menu_list(
    mlo_space *s, mlo_menu *menu, const mlo_element *e, const mlo_site *site, int memories) {
    const int64_t most_s = e->kernel->simd_axis ? mlo_last_dim(&e->site.in[0]) : 1;
    const int64_t most_p = e->unit.whole_frame ? e->site.keys : mlo_last_dim(&e->site.out);
    int64_t *pes = NULL;
    size_t n = 0;
    if (e->pinned) return mlo_menu_add(s, menu, e, site, memories, e->unit.pe, e->unit.simd);
    for (int64_t p = 1; p <= most_p; p++)
        if (e->kernel->legal(&e->site, p, 1) && !MLO_PUSH(s->m, pes, n, p)) return mlo_failed(s->m);
    for (int64_t simd = 1; simd <= most_s; simd++) {
        if (!n || !e->kernel->legal(&e->site, pes[0], simd)) continue;
        for (size_t i = 0; i < n; i++)
            if (e->kernel->legal(&e->site, pes[i], simd)
                && mlo_menu_add(s, menu, e, site, memories, pes[i], simd))
                return mlo_failed(s->m);
    }
    return 0;
}

static int mlo_menu_make(mlo_space *s, mlo_menu *menu, const mlo_element *e) {
    mlo_site whole = e->site, tiled = e->site;
    whole.tile = 0;
    tiled.tile = mlo_min(e->tile, mlo_core_group(s->c, e->site.chunk));
    menu->n = 0;
    if (e->memories & MLO_EITHER && mlo_menu_list(s, menu, e, &whole, e->memories & MLO_EITHER))
        return mlo_failed(s->m);
    if (e->memories & MLO_BLOCK && mlo_menu_list(s, menu, e, &tiled, MLO_BLOCK))
        return mlo_failed(s->m);
    if (!e->pinned) mlo_menu_thin(menu);
    return 0;
}

static int mlo_search_menus(mlo_space *s) {
    for (int i = 0; i < s->c->n_element; i++)
        if (s->c->element[i].kernel && mlo_menu_make(s, &s->menu[i], &s->c->element[i]))
            return mlo_failed(s->m);
    return 0;
}

static int mlo_search_begin(mlo *m, mlo_core *c, int timed, mlo_space *s) {
    memset(s, 0, sizeof *s);
    s->m = m;
    s->c = c;
    s->timed = timed;
    s->position = -1;
    s->sequences = 1;
    for (int i = 0; i < c->n_element; i++) {
        s->thrifty |= mlo_to_choose(c->element[i].memories);
        s->tiled |= c->element[i].memories & MLO_BLOCK;
    }
    return mlo_search_menus(s);
}

/* Sets the number of frames in flight. Lists the menus again if beats depend on it: row blocks are
 * read for the tiles of all frames, all else is read once for all of them. */
static int mlo_search_frames(mlo_space *s, int frames) {
    const int anew = s->tiled && s->c->frames != frames;
    s->c->frames = frames;
    for (int i = 0; i < s->c->n_element; i++)
        for (size_t k = 0; k < s->menu[i].n; k++)
            if (s->menu[i].item[k].memory == MLO_BLOCK)
                s->c->element[i].depth = mlo_tile_tokens(
                    mlo_min(s->c->element[i].tile, mlo_core_group(s->c, s->c->chunk)));
    mlo_core_fifos(s->c);
    s->fifo_bits = mlo_core_fifo_bits(s->c);
    return anew ? mlo_search_menus(s) : 0;
}

/* ---- solving -------------------------------------------------------------- */

/* Sums up the plan's choices, and says how fast it is. */
static void mlo_plan_sum(const mlo_space *s, mlo_plan *p) {
    static const mlo_price nothing = { 0, 0, 0, 0, 0 };
    p->price = nothing;
    p->bits = s->fifo_bits;
    p->beats = 0;
    p->pace = 1;
    p->frames = s->c->frames;
    for (int i = 0; i < s->c->n_element; i++)
        if (s->menu[i].n) {
            const mlo_choice *c = &s->menu[i].item[p->item[i]];
            p->price = mlo_price_sum(p->price, &c->price);
            p->bits += c->bits;
            p->beats += c->beats;
            if (c->interval > p->pace) p->pace = c->interval;
        }
    p->steady = mlo_steady_cycles(s->c, p->pace, p->beats);
}

static int mlo_plan_within(const mlo_plan *p, const mlo_limits *l) {
    return p->steady <= l->steady && p->price.multipliers <= l->multipliers && p->bits <= l->bits;
}

/* A folding of the first kernels. */
typedef struct {
    mlo_price price;
    int64_t bits; /* on chip */
    int64_t beats; /* of parameters per iteration */
    size_t before; /* the partial folding of all but the last of them */
    size_t item; /* the choice for the last of them */
} mlo_partial;
typedef struct {
    mlo *m;
    mlo_partial *item;
    size_t n;
    size_t room; /* items that there is memory for */
} mlo_partials;

static int mlo_partial_order(const void *x, const void *y) {
    const mlo_partial *a = (const mlo_partial *)x, *b = (const mlo_partial *)y;
    const int64_t p[] = { mlo_price_order(&a->price, &b->price), a->bits, a->beats,
        (int64_t)a->before, (int64_t)a->item };
    const int64_t q[] = { 0, b->bits, b->beats, (int64_t)b->before, (int64_t)b->item };
    return mlo_keys_order(p, q, sizeof p / sizeof *p);
}

static int mlo_partials_add(mlo_partials *p, const mlo_partial *one) {
    if (p->n == p->room) {
        size_t room = p->room ? 2 * p->room : 256;
        mlo_partial *bigger = (mlo_partial *)mlo_scratch(p->m, room, sizeof *bigger);
        if (!bigger) return mlo_failed(p->m);
        if (p->n) memcpy(bigger, p->item, p->n * sizeof *bigger);
        mlo_scratch_free(p->m, p->item);
        p->item = bigger;
        p->room = room;
    }
    p->item[p->n++] = *one;
    return 0;
}

/* Of the partial foldings from `first` on, keeps those that no other one beats. */
static void mlo_partials_thin(mlo_partials *p, size_t first) {
    size_t kept = first;
    /* the fewest bits of those kept: what has fewer is not beaten */
    int64_t least = INT64_MAX;
    if (p->n > first) qsort(p->item + first, p->n - first, sizeof *p->item, mlo_partial_order);
    for (size_t i = first; i < p->n; i++) {
        const mlo_partial *one = &p->item[i];
        /* all kept before have a lower price; the last one kept most likely beats this one */
        int beaten = 0;
        for (size_t k = kept; k-- > first && !beaten && one->bits >= least;)
            beaten = p->item[k].price.multipliers <= one->price.multipliers
                && p->item[k].bits <= one->bits && p->item[k].beats <= one->beats;
        if (beaten) continue;
        if (one->bits < least) least = one->bits;
        p->item[kept++] = p->item[i];
    }
    p->n = kept;
}

/* What the kernels from one on have at least, at a pace. */
typedef struct {
    int64_t multipliers;
    int64_t bits; /* on chip */
    int64_t beats; /* of parameters per iteration */
    int64_t most_beats; /* of parameters per iteration, at most */
} mlo_rest;

static void mlo_search_rest(const mlo_space *s, int64_t pace, mlo_rest *rest) {
    const int n = s->c->n_element;
    memset(&rest[n], 0, sizeof rest[n]);
    for (int i = n; i--;) {
        mlo_rest least = { MLO_UNLIMITED, MLO_UNLIMITED, MLO_UNLIMITED, 0 };
        rest[i] = rest[i + 1];
        for (size_t k = 0; k < s->menu[i].n && s->menu[i].item[k].interval <= pace; k++) {
            const mlo_choice *c = &s->menu[i].item[k];
            if (c->price.multipliers < least.multipliers) least.multipliers = c->price.multipliers;
            if (c->bits < least.bits) least.bits = c->bits;
            if (c->beats < least.beats) least.beats = c->beats;
            if (c->beats > least.most_beats) least.most_beats = c->beats;
        }
        if (s->menu[i].n) {
            rest[i].multipliers += least.multipliers;
            rest[i].bits += least.bits;
            rest[i].beats += least.beats;
            rest[i].most_beats += least.most_beats;
        }
    }
}

/* Adds kernel i's choices to each partial folding in first .. end - 1. Drops what must exceed the
 * limits, whatever follows. */
static int mlo_search_layer(const mlo_space *s, int i, const mlo_limits *l, int64_t pace,
    int64_t beats, const mlo_rest *rest, mlo_partials *p, size_t first, size_t end) {
    for (size_t b = first; b < end; b++)
        for (size_t k = 0; k < s->menu[i].n && s->menu[i].item[k].interval <= pace; k++) {
            const mlo_choice *c = &s->menu[i].item[k];
            mlo_partial one = { mlo_price_sum(p->item[b].price, &c->price),
                p->item[b].bits + (l->bits < MLO_UNLIMITED ? c->bits : 0),
                p->item[b].beats + (rest[0].most_beats > beats ? c->beats : 0), b, k };
            if (one.price.multipliers + rest[i + 1].multipliers > l->multipliers
                || (l->bits < MLO_UNLIMITED && one.bits + rest[i + 1].bits > l->bits))
                continue;
            if (rest[0].most_beats > beats && one.beats + rest[i + 1].beats > beats) continue;
            if (mlo_partials_add(p, &one)) return mlo_failed(s->m);
        }
    mlo_partials_thin(p, end);
    return 0;
}

/* Solves by dynamic programming, where sums matter. *found says whether a folding is within the
 * limits; then the plan is the cheapest. */
static int mlo_search_program(const mlo_space *s, const mlo_limits *l, int64_t pace, int64_t beats,
    mlo_plan *plan, int *found) {
    mlo_partials p = { s->m, NULL, 0, 0 };
    mlo_partial none = { { 0, 0, 0, 0, 0 }, l->bits < MLO_UNLIMITED ? s->fifo_bits : 0, 0, 0, 0 };
    mlo_rest rest[MLO_CORE_MOST + 1];
    size_t first = 0, end = 1;
    *found = 0;
    mlo_search_rest(s, pace, rest);
    if (rest[0].multipliers > l->multipliers || rest[0].beats > beats
        || (l->bits < MLO_UNLIMITED && rest[0].bits + s->fifo_bits > l->bits))
        return 0;
    int r = mlo_partials_add(&p, &none);
    for (int i = 0; i < s->c->n_element && !r && end > first; i++)
        if (s->menu[i].n) {
            r = mlo_search_layer(s, i, l, pace, beats, rest, &p, first, end);
            first = end;
            end = p.n;
        }
    *found = !r && end > first;
    size_t at = first;
    for (int i = s->c->n_element; *found && i--;)
        if (s->menu[i].n) {
            plan->item[i] = p.item[at].item;
            at = p.item[at].before;
        }
    mlo_scratch_free(s->m, p.item);
    if (*found) mlo_plan_sum(s, plan);
    return r;
}

/* The cheapest of a menu's first k + 1 choices, which are no slower than choice k. */
static size_t mlo_menu_cheapest(const mlo_menu *menu, size_t k) {
    size_t best = 0;
    for (size_t i = 1; i <= k; i++)
        if (mlo_price_order(&menu->item[i].price, &menu->item[best].price) < 0) best = i;
    return best;
}

/* Finds the cheapest folding within the limits. */
static int mlo_search_solve(const mlo_space *s, const mlo_limits *l, mlo_plan *plan, int *found) {
    const int64_t pace = l->steady / s->c->chunk;
    const int64_t beats = mlo_load_beats(
        s->c, l->steady < MLO_UNLIMITED / s->c->frames ? l->steady * s->c->frames : MLO_UNLIMITED);
    *found = 0;
    memset(plan, 0, sizeof *plan);
    for (int i = 0; i < s->c->n_element; i++)
        if (s->menu[i].n) {
            const mlo_menu *menu = &s->menu[i];
            if (menu->item[0].interval > pace) return 0;
            size_t k = 0;
            while (k + 1 < menu->n && menu->item[k + 1].interval <= pace) k++;
            plan->item[i] = mlo_menu_cheapest(menu, k);
        }
    mlo_plan_sum(s, plan);
    /* no plan with this pace has fewer multipliers */
    if (!s->timed && plan->price.multipliers > l->multipliers) return 0;
    *found = mlo_plan_within(plan, l);
    return *found ? 0 : mlo_search_program(s, l, pace, beats, plan, found);
}

/* Finds the fastest folding within the limits; of equally fast ones, the cheapest. */
static int mlo_search_fastest(const mlo_space *s, const mlo_limits *l, mlo_plan *plan, int *found) {
    mlo_limits tried = *l;
    mlo_plan other;
    int fits;
    if (mlo_search_solve(s, l, plan, found) || !*found) return mlo_failed(s->m);
    /* `low` cannot be reached, plan->steady can */
    for (int64_t low = 0; low < plan->steady;) {
        tried.steady = low + (plan->steady - low) / 2;
        if (tried.steady == low) break;
        if (mlo_search_solve(s, &tried, &other, &fits)) return mlo_failed(s->m);
        if (fits)
            *plan = other;
        else
            low = tried.steady;
    }
    return 0;
}

/* Of the foldings within the limits that are as fast as the plan, takes the one through which a
 * token is soonest. So one frame in flight, which cannot hide filling and draining, makes use of
 * spare multipliers. Lanes stay as few as the pace needs. */
static int mlo_search_spare(const mlo_space *s, const mlo_limits *l, mlo_plan *plan) {
    mlo_space timed;
    mlo_limits tried = *l;
    mlo_plan other;
    int found;
    if (plan->frames > 1 || l->multipliers == MLO_UNLIMITED) return 0;
    tried.steady = plan->steady;
    if (mlo_search_begin(s->m, s->c, 1, &timed)) return mlo_failed(s->m);
    timed.fifo_bits = s->fifo_bits;
    if (mlo_search_solve(&timed, &tried, &other, &found) || !found) return mlo_failed(s->m);
    for (int i = 0; i < s->c->n_element; i++)
        if (s->menu[i].n) {
            const mlo_choice *c = &timed.menu[i].item[other.item[i]];
            s->c->element[i].memory = c->memory;
            if (mlo_element_fold(s->m, s->c, &s->c->element[i], c->pe, c->simd))
                return mlo_failed(s->m);
        }
    mlo_core_lanes(s->c);
    return 0;
}

/* ---- plans and cores ------------------------------------------------------ */

static int mlo_plan_apply(const mlo_space *s, const mlo_plan *p) {
    mlo_core *c = s->c;
    c->frames = p->frames;
    for (int i = 0; i < c->n_element; i++)
        if (s->menu[i].n) {
            const mlo_choice *k = &s->menu[i].item[p->item[i]];
            c->element[i].memory = k->memory;
            if (mlo_element_fold(s->m, c, &c->element[i], k->pe, k->simd)) return mlo_failed(s->m);
        }
    mlo_core_lanes(c);
    mlo_core_fifos(c);
    return 0;
}

/* Predicts the cycles per frame of the core as it is folded now; with filling and draining, where
 * other frames do not hide them. Or those of a step. */
static int mlo_plan_cycles(const mlo_space *s, mlo_plan *p) {
    mlo_prediction predicted;
    if (s->position >= 0)
        return (s->whole ? mlo_predict_steps : mlo_predict_steps_soon)(
            s->m, s->c, s->position, s->sequences, &p->cycles);
    if (mlo_predict(s->m, s->c, mlo_core_warms(s->c) ? 2 * p->frames : 1, &predicted))
        return mlo_failed(s->m);
    p->cycles = predicted.interval;
    return 0;
}

/* Folds the core as the plan says, and predicts its cycles. */
static int mlo_plan_predict(const mlo_space *s, mlo_plan *p) {
    return mlo_plan_apply(s, p) ? mlo_failed(s->m) : mlo_plan_cycles(s, p);
}

/* Makes kernel i as cheap as a target allows. A faster kernel never makes the whole slower, so
 * bisection finds its limit. */
static int mlo_plan_trim(const mlo_space *s, int i, int64_t target, mlo_plan *plan) {
    /* `low` meets the target, `high` does not */
    size_t low = plan->item[i], high = s->menu[i].n;
    while (high > low + 1) {
        mlo_plan other = *plan;
        size_t middle = low + (high - low) / 2;
        other.item[i] = mlo_menu_cheapest(&s->menu[i], middle);
        mlo_plan_sum(s, &other);
        if (mlo_plan_predict(s, &other)) return mlo_failed(s->m);
        if (other.cycles <= target) {
            *plan = other;
            low = middle;
        } else
            high = middle;
    }
    return 0;
}

/* For targets that no even pace meets: makes every kernel as fast as can be, then one kernel after
 * the other as cheap as the target allows. If this fails, nothing else meets the target (but for the
 * few cycles by which narrower adder trees are shallower). */
static int mlo_search_rush(const mlo_space *s, int64_t target, mlo_plan *plan) {
    memset(plan, 0, sizeof *plan);
    mlo_plan_sum(s, plan);
    if (mlo_plan_predict(s, plan)) return mlo_failed(s->m);
    for (int i = 0; i < s->c->n_element && plan->cycles <= target; i++)
        if (mlo_plan_trim(s, i, target, plan)) return mlo_failed(s->m);
    return 0;
}

/* Finds the cheapest folding that takes at most `target` cycles per frame. If there is none, `plan`
 * is the fastest one, if *any. */
static int mlo_search_target(
    const mlo_space *s, const mlo_limits *l, int64_t target, mlo_plan *plan, int *found, int *any) {
    mlo_limits tried = *l;
    tried.steady = target / s->c->scan.iterations;
    for (*found = 1; *found; tried.steady = plan->steady - 1) {
        if (mlo_search_solve(s, &tried, plan, found) || (*found && mlo_plan_predict(s, plan)))
            return mlo_failed(s->m);
        if (*found && plan->cycles <= target) return 0;
    }
    mlo_plan rush;
    if (mlo_search_fastest(s, l, plan, any) || (*any && mlo_plan_predict(s, plan))
        || mlo_search_rush(s, target, &rush))
        return mlo_failed(s->m);
    if (rush.price.multipliers <= l->multipliers && rush.bits <= l->bits
        && (!*any || rush.cycles < plan->cycles)) {
        *plan = rush;
        *any = 1;
    }
    *found = *any && plan->cycles <= target;
    return 0;
}

/* Rows of causal attention take more and more keys, the last ones twice as many as the mean, which is what a pace
 * knows: where the last ones hold up others, what is left of the limits makes them faster. Choices that change nothing
 * are gone by, a few at a time. */
static int mlo_search_uneven(const mlo_space *s, const mlo_limits *l, mlo_plan *plan) {
    enum { IN_VAIN = 4 };
    for (int i = 0; i < s->c->n_element; i++) {
        if (!s->menu[i].n || !s->c->element[i].unit.rows.causal) continue;
        int vain = 0;
        for (size_t k = plan->item[i]; k-- > 0 && vain < IN_VAIN;) {
            mlo_plan other = *plan;
            other.item[i] = k;
            mlo_plan_sum(s, &other);
            if (!mlo_plan_within(&other, l)) break;
            if (mlo_plan_predict(s, &other)) return mlo_failed(s->m);
            vain = other.cycles < plan->cycles ? 0 : vain + 1;
            if (!vain) *plan = other;
        }
    }
    return 0;
}

/* Could more frames in flight, which share loads, be of use? From two on they are not, if even the
 * most beats that any folding reads would not slow this plan down. */
static int mlo_search_more(const mlo_space *s, const mlo_plan *p) {
    mlo_rest rest[MLO_CORE_MOST + 1];
    mlo_search_rest(s, MLO_UNLIMITED, rest);
    return p->frames < 2 || mlo_load_cycles(s->c, rest[0].most_beats) > p->steady * p->frames;
}

/* Pushes onto `plans` every folding within the limits that is the cheapest for its speed, the
 * slowest first. From two frames in flight on, the steady speed is reached; so more frames, which
 * cost bits, must make the plan faster or cheaper. */
static int mlo_search_front(const mlo_space *s, const mlo_limits *l, mlo_plan **plans, size_t *n) {
    mlo_limits tried = *l;
    mlo_plan plan;
    const size_t before = *n;
    for (int found = 1; found; tried.steady = plan.steady - 1) {
        if (mlo_search_solve(s, &tried, &plan, &found)) return mlo_failed(s->m);
        int beaten = !found;
        for (size_t i = 0; i < before && !beaten; i++)
            beaten = (*plans)[i].frames > 1 && (*plans)[i].steady <= plan.steady
                && (*plans)[i].price.multipliers <= plan.price.multipliers;
        if (!beaten && !MLO_PUSH(s->m, *plans, *n, plan)) return mlo_failed(s->m);
    }
    for (size_t i = before; i < *n; i++) {
        mlo_work(s->m, "searches foldings", (int64_t)(i - before), (int64_t)(*n - before));
        if (mlo_plan_predict(s, &(*plans)[i])) return mlo_failed(s->m);
    }
    return 0;
}

/* Is plan a at least as good as b in cycles, multipliers and bits, and better in one of them, or
 * the first of equals? Bits count only between different numbers of frames in flight. */
static int mlo_plan_beats(const mlo_plan *a, const mlo_plan *b) {
    const int64_t a_bits = a->frames == b->frames ? 0 : a->bits;
    const int64_t b_bits = a->frames == b->frames ? 0 : b->bits;
    if (a->cycles > b->cycles || a->price.multipliers > b->price.multipliers || a_bits > b_bits)
        return 0;
    return a->cycles < b->cycles || a->price.multipliers < b->price.multipliers || a_bits < b_bits
        || a < b;
}

static int mlo_plan_order(const void *x, const void *y) {
    const mlo_plan *a = (const mlo_plan *)x, *b = (const mlo_plan *)y;
    const int64_t p[] = { a->cycles, a->price.multipliers, a->frames };
    const int64_t q[] = { b->cycles, b->price.multipliers, b->frames };
    return mlo_keys_order(p, q, sizeof p / sizeof *p);
}

/* Keeps the plans that no other one beats, the fastest first. */
static void mlo_plans_thin(mlo_plan *plans, size_t *n) {
    size_t kept = 0;
    if (*n) qsort(plans, *n, sizeof *plans, mlo_plan_order);
    /* sorted: a plan that beats another one stands before it */
    for (size_t i = 0; i < *n; i++) {
        int beaten = 0;
        for (size_t k = 0; k < kept && !beaten; k++) beaten = mlo_plan_beats(&plans[k], &plans[i]);
        if (!beaten) plans[kept++] = plans[i];
    }
    *n = kept;
}
