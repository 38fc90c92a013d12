// SPDX-License-Identifier: MIT
// mlo_muladd: y = a * b + c in two register stages, with a wide operand cut in two
//
// Contract    a, b, c, y signed; y is exact modulo 2^YBITS, so a sum may pass YBITS as long as the result fits.
// Throughput  one result per cycle.
// Latency     2: stage 1 (with en1) takes a and b, stage 2 (with en2) takes c of the cycle after and makes y.
// Stall       en1, en2 low freeze their stage. No handshake and no reset inside.
// Legal       ABITS <= 2*MULBITS - 1, MULBITS >= 3. An operand wider than MULBITS (18 for the 18x18 multipliers of small FPGAs, 25 or
//             27 for AMD's DSP slices) costs a second multiplier instead of a long path: each product has a register of its own.
`default_nettype none

module mlo_muladd #(
    parameter ABITS   = 27,         // bits of a, the wide operand
    parameter BBITS   = 16,         // bits of b
    parameter YBITS   = 44,         // bits of c and y
    parameter MULBITS = 18          // widest operand of one multiplier
) (
    input  wire                    clk,
    input  wire                    en1,
    input  wire                    en2,
    input  wire signed [ABITS-1:0] a,
    input  wire signed [BBITS-1:0] b,
    input  wire signed [YBITS-1:0] c,
    output wire signed [YBITS-1:0] y
);
    localparam PBITS = ABITS + BBITS;               // the whole product
    localparam LOW   = MULBITS - 1;                 // bits of a in the lower product: unsigned, so one fewer
    localparam TBITS = (PBITS > YBITS) ? PBITS : YBITS;

    generate
        if (MULBITS < 3)             mlo_error_MULBITS_must_be_at_least_3 u_mulbits ();
        if (ABITS > 2 * MULBITS - 1) mlo_error_ABITS_exceeds_two_multipliers u_abits ();
    endgenerate

    wire signed [TBITS-1:0] product;                // = a * b, of stage 1
    generate
        if (ABITS <= MULBITS) begin : g_one
            reg signed [PBITS-1:0] p;
            always @(posedge clk)
                if (en1) p <= a * b;
            assign product = {{(TBITS - PBITS + 1){p[PBITS-1]}}, p[PBITS-2:0]};
        end else begin : g_two
            localparam LB = LOW + 1 + BBITS;
            localparam HB = ABITS - LOW + BBITS;
            wire signed [LOW:0]         a_low  = {1'b0, a[LOW-1:0]};
            wire signed [ABITS-LOW-1:0] a_high = a[ABITS-1:LOW];
            reg  signed [LB-1:0] p_low;
            reg  signed [HB-1:0] p_high;
            always @(posedge clk)
                if (en1) begin
                    p_low  <= a_low * b;
                    p_high <= a_high * b;
                end
            wire signed [TBITS-1:0] low = {{(TBITS - LB + 1){p_low[LB-1]}}, p_low[LB-2:0]};
            assign product = {{(TBITS - HB - LOW + 1){p_high[HB-1]}}, p_high[HB-2:0], {LOW{1'b0}}} + low;
        end
    endgenerate

    reg signed [YBITS-1:0] y_reg;
    always @(posedge clk)
        if (en2) y_reg <= product[YBITS-1:0] + c;
    assign y = y_reg;

    generate
        if (TBITS > YBITS) begin : g_unused
            wire unused = &{1'b0, product[TBITS-1:YBITS]};
        end
    endgenerate

`ifdef FORMAL
    // Whatever the cut: the result is a * b + c, one operation.
    reg  signed [ABITS-1:0] f_a;
    reg  signed [BBITS-1:0] f_b;
    reg  signed [YBITS-1:0] f_y;
    reg                     f_1 = 1'b0, f_2 = 1'b0;
    wire signed [TBITS-1:0] f_p = f_a * f_b;
    always @(posedge clk) begin
        if (en1) begin
            f_a <= a;
            f_b <= b;
            f_1 <= 1'b1;
        end
        if (en2) begin
            f_y <= f_p[YBITS-1:0] + c;
            f_2 <= f_1;
        end
    end
    always @(*) begin
        if (f_1) assert (product == f_p);
        if (f_2) assert (y == f_y);
        cover (f_2 && y < 0 && f_a > 0 && f_p < 0);
    end
`endif
endmodule

`default_nettype wire
