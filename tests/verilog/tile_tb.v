// SPDX-License-Identifier: MIT
// tile_tb: drives mlo_tile (WHAT = 0), mlo_untile (1) or the one into the other (2: every pass makes what it got) with in.hex
// ITERATIONS > 0: requests go through mlo_ahead, of a loop of so many
//
// plusargs: n_out: beats expected; s_in s_out s_ask s_ends: chance of a stall per cycle, percent; seed. ends.hex: a word a frame
// out.txt: cycle, {tuser, tdata} per output beat. in.txt: cycle per accepted input beat. ask.txt: cycle, tile_next per request.
`default_nettype none

module tile_tb;
    parameter WHAT = 0, WIDTH = 8, BEATS = 4, TILE = 4, BLOCKS = 2, ITERATIONS = 0;
    localparam W = WIDTH + 3;

    reg clk = 0, rst = 1;
    always #1 clk = !clk;

    integer n_out, s_in, s_out, s_ask, s_ends, seed, fo, fi, fa, dummy;
    initial begin
        dummy = $value$plusargs("n_out=%d", n_out); dummy = $value$plusargs("s_in=%d", s_in);
        dummy = $value$plusargs("s_out=%d", s_out); dummy = $value$plusargs("s_ask=%d", s_ask);
        dummy = $value$plusargs("seed=%d", seed); dummy = $value$plusargs("s_ends=%d", s_ends);
        fo = $fopen("out.txt", "w");
        fi = $fopen("in.txt", "w");
        fa = $fopen("ask.txt", "w");
    end

    wire [W-1:0] i, o, x;
    wire         i_v, i_r, o_v, o_r, x_v, x_r, a_v, a_r, a, bad_out, bad_ask;
    wire         e, e_v, e_r, t, t_v, t_r, over, over_group;
    wire [31:0]  n_i, n_o, n_a, n_e;
    tb_source #(.WIDTH(1), .FILE("ends.hex")) u_ends (
        .clk(clk), .rst(rst), .seed(seed + 3), .stall(s_ends), .tdata(e), .tvalid(e_v), .tready(e_r), .beats(n_e));
    tb_source #(.WIDTH(W)) u_in (.clk(clk), .rst(rst), .seed(seed), .stall(s_in), .tdata(i), .tvalid(i_v), .tready(i_r), .beats(n_i));
    tb_sink #(.WIDTH(W)) u_out (.clk(clk), .rst(rst), .seed(seed + 1), .stall(s_out), .tdata(o), .tvalid(o_v), .tready(o_r), .beats(n_o), .bad(bad_out));
    tb_sink #(.WIDTH(1), .FILE("ask.hex")) u_ask (
        .clk(clk), .rst(rst), .seed(seed + 2), .stall(s_ask), .tdata(a), .tvalid(a_v), .tready(a_r), .beats(n_a), .bad(bad_ask));

    generate
        if (WHAT != 1) begin : with_tile
            mlo_tile #(.WIDTH(WIDTH), .BEATS(BEATS), .TILE(TILE), .BLOCKS(BLOCKS)) dut (
                .clk(clk), .rst(rst),
                .s_axis_tdata(i[WIDTH-1:0]), .s_axis_tuser(i[WIDTH +: 3]), .s_axis_tvalid(i_v), .s_axis_tready(i_r),
                .m_axis_tdata(x[WIDTH-1:0]), .m_axis_tuser(x[WIDTH +: 3]), .m_axis_tvalid(x_v), .m_axis_tready(x_r),
                .ends_tdata(e), .ends_tvalid(e_v), .ends_tready(e_r),
                .tile_valid(t_v), .tile_next(t), .tile_ready(t_r), .over(over), .over_group(over_group));
            if (ITERATIONS > 0) begin : with_ahead
                mlo_ahead ahead (
                    .clk(clk), .rst(rst), .iterations(ITERATIONS[15:0]), .closed(over), .closed_next(over_group),
                    .s_tdata(t), .s_tvalid(t_v), .s_tready(t_r), .m_tdata(a), .m_tvalid(a_v), .m_tready(a_r));
            end else begin : without_ahead
                assign {a_v, a, t_r} = {t_v, t, a_r};
            end
        end else begin : without_tile
            assign {x, x_v, i_r} = {i, i_v, x_r};
            assign {a_v, a, e_r, t_v, t, t_r, over, over_group} = 8'd0;
        end
        if (WHAT != 0) begin : with_untile
            mlo_untile #(.WIDTH(WIDTH), .BEATS(BEATS), .TILE(TILE), .BLOCKS(BLOCKS)) dut (
                .clk(clk), .rst(rst),
                .s_axis_tdata(x[WIDTH-1:0]), .s_axis_tuser(x[WIDTH +: 3]), .s_axis_tvalid(x_v), .s_axis_tready(x_r),
                .m_axis_tdata(o[WIDTH-1:0]), .m_axis_tuser(o[WIDTH +: 3]), .m_axis_tvalid(o_v), .m_axis_tready(o_r));
        end else begin : without_untile
            assign {o, o_v, x_r} = {x, x_v, o_r};
        end
    endgenerate

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
        if (a_v && a_r) $fdisplay(fa, "%0d %b", cycle, a);
        quiet <= o_v && o_r ? 0 : quiet + 1;
        if (bad_out || bad_ask) begin
            $display("FAIL cycle %0d: a waiting word changed, or x", cycle);
            $finish;
        end
        // a while after the last beat: nothing more may come
        if (quiet >= 60 && n_o == n_out || quiet > 2000) begin
            if (n_o == n_out) $display("PASS taken=%0d ends=%0d", n_i, n_e);
            else              $display("FAIL %0d of %0d beats", n_o, n_out);
            $fclose(fo);
            $fclose(fi);
            $fclose(fa);
            $finish;
        end
    end
endmodule

`default_nettype wire
