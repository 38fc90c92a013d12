/* args: the command line, and --config.
 *
 * in:  argv.
 * out: c->verb, c->operand, c->given; the library's options, set on the handle.
 *
 * Flags are --name VALUE or --name=VALUE; -o VALUE. A config file has the same names as keys; the
 * command line wins over it. Keys that belong to other verbs are ignored, so that one file serves a
 * whole pipe.
 */

/* A value that is one of a few words: the flag's own list, a|b|c. */
static int cli_choice(cli *c, const cli_flag *f, const char *value) {
    char words[8][CLI_WORD], list[200];
    const int n = cli_choices(f, words, 8);
    const char *near = NULL;
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (!strcmp(words[i], value)) return 0;
        mlo_nearer(value, words[i], &near);
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s",
            !i              ? ""
                : i + 1 < n ? ", "
                            : " and ",
            words[i]);
    }
    if (!n) return 0;
    return cli_fail(c, MLO_E_USAGE, NULL, "--%s %.60s: %s%s%sthere are %s", f->name, value,
        near ? "did you mean " : "", near ? near : "", near ? "? " : "", list);
}

static int cli_give(cli *c, const cli_flag *f, const char *value, int from_config) {
    if (c->n_given == (int)(sizeof c->given / sizeof *c->given))
        return cli_fail(c, MLO_E_USAGE, NULL, "more than %d flags", c->n_given);
    if (cli_choice(c, f, value)) return cli_failed(c);
    c->given[c->n_given].flag = f;
    c->given[c->n_given].from_config = from_config;
    c->given[c->n_given++].value = value;
    return 0;
}

static int cli_unknown(cli *c, const char *flag, const char *name, size_t n) {
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(n < 60 ? n : 60), name);
    const cli_flag *other = cli_flag_of(name, n, ~0u);
    if (flag[1] != '-' && cli_flag_of(name, n, c->verb->bit))
        return cli_fail(c, MLO_E_USAGE, NULL, "%.60s: did you mean -%.60s?", flag, flag);
    const char *near = cli_nearest_flag(text, c->verb->bit);
    if (other) {
        char verbs[160];
        size_t k = 0;
        for (int i = 0; i < CLI_VERBS; i++)
            if (cli_verbs[i].bit & other->verbs && k < sizeof verbs - 20)
                k += (size_t)snprintf(
                    verbs + k, sizeof verbs - k, "%s%s", k ? ", " : "", cli_verbs[i].name);
        return cli_fail(c, MLO_E_USAGE, NULL, "%.60s belongs to: %s", flag, verbs);
    }
    return near
        ? cli_fail(c, MLO_E_USAGE, NULL, "unknown flag %.60s; did you mean --%s?", flag, near)
        : cli_fail(c, MLO_E_USAGE, NULL, "unknown flag %.60s; `mlo help %s` lists them", flag,
              c->verb->name);
}

/* One flag at argv[i]; returns the index of the last argument it took, -1 when it failed. */
static int cli_flag_at(cli *c, int argc, char **argv, int i) {
    const char *a = argv[i];
    const char *name = a + (a[1] == '-' ? 2 : 1);
    const char *equals = a[1] == '-' ? strchr(name, '=') : NULL;
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const cli_flag *f = cli_flag_of(name, n, c->verb->bit);
    if (f && (strlen(f->name) > 1) != (a[1] == '-')) f = NULL;
    if (!f) {
        cli_unknown(c, a, name, n);
        return -1;
    }
    if (!f->arg) {
        if (equals) {
            cli_fail(c, MLO_E_USAGE, NULL, "--%s takes no value", f->name);
            return -1;
        }
        return cli_give(c, f, "", 0) ? -1 : i;
    }
    if (!equals && i + 1 >= argc) {
        cli_fail(c, MLO_E_USAGE, NULL, "%s needs a value: %s %s", a, a, f->arg);
        return -1;
    }
    return cli_give(c, f, equals ? equals + 1 : argv[i + 1], 0) ? -1 : equals ? i : i + 1;
}

/* ---- --config ------------------------------------------------------------- */

/* A value as the text that the command line would have; lives as long as the config. */
static const char *cli_config_text(cli *c, cJSON *v, const char *key) {
    if (cJSON_IsString(v)) return v->valuestring;
    if (cJSON_IsTrue(v)) return "";
    char number[40];
    snprintf(number, sizeof number,
        v->valuedouble < 1e15 && v->valuedouble > -1e15 && v->valuedouble == floor(v->valuedouble)
            ? "%.0f"
            : "%.17g",
        v->valuedouble);
    char *text = cJSON_IsNumber(v) ? NULL : cJSON_PrintUnformatted(v);
    cJSON *kept = cJSON_CreateString(text ? text : number);
    if (text) cJSON_free(text);
    if (!kept || !cJSON_AddItemToObject(c->config, " text", kept)) {
        cli_fail(c, MLO_E_MEMORY, key, "no memory");
        return NULL;
    }
    return kept->valuestring;
}

