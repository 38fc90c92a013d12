/* fold: decides how much hardware each kernel gets.
 *
 * in:  a lowered model, and options:
 *     limits      --pe, --simd
 *     a target    --target-cycles, or --target-fps with --clock-mhz
 *     budgets     --budget-macs, --budget-bits
 *     a device    --device
 *     memory      --memory, --tile, --bandwidth, --axi-latency, --axi-width
 *     a folding   JSON with FINN's keys, or a line of --pareto
 * out: the same model; its nodes have mlo.pe, mlo.simd, mlo.memory, FIFO depths and the number of
 *     frames in flight.
 *
 * --memory block: a matrix is read in row blocks, unless PE covers all its channels in one group:
 * only a block of it is on chip, and every tile of --tile tokens (default: a frame) passes all
 * blocks. --memory auto --tile N uses row blocks where they are better than the whole matrix on
 * chip. --tile auto chooses the size that serves best for all kernels without a tile of their own;
 * of equally good sizes, the one with the fewest tiles. --device tries two layers on chip and row
 * blocks (--tile auto), and takes the better. With no option, the knee is taken (knee.c), and a
 * line says so.
 *
 * FIFO depths: --budget-bits counts every FIFO as deep as its path could need, so that the budget
 * holds in any case; the folding chosen gets the depths that its schedule fills.
 *
 * invariant: every PE and SIMD divides what it must. What is asked for one kernel by name is taken
 *     as it is, or refused. The rest is the best under the model of search.c, given those.
 * example: --target-cycles 40000 on a BERT of T tokens and L layers: each kernel gets the fewest
 *     multipliers that serve a token in 40000 / (L (T + 7) + T) cycles, so that all are equally
 *     busy.
 * cost: that of the search, and a schedule of two groups of frames for the depths.
 */

/* The largest legal value not above cap, the other knob given; the least there is, if that is above. */
static int64_t mlo_largest(const mlo_element *e, int64_t cap, int64_t other, int is_pe) {
    for (int64_t v = cap; v > 1; v--)
        if (is_pe ? e->kernel->legal(&e->site, v, other) : e->kernel->legal(&e->site, other, v))
            return v;
    return is_pe ? mlo_element_least(e) : 1;
}

static int mlo_fold_caps(mlo *m, mlo_core *c, int64_t pe, int64_t simd) {
    for (int i = 0; i < c->n_element; i++) {
        mlo_element *e = &c->element[i];
        if (!e->kernel) continue;
        int64_t s = e->kernel->simd_axis ? mlo_largest(e, simd, 1, 0) : 1;
        int64_t p = mlo_largest(e, pe, s, 1);
        if (mlo_element_fold(m, c, e, p, s)) return mlo_failed(m);
    }
    return 0;
}

/* ---- searching ------------------------------------------------------------ */

/* What was asked for: caps, or a target, within limits. */
typedef struct {
    int64_t pe; /* cap */
    int64_t simd; /* cap */
    int64_t target; /* cycles per frame; 0: none, then the fastest */
    int64_t tile; /* tokens of a tile, of any_tile the most; 0: not asked for */
    mlo_limits within;

    int search; /* 1: the folding is searched for; 0: it is as the caps say */
    int any_frames; /* 1: frames in flight are searched for, too */
    int any_tile; /* 1: tokens of a tile are searched for, too */
    int memories; /* the set of those that parameters may be in */
    int memories_only; /* 1: memories alone are searched for; PE and SIMD are as the caps say */
    int usual; /* 1: nothing was asked for; the knee (knee.c) */
    int free; /* 1: no option says where parameters are, and row blocks may be tried */
    int64_t position; /* of a token that comes alone, whose step is what counts; -1: frames count */
    int64_t sequences; /* that take the step together */
    int stepped; /* 1: it was what decided, though nobody said so */
    const char *reached; /* the options by which a target that is missed can be changed */
    const mlo_fpga *device; /* NULL: none */
} mlo_wish;

/* No folding is within the limits: which of them, and what the least is. */
static int mlo_fold_too_small(mlo_space *s, const mlo_limits *l, int any_frames) {
    mlo_rest least[MLO_CORE_MOST + 1];
    if (any_frames && mlo_search_frames(s, 1)) return mlo_failed(s->m);
    mlo_search_rest(s, MLO_UNLIMITED, least);
    int64_t bits = least[0].bits + s->fifo_bits;
    if (least[0].multipliers > l->multipliers)
        return mlo_fail_at(s->m, MLO_E_FOLDING, NULL,
            "a budget of %lld multipliers is too small; the smallest folding has %lld",
            (long long)l->multipliers, (long long)least[0].multipliers);
    if (bits > l->bits)
        return mlo_fail_at(s->m, MLO_E_FOLDING, NULL,
            "a budget of %lld bits on chip is too small; the core holds %lld at least: %lld of "
            "parameters and of frames, %lld in FIFOs as deep as its paths, with %d frame%s in "
            "flight",
            (long long)l->bits, (long long)bits, (long long)least[0].bits, (long long)s->fifo_bits,
            s->c->frames, s->c->frames > 1 ? "s" : "");
    return mlo_fail_at(s->m, MLO_E_FOLDING, NULL,
        "no folding has at most %lld multipliers and %lld bits on chip; raise --budget-macs or "
        "--budget-bits",
        (long long)l->multipliers, (long long)l->bits);
}

/* Which of two plans serves the wish better? A target: what meets it, then the cheaper; else the
 * faster, then the cheaper; then fewer frames. */
