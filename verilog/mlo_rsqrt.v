// SPDX-License-Identifier: MIT
// mlo_rsqrt: reciprocal square root of one number at a time: normalise, root, divide, one bit per cycle
//
// Contract    V = s_tdata >= 1.  k = leading base-4 zero digits of V;  W = top 2*RBITS bits of V*4^k;
//             root = floor(sqrt(W)) (RBITS bits, the top one set);  m_r = R = floor(2^(2*RBITS-1) / root);  m_k = k.
//             So R * 2^k / 2^((VBITS-2+2*RBITS)/2) is 1/sqrt(V), with a relative error below 2^(2-RBITS).
//             V = 0 gives a meaningless result after the same time.
// Throughput  one number per LATENCY + 1 cycles when the result is taken at once.
// Latency     s_tvalid && s_tready in cycle t: m_tvalid from cycle t + LATENCY = t + (VBITS-2)/16 + 2*RBITS + 6 (41 by default).
// Stall       holds the result until m_tready; s_tready only when idle.
// Bits        for a user that needs R times something: in every cycle with q_valid, q_bit is the next bit of R, highest first, all
//             RBITS+1 of them, the last one in the first cycle of m_tvalid. acc = 2*acc + (q_bit ? x : 0) makes x*R without a multiplier.
// Legal       VBITS even, VBITS >= 2*RBITS, RBITS >= 3.
`default_nettype none

module mlo_rsqrt #(
    parameter VBITS = 62,           // bits of V, even
    parameter RBITS = 16,           // bits of the root
    // derived, do not set: bits of k
    parameter KBITS = $clog2(VBITS / 2 + 1)
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [VBITS-1:0] s_tdata,
    input  wire             s_tvalid,
    output wire             s_tready,
    output wire [RBITS:0]   m_r,
    output wire [KBITS-1:0] m_k,
    output wire             m_tvalid,
    input  wire             m_tready,
    output wire             q_valid,
    output wire             q_bit
);
    generate
        if (VBITS % 2 != 0)    mlo_error_VBITS_must_be_even u_even ();
        if (VBITS < 2 * RBITS) mlo_error_VBITS_must_be_at_least_twice_RBITS u_vbits ();
        if (RBITS < 3)         mlo_error_RBITS_must_be_at_least_3 u_rbits ();
    endgenerate

    // The phases. V moves left by 16 bits (8 digits of base 4) while there is room, then by 4, then by 2; the root eats it by 2.
    localparam [2:0] IDLE = 3'd0, BY16 = 3'd1, BY4 = 3'd2, BY2 = 3'd3, ROOT = 3'd4, DIVIDE = 3'd5, DONE = 3'd6;
    localparam NBY16 = (VBITS - 2) / 16;            // steps of each phase; three by 4 and one by 2 make up to 14 bits
    localparam NBY4  = 3;
    localparam CBITS = $clog2(NBY16 + NBY4 + RBITS + 1);
    localparam [31:0] BY16_LAST = (NBY16 > 0) ? NBY16 - 1 : 0;
    localparam [31:0] BY4_LAST  = NBY4 - 1;
    localparam [31:0] ROOT_LAST = RBITS - 1;
    localparam [31:0] DIV_LAST  = RBITS;
    localparam [CBITS-1:0] ONE  = 1;
    localparam [31:0]      K8_32 = 8;
    localparam [KBITS-1:0] K1 = 1, K2 = 2, K8 = K8_32[KBITS-1:0];
    localparam PAD16 = (VBITS > 16) ? VBITS - 16 : 1;

    reg  [2:0]       state;
    reg  [CBITS-1:0] left;                          // steps of this phase after this one
    reg  [VBITS-1:0] v;
    reg  [KBITS-1:0] k;
    reg  [RBITS-1:0] root;
    reg  [RBITS:0]   rem;
    reg  [RBITS:0]   quo;
    reg              stepped;                       // the last cycle made a bit of quo

    wire             phase_end = left == {CBITS{1'b0}};

    // One subtractor for both: the root's step tries 4*rem + next two bits of W against 4*root + 1, the division's 2*rem against root.
    wire [RBITS+2:0] minuend    = (state == ROOT) ? {rem, v[VBITS-1:VBITS-2]} : {1'b0, rem, 1'b0};
    wire [RBITS+2:0] subtrahend = (state == ROOT) ? {1'b0, root, 2'b01} : {3'b000, root};
    wire [RBITS+3:0] difference = {1'b0, minuend} - {1'b0, subtrahend};
    wire             bit_now    = !difference[RBITS+3];
    wire [RBITS:0]   rem_now    = bit_now ? difference[RBITS:0] : minuend[RBITS:0];

    always @(posedge clk) begin
        left    <= left - ONE;
        stepped <= state == DIVIDE;
        case (state)
            IDLE: if (s_tvalid) begin
                v    <= s_tdata;
                k    <= {KBITS{1'b0}};
                left <= (NBY16 > 0) ? BY16_LAST[CBITS-1:0] : BY4_LAST[CBITS-1:0];
                state <= (NBY16 > 0) ? BY16 : BY4;
            end
            BY16: begin
                if (v[VBITS-1:PAD16] == {(VBITS - PAD16){1'b0}}) begin
                    v <= v << 16;
                    k <= k + K8;
                end
                if (phase_end) begin
                    left  <= BY4_LAST[CBITS-1:0];
                    state <= BY4;
                end
            end
            BY4: begin
                if (v[VBITS-1:VBITS-4] == 4'd0) begin
                    v <= v << 4;
                    k <= k + K2;
                end
                if (phase_end) state <= BY2;
            end
            BY2: begin
                if (v[VBITS-1:VBITS-2] == 2'd0) begin
                    v <= v << 2;
                    k <= k + K1;
                end
                root  <= {RBITS{1'b0}};
                rem   <= {(RBITS + 1){1'b0}};
                left  <= ROOT_LAST[CBITS-1:0];
                state <= ROOT;
            end
            ROOT: begin
                v    <= v << 2;
                root <= {root[RBITS-2:0], bit_now};
                rem  <= rem_now;
                if (phase_end) begin                // RBITS+1 bits of quotient: the dividend without its low RBITS+1 zeros
                    rem   <= {3'b001, {(RBITS - 2){1'b0}}};
                    left  <= DIV_LAST[CBITS-1:0];
                    state <= DIVIDE;
                end
            end
            DIVIDE: begin
                quo <= {quo[RBITS-1:0], bit_now};
                rem <= rem_now;
                if (phase_end) state <= DONE;
            end
            default: if (m_tready) state <= IDLE;
        endcase
        if (rst) begin
            state   <= IDLE;
            stepped <= 1'b0;
        end
    end

    assign s_tready = state == IDLE;
    assign m_tvalid = state == DONE;
    assign m_r      = quo;
    assign m_k      = k;
    assign q_valid  = stepped;
    assign q_bit    = quo[0];

`ifdef FORMAL
    // What each phase has done so far, in every reachable state: by induction, at small widths. In three parts, because the solver
    // takes much longer over all at once: 1 normalising, 2 the root of W, 3 the division by the root and the stream contract.
    parameter F_PART = 3;
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    localparam WBITS   = 2 * RBITS;
    localparam FB      = WBITS + 3;                         // room for every product
    localparam LATENCY = NBY16 + 2 * RBITS + 6;
    reg  [7:0] f_age;                                       // cycles since V was accepted
    always @(posedge clk)
        if (s_tvalid && s_tready) f_age <= 8'd1;
        else if (f_age != 8'd255) f_age <= f_age + 8'd1;
    always @* if (f_past_valid) begin
        assert (state != 3'd7);
        if (state == BY16)   assert (NBY16 > 0 && left < NBY16 && f_age == NBY16 - left);
        if (state == BY4)    assert (left < NBY4 && f_age == NBY16 + NBY4 - left);
        if (state == BY2)    assert (f_age == NBY16 + NBY4 + 1);
        if (state == ROOT)   assert (left < RBITS && f_age == NBY16 + NBY4 + 1 + RBITS - left);
        if (state == DIVIDE) assert (left <= RBITS && f_age == NBY16 + NBY4 + 2 + 2 * RBITS - left);
        if (state == DONE)   assert (f_age >= LATENCY);
    end
    wire [FB-1:0] f_one  = 1;
    wire [FB-1:0] f_root = root;
    generate if (F_PART == 1) begin : f_normalise
        reg  [VBITS-1:0]   f_v;
        always @(posedge clk) if (s_tvalid && s_tready) f_v <= s_tdata;
        localparam SB = VBITS + (2 << KBITS);               // room for V * 4^k
        wire [SB-1:0]      f_scaled = {{(SB - VBITS){1'b0}}, f_v} << {k, 1'b0};
        // leading zeros that the remaining steps can remove, and one
        wire [7:0]         f_zeros  = (state == BY16) ? 16 * left + 31 : (state == BY4) ? 4 * left + 7 : 3;
        always @* if (f_past_valid && f_v != 0) begin
            if (state == BY16 || state == BY4 || state == BY2) begin
                assert (f_scaled == v);                     // nothing was lost
                if (f_zeros < VBITS) assert (v >> (VBITS - 1 - f_zeros) != 0);
            end
            if (state == ROOT && left == RBITS - 1) assert (f_scaled == v && v[VBITS-1:VBITS-2] != 0);
        end
    end else if (F_PART == 2) begin : f_square_root
        reg  [WBITS-1:0] f_w;                               // W: what normalising left at the top of v
        reg              f_first;
        always @(posedge clk) begin
            f_first <= !rst && state == BY2;
            if (f_first) f_w <= v[VBITS-1:VBITS-WBITS];
        end
        wire [WBITS-1:0] f_w_now  = f_first ? v[VBITS-1:VBITS-WBITS] : f_w;
        wire [7:0]       f_i      = RBITS - 1 - left;       // bits done
        wire [WBITS-1:0] f_v_top  = v[VBITS-1:VBITS-WBITS];
        wire [WBITS-1:0] f_eaten  = f_w_now << 2 * f_i;     // W as v holds it now, but for what came up from below
        wire [FB-1:0]    f_square = f_root * f_root;
        always @* if (f_past_valid) begin
            if (state == ROOT) begin                        // of the first f_i digits of W: root and remainder
                assert (f_first == (f_i == 0));
                assert (f_square + rem == f_w_now >> 2 * (RBITS - f_i));
                assert (rem <= 2 * f_root && f_root < (f_one << f_i));
                assert (f_v_top >> 2 * f_i == f_eaten >> 2 * f_i);
            end else assert (!f_first);
            if (state == DIVIDE || state == DONE)           // root = floor(sqrt(W))
                assert (f_square <= f_w && f_w <= f_square + 2 * f_root);
        end
    end else begin : f_reciprocal
        wire [7:0]      f_i       = (state == DIVIDE) ? RBITS - left : RBITS + 1;
        wire [FB-1:0]   f_q       = quo & ((f_one << f_i) - f_one);
        wire [FB-1:0]   f_product = f_q * f_root;
        reg  [RBITS:0]  f_bits;                             // R from the serial bits
        always @(posedge clk)
            if (state == ROOT) f_bits <= 0;
            else if (q_valid)  f_bits <= {f_bits[RBITS-1:0], q_bit};
        always @* if (f_past_valid) begin
            if ((state == DIVIDE || state == DONE) && root[RBITS-1]) begin
                assert (f_product + rem == f_one << (RBITS - 2 + f_i));     // at the end: 2^(2*RBITS-1)
                assert (rem < root);                        // so R is the floor
            end
            if (m_tvalid) assert (m_r == f_q);
            if (state == DIVIDE) assert (stepped == (f_i != 0));
            else                 assert (!stepped || (state == DONE && f_age == LATENCY));
            if (state == DIVIDE || state == DONE) assert (stepped ? f_bits == f_q >> 1 : f_bits == f_q);
        end
        always @(posedge clk) if (f_past_valid && !$past(rst)) begin
            if ($past(m_tvalid && !m_tready)) assert (m_tvalid && $stable(m_r) && $stable(m_k));
            if (m_tvalid && !$past(m_tvalid)) assert (f_age == LATENCY);
            cover ($past(m_tvalid && !m_tready) && m_tready && m_k != 0 && m_r[0]);
        end
    end endgenerate
`endif
endmodule

`default_nettype wire
