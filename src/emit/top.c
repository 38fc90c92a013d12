/* emit, top: rtl/mlo_top.v, rtl/mlo_core.v, and unrolled rtl/mlo_layer.v.
 *
 * in:  a folded core.
 * out: what is fixed is in share/rtl; here are its holes, and the layer: for every edge of the
 *     dataflow graph a fork, a FIFO, a width converter or plain wires, whichever it needs; for every
 *     element an instance.
 *
 * A bus NAME is the wires NAME_tdata, NAME_tvalid, NAME_tready and NAME_tuser. An element puts its
 * tokens on the bus of its own name; the loop's way in is `body`, its way out `result`.
 *
 * invariant: no line depends on what was learned.
 * example: mvu_0 reads bus mvu_0_in0, which comes out of u_mvu_0_in0_width.
 */
/* ---- the layer ------------------------------------------------------------ */

/* Of the stream from around the loop, if there is one (else as if it had a channel): a beat, tokens of a
 * frame, bits of a beat outside, beats of a frame. */
static mlo_port mlo_replay_port(const mlo_core *c) {
    return c->replay < 0 ? mlo_port_make("", 0, 1, 8, 1) : c->element[c->replay].unit.out;
}
static int64_t mlo_replay_frame(const mlo_core *c) {
    return c->replay < 0 ? 0 : c->element[c->replay].site.chunk;
}
static int mlo_replay_bits(const mlo_core *c) {
    return mlo_replay_port(c).lanes * mlo_padded(mlo_replay_port(c).bits);
}
static int64_t mlo_replay_beats(const mlo_core *c) {
    return mlo_replay_frame(c) * mlo_port_beats(mlo_replay_port(c));
}

static void mlo_emit_wires(mlo_emitter *e, const char *bus, int bits) {
    mlo_line(e, "    wire [%d:0] %s_tdata;", bits - 1, bus);
    mlo_line(e, "    wire [2:0] %s_tuser;", bus);
    mlo_line(e, "    wire %s_tvalid, %s_tready;", bus, bus);
}
/* .PORT_tdata(BUS_tdata), ... */
static void mlo_emit_bus(mlo_emitter *e, const char *port, const char *bus, const char *end) {
    mlo_line(e,
        "        .%s_tdata(%s_tdata), .%s_tvalid(%s_tvalid), .%s_tready(%s_tready), "
        ".%s_tuser(%s_tuser)%s",
        port, bus, port, bus, port, bus, port, bus, end);
}

static int mlo_core_kernels(const mlo_core *c) {
    int n = 0;
    for (int i = 0; i < c->n_element; i++) n += c->element[i].kernel != NULL;
    return n;
}
/* What the loader serves: all parameter memories but those of row blocks, whose kernels have
 * readers of their own. */
static int mlo_loaded_memories(const mlo_element *e) {
    return mlo_is_block(e) ? 0 : e->unit.n_memory;
}
static int mlo_core_memories(const mlo_core *c) {
    int n = 0;
    for (int i = 0; i < c->n_element; i++) n += mlo_loaded_memories(&c->element[i]);
    return n;
}
static int mlo_core_readers(const mlo_core *c) {
    int n = 1;
    for (int i = 0; i < c->n_element; i++) n += mlo_is_block(&c->element[i]);
    return n;
}

/* The name of a kernel in manifest and registers; the place of its wires below mlo_core. */
static const char *mlo_copy_name(mlo_emitter *e, int layer, const char *name) {
    return e->unrolled ? mlo_format(e->m, "layer_%d.%s", layer, name) : name;
}

/* What registers, loader and bench have room for. */
static int mlo_emit_copies(mlo_emitter *e) {
    int64_t n = e->c->scan.iterations, kernels = mlo_core_kernels(e->c);
    e->unrolled = mlo_opt(e->m, "unrolled") != NULL;
    if (e->unrolled && n * kernels > 240)
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--unrolled makes %lld kernels of %lld iterations of %lld; there are counters for 240",
            (long long)(n * kernels), (long long)n, (long long)kernels);
    if (e->unrolled && e->c->replay >= 0)
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--unrolled with an encoder's output that every layer reads; leave --unrolled out");
    if (e->unrolled && e->c->slots)
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--unrolled with caches of keys and values, which a loop has; leave --unrolled out");
    if (e->unrolled && e->c->every)
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--unrolled where every layer's tokens leave, as they come round; leave --unrolled "
            "out");
    if (e->unrolled && mlo_core_resident_beats(e->c))
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--unrolled with resident parameters; each copy has its own anyway: leave --memory "
            "out");
    if (e->unrolled && mlo_core_readers(e->c) > 1)
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--unrolled with parameters in row blocks; it is for comparison with a loop: leave "
            "--memory out");
    if (e->c->dram && mlo_kv_step(mlo_kv_keys(e->c)) > e->c->axi_bits)
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "--kv dram: attention takes %d channels of keys a beat, more than %d bits of memory; "
            "give a smaller --simd or a wider --axi-width",
            mlo_kv_keys(e->c)->lanes, e->c->axi_bits);
    if (!mlo_core_memories(e->c))
        return mlo_fail_at(e->m, MLO_E_UNSUPPORTED, NULL,
            "all parameters are in row blocks; the loader needs a kernel whose parameters are not: "
            "give one memory layer");
    e->layers = e->unrolled ? (int)n : 1;
    return 0;
}