static int mlo_plan_serves(const mlo_wish *w, const mlo_plan *a, const mlo_plan *b) {
    int met = w->target && a->cycles <= w->target;
    int other = w->target && b->cycles <= w->target;
    int price = mlo_price_order(&a->price, &b->price);
    if (met != other) return met;
    if (met) return price < 0;
    if (w->usual && !w->device) return mlo_plan_cost(a) < mlo_plan_cost(b);
    return a->cycles < b->cycles || (a->cycles == b->cycles && price < 0);
}

/* The best plan for a number of frames in flight; found: there is one within the limits, which
 * meets the target or is the fastest. */
static int mlo_fold_plan(
    const mlo_space *s, const mlo_wish *w, mlo_plan *plan, int *found, mlo_area *least) {
    int met = 0;
    if (w->device)
        return mlo_device_best(s, &w->within, w->device, w->target, w->usual, plan, found, least);
    if (w->usual) return mlo_knee(s, &w->within, plan, found);
    if (w->target && (mlo_search_target(s, &w->within, w->target, plan, &met, found) || met)) {
        *found = met;
        return mlo_failed(s->m);
    }
    if (!w->target && mlo_search_fastest(s, &w->within, plan, found)) return mlo_failed(s->m);
    if (!*found || w->target) return 0;
    return mlo_plan_predict(s, plan) || mlo_search_uneven(s, &w->within, plan);
}

/* The best so far; found: there is one. least: of each resource of a device what any plan takes. */
typedef struct {
    mlo_plan plan;
    int64_t tile;
    int found;
    mlo_area least;
} mlo_best;

/* Of all numbers of frames in flight, with the tile that kernels have. */
static int mlo_fold_frames(mlo_space *s, const mlo_wish *w, int64_t tile, mlo_best *best) {
    mlo_plan plan;
    int found;
    for (int frames = w->any_frames ? 1 : s->c->frames,
             last = w->any_frames ? MLO_SEARCH_FRAMES : frames;
        frames <= last; frames++) {
        if (mlo_search_frames(s, frames) || mlo_fold_plan(s, w, &plan, &found, &best->least))
            return mlo_failed(s->m);
        if (found && (!best->found || mlo_plan_serves(w, &plan, &best->plan))) {
            best->plan = plan;
            best->tile = tile;
            best->found = 1;
        }
        if (found && !mlo_search_more(s, &plan)) break;
    }
    return 0;
}

static void mlo_fold_tile(mlo_core *c, int64_t tile) {
    for (int i = 0; i < c->n_element; i++)
        if (!c->element[i].own_tile) c->element[i].tile = tile;
}

/* The core folded as the plan has it; what one frame in flight makes of spare multipliers. */
static int mlo_fold_apply(mlo_space *s, const mlo_wish *w, mlo_plan *plan) {
    if (mlo_search_frames(s, plan->frames) || mlo_plan_apply(s, plan)) return mlo_failed(s->m);
    return w->target || w->device ? 0 : mlo_search_spare(s, &w->within, plan);
}

/* For a device, nothing slower than what was found. */
static void mlo_fold_tighten(const mlo_core *c, const mlo_best *best, mlo_wish *w) {
    if (w->device && best->found && !w->target)
        w->within.steady = best->plan.cycles / c->scan.iterations;
}

/* Of all tiles, too: of the sizes that cut a frame into as many, the smallest, which holds least. */
static int mlo_fold_tiles(mlo_space *s, const mlo_wish *w, mlo_best *best) {
    mlo_best one = *best;
    if (!w->any_tile) return mlo_fold_frames(s, w, w->tile, best);
    for (int64_t n = 1, before = 0; n <= s->c->chunk; before = one.tile, n += w->usual ? n : 1) {
        mlo_wish tight = *w;
        one.tile = mlo_parts(s->c->chunk, n);
        one.found = 0;
        if (one.tile == before) continue;
        mlo_fold_tile(s->c, one.tile);
        mlo_fold_tighten(s->c, best, &tight);
        if (mlo_search_menus(s) || mlo_fold_frames(s, &tight, one.tile, &one))
            return mlo_failed(s->m);
        best->least = one.least;
        if (!one.found) continue;
        if (!w->device && (mlo_fold_apply(s, w, &one.plan) || mlo_plan_cycles(s, &one.plan)))
            return mlo_failed(s->m);
        if (!best->found || mlo_plan_serves(w, &one.plan, &best->plan)) *best = one;
    }
    if (best->found) mlo_fold_tile(s->c, best->tile);
    return mlo_search_menus(s);
}

/* The search may choose from these; without one, layer where that is among them. Blocks are of a
 * matrix's rows; other kernels have layer for it, and those that handle the memory's tokens. */
static void mlo_allow_memories(mlo_element *e, int memories) {
    if (memories & MLO_BLOCK && (!mlo_has_rows(e) || e->side))
        memories = (memories & ~MLO_BLOCK) | (memories == MLO_BLOCK ? MLO_LAYER : 0);
    e->memories = memories;
    e->memory = memories & MLO_LAYER ? MLO_LAYER
        : memories & MLO_RESIDENT    ? MLO_RESIDENT
                                     : MLO_BLOCK;
}

/* Kernels that have no mode of their own may have these, from then on. */
static int mlo_fold_modes(mlo_space *s, int memories) {
    for (int i = 0; i < s->c->n_element; i++)
        if (!s->c->element[i].own_memory) mlo_allow_memories(&s->c->element[i], memories);
    return mlo_search_begin(s->m, s->c, 0, s);
}

