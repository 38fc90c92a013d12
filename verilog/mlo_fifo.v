// SPDX-License-Identifier: MIT
// mlo_fifo: a queue of exactly DEPTH words
//
// Contract    words leave in the order they came; DEPTH words are accepted
//             before the first one is taken, and never one more
// Throughput  one word per cycle for every DEPTH, also at constant occupancy
// Latency     from acceptance to m_tvalid, when empty:
//             DEPTH <= 2: 1 cycle; DEPTH >= 3: 2 cycles
// Stall       m_tready low: fills up; a full queue accepts again the cycle
//             after a word was taken (DEPTH = 1: in the same cycle)
// Timing      m_tvalid and m_tdata are registers; s_tready depends on registers
//             only, except for DEPTH = 1, where capacity 1 and full throughput
//             together need the path m_tready -> s_tready
// Memory      DEPTH >= 3: one write port, one registered read port (block RAM or
//             LUT RAM); never reads the address written in the same cycle
// Legal       WIDTH >= 1, DEPTH >= 1
`default_nettype none
module mlo_fifo #(
    // bits of the payload, >= 1
    parameter WIDTH = 8,
    // capacity in words, >= 1
    parameter DEPTH = 16
) (
    input  wire                       clk,
    input  wire                       rst,
    input  wire [WIDTH-1:0]           s_tdata,
    input  wire                       s_tvalid,
    output wire                       s_tready,
    output wire [WIDTH-1:0]           m_tdata,
    output wire                       m_tvalid,
    input  wire                       m_tready,
    // words held now, the one on m_tdata included: 0 .. DEPTH
    output wire [$clog2(DEPTH+1)-1:0] level
);

localparam LW = $clog2(DEPTH+1);
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   DEPTH_32   = DEPTH;
localparam [LW-1:0] LEVEL_FULL = DEPTH_32[LW-1:0];
localparam [LW-1:0] LEVEL_ONE  = 1;

generate
    if (WIDTH < 1) begin : g_error_width
        mlo_error_WIDTH_must_be_at_least_1 u_error();
    end
    if (DEPTH < 1) begin : g_error_depth
        mlo_error_DEPTH_must_be_at_least_1 u_error();
    end
endgenerate

reg  [LW-1:0] level_reg;
wire          push = s_tvalid && s_tready;
wire          pop  = m_tvalid && m_tready;

assign level = level_reg;

wire level_moves = rst || push != pop;
always @(posedge clk)
    if (level_moves)
        level_reg <= rst ? {LW{1'b0}} : push ? level_reg + LEVEL_ONE : level_reg - LEVEL_ONE;

generate
if (DEPTH == 1) begin : g_one
    // A single register. It can refill in the cycle in which it empties.
    reg [WIDTH-1:0] out_reg;
    always @(posedge clk)
        if (push)
            out_reg <= s_tdata;
    assign m_tdata  = out_reg;
    assign m_tvalid = level_reg == LEVEL_FULL;
    assign s_tready = level_reg != LEVEL_FULL || m_tready;
end
if (DEPTH == 2) begin : g_two
    // A queue of two with registered handshakes is the skid buffer.
    mlo_skid #(.WIDTH(WIDTH)) u_skid (
        .clk(clk), .rst(rst),
        .s_tdata(s_tdata), .s_tvalid(s_tvalid), .s_tready(s_tready),
        .m_tdata(m_tdata), .m_tvalid(m_tvalid), .m_tready(m_tready)
    );
end
if (DEPTH >= 3) begin : g_ram
    // A ring in RAM. The RAM's read register is the output: it holds the oldest
    // word and is refilled as it is taken, so level_reg - valid_reg words are
    // in the ring. Fewer than DEPTH are, whenever a word is accepted.
    localparam AW = $clog2(DEPTH);
    localparam [31:0]   LAST_32 = DEPTH - 1;
    localparam [AW-1:0] LAST    = LAST_32[AW-1:0];
    localparam [AW-1:0] ONE     = 1;

    (* no_rw_check *)    // never read where it is written in the same cycle
    reg [WIDTH-1:0] mem [0:DEPTH-1];
    reg [WIDTH-1:0] out_reg;
    reg             valid_reg;
    reg [AW-1:0]    wr_reg, rd_reg;

    wire in_ring = level_reg != {{LW-1{1'b0}}, valid_reg};
    wire fetch   = in_ring && (!valid_reg || m_tready);

    assign s_tready = level_reg != LEVEL_FULL;
    assign m_tvalid = valid_reg;
    assign m_tdata  = out_reg;

    always @(posedge clk) begin
        if (push)
            mem[wr_reg] <= s_tdata;
        if (fetch)
            out_reg <= mem[rd_reg];
    end

    // (Nothing to do without one of these: a simulator skips the rest. The two ends are separate, so that
    // what is pushed late in a cycle does not make what is popped late.)
    always @(posedge clk)
        if (rst || push)
            wr_reg <= (rst || wr_reg == LAST) ? {AW{1'b0}} : wr_reg + ONE;
    always @(posedge clk)
        if (rst || fetch || m_tready) begin
            if (fetch)
                rd_reg <= rd_reg == LAST ? {AW{1'b0}} : rd_reg + ONE;
            valid_reg <= fetch;
            if (rst) begin
                rd_reg    <= {AW{1'b0}};
                valid_reg <= 1'b0;
            end
        end
end
endgenerate

`ifdef FORMAL
    // No assumption but the reset: right for any sender and receiver.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // Exact capacity: accepts whenever fewer than DEPTH words are inside.
    // (`level` is proved to be that number by the tracked word below, which
    // leaves after exactly the words that it says are ahead.)
    reg [LW-1:0] f_count;
    always @(posedge clk)
        f_count <= rst ? {LW{1'b0}} : f_count + (push ? LEVEL_ONE : {LW{1'b0}}) - (pop ? LEVEL_ONE : {LW{1'b0}});
    always @* if (f_past_valid) begin
        assert (f_count <= LEVEL_FULL);
        assert (level == f_count);
        if (f_count != LEVEL_FULL) assert (s_tready);
        if (f_count == LEVEL_FULL && DEPTH > 1) assert (!s_tready);
        if (f_count == LEVEL_FULL && !m_tready) assert (!s_tready);
        if (DEPTH == 1 && m_tready) assert (s_tready);                  // refills as it empties
        if (f_count == {LW{1'b0}}) assert (!m_tvalid);
        if (f_count != {LW{1'b0}} && DEPTH <= 2) assert (m_tvalid);     // latency 1
    end

    (* anyseq *) wire f_pick;
    reg             f_track = 1'b0;
    reg [LW-1:0]    f_ahead;
    reg [WIDTH-1:0] f_word;
    always @(posedge clk) begin
        if (f_track && pop) begin
            f_ahead <= f_ahead - LEVEL_ONE;
            if (f_ahead == {LW{1'b0}}) f_track <= 1'b0;
        end
        if (!f_track && push && f_pick) begin
            f_track <= 1'b1;
            f_word  <= s_tdata;
            f_ahead <= f_count - (pop ? LEVEL_ONE : {LW{1'b0}});
        end
        if (rst) f_track <= 1'b0;
    end
    // (DEPTH = 2: the skid proves the same about itself.)
    always @* if (f_past_valid && f_track && DEPTH != 2) begin
        assert (f_ahead < f_count);
        if (f_ahead == {LW{1'b0}} && m_tvalid) assert (m_tdata == f_word);
    end

    always @(posedge clk) if (f_past_valid) begin
        if ($past(rst))
            assert (!m_tvalid);
        else begin
            if ($past(m_tvalid && !m_tready))
                assert (m_tvalid && $stable(m_tdata));
            // full throughput and latency 2: what was inside and was not taken is offered
            if ($past(f_count > (pop ? LEVEL_ONE : {LW{1'b0}})))
                assert (m_tvalid);
        end
    end

    // For the induction: where the words lie.
    generate if (DEPTH >= 3) begin : f_ring
        reg [31:0] f_wr_expected, f_slot;
        always @* begin
            f_wr_expected = g_ram.rd_reg + level_reg - g_ram.valid_reg;
            if (f_wr_expected >= DEPTH) f_wr_expected = f_wr_expected - DEPTH;
            f_slot = g_ram.rd_reg + f_ahead - g_ram.valid_reg;
            if (f_slot >= DEPTH) f_slot = f_slot - DEPTH;
        end
        always @* if (f_past_valid) begin
            assert (g_ram.rd_reg < DEPTH);
            assert (g_ram.wr_reg == f_wr_expected);
            if (f_track && (f_ahead != {LW{1'b0}} || !m_tvalid))
                assert (g_ram.mem[f_slot] == f_word);
        end
    end endgenerate

    reg f_was_full = 1'b0;
    always @(posedge clk) f_was_full <= !rst && (f_was_full || f_count == LEVEL_FULL);
    always @* cover (f_was_full && f_count == {LW{1'b0}} && f_past_valid);
`endif
endmodule
`default_nettype wire
