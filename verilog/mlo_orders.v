// SPDX-License-Identifier: MIT
// mlo_orders: the words of a group's jobs: each frame that enters the body gets its own, with the bank of its iteration
//
//      s_job -----\
//                  >--- m_word    (a word for each turn)
//   .--> front ---/  \
//   '---- ring <------'           bank + 1, unless that iteration was the last
//
// Contract    a turn is a frame that enters the body: from outside (turn_round = 0), or from the feedback (1). It takes the word at
//             s_job, or the ring's front, and is offered with it: m_word = {start[15:0], bank[15:0]}. A job's word is
//             offered `iterations` times, in iteration i with its bank + i, and goes back into the ring between. So the words are in the
//             order of frames where frames are iteration-major, as those of mlo_loop: neither knows the size of a group.
//             ahead_valid: the words in the same order, each once, with its turn or sooner: what is in the ring when
//             `sealed` says that no frame comes from outside before it. {of iteration 0, start, bank}; whoever listens is always ready.
// Example     FRAMES = 2, iterations = 2, jobs {0, 4} and {7, 6} as a group: {0, 4}, {7, 6}, {0, 5}, {7, 7}
// Throughput  one word per cycle
// Latency     none: a turn is taken in the cycle in which its word is
// Stall       m_word_tready low, or no word there: the turn waits
// Legal       1 <= FRAMES <= 255. iterations (0 acts as 1) stands still. At most FRAMES jobs have turns to come (else those from outside wait).
`default_nettype none
module mlo_orders #(
    parameter FRAMES = 1            // jobs of a group
) (
    input  wire        clk,
    input  wire        rst,
    input  wire [15:0] iterations,
    input  wire        turn_valid,
    output wire        turn_ready,
    input  wire        turn_round,
    input  wire        sealed,
    output wire        ahead_valid,
    output wire [32:0] ahead_tdata,
    input  wire [31:0] s_job_tdata,
    input  wire        s_job_tvalid,
    output wire        s_job_tready,
    output wire [31:0] m_word_tdata,
    output wire        m_word_tvalid,
    input  wire        m_word_tready
);
    localparam AW = (FRAMES > 1) ? $clog2(FRAMES) : 1;
    localparam LW = $clog2(FRAMES + 1);
    localparam [AW-1:0] LAST   = FRAMES[AW-1:0] - 1'b1;
    localparam [LW-1:0] FULL   = FRAMES[LW-1:0];

    generate
        if (FRAMES < 1 || FRAMES > 255) mlo_error_FRAMES_must_be_1_to_255 u_frames ();
    endgenerate

    // ---- the ring: {turns to come behind the next, start, bank}
    reg  [47:0]   ring [0:(1<<AW)-1];
    reg  [AW-1:0] front, back;                  // the oldest word; where the next one goes
    reg  [LW-1:0] level;
    wire [47:0]   oldest = ring[front];
    wire [15:0]   behind = (iterations == 16'd0) ? 16'd0 : iterations - 16'd1;
    wire [47:0]   now    = turn_round ? oldest : {behind, s_job_tdata};
    wire          there  = turn_round ? level != {LW{1'b0}} : s_job_tvalid && level != FULL;
    wire          go     = turn_valid && there && m_word_tready;
    wire          pop    = go && turn_round;
    wire          again  = go && now[47:32] != 16'd0;
    assign turn_ready    = there && m_word_tready;
    assign s_job_tready  = go && !turn_round;
    assign m_word_tvalid = turn_valid && there;
    assign m_word_tdata  = now[31:0];

    // ---- ahead: of the ring's words the first `told` are; if none is, the next one is with its turn
    reg  [AW-1:0] next;                         // the first that is not
    reg  [LW-1:0] told;
    wire          late = go && told == {LW{1'b0}};
    wire          tell = sealed && told != level && !late;
    wire [31:0]   coming = ring[next][31:0];
    assign ahead_valid = late || tell;
    assign ahead_tdata = late ? {!turn_round, now[31:0]} : {1'b0, coming};
    wire          known = pop && !late;
    always @(posedge clk) begin
        if (tell || late && turn_round) next <= (next == LAST) ? {AW{1'b0}} : next + 1'b1;
        if (tell != known) told <= tell ? told + 1'b1 : told - 1'b1;
        if (rst) {next, told} <= {AW+LW{1'b0}};
    end

    always @(posedge clk) begin
        if (again) begin
            ring[back] <= {now[47:32] - 16'd1, now[31:16], now[15:0] + 16'd1};
            back       <= (back == LAST) ? {AW{1'b0}} : back + 1'b1;
        end
        if (pop) front <= (front == LAST) ? {AW{1'b0}} : front + 1'b1;
        if (again != pop) level <= again ? level + 1'b1 : level - 1'b1;
        if (rst) begin
            front <= {AW{1'b0}};
            back  <= {AW{1'b0}};
            level <= {LW{1'b0}};
        end
    end

`ifdef FORMAL
    // One job, any, is followed by counting events alone: how many words are before it, and how often it had its turn.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    (* anyseq *) reg f_pick;
    reg        f_inside;                        // it waits in the ring
    reg [31:0] f_job;
    reg [15:0] f_turns, f_n;
    reg [LW-1:0] f_before, f_many;              // words before it; words in the ring
    wire f_enters = s_job_tvalid && s_job_tready && f_pick && !f_inside;
    wire f_mine   = pop && f_inside && f_before == 0;
    wire f_more   = f_turns + 16'd1 != f_n;
    always @(posedge clk) begin
        f_n <= iterations;
        if (f_enters) begin
            f_inside <= iterations > 16'd1;
            f_job    <= s_job_tdata;
            f_turns  <= 16'd1;
            f_before <= f_many;
        end else if (f_mine) begin
            f_inside <= f_more;
            f_turns  <= f_turns + 16'd1;
            f_before <= f_many - 1'b1;          // behind all others
        end else if (pop) f_before <= f_before - 1'b1;
        if (m_word_tvalid && m_word_tready) f_many <= f_many + again - turn_round;
        if (rst) {f_inside, f_many} <= 0;
    end
    // A turn and a job that wait stay.
    reg        f_wait, f_job_wait, f_held, f_round;
    reg [31:0] f_word, f_offer;
    always @(posedge clk) begin
        f_wait     <= !rst && turn_valid && !turn_ready;
        f_round    <= turn_round;
        f_job_wait <= !rst && s_job_tvalid && !s_job_tready;
        f_offer    <= s_job_tdata;
        f_held     <= !rst && m_word_tvalid && !m_word_tready;
        f_word     <= m_word_tdata;
    end
    // Of any number, that word ahead is that word at its turn.
    (* anyconst *) wire [7:0] f_number;
    reg  [7:0]  f_words, f_aheads;              // so many were
    reg  [31:0] f_ahead;
    wire [7:0]  f_off = f_number - f_words;     // words before it
    always @(posedge clk) begin
        if (ahead_valid && f_aheads == f_number) f_ahead <= ahead_tdata[31:0];
        f_aheads <= rst ? 8'd0 : f_aheads + ahead_valid;
        f_words  <= rst ? 8'd0 : f_words + go;
    end
    wire [LW:0]   f_at   = front + f_off[LW-1:0], f_new = front + told;
    wire [47:0]   f_due  = ring[f_at >= FRAMES ? f_at - FRAMES : f_at];
    always @* if (f_past_valid && !rst) begin
        if (turn_valid && !turn_round) assume (told == 0 && (!sealed || level == 0));     // mlo_loop's word on it
        assert (told <= level && f_aheads == f_words + told);
        assert (next == (f_new >= FRAMES ? f_new - FRAMES : f_new));
        if (f_off < told) assert (f_due[31:0] == f_ahead);
        if (go && f_words == f_number) assert (m_word_tdata == (late ? ahead_tdata[31:0] : f_ahead));
        cover (tell);
    end
    wire [LW:0]   f_sum  = front + f_before, f_end = front + level;
    wire [47:0]   f_here = ring[f_sum >= FRAMES ? f_sum - FRAMES : f_sum];
    integer i;
    always @* if (f_past_valid && !rst) begin
        for (i = 0; i < FRAMES; i = i + 1)          // a word in the ring has turns to come
            if (((i >= front) ? i - front : i + FRAMES - front) < level)
                assert (f_n > 16'd1 && ring[i][47:32] < f_n - 16'd1);
        assume (iterations == f_n);
        if (f_wait)     assume (turn_valid && turn_round == f_round);
        if (f_job_wait) assume (s_job_tvalid && s_job_tdata == f_offer);
        if (f_held)     assert (m_word_tvalid && m_word_tdata == f_word);
        assert (level <= FRAMES && front < FRAMES && back < FRAMES && f_many == level);
        assert (back == (f_end >= FRAMES ? f_end - FRAMES : f_end));
        if (f_inside) begin
            assert (f_before < level && f_turns != 0 && f_turns < f_n);
            assert (f_here == {f_n - 16'd1 - f_turns, f_job[31:16], f_job[15:0] + f_turns});
        end
        // what the consumers see of it
        if (f_enters) assert (m_word_tvalid && m_word_tdata == s_job_tdata);
        if (f_mine)   assert (m_word_tvalid && m_word_tdata == {f_job[31:16], f_job[15:0] + f_turns});
        cover (f_mine && f_turns == 16'd2);
    end
`endif
endmodule
`default_nettype wire
