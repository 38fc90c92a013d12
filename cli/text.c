/* text: sim --generate, and the verb generate: texts that a build directory's decoder goes on with.
 *
 * in:  host/pre.onnx, core.onnx and post.onnx; prompts, as ids or as text.
 * out: sim: sequences, whose parts become jobs (jobs.c); generate: the text on stdout, as it comes.
 *
 * The tokens are found with the integers of host/core.onnx. In the simulation every word of every job is
 * compared with those: if all are equal, the Verilog says the same text.
 *
 * invariant: a text is as long as its prompt and --generate say, or ends with --stop.
 * example: mlo sim DIR --prompt 1,403,407,261,378 --generate 64
 * cost: an evaluation of the whole model a token, or less (src/ops/generate.c).
 */
static int cli_texts_open(cli_bench *b) {
    if (!b->core && !(b->core = cli_sim_part(b, "host/core.onnx", &b->opened[1])))
        return cli_failed(b->c);
    if (!b->pre && !(b->pre = cli_sim_part(b, "host/pre.onnx", &b->opened[0])))
        return cli_failed(b->c);
    if (!b->post && !(b->post = cli_sim_part(b, "host/post.onnx", &b->opened[2])))
        return cli_failed(b->c);
    return 0;
}

/* Goes on with a prompt. */
static int cli_text_write(cli_bench *b, const int64_t *ids, size_t n, long count, mlo_says says,
    void *user, cli_text *to) {
    mlo *const behind[2] = { b->core, b->post };
    const long stop = cli_number(b->c, "stop", -1, 0, INT_MAX);
    to->prompt = n;
    if (cli_failed(b->c)
        || mlo_generate(
            b->pre, behind, 2, ids, n, (size_t)count, stop, says, user, &to->tokens, &to->n))
        return cli_adopt(b->c, b->pre);
    return 0;
}

/* --generate: the sequences of the run. */
static int cli_texts(cli_bench *b) {
    const char *p = cli_prompts(b->c);
    const long count = cli_number(b->c, "generate", 0, 1, CLI_MAX_PROMPT);
    if (cli_failed(b->c) || cli_generate_flags(b->c)) return cli_failed(b->c);
    if (!p) return 0;
    if (!b->slots)
        return cli_fail(b->c, MLO_E_USAGE, b->dir,
            "--generate is of a core with caches; compile --context N makes one");
    if (cli_value(b->c, "jobs"))
        return cli_fail(b->c, MLO_E_USAGE, NULL, "--generate makes its own jobs; leave --jobs out");
    int64_t *ids = (int64_t *)cli_npz_alloc(b->c, &b->made, CLI_MAX_PROMPT * sizeof *ids);
    b->text = (cli_text *)cli_npz_alloc(b->c, &b->made, (strlen(p) + 1) * sizeof *b->text);
    if (!ids || !b->text || cli_texts_open(b)) return cli_failed(b->c);
    for (size_t n; (p = cli_prompt_ids(b->c, p, ids, &n)) != NULL; p++) {
        if (cli_text_write(b, ids, n, count, NULL, NULL, &b->text[b->n_text])) break;
        b->n_text++;
        if (!*p) break;
    }
    return cli_failed(b->c);
}

/* The model's inputs of a text: ids, ones in a mask, positions that count. */
static int cli_text_inputs(cli_bench *b, const cli_text *t, cli_frame *f) {
    const mlo_array *sig;
    size_t n;
    if (mlo_signature(b->pre, 0, &sig, &n)) return cli_adopt(b->c, b->pre);
    mlo_array *in = cli_sim_arrays(b, n);
    for (size_t i = 0; in && i < n; i++) {
        const int mask = strstr(sig[i].name, "mask") != NULL,
                  counts = strstr(sig[i].name, "position") != NULL;
        if (cli_sim_array(b, &in[i], sig[i].name, sig[i].dtype, sig[i].rank, sig[i].dims))
            return cli_failed(b->c);
        for (size_t k = 0; k < cli_count(&in[i]); k++) {
            const int64_t v = mask ? 1 : counts ? (int64_t)k : k < t->n ? t->tokens[k] : 0;
            if (in[i].dtype == MLO_INT64)
                ((int64_t *)in[i].data)[k] = v;
            else
                cli_store(&in[i], k, v);
        }
    }
    f->model = in;
    f->n_model = n;
    return cli_failed(b->c);
}

/* Frames of them, through host/pre.onnx. */
static int cli_texts_given(cli_bench *b) {
    for (int64_t i = 0; i < b->n_text; i++)
        if (cli_text_inputs(b, &b->text[i], &b->frame[i]) || cli_sim_through_pre(b, &b->frame[i]))
            return cli_failed(b->c);
    return 0;
}

/* Adds them to sim's report. */
static void cli_texts_report(const cli_bench *b, cJSON *all) {
    if (!b->n_text) return;
    cJSON *list = cJSON_AddArrayToObject(all, "sequences");
    for (int64_t i = 0; i < b->n_text; i++)
        cli_report_tokens(list, b->text[i].tokens, b->text[i].n);
}

