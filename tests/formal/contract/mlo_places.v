// SPDX-License-Identifier: MIT
// mlo_places: two indices for each id, in their order, tlast with the second one where the id had it; a row out for each two rows in,
// beat for beat, tlast that of the second one. (Which index, which sum: the module's own proof.)
inner dut.second;
inner dut.adds;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] dut.at;
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    wire ids_take = s_ids_tvalid && s_ids_tready, index_take = m_ids_tvalid && m_ids_tready;
    wire s_take = s_axis_tvalid && s_axis_tready, m_take = m_axis_tvalid && m_axis_tready, s_ending, m_ending;
    wire [BW-1:0] s_beat, m_beat;
    stream #(.GIVEN(1), .DATA(49)) u_ids (.clk(clk), .rst(rst), .valid(s_ids_tvalid), .ready(s_ids_tready), .data({s_ids_tlast, s_ids_place, s_ids_tdata}), .user(3'd0));
    stream #(.GIVEN(1), .DATA(16*LANES + 1)) u_s (.clk(clk), .rst(rst), .valid(s_axis_tvalid), .ready(s_axis_tready), .data({s_axis_tlast, s_axis_tdata}), .user(3'd0));
    stream #(.DATA(33)) u_index (.clk(clk), .rst(rst), .valid(m_ids_tvalid), .ready(m_ids_tready), .data({m_ids_tlast, m_ids_tdata}), .user(3'd0));
    stream #(.DATA(16*LANES + 1)) u_m (.clk(clk), .rst(rst), .valid(m_axis_tvalid), .ready(m_axis_tready), .data({m_axis_tlast, m_axis_tdata}), .user(3'd0));
    beats #(.BEATS(BEATS)) u_s_beats (.clk(clk), .rst(rst), .take(s_take), .beat(s_beat), .ending(s_ending));
    beats #(.BEATS(BEATS)) u_m_beats (.clk(clk), .rst(rst), .take(m_take), .beat(m_beat), .ending(m_ending));

    // indices: in turn; the second one leaves for the id that was taken with it
    reg odd;
    always @(posedge clk) odd <= !rst && (odd ^ index_take);
    wire stands = m_ids_tvalid && !dut.second;
    watch #(.BITS(1), .N(1)) u_watch_ids (.clk(clk), .rst(rst), .in_take(ids_take), .in_word(s_ids_tlast),
        .out_valid(m_ids_tvalid && odd), .out_take(index_take && odd), .out_word(m_ids_tlast),
        .line_valid(stands), .line_ends(stands), .line_word(m_ids_tlast));
    claim u_first (.holds(!past || !m_ids_tvalid || odd || !m_ids_tlast));
    always @* if (past && !rst) assert (odd == (dut.second ^ m_ids_tvalid));

    // rows: in turn; each beat of the second one is a beat of the sum
    reg second_row;
    always @(posedge clk) second_row <= !rst && (second_row ^ (s_take && s_ending));
    watch #(.BITS(1), .N(1)) u_watch_rows (.clk(clk), .rst(rst), .in_take(s_take && second_row), .in_word(s_axis_tlast),
        .out_valid(m_axis_tvalid), .out_take(m_take), .out_word(m_axis_tlast), .line_valid(m_axis_tvalid), .line_ends(m_axis_tvalid), .line_word(m_axis_tlast));
    always @* if (past && !rst) assert (dut.adds == second_row && dut.at == s_beat);
    claim u_waits (.holds(!past || !s_axis_tvalid || second_row || s_axis_tready));

    // not vacuous: a frame's end has gone both ways, and all sides had to wait
    reg index_last, sum_last, waited, wait_in;
    always @(posedge clk) begin
        if (index_take && m_ids_tlast) index_last <= 1'b1;
        if (m_take && m_axis_tlast) sum_last <= 1'b1;
        if (m_axis_tvalid && !m_axis_tready) waited <= 1'b1;
        if (s_axis_tvalid && !s_axis_tready) wait_in <= 1'b1;
        if (rst) {index_last, sum_last, waited, wait_in} <= 0;
    end
    goal u_goal (.reached(past && index_last && sum_last && waited && wait_in));
