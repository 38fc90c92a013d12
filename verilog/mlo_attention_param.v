// SPDX-License-Identifier: MIT
// mlo_attention_param: the requantization constants of the iteration that the current row belongs to
//
// Contract    `full`: a row is at hand, until `done` (its last step); `first`: it is the first of an
//             iteration (without a row: any). Swaps the parameter bank once per such row. `ok`: data
//             belongs to the row at hand, if one is. Later stages get a copy that travels with the
//             row, so the bank may go as soon as the next iteration's first row comes.
//             BIAS: bias is word bias_at of the bank's, the cycle after bias_read (while ok), and stays
//             until the next one is read, or the constants of another iteration are.
// Throughput  a row per cycle; rows of the same iteration wait for nothing
// Latency     3 cycles from such a row to ok, if the next bank is loaded; BIAS: and a cycle for each of the
//             words of PE * 16 bits that the constants take
// Stall       ok stays low until the next bank is there
// Legal       done only while ok
// Banks       BIAS: words of PE * 16 bits, WORDS of the bias, then those of the constants
`default_nettype none
module mlo_attention_param #(
    // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter RESIDENT = 0,
    // bits of a beat from the loader
    parameter AXI_WIDTH = 128,
    // 1: there are constants of probabilities, and of rounded scores
    parameter PROB = 0,
    parameter ROUND = 0,
    // 1: there are constants of a soft cap
    parameter CAP = 0,
    // 1: there are BACK and AHEAD
    parameter BAND = 0,
    // bits of BACK, of AHEAD's groups, of its lanes beyond
    parameter BW = 1,
    parameter GW = 1,
    parameter LW = 1,
    // 1: there is a bias, of so many words of PE numbers of 16 bits
    parameter BIAS = 0,
    parameter WORDS = 1,
    parameter PE = 1,
    // derived, do not set
    parameter PAR = 44 + 30*PROB + 32*ROUND + 22*CAP,
    parameter BA  = (WORDS > 1) ? $clog2(WORDS) : 1
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    input  wire [AXI_WIDTH-1:0] s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire                 full,
    input  wire                 first,
    input  wire                 done,
    output wire                 ok,
    // {[ZR, SR, MR,] [HP, SP, MP,] [SC, MC,] SO, MO, SS, MS}
    output wire [PAR-1:0]       data,
    // BAND: {lanes, groups, BACK}
    output wire [LW+GW+BW-1:0]  reach,
    // BIAS
    input  wire                 bias_read,
    input  wire [BA-1:0]        bias_at,
    output wire [PE*16-1:0]     bias
);

reg  swapped_reg;       // the row at hand has had its swap
reg  load_reg;          // waiting for the bank
reg  ok_reg;
wire ready;
wire swap = full && first && !swapped_reg;
wire read = load_reg && ready;
wire read_last;         // nothing of the constants is left to read
wire there;             // they are there

localparam HALF = (PROB != 0 || CAP != 0) ? 128 : 64;
localparam WORD = (BAND != 0) ? 2 * HALF : HALF;
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam BITS  = PE * 16;                             // of a word of the bias
localparam PARTS = (BIAS != 0) ? (WORD + BITS - 1) / BITS : 1;  // words of the constants
localparam WIDTH = (BIAS != 0) ? BITS : WORD;
localparam DEPTH = (BIAS != 0) ? WORDS + PARTS : 1;
localparam DA    = (DEPTH > 1) ? $clog2(DEPTH) : 1;
wire [WORD-1:0]  word;
wire [WIDTH-1:0] stored;
wire [DA-1:0]    addr;
mlo_param #(.WIDTH(WIDTH), .DEPTH(DEPTH), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_param (
    .clk(clk), .rst(rst),
    .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready), .s_axis_tlast(params_last),
    .first(swap), .ready(ready), .addr(addr), .en(read || (BIAS != 0 && bias_read)), .data(stored)
);
generate
    if (BIAS == 0) begin : g_alone
        assign addr        = {DA{1'b0}};
        assign word        = stored;
        assign read_last   = 1'b1;
        assign there       = read;
        assign bias        = {BITS{1'b0}};
        wire   unused_bias = &{1'b0, bias_read, bias_at};
    end else begin : g_bias
        // the constants are read a word a cycle into a register: the memory goes on with the bias
        localparam [31:0]   BEGIN_32 = WORDS;
        localparam [31:0]   END_32   = DEPTH - 1;
        localparam [DA-1:0] BEGIN    = BEGIN_32[DA-1:0];
        localparam [DA-1:0] END      = END_32[DA-1:0];
        localparam [DA-1:0] ONE      = 1;
        reg  [DA-1:0]             part_reg;             // the word of constants to read
        reg                       take_reg, last_reg;   // one is on bias; it is the last one
        reg  [PARTS*BITS-1:0]     word_reg;
        wire [(PARTS+1)*BITS-1:0] word_next = {bias, word_reg};
        wire [DA:0]               bias_word = {{DA+1-BA{1'b0}}, bias_at};
        assign addr      = load_reg ? part_reg : bias_word[DA-1:0];
        assign bias      = stored;
        assign read_last = part_reg == END;
        assign there     = last_reg;
        assign word      = word_reg[WORD-1:0];
        always @(posedge clk) begin
            take_reg <= read && !rst;
            last_reg <= read && read_last && !rst;
            if (read)     part_reg <= part_reg + ONE;
            if (take_reg) word_reg <= word_next[BITS +: PARTS*BITS];
            if (rst || swap) part_reg <= BEGIN;
        end
        wire unused_bits = &{1'b0, word_next[BITS-1:0], bias_word[DA], word_reg};
    end
endgenerate

assign ok   = ok_reg && !(first && !swapped_reg);       // (not that of swap: much waits for it)
wire [43:0] plain = {word[53:48], word[47:32], word[21:16], word[15:0]};
wire        unused = &{1'b0, word[63:54], word[31:22]};
generate
    if (PROB == 0 && CAP == 0) begin : g_plain
        assign data = plain;
    end else if (CAP != 0) begin : g_cap
        assign data = {word[85:80], word[79:64], plain};
        wire unused_cap = &{1'b0, word[127:86]};
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
    end else begin
        if (there)             ok_reg   <= 1'b1;
        if (read && read_last) load_reg <= 1'b0;
    end
    if (rst) begin
        swapped_reg <= 1'b0;
        load_reg    <= 1'b0;
        ok_reg      <= 1'b0;
    end
end

`ifdef FORMAL
    // Assumed of the user: a fresh row stays until it is done; a row is not done before its constants are there.
    wire          fresh = full && first;
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
        if (!ok) assume (!done && !bias_read);
    end
    always @* if (f_past) begin
        assert (swapped_reg == f_mine);
        assert (!swap || !f_mine);                          // one for each row that is fresh
        if (fresh && ok) assert (f_mine);                   // its constants, not those of the row before
        if (swap && f_used) assert (ready);                 // as mlo_param wants it
        if (load_reg) assert (f_used && f_mine && !ok);
        if (ok) assert (f_used && ready && !load_reg);
        if (f_used) assert (ok_reg || load_reg || there);
        if (f_same && ok) assert (data == f_data);          // until the next row that is fresh
        cover (f_past && f_swaps == 2'd2 && ok && done && !fresh);
    end
`endif
endmodule
`default_nettype wire
