// SPDX-License-Identifier: MIT
// Bench of mlo_exactnorm: x.hex, c.hex, e.hex in, y.hex expected; in.txt and out.txt get the cycle of every beat (see exactnorm.py)
`default_nettype none

module exactnorm_tb;
    parameter C         = 16;
    parameter PE        = 4;
    parameter XBITS     = 8;
    parameter YBITS     = 8;
    parameter CENTER    = 1;
    parameter WBITS     = 32;
    parameter AXI_WIDTH = 128;
    parameter MULBITS   = 18;

    reg         clk = 1'b0, rst = 1'b1;
    reg  [31:0] seed, stall, beats, limit, cycle, count, lfsr;
    integer     fx, fy, fi, fo, got;
    reg  [PE*YBITS+2:0] expected;

    wire [PE*XBITS-1:0]  x_data;
    wire [2:0]           x_user, y_user, stat;
    wire [AXI_WIDTH-1:0] c_data, e_data;
    wire                 x_valid, x_ready, c_valid, c_ready, e_valid, e_ready, y_valid;
    reg                  y_ready = 1'b0;
    wire [PE*YBITS-1:0]  y_data;

    tb_held #(PE*XBITS+3, 1) u_x (clk, rst, "x.hex", seed, stall, count, {x_user, x_data}, x_valid, x_ready);
    tb_held #(AXI_WIDTH, 2)  u_c (clk, rst, "c.hex", seed, stall, count, c_data, c_valid, c_ready);
    tb_held #(AXI_WIDTH, 3)  u_e (clk, rst, "e.hex", seed, stall, count, e_data, e_valid, e_ready);

    mlo_exactnorm #(.C(C), .PE(PE), .XBITS(XBITS), .YBITS(YBITS), .CENTER(CENTER), .WBITS(WBITS), .AXI_WIDTH(AXI_WIDTH), .MULBITS(MULBITS)) dut (
        .clk(clk), .rst(rst),
        .s_axis_tdata(x_data), .s_axis_tvalid(x_valid), .s_axis_tready(x_ready), .s_axis_tuser(x_user),
        .s_axis_c_tdata(c_data), .s_axis_c_tvalid(c_valid), .s_axis_c_tready(c_ready),
        .s_axis_e_tdata(e_data), .s_axis_e_tvalid(e_valid), .s_axis_e_tready(e_ready),
        .m_axis_tdata(y_data), .m_axis_tvalid(y_valid), .m_axis_tready(y_ready), .m_axis_tuser(y_user), .stat(stat)
    );

    always #5 clk = !clk;

    initial begin
        got = $value$plusargs("seed=%d", seed);
        got = $value$plusargs("stall=%d", stall);
        got = $value$plusargs("beats=%d", beats);
        got = $value$plusargs("limit=%d", limit);
        lfsr  = (seed * 32'd40503) | 32'd1;
        cycle = 32'd0;
        count = 32'd0;
        fy = $fopen("y.hex", "r");
        fi = $fopen("in.txt", "w");
        fo = $fopen("out.txt", "w");
        repeat (4) @(posedge clk);
        rst <= 1'b0;
    end

    reg                 held = 1'b0;
    reg  [PE*YBITS+2:0] held_data;
    always @(posedge clk) if (!rst) begin
        cycle <= cycle + 32'd1;
        lfsr  <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
        y_ready <= (lfsr[15:0] % 100) >= stall;
        if (x_valid && x_ready) $fdisplay(fi, "%0d", cycle);
        if (held && (!y_valid || held_data !== {y_user, y_data})) begin
            $display("FAIL output changed while stalled, cycle %0d", cycle);
            $finish;
        end
        held      <= y_valid && !y_ready;
        held_data <= {y_user, y_data};
        if (^stat === 1'bx || (stat & (stat - 3'd1)) != 3'd0) begin
            $display("FAIL stat %b", stat);
            $finish;
        end
        if (y_valid && y_ready) begin
            $fdisplay(fo, "%0d", cycle);
            got = $fscanf(fy, "%h", expected);
            if (got != 1 || {y_user, y_data} !== expected) begin
                $display("FAIL beat %0d: %h, expected %h", count, {y_user, y_data}, expected);
                $finish;
            end
            count <= count + 32'd1;
            if (count + 32'd1 == beats) begin
                $fclose(fi);
                $fclose(fo);
                $display("PASS cycles=%0d", cycle);
                $finish;
            end
        end
        if (cycle == limit) begin
            $display("FAIL watchdog: %0d of %0d beats", count, beats);
            $finish;
        end
    end
endmodule
`default_nettype wire