/* On a device, with matrices in row blocks, too: better? If not, all is as it was. */
static int mlo_fold_blocks(mlo_space *s, const mlo_wish *w, mlo_best *best, int *better) {
    mlo_wish blocks = *w;
    mlo_best other = *best;
    blocks.any_tile = !w->tile;
    other.tile = 0; /* of what is found with row blocks it is another one */
    mlo_fold_tighten(s->c, best, &blocks);
    if (w->tile) mlo_fold_tile(s->c, w->tile);
    if (mlo_fold_modes(s, MLO_BLOCK) || mlo_fold_tiles(s, &blocks, &other)) return mlo_failed(s->m);
    *better = other.tile > 0;
    if (*better)
        *best = other;
    else
        best->least = other.least;
    if (*better) return 0;
    mlo_fold_tile(s->c, w->tile ? w->tile : mlo_core_tile(s->c));
    return mlo_fold_modes(s, MLO_LAYER);
}

/* Nothing fits the device. Would row blocks, where --memory says something else? */
static int mlo_fold_misfit(mlo_space *s, const mlo_wish *w, mlo_best *best) {
    const mlo_area least = best->least;
    int better = 0;
    if (w->memories == MLO_LAYER && mlo_opt(s->m, "memory") && mlo_fold_blocks(s, w, best, &better))
        return mlo_failed(s->m);
    return mlo_device_too_small(
        s, w->device, &least, better ? "; --memory block --tile auto fits" : "");
}

/* The knee, where it does not fit a device of middle size with two layers' parameters on chip: the
 * fastest that fits one in row blocks, with no more multipliers. w->device is that device from
 * then on; as it was, if there is none. */
static int mlo_fold_fit(mlo_space *s, mlo_wish *w, mlo_best *best) {
    mlo_best none = { { { 0 }, { 0, 0, 0, 0, 0 }, 0, 0, 0, 0, 0, 0 }, 0, 0, MLO_AREA_ANY };
    mlo_wish fit = *w;
    mlo_area area;
    int fits, better;
    fit.device = mlo_fpga_usual();
    fit.within.multipliers = best->plan.price.multipliers;
    if (!w->usual || !w->free || mlo_plan_fits(s, &best->plan, fit.device, 0, &area, &fits) || fits)
        return mlo_failed(s->m);
    if (mlo_fold_blocks(s, &fit, &none, &better)) return mlo_failed(s->m);
    if (better) {
        *best = none;
        *w = fit;
    }
    return 0;
}

/* A target that no folding meets. */
static int mlo_fold_missed(
    mlo_space *s, const mlo_wish *w, const mlo_plan *plan, const char *what, const char *waits) {
    return mlo_fail_at(s->m, MLO_E_FOLDING, NULL,
        "%lld cycles per %s cannot be reached%s; the fastest folding takes %lld, with %lld "
        "multipliers%s; raise %s",
        (long long)w->target, what,
        w->device ? " within the device"
            : w->within.multipliers < MLO_UNLIMITED || w->within.bits < MLO_UNLIMITED
            ? " within the budget"
            : "",
        (long long)plan->cycles, (long long)plan->price.multipliers, waits, w->reached);
}

/* The folding that serves a step best. */
static int mlo_fold_step(mlo_space *s, const mlo_wish *w) {
    const int free = !w->target && w->within.multipliers == MLO_UNLIMITED;
    mlo_step_wish step = { w->target, !free, free && mlo_opt(s->m, "bandwidth"), w->within,
        w->device };
    mlo_plan plan;
    int found;
    s->position = w->position;
    s->sequences = w->sequences;
    if (mlo_step_search(s, &step, &plan, &found)) return mlo_failed(s->m);
    if (!found) return mlo_fold_too_small(s, &w->within, 0);
    if (w->target && plan.cycles > w->target) return mlo_fold_missed(s, w, &plan, "token", "");
    return mlo_plan_apply(s, &plan);
}

/* Nobody says what counts: the knee serves prompts well. If a step is much slower than one of as many
 * multipliers, or MLO_STEP_MOST, would make it, that one is taken (*w then says so). */
static int mlo_fold_knee_or_step(mlo_space *s, mlo_wish *w, mlo_plan *knee) {
    mlo_step_wish step = { 0, 0, 0, w->within, w->device };
    mlo_plan plan, as = *knee;
    mlo_area area;
    int fits = 0, found;
    step.within.multipliers = mlo_max(MLO_STEP_MOST, knee->price.multipliers);
    if (!w->device && mlo_plan_fits(s, knee, mlo_fpga_usual(), 0, &area, &fits))
        return mlo_failed(s->m);
    if (fits) step.device = mlo_fpga_usual();
    s->position = w->position;
    s->sequences = w->sequences;
    if (mlo_step_predict(s, &as) || mlo_step_search(s, &step, &plan, &found))
        return mlo_failed(s->m);
    w->stepped = found && (double)as.cycles > MLO_STEP_SLOW * (double)plan.cycles;
    return mlo_plan_apply(s, w->stepped ? &plan : knee);
}

static int mlo_fold_search(mlo *m, mlo_core *c, mlo_wish *w) {
    mlo_space s;
    mlo_best best = { { { 0 }, { 0, 0, 0, 0, 0 }, 0, 0, 0, 0, 0, 0 }, 0, 0, MLO_AREA_ANY };
    mlo_plan *plan = &best.plan;
    int better;
    if (mlo_search_begin(m, c, 0, &s)) return mlo_failed(m);
    if (w->position >= 0 && !w->usual) return mlo_fold_step(&s, w);
    if (mlo_fold_tiles(&s, w, &best)) return mlo_failed(m);
    if (w->device && w->free && mlo_fold_blocks(&s, w, &best, &better)) return mlo_failed(m);
    if (best.found && mlo_fold_fit(&s, w, &best)) return mlo_failed(m);
    if (!best.found && best.least.lut < INT64_MAX) return mlo_fold_misfit(&s, w, &best);
    if (!best.found) return mlo_fold_too_small(&s, &w->within, w->any_frames);
    if (w->position >= 0) return mlo_fold_knee_or_step(&s, w, plan);
    if (w->target && plan->cycles > w->target)
        return mlo_fold_missed(&s, w, plan, "frame",
            plan->steady > plan->pace * c->chunk
                ? ", and waits for parameters (--bandwidth, --axi-width, --frames-in-flight)"
                : "");
    return mlo_fold_apply(&s, w, plan);
}

