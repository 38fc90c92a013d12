// SPDX-License-Identifier: MIT
// mlo_exactnorm: a token out for each token in; and what the FIFO holds are the channels of the tokens that lead the lanes.
given s_axis C/PE;
wanted m_axis C/PE;
reach s_axis m_axis 2-(C>1);
    localparam BEATS = C / PE, CW = $clog2(BEATS + 1), BB = (BEATS > 1) ? $clog2(BEATS) : 1, LP = $clog2(PE);
    localparam WAITS = (CENTER ? 4 * XBITS + 4 : 3 * XBITS + 1) + LP + 8, DEPTH = (BEATS < WAITS / 2) ? 3 * BEATS : BEATS + WAITS;
    localparam LAST = (CENTER ? 10 : 9) + YBITS, IN = LAST + 2;
inner [LAST-1:0] dut.valid;
inner [3*LAST-1:0] dut.user;
inner [BB-1:0] dut.c_addr;
inner dut.swapped;
inner dut.u_param.used;
inner dut.u_param.full;
inner dut.t_valid;
inner [2:0] dut.t_user;
inner [BB-1:0] dut.t_beat;
inner [2:0] dut.r_user;
inner [1:0] dut.u_isqrt.state;
inner [2:0] dut.u_moments.state;
inner [2:0] dut.u_moments.tuser;
inner dut.u_moments.sum_valid;
inner [2:0] dut.u_moments.sum_user;
inner [LP+1:0] dut.u_moments.valid;
inner [3*(LP+2)-1:0] dut.u_moments.user;
inner [BB-1:0] dut.u_moments.beat;
inner dut.u_moments.u_param.used;
inner dut.u_moments.u_param.full;
inner [$clog2(DEPTH+1)-1:0] dut.u_fifo.level;
inner dut.u_skid.valid_reg;
inner dut.u_skid.full_reg;
inner [PE*YBITS+2:0] dut.u_skid.out_reg;
inner [PE*YBITS+2:0] dut.u_skid.spare_reg;

    // Beats in the output register and in stages LAST to 1, oldest first.
    wire [IN-1:0]   beats;
    wire [3*IN-1:0] beat_user;
    wire            r_busy = dut.u_isqrt.state != 0, v_busy = dut.u_moments.state != 0;
    genvar i;
    assign beats[1:0]     = {dut.u_skid.full_reg, dut.u_skid.valid_reg};
    assign beat_user[5:0] = {dut.u_skid.spare_reg[(PE*YBITS) +: 3], dut.u_skid.out_reg[(PE*YBITS) +: 3]};
    generate
        for (i = 0; i < LAST; i = i + 1) begin : g_stage
            assign beats[2+i]             = dut.valid[LAST-1-i];
            assign beat_user[3*(2+i) +: 3] = dut.user[3*(LAST-1-i) +: 3];
        end
    endgenerate
    // Beats on their way to the sums: `at` is the number of each in its token.
    wire [BB*(LP+3)-1:0] ats;
    assign ats[BB*(LP+2) +: BB] = dut.u_moments.beat;
    generate
        for (i = LP + 1; i >= 0; i = i - 1) begin : g_sum
            wire [BB-1:0] at = ats[BB*(i+1) +: BB];
            assign ats[BB*i +: BB] = !dut.u_moments.valid[i] ? at : at == BEATS - 1 ? 0 : at + 1'b1;
        end
    endgenerate
    integer   k;
    reg [7:0] held, waiting;                // beats in the FIFO; of those, on their way to the sums
    always @* begin
        waiting = 0;
        for (k = 0; k < LP + 2; k = k + 1) waiting = waiting + dut.u_moments.valid[k];
    end
    generate
        begin : g_norms
            // Then the tokens in work, and those whose last beat is on its way to the sums.
            localparam N = IN + 4 + LP + 2;
            wire [N*CW-1:0] line_count;
            wire [3*N-1:0]  line_user;
            assign line_user[3*IN-1:0]  = beat_user;
            assign line_user[3*IN +: 12] = {dut.u_moments.sum_user, dut.u_moments.tuser, dut.r_user, dut.t_user};
            assign line_count[(IN+0)*CW +: CW] = dut.t_valid ? BEATS - dut.t_beat : 0;
            assign line_count[(IN+1)*CW +: CW] = r_busy ? BEATS : 0;
            assign line_count[(IN+2)*CW +: CW] = v_busy ? BEATS : 0;
            assign line_count[(IN+3)*CW +: CW] = dut.u_moments.sum_valid ? BEATS : 0;
            for (i = 0; i < IN; i = i + 1) begin : g_count
                assign line_count[i*CW +: CW] = beats[i];
            end
            for (i = LP + 1; i >= 0; i = i - 1) begin : g_last
                assign line_count[(IN+4+LP+1-i)*CW +: CW] = dut.u_moments.valid[i] && ats[BB*(i+1) +: BB] == BEATS - 1 ? BEATS : 0;
                assign line_user[3*(IN+4+LP+1-i) +: 3]    = dut.u_moments.user[3*i +: 3];
            end
            order #(.BEATS(BEATS), .N(N)) u_order (
                .clk(clk), .rst(rst), .in_take(s_take && s_ending), .in_user(s_axis_tuser),
                .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
                .line_count(line_count), .line_user(line_user), .at_beat({BB{1'b0}}), .at_user(3'd0), .outs(outs));
            always @* begin
                held = dut.u_moments.beat + waiting;
                for (k = IN; k < IN + 4; k = k + 1) held = held + line_count[k*CW +: CW];
            end
            always @* if (past) assert (dut.u_fifo.level == held);
        end
    endgenerate
    always @* if (past) begin
        assert (dut.u_skid.valid_reg || !dut.u_skid.full_reg);
        assert (dut.u_moments.beat < BEATS && s_beat == ats[BB-1:0]);
        assert (dut.t_beat < BEATS && (dut.t_valid || dut.t_beat == 0));
        assert (dut.u_isqrt.state != 3);
        // the memories: a bank is missed only by the beat, by the token, that waits for it
        assert (dut.c_addr < BEATS);
        if (dut.swapped) assert (dut.u_param.used && dut.valid[1] && dut.user[3] && dut.c_addr == 0);
        if (dut.u_param.used && !dut.u_param.full) assert (dut.swapped);
        if (dut.u_moments.u_param.used && !dut.u_moments.u_param.full) assert (dut.u_moments.state == 1);
    end