/* And says them to people: prompt -> what follows, as many ids a line as fit. */
static void cli_texts_tell(const cli_bench *b, cli_out *o) {
    enum { COLUMNS = 88 };
    char id[32];
    for (int64_t i = 0; i < b->n_text; i++) {
        const cli_text *t = &b->text[i];
        int column = 0;
        cli_out_text(o, "  sequence   ");
        for (size_t k = 0; k < t->n; k++) {
            const int n = snprintf(
                id, sizeof id, "%s %lld", k == t->prompt ? " ->" : "", (long long)t->tokens[k]);
            if (column + n > COLUMNS) cli_out_text(o, "\n             ");
            column = column + n > COLUMNS ? n : column + n;
            cli_out_text(o, id);
        }
        cli_out_text(o, "\n");
    }
}

/* ---- the verb ------------------------------------------------------------- */

typedef struct {
    cli_tokenizer t; /* of no pieces: tokens are said as numbers */
    cli_out o;
    const int64_t *prompt; /* said once something follows it; NULL: it was */
    size_t n_prompt;
    int64_t before; /* the token said last */
} cli_teller;

static void cli_tell_one(cli_teller *to, int64_t id, int first) {
    char bytes[512];
    const int n = to->t.n
        ? cli_token_decode(&to->t, to->before, id, bytes)
        : snprintf(bytes, sizeof bytes, "%s%lld", first ? "" : " ", (long long)id);
    cli_out_put(&to->o, bytes, (size_t)n);
    to->before = id;
}

static void cli_tell_prompt(cli_teller *to) {
    for (size_t i = 0; to->prompt && i < to->n_prompt; i++) cli_tell_one(to, to->prompt[i], !i);
    to->prompt = NULL;
}

static void cli_tell_token(void *user, int64_t id) {
    cli_teller *to = (cli_teller *)user;
    cli_tell_prompt(to);
    cli_tell_one(to, id, 0);
    cli_out_flush(&to->o);
}

/* The prompt's tokens: text that the tokenizer cuts, or numbers. */
static int64_t *cli_text_ids(cli_bench *b, const cli_teller *to, const char *prompt, size_t *n) {
    const size_t room = to->t.n ? strlen(prompt) + 3 : CLI_MAX_PROMPT;
    int64_t *ids = (int64_t *)cli_npz_alloc(b->c, &b->made, room * sizeof *ids);
    if (ids && to->t.n) *n = (size_t)cli_token_encode(&to->t, prompt, ids);
    const char *end = ids && !to->t.n ? cli_prompt_ids(b->c, prompt, ids, n) : "";
    if (end && *end)
        cli_fail(b->c, MLO_E_USAGE, NULL, "--prompt '%.60s': generate goes on with one sequence",
            prompt);
    return cli_failed(b->c) ? NULL : ids;
}

/* They are said and gone on with. */
static int cli_text_tell(cli_bench *b, cli_teller *to, const char *prompt) {
    cli_text text;
    size_t n = 0;
    const int64_t *ids = cli_text_ids(b, to, prompt, &n);
    if (!ids) return cli_failed(b->c);
    const long left = (long)b->tokens - (long)n;
    if (left < 1)
        return cli_fail(b->c, MLO_E_USAGE, NULL,
            "--prompt has %zu tokens; the context is %lld: leave room for one", n,
            (long long)b->tokens);
    const long count = cli_number(b->c, "count", left, 1, left);
    if (cli_failed(b->c)) return cli_failed(b->c);
    cli_out_open(b->c, &to->o, NULL);
    to->prompt = ids;
    to->n_prompt = n;
    if (!cli_text_write(b, ids, n, count, cli_tell_token, to, &text)) {
        cli_tell_prompt(to);
        cli_out_text(&to->o, "\n");
    }
    return cli_out_close(b->c, &to->o);
}

static int cli_generate_verb(cli *c) {
    static cli_bench b;
    static cli_teller to;
    const char *prompt = cli_value(c, "prompt"), *file = cli_value(c, "tokenizer");
    b.c = c;
    b.dir = c->operand;
    if (!b.dir || !prompt)
        return cli_fail(c, MLO_E_USAGE, NULL,
            "mlo generate DIR --prompt TEXT --tokenizer FILE is needed; or the prompt as ids, "
            "1,403");
    if (!cli_sim_manifest(&b) && (!file || !cli_tokenizer_open(c, file, &to.t))
        && !cli_texts_open(&b))
        cli_text_tell(&b, &to, prompt);
    cli_tokenizer_free(&to.t);
    mlo_close(b.pre);
    mlo_close(b.core);
    mlo_close(b.post);
    cJSON_Delete(b.manifest);
    cli_npz_free(&b.made);
    return cli_failed(c);
}
