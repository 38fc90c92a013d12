// SPDX-License-Identifier: MIT
// Bench of mlo_requantize: {acc, m, s} of x.hex in, y.hex expected after the header's latency; `en` goes low now and then (see requantize.py)
`default_nettype none
module requantize_tb;
    parameter ABITS = 32;
    parameter MBITS = 16;
    parameter YBITS = 8;
    parameter DEEP  = 1;
    parameter DSP   = 27;
    localparam INB  = ABITS + MBITS + 6;

    reg              clk = 1'b0, rst = 1'b1, valid = 1'b0, en = 1'b1, bad = 1'b0;
    reg  [31:0]      seed, stall, words, lfsr, sent, count, moves;
    reg  [INB-1:0]   x, next;
    reg  [YBITS-1:0] expected;
    wire             out_valid;
    wire [YBITS-1:0] y;
    integer          fx, fy, got;

    mlo_requantize #(.ABITS(ABITS), .MBITS(MBITS), .YBITS(YBITS), .DEEP(DEEP), .DSP(DSP)) dut (
        .clk(clk), .rst(rst), .en(en), .in_valid(valid), .in_acc(x[MBITS+6 +: ABITS]), .in_m(x[6 +: MBITS]), .in_s(x[5:0]),
        .out_valid(out_valid), .out_y(y)
    );
    always #5 clk = !clk;

    initial begin
        got  = $value$plusargs("seed=%d", seed);
        got  = $value$plusargs("stall=%d", stall);
        got  = $value$plusargs("words=%d", words);
        lfsr = (seed * 32'd40503) | 32'd1;
        {sent, count, moves} = 96'd0;
        fx = $fopen("x.hex", "r");
        fy = $fopen("y.hex", "r");
        repeat (4) @(posedge clk);
        rst <= 1'b0;
    end

    // A word enters with every move, so the first leaves 5 + DEEP moves after it was offered, and one with each move from then.
    always @(posedge clk) if (!rst) begin
        lfsr <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
        en   <= (lfsr[15:0] % 100) >= stall;
        if (en) begin
            got   = $fscanf(fx, "%h", next);
            valid <= got == 1;
            x     <= next;
            if (valid) sent <= sent + 32'd1;
            if (valid || sent != 32'd0) moves <= moves + 32'd1;
            if (out_valid) begin
                got = $fscanf(fy, "%h", expected);
                if (got != 1 || y !== expected) bad = 1'b1;
                if (moves != count + 32'd5 + DEEP) bad = 1'b1;
                count <= count + 32'd1;
            end
            if (count == words || bad || moves > words + 32'd20) begin
                if (bad || count != words) $display("FAIL word %0d of %0d: %h, expected %h; %0d moves", count, words, y, expected, moves);
                else $display("PASS");
                $finish;
            end
        end
    end
endmodule
`default_nettype wire
