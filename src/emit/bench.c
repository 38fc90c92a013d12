/* emit, bench: tb/mlo_tb.v, a self-checking bench that Icarus and Verilator run alike, and the
 * scripts around it.
 *
 * The bench writes the registers as a host would, plays tb/input.hex, compares every word with
 * tb/golden.hex, and ends with one line: MLO PASS .. and $finish, or MLO FAIL .. and $fatal. All
 * its choices (stalls, memory latency) come from seeded generators, so the two simulators see the
 * same cycles. Its plusargs: input, golden, mask, params (files), beats, mask_beats, iterations,
 * frames_in_flight, seed, stall (and stall_source, stall_mask, stall_sink, stall_memory,
 * stall_host: one of them alone), latency, rate, fault (this beat is answered with an error),
 * timeout, probe, trace, wave, progress (a line MLO AT cycle, every so many cycles). Every port
 * has its judge (mlo_sim_check_*.v): a breach of AXI is a line PROTOCOL .., and a failure. When
 * nothing moves any more, lines MLO EDGE, LOOP, PARAM and MEMORY tell where each stream stands;
 * sim finds the cause in them (cli/wait.c). */

static void mlo_tb_declarations(mlo_emitter *e, int64_t words) {
    const mlo_core *c = e->c;
    int io = c->lanes * mlo_padded(c->bits);
    mlo_line(e,
        "// SPDX-License-Identifier: MIT\n// mlo_tb: plays, compares, counts. Run from the build "
        "directory: make sim, or mlo sim DIR.");
    mlo_line(e, "module mlo_tb;");
    mlo_line(e,
        "    parameter WORDS = %lld;         // room for activation beats\n    parameter IMAGE = "
        "%lld;         // room for parameter beats",
        (long long)words, (long long)(mlo_core_beats(c) * c->scan.iterations));
    mlo_line(e, "    localparam IO = %d, AXI = %d, KERNELS = %d, MASKED = %d;", io, c->axi_bits,
        e->layers * mlo_core_kernels(c), c->masked);
    mlo_line(e,
        "    localparam DEFAULT_BEATS = %lld, DEFAULT_MASK_BEATS = %lld, DEFAULT_ITERATIONS = "
        "%lld, DEFAULT_FRAMES = %d, DEFAULT_TIMEOUT = %lld, DEFAULT_RATE = %d, DEFAULT_LATENCY = "
        "%d;",
        (long long)(c->frames * c->tokens * (c->channels / c->lanes)),
        (long long)(c->masked ? c->frames * c->tokens : 0), (long long)c->scan.iterations,
        c->frames,
        /* a silence no healthy core keeps: a slow one says nothing for a whole iteration */
        (long long)(200000 + 4 * mlo_core_interval(c) * (c->tokens + 16) * c->frames),
        /* the memory that it was folded for */
        c->rate < 256 ? c->rate : 0, c->read_latency);
    mlo_line(e,
        "    localparam TOKENS = %lld, TOKEN_BEATS = %lld;   // of the longest frame; of a token",
        (long long)c->tokens, (long long)(c->channels / c->lanes));
}

static const char *const mlo_tb_body[] = { "    reg clk = 0, rst = 1, go = 0;",
    "    always #5 clk = !clk;", "    reg [31:0] cycle = 0, start = 0;", "    reg started = 0;",
    "    integer seed, stall, stall_source, stall_mask, stall_sink, stall_memory, stall_host, "
    "latency, rate, fault, beats, mask_beats, iterations, frames_in_flight, timeout, idle, k, f, "
    "probe, trace, quiet, quiet_ram, opened, progress, due = 0;",
    "    reg [8*512-1:0] input_file, golden_file, mask_file, params_file, wave_file, probe_file, "
    "trace_file;",
    "", "    // ---- the core and what it talks to", "    reg  [11:0] awaddr = 0, araddr = 0;",
    "    reg  [31:0] wdata = 0, value = 0;",
    "    reg  awvalid = 0, wvalid = 0, bready = 0, arvalid = 0, rready = 0;",
    "    wire awready, wready, bvalid, arready, rvalid;", "    wire [1:0] bresp, rresp;",
    "    wire [31:0] rdata;",
    "    wire arid, m_arvalid, m_arready, rid, m_rlast, m_rvalid, m_rready;",
    "    wire [63:0] m_araddr;", "    wire [7:0] m_arlen;", "    wire [2:0] m_arsize;",
    "    wire [1:0] m_arburst, m_rresp;", "    wire [AXI-1:0] m_rdata;",
    "    wire [IO-1:0] in_tdata, out_tdata;",
    "    wire in_tvalid, in_tready, in_tlast, out_tvalid, out_tready, out_tlast;",
    "    wire [7:0] mask_tdata;",
    "    wire mask_tvalid, mask_tready, mask_tlast, in_done, mask_done, done;",
    "    wire [31:0] in_sent, mask_sent, seen, errors, error_index, frames, ram_beats;",
    "    wire [IO:0] error_expected, error_got;", "    mlo_top u_top (",
    "        .clk(clk), .rst(rst), .s_axis_tdata(in_tdata), .s_axis_tvalid(in_tvalid), "
    ".s_axis_tready(in_tready), .s_axis_tlast(in_tlast),",
    NULL };