/* The wires of reader n's AXI port, a part of what mlo_core.v has of all readers. */
static void mlo_emit_reader(mlo_emitter *e, int n) {
    mlo_line(e,
        "        .m_axi_arid(ar_id[%d]), .m_axi_araddr(ar_addr[%d:%d]), "
        ".m_axi_arlen(ar_len[%d:%d]), .m_axi_arsize(ar_size[%d:%d]), "
        ".m_axi_arburst(ar_burst[%d:%d]),",
        n, 64 * n + 63, 64 * n, 8 * n + 7, 8 * n, 3 * n + 2, 3 * n, 2 * n + 1, 2 * n);
    mlo_line(e,
        "        .m_axi_arvalid(ar_valid[%d]), .m_axi_arready(ar_ready[%d]), .m_axi_rid(1'b0), "
        ".m_axi_rdata(r_data), .m_axi_rresp(r_resp),",
        n, n);
    mlo_line(e,
        "        .m_axi_rlast(r_last), .m_axi_rvalid(r_valid[%d]), .m_axi_rready(r_ready[%d]),", n,
        n);
}

/* The bus an element (or the loop) puts its tokens on. */
static const char *mlo_source_bus(mlo *m, const mlo_core *c, int from, int port) {
    if (from == MLO_OUTSIDE) return "body";
    return c->element[from].kernel ? c->element[from].name
                                   : mlo_format(m, "%s_%d", c->element[from].name, port);
}
/* Edge k's bus at its consumer: behind fork, FIFO and width converter, whichever it has. */
static const char *mlo_edge_bus(mlo *m, const mlo_core *c, int k) {
    const mlo_edge *g = &c->edge[k];
    int readers = 0;
    for (int i = 0; i < c->n_edge; i++)
        readers += c->edge[i].from == g->from && c->edge[i].from_port == g->from_port;
    if (readers == 1 && !g->fifo && g->lanes_from == g->lanes_to && g->to != MLO_OUTSIDE)
        return mlo_source_bus(m, c, g->from, g->from_port);
    if (g->to == MLO_OUTSIDE) return "result";
    return mlo_format(m, "%s_in%d", c->element[g->to].name, g->to_port);
}

/* Fork, where several read. Its outputs are named <source>_f0, _f1, ... */
static void mlo_emit_fork(mlo_emitter *e, const char *bus, int width, int n) {
    mlo_line(e, "    wire [%d:0] %s_fork_tdata;\n    wire [%d:0] %s_fork_tvalid, %s_fork_tready;",
        width + 2, bus, n - 1, bus, bus);
    mlo_line(e, "    mlo_fork #(.WIDTH(%d), .N(%d)) u_%s_fork (", width + 3, n, bus);
    mlo_line(e,
        "        .clk(clk), .rst(core_rst), .s_tdata({%s_tuser, %s_tdata}), .s_tvalid(%s_tvalid), "
        ".s_tready(%s_tready),",
        bus, bus, bus, bus);
    mlo_line(e,
        "        .m_tdata(%s_fork_tdata), .m_tvalid(%s_fork_tvalid), .m_tready(%s_fork_tready));",
        bus, bus, bus);
    for (int i = 0; i < n; i++) {
        const char *out = mlo_format(e->m, "%s_f%d", bus, i);
        mlo_emit_wires(e, out, width);
        mlo_line(e, "    assign {%s_tuser, %s_tdata} = %s_fork_tdata;", out, out, bus);
        mlo_line(e,
            "    assign %s_tvalid = %s_fork_tvalid[%d];\n    assign %s_fork_tready[%d] = "
            "%s_tready;",
            out, bus, i, bus, i, out);
    }
}

/* One edge, from bus `from` on: FIFO, width converter, or plain wires, ending on the consumer's bus. */
static void mlo_emit_edge(mlo_emitter *e, int k, const char *from) {
    const mlo_edge *g = &e->c->edge[k];
    const char *to = mlo_edge_bus(e->m, e->c, k);
    int w = g->lanes_from * g->bits, convert = g->lanes_from != g->lanes_to;
    if (to == from || mlo_eq(to, from)) return;
    if (g->to != MLO_OUTSIDE) mlo_emit_wires(e, to, g->lanes_to * g->bits);
    if (g->fifo) {
        const char *out = convert ? mlo_format(e->m, "%s_q", to) : to;
        long long depth = (long long)(g->fifo * (g->channels / g->lanes_from));
        if (convert) mlo_emit_wires(e, out, w);
        mlo_line(e, "    wire [%d:0] %s_level;", mlo_clog2(depth + 1) - 1, to);
        mlo_line(e, "    mlo_fifo #(.WIDTH(%d), .DEPTH(%lld)) u_%s_fifo (        // %lld tokens",
            w + 3, depth, to, (long long)g->fifo);
        mlo_line(e,
            "        .clk(clk), .rst(core_rst), .s_tdata({%s_tuser, %s_tdata}), "
            ".s_tvalid(%s_tvalid), .s_tready(%s_tready),",
            from, from, from, from);
        mlo_line(e,
            "        .m_tdata({%s_tuser, %s_tdata}), .m_tvalid(%s_tvalid), .m_tready(%s_tready), "
            ".level(%s_level));",
            out, out, out, out, to);
        mlo_line(e, "    wire %s_unused = &{1'b0, %s_level};", to, to);
        from = out;
    }
    if (convert) {
        mlo_line(e,
            "    mlo_width #(.BITS(%d), .IN(%d), .OUT(%d)) u_%s_width (\n        .clk(clk), "
            ".rst(core_rst),",
            g->bits, g->lanes_from, g->lanes_to, to);
        mlo_emit_bus(e, "s_axis", from, ",");
        mlo_emit_bus(e, "m_axis", to, ");");
    } else if (!g->fifo) {
        mlo_line(e, "    assign %s_tdata = %s_tdata;\n    assign %s_tuser = %s_tuser;", to, from,
            to, from);
        mlo_line(e, "    assign %s_tvalid = %s_tvalid;\n    assign %s_tready = %s_tready;", to,
            from, from, to);
    }
}

