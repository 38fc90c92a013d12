// SPDX-License-Identifier: MIT
// mlo_every: what goes round in a loop (mlo_loop) leaves as well: the tokens of every iteration, not those of the last alone
//
//     s_fb --+--> m_fb        goes round
//            '--.
//     s_ext ----+--> m_ext    leaves
//
// Contract    each beat of s_fb is taken once by m_fb and once by m_ext, each of s_ext once by m_ext, in the order in which they are
//             offered. Eager: who is ready takes a beat and does not wait for the other; the next one comes when both have it.
//             Frames end with s_ext's: of a beat of s_fb, `last` (tuser[1]) is 0 on m_ext. So a frame leaves as one, all its
//             iterations behind each other.
// Throughput  one beat per cycle
// Latency     none: m_* are gates behind s_*
// Stall       s_fb while m_fb or m_ext has not taken its beat
// Timing      s_*_tready and m_*_tvalid are some gates behind m_*_tready and s_*_tvalid: registers belong on either side (mlo_loop, mlo_exit)
// Legal       s_fb and s_ext never offer at the same time, and an offer stands until it is taken
`default_nettype none
module mlo_every #(
    // bits of a beat
    parameter WIDTH = 8
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_fb_tdata,
    input  wire             s_fb_tvalid,
    output wire             s_fb_tready,
    input  wire [2:0]       s_fb_tuser,
    input  wire [WIDTH-1:0] s_ext_tdata,
    input  wire             s_ext_tvalid,
    output wire             s_ext_tready,
    input  wire [2:0]       s_ext_tuser,
    output wire [WIDTH-1:0] m_fb_tdata,
    output wire             m_fb_tvalid,
    input  wire             m_fb_tready,
    output wire [2:0]       m_fb_tuser,
    output wire [WIDTH-1:0] m_ext_tdata,
    output wire             m_ext_tvalid,
    input  wire             m_ext_tready,
    output wire [2:0]       m_ext_tuser
);
    generate
        if (WIDTH < 1) mlo_error_WIDTH_must_be_positive u_width ();
    endgenerate

    reg  gone, left;                    // the beat of s_fb is round; it has left
    wire round  = gone || m_fb_tready;  // at the end of this cycle
    wire leaves = left || m_ext_tready;

    assign m_fb_tvalid  = s_fb_tvalid && !gone;
    assign m_fb_tdata   = s_fb_tdata;
    assign m_fb_tuser   = s_fb_tuser;
    assign m_ext_tvalid = s_ext_tvalid || (s_fb_tvalid && !left);
    assign m_ext_tdata  = s_ext_tvalid ? s_ext_tdata : s_fb_tdata;
    assign m_ext_tuser  = s_ext_tvalid ? s_ext_tuser : {s_fb_tuser[2], 1'b0, s_fb_tuser[0]};
    assign s_fb_tready  = round && leaves;
    assign s_ext_tready = m_ext_tready;

    always @(posedge clk) begin
        gone <= !rst && s_fb_tvalid && !s_fb_tready && round;
        left <= !rst && s_fb_tvalid && !s_fb_tready && leaves;
    end

`ifdef FORMAL
    // Assumed: what is legal. Each beat is taken as often as the contract says when it is accepted; an offer stands.
    reg f_past_valid = 1'b0, f_fb_held, f_ext_held, f_m_fb_held, f_m_ext_held, f_round, f_left;
    reg [WIDTH+2:0] f_fb, f_ext, f_m_fb, f_m_ext;
    wire f_fb_take = s_fb_tvalid && s_fb_tready, f_ext_take = s_ext_tvalid && s_ext_tready;
    wire f_m_fb_take = m_fb_tvalid && m_fb_tready, f_m_ext_take = m_ext_tvalid && m_ext_tready;
    always @(posedge clk) begin
        f_past_valid <= 1'b1;
        {f_fb_held, f_fb}       <= {s_fb_tvalid && !s_fb_tready && !rst, s_fb_tuser, s_fb_tdata};
        {f_ext_held, f_ext}     <= {s_ext_tvalid && !s_ext_tready && !rst, s_ext_tuser, s_ext_tdata};
        {f_m_fb_held, f_m_fb}   <= {m_fb_tvalid && !m_fb_tready && !rst, m_fb_tuser, m_fb_tdata};
        {f_m_ext_held, f_m_ext} <= {m_ext_tvalid && !m_ext_tready && !rst, m_ext_tuser, m_ext_tdata};
        // the beat that s_fb offers has been taken
        f_round <= !rst && !f_fb_take && (f_round || f_m_fb_take);
        f_left  <= !rst && !f_fb_take && (f_left || (f_m_ext_take && !s_ext_tvalid));
    end
    always @* begin
        if (!f_past_valid) assume (rst);
        assume (!(s_fb_tvalid && s_ext_tvalid));
        if (f_past_valid && f_fb_held) assume (s_fb_tvalid && {s_fb_tuser, s_fb_tdata} == f_fb);
        if (f_past_valid && f_ext_held) assume (s_ext_tvalid && {s_ext_tuser, s_ext_tdata} == f_ext);
    end
    always @* if (f_past_valid && !rst) begin
        if (f_m_fb_held)  assert (m_fb_tvalid && {m_fb_tuser, m_fb_tdata} == f_m_fb);
        if (f_m_ext_held) assert (m_ext_tvalid && {m_ext_tuser, m_ext_tdata} == f_m_ext);
        // once each, and not before it is offered
        if (f_m_fb_take) assert (s_fb_tvalid && !f_round && {m_fb_tuser, m_fb_tdata} == {s_fb_tuser, s_fb_tdata});
        if (f_m_ext_take && s_fb_tvalid) assert (!f_left && {m_ext_tuser, m_ext_tdata} == {s_fb_tuser[2], 1'b0, s_fb_tuser[0], s_fb_tdata});
        if (f_m_ext_take && !s_fb_tvalid) assert (f_ext_take && {m_ext_tuser, m_ext_tdata} == {s_ext_tuser, s_ext_tdata});
        if (f_fb_take)  assert ((f_round || f_m_fb_take) && (f_left || f_m_ext_take));
        if (f_ext_take) assert (f_m_ext_take);
        // nobody waits for nothing
        if (s_fb_tvalid && m_fb_tready && m_ext_tready) assert (s_fb_tready);
        if (s_ext_tvalid && m_ext_tready) assert (s_ext_tready);
        assert (gone == f_round && left == f_left && !(gone && left) && (s_fb_tvalid || !(gone || left)));
    end
    reg f_fb_first, f_ext_first;        // not vacuous: either was the first to take a beat
    always @(posedge clk) begin
        f_fb_first  <= !rst && (f_fb_first || (f_m_fb_take && !f_m_ext_take && !f_left));
        f_ext_first <= !rst && (f_ext_first || (f_m_ext_take && !f_m_fb_take && !f_round && s_fb_tvalid));
    end
    always @* cover (f_past_valid && f_fb_first && f_ext_first && f_ext_take);
`endif
endmodule
`default_nettype wire
