// SPDX-License-Identifier: MIT
// mlo_dot: sum = x[0]*w[0] + ... + x[SIMD-1]*w[SIMD-1], all signed, exact: SIMD multipliers and a pipelined adder tree
//
// Contract   operands in one cycle, their sum as many cycles with en high later, in order
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

    // Level 0 are the products, with the registers right before and right behind the multipliers that a DSP block has. Level
    // l adds neighbours of level l-1, so it has ceil(SIMD / 2^l) nodes, each one bit wider. A node without a neighbour only
    // waits a cycle. (Every node has registers of its own, and two products share one block with their sum: a simulator
    // takes very long over the parts of a wide vector, and long over many small blocks.)
    genvar l, i;
    generate
        for (i = 0; 2 * i < SIMD; i = i + 1) begin : pair
            reg         [2*XBITS-1:0] xx;           // two operands each
            reg         [2*WBITS-1:0] ww;
            reg  signed [PBITS-1:0]   product0, product1;
            reg  signed [PBITS:0]     value;
            wire        [2*XBITS-1:0] x_in;
            wire        [2*WBITS-1:0] w_in;
            if (2 * i + 1 == SIMD) begin : alone    // the last product of an odd SIMD: the other one is 0
                assign x_in = {{XBITS{1'b0}}, x[2*i*XBITS +: XBITS]};
                assign w_in = {{WBITS{1'b0}}, w[2*i*WBITS +: WBITS]};
            end else begin : two
                assign x_in = x[2*i*XBITS +: 2*XBITS];
                assign w_in = w[2*i*WBITS +: 2*WBITS];
            end
            always @(posedge clk)
                if (en) begin
                    xx       <= x_in;
                    ww       <= w_in;
                    product0 <= $signed(xx[0 +: XBITS]) * $signed(ww[0 +: WBITS]);
                    product1 <= $signed(xx[XBITS +: XBITS]) * $signed(ww[WBITS +: WBITS]);
                    value    <= product0 + product1;
                end
        end
        for (l = 1; l <= LEVELS; l = l + 1) begin : level
            localparam NODES = (SIMD + (1 << l) - 1) >> l;
            localparam BELOW = (SIMD + (1 << (l - 1)) - 1) >> (l - 1);
            localparam BITS  = PBITS + l;
            for (i = 0; i < NODES; i = i + 1) begin : node
                wire signed [BITS-1:0] value;
                if (l == 1) begin : first
                    assign value = pair[i].value;
                end else begin : add
                    reg signed [BITS-1:0] total;
                    assign value = total;
                    if (2*i + 1 < BELOW) begin : two
                        always @(posedge clk)
                            if (en) total <= level[l-1].node[2*i].value + level[l-1].node[2*i+1].value;
                    end else begin : one
                        wire signed [BITS-2:0] below = level[l-1].node[2*i].value;
                        always @(posedge clk)
                            if (en) total <= {below[BITS-2], below};
                    end
                end
            end
        end
        if (LEVELS == 0) begin : no_tree
            wire unused = &{1'b0, pair[0].value};
            assign sum = pair[0].product0;
        end else begin : tree
            assign sum = level[LEVELS].node[0].value;
        end
    endgenerate
endmodule

`default_nettype wire
