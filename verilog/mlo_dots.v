// SPDX-License-Identifier: MIT
// mlo_dots: one or two dot products of the same x: SIMD columns, one multiplier per column if PACK
//
// Contract   row r: sum r = x[0]*w[r][0] + .. + x[SIMD-1]*w[r][SIMD-1], all signed, exact; rows of w and of sum as words, row 0 lowest.
//            ROWS = 2 and PACK = 1: the two products of a column come out of one multiplier. Then row 0's sum is too
//            large by 2^(WBITS-1) * (x[0] + .. + x[SIMD-1]), and row 1's sum lacks `carry`: who adds further does both
//            in passing (mlo_mvu). Otherwise carry is 0.
// Throughput one set per cycle.
// Latency    2 + LS register stages, LS = ceil(clog2(SIMD) / 2): operands, products, one for every two levels of the tree.
// Stall      en low freezes every stage. No valid bits inside: the user's control pipeline runs beside this one.
// Legal      SIMD >= 1, XBITS >= 2, WBITS >= 2, ROWS 1 or 2, PACK 0 or 1.
//
// Two products in one multiplier: with F = XBITS + WBITS, (w1*2^F + w0)*x = w1*x*2^F + w0*x. The wide operand is no sum but
// wires, {w1, 0.., w0}, if w0 is not negative: so it is w0 + 2^(WBITS-1), whose low bits are those of w0 but for the
// highest, and row 0 is that much times x too large. A negative low product takes 1 from the upper one: that borrow is its
// sign bit, which an adder of the tree takes as its carry. n numbers have n borrows and n - 1 adders: one is left over.
// For 8 bits the operands have 24 and 8 bits, as a DSP block of 25 x 18 or 27 x 18 bits takes them; one of 18 x 18 does not.
`default_nettype none

module mlo_dots #(
    parameter SIMD  = 4,            // products per row and cycle
    parameter XBITS = 8,            // bits of an element of x
    parameter WBITS = 8,            // bits of an element of w
    parameter ROWS  = 2,            // dot products
    parameter PACK  = 1,            // 1: two rows share multipliers
    // derived, do not set: bits of a sum, exact
    parameter SBITS = XBITS + WBITS + $clog2(SIMD)
) (
    input  wire                       clk,
    input  wire                       en,
    input  wire [SIMD*XBITS-1:0]      x,
    input  wire [ROWS*SIMD*WBITS-1:0] w,
    output wire [ROWS*SBITS-1:0]      sum,
    output wire                       carry
);
    localparam LS    = ($clog2(SIMD) + 1) / 2;
    localparam PBITS = XBITS + WBITS;
    localparam QUADS = (SIMD + 3) / 4;
    localparam PAIR  = (ROWS == 2 && PACK != 0) ? 1 : 0;

    generate
        if (SIMD < 1)  mlo_error_SIMD_must_be_at_least_1 u_simd ();
        if (XBITS < 2) mlo_error_XBITS_must_be_at_least_2 u_xbits ();
        if (WBITS < 2) mlo_error_WBITS_must_be_at_least_2 u_wbits ();
        if (ROWS != 1 && ROWS != 2) mlo_error_ROWS_must_be_1_or_2 u_rows ();
    endgenerate

    // Columns in fours (those missing in the last four are 0), with the registers right before and right behind the multipliers
    // that a DSP block has. (Numbers of their own instead of parts of wide vectors, and few large blocks instead of many
    // small ones: a simulator is much faster so.)
    localparam ROOM = 4 * QUADS - SIMD;             // columns missing
    wire [4*QUADS*XBITS-1:0] x_in;
    assign x_in[SIMD*XBITS-1:0] = x;
    genvar r, s, i;
    generate
        if (ROOM > 0) begin : x_missing
            assign x_in[4*QUADS*XBITS-1 -: ROOM*XBITS] = {ROOM*XBITS{1'b0}};
        end
        for (r = 0; r < ROWS; r = r + 1) begin : operand
            wire [4*QUADS*WBITS-1:0] w_in;
            assign w_in[SIMD*WBITS-1:0] = w[r*SIMD*WBITS +: SIMD*WBITS];
            if (ROOM > 0) begin : w_missing
                assign w_in[4*QUADS*WBITS-1 -: ROOM*WBITS] = {ROOM*WBITS{1'b0}};
            end
        end
        for (i = 0; i < QUADS; i = i + 1) begin : quad
            reg  [4*XBITS-1:0] xx;
            wire signed [XBITS-1:0] x0 = xx[0 +: XBITS], x1 = xx[XBITS +: XBITS], x2 = xx[2*XBITS +: XBITS], x3 = xx[3*XBITS +: XBITS];
            if (PAIR != 0) begin : shared
                reg  [4*WBITS-1:0] low, high;
                reg  signed [2*PBITS-1:0] p0, p1, p2, p3;
                wire signed [PBITS+WBITS-1:0] w0 = {high[0 +: WBITS],       {XBITS{1'b0}}, low[0 +: WBITS]};
                wire signed [PBITS+WBITS-1:0] w1 = {high[WBITS +: WBITS],   {XBITS{1'b0}}, low[WBITS +: WBITS]};
                wire signed [PBITS+WBITS-1:0] w2 = {high[2*WBITS +: WBITS], {XBITS{1'b0}}, low[2*WBITS +: WBITS]};
                wire signed [PBITS+WBITS-1:0] w3 = {high[3*WBITS +: WBITS], {XBITS{1'b0}}, low[3*WBITS +: WBITS]};
                always @(posedge clk)
                    if (en) begin
                        xx   <= x_in[4*i*XBITS +: 4*XBITS];
                        low  <= operand[0].w_in[4*i*WBITS +: 4*WBITS] ^ {4{1'b1, {(WBITS - 1){1'b0}}}};
                        high <= operand[ROWS-1].w_in[4*i*WBITS +: 4*WBITS];
                        p0   <= w0 * x0;
                        p1   <= w1 * x1;
                        p2   <= w2 * x2;
                        p3   <= w3 * x3;
                    end
            end else begin : apart
                always @(posedge clk) if (en) xx <= x_in[4*i*XBITS +: 4*XBITS];
            end
            for (r = 0; r < ROWS; r = r + 1) begin : row
                wire signed [PBITS-1:0] a, b, c, d; // the products, borrows not given back
                wire [3:0]              borrow;
                if (PAIR != 0) begin : part
                    assign a = shared.p0[r*PBITS +: PBITS];
                    assign b = shared.p1[r*PBITS +: PBITS];
                    assign c = shared.p2[r*PBITS +: PBITS];
                    assign d = shared.p3[r*PBITS +: PBITS];
                    assign borrow = {shared.p3[PBITS-1], shared.p2[PBITS-1], shared.p1[PBITS-1], shared.p0[PBITS-1]};
                end else begin : whole
                    reg  [4*WBITS-1:0] ww;
                    reg  signed [PBITS-1:0] p0, p1, p2, p3;
                    wire signed [WBITS-1:0] w0 = ww[0 +: WBITS], w1 = ww[WBITS +: WBITS], w2 = ww[2*WBITS +: WBITS], w3 = ww[3*WBITS +: WBITS];
                    always @(posedge clk)
                        if (en) begin
                            ww <= operand[r].w_in[4*i*WBITS +: 4*WBITS];
                            p0 <= w0 * x0;
                            p1 <= w1 * x1;
                            p2 <= w2 * x2;
                            p3 <= w3 * x3;
                        end
                    assign a = p0;
                    assign b = p1;
                    assign c = p2;
                    assign d = p3;
                    assign borrow = 4'd0;
                end
            end
        end
        // the tree: node i of stage s adds up the products of 4^s columns
        for (r = 0; r < ROWS; r = r + 1) begin : row
            localparam CARRY = (PAIR != 0 && r == 1) ? 1 : 0;
            for (s = 1; s <= LS; s = s + 1) begin : stage
                localparam NODES = (SIMD + (1 << (2*s)) - 1) >> (2*s);
                localparam BELOW = (SIMD + (1 << (2*s - 2)) - 1) >> (2*s - 2);
                localparam BITS  = PBITS + 2*s - 2;
                for (i = 0; i < NODES; i = i + 1) begin : node
                    localparam COUNT = (BELOW - 4*i < 4) ? BELOW - 4*i : 4;
                    wire signed [BITS-1:0] a, b, c, d;
                    wire [3:0]             carry_in;
                    wire [BITS+1:0]        total;
                    wire                   carry_out;
                    if (s == 1) begin : products
                        assign a = quad[i].row[r].a;
                        assign b = quad[i].row[r].b;
                        assign c = quad[i].row[r].c;
                        assign d = quad[i].row[r].d;
                        assign carry_in = quad[i].row[r].borrow;
                    end else begin : sums
                        assign {a, carry_in[0]} = {stage[s-1].node[4*i].total, stage[s-1].node[4*i].carry_out};
                        if (COUNT > 1) begin : has_b
                            assign {b, carry_in[1]} = {stage[s-1].node[4*i+1].total, stage[s-1].node[4*i+1].carry_out};
                        end else begin : no_b
                            assign {b, carry_in[1]} = {(BITS + 1){1'b0}};
                        end
                        if (COUNT > 2) begin : has_c
                            assign {c, carry_in[2]} = {stage[s-1].node[4*i+2].total, stage[s-1].node[4*i+2].carry_out};
                        end else begin : no_c
                            assign {c, carry_in[2]} = {(BITS + 1){1'b0}};
                        end
                        if (COUNT > 3) begin : has_d
                            assign {d, carry_in[3]} = {stage[s-1].node[4*i+3].total, stage[s-1].node[4*i+3].carry_out};
                        end else begin : no_d
                            assign {d, carry_in[3]} = {(BITS + 1){1'b0}};
                        end
                    end
                    mlo_add4 #(.BITS(BITS), .COUNT(COUNT), .CARRY(CARRY)) u_add (
                        .clk(clk), .en(en), .a(a), .b(b), .c(c), .d(d), .carry_in(carry_in), .total(total), .carry_out(carry_out));
                end
            end
            wire [SBITS-1:0] value;
            wire             over;
            if (LS == 0) begin : no_tree
                assign {value, over} = {quad[0].row[r].a, quad[0].row[r].borrow[0] && CARRY != 0};
                wire unused = &{1'b0, quad[0].row[r].b, quad[0].row[r].c, quad[0].row[r].d, quad[0].row[r].borrow};
            end else begin : tree
                assign value = stage[LS].node[0].total[SBITS-1:0];
                assign over  = stage[LS].node[0].carry_out;
                if ($clog2(SIMD) != 2 * LS) begin : wide
                    wire unused = stage[LS].node[0].total[SBITS];       // a sign, as the bit below
                end
            end
            assign sum[r*SBITS +: SBITS] = value;
            wire unused = &{1'b0, over};
        end
    endgenerate
    assign carry = row[ROWS-1].over;

`ifdef FORMAL
    // Every sum against the plain formula, computed in 16 bits from what came in 2 + LS cycles before. (en is only ever the
    // enable of a register: cycles with en low are left out.)
    always @(*) assume (en);
    genvar f;
    generate
        for (f = 0; f < ROWS; f = f + 1) begin : f_row
            reg signed [15:0] plain;
            integer k;
            always @(*) begin
                plain = 0;
                for (k = 0; k < SIMD; k = k + 1)
                    plain = plain + $signed(x[k*XBITS +: XBITS]) * ($signed(w[(f*SIMD + k)*WBITS +: WBITS])
                                  + ((PAIR != 0 && f == 0) ? (1 << (WBITS - 1)) : 0));
            end
            reg [16*(LS+2)-1:0] before;
            reg [LS+1:0]        known = 0;
            always @(posedge clk) begin
                before <= {before, plain[15:0]};
                known  <= {known, 1'b1};
            end
            wire signed [SBITS-1:0] here = sum[f*SBITS +: SBITS];
            always @(*) if (known[LS+1]) assert (here + $signed({1'b0, carry && f == ROWS - 1}) == $signed(before[16*LS+16 +: 16]));
        end
    endgenerate
    always @(*) if (PAIR == 0) assert (!carry);
    // the least of all sums, of numbers that are not the same
    wire signed [SBITS-1:0] f_last = sum[(ROWS-1)*SBITS +: SBITS];
    always @(*) cover (f_row[ROWS-1].known[LS+1] && f_last < -(1 << (XBITS + WBITS - 3)) && (PAIR == 0 || carry));
`endif
endmodule

`default_nettype wire