static const char *const mlo_tb_rest[] = {
    "        .m_axis_tdata(out_tdata), .m_axis_tvalid(out_tvalid), .m_axis_tready(out_tready), "
    ".m_axis_tlast(out_tlast),",
    "        .m_axi_arid(arid), .m_axi_araddr(m_araddr), .m_axi_arlen(m_arlen), "
    ".m_axi_arsize(m_arsize), .m_axi_arburst(m_arburst), .m_axi_arvalid(m_arvalid),",
    "        .m_axi_arready(m_arready), .m_axi_rid(rid), .m_axi_rdata(m_rdata), "
    ".m_axi_rresp(m_rresp), .m_axi_rlast(m_rlast), .m_axi_rvalid(m_rvalid), "
    ".m_axi_rready(m_rready),",
    "        .s_axil_awaddr(awaddr), .s_axil_awvalid(awvalid), .s_axil_awready(awready), "
    ".s_axil_wdata(wdata), .s_axil_wstrb(4'hf), .s_axil_wvalid(wvalid), .s_axil_wready(wready),",
    "        .s_axil_bresp(bresp), .s_axil_bvalid(bvalid), .s_axil_bready(bready), "
    ".s_axil_araddr(araddr), .s_axil_arvalid(arvalid), .s_axil_arready(arready),",
    "        .s_axil_rdata(rdata), .s_axil_rresp(rresp), .s_axil_rvalid(rvalid), "
    ".s_axil_rready(rready));",
    "    mlo_sim_source #(.WIDTH(IO), .DEPTH(WORDS)) u_source (.clk(clk), .rst(rst), .enable(go), "
    ".seed(seed), .stall(stall_source), .count(beats), .sent(in_sent), .done(in_done),",
    "        .m_axis_tdata(in_tdata), .m_axis_tvalid(in_tvalid), .m_axis_tready(in_tready), "
    ".m_axis_tlast(in_tlast));",
    "    mlo_sim_source #(.WIDTH(8), .DEPTH(WORDS)) u_mask (.clk(clk), .rst(rst), .enable(go), "
    ".seed(seed + 1), .stall(stall_mask), .count(mask_beats), .sent(mask_sent), .done(mask_done),",
    "        .m_axis_tdata(mask_tdata), .m_axis_tvalid(mask_tvalid), .m_axis_tready(mask_tready), "
    ".m_axis_tlast(mask_tlast));",
    "    mlo_sim_sink #(.WIDTH(IO), .DEPTH(WORDS)) u_sink (.clk(clk), .rst(rst), .seed(seed + 2), "
    ".stall(stall_sink), .count(beats), .cycle(cycle), .seen(seen), .errors(errors),",
    "        .error_index(error_index), .error_expected(error_expected), .error_got(error_got), "
    ".frames(frames), .done(done),",
    "        .s_axis_tdata(out_tdata), .s_axis_tvalid(out_tvalid), .s_axis_tready(out_tready), "
    ".s_axis_tlast(out_tlast));",
    "    mlo_sim_ram #(.DATA_WIDTH(AXI), .DEPTH(IMAGE)) u_ram (.clk(clk), .rst(rst), .seed(seed + "
    "3), .stall(stall_memory), .latency(latency), .rate(rate), .fault(fault), "
    ".base(64'h4000_0000), .beats(ram_beats),",
    "        .s_axi_arid(arid), .s_axi_araddr(m_araddr), .s_axi_arlen(m_arlen), "
    ".s_axi_arsize(m_arsize), .s_axi_arburst(m_arburst), .s_axi_arvalid(m_arvalid),",
    "        .s_axi_arready(m_arready), .s_axi_rid(rid), .s_axi_rdata(m_rdata), "
    ".s_axi_rresp(m_rresp), .s_axi_rlast(m_rlast), .s_axi_rvalid(m_rvalid), "
    ".s_axi_rready(m_rready));",
    "",
    "    // ---- the host: one register access at a time. It acts at the falling edge, so that no "
    "simulator's order of events matters.",
    "    reg host_go = 0, host_write = 0, host_busy = 0, host_done = 0;",
    "    reg [11:0] host_address = 0;", "    reg [31:0] host_data = 0, host_random = 1;",
    "    wire host_stalls = (host_random[15:0] * 100 >> 16) < stall_host;      // it offers "
    "nothing now, and takes no answer",
    "    always @(posedge clk) begin", "        host_done <= 0;",
    "        if (rst) host_random <= seed ^ 32'h5bd1_e995;",
    "        else if (stall_host != 0) begin",
    "            host_random <= {host_random[30:0], host_random[31] ^ host_random[21] ^ "
    "host_random[1] ^ host_random[0]};",
    "            if (host_busy) begin bready <= host_write && !host_stalls; rready <= !host_write "
    "&& !host_stalls; end",
    "        end", "        if (host_go && !host_busy && !host_done && !host_stalls) begin",
    "            host_busy <= 1;",
    "            awaddr <= host_address; wdata <= host_data; awvalid <= host_write; wvalid <= "
    "host_write; bready <= host_write;",
    "            araddr <= host_address; arvalid <= !host_write; rready <= !host_write;",
    "        end", "        if (awvalid && awready) awvalid <= 0;",
    "        if (wvalid && wready) wvalid <= 0;", "        if (arvalid && arready) arvalid <= 0;",
    "        if ((bvalid && bready) || (rvalid && rready)) begin",
    "            bready <= 0; rready <= 0; host_busy <= 0; host_done <= 1;",
    "            value <= rdata;", "        end", "    end",
    "    task access(input is_write, input [11:0] address, input [31:0] data);", "        begin",
    "            host_write = is_write; host_address = address; host_data = data; host_go = 1;",
    "            @(negedge clk); while (!host_done) @(negedge clk);", "            host_go = 0;",
    "        end", "    endtask",
    "    task write(input [11:0] address, input [31:0] data); access(1'b1, address, data); endtask",
    "    task read(input [11:0] address); access(1'b0, address, 32'd0); endtask", "",
    "    always @(posedge clk) begin", "        cycle <= cycle + 1;",
    "        if (in_tvalid && in_tready && !started) begin started <= 1; start <= cycle; end",
    "        quiet <= !go || (in_tvalid && in_tready) || (out_tvalid && out_tready) || (m_rvalid "
    "&& m_rready) ? 0 : quiet + 1;",
    "        quiet_ram <= m_rvalid && m_rready ? 0 : quiet_ram + 1;",
    "        if (progress != 0 && cycle >= due) begin", "            due <= cycle + progress;",
    "            $display(\"MLO AT %0d\", cycle);", "            $fflush;", "        end",
    "    end", "", "    integer busy [0:255], starved [0:255], blocked [0:255], counted [0:2];",
    "    reg over = 0;                       // the run is: the trace may end",
    "    // beats on the read channel while a frame is inside, as the counters see it",
    "    integer channel_busy = 0;",
    "    always @(posedge clk) if (u_top.u_regs.counts && m_rvalid && m_rready) channel_busy <= "
    "channel_busy + 1;",
    "    initial begin", "        if (!$value$plusargs(\"seed=%d\", seed)) seed = 1;",
    "        if (!$value$plusargs(\"stall=%d\", stall)) stall = 0;",
    "        if (!$value$plusargs(\"stall_source=%d\", stall_source)) stall_source = stall;",
    "        if (!$value$plusargs(\"stall_mask=%d\", stall_mask)) stall_mask = stall;",
    "        if (!$value$plusargs(\"stall_sink=%d\", stall_sink)) stall_sink = stall;",
    "        if (!$value$plusargs(\"stall_memory=%d\", stall_memory)) stall_memory = stall;",
    "        if (!$value$plusargs(\"stall_host=%d\", stall_host)) stall_host = 0;",
    "        if (!$value$plusargs(\"latency=%d\", latency)) latency = DEFAULT_LATENCY;",
    "        if (!$value$plusargs(\"rate=%d\", rate)) rate = DEFAULT_RATE;",
    "        if (!$value$plusargs(\"fault=%d\", fault)) fault = 0;",
    "        if (!$value$plusargs(\"beats=%d\", beats)) beats = DEFAULT_BEATS;",
    "        if (!$value$plusargs(\"mask_beats=%d\", mask_beats)) mask_beats = DEFAULT_MASK_BEATS;",
    "        if (MASKED == 0) mask_beats = 0;",
    "        if (!$value$plusargs(\"iterations=%d\", iterations)) iterations = DEFAULT_ITERATIONS;",
    "        if (!$value$plusargs(\"frames_in_flight=%d\", frames_in_flight)) frames_in_flight = "
    "DEFAULT_FRAMES;",
    "        if (!$value$plusargs(\"timeout=%d\", timeout)) timeout = DEFAULT_TIMEOUT;",
    "        if (!$value$plusargs(\"progress=%d\", progress)) progress = 0;",
    "        if (!$value$plusargs(\"input=%s\", input_file)) input_file = \"tb/input.hex\";",
    "        if (!$value$plusargs(\"golden=%s\", golden_file)) golden_file = \"tb/golden.hex\";",
    "        if (!$value$plusargs(\"mask=%s\", mask_file)) mask_file = \"tb/mask.hex\";",
    "        if (!$value$plusargs(\"params=%s\", params_file)) params_file = \"params.hex\";",
    "        if ($value$plusargs(\"wave=%s\", wave_file)) begin $dumpfile(wave_file); $dumpvars(0, "
    "mlo_tb); end",
    "        probe = 0;",
    "        if ($value$plusargs(\"probe=%s\", probe_file)) probe = $fopen(probe_file, \"w\");",
    "        trace = 0;",
    "        if ($value$plusargs(\"trace=%s\", trace_file)) trace = $fopen(trace_file, \"w\");",
    "        if (trace != 0) trace_streams;",
    "        $readmemh(input_file, u_source.mem, 0, beats - 1);",
    "        $readmemh(golden_file, u_sink.mem, 0, beats - 1);",
    "        if (MASKED != 0) $readmemh(mask_file, u_mask.mem, 0, mask_beats - 1);",
    "        $readmemh(params_file, u_ram.mem);", "        repeat (4) @(negedge clk);",
    "        rst = 0;", "        repeat (4) @(negedge clk);",
    "        write(12'h010, 32'h4000_0000);", "        write(12'h014, 0);",
    "        write(12'h018, iterations);", "        write(12'h01c, frames_in_flight);",
    "        write(12'h008, 2);          // a soft reset, 16 cycles: parameters may have been "
    "asked for by what stood there before",
    "        repeat (20) @(negedge clk);", "        write(12'h008, 1);", "        go = 1;",
    "        while (!done && errors == 0 && breaches == 0 && quiet < timeout) @(negedge clk);",
    "        // registers first: the counters go on counting",
    "        for (k = 0; k < KERNELS; k = k + 1) begin",
    "            read(12'h080 + 16 * k); busy[k] = value;",
    "            read(12'h084 + 16 * k); starved[k] = value;",
    "            read(12'h088 + 16 * k); blocked[k] = value;", "        end",
    "        for (k = 0; k < 3; k = k + 1) begin read(12'h040 + 4 * k); counted[k] = value; end",
    "        over = 1; @(negedge clk); over = 0;",
    "        repeat (200) @(negedge clk);            // a surplus word would come now",
    "        for (f = 0; f < frames && f < 256; f = f + 1) $display(\"MLO FRAME %0d %0d\", f, "
    "u_sink.frame_done[f] - start + 1);",
    "        for (k = 0; k < KERNELS; k = k + 1) $display(\"MLO KERNEL %0d %0d %0d %0d\", k, "
    "busy[k], starved[k], blocked[k]);",
    "        $display(\"MLO COUNTERS %0d %0d %0d\", counted[0], counted[1], counted[2]);",
    "        $display(\"MLO WEIGHTS %0d\", ram_beats);",
    "        $display(\"MLO CHANNEL %0d %0d\", channel_busy, rate);",
    "        // loading ahead comes to an end: the count of beats is then that of the iterations",
    "        if (done && errors == 0) while (quiet_ram < 1200 + 2 * latency) @(negedge clk);",
    "        read(12'h048);", "        $display(\"MLO BEATS %0d\", value);",
    "        read(12'h00c);", "        if (probe != 0) $fclose(probe);",
    "        if (trace != 0) begin $fwrite(trace, \"B %0d\\n\", start); $fclose(trace); end",
    "        say_fifos;",
    "        if (errors == 0 && breaches == 0 && !value[1] && !done) say_waits;",
    "        if (value[1]) begin",
    "            $display(\"MLO FAIL bus error: memory answered a read of parameters with an error "
    "(status register, bit 1)\");",
    "            $fatal;", "        end else if (errors != 0) begin",
    "            $display(\"MLO FAIL word %0d expected %h got %h\", error_index, error_expected, "
    "error_got);",
    "            $fatal;", "        end else if (breaches != 0) begin",
    "            $display(\"MLO FAIL protocol: %0d breaches of AXI\", breaches);",
    "            $fatal;", "        end else if (!done) begin",
    "            $display(\"MLO FAIL missing: %0d of %0d words came; nothing moved for %0d cycles "
    "(in %0d of %0d, memory %0d beats)\", seen, beats, quiet, in_sent, beats, ram_beats);",
    "            $fatal;", "        end else begin",
    "            $display(\"MLO PASS words %0d cycles %0d\", seen, u_sink.frame_done[(frames > 256 "
    "? 256 : frames) - 1] - start + 1);",
    "            $finish;", "        end", "    end", NULL
};