/* ---- folding JSON --------------------------------------------------------- */

/* A mode of the parameter memories, or a set of them; 0: there is none of this name. */
static int mlo_memory_named(mlo *m, const char *name, const char *whose) {
    if (mlo_eq(name, "layer")) return MLO_LAYER;
    if (mlo_eq(name, "resident")) return MLO_RESIDENT;
    if (mlo_eq(name, "auto")) return MLO_EITHER;
    if (mlo_eq(name, "block")) return MLO_BLOCK;
    mlo_fail_at(m, MLO_E_USAGE, whose,
        "there is no memory %s; they are layer, block, resident, auto", name);
    return 0;
}

/* "FINNLoop_0_MVAU_rtl_3" and "FINNLoop_0_body_FINNLoop_0_MVAU_rtl_3" name FINN's kernels by kind
 * and number; mlo's own are "mvu_3". */
static int mlo_folding_names(const char *key, const mlo_element *e) {
    static const char *const forms[] = { "_rtl", "_hls", "" };
    const char *finn = e->kernel ? e->kernel->finn : NULL, *number = strrchr(key, '_');
    if (mlo_eq(key, e->name)) return 1;
    if (!finn || !mlo_starts(key, "FINNLoop_") || !mlo_starts(e->name, e->kernel->series)
        || !mlo_eq(e->name + strlen(e->kernel->series), number))
        return 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const size_t form = strlen(forms[i]), n = strlen(finn) + form;
        if ((size_t)(number - key) > n && !strncmp(number - n, finn, n - form)
            && !strncmp(number - form, forms[i], form) && number[-(ptrdiff_t)n - 1] == '_')
            return 1;
    }
    return 0;
}

/* Legal values next to the one asked for: "4 or 8". */
static const char *mlo_nearest(mlo *m, const mlo_element *e, int64_t v, int64_t other, int is_pe) {
    int64_t below = v, above = v, most = 65536, least = is_pe ? mlo_element_least(e) : 1;
    while (below > least
        && !(is_pe ? e->kernel->legal(&e->site, below, other)
                   : e->kernel->legal(&e->site, other, below)))
        below--;
    while (above < most
        && !(is_pe ? e->kernel->legal(&e->site, above, other)
                   : e->kernel->legal(&e->site, other, above)))
        above++;
    below = mlo_max(below, least);
    return above < most && above > below
        ? mlo_format(m, "%lld or %lld", (long long)below, (long long)above)
        : mlo_format(m, "%lld", (long long)below);
}

/* A PE or SIMD of an entry; `otherwise` when it has none. */
static int64_t mlo_folding_int(mlo *m, const cJSON *entry, const char *key, int64_t otherwise) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(entry, key);
    if (!v) return otherwise;
    if (cJSON_IsNumber(v) && v->valuedouble >= 1 && v->valuedouble <= 65536
        && v->valuedouble == floor(v->valuedouble))
        return (int64_t)v->valuedouble;
    mlo_fail_at(m, MLO_E_FOLDING, entry->string, "%s must be a whole number from 1 to 65536", key);
    return otherwise;
}

/* An entry is an object, and its keys are written as they are here (FINN has more of them). */
static int mlo_folding_written(mlo *m, const cJSON *entry) {
    static const char *const keys[] = { "PE", "SIMD", "memory", "tile" };
    if (!cJSON_IsObject(entry))
        return mlo_fail_at(m, MLO_E_FOLDING, entry->string,
            "the folding of a kernel is an object: {\"PE\": 4, \"SIMD\": 4}");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const cJSON *v = cJSON_GetObjectItem(entry, keys[i]);
        if (v && !mlo_eq(v->string, keys[i]))
            return mlo_fail_at(m, MLO_E_FOLDING, entry->string, "%s is written %s in a folding",
                v->string, keys[i]);
    }
    return 0;
}

/* Does another entry, before this one, name the kernel too? Its key; NULL: none does. */
static const char *mlo_folding_before(
    const cJSON *folding, const cJSON *entry, const mlo_element *e) {
    for (const cJSON *v = folding->child; v != entry; v = v->next)
        if (mlo_folding_names(v->string, e)) return v->string;
    return NULL;
}

