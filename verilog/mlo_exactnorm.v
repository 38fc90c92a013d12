// SPDX-License-Identifier: MIT
// mlo_exactnorm: the integer norms of Deeploy's dialect, iLayerNorm (CENTER=1) and iRMSNorm (CENTER=0), of a token of C channels: every number exact
//
// Contract    mean = CENTER ? trunc(sum x / C) : 0;  s = floor(sum (x - mean)^2 / C) + 1;  r = floor(sqrt s);
//             y[c] = clip(floor((trunc((x[c] - mean) G[c] / r) + B[c]) / 2^SH)) to YBITS;  CENTER = 0: B is 0.
//             s_axis_c: mlo_param WIDTH PE*LANE, DEPTH C/PE, LANE = CENTER ? 64 : 32, lane p at LANE*p: [WBITS-1:0] G signed, [63:32] B signed.
//             s_axis_e: mlo_param WIDTH 32, DEPTH 1: [5:0] SH 0..31. Both banks move with a token whose tuser[0] is set (all its beats have it),
//             each where it is read; tokens before stay under the old bank, and leave even when the new bank is not loaded yet.
// Throughput  one token per max(C/PE, FINISH + 1) cycles, FINISH = 2*XBITS + 1, with CENTER = 1 3*XBITS + 4; a token that starts an iteration
//             costs 1 cycle more if its parameters are loaded. (XBITS below 4: with few lanes.)
// Latency     a token's first output beat FINISH + XBITS + YBITS + 15 + CENTER + clog2(PE) cycles after its last input beat was accepted, when
//             empty; 1 more for the first token of an iteration.
// Stall       m_axis_tready low stops the lanes (not the stages before them); the token buffer fills, then s_axis_tready goes low.
// Legal       1 <= C <= 32768, PE divides C, 2 <= XBITS <= 16, 2 <= YBITS <= 16, WBITS 2 .. 32, CENTER 0 or 1.
//
// Two divisions are one: trunc(p / r) is floor((p + (r - 1 if p < 0)) / r), B added to it is B r more in front of that, and floors of floors are
// one floor in any order. So y = clip(floor(k / r)), k = (p + B r + (r - 1 if p < 0)) >>> SH. What clips is k, to what makes quotients of YBITS:
// k + r 2^(YBITS-1) is 0 .. r 2^YBITS - 1, which mlo_quotient divides by r, a bit per stage, every cycle; its top bit is the other way round.
// r is mlo_moments' s, after mlo_isqrt; three tokens are at work, a FIFO holds their channels meanwhile.
`default_nettype none

module mlo_exactnorm #(
    parameter C         = 16,       // channels of a token
    parameter PE        = 4,        // channels per beat, divides C
    parameter XBITS     = 8,        // bits of x, 2 .. 16
    parameter YBITS     = 8,        // bits of y, 2 .. 16
    parameter WBITS     = 32,       // bits of G, 2 .. 32
    parameter CENTER    = 1,        // 1: iLayerNorm, 0: iRMSNorm
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
    localparam BEATS  = C / PE;
    localparam BBITS  = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam LP     = $clog2(PE);
    localparam LANE   = (CENTER != 0) ? 64 : 32;                        // bits of a lane's parameters
    localparam CBITS  = XBITS + ((CENTER != 0) ? 1 : 0);                // x - mean
    localparam VBITS  = XBITS + ((CENTER != 0) ? 33 : WBITS);           // p + B r + r - 1
    localparam UBITS  = XBITS + YBITS;                                  // below r 2^YBITS
    localparam OBITS  = ((VBITS > UBITS) ? VBITS : UBITS) + 2;          // k + r 2^(YBITS-1)
    localparam LAST   = ((CENTER != 0) ? 10 : 9) + YBITS;               // stages of the lanes
    localparam FINISH = (CENTER != 0) ? 3 * XBITS + 4 : 2 * XBITS + 1;
    // A channel waits BEATS + FINISH + XBITS + LP + 5 cycles in the FIFO; short tokens come every FINISH + 1, so at most three are there.
    localparam WAITS  = FINISH + XBITS + LP + 8;
    localparam DEPTH  = (BEATS < WAITS / 2) ? 3 * BEATS : BEATS + WAITS;
    localparam [31:0]      LAST_32 = BEATS - 1;
    localparam [BBITS-1:0] LAST_BEAT = LAST_32[BBITS-1:0];
    localparam [BBITS-1:0] ONE     = 1;

    generate
        if (C < 1 || C > 32768)         mlo_error_C_must_be_1_to_32768 u_c ();
        if (PE < 1 || C % PE != 0)      mlo_error_PE_must_divide_C u_pe ();
        if (XBITS < 2 || XBITS > 16)    mlo_error_XBITS_must_be_2_to_16 u_xbits ();
        if (YBITS < 2 || YBITS > 16)    mlo_error_YBITS_must_be_2_to_16 u_ybits ();
        if (WBITS < 2 || WBITS > 32)    mlo_error_WBITS_must_be_2_to_32 u_wbits ();
        if (CENTER != 0 && CENTER != 1) mlo_error_CENTER_must_be_0_or_1 u_center ();
    endgenerate

    // ---- Every beat goes into the sums and into the FIFO.
    wire                sum_ready, fifo_ready;
    wire [PE*XBITS-1:0] x_data;
    wire                x_valid, x_take;
    wire [2*XBITS-2:0]  v_s;
    wire [XBITS-1:0]    v_mean;
    wire [5:0]          v_sh;
    wire [2:0]          v_user;
    wire                v_valid, v_ready;
    wire [$clog2(DEPTH+1)-1:0] x_level;
    assign s_axis_tready = sum_ready && fifo_ready;

    mlo_fifo #(.WIDTH(PE*XBITS), .DEPTH(DEPTH)) u_fifo (
        .clk(clk), .rst(rst),
        .s_tdata(s_axis_tdata), .s_tvalid(s_axis_tvalid && sum_ready), .s_tready(fifo_ready),
        .m_tdata(x_data), .m_tvalid(x_valid), .m_tready(x_take), .level(x_level)
    );
    mlo_moments #(.C(C), .PE(PE), .XBITS(XBITS), .CENTER(CENTER), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT), .MULBITS(MULBITS)) u_moments (
        .clk(clk), .rst(rst), .params_last(params_last),
        .s_tdata(s_axis_tdata), .s_tuser(s_axis_tuser), .s_tvalid(s_axis_tvalid && fifo_ready), .s_tready(sum_ready),
        .s_axis_e_tdata(s_axis_e_tdata), .s_axis_e_tvalid(s_axis_e_tvalid), .s_axis_e_tready(s_axis_e_tready),
        .m_s(v_s), .m_mean(v_mean), .m_sh(v_sh), .m_tuser(v_user), .m_tvalid(v_valid), .m_tready(v_ready)
    );

    // ---- The root; what goes with it.
    wire [XBITS-1:0] r_data;
    wire             r_valid, r_take;
    reg  [XBITS-1:0] r_mean;
    reg  [5:0]       r_sh;
    reg  [2:0]       r_user;
    mlo_isqrt #(.RBITS(XBITS)) u_isqrt (
        .clk(clk), .rst(rst), .s_tdata({1'b0, v_s}), .s_tvalid(v_valid), .s_tready(v_ready),
        .m_tdata(r_data), .m_tvalid(r_valid), .m_tready(r_take)
    );
    always @(posedge clk)
        if (v_valid && v_ready) begin
            r_mean <= v_mean;
            r_sh   <= v_sh;
            r_user <= v_user;
        end

    // ---- Stage 0: the token in work. The lanes take its channels from the FIFO; its constants go with the beats.
    reg              t_valid;
    reg  [XBITS-1:0] t_r, t_mean;
    reg  [5:0]       t_sh;
    reg  [2:0]       t_user;
    reg  [BBITS-1:0] t_beat;
    wire             front, back;                       // enables: stages 1-2, stages 3-LAST
    wire             go     = t_valid && x_valid && front;
    wire             t_done = go && t_beat == LAST_BEAT;
    assign x_take = t_valid && front;
    assign r_take = !t_valid || t_done;
    always @(posedge clk) begin
        if (r_valid && r_take) begin
            t_r    <= r_data;
            t_mean <= r_mean;
            t_sh   <= r_sh;
            t_user <= r_user;
        end
        t_valid <= (r_valid && r_take) || (t_valid && !t_done);
        if (go) t_beat <= (t_beat == LAST_BEAT) ? {BBITS{1'b0}} : t_beat + ONE;
        if (rst) begin
            t_valid <= 1'b0;
            t_beat  <= {BBITS{1'b0}};
        end
    end

    // ---- Control of the lanes. Stages: 1 x, 2 x - mean, 3 the memory's, 4 G, B, 5 products, 6 sums, with CENTER 7 both together; then k; k moved
    // up; clipped; and YBITS of the quotient. G and B are read when a beat leaves stage 2; a beat that must wait for them there does not hold
    // back those before it.
    localparam SHIFTS = (CENTER != 0) ? 8 : 7;          // k is made
    localparam MOVES  = SHIFTS + 1, CLIPS = SHIFTS + 2;
    reg  [LAST:1]        valid;
    reg  [3*LAST+2:3]    user;                          // of stage n at 3*n
    reg  [XBITS*CLIPS+XBITS-1:XBITS] r;                 // of stage n at XBITS*n
    reg  [6*SHIFTS-1:6]  sh;                            // of stage n at 6*n
    reg  [XBITS-1:0]     mean1;
    reg  [BBITS-1:0]     c_addr;                        // word of the beat in stage 2
    reg                  swapped;
    wire                 c_ready, out_ready;
    wire                 is_first = valid[2] && user[6] && c_addr == {BBITS{1'b0}};
    wire                 c_first  = is_first && !swapped, c_wait = valid[2] && (!c_ready || c_first);
    assign back  = out_ready || !valid[LAST];
    assign front = back && !c_wait;
    // A stage's numbers move only when a beat enters it.
    wire                 make2 = front && valid[1], make3 = front && valid[2];
    always @(posedge clk) begin
        swapped <= is_first && !front;
        if (go) begin
            user[5:3]              <= t_user;
            r[XBITS +: XBITS]      <= t_r;
            sh[11:6]               <= t_sh;
            mean1                  <= t_mean;
        end
        if (make2) begin
            user[8:6]              <= user[5:3];
            r[2*XBITS +: XBITS]    <= r[XBITS +: XBITS];
            sh[17:12]              <= sh[11:6];
        end
        if (front) begin
            valid[2:1] <= {valid[1], go};
            if (valid[2]) c_addr <= (c_addr == LAST_BEAT) ? {BBITS{1'b0}} : c_addr + ONE;
        end
        if (back && {valid[LAST:3], make3} != {(LAST - 1){1'b0}}) begin
            valid[LAST:3]                           <= {valid[LAST-1:3], make3};
            user[3*LAST+2:9]                        <= user[3*LAST-1:6];
            r[XBITS*CLIPS+XBITS-1:3*XBITS]          <= r[XBITS*CLIPS-1:2*XBITS];
            sh[6*SHIFTS-1:18]                       <= sh[6*SHIFTS-7:12];
        end
        if (rst) begin
            valid   <= {LAST{1'b0}};
            swapped <= 1'b0;
            c_addr  <= {BBITS{1'b0}};
        end
    end

    wire [PE*LANE-1:0] c_data;
    mlo_param #(.WIDTH(PE*LANE), .DEPTH(BEATS), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_param (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready), .s_axis_tlast(params_last),
        .first(c_first), .ready(c_ready), .addr(c_addr), .en(valid[2] && front), .data(c_data)
    );

    // ---- The lanes
`ifndef FORMAL
    wire [PE*UBITS-1:0]    u;
    wire [PE*YBITS-1:0]    q, y;
    wire                   moves = back && valid[LAST-1:3] != {(LAST - 3){1'b0}};      // stages 4 on
    wire signed [XBITS:0]  r4 = {1'b0, r[4*XBITS +: XBITS]};
    wire        [XBITS-1:0] r_move = r[SHIFTS*XBITS +: XBITS], r_clip = r[MOVES*XBITS +: XBITS];
    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : g_lane
            reg  signed [XBITS-1:0] x1;
            reg  signed [CBITS-1:0] c2, c3, c4;
            reg  signed [WBITS-1:0] w4;
            reg  signed [VBITS-1:0] more;               // r - 1 of a product below 0
            wire signed [VBITS-1:0] product;
            wire signed [VBITS-1:0] v;                  // in front of the stage that makes k
            reg  signed [VBITS-1:0] k;
            reg  signed [OBITS-1:0] o;
            reg         [UBITS-1:0] clipped;
            wire                    over = o[OBITS-2:YBITS] >= {{(OBITS - 1 - UBITS){1'b0}}, r_clip};

            mlo_muladd #(.ABITS(WBITS), .BBITS(CBITS), .YBITS(VBITS), .MULBITS(MULBITS)) u_product (
                .clk(clk), .en1(moves), .en2(moves), .a(w4), .b(c4), .c(more), .y(product));

            always @(posedge clk) begin
                if (go) x1 <= x_data[XBITS*p +: XBITS];
                if (make3) c3 <= c2;
                if (moves) begin
                    c4      <= c3;
                    w4      <= c_data[LANE*p +: WBITS];
                    more    <= (w4[WBITS-1] != c4[CBITS-1]) ? {{(VBITS - XBITS){1'b0}}, r[4*XBITS +: XBITS]} - {{(VBITS - 1){1'b0}}, 1'b1} : {VBITS{1'b0}};
                    k       <= v >>> sh[6*(SHIFTS-1) +: 6];
                    o       <= {{(OBITS - VBITS){k[VBITS-1]}}, k} + {{(OBITS - UBITS + 1){1'b0}}, r_move, {(YBITS - 1){1'b0}}};
                    clipped <= o[OBITS-1] ? {UBITS{1'b0}} : over ? {r_clip - {{(XBITS - 1){1'b0}}, 1'b1}, {YBITS{1'b1}}} : o[UBITS-1:0];
                end
            end
            if (CENTER != 0) begin : g_center
                reg  signed [31:0]      b4;
                wire signed [VBITS-1:0] shift;          // B r
                reg  signed [VBITS-1:0] sum;
                mlo_muladd #(.ABITS(32), .BBITS(XBITS + 1), .YBITS(VBITS), .MULBITS(MULBITS)) u_shift (
                    .clk(clk), .en1(moves), .en2(moves), .a(b4), .b(r4), .c({VBITS{1'b0}}), .y(shift));
                always @(posedge clk) begin
                    if (make2) c2 <= {x1[XBITS-1], x1} - {mean1[XBITS-1], mean1};
                    if (moves) begin
                        b4  <= c_data[LANE*p+32 +: 32];
                        sum <= product + shift;
                    end
                end
                assign v = sum;
            end else begin : g_zero
                always @(posedge clk)
                    if (make2) c2 <= x1;
                assign v = product;
            end
            assign u[UBITS*p +: UBITS] = clipped;
            assign y[YBITS*p +: YBITS] = {!q[YBITS*p+YBITS-1], q[YBITS*p +: YBITS-1]};
            if (LANE != WBITS) begin : g_unused
                wire unused_lane = &{1'b0, c_data[LANE*p +: LANE]};
            end
        end
    endgenerate
    mlo_quotient #(.LANES(PE), .DBITS(XBITS), .QBITS(YBITS)) u_quotient (
        .clk(clk), .en(moves), .u(u), .d(r[CLIPS*XBITS +: XBITS]), .q(q));
    wire unused_lanes = &{1'b0, r4, mean1};
`else
    (* anyseq *) wire [PE*YBITS-1:0] y;                 // the proof is about control, for any values
    wire f_unused = &{1'b0, make2, r, sh, mean1, c_data, x_data};
`endif

    mlo_skid #(.WIDTH(PE*YBITS + 3)) u_skid (
        .clk(clk), .rst(rst), .s_tdata({user[3*LAST +: 3], y}), .s_tvalid(valid[LAST]), .s_tready(out_ready),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready)
    );

    // ---- Status: starved: neither busy nor blocked, so without a token, a root or parameters.
    reg  [2:0] stat_reg;
    wire       busy    = valid[1] && front;
    wire       waiting = !out_ready || (m_axis_tvalid && !m_axis_tready);
    always @(posedge clk) stat_reg <= rst ? 3'd0 : busy ? 3'b001 : waiting ? 3'b100 : 3'b010;
    assign stat = stat_reg;

    wire unused = &{1'b0, x_level};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    reg f_used;                                             // there was a c_first
    always @(posedge clk) f_used <= !rst && (f_used || c_first);
    // Stream contract and the use of the parameter memory. (Values and order: tests/verilog/exactnorm.py.)
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(m_axis_tvalid && !m_axis_tready))
        assert (m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tuser));
    always @* if (f_past_valid) begin
        assert (!c_first || !f_used || c_ready);  // mlo_param's assumption: first comes only when ready
        assert (swapped || !f_used || c_ready);
        assert (!swapped || is_first);
        assert (c_addr < BEATS && t_beat < BEATS);
        assert ((stat & (stat - 3'd1)) == 3'd0);
    end
    // Nothing is lost between stage 2 and the output while the front waits: beats that enter the back come out.
    reg     [7:0] f_back, f_there;
    integer       f;
    always @* begin
        f_there = m_axis_tvalid + !out_ready;
        for (f = 3; f <= LAST; f = f + 1) f_there = f_there + valid[f];
    end
    always @(posedge clk) f_back <= rst ? 8'd0 : f_back + {7'd0, make3} - {7'd0, m_axis_tvalid && m_axis_tready};
    always @* if (f_past_valid) begin
        assert (m_axis_tvalid || out_ready);
        assert (f_back == f_there);
    end
`endif
endmodule

`default_nettype wire
