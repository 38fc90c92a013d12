// SPDX-License-Identifier: MIT
// tb_source: sends the words of a hex file, with random pauses. For benches only.
//
// `stall` percent of the cycles in which a new word could be offered offer none.
// Keeps the stream contract: an offer stands until it is taken. Without an offer
// tdata is x, so that a receiver that looks at it is found out.
`default_nettype none
module tb_source #(
    parameter WIDTH = 8,
    parameter FILE  = "in.hex"
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [31:0]      seed,
    input  wire [31:0]      stall,
    output reg  [WIDTH-1:0] tdata,
    output reg              tvalid,
    input  wire             tready,
    output reg  [31:0]      beats       // taken so far
);

reg [WIDTH-1:0] word;
reg [31:0]      lfsr;
reg             more;
integer         file, got;

initial begin
    file = $fopen(FILE, "r");
    got  = $fscanf(file, "%h\n", word);
    more = got == 1;
end

always @(posedge clk) begin
    lfsr <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
    if (rst) begin
        lfsr   <= seed * 32'd2654435761 ^ 32'h5bd1e995;
        tvalid <= 1'b0;
        tdata  <= {WIDTH{1'bx}};
        beats  <= 0;
    end else begin
        if (tvalid && tready)
            beats <= beats + 1;
        if (!tvalid || tready) begin
            if (more && lfsr[30:8] % 100 >= stall) begin
                tvalid <= 1'b1;
                tdata  <= word;
                got  = $fscanf(file, "%h\n", word);
                more = got == 1;
            end else begin
                tvalid <= 1'b0;
                tdata  <= {WIDTH{1'bx}};
            end
        end
    end
end

endmodule
`default_nettype wire
