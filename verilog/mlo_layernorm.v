// SPDX-License-Identifier: MIT
// mlo_layernorm: LayerNorm (CENTER=1) or RMSNorm (CENTER=0) of a token of C channels, of each of its GROUPS parts, or of a frame of tokens
//
// Contract    A norm has N = C/GROUPS channels; a token is GROUPS of them, one after the other, PE channels per beat. Of each norm:
//             S1 = CENTER ? sum x : 0;  u[c] = N*x[c] - S1;  V = N*sum(x^2) - S1^2 + EPS;
//             k, R: see mlo_rsqrt (62 and 16 bits), R/2^(46-k) = 1/sqrt(V);
//             n[c] = (u[c]*R + 2^(31-k)) >>> (32-k), 14 fraction bits;   y[c] = clip((n[c]*G[c] + B[c]) >>> SH) to YBITS.
//             FRAME = T > 1: a norm is all of a frame of up to T tokens, which ends with the one that has tuser[1]: N = C times its tokens;
//             each token has the same C numbers G and B.
//             s_axis_c: mlo_param WIDTH PE*64, DEPTH N/PE (OWN=1: C/PE), lane p at 64*p: [15:0] G signed, [63:32] B signed (with the
//             rounding half): of one norm, for all of a token's; OWN=1: of all channels of a token.
//             s_axis_e: mlo_param WIDTH 64, DEPTH 1: [47:0] EPS >= 1, [53:48] SH 0..40. Both banks move with a token whose tuser[0] is set
//             (all its beats have it), each where it is read; tokens before stay under the old bank, and leave even when the new bank is
//             not loaded yet.
// Throughput  one norm per max(N/PE, 43) cycles; a token that starts an iteration costs 1 cycle more if its parameters are loaded.
// Latency     a norm's first output beat 65 + clog2(PE) cycles (CENTER=0: 62 + clog2(PE)) after its last input beat was accepted, when
//             empty; 1 more for the first token of an iteration.
// Stall       m_axis_tready low stops the lanes (not the stages before them); the token buffer fills, then s_axis_tready goes low.
// Legal       GROUPS divides C, is 1 if FRAME is not, 1 <= N <= 32768, PE divides C/GROUPS, 2 <= XBITS <= 16, 2 <= YBITS <= 16, CENTER and OWN 0 or 1.
//
// Three stages work on different norms: mlo_variance sums, mlo_rsqrt makes 1/sqrt(V), the lanes below normalise; a FIFO holds the
// channels meanwhile. The lanes need one multiplication for u*R: u[c]*R = x[c]*(N*R) - S1*R, where both products of R are made
// once per norm from R's bits as mlo_rsqrt finds them (Horner's rule, an adder each).
`default_nettype none

module mlo_layernorm #(
    parameter C         = 16,       // channels of a token
    parameter PE        = 4,        // channels per beat, divides C/GROUPS
    parameter XBITS     = 16,       // bits of x, 2 .. 16
    parameter YBITS     = 16,       // bits of y, 2 .. 16
    parameter CENTER    = 1,        // 1: LayerNorm, 0: RMSNorm
    parameter GROUPS    = 1,        // norms of a token, each of C/GROUPS channels, 1 .. 32768 of them
    parameter FRAME     = 1,        // tokens of a norm, at most
    parameter OWN       = 0,        // 1: each norm of a token has its own G and B, 0: they share them
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128,      // bits of a parameter stream
    parameter MULBITS   = 18        // widest operand of one hardware multiplier (27 for AMD UltraScale), changes no result
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    input  wire [PE*XBITS-1:0]  s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire [2:0]           s_axis_tuser,
    input  wire [AXI_WIDTH-1:0] s_axis_c_tdata,
    input  wire                 s_axis_c_tvalid,
    output wire                 s_axis_c_tready,
    input  wire [AXI_WIDTH-1:0] s_axis_e_tdata,
    input  wire                 s_axis_e_tvalid,
    output wire                 s_axis_e_tready,
    output wire [PE*YBITS-1:0]  m_axis_tdata,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire [2:0]           m_axis_tuser,
    output wire [2:0]           stat        // [0] a beat enters the multipliers, else [2] blocked: one waits to leave, else [1] starved
);
    localparam N      = C / GROUPS * FRAME;         // channels of a norm, at most
    localparam LC     = $clog2(N);
    localparam BEATS  = C / GROUPS / PE;            // of a norm, or of a token of it
    localparam HELD   = N / PE;                     // of a norm
    localparam BBITS  = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam S1BITS = XBITS + LC;
    localparam CRBITS = $clog2(N + 1) + 17;                             // N*R <= N*2^16, and a sign bit
    localparam UBITS  = ((XBITS + LC > 16) ? XBITS + LC : 16) + 18;     // u*R + 2^(31-k)
    localparam NBITS  = 16 + (LC + 1) / 2;                              // |n| <= 2^14 * sqrt(N), and a little
    localparam TBITS  = ((NBITS > 17) ? NBITS + 16 : 33) + 1;           // n*G + B
    // A channel waits HELD + 62 + LP cycles in the FIFO; short norms come every 43 cycles, so at most three are there.
    localparam DEPTH  = (HELD < 42) ? 3 * HELD : HELD + 84;
    localparam XW     = PE * XBITS + ((FRAME > 1) ? 3 : 0);             // its words: of frames with each token's sideband
    localparam [31:0]       LAST_32 = BEATS - 1;
    localparam [BBITS-1:0]  LAST    = LAST_32[BBITS-1:0];
    localparam [BBITS-1:0]  ONE     = 1;
    // G and B: words of a bank, and how often a token reads it.
    localparam WORDS  = (OWN != 0) ? C / PE : BEATS;
    localparam ABITS  = (WORDS > 1) ? $clog2(WORDS) : 1;
    localparam TURNS  = (OWN != 0) ? 1 : GROUPS;
    localparam GBITS  = (TURNS > 1) ? $clog2(TURNS) : 1;
    localparam [31:0]      WORD_32   = WORDS - 1, TURN_32 = TURNS - 1;
    localparam [ABITS-1:0] WORD_LAST = WORD_32[ABITS-1:0], WORD_ONE = 1;
    localparam [GBITS-1:0] TURN_LAST = TURN_32[GBITS-1:0], TURN_ONE = 1;

    generate
        if (GROUPS < 1 || C % GROUPS != 0) mlo_error_GROUPS_must_divide_C u_groups ();
        if (N < 1 || N > 32768)          mlo_error_channels_of_a_norm_must_be_1_to_32768 u_c ();
        if (FRAME < 1 || (FRAME > 1 && GROUPS != 1)) mlo_error_FRAME_must_be_1_or_GROUPS u_frame ();
        if (PE < 1 || C / GROUPS % PE != 0) mlo_error_PE_must_divide_the_channels_of_a_norm u_pe ();
        if (XBITS < 2 || XBITS > 16)     mlo_error_XBITS_must_be_2_to_16 u_xbits ();
        if (YBITS < 2 || YBITS > 16)     mlo_error_YBITS_must_be_2_to_16 u_ybits ();
        if (CENTER != 0 && CENTER != 1)  mlo_error_CENTER_must_be_0_or_1 u_center ();
        if (OWN != 0 && OWN != 1)        mlo_error_OWN_must_be_0_or_1 u_own ();
    endgenerate

    // ---- Every beat goes into the sums and into the FIFO.
    wire                sum_ready, fifo_ready;
    wire [PE*XBITS+2:0] s_word = {s_axis_tuser, s_axis_tdata};
    wire [XW-1:0]       x_word;
    wire [PE*XBITS-1:0] x_data = x_word[PE*XBITS-1:0];
    wire                x_valid, x_take;
    wire [61:0]         v_data;
    wire [S1BITS-1:0]   v_s1;
    wire [15:0]         v_n;
    wire [5:0]          v_sh;
    wire [2:0]          v_user;
    wire                v_valid, v_ready;
    wire [$clog2(DEPTH+1)-1:0] x_level;
    assign s_axis_tready = sum_ready && fifo_ready;

    mlo_fifo #(.WIDTH(XW), .DEPTH(DEPTH)) u_fifo (
        .clk(clk), .rst(rst),
        .s_tdata(s_word[XW-1:0]), .s_tvalid(s_axis_tvalid && sum_ready), .s_tready(fifo_ready),
        .m_tdata(x_word), .m_tvalid(x_valid), .m_tready(x_take), .level(x_level)
    );
    mlo_variance #(.C(N), .GROUPS(GROUPS), .FRAME(FRAME), .PE(PE), .XBITS(XBITS), .CENTER(CENTER), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_variance (
        .clk(clk), .rst(rst), .params_last(params_last),
        .s_tdata(s_axis_tdata), .s_tuser(s_axis_tuser), .s_tvalid(s_axis_tvalid && fifo_ready), .s_tready(sum_ready),
        .s_axis_e_tdata(s_axis_e_tdata), .s_axis_e_tvalid(s_axis_e_tvalid), .s_axis_e_tready(s_axis_e_tready),
        .m_v(v_data), .m_s1(v_s1), .m_n(v_n), .m_sh(v_sh), .m_tuser(v_user), .m_tvalid(v_valid), .m_tready(v_ready)
    );

    // ---- The norm's constants: cr = N*R, minus_sr = -S1*R, then the rounding half is added.
    wire [16:0]       r_data;
    wire [4:0]        r_k;
    wire              r_valid, r_take, q_valid, q_bit;
    reg  [CRBITS-1:0] cr;
    reg  [UBITS-1:0]  minus_sr;
    reg  [S1BITS-1:0] s1;
    reg  [5:0]        r_sh;
    reg  [2:0]        r_user;
    reg  [15:0]       r_n;                          // N
    wire [CRBITS-1:0] n_cr = {{(CRBITS - 16){1'b0}}, r_n};
    mlo_rsqrt #(.VBITS(62), .RBITS(16)) u_rsqrt (
        .clk(clk), .rst(rst), .s_tdata(v_data), .s_tvalid(v_valid), .s_tready(v_ready),
        .m_r(r_data), .m_k(r_k), .m_tvalid(r_valid), .m_tready(r_take), .q_valid(q_valid), .q_bit(q_bit)
    );
    always @(posedge clk)
        if (v_valid && v_ready) begin
            s1       <= v_s1;
            r_sh     <= v_sh;
            r_user   <= v_user;
            r_n      <= v_n;
            cr       <= {CRBITS{1'b0}};
            minus_sr <= {UBITS{1'b0}};
        end else if (q_valid) begin
            cr       <= {cr[CRBITS-2:0], 1'b0} + (q_bit ? n_cr : {CRBITS{1'b0}});
            minus_sr <= {minus_sr[UBITS-2:0], 1'b0} - (q_bit ? {{(UBITS - S1BITS){s1[S1BITS-1]}}, s1} : {UBITS{1'b0}});
        end

    // ---- Stage 0: the norm in work. The lanes take its channels from the FIFO; its constants go with the beats.
    reg               t_valid;
    reg  [CRBITS-1:0] t_cr;
    reg  [UBITS-1:0]  t_c;
    reg  [4:0]        t_k;
    reg  [5:0]        t_sh;
    reg  [2:0]        t_user;
    reg  [BBITS-1:0]  t_beat;
    wire              front, back;                      // enables: stages 1-2, stages 3-8
    wire              go     = t_valid && x_valid && front;
    wire [2:0]        x_user;                           // of the beat in front
    wire              t_done = go && t_beat == LAST && (FRAME == 1 || x_user[1]);
    generate
        if (FRAME == 1) assign x_user = t_user;
        else            assign x_user = x_word[XW-1 -: 3];
    endgenerate
    wire [31:0]       half   = 32'h80000000 >> r_k;     // 2^(31-k)
    assign x_take = t_valid && front;
    assign r_take = !q_valid && (!t_valid || t_done);
    always @(posedge clk) begin
        if (r_valid && r_take) begin
            t_cr   <= cr;
            t_c    <= minus_sr + {{(UBITS - 32){1'b0}}, half};
            t_k    <= r_k;
            t_sh   <= r_sh;
            t_user <= r_user;
        end
        t_valid <= (r_valid && r_take) || (t_valid && !t_done);
        if (go) t_beat <= (t_beat == LAST) ? {BBITS{1'b0}} : t_beat + ONE;
        if (rst) begin
            t_valid <= 1'b0;
            t_beat  <= {BBITS{1'b0}};
        end
    end
    // ---- Control of the lanes. Stages: 1 x, 2 products, 3 u*R + half, 4 n, 5 products, 6 n*G + B, 7 shifted, 8 clipped.
    // G and B are read when a beat leaves stage 2; a beat that must wait for them there does not hold back those before it.
    reg  [8:1]        valid;
    reg  [2:0]        user1, user2, user3, user4, user5, user6, user7, user8;
    reg  [CRBITS-1:0] cr1;
    reg  [UBITS-1:0]  c1, c2;
    reg  [4:0]        k1, k2, k3;
    reg  [5:0]        sh1, sh2, sh3, sh4, sh5, sh6;
    reg  [ABITS-1:0]  c_addr;                           // word of the beat in stage 2
    reg  [GBITS-1:0]  c_turn;                           // how often its token has read the bank
    reg               swapped;
    wire              c_ready, out_ready;
    wire              is_first = valid[2] && user2[0] && c_addr == {ABITS{1'b0}} && c_turn == {GBITS{1'b0}};
    wire              c_first = is_first && !swapped, c_wait = valid[2] && (!c_ready || c_first);
    assign back  = out_ready || !valid[8];
    assign front = back && !c_wait;
    // A stage's numbers move only when a beat enters it: of stage 1 with go, and
    wire              make2 = front && valid[1], make3 = front && valid[2], make4 = back && valid[3], make5 = back && valid[4],
                      make6 = back && valid[5], make7 = back && valid[6], make8 = back && valid[7],
                      lanes = go || (back && valid[7:3] != 5'd0);
    always @(posedge clk) begin
        swapped <= is_first && !front;
        if (go)   begin user1 <= x_user;    cr1 <= t_cr;    c1 <= t_c;      k1 <= t_k;      sh1 <= t_sh;    end
        if (make2) begin user2 <= user1;                    c2 <= c1;       k2 <= k1;       sh2 <= sh1;     end
        if (front) begin
            valid[2:1] <= {valid[1], go};
            if (valid[2]) begin
                c_addr <= (c_addr == WORD_LAST) ? {ABITS{1'b0}} : c_addr + WORD_ONE;
                if (c_addr == WORD_LAST) c_turn <= (c_turn == TURN_LAST) ? {GBITS{1'b0}} : c_turn + TURN_ONE;
            end
        end
        if (back && {valid[8:3], make3} != 7'd0) begin
            valid[8:3] <= {valid[7:3], make3};
            user3 <= user2;     sh3 <= sh2;     k3    <= k2;
            user4 <= user3;     sh4 <= sh3;
            user5 <= user4;     sh5 <= sh4;     user6 <= user5;     sh6 <= sh5;
            user7 <= user6;                     user8 <= user7;
        end
        if (rst) begin
            valid   <= 8'd0;
            swapped <= 1'b0;
            c_addr  <= {ABITS{1'b0}};
            c_turn  <= {GBITS{1'b0}};
        end
    end

    wire [PE*64-1:0] c_data;
    mlo_param #(.WIDTH(PE*64), .DEPTH(WORDS), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_param (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready), .s_axis_tlast(params_last),
        .first(c_first), .ready(c_ready), .addr(c_addr), .en(valid[2] && front), .data(c_data)
    );

    // ---- The lanes
`ifdef FORMAL
    wire f_unused = &{1'b0, make4, make5, make6, make7, make8, lanes};
`endif
`ifndef FORMAL
    wire [PE*YBITS-1:0] y8;
    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : g_lane
            reg  signed [XBITS-1:0] x1;
            wire signed [UBITS-1:0] ur3;
            reg  signed [NBITS-1:0] n4;
            reg  signed [15:0]      g4;
            reg  signed [31:0]      b4, b5;
            wire signed [TBITS-1:0] t6;
            reg  signed [TBITS-1:0] t7;
            reg         [YBITS-1:0] y;
            wire signed [UBITS-1:0] n_wide = (ur3 >>> 2) >>> (5'd30 - k3);
            wire                    fits = t7[TBITS-1:YBITS-1] == {(TBITS - YBITS + 1){t7[TBITS-1]}};

            mlo_muladd #(.ABITS(CRBITS), .BBITS(XBITS), .YBITS(UBITS), .MULBITS(MULBITS)) u_normalise (
                .clk(clk), .en1(make2), .en2(make3), .a(cr1), .b(x1), .c(c2), .y(ur3));
            mlo_muladd #(.ABITS(NBITS), .BBITS(16), .YBITS(TBITS), .MULBITS(MULBITS)) u_scale (
                .clk(clk), .en1(make5), .en2(make6), .a(n4), .b(g4), .c({{(TBITS - 32){b5[31]}}, b5}), .y(t6));

            always @(posedge clk) begin
                if (lanes) begin
                    if (go) x1 <= x_data[XBITS*p +: XBITS];
                    if (make4) begin
                        n4 <= n_wide[NBITS-1:0];
                        g4 <= c_data[64*p +: 16];
                        b4 <= c_data[64*p+32 +: 32];
                    end
                    if (make5) b5 <= b4;
                    if (make7) t7 <= t6 >>> sh6;
                    if (make8) y  <= fits ? t7[YBITS-1:0] : {t7[TBITS-1], {(YBITS - 1){!t7[TBITS-1]}}};
                end
            end
            assign y8[YBITS*p +: YBITS] = y;
            wire unused_lane = &{1'b0, n_wide, c_data[64*p+16 +: 16]};
        end
    endgenerate
`else
    (* anyseq *) wire [PE*YBITS-1:0] y8;                // the proof is about control, for any values
`endif

    mlo_skid #(.WIDTH(PE*YBITS + 3)) u_skid (
        .clk(clk), .rst(rst), .s_tdata({user8, y8}), .s_tvalid(valid[8]), .s_tready(out_ready),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready)
    );

    // ---- Status: starved: neither busy nor blocked, so without a token, a root or parameters.
    reg  [2:0] stat_reg;
    wire       busy    = valid[1] && front;
    wire       waiting = !out_ready || (m_axis_tvalid && !m_axis_tready);
    always @(posedge clk) stat_reg <= rst ? 3'd0 : busy ? 3'b001 : waiting ? 3'b100 : 3'b010;
    assign stat = stat_reg;

    wire unused = &{1'b0, r_data, x_level, s_word, t_user};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    reg f_used;                                             // there was a c_first
    always @(posedge clk) f_used <= !rst && (f_used || c_first);
    // Stream contract and the use of the parameter memory. (Values and order: tests/verilog/layernorm.py.)
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(m_axis_tvalid && !m_axis_tready))
        assert (m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tuser));
    always @* if (f_past_valid) begin
        assert (!c_first || !f_used || c_ready);  // mlo_param's assumption: first comes only when ready
        assert (swapped || !f_used || c_ready);
        assert (!swapped || is_first);
        assert (c_addr < WORDS && c_turn < TURNS && t_beat < BEATS);
        assert ((stat & (stat - 3'd1)) == 3'd0);
    end
    // A bank is swapped by the first beat of a token alone, whatever norms it has: beats of a token are counted.
    reg  [7:0] f_at;
    always @(posedge clk) f_at <= rst ? 8'd0 : !(valid[2] && front) ? f_at : f_at == C / PE - 1 ? 8'd0 : f_at + 8'd1;
    always @* if (f_past_valid) begin
        assert (f_at == c_turn * WORDS + c_addr);
        assert (!c_first || f_at == 8'd0);
    end
    // Nothing is lost between stage 2 and the output while the front waits: beats that enter the back come out.
    reg  [3:0] f_back;
    always @(posedge clk) f_back <= rst ? 4'd0 : f_back + {3'd0, valid[2] && front} - {3'd0, m_axis_tvalid && m_axis_tready};
    always @* if (f_past_valid) begin
        assert (m_axis_tvalid || out_ready);
        assert (f_back == m_axis_tvalid + !out_ready + valid[3] + valid[4] + valid[5] + valid[6] + valid[7] + valid[8]);
    end
`endif
endmodule

`default_nettype wire
