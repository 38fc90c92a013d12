/* emit, bench: tb/mlo_tb.v, a self-checking bench that Icarus and Verilator run alike, and the
 * scripts around it. Their texts are in share/; what is here fills their holes.
 *
 * The bench writes the registers as a host would, plays tb/input.hex, compares every word with
 * tb/golden.hex, and ends with one line: MLO PASS .. and $finish, or MLO FAIL .. and $fatal. All
 * its choices (stalls, memory latency) come from seeded generators, so the two simulators see the
 * same cycles. Its plusargs: input, golden, mask, params (files), beats, mask_beats, iterations,
 * frames_in_flight, jobs (how many) and orders (a file), seed, stall (and stall_source, stall_mask,
 * stall_sink, stall_memory, stall_host: one of them alone), latency, rate, fault (this beat is
 * answered with an error), timeout, probe, trace, window (of 96 cycles from this one on the trace has
 * every stream), wave, progress (a line MLO AT cycle, every so many cycles). Every port
 * has its judge (mlo_sim_check_*.v): a breach of AXI is a line PROTOCOL .., and a failure. When
 * nothing moves any more, lines MLO EDGE, LOOP, PARAM and MEMORY tell where each stream stands;
 * sim finds the cause in them (cli/wait.c). */

/* A stream that +trace=FILE watches. */
typedef struct {
    char is; /* 'O', 'I', 'P': a kernel's output, input, parameter memory */
    int kernel; /* its number */
    const char *name; /* its name */
    const char *port;
    int64_t beats; /* of a token, or of a loading */
} mlo_traced;

typedef struct {
    mlo_emitter *e;
    mlo_traced *stream; /* first the outputs, then inputs and parameter memories */
    int n;
} mlo_bench;

/* How a word is printed: Verilator takes 8,192 bits at once. To `format` its %h, to `values` what
 * they print, the high bits first, each behind a comma. */
static void mlo_tb_print(mlo_text *format, mlo_text *values, const char *word, int64_t bits) {
    enum { MOST = 8192 };
    for (int64_t to = bits, from; to > 0; to = from) {
        from = (to - 1) / MOST * MOST;
        mlo_puts(format, "%h");
        mlo_printf(values, ", %s", word);
        if (bits > MOST) mlo_printf(values, "[%lld:%lld]", (long long)to - 1, (long long)from);
    }
}

/* Every kernel's output beats, in order, into the probe file: "NAME HEX". */
static void mlo_tb_probes(void *user) {
    mlo_emitter *e = ((mlo_bench *)user)->e;
    for (int i = 0; i < e->c->n_element; i++) {
        const mlo_element *el = &e->c->element[i];
        if (!el->kernel) continue;
        mlo_text format = { e->m, NULL, 0, 0 }, values = { e->m, NULL, 0, 0 };
        mlo_tb_print(&format, &values,
            mlo_or_empty(mlo_format(e->m, "u_top.u_core.%s_tdata", el->name)),
            (int64_t)el->unit.out.lanes * el->unit.out.bits);
        mlo_line(e,
            "        if (u_top.u_core.%s_tvalid && u_top.u_core.%s_tready) $fwrite(probe, \"%s "
            "%s\\n\"%s);",
            el->name, el->name, el->name, mlo_or_empty(format.text), mlo_or_empty(values.text));
        mlo_text_free(&format);
        mlo_text_free(&values);
    }
}

/* The bench's line of a word that differs: the index, then both words. */
static void mlo_tb_differs(void *user) {
    mlo_emitter *e = ((mlo_bench *)user)->e;
    mlo_text expected = { e->m, NULL, 0, 0 }, got = { e->m, NULL, 0, 0 },
             values = { e->m, NULL, 0, 0 };
    mlo_tb_print(&expected, &values, "error_expected", mlo_out_bits(e) + 1);
    mlo_tb_print(&got, &values, "error_got", mlo_out_bits(e) + 1);
    mlo_line(e, "            $display(\"MLO FAIL word %%0d expected %s got %s\", error_index%s);",
        mlo_or_empty(expected.text), mlo_or_empty(got.text), mlo_or_empty(values.text));
    mlo_text_free(&expected);
    mlo_text_free(&got);
    mlo_text_free(&values);
}

static void mlo_tb_watch(mlo_traced *list, int *n, char is, int kernel, const char *name,
    const char *port, int64_t beats) {
    const mlo_traced one = { is, kernel, name, port, beats };
    list[(*n)++] = one;
}

