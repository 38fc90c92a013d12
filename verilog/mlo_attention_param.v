// SPDX-License-Identifier: MIT
// mlo_attention_param: the requantization constants of the iteration that the current row belongs to
//
// Contract    `fresh`: the row at hand is the first of an iteration, until `done` (the
//             row's last step). Swaps the parameter bank once per such row. `ok`: data
//             belongs to the row at hand. Later stages get a copy that travels with the
//             row, so the bank may go as soon as the next iteration's first row comes.
// Latency     3 cycles from fresh to ok, if the next bank is loaded
`default_nettype none
module mlo_attention_param #(
    // bits of a beat from the loader
    parameter AXI_WIDTH = 128
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire [AXI_WIDTH-1:0] s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire                 fresh,
    input  wire                 done,
    output wire                 ok,
    // {SO, MO, SS, MS}
    output wire [43:0]          data
);

reg  swapped_reg;       // the row at hand has had its swap
reg  load_reg;          // waiting for the bank
reg  ok_reg;
wire ready;
wire swap = fresh && !swapped_reg;
wire read = load_reg && ready;

wire [63:0] word;
mlo_param #(.WIDTH(64), .DEPTH(1), .AXI_WIDTH(AXI_WIDTH)) u_param (
    .clk(clk), .rst(rst),
    .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready),
    .first(swap), .ready(ready), .addr(1'b0), .en(read), .data(word)
);

assign ok   = ok_reg && !swap;
assign data = {word[53:48], word[47:32], word[21:16], word[15:0]};

always @(posedge clk) begin
    if (done)
        swapped_reg <= 1'b0;
    else if (swap)
        swapped_reg <= 1'b1;
    if (swap) begin
        ok_reg   <= 1'b0;
        load_reg <= 1'b1;
    end else if (read) begin
        ok_reg   <= 1'b1;
        load_reg <= 1'b0;
    end
    if (rst) begin
        swapped_reg <= 1'b0;
        load_reg    <= 1'b0;
        ok_reg      <= 1'b0;
    end
end

wire unused = &{1'b0, word[63:54], word[31:22]};

endmodule
`default_nettype wire
