// SPDX-License-Identifier: MIT
// mlo_tb: plays, compares, counts. Run from the build directory: make sim, or mlo sim DIR.
module mlo_tb;
    parameter WORDS = @WORDS@;         // room for activation beats
    parameter IMAGE = @IMAGE@;         // room for parameter beats
    localparam IN = @IN@, OUT = @OUT@, AXI = @AXI@, KERNELS = @KERNELS@, MASKED = @MASKED@;
    localparam DEFAULT_BEATS = @BEATS@, DEFAULT_MASK_BEATS = @MASK_BEATS@, DEFAULT_ITERATIONS = @ITERATIONS@, DEFAULT_FRAMES = @FRAMES@, DEFAULT_TIMEOUT = @TIMEOUT@, DEFAULT_RATE = @RATE@, DEFAULT_LATENCY = @LATENCY@;
@REPLAY@    localparam REPLAY_IO = @REPLAY_IO@, DEFAULT_REPLAY_BEATS = @REPLAY_BEATS@;
@REPLAY_MASK@    localparam DEFAULT_REPLAY_MASK_BEATS = @REPLAY_MASK_BEATS@;
    localparam TOKENS = @TOKENS@, TOKEN_BEATS = @TOKEN_BEATS@;   // of the longest frame; of a token
@JOBS@    localparam DEFAULT_JOBS = @N_JOBS@;
@JOBS@    parameter JOBS = 4096;             // room for them
@JOBS@    reg [63:0] order [0:JOBS-1];       // {more, slot, start, tokens}
@JOBS@    integer jobs, ordered = 0;
@JOBS@    reg [8*512-1:0] orders_file;
    reg clk = 0, rst = 1, go = 0;
    always #5 clk = !clk;
    reg [31:0] cycle = 0, start = 0;
    reg started = 0;
    integer seed, stall, stall_source, stall_mask, stall_sink, stall_memory, stall_host, latency, rate, fault, beats, out_beats, mask_beats, iterations, frames_in_flight, timeout, idle, k, f, probe, trace, quiet, quiet_ram, opened, progress, due = 0;
    reg [8*512-1:0] input_file, golden_file, mask_file, params_file, wave_file, probe_file, trace_file;

    // ---- the core and what it talks to
    reg  [11:0] awaddr = 0, araddr = 0;
    reg  [31:0] wdata = 0, value = 0;
    reg  awvalid = 0, wvalid = 0, bready = 0, arvalid = 0, rready = 0;
    wire awready, wready, bvalid, arready, rvalid;
    wire [1:0] bresp, rresp;
    wire [31:0] rdata;
    wire arid, m_arvalid, m_arready, rid, m_rlast, m_rvalid, m_rready;
    wire [63:0] m_araddr;
    wire [7:0] m_arlen;
    wire [2:0] m_arsize;
    wire [1:0] m_arburst, m_rresp;
    wire [AXI-1:0] m_rdata;
    wire [IN-1:0] in_tdata;
    wire [OUT-1:0] out_tdata;
    wire in_tvalid, in_tready, in_tlast, out_tvalid, out_tready, out_tlast;
    wire [7:0] mask_tdata;
    wire mask_tvalid, mask_tready, mask_tlast, in_done, mask_done, done;
    wire [31:0] in_sent, mask_sent, seen, errors, error_index, frames, ram_beats;
    wire [OUT:0] error_expected, error_got;
