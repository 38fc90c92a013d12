// Made by mlo @VERSION@ from shapes, widths and folding; structure only, the logic is in the modules beside this file.
// @LAYERS@ of hardware; frames of up to @TOKENS@ tokens of @CHANNELS@ channels; up to @FRAMES@ frames in flight;
// @MULTIPLIERS@ multipliers; a token every @INTERVAL@ cycles; @LAYER_BEATS@ parameter beats of @AXI@ bits per iteration.
// Parameters of @RESIDENT_BEATS@ beats per iteration are resident: read once, with room for @DEEPEST@ iterations.
//
// mlo_top: what other IP sees: streams, memory, registers; in it the registers and the core, mlo_core.
`default_nettype none
module mlo_top (
    (* X_INTERFACE_INFO = "xilinx.com:signal:clock:1.0 clk CLK" *)
    (* X_INTERFACE_PARAMETER = "ASSOCIATED_BUSIF @STREAMS@, ASSOCIATED_RESET rst" *)
    input  wire         clk,
    (* X_INTERFACE_INFO = "xilinx.com:signal:reset:1.0 rst RST" *)
    (* X_INTERFACE_PARAMETER = "POLARITY ACTIVE_HIGH" *)
    input  wire         rst,
@NO_IDS@    // activations in: @LANES@ channels of @BITS@ bits a beat, @TOKEN_BEATS@ beats a token; tlast ends a frame
@IDS@    // token ids in, one a beat; tlast ends a frame@TYPED@
    input  wire [@IN_MSB@:0]  s_axis_tdata,
    input  wire         s_axis_tvalid,
    output wire         s_axis_tready,
    input  wire         s_axis_tlast,
@MASK@    // attention mask in: a beat a token, bit 0 = this key counts
@MASK@    input  wire [7:0]   s1_axis_tdata,
@MASK@    input  wire         s1_axis_tvalid,
@MASK@    output wire         s1_axis_tready,
@MASK@    input  wire         s1_axis_tlast,
@REPLAY@    // what every iteration reads again (an encoder's output): @REPLAY_LANES@ of @REPLAY_CHANNELS@ channels a beat; tlast ends a frame of up to @REPLAY_TOKENS@ tokens
@REPLAY@    input  wire [@REPLAY_MSB@:0]  s2_axis_tdata,
@REPLAY@    input  wire         s2_axis_tvalid,
@REPLAY@    output wire         s2_axis_tready,
@REPLAY@    input  wire         s2_axis_tlast,
@REPLAY_MASK@    // its mask in: a beat a token, bit 0 = this key counts
@REPLAY_MASK@    input  wire [7:0]   s3_axis_tdata,
@REPLAY_MASK@    input  wire         s3_axis_tvalid,
@REPLAY_MASK@    output wire         s3_axis_tready,
@REPLAY_MASK@    input  wire         s3_axis_tlast,
@NO_HEAD@    // activations out@SAME_FORM@
@HEAD@    // what follows a frame: [31:0] the likeliest id, [63:32] its logit@SO_MANY@; tlast ends a text
    output wire [@OUT_MSB@:0]  m_axis_tdata,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    // parameters: AXI4 read master
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
    output wire         m_axi_rready,
@KV@    // keys and values: AXI4 master
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
    // registers: AXI4-Lite, see host/mlo_regs.h
    input  wire [11:0]  s_axil_awaddr,
    input  wire         s_axil_awvalid,
    output wire         s_axil_awready,
    input  wire [31:0]  s_axil_wdata,
    input  wire [3:0]   s_axil_wstrb,
    input  wire         s_axil_wvalid,
    output wire         s_axil_wready,
    output wire [1:0]   s_axil_bresp,
    output wire         s_axil_bvalid,
    input  wire         s_axil_bready,
    input  wire [11:0]  s_axil_araddr,
    input  wire         s_axil_arvalid,
    output wire         s_axil_arready,
    output wire [31:0]  s_axil_rdata,
    output wire [1:0]   s_axil_rresp,
    output wire         s_axil_rvalid,
    input  wire         s_axil_rready
);

    // ---- registers
    wire        core_rst, enable, bus_error;
    wire [@READERS_MSB@:0]  param_beat;
    wire [63:0] base;
@KV@    wire [63:0] kv_base;
@KV@    wire [31:0] kv_read, kv_written;
@NO_KV@    wire [63:0] unused_kv;
    wire [15:0] iterations;
    wire [7:0]  frames;
    wire [@STAT_MSB@:0] stat;                       // of each kernel {blocked, starved, busy}
@JOBS@    wire         job_push, job_begin, job_refused, job_mismatch;
@JOBS@    wire [7:0]   job_slot, job_room;
@JOBS@    wire [23:0]  job_first;
@JOBS@    wire [15:0]  job_tokens, job_start, job_bank;
@JOBS@    // what mlo_job lets in
@JOBS@    wire [@IO_MSB@:0] door_tdata;
@JOBS@    wire        door_tvalid, door_tready, door_tlast;
@JOBS@    wire [7:0]  door_mask_tdata;
@JOBS@    wire        door_mask_tvalid, door_mask_tready, door_mask_tlast;
@NO_JOBS@    wire [48:0] unused_job;
@NO_HEAD@    wire [47:0] unused_text;
@HEAD@    // texts that go on
@HEAD@    wire        text_push, ids_tvalid, ids_tready, ids_tlast, said_tvalid, said_tready, said_tlast;
@HEAD@    wire [7:0]  text_slot, text_room;
@HEAD@    wire [23:0] text_start;
@HEAD@    wire [15:0] text_tokens, job_more, ids_place;
@HEAD@    wire [31:0] stop, ids_tdata;
@HEAD@    wire [@SAID_MSB@:0] said_tdata;
@BEST@    // the words of what follows, side by side, then one behind the other
@BEST@    wire [@SAID_MSB@:0] words_tdata;
@BEST@    wire        words_tvalid, words_tready, words_tlast, word_tvalid, word_tready;
@BEST@    wire [63:0] word_tdata;
@BEST@    wire [2:0]  word_tuser;
@LEAVES@    // what leaves the core
@LEAVES@    wire [@IO_MSB@:0] left_tdata;
@LEAVES@    wire        left_tvalid, left_tready, left_tlast;
@IDS@    // what enters it; both ports to memory
@IDS@    wire        head_error, stray;
@IDS@    wire [@IO_MSB@:0] rows_tdata;
@IDS@    wire        rows_tvalid, rows_tready, rows_tlast;
@IDS@    wire        core_axi_arid, core_axi_arvalid, core_axi_arready, core_axi_rid, core_axi_rlast, core_axi_rvalid, core_axi_rready;
@IDS@    wire        head_axi_arid, head_axi_arvalid, head_axi_rready;
@IDS@    wire [63:0] core_axi_araddr, head_axi_araddr;
@IDS@    wire [7:0]  core_axi_arlen, head_axi_arlen;
@IDS@    wire [2:0]  core_axi_arsize, head_axi_arsize;
@IDS@    wire [1:0]  core_axi_arburst, head_axi_arburst, core_axi_rresp;
@IDS@    wire [@AXI_MSB@:0] core_axi_rdata;
@TAIL@    wire        tail_error, tail_axi_arid, tail_axi_arvalid, tail_axi_rready;
@TAIL@    wire [63:0] tail_axi_araddr;
@TAIL@    wire [7:0]  tail_axi_arlen;
@TAIL@    wire [2:0]  tail_axi_arsize;
@TAIL@    wire [1:0]  tail_axi_arburst;
    mlo_regs #(
        .KERNELS(@KERNELS@), .ITERATIONS(1), .DEEPEST(@DEEPEST@), .FRAMES(@FRAMES@), .READERS(@READERS@), .VERSION(32'h0001_0000)@JOB_PARAMETERS@
    ) u_regs (
        .clk(clk), .rst(rst),
        .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
        .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb),
        .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready),
        .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid), .s_axil_bready(s_axil_bready),
        .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid), .s_axil_arready(s_axil_arready),
        .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
        .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready),
        .core_rst(core_rst), .enable(enable), .base(base), .iterations(iterations), .frames(frames),
@KV@        .kv_base(kv_base), .kv_read(kv_read), .kv_written(kv_written),
@NO_KV@        .kv_base(unused_kv), .kv_read(32'd0), .kv_written(32'd0),
        .in_beat(@DOOR@_tvalid && @DOOR@_tready), .in_last(@DOOR@_tlast),
@JOBS@        .job_push(job_push), .job_slot(job_slot), .job_start(job_first), .job_tokens(job_tokens),
@HEAD@        .job_more(job_more), .stop(stop),
@NO_HEAD@        .job_more(unused_text[47:32]), .stop(unused_text[31:0]),
@JOBS@        .job_room(job_room), .job_refused(job_refused), .job_mismatch(job_mismatch@STRAY@),
@NO_JOBS@        .job_push(unused_job[48]), .job_slot(unused_job[47:40]), .job_start(unused_job[39:16]), .job_tokens(unused_job[15:0]),
@NO_JOBS@        .job_room(8'd0), .job_refused(1'b0), .job_mismatch(@STRAY_ALONE@),
        .out_last(m_axis_tvalid && m_axis_tready && m_axis_tlast),
        .param_beat(param_beat), .bus_error(bus_error@HEAD_ERROR@), .stat(stat));
@NO_JOBS@    wire unused = &{1'b0, unused_job};
@NO_HEAD@    wire unused_more = &{1'b0, unused_text};
@NO_KV@    wire unused_kv_base = &{1'b0, unused_kv};

@JOBS@    // ---- jobs: at the door of a core that keeps @SLOTS@ x @CONTEXT@ positions' keys and values; @FRAMES@ at a time inside
@JOB_UNMASKED@    wire unused_mask;
@JOBS@    mlo_job #(
@JOBS@        .CONTEXT(@CONTEXT@), .SLOTS(@SLOTS@), .DEEPEST(@DEEPEST@), .BEATS(@TOKEN_BEATS@), .WIDTH(@IO_MSB@ + 1), .FRAMES(@FRAMES@), .MASK(@MASKED@)@GIVEN@
@JOBS@    ) u_job (
@JOBS@        .clk(clk), .rst(core_rst),
@JOBS@        .push(@ORDER@_push), .push_slot(@ORDER@_slot), .push_start(@ORDER_START@), .push_tokens(@ORDER@_tokens), .room(@ORDER@_room),
@JOBS@        .s_axis_tdata(@FRONT@_tdata), .s_axis_tvalid(@FRONT@_tvalid), .s_axis_tready(@FRONT@_tready), .s_axis_tlast(@FRONT@_tlast),
@JOBS@        .m_axis_tdata(door_tdata), .m_axis_tvalid(door_tvalid), .m_axis_tready(door_tready), .m_axis_tlast(door_tlast),
@JOB_MASK@        .s1_axis_tdata(s1_axis_tdata), .s1_axis_tvalid(s1_axis_tvalid), .s1_axis_tready(s1_axis_tready), .s1_axis_tlast(s1_axis_tlast),
@JOB_UNMASKED@        .s1_axis_tdata(8'd0), .s1_axis_tvalid(1'b0), .s1_axis_tready(unused_mask), .s1_axis_tlast(1'b0),
@JOBS@        .m1_axis_tdata(door_mask_tdata), .m1_axis_tvalid(door_mask_tvalid), .m1_axis_tready(door_mask_tready), .m1_axis_tlast(door_mask_tlast),
@JOBS@        .out_last(@LEFT@_tvalid && @LEFT@_tready && @LEFT@_tlast),
@JOBS@        .job_begin(job_begin), .job_start(job_start), .job_bank(job_bank), .refused(job_refused), .mismatch(job_mismatch));
@JOB_UNMASKED@    assign door_mask_tready = 1'b0;
@JOB_UNMASKED@    wire unused_job = &{1'b0, door_mask_tdata, door_mask_tvalid, door_mask_tlast, unused_mask};

    // ---- the core
    mlo_core u_core (
        .clk(clk), .rst(rst), .core_rst(core_rst),
@KV@        .kv_base(kv_base), .kv_read(kv_read), .kv_written(kv_written),
@KV@        .m_axi_kv_arid(m_axi_kv_arid), .m_axi_kv_araddr(m_axi_kv_araddr), .m_axi_kv_arlen(m_axi_kv_arlen), .m_axi_kv_arsize(m_axi_kv_arsize), .m_axi_kv_arburst(m_axi_kv_arburst),
@KV@        .m_axi_kv_arvalid(m_axi_kv_arvalid), .m_axi_kv_arready(m_axi_kv_arready), .m_axi_kv_rid(m_axi_kv_rid), .m_axi_kv_rdata(m_axi_kv_rdata), .m_axi_kv_rresp(m_axi_kv_rresp),
@KV@        .m_axi_kv_rlast(m_axi_kv_rlast), .m_axi_kv_rvalid(m_axi_kv_rvalid), .m_axi_kv_rready(m_axi_kv_rready), .m_axi_kv_awid(m_axi_kv_awid), .m_axi_kv_awaddr(m_axi_kv_awaddr),
@KV@        .m_axi_kv_awlen(m_axi_kv_awlen), .m_axi_kv_awsize(m_axi_kv_awsize), .m_axi_kv_awburst(m_axi_kv_awburst), .m_axi_kv_awvalid(m_axi_kv_awvalid), .m_axi_kv_awready(m_axi_kv_awready),
@KV@        .m_axi_kv_wdata(m_axi_kv_wdata), .m_axi_kv_wstrb(m_axi_kv_wstrb), .m_axi_kv_wlast(m_axi_kv_wlast), .m_axi_kv_wvalid(m_axi_kv_wvalid), .m_axi_kv_wready(m_axi_kv_wready),
@KV@        .m_axi_kv_bid(m_axi_kv_bid), .m_axi_kv_bresp(m_axi_kv_bresp), .m_axi_kv_bvalid(m_axi_kv_bvalid), .m_axi_kv_bready(m_axi_kv_bready),
        .enable(enable), .base(base), .iterations(iterations), .frames(frames),
        .param_beat(param_beat), .bus_error(bus_error), .stat(stat),
@JOBS@        .job_begin(job_begin), .job_start(job_start), .job_bank(job_bank),
        .s_axis_tdata(@DOOR@_tdata), .s_axis_tvalid(@DOOR@_tvalid),
        .s_axis_tready(@DOOR@_tready), .s_axis_tlast(@DOOR@_tlast),
@MASK@        .s1_axis_tdata(@DOOR_MASK@_tdata), .s1_axis_tvalid(@DOOR_MASK@_tvalid),
@MASK@        .s1_axis_tready(@DOOR_MASK@_tready), .s1_axis_tlast(@DOOR_MASK@_tlast),
@REPLAY@        .s2_axis_tdata(s2_axis_tdata), .s2_axis_tvalid(s2_axis_tvalid),
@REPLAY@        .s2_axis_tready(s2_axis_tready), .s2_axis_tlast(s2_axis_tlast),
@REPLAY_MASK@        .s3_axis_tdata(s3_axis_tdata), .s3_axis_tvalid(s3_axis_tvalid),
@REPLAY_MASK@        .s3_axis_tready(s3_axis_tready), .s3_axis_tlast(s3_axis_tlast),
        .m_axis_tdata(@LEFT@_tdata), .m_axis_tvalid(@LEFT@_tvalid),
        .m_axis_tready(@LEFT@_tready), .m_axis_tlast(@LEFT@_tlast),
        .m_axi_arid(@CORE_AXI@_arid), .m_axi_araddr(@CORE_AXI@_araddr), .m_axi_arlen(@CORE_AXI@_arlen),
        .m_axi_arsize(@CORE_AXI@_arsize), .m_axi_arburst(@CORE_AXI@_arburst),
        .m_axi_arvalid(@CORE_AXI@_arvalid), .m_axi_arready(@CORE_AXI@_arready),
        .m_axi_rid(@CORE_AXI@_rid), .m_axi_rdata(@CORE_AXI@_rdata), .m_axi_rresp(@CORE_AXI@_rresp),
        .m_axi_rlast(@CORE_AXI@_rlast), .m_axi_rvalid(@CORE_AXI@_rvalid), .m_axi_rready(@CORE_AXI@_rready));

@IDS@    // ---- what is around it; @READ_BY@ read one memory
@BOTH@    wire [1:0] both_arready, both_rvalid, both_rresp;
@TAIL@    wire [2:0] both_arready, both_rvalid;
@TAIL@    wire [1:0] both_rresp;
@IDS@    wire [@AXI_MSB@:0] both_rdata;
@IDS@    wire both_rlast;
@IDS@    mlo_head u_head (
@IDS@        .clk(clk), .rst(rst), .core_rst(core_rst), .enable(enable), .base(base), .bus_error(head_error), .stray(stray),
@IDS@        .s_ids_tdata(@WORDS@_tdata), .s_ids_tvalid(@WORDS@_tvalid), .s_ids_tready(@WORDS@_tready), .s_ids_tlast(@WORDS@_tlast),
@HEAD@        .s_ids_place(ids_place),
@IDS@        .m_rows_tdata(rows_tdata), .m_rows_tvalid(rows_tvalid), .m_rows_tready(rows_tready), .m_rows_tlast(rows_tlast),
@HEAD@        .s_axis_tdata(left_tdata), .s_axis_tvalid(left_tvalid), .s_axis_tready(left_tready), .s_axis_tlast(left_tlast),
@HEAD@        .m_axis_tdata(said_tdata), .m_axis_tvalid(said_tvalid), .m_axis_tready(said_tready), .m_axis_tlast(said_tlast),
@IDS@        .m_axi_arid(head_axi_arid), .m_axi_araddr(head_axi_araddr), .m_axi_arlen(head_axi_arlen),
@IDS@        .m_axi_arsize(head_axi_arsize), .m_axi_arburst(head_axi_arburst),
@IDS@        .m_axi_arvalid(head_axi_arvalid), .m_axi_arready(both_arready[1]), .m_axi_rid(1'b0),
@IDS@        .m_axi_rdata(both_rdata), .m_axi_rresp(both_rresp), .m_axi_rlast(both_rlast),
@IDS@        .m_axi_rvalid(both_rvalid[1]), .m_axi_rready(head_axi_rready));
@TAIL@    mlo_tail u_tail (
@TAIL@        .clk(clk), .rst(rst), .core_rst(core_rst), .enable(enable), .base(base), .bus_error(tail_error),
@TAIL@        .s_axis_tdata(left_tdata), .s_axis_tvalid(left_tvalid), .s_axis_tready(left_tready), .s_axis_tlast(left_tlast),
@TAIL@        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast),
@TAIL@        .m_axi_arid(tail_axi_arid), .m_axi_araddr(tail_axi_araddr), .m_axi_arlen(tail_axi_arlen),
@TAIL@        .m_axi_arsize(tail_axi_arsize), .m_axi_arburst(tail_axi_arburst),
@TAIL@        .m_axi_arvalid(tail_axi_arvalid), .m_axi_arready(both_arready[2]), .m_axi_rid(1'b0),
@TAIL@        .m_axi_rdata(both_rdata), .m_axi_rresp(both_rresp), .m_axi_rlast(both_rlast),
@TAIL@        .m_axi_rvalid(both_rvalid[2]), .m_axi_rready(tail_axi_rready));
@IDS@    assign core_axi_arready = both_arready[0];
@IDS@    assign core_axi_rid = 1'b0;
@IDS@    assign core_axi_rdata = both_rdata;
@IDS@    assign core_axi_rresp = both_rresp;
@IDS@    assign core_axi_rlast = both_rlast;
@IDS@    assign core_axi_rvalid = both_rvalid[0];
@IDS@    mlo_axi_share #(.PORTS(@SHARERS@), .ADDR_WIDTH(64), .DATA_WIDTH(@AXI@)) u_share (
@IDS@        .clk(clk), .rst(rst),
@IDS@        .s_araddr({@TAIL_ARADDR@head_axi_araddr, core_axi_araddr}), .s_arlen({@TAIL_ARLEN@head_axi_arlen, core_axi_arlen}), .s_arsize(core_axi_arsize), .s_arburst(core_axi_arburst),
@IDS@        .s_arvalid({@TAIL_ARVALID@head_axi_arvalid, core_axi_arvalid}), .s_arready(both_arready),
@IDS@        .s_rdata(both_rdata), .s_rresp(both_rresp), .s_rlast(both_rlast), .s_rvalid(both_rvalid), .s_rready({@TAIL_RREADY@head_axi_rready, core_axi_rready}),
@IDS@        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen), .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst),
@IDS@        .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready), .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),
@IDS@        .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready));
@IDS@
@HEAD@    // ---- what is said goes on as the next job's token, where a job asks for that
@HEAD@    mlo_tokens #(.CONTEXT(@CONTEXT@), .WORD(@SAID_MSB@ + 1)) u_tokens (
@HEAD@        .clk(clk), .rst(core_rst), .stop(stop),
@HEAD@        .push(job_push), .push_slot(job_slot), .push_start(job_first), .push_tokens(job_tokens), .push_more(job_more), .room(job_room),
@HEAD@        .job_push(text_push), .job_slot(text_slot), .job_start(text_start), .job_tokens(text_tokens), .job_room(text_room), .refused(job_refused),
@HEAD@        .s_ids_tdata(s_axis_tdata), .s_ids_tvalid(s_axis_tvalid), .s_ids_tready(s_axis_tready), .s_ids_tlast(s_axis_tlast),
@HEAD@        .m_ids_tdata(ids_tdata), .m_ids_tvalid(ids_tvalid), .m_ids_tready(ids_tready), .m_ids_tlast(ids_tlast), .m_ids_place(ids_place),
@HEAD@        .s_axis_tdata(said_tdata), .s_axis_tvalid(said_tvalid), .s_axis_tready(said_tready),
@HEAD@        .m_axis_tdata(@SAID@_tdata), .m_axis_tvalid(@SAID@_tvalid), .m_axis_tready(@SAID@_tready), .m_axis_tlast(@SAID@_tlast));
@BEST@    mlo_width #(.BITS(64), .IN(@WORDS_SAID@), .OUT(1)) u_said_width (
@BEST@        .clk(clk), .rst(core_rst),
@BEST@        .s_axis_tdata(words_tdata), .s_axis_tvalid(words_tvalid), .s_axis_tready(words_tready), .s_axis_tuser({1'b0, words_tlast, 1'b0}),
@BEST@        .m_axis_tdata(word_tdata), .m_axis_tvalid(word_tvalid), .m_axis_tready(word_tready), .m_axis_tuser(word_tuser));
@BEST@    mlo_exit #(.C(@WORDS_SAID@), .LANES(1), .BITS(64)) u_said_exit (
@BEST@        .clk(clk), .rst(core_rst),
@BEST@        .s_axis_tdata(word_tdata), .s_axis_tvalid(word_tvalid), .s_axis_tready(word_tready), .s_axis_tuser(word_tuser),
@BEST@        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast));
@HEAD@    wire unused_said = &{1'b0, said_tlast};
@IDS@    wire unused_both = &{1'b0, core_axi_arid, head_axi_arid, head_axi_arsize, head_axi_arburst@TAIL_UNUSED@};
endmodule
`default_nettype wire
