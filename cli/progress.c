/* progress: waits for a child process, shows how far it is and how long it will take, and ends it
 * when mlo ends.
 *
 * in:  a command; the steps it is expected to take, and how to see which are done.
 * out: its status; on a terminal's stderr one line, overwritten again and again.
 *
 * The time left is what is expected of the rest, times how much slower than expected things went so
 * far. So a bad guess of the machine's speed is soon forgotten; only the proportion of the steps to
 * each other has to be about right.
 *
 * invariant: a signal that ends mlo ends the child and all that it started, and removes what was
 *     half written; at the end the line is gone.
 */

/* ---- signals -------------------------------------------------------------- */

static volatile sig_atomic_t cli_stopped; /* the signal that ended the child */
static volatile pid_t cli_running; /* the child, which leads a group of its own */

static void cli_on_signal(int number) {
    cli_stopped = number;
    if (cli_running > 0) {
        kill(-cli_running, SIGTERM); /* it is waited for, and what it began removed */
        return;
    }
    if (*cli_unfinished) unlink(cli_unfinished);
    signal(number, SIG_DFL);
    raise(number);
}

/* A page of a view is gone: the file was cut under it. */
static void cli_view_lost(int number) {
    static const char line[] = "mlo: a file was cut while mlo read it [MLO_E_IO]\n";
    (void)number;
    if (*cli_unfinished) unlink(cli_unfinished);
    _exit(write(2, line, sizeof line - 1) < 0 ? 3 : 2);
}

