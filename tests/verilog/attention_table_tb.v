// SPDX-License-Identifier: MIT
// attention_table_tb: plays q.hex, k.hex, v.hex, and the parameters c.hex, s.hex, e.hex into mlo_attention_table, compares with golden.hex,
// and writes the cycle of every output beat to cycles.txt. Words of streams are {tuser, tdata}.
// PAST: each frame has a word of j.hex. plusargs: nq nk nc ns ne nm (beats of each stream; v has nk), nj (words), kbeats (of the first frame), seed, stall, start (when q, k and v begin)
`default_nettype none
module attention_table_tb;
    parameter H = 2, D = 4, T = 4, PE = 2, SIMD = 2, XBITS = 8, YBITS = 8, EBITS = 13, LEAST = 13, HIDE = 0, KVH = H, PAST = 0, AXI_WIDTH = 128, STEP = 2;
    parameter MAX = 32768;                          // beats of a stream at most
    localparam XW = SIMD * XBITS, YW = SIMD * YBITS;

    reg clk = 0, rst = 1;
    always #5 clk = !clk;

    integer nj, nq, nk, nc, ns, ne, nm, kbeats, seed, stall, start, log;
    reg [XW+2:0] q [0:MAX-1], k [0:MAX-1], v [0:MAX-1];
    reg [AXI_WIDTH-1:0] c [0:MAX-1], s [0:MAX-1], e [0:MAX-1];
    reg [YW+2:0] m [0:MAX-1];
    reg [31:0]   j [0:255];
    reg [31:0] lfsr;

    // independent draws per cycle: is stream i held back in this cycle?
    reg  [7:0] hold, draw;
    integer    b;
    always @(posedge clk) begin
        for (b = 0; b < 8; b = b + 1) begin
            repeat (7) lfsr = {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
            draw[b] = (lfsr[15:0] % 100) < stall;
        end
        hold <= draw;
    end

    integer  iq = 0, ik = 0, iv = 0, ic = 0, is = 0, ie = 0, im = 0, ij = 0, cycle = 0, tail = 0, ready_at = -1, quiet = 0;
    reg      q_on = 0, k_on = 0, v_on = 0, c_on = 0, s_on = 0, e_on = 0, j_on = 0, m_ready = 0;
    wire     j_ready, q_ready, k_ready, v_ready, c_ready, s_ready, e_ready, m_valid;
    // the word on offer after this cycle (assigned without blocking: the kernel samples at the same edge)
    wire [31:0] next_q = iq + (q_on && q_ready), next_k = ik + (k_on && k_ready), next_v = iv + (v_on && v_ready);
    wire [31:0] next_c = ic + (c_on && c_ready), next_s = is + (s_on && s_ready), next_e = ie + (e_on && e_ready);
    wire [31:0] next_j = ij + (j_on && j_ready);
    wire         open = cycle >= start;
    wire [XW+2:0] qw = q[iq], kw = k[ik], vw = v[iv];
    wire [YW-1:0] m_data;
    wire [2:0]    m_user, stat;
    reg           was_held = 0, bad = 0;
    reg  [YW+2:0] held;
    reg  [31:0]   busy = 0;

    mlo_attention_table #(.H(H), .D(D), .T(T), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .YBITS(YBITS), .EBITS(EBITS), .LEAST(LEAST), .HIDE(HIDE), .KVH(KVH), .PAST(PAST),
                          .AXI_WIDTH(AXI_WIDTH), .STEP(STEP)) dut (
        .clk(clk), .rst(rst), .params_last(1'b0),
        .s_axis_j_tdata(j_on ? j[ij] : 32'bx), .s_axis_j_tvalid(j_on), .s_axis_j_tready(j_ready),
        .s_axis_q_tdata(qw[XW-1:0]), .s_axis_q_tuser(qw[XW +: 3]), .s_axis_q_tvalid(q_on), .s_axis_q_tready(q_ready),
        .s_axis_k_tdata(kw[XW-1:0]), .s_axis_k_tuser(kw[XW +: 3]), .s_axis_k_tvalid(k_on), .s_axis_k_tready(k_ready),
        .s_axis_v_tdata(vw[XW-1:0]), .s_axis_v_tuser(vw[XW +: 3]), .s_axis_v_tvalid(v_on), .s_axis_v_tready(v_ready),
        .s_axis_c_tdata(c[ic]), .s_axis_c_tvalid(c_on), .s_axis_c_tready(c_ready),
        .s_axis_s_tdata(s[is]), .s_axis_s_tvalid(s_on), .s_axis_s_tready(s_ready),
        .s_axis_e_tdata(e[ie]), .s_axis_e_tvalid(e_on), .s_axis_e_tready(e_ready),
        .m_axis_tdata(m_data), .m_axis_tuser(m_user), .m_axis_tvalid(m_valid), .m_axis_tready(m_ready),
        .stat(stat)
    );

    initial begin
        if (!$value$plusargs("nq=%d", nq) || !$value$plusargs("nk=%d", nk) || !$value$plusargs("nc=%d", nc) || !$value$plusargs("ns=%d", ns)
            || !$value$plusargs("ne=%d", ne) || !$value$plusargs("nm=%d", nm) || !$value$plusargs("kbeats=%d", kbeats)
            || !$value$plusargs("nj=%d", nj) || !$value$plusargs("seed=%d", seed) || !$value$plusargs("stall=%d", stall) || !$value$plusargs("start=%d", start)) $display("FAIL plusargs");
        lfsr = seed * 32'h9E3779B9 + 32'd12345;
        $readmemh("q.hex", q, 0, nq - 1);
        $readmemh("k.hex", k, 0, nk - 1);
        $readmemh("v.hex", v, 0, nk - 1);
        $readmemh("c.hex", c, 0, nc - 1);
        $readmemh("s.hex", s, 0, ns - 1);
        $readmemh("e.hex", e, 0, ne - 1);
        $readmemh("golden.hex", m, 0, nm - 1);
        if (nj != 0) $readmemh("j.hex", j, 0, nj - 1);
        log = $fopen("cycles.txt");
        repeat (4) @(posedge clk);
        rst <= 0;
    end

    always @(posedge clk) if (!rst) begin
        cycle <= cycle + 1;
        busy  <= busy + stat[0];
        // sources: a new word is offered unless held back; an offered word stays until taken
        iq <= next_q;
        ik <= next_k;
        iv <= next_v;
        ic <= next_c;
        is <= next_s;
        ie <= next_e;
        ij <= next_j;
        if (!j_on || j_ready) j_on <= next_j < nj && !hold[7];
        if (!q_on || q_ready) q_on <= next_q < nq && !hold[0] && open;
        if (!k_on || k_ready) k_on <= next_k < nk && !hold[1] && open;
        if (!v_on || v_ready) v_on <= next_v < nk && !hold[2] && open;
        if (!c_on || c_ready) c_on <= next_c < nc && !hold[3];
        if (!s_on || s_ready) s_on <= next_s < ns && !hold[5];
        if (!e_on || e_ready) e_on <= next_e < ne && !hold[6];
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
            if (im >= nm || {m_user, m_data} !== m[im]) begin
                $display("FAIL beat %0d is %h, not %h (cycle %0d)", im, {m_user, m_data}, m[im], cycle);
                $finish;
            end
            $fwrite(log, "%0d\n", cycle);
            im   = im + 1;
            tail <= 0;
        end else begin
            tail <= tail + 1;
        end
        // all there: stay a while for words too many. Nothing for long: hung
        if (im == nm) quiet <= quiet + 1;
        if (quiet == 200) begin
            if (bad || iq != nq || ik != nk || iv != nk || (PAST != 0 && ij != nj))
                $display("FAIL unknown control signals, or input left over: q %0d k %0d v %0d", nq - iq, nk - ik, nk - iv);
            else
                $display("PASS ready=%0d cycles=%0d busy=%0d", ready_at, cycle, busy);
            $fclose(log);
            $finish;
        end
        if (tail > 20000) begin
            $display("FAIL no output for long, at beat %0d of %0d (q %0d k %0d v %0d c %0d s %0d e %0d)", im, nm, iq, ik, iv, ic, is, ie);
            $finish;
        end
    end
endmodule
`default_nettype wire
