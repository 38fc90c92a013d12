/* fold: how much hardware each kernel gets.
 *
 * in:  a lowered model, and a target: caps (--pe, --simd), cycles per frame (--target-cycles, --target-fps with --clock-mhz),
 *      multipliers (--budget-macs), or a folding JSON (FINN's keys).
 * out: the same model with mlo.pe, mlo.simd, FIFO depths and frames in flight written on its nodes.
 * invariant: every PE and SIMD divides what it must; what was asked for one kernel by name is taken as it is or refused.
 * example: --target-cycles 40000 on a BERT of T tokens and L layers: each kernel gets the fewest multipliers that serve a token in
 *      40000 / (L (T + 7) + T) cycles, so that all are equally busy.
 * cost: divisors x kernels per tried interval, and a binary search over intervals.
 */

/* The largest legal value not above cap, the other knob given. */
static int64_t mlo_largest(const mlo_element *e, int64_t cap, int64_t other, int is_pe) {
    for (int64_t v = cap; v > 1; v--) if (is_pe ? e->kernel->legal(&e->site, v, other) : e->kernel->legal(&e->site, other, v)) return v;
    return 1;
}

static int mlo_fold_caps(mlo *m, mlo_hw *c, int64_t pe, int64_t simd) {
    for (int i = 0; i < c->n_element; i++) {
        mlo_element *e = &c->element[i];
        if (!e->kernel) continue;
        int64_t s = e->kernel->simd_axis ? mlo_largest(e, simd, 1, 0) : 1, p = mlo_largest(e, pe, s, 1);
        if (mlo_element_fold(m, e, p, s)) return (int)m->error.code;
    }
    return 0;
}

/* Of foldings with as many multipliers, the one nearest to SIMD = 4 PE: wide trees save requantizers, very wide ones cost routing. */
static int64_t mlo_fold_skew(int64_t pe, int64_t simd) { return simd > 4 * pe ? simd : 4 * pe; }

typedef struct { int64_t pe, simd, cost, interval; } mlo_choice;

/* Is a better than b for a wanted interval? What is fast enough beats what is not; then cheaper wins; then what is less skewed. */
static int mlo_choice_better(const mlo_choice *a, const mlo_choice *b, int64_t interval) {
    int fits = a->interval <= interval, b_fits = b->interval <= interval;
    if (!b->cost || fits != b_fits) return !b->cost || fits;
    if (!fits) return a->interval < b->interval;
    return a->cost != b->cost ? a->cost < b->cost : mlo_fold_skew(a->pe, a->simd) < mlo_fold_skew(b->pe, b->simd);
}

/* The fewest multipliers (lanes, where there are none) that make a token in `interval` cycles; the fastest there is when none does. */
static int mlo_fold_element(mlo *m, mlo_element *e, int64_t interval) {
    int64_t most_s = e->kernel->simd_axis ? mlo_last_dim(&e->site.in[0]) : 1, most_p = e->unit.whole_frame ? e->site.tokens : mlo_last_dim(&e->site.out);
    mlo_choice best = { 1, 1, 0, 0 };
    for (int64_t s = 1; s <= most_s; s++) {
        if (!e->kernel->legal(&e->site, 1, s)) continue;
        for (int64_t p = 1; p <= most_p; p++) {
            mlo_unit u;
            if (!e->kernel->legal(&e->site, p, s)) continue;
            memset(&u, 0, sizeof u);
            u.pe = (int)p; u.simd = (int)s;
            if (e->kernel->unit(&e->site, p, s, &u)) return (int)m->error.code;
            mlo_choice c = { p, s, u.multipliers ? u.multipliers : p, u.interval };
            if (mlo_choice_better(&c, &best, interval)) best = c;
            if (c.interval <= interval) break;                    /* a larger PE only costs more */
        }
    }
    return mlo_element_fold(m, e, best.pe, best.simd);
}

static int mlo_fold_interval(mlo *m, mlo_hw *c, int64_t interval) {
    for (int i = 0; i < c->n_element; i++) if (c->element[i].kernel && mlo_fold_element(m, &c->element[i], interval)) return (int)m->error.code;
    mlo_core_lanes(c);
    return 0;
}

static int64_t mlo_most_interval(mlo *m, mlo_hw *c) {
    if (mlo_fold_caps(m, c, 1, 1)) return 1;
    return mlo_core_interval(c);
}

/* The longest token interval that meets the cycles per frame. */
static int mlo_fold_cycles(mlo *m, mlo_hw *c, int64_t target) {
    int64_t low = 1, high = mlo_most_interval(m, c), best = 0;
    mlo_prediction p;
    while (low <= high && !m->error.code) {
        int64_t middle = low + (high - low) / 2;
        if (mlo_fold_interval(m, c, middle) || mlo_predict(m, c, c->frames > 1 ? 2 * c->frames : 1, &p)) return (int)m->error.code;
        if (p.interval <= target) { best = middle; low = middle + 1; } else high = middle - 1;
    }
    if (best) return mlo_fold_interval(m, c, best);
    if (mlo_fold_interval(m, c, 1) || mlo_predict(m, c, c->frames > 1 ? 2 * c->frames : 1, &p)) return (int)m->error.code;
    return mlo_fail_at(m, MLO_E_FOLDING, NULL, "%lld cycles per frame cannot be reached; the fastest folding takes %lld, with %lld multipliers; raise --target-cycles", (long long)target, (long long)p.interval, (long long)mlo_core_multipliers(c));
}

