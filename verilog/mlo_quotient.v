// SPDX-License-Identifier: MIT
// mlo_quotient: q = floor(u / d) of LANES numbers with one divisor, every cycle, by long division: a stage for each bit of q
//
// Contract    d >= 1 and u < d * 2^QBITS of every lane (so the quotients fit: the user's promise). d goes along with the numbers that it divides.
// Throughput  LANES quotients per cycle.
// Latency     QBITS cycles in which en is high.
// Stall       en low freezes all stages. No handshake and no reset inside.
// Timing      one subtraction of DBITS+1 bits in each stage.
// Legal       LANES, DBITS, QBITS >= 1.
`default_nettype none

module mlo_quotient #(
    parameter LANES = 1,            // numbers with one divisor
    parameter DBITS = 8,            // bits of the divisor
    parameter QBITS = 8             // bits of a quotient
) (
    input  wire                           clk,
    input  wire                           en,
    input  wire [LANES*(DBITS+QBITS)-1:0] u,
    input  wire [DBITS-1:0]               d,
    output wire [LANES*QBITS-1:0]         q
);
    localparam UBITS = DBITS + QBITS;
    localparam [QBITS-1:0] ONE = 1;

    generate
        if (LANES < 1) mlo_error_LANES_must_be_at_least_1 u_lanes ();
        if (DBITS < 1) mlo_error_DBITS_must_be_at_least_1 u_dbits ();
        if (QBITS < 1) mlo_error_QBITS_must_be_at_least_1 u_qbits ();
    endgenerate

    // The divisor of stage k's numbers, at k*DBITS; stage 0 is the input.
    wire [(QBITS+1)*DBITS-1:0] d_all;
    reg  [QBITS*DBITS-1:0]     d_reg;
    assign d_all = {d_reg, d};
    always @(posedge clk)
        if (en) d_reg <= d_all[QBITS*DBITS-1:0];
    wire unused_d = &{1'b0, d_all[QBITS*DBITS +: DBITS]};

    // A lane's word: the remainder; bits of u that are yet to come, and behind them those of the quotient.
    genvar k, p;
    generate
        for (p = 0; p < LANES; p = p + 1) begin : g_lane
            wire [(QBITS+1)*UBITS-1:0] all;
            reg  [QBITS*UBITS-1:0]     work;
            assign all = {work, u[p*UBITS +: UBITS]};
            for (k = 0; k < QBITS; k = k + 1) begin : g_bit
                wire [UBITS-1:0] was   = all[k*UBITS +: UBITS];
                wire [DBITS:0]   rem   = was[UBITS-1:QBITS-1];      // with its next bit
                wire [DBITS+1:0] less  = {1'b0, rem} - {2'b00, d_all[k*DBITS +: DBITS]};
                wire             fits  = !less[DBITS+1];
                wire [QBITS-1:0] low   = was[QBITS-1:0], moved = low << 1;
                wire [UBITS-1:0] now   = {fits ? less[DBITS-1:0] : rem[DBITS-1:0], fits ? moved | ONE : moved};
                always @(posedge clk)
                    if (en) work[k*UBITS +: UBITS] <= now;
                wire unused_bit = &{1'b0, less[DBITS]};
            end
            assign q[p*QBITS +: QBITS] = all[QBITS*UBITS +: QBITS];
            wire unused_lane = &{1'b0, all[QBITS*UBITS+QBITS +: DBITS]};
        end
    endgenerate

`ifdef FORMAL
    // The invariant of long division, in every stage of a lane: with B bits yet to come, the number is
    //   (quotient so far * d + remainder) * 2^B + bits to come,   remainder < d.
    localparam FB = 2 * UBITS + 1;
    reg  [QBITS-1:0]       f_there = 0;
    reg  [QBITS*UBITS-1:0] f_u;
    wire [FB-1:0]          f_one = 1;
    genvar f;
    always @(posedge clk) if (en) begin
        f_there <= (f_there << 1) | 1'b1;
        f_u     <= {f_u, u[0 +: UBITS]};
    end
    always @(*) assume (d != 0 && u[0 +: UBITS] < {{FB-DBITS{1'b0}}, d} << QBITS);
    generate
        for (f = 1; f <= QBITS; f = f + 1) begin : f_stage
            wire [UBITS-1:0] word = g_lane[0].work[(f-1)*UBITS +: UBITS];
            wire [FB-1:0]    low  = word[QBITS-1:0], by = d_all[f*DBITS +: DBITS], rem = word[UBITS-1:QBITS];
            wire [FB-1:0]    quo  = low & ((f_one << f) - 1'b1), rest = low >> f, number = f_u[(f-1)*UBITS +: UBITS];
            always @(*) if (f_there[f-1]) begin
                assert (by != 0 && rem < by);
                assert (number == ((quo * by + rem) << (QBITS - f)) + rest);
            end
        end
    endgenerate
    wire [FB-1:0] f_q = q[0 +: QBITS], f_d = d_all[QBITS*DBITS +: DBITS], f_last = f_u[(QBITS-1)*UBITS +: UBITS];
    always @(*) if (f_there[QBITS-1]) begin
        assert (f_q * f_d <= f_last && (f_q + 1'b1) * f_d > f_last);        // the definition of the quotient
        cover (f_q > 1 && f_d > 1 && f_q * f_d != f_last);
    end
`endif
endmodule

`default_nettype wire
