// SPDX-License-Identifier: MIT
// mlo_skid: a two-word stream register that cuts every combinational path
//
// Contract    words leave in the order they came; payload is one opaque vector
//             (a stream with sideband passes {tuser, tdata})
// Throughput  one word per cycle, also while it fills or drains
// Latency     1 cycle: a word accepted in cycle n is offered in cycle n + 1
// Stall       m_tready low: takes up to two words, then s_tready goes low
// Timing      s_tready, m_tvalid and m_tdata all come straight from registers
// Legal       WIDTH >= 1
`default_nettype none
module mlo_skid #(
    // bits of the payload, >= 1
    parameter WIDTH = 8
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_tdata,
    input  wire             s_tvalid,
    output wire             s_tready,
    output wire [WIDTH-1:0] m_tdata,
    output wire             m_tvalid,
    input  wire             m_tready
);

generate
    if (WIDTH < 1) begin : g_error
        mlo_error_WIDTH_must_be_at_least_1 u_error();
    end
endgenerate

// The receiver's "not ready" reaches the sender one cycle late, because
// s_tready is a register. The word that is under way meanwhile goes into
// `spare`, which is all that tells this from a plain register.
reg [WIDTH-1:0] out_reg,   spare_reg;
reg             valid_reg, full_reg;    // out_reg holds a word; spare_reg does

assign s_tready = !full_reg;
assign m_tvalid = valid_reg;
assign m_tdata  = out_reg;

wire out_free = !valid_reg || m_tready;
wire work     = rst || s_tvalid || valid_reg;  // else nothing changes, and a simulator is spared the rest

// Payload: no reset, a word means nothing until its valid bit is set.
always @(posedge clk) begin
    if (work) begin
        if (out_free) begin
            // the spare word is older than the one on s_tdata: it goes first
            valid_reg <= full_reg || s_tvalid;
            full_reg  <= 1'b0;
        end else if (s_tvalid) begin
            full_reg  <= 1'b1;
        end
        if (out_free && (full_reg || s_tvalid))
            out_reg   <= full_reg ? spare_reg : s_tdata;
        if (s_tvalid && !full_reg)
            spare_reg <= s_tdata;
        if (rst) begin
            valid_reg <= 1'b0;
            full_reg  <= 1'b0;
        end
    end
end

`ifdef FORMAL
    // No assumption but the reset: the skid is right for any sender and receiver.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    wire f_push = s_tvalid && s_tready;
    wire f_pop  = m_tvalid && m_tready;

    // f_count counts words in minus words out. Capacity, latency and throughput
    // follow: ready whenever fewer than two, valid whenever one is there.
    reg [1:0] f_count;
    always @(posedge clk)
        f_count <= rst ? 2'd0 : f_count + {1'b0, f_push} - {1'b0, f_pop};
    always @* if (f_past_valid) begin
        assert (f_count <= 2'd2);
        assert (s_tready == (f_count != 2'd2));
        assert (m_tvalid == (f_count != 2'd0));
    end

    // Order and value: any word the solver picks comes out unchanged after
    // exactly the words that were ahead of it.
    (* anyseq *) wire f_pick;
    reg             f_track = 1'b0;
    reg [1:0]       f_ahead;
    reg [WIDTH-1:0] f_word;
    always @(posedge clk) begin
        if (f_track && f_pop) begin
            f_ahead <= f_ahead - 2'd1;
            if (f_ahead == 2'd0) f_track <= 1'b0;
        end
        if (!f_track && f_push && f_pick) begin
            f_track <= 1'b1;
            f_word  <= s_tdata;
            f_ahead <= f_count - {1'b0, f_pop};
        end
        if (rst) f_track <= 1'b0;
    end
    always @* if (f_past_valid && f_track) begin
        assert (f_ahead < f_count);
        if (f_ahead == 2'd0) assert (m_tdata == f_word);
        if (f_ahead == 2'd1) assert (spare_reg == f_word);  // for the induction
    end

    // Stream contract: an offer stands, unchanged, until it is taken.
    always @(posedge clk) if (f_past_valid) begin
        if ($past(rst))
            assert (!m_tvalid);
        else if ($past(m_tvalid && !m_tready))
            assert (m_tvalid && $stable(m_tdata));
    end

    // Not vacuous: it fills, and runs empty again.
    reg f_was_full = 1'b0;
    always @(posedge clk) f_was_full <= !rst && (f_was_full || f_count == 2'd2);
    always @* cover (f_was_full && f_count == 2'd0 && f_past_valid);
`endif
endmodule
`default_nettype wire
