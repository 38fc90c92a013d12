// SPDX-License-Identifier: MIT
// mlo_newest: of each frame its last token comes out, every beat of it, and nothing else; the first one of all is marked
wanted m_axis BEATS;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] dut.at;
inner dut.going;
inner dut.leaving;
memory BEATS [WIDTH-1:0] words = dut.token;
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    wire          s_take = s_axis_tvalid && s_axis_tready, s_ending, frame = s_take && s_ending && s_axis_tlast;
    wire [BW-1:0] s_beat;
    stream #(.GIVEN(1), .DATA(WIDTH + 1)) u_s (.clk(clk), .rst(rst), .valid(s_axis_tvalid), .ready(s_axis_tready), .data({s_axis_tlast, s_axis_tdata}), .user(3'd0));
    beats #(.BEATS(BEATS)) u_s_beats (.clk(clk), .rst(rst), .take(s_take), .beat(s_beat), .ending(s_ending));
    always @* if (past && s_axis_tvalid && s_axis_tlast) assume (s_ending);          // a frame has whole tokens

    // any beat of a token: what came there last when a frame ends leaves there, frame by frame
    (* anyconst *) wire [BW-1:0] p;
    always @* assume (p < BEATS);
    reg  [WIDTH-1:0] kept;
    always @(posedge clk) if (s_take && s_beat == p) kept <= s_axis_tdata;
    wire             here = m_axis_tvalid && m_beat == p, stored = dut.going && dut.at <= p;
    wire [WIDTH-1:0] word = words >> WIDTH * p;
    watch #(.BITS(WIDTH), .N(2)) u_watch (.clk(clk), .rst(rst), .in_take(frame), .in_word(p == BEATS - 1 ? s_axis_tdata : kept),
        .out_valid(here), .out_take(here && m_axis_tready), .out_word(m_axis_tdata),
        .line_valid({stored, here}), .line_ends({stored, here}), .line_word({word, m_axis_tdata}));

    // a frame of its own of one token, which counts; the first one begins the parameters' only iteration
    reg some;
    always @(posedge clk) some <= !rst && (some || (m_take && m_ending));
    claim u_side (.holds(!past || !m_axis_tvalid || m_axis_tuser == {2'b11, !some}));

    always @* if (past) begin
        assert (dut.going ? s_beat == 0 && dut.at == (m_beat + m_axis_tvalid) % BEATS : dut.at == s_beat);
        assert (!m_axis_tvalid || dut.leaving == m_ending);
        if (!dut.going) assert (m_axis_tvalid ? m_ending : m_beat == 0);
        if (dut.going || s_beat > p) assert (word == kept);
        assert (m_axis_tuser == {2'b11, !some});
    end

    // not vacuous: two frames have left, one of them of two tokens, and both sides had to wait
    reg [1:0] frames;
    reg       dropped, waited, wait_in;
    always @(posedge clk) begin
        if (m_take && m_ending && frames != 2) frames <= frames + 1'b1;
        if (s_take && s_ending && !s_axis_tlast) dropped <= 1'b1;
        if (m_axis_tvalid && !m_axis_tready) waited <= 1'b1;
        if (s_axis_tvalid && !s_axis_tready) wait_in <= 1'b1;
        if (rst) {frames, dropped, waited, wait_in} <= 0;
    end
    goal u_goal (.reached(past && frames == 2 && dropped && waited && wait_in));
