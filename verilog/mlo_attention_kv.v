// SPDX-License-Identifier: MIT
// mlo_attention_kv: the keys (or values) of two frames: one is read while the next one arrives
//
// Contract    s_axis: the tokens of a frame, BEATS beats each, s_last on the beats of
//             the last one; s_key: this token is a valid key.
//             A frame becomes readable when its last beat is in (full), until `done`.
//             Token j lies in memory j mod PE, so PE consecutive tokens (a group) are
//             read at once: rd_addr = (j / PE) * BEATS + beat, data the cycle after rd_en.
//             About the frame that is read: groups-1, single = that is 0, tail = lanes of its
//             last group that hold a token, none = it has no valid key
//             CACHE > 0: there are CACHE banks in place of two, and what was written stays there. Each frame takes a word at job_*:
//             its token j is position job_start + j of bank job_bank, and positions take the place of tokens: in the memory, in
//             groups-1 and tail. (none is about the frame's own tokens)
// Throughput  writes one beat and reads one word of all PE memories per cycle
// Latency     full: the cycle after the last beat; the next frame's, if it is complete
//             already, the cycle after `done`: no cycle is lost between frames
// Stall       s_tready is low while two complete frames are held; CACHE: and until the frame has its word, which it takes from the
//             cycle on in which the one before it is complete
// Lanes       a token is written to the rest of its group as well, and overwritten
//             there by the tokens that follow. So the lanes behind the last token
//             never hold stale or unknown data, whatever the frames before.
//             (CACHE: positions that were written before stay in the lanes below the first token)
// Legal       1 <= tokens of a frame <= T; done only while full
//             CACHE: PE a power of two; job_start + tokens <= T, job_bank < CACHE; two frames that are held are of different banks
`default_nettype none
module mlo_attention_kv #(
    // tokens of a frame at most
    parameter T = 4,
    // beats of a token
    parameter BEATS = 4,
    // tokens read in parallel, 1..T
    parameter PE = 2,
    // bits of a beat
    parameter WIDTH = 8,
    // banks that stay; 0: two frames' in turn
    parameter CACHE = 0,
    // derived, do not set: groups, bits of a group number, bits of rd_addr
    parameter G  = (T + PE - 1) / PE,
    parameter GW = (G > 1) ? $clog2(G) : 1,
    parameter AW = (G * BEATS > 1) ? $clog2(G * BEATS) : 1
) (
    input  wire                clk,
    input  wire                rst,
    input  wire                job_valid,
    output wire                job_ready,
    input  wire [15:0]         job_start,
    input  wire [15:0]         job_bank,
    input  wire [WIDTH-1:0]    s_tdata,
    input  wire                s_last,
    input  wire                s_key,
    input  wire                s_tvalid,
    output wire                s_tready,
    output wire                full,
    output wire [GW-1:0]       groups_1,
    output wire                single,
    output wire [PE-1:0]       tail,
    output wire                none,
    input  wire                done,
    input  wire                rd_en,
    input  wire [AW-1:0]       rd_addr,
    output wire [PE*WIDTH-1:0] rd_data
);

localparam BW    = (BEATS > 1) ? $clog2(BEATS) : 1;
localparam BANK  = G * BEATS;                             // words of a bank
localparam BANKS = (CACHE != 0) ? CACHE : 2;
localparam WORDS = (BANK > 1) ? BANKS * BANK : 2 * BANKS; // (an address has a bit even if there is one word)
localparam MW    = (CACHE != 0) ? $clog2(WORDS) : AW + 1; // bits of a place in the memory
localparam PW    = (CACHE != 0) ? MW : AW;                // of where a beat goes: in the memory, or in its bank
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   BEAT_LAST_32 = BEATS - 1;
localparam [BW-1:0] BEAT_LAST    = BEAT_LAST_32[BW-1:0];
localparam [BW-1:0] BEAT_ONE     = 1;
localparam [GW-1:0] GROUP_ONE    = 1;
localparam [PW-1:0] ADDR_ONE     = 1;
localparam [PE-1:0] ALL          = {PE{1'b1}};

// The two banks: which one fills, which one is read, and what is known of each.
reg [1:0]    full_reg;
reg          fill_reg, read_reg;
reg [GW-1:0] groups_0_reg, groups_1_reg;
reg [PE-1:0] tail_0_reg,   tail_1_reg;
reg [1:0]    none_reg, single_reg;

reg          known_reg;             // CACHE: the frame that fills has its word
wire         waits    = CACHE != 0 && !known_reg;
assign s_tready = !full_reg[fill_reg] && !waits;
assign full     = full_reg[read_reg];
assign groups_1 = read_reg ? groups_1_reg : groups_0_reg;
assign tail     = read_reg ? tail_1_reg   : tail_0_reg;
assign none     = none_reg[read_reg];
assign single   = single_reg[read_reg];

// Where the next beat goes. lanes_reg marks the token's own lane and all above it.
reg [BW-1:0] beat_reg;
reg [GW-1:0] group_reg;
reg [PE-1:0] lanes_reg;
reg [PW-1:0] addr_reg, base_reg;    // of this beat, of the group's first beat
reg          any_reg;               // a valid key came before this token

wire          take       = s_tvalid && s_tready;
wire          token_done = take && beat_reg == BEAT_LAST;
wire          frame_done = token_done && s_last;
wire [PE-1:0] lanes_next = lanes_reg << 1;
wire          group_done = lanes_next == {PE{1'b0}};

// Where a frame begins, and which words of the memory that makes of addresses.
wire [GW-1:0] start_group;
wire [PE-1:0] start_lanes;
wire [PW-1:0] start_addr;           // of the next frame
wire [MW-1:0] wr_word, rd_word;
wire          begins = CACHE != 0 && job_valid && (!known_reg || frame_done);
assign        job_ready = begins || CACHE == 0;
generate
    if (CACHE == 0) begin : g_two
        // The bank is the lowest address bit: no adder, and exactly 2*G*BEATS words.
        assign start_group = {GW{1'b0}};
        assign start_lanes = ALL;
        assign start_addr  = {AW{1'b0}};
        assign wr_word     = {addr_reg, fill_reg};
        assign rd_word     = {rd_addr, read_reg};
        wire   unused_job  = &{1'b0, job_valid, job_start, job_bank};
    end else begin : g_cache
        localparam LP = $clog2(PE);
        reg  [MW-1:0] fill_base_reg, base_0_reg, base_1_reg;    // where the bank begins that fills, those of the complete frames
        wire [MW-1:0] bank_base, start_base;            // where the next one begins, and how far behind that its first group
        wire [15:0]   group = job_start >> LP;
        wire [15:0]   lane  = job_start - (group << LP);
        wire [GW+15:0] group_wide = {{GW{1'b0}}, group};
        mlo_times #(.N(BANK), .IN(16), .OUT(MW)) u_bank (.x(job_bank), .y(bank_base));
        mlo_times #(.N(BEATS), .IN(GW), .OUT(MW)) u_start (.x(start_group), .y(start_base));
        always @(posedge clk) begin
            if (begins) fill_base_reg <= bank_base;
            if (frame_done && !fill_reg) base_0_reg <= fill_base_reg;
            if (frame_done && fill_reg)  base_1_reg <= fill_base_reg;
        end
        assign start_group = group_wide[GW-1:0];
        assign start_lanes = ALL << lane;
        assign start_addr  = bank_base + start_base;
        assign wr_word     = addr_reg;
        assign rd_word     = (read_reg ? base_1_reg : base_0_reg) + {{MW-AW{1'b0}}, rd_addr};
        wire   unused_wide = &{1'b0, group_wide};
    end
    if (CACHE < 0 || (CACHE != 0 && (PE & (PE - 1)) != 0)) mlo_error_CACHE_needs_PE_a_power_of_two u_cache();
endgenerate

always @(posedge clk) begin
    if (take) begin
        beat_reg <= beat_reg + BEAT_ONE;
        addr_reg <= addr_reg + ADDR_ONE;
    end
    if (token_done) begin
        beat_reg <= {BW{1'b0}};
        any_reg  <= any_reg || s_key;
        if (group_done) begin               // on to the next group
            lanes_reg <= ALL;
            group_reg <= group_reg + GROUP_ONE;
            base_reg  <= addr_reg + ADDR_ONE;
        end else begin                      // the next lane, same addresses
            lanes_reg <= lanes_next;
            addr_reg  <= base_reg;
        end
    end
    if (frame_done) begin
        full_reg[fill_reg] <= 1'b1;
        none_reg[fill_reg] <= !any_reg && !s_key;
        single_reg[fill_reg] <= group_reg == {GW{1'b0}};
        fill_reg           <= !fill_reg;
        if (fill_reg) begin
            groups_1_reg <= group_reg;
            tail_1_reg   <= ~lanes_next;
        end else begin
            groups_0_reg <= group_reg;
            tail_0_reg   <= ~lanes_next;
        end
    end
    // the bank that is read is full, the one that fills is not: never the same
    if (done) begin
        full_reg[read_reg] <= 1'b0;
        read_reg           <= !read_reg;
    end
    if (rst) begin
        full_reg <= 2'b00;
        fill_reg <= 1'b0;
        read_reg <= 1'b0;
    end
    known_reg <= !rst && (begins || (known_reg && !frame_done));
    if (rst || frame_done || begins) begin
        beat_reg  <= {BW{1'b0}};
        group_reg <= start_group;
        lanes_reg <= start_lanes;
        addr_reg  <= start_addr;
        base_reg  <= start_addr;
        any_reg   <= 1'b0;
    end
end

// (The PE memories are one with a write enable per lane: read in one piece, which a simulator does much faster.)
(* no_rw_check *)    // never read where it is written in the same cycle
reg [PE*WIDTH-1:0] mem [0:WORDS-1];
reg [PE*WIDTH-1:0] out_reg;
genvar p;
generate
    for (p = 0; p < PE; p = p + 1) begin : g_lane
        always @(posedge clk)
            if (take && lanes_reg[p])
                mem[wr_word][p*WIDTH +: WIDTH] <= s_tdata;
    end
endgenerate
always @(posedge clk)
    if (rd_en)
        out_reg <= mem[rd_word];
assign rd_data = out_reg;

`ifdef FORMAL
    // Assumed: frames of at most T tokens, and no `done` without a frame. CACHE: they lie within a bank, and are of other banks than
    // those that are held.
    reg       f_past = 1'b0;
    reg       f_job  = 1'b0;                    // the frame that fills has its word: f_start, f_fill;
    reg [7:0] f_start, f_fill, f_bank_0, f_bank_1, f_start_0, f_start_1;    // and those of the complete ones
    reg [7:0] f_tokens;                         // of the frame that fills, complete ones
    reg [7:0] f_len_0, f_len_1;                 // of the two frames: positions
    reg [7:0] f_lane;
    integer   f_i;
    wire [7:0] f_at    = f_start + f_tokens;
    wire [7:0] f_fills = CACHE != 0 ? f_fill : fill_reg;       // the banks
    wire [7:0] f_reads = CACHE == 0 ? read_reg : read_reg ? f_bank_1 : f_bank_0;
    always @* begin
        if (!f_past) assume (rst);
        if (!full)   assume (!done);
        if (f_at == T - 1) assume (s_last);
        if (begins)  assume (job_start < T && job_bank < CACHE);
        if (begins && full_reg[0]) assume (job_bank != f_bank_0);
        if (begins && full_reg[1]) assume (job_bank != f_bank_1);
        if (begins && frame_done)  assume (job_bank != f_fill);
        f_lane = 0;
        for (f_i = 0; f_i < PE; f_i = f_i + 1)
            f_lane = f_lane + !lanes_reg[f_i];
    end
    always @(posedge clk) begin
        f_past <= 1'b1;
        if (token_done) f_tokens <= f_tokens + 8'd1;
        if (frame_done && !fill_reg) {f_len_0, f_bank_0, f_start_0} <= {f_at + 8'd1, f_fill, f_start};
        if (frame_done && fill_reg)  {f_len_1, f_bank_1, f_start_1} <= {f_at + 8'd1, f_fill, f_start};
        if (frame_done && CACHE != 0) f_job <= 1'b0;
        if (rst || begins || frame_done) f_tokens <= 8'd0;
        if (begins) {f_job, f_start, f_fill} <= {1'b1, job_start[7:0], job_bank[7:0]};
        if (rst)    {f_job, f_start} <= {CACHE == 0, 8'd0};
    end
    wire          f_on = f_past && f_job;
    wire [PE-1:0] f_below = ~lanes_reg, f_above = f_below + 1'b1;
    wire [PE-1:0] f_tail_0 = {PE{1'b1}} << ((f_len_0 - 8'd1) % PE) << 1;
    wire [PE-1:0] f_tail_1 = {PE{1'b1}} << ((f_len_1 - 8'd1) % PE) << 1;
    wire [PW-1:0] f_base   = (CACHE != 0 ? f_fills * BANK : 0) + group_reg * BEATS;
    always @* if (f_past) begin
        // the bank that is read is never the one that fills
        assert (fill_reg == read_reg ? full_reg == 2'b00 || full_reg == 2'b11 : full_reg[read_reg] && !full_reg[fill_reg]);
        if (take && full) assert (fill_reg != read_reg && f_fills != f_reads);
        if (full_reg == 2'b11) assert (f_tokens == 0 && beat_reg == 0);
        if (CACHE == 0) assert (f_job && f_start == 0);
        if (!f_job) assert (f_tokens == 0 && beat_reg == 0);
        if (CACHE != 0) assert (known_reg == f_job);
        // what is said of a frame follows from its length
        if (full_reg[0]) assert (f_len_0 >= 1 && f_len_0 <= T && groups_0_reg == (f_len_0 - 8'd1) / PE);
        if (full_reg[1]) assert (f_len_1 >= 1 && f_len_1 <= T && groups_1_reg == (f_len_1 - 8'd1) / PE);
        if (full_reg[0]) assert (single_reg[0] == (groups_0_reg == 0));
        if (full_reg[1]) assert (single_reg[1] == (groups_1_reg == 0));
        if (full_reg[0]) assert (tail_0_reg == ~f_tail_0);
        if (full_reg[1]) assert (tail_1_reg == ~f_tail_1);
        // those that are held are of different banks
        if (CACHE != 0 && full_reg[0]) assert (f_bank_0 < CACHE && f_start_0 < f_len_0 && (!f_job || f_fill != f_bank_0));
        if (CACHE != 0 && full_reg[1]) assert (f_bank_1 < CACHE && f_start_1 < f_len_1 && (!f_job || f_fill != f_bank_1));
        if (CACHE != 0 && full_reg == 2'b11) assert (f_bank_0 != f_bank_1);
    end
    always @* if (f_on) begin
        // the position follows from the number of tokens
        assert (f_start < T && f_tokens < T && beat_reg <= BEAT_LAST);
        assert (f_at < T);
        assert ((f_below & f_above) == 0 && lanes_reg != 0);        // a thermometer
        assert (f_at == group_reg * PE + f_lane);
        assert (base_reg == f_base && addr_reg == base_reg + beat_reg);
        if (CACHE != 0) assert (f_fill < CACHE);
    end

    // What stages 1 and 3 rely on: a frame, and what is said of it, stays until `done`.
    reg                 f_stay;
    reg [GW+PE:0]       f_said;
    always @(posedge clk) begin
        f_stay <= full && !done && !rst;
        f_said <= {groups_1, tail, none};
    end
    always @* if (f_past && f_stay) assert (full && f_said == {groups_1, tail, none});

    // Any one beat of any one token is where the reader looks for it: until its frame is done; CACHE: until a token is written to
    // its own position or a lower one of its group.
    (* anyconst *) wire [7:0] f_token, f_beat, f_bank;
    reg             f_have = 1'b0;
    reg [WIDTH-1:0] f_data;
    wire [AW-1:0]   f_addr = (f_token / PE) * BEATS + f_beat;
    wire            f_ours = f_past && take && f_fills == f_bank && beat_reg == f_beat;
    always @* assume (f_token < T && f_beat < BEATS && f_bank < BANKS);
    always @(posedge clk) begin
        if (f_ours && f_at == f_token) begin
            f_have <= 1'b1;
            f_data <= s_tdata;
        end
        if (CACHE != 0 && f_ours && f_at < f_token && f_at / PE == f_token / PE) f_have <= 1'b0;
        if (CACHE == 0 && (rst || (done && read_reg == f_bank)))
            f_have <= 1'b0;
    end
    wire [MW-1:0]       f_word = CACHE != 0 ? f_bank * BANK + f_addr : {f_addr, f_bank[0]};
    wire [PE*WIDTH-1:0] f_held = mem[f_word];
    always @* if (f_past && full && f_reads == f_bank && rd_addr == f_addr) assert (rd_word == f_word);
    generate
        for (p = 0; p < PE; p = p + 1) begin : f_lanes
            always @* if (f_past && f_have && f_token % PE == p) assert (f_held[p*WIDTH +: WIDTH] == f_data);
        end
        if (CACHE == 0) begin : f_two
            always @* if (f_past) begin
                if (!full_reg[f_bank[0]] && f_have)
                    assert (fill_reg == f_bank[0] && f_tokens * BEATS + beat_reg > f_token * BEATS + f_beat);
                if (full_reg[f_bank[0]])
                    assert (f_have == (f_token < (f_bank[0] ? f_len_1 : f_len_0)));
                if (!full_reg[f_bank[0]] && fill_reg == f_bank[0] && !f_have)
                    assert (f_tokens * BEATS + beat_reg <= f_token * BEATS + f_beat);
                if (!full_reg[f_bank[0]] && fill_reg != f_bank[0]) assert (!f_have);
            end
            always @* cover (f_past && full_reg == 2'b11 && f_len_0 != f_len_1);
        end else begin : f_cache
            always @* if (f_past) begin
                if (f_job) assert (g_cache.fill_base_reg == f_fill * BANK);
                if (full_reg[0]) assert (g_cache.base_0_reg == f_bank_0 * BANK);
                if (full_reg[1]) assert (g_cache.base_1_reg == f_bank_1 * BANK);
                // the frames are there, as far as they came: those that are held, and the one that fills
                if (full_reg[0] && f_bank == f_bank_0 && f_token >= f_start_0 && f_token < f_len_0) assert (f_have);
                if (full_reg[1] && f_bank == f_bank_1 && f_token >= f_start_1 && f_token < f_len_1) assert (f_have);
                if (f_job && f_bank == f_fill && f_token >= f_start && f_at * BEATS + beat_reg > f_token * BEATS + f_beat) assert (f_have);
            end
            always @* cover (f_past && f_have && f_token == 1 && f_bank == 1 && full && f_reads == 1 && (read_reg ? f_start_1 : f_start_0) == 2);
        end
    endgenerate
`endif
endmodule
`default_nettype wire
