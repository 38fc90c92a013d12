// SPDX-License-Identifier: MIT
// mlo_first: of a frame its first token goes on: of a text, what the model makes of its first token is all that is asked
//
// Contract    beats of a token of BEATS beats; tlast on a token's final beat ends a frame. The frame's first token goes on; all
//             others are dropped. tuser = {1, 1, first}: a frame of its own of one token; `first` on the first token after reset
//             and no other, so that parameters behind are those of one iteration for ever (mlo_loop with one iteration).
// Throughput  a beat per cycle, whether it goes on or not
// Latency     1 cycle
// Stall       while m_axis stalls, a first token's beats wait (one more is taken in); those that are dropped do not
// Timing      s_axis_tready depends on registers only; outputs are registers
// Legal       BEATS >= 1; tlast comes with a token's final beat
`default_nettype none
module mlo_first #(
    parameter WIDTH = 8,            // bits of a beat
    parameter BEATS = 4             // of a token
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire             s_axis_tlast,
    output wire [WIDTH-1:0] m_axis_tdata,
    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire [2:0]       m_axis_tuser
);
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam [BW-1:0] FINAL = BEATS[BW-1:0] - 1'b1;

    generate
        if (WIDTH < 1) mlo_error_WIDTH_must_be_positive u_width ();
        if (BEATS < 1) mlo_error_BEATS_must_be_positive u_beats ();
    endgenerate

    reg  [BW-1:0] at;                   // of the beat that comes
    reg           rest;                 // the frame's first token is in
    reg           first;                // no token has come since reset
    wire          room, marked;
    wire          take = s_axis_tvalid && s_axis_tready;
    assign s_axis_tready = rest || room;
    assign m_axis_tuser  = {2'b11, marked};

    always @(posedge clk) begin
        if (take) at <= (at == FINAL) ? {BW{1'b0}} : at + 1'b1;
        if (take && at == FINAL) rest  <= !s_axis_tlast;
        if (take && at == FINAL) first <= 1'b0;
        if (rst) begin
            at    <= {BW{1'b0}};
            rest  <= 1'b0;
            first <= 1'b1;
        end
    end

    mlo_skid #(.WIDTH(WIDTH + 1)) u_out (
        .clk(clk), .rst(rst),
        .s_tdata({first, s_axis_tdata}), .s_tvalid(s_axis_tvalid && !rest), .s_tready(room),
        .m_tdata({marked, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

`ifdef FORMAL
    // The judge of the simulations on both sides; what comes out of what went in: tests/formal/contract/mlo_first.v.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [4:0] f_in, f_out;
    mlo_sim_check_axis #(.WIDTH(WIDTH), .BEATS(BEATS)) f_check_in (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_in), .breaches(),
        .tdata(s_axis_tdata), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(s_axis_tlast));
    mlo_sim_check_axis #(.WIDTH(WIDTH + 3)) f_check_out (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_out), .breaches(),
        .tdata({m_axis_tuser, m_axis_tdata}), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(1'b0));
    // beats that came out never outnumber those of the first tokens that came in
    reg [3:0] f_ahead;
    always @(posedge clk) f_ahead <= rst ? 4'd0 : f_ahead + {3'd0, take && !rest} - {3'd0, m_axis_tvalid && m_axis_tready};
    always @* if (f_past_valid) begin
        assume (f_in == 5'd0);
        assert (f_out == 5'd0);
        assert (at <= FINAL && f_ahead <= 4'd2 && m_axis_tvalid == (f_ahead != 4'd0));
        if (rest) assert (s_axis_tready && !first);
    end
    always @* cover (f_past_valid && !rst && m_axis_tvalid && m_axis_tready && !marked && rest);
`endif
endmodule
`default_nettype wire
