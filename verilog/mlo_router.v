// SPDX-License-Identifier: MIT
// mlo_router: deals one stream out to PORTS outputs by counting: BEATS[0] beats to port 0, then BEATS[1]
// to port 1, ..., then port 0 again.  One round is one iteration of the loop.
//
// Nothing in the stream says where a beat goes: the parameter image is laid out in this very order.
//
// Throughput: one beat per cycle, also where the port changes.  Latency: 1 cycle.  Stall: the beat in
// front waits for its own port (so the order of the ports must be an order in which they consume).
`default_nettype none
module mlo_router #(
    // bits of a beat
    parameter WIDTH = 128,
    // number of outputs, >= 1
    parameter PORTS = 2,
    // beats of port p per round at [32*p +: 32], each >= 1
    parameter [32*PORTS-1:0] BEATS = {PORTS{32'd1}}
) (
    input  wire             clk,
    input  wire             rst,

    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,

    output wire [WIDTH-1:0] m_axis_tdata,     // shared by all ports
    output wire [PORTS-1:0] m_axis_tvalid,    // at most one bit set
    input  wire [PORTS-1:0] m_axis_tready
);
    localparam PW = (PORTS > 1) ? $clog2(PORTS) : 1;
    localparam [31:0]      FINAL_PORT = PORTS - 1;
    localparam [PORTS-1:0] PORT_0     = 1;
    localparam [PW-1:0]    SECOND     = (PORTS > 1) ? 1 : 0;

    genvar i;
    generate
        if (WIDTH < 1) mlo_error_WIDTH_must_be_positive u_error ();
        if (PORTS < 1) mlo_error_PORTS_must_be_positive u_error_ports ();
        for (i = 0; i < PORTS; i = i + 1) begin : check
            if (BEATS[32*i +: 32] == 0) mlo_error_BEATS_must_be_positive u_error_beats ();
        end
    endgenerate

    wire             valid, ready;
    wire [WIDTH-1:0] data;
    mlo_skid #(.WIDTH(WIDTH)) u_in (
        .clk(clk), .rst(rst),
        .s_tdata(s_axis_tdata), .s_tvalid(s_axis_tvalid), .s_tready(s_axis_tready),
        .m_tdata(data), .m_tvalid(valid), .m_tready(ready));

    reg  [PORTS-1:0] select;    // one hot: the port served now
    reg  [PW-1:0]    next;      // number of the port served next
    reg  [31:0]      left;      // beats left for this port after the beat in front

    assign m_axis_tdata  = data;
    assign m_axis_tvalid = select & {PORTS{valid}};
    assign ready         = |(select & m_axis_tready);

    // Rotating left by one, written so that PORTS = 1 needs no special case.
    wire [PORTS-1:0]   rotated = (select << 1) | (select >> (PORTS - 1));
    wire [31:0]        beats_next = BEATS[32*next +: 32];

    always @(posedge clk) begin
        if (valid && ready) begin
            left <= left - 32'd1;
            if (left == 32'd0) begin
                select <= rotated;
                next   <= (next == FINAL_PORT[PW-1:0]) ? {PW{1'b0}} : next + 1'b1;
                left   <= beats_next - 32'd1;
            end
        end
        if (rst) begin
            select <= PORT_0;
            next   <= SECOND;
            left   <= BEATS[31:0] - 32'd1;
        end
    end

`ifdef FORMAL
    // No assumption but the reset.  That mlo_skid keeps order and words is its own proof.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // f_index: number of the beat in front, within its round.  This is the whole contract: beat f_index
    // belongs to the port p with  sum(BEATS[0..p-1]) <= f_index < sum(BEATS[0..p]).
    // (8 bits are enough for the rounds of the proofs.)
    reg  [7:0]       f_index, f_end, f_sum;
    reg  [PORTS-1:0] f_select;
    reg  [PW-1:0]    f_next;
    integer          f_p;
    always @* begin
        f_sum = 8'd0;
        f_select = {PORTS{1'b0}};
        f_end = 8'd0;
        f_next = {PW{1'b0}};
        for (f_p = 0; f_p < PORTS; f_p = f_p + 1) begin
            if (f_index >= f_sum && f_index < f_sum + BEATS[32*f_p +: 8]) begin
                f_select[f_p] = 1'b1;
                f_end  = f_sum + BEATS[32*f_p +: 8];
                f_next = (f_p + 1) % PORTS;
            end
            f_sum = f_sum + BEATS[32*f_p +: 8];
        end
    end
    wire f_out = |(m_axis_tvalid & m_axis_tready);
    always @(posedge clk) begin
        if (f_out) f_index <= (f_index + 8'd1 == f_sum) ? 8'd0 : f_index + 8'd1;
        if (rst) f_index <= 8'd0;
    end
    always @* if (f_past_valid) begin
        assert (f_index < f_sum);
        assert (m_axis_tvalid == (valid ? f_select : {PORTS{1'b0}}));
        assert (f_out == (valid && ready));            // no beat is lost, none is given twice
        // for the induction: how the registers stand for f_index
        assert (select == f_select);
        assert (left == {24'd0, f_end - 8'd1 - f_index});
        assert (next == f_next);
    end
    // Stream contract: an offer stands until it is taken.
    always @(posedge clk) if (f_past_valid && !$past(rst))
        if ($past(m_axis_tvalid) != 0 && ($past(m_axis_tvalid) & $past(m_axis_tready)) == 0)
            assert (m_axis_tvalid == $past(m_axis_tvalid) && $stable(m_axis_tdata));

    // Not vacuous: a whole round, through a stall.
    reg f_stalled = 1'b0, f_round = 1'b0;
    always @(posedge clk) begin
        if (valid && !ready) f_stalled <= 1'b1;
        if (f_out && f_index + 8'd1 == f_sum) f_round <= f_past_valid && f_stalled;
    end
    always @* cover (f_round && f_index + 8'd1 == f_sum);
`endif
endmodule
`default_nettype wire
