/* device: finds the fastest folding that fits an FPGA: `fold --device`.
 *
 * in:  a core, its menus (search.c), a device: a name of the table below, or
 *     lut=..,ff=..,dsp=..,bram=...
 * out: a plan, or what does not fit.
 *
 * How full a device may get: 70 % of its LUTs, 50 % of its flip-flops, 80 % of its DSPs and of its
 * block RAMs. A fuller device hardly routes, or only slowly; at these shares AMD's report_failfast
 * begins to warn. UltraRAM is not counted: no memory is mapped to it.
 *
 * What the answer is: the front of the search has, for every speed, the folding with the fewest
 * multipliers (ties: lanes, skew), and none that is as fast with more of them. The answer is the
 * fastest plan of the front that fits, in cycles per frame as mlo_predict says; with a target, the
 * cheapest that fits and meets it. So no faster plan of the front fits. `fold --pareto --device`
 * prints all plans of the front that fit.
 *
 * Area itself is not minimised. A folding that is not on the front, as fast but with more
 * multipliers or another split of PE and SIMD, could fit where the front's does not; if multipliers
 * are scarce, there is none. Dynamic programming over areas is not possible, since the area is no
 * sum over kernels: a width converter depends on both its ends.
 *
 * Unless --memory says where parameters are, both places are tried: two layers' banks on chip, and
 * row blocks (part of a matrix on chip at a time, fold.c) with tiles of any size.
 *
 * invariant: the plan fits by the estimate of the whole core: kernels, FIFOs, width converters,
 *     loop, loader, registers (estimate.c).
 * example: an xcvu9p holds two layers of MiniLM (384 channels) in its block RAMs (922 of 36 Kbit);
 *     an xczu9eg does not: there MiniLM is in row blocks. Two layers of BERT-base take more block
 *     RAM than any device here has.
 * cost: a solve (microseconds) for every plan of the front; estimates, depths and predictions for
 *     the few that may be the fastest.
 */
typedef struct {
    const char *name;
    int64_t lut;
    int64_t ff;
    int64_t dsp;
    int64_t bram; /* of 36 Kbit */
} mlo_fpga;

/* From AMD's product tables. Of the cards (xcu..) all of the chip: what a shell takes of it is not
 * subtracted. */
static const mlo_fpga mlo_fpgas[] = { { "xczu1eg", 37440, 74880, 216, 108 },
    { "xczu3eg", 70560, 141120, 360, 216 }, { "xck26", 117120, 234240, 1248, 144 },
    { "xczu7ev", 230400, 460800, 1728, 312 }, { "xczu9eg", 274080, 548160, 2520, 912 },
    { "xczu28dr", 425280, 850560, 4272, 1080 }, { "xcvu9p", 1182240, 2364480, 6840, 2160 },
    { "xcu50", 871680, 1743360, 5952, 1344 }, { "xcu280", 1303680, 2607360, 9024, 2016 },
    { "xcu250", 1728000, 3456000, 12288, 2688 } };
enum { MLO_N_FPGAS = sizeof mlo_fpgas / sizeof *mlo_fpgas, MLO_N_RESOURCES = 4 };

/* What there is of each, and how much of it may be used. */
static const struct {
    const char *key;
    const char *name;
    int percent;
} mlo_resources[MLO_N_RESOURCES] = { { "lut", "LUTs", 70 }, { "ff", "flip-flops", 50 },
    { "dsp", "DSP blocks", 80 }, { "bram", "block RAMs", 80 } };
static int64_t mlo_fpga_has(const mlo_fpga *f, int k) {
    return k == 0 ? f->lut : k == 1 ? f->ff : k == 2 ? f->dsp : f->bram;
}
static int64_t mlo_area_takes(const mlo_area *a, int k) {
    return k == 0 ? a->lut : k == 1 ? a->ff : k == 2 ? a->dsp : (a->bram + 1) / 2;
}
static int64_t mlo_fpga_room(const mlo_fpga *f, int k) {
    return mlo_fpga_has(f, k) / 100 * mlo_resources[k].percent
        + mlo_fpga_has(f, k) % 100 * mlo_resources[k].percent / 100;
}

/* The first resource of which there is not enough; -1: all fits. */
static int mlo_fpga_lacks(const mlo_fpga *f, const mlo_area *a) {
    for (int k = 0; k < MLO_N_RESOURCES; k++)
        if (mlo_area_takes(a, k) > mlo_fpga_room(f, k)) return k;
    return -1;
}

