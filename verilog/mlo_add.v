// SPDX-License-Identifier: MIT
// mlo_add: y = clip((a*MA + b*MB + 2^(S-1)) >>> S), the sum of two streams of different scale
//
// Contract    beat i of a meets beat i of b; sideband from a, that of b is ignored. 0 <= MA, MB < 2^15, 1 <= S <= 62.
//             s_axis_c: mlo_param WIDTH 64, DEPTH 1: [15:0] MA, [31:16] MB, [37:32] S; SHIFT = 1: MA and MB are powers of two,
//             [3:0] log2 MA, [19:16] log2 MB (0 .. 14), and there is no multiplier. The bank moves on the first beat of a token
//             with tuser[0] set; beats before it stay under the old bank, and leave even when the new bank is not loaded yet.
// Throughput  one beat per cycle; a token that starts an iteration costs 1 cycle more if its parameters are loaded.
// Latency     7 cycles from the acceptance of the later of the two beats to m_axis_tvalid, when empty (8 at an iteration's start).
// Stall       m_axis_tready low stops everything but the input and output registers; a waits for b and b for a.
// Legal       PE divides C, 2 <= ABITS, BBITS, YBITS <= 16, SHIFT 0 or 1.
`default_nettype none

module mlo_add #(
    parameter C         = 16,       // channels of a token
    parameter PE        = 4,        // channels per beat, divides C
    parameter ABITS     = 16,       // bits of a, 2 .. 16
    parameter BBITS     = 16,       // bits of b, 2 .. 16
    parameter YBITS     = 16,       // bits of y, 2 .. 16
    parameter SHIFT     = 0,        // 1: scales are powers of two
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128       // bits of the parameter stream
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    input  wire [PE*ABITS-1:0]  s_axis_a_tdata,
    input  wire                 s_axis_a_tvalid,
    output wire                 s_axis_a_tready,
    input  wire [2:0]           s_axis_a_tuser,
    input  wire [PE*BBITS-1:0]  s_axis_b_tdata,
    input  wire                 s_axis_b_tvalid,
    output wire                 s_axis_b_tready,
    input  wire [2:0]           s_axis_b_tuser,
    input  wire [AXI_WIDTH-1:0] s_axis_c_tdata,
    input  wire                 s_axis_c_tvalid,
    output wire                 s_axis_c_tready,
    output wire [PE*YBITS-1:0]  m_axis_tdata,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire [2:0]           m_axis_tuser,
    output wire [2:0]           stat        // [0] a beat enters the multipliers, else [2] blocked: one waits to leave, else [1] starved
);
    localparam PA    = ABITS + 16;                          // bits of a*MA
    localparam PB    = BBITS + 16;
    localparam SB    = ((PA > PB) ? PA : PB) + 1;           // of the sum

    generate
        if (C < 1 || PE < 1 || C % PE != 0) mlo_error_PE_must_divide_C u_pe ();
        if (ABITS < 2 || ABITS > 16)        mlo_error_ABITS_must_be_2_to_16 u_abits ();
        if (BBITS < 2 || BBITS > 16)        mlo_error_BBITS_must_be_2_to_16 u_bbits ();
        if (YBITS < 2 || YBITS > 16)        mlo_error_YBITS_must_be_2_to_16 u_ybits ();
        if (SHIFT != 0 && SHIFT != 1)       mlo_error_SHIFT_must_be_0_or_1 u_shift ();
    endgenerate

    // ---- The beats of both, together
    wire [PE*ABITS-1:0] a0;
    wire [PE*BBITS-1:0] b0;
    wire [2:0]          user0;
    wire                a_valid, b_valid, is_first, c_first, take, en, c_ready;
    mlo_pair #(.AWIDTH(PE*ABITS), .BWIDTH(PE*BBITS), .BEATS(C / PE)) u_pair (
        .clk(clk), .rst(rst),
        .s_axis_a_tdata(s_axis_a_tdata), .s_axis_a_tvalid(s_axis_a_tvalid), .s_axis_a_tready(s_axis_a_tready),
        .s_axis_a_tuser(s_axis_a_tuser),
        .s_axis_b_tdata(s_axis_b_tdata), .s_axis_b_tvalid(s_axis_b_tvalid), .s_axis_b_tready(s_axis_b_tready),
        .en(en), .c_ready(c_ready), .c_first(c_first), .is_first(is_first), .take(take),
        .a_valid(a_valid), .b_valid(b_valid), .a(a0), .b(b0), .user(user0)
    );

    // ---- Control. Stages: 0 both beats there, 1 operands, 2 products, 3 sum, 4 shifted by S-1, 5 rounded and clipped.
    // The constants are read with the step from 0 to 1; a beat that must wait for them there does not hold back those before it.
    reg  [5:1]    valid;
    reg  [14:0]   user;                                     // of stages 1 .. 5, that of stage 1 lowest
    wire          out_ready;
    assign en = out_ready || !valid[5];
    wire          moves    = en && {valid, take} != 6'd0;     // each stage, only when a beat enters it (see the lanes)
    always @(posedge clk) begin
        if (moves) begin
            valid <= {valid[4:1], take};
            user  <= {user[11:0], user0};
        end
        if (rst)
            valid <= 5'd0;
    end

    wire [63:0] c_data;
    mlo_param #(.WIDTH(64), .DEPTH(1), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_param (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready), .s_axis_tlast(params_last),
        .first(c_first), .ready(c_ready), .addr(1'b0), .en(take), .data(c_data)
    );
    wire signed [15:0] ma1 = c_data[15:0];
    wire signed [15:0] mb1 = c_data[31:16];
    reg         [5:0]  sh2, sh3;                            // S - 1
    always @(posedge clk)
        if (moves) begin
            if (valid[1]) sh2 <= c_data[37:32] - 6'd1;
            if (valid[2]) sh3 <= sh2;
        end

    // ---- The lanes. floor((t + 2^(S-1)) / 2^S) = floor((floor(t / 2^(S-1)) + 1) / 2): no addition wider than the sum,
    // and the last one changes a value of YBITS bits only.
    wire [PE*YBITS-1:0] y5;
    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : g_lane
            reg  signed [ABITS-1:0] a1;
            reg  signed [BBITS-1:0] b1;
            reg  signed [PA-1:0]    pa2;
            reg  signed [PB-1:0]    pb2;
            reg  signed [SB-1:0]    t3, t4;
            wire signed [PA-1:0]    pa1;
            wire signed [PB-1:0]    pb1;
            if (SHIFT != 0) begin : g_shift
                assign pa1 = {{16{a1[ABITS-1]}}, a1} << c_data[3:0];
                assign pb1 = {{16{b1[BBITS-1]}}, b1} << c_data[19:16];
            end else begin : g_multiply
                assign pa1 = a1 * ma1;
                assign pb1 = b1 * mb1;
            end
            reg         [YBITS-1:0] y;
            wire        [YBITS-1:0] largest = {1'b0, {(YBITS - 1){1'b1}}};
            wire                    fits    = t4[SB-1:YBITS] == {(SB - YBITS){t4[SB-1]}};
            wire                    up      = t4[0] && t4[YBITS:1] != largest;
            always @(posedge clk)
                if (moves) begin
                    if (take) begin
                        a1 <= a0[ABITS*p +: ABITS];
                        b1 <= b0[BBITS*p +: BBITS];
                    end
                    if (valid[1]) begin
                        pa2 <= pa1;
                        pb2 <= pb1;
                    end
                    if (valid[2]) t3 <= {{(SB - PA){pa2[PA-1]}}, pa2} + {{(SB - PB){pb2[PB-1]}}, pb2};
                    if (valid[3]) t4 <= t3 >>> sh3;
                    if (valid[4]) y  <= fits ? t4[YBITS:1] + {{(YBITS - 1){1'b0}}, up} : largest ^ {YBITS{t4[SB-1]}};
                end
            assign y5[YBITS*p +: YBITS] = y;
        end
    endgenerate

    mlo_skid #(.WIDTH(PE*YBITS + 3)) u_skid_y (
        .clk(clk), .rst(rst), .s_tdata({user[14:12], y5}), .s_tvalid(valid[5]), .s_tready(out_ready),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready)
    );

    reg  [2:0] stat_reg;
    wire       waiting = !out_ready || (m_axis_tvalid && !m_axis_tready);
    always @(posedge clk) stat_reg <= rst ? 3'd0 : take ? 3'b001 : waiting ? 3'b100 : 3'b010;
    assign stat = stat_reg;

    wire unused = &{1'b0, s_axis_b_tuser, a_valid, b_valid, is_first, c_data[63:38], ma1, mb1};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // Stream contract, and beats are neither lost nor made: a's (and b's) accepted beats minus the output's are what is inside.
    wire [3:0] f_inside = m_axis_tvalid + !out_ready + valid[1] + valid[2] + valid[3] + valid[4] + valid[5];
    reg  [3:0] f_a, f_b;                                    // accepted minus delivered
    wire       f_out = m_axis_tvalid && m_axis_tready;
    reg        f_used;                                      // there was a c_first
    always @(posedge clk) begin
        f_used <= !rst && (f_used || c_first);
        f_a <= rst ? 4'd0 : f_a + {3'd0, s_axis_a_tvalid && s_axis_a_tready} - {3'd0, f_out};
        f_b <= rst ? 4'd0 : f_b + {3'd0, s_axis_b_tvalid && s_axis_b_tready} - {3'd0, f_out};
    end
    always @* if (f_past_valid) begin
        assert (f_a == f_inside + a_valid + !s_axis_a_tready);
        assert (f_b == f_inside + b_valid + !s_axis_b_tready);
        assert (a_valid || s_axis_a_tready);
        assert (b_valid || s_axis_b_tready);
        assert (m_axis_tvalid || out_ready);
        assert (!c_first || !f_used || c_ready);  // mlo_param's assumption
        assert ((is_first && !c_first) || !f_used || c_ready);
    end
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(m_axis_tvalid && !m_axis_tready))
        assert (m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tuser));

    // Lane 0 against the plain formula, computed wide, and the sideband: stage by stage. f_ok: S was legal.
    localparam FB = 72;
    function [YBITS-1:0] f_round;
        input signed [FB-1:0] t;
        input        [5:0]    sh;                           // S - 1
        reg   signed [FB-1:0] one, r;
        begin
            one = 1;
            r   = (t + (one <<< sh)) >>> (sh + 7'd1);
            if (r > (one <<< (YBITS - 1)) - one) r = (one <<< (YBITS - 1)) - one;
            if (r < -(one <<< (YBITS - 1)))      r = -(one <<< (YBITS - 1));
            f_round = r[YBITS-1:0];
        end
    endfunction
    reg                  f_ok2 = 1'b0, f_ok3 = 1'b0, f_ok4 = 1'b0, f_ok5 = 1'b0;
    reg  [YBITS-1:0]     f_y4, f_y5;
    reg  signed [SB-1:0] f_t2, f_t3;
    wire signed [FB-1:0] f_wide3 = g_lane[0].t3;
    wire signed [16:0]   f_ma = (SHIFT != 0) ? 17'sd1 << c_data[3:0] : {ma1[15], ma1};
    wire signed [16:0]   f_mb = (SHIFT != 0) ? 17'sd1 << c_data[19:16] : {mb1[15], mb1};
    wire                 f_legal = SHIFT == 0 || (c_data[3:0] < 4'd15 && c_data[19:16] < 4'd15);
    wire signed [SB-1:0] f_t1 = g_lane[0].a1 * f_ma + g_lane[0].b1 * f_mb;
    always @(posedge clk) if (en) begin
        if (valid[1]) {f_ok2, f_t2} <= {f_legal, f_t1};
        if (valid[2]) {f_ok3, f_t3} <= {f_ok2, f_t2};
        if (valid[3]) {f_ok4, f_y4} <= {f_ok3 && sh3 < 6'd62, f_round(f_wide3, sh3)};
        if (valid[4]) {f_ok5, f_y5} <= {f_ok4, f_y4};
    end
    always @* if (f_past_valid) begin
        if (f_ok2) assert ($signed(g_lane[0].pa2) + $signed(g_lane[0].pb2) == f_t2);
        if (f_ok3) assert (g_lane[0].t3 == f_t3);
        if (f_ok4) assert ((g_lane[0].fits ? g_lane[0].t4[YBITS:1] + {{(YBITS - 1){1'b0}}, g_lane[0].up}
                                           : g_lane[0].largest ^ {YBITS{g_lane[0].t4[SB-1]}}) == f_y4);
        if (f_ok5) assert (g_lane[0].y == f_y5);
    end
    always @* cover (f_past_valid && m_axis_tvalid && m_axis_tuser[0] && valid == 5'd31);
`endif
endmodule

`default_nettype wire
