// SPDX-License-Identifier: MIT
// tb_sink: takes words with random pauses and writes them to a file. For benches only.
//
// Watches the stream contract meanwhile: `bad` goes high for good if an offer is
// withdrawn or changes before it is taken, if tvalid is x, or a taken word has an x.
`default_nettype none
module tb_sink #(
    parameter WIDTH = 8,
    parameter FILE  = "out.hex"
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [31:0]      seed,
    input  wire [31:0]      stall,      // percent of the cycles not ready
    input  wire [WIDTH-1:0] tdata,
    input  wire             tvalid,
    output reg              tready,
    output reg  [31:0]      beats,      // taken so far
    output reg              bad
);

reg [31:0]      lfsr;
reg             held;                   // an offer that was not taken, and its word
reg [WIDTH-1:0] held_word;
integer         file;

initial begin
    file   = $fopen(FILE, "w");
    tready = 1'b0;
    bad    = 1'b0;
end

always @(posedge clk) begin
    lfsr <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
    if (rst) begin
        lfsr   <= seed * 32'd2654435761 ^ 32'h9747b28c;
        tready <= stall == 0;
        held   <= 1'b0;
        beats  <= 0;
    end else begin
        tready    <= lfsr[30:8] % 100 >= stall;
        held      <= tvalid && !tready;
        held_word <= tdata;
        if (tvalid && tready) begin
            beats <= beats + 1;
            $fdisplay(file, "%h", tdata);
        end
        if (tvalid !== 1'b0 && tvalid !== 1'b1
            || held && (!tvalid || tdata !== held_word)
            || tvalid && ^tdata === 1'bx)
            bad <= 1'b1;
    end
end

endmodule
`default_nettype wire
