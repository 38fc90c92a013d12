/* SPDX-License-Identifier: MIT
 *
 * main: the command line. `mlo VERB [FILE] [FLAGS]`; cli/table.c has the verbs and flags.
 *
 * in:  arguments, files, stdin.
 * out: files, stdout (data only), stderr (one line per failure; warnings; compile's summary).
 *
 * invariant: everything about models goes through mlo.h. Every failure ends in one handle (c->m),
 *     from which the line on stderr, the error document on stdout and the exit status are made.
 */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE /* madvise */
#include "mlo.h"
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

#include "cli/table.c" /* verbs, flags, help */
#include "cli/completion.c" /* the same for shells */

/* One run of the command line. */
typedef struct {
    const cli_verb *verb;
    struct {
        const cli_flag *flag;
        const char *value;
        int from_config; /* 1: from a config file, not from the command line */
    } given[256];
    int n_given;
    const char *called; /* as it was typed */
    const char *operand; /* FILE, DIR or VERB; NULL when there is none */
    char open[24]; /* sizes of frames that the model leaves open, N or NxSIDE; "": they stay open */
    const char *second; /* of show: what the first one is compared with; NULL: nothing */

    mlo *m; /* the handle that failures end in */
    int opened; /* files that m has opened */
    int opened_anew; /* those of the handle that takes its place */
    int passed_on; /* 1: the failure came in on stdin: it has had its line */
    int stdout_broken; /* 1: nothing more can be written there */
    int stdout_begun; /* 1: nothing more should be written there */
    cJSON *config;
} cli;

static int cli_failed(const cli *c) { return mlo_failed(c->m); }

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static int
cli_fail(cli *c, mlo_code code, const char *where, const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return mlo_refuse(c->m, code, c->verb ? c->verb->name : NULL, where, line);
}

/* Another handle's failure becomes the run's. */
static int cli_adopt(cli *c, const mlo *other) {
    const mlo_error *e = mlo_failure(other);
    return e && other != c->m
        ? mlo_refuse(c->m, e->code, c->verb->name, *e->node ? e->node : NULL, e->message)
        : cli_failed(c);
}

/* The last value given for a flag, NULL when it was not given; "" for a switch. */
static const char *cli_value(const cli *c, const char *name) {
    const char *value = NULL;
    int config = 1;
    for (int i = 0; i < c->n_given; i++)
        if (!strcmp(c->given[i].flag->name, name)
            && (!value || c->given[i].from_config <= config)) {
            value = c->given[i].value;
            config = c->given[i].from_config;
        }
    return value;
}

/* A whole number from a flag, within [low, high]. */
static long cli_number(cli *c, const char *name, long otherwise, long low, long high) {
    const char *s = cli_value(c, name);
    char *end;
    if (!s) return otherwise;
    errno = 0;
    long v = strtol(s, &end, 10);
    if (end == s || *end || errno || v < low || v > high) {
        if (high >= INT_MAX)
            cli_fail(
                c, MLO_E_USAGE, NULL, "--%s %s is not a whole number of %ld or more", name, s, low);
        else
            cli_fail(c, MLO_E_USAGE, NULL, "--%s %s is not a whole number from %ld to %ld", name, s,
                low, high);
        return otherwise;
    }
    return v;
}

/* What a misspelt word may have been, for messages; "" where nothing is near. */
static const char *cli_meant(const char *near) {
    static char text[100];
    if (!near) return "";
    snprintf(text, sizeof text, "; did you mean '%.60s'?", near);
    return text;
}

