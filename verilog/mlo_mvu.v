// SPDX-License-Identifier: MIT
// mlo_mvu: y = requantize(W x + bias), PE rows x SIMD columns per cycle: the matrix-vector unit
//
// Contract   for each token x[0..K-1]: acc[n] = bias[n] + sum_k x[k]*W[k][n], in ABITS bits (modulo 2^ABITS: with ABITS as
//            the compiler derives it, bits of K products and any 32-bit bias, nothing is ever lost);
//            y[n] = clip((acc[n]*M[n] + 2^(S[n]-1)) >>> S[n]); with TABLE = 1 that clips to TBITS bits signed
//            and y[n] = table[that + 2^(TBITS-1)]. Tokens leave in their order with their sideband (s_axis_tuser).
//            A token with tuser[0] (`first`) moves every parameter memory to its next bank. The very first token after
//            reset must have it.
// Throughput II = KF*NF cycles per token exactly, KF = K/SIMD, NF = N/PE, back to back: the next token's vector is
//            stored while this one computes. A token with `first` costs 1 cycle more (if its parameters are loaded).
// Latency    idle, parameters loaded: last beat of a token taken in cycle t => its first output beat is offered in cycle
//            t + KF + ceil(clog2(SIMD)/2) + 11 + TURNS + TABLE + (1 if `first`); the others follow every KF cycles.
// Stall      a result that cannot leave freezes the pipeline; nothing is lost, nothing recomputed. A parameter memory
//            that is not loaded freezes only what is in front of it: results of the iteration before drain.
// Parameters s_axis_w: words of PE*SIMD*WBITS, address nf*KF + kf, bits (p*SIMD+s)*WBITS: W[kf*SIMD+s][nf*PE+p]
//            s_axis_c: words of LANES*64, LANES channels each, in their order, bits 64*l: bias[31:0] signed, M[47:32] (< 2^15),
//            S[53:48] (1..62); SHIFT = 1: M is 2^14, whatever its bits say, and the requantization has no multiplier
//            s_axis_t: words of YBITS, 2^TBITS of them (only with TABLE = 1)
// Legal      SIMD divides K, PE divides N, XBITS and WBITS >= 2, YBITS >= 2,
//            XBITS + WBITS + clog2(SIMD) <= ABITS.
//
// Sharing    A group of PE sums is done every KF cycles, and a requantizer takes one a cycle. So LANES = PE / TURNS of them do, and
//            take turns: TURNS is the largest divisor of PE that is not above KF.
//
// How it works: three segments in a row, each frozen by an enable of its own. Every slot of the pipeline carries a few
// control bits.
//   A  issue, memories, products, adder tree              (en_a)   weights: read at its entry
//   B  a group's sums, requantized in turns               (en_b)   bias, M, S: read at its entry, a turn at a time
//   T  table lookup (mlo_lookup)                                   table: read at its entry
// An iteration change travels as a slot of its own, the mark, right ahead of the first token: when it passes the entry
// of a segment it pulses `first` of the memory there, which swaps at exactly the right slot. At segment B it waits for the
// turns of the group before it; since TURNS <= KF that is over before the next group is done, and costs nothing.
`default_nettype none

module mlo_mvu #(
    parameter K         = 8,        // input channels, a multiple of SIMD
    parameter N         = 8,        // output channels, a multiple of PE
    parameter PE        = 2,        // output channels computed side by side
    parameter SIMD      = 2,        // input channels per cycle
    parameter XBITS     = 8,        // bits of x
    parameter WBITS     = 8,        // bits of W
    parameter ABITS     = 33,       // bits of the accumulator
    parameter YBITS     = 8,        // bits of y
    parameter TABLE     = 0,        // 1: a table behind the requantization
    parameter TBITS     = 8,        // bits of the table's index
    parameter SHIFT     = 0,        // 1: scales are powers of two
    parameter PACK      = 1,        // 1: two products a multiplier (mlo_dots); the numbers and the cycles are the same
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128       // bits of a parameter beat
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    // activations: x in, y out
    input  wire [SIMD*XBITS-1:0] s_axis_tdata,
    input  wire                  s_axis_tvalid,
    output wire                  s_axis_tready,
    input  wire [2:0]            s_axis_tuser,
    output wire [PE*YBITS-1:0]   m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire [2:0]            m_axis_tuser,
    // parameters: weights, channel words, table
    input  wire [AXI_WIDTH-1:0]  s_axis_w_tdata,
    input  wire                  s_axis_w_tvalid,
    output wire                  s_axis_w_tready,
    input  wire [AXI_WIDTH-1:0]  s_axis_c_tdata,
    input  wire                  s_axis_c_tvalid,
    output wire                  s_axis_c_tready,
    input  wire [AXI_WIDTH-1:0]  s_axis_t_tdata,
    input  wire                  s_axis_t_tvalid,
    output wire                  s_axis_t_tready,
    // {blocked, starved, busy}: this cycle the array works / waits for input or parameters / for the output
    output reg  [2:0]            stat
);
    localparam KF = K / SIMD;                       // cycles per group of PE outputs
    localparam NF = N / PE;                         // groups per token
    localparam KW = (KF > 1) ? $clog2(KF) : 1;
    localparam NW = (NF > 1) ? $clog2(NF) : 1;
    localparam WA = (KF * NF > 1) ? $clog2(KF * NF) : 1;
    localparam [KW-1:0] K_LAST = KF[KW-1:0] - 1'b1;
    localparam [NW-1:0] N_LAST = NF[NW-1:0] - 1'b1;
    localparam SBITS = XBITS + WBITS + $clog2(SIMD);
    localparam KBITS = XBITS + WBITS + $clog2(K) + 1;
    localparam TOTAL = (KBITS < ABITS) ? KBITS : ABITS;         // of K products
    localparam QBITS = (TABLE != 0) ? TBITS : YBITS;           // what the requantization makes
    localparam DA = 3 + ($clog2(SIMD) + 1) / 2;     // slots of segment A: memory output, operands, .. tree
    localparam DB = 8;                              // of segment B: channel word, sum and bias, six of mlo_requantize
    localparam TURNS = turns_of(PE, KF);
    localparam LANES = PE / TURNS;
    localparam TW = (TURNS > 1) ? $clog2(TURNS) : 1;
    localparam CA = (NF * TURNS > 1) ? $clog2(NF * TURNS) : 1;
    localparam [TW-1:0] T_LAST = TURNS[TW-1:0] - 1'b1;
    localparam [31:0]   C_WORDS = NF * TURNS;
    localparam [CA-1:0] C_LAST = C_WORDS[CA-1:0] - 1'b1;

    // The largest divisor of pe that is not above kf.
    function integer turns_of(input integer pe, input integer kf);
        integer d;
        begin
            turns_of = 1;
            for (d = 1; d <= pe; d = d + 1) if (pe % d == 0 && d <= kf) turns_of = d;
        end
    endfunction

    generate
        if (K % SIMD != 0)  mlo_error_SIMD_must_divide_K u_simd ();
        if (N % PE != 0)    mlo_error_PE_must_divide_N u_pe ();
        if (ABITS < SBITS)  mlo_error_ABITS_must_hold_a_sum_of_SIMD_products u_abits_low ();
        if (TABLE != 0 && TABLE != 1) mlo_error_TABLE_must_be_0_or_1 u_table ();
    endgenerate

    wire en_a, en_b;

    // ---- two input vectors: one computes while the next is stored -------------------------------------------------
    wire                  x_full, issue, done;      // a vector is there; a slot enters; it is the last of its token
    wire [SIMD*XBITS-1:0] x_data;
    wire [2:0]            x_user;
    reg  [KW-1:0]         run_k;
    mlo_vector #(.WIDTH(SIMD*XBITS), .DEPTH(KF)) u_vector (
        .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
        .s_axis_tready(s_axis_tready), .s_axis_tuser(s_axis_tuser),
        .full(x_full), .user(x_user), .addr(run_k), .en(issue), .data(x_data), .done(done));

    // ---- issue: one slot per cycle, or first the mark of a new iteration -------------------------------------------
    reg  [NW-1:0] run_n;
    reg  [WA-1:0] w_addr;                           // run_n*KF + run_k
    reg           fresh;                            // no slot of the token was issued, nor its mark
    wire          w_ready;
    wire          run_last  = run_k == K_LAST;
    wire          want_mark = fresh && x_user[0];
    wire          mark = en_a && x_full && want_mark;
    wire          go   = en_a && x_full && !want_mark && w_ready;      // issue (below)
    assign done  = issue && run_last && run_n == N_LAST;

    always @(posedge clk)
        if (rst) begin
            run_k  <= {KW{1'b0}};
            run_n  <= {NW{1'b0}};
            w_addr <= {WA{1'b0}};
            fresh  <= 1'b1;
        end else begin
            if (mark) fresh <= 1'b0;
            if (issue) begin
                run_k  <= run_last ? {KW{1'b0}} : run_k + 1'b1;
                w_addr <= done ? {WA{1'b0}} : w_addr + 1'b1;
                fresh  <= done;
                if (run_last) run_n <= done ? {NW{1'b0}} : run_n + 1'b1;
            end
        end

    // ---- segment A: control bits beside products and tree ----------------------------------------------------------
    reg  [DA-1:0]   a_valid, a_mark;                // index 0: behind the memories; DA-1: in the last stage of the tree
    reg  [4*DA-1:0] a_info;                         // {tuser, last of its group}
    always @(posedge clk) begin
        if (rst)       {a_valid, a_mark} <= {2*DA{1'b0}};
        else if (en_a) {a_valid, a_mark} <= {a_valid[DA-2:0], issue, a_mark[DA-2:0], mark};
        if (en_a)      a_info <= {a_info[4*DA-5:0], x_user, run_last};
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
    reg  [DB-1:0]   b_valid, b_mark;                // last turns of groups; marks, for the table
    reg  [3*DB-1:0] b_user;
    reg  [2:0]      t_user;                         // of the group whose turns are read
    always @(posedge clk) begin
        if (rst)       {b_valid, b_mark} <= {2*DB{1'b0}};
        else if (en_b) {b_valid, b_mark} <= {b_valid[DB-2:0], c_read && turn == T_LAST, b_mark[DB-2:0], c_swap};
        if (en_b)      b_user <= {b_user[3*DB-4:0], take ? sum_user : t_user};
        if (take)      t_user <= sum_user;
    end
    wire                q_valid = b_valid[DB-1];
    wire [2:0]          q_user  = b_user[3*DB-1 -: 3];
    wire [PE*QBITS-1:0] q_data;

    // ---- parameter memories and rows: all the numbers; above was all the control ------------------------------------
`ifdef FORMAL
    // Proved for memories that are ready whenever the solver likes, and for rows that compute anything.
    (* anyseq *) wire [PE*QBITS+3:0] f_any;
    assign {q_data, w_ready, c_ready, s_axis_w_tready, s_axis_c_tready} = f_any;
    // A free wire that must equal `go`: z3 takes for ever over the one deep formula that it cuts in two.
    (* anyseq *) wire f_issue;
    always @(*) assume (f_issue == go);
    assign issue = f_issue;
