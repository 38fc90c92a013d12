// SPDX-License-Identifier: MIT
// mlo_kv: a cache of keys and values in memory behind AXI4: what attention has of the past is read, what is new is written
//
// Contract    a job begins with job_begin; job_start, job_bank, iterations stay until its last frame is through. Of its n-th
//             frame, keys (s_axis_k) and values (s_axis_v) go on behind those of positions 0 .. job_start - 1 of bank
//             job_bank + n, and are written to positions job_start .. of it.
//             Memory: at `base` (in beats), for each bank CONTEXT rows of keys, then CONTEXT rows of values (mlo_kv_lane).
// Order       a job's reads begin when all that was written before is answered (BRESP). A job reads positions below job_start
//             and writes those from it on: so no read overtakes the write it depends on. Each position is read once a frame.
//             What comes next of the job is read ahead, as far as FIFO_BEATS go: while a frame is computed, the next one's past arrives.
// Throughput  of attention's streams: mlo_kv_lane; memory: a beat a cycle to read; a row of ROW beats costs ROW + 4 cycles to write
// Latency     job_begin to the first ARVALID: 6 cycles, if nothing is left to write
// Stall       any side, any time
// error       sticky, some answer (RRESP, BRESP) was not OKAY; flush takes it back
// flush       forgets the job (a core's soft reset); bursts that are begun end; rst is for power-up
// Legal       positions below job_start of the job's banks have been written; job_start + tokens <= CONTEXT; job_begin when the job
//             before has left, at least a cycle before a beat of the new one
`default_nettype none
module mlo_kv #(
    parameter CONTEXT = 16,         // rows of keys, and of values, in a bank
    parameter BEATS   = 4,          // of a token
    parameter LANES   = 2,          // channels of a beat
    parameter BITS    = 8,          // of a channel
    parameter AXI_WIDTH  = 128,
    parameter ADDR_WIDTH = 64,
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
    input  wire [15:0]             iterations,
    input  wire                    job_begin,
    input  wire [15:0]             job_start,
    input  wire [15:0]             job_bank,

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

    // ---- a job begins when all that was written is answered
    reg         waiting;
    wire        writer_idle, sending;
    wire [1:0]  empty;
    wire        begins = waiting && writer_idle && !sending && empty == 2'b11;
    always @(posedge clk) begin
        if (begins)    waiting <= 1'b0;
        if (job_begin) waiting <= 1'b1;
        if (flush || rst) waiting <= 1'b0;
    end
    wire [WA-1:0] bank, past;                               // where the job's first bank lies; beats of the past
    mlo_times #(.N(2 * HALF), .IN(16), .OUT(WA)) u_bank (.x(job_bank), .y(bank));
    mlo_times #(.N(ROW), .IN(16), .OUT(WA)) u_past (.x(job_start), .y(past));
    wire [WA-1:0] first = base[ADDR_WIDTH-1:SIZE] + bank;

    // ---- keys (0) and values (1)
    wire [1:0]              ar_valid, ar_ready, r_valid, r_ready, reader_idle, reader_error;
    wire [2*ADDR_WIDTH-1:0] ar_addr;
    wire [15:0]             ar_len;
    wire [5:0]              ar_size;
    wire [3:0]              ar_burst;
    wire [AXI_WIDTH-1:0]    r_data;
    wire [1:0]              r_resp, ar_id;
    wire                    r_last;
    wire [1:0]              w_valid, w_ready, w_last, w_row;
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
            reg  [15:0]          ask;                       // frames whose past is not asked for
            reg  [WA-1:0]        read_at, write_at, write_frame;
            wire                 cmd_ready, p_valid, p_ready;
            wire [AXI_WIDTH-1:0] p_data;
            wire                 asks = ask != 16'd0 && cmd_ready;
            wire [WA-1:0]        half = n == 0 ? {WA{1'b0}} : HALF_A;
            always @(posedge clk) begin
                if (asks) begin
                    ask     <= ask - 16'd1;
                    read_at <= read_at + HALF_A + HALF_A;
                end
                if (row_done[n]) begin
                    write_at <= w_last[n] ? write_frame + HALF_A + HALF_A : write_at + ROW_A;
                    if (w_last[n]) write_frame <= write_frame + HALF_A + HALF_A;
                end
                if (begins) begin
                    ask         <= job_start == 16'd0 ? 16'd0 : iterations;
                    read_at     <= first + half;
                    write_at    <= first + half + past;
                    write_frame <= first + half + past;
                end
                if (flush || rst) ask <= 16'd0;
            end
            assign w_addr[WA*n +: WA] = write_at;
            mlo_axi_reader #(.ADDR_WIDTH(ADDR_WIDTH), .DATA_WIDTH(AXI_WIDTH), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST), .COUNT_WIDTH(32)) u_reader (
                .clk(clk), .rst(rst), .flush(flush), .idle(reader_idle[n]), .error(reader_error[n]),
                .cmd_addr({read_at, {SIZE{1'b0}}}), .cmd_beats(past[31:0]), .cmd_valid(ask != 16'd0), .cmd_ready(cmd_ready),
                .m_axi_arid(ar_id[n]), .m_axi_araddr(ar_addr[ADDR_WIDTH*n +: ADDR_WIDTH]), .m_axi_arlen(ar_len[8*n +: 8]), .m_axi_arsize(ar_size[3*n +: 3]),
                .m_axi_arburst(ar_burst[2*n +: 2]), .m_axi_arvalid(ar_valid[n]), .m_axi_arready(ar_ready[n]), .m_axi_rid(1'b0), .m_axi_rdata(r_data),
                .m_axi_rresp(r_resp), .m_axi_rlast(r_last), .m_axi_rvalid(r_valid[n]), .m_axi_rready(r_ready[n]),
                .m_axis_tdata(p_data), .m_axis_tvalid(p_valid), .m_axis_tready(p_ready));
            mlo_kv_lane #(.BEATS(BEATS), .LANES(LANES), .BITS(BITS), .AXI_WIDTH(AXI_WIDTH)) u_lane (
                .clk(clk), .rst(rst || flush), .begins(begins), .start(job_start), .frames(iterations),
                .s_axis_tdata(s_data[LANES*BITS*n +: LANES*BITS]), .s_axis_tvalid(s_valid[n]), .s_axis_tready(s_ready[n]), .s_axis_tuser(s_user[3*n +: 3]),
                .m_axis_tdata(m_data[LANES*BITS*n +: LANES*BITS]), .m_axis_tvalid(m_valid[n]), .m_axis_tready(m_ready[n]), .m_axis_tuser(m_user[3*n +: 3]),
                .p_axis_tdata(p_data), .p_axis_tvalid(p_valid), .p_axis_tready(p_ready),
                .w_axis_tdata(w_data[AXI_WIDTH*n +: AXI_WIDTH]), .w_axis_tvalid(w_valid[n]), .w_axis_tready(w_ready[n]), .w_last(w_last[n]), .w_row(w_row[n]),
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
    // The fence, where a beat is a row (BEATS = 1): a job's reads begin when each row that came before is answered.
    reg        f_past = 1'b0;
    reg  [7:0] f_rows, f_answers, f_whole;      // rows that came; bursts answered, taken whole
    always @(posedge clk) begin
        f_past    <= 1'b1;
        f_rows    <= rst ? 8'd0 : f_rows + (s_axis_k_tvalid && s_axis_k_tready) + (s_axis_v_tvalid && s_axis_v_tready);
        f_answers <= rst ? 8'd0 : f_answers + (m_axi_bvalid && m_axi_bready);
        f_whole   <= rst ? 8'd0 : f_whole + (m_axi_wvalid && m_axi_wready && m_axi_wlast);
    end
    always @* assume (rst == !f_past && !flush);
    always @* if (f_past) begin
        assume (!m_axi_bvalid || f_whole != f_answers);
        if (begins) assert (f_rows == f_answers);
        cover (begins && f_rows == 2);
    end
`endif
    wire unused = &{1'b0, reader_idle, ar_id, ar_size[5:3], ar_burst[3:2], past, base[SIZE-1:0]};
endmodule
`default_nettype wire
