/* files: POSIX underneath: sources that refuse symlinks, outputs that appear whole or not at all,
 * directories made of such outputs.
 *
 * in:  paths; bytes from mlo's sinks.
 * out: files.
 *
 * invariant: an output is written beside its place under another name, then renamed; what a failed
 *     run began is removed. In a build directory manifest.json is removed first and written last,
 *     so that a directory between two states has none; sim refuses such a directory.
 *     What could not be opened takes nothing: who writes need not ask.
 * example: cli_out o; cli_out_open(c, &o, "x.json"); mlo_write_json(m, cli_out_sink, &o);
 *     cli_out_close(c, &o);
 */

/* ---- reading -------------------------------------------------------------- */

/* One open source; the first one of a handle is the model itself, which may be reached through a
 * symlink. */
typedef struct {
    int fd;
} cli_source;

/* Was a call interrupted, so that it is to be made again? */
static int cli_again(ssize_t r) { return r < 0 && errno == EINTR; }

/* How much of what is left a call is asked for: some take no more than 2 GB. */
static size_t cli_at_once(size_t left) {
    const size_t most = (size_t)1 << 30;
    return left < most ? left : most;
}

static void *cli_open(void *user, const char *path, uint64_t *size) {
    int *opened = (int *)user;
    int follow = !(*opened)++;
    struct stat st;
    cli_source *s = (cli_source *)malloc(sizeof *s);
    if (!s) return NULL;
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));
    if (s->fd >= 0 && !fstat(s->fd, &st) && S_ISREG(st.st_mode)) {
        *size = (uint64_t)st.st_size;
        return s;
    }
    if (s->fd >= 0) close(s->fd);
    free(s);
    return NULL;
}

static size_t cli_read(void *user, void *file, uint64_t offset, void *to, size_t n) {
    size_t done = 0;
    (void)user;
    while (done < n) {
        ssize_t got = pread(((cli_source *)file)->fd, (char *)to + done, cli_at_once(n - done),
            (off_t)(offset + done));
        if (cli_again(got)) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}

/* A view of a file; pages that are written to become copies. What was cut off since the file was opened
 * cannot be viewed: reading says so. */
static void *cli_map(void *user, void *file, uint64_t offset, size_t n) {
    const int fd = ((cli_source *)file)->fd;
    const size_t skip = (size_t)(offset % (uint64_t)sysconf(_SC_PAGESIZE));
    struct stat st;
    (void)user;
    if (fstat(fd, &st) || (uint64_t)st.st_size < offset + n) return NULL;
    char *p = (char *)mmap(NULL, n + skip, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd,
        (off_t)(offset - skip));
    return p == MAP_FAILED ? NULL : p + skip;
}

static void cli_unmap(void *user, void *data, size_t n) {
    const size_t skip = (size_t)((uintptr_t)data % (uintptr_t)sysconf(_SC_PAGESIZE));
    (void)user;
    munmap((char *)data - skip, n + skip);
}

/* Whole pages between the ends; what is beside them may be in use. */
static void cli_forget(void *user, void *data, size_t n) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t skip = (page - (uintptr_t)data % page) % page;
    (void)user;
    if (n >= skip + page) madvise((char *)data + skip, (n - skip) / page * page, MADV_DONTNEED);
}

static void cli_close(void *user, void *file) {
    (void)user;
    close(((cli_source *)file)->fd);
    free(file);
}

static void cli_warn(void *user, const char *line) {
    (void)user;
    cli_tick_clear();
    fprintf(stderr, "%s\n", line);
}

/* Memory: what a large model fills lies on large pages where the system has them (Linux). A graph
 * of 16,000 nodes spreads over 60 MB, and walking it costs more in page faults and address
 * translation than in arithmetic. No block is aligned: one that is freed could not be had again for
 * the next of its size. */
enum { CLI_HUGE = 2 << 20 };
static void *cli_alloc(void *user, size_t bytes) {
    (void)user;
    char *p = (char *)malloc(bytes);
#ifdef MADV_HUGEPAGE
    const size_t skip = (CLI_HUGE - (uintptr_t)p % CLI_HUGE) % CLI_HUGE;
    if (p && bytes >= CLI_HUGE + skip)
        madvise(p + skip, (bytes - skip) / CLI_HUGE * CLI_HUGE, MADV_HUGEPAGE);
#endif
    return p;
}
static void cli_release(void *user, void *block) {
    (void)user;
    free(block);
}

