/* show, cuts: the plan of a build of C, read.
 *
 * in:  the option "plan": a manifest.json that `mlo compile --target c` wrote.
 * out: mlo_cuts: what each step has in the arena, if --arena cut it.
 *
 * invariant: a number that is none, or is too large, is 0; a text that is none is empty.
 * example: a step of 64 units, 8 of them at a time, has 8 parts.
 */
enum { MLO_CUTS_STEPS = 2048 };

typedef struct {
    cJSON *plan; /* NULL: none was given */
    int steps; /* and a last one, in which only results are left */
    const cJSON *tile[MLO_CUTS_STEPS + 1]; /* NULL: it has no parts */
} mlo_cuts;

static int64_t mlo_cuts_number(const cJSON *object, const char *key) {
    const double n = mlo_measured_number(object, key);
    return n > 0 && n < 1e12 ? (int64_t)n : 0;
}
static const char *mlo_cuts_word(const cJSON *object, const char *key) {
    const cJSON *word = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(word) ? word->valuestring : "";
}
static const cJSON *mlo_cuts_list(const cJSON *object, const char *key) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsArray(list) ? list->child : NULL;
}

/* Parts of a step. */
static int64_t mlo_cuts_parts(const cJSON *tile) {
    const int64_t each = mlo_cuts_number(tile, "tile");
    return mlo_parts(mlo_cuts_number(tile, "units"), each ? each : 1);
}
/* The same of all blocks of rows. */
static int64_t mlo_cuts_calls(const cJSON *tile) {
    const int64_t blocks = mlo_cuts_number(tile, "blocks");
    return mlo_cuts_parts(tile) * (blocks ? blocks : 1);
}

/* Is it a round of the loop behind the first? */
static int mlo_cuts_again(const mlo_cuts *c, int i) {
    const cJSON *loop = cJSON_GetObjectItemCaseSensitive(c->plan, "loop");
    const int64_t length = mlo_cuts_number(loop, "steps");
    const int64_t from = mlo_cuts_number(loop, "start") + length;
    return i >= from && i < from + length * (mlo_cuts_number(loop, "rounds") - 1);
}

/* Has a cut argument one place, for want of room? */
static int mlo_cuts_single(const cJSON *argument) {
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(argument, "cut"))
        && mlo_cuts_number(argument, "places") < 2;
}

/* What a part's arguments have: two places each; else those that have one are counted. */
static const char *mlo_cuts_places(mlo *m, const cJSON *tile) {
    int n = 0, all = 0;
    for (const cJSON *a = mlo_cuts_list(tile, "arguments"); a; a = a->next) {
        n += mlo_cuts_single(a);
        all += cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(a, "cut"));
    }
    if (!all) return "";
    return n ? mlo_or_empty(mlo_format(m, "%d of %d: one", n, all)) : "two";
}

/* Is there anything cut? */
static int mlo_cuts_any(const mlo_cuts *c) { return cJSON_HasObjectItem(c->plan, "tiles"); }

static void mlo_cuts_free(mlo_cuts *c) {
    cJSON_Delete(c->plan);
    c->plan = NULL;
}

/* The option, if it was given. */
static int mlo_cuts_read(mlo *m, mlo_cuts *c) {
    const char *text = mlo_opt(m, "plan");
    memset(c, 0, sizeof *c);
    if (!text) return 0;
    c->plan = cJSON_Parse(text);
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(c->plan, "nodes");
    const int n = cJSON_GetArraySize(nodes);
    if (!cJSON_IsArray(nodes) || n >= MLO_CUTS_STEPS || !mlo_cuts_number(c->plan, "arena_bytes")) {
        mlo_cuts_free(c);
        return mlo_fail_at(m, MLO_E_FORMAT, NULL,
            "the plan is no manifest.json of C of this version; compile it anew");
    }
    c->steps = n + 1;
    for (const cJSON *t = mlo_cuts_list(c->plan, "tiles"); t; t = t->next) {
        const int64_t i = mlo_cuts_number(t, "step");
        if (i < c->steps) c->tile[i] = t;
    }
    return 0;
}
