// SPDX-License-Identifier: MIT
// mlo_attention_scored: the queue of a row's scores, and the largest of them
//
// Contract    in: a group's scores and which of them count; begin and end: the row's first and last group. They leave as
//             {end, [HIDE: PE x not hidden,] PE x counts, PE x score}, and a row's largest with max_valid (mlo_attention_max);
//             HIDE: {the largest of hidden keys, of the others}. seen1: which keys are not hidden; the group comes LATE cycles later
// Throughput  a group per cycle
// Latency     2 cycles from a row's last group to max_valid
// Stall       none: whoever sends a group has room for it (ready)
// Legal       PE >= 1; SB >= 2; QUEUE, LATE >= 1
`default_nettype none
module mlo_attention_scored #(
    parameter PE    = 2,        // scores of a group
    parameter SB    = 20,       // bits of a score, signed
    parameter HIDE  = 0,        // 1 or more: some keys are hidden
    parameter QUEUE = 8,        // groups
    parameter LATE  = 4,
    // derived, do not set
    parameter HB = (HIDE != 0) ? 1 : 0,
    parameter RW = $clog2(QUEUE + 1)
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   go1,          // seen1 is of a step
    input  wire [PE-1:0]          seen1,
    input  wire                   in_valid,
    input  wire                   in_begin,
    input  wire                   in_end,
    input  wire [PE-1:0]          in_count,
    input  wire [PE*SB-1:0]       in_score,
    output wire                   ready,
    output wire [RW-1:0]          level,
    output wire [PE*(SB+1+HB):0]  m_tdata,
    output wire                   m_tvalid,
    input  wire                   m_tready,
    output wire                   max_valid,
    output wire [SB*(1+HB)-1:0]   max
);
wire [PE-1:0]         seen;
wire [PE*(SB+1+HB):0] word;
mlo_fifo #(.WIDTH(PE*(SB+1+HB) + 1), .DEPTH(QUEUE)) u_queue (
    .clk(clk), .rst(rst),
    .s_tdata(word), .s_tvalid(in_valid), .s_tready(ready),
    .m_tdata(m_tdata), .m_tvalid(m_tvalid), .m_tready(m_tready),
    .level(level));
mlo_attention_max #(.PE(PE), .SB(SB)) u_highest (
    .clk(clk), .rst(rst), .in_valid(in_valid), .in_begin(in_begin), .in_end(in_end), .in_count(in_count & seen), .in_score(in_score),
    .max_valid(max_valid), .max(max[SB-1:0]));
generate
    if (HIDE == 0) begin : g_one
        assign word = {in_end, in_count, in_score};
        assign seen = {PE{1'b1}};
        wire unused_seen = &{1'b0, go1, seen1};
    end else begin : g_two
        wire seen_valid, hidden_valid;
        assign word = {in_end, seen, in_count, in_score};
        mlo_delay #(.WIDTH(PE), .CYCLES(LATE)) u_with (
            .clk(clk), .rst(rst), .in_valid(go1), .in(seen1), .out_valid(seen_valid), .out(seen));
        mlo_attention_max #(.PE(PE), .SB(SB)) u_hidden (
            .clk(clk), .rst(rst), .in_valid(in_valid), .in_begin(in_begin), .in_end(in_end), .in_count(in_count & ~seen), .in_score(in_score),
            .max_valid(hidden_valid), .max(max[SB +: SB]));
        wire unused_valid = &{1'b0, seen_valid, hidden_valid};
    end
endgenerate

`ifdef FORMAL
    // The bits of a group that comes are those that were given LATE cycles before; both maxima leave together.
    reg                f_past = 1'b0;
    reg  [PE*LATE-1:0] f_line;
    reg  [LATE-1:0]    f_go;
    always @(posedge clk) begin
        f_past <= 1'b1;
        f_line <= {f_line, seen1};
        f_go   <= rst ? {LATE{1'b0}} : {f_go, go1};
    end
    always @* begin
        if (!f_past) assume (rst);
        if (in_valid) assume (f_go[LATE-1]);
        if (HIDE != 0 && f_past && f_go[LATE-1]) assert (seen == f_line[PE*(LATE-1) +: PE]);
        cover (f_past && max_valid);
    end
`endif
endmodule
`default_nettype wire
