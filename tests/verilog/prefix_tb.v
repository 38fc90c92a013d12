// SPDX-License-Identifier: MIT
// prefix_tb: drives mlo_prefix with the beats of in.hex and p.hex and writes what comes out, with cycle numbers
//
// plusargs: n_in n_p n_out  beats      s_in s_p s_out  chance of a stall per cycle, percent
//           hold            cycles before the first token      gap: pause after each beat      seed
// out.txt: cycle, {tuser, tdata} per output beat. in.txt: cycle per accepted input beat.
`default_nettype none

module prefix_tb;
    parameter BEATS = 4, WIDTH = 16, P = 1, RESIDENT = 0, AXI_WIDTH = 128;

    reg clk = 0, rst = 1;
    always #1 clk = !clk;

    integer n_in, n_p, n_out, s_in, s_p, s_out, hold, gap, seed, dummy;
    initial begin
        dummy = $value$plusargs("n_in=%d", n_in);   dummy = $value$plusargs("s_in=%d", s_in);
        dummy = $value$plusargs("n_p=%d", n_p);     dummy = $value$plusargs("s_p=%d", s_p);
        dummy = $value$plusargs("n_out=%d", n_out); dummy = $value$plusargs("s_out=%d", s_out);
        dummy = $value$plusargs("hold=%d", hold);   dummy = $value$plusargs("gap=%d", gap);
        dummy = $value$plusargs("seed=%d", seed);
        $readmemh("in.hex", u_in.mem, 0, n_in - 1);
        $readmemh("p.hex", u_p.mem, 0, n_p - 1);
        repeat (4) @(posedge clk);
        rst <= 0;
    end

    wire [WIDTH+2:0]     i, o;
    wire [AXI_WIDTH-1:0] p;
    wire                 i_v, i_r, p_v, p_r, o_v, o_r;
    wire signed [31:0]   cycle;

    tb_feed #(.WIDTH(WIDTH + 3), .SALT(1)) u_in (
        .clk(clk), .rst(rst), .go(cycle >= hold), .count(n_in), .stall(s_in), .group(1), .gap(gap), .seed(seed),
        .data(i), .valid(i_v), .ready(i_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .SALT(3)) u_p (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_p), .stall(s_p), .group(1), .gap(0), .seed(seed),
        .data(p), .valid(p_v), .ready(p_r));
    mlo_prefix #(.BEATS(BEATS), .WIDTH(WIDTH), .P(P), .RESIDENT(RESIDENT), .AXI_WIDTH(AXI_WIDTH)) dut (
        .clk(clk), .rst(rst), .params_last(1'b0),
        .s_axis_tdata(i[WIDTH-1:0]), .s_axis_tuser(i[WIDTH +: 3]), .s_axis_tvalid(i_v), .s_axis_tready(i_r),
        .m_axis_tdata(o[WIDTH-1:0]), .m_axis_tuser(o[WIDTH +: 3]), .m_axis_tvalid(o_v), .m_axis_tready(o_r),
        .s_axis_p_tdata(p), .s_axis_p_tvalid(p_v), .s_axis_p_tready(p_r));

    tb_record #(.WIDTH(WIDTH + 3)) u_out (
        .clk(clk), .rst(rst), .seed(seed), .stall(s_out), .hold(hold), .gap(gap), .n_out(n_out), .takes(i_v && i_r), .loads(p_v && p_r),
        .data(o), .valid(o_v), .ready(o_r), .stat(3'b000), .cycle(cycle));
endmodule

`default_nettype wire
