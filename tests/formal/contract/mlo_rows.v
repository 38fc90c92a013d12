// SPDX-License-Identifier: MIT
// mlo_rows: a token out for each id in, in their order, in as many beats as a row has, tlast with its last one where the id had it;
// requests of memory stand; also across flushes, which forget what is inside. (Which row: the module's own proof and bench.)
inner dut.asks;
inner dut.ends;
inner [((C/LANES > 1) ? $clog2(C/LANES) : 1)-1:0] dut.at;
inner [2:0] dut.u_marks.level;
inner [3:0] dut.u_marks.words;
inner dut.u_width.u_skid.valid_reg;
inner dut.u_width.u_skid.full_reg;
    localparam BEATS = C / LANES, BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    wire          off = rst || flush, s_take = s_axis_tvalid && s_axis_tready, m_take = m_axis_tvalid && m_axis_tready, m_ending;
    wire [BW-1:0] m_beat;
    stream #(.GIVEN(1), .DATA(33)) u_s (.clk(clk), .rst(off), .valid(s_axis_tvalid), .ready(s_axis_tready), .data({s_axis_tlast, s_axis_tdata}), .user(3'd0));
    stream #(.DATA(16*LANES + 1)) u_m (.clk(clk), .rst(off), .valid(m_axis_tvalid), .ready(m_axis_tready), .data({m_axis_tlast, m_axis_tdata}), .user(3'd0));
    beats #(.BEATS(BEATS)) u_m_beats (.clk(clk), .rst(off), .take(m_take), .beat(m_beat), .ending(m_ending));
    stream #(.DATA(ADDR_WIDTH + 14)) u_ar (.clk(clk), .rst(rst), .valid(m_axi_arvalid), .ready(m_axi_arready),
        .data({m_axi_arid, m_axi_arburst, m_axi_arsize, m_axi_arlen, m_axi_araddr}), .user(3'd0));

    // the ids that are inside: rows that are asked for, oldest first, and the one that is to be
    wire [4:0] line;
    genvar i;
    generate
        for (i = 0; i < 4; i = i + 1) begin : g_marks
            assign line[i] = i < dut.u_marks.level;
        end
    endgenerate
    assign line[4] = dut.asks;
    watch #(.BITS(1), .N(5)) u_watch (.clk(clk), .rst(off), .in_take(s_take), .in_word(s_axis_tlast),
        .out_valid(m_axis_tvalid && m_ending), .out_take(m_take && m_ending), .out_word(m_axis_tlast),
        .line_valid(line), .line_ends(line), .line_word({dut.ends, dut.u_marks.words}));
    claim u_of   (.holds(!past || !m_axis_tvalid || dut.u_marks.level != 0));
    claim u_last (.holds(!past || !m_axis_tvalid || m_ending || !m_axis_tlast));
    always @* if (past) begin
        assert (dut.at == m_beat && dut.u_marks.level <= 4);
        assert (dut.u_width.u_skid.valid_reg || !dut.u_width.u_skid.full_reg);
    end

    // not vacuous: a second row leaves behind a flush, and both sides had to wait
    reg [1:0] rows;
    reg       flushed, waited, wait_in;
    always @(posedge clk) begin
        if (flush && m_axis_tvalid) flushed <= 1'b1;
        if (flushed && m_take && m_ending && rows != 2) rows <= rows + 1'b1;
        if (m_axis_tvalid && !m_axis_tready) waited <= 1'b1;
        if (s_axis_tvalid && !s_axis_tready) wait_in <= 1'b1;
        if (rst) {rows, flushed, waited, wait_in} <= 0;
    end
    goal u_goal (.reached(past && rows == 2 && waited && wait_in));
