// SPDX-License-Identifier: MIT
// mlo_attention_ring: the softmax weights on their way from the exponentials to the weighted sum
//
// A queue of rows. The reader walks through the oldest row, several times, one word per
// rd_en: rd_pass on the last word of a pass (go back to the row's first word), rd_row
// with it on the last pass (the row is done with, and its words are free).
//
// Contract    a word may be written if it was reserved (`take`, only while `room`) before;
//             a row may be read when all its words are written (the user knows).
//             rd_data: the cycle after rd_en
// Throughput  one word in and one word out per cycle
// Latency     a word written can be read in the next cycle
// Stall       room is low while every word is reserved or in use
// Legal       DEPTH >= the words of a row
`default_nettype none
module mlo_attention_ring #(
    // words
    parameter DEPTH = 8,
    // bits of a word
    parameter WIDTH = 8,
    // bits of a row's length - 1
    parameter GW = 2
) (
    input  wire             clk,
    input  wire             rst,
    output wire             room,
    input  wire             take,
    input  wire             wr_en,
    input  wire [WIDTH-1:0] wr_data,
    input  wire             rd_en,
    input  wire             rd_pass,
    input  wire             rd_row,
    input  wire [GW-1:0]    rd_groups_1,        // the row's length - 1
    output wire [WIDTH-1:0] rd_data
);

localparam AW = $clog2(DEPTH);                  // DEPTH > 1
localparam LW = $clog2(DEPTH + 1);
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   DEPTH_32 = DEPTH;
localparam [31:0]   LAST_32  = DEPTH - 1;
localparam [LW-1:0] ALL      = DEPTH_32[LW-1:0];
localparam [LW-1:0] L_ONE    = 1;
localparam [AW-1:0] LAST     = LAST_32[AW-1:0];
localparam [AW-1:0] ONE      = 1;

generate
    if (DEPTH < 2 || LW <= GW) begin : g_error
        mlo_error_DEPTH_must_exceed_a_row u_error();
    end
endgenerate

reg [LW-1:0]    room_reg;                       // words neither reserved nor in use
reg [AW-1:0]    wr_reg, rd_reg, row_reg;        // row_reg: first word of the row that is read
(* no_rw_check *)    // never read where it is written in the same cycle
reg [WIDTH-1:0] mem [0:DEPTH-1];
reg [WIDTH-1:0] out_reg;

wire [AW-1:0] rd_next = rd_reg == LAST ? {AW{1'b0}} : rd_reg + ONE;
wire [LW-1:0] freed   = (rd_en && rd_row) ? {{LW-GW{1'b0}}, rd_groups_1} + L_ONE : {LW{1'b0}};
wire [LW-1:0] taken   = {{LW-1{1'b0}}, take};

assign room    = room_reg != {LW{1'b0}};
assign rd_data = out_reg;

always @(posedge clk) begin
    room_reg <= room_reg + freed - taken;
    if (wr_en)
        wr_reg <= wr_reg == LAST ? {AW{1'b0}} : wr_reg + ONE;
    if (rd_en)
        rd_reg <= (rd_pass && !rd_row) ? row_reg : rd_next;
    if (rd_en && rd_row)
        row_reg <= rd_next;
    if (rst) begin
        room_reg <= ALL;
        wr_reg   <= {AW{1'b0}};
        rd_reg   <= {AW{1'b0}};
        row_reg  <= {AW{1'b0}};
    end
end

always @(posedge clk) begin
    if (wr_en)
        mem[wr_reg] <= wr_data;
    if (rd_en)
        out_reg <= mem[rd_reg];
end

`ifdef FORMAL
    // Assumed of the user: a word is taken while there is room, written after it was taken,
    // and a row is read when all of it is written.
    reg          f_past = 1'b0;
    reg [LW-1:0] f_taken, f_held, f_at;         // reserved; written and not freed; words read of the pass
    wire [LW:0]  f_row = rd_groups_1 + 1'b1;
    always @* begin
        if (!f_past) assume (rst);
        if (!room)   assume (!take);
        if (f_taken == 0) assume (!wr_en);
        if (f_held < f_row) assume (!rd_en);
        if (rd_row) assume (rd_pass);
        assume (rd_pass == (f_at == rd_groups_1));
        assume (f_row <= DEPTH && f_at <= rd_groups_1);
    end
    always @(posedge clk) begin
        f_past  <= 1'b1;
        f_taken <= rst ? 0 : f_taken + take - wr_en;
        f_held  <= rst ? 0 : f_held + wr_en - freed;
        if (rd_en) f_at <= rd_pass ? 0 : f_at + 1'b1;
        if (rst)   f_at <= 0;
    end
    wire [LW+1:0] f_wr = row_reg + f_held, f_rd = row_reg + f_at;
    always @* if (f_past) begin
        assert (room_reg <= ALL && f_taken <= ALL && f_held <= ALL);
        assert ({1'b0, room_reg} + f_taken + f_held == DEPTH);
        assert (row_reg <= LAST && wr_reg <= LAST && rd_reg <= LAST);
        assert (wr_reg == (f_wr >= DEPTH ? f_wr - DEPTH : f_wr));
        assert (f_at < DEPTH && rd_reg == (f_rd >= DEPTH ? f_rd - DEPTH : f_rd));
        if (wr_en) assert (f_held < DEPTH);     // so nothing that is held is overwritten
        cover (f_past && f_held == DEPTH && rd_en && rd_row);
    end
`endif
endmodule
`default_nettype wire
