// SPDX-License-Identifier: MIT
// mlo_part: which part of its window a token's frame has, as a number: mlo_conv has weights of each
//
// Contract   tokens of a frame one after the other, row after row of a grid of W columns. `load`: the next one is begun, which stands in `column`,
//            with `left` columns of its window missing to the left and `ahead` tokens of its frame behind it (or (KH-1-TOP)*W and more);
//            `last`: it is its frame's last. From the cycle after on, until the next load,
//                part = ((up*(KH-TOP) + down)*(LEFT+1) + left)*(KW-LEFT) + right
//            with up rows of its window missing above it and down below (in which no token is under it), right columns to the right.
// Throughput a token per cycle.
// Latency    one cycle.
// Stall      part stands while load is low.
// Legal      0 <= TOP < KH, 0 <= LEFT < KW, W >= 1.
`default_nettype none

module mlo_part #(
    parameter KH    = 3,            // rows of the window
    parameter KW    = 3,            // columns of the window
    parameter W     = 5,            // columns of the grid
    parameter TOP   = 1,            // rows of the window above the token's
    parameter LEFT  = 1,            // columns of the window to the left of the token's
    parameter NBITS = 4,            // bits of ahead
    parameter JBITS = 4,            // bits of a column
    // derived, do not set: bits of part
    parameter PBITS = $clog2((TOP + 1) * (KH - TOP) * (LEFT + 1) * (KW - LEFT) + 1)
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             load,
    input  wire             last,
    input  wire [JBITS-1:0] column,
    input  wire [JBITS-1:0] left,
    input  wire [NBITS-1:0] ahead,
    output reg  [PBITS-1:0] part
);
    localparam UBITS = (TOP > 0) ? $clog2(TOP + 1) : 1;
    localparam [31:0] W_32 = W, TOP_32 = TOP, DOWNS_32 = KH - TOP, LEFTS_32 = LEFT + 1, RIGHTS_32 = KW - LEFT;

    // Rows missing above: TOP at a frame's first token, then one less from row to row.
    reg  [UBITS-1:0] up;
    wire             row_end = {{(32 - JBITS){1'b0}}, column} == W_32 - 32'd1;
    always @(posedge clk) begin
        if (load && row_end && up != {UBITS{1'b0}}) up <= up - 1'b1;
        if (rst || (load && last))                  up <= TOP_32[UBITS-1:0];
    end

    // Rows missing below: those whose token under this one would be further behind than the frame goes.
    reg [31:0] down;
    integer    row;
    always @* begin
        down = 32'd0;
        for (row = 1; row < KH - TOP; row = row + 1)
            if (row * W > {{(32 - NBITS){1'b0}}, ahead}) down = down + 32'd1;
    end

    // Columns missing to the right: how far the window's last one lies behind the grid's.
    wire [31:0] reach  = {{(32 - JBITS){1'b0}}, column} + RIGHTS_32;            // columns in front of that behind the window
    wire [31:0] right  = (reach > W_32) ? reach - W_32 : 32'd0;
    wire [31:0] rows   = {{(32 - UBITS){1'b0}}, up} * DOWNS_32 + down;
    wire [31:0] across = rows * LEFTS_32 + {{(32 - JBITS){1'b0}}, left};
    wire [31:0] number = across * RIGHTS_32 + right;
    always @(posedge clk)
        if (load) part <= number[PBITS-1:0];

    wire unused = &{1'b0, TOP_32, number};

`ifdef FORMAL
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);

    // The environment walks over a frame that the solver picks the length of: where a token stands, and what it says of it.
    localparam FAR = (KH - 1 - TOP) * W + KW - 1 - LEFT;
    (* anyconst *) wire [7:0] f_length;
    reg  [7:0] f_at, f_row, f_column;                   // the next token: its number in the frame, its place
    wire [7:0] f_behind = f_length - 8'd1 - f_at;
    wire       f_row_end = f_column == W - 1;
    always @(posedge clk) begin
        if (load) begin
            f_at     <= last ? 8'd0 : f_at + 8'd1;
            f_column <= (last || f_row_end) ? 8'd0 : f_column + 8'd1;
            f_row    <= last ? 8'd0 : f_row + f_row_end;
        end
        if (rst) {f_at, f_row, f_column} <= 24'd0;
    end
    always @(*) begin
        assume (f_length != 8'd0 && f_length < 8'd64);
        assume (last == (f_behind == 8'd0));
        assume (column == f_column && left == (f_column < LEFT ? LEFT - f_column : 8'd0));
        assume (ahead == (f_behind > FAR ? FAR : f_behind));
    end
    // The parts of its window, tap by tap: which rows, which columns.
    reg  [7:0] f_up, f_down, f_left, f_right, f_k;
    reg  [7:0] f_part;
    always @(*) begin
        {f_up, f_down, f_left, f_right} = 32'd0;
        for (f_k = 0; f_k < KH; f_k = f_k + 1) if (f_row + f_k < TOP) f_up = f_up + 1;
        for (f_k = 1; f_k < KH - TOP; f_k = f_k + 1) if (f_at + f_k * W >= f_length) f_down = f_down + 1;
        for (f_k = 0; f_k < KW; f_k = f_k + 1) begin
            if (f_column + f_k < LEFT) f_left = f_left + 1;
            if (f_column + f_k >= W + LEFT) f_right = f_right + 1;
        end
    end
    always @(posedge clk) if (load) f_part <= ((f_up * (KH - TOP) + f_down) * (LEFT + 1) + f_left) * (KW - LEFT) + f_right;
    reg        f_loaded;
    always @(posedge clk) f_loaded <= !rst && (f_loaded || load);
    always @(*) if (f_past) begin
        assert (!f_loaded || (part == f_part && part < (TOP + 1) * (KH - TOP) * (LEFT + 1) * (KW - LEFT)));
        // for the induction
        assert (f_at < f_length && f_column < W && f_at == f_row * W + f_column);
        assert (up == (f_row < TOP ? TOP - f_row : 8'd0));
    end
    always @(posedge clk) cover (f_past && f_loaded && f_part == ((TOP * (KH - TOP) + KH - TOP - 1) * (LEFT + 1)) * (KW - LEFT));
`endif
endmodule

`default_nettype wire
