// SPDX-License-Identifier: MIT
// places_tb: mlo_places between stalling sources and sinks: words of ids in are {tlast, place, id}, indices out {tlast, index}; of rows in
// {tlast, tdata}, of sums out {tlast, tdata}.
//
// Reports cycles from the first beat taken: `index` to the first index, `sum` to the first sum, `span` to the last beat of all.
`default_nettype none
module places_tb;

parameter BEATS   = 4;
parameter LANES   = 4;
parameter BITS    = 16;
parameter IDS     = 4;
parameter CONTEXT = 4;
parameter COUNT   = 0;
parameter TYPES   = 1;

localparam W = 16 * LANES;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, outs, seed, in_stall, out_stall, quiet = 0, first_in = -1, first_index = -1, first_row = -1, first_sum = -1, last_out = -1;

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("outs=%d", outs)) outs = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
end
always #1 clk = !clk;

wire [31:0]  i_tdata, x_tdata, i_beats, x_beats, s_beats, m_beats;
wire [15:0]  i_place;
wire [W-1:0] s_tdata, m_tdata;
wire         i_tlast, i_tvalid, i_tready, x_tlast, x_tvalid, x_tready, s_tlast, s_tvalid, s_tready, m_tlast, m_tvalid, m_tready, x_bad, m_bad, stray;

tb_source #(.WIDTH(49), .FILE("ids.hex")) u_ids (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall),
    .tdata({i_tlast, i_place, i_tdata}), .tvalid(i_tvalid), .tready(i_tready), .beats(i_beats));
tb_source #(.WIDTH(W + 1), .FILE("rows.hex")) u_rows (.clk(clk), .rst(rst), .seed(seed + 7), .stall(in_stall),
    .tdata({s_tlast, s_tdata}), .tvalid(s_tvalid), .tready(s_tready), .beats(s_beats));
mlo_places #(.BEATS(BEATS), .LANES(LANES), .BITS(BITS), .IDS(IDS), .CONTEXT(CONTEXT), .COUNT(COUNT), .TYPES(TYPES)) dut (.clk(clk), .rst(rst), .stray(stray),
    .s_ids_tdata(i_tdata), .s_ids_place(i_place), .s_ids_tvalid(i_tvalid), .s_ids_tready(i_tready), .s_ids_tlast(i_tlast),
    .m_ids_tdata(x_tdata), .m_ids_tvalid(x_tvalid), .m_ids_tready(x_tready), .m_ids_tlast(x_tlast),
    .s_axis_tdata(s_tdata), .s_axis_tvalid(s_tvalid), .s_axis_tready(s_tready), .s_axis_tlast(s_tlast),
    .m_axis_tdata(m_tdata), .m_axis_tvalid(m_tvalid), .m_axis_tready(m_tready), .m_axis_tlast(m_tlast));
tb_sink #(.WIDTH(33), .FILE("index.hex")) u_index (.clk(clk), .rst(rst), .seed(seed + 100), .stall(out_stall),
    .tdata({x_tlast, x_tdata}), .tvalid(x_tvalid), .tready(x_tready), .beats(x_beats), .bad(x_bad));
tb_sink #(.WIDTH(W + 1), .FILE("out.hex")) u_sink (.clk(clk), .rst(rst), .seed(seed + 200), .stall(out_stall),
    .tdata({m_tlast, m_tdata}), .tvalid(m_tvalid), .tready(m_tready), .beats(m_beats), .bad(m_bad));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 1'b0;
    if (!rst) begin
        if (i_tvalid && first_in < 0) first_in = cycle;
        if (x_tvalid && first_index < 0) first_index = cycle;
        if (s_tvalid && s_tready && first_row < 0) first_row = cycle;
        if (m_tvalid && first_sum < 0) first_sum = cycle;
        if ((m_tvalid && m_tready) || (x_tvalid && x_tready)) last_out = cycle;
        quiet <= m_beats == outs && x_beats == 2 * words ? quiet + 1 : 0;
        if (quiet == 20) begin
            if (x_bad || m_bad || i_beats != words || m_tvalid || x_tvalid) $display("FAIL contract: bad=%b%b in=%0d out=%0d", x_bad, m_bad, i_beats, m_beats);
            else $display("PASS index=%0d sum=%0d span=%0d stray=%0d", first_index - first_in, first_sum - first_row, last_out - first_in, stray);
            $finish;
        end
    end
    if (cycle > 400 + outs * 60) begin
        $display("FAIL watchdog: in=%0d out=%0d", i_beats, m_beats);
        $finish;
    end
end

endmodule
`default_nettype wire