static int mlo_tb_streams(const mlo_core *c, mlo_traced *list) {
    int n = 0, kernel = 0;
    for (int i = 0; i < c->n_element; i++) {
        const mlo_port *y = &c->element[i].unit.out;
        if (c->element[i].kernel)
            mlo_tb_watch(list, &n, 'O', n, c->element[i].name, y->port, y->channels / y->lanes);
    }
    for (int i = 0; i < c->n_element; i++)
        if (c->element[i].kernel) {
            const mlo_unit *u = &c->element[i].unit;
            for (int k = 0; k < u->n_in; k++)
                mlo_tb_watch(list, &n, 'I', kernel, c->element[i].name, u->in[k].port,
                    u->in[k].channels / u->in[k].lanes);
            for (int k = 0; k < u->n_memory; k++)
                mlo_tb_watch(list, &n, 'P', kernel, c->element[i].name, u->memory[k].port,
                    mlo_max(1, u->blocks) * mlo_memory_beats(&u->memory[k], c->axi_bits));
            kernel++;
        }
    return n;
}

static void mlo_tb_trace_beats(void *user) {
    const mlo_bench *b = (const mlo_bench *)user;
    for (int i = b->n; i--;)
        mlo_line(b->e, "        32'd%lld%s", (long long)b->stream[i].beats, i ? "," : "};");
}
static void mlo_tb_trace_signal(const mlo_bench *b, const char *signal) {
    for (int i = b->n; i--;)
        mlo_line(b->e, "        u_top.u_core.u_%s.%s_%s%s", b->stream[i].name, b->stream[i].port,
            signal, i ? "," : "};");
}
static void mlo_tb_trace_valid(void *user) {
    mlo_tb_trace_signal((const mlo_bench *)user, "tvalid");
}
static void mlo_tb_trace_ready(void *user) {
    mlo_tb_trace_signal((const mlo_bench *)user, "tready");
}
/* The file begins with a list of the streams, "O|I|P stream kernel port", and ends with "B cycle":
 * when the first beat came in. */
static void mlo_tb_trace_streams(void *user) {
    const mlo_bench *b = (const mlo_bench *)user;
    for (int i = 0; i < b->n; i++)
        mlo_line(b->e, "        $fwrite(trace, \"%c %d %d %s\\n\");", b->stream[i].is, i,
            b->stream[i].kernel, b->stream[i].port);
}

/* The bus on which edge k begins: its own output of a fork, where several read. */
static const char *mlo_edge_start(mlo *m, const mlo_core *c, int k) {
    const mlo_edge *g = &c->edge[k];
    int readers = 0, mine = 0;
    for (int i = 0; i < c->n_edge; i++)
        if (c->edge[i].from == g->from && c->edge[i].from_port == g->from_port) {
            mine += i < k;
            readers++;
        }
    const char *bus = mlo_source_bus(m, c, g->from, g->from_port);
    return readers > 1 ? mlo_format(m, "%s_f%d", bus, mine) : bus;
}

/* How full each FIFO ever was: MLO FIFO name, peak and depth in beats, beats of a token. */
static void mlo_tb_peaks(void *user) {
    mlo_emitter *e = ((mlo_bench *)user)->e;
    for (int k = 0; k < e->c->n_edge; k++)
        if (e->c->edge[k].fifo) {
            const char *bus = mlo_edge_bus(e->m, e->c, k);
            mlo_line(e,
                "    integer peak_%s = 0;\n    always @(u_top.u_core.%s_level) if "
                "(u_top.u_core.%s_level > "
                "peak_%s) peak_%s = u_top.u_core.%s_level;",
                bus, bus, bus, bus, bus, bus);
        }
}
static void mlo_tb_fifos(void *user) {
    mlo_emitter *e = ((mlo_bench *)user)->e;
    const mlo_core *c = e->c;
    for (int k = 0; k < c->n_edge; k++)
        if (c->edge[k].fifo) {
            const char *bus = mlo_edge_bus(e->m, c, k);
            mlo_line(e,
                "        $display(\"MLO FIFO %s %%0d %%0d %lld\", peak_%s, "
                "u_top.u_core.u_%s_fifo.DEPTH);",
                bus, (long long)(c->edge[k].channels / c->edge[k].lanes_from), bus, bus);
        }
}