static int mlo_folding_entry(mlo *m, mlo_core *c, const cJSON *folding, const cJSON *entry) {
    int used = 0;
    MLO_TRY(mlo_folding_written(m, entry));
    for (int i = 0; i < c->n_element; i++) {
        mlo_element *e = &c->element[i];
        if (!e->kernel || !mlo_folding_names(entry->string, e)) continue;
        const char *before = mlo_folding_before(folding, entry, e);
        if (before)
            return mlo_fail_at(m, MLO_E_FOLDING, entry->string,
                "the folding has %s twice, also as '%s'; give one of them", e->name, before);
        int64_t pe = mlo_folding_int(m, entry, "PE", e->unit.pe);
        int64_t simd = mlo_folding_int(m, entry, "SIMD", e->unit.simd);
        const cJSON *memory = cJSON_GetObjectItemCaseSensitive(entry, "memory");
        used = 1;
        if (memory && !cJSON_IsString(memory))
            return mlo_fail_at(m, MLO_E_FOLDING, entry->string,
                "memory must be \"layer\", \"block\", \"resident\" or \"auto\"");
        e->tile = mlo_folding_int(m, entry, "tile", e->tile);
        e->own_tile = cJSON_HasObjectItem(entry, "tile");
        e->own_memory = memory != NULL;
        if (!m->error.code && memory)
            mlo_allow_memories(e, mlo_memory_named(m, memory->valuestring, entry->string));
        if (m->error.code) return mlo_failed(m);
        if (!e->kernel->simd_axis && cJSON_GetObjectItemCaseSensitive(entry, "SIMD") && simd != 1) {
            pe = cJSON_GetObjectItemCaseSensitive(entry, "PE") ? pe : simd;
            simd = 1;
        }
        if (e->kernel->simd_axis && !e->kernel->legal(&e->site, 1, simd))
            return mlo_fail_at(m, MLO_E_FOLDING, e->name,
                "SIMD=%lld does not divide the %s; the nearest that do are %s", (long long)simd,
                e->kernel->simd_axis, mlo_nearest(m, e, simd, 1, 0));
        if (!e->kernel->legal(&e->site, pe, simd))
            return mlo_fail_at(m, MLO_E_FOLDING, e->name,
                "PE=%lld does not divide the %s; the nearest that do are %s", (long long)pe,
                e->kernel->pe_axis, mlo_nearest(m, e, pe, simd, 1));
        if (mlo_element_fold(m, c, e, pe, simd)) return mlo_failed(m);
        if (memory && mlo_eq(memory->valuestring, "block") && mlo_memory_whole(e))
            return mlo_fail_at(m, MLO_E_FOLDING, e->name,
                "memory block is not for this matrix: %s; take memory layer or resident",
                mlo_memory_whole(e));
        if (memory && mlo_eq(memory->valuestring, "block") && !mlo_is_block(e))
            return mlo_has_rows(e) ? mlo_fail_at(m, MLO_E_FOLDING, e->name,
                                         "memory block divides the groups of PE channels, and with "
                                         "PE=%lld there is one; take a smaller PE, or memory layer",
                                         (long long)pe)
                                   : mlo_fail_at(m, MLO_E_FOLDING, e->name,
                                         "memory block is of the rows of a matrix, and this kernel "
                                         "has none; take memory layer or resident");
        e->pinned = cJSON_HasObjectItem(entry, "PE") || cJSON_HasObjectItem(entry, "SIMD")
            || !memory;
    }
    return used
        ? 0
        : mlo_fail_at(m, MLO_E_FOLDING, entry->string,
              "the folding names a kernel that the core does not have; `mlo show` lists them");
}

/* A folding, or a line of `fold --pareto`, which has one as member "folding" and says for how many
 * frames in flight. */
static int mlo_fold_json(mlo *m, mlo_core *c, const char *text) {
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithOpts(text, &end, 1);
    const cJSON *line = cJSON_GetObjectItemCaseSensitive(json, "folding");
    const cJSON *folding = cJSON_IsObject(line) && cJSON_GetObjectItemCaseSensitive(json, "cycles")
        ? line
        : json;
    const cJSON *entry = NULL;
    if (!cJSON_IsObject(folding)) {
        cJSON_Delete(json);
        return mlo_fail_at(m, MLO_E_FORMAT, NULL,
            "the folding is not a JSON object of kernels: {\"mvu_0\": {\"PE\": 4, \"SIMD\": 4}, "
            "...}");
    }
    if (folding == line && !mlo_opt(m, "frames-in-flight")) {
        const cJSON *frames = cJSON_GetObjectItemCaseSensitive(json, "frames_in_flight");
        const double n = cJSON_IsNumber(frames) ? frames->valuedouble : 0;
        if (n >= 1 && n <= 255 && n == floor(n))
            c->frames = (int)n;
        else if (frames)
            mlo_fail_at(m, MLO_E_FOLDING, "frames_in_flight",
                "the folding has no whole number of frames from 1 to 255");
    }
    cJSON_ArrayForEach(entry, folding) if (!m->error.code && !mlo_eq(entry->string, "Defaults"))
        mlo_folding_entry(m, c, folding, entry);
    cJSON_Delete(json);
    return mlo_failed(m);
}

/* The folding in FINN's form: one entry per kernel, `between` between them. */
static void mlo_folding_entries(const mlo_core *c, const char *between, mlo_text *t) {
    mlo_puts(t, "\"Defaults\": {}");
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel) {
            mlo_printf(
                t, ",%s\"%s\": {\"PE\": %d", between, c->element[i].name, c->element[i].unit.pe);
            if (c->element[i].kernel->simd_axis)
                mlo_printf(t, ", \"SIMD\": %d", c->element[i].unit.simd);
            if (mlo_is_resident(&c->element[i])) mlo_puts(t, ", \"memory\": \"resident\"");
            if (mlo_is_block(&c->element[i]))
                mlo_printf(t, ", \"memory\": \"block\", \"tile\": %lld",
                    (long long)c->element[i].unit.tile);
            mlo_puts(t, "}");
        }
}
static void mlo_folding_text(const mlo_core *c, mlo_text *t) {
    mlo_puts(t, "{\n  ");
    mlo_folding_entries(c, "\n  ", t);
    mlo_puts(t, "\n}\n");
}

/* ---- options -------------------------------------------------------------- */

static int64_t mlo_limit_of(long given) {
    return given && given < MLO_UNLIMITED ? given : MLO_UNLIMITED;
}