/* Pieces of work. */
enum { CLI_THREADS = 8 };
typedef struct cli_pieces {
    void (*piece)(void *of, int k);
    void *of;
    int n;
    int next; /* the piece that is taken next */
    int done;
    struct cli_pieces *behind; /* other work */
} cli_pieces;

/* Who takes them: whoever brings work, and threads that stay, as to begin one costs more than many a piece. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t comes; /* work */
    pthread_cond_t over; /* some */
    cli_pieces *first;
    int began; /* 1: threads were asked for */
    int ends; /* 1: they are to end */
    pthread_t thread[CLI_THREADS];
    int threads;
} cli_workers = { .lock = PTHREAD_MUTEX_INITIALIZER,
    .comes = PTHREAD_COND_INITIALIZER,
    .over = PTHREAD_COND_INITIALIZER };

/* Does pieces until all are taken. The lock is held, but while one is done. */
static void cli_pieces_take(cli_pieces *w) {
    while (w->next < w->n) {
        const int k = w->next++;
        pthread_mutex_unlock(&cli_workers.lock);
        w->piece(w->of, k);
        pthread_mutex_lock(&cli_workers.lock);
        if (++w->done == w->n) pthread_cond_broadcast(&cli_workers.over);
    }
}

static void *cli_worker(void *user) {
    pthread_mutex_lock(&cli_workers.lock);
    while (!cli_workers.ends) {
        cli_pieces *w = cli_workers.first;
        while (w && w->next == w->n) w = w->behind;
        if (w)
            cli_pieces_take(w);
        else
            pthread_cond_wait(&cli_workers.comes, &cli_workers.lock);
    }
    pthread_mutex_unlock(&cli_workers.lock);
    return user;
}

/* One less than there are processors. The lock is held. */
static void cli_workers_begin(void) {
    const long most = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    cli_workers.began = 1;
    while (cli_workers.threads < CLI_THREADS && cli_workers.threads < most
        && !pthread_create(&cli_workers.thread[cli_workers.threads], NULL, cli_worker, NULL))
        cli_workers.threads++;
}

/* All work is done: threads end. */
static void cli_workers_end(void) {
    pthread_mutex_lock(&cli_workers.lock);
    cli_workers.ends = 1;
    pthread_cond_broadcast(&cli_workers.comes);
    pthread_mutex_unlock(&cli_workers.lock);
    while (cli_workers.threads) pthread_join(cli_workers.thread[--cli_workers.threads], NULL);
}

static void cli_crew(void *user, void (*piece)(void *of, int k), void *of, int n) {
    cli_pieces w = { piece, of, n, 0, 0, NULL }, **at = &cli_workers.first;
    (void)user;
    pthread_mutex_lock(&cli_workers.lock);
    if (!cli_workers.began) cli_workers_begin();
    w.behind = cli_workers.first;
    cli_workers.first = &w;
    pthread_cond_broadcast(&cli_workers.comes);
    cli_pieces_take(&w);
    while (w.done < w.n) pthread_cond_wait(&cli_workers.over, &cli_workers.lock);
    while (*at != &w) at = &(*at)->behind;
    *at = w.behind;
    pthread_mutex_unlock(&cli_workers.lock);
}

/* A handle of mlo's on POSIX files; its warnings go to `warn`. *opened must outlive it. */
static mlo *cli_handle(int *opened, void (*warn)(void *user, const char *line)) {
    mlo_desc d;
    memset(&d, 0, sizeof d);
    d.user = opened;
    d.alloc = cli_alloc;
    d.release = cli_release;
    d.warn = warn;
    d.open = cli_open;
    d.read = cli_read;
    d.close = cli_close;
    d.map = cli_map;
    d.unmap = cli_unmap;
    d.forget = cli_forget;
    d.crew = cli_crew;
    /* (a handle without warnings works beside another one) */
    if (warn && isatty(STDERR_FILENO)) d.progress = cli_tick;
    *opened = 0;
    return mlo_open(&d);
}

