// SPDX-License-Identifier: MIT
// mlo_variance: first stage of mlo_layernorm: the sums of a norm's channels and N^2 times their variance
//
// Contract    S1 = CENTER ? sum x : 0;  m_v = V = N * sum(x^2) - S1^2 + EPS;  m_s1 = S1;  m_n = N;  m_sh, m_tuser travel with the token.
//             N = C channels; with FRAME = T > 1 those of a frame of up to T tokens of C/T each, which ends with tuser[1] of its last one.
//             EPS and SH come from s_axis_e (mlo_param WIDTH 64, DEPTH 1: [47:0] EPS >= 1, [53:48] SH); the bank moves with tuser[0].
//             A token is GROUPS norms of C channels one after the other; all its beats have its tuser, and the first of its norms moves the bank.
// Throughput  one beat per cycle; one norm per max(N/PE, FINISH + 1) cycles.
// Latency     last beat accepted in cycle t: m_tvalid from cycle t + 3 + clog2(PE) + FINISH, FINISH = CENTER ? 10 : 7.
// Stall       while V waits for m_tready the next norm's sums are still formed; then s_tready goes low.
// Legal       1 <= C <= 32768, FRAME divides C, PE divides C/FRAME, 1 <= GROUPS (1 of a frame), 2 <= XBITS <= 16, CENTER 0 or 1 (checked by mlo_layernorm).
`default_nettype none

module mlo_variance #(
    parameter C         = 16,       // channels of a norm
    parameter GROUPS    = 1,        // norms of a token
    parameter FRAME     = 1,        // tokens of a norm, at most
    parameter PE        = 4,        // channels per beat
    parameter XBITS     = 16,       // bits of a channel
    parameter CENTER    = 1,        // 1: LayerNorm, 0: RMSNorm
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128,      // bits of the parameter stream
    // derived, do not set: bits of S1
    parameter S1BITS    = XBITS + $clog2(C)
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    input  wire [PE*XBITS-1:0]  s_tdata,
    input  wire [2:0]           s_tuser,
    input  wire                 s_tvalid,
    output wire                 s_tready,
    input  wire [AXI_WIDTH-1:0] s_axis_e_tdata,
    input  wire                 s_axis_e_tvalid,
    output wire                 s_axis_e_tready,
    output wire [61:0]          m_v,
    output wire [S1BITS-1:0]    m_s1,
    output wire [15:0]          m_n,            // channels of the norm
    output wire [5:0]           m_sh,
    output wire [2:0]           m_tuser,
    output wire                 m_tvalid,
    input  wire                 m_tready
);
    localparam LP     = $clog2(PE);
    localparam BEATS  = C / FRAME / PE;             // of a token, or of its norm
    localparam BBITS  = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam [31:0] C_32 = C, PE_32 = PE;
    localparam QBITS  = 2 * XBITS;                  // a square
    localparam S2BITS = QBITS + $clog2(C);          // the sum of squares
    localparam [31:0]      LAST_32 = BEATS - 1;
    localparam [BBITS-1:0] LAST    = LAST_32[BBITS-1:0];
    localparam [BBITS-1:0] ONE     = 1;
    localparam GBITS  = (GROUPS > 1) ? $clog2(GROUPS) : 1;
    localparam [31:0]      GROUP_32   = GROUPS - 1;
    localparam [GBITS-1:0] GROUP_LAST = GROUP_32[GBITS-1:0];
    localparam [GBITS-1:0] GROUP_ONE  = 1;

    // ---- Sums: input register, squares, two adder trees, accumulators. One enable: it stops when a finished sum cannot leave.
    wire                  en;
    reg  [PE*XBITS-1:0]   x0, x1;
    reg  [PE*QBITS-1:0]   q1;
    reg  [LP+1:0]         valid;                    // of: input register, squares, tree levels
    wire                  moves = en && {valid, s_tvalid} != {(LP + 3){1'b0}};      // empty, it stands still
    reg  [3*(LP+2)-1:0]   user;
    always @(posedge clk) begin
        if (moves) begin
            x0    <= s_tdata;
            x1    <= x0;
            user  <= {user[3*LP+2:0], s_tuser};
            valid <= {valid[LP:0], s_tvalid};
        end
        if (rst) valid <= {(LP + 2){1'b0}};
    end
    assign s_tready = en;

    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : g_square
            wire signed [XBITS-1:0] x = x0[XBITS*p +: XBITS];
            always @(posedge clk)
                if (moves) q1[QBITS*p +: QBITS] <= x * x;
        end
    endgenerate

    wire [XBITS+LP-1:0] x_sum;
    wire [QBITS+LP-1:0] q_sum;
    mlo_addtree #(.LANES(PE), .BITS(XBITS)) u_sum   (.clk(clk), .en(moves), .lanes(x1), .sum(x_sum));
    mlo_addtree #(.LANES(PE), .BITS(QBITS)) u_sumsq (.clk(clk), .en(moves), .lanes(q1), .sum(q_sum));

    reg  [BBITS-1:0]  beat;
    reg  [S1BITS-1:0] acc1;
    reg  [S2BITS-1:0] acc2;
    wire [2:0]        here  = user[3*(LP+1) +: 3];
    wire              fresh, opened, whole;         // a norm's first beat; its first token begins an iteration; it is all of it
    wire [15:0]       total;                        // channels so far
    wire              last  = valid[LP+1] && beat == LAST && whole;
    wire [31:0]       x_ext = {{(33 - XBITS - LP){x_sum[XBITS+LP-1]}}, x_sum[XBITS+LP-2:0]};
    wire [47:0]       q_ext = {{(48 - QBITS - LP){1'b0}}, q_sum};
    wire [S1BITS-1:0] next1 = (fresh ? {S1BITS{1'b0}} : acc1) + x_ext[S1BITS-1:0];
    wire [S2BITS-1:0] next2 = (fresh ? {S2BITS{1'b0}} : acc2) + q_ext[S2BITS-1:0];
    always @(posedge clk) begin
        if (en && valid[LP+1]) begin
            beat <= (beat == LAST) ? {BBITS{1'b0}} : beat + ONE;
            acc1 <= next1;
            acc2 <= next2;
        end
        if (rst) beat <= {BBITS{1'b0}};
    end
    generate
        if (FRAME == 1) begin : g_token
            assign fresh  = beat == {BBITS{1'b0}};
            assign opened = here[0];
            assign whole  = 1'b1;
            assign total  = C_32[15:0];
        end else begin : g_frame
            reg         begun, opening;             // a frame is under way; it begins an iteration
            reg  [15:0] counted;
            assign fresh  = !begun;
            assign opened = begun ? opening : here[0];
            assign whole  = here[1];
            assign total  = (begun ? counted : 16'd0) + PE_32[15:0];
            always @(posedge clk) begin
                if (en && valid[LP+1]) begin
                    begun   <= !last;
                    opening <= opened;
                    counted <= total;
                end
                if (rst) begun <= 1'b0;
            end
        end
    endgenerate

    // ---- A finished pair of sums
    reg               sum_valid;
    reg  [S1BITS-1:0] sum1;
    reg  [S2BITS-1:0] sum2;
    reg  [2:0]        sum_user;
    reg  [15:0]       sum_n;
    wire              take;                         // by the second half
    reg  [GBITS-1:0]  group;                        // of its token, the norm that is taken next
    wire              opens = take && sum_user[0] && group == {GBITS{1'b0}};        // the first norm of an iteration
    assign en = !(last && sum_valid);
    always @(posedge clk) begin
        if (last && !sum_valid) begin
            sum1      <= (CENTER != 0) ? next1 : {S1BITS{1'b0}};
            sum2      <= next2;
            sum_user  <= {here[2:1], opened};
            sum_n     <= total;
            sum_valid <= 1'b1;
        end
        if (take) begin
            sum_valid <= 1'b0;
            group     <= (group == GROUP_LAST) ? {GBITS{1'b0}} : group + GROUP_ONE;
        end
        if (rst) begin
            sum_valid <= 1'b0;
            group     <= {GBITS{1'b0}};
        end
    end

    // ---- V with one 16 x 16 multiplier: S2 has three digits of 16 bits, |S1| has two, so N*S2 - S1^2 is a sum of six products.
    localparam [1:0] IDLE = 2'd0, WAIT = 2'd1, MULTIPLY = 2'd2, DONE = 2'd3;
    localparam PRODUCTS = (CENTER != 0) ? 6 : 3;
    localparam [31:0] STEP_LAST = PRODUCTS + 1;     // two more steps until the last product is in v
    reg  [1:0]        state;
    reg  [3:0]        step;
    reg  [S1BITS-1:0] s1;
    reg  [47:0]       s2;
    reg  [15:0]       n;
    reg  [30:0]       abs1;
    reg  [2:0]        tuser;
    reg  [15:0]       a, b;
    reg  [1:0]        digit, digit_p;               // the product counts 2^(16*digit)
    reg               minus, minus_p, used, used_p;
    reg  [31:0]       product;
    reg  [61:0]       v;
    wire              e_ready;
    wire [63:0]       e_data;

    wire [30:0] s1_ext  = {{(32 - S1BITS){sum1[S1BITS-1]}}, sum1[S1BITS-2:0]};
    wire [61:0] shifted = digit_p[1] ? {product[29:0], 32'd0} : digit_p[0] ? {14'd0, product, 16'd0} : {30'd0, product};

    assign take = state == IDLE && sum_valid;
    always @(posedge clk) begin
        used   <= 1'b0;
        used_p <= used;
        case (state)
            IDLE: if (sum_valid) begin
                s1    <= sum1;
                n     <= sum_n;
                s2    <= {{(48 - S2BITS){1'b0}}, sum2};
                abs1  <= sum1[S1BITS-1] ? -s1_ext : s1_ext;
                tuser <= sum_user;
                step  <= 4'd0;
                state <= WAIT;
            end
            WAIT: if (e_ready) state <= MULTIPLY;
            MULTIPLY: begin
                used <= step < PRODUCTS;
                step <= step + 4'd1;
                if (step == STEP_LAST[3:0]) state <= DONE;
            end
            default: if (m_tready) state <= IDLE;
        endcase
        if (rst) state <= IDLE;
    end

    always @(posedge clk) if (state == MULTIPLY) begin
        minus <= step[3:0] > 4'd2;
        case (step)
            4'd0:    begin digit <= 2'd0; a <= n;                  b <= s2[15:0];           end
            4'd1:    begin digit <= 2'd1; a <= n;                  b <= s2[31:16];          end
            4'd2:    begin digit <= 2'd2; a <= n;                  b <= s2[47:32];          end
            4'd3:    begin digit <= 2'd0; a <= abs1[15:0];         b <= abs1[15:0];         end
            4'd4:    begin digit <= 2'd1; a <= {abs1[30:16],1'b0}; b <= abs1[15:0];         end     // twice the mixed product
            default: begin digit <= 2'd2; a <= {1'b0,abs1[30:16]}; b <= {1'b0,abs1[30:16]}; end
        endcase
        product <= a * b;
        digit_p <= digit;
        minus_p <= minus;
        if (used_p)                                       v <= minus_p ? v - shifted : v + shifted;
        else if (step == 4'd0)                            v <= {14'd0, e_data[47:0]};
    end

    assign m_v      = v;
    assign m_s1     = s1;
    assign m_n      = n;
    assign m_sh     = e_data[53:48];
    assign m_tuser  = tuser;
    assign m_tvalid = state == DONE;

    mlo_param #(.WIDTH(64), .DEPTH(1), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_param (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_e_tdata), .s_axis_tvalid(s_axis_e_tvalid), .s_axis_tready(s_axis_e_tready), .s_axis_tlast(params_last),
        .first(opens), .ready(e_ready), .addr(1'b0), .en(state == WAIT && e_ready), .data(e_data)
    );

    wire unused = &{1'b0, e_data[63:54], x_ext, q_ext, PE_32, C_32};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // Stream contract, and the use of the parameter memory. (Values: tests/verilog/layernorm.py.)
    reg        f_used_e;
    always @(posedge clk) f_used_e <= !rst && (f_used_e || opens);
    reg  [7:0] f_norm;                                      // of a token's norms, those that were taken
    always @(posedge clk) f_norm <= rst ? 8'd0 : !take ? f_norm : f_norm == GROUPS - 1 ? 8'd0 : f_norm + 8'd1;
    always @* if (f_past_valid) begin
        assert (f_norm == group);
        if (opens) assert (f_norm == 8'd0);                 // the first norm of a token alone begins an iteration
        if (state != WAIT) assert (!f_used_e || e_ready);   // so mlo_param's assumption holds: first comes only when ready
        assert (beat < BEATS && group < GROUPS);
        assert (state != MULTIPLY || step <= STEP_LAST);
        if (state == WAIT) assert (step == 4'd0);
        if (state == MULTIPLY) begin
            assert (used   == (step != 4'd0 && step <= PRODUCTS));
            assert (used_p == (step >= 4'd2 && step <= PRODUCTS + 1));
        end
        if (state == WAIT || state == DONE) assert (!used);
        if (state == DONE) assert (!used_p);
    end
    // What leaves the sums is a norm: of all that came since the last one, which ended with a token, or with a frame's last; what the second
    // half has is that, too. A frame is as long as it may be, at most.
    reg  [15:0]       f_n, f_n_left, f_n_second;            // channels
    reg  [S1BITS-1:0] f_sum1, f_sum1_left, f_sum1_second;
    reg  [S2BITS-1:0] f_sum2, f_sum2_left;
    reg  [2:0]        f_user_left, f_user_second;           // the last token's, of the first one whether it begins an iteration
    reg               f_opens;
    reg  [7:0]        f_beat;                               // of the token
    wire              f_fresh  = f_n == 16'd0;
    wire [15:0]       f_n_next = f_n + PE;
    wire [S1BITS-1:0] f_next1  = f_sum1 + x_ext[S1BITS-1:0];
    wire [S2BITS-1:0] f_next2  = f_sum2 + q_ext[S2BITS-1:0];
    wire              f_opened = (FRAME == 1 || f_fresh) ? here[0] : f_opens;
    wire              f_token  = f_beat == BEATS - 1;
    wire              f_ends   = f_token && (FRAME == 1 || here[1]);
    always @(posedge clk) begin
        if (en && valid[LP+1]) begin
            f_beat  <= f_token ? 8'd0 : f_beat + 8'd1;
            f_n     <= f_ends ? 16'd0 : f_n_next;
            f_sum1  <= f_ends ? {S1BITS{1'b0}} : f_next1;
            f_sum2  <= f_ends ? {S2BITS{1'b0}} : f_next2;
            f_opens <= f_opened;
            if (f_ends) begin
                f_n_left    <= f_n_next;
                f_sum1_left <= (CENTER != 0) ? f_next1 : {S1BITS{1'b0}};
                f_sum2_left <= f_next2;
                f_user_left <= {here[2:1], f_opened};
            end
        end
        if (take) begin
            f_n_second    <= f_n_left;
            f_sum1_second <= f_sum1_left;
            f_user_second <= f_user_left;
        end
        if (rst) begin
            f_beat <= 8'd0;
            f_n    <= 16'd0;
            f_sum1 <= {S1BITS{1'b0}};
            f_sum2 <= {S2BITS{1'b0}};
        end
    end
    always @* if (valid[LP+1]) assume (f_n_next <= C);
    always @* if (f_past_valid) begin
        if (sum_valid)     assert (sum_n == f_n_left && sum1 == f_sum1_left && sum2 == f_sum2_left && sum_user == f_user_left);
        if (state != IDLE) assert (m_n == f_n_second && m_s1 == f_sum1_second && m_tuser == f_user_second);
        // for the induction
        assert (f_beat == beat && f_n <= C && (FRAME == 1 ? f_n : f_n % (BEATS * PE)) == f_beat * PE);
        if (!f_fresh) assert (acc1 == f_sum1 && acc2 == f_sum2);
        else          assert (f_sum1 == 0 && f_sum2 == 0);
    end
    generate
        if (FRAME > 1) begin : f_frame
            always @* if (f_past_valid) begin
                assert (g_frame.begun == !f_fresh);
                if (!f_fresh) assert (g_frame.counted == f_n && g_frame.opening == f_opens);
            end
        end
    endgenerate
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(m_tvalid && !m_tready))
        assert (m_tvalid && $stable(m_v) && $stable(m_s1) && $stable(m_sh) && $stable(m_tuser));
    // a token waits behind one that leaves
    always @* cover (f_past_valid && m_tvalid && m_tready && m_v > 1 && sum_valid && last);
`endif
endmodule

`default_nettype wire