/* The shortest token interval within a number of multipliers. */
static int mlo_fold_budget(mlo *m, mlo_hw *c, int64_t budget) {
    int64_t low = 1, high = mlo_most_interval(m, c), best = 0, least = mlo_core_multipliers(c);
    if (least > budget) return mlo_fail_at(m, MLO_E_FOLDING, NULL, "a budget of %lld multipliers is too small; the smallest folding has %lld", (long long)budget, (long long)least);
    while (low <= high && !m->error.code) {
        int64_t middle = low + (high - low) / 2;
        if (mlo_fold_interval(m, c, middle)) return (int)m->error.code;
        if (mlo_core_multipliers(c) <= budget) { best = middle; high = middle - 1; } else low = middle + 1;
    }
    return mlo_fold_interval(m, c, best ? best : mlo_most_interval(m, c));
}

/* ---- folding JSON ------------------------------------------------------------------------------------------------------------------ */

/* "FINNLoop_0_MVAU_rtl_3" and "FINNLoop_0_body_FINNLoop_0_MVAU_rtl_3" name FINN's kernels by kind and number; mlo's own are "mvu_3". */
static int mlo_folding_names(const char *key, const mlo_element *e) {
    static const char *const kinds[][2] = { { "MVAU_rtl", "mvu" }, { "MVAU_hls", "mvu" }, { "MVAU", "mvu" }, { "LayerNorm_rtl", "layernorm" }, { "LayerNorm_hls", "layernorm" },
        { "LayerNorm", "layernorm" }, { "ElementwiseAdd_hls", "add" }, { "ElementwiseAdd_rtl", "add" }, { "ElementwiseAdd", "add" } };
    if (mlo_eq(key, e->name)) return 1;
    if (!mlo_starts(key, "FINNLoop_")) return 0;
    const char *number = strrchr(key, '_');
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i][0]), k = strlen(kinds[i][1]);
        if ((size_t)(number - key) > n && !strncmp(number - n, kinds[i][0], n) && number[-(ptrdiff_t)n - 1] == '_'
            && !strncmp(e->name, kinds[i][1], k) && mlo_eq(e->name + k, number)) return 1;
    }
    return 0;
}

/* Legal values next to the one asked for: "4 or 8". */
static const char *mlo_nearest(mlo *m, const mlo_element *e, int64_t v, int64_t other, int is_pe) {
    int64_t below = v, above = v, most = 65536;
    while (below > 1 && !(is_pe ? e->kernel->legal(&e->site, below, other) : e->kernel->legal(&e->site, other, below))) below--;
    while (above < most && !(is_pe ? e->kernel->legal(&e->site, above, other) : e->kernel->legal(&e->site, other, above))) above++;
    return above < most ? mlo_format(m, "%lld or %lld", (long long)below, (long long)above) : mlo_format(m, "%lld", (long long)below);
}

/* A PE or SIMD of an entry; `otherwise` when it has none. */
static int64_t mlo_folding_int(mlo *m, const cJSON *entry, const char *key, int64_t otherwise) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(entry, key);
    if (!v) return otherwise;
    if (cJSON_IsNumber(v) && v->valuedouble >= 1 && v->valuedouble <= 65536 && v->valuedouble == floor(v->valuedouble)) return (int64_t)v->valuedouble;
    mlo_fail_at(m, MLO_E_FOLDING, entry->string, "%s must be a whole number from 1 to 65536", key);
    return otherwise;
}

static int mlo_folding_entry(mlo *m, mlo_hw *c, const cJSON *entry) {
    int used = 0;
    for (int i = 0; i < c->n_element; i++) {
        mlo_element *e = &c->element[i];
        if (!e->kernel || !mlo_folding_names(entry->string, e)) continue;
        int64_t pe = mlo_folding_int(m, entry, "PE", e->unit.pe), simd = mlo_folding_int(m, entry, "SIMD", e->unit.simd);
        used = 1;
        if (m->error.code) return (int)m->error.code;
        if (!e->kernel->simd_axis && cJSON_GetObjectItemCaseSensitive(entry, "SIMD") && simd != 1) { pe = cJSON_GetObjectItemCaseSensitive(entry, "PE") ? pe : simd; simd = 1; }
        if (e->kernel->simd_axis && !e->kernel->legal(&e->site, 1, simd))
            return mlo_fail_at(m, MLO_E_FOLDING, e->name, "SIMD=%lld does not divide the %s; the nearest that do are %s", (long long)simd, e->kernel->simd_axis, mlo_nearest(m, e, simd, 1, 0));
        if (!e->kernel->legal(&e->site, pe, simd))
            return mlo_fail_at(m, MLO_E_FOLDING, e->name, "PE=%lld does not divide the %s; the nearest that do are %s", (long long)pe, e->kernel->pe_axis, mlo_nearest(m, e, pe, simd, 1));
        if (mlo_element_fold(m, e, pe, simd)) return (int)m->error.code;
    }
    return used ? 0 : mlo_fail_at(m, MLO_E_FOLDING, entry->string, "the folding names a kernel that the core does not have; `mlo show` lists them");
}

