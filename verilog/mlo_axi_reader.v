// SPDX-License-Identifier: MIT
// mlo_axi_reader: a command (address, number of beats) becomes AXI4 read bursts, and those a stream
//
// Contract    bursts are INCR, as long as possible, aligned to their maximal size, so none crosses a 4 KB boundary.
// A burst is requested only when the FIFO has room for all of it (counting what is still under way):
// so the R channel never waits, whatever happens downstream, and several bursts overlap the latency.
//
// Throughput: one beat per cycle as long as latency + MAX_BURST + 4 <= FIFO_BEATS; a burst is requested
//             every second cycle at most, and a command costs three cycles of the request side.
// Latency:    3 cycles from the command to ARVALID, then the memory's, then the FIFO's.
// Stall:      m_axis may stall for any time; at most FIFO_BEATS beats are then in the FIFO or under way.
// Legal       cmd_addr is a multiple of DATA_WIDTH/8 (the low bits are ignored); cmd_beats may be 0.
// error:      sticky, some beat came with RRESP other than OKAY (its data is passed on all the same).
// flush:      ends the command in work, forgets all data and the error.  AXI forbids to take back a request: what
//             is under way is received and dropped, and no command is taken before that has ended.
// idle:       no request and no beat is under way.
`default_nettype none
module mlo_axi_reader #(
    // bits of an address, up to 64, at least 10 more than log2(DATA_WIDTH/8)
    parameter ADDR_WIDTH = 64,
    // bits of a beat: 32, 64, .. 1024
    parameter DATA_WIDTH = 128,
    // beats under way or waiting, MAX_BURST..32768
    parameter FIFO_BEATS = 512,
    // longest burst, a power of two, 1..256 (also kept within 4 KB)
    parameter MAX_BURST  = 64,
    // bits of cmd_beats, 10..48
    parameter COUNT_WIDTH = 48
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    output wire                  idle,
    output reg                   error,

    input  wire [ADDR_WIDTH-1:0] cmd_addr,
    input  wire [COUNT_WIDTH-1:0] cmd_beats,
    input  wire                  cmd_valid,
    output wire                  cmd_ready,

    output wire                  m_axi_arid,
    output wire [ADDR_WIDTH-1:0] m_axi_araddr,
    output wire [7:0]            m_axi_arlen,
    output wire [2:0]            m_axi_arsize,
    output wire [1:0]            m_axi_arburst,
    output reg                   m_axi_arvalid,
    input  wire                  m_axi_arready,
    input  wire                  m_axi_rid,
    input  wire [DATA_WIDTH-1:0] m_axi_rdata,
    input  wire [1:0]            m_axi_rresp,
    input  wire                  m_axi_rlast,
    input  wire                  m_axi_rvalid,
    output wire                  m_axi_rready,

    output wire [DATA_WIDTH-1:0] m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready
);
    localparam SIZE  = $clog2(DATA_WIDTH / 8);                 // log2 of the bytes of a beat
    localparam PAGE  = 4096 / (DATA_WIDTH / 8);                // beats in 4 KB
    localparam BURST = (MAX_BURST < PAGE) ? MAX_BURST : PAGE;  // longest burst used
    localparam WA    = ADDR_WIDTH - SIZE;                      // address in beats
    localparam CW    = COUNT_WIDTH;
    localparam [CW-1:0] NONE = 0;
    localparam [31:0] SIZE_V = SIZE;
    localparam [8:0]  BURST_V = BURST[8:0];
    localparam LW    = $clog2(FIFO_BEATS + 1);
    localparam NW    = (LW > 9) ? LW : 9;                      // of beats that are counted
    localparam [NW-1:0] ALL = FIFO_BEATS[NW-1:0];

    generate
        if (DATA_WIDTH < 32 || DATA_WIDTH > 1024 || 8 * (1 << SIZE) != DATA_WIDTH)
            mlo_error_DATA_WIDTH_must_be_a_power_of_two_from_32_to_1024 u_error_data ();
        if (MAX_BURST < 1 || MAX_BURST > 256 || (MAX_BURST & (MAX_BURST - 1)) != 0)
            mlo_error_MAX_BURST_must_be_a_power_of_two_up_to_256 u_error_burst ();
        if (FIFO_BEATS < BURST || FIFO_BEATS > 32768) mlo_error_FIFO_BEATS_must_be_a_burst_to_32768 u_error_fifo ();
        if (ADDR_WIDTH < SIZE + 10 || ADDR_WIDTH > 64) mlo_error_ADDR_WIDTH_out_of_range u_error_addr ();
        if (COUNT_WIDTH < 10 || COUNT_WIDTH > 48) mlo_error_COUNT_WIDTH_must_be_10_to_48 u_error_count ();
    endgenerate

    // ------------------------------------------------------------------ requests
    // A burst takes two steps: `sized` = 0: how long may it be?  `sized` = 1: wait for room, request.
    reg           active;        // a command is in work
    reg           sized;
    reg           drain;         // after a flush: drop what still comes
    reg [WA-1:0]  addr;          // of the next burst, in beats
    reg [CW-1:0]  left;          // beats not yet requested
    reg [8:0]     length;        // of the next burst
    reg [NW-1:0]  free;          // room in the FIFO that no request has claimed
    reg [NW-1:0]  inflight;      // beats requested and not yet received
    reg [WA-1:0]  ar_addr;
    reg [7:0]     ar_len;

    // Up to the next multiple of BURST, but no more than is left.
    wire [8:0]    offset   = {1'b0, addr[7:0]} & (BURST_V - 9'd1);
    wire [8:0]    to_edge  = BURST_V - offset;
    wire          short    = (left < {{(CW-9){1'b0}}, to_edge});

    wire          room     = (free >= {{(NW-9){1'b0}}, length});
    wire          request  = active && sized && room && (!m_axi_arvalid || m_axi_arready) && !drain;
    wire [CW-1:0] left_after = left - {{(CW-9){1'b0}}, length};
    wire [NW-1:0] claim    = request ? {{(NW-9){1'b0}}, length} : {NW{1'b0}};

    wire          fifo_ready;
    wire          receive  = m_axi_rvalid && m_axi_rready;
    wire          give     = m_axis_tvalid && m_axis_tready;

    assign cmd_ready = !active && !drain;
    assign idle      = !m_axi_arvalid && (inflight == {NW{1'b0}});

    always @(posedge clk) begin
        if (m_axi_arready) m_axi_arvalid <= 1'b0;

        if (cmd_valid && cmd_ready) begin
            active <= (cmd_beats != NONE);
            sized  <= 1'b0;
            addr   <= cmd_addr[ADDR_WIDTH-1:SIZE];
            left   <= cmd_beats;
        end else if (request) begin
            m_axi_arvalid <= 1'b1;
            ar_addr       <= addr;
            ar_len        <= length[7:0] - 8'd1;
            addr          <= addr + {{(WA-9){1'b0}}, length};
            left          <= left_after;
            active        <= (left_after != NONE);
            sized         <= 1'b0;
        end else if (!sized) begin
            sized  <= active;
            length <= short ? left[8:0] : to_edge;
        end

        // Claimed when requested, given back when the beat has left the FIFO.
        free     <= free - claim + {{(NW-1){1'b0}}, give};
        inflight <= inflight + claim - {{(NW-1){1'b0}}, receive};

        // Errors of the beats that a flush drops do not count.
        if (receive && !drain && m_axi_rresp != 2'b00) error <= 1'b1;

        if (flush) drain <= 1'b1;
        else if (idle) drain <= 1'b0;
        if (flush || drain) begin
            active <= 1'b0;
            sized  <= 1'b0;
            free   <= ALL;
            error  <= 1'b0;
        end
        if (rst) begin
            m_axi_arvalid <= 1'b0;
            active   <= 1'b0;
            sized    <= 1'b0;
            drain    <= 1'b0;
            free     <= ALL;
            inflight <= {NW{1'b0}};
            error    <= 1'b0;
        end
    end

    assign m_axi_arid    = 1'b0;
    assign m_axi_araddr  = {ar_addr, {SIZE{1'b0}}};
    assign m_axi_arlen   = ar_len;
    assign m_axi_arsize  = SIZE_V[2:0];
    assign m_axi_arburst = 2'b01;

    // ------------------------------------------------------------------ data
    assign m_axi_rready = fifo_ready || drain;
    wire [LW-1:0] level;
    mlo_fifo #(.WIDTH(DATA_WIDTH), .DEPTH(FIFO_BEATS)) u_fifo (
        .clk(clk), .rst(rst || flush || drain),
        .s_tdata(m_axi_rdata), .s_tvalid(m_axi_rvalid && !drain), .s_tready(fifo_ready),
        .m_tdata(m_axis_tdata), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready), .level(level));

    wire unused = &{1'b0, level, m_axi_rid, m_axi_rlast, cmd_addr[SIZE-1:0]};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    // rst comes once: afterwards only flush forgets (see above).
    always @* if (f_past_valid) assume (!rst);

    // The memory: any latency, any stall, but it sends only what was asked for.
    wire f_ar = m_axi_arvalid && m_axi_arready;
    reg  [15:0] f_owed;                                // beats of accepted requests, not yet sent
    always @(posedge clk)
        f_owed <= rst ? 16'd0 : f_owed + (f_ar ? {8'd0, m_axi_arlen} + 16'd1 : 16'd0) - {15'd0, receive};
    always @* assume (!m_axi_rvalid || f_owed != 16'd0);
    // Who gives a command leaves it there until it is taken.
    always @(posedge clk) if (f_past_valid && $past(cmd_valid && !cmd_ready && !flush))
        assume (cmd_valid && $stable(cmd_addr) && $stable(cmd_beats));

    // The judge of the simulations: requests stand until taken, unchanged, never cross 4 KB, are aligned and of
    // the right kind.  (Their length is asserted here: the judge's queue is too short for all that may be under way.)
    wire [8:0] f_asked_rules;
    mlo_sim_check_axi #(.ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(DATA_WIDTH), .BURST(MAX_BURST), .MOST(2)) f_check (
        .clk(clk), .rst(rst), .cycle(32'd0), .arid(m_axi_arid), .araddr(m_axi_araddr), .arlen(m_axi_arlen), .arsize(m_axi_arsize), .arburst(m_axi_arburst),
        .arvalid(m_axi_arvalid), .arready(m_axi_arready), .rid(m_axi_rid), .rdata(m_axi_rdata), .rresp(m_axi_rresp), .rlast(m_axi_rlast), .rvalid(m_axi_rvalid),
        .rready(m_axi_rready), .asked(f_asked_rules), .sent(), .breaches(), .owing());
    always @* if (f_past_valid) begin
        assert (f_asked_rules[7:0] == 8'd0);
        if (m_axi_arvalid) assert (m_axi_arlen < MAX_BURST);
    end

    // Room: whatever is under way has its place.  So R is never blocked and the FIFO never overflows.
    wire [15:0] f_pending = m_axi_arvalid ? {8'd0, m_axi_arlen} + 16'd1 : 16'd0;
    always @* if (f_past_valid) begin
        assert (inflight == f_owed + f_pending);
        if (!drain) assert ({{(17-NW){1'b0}}, free} + {{(17-NW){1'b0}}, inflight} + {{(17-LW){1'b0}}, level} == FIFO_BEATS);
        if (m_axi_rvalid) assert (m_axi_rready);
        assert (inflight <= FIFO_BEATS && f_owed <= FIFO_BEATS);
        assert (idle == (f_owed == 16'd0 && !m_axi_arvalid));
    end
    always @* if (f_past_valid && drain) assert (level == 0 && free == ALL && !active);

    // for the induction: what a request in the register, and one being sized, look like
    wire [8:0] f_offset = {1'b0, ar_addr[7:0]} & (BURST_V - 9'd1);
    always @* if (f_past_valid && m_axi_arvalid) assert (f_offset + {1'b0, ar_len} < BURST_V);
    always @* if (f_past_valid && sized) assert (active);

    // Beats are conserved: the bursts of a command follow each other, from its address, and are as many
    // beats as it says; after it, as many beats have entered the FIFO.  (Order in the FIFO: its own proof.)
    reg [WA-1:0] f_addr;                               // of the command in work
    reg [CW-1:0] f_beats, f_asked;
    reg [7:0]    f_total_asked, f_total_in;            // of all commands since the last flush, modulo 256
    always @(posedge clk) begin
        if (cmd_valid && cmd_ready) begin
            f_addr  <= cmd_addr[ADDR_WIDTH-1:SIZE];
            f_beats <= cmd_beats;
            f_asked <= NONE;
        end else if (request)
            f_asked <= f_asked + {{(CW-9){1'b0}}, length};
        f_total_asked <= f_total_asked + claim[7:0];
        f_total_in    <= f_total_in + {7'd0, receive && !drain};
        if (rst || flush || drain) begin
            f_total_asked <= 8'd0;
            f_total_in    <= 8'd0;
        end
    end
    always @* if (f_past_valid && active) begin
        assert (f_asked + left == f_beats && f_asked < f_beats);
        assert (left != NONE);
        assert (addr == f_addr + f_asked);
        if (sized) begin
            assert (length != 9'd0 && length <= to_edge && length <= left);
            assert (length == left || length == to_edge);         // as long as possible
        end
    end
    always @* if (f_past_valid && !drain) assert (f_total_asked == f_total_in + inflight[7:0]);
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(request)) begin
        assert (m_axi_arvalid && m_axi_araddr[ADDR_WIDTH-1:SIZE] == $past(addr));
        assert ({1'b0, m_axi_arlen} + 9'd1 == $past(length));
    end
    // A command is not over before all its beats are asked for.
    wire f_ends = request && (left_after == NONE);
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(active && !flush && !drain && !f_ends))
        assert (active);

    // Errors stick; nothing else sets them.
    always @(posedge clk) if (f_past_valid && !$past(rst) && !$past(flush) && !$past(drain))
        assert (error == ($past(error) || $past(receive && m_axi_rresp != 2'b00)));

    // Not vacuous: a command of two bursts arrives in full; a flush drains.
    reg f_drained = 1'b0;
    always @(posedge clk) f_drained <= f_drained || (f_past_valid && drain && f_owed != 16'd0);
    always @* cover (f_past_valid && !f_drained && f_total_in == 8'd4 && !active && level == 0);
    always @* cover (f_drained && cmd_ready && cmd_valid);
`endif
endmodule
`default_nettype wire
