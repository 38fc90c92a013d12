// SPDX-License-Identifier: MIT
// mlo_param: a parameter memory of two banks, one in use while the other loads
//
// Contract    BEATS consecutive beats of s_axis fill one bank, over and over, the
//             two banks in turn. `first` (one cycle) says that a new iteration
//             begins: it releases the bank in use, if any, and moves to the next.
//             `ready`: the bank in use is completely loaded.
//             `data` is word `addr` of the bank in use, the cycle after `en`, and
//             stays while en is low. A read in the cycle of `first` is still of
//             the old bank; a read while ready is low returns nothing useful.
// Throughput  writes one beat per cycle, reads one word per cycle, independently
// Latency     read: 1 cycle. ready: high the cycle after `first` if the next bank
//             is loaded already, else the cycle after its last beat was taken
// Stall       s_axis_tready goes low while both banks are loaded and not released;
//             so before the first `first` two banks are loaded ahead
// Timing      s_axis_tready and ready depend on registers only
// Packing     a word is padded to PW bits: the smallest power of two >= 8 and >=
//             WIDTH if AXI_WIDTH has room for that, else a multiple of AXI_WIDTH.
//             R = AXI_WIDTH/PW words per beat, the first in the low bits, or
//             P = PW/AXI_WIDTH beats per word, the low part first
// Legal       WIDTH >= 1; DEPTH >= 1; AXI_WIDTH a power of two >= 8; `first` must
//             not come while ready is low, except for the very first one
`default_nettype none
module mlo_param #(
    // bits of a word, >= 1
    parameter WIDTH = 8,
    // words of a bank, >= 1
    parameter DEPTH = 16,
    // bits of a beat from the loader, a power of two >= 8
    parameter AXI_WIDTH = 128,
    // derived, do not set: bits of addr
    parameter AW = (DEPTH > 1) ? $clog2(DEPTH) : 1
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire [AXI_WIDTH-1:0] s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire                 first,
    output wire                 ready,
    input  wire [AW-1:0]        addr,
    input  wire                 en,
    output wire [WIDTH-1:0]     data
);

localparam PW2   = (WIDTH > 8) ? (1 << $clog2(WIDTH)) : 8;
localparam P     = (PW2 <= AXI_WIDTH) ? 1 : (WIDTH + AXI_WIDTH - 1) / AXI_WIDTH;
localparam R     = (PW2 <= AXI_WIDTH) ? AXI_WIDTH / PW2 : 1;
localparam ROWS  = (DEPTH + R - 1) / R;         // P * ROWS = BEATS
localparam LR    = $clog2(R);
localparam RA    = (ROWS > 1) ? $clog2(ROWS) : 1;
localparam PA    = (P > 1) ? $clog2(P) : 1;

localparam MA    = $clog2(2 * ROWS);            // row and bank

// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   ROW_LAST_32  = ROWS - 1;
localparam [31:0]   PART_LAST_32 = P - 1;
localparam [RA-1:0] ROW_LAST     = ROW_LAST_32[RA-1:0];
localparam [PA-1:0] PART_LAST    = PART_LAST_32[PA-1:0];
localparam [RA-1:0] ROW_ONE      = 1;
localparam [PA-1:0] PART_ONE     = 1;

generate
    if (WIDTH < 1) begin : g_error_width
        mlo_error_WIDTH_must_be_at_least_1 u_error();
    end
    if (DEPTH < 1) begin : g_error_depth
        mlo_error_DEPTH_must_be_at_least_1 u_error();
    end
    if (AXI_WIDTH < 8 || (AXI_WIDTH & (AXI_WIDTH - 1)) != 0) begin : g_error_axi
        mlo_error_AXI_WIDTH_must_be_a_power_of_two_from_8 u_error();
    end
    if (AW != ((DEPTH > 1) ? $clog2(DEPTH) : 1)) begin : g_error_aw
        mlo_error_AW_is_derived_and_must_not_be_set u_error();
    end
endgenerate

// Who owns which bank. full: completely loaded and not yet released.
reg [1:0]    full_reg;
reg          used_reg;                  // there was a `first`
reg          use_reg;                   // the bank in use
reg          fill_reg;                  // the bank that loads
reg [RA-1:0] row_reg;                   // where the next beat goes
reg [PA-1:0] part_reg;

assign s_axis_tready = !full_reg[fill_reg];
assign ready         = used_reg && full_reg[use_reg];

wire take      = s_axis_tvalid && s_axis_tready;
wire word_done = take && part_reg == PART_LAST;
wire bank_done = word_done && row_reg == ROW_LAST;

// (Nothing to do without one of these: a simulator skips the rest.)
wire work = rst || take || first;
always @(posedge clk)
    if (work) begin
        if (take) begin
            part_reg <= part_reg == PART_LAST ? {PA{1'b0}} : part_reg + PART_ONE;
            if (word_done)
                row_reg <= row_reg == ROW_LAST ? {RA{1'b0}} : row_reg + ROW_ONE;
            if (bank_done) begin
                full_reg[fill_reg] <= 1'b1;
                fill_reg           <= !fill_reg;
            end
        end
        // The bank in use is full, the bank that loads is not: when both happen in
        // one cycle they are about different banks.
        if (first) begin
            used_reg <= 1'b1;
            if (used_reg) begin
                full_reg[use_reg] <= 1'b0;
                use_reg           <= !use_reg;
            end
        end
        if (rst) begin
            full_reg <= 2'b00;
            used_reg <= 1'b0;
            use_reg  <= 1'b0;
            fill_reg <= 1'b0;
            row_reg  <= {RA{1'b0}};
            part_reg <= {PA{1'b0}};
        end
    end

// A row of memory is what a beat brings, so that loading never waits: R words
// side by side, or P columns written one after the other. The bank is the lowest
// address bit: no adder, and exactly 2*ROWS rows whatever DEPTH is.
wire [MA-1:0] wr_row, rd_row;
generate
if (ROWS == 1) begin : g_one_row
    assign wr_row = fill_reg;
    assign rd_row = use_reg;
end else begin : g_rows
    assign wr_row = {row_reg, fill_reg};
    assign rd_row = {addr[AW-1:LR], use_reg};
end

if (R == 1) begin : g_columns
    // (One memory with a write enable per column: read in one piece, which a simulator does much faster.)
    reg [WIDTH-1:0] mem [0:2*ROWS-1];
    reg [WIDTH-1:0] data_reg;
    genvar p;
    for (p = 0; p < P; p = p + 1) begin : g_column
        localparam LOW = p * AXI_WIDTH;
        localparam CW  = (WIDTH - LOW < AXI_WIDTH) ? WIDTH - LOW : AXI_WIDTH;
        localparam [31:0]   THIS_32 = p;
        localparam [PA-1:0] THIS    = THIS_32[PA-1:0];
        always @(posedge clk)
            if (take)
                if (part_reg == THIS)
                    mem[wr_row][LOW +: CW] <= s_axis_tdata[CW-1:0];
    end
    always @(posedge clk)
        if (en)
            data_reg <= mem[rd_row];
    assign data = data_reg;
end else begin : g_words
    localparam KEEP = (DEPTH < R) ? DEPTH : R;  // words kept of each beat
    reg  [KEEP*WIDTH-1:0] mem [0:2*ROWS-1];
    reg  [KEEP*WIDTH-1:0] row_data_reg;
    wire [KEEP*WIDTH-1:0] beat;
    genvar w;
    for (w = 0; w < KEEP; w = w + 1) begin : g_word
        assign beat[w*WIDTH +: WIDTH] = s_axis_tdata[w*PW2 +: WIDTH];
    end
    always @(posedge clk) begin
        if (take)
            mem[wr_row] <= beat;
        if (en)
            row_data_reg <= mem[rd_row];
    end
    if (KEEP == 1) begin : g_only
        assign data = row_data_reg;
    end else begin : g_select
        localparam KA = $clog2(KEEP);
        reg [KA-1:0] word_reg;
        always @(posedge clk)
            if (en)
                word_reg <= addr[KA-1:0];
        assign data = row_data_reg[word_reg*WIDTH +: WIDTH];
    end
end
endgenerate

// padding of the beats; the address of a single word
wire unused = &{1'b0, s_axis_tdata, addr};

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // The one assumption: a kernel does not begin an iteration before the previous
    // one's parameters were there.
    reg f_used;
    always @(posedge clk) f_used <= !rst && (f_used || first);
    always @* assume (!first || !f_used || ready);

    // The model: beats are counted, whole banks wait in a queue of two, of which the
    // front one is in use. Of each bank only word f_addr (any) is kept.
    localparam BEATS = P * ROWS;
    (* anyconst *) wire [AW-1:0] f_addr;
    always @* assume (f_addr < DEPTH);
    // (Narrow numbers: 32-bit sums cost z3 minutes.)
    localparam [4:0] F_LAST = BEATS - 1, F_P = P;
    wire [4:0]       f_row  = f_addr / R;
    wire [4:0]       f_at   = f_row * F_P;      // the beat that brings it, or begins to
    reg  [4:0]       f_beat;                    // of the bank that loads
    reg  [1:0]       f_banks;                   // banks in the queue
    reg  [P*PW2-1:0] f_load;                    // the word, as far as it came
    reg  [WIDTH-1:0] f_bank0, f_bank1;          // the word in the queued banks
    reg  [P*PW2-1:0] f_load_now;
    wire             f_done = take && f_beat == F_LAST;
    wire             f_free = first && f_used;
    integer f_p;
    always @* begin
        f_load_now = f_load;
        if (take && R > 1 && f_beat == f_at)
            f_load_now = s_axis_tdata >> ((f_addr % R) * PW2);
        for (f_p = 0; f_p < P; f_p = f_p + 1)
            if (take && R == 1 && f_beat - f_at == f_p)
                f_load_now[f_p*AXI_WIDTH +: AXI_WIDTH] = s_axis_tdata;
    end
    always @(posedge clk) begin
        f_load <= f_load_now;
        if (take) f_beat <= f_done ? 5'd0 : f_beat + 5'd1;
        f_banks <= f_banks + {1'b0, f_done} - {1'b0, f_free};
        if (f_free) f_bank0 <= f_bank1;
        if (f_done) begin
            if (f_banks == {1'b0, f_free}) f_bank0 <= f_load_now[WIDTH-1:0];
            else                           f_bank1 <= f_load_now[WIDTH-1:0];
        end
        if (rst) begin
            f_beat  <= 5'd0;
            f_banks <= 2'd0;
        end
    end

    always @* if (f_past_valid) begin
        assert (f_banks <= 2'd2);
        assert (s_axis_tready == (f_banks != 2'd2));
        assert (ready == (f_used && f_banks != 2'd0));
    end

    always @(posedge clk) if (f_past_valid) begin
        if ($past(f_past_valid && ready && en && addr == f_addr))
            assert (data == $past(f_bank0));
        if ($past(!en))
            assert ($stable(data));
        if ($past(rst))
            assert (!ready);
        else if ($past(first))                              // a bank is released only then
            assert (ready == $past(f_banks + {1'b0, bank_done} > {1'b0, f_used}));
        else if ($past(ready))
            assert (ready);
    end

    wire [4:0] f_row_now = row_reg, f_part_now = part_reg;
    // For the induction: the state is the model's, and where the words lie.
    always @* if (f_past_valid) begin
        assert (used_reg == f_used);
        assert (f_beat <= F_LAST && f_beat == f_row_now * F_P + f_part_now);
        assert (f_part_now < F_P);
        assert (fill_reg == use_reg ^ f_banks[0]);
        assert (full_reg[use_reg] == (f_banks != 2'd0) && full_reg[!use_reg] == f_banks[1]);
        assert (bank_done == f_done);
    end
    wire [MA-1:0] f_use_row  = {f_row, use_reg};
    wire [MA-1:0] f_next_row = {f_row, !use_reg};
    wire [MA-1:0] f_fill_row = {f_row, fill_reg};
    generate
    if (R == 1) begin : f_columns
        wire [WIDTH-1:0] f_use  = g_columns.mem[f_use_row];
        wire [WIDTH-1:0] f_next = g_columns.mem[f_next_row];
        wire [WIDTH-1:0] f_fill = g_columns.mem[f_fill_row];
        genvar q;
        for (q = 0; q < P; q = q + 1) begin : f_column
            localparam F_LOW = q * AXI_WIDTH;
            localparam [4:0] F_Q = q;
            localparam F_CW  = (WIDTH - F_LOW < AXI_WIDTH) ? WIDTH - F_LOW : AXI_WIDTH;
            always @* if (f_past_valid) begin
                if (f_banks != 2'd0) assert (f_use[F_LOW +: F_CW] == f_bank0[F_LOW +: F_CW]);
                if (f_banks == 2'd2) assert (f_next[F_LOW +: F_CW] == f_bank1[F_LOW +: F_CW]);
                if (f_beat > f_at + F_Q) assert (f_fill[F_LOW +: F_CW] == f_load[F_LOW +: F_CW]);
            end
        end
    end else begin : f_words
        localparam KEEP_F = (DEPTH < R) ? DEPTH : R;
        wire [KEEP_F*WIDTH-1:0] f_use  = g_words.mem[f_use_row];
        wire [KEEP_F*WIDTH-1:0] f_next = g_words.mem[f_next_row];
        wire [KEEP_F*WIDTH-1:0] f_fill = g_words.mem[f_fill_row];
        wire [15:0] f_shift = (f_addr % R) * WIDTH;
        wire [WIDTH-1:0] f_use_word = f_use >> f_shift, f_next_word = f_next >> f_shift, f_fill_word = f_fill >> f_shift;
        always @* if (f_past_valid) begin
            if (f_banks != 2'd0) assert (f_use_word == f_bank0);
            if (f_banks == 2'd2) assert (f_next_word == f_bank1);
            if (f_beat > f_row) assert (f_fill_word == f_load[WIDTH-1:0]);
        end
    end endgenerate

    // Not vacuous: the third bank is in use.
    reg [1:0] f_swaps = 2'd0;
    always @(posedge clk) f_swaps <= rst ? 2'd0 : f_swaps + {1'b0, first && f_swaps != 2'd3};
    always @* cover (f_past_valid && f_swaps == 2'd2 && ready && en);
`endif
endmodule
`default_nettype wire
