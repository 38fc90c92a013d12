// SPDX-License-Identifier: MIT
// mlo_attention_cap: a score under a soft cap, c * tanh(s / c), in steps of c / 65535
//
// Contract
//   u   = clip((in * mult + 2^(shift-1)) >>> shift) to -65535 .. 65535     s / c in steps of 1/8192: at most 8, where tanh is 1
//   f, g = |u| >> 8, |u| & 255                                             between two of ROM's points, 1/32 apart
//   out = sign(u) * (ROM[f] + (((ROM[f+1] - ROM[f]) * g + 128) >> 8)),  ROM[f] = round(65535 * tanh(f / 32)), f = 0 .. 256
//
// It never falls where in rises: the largest score of a row stays the largest.
// Throughput  one value per cycle
// Latency     exactly 10 cycles
// Stall       none (no handshake: see mlo_attention)
// Error       |out / 65535 - tanh(s / c)| < 1.5e-4: half a step of u 0.6e-4, the straight line 1.0e-4 (not at the same place)
// Legal       SB >= 2; 1 <= shift <= 62
`default_nettype none
module mlo_attention_cap #(
    // bits of a score (signed)
    parameter SB = 20
) (
    input  wire          clk,
    input  wire          rst,
    input  wire          in_valid,
    input  wire [SB-1:0] in,
    input  wire [15:0]   mult,      // 0 .. 2^15 - 1
    input  wire [5:0]    shift,
    output wire [16:0]   out        // signed
);

// round(65535 * tanh(f / 32)), f = 256 first
localparam [257*16-1:0] ROM = {
    16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535,
    16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535,
    16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535,
    16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535,
    16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65535, 16'd65534, 16'd65534, 16'd65534,
    16'd65534, 16'd65534, 16'd65534, 16'd65534, 16'd65534, 16'd65534, 16'd65534, 16'd65534, 16'd65534, 16'd65534, 16'd65534, 16'd65534,
    16'd65534, 16'd65534, 16'd65533, 16'd65533, 16'd65533, 16'd65533, 16'd65533, 16'd65533, 16'd65533, 16'd65533, 16'd65533, 16'd65532,
    16'd65532, 16'd65532, 16'd65532, 16'd65532, 16'd65531, 16'd65531, 16'd65531, 16'd65531, 16'd65530, 16'd65530, 16'd65530, 16'd65529,
    16'd65529, 16'd65529, 16'd65528, 16'd65528, 16'd65527, 16'd65527, 16'd65526, 16'd65526, 16'd65525, 16'd65525, 16'd65524, 16'd65523,
    16'd65522, 16'd65522, 16'd65521, 16'd65520, 16'd65519, 16'd65518, 16'd65517, 16'd65515, 16'd65514, 16'd65513, 16'd65511, 16'd65510,
    16'd65508, 16'd65507, 16'd65505, 16'd65503, 16'd65501, 16'd65499, 16'd65496, 16'd65494, 16'd65491, 16'd65488, 16'd65485, 16'd65482,
    16'd65479, 16'd65475, 16'd65471, 16'd65467, 16'd65463, 16'd65458, 16'd65453, 16'd65448, 16'd65442, 16'd65436, 16'd65430, 16'd65423,
    16'd65416, 16'd65408, 16'd65400, 16'd65391, 16'd65382, 16'd65372, 16'd65361, 16'd65350, 16'd65338, 16'd65326, 16'd65312, 16'd65298,
    16'd65282, 16'd65266, 16'd65249, 16'd65231, 16'd65211, 16'd65190, 16'd65168, 16'd65144, 16'd65119, 16'd65092, 16'd65064, 16'd65034,
    16'd65002, 16'd64967, 16'd64931, 16'd64892, 16'd64851, 16'd64807, 16'd64760, 16'd64711, 16'd64658, 16'd64602, 16'd64542, 16'd64478,
    16'd64411, 16'd64339, 16'd64263, 16'd64181, 16'd64095, 16'd64003, 16'd63906, 16'd63802, 16'd63692, 16'd63575, 16'd63450, 16'd63318,
    16'd63178, 16'd63028, 16'd62870, 16'd62702, 16'd62523, 16'd62334, 16'd62133, 16'd61919, 16'd61693, 16'd61453, 16'd61198, 16'd60929,
    16'd60643, 16'd60340, 16'd60019, 16'd59679, 16'd59319, 16'd58938, 16'd58535, 16'd58110, 16'd57659, 16'd57184, 16'd56682, 16'd56152,
    16'd55592, 16'd55003, 16'd54381, 16'd53727, 16'd53038, 16'd52313, 16'd51551, 16'd50751, 16'd49911, 16'd49030, 16'd48107, 16'd47141,
    16'd46130, 16'd45074, 16'd43972, 16'd42822, 16'd41624, 16'd40378, 16'd39083, 16'd37739, 16'd36346, 16'd34903, 16'd33412, 16'd31872,
    16'd30285, 16'd28651, 16'd26972, 16'd25250, 16'd23485, 16'd21680, 16'd19838, 16'd17961, 16'd16051, 16'd14111, 16'd12146, 16'd10157,
    16'd8149, 16'd6126, 16'd4091, 16'd2047, 16'd0
};

// 1 to 6: u; what is clipped to -65536 is -65535
wire        valid6;
wire [16:0] u6;
mlo_requantize #(.ABITS(SB), .MBITS(16), .YBITS(17)) u_requantize (
    .clk(clk), .rst(rst), .en(1'b1), .in_valid(in_valid), .in_acc(in), .in_m(mult), .in_s(shift),
    .out_valid(valid6), .out_y(u6)
);

// 7: its size. 8: two neighbours looked up. 9: the way between them, times g. 10: the line's point, with its sign
wire [16:0] size6  = (u6 ^ {17{u6[16]}}) + {16'd0, u6[16]};
reg  [15:0] size7;
wire [8:0]  f7     = {1'b0, size7[15:8]};
wire [15:0] here7  = ROM[f7*16 +: 16];
wire [15:0] next7  = ROM[(f7 + 9'd1)*16 +: 16];
wire [15:0] slope7 = next7 - here7;             // 0 .. 2047
reg  [15:0] here8, here9;
reg  [10:0] slope8;
reg  [7:0]  g8;
wire [18:0] way8   = {8'd0, slope8} * {11'd0, g8} + 19'd128;
reg  [10:0] way9;
reg         neg7, neg8, neg9;
wire [16:0] point9 = {1'b0, here9} + {6'd0, way9};
reg  [16:0] out_reg;
always @(posedge clk) begin
    size7   <= size6[15:0] | {16{size6[16]}};
    neg7    <= u6[16];
    here8   <= here7;
    slope8  <= slope7[10:0];
    g8      <= size7[7:0];
    neg8    <= neg7;
    here9   <= here8;
    way9    <= way8[18:8];
    neg9    <= neg8;
    out_reg <= (point9 ^ {17{neg9}}) + {16'd0, neg9};
end
assign out = out_reg;

wire unused = &{1'b0, valid6, slope7[15:11], way8[7:0]};

`ifdef FORMAL
    // What is behind the requantizer (which has its own proof), stage by stage against the header's formula.
    reg                f_past = 1'b0;
    reg  [3:0]         f_valid = 4'd0;              // stages 7 to 10 hold what came after the reset
    reg  signed [17:0] f_u7, f_u8, f_u9;
    reg  [15:0]        f_size8;
    reg  [18:0]        f_way9;
    reg  signed [17:0] f_out10;
    wire [17:0]        f_abs7 = f_u7 < 0 ? -f_u7 : f_u7;
    wire [8:0]         f_at8  = f_size8[15:8];
    always @(posedge clk) begin
        f_past  <= 1'b1;
        f_valid <= {f_valid[2:0], f_past};
        f_u7    <= $signed(u6);
        f_u8    <= f_u7;
        f_u9    <= f_u8;
        f_size8 <= size7;
        f_way9  <= slope8 * g8 + 128;
        f_out10 <= f_u9 < 0 ? -(here9 + way9) : here9 + way9;
    end
    always @* begin
        if (!f_past) assume (rst);
        if (f_valid[0]) assert (size7 == (f_abs7 > 65535 ? 65535 : f_abs7) && neg7 == (f_u7 < 0));
        if (f_valid[1]) assert (here8 == ROM[f_at8*16 +: 16] && slope8 == ROM[(f_at8 + 1)*16 +: 16] - here8 && g8 == f_size8[7:0] && neg8 == (f_u8 < 0));
        if (f_valid[2]) assert (way9 == f_way9 >> 8 && way9 <= 2047 && neg9 == (f_u9 < 0));
        if (f_valid[3]) assert ($signed(out) == f_out10);
        cover (f_valid[0] && f_u7 == -18'sd65536);
        cover (f_valid[3] && $signed(out) == -17'sd8);
    end
`endif

endmodule
`default_nettype wire
