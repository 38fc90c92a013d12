// SPDX-License-Identifier: MIT
// mlo_rows: an id becomes its row of a table in memory: token ids in, what enters the loop out
//
// Contract    ids at s_axis, a beat each; tlast ends a frame. The row of id i has C channels of 16 bits and lies at base + i * 2 C; it
//             goes on as C / LANES beats, the last of them with tlast where the id had it. An id from IDS on is no id: row 0 takes its
//             place, and `stray` is set, which stays until flush.
//             Up to 4 rows are under way: ids are taken ahead of what is sent.
// Throughput  the memory's, or a beat per cycle, or a row every 4 cycles, whichever is least
// Latency     from an id to ARVALID 4 cycles, then the memory's; from R 4 cycles, if LANES * 16 = AXI_WIDTH
// Stall       any side, any time; R never waits (mlo_axi_reader)
// error       sticky, some answer (RRESP) was not OKAY; flush takes it back
// flush       forgets ids and rows (a core's soft reset); bursts that are begun end; rst is for power-up
// Legal       base is a multiple of AXI_WIDTH / 8; AXI_WIDTH / 16 divides C; LANES divides C; 2 <= IDS <= 2^24
`default_nettype none
module mlo_rows #(
    parameter C          = 16,      // channels of a row
    parameter LANES      = 4,       // of a beat
    parameter IDS        = 4,       // rows of the table
    parameter AXI_WIDTH  = 128,
    parameter ADDR_WIDTH = 64,
    parameter FIFO_BEATS = 64,      // of mlo_axi_reader
    parameter MAX_BURST  = 32
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    input  wire [ADDR_WIDTH-1:0] base,
    output wire                  error,
    output reg                   stray,

    input  wire [31:0]           s_axis_tdata,
    input  wire                  s_axis_tvalid,
    output wire                  s_axis_tready,
    input  wire                  s_axis_tlast,
    output wire [16*LANES-1:0]   m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire                  m_axis_tlast,

    output wire                  m_axi_arid,
    output wire [ADDR_WIDTH-1:0] m_axi_araddr,
    output wire [7:0]            m_axi_arlen,
    output wire [2:0]            m_axi_arsize,
    output wire [1:0]            m_axi_arburst,
    output wire                  m_axi_arvalid,
    input  wire                  m_axi_arready,
    input  wire                  m_axi_rid,
    input  wire [AXI_WIDTH-1:0]  m_axi_rdata,
    input  wire [1:0]            m_axi_rresp,
    input  wire                  m_axi_rlast,
    input  wire                  m_axi_rvalid,
    output wire                  m_axi_rready
);
    localparam ROW   = C * 16 / AXI_WIDTH;                      // beats of memory
    localparam BEATS = C / LANES;
    localparam BW    = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam AW    = ADDR_WIDTH;
    localparam [BW-1:0] FINAL   = BEATS[BW-1:0] - 1'b1;
    localparam [31:0]   IDS_V   = IDS;
    localparam [31:0]   BYTES_V = 2 * C;
    localparam [15:0]   BYTES   = BYTES_V[15:0];
    localparam [15:0]   ROW_V   = ROW[15:0];

    generate
        if (C < 1 || C > 32767 || C * 16 % AXI_WIDTH != 0) mlo_error_a_row_must_be_whole_beats_of_memory u_row ();
        if (LANES < 1 || C % LANES != 0) mlo_error_LANES_must_divide_C u_lanes ();
        if (IDS < 2 || IDS > 16777216)   mlo_error_IDS_must_be_2_to_2_24 u_ids ();
    endgenerate

    // ---- an id: which row, whether it ends a frame. The command stands a cycle later, so that no multiplier is in its way.
    reg           asks;                                         // a command stands
    reg  [39:0]   offset;                                       // of its row
    reg           ends;                                         // its frame ends there
    wire          cmd_ready, mark_ready;
    wire          known = s_axis_tdata < IDS_V;
    wire [23:0]   id    = known ? s_axis_tdata[23:0] : 24'd0;
    wire          take  = s_axis_tvalid && s_axis_tready;
    wire          go    = asks && cmd_ready && mark_ready;
    assign s_axis_tready = !asks;

    always @(posedge clk) begin
        if (go) asks <= 1'b0;
        if (take) begin
            asks   <= 1'b1;
            offset <= id * BYTES;
            ends   <= s_axis_tlast;
            if (!known) stray <= 1'b1;
        end
        if (rst || flush) begin
            asks  <= 1'b0;
            stray <= 1'b0;
        end
    end

    // ---- the row
    wire [AXI_WIDTH-1:0] r_data;
    wire                 r_valid, r_ready, unused_idle;
    mlo_axi_reader #(.ADDR_WIDTH(AW), .DATA_WIDTH(AXI_WIDTH), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST), .COUNT_WIDTH(16)) u_reader (
        .clk(clk), .rst(rst), .flush(flush), .idle(unused_idle), .error(error),
        .cmd_addr(base + {{AW-40{1'b0}}, offset}), .cmd_beats(ROW_V), .cmd_valid(asks && mark_ready), .cmd_ready(cmd_ready),
        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen), .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst),
        .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready), .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),
        .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready),
        .m_axis_tdata(r_data), .m_axis_tvalid(r_valid), .m_axis_tready(r_ready));

    // ---- its beats, and which of them ends a frame
    wire             mark, mark_valid, gives, out_valid;
    wire [2:0]       mark_level, unused_user;
    reg  [BW-1:0]    at;
    wire             closes = at == FINAL;
    mlo_fifo #(.WIDTH(1), .DEPTH(4)) u_marks (
        .clk(clk), .rst(rst || flush), .level(mark_level),
        .s_tdata(ends), .s_tvalid(go), .s_tready(mark_ready),
        .m_tdata(mark), .m_tvalid(mark_valid), .m_tready(gives && closes));
    mlo_width #(.BITS(16), .IN(AXI_WIDTH / 16), .OUT(LANES)) u_width (
        .clk(clk), .rst(rst || flush),
        .s_axis_tdata(r_data), .s_axis_tvalid(r_valid), .s_axis_tready(r_ready), .s_axis_tuser(3'd0),
        .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(out_valid), .m_axis_tready(m_axis_tready && mark_valid), .m_axis_tuser(unused_user));
    assign m_axis_tvalid = out_valid && mark_valid;
    assign m_axis_tlast  = closes && mark;
    assign gives = m_axis_tvalid && m_axis_tready;
    always @(posedge clk) begin
        if (gives) at <= closes ? {BW{1'b0}} : at + 1'b1;
        if (rst || flush) at <= {BW{1'b0}};
    end
    wire unused = &{1'b0, unused_idle, unused_user, mark_level, s_axis_tdata[31:24]};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    always @* if (f_past_valid) assume (!rst);
    reg f_flushed;                                              // the judges of streams forget with it
    always @* f_flushed = rst || flush;
    wire [4:0] f_in, f_out;
    mlo_sim_check_axis #(.WIDTH(32)) f_check_in (.clk(clk), .rst(f_flushed), .cycle(32'd0), .broken(f_in), .breaches(),
        .tdata(s_axis_tdata), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(s_axis_tlast));
    always @* if (f_past_valid) assume (f_in == 5'd0);
    always @(posedge clk) if (f_past_valid) assume ($stable(base));

    // A command is a row of the table: of the id that came last, where it is one. Marks are as many as rows asked for and not sent.
    reg  [31:0] f_id;
    reg  [7:0]  f_taken, f_asked, f_sent;                       // modulo 256
    always @(posedge clk) begin
        if (take) f_id <= s_axis_tdata;
        f_taken <= f_flushed ? 8'd0 : f_taken + {7'd0, take};
        f_asked <= f_flushed ? 8'd0 : f_asked + {7'd0, go};
        f_sent  <= f_flushed ? 8'd0 : f_sent + {7'd0, gives && closes};
    end
    always @* if (f_past_valid) assert (f_taken == f_asked + {7'd0, asks} && f_asked == f_sent + {5'd0, mark_level});
    always @* if (f_past_valid && !f_flushed && asks) begin
        assert (offset == ((f_id < IDS_V) ? f_id[23:0] : 24'd0) * BYTES);
        assert (stray || f_id < IDS_V);
    end
    always @* if (f_past_valid) assert (at <= FINAL);
    always @(posedge clk) if (f_past_valid && !$past(f_flushed) && $past(stray)) assert (stray);
    always @(posedge clk) if (f_past_valid && !$past(f_flushed) && !f_flushed && $past(m_axis_tvalid && !m_axis_tready))
        assert (m_axis_tvalid && $stable(m_axis_tlast));
    always @* cover (f_past_valid && !f_flushed && m_axis_tvalid && m_axis_tready && m_axis_tlast);
    always @* cover (f_past_valid && stray);
`endif
endmodule
`default_nettype wire
