// SPDX-License-Identifier: MIT
// mlo_attention_bias: what the scores of a group begin with in mlo_attention, and which of its keys that hides
//
// The table has a word of PE numbers for each of the G groups of a row, rows one behind the other: of each head (HEADS = H; 1: the
// same for all) of each query (QUERIES > 1; 1: the same for all). A number times 2^SHIFT is what a score begins with; -2^15 hides
// the key. The table lies with the constants (mlo_attention_param), and is there when a row begins. ON = 0: there is none, nothing is hidden.
//
// CACHE = 1: the frame's first query is that of position job_start, where there are several.
//
// Contract    begins: the first step of group `group` of the row at hand is next, or waits; its word is asked for (read, at), and is `word` the
//             cycle after, until the next one is asked for. row_done: the row's last step; head_last, frame_last: it was of the token's
//             last head, of the frame's last token. go1: a step's operands are there; seen and start come LATE cycles later
// Throughput  a group per cycle
// Latency     none: at follows registers and group, seen and start come LATE cycles behind go1
// Stall       none (no handshake: see mlo_attention_score)
// Legal       HEADS is H or 1; QUERIES > 1: a frame has no more tokens than that (CACHE: those before job_start among them; job_begin, for each frame,
//             with the last row_done of the one before or when no row is at hand); SB >= 16 + SHIFT
`default_nettype none
module mlo_attention_bias #(
    parameter ON      = 1,
    parameter H       = 2,      // heads
    parameter HEADS   = 1,
    parameter QUERIES = 1,
    parameter G       = 2,      // groups of a row
    parameter PE      = 2,      // keys of a group
    parameter SB      = 20,     // bits of a score
    parameter SHIFT   = 0,
    parameter LATE    = 2,
    parameter CACHE   = 0,      // 1: a frame begins at position job_start
    // derived, do not set: bits of a group number, of an address
    parameter GW      = (G > 1) ? $clog2(G) : 1,
    parameter BA      = (HEADS * QUERIES * G > 1) ? $clog2(HEADS * QUERIES * G) : 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             job_begin,
    input  wire [15:0]      job_start,
    input  wire             begins,
    input  wire [GW-1:0]    group,
    input  wire             row_done,
    input  wire             head_last,
    input  wire             frame_last,
    output wire             read,
    output wire [BA-1:0]    at,
    input  wire [PE*16-1:0] word,
    input  wire             go1,
    output wire [PE-1:0]    seen,
    output wire [PE*SB-1:0] start
);

generate
    if (ON != 0 && HEADS != 1 && HEADS != H) mlo_error_HEADS_must_be_H_or_1 u_heads();
    if (ON == 0) begin : g_none
        assign read   = 1'b0;
        assign at     = {BA{1'b0}};
        assign seen   = {PE{1'b1}};
        assign start  = {PE*SB{1'b0}};
        wire   unused = &{1'b0, clk, rst, job_begin, job_start, begins, group, row_done, head_last, frame_last, word, go1};
    end else begin : g_table
        localparam [31:0] SKIP_32 = G;
        localparam [BA:0] SKIP    = SKIP_32[BA:0];
        wire [BA-1:0] start_base;           // of a frame's first query
        reg  [BA-1:0] base_reg;             // the row's first word
        wire [BA:0]   next  = {1'b0, base_reg} + SKIP;
        wire [BA:0]   here  = {1'b0, base_reg} + {{BA+1-GW{1'b0}}, group};
        wire          moves = HEADS > 1 || head_last;
        wire          again = head_last && (QUERIES == 1 || frame_last);
        always @(posedge clk) begin
            if (row_done && moves) base_reg <= next[BA-1:0];
            if (rst || (row_done && again) || (CACHE != 0 && job_begin)) base_reg <= start_base;
        end
        if (CACHE != 0 && QUERIES > 1) begin : g_from_start
            mlo_times #(.N(HEADS * G), .IN(16), .OUT(BA)) u_start (.x(job_start), .y(start_base));
        end else begin : g_from_0
            assign start_base = {BA{1'b0}};
        end
        wire unused_job = &{1'b0, job_begin, job_start};
        assign read = begins;
        assign at   = here[BA-1:0];

        // the numbers wait for the products
        wire [PE*16-1:0] late;
        wire             there;
        mlo_delay #(.WIDTH(PE*16), .CYCLES(LATE)) u_late (
            .clk(clk), .rst(rst), .in_valid(go1), .in(word), .out_valid(there), .out(late)
        );
        genvar p;
        for (p = 0; p < PE; p = p + 1) begin : g_lane
            wire [SB+SHIFT-1:0] shifted = {{SB-16{late[16*p+15]}}, late[16*p +: 16], {SHIFT{1'b0}}};
            assign seen[p]           = late[16*p +: 16] != 16'h8000;
            assign start[p*SB +: SB] = shifted[SB-1:0];
            wire   unused_high       = &{1'b0, shifted};
        end
        wire unused = &{1'b0, next[BA], here[BA], there};
    end
endgenerate

`ifdef FORMAL
    // The row of the table is that of the head and the query. Assumed: heads of tokens one behind the other, frames that are not too long.
    reg       f_past = 1'b0, f_job = 1'b0;      // f_job: the frame has begun, at f_start
    reg [7:0] f_head, f_query, f_start;
    wire [7:0] f_at = f_start + f_query;
    wire       f_ends = row_done && head_last && frame_last;
    always @(posedge clk) begin
        f_past <= 1'b1;
        if (row_done) f_head <= head_last ? 8'd0 : f_head + 8'd1;
        if (row_done && head_last) f_query <= frame_last ? 8'd0 : f_query + 8'd1;
        if (CACHE != 0 && f_ends) f_job <= 1'b0;
        if (CACHE != 0 && job_begin) {f_job, f_start} <= {1'b1, job_start[7:0]};
        if (rst) {f_job, f_start, f_head, f_query} <= {CACHE == 0, 24'd0};
    end
    always @* begin
        if (!f_past) assume (rst);
        assume (group < G);
        assume (head_last == (f_head == H - 1));
        if (QUERIES > 1 && f_at == QUERIES - 1) assume (frame_last);
        if (CACHE != 0 && job_begin) assume ((!f_job || f_ends) && (QUERIES == 1 || job_start < QUERIES) && job_start < 256);
        if (!f_job) assume (!begins && !row_done);
    end
    generate
        if (ON != 0) begin : f_table
            always @* if (f_past) begin
                assert (f_head < H);
                if (CACHE == 0) assert (f_job && f_start == 0);
                if (!f_job) assert (f_head == 0 && f_query == 0);
                if (QUERIES > 1 && f_job) assert (f_start < QUERIES && f_at < QUERIES && f_query < QUERIES);
                if (f_job) assert (g_table.base_reg == ((QUERIES > 1 ? f_at * HEADS : 0) + (HEADS > 1 ? f_head : 0)) * G);
                if (read) assert (at == g_table.base_reg + group);
            end
        end
    endgenerate
    always @* cover (f_past && f_head == H - 1 && (QUERIES == 1 || f_query == QUERIES - 1) && read && group == G - 1);
`endif
endmodule
`default_nettype wire
