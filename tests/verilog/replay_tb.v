// SPDX-License-Identifier: MIT
// replay_tb: drives mlo_replay with in.hex
//
// plusargs: n_out: beats expected; s_in s_out: chance of a stall per cycle, percent; seed; iterations
// out.txt: cycle, {tuser, tdata} per output beat. in.txt: cycle per accepted input beat.
`default_nettype none

module replay_tb;
    parameter WIDTH = 8, BEATS = 4, T = 4;
    localparam W = WIDTH + 3;

    reg clk = 0, rst = 1;
    always #1 clk = !clk;

    integer n_out, s_in, s_out, seed, iterations, fo, fi, dummy;
    initial begin
        dummy = $value$plusargs("n_out=%d", n_out); dummy = $value$plusargs("s_in=%d", s_in);
        dummy = $value$plusargs("s_out=%d", s_out); dummy = $value$plusargs("seed=%d", seed);
        dummy = $value$plusargs("iterations=%d", iterations);
        fo = $fopen("out.txt", "w");
        fi = $fopen("in.txt", "w");
    end

    wire [W-1:0] i, o;
    wire         i_v, i_r, o_v, o_r, bad;
    wire [2:0]   stat;
    wire [31:0]  n_i, n_o;
    tb_source #(.WIDTH(W)) u_in (.clk(clk), .rst(rst), .seed(seed), .stall(s_in), .tdata(i), .tvalid(i_v), .tready(i_r), .beats(n_i));
    tb_sink #(.WIDTH(W)) u_out (.clk(clk), .rst(rst), .seed(seed + 1), .stall(s_out), .tdata(o), .tvalid(o_v), .tready(o_r), .beats(n_o), .bad(bad));
    mlo_replay #(.WIDTH(WIDTH), .BEATS(BEATS), .T(T)) dut (
        .clk(clk), .rst(rst), .iterations(iterations[15:0]), .stat(stat),
        .s_axis_tdata(i[WIDTH-1:0]), .s_axis_tuser(i[WIDTH +: 3]), .s_axis_tvalid(i_v), .s_axis_tready(i_r),
        .m_axis_tdata(o[WIDTH-1:0]), .m_axis_tuser(o[WIDTH +: 3]), .m_axis_tvalid(o_v), .m_axis_tready(o_r));

    integer cycle, quiet;
    initial begin
        cycle = 0;
        quiet = 0;
        repeat (4) @(posedge clk);
        rst <= 0;
    end
    always @(posedge clk) if (!rst) begin
        cycle <= cycle + 1;
        if (i_v && i_r) $fdisplay(fi, "%0d", cycle);
        if (o_v && o_r) $fdisplay(fo, "%0d %h", cycle, o);
        quiet <= o_v && o_r ? 0 : quiet + 1;
        if (bad) begin
            $display("FAIL cycle %0d: a waiting word changed, or x", cycle);
            $finish;
        end
        if (stat != {o_v && !o_r, !o_v, o_v && o_r}) begin
            $display("FAIL cycle %0d: stat is %b", cycle, stat);
            $finish;
        end
        // a while after the last beat: nothing more may come
        if (quiet >= 60 && n_o == n_out || quiet > 2000) begin
            if (n_o == n_out) $display("PASS taken=%0d", n_i);
            else              $display("FAIL %0d of %0d beats", n_o, n_out);
            $fclose(fo);
            $fclose(fi);
            $finish;
        end
    end
endmodule

`default_nettype wire
