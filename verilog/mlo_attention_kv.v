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
// Throughput  writes one beat and reads one word of all PE memories per cycle
// Latency     full: the cycle after the last beat; the next frame's, if it is complete
//             already, the cycle after `done`: no cycle is lost between frames
// Stall       s_tready is low while two complete frames are held
// Lanes       a token is written to the rest of its group as well, and overwritten
//             there by the tokens that follow. So the lanes behind the last token
//             never hold stale or unknown data, whatever the frames before.
// Legal       1 <= tokens of a frame <= T; done only while full
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
    // derived, do not set: groups, bits of a group number, bits of rd_addr
    parameter G  = (T + PE - 1) / PE,
    parameter GW = (G > 1) ? $clog2(G) : 1,
    parameter AW = (G * BEATS > 1) ? $clog2(G * BEATS) : 1
) (
    input  wire                clk,
    input  wire                rst,
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
localparam WORDS = (G * BEATS > 1) ? 2 * G * BEATS : 4;   // (an address has a bit even if there is one word)
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   BEAT_LAST_32 = BEATS - 1;
localparam [BW-1:0] BEAT_LAST    = BEAT_LAST_32[BW-1:0];
localparam [BW-1:0] BEAT_ONE     = 1;
localparam [GW-1:0] GROUP_ONE    = 1;
localparam [AW-1:0] ADDR_ONE     = 1;

// The two banks: which one fills, which one is read, and what is known of each.
reg [1:0]    full_reg;
reg          fill_reg, read_reg;
reg [GW-1:0] groups_0_reg, groups_1_reg;
reg [PE-1:0] tail_0_reg,   tail_1_reg;
reg [1:0]    none_reg, single_reg;

assign s_tready = !full_reg[fill_reg];
assign full     = full_reg[read_reg];
assign groups_1 = read_reg ? groups_1_reg : groups_0_reg;
assign tail     = read_reg ? tail_1_reg   : tail_0_reg;
assign none     = none_reg[read_reg];
assign single   = single_reg[read_reg];

// Where the next beat goes. lanes_reg marks the token's own lane and all above it.
reg [BW-1:0] beat_reg;
reg [GW-1:0] group_reg;
reg [PE-1:0] lanes_reg;
reg [AW-1:0] addr_reg, base_reg;    // of this beat, of the group's first beat
reg          any_reg;               // a valid key came before this token

wire          take       = s_tvalid && s_tready;
wire          token_done = take && beat_reg == BEAT_LAST;
wire          frame_done = token_done && s_last;
wire [PE-1:0] lanes_next = lanes_reg << 1;
wire          group_done = lanes_next == {PE{1'b0}};

always @(posedge clk) begin
    if (take) begin
        beat_reg <= beat_reg + BEAT_ONE;
        addr_reg <= addr_reg + ADDR_ONE;
    end
    if (token_done) begin
        beat_reg <= {BW{1'b0}};
        any_reg  <= any_reg || s_key;
        if (group_done) begin               // on to the next group
            lanes_reg <= {PE{1'b1}};
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
    if (rst || frame_done) begin
        beat_reg  <= {BW{1'b0}};
        group_reg <= {GW{1'b0}};
        lanes_reg <= {PE{1'b1}};
        addr_reg  <= {AW{1'b0}};
        base_reg  <= {AW{1'b0}};
        any_reg   <= 1'b0;
    end
end

// The bank is the lowest address bit: no adder, and exactly 2*G*BEATS words.
wire [AW:0] wr_word = {addr_reg, fill_reg};
wire [AW:0] rd_word = {rd_addr, read_reg};
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
    // Assumed: frames of at most T tokens, and no `done` without a frame.
    reg       f_past = 1'b0;
    reg [7:0] f_tokens;                         // of the frame that fills, complete ones
    reg [7:0] f_len_0, f_len_1;                 // of the two frames
    reg [7:0] f_lane;
    integer   f_i;
    always @* begin
        if (!f_past) assume (rst);
        if (!full)   assume (!done);
        if (f_tokens == T - 1) assume (s_last);
        f_lane = 0;
        for (f_i = 0; f_i < PE; f_i = f_i + 1)
            f_lane = f_lane + !lanes_reg[f_i];
    end
    always @(posedge clk) begin
        f_past <= 1'b1;
        if (token_done) f_tokens <= f_tokens + 8'd1;
        if (frame_done && !fill_reg) f_len_0 <= f_tokens + 8'd1;
        if (frame_done && fill_reg)  f_len_1 <= f_tokens + 8'd1;
        if (rst || frame_done) f_tokens <= 8'd0;
    end
    wire [PE-1:0] f_below = ~lanes_reg, f_above = f_below + 1'b1;
    wire [PE-1:0] f_tail_0 = {PE{1'b1}} << ((f_len_0 - 8'd1) % PE) << 1;
    wire [PE-1:0] f_tail_1 = {PE{1'b1}} << ((f_len_1 - 8'd1) % PE) << 1;
    always @* if (f_past) begin
        // the bank that is read is never the one that fills
        assert (fill_reg == read_reg ? full_reg == 2'b00 || full_reg == 2'b11 : full_reg[read_reg] && !full_reg[fill_reg]);
        if (take && full) assert (fill_reg != read_reg);
        if (full_reg == 2'b11) assert (f_tokens == 0 && beat_reg == 0);
        // the position follows from the number of tokens
        assert (f_tokens < T && beat_reg <= BEAT_LAST);
        assert ((f_below & f_above) == 0 && lanes_reg != 0);        // a thermometer
        assert (f_tokens == group_reg * PE + f_lane);
        assert (base_reg == group_reg * BEATS && addr_reg == base_reg + beat_reg);
        // what is said of a frame follows from its length
        if (full_reg[0]) assert (f_len_0 >= 1 && f_len_0 <= T && groups_0_reg == (f_len_0 - 8'd1) / PE);
        if (full_reg[1]) assert (f_len_1 >= 1 && f_len_1 <= T && groups_1_reg == (f_len_1 - 8'd1) / PE);
        if (full_reg[0]) assert (single_reg[0] == (groups_0_reg == 0));
        if (full_reg[1]) assert (single_reg[1] == (groups_1_reg == 0));
        if (full_reg[0]) assert (tail_0_reg == ~f_tail_0);
        if (full_reg[1]) assert (tail_1_reg == ~f_tail_1);
    end

    // What stages 1 and 3 rely on: a frame, and what is said of it, stays until `done`.
    reg                 f_stay;
    reg [GW+PE:0]       f_said;
    always @(posedge clk) begin
        f_stay <= full && !done && !rst;
        f_said <= {groups_1, tail, none};
    end
    always @* if (f_past && f_stay) assert (full && f_said == {groups_1, tail, none});

    // Any one beat of any one token is where the reader looks for it, until its frame is done.
    (* anyconst *) wire [7:0] f_token, f_beat;
    (* anyconst *) wire       f_bank;
    reg             f_have = 1'b0;
    reg [WIDTH-1:0] f_data;
    wire [AW:0]     f_word = {((f_token / PE) * BEATS + f_beat), f_bank};
    always @* assume (f_token < T && f_beat < BEATS);
    always @(posedge clk) begin
        if (take && fill_reg == f_bank && f_tokens == f_token && beat_reg == f_beat) begin
            f_have <= 1'b1;
            f_data <= s_tdata;
        end
        if (rst || (done && read_reg == f_bank))
            f_have <= 1'b0;
    end
    always @* if (f_past && !full_reg[f_bank] && f_have)
        assert (fill_reg == f_bank && f_tokens * BEATS + beat_reg > f_token * BEATS + f_beat);
    always @* if (f_past && full_reg[f_bank])
        assert (f_have == (f_token < (f_bank ? f_len_1 : f_len_0)));
    always @* if (f_past && !full_reg[f_bank] && fill_reg == f_bank && !f_have)
        assert (f_tokens * BEATS + beat_reg <= f_token * BEATS + f_beat);
    always @* if (f_past && !full_reg[f_bank] && fill_reg != f_bank) assert (!f_have);
    wire [PE*WIDTH-1:0] f_held = mem[f_word];
    generate
        for (p = 0; p < PE; p = p + 1) begin : f_lanes
            always @* if (f_past && f_have && f_token % PE == p) assert (f_held[p*WIDTH +: WIDTH] == f_data);
        end
    endgenerate
    always @* cover (f_past && full_reg == 2'b11 && f_len_0 != f_len_1);
`endif
endmodule
`default_nettype wire
