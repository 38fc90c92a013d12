// SPDX-License-Identifier: MIT
// The doors: source -> mlo_entry -> sink (inside format), and source -> mlo_entry -> mlo_exit -> sink.
`default_nettype none
module control_door_tb;
    parameter C = 8;
    parameter LANES = 2;
    parameter BITS = 8;
    parameter MASK = 0;
    localparam PAD = (BITS + 7) / 8 * 8;
    localparam W = LANES * BITS;

    reg clk = 0, rst = 1;
    always #5 clk = !clk;
    reg [31:0] cycle = 0;
    always @(posedge clk) cycle <= cycle + 1;

    integer seed, stall_in, stall_mask, stall_out, count, tokens, limit;
    wire [LANES*PAD-1:0] a_data [0:1];
    wire [1:0] a_valid, a_ready, a_last, b_valid, b_ready, b_last;
    wire [7:0] b_data [0:1];
    wire [W-1:0] m_data [0:1];
    wire [2:0] m_user [0:1];
    wire [1:0] m_valid, m_ready;
    wire [LANES*PAD-1:0] x_data;
    wire x_valid, x_ready, x_last;

    genvar i;
    generate for (i = 0; i < 2; i = i + 1) begin : path
        wire [31:0] sent, mask_sent;
        wire done, mask_done;
        mlo_sim_source #(.WIDTH(LANES*PAD), .DEPTH(4096), .FILE("in.hex")) u_in (
            .clk(clk), .rst(rst), .enable(1'b1), .seed(seed), .stall(stall_in), .count(count), .sent(sent), .done(done),
            .m_axis_tdata(a_data[i]), .m_axis_tvalid(a_valid[i]), .m_axis_tready(a_ready[i]), .m_axis_tlast(a_last[i]));
        mlo_sim_source #(.WIDTH(8), .DEPTH(4096), .FILE("mask.hex")) u_mask (
            .clk(clk), .rst(rst), .enable(1'b1), .seed(seed + 77), .stall(stall_mask), .count(tokens), .sent(mask_sent), .done(mask_done),
            .m_axis_tdata(b_data[i]), .m_axis_tvalid(b_valid[i]), .m_axis_tready(b_ready[i]), .m_axis_tlast(b_last[i]));
        mlo_entry #(.C(C), .LANES(LANES), .BITS(BITS), .MASK(MASK)) u_entry (
            .clk(clk), .rst(rst),
            .s_axis_tdata(a_data[i]), .s_axis_tvalid(a_valid[i]), .s_axis_tready(a_ready[i]), .s_axis_tlast(a_last[i]),
            .s1_axis_tdata(b_data[i]), .s1_axis_tvalid(b_valid[i]), .s1_axis_tready(b_ready[i]), .s1_axis_tlast(b_last[i]),
            .m_axis_tdata(m_data[i]), .m_axis_tvalid(m_valid[i]), .m_axis_tready(m_ready[i]), .m_axis_tuser(m_user[i]));
    end endgenerate

    mlo_exit #(.C(C), .LANES(LANES), .BITS(BITS)) u_exit (
        .clk(clk), .rst(rst),
        .s_axis_tdata(m_data[1]), .s_axis_tvalid(m_valid[1]), .s_axis_tready(m_ready[1]), .s_axis_tuser(m_user[1]),
        .m_axis_tdata(x_data), .m_axis_tvalid(x_valid), .m_axis_tready(x_ready), .m_axis_tlast(x_last));

    wire [31:0] seen0, seen1, errors0, errors1, index0, index1, frames0, frames1;
    wire [W+3:0] expected0, got0;
    wire [LANES*PAD:0] expected1, got1;
    wire done0, done1;
    // The first sink sees {key, last, first, data}; its tlast is the constant 0.
    mlo_sim_sink #(.WIDTH(W+3), .DEPTH(4096), .FILE("inside.hex")) u_inside (
        .clk(clk), .rst(rst), .seed(seed + 5), .stall(stall_out), .count(count), .cycle(cycle),
        .seen(seen0), .errors(errors0), .error_index(index0), .error_expected(expected0), .error_got(got0), .frames(frames0), .done(done0),
        .s_axis_tdata({m_user[0], m_data[0]}), .s_axis_tvalid(m_valid[0]), .s_axis_tready(m_ready[0]), .s_axis_tlast(1'b0));
    mlo_sim_sink #(.WIDTH(LANES*PAD), .DEPTH(4096), .FILE("out.hex")) u_out (
        .clk(clk), .rst(rst), .seed(seed + 6), .stall(stall_out), .count(count), .cycle(cycle),
        .seen(seen1), .errors(errors1), .error_index(index1), .error_expected(expected1), .error_got(got1), .frames(frames1), .done(done1),
        .s_axis_tdata(x_data), .s_axis_tvalid(x_valid), .s_axis_tready(x_ready), .s_axis_tlast(x_last));

    wire [31:0] breaches0, breaches1;
    wire [4:0] broken0, broken1;
    mlo_sim_check_axis #(.WIDTH(W+3), .BEATS(C/LANES), .PORT("inside")) u_check_inside (.clk(clk), .rst(rst), .cycle(cycle),
        .tdata({m_user[0], m_data[0]}), .tvalid(m_valid[0]), .tready(m_ready[0]), .tlast(1'b0), .broken(broken0), .breaches(breaches0));
    mlo_sim_check_axis #(.WIDTH(LANES*PAD), .BEATS(C/LANES), .PORT("out")) u_check_out (.clk(clk), .rst(rst), .cycle(cycle),
        .tdata(x_data), .tvalid(x_valid), .tready(x_ready), .tlast(x_last), .broken(broken1), .breaches(breaches1));

    // Cycles of the first beat in, the first and the last beat out of the entry, the first out of the exit.
    integer first_in = -1, first_out = -1, last_out = -1, exit_out = -1;
    always @(posedge clk) if (!rst) begin
        if (a_valid[0] && a_ready[0] && first_in < 0) first_in = cycle;
        if (m_valid[0] && m_ready[0] && first_out < 0) first_out = cycle;
        if (m_valid[0] && m_ready[0]) last_out = cycle;
        if (x_valid && x_ready && exit_out < 0) exit_out = cycle;
    end

    integer quiet = 0;
    initial begin
        if (!$value$plusargs("seed=%d", seed)) seed = 1;
        if (!$value$plusargs("stall_in=%d", stall_in)) stall_in = 0;
        if (!$value$plusargs("stall_mask=%d", stall_mask)) stall_mask = 0;
        if (!$value$plusargs("stall_out=%d", stall_out)) stall_out = 0;
        if (!$value$plusargs("count=%d", count)) count = 0;
        if (!$value$plusargs("tokens=%d", tokens)) tokens = 0;
        limit = 1000 + 100 * count;
        repeat (4) @(negedge clk);
        rst = 0;
        while (quiet < 50) begin              // a surplus beat would come soon
            @(negedge clk);
            if (done0 && done1) quiet = quiet + 1;
            if (cycle > limit || errors0 != 0 || errors1 != 0) quiet = 1000;
        end
        if (!done0 || !done1 || errors0 != 0 || errors1 != 0 || breaches0 != 0 || breaches1 != 0) begin
            $display("inside: seen %0d errors %0d first %0d expected %h got %h", seen0, errors0, index0, expected0, got0);
            $display("out:    seen %0d errors %0d first %0d expected %h got %h", seen1, errors1, index1, expected1, got1);
            $display("FAIL");
        end else
            $display("PASS latency=%0d span=%0d exit=%0d frames=%0d", first_out - first_in, last_out - first_out, exit_out - first_out, frames1);
        $finish;
    end
endmodule
`default_nettype wire
