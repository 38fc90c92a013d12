// SPDX-License-Identifier: MIT
// mlo_sim_trace: when tiles went through streams, and what the kernels did meanwhile (simulation only)
//
// A beat passes on stream i where valid[i] and ready[i]; BEATS[32*i +: 32] of them are a tile: a token of activations, or what fills
// one bank of a parameter memory. Streams 0..KERNELS-1 are the outputs of the kernels. `stat` and `counts` are what
// the counters of mlo_regs see. At the last beat of a tile this writes a line to `file` (0: none is open):
//     T stream first last                        the cycles of its first and last beat
//     K kernel first last busy starved blocked   an output's: and what the kernel counted since the tile before
// In a cycle with `over` it writes what was counted after each kernel's last tile:
//     R kernel busy starved blocked
// and in each cycle with `window`
//     W cycle valid ready                        one bit a stream, as hexadecimal numbers
`default_nettype none
module mlo_sim_trace #(
    // streams to watch
    parameter STREAMS = 1,
    // how many of them are outputs of kernels
    parameter KERNELS = 1,
    // beats of a tile of stream i at [32*i +: 32], each >= 1
    parameter [32*STREAMS-1:0] BEATS = {STREAMS{32'd1}}
) (
    input  wire                 clk,
    input  wire [31:0]          file,
    input  wire [31:0]          cycle,
    input  wire                 over,
    input  wire                 window,
    input  wire [STREAMS-1:0]   valid,
    input  wire [STREAMS-1:0]   ready,
    input  wire                 counts,
    input  wire [3*KERNELS-1:0] stat
);
    wire               tick = clk && file != 32'd0;          // without a file nothing below runs, nor takes time
    wire [STREAMS-1:0] beat = valid & ready;
    always @(posedge tick) if (window) $fwrite(file, "W %0d %h %h\n", cycle, valid, ready);
    genvar i;
    generate
        for (i = 0; i < STREAMS; i = i + 1) begin : stream
            reg  [31:0] past = 32'd0;                // beats of the tile under way
            reg  [31:0] first = 32'd0;               // the cycle of its first one
            wire        full = beat[i] && (past + 32'd1 == BEATS[32*i +: 32]);
            always @(posedge tick) if (beat[i]) begin
                past <= full ? 32'd0 : past + 32'd1;
                if (past == 32'd0) first <= cycle;
            end
            if (i < KERNELS) begin : kernel
                reg [31:0] busy = 32'd0, starved = 32'd0, blocked = 32'd0;        // since the tile before
                always @(posedge tick) begin
                    if (full) $fwrite(file, "K %0d %0d %0d %0d %0d %0d\n", i, (past == 32'd0) ? cycle : first, cycle, busy, starved, blocked);
                    if (over) $fwrite(file, "R %0d %0d %0d %0d\n", i, busy, starved, blocked);
                    // the cycle of a tile's last beat belongs to the next one; before reset all is unknown
                    busy    <= (full ? 32'd0 : busy)    + ((counts === 1'b1 && stat[3*i])   ? 32'd1 : 32'd0);
                    starved <= (full ? 32'd0 : starved) + ((counts === 1'b1 && stat[3*i+1]) ? 32'd1 : 32'd0);
                    blocked <= (full ? 32'd0 : blocked) + ((counts === 1'b1 && stat[3*i+2]) ? 32'd1 : 32'd0);
                end
            end else begin : other
                always @(posedge tick) if (full) $fwrite(file, "T %0d %0d %0d\n", i, (past == 32'd0) ? cycle : first, cycle);
            end
        end
    endgenerate
endmodule
`default_nettype wire
