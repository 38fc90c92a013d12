// SPDX-License-Identifier: MIT
// mlo_exp2_fine: e = round(262143 * 2^-x) of a scaled difference, for probabilities that are rounded themselves; one pipelined lane
//
// Contract
//   t = ((mx - s) * ms + 2^(ss-1)) >> ss, at most 2^17 - 1      5 integer, 6 + 6 fraction bits: i, f, g
//   a = ROM[f] - (((ROM[f] - ROM[f+1]) * g + 32) >> 6),  ROM[f] = round(262143 * 2^(-f/64)), f = 0..64
//   e = ok ? (2 * a + 2^i) >> (i+1) : 0                         18 bits; 0 for i >= 19
//
// As mlo_exp2, with 10 bits more of e and 6 more of x. Between the ROM's 64 points runs a straight line, which is
// within 1.5e-5: a product of 12 x 6 bits saves a ROM of 4096 words.
// Throughput  one value per cycle
// Latency     exactly 7 cycles
// Stall       none (no handshake: see mlo_attention)
// Legal       SBITS >= 2; 0 <= mx - s < 2^(SBITS-1); 1 <= ss <= 62
`default_nettype none
module mlo_exp2_fine #(
    // bits of a score (signed)
    parameter SBITS = 20
) (
    input  wire             clk,
    input  wire [SBITS-1:0] mx,     // the row's largest score
    input  wire [SBITS-1:0] s,      // this score
    input  wire             ok,     // it counts
    input  wire [15:0]      ms,
    input  wire [5:0]       ss,
    output wire [17:0]      e
);

generate
    if (SBITS < 2) begin : g_error
        mlo_error_SBITS_must_be_at_least_2 u_error();
    end
endgenerate

// round(262143 * 2^(-f/64)), f = 64 first
localparam [65*18-1:0] ROM = {
    18'd131072, 18'd132499, 18'd133942, 18'd135400, 18'd136875, 18'd138365, 18'd139872, 18'd141395,
    18'd142934, 18'd144491, 18'd146064, 18'd147655, 18'd149263, 18'd150888, 18'd152531, 18'd154192,
    18'd155871, 18'd157568, 18'd159284, 18'd161019, 18'd162772, 18'd164545, 18'd166336, 18'd168148,
    18'd169979, 18'd171830, 18'd173701, 18'd175592, 18'd177504, 18'd179437, 18'd181391, 18'd183366,
    18'd185363, 18'd187382, 18'd189422, 18'd191485, 18'd193570, 18'd195678, 18'd197808, 18'd199962,
    18'd202140, 18'd204341, 18'd206566, 18'd208816, 18'd211089, 18'd213388, 18'd215712, 18'd218061,
    18'd220435, 18'd222835, 18'd225262, 18'd227715, 18'd230195, 18'd232701, 18'd235235, 18'd237797,
    18'd240386, 18'd243004, 18'd245650, 18'd248325, 18'd251029, 18'd253763, 18'd256526, 18'd259319,
    18'd262143
};

// ROM[f] - ROM[f+1], 1428 .. 2824: a ROM of its own, so that both have their register right behind them
function [64*12-1:0] steps(input [65*18-1:0] rom);
    integer f;
    for (f = 0; f < 64; f = f + 1) steps[f*12 +: 12] = rom[f*18 +: 12] - rom[(f+1)*18 +: 12];
endfunction
localparam [64*12-1:0] SLOPE = steps(ROM);

localparam DB = SBITS - 1;          // bits of the difference: never negative
localparam PB = DB + 16;

// 1: difference. 2: product (d1, ms1 and p2 are the registers of a DSP block)
reg [DB-1:0] d1;
reg [15:0]   ms1;
reg [5:0]    sh1, sh2;              // ss - 1
reg [PB-1:0] p2;
reg [PB-1:0] above2;                // the bits of p2 that stage 3 leaves above the lowest 18
reg [5:0]    ok_reg;                // bit k: of stage k + 1

wire [SBITS-1:0] difference = mx - s;
always @(posedge clk) begin
    d1     <= difference[DB-1:0];
    ms1    <= ms;
    sh1    <= ss - 6'd1;
    p2     <= {16'd0, d1} * {{DB{1'b0}}, ms1};
    sh2    <= sh1;
    above2 <= {PB{1'b1}} << ({1'b0, sh1} + 7'd18);
    ok_reg <= {ok_reg[4:0], ok};
end

// 3: (p + 2^(ss-1)) >> ss = ((p >> (ss-1)) + 1) >> 1, which needs no wide adder.
//    It exceeds 2^17 - 1 exactly if p >> (ss-1) is 2^18 - 1 or more (p may have less than 18 bits);
//    what lies above is found beside the shift, not behind it.
wire [PB+17:0] twice2 = {18'd0, p2} >> sh2;
reg  [17:0]    twice3;
reg            big3;
wire [18:0]    round3 = {1'b0, twice3} + 19'd1;          // t, and half of its last place
always @(posedge clk) begin
    twice3 <= twice2[17:0];
    big3   <= |(p2 & above2);
end

// 4: rounded; a point and the way to its neighbour looked up. 5: the way between them, times g. 6: the line's point. 7: shifted, rounded
reg  [17:0] here4, here5, a6, e7;
wire [5:0]  f3     = round3[12:7];
wire [17:0] rom3   = ROM[f3*18 +: 18];
wire [11:0] slope3 = SLOPE[f3*12 +: 12];
reg  [11:0] slope4;
reg  [17:0] way5;
reg  [5:0]  g4;
reg  [4:0]  i4, i5, i6;
wire [18:0] down5  = {here5, 1'b0} - {6'd0, way5[17:5]};        // way5 is rounded here, not behind its multiplier
wire [18:0] twice6 = {a6, 1'b0} >> i6;
wire [18:0] round6 = twice6 + 19'd1;            // 2 * 262143 + 1 at most: no carry
always @(posedge clk) begin
    here4  <= rom3;
    slope4 <= slope3;
    g4     <= round3[6:1];
    i4     <= (big3 || round3[18]) ? 5'd31 : round3[17:13];  // e is 0 then, whatever the fraction
    here5  <= here4;
    way5   <= {6'd0, slope4} * {12'd0, g4};
    i5     <= i4;
    a6     <= down5[18:1];
    i6     <= i5;
    e7     <= ok_reg[5] ? round6[18:1] : 18'd0;
end
assign e = e7;

wire unused = &{1'b0, difference[SBITS-1], twice2, round3[0], round6[0], way5[4:0], down5[0]};

`ifdef FORMAL
    // The two rounding shifts against the header's formulas, computed wide.
    reg          f_past = 1'b0, f_two = 1'b0;
    reg  [79:0]  f_p3;
    reg  [5:0]   f_sh3;
    reg  [17:0]  f_way5, f_a6, f_a7;
    reg  [4:0]   f_i7;
    reg          f_ok7;
    wire [16:0]  f_t3 = (big3 || round3[18]) ? 17'd131071 : round3[17:1];
    wire [79:0]  f_one = 1;
    reg  [4:0]   f_i4;
    wire [79:0]  f_t = (f_p3 + (f_one << f_sh3)) >> (f_sh3 + 7'd1);
    wire [79:0]  f_e = ({62'd0, f_a7} * 2 + (f_one << f_i7)) >> (f_i7 + 6'd1);
    always @(posedge clk) begin
        f_past <= 1'b1;
        f_two  <= f_past;
        f_p3   <= p2;
        f_i4   <= f_t3[16:12];
        f_sh3  <= sh2;
        f_way5 <= {6'd0, slope4} * {12'd0, g4} + 18'd32;
        f_a6   <= here5 - {6'd0, f_way5[17:6]};
        f_a7   <= a6;
        f_i7   <= i6;
        f_ok7  <= ok_reg[5];
    end
    always @* begin
        if (f_past) assert (above2 == {PB{1'b1}} << ({1'b0, sh2} + 7'd18));
        if (f_two && f_sh3 <= 6'd61) assert (f_t3 == (f_t > 80'd131071 ? 80'd131071 : f_t));
        if (f_past) assert (i4 == f_i4);
        if (f_two) assert (a6 == f_a6);
        if (f_past) assert (e7 == (f_ok7 ? f_e : 80'd0));
    end
`endif
endmodule
`default_nettype wire
