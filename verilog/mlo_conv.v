// SPDX-License-Identifier: MIT
// mlo_conv: y = requantize(bias + sum of a window's taps): depthwise convolution over a grid of tokens, PE channels x SIMD taps a cycle
//
// Contract   tokens of C channels, row after row of a grid of W columns, tuser[1] (`last`) ends a frame (of any number of tokens; what
//            is missing of its last row is 0, as all is that lies outside). For the token at row r, column q of its frame:
//            acc[n] = bias[n] + sum_ij w[n][i][j]*x[r+i-TOP][q+j-LEFT][n], i < KH, j < KW, in ABITS bits (as the compiler derives them
//            nothing is ever lost); y[n] = clip((acc[n]*M[n] + 2^(S[n]-1)) >>> S[n]). Tokens leave in their order with their sideband.
//            A token with tuser[0] (`first`) moves the parameter memories to their next banks. The very first token after reset
//            must have it.
// Throughput II = KF*NF cycles per token exactly, KF = KH*KW/SIMD, NF = C/PE, back to back, from frame to frame, too. A token with
//            `first` costs 1 cycle more (if its parameters are loaded).
// Latency    idle, parameters loaded: let a token's window reach as far as the token (KH-1-TOP)*W + KW-1-LEFT behind it, or its
//            frame's last; that one's last beat taken in cycle t => the token's first output beat is offered in cycle
//            t + KF + ceil(clog2(SIMD)/2) + 13 + TURNS + (1 if `first`); the others follow every KF cycles.
// Stall      a result that cannot leave freezes the pipeline; nothing is lost, nothing recomputed. A parameter memory
//            that is not loaded freezes only what is in front of it: results of the iteration before drain.
//            EDGES = 1: weights of each part of the window that a token's frame can have (mlo_part): E of them, else 1.
// Parameters s_axis_w: words of PE*SIMD*WBITS, address (nf*KF + kf)*E + part, bits (p*SIMD+s)*WBITS: tap kf*SIMD+s (i*KW+j) of channel nf*PE+p
//            s_axis_c: words of LANES*64, LANES channels each, in their order, bits 64*l: bias[31:0] signed, M[47:32] (< 2^15),
//            S[53:48] (1..62); SHIFT = 1: M is 2^14, whatever its bits say, and the requantization has no multiplier
// Legal      SIMD divides KW, PE divides C, 0 <= TOP < KH, 0 <= LEFT < KW, W >= 1, XBITS and WBITS >= 2, YBITS >= 2,
//            XBITS + WBITS + clog2(SIMD) <= ABITS.
//
// mlo_window keeps tokens and deals out taps; behind it all is as in mlo_mvu: segments A (products, tree) and B (requantizers, which
// take turns), the mark of a new iteration in front of its first token.
`default_nettype none

module mlo_conv #(
    parameter C         = 8,        // channels, a multiple of PE
    parameter KH        = 3,        // rows of the window
    parameter KW        = 3,        // columns of the window, a multiple of SIMD
    parameter W         = 5,        // columns of the grid
    parameter TOP       = 1,        // rows of the window above the token's
    parameter LEFT      = 1,        // columns of the window to the left of the token's
    parameter PE        = 2,        // channels side by side
    parameter SIMD      = 1,        // taps per cycle
    parameter XBITS     = 8,        // bits of x
    parameter WBITS     = 8,        // bits of w
    parameter ABITS     = 33,       // bits of the accumulator
    parameter YBITS     = 8,        // bits of y
    parameter EDGES     = 0,        // 1: other weights where the window reaches over the frame's border
    parameter SHIFT     = 0,        // 1: scales are powers of two
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128       // bits of a parameter beat
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    input  wire [PE*XBITS-1:0]  s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire [2:0]           s_axis_tuser,
    output wire [PE*YBITS-1:0]  m_axis_tdata,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire [2:0]           m_axis_tuser,
    // parameters: weights, channel words
    input  wire [AXI_WIDTH-1:0] s_axis_w_tdata,
    input  wire                 s_axis_w_tvalid,
    output wire                 s_axis_w_tready,
    input  wire [AXI_WIDTH-1:0] s_axis_c_tdata,
    input  wire                 s_axis_c_tvalid,
    output wire                 s_axis_c_tready,
    // {blocked, starved, busy}: this cycle the array works / waits for input or parameters / for the output
    output reg  [2:0]           stat
);
    localparam KF = KH * KW / SIMD;                 // cycles per group of PE outputs
    localparam NF = C / PE;                         // groups per token
    localparam KB = (KF > 1) ? $clog2(KF) : 1;
    localparam NW = (NF > 1) ? $clog2(NF) : 1;
    localparam WA = (KF * NF > 1) ? $clog2(KF * NF) : 1;
    localparam PARTS = (TOP + 1) * (KH - TOP) * (LEFT + 1) * (KW - LEFT);
    localparam PB = $clog2(PARTS + 1);
    localparam SETS = (EDGES != 0) ? PARTS : 1;     // of weights
    localparam DEPTH = KF * NF * SETS;
    localparam MA = (DEPTH > 1) ? $clog2(DEPTH) : 1;
    localparam [31:0]   SETS_32 = SETS;
    localparam [31:0]   KF_LAST_32 = KF - 1, NF_LAST_32 = NF - 1;
    localparam [KB-1:0] K_LAST = KF_LAST_32[KB-1:0];
    localparam [NW-1:0] N_LAST = NF_LAST_32[NW-1:0];
    localparam SBITS = XBITS + WBITS + $clog2(SIMD);
    localparam KBITS = XBITS + WBITS + $clog2(KH * KW) + 1;
    localparam TOTAL = (KBITS < ABITS) ? KBITS : ABITS;         // of all products
    localparam DA = 4 + ($clog2(SIMD) + 1) / 2;     // slots of segment A: memory output, taps in order, operands, .. tree
    localparam DB = 8;                              // of segment B: channel word, sum and bias, six of mlo_requantize
    localparam TURNS = turns_of(PE, KF);
    localparam LANES = PE / TURNS;
    localparam TW = (TURNS > 1) ? $clog2(TURNS) : 1;
    localparam CA = (NF * TURNS > 1) ? $clog2(NF * TURNS) : 1;
    localparam [31:0]   T_LAST_32 = TURNS - 1, C_LAST_32 = NF * TURNS - 1;
    localparam [TW-1:0] T_LAST = T_LAST_32[TW-1:0];
    localparam [CA-1:0] C_LAST = C_LAST_32[CA-1:0];

    // The largest divisor of pe that is not above kf.
    function integer turns_of(input integer pe, input integer kf);
        integer d;
        begin
            turns_of = 1;
            for (d = 1; d <= pe; d = d + 1) if (pe % d == 0 && d <= kf) turns_of = d;
        end
    endfunction

    generate
        if (C % PE != 0)    mlo_error_PE_must_divide_C u_pe ();
        if (ABITS < SBITS)  mlo_error_ABITS_must_hold_a_sum_of_SIMD_products u_abits_low ();
    endgenerate

    wire en_a, en_b;

    // ---- tokens, and the taps of the one in turn -------------------------------------------------------------------
    wire                     x_full, issue, done;   // a token is there; a slot enters; it is the last of its token
    wire [SIMD*PE*XBITS-1:0] x_data;
    wire [2:0]               x_user;
    wire [PB-1:0]            x_part;
    mlo_window #(.C(C), .PE(PE), .KH(KH), .KW(KW), .W(W), .TOP(TOP), .LEFT(LEFT), .SIMD(SIMD), .XBITS(XBITS)) u_window (
        .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
        .s_axis_tready(s_axis_tready), .s_axis_tuser(s_axis_tuser),
        .full(x_full), .user(x_user), .part(x_part), .en(issue), .done(done), .move(en_a), .data(x_data));

    // ---- issue: one slot per cycle, or first the mark of a new iteration -------------------------------------------
    reg  [KB-1:0] run_k;
    reg  [NW-1:0] run_n;
    reg  [WA-1:0] w_addr;                           // run_n*KF + run_k
    reg           fresh;                            // no slot of the token was issued, nor its mark
    wire          w_ready;
    wire          group_end = run_k == K_LAST;
    wire          want_mark = fresh && x_user[0];
    wire          mark = en_a && x_full && want_mark;
    wire          go   = en_a && x_full && !want_mark && w_ready;      // issue (below)
    assign done  = issue && group_end && run_n == N_LAST;

    always @(posedge clk)
        if (rst) begin
            run_k  <= {KB{1'b0}};
            run_n  <= {NW{1'b0}};
            w_addr <= {WA{1'b0}};
            fresh  <= 1'b1;
        end else begin
            if (mark) fresh <= 1'b0;
            if (issue) begin
                run_k  <= group_end ? {KB{1'b0}} : run_k + 1'b1;
                w_addr <= done ? {WA{1'b0}} : w_addr + 1'b1;
                fresh  <= done;
                if (group_end) run_n <= done ? {NW{1'b0}} : run_n + 1'b1;
            end
        end

    // The word that is read: of the step, and of the part of the window that the token has.
    wire [31:0] w_word = {{(32 - WA){1'b0}}, w_addr} * SETS_32 + ((EDGES != 0) ? {{(32 - PB){1'b0}}, x_part} : 32'd0);

    // ---- segment A: control bits beside products and tree ----------------------------------------------------------
    reg  [DA-1:0]   a_valid, a_mark;                // index 0: behind the memories; DA-1: in the last stage of the tree
    reg  [4*DA-1:0] a_info;                         // {tuser, last of its group}
    always @(posedge clk) begin
        if (rst)       {a_valid, a_mark} <= {2*DA{1'b0}};
        else if (en_a) {a_valid, a_mark} <= {a_valid[DA-2:0], issue, a_mark[DA-2:0], mark};
        if (en_a)      a_info <= {a_info[4*DA-5:0], x_user, group_end};
    end
    wire [2:0] sum_user;
    wire       last;
    assign {sum_user, last} = a_info[4*DA-1 -: 4];
    wire       sum_more = a_valid[DA-1] && !last, sum_last = a_valid[DA-1] && last;

    // ---- entry of segment B: a group's last sums are added and go on at once, or wait; its channel words are read, a turn a cycle ----
    reg           c_late;                           // a mark went by that the memory has yet to obey
    reg  [TW-1:0] turn;                             // the one to be read; 0: none, or the first one of the next group
    reg  [CA-1:0] c_addr;
    wire          c_ready;
    wire          idle   = turn == {TW{1'b0}};
    wire          c_due  = c_late || a_mark[DA-1];  // the memory is to move on
    wire          c_swap = c_due && idle && en_b;
    wire          take   = sum_last && idle && en_b && c_ready && !c_late;
    wire          c_read = take || (!idle && en_b);
    assign en_a = !sum_last || take;
    always @(posedge clk) begin
        if (rst) begin
            c_late <= 1'b0;
            turn   <= {TW{1'b0}};
            c_addr <= {CA{1'b0}};
        end else begin
            c_late <= c_due && !c_swap;
            if (c_read) begin
                turn   <= turn == T_LAST ? {TW{1'b0}} : turn + 1'b1;
                c_addr <= c_addr == C_LAST ? {CA{1'b0}} : c_addr + 1'b1;
            end
        end
    end

    // ---- segment B: control bits beside the requantizers -------------------------------------------------------------
    reg  [DB-1:0]   b_valid;                        // last turns of groups
    reg  [3*DB-1:0] b_user;
    reg  [2:0]      t_user;                         // of the group whose turns are read
    always @(posedge clk) begin
        if (rst)       b_valid <= {DB{1'b0}};
        else if (en_b) b_valid <= {b_valid[DB-2:0], c_read && turn == T_LAST};
        if (en_b)      b_user <= {b_user[3*DB-4:0], take ? sum_user : t_user};
        if (take)      t_user <= sum_user;
    end
    wire                q_valid = b_valid[DB-1];
    wire [2:0]          q_user  = b_user[3*DB-1 -: 3];
    wire [PE*YBITS-1:0] q_data;

    // ---- parameter memories and rows: all the numbers; above was all the control ------------------------------------
`ifdef FORMAL
    // Proved for memories that are ready whenever the solver likes, and for rows that compute anything.
    (* anyseq *) wire [PE*YBITS+3:0] f_any;
    assign {q_data, w_ready, c_ready, s_axis_w_tready, s_axis_c_tready} = f_any;
    // A free wire that must equal `go`: z3 takes for ever over the one deep formula that it cuts in two.
    (* anyseq *) wire f_issue;
    always @(*) assume (f_issue == go);
    assign issue = f_issue;