/* "lut=70560,ff=141120,dsp=360,bram=216", each once. */
static int mlo_fpga_numbers(mlo *m, const char *text, mlo_fpga *to) {
    int64_t *const where[MLO_N_RESOURCES] = { &to->lut, &to->ff, &to->dsp, &to->bram };
    int said = 0;
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, "=");
        int k = 0;
        while (k < MLO_N_RESOURCES
            && (strlen(mlo_resources[k].key) != n || strncmp(mlo_resources[k].key, p, n)))
            k++;
        char *end = NULL;
        long v = k < MLO_N_RESOURCES && p[n] == '=' && p[n + 1] >= '0' && p[n + 1] <= '9'
            ? strtol(p + n + 1, &end, 10)
            : -1;
        if (v < 1 || v > 1000000000 || (*end && *end != ',') || said >> k & 1) break;
        *where[k] = v;
        said |= 1 << k;
        p = end;
        if (!*p)
            return said == (1 << MLO_N_RESOURCES) - 1
                ? 0
                : mlo_fail_at(m, MLO_E_USAGE, NULL,
                      "--device %s: say all four, as in lut=70560,ff=141120,dsp=360,bram=216",
                      text);
    }
    return mlo_fail_at(m, MLO_E_USAGE, NULL,
        "--device %s is not of the form lut=70560,ff=141120,dsp=360,bram=216 (block RAMs of 36 "
        "Kbit)",
        text);
}

/* Is `text` this name, in upper or lower case, perhaps with package and speed grade behind a hyphen? */
static int mlo_fpga_is(const char *text, const char *name) {
    while (
        *name && (*text == *name || (*text >= 'A' && *text <= 'Z' && *text - 'A' + 'a' == *name))) {
        text++;
        name++;
    }
    return !*name && (!*text || *text == '-');
}

/* A device by its name or its numbers. */
static int mlo_fpga_named(mlo *m, const char *text, mlo_fpga *to) {
    mlo_text known = { m, NULL, 0, 0 };
    memset(to, 0, sizeof *to);
    to->name = "given";
    if (strchr(text, '=')) return mlo_fpga_numbers(m, text, to);
    for (int i = 0; i < MLO_N_FPGAS; i++)
        if (mlo_fpga_is(text, mlo_fpgas[i].name)) {
            *to = mlo_fpgas[i];
            return 0;
        }
    const char *near = NULL;
    for (int i = 0; i < MLO_N_FPGAS; i++) {
        mlo_nearer(text, mlo_fpgas[i].name, &near);
        mlo_printf(&known, "%s%s", i ? ", " : "", mlo_fpgas[i].name);
    }
    if (!m->error.code)
        mlo_fail_at(m, MLO_E_USAGE, NULL,
            "there is no device %s%s%s; they are %s, or lut=N,ff=N,dsp=N,bram=N of another "
            "UltraScale+",
            text, near ? "; did you mean " : "", near ? mlo_format(m, "%s?", near) : "",
            known.text);
    mlo_text_free(&known);
    return mlo_failed(m);
}

/* ---- searching ------------------------------------------------------------ */

static mlo_area mlo_core_area(const mlo_core *c) {
    mlo_estimate e;
    mlo_estimate_core(c, &e);
    return e.all;
}

/* Depths of a core's FIFOs: as its schedule fills them. But for a device (NULL: for none) that has
 * only room for deep ones, as their paths hold them: a deep FIFO is a block RAM, a shallow one may
 * be of LUTs. */
static int mlo_device_depths(mlo *m, mlo_core *c, const mlo_fpga *f) {
    if (mlo_core_depths(m, c)) return mlo_failed(m);
    const mlo_area a = mlo_core_area(c);
    if (f && mlo_fpga_lacks(f, &a) >= 0) mlo_core_fifos(c);
    return 0;
}

/* The whole core as the plan has it. */
static int mlo_plan_area(const mlo_space *s, const mlo_plan *p, const mlo_fpga *f, mlo_area *a) {
    if (mlo_plan_apply(s, p) || mlo_device_depths(s->m, s->c, f)) return mlo_failed(s->m);
    *a = mlo_core_area(s->c);
    return 0;
}

/* A device of middle size, for which a core is made where nobody says for which. */
static const mlo_fpga *mlo_fpga_usual(void) {
    int i = 0;
    while (i < MLO_N_FPGAS - 1 && !mlo_eq(mlo_fpgas[i].name, "xczu9eg")) i++;
    return &mlo_fpgas[i];
}

#define MLO_AREA_ANY { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX - 1 }

/* Of each resource the least that any plan takes. */
static void mlo_area_least(mlo_area *a, const mlo_area *b) {
    a->lut = mlo_min(a->lut, b->lut);
    a->ff = mlo_min(a->ff, b->ff);
    a->dsp = mlo_min(a->dsp, b->dsp);
    a->bram = mlo_min(a->bram, b->bram);
}

/* Does the core fit as the plan has it? Surely if with deep FIFOs, surely not if not even without
 * (or, of block RAMs, with those that must be); only where that does not tell, depths are worked out.
 * area: what it takes, or less. deep: it fits with deep FIFOs, or not at all. */
