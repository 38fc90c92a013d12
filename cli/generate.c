/* generate: run --generate: a decoder goes on with texts.
 *
 * in:  the model, as loaded; --generate COUNT, --prompt IDS, --stop ID.
 * out: {"sequences":[{"tokens":[prompt and generated ids]}]} on stdout.
 *
 * example: mlo run step.onnx --context 256 --prompt '1;1,403' --generate 8
 */
enum { CLI_MAX_PROMPT = 65536 }; /* tokens of a sequence */

/* A sequence of the prompt, up to ';' or the end; returns what follows it, NULL when it failed. */
static const char *cli_prompt_ids(cli *c, const char *text, int64_t *ids, size_t *n) {
    for (*n = 0; *n < CLI_MAX_PROMPT; text++) {
        char *end;
        errno = 0;
        long long id = strtoll(text, &end, 10);
        if (*text < '0' || *text > '9' || errno || (*end && *end != ',' && *end != ';')) break;
        ids[(*n)++] = id;
        text = end;
        if (*text != ',') return text;
    }
    cli_fail(c, MLO_E_USAGE, NULL,
        *n < CLI_MAX_PROMPT
            ? "--prompt: '%.40s' begins with no token id; write 1,403 and ; between "
              "sequences; of text: mlo generate --tokenizer FILE"
            : "--prompt: too many tokens at '%.40s'",
        text);
    return NULL;
}

/* Adds a sequence to a report: {"tokens":[..]}. */
static void cli_report_tokens(cJSON *sequences, const int64_t *tokens, size_t n) {
    cJSON *one = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(one, "tokens");
    for (size_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)tokens[i]));
    cJSON_AddItemToArray(sequences, one);
}

/* Goes on with one sequence; its tokens as JSON. */
static int cli_generate_one(cli *c, const int64_t *ids, size_t n, cJSON *sequences) {
    const long count = cli_number(c, "generate", 0, 1, CLI_MAX_PROMPT);
    const long stop = cli_number(c, "stop", -1, 0, INT_MAX);
    const int64_t *tokens;
    size_t all;
    if (cli_failed(c)
        || mlo_generate(c->m, NULL, 0, ids, n, (size_t)count, stop, NULL, NULL, &tokens, &all))
        return cli_failed(c);
    cli_report_tokens(sequences, tokens, all);
    return 0;
}

/* The prompts; NULL: nothing is to be generated. Token 1 begins a text in most vocabularies. */
static const char *cli_prompts(const cli *c) {
    const char *given = cli_value(c, "prompt");
    return !cli_value(c, "generate") ? NULL : given ? given : "1";
}

static int cli_generate(cli *c) {
    const char *text = cli_prompts(c);
    int64_t *ids = (int64_t *)malloc(CLI_MAX_PROMPT * sizeof *ids);
    cJSON *all = cJSON_CreateObject(), *sequences = cJSON_AddArrayToObject(all, "sequences");
    size_t n;
    if (!ids || !sequences) cli_fail(c, MLO_E_MEMORY, NULL, "no memory");
    while (!cli_failed(c) && (text = cli_prompt_ids(c, text, ids, &n)) != NULL) {
        if (cli_generate_one(c, ids, n, sequences) || !*text) break;
        text++;
    }
    free(ids);
    if (!cli_failed(c)) return cli_write_json(c, NULL, all);
    cJSON_Delete(all);
    return cli_failed(c);
}

/* Flags that belong together, and those that do not. */
static int cli_generate_flags(cli *c) {
    if (!cli_value(c, "generate") && (cli_value(c, "prompt") || cli_value(c, "stop")))
        return cli_fail(c, MLO_E_USAGE, NULL,
            "--prompt and --stop are of what --generate COUNT makes; give that, too");
    if (cli_value(c, "generate")
        && (cli_value(c, "inputs") || cli_value(c, "outputs") || cli_value(c, "probe")))
        return cli_fail(c, MLO_E_USAGE, NULL,
            "--generate makes its own inputs: --inputs, --outputs and --probe exclude it");
    return 0;
}
