// SPDX-License-Identifier: MIT
// mlo_best: y = the K largest of a token's channels, {what it holds, the channel} each, the largest first, of equal ones the lower channel first
//
// Contract    a token of C beats (one channel each) becomes one beat of K pairs, the best in the low bits: of a pair [31:0] the channel,
//             [63:32] what it holds, sign-extended; its sideband is that of the token's first beat
// Throughput  one beat per cycle: a channel is inserted where it belongs, those behind it move one place
// Latency     2 cycles from a token's final beat to m_axis_tvalid: it is inserted, then all leave their places
// Stall       a beat waits while a result stands in its places and the one before it has not been taken; all others are taken
// Timing      s_axis_tready depends on registers only; outputs are registers; K comparisons side by side
// Legal       2 <= C <= 2^31, 1 <= XBITS <= 31, 1 <= K <= 16, K <= C
`default_nettype none
module mlo_best #(
    parameter C     = 4,            // channels of a token
    parameter XBITS = 16,           // bits of a channel
    parameter K     = 2             // of which so many
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [XBITS-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire [2:0]       s_axis_tuser,
    output reg  [64*K-1:0]  m_axis_tdata,
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
        if (K < 1 || K > 16 || K > C) mlo_error_K_must_be_1_to_16_and_at_most_C u_best ();
    endgenerate

    reg  [CW-1:0]      at;              // of the next beat
    reg  [K-1:0]       holds;           // places that hold a channel: the first min(at, K)
    reg  [K*CW-1:0]    ids;             // in their order
    reg  [K*XBITS-1:0] bests;           // what they hold
    reg  [2:0]         user;
    reg                ended;           // all of a token's channels are in their places: the result, which leaves once the output is free
    wire               first = at == {CW{1'b0}};
    wire               ends = at == FINAL;
    wire               take  = s_axis_tvalid && s_axis_tready;
    wire               leaves = ended && (!m_axis_tvalid || m_axis_tready);
    assign s_axis_tready = !(ended && m_axis_tvalid);

    // ---- the place: in front of all that are smaller; of equal ones the earlier channel stays in front
    wire [K-1:0]       wins;            // of each place: the channel goes there or in front of it
    wire [K*CW-1:0]    ids_next;
    wire [K*XBITS-1:0] bests_next;
    wire [64*K-1:0]    pairs;
    genvar j;
    generate
        for (j = 0; j < K; j = j + 1) begin : g_place
            wire [CW-1:0]    id;
            wire [XBITS-1:0] best;
            assign wins[j] = !holds[j] || ($signed(s_axis_tdata) > $signed(bests[XBITS*j +: XBITS]));
            if (j == 0) begin : g_head
                assign id   = wins[0] ? at : ids[0 +: CW];
                assign best = wins[0] ? s_axis_tdata : bests[0 +: XBITS];
            end else begin : g_behind
                assign id   = !wins[j] ? ids[CW*j +: CW] : wins[j-1] ? ids[CW*(j-1) +: CW] : at;
                assign best = !wins[j] ? bests[XBITS*j +: XBITS] : wins[j-1] ? bests[XBITS*(j-1) +: XBITS] : s_axis_tdata;
            end
            assign ids_next[CW*j +: CW]         = id;
            assign bests_next[XBITS*j +: XBITS] = best;
            assign pairs[64*j +: 64] = {{32-XBITS{bests[XBITS*(j+1)-1]}}, bests[XBITS*j +: XBITS], {32-CW{1'b0}}, ids[CW*j +: CW]};
        end
    endgenerate

    always @(posedge clk) begin
        if (m_axis_tready) m_axis_tvalid <= 1'b0;
        if (leaves) begin
            ended         <= 1'b0;
            m_axis_tvalid <= 1'b1;
            m_axis_tdata  <= pairs;
            m_axis_tuser  <= user;
        end
        if (take) begin
            at    <= ends ? {CW{1'b0}} : at + 1'b1;
            holds <= ends ? {K{1'b0}} : ~(~holds << 1);
            ids   <= ids_next;
            bests <= bests_next;
            if (first) user <= s_axis_tuser;
            if (ends) ended <= 1'b1;
        end
        if (rst) begin
            at            <= {CW{1'b0}};
            ended         <= 1'b0;
            holds         <= {K{1'b0}};
            m_axis_tvalid <= 1'b0;
        end
    end

    wire blocked = m_axis_tvalid && !m_axis_tready;
    assign stat = {!take && blocked, !take && !blocked, take};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [4:0] f_sent, f_out;
    mlo_sim_check_axis #(.WIDTH(XBITS + 3)) f_check_in (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_sent), .breaches(),
        .tdata({s_axis_tuser, s_axis_tdata}), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(1'b0));
    mlo_sim_check_axis #(.WIDTH(64*K + 3)) f_check_out (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_out), .breaches(),
        .tdata({m_axis_tuser, m_axis_tdata}), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(1'b0));
    always @* if (f_past_valid) begin
        assume (f_sent == 5'd0);
        assert (f_out == 5'd0);
    end

    // A channel anywhere in the token (f_pick), kept when it comes by: it is in its place, or the last of the best is in front of it.
    (* anyconst *) wire [CW-1:0] f_pick;
    reg  [XBITS-1:0] f_seen;
    reg  [2:0]       f_user;
    reg              f_past_ended = 1'b0;
    always @* assume (f_pick <= FINAL);
    always @(posedge clk) begin
        if (take && at == f_pick) f_seen <= s_axis_tdata;
        if (take && first) f_user <= s_axis_tuser;
        f_past_ended <= leaves && !rst;
    end
    wire [CW:0]      f_in = ended ? FINAL + 1'b1 : {1'b0, at};           // channels that are in their places
    wire [K-1:0]     f_holds = ended ? {K{1'b1}} : holds;
    wire [K-1:0] f_here, f_said;        // the place that has f_pick, inside; in the result
    wire [XBITS-1:0] f_last = bests[XBITS*(K-1) +: XBITS];
    wire [CW-1:0]    f_last_id = ids[CW*(K-1) +: CW];
    reg  [XBITS-1:0] f_kept;            // what f_pick held in the token that has ended
    always @(posedge clk) f_kept <= f_seen;
    generate
        for (j = 0; j < K; j = j + 1) begin : f_place
            wire [XBITS-1:0] has = bests[XBITS*j +: XBITS];
            wire [CW-1:0]    id  = ids[CW*j +: CW];
            wire [31:0]      out = m_axis_tdata[64*j+32 +: 32], which = m_axis_tdata[64*j +: 32];
            assign f_here[j] = f_holds[j] && id == f_pick;
            assign f_said[j] = which == {{32-CW{1'b0}}, f_pick};
            always @* if (f_past_valid && !rst) begin
                assert (holds[j] == (at > j));
                if (f_holds[j]) assert ({1'b0, id} < f_in);
                if (f_here[j]) assert ({1'b0, f_pick} < f_in && has == f_seen);
            end
            always @* if (f_past_valid && f_past_ended) begin
                assert (which <= {{32-CW{1'b0}}, FINAL});
                if (f_said[j]) assert ($signed(out) == $signed(f_kept));
            end
            if (j > 0) begin : f_order
                wire [XBITS-1:0] ahead = bests[XBITS*(j-1) +: XBITS];
                wire [31:0]      more = m_axis_tdata[64*(j-1)+32 +: 32];
                always @* if (f_past_valid && !rst && f_holds[j])
                    assert ($signed(ahead) > $signed(has) || (ahead == has && ids[CW*(j-1) +: CW] < id));
                always @* if (f_past_valid && f_past_ended)
                    assert ($signed(more) > $signed(out) || (more == out && m_axis_tdata[64*(j-1) +: 32] < which));
            end
        end
    endgenerate
    always @* if (f_past_valid && !rst) begin
        assert (at <= FINAL);
        if (ended) assert (first);
        if (ended || !first) assert (user == f_user);
        if ({1'b0, f_pick} < f_in && f_here == {K{1'b0}})
            assert (f_holds[K-1] && ($signed(f_last) > $signed(f_seen) || (f_last == f_seen && f_last_id < f_pick)));
    end
    wire [31:0] f_least = m_axis_tdata[64*K-1 -: 32], f_least_id = m_axis_tdata[64*K-64 +: 32];
    always @* if (f_past_valid && f_past_ended && f_said == {K{1'b0}})
        assert ($signed(f_least) > $signed(f_kept) || ($signed(f_least) == $signed(f_kept) && f_least_id < {{32-CW{1'b0}}, f_pick}));
    always @(posedge clk) if (f_past_valid && f_past_ended && !$past(rst)) assert (m_axis_tvalid && m_axis_tuser == $past(user));
    always @* cover (f_past_valid && !rst && m_axis_tvalid && m_axis_tready && m_axis_tdata[0]);
    always @* cover (f_past_valid && !rst && s_axis_tvalid && !s_axis_tready);
`endif
endmodule
`default_nettype wire
