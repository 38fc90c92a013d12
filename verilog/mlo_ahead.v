// SPDX-License-Identifier: MIT
// mlo_ahead: asks for a tile's parameters as soon as it is sure that the tile comes, so that memory need not wait for its first token
//
// Contract   s: a request a tile, as its first beat is taken (mlo_tile). closed: the tile that was stored is over; closed_next: and
//            its group's tokens with it, in this iteration. m: the same requests in the same order, each once. What comes behind a
//            tile is known when it is over: one of the same iteration, or the first of the next iteration, which the group goes
//            through as well: its request leaves then, and the one that comes with its first beat is dropped. Only behind the last
//            iteration nothing is known to come: that request leaves as it comes. So what is asked for is always used.
// Throughput a tile in 2 cycles
// Latency    closed to m: 2 cycles; s to m: none
// Stall      m: any time; s: while one that left early is not dropped, or m_tready is low
// Legal      s_tdata of a tile behind one that is over is closed_next, but behind the last iteration; no more than 3 tiles are over
//            and their successors' requests not taken (mlo_tile: it takes no tile while two requests wait). iterations (0 acts as 1)
//            stands still from reset on.
`default_nettype none

module mlo_ahead (
    input  wire        clk,
    input  wire        rst,
    input  wire [15:0] iterations,
    input  wire        closed,
    input  wire        closed_next,
    input  wire        s_tdata,
    input  wire        s_tvalid,
    output wire        s_tready,
    output wire        m_tdata,
    output wire        m_tvalid,
    input  wire        m_tready
);
    localparam [1:0] COMES = 2'd0,              // the next request is the one that comes
                     OVER  = 2'd1,              // it is known as soon as the tile is over
                     DROPS = 2'd2;              // it has left; the one that comes is dropped

    reg  [1:0]  state;
    reg         begun;                          // there was a request
    reg  [15:0] iteration;                      // of the latest request that left
    reg  [1:0]  count;                          // tiles that are over, and what is behind them is not known to have been asked for
    reg  [2:0]  next;                           // closed_next of those, oldest first
    wire last  = iteration + 16'd1 >= iterations;
    wire over  = state == OVER && count != 2'd0;
    wire wraps = over && next[0] && last;
    wire early = over && !wraps;
    wire comes = state == COMES || wraps;
    wire gone  = m_tvalid && m_tready;
    wire pop   = over && (wraps || m_tready);
    wire [1:0] left = count - {1'b0, pop};
    assign m_tvalid = comes ? s_tvalid : early;
    assign m_tdata  = comes ? s_tdata : next[0];
    assign s_tready = comes ? m_tready : state == DROPS;

    always @(posedge clk) begin
        if (gone) begin
            begun <= 1'b1;
            if (m_tdata && begun) iteration <= last ? 16'd0 : iteration + 16'd1;
        end
        if (comes)                           state <= gone ? OVER : COMES;
        else if (early && m_tready)          state <= DROPS;
        else if (state == DROPS && s_tvalid) state <= OVER;
        count <= left + {1'b0, closed};
        if (pop) next <= next >> 1;
        if (closed) next[left] <= closed_next;
        if (rst) begin
            state     <= COMES;
            begun     <= 1'b0;
            iteration <= 16'd0;
            count     <= 2'd0;
        end
    end

`ifdef FORMAL
    // Assumed: the reset; requests that wait as a stream does; tiles as mlo_tile has them.
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);
    always @(*) assume (iterations <= 3);
    always @(posedge clk) if (f_past) assume ($stable(iterations));

    // The model: requests that came and that left; tiles that are over, and what was said of the one behind each. They are numbered
    // modulo 8; a tile's request comes when the one before it is over.
    reg  [2:0] f_came, f_left, f_over;
    reg  [7:0] f_said;
    reg  [1:0] f_iteration;                     // of the latest that left
    reg        f_some;                          // one came
    wire [2:0] f_behind = f_over + 3'd1, f_ahead = f_left - f_came, f_waiting = f_over - f_came;
    wire       f_take  = s_tvalid && s_tready;
    wire       f_last  = f_iteration + 2'd1 >= iterations;
    always @(posedge clk) begin
        f_came <= f_came + f_take;
        f_left <= f_left + gone;
        f_over <= f_over + closed;
        f_some <= f_some || f_take;
        if (closed) f_said[f_behind] <= closed_next;
        if (gone && (f_some || f_ahead != 3'd0) && m_tdata) f_iteration <= f_last ? 2'd0 : f_iteration + 2'd1;
        if (rst) {f_came, f_left, f_over, f_iteration, f_some} <= 0;
    end
    always @(posedge clk) if (f_past && !$past(rst) && $past(s_tvalid && !s_tready)) assume (s_tvalid && $stable(s_tdata));
    always @(*) begin
        if (closed) assume (f_waiting == 3'd0 || f_waiting == 3'd1 || (f_waiting == 3'd7 && f_some));
        if (closed && !f_some) assume (s_tvalid || f_waiting == 3'd1);
        if (s_tvalid && f_some) assume (f_waiting != 3'd7);
        if (s_tvalid && state == DROPS) assume (s_tdata == f_said[f_came]);
    end

    always @(posedge clk) if (f_past && !$past(rst) && $past(m_tvalid && !m_tready)) assert (m_tvalid && $stable(m_tdata));
    always @(*) if (f_past) begin
        assert (f_ahead <= 3'd1);               // each once, one ahead of those that come at most
        if (m_tvalid && f_ahead == 3'd0 && !s_tvalid)           // as is known, and sure
            assert (f_some && f_waiting != 3'd7 && m_tdata == f_said[f_left] && !(m_tdata && f_last));
        if (m_tvalid && comes) assert (m_tdata == s_tdata);
    end

    // For the induction: the registers are the model's.
    wire [2:0] f_popped = state == OVER ? f_came - 3'd1 : f_came;
    wire [2:0] f_count  = f_over - f_popped, f_next = f_popped + 3'd1;
    wire [2:0] f_next_1 = f_popped + 3'd2, f_next_2 = f_popped + 3'd3;
    always @(*) if (f_past) begin
        assert (state != 2'd3 && count == f_count && f_count <= 3'd3 && (f_ahead == 3'd1) == (state == DROPS));
        assert (begun == f_some && (f_some || state == COMES) && (f_some || (f_came == 3'd0 && f_left == 3'd0)));
        assert (iteration == f_iteration && iteration <= 2);
        if (count > 0) assert (next[0] == f_said[f_next]);
        if (count > 1) assert (next[1] == f_said[f_next_1]);
        if (count > 2) assert (next[2] == f_said[f_next_2]);
    end
    // not vacuous: one left early, waited, and was dropped; then one of iteration 0 came
    reg [1:0] f_seen = 2'd0;
    always @(posedge clk) begin
        if (f_seen == 0 && early && !m_tready) f_seen <= 2'd1;
        if (f_seen == 1 && f_take && state == DROPS) f_seen <= 2'd2;
        if (f_seen == 2 && gone && comes && last) f_seen <= 2'd3;
        if (rst) f_seen <= 2'd0;
    end
    always @(*) if (f_past) cover (f_seen == 2'd3 && early);
`endif
endmodule

`default_nettype wire
