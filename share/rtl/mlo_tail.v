// Made by mlo @VERSION@ from shapes, widths and folding; structure only, the logic is in the modules beside this file.
//
// mlo_tail: what is behind an encoder's loop: what the model makes of a frame's first token. It knows one iteration; its
// matrices come from memory row block by row block, once a frame.
`default_nettype none
module mlo_tail (
    input  wire         clk,
    input  wire         rst,
    input  wire         core_rst,               // rst, or the soft reset: what is inside is forgotten
    // from registers
    input  wire         enable,                 // parameters may be read
    input  wire [63:0]  base,                   // where the image lies
    // to registers
    output wire         bus_error,
    // what leaves the loop in: @LANES@ channels a beat; what is made of a frame's first token out: @MADE_LANES@ of @MADE_CHANNELS@
    input  wire [@IO_MSB@:0]  s_axis_tdata,
    input  wire         s_axis_tvalid,
    output wire         s_axis_tready,
    input  wire         s_axis_tlast,
    output wire [@MADE_MSB@:0]  m_axis_tdata,
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

    // ---- readers: the loader, one for each matrix in row blocks
    wire [@READERS_MSB@:0] ar_id, ar_valid, ar_ready, r_valid, r_ready, errors, idles, param_beat;
    wire [64*@READERS@-1:0] ar_addr;
    wire [8*@READERS@-1:0] ar_len;
    wire [3*@READERS@-1:0] ar_size;
    wire [2*@READERS@-1:0] ar_burst;
    wire [@AXI_MSB@:0] r_data;
    wire [1:0] r_resp;
    wire r_last;
    assign bus_error = |errors;
    reg [63:0] load_base, block_base;              // settled long before they are used
    always @(posedge clk) begin
        load_base  <= base + 64'd@LOAD_OFFSET@;
        block_base <= base + 64'd@BLOCK_OFFSET@;
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
    wire unused = &{1'b0, idles, loop_beats, stat, param_beat, ar_id, ar_size, ar_burst};

    // ---- a frame's first token; what is made of it
@BUSES@
    mlo_first #(.WIDTH(@WIDTH@), .BEATS(@TOKEN_BEATS@)) u_first (
        .clk(clk), .rst(core_rst),
        .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast),
        .m_axis_tdata(body_tdata), .m_axis_tvalid(body_tvalid), .m_axis_tready(body_tready), .m_axis_tuser(body_tuser));
    mlo_exit #(.C(@MADE_CHANNELS@), .LANES(@MADE_LANES@), .BITS(@MADE_BITS@)) u_exit (
        .clk(clk), .rst(core_rst),
        .s_axis_tdata(result_tdata), .s_axis_tvalid(result_tvalid), .s_axis_tready(result_tready), .s_axis_tuser(result_tuser),
        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast));

@BODY@
endmodule
`default_nettype wire