static int mlo_fold_json(mlo *m, mlo_hw *c, const char *text) {
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithOpts(text, &end, 1);
    if (!cJSON_IsObject(json)) { cJSON_Delete(json); return mlo_fail_at(m, MLO_E_FORMAT, NULL, "the folding is not a JSON object of kernels: {\"mvu_0\": {\"PE\": 4, \"SIMD\": 4}, ...}"); }
    const cJSON *entry = NULL;
    cJSON_ArrayForEach(entry, json) if (!m->error.code && !mlo_eq(entry->string, "Defaults")) mlo_folding_entry(m, c, entry);
    cJSON_Delete(json);
    return (int)m->error.code;
}

/* The folding as JSON, in FINN's form. */
static void mlo_folding_text(const mlo_hw *c, mlo_text *t) {
    mlo_puts(t, "{\n  \"Defaults\": {}");
    for (int i = 0; i < c->n_element; i++) if (c->element[i].kernel) {
        mlo_printf(t, ",\n  \"%s\": {\"PE\": %d", c->element[i].name, c->element[i].unit.pe);
        if (c->element[i].kernel->simd_axis) mlo_printf(t, ", \"SIMD\": %d", c->element[i].unit.simd);
        mlo_puts(t, "}");
    }
    mlo_puts(t, "\n}\n");
}

/* ---- the stage ------------------------------------------------------------------------------------------------------------------------ */

static int mlo_fold_choose(mlo *m, mlo_hw *c) {
    long pe = mlo_opt_int(m, "pe", 0, 1, 65536), simd = mlo_opt_int(m, "simd", 0, 1, 65536), cycles = mlo_opt_int(m, "target-cycles", 0, 1, LONG_MAX);
    long fps = mlo_opt_int(m, "target-fps", 0, 1, LONG_MAX), mhz = mlo_opt_int(m, "clock-mhz", 0, 1, 100000), budget = mlo_opt_int(m, "budget-macs", 0, 1, LONG_MAX);
    const char *json = mlo_opt(m, "folding-json");
    if (m->error.code) return (int)m->error.code;
    if (!!cycles + !!fps + !!budget + !!(pe || simd) > 1) return mlo_fail_at(m, MLO_E_USAGE, NULL, "--pe/--simd, --target-cycles, --target-fps and --budget-macs exclude each other; give one");
    if (!!fps != !!mhz) return mlo_fail_at(m, MLO_E_USAGE, NULL, "--target-fps needs --clock-mhz, and the other way round");
    int r;
    if (fps) r = mlo_fold_cycles(m, c, (int64_t)mhz * 1000000 / fps);
    else if (cycles) r = mlo_fold_cycles(m, c, cycles);
    else if (budget) r = mlo_fold_budget(m, c, budget);
    else r = mlo_fold_caps(m, c, pe ? pe : 1, simd ? simd : 1);
    if (!r && json) r = mlo_fold_json(m, c, json);
    return r;
}

static int mlo_fold_note(mlo *m, mlo_node *n, const char *key, int64_t value) { return mlo_meta_put(m, &n->meta, &n->n_meta, key, mlo_format(m, "%lld", (long long)value)); }

/* The `fold` stage. */
static int mlo_fold(mlo *m) {
    mlo_hw *c = MLO_NEW(m, mlo_hw);
    if (!c || mlo_core_build(m, c)) return (int)m->error.code;
    c->frames = (int)mlo_opt_int(m, "frames-in-flight", c->frames, 1, 255);
    long axi = mlo_opt_int(m, "axi-width", c->axi_bits, 32, 1024);
    if (axi & (axi - 1)) return mlo_fail_at(m, MLO_E_USAGE, NULL, "--axi-width %ld is not a power of two", axi);
    c->axi_bits = (int)axi;
    if (m->error.code || mlo_fold_choose(m, c)) return (int)m->error.code;
    mlo_core_lanes(c);
    mlo_core_fifos(c);
    if (mlo_fold_note(m, c->scan.node, "mlo.frames", c->frames) || mlo_fold_note(m, c->scan.node, "mlo.axi_width", c->axi_bits)) return (int)m->error.code;
    for (int i = 0; i < c->n_element; i++) if (c->element[i].kernel)
        if (mlo_fold_note(m, c->element[i].node, "mlo.pe", c->element[i].unit.pe) || mlo_fold_note(m, c->element[i].node, "mlo.simd", c->element[i].unit.simd)) return (int)m->error.code;
    for (int k = 0; k < c->n_edge; k++) if (c->edge[k].fifo && c->edge[k].to != MLO_OUTSIDE) {
        char key[32];
        snprintf(key, sizeof key, "mlo.fifo.%d", c->edge[k].to_port);
        if (mlo_fold_note(m, c->element[c->edge[k].to].node, key, c->edge[k].fifo)) return (int)m->error.code;
    }
    return 0;
}
