// SPDX-License-Identifier: MIT
// mlo_attention: multi-head attention of integer tokens: softmax(Q K^T) V, frame by frame
//
// Contract    for each query token and head (a *row*), over the Tk keys of its frame:
//   s[j] = sum_d q[d] * k[j][d]      exact. If no key of the frame is valid, all count, with s = 0
//          CAUSAL = 1: only keys j <= i count for the frame's query i. BAND = 1: only i - BACK <= j <= i + AHEAD.
//          Then a row of which no key counts gives y = 0
//          CACHE > 0: the frame's tokens are those of positions `start` on (of its word at s_axis_j), so queries and keys have the numbers i, j >= start;
//          keys j < start are those of the jobs before, and the bias is that of i, too
//   mx   = max s[j] over the keys that count
//   t[j] = ((mx - s[j]) * MS + 2^(SS-1)) >> SS, at most 4095      unit: 1/64 octave
//   e[j] = round(255 * 2^(EBITS-8) * 2^(-t[j]/64)) if key j counts, else 0      (mlo_exp2 has the exact form)
//   R    = floor(MO * 2^(LT+EBITS) / sum_j e[j]),  LT = clog2(T)
//   y[d] = clip((sum_j e[j]*v[j][d] * R + 2^(SO-1)) >>> SO)       YBITS signed
// Head h of the queries reads head h / (H/KVH) of the keys and values.
// BIAS = 1: s[j] = sum_d q[d] * k[j][d] + b[h][i][j] * 2^SHIFT for the frame's query i, b of BIASH = H heads (1: all have the same)
//          and BIAST = T queries (1: all have the same). Where b is -2^15 the key does not count. A row of which no key counts gives y = 0
// CAP = 1: a score is under a soft cap, s[j] = C(clip((s[j] * MC + 2^(SC-1)) >>> SC)), C(u) = 65535 tanh(u / 8192) (mlo_attention_cap has the exact form)
// Rounded on the way: t (1/64 octave), e (EBITS bits, 8 or 12), R (16 bits or more); everything else is exact.
// PROB = 1 rounds the probabilities of a row as a quantized source does, ROUND = 1 its scores, too:
//   s[j] = clip(((s[j] * MR + 2^(SR-1)) >>> SR) + ZR) to 8 bits, if ROUND, mx of those
//   t[j] = ((mx - s[j]) * MS + 2^(SS-1)) >> SS, at most 2^17 - 1  unit: 1/4096 octave
//   e[j] = round(262143 * 2^(-t[j]/4096))                         (mlo_exp2_fine has the exact form)
//   R    = floor(MP * 2^(LT+18) / sum_j e[j])
//   w[j] = min((e[j] * R + 2^(SP-1)) >> SP, HP)
//   y[d] = clip((sum_j w[j]*v[j][d] * MO + 2^(SO-1)) >>> SO)      YBITS signed
//
// How it is built. Three stages work on three rows at a time; each passes on whole rows:
//
//   s_axis_k -> [kv] ---.                                 s_axis_v -> [kv] --.
//   s_axis_q -> [q] -> [score] -> [softmax] -> sum -> [divide] -> R -> [mix] -> m_axis
//                        ^  \-max-^      \---- e ---> [ring] -----------^
//   s_axis_c -> [param] -'   the row's sideband and constants travel along
//
//   score    PE keys x SIMD channels per cycle. Group of PE keys after group, each in
//            DS = D/SIMD steps: a group's scores are complete, and leave, every DS cycles.
//   softmax  needs the row's maximum, so it starts when the last score is there; meanwhile
//            score works on the next row. ceil(PE/DS) exponentials per cycle keep up.
//   divide   needs the sum, so it starts when the last e is there; a division per row.
//   mix      PE keys x SIMD channels per cycle again, SIMD channels after SIMD channels,
//            each over all groups: one accumulator per lane, a beat of y every `groups`
//            cycles. R is wanted at the end of the first pass; to wait for it at the
//            start costs a longer ring instead of a stalled pipeline.
//
// No stage ever stops in the middle of its pipeline. Each unit of work (a group's scores, a
// group's weights, a beat of y) reserves its place in the queue behind the pipeline before
// it starts, and there is one rule to check: what was reserved fits. The queues are as long
// as a row plus the latency around them, so that no reservation fails while things flow.
//
// Frames. K and V are held twice (mlo_attention_kv): the next frame's arrive while this
// one's are read. Scores start when the frame's last K beat is in, mix when its last V beat
// is. K is released after the last score step of the query token with `last`, V after its
// last mix step. Frames of K and V have the same length, 1..T; a frame of Q has any length.
// Cache. CACHE > 0: K and V are held in CACHE banks that stay. Each frame has a word at s_axis_j, {start, bank}, which K, V and the
// rows of Q wait for: it is written to positions `start` .. of `bank`, and read from position 0 on. A position that
// is written again is forgotten with all behind it: a row walks no farther than to its own (so a sequence may be taken up anywhere it
// has been). What is written beside the last token, in its group's lanes, is no key for the same reason. Two frames are held at
// most, as without.
// Past. PAST = 1: the cache is in front of this (mlo_kv), which sends the keys and values of positions 0 .. start - 1 ahead of
// the frame's own; they are held as without a cache, and only rows begin at position `start`.
// Iterations. The constants of a row with `first` (of the first head) are fetched while it is
// scored, and then travel with the row: rows of two iterations may be under way at once.
// Bias. Its numbers lie in the memory of the constants, in the order of the scores; a row waits for them as for those.
// Groups. CAUSAL or BAND: a row walks only the groups that its keys are in (mlo_attention_walk); how many,
// and with BAND where, travels with the row, too. Its constants say that, so BAND waits for them.
//
// With groups = ceil(Tk/PE) (CAUSAL, BAND: of the row), DS = D/SIMD, ES = ceil(PE / ceil(PE/DS)),
//      CY = ceil((17 + LT) / STEP), clog2(1) = 0:
// Throughput  a row per max(groups * DS, CY + 1) cycles, H rows per token, also across tokens,
//             frames and iterations, as long as the inputs are there (where the length of frames
//             changes, the queues matter too: schedule() in tests/verilog/attention.py is exact)
// Latency     from the last beat of K, V and the token's first D channels, whichever comes
//             last, to the first m_axis_tvalid:
//             groups * (DS + ES + 1) + CY + 28 + clog2(SIMD) + clog2(PE) cycles, and 9 * PROB + 7 * ROUND + 10 * CAP
//             (an iteration's first row has its constants 3 cycles after it came: + 3 - groups*DS if positive; BAND: + 2;
//             BIAS: + 2 + ceil(64 / (16*PE)); BAND and CACHE: + 1 for a frame's first row, once its constants are there)
// Stall       m_axis_tready low: fills its queues and stops reading Q
// Multipliers 2 * PE * SIMD, and ceil(PE/DS) in exp2, SIMD in requantization; PROB: PE more and 2 * ceil(PE/DS) in exp2, ROUND: ceil(PE/DS) + 1 more, CAP: 2 * (ceil(PE/DS) + 1) more
//             CACHE: none more (a job's bank and first group are found by shifted additions)
// Legal       H, T >= 1; SIMD divides D; PE in 1..T; XBITS, YBITS in 2..16; STEP >= 1;
//             0 <= MS, MO < 2^16; 1 <= SS, SO, SP, SR <= 62; 0 <= MP < 2^15, MR < 2^18, HP < 2^8; ZR of 8 bits, signed; ROUND only with PROB;
//             KVH divides H; EBITS is 8 or 12; CAUSAL, BAND: a frame of Q has no more tokens than its K; 0 <= BACK, AHEAD < T;
//             CAP: PROB = BIAS = 0; 0 <= MC < 2^15, 1 <= SC <= 62;
//             BIAS: PROB = BAND = 0, a frame of Q has no more tokens than T; SHIFT in 0..23
//             PAST = 1: CACHE = 0, and the same of T, PE and `start`; frames of K and V have `start` tokens more than their Q
//             CACHE: CAUSAL = 1, PE a power of two, T <= 2^16; start + tokens <= T; positions below `start` of the bank have been written;
//             bank < CACHE; a frame whose bank another one has comes when the other's last beat has left
`default_nettype none
module mlo_attention #(
    // heads
    parameter H = 2,
    // channels of a head
    parameter D = 4,
    // tokens of a frame at most
    parameter T = 4,
    // keys in parallel, 1..T
    parameter PE = 2,
    // channels in parallel, divides D
    parameter SIMD = 2,
    // bits of q, k and v
    parameter XBITS = 8,
    // bits of y
    parameter YBITS = 8,
    // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter RESIDENT = 0,
    // bits of a parameter beat
    parameter AXI_WIDTH = 128,
    // quotient bits per cycle
    parameter STEP = 2,
    // 1: probabilities are rounded. 1: scores are, too
    parameter PROB = 0,
    parameter ROUND = 0,
    // 1: scores are under a soft cap
    parameter CAP = 0,
    // bits of an exponential without PROB: 8, or, for rows of more than 256 keys, 12
    parameter EBITS = 8,
    // heads of keys and values
    parameter KVH = H,
    // 1: keys up to the query's own count. 1: keys near it
    parameter CAUSAL = 0,
    parameter BAND = 0,
    // 1: there is a bias, of so many heads and queries, in steps of 2^SHIFT
    parameter BIAS = 0,
    parameter BIASH = 1,
    parameter BIAST = 1,
    parameter SHIFT = 0,
    // banks of keys and of values that stay, one an iteration of each sequence; 0: two frames' in turn
    parameter CACHE = 0,
    // 1: K and V come with what is before job_start
    parameter PAST = 0
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    // CACHE, PAST: of each frame {start[15:0], bank[15:0]}
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
    // one word per iteration: [15:0] MS, [21:16] SS, [47:32] MO, [53:48] SO
    // CAP: and [79:64] MC, [85:80] SC, of as many bits more
    // PROB: and [79:64] MP, [85:80] SP, [95:88] HP, [113:96] MR, [119:114] SR, [127:120] ZR
    // BAND: and as many bits more, of those [23:0] BACK, [47:24] AHEAD / PE, [63:48] AHEAD mod PE
    // BIAS: words of PE * 16 bits; first the bias, ceil(T/PE) words a row, then those of the one word
    input  wire [AXI_WIDTH-1:0]  s_axis_c_tdata,
    input  wire                  s_axis_c_tvalid,
    output wire                  s_axis_c_tready,
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
localparam BW    = (T > 1) ? $clog2(T) : 1;         // of BACK
localparam PARTLY = (CAUSAL != 0 || BAND != 0) ? 1 : 0;
localparam EMPTY = (PARTLY != 0 || BIAS != 0) ? 1 : 0;  // a row may have no key that counts
localparam BWORDS = BIASH * BIAST * G;              // of the bias
localparam BA    = (BWORDS > 1) ? $clog2(BWORDS) : 1;
localparam WALK  = GW * PARTLY + AW * BAND;         // of what travels with a row of its groups
localparam SIDE  = 3 + WALK;                        // and with its sideband
localparam DOTS  = 2 * XBITS + ((D > 1) ? $clog2(D) : 1);   // of a sum of products
localparam SB    = (BIAS == 0) ? DOTS : 1 + ((DOTS > 17 + SHIFT) ? DOTS : 17 + SHIFT);   // of a score: a distance has a bit less
localparam EB    = (PROB != 0) ? 18 : EBITS;            // of e
localparam SUMB  = EB + LT;                         // of the sum of e
localparam RB    = 17 + LT;                         // of R: MO * 2^(LT+EBITS) / (255 * 2^(EBITS-8)), MP * 2^(LT+18) / 262143 at most
localparam PAR   = 44 + 30*PROB + 32*ROUND + 22*CAP;         // of the constants of a row
localparam INFO  = 22 + 30*PROB;                    // of those that go on behind the exponentials
localparam LATER = 9*PROB + 7*ROUND + 10*CAP;                // cycles
localparam LANES = (PE + DS - 1) / DS;              // exponentials in parallel
localparam XW    = SIMD * XBITS;
// The ring holds the row that mix reads, the next one, and what softmax writes from then
// until mix starts with that one: 12 cycles and the division. If rows are shorter than a
// division, that may be two rows (twice CY + 1); four rows are always enough.
localparam CY       = (RB + STEP - 1) / STEP;
localparam RING_LONG = 2 * G + 2 * ((CY + DS) / DS) + (14 + LATER) / DS + 2;
localparam RING     = (RING_LONG < 4 * G + 2) ? RING_LONG : 4 * G + 2;

generate
    if (H < 1) mlo_error_H_must_be_at_least_1 u_h();
    if (KVH < 1 || H % KVH != 0) mlo_error_KVH_must_divide_H u_kvh();
    if (CAUSAL < 0 || CAUSAL > 1 || BAND < 0 || BAND > 1) mlo_error_CAUSAL_and_BAND_must_be_0_or_1 u_partly();
    if (BIAS < 0 || BIAS > 1 || (BIAS != 0 && (PROB != 0 || BAND != 0))) mlo_error_BIAS_must_be_0_or_1_without_PROB_and_BAND u_bias();
    if (BIAS != 0 && ((BIASH != 1 && BIASH != H) || (BIAST != 1 && BIAST != T))) mlo_error_BIASH_must_be_H_or_1_and_BIAST_T_or_1 u_bias_form();
    if (CAP < 0 || CAP > 1 || (CAP != 0 && (PROB != 0 || BIAS != 0))) mlo_error_CAP_must_be_0_or_1_without_PROB_and_BIAS u_cap();
    if (EBITS != 8 && EBITS != 12) mlo_error_EBITS_must_be_8_or_12 u_ebits();
    if (SHIFT < 0 || SHIFT > 23) mlo_error_SHIFT_must_be_0_to_23 u_shift();
    if (SIMD < 1 || D < 1 || D % SIMD != 0) mlo_error_SIMD_must_divide_D u_simd();
    if (PROB < 0 || PROB > 1 || ROUND < 0 || ROUND > PROB) mlo_error_PROB_and_ROUND_must_be_0_or_1_and_ROUND_needs_PROB u_prob();
    if (PE < 1 || PE > T) mlo_error_PE_must_be_1_to_T u_pe();
    if (PAST < 0 || PAST > 1 || (PAST != 0 && CACHE != 0)) mlo_error_PAST_must_be_0_or_1_without_CACHE u_past();
    if (CACHE < 0 || ((CACHE != 0 || PAST != 0) && (CAUSAL == 0 || (PE & (PE - 1)) != 0))) mlo_error_CACHE_needs_CAUSAL_and_PE_a_power_of_two u_cache();
    if (XBITS < 2 || XBITS > 16 || YBITS < 2 || YBITS > 16) mlo_error_XBITS_and_YBITS_must_be_2_to_16 u_bits();
endgenerate

// ---- a frame's word: for K, V and the rows of Q --------------------------------------------
wire [2:0]           job_valid, job_ready;
wire [31:0]          job;
wire [15:0]          job_start = job[31:16], job_bank = job[15:0];
generate
    if (CACHE != 0) begin : g_jobs
        mlo_fork #(.WIDTH(32), .N(3)) u_job (
            .clk(clk), .rst(rst), .s_tdata(s_axis_j_tdata), .s_tvalid(s_axis_j_tvalid), .s_tready(s_axis_j_tready),
            .m_tdata(job), .m_tvalid(job_valid), .m_tready(job_ready));
    end else begin : g_job
        assign job             = s_axis_j_tdata;
        assign job_valid       = {s_axis_j_tvalid, 2'b00};
        assign s_axis_j_tready = job_ready[2];
        wire unused_ready      = &{1'b0, job_ready[1:0]};
    end
endgenerate

// ---- memories ---------------------------------------------------------------------------
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

// a key's mask bit is stored with each of its beats
wire                 k_full, k_single, k_none, k_done;
wire [GW-1:0]        k_groups_1;
wire [PE-1:0]        k_tail;
wire [AW-1:0]        k_addr;
wire [PE*(XW+1)-1:0] k_data;
mlo_attention_kv #(.T(T), .BEATS(BEATS), .PE(PE), .WIDTH(XW + 1), .CACHE(CACHE)) u_k (
    .clk(clk), .rst(rst), .job_valid(job_valid[0]), .job_ready(job_ready[0]), .job_start(job_start), .job_bank(job_bank),
    .s_tdata({s_axis_k_tuser[2], s_axis_k_tdata}), .s_last(s_axis_k_tuser[1]), .s_key(s_axis_k_tuser[2]),
    .s_tvalid(s_axis_k_tvalid), .s_tready(s_axis_k_tready),
    .full(k_full), .groups_1(k_groups_1), .single(k_single), .tail(k_tail), .none(k_none), .done(k_done),
    .rd_en(score_read), .rd_addr(k_addr), .rd_data(k_data)
);

wire                 v_full, v_single, v_none, v_done, mix_read;
wire [GW-1:0]        v_groups_1;
wire [PE-1:0]        v_tail;
wire [AW-1:0]        v_addr;
wire [PE*XW-1:0]     v_data;
mlo_attention_kv #(.T(T), .BEATS(BEATS), .PE(PE), .WIDTH(XW), .CACHE(CACHE)) u_v (
    .clk(clk), .rst(rst), .job_valid(job_valid[1]), .job_ready(job_ready[1]), .job_start(job_start), .job_bank(job_bank),
    .s_tdata(s_axis_v_tdata), .s_last(s_axis_v_tuser[1]), .s_key(1'b1),
    .s_tvalid(s_axis_v_tvalid), .s_tready(s_axis_v_tready),
    .full(v_full), .groups_1(v_groups_1), .single(v_single), .tail(v_tail), .none(v_none), .done(v_done),
    .rd_en(mix_read), .rd_addr(v_addr), .rd_data(v_data)
);

wire                 par_first, par_ok;
wire [PAR-1:0]       par_data;             // {[ZR, SR, MR,] [HP, SP, MP,] [SC, MC,] SO, MO, SS, MS}
wire [LW+GW+BW-1:0]  par_reach;
wire                 bias_read;
wire [BA-1:0]        bias_at;
wire [PE*16-1:0]     bias;
mlo_attention_param #(
    .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT), .PROB(PROB), .ROUND(ROUND), .CAP(CAP), .BAND(BAND), .BW(BW), .GW(GW), .LW(LW), .BIAS(BIAS), .WORDS(BWORDS), .PE(PE)
) u_param (
    .clk(clk), .rst(rst), .params_last(params_last),
    .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready),
    .full(q_full), .first(par_first), .done(q_done), .ok(par_ok), .data(par_data), .reach(par_reach),
    .bias_read(bias_read), .bias_at(bias_at), .bias(bias)
);

// ---- stage 1: scores ------------------------------------------------------------------
wire [PE*(SB+1):0]   score_tdata;
wire [PAR+SIDE-1:0]  row_tdata;
wire [SB-1:0]        max_tdata;
wire                 score_tvalid, score_tready, row_tvalid, row_tready, max_tvalid;
wire                 k_nothing = EMPTY == 0 && k_none;
mlo_attention_score #(
    .H(H), .D(D), .G(G), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .PAR(PAR), .KVH(KVH), .CAUSAL(CAUSAL), .BAND(BAND), .BW(BW), .GW(GW), .AW(AW),
    .SB(SB), .BIAS(BIAS), .BIASH(BIASH), .BIAST(BIAST), .SHIFT(SHIFT), .CACHE(CACHE != 0 || PAST != 0 ? 1 : 0)
) u_score (
    .clk(clk), .rst(rst), .job_valid(job_valid[2]), .job_ready(job_ready[2]), .job_start(job_start),
    .row_full(q_full), .row_user(q_user), .row_done(q_done), .row_addr(q_addr), .row_data(q_data),
    .k_full(k_full), .k_groups_1(k_groups_1), .k_single(k_single), .k_tail(k_tail), .k_none(k_nothing), .k_done(k_done),
    .k_addr(k_addr), .k_data(k_data), .read(score_read),
    .par_first(par_first), .par_ok(par_ok), .par_data(par_data), .par_reach(par_reach),
    .bias_read(bias_read), .bias_at(bias_at), .bias(bias),
    .m_score_tdata(score_tdata), .m_score_tvalid(score_tvalid), .m_score_tready(score_tready),
    .m_row_tdata(row_tdata), .m_row_tvalid(row_tvalid),
    .m_max_tdata(max_tdata), .m_max_tvalid(max_tvalid), .m_row_tready(row_tready)
);

// ---- stage 2: exponentials, sum, division -------------------------------------------------
wire                 ring_room, ring_take, ring_wr_en;
wire [PE*EB-1:0]     ring_wr_data, ring_rd_data;
wire [SUMB+INFO+SIDE-1:0] sum_tdata;                // {sideband, [HP, SP, MP,] SO, MO, sum}
wire                 sum_tvalid, sum_tready;
mlo_attention_softmax #(.PE(PE), .LANES(LANES), .SB(SB), .SUMB(SUMB), .PROB(PROB), .ROUND(ROUND), .CAP(CAP), .SIDE(SIDE), .PARTLY(EMPTY), .EBITS(EBITS)) u_softmax (
    .clk(clk), .rst(rst),
    .s_score_tdata(score_tdata), .s_score_tvalid(score_tvalid), .s_score_tready(score_tready),
    .s_row_tdata(row_tdata), .s_row_tvalid(row_tvalid),
    .s_max_tdata(max_tdata), .s_max_tvalid(max_tvalid), .s_row_tready(row_tready),
    .ring_room(ring_room), .ring_take(ring_take), .ring_wr_en(ring_wr_en), .ring_wr_data(ring_wr_data),
    .m_sum_tdata(sum_tdata), .m_sum_tvalid(sum_tvalid), .m_sum_tready(sum_tready)
);

// PROB: MP is divided, and MO goes along
localparam ALONG = 9 + 30*PROB + WALK;
wire [15:0]          numerator;
wire [ALONG-1:0]     sum_user;                      // {sideband, [HP, SP,] SO, [MO]}
generate
    if (PROB == 0) begin : g_sums
        assign numerator = sum_tdata[SUMB +: 16];
        assign sum_user  = sum_tdata[SUMB+16 +: ALONG];
    end else begin : g_prob
        assign numerator = sum_tdata[SUMB+22 +: 16];
        assign sum_user  = {sum_tdata[SUMB+38 +: 14+SIDE], sum_tdata[SUMB +: 22]};
    end
endgenerate
wire [RB-1:0]        r;
wire [ALONG-1:0]     r_user;
wire                 r_valid, r_ready;
mlo_divide #(.NBITS(16 + EB + LT), .DBITS(SUMB), .QBITS(RB), .STEP(STEP), .UBITS(ALONG)) u_divide (
    .clk(clk), .rst(rst),
    .s_n({numerator, {LT+EB{1'b0}}}), .s_d(sum_tdata[SUMB-1:0]), .s_user(sum_user),
    .s_valid(sum_tvalid), .s_ready(sum_tready),
    .m_q(r), .m_user(r_user), .m_valid(r_valid), .m_ready(r_ready)
);

// ---- stage 3: weighted sum ------------------------------------------------------------
wire                 pass_last, row_last;
wire [GW-1:0]        row_groups_1;
mlo_attention_ring #(.DEPTH(RING), .WIDTH(PE*EB), .GW(GW)) u_ring (
    .clk(clk), .rst(rst), .room(ring_room), .take(ring_take), .wr_en(ring_wr_en), .wr_data(ring_wr_data),
    .rd_en(mix_read), .rd_pass(pass_last), .rd_row(row_last), .rd_groups_1(row_groups_1), .rd_data(ring_rd_data)
);
mlo_attention_mix #(
    .H(H), .D(D), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .YBITS(YBITS), .LT(LT), .PROB(PROB), .EBITS(EBITS), .KVH(KVH), .CAUSAL(CAUSAL), .BAND(BAND), .GW(GW), .AW(AW)
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

// what K and V say beyond need: their `first`, the mask of V
wire unused = &{1'b0, s_axis_k_tuser[0], s_axis_v_tuser[0], s_axis_v_tuser[2], v_none, v_tail};

endmodule
`default_nettype wire
