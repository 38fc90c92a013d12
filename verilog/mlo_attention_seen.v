// SPDX-License-Identifier: MIT
// mlo_attention_seen: which keys of a group are not hidden: by their bits, and by their place
//
// Contract    seen1, of the group of the cycle before: HIDE = 0: all; 1: those whose bit (key1, of that group) is set; 2: of those the keys up to
//             the frame's query at hand: its queries are counted by token_done, a frame ends with frame_done, at the same time.
//             CACHE = 1: the first one is key job_start (as it was at job_begin)
// Throughput  a group per cycle
// Latency     1 cycle
// Stall       none
// Legal       as mlo_attention_walk, which says how far a query's own keys go
`default_nettype none
module mlo_attention_seen #(
    parameter HIDE = 0,
    parameter CACHE = 0,        // 1: a frame begins at key job_start
    parameter PE   = 2,         // keys of a group
    parameter GW   = 1,         // bits of a group number, of an address in a frame's keys
    parameter AW   = 3,
    parameter SKIP = 2          // beats of a token of keys
) (
    input  wire          clk,
    input  wire          rst,
    input  wire          job_begin,
    input  wire [15:0]   job_start,
    input  wire          token_done,
    input  wire          frame_done,
    input  wire [GW-1:0] group,
    input  wire [GW-1:0] k_groups_1,
    input  wire [PE-1:0] k_tail,
    input  wire [PE-1:0] key1,
    output wire [PE-1:0] seen1
);
localparam LW = (PE > 1) ? $clog2(PE) : 1;
generate
    if (HIDE == 2) begin : g_place
        reg  [PE-1:0] upto1;
        wire [GW-1:0] own_group;
        wire [PE-1:0] own_lanes, all_lanes;
        wire [AW-1:0] own_base;
        wire          own_single, own_ready;
        mlo_attention_walk #(.PE(PE), .CAUSAL(1), .BAND(0), .CACHE(CACHE), .GW(GW), .AW(AW), .SKIP(SKIP), .BW(1)) u_walk (
            .clk(clk), .rst(rst), .job_begin(job_begin), .job_start(job_start), .known(1'b1), .ready(own_ready), .token_done(token_done), .frame_done(frame_done),
            .reach({LW+GW+1{1'b0}}), .k_groups_1(k_groups_1), .k_tail(k_tail), .groups_1(own_group), .single(own_single), .first_lanes(all_lanes),
            .last_lanes(own_lanes), .base(own_base));
        always @(posedge clk)
            upto1 <= group < own_group ? {PE{1'b1}} : group == own_group ? own_lanes : {PE{1'b0}};
        assign seen1 = key1 & upto1;
        wire unused_walk = &{1'b0, all_lanes, own_base, own_single, own_ready};
    end else begin : g_bits
        assign seen1 = (HIDE == 1) ? key1 : {PE{1'b1}};
        wire unused_place = &{1'b0, clk, rst, job_begin, job_start, token_done, frame_done, group, k_groups_1, k_tail, key1};
    end
endgenerate

`ifdef FORMAL
    // Against a count of the frame's queries: query n sees keys 0 .. start + n.
    reg          f_past = 1'b0, f_ok;
    reg  [7:0]   f_query, f_query1;             // the query's own key
    reg          f_job;                         // CACHE: the frame has begun
    reg  [GW-1:0] f_group1;
    integer      f_p;
    always @(posedge clk) begin
        f_past   <= 1'b1;
        f_query  <= rst ? 8'd0 : (CACHE != 0 && job_begin) ? job_start[7:0] : frame_done ? 8'd0 : f_query + token_done;
        f_job    <= rst ? CACHE == 0 : job_begin || (f_job && (CACHE == 0 || !frame_done));
        f_query1 <= f_query;
        f_group1 <= group;
        f_ok     <= !rst && f_job && f_query <= k_groups_1 * PE;
    end
    always @* begin
        if (!f_past) assume (rst);
        if (frame_done) assume (token_done);
        if (!frame_done && f_query == k_groups_1 * PE) assume (!token_done);
        // a job begins when the frame before ends, or none is at hand; it begins at a key that there is
        if (!f_job) assume (!token_done);
        if (CACHE != 0 && job_begin) assume ((!f_job || frame_done) && job_start <= k_groups_1 * PE);
        assume (k_tail == {PE{1'b1}} && k_groups_1 < (1 << GW) - 1);
    end
    generate
        if (HIDE == 2) begin : f_place
            always @* if (f_past && f_ok)
                for (f_p = 0; f_p < PE; f_p = f_p + 1)
                    assert (seen1[f_p] == (key1[f_p] && f_group1 * PE + f_p <= f_query1));
        end
    endgenerate
`endif
endmodule
`default_nettype wire
