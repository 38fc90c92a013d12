// SPDX-License-Identifier: MIT
// param_tb: mlo_param between a loader (a stalling source) and a reader that uses bank after bank
//
// The reader begins an iteration, waits for ready, reads every address (upwards in even
// iterations, downwards in odd ones, with pauses) and writes what it read to out.hex.
// With RESIDENT, `banks` of them are loaded (so many iterations there are), and used round and round.
// Beats and `first` are counted here; ready and s_axis_tready must follow from the counts
// in every cycle. Reports the cycles in which the first two banks loaded.
`default_nettype none
module param_tb;

parameter WIDTH     = 8;
parameter DEPTH     = 4;
parameter AXI_WIDTH = 128;
parameter BEATS     = 1;        // computed by param.py
parameter RESIDENT  = 0;

localparam AW = (DEPTH > 1) ? $clog2(DEPTH) : 1;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, iterations, banks, seed, in_stall, read_stall, delay, file;
integer beats = 0, firsts = 0, reads = 0, first_in = -1, two_full = -1, bad = 0, done = 0;

initial begin
    if (!$value$plusargs("iterations=%d", iterations)) iterations = 1;
    if (!$value$plusargs("banks=%d", banks)) banks = 1;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("read_stall=%d", read_stall)) read_stall = 0;
    if (!$value$plusargs("delay=%d", delay)) delay = 0;         // cycles before the first iteration
    file = $fopen("out.hex", "w");
end
always #1 clk = !clk;

wire [AXI_WIDTH-1:0] tdata;
wire                 tvalid, tready, ready;
wire [31:0]          in_beats;
reg                  first = 1'b0, en = 1'b0, was_en = 1'b0, reading = 1'b0;
reg  [AW-1:0]        addr = {AW{1'b0}};
wire [WIDTH-1:0]     data;
reg  [WIDTH-1:0]     held;
reg  [31:0]          lfsr = 32'd1;

tb_source #(.WIDTH(AXI_WIDTH)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall),
    .tdata(tdata), .tvalid(tvalid), .tready(tready), .beats(in_beats));

// the counts as they are during this cycle
wire [31:0] loaded   = beats / BEATS;
wire [31:0] released = firsts > 1 ? firsts - 1 : 0;

mlo_param #(.WIDTH(WIDTH), .DEPTH(DEPTH), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) dut (.clk(clk), .rst(rst), .s_axis_tlast(loaded + 1 == banks),
    .s_axis_tdata(tdata), .s_axis_tvalid(tvalid), .s_axis_tready(tready),
    .first(first), .ready(ready), .addr(addr), .en(en), .data(data));

always @(posedge clk) begin
    cycle <= cycle + 1;
    lfsr  <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
    if (cycle == 3) begin
        rst  <= 1'b0;
        lfsr <= seed * 32'd2654435761 ^ 32'h9747b28c;
    end
    if (!rst) begin
        if (tready !== (RESIDENT != 0 ? loaded < banks : loaded - released < 2)) bad = 1;
        if (ready !== (firsts > 0 && (loaded > released || (RESIDENT != 0 && loaded == banks)))) bad = 2;
        if (tvalid && tready) begin
            beats <= beats + 1;
            if (first_in < 0) first_in = cycle;
            if (beats + 1 == 2 * BEATS) two_full = cycle;
        end
        if (first) firsts <= firsts + 1;

        // what the read of the cycle before brought; it must stay
        was_en <= en;
        held   <= data;
        if (was_en) begin
            $fdisplay(file, "%h", data);
            if (^data === 1'bx) bad = 3;
            done = done + 1;
        end else if (done > 0 && data !== held) bad = 4;

        // the reader
        first <= 1'b0;
        en    <= 1'b0;
        addr  <= lfsr[AW-1:0];
        if (!reading && !first && cycle > 5 + delay && firsts < iterations) begin
            first   <= 1'b1;
            reading <= 1'b1;
            reads   <= 0;
        end else if (reading && !first && ready && lfsr[30:8] % 100 >= read_stall) begin
            en    <= 1'b1;
            addr  <= firsts % 2 == 1 ? reads : DEPTH - 1 - reads;
            reads <= reads + 1;
            if (reads == DEPTH - 1) reading <= 1'b0;
        end
        if (done == iterations * DEPTH) begin
            if (bad != 0)
                $display("FAIL contract: bad=%0d", bad);
            else
                $display("PASS load=%0d", two_full - first_in + 1);
            $finish;
        end
    end
    if (cycle > 1000 + iterations * (DEPTH + BEATS) * 40) begin
        $display("FAIL watchdog: beats=%0d firsts=%0d reads=%0d", beats, firsts, done);
        $finish;
    end
end

endmodule
`default_nettype wire
