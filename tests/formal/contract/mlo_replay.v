// SPDX-License-Identifier: MIT
// mlo_replay: each frame leaves `iterations` times, whole and in its order, a beat a cycle; the first token of each pass is marked
given s_axis BEATS;
wanted m_axis BEATS;
    localparam DEPTH = T * BEATS, AW = (DEPTH > 1) ? $clog2(DEPTH) : 1, BW = (BEATS > 1) ? $clog2(BEATS) : 1;
inner dut.once;
inner [15:0] dut.passes_1;
inner dut.whole;
inner [AW-1:0] dut.w_addr;
inner [BW-1:0] dut.w_beat;
inner dut.out_valid;
inner dut.r_first;
inner dut.marked;
inner [AW-1:0] dut.r_addr;
inner [BW-1:0] dut.r_beat;
inner [15:0] dut.r_pass;
memory T*BEATS [WIDTH+1:0] mem = dut.mem;
    // iterations stand still; a frame has T tokens at most
    (* anyconst *) wire [1:0] n;
    always @* assume (iterations == n);

    // The frame that is stored: beats of it, the next one to leave the memory, passes that are over.
    reg [AW:0] in, out;
    reg [1:0]  pass;
    reg        whole, some;                     // some token was marked
    wire there = out != in, read = there && (!m_axis_tvalid || m_axis_tready);
    wire over  = read && whole && out + 1'b1 == in, done = over && pass + 1'b1 >= n;
    wire mark  = out < BEATS && !(n < 2 && some);
    always @* if (past && s_axis_tvalid && in + BEATS >= DEPTH && !whole && s_start) assume (s_axis_tuser[1]);
    always @(posedge clk) begin
        if (s_take) in <= in + 1'b1;
        if (s_take && s_ending && s_axis_tuser[1]) whole <= 1'b1;
        if (read) out <= over ? 0 : out + 1'b1;
        if (read && (out + 1) % BEATS == 0) some <= 1'b1;
        if (over) pass <= done ? 0 : pass + 1'b1;
        if (done) {in, whole} <= 0;
        if (rst) {in, out, pass, whole, some} <= 0;
    end

    // Any beat of a frame: what leaves there is what came there. It is offered as soon as it may be.
    (* anyconst *) wire [AW-1:0] at;
    always @* assume (at < DEPTH);
    reg             due, hit, first;
    reg [WIDTH+1:0] word, out_word;
    always @(posedge clk) begin
        if (s_take && in == at) word <= {s_axis_tuser[2:1], s_axis_tdata};
        if (read) {hit, first, out_word} <= {out == at, mark, word};
        due <= !rst && (there || (m_axis_tvalid && !m_axis_tready));
    end
    claim u_ready (.holds(!past || s_axis_tready == !whole));
    claim u_due   (.holds(!past || m_axis_tvalid == due));
    claim u_first (.holds(!past || !m_axis_tvalid || m_axis_tuser[0] == first));
    claim u_word  (.holds(!past || !m_axis_tvalid || !hit || {m_axis_tuser[2:1], m_axis_tdata} == out_word));

    // ---- for the induction: the registers are the model's; a token's beats lie side by side with one sideband
    wire [2:0] goes = m_axis_tvalid ? m_axis_tuser : m_token;     // of the token that has begun to leave
    wire [BW-1:0] beat = out % BEATS;                              // of it, that comes after what is offered
    genvar i;
    generate
        for (i = 0; i < DEPTH; i = i + 1) begin : g_side
            if (i % BEATS != 0)
                always @* if (past && i < in) assert (mem[(WIDTH+2)*i + WIDTH +: 2] == mem[(WIDTH+2)*(i-1) + WIDTH +: 2]);
            if ((i + 1) % BEATS != 0)
                always @* if (past && i + 1 == in) assert (mem[(WIDTH+2)*i + WIDTH +: 2] == s_token[2:1]);
        end
    endgenerate
    wire [WIDTH+1:0] before = mem >> (WIDTH+2) * (out - 1'b1);
    always @* if (past) begin
        assert (in <= DEPTH && in % BEATS == s_beat && (whole || in < DEPTH) && dut.w_beat == s_beat && dut.whole == whole);
        if (!whole && s_beat != 0 && in - s_beat + BEATS >= DEPTH) assert (s_token[1]);
        assert (out < DEPTH && out <= in && dut.r_addr == out && dut.r_beat == out % BEATS && dut.r_pass == pass && dut.marked == some);
        assert (dut.r_first == (out < BEATS) && dut.out_valid == due);
        assert (whole ? in != 0 && s_beat == 0 && out < in && dut.w_addr + 1'b1 == in && pass <= (n < 2 ? 0 : n - 1) : pass == 0 && dut.w_addr == in);
        assert (dut.once == (n < 2) && dut.passes_1 == (n < 2 ? 0 : n - 1));
        if (at < in) assert (mem[(WIDTH+2)*at +: WIDTH+2] == word);
        assert (beat == (m_beat + due) % BEATS);
        if (beat != 0) assert (goes == {before[WIDTH +: 2], mark});
    end

    // not vacuous: a frame is done, and in the next one a pass is over while the receiver waits
    reg again;
    always @(posedge clk) again <= !rst && (again || (done && n > 1));
    goal u_goal (.reached(past && again && pass != 0 && in >= BEATS && m_axis_tvalid && !m_axis_tready));
