// SPDX-License-Identifier: MIT
// mlo_place: a beat out for each beat in
given s_axis C/PE;
wanted m_axis C/PE;
reach s_axis m_axis 3;
inner dut.valid;
inner dut.fresh;
inner dut.c_ready;
inner dut.t_ready;
inner dut.u_scale.used;
inner dut.u_table.used;
inner [((C/PE > 1) ? $clog2(C/PE) : 1)-1:0] dut.beat;
inner [2:0] dut.user;
inner [6:0] dut.v;
inner [20:0] dut.u;
inner dut.u_out.valid_reg;
inner dut.u_out.full_reg;
inner [PE*YBITS+2:0] dut.u_out.out_reg;
inner [PE*YBITS+2:0] dut.u_out.spare_reg;
    localparam CW = $clog2(C/PE + 1);
    wire [9:0]       valid;                     // youngest first
    wire [10*CW-1:0] line_count;
    wire [29:0]      line_user;
    genvar i;
    generate
        for (i = 0; i < 7; i = i + 1) begin : g_lanes
            assign valid[8-i]              = dut.v[i];
            assign line_user[3*(8-i) +: 3] = dut.u[3*i +: 3];
        end
        for (i = 0; i < 10; i = i + 1) begin : g_count
            assign line_count[i*CW +: CW] = valid[i];
        end
    endgenerate
    assign {valid[9], line_user[29:27]} = {dut.valid, dut.user};
    assign valid[1:0]     = {dut.u_out.full_reg, dut.u_out.valid_reg};
    assign line_user[5:0] = {dut.u_out.spare_reg[(PE*YBITS) +: 3], dut.u_out.out_reg[(PE*YBITS) +: 3]};
    order #(.BEATS(C/PE), .N(10)) u_order (
        .clk(clk), .rst(rst), .in_take(s_take && s_start), .in_user(s_axis_tuser),
        .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
        .line_count(line_count), .line_user(line_user), .at_beat(s_beat), .at_user(s_token), .outs(outs));

    always @* if (past) begin
        assert (dut.u_out.valid_reg || !dut.u_out.full_reg);
        assert (dut.beat < C/PE && (dut.beat == 0 || !dut.fresh));
        assert (s_beat == (dut.beat + dut.valid) % (C/PE));
        assert (!dut.valid || s_token == dut.user);
        assert (dut.u_scale.used == dut.u_table.used);
        if (!dut.u_scale.used) assert (dut.beat == 0 && dut.fresh && dut.valid == begun);
        if (!begun) assert (s_beat == 0 && line_count == 0);
        // banks that were there are missed only between the change and the first beat
        if (dut.u_scale.used ? !(dut.c_ready && dut.t_ready) : begun) assert (dut.valid && dut.user[0] && dut.beat == 0 && dut.fresh == !dut.u_scale.used);
    end
