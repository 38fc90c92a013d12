// SPDX-License-Identifier: MIT
// kv_tb: mlo_kv between two sources, two sinks and a memory with both judges; words come as frames leave
//
// words.hex: {start, bank, first, beats that have left at each sink when the word comes}. ram.hex fills the memory, of which DEPTH words begin at byte 0x1000_0F80; at the end it is written to mem.hex. A flush comes in cycle flush_at.
// The beat that is read with an error (fault_r) has all its bits wrong; the burst that is written with one (fault_b) is lost.
`default_nettype none
module kv_tb;
parameter CONTEXT = 8, BEATS = 4, LANES = 2, BITS = 8, AXI_WIDTH = 32, FRAMES = 1, FIFO_BEATS = 16, MAX_BURST = 8, DEPTH = 4096;
localparam W = LANES * BITS;
localparam BYTES = AXI_WIDTH / 8;

reg     clk = 1'b0, rst = 1'b1, flush = 1'b0;
integer cycle = 0, seed, stall_k, stall_v, stall_out, stall_ram, latency, fault_r, fault_b, jobs, all_beats, flush_at, timeout, i, file, last = 0, begun = 0;
initial begin
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("stall_k=%d", stall_k)) stall_k = 0;
    if (!$value$plusargs("stall_v=%d", stall_v)) stall_v = 0;
    if (!$value$plusargs("stall_out=%d", stall_out)) stall_out = 0;
    if (!$value$plusargs("stall_ram=%d", stall_ram)) stall_ram = 0;
    if (!$value$plusargs("latency=%d", latency)) latency = 1;
    if (!$value$plusargs("fault_r=%d", fault_r)) fault_r = 0;
    if (!$value$plusargs("fault_b=%d", fault_b)) fault_b = 0;
    if (!$value$plusargs("flush_at=%d", flush_at)) flush_at = 0;
    if (!$value$plusargs("jobs=%d", jobs)) jobs = 0;
    if (!$value$plusargs("all=%d", all_beats)) all_beats = 0;
    if (!$value$plusargs("timeout=%d", timeout)) timeout = 200000;
    $readmemh("words.hex", job, 0, jobs - 1);
    $readmemh("ram.hex", u_ram.mem);
end
always #1 clk = !clk;

reg  [63:0] job [0:1023];
integer     at = 0;
reg         word_valid = 1'b0;
reg  [32:0] word = 33'd0;
wire [1:0]  done;
wire [31:0] k_beats, v_beats, k_in, v_in, beats_read, beats_written, breaches_r, breaches_w, ram_r, ram_w;
wire [W+2:0] k_in_data, v_in_data, k_out, v_out;
wire        k_in_valid, k_in_ready, v_in_valid, v_in_ready, k_out_valid, k_out_ready, v_out_valid, v_out_ready, k_bad, v_bad, error;
wire        arid, arvalid, arready, rid, rlast, rvalid, rready, awid, awvalid, awready, wlast, wvalid, wready, bid, bvalid, bready;
wire [63:0] araddr, awaddr;
wire [7:0]  arlen, awlen;
wire [2:0]  arsize, awsize;
wire [1:0]  arburst, awburst, rresp, bresp, owing;
wire [AXI_WIDTH-1:0] rdata, wdata;
wire [AXI_WIDTH-1:0] seen = rresp == 2'b00 ? rdata : ~rdata;
wire [BYTES-1:0]     wstrb, write;
wire [63:0] write_word;
wire [AXI_WIDTH-1:0] write_data;
localparam [63:0] BASE = 64'h1000_0F80;

tb_source #(.WIDTH(W + 3), .FILE("k.hex")) u_k (.clk(clk), .rst(rst), .seed(seed), .stall(stall_k), .tdata(k_in_data), .tvalid(k_in_valid), .tready(k_in_ready), .beats(k_in));
tb_source #(.WIDTH(W + 3), .FILE("v.hex")) u_v (.clk(clk), .rst(rst), .seed(seed + 9), .stall(stall_v), .tdata(v_in_data), .tvalid(v_in_valid), .tready(v_in_ready), .beats(v_in));
tb_sink #(.WIDTH(W + 3), .FILE("k_out.hex")) u_k_out (.clk(clk), .rst(rst || flush), .seed(seed + 2), .stall(stall_out), .tdata(k_out), .tvalid(k_out_valid), .tready(k_out_ready), .beats(k_beats), .bad(k_bad));
tb_sink #(.WIDTH(W + 3), .FILE("v_out.hex")) u_v_out (.clk(clk), .rst(rst || flush), .seed(seed + 3), .stall(stall_out), .tdata(v_out), .tvalid(v_out_valid), .tready(v_out_ready), .beats(v_beats), .bad(v_bad));

mlo_kv #(.CONTEXT(CONTEXT), .BEATS(BEATS), .LANES(LANES), .BITS(BITS), .AXI_WIDTH(AXI_WIDTH), .FRAMES(FRAMES), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)) dut (
    .clk(clk), .rst(rst), .flush(flush), .error(error), .beats_read(beats_read), .beats_written(beats_written), .base(BASE + 16 * BYTES),
    .word_valid(word_valid), .word_tdata(word),
    .s_axis_k_tdata(k_in_data[W-1:0]), .s_axis_k_tvalid(k_in_valid), .s_axis_k_tready(k_in_ready), .s_axis_k_tuser(k_in_data[W+2:W]),
    .s_axis_v_tdata(v_in_data[W-1:0]), .s_axis_v_tvalid(v_in_valid), .s_axis_v_tready(v_in_ready), .s_axis_v_tuser(v_in_data[W+2:W]),
    .m_axis_k_tdata(k_out[W-1:0]), .m_axis_k_tvalid(k_out_valid), .m_axis_k_tready(k_out_ready), .m_axis_k_tuser(k_out[W+2:W]),
    .m_axis_v_tdata(v_out[W-1:0]), .m_axis_v_tvalid(v_out_valid), .m_axis_v_tready(v_out_ready), .m_axis_v_tuser(v_out[W+2:W]),
    .m_axi_arid(arid), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(arsize), .m_axi_arburst(arburst), .m_axi_arvalid(arvalid), .m_axi_arready(arready),
    .m_axi_rid(rid), .m_axi_rdata(seen), .m_axi_rresp(rresp), .m_axi_rlast(rlast), .m_axi_rvalid(rvalid), .m_axi_rready(rready),
    .m_axi_awid(awid), .m_axi_awaddr(awaddr), .m_axi_awlen(awlen), .m_axi_awsize(awsize), .m_axi_awburst(awburst), .m_axi_awvalid(awvalid), .m_axi_awready(awready),
    .m_axi_wdata(wdata), .m_axi_wstrb(wstrb), .m_axi_wlast(wlast), .m_axi_wvalid(wvalid), .m_axi_wready(wready),
    .m_axi_bid(bid), .m_axi_bresp(bresp), .m_axi_bvalid(bvalid), .m_axi_bready(bready));
mlo_sim_ram #(.DATA_WIDTH(AXI_WIDTH), .DEPTH(DEPTH)) u_ram (
    .clk(clk), .rst(rst), .seed(seed + 4), .stall(stall_ram), .latency(latency), .rate(32'd0), .fault(fault_r), .base(BASE), .beats(ram_r),
    .write(lost ? {BYTES{1'b0}} : write), .write_word(write_word), .write_data(write_data),
    .s_axi_arid(arid), .s_axi_araddr(araddr), .s_axi_arlen(arlen), .s_axi_arsize(arsize), .s_axi_arburst(arburst), .s_axi_arvalid(arvalid), .s_axi_arready(arready),
    .s_axi_rid(rid), .s_axi_rdata(rdata), .s_axi_rresp(rresp), .s_axi_rlast(rlast), .s_axi_rvalid(rvalid), .s_axi_rready(rready));
mlo_sim_ram_write #(.DATA_WIDTH(AXI_WIDTH), .DEPTH(DEPTH)) u_ram_write (
    .clk(clk), .rst(rst), .seed(seed + 5), .stall(stall_ram), .latency(latency), .fault(fault_b), .base(BASE), .beats(ram_w),
    .s_axi_awid(awid), .s_axi_awaddr(awaddr), .s_axi_awlen(awlen), .s_axi_awsize(awsize), .s_axi_awburst(awburst), .s_axi_awvalid(awvalid), .s_axi_awready(awready),
    .s_axi_wdata(wdata), .s_axi_wstrb(wstrb), .s_axi_wlast(wlast), .s_axi_wvalid(wvalid), .s_axi_wready(wready),
    .s_axi_bid(bid), .s_axi_bresp(bresp), .s_axi_bvalid(bvalid), .s_axi_bready(bready), .write(write), .write_word(write_word), .write_data(write_data));
mlo_sim_check_axi #(.DATA_WIDTH(AXI_WIDTH), .BURST(MAX_BURST)) u_check (
    .clk(clk), .rst(rst), .cycle(cycle), .asked(), .sent(), .breaches(breaches_r), .owing(owing[0]),
    .arid(arid), .araddr(araddr), .arlen(arlen), .arsize(arsize), .arburst(arburst), .arvalid(arvalid), .arready(arready),
    .rid(rid), .rdata(rdata), .rresp(rresp), .rlast(rlast), .rvalid(rvalid), .rready(rready));
mlo_sim_check_axi_write #(.DATA_WIDTH(AXI_WIDTH), .BURST(MAX_BURST)) u_check_write (
    .clk(clk), .rst(rst), .cycle(cycle), .asked(), .written(), .answered(), .breaches(breaches_w), .owing(owing[1]),
    .awid(awid), .awaddr(awaddr), .awlen(awlen), .awsize(awsize), .awburst(awburst), .awvalid(awvalid), .awready(awready),
    .wdata(wdata), .wstrb(wstrb), .wlast(wlast), .wvalid(wvalid), .wready(wready), .bid(bid), .bresp(bresp), .bvalid(bvalid), .bready(bready));

// what is lost; how much had left when the error was said
reg         lost = 1'b0;
integer     bursts = 1, k_before = -1, v_before = -1;
always @(posedge clk) begin
    lost   <= bursts == fault_b;
    bursts <= rst ? 1 : bursts + (wvalid && wready && wlast);
    if (!rst && error && k_before < 0) begin
        k_before <= k_beats;
        v_before <= v_beats;
    end
end

// a word comes when those beats have left
wire        left = at == jobs && k_beats == all_beats && v_beats == all_beats;
wire [31:0] needs = {1'b0, job[at][30:0]};
integer     quiet = 0;
always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 1'b0;
    flush     <= flush_at != 0 && cycle >= flush_at && cycle < flush_at + 16;
    word_valid <= 1'b0;
    if (cycle > 8 && at < jobs && k_beats >= needs && v_beats >= needs && !flush && !(flush_at != 0 && cycle >= flush_at)) begin
        word_valid <= 1'b1;
        word       <= {job[at][31], job[at][63:32]};
        at         <= at + 1;
        begun       = cycle;
    end
    if (k_out_valid && k_out_ready) last = cycle;
    quiet <= (at == jobs || flush_at != 0 && cycle > flush_at + 20) && (left || flush_at != 0) && owing == 0 && !awvalid && !wvalid && !arvalid ? quiet + 1 : 0;
    if (quiet == 100) begin
        file = $fopen("mem.hex", "w");
        for (i = 0; i < DEPTH; i = i + 1) $fdisplay(file, "%h", u_ram.mem[i]);
        $fclose(file);
        if (k_bad || v_bad || breaches_r != 0 || breaches_w != 0 || flush_at == 0 && (beats_read != ram_r || beats_written != ram_w))
            $display("FAIL contract: %b %b %0d %0d; beats %0d of %0d, %0d of %0d", k_bad, v_bad, breaches_r, breaches_w, beats_read, ram_r, beats_written, ram_w);
        else $display("PASS error=%0d k_before=%0d v_before=%0d read=%0d written=%0d time=%0d cycles=%0d", error, k_before, v_before, ram_r, ram_w, last - begun, cycle);
        $finish;
    end
    if (cycle > timeout) begin
        $display("FAIL watchdog: job %0d of %0d, %0d and %0d of %0d beats", at, jobs, k_beats, v_beats, all_beats);
        $finish;
    end
end
endmodule
`default_nettype wire
