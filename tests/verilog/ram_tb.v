// SPDX-License-Identifier: MIT
// ram_tb: a memory with both ports and both judges, for the masters of cocotbext-axi (ram_cocotb.py)
`default_nettype none
module ram_tb (
    input  wire         clk,
    input  wire         rst,
    input  wire [31:0]  seed,
    input  wire [31:0]  stall,
    input  wire [31:0]  latency,
    input  wire [31:0]  fault_r,
    input  wire [31:0]  fault_b,

    input  wire         s_axi_awid,
    input  wire [31:0]  s_axi_awaddr,
    input  wire [7:0]   s_axi_awlen,
    input  wire [2:0]   s_axi_awsize,
    input  wire [1:0]   s_axi_awburst,
    input  wire         s_axi_awvalid,
    output wire         s_axi_awready,
    input  wire [63:0]  s_axi_wdata,
    input  wire [7:0]   s_axi_wstrb,
    input  wire         s_axi_wlast,
    input  wire         s_axi_wvalid,
    output wire         s_axi_wready,
    output wire         s_axi_bid,
    output wire [1:0]   s_axi_bresp,
    output wire         s_axi_bvalid,
    input  wire         s_axi_bready,
    input  wire         s_axi_arid,
    input  wire [31:0]  s_axi_araddr,
    input  wire [7:0]   s_axi_arlen,
    input  wire [2:0]   s_axi_arsize,
    input  wire [1:0]   s_axi_arburst,
    input  wire         s_axi_arvalid,
    output wire         s_axi_arready,
    output wire         s_axi_rid,
    output wire [63:0]  s_axi_rdata,
    output wire [1:0]   s_axi_rresp,
    output wire         s_axi_rlast,
    output wire         s_axi_rvalid,
    input  wire         s_axi_rready,

    output wire [31:0]  beats_r,
    output wire [31:0]  beats_w,
    output wire [31:0]  breaches,
    output wire [1:0]   owing
);
localparam DEPTH = 2048;

reg [31:0] cycle = 32'd0;
always @(posedge clk) cycle <= cycle + 32'd1;

wire [7:0]  write;
wire [63:0] write_word, write_data;
mlo_sim_ram #(.DATA_WIDTH(64), .ADDR_WIDTH(32), .DEPTH(DEPTH)) u_ram (
    .clk(clk), .rst(rst), .seed(seed), .stall(stall), .latency(latency), .rate(32'd0), .fault(fault_r), .base(32'h1000_0000), .beats(beats_r),
    .write(write), .write_word(write_word), .write_data(write_data),
    .s_axi_arid(s_axi_arid), .s_axi_araddr(s_axi_araddr), .s_axi_arlen(s_axi_arlen), .s_axi_arsize(s_axi_arsize), .s_axi_arburst(s_axi_arburst),
    .s_axi_arvalid(s_axi_arvalid), .s_axi_arready(s_axi_arready), .s_axi_rid(s_axi_rid), .s_axi_rdata(s_axi_rdata), .s_axi_rresp(s_axi_rresp),
    .s_axi_rlast(s_axi_rlast), .s_axi_rvalid(s_axi_rvalid), .s_axi_rready(s_axi_rready));
mlo_sim_ram_write #(.DATA_WIDTH(64), .ADDR_WIDTH(32), .DEPTH(DEPTH)) u_write (
    .clk(clk), .rst(rst), .seed(~seed), .stall(stall), .latency(latency), .fault(fault_b), .base(32'h1000_0000), .beats(beats_w),
    .s_axi_awid(s_axi_awid), .s_axi_awaddr(s_axi_awaddr), .s_axi_awlen(s_axi_awlen), .s_axi_awsize(s_axi_awsize), .s_axi_awburst(s_axi_awburst),
    .s_axi_awvalid(s_axi_awvalid), .s_axi_awready(s_axi_awready), .s_axi_wdata(s_axi_wdata), .s_axi_wstrb(s_axi_wstrb), .s_axi_wlast(s_axi_wlast),
    .s_axi_wvalid(s_axi_wvalid), .s_axi_wready(s_axi_wready), .s_axi_bid(s_axi_bid), .s_axi_bresp(s_axi_bresp), .s_axi_bvalid(s_axi_bvalid),
    .s_axi_bready(s_axi_bready), .write(write), .write_word(write_word), .write_data(write_data));

wire [31:0] breaches_r, breaches_w;
wire [8:0]  asked_r, asked_w;
wire [6:0]  sent;
wire [5:0]  written, answered;
assign breaches = breaches_r + breaches_w;
mlo_sim_check_axi #(.ADDR_WIDTH(32), .DATA_WIDTH(64)) u_check (
    .clk(clk), .rst(rst), .cycle(cycle), .asked(asked_r), .sent(sent), .breaches(breaches_r), .owing(owing[0]),
    .arid(s_axi_arid), .araddr(s_axi_araddr), .arlen(s_axi_arlen), .arsize(s_axi_arsize), .arburst(s_axi_arburst),
    .arvalid(s_axi_arvalid), .arready(s_axi_arready), .rid(s_axi_rid), .rdata(s_axi_rdata), .rresp(s_axi_rresp),
    .rlast(s_axi_rlast), .rvalid(s_axi_rvalid), .rready(s_axi_rready));
mlo_sim_check_axi_write #(.ADDR_WIDTH(32), .DATA_WIDTH(64)) u_check_write (
    .clk(clk), .rst(rst), .cycle(cycle), .asked(asked_w), .written(written), .answered(answered), .breaches(breaches_w), .owing(owing[1]),
    .awid(s_axi_awid), .awaddr(s_axi_awaddr), .awlen(s_axi_awlen), .awsize(s_axi_awsize), .awburst(s_axi_awburst),
    .awvalid(s_axi_awvalid), .awready(s_axi_awready), .wdata(s_axi_wdata), .wstrb(s_axi_wstrb), .wlast(s_axi_wlast),
    .wvalid(s_axi_wvalid), .wready(s_axi_wready), .bid(s_axi_bid), .bresp(s_axi_bresp), .bvalid(s_axi_bvalid), .bready(s_axi_bready));
endmodule
`default_nettype wire
