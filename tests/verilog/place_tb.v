// SPDX-License-Identifier: MIT
// place_tb: drives mlo_place with the beats of in.hex, c.hex and t.hex and writes what comes out, with cycle numbers
//
// plusargs: n_in n_c n_t n_out  beats      s_in s_c s_t s_out  chance of a stall per cycle, percent
//           hold            cycles before the first activation      gap: pause after each beat      seed
//           jobs            0: every word at s_axis_j is 0; else so many of jobs.hex, one a frame: {start, unused}, 16 bits each,
//                           which stall as activations do
// out.txt: cycle, {tuser, tdata} per output beat. in.txt: cycle per accepted input beat.
`default_nettype none

module tb_source #(
    parameter WIDTH = 8,
    parameter SALT  = 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             go,
    input  wire [31:0]      count,
    input  wire [31:0]      stall,          // percent
    input  wire [31:0]      gap,            // cycles of a pause after each beat
    input  wire [31:0]      seed,
    output reg  [WIDTH-1:0] data,
    output reg              valid,
    input  wire             ready
);
    reg [WIDTH-1:0] mem [0:65535];
    reg [31:0] at, pause, lfsr;
    wire stop = (lfsr[6:0] * 100) >> 7 < stall;
    always @(posedge clk)
        if (rst) begin
            valid <= 1'b0;
            at    <= 0;
            pause <= 0;
            lfsr  <= seed * 32'h9e3779b1 + SALT * 32'h85ebca6b + 32'd1;
        end else begin
            lfsr <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
            if (pause != 0) pause <= pause - 1;
            if (!valid || ready) begin
                valid <= 1'b0;
                data  <= {WIDTH{1'bx}};
                if (go && at < count && !stop && pause == 0) begin
                    valid <= 1'b1;
                    data  <= mem[at];
                    at    <= at + 1;
                    pause <= gap;
                end
            end
        end
endmodule

module place_tb;
    parameter C = 8, T = 4, PE = 2, XBITS = 16, YBITS = 8, SHIFT = 0, RESIDENT = 0, AXI_WIDTH = 128;
    localparam IW = PE * XBITS, OW = PE * YBITS;

    reg clk = 0, rst = 1;
    always #1 clk = !clk;

    integer n_in, n_c, n_t, n_out, s_in, s_c, s_t, s_out, hold, gap, seed, jobs, fo, fi, dummy;
    initial begin
        dummy = $value$plusargs("n_in=%d", n_in);   dummy = $value$plusargs("s_in=%d", s_in);
        dummy = $value$plusargs("n_c=%d", n_c);     dummy = $value$plusargs("s_c=%d", s_c);
        dummy = $value$plusargs("n_t=%d", n_t);     dummy = $value$plusargs("s_t=%d", s_t);
        dummy = $value$plusargs("n_out=%d", n_out); dummy = $value$plusargs("s_out=%d", s_out);
        dummy = $value$plusargs("hold=%d", hold);   dummy = $value$plusargs("gap=%d", gap);
        dummy = $value$plusargs("seed=%d", seed);
        if (!$value$plusargs("jobs=%d", jobs)) jobs = 0;
        if (jobs != 0) $readmemh("jobs.hex", u_j.mem, 0, jobs - 1);
        $readmemh("in.hex", u_in.mem, 0, n_in - 1);
        $readmemh("c.hex", u_c.mem, 0, n_c - 1);
        $readmemh("t.hex", u_t.mem, 0, n_t - 1);
        fo = $fopen("out.txt", "w");
        fi = $fopen("in.txt", "w");
    end

    wire [IW+2:0]        i;
    wire [AXI_WIDTH-1:0] c, t;
    wire                 i_v, i_r, c_v, c_r, t_v, t_r, o_v;
    reg                  o_r;
    wire [OW-1:0]        o;
    wire [2:0]           o_u, stat;
    integer              cycle;

    wire [31:0]          j;
    wire                 j_v, j_r;
    tb_source #(.WIDTH(32), .SALT(5)) u_j (
        .clk(clk), .rst(rst), .go(1'b1), .count(jobs), .stall(s_in), .gap(0), .seed(seed),
        .data(j), .valid(j_v), .ready(j_r));
    tb_source #(.WIDTH(IW + 3), .SALT(1)) u_in (
        .clk(clk), .rst(rst), .go(cycle >= hold), .count(n_in), .stall(s_in), .gap(gap), .seed(seed),
        .data(i), .valid(i_v), .ready(i_r));
    tb_source #(.WIDTH(AXI_WIDTH), .SALT(3)) u_c (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_c), .stall(s_c), .gap(0), .seed(seed),
        .data(c), .valid(c_v), .ready(c_r));
    tb_source #(.WIDTH(AXI_WIDTH), .SALT(4)) u_t (
        .clk(clk), .rst(rst), .go(1'b1), .count(n_t), .stall(s_t), .gap(0), .seed(seed),
        .data(t), .valid(t_v), .ready(t_r));
    mlo_place #(.C(C), .T(T), .PE(PE), .XBITS(XBITS), .YBITS(YBITS), .SHIFT(SHIFT), .RESIDENT(RESIDENT), .AXI_WIDTH(AXI_WIDTH)) dut (
        .clk(clk), .rst(rst), .params_last(1'b0), .s_axis_j_tdata(jobs != 0 ? j : 32'd0), .s_axis_j_tvalid(jobs == 0 || j_v), .s_axis_j_tready(j_r),
        .s_axis_tdata(i[IW-1:0]), .s_axis_tuser(i[IW +: 3]), .s_axis_tvalid(i_v), .s_axis_tready(i_r),
        .m_axis_tdata(o), .m_axis_tuser(o_u), .m_axis_tvalid(o_v), .m_axis_tready(o_r),
        .s_axis_c_tdata(c), .s_axis_c_tvalid(c_v), .s_axis_c_tready(c_r),
        .s_axis_t_tdata(t), .s_axis_t_tvalid(t_v), .s_axis_t_tready(t_r), .stat(stat));

    integer      got, busy, starved, blocked, idle, last_event;
    reg          failed, was_v;
    reg [OW+2:0] was;
    reg [31:0]   lfsr;
    initial begin
        cycle = 0; got = 0; busy = 0; starved = 0; blocked = 0; idle = 0; failed = 0; was_v = 0; last_event = 0; o_r = 0;
        #1 lfsr = seed * 32'h2545f491 + 32'd77;
        repeat (4) @(posedge clk);
        rst <= 0;
    end

    always @(posedge clk) if (!rst && !failed) begin
        cycle <= cycle + 1;
        lfsr  <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
        o_r   <= (lfsr[6:0] * 100) >> 7 >= s_out;
        if (i_v && i_r) $fdisplay(fi, "%0d", cycle);
        if (i_v && i_r || c_v && c_r || t_v && t_r || o_v && o_r || cycle < hold + 2) last_event <= cycle;
        was_v <= o_v && !o_r;
        was   <= {o_u, o};
        if (o_v && o_r) begin
            $fdisplay(fo, "%0d %h", cycle, {o_u, o});
            got <= got + 1;
        end
        busy    <= busy + stat[0];
        starved <= starved + stat[1];
        blocked <= blocked + stat[2];
        if (was_v && (!o_v || was !== {o_u, o})) begin
            failed = 1;
            $display("FAIL cycle %0d: a waiting beat changed", cycle);
        end else if ((stat[0] && stat[1]) || (stat[1] && stat[2]) || (stat[0] && stat[2]) || ^stat === 1'bx) begin
            failed = 1;
            $display("FAIL cycle %0d: stat %b", cycle, stat);
        end else if (cycle - last_event > 2000 + gap) begin
            failed = 1;
            $display("FAIL watchdog: cycle %0d, %0d of %0d beats", cycle, got, n_out);
        end else if (got >= n_out) begin
            idle <= idle + 1;                   // a while after the last beat: nothing more may come
            if (idle == 40) begin
                failed = 1;
                if (got == n_out) $display("PASS cycles=%0d busy=%0d starved=%0d blocked=%0d", cycle, busy, starved, blocked);
                else              $display("FAIL %0d beats, %0d expected", got, n_out);
            end
        end
        if (failed) begin
            $fclose(fo);
            $fclose(fi);
            $finish;
        end
    end
endmodule

`default_nettype wire
