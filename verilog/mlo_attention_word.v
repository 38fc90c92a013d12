// SPDX-License-Identifier: MIT
// mlo_attention_word: a table of mlo_attention_look: mlo_param, with a register between the memory's row and the word of it
//
// Contract    as mlo_param, but a read takes a cycle longer: `data` is word `addr` of the bank in use, two cycles after `en`, and stays until
//             two cycles after the next
// How it is built. mlo_param reads a row as wide as a beat and chooses the word in the cycle after: a block RAM, its wires and sixteen words to choose
//             from are 10.5 ns in an ECP5. So whole rows are mlo_param's words here, without the bits that pad a word; a part of the row (half of it,
//             eight words at most) is chosen in front of a register, the word of the part behind it.
// Throughput  as mlo_param: writes one beat per cycle, reads one word per cycle
// Latency     read: 2 cycles. ready: as mlo_param
// Stall       as mlo_param
// Timing      in front of `data` lies the choice from a part
// Legal       as mlo_param; DEPTH a power of two
`default_nettype none
module mlo_attention_word #(
    // bits of a word, >= 1
    parameter WIDTH = 8,
    // words of a bank, a power of two
    parameter DEPTH = 256,
    // bits of a beat from the loader, a power of two >= 8
    parameter AXI_WIDTH = 128,
    // banks that are loaded once, one an iteration; 0: two banks in turn
    parameter RESIDENT = 0,
    // derived, do not set: bits of addr
    parameter AW = (DEPTH > 1) ? $clog2(DEPTH) : 1
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire [AXI_WIDTH-1:0] s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire                 s_axis_tlast,   // of no use to two banks in turn
    input  wire                 first,
    output wire                 ready,
    input  wire [AW-1:0]        addr,
    input  wire                 en,
    output wire [WIDTH-1:0]     data
);

localparam PW    = (WIDTH > 8) ? (1 << $clog2(WIDTH)) : 8;  // bits of a word in a beat, as in mlo_param
localparam KEPT  = (WIDTH > 8) ? WIDTH : 8;                 // those of it that a row has
localparam FULL  = (PW <= AXI_WIDTH) ? AXI_WIDTH / PW : 1;  // words of a beat
localparam WORDS = (FULL < DEPTH) ? FULL : DEPTH;           // words of a row
localparam ROWS  = DEPTH / WORDS;
localparam RA    = (ROWS > 1) ? $clog2(ROWS) : 1;
localparam LW    = $clog2(WORDS);
localparam LP    = (LW > 4) ? LW - 3 : (LW > 0) ? 1 : 0;    // bits of the address that choose a part
localparam PART  = WORDS >> LP;                             // its words

generate
    if (DEPTH < 1 || (DEPTH & (DEPTH - 1)) != 0) mlo_error_DEPTH_must_be_a_power_of_two u_depth();
endgenerate

// ---- a beat without padding is a row ----------------------------------------------------------
wire [AXI_WIDTH-1:0] beat;
wire [RA-1:0]        row_addr;
wire [WORDS*KEPT-1:0] row;
genvar w;
generate
    if (KEPT == PW || PW > AXI_WIDTH) begin : g_dense
        assign beat = s_axis_tdata;
    end else begin : g_padded
        for (w = 0; w < FULL; w = w + 1) begin : g_word
            assign beat[w*KEPT +: KEPT] = s_axis_tdata[w*PW +: KEPT];
        end
        assign beat[AXI_WIDTH-1:FULL*KEPT] = {AXI_WIDTH-FULL*KEPT{1'b0}};
        wire unused_padding = &{1'b0, s_axis_tdata};
    end
    if (ROWS == 1) begin : g_one_row
        assign row_addr = 1'b0;
    end else begin : g_rows
        assign row_addr = addr[AW-1:LW];
    end
endgenerate
mlo_param #(.WIDTH(WORDS*KEPT), .DEPTH(ROWS), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_param (
    .clk(clk), .rst(rst), .s_axis_tdata(beat), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast),
    .first(first), .ready(ready), .addr(row_addr), .en(en), .data(row)
);

// ---- 1: the row is there, a part of it is chosen; 2: the word --------------------------------
reg                   en_reg;
reg  [PART*KEPT-1:0]  part_reg;
wire [PART*KEPT-1:0]  part;
wire [KEPT-1:0]       word;
always @(posedge clk) begin
    en_reg <= en && !rst;
    if (en_reg) part_reg <= part;
end
generate
    if (LW == 0) begin : g_whole
        assign {part, word} = {row, part_reg};
    end else begin : g_choose
        reg [LW-1:0] at_reg;
        always @(posedge clk) if (en) at_reg <= addr[LW-1:0];
        assign part = row[at_reg[LW-1:LW-LP]*(PART*KEPT) +: PART*KEPT];
        if (PART == 1) begin : g_word
            assign word = part_reg;
        end else begin : g_of_part
            reg [LW-LP-1:0] within_reg;
            always @(posedge clk) if (en_reg) within_reg <= at_reg[LW-LP-1:0];
            assign word = part_reg[within_reg*KEPT +: KEPT];
        end
    end
endgenerate
assign data = word[WIDTH-1:0];
wire unused = &{1'b0, addr, word};
`ifdef FORMAL
    // mlo_param, given the same: the same banks at the same time, its words a cycle later. Assumed, as there: no iteration begins before
    // the previous one's table was there.
    wire             f_ready, f_tready;
    wire [WIDTH-1:0] f_word;
    mlo_param #(.WIDTH(WIDTH), .DEPTH(DEPTH), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) f_param (
        .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(f_tready), .s_axis_tlast(s_axis_tlast),
        .first(first), .ready(f_ready), .addr(addr), .en(en), .data(f_word)
    );
    reg             f_past = 1'b0, f_used, f_read, f_good;      // there was a `first`, a read, one whose word is there
    reg [WIDTH-1:0] f_data;
    always @(posedge clk) begin
        f_past <= 1'b1;
        f_used <= !rst && (f_used || first);
        f_read <= !rst && en && f_ready;
        f_good <= !rst && (en_reg ? f_read : f_good);
        if (en_reg) f_data <= f_word;
    end
    always @* begin
        if (!f_past) assume (rst);
        assume (!first || !f_used || f_ready);
        if (f_past) begin
            assert (ready == f_ready && s_axis_tready == f_tready);
            if (f_read) assert (en_reg);
            if (f_good) assert (data == f_data);
        end
        cover (f_past && f_good && f_read && data != f_word);
    end
`endif
endmodule
`default_nettype wire
