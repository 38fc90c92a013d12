// SPDX-License-Identifier: MIT
// mlo_times: a number times a constant: an adder for each further bit of the constant that is set, no multiplier
//
// Where a place in a memory is asked for by its number (a position of a cache, a bank): mostly the constant is a power of two, or
// three of them, and then there is one adder at most.
//
// Contract    y = x * N, its lowest OUT bits
// Throughput  a product per cycle
// Latency     none: y follows x
// Stall       none (no handshake)
// Legal       N >= 0
`default_nettype none
module mlo_times #(
    parameter N   = 3,
    parameter IN  = 16,         // bits of x
    parameter OUT = 16          // bits of y
) (
    input  wire [IN-1:0]  x,
    output wire [OUT-1:0] y
);

localparam [31:0] FACTOR = N;
wire [OUT+IN-1:0] wide = {{OUT{1'b0}}, x};
wire [OUT-1:0]    low  = wide[OUT-1:0];
reg  [OUT-1:0]    sum;
integer           b;
always @* begin
    sum = {OUT{1'b0}};
    for (b = 0; b < 32; b = b + 1)
        if (FACTOR[b]) sum = sum + (low << b);
end
assign y = sum;
wire unused = &{1'b0, wide[OUT+IN-1:OUT]};

`ifdef FORMAL
    wire [OUT+IN+31:0] f_product = x * N;
    always @* assert (y == f_product[OUT-1:0]);
    always @* cover (y != 0);
`endif
endmodule
`default_nettype wire
