// SPDX-License-Identifier: MIT
// every_tb: mlo_every behind a stalling source, whose words are {leaves, tuser, tdata}, between two stalling sinks.
//
// Reports cycles from the first beat taken: `latency` to the first output, `span` to the last.
`default_nettype none
module every_tb;

parameter WIDTH = 8;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, rounds, seed, in_stall, round_stall, out_stall, quiet = 0, first_in = -1, first_out = -1, last_out = -1;

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("rounds=%d", rounds)) rounds = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("round_stall=%d", round_stall)) round_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
end
always #1 clk = !clk;

wire [WIDTH-1:0] s_tdata, fb_tdata, ext_tdata;
wire [2:0]       s_tuser, fb_tuser, ext_tuser;
wire             leaves, s_tvalid, s_fb_tready, s_ext_tready, fb_tvalid, fb_tready, ext_tvalid, ext_tready, fb_bad, ext_bad;
wire [31:0]      in_beats, fb_beats, ext_beats;
wire             s_tready = leaves ? s_ext_tready : s_fb_tready;

tb_source #(.WIDTH(WIDTH + 4)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall),
    .tdata({leaves, s_tuser, s_tdata}), .tvalid(s_tvalid), .tready(s_tready), .beats(in_beats));
mlo_every #(.WIDTH(WIDTH)) dut (.clk(clk), .rst(rst),
    .s_fb_tdata(s_tdata), .s_fb_tvalid(s_tvalid && !leaves), .s_fb_tready(s_fb_tready), .s_fb_tuser(s_tuser),
    .s_ext_tdata(s_tdata), .s_ext_tvalid(s_tvalid && leaves), .s_ext_tready(s_ext_tready), .s_ext_tuser(s_tuser),
    .m_fb_tdata(fb_tdata), .m_fb_tvalid(fb_tvalid), .m_fb_tready(fb_tready), .m_fb_tuser(fb_tuser),
    .m_ext_tdata(ext_tdata), .m_ext_tvalid(ext_tvalid), .m_ext_tready(ext_tready), .m_ext_tuser(ext_tuser));
tb_sink #(.WIDTH(WIDTH + 3), .FILE("round.hex")) u_round (.clk(clk), .rst(rst), .seed(seed + 100), .stall(round_stall),
    .tdata({fb_tuser, fb_tdata}), .tvalid(fb_tvalid), .tready(fb_tready), .beats(fb_beats), .bad(fb_bad));
tb_sink #(.WIDTH(WIDTH + 3), .FILE("out.hex")) u_out (.clk(clk), .rst(rst), .seed(seed + 200), .stall(out_stall),
    .tdata({ext_tuser, ext_tdata}), .tvalid(ext_tvalid), .tready(ext_tready), .beats(ext_beats), .bad(ext_bad));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 1'b0;
    if (!rst) begin
        if (s_tvalid && first_in < 0) first_in = cycle;
        if (ext_tvalid && first_out < 0) first_out = cycle;
        if (ext_tvalid && ext_tready) last_out = cycle;
        quiet <= ext_beats == words && fb_beats == rounds && in_beats == words ? quiet + 1 : 0;
        if (quiet == 20) begin
            if (fb_bad || ext_bad || fb_tvalid || ext_tvalid)
                $display("FAIL contract: bad=%b%b in=%0d round=%0d out=%0d", fb_bad, ext_bad, in_beats, fb_beats, ext_beats);
            else
                $display("PASS latency=%0d span=%0d", first_out - first_in, last_out - first_in);
            $finish;
        end
    end
    if (cycle > 400 + words * 60) begin
        $display("FAIL watchdog: in=%0d round=%0d out=%0d", in_beats, fb_beats, ext_beats);
        $finish;
    end
end

endmodule
`default_nettype wire
