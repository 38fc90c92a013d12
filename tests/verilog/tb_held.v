// SPDX-License-Identifier: MIT
// tb_held: sends the words of a hex file, each not before its time. For benches of kernels only.
//
// A line is {hold[31:0], payload}: it is offered when `count` output beats have come (count >= hold) and, in `stall` percent of the
// cycles, some cycles later. Keeps the stream contract; without an offer tdata is x, so that a receiver that looks at it is found out.
`default_nettype none
module tb_held #(
    parameter WIDTH = 8,
    parameter SEED  = 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [8*5-1:0]   file,
    input  wire [31:0]      seed,
    input  wire [31:0]      stall,
    input  wire [31:0]      count,
    output reg  [WIDTH-1:0] tdata,
    output reg              tvalid,
    input  wire             tready
);
    integer           fd, got;
    reg               have;
    reg  [31:0]       lfsr;
    reg  [WIDTH+31:0] word;
    initial begin
        tvalid = 1'b0;
        have   = 1'b0;
        lfsr   = 32'hACE1;
        fd     = 0;
    end
    always @(posedge clk)
        if (rst) lfsr <= (seed * 32'd2654435761) ^ (SEED * 32'h9E3779B9) | 32'd1;
        else begin
            lfsr <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
            if (fd == 0) fd = $fopen(file, "r");
            if (tready) tvalid <= 1'b0;
            if (!tvalid || tready) begin
                if (!have) begin
                    got  = $fscanf(fd, "%h", word);
                    have = got == 1;
                end
                if (have && word[WIDTH +: 32] <= count && (lfsr[15:0] % 100) >= stall) begin
                    tdata  <= word[WIDTH-1:0];
                    tvalid <= 1'b1;
                    have   = 1'b0;
                end else
                    tdata <= {WIDTH{1'bx}};
            end
        end
endmodule

`default_nettype wire
