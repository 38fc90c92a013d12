// SPDX-License-Identifier: MIT
// mlo_dot: sum = x[0]*w[0] + ... + x[SIMD-1]*w[SIMD-1], all signed, exact: SIMD multipliers and a pipelined adder tree
//
// Throughput one dot product per cycle.
// Latency    2 + clog2(SIMD) register stages: operands, products, one per level of the tree.
// Stall      en low freezes every stage. No valid bits inside: the user's control pipeline runs beside this one.
// Legal      SIMD >= 1, XBITS >= 2, WBITS >= 2.
`default_nettype none

module mlo_dot #(
    parameter SIMD  = 4,            // products per cycle
    parameter XBITS = 8,            // bits of an element of x
    parameter WBITS = 8,            // bits of an element of w
    // derived, do not set: bits of the sum, exact
    parameter SBITS = XBITS + WBITS + $clog2(SIMD)
) (
    input  wire                  clk,
    input  wire                  en,
    input  wire [SIMD*XBITS-1:0] x,
    input  wire [SIMD*WBITS-1:0] w,
    output wire [SBITS-1:0]      sum
);
    localparam LEVELS = $clog2(SIMD);
    localparam PBITS  = XBITS + WBITS;

    generate
        if (SIMD < 1)  mlo_error_SIMD_must_be_at_least_1 u_simd ();
        if (XBITS < 2) mlo_error_XBITS_must_be_at_least_2 u_xbits ();
        if (WBITS < 2) mlo_error_WBITS_must_be_at_least_2 u_wbits ();
    endgenerate

    // Registers right before and right behind the multipliers: those of a DSP block.
    reg [SIMD*XBITS-1:0] x_reg;
    reg [SIMD*WBITS-1:0] w_reg;
    always @(posedge clk)
        if (en) begin
            x_reg <= x;
            w_reg <= w;
        end

    // Level 0 are the products; level l adds neighbours of level l-1, so it has ceil(SIMD / 2^l) nodes, each one bit
    // wider. A node without a neighbour only waits a cycle.
    genvar l, i;
    generate
        for (l = 0; l <= LEVELS; l = l + 1) begin : level
            localparam NODES = (SIMD + (1 << l) - 1) >> l;
            localparam BITS  = PBITS + l;
            wire [NODES*BITS-1:0] nodes;
            for (i = 0; i < NODES; i = i + 1) begin : node
                reg signed [BITS-1:0] value;
                assign nodes[i*BITS +: BITS] = value;
                if (l == 0) begin : product
                    wire signed [XBITS-1:0] a = x_reg[i*XBITS +: XBITS];
                    wire signed [WBITS-1:0] b = w_reg[i*WBITS +: WBITS];
                    always @(posedge clk) if (en) value <= a * b;
                end else begin : add
                    localparam BELOW = (SIMD + (1 << (l - 1)) - 1) >> (l - 1);
                    wire signed [BITS-2:0] a = level[l-1].nodes[2*i*(BITS-1) +: BITS-1];
                    if (2*i + 1 < BELOW) begin : pair
                        wire signed [BITS-2:0] b = level[l-1].nodes[(2*i+1)*(BITS-1) +: BITS-1];
                        always @(posedge clk) if (en) value <= a + b;
                    end else begin : single
                        always @(posedge clk) if (en) value <= {a[BITS-2], a};
                    end
                end
            end
        end
    endgenerate
    assign sum = level[LEVELS].nodes;
endmodule

`default_nettype wire
