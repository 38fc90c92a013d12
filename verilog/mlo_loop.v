// SPDX-License-Identifier: MIT
// mlo_loop: loop control: iteration 0 comes from outside, the last one leaves, the rest goes round
//
//              s_ext ----\                          /----> m_ext
//                         >--- m_body .. s_body ---<
//        .--> s_fb ------/       (the body)         \----> m_fb --.
//        '------------------ feedback FIFO <----------------------'
//
// Contract    order is iteration-major: a group of up to `frames` frames enters one after the other as iteration 0,
// then the same frames pass as iteration 1, ..., until iteration `iterations`-1 leaves through m_ext.
// The parameters of an iteration are then used by the whole group.
//   - A frame ends with the token whose tuser[1] `last` is 1.  Its length is its own business.
//   - tuser[0] `first` is rewritten: 1 on the first token of an iteration (of the group's first frame).
//   - A group closes when it has `frames` frames, or at a frame boundary when no further frame waits
//     outside: while its first results already wait in the feedback, or with PATIENCE after so many cycles.
//   - The next group may enter as soon as the last iteration of this one has entered the body: there is
//     no gap between groups, nor between iterations.
//   - ends: a word for each frame that enters, in their order: 1: it is the group's last one in this iteration. It comes the cycle
//     after the frame has begun; in iteration 0 of a group that is not full, as the next one begins or the group closes.
//     It has no ready: of words and frames under way there are 2*frames at most (any number if iterations = 1, where all are 1).
//   - turn_sealed: a cycle behind: no frame joins before one from the feedback has its turn.
//   - A frame that enters is a turn: turn_round says whether it comes from the feedback; its first beat goes in when turn_ready is 1.
//   - iterations = 1: nothing goes round, groups mean nothing; `first` marks the first token after reset
//     and no other, since the parameters in use stay the right ones.
// The way out counts iterations by the `first` flags which the body hands on; so it needs to know
// neither the size of the group nor whether the group is closed already.
//
// Throughput: one beat per cycle
// Latency:    1 cycle from s_ext or s_fb to m_body, 1 from s_body to m_fb or m_ext
// Stall:      each of the two takes in one more beat and goes low
// Deadlock:   none if the feedback FIFO holds (G-1) x T tokens, G = `frames`, T = the longest frame, and
//             the body itself can hold a frame (any body with attention does); G x T tokens otherwise. A body that waits for
//             the word of a frame (row blocks do, whose tiles end with a group) needs PATIENCE.
// Legal       iterations (0 acts as 1) and frames (0 acts as 1) must stand still from reset to the last frame out.
`default_nettype none
module mlo_loop #(
    // bits of a beat, opaque
    parameter WIDTH = 8,
    // beats of a token
    parameter BEATS = 1,
    // cycles for which a group that is not full waits for a frame; 0: until its first results are there
    parameter PATIENCE = 0
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [15:0]      iterations,
    input  wire [7:0]       frames,

    input  wire [WIDTH-1:0] s_ext_tdata,
    input  wire             s_ext_tvalid,
    output wire             s_ext_tready,
    input  wire [2:0]       s_ext_tuser,

    output wire             turn_valid,
    input  wire             turn_ready,
    output wire             turn_round,
    output reg              turn_sealed,

    output wire             ends_tdata,
    output wire             ends_tvalid,

    output wire [WIDTH-1:0] m_body_tdata,
    output wire             m_body_tvalid,
    input  wire             m_body_tready,
    output wire [2:0]       m_body_tuser,

    input  wire [WIDTH-1:0] s_body_tdata,
    input  wire             s_body_tvalid,
    output wire             s_body_tready,
    input  wire [2:0]       s_body_tuser,

    output wire [WIDTH-1:0] m_fb_tdata,
    output wire             m_fb_tvalid,
    input  wire             m_fb_tready,
    output wire [2:0]       m_fb_tuser,

    input  wire [WIDTH-1:0] s_fb_tdata,
    input  wire             s_fb_tvalid,
    output wire             s_fb_tready,
    input  wire [2:0]       s_fb_tuser,

    output wire [WIDTH-1:0] m_ext_tdata,
    output wire             m_ext_tvalid,
    input  wire             m_ext_tready,
    output wire [2:0]       m_ext_tuser
`ifdef FORMAL
    // what the proof leaves open
    , input wire [1:0] f_n, f_frames, f_ext_user
    , input wire       f_ext_valid, f_body_stall, f_fb_stall, f_out_stall, f_in_stall, f_turn_stall
