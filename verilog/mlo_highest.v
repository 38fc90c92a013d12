// SPDX-License-Identifier: MIT
// mlo_highest: the largest of N signed numbers, of those that count
//
// Contract    most: the largest number whose bit of `count` is set; where none is, the lowest number there is
// How it is built. Each number is compared with each other one, all at once: N*(N-1)/2 comparisons, one behind the other none. Of equal ones the first is taken.
// Throughput  all
// Latency     none: combinational
// Stall       none
// Legal       N >= 1; SB >= 2
`default_nettype none
module mlo_highest #(
    parameter N  = 2,           // numbers
    parameter SB = 20           // bits of one, signed
) (
    input  wire [N-1:0]    count,
    input  wire [N*SB-1:0] number,
    output reg  [SB-1:0]   most
);
integer i, j;
reg [N-1:0]         wins;
reg signed [SB-1:0] here, there;
reg signed [SB:0]   gap;
always @* begin
    wins = count;
    for (i = 1; i < N; i = i + 1) begin
        here = number[i*SB +: SB];
        for (j = 0; j < i; j = j + 1) begin
            there = number[j*SB +: SB];
            gap   = there - here;
            if (count[i] && gap[SB])  wins[j] = 1'b0;
            if (count[j] && !gap[SB]) wins[i] = 1'b0;
        end
    end
    most = (count == {N{1'b0}}) ? {1'b1, {SB-1{1'b0}}} : number[SB-1:0];    // if none of the others wins
    for (i = 1; i < N; i = i + 1)
        if (wins[i]) most = number[i*SB +: SB];
end

`ifdef FORMAL
    // It is one of those that count, and none of them is above it.
    (* anyconst *) wire [7:0] f_lane;
    reg                 f_one;
    integer             f_i;
    wire signed [SB-1:0] f_number = number[f_lane*SB +: SB], f_most = most;
    always @* begin
        f_one = count == {N{1'b0}} && most == {1'b1, {SB-1{1'b0}}};
        for (f_i = 0; f_i < N; f_i = f_i + 1)
            if (count[f_i] && number[f_i*SB +: SB] == most) f_one = 1'b1;
        assume (f_lane < N);
        assert (f_one);
        if (count[f_lane]) assert (f_number <= f_most);
    end
`endif
endmodule
`default_nettype wire
