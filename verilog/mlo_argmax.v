// SPDX-License-Identifier: MIT
// mlo_argmax: y = {max x[c], the lowest c that has it}, a pair of a token's channels: which word is the likeliest, and its logit
//
// Contract    a token of C beats (one channel each) becomes one beat: [31:0] the channel, [63:32] what it holds, sign-extended;
//             its sideband is that of the token's first beat
// Throughput  one beat per cycle
// Latency     1 cycle from a token's final beat to m_axis_tvalid
// Stall       the final beat of a token waits while the result before it has not been taken; all others are taken
// Timing      s_axis_tready depends on registers only; outputs are registers
// Legal       2 <= C <= 2^31, 1 <= XBITS <= 31
`default_nettype none
module mlo_argmax #(
    parameter C     = 4,            // channels of a token
    parameter XBITS = 16            // bits of a channel
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [XBITS-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire [2:0]       s_axis_tuser,
    output reg  [63:0]      m_axis_tdata,
    output reg              m_axis_tvalid,
    input  wire             m_axis_tready,
    output reg  [2:0]       m_axis_tuser,
    output wire [2:0]       stat        // [0] a beat is taken, else [2] blocked: the result waits to leave, else [1] starved
);
    localparam CW = $clog2(C);
    localparam [CW-1:0] FINAL = C[CW-1:0] - 1'b1;

    generate
        if (C < 2)                   mlo_error_C_must_be_at_least_2 u_channels ();
        if (XBITS < 1 || XBITS > 31) mlo_error_XBITS_must_be_1_to_31 u_bits ();
    endgenerate

    reg  [CW-1:0]    at;                // of the next beat
    reg  [CW-1:0]    id;                // the largest before it, and what it holds
    reg  [XBITS-1:0] best;
    reg  [2:0]       user;
    wire             first = at == {CW{1'b0}};
    wire             ends = at == FINAL;
    wire             take  = s_axis_tvalid && s_axis_tready;
    assign s_axis_tready = !(ends && m_axis_tvalid);

    wire             wins = first || ($signed(s_axis_tdata) > $signed(best));
    wire [CW-1:0]    id_next   = wins ? at : id;
    wire [XBITS-1:0] best_next = wins ? s_axis_tdata : best;

    always @(posedge clk) begin
        if (m_axis_tready) m_axis_tvalid <= 1'b0;
        if (take) begin
            at   <= ends ? {CW{1'b0}} : at + 1'b1;
            id   <= id_next;
            best <= best_next;
            if (first) user <= s_axis_tuser;
            if (ends) begin
                m_axis_tvalid <= 1'b1;
                m_axis_tdata  <= {{32-XBITS{best_next[XBITS-1]}}, best_next, {32-CW{1'b0}}, id_next};
                m_axis_tuser  <= user;
            end
        end
        if (rst) begin
            at            <= {CW{1'b0}};
            m_axis_tvalid <= 1'b0;
        end
    end

    wire blocked = m_axis_tvalid && !m_axis_tready;
    assign stat = {!take && blocked, !take && !blocked, take};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [4:0] f_in, f_out;
    mlo_sim_check_axis #(.WIDTH(XBITS + 3)) f_check_in (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_in), .breaches(),
        .tdata({s_axis_tuser, s_axis_tdata}), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(1'b0));
    mlo_sim_check_axis #(.WIDTH(67)) f_check_out (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_out), .breaches(),
        .tdata({m_axis_tuser, m_axis_tdata}), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(1'b0));
    always @* if (f_past_valid) begin
        assume (f_in == 5'd0);
        assert (f_out == 5'd0);
    end

    // A channel anywhere in the token (f_pick), kept when it comes by: nothing beats the result, and nothing in front of it ties.
    (* anyconst *) wire [CW-1:0] f_pick;
    reg  [XBITS-1:0] f_seen;
    reg  [2:0]       f_user;
    reg              f_past_take = 1'b0;
    always @* assume (f_pick <= FINAL);
    always @(posedge clk) begin
        if (take && at == f_pick) f_seen <= s_axis_tdata;
        if (take && first) f_user <= s_axis_tuser;
        f_past_take <= take && ends && !rst;
    end
    wire [XBITS-1:0] f_at_pick = (take && at == f_pick) ? s_axis_tdata : f_seen;
    always @* if (f_past_valid && !rst) begin
        assert (at <= FINAL);
        if (!first) begin
            assert (id < at && user == f_user);
            if (f_pick < at) begin
                assert ($signed(f_seen) <= $signed(best));
                assert (f_pick >= id || $signed(f_seen) < $signed(best));
                assert (f_pick != id || f_seen == best);
            end
        end
    end
    // the result: at least as large as any channel, larger than those in front of it, and what its channel holds
    always @(posedge clk) if (f_past_valid && f_past_take && !$past(rst)) begin
        assert (m_axis_tvalid && m_axis_tdata[31:0] <= {{32-CW{1'b0}}, FINAL} && m_axis_tuser == $past(user));
        assert ($signed(m_axis_tdata[63:32]) >= $signed($past(f_at_pick)));
        if ({{32-CW{1'b0}}, f_pick} < m_axis_tdata[31:0]) assert ($signed(m_axis_tdata[63:32]) > $signed($past(f_at_pick)));
        if ({{32-CW{1'b0}}, f_pick} == m_axis_tdata[31:0]) assert ($signed(m_axis_tdata[63:32]) == $signed($past(f_at_pick)));
    end
    always @* cover (f_past_valid && !rst && m_axis_tvalid && m_axis_tready && m_axis_tdata[0]);
    always @* cover (f_past_valid && !rst && s_axis_tvalid && !s_axis_tready);
`endif
endmodule
`default_nettype wire
