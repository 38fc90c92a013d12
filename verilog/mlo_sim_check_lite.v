// SPDX-License-Identifier: MIT
// mlo_sim_check_lite: judges an AXI4-Lite port, host and registers (simulation, and mlo_regs' proof)
//
// Each of its five channels as mlo_sim_check says (hold, stable, reset, unknown): the host's are
// host[3:0] AW, host[7:4] W, host[11:8] AR; the registers' are slave[3:0] B, slave[7:4] R.  And:
//   slave[8] b unasked   an answer without an address and data that wait for it
//   slave[9] r unasked   data that nobody asked for
// Each breach is a line `PROTOCOL <PORT> <rule> at cycle N`, PORT = axil_aw, axil_w, .., and counts.
`default_nettype none
module mlo_sim_check_lite #(
    // bits of an address
    parameter ADDR_WIDTH = 12
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [31:0]           cycle,
    input  wire [ADDR_WIDTH-1:0] awaddr,
    input  wire                  awvalid,
    input  wire                  awready,
    input  wire [31:0]           wdata,
    input  wire [3:0]            wstrb,
    input  wire                  wvalid,
    input  wire                  wready,
    input  wire [1:0]            bresp,
    input  wire                  bvalid,
    input  wire                  bready,
    input  wire [ADDR_WIDTH-1:0] araddr,
    input  wire                  arvalid,
    input  wire                  arready,
    input  wire [31:0]           rdata,
    input  wire [1:0]            rresp,
    input  wire                  rvalid,
    input  wire                  rready,
    output wire [11:0]           host,
    output wire [9:0]            slave,
    output wire [31:0]           breaches
);
    wire [31:0] n_aw, n_w, n_b, n_ar, n_r;
    mlo_sim_check #(.WIDTH(ADDR_WIDTH), .PORT("s_axil_aw")) u_aw (.clk(clk), .rst(rst), .cycle(cycle), .payload(awaddr), .valid(awvalid), .ready(awready), .broken(host[3:0]), .breaches(n_aw));
    mlo_sim_check #(.WIDTH(36), .PORT("s_axil_w")) u_w (.clk(clk), .rst(rst), .cycle(cycle), .payload({wstrb, wdata}), .valid(wvalid), .ready(wready), .broken(host[7:4]), .breaches(n_w));
    mlo_sim_check #(.WIDTH(ADDR_WIDTH), .PORT("s_axil_ar")) u_ar (.clk(clk), .rst(rst), .cycle(cycle), .payload(araddr), .valid(arvalid), .ready(arready), .broken(host[11:8]), .breaches(n_ar));
    mlo_sim_check #(.WIDTH(2), .PORT("s_axil_b")) u_b (.clk(clk), .rst(rst), .cycle(cycle), .payload(bresp), .valid(bvalid), .ready(bready), .broken(slave[3:0]), .breaches(n_b));
    mlo_sim_check #(.WIDTH(34), .PORT("s_axil_r")) u_r (.clk(clk), .rst(rst), .cycle(cycle), .payload({rresp, rdata}), .valid(rvalid), .ready(rready), .broken(slave[7:4]), .breaches(n_r));

    // Taken and not yet answered.
    reg [7:0]  addresses, words, reads;
    reg [31:0] others;
    wire write_done = bvalid && bready, read_done = rvalid && rready;
    assign slave[8] = bvalid && !rst && (addresses == 8'd0 || words == 8'd0);
    assign slave[9] = rvalid && !rst && reads == 8'd0;
    assign breaches = n_aw + n_w + n_b + n_ar + n_r + others;
    initial begin
        addresses = 8'd0;
        words     = 8'd0;
        reads     = 8'd0;
        others    = 32'd0;
    end
    always @(posedge clk) begin
        addresses <= addresses + {7'd0, awvalid && awready} - {7'd0, write_done};
        words     <= words + {7'd0, wvalid && wready} - {7'd0, write_done};
        reads     <= reads + {7'd0, arvalid && arready} - {7'd0, read_done};
`ifndef FORMAL
        if ((slave[8] && bready) || (slave[9] && rready)) others <= others + 32'd1;
        if (slave[8] && bready && others < 32'd20) $display("PROTOCOL s_axil_b unasked at cycle %0d", cycle);
        if (slave[9] && rready && others < 32'd20) $display("PROTOCOL s_axil_r unasked at cycle %0d", cycle);
`endif
        if (rst) begin
            addresses <= 8'd0;
            words     <= 8'd0;
            reads     <= 8'd0;
        end
    end
endmodule
`default_nettype wire