`endif
);
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam [BW-1:0] FINAL = BEATS[BW-1:0] - 1'b1;

    generate
        if (WIDTH < 1) mlo_error_WIDTH_must_be_positive u_error ();
        if (BEATS < 1) mlo_error_BEATS_must_be_positive u_error_beats ();
    endgenerate

    // Settings stand still, so what is derived from them may be a cycle late. What depends on them is counted down: "none left"
    // is quicker than "as many as".
    reg        once;                         // nothing goes round
    reg [15:0] rounds;                       // iterations behind the first
    always @(posedge clk) begin
        once   <= (iterations <= 16'd1);
        rounds <= iterations - 16'd1;
    end

    // ------------------------------------------------------------------ the way in
    // Where the next beat belongs:
    reg [BW-1:0] beat;        // beat of the token
    reg          midway;      // this frame has begun: its source is settled
    reg          first;       // the token is the first of an iteration
    reg          round;       // it does not come from outside: iteration 1 or later,
    reg [15:0]   rest;        //     behind which there are so many in the group
    reg [7:0]    left;        //     and so many frames of the iteration behind this one
    reg [7:0]    count;       // frames of the group (fed completely, in iteration 0)
    reg          full;        // as many as may be

    wire boundary = !midway && !round && (count != 8'd0) && !once;

    // The decision to close is kept (`closed`), so that a beat offered from s_fb is never taken back
    // because s_ext comes alive in the meantime.
    reg           closed;     // decided in iteration 0, at a frame boundary: the group takes no more
    wire over;                // it has waited for a frame from outside for long enough
    wire close    = boundary && (closed || full || (!s_ext_tvalid && over));
    wire from_fb  = close || round;

    wire             offered  = from_fb ? s_fb_tvalid : s_ext_tvalid;
    wire             in_valid = offered && (midway || turn_ready);
    wire [WIDTH-1:0] in_data  = from_fb ? s_fb_tdata  : s_ext_tdata;
    wire [1:0]       in_user  = from_fb ? s_fb_tuser[2:1] : s_ext_tuser[2:1];    // {key, last}
    wire             in_first = close || first;
    wire             in_ready;
    wire             in_go    = in_ready && (midway || turn_ready);
    assign s_fb_tready  = in_go && from_fb;
    assign s_ext_tready = in_go && !from_fb;
    assign turn_valid   = offered && !midway && in_ready;
    assign turn_round   = from_fb;
    always @(posedge clk) turn_sealed <= !rst && !once && (from_fb || full || (midway && count + 8'd1 >= frames));

    // A group that closes is in iteration 1, at its first frame.
    wire        take      = in_valid && in_ready;
    wire        token_end = (beat == FINAL);
    wire        frame_end = token_end && in_user[0];
    wire [7:0]  others    = count - 8'd1;
    wire [15:0] rest_1    = rounds - 16'd1;
    wire        iteration_end = frame_end && (close ? count == 8'd1 : round && left == 8'd0);
    wire        group_end     = iteration_end && (close ? rounds == 16'd1 : rest == 16'd0);

    always @(posedge clk) begin
        if (close) closed <= 1'b1;
        if (take) begin
            closed <= 1'b0;
            beat   <= token_end ? {BW{1'b0}} : beat + 1'b1;
            midway <= !frame_end;
            first  <= token_end ? iteration_end : in_first;
            round  <= from_fb && !group_end;
            rest   <= (close ? rest_1 : rest) - {15'd0, iteration_end};
            left   <= iteration_end ? others : (close ? others : left) - {7'd0, frame_end};
            if (group_end) begin
                count <= 8'd0;
                full  <= 1'b0;
            end else if (frame_end && !from_fb && !once) begin
                count <= count + 8'd1;
                full  <= (count + 8'd1 >= frames);
            end
        end
        if (rst) begin
            beat   <= {BW{1'b0}};
            midway <= 1'b0;
            first  <= 1'b1;
            round  <= 1'b0;
            count  <= 8'd0;
            full   <= 1'b0;
            closed <= 1'b0;
        end
    end

    // ---- how long it has waited
    generate
        if (PATIENCE != 0) begin : patient
            localparam [31:0] MOST = PATIENCE;
            localparam PW = $clog2(PATIENCE + 1);
            reg [PW-1:0] waited;
            assign over = (waited == MOST[PW-1:0]);
            always @(posedge clk)
                if (rst || !boundary || s_ext_tvalid) waited <= {PW{1'b0}};
                else if (!over)                       waited <= waited + 1'b1;
        end else begin : impatient
            assign over = s_fb_tvalid;
        end
    endgenerate

    // ---- the word of the frame that began last: what it is may be known when the next one begins, or with the group's end
    reg  said, known, ending;   // it was said; it is known: it is the group's last one
    wire begins = take && !midway;
    assign ends_tvalid = !said && (known || close || begins);
    assign ends_tdata  = known ? ending : close;
    always @(posedge clk) begin
        if (ends_tvalid) said <= 1'b1;
        if (begins) begin
            said  <= 1'b0;
            known <= from_fb || once || count + 8'd1 >= frames;
            ending <= !from_fb || (close ? count == 8'd1 : left == 8'd0);
        end
        if (rst) said <= 1'b1;
    end

    // ------------------------------------------------------------------ the way out
    reg              out_new;         // the next beat is the first of a token
    reg  [BW-1:0]    out_beat;
    reg  [15:0]      out_rest;        // iterations behind that of the beats that come now
    wire             out_valid, out_ready, leaves, out_leaves;
    wire [WIDTH-1:0] out_data;
    wire [2:0]       out_user;

    // A first token moves to the next iteration; after the last one a new group begins.
    wire   out_next = out_new && s_body_tuser[0];
    assign leaves   = once || (out_next ? out_rest == 16'd1 : out_rest == 16'd0);

    wire put = s_body_tvalid && s_body_tready;
    wire put_final = (out_beat == FINAL);
    always @(posedge clk) begin
        if (put) begin
            out_beat <= put_final ? {BW{1'b0}} : out_beat + 1'b1;
            out_new  <= put_final;
            if (out_next) out_rest <= (out_rest == 16'd0) ? rounds : out_rest - 16'd1;
        end
        if (rst) begin
            out_beat <= {BW{1'b0}};
            out_new  <= 1'b1;
            out_rest <= 16'd0;        // as behind a group
        end
    end

`ifdef FORMAL
    // The proof counts the two registers as parts of the body and of what follows it: they are queues of
    // two words, which mlo_skid proves about itself.  Here they are wires.
    assign {m_body_tuser, m_body_tdata} = {in_user, in_first, in_data};
    assign m_body_tvalid = in_valid;
    assign in_ready      = m_body_tready;
    assign {out_leaves, out_user, out_data} = {leaves, s_body_tuser, s_body_tdata};
    assign out_valid     = s_body_tvalid;
    assign s_body_tready = out_ready;
