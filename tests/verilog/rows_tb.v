// SPDX-License-Identifier: MIT
// rows_tb: mlo_rows between a stalling source of ids, mlo_sim_ram and a stalling sink; words in are {tlast, id}, out {tlast, tdata}.
//
// Reports cycles from the first id taken: `latency` to the first output, `span` to the last; `ar` to the first request.
`default_nettype none
module rows_tb;

parameter C          = 16;
parameter LANES      = 4;
parameter IDS        = 4;
parameter AXI_WIDTH  = 128;
parameter FIFO_BEATS = 64;
parameter MAX_BURST  = 32;
parameter BASE       = 0;

localparam W = 16 * LANES;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, outs, seed, in_stall, out_stall, ram_stall, latency, fault, quiet = 0, first_in = -1, first_ar = -1, first_out = -1, last_out = -1;

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("outs=%d", outs)) outs = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
    if (!$value$plusargs("ram_stall=%d", ram_stall)) ram_stall = 0;
    if (!$value$plusargs("latency=%d", latency)) latency = 1;
    if (!$value$plusargs("fault=%d", fault)) fault = 0;
end
always #1 clk = !clk;

wire [31:0]  s_tdata;
wire [W-1:0] m_tdata;
wire         s_tlast, s_tvalid, s_tready, m_tlast, m_tvalid, m_tready, bad, error, stray;
wire [31:0]  in_beats, out_beats, ram_beats, breaches;
wire arid, rid, arvalid, arready, rlast, rvalid, rready, owing;
wire [63:0] araddr;
wire [7:0] arlen;
wire [2:0] arsize;
wire [1:0] arburst, rresp;
wire [AXI_WIDTH-1:0] rdata;

tb_source #(.WIDTH(33)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall), .tdata({s_tlast, s_tdata}), .tvalid(s_tvalid), .tready(s_tready), .beats(in_beats));
mlo_rows #(.C(C), .LANES(LANES), .IDS(IDS), .AXI_WIDTH(AXI_WIDTH), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)) dut (
    .clk(clk), .rst(rst), .flush(1'b0), .base(64'h1_0000 + BASE), .error(error), .stray(stray),
    .s_axis_tdata(s_tdata), .s_axis_tvalid(s_tvalid), .s_axis_tready(s_tready), .s_axis_tlast(s_tlast),
    .m_axis_tdata(m_tdata), .m_axis_tvalid(m_tvalid), .m_axis_tready(m_tready), .m_axis_tlast(m_tlast),
    .m_axi_arid(arid), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(arsize), .m_axi_arburst(arburst),
    .m_axi_arvalid(arvalid), .m_axi_arready(arready), .m_axi_rid(rid), .m_axi_rdata(rdata), .m_axi_rresp(rresp),
    .m_axi_rlast(rlast), .m_axi_rvalid(rvalid), .m_axi_rready(rready));
tb_sink #(.WIDTH(W + 1), .FILE("out.hex")) u_sink (.clk(clk), .rst(rst), .seed(seed + 100), .stall(out_stall),
    .tdata({m_tlast, m_tdata}), .tvalid(m_tvalid), .tready(m_tready), .beats(out_beats), .bad(bad));
mlo_sim_ram #(.DATA_WIDTH(AXI_WIDTH), .ADDR_WIDTH(64), .DEPTH(4096), .FILE("ram.hex")) u_ram (
    .clk(clk), .rst(rst), .seed(seed), .stall(ram_stall), .latency(latency), .rate(32'd0), .fault(fault), .base(64'h1_0000), .beats(ram_beats),
    .write({AXI_WIDTH/8{1'b0}}), .write_word(64'd0), .write_data({AXI_WIDTH{1'b0}}),
    .s_axi_arid(arid), .s_axi_araddr(araddr), .s_axi_arlen(arlen), .s_axi_arsize(arsize), .s_axi_arburst(arburst),
    .s_axi_arvalid(arvalid), .s_axi_arready(arready), .s_axi_rid(rid), .s_axi_rdata(rdata), .s_axi_rresp(rresp),
    .s_axi_rlast(rlast), .s_axi_rvalid(rvalid), .s_axi_rready(rready));
mlo_sim_check_axi #(.DATA_WIDTH(AXI_WIDTH), .BURST(MAX_BURST)) u_check (
    .clk(clk), .rst(rst), .cycle(cycle), .arid(arid), .araddr(araddr), .arlen(arlen), .arsize(arsize), .arburst(arburst), .arvalid(arvalid), .arready(arready),
    .rid(rid), .rdata(rdata), .rresp(rresp), .rlast(rlast), .rvalid(rvalid), .rready(rready), .asked(), .sent(), .breaches(breaches), .owing(owing));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 1'b0;
    if (!rst) begin
        if (s_tvalid && s_tready && first_in < 0) first_in = cycle;
        if (arvalid && first_ar < 0) first_ar = cycle;
        if (m_tvalid && first_out < 0) first_out = cycle;
        if (m_tvalid && m_tready) last_out = cycle;
        quiet <= out_beats == outs ? quiet + 1 : 0;
        if (quiet == 40) begin
            if (bad || in_beats != words || m_tvalid || breaches != 0)
                $display("FAIL contract: bad=%b in=%0d out=%0d breaches=%0d", bad, in_beats, out_beats, breaches);
            else
                $display("PASS latency=%0d span=%0d ar=%0d error=%0d stray=%0d read=%0d", first_out - first_in, last_out - first_in, first_ar - first_in, error, stray, ram_beats);
            $finish;
        end
    end
    if (cycle > 2000 + (words + outs) * 120) begin
        $display("FAIL watchdog: in=%0d out=%0d", in_beats, out_beats);
        $finish;
    end
end

endmodule
`default_nettype wire