@REPLAY@    integer replay_beats;
@REPLAY@    reg [8*512-1:0] replay_file;
@REPLAY@    wire [REPLAY_IO-1:0] replay_tdata;
@REPLAY@    wire replay_tvalid, replay_tready, replay_tlast, replay_done;
@REPLAY@    wire [31:0] replay_sent, breaches_replay;
@REPLAY_MASK@    integer replay_mask_beats;
@REPLAY_MASK@    reg [8*512-1:0] replay_mask_file;
@REPLAY_MASK@    wire [7:0] replay_mask_tdata;
@REPLAY_MASK@    wire replay_mask_tvalid, replay_mask_tready, replay_mask_tlast, replay_mask_done;
@REPLAY_MASK@    wire [31:0] replay_mask_sent, breaches_replay_mask;
@NO_REPLAY@    wire [31:0] breaches_replay = 0;
@NO_REPLAY_MASK@    wire [31:0] breaches_replay_mask = 0;
@KV@    wire kv_arid, kv_arvalid, kv_arready, kv_rid, kv_rlast, kv_rvalid, kv_rready, kv_awid, kv_awvalid, kv_awready, kv_wlast, kv_wvalid, kv_wready, kv_bid, kv_bvalid, kv_bready;
@KV@    wire [63:0] kv_araddr, kv_awaddr, kv_write_word;
@KV@    wire [7:0] kv_arlen, kv_awlen;
@KV@    wire [2:0] kv_arsize, kv_awsize;
@KV@    wire [1:0] kv_arburst, kv_awburst, kv_rresp, kv_bresp, kv_owing;
@KV@    wire [AXI-1:0] kv_rdata, kv_wdata, kv_write_data;
@KV@    wire [AXI/8-1:0] kv_wstrb, kv_write;
@KV@    wire [31:0] kv_read, kv_written, breaches_kv_read, breaches_kv_write;
@KV@    // keys and values: as many words in front of them and behind them as nothing may change
@KV@    localparam KV_ROW = @KV_ROW@, KV_WORDS = @SLOTS@ * @DEEPEST@ * 2 * TOKENS * KV_ROW, KV_FRONT = 31 * 1024 / AXI;
@KV@    integer most [0:255], kv_fault_r, kv_fault_b, kv_dump;
@KV@    reg [8*512-1:0] kv_file;
@GIVEN@    // keys and values that are the model's own: what is to lie there in the end
@GIVEN@    reg [AXI-1:0] kept [0:KV_WORDS-1];
@GIVEN@    reg [8*512-1:0] kept_file;
@GIVEN@    integer kept_good = 0;
@PAST@    // and in the beginning, of so many tokens
@PAST@    localparam PAST = @PAST_TOKENS@;
@PAST@    reg [AXI-1:0] past [0:@DEEPEST@*2*PAST*KV_ROW-1];
@PAST@    reg [8*512-1:0] past_file;
@KV@    function [AXI-1:0] canary(input integer n); canary = {AXI/32{32'h5eed_0000 ^ n[31:0]}}; endfunction
    mlo_top u_top (
@KV@        .m_axi_kv_arid(kv_arid), .m_axi_kv_araddr(kv_araddr), .m_axi_kv_arlen(kv_arlen), .m_axi_kv_arsize(kv_arsize), .m_axi_kv_arburst(kv_arburst), .m_axi_kv_arvalid(kv_arvalid), .m_axi_kv_arready(kv_arready), .m_axi_kv_rid(kv_rid),
@KV@        .m_axi_kv_rdata(kv_rdata), .m_axi_kv_rresp(kv_rresp), .m_axi_kv_rlast(kv_rlast), .m_axi_kv_rvalid(kv_rvalid), .m_axi_kv_rready(kv_rready), .m_axi_kv_awid(kv_awid), .m_axi_kv_awaddr(kv_awaddr), .m_axi_kv_awlen(kv_awlen),
@KV@        .m_axi_kv_awsize(kv_awsize), .m_axi_kv_awburst(kv_awburst), .m_axi_kv_awvalid(kv_awvalid), .m_axi_kv_awready(kv_awready), .m_axi_kv_wdata(kv_wdata), .m_axi_kv_wstrb(kv_wstrb), .m_axi_kv_wlast(kv_wlast), .m_axi_kv_wvalid(kv_wvalid),
@KV@        .m_axi_kv_wready(kv_wready), .m_axi_kv_bid(kv_bid), .m_axi_kv_bresp(kv_bresp), .m_axi_kv_bvalid(kv_bvalid), .m_axi_kv_bready(kv_bready),
        .clk(clk), .rst(rst), .s_axis_tdata(in_tdata), .s_axis_tvalid(in_tvalid), .s_axis_tready(in_tready), .s_axis_tlast(in_tlast),
@REPLAY@        .s2_axis_tdata(replay_tdata), .s2_axis_tvalid(replay_tvalid), .s2_axis_tready(replay_tready), .s2_axis_tlast(replay_tlast),
@REPLAY_MASK@        .s3_axis_tdata(replay_mask_tdata), .s3_axis_tvalid(replay_mask_tvalid), .s3_axis_tready(replay_mask_tready), .s3_axis_tlast(replay_mask_tlast),
@MASK@        .s1_axis_tdata(mask_tdata), .s1_axis_tvalid(mask_tvalid), .s1_axis_tready(mask_tready), .s1_axis_tlast(mask_tlast),
        .m_axis_tdata(out_tdata), .m_axis_tvalid(out_tvalid), .m_axis_tready(out_tready), .m_axis_tlast(out_tlast),
        .m_axi_arid(arid), .m_axi_araddr(m_araddr), .m_axi_arlen(m_arlen), .m_axi_arsize(m_arsize), .m_axi_arburst(m_arburst), .m_axi_arvalid(m_arvalid),
        .m_axi_arready(m_arready), .m_axi_rid(rid), .m_axi_rdata(m_rdata), .m_axi_rresp(m_rresp), .m_axi_rlast(m_rlast), .m_axi_rvalid(m_rvalid), .m_axi_rready(m_rready),
        .s_axil_awaddr(awaddr), .s_axil_awvalid(awvalid), .s_axil_awready(awready), .s_axil_wdata(wdata), .s_axil_wstrb(4'hf), .s_axil_wvalid(wvalid), .s_axil_wready(wready),
        .s_axil_bresp(bresp), .s_axil_bvalid(bvalid), .s_axil_bready(bready), .s_axil_araddr(araddr), .s_axil_arvalid(arvalid), .s_axil_arready(arready),
        .s_axil_rdata(rdata), .s_axil_rresp(rresp), .s_axil_rvalid(rvalid), .s_axil_rready(rready));
    mlo_sim_source #(.WIDTH(IN), .DEPTH(WORDS)) u_source (.clk(clk), .rst(rst), .enable(go), .seed(seed), .stall(stall_source), .count(beats), .sent(in_sent), .done(in_done),
        .m_axis_tdata(in_tdata), .m_axis_tvalid(in_tvalid), .m_axis_tready(in_tready), .m_axis_tlast(in_tlast));
    mlo_sim_source #(.WIDTH(8), .DEPTH(WORDS)) u_mask (.clk(clk), .rst(rst), .enable(go), .seed(seed + 1), .stall(stall_mask), .count(mask_beats), .sent(mask_sent), .done(mask_done),
        .m_axis_tdata(mask_tdata), .m_axis_tvalid(mask_tvalid), .m_axis_tready(mask_tready), .m_axis_tlast(mask_tlast));
@REPLAY@    mlo_sim_source #(.WIDTH(REPLAY_IO), .DEPTH(WORDS)) u_replay (.clk(clk), .rst(rst), .enable(go), .seed(seed + 4), .stall(stall_source), .count(replay_beats), .sent(replay_sent), .done(replay_done),
@REPLAY@        .m_axis_tdata(replay_tdata), .m_axis_tvalid(replay_tvalid), .m_axis_tready(replay_tready), .m_axis_tlast(replay_tlast));
@REPLAY_MASK@    mlo_sim_source #(.WIDTH(8), .DEPTH(WORDS)) u_replay_mask (.clk(clk), .rst(rst), .enable(go), .seed(seed + 5), .stall(stall_mask), .count(replay_mask_beats), .sent(replay_mask_sent), .done(replay_mask_done),
@REPLAY_MASK@        .m_axis_tdata(replay_mask_tdata), .m_axis_tvalid(replay_mask_tvalid), .m_axis_tready(replay_mask_tready), .m_axis_tlast(replay_mask_tlast));
    mlo_sim_sink #(.WIDTH(OUT), .DEPTH(WORDS)) u_sink (.clk(clk), .rst(rst), .seed(seed + 2), .stall(stall_sink), .count(out_beats), .cycle(cycle), .seen(seen), .errors(errors),
        .error_index(error_index), .error_expected(error_expected), .error_got(error_got), .frames(frames), .done(done),
        .s_axis_tdata(out_tdata), .s_axis_tvalid(out_tvalid), .s_axis_tready(out_tready), .s_axis_tlast(out_tlast));
    mlo_sim_ram #(.DATA_WIDTH(AXI), .DEPTH(IMAGE)) u_ram (.clk(clk), .rst(rst), .seed(seed + 3), .stall(stall_memory), .latency(latency), .rate(rate), .fault(fault), .base(64'h4000_0000), .beats(ram_beats),
        .write({AXI/8{1'b0}}), .write_word(64'd0), .write_data({AXI{1'b0}}),
        .s_axi_arid(arid), .s_axi_araddr(m_araddr), .s_axi_arlen(m_arlen), .s_axi_arsize(m_arsize), .s_axi_arburst(m_arburst), .s_axi_arvalid(m_arvalid),
        .s_axi_arready(m_arready), .s_axi_rid(rid), .s_axi_rdata(m_rdata), .s_axi_rresp(m_rresp), .s_axi_rlast(m_rlast), .s_axi_rvalid(m_rvalid), .s_axi_rready(m_rready));

@KV@    mlo_sim_ram #(.DATA_WIDTH(AXI), .DEPTH(KV_WORDS + 2 * KV_FRONT)) u_kv_ram (.clk(clk), .rst(rst), .seed(seed + 6), .stall(stall_memory), .latency(latency), .rate(32'd0), .fault(kv_fault_r), .base(64'h8000_0000),
@KV@        .beats(kv_read), .write(kv_write), .write_word(kv_write_word), .write_data(kv_write_data), .s_axi_arid(kv_arid), .s_axi_araddr(kv_araddr), .s_axi_arlen(kv_arlen), .s_axi_arsize(kv_arsize), .s_axi_arburst(kv_arburst), .s_axi_arvalid(kv_arvalid), .s_axi_arready(kv_arready), .s_axi_rid(kv_rid), .s_axi_rdata(kv_rdata), .s_axi_rresp(kv_rresp), .s_axi_rlast(kv_rlast), .s_axi_rvalid(kv_rvalid), .s_axi_rready(kv_rready));
@KV@    mlo_sim_ram_write #(.DATA_WIDTH(AXI), .DEPTH(KV_WORDS + 2 * KV_FRONT)) u_kv_ram_write (.clk(clk), .rst(rst), .seed(seed + 7), .stall(stall_memory), .latency(latency), .fault(kv_fault_b), .base(64'h8000_0000),
@KV@        .beats(kv_written), .write(kv_write), .write_word(kv_write_word), .write_data(kv_write_data), .s_axi_awid(kv_awid), .s_axi_awaddr(kv_awaddr), .s_axi_awlen(kv_awlen), .s_axi_awsize(kv_awsize), .s_axi_awburst(kv_awburst), .s_axi_awvalid(kv_awvalid), .s_axi_awready(kv_awready), .s_axi_wdata(kv_wdata), .s_axi_wstrb(kv_wstrb), .s_axi_wlast(kv_wlast), .s_axi_wvalid(kv_wvalid), .s_axi_wready(kv_wready), .s_axi_bid(kv_bid), .s_axi_bresp(kv_bresp), .s_axi_bvalid(kv_bvalid), .s_axi_bready(kv_bready));
@KV@    mlo_sim_check_axi #(.DATA_WIDTH(AXI), .BURST(64), .PORT_AR("m_axi_kv_ar"), .PORT_R("m_axi_kv_r")) u_check_kv_read (.clk(clk), .rst(rst), .cycle(cycle), .asked(), .sent(), .breaches(breaches_kv_read), .owing(kv_owing[0]), .arid(kv_arid), .araddr(kv_araddr), .arlen(kv_arlen), .arsize(kv_arsize), .arburst(kv_arburst), .arvalid(kv_arvalid), .arready(kv_arready), .rid(kv_rid), .rdata(kv_rdata), .rresp(kv_rresp), .rlast(kv_rlast), .rvalid(kv_rvalid), .rready(kv_rready));
@KV@    mlo_sim_check_axi_write #(.DATA_WIDTH(AXI), .BURST(64), .PORT_AW("m_axi_kv_aw"), .PORT_W("m_axi_kv_w"), .PORT_B("m_axi_kv_b")) u_check_kv_write (.clk(clk), .rst(rst), .cycle(cycle), .asked(), .written(), .answered(), .breaches(breaches_kv_write), .owing(kv_owing[1]), .awid(kv_awid), .awaddr(kv_awaddr), .awlen(kv_awlen), .awsize(kv_awsize), .awburst(kv_awburst), .awvalid(kv_awvalid), .awready(kv_awready), .wdata(kv_wdata), .wstrb(kv_wstrb), .wlast(kv_wlast), .wvalid(kv_wvalid), .wready(kv_wready), .bid(kv_bid), .bresp(kv_bresp), .bvalid(kv_bvalid), .bready(kv_bready));
@KV@    // what the run must not have written: around the region, and rows that no job reached
@KV@    integer kv_n, kv_spoilt = 0;
@KV@    task check_kv;
@KV@        begin
@KV@            for (kv_n = 0; kv_n < 256; kv_n = kv_n + 1) most[kv_n] = 0;
@KV@            for (kv_n = 0; kv_n < jobs; kv_n = kv_n + 1)
@KV@                if (order[kv_n][39:16] + order[kv_n][15:0] + order[kv_n][63:48] > most[order[kv_n][47:40]])
@KV@                    most[order[kv_n][47:40]] = order[kv_n][39:16] + order[kv_n][15:0] + order[kv_n][63:48];
@KV@            for (kv_n = 0; kv_n < KV_WORDS + 2 * KV_FRONT; kv_n = kv_n + 1)
@KV@                if (kv_n < KV_FRONT || kv_n >= KV_FRONT + KV_WORDS || (kv_n - KV_FRONT) / KV_ROW % TOKENS >= most[(kv_n - KV_FRONT) / KV_ROW / TOKENS / 2 / @DEEPEST@]
@KV@                    || (kv_n - KV_FRONT) / KV_ROW / TOKENS / 2 % @DEEPEST@ >= iterations) begin
@KV@                    if (u_kv_ram.mem[kv_n] !== canary(kv_n)) kv_spoilt = kv_spoilt + 1;
@KV@                end else if (^u_kv_ram.mem[kv_n] === 1'bx || u_kv_ram.mem[kv_n] === canary(kv_n)) kv_spoilt = kv_spoilt + 1;
@GIVEN@            for (kv_n = 0; kv_n < KV_WORDS; kv_n = kv_n + 1)
@GIVEN@                if (u_kv_ram.mem[KV_FRONT + kv_n] === kept[kv_n]) kept_good = kept_good + 1;
@KV@            if ($value$plusargs("kv=%s", kv_file)) begin
@KV@                kv_dump = $fopen(kv_file, "w");
@KV@                for (kv_n = KV_FRONT; kv_n < KV_FRONT + KV_WORDS; kv_n = kv_n + 1) $fwrite(kv_dump, "%h\n", u_kv_ram.mem[kv_n]);
@KV@                $fclose(kv_dump);
@KV@            end
@KV@        end
@KV@    endtask

    // ---- the host: one register access at a time. It acts at the falling edge, so that no simulator's order of events matters.
    reg host_go = 0, host_write = 0, host_busy = 0, host_done = 0;
    reg [11:0] host_address = 0;
    reg [31:0] host_data = 0, host_random = 1;
    wire host_stalls = (host_random[15:0] * 100 >> 16) < stall_host;      // it offers nothing now, and takes no answer
    always @(posedge clk) begin
        host_done <= 0;
        if (rst) host_random <= seed ^ 32'h5bd1_e995;
        else if (stall_host != 0) begin
            host_random <= {host_random[30:0], host_random[31] ^ host_random[21] ^ host_random[1] ^ host_random[0]};
            if (host_busy) begin bready <= host_write && !host_stalls; rready <= !host_write && !host_stalls; end
        end
        if (host_go && !host_busy && !host_done && !host_stalls) begin
            host_busy <= 1;
            awaddr <= host_address; wdata <= host_data; awvalid <= host_write; wvalid <= host_write; bready <= host_write;
            araddr <= host_address; arvalid <= !host_write; rready <= !host_write;
        end
        if (awvalid && awready) awvalid <= 0;
        if (wvalid && wready) wvalid <= 0;
        if (arvalid && arready) arvalid <= 0;
        if ((bvalid && bready) || (rvalid && rready)) begin
            bready <= 0; rready <= 0; host_busy <= 0; host_done <= 1;
            value <= rdata;
        end
    end
    task access(input is_write, input [11:0] address, input [31:0] data);
        begin
            host_write = is_write; host_address = address; host_data = data; host_go = 1;
            @(negedge clk); while (!host_done) @(negedge clk);
            host_go = 0;
        end
    endtask
    task write(input [11:0] address, input [31:0] data); access(1'b1, address, data); endtask
    task read(input [11:0] address); access(1'b0, address, 32'd0); endtask

@JOBS@    // orders the next job, if there is room for it
@JOBS@    task order_next;
@JOBS@        if (ordered == jobs) @(negedge clk);
@JOBS@        else begin
@JOBS@            read(12'h028);
@JOBS@            if (value != 0) begin
@JOBS@                write(12'h020, order[ordered][47:16]);
@JOBS@                write(12'h024, {order[ordered][63:48], order[ordered][15:0]});
@JOBS@                ordered = ordered + 1;
@JOBS@            end
@JOBS@        end
@JOBS@    endtask

    always @(posedge clk) begin
        cycle <= cycle + 1;
        if (in_tvalid && in_tready && !started) begin started <= 1; start <= cycle; end
        quiet <= !go || (in_tvalid && in_tready) || (out_tvalid && out_tready) || (m_rvalid && m_rready) ? 0 : quiet + 1;
        quiet_ram <= m_rvalid && m_rready ? 0 : quiet_ram + 1;
        if (progress != 0 && cycle >= due) begin
            due <= cycle + progress;
            $display("MLO AT %0d", cycle);
            $fflush;
        end
    end

    integer busy [0:255], starved [0:255], blocked [0:255], counted [0:2];
    reg over = 0;                       // the run is: the trace may end
    // beats on the read channel while a frame is inside, as the counters see it
    integer channel_busy = 0;
    always @(posedge clk) if (u_top.u_regs.counts && m_rvalid && m_rready) channel_busy <= channel_busy + 1;
    initial begin
        if (!$value$plusargs("seed=%d", seed)) seed = 1;
        if (!$value$plusargs("stall=%d", stall)) stall = 0;
        if (!$value$plusargs("stall_source=%d", stall_source)) stall_source = stall;
        if (!$value$plusargs("stall_mask=%d", stall_mask)) stall_mask = stall;
        if (!$value$plusargs("stall_sink=%d", stall_sink)) stall_sink = stall;
        if (!$value$plusargs("stall_memory=%d", stall_memory)) stall_memory = stall;
        if (!$value$plusargs("stall_host=%d", stall_host)) stall_host = 0;
        if (!$value$plusargs("latency=%d", latency)) latency = DEFAULT_LATENCY;
        if (!$value$plusargs("rate=%d", rate)) rate = DEFAULT_RATE;
        if (!$value$plusargs("fault=%d", fault)) fault = 0;
        if (!$value$plusargs("beats=%d", beats)) beats = DEFAULT_BEATS;
        if (!$value$plusargs("mask_beats=%d", mask_beats)) mask_beats = DEFAULT_MASK_BEATS;
        if (MASKED == 0) mask_beats = 0;
@REPLAY@        if (!$value$plusargs("replay_beats=%d", replay_beats)) replay_beats = DEFAULT_REPLAY_BEATS;
@REPLAY_MASK@        if (!$value$plusargs("replay_mask_beats=%d", replay_mask_beats)) replay_mask_beats = DEFAULT_REPLAY_MASK_BEATS;
@REPLAY@        if (!$value$plusargs("replay=%s", replay_file)) replay_file = "tb/replay.hex";
@REPLAY_MASK@        if (!$value$plusargs("replay_mask=%s", replay_mask_file)) replay_mask_file = "tb/replay_mask.hex";
        if (!$value$plusargs("iterations=%d", iterations)) iterations = DEFAULT_ITERATIONS;
        if (!$value$plusargs("frames_in_flight=%d", frames_in_flight)) frames_in_flight = DEFAULT_FRAMES;
        if (!$value$plusargs("timeout=%d", timeout)) timeout = DEFAULT_TIMEOUT;
        if (!$value$plusargs("progress=%d", progress)) progress = 0;
        if (!$value$plusargs("input=%s", input_file)) input_file = "tb/input.hex";
        if (!$value$plusargs("golden=%s", golden_file)) golden_file = "tb/golden.hex";
        if (!$value$plusargs("mask=%s", mask_file)) mask_file = "tb/mask.hex";
        if (!$value$plusargs("params=%s", params_file)) params_file = "params.hex";
        if ($value$plusargs("wave=%s", wave_file)) begin $dumpfile(wave_file); $dumpvars(0, mlo_tb); end
        probe = 0;
        if ($value$plusargs("probe=%s", probe_file)) probe = $fopen(probe_file, "w");
        trace = 0;
        if ($value$plusargs("trace=%s", trace_file)) trace = $fopen(trace_file, "w");
        if (trace != 0) trace_streams;
        $readmemh(input_file, u_source.mem, 0, beats - 1);
@JOBS@        if (!$value$plusargs("jobs=%d", jobs)) jobs = DEFAULT_JOBS;
@JOBS@        if (!$value$plusargs("orders=%s", orders_file)) orders_file = "tb/jobs.hex";
@JOBS@        $readmemh(orders_file, order, 0, jobs - 1);
        out_beats = @OUT_BEATS@;
@HEAD@        if ($value$plusargs("words=%d", k)) out_beats = k;
        $readmemh(golden_file, u_sink.mem, 0, out_beats - 1);
        if (MASKED != 0) $readmemh(mask_file, u_mask.mem, 0, mask_beats - 1);
@REPLAY@        $readmemh(replay_file, u_replay.mem, 0, replay_beats - 1);
@REPLAY_MASK@        $readmemh(replay_mask_file, u_replay_mask.mem, 0, replay_mask_beats - 1);
        $readmemh(params_file, u_ram.mem);
@KV@        if (!$value$plusargs("kv_fault_r=%d", kv_fault_r)) kv_fault_r = 0;
@KV@        if (!$value$plusargs("kv_fault_b=%d", kv_fault_b)) kv_fault_b = 0;
@KV@        for (k = 0; k < KV_WORDS + 2 * KV_FRONT; k = k + 1) u_kv_ram.mem[k] = canary(k);
@GIVEN@        if (!$value$plusargs("kept=%s", kept_file)) kept_file = "tb/kept.hex";
@GIVEN@        $readmemh(kept_file, kept);
@PAST@        if (!$value$plusargs("past=%s", past_file)) past_file = "tb/past.hex";
@PAST@        $readmemh(past_file, past);
@PAST@        for (k = 0; k < @DEEPEST@*2*PAST*KV_ROW; k = k + 1)
@PAST@            u_kv_ram.mem[KV_FRONT + k / (PAST * KV_ROW) * TOKENS * KV_ROW + k % (PAST * KV_ROW)] = past[k];
        repeat (4) @(negedge clk);
        rst = 0;
        repeat (4) @(negedge clk);
        write(12'h010, 32'h4000_0000);
        write(12'h014, 0);
@KV@        write(12'h02c, 32'h8000_0000 + KV_FRONT * AXI / 8);
@KV@        write(12'h030, 0);
        write(12'h018, iterations);
        write(12'h01c, frames_in_flight);
        write(12'h008, 2);          // a soft reset, 16 cycles: parameters may have been asked for by what stood there before
        repeat (20) @(negedge clk);
@HEAD@        if ($value$plusargs("stop=%d", k)) write(12'h05c, k);
@JOBS@        while (ordered < jobs && ordered < 4) order_next;
        write(12'h008, 1);
        go = 1;
@NO_JOBS@        while (!done && errors == 0 && breaches == 0 && quiet < timeout) @(negedge clk);
@JOBS@        while (!done && errors == 0 && breaches == 0 && quiet < timeout) order_next;
        // registers first: the counters go on counting
        for (k = 0; k < KERNELS; k = k + 1) begin
            read(12'h080 + 16 * k); busy[k] = value;
            read(12'h084 + 16 * k); starved[k] = value;
            read(12'h088 + 16 * k); blocked[k] = value;
        end
        for (k = 0; k < 3; k = k + 1) begin read(12'h040 + 4 * k); counted[k] = value; end
        over = 1; @(negedge clk); over = 0;
        repeat (200) @(negedge clk);            // a surplus word would come now
        for (f = 0; f < frames && f < 256; f = f + 1) $display("MLO FRAME %0d %0d", f, u_sink.frame_done[f] - start + 1);
        for (k = 0; k < KERNELS; k = k + 1) $display("MLO KERNEL %0d %0d %0d %0d", k, busy[k], starved[k], blocked[k]);
        $display("MLO COUNTERS %0d %0d %0d", counted[0], counted[1], counted[2]);
        $display("MLO WEIGHTS %0d", ram_beats);
        $display("MLO CHANNEL %0d %0d", channel_busy, rate);
        // loading ahead comes to an end: the count of beats is then that of the iterations
        if (done && errors == 0) while (quiet_ram < 1200 + 2 * latency) @(negedge clk);
        read(12'h048);
        $display("MLO BEATS %0d", value);
@KV@        while (kv_owing != 0) @(negedge clk);
@KV@        check_kv;
@KV@        read(12'h04c); counted[0] = value;
@KV@        read(12'h050); counted[1] = value;
@KV@        $display("MLO KV %0d %0d", counted[0], counted[1]);
        read(12'h00c);
        if (probe != 0) $fclose(probe);
        if (trace != 0) begin $fwrite(trace, "B %0d\n", start); $fclose(trace); end
        say_fifos;
        if (errors == 0 && breaches == 0 && !value[1] && !done) say_waits;
        if (value[1]) begin
            $display("MLO FAIL bus error: memory answered with an error (status register, bit 1)");
            $fatal;
@JOBS@        end else if (value[2] || value[4]) begin
@JOBS@            $display("MLO FAIL job: %0s (status register, bits 2 and 4)", value[2] ? "one was refused" : "one had not the tokens it was ordered for");
@JOBS@            $fatal;
        end else if (errors != 0) begin
@DIFFERS@
            $fatal;
@KV@        end else if (kv_spoilt != 0 || counted[0] != kv_read || counted[1] != kv_written) begin
@KV@            $display("MLO FAIL keys and values: %0d words of memory are not as they must be; %0d of %0d beats read, %0d of %0d written", kv_spoilt, counted[0], kv_read, counted[1], kv_written);
@KV@            $fatal;
@GIVEN@        end else if (done && kept_good != KV_WORDS) begin
@GIVEN@            $display("MLO FAIL keys and values: %0d of %0d words that the frame left in memory are not what they must be", KV_WORDS - kept_good, KV_WORDS);
@GIVEN@            $fatal;
        end else if (breaches != 0) begin
            $display("MLO FAIL protocol: %0d breaches of AXI", breaches);
            $fatal;
        end else if (!done) begin
            $display("MLO FAIL missing: %0d of %0d words came; nothing moved for %0d cycles (in %0d of %0d, memory %0d beats)", seen, out_beats, quiet, in_sent, beats, ram_beats);
            $fatal;
        end else begin
@GIVEN@            $display("MLO KEPT %0d", kept_good);
            $display("MLO PASS words %0d cycles %0d", seen, u_sink.frame_done[(frames > 256 ? 256 : frames) - 1] - start + 1);
            $finish;
        end
    end
@NO_MASK@    assign mask_tready = 1'b1;

    // ---- a judge on every port: each breach of AXI is a line PROTOCOL ..
    wire [31:0] breaches_in, breaches_mask, breaches_out, breaches_axi, breaches_axil;
    wire [31:0] breaches = breaches_in + breaches_mask + breaches_out + breaches_axi + breaches_axil + breaches_replay + breaches_replay_mask@KV_BREACHES@;
    wire owing;
    mlo_sim_check_axis #(.WIDTH(IN), .BEATS(TOKEN_BEATS), .TOKENS(TOKENS), .PORT("s_axis")) u_check_in (.clk(clk), .rst(rst), .cycle(cycle), .broken(), .breaches(breaches_in),
        .tdata(in_tdata), .tvalid(in_tvalid), .tready(in_tready), .tlast(in_tlast));
    mlo_sim_check_axis #(.WIDTH(8), .BEATS(1), .TOKENS(TOKENS), .PORT("s1_axis")) u_check_mask (.clk(clk), .rst(rst), .cycle(cycle), .broken(), .breaches(breaches_mask),
        .tdata(mask_tdata), .tvalid(mask_tvalid), .tready(mask_tready), .tlast(mask_tlast));
@REPLAY@    mlo_sim_check_axis #(.WIDTH(REPLAY_IO), .BEATS(@REPLAY_TOKEN_BEATS@), .TOKENS(@REPLAY_TOKENS@), .PORT("s2_axis")) u_check_replay (.clk(clk), .rst(rst), .cycle(cycle), .broken(), .breaches(breaches_replay),
@REPLAY@        .tdata(replay_tdata), .tvalid(replay_tvalid), .tready(replay_tready), .tlast(replay_tlast));
@REPLAY_MASK@    mlo_sim_check_axis #(.WIDTH(8), .BEATS(1), .TOKENS(@REPLAY_TOKENS@), .PORT("s3_axis")) u_check_replay_mask (.clk(clk), .rst(rst), .cycle(cycle), .broken(), .breaches(breaches_replay_mask),
@REPLAY_MASK@        .tdata(replay_mask_tdata), .tvalid(replay_mask_tvalid), .tready(replay_mask_tready), .tlast(replay_mask_tlast));
    mlo_sim_check_axis #(.WIDTH(OUT), .BEATS(@OUT_TOKEN_BEATS@), .TOKENS(@OUT_TOKENS@), .PORT("m_axis"), .SETTLE(2)) u_check_out (.clk(clk), .rst(rst), .cycle(cycle), .broken(), .breaches(breaches_out),
        .tdata(out_tdata), .tvalid(out_tvalid), .tready(out_tready), .tlast(out_tlast));
    mlo_sim_check_axi #(.DATA_WIDTH(AXI), .BURST(64), .PORT_AR("m_axi_ar"), .PORT_R("m_axi_r")) u_check_axi (.clk(clk), .rst(rst), .cycle(cycle), .asked(), .sent(), .breaches(breaches_axi),
        .owing(owing), .arid(arid), .araddr(m_araddr), .arlen(m_arlen), .arsize(m_arsize), .arburst(m_arburst), .arvalid(m_arvalid), .arready(m_arready),
        .rid(rid), .rdata(m_rdata), .rresp(m_rresp), .rlast(m_rlast), .rvalid(m_rvalid), .rready(m_rready));
    mlo_sim_check_lite u_check_axil (.clk(clk), .rst(rst), .cycle(cycle), .host(), .slave(), .breaches(breaches_axil), .awaddr(awaddr), .awvalid(awvalid), .awready(awready),
        .wdata(wdata), .wstrb(4'hf), .wvalid(wvalid), .wready(wready), .bresp(bresp), .bvalid(bvalid), .bready(bready), .araddr(araddr), .arvalid(arvalid), .arready(arready),
        .rdata(rdata), .rresp(rresp), .rvalid(rvalid), .rready(rready));
@INSIDE@
endmodule
