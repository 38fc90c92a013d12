// SPDX-License-Identifier: MIT
// mlo_router: deals one stream out to PORTS outputs by counting: BEATS[0] beats to port 0, then BEATS[1]
// to port 1, ..., then port 0 again: an iteration of the loop.  `iterations` of them are a round.  The ports
// of RESIDENT get their beats in the first round after reset only; later rounds leave them out.
//
// Contract    nothing in the stream says where a beat goes: mlo_loader asks for the beats in this very order.
// m_axis_tlast: the beat is of the last iteration of the first round (what memories that are loaded once
// want to know; later it means nothing).
//
// Throughput: one beat per cycle, also where the port changes
// Latency:    1 cycle; the first beat after reset may wait a cycle
// Stall:      the beat in front waits for its own port (so the order of the ports must be an
//             order in which they consume; a memory that is loaded once never makes a beat wait)
// Legal       iterations (0 acts as 1) must stand still from reset on.
`default_nettype none
module mlo_router #(
    // bits of a beat
    parameter WIDTH = 128,
    // number of outputs, >= 1
    parameter PORTS = 2,
    // beats of port p per round at [32*p +: 32], each >= 1
    parameter [32*PORTS-1:0] BEATS = {PORTS{32'd1}},
    // ports whose beats come in the first round only
    parameter [PORTS-1:0] RESIDENT = {PORTS{1'b0}}
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [15:0]      iterations,

    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,

    output wire [WIDTH-1:0] m_axis_tdata,     // shared by all ports
    output wire             m_axis_tlast,     // shared by all ports
    output wire [PORTS-1:0] m_axis_tvalid,    // at most one bit set
    input  wire [PORTS-1:0] m_axis_tready
);
    localparam PW = (PORTS > 1) ? $clog2(PORTS) : 1;
    localparam [31:0]      FINAL_PORT = PORTS - 1;
    localparam [PORTS-1:0] PORT_0     = 1;
    localparam             NONE       = &RESIDENT;      // later rounds have no beats

    // The port after port p in a later round, PW bits each; behind them the first one.
    function [PW*(PORTS+1)-1:0] successors(input integer unused_argument);
        integer p;
        reg [PW-1:0] port, then;
        begin
            successors = {(PW*(PORTS+1)){1'b0}};
            then = {PW{1'b0}};
            port = {PW{1'b0}};
            for (p = 2*PORTS - 1; p >= 0; p = p - 1) begin     // twice, for the way from the last to the first
                port = (port == {PW{1'b0}}) ? FINAL_PORT[PW-1:0] : port - 1'b1;       // p modulo PORTS
                if (p < PORTS) successors[PW*p +: PW] = then;
                if (!RESIDENT[port]) then = port;
            end
            successors[PW*PORTS +: PW] = then;
        end
    endfunction
    localparam [PW*(PORTS+1)-1:0] AFTER = successors(0);

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

    reg  [PORTS-1:0] select;    // one hot: the port served now; 0: none (after reset, and when all is loaded)
    reg              closing;   // it is of the first round's last iteration
    reg  [31:0]      left;      // beats left for this port after the beat in front
    reg  [PW-1:0]    next;      // number of the port served next
    reg  [15:0]      iteration; // ... in this iteration of the first round
    reg              later;     // ... in a later round

    assign m_axis_tdata  = data;
    assign m_axis_tlast  = closing;
    assign m_axis_tvalid = select & {PORTS{valid}};
    assign ready         = |(select & m_axis_tready);

    wire              wraps      = (next == FINAL_PORT[PW-1:0]);
    wire              last_one   = !later && (iteration + 16'd1 >= iterations);
    wire              advance    = (select == {PORTS{1'b0}}) || (valid && ready && left == 32'd0);
    wire [31:0]       beats_next = BEATS[32*next +: 32];

    always @(posedge clk) begin
        if (valid && ready) left <= left - 32'd1;
        if (advance) begin
            select <= (later && NONE) ? {PORTS{1'b0}} : PORT_0 << next;
            closing <= last_one;
            left   <= beats_next - 32'd1;
            if (later)
                next <= AFTER[PW*next +: PW];
            else if (!wraps)
                next <= next + 1'b1;
            else begin
                next      <= last_one ? AFTER[PW*PORTS +: PW] : {PW{1'b0}};
                iteration <= iteration + 16'd1;
                later     <= last_one;
            end
        end
        if (rst) begin
            select    <= {PORTS{1'b0}};
            next      <= {PW{1'b0}};
            iteration <= 16'd0;
            later     <= 1'b0;
        end
    end

`ifdef FORMAL
    // No assumption but the reset, and that iterations stand still.  That mlo_skid keeps order and words is its own proof.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    (* anyconst *) wire [1:0] f_n;
    always @* assume (iterations == {14'd0, f_n});
    wire [15:0] f_most = (f_n == 0) ? 16'd1 : {14'd0, f_n};

    // f_index: number of the beat in front, within its iteration; f_round: a later round; f_iteration: in the first.
    // This is the whole contract: beat f_index belongs to the port p with  sum(BEATS[0..p-1]) <= f_index < sum(BEATS[0..p]),
    // where ports of RESIDENT count 0 in later rounds.    (8 bits are enough for the rounds of the proofs.)
    reg  [7:0]       f_index, f_end, f_sum, f_beats;
    reg  [PORTS-1:0] f_select;
    reg  [PW-1:0]    f_next, f_first;           // the port after it in the same iteration, if f_more; the first of later rounds
    reg              f_more, f_round;
    reg  [15:0]      f_iteration;
    integer          f_p;
    always @* begin
        f_sum = 8'd0;
        f_select = {PORTS{1'b0}};
        f_end = 8'd0;
        f_next = {PW{1'b0}};
        f_more = 1'b0;
        f_first = {PW{1'b0}};
        f_beats = 8'd0;
        for (f_p = 0; f_p < PORTS; f_p = f_p + 1) begin
            f_beats = (f_round && RESIDENT[f_p]) ? 8'd0 : BEATS[32*f_p +: 8];
            if (f_index >= f_sum && f_index < f_sum + f_beats) begin
                f_select[f_p] = 1'b1;
                f_end  = f_sum + f_beats;
            end else if (f_select != 0 && !f_more && f_beats != 0) begin
                f_more = 1'b1;
                f_next = f_p;
            end
            f_sum = f_sum + f_beats;
        end
        for (f_p = PORTS - 1; f_p >= 0; f_p = f_p - 1)
            if (!RESIDENT[f_p]) f_first = f_p;
    end
    wire f_out  = |(m_axis_tvalid & m_axis_tready);
    wire f_over = f_index + 8'd1 == f_sum;
    wire f_last = !f_round && f_iteration + 16'd1 == f_most;
    reg  f_started;                                     // a cycle after reset
    always @(posedge clk) begin
        f_started <= !rst;
        if (f_out) begin
            f_index <= f_over ? 8'd0 : f_index + 8'd1;
            if (f_over && !f_round) f_iteration <= f_iteration + 16'd1;
            if (f_over && f_last)   f_round <= 1'b1;
        end
        if (rst) begin
            f_index     <= 8'd0;
            f_iteration <= 16'd0;
            f_round     <= 1'b0;
        end
    end
    always @* if (f_past_valid) begin
        assert (m_axis_tvalid == ((valid && f_started) ? f_select : {PORTS{1'b0}}));
        assert (f_out == (valid && ready));            // no beat is lost, none is given twice
        if (m_axis_tvalid != 0 && !f_round) assert (m_axis_tlast == f_last);
        // for the induction: how the registers stand for f_index
        assert (f_index < f_sum || (f_round && NONE && f_index == 0));
        assert (f_round ? f_iteration == f_most : f_iteration < f_most);
        if (!f_started) assert (select == 0 && next == 0 && iteration == 0 && !later && f_index == 0 && f_iteration == 0 && !f_round);
        else begin
            assert (select == f_select);
            if (f_select != 0) begin
                assert (left == {24'd0, f_end - 8'd1 - f_index});
                assert (next == (f_more ? f_next : (f_round || f_last) ? f_first : {PW{1'b0}}));
                assert (later == (f_round || (f_last && !f_more)));
                assert (f_round || closing == f_last);
            end else assert (later);
            assert (iteration == ((!f_round && !f_more) ? f_iteration + 16'd1 : f_iteration));
        end
    end
    // Stream contract: an offer stands until it is taken.
    always @(posedge clk) if (f_past_valid && !$past(rst))
        if ($past(m_axis_tvalid) != 0 && ($past(m_axis_tvalid) & $past(m_axis_tready)) == 0)
            assert (m_axis_tvalid == $past(m_axis_tvalid) && $stable(m_axis_tdata) && $stable(m_axis_tlast));

    // Not vacuous: a whole iteration, through a stall; a later round, if it has beats.
    reg f_stalled = 1'b0, f_seen = 1'b0;
    always @(posedge clk) begin
        if (valid && !ready) f_stalled <= 1'b1;
        if (f_out && f_over) f_seen <= f_past_valid && f_stalled;
    end
    always @* cover (f_seen && (f_over || NONE) && f_started);
    always @* cover (f_past_valid && f_started && f_round && (valid || NONE));
`endif
endmodule
`default_nettype wire
