// SPDX-License-Identifier: MIT
// mlo_lookup: y = table[q + 2^(XBITS-1)] on every lane: the function a kernel may have behind its requantization
//
// Contract   q: LANES x XBITS signed; y: LANES x YBITS. `first` (one cycle, not with s_axis_tvalid) moves to the next
//            table, as mlo_param says; what came before it was looked up in the table before.
// Throughput one beat per cycle.
// Latency    1 cycle.
// Stall      s_axis_tready is low while m_axis_tready is low and y is occupied, or while the table is not loaded; y
//            leaves nevertheless in that case. s_axis_tready depends combinationally on m_axis_tready: not for the
//            border of a kernel.
// Parameters s_axis_t: 2^XBITS words of YBITS. The lanes hold a copy each, all loaded by the same beats.
// Legal      LANES >= 1, 2 <= XBITS <= 16, YBITS >= 1.
`default_nettype none

module mlo_lookup #(
    parameter LANES     = 2,
    parameter XBITS     = 8,        // bits of q
    parameter YBITS     = 8,        // bits of y
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128       // bits of a parameter beat
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    input  wire [LANES*XBITS-1:0]     s_axis_tdata,
    input  wire                   s_axis_tvalid,
    output wire                   s_axis_tready,
    input  wire [2:0]             s_axis_tuser,
    output wire [LANES*YBITS-1:0] m_axis_tdata,
    output reg                    m_axis_tvalid,
    input  wire                   m_axis_tready,
    output reg  [2:0]             m_axis_tuser,
    input  wire                   first,
    input  wire [AXI_WIDTH-1:0]   s_axis_t_tdata,
    input  wire                   s_axis_t_tvalid,
    output wire                   s_axis_t_tready
);
    generate
        if (LANES < 1) mlo_error_LANES_must_be_at_least_1 u_lanes ();
        if (XBITS < 2 || XBITS > 16) mlo_error_XBITS_must_be_2_to_16 u_xbits ();
    endgenerate

    wire [LANES-1:0] table_ready, load_ready;       // all lanes alike: the first speaks for them
    wire             move = m_axis_tready || !m_axis_tvalid;
    wire             take = s_axis_tvalid && s_axis_tready;
    assign s_axis_tready   = table_ready[0] && move;
    assign s_axis_t_tready = load_ready[0];
    always @(posedge clk) begin
        if (rst)       m_axis_tvalid <= 1'b0;
        else if (move) m_axis_tvalid <= take;
        if (move)      m_axis_tuser  <= s_axis_tuser;
    end

    genvar p;
    generate
        for (p = 0; p < LANES; p = p + 1) begin : lane
            mlo_param #(.WIDTH(YBITS), .DEPTH(1 << XBITS), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_table (
                .clk(clk), .rst(rst), .s_axis_tdata(s_axis_t_tdata), .s_axis_tvalid(s_axis_t_tvalid),
                .s_axis_tready(load_ready[p]), .s_axis_tlast(params_last), .first(first), .ready(table_ready[p]),
                // q + 2^(XBITS-1): the sign bit inverted
                .addr({!s_axis_tdata[XBITS*p + XBITS-1], s_axis_tdata[XBITS*p +: XBITS-1]}), .en(take),
                .data(m_axis_tdata[p*YBITS +: YBITS]));
        end
    endgenerate
    wire unused = &{1'b0, load_ready, table_ready};

`ifdef FORMAL
    // For a beat that carries a word: AXI_WIDTH = YBITS.
    // Assumed: tables move between beats, and only when the one in use is there; what waits at the input does not change.
    localparam FB = LANES*XBITS + 3, FD = 1 << XBITS;
    reg                   f_past = 1'b0, f_used, f_wait, f_held;
    reg [FB-1:0]          f_in;
    reg [LANES*YBITS+2:0] f_out, f_next;
    reg                   f_bank, f_fill;                   // the table in use, the one being filled
    reg [XBITS-1:0]       f_at;
    reg [2*FD*YBITS-1:0]  f_words;                          // of both
    integer               k;
    always @* begin
        f_next[LANES*YBITS +: 3] = s_axis_tuser;
        for (k = 0; k < LANES; k = k + 1)
            f_next[k*YBITS +: YBITS] = f_words[(FD*f_bank + ((s_axis_tdata[k*XBITS +: XBITS] + FD/2) % FD))*YBITS +: YBITS];
    end
    always @(posedge clk) begin
        f_past <= 1'b1;
        f_used <= !rst && (f_used || first);
        f_wait <= !rst && s_axis_tvalid && !s_axis_tready;
        f_in   <= {s_axis_tuser, s_axis_tdata};
        f_held <= !rst && (take || (m_axis_tvalid && !m_axis_tready));
        if (take) f_out <= f_next;
        if (first && f_used) f_bank <= !f_bank;
        if (s_axis_t_tvalid && s_axis_t_tready) begin
            f_words[(FD*f_fill + f_at)*YBITS +: YBITS] <= s_axis_t_tdata;
            f_at   <= f_at + 1'b1;
            f_fill <= f_fill ^ &f_at;
        end
        if (rst) {f_bank, f_fill, f_at} <= 0;
    end
    always @* begin
        if (!f_past) assume (rst);
        if (f_wait) assume (s_axis_tvalid && f_in == {s_axis_tuser, s_axis_tdata});
        if (s_axis_tvalid || (f_used && !table_ready[0])) assume (!first);
    end
    always @* if (f_past) begin
        assert (m_axis_tvalid == f_held);                   // a beat for each that is taken
        if (m_axis_tvalid) assert (f_out == {m_axis_tuser, m_axis_tdata});
        assert (table_ready == {LANES{table_ready[0]}} && load_ready == {LANES{load_ready[0]}});
        if (s_axis_tready) assert (f_used);
        cover (f_bank && m_axis_tvalid && m_axis_tready && m_axis_tdata != 0);
    end
`endif
endmodule

`default_nettype wire
