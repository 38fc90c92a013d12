// SPDX-License-Identifier: MIT
// mlo_prefix: puts P rows of parameters in front of each frame of a stream: memory keys and values, a bias as a key, attention sinks
//
// Contract   tokens of BEATS beats; a frame ends with a token with tuser[1] (`last`). In front of each frame leave the P rows of its iteration,
//            P*BEATS beats with tuser 3'b100 (not first, not last, a key that counts), then the frame's own beats, unchanged, in their order.
//            A token with tuser[0] (`first`) moves to the next P rows; the very first token after reset must have it.
// Throughput one beat per cycle out, rows and the frame's own, also from frame to frame: a frame of n tokens takes (P + n)*BEATS cycles, and
//            1 more if it begins with `first` (if its rows are loaded, and while nothing stalls)
// Latency    idle, rows loaded: of a frame whose first beat comes in cycle t (+ 1 if it has `first`) row beat i is offered in cycle t + 2 + i; its
//            own beat i is taken in cycle t + P*BEATS + i, and offered 2 cycles later, as any other that is taken
// Stall      a frame's first beat waits at the input until its rows have been read; rows that are not loaded hold it, what is behind drains.
//            m_axis_tready low: 3 beats are held inside, then none is read or taken. A change of iteration does not wait for m_axis_tready
// Timing     s_axis_tready depends on registers only; outputs are registers
// Parameters s_axis_p: P*BEATS words of WIDTH bits, row after row, a row's beats one behind the other
// Legal      BEATS, WIDTH, P >= 1; all beats of a token have one tuser; `first` comes with the first token of a frame only
`default_nettype none

module mlo_prefix #(
    parameter BEATS     = 4,        // of a token
    parameter WIDTH     = 16,       // bits of a beat
    parameter P         = 1,        // rows in front of a frame
    parameter RESIDENT  = 0,        // banks of the parameter memory that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128       // bits of a parameter beat
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    input  wire [WIDTH-1:0]     s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire [2:0]           s_axis_tuser,
    output wire [WIDTH-1:0]     m_axis_tdata,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire [2:0]           m_axis_tuser,
    input  wire [AXI_WIDTH-1:0] s_axis_p_tdata,
    input  wire                 s_axis_p_tvalid,
    output wire                 s_axis_p_tready
);
    localparam WORDS = P * BEATS;                   // of a frame's rows
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam AW = (WORDS > 1) ? $clog2(WORDS) : 1;
    localparam [31:0]   BEAT_LAST_32 = BEATS - 1, WORD_LAST_32 = WORDS - 1;
    localparam [BW-1:0] BEAT_LAST = BEAT_LAST_32[BW-1:0];
    localparam [AW-1:0] WORD_LAST = WORD_LAST_32[AW-1:0];

    generate
        if (BEATS < 1) mlo_error_BEATS_must_be_at_least_1 u_beats ();
        if (WIDTH < 1) mlo_error_WIDTH_must_be_at_least_1 u_width ();
        if (P < 1)     mlo_error_P_must_be_at_least_1 u_p ();
    endgenerate

    // ---- the walk: the rows, while the frame's first beat waits, then the frame ----------------------------------------
    reg           own;                              // the rows have been read: the frame's own beats go
    reg           fresh;                            // the change of iteration, if any, is not announced yet
    reg  [AW-1:0] word;                             // of the rows
    reg  [BW-1:0] beat;                             // of its token
    wire          loaded, en;
    wire          swap     = s_axis_tvalid && fresh && s_axis_tuser[0];
    wire          read     = s_axis_tvalid && !own && !swap && loaded && en;
    wire          take     = s_axis_tvalid && own && en;
    wire          read_end = word == WORD_LAST;
    wire          beat_end = beat == BEAT_LAST;
    wire          ends     = take && beat_end && s_axis_tuser[1];
    assign s_axis_tready = own && en;               // of registers only: en is, too
    always @(posedge clk) begin
        if (read) begin
            word <= read_end ? {AW{1'b0}} : word + 1'b1;
            own  <= read_end;
        end
        if (swap || read) fresh <= 1'b0;
        if (take) beat <= beat_end ? {BW{1'b0}} : beat + 1'b1;
        if (ends) {own, fresh} <= 2'b01;
        if (rst) begin
            own   <= 1'b0;
            fresh <= 1'b1;
            word  <= {AW{1'b0}};
            beat  <= {BW{1'b0}};
        end
    end

    wire [WIDTH-1:0] row;
    mlo_param #(.WIDTH(WIDTH), .DEPTH(WORDS), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_rows (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_p_tdata), .s_axis_tvalid(s_axis_p_tvalid), .s_axis_tready(s_axis_p_tready), .s_axis_tlast(params_last),
        .first(swap), .ready(loaded), .addr(word), .en(read), .data(row));

    // ---- beside the word that was read: a beat that was taken ----------------------------------------------------------
    reg             valid;
    reg             is_row;
    reg [WIDTH-1:0] x;
    reg [2:0]       user;
    always @(posedge clk) begin
        if (rst)     valid <= 1'b0;
        else if (en) valid <= read || take;
        if (en) begin
            is_row <= read;
            x      <= s_axis_tdata;
            user   <= s_axis_tuser;
        end
    end

    // ---- output: mlo_skid, in which what the memory gives, late in a cycle, passes one selection only --------------------
    reg             out_valid, spare_valid;         // `out` holds a beat; `spare` does: one that was under way when the receiver stopped
    reg [WIDTH+2:0] out, spare;
    wire            out_free = !out_valid || m_axis_tready;
    wire            from_row = is_row && !spare_valid;
    wire [WIDTH+2:0] other   = spare_valid ? spare : is_row ? {3'b100, {WIDTH{1'b0}}} : {user, x};
    assign en            = !spare_valid || !valid;
    assign m_axis_tvalid = out_valid;
    assign {m_axis_tuser, m_axis_tdata} = out;
    always @(posedge clk) begin
        if (out_free) begin
            out_valid   <= spare_valid || valid;
            spare_valid <= 1'b0;
            out         <= {other[WIDTH +: 3], from_row ? row : other[WIDTH-1:0]};
        end else if (valid)
            spare_valid <= 1'b1;
        if (!spare_valid) spare <= is_row ? {3'b100, row} : {user, x};
        if (rst) {out_valid, spare_valid} <= 2'b00;
    end

`ifdef FORMAL
    wire [2:0]         f_line = {valid, spare_valid, out_valid};    // what is inside, oldest lowest
    wire [3*WIDTH+8:0] f_words = {is_row ? {3'b100, row} : {user, x}, spare, out};

    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);
    // The environment: what waits at the input does not change; a token's beats have one sideband; `first` comes with the very first token, and
    // with the first one of a frame at most. The output: what waits does not change.
    reg             f_wait = 1'b0, f_held = 1'b0;
    reg [WIDTH+2:0] f_in, f_out;
    reg             f_front, f_began, f_moved;      // the frame's first token is at hand; there was a change of iteration; in front of this frame
    wire            f_take = s_axis_tvalid && s_axis_tready;
    reg [2:0]       f_token;                        // the sideband of the token at hand
    always @(posedge clk) begin
        f_wait  <= !rst && s_axis_tvalid && !s_axis_tready;
        f_in    <= {s_axis_tuser, s_axis_tdata};
        f_held  <= !rst && m_axis_tvalid && !m_axis_tready;
        f_out   <= {m_axis_tuser, m_axis_tdata};
        if (f_take) f_token <= s_axis_tuser;
        if (f_take && beat_end) f_front <= s_axis_tuser[1];
        f_began <= !rst && (f_began || swap);
        f_moved <= swap || (f_moved && !(f_take && beat_end && s_axis_tuser[1]));
        if (rst) {f_front, f_moved} <= 2'b10;
    end
    always @(*) if (f_past) begin
        if (f_wait) assume (s_axis_tvalid && f_in == {s_axis_tuser, s_axis_tdata});
        if (s_axis_tvalid && beat != {BW{1'b0}}) assume (s_axis_tuser == f_token);
        if (s_axis_tvalid && !f_front) assume (!s_axis_tuser[0]);
        if (s_axis_tvalid && !f_began) assume (s_axis_tuser[0]);
        if (f_held) assert (m_axis_tvalid && f_out == {m_axis_tuser, m_axis_tdata});
    end

    // What leaves, counted by itself: of a frame the rows' beats, then its own, up to the last one of a token with `last`.
    reg  [7:0] f_rows, f_beat;                      // that left, of the frame's rows, of the token at hand
    reg  [2:0] f_user;                              // that token's sideband
    wire       f_gone = m_axis_tvalid && m_axis_tready;
    always @(posedge clk) begin
        if (f_gone && f_rows != WORDS) f_rows <= f_rows + 8'd1;
        if (f_gone && f_rows == WORDS) begin
            f_beat <= f_beat + 1 == BEATS ? 8'd0 : f_beat + 8'd1;
            f_user <= m_axis_tuser;
            if (f_beat + 1 == BEATS && m_axis_tuser[1]) f_rows <= 8'd0;
        end
        if (rst) {f_rows, f_beat} <= 16'd0;
    end
    // Beats are numbered, going in (a word read, a beat taken) and coming out, modulo more than fit inside; of any one of them it is
    // kept what it was: a frame's own leaves unchanged, a row's word has its place, and is what was read for it.
    (* anyconst *) wire [2:0] f_pick;
    reg  [2:0]       f_ins, f_outs;
    reg              f_is_row;
    reg  [7:0]       f_at;                          // which word of the rows
    reg  [WIDTH+2:0] f_own;
    reg  [WIDTH-1:0] f_row;
    reg              f_new;
    always @(posedge clk) begin
        if (read || f_take) begin
            f_ins <= f_ins + 3'd1;
            if (f_ins == f_pick) begin
                f_is_row <= read;
                f_at     <= word;
                f_own    <= {s_axis_tuser, s_axis_tdata};
            end
        end
        f_new <= read && f_ins == f_pick;
        if (f_new) f_row <= row;                    // as it was read
        if (f_gone) f_outs <= f_outs + 3'd1;
        if (rst) {f_ins, f_outs} <= 6'd0;
    end
    always @(*) if (f_past && m_axis_tvalid) begin
        if (f_rows != WORDS) assert (m_axis_tuser == 3'b100);
        else if (f_beat != 8'd0) assert (m_axis_tuser == f_user);
        if (f_outs == f_pick) begin
            assert (f_is_row == (f_rows != WORDS));
            if (f_is_row) assert (f_at == f_rows && m_axis_tdata == f_row && !f_new);
            else          assert (f_own == {m_axis_tuser, m_axis_tdata});
        end
    end

    // For the induction: to replay that over what is inside leads to where the walk is.
    reg              f_ok;
    reg  [2:0]       f_number, f_side;
    reg  [7:0]       f_r, f_b;
    reg  [WIDTH+2:0] f_word;
    integer          f_i;
    always @(*) begin
        {f_ok, f_number, f_side, f_r, f_b} = {1'b1, f_outs, f_user, f_rows, f_beat};
        for (f_i = 0; f_i < 3; f_i = f_i + 1) if (f_line[f_i]) begin
            f_word = f_words[f_i*(WIDTH + 3) +: WIDTH + 3];
            if (f_i == 2) f_ok = f_ok && is_row == (f_r != WORDS);
            if (f_number == f_pick) begin
                f_ok = f_ok && f_is_row == (f_r != WORDS);
                if (f_is_row) f_ok = f_ok && f_at == f_r && (f_new ? f_i == 2 : f_word[WIDTH-1:0] == f_row);
                else          f_ok = f_ok && f_own == f_word;
            end
            f_number = f_number + 3'd1;
            if (f_r != WORDS) begin
                f_ok = f_ok && f_word[WIDTH +: 3] == 3'b100;
                f_r  = f_r + 8'd1;
            end else begin
                f_ok   = f_ok && (f_b == 8'd0 || f_word[WIDTH +: 3] == f_side);
                f_side = f_word[WIDTH +: 3];
                f_b    = f_b + 8'd1;
                if (f_b == BEATS) begin
                    f_b = 8'd0;
                    if (f_side[1]) f_r = 8'd0;
                end
            end
        end
        f_ok = f_ok && f_number == f_ins && f_r == (own ? WORDS : word) && f_b == beat && (f_b == 8'd0 || f_side == f_token);
    end
    always @(*) if (f_past) begin
        assert (f_ok);
        assert (f_rows <= WORDS && f_beat < BEATS && (f_rows == WORDS || f_beat == 8'd0));
        assert (word < WORDS && beat < BEATS && (own || beat == {BW{1'b0}}) && !(own && word != {AW{1'b0}}));
        assert (out_valid || !spare_valid);
        if (fresh) assert (!own && word == {AW{1'b0}});
        if (!own) assert (f_front);
        if (!f_began) assert (fresh);
        if (read) assert (loaded && f_began && !swap);
        // a change comes before a frame's rows, where its first token says so; and mlo_param's assumption: parameters are there before the next ones begin
        if (swap) assert (!own && word == {AW{1'b0}} && (!f_began || loaded) && !f_moved && s_axis_tuser[0]);
        if (read) assert (f_moved == s_axis_tuser[0]);
        if (own || word != {AW{1'b0}}) assert (!fresh);
        if (fresh) assert (!f_moved);
        if (!own && !fresh) assert (f_wait && f_moved == s_axis_tuser[0]);
        if (f_began && (fresh || own || word != {AW{1'b0}})) assert (loaded);
    end
    // Not vacuous: the second iteration's frame is through, and one behind it; what is inside has filled up meanwhile.
    reg [1:0] f_swaps, f_frames;
    reg       f_full;
    always @(posedge clk) begin
        if (swap && f_swaps != 2'd3) f_swaps <= f_swaps + 2'd1;
        if (ends && f_swaps == 2'd2) f_frames <= f_frames + 2'd1;
        if (&f_line) f_full <= 1'b1;
        if (rst) {f_swaps, f_frames, f_full} <= 5'd0;
    end
    always @(posedge clk) if (f_past && !rst) cover (f_frames == 2'd2 && f_full && f_line == 3'b000);
`endif
endmodule

`default_nettype wire
