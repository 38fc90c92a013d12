/* sim: simulates a build directory and judges it.
 *
 * in:  DIR as emit wrote it, perhaps other inputs.
 * out: the JSON of design section 7 on stdout; 0, or 1 when a word differs.
 *
 * The steps: check the manifest and digests; get the frames (from DIR/tb, drawn, or --inputs
 * through host/pre.onnx) and the golden words (host/core.onnx in mlo); write both as hex files to
 * DIR/sim; compile, once per set of sources; run, and read the bench's MLO lines (simulator.c);
 * report, as JSON or as a summary for people.
 *
 * invariant: PASS needs exactly one PASS line, status 0, and a directory whose files are those of
 *     the manifest. A directory with changed files is simulated all the same, since the first wrong
 *     word says most about the change; but it never passes.
 */

/* ---- the verdict ---------------------------------------------------------- */

/* Writes which frame, token and channel a beat and lane of the output are. */
static void cli_sim_place(const cli_bench *b, int64_t beat, int lane, char *to, size_t room) {
    int64_t per = b->channels / b->lanes, token = beat / per, f = 0;
    char layer[40] = "";
    for (int64_t made; f < b->n - 1; f++, token -= made) {
        made = b->pools ? 1 : b->times * b->frame[f].tokens;
        if (token < made) break;
    }
    if (b->times > 1) {
        snprintf(layer, sizeof layer, "layer %lld, ", (long long)(token / b->frame[f].tokens));
        token %= b->frame[f].tokens;
    }
    snprintf(to, room, "frame %lld, %stoken %lld, channel %lld", (long long)f, layer,
        (long long)token, (long long)(beat % per * b->lanes + lane));
}

/* Turns "word 12 expected 0.. got 0.." into a line for people. */
static void cli_sim_explain(const cli_bench *b, char *to, size_t room) {
    long long word;
    char where[120];
    int expects = 0, gets = 0, bad = 0, pad = (b->bits + 7) / 8 * 8;
    if (!b->verdict) {
        snprintf(to, room,
            b->passes ? "the simulator ended with status %d after PASS"
                      : "the simulator ended without a verdict, status %d; see %s/sim/run.log",
            b->status, b->dir);
        return;
    }
    if (!strncmp(b->verdict, "protocol", 8)) {
        snprintf(to, room, "a breach of AXI: %s; all of them: %s/sim/run.log", b->breach, b->dir);
        return;
    }
    if (!strncmp(b->verdict, "missing", 7) && *b->cause) {
        snprintf(to, room, "%.*s: %s",
            (int)strcspn(b->verdict, "(") - (strchr(b->verdict, '(') != NULL), b->verdict,
            b->cause);
        return;
    }
    if (sscanf(b->verdict, "word %lld expected %n%*s got %n", &word, &expects, &gets) != 1
        || !gets) {
        snprintf(to, room, "%.500s", b->verdict);
        return;
    }
    const char *expected = b->verdict + expects, *got = b->verdict + gets;
    const size_t n = strcspn(expected, " "), k = strlen(got);
    if (word >= b->beats) {
        snprintf(to, room, "a surplus word after the %lld that were due: %.80s",
            (long long)b->beats, got);
        return;
    }
    for (int lane = 0; lane < b->lanes; lane++) {
        int64_t e = cli_lane(expected + 1, n - 1, lane, pad, b->bits, &bad);
        int64_t g = cli_lane(got + 1, k - 1, lane, pad, b->bits, &bad);
        if (!bad && e == g) continue;
        cli_sim_place(b, word, lane, where, sizeof where);
        if (bad)
            snprintf(to, room, "first wrong word: %s: expected %.*s, got %.80s", where,
                (int)(n > 80 ? 80 : n - 1), expected + 1, got + 1);
        else
            snprintf(to, room, "first wrong word: %s: expected %lld, got %lld", where, (long long)e,
                (long long)g);
        return;
    }
    cli_sim_place(b, word, 0, where, sizeof where);
    snprintf(to, room, "first wrong word: %s: the data are right, but the end of the frame is %s",
        where, expected[0] == '1' ? "missing" : "marked too early");
}

/* ---- the report ----------------------------------------------------------- */

