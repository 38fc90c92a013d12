/* share: texts of other languages, with their holes filled.
 *
 * in:  a text of share/ (embedded in texts.c), and a list of what fills its holes.
 * out: the text, appended to what has been composed so far.
 *
 * A hole is @NAME@. If the list has a value for it, the value takes its place. If the list has a
 * writer, the hole is a line of its own, and the writer writes lines. If it has neither, the line
 * is left out.
 *
 * invariant: a hole that is not in the list is a bug of mlo.
 * example: "    parameter WORDS = @WORDS@;" and { "WORDS", "2048", NULL }
 * cost: one pass over the text.
 */

/* A list of holes ends with a name NULL. */
typedef struct {
    const char *name;
    const char *value;
    void (*write)(void *user);
} mlo_hole;

/* A number, as the value of a hole. */
static const char *mlo_integer(mlo *m, int64_t n) { return mlo_format(m, "%lld", (long long)n); }

static const mlo_hole *mlo_hole_at(const mlo_hole *hole, const char *name, size_t n) {
    for (; hole->name; hole++)
        if (strlen(hole->name) == n && !strncmp(hole->name, name, n)) return hole;
    return NULL;
}

/* The lines of a text of share/. */
static const char *const *mlo_share_lines(mlo *m, const char *name) {
    for (int i = 0; i < MLO_N_SHARE; i++)
        if (mlo_eq(mlo_share[i].name, name)) return mlo_share[i].lines;
    mlo_fail_at(m, MLO_E_BUG, name, "is not in share/");
    return NULL;
}

static int mlo_share_line(mlo_text *t, const char *line, const mlo_hole *holes, void *user) {
    const size_t start = t->n;
    while (*line) {
        const size_t n = *line == '@' ? strspn(line + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") : 0;
        if (!n || line[n + 1] != '@') {
            const size_t plain = 1 + strcspn(line + 1, "@");
            mlo_put(t, line, plain);
            line += plain;
            continue;
        }
        const mlo_hole *hole = mlo_hole_at(holes, line + 1, n);
        if (!hole) return mlo_fail_at(t->m, MLO_E_BUG, NULL, "nothing fills the hole %s", line);
        if (!hole->value) {
            t->n = start;
            if (hole->write) hole->write(user);
            return mlo_failed(t->m);
        }
        mlo_puts(t, hole->value);
        line += n + 2;
    }
    mlo_puts(t, "\n");
    return mlo_failed(t->m);
}

static int mlo_share_copy(mlo_text *t, const char *name, const mlo_hole *holes, void *user) {
    const char *const *line = mlo_share_lines(t->m, name);
    if (!line) return mlo_failed(t->m);
    for (; *line; line++) MLO_TRY(mlo_share_line(t, *line, holes, user));
    return 0;
}
