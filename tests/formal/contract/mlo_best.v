// SPDX-License-Identifier: MIT
// mlo_best: a beat out for each token in; all beats but its final one are taken as they come
given s_axis C;
wanted m_axis 1;
reach s_axis m_axis 3;
inner [((C > 1) ? $clog2(C) : 1)-1:0] dut.at;
inner [2:0] dut.user;
inner dut.ended;
    order #(.BEATS(1), .N(2)) u_order (
        .clk(clk), .rst(rst), .in_take(s_take && s_ending), .in_user(s_axis_tuser),
        .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
        .line_count({dut.ended, m_axis_tvalid}), .line_user({dut.user, m_axis_tuser}), .at_beat(1'b0), .at_user(3'd0), .outs(outs));
    claim u_ready (.holds(!past || s_axis_tready == !(dut.ended && m_axis_tvalid)));
    always @* if (past) begin
        assert (dut.at == s_beat);
        if (dut.ended) assert (s_beat == 0);
        if (s_beat != 0) assert (dut.user == s_token);
    end
