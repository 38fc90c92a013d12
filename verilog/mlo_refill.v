// SPDX-License-Identifier: MIT
// mlo_refill: brings a kernel in block mode the parameters of every tile from memory
//
// Contract    the kernel goes through its matrix once a tile (see mlo_tile), so its parameters are read anew for each.  What an iteration of
// the loop needs lies together: for each of BLOCKS row blocks the beats of port 0, then those of port 1, ..., without gaps.  It
// begins OFFSET beats from the base, that of the next iteration STRIDE beats further on.
// A request is a tile: tile_next = 1: the first of an iteration (iteration 0 for the first tile after flush, then the next one, and
// 0 again after the last); tile_next = 0: of the same iteration as the tile before.  It becomes one command of mlo_axi_reader,
// mlo_router deals the beats out, and the banks of the kernel's mlo_param say when to go on.
//
// Throughput: one beat a cycle, also from one tile to the next, if requests come in time: the reader asks for the next tile's
//             beats as soon as it has asked for all of this one's; one request more waits here (tile_ready is low then), so the
//             reader's FIFO always holds what is wanted next.  A tile takes 3 cycles at least, a burst 2.
// Latency:    from a request taken to ARVALID 4 cycles, then the memory's, then 3 from a beat of R to m_axis (when all is idle).
// Stall:      a port whose memory is full holds back those behind it
// Legal       base, iterations (0 acts as 1) must stand still from flush on.
// flush:      forget everything: the next tile is of iteration 0 (see mlo_axi_reader).  Requests taken while it is high are
//             forgotten, too.  `rst` is for power-up only, when the memory side is reset, too.
// error:      sticky until flush: a read failed.  idle: no request and no beat is under way at the memory.
`default_nettype none
module mlo_refill #(
    // bits of a byte address
    parameter ADDR_WIDTH = 64,
    // bits of a beat
    parameter DATA_WIDTH = 128,
    // number of parameter streams
    parameter PORTS      = 2,
    // beats of port p per block at [32*p +: 32], each >= 1
    parameter [32*PORTS-1:0] BEATS = {PORTS{32'd1}},
    // blocks of an iteration, >= 1
    parameter BLOCKS     = 2,
    // beats from base to block 0 of iteration 0
    parameter [47:0] OFFSET = 48'd0,
    // beats from an iteration to the next one
    parameter [47:0] STRIDE = 48'd4,
    // of mlo_axi_reader
    parameter FIFO_BEATS = 512,
    parameter MAX_BURST  = 64
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    input  wire [ADDR_WIDTH-1:0] base,
    input  wire [15:0]           iterations,
    output wire                  error,
    output wire                  idle,

    input  wire                  tile_valid,
    input  wire                  tile_next,
    output wire                  tile_ready,

    output wire                  m_axi_arid,
    output wire [ADDR_WIDTH-1:0] m_axi_araddr,
    output wire [7:0]            m_axi_arlen,
    output wire [2:0]            m_axi_arsize,
    output wire [1:0]            m_axi_arburst,
    output wire                  m_axi_arvalid,
    input  wire                  m_axi_arready,
    input  wire                  m_axi_rid,
    input  wire [DATA_WIDTH-1:0] m_axi_rdata,
    input  wire [1:0]            m_axi_rresp,
    input  wire                  m_axi_rlast,
    input  wire                  m_axi_rvalid,
    output wire                  m_axi_rready,

    output wire [DATA_WIDTH-1:0] m_axis_tdata,     // shared by all ports
    output wire [PORTS-1:0]      m_axis_tvalid,    // at most one bit set
    input  wire [PORTS-1:0]      m_axis_tready
);
    localparam SIZE = $clog2(DATA_WIDTH / 8);                   // log2 of the bytes of a beat
    // Beats of so many blocks.
    function [47:0] beats(input [31:0] blocks);
        integer p;
        begin
            beats = 48'd0;
            for (p = 0; p < PORTS; p = p + 1) beats = beats + {16'd0, BEATS[32*p +: 32]};
            beats = beats * {16'd0, blocks};
        end
    endfunction
    localparam [47:0] TILE = beats(BLOCKS);

    generate
        if (BLOCKS < 1) mlo_error_BLOCKS_must_be_positive u_error_blocks ();
    endgenerate

    // The command that waits or was given last: where its iteration lies.
    reg         waits;                  // a command waits for the reader
    reg         begun;                  // there was a tile since flush
    reg  [47:0] offset;                 // beats from base
    reg  [15:0] iteration;
    wire        cmd_ready;
    wire        last = (iteration + 16'd1 >= iterations);
    assign tile_ready = !waits;
    always @(posedge clk) begin
        if (cmd_ready) waits <= 1'b0;
        if (tile_valid && tile_ready) begin
            waits <= 1'b1;
            begun <= 1'b1;
            if (tile_next && begun) begin
                offset    <= last ? OFFSET : offset + STRIDE;
                iteration <= last ? 16'd0  : iteration + 16'd1;
            end
        end
        if (rst || flush) begin
            waits     <= 1'b0;
            begun     <= 1'b0;
            offset    <= OFFSET;
            iteration <= 16'd0;
        end
    end

    wire [63:0]           bytes = {16'd0, offset} << SIZE;
    wire [DATA_WIDTH-1:0] data;
    wire                  valid, ready, closing;

    mlo_axi_reader #(
        .ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(DATA_WIDTH), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)
    ) u_reader (
        .clk(clk), .rst(rst), .flush(flush), .idle(idle), .error(error),
        .cmd_addr(base + bytes[ADDR_WIDTH-1:0]), .cmd_beats(TILE), .cmd_valid(waits), .cmd_ready(cmd_ready),
        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen),
        .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst), .m_axi_arvalid(m_axi_arvalid),
        .m_axi_arready(m_axi_arready), .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata),
        .m_axi_rresp(m_axi_rresp), .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid),
        .m_axi_rready(m_axi_rready),
        .m_axis_tdata(data), .m_axis_tvalid(valid), .m_axis_tready(ready));

    // (Whose beat it is depends on the place in a block alone: to the router a block is an iteration.)
    mlo_router #(.WIDTH(DATA_WIDTH), .PORTS(PORTS), .BEATS(BEATS)) u_router (
        .clk(clk), .rst(rst || flush), .iterations(16'd1),
        .s_axis_tdata(data), .s_axis_tvalid(valid), .s_axis_tready(ready),
        .m_axis_tdata(m_axis_tdata), .m_axis_tlast(closing), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready));

    wire unused = &{1'b0, bytes, closing};
endmodule
`default_nettype wire
