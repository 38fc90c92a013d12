// SPDX-License-Identifier: MIT
// mlo_delay: what goes in comes out CYCLES cycles later; the escort of a pipeline without stalls
//
// Contract    out_valid, out in cycle t are in_valid, in of cycle t - CYCLES
// Throughput  one word per cycle
// Latency     CYCLES cycles
// Stall       none: the user makes room before a word enters (see mlo_attention)
// Legal       WIDTH >= 1, CYCLES >= 1
`default_nettype none
module mlo_delay #(
    // bits of the payload, >= 1
    parameter WIDTH = 1,
    // length of the line, >= 1
    parameter CYCLES = 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             in_valid,
    input  wire [WIDTH-1:0] in,
    output wire             out_valid,
    output wire [WIDTH-1:0] out
);

generate
    if (WIDTH < 1) begin : g_error_width
        mlo_error_WIDTH_must_be_at_least_1 u_error();
    end
    if (CYCLES < 1) begin : g_error_cycles
        mlo_error_CYCLES_must_be_at_least_1 u_error();
    end
endgenerate

// Word 0 is the youngest. Only the valid bits need a reset.
reg [CYCLES-1:0]       valid_reg;
reg [CYCLES*WIDTH-1:0] line_reg;
wire [CYCLES:0]           valid_next = {valid_reg, in_valid};
wire [(CYCLES+1)*WIDTH-1:0] line_next = {line_reg, in};

always @(posedge clk) begin
    if (valid_next != {CYCLES+1{1'b0}}) begin       // it moves only while there is a word in it
        valid_reg <= valid_next[CYCLES-1:0];
        line_reg  <= line_next[CYCLES*WIDTH-1:0];
    end
    if (rst)
        valid_reg <= {CYCLES{1'b0}};
end
wire unused = &{1'b0, line_next[CYCLES*WIDTH +: WIDTH]};

assign out_valid = valid_reg[CYCLES-1];
assign out       = line_reg[(CYCLES-1)*WIDTH +: WIDTH];

`ifdef FORMAL
    // A word is tracked through the line.
    (* anyseq *) wire f_pick;
    reg               f_past = 1'b0, f_track = 1'b0;
    reg [31:0]        f_age;
    reg [WIDTH-1:0]   f_in;
    always @(posedge clk) begin
        f_past <= 1'b1;
        f_age  <= f_age + 1;
        if (f_age == CYCLES) f_track <= 1'b0;
        if (!f_track && in_valid && f_pick) begin
            f_track <= 1'b1;
            f_age   <= 1;
            f_in    <= in;
        end
        if (rst) f_track <= 1'b0;
    end
    always @* begin
        if (!f_past) assume (rst);
        if (f_past && f_track) begin
            assert (f_age >= 1 && f_age <= CYCLES);
            assert (valid_reg[f_age - 1] && line_reg[(f_age - 1) * WIDTH +: WIDTH] == f_in);
            if (f_age == CYCLES) assert (out_valid && out == f_in);
        end
        cover (f_past && f_track && f_age == CYCLES && valid_reg == {CYCLES{1'b1}} && !in_valid);
    end
`endif
endmodule
`default_nettype wire
