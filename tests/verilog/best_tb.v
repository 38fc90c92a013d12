// SPDX-License-Identifier: MIT
// best_tb: mlo_best between a stalling source and a stalling sink; words are {tuser, tdata}
//
// Reports cycles from the first beat taken: `latency` to the first output, `span` to the last.
`default_nettype none
module best_tb;

parameter C     = 4;
parameter XBITS = 8;
parameter K     = 2;

localparam W = 3 + XBITS;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, seed, in_stall, out_stall, quiet = 0, first_in = -1, first_out = -1, last_out = -1, busy = 0, blocked = 0, starved = 0;

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
end
always #1 clk = !clk;

wire [XBITS-1:0] s_tdata;
wire [64*K-1:0]  m_tdata;
wire [2:0]       s_tuser, m_tuser, stat;
wire             s_tvalid, s_tready, m_tvalid, m_tready, bad;
wire [31:0]      in_beats, out_beats;

tb_source #(.WIDTH(W)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall),
    .tdata({s_tuser, s_tdata}), .tvalid(s_tvalid), .tready(s_tready), .beats(in_beats));
mlo_best #(.C(C), .XBITS(XBITS), .K(K)) dut (.clk(clk), .rst(rst),
    .s_axis_tdata(s_tdata), .s_axis_tvalid(s_tvalid), .s_axis_tready(s_tready), .s_axis_tuser(s_tuser),
    .m_axis_tdata(m_tdata), .m_axis_tvalid(m_tvalid), .m_axis_tready(m_tready), .m_axis_tuser(m_tuser), .stat(stat));
tb_sink #(.WIDTH(64*K + 3), .FILE("out.hex")) u_sink (.clk(clk), .rst(rst), .seed(seed + 100), .stall(out_stall),
    .tdata({m_tuser, m_tdata}), .tvalid(m_tvalid), .tready(m_tready), .beats(out_beats), .bad(bad));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 1'b0;
    if (!rst) begin
        if (s_tvalid && s_tready && first_in < 0) first_in = cycle;
        if (m_tvalid && first_out < 0) first_out = cycle;
        if (m_tvalid && m_tready) last_out = cycle;
        busy = busy + stat[0]; starved = starved + stat[1]; blocked = blocked + stat[2];
        quiet <= out_beats * C == words ? quiet + 1 : 0;
        if (quiet == 20) begin
            if (bad || in_beats != words || m_tvalid || busy != words || {31'd0, stat[0]} + stat[1] + stat[2] != 1)
                $display("FAIL contract: bad=%b in=%0d out=%0d busy=%0d", bad, in_beats, out_beats, busy);
            else
                $display("PASS latency=%0d span=%0d blocked=%0d", first_out - first_in, last_out - first_in, blocked);
            $finish;
        end
    end
    if (cycle > 400 + words * 60) begin
        $display("FAIL watchdog: in=%0d out=%0d", in_beats, out_beats);
        $finish;
    end
end

endmodule
`default_nettype wire
