// SPDX-License-Identifier: MIT
// first_tb: mlo_first between a stalling source and a stalling sink; words in are {tlast, tdata}, out {tuser, tdata}.
//
//
// Reports cycles from the first beat taken: `latency` to the first output, `span` to the last.
`default_nettype none
module first_tb;

parameter WIDTH = 8;
parameter BEATS = 4;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, outs, seed, in_stall, out_stall, quiet = 0, first_in = -1, first_out = -1, last_out = -1;

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("outs=%d", outs)) outs = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
end
always #1 clk = !clk;

wire [WIDTH-1:0] s_tdata, m_tdata;
wire [2:0]       m_tuser;
wire             s_tlast, s_tvalid, s_tready, m_tvalid, m_tready, bad;
wire [31:0]      in_beats, out_beats;

tb_source #(.WIDTH(WIDTH + 1)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall),
    .tdata({s_tlast, s_tdata}), .tvalid(s_tvalid), .tready(s_tready), .beats(in_beats));
mlo_first #(.WIDTH(WIDTH), .BEATS(BEATS)) dut (.clk(clk), .rst(rst),
    .s_axis_tdata(s_tdata), .s_axis_tvalid(s_tvalid), .s_axis_tready(s_tready), .s_axis_tlast(s_tlast),
    .m_axis_tdata(m_tdata), .m_axis_tvalid(m_tvalid), .m_axis_tready(m_tready), .m_axis_tuser(m_tuser));
tb_sink #(.WIDTH(WIDTH + 3), .FILE("out.hex")) u_sink (.clk(clk), .rst(rst), .seed(seed + 100), .stall(out_stall),
    .tdata({m_tuser, m_tdata}), .tvalid(m_tvalid), .tready(m_tready), .beats(out_beats), .bad(bad));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 1'b0;
    if (!rst) begin
        if (s_tvalid && s_tready && first_in < 0) first_in = cycle;
        if (m_tvalid && first_out < 0) first_out = cycle;
        if (m_tvalid && m_tready) last_out = cycle;
        quiet <= out_beats == outs && in_beats == words ? quiet + 1 : 0;
        if (quiet == 20) begin
            if (bad || in_beats != words || m_tvalid)
                $display("FAIL contract: bad=%b in=%0d out=%0d", bad, in_beats, out_beats);
            else
                $display("PASS latency=%0d span=%0d", first_out - first_in, last_out - first_in);
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
