// SPDX-License-Identifier: MIT
// mlo_sim_check_axi: judges an AXI4 read port, master and memory (simulation, and mlo_axi_reader's proof)
//
// asked: the rules of requests, as mlo_sim_check_burst says.  sent[3:0]: hold, stable, reset, unknown of R, as
// mlo_sim_check says.  And:
//   sent[4]  unasked   a beat that no request waits for
//   sent[5]  rlast     RLAST before a burst's final beat, or missing on it: R brings ARLEN + 1 beats per request, in their order
//   sent[6]  id        RID is another than the request's
// Each breach is a line `PROTOCOL <PORT> <rule> at cycle N`, PORT with _ar or _r, and counts.
`default_nettype none
module mlo_sim_check_axi #(
    // bits of a byte address
    parameter ADDR_WIDTH = 64,
    // bits of a beat
    parameter DATA_WIDTH = 128,
    // longest burst, beats
    parameter BURST      = 256,
    // requests under way that can be followed, a power of two; one more is reported as `length`
    parameter MOST       = 1024,
    // names in messages
    parameter PORT_AR = "axi_ar",
    parameter PORT_R  = "axi_r"
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [31:0]           cycle,
    input  wire                  arid,
    input  wire [ADDR_WIDTH-1:0] araddr,
    input  wire [7:0]            arlen,
    input  wire [2:0]            arsize,
    input  wire [1:0]            arburst,
    input  wire                  arvalid,
    input  wire                  arready,
    input  wire                  rid,
    input  wire [DATA_WIDTH-1:0] rdata,
    input  wire [1:0]            rresp,
    input  wire                  rlast,
    input  wire                  rvalid,
    input  wire                  rready,
    output wire [8:0]            asked,
    output wire [6:0]            sent,
    output wire [31:0]           breaches,
    output wire                  owing         // a request waits for beats
);
    localparam MW = $clog2(MOST);

    // Requests taken and not yet answered: {ARID, ARLEN}, oldest first.
    reg  [8:0]  queue [0:MOST-1];
    reg  [MW:0] head, tail;                    // one bit more than an index: full and empty differ
    reg  [7:0]  beat;                          // of the oldest, which comes next
    wire        full   = (tail - head) == {1'b1, {MW{1'b0}}};
    wire [8:0]  oldest = queue[head[MW-1:0]];
    assign      owing  = (head != tail);

    wire [31:0] breaches_ar, breaches_r;
    mlo_sim_check_burst #(.ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(DATA_WIDTH), .BURST(BURST), .PORT(PORT_AR)) u_ar (
        .clk(clk), .rst(rst), .cycle(cycle), .id(arid), .addr(araddr), .len(arlen), .size(arsize), .burst(arburst), .valid(arvalid),
        .ready(arready), .full(full), .asked(asked), .breaches(breaches_ar));
    mlo_sim_check #(.WIDTH(DATA_WIDTH + 4), .PORT(PORT_R)) u_r (
        .clk(clk), .rst(rst), .cycle(cycle), .payload({rid, rresp, rlast, rdata}), .valid(rvalid), .ready(rready),
        .broken(sent[3:0]), .breaches(breaches_r));

    assign sent[4]  = rvalid && !rst && !owing;
    assign sent[5]  = rvalid && !rst && owing && rlast != (beat == oldest[7:0]);
    assign sent[6]  = rvalid && !rst && owing && rid != oldest[8];

    reg [31:0] others;
    assign breaches = breaches_ar + breaches_r + others;
    initial begin
        head   = {(MW+1){1'b0}};
        tail   = {(MW+1){1'b0}};
        beat   = 8'd0;
        others = 32'd0;
    end
    always @(posedge clk) begin
        if (arvalid && arready) begin
            queue[tail[MW-1:0]] <= {arid, arlen};
            tail <= tail + 1'b1;
        end
        if (rvalid && rready && owing) begin
            beat <= (beat == oldest[7:0]) ? 8'd0 : beat + 8'd1;
            if (beat == oldest[7:0]) head <= head + 1'b1;
        end
        if (rst) begin
            head <= {(MW+1){1'b0}};
            tail <= {(MW+1){1'b0}};
            beat <= 8'd0;
        end
    end

`ifndef FORMAL
    // Judged once a beat, when it is taken.
    always @(posedge clk) if (rready && sent[6:4] != 3'd0) begin
        others <= others + 32'd1;
        if (others < 32'd20) begin
            if (sent[4]) $display("PROTOCOL %0s unasked at cycle %0d", PORT_R, cycle);
            if (sent[5]) $display("PROTOCOL %0s rlast at cycle %0d", PORT_R, cycle);
            if (sent[6]) $display("PROTOCOL %0s id at cycle %0d", PORT_R, cycle);
        end
    end
`endif
endmodule
`default_nettype wire
