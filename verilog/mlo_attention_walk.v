// SPDX-License-Identifier: MIT
// mlo_attention_walk: which groups of keys a row of mlo_attention walks, where not all keys of its frame count
//
// Query i of a frame of tk keys reads keys first = max(0, i - BACK) to last = min(tk - 1, i + AHEAD): groups first / PE
// to last / PE, of the first one the lanes from first mod PE on, of the last one those up to last mod PE. BAND = 0: BACK is
// without end; CAUSAL = 1: AHEAD is 0. Nothing is divided: two places move on with the tokens of queries, a lane at a time.
// CACHE = 1 (CAUSAL): query i is the one of position job_start + i (as it was at job_begin), so both places begin there, and tk counts positions.
//
// Contract    token_done: the token's last step, frame_done: it was the last of its frame. Everything is about the token
//             at hand. reach = {lane, group, back}: BACK, and AHEAD as groups of PE and lanes beyond; it is read while the
//             frame's first token is at hand
//             ready: what is said holds. CACHE and BAND: a cycle after `known`, reach is of the token at hand, for the first time
//             in a frame; otherwise always
// Throughput  a token per cycle
// Latency     none: outputs follow registers, k_* and reach
// Stall       none (no handshake: see mlo_attention_score)
// Legal       a frame has no more queries than keys; reach stays while a frame's first token is at hand; lane < PE
//             CACHE: CAUSAL; PE a power of two; job_begin, for each frame, when it is the frame before's last token_done or no token is
//             at hand; known, token_done only behind it; token_done only while ready
`default_nettype none
module mlo_attention_walk #(
    parameter PE     = 2,       // keys of a group
    parameter CAUSAL = 1,
    parameter BAND   = 0,
    parameter CACHE  = 0,
    // bits of a group number, of an address in a frame's keys; words of a group
    parameter GW     = 1,
    parameter AW     = 3,
    parameter SKIP   = 4,
    // bits of reach.back
    parameter BW     = 2,
    // derived, do not set: bits of a lane
    parameter LW     = (PE > 1) ? $clog2(PE) : 1
) (
    input  wire                clk,
    input  wire                rst,
    input  wire                job_begin,
    input  wire [15:0]         job_start,
    input  wire                token_done,
    input  wire                frame_done,
    input  wire                known,
    input  wire [LW+GW+BW-1:0] reach,
    input  wire [GW-1:0]       k_groups_1,     // groups of the frame - 1
    input  wire [PE-1:0]       k_tail,         // lanes of its last one
    output wire                ready,
    output wire [GW-1:0]       groups_1,       // groups of the row - 1
    output wire                single,         // that is 0
    output wire [PE-1:0]       first_lanes,    // of its first group
    output wire [PE-1:0]       last_lanes,     // of its last one
    output wire [AW-1:0]       base            // where its first group lies
);

localparam [31:0]   SKIP_32 = SKIP;
localparam [AW-1:0] SKIP_A  = SKIP_32[AW-1:0];
localparam [GW:0]   G_ONE   = 1;
localparam [PE-1:0] ALL     = {PE{1'b1}};
localparam [PE-1:0] LANE    = 1;
localparam          LP      = $clog2(PE);

// ---- where a frame begins ----------------------------------------------------------------
wire [GW-1:0] start_group;
wire [PE-1:0] start_lanes;                      // up to the first query's own
wire          again = rst || frame_done || (CACHE != 0 && job_begin);
generate
    if (CACHE == 0) begin : g_at_0
        assign start_group = {GW{1'b0}};
        assign start_lanes = LANE;
        wire   unused_job  = &{1'b0, job_begin, job_start};
    end else begin : g_at_start
        wire [GW+15:0] group = {{GW{1'b0}}, job_start >> LP};
        wire [15:0]    lane  = job_start - (job_start >> LP << LP);
        assign start_group   = group[GW-1:0];
        assign start_lanes   = ~(ALL << lane << 1);
        wire   unused_group  = &{1'b0, group};
    end
    if (CACHE != 0 && (CAUSAL == 0 || (PE & (PE - 1)) != 0)) mlo_error_CACHE_needs_CAUSAL_and_PE_a_power_of_two u_cache();
endgenerate

// ---- the last key: i + AHEAD (of a frame's first token: AHEAD), in lanes up to it --------
reg  [GW:0]   until_group_reg;
reg  [PE-1:0] until_lanes_reg;
wire [GW:0]   until_group;
wire [PE-1:0] until_lanes;
wire [PE:0]   until_more = {until_lanes, 1'b1};
wire          until_next = until_lanes == ALL;
always @(posedge clk) begin
    if (token_done) begin
        until_group_reg <= until_next ? until_group + G_ONE : until_group;
        until_lanes_reg <= until_next ? LANE : until_more[PE-1:0];
    end
    if (again) begin
        until_group_reg <= {1'b0, start_group};
        until_lanes_reg <= start_lanes;
    end
end

// ---- the first key: i - BACK, once that is above 0, in lanes from it on -------------------
wire [GW:0]   from_group;
wire [GW-1:0] last;
generate
    if (BAND == 0) begin : g_from_start
        assign from_group  = {GW+1{1'b0}};
        assign first_lanes = ALL;
        assign base        = {AW{1'b0}};
        assign ready       = 1'b1;
        wire unused_reach  = &{1'b0, reach[BW-1:0], known, SKIP_A};
    end else begin : g_from
        reg           first_reg;                // the token at hand is its frame's first; CACHE: and its first key not known yet
        reg  [GW-1:0] group_reg;
        reg  [PE-1:0] lanes_reg;
        reg  [AW-1:0] base_reg;
        reg  [BW-1:0] left_reg;                 // tokens until it moves
        // CACHE: of the first token: job_start - BACK, once BACK is known
        wire          found;
        wire [GW-1:0] found_group;
        wire [PE-1:0] found_lanes;
        wire [AW-1:0] found_base;
        wire [BW-1:0] found_left;
        wire [BW-1:0] left  = (CACHE == 0 && first_reg) ? reach[BW-1:0] : left_reg;
        wire [PE-1:0] lanes = lanes_reg << 1;
        wire          moves = left == {BW{1'b0}};
        wire          next  = moves && lanes == {PE{1'b0}};
        always @(posedge clk) begin
            if (token_done) begin
                first_reg <= 1'b0;
                left_reg  <= moves ? left : left - {{BW-1{1'b0}}, 1'b1};
                if (moves) lanes_reg <= next ? ALL : lanes;
                if (next) begin
                    group_reg <= group_reg + G_ONE[GW-1:0];
                    base_reg  <= base_reg + SKIP_A;
                end
            end
            if (found) begin
                first_reg <= 1'b0;
                group_reg <= found_group;
                lanes_reg <= found_lanes;
                base_reg  <= found_base;
                left_reg  <= found_left;
            end
            if (again) begin
                first_reg <= 1'b1;
                group_reg <= {GW{1'b0}};
                lanes_reg <= ALL;
                base_reg  <= {AW{1'b0}};
            end
        end
        if (CACHE == 0) begin : g_from_0
            assign {found, found_group, found_lanes, found_base, found_left} = 0;
            assign ready      = 1'b1;
            wire unused_known = &{1'b0, known};
        end else begin : g_from_start
            reg  [BW-1:0]  start_reg;           // of the frame at hand
            always @(posedge clk) if (job_begin) start_reg <= job_start[BW-1:0];
            wire [BW:0]    ahead = {1'b0, start_reg} - {1'b0, reach[BW-1:0]};
            wire           below = ahead[BW];
            wire [BW-1:0]  first = below ? {BW{1'b0}} : ahead[BW-1:0];
            wire [BW-1:0]  lane  = first - (first >> LP << LP);
            wire [GW+BW-1:0] group = {{GW{1'b0}}, first >> LP};
            wire [BW-1:0]  short = -ahead[BW-1:0];
            mlo_times #(.N(SKIP), .IN(GW), .OUT(AW)) u_base (.x(found_group), .y(found_base));
            assign found       = first_reg && known;
            assign found_group = group[GW-1:0];
            assign found_lanes = ALL << lane;
            assign found_left  = below ? short : {BW{1'b0}};
            assign ready       = !first_reg;
            wire unused_group  = &{1'b0, group};
        end
        assign from_group  = {1'b0, group_reg};
        assign first_lanes = lanes_reg;
        assign base        = base_reg;
    end
    if (CAUSAL != 0 || BAND == 0) begin : g_causal
        assign until_group  = until_group_reg;
        assign until_lanes  = until_lanes_reg;
        wire unused_ahead   = &{1'b0, reach[LW+GW+BW-1:BW]};
    end else begin : g_ahead
        wire           begins = g_from.first_reg;
        wire [LW-1:0]  lane   = reach[BW+GW +: LW];
        wire [2*PE-1:0] up_to = {{PE{1'b0}}, ALL} << lane << 1;
        assign until_group  = begins ? {1'b0, reach[BW +: GW]} : until_group_reg;
        assign until_lanes  = begins ? up_to[2*PE-1:PE] | LANE : until_lanes_reg;
        wire unused_up_to   = &{1'b0, up_to[PE-1:0]};
    end
endgenerate

// ---- within the frame (CAUSAL: the query's own key is, so that registers say all) -------------
wire           cut  = CAUSAL == 0 && until_group >= {1'b0, k_groups_1};    // the frame's last group is the row's
wire           here = CAUSAL != 0 || until_group <= {1'b0, k_groups_1};    // the last key's is
wire [GW:0]    rest = {1'b0, last} - from_group;
assign last       = cut ? k_groups_1 : until_group[GW-1:0];
assign last_lanes = (cut ? k_tail : ALL) & (here ? until_lanes : ALL);
assign groups_1   = rest[GW-1:0];
assign single     = groups_1 == {GW{1'b0}};
wire unused = &{1'b0, until_more[PE], rest[GW]};

`ifdef FORMAL
    // Everything is what the formulas say of the token's number, or position. Assumed: what stays while a frame is walked.
    reg        f_past = 1'b0, f_same;
    reg        f_job = 1'b0, f_found;           // the frame has begun; its first key is found
    reg  [7:0] f_start;                         // of the frame
    reg  [7:0] f_i;                             // of the query
    reg  [7:0] f_tk, f_back, f_ahead;           // as they were in the frame's first cycle
    wire [7:0] f_keys  = k_groups_1 * PE + f_ones(k_tail);
    wire [7:0] f_at    = f_start + f_i;
    wire [7:0] f_b     = f_i == 0 && BAND != 0 && !f_found ? reach[BW-1:0] : f_back;
    wire [7:0] f_a     = CAUSAL != 0 || BAND == 0 ? 8'd0 : f_i == 0 ? reach[BW +: GW] * PE + reach[BW+GW +: LW] : f_ahead;
    wire [7:0] f_first = BAND != 0 && f_at > f_b ? f_at - f_b : 8'd0;
    wire [7:0] f_end   = f_at + f_a;
    wire [7:0] f_last  = f_end < f_keys ? f_end : f_keys - 8'd1;
    wire [PE-1:0] f_above = k_tail + 1'b1, f_until = until_lanes + 1'b1;
    function [7:0] f_ones(input [PE-1:0] x);
        integer n;
        begin
            f_ones = 0;
            for (n = 0; n < PE; n = n + 1) f_ones = f_ones + x[n];
        end
    endfunction
    always @(posedge clk) begin
        f_past <= 1'b1;
        f_same <= !again;
        f_tk   <= f_keys;
        if (f_i == 0 && !f_found) f_back <= reach[BW-1:0];
        if (f_i == 0) f_ahead <= f_a;
        if (token_done) f_i <= f_i + 8'd1;
        if (again) f_i <= 8'd0;
        f_found <= !again && (f_found || (CACHE != 0 && BAND != 0 && known));
        if (CACHE != 0 && frame_done) f_job <= 1'b0;
        if (CACHE != 0 && job_begin) {f_job, f_start} <= {1'b1, job_start[7:0]};
        if (rst) {f_job, f_start} <= {CACHE == 0, 8'd0};
    end
    wire f_on = f_past && f_job;
    always @* begin
        if (!f_past) assume (rst);
        assume (k_tail[0] && (k_tail & f_above) == 0);              // a thermometer
        if (f_past && f_same) assume (f_keys == f_tk);
        if (f_job) assume (f_at < f_keys);
        if (f_at + 1 == f_keys && token_done) assume (frame_done);
        if (CACHE != 0 && job_begin) assume ((!f_job || frame_done) && job_start < (PE << GW));
        if (!f_job) assume (!known);
        if (!f_job || !ready) assume (!token_done);
        if (frame_done) assume (token_done);
        assume (reach[BW+GW +: LW] < PE);
    end
    integer f_p;
    always @* if (f_past && CACHE == 0) assert (f_job && f_start == 0 && !f_found);
    always @* if (f_past && !f_job) assert (f_i == 0 && !f_found);
    always @* if (f_on) begin
        assert (f_start < (PE << GW) && ready == (CACHE == 0 || BAND == 0 || f_found));
    end
    always @* if (f_on && ready) begin
        assert (groups_1 == f_last / PE - f_first / PE);
        assert (single == (groups_1 == 0));
        assert (base == f_first / PE * SKIP);
        for (f_p = 0; f_p < PE; f_p = f_p + 1) begin
            assert (first_lanes[f_p] == (f_p >= f_first % PE));
            assert (last_lanes[f_p] == (f_p <= f_last % PE));
        end
        if (BAND != 0 && (f_i != 0 || f_found)) assert (g_left == (f_back > f_at ? f_back - f_at : 8'd0));
    end
    always @* if (f_on) begin
        if (f_i != 0) assert (ready);
        if (f_i != 0 || CAUSAL != 0 || BAND == 0) assert (until_group * PE + f_ones(until_lanes) == f_at + f_a + 8'd1);
        if (f_i != 0 || f_found) assert (f_back < (1 << BW));
        if (f_i != 0) assert (f_ahead < (PE << GW));
        if (f_i != 0 || CAUSAL != 0 || BAND == 0) assert (until_lanes[0] && (until_lanes & f_until) == 0);
        cover (f_past && f_at == 3 && groups_1 != 0 && frame_done);
        if (CACHE != 0) cover (f_past && f_start == 1 && f_i == 1 && frame_done && first_lanes != ALL);
    end
    wire [7:0] g_left;
    generate
        if (BAND != 0) begin : f_band
            assign g_left = g_from.left_reg;
            if (CACHE != 0) begin : f_cache
                always @* if (f_on) assert (g_from.g_from_start.start_reg == f_start[BW-1:0]);
            end
            always @* if (f_on) assert (g_from.first_reg == (CACHE != 0 ? !f_found : f_i == 0));
        end else begin : f_none
            assign g_left = 8'd0;
        end
    endgenerate
`endif
endmodule
`default_nettype wire
