// SPDX-License-Identifier: MIT
// mlo_pair: two streams, beat by beat, for a kernel that takes a beat of each at a time and has constants of each iteration
//
// Contract    beat i of a meets beat i of b; the sideband is a's. A pair is taken when `en` and the constants are ready (c_ready);
//             c_first asks for those of the next iteration, once, a cycle before its first pair is taken.
// Throughput  a pair per cycle; the first of an iteration costs 1 cycle more
// Latency     1 cycle to a, b, user
// Stall       a waits for b and b for a; neither tready depends on the other stream's tvalid
// Legal       AWIDTH, BWIDTH, BEATS >= 1
`default_nettype none
module mlo_pair #(
    parameter AWIDTH = 16,      // bits of a beat of a
    parameter BWIDTH = 16,      // bits of a beat of b
    parameter BEATS  = 4        // beats of a token
) (
    input  wire              clk,
    input  wire              rst,
    input  wire [AWIDTH-1:0] s_axis_a_tdata,
    input  wire              s_axis_a_tvalid,
    output wire              s_axis_a_tready,
    input  wire [2:0]        s_axis_a_tuser,
    input  wire [BWIDTH-1:0] s_axis_b_tdata,
    input  wire              s_axis_b_tvalid,
    output wire              s_axis_b_tready,
    input  wire              en,
    input  wire              c_ready,
    output wire              c_first,
    output wire              is_first,      // the pair in front is an iteration's first
    output wire              take,
    output wire              a_valid,       // a beat of a, of b, waits in front
    output wire              b_valid,
    output wire [AWIDTH-1:0] a,
    output wire [BWIDTH-1:0] b,
    output wire [2:0]        user
);
    localparam CB = (BEATS > 1) ? $clog2(BEATS) : 1;
    // (Verilator wants every width spelled out: hence the way over 32 bits)
    localparam [31:0]   LAST_32 = BEATS - 1;
    localparam [CB-1:0] LAST    = LAST_32[CB-1:0];
    localparam [CB-1:0] ONE     = 1;

    mlo_skid #(.WIDTH(AWIDTH + 3)) u_skid_a (
        .clk(clk), .rst(rst), .s_tdata({s_axis_a_tuser, s_axis_a_tdata}), .s_tvalid(s_axis_a_tvalid), .s_tready(s_axis_a_tready),
        .m_tdata({user, a}), .m_tvalid(a_valid), .m_tready(take)
    );
    mlo_skid #(.WIDTH(BWIDTH)) u_skid_b (
        .clk(clk), .rst(rst), .s_tdata(s_axis_b_tdata), .s_tvalid(s_axis_b_tvalid), .s_tready(s_axis_b_tready),
        .m_tdata(b), .m_tvalid(b_valid), .m_tready(take)
    );

    reg  [CB-1:0] beat;                     // of the pair in front
    reg           swapped;                  // its constants have been asked for
    wire          both = a_valid && b_valid;
    assign is_first = both && user[0] && beat == {CB{1'b0}};
    assign c_first  = is_first && !swapped;
    assign take     = both && c_ready && !c_first && en;
    always @(posedge clk) begin
        swapped <= is_first && !take;
        if (take) beat <= (beat == LAST) ? {CB{1'b0}} : beat + ONE;
        if (rst) begin
            swapped <= 1'b0;
            beat    <= {CB{1'b0}};
        end
    end

`ifdef FORMAL
    // Beats are neither lost nor made, pairs are taken together, and constants are asked for once for each first pair.
    reg       f_past = 1'b0;
    reg [1:0] f_a, f_b;                     // accepted and not taken
    always @* if (!f_past) assume (rst);
    always @(posedge clk) begin
        f_past <= 1'b1;
        f_a <= rst ? 2'd0 : f_a + {1'b0, s_axis_a_tvalid && s_axis_a_tready} - {1'b0, take};
        f_b <= rst ? 2'd0 : f_b + {1'b0, s_axis_b_tvalid && s_axis_b_tready} - {1'b0, take};
    end
    always @* if (f_past) begin
        assert (f_a == a_valid + !s_axis_a_tready && f_b == b_valid + !s_axis_b_tready);
        assert (a_valid || s_axis_a_tready);
        assert (b_valid || s_axis_b_tready);
        assert (beat <= LAST);
        assert (!swapped || is_first);
        if (take) assert (a_valid && b_valid && en && c_ready && (!is_first || swapped));
        cover (take && is_first && !s_axis_a_tready && !s_axis_b_tready);
    end
    always @(posedge clk) if (f_past && !$past(rst) && $past(a_valid && !take))
        assert (a_valid && $stable(a) && $stable(user));
`endif
endmodule
`default_nettype wire
