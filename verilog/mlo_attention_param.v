// SPDX-License-Identifier: MIT
// mlo_attention_param: the requantization constants of the iteration that the current row belongs to
//
// Contract    `fresh`: the row at hand is the first of an iteration, until `done` (the
//             row's last step). Swaps the parameter bank once per such row. `ok`: data
//             belongs to the row at hand. Later stages get a copy that travels with the
//             row, so the bank may go as soon as the next iteration's first row comes.
// Throughput  a row per cycle; rows of the same iteration wait for nothing
// Latency     3 cycles from fresh to ok, if the next bank is loaded
// Stall       ok stays low until the next bank is there
// Legal       done only while ok
`default_nettype none
module mlo_attention_param #(
    // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter RESIDENT = 0,
    // bits of a beat from the loader
    parameter AXI_WIDTH = 128,
    // 1: there are constants of probabilities, and of rounded scores
    parameter PROB = 0,
    parameter ROUND = 0,
    // 1: there are BACK and AHEAD
    parameter BAND = 0,
    // bits of BACK, of AHEAD's groups, of its lanes beyond
    parameter BW = 1,
    parameter GW = 1,
    parameter LW = 1,
    // derived, do not set
    parameter PAR = 44 + 30*PROB + 32*ROUND
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    input  wire [AXI_WIDTH-1:0] s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire                 fresh,
    input  wire                 done,
    output wire                 ok,
    // {[ZR, SR, MR,] [HP, SP, MP,] SO, MO, SS, MS}
    output wire [PAR-1:0]       data,
    // BAND: {lanes, groups, BACK}
    output wire [LW+GW+BW-1:0]  reach
);

reg  swapped_reg;       // the row at hand has had its swap
reg  load_reg;          // waiting for the bank
reg  ok_reg;
wire ready;
wire swap = fresh && !swapped_reg;
wire read = load_reg && ready;

localparam HALF = (PROB != 0) ? 128 : 64;
localparam WORD = (BAND != 0) ? 2 * HALF : HALF;
wire [WORD-1:0] word;
mlo_param #(.WIDTH(WORD), .DEPTH(1), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_param (
    .clk(clk), .rst(rst),
    .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready), .s_axis_tlast(params_last),
    .first(swap), .ready(ready), .addr(1'b0), .en(read), .data(word)
);

assign ok   = ok_reg && !swap;
wire [43:0] plain = {word[53:48], word[47:32], word[21:16], word[15:0]};
wire        unused = &{1'b0, word[63:54], word[31:22]};
generate
    if (PROB == 0) begin : g_plain
        assign data = plain;
    end else begin : g_prob
        wire [105:0] all = {word[127:120], word[119:114], word[113:96], word[95:88], word[85:80], word[79:64], plain};
        assign data = all[PAR-1:0];
        wire unused_prob = &{1'b0, word[87:86], all};
    end
    if (BAND == 0) begin : g_all
        assign reach = {LW+GW+BW{1'b0}};
    end else begin : g_band
        assign reach = {word[HALF+48 +: LW], word[HALF+24 +: GW], word[HALF +: BW]};
        wire unused_band = &{1'b0, word[WORD-1:HALF]};
    end
endgenerate

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

`ifdef FORMAL
    // Assumed of the user: a fresh row stays until it is done; a row is not done before its constants are there.
    reg           f_past = 1'b0, f_fresh, f_same, f_used, f_mine;
    reg [PAR-1:0] f_data;
    reg [1:0]     f_swaps;
    always @(posedge clk) begin
        f_past  <= 1'b1;
        f_fresh <= fresh && !done && !rst;
        f_same  <= ok && !rst;
        f_data  <= data;
        f_used  <= !rst && (f_used || swap);
        f_mine  <= !rst && fresh && !done && (f_mine || swap);     // this row had its swap
        f_swaps <= rst ? 2'd0 : f_swaps + swap;
    end
    always @* begin
        if (!f_past) assume (rst);
        if (f_past && f_fresh) assume (fresh);
        if (!ok) assume (!done);
    end
    always @* if (f_past) begin
        assert (swapped_reg == f_mine);
        assert (!swap || !f_mine);                          // one for each row that is fresh
        if (fresh && ok) assert (f_mine);                   // its constants, not those of the row before
        if (swap && f_used) assert (ready);                 // as mlo_param wants it
        if (load_reg) assert (f_used && f_mine && !ok);
        if (ok) assert (f_used && ready && !load_reg);
        if (f_used) assert (ok_reg || load_reg);
        if (f_same && ok) assert (data == f_data);          // until the next row that is fresh
        cover (f_past && f_swaps == 2'd2 && ok && done && !fresh);
    end
`endif
endmodule
`default_nettype wire