/* Everything behind one output: fork, then each reader's edge. */
static void mlo_emit_fanout(mlo_emitter *e, int from, int port) {
    const mlo_core *c = e->c;
    int readers[MLO_CORE_MOST], n = 0;
    for (int k = 0; k < c->n_edge && n < MLO_CORE_MOST; k++)
        if (c->edge[k].from == from && c->edge[k].from_port == port) readers[n++] = k;
    const char *bus = mlo_source_bus(e->m, c, from, port);
    if (n > 1) mlo_emit_fork(e, bus, c->edge[readers[0]].lanes_from * c->edge[readers[0]].bits, n);
    for (int i = 0; i < n; i++)
        mlo_emit_edge(e, readers[i], n > 1 ? mlo_format(e->m, "%s_f%d", bus, i) : bus);
}

static const char *mlo_input_bus(mlo_emitter *e, int element, int port) {
    for (int k = 0; k < e->c->n_edge; k++)
        if (e->c->edge[k].to == element && e->c->edge[k].to_port == port)
            return mlo_edge_bus(e->m, e->c, k);
    return "";
}

/* What a kernel in row blocks hears of frames, behind one another: does a group end with it? A single one in flight is
 * a group. */
static void mlo_emit_ends(mlo_emitter *e, const mlo_element *el, int reader) {
    const int depth = 2 * e->c->frames + 1, level = mlo_clog2(depth + 1);
    mlo_line(
        e, "    wire %s_ends_tdata, %s_ends_tvalid, %s_ends_tready;", el->name, el->name, el->name);
    if (!mlo_core_patience(e->c)) {
        mlo_line(e, "    assign {%s_ends_tdata, %s_ends_tvalid} = 2'b11;", el->name, el->name);
        mlo_line(e, "    wire unused_%s_ends = &{1'b0, %s_ends_tready};", el->name, el->name);
        return;
    }
    mlo_line(e, "    wire [%d:0] %s_ends_level;\n    wire unused_%s_ends;", level - 1, el->name,
        el->name);
    mlo_line(e,
        "    mlo_fifo #(.WIDTH(1), .DEPTH(%d)) u_%s_ends (\n        .clk(clk), .rst(core_rst), "
        ".level(%s_ends_level),",
        depth, el->name, el->name);
    mlo_line(e,
        "        .s_tdata(ends_tdata), .s_tvalid(ends_tvalid), .s_tready(unused_%s_ends),\n"
        "        .m_tdata(%s_ends_tdata), .m_tvalid(%s_ends_tvalid), .m_tready(%s_ends_tready));",
        el->name, el->name, el->name, el->name);
    mlo_line(e, "    assign ends_room[%d] = %s_ends_level < %d'd%d;", reader - 1, el->name, level,
        depth - 1);
}

/* What brings a kernel its row blocks, for every tile that it asks for. */
static void mlo_emit_refill(mlo_emitter *e, int i) {
    const mlo_core *c = e->c;
    const mlo_element *el = &c->element[i];
    const int n = el->unit.n_memory;
    int reader = 1;
    int64_t offset = 0;
    for (int k = 0; k < i; k++)
        if (mlo_is_block(&c->element[k])) {
            reader++;
            offset += mlo_unit_beats(&c->element[k].unit, c->axi_bits);
        }
    mlo_line(e,
        "    wire %s_tile_valid, %s_tile_next, %s_tile_ready, %s_over, %s_over_group;\n"
        "    wire %s_want_valid, %s_want_next, %s_want_ready;\n    wire [%d:0] %s_p_tdata;\n    "
        "wire [%d:0] %s_p_tvalid, %s_p_tready;",
        el->name, el->name, el->name, el->name, el->name, el->name, el->name, el->name,
        c->axi_bits - 1, el->name, n - 1, el->name, el->name);
    mlo_line(e,
        "    mlo_ahead u_%s_ahead (\n"
        "        .clk(clk), .rst(core_rst), .iterations(iterations), .closed(%s_over), "
        ".closed_next(%s_over_group),\n"
        "        .s_tdata(%s_tile_next), .s_tvalid(%s_tile_valid), .s_tready(%s_tile_ready),\n"
        "        .m_tdata(%s_want_next), .m_tvalid(%s_want_valid), .m_tready(%s_want_ready));",
        el->name, el->name, el->name, el->name, el->name, el->name, el->name, el->name, el->name);
    mlo_printf(&e->t, "    mlo_refill #(.ADDR_WIDTH(64), .DATA_WIDTH(%d), .PORTS(%d), .BEATS({",
        c->axi_bits, n);
    for (int k = n; k--;)
        mlo_printf(&e->t, "32'd%lld%s",
            (long long)mlo_memory_beats(&el->unit.memory[k], c->axi_bits), k ? ", " : "})");
    mlo_line(e, ", .BLOCKS(%lld), .OFFSET(48'd%lld), .STRIDE(48'd%lld)) u_%s_refill (",
        (long long)el->unit.blocks, (long long)offset, (long long)mlo_core_block_beats(c),
        el->name);
    mlo_line(e,
        "        .clk(clk), .rst(rst), .flush(core_rst), .base(block_base), "
        ".iterations(iterations), .error(errors[%d]), .idle(idles[%d]),",
        reader, reader);
    mlo_line(e,
        "        .tile_valid(%s_want_valid), .tile_next(%s_want_next), .tile_ready(%s_want_ready),",
        el->name, el->name, el->name);
    mlo_emit_reader(e, reader);
    mlo_line(e,
        "        .m_axis_tdata(%s_p_tdata), .m_axis_tvalid(%s_p_tvalid), "
        ".m_axis_tready(%s_p_tready));",
        el->name, el->name, el->name);
    mlo_line(
        e, "    assign param_beat[%d] = |(%s_p_tvalid & %s_p_tready);", reader, el->name, el->name);
    mlo_emit_ends(e, el, reader);
}