typedef struct {
    char *data;
    size_t n;
} cli_bytes;

/* All of a file descriptor. `bytes` is NUL-terminated for convenience. */
static int cli_slurp_fd(cli *c, int fd, const char *name, cli_bytes *to) {
    size_t room = 1 << 16;
    to->n = 0;
    if (!(to->data = (char *)malloc(room + 1)))
        return cli_fail(c, MLO_E_MEMORY, name, "no memory to read it");
    for (;;) {
        ssize_t got = read(fd, to->data + to->n, room - to->n);
        if (cli_again(got)) continue;
        if (got < 0) return cli_fail(c, MLO_E_IO, name, "%s", strerror(errno));
        if (!got) break;
        to->n += (size_t)got;
        if (to->n < room) continue;
        char *more = room > SIZE_MAX / 4 ? NULL : (char *)realloc(to->data, 2 * room + 1);
        if (!more)
            return cli_fail(c, MLO_E_MEMORY, name, "no memory for more than %zu bytes", room);
        to->data = more;
        room *= 2;
    }
    to->data[to->n] = 0;
    return 0;
}

/* Why a path is no readable plain file; 0 when it is one. */
static int cli_plain(cli *c, const char *path) {
    struct stat st;
    if (stat(path, &st)) return cli_fail(c, MLO_E_IO, path, "%s", strerror(errno));
    if (S_ISDIR(st.st_mode)) return cli_fail(c, MLO_E_IO, path, "is a directory; give a file");
    if (!S_ISREG(st.st_mode))
        return cli_fail(c, MLO_E_IO, path, "is not a plain file; pipe it in: mlo .. - < %s", path);
    return access(path, R_OK) ? cli_fail(c, MLO_E_IO, path, "%s", strerror(errno)) : 0;
}

static int cli_slurp(cli *c, const char *path, cli_bytes *to) {
    memset(to, 0, sizeof *to);
    if (cli_plain(c, path)) return cli_failed(c);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cli_fail(c, MLO_E_IO, path, "%s", strerror(errno));
    cli_slurp_fd(c, fd, path, to);
    close(fd);
    return cli_failed(c);
}

/* ---- one output ----------------------------------------------------------- */

/* What is written at once. */
typedef struct {
    int fd;
    int error; /* errno of what failed; 0: nothing did */
    char *bytes;
    size_t n; /* bytes */
} cli_block;

/* An open output. While one of a file's two buffers is filled, a thread writes the other. */
typedef struct {
    cli *c;
    const char *path; /* NULL: stdout */
    char temp[PATH_MAX]; /* the name under which a file is written */
    int fd;
    int error; /* errno of what failed; 0: nothing did */
    char *buffer; /* is being filled */
    char *other; /* is being written */
    size_t n; /* bytes in buffer */
    cli_block block; /* what the writer is given */
    pthread_t writer;
    int writes; /* 1: the writer is at work on block */
    uint64_t written; /* bytes that are, or are handed to the writer */
} cli_out;

enum { CLI_BUFFER = 1 << 20 };

/* the file that is being written, for whom a signal reaches (sim) */
static char cli_unfinished[PATH_MAX];

static int cli_out_open(cli *c, cli_out *o, const char *path) {
    struct stat st;
    memset(o, 0, sizeof *o);
    o->c = c;
    o->fd = -1;
    o->error = EBADF; /* until it is open: nothing is written */
    o->path = path && strcmp(path, "-") ? path : NULL;
    o->buffer = (char *)malloc(CLI_BUFFER);
    o->other = (char *)malloc(CLI_BUFFER);
    if (!o->buffer || !o->other) return cli_fail(c, MLO_E_MEMORY, path, "no memory");
    if (!o->path) {
        o->fd = STDOUT_FILENO;
        o->error = 0;
        return 0;
    }
    int there = !stat(path, &st);
    if (there && S_ISDIR(st.st_mode))
        return cli_fail(c, MLO_E_IO, path, "is a directory; give a file name");
    /* /dev/null, a FIFO: written to as they are */
    if (there && !S_ISREG(st.st_mode))
        snprintf(o->temp, sizeof o->temp, "%s", "");
    else if (snprintf(o->temp, sizeof o->temp, "%s.mlo-%ld", path, (long)getpid())
        >= (int)sizeof o->temp)
        return cli_fail(c, MLO_E_IO, path, "the name is too long");
    memcpy(cli_unfinished, o->temp, sizeof cli_unfinished);
    o->fd = *o->temp ? open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)
                     : open(path, O_WRONLY | O_CLOEXEC);
    if (o->fd < 0) {
        int e = errno;
        *o->temp = 0;
        return cli_fail(c, MLO_E_IO, path, "cannot be written: %s", strerror(e));
    }
    o->error = 0;
    return 0;
}