#include "cli/tick.c" /* how far a stage is */
#include "cli/files.c" /* reading, writing, directories */
#include "cli/npz.c" /* arrays in files */
#include "cli/args.c" /* the command line, and --config */
#include "cli/report.c" /* what quantize measured, as a table */
#include "cli/generate.c" /* run --generate */
#include "cli/vcd.c" /* show --wave */
#include "cli/model.c" /* the stage verbs, run, check, show */
#include "cli/build.c" /* emit, compile: the directory and the summary */
#include "cli/bench.c" /* what is simulated: the directory, frames, golden words */
#include "cli/jobs.c" /* sim --jobs: parts of sequences */
#include "cli/tokenizer.c" /* text to token numbers and back */
#include "cli/text.c" /* sim --generate; generate: texts that go on */
#include "cli/probe.c" /* sim --probe */
#include "cli/trace.c" /* sim --trace */
#include "cli/wait.c" /* why a simulation stands still */
#include "cli/progress.c" /* a child that is waited for, and how far it is */
#include "cli/simulator.c" /* which simulator; compile and run */
#include "cli/native.c" /* sim of a directory of C */
#include "cli/sim.c" /* sim */

static int cli_help(cli *c) {
    const cli_verb *about = c->operand ? cli_verb_of(c->operand) : NULL;
    const char *shell = cli_value(c, "completion");
    const char *near = c->operand ? cli_nearest_verb(c->operand) : NULL;
    if (c->operand && !about)
        return cli_fail(
            c, MLO_E_USAGE, NULL, "there is no verb '%s'%s", c->operand, cli_meant(near));
    if (cli_value(c, "man"))
        cli_help_man(stdout);
    else if (shell)
        cli_help_completion(stdout, shell);
    else if (about)
        cli_help_verb(stdout, about);
    else
        cli_help_all(stdout);
    if (fflush(stdout) || ferror(stdout))
        return cli_fail(c, MLO_E_IO, "stdout", "%s", strerror(errno));
    return 0;
}

static int cli_dispatch(cli *c) {
    switch (c->verb->bit) {
    case V_EMIT:
    case V_COMPILE: return cli_build(c);
    case V_RUN: return cli_run(c);
    case V_SIM: return cli_sim(c);
    case V_GENERATE: return cli_generate_verb(c);
    case V_CHECK: return cli_check(c);
    case V_SHOW: return cli_show(c);
    case V_HELP: return cli_help(c);
    default: return cli_stage(c);
    }
}

/* The line, the document, the status. */
static int cli_finish(cli *c) {
    const mlo_error *e = mlo_failure(c->m);
    int status = e ? e->status : 0;
    cli_tick_clear();
    if (e && !c->passed_on) fprintf(stderr, "%s\n", e->text);
    /* the document is for the next stage of a pipe: a person has read the line */
    int silent = c->stdout_broken || c->stdout_begun || isatty(STDOUT_FILENO);
    if (e && !silent && !(c->verb && c->verb->bit == V_HELP)) {
        cli_out o;
        cli_out_open(c, &o, NULL);
        mlo_write_json(c->m, cli_out_sink, &o);
        cli_out_flush(&o);
        free(o.buffer);
        free(o.other);
    }
    cJSON_Delete(c->config);
    mlo_close(c->m);
    cli_workers_end();
    return status;
}

int main(int argc, char **argv) {
    static cli c; /* a kilobyte or four; zeroed */
#ifdef __GLIBC__
    /* weights are read layer by layer, again for every sample: memory that was freed is kept, */
    mallopt(M_MMAP_MAX, 0);
    /* since clearing fresh pages takes as long as the arithmetic does */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
    c.called = argc ? argv[0] : "mlo";
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failure like others */
    signal(SIGBUS, cli_view_lost);
    if (!(c.m = cli_handle(&c.opened, cli_warn))) {
        fprintf(stderr, "mlo: no memory [MLO_E_MEMORY]\n");
        return 2;
    }
    if (argc < 2) {
        cli_help_all(stderr);
        mlo_close(c.m);
        return 2;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
        printf("mlo %s\n", MLO_VERSION);
        int r = fflush(stdout) || ferror(stdout) ? 2 : 0;
        if (r) fprintf(stderr, "mlo: stdout: %s [MLO_E_IO]\n", strerror(errno));
        mlo_close(c.m);
        return r;
    }
    if (!cli_parse(&c, argc, argv)) cli_dispatch(&c);
    return cli_finish(&c);
}
