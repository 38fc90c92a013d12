// SPDX-License-Identifier: MIT
// mlo_moments: first stage of mlo_exactnorm: a token's mean, and the mean of the squares of how far its channels are from it, both rounded towards zero
//
// Contract    mean = CENTER ? trunc(sum x / C) : 0;  m_s = floor(sum (x - mean)^2 / C) + 1;  m_mean = mean;  m_sh, m_tuser travel with the token.
//             SH comes from s_axis_e (mlo_param WIDTH 32, DEPTH 1: [5:0] SH); the bank moves with tuser[0], which all beats of a token have.
// Throughput  one beat per cycle; one token per max(C/PE, FINISH + 1) cycles.
// Latency     last beat accepted in cycle t: m_tvalid from cycle t + 3 + clog2(PE) + FINISH, FINISH = 2*XBITS + 1, with CENTER = 1 3*XBITS + 4.
// Stall       while s waits for m_tready the next token's sums are still formed; then s_tready goes low.
// Legal       1 <= C <= 32768, PE divides C, 2 <= XBITS <= 16, CENTER 0 or 1 (checked by mlo_exactnorm).
//
// The sums of x and x^2 are enough: with a = |sum x|, q = floor(a / C) and what is left of it, e = a - q C, is sum (x - mean)^2 =
// sum x^2 - q (a + e). One long division by C, a bit per cycle, makes q and then s: C is any number.
`default_nettype none

module mlo_moments #(
    parameter C         = 16,       // channels of a token
    parameter PE        = 4,        // channels per beat
    parameter XBITS     = 8,        // bits of a channel
    parameter CENTER    = 1,        // 1: around the mean, 0: around zero
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128,      // bits of the parameter stream
    parameter MULBITS   = 18        // widest operand of one hardware multiplier, changes no result
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
    output wire [2*XBITS-2:0]   m_s,
    output wire [XBITS-1:0]     m_mean,         // signed
    output wire [5:0]           m_sh,
    output wire [2:0]           m_tuser,
    output wire                 m_tvalid,
    input  wire                 m_tready
);
    localparam LP     = $clog2(PE);
    localparam LC     = $clog2(C);
    localparam BEATS  = C / PE;
    localparam BBITS  = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam QBITS  = 2 * XBITS;                  // a square
    localparam S1BITS = XBITS + LC;                 // the sum
    localparam S2BITS = QBITS + LC;                 // the sum of squares
    localparam [31:0]      LAST_32 = BEATS - 1;
    localparam [BBITS-1:0] LAST    = LAST_32[BBITS-1:0];
    localparam [BBITS-1:0] ONE     = 1;

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

    wire [QBITS+LP-1:0] q_sum;
    mlo_addtree #(.LANES(PE), .BITS(QBITS)) u_sumsq (.clk(clk), .en(moves), .lanes(q1), .sum(q_sum));

    reg  [BBITS-1:0]  beat;
    reg  [S2BITS-1:0] acc2;
    wire [2:0]        here  = user[3*(LP+1) +: 3];
    wire              fresh = beat == {BBITS{1'b0}};
    wire              last  = valid[LP+1] && beat == LAST;
    wire [47:0]       q_ext = {{(48 - QBITS - LP){1'b0}}, q_sum};
    wire [S2BITS-1:0] next2 = (fresh ? {S2BITS{1'b0}} : acc2) + q_ext[S2BITS-1:0];
    wire [S1BITS-1:0] next1;
    generate
        if (CENTER != 0) begin : g_sum
            wire [XBITS+LP-1:0] x_sum;
            mlo_addtree #(.LANES(PE), .BITS(XBITS)) u_sum (.clk(clk), .en(moves), .lanes(x1), .sum(x_sum));
            reg  [S1BITS-1:0]   acc1;
            wire [32:0]         x_ext = {{(33 - XBITS - LP){x_sum[XBITS+LP-1]}}, x_sum};
            assign next1 = (fresh ? {S1BITS{1'b0}} : acc1) + x_ext[S1BITS-1:0];
            always @(posedge clk)
                if (en && valid[LP+1]) acc1 <= next1;
            wire unused_sum = &{1'b0, x_ext};
        end else begin : g_nothing
            assign next1 = {S1BITS{1'b0}};
            wire unused_sum = &{1'b0, x1};
        end
    endgenerate
    always @(posedge clk) begin
        if (en && valid[LP+1]) begin
            beat <= (beat == LAST) ? {BBITS{1'b0}} : beat + ONE;
            acc2 <= next2;
        end
        if (rst) beat <= {BBITS{1'b0}};
    end

    // ---- A finished pair of sums
    reg               sum_valid;
    reg  [S1BITS-1:0] sum1;
    reg  [S2BITS-1:0] sum2;
    reg  [2:0]        sum_user;
    wire              take;                         // by the second half
    wire              opens = take && sum_user[0];
    assign en = !(last && sum_valid);
    always @(posedge clk) begin
        if (last && !sum_valid) begin
            sum1      <= next1;
            sum2      <= next2;
            sum_user  <= here;
            sum_valid <= 1'b1;
        end
        if (take) sum_valid <= 1'b0;
        if (rst)  sum_valid <= 1'b0;
    end

    // ---- The second half: q of the sum, what is left of the squares, s.
    localparam [2:0] IDLE = 3'd0, WAIT = 3'd1, MEAN = 3'd2, TAKE = 3'd3, LEFT = 3'd4, LOAD = 3'd5, MOMENT = 3'd6, DONE = 3'd7;
    localparam NB    = $clog2(C + 1);               // bits of C
    localparam LOW   = 2 * XBITS - 1;               // bits of s
    localparam CBITS = $clog2(LOW);
    localparam [31:0]      C_32 = C, MEAN_32 = XBITS - 1, MOMENT_32 = LOW - 1;
    localparam [CBITS-1:0] STEP = 1;
    reg  [2:0]        state;
    reg  [CBITS-1:0]  left;                         // steps of this division after this one
    reg  [S1BITS-1:0] abs1;
    reg               minus;
    reg  [S2BITS-1:0] s2;
    reg  [2:0]        tuser;
    reg  [NB-1:0]     rem;                          // long division by C: the remainder, digits that are yet to come, at the top,
    reg  [LOW-1:0]    digits;
    reg  [LOW-1:0]    quo;                          // and the quotient
    reg  [XBITS-1:0]  mean;
    wire              e_ready;
    wire [31:0]       e_data;
    wire [S2BITS-1:0] around;                       // sum (x - mean)^2

    wire [NB:0]       minuend    = {rem, digits[LOW-1]};
    wire [NB+1:0]     difference = {1'b0, minuend} - {1'b0, 1'b0, C_32[NB-1:0]};
    wire              fits       = !difference[NB+1];
    wire [LOW-1:0]    quo_now    = {quo[LOW-2:0], fits};
    wire [NB+LOW-1:0] wide1      = {{(NB + LOW - S1BITS){1'b0}}, abs1} << (LOW - XBITS);
    wire [NB+LOW+1:0] wide2      = {{(NB + LOW + 2 - S2BITS){1'b0}}, around};

    assign take = state == IDLE && sum_valid;
    always @(posedge clk) begin
        left <= left - STEP;
        case (state)
            IDLE: if (sum_valid) begin
                abs1  <= sum1[S1BITS-1] ? -sum1 : sum1;
                minus <= sum1[S1BITS-1];
                s2    <= sum2;
                tuser <= sum_user;
                state <= WAIT;
            end
            WAIT: if (e_ready) begin
                {rem, digits} <= (CENTER != 0) ? wide1 : wide2[NB+LOW-1:0];
                quo   <= {LOW{1'b0}};
                left  <= (CENTER != 0) ? MEAN_32[CBITS-1:0] : MOMENT_32[CBITS-1:0];
                state <= (CENTER != 0) ? MEAN : MOMENT;
            end
            MEAN: begin
                rem    <= fits ? difference[NB-1:0] : minuend[NB-1:0];
                digits <= digits << 1;
                quo    <= quo_now;
                if (left == {CBITS{1'b0}}) state <= TAKE;
            end
            TAKE: state <= LEFT;                    // q (a + e)
            LEFT: state <= LOAD;                    // taken off
            LOAD: begin
                {rem, digits} <= wide2[NB+LOW-1:0];
                mean  <= minus ? -quo[XBITS-1:0] : quo[XBITS-1:0];
                left  <= MOMENT_32[CBITS-1:0];
                state <= MOMENT;
            end
            MOMENT: begin
                rem    <= fits ? difference[NB-1:0] : minuend[NB-1:0];
                digits <= digits << 1;
                quo    <= (left == {CBITS{1'b0}}) ? quo_now + {{(LOW - 1){1'b0}}, 1'b1} : quo_now;
                if (left == {CBITS{1'b0}}) state <= DONE;
            end
            default: if (m_tready) state <= IDLE;
        endcase
        if (rst) state <= IDLE;
    end

    generate
        if (CENTER != 0) begin : g_around
            wire [S1BITS:0] reach = {1'b0, abs1} + {{(S1BITS + 1 - NB){1'b0}}, rem};
            mlo_muladd #(.ABITS(S1BITS + 2), .BBITS(XBITS + 1), .YBITS(S2BITS), .MULBITS(MULBITS)) u_around (
                .clk(clk), .en1(state == TAKE), .en2(state == LEFT), .a({1'b0, reach}), .b(-{1'b0, quo[XBITS-1:0]}), .c(s2), .y(around));
        end else begin : g_square_sum
            assign around = s2;
        end
    endgenerate

    assign m_s      = quo;
    assign m_mean   = (CENTER != 0) ? mean : {XBITS{1'b0}};
    assign m_sh     = e_data[5:0];
    assign m_tuser  = tuser;
    assign m_tvalid = state == DONE;

    mlo_param #(.WIDTH(32), .DEPTH(1), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_param (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_e_tdata), .s_axis_tvalid(s_axis_e_tvalid), .s_axis_tready(s_axis_e_tready), .s_axis_tlast(params_last),
        .first(opens), .ready(e_ready), .addr(1'b0), .en(state == WAIT && e_ready), .data(e_data)
    );

    wire unused = &{1'b0, e_data[31:6], q_ext, C_32, MEAN_32, MOMENT_32, minuend[NB], difference[NB], wide2[NB+LOW+1:NB+LOW]};
`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // Stream contract, and the use of the parameter memory.
    reg f_used_e;
    always @(posedge clk) f_used_e <= !rst && (f_used_e || opens);
    always @* if (f_past_valid) begin
        if (state != WAIT) assert (!f_used_e || e_ready);   // so mlo_param's assumption holds: first comes only when ready
        assert (beat < BEATS);
        if (CENTER == 0) assert (state != MEAN && state != TAKE && state != LEFT && state != LOAD);
        if (state == MEAN)   assert (left < XBITS);
        if (state == MOMENT) assert (left < LOW);
    end
    always @(posedge clk) if (f_past_valid && !$past(rst) && $past(m_tvalid && !m_tready))
        assert (m_tvalid && $stable(m_s) && $stable(m_mean) && $stable(m_sh) && $stable(m_tuser));

    // The values, at small widths, of any sums that a token can have: what holds of those of numbers of XBITS is assumed where they are taken.
    localparam FB = S2BITS + NB + XBITS + 4;
    reg  signed [FB-1:0] f_s1, f_s2;
    wire signed [FB-1:0] f_c    = C, f_top = 1 << (XBITS - 1);
    wire signed [FB-1:0] f_sum1 = (CENTER != 0) ? $signed(sum1) : 0, f_sum2 = sum2;
    always @(posedge clk) if (take) begin
        f_s1 <= f_sum1;
        f_s2 <= f_sum2;
    end
    always @* if (take) begin
        assume (f_sum1 * f_sum1 <= f_c * f_sum2 && f_sum2 <= f_c * f_top * f_top);
        assume (f_sum1 >= -f_c * f_top && f_sum1 <= f_c * (f_top - 1));
        // no two numbers are further from each other than XBITS reach: (x - lo)(hi - x) >= 0 of each
        assume (f_sum2 + f_sum1 <= f_c * f_top * (f_top - 1));
    end
    wire signed [FB-1:0] f_abs  = (f_s1 < 0) ? -f_s1 : f_s1, f_q = f_abs / f_c, f_e = f_abs - f_q * f_c;
    wire signed [FB-1:0] f_mean = (f_s1 < 0) ? -f_q : f_q;
    wire signed [FB-1:0] f_around = f_s2 - 2 * f_mean * f_s1 + f_c * f_mean * f_mean;      // sum (x - mean)^2, as it is meant
    wire signed [FB-1:0] f_one  = 1, f_quo = quo, f_rem = rem, f_here = around;
    wire        [7:0]    f_left = left + 8'd1;              // digits that are yet to come
    wire signed [FB-1:0] f_rest = digits >> (LOW - f_left);
    always @* if (f_past_valid) begin
        if (state != IDLE) begin
            assert (s2 == f_s2 && abs1 == f_abs && minus == (f_s1 < 0));
            assert (f_s1 * f_s1 <= f_c * f_s2 && f_s2 <= f_c * f_top * f_top && f_s2 + f_s1 <= f_c * f_top * (f_top - 1));
            assert (f_s1 >= -f_c * f_top && f_s1 <= f_c * (f_top - 1));
            assert (f_around >= 0 && f_around <= f_c * f_top * f_top);
        end
        if (CENTER == 0) assert ((!sum_valid || sum1 == 0) && (state == IDLE || f_s1 == 0));
        if (state == MEAN || state == MOMENT) begin
            assert (f_rem < f_c);
            assert (((f_quo & ((f_one << ((state == MEAN ? XBITS : LOW) - f_left)) - 1)) * f_c + f_rem) * (f_one << f_left) + f_rest
                    == (state == MEAN ? f_abs : f_around));
        end
        if (state == MEAN) assert (f_quo < (f_one << (XBITS - f_left)));
        if (state == TAKE || state == LEFT || state == LOAD) assert (f_quo == f_q && f_rem == f_e);
        if (state == LOAD) assert (f_here == f_around);
        if (CENTER != 0 && (state == MOMENT || state == DONE)) assert ($signed(mean) == f_mean);
        if (state == DONE) begin
            assert ((f_quo - 1) * f_c <= f_around && f_quo * f_c > f_around);
            assert ($signed(m_mean) == f_mean);
        end
    end
    // a token waits behind one that leaves
    always @* cover (f_past_valid && m_tvalid && m_tready && m_s > 1 && sum_valid && last);
`endif
endmodule

`default_nettype wire