/* The cause, recorded before mlo hears that its sink failed. */
static void cli_out_failed(cli_out *o) {
    if (!o->path) o->c->stdout_broken = 1;
    cli_fail(o->c, MLO_E_IO, o->path ? o->path : "stdout", "%s", strerror(o->error));
}

static void *cli_block_write(void *user) {
    cli_block *b = (cli_block *)user;
    for (size_t done = 0; !b->error && done < b->n;) {
        ssize_t w = write(b->fd, b->bytes + done, b->n - done);
        if (cli_again(w)) continue;
        if (w < 0) b->error = errno;
        if (w > 0) done += (size_t)w;
    }
    return NULL;
}

/* The block that was handed over is written, or is not to be. */
static void cli_out_wait(cli_out *o) {
    if (o->writes) pthread_join(o->writer, NULL);
    o->writes = 0;
    if (o->error || !o->block.error) return;
    o->error = o->block.error;
    cli_out_failed(o);
}

static void cli_out_flush(cli_out *o) {
    const cli_block b = { o->fd, 0, o->buffer, o->n };
    cli_out_wait(o);
    o->n = 0;
    if (o->error) return;
    o->block = b;
    o->written += b.n;
    o->buffer = o->other;
    o->other = b.bytes;
    o->writes = o->path && b.n == CLI_BUFFER
        && !pthread_create(&o->writer, NULL, cli_block_write, &o->block);
    if (o->writes) return;
    cli_block_write(&o->block);
    cli_out_wait(o);
}

static int cli_out_put(cli_out *o, const void *bytes, size_t n) {
    const char *p = (const char *)bytes;
    while (n && !o->error) {
        size_t step = CLI_BUFFER - o->n < n ? CLI_BUFFER - o->n : n;
        memcpy(o->buffer + o->n, p, step);
        o->n += step;
        p += step;
        n -= step;
        if (o->n == CLI_BUFFER) cli_out_flush(o);
    }
    return o->error;
}
static int cli_out_sink(void *user, const char *file, const void *bytes, size_t n) {
    (void)file;
    return cli_out_put((cli_out *)user, bytes, n);
}
static int cli_out_text(cli_out *o, const char *s) { return cli_out_put(o, s, strlen(s)); }

/* Finishes: what went well appears under its name, the rest disappears. */
static int cli_out_close(cli *c, cli_out *o) {
    if (o->fd >= 0 && !cli_failed(c)) cli_out_flush(o);
    if (o->writes) cli_out_wait(o);
    if (o->fd >= 0 && o->path && close(o->fd) && !o->error) {
        o->error = errno;
        cli_out_failed(o);
    }
    free(o->buffer);
    free(o->other);
    o->buffer = o->other = NULL;
    o->fd = -1;
    if (*o->temp && !cli_failed(c) && rename(o->temp, o->path))
        cli_fail(c, MLO_E_IO, o->path, "cannot be written: %s", strerror(errno));
    if (*o->temp && cli_failed(c)) unlink(o->temp);
    *cli_unfinished = 0;
    if (!o->path && o->written && cli_failed(c)) c->stdout_begun = 1;
    return cli_failed(c);
}

/* A whole text as a file. */
static int cli_write_file(cli *c, const char *path, const void *bytes, size_t n) {
    cli_out o;
    cli_out_open(c, &o, path);
    cli_out_put(&o, bytes, n);
    return cli_out_close(c, &o);
}

