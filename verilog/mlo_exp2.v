// SPDX-License-Identifier: MIT
// mlo_exp2: e = round(255 * 2^(EBITS-8) * 2^-x) of a scaled difference, the exponential of a softmax, one pipelined lane
//
// Contract
//   t = ((mx - s) * ms + 2^(ss-1)) >> ss, at most 4095      x = t / 64: 6 integer, 6 fraction bits
//   e = ok ? (ROM[t & 63] + 2^(15-EBITS+i)) >> (16-EBITS+i) : 0,  i = t >> 6
//                                                           (EBITS = 8: 0 .. 255, 0 for i >= 9; 12: 0 .. 4080, 0 for i >= 13)
//   ROM[f] = round(65280 * 2^(-f/64)); 65280 = 255 * 256
//
// Base 2, because its integer part is a shift; ms and ss bring log2(e) and all scales.
// Throughput  one value per cycle
// Latency     exactly 5 cycles
// Stall       none (no handshake: see mlo_attention)
// Error       |e - 255 * 2^(EBITS-8) * 2^(-t/64)| < 0.51 (EBITS = 12: 0.54): rounding to EBITS bits, plus half of the ROM's last place, 2^(EBITS-17)
// Legal       EBITS is 8 or 12; SBITS >= 2; 0 <= mx - s < 2^(SBITS-1); 1 <= ss <= 62
`default_nettype none
module mlo_exp2 #(
    // bits of a score (signed)
    parameter SBITS = 20,
    // bits of the exponential
    parameter EBITS = 8,
    // bits without a sign of the wider operand of the target's DSP blocks (the other has 16); same numbers and cycles
    parameter DSP = 26
) (
    input  wire             clk,
    input  wire [SBITS-1:0] mx,     // the row's largest score
    input  wire [SBITS-1:0] s,      // this score
    input  wire             ok,     // it counts
    input  wire [15:0]      ms,
    input  wire [5:0]       ss,
    output wire [EBITS-1:0] e
);

generate
    if (SBITS < 2) begin : g_error
        mlo_error_SBITS_must_be_at_least_2 u_error();
    end
    if (EBITS != 8 && EBITS != 12) begin : g_ebits
        mlo_error_EBITS_must_be_8_or_12 u_ebits();
    end
endgenerate

// round(65280 * 2^(-f/64)), f = 63 first
localparam [64*16-1:0] ROM = {
    16'd32995, 16'd33355, 16'd33718, 16'd34085, 16'd34456, 16'd34831, 16'd35211, 16'd35594,
    16'd35982, 16'd36374, 16'd36770, 16'd37170, 16'd37575, 16'd37984, 16'd38398, 16'd38816,
    16'd39238, 16'd39666, 16'd40098, 16'd40534, 16'd40976, 16'd41422, 16'd41873, 16'd42329,
    16'd42790, 16'd43256, 16'd43727, 16'd44203, 16'd44684, 16'd45171, 16'd45663, 16'd46160,
    16'd46663, 16'd47171, 16'd47684, 16'd48204, 16'd48729, 16'd49259, 16'd49796, 16'd50338,
    16'd50886, 16'd51440, 16'd52000, 16'd52566, 16'd53139, 16'd53717, 16'd54302, 16'd54894,
    16'd55491, 16'd56096, 16'd56707, 16'd57324, 16'd57948, 16'd58579, 16'd59217, 16'd59862,
    16'd60514, 16'd61173, 16'd61839, 16'd62512, 16'd63193, 16'd63881, 16'd64577, 16'd65280
};

localparam DB = SBITS - 1;          // bits of the difference: never negative
localparam PB = DB + 16;

// 1: difference. 2: product (d1, ms1 and p2 are the registers of a DSP block)
reg [DB-1:0] d1;
reg [15:0]   ms1;
reg [5:0]    sh1, sh2;              // ss - 1
wire [PB-1:0] p2;
reg [PB-1:0] above2;                // the bits of p2 that stage 3 leaves above the lowest 13
reg          ok1, ok2, ok3, ok4;

wire [SBITS-1:0] difference = mx - s;
always @(posedge clk) begin
    d1  <= difference[DB-1:0];
    ms1 <= ms;
    sh1 <= ss - 6'd1;
    sh2 <= sh1;
    above2 <= {PB{1'b1}} << ({1'b0, sh1} + 7'd13);
    ok1 <= ok;
    ok2 <= ok1;
    ok3 <= ok2;
    ok4 <= ok3;
end

// 2: the product
generate
    if (DB <= DSP) begin : g_block
        reg [PB-1:0] product2;
        assign p2 = product2;
        always @(posedge clk) product2 <= {16'd0, d1} * {{DB{1'b0}}, ms1};
    end else begin : g_blocks               // more than a DSP block: what is above it is added behind the registers
        localparam HB = DB - DSP;
        reg  [DSP+15:0] low2;
        reg  [HB+15:0]  high2;
        wire [HB+15:0]  sum2 = high2 + {{HB{1'b0}}, low2[DSP +: 16]};
        assign p2 = {sum2, low2[DSP-1:0]};
        always @(posedge clk) begin
            low2  <= {16'd0, d1[DSP-1:0]} * {{DSP{1'b0}}, ms1};
            high2 <= {16'd0, d1[DB-1:DSP]} * {{HB{1'b0}}, ms1};
        end
    end
endgenerate

// 3: (p + 2^(ss-1)) >> ss = ((p >> (ss-1)) + 1) >> 1, which needs no wide adder.
//    It exceeds 4095 exactly if p >> (ss-1) is 8191 or more; what lies above is found beside the shift, not behind it.
wire [PB-1:0] twice2 = p2 >> sh2;
reg  [12:0]   twice3;
reg           big3;
wire [13:0]   round3 = {1'b0, twice3} + 14'd1;          // t, and half of its last place
always @(posedge clk) begin
    twice3 <= twice2[12:0];
    big3   <= |(p2 & above2);
end

// 4: rounded, the fraction's power looked up; 5: the integer part's, shifted; rounded the same way
reg [15:0] rom4;
reg [5:0]  i4;
reg [EBITS-1:0] e5;
wire [EBITS:0]  twice4 = rom4[15:15-EBITS] >> i4;      // twice the result, at most 510 (EBITS = 12: 8160)
wire [EBITS:0]  round4 = twice4 + {{EBITS{1'b0}}, 1'b1};
always @(posedge clk) begin
    rom4 <= ROM[round3[6:1]*16 +: 16];
    i4   <= (big3 || round3[13]) ? 6'd63 : round3[12:7];     // e is 0 then, whatever the fraction
    e5   <= ok4 ? round4[EBITS:1] : {EBITS{1'b0}};
end
assign e = e5;

wire unused = &{1'b0, difference[SBITS-1], twice2, round3[0], round4[0], rom4[14-EBITS:0]};

`ifdef FORMAL
    // The two rounding shifts against the header's formulas, computed wide.
    reg          f_past = 1'b0, f_two = 1'b0;
    reg  [79:0]  f_p2, f_p3;
    reg  [5:0]   f_sh3;
    reg  [11:0]  f_t4, f_t5;
    reg          f_ok5;
    wire [79:0]  f_one = 1;
    wire [79:0]  f_t = (f_p3 + (f_one << f_sh3)) >> (f_sh3 + 7'd1);
    wire [11:0]  f_t3 = (big3 || round3[13]) ? 12'd4095 : round3[12:1];
    wire [79:0]  f_rom = ROM[f_t5[5:0]*16 +: 16];
    wire [79:0]  f_e = (f_rom + (f_one << (15 - EBITS + f_t5[11:6]))) >> (16 - EBITS + f_t5[11:6]);
    always @(posedge clk) begin
        f_past <= 1'b1;
        f_two  <= f_past;
        f_p2   <= d1 * ms1;
        f_p3   <= p2;
        f_sh3  <= sh2;
        f_t4   <= f_t3;
        f_t5   <= f_t4;
        f_ok5  <= ok4;
    end
    always @* begin
        if (f_past) assert (p2 == f_p2);
        if (f_past) assert (above2 == {PB{1'b1}} << ({1'b0, sh2} + 7'd13));
        if (f_past) assert ((rom4 == ROM[f_t4[5:0]*16 +: 16] || i4 == 6'd63) && i4 == f_t4[11:6]);
        if (f_two && f_sh3 <= 6'd61) assert (f_t3 == (f_t > 80'd4095 ? 80'd4095 : f_t));
        if (f_two) assert (e5 == (f_ok5 ? f_e : 80'd0));
        cover (f_two && e5 == 255 << (EBITS - 8) && f_p3 != 0 && f_t3 == 12'd4095);           // a difference of nearly nothing, then one too large
        cover (f_two && e5 == 1);
    end
`endif
endmodule
`default_nettype wire
