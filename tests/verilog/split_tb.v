// SPDX-License-Identifier: MIT
// split_tb: mlo_split between a stalling source and three stalling sinks; words are {tuser, tdata}
//
// Reports cycles from the first beat taken: `latency` to the first output, `span` to the last.
`default_nettype none
module split_tb;

parameter BITS  = 8;
parameter LANES = 2;
parameter C0    = 4;
parameter C1    = 4;
parameter C2    = 4;

localparam W = 3 + LANES*BITS;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, seed, in_stall, out_stall, quiet = 0, first_in = -1, first_out = -1, last_out = -1;

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
end
always #1 clk = !clk;

wire [LANES*BITS-1:0] s_tdata, m0_tdata, m1_tdata, m2_tdata;
wire [2:0]            s_tuser, m0_tuser, m1_tuser, m2_tuser, m_tvalid, m_tready, bad;
wire                  s_tvalid, s_tready;
wire [31:0]           in_beats, out0, out1, out2;
wire [31:0]           out_beats = out0 + out1 + out2;

tb_source #(.WIDTH(W)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall),
    .tdata({s_tuser, s_tdata}), .tvalid(s_tvalid), .tready(s_tready), .beats(in_beats));

mlo_split #(.BITS(BITS), .LANES(LANES), .C0(C0), .C1(C1), .C2(C2)) dut (.clk(clk), .rst(rst),
    .s_axis_tdata(s_tdata), .s_axis_tvalid(s_tvalid), .s_axis_tready(s_tready), .s_axis_tuser(s_tuser),
    .m0_axis_tdata(m0_tdata), .m0_axis_tvalid(m_tvalid[0]), .m0_axis_tready(m_tready[0]), .m0_axis_tuser(m0_tuser),
    .m1_axis_tdata(m1_tdata), .m1_axis_tvalid(m_tvalid[1]), .m1_axis_tready(m_tready[1]), .m1_axis_tuser(m1_tuser),
    .m2_axis_tdata(m2_tdata), .m2_axis_tvalid(m_tvalid[2]), .m2_axis_tready(m_tready[2]), .m2_axis_tuser(m2_tuser));

tb_sink #(.WIDTH(W), .FILE("out0.hex")) u_sink0 (.clk(clk), .rst(rst), .seed(seed), .stall(out_stall),
    .tdata({m0_tuser, m0_tdata}), .tvalid(m_tvalid[0]), .tready(m_tready[0]), .beats(out0), .bad(bad[0]));
tb_sink #(.WIDTH(W), .FILE("out1.hex")) u_sink1 (.clk(clk), .rst(rst), .seed(seed + 100), .stall(out_stall),
    .tdata({m1_tuser, m1_tdata}), .tvalid(m_tvalid[1]), .tready(m_tready[1]), .beats(out1), .bad(bad[1]));
tb_sink #(.WIDTH(W), .FILE("out2.hex")) u_sink2 (.clk(clk), .rst(rst), .seed(seed + 200), .stall(out_stall),
    .tdata({m2_tuser, m2_tdata}), .tvalid(m_tvalid[2]), .tready(m_tready[2]), .beats(out2), .bad(bad[2]));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 1'b0;
    if (!rst) begin
        if (s_tvalid && s_tready && first_in < 0) first_in = cycle;
        if (|(m_tvalid & m_tready) && first_out < 0) first_out = cycle;
        if (|(m_tvalid & m_tready)) last_out = cycle;
        quiet <= out_beats == words ? quiet + 1 : 0;
        if (quiet == 20) begin
            if (bad != 3'b000 || in_beats != words || |m_tvalid)
                $display("FAIL contract: bad=%b in=%0d out=%0d", bad, in_beats, out_beats);
            else
                $display("PASS latency=%0d span=%0d", first_out - first_in, last_out - first_in);
            $finish;
        end
    end
    if (cycle > 400 + words * 40) begin
        $display("FAIL watchdog: in=%0d out=%0d", in_beats, out_beats);
        $finish;
    end
end

endmodule
`default_nettype wire
