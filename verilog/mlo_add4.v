// SPDX-License-Identifier: MIT
// mlo_add4: the registered sum of up to four signed numbers, each of which may lack 1: a node of an adder tree
//
// Contract   total + carry_out = a + b + c + d + (the ones of carry_in), all exact. COUNT < 4: only the first COUNT numbers
//            count. CARRY = 0: carry_in is taken as 0, and carry_out is 0.
// Throughput one sum per cycle
// Latency    1 cycle with en high
// Stall      en low freezes it; no reset inside
// Legal      COUNT 1..4, BITS >= 2.
//
// COUNT numbers bring COUNT carries to COUNT - 1 adders: each adder takes one as its carry in, the last one goes on. A carry in
// is a bit of its own below the numbers, twice: so written, it costs no LUT, and synthesis makes no rows of compressors. Two adders
// in a row are little slower than one: the second starts as soon as the first has its lowest bit.
`default_nettype none

module mlo_add4 #(
    parameter BITS  = 16,           // bits of a number
    parameter COUNT = 4,            // numbers
    parameter CARRY = 0             // 1: numbers with carries
) (
    input  wire            clk,
    input  wire            en,
    input  wire [BITS-1:0] a,
    input  wire [BITS-1:0] b,
    input  wire [BITS-1:0] c,
    input  wire [BITS-1:0] d,
    input  wire [3:0]      carry_in,
    output reg  [BITS+1:0] total,
    output wire            carry_out
);
    localparam LOW = CARRY != 0 ? 1 : 0;            // the bit for carries, below the numbers

    generate
        if (COUNT < 1 || COUNT > 4) mlo_error_COUNT_must_be_1_to_4 u_count ();
    endgenerate

    // (Added up when the clock comes, not by wires: a simulator that is told of four numbers one after the other would add four times.)
    always @(posedge clk)
        if (en) begin : add
            reg [BITS+LOW:0]   ab, cd;
            reg [BITS+1+LOW:0] abcd;
            ab = {a[BITS-1], a, {LOW{carry_in[0]}}};
            cd = {c[BITS-1], c, {LOW{carry_in[2]}}};
            if (COUNT > 1) ab = ab + {b[BITS-1], b, {LOW{carry_in[0]}}};
            if (COUNT > 3) cd = cd + {d[BITS-1], d, {LOW{carry_in[2]}}};
            abcd = {ab[BITS+LOW], ab};
            if (COUNT > 2)
                abcd = {ab[BITS+LOW], ab[BITS+LOW:LOW], {LOW{carry_in[1]}}} + {cd[BITS+LOW], cd[BITS+LOW:LOW], {LOW{carry_in[1]}}};
            total <= abcd[BITS+1+LOW:LOW];
        end
    generate
        if (CARRY != 0) begin : lacking
            reg over;
            always @(posedge clk) if (en) over <= carry_in[COUNT-1];
            assign carry_out = over;
            wire unused = add.abcd[0];
        end else begin : whole
            assign carry_out = 1'b0;
            wire unused = &{1'b0, carry_in};
        end
        if (COUNT < 4) begin : fewer
            wire unused = &{1'b0, b, c, d, carry_in};
        end
    endgenerate

`ifdef FORMAL
    // The contract, computed wide.
    localparam FB = BITS + 4;
    wire signed [BITS-1:0] f_a = a, f_b = COUNT > 1 ? b : 0, f_c = COUNT > 2 ? c : 0, f_d = COUNT > 3 ? d : 0;
    wire [2:0]             f_ones = carry_in[0] + (COUNT > 1 && carry_in[1]) + (COUNT > 2 && carry_in[2]) + (COUNT > 3 && carry_in[3]);
    wire signed [FB-1:0]   f_carries = CARRY != 0 ? f_ones : 3'd0;
    wire signed [BITS+1:0] f_total = total;
    reg signed  [FB-1:0]   f_sum;
    reg                    f_past = 1'b0;
    always @(posedge clk) if (en) {f_past, f_sum} <= {1'b1, f_a + f_b + f_c + f_d + f_carries};
    always @* if (f_past) begin
        assert (f_total + $signed({1'b0, carry_out}) == f_sum);
        if (CARRY == 0) assert (!carry_out);
    end
    localparam signed [FB-1:0] F_LEAST = -(COUNT << (BITS - 1)), F_MOST = (COUNT << (BITS - 1)) - (CARRY != 0 ? 0 : COUNT);
    always @* cover (f_past && f_sum == F_LEAST);
    always @* cover (f_past && f_sum == F_MOST);
`endif
endmodule

`default_nettype wire
