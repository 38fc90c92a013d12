// SPDX-License-Identifier: MIT
// attention_prefix_tb: drives mlo_attention_prefix with the beats of q.hex, k.hex, v.hex and the parameters c.hex, kp.hex, vp.hex and writes
// what comes out, with cycle numbers
//
// plusargs: n_q n_k n_c n_p n_out  beats (v has n_k, kp and vp n_p each)      s_in s_p s_out  chance of a stall per cycle, percent
//           hold            cycles before the first token      seed
// out.txt: cycle, {tuser, tdata} per output beat. in.txt: cycle per accepted beat of k.
`default_nettype none

module attention_prefix_tb;
    parameter H = 2, D = 4, T = 4, P = 1, PE = 2, SIMD = 2, XBITS = 8, YBITS = 8, RESIDENT = 0, AXI_WIDTH = 128, STEP = 2, EBITS = 8, KVH = H, CAUSAL = 0, BIAS = 0, BIASH = 1, SHIFT = 0;
    localparam XW = SIMD * XBITS, YW = SIMD * YBITS;

    reg clk = 0, rst = 1;
    always #1 clk = !clk;

    integer n_q, n_k, n_c, n_p, n_out, s_in, s_p, s_out, hold, seed, dummy;
    initial begin
        dummy = $value$plusargs("n_q=%d", n_q);     dummy = $value$plusargs("s_in=%d", s_in);
        dummy = $value$plusargs("n_k=%d", n_k);     dummy = $value$plusargs("s_p=%d", s_p);
        dummy = $value$plusargs("n_c=%d", n_c);     dummy = $value$plusargs("s_out=%d", s_out);
        dummy = $value$plusargs("n_p=%d", n_p);     dummy = $value$plusargs("hold=%d", hold);
        dummy = $value$plusargs("n_out=%d", n_out); dummy = $value$plusargs("seed=%d", seed);
        $readmemh("q.hex", u_q.mem, 0, n_q - 1);
        $readmemh("k.hex", u_k.mem, 0, n_k - 1);
        $readmemh("v.hex", u_v.mem, 0, n_k - 1);
        $readmemh("c.hex", u_c.mem, 0, n_c - 1);
        $readmemh("kp.hex", u_kp.mem, 0, n_p - 1);
        $readmemh("vp.hex", u_vp.mem, 0, n_p - 1);
        repeat (4) @(posedge clk);
        rst <= 0;
    end

    wire [XW+2:0]        q, k, v;
    wire [AXI_WIDTH-1:0] c, kp, vp;
    wire                 q_v, q_r, k_v, k_r, v_v, v_r, c_v, c_r, kp_v, kp_r, vp_v, vp_r, o_v, o_r;
    wire [YW-1:0]        o;
    wire [2:0]           o_u, stat;
    wire signed [31:0]   cycle;
    wire                 opens = cycle >= hold;

    tb_feed #(.WIDTH(XW + 3), .SALT(1)) u_q (
        .clk(clk), .rst(rst), .go(opens), .count(n_q), .stall(s_in), .group(1), .gap(0), .seed(seed), .data(q), .valid(q_v), .ready(q_r));
    tb_feed #(.WIDTH(XW + 3), .SALT(2)) u_k (
        .clk(clk), .rst(rst), .go(opens), .count(n_k), .stall(s_in), .group(1), .gap(0), .seed(seed), .data(k), .valid(k_v), .ready(k_r));
    tb_feed #(.WIDTH(XW + 3), .SALT(3)) u_v (
        .clk(clk), .rst(rst), .go(opens), .count(n_k), .stall(s_in), .group(1), .gap(0), .seed(seed), .data(v), .valid(v_v), .ready(v_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .SALT(4)) u_c (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_c), .stall(s_p), .group(1), .gap(0), .seed(seed), .data(c), .valid(c_v), .ready(c_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .SALT(5)) u_kp (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_p), .stall(s_p), .group(1), .gap(0), .seed(seed), .data(kp), .valid(kp_v), .ready(kp_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .SALT(6)) u_vp (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_p), .stall(s_p), .group(1), .gap(0), .seed(seed), .data(vp), .valid(vp_v), .ready(vp_r));
    mlo_attention_prefix #(
        .H(H), .D(D), .T(T), .P(P), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .YBITS(YBITS), .RESIDENT(RESIDENT), .AXI_WIDTH(AXI_WIDTH), .STEP(STEP), .EBITS(EBITS),
        .KVH(KVH), .CAUSAL(CAUSAL), .BIAS(BIAS), .BIASH(BIASH), .SHIFT(SHIFT)
    ) dut (
        .clk(clk), .rst(rst), .params_last(1'b0),
        .s_axis_q_tdata(q[XW-1:0]), .s_axis_q_tuser(q[XW +: 3]), .s_axis_q_tvalid(q_v), .s_axis_q_tready(q_r),
        .s_axis_k_tdata(k[XW-1:0]), .s_axis_k_tuser(k[XW +: 3]), .s_axis_k_tvalid(k_v), .s_axis_k_tready(k_r),
        .s_axis_v_tdata(v[XW-1:0]), .s_axis_v_tuser(v[XW +: 3]), .s_axis_v_tvalid(v_v), .s_axis_v_tready(v_r),
        .s_axis_c_tdata(c), .s_axis_c_tvalid(c_v), .s_axis_c_tready(c_r),
        .s_axis_kp_tdata(kp), .s_axis_kp_tvalid(kp_v), .s_axis_kp_tready(kp_r),
        .s_axis_vp_tdata(vp), .s_axis_vp_tvalid(vp_v), .s_axis_vp_tready(vp_r),
        .m_axis_tdata(o), .m_axis_tuser(o_u), .m_axis_tvalid(o_v), .m_axis_tready(o_r), .stat(stat));

    tb_record #(.WIDTH(YW + 3)) u_out (
        .clk(clk), .rst(rst), .seed(seed), .stall(s_out), .hold(hold), .gap(0), .n_out(n_out), .takes(k_v && k_r),
        .loads(c_v && c_r || kp_v && kp_r || vp_v && vp_r), .data({o_u, o}), .valid(o_v), .ready(o_r), .stat(stat), .cycle(cycle));
endmodule

`default_nettype wire
