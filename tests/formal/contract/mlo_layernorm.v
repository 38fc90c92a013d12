// SPDX-License-Identifier: MIT
// mlo_layernorm: a norm out for each norm in (a token is GROUPS of them); and what the FIFO holds are the channels of the norms that
// lead the lanes
given s_axis C/GROUPS/PE;
wanted m_axis C/GROUPS/PE;
reach s_axis m_axis 2-(C>1);
    localparam WORDS = OWN ? C / PE : C / GROUPS / PE, AB = (WORDS > 1) ? $clog2(WORDS) : 1, TURNS = OWN ? 1 : GROUPS;
    localparam BEATS = C / GROUPS / PE, CW = $clog2(BEATS + 1), BB = (BEATS > 1) ? $clog2(BEATS) : 1, LP = $clog2(PE), DEPTH = (BEATS < 42) ? 3 * BEATS : BEATS + 84;
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
inner dut.u_skid.valid_reg;
inner dut.u_skid.full_reg;
inner [PE*YBITS+2:0] dut.u_skid.out_reg;
inner [PE*YBITS+2:0] dut.u_skid.spare_reg;

    // What is inside, oldest first: output register, stages 8 to 1, the tokens in work, and those whose last beat is in the sums.
    localparam N = 10 + 4 + LP + 2;
    wire [9:0]      beats;
    wire [N*CW-1:0] line_count;
    wire [3*N-1:0]  line_user;
    wire            r_busy = dut.u_rsqrt.state != 0, v_busy = dut.u_variance.state != 0;
    genvar i;
    assign beats[1:0]     = {dut.u_skid.full_reg, dut.u_skid.valid_reg};
    assign line_user[5:0] = {dut.u_skid.spare_reg[(PE*YBITS) +: 3], dut.u_skid.out_reg[(PE*YBITS) +: 3]};
    assign line_user[29:6]  = {dut.user1, dut.user2, dut.user3, dut.user4, dut.user5, dut.user6, dut.user7, dut.user8};
    assign line_user[41:30] = {dut.u_variance.sum_user, dut.u_variance.tuser, dut.r_user, dut.t_user};
    generate
        for (i = 0; i < 8; i = i + 1) begin : g_stage
            assign beats[2+i] = dut.valid[7-i];
        end
        for (i = 0; i < 10; i = i + 1) begin : g_count
            assign line_count[i*CW +: CW] = beats[i];
        end
        // beats on their way to the sums: at is the number of each in its token
        for (i = LP + 1; i >= 0; i = i - 1) begin : g_sum
            wire [CW-1:0] at, next;
            if (i == LP + 1) begin : g_oldest
                assign at = dut.u_variance.beat;
            end else begin : g_other
                assign at = g_sum[i+1].next;
            end
            wire here = dut.u_variance.valid[i];
            assign next = !here ? at : at == BEATS - 1 ? 0 : at + 1'b1;
            assign line_count[(14+LP+1-i)*CW +: CW] = here && at == BEATS - 1 ? BEATS : 0;
            assign line_user[3*(14+LP+1-i) +: 3]    = dut.u_variance.user[3*i +: 3];
        end
    endgenerate
    assign line_count[10*CW +: CW] = dut.t_valid ? BEATS - dut.t_beat : 0;
    assign line_count[11*CW +: CW] = r_busy ? BEATS : 0;
    assign line_count[12*CW +: CW] = v_busy ? BEATS : 0;
    assign line_count[13*CW +: CW] = dut.u_variance.sum_valid ? BEATS : 0;
    order #(.BEATS(BEATS), .N(N)) u_order (
        .clk(clk), .rst(rst), .in_take(s_take && s_ending), .in_user(s_axis_tuser),
        .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
        .line_count(line_count), .line_user(line_user), .at_beat({BB{1'b0}}), .at_user(3'd0), .outs(outs));

    integer    k;
    reg [15:0] held;
    always @* begin
        held = dut.u_variance.beat;
        for (k = 0; k < LP + 2; k = k + 1) held = held + dut.u_variance.valid[k];
        for (k = 10; k < 14; k = k + 1) held = held + line_count[k*CW +: CW];
    end
    always @* if (past) begin
        assert (dut.u_skid.valid_reg || !dut.u_skid.full_reg);
        assert (dut.u_fifo.level == held);
        assert (dut.u_variance.beat < BEATS && s_beat == g_sum[0].next);
        assert (dut.t_beat < BEATS && (dut.t_valid || dut.t_beat == 0));
        assert (dut.u_rsqrt.state != 7);
        // the memories: a bank is missed only by the beat, by the token, that waits for it
        assert (dut.c_addr < WORDS && dut.c_turn < TURNS);
        if (dut.swapped) assert (dut.u_param.used && dut.valid[1] && dut.user2[0] && dut.c_addr == 0 && dut.c_turn == 0);
        if (dut.u_param.used && !dut.u_param.full) assert (dut.swapped);
        if (dut.u_variance.u_param.used && !dut.u_variance.u_param.full) assert (dut.u_variance.state == 1);
    end
