// SPDX-License-Identifier: MIT
// mlo_split: deals the channels of each token out to three streams
//
// A merged projection computes Q, K and V in one matrix: its token is the three
// vectors one after the other, and this takes them apart again.
//
// Contract    of the C0 + C1 + C2 channels of each input token the first C0 go to
//             m0, the next C1 to m1, the last C2 to m2, in order, each with the
//             token's sideband. C2 = 0: two streams, m2 is never valid
// Throughput  one beat per cycle
// Latency     1 cycle
// Stall       an output that is not ready takes two beats, then stops the input
//             when its next beat comes; the order of the beats is fixed, so the
//             other outputs then starve
// Timing      s_axis_tready depends on registers only; outputs are registers
// Legal       BITS, LANES >= 1; LANES divides C0, C1 and C2; C0, C1 >= LANES, C2 >= 0
`default_nettype none
module mlo_split #(
    // bits of a lane, >= 1
    parameter BITS = 8,
    // lanes per beat, >= 1; divides C0, C1 and C2
    parameter LANES = 2,
    // channels of a token that go to m0, >= LANES
    parameter C0 = 4,
    // channels of a token that go to m1, >= LANES
    parameter C1 = 4,
    // channels of a token that go to m2, or 0
    parameter C2 = 4
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [LANES*BITS-1:0] s_axis_tdata,
    input  wire                  s_axis_tvalid,
    output wire                  s_axis_tready,
    input  wire [2:0]            s_axis_tuser,
    output wire [LANES*BITS-1:0] m0_axis_tdata,
    output wire                  m0_axis_tvalid,
    input  wire                  m0_axis_tready,
    output wire [2:0]            m0_axis_tuser,
    output wire [LANES*BITS-1:0] m1_axis_tdata,
    output wire                  m1_axis_tvalid,
    input  wire                  m1_axis_tready,
    output wire [2:0]            m1_axis_tuser,
    output wire [LANES*BITS-1:0] m2_axis_tdata,
    output wire                  m2_axis_tvalid,
    input  wire                  m2_axis_tready,
    output wire [2:0]            m2_axis_tuser
);

generate
    if (BITS < 1) begin : g_error_bits
        mlo_error_BITS_must_be_at_least_1 u_error();
    end
    if (LANES < 1) begin : g_error_lanes
        mlo_error_LANES_must_be_at_least_1 u_error();
    end
    if (C0 < LANES || C0 % LANES != 0) begin : g_error_c0
        mlo_error_LANES_must_divide_C0 u_error();
    end
    if (C1 < LANES || C1 % LANES != 0) begin : g_error_c1
        mlo_error_LANES_must_divide_C1 u_error();
    end
    if (C2 < 0 || C2 % LANES != 0) begin : g_error_c2
        mlo_error_LANES_must_divide_C2 u_error();
    end
endgenerate

localparam W  = 3 + LANES*BITS;                 // payload: sideband and data
localparam B0 = C0 / LANES;                     // beats of each part
localparam B1 = C1 / LANES;
localparam B2 = C2 / LANES;
localparam M1 = (B0 > B1) ? B0 : B1;
localparam BM = (M1 > B2) ? M1 : B2;            // of the longest part
localparam CW = (BM > 1) ? $clog2(BM) : 1;

localparam [31:0]   LAST0_32 = B0 - 1;
localparam [31:0]   LAST1_32 = B1 - 1;
localparam [31:0]   LAST2_32 = (B2 > 0) ? B2 - 1 : 0;
localparam [CW-1:0] LAST0    = LAST0_32[CW-1:0];
localparam [CW-1:0] LAST1    = LAST1_32[CW-1:0];
localparam [CW-1:0] LAST2    = LAST2_32[CW-1:0];
localparam [CW-1:0] ONE      = 1;

// The receiver of the next beat, one-hot, and the beats it got of this token.
reg  [2:0]    to_reg;
reg  [CW-1:0] count_reg;

wire [2:0] room;                                // of the three skids
wire       take = s_axis_tvalid && s_axis_tready;
wire       last = to_reg[0] ? count_reg == LAST0 :
                  to_reg[1] ? count_reg == LAST1 :
                              count_reg == LAST2;

assign s_axis_tready = |(to_reg & room);

always @(posedge clk) begin
    if (take) begin
        count_reg <= last ? {CW{1'b0}} : count_reg + ONE;
        if (last)
            to_reg <= (C2 > 0 || to_reg[0]) ? {to_reg[1:0], to_reg[2]} : 3'b001;
    end
    if (rst) begin
        to_reg    <= 3'b001;
        count_reg <= {CW{1'b0}};
    end
end

wire [W-1:0] payload = {s_axis_tuser, s_axis_tdata};
wire [2:0]   offer   = to_reg & {3{s_axis_tvalid}};

mlo_skid #(.WIDTH(W)) u_skid0 (
    .clk(clk), .rst(rst),
    .s_tdata(payload), .s_tvalid(offer[0]), .s_tready(room[0]),
    .m_tdata({m0_axis_tuser, m0_axis_tdata}), .m_tvalid(m0_axis_tvalid), .m_tready(m0_axis_tready)
);

mlo_skid #(.WIDTH(W)) u_skid1 (
    .clk(clk), .rst(rst),
    .s_tdata(payload), .s_tvalid(offer[1]), .s_tready(room[1]),
    .m_tdata({m1_axis_tuser, m1_axis_tdata}), .m_tvalid(m1_axis_tvalid), .m_tready(m1_axis_tready)
);

generate
if (C2 > 0) begin : g_third
    mlo_skid #(.WIDTH(W)) u_skid2 (
        .clk(clk), .rst(rst),
        .s_tdata(payload), .s_tvalid(offer[2]), .s_tready(room[2]),
        .m_tdata({m2_axis_tuser, m2_axis_tdata}), .m_tvalid(m2_axis_tvalid), .m_tready(m2_axis_tready)
    );
end else begin : g_no_third
    assign room[2]        = 1'b0;
    assign m2_axis_tdata  = {LANES*BITS{1'b0}};
    assign m2_axis_tuser  = 3'b000;
    assign m2_axis_tvalid = 1'b0;
    wire unused = &{1'b0, m2_axis_tready, offer[2]};
end
endgenerate

`ifdef FORMAL
    // No assumption but the reset. What goes into the skids is proved here; that
    // they pass it on is among their own properties, proved along with these.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // f_beat is the place of the next beat in its token; that alone says where it goes.
    // (Narrow constants: 32-bit sums cost z3 minutes.)
    localparam [4:0] F_B0 = B0, F_B1 = B0 + B1, F_LAST = B0 + B1 + B2 - 1;
    reg  [4:0] f_beat;
    wire [4:0] f_count = count_reg;
    always @(posedge clk)
        if (rst || (take && f_beat == F_LAST)) f_beat <= 5'd0;
        else if (take) f_beat <= f_beat + 5'd1;
    wire [2:0] f_to = f_beat < F_B0 ? 3'b001 : f_beat < F_B1 ? 3'b010 : 3'b100;
    always @* if (f_past_valid) begin
        assert (f_beat <= F_LAST);
        assert (to_reg == f_to);
        if (f_to[0]) assert (f_beat == f_count);
        if (f_to[1]) assert (f_beat == f_count + F_B0);
        if (f_to[2]) assert (f_beat == f_count + F_B1);
        assert ((offer & room) == (take ? f_to : 3'b000));  // into one skid, if it is taken
        assert (s_axis_tready == ((f_to & room) != 3'b000));
        if (C2 == 0) assert (!m2_axis_tvalid && !offer[2]);
    end

    always @(posedge clk) if (f_past_valid) begin
        if ($past(rst))
            assert (!m0_axis_tvalid && !m1_axis_tvalid && !m2_axis_tvalid);
        else begin
            if ($past(m0_axis_tvalid && !m0_axis_tready))
                assert (m0_axis_tvalid && $stable(m0_axis_tdata) && $stable(m0_axis_tuser));
            if ($past(m1_axis_tvalid && !m1_axis_tready))
                assert (m1_axis_tvalid && $stable(m1_axis_tdata) && $stable(m1_axis_tuser));
            if ($past(m2_axis_tvalid && !m2_axis_tready))
                assert (m2_axis_tvalid && $stable(m2_axis_tdata) && $stable(m2_axis_tuser));
            if ($past(take)) begin                          // latency 1
                if ($past(f_to[0])) assert (m0_axis_tvalid);
                if ($past(f_to[1])) assert (m1_axis_tvalid);
                if ($past(f_to[2])) assert (m2_axis_tvalid);
            end
        end
    end

    // Not vacuous: a second token begins, and the input had to wait.
    reg f_token = 1'b0, f_waited = 1'b0;
    always @(posedge clk) begin
        if (take && f_beat == F_LAST) f_token <= 1'b1;
        if (s_axis_tvalid && !s_axis_tready) f_waited <= 1'b1;
        if (rst) {f_token, f_waited} <= 2'b00;
    end
    always @* cover (f_past_valid && f_token && f_waited && take && to_reg[1]);
`endif
endmodule
`default_nettype wire
