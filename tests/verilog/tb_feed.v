// SPDX-License-Identifier: MIT
// tb_feed: sends the words that a bench put into its memory (mem, by $readmemh), with random pauses. For benches of kernels only.
//
// `stall` percent of the cycles in which a new word could be offered offer none; after each `group` of words it rests for `gap` cycles.
// Keeps the stream contract; without an offer data is x, so that a receiver that looks at it is found out.
`default_nettype none
module tb_feed #(
    parameter WIDTH = 8,
    parameter SALT  = 1,                    // feeds of one bench pause differently
    parameter DEPTH = 65536
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             go,
    input  wire [31:0]      count,
    input  wire [31:0]      stall,          // percent
    input  wire [31:0]      group,          // beats between pauses
    input  wire [31:0]      gap,            // cycles of a pause
    input  wire [31:0]      seed,
    output reg  [WIDTH-1:0] data,
    output reg              valid,
    input  wire             ready
);
    reg [WIDTH-1:0] mem [0:DEPTH-1];
    reg [31:0] at, pause, in_group, lfsr;
    wire       whole = in_group + 1 == group;
    wire stop = (lfsr[6:0] * 100) >> 7 < stall;
    always @(posedge clk)
        if (rst) begin
            valid    <= 1'b0;
            at       <= 0;
            pause    <= 0;
            in_group <= 0;
            lfsr     <= seed * 32'h9e3779b1 + SALT * 32'h85ebca6b + 32'd1;
        end else begin
            lfsr <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
            if (pause != 0) pause <= pause - 1;
            if (!valid || ready) begin
                valid <= 1'b0;
                data  <= {WIDTH{1'bx}};
                if (go && at < count && !stop && pause == 0) begin
                    valid    <= 1'b1;
                    data     <= mem[at];
                    at       <= at + 1;
                    in_group <= whole ? 0 : in_group + 1;
                    if (whole) pause <= gap;
                end
            end
        end
endmodule

`default_nettype wire
