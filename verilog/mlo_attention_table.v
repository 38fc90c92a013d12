// SPDX-License-Identifier: MIT
// mlo_attention_table: multi-head attention of a network of integers, exactly as it is rounded there, frame by frame
//
// Contract    for each query token and head (a *row*), over all Tk keys of its frame:
//   s[j] = sum_d q[d] * k[j][d]
//   r[j] = table_s[clip((s[j] * MR + 2^(SR-1)) >>> SR) to 8 bits]     HIDE: of a hidden key in the second half of table_s
//   e[j] = table_e[max r - r[j]]
//   p[j] = floor(e[j] * N / sum_j e[j])
//   w[j] = min((p[j] * MP + 2^(SP-1)) >> SP, HP)
//   y[d] = clip((sum_j w[j]*v[j][d] * MO + 2^(SO-1)) >>> SO)          YBITS signed
// Head h of the queries reads head h / (H/KVH) of the keys and values.
// HIDE = 1: hidden are the keys whose bit (s_axis_k_tuser[2]) is 0. HIDE = 2: those, and the keys j > i of the frame's query i. They count
//          all the same, with what the second half of table_s makes of them.
// PAST = 1: the frame's queries are those of positions `start` on (of its word at s_axis_j), and query i is number start + i of the keys: those in
//          front are of earlier tokens, come with the frame's own (mlo_kv sends them) and count as they do.
//
// How it is built. As mlo_attention, whose frames of keys and values, scores, ring and division these are; stage 2 has tables
// (mlo_attention_look). The quotients are exact (mlo_attention_quotient): divided is once a row, N * 2^K by the sum of weights, K = 2 EBITS + LT.
//
// Throughput  steady state: a row per max(groups * DS, CY + 1) cycles, groups = ceil(Tk/PE), DS = D/SIMD,
//             CY = ceil(RB/STEP), RB = 2 EBITS + LT + 9 - LEAST, LT = clog2(T); an iteration's first row waits for its tables
// Latency     as mlo_attention's formula, with CY of the above, 8 cycles more of its weights, 10 more of the mix; an iteration's first row:
//             see mlo_attention_look
// Stall       as mlo_attention
// Parameters  s_axis_c: one word of 128 bits an iteration: [7:0] N, [47:32] MO, [53:48] SO, [79:64] MP, [85:80] SP, [95:88] HP, [113:96] MR, [119:114] SR;
//             s_axis_s: table_s, 256 words of 8 bits (HIDE: 512: then those of hidden keys), by the number + 128; s_axis_e: table_e, 256 words of EBITS
// Legal       as mlo_attention; H, KVH, D, T, PE, SIMD, STEP >= 1; 2 <= EBITS <= 18; 1 <= LEAST <= EBITS; table_e[0] >= 2^(LEAST-1);
//             table_s does not fall, in either half; 1 <= N; shifts are 1..62, multipliers 15 bits, MP 16, MR 18;
//             PAST: PE a power of two, T < 2^16; frames of K and V have `start` tokens more than their Q
`default_nettype none
module mlo_attention_table #(
    parameter H     = 2,        // heads
    parameter D     = 4,        // channels of a head
    parameter T     = 4,        // tokens of a frame, at most
    parameter PE    = 2,        // keys in parallel
    parameter SIMD  = 2,        // channels in parallel, divides D
    parameter XBITS = 8,        // bits of q, k, v
    parameter YBITS = 8,
    parameter EBITS = 13,       // bits of a weight
    parameter LEAST = EBITS,    // bits of that of the largest score, at least
    parameter HIDE  = 0,        // 1: some keys are hidden. 2: and those behind the query
    parameter KVH   = H,        // heads of keys and values
    parameter PAST  = 0,        // 1: K and V come with what is before the frame's word's start
    parameter RESIDENT = 0,     // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128,  // bits of a parameter beat
    parameter STEP = 2          // quotient bits per cycle
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    // PAST: of each frame {start[15:0], -}
    input  wire [31:0]           s_axis_j_tdata,
    input  wire                  s_axis_j_tvalid,
    output wire                  s_axis_j_tready,
    // H*D channels per token, channel h*D + d; keys and values: KVH*D
    input  wire [SIMD*XBITS-1:0] s_axis_q_tdata,
    input  wire                  s_axis_q_tvalid,
    output wire                  s_axis_q_tready,
    input  wire [2:0]            s_axis_q_tuser,
    input  wire [SIMD*XBITS-1:0] s_axis_k_tdata,
    input  wire                  s_axis_k_tvalid,
    output wire                  s_axis_k_tready,
    input  wire [2:0]            s_axis_k_tuser,
    input  wire [SIMD*XBITS-1:0] s_axis_v_tdata,
    input  wire                  s_axis_v_tvalid,
    output wire                  s_axis_v_tready,
    input  wire [2:0]            s_axis_v_tuser,
    input  wire [AXI_WIDTH-1:0]  s_axis_c_tdata,
    input  wire                  s_axis_c_tvalid,
    output wire                  s_axis_c_tready,
    input  wire [AXI_WIDTH-1:0]  s_axis_s_tdata,
    input  wire                  s_axis_s_tvalid,
    output wire                  s_axis_s_tready,
    input  wire [AXI_WIDTH-1:0]  s_axis_e_tdata,
    input  wire                  s_axis_e_tvalid,
    output wire                  s_axis_e_tready,
    output wire [SIMD*YBITS-1:0] m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire [2:0]            m_axis_tuser,
    // [0] the multipliers of scores work (those of sums work as often, at other times), [1] starved, [2] blocked
    output wire [2:0]            stat
);

localparam DS    = D / SIMD;
localparam BEATS = KVH * DS;                        // of a token of keys
localparam G     = (T + PE - 1) / PE;               // groups of keys
localparam GW    = (G > 1) ? $clog2(G) : 1;
localparam AW    = (G * BEATS > 1) ? $clog2(G * BEATS) : 1;
localparam FW    = (DS > 1) ? $clog2(DS) : 1;
localparam LT    = (T > 1) ? $clog2(T) : 0;
localparam LW    = (PE > 1) ? $clog2(PE) : 1;
localparam HB    = (HIDE != 0) ? 1 : 0;
localparam SB    = 2 * XBITS + ((D > 1) ? $clog2(D) : 1);    // of a sum of products
localparam SUMB  = EBITS + LT;                      // of the sum of weights
localparam DOWN  = 2 * EBITS + LT;                  // places of the quotient
localparam RB    = DOWN + 9 - LEAST;                // bits of it: N * 2^DOWN / 2^(LEAST-1) at most
localparam PAR   = 106;                             // of the constants of a row
localparam INFO  = 60;                              // of those that go on behind the weights
localparam ALONG = 52 + 3;                          // of those, and a sideband, behind the division
localparam LATER = 18;                              // cycles more than mlo_attention's plain ones
localparam LANES = (PE + DS - 1) / DS;              // scores in parallel
localparam XW    = SIMD * XBITS;
// The ring: as in mlo_attention.
localparam CY       = (RB + STEP - 1) / STEP;
localparam RING_LONG = 2 * G + 2 * ((CY + DS) / DS) + (14 + LATER) / DS + 2;
localparam RING     = (RING_LONG < 4 * G + 2) ? RING_LONG : 4 * G + 2;

generate
    if (H < 1) mlo_error_H_must_be_at_least_1 u_h();
    if (KVH < 1 || H % KVH != 0) mlo_error_KVH_must_divide_H u_kvh();
    if (HIDE < 0 || HIDE > 2) mlo_error_HIDE_must_be_0_to_2 u_hide();
    if (EBITS < 2 || EBITS > 18 || LEAST < 1 || LEAST > EBITS) mlo_error_EBITS_must_be_2_to_18_and_LEAST_1_to_EBITS u_ebits();
    if (PAST < 0 || PAST > 1 || (PAST != 0 && (PE & (PE - 1)) != 0)) mlo_error_PAST_must_be_0_or_1_and_needs_PE_a_power_of_two u_past();
    if (SIMD < 1 || D < 1 || D % SIMD != 0) mlo_error_SIMD_must_divide_D u_simd();
    if (PE < 1 || PE > T) mlo_error_PE_must_be_1_to_T u_pe();
    if (XBITS < 2 || XBITS > 16 || YBITS < 2 || YBITS > 16) mlo_error_XBITS_and_YBITS_must_be_2_to_16 u_bits();
endgenerate

// ---- memories ---------------------------------------------------------------------------
wire [1:0]           no_job;
wire                 q_full, q_done, score_read;
wire [2:0]           q_user;
wire [FW-1:0]        q_addr;
wire [XW-1:0]        q_data;
mlo_attention_q #(.BEATS(DS), .WIDTH(XW)) u_q (
    .clk(clk), .rst(rst),
    .s_axis_tdata(s_axis_q_tdata), .s_axis_tuser(s_axis_q_tuser),
    .s_axis_tvalid(s_axis_q_tvalid), .s_axis_tready(s_axis_q_tready),
    .full(q_full), .user(q_user), .done(q_done),
    .rd_en(score_read), .rd_addr(q_addr), .rd_data(q_data)
);

// a key's bit is stored with each of its beats (HIDE = 0: all are alike)
wire                 k_full, k_single, k_none, k_done;
wire [GW-1:0]        k_groups_1;
wire [PE-1:0]        k_tail;
wire [AW-1:0]        k_addr;
wire [PE*(XW+1)-1:0] k_data;
mlo_attention_kv #(.T(T), .BEATS(BEATS), .PE(PE), .WIDTH(XW + 1), .CACHE(0)) u_k (
    .clk(clk), .rst(rst), .job_valid(1'b0), .job_ready(no_job[0]), .job_start(16'd0), .job_bank(16'd0),
    .s_tdata({HIDE == 0 || s_axis_k_tuser[2], s_axis_k_tdata}), .s_last(s_axis_k_tuser[1]), .s_key(s_axis_k_tuser[2]),
    .s_tvalid(s_axis_k_tvalid), .s_tready(s_axis_k_tready),
    .full(k_full), .groups_1(k_groups_1), .single(k_single), .tail(k_tail), .none(k_none), .done(k_done),
    .rd_en(score_read), .rd_addr(k_addr), .rd_data(k_data)
);

wire                 v_full, v_single, v_none, v_done, mix_read;
wire [GW-1:0]        v_groups_1;
wire [PE-1:0]        v_tail;
wire [AW-1:0]        v_addr;
wire [PE*XW-1:0]     v_data;
mlo_attention_kv #(.T(T), .BEATS(BEATS), .PE(PE), .WIDTH(XW), .CACHE(0)) u_v (
    .clk(clk), .rst(rst), .job_valid(1'b0), .job_ready(no_job[1]), .job_start(16'd0), .job_bank(16'd0),
    .s_tdata(s_axis_v_tdata), .s_last(s_axis_v_tuser[1]), .s_key(1'b1),
    .s_tvalid(s_axis_v_tvalid), .s_tready(s_axis_v_tready),
    .full(v_full), .groups_1(v_groups_1), .single(v_single), .tail(v_tail), .none(v_none), .done(v_done),
    .rd_en(mix_read), .rd_addr(v_addr), .rd_data(v_data)
);

wire                 par_first, par_ok;
wire [PAR-1:0]       par_data;             // {-, SR, MR, HP, SP, MP, SO, MO, -, N}
wire [LW+GW:0]       par_reach;
wire                 no_bias_read;
wire [PE*16-1:0]     no_bias;
mlo_attention_param #(
    .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT), .PROB(1), .ROUND(1), .BW(1), .GW(GW), .LW(LW), .PE(PE)
) u_param (
    .clk(clk), .rst(rst), .params_last(params_last),
    .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready),
    .full(q_full), .first(par_first), .done(q_done), .ok(par_ok), .data(par_data), .reach(par_reach),
    .bias_read(1'b0), .bias_at(1'b0), .bias(no_bias)
);

// ---- stage 1: scores ------------------------------------------------------------------
localparam BA = (G > 1) ? $clog2(G) : 1;
wire [PE*(SB+1+HB):0] score_tdata;
wire [PAR+2:0]       row_tdata;
wire [SB*(1+HB)-1:0] max_tdata;
wire                 score_tvalid, score_tready, row_tvalid, row_tready, max_tvalid;
wire [BA-1:0]        bias_at;
mlo_attention_score #(
    .H(H), .D(D), .G(G), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .PAR(PAR), .KVH(KVH), .GW(GW), .AW(AW), .SB(SB), .HIDE(HIDE), .CACHE(PAST)
) u_score (
    .clk(clk), .rst(rst), .job_valid(s_axis_j_tvalid), .job_ready(s_axis_j_tready), .job_start(s_axis_j_tdata[31:16]),
    .row_full(q_full), .row_user(q_user), .row_done(q_done), .row_addr(q_addr), .row_data(q_data),
    .k_full(k_full), .k_groups_1(k_groups_1), .k_single(k_single), .k_tail(k_tail), .k_none(1'b0), .k_done(k_done),
    .k_addr(k_addr), .k_data(k_data), .read(score_read),
    .par_first(par_first), .par_ok(par_ok), .par_data(par_data), .par_reach(par_reach),
    .bias_read(no_bias_read), .bias_at(bias_at), .bias(no_bias),
    .m_score_tdata(score_tdata), .m_score_tvalid(score_tvalid), .m_score_tready(score_tready),
    .m_row_tdata(row_tdata), .m_row_tvalid(row_tvalid),
    .m_max_tdata(max_tdata), .m_max_tvalid(max_tvalid), .m_row_tready(row_tready)
);

// ---- stage 2: numbers, weights, sum, division -----------------------------------------------
wire                 ring_room, ring_take, ring_wr_en;
wire [PE*EBITS-1:0]  ring_wr_data, ring_rd_data;
wire [SUMB+INFO+2:0] sum_tdata;                     // {sideband, N, HP, SP, MP, SO, MO, sum}
wire                 sum_tvalid, sum_tready;
mlo_attention_look #(.H(H), .PE(PE), .LANES(LANES), .SB(SB), .EB(EBITS), .SUMB(SUMB), .HIDE(HIDE), .RESIDENT(RESIDENT), .AXI_WIDTH(AXI_WIDTH)) u_look (
    .clk(clk), .rst(rst), .params_last(params_last),
    .s_axis_s_tdata(s_axis_s_tdata), .s_axis_s_tvalid(s_axis_s_tvalid), .s_axis_s_tready(s_axis_s_tready),
    .s_axis_e_tdata(s_axis_e_tdata), .s_axis_e_tvalid(s_axis_e_tvalid), .s_axis_e_tready(s_axis_e_tready),
    .s_score_tdata(score_tdata), .s_score_tvalid(score_tvalid), .s_score_tready(score_tready),
    .s_row_tdata(row_tdata), .s_row_tvalid(row_tvalid),
    .s_max_tdata(max_tdata), .s_max_tvalid(max_tvalid), .s_row_tready(row_tready),
    .ring_room(ring_room), .ring_take(ring_take), .ring_wr_en(ring_wr_en), .ring_wr_data(ring_wr_data),
    .m_sum_tdata(sum_tdata), .m_sum_tvalid(sum_tvalid), .m_sum_tready(sum_tready)
);

// ceil(N * 2^DOWN / sum) - 1 = floor((N * 2^DOWN - 1) / sum)
wire [7:0]           n_1      = sum_tdata[SUMB+52 +: 8] - 8'd1;
wire [ALONG-1:0]     sum_user = {sum_tdata[SUMB+60 +: 3], sum_tdata[SUMB+22 +: 16], sum_tdata[SUMB+38 +: 14], sum_tdata[SUMB +: 22]};
wire [RB-1:0]        r;
wire [ALONG-1:0]     r_user;                        // {sideband, MP, HP, SP, SO, MO}
wire                 r_valid, r_ready;
mlo_divide #(.NBITS(DOWN + 8), .DBITS(SUMB), .QBITS(RB), .STEP(STEP), .UBITS(ALONG)) u_divide (
    .clk(clk), .rst(rst),
    .s_n({n_1, {DOWN{1'b1}}}), .s_d(sum_tdata[SUMB-1:0]), .s_user(sum_user),
    .s_valid(sum_tvalid), .s_ready(sum_tready),
    .m_q(r), .m_user(r_user), .m_valid(r_valid), .m_ready(r_ready)
);

// ---- stage 3: weighted sum ------------------------------------------------------------
wire                 pass_last, row_last;
wire [GW-1:0]        row_groups_1;
mlo_attention_ring #(.DEPTH(RING), .WIDTH(PE*EBITS), .GW(GW)) u_ring (
    .clk(clk), .rst(rst), .room(ring_room), .take(ring_take), .wr_en(ring_wr_en), .wr_data(ring_wr_data),
    .rd_en(mix_read), .rd_pass(pass_last), .rd_row(row_last), .rd_groups_1(row_groups_1), .rd_data(ring_rd_data)
);
mlo_attention_mix #(
    .H(H), .D(D), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .YBITS(YBITS), .LT(LT), .RB(RB), .PROB(1), .KVH(KVH), .DOWN(DOWN), .GW(GW), .AW(AW), .EB(EBITS)
) u_mix (
    .clk(clk), .rst(rst),
    .s_row_tdata({r_user, r}), .s_row_tvalid(r_valid), .s_row_tready(r_ready),
    .v_full(v_full), .v_groups_1(v_groups_1), .v_single(v_single), .v_done(v_done), .v_addr(v_addr), .v_data(v_data),
    .ring_data(ring_rd_data), .read(mix_read), .pass_last(pass_last), .row_last(row_last), .groups_1(row_groups_1),
    .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready),
    .m_axis_tuser(m_axis_tuser)
);

// ---- status ---------------------------------------------------------------------------
reg  [2:0] stat_reg;
wire       busy    = score_read;
wire       blocked = m_axis_tvalid && !m_axis_tready;
always @(posedge clk)
    stat_reg <= busy ? 3'b001 : blocked ? 3'b100 : 3'b010;
assign stat = stat_reg;

// what K and V say beyond need: their `first`, the bit of V; what other attentions have
wire unused = &{1'b0, s_axis_j_tdata[15:0], s_axis_k_tuser[0], s_axis_v_tuser[0], s_axis_v_tuser[2], v_none, v_tail, k_none, no_job, no_bias_read, bias_at};

endmodule
`default_nettype wire
