// SPDX-License-Identifier: MIT
// mlo_attention_score: stage 1 of mlo_attention: the scores of a row and their maximum
//
// Contract    for each row (query token, head) and each group of PE keys, DS = D/SIMD steps: PE dot
// products of SIMD channels per step, added up over the steps. The walk is: for every
// row, for every group, for every step. Heads h * H/KVH .. (h+1) * H/KVH - 1 of the queries read
// head h of the keys. CAUSAL, BAND: a row walks the groups in which its keys lie (mlo_attention_walk).
// CACHE: each frame takes a word at job_*; its first query is that of position job_start.
// BIAS: a score begins with its number of a table of BIASH heads and BIAST queries (mlo_attention_bias).
// HIDE: all keys of the frame count, some of them as hidden ones: those without their bit, and (2) those behind the query,
// whose first one is key job_start with a CACHE.
//
// In   row_*: rows of queries (mlo_attention_q); k_*: the frame's keys (mlo_attention_kv);
//      par_*: constants (mlo_attention_param). All are read here, with a cycle of latency
// Out  m_score  one word per group: {last group of the row, [PE x not hidden,] PE x counts, PE x score}
//      m_row    one word per row: {[base,] [groups - 1,] sideband, constants}, early: when its last step starts
//      m_max    one word per row: its largest score (the lowest number there is, if no key counts); HIDE: {of the hidden ones, of the others}
// Throughput  a row per groups * DS cycles
// Latency     from the last step to m_score_tvalid 6 + clog2(SIMD), to m_max_tvalid 8 + clog2(SIMD) cycles
// Stall       the pipeline never stops. A group starts only when a place for it is reserved
//             in the score queue, a row's last step only when m_row takes its word: then
//             m_max has room too, because the reader takes both together. BAND, BIAS: a row starts
//             when its constants are there, not before, since they say where; the bias comes with them. CACHE and BAND: the first
//             row of a frame a cycle later
// Legal       as mlo_attention
`default_nettype none
module mlo_attention_score #(
    parameter H     = 2,        // heads
    parameter D     = 4,        // channels of a head
    parameter G     = 2,        // groups at most
    parameter PE    = 2,        // keys in parallel
    parameter SIMD  = 2,        // channels in parallel, divides D
    parameter XBITS = 8,
    parameter PAR   = 44,       // bits of a row's constants
    parameter KVH   = H,        // heads of keys, divides H
    parameter CAUSAL = 0,       // 1: keys up to the query's own count
    parameter BAND  = 0,        // 1: keys near the query count
    parameter BW    = 1,        // bits of BACK
    parameter BIAS  = 0, BIASH = 1, BIAST = 1, SHIFT = 0,   // 1: there is a bias, of so many heads and queries, in such steps
    parameter CACHE = 0,        // 1: a frame begins at position job_start
    parameter HIDE  = 0,        // 1: hidden keys count, too, apart. 2: those behind the query are hidden
    // derived, do not set: bits of a group number, of an address in a frame's keys, of a
    // score, of a step number; of a lane; of what a row's word says of its walk
    parameter GW    = 1,
    parameter AW    = 3,
    parameter SB    = 2 * XBITS + ((D > 1) ? $clog2(D) : 1),
    parameter FW    = (D / SIMD > 1) ? $clog2(D / SIMD) : 1,
    parameter LW    = (PE > 1) ? $clog2(PE) : 1,
    parameter WALK  = (CAUSAL != 0 || BAND != 0 ? GW : 0) + (BAND != 0 ? AW : 0),
    parameter BA    = (BIASH * BIAST * G > 1) ? $clog2(BIASH * BIAST * G) : 1,
    parameter HB    = (HIDE != 0) ? 1 : 0
) (
    input  wire                         clk,
    input  wire                         rst,
    input  wire                         job_valid,
    output wire                         job_ready,
    input  wire [15:0]                  job_start,
    input  wire                         row_full,
    input  wire [2:0]                   row_user,
    output wire                         row_done,
    output wire [FW-1:0]                row_addr,
    input  wire [SIMD*XBITS-1:0]        row_data,
    input  wire                         k_full,
    input  wire [GW-1:0]                k_groups_1,
    input  wire                         k_single,       // k_groups_1 is 0
    input  wire [PE-1:0]                k_tail,
    input  wire                         k_none,
    output wire                         k_done,
    output wire [AW-1:0]                k_addr,
    input  wire [PE*(SIMD*XBITS+1)-1:0] k_data,         // lanes of {key, channels}
    output wire                         read,           // row_data and k_data: a step starts
    output wire                         par_first,      // the row is the first of an iteration, or the one to come may be
    input  wire                         par_ok,
    input  wire [PAR-1:0]               par_data,
    input  wire [LW+GW+BW-1:0]          par_reach,      // BAND: see mlo_attention_walk
    output wire                         bias_read,      // BIAS: see mlo_attention_param
    output wire [BA-1:0]                bias_at,
    input  wire [PE*16-1:0]             bias,
    output wire [PE*(SB+1+HB):0]        m_score_tdata,
    output wire                         m_score_tvalid,
    input  wire                         m_score_tready,
    output wire [PAR+WALK+2:0]          m_row_tdata,
    output wire                         m_row_tvalid,
    output wire [SB*(1+HB)-1:0]         m_max_tdata,
    output wire                         m_max_tvalid,
    input  wire                         m_row_tready    // takes from m_row and m_max
);

localparam DS    = D / SIMD;
localparam LS    = (SIMD > 1) ? $clog2(SIMD) : 0;
localparam DOTB  = 2 * XBITS + LS;
localparam KB    = SIMD * XBITS + 1;
localparam HW    = (H > 1) ? $clog2(H) : 1;
localparam SHARE = H / KVH;                     // heads of queries that read a head of keys
// A row's words wait for its maximum, while the next row's arrive: G, and those that
// arrive in the time from a row's last step to the reader's first.
localparam QUEUE = G + (12 + LS) / DS + 2;
localparam RW    = $clog2(QUEUE + 1);
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   QUEUE_32 = QUEUE;
localparam [31:0]   STEP_32  = DS - 1;
localparam [31:0]   HEAD_32  = H - 1;
localparam [31:0]   DS_32    = DS;
localparam [31:0]   BEATS_32 = KVH * DS;
localparam [RW-1:0] ROOM_ALL  = QUEUE_32[RW-1:0];
localparam [FW-1:0] STEP_LAST = STEP_32[FW-1:0];
localparam [HW-1:0] HEAD_LAST = HEAD_32[HW-1:0];
localparam [AW-1:0] ROW_SKIP  = DS_32[AW-1:0];
localparam [AW-1:0] GROUP_SKIP = BEATS_32[AW-1:0];
localparam [FW-1:0] F_ONE = 1; localparam [GW-1:0] G_ONE = 1; localparam [HW-1:0] H_ONE = 1;

// ---- the walk -------------------------------------------------------------------------
reg [FW-1:0] step_reg;
reg [GW-1:0] group_reg;
reg          group_first, later_last;       // it is group 0; if not: it is the last
reg [HW-1:0] head_reg;
reg [AW-1:0] row_base_reg, group_base_reg;  // where the head's channels of group 0, of this group, start
reg [RW-1:0] room_reg;                      // places of the score queue not reserved

wire step_first  = step_reg == {FW{1'b0}};
wire step_last   = step_reg == STEP_LAST;
wire [GW-1:0] groups_1;                     // of the row: all of the frame's, or some
wire          single;
wire group_last  = group_first ? single : later_last;
wire head_last   = head_reg == HEAD_LAST;
wire row_last    = step_last && group_last; // the row's last step

wire info_ready;
wire room_ok = !step_first || room_reg != {RW{1'b0}};
wire last_ok = !row_last || (par_ok && info_ready);
wire walk_ready;
reg  known_reg;                             // CACHE: the frame has its word
wire waits   = CACHE != 0 && !known_reg;
wire job_begin = CACHE != 0 && job_valid && (!known_reg || k_done);
assign job_ready = job_begin || CACHE == 0;
always @(posedge clk) known_reg <= !rst && (job_begin || (known_reg && !k_done));
wire go      = row_full && k_full && room_ok && last_ok && walk_ready && !waits && (par_ok || (BAND == 0 && BIAS == 0));

assign read      = go;
assign row_done  = go && row_last;
assign row_addr  = step_reg;
wire [AW-1:0] walk_base;
assign k_addr    = group_base_reg + {{AW-FW{1'b0}}, step_reg} + walk_base;
assign k_done    = row_done && head_last && row_user[1];
assign par_first = row_user[0] && head_reg == {HW{1'b0}};

// the next row's head of keys: another one after SHARE rows
wire                                          share_last;
wire [(SHARE > 1 ? $clog2(SHARE) : 1) - 1:0]  share_at;
mlo_attention_share #(.SHARE(SHARE)) u_share (.clk(clk), .rst(rst), .step(row_done), .at(share_at), .last(share_last));

// the walk's ends
wire [PE-1:0] first_lanes, last_lanes;
wire [PAR+WALK+2:0] row_word;
generate
    if (CAUSAL == 0 && BAND == 0) begin : g_whole
        assign groups_1    = k_groups_1;
        assign single      = k_single;
        assign first_lanes = {PE{1'b1}};
        assign last_lanes  = k_tail;
        assign walk_base   = {AW{1'b0}};
        assign walk_ready  = 1'b1;
        assign row_word    = {row_user, par_data};
        wire unused_reach  = &{1'b0, par_reach, job_begin, job_start};
    end else begin : g_walk
        mlo_attention_walk #(.PE(PE), .CAUSAL(CAUSAL), .BAND(BAND), .CACHE(CACHE), .GW(GW), .AW(AW), .SKIP(KVH * DS), .BW(BW)) u_walk (
            .clk(clk), .rst(rst), .job_begin(job_begin), .job_start(job_start), .known(row_full && par_ok && !waits), .ready(walk_ready),
            .token_done(row_done && head_last), .frame_done(k_done), .reach(par_reach),
            .k_groups_1(k_groups_1), .k_tail(k_tail), .groups_1(groups_1), .single(single), .first_lanes(first_lanes), .last_lanes(last_lanes), .base(walk_base));
        if (BAND == 0) begin : g_from_start
            assign row_word = {groups_1, row_user, par_data};
        end else begin : g_from
            assign row_word = {walk_base, groups_1, row_user, par_data};
        end
        wire unused_single = &{1'b0, k_single};
    end
endgenerate

wire [AW-1:0] same_base = share_last ? row_base_reg + ROW_SKIP : row_base_reg;
wire [AW-1:0] next_base = head_last ? {AW{1'b0}} : same_base;
always @(posedge clk) begin
    if (go)
        step_reg <= step_last ? {FW{1'b0}} : step_reg + F_ONE;
    if (go && step_last) begin
        group_reg      <= group_last ? {GW{1'b0}} : group_reg + G_ONE;
        group_first    <= group_last;
        later_last     <= group_reg + G_ONE == groups_1;
        group_base_reg <= group_last ? next_base : group_base_reg + GROUP_SKIP;
    end
    if (row_done) begin
        head_reg     <= head_last ? {HW{1'b0}} : head_reg + H_ONE;
        row_base_reg <= next_base;
    end
    if (rst) begin
        step_reg       <= {FW{1'b0}};
        group_reg      <= {GW{1'b0}};
        group_first    <= 1'b1;
        head_reg       <= {HW{1'b0}};
        row_base_reg   <= {AW{1'b0}};
        group_base_reg <= {AW{1'b0}};
    end
end

wire reserve = go && step_first;
wire pop     = m_score_tvalid && m_score_tready;
always @(posedge clk)
    if (rst)
        room_reg <= ROOM_ALL;
    else
        room_reg <= room_reg + {{RW-1{1'b0}}, pop} - {{RW-1{1'b0}}, reserve};

// ---- the multipliers: 1 memories, 2 operands, 3 products, then the adder tree ------------
reg                go1;
reg  [LS:0]        alive;                   // something is in: operands, products, the tree but its last level
wire               dot_go = go1 || alive != {1+LS{1'b0}};
wire [LS+1:0]      alive_next = {alive, go1};
always @(posedge clk) begin
    go1   <= go && !rst;
    alive <= rst ? {1+LS{1'b0}} : alive_next[LS:0];
end

// what scores begin with, and which keys that hides: a group's word is read until its first step goes,
// which would be late to know
wire [PE-1:0]      bias_seen;
wire [PE*SB-1:0]   start;
mlo_attention_bias #(.ON(BIAS), .H(H), .HEADS(BIASH), .QUERIES(BIAST), .G(G), .PE(PE), .SB(SB), .SHIFT(SHIFT), .LATE(2 + LS), .CACHE(CACHE), .GW(GW)) u_bias (
    .clk(clk), .rst(rst), .job_begin(job_begin), .job_start(job_start), .begins(step_first && par_ok && !waits), .group(group_reg), .row_done(row_done), .head_last(head_last), .frame_last(row_user[1]),
    .read(bias_read), .at(bias_at), .word(bias), .go1(go1), .seen(bias_seen), .start(start));

wire [PE-1:0]      key1;                    // the keys' mask bits
genvar p;
generate
    for (p = 0; p < PE; p = p + 1) begin : g_dot
        wire [DOTB-1:0] dot;
        assign key1[p] = k_data[p*KB + KB - 1];
        mlo_dot #(.SIMD(SIMD), .XBITS(XBITS), .WBITS(XBITS)) u_dot (
            .clk(clk), .en(dot_go),
            .x(row_data), .w(k_data[p*KB +: KB-1]), .sum(dot));
    end
endgenerate

// What goes along. A lane counts if it holds a token of the frame, and a valid key, or
// there is no valid key at all.
reg           none1;
reg  [3:0]    flag1;
reg  [PE-1:0] inside1;
always @(posedge clk) begin
    flag1   <= {row_last, group_first, step_last, step_first};
    none1   <= k_none;
    inside1 <= (group_last ? last_lanes : {PE{1'b1}}) & (group_first ? first_lanes : {PE{1'b1}});
end
wire [PE-1:0] count1 = inside1 & (HIDE != 0 ? {PE{1'b1}} : key1 | {PE{none1}});

wire [PE-1:0] seen1;                            // HIDE: of those that count
mlo_attention_seen #(.HIDE(HIDE), .CACHE(CACHE), .PE(PE), .GW(GW), .AW(AW), .SKIP(KVH * DS)) u_seen (
    .clk(clk), .rst(rst), .job_begin(job_begin), .job_start(job_start), .token_done(row_done && head_last), .frame_done(k_done), .group(group_reg), .k_groups_1(k_groups_1), .k_tail(k_tail),
    .key1(key1), .seen1(seen1));

wire          go_dot, none_dot, last_dot, start_dot;
wire          end_dot, begin_dot;
wire [PE-1:0] count_dot;
mlo_delay #(.WIDTH(PE + 5), .CYCLES(2 + LS)) u_along (
    .clk(clk), .rst(rst), .in_valid(go1), .in({count1, none1, flag1}),
    .out_valid(go_dot), .out({count_dot, none_dot, end_dot, begin_dot, last_dot, start_dot}));

// ---- the sum over a group's steps -----------------------------------------------------
reg             score_valid, score_end, score_begin;
reg  [PE-1:0]   score_count;
reg  [PE*SB-1:0] score;
generate
    for (p = 0; p < PE; p = p + 1) begin : g_sum
        wire [DOTB-1:0] d = g_dot[p].dot;
        always @(posedge clk)
            if (go_dot)
                score[p*SB +: SB] <= none_dot ? {SB{1'b0}}
                    : (start_dot ? start[p*SB +: SB] : score[p*SB +: SB]) + {{SB-DOTB+1{d[DOTB-1]}}, d[DOTB-2:0]};
    end
endgenerate
always @(posedge clk) begin
    score_valid <= go_dot && last_dot && !rst;
    score_end   <= end_dot;
    score_begin <= begin_dot;
    score_count <= count_dot & bias_seen;
end

// ---- their queue, and the maximum: over the lanes, then over the groups -----------------
wire          score_ready, max_valid;
wire [RW-1:0] score_level;
wire [SB*(1+HB)-1:0] row_max;
mlo_attention_scored #(.PE(PE), .SB(SB), .HIDE(HIDE), .QUEUE(QUEUE), .LATE(3 + LS)) u_scored (
    .clk(clk), .rst(rst), .go1(go1), .seen1(seen1), .in_valid(score_valid), .in_begin(score_begin), .in_end(score_end), .in_count(score_count), .in_score(score),
    .ready(score_ready), .level(score_level), .m_tdata(m_score_tdata), .m_tvalid(m_score_tvalid), .m_tready(m_score_tready), .max_valid(max_valid), .max(row_max));

wire       max_ready;
wire [2:0] row_level, max_level;
mlo_fifo #(.WIDTH(PAR + WALK + 3), .DEPTH(4)) u_row (
    .clk(clk), .rst(rst),
    .s_tdata(row_word), .s_tvalid(row_done), .s_tready(info_ready),
    .m_tdata(m_row_tdata), .m_tvalid(m_row_tvalid), .m_tready(m_row_tready),
    .level(row_level));
mlo_fifo #(.WIDTH(SB*(1+HB)), .DEPTH(4)) u_max (
    .clk(clk), .rst(rst),
    .s_tdata(row_max), .s_tvalid(max_valid), .s_tready(max_ready),
    .m_tdata(m_max_tdata), .m_tvalid(m_max_tvalid), .m_tready(m_row_tready),
    .level(max_level));

wire unused = &{1'b0, alive_next[LS+1], score_ready, max_ready, score_level, row_level, max_level, share_at};

`ifdef FORMAL
    // Assumed: the row and its keys stay until they are done; m_row and m_max are taken together.
    reg  f_past = 1'b0, f_hold;
    reg  [GW-1:0] f_groups_1;
    reg  f_full, f_last, f_ok;
    reg  [LW+GW+BW-1:0] f_reach;
    always @* begin
        if (!f_past) assume (rst);
        // BAND: constants stay until the row is done; what mlo_attention_walk says of its groups
        if (f_ok && f_full && (BAND != 0 || BIAS != 0)) assume (par_ok && par_reach == f_reach);
        if ((CAUSAL != 0 || BAND != 0) && row_full && k_full) assume (groups_1 <= k_groups_1);
        assume (k_groups_1 < G && k_single == (k_groups_1 == 0));
        if (!m_row_tvalid || !m_max_tvalid) assume (!m_row_tready);
        if (f_hold) assume (k_full && k_groups_1 == f_groups_1);
        if (f_full) assume (row_full && row_user[1] == f_last);
        if (CACHE != 0 && job_begin) assume (!row_full);
    end
    always @(posedge clk) begin
        f_past     <= 1'b1;
        f_hold     <= k_full && !k_done && !rst;
        f_groups_1 <= k_groups_1;
        f_full     <= row_full && !row_done && !rst;
        f_last     <= row_user[1];
        f_ok       <= par_ok;
        f_reach    <= par_reach;
    end
    generate
        if (SHARE > 1) begin : f_share
            always @* if (f_past) assert (share_at == head_reg % SHARE);
        end
    endgenerate
    // A step's word of the bias is that of its group.
    generate
        if (BIAS != 0) begin : f_bias
            reg [BA-1:0] f_asked, f_wanted;
            always @(posedge clk) begin
                if (bias_read) f_asked  <= bias_at;
                if (reserve)   f_wanted <= bias_at;
            end
            always @* if (f_past && (go1 || !step_first)) assert (f_asked == f_wanted);
        end
    endgenerate

    // What has been reserved has room: free places, groups under way and queued groups add up.
    reg [RW-1:0] f_under;                       // groups between their first step and the queue
    reg [2:0]    f_rows;                        // rows between their last step and u_max
    reg [4+LS:0] f_pipe, f_rpipe;               // and where they are
    always @(posedge clk) begin
        f_under <= rst ? 0 : f_under + reserve - score_valid;
        f_rows  <= rst ? 0 : f_rows + row_done - max_valid;
        f_pipe  <= rst ? 0 : {f_pipe, go && step_last};
        f_rpipe <= rst ? 0 : {f_rpipe, row_done};
    end
    integer f_i;
    reg [RW-1:0] f_count;
    reg [2:0]    f_rcount;
    reg          f_max2;
    always @(posedge clk) f_max2 <= f_rpipe[4+LS] && !rst;
    always @* begin
        f_count  = !step_first;
        f_rcount = f_max2;
        for (f_i = 0; f_i < 4 + LS; f_i = f_i + 1)
            f_count = f_count + f_pipe[f_i];
        for (f_i = 0; f_i < 5 + LS; f_i = f_i + 1)
            f_rcount = f_rcount + f_rpipe[f_i];
    end
    always @* if (f_past) begin
        assert (step_reg <= STEP_LAST && head_reg <= HEAD_LAST && group_reg < G && group_first == (group_reg == 0));
        if (!group_first) assert (later_last == (group_reg == groups_1));
        if (read) assert (walk_ready);
        if (!step_first || !group_first) assert (row_full && k_full && walk_ready && ((BAND == 0 && BIAS == 0) || par_ok) && group_reg <= groups_1);
        assert (row_base_reg == head_reg / SHARE * DS && group_base_reg == row_base_reg + group_reg * KVH * DS);
        assert (score_valid == f_pipe[3+LS]);
        assert (max_valid == f_max2);
        assert (f_under == f_count);
        assert (f_rows == f_rcount);
        assert (room_reg <= QUEUE && score_level <= QUEUE);
        assert ({2'b0, room_reg} + f_under + score_level == QUEUE);
        assert (row_level == {1'b0, max_level} + f_rows && row_level <= 4);
        if (score_level == 0) assert (!m_score_tvalid);
        if (row_level == 0)   assert (!m_row_tvalid);
        if (max_level == 0)   assert (!m_max_tvalid);
        if (score_valid) assert (score_ready);
        if (max_valid)   assert (max_ready);
        cover (f_past && room_reg == 0 && m_max_tvalid);
    end
`endif
endmodule
`default_nettype wire
