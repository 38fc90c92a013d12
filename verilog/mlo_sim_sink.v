// SPDX-License-Identifier: MIT
// mlo_sim_sink: compares a stream with a file of expected beats (simulation only)
//
// Each word of the file is {tlast, tdata}, WIDTH + 1 bits, in hexadecimal.  Give FILE, or fill the memory
// from outside: $readmemh(name, u_sink.mem).
// `stall` percent of the cycles (0..100) tready is 0.  A beat beyond `count` is an error, too.
// frame_done[f] is the value of `cycle` when the final beat of frame f was taken.
`default_nettype none
module mlo_sim_sink #(
    // bits of tdata
    parameter WIDTH  = 8,
    // words of the memory
    parameter DEPTH  = 1024,
    // frames whose end is recorded
    parameter FRAMES = 256,
    // file to read at the start, "" for none
    parameter FILE   = ""
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [31:0]      seed,
    input  wire [31:0]      stall,         // percent
    input  wire [31:0]      count,         // beats expected, <= DEPTH
    input  wire [31:0]      cycle,         // the parent's clock counter
    output reg  [31:0]      seen,          // beats taken so far
    output reg  [31:0]      errors,        // wrong or surplus beats
    output reg  [31:0]      error_index,   // the first of them: number, expected and got {tlast, tdata}
    output reg  [WIDTH:0]   error_expected,
    output reg  [WIDTH:0]   error_got,
    output reg  [31:0]      frames,        // tlasts seen
    output wire             done,          // all expected beats are here
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output reg              s_axis_tready,
    input  wire             s_axis_tlast
);
    reg [WIDTH:0] mem [0:DEPTH-1];
    reg [31:0]    frame_done [0:FRAMES-1];     // read by the parent, u_sink.frame_done[f]
    initial if (FILE != "") $readmemh(FILE, mem);

    reg  [31:0] random;
    wire [31:0] x1 = random ^ (random << 13);
    wire [31:0] x2 = x1 ^ (x1 >> 17);
    wire [31:0] x3 = x2 ^ (x2 << 5);
    wire [31:0] percent = ({16'd0, random[31:16]} * 32'd100) >> 16;

    wire [WIDTH:0] expected = (seen < count) ? mem[seen] : {(WIDTH+1){1'b0}};
    wire [WIDTH:0] got      = {s_axis_tlast, s_axis_tdata};
    wire           take     = s_axis_tvalid && s_axis_tready;
    // !== so that an undefined bit counts as wrong
    wire           wrong    = take && (seen >= count || got !== expected);
    assign done = (seen >= count);
    wire unused = &{1'b0, frame_done[0]};

    always @(posedge clk) begin
        if (stall != 32'd0) random <= x3;           // (not needed otherwise, and slow to simulate)
        s_axis_tready <= (percent >= stall);
        if (take) begin
            seen <= seen + 32'd1;
            if (s_axis_tlast) begin
                if (frames < FRAMES) frame_done[frames] <= cycle;
                frames <= frames + 32'd1;
            end
        end
        if (wrong) begin
            errors <= errors + 32'd1;
            if (errors == 32'd0) begin
                error_index    <= seen;
                error_expected <= expected;
                error_got      <= got;
            end
        end
        if (rst) begin
            random <= seed ^ 32'h9E37_79B9;
            if (seed == 32'h9E37_79B9) random <= 32'd1;
            s_axis_tready <= 1'b0;
            seen   <= 32'd0;
            errors <= 32'd0;
            frames <= 32'd0;
            error_index <= 32'd0;
        end
    end
endmodule
`default_nettype wire