static double cli_sim_interval(const cli_bench *b) {
    if (b->n_done < b->n) return 0;
    if (b->n >= 2 * b->group && b->n % b->group == 0)
        return (double)(b->done[b->n - 1] - b->done[b->group - 1]) / (double)(b->n - b->group);
    return (double)b->cycles / (double)b->n;
}

/* How often a frame passes through a kernel. */
static double cli_sim_rounds(const cli_bench *b) { return b->unrolled ? 1 : (double)b->iterations; }

static double cli_ratio(double a, double b) { return b > 0 ? a / b : 0; }

/* Of a frame's work what a job has, on average: as many of its tokens. */
static double cli_sim_share(const cli_bench *b) {
    return b->n_job ? (double)cli_sim_tokens(b) / (double)(b->n * b->tokens) : 1;
}

/* Reports on the parameter memory. beats: all that were read, those loaded ahead included;
 * delivered: those that reached the kernels, as the core counts them; busy: cycles while a frame
 * was inside; and the shares of these cycles in which a beat came, and in which memory had one to
 * give, by --bandwidth and --stall. */
static void cli_report_memory(const cli_bench *b, cJSON *all) {
    cJSON *to = cJSON_AddObjectToObject(all, "memory");
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(b->manifest, "parameter_beats");
    double rate = b->rate > 0 && b->rate < 256 ? (double)b->rate / 256 : 1;
    double awake = (double)(100 - cli_number(b->c, "stall", 0, 0, 99)) / 100;
    cJSON_AddNumberToObject(to, "axi_bits", b->axi_bits);
    cJSON_AddNumberToObject(to, "beats_per_iteration", cli_json_number(said, "per_iteration"));
    cJSON_AddNumberToObject(to, "beats_per_frame", cli_json_number(said, "per_frame"));
    cJSON_AddNumberToObject(to, "beats", (double)b->weight_beats);
    cJSON_AddNumberToObject(to, "delivered", (double)b->delivered);
    cJSON_AddNumberToObject(to, "predicted_delivered", cli_sim_delivered(b, said));
    cJSON_AddNumberToObject(to, "busy", (double)b->channel_busy);
    cJSON_AddNumberToObject(
        to, "busy_share", cli_ratio((double)b->channel_busy, (double)b->counted_cycles));
    cJSON_AddNumberToObject(to, "offered_share", rate < awake ? rate : awake);
}

/* Reports a kernel's predicted cycles. */
static void cli_report_spent(cJSON *one, const cJSON *predicted, const char *name) {
    const cJSON *k;
    cJSON_ArrayForEach(k,
        cJSON_GetObjectItemCaseSensitive(
            predicted, "kernels")) if (!strcmp(cli_json_text(k, "name"), name)) {
        cJSON_AddNumberToObject(one, "predicted", cli_json_number(k, "busy"));
        cJSON_AddNumberToObject(
            one, "predicted_starved_parameters", cli_json_number(k, "starved_parameters"));
        cJSON_AddNumberToObject(
            one, "predicted_starved_input", cli_json_number(k, "starved_input"));
        cJSON_AddNumberToObject(one, "predicted_blocked", cli_json_number(k, "blocked"));
        return;
    }
    cJSON_AddNullToObject(one, "predicted");
}

static void cli_report_kernel(const cli_kernel *k, double share, double steady,
    const cJSON *predicted, double bound, cJSON *list) {
    const double macs = k->macs * share;
    cJSON *one = cJSON_CreateObject();
    cJSON_AddStringToObject(one, "name", k->name);
    cJSON_AddStringToObject(one, "op", k->op);
    cJSON_AddNumberToObject(one, "pe", k->pe);
    cJSON_AddNumberToObject(one, "simd", k->simd);
    cJSON_AddNumberToObject(one, "multipliers", k->multipliers);
    cJSON_AddNumberToObject(one, "macs", macs);
    cJSON_AddNumberToObject(one, "busy", k->busy);
    cJSON_AddNumberToObject(one, "starved", k->starved);
    cJSON_AddNumberToObject(one, "blocked", k->blocked);
    cli_report_spent(one, predicted, k->name);
    cJSON_AddNumberToObject(one, "utilization", cli_ratio(macs, k->multipliers * steady));
    cJSON_AddNumberToObject(one, "predicted_utilization",
        cli_ratio(macs, k->multipliers * cli_json_number(predicted, "interval")));
    cJSON_AddNumberToObject(one, "bound_utilization", cli_ratio(macs, k->multipliers * bound));
    cJSON_AddItemToArray(list, one);
}

