// SPDX-License-Identifier: MIT
// mlo_mul: y = clip((a*b*M + 2^(S-1)) >>> S), the product of two streams, channel by channel
//
// Contract    beat i of a meets beat i of b; sideband from a, that of b is ignored. 0 <= M < 2^15, 1 <= S <= 62.
//             s_axis_c: mlo_param WIDTH 32, DEPTH 1: [15:0] M, [21:16] S; SHIFT = 1: M is 2^14, whatever its bits say, and a*b is
//             the only product. The bank moves on the first beat of a token with tuser[0] set; beats before it stay under the
//             old bank, and leave even when the new bank is not loaded yet.
// Throughput  one beat per cycle; a token that starts an iteration costs 1 cycle more if its parameters are loaded.
// Latency     9 cycles from the acceptance of the later of the two beats to m_axis_tvalid, when empty (10 at an iteration's start).
// Stall       m_axis_tready low stops everything but the input and output registers; a waits for b and b for a.
// Legal       PE divides C, 2 <= ABITS, BBITS, YBITS <= 16, SHIFT 0 or 1.
`default_nettype none

module mlo_mul #(
    parameter C         = 16,       // channels of a token
    parameter PE        = 4,        // channels per beat, divides C
    parameter ABITS     = 16,       // bits of a, 2 .. 16
    parameter BBITS     = 16,       // bits of b, 2 .. 16
    parameter YBITS     = 8,        // bits of y, 2 .. 16
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
    localparam PB    = ABITS + BBITS;                       // bits of a*b

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

    // ---- Control. Stages: 0 both beats there, 1 operands, 2 to 7 mlo_requantize, whose first register is the product's.
    // M and S are read with the step from 0 to 1; a beat that must wait for them there does not hold back those before it.
    reg  [7:1]    valid;
    reg  [20:0]   user;                                     // of stages 1 .. 7, that of stage 1 lowest
    wire          out_ready;
    assign en = out_ready || !valid[7];
    always @(posedge clk) begin
        if (en && {valid, take} != 8'd0) begin
            valid <= {valid[6:1], take};
            user  <= {user[17:0], user0};
        end
        if (rst)
            valid <= 7'd0;
    end

    wire [31:0] c_data;
    mlo_param #(.WIDTH(32), .DEPTH(1), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_param (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready), .s_axis_tlast(params_last),
        .first(c_first), .ready(c_ready), .addr(1'b0), .en(take), .data(c_data)
    );

    // ---- The lanes
    wire [PE*YBITS-1:0] y7;
    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : g_lane
            reg  signed [ABITS-1:0] a1;
            reg  signed [BBITS-1:0] b1;
            always @(posedge clk)
                if (take) begin
                    a1 <= a0[ABITS*p +: ABITS];
                    b1 <= b0[BBITS*p +: BBITS];
                end
            wire signed [PB-1:0] product = a1 * b1;         // registered where mlo_requantize begins
            wire                 unused_valid;              // the same in each lane: valid stands for all
            mlo_requantize #(.ABITS(PB), .MBITS(16), .YBITS(YBITS), .SHIFT(SHIFT)) u_requantize (
                .clk(clk), .rst(rst), .en(en), .in_valid(valid[1]), .in_acc(product), .in_m(c_data[15:0]), .in_s(c_data[21:16]),
                .out_valid(unused_valid), .out_y(y7[YBITS*p +: YBITS]));
            wire unused_lane = &{1'b0, unused_valid};
        end
    endgenerate

    mlo_skid #(.WIDTH(PE*YBITS + 3)) u_skid_y (
        .clk(clk), .rst(rst), .s_tdata({user[20:18], y7}), .s_tvalid(valid[7]), .s_tready(out_ready),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready)
    );

    reg  [2:0] stat_reg;
    wire       waiting = !out_ready || (m_axis_tvalid && !m_axis_tready);
    always @(posedge clk) stat_reg <= rst ? 3'd0 : take ? 3'b001 : waiting ? 3'b100 : 3'b010;
    assign stat = stat_reg;

    wire unused = &{1'b0, s_axis_b_tuser, a_valid, b_valid, is_first, c_data[31:22]};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // Beats are neither lost nor made: a's (and b's) accepted beats minus the output's are what is inside.
    wire [3:0] f_inside = m_axis_tvalid + !out_ready + valid[1] + valid[2] + valid[3] + valid[4] + valid[5] + valid[6] + valid[7];
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

    // Lane 0 against the plain formula, computed wide: from the operands to the result, all stages at once. So it is for the
    // bounded proof, in which mlo_requantize is whole; of its stages, one by one, that module has its own proof. F_VALUE: 1 + the
    // lowest of the three bits that M may have set then, and S <= 15, as the solver takes long over any numbers; 0: nothing of this.
    parameter F_VALUE = 0;
    generate
        if (F_VALUE != 0) begin : f_value
            localparam FB = 32;
            localparam [15:0] F_BITS = 7 << (F_VALUE - 1);
            always @* assume ((s_axis_c_tdata[15:0] & ~F_BITS) == 16'd0 && s_axis_c_tdata[21:20] == 2'd0);
            wire signed [FB-1:0] f_one = 1;
            wire signed [16:0]   f_m   = (SHIFT != 0) ? 17'sd16384 : {c_data[15], c_data[15:0]};
            wire signed [FB-1:0] f_sum = g_lane[0].a1 * g_lane[0].b1 * f_m;
            wire signed [FB-1:0] f_r   = (f_sum + (f_one <<< (c_data[21:16] - 6'd1))) >>> c_data[21:16];
            wire signed [FB-1:0] f_hi  = (f_one <<< (YBITS - 1)) - f_one;
            wire signed [FB-1:0] f_y   = f_r > f_hi ? f_hi : f_r < ~f_hi ? ~f_hi : f_r;
            wire                 f_ok  = c_data[21:16] != 6'd0;     // S is legal
            reg  [6:2]           f_ok_line = 5'd0;
            reg  [5*YBITS-1:0]   f_line;
            reg                  f_ok7 = 1'b0;
            reg  [YBITS-1:0]     f_y7;
            always @(posedge clk) if (en) begin
                f_ok_line <= {f_ok_line[5:2], f_ok && valid[1]};
                f_line    <= {f_line, f_y[YBITS-1:0]};
                {f_ok7, f_y7} <= {f_ok_line[6], f_line[4*YBITS +: YBITS]};
            end
            always @* if (f_past_valid && f_ok7 && valid[7]) assert (y7[YBITS-1:0] == f_y7);
        end
    endgenerate
    always @* cover (f_past_valid && m_axis_tvalid && m_axis_tuser[0] && valid == 7'd127);
`endif
endmodule

`default_nettype wire
