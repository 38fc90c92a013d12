// SPDX-License-Identifier: MIT
// mlo_sim_check_axi_write: judges an AXI4 write port, master and memory (simulation only)
//
// asked: the rules of requests, as mlo_sim_check_burst says.  written[3:0], answered[3:0]: hold, stable, reset,
// unknown of W and of B, as mlo_sim_check says.  And:
//   written[4]  early    a beat whose burst has not been asked for (AXI lets a master send it; mlo's do not)
//   written[5]  wlast    WLAST before a burst's final beat, or missing on it: W brings AWLEN + 1 beats per request, in their order
//   answered[4] unasked  an answer to a burst whose last beat has not been taken
//   answered[5] id       BID is another than the request's: answers come in the order of the requests
// Each breach is a line `PROTOCOL <PORT> <rule> at cycle N`, PORT with _aw, _w or _b, and counts.
`default_nettype none
module mlo_sim_check_axi_write #(
    // bits of a byte address
    parameter ADDR_WIDTH = 64,
    // bits of a beat
    parameter DATA_WIDTH = 128,
    // longest burst, beats
    parameter BURST      = 256,
    // requests under way that can be followed, a power of two; one more is reported as `length`
    parameter MOST       = 1024,
    // names in messages
    parameter PORT_AW = "axi_aw",
    parameter PORT_W  = "axi_w",
    parameter PORT_B  = "axi_b"
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire [31:0]             cycle,
    input  wire                    awid,
    input  wire [ADDR_WIDTH-1:0]   awaddr,
    input  wire [7:0]              awlen,
    input  wire [2:0]              awsize,
    input  wire [1:0]              awburst,
    input  wire                    awvalid,
    input  wire                    awready,
    input  wire [DATA_WIDTH-1:0]   wdata,
    input  wire [DATA_WIDTH/8-1:0] wstrb,
    input  wire                    wlast,
    input  wire                    wvalid,
    input  wire                    wready,
    input  wire                    bid,
    input  wire [1:0]              bresp,
    input  wire                    bvalid,
    input  wire                    bready,
    output wire [8:0]              asked,
    output wire [5:0]              written,
    output wire [5:0]              answered,
    output wire [31:0]             breaches,
    output wire                    owing       // a burst waits for its answer
);
    localparam MW = $clog2(MOST);

    // Requests taken: {AWID, AWLEN}.  From head on they wait for an answer, from `open` on for data.
    reg  [8:0]  queue [0:MOST-1];
    reg  [MW:0] head, open, tail;              // one bit more than an index: full and empty differ
    reg  [7:0]  beat;                          // of the burst at `open`, which comes next
    wire        full   = (tail - head) == {1'b1, {MW{1'b0}}};
    wire        oldest_id;
    wire [7:0]  oldest_length;
    assign {oldest_id, oldest_length} = queue[head[MW-1:0]];
    // A request that is offered but not taken yet lets its data come, too.
    wire        begun  = open != tail;
    wire [7:0]  length = begun ? queue[open[MW-1:0]][7:0] : awlen;
    wire        known  = begun || awvalid;
    assign      owing  = head != tail;

    wire [31:0] breaches_aw, breaches_w, breaches_b;
    mlo_sim_check_burst #(.ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(DATA_WIDTH), .BURST(BURST), .PORT(PORT_AW)) u_aw (
        .clk(clk), .rst(rst), .cycle(cycle), .id(awid), .addr(awaddr), .len(awlen), .size(awsize), .burst(awburst), .valid(awvalid),
        .ready(awready), .full(full), .asked(asked), .breaches(breaches_aw));
    mlo_sim_check #(.WIDTH(DATA_WIDTH + DATA_WIDTH/8 + 1), .PORT(PORT_W)) u_w (
        .clk(clk), .rst(rst), .cycle(cycle), .payload({wlast, wstrb, wdata}), .valid(wvalid), .ready(wready),
        .broken(written[3:0]), .breaches(breaches_w));
    mlo_sim_check #(.WIDTH(3), .PORT(PORT_B)) u_b (
        .clk(clk), .rst(rst), .cycle(cycle), .payload({bid, bresp}), .valid(bvalid), .ready(bready),
        .broken(answered[3:0]), .breaches(breaches_b));

    wire whole = head != open;                 // the oldest burst's data are there
    assign written[4]  = wvalid && !rst && !known;
    assign written[5]  = wvalid && !rst && known && wlast != (beat == length);
    assign answered[4] = bvalid && !rst && !whole;
    assign answered[5] = bvalid && !rst && whole && bid != oldest_id;

    reg [31:0] others;
    assign breaches = breaches_aw + breaches_w + breaches_b + others;
    initial begin
        head   = {(MW+1){1'b0}};
        open   = {(MW+1){1'b0}};
        tail   = {(MW+1){1'b0}};
        beat   = 8'd0;
        others = 32'd0;
    end
    always @(posedge clk) begin
        if (awvalid && awready) begin
            queue[tail[MW-1:0]] <= {awid, awlen};
            tail <= tail + 1'b1;
        end
        if (wvalid && wready && known) begin
            beat <= (beat == length) ? 8'd0 : beat + 8'd1;
            if (beat == length) open <= open + 1'b1;
        end
        if (bvalid && bready && whole) head <= head + 1'b1;
        if (rst) begin
            head <= {(MW+1){1'b0}};
            open <= {(MW+1){1'b0}};
            tail <= {(MW+1){1'b0}};
            beat <= 8'd0;
        end
    end

    // Judged once a beat, when it is taken.
    wire write  = wready && written[5:4] != 2'd0;
    wire answer = bready && answered[5:4] != 2'd0;
    always @(posedge clk) if (write || answer) begin
        others <= others + 32'd1;
        if (others < 32'd20) begin
            if (write && written[4]) $display("PROTOCOL %0s early at cycle %0d", PORT_W, cycle);
            if (write && written[5]) $display("PROTOCOL %0s wlast at cycle %0d", PORT_W, cycle);
            if (answer && answered[4]) $display("PROTOCOL %0s unasked at cycle %0d", PORT_B, cycle);
            if (answer && answered[5]) $display("PROTOCOL %0s id at cycle %0d", PORT_B, cycle);
        end
    end

    wire unused = &{1'b0, oldest_length};
endmodule
`default_nettype wire