/* What the options say. */
static int mlo_fold_wish(mlo *m, mlo_wish *w) {
    long cycles = mlo_opt_int(m, "target-cycles", 0, 1, LONG_MAX);
    long fps = mlo_opt_int(m, "target-fps", 0, 1, LONG_MAX);
    long mhz = mlo_opt_int(m, "clock-mhz", 0, 1, 100000);
    long macs = mlo_opt_int(m, "budget-macs", 0, 1, LONG_MAX);
    long bits = mlo_opt_int(m, "budget-bits", 0, 1, LONG_MAX);
    long pe = mlo_opt_int(m, "pe", 0, 1, 65536);
    long simd = mlo_opt_int(m, "simd", 0, 1, 65536);
    const char *memory = mlo_opt(m, "memory"), *device = mlo_opt(m, "device");
    mlo_fpga *fpga = device ? MLO_NEW(m, mlo_fpga) : NULL;
    if (device && (!fpga || mlo_fpga_named(m, device, fpga))) return mlo_failed(m);
    w->device = fpga;
    w->memories = memory ? mlo_memory_named(m, memory, NULL) : MLO_LAYER;
    w->any_tile = mlo_eq(mlo_opt(m, "tile"), "auto");
    w->tile = w->any_tile ? 65536 : mlo_opt_int(m, "tile", 0, 1, 65536);
    if (w->tile && w->memories == MLO_EITHER) w->memories |= MLO_BLOCK;
    int caps = pe || simd;
    int slow = mlo_opt(m, "bandwidth") != NULL;
    int any_memory = mlo_to_choose(w->memories);
    if (m->error.code) return mlo_failed(m);
    if (!!cycles + !!fps + caps > 1 || (caps && (macs || (bits && !any_memory))))
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--pe/--simd, --target-cycles and --target-fps exclude each other, and --pe/--simd "
            "exclude budgets (--memory auto takes --budget-bits); give one");
    if (device && caps)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--device is for a search, --pe and --simd are caps; give one of them");
    if (device && any_memory && !bits)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--device with --memory auto needs --budget-bits: how many bits resident parameters "
            "and all else may take");
    if (!!fps != !!mhz)
        return mlo_fail_at(
            m, MLO_E_USAGE, NULL, "--target-fps needs --clock-mhz, and the other way round");
    if (bits && !macs && !cycles && !fps && !slow && !any_memory && !device)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--budget-bits alone does not limit the multipliers; give --budget-macs or a target, "
            "too, or --memory auto");
    w->pe = pe ? pe : 1;
    w->simd = simd ? simd : 1;
    w->target = fps ? (int64_t)mhz * 1000000 / fps : cycles;
    w->reached = fps ? "--clock-mhz, or lower --target-fps" : "--target-cycles";
    if (fps && !w->target)
        return mlo_fail_at(m, MLO_E_FOLDING, NULL,
            "%ld frames per second at %ld MHz are more than a frame per cycle", fps, mhz);
    w->within.steady = MLO_UNLIMITED;
    w->within.multipliers = mlo_limit_of(macs);
    w->within.bits = mlo_limit_of(bits);
    w->free = !memory && !mlo_opt(m, "pareto");
    w->usual = !(device || w->target || macs || bits || slow || caps || mlo_opt(m, "folding-json")
        || mlo_opt(m, "pareto"));
    w->search = w->usual || device || w->target || macs || (bits && !any_memory)
        || (slow && !caps && !mlo_opt(m, "folding-json"));
    w->any_frames = mlo_opt(m, "frames-in-flight")
        && mlo_eq(mlo_opt(m, "frames-in-flight"), "auto");
    return 0;
}

/* Where the token is whose step is searched for: half way, unless --position says it; -1 where frames
 * are meant: without caches, or what a target, a device or --pareto asks for. */
static int mlo_fold_position(mlo *m, const mlo_core *c, mlo_wish *w) {
    const int64_t given = mlo_opt_int(m, "position", -1, 0, LONG_MAX);
    const int frames = w->target || w->device || mlo_opt(m, "pareto") || mlo_opt(m, "pe")
        || mlo_opt(m, "simd") || w->any_tile || mlo_to_choose(w->memories);
    w->sequences = mlo_opt_int(m, "sequences", 1, 1, 255);
    w->position = given >= 0 || !c->slots || c->given || frames ? given : c->chunk / 2;
    w->stepped = 0;
    if (w->sequences > 1 && w->sequences > c->frames)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--sequences %lld, of which %d go over the weights together; give "
            "--frames-in-flight, too",
            (long long)w->sequences, c->frames);
    if (given < 0) return mlo_failed(m);
    if (!c->slots || c->given)
        return mlo_fail_at(
            m, MLO_E_USAGE, NULL, "--position is of a core with caches; give --context, too");
    if (given >= c->chunk)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--position %lld of a context of %lld tokens; the last is %lld", (long long)given,
            (long long)c->chunk, (long long)c->chunk - 1);
    w->search |= !mlo_opt(m, "pe") && !mlo_opt(m, "simd");
    return 0;
}

/* Of some cores one frame is in flight (mlo_core_alone). How many sequences take turns is for the host to say: with
 * caches it is not searched for. */
static int mlo_fold_alone(mlo *m, mlo_core *c, mlo_wish *w) {
    const char *why = mlo_core_alone(c);
    if (!why && !c->slots) return 0;
    w->any_frames = 0;
    return c->frames > 1 && why
        ? mlo_fail_at(m, MLO_E_UNSUPPORTED, "frames-in-flight", mlo_one_frame, c->frames, why)
        : 0;
}

/* The core as the options have it, before kernels are folded: frames in flight, bus, memory, what
 * --folding names. */
