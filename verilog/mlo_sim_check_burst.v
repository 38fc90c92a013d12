// SPDX-License-Identifier: MIT
// mlo_sim_check_burst: judges the requests of an AXI4 port, AR or AW (simulation, and mlo_axi_reader's proof)
//
// asked[3:0]: hold, stable, reset, unknown, as mlo_sim_check says.  And:
//   asked[4] boundary  a burst crosses 4 KB
//   asked[5] size      AxSIZE is not the whole bus
//   asked[6] kind      AxBURST is not INCR
//   asked[7] align     the address is no multiple of a beat
//   asked[8] length    more than BURST beats, or more requests under way than can be followed
// Each breach is a line `PROTOCOL <PORT> <rule> at cycle N`, and counts.
`default_nettype none
module mlo_sim_check_burst #(
    // bits of a byte address
    parameter ADDR_WIDTH = 64,
    // bits of a beat
    parameter DATA_WIDTH = 128,
    // longest burst, beats
    parameter BURST      = 256,
    // name in messages
    parameter PORT       = "axi_ar"
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [31:0]           cycle,
    input  wire                  id,
    input  wire [ADDR_WIDTH-1:0] addr,
    input  wire [7:0]            len,
    input  wire [2:0]            size,
    input  wire [1:0]            burst,
    input  wire                  valid,
    input  wire                  ready,
    input  wire                  full,         // no more can be followed
    output wire [8:0]            asked,
    output wire [31:0]           breaches
);
    localparam        SIZE    = $clog2(DATA_WIDTH / 8);
    localparam [31:0] SIZE_V  = SIZE, BURST_V = BURST;
    localparam [ADDR_WIDTH-1:0] LOW = DATA_WIDTH / 8 - 1;

    wire [31:0] breaches_channel;
    mlo_sim_check #(.WIDTH(ADDR_WIDTH + 14), .PORT(PORT)) u_channel (
        .clk(clk), .rst(rst), .cycle(cycle), .payload({id, burst, size, len, addr}), .valid(valid), .ready(ready),
        .broken(asked[3:0]), .breaches(breaches_channel));

    wire [12:0] page_end = {1'b0, addr[11:0]} + (({5'd0, len} + 13'd1) << SIZE);
    wire        judged   = valid && !rst;
    assign asked[4] = judged && page_end > 13'd4096;
    assign asked[5] = judged && size != SIZE_V[2:0];
    assign asked[6] = judged && burst != 2'b01;
    assign asked[7] = judged && (addr & LOW) != {ADDR_WIDTH{1'b0}};
    assign asked[8] = judged && ({24'd0, len} >= BURST_V || full);

    reg [31:0] others;
    assign breaches = breaches_channel + others;
    initial others = 32'd0;
`ifndef FORMAL
    // Judged once a request, when it is taken.
    always @(posedge clk) if (ready && asked[8:4] != 5'd0) begin
        others <= others + 32'd1;
        if (others < 32'd20) begin
            if (asked[4]) $display("PROTOCOL %0s boundary at cycle %0d", PORT, cycle);
            if (asked[5]) $display("PROTOCOL %0s size at cycle %0d", PORT, cycle);
            if (asked[6]) $display("PROTOCOL %0s kind at cycle %0d", PORT, cycle);
            if (asked[7]) $display("PROTOCOL %0s align at cycle %0d", PORT, cycle);
            if (asked[8]) $display("PROTOCOL %0s length at cycle %0d", PORT, cycle);
        end
    end
`endif
endmodule
`default_nettype wire
