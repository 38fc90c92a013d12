// SPDX-License-Identifier: MIT
// mlo_attention: a token out for each token of Q in, H*D/SIMD beats each; all of its parts together, with any numbers.
// (Proved with tokens of one or two beats, of a head or of two heads, with frames of up to five keys in up to three groups, and of one head with PROB and ROUND; CAP, CAUSAL, two heads that read one, and caches.)
given s_axis_q H*D/SIMD;
given s_axis_k KVH*D/SIMD;
given s_axis_v KVH*D/SIMD;
wanted m_axis H*D/SIMD;
reach s_axis_q m_axis 2;
    localparam DS = D / SIMD, BEATS = H * DS, CW = $clog2(BEATS + 1), BB = (KVH*DS > 1) ? $clog2(KVH*DS) : 1, QB = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam G = (T + PE - 1) / PE, GW = (G > 1) ? $clog2(G) : 1, AW = (G*KVH*DS > 1) ? $clog2(G*KVH*DS) : 1, FW = (DS > 1) ? $clog2(DS) : 1, HW = (H > 1) ? $clog2(H) : 1;
    localparam LP = (PE > 1) ? $clog2(PE) : 0, LT = (T > 1) ? $clog2(T) : 0, LN = 7*PROB, MB = (PROB != 0) ? 16 : 17 + LT;
    localparam PAR = 44 + 30*PROB + 32*ROUND + 22*CAP, INFO = 22 + 30*PROB, WALK = (CAUSAL != 0 || BAND != 0 ? GW : 0) + AW*BAND, SIDE = 3 + WALK, ALONG = 9 + 30*PROB + WALK, ROWS = (PROB != 0 || CAP != 0) ? 8 : 4;   // constants of rows, and rows
    localparam ROWB = MB + 9, QUEUE = 16 + LP + LN, LATE = 2 + LP + LN;
    localparam LQ = $clog2(QUEUE + 1), W = SIMD*YBITS + 3;
    // Q: two rows
inner dut.u_q.full_reg;
inner dut.u_q.both_reg;
inner dut.u_q.fill_reg;
inner dut.u_q.read_reg;
inner [2:0] dut.u_q.user_reg;
inner [2:0] dut.u_q.last_reg;
inner [FW-1:0] dut.u_q.beat_reg;
    // rows that wait for their maximum, for their sum, in the division
inner [2:0] dut.u_score.u_row.level;
inner [(PAR+SIDE)*4-1:0] dut.u_score.u_row.words;
inner [$clog2(ROWS+1)-1:0] dut.u_softmax.u_info.level;
inner [(INFO+SIDE)*ROWS-1:0] dut.u_softmax.u_info.words;
inner dut.u_divide.run_reg;
inner [ALONG-1:0] dut.u_divide.user_reg;
inner dut.u_divide.out_valid_reg;
inner [ALONG-1:0] dut.u_divide.out_user_reg;
    // mix
inner [GW-1:0] dut.u_mix.group_reg;
inner dut.u_mix.group_first;
inner dut.u_mix.later_last;
inner [GW-1:0] dut.u_mix.groups_1;
inner [FW-1:0] dut.u_mix.pass_reg;
inner [HW-1:0] dut.u_mix.head_reg;
inner [LQ-1:0] dut.u_mix.room_reg;
inner [LATE:0] dut.u_mix.u_along.valid_reg;
inner [(LATE+1)*(ROWB+2)-1:0] dut.u_mix.u_along.line_reg;
inner dut.u_mix.sum_valid;
inner [ROWB-1:0] dut.u_mix.row_sum;
inner [5:0] dut.u_mix.u_user.valid_reg;
inner [17:0] dut.u_mix.u_user.line_reg;
inner [LQ-1:0] dut.u_mix.u_out.level;
inner [W*QUEUE-1:0] dut.u_mix.u_out.words;
    // frames of V
