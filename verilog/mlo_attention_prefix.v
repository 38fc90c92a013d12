// SPDX-License-Identifier: MIT
// mlo_attention_prefix: mlo_attention whose frames of keys and values have P rows of parameters in front: memory keys and values, a bias as a key
// and a value (bias_k, bias_v), zeros (add_zero_attn), attention sinks
//
// Contract    for each query token and head, over the P + Tk keys of its frame, of which 0 .. P-1 are the rows of its iteration and P .. the frame's own:
//             mlo_attention's formulas, with LT = clog2(T + P).
//             The rows always count; of the frame's own those whose bit (s_axis_k_tuser[2]) says so.
//             CAUSAL = 1: of the frame's own only keys j <= i count for its query i; the rows do for each.
//             BIAS = 1: s[j] = sum_d q[d] * k[j][d] + b[h][j] * 2^SHIFT, j over all P + Tk, b of BIASH = H heads (1: all have the same), of all queries
//             alike; where b is -2^15 the key does not count, a row neither. (A sink: a row of zeros as key and value, b its score in each head.)
// How it is built. mlo_prefix in front of K, another one in front of V, and mlo_attention, of T + P tokens: CAUSAL with PAST = 1, whose word, P, is
//             always there.
// Throughput  mlo_attention's, of P + Tk keys. K and V: a frame of Tk tokens takes (P + Tk)*KVH*DS cycles, DS = D/SIMD, and 1 more with `first`
// Latency     mlo_attention's, of P + Tk keys (CAUSAL: of the row's), and 2 cycles more where the last beat of K or V comes last; an iteration's first
//             row waits for its constants only as far as it came less than those cycles before its last key.
//             A frame's first beat of K or V is taken P*KVH*DS cycles after it came (and 1 more with `first`), if its rows are loaded
// Stall       as mlo_attention; rows that are not loaded hold K, V
// Parameters  s_axis_kp, s_axis_vp: P*KVH*DS words of SIMD*XBITS bits, row after row, channel g*D + d as in K and V;
//             s_axis_c: as mlo_attention's of T + P tokens, BIAS: ceil((T + P)/PE) words a row of b
// Legal       as mlo_attention of T + P tokens; P, T >= 1; a frame of K and V has 1 .. T tokens, one of Q as many (CAUSAL), T + P at most (BIAS), or any number;
//             `first` comes with the first token of a frame only; CAUSAL: PE is a power of two; T + P <= 65535
`default_nettype none
module mlo_attention_prefix #(
    parameter H     = 2,        // heads
    parameter D     = 4,        // channels of a head
    parameter T     = 4,        // tokens of a frame at most
    parameter P     = 1,        // rows in front of its keys and values
    parameter PE    = 2,        // keys in parallel, 1 .. T + P
    parameter SIMD  = 2,        // channels in parallel, divides D
    parameter XBITS = 8,        // bits of q, k and v
    parameter YBITS = 8,        // bits of y
    parameter RESIDENT  = 0,    // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128,  // bits of a parameter beat
    parameter STEP  = 2,        // quotient bits per cycle
    parameter EBITS = 8,        // bits of an exponential: 8, or, for rows of more than 256 keys, 12
    parameter KVH   = H,        // heads of keys and values
    parameter CAUSAL = 0,       // 1: of the frame's own, keys up to the query's count
    parameter BIAS  = 0,        // 1: there is a bias, of so many heads, in steps of 2^SHIFT
    parameter BIASH = 1,
    parameter SHIFT = 0
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
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
    // constants and bias; rows of keys, of values
    input  wire [AXI_WIDTH-1:0]  s_axis_c_tdata,
    input  wire                  s_axis_c_tvalid,
    output wire                  s_axis_c_tready,
    input  wire [AXI_WIDTH-1:0]  s_axis_kp_tdata,
    input  wire                  s_axis_kp_tvalid,
    output wire                  s_axis_kp_tready,
    input  wire [AXI_WIDTH-1:0]  s_axis_vp_tdata,
    input  wire                  s_axis_vp_tvalid,
    output wire                  s_axis_vp_tready,
    output wire [SIMD*YBITS-1:0] m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire [2:0]            m_axis_tuser,
    // [0] the multipliers of scores work (those of sums work as often, at other times), [1] starved, [2] blocked
    output wire [2:0]            stat
);

localparam BEATS = KVH * D / SIMD;                  // of a token of keys
localparam XW    = SIMD * XBITS;
localparam [31:0] P_32 = P;

generate
    if (P < 1 || T < 1) mlo_error_P_and_T_must_be_at_least_1 u_rows();
    if (T + P > 65535) mlo_error_T_and_P_must_be_65535_at_most_together u_tokens();
    if (CAUSAL != 0 && (PE & (PE - 1)) != 0) mlo_error_CAUSAL_needs_PE_a_power_of_two u_pe();
endgenerate

wire [XW-1:0] k_tdata, v_tdata;
wire [2:0]    k_tuser, v_tuser;
wire          k_tvalid, k_tready, v_tvalid, v_tready;
mlo_prefix #(.BEATS(BEATS), .WIDTH(XW), .P(P), .RESIDENT(RESIDENT), .AXI_WIDTH(AXI_WIDTH)) u_k (
    .clk(clk), .rst(rst), .params_last(params_last),
    .s_axis_tdata(s_axis_k_tdata), .s_axis_tvalid(s_axis_k_tvalid), .s_axis_tready(s_axis_k_tready), .s_axis_tuser(s_axis_k_tuser),
    .m_axis_tdata(k_tdata), .m_axis_tvalid(k_tvalid), .m_axis_tready(k_tready), .m_axis_tuser(k_tuser),
    .s_axis_p_tdata(s_axis_kp_tdata), .s_axis_p_tvalid(s_axis_kp_tvalid), .s_axis_p_tready(s_axis_kp_tready)
);
mlo_prefix #(.BEATS(BEATS), .WIDTH(XW), .P(P), .RESIDENT(RESIDENT), .AXI_WIDTH(AXI_WIDTH)) u_v (
    .clk(clk), .rst(rst), .params_last(params_last),
    .s_axis_tdata(s_axis_v_tdata), .s_axis_tvalid(s_axis_v_tvalid), .s_axis_tready(s_axis_v_tready), .s_axis_tuser(s_axis_v_tuser),
    .m_axis_tdata(v_tdata), .m_axis_tvalid(v_tvalid), .m_axis_tready(v_tready), .m_axis_tuser(v_tuser),
    .s_axis_p_tdata(s_axis_vp_tdata), .s_axis_p_tvalid(s_axis_vp_tvalid), .s_axis_p_tready(s_axis_vp_tready)
);

// CAUSAL: a frame's query 0 has position P, whichever frame it is
wire          unused_j;
mlo_attention #(
    .H(H), .D(D), .T(T + P), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .YBITS(YBITS), .RESIDENT(RESIDENT), .AXI_WIDTH(AXI_WIDTH), .STEP(STEP), .EBITS(EBITS),
    .KVH(KVH), .CAUSAL(CAUSAL), .BIAS(BIAS), .BIASH(BIASH), .BIAST(1), .SHIFT(SHIFT), .PAST(CAUSAL)
) u_attention (
    .clk(clk), .rst(rst), .params_last(params_last),
    .s_axis_j_tdata({P_32[15:0], 16'd0}), .s_axis_j_tvalid(1'b1), .s_axis_j_tready(unused_j),
    .s_axis_q_tdata(s_axis_q_tdata), .s_axis_q_tvalid(s_axis_q_tvalid), .s_axis_q_tready(s_axis_q_tready), .s_axis_q_tuser(s_axis_q_tuser),
    .s_axis_k_tdata(k_tdata), .s_axis_k_tvalid(k_tvalid), .s_axis_k_tready(k_tready), .s_axis_k_tuser(k_tuser),
    .s_axis_v_tdata(v_tdata), .s_axis_v_tvalid(v_tvalid), .s_axis_v_tready(v_tready), .s_axis_v_tuser(v_tuser),
    .s_axis_c_tdata(s_axis_c_tdata), .s_axis_c_tvalid(s_axis_c_tvalid), .s_axis_c_tready(s_axis_c_tready),
    .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tuser(m_axis_tuser),
    .stat(stat)
);

wire unused = &{1'b0, unused_j, P_32[31:16]};

endmodule
`default_nettype wire
