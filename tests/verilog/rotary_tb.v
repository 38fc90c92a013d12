// SPDX-License-Identifier: MIT
// rotary_tb: drives mlo_rotary with the beats of in.hex, c.hex and t.hex and writes what comes out, with cycle numbers
//
// plusargs: n_in n_c n_t n_out  beats      s_in s_c s_t s_out  chance of a stall per cycle, percent
//           hold            cycles before the first activation      gap: pause after each beat      seed
//           jobs            0: every word at s_axis_j is 0; else so many of jobs.hex, one a frame: {start, unused}, 16 bits each,
//                           which stall as activations do
// out.txt: cycle, {tuser, tdata} per output beat. in.txt: cycle per accepted input beat.
`default_nettype none

module rotary_tb;
    parameter C = 8, D = 4, T = 4, PE = 2, XBITS = 16, YBITS = 8, SHIFT = 0, RESIDENT = 0, KEPT = 0, AXI_WIDTH = 128;
    localparam IW = PE * XBITS, OW = PE * YBITS;

    reg clk = 0, rst = 1;
    always #1 clk = !clk;

    integer n_in, n_c, n_t, n_out, s_in, s_c, s_t, s_out, hold, gap, seed, jobs, dummy;
    initial begin
        dummy = $value$plusargs("n_in=%d", n_in);   dummy = $value$plusargs("s_in=%d", s_in);
        dummy = $value$plusargs("n_c=%d", n_c);     dummy = $value$plusargs("s_c=%d", s_c);
        dummy = $value$plusargs("n_t=%d", n_t);     dummy = $value$plusargs("s_t=%d", s_t);
        dummy = $value$plusargs("n_out=%d", n_out); dummy = $value$plusargs("s_out=%d", s_out);
        dummy = $value$plusargs("hold=%d", hold);   dummy = $value$plusargs("gap=%d", gap);
        dummy = $value$plusargs("seed=%d", seed);
        if (!$value$plusargs("jobs=%d", jobs)) jobs = 0;
        if (jobs != 0) $readmemh("jobs.hex", u_j.mem, 0, jobs - 1);
        $readmemh("in.hex", u_in.mem, 0, n_in - 1);
        $readmemh("c.hex", u_c.mem, 0, n_c - 1);
        $readmemh("t.hex", u_t.mem, 0, n_t - 1);
        repeat (4) @(posedge clk);
        rst <= 0;
    end

    wire [IW+2:0]        i;
    wire [AXI_WIDTH-1:0] c, t;
    wire                 i_v, i_r, c_v, c_r, t_v, t_r, o_v, o_r;
    wire [OW-1:0]        o;
    wire [2:0]           o_u, stat;
    wire signed [31:0]   cycle;

    wire [31:0]          j;
    wire                 j_v, j_r;
    tb_feed #(.WIDTH(32), .SALT(5)) u_j (
        .clk(clk), .rst(rst), .go(1'b1), .count(jobs), .stall(s_in), .group(1), .gap(0), .seed(seed),
        .data(j), .valid(j_v), .ready(j_r));
    tb_feed #(.WIDTH(IW + 3), .SALT(1)) u_in (
        .clk(clk), .rst(rst), .go(cycle >= hold), .count(n_in), .stall(s_in), .group(1), .gap(gap), .seed(seed),
        .data(i), .valid(i_v), .ready(i_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .SALT(3)) u_c (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_c), .stall(s_c), .group(1), .gap(0), .seed(seed),
        .data(c), .valid(c_v), .ready(c_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .SALT(4)) u_t (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_t), .stall(s_t), .group(1), .gap(0), .seed(seed),
        .data(t), .valid(t_v), .ready(t_r));
    mlo_rotary #(.C(C), .D(D), .T(T), .PE(PE), .XBITS(XBITS), .YBITS(YBITS), .SHIFT(SHIFT), .RESIDENT(RESIDENT), .KEPT(KEPT), .AXI_WIDTH(AXI_WIDTH)) dut (
        .clk(clk), .rst(rst), .params_last(1'b0), .s_axis_j_tdata(jobs != 0 ? j : 32'd0), .s_axis_j_tvalid(jobs == 0 || j_v), .s_axis_j_tready(j_r),
        .s_axis_tdata(i[IW-1:0]), .s_axis_tuser(i[IW +: 3]), .s_axis_tvalid(i_v), .s_axis_tready(i_r),
        .m_axis_tdata(o), .m_axis_tuser(o_u), .m_axis_tvalid(o_v), .m_axis_tready(o_r),
        .s_axis_c_tdata(c), .s_axis_c_tvalid(c_v), .s_axis_c_tready(c_r),
        .s_axis_t_tdata(t), .s_axis_t_tvalid(t_v), .s_axis_t_tready(t_r), .stat(stat));

    tb_record #(.WIDTH(OW + 3)) u_out (
        .clk(clk), .rst(rst), .seed(seed), .stall(s_out), .hold(hold), .gap(gap), .n_out(n_out), .takes(i_v && i_r), .loads(c_v && c_r || t_v && t_r),
        .data({o_u, o}), .valid(o_v), .ready(o_r), .stat(stat), .cycle(cycle));
endmodule

`default_nettype wire
