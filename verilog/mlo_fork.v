// SPDX-License-Identifier: MIT
// mlo_fork: one stream to N receivers, each of which gets every word once
//
// Contract    every output carries every word, in order. Eager: an output that is
//             ready takes the word at once and does not wait for the others; the
//             next word follows when the slowest has taken it
// Throughput  one word per cycle while all receivers are ready
// Latency     1 cycle
// Stall       one output not ready stops the input after two words; the others
//             get the word in front and then wait
// Timing      s_tready depends on registers only; m_tdata is a register, m_tvalid
//             one gate behind registers and independent of m_tready
// Legal       WIDTH >= 1, N >= 1
`default_nettype none
module mlo_fork #(
    // bits of the payload, >= 1
    parameter WIDTH = 8,
    // outputs, >= 1
    parameter N = 2
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_tdata,
    input  wire             s_tvalid,
    output wire             s_tready,
    output wire [WIDTH-1:0] m_tdata,    // shared by all outputs
    output wire [N-1:0]     m_tvalid,
    input  wire [N-1:0]     m_tready
);

generate
    if (WIDTH < 1) begin : g_error_width
        mlo_error_WIDTH_must_be_at_least_1 u_error();
    end
    if (N < 1) begin : g_error_n
        mlo_error_N_must_be_at_least_1 u_error();
    end
endgenerate

// The skid holds the word in front and keeps the receivers' ready signals from
// reaching the sender; done_reg remembers who took that word already.
wire         valid;
reg  [N-1:0] done_reg;
wire [N-1:0] done = done_reg | m_tready;    // at the end of this cycle
wire         next = &done;

assign m_tvalid = {N{valid}} & ~done_reg;

mlo_skid #(.WIDTH(WIDTH)) u_skid (
    .clk(clk), .rst(rst),
    .s_tdata(s_tdata), .s_tvalid(s_tvalid), .s_tready(s_tready),
    .m_tdata(m_tdata), .m_tvalid(valid), .m_tready(next)
);

always @(posedge clk)
    done_reg <= (rst || !valid || next) ? {N{1'b0}} : done;

`ifdef FORMAL
    // No assumption but the reset. The skid's own properties are proved along
    // with these. Two of its registers are looked at (Yosys connects a wire with
    // this attribute and name when it flattens).
    (* hierconn *) wire [1:0]       \u_skid.f_count ;
    (* hierconn *) wire [WIDTH-1:0] \u_skid.spare_reg ;
    wire [1:0]       f_inside = \u_skid.f_count ;
    wire [WIDTH-1:0] f_spare  = \u_skid.spare_reg ;

    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // Words that went in, and words that output f_out (any) delivered: the output
    // is never ahead of what was accepted, and behind by at most two words.
    (* anyconst *) wire [$clog2(N+1)-1:0] f_out;
    always @* assume (f_out < N);
    wire f_push = s_tvalid && s_tready;
    wire f_pop  = m_tvalid[f_out] && m_tready[f_out];
    reg [1:0] f_count;
    always @(posedge clk)
        f_count <= rst ? 2'd0 : f_count + {1'b0, f_push} - {1'b0, f_pop};
    always @* if (f_past_valid) begin
        assert (f_count <= 2'd2);
        assert (!m_tvalid[f_out] || f_count != 2'd0);
        // the words inside are those the output has yet to deliver, and perhaps
        // the one in front, which it delivered before the others
        assert (f_count + {1'b0, done_reg[f_out]} == f_inside);
        assert (valid || done_reg == {N{1'b0}});
        assert (done_reg != {N{1'b1}});                     // else it would never move on
    end

    // Order and value at that output.
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
        if (f_ahead + done_reg[f_out] == 2'd0) assert (m_tdata == f_word);
        if (f_ahead + done_reg[f_out] == 2'd1) assert (f_spare == f_word);
    end

    always @(posedge clk) if (f_past_valid) begin
        if ($past(rst))
            assert (m_tvalid == {N{1'b0}});
        else begin
            if ($past(m_tvalid[f_out] && !m_tready[f_out]))
                assert (m_tvalid[f_out] && $stable(m_tdata));
            if ($past(f_push))                              // latency 1, for whoever is not behind
                assert (valid);
            if ($past(&m_tready))                           // throughput
                assert (s_tready);
        end
    end

    // Not vacuous: the outputs take one word in different cycles.
    always @* cover (f_past_valid && f_count == 2'd2 && done_reg != {N{1'b0}});
    always @* cover (f_past_valid && done_reg[f_out] && &(done_reg | m_tready) && f_inside == 2'd2);
`endif
endmodule
`default_nettype wire