/* The door of what comes from around the loop, to bus NAME_in. */
static void mlo_emit_replay_door(mlo_emitter *e, const mlo_element *el) {
    const mlo_port *y = &el->unit.out;
    const int masked = e->c->replay_masked;
    const char *bus = mlo_format(e->m, "%s_in", el->name);
    mlo_emit_wires(e, bus, y->lanes * y->bits);
    if (!masked) mlo_line(e, "    wire unused_%s_mask;", el->name);
    mlo_line(e, "    mlo_entry #(.C(%lld), .LANES(%d), .BITS(%d), .MASK(%d)) u_%s_entry (",
        (long long)y->channels, y->lanes, y->bits, masked, el->name);
    mlo_line(e,
        "        .clk(clk), .rst(core_rst), .s_axis_tdata(s2_axis_tdata), "
        ".s_axis_tvalid(s2_axis_tvalid), .s_axis_tready(s2_axis_tready), "
        ".s_axis_tlast(s2_axis_tlast),");
    if (masked)
        mlo_line(e,
            "        .s1_axis_tdata(s3_axis_tdata), .s1_axis_tvalid(s3_axis_tvalid), "
            ".s1_axis_tready(s3_axis_tready), .s1_axis_tlast(s3_axis_tlast),");
    else
        mlo_line(e,
            "        .s1_axis_tdata(8'd0), .s1_axis_tvalid(1'b0), .s1_axis_tready(unused_%s_mask), "
            ".s1_axis_tlast(1'b0),",
            el->name);
    mlo_emit_bus(e, "m_axis", bus, ");");
}

/* Is a kernel told of frames' jobs? Where a past is the model's own, its tokens' places are those of its frame. */
static int mlo_is_told(const mlo_core *c, const mlo_unit *u) {
    return u->told && c->slots && (!c->given || u->told == MLO_JOB_BANK);
}

/* Kernels that are told of frames' jobs, of the first n elements. */
static int mlo_told_kernels(const mlo_core *c, int n) {
    int told = 0;
    for (int i = 0; i < n; i++) told += mlo_is_told(c, &c->element[i].unit);
    return told;
}

/* The words of the frames that are on their way to a kernel. */
static void mlo_emit_words(mlo_emitter *e, int i) {
    const char *name = e->c->element[i].name;
    const int n = mlo_told_kernels(e->c, i), depth = e->c->frames + 1;
    mlo_line(
        e, "    wire [31:0] %s_j_tdata;\n    wire %s_j_tvalid, %s_j_tready;", name, name, name);
    mlo_line(e, "    wire [%d:0] %s_j_level;", mlo_clog2(depth + 1) - 1, name);
    mlo_line(e, "    mlo_fifo #(.WIDTH(32), .DEPTH(%d)) u_%s_words (", depth, name);
    mlo_line(e, "        .clk(clk), .rst(core_rst), .level(%s_j_level),", name);
    mlo_line(e,
        "        .s_tdata(word_tdata), .s_tvalid(word_tvalid[%d]), .s_tready(word_tready[%d]),", n,
        n);
    mlo_line(e, "        .m_tdata(%s_j_tdata), .m_tvalid(%s_j_tvalid), .m_tready(%s_j_tready));",
        name, name, name);
    mlo_line(e, "    wire %s_j_unused = &{1'b0, %s_j_level};", name, name);
}

/* What a kernel is told of each frame: of which positions it is, and of which bank; without caches it is of
 * those from 0 on. */
static void mlo_emit_told(mlo_emitter *e, const mlo_element *el) {
    const char *name = el->name;
    if (!el->unit.told) return;
    if (mlo_is_told(e->c, &el->unit))
        mlo_line(e,
            "        .s_axis_j_tdata(%s_j_tdata), .s_axis_j_tvalid(%s_j_tvalid), "
            ".s_axis_j_tready(%s_j_tready),",
            name, name, name);
    else
        mlo_line(e,
            "        .s_axis_j_tdata(32'd0), .s_axis_j_tvalid(1'b1), .s_axis_j_tready(%s_told),",
            name);
}

/* The port of keys and values in memory, signals of which mlo_core has as many as it. */
static void mlo_emit_kv_port(mlo_emitter *e) {
    static const char *const names[] = { "arid", "araddr", "arlen", "arsize", "arburst", "arvalid",
        "arready", "rid", "rdata", "rresp", "rlast", "rvalid", "rready", "awid", "awaddr", "awlen",
        "awsize", "awburst", "awvalid", "awready", "wdata", "wstrb", "wlast", "wvalid", "wready",
        "bid", "bresp", "bvalid", "bready" };
    const size_t n = sizeof names / sizeof *names;
    for (size_t i = 0; i < n; i++)
        mlo_line(e, "        .m_axi_%s(m_axi_kv_%s)%s", names[i], names[i], i + 1 < n ? "," : ");");
}