/* A JSON value as a line of its own; it is deleted. */
static int cli_write_json(cli *c, const char *path, cJSON *value) {
    cli_out o;
    char *text = cJSON_PrintUnformatted(value);
    cJSON_Delete(value);
    if (!text) return cli_fail(c, MLO_E_MEMORY, path, "no memory");
    cli_out_open(c, &o, path);
    cli_out_text(&o, text);
    cli_out_text(&o, "\n");
    cJSON_free(text);
    return cli_out_close(c, &o);
}

/* ---- a binary model, with a data file beside it when it is too long for one ---- */

typedef struct {
    cli_out *model;
    cli_out *data; /* the tensors beside it */
} cli_pair;

static int cli_pair_sink(void *user, const char *file, const void *bytes, size_t n) {
    cli_pair *p = (cli_pair *)user;
    return cli_out_put(*file && p->data ? p->data : p->model, bytes, n);
}

static int cli_write_onnx(cli *c, mlo *m, const char *path) {
    cli_out model, data;
    cli_pair pair = { &model, NULL };
    char name[PATH_MAX];
    int to_file = path && strcmp(path, "-");
    if (to_file && snprintf(name, sizeof name, "%s.data", path) < (int)sizeof name) {
        const char *slash = strrchr(name, '/');
        mlo_set(m, "data-file", slash ? slash + 1 : name);
        if (cli_out_open(c, &data, name)) {
            cli_out_close(c, &data);
            return cli_failed(c);
        }
        pair.data = &data;
    }
    cli_out_open(c, &model, path);
    mlo_write_onnx(m, cli_pair_sink, &pair);
    if (pair.data && !data.written && !data.n) { /* it fitted into one file */
        close(data.fd);
        unlink(data.temp);
        free(data.buffer);
        free(data.other);
    } else if (pair.data)
        cli_out_close(c, &data);
    return cli_out_close(c, &model);
}

/* ---- a directory ---------------------------------------------------------- */

static int cli_mkdirs(const char *path) {
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (char *p = part + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            if (mkdir(part, 0777) && errno != EEXIST) return -1;
            *p = '/';
        }
    return mkdir(part, 0777) && errno != EEXIST ? -1 : 0;
}

/* A build directory on its way: it is written under another name, then moved. */
typedef struct {
    cli *c;
    const char *path;
    char temp[PATH_MAX]; /* where it is written */
    char open[256]; /* the file being written */
    cli_out out;
    int writing; /* 1: out is open */
    char **file; /* names, in the order of writing */
    size_t n;
    cli_bytes manifest; /* its text */
} cli_tree;

static int cli_tree_open(cli *c, cli_tree *t, const char *path) {
    struct stat st;
    memset(t, 0, sizeof *t);
    t->c = c;
    t->path = path;
    char clean[PATH_MAX];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= sizeof clean - 32) return cli_fail(c, MLO_E_IO, path, "the name is too long");
    memcpy(clean, path, n);
    clean[n] = 0;
    if (!stat(path, &st) && access(path, W_OK | X_OK))
        return cli_fail(c, MLO_E_IO, path, "cannot be written: %s", strerror(errno));
    if (!strcmp(clean, ".") || !strcmp(clean, "..") || strlen(clean) < 1
        || (n > 2 && !strcmp(clean + n - 3, "/..")))
        snprintf(t->temp, sizeof t->temp, "%.*s/.mlo-%ld", (int)n, clean, (long)getpid());
    else
        snprintf(t->temp, sizeof t->temp, "%.*s.mlo-%ld", (int)n, clean, (long)getpid());
    if (cli_mkdirs(t->temp)) {
        int e = errno;
        *t->temp = 0;
        return cli_fail(c, MLO_E_IO, path, "cannot be made: %s", strerror(e));
    }
    return 0;
}

static int cli_tree_end_file(cli_tree *t) {
    if (!t->writing) return 0;
    t->writing = 0;
    return cli_out_close(t->c, &t->out);
}

