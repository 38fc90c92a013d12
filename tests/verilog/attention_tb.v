// SPDX-License-Identifier: MIT
// attention_tb: plays q.hex, k.hex, v.hex, c.hex into mlo_attention, compares with golden.hex,
// and writes the cycle of every output beat to cycles.txt. Words are {tuser, tdata}.
// plusargs: nq nk nc nm (beats of each stream; v has nk), kbeats (of the first frame), seed, stall,
// start (when q, k and v begin; without it: in cycle 16),
// judged (so many beats are compared; without it: all),
// jobs (CACHE: so many lines of jobs.hex, {beats of m, k (and v), q to a group's end}; without it: one group),
// words (CACHE: so many lines of words.hex, {start, bank} of each frame; they stall as the other streams do)
`default_nettype none
module attention_tb;
    parameter H = 2, D = 4, T = 4, PE = 2, SIMD = 2, XBITS = 8, YBITS = 8, AXI_WIDTH = 128, STEP = 2, PROB = 0, ROUND = 0, CAP = 0, EBITS = 8, KVH = H, CAUSAL = 0, BAND = 0, BIAS = 0, BIASH = 1, BIAST = 1, SHIFT = 0, CACHE = 0;
    parameter MAX = 16384;                          // beats of a stream at most
    localparam XW = SIMD * XBITS, YW = SIMD * YBITS;

    reg clk = 0, rst = 1;
    always #5 clk = !clk;

    integer nq, nk, nc, nm, kbeats, seed, stall, judged, start, log, jobs, words;
    reg [XW+2:0] q [0:MAX-1], k [0:MAX-1], v [0:MAX-1];
    reg [AXI_WIDTH-1:0] c [0:MAX-1];
    reg [YW+2:0] m [0:MAX-1];
    reg [95:0] job [0:MAX-1];
    reg [31:0] word [0:MAX-1];
    reg [31:0] lfsr;

    // five independent draws per cycle: is stream i held back in this cycle?
    reg  [4:0] hold, draw;
    integer    b;
    always @(posedge clk) begin
        for (b = 0; b < 5; b = b + 1) begin
            repeat (7) lfsr = {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
            draw[b] = (lfsr[15:0] % 100) < stall;
        end
        hold <= draw;
    end

    integer  iq = 0, ik = 0, iv = 0, ic = 0, im = 0, cycle = 0, tail = 0, ready_at = -1, quiet = 0;
    reg      q_on = 0, k_on = 0, v_on = 0, c_on = 0, m_ready = 0;
    wire     q_ready, k_ready, v_ready, c_ready, m_valid;
    // the word on offer after this cycle (assigned without blocking: the kernel samples at the same edge)
    wire [31:0] next_q = iq + (q_on && q_ready), next_k = ik + (k_on && k_ready);
    wire [31:0] next_v = iv + (v_on && v_ready), next_c = ic + (c_on && c_ready);
    // a group of frames begins when the last word of the one before has left: what it has of each stream is on offer a cycle later
    integer      at = 0;
    reg          job_open = 0;                  // (open: from there to its last word)
    wire [95:0]  now = job[at];
    wire [31:0]  q_end = jobs ? now[31:0] : nq, k_end = jobs ? now[63:32] : nk, m_end = jobs ? now[95:64] : nm;
    integer      ij = 0;
    reg          j_on = 0;
    wire         j_ready;
    wire [31:0]  next_j = ij + (j_on && j_ready);
    wire         begins = !job_open && at < jobs && cycle >= start - 1;
    wire         open = cycle >= start && (jobs == 0 || job_open);
    wire [XW+2:0] qw = q[iq], kw = k[ik], vw = v[iv];
    wire [YW-1:0] m_data;
    wire [2:0]    m_user, stat;
    reg           was_held = 0, bad = 0;
    reg  [YW+2:0] held;
    reg  [31:0]   busy = 0;

    mlo_attention #(.H(H), .D(D), .T(T), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .YBITS(YBITS),
                    .AXI_WIDTH(AXI_WIDTH), .STEP(STEP), .PROB(PROB), .ROUND(ROUND), .CAP(CAP), .EBITS(EBITS), .KVH(KVH), .CAUSAL(CAUSAL), .BAND(BAND),
                    .BIAS(BIAS), .BIASH(BIASH), .BIAST(BIAST), .SHIFT(SHIFT), .CACHE(CACHE)) dut (
        .clk(clk), .rst(rst), 
        .s_axis_j_tdata(j_on ? word[ij] : 32'bx), .s_axis_j_tvalid(j_on), .s_axis_j_tready(j_ready),
        .s_axis_q_tdata(qw[XW-1:0]), .s_axis_q_tuser(qw[XW +: 3]), .s_axis_q_tvalid(q_on), .s_axis_q_tready(q_ready),
        .s_axis_k_tdata(kw[XW-1:0]), .s_axis_k_tuser(kw[XW +: 3]), .s_axis_k_tvalid(k_on), .s_axis_k_tready(k_ready),
        .s_axis_v_tdata(vw[XW-1:0]), .s_axis_v_tuser(vw[XW +: 3]), .s_axis_v_tvalid(v_on), .s_axis_v_tready(v_ready),
        .s_axis_c_tdata(c[ic]), .s_axis_c_tvalid(c_on), .s_axis_c_tready(c_ready),
        .m_axis_tdata(m_data), .m_axis_tuser(m_user), .m_axis_tvalid(m_valid), .m_axis_tready(m_ready),
        .stat(stat)
    );

    initial begin
        if (!$value$plusargs("nq=%d", nq) || !$value$plusargs("nk=%d", nk) || !$value$plusargs("nc=%d", nc)
            || !$value$plusargs("nm=%d", nm) || !$value$plusargs("kbeats=%d", kbeats)
            || !$value$plusargs("seed=%d", seed) || !$value$plusargs("stall=%d", stall)) $display("FAIL plusargs");
        if (!$value$plusargs("judged=%d", judged)) judged = nm;
        if (!$value$plusargs("start=%d", start)) start = 16;
        if (!$value$plusargs("jobs=%d", jobs)) jobs = 0;
        lfsr = seed * 32'h9E3779B9 + 32'd12345;
        $readmemh("q.hex", q, 0, nq - 1);
        $readmemh("k.hex", k, 0, nk - 1);
        $readmemh("v.hex", v, 0, nk - 1);
        $readmemh("c.hex", c, 0, nc - 1);
        $readmemh("golden.hex", m, 0, nm - 1);
        if (jobs) $readmemh("jobs.hex", job, 0, jobs - 1);
        if (!$value$plusargs("words=%d", words)) words = 0;
        if (words) $readmemh("words.hex", word, 0, words - 1);
        log = $fopen("cycles.txt");
        repeat (4) @(posedge clk);
        rst <= 0;
    end

    always @(posedge clk) if (!rst) begin
        cycle <= cycle + 1;
        if (begins) job_open <= 1'b1;
        busy  <= busy + stat[0];
        // sources: a new word is offered unless held back; an offered word stays until taken.
        // the first constants come ahead of the rest
        iq <= next_q;
        ik <= next_k;
        iv <= next_v;
        ic <= next_c;
        ij <= next_j;
        if (!j_on || j_ready) j_on <= next_j < words && !(hold[0] && hold[1]);
        if (!q_on || q_ready) q_on <= next_q < q_end && !hold[0] && open;
        if (!k_on || k_ready) k_on <= next_k < k_end && !hold[1] && open;
        if (!v_on || v_ready) v_on <= next_v < k_end && !hold[2] && open;
        if (!c_on || c_ready) c_on <= next_c < nc && !hold[3];
        if (ready_at < 0 && next_k >= kbeats && next_v >= kbeats && next_q >= D/SIMD) ready_at <= cycle;
        m_ready <= !hold[4];
        // the stream contract of the output
        if (was_held && (!m_valid || {m_user, m_data} !== held)) begin
            $display("FAIL output not held at beat %0d", im);
            $finish;
        end
        was_held <= m_valid && !m_ready;
        held     <= {m_user, m_data};
        if (m_valid === 1'bx || stat === 3'bx) bad = 1;
        if (m_valid && m_ready) begin
            if (im >= nm || (im < judged && {m_user, m_data} !== m[im])) begin
                $display("FAIL beat %0d is %h, not %h (cycle %0d)", im, {m_user, m_data}, m[im], cycle);
                $finish;
            end
            $fwrite(log, "%0d\n", cycle);
            im   = im + 1;
            tail <= 0;
            if (jobs && im == m_end) begin
                at <= at + 1;
                job_open <= 1'b0;
            end
        end else begin
            tail <= tail + 1;
        end
        // all there: stay a while for words too many. Nothing for long: hung
        if (im == nm) quiet <= quiet + 1;
        if (quiet == 200) begin
            if (bad || iq != nq || ik != nk || iv != nk)
                $display("FAIL unknown control signals, or input left over: q %0d k %0d v %0d", nq - iq, nk - ik, nk - iv);
            else
                $display("PASS ready=%0d cycles=%0d busy=%0d", ready_at, cycle, busy);
            $fclose(log);
            $finish;
        end
        if (tail > 20000) begin
            $display("FAIL no output for long, at beat %0d of %0d (q %0d k %0d v %0d c %0d)", im, nm, iq, ik, iv, ic);
            $finish;
        end
    end
endmodule
`default_nettype wire