static int mlo_fold_begin(mlo *m, mlo_core *c, mlo_wish *w) {
    const char *json = mlo_opt(m, "folding-json");
    if (mlo_infer(m) || mlo_core_build(m, c) || mlo_fold_wish(m, w)) return mlo_failed(m);
    if (!w->any_frames) c->frames = (int)mlo_opt_int(m, "frames-in-flight", c->frames, 1, 255);
    long axi = mlo_opt_int(m, "axi-width", c->axi_bits, 32, 1024);
    if (axi & (axi - 1))
        return mlo_fail_at(m, MLO_E_USAGE, NULL, "--axi-width %ld is not a power of two", axi);
    c->axi_bits = (int)axi;
    for (int i = 0; i < c->n_element; i++) {
        if (w->tile
            || !mlo_meta_get(c->element[i].node->meta, c->element[i].node->n_meta, mlo_key_tile))
            c->element[i].tile = w->tile ? w->tile : mlo_core_tile(c);
        mlo_allow_memories(&c->element[i], w->memories);
    }
    if (m->error.code || mlo_core_memory(m, c) || mlo_fold_caps(m, c, w->pe, w->simd))
        return mlo_failed(m);
    if ((json && mlo_fold_json(m, c, json)) || mlo_fold_alone(m, c, w)
        || mlo_fold_position(m, c, w))
        return mlo_failed(m);
    /* "auto" is a search, for one kernel, too */
    int either = mlo_to_choose(w->memories) || w->any_tile, tiled = 0;
    for (int i = 0; i < c->n_element; i++) {
        either |= mlo_to_choose(c->element[i].memories);
        tiled |= c->element[i].memories & MLO_BLOCK;
    }
    if (w->tile && !tiled && !w->device)
        mlo_warn(m,
            "--tile is of matrices in row blocks, and none may be; give --memory block or auto, "
            "too");
    w->memories_only = either && !w->search;
    w->search |= w->memories_only;
    return 0;
}

/* ---- the front ------------------------------------------------------------ */

/* One line: what a folding takes, and how it is asked for. */
static int mlo_pareto_line(const mlo_space *s, const mlo_wish *w, const mlo_plan *p, mlo_text *t) {
    int64_t other = 0, macs = 0;
    mlo_area area;
    if (mlo_plan_area(s, p, w->device, &area)) return mlo_failed(s->m);
    for (int i = 0; i < s->c->n_element; i++) {
        other += s->c->element[i].unit.other;
        macs += mlo_frame_macs(&s->c->element[i]);
    }
    macs *= s->c->scan.iterations;
    mlo_printf(t,
        "{\"cycles\":%lld,\"steady_cycles\":%lld,\"interval_per_token\":%lld,\"frames_in_flight\":%"
        "d,\"multipliers\":%lld,\"other_multipliers\":%lld,\"on_chip_bits\":%lld",
        (long long)p->cycles, (long long)(p->steady * s->c->scan.iterations), (long long)p->pace,
        p->frames, (long long)p->price.multipliers, (long long)other,
        (long long)mlo_core_bits(s->c));
    int64_t most = mlo_times(p->price.multipliers, p->cycles);
    int64_t busy = most > 0 ? mlo_times(macs, 10000) / most : 0;
    mlo_printf(t,
        ",\"parameter_beats\":%lld,\"utilization\":%lld.%04lld,\"area\":", (long long)p->beats,
        (long long)(busy / 10000), (long long)(busy % 10000));
    mlo_area_json(&area, t);
    mlo_puts(t, ",\"folding\":{");
    mlo_folding_entries(s->c, "", t);
    mlo_puts(t, "}}\n");
    return mlo_failed(s->m);
}

/* Every folding that no other one beats in cycles and multipliers (and bits, where frames in
 * flight differ), within the limits; on a device, that fits. */
static int mlo_fold_pareto(mlo *m, mlo_text *t) {
    mlo_core *c = MLO_NEW(m, mlo_core);
    mlo_space s;
    mlo_wish w;
    mlo_plan *plans = NULL;
    size_t n = 0;
    if (!c || mlo_fold_begin(m, c, &w) || mlo_search_begin(m, c, 0, &s)) return mlo_failed(m);
    if (w.any_tile)
        return mlo_fail_at(m, MLO_E_USAGE, NULL,
            "--pareto is of one size of tiles; give --tile a number of tokens");
    for (int frames = w.any_frames ? 1 : c->frames,
             last = w.any_frames ? MLO_SEARCH_FRAMES : c->frames;
        frames <= last; frames++) {
        if (mlo_search_frames(&s, frames)) return mlo_failed(m);
        if (mlo_search_front(&s, &w.within, &plans, &n)) return mlo_failed(m);
    }
    if (!n) return mlo_fold_too_small(&s, &w.within, w.any_frames);
    if (w.device && mlo_device_thin(&s, w.device, plans, &n)) return mlo_failed(m);
    mlo_plans_thin(plans, &n);
    for (size_t i = 0; i < n && !m->error.code; i++) {
        mlo_work(m, "makes room in FIFOs", (int64_t)i, (int64_t)n);
        if (!w.target || plans[i].cycles <= w.target) mlo_pareto_line(&s, &w, &plans[i], t);
    }
    mlo_work_over(m);
    return mlo_failed(m);
}

/* ---- the stage ------------------------------------------------------------ */

static int mlo_fold_note(mlo *m, mlo_node *n, const char *key, int64_t value) {
    return mlo_meta_put(m, &n->meta, &n->n_meta, key, mlo_format(m, "%lld", (long long)value));
}

/* The same of a step. */
static int mlo_fold_say_step(mlo *m, const mlo_core *c, const mlo_wish *w) {
    int64_t cycles;
    if (mlo_predict_steps(m, c, w->position, w->sequences, &cycles)) return mlo_failed(m);
    mlo_inform(m,
        "%lld multipliers, %lld cycles a token at position %lld%s, while memory brings weights for "
        "%lld: what is worth its "
        "price for a token at a time%s%s; --target-cycles, --budget-macs, --position or --device "
        "choose another",
        (long long)mlo_core_multipliers(c), (long long)cycles, (long long)w->position,
        w->sequences > 1 ? mlo_format(m, " of each of %lld sequences", (long long)w->sequences)
                         : "",
        (long long)mlo_load_cycles(c, mlo_core_beats_in(c, MLO_LAYER | MLO_BLOCK))
            * c->scan.iterations,
        w->device ? ", and fits in row blocks an " : "", w->device ? w->device->name : "");
    return 0;
}

