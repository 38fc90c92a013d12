// Made by mlo @VERSION@ from shapes, widths and folding; structure only, the logic is in the modules beside this file.
//
// mlo_core: a loop: what brings its parameters, its doors, its layer. It knows no registers: a top has those, and may
// have several cores, which share a memory (mlo_axi_share).
`default_nettype none
module mlo_core (
    input  wire         clk,
    input  wire         rst,
    input  wire         core_rst,               // rst, or the soft reset: what is inside is forgotten
    // from registers
    input  wire         enable,                 // parameters may be read
    input  wire [63:0]  base,                   // where they lie
    input  wire [15:0]  iterations,
    input  wire [7:0]   frames,                 // in flight
@JOBS@    // from mlo_job: a pulse before a job's first beat; with it the position of its first token; the first bank of its sequence
@JOBS@    input  wire         job_begin,
@JOBS@    input  wire [15:0]  job_start,
@JOBS@    input  wire [15:0]  job_bank,
@KV@    input  wire [63:0]  kv_base,                // where keys and values lie
@KV@    output wire [31:0]  kv_read,                // beats of those
@KV@    output wire [31:0]  kv_written,
@KV@    output wire m_axi_kv_arid,
@KV@    output wire [63:0] m_axi_kv_araddr,
@KV@    output wire [7:0] m_axi_kv_arlen,
@KV@    output wire [2:0] m_axi_kv_arsize,
@KV@    output wire [1:0] m_axi_kv_arburst,
@KV@    output wire m_axi_kv_arvalid,
@KV@    input  wire m_axi_kv_arready,
@KV@    input  wire m_axi_kv_rid,
@KV@    input  wire [@AXI_MSB@:0] m_axi_kv_rdata,
@KV@    input  wire [1:0] m_axi_kv_rresp,
@KV@    input  wire m_axi_kv_rlast,
@KV@    input  wire m_axi_kv_rvalid,
@KV@    output wire m_axi_kv_rready,
@KV@    output wire m_axi_kv_awid,
@KV@    output wire [63:0] m_axi_kv_awaddr,
@KV@    output wire [7:0] m_axi_kv_awlen,
@KV@    output wire [2:0] m_axi_kv_awsize,
@KV@    output wire [1:0] m_axi_kv_awburst,
@KV@    output wire m_axi_kv_awvalid,
@KV@    input  wire m_axi_kv_awready,
@KV@    output wire [@AXI_MSB@:0] m_axi_kv_wdata,
@KV@    output wire [@STRB_MSB@:0] m_axi_kv_wstrb,
@KV@    output wire m_axi_kv_wlast,
@KV@    output wire m_axi_kv_wvalid,
@KV@    input  wire m_axi_kv_wready,
@KV@    input  wire m_axi_kv_bid,
@KV@    input  wire [1:0] m_axi_kv_bresp,
@KV@    input  wire m_axi_kv_bvalid,
@KV@    output wire m_axi_kv_bready,
    // to registers
    output wire [@READERS_MSB@:0]  param_beat,              // of each reader: it dealt out a beat
    output wire         bus_error,
    output wire [@STAT_MSB@:0] stat,                    // of each kernel {blocked, starved, busy}
    // activations in, attention mask in, activations out, parameters: as mlo_top has them
    input  wire [@IO_MSB@:0]  s_axis_tdata,
    input  wire         s_axis_tvalid,
    output wire         s_axis_tready,
    input  wire         s_axis_tlast,
@MASK@    input  wire [7:0]   s1_axis_tdata,
@MASK@    input  wire         s1_axis_tvalid,
@MASK@    output wire         s1_axis_tready,
@MASK@    input  wire         s1_axis_tlast,
@REPLAY@    input  wire [@REPLAY_MSB@:0]  s2_axis_tdata,
@REPLAY@    input  wire         s2_axis_tvalid,
@REPLAY@    output wire         s2_axis_tready,
@REPLAY@    input  wire         s2_axis_tlast,
@REPLAY_MASK@    input  wire [7:0]   s3_axis_tdata,
@REPLAY_MASK@    input  wire         s3_axis_tvalid,
@REPLAY_MASK@    output wire         s3_axis_tready,
@REPLAY_MASK@    input  wire         s3_axis_tlast,
    output wire [@IO_MSB@:0]  m_axis_tdata,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    output wire         m_axi_arid,
    output wire [63:0]  m_axi_araddr,
    output wire [7:0]   m_axi_arlen,
    output wire [2:0]   m_axi_arsize,
    output wire [1:0]   m_axi_arburst,
    output wire         m_axi_arvalid,
    input  wire         m_axi_arready,
    input  wire         m_axi_rid,
    input  wire [@AXI_MSB@:0] m_axi_rdata,
    input  wire [1:0]   m_axi_rresp,
    input  wire         m_axi_rlast,
    input  wire         m_axi_rvalid,
    output wire         m_axi_rready
);

    // ---- readers: the loader, and one for each matrix in row blocks
    wire [@READERS_MSB@:0] ar_id, ar_valid, ar_ready, r_valid, r_ready, errors, idles;
    wire [64*@READERS@-1:0] ar_addr;
    wire [8*@READERS@-1:0] ar_len;
    wire [3*@READERS@-1:0] ar_size;
    wire [2*@READERS@-1:0] ar_burst;
    wire [@AXI_MSB@:0] r_data;
    wire [1:0] r_resp;
    wire r_last;
@KV@    wire kv_error;
@KV@    assign bus_error = |errors || kv_error;
@NO_KV@    assign bus_error = |errors;
@ALONE@    assign m_axi_arid = ar_id;
@ALONE@    assign m_axi_araddr = ar_addr;
@ALONE@    assign m_axi_arlen = ar_len;
@ALONE@    assign m_axi_arsize = ar_size;
@ALONE@    assign m_axi_arburst = ar_burst;
@ALONE@    assign m_axi_arvalid = ar_valid;
@ALONE@    assign ar_ready = m_axi_arready;
@ALONE@    assign r_data = m_axi_rdata;
@ALONE@    assign r_resp = m_axi_rresp;
@ALONE@    assign r_last = m_axi_rlast;
@ALONE@    assign r_valid = m_axi_rvalid;
@ALONE@    assign m_axi_rready = r_ready;
@SHARED@    reg [63:0] block_base;                      // behind what the loader reads; settled long before it is used
@SHARED@    always @(posedge clk) block_base <= base + {@BASE_PAD@'d0, loop_beats, @BEAT_SIZE@'d0};
@SHARED@    mlo_axi_share #(.PORTS(@READERS@), .ADDR_WIDTH(64), .DATA_WIDTH(@AXI@)) u_share (
@SHARED@        .clk(clk), .rst(rst),
@SHARED@        .s_araddr(ar_addr), .s_arlen(ar_len), .s_arsize(ar_size[2:0]), .s_arburst(ar_burst[1:0]),
@SHARED@        .s_arvalid(ar_valid), .s_arready(ar_ready),
@SHARED@        .s_rdata(r_data), .s_rresp(r_resp), .s_rlast(r_last), .s_rvalid(r_valid), .s_rready(r_ready),
@SHARED@        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen),
@SHARED@        .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst),
@SHARED@        .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready),
@SHARED@        .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),
@SHARED@        .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready));
@SHARED@    wire unused_share = &{1'b0, ar_id, ar_size, ar_burst};

    // ---- parameters: every iteration reads the memories below in this order, those of RESIDENT in the first round only
    localparam [32*@PORTS@-1:0] BEATS = {@MEMORY_BEATS@};
    localparam [@PORTS_MSB@:0] RESIDENT = @PORTS@'b@RESIDENT@;
    wire [@AXI_MSB@:0] p_tdata;
    wire [@PORTS_MSB@:0] p_tvalid, p_tready;
    wire p_tlast;
    wire [47:0] loop_beats;
    mlo_loader #(
        .ADDR_WIDTH(64), .DATA_WIDTH(@AXI@), .PORTS(@PORTS@), .BEATS(BEATS), .RESIDENT(RESIDENT)
    ) u_loader (
        .clk(clk), .rst(rst), .flush(core_rst), .enable(enable), .base(base), .iterations(@ROUNDS@),
        .beat(param_beat[0]), .error(errors[0]), .idle(idles[0]), .total(loop_beats),
        .m_axi_arid(ar_id[0]), .m_axi_araddr(ar_addr[63:0]), .m_axi_arlen(ar_len[7:0]),
        .m_axi_arsize(ar_size[2:0]), .m_axi_arburst(ar_burst[1:0]),
        .m_axi_arvalid(ar_valid[0]), .m_axi_arready(ar_ready[0]),
@ALONE@        .m_axi_rid(m_axi_rid),
@SHARED@        .m_axi_rid(1'b0),
        .m_axi_rdata(r_data), .m_axi_rresp(r_resp),
        .m_axi_rlast(r_last), .m_axi_rvalid(r_valid[0]), .m_axi_rready(r_ready[0]),
        .m_axis_tdata(p_tdata), .m_axis_tlast(p_tlast), .m_axis_tvalid(p_tvalid), .m_axis_tready(p_tready));
    wire unused = &{1'b0, idles, loop_beats, iterations};

@ROLLED@    // ---- the loop: iteration 0 comes from outside, the last one leaves, the rest goes round
@UNROLLED@    // ---- the doors; nothing goes round, mlo_loop marks the first token
@BUSES@
    mlo_entry #(.C(@CHANNELS@), .LANES(@LANES@), .BITS(@BITS@), .MASK(@MASKED@)) u_entry (
        .clk(clk), .rst(core_rst),
        .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
        .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast),
@MASK@        .s1_axis_tdata(s1_axis_tdata), .s1_axis_tvalid(s1_axis_tvalid),
@MASK@        .s1_axis_tready(s1_axis_tready), .s1_axis_tlast(s1_axis_tlast),
@UNMASKED@        .s1_axis_tdata(8'd0), .s1_axis_tvalid(1'b0), .s1_axis_tready(unused_mask), .s1_axis_tlast(1'b0),
        .m_axis_tdata(entry_tdata), .m_axis_tvalid(entry_tvalid),
        .m_axis_tready(entry_tready), .m_axis_tuser(entry_tuser));
@UNMASKED@    wire unused_mask;
    wire turn_valid, turn_ready, turn_round, turn_sealed;
@GROUPED@    // to each matrix in row blocks: whether a group of frames ends with a frame
@GROUPED@    wire ends_tdata, ends_tvalid;
@GROUPED@    wire [@ENDS_MSB@:0] ends_room;
@GROUPED@    wire turn_room = &ends_room;
@UNGROUPED@    wire unused_ends, unused_end;
@UNGROUPED@    wire turn_room = 1'b1;
@NO_JOBS@    assign turn_ready = turn_room;
@NO_JOBS@    wire unused_turn = &{1'b0, turn_valid, turn_round, turn_sealed};
@JOBS@    // the word of each frame that enters the layer, {start, bank}: to all that ask where it is of
@JOBS@    wire [31:0] job_tdata, turn_tdata, word_tdata;
@JOBS@    wire job_tvalid, job_tready, turn_tvalid, turn_tready, unused_room;
@JOBS@    wire [32:0] ahead_tdata;
@JOBS@    wire ahead_tvalid, turn_told;
@JOBS@    assign turn_ready = turn_told && turn_room;
@JOBS@    wire [@TOLD_MSB@:0] word_tvalid, word_tready;
@JOBS@    wire [@JOBS_MSB@:0] jobs_level;
@JOBS@    mlo_fifo #(.WIDTH(32), .DEPTH(@FRAMES@)) u_jobs (
@JOBS@        .clk(clk), .rst(core_rst), .level(jobs_level),
@JOBS@        .s_tdata({job_start, job_bank}), .s_tvalid(job_begin), .s_tready(unused_room),
@JOBS@        .m_tdata(job_tdata), .m_tvalid(job_tvalid), .m_tready(job_tready));
@JOBS@    mlo_orders #(.FRAMES(@FRAMES@)) u_orders (
@JOBS@        .clk(clk), .rst(core_rst), .iterations(iterations),
@JOBS@        .turn_valid(turn_valid && turn_room), .turn_ready(turn_told), .turn_round(turn_round),
@JOBS@        .sealed(turn_sealed), .ahead_valid(ahead_tvalid), .ahead_tdata(ahead_tdata),
@JOBS@        .s_job_tdata(job_tdata), .s_job_tvalid(job_tvalid), .s_job_tready(job_tready),
@JOBS@        .m_word_tdata(turn_tdata), .m_word_tvalid(turn_tvalid), .m_word_tready(turn_tready));
@JOBS@    mlo_fork #(.WIDTH(32), .N(@TOLD@)) u_words (
@JOBS@        .clk(clk), .rst(core_rst), .s_tdata(turn_tdata), .s_tvalid(turn_tvalid), .s_tready(turn_tready),
@JOBS@        .m_tdata(word_tdata), .m_tvalid(word_tvalid), .m_tready(word_tready));
@JOBS@    wire unused_jobs = &{1'b0, jobs_level, unused_room, ahead_tvalid, ahead_tdata};
    mlo_loop #(.WIDTH(@WIDTH@), .BEATS(@TOKEN_BEATS@), .PATIENCE(@PATIENCE@)) u_loop (
        .clk(clk), .rst(core_rst), .iterations(@ROUNDS@), .frames(frames),
        .s_ext_tdata(entry_tdata), .s_ext_tvalid(entry_tvalid),
        .s_ext_tready(entry_tready), .s_ext_tuser(entry_tuser),
        .turn_valid(turn_valid), .turn_ready(turn_ready), .turn_round(turn_round), .turn_sealed(turn_sealed),
@GROUPED@        .ends_tdata(ends_tdata), .ends_tvalid(ends_tvalid),
@UNGROUPED@        .ends_tdata(unused_end), .ends_tvalid(unused_ends),
        .m_body_tdata(body_tdata), .m_body_tvalid(body_tvalid),
        .m_body_tready(body_tready), .m_body_tuser(body_tuser),
        .s_body_tdata(result_tdata), .s_body_tvalid(result_tvalid),
        .s_body_tready(result_tready), .s_body_tuser(result_tuser),
        .m_fb_tdata(feed_tdata), .m_fb_tvalid(feed_tvalid),
        .m_fb_tready(feed_tready), .m_fb_tuser(feed_tuser),
        .s_fb_tdata(fed_tdata), .s_fb_tvalid(fed_tvalid),
        .s_fb_tready(fed_tready), .s_fb_tuser(fed_tuser),
        .m_ext_tdata(leaving_tdata), .m_ext_tvalid(leaving_tvalid),
        .m_ext_tready(leaving_tready), .m_ext_tuser(leaving_tuser));
@ROLLED@    wire [@LEVEL_MSB@:0] feed_level;
@ROLLED@    mlo_fifo #(.WIDTH(@WIDTH@ + 3), .DEPTH(@FEED_DEPTH@)) u_feedback (        // @FEED_TOKENS@ tokens
@ROLLED@        .clk(clk), .rst(core_rst), .level(feed_level),
@ROLLED@        .s_tdata({@FEED@_tuser, @FEED@_tdata}), .s_tvalid(@FEED@_tvalid), .s_tready(@FEED@_tready),
@ROLLED@        .m_tdata({fed_tuser, fed_tdata}), .m_tvalid(fed_tvalid), .m_tready(fed_tready));
@ROLLED@    wire unused_level = &{1'b0, feed_level};
@UNROLLED@    assign fed_tuser = 3'd0;
@UNROLLED@    assign fed_tdata = {@WIDTH@{1'b0}};
@UNROLLED@    assign fed_tvalid = 1'b0;
@UNROLLED@    assign feed_tready = 1'b0;
@UNROLLED@    wire unused_feed = &{1'b0, feed_tuser, feed_tdata, feed_tvalid, fed_tready};
@EVERY@    // ---- every layer's tokens leave: what goes round does, too
@EVERY@    mlo_every #(.WIDTH(@WIDTH@)) u_every (
@EVERY@        .clk(clk), .rst(core_rst),
@EVERY@        .s_fb_tdata(feed_tdata), .s_fb_tvalid(feed_tvalid), .s_fb_tready(feed_tready), .s_fb_tuser(feed_tuser),
@EVERY@        .s_ext_tdata(leaving_tdata), .s_ext_tvalid(leaving_tvalid), .s_ext_tready(leaving_tready), .s_ext_tuser(leaving_tuser),
@EVERY@        .m_fb_tdata(round_tdata), .m_fb_tvalid(round_tvalid), .m_fb_tready(round_tready), .m_fb_tuser(round_tuser),
@EVERY@        .m_ext_tdata(each_tdata), .m_ext_tvalid(each_tvalid), .m_ext_tready(each_tready), .m_ext_tuser(each_tuser));
    mlo_exit #(.C(@CHANNELS@), .LANES(@LANES@), .BITS(@BITS@)) u_exit (
        .clk(clk), .rst(core_rst),
        .s_axis_tdata(@LEAVING@_tdata), .s_axis_tvalid(@LEAVING@_tvalid),
        .s_axis_tready(@LEAVING@_tready), .s_axis_tuser(@LEAVING@_tuser),
        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid),
        .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast));

@LAYER@
endmodule
`default_nettype wire