/* The bus on which edge k begins, its FIFO, the bus on which it ends. MLO EDGE from to FIFO, valid
 * and ready where it begins, beats in its FIFO and its depth (0 0: none), valid and ready where it
 * ends. Nodes: the elements, the doors, both halves of the loop control, the world. */
static void mlo_tb_edges(void *user) {
    mlo_emitter *e = ((mlo_bench *)user)->e;
    const mlo_core *c = e->c;
    for (int k = 0; k < c->n_edge; k++) {
        const mlo_edge *g = &c->edge[k];
        const char *from = g->from == MLO_OUTSIDE ? "loop_in" : c->element[g->from].name;
        const char *to = g->to == MLO_OUTSIDE ? "loop_out" : c->element[g->to].name;
        const char *start = mlo_edge_start(e->m, c, k), *bus = mlo_edge_bus(e->m, c, k);
        const char *fifo = g->fifo
            ? mlo_format(
                  e->m, "u_top.u_core.u_%s_fifo.level, u_top.u_core.u_%s_fifo.DEPTH", bus, bus)
            : "0, 0";
        mlo_line(e,
            "        $display(\"MLO EDGE %s %s %s %%b %%b %%0d %%0d %%b %%b\", "
            "u_top.u_core.%s_tvalid, "
            "u_top.u_core.%s_tready, %s, u_top.u_core.%s_tvalid, u_top.u_core.%s_tready);",
            from, to, bus, start, start, fifo, bus, bus);
    }
}

static void mlo_tb_params(void *user) {
    mlo_emitter *e = ((mlo_bench *)user)->e;
    int n = 0;
    for (int i = 0; i < e->c->n_element; i++) {
        const mlo_element *el = &e->c->element[i];
        const char *from = mlo_is_block(el) ? mlo_format(e->m, "%s_", el->name) : "";
        for (int k = 0; k < el->unit.n_memory; k++) {
            const int at = mlo_is_block(el) ? k : n++;
            mlo_line(e,
                "        $display(\"MLO PARAM %s %s %%b %%b\", u_top.u_core.%sp_tvalid[%d], "
                "u_top.u_core.%sp_tready[%d]);",
                el->name, el->unit.memory[k].port, from, at, from, at);
        }
    }
}

/* What looks into the core. */
static void mlo_tb_inside(void *user) {
    mlo_bench *b = (mlo_bench *)user;
    mlo *m = b->e->m;
    const mlo_core *c = b->e->c;
    const mlo_hole holes[] = { { "TOKEN_BEATS", mlo_integer(m, c->channels / c->lanes), NULL },
        { "MASK", c->masked ? "" : NULL, NULL }, { "REPLAY", c->replay >= 0 ? "" : NULL, NULL },
        { "REPLAY_NAME", c->replay >= 0 ? c->element[c->replay].name : "", NULL },
        { "BEATS_TOP", mlo_integer(m, 32 * b->n - 1), NULL },
        { "STREAMS_TOP", mlo_integer(m, b->n - 1), NULL },
        { "STREAMS", mlo_integer(m, b->n), NULL }, { "PEAKS", NULL, mlo_tb_peaks },
        { "FIFOS", NULL, mlo_tb_fifos }, { "EDGES", NULL, mlo_tb_edges },
        { "PARAMS", NULL, mlo_tb_params }, { "PROBES", NULL, mlo_tb_probes },
        { "TRACE_BEATS", NULL, mlo_tb_trace_beats }, { "TRACE_VALID", NULL, mlo_tb_trace_valid },
        { "TRACE_READY", NULL, mlo_tb_trace_ready },
        { "TRACE_STREAMS", NULL, mlo_tb_trace_streams }, { NULL, NULL, NULL } };
    mlo_share_copy(&b->e->t, b->e->unrolled ? "tb/unrolled.v" : "tb/rolled.v", holes, b);
}

