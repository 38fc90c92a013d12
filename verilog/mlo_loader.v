// SPDX-License-Identifier: MIT
// mlo_loader: brings the parameters of every iteration from memory to the kernels
//
// Contract    the parameter image holds, for iteration 0, the beats of port 0, then those of port 1, ..., then the
// same for iteration 1, and so on, without gaps.  So all iterations, a round, are one sequential read, repeated
// for ever: mlo_axi_reader makes it long bursts, mlo_router deals the beats out.  The two banks of each
// kernel's mlo_param say when to go on: a full bank stalls its port, and that stalls everything behind.
// The ports of RESIDENT keep all iterations on chip: they are read in the first round after reset or flush,
// and left out later.  What lies between them is read as one, also beyond the end of an iteration.
//
// Throughput: one beat per cycle; with RESIDENT a read is found by walking over the ports, a cycle each,
//             while those before it are under way
// Latency:    that of mlo_axi_reader and of mlo_router
// Stall:      a port whose memory is full holds back those behind it in the image
// Legal       see mlo_axi_reader and mlo_router
// enable:     while low, no new round begins (the one in work goes on; it waits for the kernels anyway).
// base, iterations (0 acts as 1) are read when a round begins; with RESIDENT they must stand still from flush on.
// flush:      forget everything, begin again at port 0 of iteration 0 (see mlo_axi_reader).  `rst` is for
//             power-up only, when the memory side is reset, too.
// beat:       one pulse per beat delivered.  error: sticky until flush: a read failed.
// total:      beats of a whole round, all ports (where in the image what follows begins); a cycle after iterations.
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
    // ports that are read in the first round only
    parameter [PORTS-1:0] RESIDENT = {PORTS{1'b0}},
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
    output reg  [47:0]           total,

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
    output wire                  m_axis_tlast,     // shared: of the last iteration (of the first round; see mlo_router)
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
    reg         go;
    wire        cmd_ready;
    always @(posedge clk) begin
        total <= {32'd0, (iterations == 16'd0) ? 16'd1 : iterations} * {16'd0, SUM};
        go    <= enable;
        if (rst || flush) go <= 1'b0;
    end

    // What to read: all of it, once or over and over; then, with RESIDENT, the runs between those ports.
    wire                  cmd_valid;
    wire [ADDR_WIDTH-1:0] cmd_addr;
    wire [47:0]           cmd_beats;
    generate
    if (RESIDENT == {PORTS{1'b0}}) begin : g_round
        assign cmd_valid = go;
        assign cmd_addr  = base;
        assign cmd_beats = total;
        wire unused = &{1'b0, cmd_ready};
    end else begin : g_runs
        localparam SIZE = $clog2(DATA_WIDTH / 8);
        localparam PW   = (PORTS > 1) ? $clog2(PORTS) : 1;
        localparam [31:0] FINAL_PORT = PORTS - 1;
        reg                  later;         // the first round is asked for
        reg                  run_valid;     // a run is complete
        reg [47:0]           run, at;       // where it begins, where the walk is: beats from the base
        reg [47:0]           beats;         // of the run
        reg [PW-1:0]         port;
        reg [15:0]           iteration;
        wire        keeps    = RESIDENT[port];
        wire [47:0] here     = {16'd0, BEATS[32*port +: 32]};
        wire        wraps    = (port == FINAL_PORT[PW-1:0]);
        wire        round    = wraps && (iteration + 16'd1 >= iterations);
        wire        begins   = (port == {PW{1'b0}}) && (iteration == 16'd0) && (beats == 48'd0);
        wire        close    = (keeps && beats != 48'd0);               // a run ends before this port
        wire        step     = later && !run_valid && !close && (go || !begins) && !(&RESIDENT);
        wire [47:0] at_next  = round ? 48'd0 : at + here;
        wire [63:0] offset   = {16'd0, run} << SIZE;
        assign cmd_valid = later ? run_valid : go;
        assign cmd_addr  = later ? base + offset[ADDR_WIDTH-1:0] : base;
        assign cmd_beats = later ? beats : total;
        always @(posedge clk) begin
            if (cmd_valid && cmd_ready) begin
                later     <= 1'b1;
                run_valid <= 1'b0;
                beats     <= 48'd0;
                run       <= at;
            end
            if (later && !run_valid && close) run_valid <= 1'b1;
            if (step) begin
                at   <= at_next;
                port <= wraps ? {PW{1'b0}} : port + 1'b1;
                if (wraps) iteration <= round ? 16'd0 : iteration + 16'd1;
                if (keeps) run <= at_next;
                else begin
                    beats     <= beats + here;
                    run_valid <= round;
                end
            end
            if (rst || flush) begin
                later     <= 1'b0;
                run_valid <= 1'b0;
                run       <= 48'd0;
                at        <= 48'd0;
                beats     <= 48'd0;
                port      <= {PW{1'b0}};
                iteration <= 16'd0;
            end
        end
        wire unused = &{1'b0, offset};
    end
    endgenerate

    wire [DATA_WIDTH-1:0] data;
    wire                  valid, ready;

    mlo_axi_reader #(
        .ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(DATA_WIDTH), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)
    ) u_reader (
        .clk(clk), .rst(rst), .flush(flush), .idle(idle), .error(error),
        .cmd_addr(cmd_addr), .cmd_beats(cmd_beats), .cmd_valid(cmd_valid), .cmd_ready(cmd_ready),
        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen),
        .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst), .m_axi_arvalid(m_axi_arvalid),
        .m_axi_arready(m_axi_arready), .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata),
        .m_axi_rresp(m_axi_rresp), .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid),
        .m_axi_rready(m_axi_rready),
        .m_axis_tdata(data), .m_axis_tvalid(valid), .m_axis_tready(ready));

    mlo_router #(.WIDTH(DATA_WIDTH), .PORTS(PORTS), .BEATS(BEATS), .RESIDENT(RESIDENT)) u_router (
        .clk(clk), .rst(rst || flush), .iterations(iterations),
        .s_axis_tdata(data), .s_axis_tvalid(valid), .s_axis_tready(ready),
        .m_axis_tdata(m_axis_tdata), .m_axis_tlast(m_axis_tlast), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready));

    always @(posedge clk) begin
        beat <= |(m_axis_tvalid & m_axis_tready);
        if (rst || flush) beat <= 1'b0;
    end
endmodule
`default_nettype wire
