// SPDX-License-Identifier: MIT
// mlo_param: a parameter memory: two banks, one in use while the other loads; or a bank for each iteration, loaded once
//
// Contract    BEATS consecutive beats of s_axis fill one bank. `first` (one cycle)
//             says that a new iteration begins: the next bank is used from then on.
//             `ready`: the bank in use is completely loaded.
//             `data` is word `addr` of the bank in use, the cycle after `en`, and
//             stays while en is low. A read in the cycle of `first` is still of
//             the old bank; a read while ready is low returns nothing useful.
// Banks       RESIDENT = 0: two in turn, filled over and over; `first` releases
//             the one in use, if any, to be filled anew.
//             RESIDENT = n: n in a row. They are filled once, after reset; s_axis_tlast
//             on the beats of a bank says that it is the last one (fewer than n
//             iterations are run), else the n-th is. After the last, the first is
//             used again; nothing is released, no further beat is taken.
// Throughput  writes one beat per cycle, reads one word per cycle, independently
// Latency     read: 1 cycle. ready: high the cycle after `first` if the next bank
//             is loaded already, else the cycle after its last beat was taken
// Stall       s_axis_tready goes low while both banks are loaded and not released;
//             so before the first `first` two banks are loaded ahead. RESIDENT: low
//             from the last bank on, never before
// Timing      s_axis_tready and ready depend on registers only. RESIDENT: an adder
//             lies before the memory's read address
// Packing     a word is padded to PW bits: the smallest power of two >= 8 and >=
//             WIDTH if AXI_WIDTH has room for that, else a multiple of AXI_WIDTH.
//             R = AXI_WIDTH/PW words per beat, the first in the low bits, or
//             P = PW/AXI_WIDTH beats per word, the low part first
// Legal       WIDTH >= 1; DEPTH >= 1; AXI_WIDTH a power of two >= 8; RESIDENT 0..65535;
//             `first` must not come while ready is low, except for the very first one
`default_nettype none
module mlo_param #(
    // bits of a word, >= 1
    parameter WIDTH = 8,
    // words of a bank, >= 1
    parameter DEPTH = 16,
    // bits of a beat from the loader, a power of two >= 8
    parameter AXI_WIDTH = 128,
    // banks that are loaded once, one an iteration; 0: two banks in turn
    parameter RESIDENT = 0,
    // derived, do not set: bits of addr
    parameter AW = (DEPTH > 1) ? $clog2(DEPTH) : 1
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire [AXI_WIDTH-1:0] s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire                 s_axis_tlast,   // of no use to two banks in turn
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

localparam BANKS = (RESIDENT > 0) ? RESIDENT : 2;
localparam MA    = (BANKS * ROWS > 1) ? $clog2(BANKS * ROWS) : 1;        // row and bank

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
    if (RESIDENT < 0 || RESIDENT > 65535) begin : g_error_resident
        mlo_error_RESIDENT_must_be_0_to_65535 u_error();
    end
endgenerate

// Where the next beat goes, within its bank.
reg [RA-1:0] row_reg;
reg [PA-1:0] part_reg;

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
        end
        if (rst) begin
            row_reg  <= {RA{1'b0}};
            part_reg <= {PA{1'b0}};
        end
    end

// Who owns which bank.
reg          used_reg;                  // there was a `first`
wire [MA-1:0] wr_row, rd_row;
generate
if (RESIDENT == 0) begin : g_turn
    reg [1:0] full_reg;                 // completely loaded and not yet released
    reg       use_reg;                  // the bank in use
    reg       fill_reg;                 // the bank that loads

    assign s_axis_tready = !full_reg[fill_reg];
    assign ready         = used_reg && full_reg[use_reg];

    always @(posedge clk)
        if (work) begin
            if (bank_done) begin
                full_reg[fill_reg] <= 1'b1;
                fill_reg           <= !fill_reg;
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
            end
        end

    // The bank is the lowest address bit: no adder, and exactly 2*ROWS rows whatever DEPTH is.
    if (ROWS == 1) begin : g_one_row
        assign wr_row = fill_reg;
        assign rd_row = use_reg;
    end else begin : g_rows
        assign wr_row = {row_reg, fill_reg};
        assign rd_row = {addr[AW-1:LR], use_reg};
    end
    wire unused_last = &{1'b0, s_axis_tlast};
end else begin : g_resident
    // Bank after bank without gaps, so that exactly RESIDENT*ROWS rows are needed.
    localparam BW = $clog2(RESIDENT + 1);
    localparam [31:0]   RESIDENT_32 = RESIDENT, ROWS_32 = ROWS;
    localparam [BW-1:0] FINAL_BANK = RESIDENT_32[BW-1:0] - 1'b1;
    localparam [MA-1:0] STEP       = ROWS_32[MA-1:0], ROW_STEP = 1;
    reg [BW-1:0] loaded_reg;            // banks that are completely loaded
    reg          whole_reg;             // all of them are
    reg [BW-1:0] use_reg;               // the bank in use
    reg [MA-1:0] base_reg;              // its first row
    reg [MA-1:0] fill_reg;              // the row that loads

    assign s_axis_tready = !whole_reg;
    assign ready         = used_reg && use_reg < loaded_reg;
    wire   wrap          = whole_reg && use_reg + 1'b1 == loaded_reg;

    always @(posedge clk)
        if (work) begin
            if (word_done)
                fill_reg <= fill_reg + ROW_STEP;
            if (bank_done) begin
                loaded_reg <= loaded_reg + 1'b1;
                if (s_axis_tlast || loaded_reg == FINAL_BANK)
                    whole_reg <= 1'b1;
            end
            if (first) begin
                used_reg <= 1'b1;
                if (used_reg) begin
                    use_reg  <= wrap ? {BW{1'b0}} : use_reg + 1'b1;
                    base_reg <= wrap ? {MA{1'b0}} : base_reg + STEP;
                end
            end
            if (rst) begin
                loaded_reg <= {BW{1'b0}};
                whole_reg  <= 1'b0;
                used_reg   <= 1'b0;
                use_reg    <= {BW{1'b0}};
                base_reg   <= {MA{1'b0}};
                fill_reg   <= {MA{1'b0}};
            end
        end

    assign wr_row = fill_reg;
    if (ROWS == 1) begin : g_one_row
        assign rd_row = base_reg;
    end else begin : g_rows
        wire [31:0] row = {{(32-AW+LR){1'b0}}, addr[AW-1:LR]};
        assign rd_row = base_reg + row[MA-1:0];
        wire unused_row = &{1'b0, row};
    end
end

// A row of memory is what a beat brings, so that loading never waits: R words
// side by side, or P columns written one after the other.
if (R == 1) begin : g_columns
    // (One memory with a write enable per column: read in one piece, which a simulator does much faster.)
    (* no_rw_check *)    // never read where it is written in the same cycle
    reg [WIDTH-1:0] mem [0:BANKS*ROWS-1];
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
    (* no_rw_check *)    // never read where it is written in the same cycle
    reg  [KEEP*WIDTH-1:0] mem [0:BANKS*ROWS-1];
    reg  [KEEP*WIDTH-1:0] row_data_reg;
    wire [KEEP*WIDTH-1:0] beat;
    genvar w;
    if (WIDTH == PW2) begin : g_dense               // in one piece: all memories see all beats
        assign beat = s_axis_tdata[KEEP*WIDTH-1:0];
    end else begin : g_padded
        for (w = 0; w < KEEP; w = w + 1) begin : g_word
            assign beat[w*WIDTH +: WIDTH] = s_axis_tdata[w*PW2 +: WIDTH];
        end
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
if (WIDTH % AXI_WIDTH != 0 && (WIDTH != PW2 || DEPTH < R)) begin : g_padding
    wire unused = &{1'b0, s_axis_tdata};
end
endgenerate
wire unused = &{1'b0, addr};            // of a single word

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // The one assumption: a kernel does not begin an iteration before the previous
    // one's parameters were there.
    reg f_used;
    always @(posedge clk) f_used <= !rst && (f_used || first);
    always @* assume (!first || !f_used || ready);

    // The model: beats are counted; of each bank only word f_addr (any) is kept.
    localparam BEATS = P * ROWS;
    (* anyconst *) wire [AW-1:0] f_addr;
    always @* assume (f_addr < DEPTH);
    // (Narrow numbers: 32-bit sums cost z3 minutes.)
    localparam [4:0] F_LAST = BEATS - 1, F_P = P, F_ROWS = ROWS;
    wire [4:0]       f_row  = f_addr / R;
    wire [4:0]       f_at   = f_row * F_P;      // the beat that brings it, or begins to
    reg  [4:0]       f_beat;                    // of the bank that loads
    reg  [P*PW2-1:0] f_load;                    // the word, as far as it came
    reg  [P*PW2-1:0] f_load_now;
    wire             f_done = take && f_beat == F_LAST;
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
        if (rst) f_beat <= 5'd0;
    end
    always @(posedge clk) if (f_past_valid) begin
        if ($past(!en))
            assert ($stable(data));
        if ($past(rst))
            assert (!ready);
        else if ($past(ready && !first))                    // a bank is released only by `first`
            assert (ready);
    end

    wire [4:0] f_row_now = row_reg, f_part_now = part_reg;
    // For the induction: the state is the model's.
    always @* if (f_past_valid) begin
        assert (used_reg == f_used);
        assert (f_beat <= F_LAST && f_beat == f_row_now * F_P + f_part_now);
        assert (f_part_now < F_P);
        assert (bank_done == f_done);
    end

    // Where the word lies: in the rows of three banks (in use, next, loading), or of one (RESIDENT).
    wire [MA-1:0]    f_use_row, f_next_row, f_fill_row;
    wire [P*PW2-1:0] f_use, f_next, f_fill;     // what these rows hold of it
    generate
    if (R == 1) begin : f_columns
        assign f_use  = g_columns.mem[f_use_row];
        assign f_next = g_columns.mem[f_next_row];
        assign f_fill = g_columns.mem[f_fill_row];
    end else begin : f_words
        wire [15:0] f_shift = (f_addr % R) * WIDTH;
        wire [WIDTH-1:0] f_use_word  = g_words.mem[f_use_row] >> f_shift;
        wire [WIDTH-1:0] f_next_word = g_words.mem[f_next_row] >> f_shift;
        wire [WIDTH-1:0] f_fill_word = g_words.mem[f_fill_row] >> f_shift;
        assign f_use = f_use_word;
        assign f_next = f_next_word;
        assign f_fill = f_fill_word;
    end
    genvar q;
    for (q = 0; q < P; q = q + 1) begin : f_column  // what came so far lies in the bank that loads
        localparam F_LOW = q * AXI_WIDTH;
        localparam [4:0] F_Q = q;
        localparam F_CW  = (WIDTH - F_LOW < AXI_WIDTH) ? WIDTH - F_LOW : AXI_WIDTH;
        if (RESIDENT == 0) begin : f_turn_part
            always @* if (f_past_valid && f_beat > f_at + F_Q) assert (f_fill[F_LOW +: F_CW] == f_load[F_LOW +: F_CW]);
        end else begin : f_resident_part
            always @* if (f_past_valid && f_beat > f_at + F_Q && f_resident.f_banks == f_resident.f_bank)
                assert (f_use[F_LOW +: F_CW] == f_load[F_LOW +: F_CW]);
        end
    end

    if (RESIDENT == 0) begin : f_turn
        // Whole banks wait in a queue of two, of which the front one is in use.
        reg  [1:0]       f_banks;                   // banks in the queue
        reg  [WIDTH-1:0] f_bank0, f_bank1;          // the word in the queued banks
        wire             f_free = first && f_used;
        always @(posedge clk) begin
            f_banks <= f_banks + {1'b0, f_done} - {1'b0, f_free};
            if (f_free) f_bank0 <= f_bank1;
            if (f_done) begin
                if (f_banks == {1'b0, f_free}) f_bank0 <= f_load_now[WIDTH-1:0];
                else                           f_bank1 <= f_load_now[WIDTH-1:0];
            end
            if (rst) f_banks <= 2'd0;
        end
        always @* if (f_past_valid) begin
            assert (f_banks <= 2'd2);
            assert (s_axis_tready == (f_banks != 2'd2));
            assert (ready == (f_used && f_banks != 2'd0));
        end
        always @(posedge clk) if (f_past_valid) begin
            if ($past(f_past_valid && ready && en && addr == f_addr))
                assert (data == $past(f_bank0));
            if ($past(first && !rst))
                assert (ready == $past(f_banks + {1'b0, bank_done} > {1'b0, f_used}));
        end
        always @* if (f_past_valid) begin
            assert (g_turn.fill_reg == g_turn.use_reg ^ f_banks[0]);
            assert (g_turn.full_reg[g_turn.use_reg] == (f_banks != 2'd0) && g_turn.full_reg[!g_turn.use_reg] == f_banks[1]);
            if (f_banks != 2'd0) assert (f_use[WIDTH-1:0] == f_bank0);
            if (f_banks == 2'd2) assert (f_next[WIDTH-1:0] == f_bank1);
        end
        assign f_use_row  = {f_row, g_turn.use_reg};
        assign f_next_row = {f_row, !g_turn.use_reg};
        assign f_fill_row = {f_row, g_turn.fill_reg};
    end else begin : f_resident
        // Banks are counted; f_word is the word of bank f_bank (any).
        (* anyconst *) wire [4:0] f_bank;
        always @* assume (f_bank < RESIDENT);
        reg  [4:0]       f_banks, f_now;            // loaded; in use
        reg              f_whole;
        reg  [WIDTH-1:0] f_word;
        always @(posedge clk) begin
            if (f_done) begin
                f_banks <= f_banks + 5'd1;
                if (s_axis_tlast || f_banks + 5'd1 == RESIDENT) f_whole <= 1'b1;
                if (f_banks == f_bank) f_word <= f_load_now[WIDTH-1:0];
            end
            if (first && f_used) f_now <= (f_whole && f_now + 5'd1 == f_banks) ? 5'd0 : f_now + 5'd1;
            if (rst) begin
                f_banks <= 5'd0;
                f_now   <= 5'd0;
                f_whole <= 1'b0;
            end
        end
        always @* if (f_past_valid) begin
            assert (s_axis_tready == !f_whole);
            assert (ready == (f_used && f_now < f_banks));
        end
        always @(posedge clk) if (f_past_valid) begin
            if ($past(f_past_valid && ready && en && addr == f_addr && f_now == f_bank))
                assert (data == $past(f_word));
            if ($past(f_past_valid && f_whole && !rst))         // all there: no iteration waits
                assert (ready == f_used);
        end
        // for the induction
        localparam [9:0] F_STEP = ROWS;
        wire [9:0] f_base = f_now * F_STEP, f_filled = f_banks * F_STEP + f_row_now, f_lies = f_bank * F_STEP + f_row;
        wire [4:0] f_loaded_now = g_resident.loaded_reg, f_use_now = g_resident.use_reg;
        always @* if (f_past_valid) begin
            assert (f_banks <= RESIDENT && (f_now < f_banks || (!f_whole && f_now == f_banks)));
            assert (f_used || f_now == 5'd0);
            assert (!(f_whole && f_banks == 5'd0) && (f_whole || f_banks != RESIDENT) && !(f_whole && f_beat != 5'd0));
            assert (f_loaded_now == f_banks && f_use_now == f_now && g_resident.whole_reg == f_whole);
            assert (g_resident.base_reg == f_base[MA-1:0] && g_resident.fill_reg == f_filled[MA-1:0]);
            if (f_banks > f_bank) assert (f_use[WIDTH-1:0] == f_word);
        end
        assign f_use_row  = f_lies[MA-1:0];
        assign f_next_row = {MA{1'b0}};
        assign f_fill_row = {MA{1'b0}};
    end
    endgenerate

    // Not vacuous: the third bank is in use (the first one again, where there are two).
    reg [1:0] f_swaps = 2'd0;
    always @(posedge clk) f_swaps <= rst ? 2'd0 : f_swaps + {1'b0, first && f_swaps != 2'd3};
    always @* cover (f_past_valid && f_swaps == 2'd2 && ready && en);
`endif
endmodule
`default_nettype wire
