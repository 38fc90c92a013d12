/* report: what quantize measured, as a table for people, on stderr.
 *
 * in:  the JSON of mlo_report(m, "quantize").
 * out: the loop's output compared with the floats; each layer, each value; what to do.
 *
 * example: "view_3  Attention  8 bits  ..  32.4 -> 30.0 dB  41 %": 41 % of the noise of the loop's
 *     output arises at that attention.
 */

static double cli_json_number(const cJSON *object, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

/* Is a build directory's manifest one of C? */
static int cli_is_c(const cJSON *manifest) {
    const cJSON *target = cJSON_GetObjectItemCaseSensitive(manifest, "target");
    return cJSON_IsString(target) && !strcmp(target->valuestring, "c");
}
static const char *cli_json_text(const cJSON *object, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

/* The numbers of a column. */
typedef struct {
    double first;
    double last;
    double least;
    double most;
    double sum;
    int n;
} cli_column;

static cli_column cli_column_of(const cJSON *value, const char *key) {
    cli_column c = { 0, 0, 0, 0, 0, 0 };
    const cJSON *x;
    cJSON_ArrayForEach(x, cJSON_GetObjectItemCaseSensitive(value, key)) {
        /* null: more decibels than there are */
        double v = cJSON_IsNumber(x) ? x->valuedouble : INFINITY;
        if (!c.n) c.first = c.least = c.most = v;
        if (v < c.least) c.least = v;
        if (v > c.most) c.most = v;
        c.last = v;
        c.sum += v;
        c.n++;
    }
    return c;
}

static void cli_tell_layers(const cJSON *numbers) {
    const cJSON *layer;
    int i = 0;
    fprintf(stderr, "\n  layer     dB  noise added\n");
    cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(numbers, "layers")) {
        const cJSON *worst = cJSON_GetObjectItemCaseSensitive(layer, "worst");
        double share = cli_json_number(layer, "share");
        fprintf(stderr, "  %-5d %6.1f  %3.0f %% %-20.*s most by %s: %.0f %%, %s\n", i++,
            cli_json_number(layer, "sqnr_db"), 100 * share, (int)(20 * share + 0.5),
            "####################", cli_json_text(worst, "name"),
            100 * cli_json_number(worst, "share"), cli_json_text(worst, "cause"));
    }
}

static void cli_tell_values(const cJSON *numbers) {
    const cJSON *value;
    fprintf(stderr,
        "\n  value                op         bits            range  sums  saturated  dB, first and "
        "last  noise added\n");
    cJSON_ArrayForEach(value, cJSON_GetObjectItemCaseSensitive(numbers, "values")) {
        const cJSON *sums = cJSON_GetObjectItemCaseSensitive(value, "accumulator");
        cli_column db = cli_column_of(cJSON_GetObjectItemCaseSensitive(value, "error"), "sqnr_db");
        cli_column used = cli_column_of(sums, "used");
        char range[40], bits[16] = "";
        if (!db.n) continue;
        snprintf(range, sizeof range, "%.3g .. %.3g", cli_column_of(value, "low").least,
            cli_column_of(value, "high").most);
        if (used.n) snprintf(bits, sizeof bits, "%.0f", used.most);
        fprintf(stderr, "  %-20s %-9s %5.0f %16s  %4s  %7.2f %%       %5.1f  %5.1f  %9.1f %%\n",
            cli_json_text(value, "name"), cli_json_text(value, "op"),
            cli_json_number(value, "bits"), range, bits,
            100 * cli_column_of(value, "saturated").most, db.first, db.last,
            100 * cli_column_of(value, "share").sum);
    }
}

static void cli_tell_numbers(const char *report) {
    cJSON *numbers = report ? cJSON_Parse(report) : NULL;
    const cJSON *out = cJSON_GetObjectItemCaseSensitive(numbers, "output"), *line;
    if (out) {
        fprintf(stderr,
            "  %-11s %s after %.0f samples: %.1f dB above its noise, cosine %.5f, largest "
            "difference %.3g = %.1f %% of the largest value\n",
            cli_json_text(numbers, "loop"), cli_json_text(out, "name"),
            cli_json_number(numbers, "samples"), cli_json_number(out, "sqnr_db"),
            cli_json_number(out, "cosine"), cli_json_number(out, "max"),
            100 * cli_json_number(out, "relative"));
        cli_tell_layers(numbers);
        cli_tell_values(numbers);
        cJSON_ArrayForEach(
            line, cJSON_GetObjectItemCaseSensitive(numbers, "advice")) if (cJSON_IsString(line))
            fprintf(stderr, "%s  -> %s\n", line->prev && line->prev->next ? "" : "\n",
                line->valuestring);
        fprintf(stderr, "\n");
    }
    cJSON_Delete(numbers);
}
