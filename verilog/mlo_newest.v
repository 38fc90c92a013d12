// SPDX-License-Identifier: MIT
// mlo_newest: of a frame its last token goes on: of a prompt, what follows its last token is all that is asked
//
// Contract    beats of a token of BEATS beats; tlast on a token's final beat ends a frame. The frame's last token goes on; all others
//             are dropped. tuser = {1, 1, first}: a frame of its own of one token; `first` on the first token after reset and no
//             other, so that parameters behind are those of one iteration for ever (mlo_loop with one iteration).
// Throughput  a beat per cycle in; a token that goes on takes BEATS cycles, in which nothing is taken
// Latency     2 cycles from the frame's last beat to its token's first one
// Stall       while m_axis stalls the frame's last token waits, and nothing is taken
// Timing      s_axis_tready depends on registers only; outputs are registers
// Legal       BEATS >= 1; tlast comes with a token's final beat
`default_nettype none
module mlo_newest #(
    parameter WIDTH = 8,            // bits of a beat
    parameter BEATS = 4             // of a token
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire             s_axis_tlast,
    output reg  [WIDTH-1:0] m_axis_tdata,
    output reg              m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire [2:0]       m_axis_tuser
);
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam [BW-1:0] FINAL = BEATS[BW-1:0] - 1'b1;

    generate
        if (WIDTH < 1) mlo_error_WIDTH_must_be_positive u_width ();
        if (BEATS < 1) mlo_error_BEATS_must_be_positive u_beats ();
    endgenerate

    reg  [WIDTH-1:0] token [0:BEATS-1];
    reg  [BW-1:0]    at;                // of the beat that comes, or goes, next
    reg              going;             // the token goes on
    reg              first, leaving;    // of the first token after reset; the beat in m_axis is its final one
    wire             take = s_axis_tvalid && s_axis_tready;
    wire             give = going && (!m_axis_tvalid || m_axis_tready);
    assign s_axis_tready = !going;
    assign m_axis_tuser  = {2'b11, first};

    always @(posedge clk) begin
        if (take) token[at] <= s_axis_tdata;
        if (take || give) at <= (at == FINAL) ? {BW{1'b0}} : at + 1'b1;
        if (take && at == FINAL && s_axis_tlast) going <= 1'b1;
        if (m_axis_tready) m_axis_tvalid <= 1'b0;
        if (m_axis_tvalid && m_axis_tready && leaving) first <= 1'b0;
        if (give) begin
            m_axis_tvalid <= 1'b1;
            m_axis_tdata  <= token[at];
            leaving       <= at == FINAL;
            if (at == FINAL) going <= 1'b0;
        end
        if (rst) begin
            at            <= {BW{1'b0}};
            going         <= 1'b0;
            first         <= 1'b1;
            leaving       <= 1'b0;
            m_axis_tvalid <= 1'b0;
        end
    end

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [4:0] f_in, f_out;
    mlo_sim_check_axis #(.WIDTH(WIDTH), .BEATS(BEATS)) f_check_in (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_in), .breaches(),
        .tdata(s_axis_tdata), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(s_axis_tlast));
    mlo_sim_check_axis #(.WIDTH(WIDTH + 3)) f_check_out (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_out), .breaches(),
        .tdata({m_axis_tuser, m_axis_tdata}), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(1'b0));
    always @* if (f_past_valid) begin
        assume (f_in == 5'd0);
        assert (f_out == 5'd0);
    end
    // Beat f_pick of the newest token, and which beat stands in m_axis: what leaves is what came last.
    (* anyconst *) wire [BW-1:0] f_pick;
    reg  [WIDTH-1:0] f_newest;
    reg  [BW-1:0]    f_out_at;
    reg              f_any;             // a token has left
    reg              f_owed;            // a frame has ended and its last token has not been read
    always @* assume (f_pick <= FINAL);
    always @(posedge clk) begin
        if (take && at == f_pick) f_newest <= s_axis_tdata;
        if (m_axis_tvalid && m_axis_tready) f_out_at <= (f_out_at == FINAL) ? {BW{1'b0}} : f_out_at + 1'b1;
        if (m_axis_tvalid && m_axis_tready && f_out_at == FINAL) f_any <= 1'b1;
        if (take && at == FINAL && s_axis_tlast) f_owed <= 1'b1;
        else if (give && at == FINAL) f_owed <= 1'b0;
        if (rst) begin f_out_at <= {BW{1'b0}}; f_any <= 1'b0; f_owed <= 1'b0; end
    end
    always @* if (f_past_valid && !rst) begin
        assert (at <= FINAL && f_out_at <= FINAL && first == !f_any && going == f_owed);
        if (going || at > f_pick) assert (token[f_pick] == f_newest);
        if (m_axis_tvalid) assert (leaving == (f_out_at == FINAL));
        if (going && !m_axis_tvalid) assert (at == f_out_at);
        if (going && m_axis_tvalid) assert (at == ((f_out_at == FINAL) ? {BW{1'b0}} : f_out_at + 1'b1));
        if (!going && !m_axis_tvalid) assert (f_out_at == {BW{1'b0}});
        if (m_axis_tvalid && !going) assert (leaving);
    end
    always @(posedge clk) if (f_past_valid && !$past(rst) && !rst && $past(give && at == f_pick)) assert (m_axis_tvalid && m_axis_tdata == $past(f_newest));
    always @* cover (f_past_valid && !rst && m_axis_tvalid && m_axis_tready && leaving && !first);
`endif
endmodule
`default_nettype wire
