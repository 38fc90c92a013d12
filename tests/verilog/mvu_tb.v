// SPDX-License-Identifier: MIT
// mvu_tb: drives mlo_mvu with the beats of in.hex, w.hex, c.hex, t.hex and writes what comes out, with cycle numbers;
// with TILE, mlo_mvu_tiled, to which parameters go when it has requested them
//
// plusargs: n_in n_w n_c n_t n_out  beats of each file, beats expected
//           s_in s_w s_c s_t s_out  chance of a stall per cycle, percent
//           hold                    cycles before the first activation    gap: pause after each token
//           seed
//           group                   tokens between pauses, if not 1
//           t_w t_c t_t             beats of each request (mlo_mvu_tiled); s_ask: chance of a stall; ahead: bits {t, c, w}: not asked for
// out.txt: cycle, {tuser, tdata} per output beat. in.txt: cycle per accepted input beat. w.txt, c.txt, t.txt: likewise, parameters.
// ask.txt: cycle, tile_next per request.
`default_nettype none

module mvu_tb;
    parameter K = 8, N = 8, PE = 2, SIMD = 2, XBITS = 8, WBITS = 8, ABITS = 32, YBITS = 8, TABLE = 0, TBITS = 8, SHIFT = 0, PACK = 1, AXI_WIDTH = 128, TILE = 0, BLOCKS = 2;
    localparam IW = SIMD * XBITS, OW = PE * YBITS;

    reg clk = 0, rst = 1;
    always #1 clk = !clk;

    integer n_in, n_w, n_c, n_t, n_out, s_in, s_w, s_c, s_t, s_out, hold, gap, seed, fo, fi, dummy;
    integer group, t_w, t_c, t_t, s_ask, fw, fc, ft, fa;
    reg [2:0] ahead;
    initial begin
        group = 1; t_w = 0; t_c = 0; t_t = 0; s_ask = 0; ahead = 3'd7;
        dummy = $value$plusargs("group=%d", group); dummy = $value$plusargs("s_ask=%d", s_ask);
        dummy = $value$plusargs("t_w=%d", t_w);     dummy = $value$plusargs("t_c=%d", t_c);
        dummy = $value$plusargs("t_t=%d", t_t);     dummy = $value$plusargs("ahead=%d", ahead);
        dummy = $value$plusargs("n_in=%d", n_in);   dummy = $value$plusargs("s_in=%d", s_in);
        dummy = $value$plusargs("n_w=%d", n_w);     dummy = $value$plusargs("s_w=%d", s_w);
        dummy = $value$plusargs("n_c=%d", n_c);     dummy = $value$plusargs("s_c=%d", s_c);
        dummy = $value$plusargs("n_t=%d", n_t);     dummy = $value$plusargs("s_t=%d", s_t);
        dummy = $value$plusargs("n_out=%d", n_out); dummy = $value$plusargs("s_out=%d", s_out);
        dummy = $value$plusargs("hold=%d", hold);   dummy = $value$plusargs("gap=%d", gap);
        dummy = $value$plusargs("seed=%d", seed);
        $readmemh("in.hex", u_in.mem, 0, n_in - 1);
        $readmemh("w.hex", u_w.mem, 0, n_w - 1);
        $readmemh("c.hex", u_c.mem, 0, n_c - 1);
        if (TABLE) $readmemh("t.hex", u_t.mem, 0, n_t - 1);
        fo = $fopen("out.txt", "w");
        fi = $fopen("in.txt", "w");
        fw = $fopen("w.txt", "w");
        fc = $fopen("c.txt", "w");
        ft = $fopen("t.txt", "w");
        fa = $fopen("ask.txt", "w");
    end

    wire [IW+2:0]        i;
    wire [AXI_WIDTH-1:0] w, c, t;
    wire                 i_v, i_r, w_v, w_r, c_v, c_r, t_v, t_r, o_v;
    reg                  o_r;
    wire [OW-1:0]        o;
    wire [2:0]           o_u, stat;
    wire                 ask_v, ask_next;
    reg                  ask_r;
    integer              cycle, asked;
    tb_feed #(.WIDTH(IW + 3), .DEPTH(16384), .SALT(1)) u_in (
        .clk(clk), .rst(rst), .go(cycle >= hold), .count(n_in), .stall(s_in), .group(K/SIMD*group), .gap(gap), .seed(seed),
        .data(i), .valid(i_v), .ready(i_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .SALT(2)) u_w (
        .clk(clk), .rst(rst), .go(1'b1), .count(ahead[0] ? n_w : asked * t_w), .stall(s_w), .group(0), .gap(0), .seed(seed),
        .data(w), .valid(w_v), .ready(w_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .DEPTH(16384), .SALT(3)) u_c (
        .clk(clk), .rst(rst), .go(1'b1), .count(ahead[1] ? n_c : asked * t_c), .stall(s_c), .group(0), .gap(0), .seed(seed),
        .data(c), .valid(c_v), .ready(c_r));
    tb_feed #(.WIDTH(AXI_WIDTH), .DEPTH(16384), .SALT(4)) u_t (
        .clk(clk), .rst(rst), .go(1'b1), .count(ahead[2] ? n_t : asked * t_t), .stall(s_t), .group(0), .gap(0), .seed(seed),
        .data(t), .valid(t_v), .ready(t_r));

    generate if (TILE == 0) begin : whole
        mlo_mvu #(.K(K), .N(N), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .WBITS(WBITS), .ABITS(ABITS), .YBITS(YBITS),
                  .TABLE(TABLE), .TBITS(TBITS), .SHIFT(SHIFT), .PACK(PACK), .AXI_WIDTH(AXI_WIDTH)) dut (
            .clk(clk), .rst(rst), .params_last(1'b0),
            .s_axis_tdata(i[IW-1:0]), .s_axis_tuser(i[IW +: 3]), .s_axis_tvalid(i_v), .s_axis_tready(i_r),
            .m_axis_tdata(o), .m_axis_tuser(o_u), .m_axis_tvalid(o_v), .m_axis_tready(o_r),
            .s_axis_w_tdata(w), .s_axis_w_tvalid(w_v), .s_axis_w_tready(w_r),
            .s_axis_c_tdata(c), .s_axis_c_tvalid(c_v), .s_axis_c_tready(c_r),
            .s_axis_t_tdata(t), .s_axis_t_tvalid(t_v), .s_axis_t_tready(t_r),
            .stat(stat));
        assign {ask_v, ask_next} = 2'b00;
    end else begin : tiled
        mlo_mvu_tiled #(.K(K), .N(N), .PE(PE), .SIMD(SIMD), .XBITS(XBITS), .WBITS(WBITS), .ABITS(ABITS), .YBITS(YBITS),
                  .TABLE(TABLE), .TBITS(TBITS), .SHIFT(SHIFT), .PACK(PACK), .AXI_WIDTH(AXI_WIDTH), .TILE(TILE), .BLOCKS(BLOCKS)) dut (
            .clk(clk), .rst(rst), .params_last(1'b0),
            .s_axis_tdata(i[IW-1:0]), .s_axis_tuser(i[IW +: 3]), .s_axis_tvalid(i_v), .s_axis_tready(i_r),
            .m_axis_tdata(o), .m_axis_tuser(o_u), .m_axis_tvalid(o_v), .m_axis_tready(o_r),
            .s_axis_w_tdata(w), .s_axis_w_tvalid(w_v), .s_axis_w_tready(w_r),
            .s_axis_c_tdata(c), .s_axis_c_tvalid(c_v), .s_axis_c_tready(c_r),
            .s_axis_t_tdata(t), .s_axis_t_tvalid(t_v), .s_axis_t_tready(t_r),
            .ends_tdata(1'b1), .ends_tvalid(1'b1), .ends_tready(ends_r),        // every frame is a group (tile.py has others)
            .tile_valid(ask_v), .tile_next(ask_next), .tile_ready(ask_r), .over(over), .over_group(over_group),
            .stat(stat));
        wire ends_r, over, over_group;
    end endgenerate

    integer got, busy, starved, blocked, idle, last_event;
    reg     failed, was_v, was_ask, was_next;
    reg [OW+2:0] was;
    reg [31:0] lfsr;
    initial begin
        cycle = 0; got = 0; busy = 0; starved = 0; blocked = 0; idle = 0; failed = 0; was_v = 0; was_ask = 0; last_event = 0; o_r = 0; asked = 0; ask_r = 0;
        #1 lfsr = seed * 32'h2545f491 + 32'd77;
        repeat (4) @(posedge clk);
        rst <= 0;
    end

    task stop(input integer ok);
        begin
            if (ok) $display("PASS cycles=%0d busy=%0d starved=%0d blocked=%0d", cycle, busy, starved, blocked);
            $fclose(fo);
            $fclose(fi);
            $fclose(fw);
            $fclose(fc);
            $fclose(ft);
            $fclose(fa);
            $finish;
        end
    endtask

    always @(posedge clk) if (!rst && !failed) begin
        cycle <= cycle + 1;
        lfsr  <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
        o_r   <= (lfsr[6:0] * 100) >> 7 >= s_out;
        ask_r <= (lfsr[13:7] * 100) >> 7 >= s_ask;
        if (i_v && i_r) $fdisplay(fi, "%0d", cycle);
        if (w_v && w_r) $fdisplay(fw, "%0d", cycle);
        if (c_v && c_r) $fdisplay(fc, "%0d", cycle);
        if (t_v && t_r) $fdisplay(ft, "%0d", cycle);
        if (ask_v && ask_r) begin
            $fdisplay(fa, "%0d %b", cycle, ask_next);
            asked <= asked + 1;
        end
        if (i_v && i_r || w_v && w_r || c_v && c_r || t_v && t_r || o_v && o_r || ask_v && ask_r || cycle < hold + 2) last_event <= cycle;
        // the stream rule, at the output
        if (was_v && (!o_v || was !== {o_u, o})) begin
            failed = 1;
            $display("FAIL cycle %0d: a waiting beat changed", cycle);
            stop(0);
        end
        if (was_ask && (!ask_v || ask_next !== was_next)) begin
            failed = 1;
            $display("FAIL cycle %0d: a waiting request changed", cycle);
            stop(0);
        end
        was_ask  <= ask_v && !ask_r;
        was_next <= ask_next;
        was_v <= o_v && !o_r;
        was   <= {o_u, o};
        if (o_v && o_r) begin
            $fdisplay(fo, "%0d %h", cycle, {o_u, o});
            got <= got + 1;
        end
        busy    <= busy + stat[0];
        starved <= starved + stat[1];
        blocked <= blocked + stat[2];
        if ((stat[0] && stat[1]) || (stat[1] && stat[2]) || (stat[0] && stat[2]) || stat === 3'bxxx) begin
            failed = 1;
            $display("FAIL cycle %0d: stat %b", cycle, stat);
            stop(0);
        end
        // a while after the last beat: nothing more may come
        if (got >= n_out) begin
            idle <= idle + 1;
            if (idle == 40) begin
                if (got == n_out) stop(1);
                else begin
                    $display("FAIL %0d beats, %0d expected", got, n_out);
                    stop(0);
                end
            end
        end
        if (cycle - last_event > 4000 + gap + K * N) begin
            failed = 1;
            $display("FAIL watchdog: cycle %0d, %0d of %0d beats", cycle, got, n_out);
            stop(0);
        end
    end
endmodule

`default_nettype wire
