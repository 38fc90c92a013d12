// SPDX-License-Identifier: MIT
// fifo_tb: mlo_fifo between a stalling source and sink, against a counter of its level
//
// First the sink is held off until the queue accepts no more: `capacity` words.
// Reports cycles from the first offer: `latency` to the first output, `span` to the last.
`default_nettype none
module fifo_tb;

parameter WIDTH = 8;
parameter DEPTH = 4;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, seed, in_stall, out_stall, hold, capacity = 0, since_accept = 0, refused = 0, count = 0;
integer first_in = -1, first_out = -1, last_out = -1, bad = 0;

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
    if (!$value$plusargs("hold=%d", hold)) hold = 0;    // 1: measure the capacity first
end
always #1 clk = !clk;

wire [WIDTH-1:0] s_tdata, m_tdata;
wire             s_tvalid, s_tready, m_tvalid, sink_tready, sink_bad;
wire [31:0]      in_beats, out_beats;
wire [$clog2(DEPTH+1)-1:0] level;
reg              held = 1'b0;
wire             m_tready = sink_tready && !held;

tb_source #(.WIDTH(WIDTH)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall),
    .tdata(s_tdata), .tvalid(s_tvalid), .tready(s_tready), .beats(in_beats));

mlo_fifo #(.WIDTH(WIDTH), .DEPTH(DEPTH)) dut (.clk(clk), .rst(rst),
    .s_tdata(s_tdata), .s_tvalid(s_tvalid), .s_tready(s_tready),
    .m_tdata(m_tdata), .m_tvalid(m_tvalid), .m_tready(m_tready), .level(level));

tb_sink #(.WIDTH(WIDTH)) u_sink (.clk(clk), .rst(rst), .seed(seed), .stall(out_stall),
    .tdata(m_tdata), .tvalid(m_tvalid && !held), .tready(sink_tready), .beats(out_beats), .bad(sink_bad));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) begin
        rst  <= 1'b0;
        held <= hold != 0;
    end
    if (!rst) begin
        count <= count + (s_tvalid && s_tready) - (m_tvalid && m_tready);
        if (level !== count) bad = 1;
        if (s_tready !== (count < DEPTH) && !(DEPTH == 1 && m_tready)) bad = 2;
        if (s_tvalid && s_tready && first_in < 0) first_in = cycle;
        if (m_tvalid && m_tready && first_out < 0) first_out = cycle;
        if (m_tvalid && m_tready) last_out = cycle;
        since_accept <= s_tvalid && s_tready ? 0 : since_accept + 1;
        refused      <= s_tvalid && !s_tready ? refused + 1 : 0;
        if (held && refused == 30) begin        // full
            capacity = in_beats;
            held <= 1'b0;
        end
        if (out_beats == words && since_accept > 40) begin
            if (sink_bad || bad != 0 || in_beats != words || m_tvalid)
                $display("FAIL contract: bad=%0d in=%0d out=%0d", bad, in_beats, out_beats);
            else
                $display("PASS capacity=%0d latency=%0d span=%0d", capacity, first_out - first_in, last_out - first_in);
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
