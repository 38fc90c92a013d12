// SPDX-License-Identifier: MIT
// mlo_attention_look: stage 2 of mlo_attention_table: scores become numbers of 8 bits, of those a table makes others, and of
// how far these are below the row's largest another table makes weights; and the sum of a row's
//
// Contract    r[j] = table_s[clip((s[j] * MR + 2^(SR-1)) >> SR) + 128]; e[j] = table_e[max r - r[j]]. HIDE: of a hidden key
// r comes from the second half of table_s. table_s never falls, so the largest r is that of the largest score (of the
// larger one, HIDE: of the hidden ones' and the others').
// A group's PE scores are taken LANES at a time, in ES = ceil(PE/LANES) cycles; LANES =
// ceil(PE/DS) is the smallest number that keeps up with stage 1 (ES <= DS).
//
// In   s_score, s_row, s_max: see mlo_attention_score. A row starts when its maximum is
//      known; s_row_tready takes s_row and s_max with the row's last group
//      s_axis_s: 256 words of 8 bits (HIDE: 512), s_axis_e: 256 words of EB bits, per iteration (mlo_param); the lanes have a copy each
//      (mlo_attention_word)
// Out  ring_*   the weights, one word of PE x EB bits per group (mlo_attention_ring)
//      m_sum    one word per row: {sideband, N, HP, SP, MP, SO, MO, sum}; what goes with the sideband (SIDE) passes
// Throughput  a row per groups * ES cycles
// Latency     from taking a row's last group to m_sum_tvalid: 16 + ES cycles
// Stall       a group starts only if its place in the ring is reserved, and if the row's constants have room in the queue
//             behind. An iteration's first row (`first` of its sideband, head 0) moves to the next tables when nothing is
//             under way that reads the old ones: 11 cycles after the last step of the row before; and starts when they
//             are there, the next cycle at the earliest
// Legal       as mlo_attention_table. (table_s does not fall; all weights are 0 .. 2^EB - 1, that of the largest is not 0)
`default_nettype none
module mlo_attention_look #(
    parameter H     = 2,        // heads: rows of a token
    parameter PE    = 2,        // keys of a group
    parameter LANES = 1,        // scores in parallel, 1..PE
    parameter SB    = 20,       // bits of a score
    parameter EB    = 13,       // bits of a weight
    parameter SUMB  = 15,       // bits of the sum
    parameter HIDE  = 0,        // 1 or more: some keys are hidden
    parameter SIDE  = 3,        // bits of the sideband
    parameter RESIDENT = 0,     // banks of the tables that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128,  // bits of a parameter beat
    // derived, do not set: bits of a row's constants, of those that go on
    parameter PAR   = 106,
    parameter INFO  = 60,
    parameter HB    = (HIDE != 0) ? 1 : 0
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,
    input  wire [AXI_WIDTH-1:0] s_axis_s_tdata,
    input  wire                 s_axis_s_tvalid,
    output wire                 s_axis_s_tready,
    input  wire [AXI_WIDTH-1:0] s_axis_e_tdata,
    input  wire                 s_axis_e_tvalid,
    output wire                 s_axis_e_tready,
    input  wire [PE*(SB+1+HB):0] s_score_tdata,
    input  wire                 s_score_tvalid,
    output wire                 s_score_tready,
    input  wire [PAR+SIDE-1:0]  s_row_tdata,    // {[walk,] last, .., first of the sideband, constants}
    input  wire                 s_row_tvalid,
    input  wire [SB*(1+HB)-1:0] s_max_tdata,
    input  wire                 s_max_tvalid,
    output wire                 s_row_tready,
    input  wire                 ring_room,
    output wire                 ring_take,
    output wire                 ring_wr_en,
    output wire [PE*EB-1:0]     ring_wr_data,
    output wire [SUMB+INFO+SIDE-1:0] m_sum_tdata,
    output wire                 m_sum_tvalid,
    input  wire                 m_sum_tready
);

localparam ES = (PE + LANES - 1) / LANES;       // cycles of a group
localparam LR = 6;                              // cycles of the rounding,
localparam LK = LR + 4;                         // of all up to the last look into a table,
localparam LE = LK + 3;                         // and up to the weights
localparam ROWS = 8;                            // that wait for their sum
localparam RW = $clog2(ROWS + 1);
localparam EW = (ES > 1) ? $clog2(ES) : 1;
localparam HW = (H > 1) ? $clog2(H) : 1;
localparam SL = ES * LANES;                     // places for PE scores, a few stay empty
localparam IN = SB + 1 + HB;                    // of a place: {[not hidden,] counts, score}
localparam MX = 1 + HB;                         // maxima
localparam [SB-1:0] LOWEST = {1'b1, {SB-1{1'b0}}};  // the largest of none
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   STEP_32   = ES - 1;
localparam [31:0]   HEAD_32   = H - 1;
localparam [EW-1:0] STEP_LAST = STEP_32[EW-1:0];
localparam [EW-1:0] STEP_ONE  = 1;
localparam [HW-1:0] HEAD_LAST = HEAD_32[HW-1:0];
localparam [HW-1:0] H_ONE     = 1;

wire             s_last  = s_score_tdata[PE*IN];
wire [PE-1:0]    s_count = s_score_tdata[PE*SB +: PE];
wire [PE*SB-1:0] s_score = s_score_tdata[0 +: PE*SB];
wire [PE-1:0]    s_seen;
generate
    if (HIDE == 0) assign s_seen = {PE{1'b1}};
    else           assign s_seen = s_score_tdata[PE*(SB+1) +: PE];
endgenerate

// ---- the tables of the row at hand ----------------------------------------------------------
reg              busy_reg;
reg  [LK-1:0]    under_reg;                     // steps under way that may read
reg              moved_reg;                     // the row at hand has its tables
reg  [HW-1:0]    head_reg;
wire             here  = s_row_tvalid && s_max_tvalid;
wire             fresh = s_row_tdata[PAR] && head_reg == {HW{1'b0}};
wire             move  = here && fresh && !moved_reg && !busy_reg && under_reg == {LK{1'b0}};
wire [LANES+MX-1:0] have_s, load_s;             // all copies are loaded by the same beats: of these the first speaks for them
wire [LANES-1:0] have_e, load_e;
wire             have  = (&have_s) && (&have_e) && (!fresh || moved_reg);
assign {s_axis_s_tready, s_axis_e_tready} = {load_s[0], load_e[0]};
always @(posedge clk) begin
    under_reg <= rst ? {LK{1'b0}} : {under_reg[LK-2:0], busy_reg};
    if (s_row_tready) head_reg <= head_reg == HEAD_LAST ? {HW{1'b0}} : head_reg + H_ONE;
    moved_reg <= (moved_reg || move) && !s_row_tready;
    if (rst) begin
        head_reg  <= {HW{1'b0}};
        moved_reg <= 1'b0;
    end
end

// ---- 0: a group is loaded, then moved down by LANES scores per cycle --------------------
reg  [EW-1:0]   step_reg;
reg             first_reg, last_reg, next_first_reg;    // group of the row
reg  [SL-1:0]   count_reg, seen_reg;
reg  [SL*SB-1:0] score_reg;
reg  [SB*MX-1:0] max_reg;
reg  [17:0]     mr_reg;
reg  [5:0]      sr_reg;

wire step_last = step_reg == STEP_LAST;
wire info_ready;
wire load = (!busy_reg || step_last) && s_score_tvalid && here && have && ring_room && info_ready;

assign {s_score_tready, ring_take} = {load, load};
assign s_row_tready   = load && s_last;

always @(posedge clk) begin
    if (load) begin
        busy_reg       <= 1'b1;
        step_reg       <= {EW{1'b0}};
        next_first_reg <= s_last;
    end else if (busy_reg) begin
        busy_reg       <= !step_last;
        step_reg       <= step_reg + STEP_ONE;
    end
    if (rst) begin
        busy_reg       <= 1'b0;
        step_reg       <= {EW{1'b0}};
        next_first_reg <= 1'b1;
    end
end
always @(posedge clk)
    if (load) begin
        first_reg <= next_first_reg;
        last_reg  <= s_last;
        max_reg   <= s_max_tdata;
        mr_reg    <= s_row_tdata[74 +: 18];
        sr_reg    <= s_row_tdata[92 +: 6];
    end
// places PE .. SL-1 never count
wire [SL-1:0]    load_count, load_seen;
wire [SL*SB-1:0] load_score;
assign load_count[0 +: PE]    = s_count;
assign load_seen[0 +: PE]     = s_seen;
assign load_score[0 +: PE*SB] = s_score;
generate
    if (SL > PE) begin : g_fill
        assign load_count[SL-1:PE]       = {SL-PE{1'b0}};
        assign load_seen[SL-1:PE]        = {SL-PE{1'b0}};
        assign load_score[SL*SB-1:PE*SB] = {(SL-PE)*SB{1'b0}};
    end
endgenerate
always @(posedge clk) if (load || busy_reg) begin
    count_reg <= load ? load_count : count_reg >> LANES;
    seen_reg  <= load ? load_seen : seen_reg >> LANES;
    score_reg <= load ? load_score : score_reg >> (LANES * SB);
end

// ---- 1 to 6: the lanes' scores and the maxima in 8 bits; 7, 8: in table_s ------------------------
wire [LANES-1:0] count6, seen6;
wire [MX-1:0]    some6;                         // there is such a maximum
wire             go6;
wire [MX-1:0]    some0;
reg              go7, go8, go9, go10;
reg  [LANES-1:0] count7, count8, count9, count10, count11, count12;
reg  [MX-1:0]    some7, some8;
wire [8*(LANES+MX)-1:0] r8;                     // of the lanes, then of the maxima
mlo_delay #(.WIDTH(2*LANES + MX), .CYCLES(LR)) u_with (
    .clk(clk), .rst(rst), .in_valid(busy_reg), .in({some0, seen_reg[LANES-1:0], count_reg[LANES-1:0]}),
    .out_valid(go6), .out({some6, seen6, count6})
);
always @(posedge clk) begin
    {go10, go9, go8, go7} <= rst ? 4'd0 : {go9, go8, go7, go6};
    {count12, count11, count10, count9, count8, count7} <= {count11, count10, count9, count8, count7, count6};
    {some8, some7} <= {some7, some6};
end
genvar l;
generate
    for (l = 0; l < MX; l = l + 1) begin : g_some
        assign some0[l] = max_reg[l*SB +: SB] != LOWEST;
    end
    for (l = 0; l < LANES + MX; l = l + 1) begin : g_number
        wire [SB-1:0] from;
        wire [7:0]    r6;
        wire          valid6;
        if (l < LANES) begin : g_lane
            assign from = score_reg[l*SB +: SB];
        end else begin : g_max
            assign from = max_reg[(l-LANES)*SB +: SB];
        end
        mlo_requantize #(.ABITS(SB), .MBITS(19), .YBITS(8)) u_requantize (
            .clk(clk), .rst(rst), .en(1'b1), .in_valid(busy_reg), .in_acc(from), .in_m({1'b0, mr_reg}), .in_s(sr_reg),
            .out_valid(valid6), .out_y(r6)
        );
        wire [8:0]    wide6 = {(l < LANES) ? !seen6[l % LANES] : l > LANES, !r6[7], r6[6:0]};
        wire [7+HB:0] at6   = wide6[7+HB:0];
        wire          unused_half = &{1'b0, wide6[8]};
        mlo_attention_word #(.WIDTH(8), .DEPTH(256 << HB), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_table (
            .clk(clk), .rst(rst), .s_axis_tdata(s_axis_s_tdata), .s_axis_tvalid(s_axis_s_tvalid), .s_axis_tready(load_s[l]), .s_axis_tlast(params_last),
            .first(move), .ready(have_s[l]), .addr(at6), .en(valid6), .data(r8[l*8 +: 8]));
    end
endgenerate

// ---- 9: the largest; 10: how far the others are below it; 11, 12: in table_e; 13: those that count
reg  [7:0]         most9;
reg  [8*LANES-1:0] r9, below10;
wire [LANES*EB-1:0] e12;
reg  [LANES*EB-1:0] e;
integer i;
always @(posedge clk) begin
    if (go8) begin
        r9    <= r8[8*LANES-1:0];
        most9 <= !some8[MX-1] || (some8[0] && $signed(r8[8*LANES +: 8]) > $signed(r8[8*(LANES+MX-1) +: 8]))
            ? r8[8*LANES +: 8] : r8[8*(LANES+MX-1) +: 8];
    end
    if (go9)
        for (i = 0; i < LANES; i = i + 1)
            below10[8*i +: 8] <= most9 - r9[8*i +: 8];
end
generate
    for (l = 0; l < LANES; l = l + 1) begin : g_weight
        mlo_attention_word #(.WIDTH(EB), .DEPTH(256), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_table (
            .clk(clk), .rst(rst), .s_axis_tdata(s_axis_e_tdata), .s_axis_tvalid(s_axis_e_tvalid), .s_axis_tready(load_e[l]), .s_axis_tlast(params_last),
            .first(move), .ready(have_e[l]), .addr(below10[8*l +: 8]), .en(go10), .data(e12[l*EB +: EB]));
        always @(posedge clk) e[l*EB +: EB] <= e12[l*EB +: EB] & {EB{count12[l]}};
    end
endgenerate
wire go_e, group_end, row_begin, row_end;
mlo_delay #(.WIDTH(3), .CYCLES(LE)) u_along (
    .clk(clk), .rst(rst), .in_valid(busy_reg),
    .in({step_last, first_reg && step_reg == {EW{1'b0}}, last_reg && step_last}),
    .out_valid(go_e), .out({group_end, row_begin, row_end})
);

// ---- then: back into words of PE weights, and the sum --------------------------------------
reg  [SL*EB-1:0] word_reg;
reg  [SUMB-1:0]  sum_reg, lanes_sum;
reg              word_valid_reg, sum_valid_reg;
wire [SL*EB+LANES*EB-1:0] shifted = {e, word_reg} >> (LANES * EB);
always @* begin
    lanes_sum = {SUMB{1'b0}};
    for (i = 0; i < LANES; i = i + 1)
        lanes_sum = lanes_sum + {{SUMB-EB+1{1'b0}}, e[i*EB +: EB-1]} + {{SUMB-EB{1'b0}}, e[i*EB + EB-1], {EB-1{1'b0}}};
end
always @(posedge clk) begin
    if (go_e) begin
        word_reg <= shifted[SL*EB-1:0];
        sum_reg  <= (row_begin ? {SUMB{1'b0}} : sum_reg) + lanes_sum;
    end
    word_valid_reg <= go_e && group_end && !rst;
    sum_valid_reg  <= go_e && row_end && !rst;
end
assign {ring_wr_en, ring_wr_data} = {word_valid_reg, word_reg[PE*EB-1:0]};

// ---- the row's constants wait for its sum -----------------------------------------------
wire            sum_ready, info_valid, sum_valid;
wire [RW-1:0]   info_level, sum_level;
wire [INFO+SIDE-1:0] info;
wire [SUMB-1:0] sum;
mlo_fifo #(.WIDTH(INFO + SIDE), .DEPTH(ROWS)) u_info (
    .clk(clk), .rst(rst),
    .s_tdata({s_row_tdata[PAR +: SIDE], s_row_tdata[7:0], s_row_tdata[22 +: 52]}), .s_tvalid(load && s_last), .s_tready(info_ready),
    .m_tdata(info), .m_tvalid(info_valid), .m_tready(m_sum_tready && sum_valid),
    .level(info_level)
);
mlo_fifo #(.WIDTH(SUMB), .DEPTH(ROWS)) u_sum (
    .clk(clk), .rst(rst),
    .s_tdata(sum_reg), .s_tvalid(sum_valid_reg), .s_tready(sum_ready),
    .m_tdata(sum), .m_tvalid(sum_valid), .m_tready(m_sum_tready && info_valid),
    .level(sum_level)
);
assign m_sum_tdata  = {info, sum};
assign m_sum_tvalid = sum_valid && info_valid;

wire unused = &{1'b0, sum_ready, info_level, sum_level, shifted[SL*EB +: LANES*EB], load_s, load_e, seen6, s_row_tdata[21:8], s_row_tdata[105:98]};

`ifdef FORMAL
    // Every group taken becomes one word of the ring, LE + 2 cycles after its last step, and every
    // sum that comes out finds room: sums queued and under way are the rows of u_info. Tables move once for an iteration's
    // first row, when nothing is under way that has not read them, and rows are taken when they are there.
    reg  f_past = 1'b0;
    reg  [LE+1:0] f_pipe;                          // rows between their last step and u_sum
    reg  [LE+1:0] f_word;                          // groups likewise
    wire f_row_end  = busy_reg && last_reg && step_last;
    integer    f_i;
    reg  [RW+3:0] f_count;
    reg           f_used, f_open, f_fresh;          // tables were moved to; a row is begun, of fresh ones
    always @* begin
        if (!f_past) assume (rst);
        f_count = busy_reg && last_reg;
        for (f_i = 0; f_i < LE + 1; f_i = f_i + 1)
            f_count = f_count + f_pipe[f_i];
        if (f_open) assume (here && fresh == f_fresh);  // a row stays until it is done
        if (!f_used && here) assume (fresh);            // the very first row begins an iteration
    end
    always @(posedge clk) begin
        f_past  <= 1'b1;
        f_pipe  <= rst ? 0 : {f_pipe, f_row_end};
        f_word  <= rst ? 0 : {f_word, busy_reg && step_last};
        f_used  <= !rst && (f_used || move);
        f_open  <= !rst && here && !s_row_tready;
        f_fresh <= fresh;
    end
    always @* if (f_past) begin
        if (busy_reg) assert (step_reg <= STEP_LAST);
        assert (head_reg <= HEAD_LAST);
        assert (sum_valid_reg == f_pipe[LE]);
        assert (ring_wr_en == f_word[LE]);
        assert (info_level <= ROWS && info_level == {1'b0, sum_level} + f_count);
        if (info_level == 0) assert (!info_valid);
        if (sum_level == 0)  assert (!sum_valid);
        if (sum_valid_reg) assert (sum_ready);
        // of table_e is read when go10, of table_s when go6: not beside a move, nor after one what came before
        assert ({go10, go9, go8, go7} == under_reg[LR+3:LR] && go6 == under_reg[LR-1]);
        if (move) assert (!go6 && !go7 && !go8 && !go9 && !go10 && !busy_reg);
        if (load) assert ((&have_s) && (&have_e) && (!fresh || moved_reg) && !move);
        if (moved_reg) assert (f_used && fresh && f_open);
        if (f_used && !moved_reg) assert ((&have_s) && (&have_e));     // so a move is one that mlo_param takes
        // what mlo_attention_score and mlo_attention_ring assume
        if (s_row_tready) assert (s_row_tvalid && s_max_tvalid);
        if (ring_take)    assert (ring_room);
        cover (f_past && info_level == ROWS && sum_level == ROWS);
    end
`endif
endmodule
`default_nettype wire
