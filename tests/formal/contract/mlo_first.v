// SPDX-License-Identifier: MIT
// mlo_first: of each frame its first token comes out, every beat of it, and nothing else; the first one of all is marked
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] dut.at;
inner dut.rest;
inner dut.first;
inner dut.u_out.valid_reg;
inner dut.u_out.full_reg;
inner [WIDTH:0] dut.u_out.out_reg;
inner [WIDTH:0] dut.u_out.spare_reg;
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    wire          s_take = s_axis_tvalid && s_axis_tready, s_ending;
    wire [BW-1:0] s_beat;
    stream #(.GIVEN(1), .DATA(WIDTH + 1)) u_s (.clk(clk), .rst(rst), .valid(s_axis_tvalid), .ready(s_axis_tready), .data({s_axis_tlast, s_axis_tdata}), .user(3'd0));
    beats #(.BEATS(BEATS)) u_s_beats (.clk(clk), .rst(rst), .take(s_take), .beat(s_beat), .ending(s_ending));
    always @* if (past && s_axis_tvalid && s_axis_tlast) assume (s_ending);          // a frame has whole tokens
    stream #(.DATA(WIDTH + 3)) u_m (.clk(clk), .rst(rst), .valid(m_axis_tvalid), .ready(m_axis_tready), .data({m_axis_tuser, m_axis_tdata}), .user(3'd0));

    // the token that comes is not its frame's first one; not the first of all
    reg later, some;
    always @(posedge clk) begin
        if (s_take && s_ending) {later, some} <= {!s_axis_tlast, 1'b1};
        if (rst) {later, some} <= 0;
    end
    wire       m_take = m_axis_tvalid && m_axis_tready;
    wire [1:0] inside = {dut.u_out.full_reg, dut.u_out.valid_reg};
    watch #(.BITS(WIDTH + 1), .N(2)) u_watch (.clk(clk), .rst(rst), .in_take(s_take && !later), .in_word({!some, s_axis_tdata}),
        .out_valid(m_axis_tvalid), .out_take(m_take), .out_word({m_axis_tuser[0], m_axis_tdata}),
        .line_valid(inside), .line_ends(inside), .line_word({dut.u_out.spare_reg, dut.u_out.out_reg}));
    // a frame of its own of one token, which counts; what is dropped waits for nothing
    claim u_side (.holds(!past || !m_axis_tvalid || m_axis_tuser[2:1] == 2'b11));
    claim u_drop (.holds(!past || !later || s_axis_tready));
    always @* if (past) assert (dut.at == s_beat && dut.rest == later && dut.first == !some && (dut.u_out.valid_reg || !dut.u_out.full_reg));

    // not vacuous: a token that is not the first of all has left, one was dropped, and both sides had to wait
    reg more, dropped, waited, wait_in;
    always @(posedge clk) begin
        if (m_take && !m_axis_tuser[0]) more <= 1'b1;
        if (s_take && s_ending && later) dropped <= 1'b1;
        if (m_axis_tvalid && !m_axis_tready) waited <= 1'b1;
        if (s_axis_tvalid && !s_axis_tready) wait_in <= 1'b1;
        if (rst) {more, dropped, waited, wait_in} <= 0;
    end
    goal u_goal (.reached(past && more && dropped && waited && wait_in));
