// SPDX-License-Identifier: MIT
// mlo_mvu_tiled: mlo_mvu over tiles of tokens, a row block of the matrix at a time: two blocks are in memory, not two matrices
//
// Contract   as mlo_mvu: y = requantize(W x + bias) for each token, in their order with their sideband. But the parameters are
//            brought anew for each tile: the next TILE tokens, or fewer: a group of frames ends one. ends: a word a frame, in their
//            order: 1: its token with tuser[1] (`last`) is its group's last (mlo_tile). A tile passes BLOCKS times; pass b makes
//            channels [b*N/BLOCKS, (b+1)*N/BLOCKS) of all its tokens.
// Request    tile_valid, tile_next, tile_ready: one a tile, the cycle after its first beat was taken. tile_next = 1: parameters
//            of the next iteration (its first token has tuser[0]); 0: those of the tile before, again.
// Parameters s_axis_w, s_axis_c: of each tile, for b = 0..BLOCKS-1, what mlo_mvu's header says for the N/BLOCKS channels of pass b.
//            s_axis_t: the whole table for every pass (only with TABLE = 1).
// Throughput a tile of L tokens: BLOCKS*(L*KF*NF/BLOCKS + 1) cycles, KF = K/SIMD, NF = N/PE, back to back, while tokens and
//            parameters are there and the output takes NF beats a token. KF < BLOCKS: a tile that is much shorter than the one
//            before is stored in mlo_untile while that one still leaves, and the third one may have to wait. No tile waits if
//            of any two that follow each other, of LA and LB tokens, NB = NF/BLOCKS,
//            (BLOCKS - KF)*LA*NB + KF*NB <= BLOCKS*(LB*KF*NB + 1) + KF, which is so of equal ones, and if KF >= BLOCKS.
// Latency    idle, parameters loaded, the tokens of the tile not more than KF*NF/BLOCKS cycles apart: the first one's last beat
//            taken in cycle t => its first output beat is offered in cycle
//            t + (BLOCKS-1)*(L*KF*NF/BLOCKS + 1) + (NF/BLOCKS + 1)*KF + ceil(clog2(SIMD)/2) + 15 + TURNS + TABLE
//            (TURNS: mlo_mvu), the next one's every max(KF, BLOCKS)*NF/BLOCKS cycles; a token's NF beats without a gap.
// Stall      as mlo_mvu's. A pass whose parameters are not loaded waits in front of its first token.
// Legal      as mlo_mvu's; BLOCKS >= 2 divides N/PE; TILE >= 1; RESIDENT = 0
`default_nettype none

module mlo_mvu_tiled #(
    parameter K         = 8,        // input channels, a multiple of SIMD
    parameter N         = 8,        // output channels, a multiple of PE*BLOCKS
    parameter PE        = 2,        // output channels computed side by side
    parameter SIMD      = 2,        // input channels per cycle
    parameter XBITS     = 8,        // bits of x
    parameter WBITS     = 8,        // bits of W
    parameter ABITS     = 33,       // bits of the accumulator
    parameter YBITS     = 8,        // bits of y
    parameter TABLE     = 0,        // 1: a table behind the requantization
    parameter TBITS     = 8,        // bits of the table's index
    parameter SHIFT     = 0,        // 1: scales are powers of two
    parameter PACK      = 1,        // 1: two products a multiplier
    parameter RESIDENT  = 0,        // 0: there is no other way here
    parameter AXI_WIDTH = 128,      // bits of a parameter beat
    parameter TILE      = 4,        // tokens of a tile, at most
    parameter BLOCKS    = 2         // row blocks of the matrix
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  params_last,    // of no use here
    input  wire [SIMD*XBITS-1:0] s_axis_tdata,
    input  wire                  s_axis_tvalid,
    output wire                  s_axis_tready,
    input  wire [2:0]            s_axis_tuser,
    output wire [PE*YBITS-1:0]   m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire [2:0]            m_axis_tuser,
    input  wire [AXI_WIDTH-1:0]  s_axis_w_tdata,
    input  wire                  s_axis_w_tvalid,
    output wire                  s_axis_w_tready,
    input  wire [AXI_WIDTH-1:0]  s_axis_c_tdata,
    input  wire                  s_axis_c_tvalid,
    output wire                  s_axis_c_tready,
    input  wire [AXI_WIDTH-1:0]  s_axis_t_tdata,
    input  wire                  s_axis_t_tvalid,
    output wire                  s_axis_t_tready,
    input  wire                  ends_tdata,
    input  wire                  ends_tvalid,
    output wire                  ends_tready,
    output wire                  tile_valid,
    output wire                  tile_next,
    input  wire                  tile_ready,
    output wire                  over,           // a tile was stored whole, and a group with it (mlo_tile)
    output wire                  over_group,
    output wire [2:0]            stat            // mlo_mvu's
);
    localparam ROWS = N / BLOCKS;                // channels of a pass

    generate
        if (TILE < 1)                     mlo_error_TILE_must_be_at_least_1 u_tile_least ();
        if (BLOCKS < 2)                   mlo_error_BLOCKS_must_be_at_least_2 u_blocks ();
        if (N % PE != 0)                  mlo_error_PE_must_divide_N u_pe ();
        if ((N / PE) % BLOCKS != 0)       mlo_error_BLOCKS_must_divide_N_by_PE u_divide ();
        if (RESIDENT != 0)                mlo_error_RESIDENT_must_be_0_in_tiles u_resident ();
    endgenerate

    wire [SIMD*XBITS-1:0] x_data;
    wire [PE*YBITS-1:0]   y_data;
    wire                  x_valid, x_ready, y_valid, y_ready;
    wire [2:0]            x_user, y_user;

    mlo_tile #(.WIDTH(SIMD*XBITS), .BEATS(K/SIMD), .TILE(TILE), .BLOCKS(BLOCKS)) u_tile (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready), .s_axis_tuser(s_axis_tuser),
        .m_axis_tdata(x_data), .m_axis_tvalid(x_valid), .m_axis_tready(x_ready), .m_axis_tuser(x_user),
        .ends_tdata(ends_tdata), .ends_tvalid(ends_tvalid), .ends_tready(ends_tready),
        .tile_valid(tile_valid), .tile_next(tile_next), .tile_ready(tile_ready),
        .over(over), .over_group(over_group));

    mlo_mvu #(.K(K), .N(ROWS), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .WBITS(WBITS), .ABITS(ABITS), .YBITS(YBITS), .TABLE(TABLE),
              .TBITS(TBITS), .SHIFT(SHIFT), .PACK(PACK), .RESIDENT(0), .AXI_WIDTH(AXI_WIDTH)) u_mvu (
        .clk(clk), .rst(rst), .params_last(params_last),
        .s_axis_tdata(x_data), .s_axis_tvalid(x_valid), .s_axis_tready(x_ready), .s_axis_tuser(x_user),
        .m_axis_tdata(y_data), .m_axis_tvalid(y_valid), .m_axis_tready(y_ready), .m_axis_tuser(y_user),
        .s_axis_w_tdata(s_axis_w_tdata), .s_axis_w_tvalid(s_axis_w_tvalid), .s_axis_w_tready(s_axis_w_tready),
        .s_axis_c_tdata(s_axis_c_tdata), .s_axis_c_tvalid(s_axis_c_tvalid), .s_axis_c_tready(s_axis_c_tready),
        .s_axis_t_tdata(s_axis_t_tdata), .s_axis_t_tvalid(s_axis_t_tvalid), .s_axis_t_tready(s_axis_t_tready),
        .stat(stat));

    mlo_untile #(.WIDTH(PE*YBITS), .BEATS(ROWS/PE), .TILE(TILE), .BLOCKS(BLOCKS)) u_untile (
        .clk(clk), .rst(rst),
        .s_axis_tdata(y_data), .s_axis_tvalid(y_valid), .s_axis_tready(y_ready), .s_axis_tuser(y_user),
        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tuser(m_axis_tuser));
endmodule

`default_nettype wire
