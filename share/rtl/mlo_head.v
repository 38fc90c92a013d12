// Made by mlo @VERSION@ from shapes, widths and folding; structure only, the logic is in the modules beside this file.
//
@HEAD@// mlo_head: what is around a decoder's loop: in front of it a row of a table for each token id, behind it norm, head and arg max of a
@HEAD@// frame's last token. It knows one iteration; its matrix comes from memory row block by row block, once a frame.
@FRONT@// mlo_head: what is in front of an encoder's loop: for each token id a row of a table and one for its position (and type), their sum,
@FRONT@// and a norm. It knows one iteration.
`default_nettype none
module mlo_head (
    input  wire         clk,
    input  wire         rst,
    input  wire         core_rst,               // rst, or the soft reset: what is inside is forgotten
    // from registers
    input  wire         enable,                 // parameters may be read
    input  wire [63:0]  base,                   // where the image lies
    // to registers
    output wire         bus_error,
    output wire         stray,                  // an id was none
    // token ids in, their rows out
    input  wire [31:0]  s_ids_tdata,
    input  wire         s_ids_tvalid,
    output wire         s_ids_tready,
    input  wire         s_ids_tlast,
@HEAD@    input  wire [15:0]  s_ids_place,            // the position of the token
    output wire [@IO_MSB@:0]  m_rows_tdata,
    output wire         m_rows_tvalid,
    input  wire         m_rows_tready,
    output wire         m_rows_tlast,
@HEAD@    // what leaves the loop in; {logit, id} of what follows a frame out
@HEAD@    input  wire [@IO_MSB@:0]  s_axis_tdata,
@HEAD@    input  wire         s_axis_tvalid,
@HEAD@    output wire         s_axis_tready,
@HEAD@    input  wire         s_axis_tlast,
@HEAD@    output wire [@SAID_MSB@:0]  m_axis_tdata,
@HEAD@    output wire         m_axis_tvalid,
@HEAD@    input  wire         m_axis_tready,
@HEAD@    output wire         m_axis_tlast,
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

    // ---- readers: the loader, one for each matrix in row blocks, the rows'
    wire [@READERS_MSB@:0] ar_id, ar_valid, ar_ready, r_valid, r_ready, errors, idles, param_beat;
    wire [64*@READERS@-1:0] ar_addr;
    wire [8*@READERS@-1:0] ar_len;
    wire [3*@READERS@-1:0] ar_size;
    wire [2*@READERS@-1:0] ar_burst;
    wire [@AXI_MSB@:0] r_data;
    wire [1:0] r_resp;
    wire r_last;
    assign bus_error = |errors;
    reg [63:0] load_base, block_base, rows_base;   // settled long before they are used
    always @(posedge clk) begin
        load_base  <= base + 64'd@LOAD_OFFSET@;
        block_base <= base + 64'd@BLOCK_OFFSET@;
        rows_base  <= base + 64'd@ROWS_OFFSET@;
    end
    mlo_axi_share #(.PORTS(@READERS@), .ADDR_WIDTH(64), .DATA_WIDTH(@AXI@)) u_share (
        .clk(clk), .rst(rst),
        .s_araddr(ar_addr), .s_arlen(ar_len), .s_arsize(ar_size[2:0]), .s_arburst(ar_burst[1:0]),
        .s_arvalid(ar_valid), .s_arready(ar_ready),
        .s_rdata(r_data), .s_rresp(r_resp), .s_rlast(r_last), .s_rvalid(r_valid), .s_rready(r_ready),
        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen),
        .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst),
        .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready),
        .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),
        .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready));

    // ---- rows
@FRONT@    wire [15:0] s_ids_place = 16'd0;             // mlo_places counts
@NO_PLACES@    wire unused_place = &{1'b0, s_ids_place};
@PLACES@    wire        unused_stray, index_tvalid, index_tready, index_tlast, row_tvalid, row_tready, row_tlast;
@PLACES@    wire [31:0] index_tdata;
@PLACES@    wire [@IO_MSB@:0] row_tdata;
@PLACES@    mlo_places #(.BEATS(@TOKEN_BEATS@), .LANES(@LANES@), .BITS(@BITS@), .IDS(@IDS@), .CONTEXT(@CONTEXT@), .COUNT(@COUNT@), .TYPES(@TYPES@)) u_places (
@PLACES@        .clk(clk), .rst(core_rst), .stray(stray),
@PLACES@        .s_ids_tdata(s_ids_tdata), .s_ids_place(s_ids_place), .s_ids_tvalid(s_ids_tvalid), .s_ids_tready(s_ids_tready), .s_ids_tlast(s_ids_tlast),
@PLACES@        .m_ids_tdata(index_tdata), .m_ids_tvalid(index_tvalid), .m_ids_tready(index_tready), .m_ids_tlast(index_tlast),
@PLACES@        .s_axis_tdata(row_tdata), .s_axis_tvalid(row_tvalid), .s_axis_tready(row_tready), .s_axis_tlast(row_tlast),
@PLACES@        .m_axis_tdata(@SUM@_tdata), .m_axis_tvalid(@SUM@_tvalid), .m_axis_tready(@SUM@_tready), .m_axis_tlast(@SUM@_tlast));
    mlo_rows #(.C(@CHANNELS@), .LANES(@LANES@), .IDS(@ROWS@), .AXI_WIDTH(@AXI@)) u_rows (
        .clk(clk), .rst(rst), .flush(core_rst), .base(rows_base), .error(errors[@READERS_MSB@]), .stray(@ROW_STRAY@),
        .s_axis_tdata(@ROW_IDS@_tdata), .s_axis_tvalid(@ROW_IDS@_tvalid), .s_axis_tready(@ROW_IDS@_tready), .s_axis_tlast(@ROW_IDS@_tlast),
@ROWS_READER@
        .m_axis_tdata(@ROW_OUT@_tdata), .m_axis_tvalid(@ROW_OUT@_tvalid), .m_axis_tready(@ROW_OUT@_tready), .m_axis_tlast(@ROW_OUT@_tlast));
    assign idles[@READERS_MSB@] = 1'b0;
    assign param_beat[@READERS_MSB@] = 1'b0;

    // ---- parameters: those of one iteration, again and again, as mlo_core has them
    localparam [32*@PORTS@-1:0] BEATS = {@MEMORY_BEATS@};
    wire [15:0] iterations = 16'd1;
    wire [@AXI_MSB@:0] p_tdata;
    wire [@PORTS_MSB@:0] p_tvalid, p_tready;
    wire p_tlast;
    wire [47:0] loop_beats;
    wire [@STAT_MSB@:0] stat;
    mlo_loader #(
        .ADDR_WIDTH(64), .DATA_WIDTH(@AXI@), .PORTS(@PORTS@), .BEATS(BEATS)
    ) u_loader (
        .clk(clk), .rst(rst), .flush(core_rst), .enable(enable), .base(load_base), .iterations(iterations),
        .beat(param_beat[0]), .error(errors[0]), .idle(idles[0]), .total(loop_beats),
        .m_axi_arid(ar_id[0]), .m_axi_araddr(ar_addr[63:0]), .m_axi_arlen(ar_len[7:0]),
        .m_axi_arsize(ar_size[2:0]), .m_axi_arburst(ar_burst[1:0]),
        .m_axi_arvalid(ar_valid[0]), .m_axi_arready(ar_ready[0]), .m_axi_rid(1'b0),
        .m_axi_rdata(r_data), .m_axi_rresp(r_resp),
        .m_axi_rlast(r_last), .m_axi_rvalid(r_valid[0]), .m_axi_rready(r_ready[0]),
        .m_axis_tdata(p_tdata), .m_axis_tlast(p_tlast), .m_axis_tvalid(p_tvalid), .m_axis_tready(p_tready));
    wire unused = &{1'b0, idles, loop_beats, stat, param_beat, ar_id, ar_size, ar_burst, block_base@UNUSED_USER@@UNUSED_STRAY@};

@HEAD@    // ---- a frame's last token, and what is said of it
@FRONT@    // ---- sums as a stream of tokens, the first of which is marked; what the kernels make of them
@BUSES@
@HEAD@    mlo_newest #(.WIDTH(@WIDTH@), .BEATS(@TOKEN_BEATS@)) u_newest (
@HEAD@        .clk(clk), .rst(core_rst),
@HEAD@        .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast),
@HEAD@        .m_axis_tdata(body_tdata), .m_axis_tvalid(body_tvalid), .m_axis_tready(body_tready), .m_axis_tuser(body_tuser));
@HEAD@    assign m_axis_tdata  = result_tdata;
@HEAD@    assign m_axis_tvalid = result_tvalid;
@HEAD@    assign m_axis_tlast  = 1'b1;
@HEAD@    assign result_tready = m_axis_tready;
@FRONT@    wire        sum_tvalid, sum_tready, sum_tlast, unused_mask, unused_turn, unused_round, unused_sealed, unused_end, unused_ends;
@FRONT@    wire [@IO_MSB@:0] sum_tdata;
@FRONT@    wire [@BEAT_MSB@:0] unused_fed;
@FRONT@    wire [2:0] unused_fed_user;
@FRONT@    wire unused_fed_valid, unused_fed_ready;
@FRONT@    mlo_entry #(.C(@CHANNELS@), .LANES(@LANES@), .BITS(@BITS@), .MASK(0)) u_entry (
@FRONT@        .clk(clk), .rst(core_rst),
@FRONT@        .s_axis_tdata(sum_tdata), .s_axis_tvalid(sum_tvalid), .s_axis_tready(sum_tready), .s_axis_tlast(sum_tlast),
@FRONT@        .s1_axis_tdata(8'd0), .s1_axis_tvalid(1'b0), .s1_axis_tready(unused_mask), .s1_axis_tlast(1'b0),
@FRONT@        .m_axis_tdata(entry_tdata), .m_axis_tvalid(entry_tvalid), .m_axis_tready(entry_tready), .m_axis_tuser(entry_tuser));
@FRONT@    mlo_loop #(.WIDTH(@BEAT_MSB@ + 1), .BEATS(@TOKEN_BEATS@)) u_loop (
@FRONT@        .clk(clk), .rst(core_rst), .iterations(iterations), .frames(8'd1),
@FRONT@        .s_ext_tdata(entry_tdata), .s_ext_tvalid(entry_tvalid), .s_ext_tready(entry_tready), .s_ext_tuser(entry_tuser),
@FRONT@        .turn_valid(unused_turn), .turn_ready(1'b1), .turn_round(unused_round), .turn_sealed(unused_sealed),
@FRONT@        .ends_tdata(unused_end), .ends_tvalid(unused_ends),
@FRONT@        .m_body_tdata(body_tdata), .m_body_tvalid(body_tvalid), .m_body_tready(body_tready), .m_body_tuser(body_tuser),
@FRONT@        .s_body_tdata(result_tdata), .s_body_tvalid(result_tvalid), .s_body_tready(result_tready), .s_body_tuser(result_tuser),
@FRONT@        .m_fb_tdata(unused_fed), .m_fb_tvalid(unused_fed_valid), .m_fb_tready(1'b0), .m_fb_tuser(unused_fed_user),
@FRONT@        .s_fb_tdata({@BEAT_MSB@+1{1'b0}}), .s_fb_tvalid(1'b0), .s_fb_tready(unused_fed_ready), .s_fb_tuser(3'd0),
@FRONT@        .m_ext_tdata(leaving_tdata), .m_ext_tvalid(leaving_tvalid), .m_ext_tready(leaving_tready), .m_ext_tuser(leaving_tuser));
@FRONT@    mlo_exit #(.C(@CHANNELS@), .LANES(@LANES@), .BITS(@BITS@)) u_exit (
@FRONT@        .clk(clk), .rst(core_rst),
@FRONT@        .s_axis_tdata(leaving_tdata), .s_axis_tvalid(leaving_tvalid), .s_axis_tready(leaving_tready), .s_axis_tuser(leaving_tuser),
@FRONT@        .m_axis_tdata(m_rows_tdata), .m_axis_tvalid(m_rows_tvalid), .m_axis_tready(m_rows_tready), .m_axis_tlast(m_rows_tlast));
@FRONT@    wire unused_loop = &{1'b0, unused_mask, unused_turn, unused_round, unused_sealed, unused_end, unused_ends, unused_fed, unused_fed_user, unused_fed_valid, unused_fed_ready};

@BODY@
endmodule
`default_nettype wire
