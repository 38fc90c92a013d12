/* jobs: what comes into a core that keeps keys and values: parts of sequences, in order.
 *
 * in:  the manifest's jobs, or --jobs; sequences as whole frames, with their golden words.
 * out: in place of the frames, one for each job: the words of its tokens alone.
 *
 * What such a core makes of tokens start .. start + tokens - 1 of a sequence is what it would make of
 * them in the whole frame, whatever parts came before: so golden words are those rows of the frame's.
 *
 * Where the keys and values are the model's own inputs and outputs (the manifest's kv.kept), there is one job: a frame
 * behind what is given of a past.
 *
 * invariant: a job begins where its slot's sequence has come to, or before (then the rest is forgotten).
 * example: --jobs 0+5,5+1,1:0+16,6+10: two sequences, in two slots.
 * cost: nothing is copied.
 */

/* Reads a job, [FRAME@][SLOT:]START+TOKENS; returns what is behind it, NULL where it is none. */
static const char *cli_job_read(const char *p, cli_job *to) {
    long long v[2];
    int n = 0;
    to->slot = to->more = to->asked = 0;
    to->frame = -1;
    if (sscanf(p, "%lld@%n", &v[0], &n) == 1 && n) {
        to->frame = v[0];
        p += n;
    }
    n = 0;
    if (sscanf(p, "%lld:%n", &v[0], &n) == 1 && n) {
        to->slot = v[0];
        p += n;
    }
    n = 0;
    if (sscanf(p, "%lld+%lld%n", &v[0], &v[1], &n) != 2 || !n || (p[n] && p[n] != ',')) return NULL;
    if (to->frame < 0) to->frame = to->slot;
    to->start = v[0];
    to->tokens = v[1];
    return p[n] ? p + n + 1 : p + n;
}

/* Would the core take it, with its slots' lengths as they are? They change with it. */
static int cli_job_check(cli_bench *b, const cli_job *j, int64_t *length, const char *list) {
    if (j->slot < 0 || j->slot >= b->slots)
        return cli_fail(b->c, MLO_E_USAGE, NULL,
            "--jobs %.60s: slot %lld; the core has %lld (compile --slots)", list,
            (long long)j->slot, (long long)b->slots);
    if (j->frame < 0 || j->frame >= CLI_FRAMES_MOST)
        return cli_fail(b->c, MLO_E_USAGE, NULL, "--jobs %.60s: frame %lld; there can be %d", list,
            (long long)j->frame, CLI_FRAMES_MOST);
    if (j->start < 0 || j->tokens < 1 || j->tokens > b->context - j->start)
        return cli_fail(b->c, MLO_E_USAGE, NULL,
            "--jobs %.60s: %lld+%lld does not lie within the context of %lld tokens", list,
            (long long)j->start, (long long)j->tokens, (long long)b->context);
    if (j->start > length[j->slot])
        return cli_fail(b->c, MLO_E_USAGE, NULL,
            "--jobs %.60s: %lld+%lld begins beyond the %lld tokens that slot %lld holds", list,
            (long long)j->start, (long long)j->tokens, (long long)length[j->slot],
            (long long)j->slot);
    length[j->slot] = j->start + j->tokens;
    return 0;
}

/* Options that speak of frames, where there are jobs. */
static int cli_jobs_alone(cli_bench *b) {
    static const char *const none[] = { "outputs", "frames", "frame-tokens", "probe", "jobs" };
    const size_t own = b->past >= 0;
    for (size_t i = own; i < 4 + own; i++)
        if (cli_value(b->c, none[i]) && own)
            return cli_fail(b->c, MLO_E_UNSUPPORTED, b->dir,
                "--%s: keys and values are the model's own inputs and outputs, and a run is one "
                "frame with those that are given; leave it out",
                none[i]);
        else if (cli_value(b->c, none[i]))
            return cli_fail(b->c, MLO_E_UNSUPPORTED, b->dir,
                "--%s is of whole frames; to a core with caches come jobs: give --jobs", none[i]);
    return 0;
}

/* A job behind those there are. */
static void cli_job_add(cli_bench *b, int64_t frame, int64_t start, int64_t tokens) {
    const cli_job one = { frame, frame % b->slots, start, tokens, 0, 0 };
    b->job[b->n_job++] = one;
}

/* Texts that go on inside the core: a job each. (What a stop id leaves out must not have been written.) */
static int cli_texts_inside(cli_bench *b) {
    const int64_t count = cli_number(b->c, "generate", 1, 1, CLI_MAX_PROMPT);
    for (int64_t i = 0; i < b->n_text; i++) {
        cli_job_add(b, i, 0, (int64_t)b->text[i].prompt);
        cli_job *j = &b->job[b->n_job - 1];
        j->more = (int64_t)(b->text[i].n - b->text[i].prompt) - 1;
        j->asked = cJSON_HasObjectItem(b->manifest, "kv") ? j->more : count - 1;
    }
    return cli_failed(b->c);
}

