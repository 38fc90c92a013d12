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

localparam [SB-1:0] LOWEST = {1'b1, {SB-1{1'b0}}};
reg  signed [SB-1:0] group_max, row_max;
reg                  group_valid, group_begin, group_end, valid_reg;
function signed [SB-1:0] highest(input [PE*SB-1:0] scores, input [PE-1:0] count);
    integer i;
    reg signed [SB-1:0] lane;
    begin
        highest = LOWEST;
        for (i = 0; i < PE; i = i + 1) begin
            lane = scores[i*SB +: SB];
            if (count[i] && lane > highest)
                highest = lane;
        end
    end
endfunction

assign max_valid = valid_reg;
assign max       = row_max;

always @(posedge clk) begin
    group_valid <= in_valid && !rst;
    group_begin <= in_begin;
    group_end   <= in_end;
    if (in_valid)
        group_max <= highest(in_score, in_count);
    if (group_valid && (group_begin || group_max > row_max))
        row_max <= group_max;
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
    wire signed [SB-1:0] f_here  = in_count[f_lane] ? f_score : LOWEST;
    wire                 f_kept  = highest(in_score, in_count) <= f_bound;
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
        if (in_valid) f_keep <= f_kept && (in_begin || f_keep);
    end
    wire signed [SB-1:0] f_next = (group_begin || group_max > row_max) ? group_max : row_max;
    always @* if (f_past) begin
        if (group_valid) assert (f_next >= f_most && (!f_keep || f_next <= f_bound));
        if (f_open && !group_valid) assert (row_max >= f_most && (!f_keep || row_max <= f_bound));
        if (max_valid) assert (row_max >= f_most1 && (!f_keep1 || row_max <= f_bound));
        cover (max_valid && row_max > 0);
    end
`endif
endmodule
`default_nettype wire
