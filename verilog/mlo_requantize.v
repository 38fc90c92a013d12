// SPDX-License-Identifier: MIT
// mlo_requantize: y = clip((acc * m + 2^(s-1)) >>> s) to YBITS signed, one pipelined lane
//
// Contract   acc signed; m is read as signed, 0 <= m < 2^(MBITS-1); 1 <= s <= 62; floor shift after adding one half.
//            SHIFT = 1: m is 2^(MBITS-2), whatever in_m says: scales are powers of two, and there is no multiplier.
//            y = clip(acc * 2^(MBITS-2-s)), halves rounded up: MBITS-3 places to the left .. 64-MBITS to the right.
// Throughput one value per cycle with en high.
// Latency    exactly 5 + DEEP cycles with en high: in_valid in cycle t gives out_valid (and out_y) in cycle t + 5 + DEEP.
//            DEEP = 0: the product has one register instead of two; for operands of a single DSP block.
// Stall      en low freezes every register of the lane, its valid bits too; out_y holds the last value until the next one. No handshake inside: the user keeps en
//            low while out_valid is high and nobody takes out_y.
// Legal      ABITS >= 2, MBITS >= 2, YBITS >= 2, SHIFT and DEEP 0 or 1, DSP 18 or 27.
//
// How it stays small: floor((p + 2^(s-1)) / 2^s) = floor((floor(p / 2^(s-1)) + 1) / 2), so no 64-bit adder is needed:
// shift by s-1, add one, drop one bit. And of the shifted product only the low YBITS+1 bits and the question "does
// the rest consist of sign bits?" matter, so the coarse shift (by bytes) selects a narrow window of the product and
// one flag per byte tells whether something significant lies above it.
`default_nettype none

module mlo_requantize #(
    parameter ABITS = 32,           // bits of acc
    parameter MBITS = 16,           // bits of m
    parameter YBITS = 8,            // bits of y
    parameter DEEP  = 1,            // 1: two registers behind the multiplier
    parameter DSP   = 27,           // bits of the wider operand of the target's DSP blocks (the other has 18); same numbers and cycles
    parameter SHIFT = 0             // 1: no multiplier
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             en,
    input  wire             in_valid,
    input  wire [ABITS-1:0] in_acc,
    input  wire [MBITS-1:0] in_m,
    input  wire [5:0]       in_s,
    output wire             out_valid,
    output wire [YBITS-1:0] out_y
);
    localparam PBITS = ABITS + MBITS;               // the whole product
    localparam WB    = (YBITS + 8 + 7) / 8;         // bytes of the window: YBITS+1 bits for every fine shift 0..7
    localparam WBITS = 8 * WB;
    localparam PB    = (PBITS + 7) / 8;
    localparam NB    = (PB > WB + 7) ? PB : WB + 7; // bytes of the sign-extended product: coarse shifts go to 7
    localparam EBITS = 8 * NB;
    localparam XB    = $clog2(EBITS);               // 7 or more

    generate
        if (ABITS < 2) mlo_error_ABITS_must_be_at_least_2 u_abits ();
        if (MBITS < 2) mlo_error_MBITS_must_be_at_least_2 u_mbits ();
        if (YBITS < 2) mlo_error_YBITS_must_be_at_least_2 u_ybits ();
        if (SHIFT != 0 && SHIFT != 1) mlo_error_SHIFT_must_be_0_or_1 u_shift ();
        if (DSP != 18 && DSP != 27) mlo_error_DSP_must_be_18_or_27 u_dsp ();
    endgenerate

    // A stage moves only when a value enters it: an idle lane is still, in hardware and in a simulator.
    reg  [5:0] valid_reg;
    wire [5:0] valid = (DEEP != 0) ? valid_reg : {valid_reg[5:3], valid_reg[1], valid_reg[1:0]};
    wire [5:0] enter = {valid[4:0], in_valid};
    wire       moves = en && {valid, in_valid} != 7'd0;
    assign out_valid = valid[5];

    // 1: operands (the input registers of a DSP block). 2, 3: the product (its multiplier and output registers)
    reg signed [ABITS-1:0] acc1;
    wire signed [PBITS-1:0] prod2;
    reg signed [PBITS-1:0] prod3_reg;
    reg        [5:0]       sh1, sh2, sh3_reg;       // s - 1
    wire signed [PBITS-1:0] prod3 = (DEEP != 0) ? prod3_reg : prod2;
    wire       [5:0]       sh3 = (DEEP != 0) ? sh3_reg : sh2;
    generate
        if (SHIFT != 0) begin : wires
            reg signed [ABITS-1:0] acc2;
            always @(posedge clk) if (moves && enter[1]) acc2 <= acc1;
            assign prod2 = {{2{acc2[ABITS-1]}}, acc2, {(MBITS - 2){1'b0}}};
            wire unused_m = &{1'b0, in_m};
        end else begin : multiplier
            reg  signed [MBITS-1:0] m1;
            wire signed [ABITS+MBITS-1:0] whole;
            always @(posedge clk) if (moves && enter[0]) m1 <= in_m;
            assign prod2 = whole[PBITS-1:0];
            if (DEEP != 0 && (ABITS > DSP || MBITS > 18)) begin : halves
                // more than a DSP block: the wide operand's 17 low bits and its rest in a block each, added behind their registers
                localparam WIDE  = (ABITS > DSP) ? ABITS : MBITS;
                localparam OTHER = (ABITS > DSP) ? MBITS : ABITS;
                wire signed [WIDE-1:0]       wide1;
                wire signed [OTHER-1:0]      other1;
                if (ABITS > DSP) begin : of_acc
                    assign {wide1, other1} = {acc1, m1};
                end else begin : of_m
                    assign {wide1, other1} = {m1, acc1};
                end
                wire signed [17:0]           low1  = {1'b0, wide1[16:0]};
                wire signed [WIDE-18:0]      high1 = wide1[WIDE-1:17];
                if (OTHER <= DSP) begin : two
                    reg  signed [OTHER+17:0]      low2;
                    reg  signed [WIDE+OTHER-18:0] high2;
                    always @(posedge clk) if (moves && enter[1]) begin
                        low2  <= low1 * other1;
                        high2 <= high1 * other1;
                    end
                    assign whole = {high2 + {{(WIDE - 18){low2[OTHER+17]}}, low2[OTHER+17:17]}, low2[16:0]};
                end else begin : four       // both in two: wide1 is acc1, other1 is m1
                    // No two of the four blocks read one register, so each can have its operands near it, wherever
                    // it is: the cross products have copies. (Enabled otherwise, or tools would make them one again.)
                    reg  signed [ABITS-1:0]       acc_cross1;
                    reg  signed [MBITS-1:0]       m_cross1;
                    always @(posedge clk) if (moves) {acc_cross1, m_cross1} <= {in_acc, in_m};
                    wire signed [17:0]            other_low1  = {1'b0, other1[16:0]};
                    wire signed [OTHER-18:0]      other_high1 = other1[OTHER-1:17];
                    wire signed [17:0]            acc_low1    = {1'b0, acc_cross1[16:0]};
                    wire signed [ABITS-18:0]      acc_high1   = acc_cross1[ABITS-1:17];
                    wire signed [17:0]            m_low1      = {1'b0, m_cross1[16:0]};
                    wire signed [MBITS-18:0]      m_high1     = m_cross1[MBITS-1:17];
                    reg  signed [35:0]            low2;         // never negative
                    reg  signed [WIDE:0]          cross2;
                    reg  signed [OTHER:0]         other_cross2;
                    reg  signed [WIDE+OTHER-35:0] high2;
                    always @(posedge clk) if (moves && enter[1]) begin
                        low2         <= low1 * other_low1;
                        cross2       <= acc_high1 * m_low1;
                        other_cross2 <= acc_low1 * m_high1;
                        high2        <= high1 * other_high1;
                    end
                    wire signed [WIDE+OTHER-18:0] ends = {high2, low2[33:17]};
                    wire signed [WIDE+OTHER-18:0] middle = {{(OTHER - 18){cross2[WIDE]}}, cross2} + {{(WIDE - 18){other_cross2[OTHER]}}, other_cross2};
                    assign whole = {ends + middle, low2[16:0]};
                    wire unused_sign = &{1'b0, low2[35:34]};
                end
            end else begin : all
                reg signed [ABITS+MBITS-1:0] all2;
                always @(posedge clk) if (moves && enter[1]) all2 <= acc1 * m1;
                assign whole = all2;
            end
        end
    endgenerate

    // 4: coarse shift by 8 * sh3[5:3] into the window; is anything above it not a sign bit?
    wire             neg3 = prod3[PBITS-1];
    wire [EBITS-1:0] ext3 = {{(EBITS - PBITS){neg3}}, prod3};
    wire [NB-1:0]    signif3;                       // byte b holds a bit that differs from the sign
    genvar b;
    generate
        for (b = 0; b < NB; b = b + 1) begin : byte_flag
            assign signif3[b] = ext3[8*b +: 8] != {8{neg3}};
        end
    endgenerate
    wire [XB-1:0]    at3    = {{(XB - 6){1'b0}}, sh3[5:3], 3'd0};
    wire [NB-1:0]    above3 = (signif3 >> WB) >> sh3[5:3];
    reg  [WBITS-1:0] win4;
    reg              neg4, big4;
    reg  [2:0]       sh4;

    // 5: fine shift; twice the result (t) must fit in YBITS+1 bits
    wire signed [WBITS:0] t4 = $signed({neg4, win4}) >>> sh4;
    reg  [YBITS:0]        t5;
    reg                   neg5, big5;

    // 6: round and clip: (t + 1) / 2 leaves the range only upwards, and only from the largest value
    wire [YBITS-1:0] largest = {1'b0, {(YBITS - 1){1'b1}}};
    wire             up5 = t5[0] && t5[YBITS:1] != largest;
    reg  [YBITS-1:0] y6;
    assign out_y = y6;

    always @(posedge clk) begin
        if (moves) begin
            valid_reg <= enter;
            if (enter[0]) begin
                acc1 <= in_acc;
                sh1  <= in_s - 6'd1;
            end
            if (enter[1]) begin
                sh2   <= sh1;
            end
            if (enter[2]) begin
                prod3_reg <= prod2;
                sh3_reg   <= sh2;
            end
            if (enter[3]) begin
                win4 <= ext3[at3 +: WBITS];
                neg4 <= neg3;
                big4 <= above3 != {NB{1'b0}};
                sh4  <= sh3[2:0];
            end
            if (enter[4]) begin
                t5   <= t4[YBITS:0];
                neg5 <= neg4;
                big5 <= big4 || t4[WBITS:YBITS] != {(WBITS - YBITS + 1){neg4}};
            end
            if (enter[5]) y6 <= big5 ? largest ^ {YBITS{neg5}} : t5[YBITS:1] + {{(YBITS - 1){1'b0}}, up5};
        end
        if (rst) valid_reg <= 6'd0;
    end

`ifdef FORMAL
    // Stage by stage against the plain formula, computed wide: each assertion is inductive by itself. f_okN: what is in
    // stage N came in through the port with a legal s. The product itself is taken as it is, but with SHIFT.
    localparam FB = (PBITS > 64) ? PBITS + 2 : 66;
    reg  [2:0]             f_in_reg = 3'd0;
    reg  [5:0]             f_s1, f_s2, f_s3_reg;
    reg  signed [ABITS-1:0] f_a1, f_a2, f_a3_reg;
    wire [2:0]             f_in = (DEEP != 0) ? f_in_reg : {f_in_reg[1], f_in_reg[1:0]};
    wire [5:0]             f_s3 = (DEEP != 0) ? f_s3_reg : f_s2;
    wire signed [ABITS-1:0] f_a3 = (DEEP != 0) ? f_a3_reg : f_a2;
    wire signed [PBITS-1:0] f_a = f_a3, f_m = 1 << (MBITS - 2);
    reg                    f_ok4 = 1'b0, f_ok5 = 1'b0, f_ok6 = 1'b0;
    reg  [YBITS-1:0]       f_y4, f_y5, f_y6;
    wire                   f_ok3  = f_in[2] && f_s3 >= 6'd1 && f_s3 <= 6'd62;
    wire signed [FB-1:0]   f_one  = 1;
    wire signed [FB-1:0]   f_wide = prod3;
    wire signed [FB-1:0]   f_full = (f_wide + (f_one <<< (f_s3 - 6'd1))) >>> f_s3;
    wire signed [FB-1:0]   f_hi   = (f_one <<< (YBITS - 1)) - f_one;
    wire signed [FB-1:0]   f_lo   = -(f_one <<< (YBITS - 1));
    wire signed [FB-1:0]   f_clip = f_full > f_hi ? f_hi : f_full < f_lo ? f_lo : f_full;
    wire [YBITS-1:0]       f_out5 = big5 ? largest ^ {YBITS{neg5}} : t5[YBITS:1] + {{(YBITS - 1){1'b0}}, up5};
    wire                   f_big4 = big4 || t4[WBITS:YBITS] != {(WBITS - YBITS + 1){neg4}};
    wire [YBITS-1:0]       f_out4 = f_big4 ? largest ^ {YBITS{neg4}}
                                           : t4[YBITS:1] + {{(YBITS - 1){1'b0}}, t4[0] && t4[YBITS:1] != largest};
    always @(posedge clk)
        if (en) begin
            if (enter[0]) {f_in_reg[0], f_s1, f_a1} <= {1'b1, in_s, in_acc};
            if (enter[1]) {f_in_reg[1], f_s2, f_a2} <= {f_in[0], f_s1, f_a1};
            if (enter[2]) {f_in_reg[2], f_s3_reg, f_a3_reg} <= {f_in[1], f_s2, f_a2};
            if (enter[3]) {f_ok4, f_y4}   <= {f_ok3, f_clip[YBITS-1:0]};
            if (enter[4]) {f_ok5, f_y5}   <= {f_ok4, f_y4};
            if (enter[5]) {f_ok6, f_y6}   <= {f_ok5, f_y5};
        end
    always @(*) begin
        if (f_in[0]) assert (sh1 == f_s1 - 6'd1);
        if (f_in[1]) assert (sh2 == f_s2 - 6'd1);
        if (f_in[2]) assert (sh3 == f_s3 - 6'd1);
        if (SHIFT != 0 && f_in[0]) assert (acc1 == f_a1);
        if (SHIFT != 0 && f_in[1]) assert (prod2 == {{2{f_a2[ABITS-1]}}, f_a2, {(MBITS - 2){1'b0}}});
        if (SHIFT != 0 && f_in[2]) assert (prod3 == f_a * f_m);
        if (f_ok4)   assert (f_out4 == f_y4);
        if (f_ok5)   assert (f_out5 == f_y5);
        if (f_ok6)   assert (out_y  == f_y6);
    end
    generate
        if (SHIFT == 0 && DEEP != 0 && ABITS > DSP && MBITS > DSP) begin : f_four
            always @(*) if (f_in[0] && valid[0])
                assert ({multiplier.halves.four.acc_cross1, multiplier.halves.four.m_cross1} == {acc1, multiplier.m1});
        end
    endgenerate
    reg           f_past = 1'b0, f_hold;
    reg [YBITS:0] f_last;
    always @(posedge clk) begin                     // en low: nothing moves
        f_past <= 1'b1;
        f_hold <= !en && !rst;
        f_last <= {out_valid, out_y};
        if (f_past && f_hold) assert (f_last == {out_valid, out_y});
    end
`endif
endmodule

`default_nettype wire
