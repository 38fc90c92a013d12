// SPDX-License-Identifier: MIT
// mlo_axi_writer: a command (address, number of beats) and a stream become AXI4 write bursts
//
// Contract    bursts are INCR, as long as possible, aligned to their maximal size, so none crosses a 4 KB boundary.
//             The stream's beats are written in order, whole (WSTRB all ones); each burst is asked for before its data.
// Throughput  a beat a cycle within a burst; a burst costs three cycles more, a command one more
// Latency     3 cycles from the command to AWVALID, one more to its first WVALID
// Stall       all sides may stall for any time; BREADY is always high
// Legal       cmd_addr is a multiple of DATA_WIDTH/8 (the low bits are ignored); cmd_beats may be 0
// error:      sticky, some burst was answered with BRESP other than OKAY.
// flush:      forgets the command in work and the error. AXI forbids to take back a burst: one that is begun ends with beats
//             that write nothing (WSTRB 0), and no command is taken before all are answered.
// idle:       no command is in work, and every burst is answered: what was written is seen by who reads from now on.
`default_nettype none
module mlo_axi_writer #(
    // bits of an address, up to 64, at least 10 more than log2(DATA_WIDTH/8)
    parameter ADDR_WIDTH = 64,
    // bits of a beat: 32, 64, .. 1024
    parameter DATA_WIDTH = 128,
    // longest burst, a power of two, 1..256 (also kept within 4 KB)
    parameter MAX_BURST  = 64,
    // bursts that wait for their answer, 1..255
    parameter MOST       = 16,
    // bits of cmd_beats, 10..48
    parameter COUNT_WIDTH = 16
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    flush,
    output wire                    idle,
    output reg                     error,

    input  wire [ADDR_WIDTH-1:0]   cmd_addr,
    input  wire [COUNT_WIDTH-1:0]  cmd_beats,
    input  wire                    cmd_valid,
    output wire                    cmd_ready,

    input  wire [DATA_WIDTH-1:0]   s_axis_tdata,
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,

    output wire                    m_axi_awid,
    output wire [ADDR_WIDTH-1:0]   m_axi_awaddr,
    output wire [7:0]              m_axi_awlen,
    output wire [2:0]              m_axi_awsize,
    output wire [1:0]              m_axi_awburst,
    output reg                     m_axi_awvalid,
    input  wire                    m_axi_awready,
    output reg  [DATA_WIDTH-1:0]   m_axi_wdata,
    output reg  [DATA_WIDTH/8-1:0] m_axi_wstrb,
    output reg                     m_axi_wlast,
    output reg                     m_axi_wvalid,
    input  wire                    m_axi_wready,
    input  wire                    m_axi_bid,
    input  wire [1:0]              m_axi_bresp,
    input  wire                    m_axi_bvalid,
    output wire                    m_axi_bready
);
    localparam SIZE  = $clog2(DATA_WIDTH / 8);                 // log2 of the bytes of a beat
    localparam PAGE  = 4096 / (DATA_WIDTH / 8);                // beats in 4 KB
    localparam BURST = (MAX_BURST < PAGE) ? MAX_BURST : PAGE;  // longest burst used
    localparam WA    = ADDR_WIDTH - SIZE;                      // address in beats
    localparam CW    = COUNT_WIDTH;
    localparam [CW-1:0] NONE = 0;
    localparam [31:0] SIZE_V = SIZE;
    localparam [8:0]  BURST_V = BURST[8:0];
    localparam [7:0]  MOST_V  = MOST[7:0];

    generate
        if (DATA_WIDTH < 32 || DATA_WIDTH > 1024 || 8 * (1 << SIZE) != DATA_WIDTH)
            mlo_error_DATA_WIDTH_must_be_a_power_of_two_from_32_to_1024 u_error_data ();
        if (MAX_BURST < 1 || MAX_BURST > 256 || (MAX_BURST & (MAX_BURST - 1)) != 0)
            mlo_error_MAX_BURST_must_be_a_power_of_two_up_to_256 u_error_burst ();
        if (MOST < 1 || MOST > 255) mlo_error_MOST_must_be_1_to_255 u_error_most ();
        if (ADDR_WIDTH < SIZE + 10 || ADDR_WIDTH > 64) mlo_error_ADDR_WIDTH_out_of_range u_error_addr ();
        if (COUNT_WIDTH < 10 || COUNT_WIDTH > 48) mlo_error_COUNT_WIDTH_must_be_10_to_48 u_error_count ();
    endgenerate

    // ------------------------------------------------------------------ requests
    // As in mlo_axi_reader: first how long a burst may be, then the request; the next one when its data have gone.
    reg           active;        // a command is in work
    reg           sized;
    reg           drain;         // after a flush: end what is begun
    reg [WA-1:0]  addr;          // of the next burst, in beats
    reg [CW-1:0]  left;          // beats not yet requested
    reg [8:0]     length;        // of the next burst
    reg [8:0]     sending;       // beats of the one at hand that are not at W yet
    reg [7:0]     open;          // bursts without an answer
    reg [WA-1:0]  aw_addr;
    reg [7:0]     aw_len;

    wire [8:0]    offset   = {1'b0, addr[7:0]} & (BURST_V - 9'd1);
    wire [8:0]    to_edge  = BURST_V - offset;
    wire          short    = left < {{(CW-9){1'b0}}, to_edge};
    wire          request  = active && sized && sending == 9'd0 && open != MOST_V && (!m_axi_awvalid || m_axi_awready) && !drain;
    wire [CW-1:0] left_after = left - {{(CW-9){1'b0}}, length};
    wire          answer   = m_axi_bvalid && m_axi_bready;
    wire          room     = !m_axi_wvalid || m_axi_wready;
    wire          load     = sending != 9'd0 && room && (s_axis_tvalid || drain);

    assign cmd_ready     = !active && !drain;
    assign idle          = !active && open == 8'd0;
    assign s_axis_tready = sending != 9'd0 && room && !drain;
    assign m_axi_bready  = 1'b1;

    always @(posedge clk) begin
        if (m_axi_awready) m_axi_awvalid <= 1'b0;
        if (cmd_valid && cmd_ready) begin
            active <= cmd_beats != NONE;
            sized  <= 1'b0;
            addr   <= cmd_addr[ADDR_WIDTH-1:SIZE];
            left   <= cmd_beats;
        end else if (request) begin
            m_axi_awvalid <= 1'b1;
            aw_addr       <= addr;
            aw_len        <= length[7:0] - 8'd1;
            addr          <= addr + {{(WA-9){1'b0}}, length};
            left          <= left_after;
            active        <= left_after != NONE;
            sized         <= 1'b0;
        end else if (!sized) begin
            sized  <= active;
            length <= short ? left[8:0] : to_edge;
        end
        sending <= request ? length : sending - {8'd0, load};
        open    <= open + {7'd0, request} - {7'd0, answer};
        if (answer && !drain && m_axi_bresp != 2'b00) error <= 1'b1;

        if (flush) drain <= 1'b1;
        else if (open == 8'd0) drain <= 1'b0;
        if (flush || drain) begin
            active <= 1'b0;
            sized  <= 1'b0;
            error  <= 1'b0;
        end
        if (rst) begin
            m_axi_awvalid <= 1'b0;
            active  <= 1'b0;
            sized   <= 1'b0;
            drain   <= 1'b0;
            sending <= 9'd0;
            open    <= 8'd0;
            error   <= 1'b0;
        end
    end

    assign m_axi_awid    = 1'b0;
    assign m_axi_awaddr  = {aw_addr, {SIZE{1'b0}}};
    assign m_axi_awlen   = aw_len;
    assign m_axi_awsize  = SIZE_V[2:0];
    assign m_axi_awburst = 2'b01;

    // ------------------------------------------------------------------ data
    always @(posedge clk) begin
        if (m_axi_wready) m_axi_wvalid <= 1'b0;
        if (load) begin
            m_axi_wvalid <= 1'b1;
            m_axi_wdata  <= s_axis_tdata;
            m_axi_wstrb  <= {DATA_WIDTH/8{!drain}};
            m_axi_wlast  <= sending == 9'd1;
        end
        if (rst) m_axi_wvalid <= 1'b0;
    end

    wire unused = &{1'b0, m_axi_bid, cmd_addr[SIZE-1:0]};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* assume (rst == !f_past_valid);

    // The memory answers bursts that it has taken whole, once each.
    wire f_aw = m_axi_awvalid && m_axi_awready, f_w = m_axi_wvalid && m_axi_wready;
    reg  [7:0]  f_asked, f_whole;               // bursts taken whose last beat is not, those that wait for an answer
    always @(posedge clk) begin
        f_asked <= rst ? 8'd0 : f_asked + f_aw - (f_w && m_axi_wlast);
        f_whole <= rst ? 8'd0 : f_whole + (f_w && m_axi_wlast) - answer;
    end
    // (mlo_sim_ram_write: no data before their request)
    always @* if (f_past_valid) assume (!m_axi_wready || f_asked != 8'd0);
    always @* if (f_past_valid) assume (!m_axi_bvalid || f_whole != 8'd0);
    always @(posedge clk) if (f_past_valid && $past(cmd_valid && !cmd_ready && !flush))
        assume (cmd_valid && $stable(cmd_addr) && $stable(cmd_beats));

    // The judge of the simulations of requests: stand until taken, unchanged, within 4 KB, aligned, of the right kind.
    wire [8:0] f_rules;
    mlo_sim_check_burst #(.ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(DATA_WIDTH), .BURST(MAX_BURST)) f_check (
        .clk(clk), .rst(rst), .cycle(32'd0), .id(m_axi_awid), .addr(m_axi_awaddr), .len(m_axi_awlen), .size(m_axi_awsize), .burst(m_axi_awburst),
        .valid(m_axi_awvalid), .ready(m_axi_awready), .full(1'b0), .asked(f_rules), .breaches());
    always @* if (f_past_valid && !rst) begin
        assert (f_rules == 9'd0);
        if (m_axi_awvalid) assert (m_axi_awlen < MAX_BURST);
    end
    // W: stable, the last beat of a burst has WLAST and no other has; each burst is asked for before its data.
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(m_axi_wvalid && !m_axi_wready))
        assert (m_axi_wvalid && $stable(m_axi_wdata) && $stable(m_axi_wstrb) && $stable(m_axi_wlast));
    reg  [8:0] f_cur, f_next;                   // beats that W has not taken of the burst at hand; of the next one, if its last beat waits
    wire       f_two  = m_axi_wvalid && m_axi_wlast && sending != 9'd0;
    wire [8:0] f_rest = f_cur - {8'd0, f_w};
    always @(posedge clk) begin
        f_cur <= f_two && f_w ? f_next : request && f_rest == 9'd0 ? length : f_rest;
        if (request) f_next <= length;
        if (rst) f_cur <= 9'd0;
    end
    always @* if (f_past_valid && !rst) begin
        assert (f_two ? f_cur == 9'd1 && f_next == sending : f_cur == sending + {8'd0, m_axi_wvalid});
        if (m_axi_wvalid) assert (m_axi_wlast == (f_cur == 9'd1) && (m_axi_awvalid || f_asked != 8'd0));
        assert (open == f_asked + m_axi_awvalid + f_whole && open <= MOST_V);
        assert (f_asked <= MOST_V && f_whole <= MOST_V);
        assert (f_asked + m_axi_awvalid == (sending != 9'd0) + (m_axi_wvalid && m_axi_wlast));
        if (idle) assert (f_cur == 9'd0 && f_whole == 8'd0 && !m_axi_awvalid && !m_axi_wvalid && !active);
    end
    // for the induction
    wire [8:0] f_offset = {1'b0, aw_addr[7:0]} & (BURST_V - 9'd1);
    always @* if (f_past_valid && m_axi_awvalid) assert (f_offset + {1'b0, aw_len} < BURST_V);
    always @* if (f_past_valid && !rst) begin
        assert (sending <= BURST_V);
        if (drain) assert (!active && !sized && !error);
        if (sized) assert (active && length != 9'd0 && length <= to_edge && length <= left && (length == left || length == to_edge));
        if (active) assert (left != NONE);
    end
    // Beats are conserved: a command's bursts follow each other from its address, and are as many beats as it says.
    reg [WA-1:0] f_addr;
    reg [CW-1:0] f_beats, f_sum;
    always @(posedge clk) begin
        if (cmd_valid && cmd_ready) {f_addr, f_beats, f_sum} <= {cmd_addr[ADDR_WIDTH-1:SIZE], cmd_beats, NONE};
        else if (request) f_sum <= f_sum + {{(CW-9){1'b0}}, length};
    end
    always @* if (f_past_valid && active) assert (f_sum + left == f_beats && f_sum < f_beats && addr == f_addr + f_sum);
    // What a beat writes is what came, unless a flush came before it.
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(s_axis_tvalid && s_axis_tready))
        assert (m_axi_wvalid && m_axi_wdata == $past(s_axis_tdata) && &m_axi_wstrb);
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(load && !s_axis_tready)) assert (m_axi_wstrb == 0);
    // Errors stick; nothing else sets them.
    always @(posedge clk) if (f_past_valid && !$past(rst) && !$past(flush) && !$past(drain))
        assert (error == ($past(error) || $past(answer && m_axi_bresp != 2'b00)));
    // Not vacuous
    reg [3:0] f_writes = 0, f_dropped = 0;
    always @(posedge clk) if (f_past_valid && f_w) begin
        if (m_axi_wstrb != 0 && f_writes != 15) f_writes <= f_writes + 1'b1;
        if (m_axi_wstrb == 0 && f_dropped != 15) f_dropped <= f_dropped + 1'b1;
    end
    always @* cover (f_past_valid && f_writes == 4 && f_dropped == 0 && idle);
    always @* cover (f_past_valid && f_dropped == 1 && cmd_ready && cmd_valid);
`endif
endmodule
`default_nettype wire