/* The jobs of texts: as many as there are slots are side by side: their prompts, and then a token of each in
 * turn (but the last one, behind which nothing is asked). */
static int cli_texts_jobs(cli_bench *b) {
    size_t most = 0;
    for (int64_t i = 0; i < b->n_text; i++) most += b->text[i].n;
    if (most - (size_t)b->n_text > CLI_FRAMES_MOST)
        return cli_fail(b->c, MLO_E_USAGE, NULL,
            "--generate: more than %d jobs; ask for fewer tokens", CLI_FRAMES_MOST);
    if (!(b->job = (cli_job *)cli_npz_alloc(b->c, &b->made, (most + 1) * sizeof *b->job)))
        return cli_failed(b->c);
    if (b->around) return cli_texts_inside(b);
    for (int64_t first = 0; first < b->n_text; first += b->slots) {
        const int64_t last = first + b->slots < b->n_text ? first + b->slots : b->n_text;
        for (int64_t i = first; i < last; i++) cli_job_add(b, i, 0, (int64_t)b->text[i].prompt);
        for (size_t step = 0, any = 1; any; step++) {
            any = 0;
            for (int64_t i = first; i < last; i++) {
                const size_t at = b->text[i].prompt + step;
                if (at + 1 >= b->text[i].n) continue;
                cli_job_add(b, i, (int64_t)at, 1);
                any = 1;
            }
        }
    }
    return 0;
}

/* The jobs of the run: those that are given, else the bench's own. */
static int cli_jobs_list(cli_bench *b) {
    const char *list = cli_value(b->c, "jobs"), *p = list;
    const cJSON *j, *own = cJSON_GetObjectItemCaseSensitive(b->manifest, "jobs");
    int64_t length[256] = { 0 };
    cli_job one;
    if (!b->slots)
        return list ? cli_fail(b->c, MLO_E_USAGE, b->dir,
                          "--jobs are of a core with caches; compile --context N makes one")
                    : 0;
    if (b->past > 0) length[0] = b->past;
    const size_t most = list ? strlen(list) : (size_t)cJSON_GetArraySize(own);
    if (cli_jobs_alone(b)) return cli_failed(b->c);
    if (b->n_text) return cli_texts_jobs(b);
    if (!(b->job = (cli_job *)cli_npz_alloc(b->c, &b->made, (most + 1) * sizeof one)))
        return cli_failed(b->c);
    for (; list && *p; b->job[b->n_job++] = one) {
        if (!(p = cli_job_read(p, &one)))
            return cli_fail(b->c, MLO_E_USAGE, NULL,
                "--jobs %.60s: [FRAME@][SLOT:]START+TOKENS with commas between them are needed",
                list);
        if (cli_job_check(b, &one, length, list)) return cli_failed(b->c);
    }
    if (list) own = NULL;
    cJSON_ArrayForEach(j, own) {
        const int64_t slot = (int64_t)cli_json_number(j, "slot");
        const cli_job is = { slot, slot, (int64_t)cli_json_number(j, "start"),
            (int64_t)cli_json_number(j, "tokens"), 0, 0 };
        if (cli_job_check(b, &is, length, "of the manifest")) return cli_failed(b->c);
        b->job[b->n_job++] = is;
    }
    if (b->n_job < 1 || b->n_job > CLI_FRAMES_MOST)
        return cli_fail(b->c, MLO_E_USAGE, NULL, "%lld jobs; there can be 1 to %d in a run",
            (long long)b->n_job, CLI_FRAMES_MOST);
    return 0;
}

/* Sequences that jobs are parts of. */
static int64_t cli_jobs_frames(const cli_bench *b) {
    int64_t n = 0;
    for (int64_t i = 0; i < b->n_job; i++)
        if (b->job[i].frame >= n) n = b->job[i].frame + 1;
    return n;
}

/* The axis of an array's tokens, -1 for none; the axes before it hold one element. */
static int cli_job_axis(const cli_bench *b, const mlo_array *a) {
    const int bare = !strcmp(a->name, "mlo_mask") || !strcmp(a->name, "mlo_ids");
    const int axis = bare ? a->rank - 1 : a->rank - 2;
    return axis >= 0 && a->dims[axis] == b->tokens ? axis : -1;
}