`else
    assign issue = go;
    wire [PE*SIMD*WBITS-1:0] w_data;
    reg  [PE*SIMD*WBITS-1:0] w_taps;                // beside the taps in order
    mlo_param #(.WIDTH(PE*SIMD*WBITS), .DEPTH(DEPTH), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_weights (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_w_tdata), .s_axis_tvalid(s_axis_w_tvalid), .s_axis_tready(s_axis_w_tready), .s_axis_tlast(params_last),
        .first(mark), .ready(w_ready), .addr(w_word[MA-1:0]), .en(issue), .data(w_data));
    wire [LANES*64-1:0] c_data;
    mlo_param #(.WIDTH(LANES*64), .DEPTH(NF*TURNS), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_channel (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready), .s_axis_tlast(params_last),
        .first(c_swap), .ready(c_ready), .addr(c_addr), .en(c_read), .data(c_data));
    always @(posedge clk) if (en_a) w_taps <= w_data;

    // A group's sums, of the products, wait on a tray until their turn, written row by row (see mlo_mvu).
    (* mem2reg *) reg [LANES*TOTAL-1:0] tray [0:TURNS-1];       // registers, each bit behind a multiplexer
    genvar p, k;
    generate
        for (p = 0; p < PE; p = p + 1) begin : row
            wire        [SIMD*XBITS-1:0] x;         // the channel's taps
            wire signed [SBITS-1:0]      sum;
            wire                         unused_carry;
            for (k = 0; k < SIMD; k = k + 1) begin : tap
                assign x[k*XBITS +: XBITS] = x_data[(k*PE+p)*XBITS +: XBITS];
            end
            mlo_dots #(.SIMD(SIMD), .XBITS(XBITS), .WBITS(WBITS), .ROWS(1), .PACK(0)) u_dots (
                .clk(clk), .en(en_a), .x(x), .w(w_taps[p*SIMD*WBITS +: SIMD*WBITS]), .sum(sum), .carry(unused_carry));
            reg  signed [TOTAL-1:0] total;          // of the group so far
            wire signed [TOTAL-1:0] next = total + {{(TOTAL - SBITS){sum[SBITS-1]}}, sum};
            always @(posedge clk) begin
                if (rst || take)   total <= {TOTAL{1'b0}};
                else if (sum_more) total <= next;
                if (take)          tray[p/LANES][(p%LANES)*TOTAL +: TOTAL] <= next;
            end
            wire unused_row = &{1'b0, unused_carry};
        end
    endgenerate

    // Each turn the LANES next sums meet their channel words. What comes out is gathered; the last turn goes straight on.
    // (The memory is slow: nothing but a register stands behind it.)
    reg  [PE*YBITS-1:0]    gathered;                // its low bits hold the turns before
    wire [LANES*YBITS-1:0] lane_y;
    wire [LANES-1:0]       lane_valid;
    reg                    r_valid, l_valid;        // a turn: its word is read; it is in the lanes
    reg  [TW-1:0]          r_turn;
    wire [LANES*TOTAL-1:0] served = tray[r_turn];
    wire [(PE+LANES)*YBITS-1:0] passing = {lane_y, gathered};
    assign q_data = passing[LANES*YBITS +: PE*YBITS];
    always @(posedge clk) begin
        if (rst)                        {l_valid, r_valid} <= 2'b00;
        else if (en_b)                  {l_valid, r_valid} <= {r_valid, c_read};
        if (en_b)                       r_turn <= turn;
        if (en_b && lane_valid[0])      gathered <= q_data;
    end
    genvar l;
    generate
        for (l = 0; l < LANES; l = l + 1) begin : lane
            wire signed [ABITS-1:0] start;
            if (ABITS > 32) begin : extended
                assign start = {{(ABITS - 32){c_data[64*l + 31]}}, c_data[64*l +: 32]};
            end else begin : cut
                assign start = c_data[64*l +: ABITS];
            end
            reg  signed [TOTAL-1:0] total;
            reg  signed [ABITS-1:0] bias;
            reg         [15:0]      mul;
            reg         [5:0]       shift;
            wire signed [ABITS-1:0] acc = bias + {{(ABITS - TOTAL + 1){total[TOTAL-1]}}, total[TOTAL-2:0]};
            always @(posedge clk)
                if (en_b && r_valid) begin
                    total <= served[l*TOTAL +: TOTAL];
                    bias  <= start;
                    mul   <= c_data[64*l + 32 +: 16];
                    shift <= c_data[64*l + 48 +: 6];
                end
            mlo_requantize #(.ABITS(ABITS), .MBITS(16), .YBITS(YBITS), .SHIFT(SHIFT)) u_requantize (
                .clk(clk), .rst(rst), .en(en_b), .in_valid(l_valid), .in_acc(acc), .in_m(mul), .in_s(shift),
                .out_valid(lane_valid[l]), .out_y(lane_y[l*YBITS +: YBITS]));
            wire unused_bits = &{1'b0, lane_valid[l], c_data[64*l +: 32], c_data[64*l + 54 +: 10]};
        end
    endgenerate
    wire unused_turns = &{1'b0, w_word, x_part, passing[LANES*YBITS-1:0], r_turn};
`endif

    // ---- output register -------------------------------------------------------------------------------------------
    wire o_ready;
    assign en_b = o_ready || !q_valid;
    mlo_skid #(.WIDTH(3 + PE*YBITS)) u_out (
        .clk(clk), .rst(rst), .s_tdata({q_user, q_data}), .s_tvalid(q_valid), .s_tready(o_ready),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

    wire waiting = !o_ready || (m_axis_tvalid && !m_axis_tready);
    always @(posedge clk) stat <= rst ? 3'b000 : issue ? 3'b001 : waiting ? 3'b100 : 3'b010;
    wire unused = &{1'b0, KF_LAST_32, NF_LAST_32, T_LAST_32, C_LAST_32};

`ifdef FORMAL
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);

    // The stream rule: assumed of the input, with a constant sideband per token; proved of the output.
    reg                  f_wait = 1'b0, f_held = 1'b0;
    reg [PE*XBITS+2:0] f_in;
    reg [PE*YBITS+2:0]   f_out;
    always @(posedge clk) begin
        f_wait <= !rst && s_axis_tvalid && !s_axis_tready;
        f_in   <= {s_axis_tuser, s_axis_tdata};
        f_held <= !rst && m_axis_tvalid && !m_axis_tready;
        f_out  <= {m_axis_tuser, m_axis_tdata};
    end
    always @(*) begin
        if (f_wait) assume (s_axis_tvalid && f_in == {s_axis_tuser, s_axis_tdata});
        if (f_held) assert (m_axis_tvalid && f_out == {m_axis_tuser, m_axis_tdata});
    end

    // Conservation: groups issued = groups handed to the output register + groups inside.
    reg  [6:0]       f_issued, f_left, f_inside;
    integer          f_i;
    always @(posedge clk) begin
        if (issue && group_end)  f_issued <= f_issued + 1'b1;
        if (q_valid && o_ready) f_left   <= f_left + 1'b1;
        if (rst) {f_issued, f_left} <= 14'd0;
    end
    always @(*) begin
        f_inside = !idle;
        for (f_i = 0; f_i < DB; f_i = f_i + 1) f_inside = f_inside + b_valid[f_i];
        for (f_i = 0; f_i < DA; f_i = f_i + 1) f_inside = f_inside + (a_valid[f_i] && a_info[4*f_i]);
        if (f_past) assert (f_issued - f_left == f_inside);
    end

    // Weights: a token's steps are counted as they are issued; each reads its word, or of its words that of the token's part.
    reg  [7:0] f_step;
    always @(posedge clk) f_step <= (rst || done) ? 8'd0 : f_step + issue;
    always @(*) if (f_past) begin
        assert (f_step == run_n * KF + run_k);
        if (issue) assert (w_word == (EDGES != 0 ? f_step * ((TOP + 1) * (KH - TOP) * (LEFT + 1) * (KW - LEFT)) + x_part : f_step));
    end

    // Order: at the entry of segment B the channel memory is where the group there needs it. Each slot, an empty one too,
    // notes the group (f_n) and the parity of the iteration (f_it) at which the issue stood. Neighbours must fit together,
    // the last slot with the memory's address and bank, the first with the issue.
    // f_new goes with them: there was a mark and no group since, so that no second mark comes before the first is obeyed.
    reg                  f_bank_w, f_bank_c;        // iterations begun by each memory, modulo 2
    reg  [DA-1:0]        f_it;
    reg  [NW*DA-1:0]     f_n;
    reg                  f_new;                     // at the issue
    reg                  f_bank_turn;               // the bank of the group's first turn
    reg  [DA-1:0]        f_news;
    always @(posedge clk) begin
        if (mark)   f_bank_w <= !f_bank_w;
        if (c_swap) f_bank_c <= !f_bank_c;
        if (take)   f_bank_turn <= f_bank_c;
        if (en_a)   f_it     <= {f_it, f_bank_w};
        if (en_a)   f_n      <= {f_n, run_n};
        if (en_a)   f_news   <= {f_news, f_new};
        if (mark || (issue && group_end)) f_new <= mark;
        if (rst) {f_bank_w, f_bank_c, f_it, f_n, f_new, f_news} <= 0;
    end
    wire [DA:0]          f_all_new = {f_news, f_new};
    wire [DA:0]          f_its = {f_it, f_bank_w};
    wire [NW*(DA+1)-1:0] f_ns  = {f_n, run_n};
    genvar g;
    generate
        for (g = 0; g < DA; g = g + 1) begin : f_slot
            wire          ends   = a_valid[g] && a_info[4*g];
            wire [NW-1:0] here   = f_ns[NW*(g+1) +: NW];
            wire [NW-1:0] behind = f_ns[NW*g +: NW];
            always @(*) if (f_past) begin
                assert (!(a_valid[g] && a_mark[g]));
                assert (here <= N_LAST);
                assert (behind == (!ends ? here : here == N_LAST ? {NW{1'b0}} : here + 1'b1));
                assert (f_its[g] == (f_its[g+1] ^ a_mark[g]));
                assert (f_all_new[g] == (a_mark[g] || (f_all_new[g+1] && !ends)));
                assert (!(a_mark[g] && f_all_new[g+1]));
            end
        end
    endgenerate
    wire [NW-1:0] f_c    = f_ns[NW*DA +: NW];        // the group that is taken next
    wire [NW-1:0] f_read = idle ? f_c : f_c == {NW{1'b0}} ? N_LAST : f_c - 1'b1;     // the group whose words are read
    always @(*) if (f_past) begin
        assert (f_its[DA] == (f_bank_c ^ c_late));
        assert ((!c_late || f_news[DA-1]) && (!f_new || !fresh));
        assert (!(c_late && a_mark[DA-1]));
        assert (f_c <= N_LAST && turn <= T_LAST && c_addr == f_read * TURNS + turn);
        assert (run_k <= K_LAST && run_n <= N_LAST);
        assert (w_addr == run_n * KF + run_k);
        if (run_k != 0 || run_n != 0) assert (!fresh);
        if (issue)  assert (x_full && w_ready);
        if (take)   assert (c_ready && !c_swap);
        if (!idle)  assert (f_bank_turn == f_bank_c);
        if (mark)   assert (run_k == 0 && run_n == 0);
    end
    always @(posedge clk) if (f_past && !rst) cover (f_left == NF + 1 && !f_bank_c && !m_axis_tready);
`endif
endmodule

`default_nettype wire
