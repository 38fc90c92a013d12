// SPDX-License-Identifier: MIT
// mlo_conv: C/PE beats out for each C/PE beats in, a token when its window is there or its frame's last
given s_axis C/PE;
wanted m_axis C/PE;
reach s_axis m_axis 3;
    localparam KF = KH * KW / SIMD, NF = C / PE, DA = 4 + ($clog2(SIMD) + 1) / 2, DB = 8;
    localparam KB = (KF > 1) ? $clog2(KF) : 1, NW = (NF > 1) ? $clog2(NF) : 1, CW = $clog2(NF + 1);
    // of mlo_window
    localparam BEHIND = (KH - 1 - TOP) * W + KW - 1 - LEFT, SPARE = (KH * KW == SIMD) ? 2 : 1;
    localparam SLOTS = ((KH - 1) * W + KW - 1 + SPARE + SIMD) / SIMD * SIMD, ROOM = SLOTS - (TOP * W + LEFT);
    localparam SW = $clog2(SLOTS), QW = $clog2(SLOTS + 1);
    function integer turns_of(input integer pe, input integer kf);
        integer d;
        begin
            turns_of = 1;
            for (d = 1; d <= pe; d = d + 1) if (pe % d == 0 && d <= kf) turns_of = d;
        end
    endfunction
    localparam TURNS = turns_of(PE, KF), TW = (TURNS > 1) ? $clog2(TURNS) : 1;