/* In front of attention, where keys and values stay in memory: the past comes on buses NAME_k, NAME_v, too. */
static void mlo_emit_kv(mlo_emitter *e, int i) {
    const mlo_core *c = e->c;
    const mlo_element *el = &c->element[i];
    const mlo_port *k = &el->unit.in[1];
    for (int v = 0; v < 2; v++)
        mlo_emit_wires(e, mlo_format(e->m, "%s_%c", el->name, "kv"[v]), k->lanes * k->bits);
    mlo_line(e,
        "    mlo_kv #(.CONTEXT(%lld), .BEATS(%lld), .LANES(%d), .BITS(%d), .AXI_WIDTH(%d), "
        ".FRAMES(%d)) u_kv (",
        (long long)c->keys, (long long)mlo_port_beats(*k), k->lanes, k->bits, c->axi_bits,
        c->frames);
    mlo_line(e,
        "        .clk(clk), .rst(rst), .flush(core_rst), .error(kv_error), .beats_read(kv_read), "
        ".beats_written(kv_written), .base(kv_base), .word_valid(ahead_tvalid), "
        ".word_tdata(ahead_tdata),");
    for (int v = 0; v < 2; v++) {
        const char *bus = mlo_format(e->m, "%s_%c", el->name, "kv"[v]);
        mlo_emit_bus(e, mlo_format(e->m, "s_axis_%c", "kv"[v]), mlo_input_bus(e, i, v + 1), ",");
        mlo_emit_bus(e, mlo_format(e->m, "m_axis_%c", "kv"[v]), bus, ",");
    }
    mlo_emit_kv_port(e);
}

/* The bus that an element reads at an input. */
static const char *mlo_read_bus(mlo_emitter *e, int i, int k) {
    const mlo_element *el = &e->c->element[i];
    if (e->c->dram && el->unit.told == MLO_JOB_BANK && k)
        return mlo_format(e->m, "%s_%c", el->name, "kv"[k - 1]);
    return mlo_input_bus(e, i, k);
}

static void mlo_emit_kernel(mlo_emitter *e, int i, int *memory, int *number) {
    const mlo_element *el = &e->c->element[i];
    const mlo_unit *u = &el->unit;
    mlo_line(e,
        "\n    // %s: %lld -> %lld channels, a token every %lld cycles (which layer's part it is: "
        "see manifest.json)",
        el->name, (long long)u->in[0].channels, (long long)u->out.channels, (long long)u->interval);
    mlo_emit_wires(e, el->name, u->out.lanes * u->out.bits);
    if (u->idle)
        mlo_line(e, "    wire %s_idle;\n    wire unused_%s = &{1'b0, %s_idle};", el->name, el->name,
            el->name);
    if (mlo_is_block(el)) mlo_emit_refill(e, i);
    if (i == e->c->replay) mlo_emit_replay_door(e, el);
    if (e->c->dram && u->told == MLO_JOB_BANK) mlo_emit_kv(e, i);
    if (mlo_is_told(e->c, u))
        mlo_emit_words(e, i);
    else if (u->told)
        mlo_line(e, "    wire %s_told;\n    wire unused_%s_told = &{1'b0, %s_told};", el->name,
            el->name, el->name);
    mlo_printf(&e->t, "    %s #(", u->module);
    for (int k = 0; k < u->n_param; k++)
        mlo_printf(
            &e->t, "%s.%s(%lld)", k ? ", " : "", u->param[k].name, (long long)u->param[k].value);
    if (u->n_memory)
        mlo_printf(&e->t, ", .AXI_WIDTH(%d), .RESIDENT(%lld)", e->c->axi_bits,
            (long long)(mlo_is_resident(el) ? e->c->scan.iterations : 0));
    mlo_line(e, ") u_%s (\n        .clk(clk), .rst(core_rst), %s.stat(stat[%d:%d]),", el->name,
        u->n_memory ? ".params_last(p_tlast), " : "", 3 * *number + 2, 3 * *number);
    if (i == e->c->replay) {
        mlo_line(e, "        .iterations(iterations),");
        mlo_emit_bus(e, "s_axis", mlo_format(e->m, "%s_in", el->name), ",");
    }
    mlo_emit_told(e, el);
    for (int k = 0; k < u->n_in; k++) mlo_emit_bus(e, u->in[k].port, mlo_read_bus(e, i, k), ",");
    for (int k = 0; k < u->n_memory; k++) {
        const char *from = mlo_is_block(el) ? mlo_format(e->m, "%s_", el->name) : "";
        const int at = mlo_is_block(el) ? k : (*memory)++;
        mlo_line(e,
            "        .%s_tdata(%sp_tdata), .%s_tvalid(%sp_tvalid[%d]), .%s_tready(%sp_tready[%d]),",
            u->memory[k].port, from, u->memory[k].port, from, at, u->memory[k].port, from, at);
    }
    if (mlo_is_block(el))
        mlo_line(e,
            "        .tile_valid(%s_tile_valid), .tile_next(%s_tile_next), "
            ".tile_ready(%s_tile_ready),\n"
            "        .over(%s_over), .over_group(%s_over_group),\n"
            "        .ends_tdata(%s_ends_tdata), .ends_tvalid(%s_ends_tvalid), "
            ".ends_tready(%s_ends_tready),",
            el->name, el->name, el->name, el->name, el->name, el->name, el->name, el->name);
    if (u->idle)
        mlo_line(e, "        .%s_tdata({%d{1'b0}}), .%s_tvalid(1'b0), .%s_tready(%s_idle),",
            u->idle, e->c->axi_bits, u->idle, u->idle, el->name);
    mlo_emit_bus(e, u->out.port, el->name, ");");
    ++*number;
    mlo_emit_fanout(e, i, 0);
}