static int mlo_emit_tb(mlo_emitter *e, int64_t frames) {
    mlo *m = e->m;
    const mlo_core *c = e->c;
    /* of the top's streams */
    const int64_t token = mlo_in_beats(e), made = mlo_out_beats(e);
    const int64_t beats = c->chunk * mlo_max(token, made * mlo_core_times(c));
    mlo_ordered jobs[MLO_BENCH_JOBS];
    const int64_t n_jobs = c->slots ? mlo_bench_orders(c, jobs) : 0;
    const int64_t tokens = n_jobs ? jobs[n_jobs - 1].start + jobs[n_jobs - 1].tokens - jobs[0].start
                                  : c->frames * c->chunk;
    mlo_bench b = { e,
        MLO_NEW_N(m, mlo_traced, MLO_CORE_MOST * (1 + MLO_UNIT_PORTS + MLO_UNIT_MEMORIES)), 0 };
    if (!b.stream) return mlo_failed(m);
    b.n = mlo_tb_streams(c, b.stream);
    const mlo_hole holes[] = {
        { "WORDS", mlo_integer(m, frames * mlo_max(beats, mlo_replay_beats(c))), NULL },
        { "IMAGE", mlo_integer(m, mlo_image_bytes(e) * 8 / c->axi_bits), NULL },
        { "IN", mlo_integer(m, mlo_in_bits(e)), NULL },
        { "OUT", mlo_integer(m, mlo_out_bits(e)), NULL },
        { "DIFFERS", NULL, mlo_tb_differs },
        { "HEAD", mlo_emit_says(e) ? "" : NULL, NULL },
        { "OUT_BEATS",
            mlo_emit_says(e) ? mlo_format(m, "jobs * %d", mlo_emit_best(e))
                : e->tail
                ? mlo_format(m, "beats / %lld * %lld", (long long)c->chunk, (long long)made)
                : c->every     ? mlo_format(m, "beats * iterations")
                : made > token ? mlo_format(m, "beats * %lld", (long long)made)
                               : "beats",
            NULL },
        { "OUT_TOKEN_BEATS", mlo_integer(m, made), NULL },
        { "OUT_TOKENS",
            c->every ? mlo_format(m, "TOKENS * %lld", (long long)c->scan.iterations) : "TOKENS",
            NULL },
        { "AXI", mlo_integer(m, c->axi_bits), NULL },
        { "KERNELS", mlo_integer(m, e->layers * mlo_core_kernels(c)), NULL },
        { "MASKED", mlo_integer(m, c->masked), NULL },
        { "BEATS", mlo_integer(m, tokens * token), NULL },
        { "MASK_BEATS", mlo_integer(m, c->masked ? tokens : 0), NULL },
        { "JOBS", c->slots ? "" : NULL, NULL },
        { "NO_JOBS", c->slots ? NULL : "", NULL },
        { "KV", c->dram ? "" : NULL, NULL },
        { "KV_ROW", mlo_integer(m, mlo_kv_row(c)), NULL },
        { "GIVEN", c->given ? "" : NULL, NULL },
        { "PAST", c->keys > c->chunk ? "" : NULL, NULL },
        { "PAST_TOKENS", mlo_integer(m, c->keys - c->chunk), NULL },
        { "KV_BREACHES", c->dram ? " + breaches_kv_read + breaches_kv_write" : "", NULL },
        { "SLOTS", mlo_integer(m, c->slots), NULL },
        { "DEEPEST", mlo_integer(m, mlo_core_deepest(c)), NULL },
        { "N_JOBS", mlo_integer(m, n_jobs), NULL },
        { "ITERATIONS", mlo_integer(m, c->scan.iterations), NULL },
        { "FRAMES", mlo_integer(m, c->frames), NULL },
        /* a silence no healthy core keeps: a slow one says nothing for a whole iteration */
        { "TIMEOUT",
            mlo_integer(m, 200000 + 4 * mlo_core_interval(c) * (c->chunk + 16) * c->frames), NULL },
        /* the memory that it was folded for */
        { "RATE", mlo_integer(m, c->rate < 256 ? c->rate : 0), NULL },
        { "LATENCY", mlo_integer(m, c->read_latency), NULL },
        { "TOKENS", mlo_integer(m, c->keys), NULL },
        { "TOKEN_BEATS", mlo_integer(m, token), NULL },
        { "MASK", c->masked ? "" : NULL, NULL },
        { "NO_MASK", c->masked ? NULL : "", NULL },
        { "REPLAY", c->replay >= 0 ? "" : NULL, NULL },
        { "NO_REPLAY", c->replay >= 0 ? NULL : "", NULL },
        { "REPLAY_MASK", c->replay_masked ? "" : NULL, NULL },
        { "NO_REPLAY_MASK", c->replay_masked ? NULL : "", NULL },
        { "REPLAY_IO", mlo_integer(m, mlo_replay_bits(c)), NULL },
        { "REPLAY_BEATS", mlo_integer(m, frames * mlo_replay_beats(c)), NULL },
        { "REPLAY_MASK_BEATS", mlo_integer(m, c->replay_masked ? frames * mlo_replay_frame(c) : 0),
            NULL },
        { "REPLAY_TOKENS", mlo_integer(m, mlo_replay_frame(c)), NULL },
        { "REPLAY_TOKEN_BEATS", mlo_integer(m, mlo_port_beats(mlo_replay_port(c))), NULL },
        { "INSIDE", NULL, mlo_tb_inside },
        { NULL, NULL, NULL },
    };
    return mlo_emit_shared(e, "tb/mlo_tb.v", holes, &b);
}

