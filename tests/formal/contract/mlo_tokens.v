// SPDX-License-Identifier: MIT
// mlo_tokens: what is said, the host's ids and its jobs each go on one for one, in their order; what is its own, between them, is
// a job of one token and an id that ends a frame. (Which: the module's own proof.)
inner [1:0] dut.state;
inner dut.given;
inner dut.ordered;
inner [7:0] dut.slot;
inner [24:0] dut.next;
inner [31:0] dut.id;
inner [$clog2(DEPTH+1)-1:0] dut.u_queue.level;
inner [64*DEPTH-1:0] dut.u_queue.words;
    localparam [1:0] IDLE = 0, FEED = 3;
    wire s_take = s_axis_tvalid && s_axis_tready, m_take = m_axis_tvalid && m_axis_tready;
    wire host_take = s_ids_tvalid && s_ids_tready, ids_take = m_ids_tvalid && m_ids_tready;
    stream #(.GIVEN(1), .DATA(64)) u_s (.clk(clk), .rst(rst), .valid(s_axis_tvalid), .ready(s_axis_tready), .data(s_axis_tdata), .user(3'd0));
    stream #(.GIVEN(1), .DATA(33)) u_host (.clk(clk), .rst(rst), .valid(s_ids_tvalid), .ready(s_ids_tready), .data({s_ids_tlast, s_ids_tdata}), .user(3'd0));
    stream #(.DATA(65)) u_m (.clk(clk), .rst(rst), .valid(m_axis_tvalid), .ready(m_axis_tready), .data({m_axis_tlast, m_axis_tdata}), .user(3'd0));
    stream #(.DATA(33)) u_ids (.clk(clk), .rst(rst), .valid(m_ids_tvalid), .ready(m_ids_tready), .data({m_ids_tlast, m_ids_tdata}), .user(3'd0));
    always @* if (past && push) assume (room != 0);

    watch #(.BITS(64), .N(1)) u_said (.clk(clk), .rst(rst), .in_take(s_take), .in_word(s_axis_tdata),
        .out_valid(m_axis_tvalid), .out_take(m_take), .out_word(m_axis_tdata), .line_valid(m_axis_tvalid), .line_ends(m_axis_tvalid), .line_word(m_axis_tdata));

    // ids: as they come, or one of its own
    claim u_pass (.holds(!past || !host_take || (ids_take && {m_ids_tlast, m_ids_tdata} == {s_ids_tlast, s_ids_tdata})));
    claim u_own  (.holds(!past || !ids_take || host_take || m_ids_tlast));

    // jobs: one goes on between two frames of ids, where there is room for it; the host's in their order. It is the host's unless
    // it follows an own id's word: then it is one token.
    wire host_job = job_push && dut.state != FEED;
    wire [DEPTH-1:0] waits;
    wire [48*DEPTH-1:0] words;
    genvar i;
    generate
        for (i = 0; i < DEPTH; i = i + 1) begin : g_waits
            assign waits[i] = i < dut.u_queue.level;
            assign words[48*i +: 48] = dut.u_queue.words[64*i+16 +: 48];
        end
    endgenerate
    watch #(.BITS(48), .N(DEPTH)) u_jobs (.clk(clk), .rst(rst), .in_take(push), .in_word({push_slot, push_start, push_tokens}),
        .out_valid(host_job), .out_take(host_job), .out_word({job_slot, job_start, job_tokens}), .line_valid(waits), .line_ends(waits), .line_word(words));
    claim u_room (.holds(!past || !job_push || job_room != 0));
    claim u_one  (.holds(!past || !job_push || host_job || job_tokens == 1));
    claim u_free (.holds(!past || rst || room == DEPTH - dut.u_queue.level));
    reg frame;                                      // a host's job has gone on, and not all its ids
    always @(posedge clk) frame <= !rst && (host_job || (frame && !(host_take && s_ids_tlast)));
    claim u_turn (.holds(!past || !(host_job && frame)));
    claim u_ids_of (.holds(!past || !host_take || frame));
    always @* if (past) assert (frame == (dut.state == 1));

    // not vacuous: an id went on inside, a second job of the host's behind it, and all sides had to wait
    reg own, again, waited, wait_in;
    always @(posedge clk) begin
        if (ids_take && !host_take) own <= 1'b1;
        if (own && host_job) again <= 1'b1;
        if (m_ids_tvalid && !m_ids_tready) waited <= 1'b1;
        if (s_axis_tvalid && !s_axis_tready) wait_in <= 1'b1;
        if (rst) {own, again, waited, wait_in} <= 0;
    end
    goal u_goal (.reached(past && again && waited && wait_in && m_take));