/* The job's tokens of each array that has them. */
static const mlo_array *cli_job_rows(
    cli_bench *b, const cli_job *j, const mlo_array *from, size_t n) {
    mlo_array *to = cli_sim_arrays(b, n);
    for (size_t i = 0; to && i < n; i++) {
        to[i] = from[i];
        const int axis = cli_job_axis(b, &to[i]);
        if (axis < 0) continue;
        const size_t token = cli_array_bytes(&to[i]) / (size_t)b->tokens;
        to[i].dims[axis] = j->tokens;
        to[i].data = (char *)to[i].data + (size_t)j->start * token;
    }
    return to;
}

/* The sequence that a slot holds with a job, as a frame: that of the job, if all of what is in front is
 * of that, too; else put together, and evaluated. who: of which frame each position in front is. */
static int cli_job_whole(cli_bench *b, const cli_job *j, const int *who, cli_frame *to) {
    const cli_frame *f = &b->frame[j->frame];
    int64_t mine = 0;
    *to = *f;
    while (mine < j->start && who[mine] == j->frame) mine++;
    if (mine == j->start) return 0;
    mlo_array *in = cli_sim_arrays(b, f->n_in);
    for (size_t i = 0; in && i < f->n_in; i++) {
        const mlo_array *a = &f->in[i];
        const size_t token = cli_array_bytes(a) / (size_t)b->tokens;
        if (cli_sim_array(b, &in[i], a->name, a->dtype, a->rank, a->dims)) return cli_failed(b->c);
        memcpy(in[i].data, a->data, cli_array_bytes(a));
        for (int64_t t = 0; t < j->start && cli_job_axis(b, a) >= 0; t++)
            memcpy((char *)in[i].data + (size_t)t * token,
                (const char *)b->frame[who[t]].in[i].data + (size_t)t * token, token);
    }
    if (!(to->in = in)) return cli_failed(b->c);
    return mlo_run(b->core, to->in, to->n_in, &to->out, &to->n_out) ? cli_adopt(b->c, b->core) : 0;
}

/* The frames become jobs. */
static int cli_jobs_cut(cli_bench *b) {
    if (!b->n_job || b->past >= 0) return 0;
    cli_frame *part = (cli_frame *)cli_npz_alloc(b->c, &b->made, (size_t)b->n_job * sizeof *part);
    int *who = (int *)cli_npz_alloc(b->c, &b->made, (size_t)(b->slots * b->tokens) * sizeof *who);
    for (int64_t i = 0; i < b->n_job && !cli_failed(b->c); i++) {
        const cli_job *j = &b->job[i];
        cli_frame whole;
        if (cli_job_whole(b, j, who + j->slot * b->tokens, &whole)) break;
        for (int64_t t = 0; t < j->tokens; t++)
            who[j->slot * b->tokens + j->start + t] = (int)j->frame;
        part[i] = whole;
        part[i].tokens = j->tokens;
        part[i].in = cli_job_rows(b, j, whole.in, whole.n_in);
        /* what follows a part is said of its last token */
        const cli_job last = { j->frame, j->slot, j->start + j->tokens - 1, 1 + j->more, 0, 0 };
        if (whole.out) part[i].out = cli_job_rows(b, b->around ? &last : j, whole.out, whole.n_out);
    }
    if (cli_failed(b->c)) return cli_failed(b->c);
    b->frame = part;
    b->n = b->n_job;
    return cli_failed(b->c);
}

/* sim/jobs.hex: {more, slot, start, tokens} of each, as registers take them. */
static int cli_jobs_write(cli_bench *b) {
    cli_out o;
    char line[40];
    cli_out_open(b->c, &o, cli_in_dir(b, "sim/jobs.hex"));
    for (int64_t i = 0; i < b->n_job; i++) {
        snprintf(line, sizeof line, "%04llx%02llx%06llx%04llx\n",
            (unsigned long long)b->job[i].asked, (unsigned long long)b->job[i].slot,
            (unsigned long long)b->job[i].start, (unsigned long long)b->job[i].tokens);
        cli_out_text(&o, line);
    }
    return cli_out_close(b->c, &o);
}

/* As option "jobs" of the library has them, in `to`. */
static void cli_jobs_text(const cli_bench *b, char *to, size_t room) {
    size_t n = 0;
    *to = 0;
    for (int64_t i = 0; i < b->n_job && n + 70 < room; i++) {
        n += (size_t)snprintf(to + n, room - n, "%s%lld:%lld+%lld", i ? "," : "",
            (long long)b->job[i].slot, (long long)b->job[i].start, (long long)b->job[i].tokens);
        if (b->job[i].more)
            n += (size_t)snprintf(to + n, room - n, "+%lld", (long long)b->job[i].more);
    }
}
