// SPDX-License-Identifier: MIT
// mlo_axi_share: several AXI4 read masters share one
//
// Contract    each request of a port goes out once, as it is; the answers to it go to that port. The memory answers requests
//             of one ID in their order: a queue holds whose they are, and RLAST ends one. R goes through as it is, to the
//             port whose turn it is. s_arsize, s_arburst: all ports have the same, and never another.
// Throughput  a request a cycle, a beat a cycle. The ports are served in turn: who waits sees each other port pass once at most.
// Latency     AR: 1 cycle (a register); R: none
// Stall       no request is taken while DEPTH are not answered in full, nor while the one in the register waits. A port that
//             does not take its beats holds up all others: so it asks for what it has room for only (as mlo_axi_reader does).
// rst         for power-up only, when the memory is reset, too
// Timing      ARVALID and what it says are registers; s_arready depends on m_axi_arready and all s_arvalid,
//             m_axi_rready on s_rready alone
// Legal       PORTS >= 1, DEPTH >= 2 (3 and more: RAM)
`default_nettype none
module mlo_axi_share #(
    // number of masters
    parameter PORTS      = 2,
    // bits of a byte address
    parameter ADDR_WIDTH = 64,
    // bits of a beat
    parameter DATA_WIDTH = 128,
    // requests under way
    parameter DEPTH      = 32
) (
    input  wire                        clk,
    input  wire                        rst,

    input  wire [PORTS*ADDR_WIDTH-1:0] s_araddr,        // of port p at [ADDR_WIDTH*p +: ADDR_WIDTH]
    input  wire [8*PORTS-1:0]          s_arlen,         // of port p at [8*p +: 8]
    input  wire [2:0]                  s_arsize,        // shared by all ports, as are all that have no PORTS
    input  wire [1:0]                  s_arburst,
    input  wire [PORTS-1:0]            s_arvalid,
    output wire [PORTS-1:0]            s_arready,       // at most one bit set
    output wire [DATA_WIDTH-1:0]       s_rdata,
    output wire [1:0]                  s_rresp,
    output wire                        s_rlast,
    output wire [PORTS-1:0]            s_rvalid,        // at most one bit set
    input  wire [PORTS-1:0]            s_rready,

    output wire                        m_axi_arid,
    output reg  [ADDR_WIDTH-1:0]       m_axi_araddr,
    output reg  [7:0]                  m_axi_arlen,
    output wire [2:0]                  m_axi_arsize,
    output wire [1:0]                  m_axi_arburst,
    output reg                         m_axi_arvalid,
    input  wire                        m_axi_arready,
    input  wire                        m_axi_rid,
    input  wire [DATA_WIDTH-1:0]       m_axi_rdata,
    input  wire [1:0]                  m_axi_rresp,
    input  wire                        m_axi_rlast,
    input  wire                        m_axi_rvalid,
    output wire                        m_axi_rready
);
    localparam             PW  = (PORTS > 1) ? $clog2(PORTS) : 1;
    localparam [PORTS-1:0] ONE = 1;

    generate
        if (PORTS < 1) mlo_error_PORTS_must_be_positive u_error_ports ();
        if (DEPTH < 2) mlo_error_DEPTH_must_be_at_least_2 u_error_depth ();
    endgenerate

    // ------------------------------------------------------------------ requests
    // The lowest port behind the one served last, if one of those asks; else the lowest of all.  (x & -x: the lowest bit.)
    reg  [PORTS-1:0] behind;                            // the ports above the one served last
    wire [PORTS-1:0] first  = s_arvalid & behind;
    wire [PORTS-1:0] from   = (first != {PORTS{1'b0}}) ? first : s_arvalid;
    wire [PORTS-1:0] lowest = from & (~from + ONE);     // whose turn it is, if one asks
    wire             owners_ready;
    wire             room   = owners_ready && (!m_axi_arvalid || m_axi_arready);
    wire             take   = room && s_arvalid != {PORTS{1'b0}};
    assign s_arready = lowest & {PORTS{room}};

    reg  [PW-1:0] turn;                                 // its number
    integer       p;
    always @* begin
        turn = {PW{1'b0}};
        for (p = 0; p < PORTS; p = p + 1) turn = turn | (p[PW-1:0] & {PW{lowest[p]}});
    end

    always @(posedge clk) begin
        if (m_axi_arready) m_axi_arvalid <= 1'b0;
        if (take) begin
            m_axi_arvalid <= 1'b1;
            behind        <= ~(lowest | (lowest - ONE));
        end
        if (room) begin
            m_axi_araddr <= s_araddr[ADDR_WIDTH*turn +: ADDR_WIDTH];
            m_axi_arlen  <= s_arlen[8*turn +: 8];
        end
        if (rst) begin
            m_axi_arvalid <= 1'b0;
            behind        <= {PORTS{1'b0}};
        end
    end
    assign m_axi_arid    = 1'b0;
    assign m_axi_arsize  = s_arsize;
    assign m_axi_arburst = s_arburst;

    // ------------------------------------------------------------------ answers
    // The queue's delay of two cycles is hidden: the request itself is in the register for one, and no answer comes in the
    // cycle of a request.
    wire [PORTS-1:0]             owner;                 // one bit set: whose beats come
    wire                         owned;
    wire                         receive = m_axi_rvalid && m_axi_rready;
    wire [$clog2(DEPTH+1)-1:0]   level;
    mlo_fifo #(.WIDTH(PORTS), .DEPTH(DEPTH)) u_owners (
        .clk(clk), .rst(rst), .s_tdata(lowest), .s_tvalid(take), .s_tready(owners_ready),
        .m_tdata(owner), .m_tvalid(owned), .m_tready(receive && m_axi_rlast), .level(level));
    assign s_rdata      = m_axi_rdata;
    assign s_rresp      = m_axi_rresp;
    assign s_rlast      = m_axi_rlast;
    assign s_rvalid     = owner & {PORTS{owned && m_axi_rvalid}};
    assign m_axi_rready = owned && |(owner & s_rready);

    wire unused = &{1'b0, level, m_axi_rid};

`ifdef FORMAL
    // That requests go out once and as they are, answers to who asked, and all in turn, is proved in
    // tests/formal/contract/mlo_axi_share.v.  Here, with the queue as it is: no beat ever waits for the queue.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* assume (rst == !f_past_valid);

    // The memory answers what was asked for: requests taken, and not answered in full.
    localparam F_W = $clog2(DEPTH+1) + 1;
    reg  [F_W-1:0] f_owed;
    always @(posedge clk)
        f_owed <= rst ? {F_W{1'b0}} : f_owed + {{(F_W-1){1'b0}}, m_axi_arvalid && m_axi_arready} - {{(F_W-1){1'b0}}, receive && m_axi_rlast};
    always @* if (f_past_valid) assume (!m_axi_rvalid || f_owed != 0);

    always @* if (f_past_valid) begin
        assert (f_owed + {{(F_W-1){1'b0}}, m_axi_arvalid} == {1'b0, level});
        assert (f_owed == 0 || owned);
        if (m_axi_rvalid) assert (m_axi_rready == ((owner & s_rready) != 0));
        // a request is taken when it can be
        assert (s_arvalid == 0 || s_arready != 0 || (m_axi_arvalid && !m_axi_arready) || level == DEPTH);
    end

    // Not vacuous: all that may be under way is; later nothing.
    reg f_full = 1'b0;
    always @(posedge clk) f_full <= !rst && (f_full || level == DEPTH);
    always @* cover (f_past_valid && f_full && level == 0);
`endif
endmodule
`default_nettype wire
