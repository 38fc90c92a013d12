// SPDX-License-Identifier: MIT
// mlo_mvu: N/PE beats out for each K/SIMD beats in
given s_axis K/SIMD;
wanted m_axis N/PE;
reach s_axis m_axis 3;
    localparam KF = K / SIMD, NF = N / PE, DA = 3 + ($clog2(SIMD) + 1) / 2, DB = 8;
    localparam KW = (KF > 1) ? $clog2(KF) : 1, NW = (NF > 1) ? $clog2(NF) : 1, CW = $clog2(NF + 1);
    function integer turns_of(input integer pe, input integer kf);
        integer d;
        begin
            turns_of = 1;
            for (d = 1; d <= pe; d = d + 1) if (pe % d == 0 && d <= kf) turns_of = d;
        end
    endfunction
    localparam TURNS = turns_of(PE, KF), TW = (TURNS > 1) ? $clog2(TURNS) : 1;
inner [KW-1:0] dut.run_k;
inner [NW-1:0] dut.run_n;
inner dut.fresh;
inner [DA-1:0] dut.a_valid;
inner [DA-1:0] dut.a_mark;
inner [4*DA-1:0] dut.a_info;
inner dut.c_late;
inner [TW-1:0] dut.turn;
inner [2:0] dut.t_user;
inner [DB-1:0] dut.b_valid;
inner [DB-1:0] dut.b_mark;
inner [3*DB-1:0] dut.b_user;
inner [KW-1:0] dut.u_vector.load;
inner dut.u_vector.load_half;
inner dut.u_vector.read_half;
inner [2:0] dut.u_vector.user_0;
inner [2:0] dut.u_vector.user_1;
inner [1:0] dut.u_vector.count;
inner dut.u_weights.used;
inner dut.u_weights.full;
inner dut.u_channel.used;
inner dut.u_channel.full;
inner dut.u_out.valid_reg;
inner dut.u_out.full_reg;
inner [PE*YBITS+2:0] dut.u_out.out_reg;
inner [PE*YBITS+2:0] dut.u_out.spare_reg;
inner dut.with_table.u_lookup.m_axis_tvalid;
inner [2:0] dut.with_table.u_lookup.m_axis_tuser;
inner table_used = dut.with_table.u_lookup.lane[0].u_table.used;
inner table_full = dut.with_table.u_lookup.lane[0].u_table.full;

    // What is inside, oldest first: output register, table, segment B, the group that takes turns, segment A, two vectors.
    localparam NB = DA + DB + 4, N_LINE = NB + 2;
    wire [NB-1:0]        ends;                  // a slot that ends a group
    wire [N_LINE*CW-1:0] line_count;
    wire [3*N_LINE-1:0]  line_user;
    wire [1:0]           count = dut.u_vector.count;
    wire [2:0]           user0 = dut.u_vector.read_half ? dut.u_vector.user_1 : dut.u_vector.user_0;
    wire [2:0]           user1 = dut.u_vector.read_half ? dut.u_vector.user_0 : dut.u_vector.user_1;
    genvar i;
    assign ends[1:0]      = {dut.u_out.full_reg, dut.u_out.valid_reg};
    assign line_user[5:0] = {dut.u_out.spare_reg[(PE*YBITS) +: 3], dut.u_out.out_reg[(PE*YBITS) +: 3]};
    assign ends[3+DB]               = dut.turn != 0;
    assign line_user[3*(3+DB) +: 3] = dut.t_user;
    generate
        if (TABLE != 0) begin : g_table
            assign ends[2]           = dut.with_table.u_lookup.m_axis_tvalid;
            assign line_user[6 +: 3] = dut.with_table.u_lookup.m_axis_tuser;
        end else begin : g_none
            assign ends[2]           = 1'b0;
            assign line_user[6 +: 3] = 3'd0;
        end
        for (i = 0; i < DB; i = i + 1) begin : g_b
            assign ends[3+i] = dut.b_valid[DB-1-i];
            assign line_user[3*(3+i) +: 3] = dut.b_user[3*(DB-1-i) +: 3];
        end
        for (i = 0; i < DA; i = i + 1) begin : g_a
            assign ends[4+DB+i] = dut.a_valid[DA-1-i] && dut.a_info[4*(DA-1-i)];
            assign line_user[3*(4+DB+i) +: 3] = dut.a_info[4*(DA-1-i)+1 +: 3];
        end
        for (i = 0; i < NB; i = i + 1) begin : g_count
            assign line_count[i*CW +: CW] = ends[i];
        end
    endgenerate
    assign line_count[NB*CW +: CW]     = count != 0 ? NF - dut.run_n : 0;
    assign line_count[(NB+1)*CW +: CW] = count == 2 ? NF : 0;
    assign line_user[3*NB +: 6]        = {user1, user0};
    order #(.BEATS(NF), .N(N_LINE)) u_order (
        .clk(clk), .rst(rst), .in_take(s_take && s_ending), .in_user(s_axis_tuser),
        .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
        .line_count(line_count), .line_user(line_user), .at_beat({NW{1'b0}}), .at_user(3'd0), .outs(outs));

    // No more tokens are inside than contract/parts.v has room for: what is to leave of them is in the line.
    localparam CAP = (DA + DB + 3 + 3 * NF) / NF;
    reg [7:0] inside, to_leave;
    integer   n;
    always @(posedge clk) inside <= rst ? 0 : inside + (s_take && s_ending) - (m_take && m_ending);
    always @* begin
        to_leave = m_beat;
        for (n = 0; n < N_LINE; n = n + 1) to_leave = to_leave + line_count[n*CW +: CW];
    end
    always @* if (past) assert (inside * NF == to_leave);
    claim u_room (.holds(!past || !s_axis_tready || inside < CAP));

    // Changes of iteration on their way to the three memories.
    wire [DA-1:0] a_mark;
    generate
        for (i = 0; i < DA; i = i + 1) begin : g_turn
            assign a_mark[DA-1-i] = dut.a_mark[i];
            always @* if (past) assert (!(dut.a_mark[i] && dut.a_valid[i]));
        end
    endgenerate
    wire door = count != 0 && user0[0] && !dut.fresh && dut.run_n == 0;
    changes #(.N(1)) u_weights (.clk(clk), .rst(rst), .used(dut.u_weights.used), .ready(dut.u_weights.full),
        .mark(1'b0), .beat(1'b0), .door(door && dut.run_k == 0));
    changes #(.N(DA+1)) u_channel (.clk(clk), .rst(rst), .used(dut.u_channel.used), .ready(dut.u_channel.full),
        .mark({a_mark, dut.c_late}), .beat({ends[4+DB +: DA], 1'b0}), .door(door));
    generate
        if (TABLE != 0) begin : g_lookup
            wire [DB-1:0] b_mark;
            for (i = 0; i < DB; i = i + 1) begin : g_turn
                assign b_mark[DB-1-i] = dut.b_mark[i];
            end
            changes #(.N(DA+DB+2)) u_table (.clk(clk), .rst(rst), .used(table_used), .ready(table_full),
                .mark({a_mark, dut.c_late, 1'b0, b_mark}), .beat({ends[4+DB +: DA], 1'b0, ends[3 +: DB+1]}), .door(door));
            always @* if (past && !table_used && {a_mark, dut.c_late, b_mark} == 0) assert (!dut.u_weights.used);
            always @* if (past) assert ((dut.b_mark & dut.b_valid) == 0);
        end
    endgenerate
    always @* if (past) begin
        assert (dut.u_out.valid_reg || !dut.u_out.full_reg);
        assert (dut.run_k < KF && dut.run_n < NF && (!dut.fresh || (dut.run_k == 0 && dut.run_n == 0)));
        if (count == 0) assert (dut.fresh);
        // the vectors
        assert (count < 3 && dut.u_vector.load == s_beat && dut.u_vector.load_half == (dut.u_vector.read_half ^ count[0]));
        assert (count != 2 || s_beat == 0);
        if (s_beat != 0) assert (s_token == (dut.u_vector.load_half ? dut.u_vector.user_1 : dut.u_vector.user_0));
        // the first token begins an iteration
        if (!begun) assert (s_beat == 0 && count == 0 && !dut.u_weights.used);
        if (!dut.u_weights.used) begin
            assert (dut.fresh && ends == 0 && dut.a_valid == 0 && dut.a_mark == 0 && !dut.u_channel.used && !dut.c_late);
            assert (count == 0 ? !begun || s_beat != 0 : user0[0]);
            if (s_beat != 0 && count == 0) assert (s_token[0]);
        end
        if (dut.u_weights.used && !dut.u_channel.used) assert (dut.a_mark != 0 || dut.c_late);
        if (!dut.u_channel.used) assert (dut.turn == 0 && {dut.b_valid, dut.b_mark} == 0);
        assert (dut.turn < TURNS);
    end
