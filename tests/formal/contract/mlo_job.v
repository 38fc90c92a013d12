// SPDX-License-Identifier: MIT
// mlo_job: each job with its frame, in their order, judged by lengths that the proof keeps: of a good one the tokens that it
// said go on, the last with tlast, and their mask beats; of any other nothing. One frame at a time is in the core
// (FRAMES = 1; more of them: the module's own properties).
inner [2:0] dut.state;
inner dut.count;
inner [24:0] dut.stop;
inner [15:0] dut.length;
inner [15:0] dut.at;
inner [15:0] dut.left;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] dut.beat;
inner [((SLOTS > 1) ? $clog2(SLOTS) : 1)-1:0] dut.whose;
inner [SLOTS-1:0] dut.known;
memory SLOTS [15:0] mem = dut.lengths;
inner [$clog2(DEPTH+1)-1:0] dut.u_queue.level;
inner [48*DEPTH-1:0] dut.u_queue.words;
inner dut.u_queue.held;
inner dut.u_out.valid_reg;
inner dut.u_out.full_reg;
inner [WIDTH:0] dut.u_out.out_reg;
inner [WIDTH:0] dut.u_out.spare_reg;
inner dut.mask.u_in.valid_reg;
inner dut.mask.u_in.full_reg;
inner dut.mask.u_in.out_reg;
inner dut.mask.u_in.spare_reg;
inner dut.mask.u_key.valid_reg;
inner dut.mask.u_key.full_reg;
inner [1:0] dut.mask.u_key.out_reg;
inner [1:0] dut.mask.u_key.spare_reg;
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1, LW = $clog2(DEPTH + 1);
    localparam [2:0] IDLE = 0, JUDGE = 1, FENCE = 2, PASS = 3, SWALLOW = 4;
    wire          s_take = s_axis_tvalid && s_axis_tready, s1_take = s1_axis_tvalid && s1_axis_tready;
    wire          m_take = m_axis_tvalid && m_axis_tready, m1_take = m1_axis_tvalid && m1_axis_tready;
    wire [BW-1:0] s_beat;
    wire          s_ending;
    stream #(.GIVEN(1), .DATA(WIDTH + 1)) u_s (.clk(clk), .rst(rst), .valid(s_axis_tvalid), .ready(s_axis_tready), .data({s_axis_tlast, s_axis_tdata}), .user(3'd0));
    stream #(.GIVEN(1), .DATA(9)) u_s1 (.clk(clk), .rst(rst), .valid(s1_axis_tvalid), .ready(s1_axis_tready), .data({s1_axis_tlast, s1_axis_tdata}), .user(3'd0));
    stream #(.DATA(WIDTH + 1)) u_m (.clk(clk), .rst(rst), .valid(m_axis_tvalid), .ready(m_axis_tready), .data({m_axis_tlast, m_axis_tdata}), .user(3'd0));
    stream #(.DATA(9)) u_m1 (.clk(clk), .rst(rst), .valid(m1_axis_tvalid), .ready(m1_axis_tready), .data({m1_axis_tlast, m1_axis_tdata}), .user(3'd0));
    beats #(.BEATS(BEATS)) u_s_beats (.clk(clk), .rst(rst), .take(s_take), .beat(s_beat), .ending(s_ending));
    wire          s_token = s_take && s_ending;

    // the queue; in it is also the job whose turn it is, until it begins or is refused
    wire                behind = dut.state == IDLE || dut.state == JUDGE || dut.state == FENCE;
    reg  [48*DEPTH-1:0] jobs;
    reg  [LW-1:0]       waiting;
    wire                next = !now && waiting != 0;            // a job's turn comes when the frame before it was taken
    wire [LW-1:0]       kept = waiting - next;
    integer             i;
    always @(posedge clk) begin
        waiting <= rst ? 0 : kept + push;
        for (i = 0; i < DEPTH; i = i + 1)
            jobs[48*i +: 48] <= push && kept == i ? {push_slot, push_start, push_tokens} : next ? jobs >> 48 * (i + 1) : jobs[48*i +: 48];
    end
    always @* if (past) assume (!push || room != 0);

    // the job whose turn it is
    reg          now, good;
    reg   [7:0]  slot;
    reg   [23:0] start;
    reg   [15:0] tokens, went;                                  // went: tokens that were taken to go on
    reg   [16*SLOTS-1:0] lengths;
    wire  [7:0]  n_slot   = jobs[40 +: 8];
    wire  [23:0] n_start  = jobs[16 +: 24];
    wire  [15:0] n_tokens = jobs[0 +: 16];
    wire         n_good   = n_slot < SLOTS && n_tokens >= 1 && n_start <= lengths[16*n_slot +: 16] && n_start + {9'd0, n_tokens} <= CONTEXT;
    wire         on       = s_take && now && good && went < tokens;         // a beat that has to go on
    wire         last     = s_axis_tlast || went + 17'd1 == tokens;         // its token is the last that does
    reg          any_bad, wrong;
    always @(posedge clk) begin
        if (next) begin
            {slot, start, tokens} <= jobs[47:0];
            {now, good, went} <= {1'b1, n_good, 16'd0};
            if (!n_good) any_bad <= 1'b1;
        end
        if (on && s_ending) begin
            went <= went + 1;
            if (s_axis_tlast != (went + 17'd1 == tokens)) wrong <= 1'b1;
        end
        if (s_token && s_axis_tlast) now <= 1'b0;
        if (rst) {now, any_bad, wrong} <= 0;
    end
    always @(posedge clk)
        for (i = 0; i < SLOTS; i = i + 1)
            if (rst || (on && s_ending && slot == i)) lengths[16*i +: 16] <= rst ? GIVEN : start + went + 1;

    // the frame in the core: begun, out of this module, out of the core
    reg          inside, over;
    always @(posedge clk) begin
        if (out_last) {inside, over} <= 0;
        if (job_begin) inside <= 1'b1;
        if (m_take && m_axis_tlast) over <= 1'b1;
        if (rst) {inside, over} <= 0;
    end
    always @* if (past) assume (!out_last || (inside && over));

    claim u_wait  (.holds(!past || !s_axis_tready || now));
    claim u_begin (.holds(!past || !job_begin || (now && good && went == 0 && s_beat == 0 && job_start == start && job_bank == slot * DEEPEST)));
    claim u_fits  (.holds(!past || !job_begin || (start <= lengths[16*slot +: 16] && start + {9'd0, tokens} <= CONTEXT && tokens != 0 && slot < SLOTS)));
    claim u_alone (.holds(!past || !job_begin || !inside));
    claim u_begun (.holds(!past || !m_axis_tvalid || (inside && !over)));
    reg   [31:0] place;
    always @(posedge clk) place <= {job_start, job_bank};
    claim u_place (.holds(!past || !inside || job_begin || place == {job_start, job_bank}));
    claim u_refused  (.holds(!past || !(refused ? !any_bad : s_take && !good)));
    claim u_mismatch (.holds(!past || mismatch == wrong));
    claim u_room     (.holds(!past || room == (rst ? 0 : DEPTH - waiting - (now && behind))));

    // what goes on
    wire [1:0] m_valid = {dut.u_out.full_reg, dut.u_out.valid_reg};
    watch #(.BITS(WIDTH + 1), .N(2)) u_words (.clk(clk), .rst(rst), .in_take(on), .in_word({s_ending && last, s_axis_tdata}),
        .out_valid(m_axis_tvalid), .out_take(m_take), .out_word({m_axis_tlast, m_axis_tdata}),
        .line_valid(m_valid), .line_ends(m_valid), .line_word({dut.u_out.spare_reg, dut.u_out.out_reg}));

    // mask beats: a token takes one, the oldest there is
    reg  [1:0] key_count, keys;
    always @(posedge clk) begin
        key_count <= rst ? 0 : key_count + s1_take - (MASK != 0 && s_token);
        if (s_token) keys[0] <= key_count == 2 ? keys[1] : s1_axis_tdata[0];
        if (s1_take && !s_token && key_count == 0) keys[0] <= s1_axis_tdata[0];
        if (s1_take && !s_token && key_count == 1) keys[1] <= s1_axis_tdata[0];
    end
    generate
        if (MASK != 0) begin : g_mask
            wire [1:0] k_valid = {dut.mask.u_key.full_reg, dut.mask.u_key.valid_reg};
            claim u_masked (.holds(!past || !s_token || key_count != 0));
            claim u_zeros  (.holds(!past || !m1_axis_tvalid || m1_axis_tdata[7:1] == 0));
            watch #(.BITS(2), .N(2)) u_keys (.clk(clk), .rst(rst), .in_take(on && s_ending), .in_word({last, keys[0]}),
                .out_valid(m1_axis_tvalid), .out_take(m1_take), .out_word({m1_axis_tlast, m1_axis_tdata[0]}),
                .line_valid(k_valid), .line_ends(k_valid), .line_word({dut.mask.u_key.spare_reg, dut.mask.u_key.out_reg}));
            always @* if (past) begin
                assert (dut.mask.u_key.valid_reg || !dut.mask.u_key.full_reg);
                assert (dut.mask.u_in.valid_reg || !dut.mask.u_in.full_reg);
                assert (key_count == dut.mask.u_in.valid_reg + dut.mask.u_in.full_reg);
                if (key_count > 0) assert (keys[0] == dut.mask.u_in.out_reg);
                if (key_count > 1) assert (keys[1] == dut.mask.u_in.spare_reg);
            end
        end else begin : g_all
            claim u_still (.holds(!past || (!s1_axis_tready && !m1_axis_tvalid)));
        end
    endgenerate

    // for the induction
    wire        l0 = dut.u_out.out_reg[WIDTH], l1 = dut.u_out.spare_reg[WIDTH];
    wire [48*DEPTH-1:0] rest = now && behind ? dut.u_queue.words >> 48 : dut.u_queue.words;
    wire [15:0] length = lengths[16*slot +: 16];
    always @* if (past) begin
        assert (dut.state <= SWALLOW && dut.beat == s_beat && (!behind || s_beat == 0));
        assert (dut.u_queue.level == waiting + (now && behind));
        if (now && behind) assert (dut.u_queue.words[47:0] == {slot, start, tokens} && went == 0);
        for (i = 0; i < DEPTH; i = i + 1)
            if (i < waiting) assert (jobs[48*i +: 48] == rest[48*i +: 48]);
        for (i = 0; i < SLOTS; i = i + 1)
            assert (lengths[16*i +: 16] == (dut.known[i] ? mem[16*i +: 16] : GIVEN) && lengths[16*i +: 16] <= CONTEXT);
        if (dut.state != IDLE) assert (now);
        if (dut.state == JUDGE || dut.state == FENCE) begin
            assert (dut.u_queue.held && dut.stop == start + {9'd0, tokens});
            if (slot < SLOTS) assert (dut.length == length);
        end
        if (now && !good) assert (any_bad && (dut.state != SWALLOW || refused));
        if (now && behind) assert (good == (slot < SLOTS && tokens != 0 && start <= length && start + {9'd0, tokens} <= CONTEXT));
        if (now && good) assert (slot < SLOTS && went <= tokens && start + {9'd0, tokens} <= CONTEXT && tokens != 0);
        if (refused) assert (any_bad);
        if (dut.state == FENCE) assert (good);
        if (dut.state == PASS) assert (dut.count && good && went < tokens && dut.left == tokens - went && dut.at == start + went && dut.whose == slot);
        if (dut.state == SWALLOW) assert (!good || went == tokens);
        if (job_begin) assert (dut.state == PASS && went == 0 && s_beat == 0 && start <= length && job_start == start && job_bank == slot * DEEPEST);
        assert (dut.count == (inside || job_begin) && !(inside && job_begin));
        assert (inside || !over);
        // the beats that wait to go on: none is behind a last one, and none is left where the frame is out
        assert (dut.u_out.valid_reg || !dut.u_out.full_reg);
        assert (!dut.u_out.full_reg || !l0);
        if (!inside) assert (!dut.u_out.valid_reg);
        else if (dut.state == PASS) assert (!over && !(dut.u_out.valid_reg && l0) && !(dut.u_out.full_reg && l1));
        else assert (over ? !dut.u_out.valid_reg : dut.u_out.valid_reg && (dut.u_out.full_reg ? l1 : l0));
    end

    // not vacuous: a job behind a refused one begins where the one before it ended, its frame is cut, and both sides had to wait
    reg waited, wait_in, cut;
    always @(posedge clk) begin
        if (m_axis_tvalid && !m_axis_tready) waited <= 1'b1;
        if (s_axis_tvalid && !s_axis_tready && now) wait_in <= 1'b1;
        if (on && s_ending && start != 0 && refused && went + 17'd1 == tokens && !s_axis_tlast) cut <= 1'b1;
        if (rst) {waited, wait_in, cut} <= 0;
    end
    goal u_goal (.reached(past && waited && wait_in && cut && inside && over));
