
    // ---- the most that each FIFO held
    integer peak_feed = 0;
    always @(u_top.u_core.feed_level) if (u_top.u_core.feed_level > peak_feed) peak_feed = u_top.u_core.feed_level;
@PEAKS@
    task say_fifos; begin
        $display("MLO FIFO feed %0d %0d @TOKEN_BEATS@", peak_feed, u_top.u_core.u_feedback.DEPTH);
@FIFOS@
    end endtask

    // ---- when nothing moves: who waits for whom
    task say_waits; begin
        $display("MLO EDGE source entry s_axis %b %b %0d %0d %b %b", in_tvalid, in_tready, 0, 0, in_tvalid, in_tready);
@MASK@        $display("MLO EDGE mask_source entry s1_axis %b %b %0d %0d %b %b", mask_tvalid, mask_tready, 0, 0, mask_tvalid, mask_tready);
@REPLAY@        $display("MLO EDGE replay_source @REPLAY_NAME@ s2_axis %b %b %0d %0d %b %b", replay_tvalid, replay_tready, 0, 0, replay_tvalid, replay_tready);
        $display("MLO EDGE entry loop_in entry %b %b %0d %0d %b %b", u_top.u_core.entry_tvalid, u_top.u_core.entry_tready, 0, 0, u_top.u_core.entry_tvalid, u_top.u_core.entry_tready);
        $display("MLO EDGE loop_out loop_in feed %b %b %0d %0d %b %b", u_top.u_core.feed_tvalid, u_top.u_core.feed_tready, u_top.u_core.u_feedback.level, u_top.u_core.u_feedback.DEPTH, u_top.u_core.fed_tvalid, u_top.u_core.fed_tready);
        $display("MLO EDGE loop_out exit leaving %b %b %0d %0d %b %b", u_top.u_core.leaving_tvalid, u_top.u_core.leaving_tready, 0, 0, u_top.u_core.leaving_tvalid, u_top.u_core.leaving_tready);
        $display("MLO EDGE exit sink m_axis %b %b %0d %0d %b %b", out_tvalid, out_tready, 0, 0, out_tvalid, out_tready);
@EDGES@
        $display("MLO LOOP %b", u_top.u_core.u_loop.from_fb);
@PARAMS@
        $display("MLO MEMORY %b %b %b %b %b", m_arvalid, m_arready, owing, m_rvalid, m_rready);
    end endtask

    // ---- +probe=FILE: every kernel's output stream
    always @(posedge clk) if (probe != 0) begin
@PROBES@
    end

    // ---- +trace=FILE: each token of each kernel, each loading of each parameter memory
    localparam [@BEATS_TOP@:0] TRACE_BEATS = {
@TRACE_BEATS@
    wire [@STREAMS_TOP@:0] trace_valid = {
@TRACE_VALID@
    wire [@STREAMS_TOP@:0] trace_ready = {
@TRACE_READY@
    reg  [31:0] window_from;            // +window=N: 96 cycles from this one on, as the report counts them, are written whole
    initial if (!$value$plusargs("window=%d", window_from)) window_from = 32'd0;
    wire        begins = in_tvalid && in_tready && !started;
    wire [31:0] since = begins ? 32'd1 : cycle - start + 32'd1;
    wire        trace_window = (started || begins) && window_from != 32'd0 && since >= window_from && since < window_from + 32'd96;
    mlo_sim_trace #(.STREAMS(@STREAMS@), .KERNELS(KERNELS), .BEATS(TRACE_BEATS)) u_trace (.clk(clk), .file(trace), .cycle(cycle), .over(over),
        .window(trace_window), .valid(trace_valid), .ready(trace_ready), .counts(u_top.u_regs.counts), .stat(u_top.stat));
    task trace_streams; begin
@TRACE_STREAMS@
    end endtask