/* What was chosen where nobody said what, and why. */
static int mlo_fold_say(mlo *m, const mlo_core *c, const mlo_wish *w) {
    const double multipliers = (double)mlo_core_multipliers(c);
    mlo_prediction p;
    double macs = 0;
    if (!w->usual) return mlo_failed(m);
    if (w->stepped) return mlo_fold_say_step(m, c, w);
    if (mlo_predict_steady(m, c, &p)) return mlo_failed(m);
    for (int i = 0; i < c->n_element; i++) macs += (double)mlo_frame_macs(&c->element[i]);
    macs *= (double)c->scan.iterations;
    const int soon = mlo_knee_soon(c, c->frames, p.interval);
    const char *why = w->device ? mlo_format(m,
                                      "the fastest of at most so many that fits an %s; in row "
                                      "blocks, as two layers' matrices do not fit",
                                      w->device->name)
        : soon                  ? mlo_format(m,
                                      "the smallest folding within %d %% of the best cycles per multiplier that is "
                                                       "simulated in under a minute",
                                      MLO_KNEE_PERCENT)
                                : mlo_format(m,
                                      "the fastest folding of at most %d multipliers within %d %% of the best "
                                                       "cycles per multiplier",
                                      MLO_KNEE_MOST, MLO_KNEE_PERCENT);
    mlo_inform(m,
        "%.0f multipliers, %lld cycles a frame, %.0f %% busy: %s; --target-cycles, --budget-macs "
        "or --device choose another",
        multipliers, (long long)p.interval,
        multipliers > 0 ? 100 * macs / (multipliers * (double)p.interval) : 0, why);
    return mlo_failed(m);
}

/* Which matrices are not in row blocks where --memory says block, and why. */
static void mlo_fold_say_whole(mlo *m, const mlo_core *c) {
    const char *why = NULL;
    mlo_text names = { m, NULL, 0, 0 };
    for (int i = 0; i < c->n_element; i++) {
        const mlo_element *e = &c->element[i];
        if (e->own_memory || !mlo_memory_whole(e)) continue;
        mlo_printf(&names, "%s%s", why ? ", " : "", e->name);
        why = mlo_memory_whole(e);
    }
    if (why) mlo_warn(m, "--memory block leaves %s in memory layer: %s", names.text, why);
}

/* The `fold` stage. */
static int mlo_fold(mlo *m) {
    mlo_core *c = MLO_NEW(m, mlo_core);
    mlo_wish w;
    if (!c || mlo_fold_begin(m, c, &w)) return mlo_failed(m);
    for (int i = 0; i < c->n_element && w.memories_only; i++) c->element[i].pinned = 1;
    if (w.search && mlo_fold_search(m, c, &w)) return mlo_failed(m);
    mlo_work_over(m);
    mlo_core_lanes(c);
    if (w.memories == MLO_BLOCK) mlo_fold_say_whole(m, c);
    if (mlo_device_depths(m, c, w.device) || mlo_fold_say(m, c, &w)
        || mlo_fold_note(m, c->scan.node, mlo_key_frames, c->frames)
        || mlo_fold_note(m, c->scan.node, mlo_key_axi_width, c->axi_bits)
        || (c->slots && !c->given && mlo_fold_note(m, c->scan.node, mlo_key_slots, c->slots))
        || (c->dram && !c->given && mlo_fold_note(m, c->scan.node, mlo_key_kv_dram, 1)))
        return mlo_failed(m);
    if (w.device && !w.usual
        && mlo_meta_put(
            m, &c->scan.node->meta, &c->scan.node->n_meta, mlo_key_device, mlo_opt(m, "device")))
        return mlo_failed(m);
    if (mlo_opt(m, "axi-latency")
        && mlo_fold_note(m, c->scan.node, mlo_key_axi_latency, c->read_latency))
        return mlo_failed(m);
    if (mlo_opt(m, "bandwidth")
        && mlo_meta_put(m, &c->scan.node->meta, &c->scan.node->n_meta, mlo_key_bandwidth,
            mlo_opt(m, "bandwidth")))
        return mlo_failed(m);
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel)
            if (mlo_fold_note(m, c->element[i].node, mlo_key_pe, c->element[i].unit.pe)
                || mlo_fold_note(m, c->element[i].node, mlo_key_simd, c->element[i].unit.simd))
                return mlo_failed(m);
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel) {
            mlo_node *n = c->element[i].node;
            const char *memory = mlo_memory_name(&c->element[i]);
            if ((!mlo_eq(memory, "layer") || mlo_meta_get(n->meta, n->n_meta, mlo_key_memory))
                && mlo_meta_put(m, &n->meta, &n->n_meta, mlo_key_memory, memory))
                return mlo_failed(m);
            if (mlo_is_block(&c->element[i])
                && mlo_fold_note(m, n, mlo_key_tile, c->element[i].unit.tile))
                return mlo_failed(m);
        }
    for (int k = 0; k < c->n_edge; k++)
        if (c->edge[k].fifo && c->edge[k].to != MLO_OUTSIDE) {
            char key[32];
            snprintf(key, sizeof key, "%s.%d", mlo_key_fifo, c->edge[k].to_port);
            if (mlo_fold_note(m, c->element[c->edge[k].to].node, key, c->edge[k].fifo))
                return mlo_failed(m);
        }
    return 0;
}