static const char *const mlo_tb_judges[] = { "",
    "    // ---- a judge on every port: each breach of AXI is a line PROTOCOL ..",
    "    wire [31:0] breaches_in, breaches_mask, breaches_out, breaches_axi, breaches_axil;",
    "    wire [31:0] breaches = breaches_in + breaches_mask + breaches_out + breaches_axi + "
    "breaches_axil;",
    "    wire owing;",
    "    mlo_sim_check_axis #(.WIDTH(IO), .BEATS(TOKEN_BEATS), .TOKENS(TOKENS), .PORT(\"s_axis\")) "
    "u_check_in (.clk(clk), .rst(rst), .cycle(cycle), .broken(), .breaches(breaches_in),",
    "        .tdata(in_tdata), .tvalid(in_tvalid), .tready(in_tready), .tlast(in_tlast));",
    "    mlo_sim_check_axis #(.WIDTH(8), .BEATS(1), .TOKENS(TOKENS), .PORT(\"s1_axis\")) "
    "u_check_mask (.clk(clk), .rst(rst), .cycle(cycle), .broken(), .breaches(breaches_mask),",
    "        .tdata(mask_tdata), .tvalid(mask_tvalid), .tready(mask_tready), .tlast(mask_tlast));",
    "    mlo_sim_check_axis #(.WIDTH(IO), .BEATS(TOKEN_BEATS), .TOKENS(TOKENS), .PORT(\"m_axis\"), "
    ".SETTLE(2)) u_check_out (.clk(clk), .rst(rst), .cycle(cycle), .broken(), "
    ".breaches(breaches_out),",
    "        .tdata(out_tdata), .tvalid(out_tvalid), .tready(out_tready), .tlast(out_tlast));",
    "    mlo_sim_check_axi #(.DATA_WIDTH(AXI), .BURST(64), .PORT_AR(\"m_axi_ar\"), "
    ".PORT_R(\"m_axi_r\")) u_check_axi (.clk(clk), .rst(rst), .cycle(cycle), .asked(), .sent(), "
    ".breaches(breaches_axi),",
    "        .owing(owing), .arid(arid), .araddr(m_araddr), .arlen(m_arlen), .arsize(m_arsize), "
    ".arburst(m_arburst), .arvalid(m_arvalid), .arready(m_arready),",
    "        .rid(rid), .rdata(m_rdata), .rresp(m_rresp), .rlast(m_rlast), .rvalid(m_rvalid), "
    ".rready(m_rready));",
    "    mlo_sim_check_lite u_check_axil (.clk(clk), .rst(rst), .cycle(cycle), .host(), .slave(), "
    ".breaches(breaches_axil), .awaddr(awaddr), .awvalid(awvalid), .awready(awready),",
    "        .wdata(wdata), .wstrb(4'hf), .wvalid(wvalid), .wready(wready), .bresp(bresp), "
    ".bvalid(bvalid), .bready(bready), .araddr(araddr), .arvalid(arvalid), .arready(arready),",
    "        .rdata(rdata), .rresp(rresp), .rvalid(rvalid), .rready(rready));", NULL };