static int cli_config_key(cli *c, cJSON *v) {
    const cli_flag *f = cli_flag_of(v->string, strlen(v->string), c->verb->bit);
    const char *near = cli_nearest_flag(v->string, ~0u);
    if (!f && cli_flag_of(v->string, strlen(v->string), ~0u)) return 0;
    if (!f)
        return cli_fail(c, MLO_E_USAGE, NULL, "--config: there is no flag '%.60s'%s", v->string,
            cli_meant(near));
    if (cJSON_IsNull(v) || cJSON_IsFalse(v)) return 0;
    if ((f->arg == NULL) != (cJSON_IsTrue(v) != 0))
        return cli_fail(c, MLO_E_USAGE, NULL, "--config: '%s' %s", f->name,
            f->arg ? "needs a value" : "is true or false");
    int strings = cJSON_IsArray(v) && (!v->child || cJSON_IsString(v->child));
    if (!strings) {
        const char *text = cli_config_text(c, v, f->name);
        return text ? cli_give(c, f, text, 1) : cli_failed(c);
    }
    for (cJSON *item = v->child; item && !cli_failed(c); item = item->next)
        if (cJSON_IsString(item)) cli_give(c, f, item->valuestring, 1);
    return cli_failed(c);
}

static int cli_config(cli *c, const char *path) {
    cli_bytes b;
    if (cli_slurp(c, path, &b)) {
        free(b.data);
        return cli_failed(c);
    }
    const char *end = NULL;
    cJSON *config = cJSON_ParseWithLengthOpts(b.data, b.n + 1, &end, 1);
    free(b.data);
    if (!cJSON_IsObject(config)) {
        cJSON_Delete(config);
        return cli_fail(c, MLO_E_FORMAT, path,
            "is no JSON object of flags, like {\"pe\": 4, \"dim\": [\"seq=32\"]}");
    }
    c->config = cJSON_CreateObject();
    for (cJSON *v = config->child; v && !cli_failed(c); v = v->next) cli_config_key(c, v);
    if (c->config)
        cJSON_AddItemToObject(c->config, " file", config);
    else
        cJSON_Delete(config);
    return cli_failed(c);
}

/* --hold: inputs that are constants. */
static int cli_hold(cli *c, mlo *m) {
    const char *path = cli_value(c, "hold");
    cli_npz held;
    if (!path) return 0;
    memset(&held, 0, sizeof held);
    if (!cli_npz_read(c, path, &held)) mlo_hold(m, held.array, held.n);
    cli_npz_free(&held);
    return cli_failed(c);
}

/* Is it C that is made? */
static int cli_makes_c(const cli *c) {
    const char *target = cli_value(c, "target");
    return target && !strcmp(target, "c");
}

/* Hands the library's options over: the config's first, since the last one wins. */
static int cli_options(cli *c, mlo *m) {
    if (*c->open) mlo_set(m, "open", c->open);
    if (c->verb->bit == V_COMPILE && !cli_makes_c(c)) /* plain C takes a batch as it is */
        mlo_set(m, "unbatch", "try");
    for (int config = 1; config >= 0; config--)
        for (int i = 0; i < c->n_given; i++)
            if (c->given[i].flag->to_mlo && c->given[i].from_config == config)
                mlo_set(m, c->given[i].flag->name, c->given[i].flag->arg ? c->given[i].value : "1");
    return mlo_failed(m) ? mlo_failed(m) : cli_hold(c, m);
}

/* ---- all of it ------------------------------------------------------------ */

static int cli_parse_verb(cli *c, const char *word) {
    const char *near = cli_nearest_verb(word);
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) word = "help";
    if ((c->verb = cli_verb_of(word)) != NULL) return 0;
    return cli_fail(c, MLO_E_USAGE, NULL, "there is no verb '%.60s'%s", word,
        near ? cli_meant(near) : "; `mlo help` lists them");
}

static int cli_parse(cli *c, int argc, char **argv) {
    int flags = 1;
    if (cli_parse_verb(c, argv[1])) return cli_failed(c);
    for (int i = 2; i < argc && !cli_failed(c); i++) {
        const char *a = argv[i];
        if (flags && (!strcmp(a, "--help") || !strcmp(a, "-h"))) {
            c->operand = c->verb->bit == V_HELP ? NULL : c->verb->name;
            c->verb = cli_verb_of("help");
            c->n_given = 0;
            return 0;
        }
        if (flags && !strcmp(a, "--"))
            flags = 0;
        else if (flags && a[0] == '-' && a[1]) {
            if ((i = cli_flag_at(c, argc, argv, i)) < 0) break;
        } else if (c->operand && c->verb->bit == V_SHOW && !c->second)
            c->second = a;
        else if (c->operand)
            cli_fail(c, MLO_E_USAGE, NULL, "%s %s at a time: '%.100s', and then '%.100s'",
                c->second ? "two at most of" : "one", c->verb->takes,
                c->second ? c->second : c->operand, a);
        else
            c->operand = a;
    }
    const char *config = cli_value(c, "config");
    if (!cli_failed(c) && config) cli_config(c, config);
    if (!cli_failed(c) && c->verb->bit != V_SIM && c->verb->bit != V_HELP) cli_options(c, c->m);
    return cli_failed(c);
}
