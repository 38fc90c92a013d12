// SPDX-License-Identifier: MIT
// What kernels of two streams have in common: mlo_pair in front, a pipeline of STAGES whose registers `valid` and `user` say what is
// in it, mlo_param, and a skid behind. A beat out for each beat of a, with its sideband, and for each of b.
given s_axis_a C/PE;
given s_axis_b C/PE;
wanted m_axis C/PE;
reach s_axis_a m_axis 3;
inner [STAGES-1:0] dut.valid;
inner [3*STAGES-1:0] dut.user;
inner dut.u_pair.swapped;
inner [((C/PE > 1) ? $clog2(C/PE) : 1)-1:0] dut.u_pair.beat;
inner dut.u_param.used;
inner dut.u_param.full;
inner dut.u_skid_y.valid_reg;
inner dut.u_skid_y.full_reg;
inner [PE*YBITS+2:0] dut.u_skid_y.out_reg;
inner [PE*YBITS+2:0] dut.u_skid_y.spare_reg;
inner dut.u_pair.u_skid_a.valid_reg;
inner dut.u_pair.u_skid_a.full_reg;
inner [PE*ABITS+2:0] dut.u_pair.u_skid_a.out_reg;
inner [PE*ABITS+2:0] dut.u_pair.u_skid_a.spare_reg;
inner dut.u_pair.u_skid_b.valid_reg;
inner dut.u_pair.u_skid_b.full_reg;
    localparam CW = $clog2(C/PE + 1);
    wire [STAGES+3:0]            valid;
    wire [(STAGES+4)*CW-1:0]     line_count;
    wire [3*(STAGES+4)-1:0]      line_user;
    genvar i;
    generate
        for (i = 0; i < STAGES + 4; i = i + 1) begin : g_count
            assign line_count[i*CW +: CW] = valid[i];
        end
        for (i = 0; i < STAGES; i = i + 1) begin : g_stage
            assign valid[2+i]            = dut.valid[STAGES-1-i];
            assign line_user[6+3*i +: 3] = dut.user[3*(STAGES-1-i) +: 3];
        end
    endgenerate
    assign valid[1:0]                 = {dut.u_skid_y.full_reg, dut.u_skid_y.valid_reg};
    assign line_user[5:0]             = {dut.u_skid_y.spare_reg[(PE*YBITS) +: 3], dut.u_skid_y.out_reg[(PE*YBITS) +: 3]};
    assign valid[STAGES+2 +: 2]       = {dut.u_pair.u_skid_a.full_reg, dut.u_pair.u_skid_a.valid_reg};
    assign line_user[3*STAGES+6 +: 6] = {dut.u_pair.u_skid_a.spare_reg[(PE*ABITS) +: 3], dut.u_pair.u_skid_a.out_reg[(PE*ABITS) +: 3]};
    order #(.BEATS(C/PE), .N(STAGES+4)) u_order (
        .clk(clk), .rst(rst), .in_take(s_a_take && s_a_start), .in_user(s_axis_a_tuser),
        .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
        .line_count(line_count), .line_user(line_user), .at_beat(s_a_beat), .at_user(s_a_token), .outs(outs));

    // As many beats of b: taken and not delivered.
    reg  [4:0] b_inside;
    always @(posedge clk) b_inside <= rst ? 0 : b_inside + s_b_take - m_take;
    wire [2:0] front = dut.u_pair.u_skid_a.out_reg[PE*ABITS +: 3];
    wire       waits = dut.u_pair.u_skid_a.valid_reg && front[0] && dut.u_pair.beat == 0;      // the beat in front begins an iteration
    wire [1:0] a_held = dut.u_pair.u_skid_a.valid_reg + dut.u_pair.u_skid_a.full_reg, b_held = dut.u_pair.u_skid_b.valid_reg + dut.u_pair.u_skid_b.full_reg;
    integer    k;
    reg  [4:0] held;                            // beats in the pipeline and behind it
    always @* begin
        held = 0;
        for (k = 0; k < STAGES + 2; k = k + 1) held = held + valid[k];
    end
    always @* if (past) begin
        assert (dut.u_skid_y.valid_reg || !dut.u_skid_y.full_reg);
        assert (dut.u_pair.u_skid_a.valid_reg || !dut.u_pair.u_skid_a.full_reg);
        assert (dut.u_pair.u_skid_b.valid_reg || !dut.u_pair.u_skid_b.full_reg);
        assert (b_inside == b_held + held);
        assert (dut.u_pair.beat < C/PE && s_a_beat == (dut.u_pair.beat + a_held) % (C/PE));
        if (dut.u_pair.beat != 0 && !dut.u_pair.u_skid_a.valid_reg) assert (s_a_beat == dut.u_pair.beat);
        if (dut.u_pair.swapped) assert (waits && dut.u_pair.u_skid_b.valid_reg && dut.u_param.used);
        if (dut.u_param.used && !dut.u_param.full) assert (dut.u_pair.swapped);
        if (!begun) assert (a_held == 0 && s_a_beat == 0 && !dut.u_param.used);
        if (!dut.u_param.used) assert (valid[STAGES+1:0] == 0 && dut.u_pair.beat == 0);
        if (!dut.u_param.used && begun) assert (waits);
    end
