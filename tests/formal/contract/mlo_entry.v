// SPDX-License-Identifier: MIT
// mlo_entry: each beat comes out, lanes without their padding, with the sideband of its token: `last` that came with the
// token's final beat, `key` that came with its mask beat; none before both are there
inner [((C/LANES > 1) ? $clog2(C/LANES) : 1)-1:0] dut.in_beat;
inner [((C/LANES > 1) ? $clog2(C/LANES) : 1)-1:0] dut.out_beat;
inner [$clog2(2*(C/LANES)+3)-1:0] dut.u_data.level;
inner [LANES*BITS*(2*(C/LANES)+2)-1:0] dut.u_data.words;
inner dut.u_data.held;
inner [2:0] dut.u_last.level;
inner [3:0] dut.u_last.words;
inner dut.mask.u_mask.valid_reg;
inner dut.mask.u_mask.full_reg;
inner dut.mask.u_mask.out_reg;
inner dut.mask.u_mask.spare_reg;
inner dut.u_out.valid_reg;
inner dut.u_out.full_reg;
inner [LANES*BITS+2:0] dut.u_out.out_reg;
inner [LANES*BITS+2:0] dut.u_out.spare_reg;
    localparam BEATS = C / LANES, BW = (BEATS > 1) ? $clog2(BEATS) : 1, W = LANES * BITS, DEPTH = 2 * BEATS + 2, LW = $clog2(DEPTH + 1);
    wire          s_take = s_axis_tvalid && s_axis_tready, s1_take = s1_axis_tvalid && s1_axis_tready, m_take = m_axis_tvalid && m_axis_tready;
    wire [BW-1:0] s_beat, m_beat;
    wire          s_ending, m_ending;
    stream #(.GIVEN(1), .DATA(LANES*PAD + 1)) u_s (.clk(clk), .rst(rst), .valid(s_axis_tvalid), .ready(s_axis_tready), .data({s_axis_tlast, s_axis_tdata}), .user(3'd0));
    stream #(.GIVEN(1), .DATA(9)) u_s1 (.clk(clk), .rst(rst), .valid(s1_axis_tvalid), .ready(s1_axis_tready), .data({s1_axis_tlast, s1_axis_tdata}), .user(3'd0));
    stream #(.DATA(W + 3)) u_m (.clk(clk), .rst(rst), .valid(m_axis_tvalid), .ready(m_axis_tready), .data({m_axis_tuser, m_axis_tdata}), .user(3'd0));
    beats #(.BEATS(BEATS)) u_s_beats (.clk(clk), .rst(rst), .take(s_take), .beat(s_beat), .ending(s_ending));
    beats #(.BEATS(BEATS)) u_m_beats (.clk(clk), .rst(rst), .take(m_take), .beat(m_beat), .ending(m_ending));
    always @* if (past && s_axis_tvalid && s_axis_tlast) assume (s_ending);          // a frame has whole tokens

    // the words
    wire [W-1:0]     in_word;
    wire [1:0]       out_valid = {dut.u_out.full_reg, dut.u_out.valid_reg};
    wire [DEPTH+1:0] data_valid;
    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : g_lane
            assign in_word[i*BITS +: BITS] = s_axis_tdata[i*PAD +: BITS];
        end
        for (i = 0; i < DEPTH; i = i + 1) begin : g_data
            assign data_valid[2+i] = i < dut.u_data.level;
        end
    endgenerate
    assign data_valid[1:0] = out_valid;
    watch #(.BITS(W), .N(DEPTH + 2)) u_words (.clk(clk), .rst(rst), .in_take(s_take), .in_word(in_word),
        .out_valid(m_axis_tvalid), .out_take(m_take), .out_word(m_axis_tdata),
        .line_valid(data_valid), .line_ends(data_valid), .line_word({dut.u_data.words, dut.u_out.spare_reg[W-1:0], dut.u_out.out_reg[W-1:0]}));

    // the sidebands: beats of the tokens that have passed the gate, then the tokens behind it
    wire       next_ends = m_beat == (BEATS == 1 ? 0 : BEATS - 2);
    wire [1:0] out_ends  = {next_ends, m_ending} & out_valid;
    wire [3:0] flags;
    generate
        for (i = 0; i < 4; i = i + 1) begin : g_last
            assign flags[i] = i < dut.u_last.level;
        end
    endgenerate
    watch #(.BITS(1), .N(6)) u_lasts (.clk(clk), .rst(rst), .in_take(s_take && s_ending), .in_word(s_axis_tlast),
        .out_valid(m_axis_tvalid), .out_take(m_take && m_ending), .out_word(m_axis_tuser[1]),
        .line_valid({flags, out_valid}), .line_ends({flags, out_ends}), .line_word({dut.u_last.words, dut.u_out.spare_reg[W+1], dut.u_out.out_reg[W+1]}));
    generate
        if (MASK != 0) begin : g_mask
            wire [1:0] keys = {dut.mask.u_mask.full_reg, dut.mask.u_mask.valid_reg};
            watch #(.BITS(1), .N(4)) u_keys (.clk(clk), .rst(rst), .in_take(s1_take), .in_word(s1_axis_tdata[0]),
                .out_valid(m_axis_tvalid), .out_take(m_take && m_ending), .out_word(m_axis_tuser[2]),
                .line_valid({keys, out_valid}), .line_ends({keys, out_ends}),
                .line_word({dut.mask.u_mask.spare_reg, dut.mask.u_mask.out_reg, dut.u_out.spare_reg[W+2], dut.u_out.out_reg[W+2]}));
            always @* if (past) assert (dut.mask.u_mask.valid_reg || !dut.mask.u_mask.full_reg);
            always @* if (past && dut.out_beat != 0) assert (dut.mask.u_mask.valid_reg);
        end else begin : g_all
            claim u_key   (.holds(!past || !m_axis_tvalid || m_axis_tuser[2]));
            claim u_still (.holds(!past || !s1_axis_tready));
            always @* if (past) assert ((!dut.u_out.valid_reg || dut.u_out.out_reg[W+2]) && (!dut.u_out.full_reg || dut.u_out.spare_reg[W+2]));
        end
    endgenerate
    claim u_first (.holds(!past || !m_axis_tvalid || !m_axis_tuser[0]));

    always @* if (past) begin
        assert (dut.u_out.valid_reg || !dut.u_out.full_reg);
        assert ((!dut.u_out.valid_reg || !dut.u_out.out_reg[W]) && (!dut.u_out.full_reg || !dut.u_out.spare_reg[W]));
        assert (dut.in_beat == s_beat && dut.out_beat == (m_beat + dut.u_out.valid_reg + dut.u_out.full_reg) % BEATS);
        assert (dut.u_data.level + dut.out_beat == dut.u_last.level * BEATS + s_beat);
        if (dut.out_beat != 0) assert (dut.u_last.level != 0);
    end

    // not vacuous: a second frame ends after a token of another kind, and both sides had to wait
    reg [1:0] frames;
    reg       other, waited, wait_in;
    always @(posedge clk) begin
        if (m_take && m_ending && m_axis_tuser[1] && frames != 2) frames <= frames + 1'b1;
        if (m_take && !m_axis_tuser[1] && (MASK == 0 || !m_axis_tuser[2])) other <= 1'b1;
        if (m_axis_tvalid && !m_axis_tready) waited <= 1'b1;
        if (s_axis_tvalid && !s_axis_tready) wait_in <= 1'b1;
        if (rst) {frames, other, waited, wait_in} <= 0;
    end
    goal u_goal (.reached(past && frames == 2 && other && waited && wait_in));
