// SPDX-License-Identifier: MIT
// mlo_sim_check_axis: judges one AXI4-Stream (simulation, and the proofs of the modules at the doors)
//
// broken[3:0] as mlo_sim_check says (hold, stable, reset, unknown), and
//   4 last      tlast before the final beat of a token, or missing where a frame has TOKENS tokens
// Each breach is a line `PROTOCOL <PORT> <rule> at cycle N` and counts.
`default_nettype none
module mlo_sim_check_axis #(
    // bits of tdata
    parameter WIDTH  = 8,
    // beats of a token: a frame has a multiple of them
    parameter BEATS  = 1,
    // tokens of the longest frame, 0 for any number
    parameter TOKENS = 0,
    // name in messages
    parameter PORT = "axis",
    // see mlo_sim_check
    parameter SETTLE = 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [31:0]      cycle,
    input  wire [WIDTH-1:0] tdata,
    input  wire             tvalid,
    input  wire             tready,
    input  wire             tlast,
    output wire [4:0]       broken,
    output wire [31:0]      breaches
);
    localparam [31:0] BEATS_V = BEATS, TOKENS_V = TOKENS;

    wire [31:0] channel;
    mlo_sim_check #(.WIDTH(WIDTH + 1), .PORT(PORT), .SETTLE(SETTLE)) u_channel (
        .clk(clk), .rst(rst), .cycle(cycle), .payload({tlast, tdata}), .valid(tvalid), .ready(tready),
        .broken(broken[3:0]), .breaches(channel));

    reg  [31:0] beat, token;               // of the frame: which beat of which token comes next
    wire        final_beat  = (beat == BEATS_V - 32'd1);
    wire        final_token = (TOKENS != 0) && (token == TOKENS_V - 32'd1);
    reg  [31:0] misplaced;

    assign broken[4] = tvalid && !rst && (tlast ? !final_beat : (final_beat && final_token));
    assign breaches  = channel + misplaced;

    initial begin
        beat      = 32'd0;
        token     = 32'd0;
        misplaced = 32'd0;
    end
    // Judged once a beat, when it is taken.
    always @(posedge clk) begin
        if (tvalid && tready) begin
            beat  <= (final_beat || tlast) ? 32'd0 : beat + 32'd1;
            token <= tlast ? 32'd0 : token + {31'd0, final_beat};
`ifndef FORMAL
            if (broken[4]) misplaced <= misplaced + 32'd1;
            if (broken[4] && misplaced < 32'd20) $display("PROTOCOL %0s last at cycle %0d", PORT, cycle);
`endif
        end
        if (rst) begin
            beat  <= 32'd0;
            token <= 32'd0;
        end
    end
endmodule
`default_nettype wire
