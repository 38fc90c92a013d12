// SPDX-License-Identifier: MIT
// mlo_kv: a cache of keys and values in memory behind AXI4: what attention has of the past is read, what is new is written
//
// Contract    a word for each frame, in their order, sooner or later: {it is its job's first, start, bank}. Of that frame, keys (s_axis_k)
//             and values (s_axis_v) go on behind those of positions 0 .. start - 1 of the bank, and are written to positions
//             start .. of it. Up to FRAMES frames of other slots are between, each with its own word.
//             Memory: at `base` (in beats), for each bank CONTEXT rows of keys, then CONTEXT rows of values (mlo_kv_lane).
// Order       a first word waits until all that was written is answered (BRESP). What is read for a job are positions below its
//             start in banks of its slot: those were written by jobs that left before its first word came. So no read overtakes
//             the write it depends on; each position is read once a frame.
//             What comes next is read ahead, as far as words and FIFO_BEATS go: while a frame is computed, the next one's past arrives.
// Throughput  of attention's streams: mlo_kv_lane; memory: a beat a cycle to read; a row of ROW beats costs ROW + 4 cycles to write
// Latency     a word to its first ARVALID: 6 cycles, if nothing is left to write
// Stall       any side, any time
// error       sticky, some answer (RRESP, BRESP) was not OKAY; flush takes it back
// flush       forgets all words (a core's soft reset); bursts that are begun end; rst is for power-up
// Legal       positions below start of a word's bank have been written; start + tokens <= CONTEXT; at most 2 * FRAMES words are of frames
//             that are not through (a frame that is inside, and its next turn); base stands, from the cycle before the first word on
`default_nettype none
module mlo_kv #(
    parameter CONTEXT = 16,         // rows of keys, and of values, in a bank
    parameter BEATS   = 4,          // of a token
    parameter LANES   = 2,          // channels of a beat
    parameter BITS    = 8,          // of a channel
    parameter AXI_WIDTH  = 128,
    parameter ADDR_WIDTH = 64,
    parameter FRAMES     = 1,       // that may be between
    parameter FIFO_BEATS = 128,     // read ahead, of keys and of values each
    parameter MAX_BURST  = 64
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    flush,
    output wire                    error,
    output reg  [31:0]             beats_read,      // since flush
    output reg  [31:0]             beats_written,
    input  wire [ADDR_WIDTH-1:0]   base,            // a byte address, a multiple of AXI_WIDTH/8
    input  wire                    word_valid,
    input  wire [32:0]             word_tdata,      // {first, start, bank}

    input  wire [LANES*BITS-1:0]   s_axis_k_tdata,
    input  wire                    s_axis_k_tvalid,
    output wire                    s_axis_k_tready,
    input  wire [2:0]              s_axis_k_tuser,
    input  wire [LANES*BITS-1:0]   s_axis_v_tdata,
    input  wire                    s_axis_v_tvalid,
    output wire                    s_axis_v_tready,
    input  wire [2:0]              s_axis_v_tuser,
    output wire [LANES*BITS-1:0]   m_axis_k_tdata,
    output wire                    m_axis_k_tvalid,
    input  wire                    m_axis_k_tready,
    output wire [2:0]              m_axis_k_tuser,
    output wire [LANES*BITS-1:0]   m_axis_v_tdata,
    output wire                    m_axis_v_tvalid,
    input  wire                    m_axis_v_tready,
    output wire [2:0]              m_axis_v_tuser,

    output wire                    m_axi_arid,
    output wire [ADDR_WIDTH-1:0]   m_axi_araddr,
    output wire [7:0]              m_axi_arlen,
    output wire [2:0]              m_axi_arsize,
    output wire [1:0]              m_axi_arburst,
    output wire                    m_axi_arvalid,
    input  wire                    m_axi_arready,
    input  wire                    m_axi_rid,
    input  wire [AXI_WIDTH-1:0]    m_axi_rdata,
    input  wire [1:0]              m_axi_rresp,
    input  wire                    m_axi_rlast,
    input  wire                    m_axi_rvalid,
    output wire                    m_axi_rready,
    output wire                    m_axi_awid,
    output wire [ADDR_WIDTH-1:0]   m_axi_awaddr,
    output wire [7:0]              m_axi_awlen,
    output wire [2:0]              m_axi_awsize,
    output wire [1:0]              m_axi_awburst,
    output wire                    m_axi_awvalid,
    input  wire                    m_axi_awready,
    output wire [AXI_WIDTH-1:0]    m_axi_wdata,
    output wire [AXI_WIDTH/8-1:0]  m_axi_wstrb,
    output wire                    m_axi_wlast,
    output wire                    m_axi_wvalid,
    input  wire                    m_axi_wready,
    input  wire                    m_axi_bid,
    input  wire [1:0]              m_axi_bresp,
    input  wire                    m_axi_bvalid,
    output wire                    m_axi_bready
);
    localparam SIZE = $clog2(AXI_WIDTH / 8);
    localparam WA   = ADDR_WIDTH - SIZE;                    // an address in beats
    localparam PER  = AXI_WIDTH / (LANES * ((BITS + 7) / 8 * 8));
    localparam ROW  = (BEATS + PER - 1) / PER;
    localparam HALF = CONTEXT * ROW;                        // beats of a bank's keys
    localparam RW   = (ROW > 1) ? $clog2(ROW) : 1;
    localparam [31:0]   ROW_32 = ROW, ROW_1 = ROW - 1, HALF_32 = HALF;
    localparam [RW-1:0] ROW_LAST = ROW_1[RW-1:0], ROW_ONE = 1;
    localparam [WA-1:0] ROW_A = {{WA-32{1'b0}}, ROW_32}, HALF_A = {{WA-32{1'b0}}, HALF_32};

    generate
        if (CONTEXT < 1 || CONTEXT > 65535) mlo_error_CONTEXT_must_be_1_to_65535 u_context ();
        if (ROW > 65535) mlo_error_a_row_must_have_at_most_65535_beats u_row ();
    endgenerate

    // ---- words: what comes of each is derived, and all that need it get it at once; a first one when all that was written is answered
    localparam LEVEL = $clog2(2 * FRAMES + 2);
    wire [32:0]       queued;
    wire              queued_valid, unused_room;
    wire [LEVEL-1:0]  unused_level;
    reg               waiting, first;
    reg  [15:0]       start_at;
    reg  [WA-1:0]     bank_at, past;                        // where its bank lies, from base on; beats of the past
    wire              writer_idle, sending;
    wire [1:0]        empty, ask_ready, lane_ready, write_ready;
    wire              fence  = !first || (writer_idle && !sending && empty == 2'b11);
    wire              begins = waiting && fence && (&{ask_ready, lane_ready, write_ready});
    wire [WA-1:0]     bank, length;
    mlo_fifo #(.WIDTH(33), .DEPTH(2 * FRAMES + 1)) u_words (
        .clk(clk), .rst(rst || flush), .s_tdata(word_tdata), .s_tvalid(word_valid), .s_tready(unused_room),
        .m_tdata(queued), .m_tvalid(queued_valid), .m_tready(!waiting || begins), .level(unused_level));
    mlo_times #(.N(2 * HALF), .IN(16), .OUT(WA)) u_bank (.x(queued[15:0]), .y(bank));
    mlo_times #(.N(ROW), .IN(16), .OUT(WA)) u_length (.x(queued[31:16]), .y(length));
    always @(posedge clk) begin
        if (!waiting || begins) begin
            waiting  <= queued_valid;
            first    <= queued[32];
            start_at <= queued[31:16];
            bank_at  <= bank;
            past     <= length;
        end
        if (flush || rst) waiting <= 1'b0;
    end
    wire [WA-1:0] origin = base[ADDR_WIDTH-1:SIZE];
    reg  [WA-1:0] values;                                   // where those of the first bank lie
    always @(posedge clk) values <= origin + HALF_A;

    // ---- keys (0) and values (1)
    wire [1:0]              ar_valid, ar_ready, r_valid, r_ready, reader_idle, reader_error;
    wire [2*ADDR_WIDTH-1:0] ar_addr;
    wire [15:0]             ar_len;
    wire [5:0]              ar_size;
    wire [3:0]              ar_burst;
    wire [AXI_WIDTH-1:0]    r_data;
    wire [1:0]              r_resp, ar_id;
    wire                    r_last;
    wire [1:0]              w_valid, w_ready, w_last, w_row, row_there;
    wire [2*AXI_WIDTH-1:0]  w_data;
    wire [2*WA-1:0]         w_addr;
    wire [1:0]              row_done;                       // its command was taken
    wire [1:0]              s_ready, m_valid;
    wire [5:0]              m_user;
    wire [2*LANES*BITS-1:0] m_data;
    wire [1:0]              s_valid = {s_axis_v_tvalid, s_axis_k_tvalid};
    wire [1:0]              m_ready = {m_axis_v_tready, m_axis_k_tready};
    wire [5:0]              s_user  = {s_axis_v_tuser, s_axis_k_tuser};
    wire [2*LANES*BITS-1:0] s_data  = {s_axis_v_tdata, s_axis_k_tdata};
    assign {s_axis_v_tready, s_axis_k_tready} = s_ready;
    assign {m_axis_v_tvalid, m_axis_k_tvalid} = m_valid;
    assign {m_axis_v_tuser, m_axis_k_tuser}   = m_user;
    assign {m_axis_v_tdata, m_axis_k_tdata}   = m_data;
    genvar n;
    generate
        for (n = 0; n < 2; n = n + 1) begin : g_lane
            wire [WA-1:0]        from = n == 0 ? origin : values;
            wire                 cmd_ready, r_ahead, r_takes, p_valid, p_ready;
            wire [AXI_WIDTH-1:0] ahead, p_data;
            // what is to be read: nothing of a sequence that begins
            wire [WA-1:0]        read_at, read_beats;
            wire                 ask_valid, asks;
            mlo_skid #(.WIDTH(2 * WA + 1)) u_ask (
                .clk(clk), .rst(rst || flush), .s_tdata({past != {WA{1'b0}}, bank_at, past}), .s_tvalid(begins), .s_tready(ask_ready[n]),
                .m_tdata({asks, read_at, read_beats}), .m_tvalid(ask_valid), .m_tready(cmd_ready || !asks));
            // behind how much of the past the frame's own is
            wire [15:0]          start;
            wire                 start_valid, start_ready;
            wire [2:0]           unused_start, unused_to;
            mlo_fifo #(.WIDTH(16), .DEPTH(4)) u_start (
                .clk(clk), .rst(rst || flush), .s_tdata(start_at), .s_tvalid(begins), .s_tready(lane_ready[n]),
                .m_tdata(start), .m_tvalid(start_valid), .m_tready(start_ready), .level(unused_start));
            // and where it is written
            wire [WA-1:0]        to;
            wire                 to_valid;
            reg                  writing;                   // rows of a frame
            reg  [WA-1:0]        write_at;                  // its address: whose turn it is is late, and only picks one
            reg                  written;                   // its last row's command was taken: that row is still sent, so none waits for this
            wire                 to_ready = !writing || written;
            mlo_fifo #(.WIDTH(WA), .DEPTH(4)) u_to (
                .clk(clk), .rst(rst || flush), .s_tdata(bank_at + past), .s_tvalid(begins), .s_tready(write_ready[n]),
                .m_tdata(to), .m_tvalid(to_valid), .m_tready(to_ready), .level(unused_to));
            always @(posedge clk) begin
                written <= row_done[n] && w_last[n];        // (a block RAM's output, again)
                if (row_done[n]) write_at <= write_at + ROW_A;
                if (to_ready) begin
                    writing  <= to_valid;
                    write_at <= from + to;
                end
                if (flush || rst) {writing, written} <= 2'b00;
            end
            assign w_row[n] = row_there[n] && writing;
            assign w_addr[WA*n +: WA] = write_at;
            wire unused_lane = &{1'b0, unused_start, unused_to, read_beats};
            mlo_axi_reader #(.ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(AXI_WIDTH), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST), .COUNT_WIDTH(32)) u_reader (
                .clk(clk), .rst(rst), .flush(flush), .idle(reader_idle[n]), .error(reader_error[n]),
                .cmd_addr({from + read_at, {SIZE{1'b0}}}), .cmd_beats(read_beats[31:0]), .cmd_valid(ask_valid && asks), .cmd_ready(cmd_ready),
                .m_axi_arid(ar_id[n]), .m_axi_araddr(ar_addr[ADDR_WIDTH*n +: ADDR_WIDTH]), .m_axi_arlen(ar_len[8*n +: 8]), .m_axi_arsize(ar_size[3*n +: 3]),
                .m_axi_arburst(ar_burst[2*n +: 2]), .m_axi_arvalid(ar_valid[n]), .m_axi_arready(ar_ready[n]), .m_axi_rid(1'b0), .m_axi_rdata(r_data),
                .m_axi_rresp(r_resp), .m_axi_rlast(r_last), .m_axi_rvalid(r_valid[n]), .m_axi_rready(r_ready[n]),
                .m_axis_tdata(ahead), .m_axis_tvalid(r_ahead), .m_axis_tready(r_takes));
            // (a block RAM's output is late: what picks a step out of a beat begins behind a register)
            mlo_skid #(.WIDTH(AXI_WIDTH)) u_past (
                .clk(clk), .rst(rst || flush), .s_tdata(ahead), .s_tvalid(r_ahead), .s_tready(r_takes),
                .m_tdata(p_data), .m_tvalid(p_valid), .m_tready(p_ready));
            mlo_kv_lane #(.BEATS(BEATS), .LANES(LANES), .BITS(BITS), .AXI_WIDTH(AXI_WIDTH)) u_lane (
                .clk(clk), .rst(rst || flush), .start(start), .start_valid(start_valid), .start_ready(start_ready),
                .s_axis_tdata(s_data[LANES*BITS*n +: LANES*BITS]), .s_axis_tvalid(s_valid[n]), .s_axis_tready(s_ready[n]), .s_axis_tuser(s_user[3*n +: 3]),
                .m_axis_tdata(m_data[LANES*BITS*n +: LANES*BITS]), .m_axis_tvalid(m_valid[n]), .m_axis_tready(m_ready[n]), .m_axis_tuser(m_user[3*n +: 3]),
                .p_axis_tdata(p_data), .p_axis_tvalid(p_valid), .p_axis_tready(p_ready),
                .w_axis_tdata(w_data[AXI_WIDTH*n +: AXI_WIDTH]), .w_axis_tvalid(w_valid[n]), .w_axis_tready(w_ready[n]), .w_last(w_last[n]), .w_row(row_there[n]),
                .empty(empty[n]));
        end
    endgenerate
    mlo_axi_share #(.PORTS(2), .ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(AXI_WIDTH)) u_share (
        .clk(clk), .rst(rst), .s_araddr(ar_addr), .s_arlen(ar_len), .s_arsize(ar_size[2:0]), .s_arburst(ar_burst[1:0]), .s_arvalid(ar_valid), .s_arready(ar_ready),
        .s_rdata(r_data), .s_rresp(r_resp), .s_rlast(r_last), .s_rvalid(r_valid), .s_rready(r_ready),
        .m_axi_arid(m_axi_arid), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen), .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst),
        .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready), .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),
        .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready));

    // ---- rows go to the writer one by one, of keys and values in turn
    reg          busy, lane;                                // a row is on its way; whose
    reg [RW-1:0] sent;
    wire         writer_ready, data_ready, writer_error;
    wire         pick  = w_row[0] && (!w_row[1] || lane) ? 1'b0 : 1'b1;
    wire         start = !busy && w_row != 2'b00 && writer_ready;
    wire         give  = busy && w_valid[lane] && data_ready;
    assign sending  = busy;
    assign row_done = {start && pick, start && !pick};
    assign w_ready  = {busy && lane && data_ready, busy && !lane && data_ready};
    always @(posedge clk) begin
        if (give) begin
            sent <= sent + ROW_ONE;
            if (sent == ROW_LAST) busy <= 1'b0;
        end
        if (start) begin
            busy <= 1'b1;
            lane <= pick;
            sent <= {RW{1'b0}};
        end
        if (flush || rst) {busy, lane} <= 2'b00;
    end
    mlo_axi_writer #(.ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(AXI_WIDTH), .MAX_BURST(MAX_BURST)) u_writer (
        .clk(clk), .rst(rst), .flush(flush), .idle(writer_idle), .error(writer_error),
        .cmd_addr({pick ? w_addr[2*WA-1:WA] : w_addr[WA-1:0], {SIZE{1'b0}}}), .cmd_beats(ROW_32[15:0]), .cmd_valid(start), .cmd_ready(writer_ready),
        .s_axis_tdata(lane ? w_data[2*AXI_WIDTH-1:AXI_WIDTH] : w_data[AXI_WIDTH-1:0]), .s_axis_tvalid(busy && w_valid[lane]), .s_axis_tready(data_ready),
        .m_axi_awid(m_axi_awid), .m_axi_awaddr(m_axi_awaddr), .m_axi_awlen(m_axi_awlen), .m_axi_awsize(m_axi_awsize), .m_axi_awburst(m_axi_awburst),
        .m_axi_awvalid(m_axi_awvalid), .m_axi_awready(m_axi_awready), .m_axi_wdata(m_axi_wdata), .m_axi_wstrb(m_axi_wstrb), .m_axi_wlast(m_axi_wlast),
        .m_axi_wvalid(m_axi_wvalid), .m_axi_wready(m_axi_wready), .m_axi_bid(m_axi_bid), .m_axi_bresp(m_axi_bresp), .m_axi_bvalid(m_axi_bvalid),
        .m_axi_bready(m_axi_bready));

    assign error = writer_error || reader_error != 2'b00;
    always @(posedge clk) begin
        beats_read    <= beats_read + {31'd0, m_axi_rvalid && m_axi_rready};
        beats_written <= beats_written + {31'd0, m_axi_wvalid && m_axi_wready};
        if (flush || rst) {beats_read, beats_written} <= 64'd0;
    end
`ifdef FORMAL
    // Where a beat is a row (BEATS = 1). The fence: a job's first word goes on when each row that came is answered.
    reg        f_past = 1'b0;
    reg  [7:0]  f_rows, f_answers, f_whole;      // rows that came; bursts answered, taken whole
    always @(posedge clk) begin
        f_past    <= 1'b1;
        f_rows    <= rst ? 8'd0 : f_rows + (s_axis_k_tvalid && s_axis_k_tready) + (s_axis_v_tvalid && s_axis_v_tready);
        f_answers <= rst ? 8'd0 : f_answers + (m_axi_bvalid && m_axi_bready);
        f_whole   <= rst ? 8'd0 : f_whole + (m_axi_wvalid && m_axi_wready && m_axi_wlast);
    end
    always @* assume (rst == !f_past && !flush);
    always @* if (f_past) begin
        assume (!m_axi_bvalid || f_whole != f_answers);
        if (begins && first) assert (f_rows == f_answers);
        cover (begins && first && f_rows == 2);
    end
    // F_PARTS: the fence for any number of steps, of parts as they are proved (mlo_kv_lane: `empty` is that no row waits; mlo_axi_writer: idle is that
    // no command is not answered). A row is in its lane, or on its way with its command, or all of it is the writer's.
    parameter F_PARTS = 0;
    reg  [7:0] f_waits [0:1], f_orders;          // rows in a lane; commands that are not answered
    wire [7:0] f_inside = f_waits[0] + f_waits[1] + f_orders - busy;
    integer    f_l;
    always @(posedge clk) begin
        for (f_l = 0; f_l < 2; f_l = f_l + 1)
            f_waits[f_l] <= rst ? 8'd0 : f_waits[f_l] + (s_valid[f_l] && s_ready[f_l]) - (w_valid[f_l] && w_ready[f_l]);
        f_orders <= rst ? 8'd0 : f_orders + start - (m_axi_bvalid && m_axi_bready);
    end
    always @* if (f_past && F_PARTS) begin
        for (f_l = 0; f_l < 2; f_l = f_l + 1) begin
            assume (empty[f_l] == (f_waits[f_l] == 8'd0));
            assume (!w_valid[f_l] || f_waits[f_l] != 8'd0);
        end
        assume (writer_idle == (f_orders == 8'd0));
        assume (!m_axi_bvalid || f_orders > busy);
        assume (f_orders <= 8'd17);                                 // MOST of them, and the one at hand
        assert (f_rows - f_answers == f_inside && f_orders >= busy && (!busy || sent <= ROW_LAST));
    end
    // F_JOBS: words as they may be (a slot has one bank: each word is a first one, and its slot's frame before has left both
    // streams), and of any row, f_row, what is under way to it: no burst that was asked for reads it while a write of it is not answered.
    parameter F_JOBS = 0;
    (* anyconst *) wire [7:0] f_row;
    localparam [7:0] F_BANK = 2 * CONTEXT;
    wire [7:0]  f_mine = f_row / F_BANK;                    // its bank
    wire [1:0]  f_in = s_valid & s_ready, f_out = m_valid & m_ready & {m_user[4], m_user[1]};
    reg  [7:0]  f_given, f_left [0:1];                      // words; frames that left either stream
    reg         f_busy;                                     // a frame of the bank is inside: the f_which-th
    reg  [7:0]  f_which;
    reg  [15:0] f_start, f_tokens [0:1];
    reg  [7:0]  f_came [0:1];                               // frames that came whole
    integer     f_n;
    wire        f_its = word_valid && word_tdata[7:0] == f_mine;
    wire        f_gone = f_left[0] > f_which && f_left[1] > f_which;
    wire [WA-1:0] f_read = m_axi_araddr[ADDR_WIDTH-1:SIZE] - (4096 >> SIZE), f_write = m_axi_awaddr[ADDR_WIDTH-1:SIZE] - (4096 >> SIZE);
    wire [1:0]  f_puts;                                     // the row's data comes in
    assign f_puts[0] = f_in[0] && f_busy && f_came[0] == f_which && f_row == f_mine * F_BANK + f_start + f_tokens[0];
    assign f_puts[1] = f_in[1] && f_busy && f_came[1] == f_which && f_row == f_mine * F_BANK + CONTEXT + f_start + f_tokens[1];
    wire        f_put = |f_puts;
    reg         f_open;                                     // it is not answered
    reg  [7:0]  f_asked, f_turn;                            // bursts whose address was taken; the row's own
    reg         f_addressed;
    always @(posedge clk) begin
        f_given <= rst ? 8'd0 : f_given + word_valid;
        if (f_its) {f_busy, f_which, f_start} <= {1'b1, f_given, word_tdata[31:16]};
        else if (f_gone) f_busy <= 1'b0;
        for (f_n = 0; f_n < 2; f_n = f_n + 1) begin
            f_left[f_n] <= rst ? 8'd0 : f_left[f_n] + f_out[f_n];
            f_came[f_n] <= rst ? 8'd0 : f_came[f_n] + (f_in[f_n] && s_user[3*f_n + 1]);
            if (rst || f_in[f_n]) f_tokens[f_n] <= rst || s_user[3*f_n + 1] ? 16'd0 : f_tokens[f_n] + 16'd1;
        end
        f_asked <= rst ? 8'd0 : f_asked + (m_axi_awvalid && m_axi_awready);
        if (f_put) {f_open, f_addressed} <= 2'b10;
        else if (m_axi_awvalid && m_axi_awready && f_write == f_row) {f_addressed, f_turn} <= {1'b1, f_asked};
        if (f_open && f_addressed && m_axi_bvalid && m_axi_bready && f_answers == f_turn) f_open <= 1'b0;
        if (rst) {f_busy, f_open, f_addressed} <= 3'b000;
    end
    always @* if (f_past && F_JOBS) begin
        assume (base == 64'd4096 && f_mine < 8'd3);
        assume (!word_valid || (word_tdata[15:0] < 16'd3 && word_tdata[31:16] < CONTEXT && word_tdata[32]));
        assume (!f_its || !f_busy);
        assume (!word_valid || f_given < 8'd4 && f_given - f_left[0] < 2 * FRAMES && f_given - f_left[1] < 2 * FRAMES);
        for (f_n = 0; f_n < 2; f_n = f_n + 1)               // frames of one token
            assume (!f_in[f_n] || s_user[3*f_n + 1]);
        // what is read is read whole, at the word's bank below its start, and nothing on its way there is waited for
        if (m_axi_arvalid) assert (!(f_open && f_read <= f_row && f_row <= f_read + m_axi_arlen));
        if (m_axi_arvalid && f_read / F_BANK == f_mine) assert (f_busy && f_read % CONTEXT + m_axi_arlen < f_start);
        if (m_axi_awvalid && f_write == f_row) assert (f_open && !f_addressed && m_axi_awlen == 8'd0);
        if (m_axi_awvalid) assert (f_write < 3 * F_BANK);
    end
`endif
    wire unused = &{1'b0, reader_idle, ar_id, ar_size[5:3], ar_burst[3:2], unused_room, unused_level, base[SIZE-1:0]};
endmodule
`default_nettype wire
