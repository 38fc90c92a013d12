// SPDX-License-Identifier: MIT
// mlo_attention_weight: a probability in the steps of the model it comes from: w = min((e * r + 2^(sp-1)) >> sp, most)
//
// Contract    most is given a cycle before w leaves, and the rest at first
// Throughput  a weight per cycle
// Latency     exactly 7 cycles
// Stall       none
// Legal       0 <= e < 2^EB, 0 <= r < 2^RB, 1 <= sp <= 62
`default_nettype none
module mlo_attention_weight #(
    parameter EB = 18,          // bits of an exponential
    parameter RB = 20           // bits of the quotient of a row
) (
    input  wire          clk,
    input  wire          rst,
    input  wire          in_valid,
    input  wire [EB-1:0] e,
    input  wire [RB-1:0] r,
    input  wire [5:0]    sp,
    input  wire [7:0]    most,
    output wire [7:0]    w
);

wire       valid;
wire [8:0] rounded;             // of what is never negative: 0 .. 255
reg  [7:0] w_reg;
assign w = w_reg;
mlo_requantize #(.ABITS(EB + 1), .MBITS(RB + 1), .YBITS(9)) u_requantize (
    .clk(clk), .rst(rst), .en(1'b1), .in_valid(in_valid), .in_acc({1'b0, e}), .in_m({1'b0, r}), .in_s(sp),
    .out_valid(valid), .out_y(rounded)
);
always @(posedge clk) w_reg <= rounded[7:0] > most ? most : rounded[7:0];

wire unused = &{1'b0, valid, rounded[8]};

`ifdef FORMAL
    // The smaller of the two, whatever the requantizer makes.
    reg       f_past = 1'b0;
    reg [7:0] f_most, f_rounded;
    always @(posedge clk) begin
        f_past    <= 1'b1;
        f_most    <= most;
        f_rounded <= rounded[7:0];
    end
    always @* if (f_past) begin
        assert (w == (f_rounded > f_most ? f_most : f_rounded));
        cover (f_rounded > f_most && f_most != 0);
    end
`endif
endmodule
`default_nettype wire
