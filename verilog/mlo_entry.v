// SPDX-License-Identifier: MIT
// mlo_entry: the door of the core: an external AXI4-Stream becomes an internal token stream
//
// Contract    outside, lanes are padded to whole bytes and `tlast` marks the final beat of a frame.  Inside, lanes
// are packed and every beat of a token carries the same sideband, tuser = {key, last, first}.  So `last`
// has to be known on the first beat of a token although it arrives with the final one: the door keeps a
// token back until it is complete (and, with MASK = 1, until its mask beat is there).
//
// Throughput: one beat per cycle, with no gap between tokens or frames.
// Latency:    BEATS + 2 cycles from the first beat of a token in to its first beat out, BEATS = C/LANES.
// Stall:      when m_axis stalls, up to two more tokens are taken in, then s_axis_tready goes low.
// Legal       LANES divides C
// first:      always 0 here; mlo_loop sets it.
// key:        bit 0 of the token's beat on s1_axis (MASK = 1), else 1.  s1_axis_tlast is not looked at:
//             the activations say where a frame ends.  With MASK = 0 s1_axis is never ready; tie it to 0.
`default_nettype none
module mlo_entry #(
    // channels of a token, a multiple of LANES
    parameter C     = 8,
    // channels per beat
    parameter LANES = 2,
    // bits of a channel, inside (outside: the next whole number of bytes)
    parameter BITS  = 8,
    // 1: a second stream brings one mask beat per token
    parameter MASK  = 0,
    // derived, do not set: bits of a channel outside
    parameter PAD   = (BITS + 7) / 8 * 8
) (
    input  wire                  clk,
    input  wire                  rst,

    input  wire [LANES*PAD-1:0]  s_axis_tdata,
    input  wire                  s_axis_tvalid,
    output wire                  s_axis_tready,
    input  wire                  s_axis_tlast,

    input  wire [7:0]            s1_axis_tdata,
    input  wire                  s1_axis_tvalid,
    output wire                  s1_axis_tready,
    input  wire                  s1_axis_tlast,

    output wire [LANES*BITS-1:0] m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire [2:0]            m_axis_tuser
);
    localparam BEATS = C / LANES;
    localparam BW    = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam W     = LANES * BITS;
    localparam [BW-1:0] FINAL = BEATS[BW-1:0] - 1'b1;

    // Two tokens, and two beats more for the latency of the FIFO itself (it matters when BEATS = 1).
    localparam DEPTH = 2 * BEATS + 2;

    generate
        if (LANES < 1 || BITS < 1 || C < LANES || C % LANES != 0) mlo_error_LANES_must_divide_C u_error ();
        if (MASK != 0 && MASK != 1) mlo_error_MASK_must_be_0_or_1 u_error_mask ();
        if (PAD != (BITS + 7) / 8 * 8) mlo_error_PAD_is_derived_do_not_set_it u_error_pad ();
    endgenerate

    // Drop the padding.
    wire [W-1:0] packed_data;
    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : lane
            assign packed_data[i*BITS +: BITS] = s_axis_tdata[i*PAD +: BITS];
        end
    endgenerate

    // Beats queue in one FIFO; the final beat of each token also puts the token's `last` into a second
    // one.  That second FIFO is never full when the first has room: 2*BEATS + 2 beats hold at most four
    // complete tokens.
    reg  [BW-1:0] in_beat;
    wire          in_final = (in_beat == FINAL);
    wire          data_room, flag_room;
    assign s_axis_tready = data_room && flag_room;
    wire          take = s_axis_tvalid && s_axis_tready;

    always @(posedge clk) begin
        if (take) in_beat <= in_final ? {BW{1'b0}} : in_beat + 1'b1;
        if (rst)  in_beat <= {BW{1'b0}};
    end

    wire [W-1:0] data;
    wire         data_valid, last, last_valid, key, key_valid;
    wire         give, give_final;             // a beat, a token's final beat, moves on

    wire [$clog2(DEPTH+1)-1:0] level_unused;
    wire [2:0]                 flag_level_unused;

    mlo_fifo #(.WIDTH(W), .DEPTH(DEPTH)) u_data (
        .clk(clk), .rst(rst),
        .s_tdata(packed_data), .s_tvalid(take), .s_tready(data_room),
        .m_tdata(data), .m_tvalid(data_valid), .m_tready(give), .level(level_unused));

    mlo_fifo #(.WIDTH(1), .DEPTH(4)) u_last (
        .clk(clk), .rst(rst),
        .s_tdata(s_axis_tlast), .s_tvalid(take && in_final), .s_tready(flag_room),
        .m_tdata(last), .m_tvalid(last_valid), .m_tready(give_final), .level(flag_level_unused));

    generate
        if (MASK != 0) begin : mask
            mlo_skid #(.WIDTH(1)) u_mask (
                .clk(clk), .rst(rst),
                .s_tdata(s1_axis_tdata[0]), .s_tvalid(s1_axis_tvalid), .s_tready(s1_axis_tready),
                .m_tdata(key), .m_tvalid(key_valid), .m_tready(give_final));
            wire unused = &{1'b0, s1_axis_tdata[7:1], s1_axis_tlast};
        end else begin : no_mask
            assign key = 1'b1;
            assign key_valid = 1'b1;
            assign s1_axis_tready = 1'b0;
            wire unused = &{1'b0, s1_axis_tdata, s1_axis_tvalid, s1_axis_tlast};
        end
    endgenerate

    // The bits that pad a lane are ignored.
    wire unused_padding = &{1'b0, s_axis_tdata};

    // The token in front leaves when its `last` and its key are known.
    reg  [BW-1:0] out_beat;
    wire          out_room;
    wire          out_valid = data_valid && last_valid && key_valid;
    assign give       = out_valid && out_room;
    assign give_final = give && (out_beat == FINAL);

    always @(posedge clk) begin
        if (give) out_beat <= (out_beat == FINAL) ? {BW{1'b0}} : out_beat + 1'b1;
        if (rst)  out_beat <= {BW{1'b0}};
    end

    mlo_skid #(.WIDTH(W + 3)) u_out (
        .clk(clk), .rst(rst),
        .s_tdata({key, last, 1'b0, data}), .s_tvalid(out_valid), .s_tready(out_room),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

`ifdef FORMAL
    // The judge of the simulations on all sides: where the outside behaves, so does this door; and a
    // token's beats all say the same in their sideband.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [4:0] f_in, f_mask, f_out;
    mlo_sim_check_axis #(.WIDTH(LANES*PAD), .BEATS(BEATS)) f_check_in (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_in), .breaches(),
        .tdata(s_axis_tdata), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(s_axis_tlast));
    mlo_sim_check_axis #(.WIDTH(8)) f_check_mask (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_mask), .breaches(),
        .tdata(s1_axis_tdata), .tvalid(s1_axis_tvalid), .tready(s1_axis_tready), .tlast(s1_axis_tlast));
    mlo_sim_check_axis #(.WIDTH(W + 3)) f_check_out (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_out), .breaches(),
        .tdata({m_axis_tuser, m_axis_tdata}), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(1'b0));
    reg [BW-1:0] f_beat;
    reg [2:0]    f_user;
    always @(posedge clk) begin
        if (m_axis_tvalid && m_axis_tready) begin
            f_beat <= (f_beat == FINAL) ? {BW{1'b0}} : f_beat + 1'b1;
            f_user <= m_axis_tuser;
        end
        if (rst) f_beat <= {BW{1'b0}};
    end
    always @* if (f_past_valid) begin
        assume (f_in == 5'd0 && f_mask == 5'd0);
        assert (f_out == 5'd0);
        if (m_axis_tvalid && !rst) begin
            assert (!m_axis_tuser[0]);
            if (f_beat != {BW{1'b0}}) assert (m_axis_tuser == f_user);
        end
    end
    always @* cover (f_past_valid && !rst && m_axis_tvalid && m_axis_tready && m_axis_tuser[1]);
`endif
endmodule
`default_nettype wire