static void mlo_emit_split(mlo_emitter *e, int i) {
    const mlo_element *el = &e->c->element[i];
    int64_t part[3] = { 0 };
    int bits = el->unit.out.bits, lanes = el->unit.out.lanes;
    for (size_t k = 0; k < el->node->n_output && k < 3; k++) part[k] = mlo_last_dim(&el->site.out);
    mlo_line(e, "");
    for (int k = 0; k < 3; k++)
        mlo_emit_wires(e, mlo_format(e->m, "%s_%d", el->name, k), lanes * bits);
    mlo_line(e,
        "    mlo_split #(.BITS(%d), .LANES(%d), .C0(%lld), .C1(%lld), .C2(%lld)) u_%s (\n        "
        ".clk(clk), .rst(core_rst),",
        bits, lanes, (long long)part[0], (long long)part[1], (long long)part[2], el->name);
    mlo_emit_bus(e, "s_axis", mlo_input_bus(e, i, 0), ",");
    for (int k = 0; k < 3; k++)
        mlo_emit_bus(e, mlo_format(e->m, "m%d_axis", k), mlo_format(e->m, "%s_%d", el->name, k),
            k == 2 ? ");" : ",");
    for (int k = 0; k < 3; k++) mlo_emit_fanout(e, i, k);
}

/* The layer, from bus `body` to bus `result`. */
static void mlo_emit_body(mlo_emitter *e) {
    int memory = 0, number = 0;
    mlo_emit_fanout(e, MLO_OUTSIDE, 0);
    for (int i = 0; i < e->c->n_element; i++) {
        if (e->c->element[i].kernel)
            mlo_emit_kernel(e, i, &memory, &number);
        else
            mlo_emit_split(e, i);
    }
}

/* Unrolled: the layer as a module, and the chain of its copies. */
static void mlo_emit_chain(mlo_emitter *e) {
    const mlo_core *c = e->c;
    int kernels = mlo_core_kernels(c), memories = mlo_core_memories(c);
    mlo_line(e, "\n    // ---- %d layers, one behind the other", e->layers);
    for (int l = 0; l < e->layers; l++) {
        const char *to = l + 1 < e->layers ? mlo_format(e->m, "result_%d", l) : "result";
        const char *from = l ? mlo_format(e->m, "result_%d", l - 1) : "body";
        if (l + 1 < e->layers) mlo_emit_wires(e, to, c->lanes * c->bits);
        mlo_line(e,
            "    mlo_layer layer_%d (\n        .clk(clk), .core_rst(core_rst), .stat(stat[%d:%d]),",
            l, 3 * kernels * (l + 1) - 1, 3 * kernels * l);
        mlo_line(e,
            "        .p_tdata(p_tdata), .p_tlast(p_tlast), .p_tvalid(p_tvalid[%d:%d]), "
            ".p_tready(p_tready[%d:%d]),",
            memories * (l + 1) - 1, memories * l, memories * (l + 1) - 1, memories * l);
        mlo_emit_bus(e, "body", from, ",");
        mlo_emit_bus(e, "result", to, ");");
    }
}

/* ---- the files ------------------------------------------------------------ */

/* What is in a writer's place in a file of share/rtl. */
static void mlo_top_layer(void *user) {
    mlo_emitter *e = (mlo_emitter *)user;
    if (e->unrolled) {
        mlo_emit_chain(e);
        return;
    }
    mlo_line(e, "    // ---- the layer");
    mlo_emit_body(e);
}
static void mlo_top_body(void *user) { mlo_emit_body((mlo_emitter *)user); }
static void mlo_top_buses(void *user) {
    static const char *const buses[] = { "entry", "body", "result", "leaving", "feed", "fed",
        "round", "each" };
    mlo_emitter *e = (mlo_emitter *)user;
    for (size_t i = 0; i < (e->c->every ? 8 : 6); i++)
        mlo_emit_wires(e, buses[i], e->c->lanes * e->c->bits);
}

/* The loader's memories, last one first, as Verilog's concatenations have them: how many beats
 * each takes of an iteration, or whether it is resident. */
static const char *mlo_top_memories(mlo_emitter *e, int resident) {
    const mlo_core *c = e->c;
    mlo_text t = { e->m, NULL, 0, 0 };
    for (int layer = e->layers; layer--;)
        for (int i = c->n_element; i--;)
            for (int k = mlo_loaded_memories(&c->element[i]); k--;)
                if (resident)
                    mlo_puts(&t, mlo_is_kept(&c->element[i], k) ? "1" : "0");
                else
                    mlo_printf(&t, "%s32'd%lld", t.n ? ", " : "",
                        (long long)mlo_memory_beats(&c->element[i].unit.memory[k], c->axi_bits));
    const char *list = mlo_intern(e->m, t.text);
    mlo_text_free(&t);
    return mlo_or_empty(list);
}

/* Bits of a beat of the top's streams: the loop's, or ids and what follows them. */
static int mlo_in_bits(const mlo_emitter *e) {
    return e->h ? 32 : e->c->lanes * mlo_padded(e->c->bits);
}
static int mlo_out_bits(const mlo_emitter *e) {
    const mlo_core *made = mlo_emit_made(e);
    return mlo_emit_says(e) ? 64 : made->lanes * mlo_padded(made->bits);
}
/* Beats of a token of theirs, in and out. */
static int64_t mlo_in_beats(const mlo_emitter *e) {
    return e->h ? 1 : e->c->channels / e->c->lanes;
}
static int64_t mlo_out_beats(const mlo_emitter *e) {
    const mlo_core *made = mlo_emit_made(e);
    return mlo_emit_says(e) ? mlo_emit_best(e) : made->channels / made->lanes;
}
/* What leaves for each token that enters, in bytes. */
static int64_t mlo_out_bytes(const mlo_emitter *e) {
    return mlo_core_times(e->c) * mlo_out_beats(e) * mlo_out_bits(e) / 8;
}

