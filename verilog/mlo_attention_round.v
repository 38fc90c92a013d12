// SPDX-License-Identifier: MIT
// mlo_attention_round: a score in the steps that a quantized source rounds it to
//
// Contract    out = clip(((in * mult + 2^(shift-1)) >>> shift) + zero) to 8 bits signed
//
// Throughput  one value per cycle
// Latency     exactly 7 cycles
// Stall       none (no handshake: see mlo_attention)
// Legal       SB >= 2; 1 <= shift <= 62
`default_nettype none
module mlo_attention_round #(
    // bits of a score (signed)
    parameter SB = 20
) (
    input  wire          clk,
    input  wire          rst,
    input  wire          in_valid,
    input  wire [SB-1:0] in,
    input  wire [17:0]   mult,      // unsigned
    input  wire [5:0]    shift,
    input  wire [7:0]    zero,      // signed
    output wire [7:0]    out
);

// What is clipped to 9 bits is beyond 8 bits with any zero.
wire       valid6;
wire [8:0] y6;
wire [7:0] zero6;
mlo_requantize #(.ABITS(SB), .MBITS(19), .YBITS(9)) u_requantize (
    .clk(clk), .rst(rst), .en(1'b1), .in_valid(in_valid), .in_acc(in), .in_m({1'b0, mult}), .in_s(shift),
    .out_valid(valid6), .out_y(y6)
);
wire zero_valid6;
mlo_delay #(.WIDTH(8), .CYCLES(6)) u_zero (
    .clk(clk), .rst(rst), .in_valid(in_valid), .in(zero), .out_valid(zero_valid6), .out(zero6)
);

wire [9:0] sum6 = {y6[8], y6} + {{2{zero6[7]}}, zero6};
reg  [7:0] out_reg;
always @(posedge clk)
    if (sum6[9:7] == 3'b000 || sum6[9:7] == 3'b111)
        out_reg <= sum6[7:0];
    else
        out_reg <= {sum6[9], {7{!sum6[9]}}};
assign out = out_reg;

wire unused = &{1'b0, valid6, zero_valid6};

`ifdef FORMAL
    // The formula, computed wide, of what came in seven cycles before.
    localparam FB = SB + 82;
    reg                  f_past = 1'b0;
    reg  [6:0]           f_valid = 7'd0;
    reg  [7*(SB+32)-1:0] f_line;
    wire [SB+31:0]       f_was   = f_line[6*(SB+32) +: SB+32];
    wire signed [FB-1:0] f_in    = $signed(f_was[32 +: SB]), f_mult = $signed({1'b0, f_was[14 +: 18]}), f_zero = $signed(f_was[0 +: 8]);
    wire [5:0]           f_shift = f_was[8 +: 6];
    wire signed [FB-1:0] f_one   = 1;
    wire signed [FB-1:0] f_y     = ((f_in * f_mult + (f_one <<< (f_shift - 6'd1))) >>> f_shift) + f_zero;
    wire signed [FB-1:0] f_out   = f_y > 127 ? 127 : f_y < -128 ? -128 : f_y;
    always @(posedge clk) begin
        f_past  <= 1'b1;
        f_valid <= rst ? 7'd0 : {f_valid, in_valid};
        f_line  <= {f_line, in, mult, shift, zero};
    end
    always @* begin
        if (!f_past) assume (rst);
        assume (shift >= 6'd1 && shift <= 6'd62);
        if (f_past && f_valid[6]) assert (out == f_out[7:0]);
        cover (f_past && f_valid[6] && f_y > 127 && f_in > 0 && f_shift > 1);
        cover (f_past && f_valid[6] && f_y == -5 && f_in * f_mult < -3);
    end
`endif

endmodule
`default_nettype wire