/* Reports the most beats that a FIFO holds by the prediction. */
static void cli_report_peak(cJSON *one, const cJSON *predicted, const char *name) {
    const cJSON *k;
    cJSON_ArrayForEach(k,
        cJSON_GetObjectItemCaseSensitive(
            predicted, "fifos")) if (!strcmp(cli_json_text(k, "name"), name)) {
        cJSON_AddNumberToObject(one, "predicted_peak", cli_json_number(k, "peak"));
        return;
    }
    cJSON_AddNullToObject(one, "predicted_peak");
}

/* Reports the most beats that each FIFO held. */
static void cli_report_fifos(const cli_bench *b, const cJSON *predicted, cJSON *all) {
    cJSON *fifos = cJSON_AddArrayToObject(all, "fifos");
    for (int i = 0; i < b->n_fifo; i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", b->fifo[i].name);
        cJSON_AddNumberToObject(one, "peak", (double)b->fifo[i].peak);
        cli_report_peak(one, predicted, b->fifo[i].name);
        cJSON_AddNumberToObject(one, "depth", (double)b->fifo[i].depth);
        cJSON_AddNumberToObject(one, "beats_per_token", (double)b->fifo[i].beats);
        cJSON_AddItemToArray(fifos, one);
    }
}

/* Keys and values that were compared in their memory. */
static int64_t cli_kept_words(const cli_bench *b) {
    return b->kept ? 2 * b->iterations * b->context * (int64_t)cli_json_number(b->kv, "channels")
                   : 0;
}

/* Makes the report. bound: the cycles per frame at which the busiest kernel never rests. */
static cJSON *cli_report_make(
    const cli_bench *b, int pass, const char *why, const char *probe, const cJSON *predicted) {
    cJSON *all = cJSON_CreateObject(), *list;
    double steady = cli_sim_interval(b), macs = 0, multipliers = 0;
    double bound = cli_json_number(b->manifest, "interval_per_token") * cli_sim_rounds(b)
        * (double)cli_sim_tokens(b) / (double)b->n;
    cJSON_AddBoolToObject(all, "pass", pass);
    if (!pass) cJSON_AddStringToObject(all, "failure", why);
    if (*b->mixture) cJSON_AddStringToObject(all, "mixture", b->mixture);
    if (cli_value(b->c, "probe"))
        cJSON_AddStringToObject(all, "probe", *probe ? probe : "every kernel's stream is right");
    cJSON_AddStringToObject(all, "simulator", b->verilator ? "verilator" : "icarus");
    cJSON_AddStringToObject(all, "simulator_because", b->why_this);
    cJSON_AddNumberToObject(all, "frames", (double)b->n);
    cJSON_AddNumberToObject(all, "cycles", (double)b->cycles);
    list = cJSON_AddArrayToObject(all, "frame_done");
    for (int i = 0; i < b->n_done; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)b->done[i]));
    cJSON_AddNumberToObject(all, "interval", steady);
    if (predicted) {
        cJSON_AddNumberToObject(all, "predicted_cycles", cli_json_number(predicted, "cycles"));
        cJSON_AddNumberToObject(all, "predicted_interval", cli_json_number(predicted, "interval"));
    } else {
        cJSON_AddNullToObject(all, "predicted_cycles");
        cJSON_AddNullToObject(all, "predicted_interval");
    }
    cJSON_AddNumberToObject(all, "bound", bound);
    cJSON_AddNumberToObject(all, "words", (double)(b->words * b->lanes + cli_kept_words(b)));
    cJSON_AddNumberToObject(all, "weight_beats", (double)b->weight_beats);
    if (cJSON_HasObjectItem(b->manifest, "kv")) {
        cJSON_AddNumberToObject(all, "kv_read", (double)b->kv_read);
        cJSON_AddNumberToObject(all, "kv_written", (double)b->kv_written);
    }
    cli_report_memory(b, all);
    list = cJSON_AddObjectToObject(all, "counters");
    cJSON_AddNumberToObject(list, "cycles", (double)b->counted_cycles);
    cJSON_AddNumberToObject(list, "frames", (double)b->counted_frames);
    cJSON_AddNumberToObject(list, "beats", (double)b->counted_beats);
    list = cJSON_AddArrayToObject(all, "kernels");
    for (int i = 0; i < b->n_kernel; i++) {
        cli_report_kernel(&b->kernel[i], cli_sim_share(b), steady, predicted, bound, list);
        macs += b->kernel[i].macs * cli_sim_share(b);
        multipliers += b->kernel[i].multipliers;
    }
    cJSON_AddNumberToObject(all, "multipliers", multipliers);
    cJSON_AddNumberToObject(all, "macs", macs);
    cJSON_AddNumberToObject(all, "utilization", cli_ratio(macs, multipliers * steady));
    cJSON_AddNumberToObject(all, "predicted_utilization",
        cli_ratio(macs, multipliers * cli_json_number(predicted, "interval")));
    cJSON_AddNumberToObject(all, "bound_utilization", cli_ratio(macs, multipliers * bound));
    cJSON_AddStringToObject(all, "manifest", b->digest);
    cli_texts_report(b, all);
    cli_report_fifos(b, predicted, all);
    return all;
}

