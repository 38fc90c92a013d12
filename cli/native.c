/* native: sim of a build directory of C: builds its test and runs it, here or under qemu.
 *
 * in:  DIR as emit --target c wrote it; --simulator: native, arm, riscv32, cortex-m.
 * out: {"pass":true,"simulator":"native","target":"c","frames":F,"words":N,"arena_bytes":N,..} on stdout; 0, or 1
 *      when a word differs.
 *
 * The directory's own Makefile does it (CC, CFLAGS and RUN are its variables: `CC="arm-linux-gnueabihf-gcc -static"
 * RUN=qemu-arm mlo sim DIR`, where nothing was built before); the last line that begins with MLO is the verdict.
 *
 * invariant: PASS needs that line, status 0, and the files of the manifest.
 */

/* Where a test may run, by its Makefile. */
static const struct {
    const char *name;
    const char *target; /* of make */
    const char *tools[2]; /* besides make; NULL: none */
    const char *packages; /* Debian's, of the tools */
} cli_processors[] = {
    { "native", "test", { NULL, NULL }, NULL },
    { "arm", "arm", { "arm-linux-gnueabihf-gcc", "qemu-arm" },
        "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user" },
    { "riscv32", "riscv32", { "riscv64-unknown-elf-gcc", "qemu-riscv32" },
        "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-user" },
    { "cortex-m", "cortex-m", { "arm-none-eabi-gcc", "qemu-system-arm" },
        "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm" },
};

static int cli_has_tool(cli *c, const char *tool, const char *packages) {
    if (!tool || cli_on_path(tool)) return 1;
    cli_fail(c, MLO_E_IO, tool,
        "is not installed; sim builds and runs a test of C with it (apt-get install %s)", packages);
    return 0;
}
static int cli_has_tools(cli *c, int i) {
    int all = cli_has_tool(c, "make", "make");
    for (int k = 0; k < 2 && all; k++)
        all = cli_has_tool(c, cli_processors[i].tools[k], cli_processors[i].packages);
    return all;
}

/* The one that --simulator names; -1 with an error. */
static int cli_processor(cli *c) {
    const char *said = cli_value(c, "simulator") ? cli_value(c, "simulator") : "native";
    for (int i = 0; i < (int)(sizeof cli_processors / sizeof *cli_processors); i++) {
        if (strcmp(said, cli_processors[i].name)) continue;
        return cli_has_tools(c, i) ? i : -1;
    }
    cli_fail(c, MLO_E_USAGE, c->operand,
        "--simulator %s: it holds C, whose test runs as native, arm, riscv32 or cortex-m", said);
    return -1;
}

/* The test's verdict, from its output: what is behind "MLO PASS " or "MLO FAIL ". */
static void cli_native_verdict(cli_bench *b) {
    cli_bytes log;
    if (cli_slurp(b->c, cli_in_dir(b, "sim/run.log"), &log)) return;
    for (const char *p = log.data; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        b->passes += !strncmp(p, "MLO PASS ", 9);
        b->fails += !strncmp(p, "MLO FAIL ", 9);
        if (!strncmp(p, "MLO FAIL ", 9)) cli_bench_fails(b, p + 9);
    }
    free(log.data);
}

static int cli_native_run(cli_bench *b, const char *target) {
    cli_command x;
    cli_progress p;
    char log[PATH_MAX];
    memset(&p, 0, sizeof p);
    memset(&x, 0, sizeof x);
    p.look = cli_look_away;
    snprintf(log, sizeof log, "%s/sim/run.log", b->dir);
    cli_word(&x, "make");
    cli_word(&x, "-s");
    cli_word(&x, target);
    b->status = cli_execute(b->c, &p, &x, b->dir, log);
    if (!cli_failed(b->c)) cli_native_verdict(b);
    return cli_failed(b->c) || cli_stopped ? MLO_E_IO : 0;
}

/* Why it did not pass. */
static void cli_native_why(const cli_bench *b, char *to, size_t room) {
    if (b->verdict)
        snprintf(to, room, "first wrong word: %.500s", b->verdict);
    else if (b->passes != 1 || b->status)
        snprintf(to, room, "the test ended with status %d; see %s/sim/run.log", b->status, b->dir);
    else
        snprintf(to, room,
            "%s is not the file that manifest.json lists: a mixture, or edited by hand",
            b->mixture);
}

static int cli_native_report(cli_bench *b, const char *processor, int pass, const char *why) {
    static const char *const keys[] = { "target", "iterations", "frames", "words", "arena_bytes" };
    cJSON *all = cJSON_CreateObject();
    cJSON_AddBoolToObject(all, "pass", pass);
    cJSON_AddStringToObject(all, "simulator", processor);
    if (!pass) cJSON_AddStringToObject(all, "why", why);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        cJSON_AddItemToObject(all, keys[i],
            cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(b->manifest, keys[i]), 1));
    if (!b->for_people) return cli_write_json(b->c, NULL, all);
    if (pass)
        printf("\nPASS: %.0f words of %.0f frames are equal (%s); an arena of %.0f bytes\n\n",
            cli_json_number(all, "words"), cli_json_number(all, "frames"), processor,
            cli_json_number(all, "arena_bytes"));
    cJSON_Delete(all);
    return cli_failed(b->c);
}

/* Flags that are about a simulator. */
static int cli_native_flags(cli *c) {
    for (int i = 0; i < c->n_given; i++)
        if (strcmp(c->given[i].flag->name, "json") && strcmp(c->given[i].flag->name, "text")
            && strcmp(c->given[i].flag->name, "simulator"))
            return cli_fail(c, MLO_E_UNSUPPORTED, c->operand,
                "it holds C, whose own test is run: there is no --%s; leave it out",
                c->given[i].flag->name);
    return 0;
}

static int cli_native(cli_bench *b) {
    char why[700] = "";
    const int on = cli_native_flags(b->c) ? -1 : cli_processor(b->c);
    if (on < 0 || cli_native_run(b, cli_processors[on].target)) return cli_failed(b->c);
    const int pass = b->passes == 1 && !b->fails && !b->status && !*b->mixture;
    if (!pass) cli_native_why(b, why, sizeof why);
    if (cli_native_report(b, cli_processors[on].name, pass, why) || pass) return cli_failed(b->c);
    b->c->stdout_begun = 1;
    return cli_fail(b->c, MLO_E_MISMATCH, b->dir, "FAIL: %s", why);
}