`else
    mlo_skid #(.WIDTH(WIDTH + 3)) u_in (
        .clk(clk), .rst(rst),
        .s_tdata({in_user, in_first, in_data}), .s_tvalid(in_valid), .s_tready(in_ready),
        .m_tdata({m_body_tuser, m_body_tdata}), .m_tvalid(m_body_tvalid), .m_tready(m_body_tready));

    mlo_skid #(.WIDTH(WIDTH + 4)) u_out (
        .clk(clk), .rst(rst),
        .s_tdata({leaves, s_body_tuser, s_body_tdata}), .s_tvalid(s_body_tvalid), .s_tready(s_body_tready),
        .m_tdata({out_leaves, out_user, out_data}), .m_tvalid(out_valid), .m_tready(out_ready));
`endif

    // Behind the register, the flag only gates valid.
    assign out_ready    = out_leaves ? m_ext_tready : m_fb_tready;
    assign m_ext_tvalid = out_valid && out_leaves;
    assign m_fb_tvalid  = out_valid && !out_leaves;
    assign m_ext_tdata  = out_data;
    assign m_fb_tdata   = out_data;
    assign m_ext_tuser  = out_user;
    assign m_fb_tuser   = out_user;

    wire unused = &{1'b0, s_ext_tuser[0], s_fb_tuser[0]};

`ifdef FORMAL
    // The world around: a source that numbers its beats, a body and a feedback that are queues of any
    // delay.  The payload is {k, n}: n the number of the beat, k how often it has passed the body: the
    // source sends k = 0, the body adds one.  What is proved, for any stalls, frames and groups:
    //   - what leaves has passed `iterations` times, in the order of entry, each beat once;
    //   - what enters the body is iteration-major: the same n's in the same order for k = 0, 1, ..; `first`
    //     marks the first token of each; a group has at most `frames` frames;
    //   - `last` and `key` stay with their token; an offer stands until taken.
    localparam FN = 4;                       // bits of n: more than the beats inside
    localparam FQ = 2;                       // beats in each of the two queues
    localparam [FN-1:0] F_MOST = 2 * FQ;     // beats inside
    localparam [FN-1:0] F_MASK = BEATS - 1;  // BEATS = 1 or 2 in the proofs; WIDTH = FN + 4
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* assume (rst == !f_past_valid);
    // f_n iterations, the same all the time
    reg [1:0] f_n_before, f_frames_before;
    always @(posedge clk) f_n_before <= f_n;
    always @(posedge clk) f_frames_before <= f_frames;
    always @* assume (!f_past_valid || (f_n == f_n_before && f_frames == f_frames_before));
    always @* assume (f_n != 0 && f_frames != 0 && iterations == {14'd0, f_n} && frames == {6'd0, f_frames});

    // ---- the queues: body (k = the iteration as which it was fed) and feedback (k not yet counted up),
    // entry 0 is the oldest: parity of the group, k, n, user
    (* mem2reg *) reg          f_bp [0:FQ-1];
    (* mem2reg *) reg [1:0]    f_bk [0:FQ-1];
    (* mem2reg *) reg [FN-1:0] f_bn [0:FQ-1];
    (* mem2reg *) reg [2:0]    f_bu [0:FQ-1];
    (* mem2reg *) reg          f_fp [0:FQ-1];
    (* mem2reg *) reg [1:0]    f_fk [0:FQ-1];
    (* mem2reg *) reg [FN-1:0] f_fn [0:FQ-1];
    (* mem2reg *) reg [2:0]    f_fu [0:FQ-1];
    reg [2:0]    f_bl, f_fl;                 // beats in them

    reg [FN-1:0] f_in, f_out;                // beats entered, left
    reg          f_ext_waits, f_body_waits, f_fb_waits;      // offered before: the offer stands
    reg          f_turned;                   // a turn's answer does, too, until its beat is in
    always @(posedge clk) f_turned <= turn_ready && m_body_tvalid && !m_body_tready;
    reg [1:0]    f_ext_held;
    wire         f_in_new = (f_in & F_MASK) == 0;           // `last` and `key`: the same on a token's beats
    always @* begin
        assume (s_ext_tvalid == (f_ext_valid || f_ext_waits));
        assume (s_ext_tuser[2:1] == ((f_ext_waits || !f_in_new) ? f_ext_held : f_ext_user));
        assume (s_ext_tdata == {s_ext_tuser[2:1], 2'd0, f_in});
        assume (s_body_tvalid == (f_bl != 0 && (!f_body_stall || f_body_waits)));
        assume (s_body_tdata == {f_bu[0][2:1], f_bk[0] + 2'd1, f_bn[0]} && s_body_tuser == f_bu[0]);
        assume (s_fb_tvalid == (f_fl != 0 && (!f_fb_stall || f_fb_waits)));
        assume (s_fb_tdata == {f_fu[0][2:1], f_fk[0] + 2'd1, f_fn[0]} && s_fb_tuser == f_fu[0]);
        assume (m_body_tready == (f_bl != FQ && !f_in_stall));
        assume (turn_ready == (!f_turn_stall || f_turned));
        assume (m_fb_tready == (f_fl != FQ && !f_out_stall));
    end

    // When it is said, no frame from outside has the next turn; it stays so a cycle longer than the group.
    reg f_ended;
    always @(posedge clk) f_ended <= take && group_end;
    always @* if (f_past_valid && turn_sealed && !f_ended) assert (from_fb || midway);

    wire f_push = m_body_tvalid && m_body_tready, f_pop = s_body_tvalid && s_body_tready;
    wire f_put  = m_fb_tvalid && m_fb_tready,     f_get = s_fb_tvalid && s_fb_tready;
    wire f_enter = s_ext_tvalid && s_ext_tready,  f_leave = m_ext_tvalid && m_ext_tready;
    wire [1:0]    f_mk = m_body_tdata[FN+1:FN];
    wire [FN-1:0] f_mn = m_body_tdata[FN-1:0];

    // ---- the specification of the feed: what came before decides what may come now
    reg           f_any;                     // something was fed
    reg           f_par;                     // parity of the group being fed
    reg  [1:0]    f_k;                       // iteration and number of the beat fed last
    reg  [FN-1:0] f_m;
    reg           f_end;                     // it ended a frame
    reg  [FN-1:0] f_gs, f_ge, f_pgs;         // first beat of this group; end (if k > 0); first beat of the one before
    reg  [7:0]    f_group;                   // frames of the group begun in iteration 0
    wire f_fnew  = (f_mn & F_MASK) == 0;
    wire f_new_group = !f_any || (f_n > 1 && f_mk == 0 && f_k != 0);
    wire f_new_iter  = f_new_group || f_mk != f_k;
    wire f_frame_begins = f_mk == 0 && (!f_any || f_end);
    always @* if (f_past_valid && m_body_tvalid) begin
        if (f_new_group)     assert (f_mk == 0 && f_mn == f_in && (!f_any || f_k + 2'd1 == f_n));
        else if (f_new_iter) assert (f_mk == f_k + 2'd1 && f_mk < f_n && f_mn == f_gs);
        else                 assert (f_mk == f_k && f_mn == f_m + 4'd1);
        // an iteration ends at its group's end, which is the end of a frame
        if (f_new_iter && f_any) assert (f_end && (f_k == 0 ? f_m + 4'd1 == f_in : f_m + 4'd1 == f_ge));
        assert (m_body_tuser[0] == (f_new_iter || f_iter_token));
        if (f_frame_begins && !f_new_group && f_n > 1) assert (f_group < f_frames);
        assert (f_enter == (f_push && f_mk == 0) && f_get == (f_push && f_mk != 0));
    end
    // a turn: the first beat of a frame goes in, and this is where it comes from
    always @* if (f_past_valid) assert (midway == (f_any && !f_end));
    always @* if (f_past_valid && turn_valid && turn_ready) assert (f_push && turn_round == (f_mk != 0) && (!f_any || f_end));
    always @* if (f_past_valid && f_push && (!f_any || f_end)) assert (turn_valid && turn_ready);
    reg f_iter_token;                        // the token in work is the first of its iteration
    wire f_fed_end = m_body_tuser[1] && (f_mn & F_MASK) == F_MASK;

    always @* if (f_past_valid && m_body_tvalid) assert (m_body_tuser[2:1] == m_body_tdata[FN+3:FN+2]);

    // ---- the words: the frame behind one that is the last begins an iteration, and no other does
    reg  f_final;                            // what was said of the frame that began last
    always @(posedge clk) if (ends_tvalid) f_final <= ends_tdata;
    wire f_begins = f_push && (!f_any || f_end);
    always @* if (f_past_valid && !rst) begin
        if (f_begins && f_any) assert (said || ends_tvalid);
        if (f_begins && f_any && f_n > 1) assert ((said ? f_final : ends_tdata) == f_new_iter);
        if (f_n == 1 && ends_tvalid) assert (ends_tdata);
        if (!f_any) assert (said);
        if (closed) assert (said);           // though no frame begins: the body may wait for it
        // for the induction
        if (!midway) assert (beat == {BW{1'b0}});
        if (f_any) assert (((f_m + 4'd1) & F_MASK) == {{(FN-BW){1'b0}}, beat});
        if (said && f_any) assert (f_final == (known ? ending : 1'b1));
        if (known && f_any && f_n > 1)
            assert (ending == (!midway ? first || (boundary && full) : round ? left == 8'd0 : count + 8'd1 >= frames));
        if (known && f_any && !round) assert (ending);
        if (!known && f_any) assert (!round && f_n > 1 && !full && count + midway < frames && (midway || count != 8'd0) && (!said || (!midway && closed)));
    end

    // ---- the specification of the way out
    always @* if (f_past_valid) begin
        if (m_ext_tvalid) assert (m_ext_tdata == {m_ext_tuser[2:1], f_n, f_out});
        if (m_fb_tvalid)  assert (m_fb_tdata[FN+1:FN] < f_n && m_fb_tdata == s_body_tdata && m_fb_tuser == s_body_tuser);
        assert (!(m_fb_tvalid && m_ext_tvalid) && f_pop == (f_put || f_leave));
    end

    always @(posedge clk) if (f_past_valid && !$past(rst)) begin
        if ($past(m_body_tvalid && !m_body_tready)) assert (m_body_tvalid && $stable(m_body_tdata) && $stable(m_body_tuser));
        if ($past(m_ext_tvalid && !m_ext_tready))   assert (m_ext_tvalid && $stable(m_ext_tdata) && $stable(m_ext_tuser));
        if ($past(m_fb_tvalid && !m_fb_tready))     assert (m_fb_tvalid && $stable(m_fb_tdata) && $stable(m_fb_tuser));
    end

    // ---- the world moves
    wire f_wpar = f_new_group ? !f_par : f_par;
    integer f_i, f_next;
    always @(posedge clk) begin
        f_ext_waits  <= s_ext_tvalid && !s_ext_tready;
        f_ext_held   <= s_ext_tuser[2:1];
        f_body_waits <= s_body_tvalid && !s_body_tready;
        f_fb_waits   <= s_fb_tvalid && !s_fb_tready;
        if (f_enter) f_in <= f_in + 1'b1;
        if (f_leave) f_out <= f_out + 1'b1;
        if (f_push) begin
            f_any <= 1'b1;
            f_par <= f_wpar;
            f_k   <= f_mk;
            f_m   <= f_mn;
            f_end <= f_fed_end;
            f_iter_token <= (f_new_iter || f_iter_token) && (f_mn & F_MASK) != F_MASK;
            if (f_new_group) begin
                f_gs  <= f_mn;
                f_pgs <= f_gs;
            end
            if (f_mk != 0 && f_k == 0 && f_n > 1) f_ge <= f_in;
            if (f_new_group) f_group <= 8'd1;
            else if (f_frame_begins) f_group <= f_group + 8'd1;
        end
        for (f_i = 0; f_i < FQ; f_i = f_i + 1) begin
            f_next = (f_i + 1 < FQ) ? f_i + 1 : f_i;
            if (f_pop) begin
                f_bp[f_i] <= f_bp[f_next]; f_bk[f_i] <= f_bk[f_next]; f_bn[f_i] <= f_bn[f_next]; f_bu[f_i] <= f_bu[f_next];
            end
            if (f_push && f_i + f_pop == f_bl) begin
                f_bp[f_i] <= f_wpar; f_bk[f_i] <= f_mk; f_bn[f_i] <= f_mn; f_bu[f_i] <= m_body_tuser;
            end
            if (f_get) begin
                f_fp[f_i] <= f_fp[f_next]; f_fk[f_i] <= f_fk[f_next]; f_fn[f_i] <= f_fn[f_next]; f_fu[f_i] <= f_fu[f_next];
            end
            if (f_put && f_i + f_get == f_fl) begin
                f_fp[f_i] <= f_bp[0]; f_fk[f_i] <= m_fb_tdata[FN+1:FN] - 2'd1; f_fn[f_i] <= m_fb_tdata[FN-1:0]; f_fu[f_i] <= m_fb_tuser;
            end
        end
        f_bl <= f_bl + f_push - f_pop;
        f_fl <= f_fl + f_put - f_get;
        if (f_pop) f_y <= {f_bp[0], f_bk[0], f_bn[0]};
        f_popped <= f_popped || f_pop;
        if (rst) begin
            f_in <= 0; f_out <= 0; f_any <= 0; f_bl <= 0; f_fl <= 0; f_popped <= 0; f_par <= 0; f_k <= 0;
            f_ext_waits <= 0; f_body_waits <= 0; f_fb_waits <= 0; f_end <= 1; f_iter_token <= 0; f_gs <= 0; f_pgs <= 0; f_group <= 0;
        end
    end
    reg [FN+2:0] f_y;                        // position {parity, k, n} of the beat that came out last
    reg          f_popped;

    // ---- for the induction: how registers and queues hang together.  The feed is one sequence of
    // positions; feedback, then body, hold a piece of it each, and what is between them has left.
    wire [FN-1:0] f_ge_now = (f_k == 0) ? f_in : f_ge;
    function [FN+2:0] f_pred(input [FN+2:0] x);            // the position before x
        if (f_n == 1 || x[FN-1:0] != (x[FN+2] == f_par ? f_gs : f_pgs)) f_pred = {x[FN+2:FN], x[FN-1:0] - 4'd1};
        else if (x[FN+1:FN] != 0) f_pred = {x[FN+2], x[FN+1:FN] - 2'd1, (x[FN+2] == f_par ? f_ge_now : f_gs) - 4'd1};
        else f_pred = {!x[FN+2], f_n - 2'd1, x[FN-1:0] - 4'd1};
    endfunction
    function f_ends(input [FN-1:0] n, input [2:0] user);
        f_ends = user[1] && (n & F_MASK) == F_MASK;
    endfunction
    wire [FN+2:0] f_last_fed   = {f_par, f_k, f_m};
    wire          f_iter_over  = f_k != 0 && f_m + 4'd1 == f_ge;
    wire          f_group_over = f_iter_over && f_k + 2'd1 == f_n;
    // what the feedback must bring next (while the group is not over)
    wire [FN+2:0] f_need = (f_k == 0 || f_iter_over) ? {f_par, f_k, f_gs} : {f_par, f_k - 2'd1, f_m + 4'd1};
    // the last beat that went into the feedback
    wire [FN+2:0] f_fed_back = (f_y[FN+1:FN] + 2'd1 != f_n) ? f_y
                             : {f_y[FN+2], f_n - 2'd2, (f_y[FN+2] == f_par ? f_ge_now : f_gs) - 4'd1};

    // frame ends inside, of iteration f_k and of the one before; beats of this group; the beat that leaves next
    reg [7:0]    f_ends_now, f_ends_prev;
    reg [FN-1:0] f_beats, f_out_expected;
    reg          f_seen;
    integer      f_j;
    always @* begin
        f_ends_now  = 0;
        f_ends_prev = 0;
        f_beats     = 0;
        f_seen      = 0;
        f_out_expected = (f_k + 2'd1 == f_n) ? f_m + 4'd1 : f_gs;
        for (f_j = 0; f_j < FQ; f_j = f_j + 1) begin
            if (f_j < f_fl) begin
                f_beats = f_beats + 4'd1;
                if (f_ends(f_fn[f_j], f_fu[f_j])) begin
                    if (f_fk[f_j] == f_k)        f_ends_now  = f_ends_now + 8'd1;
                    if (f_fk[f_j] + 2'd1 == f_k) f_ends_prev = f_ends_prev + 8'd1;
                end
            end
            if (f_j < f_bl && f_bp[f_j] == f_par) begin
                f_beats = f_beats + 4'd1;
                if (f_ends(f_bn[f_j], f_bu[f_j])) begin
                    if (f_bk[f_j] == f_k)        f_ends_now  = f_ends_now + 8'd1;
                    if (f_bk[f_j] + 2'd1 == f_k) f_ends_prev = f_ends_prev + 8'd1;
                end
            end
            if (f_j < f_bl && !f_seen && f_bk[f_j] + 2'd1 == f_n) begin
                f_seen = 1;
                f_out_expected = f_bn[f_j];
            end
        end
    end

    always @* if (f_past_valid) begin
        assert (f_bl <= FQ && f_fl <= FQ);
        assert (out_beat == (f_popped ? ((f_y[FN-1:0] + 4'd1) & F_MASK) : 0) && out_new == (out_beat == 0));
        assert (once == (f_n == 1) && rounds == {14'd0, f_n} - 16'd1);
        assert (out_rest == (f_popped ? rounds - {14'd0, f_y[FN+1:FN]} : 0));
        if (!f_any) begin
            assert (f_bl == 0 && f_fl == 0 && f_in == 0 && f_out == 0 && !f_popped && f_gs == 0);
            assert (!round && count == 0 && !full && beat == 0 && !midway && first && !closed);
        end else begin
            assert (f_k < f_n && f_out == f_out_expected && beat == ((f_m + 4'd1) & F_MASK));
            assert (f_bl != 0 || f_popped);
            if (f_n == 1) begin
                assert (f_fl == 0 && !round && count == 0 && !full && !closed && f_m + 4'd1 == f_in && first == f_iter_token);
                assert (f_out + f_bl == f_in);
                if ((f_m & F_MASK) == F_MASK) assert (!f_iter_token);
            end else begin
                // bounds
                assert ((f_gs & F_MASK) == 0 && (f_pgs & F_MASK) == 0 && f_ge_now - f_gs <= F_MOST && f_gs - f_pgs <= F_MOST);
                assert (f_m - f_gs < f_ge_now - f_gs);
                assert (f_iter_token == (F_MASK != 0 && f_m == f_gs));
                assert (f_group >= 1 && f_group <= f_frames && size_ok);
                // registers of the way in
                if (f_k == 0) begin
                    assert (f_m + 4'd1 == f_in && f_in - f_gs == f_beats);
                    assert (!round && count == f_ends_now && full == (count >= f_frames) && midway == !f_end && first == f_iter_token);
                    assert (f_group == count + midway);
                    if (closed) assert (!midway);
                end else begin
                    assert (f_ge == f_in && (f_ge & F_MASK) == 0 && !closed);
                    if (f_group_over)     assert (!round && count == 0 && !full && first && !midway && f_end && f_fl == 0);
                    else if (f_iter_over) assert (round && rest + f_k + 16'd1 == rounds && count == f_ends_now && left + 8'd1 == count && first && f_end);
                    else begin
                        assert (round && rest + f_k == rounds && first == f_iter_token && left < count && left + 8'd1 == f_ends_prev);
                        if (f_k + 2'd1 != f_n) assert (count == left + 8'd1 + f_ends_now);
                    end
                end
                // what the feedback brings next is what is needed next
                if (f_fl != 0)                       assert ({f_fp[0], f_fk[0], f_fn[0]} == f_need);
                else if (!f_group_over && f_k != 0)  assert (f_bl != 0 && {f_bp[0], f_bk[0], f_bn[0]} == f_need);
                else if (!f_group_over) assert (f_bl != 0 && (f_bp[0] != f_par || {f_bp[0], f_bk[0], f_bn[0]} == f_need));
                if (f_fl != 0) assert (f_popped);
            end
        end
        // the queues
        for (f_j = 0; f_j < FQ; f_j = f_j + 1) begin
            if (f_j < f_bl) begin
                if (f_j + 1 < f_bl) assert ({f_bp[f_j], f_bk[f_j], f_bn[f_j]} == f_pred({f_bp[(f_j + 1) % FQ], f_bk[(f_j + 1) % FQ], f_bn[(f_j + 1) % FQ]}));
                else begin
                    assert ({f_bp[f_j], f_bk[f_j], f_bn[f_j]} == f_last_fed);
                    assert (f_ends(f_bn[f_j], f_bu[f_j]) == f_end);
                end
                if (f_n != 1) begin
                    if (f_bp[f_j] == f_par) begin
                        assert (f_bk[f_j] <= f_k && f_bn[f_j] - f_gs < f_ge_now - f_gs);
                        if (f_k != 0 && f_bn[f_j] + 4'd1 == f_ge) assert (f_ends(f_bn[f_j], f_bu[f_j]));
                    end else assert (f_bk[f_j] + 2'd1 == f_n && f_bn[f_j] - f_pgs < f_gs - f_pgs);
                    if (f_group_over) assert (f_bk[f_j] + 2'd1 == f_n);
                    // `first` is where the iteration changes
                    if ((f_bn[f_j] & F_MASK) == 0) assert (f_bu[f_j][0] == (f_bn[f_j] == (f_bp[f_j] == f_par ? f_gs : f_pgs)));
                end else begin
                    assert (f_bk[f_j] == 0);
                    if ((f_bn[f_j] & F_MASK) == 0) assert (f_bu[f_j][0] == (!f_popped && f_j == 0));
                end
            end
            if (f_j < f_fl) begin
                if (f_j + 1 < f_fl) assert ({f_fp[f_j], f_fk[f_j], f_fn[f_j]} == f_pred({f_fp[(f_j + 1) % FQ], f_fk[(f_j + 1) % FQ], f_fn[(f_j + 1) % FQ]}));
                else assert ({f_fp[f_j], f_fk[f_j], f_fn[f_j]} == f_fed_back);
                assert (f_fp[f_j] == f_par && f_fk[f_j] <= f_k && f_fk[f_j] + 2'd1 < f_n && f_fn[f_j] - f_gs < f_ge_now - f_gs);
                if (f_k != 0 && f_fn[f_j] + 4'd1 == f_ge) assert (f_ends(f_fn[f_j], f_fu[f_j]));
                if ({f_fp[f_j], f_fk[f_j], f_fn[f_j]} == f_last_fed) assert (f_ends(f_fn[f_j], f_fu[f_j]) == f_end);
            end
        end
        if (f_popped) begin
            if (f_bl != 0) assert (f_y == f_pred({f_bp[0], f_bk[0], f_bn[0]}));
            else           assert (f_y == f_last_fed);
        end else if (f_bl != 0) assert (f_bk[0] == 0 && f_bn[0] == 0 && f_bp[0] == f_par && f_gs == 0 && f_k == 0);
    end
    wire size_ok = (f_k == 0) || f_group_over || (count <= f_frames);

    // Not vacuous: a group of two frames, goes round and another one follows.
    reg f_two = 1'b0;
    always @(posedge clk) f_two <= f_two || (f_past_valid && f_k == 1 && f_group == 2 && f_ge - f_gs == 2 * BEATS);
    always @* cover (f_past_valid && f_two && f_n == 2 && f_k == 0 && f_out == 2 * BEATS);
`endif
endmodule
`default_nettype wire
