// SPDX-License-Identifier: MIT
// mlo_loader: brings the parameters of every iteration from memory to the kernels
//
// The parameter image holds, for iteration 0, the beats of port 0, then those of port 1, ..., then the
// same for iteration 1, and so on, without gaps.  So all iterations are one sequential read, repeated
// for ever: mlo_axi_reader makes it long bursts, mlo_router deals the beats out.  The two banks of each
// kernel's mlo_param say when to go on: a full bank stalls its port, and that stalls everything behind.
//
// Throughput: one beat per cycle.  Latency: of mlo_axi_reader and mlo_router.
// enable:     while low, no new round begins (the one in work goes on; it waits for the kernels anyway).
// base, iterations (0 acts as 1) are read when a round begins.
// flush:      forget everything, begin again at port 0 of iteration 0 (see mlo_axi_reader).  `rst` is for
//             power-up only, when the memory side is reset, too.
// beat:       one pulse per beat delivered.  error: sticky until flush: a read failed.
`default_nettype none
module mlo_loader #(
    // bits of a byte address
    parameter ADDR_WIDTH = 64,
    // bits of a beat
    parameter DATA_WIDTH = 128,
    // number of parameter streams
    parameter PORTS      = 2,
    // beats of port p per iteration at [32*p +: 32], each >= 1
    parameter [32*PORTS-1:0] BEATS = {PORTS{32'd1}},
    // of mlo_axi_reader
    parameter FIFO_BEATS = 512,
    parameter MAX_BURST  = 64
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    input  wire                  enable,
    input  wire [ADDR_WIDTH-1:0] base,
    input  wire [15:0]           iterations,
    output reg                   beat,
    output wire                  error,
    output wire                  idle,

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
    output wire [PORTS-1:0]      m_axis_tvalid,
    input  wire [PORTS-1:0]      m_axis_tready
);
    // Beats of one iteration.
    function [31:0] sum(input integer ports);
        integer p;
        begin
            sum = 32'd0;
            for (p = 0; p < ports; p = p + 1) sum = sum + BEATS[32*p +: 32];
        end
    endfunction
    localparam [31:0] SUM = sum(PORTS);

    // One round = all iterations.  The product is settled long before it is used: `go` follows it.
    reg  [47:0] total;
    reg         go;
    wire        cmd_ready;
    always @(posedge clk) begin
        total <= {32'd0, (iterations == 16'd0) ? 16'd1 : iterations} * {16'd0, SUM};
        go    <= enable;
        if (rst || flush) go <= 1'b0;
    end

    wire [DATA_WIDTH-1:0] data;
    wire                  valid, ready;

    mlo_axi_reader #(
        .ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(DATA_WIDTH), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)
    ) u_reader (
        .clk(clk), .rst(rst), .flush(flush), .idle(idle), .error(error),
        .cmd_addr(base), .cmd_beats(total), .cmd_valid(go), .cmd_ready(cmd_ready),
        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen),
        .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst), .m_axi_arvalid(m_axi_arvalid),
        .m_axi_arready(m_axi_arready), .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata),
        .m_axi_rresp(m_axi_rresp), .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid),
        .m_axi_rready(m_axi_rready),
        .m_axis_tdata(data), .m_axis_tvalid(valid), .m_axis_tready(ready));

    mlo_router #(.WIDTH(DATA_WIDTH), .PORTS(PORTS), .BEATS(BEATS)) u_router (
        .clk(clk), .rst(rst || flush),
        .s_axis_tdata(data), .s_axis_tvalid(valid), .s_axis_tready(ready),
        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready));

    always @(posedge clk) begin
        beat <= |(m_axis_tvalid & m_axis_tready);
        if (rst || flush) beat <= 1'b0;
    end

    wire unused = &{1'b0, cmd_ready};
endmodule
`default_nettype wire