`else
    assign issue = go;
    wire [PE*SIMD*WBITS-1:0] w_data;
    mlo_param #(.WIDTH(PE*SIMD*WBITS), .DEPTH(KF*NF), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_weights (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_w_tdata), .s_axis_tvalid(s_axis_w_tvalid), .s_axis_tready(s_axis_w_tready), .s_axis_tlast(params_last),
        .first(mark), .ready(w_ready), .addr(w_addr), .en(issue), .data(w_data));
    wire [LANES*64-1:0] c_data;
    mlo_param #(.WIDTH(LANES*64), .DEPTH(NF*TURNS), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_channel (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready), .s_axis_tlast(params_last),
        .first(c_swap), .ready(c_ready), .addr(c_addr), .en(c_read), .data(c_data));

    // A group's sums, of the products, wait on a tray until their turn. (Row by row: a simulator would put one wide vector of all
    // together anew for each of them.)
    (* mem2reg *) reg [LANES*TOTAL-1:0] tray [0:TURNS-1];       // registers, each bit behind a multiplexer

    // PACK: rows in pairs; `excess` is the sum of x that the first one of each has too much, times 2^(WBITS-1).
    localparam PAIRED = (PACK != 0) ? PE / 2 : 0;   // pairs
    wire signed [SBITS-1:0] excess;
    genvar p;
    generate
        for (p = 0; p < PE; p = p + ((p < 2 * PAIRED) ? 2 : 1)) begin : rows
            localparam ROWS = (p < 2 * PAIRED) ? 2 : 1;
            wire [ROWS*SBITS-1:0] sum;
            wire                  carry;                // the second row lacks it
            mlo_dots #(.SIMD(SIMD), .XBITS(XBITS), .WBITS(WBITS), .ROWS(ROWS), .PACK(PACK)) u_dots (
                .clk(clk), .en(en_a), .x(x_data), .w(w_data[p*SIMD*WBITS +: ROWS*SIMD*WBITS]), .sum(sum), .carry(carry));
            if (ROWS == 1) begin : single
                wire unused_carry = carry;
            end
        end
        if (PAIRED > 0) begin : with_excess             // weights of 1, and synthesis leaves only the adders
            wire [XBITS+$clog2(SIMD)+1:0] x_sum;
            wire                          unused_carry;
            mlo_dots #(.SIMD(SIMD), .XBITS(XBITS), .WBITS(2), .ROWS(1)) u_excess (
                .clk(clk), .en(en_a), .x(x_data), .w({SIMD{2'b01}}), .sum(x_sum), .carry(unused_carry));
            assign excess = {x_sum[XBITS+$clog2(SIMD):0], {(WBITS - 1){1'b0}}};
            wire unused_excess = &{1'b0, unused_carry, x_sum};
        end else begin : no_excess
            assign excess = {SBITS{1'b0}};
            wire unused_excess = &{1'b0, excess};
        end
        for (p = 0; p < PE; p = p + 1) begin : row
            localparam SECOND = (p < 2 * PAIRED) ? p % 2 : 0;
            wire signed [SBITS-1:0] sum;
            if (p < 2 * PAIRED && SECOND == 0) begin : first
                assign sum = rows[p].sum[0 +: SBITS] - excess;
            end else begin : plain
                assign sum = rows[p-SECOND].sum[SECOND*SBITS +: SBITS];
            end

            reg  signed [TOTAL-1:0] total;          // of the group so far
            wire signed [TOTAL-1:0] add = {{(TOTAL - SBITS){sum[SBITS-1]}}, sum};
            wire        [TOTAL:0]   next;           // with a carry in, or without that bit
            if (SECOND != 0) begin : second
                assign next = {add, rows[p-1].carry} + {total, rows[p-1].carry};
            end else begin : whole
                assign next = {add + total, 1'b0};
            end
            always @(posedge clk) begin
                if (rst || take)   total <= {TOTAL{1'b0}};
                else if (sum_more) total <= next[TOTAL:1];
                if (take)          tray[p/LANES][(p%LANES)*TOTAL +: TOTAL] <= next[TOTAL:1];
            end
            wire unused_bit = next[0];
        end
    endgenerate

    // Each turn the LANES next sums meet their channel words. What comes out is gathered; the last turn goes straight on.
    // (The memory is slow: nothing but a register stands behind it.)
    reg  [PE*QBITS-1:0]    gathered;                // its low bits hold the turns before
    wire [LANES*QBITS-1:0] lane_y;
    wire [LANES-1:0]       lane_valid;
    reg                    r_valid, l_valid;        // a turn: its word is read; it is in the lanes
    reg  [TW-1:0]          r_turn;
    wire [LANES*TOTAL-1:0] served = tray[r_turn];
    wire [(PE+LANES)*QBITS-1:0] passing = {lane_y, gathered};
    assign q_data = passing[LANES*QBITS +: PE*QBITS];
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
            mlo_requantize #(.ABITS(ABITS), .MBITS(16), .YBITS(QBITS), .SHIFT(SHIFT)) u_requantize (
                .clk(clk), .rst(rst), .en(en_b), .in_valid(l_valid), .in_acc(acc), .in_m(mul), .in_s(shift),
                .out_valid(lane_valid[l]), .out_y(lane_y[l*QBITS +: QBITS]));
            wire unused_bits = &{1'b0, lane_valid[l], c_data[64*l +: 32], c_data[64*l + 54 +: 10]};
        end
    endgenerate
    wire unused_turns = &{1'b0, passing[LANES*QBITS-1:0], r_turn};
`endif

    // ---- table (or not), output register ---------------------------------------------------------------------------
    wire                q_ready, o_ready, o_valid;
    wire [PE*YBITS-1:0] o_data;
    wire [2:0]          o_user;
    assign en_b = q_ready || !q_valid;
    generate
        if (TABLE == 0) begin : no_table
            assign q_ready = o_ready;
            assign {o_valid, o_user, o_data} = {q_valid, q_user, q_data};
            assign s_axis_t_tready = 1'b0;
            wire unused_t = &{1'b0, s_axis_t_tdata, s_axis_t_tvalid, b_mark};
        end else begin : with_table
            mlo_lookup #(.LANES(PE), .XBITS(TBITS), .YBITS(YBITS), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_lookup (
                .clk(clk), .rst(rst), .params_last(params_last), .first(b_mark[DB-1] && en_b),
                .s_axis_tdata(q_data), .s_axis_tvalid(q_valid), .s_axis_tready(q_ready), .s_axis_tuser(q_user),
                .m_axis_tdata(o_data), .m_axis_tvalid(o_valid), .m_axis_tready(o_ready), .m_axis_tuser(o_user),
                .s_axis_t_tdata(s_axis_t_tdata), .s_axis_t_tvalid(s_axis_t_tvalid), .s_axis_t_tready(s_axis_t_tready));
