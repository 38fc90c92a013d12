// SPDX-License-Identifier: MIT
// mlo_exit: each beat comes out, lanes sign-extended, with tlast where a token that is the last of its frame ends
given s_axis C/LANES;
inner [((C/LANES > 1) ? $clog2(C/LANES) : 1)-1:0] dut.beat;
inner dut.u_out.valid_reg;
inner dut.u_out.full_reg;
inner [LANES*BITS:0] dut.u_out.out_reg;
inner [LANES*BITS:0] dut.u_out.spare_reg;
    localparam W = LANES*PAD + 1;
    stream #(.DATA(W)) u_m (.clk(clk), .rst(rst), .valid(m_axis_tvalid), .ready(m_axis_tready), .data({m_axis_tlast, m_axis_tdata}), .user(3'd0));

    wire [W-1:0] in_word, out_word, spare_word;
    assign {in_word[W-1], out_word[W-1], spare_word[W-1]} = {s_ending && s_axis_tuser[1], dut.u_out.out_reg[LANES*BITS], dut.u_out.spare_reg[LANES*BITS]};
    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : g_lane
            wire signed [BITS-1:0] a = s_axis_tdata[i*BITS +: BITS], b = dut.u_out.out_reg[i*BITS +: BITS], c = dut.u_out.spare_reg[i*BITS +: BITS];
            wire signed [PAD-1:0]  aa = a, bb = b, cc = c;
            assign {in_word[i*PAD +: PAD], out_word[i*PAD +: PAD], spare_word[i*PAD +: PAD]} = {aa, bb, cc};
        end
    endgenerate
    wire [1:0] inside = {dut.u_out.full_reg, dut.u_out.valid_reg};
    watch #(.BITS(W), .N(2)) u_watch (.clk(clk), .rst(rst), .in_take(s_take), .in_word(in_word),
        .out_valid(m_axis_tvalid), .out_take(m_axis_tvalid && m_axis_tready), .out_word({m_axis_tlast, m_axis_tdata}),
        .line_valid(inside), .line_ends(inside), .line_word({spare_word, out_word}));
    always @* if (past) assert (dut.beat == s_beat && (dut.u_out.valid_reg || !dut.u_out.full_reg));

    // not vacuous: a second frame ends, and it had to wait
    reg [1:0] frames;
    reg       waited;
    always @(posedge clk) begin
        if (m_axis_tvalid && m_axis_tready && m_axis_tlast && frames != 2) frames <= frames + 1'b1;
        if (m_axis_tvalid && !m_axis_tready && m_axis_tlast) waited <= 1'b1;
        if (rst) {frames, waited} <= 0;
    end
    goal u_goal (.reached(past && frames == 2 && waited));
