// SPDX-License-Identifier: MIT
// tb_record: takes what a kernel makes, with random pauses, writes it down and ends the simulation. For benches of kernels only.
//
// out.txt: cycle, word per beat taken. in.txt: cycle per beat that the kernel took (`takes`).
// FAIL where an offer changes before it is taken, `stat` is not one of three states at most, nothing happens for long (`loads`: parameters
// come), or more beats come than n_out; PASS with what stat counted, 40 cycles after the last beat.
`default_nettype none
module tb_record #(
    parameter WIDTH = 8
) (
    input  wire               clk,
    input  wire               rst,
    input  wire signed [31:0] seed,
    input  wire signed [31:0] stall,        // percent of the cycles not ready
    input  wire signed [31:0] hold,         // cycles before the first activation
    input  wire signed [31:0] gap,          // cycles between activations
    input  wire signed [31:0] n_out,
    input  wire               takes,
    input  wire               loads,
    input  wire [WIDTH-1:0]   data,
    input  wire               valid,
    output reg                ready,
    input  wire [2:0]         stat,
    output reg  signed [31:0] cycle
);
    integer         got, busy, starved, blocked, idle, last_event, fo, fi;
    reg             failed, was_v;
    reg [WIDTH-1:0] was;
    reg [31:0]      lfsr;
    initial begin
        fo = $fopen("out.txt", "w");
        fi = $fopen("in.txt", "w");
        cycle = 0; got = 0; busy = 0; starved = 0; blocked = 0; idle = 0; failed = 0; was_v = 0; last_event = 0; ready = 0;
        #1 lfsr = seed * 32'h2545f491 + 32'd77;
    end

    always @(posedge clk) if (!rst && !failed) begin
        cycle <= cycle + 1;
        lfsr  <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
        ready <= (lfsr[6:0] * 100) >> 7 >= stall;
        if (takes) $fdisplay(fi, "%0d", cycle);
        if (takes || loads || valid && ready || cycle < hold + 2) last_event <= cycle;
        was_v <= valid && !ready;
        was   <= data;
        if (valid && ready) begin
            $fdisplay(fo, "%0d %h", cycle, data);
            got <= got + 1;
        end
        busy    <= busy + stat[0];
        starved <= starved + stat[1];
        blocked <= blocked + stat[2];
        if (was_v && (!valid || was !== data)) begin
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
