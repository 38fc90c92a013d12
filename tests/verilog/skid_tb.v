// SPDX-License-Identifier: MIT
// skid_tb: mlo_skid between a stalling source and sink
//
// Reports cycles from the first word taken: `latency` to the first output, `span` to the last.
`default_nettype none
module skid_tb;

parameter WIDTH = 8;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, seed, in_stall, out_stall, quiet = 0, first_in = -1, first_out = -1, last_out = -1;

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
end
always #1 clk = !clk;

wire [WIDTH-1:0] s_tdata, m_tdata;
wire             s_tvalid, s_tready, m_tvalid, m_tready, bad;
wire [31:0]      in_beats, out_beats;

tb_source #(.WIDTH(WIDTH)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall),
    .tdata(s_tdata), .tvalid(s_tvalid), .tready(s_tready), .beats(in_beats));

mlo_skid #(.WIDTH(WIDTH)) dut (.clk(clk), .rst(rst),
    .s_tdata(s_tdata), .s_tvalid(s_tvalid), .s_tready(s_tready),
    .m_tdata(m_tdata), .m_tvalid(m_tvalid), .m_tready(m_tready));

tb_sink #(.WIDTH(WIDTH)) u_sink (.clk(clk), .rst(rst), .seed(seed), .stall(out_stall),
    .tdata(m_tdata), .tvalid(m_tvalid), .tready(m_tready), .beats(out_beats), .bad(bad));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 1'b0;
    if (!rst) begin
        if (s_tvalid && s_tready && first_in < 0) first_in = cycle;
        if (m_tvalid && m_tready && first_out < 0) first_out = cycle;
        if (m_tvalid && m_tready) last_out = cycle;
        quiet <= out_beats == words ? quiet + 1 : 0;
        if (quiet == 20) begin                  // a surplus word would show by now
            if (bad || in_beats != words || m_tvalid)
                $display("FAIL contract: in=%0d out=%0d", in_beats, out_beats);
            else
                $display("PASS latency=%0d span=%0d", first_out - first_in, last_out - first_in);
            $finish;
        end
    end
    if (cycle > 200 + words * 40) begin
        $display("FAIL watchdog: in=%0d out=%0d", in_beats, out_beats);
        $finish;
    end
end

endmodule
`default_nettype wire