static int mlo_emit_top(mlo_emitter *e) {
    mlo *m = e->m;
    const mlo_core *c = e->c;
    const int width = c->lanes * c->bits, kernels = mlo_core_kernels(c);
    const int memories = mlo_core_memories(c), readers = mlo_core_readers(c);
    const int64_t token = c->channels / c->lanes, feed = c->feedback * token;
    const int beat = mlo_clog2(c->axi_bits / 8), says = mlo_emit_says(e);
    const mlo_hole holes[] = {
        { "VERSION", MLO_VERSION, NULL },
        { "LAYERS", e->unrolled ? mlo_format(m, "%d layers", e->layers) : "One layer", NULL },
        { "TOKENS", mlo_integer(m, c->chunk), NULL },
        { "CHANNELS", mlo_integer(m, c->channels), NULL },
        { "LANES", mlo_integer(m, c->lanes), NULL },
        { "BITS", mlo_integer(m, c->bits), NULL },
        { "TOKEN_BEATS", mlo_integer(m, token), NULL },
        { "FRAMES", mlo_integer(m, c->frames), NULL },
        { "MULTIPLIERS", mlo_integer(m, e->layers * mlo_core_multipliers(c)), NULL },
        { "INTERVAL", mlo_integer(m, mlo_core_interval(c)), NULL },
        { "LAYER_BEATS", mlo_integer(m, mlo_core_layer_beats(c)), NULL },
        { "RESIDENT_BEATS",
            mlo_core_resident_beats(c) ? mlo_integer(m, mlo_core_resident_beats(c)) : NULL, NULL },
        { "DEEPEST", mlo_integer(m, mlo_core_deepest(c)), NULL },
        /* ports */
        { "STREAMS",
            mlo_format(m, "s_axis:m_axis:%s%s%s%sm_axi:s_axil", c->dram ? "m_axi_kv:" : "",
                c->masked ? "s1_axis:" : "", c->replay >= 0 ? "s2_axis:" : "",
                c->replay_masked ? "s3_axis:" : ""),
            NULL },
        { "REPLAY", c->replay >= 0 ? "" : NULL, NULL },
        { "REPLAY_MASK", c->replay_masked ? "" : NULL, NULL },
        { "REPLAY_MSB", mlo_integer(m, mlo_replay_bits(c) - 1), NULL },
        { "REPLAY_TOKENS", mlo_integer(m, mlo_replay_frame(c)), NULL },
        { "REPLAY_CHANNELS", mlo_integer(m, mlo_replay_port(c).channels), NULL },
        { "REPLAY_LANES", mlo_integer(m, mlo_replay_port(c).lanes), NULL },
        { "JOBS", c->slots ? "" : NULL, NULL },
        { "NO_JOBS", c->slots ? NULL : "", NULL },
        { "KV", c->dram ? "" : NULL, NULL },
        { "NO_KV", c->dram ? NULL : "", NULL },
        { "TOLD", mlo_integer(m, mlo_told_kernels(c, c->n_element)), NULL },
        { "TOLD_MSB", mlo_integer(m, mlo_told_kernels(c, c->n_element) - 1), NULL },
        { "JOBS_MSB", mlo_integer(m, mlo_clog2(c->frames + 1) - 1), NULL },
        { "HEAD", says ? "" : NULL, NULL },
        { "NO_HEAD", says ? NULL : "", NULL },
        { "BEST", mlo_emit_best(e) > 1 ? "" : NULL, NULL },
        { "SAID", mlo_emit_best(e) > 1 ? "words" : "m_axis", NULL },
        { "SAID_MSB", mlo_integer(m, 64 * mlo_max(1, mlo_emit_best(e)) - 1), NULL },
        { "WORDS_SAID", mlo_integer(m, mlo_emit_best(e)), NULL },
        { "SO_MANY",
            mlo_emit_best(e) > 1
                ? mlo_format(m, ", then the next ones, %d in all", mlo_emit_best(e))
                : "",
            NULL },
        { "IDS", e->h ? "" : NULL, NULL },
        { "NO_IDS", e->h ? NULL : "", NULL },
        { "TYPED", mlo_core_types(c) > 1 ? "; bits 31:24 are a token's type" : "", NULL },
        { "SAME_FORM",
            e->tail ? mlo_format(m,
                          ", of each frame what is made of its first token: %d of %lld channels of "
                          "%d bits a beat; "
                          "tlast ends them",
                          e->tail->lanes, (long long)e->tail->channels, e->tail->bits)
                : e->h
                ? mlo_format(m,
                      ": %d channels of %d bits a beat, %lld beats a token; tlast ends a frame",
                      c->lanes, c->bits, (long long)token)
                : c->every ? mlo_format(m,
                                 ", in the same form: each layer's tokens, %lld times a frame's; "
                                 "tlast ends the "
                                 "last ones",
                                 (long long)c->scan.iterations)
                           : ", in the same form",
            NULL },
        { "EVERY", c->every ? "" : NULL, NULL },
        { "LEAVING", c->every ? "each" : "leaving", NULL },
        { "FEED", c->every ? "round" : "feed", NULL },
        { "WORDS", says ? "ids" : "s_axis", NULL },
        { "STRAY_ALONE", e->h ? "stray" : "1'b0", NULL },
        { "IN_MSB", mlo_integer(m, mlo_in_bits(e) - 1), NULL },
        { "OUT_MSB", mlo_integer(m, mlo_out_bits(e) - 1), NULL },
        { "ORDER", says ? "text" : "job", NULL },
        { "ORDER_START", says ? "text_start" : "job_first", NULL },
        { "FRONT", e->h ? "rows" : "s_axis", NULL },
        { "LEFT", says || e->tail ? "left" : "m_axis", NULL },
        { "LEAVES", says || e->tail ? "" : NULL, NULL },
        { "TAIL", e->tail ? "" : NULL, NULL },
        { "BOTH", e->h && !e->tail ? "" : NULL, NULL },
        { "READ_BY", e->tail ? "all" : "both", NULL },
        { "SHARERS", e->tail ? "3" : "2", NULL },
        { "TAIL_ARADDR", e->tail ? "tail_axi_araddr, " : "", NULL },
        { "TAIL_ARLEN", e->tail ? "tail_axi_arlen, " : "", NULL },
        { "TAIL_ARVALID", e->tail ? "tail_axi_arvalid, " : "", NULL },
        { "TAIL_RREADY", e->tail ? "tail_axi_rready, " : "", NULL },
        { "TAIL_UNUSED", e->tail ? ", tail_axi_arid, tail_axi_arsize, tail_axi_arburst" : "",
            NULL },
        { "CORE_AXI", e->h ? "core_axi" : "m_axi", NULL },
        { "STRAY", e->h ? " || stray" : "", NULL },
        { "HEAD_ERROR",
            e->tail    ? " || head_error || tail_error"
                : e->h ? " || head_error"
                       : "",
            NULL },
        { "STRB_MSB", mlo_integer(m, c->axi_bits / 8 - 1), NULL },
        { "SLOTS", mlo_integer(m, c->slots), NULL },
        { "CONTEXT", mlo_integer(m, c->slots ? c->keys : 0), NULL },
        { "GIVEN",
            c->keys > c->chunk ? mlo_format(m, ", .GIVEN(%lld)", (long long)(c->keys - c->chunk))
                               : "",
            NULL },
        { "ITERATIONS", mlo_integer(m, c->scan.iterations), NULL },
        { "JOB_MASK", c->slots && c->masked ? "" : NULL, NULL },
        { "JOB_UNMASKED", c->slots && !c->masked ? "" : NULL, NULL },
        { "JOB_PARAMETERS",
            c->slots
                ? mlo_format(m, ", .CONTEXT(%lld), .SLOTS(%lld)%s%s", (long long)c->keys,
                      (long long)c->slots, c->dram ? ", .KV(1)" : "", says ? ", .TOKENS(1)" : "")
                : "",
            NULL },
        { "DOOR",
            c->slots   ? "door"
                : e->h ? "rows"
                       : "s_axis",
            NULL },
        { "DOOR_MASK", c->slots ? "door_mask" : "s1_axis", NULL },
        { "IO_MSB", mlo_integer(m, c->lanes * mlo_padded(c->bits) - 1), NULL },
        { "AXI", mlo_integer(m, c->axi_bits), NULL },
        { "AXI_MSB", mlo_integer(m, c->axi_bits - 1), NULL },
        { "MASK", c->masked ? "" : NULL, NULL },
        { "UNMASKED", c->masked ? NULL : "", NULL },
        { "MASKED", mlo_integer(m, c->masked), NULL },
        /* registers, readers */
        { "KERNELS", mlo_integer(m, e->layers * kernels), NULL },
        { "STAT_MSB", mlo_integer(m, 3 * e->layers * kernels - 1), NULL },
        { "READERS", mlo_integer(m, readers), NULL },
        { "READERS_MSB", mlo_integer(m, readers - 1), NULL },
        { "ALONE", readers == 1 ? "" : NULL, NULL },
        { "SHARED", readers == 1 ? NULL : "", NULL },
        { "BASE_PAD", mlo_integer(m, 16 - beat), NULL },
        { "BEAT_SIZE", mlo_integer(m, beat), NULL },
        { "PORTS", mlo_integer(m, e->layers * memories), NULL },
        { "PORTS_MSB", mlo_integer(m, e->layers * memories - 1), NULL },
        { "MEMORY_BEATS", mlo_top_memories(e, 0), NULL },
        { "RESIDENT", mlo_top_memories(e, 1), NULL },
        /* the loop; unrolled, every iteration's parameters are a part of the one round */
        { "ROUNDS", e->unrolled ? "16'd1" : "iterations", NULL },
        { "ROLLED", e->unrolled ? NULL : "", NULL },
        { "UNROLLED", e->unrolled ? "" : NULL, NULL },
        { "WIDTH", mlo_integer(m, width), NULL },
        { "PATIENCE", mlo_integer(m, e->unrolled ? 0 : mlo_core_patience(c)), NULL },
        { "GROUPED", mlo_core_patience(c) ? "" : NULL, NULL },
        { "UNGROUPED", mlo_core_patience(c) ? NULL : "", NULL },
        { "ENDS_MSB", mlo_integer(m, readers - 2), NULL },
        { "FEED_DEPTH", mlo_integer(m, feed), NULL },
        { "FEED_TOKENS", mlo_integer(m, c->feedback), NULL },
        { "LEVEL_MSB", mlo_integer(m, mlo_clog2(feed + 1) - 1), NULL },
        { "BUSES", NULL, mlo_top_buses },
        { "LAYER", NULL, mlo_top_layer },
        { NULL, NULL, NULL },
    };
    const mlo_hole layer[] = {
        { "VERSION", MLO_VERSION, NULL },
        { "STAT_MSB", mlo_integer(m, 3 * kernels - 1), NULL },
        { "AXI_MSB", mlo_integer(m, c->axi_bits - 1), NULL },
        { "PORTS_MSB", mlo_integer(m, memories - 1), NULL },
        { "WIDTH_MSB", mlo_integer(m, width - 1), NULL },
        { "BODY", NULL, mlo_top_body },
        { NULL, NULL, NULL },
    };
    MLO_TRY(mlo_emit_shared(e, "rtl/mlo_top.v", holes, e));
    MLO_TRY(mlo_emit_shared(e, "rtl/mlo_core.v", holes, e));
    return e->unrolled ? mlo_emit_shared(e, "rtl/mlo_layer.v", layer, e) : 0;
}