static void cli_tell_line(cli_out *o, const char *format, ...) {
    char line[400];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cli_out_text(o, line);
}

/* Prints the report for people. */
static void cli_tell_sim(const cli_bench *b, const cJSON *all, cli_out *o) {
    char words[40], cycles[40], predicted[40], beats[40], took[40];
    const double measured = (double)b->cycles, said = cli_json_number(all, "predicted_cycles");
    cli_duration(cli_now() - b->begun, took, sizeof took);
    cli_tell_line(o, "  PASS        %s words compared, all equal; %lld %s%s, %lld iterations\n",
        cli_grouped(cli_json_number(all, "words"), words), (long long)b->n,
        b->n_job ? "job" : "frame", b->n > 1 ? "s" : "", (long long)b->iterations);
    cli_texts_tell(b, o);
    cli_tell_line(o, "  cycles      %s simulated", cli_grouped(measured, cycles));
    if (said > 0)
        cli_tell_line(o, ", %s predicted (%.2g %%)", cli_grouped(said, predicted),
            100 * (said - measured) / measured);
    cli_tell_line(o, "\n");
    if (!cli_value(b->c, "frame-tokens"))
        cli_tell_line(o,
            "  multipliers %.0f, busy %.1f %% of the time with %lld frame%s in flight%s\n",
            cli_json_number(all, "multipliers"), 100 * cli_json_number(all, "utilization"),
            (long long)b->group, b->group > 1 ? "s" : "",
            b->group > 1 || b->n_job || b->times > 1 || b->stream[2].name
                ? ""
                : " (try compile --frames-in-flight 2)");
    cli_tell_line(o, "  parameters  %s beats of %d bits read\n",
        cli_grouped((double)b->weight_beats, beats), b->axi_bits);
    if (cli_value(b->c, "probe"))
        cli_tell_line(o, "  probe       every kernel's stream is right\n");
    cli_tell_line(o, "  simulator   %s (%s); %s in all\n", b->verilator ? "Verilator" : "Icarus",
        b->why_this, took);
    cli_tell_line(o, "  more        %s/sim/report.json%s; mlo show %s\n", b->dir,
        cli_value(b->c, "trace") ? ", trace.jsonl" : "", b->dir);
}

/* Writes the report on stdout, and as sim/report.json for `mlo show DIR`. */
static int cli_sim_report(cli_bench *b, int pass, const char *why, const char *probe) {
    cJSON *all = cli_report_make(
        b, pass, why, probe, cli_value(b->c, "frame-tokens") ? NULL : b->predicted);
    char *text = cJSON_PrintUnformatted(all);
    if (!text) {
        cJSON_Delete(all);
        return cli_fail(b->c, MLO_E_MEMORY, NULL, "no memory");
    }
    cli_out o;
    if (!cli_write_file(b->c, cli_in_dir(b, "sim/report.json"), text, strlen(text))) {
        cli_out_open(b->c, &o, NULL);
        if (!b->for_people) {
            cli_out_text(&o, text);
            cli_out_text(&o, "\n");
        } else if (pass)
            cli_tell_sim(b, all, &o);
        cli_out_close(b->c, &o);
    }
    cJSON_free(text);
    cJSON_Delete(all);
    return cli_failed(b->c);
}

