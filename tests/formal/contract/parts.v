// SPDX-License-Identifier: MIT
// The parts of mlo_mvu_tiled, left open: whatever their contracts allow may come out.
`default_nettype none

module mlo_tile #(
    parameter WIDTH = 8, BEATS = 4, TILE = 4, BLOCKS = 2
) (
    input  wire             clk, rst,
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire [2:0]       s_axis_tuser,
    output wire [WIDTH-1:0] m_axis_tdata,
    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire [2:0]       m_axis_tuser,
    input  wire             ends_tdata, ends_tvalid,
    output wire             ends_tready,
    output wire             tile_valid, tile_next,
    input  wire             tile_ready,
    output wire             over, over_group
);
    (* anyseq *) wire [WIDTH+9:0] f_any;
    assign {over, over_group, s_axis_tready, m_axis_tvalid, m_axis_tuser, m_axis_tdata, ends_tready, tile_valid, tile_next} = f_any;
    tile_rules #(.GIVEN(1), .WIDTH(WIDTH), .BEATS(BEATS), .TILE(TILE), .BLOCKS(BLOCKS)) u_rules (.clk(clk), .rst(rst),
        .s_data(s_axis_tdata), .s_valid(s_axis_tvalid), .s_ready(s_axis_tready), .s_user(s_axis_tuser),
        .m_data(m_axis_tdata), .m_valid(m_axis_tvalid), .m_ready(m_axis_tready), .m_user(m_axis_tuser),
        .ends_data(ends_tdata), .ends_valid(ends_tvalid), .ends_ready(ends_tready),
        .tile_valid(tile_valid), .tile_next(tile_next), .tile_ready(tile_ready));
endmodule

module mlo_untile #(
    parameter WIDTH = 8, BEATS = 2, TILE = 4, BLOCKS = 2
) (
    input  wire             clk, rst,
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire [2:0]       s_axis_tuser,
    output wire [WIDTH-1:0] m_axis_tdata,
    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire [2:0]       m_axis_tuser
);
    (* anyseq *) wire [WIDTH+4:0] f_any;
    assign {s_axis_tready, m_axis_tvalid, m_axis_tuser, m_axis_tdata} = f_any;
    untile_rules #(.GIVEN(1), .WIDTH(WIDTH), .BEATS(BEATS), .TILE(TILE), .BLOCKS(BLOCKS)) u_rules (.clk(clk), .rst(rst),
        .s_data(s_axis_tdata), .s_valid(s_axis_tvalid), .s_ready(s_axis_tready), .s_user(s_axis_tuser),
        .m_data(m_axis_tdata), .m_valid(m_axis_tvalid), .m_ready(m_axis_tready), .m_user(m_axis_tuser));
endmodule

// Tokens leave in the order in which they came, with their sideband, N/PE beats each, no more than CAP are inside, any time after
// they came: contract/mlo_mvu.v (tokens, CAP) and mlo_mvu's own properties (an iteration's parameters for its tokens). It may
// compute anything from a token and its iteration, so let that be {iteration, the token's words without their beat, beat}.
module mlo_mvu #(
    parameter K = 8, N = 8, PE = 2, SIMD = 2, XBITS = 8, WBITS = 8, ABITS = 33, YBITS = 8, TABLE = 0, TBITS = 8, SHIFT = 0, PACK = 1,
    parameter RESIDENT = 1, AXI_WIDTH = 128
) (
    input  wire                  clk, rst, params_last,
    input  wire [SIMD*XBITS-1:0] s_axis_tdata,
    input  wire                  s_axis_tvalid,
    output wire                  s_axis_tready,
    input  wire [2:0]            s_axis_tuser,
    output wire [PE*YBITS-1:0]   m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire [2:0]            m_axis_tuser,
    input  wire [AXI_WIDTH-1:0]  s_axis_w_tdata, s_axis_c_tdata, s_axis_t_tdata,
    input  wire                  s_axis_w_tvalid, s_axis_c_tvalid, s_axis_t_tvalid,
    output wire                  s_axis_w_tready, s_axis_c_tready, s_axis_t_tready,
    output wire [2:0]            stat
);
    localparam KF = K / SIMD, NF = N / PE, KW = (KF > 1) ? $clog2(KF) : 1, NW = (NF > 1) ? $clog2(NF) : 1;
    localparam CAP = (14 + ($clog2(SIMD) + 1) / 2 + 3 * NF) / NF, LW = $clog2(CAP + 1);         // N_LINE of contract/mlo_mvu.v
    localparam IB = SIMD * XBITS - KW, EB = IB + 7;
    (* anyseq *) wire [7:0] f_any;
    assign {s_axis_tready, m_axis_tvalid, s_axis_w_tready, s_axis_c_tready, s_axis_t_tready, stat} = f_any;
    reg              past = 1'b0, begun;
    reg [3:0]        its;                   // the iteration of the last token
    reg [IB-1:0]     id;                    // of the token that comes in
    reg [EB*CAP-1:0] line;                  // {sideband, iteration, id} of the tokens inside, the oldest lowest
    reg [LW-1:0]     level;
    wire             i_take, i_start, i_end, o_take, o_end;
    wire [2:0]       i_user, o_user;
    wire [KW-1:0]    i_beat;
    wire [NW-1:0]    o_beat;
    wire             push = i_take && i_end, pop = o_take && o_end;
    wire [LW-1:0]    kept = level - pop;
    wire [EB*CAP-1:0] rest = pop ? line >> EB : line;
    wire [3:0]       it = its + s_axis_tuser[0];
    integer          i;
    always @(posedge clk) begin
        past  <= 1'b1;
        if (i_take && i_start) id <= s_axis_tdata[SIMD*XBITS-1:KW];
        if (push) {begun, its} <= {1'b1, it};
        level <= kept + push;
        for (i = 0; i < CAP; i = i + 1)
            line[i*EB +: EB] <= push && kept == i ? {s_axis_tuser, it, s_axis_tdata[SIMD*XBITS-1:KW]} : rest[i*EB +: EB];
        if (rst) {begun, its, level} <= {1'b0, 4'd15, {LW{1'b0}}};
    end
    assign m_axis_tuser = line[EB-1 -: 3];
    assign m_axis_tdata = {line[EB-4:0], o_beat};
    stream #(.GIVEN(0), .BEATS(KF), .DATA(SIMD*XBITS)) u_in (.clk(clk), .rst(rst), .valid(s_axis_tvalid), .ready(s_axis_tready),
        .data(s_axis_tdata), .user(s_axis_tuser), .start(i_start), .ending(i_end), .take(i_take), .beat(i_beat), .token(i_user));
    stream #(.GIVEN(1), .BEATS(NF), .DATA(PE*YBITS)) u_out (.clk(clk), .rst(rst), .valid(m_axis_tvalid), .ready(m_axis_tready),
        .data(m_axis_tdata), .user(m_axis_tuser), .ending(o_end), .take(o_take), .beat(o_beat), .token(o_user));
    rule #(0) u_begins (.holds(!past || !s_axis_tvalid || begun || s_axis_tuser[0]));
    rule #(0) u_words  (.holds(!past || !s_axis_tvalid || (s_axis_tdata[KW-1:0] == i_beat && (i_start || s_axis_tdata[SIMD*XBITS-1:KW] == id))));
    rule #(1) u_room   (.holds(!past || !s_axis_tready || level < CAP));
    rule #(1) u_there  (.holds(!past || !m_axis_tvalid || level != 0));
    always @* if (past) assert (level <= CAP && (o_beat == 0 || level != 0));
endmodule
`default_nettype wire