static int mlo_plan_fits(
    const mlo_space *s, const mlo_plan *p, const mlo_fpga *f, int deep, mlo_area *area, int *fits) {
    if (mlo_plan_apply(s, p)) return mlo_failed(s->m);
    *area = mlo_core_area(s->c);
    *fits = mlo_fpga_lacks(f, area) < 0;
    if (*fits || deep) return 0;
    static const int64_t none[2 * MLO_CORE_MOST] = { 0 };
    mlo_core_shallow(s->c, none);
    const mlo_area shallow = mlo_core_area(s->c);
    for (int k = 0; k < s->c->n_edge; k++) s->c->edge[k].fifo = 0;
    *area = mlo_core_area(s->c);
    /* which a deeper FIFO does not save, as it may LUTs */
    area->bram = shallow.bram;
    if (mlo_fpga_lacks(f, area) >= 0) return 0;
    if (mlo_core_depths(s->m, s->c)) return mlo_failed(s->m);
    *area = mlo_core_area(s->c);
    *fits = mlo_fpga_lacks(f, area) < 0;
    return 0;
}

/* All plans of the front, the slowest first, not predicted. */
static int mlo_device_front(const mlo_space *s, const mlo_limits *l, mlo_plan **plans, size_t *n) {
    mlo_limits tried = *l;
    mlo_plan plan;
    for (int found = 1; found; tried.steady = plan.steady - 1)
        if (mlo_search_solve(s, &tried, &plan, &found)
            || (found && !MLO_PUSH(s->m, *plans, *n, plan)))
            return mlo_failed(s->m);
    return 0;
}

/* Does the plan fit? Then it is predicted. */
static int mlo_device_try(
    const mlo_space *s, const mlo_fpga *f, mlo_plan *p, int first, int *fits, mlo_area *least) {
    mlo_area area;
    if (mlo_plan_fits(s, p, f, first, &area, fits)) return mlo_failed(s->m);
    mlo_area_least(least, &area);
    return *fits ? mlo_plan_predict(s, p) : 0;
}

/* The fastest of the front that fits; with a target, the cheapest that meets it, or the fastest.
 * Faster ones first, until none can be faster. first: the first of these that fits with deep FIFOs
 * is good enough. least: of each resource what any plan takes, if none is found. */
static int mlo_device_best(const mlo_space *s, const mlo_limits *l, const mlo_fpga *f,
    int64_t target, int first, mlo_plan *best, int *found, mlo_area *least) {
    const int64_t iterations = s->c->scan.iterations;
    mlo_plan *plans = NULL;
    size_t n = 0;
    int fits;
    *found = 0;
    if (mlo_device_front(s, l, &plans, &n)) return mlo_failed(s->m);
    for (size_t i = 0; i < n && target; i++)
        if (plans[i].steady * iterations <= target) {
            if (mlo_device_try(s, f, &plans[i], first, &fits, least)) return mlo_failed(s->m);
            if (!fits || plans[i].cycles > target) continue;
            *best = plans[i];
            *found = 1;
            return 0;
        }
    for (size_t i = n;
        i-- && !(*found && (first || plans[i].steady * iterations > best->cycles));) {
        mlo_work(s->m, "searches foldings", (int64_t)(n - 1 - i), (int64_t)n);
        if (mlo_device_try(s, f, &plans[i], first, &fits, least)) return mlo_failed(s->m);
        if (!fits) continue;
        const int faster = !*found || plans[i].cycles < best->cycles
            || (plans[i].cycles == best->cycles
                && mlo_price_order(&plans[i].price, &best->price) < 0);
        if (faster) *best = plans[i];
        *found = 1;
    }
    return 0;
}

/* Nothing fits: of what there is too little. */
static int mlo_device_too_small(
    const mlo_space *s, const mlo_fpga *f, const mlo_area *least, const char *remedy) {
    int k = mlo_fpga_lacks(f, least);
    if (k < 0)
        return mlo_fail_at(s->m, MLO_E_FOLDING, NULL,
            "no folding fits the device (%s): what has few enough of one thing has too many of "
            "another%s",
            f->name, remedy);
    return mlo_fail_at(s->m, MLO_E_FOLDING, NULL,
        "the device (%s) is too small: any folding takes %lld %s, and %d %% of the %lld there are "
        "%lld%s",
        f->name, (long long)mlo_area_takes(least, k), mlo_resources[k].name,
        mlo_resources[k].percent, (long long)mlo_fpga_has(f, k), (long long)mlo_fpga_room(f, k),
        remedy);
}

/* Keeps the plans that fit; an error if there is none. */
static int mlo_device_thin(const mlo_space *s, const mlo_fpga *f, mlo_plan *plans, size_t *n) {
    mlo_area area, least = MLO_AREA_ANY;
    size_t kept = 0;
    int fits;
    for (size_t i = 0; i < *n; i++) {
        if (mlo_plan_fits(s, &plans[i], f, 0, &area, &fits)) return mlo_failed(s->m);
        mlo_area_least(&least, &area);
        if (fits) plans[kept++] = plans[i];
    }
    *n = kept;
    return kept ? 0 : mlo_device_too_small(s, f, &least, "");
}
