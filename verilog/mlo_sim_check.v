// SPDX-License-Identifier: MIT
// mlo_sim_check: judges one valid/ready channel (simulation, and the proofs of the modules at the doors)
//
// What AXI says of every channel, AXI4-Stream included.  broken[r] is 1 in a cycle that breaks rule r:
//   0 hold      valid was withdrawn before ready took the beat
//   1 stable    the payload changed while it waited
//   2 reset     valid is high in reset, though reset began SETTLE cycles ago
//   3 unknown   valid or ready is X or Z, or the payload is while valid is high (simulation only: a
//               proof knows no X)
// Each breach is a line `PROTOCOL <PORT> <rule> at cycle N` (the first 20 of a channel) and counts.
// Nothing is judged before the first cycle of reset.
`default_nettype none
module mlo_sim_check #(
    // bits of the payload
    parameter WIDTH  = 8,
    // name in messages
    parameter PORT = "channel",
    // cycles of reset until valid has to be low, 1 or 2
    parameter SETTLE = 1
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [31:0]      cycle,         // the parent's clock counter
    input  wire [WIDTH-1:0] payload,
    input  wire             valid,
    input  wire             ready,
    output wire [3:0]       broken,
    output reg  [31:0]      breaches       // so far
);
    generate
        if (SETTLE < 1 || SETTLE > 2) mlo_error_SETTLE_must_be_1_or_2 u_error ();
    endgenerate

    reg             waited;                // in the cycle before, a beat waited
    reg [WIDTH-1:0] was;                   // ... which was this
    reg             reset_1, reset_2;      // reset was on one cycle ago, two
    reg             on;                    // there has been a reset

    initial begin
        waited   = 1'b0;
        reset_1  = 1'b0;
        reset_2  = 1'b0;
        on       = 1'b0;
        breaches = 32'd0;
    end

    assign broken[0] = waited && !rst && valid !== 1'b1;
    assign broken[1] = waited && !rst && valid === 1'b1 && payload !== was;
    assign broken[2] = rst && reset_1 && (SETTLE == 1 || reset_2) && valid !== 1'b0;
`ifdef FORMAL
    assign broken[3] = 1'b0;
    wire unused_cycle = &{1'b0, cycle};
`else
`ifdef SYNTHESIS
    assign broken[3] = 1'b0;               // (a proof that leaves this module's own text out)
`else
    wire settled = on && (!reset_1 || reset_2);
    assign broken[3] = settled && (^{valid, ready} === 1'bx || (valid && ^payload === 1'bx));
`endif

    always @(posedge clk) if (broken != 4'd0) begin
        breaches <= breaches + 32'd1;
        if (breaches < 32'd20) begin
            if (broken[0]) $display("PROTOCOL %0s hold at cycle %0d", PORT, cycle);
            if (broken[1]) $display("PROTOCOL %0s stable at cycle %0d", PORT, cycle);
            if (broken[2]) $display("PROTOCOL %0s reset at cycle %0d", PORT, cycle);
            if (broken[3]) $display("PROTOCOL %0s unknown at cycle %0d", PORT, cycle);
        end
    end
`endif

    always @(posedge clk) begin
        on      <= on || rst;
        reset_1 <= rst;
        reset_2 <= rst && reset_1;
        waited  <= valid && !ready && !rst;
        was     <= payload;
    end

    wire unused = &{1'b0, on, reset_2};
endmodule
`default_nettype wire