static void cli_catch_signals(void) {
    static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction act, before;
    memset(&act, 0, sizeof act);
    act.sa_handler = cli_on_signal;
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        if (!sigaction(caught[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(caught[i], &act, NULL);
}

/* ---- the line ------------------------------------------------------------- */

/* A step of what is waited for. Seconds are as expected until the clock says more. */
typedef struct cli_progress {
    int on; /* 1: somebody looks */
    int shown; /* 1: a line stands there */
    const char *what;

    double begun; /* when this step began, seconds by the clock */
    double next; /* when the line is due again, seconds by the clock */
    double expected; /* seconds of this step */
    double later; /* seconds of the steps behind it */
    double slower; /* times as long as expected, before this step */

    double known; /* the part of it that was last seen to be done, 0 to 1 */
    double seen; /* seconds after which that was seen */
    /* the part that is done, 0 to 1, and words; < 0: not yet begun */
    double (*look)(const struct cli_progress *p, char *to, size_t room);

    const char *where; /* for look: a log, a folder */
    int64_t cycles; /* for look: of all of it */
    double first; /* for look: what Verilator itself takes of compiling, 0 to 1 */
} cli_progress;

/* How many times as long as expected: as it was when something was last seen. What was before this
 * step counts little: a fiftieth of a second. */
static double cli_progress_slower(const cli_progress *p) {
    return (p->seen + 0.02 * p->slower) / (p->known * p->expected + 0.02);
}

/* Seconds left. Between two things seen it goes on as before, but not far: a quarter of the step;
 * then all takes longer. What comes behind this step is of another kind: of how much slower this one is, part is
 * the machine, which it will feel, too, and part a wrong guess of this step alone. */
static double cli_progress_left(const cli_progress *p, double spent) {
    const double slower = cli_progress_slower(p), rest = (1 - p->known) * p->expected;
    const double most = rest < p->expected / 4 ? rest : p->expected / 4;
    const double ahead = (spent - p->seen) / slower;
    const double late = ahead > most ? spent / (p->seen + most * slower) : 1;
    const double times = slower * late;
    return times * (rest - (ahead < most ? ahead : most)) + sqrt(times) * p->later;
}

static void cli_progress_show(cli_progress *p) {
    char words[80] = "", left[40];
    double now = cli_now(), spent = now - p->begun;
    if (!p->on || now < p->next) return;
    p->next = now + 0.25;
    const double known = p->look(p, words, sizeof words);
    if (known < 0) p->begun += spent; /* not yet under way */
    if (known < 0) spent = 0;
    if (known > p->known) {
        p->known = known;
        p->seen = spent;
    }
    cli_duration(cli_progress_left(p, spent), left, sizeof left);
    fprintf(stderr, "\r\033[K  %s%s: about %s left", p->what, words, left);
    p->shown = 1;
}

static void cli_progress_clear(cli_progress *p) {
    if (p->shown) fprintf(stderr, "\r\033[K");
    p->shown = 0;
}

static void cli_progress_step(cli_progress *p, const char *what, double expected, double later) {
    p->what = what;
    p->expected = expected;
    p->later = later;
    p->known = p->seen = 0;
    p->begun = cli_now();
    p->next = p->begun + 0.5; /* what is over at once needs no line */
}

static void cli_progress_end(cli_progress *p) {
    double times = (cli_now() - p->begun) / p->expected;
    p->slower = times < 0.1 ? 0.1 : times;
    cli_progress_clear(p);
}

/* ---- what there is to see ------------------------------------------------- */

/* The last number that the bench told, +progress. */
static double cli_look_at_run(const cli_progress *p, char *to, size_t room) {
    char tail[4097], cycle[40], all[40];
    const char *last = NULL;
    long long at = 0;
    int fd = open(p->where, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = size > 0 ? pread(fd, tail, sizeof tail - 1, size > 4096 ? size - 4096 : 0) : 0;
    if (fd >= 0) close(fd);
    tail[n > 0 ? n : 0] = 0;
    for (const char *s = tail; (s = strstr(s, "MLO AT ")) != NULL; s++)
        if (strchr(s, '\n')) last = s;
    if (last) sscanf(last, "MLO AT %lld", &at);
    snprintf(to, room, " reads the parameters");
    if (!last) return -1;
    double done = p->cycles > 0 ? (double)at / (double)p->cycles : 0;
    if (done > 1) done = 1;
    cli_grouped((double)at, cycle);
    cli_grouped((double)p->cycles, all);
    snprintf(to, room, ", cycle %s of %s (%.0f %%)", cycle, all, 100 * done);
    return done;
}

/* What an object takes, in megabytes of C++ that is to be fast: Verilator's own library four, slow
 * code half, not being optimized. */
static double cli_weight_of(const char *folder, const char *name) {
    static const struct {
        const char *name;
        double weight;
    } library[] = { { "verilated.o", 2.4 }, { "verilated_timing.o", 0.8 },
        { "verilated_threads.o", 0.8 } };
    char path[PATH_MAX];
    struct stat st;
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof library / sizeof *library; i++)
        if (!strcmp(name, library[i].name)) return library[i].weight;
    if (snprintf(path, sizeof path, "%s/%.*s.cpp", folder, (int)n - 2, name) >= (int)sizeof path)
        return 0;
    if (stat(path, &st)) return 0;
    return (double)st.st_size / 1e6 * (n > 8 && !strncmp(name + n - 8, "__Slow", 6) ? 0.5 : 1);
}

/* Verilator writes C++, then make compiles it: as much is done as has an object. */
static double cli_look_at_build(const cli_progress *p, char *to, size_t room) {
    char path[PATH_MAX];
    const struct dirent *e;
    double all = 4, compiled = 0;
    int written = snprintf(path, sizeof path, "%s/Vmlo_tb.mk", p->where) < (int)sizeof path
        && !access(path, F_OK);
    DIR *dir = written ? opendir(p->where) : NULL;
    while (dir && (e = readdir(dir)) != NULL) {
        size_t n = strlen(e->d_name);
        if (n > 2 && !strcmp(e->d_name + n - 2, ".o"))
            compiled += cli_weight_of(p->where, e->d_name);
        if (n > 4 && n < 250 && !strcmp(e->d_name + n - 4, ".cpp")) {
            snprintf(path, sizeof path, "%.*s.o", (int)n - 4, e->d_name);
            all += cli_weight_of(p->where, path);
        }
    }
    if (dir) closedir(dir);
    snprintf(to, room, written ? ": C++ (%.0f %%)" : ": Verilog to C++", 100 * compiled / all);
    return written ? p->first + (1 - p->first) * compiled / all : 0;
}

static double cli_look_away(const cli_progress *p, char *to, size_t room) {
    (void)p;
    (void)to;
    (void)room;
    return 0;
}

/* ---- the child ------------------------------------------------------------ */

/* A list of words for execvp, and room for their text. */
typedef struct {
    char *word[512];
    int n;
    int full; /* 1: one found no place */
    size_t used; /* bytes of text */
    char text[1 << 17];
} cli_command;

static void cli_word(cli_command *x, const char *format, ...) {
    const size_t left = sizeof x->text - x->used;
    char *word = x->text + x->used;
    va_list args;
    va_start(args, format);
    const size_t n = (size_t)vsnprintf(word, left, format, args);
    va_end(args);
    x->full |= n >= left || x->n == 511;
    if (x->full) return;
    x->used += n + 1;
    x->word[x->n++] = word;
}

/* In the child: stdout and stderr go to a file, and the command begins in its folder. */
static void cli_become(char *const *word, const char *folder, const char *log) {
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666), null = open("/dev/null", O_RDONLY);
    if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0
        || chdir(folder))
        _exit(126);
    signal(SIGPIPE, SIG_DFL);
    execvp(word[0], word);
    _exit(127);
}

/* Starts it in a group of its own; signals wait until its number is known. */
static pid_t cli_start(char *const *word, const char *folder, const char *log) {
    sigset_t all, before;
    sigfillset(&all);
    fflush(NULL);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid >= 0) setpgid(pid, 0);
    if (!pid) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        cli_become(word, folder, log);
    }
    cli_running = pid;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

/* Runs a command in a folder, with a line about it; returns its status, -1 when it could not be
 * started. */
static int cli_execute(
    cli *c, cli_progress *p, cli_command *x, const char *folder, const char *log) {
    struct timespec nap = { 0, 1000000 };
    int status = -1;
    if (x->full) {
        cli_fail(c, MLO_E_UNSUPPORTED, x->word[0], "is not started: its command is too long");
        return -1;
    }
    pid_t pid = cli_start(x->word, folder, log), ended = 0;
    if (pid < 0) {
        cli_fail(c, MLO_E_IO, x->word[0], "cannot be started: %s", strerror(errno));
        return -1;
    }
    while (!ended) {
        ended = waitpid(pid, &status, p->on ? WNOHANG : 0);
        if (cli_again(ended))
            ended = 0;
        else if (!ended) {
            cli_progress_show(p);
            nanosleep(&nap, NULL);
        }
        if (nap.tv_nsec < 64000000) nap.tv_nsec *= 2;
    }
    if (cli_stopped) kill(-pid, SIGKILL); /* whoever did not listen */
    cli_running = 0;
    cli_progress_end(p);
    return WIFEXITED(status) ? WEXITSTATUS(status)
                             : 128 + (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}
