// SPDX-License-Identifier: MIT
// mlo_kv_lane: the keys (or values) of a frame with those of the past in front, and its own as rows for the memory
//
// Contract    a word for each frame: behind how many tokens of the past it is. m_axis: for each frame first
//             start * BEATS beats out of p_axis (all keys valid, none last), then the frame's own tokens as they come.
//             w_axis: each own token as a row of ROW beats: PER steps of a token in a beat, step 0 lowest, each LANES channels
//             of PAD bits (sign extended); what is left of a row is 0. p_axis has rows of that form.
//             w_last: on all beats of a frame's last row. w_row: a whole row waits at w_axis. empty: no beat of a row waits.
// Throughput  a beat per cycle of m_axis, of the past and the frame's own
// Latency     one cycle
// Stall       two own beats, or beats of the past, are taken while m_axis stalls; own ones also wait for room for their row
// Legal       BITS <= PAD; no beat of the frame's own is taken before its word is
`default_nettype none
module mlo_kv_lane #(
    // beats of a token, channels of a beat, bits of a channel
    parameter BEATS = 4,
    parameter LANES = 2,
    parameter BITS  = 8,
    // bits of a beat of memory
    parameter AXI_WIDTH = 128,
    // derived, do not set: bits of a channel and steps of a beat in memory, beats of a row
    parameter PAD = (BITS + 7) / 8 * 8,
    parameter PER = AXI_WIDTH / (LANES * PAD),
    parameter ROW = (BEATS + PER - 1) / PER
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [15:0]           start,
    input  wire                  start_valid,
    output wire                  start_ready,
    input  wire [LANES*BITS-1:0] s_axis_tdata,
    input  wire                  s_axis_tvalid,
    output wire                  s_axis_tready,
    input  wire [2:0]            s_axis_tuser,
    output wire [LANES*BITS-1:0] m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire [2:0]            m_axis_tuser,
    input  wire [AXI_WIDTH-1:0]  p_axis_tdata,
    input  wire                  p_axis_tvalid,
    output wire                  p_axis_tready,
    output wire [AXI_WIDTH-1:0]  w_axis_tdata,
    output wire                  w_axis_tvalid,
    input  wire                  w_axis_tready,
    output wire                  w_last,
    output wire                  w_row,
    output wire                  empty
);

localparam STEP = LANES * PAD;                      // bits of a step
localparam BW   = (BEATS > 1) ? $clog2(BEATS) : 1;
localparam PW   = (PER > 1) ? $clog2(PER) : 1;
localparam DEEP = 2 * ROW + 2;
localparam LW   = $clog2(DEEP + 1);
localparam RW   = (ROW > 1) ? $clog2(ROW) : 1;
localparam [31:0]   BEAT_32 = BEATS - 1, PER_32 = PER - 1, ROW_32 = ROW - 1;
localparam [BW-1:0] BEAT_LAST = BEAT_32[BW-1:0], BEAT_ONE = 1;
localparam [PW-1:0] STEP_LAST = PER_32[PW-1:0], STEP_ONE = 1;
localparam [RW-1:0] ROW_LAST  = ROW_32[RW-1:0], ROW_ONE = 1;

generate
    if (BEATS < 1 || LANES < 1 || BITS < 1) mlo_error_BEATS_LANES_BITS_must_be_at_least_1 u_shape();
    if (AXI_WIDTH < LANES * PAD) mlo_error_AXI_WIDTH_must_hold_a_step u_axi();
endgenerate

// ---- where the stream is -----------------------------------------------------------------
reg           opened;                               // a frame is
reg  [15:0]   past;                                 // its tokens of the past that are not through
reg  [BW-1:0] beat;                                 // of the token at hand
reg  [PW-1:0] step;                                 // of the memory's beat
wire          of_past = past != 16'd0;
wire          final_beat = beat == BEAT_LAST;
wire          filled = final_beat || step == STEP_LAST;     // the memory's beat is
wire          out_ready, row_ready;
wire          own   = !of_past && opened && row_ready;
wire          take  = out_ready && (of_past ? p_axis_tvalid : own && s_axis_tvalid);
wire          ends  = take && final_beat && !of_past && s_axis_tuser[1];
assign start_ready   = !opened || ends;
assign s_axis_tready = own && out_ready;
assign p_axis_tready = of_past && out_ready && filled;

always @(posedge clk) begin
    if (take) begin
        beat <= final_beat ? {BW{1'b0}} : beat + BEAT_ONE;
        step <= filled ? {PW{1'b0}} : step + STEP_ONE;
        if (final_beat && of_past) past <= past - 16'd1;
    end
    if (start_ready) begin
        opened <= start_valid;
        past   <= start_valid ? start : 16'd0;
    end
    if (rst) begin
        opened <= 1'b0;
        past   <= 16'd0;
        beat <= {BW{1'b0}};
        step <= {PW{1'b0}};
    end
end

// ---- in: the past's channels, or the frame's ----------------------------------------------
wire [AXI_WIDTH-1:0]  shifted = p_axis_tdata >> (step * STEP);
wire [LANES*BITS-1:0] past_data;
wire [STEP-1:0]       padded;
genvar l;
generate
    for (l = 0; l < LANES; l = l + 1) begin : g_lane
        assign past_data[l*BITS +: BITS] = shifted[l*PAD +: BITS];
        if (PAD > BITS) assign padded[l*PAD +: PAD] = {{PAD-BITS{s_axis_tdata[l*BITS+BITS-1]}}, s_axis_tdata[l*BITS +: BITS]};
        else            assign padded[l*PAD +: PAD] = s_axis_tdata[l*BITS +: BITS];
    end
endgenerate
mlo_skid #(.WIDTH(LANES*BITS + 3)) u_out (
    .clk(clk), .rst(rst), .s_tdata(of_past ? {3'b100, past_data} : {s_axis_tuser, s_axis_tdata}), .s_tvalid(take), .s_tready(out_ready),
    .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

// ---- the frame's own, as rows --------------------------------------------------------------
reg  [AXI_WIDTH-1:0] held;                          // the steps of this beat that came
wire [AXI_WIDTH-1:0] wide = {{AXI_WIDTH-STEP{1'b0}}, padded};
wire [AXI_WIDTH-1:0] word = (step == {PW{1'b0}} ? {AXI_WIDTH{1'b0}} : held) | wide << (step * STEP);
wire                 push = take && !of_past && filled;
wire                 give = w_axis_tvalid && w_axis_tready;
reg  [LW-1:0]        rows;
reg  [RW-1:0]        sent;                          // beats of the row at w_axis
wire                 row_in = push && final_beat, row_out = give && sent == ROW_LAST;
wire [LW-1:0]        level;
always @(posedge clk) begin
    if (take && !of_past) held <= word;
    if (give) sent <= sent == ROW_LAST ? {RW{1'b0}} : sent + ROW_ONE;
    rows <= rows + {{LW-1{1'b0}}, row_in} - {{LW-1{1'b0}}, row_out};
    if (rst) begin
        rows <= {LW{1'b0}};
        sent <= {RW{1'b0}};
    end
end
mlo_fifo #(.WIDTH(AXI_WIDTH + 1), .DEPTH(DEEP)) u_rows (
    .clk(clk), .rst(rst), .s_tdata({s_axis_tuser[1], word}), .s_tvalid(push), .s_tready(row_ready),
    .m_tdata({w_last, w_axis_tdata}), .m_tvalid(w_axis_tvalid), .m_tready(w_axis_tready), .level(level));
assign w_row = rows != {LW{1'b0}} && w_axis_tvalid;
assign empty = level == {LW{1'b0}};

wire unused = &{1'b0, shifted};

`ifdef FORMAL
    // Each frame is as many tokens of the past as its word says and then its own; nothing of the past is lost, taken twice, or taken for another.
    reg f_past = 1'b0, f_in = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @* assume (rst == !f_past);
    reg  [15:0] f_start, f_before;                      // the frame's word; tokens of the past that are through
    reg  [7:0]  f_read;                                 // beats of memory in this row
    always @(posedge clk) begin
        if (take && final_beat && of_past) f_before <= f_before + 16'd1;
        if (ends) f_in <= 1'b0;
        if (start_valid && start_ready) {f_in, f_start, f_before} <= {1'b1, start, 16'd0};
        f_read <= rst || (take && final_beat) ? 8'd0 : f_read + (take && filled);
        if (rst) f_in <= 1'b0;
    end
    always @* if (f_past && !rst) begin
        assert (f_in == opened);
        assert (past == (f_in ? f_start - f_before : 16'd0));
        if (f_in) assert (f_before <= f_start); else assert (beat == 0);
        if (take && !of_past) assert (f_in && f_before == f_start);
        if (p_axis_tvalid && p_axis_tready) assert (f_in && f_before < f_start);
        if (start_ready && f_in) assert (ends);
        assert (beat <= BEAT_LAST && step <= STEP_LAST && beat == f_read * PER + step && f_read < ROW);
        if (take && final_beat) assert (f_read == ROW - 1);         // a row ends with its last beat
        assert (sent <= ROW_LAST);
        assert (level + sent == rows * ROW + (of_past || !opened ? 8'd0 : f_read));
        if (of_past || !opened) assert (!push);
        if (w_row) assert (w_axis_tvalid);
        assert (!push || row_ready);
        assert (level <= DEEP);
    end
    // a step is written in its place, and what comes behind it is 0
    wire [AXI_WIDTH-1:0] f_held = held >> (step * STEP);
    always @* if (f_past && step != 0 && !of_past && opened) assert (f_held == 0);
    wire [AXI_WIDTH-1:0] f_word = word >> (step * STEP);
    always @* if (f_past && take && !of_past) assert (f_word[STEP-1:0] == padded && (f_word >> STEP) == 0);
    always @* cover (f_past && f_in && f_start == 1 && ends && start_valid && start == 2);
`endif
endmodule
`default_nettype wire
