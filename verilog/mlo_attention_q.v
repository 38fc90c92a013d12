// SPDX-License-Identifier: MIT
// mlo_attention_q: two rows (heads of query tokens): one is read, over and over, while the next one arrives
//
// Contract    s_axis: BEATS beats are one row. `full`: a complete row is readable, and
//             user is its sideband, until `done`. data is beat rd_addr, the cycle after rd_en
// Throughput  one beat in and one beat out per cycle
// Latency     full: the cycle after the row's last beat; the next row's, if it is
//             complete already, the cycle after `done`
// Stall       s_axis_tready is low while two complete rows are held
// Legal       done only while full
`default_nettype none
module mlo_attention_q #(
    // beats of a row
    parameter BEATS = 4,
    // bits of a beat
    parameter WIDTH = 8,
    // derived, do not set: bits of rd_addr
    parameter AW = (BEATS > 1) ? $clog2(BEATS) : 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire [2:0]       s_axis_tuser,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    output wire             full,
    output wire [2:0]       user,
    input  wire             done,
    input  wire             rd_en,
    input  wire [AW-1:0]    rd_addr,
    output wire [WIDTH-1:0] rd_data
);

localparam WORDS = (BEATS > 1) ? 2 * BEATS : 4;     // (an address has a bit even if there is one word)
localparam [31:0]   LAST_32 = BEATS - 1;
localparam [AW-1:0] LAST    = LAST_32[AW-1:0];
localparam [AW-1:0] ONE     = 1;

// What is said of the row at hand comes from registers, of which the next one's sideband is kept apart: much hangs on it.
reg             full_reg, both_reg;                 // a complete row is there; two are
reg             fill_reg, read_reg;
reg [AW-1:0]    beat_reg;
reg [2:0]       user_reg, last_reg;                 // of the row at hand; of the last beat that came
(* no_rw_check *)    // never read where it is written in the same cycle
reg [WIDTH-1:0] mem [0:WORDS-1];
reg [WIDTH-1:0] out_reg;

assign s_axis_tready = !both_reg;
assign full          = full_reg;
assign user          = user_reg;
assign rd_data       = out_reg;

wire        take    = s_axis_tvalid && s_axis_tready;
wire        arrives = take && beat_reg == LAST;
wire [2:0]  newest  = take ? s_axis_tuser : last_reg;
wire [AW:0] wr_word = {beat_reg, fill_reg};     // the row is the lowest bit
wire [AW:0] rd_word = {rd_addr, read_reg};

always @(posedge clk) begin
    if (take)
        mem[wr_word] <= s_axis_tdata;
    if (rd_en)
        out_reg <= mem[rd_word];
    last_reg <= newest;
    if (done || !full_reg)
        user_reg <= newest;
end

always @(posedge clk) begin
    if (take)
        beat_reg <= beat_reg == LAST ? {AW{1'b0}} : beat_reg + ONE;
    if (arrives) fill_reg <= !fill_reg;
    if (done)    read_reg <= !read_reg;
    full_reg <= arrives || (done ? both_reg : full_reg);
    both_reg <= !done && (both_reg || (arrives && full_reg));
    if (rst) begin
        full_reg <= 1'b0;
        both_reg <= 1'b0;
        fill_reg <= 1'b0;
        read_reg <= 1'b0;
        beat_reg <= {AW{1'b0}};
    end
end

`ifdef FORMAL
    // Assumed: `done` only of a row that is there.
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @* begin
        if (!f_past) assume (rst);
        if (!full)   assume (!done);
    end
    // What stage 1 relies on: a row stays until `done`.
    reg       f_stay;
    reg [2:0] f_user;
    always @(posedge clk) begin
        f_stay <= full && !done && !rst;
        f_user <= user;
    end
    always @* if (f_past && f_stay) assert (full && user == f_user);

    // Any one beat of a row is where the reader looks for it, until the row is done.
    (* anyconst *) wire [AW-1:0] f_beat;
    (* anyconst *) wire          f_row;
    reg             f_have = 1'b0;
    reg [WIDTH-1:0] f_data;
    wire [AW:0]     f_word = {f_beat, f_row};
    always @* assume (f_beat <= LAST);
    always @(posedge clk) begin
        if (take && fill_reg == f_row && beat_reg == f_beat) begin
            f_have <= 1'b1;
            f_data <= s_axis_tdata;
        end
        if (rst || (done && read_reg == f_row))
            f_have <= 1'b0;
    end
    // So is its sideband, that of its last beat.
    wire            f_full = full_reg && (both_reg || read_reg == f_row);
    reg  [2:0]      f_side;
    always @(posedge clk) if (arrives && fill_reg == f_row) f_side <= s_axis_tuser;
    always @* if (f_past) begin
        assert (beat_reg <= LAST);
        if (both_reg) assert (full_reg && beat_reg == {AW{1'b0}});
        assert ((fill_reg == read_reg) == (both_reg || !full_reg));
        assert (f_have == (f_full || (fill_reg == f_row && beat_reg > f_beat)));
        if (f_have) assert (mem[f_word] == f_data);
        if (f_full) assert ((read_reg == f_row ? user : last_reg) == f_side);
        cover (both_reg && f_have);
    end
`endif
endmodule
`default_nettype wire