static int cli_tree_begin_file(cli_tree *t, const char *file) {
    char *slash;
    char *path = (char *)malloc(strlen(t->temp) + strlen(file) + 2);
    char **list = (char **)realloc(t->file, (t->n + 1) * sizeof *list);
    if (list) t->file = list;
    if (!path || !list) {
        free(path);
        return cli_fail(t->c, MLO_E_MEMORY, file, "no memory");
    }
    sprintf(path, "%s/%s", t->temp, file);
    t->file[t->n++] = path;
    slash = strrchr(path, '/');
    *slash = 0;
    int r = cli_mkdirs(path);
    *slash = '/';
    if (r) return cli_fail(t->c, MLO_E_IO, path, "cannot be made: %s", strerror(errno));
    snprintf(t->open, sizeof t->open, "%s", file);
    t->writing = 1;
    return cli_out_open(t->c, &t->out, path);
}

static int cli_tree_sink(void *user, const char *file, const void *bytes, size_t n) {
    cli_tree *t = (cli_tree *)user;
    if ((!t->writing || strcmp(t->open, file))
        && (cli_tree_end_file(t) || cli_tree_begin_file(t, file)))
        return 1;
    if (!strcmp(file, "manifest.json")) {
        char *more = (char *)realloc(t->manifest.data, t->manifest.n + n + 1);
        if (!more) return 1;
        memcpy(more + t->manifest.n, bytes, n);
        t->manifest.data = more;
        t->manifest.n += n;
        more[t->manifest.n] = 0;
    }
    return cli_out_put(&t->out, bytes, n);
}

/* Removes files of `dir` that the old manifest lists and the new one does not: a directory holds
 * one state. */
static void cli_tree_prune(cli_tree *t) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/manifest.json", t->path) >= (int)sizeof path) return;
    cli_bytes old = { NULL, 0 };
    /* an unreadable old manifest is nobody's failure */
    mlo *keep = t->c->m;
    int opened;
    t->c->m = cli_handle(&opened, cli_warn);
    int r = !t->c->m || cli_slurp(t->c, path, &old);
    mlo_close(t->c->m);
    t->c->m = keep;
    unlink(path);
    cJSON *f;
    cJSON *json = r ? NULL : cJSON_ParseWithLength(old.data, old.n);
    cJSON *files = cJSON_GetObjectItemCaseSensitive(json, "files");
    cJSON_ArrayForEach(f, files) {
        size_t k = 0;
        if (!f->string || f->string[0] == '/' || strstr(f->string, "..")) continue;
        while (k < t->n && strcmp(t->file[k] + strlen(t->temp) + 1, f->string)) k++;
        if (k == t->n
            && snprintf(path, sizeof path, "%s/%s", t->path, f->string) < (int)sizeof path)
            unlink(path);
    }
    cJSON_Delete(json);
    free(old.data);
}

static int cli_tree_move(cli_tree *t) {
    struct stat st;
    /* nothing there yet: all at once */
    if (stat(t->path, &st) && !rename(t->temp, t->path)) {
        *t->temp = 0;
        return 0;
    }
    cli_tree_prune(t);
    for (size_t i = 0; i < t->n; i++) {
        char path[PATH_MAX], *slash;
        if (snprintf(path, sizeof path, "%s/%s", t->path, t->file[i] + strlen(t->temp) + 1)
            >= (int)sizeof path)
            return cli_fail(t->c, MLO_E_IO, t->path, "the name is too long");
        slash = strrchr(path, '/');
        *slash = 0;
        int r = cli_mkdirs(path);
        *slash = '/';
        if (r || rename(t->file[i], path))
            return cli_fail(t->c, MLO_E_IO, path, "cannot be written: %s", strerror(errno));
    }
    return 0;
}

/* Empty folders, deepest first; files that are still there belong to a run that failed. */
static void cli_tree_clean(cli_tree *t) {
    for (size_t i = 0; i < t->n; i++) unlink(t->file[i]);
    for (size_t i = t->n; i--;) {
        char *slash = strrchr(t->file[i], '/');
        *slash = 0;
        rmdir(t->file[i]);
        *slash = '/';
    }
    if (*t->temp) rmdir(t->temp);
    for (size_t i = 0; i < t->n; i++) free(t->file[i]);
    free(t->file);
    t->file = NULL;
    t->n = 0;
}

static int cli_tree_close(cli_tree *t) {
    cli_tree_end_file(t);
    if (!cli_failed(t->c)) cli_tree_move(t);
    cli_tree_clean(t);
    return cli_failed(t->c);
}
