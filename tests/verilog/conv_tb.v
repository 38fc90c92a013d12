// SPDX-License-Identifier: MIT
// conv_tb: drives mlo_conv with the beats of in.hex, w.hex and c.hex and writes what comes out, with cycle numbers
//
// plusargs: n_in n_w n_c n_out  beats      s_in s_w s_c s_out  chance of a stall per cycle, percent
//           hold            cycles before the first activation      gap: pause after each beat      seed
// out.txt: cycle, {tuser, tdata} per output beat. in.txt: cycle per accepted input beat.
`default_nettype none

module conv_tb;
    parameter C = 8, KH = 3, KW = 3, W = 5, TOP = 1, LEFT = 1, PE = 2, SIMD = 1, XBITS = 8, WBITS = 8, ABITS = 33, YBITS = 8, SHIFT = 0, RESIDENT = 0, AXI_WIDTH = 128, EDGES = 0;
    localparam IW = PE * XBITS, OW = PE * YBITS;

    reg clk = 0, rst = 1;
    always #1 clk = !clk;

    integer n_in, n_c, n_w, n_out, s_in, s_c, s_w, s_out, hold, gap, seed, dummy;
    initial begin
        dummy = $value$plusargs("n_in=%d", n_in);   dummy = $value$plusargs("s_in=%d", s_in);
        dummy = $value$plusargs("n_c=%d", n_c);     dummy = $value$plusargs("s_c=%d", s_c);
        dummy = $value$plusargs("n_w=%d", n_w);     dummy = $value$plusargs("s_w=%d", s_w);
        dummy = $value$plusargs("n_out=%d", n_out); dummy = $value$plusargs("s_out=%d", s_out);
        dummy = $value$plusargs("hold=%d", hold);   dummy = $value$plusargs("gap=%d", gap);
        dummy = $value$plusargs("seed=%d", seed);
        $readmemh("in.hex", u_in.mem, 0, n_in - 1);
        $readmemh("c.hex", u_c.mem, 0, n_c - 1);
        $readmemh("w.hex", u_w.mem, 0, n_w - 1);
        repeat (4) @(posedge clk);
        rst <= 0;
    end

    wire [IW+2:0]        i;
    wire [AXI_WIDTH-1:0] c, w;
    wire                 i_v, i_r, c_v, c_r, w_v, w_r, o_v, o_r;
    wire [OW-1:0]        o;
    wire [2:0]           o_u, stat;
    wire signed [31:0]   cycle;
    tb_feed #(.WIDTH(IW + 3), .SALT(1)) u_in (
        .clk(clk), .rst(rst), .go(cycle >= hold), .count(n_in), .stall(s_in), .group(1), .gap(gap), .seed(seed),
        .data(i), .valid(i_v), .ready(i_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .SALT(3)) u_c (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_c), .stall(s_c), .group(1), .gap(0), .seed(seed),
        .data(c), .valid(c_v), .ready(c_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .SALT(4)) u_w (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_w), .stall(s_w), .group(1), .gap(0), .seed(seed),
        .data(w), .valid(w_v), .ready(w_r));
    mlo_conv #(.C(C), .EDGES(EDGES), .KH(KH), .KW(KW), .W(W), .TOP(TOP), .LEFT(LEFT), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .WBITS(WBITS), .ABITS(ABITS), .YBITS(YBITS),
               .SHIFT(SHIFT), .RESIDENT(RESIDENT), .AXI_WIDTH(AXI_WIDTH)) dut (
        .clk(clk), .rst(rst), .params_last(1'b0),
        .s_axis_tdata(i[IW-1:0]), .s_axis_tuser(i[IW +: 3]), .s_axis_tvalid(i_v), .s_axis_tready(i_r),
        .m_axis_tdata(o), .m_axis_tuser(o_u), .m_axis_tvalid(o_v), .m_axis_tready(o_r),
        .s_axis_c_tdata(c), .s_axis_c_tvalid(c_v), .s_axis_c_tready(c_r),
        .s_axis_w_tdata(w), .s_axis_w_tvalid(w_v), .s_axis_w_tready(w_r), .stat(stat));

    tb_record #(.WIDTH(OW + 3)) u_out (
        .clk(clk), .rst(rst), .seed(seed), .stall(s_out), .hold(hold), .gap(gap), .n_out(n_out), .takes(i_v && i_r), .loads(c_v && c_r || w_v && w_r),
        .data({o_u, o}), .valid(o_v), .ready(o_r), .stat(stat), .cycle(cycle));
endmodule

`default_nettype wire