`ifdef FORMAL
            // every iteration that the channel memory began and the table did not is a mark in between
            reg f_bank_t;
            always @(posedge clk) f_bank_t <= rst ? 1'b0 : f_bank_t ^ (b_mark[DB-1] && en_b);
            always @(*) if (f_past) assert (f_bank_c == f_bank_t ^ ^b_mark);
            always @(*) if (f_past) assert ((b_mark & b_valid) == 0);
`endif
        end
    endgenerate

    mlo_skid #(.WIDTH(3 + PE*YBITS)) u_out (
        .clk(clk), .rst(rst), .s_tdata({o_user, o_data}), .s_tvalid(o_valid), .s_tready(o_ready),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

    wire waiting = !o_ready || (m_axis_tvalid && !m_axis_tready);
    always @(posedge clk) stat <= rst ? 3'b000 : issue ? 3'b001 : waiting ? 3'b100 : 3'b010;

`ifdef FORMAL
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);

    // The stream rule: assumed of the input, with a constant sideband per token; proved of the output.
    reg                  f_wait = 1'b0, f_held = 1'b0;
    reg [SIMD*XBITS+2:0] f_in;
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
        if (issue && run_last)  f_issued <= f_issued + 1'b1;
        if (o_valid && o_ready) f_left   <= f_left + 1'b1;
        if (rst) {f_issued, f_left} <= 14'd0;
    end
    always @(*) begin
        f_inside = (TABLE != 0 && o_valid) + !idle;
        for (f_i = 0; f_i < DB; f_i = f_i + 1) f_inside = f_inside + b_valid[f_i];
        for (f_i = 0; f_i < DA; f_i = f_i + 1) f_inside = f_inside + (a_valid[f_i] && a_info[4*f_i]);
        if (f_past) assert (f_issued - f_left == f_inside);
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
        if (mark || (issue && run_last)) f_new <= mark;
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