/* ---- scripts -------------------------------------------------------------- */

static void mlo_gtkw_kernels(void *user) {
    mlo_emitter *e = (mlo_emitter *)user;
    for (int l = 0; l < e->layers; l++)
        for (int i = 0; i < e->c->n_element; i++)
            if (e->c->element[i].kernel) {
                const char *name = mlo_copy_name(e, l, e->c->element[i].name);
                const char *bus = mlo_format(e->m, "mlo_tb.u_top.u_core.%s", name);
                mlo_line(e, "@200\n-%s\n@28\n%s_tvalid\n%s_tready\n%s_tuser\n@22\n%s_tdata", name,
                    bus, bus, bus, bus);
            }
}

/* Files there are, for FuseSoC. */
static void mlo_fusesoc_files(mlo_emitter *e, const char *folder, const char *kind, int copied) {
    for (size_t i = 0; i < e->n_done; i++) {
        const char *name = e->done[i].name;
        if (mlo_starts(name, folder) && strstr(name, kind))
            mlo_line(e, copied ? "      - %s: {copyto: %s}" : "      - %s", name, name);
    }
}
static void mlo_fusesoc_rtl(void *user) { mlo_fusesoc_files((mlo_emitter *)user, "rtl/", "", 0); }
static void mlo_fusesoc_tb(void *user) { mlo_fusesoc_files((mlo_emitter *)user, "tb/", ".v", 0); }
static void mlo_fusesoc_words(void *user) {
    mlo_fusesoc_files((mlo_emitter *)user, "tb/", ".hex", 1);
}

/* What drives the core in other tools: GTKWave, make, Vivado, FuseSoC, cocotb. */
static int mlo_emit_scripts(mlo_emitter *e) {
    const mlo_hole kernels[] = { { "KERNELS", NULL, mlo_gtkw_kernels }, { NULL, NULL, NULL } };
    const mlo_hole files[] = { { "VERSION", MLO_VERSION, NULL }, { "RTL", NULL, mlo_fusesoc_rtl },
        { "TB", NULL, mlo_fusesoc_tb }, { "WORDS", NULL, mlo_fusesoc_words },
        { NULL, NULL, NULL } };
    const mlo_hole none[] = { { NULL, NULL, NULL } };
    MLO_TRY(mlo_emit_shared(e, "tb/mlo_top.gtkw", kernels, e));
    MLO_TRY(mlo_emit_shared(e, "Makefile", none, e));
    MLO_TRY(mlo_emit_shared(e, "vivado.tcl", none, e));
    MLO_TRY(mlo_emit_shared(e, "mlo.core", files, e));
    MLO_TRY(mlo_emit_shared(e, "mlo_litex.py", none, e));
    return mlo_emit_shared(e, "cocotb/test_mlo.py", none, e);
}

/* What README.md and the manifest say of time: of a core with caches, that the bench plays jobs. */
static int mlo_emit_predict(mlo_emitter *e) {
    mlo *m = e->m;
    const mlo_core *c = e->c;
    mlo_ordered list[MLO_BENCH_JOBS];
    mlo_prediction p;
    MLO_TRY(mlo_predict_steady(m, c, &p));
    e->cycles = p.cycles;
    e->each = p.interval;
    if (!c->slots) return 0;
    MLO_TRY(
        mlo_predict_orders(m, c, c->scan.iterations, list, mlo_bench_orders(c, list), &p, NULL));
    e->cycles = p.cycles;
    if (c->given) return 0;
    MLO_TRY(mlo_predict_step(m, c, 0, &e->step[0]));
    return mlo_predict_step(m, c, c->chunk - 1, &e->step[1]);
}

/* What keys and values take in their memory. */
static int64_t mlo_kv_bytes(const mlo_core *c) {
    const int64_t rows = c->slots * mlo_core_deepest(c) * 2 * c->keys;
    return rows * mlo_kv_row(c) * c->axi_bits / 8;
}
