// SPDX-License-Identifier: MIT
// mlo_exit: the other door: the internal token stream becomes an external AXI4-Stream
//
// Contract    lanes are sign-extended to whole bytes; tlast marks the final beat of a frame, that is the final beat
// of the token whose sideband says `last`.  One frame is one DMA transfer.
//
// Throughput: one beat per cycle
// Latency:    1 cycle
// Stall:      one more beat is taken in, then s_axis_tready goes low
// Legal       LANES divides C
`default_nettype none
module mlo_exit #(
    // channels of a token, a multiple of LANES
    parameter C     = 8,
    // channels per beat
    parameter LANES = 2,
    // bits of a channel, inside (outside: the next whole number of bytes)
    parameter BITS  = 8,
    // derived, do not set: bits of a channel outside
    parameter PAD   = (BITS + 7) / 8 * 8
) (
    input  wire                  clk,
    input  wire                  rst,

    input  wire [LANES*BITS-1:0] s_axis_tdata,
    input  wire                  s_axis_tvalid,
    output wire                  s_axis_tready,
    input  wire [2:0]            s_axis_tuser,

    output wire [LANES*PAD-1:0]  m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire                  m_axis_tlast
);
    localparam BEATS = C / LANES;
    localparam BW    = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam W     = LANES * BITS;
    localparam [BW-1:0] FINAL = BEATS[BW-1:0] - 1'b1;

    generate
        if (LANES < 1 || BITS < 1 || C < LANES || C % LANES != 0) mlo_error_LANES_must_divide_C u_error ();
        if (PAD != (BITS + 7) / 8 * 8) mlo_error_PAD_is_derived_do_not_set_it u_error_pad ();
    endgenerate

    reg [BW-1:0] beat;
    always @(posedge clk) begin
        if (s_axis_tvalid && s_axis_tready) beat <= (beat == FINAL) ? {BW{1'b0}} : beat + 1'b1;
        if (rst) beat <= {BW{1'b0}};
    end

    wire [W-1:0] data;
    mlo_skid #(.WIDTH(W + 1)) u_out (
        .clk(clk), .rst(rst),
        .s_tdata({s_axis_tuser[1] && (beat == FINAL), s_axis_tdata}),
        .s_tvalid(s_axis_tvalid), .s_tready(s_axis_tready),
        .m_tdata({m_axis_tlast, data}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

    // Extending behind the skid buffer costs wires only, and keeps its registers few.
    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : lane
            assign m_axis_tdata[i*PAD +: BITS] = data[i*BITS +: BITS];
            if (PAD > BITS) begin : pad
                assign m_axis_tdata[i*PAD+BITS +: PAD-BITS] = {(PAD-BITS){data[i*BITS+BITS-1]}};
            end
        end
    endgenerate

    wire unused = &{1'b0, s_axis_tuser[2], s_axis_tuser[0]};

`ifdef FORMAL
    // The judge of the simulations on both sides: who offers inside behaves, and so does this door.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [4:0] f_in, f_out;
    mlo_sim_check_axis #(.WIDTH(W + 3)) f_check_in (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_in), .breaches(),
        .tdata({s_axis_tuser, s_axis_tdata}), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(1'b0));
    mlo_sim_check_axis #(.WIDTH(LANES*PAD), .BEATS(BEATS)) f_check_out (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_out), .breaches(),
        .tdata(m_axis_tdata), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(m_axis_tlast));
    always @* if (f_past_valid) begin
        assume (f_in == 5'd0);
        assert (f_out == 5'd0);
    end
    always @* cover (f_past_valid && !rst && m_axis_tvalid && m_axis_tready && m_axis_tlast);
`endif
endmodule
`default_nettype wire
