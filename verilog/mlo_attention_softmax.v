// SPDX-License-Identifier: MIT
// mlo_attention_softmax: stage 2 of mlo_attention: e = exp2(score - maximum) and the sum over a row
//
// Contract    a group's PE scores are taken LANES at a time, in ES = ceil(PE/LANES) cycles; LANES =
// ceil(PE/DS) is the smallest number that keeps up with stage 1 (ES <= DS).
//
// In   s_score, s_row, s_max: see mlo_attention_score. A row starts when its maximum is
//      known; s_row_tready takes s_row and s_max with the row's last group
// Out  ring_*   the weights, one word of PE x EB bits per group (mlo_attention_ring)
//      m_sum    one word per row: {sideband, [HP, SP, MP,] SO, MO, sum}; what goes with the sideband (SIDE) passes.
//               PARTLY: a row of which no key counts has the sum 0; then the largest weight stands for it
// Weights have EBITS bits (mlo_exp2), 8 or 12.
// PROB = 1: weights of 18 bits (mlo_exp2_fine). ROUND = 1: score and maximum are first rounded to 8 bits, ((s * MR + 2^(SR-1)) >> SR) + ZR.
// CAP = 1: they are first put under a soft cap (mlo_attention_cap), which keeps their order.
// Throughput  a row per groups * ES cycles
// Latency     from taking a row's last group to m_sum_tvalid: 8 + ES cycles, 2 more with PROB, 7 more with ROUND, 10 more with CAP
// Stall       as in stage 1: a group starts only if its place in the ring is reserved,
//             and if the row's constants have room in the queue behind
// Legal       as mlo_attention
`default_nettype none
module mlo_attention_softmax #(
    parameter PE    = 2,        // keys of a group
    parameter LANES = 1,        // exponentials in parallel, 1..PE
    parameter SB    = 20,       // bits of a score
    parameter SUMB  = 10,       // bits of the sum
    parameter PROB  = 0,        // 1: probabilities are rounded
    parameter ROUND = 0,        // 1: scores are rounded, too
    parameter CAP   = 0,        // 1: scores are under a soft cap
    parameter SIDE  = 3,        // bits of the sideband
    parameter PARTLY = 0,       // 1: it may be that no key of a row counts
    parameter EBITS = 8,        // bits of a weight without PROB
    // derived, do not set: bits of a row's constants, of those that go on, of a weight
    parameter PAR   = 44 + 30*PROB + 32*ROUND + 22*CAP,
    parameter INFO  = 22 + 30*PROB,
    parameter EB    = (PROB != 0) ? 18 : EBITS
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire [PE*(SB+1):0]   s_score_tdata,
    input  wire                 s_score_tvalid,
    output wire                 s_score_tready,
    input  wire [PAR+SIDE-1:0]  s_row_tdata,
    input  wire                 s_row_tvalid,
    input  wire [SB-1:0]        s_max_tdata,
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
localparam LF = (CAP != 0) ? 10 : (ROUND != 0) ? 7 : 0;        // cycles of what is before them,
localparam LE = (PROB != 0 ? 7 : 5) + LF;       // and of the exponentials
localparam FB = (CAP != 0) ? 17 : 8;            // bits of a score then
localparam ROWS = (PROB != 0 || CAP != 0) ? 8 : 4;          // that wait for their sum
localparam RW = $clog2(ROWS + 1);
localparam EW = (ES > 1) ? $clog2(ES) : 1;
localparam SL = ES * LANES;                     // places for PE scores, a few stay empty
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   STEP_32   = ES - 1;
localparam [EW-1:0] STEP_LAST = STEP_32[EW-1:0];
localparam [EW-1:0] STEP_ONE  = 1;

wire             s_last  = s_score_tdata[PE*(SB+1)];
wire [PE-1:0]    s_count = s_score_tdata[PE*SB +: PE];
wire [PE*SB-1:0] s_score = s_score_tdata[0 +: PE*SB];

// ---- 0: a group is loaded, then moved down by LANES scores per cycle --------------------
reg             busy_reg;
reg  [EW-1:0]   step_reg;
reg             first_reg, last_reg, next_first_reg;    // group of the row
reg  [SL-1:0]   count_reg;
reg  [SL*SB-1:0] score_reg;
reg  [SB-1:0]   max_reg;
reg  [15:0]     ms_reg;
reg  [5:0]      ss_reg;

wire step_last = step_reg == STEP_LAST;
wire info_ready;
wire load = (!busy_reg || step_last) && s_score_tvalid && s_row_tvalid && s_max_tvalid
            && ring_room && info_ready;

assign s_score_tready = load;
assign s_row_tready   = load && s_last;
assign ring_take      = load;

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
        ms_reg    <= s_row_tdata[15:0];
        ss_reg    <= s_row_tdata[21:16];
    end
// places PE .. SL-1 never count
wire [SL-1:0]    load_count;
wire [SL*SB-1:0] load_score;
assign load_count[0 +: PE]    = s_count;
assign load_score[0 +: PE*SB] = s_score;
generate
    if (SL > PE) begin : g_fill
        assign load_count[SL-1:PE]       = {SL-PE{1'b0}};
        assign load_score[SL*SB-1:PE*SB] = {(SL-PE)*SB{1'b0}};
    end
endgenerate
always @(posedge clk) if (load || busy_reg) begin
    count_reg <= load ? load_count : count_reg >> LANES;
    score_reg <= load ? load_score : score_reg >> (LANES * SB);
end

// ---- 1 to LE: [rounded scores, or under their cap,] the exponentials ------------------------------------------
wire [LANES*EB-1:0] e5;
wire                go5, group_end5, row_begin5, row_end5;
genvar l;
generate
    if (LF == 0) begin : g_exact
        for (l = 0; l < LANES; l = l + 1) begin : g_exp2
            if (PROB == 0) begin : g_coarse
                mlo_exp2 #(.SBITS(SB), .EBITS(EBITS)) u_exp2 (
                    .clk(clk), .mx(max_reg), .s(score_reg[l*SB +: SB]), .ok(count_reg[l]),
                    .ms(ms_reg), .ss(ss_reg), .e(e5[l*EB +: EB])
                );
            end else begin : g_fine
                mlo_exp2_fine #(.SBITS(SB)) u_exp2 (
                    .clk(clk), .mx(max_reg), .s(score_reg[l*SB +: SB]), .ok(count_reg[l]),
                    .ms(ms_reg), .ss(ss_reg), .e(e5[l*EB +: EB])
                );
            end
        end
    end else begin : g_rounded
        localparam FIRST = (CAP != 0) ? 44 : 74;        // of a row's constants: {ZR, SR, MR} or {SC, MC}
        localparam MANY  = (CAP != 0) ? 22 : 32;
        reg  [MANY-1:0]     round_reg;
        wire [LANES-1:0]    count7;
        wire [FB*LANES+FB-1:0] all7;                    // of the lanes, then of the maximum
        wire [15:0]         ms7;
        wire [5:0]          ss7;
        wire                go7;
        always @(posedge clk)
            if (load)
                round_reg <= s_row_tdata[FIRST +: MANY];
        // a row's constants change with its first group: they go along
        mlo_delay #(.WIDTH(LANES + 22), .CYCLES(LF)) u_with (
            .clk(clk), .rst(rst), .in_valid(busy_reg), .in({count_reg[LANES-1:0], ss_reg, ms_reg}),
            .out_valid(go7), .out({count7, ss7, ms7})
        );
        for (l = 0; l <= LANES; l = l + 1) begin : g_round
            wire [SB-1:0] from;
            if (l < LANES) begin : g_lane
                assign from = score_reg[l*SB +: SB];
            end else begin : g_max
                assign from = max_reg;
            end
            if (CAP == 0) begin : g_steps
                mlo_attention_round #(.SB(SB)) u_round (
                    .clk(clk), .rst(rst), .in_valid(busy_reg), .in(from), .mult(round_reg[17:0]), .shift(round_reg[23:18]), .zero(round_reg[31:24]),
                    .out(all7[l*FB +: FB])
                );
            end else begin : g_cap
                mlo_attention_cap #(.SB(SB)) u_cap (
                    .clk(clk), .rst(rst), .in_valid(busy_reg), .in(from), .mult(round_reg[15:0]), .shift(round_reg[21:16]),
                    .out(all7[l*FB +: FB])
                );
            end
        end
        for (l = 0; l < LANES; l = l + 1) begin : g_exp2
            wire [FB:0] mx7 = {all7[FB*LANES+FB-1], all7[FB*LANES +: FB]};
            wire [FB:0] s7  = {all7[l*FB+FB-1], all7[l*FB +: FB]};
            if (PROB == 0) begin : g_coarse
                mlo_exp2 #(.SBITS(FB + 1), .EBITS(EBITS)) u_exp2 (.clk(clk), .mx(mx7), .s(s7), .ok(count7[l]), .ms(ms7), .ss(ss7), .e(e5[l*EB +: EB]));
            end else begin : g_fine
                mlo_exp2_fine #(.SBITS(FB + 1)) u_exp2 (.clk(clk), .mx(mx7), .s(s7), .ok(count7[l]), .ms(ms7), .ss(ss7), .e(e5[l*EB +: EB]));
            end
        end
        wire unused_go = &{1'b0, go7};
    end
endgenerate
mlo_delay #(.WIDTH(3), .CYCLES(LE)) u_along (
    .clk(clk), .rst(rst), .in_valid(busy_reg),
    .in({step_last, first_reg && step_reg == {EW{1'b0}}, last_reg && step_last}),
    .out_valid(go5), .out({group_end5, row_begin5, row_end5})
);

// ---- then: back into words of PE weights, and the sum --------------------------------------
reg  [SL*EB-1:0] word_reg;
reg  [SUMB-1:0]  sum_reg, lanes5;
reg              word_valid_reg, sum_valid_reg;
wire [SL*EB+LANES*EB-1:0] shifted5 = {e5, word_reg} >> (LANES * EB);
integer i;
always @* begin
    lanes5 = {SUMB{1'b0}};
    for (i = 0; i < LANES; i = i + 1)
        lanes5 = lanes5 + {{SUMB-EB+1{1'b0}}, e5[i*EB +: EB-1]} + {{SUMB-EB{1'b0}}, e5[i*EB + EB-1], {EB-1{1'b0}}};
end
always @(posedge clk) begin
    if (go5) begin
        word_reg <= shifted5[SL*EB-1:0];
        sum_reg  <= (row_begin5 ? {SUMB{1'b0}} : sum_reg) + lanes5;
    end
    word_valid_reg <= go5 && group_end5 && !rst;
    sum_valid_reg  <= go5 && row_end5 && !rst;
end
assign ring_wr_en   = word_valid_reg;
assign ring_wr_data = word_reg[PE*EB-1:0];

// ---- the row's constants wait for its sum -----------------------------------------------
wire            sum_ready, info_valid, sum_valid;
wire [RW-1:0]   info_level, sum_level;
wire [INFO+SIDE-1:0] info;
wire [SUMB-1:0] sum, some;
mlo_fifo #(.WIDTH(INFO + SIDE), .DEPTH(ROWS)) u_info (
    .clk(clk), .rst(rst),
    .s_tdata({s_row_tdata[PAR +: SIDE], s_row_tdata[22 +: INFO]}), .s_tvalid(load && s_last), .s_tready(info_ready),
    .m_tdata(info), .m_tvalid(info_valid), .m_tready(m_sum_tready && sum_valid),
    .level(info_level)
);
mlo_fifo #(.WIDTH(SUMB), .DEPTH(ROWS)) u_sum (
    .clk(clk), .rst(rst),
    .s_tdata(sum_reg), .s_tvalid(sum_valid_reg), .s_tready(sum_ready),
    .m_tdata(sum), .m_tvalid(sum_valid), .m_tready(m_sum_tready && info_valid),
    .level(sum_level)
);
generate
    if (PARTLY == 0) begin : g_sum
        assign some = sum;
    end else begin : g_some
        assign some = sum | {{SUMB-EB{1'b0}}, {8{sum == {SUMB{1'b0}}}}, {EB-8{PROB != 0 && sum == {SUMB{1'b0}}}}};
    end
endgenerate
assign m_sum_tdata  = {info, some};
assign m_sum_tvalid = sum_valid && info_valid;

wire unused = &{1'b0, sum_ready, info_level, sum_level, shifted5[SL*EB +: LANES*EB]};

`ifdef FORMAL
    // Every group taken becomes one word of the ring, LE + 2 cycles after its last step, and every
    // sum that comes out finds room: sums queued and under way are the rows of u_info.
    reg  f_past = 1'b0;
    reg  [LE+1:0] f_pipe;                          // rows between their last step and u_sum
    reg  [LE+1:0] f_word;                          // groups likewise
    wire f_row_end  = busy_reg && last_reg && step_last;
    integer    f_i;
    reg  [RW+3:0] f_count;
    always @* begin
        if (!f_past) assume (rst);
        f_count = busy_reg && last_reg;
        for (f_i = 0; f_i < LE + 1; f_i = f_i + 1)
            f_count = f_count + f_pipe[f_i];
    end
    always @(posedge clk) begin
        f_past <= 1'b1;
        f_pipe <= rst ? 0 : {f_pipe, f_row_end};
        f_word <= rst ? 0 : {f_word, busy_reg && step_last};
    end
    always @* if (f_past) begin
        if (busy_reg) assert (step_reg <= STEP_LAST);
        assert (sum_valid_reg == f_pipe[LE]);
        assert (ring_wr_en == f_word[LE]);
        assert (info_level <= ROWS && info_level == {1'b0, sum_level} + f_count);
        if (info_level == 0) assert (!info_valid);
        if (sum_level == 0)  assert (!sum_valid);
        if (sum_valid_reg) assert (sum_ready);
        // what mlo_attention_score and mlo_attention_ring assume
        if (s_row_tready) assert (s_row_tvalid && s_max_tvalid);
        if (ring_take)    assert (ring_room);
        // and mlo_divide
        if (PARTLY != 0)  assert (m_sum_tdata[SUMB-1:0] != {SUMB{1'b0}});
        cover (f_past && info_level == ROWS && sum_level == ROWS);
    end
`endif
endmodule
`default_nettype wire
