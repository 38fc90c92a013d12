// SPDX-License-Identifier: MIT
// mlo_attention_max: the largest score of a row that comes in groups of PE
//
// Contract    in: a group's scores, and which of them count; begin and end: the row's first and last group
//             out: max_valid with row_max, the largest of those that count; where none does, the lowest number there is
// Throughput  a group per cycle
// Latency     2 cycles from a row's last group
// Stall       none: whoever takes row_max has room
// Legal       PE >= 1; SB >= 2; groups of a row come one after the other, begin with its first and end with its last
`default_nettype none
module mlo_attention_max #(
    parameter PE = 2,           // scores of a group
    parameter SB = 20           // bits of a score, signed
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             in_valid,
    input  wire             in_begin,
    input  wire             in_end,
    input  wire [PE-1:0]    in_count,
    input  wire [PE*SB-1:0] in_score,
    output wire             max_valid,
    output wire [SB-1:0]    max
);

// Two levels of comparisons with a register between them, each over about the root of the lanes: parts of a group, then these and the row.
localparam ROOT  = ($clog2(PE) + (PE > 4 ? 1 : 0)) / 2;     // log2 of it
localparam LANES = (PE + (1 << ROOT) - 1) >> ROOT;
localparam PARTS = (PE + LANES - 1) / LANES;
reg                 group_valid, group_begin, group_end, valid_reg;
reg  [PARTS*SB-1:0] parts_max;
reg  [SB-1:0]       row_max;
wire [PARTS*SB-1:0] parts_next;
wire [SB-1:0]       row_next;
genvar p;
generate
    for (p = 0; p < PARTS; p = p + 1) begin : g_part
        localparam HERE = (p < PARTS - 1) ? LANES : PE - p * LANES;
        mlo_highest #(.N(HERE), .SB(SB)) u_part (
            .count(in_count[p*LANES +: HERE]), .number(in_score[p*LANES*SB +: HERE*SB]), .most(parts_next[p*SB +: SB]));
    end
endgenerate
mlo_highest #(.N(PARTS + 1), .SB(SB)) u_row (.count({!group_begin, {PARTS{1'b1}}}), .number({row_max, parts_max}), .most(row_next));

assign max_valid = valid_reg;
assign max       = row_max;

always @(posedge clk) begin
    group_valid <= in_valid && !rst;
    group_begin <= in_begin;
    group_end   <= in_end;
    if (in_valid)    parts_max <= parts_next;
    if (group_valid) row_max   <= row_next;
    valid_reg   <= group_valid && group_end && !rst;
end

`ifdef FORMAL
    // Not below any one of the row's scores that count; not above any bound that they all keep.
    (* anyconst *) wire [7:0]           f_lane;
    (* anyconst *) wire signed [SB-1:0] f_bound;
    reg                  f_past = 1'b0, f_open;         // a row has begun
    reg signed [SB-1:0]  f_most, f_most1;               // of the row's groups that came: the largest of that lane
    reg                  f_keep, f_keep1;               // they all keep the bound
    wire signed [SB-1:0] f_score = in_score[f_lane*SB +: SB];
    wire signed [SB-1:0] f_here  = in_count[f_lane] ? f_score : {1'b1, {SB-1{1'b0}}};
    wire signed [SB-1:0] f_max   = row_max, f_next = row_next;
    wire [PE-1:0]        f_low;                         // lanes that keep the bound
    generate
        for (p = 0; p < PE; p = p + 1) begin : f_lanes
            wire signed [SB-1:0] f_this = in_score[p*SB +: SB];
            assign f_low[p] = !in_count[p] || f_this <= f_bound;
        end
    endgenerate
    always @* begin
        assume (f_lane < PE);
        if (!f_past) assume (rst);
        if (!f_open) assume (in_begin);
    end
    always @(posedge clk) begin
        f_past  <= 1'b1;
        f_open  <= !rst && (in_valid ? !in_end : f_open);
        f_most1 <= f_most;
        f_keep1 <= f_keep;
        if (in_valid) f_most <= (in_begin || f_here > f_most) ? f_here : f_most;
        if (in_valid) f_keep <= f_low == {PE{1'b1}} && (in_begin || f_keep);
    end
    always @* if (f_past) begin
        if (group_valid) assert (f_next >= f_most && (!f_keep || f_next <= f_bound));
        if (f_open && !group_valid) assert (f_max >= f_most && (!f_keep || f_max <= f_bound));
        if (max_valid) assert (f_max >= f_most1 && (!f_keep1 || f_max <= f_bound));
        cover (max_valid && f_max > 0);
    end
`endif
endmodule
`default_nettype wire
