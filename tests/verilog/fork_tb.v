// SPDX-License-Identifier: MIT
// fork_tb: mlo_fork with N receivers of different temper
//
// Receiver i stalls out_stall percent (+ 15 i when that is not 0). Each output's words are
// written as {output, word}; fork.py sorts them out.
`default_nettype none
module fork_tb;

parameter WIDTH = 8;
parameter N     = 2;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, seed, in_stall, out_stall, quiet = 0, first_in = -1, first_out = -1, last_out = -1, i, file, bad = 0, total = 0;

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
    file = $fopen("out.hex", "w");
end
always #1 clk = !clk;

wire [WIDTH-1:0] s_tdata, m_tdata;
wire             s_tvalid, s_tready;
wire [N-1:0]     m_tvalid;
reg  [N-1:0]     m_tready = {N{1'b0}};
wire [31:0]      in_beats;
reg  [31:0]      lfsr = 32'd1;
reg  [N-1:0]     held_valid = {N{1'b0}};
reg  [WIDTH-1:0] held_word;

tb_source #(.WIDTH(WIDTH)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall),
    .tdata(s_tdata), .tvalid(s_tvalid), .tready(s_tready), .beats(in_beats));

mlo_fork #(.WIDTH(WIDTH), .N(N)) dut (.clk(clk), .rst(rst),
    .s_tdata(s_tdata), .s_tvalid(s_tvalid), .s_tready(s_tready),
    .m_tdata(m_tdata), .m_tvalid(m_tvalid), .m_tready(m_tready));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) begin
        rst  <= 1'b0;
        lfsr <= seed * 32'd2654435761 ^ 32'h9747b28c;
    end
    if (!rst) begin
        for (i = 0; i < N; i = i + 1) begin
            lfsr = {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
            m_tready[i] <= out_stall == 0 || lfsr[30:8] % 100 >= out_stall + 15 * i;
            if (held_valid[i] && (!m_tvalid[i] || m_tdata !== held_word)) bad = 1;
            if (m_tvalid[i] && m_tready[i]) begin
                $fdisplay(file, "%h", {i[15:0], m_tdata});
                total = total + 1;
                if (first_out < 0) first_out = cycle;
                last_out = cycle;
            end
        end
        if (^m_tvalid === 1'bx || |m_tvalid && ^m_tdata === 1'bx) bad = 1;
        held_valid <= m_tvalid & ~m_tready;
        held_word  <= m_tdata;
        if (s_tvalid && s_tready && first_in < 0) first_in = cycle;
        quiet <= total == words * N ? quiet + 1 : 0;
        if (quiet == 20) begin
            if (bad != 0 || in_beats != words || |m_tvalid)
                $display("FAIL contract: bad=%0d in=%0d out=%0d", bad, in_beats, total);
            else
                $display("PASS latency=%0d span=%0d", first_out - first_in, last_out - first_in);
            $finish;
        end
    end
    if (cycle > 400 + words * 60) begin
        $display("FAIL watchdog: in=%0d out=%0d", in_beats, total);
        $finish;
    end
end

endmodule
`default_nettype wire