/* Joins all frames' arrays of one name along the first axis (or a new one) to one array. */
static int cli_sim_stack(cli_bench *b, const mlo_array *const *a, int64_t n, mlo_array *to) {
    mlo_array whole = *a[0];
    int first = whole.rank > 0 && whole.dims[0] == 1;
    if (!first) {
        for (int i = whole.rank++; i > 0; i--) whole.dims[i] = whole.dims[i - 1];
    }
    whole.dims[0] = n;
    for (int64_t f = 1; f < n; f++)
        if (cli_array_bytes(a[f]) != cli_array_bytes(a[0]))
            return cli_fail(b->c, MLO_E_SHAPE, whole.name,
                "frames of different lengths cannot be stacked in --outputs; simulate one length "
                "at a time");
    if (cli_sim_array(b, to, whole.name, whole.dtype, whole.rank, whole.dims))
        return cli_failed(b->c);
    for (int64_t f = 0; f < n; f++)
        memcpy((char *)to->data + (size_t)f * cli_array_bytes(a[0]), a[f]->data,
            cli_array_bytes(a[f]));
    return 0;
}

/* Writes --outputs: the model's outputs where the model's inputs were given (post runs in mlo),
 * else the core's. */
static int cli_sim_outputs(cli_bench *b, const char *path) {
    size_t n_out = 0;
    mlo_array *all = NULL;
    int through = b->frame[0].model != NULL;
    const mlo_array ***rows = NULL;
    if (!b->frame[0].out && cli_sim_golden(b, NULL, NULL)) return cli_failed(b->c);
    if (through && !(b->post = cli_sim_part(b, "host/post.onnx", &b->opened[2])))
        return cli_failed(b->c);
    for (int64_t f = 0; f < b->n; f++) {
        cli_frame *fr = &b->frame[f];
        const mlo_array *out = fr->out;
        size_t n = fr->n_out;
        if (through) {
            mlo_array *in = cli_sim_arrays(b, fr->n_out + fr->n_pre + fr->n_model);
            const mlo_array *sig;
            size_t n_sig, k = 0;
            if (!in || mlo_signature(b->post, 0, &sig, &n_sig)) return cli_adopt(b->c, b->post);
            for (size_t i = 0; i < n_sig; i++) {
                const mlo_array *a = cli_named(fr->out, fr->n_out, sig[i].name);
                if (!a) a = cli_named(fr->pre, fr->n_pre, sig[i].name);
                if (!a) a = cli_named(fr->model, fr->n_model, sig[i].name);
                if (a && k < fr->n_out + fr->n_pre + fr->n_model) in[k++] = *a;
            }
            if (mlo_run(b->post, in, k, &out, &n)) return cli_adopt(b->c, b->post);
        }
        if (!rows) {
            n_out = n;
            rows = (const mlo_array ***)cli_npz_alloc(b->c, &b->made, (n + 1) * sizeof *rows);
            for (size_t i = 0; rows && i < n; i++)
                rows[i] = (const mlo_array **)cli_npz_alloc(
                    b->c, &b->made, (size_t)b->n * sizeof **rows);
            if (cli_failed(b->c)) return cli_failed(b->c);
        }
        for (size_t i = 0; i < n_out; i++) rows[i][f] = &out[i];
    }
    if (!(all = cli_sim_arrays(b, n_out))) return cli_failed(b->c);
    for (size_t i = 0; i < n_out; i++)
        if (cli_sim_stack(b, rows[i], b->n, &all[i])) return cli_failed(b->c);
    return cli_npz_write(b->c, path, all, n_out);
}

/* ---- the verb ------------------------------------------------------------- */

