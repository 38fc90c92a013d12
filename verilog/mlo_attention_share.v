// SPDX-License-Identifier: MIT
// mlo_attention_share: counts the heads of queries that read one head of keys and values
//
// Contract    `step` ends a head of queries; SHARE of them in a row read the same head of keys
// Throughput  a step per cycle
// Latency     at and last are of the head that is at work: the cycle after the step before
// Stall       none
// Legal       SHARE >= 1
`default_nettype none
module mlo_attention_share #(
    // heads of queries for each head of keys
    parameter SHARE = 1,
    // derived, do not set: bits of at
    parameter SW = (SHARE > 1) ? $clog2(SHARE) : 1
) (
    input  wire          clk,
    input  wire          rst,
    input  wire          step,
    output wire [SW-1:0] at,
    output wire          last
);

generate
    if (SHARE == 1) begin : g_own
        assign at   = {SW{1'b0}};
        assign last = 1'b1;
        wire unused = &{1'b0, clk, rst, step};
    end else begin : g_share
        // (Verilator wants every width spelled out: hence the way over 32 bits)
        localparam [31:0]   LAST_32 = SHARE - 1;
        localparam [SW-1:0] LAST    = LAST_32[SW-1:0];
        localparam [SW-1:0] ONE     = 1;
        reg [SW-1:0] at_reg;
        assign at   = at_reg;
        assign last = at_reg == LAST;
        always @(posedge clk) begin
            if (step)
                at_reg <= last ? {SW{1'b0}} : at_reg + ONE;
            if (rst)
                at_reg <= {SW{1'b0}};
        end
    end
endgenerate

`ifdef FORMAL
    // Of any SHARE steps in a row exactly one is the last.
    reg       f_past = 1'b0;
    reg [7:0] f_steps;                          // since a head of keys began
    always @* if (!f_past) assume (rst);
    always @(posedge clk) begin
        f_past <= 1'b1;
        if (step) f_steps <= last ? 0 : f_steps + 1;
        if (rst)  f_steps <= 0;
    end
    always @* if (f_past) begin
        assert (f_steps < SHARE && at == f_steps && last == (f_steps == SHARE - 1));
        cover (step && last);
    end
`endif
endmodule
`default_nettype wire
