// SPDX-License-Identifier: MIT
// Bench of mlo_rsqrt: v.hex in, y.hex expected ({k, root, R}); latency, throughput and the serial bits are checked here (see rsqrt.py)
`default_nettype none
module rsqrt_tb;
    parameter LATENCY = 41;

    reg         clk = 1'b0, rst = 1'b1;
    reg  [31:0] seed, stall, words, limit, cycle, count, lfsr, taken_at, offered_at;
    integer     fv, fy, got;
    reg  [61:0] v, next;
    reg         v_valid = 1'b0, ready = 1'b0, before = 1'b0;
    wire        v_ready, valid, q_valid, q_bit;
    wire [16:0] r;
    wire [4:0]  k;
    reg  [39:0] expected;
    reg  [16:0] bits;
    reg  [4:0]  nbits;
    reg         bad;

    mlo_rsqrt dut (
        .clk(clk), .rst(rst), .s_tdata(v), .s_tvalid(v_valid), .s_tready(v_ready),
        .m_r(r), .m_k(k), .m_tvalid(valid), .m_tready(ready), .q_valid(q_valid), .q_bit(q_bit)
    );
    always #5 clk = !clk;

    initial begin
        got = $value$plusargs("seed=%d", seed);
        got = $value$plusargs("stall=%d", stall);
        got = $value$plusargs("words=%d", words);
        got = $value$plusargs("limit=%d", limit);
        lfsr     = (seed * 32'd40503) | 32'd1;
        cycle    = 32'd0;
        count    = 32'd0;
        taken_at = 32'd0;
        bad      = 1'b0;
        fv = $fopen("v.hex", "r");
        fy = $fopen("y.hex", "r");
        repeat (4) @(posedge clk);
        rst <= 1'b0;
    end

    always @(posedge clk) if (!rst) begin
        cycle <= cycle + 32'd1;
        if (stall != 32'd0) lfsr <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
        ready  <= stall == 32'd0 || (lfsr[15:0] % 100) >= stall;
        before <= valid && !ready;
        if (!v_valid || v_ready) begin
            v_valid <= 1'b0;
            v       <= {62{1'bx}};      // (a value only while it is offered)
            if (stall == 32'd0 || (lfsr[31:16] % 100) >= stall) begin
                got = $fscanf(fv, "%h", next);
                if (got == 1) begin
                    v_valid <= 1'b1;
                    v       <= next;
                end
            end
        end
        if (v_valid && v_ready) begin
            if (stall == 32'd0 && count != 32'd0 && cycle - taken_at != LATENCY + 1) bad = 1'b1;
            taken_at <= cycle;
            nbits    <= 5'd0;
        end
        if (q_valid) begin
            bits  <= {bits[15:0], q_bit};
            nbits <= nbits + 5'd1;
        end
        if (valid && !before) begin
            if (cycle - taken_at != LATENCY || !q_valid || nbits != 5'd16 || {bits[15:0], q_bit} != r) bad = 1'b1;
        end else if (valid && (q_valid || nbits != 5'd17)) bad = 1'b1;
        if (before && !valid) bad = 1'b1;
        if (valid) begin
            if (!before) got = $fscanf(fy, "%h", expected);
            if ({k, dut.root, 1'b0, r} !== {expected[38:34], expected[33:18], expected[17:0]}) bad = 1'b1;
        end
        if (valid && ready) begin
            count <= count + 32'd1;
            if (count + 32'd1 == words && !bad) begin
                $display("PASS cycles=%0d", cycle);
                $finish;
            end
        end
        if (bad || cycle == limit) begin
            $display("FAIL word %0d: k %0d root %0d R %0d, expected %h", count, k, dut.root, r, expected);
            $finish;
        end
    end
endmodule
`default_nettype wire
