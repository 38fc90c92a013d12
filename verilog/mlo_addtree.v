// SPDX-License-Identifier: MIT
// mlo_addtree: the sum of LANES signed numbers, a register after every level of two-input adders
//
// Contract    sum = lane 0 + lane 1 + ...; exact, SBITS = BITS + clog2(LANES) bits.
// Throughput  one set of lanes per cycle with en high.
// Latency     exactly clog2(LANES) cycles with en high; none for one lane (then sum is the lane itself).
// Stall       en low freezes every register. No handshake and no reset inside.
// Legal       LANES >= 1 (missing lanes of the last power of two are zeros, which synthesis removes), BITS >= 2.
`default_nettype none

module mlo_addtree #(
    parameter LANES = 4,            // numbers per cycle
    parameter BITS  = 16,           // bits of a number
    // derived, do not set
    parameter SBITS = BITS + $clog2(LANES)
) (
    input  wire                  clk,
    input  wire                  en,
    input  wire [LANES*BITS-1:0] lanes,
    output wire [SBITS-1:0]      sum
);
    localparam LEVELS = $clog2(LANES);
    localparam LEAVES = 1 << LEVELS;

    generate
        if (LANES < 1) mlo_error_LANES_must_be_at_least_1 u_lanes ();
        if (BITS < 2)  mlo_error_BITS_must_be_at_least_2 u_bits ();
    endgenerate

    // Nodes as in a heap: node 1 is the root, node i adds nodes 2i and 2i+1, nodes LEAVES.. are the lanes.
    wire [SBITS-1:0] node [1:2*LEAVES-1];
    genvar i;
    generate
        for (i = 0; i < LEAVES; i = i + 1) begin : g_leaf
            if (i < LANES) begin : g_lane
                assign node[LEAVES+i] = {{(LEVELS + 1){lanes[BITS*i+BITS-1]}}, lanes[BITS*i +: BITS-1]};
            end else begin : g_none
                assign node[LEAVES+i] = {SBITS{1'b0}};
            end
        end
        for (i = 1; i < LEAVES; i = i + 1) begin : g_add
            reg [SBITS-1:0] total;
            always @(posedge clk)
                if (en) total <= node[2*i] + node[2*i+1];
            assign node[i] = total;
        end
    endgenerate
    assign sum = node[1];
    generate
        if (LANES == 1) begin : g_unused
            wire unused = &{1'b0, clk, en};
        end
    endgenerate

`ifdef FORMAL
    // Level by level: the sum of a level's nodes is the sum of the lanes that came so many cycles (with en) before.
    reg  [LEVELS:0]  f_valid = 0;
    wire [SBITS-1:0] f_sum [0:LEVELS];
    wire [SBITS-1:0] f_all [1:2*LEAVES-1];                  // node i plus the nodes of its level before it
    generate
        for (i = 1; i < 2 * LEAVES; i = i + 1) begin : f_node
            if ((i & (i - 1)) == 0) begin : f_start
                assign f_all[i] = node[i];
            end else begin : f_more
                assign f_all[i] = f_all[i-1] + node[i];
            end
        end
        assign f_sum[0] = f_all[2*LEAVES-1];
        for (i = 1; i <= LEVELS; i = i + 1) begin : f_level
            reg [SBITS-1:0] f_s;
            always @(posedge clk) if (en) begin
                f_s        <= f_sum[i-1];
                f_valid[i] <= (i == 1) || f_valid[i-1];
            end
            assign f_sum[i] = f_s;
            always @* if (f_valid[i]) assert (f_all[(LEAVES >> (i - 1)) - 1] == f_s);
        end
    endgenerate
    reg signed [31:0] f_exact;
    integer f_n;
    always @* begin
        f_exact = 0;
        for (f_n = 0; f_n < LANES; f_n = f_n + 1)
            f_exact = f_exact + {{32{lanes[BITS*f_n+BITS-1]}}, lanes[BITS*f_n +: BITS]};
        assert (f_sum[0] == f_exact[SBITS-1:0]);
        assert ($signed(f_exact) == $signed(f_sum[0]));
        cover (f_valid[LEVELS]);
    end
`endif
endmodule

`default_nettype wire
