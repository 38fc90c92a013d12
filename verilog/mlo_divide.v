// SPDX-License-Identifier: MIT
// mlo_divide: q = floor(n / d), unsigned, by long division, STEP quotient bits per cycle
//
// Contract    d >= 1 and n < d * 2^QBITS (so the quotient fits: the user's promise).
//             s_user leaves with the quotient it came with
// Throughput  one division per CY + 1 cycles, CY = ceil(QBITS / STEP)
// Latency     CY + 1 cycles from the handshake of n and d to m_valid
// Stall       m_ready low: one more division is worked out and waits
// Timing      s_ready, m_valid, m_q, m_user come from registers. STEP subtractions in a row
// Legal       NBITS, DBITS, QBITS, STEP, UBITS >= 1; NBITS <= DBITS + QBITS
`default_nettype none
module mlo_divide #(
    // bits of the numerator
    parameter NBITS = 16,
    // bits of the denominator
    parameter DBITS = 8,
    // bits of the quotient
    parameter QBITS = 9,
    // quotient bits per cycle: 1 is smallest, 2 halves the time for twice the subtractors
    parameter STEP = 1,
    // bits that travel along
    parameter UBITS = 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [NBITS-1:0] s_n,
    input  wire [DBITS-1:0] s_d,
    input  wire [UBITS-1:0] s_user,
    input  wire             s_valid,
    output wire             s_ready,
    output wire [QBITS-1:0] m_q,
    output wire [UBITS-1:0] m_user,
    output wire             m_valid,
    input  wire             m_ready
);

localparam CY = (QBITS + STEP - 1) / STEP;      // cycles of work
localparam QP = CY * STEP;                      // quotient bits worked out: the top ones are 0
localparam WB = DBITS + QP;                     // remainder and quotient share one register
localparam CB = (CY > 1) ? $clog2(CY) : 1;
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   LAST_32 = CY - 1;
localparam [CB-1:0] LAST    = LAST_32[CB-1:0];
localparam [CB-1:0] ONE     = 1;

generate
    if (STEP < 1) begin : g_error_step
        mlo_error_STEP_must_be_at_least_1 u_error();
    end
    if (NBITS > DBITS + QBITS) begin : g_error_bits
        mlo_error_NBITS_must_be_at_most_DBITS_plus_QBITS u_error();
    end
endgenerate

// work_reg = {remainder, numerator bits not yet used, quotient bits found}: each
// step moves it up by one bit; what leaves the middle enters the remainder, and
// the new quotient bit comes in at the bottom.
reg [WB-1:0]    work_reg;
reg [DBITS-1:0] d_reg;
reg [UBITS-1:0] user_reg;
reg [CB-1:0]    count_reg;
reg             run_reg;

reg [WB-1:0]    next;
reg [DBITS:0]   rem;
integer k;
always @* begin
    next = work_reg;
    rem  = {1'b0, work_reg[WB-1:QP]};
    for (k = 0; k < STEP; k = k + 1) begin
        rem  = next[WB-1:QP-1];                 // one bit more than d
        next = next << 1;
        if (rem >= {1'b0, d_reg}) begin
            rem     = rem - {1'b0, d_reg};
            next[0] = 1'b1;
        end
        next[WB-1:QP] = rem[DBITS-1:0];
    end
end

reg [QBITS-1:0] out_q_reg;
reg [UBITS-1:0] out_user_reg;
reg             out_valid_reg;

wire last   = run_reg && count_reg == LAST;
wire finish = last && (!out_valid_reg || m_ready);

assign s_ready = !run_reg;
assign m_q     = out_q_reg;
assign m_user  = out_user_reg;
assign m_valid = out_valid_reg;

always @(posedge clk) begin
    if (!run_reg) begin
        run_reg   <= s_valid;
        count_reg <= {CB{1'b0}};
    end else if (!last) begin
        count_reg <= count_reg + ONE;
    end
    if (finish)
        run_reg <= 1'b0;
    if (finish)
        out_valid_reg <= 1'b1;
    else if (m_ready)
        out_valid_reg <= 1'b0;
    if (rst) begin
        run_reg       <= 1'b0;
        out_valid_reg <= 1'b0;
    end
end

always @(posedge clk) begin
    if (!run_reg) begin
        work_reg <= {{WB-NBITS{1'b0}}, s_n};
        d_reg    <= s_d;
        user_reg <= s_user;
    end else if (!last) begin
        work_reg <= next;
    end
    if (finish) begin
        out_q_reg    <= next[QBITS-1:0];
        out_user_reg <= user_reg;
    end
end

`ifdef FORMAL
    // The invariant of long division: with B bits still to come, the numerator is
    //   (quotient so far * d + remainder) * 2^B + unused bits,   remainder < d.
    localparam FB = WB + QP + 2;
    reg             f_past = 1'b0;
    reg [NBITS-1:0] f_n, f_out_n;
    reg [DBITS-1:0] f_out_d;
    reg [UBITS-1:0] f_out_user;
    reg             f_hold;
    reg [QBITS-1:0] f_hold_q;
    reg [UBITS-1:0] f_hold_user;

    wire [FB-1:0] f_bits  = QP - count_reg * STEP;
    wire [FB-1:0] f_ones  = 1;
    wire [FB-1:0] f_low   = work_reg[QP-1:0];
    wire [FB-1:0] f_quot  = f_low & ((f_ones << (QP - f_bits)) - f_ones);
    wire [FB-1:0] f_rest  = f_low >> (QP - f_bits);
    wire [FB-1:0] f_rem   = work_reg[WB-1:QP];
    wire [FB-1:0] f_d     = d_reg;
    wire [FB-1:0] f_out   = out_q_reg;
    wire [FB-1:0] f_outd  = f_out_d;

    always @(posedge clk) begin
        f_past <= 1'b1;
        if (!run_reg)
            f_n <= s_n;
        if (finish) begin
            f_out_n    <= f_n;
            f_out_d    <= d_reg;
            f_out_user <= user_reg;
        end
        f_hold   <= m_valid && !m_ready && !rst;
        f_hold_q <= m_q;
        f_hold_user <= m_user;
    end

    wire [FB-1:0] f_limit = {{FB-DBITS{1'b0}}, s_d} << QBITS;
    always @(*) begin
        if (!f_past)
            assume (rst);
        if (s_valid)
            assume (s_d != 0 && {{FB-NBITS{1'b0}}, s_n} < f_limit);
        if (f_past && run_reg) begin
            assert (count_reg <= LAST);
            assert (d_reg != 0);
            assert (f_rem < f_d);
            assert (f_quot < (f_ones << QBITS));
            assert ({{FB-NBITS{1'b0}}, f_n} < (f_d << QBITS));
            assert ({{FB-NBITS{1'b0}}, f_n} == ((f_quot * f_d + f_rem) << f_bits) + f_rest);
        end
        if (f_past && out_valid_reg) begin
            // the definition of the quotient
            assert (f_outd * f_out <= {{FB-NBITS{1'b0}}, f_out_n});
            assert (f_outd * (f_out + f_ones) > {{FB-NBITS{1'b0}}, f_out_n});
            assert (out_user_reg == f_out_user);
        end
        if (f_past && f_hold)
            assert (m_valid && m_q == f_hold_q && m_user == f_hold_user);
        cover (f_past && f_hold && last && m_ready && m_q > 1 && f_outd > 1);      // a second division waited for the first
    end
`endif
endmodule
`default_nettype wire
