// SPDX-License-Identifier: MIT
// mlo_regs: AXI4-Lite: an answer for each request, none without, and it stands until it is taken; what reads give, as the header's
// table says, from registers and counters of the proof's own; soft reset and core_rst; jobs
inner [4:0] dut.reset_left;
inner dut.clear;
inner dut.entering;
inner [15:0] dut.held;
inner [31:0] dut.cycles;
inner [31:0] dut.finished;
inner [31:0] dut.beats;
inner dut.reading;
inner [9:0] dut.word_addr;
inner [31:0] kernel_0_busy = dut.kernel[0].worked;
inner [31:0] kernel_0_starved = dut.kernel[0].starved;
inner [31:0] kernel_0_blocked = dut.kernel[0].blocked;
inner [31:0] kernel_1_busy = dut.kernel[1].worked;
inner [31:0] kernel_1_starved = dut.kernel[1].starved;
inner [31:0] kernel_1_blocked = dut.kernel[1].blocked;
    wire aw_take = s_axil_awvalid && s_axil_awready, w_take = s_axil_wvalid && s_axil_wready, b_take = s_axil_bvalid && s_axil_bready;
    wire ar_take = s_axil_arvalid && s_axil_arready, r_take = s_axil_rvalid && s_axil_rready;
    stream #(.GIVEN(1), .DATA(12)) u_aw (.clk(clk), .rst(rst), .valid(s_axil_awvalid), .ready(s_axil_awready), .data(s_axil_awaddr), .user(3'd0));
    stream #(.GIVEN(1), .DATA(36)) u_w (.clk(clk), .rst(rst), .valid(s_axil_wvalid), .ready(s_axil_wready), .data({s_axil_wstrb, s_axil_wdata}), .user(3'd0));
    stream #(.GIVEN(1), .DATA(12)) u_ar (.clk(clk), .rst(rst), .valid(s_axil_arvalid), .ready(s_axil_arready), .data(s_axil_araddr), .user(3'd0));
    stream #(.DATA(2)) u_b (.clk(clk), .rst(rst), .valid(s_axil_bvalid), .ready(s_axil_bready), .data(s_axil_bresp), .user(3'd0));
    stream #(.DATA(34)) u_r (.clk(clk), .rst(rst), .valid(s_axil_rvalid), .ready(s_axil_rready), .data({s_axil_rresp, s_axil_rdata}), .user(3'd0));

    // requests that wait for an answer; no answer comes late: a request is taken only when it can be answered at once
    reg [3:0] addresses, words, reads;
    always @(posedge clk) begin
        addresses <= rst ? 0 : addresses + aw_take - b_take;
        words     <= rst ? 0 : words + w_take - b_take;
        reads     <= rst ? 0 : reads + ar_take - r_take;
    end
    claim u_answers (.holds(!past || (s_axil_bvalid == (addresses != 0) && s_axil_bvalid == (words != 0) && (!s_axil_rvalid || reads != 0))));
    claim u_one     (.holds(!past || (addresses < 2 && words < 2 && reads < 2)));

    // what a write does
    reg         on;
    reg  [63:0] base_reg;
    reg  [15:0] rounds;
    reg  [7:0]  most;
    reg         refused;                        // the latest write
    reg  [31:0] where;                          // of the next job
    reg         pushed;                         // a job, with this number of tokens
    reg  [15:0] many, further;                  // and so many ids that go on
    reg  [31:0] ending;                         // the id that ends a text
    wire [9:0]  to = s_axil_awaddr[11:2];
    wire [31:0] old = to == 4 ? base_reg[31:0] : to == 5 ? base_reg[63:32] : to == 6 ? rounds : to == 7 ? most : to == 8 ? where : to == 9 ? 0 : to == 23 ? ending : on;
    wire [31:0] new;
    genvar i;
    generate
        for (i = 0; i < 4; i = i + 1) begin : g_byte
            assign new[8*i +: 8] = s_axil_wstrb[i] ? s_axil_wdata[8*i +: 8] : old[8*i +: 8];
        end
    endgenerate
    wire deep = (new > 65535 ? 65535 : new) > DEEPEST;
    always @(posedge clk) begin
        if (aw_take) begin
            refused <= to < 4 && to != 2 || (to > 9 && !(TOKENS && to == 23)) || to == 3 || to == 6 && deep || to > 7 && to != 23 && CONTEXT == 0 || to == 9 && job_room == 0;
            if (to == 2) on <= new[0];
            if (to == 4) base_reg[31:0]  <= new;
            if (to == 5) base_reg[63:32] <= new;
            if (to == 6 && !deep) rounds <= new == 0 ? 1 : new > 65535 ? 65535 : new;
            if (to == 7) most <= new == 0 ? 1 : new > FRAMES ? FRAMES : new;
        end
        if (aw_take && to == 8 && CONTEXT != 0) where <= new;
        pushed <= aw_take && to == 9 && CONTEXT != 0 && job_room != 0;
        {further, many} <= new;
        if (aw_take && to == 23 && TOKENS) ending <= new;
        if (rst) begin
            {on, base_reg, where, pushed} <= 0;
            rounds <= ITERATIONS;
            most   <= FRAMES;
            ending <= -1;
        end
    end
    claim u_writes (.holds(!past || (enable == on && base == base_reg && iterations == rounds && frames == most)));
    claim u_job    (.holds(!past || ({job_slot, job_start} == where && job_push == pushed && (!pushed || (job_tokens == many && job_more == (TOKENS ? further : 0))) && stop == ending)));
    claim u_bresp  (.holds(!past || !s_axil_bvalid || s_axil_bresp == (refused ? 2'b10 : 2'b00)));

    // soft reset: 16 cycles, from the second after its write
    reg [4:0] soft;                             // cycles of it to come
    reg       resets, clears;                   // core_rst, and the counters begin again
    wire      control = aw_take && to == 2 && s_axil_wstrb[0];
    always @(posedge clk) begin
        soft   <= control && s_axil_wdata[1] ? 16 : soft != 0 ? soft - 1 : 0;
        resets <= soft != 0;
        clears <= soft != 0 || (control && s_axil_wdata[2]);
        if (rst) {soft, resets, clears} <= {5'd16, 2'b11};
    end
    claim u_reset (.holds(!past || core_rst == resets));

    // what is counted
    reg  [15:0] begun_frames, ended_frames;
    reg         within;                         // the frame at the door
    wire        inside = begun_frames != ended_frames, counted = on && (inside || (in_beat && !within));
    reg  [31:0] n_cycles, n_frames, n_beats;
    reg  [31:0] n_kernel [0:5];
    integer     k;
    always @(posedge clk) begin
        if (in_beat) within <= !in_last;
        if (in_beat && !within) begun_frames <= begun_frames + 1;
        if (out_last) ended_frames <= ended_frames + 1;
        if (resets) {within, begun_frames, ended_frames} <= 0;
        n_cycles <= clears ? 0 : n_cycles + counted;
        n_frames <= clears ? 0 : n_frames + (on && out_last);
        n_beats  <= clears ? 0 : n_beats + (on && param_beat);
        for (k = 0; k < 6; k = k + 1) n_kernel[k] <= clears ? 0 : n_kernel[k] + (counted && stat[k]);
    end

    // what a read gives: the values of the cycle after its address
    reg  [9:0]  from;
    reg         look;
    reg  [31:0] want;
    always @(posedge clk) begin
        look <= ar_take && !rst;
        if (ar_take) from <= s_axil_araddr[11:2];
        if (look)
            case ({from, 2'b00})
                12'h000: want <= "MLO1";
                12'h004: want <= VERSION;
                12'h008: want <= on;
                12'h00C: want <= {CONTEXT != 0 && job_mismatch, 1'b0, CONTEXT != 0 && job_refused, bus_error, inside};
                12'h010: want <= base_reg[31:0];
                12'h014: want <= base_reg[63:32];
                12'h018: want <= rounds;
                12'h01C: want <= most;
                12'h020: want <= where;
                12'h028: want <= CONTEXT != 0 ? job_room : 0;
                12'h03C: want <= CONTEXT != 0 ? SLOTS << 24 | CONTEXT : 0;
                12'h040: want <= n_cycles;
                12'h044: want <= n_frames;
                12'h048: want <= n_beats;
                12'h05C: want <= TOKENS ? ending : 0;
                12'h080: want <= n_kernel[0];
                12'h084: want <= n_kernel[1];
                12'h088: want <= n_kernel[2];
                12'h090: want <= n_kernel[3];
                12'h094: want <= n_kernel[4];
                12'h098: want <= n_kernel[5];
                default: want <= 0;
            endcase
    end
    claim u_reads (.holds(!past || !s_axil_rvalid || (s_axil_rdata == want && s_axil_rresp == 0)));

    reg counting = 1'b0;                        // counters are cleared a cycle after the reset
    always @(posedge clk) counting <= past;
    always @* if (past) begin
        assert (reads == dut.reading + s_axil_rvalid && !(dut.reading && s_axil_rvalid));
        assert (dut.reading == look && (!look || dut.word_addr == from));
        assert (dut.reset_left == soft && dut.clear == clears);
        if (!counting) assert (resets && clears && !look);
    end
    always @* if (past && counting) begin
        assert (dut.entering == within && dut.held == begun_frames - ended_frames[15:0]);
        assert (dut.cycles == n_cycles && dut.finished == n_frames && dut.beats == n_beats);
        assert (kernel_0_busy == n_kernel[0] && kernel_0_starved == n_kernel[1] && kernel_0_blocked == n_kernel[2]);
        assert (kernel_1_busy == n_kernel[3] && kernel_1_starved == n_kernel[4] && kernel_1_blocked == n_kernel[5]);
    end

    // not vacuous: a register written in parts is read back, and both answers had to wait; a kernel's counter runs
    reg w_waited, r_waited, part;
    always @(posedge clk) begin
        if (s_axil_bvalid && !s_axil_bready) w_waited <= 1'b1;
        if (s_axil_rvalid && !s_axil_rready && s_axil_rdata == 32'h00120034) r_waited <= 1'b1;
        if (aw_take && to == 4 && s_axil_wstrb == 4'b0100) part <= 1'b1;
        if (rst) {w_waited, r_waited, part} <= 0;
    end
    goal u_goal (.reached(past && w_waited && r_waited && part && n_kernel[4] == 2));
