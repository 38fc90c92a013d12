// SPDX-License-Identifier: MIT
// mlo_attention_quotient: a probability that a network of integers makes: w = min((floor(e * r / 2^DOWN) * mp + 2^(sp-1)) >> sp, most)
//
// r = ceil(n * 2^DOWN / d), and the first quotient is floor(e * n / d), exactly: with r * d = n * 2^DOWN + x, 0 <= x < d, it is
// floor(e * n / d + e * x / (d * 2^DOWN)), and what is added is below 1 / d, as e * d <= 2^DOWN.
//
// Contract    PE weights at a time, with what their row has. A quotient is below 256
// Throughput  PE weights per cycle
// Latency     exactly 10 cycles
// Stall       none
// Legal       0 <= e < 2^EB, 0 <= r < 2^RB, 1 <= sp <= 62, 1 <= DOWN < EB + RB, 1 <= CUT
//
// A reciprocal wider than a DSP block is cut: its CUT low bits and its rest meet the weight in a block each, and what they give is
// added behind their registers. Same numbers, same cycles.
`default_nettype none
module mlo_attention_quotient #(
    parameter PE   = 1,         // weights in parallel
    parameter EB   = 13,        // bits of a weight
    parameter RB   = 25,        // bits of the reciprocal of their sum
    parameter DOWN = 29,        // its places
    parameter CUT  = 17         // bits of its low piece; all of it, where it has no more than one more
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             in_valid,
    input  wire [PE*EB-1:0] e,
    input  wire [RB-1:0]    r,
    input  wire [15:0]      mp,
    input  wire [5:0]       sp,
    input  wire [7:0]       most,
    output wire [PE*8-1:0]  w
);

// 1: operands; 2, 3: the product (registers of a DSP block, or of two, and their sum); 4 to 9: the requantizer; 10: the smaller one
wire        valid3, valid9;
wire [15:0] mp3;
wire [5:0]  sp3;
wire [7:0]  most9;
reg  [RB-1:0] r1;
always @(posedge clk) r1 <= r;
mlo_delay #(.WIDTH(22), .CYCLES(3)) u_ratio (.clk(clk), .rst(rst), .in_valid(in_valid), .in({sp, mp}), .out_valid(valid3), .out({sp3, mp3}));
mlo_delay #(.WIDTH(8), .CYCLES(9)) u_most (.clk(clk), .rst(rst), .in_valid(in_valid), .in(most), .out_valid(valid9), .out(most9));
genvar p;
generate
    for (p = 0; p < PE; p = p + 1) begin : g_lane
        reg  [EB-1:0]    e1;
        reg  [EB+RB-1:0] prod3;
        wire [EB+RB-1:0] prod2;
        reg  [7:0]       w_reg;
        wire [8:0]       rounded;               // of what is never negative: 0 .. 255
        always @(posedge clk) begin
            e1    <= e[p*EB +: EB];
            prod3 <= prod2;
            w_reg <= rounded[7:0] > most9 ? most9 : rounded[7:0];
        end
        if (RB > CUT + 1) begin : g_two
            reg [EB+CUT-1:0]    low2;
            reg [EB+RB-CUT-1:0] high2;
            always @(posedge clk) begin
                low2  <= {{CUT{1'b0}}, e1} * {{EB{1'b0}}, r1[CUT-1:0]};
                high2 <= {{RB-CUT{1'b0}}, e1} * {{EB{1'b0}}, r1[RB-1:CUT]};
            end
            assign prod2 = {high2 + {{RB-CUT{1'b0}}, low2[EB+CUT-1:CUT]}, low2[CUT-1:0]};
        end else begin : g_one
            reg [EB+RB-1:0] all2;
            always @(posedge clk) all2 <= {{RB{1'b0}}, e1} * {{EB{1'b0}}, r1};
            assign prod2 = all2;
        end
        wire [EB+RB+7:0] wide3 = {8'd0, prod3};
        wire [7:0]       p3    = wide3[DOWN +: 8];
        wire             out_valid;
        assign w[p*8 +: 8] = w_reg;
        mlo_requantize #(.ABITS(9), .MBITS(17), .YBITS(9)) u_requantize (
            .clk(clk), .rst(rst), .en(1'b1), .in_valid(valid3), .in_acc({1'b0, p3}), .in_m({1'b0, mp3}), .in_s(sp3),
            .out_valid(out_valid), .out_y(rounded)
        );
        wire unused = &{1'b0, out_valid, rounded[8], wide3};
    end
endgenerate
wire unused = &{1'b0, valid9};

`ifdef FORMAL
    // The formula of what came in ten cycles before, for a row that keeps what is promised: of any n, d, r as above.
    // And the smaller of the two, whatever the requantizer makes.
    localparam FB = EB + RB + 10;
    (* anyconst *) wire [7:0]    f_n;
    (* anyconst *) wire [EB:0]   f_d;
    (* anyconst *) wire [RB-1:0] f_r;
    wire [FB-1:0] f_whole = {{FB-8{1'b0}}, f_n} << DOWN;
    wire [FB-1:0] f_up    = {{FB-RB{1'b0}}, f_r} * {{FB-EB-1{1'b0}}, f_d};
    wire [FB-1:0] f_en    = {{FB-EB{1'b0}}, e} * {{FB-8{1'b0}}, f_n};
    reg           f_past = 1'b0;
    reg  [FB-1:0] f_1, f_2, f_3;                       // of what came in: e n
    reg  [7:0]    f_most, f_rounded;
    always @(posedge clk) begin
        f_past    <= 1'b1;
        f_1       <= f_en;
        f_2       <= f_1;
        f_3       <= f_2;
        f_most    <= most9;
        f_rounded <= g_lane[0].rounded[7:0];
    end
    wire [FB-1:0] f_low = {{FB-8{1'b0}}, g_lane[0].p3} * {{FB-EB-1{1'b0}}, f_d};
    always @* begin
        if (!f_past) assume (rst);
        assume (r == f_r && f_d != 0 && {{FB-EB{1'b0}}, e} <= {{FB-EB-1{1'b0}}, f_d});
        assume (f_whole <= f_up && f_up - f_whole < {{FB-EB-1{1'b0}}, f_d});
        if (f_past) assert (w == (f_rounded > f_most ? f_most : f_rounded));
        if (f_past && valid3) assert (f_low <= f_3 && f_3 - f_low < {{FB-EB-1{1'b0}}, f_d});
        cover (f_past && valid3 && g_lane[0].p3 != 0 && g_lane[0].p3 != f_n);
    end
`endif
endmodule
`default_nettype wire
