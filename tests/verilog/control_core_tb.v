// SPDX-License-Identifier: MIT
// A whole core without kernels: regs, loader, memory, entry, loop, feedback FIFO, exit.  The body is the
// model at the end of this file: like attention it lets a frame out when it has seen all of it, and it
// computes x -> 3x + p0 + 5*p1 with the two parameter words of the iteration.
`default_nettype none
module control_core_tb;
    parameter C = 4;
    parameter LANES = 2;
    parameter T = 4;                 // longest frame, tokens
    parameter DEEPEST = 65535;
    parameter G = 2;                 // frames in flight
    parameter CONTEXT = 0, SLOTS = 1;       // not 0: mlo_job before the doors
    parameter BODY = 2;              // frames that the body holds
    parameter FEEDBACK = (G > 1) ? (G - 1) * T : 1;     // tokens
    localparam BITS = 8;
    localparam W = LANES * BITS;
    localparam BEATS = C / LANES;
    localparam P0 = 1, P1 = 3;       // beats per iteration (of port 1 the last one counts)
    localparam [63:0] PARAMS = {P1[31:0], P0[31:0]};

    reg clk = 0, rst = 1, go = 0;
    always #5 clk = !clk;
    reg [31:0] cycle = 0;
    always @(posedge clk) cycle <= cycle + 1;
    integer seed, stall_in, stall_out, stall_ram, latency, count, iterations, frames;

    // ------------------------------------------------------------------ registers
    reg  [11:0] awaddr = 0, araddr = 0;
    reg  [31:0] wdata = 0;
    reg  awvalid = 0, wvalid = 0, bready = 0, arvalid = 0, rready = 0;
    wire awready, wready, bvalid, arready, rvalid;
    wire [1:0] bresp, rresp;
    wire [31:0] rdata;
    wire core_rst, enable, beat, bus_error, ram_idle;
    wire [63:0] base;
    wire [15:0] iterations_r;
    wire [7:0] frames_r;
    wire [2:0] stat;
    wire a_valid, a_ready, a_last, x_valid, x_ready, x_last;
    wire [W-1:0] a_data, x_data;
    wire job_push, job_refused, job_mismatch, d_valid, d_ready, d_last;     // d: behind mlo_job
    wire [7:0] job_slot, job_room;
    wire [23:0] job_start;
    wire [15:0] job_tokens;
    wire [W-1:0] d_data;

    mlo_regs #(.KERNELS(2), .ITERATIONS(7), .DEEPEST(DEEPEST), .FRAMES(G), .VERSION(32'h0001_0203), .CONTEXT(CONTEXT), .SLOTS(SLOTS)) u_regs (
        .clk(clk), .rst(rst),
        .s_axil_awaddr(awaddr), .s_axil_awvalid(awvalid), .s_axil_awready(awready), .s_axil_wdata(wdata), .s_axil_wstrb(4'hF),
        .s_axil_wvalid(wvalid), .s_axil_wready(wready), .s_axil_bresp(bresp), .s_axil_bvalid(bvalid), .s_axil_bready(bready),
        .s_axil_araddr(araddr), .s_axil_arvalid(arvalid), .s_axil_arready(arready), .s_axil_rdata(rdata), .s_axil_rresp(rresp),
        .s_axil_rvalid(rvalid), .s_axil_rready(rready),
        .core_rst(core_rst), .enable(enable), .base(base), .iterations(iterations_r), .frames(frames_r),
        .in_beat(d_valid && d_ready), .in_last(d_last), .out_last(x_valid && x_ready && x_last), .param_beat(beat), .bus_error(bus_error),
        .stat({stat, 3'b000}), .job_push(job_push), .job_slot(job_slot), .job_start(job_start), .job_tokens(job_tokens), .job_more(), .stop(),
        .job_room(job_room), .job_refused(job_refused), .job_mismatch(job_mismatch));

    // The host acts at the falling edge, where nothing else does: no race in any simulator.
    reg [1:0] response;
    task write(input [11:0] address, input [31:0] value);
        begin
            @(negedge clk);
            awaddr = address; wdata = value; awvalid = 1; wvalid = 1; bready = 1;
            #1 while (!awready) @(negedge clk);
            @(negedge clk);
            awvalid = 0; wvalid = 0;
            while (!bvalid) @(negedge clk);
            response = bresp;
            @(negedge clk);
            bready = 0;
        end
    endtask
    reg [31:0] value;
    task read(input [11:0] address);
        begin
            @(negedge clk);
            araddr = address; arvalid = 1; rready = 1;
            #1 while (!arready) @(negedge clk);
            @(negedge clk);
            arvalid = 0;
            while (!rvalid) @(negedge clk);
            value = rdata;
            @(negedge clk);
            rready = 0;
        end
    endtask
    integer bad = 0;
    task expect_read(input [11:0] address, input [31:0] expected);
        begin
            read(address);
            if (value !== expected) begin
                bad = bad + 1;
                $display("register %h: %0d, expected %0d", address, value, expected);
            end
        end
    endtask
    task expect_response(input [1:0] expected);
        if (response !== expected) begin
            bad = bad + 1;
            $display("write response %b, expected %b", response, expected);
        end
    endtask

    // ------------------------------------------------------------------ parameters
    wire arid, rid, m_arvalid, m_arready, m_rlast, m_rvalid, m_rready;
    wire [63:0] m_araddr;
    wire [7:0] m_arlen;
    wire [2:0] m_arsize;
    wire [1:0] m_arburst, m_rresp;
    wire [127:0] m_rdata, p_data;
    wire [47:0] total;
    wire [1:0] p_valid, p_ready;
    wire [31:0] ram_beats, breaches_m, breaches_l, breaches_a, breaches_x;
    wire [8:0] asked;
    wire [6:0] answered;
    wire [11:0] broken_host;
    wire [9:0] broken_slave;
    wire [4:0] broken_a, broken_x;
    wire owing;
    mlo_loader #(.PORTS(2), .BEATS(PARAMS), .FIFO_BEATS(64), .MAX_BURST(16)) u_loader (
        .clk(clk), .rst(rst), .flush(core_rst), .enable(enable), .base(base), .iterations(iterations_r), .beat(beat), .error(bus_error), .idle(ram_idle), .total(total),
        .m_axi_arid(arid), .m_axi_araddr(m_araddr), .m_axi_arlen(m_arlen), .m_axi_arsize(m_arsize), .m_axi_arburst(m_arburst),
        .m_axi_arvalid(m_arvalid), .m_axi_arready(m_arready), .m_axi_rid(rid), .m_axi_rdata(m_rdata), .m_axi_rresp(m_rresp),
        .m_axi_rlast(m_rlast), .m_axi_rvalid(m_rvalid), .m_axi_rready(m_rready),
        .m_axis_tdata(p_data), .m_axis_tvalid(p_valid), .m_axis_tready(p_ready));
    mlo_sim_ram #(.DEPTH(4096), .FILE("ram.hex")) u_ram (
        .clk(clk), .rst(rst), .seed(seed + 3), .stall(stall_ram), .latency(latency), .rate(0), .base(64'h1_2345_6000), .beats(ram_beats),
        .write(16'd0), .write_word(64'd0), .write_data(128'd0),
        .s_axi_arid(arid), .s_axi_araddr(m_araddr), .s_axi_arlen(m_arlen), .s_axi_arsize(m_arsize), .s_axi_arburst(m_arburst),
        .s_axi_arvalid(m_arvalid), .s_axi_arready(m_arready), .s_axi_rid(rid), .s_axi_rdata(m_rdata), .s_axi_rresp(m_rresp),
        .s_axi_rlast(m_rlast), .s_axi_rvalid(m_rvalid), .s_axi_rready(m_rready));

    // ------------------------------------------------------------------ activations
    wire [31:0] sent, seen, errors, index, frames_seen;
    wire in_done, done;
    wire [W:0] expected, got;
    mlo_sim_source #(.WIDTH(W), .DEPTH(4096), .FILE("in.hex")) u_source (
        .clk(clk), .rst(rst || core_rst), .enable(go), .seed(seed), .stall(stall_in), .count(count_in), .sent(sent), .done(in_done),
        .m_axis_tdata(a_data), .m_axis_tvalid(a_valid), .m_axis_tready(a_ready), .m_axis_tlast(a_last));
    mlo_sim_sink #(.WIDTH(W), .DEPTH(4096), .FILE("out.hex")) u_sink (
        .clk(clk), .rst(rst || core_rst), .seed(seed + 1), .stall(stall_out), .count(count), .cycle(cycle), .seen(seen), .errors(errors),
        .error_index(index), .error_expected(expected), .error_got(got), .frames(frames_seen), .done(done),
        .s_axis_tdata(x_data), .s_axis_tvalid(x_valid), .s_axis_tready(x_ready), .s_axis_tlast(x_last));

    wire [W-1:0] e_data, i_data, o_data, f_data, g_data, y_data;
    wire [2:0] e_user, i_user, o_user, f_user, g_user, y_user;
    wire e_valid, e_ready, i_valid, i_ready, o_valid, o_ready, f_valid, f_ready, g_valid, g_ready, y_valid, y_ready, s1_ready;
    generate
        if (CONTEXT != 0) begin : cache
            wire begins, k_valid, k_last, k_ready;
            wire [7:0] k_data;
            wire [15:0] start, bank;
            mlo_job #(.CONTEXT(CONTEXT), .SLOTS(SLOTS), .DEEPEST(12), .BEATS(BEATS), .WIDTH(W)) u_job (
                .clk(clk), .rst(core_rst), .push(job_push), .push_slot(job_slot), .push_start(job_start), .push_tokens(job_tokens), .room(job_room),
                .s_axis_tdata(a_data), .s_axis_tvalid(a_valid), .s_axis_tready(a_ready), .s_axis_tlast(a_last),
                .s1_axis_tdata(8'd0), .s1_axis_tvalid(1'b0), .s1_axis_tready(k_ready), .s1_axis_tlast(1'b0),
                .m_axis_tdata(d_data), .m_axis_tvalid(d_valid), .m_axis_tready(d_ready), .m_axis_tlast(d_last),
                .m1_axis_tdata(k_data), .m1_axis_tvalid(k_valid), .m1_axis_tready(1'b0), .m1_axis_tlast(k_last),
                .out_last(x_valid && x_ready && x_last), .job_begin(begins), .job_start(start), .job_bank(bank), .refused(job_refused), .mismatch(job_mismatch));
        end else begin : no_cache
            assign {d_valid, d_last, d_data} = {a_valid, a_last, a_data};
            assign a_ready = d_ready;
            assign {job_room, job_refused, job_mismatch} = 10'h3ff;       // not looked at
        end
    endgenerate
    mlo_entry #(.C(C), .LANES(LANES), .BITS(BITS)) u_entry (
        .clk(clk), .rst(core_rst),
        .s_axis_tdata(d_data), .s_axis_tvalid(d_valid), .s_axis_tready(d_ready), .s_axis_tlast(d_last),
        .s1_axis_tdata(8'd0), .s1_axis_tvalid(1'b0), .s1_axis_tready(s1_ready), .s1_axis_tlast(1'b0),
        .m_axis_tdata(e_data), .m_axis_tvalid(e_valid), .m_axis_tready(e_ready), .m_axis_tuser(e_user));
    wire unused_turn, unused_round;
    mlo_loop #(.WIDTH(W), .BEATS(BEATS)) u_loop (
        .turn_valid(unused_turn), .turn_ready(1'b1), .turn_round(unused_round),
        .clk(clk), .rst(core_rst), .iterations(iterations_r), .frames(frames_r),
        .s_ext_tdata(e_data), .s_ext_tvalid(e_valid), .s_ext_tready(e_ready), .s_ext_tuser(e_user),
        .m_body_tdata(i_data), .m_body_tvalid(i_valid), .m_body_tready(i_ready), .m_body_tuser(i_user),
        .s_body_tdata(o_data), .s_body_tvalid(o_valid), .s_body_tready(o_ready), .s_body_tuser(o_user),
        .m_fb_tdata(f_data), .m_fb_tvalid(f_valid), .m_fb_tready(f_ready), .m_fb_tuser(f_user),
        .s_fb_tdata(g_data), .s_fb_tvalid(g_valid), .s_fb_tready(g_ready), .s_fb_tuser(g_user),
        .m_ext_tdata(y_data), .m_ext_tvalid(y_valid), .m_ext_tready(y_ready), .m_ext_tuser(y_user));
    localparam FB = FEEDBACK * BEATS;
    wire [$clog2(FB+1)-1:0] level;
    mlo_fifo #(.WIDTH(W+3), .DEPTH(FB)) u_feedback (
        .clk(clk), .rst(core_rst), .s_tdata({f_user, f_data}), .s_tvalid(f_valid), .s_tready(f_ready),
        .m_tdata({g_user, g_data}), .m_tvalid(g_valid), .m_tready(g_ready), .level(level));
    control_body #(.LANES(LANES), .BITS(BITS), .BEATS(BEATS), .DEPTH(BODY * T * BEATS), .P0(P0), .P1(P1)) u_body (
        .clk(clk), .rst(core_rst), .stat(stat),
        .s_axis_tdata(i_data), .s_axis_tvalid(i_valid), .s_axis_tready(i_ready), .s_axis_tuser(i_user),
        .m_axis_tdata(o_data), .m_axis_tvalid(o_valid), .m_axis_tready(o_ready), .m_axis_tuser(o_user),
        .p_data(p_data), .p_valid(p_valid), .p_ready(p_ready));
    mlo_exit #(.C(C), .LANES(LANES), .BITS(BITS)) u_exit (
        .clk(clk), .rst(core_rst),
        .s_axis_tdata(y_data), .s_axis_tvalid(y_valid), .s_axis_tready(y_ready), .s_axis_tuser(y_user),
        .m_axis_tdata(x_data), .m_axis_tvalid(x_valid), .m_axis_tready(x_ready), .m_axis_tlast(x_last));

    // ------------------------------------------------------------------ judges
    mlo_sim_check_axi u_check_m (
        .clk(clk), .rst(rst), .cycle(cycle), .arid(arid), .araddr(m_araddr), .arlen(m_arlen), .arsize(m_arsize), .arburst(m_arburst), .arvalid(m_arvalid), .arready(m_arready),
        .rid(rid), .rdata(m_rdata), .rresp(m_rresp), .rlast(m_rlast), .rvalid(m_rvalid), .rready(m_rready), .asked(asked), .sent(answered), .breaches(breaches_m), .owing(owing));
    mlo_sim_check_lite u_check_l (
        .clk(clk), .rst(rst), .cycle(cycle), .awaddr(awaddr), .awvalid(awvalid), .awready(awready), .wdata(wdata), .wstrb(4'hF), .wvalid(wvalid), .wready(wready),
        .bresp(bresp), .bvalid(bvalid), .bready(bready), .araddr(araddr), .arvalid(arvalid), .arready(arready), .rdata(rdata), .rresp(rresp), .rvalid(rvalid), .rready(rready),
        .host(broken_host), .slave(broken_slave), .breaches(breaches_l));
    mlo_sim_check_axis #(.WIDTH(W), .BEATS(BEATS), .TOKENS(CONTEXT != 0 ? 64 : T), .PORT("s_axis")) u_check_a (.clk(clk), .rst(rst || core_rst), .cycle(cycle),
        .tdata(a_data), .tvalid(a_valid), .tready(a_ready), .tlast(a_last), .broken(broken_a), .breaches(breaches_a));
    mlo_sim_check_axis #(.WIDTH(W), .BEATS(BEATS), .TOKENS(T), .SETTLE(2), .PORT("m_axis")) u_check_x (.clk(clk), .rst(rst || core_rst), .cycle(cycle),
        .tdata(x_data), .tvalid(x_valid), .tready(x_ready), .tlast(x_last), .broken(broken_x), .breaches(breaches_x));

    // ------------------------------------------------------------------ own counts
    reg counting = 0;
    integer first_in = -1, last_out = -1, busy = 0, starved = 0, blocked = 0, firsts = 0, params = 0;
    always @(posedge clk) if (core_rst) begin
        first_in = -1; last_out = -1; busy = 0; starved = 0; blocked = 0; firsts = 0; params = 0;
    end else begin
        if (d_valid && d_ready && first_in < 0) first_in = cycle;
        if (first_in >= 0 && !(done && seen == count)) begin
            busy = busy + stat[0]; starved = starved + stat[1]; blocked = blocked + stat[2];
        end
        if (x_valid && x_ready) last_out = cycle;
        if ((p_valid & p_ready) != 0) params = params + 1;
        if (i_valid && i_ready && i_user[0]) firsts = firsts + 1;
    end

    // ------------------------------------------------------------------ jobs: {slot, start, tokens}, pushed where there is room
    reg  [47:0] job [0:255];
    integer     jobs, pushed = 0, status, count_in;
    task push_job;
        begin
            read(12'h028);
            if (value > 4) begin bad = bad + 1; $display("room for %0d jobs", value); end
            if (value != 0 && pushed < jobs) begin
                write(12'h020, job[pushed][47:16]);         expect_response(2'b00);
                write(12'h024, {16'd0, job[pushed][15:0]}); expect_response(2'b00);
                pushed = pushed + 1;
            end
        end
    endtask
    task expect_jobs;                       // before any frame: the queue takes 4, and another one that has begun; a reset forgets them
        integer k;
        begin
            expect_read(12'h03C, {SLOTS[7:0], CONTEXT[23:0]});
            write(12'h020, 32'h0500_0007); expect_response(2'b00); expect_read(12'h020, 32'h0500_0007);
            write(12'h020, 32'h0000_0000); expect_response(2'b00); expect_read(12'h020, 0);
            expect_read(12'h028, 4);
            for (k = 0; k < 5; k = k + 1) begin
                write(12'h024, 1); expect_response(2'b00);
                repeat (6) @(negedge clk);
            end
            expect_read(12'h028, 0);
            write(12'h024, 1); expect_response(2'b10);
            expect_read(12'h024, 0);
            write(12'h008, 2);
            write(12'h024, 1); expect_response(2'b10);          // nothing is pushed during a reset
            while (core_rst) @(negedge clk);
            expect_read(12'h028, 4);
        end
    endtask
    task expect_no_jobs;
        begin
            write(12'h020, 5); expect_response(2'b10); expect_read(12'h020, 0);
            write(12'h024, 5); expect_response(2'b10); expect_read(12'h024, 0);
            write(12'h03C, 5); expect_response(2'b10); expect_read(12'h03C, 0);
            expect_read(12'h028, 0);
        end
    endtask

    integer f, interval, n, gaps, stuck;
    initial begin
        if (!$value$plusargs("jobs=%d", jobs)) jobs = 0;
        if (!$value$plusargs("status=%d", status)) status = 0;
        if (jobs != 0) $readmemh("jobs.hex", job, 0, jobs - 1);
        if (!$value$plusargs("seed=%d", seed)) seed = 1;
        if (!$value$plusargs("stall_in=%d", stall_in)) stall_in = 0;
        if (!$value$plusargs("stall_out=%d", stall_out)) stall_out = 0;
        if (!$value$plusargs("stall_ram=%d", stall_ram)) stall_ram = 0;
        if (!$value$plusargs("latency=%d", latency)) latency = 10;
        if (!$value$plusargs("count=%d", count)) count = 0;
        if (!$value$plusargs("count_in=%d", count_in)) count_in = count;
        if (!$value$plusargs("iterations=%d", iterations)) iterations = 2;
        if (!$value$plusargs("frames=%d", frames)) frames = G;
        if (!$value$plusargs("gaps=%d", gaps)) gaps = 0;
        repeat (4) @(negedge clk);
        rst = 0;
        repeat (4) @(negedge clk);
        expect_read(12'h000, 32'h4D4C4F31);
        expect_read(12'h004, 32'h00010203);
        expect_read(12'h018, 7);
        expect_read(12'h01C, G);
        write(12'h01C, 200); expect_response(2'b00); expect_read(12'h01C, G);
        write(12'h01C, 0);                           expect_read(12'h01C, 1);
        write(12'h018, 0);                           expect_read(12'h018, 1);
        if (DEEPEST == 65535) begin
            write(12'h018, 70000); expect_response(2'b00); expect_read(12'h018, 65535);
        end else begin                                      // more than the memories hold: refused
            write(12'h018, DEEPEST);     expect_response(2'b00); expect_read(12'h018, DEEPEST);
            write(12'h018, DEEPEST + 1); expect_response(2'b10); expect_read(12'h018, DEEPEST);
            write(12'h018, 70000);       expect_response(2'b10); expect_read(12'h018, DEEPEST);
        end
        write(12'h000, 5);   expect_response(2'b10); expect_read(12'h000, 32'h4D4C4F31);
        write(12'h200, 5);   expect_response(2'b10); expect_read(12'h200, 0);
        write(12'h010, 32'h2345_6000);               expect_read(12'h010, 32'h2345_6000);
        write(12'h014, 32'h0000_0001);               expect_read(12'h014, 32'h0000_0001);
        write(12'h018, iterations);
        write(12'h01C, frames);
        expect_read(12'h00C, 0);
        if (CONTEXT != 0) expect_jobs;
        else expect_no_jobs;
        // Start, let a few frames in, and reset in the middle of it all: the second start must not notice.
        for (n = 0; n < 2; n = n + 1) begin
            write(12'h008, 3);
            @(negedge clk); while (core_rst) @(negedge clk);
            go = 1;
            if (n == 0) begin
                push_job;
                push_job;
                repeat (40 + (seed & 63)) @(negedge clk);
                go = 0;
                pushed = 0;
            end
        end
        // stuck=1: the feedback is too short, so it must come to a stop (the frames inside stay inside)
        if (!$value$plusargs("stuck=%d", stuck)) stuck = 0;
        if (stuck != 0) begin
            repeat (3000) @(negedge clk);
            if (done || errors != 0) $display("FAIL does not stop");
            else $display("PASS seen=%0d", seen);
            $finish;
        end
        f = 0;
        while (!(done && errors == 0 && f >= 60) && errors == 0 && cycle < 200000) begin
            @(negedge clk);
            if (pushed < jobs) push_job;
            if (done && in_done) f = f + 1;
            if (gaps != 0) go = (cycle[9:0] > gaps);           // the outside falls silent for a while
        end
        if (!done || errors != 0) begin
            $display("seen %0d of %0d, errors %0d, first %0d expected %h got %h", seen, count, errors, index, expected, got);
            bad = bad + 1;
        end else begin
            if (gaps == 0 && jobs == 0) expect_read(12'h040, last_out - first_in + 1);
            expect_read(12'h044, frames_seen);
            n = params;                                         // loading ahead may still go on
            read(12'h048);
            if (value + 2 < n || value > params) begin bad = bad + 1; $display("parameter beats %0d of %0d", value, params); end
            expect_read(12'h080, 0);
            if (gaps == 0 && jobs == 0) expect_read(12'h090, busy);
            if (gaps == 0 && jobs == 0) expect_read(12'h094, starved);
            if (gaps == 0 && jobs == 0) expect_read(12'h098, blocked);
            expect_read(12'h09C, 0);
            expect_read(12'h0A0, 0);
            expect_read(12'h00C, status);
            write(12'h008, 5);
            expect_read(12'h040, 0);
            expect_read(12'h044, 0);
            expect_read(12'h090, 0);
            expect_read(12'h008, 1);
        end
        bad = bad + breaches_m + breaches_l + breaches_a + breaches_x;
        // Steady state: the distance of the ends of the last 2*G frames.
        n = frames_seen;
        interval = (n > 2 * G) ? u_sink.frame_done[n-1] - u_sink.frame_done[n-1-2*G+G] : 0;
        if (bad != 0) $display("FAIL %0d", bad);
        else $display("PASS interval=%0d cycles=%0d firsts=%0d frames=%0d", interval, last_out - first_in + 1, firsts, n);
        $finish;
    end
endmodule

module control_body #(
    parameter LANES = 2, parameter BITS = 8, parameter BEATS = 2, parameter DEPTH = 8, parameter P0 = 1, parameter P1 = 1
) (
    input  wire clk, input wire rst, output reg [2:0] stat,
    input  wire [LANES*BITS-1:0] s_axis_tdata, input wire s_axis_tvalid, output wire s_axis_tready, input wire [2:0] s_axis_tuser,
    output wire [LANES*BITS-1:0] m_axis_tdata, output wire m_axis_tvalid, input wire m_axis_tready, output wire [2:0] m_axis_tuser,
    input  wire [127:0] p_data, input wire [1:0] p_valid, output wire [1:0] p_ready
);
    localparam W = LANES * BITS;
    wire [W-1:0] q_data;
    wire [2:0] q_user;
    wire q_valid, take;
    wire [$clog2(DEPTH+1)-1:0] level;
    mlo_fifo #(.WIDTH(W+3), .DEPTH(DEPTH)) u_fifo (
        .clk(clk), .rst(rst), .s_tdata({s_axis_tuser, s_axis_tdata}), .s_tvalid(s_axis_tvalid), .s_tready(s_axis_tready),
        .m_tdata({q_user, q_data}), .m_tvalid(q_valid), .m_tready(take), .level(level));

    // Two parameter words, each with a spare one that loads ahead.
    reg [7:0] now0, now1, next0, next1;
    reg full0, full1;
    integer n1, in_beat, out_beat, complete;
    assign p_ready = {!full1, !full0};
    wire start = q_user[0] && out_beat == 0;
    wire [7:0] use0 = start ? next0 : now0, use1 = start ? next1 : now1;
    wire ok = q_valid && complete > 0 && (!start || (full0 && full1));
    wire room;
    wire [W-1:0] y;
    genvar i;
    generate for (i = 0; i < LANES; i = i + 1) begin : lane
        assign y[i*BITS +: BITS] = 3 * q_data[i*BITS +: BITS] + use0 + 5 * use1;
    end endgenerate
    assign take = ok && room;
    mlo_skid #(.WIDTH(W+3)) u_skid (.clk(clk), .rst(rst), .s_tdata({q_user, y}), .s_tvalid(ok), .s_tready(room),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));
    wire enters = s_axis_tvalid && s_axis_tready && s_axis_tuser[1] && in_beat == BEATS - 1;
    wire leaves = take && q_user[1] && out_beat == BEATS - 1;
    always @(posedge clk) begin
        stat <= {ok && !room, !ok, take};
        if (p_valid[0] && p_ready[0]) begin next0 <= p_data[7:0]; full0 <= 1; end
        if (p_valid[1] && p_ready[1]) begin next1 <= p_data[7:0]; full1 <= (n1 == P1 - 1); n1 <= (n1 == P1 - 1) ? 0 : n1 + 1; end
        if (take && start) begin now0 <= next0; now1 <= next1; full0 <= 0; full1 <= 0; end
        if (s_axis_tvalid && s_axis_tready) in_beat <= (in_beat == BEATS - 1) ? 0 : in_beat + 1;
        if (take) out_beat <= (out_beat == BEATS - 1) ? 0 : out_beat + 1;
        complete <= complete + enters - leaves;
        if (rst) begin full0 <= 0; full1 <= 0; n1 <= 0; in_beat <= 0; out_beat <= 0; complete <= 0; stat <= 0; end
    end
endmodule
`default_nettype wire
