// SPDX-License-Identifier: MIT
// mlo_layernorm: a norm out for each norm in (a token is GROUPS of them), or a token of a frame for each; and what the FIFO holds are the
// channels of the norms that lead the lanes. A frame leaves with constants of its own: at its last token's end what they came with is its sideband.
given s_axis C/GROUPS/PE;
wanted m_axis C/GROUPS/PE;
reach s_axis m_axis 2-(C>1);
    localparam WORDS = OWN ? C / PE : C / GROUPS / PE, AB = (WORDS > 1) ? $clog2(WORDS) : 1, TURNS = OWN ? 1 : GROUPS;
    localparam BEATS = C / GROUPS / PE, CW = $clog2(BEATS + 1), BB = (BEATS > 1) ? $clog2(BEATS) : 1, LP = $clog2(PE), HELD = BEATS * FRAME;
    localparam DEPTH = (HELD < 42) ? 3 * HELD : HELD + 84, XW = PE * XBITS + ((FRAME > 1) ? 3 : 0);
inner [7:0] dut.valid;
inner [2:0] dut.user1;
inner [2:0] dut.user2;
inner [2:0] dut.user3;
inner [2:0] dut.user4;
inner [2:0] dut.user5;
inner [2:0] dut.user6;
inner [2:0] dut.user7;
inner [2:0] dut.user8;
inner [AB-1:0] dut.c_addr;
inner [((TURNS > 1) ? $clog2(TURNS) : 1)-1:0] dut.c_turn;
inner dut.swapped;
inner dut.u_param.used;
inner dut.u_param.full;
inner dut.t_valid;
inner [2:0] dut.t_user;
inner [BB-1:0] dut.t_beat;
inner [2:0] dut.r_user;
inner [2:0] dut.u_rsqrt.state;
inner [1:0] dut.u_variance.state;
inner [2:0] dut.u_variance.tuser;
inner dut.u_variance.sum_valid;
inner [2:0] dut.u_variance.sum_user;
inner [LP+1:0] dut.u_variance.valid;
inner [3*(LP+2)-1:0] dut.u_variance.user;
inner [BB-1:0] dut.u_variance.beat;
inner dut.u_variance.u_param.used;
inner dut.u_variance.u_param.full;
inner [$clog2(DEPTH+1)-1:0] dut.u_fifo.level;
inner [XW*DEPTH-1:0] dut.u_fifo.words;
inner dut.go;
inner [2:0] dut.x_user;
inner dut.u_skid.valid_reg;
inner dut.u_skid.full_reg;
inner [PE*YBITS+2:0] dut.u_skid.out_reg;
inner [PE*YBITS+2:0] dut.u_skid.spare_reg;

    // Beats in the output register and in stages 8 to 1, oldest first.
    wire [9:0]  beats;
    wire [29:0] beat_user;
    wire        r_busy = dut.u_rsqrt.state != 0, v_busy = dut.u_variance.state != 0;
    genvar i;
    assign beats[1:0]       = {dut.u_skid.full_reg, dut.u_skid.valid_reg};
    assign beat_user[5:0]   = {dut.u_skid.spare_reg[(PE*YBITS) +: 3], dut.u_skid.out_reg[(PE*YBITS) +: 3]};
    assign beat_user[29:6]  = {dut.user1, dut.user2, dut.user3, dut.user4, dut.user5, dut.user6, dut.user7, dut.user8};
    generate
        for (i = 0; i < 8; i = i + 1) begin : g_stage
            assign beats[2+i] = dut.valid[7-i];
        end
    endgenerate
    // Beats on their way to the sums: `at` is the number of each in its token.
    wire [BB*(LP+3)-1:0] ats;
    assign ats[BB*(LP+2) +: BB] = dut.u_variance.beat;
    generate
        for (i = LP + 1; i >= 0; i = i - 1) begin : g_sum
            wire [BB-1:0] at = ats[BB*(i+1) +: BB];
            assign ats[BB*i +: BB] = !dut.u_variance.valid[i] ? at : at == BEATS - 1 ? 0 : at + 1'b1;
        end
    endgenerate
    integer   k;
    reg [7:0] held, waiting;                // beats in the FIFO; of those, on their way to the sums
    always @* begin
        waiting = 0;
        for (k = 0; k < LP + 2; k = k + 1) waiting = waiting + dut.u_variance.valid[k];
    end
    generate
        if (FRAME == 1) begin : g_norms
            // Then the norms in work, and those whose last beat is on its way to the sums.
            localparam N = 10 + 4 + LP + 2;
            wire [N*CW-1:0] line_count;
            wire [3*N-1:0]  line_user;
            assign line_user[29:0]  = beat_user;
            assign line_user[41:30] = {dut.u_variance.sum_user, dut.u_variance.tuser, dut.r_user, dut.t_user};
            assign line_count[10*CW +: CW] = dut.t_valid ? BEATS - dut.t_beat : 0;
            assign line_count[11*CW +: CW] = r_busy ? BEATS : 0;
            assign line_count[12*CW +: CW] = v_busy ? BEATS : 0;
            assign line_count[13*CW +: CW] = dut.u_variance.sum_valid ? BEATS : 0;
            for (i = 0; i < 10; i = i + 1) begin : g_count
                assign line_count[i*CW +: CW] = beats[i];
            end
            for (i = LP + 1; i >= 0; i = i - 1) begin : g_last
                assign line_count[(14+LP+1-i)*CW +: CW] = dut.u_variance.valid[i] && ats[BB*(i+1) +: BB] == BEATS - 1 ? BEATS : 0;
                assign line_user[3*(14+LP+1-i) +: 3]    = dut.u_variance.user[3*i +: 3];
            end
            order #(.BEATS(BEATS), .N(N)) u_order (
                .clk(clk), .rst(rst), .in_take(s_take && s_ending), .in_user(s_axis_tuser),
                .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
                .line_count(line_count), .line_user(line_user), .at_beat({BB{1'b0}}), .at_user(3'd0), .outs(outs));
            always @* begin
                held = dut.u_variance.beat + waiting;
                for (k = 10; k < 14; k = k + 1) held = held + line_count[k*CW +: CW];
            end
            always @* if (past) assert (dut.u_fifo.level == held);
        end else begin : g_frames
            // Then the beats in the FIFO, each with its sideband.
            localparam N = 10 + DEPTH, LW = $clog2(DEPTH + 1);
            wire [N*CW-1:0]   line_count;
            wire [3*N-1:0]    line_user;
            assign line_user[29:0] = beat_user;
            for (i = 0; i < 10; i = i + 1) begin : g_count
                assign line_count[i*CW +: CW] = beats[i];
            end
            for (i = 0; i < DEPTH; i = i + 1) begin : g_word
                assign line_count[(10+i)*CW +: CW] = i < dut.u_fifo.level;
                assign line_user[3*(10+i) +: 3]    = dut.u_fifo.words[i*XW + PE*XBITS +: 3];
            end
            order #(.BEATS(BEATS), .N(N)) u_order (
                .clk(clk), .rst(rst), .in_take(s_take && s_start), .in_user(s_axis_tuser),
                .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
                .line_count(line_count), .line_user(line_user), .at_beat(s_beat), .at_user(s_token), .outs(outs));

            // Of the frames in the FIFO the oldest ones are in work: the first in the lanes, then root, sums. What came with each is its last
            // token's sideband. Behind them stand the beats of the next frame that are in its sums, then those on their way there.
            wire [3:0]  busy  = {dut.u_variance.sum_valid, v_busy, r_busy, dut.t_valid};
            wire [11:0] users = {dut.u_variance.sum_user, dut.u_variance.tuser, dut.r_user, dut.t_user};
            reg         ok;
            reg  [3:0]  left;                   // frames in work that are yet to be found
            reg  [BB-1:0] at;                   // the beat's number in its token
            reg  [LW-1:0] rest, younger;        // beats behind those frames, in front of which the younger ones stand
            reg  [2:0]  user;
            integer     n;
            claim u_own (.holds(!past || !(dut.go && dut.t_beat == BEATS - 1 && dut.x_user[1]) || dut.x_user[2:1] == dut.t_user[2:1]));
            always @* begin
                {ok, left, at, rest} = {1'b1, busy, dut.t_beat, {LW{1'b0}}};
                for (n = 0; n < DEPTH; n = n + 1)
                    if (n < dut.u_fifo.level) begin
                        user = dut.u_fifo.words[n*XW + PE*XBITS +: 3];
                        if (left == 0) begin
                            if (at == BEATS - 1 && user[1]) ok = ok && n >= dut.u_fifo.level - waiting;
                            rest = rest + 1'b1;
                        end else if (at == BEATS - 1 && user[1]) begin
                            for (k = 3; k >= 0; k = k - 1)
                                if (left[k] && (left & ((1 << k) - 1)) == 0) ok = ok && users[3*k+1 +: 2] == user[2:1];
                            left = left & (left - 1'b1);
                        end
                        at = (at == BEATS - 1) ? 0 : at + 1'b1;
                    end
                ok = ok && left == 0 && at == s_beat && rest >= waiting && (rest - waiting) % BEATS == dut.u_variance.beat;
                younger = 0;
                for (n = 0; n < LP + 2; n = n + 1)      // youngest first
                    if (dut.u_variance.valid[n]) begin
                        younger = younger + 1'b1;
                        for (k = 0; k < DEPTH; k = k + 1)
                            if (k + younger == dut.u_fifo.level) ok = ok && dut.u_fifo.words[k*XW + PE*XBITS +: 3] == dut.u_variance.user[3*n +: 3];
                    end
            end
            always @* if (past) assert (ok);
        end
    endgenerate
    always @* if (past) begin
        assert (dut.u_skid.valid_reg || !dut.u_skid.full_reg);
        assert (dut.u_variance.beat < BEATS && s_beat == ats[BB-1:0]);
        assert (dut.t_beat < BEATS && (dut.t_valid || dut.t_beat == 0));
        assert (dut.u_rsqrt.state != 7);
        // the memories: a bank is missed only by the beat, by the token, that waits for it
        assert (dut.c_addr < WORDS && dut.c_turn < TURNS);
        if (dut.swapped) assert (dut.u_param.used && dut.valid[1] && dut.user2[0] && dut.c_addr == 0 && dut.c_turn == 0);
        if (dut.u_param.used && !dut.u_param.full) assert (dut.swapped);
        if (dut.u_variance.u_param.used && !dut.u_variance.u_param.full) assert (dut.u_variance.state == 1);
    end