inner [KB-1:0] dut.run_k;
inner [NW-1:0] dut.run_n;
inner dut.fresh;
inner [DA-1:0] dut.a_valid;
inner [DA-1:0] dut.a_mark;
inner [4*DA-1:0] dut.a_info;
inner dut.c_late;
inner [TW-1:0] dut.turn;
inner [2:0] dut.t_user;
inner [DB-1:0] dut.b_valid;
inner [3*DB-1:0] dut.b_user;
inner [NW-1:0] dut.u_window.in_c;
inner [SW-1:0] dut.u_window.in_slot;
inner [QW-1:0] dut.u_window.in_at;
inner [QW-1:0] dut.u_window.count;
inner [QW-1:0] dut.u_window.credit;
inner dut.u_window.full;
inner [2:0] dut.u_window.user;
inner [SW-1:0] dut.u_window.slot;
inner dut.u_weights.used;
inner dut.u_weights.full;
inner dut.u_channel.used;
inner dut.u_channel.full;
inner dut.u_out.valid_reg;
inner dut.u_out.full_reg;
inner [PE*YBITS+2:0] dut.u_out.out_reg;
inner [PE*YBITS+2:0] dut.u_out.spare_reg;
memory ((KH-1)*W+KW+(KH*KW==SIMD)+SIMD)//SIMD*SIMD [2:0] kept = dut.u_window.user_mem;

    // What is inside, oldest first: output register, segment B, the group that takes turns, segment A, the token in turn, those that wait.
    localparam NB = DA + DB + 3, N_LINE = NB + 1 + ROOM;
    wire [NB-1:0]        ends;                  // a slot that ends a group
    wire [N_LINE*CW-1:0] line_count;
    wire [3*N_LINE-1:0]  line_user;
    wire [QW-1:0]        waiting = dut.u_window.count - dut.u_window.full;
    wire [6*SLOTS-1:0]   round = {kept, kept};
    genvar i;
    assign ends[1:0]      = {dut.u_out.full_reg, dut.u_out.valid_reg};
    assign line_user[5:0] = {dut.u_out.spare_reg[(PE*YBITS) +: 3], dut.u_out.out_reg[(PE*YBITS) +: 3]};
    assign ends[2+DB]               = dut.turn != 0;
    assign line_user[3*(2+DB) +: 3] = dut.t_user;
    generate
        for (i = 0; i < DB; i = i + 1) begin : g_b
            assign ends[2+i] = dut.b_valid[DB-1-i];
            assign line_user[3*(2+i) +: 3] = dut.b_user[3*(DB-1-i) +: 3];
        end
        for (i = 0; i < DA; i = i + 1) begin : g_a
            assign ends[3+DB+i] = dut.a_valid[DA-1-i] && dut.a_info[4*(DA-1-i)];
            assign line_user[3*(3+DB+i) +: 3] = dut.a_info[4*(DA-1-i)+1 +: 3];
        end
        for (i = 0; i < NB; i = i + 1) begin : g_count
            assign line_count[i*CW +: CW] = ends[i];
        end
        for (i = 0; i < ROOM; i = i + 1) begin : g_waits
            assign line_count[(NB+1+i)*CW +: CW] = i < waiting ? NF : 0;
            assign line_user[3*(NB+1+i) +: 3] = round[3*(dut.u_window.slot + i) +: 3];
        end
    endgenerate
    assign line_count[NB*CW +: CW] = dut.u_window.full ? NF - dut.run_n : 0;
    assign line_user[3*NB +: 3]    = dut.u_window.user;
    order #(.BEATS(NF), .N(N_LINE)) u_order (
        .clk(clk), .rst(rst), .in_take(s_take && s_ending), .in_user(s_axis_tuser),
        .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
        .line_count(line_count), .line_user(line_user), .at_beat({NW{1'b0}}), .at_user(3'd0), .outs(outs));

    // Changes of iteration on their way to the two memories.
    wire [DA-1:0] a_mark;
    generate
        for (i = 0; i < DA; i = i + 1) begin : g_turn
            assign a_mark[DA-1-i] = dut.a_mark[i];
            always @* if (past) assert (!(dut.a_mark[i] && dut.a_valid[i]));
        end
    endgenerate
    wire door = dut.u_window.full && dut.u_window.user[0] && !dut.fresh && dut.run_n == 0;
    changes #(.N(1)) u_weights (.clk(clk), .rst(rst), .used(dut.u_weights.used), .ready(dut.u_weights.full),
        .mark(1'b0), .beat(1'b0), .door(door && dut.run_k == 0));
    changes #(.N(DA+1)) u_channel (.clk(clk), .rst(rst), .used(dut.u_channel.used), .ready(dut.u_channel.full),
        .mark({a_mark, dut.c_late}), .beat({ends[3+DB +: DA], 1'b0}), .door(door));
    wire [2:0] oldest = dut.u_window.full ? dut.u_window.user : round[3*dut.u_window.slot +: 3];
    always @* if (past) begin
        assert (dut.u_out.valid_reg || !dut.u_out.full_reg);
        assert (dut.run_k < KF && dut.run_n < NF && (!dut.fresh || (dut.run_k == 0 && dut.run_n == 0)));
        if (!dut.u_window.full) assert (dut.fresh);
        // the window: tokens that may not begin yet are those of the frame at the door, as many as are looked at ahead
        assert (dut.u_window.in_c == s_beat && dut.u_window.in_slot < SLOTS && dut.u_window.slot < SLOTS);
        assert (dut.u_window.count <= ROOM && dut.u_window.in_at <= BEHIND);
        assert (dut.u_window.count == 0 + dut.u_window.full + dut.u_window.credit + dut.u_window.in_at);
        assert (dut.u_window.in_slot == (dut.u_window.slot + waiting) % SLOTS);
        // the first token begins an iteration
        if (!begun) assert (s_beat == 0 && dut.u_window.count == 0 && !dut.u_weights.used);
        if (!dut.u_weights.used) begin
            assert (dut.fresh && ends == 0 && dut.a_valid == 0 && dut.a_mark == 0 && !dut.u_channel.used && !dut.c_late);
            assert (dut.u_window.count == 0 ? !begun || s_beat != 0 : oldest[0]);
            if (s_beat != 0 && dut.u_window.count == 0) assert (s_token[0]);
        end
        if (dut.u_weights.used && !dut.u_channel.used) assert (dut.a_mark != 0 || dut.c_late);
        if (!dut.u_channel.used) assert (dut.turn == 0 && dut.b_valid == 0);
        assert (dut.turn < TURNS);
    end
