/* tick: on a terminal, a line that says how far a stage is.
 *
 * in:  what the library tells of long work (mlo_desc.progress).
 * out: one line on stderr, overwritten again and again, from half a second of the same work on: what
 *      goes on, how much of it is done, how long the rest will take. Nowhere else than on a terminal,
 *      and gone when a line of another kind comes.
 *
 * example:   calibrates (43 %): about 5 s left
 */

static double cli_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void cli_duration(double seconds, char *to, size_t room) {
    long s = seconds < 1 ? 1 : (long)(seconds + 0.5);
    if (s < 100)
        snprintf(to, room, "%ld s", s);
    else if (s < 6000)
        snprintf(to, room, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(to, room, "%ld h %02ld min", s / 3600, s % 3600 / 60);
}

static struct {
    int shown; /* 1: a line stands there */
    char what[64]; /* the work that goes on */
    double begun; /* seconds by the clock */
    double next; /* when the line is due again */
    double done; /* of it, 0 to 1 */
} cli_ticked;

/* The line goes: something else is to be said. */
static void cli_tick_clear(void) {
    if (cli_ticked.shown) fprintf(stderr, "\r\033[K");
    cli_ticked.shown = 0;
}

static void cli_tick(void *user, const char *what, double done) {
    const double now = cli_now();
    char left[40];
    (void)user;
    if (!what) {
        cli_tick_clear();
        *cli_ticked.what = 0;
        return;
    }
    if (strcmp(cli_ticked.what, what) || done < cli_ticked.done) {
        cli_tick_clear();
        snprintf(cli_ticked.what, sizeof cli_ticked.what, "%s", what);
        cli_ticked.begun = now;
        cli_ticked.next = now + 0.5; /* what is over at once needs no line */
    }
    cli_ticked.done = done;
    if (now < cli_ticked.next || done <= 0) return;
    cli_ticked.next = now + 0.25;
    cli_duration((now - cli_ticked.begun) * (1 - done) / done, left, sizeof left);
    fprintf(stderr, "\r\033[K  %s (%.0f %%): about %s left", what, 100 * done, left);
    cli_ticked.shown = 1;
}
