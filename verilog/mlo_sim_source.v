// SPDX-License-Identifier: MIT
// mlo_sim_source: plays a file of stream beats (simulation only)
//
// Each word of the file is {tlast, tdata}, WIDTH + 1 bits, in hexadecimal.  Give FILE, or fill the memory
// from outside: $readmemh(name, u_source.mem).
// `stall` percent of the cycles (0..100) no new beat is offered; a beat once offered stays until taken.
// The generator is a xorshift from `seed`, so that every simulator takes the same decisions.
// stall = 0: one beat per cycle, the first one in the cycle after rst and enable have become 0 and 1.
`default_nettype none
module mlo_sim_source #(
    // bits of tdata
    parameter WIDTH = 8,
    // words of the memory
    parameter DEPTH = 1024,
    // file to read at the start, "" for none
    parameter FILE  = ""
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             enable,
    input  wire [31:0]      seed,
    input  wire [31:0]      stall,         // percent
    input  wire [31:0]      count,         // beats to play, <= DEPTH
    output reg  [31:0]      sent,          // beats taken so far
    output wire             done,          // all beats are taken
    output reg  [WIDTH-1:0] m_axis_tdata,
    output reg              m_axis_tvalid,
    input  wire             m_axis_tready,
    output reg              m_axis_tlast
);
    reg [WIDTH:0] mem [0:DEPTH-1];
    initial if (FILE != "") $readmemh(FILE, mem);

    reg  [31:0] random;
    wire [31:0] x1 = random ^ (random << 13);
    wire [31:0] x2 = x1 ^ (x1 >> 17);
    wire [31:0] x3 = x2 ^ (x2 << 5);
    wire [31:0] percent = ({16'd0, random[31:16]} * 32'd100) >> 16;

    reg [31:0] next;                       // the beat to offer next
    assign done = (sent == count);
    always @(posedge clk) begin
        if (stall != 32'd0) random <= x3;           // (not needed otherwise, and slow to simulate)
        if (m_axis_tvalid && m_axis_tready) sent <= sent + 32'd1;
        if (!m_axis_tvalid || m_axis_tready) begin
            m_axis_tvalid <= 1'b0;
            if (enable && next < count && percent >= stall) begin
                m_axis_tvalid <= 1'b1;
                {m_axis_tlast, m_axis_tdata} <= mem[next];
                next <= next + 32'd1;
            end
        end
        if (rst) begin
            random <= seed ^ 32'h9E37_79B9;
            if (seed == 32'h9E37_79B9) random <= 32'd1;
            m_axis_tvalid <= 1'b0;
            m_axis_tlast  <= 1'b0;
            next <= 32'd0;
            sent <= 32'd0;
        end
    end
endmodule
`default_nettype wire