static void mlo_lines(mlo_emitter *e, const char *const *lines) {
    for (; *lines; lines++) mlo_line(e, "%s", *lines);
}

/* Every kernel's output beats, in order, into the probe file: "NAME HEX". */
static void mlo_tb_probe(mlo_emitter *e) {
    mlo_line(e, "\n    // ---- +probe=FILE: every kernel's output stream");
    mlo_line(e, "    always @(posedge clk) if (probe != 0) begin");
    for (int i = 0; i < e->c->n_element; i++)
        if (e->c->element[i].kernel)
            mlo_line(e,
                "        if (u_top.%s_tvalid && u_top.%s_tready) $fwrite(probe, \"%s %%h\\n\", "
                "u_top.%s_tdata);",
                e->c->element[i].name, e->c->element[i].name, e->c->element[i].name,
                e->c->element[i].name);
    mlo_line(e, "    end");
}

/* What +trace=FILE watches: first the kernels' outputs, then their inputs and parameter memories. */
/* is: 'O', 'I', 'P' */
typedef struct {
    char is;
    int kernel;
    const char *name, *port;
    int64_t beats;
} mlo_traced;

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

/* The file begins with a list of the streams, "O|I|P stream kernel port", and ends with "B cycle":
 * when the first beat came in. */
static int mlo_tb_trace(mlo_emitter *e) {
    mlo_traced *list = MLO_NEW_N(
        e->m, mlo_traced, MLO_CORE_MOST * (1 + MLO_UNIT_PORTS + MLO_UNIT_MEMORIES));
    if (!list) return mlo_failed(e->m);
    int n = mlo_tb_streams(e->c, list);
    mlo_line(e,
        "\n    // ---- +trace=FILE: each token of each kernel, each loading of each parameter "
        "memory");
    mlo_line(e, "    localparam [%d:0] TRACE_BEATS = {", 32 * n - 1);
    for (int i = n; i--;)
        mlo_line(e, "        32'd%lld%s", (long long)list[i].beats, i ? "," : "};");
    mlo_line(e, "    wire [%d:0] trace_beat = {", n - 1);
    for (int i = n; i--;)
        mlo_line(e, "        u_top.u_%s.%s_tvalid && u_top.u_%s.%s_tready%s", list[i].name,
            list[i].port, list[i].name, list[i].port, i ? "," : "};");
    mlo_line(e,
        "    mlo_sim_trace #(.STREAMS(%d), .KERNELS(KERNELS), .BEATS(TRACE_BEATS)) u_trace "
        "(.clk(clk), .file(trace), .cycle(cycle), .over(over),",
        n);
    mlo_line(e, "        .beat(trace_beat), .counts(u_top.u_regs.counts), .stat(u_top.stat));");
    mlo_line(e, "    task trace_streams; begin");
    for (int i = 0; i < n; i++)
        mlo_line(e, "        $fwrite(trace, \"%c %d %d %s\\n\");", list[i].is, i, list[i].kernel,
            list[i].port);
    mlo_line(e, "    end endtask");
    return 0;
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
static void mlo_tb_fifos(mlo_emitter *e) {
    const mlo_core *c = e->c;
    mlo_line(e, "\n    // ---- the most that each FIFO held");
    mlo_line(e,
        "    integer peak_feed = 0;\n    always @(u_top.feed_level) if (u_top.feed_level > "
        "peak_feed) peak_feed = u_top.feed_level;");
    for (int k = 0; k < c->n_edge; k++)
        if (c->edge[k].fifo) {
            const char *bus = mlo_edge_bus(e->m, c, k);
            mlo_line(e,
                "    integer peak_%s = 0;\n    always @(u_top.%s_level) if (u_top.%s_level > "
                "peak_%s) peak_%s = u_top.%s_level;",
                bus, bus, bus, bus, bus, bus);
        }
    mlo_line(e, "    task say_fifos; begin");
    mlo_line(e,
        "        $display(\"MLO FIFO feed %%0d %%0d %lld\", peak_feed, u_top.u_feedback.DEPTH);",
        (long long)(c->channels / c->lanes));
    for (int k = 0; k < c->n_edge; k++)
        if (c->edge[k].fifo) {
            const char *bus = mlo_edge_bus(e->m, c, k);
            mlo_line(e,
                "        $display(\"MLO FIFO %s %%0d %%0d %lld\", peak_%s, u_top.u_%s_fifo.DEPTH);",
                bus, (long long)(c->edge[k].channels / c->edge[k].lanes_from), bus, bus);
        }
    mlo_line(e, "    end endtask");
}

/* MLO EDGE from to FIFO, valid and ready where the edge begins, beats in its FIFO and its depth (0
 * 0: none), valid and ready where it ends. */
static void mlo_tb_edge(mlo_emitter *e, const char *from, const char *to, const char *bus,
    const char *start, const char *end, const char *fifo) {
    const char *level = fifo ? mlo_format(e->m, "u_top.%s.level, u_top.%s.DEPTH", fifo, fifo)
                             : "0, 0";
    mlo_line(e,
        "        $display(\"MLO EDGE %s %s %s %%b %%b %%0d %%0d %%b %%b\", %s_tvalid, %s_tready, "
        "%s, %s_tvalid, %s_tready);",
        from, to, bus, start, start, level, end, end);
}

/* Where everything stands when nothing moves. Nodes: the elements, the doors, both halves of the
 * loop control, the world. */
static void mlo_tb_waits(mlo_emitter *e) {
    const mlo_core *c = e->c;
    mlo_line(e, "\n    // ---- when nothing moves: who waits for whom");
    mlo_line(e, "    task say_waits; begin");
    mlo_tb_edge(e, "source", "entry", "s_axis", "in", "in", NULL);
    if (c->masked) mlo_tb_edge(e, "mask_source", "entry", "s1_axis", "mask", "mask", NULL);
    mlo_tb_edge(e, "entry", "loop_in", "entry", "u_top.entry", "u_top.entry", NULL);
    mlo_tb_edge(e, "loop_out", "loop_in", "feed", "u_top.feed", "u_top.fed", "u_feedback");
    mlo_tb_edge(e, "loop_out", "exit", "leaving", "u_top.leaving", "u_top.leaving", NULL);
    mlo_tb_edge(e, "exit", "sink", "m_axis", "out", "out", NULL);
    for (int k = 0; k < c->n_edge; k++) {
        const mlo_edge *g = &c->edge[k];
        const char *from = g->from == MLO_OUTSIDE ? "loop_in" : c->element[g->from].name;
        const char *to = g->to == MLO_OUTSIDE ? "loop_out" : c->element[g->to].name;
        const char *bus = mlo_edge_bus(e->m, c, k);
        mlo_tb_edge(e, from, to, bus, mlo_format(e->m, "u_top.%s", mlo_edge_start(e->m, c, k)),
            mlo_format(e->m, "u_top.%s", bus), g->fifo ? mlo_format(e->m, "u_%s_fifo", bus) : NULL);
    }
    mlo_line(e, "        $display(\"MLO LOOP %%b\", u_top.u_loop.from_fb);");
    for (int i = 0, n = 0; i < c->n_element; i++)
        for (int k = 0; k < c->element[i].unit.n_memory; k++) {
            const char *from = mlo_is_block(&c->element[i])
                ? mlo_format(e->m, "%s_", c->element[i].name)
                : "";
            const int at = mlo_is_block(&c->element[i]) ? k : n++;
            mlo_line(e,
                "        $display(\"MLO PARAM %s %s %%b %%b\", u_top.%sp_tvalid[%d], "
                "u_top.%sp_tready[%d]);",
                c->element[i].name, c->element[i].unit.memory[k].port, from, at, from, at);
        }
    mlo_line(e,
        "        $display(\"MLO MEMORY %%b %%b %%b %%b %%b\", m_arvalid, m_arready, owing, "
        "m_rvalid, m_rready);");
    mlo_line(e, "    end endtask");
}

static int mlo_emit_tb(mlo_emitter *e, int64_t frames) {
    mlo_tb_declarations(e, frames * e->c->tokens * (e->c->channels / e->c->lanes));
    mlo_lines(e, mlo_tb_body);
    if (e->c->masked)
        mlo_line(e,
            "        .s1_axis_tdata(mask_tdata), .s1_axis_tvalid(mask_tvalid), "
            ".s1_axis_tready(mask_tready), .s1_axis_tlast(mask_tlast),");
    mlo_lines(e, mlo_tb_rest);
    if (!e->c->masked) mlo_line(e, "    assign mask_tready = 1'b1;");
    mlo_lines(e, mlo_tb_judges);
    if (e->unrolled) {
        mlo_line(e, "    // what looks into the core is of a rolled one");
        mlo_line(e,
            "    task trace_streams; begin end endtask\n    task say_fifos; begin end endtask\n    "
            "task say_waits; begin end endtask");
    } else {
        mlo_tb_fifos(e);
        mlo_tb_waits(e);
        mlo_tb_probe(e);
        if (mlo_tb_trace(e)) return mlo_failed(e->m);
    }
    mlo_line(e, "endmodule");
    return mlo_file_text(e, "tb/mlo_tb.v");
}

/* ---- scripts -------------------------------------------------------------- */

static int mlo_emit_makefile(mlo_emitter *e) {
    static const char *const lines[] = {
        "# make sim | verilate | lint | synth | synth-ecp5 | wave | cocotb",
        "RTL := $(sort $(wildcard rtl/*.v))", "TB  := $(sort $(wildcard tb/*.v))",
        "ARGS ?=", ".PHONY: sim verilate lint synth synth-ecp5 wave cocotb clean", "sim: sim.vvp",
        "\tvvp -n sim.vvp $(ARGS)", "sim.vvp: $(RTL) $(TB)",
        "\tiverilog -g2012 -s mlo_tb -o $@ $(VFLAGS) $(RTL) $(TB)", "verilate: obj/mlo_tb",
        "\tobj/mlo_tb $(ARGS)", "obj/mlo_tb: $(RTL) $(TB)",
        "\tverilator --binary --timing -O3 -Wno-fatal -Wno-lint -Wno-style -Wno-TIMESCALEMOD "
        "--top-module mlo_tb --Mdir obj -o mlo_tb $(VLFLAGS) $(RTL) $(TB) > obj.log 2>&1 || { cat "
        "obj.log; exit 1; }",
        "lint:", "\tiverilog -g2005 -Wall -s mlo_top -t null $(RTL)",
        "\tverilator --lint-only -Wall --top-module mlo_top $(RTL)",
        "\tyosys -q -p 'read_verilog $(RTL); hierarchy -check -top mlo_top; proc; check -assert'",
        "synth:",
        "\tyosys -q -p 'read_verilog $(RTL); synth_xilinx -family xcup -top mlo_top; tee -o "
        "synth.txt stat -hierarchy'",
        "synth-ecp5:",
        "\tyosys -q -p 'read_verilog $(RTL); chparam -set PACK 0 mlo_mvu; synth_ecp5 -top mlo_top "
        "-json mlo_top.json; tee -o synth.txt stat'",
        "wave: sim.vvp", "\tvvp -n sim.vvp -fst +wave=wave.fst $(ARGS)",
        "\t@echo 'gtkwave wave.fst tb/mlo_top.gtkw'", "cocotb:", "\tpython3 cocotb/test_mlo.py",
        "clean:", "\trm -rf obj obj.log sim.vvp wave.fst synth.txt mlo_top.json sim", NULL
    };
    mlo_lines(e, lines);
    return mlo_file_text(e, "Makefile");
}

static int mlo_emit_gtkw(mlo_emitter *e) {
    mlo_line(e,
        "[dumpfile] "
        "\"wave.fst\"\n@28\nmlo_tb.clk\nmlo_tb.in_tvalid\nmlo_tb.in_tready\nmlo_tb.in_tlast\n@"
        "22\nmlo_tb.in_tdata\n@28\nmlo_tb.out_tvalid\nmlo_tb.out_tready\nmlo_tb.out_tlast\n@"
        "22\nmlo_tb.out_tdata\n@28\nmlo_tb.m_arvalid\nmlo_tb.m_rvalid");
    for (int l = 0; l < e->layers; l++)
        for (int i = 0; i < e->c->n_element; i++)
            if (e->c->element[i].kernel) {
                const char *name = mlo_copy_name(e, l, e->c->element[i].name);
                mlo_line(e,
                    "@200\n-%s\n@28\nmlo_tb.u_top.%s_tvalid\nmlo_tb.u_top.%s_tready\nmlo_tb.u_top.%"
                    "s_tuser\n@22\nmlo_tb.u_top.%s_tdata",
                    name, name, name, name, name);
            }
    return mlo_file_text(e, "tb/mlo_top.gtkw");
}

static int mlo_emit_tools(mlo_emitter *e) {
    mlo_line(
        e, "# A Vivado project of the core: vivado -mode batch -source vivado.tcl [-tclargs PART]");
    mlo_line(e, "set part [expr {$argc > 0 ? [lindex $argv 0] : \"xczu7ev-ffvc1156-2-e\"}]");
    mlo_line(e,
        "create_project -force mlo vivado -part $part\nadd_files [glob rtl/*.v]\nadd_files "
        "-fileset sim_1 [glob tb/*.v]");
    mlo_line(e,
        "set_property top mlo_top [current_fileset]\nset_property top mlo_tb [get_filesets "
        "sim_1]\nupdate_compile_order -fileset sources_1");
    mlo_line(e,
        "synth_design -top mlo_top -part $part -mode out_of_context\ncreate_clock -period 4.0 "
        "[get_ports clk]\nreport_utilization -hierarchical -file "
        "utilization.txt\nreport_timing_summary -file timing.txt");
    if (mlo_file_text(e, "vivado.tcl")) return mlo_failed(e->m);
    mlo_line(e,
        "CAPI=2:\nname: mlo:core:mlo_top:1.0.0\ndescription: A transformer layer, streamed (made "
        "by mlo %s)\nfilesets:\n  rtl:\n    files:",
        MLO_VERSION);
    for (size_t i = 0; i < e->n_done; i++)
        if (mlo_starts(e->done[i].name, "rtl/")) mlo_line(e, "      - %s", e->done[i].name);
    mlo_line(e, "    file_type: verilogSource\n  tb:\n    files:");
    for (size_t i = 0; i < e->n_done; i++)
        if (mlo_starts(e->done[i].name, "tb/") && strstr(e->done[i].name, ".v"))
            mlo_line(e, "      - %s", e->done[i].name);
    mlo_line(e,
        "    file_type: systemVerilogSource\n  data:          # what the bench reads, from where "
        "it runs\n    files:\n      - params.hex: {copyto: params.hex}");
    for (size_t i = 0; i < e->n_done; i++)
        if (mlo_starts(e->done[i].name, "tb/") && strstr(e->done[i].name, ".hex"))
            mlo_line(e, "      - %s: {copyto: %s}", e->done[i].name, e->done[i].name);
    mlo_line(
        e, "    file_type: user\ntargets:\n  default:\n    filesets: [rtl]\n    toplevel: mlo_top");
    mlo_line(e,
        "  sim:\n    default_tool: icarus\n    filesets: [rtl, tb, data]\n    toplevel: mlo_tb\n   "
        " tools:\n      icarus:\n        iverilog_options: [-g2012]");
    return mlo_file_text(e, "mlo.core");
}

/* A cocotb bench with cocotbext-axi: an independent AXI-Stream source and sink, AXI RAM and
 * AXI-Lite master. */
static int mlo_emit_cocotb(mlo_emitter *e) {
    static const char *const lines[] = {
        "\"\"\"Drives mlo_top with cocotb and cocotbext-axi: make cocotb (needs cocotb >= 2, "
        "cocotbext-axi and Icarus).\"\"\"",
        "import itertools, json, pathlib, random, sys", "import cocotb",
        "from cocotb.clock import Clock", "from cocotb.triggers import RisingEdge",
        "from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRamRead, AxiReadBus, "
        "AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource",
        "", "HERE = pathlib.Path(__file__).resolve().parent.parent", "", "def frames(name, width):",
        "    \"\"\"The frames of a hex file of {tlast, tdata} words, as bytes.\"\"\"",
        "    out, now = [], bytearray()",
        "    for line in (HERE / 'tb' / name).read_text().split():",
        "        now += int(line[1:], 16).to_bytes(width, 'little')",
        "        if line[0] == '1':", "            out.append(bytes(now)); now = bytearray()",
        "    return out", "", "def pauses(seed, percent):", "    r = random.Random(seed)",
        "    return (r.randrange(100) < percent for _ in itertools.count())", "", "@cocotb.test()",
        "async def golden(dut):", "    manifest = json.loads((HERE / 'manifest.json').read_text())",
        "    width, masked = manifest['stream']['bytes'], manifest['stream']['masked']",
        "    cocotb.start_soon(Clock(dut.clk, 10, 'ns').start())",
        "    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, 's_axis'), dut.clk, dut.rst)",
        "    mask = AxiStreamSource(AxiStreamBus.from_prefix(dut, 's1_axis'), dut.clk, dut.rst) if "
        "masked else None",
        "    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, 'm_axis'), dut.clk, dut.rst)",
        "    host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, 's_axil'), dut.clk, dut.rst)",
        "    image = (HERE / 'params.bin').read_bytes()",
        "    ram = AxiRamRead(AxiReadBus.from_prefix(dut, 'm_axi'), dut.clk, dut.rst, "
        "size=max(4096, 1 << (len(image) - 1).bit_length()))",
        "    ram.write(0, image)",
        "    # everybody stalls now and then: streams, memory, registers",
        "    stalling = [source, sink, ram.ar_channel, ram.r_channel, host.write_if.aw_channel, "
        "host.write_if.w_channel, host.write_if.b_channel, host.read_if.ar_channel, "
        "host.read_if.r_channel]",
        "    for seed, channel in enumerate(stalling + [mask] * masked): "
        "channel.set_pause_generator(pauses(seed, 20))",
        "    dut.rst.value = 1", "    for _ in range(5): await RisingEdge(dut.clk)",
        "    dut.rst.value = 0", "    for _ in range(5): await RisingEdge(dut.clk)",
        "    assert await host.read_dword(0) == 0x4D4C4F31",
        "    await host.write_dword(0x10, 0); await host.write_dword(0x14, 0)",
        "    await host.write_dword(0x18, manifest['iterations']); await host.write_dword(0x1c, "
        "manifest['frames_in_flight'])",
        "    await host.write_dword(0x08, 2)             # a soft reset follows settings",
        "    for _ in range(20): await RisingEdge(dut.clk)", "    await host.write_dword(0x08, 1)",
        "    for f in frames('input.hex', width): await source.send(AxiStreamFrame(f))",
        "    if masked:",
        "        for f in frames('mask.hex', 1): await mask.send(AxiStreamFrame(f))",
        "    golden = frames('golden.hex', width)",
        "    for i, f in enumerate(golden):", "        got = await sink.recv()",
        "        assert bytes(got.tdata) == f, f'frame {i} differs'",
        "    assert await host.read_dword(0x0c) & 2 == 0, 'bus error'",
        "    # the counters: frames, parameters read, and of each kernel how it spent its cycles",
        "    cycles, done, beats = [await host.read_dword(a) for a in (0x40, 0x44, 0x48)]",
        "    groups = -(-len(golden) // manifest['frames_in_flight'])",
        "    assert done == len(golden), f'{done} frames counted'",
        "    assert beats * manifest['axi_bits'] // 8 >= groups * len(image), f'{beats} beats of "
        "parameters counted'",
        "    for k, kernel in enumerate(manifest['kernels']):",
        "        busy, starved, blocked = [await host.read_dword(0x80 + 16 * k + 4 * i) for i in "
        "range(3)]",
        "        assert 0 < busy and busy + starved + blocked <= cycles, f'{kernel[\"name\"]}: "
        "{busy} + {starved} + {blocked} of {cycles} cycles'",
        "        work = kernel['macs'] / max(kernel['multipliers'], 1) * len(golden)",
        "        if kernel['op'].startswith('MVU'): assert busy == work, f'{kernel[\"name\"]}: "
        "busy for {busy} cycles, {work} are its work'",
        "", "if __name__ == '__main__':", "    from cocotb_tools.check_results import get_results",
        "    from cocotb_tools.runner import get_runner", "    runner = get_runner('icarus')",
        "    runner.build(sources=sorted((HERE / 'rtl').glob('*.v')), hdl_toplevel='mlo_top', "
        "build_dir=str(HERE / 'cocotb' / 'build'), timescale=('1ns', '1ps'), always=True)",
        "    results = runner.test(hdl_toplevel='mlo_top', test_module='test_mlo', "
        "test_dir=str(HERE / 'cocotb'), build_dir=str(HERE / 'cocotb' / 'build'))",
        "    tests, failed = get_results(results)", "    sys.exit(failed > 0 or tests == 0)", NULL
    };
    mlo_lines(e, lines);
    return mlo_file_text(e, "cocotb/test_mlo.py");
}