static int cli_sim_run(cli_bench *b) {
    cli *c = b->c;
    cli_golden g = { 0, b, NULL };
    char why[1300] = "", probe[200] = "";
    int probing = cli_value(c, "probe") != NULL;
    if (cli_sim_manifest(b)) return cli_failed(c);
    if (cli_is_c(b->manifest)) return cli_native(b);
    if (b->unrolled && (probing || cli_value(c, "trace")))
        return cli_fail(c, MLO_E_UNSUPPORTED, b->dir,
            "an unrolled core has no --probe and no --trace; the rolled one has the same streams");
    if (cli_value(c, "window") && !cli_value(c, "trace"))
        return cli_fail(c, MLO_E_USAGE, NULL, "--window is of --trace: give both");
    if (cli_sim_frames(b)) return cli_failed(c);
    /* what an earlier run left */
    unlink(cli_in_dir(b, "sim/report.json"));
    unlink(cli_in_dir(b, "sim/probe.txt"));
    unlink(cli_in_dir(b, "sim/trace.txt"));
    unlink(cli_in_dir(b, "sim/trace.jsonl"));
    if (probing
        && !(g.value = (mlo_array *)cli_npz_alloc(
                 c, &b->made, (size_t)(b->n_kernel * b->n * b->iterations) * sizeof *g.value)))
        return cli_failed(c);
    if ((probing || !b->own_inputs) && cli_sim_golden(b, probing ? cli_golden_see : NULL, &g))
        return cli_failed(c);
    if (cli_jobs_cut(b)) return cli_failed(c);
    if (!b->own_inputs && (cli_sim_write(b) || (b->n_job && cli_jobs_write(b))))
        return cli_failed(c);
    if (b->image_from_bin && cli_sim_image(b)) return cli_failed(c);
    if (cli_sim_expect(b) || cli_sim_simulate(b)
        || (probing && cli_sim_probe(b, &g, probe, sizeof probe)))
        return cli_failed(c);
    int words = b->passes == 1 && !b->fails && !b->status && !*probe, pass = words && !*b->mixture;
    if (!words && b->passes == 1 && !b->fails && *probe)
        snprintf(why, sizeof why, "the output is right, but a stream inside is not");
    else if (!words)
        cli_sim_explain(b, why, sizeof why);
    if (*probe) {
        size_t n = strlen(why);
        snprintf(why + n, sizeof why - n, "; first: %s", probe);
    }
    if (*b->mixture) {
        size_t n = strlen(why);
        snprintf(why + n, sizeof why - n,
            "%s%s is not the file that manifest.json lists: a mixture, or edited by hand",
            n ? "; " : "", b->mixture);
    }
    if (cli_sim_report(b, pass, why, probe)
        || (cli_value(c, "trace") && (pass || !access(cli_in_dir(b, "sim/trace.txt"), R_OK))
            && cli_sim_trace(b)))
        return cli_failed(c);
    if (!pass) {
        c->stdout_begun = 1;
        return cli_fail(c, MLO_E_MISMATCH, b->dir, "FAIL: %s", why);
    }
    return cli_value(c, "outputs") ? cli_sim_outputs(b, cli_value(c, "outputs")) : 0;
}

static int cli_sim(cli *c) {
    static cli_bench b;
    b.c = c;
    b.dir = c->operand;
    b.begun = cli_now();
    b.for_people = cli_value(c, "text") || (!cli_value(c, "json") && isatty(STDOUT_FILENO));
    cli_catch_signals();
    if (cli_value(c, "text") && cli_value(c, "json"))
        return cli_fail(c, MLO_E_USAGE, NULL, "--text and --json exclude each other; give one");
    if (!b.dir) return cli_fail(c, MLO_E_USAGE, NULL, "the build directory is needed: mlo sim DIR");
    cli_sim_run(&b);
    mlo_close(b.pre);
    mlo_close(b.core);
    mlo_close(b.post);
    for (int i = 0; i < b.n_cut; i++) mlo_close(b.cut[i]);
    cJSON_Delete(b.manifest);
    cJSON_Delete(b.predicted);
    cli_npz_free(&b.made);
    cli_npz_free(&b.given);
    if (cli_stopped) {
        signal(cli_stopped, SIG_DFL);
        raise(cli_stopped);
    }
    return cli_failed(c);
}