inner [1:0] dut.u_k.full_reg;
inner [1:0] dut.u_v.full_reg;
inner dut.u_v.fill_reg;
inner dut.u_v.known_reg;
inner dut.u_k.known_reg;
inner [2:0] dut.job_valid;
inner [31:0] dut.job;
inner dut.u_v.read_reg;
inner [GW-1:0] dut.u_v.group_reg;
inner [PE-1:0] dut.u_v.lanes_reg;
inner [GW-1:0] dut.u_v.groups_0_reg;
inner [GW-1:0] dut.u_v.groups_1_reg;
inner [1:0] dut.u_v.single_reg;
inner [BB-1:0] dut.u_v.beat_reg;
inner [BB-1:0] dut.u_k.beat_reg;
    // constants
inner dut.u_param.swapped_reg;
inner dut.u_param.load_reg;
inner dut.u_param.ok_reg;
inner dut.u_param.u_param.used;
inner dut.u_param.u_param.full;

    // What is inside, oldest first: output queue, requantization, sum, products; the row in mix, rows behind it, rows of Q.
    localparam NB = QUEUE + 6 + 1 + LATE + 1, N = NB + 2 + ROWS + 4 + 2;
    wire [NB-1:0]    beats;
    wire [N*CW-1:0]  line_count;
    wire [3*N-1:0]   line_user;
    genvar i;
    generate
        for (i = 0; i < QUEUE; i = i + 1) begin : g_queue
            assign beats[i]            = i < dut.u_mix.u_out.level;
            assign line_user[3*i +: 3] = dut.u_mix.u_out.words[W*i + W - 3 +: 3];
        end
        for (i = 0; i < 6; i = i + 1) begin : g_user
            assign beats[QUEUE+i]              = dut.u_mix.u_user.valid_reg[5-i];
            assign line_user[3*(QUEUE+i) +: 3] = dut.u_mix.u_user.line_reg[3*(5-i) +: 3];
        end
        assign beats[QUEUE+6]              = dut.u_mix.sum_valid;
        assign line_user[3*(QUEUE+6) +: 3] = dut.u_mix.row_sum[ROWB-3 +: 3];
        for (i = 0; i <= LATE; i = i + 1) begin : g_along
            assign beats[QUEUE+7+i]              = dut.u_mix.u_along.valid_reg[LATE-i] && dut.u_mix.u_along.line_reg[(LATE-i)*(ROWB+2) + ROWB];
            assign line_user[3*(QUEUE+7+i) +: 3] = dut.u_mix.u_along.line_reg[(LATE-i)*(ROWB+2) + ROWB-3 +: 3];
        end
        for (i = 0; i < NB; i = i + 1) begin : g_count
            assign line_count[i*CW +: CW] = beats[i];
        end
        for (i = 0; i < ROWS; i = i + 1) begin : g_sums
            assign line_count[(NB+2+i)*CW +: CW] = i < dut.u_softmax.u_info.level ? DS : 0;
            assign line_user[3*(NB+2+i) +: 3]    = dut.u_softmax.u_info.words[(INFO+SIDE)*i + INFO +: 3];
        end
        for (i = 0; i < 4; i = i + 1) begin : g_rows
            assign line_count[(NB+2+ROWS+i)*CW +: CW] = i < dut.u_score.u_row.level ? DS : 0;
            assign line_user[3*(NB+2+ROWS+i) +: 3]    = dut.u_score.u_row.words[(PAR+SIDE)*i + PAR +: 3];
        end
    endgenerate
    assign line_count[NB*CW +: CW]      = dut.u_divide.out_valid_reg ? DS - dut.u_mix.pass_reg : 0;
    assign line_count[(NB+1)*CW +: CW]  = dut.u_divide.run_reg ? DS : 0;
    assign line_user[3*NB +: 6]         = {dut.u_divide.user_reg[ALONG-WALK-1 -: 3], dut.u_divide.out_user_reg[ALONG-WALK-1 -: 3]};
    assign line_count[(N-2)*CW +: CW]  = dut.u_q.full_reg ? DS : 0;
    assign line_count[(N-1)*CW +: CW]  = dut.u_q.both_reg ? DS : 0;
    assign line_user[3*(N-2) +: 6]      = {dut.u_q.last_reg, dut.u_q.user_reg};
    // a token is in when its first row is complete
    wire [QB-1:0] q_rows = s_q_beat - dut.u_q.beat_reg;
    order #(.BEATS(BEATS), .N(N)) u_order (
        .clk(clk), .rst(rst), .in_take(s_q_take && s_q_beat == DS - 1), .in_user(s_axis_q_tuser),
        .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_user(m_axis_tuser), .beat(m_beat), .token(m_token),
        .line_count(line_count), .line_user(line_user), .at_beat(q_rows), .at_user(s_q_token), .outs(outs));

    // CACHE, assumed: a frame's word comes while nothing is inside or on offer, the one before was taken by all who read it, and the
    // frame has not begun, whose tokens are of its positions, which stay.
    reg [7:0]  k_tokens, v_tokens;              // of the frames that come in
    reg        job_reg;                         // a word has come
    reg [2:0]  over_reg;                        // its frame is over: of Q, K, V
    reg [7:0]  start_reg;                       // it begins at that position
    wire       job   = CACHE == 0 || job_reg;
    wire       v_job = CACHE == 0 || dut.u_v.known_reg;
    wire [7:0] start = CACHE == 0 ? 8'd0 : start_reg;
    wire       some = line_count != 0 || dut.u_k.full_reg != 0 || dut.u_v.full_reg != 0 || k_tokens != 0 || v_tokens != 0 || s_q_beat != 0 || s_k_beat != 0 || s_v_beat != 0;
    always @(posedge clk) begin
        if (s_q_take && s_q_ending && s_axis_q_tuser[1]) over_reg[0] <= 1'b1;
        if (s_k_take && s_k_ending && s_axis_k_tuser[1]) over_reg[1] <= 1'b1;
        if (s_v_take && s_v_ending && s_axis_v_tuser[1]) over_reg[2] <= 1'b1;
        if (s_axis_j_tvalid && s_axis_j_tready) {job_reg, over_reg, start_reg} <= {4'b1000, s_axis_j_tdata[23:16]};
        if (rst) {job_reg, over_reg, start_reg} <= 0;
    end
    generate
        if (CACHE != 0) begin : g_jobs
            always @* if (past) begin
                if (s_axis_j_tvalid) assume (!some && (!job || over_reg == 3'd7) && dut.job_valid == 0 && s_axis_j_tdata[31:16] < T);
                if (s_axis_j_tvalid || !job) assume (!s_axis_q_tvalid && !s_axis_k_tvalid && !s_axis_v_tvalid);
                if (over_reg[0]) assume (!s_axis_q_tvalid);
                if (over_reg[1]) assume (!s_axis_k_tvalid);
                if (over_reg[2]) assume (!s_axis_v_tvalid);
            end
        end
    endgenerate

    // Assumed: frames of K and V have 1 to T tokens.
    always @(posedge clk) begin
        if (s_k_take && s_k_ending) k_tokens <= s_axis_k_tuser[1] ? 0 : k_tokens + 1'b1;
        if (s_v_take && s_v_ending) v_tokens <= s_axis_v_tuser[1] ? 0 : v_tokens + 1'b1;
        if (rst) {k_tokens, v_tokens} <= 0;
    end
    always @* if (past) begin
        if (start + k_tokens == T - 1 && s_axis_k_tvalid) assume (s_axis_k_tuser[1]);
        if (start + v_tokens == T - 1 && s_axis_v_tvalid) assume (s_axis_v_tuser[1]);
    end

    integer         k;
    reg  [LQ:0]     under;                      // beats reserved and not in the output queue
    reg  [7:0]      v_lane;
    wire [GW-1:0]   v_groups = dut.u_mix.groups_1;      // of the row
    wire [PE-1:0]   v_below = ~dut.u_v.lanes_reg, v_above = v_below + 1'b1;
    always @* begin
        under = dut.u_mix.group_reg != 0;
        for (k = QUEUE; k < NB; k = k + 1) under = under + beats[k];
        v_lane = 0;
        for (k = 0; k < PE; k = k + 1) v_lane = v_lane + !dut.u_v.lanes_reg[k];
    end
    always @* if (past) begin
        // the rows of Q, the frames
        assert ((dut.u_q.fill_reg == dut.u_q.read_reg) == (dut.u_q.both_reg || !dut.u_q.full_reg));
        assert (dut.u_q.beat_reg == s_q_beat % DS && (!dut.u_q.both_reg || (dut.u_q.full_reg && dut.u_q.beat_reg == 0)));
        assert (dut.u_v.fill_reg == dut.u_v.read_reg ? dut.u_v.full_reg == 0 || dut.u_v.full_reg == 3 : dut.u_v.full_reg[dut.u_v.read_reg] && !dut.u_v.full_reg[dut.u_v.fill_reg]);
        if (!job) assert (!some);
        // a frame's word is on its way, or there, until the frame is over
        if (CACHE != 0) begin
            assert (s_axis_j_tready && (dut.job_valid == 0 || dut.job[31:16] == start));
            assert (!dut.u_k.known_reg || !dut.job_valid[0]);
            assert (!dut.u_v.known_reg || !dut.job_valid[1]);
            assert ((dut.u_k.known_reg || dut.job_valid[0]) == (job && !over_reg[1]));
            assert ((dut.u_v.known_reg || dut.job_valid[1]) == (job && !over_reg[2]));
            if (!dut.u_k.known_reg) assert (k_tokens == 0 && s_k_beat == 0);
            if (!dut.u_v.known_reg) assert (v_tokens == 0 && s_v_beat == 0);
            if (!job) assert (dut.job_valid == 0);
        end
        assert (start < T && v_tokens < T && start + v_tokens < T);
        if (v_job) assert (start + v_tokens == dut.u_v.group_reg * PE + v_lane);
        if (v_job) assert ((v_below & v_above) == 0);
        if (v_job) assert (dut.u_v.lanes_reg != 0);
        assert (dut.u_v.beat_reg == s_v_beat && dut.u_k.beat_reg == s_k_beat);
        if (dut.u_v.full_reg[0]) assert (dut.u_v.groups_0_reg < G && dut.u_v.single_reg[0] == (dut.u_v.groups_0_reg == 0));
        if (dut.u_v.full_reg[1]) assert (dut.u_v.groups_1_reg < G && dut.u_v.single_reg[1] == (dut.u_v.groups_1_reg == 0));
        // mix: a pass that has begun goes on; what it reserved fits
        assert (dut.u_mix.pass_reg < DS && dut.u_mix.head_reg < H);
        if (dut.u_mix.group_reg != 0 || dut.u_mix.pass_reg != 0) assert (dut.u_divide.out_valid_reg && dut.u_v.full_reg[dut.u_v.read_reg]);
        assert (dut.u_mix.group_first == (dut.u_mix.group_reg == 0));
        if (dut.u_mix.group_reg != 0) assert (dut.u_mix.group_reg <= v_groups && dut.u_mix.later_last == (dut.u_mix.group_reg == v_groups));
        assert (dut.u_mix.room_reg <= QUEUE && dut.u_mix.room_reg + under + dut.u_mix.u_out.level == QUEUE);
        // a bank is missed only while a row waits for it
        if (dut.u_param.load_reg) assert (dut.u_param.swapped_reg && !dut.u_param.ok_reg);
        if (dut.u_param.u_param.used && !dut.u_param.u_param.full) assert (dut.u_param.load_reg);
    end
