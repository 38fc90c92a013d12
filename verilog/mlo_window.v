// SPDX-License-Identifier: MIT
// mlo_window: the tokens that lie around a token on a grid, tap after tap: a line buffer with room for what a window sees
//
// Contract   tokens of C channels, CF = C/PE beats each, row after row of a grid of W columns; tuser[1] (`last`) ends a frame, of any
//            number of tokens. For each token in order, and each of its CF beats, the KH x KW taps of its window, row after row,
//            SIMD a step: tap (i, j) of the token at row r, column q is the token at row r+i-TOP, column q+j-LEFT of its frame, and 0
//            where there is none. full: there is a token to step through, `user` is its sideband (that of its last beat).
//            part: which part of the window its frame has, by number (mlo_part).
//            `en`: a step. Its taps are `data` two cycles with `move` later (one that `en` comes with, one more); word s is tap s of the
//            step, PE lanes. `done` comes with the last `en` of a token. en and done only while full, en only with move.
// Throughput a beat taken and a step per cycle; a token that takes CF*KH*KW/SIMD cycles to step through and one that takes as long to
//            come follow each other without a gap, from frame to frame, too.
// Latency    full rises two cycles after the last beat was taken of the token that the window reaches, or of the frame's last one.
// Stall      s_axis_tready (of a register) is low while there is no room: of ROOM tokens that are not done.
// Legal      PE divides C, SIMD divides KW, 0 <= TOP < KH, 0 <= LEFT < KW, W >= 1.
//
// How it works: a token's place, 0..SLOTS-1, goes round; SIMD neighbours are in as many banks, so that each is read in the same cycle,
// and a multiplexer puts them in their order. A token may be stepped through once the token BEHIND later is there, or its frame's last:
// `credit` counts those that may. How many tokens of the frame are behind it, BEHIND at most, says `ahead`: at a frame's first token
// it was noted as tokens came, then it is one less from token to token once the frame's last is in sight.
`default_nettype none

module mlo_window #(
    parameter C     = 8,            // channels of a token, a multiple of PE
    parameter PE    = 2,            // lanes
    parameter KH    = 3,            // rows of the window
    parameter KW    = 3,            // columns of the window, a multiple of SIMD
    parameter W     = 5,            // columns of the grid
    parameter TOP   = 1,            // rows of the window above the token's
    parameter LEFT  = 1,            // columns of the window to the left of the token's
    parameter SIMD  = 1,            // taps a step
    parameter XBITS = 8,            // bits of a lane
    // derived, do not set: bits of part
    parameter PBITS = $clog2((TOP + 1) * (KH - TOP) * (LEFT + 1) * (KW - LEFT) + 1)
) (
    input  wire                     clk,
    input  wire                     rst,
    input  wire [PE*XBITS-1:0]      s_axis_tdata,
    input  wire                     s_axis_tvalid,
    output wire                     s_axis_tready,
    input  wire [2:0]               s_axis_tuser,
    output reg                      full,
    output reg  [2:0]               user,
    output wire [PBITS-1:0]         part,
    input  wire                     en,
    input  wire                     done,
    input  wire                     move,
    output reg  [SIMD*PE*XBITS-1:0] data
);
    localparam CF     = C / PE;                                     // beats of a token
    localparam BEFORE = TOP * W + LEFT;                             // tokens in front of one that it may see
    localparam BEHIND = (KH - 1 - TOP) * W + KW - 1 - LEFT;         // behind it
    localparam SPAN   = BEFORE + BEHIND;
    localparam SPARE  = (KH * KW == SIMD) ? 2 : 1;                  // on their way in: more than one if a step is a beat
    localparam ROWS   = (SPAN + SPARE + SIMD) / SIMD;               // tokens of a bank
    localparam SLOTS  = ROWS * SIMD;
    localparam ROOM   = SLOTS - BEFORE;                             // tokens that are not done
    localparam WORDS  = ROWS * CF;                                  // of a bank
    localparam DOWN   = W + SLOTS + SIMD - KW;                      // from a row's last step to the next row's first: > 0
    localparam STEP   = DOWN % SLOTS;
    localparam LW     = PE * XBITS;
    localparam CW = (CF > 1) ? $clog2(CF) : 1;
    localparam BW = (SIMD > 1) ? $clog2(SIMD) : 1;                  // a bank
    localparam SW = $clog2(SLOTS);                                  // a place (2 or more)
    localparam AW = (WORDS > 1) ? $clog2(WORDS) : 1;                // a word of a bank
    localparam NW = $clog2(SLOTS + 1);                              // a number of tokens
    localparam OW = $clog2(SPAN + SIMD + 1);                        // a tap, as tokens from the window's first one
    localparam JW = $clog2(W + KW + SIMD + 1);                      // a column
    localparam IW = (KH > 1) ? $clog2(KH) : 1;                      // a row of the window
    // (Verilator wants every width spelled out: hence the way over 32 bits)
    localparam [31:0] CF_32 = CF, C_LAST_32 = CF - 1, S_LAST_32 = SLOTS - 1, BEHIND_32 = BEHIND, BEFORE_32 = BEFORE, ROOM_32 = ROOM,
                      B_LAST_32 = SIMD - 1, WORDS_32 = WORDS, STEP_B_32 = STEP % SIMD, STEP_A_32 = STEP / SIMD * CF,
                      I_LAST_32 = KH - 1, J_LAST_32 = KW - SIMD, SIMD_32 = SIMD, LEFT_32 = LEFT, RIGHT_32 = W - 1 + LEFT, O_DOWN_32 = W + SIMD,
                      KW_32 = KW, HOME_32 = (SLOTS - BEFORE) % SLOTS, HOME_B_32 = HOME_32 % SIMD, HOME_A_32 = HOME_32 / SIMD * CF,
                      SIGHT_32 = (BEHIND + SLOTS - 1) % SLOTS, W_LAST_32 = W - 1;
    localparam [CW-1:0] C_LAST = C_LAST_32[CW-1:0];
    localparam [AW-1:0] C_LAST_A = C_LAST_32[AW-1:0];
    localparam [SW-1:0] S_LAST = S_LAST_32[SW-1:0];
    localparam [BW-1:0] B_LAST = B_LAST_32[BW-1:0];
    localparam [NW-1:0] FAR    = BEHIND_32[NW-1:0];
    localparam [OW-1:0] FIRST  = BEFORE_32[OW-1:0];
    localparam [IW-1:0] I_LAST = I_LAST_32[IW-1:0];
    localparam [JW-1:0] J_LAST = J_LAST_32[JW-1:0];

    generate
        if (C % PE != 0)                mlo_error_PE_must_divide_C u_pe ();
        if (KW % SIMD != 0)             mlo_error_SIMD_must_divide_KW u_simd ();
        if (TOP < 0 || TOP >= KH)       mlo_error_TOP_must_be_less_than_KH u_top ();
        if (LEFT < 0 || LEFT >= KW)     mlo_error_LEFT_must_be_less_than_KW u_left ();
        if (W < 1)                      mlo_error_W_must_be_at_least_1 u_w ();
    endgenerate

    // A word `add` words further in a bank, round its end.
    function [AW-1:0] round(input [AW-1:0] from, input [31:0] add);
        reg [31:0] sum;
        begin
            sum   = {{(32 - AW){1'b0}}, from} + add;
            sum   = (sum >= WORDS_32) ? sum - WORDS_32 : sum;
            round = sum[AW-1:0];
        end
    endfunction
    function [SW-1:0] after(input [SW-1:0] slot);
        after = (slot == S_LAST) ? {SW{1'b0}} : slot + 1'b1;
    endfunction

    // ---- the way in ------------------------------------------------------------------------------------------------
    reg  [CW-1:0] in_c;
    reg  [BW-1:0] in_b;                             // the token's bank, the beat's word there
    reg  [AW-1:0] in_a;
    reg  [SW-1:0] in_slot, in_first;                // the token's place, that of its frame's first
    reg  [NW-1:0] in_at;                            // tokens of its frame in front of it, BEHIND at most
    reg  [NW-1:0] count;                            // tokens that are in and not done
    reg  [NW-1:0] credit;                           // of those, not begun, that may be
    wire          take   = s_axis_tvalid && s_axis_tready;
    wire          take_c = in_c == C_LAST;
    wire          taken  = take && take_c;
    wire          last   = s_axis_tuser[1];
    wire          load;                             // the next token is begun
    wire [NW-1:0] due    = !taken ? {NW{1'b0}} : last ? in_at + 1'b1 : {{(NW-1){1'b0}}, in_at == FAR};
    assign s_axis_tready = count != ROOM_32[NW-1:0];

    reg [2:0]    user_mem [0:SLOTS-1];
    reg          last_mem [0:SLOTS-1];
    reg [NW-1:0] sees_mem [0:SLOTS-1];              // at a frame's first token: tokens behind it, BEHIND at most
    always @(posedge clk) begin
        if (take) begin
            in_c <= take_c ? {CW{1'b0}} : in_c + 1'b1;
            in_a <= !take_c ? in_a + 1'b1 : in_b == B_LAST ? round(in_a, 32'd1) : in_a - C_LAST_A;
        end
        if (taken) begin
            in_b     <= (in_b == B_LAST) ? {BW{1'b0}} : in_b + 1'b1;
            in_slot  <= after(in_slot);
            in_at    <= last ? {NW{1'b0}} : in_at == FAR ? FAR : in_at + 1'b1;
            if (last) in_first <= after(in_slot);
            user_mem[in_slot]  <= s_axis_tuser;
            last_mem[in_slot]  <= last;
            sees_mem[in_first] <= in_at;
        end
        count  <= count + {{(NW-1){1'b0}}, taken} - {{(NW-1){1'b0}}, done};
        credit <= credit + due - {{(NW-1){1'b0}}, load};
        if (rst) begin
            in_c     <= {CW{1'b0}};
            in_b     <= {BW{1'b0}};
            in_a     <= {AW{1'b0}};
            in_slot  <= {SW{1'b0}};
            in_first <= {SW{1'b0}};
            in_at    <= {NW{1'b0}};
            count    <= {NW{1'b0}};
            credit   <= {NW{1'b0}};
        end
    end
    // ---- the token that is stepped through: what of its window is in its frame ---------------------------------------------
    reg  [SW-1:0] slot, sight;                      // the next token's place; that of the token BEHIND behind the one in front of it
    reg           fresh;                            // the next token is its frame's first
    reg  [NW-1:0] ahead;                            // tokens of the frame behind this one, BEHIND at most
    reg  [OW-1:0] low, high;                        // its taps that are in the frame, as tokens from the window's first
    reg  [JW-1:0] left, right;                      // its columns that are in the grid
    reg  [JW-1:0] column;                           // of the next token
    reg  [OW-1:0] next_low;
    reg  [JW-1:0] next_left;
    wire [2:0]    next_user  = user_mem[slot];
    wire [NW-1:0] next_ahead = fresh ? sees_mem[slot] : (ahead == FAR && !last_mem[sight]) ? FAR : ahead - 1'b1;
    wire [31:0]   next_high  = BEFORE_32 + {{(32 - NW){1'b0}}, next_ahead};
    wire [31:0]   next_right = RIGHT_32 - {{(32 - JW){1'b0}}, column};
    wire          row_end    = column == W_LAST_32[JW-1:0];
    mlo_part #(.KH(KH), .KW(KW), .W(W), .TOP(TOP), .LEFT(LEFT), .NBITS(NW), .JBITS(JW)) u_part (
        .clk(clk), .rst(rst), .load(load), .last(next_user[1]), .column(column), .left(next_left), .ahead(next_ahead), .part(part));
    assign load = credit != {NW{1'b0}} && (!full || done);
    always @(posedge clk) begin
        if (load) begin
            user      <= next_user;
            ahead     <= next_ahead;
            low       <= next_low;
            high      <= next_high[OW-1:0];
            left      <= next_left;
            right     <= next_right[JW-1:0];
            slot      <= after(slot);
            sight     <= after(sight);
            fresh     <= next_user[1];
            column    <= (next_user[1] || row_end) ? {JW{1'b0}} : column + 1'b1;
            next_low  <= next_user[1] ? FIRST : next_low == {OW{1'b0}} ? next_low : next_low - 1'b1;
            next_left <= (next_user[1] || row_end) ? LEFT_32[JW-1:0] : next_left == {JW{1'b0}} ? next_left : next_left - 1'b1;
        end
        full <= load || (full && !done);
        if (rst) begin
            full      <= 1'b0;
            slot      <= {SW{1'b0}};
            sight     <= SIGHT_32[SW-1:0];
            fresh     <= 1'b1;
            column    <= {JW{1'b0}};
            next_low  <= FIRST;
            next_left <= LEFT_32[JW-1:0];
        end
    end

    // ---- its steps -------------------------------------------------------------------------------------------------------
    reg  [IW-1:0] i;                                // the step's row and first column in the window
    reg  [JW-1:0] j;
    reg  [OW-1:0] tap;                              // i*W + j
    reg  [CW-1:0] c;
    reg  [BW-1:0] base_b, b;                        // bank of the window's first token, of the step's first
    reg  [AW-1:0] base_a, a;                        // word likewise
    wire          row_done = j == J_LAST;
    wire          beat_done = row_done && i == I_LAST;
    wire [31:0]   b_down   = {{(32 - BW){1'b0}}, b} + STEP_B_32;
    wire          b_over   = b_down >= SIMD_32;
    wire [31:0]   b_round  = b_over ? b_down - SIMD_32 : b_down;
    wire          base_end = base_b == B_LAST;
    wire [BW-1:0] next_b   = base_end ? {BW{1'b0}} : base_b + 1'b1;
    wire [AW-1:0] next_a   = base_end ? round(base_a, CF_32) : base_a;
    wire [31:0]   beat_a   = {{(32 - AW){1'b0}}, base_a} + {{(32 - CW){1'b0}}, c} + 32'd1;
    wire [AW-1:0] a_next   = round(a, CF_32);       // the words of the banks in front of b
    always @(posedge clk) begin
        if (en) begin
            j   <= row_done ? {JW{1'b0}} : j + SIMD_32[JW-1:0];
            tap <= beat_done ? {OW{1'b0}} : row_done ? tap + O_DOWN_32[OW-1:0] - KW_32[OW-1:0] : tap + SIMD_32[OW-1:0];
            if (row_done) i <= beat_done ? {IW{1'b0}} : i + 1'b1;
            if (beat_done) c <= done ? {CW{1'b0}} : c + 1'b1;
            b <= done ? next_b : beat_done ? base_b : row_done ? b_round[BW-1:0] : b;
            a <= done ? next_a : beat_done ? beat_a[AW-1:0] : row_done ? (b_over ? round(a, STEP_A_32 + CF_32) : round(a, STEP_A_32)) : a_next;
        end
        if (done) begin
            base_b <= next_b;
            base_a <= next_a;
        end
        if (rst) begin
            i      <= {IW{1'b0}};
            j      <= {JW{1'b0}};
            tap    <= {OW{1'b0}};
            c      <= {CW{1'b0}};
            b      <= HOME_B_32[BW-1:0];
            a      <= HOME_A_32[AW-1:0];
            base_b <= HOME_B_32[BW-1:0];
            base_a <= HOME_A_32[AW-1:0];
        end
    end

    // ---- banks, then taps in their order, those outside 0 ------------------------------------------------------------------
    wire [SIMD*LW-1:0] read;                        // of each bank
    reg  [SIMD-1:0]    seen;                        // of each tap: it is in the frame
    reg  [BW-1:0]      first;                       // bank of the first tap
    wire [SIMD*LW-1:0] ordered;
    genvar s;
    generate
        for (s = 0; s < SIMD; s = s + 1) begin : bank
            localparam [BW-1:0] ME = s;
            localparam [JW-1:0] J  = s;
            localparam [OW-1:0] O  = s;
            (* no_rw_check *)    // what is read where it is written in the same cycle is outside
            reg  [LW-1:0] mem [0:WORDS-1];
            reg  [LW-1:0] word;
            wire [AW-1:0] at = ({1'b0, ME} < {1'b0, b}) ? a_next : a;
            always @(posedge clk) begin
                if (take && in_b == ME) mem[in_a] <= s_axis_tdata;
                if (en) word <= mem[at];
            end
            assign read[s*LW +: LW] = word;
            wire [JW-1:0] col = j + J;
            wire [OW-1:0] far = tap + O;
            always @(posedge clk)
                if (en) seen[s] <= col >= left && col <= right && far >= low && far <= high;
            always @(posedge clk)
                if (move) data[s*LW +: LW] <= ordered[s*LW +: LW] & {LW{seen[s]}};
        end
        if (SIMD == 1) begin : in_order
            assign ordered = read;
            wire unused = &{1'b0, first};
        end else begin : turned
            wire [2*SIMD*LW-1:0] twice = {read, read};
            for (s = 0; s < SIMD; s = s + 1) begin : tap_of
                assign ordered[s*LW +: LW] = twice[({{(32 - BW){1'b0}}, first} + s)*LW +: LW];
            end
        end
    endgenerate
    always @(posedge clk) if (en) first <= b;
    wire unused = &{1'b0, S_LAST_32, C_LAST_32, B_LAST_32, BEHIND_32, I_LAST_32, J_LAST_32, ROOM_32, HOME_32, HOME_B_32, HOME_A_32, SIGHT_32,
                    W_LAST_32, LEFT_32, O_DOWN_32, KW_32, next_high, next_right, b_round, beat_a};

`ifdef FORMAL
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);
    // The environment: steps of the token that is there, in their number.
    wire f_end = beat_done && c == C_LAST;
    always @(*) begin
        assume (!en || (full && move));
        assume (done == (en && f_end));
    end
    // Which tokens are inside: those at places oldest, oldest + 1, .. in_slot - 1. Of them in_at may not be begun: those of the frame that
    // comes in, BEHIND at most. So the last token of a frame lets all of it go.
    wire [SW-1:0] f_before = (slot == {SW{1'b0}}) ? S_LAST : slot - 1'b1;
    wire [SW-1:0] f_oldest = full ? f_before : slot;
    wire [31:0]   f_next   = {{(32 - SW){1'b0}}, f_oldest} + {{(32 - NW){1'b0}}, count};
    always @(*) if (f_past) begin
        assert (count <= ROOM_32[NW-1:0] && slot <= S_LAST && in_slot <= S_LAST && in_c <= C_LAST && c <= C_LAST);
        assert (in_at <= FAR);
        assert ({{(32 - SW){1'b0}}, in_slot} == (f_next >= SLOTS ? f_next - SLOTS : f_next));
        assert ({2'b00, credit} + {2'b00, in_at} + full == {2'b00, count});
        if (full) assert (user == user_mem[f_before]);
    end
    // The sideband of a place that the solver picks stays as long as its token is inside.
    (* anyconst *) wire [SW-1:0] f_slot;
    reg  [2:0]    f_user;
    reg           f_have;
    wire [31:0]   f_far = ({{(32 - SW){1'b0}}, f_slot} + SLOTS - {{(32 - SW){1'b0}}, f_oldest}) % SLOTS;
    always @(posedge clk) begin
        if (taken && in_slot == f_slot) f_user <= s_axis_tuser;
        f_have <= !rst && ((taken && in_slot == f_slot) || (f_have && !(done && f_oldest == f_slot)));
    end
    always @(*) begin
        assume (f_slot <= S_LAST);
        if (f_past) assert (f_have == (f_far < count));
        if (f_past && f_have) assert (user_mem[f_slot] == f_user);
    end
    // F_WORDS: words, from reset on, of tokens of one beat: all that came are kept by their number, with their column and their frame's number.
    parameter F_WORDS = 0;
    generate
    if (F_WORDS != 0) begin : f_words
    localparam F = 8;
    reg  [F*LW-1:0] f_x;
    reg  [F*4-1:0]  f_col, f_row, f_frame;
    reg  [3:0]      f_line;                                     // row of what comes in
    reg  [3:0]      f_in, f_n, f_i, f_j, f_here, f_frames;      // tokens in, done; the step; column and frame of what comes in
    always @(posedge clk) begin
        if (taken) begin
            f_x[f_in*LW +: LW]    <= s_axis_tdata;
            f_col[f_in*4 +: 4]    <= f_here;
            f_row[f_in*4 +: 4]    <= f_line;
            f_line   <= last ? 4'd0 : f_line + (f_here + 1 == W);
            f_frame[f_in*4 +: 4]  <= f_frames;
            f_in     <= f_in + 4'd1;
            f_here   <= (last || f_here + 1 == W) ? 4'd0 : f_here + 4'd1;
            f_frames <= f_frames + last;
        end
        if (done) f_n <= f_n + 4'd1;
        if (en) begin
            f_j <= (f_j + SIMD == KW) ? 4'd0 : f_j + SIMD;
            if (f_j + SIMD == KW) f_i <= (f_i + 1 == KH) ? 4'd0 : f_i + 4'd1;
        end
        if (rst) {f_in, f_n, f_i, f_j, f_here, f_frames, f_line} <= 28'd0;
    end
    // Which part of its window the token in turn has, tap by tap.
    reg [7:0] f_up, f_down, f_before, f_after, f_k;
    always @(*) begin
        {f_up, f_down, f_before, f_after} = 32'd0;
        for (f_k = 0; f_k < KH; f_k = f_k + 1) if (f_row[f_n*4 +: 4] + f_k < TOP) f_up = f_up + 1;
        for (f_k = 1; f_k < KH - TOP; f_k = f_k + 1)
            if (f_n + f_k * W >= f_in || f_frame[(f_n + f_k * W) % F * 4 +: 4] != f_frame[f_n*4 +: 4]) f_down = f_down + 1;
        for (f_k = 0; f_k < KW; f_k = f_k + 1) begin
            if (f_col[f_n*4 +: 4] + f_k < LEFT) f_before = f_before + 1;
            if (f_col[f_n*4 +: 4] + f_k >= W + LEFT) f_after = f_after + 1;
        end
        if (f_past && full) assert (part == ((f_up * (KH - TOP) + f_down) * (LEFT + 1) + f_before) * (KW - LEFT) + f_after);
    end
    always @(*) if (f_past) begin
        assume (f_in < F);
        assert (done == (en && f_j + SIMD == KW && f_i + 1 == KH));
        // what a token sees is there
        if (full) assert (f_n < f_in && (f_in > f_n + BEHIND || f_frames != f_frame[f_n*4 +: 4]));
    end
    reg  [SIMD*LW-1:0] f_want, f_data;
    reg  [1:0]         f_valid = 2'b00;
    for (s = 0; s < SIMD; s = s + 1) begin : f_tap
        wire [5:0] col  = f_col[f_n*4 +: 4] + f_j + s - LEFT;         // modulo 64: below 0 is 32 and more
        wire [5:0] that = f_n + f_i * W + f_j + s - BEFORE;
        wire       is   = col < W && that < f_in && f_frame[that[2:0]*4 +: 4] == f_frame[f_n*4 +: 4];
        always @(posedge clk) if (en) f_want[s*LW +: LW] <= is ? f_x[that[2:0]*LW +: LW] : {LW{1'b0}};
    end
    always @(posedge clk) begin
        if (move) begin
            f_data  <= f_want;
            f_valid <= {f_valid[0], en};
        end
        if (rst) f_valid <= 2'b00;
    end
    always @(*) if (f_past && f_valid[1]) assert (data == f_data);
    end
    endgenerate
    always @(posedge clk) if (f_past && !rst) cover (done && user[1] && count == ROOM_32[NW-1:0]);
`endif
endmodule

`default_nettype wire
