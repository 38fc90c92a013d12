// SPDX-License-Identifier: MIT
// mlo_rotary: turns pairs of channels by their token's position: rotary position embedding
//
// Contract   tokens of C channels, H = C/D heads of D; lanes 2k and 2k+1 of a beat are a pair (a, b). Of the token at position t,
//            with (cos, sin) of its pair in the table:
//            y[2k] = clip(((a*cos - b*sin)*M + 2^(S-1)) >>> S), y[2k+1] = clip(((a*sin + b*cos)*M + 2^(S-1)) >>> S) to YBITS.
//            Each frame (up to a token with tuser[1], `last`) has a word at s_axis_j, {start[31:16], unused}: t is `start` for its
//            first token, and one more for each one after it. Tokens leave in their order with their sideband. A token with
//            tuser[0] (`first`) moves to the next M, S and table; the very first token after reset must have it.
//            `start` and the frame's tokens are T at most, together. (Where every frame begins at position 0, words of 0 are
//            always there.)
// Throughput one beat per cycle; a token with `first` costs 1 cycle more (if its parameters are loaded).
// Latency    idle, parameters loaded: a beat taken in cycle t is offered in cycle t + 11 (+ 1 if it carries the change of
//            iteration: first beat of a token with `first`; the beats after it then follow one per cycle).
// Stall      a frame waits for its word; a beat that cannot leave freezes the lanes; parameters not loaded hold the input, what is behind drains.
// Parameters s_axis_c: a word of 64 bits: M[15:0] (< 2^15), S[37:32] (1..62); SHIFT = 1: M is 2^14, whatever its bits say, and
//            the requantization has no multiplier
//            s_axis_t: T*D/PE words of PE*16 bits, D/PE of a position one after the other: PE/2 pairs of signed numbers in
//            steps of 2^-14, cos at 32*k, sin at 32*k+16. Each head of a token reads its position's words anew.
//            KEPT = 1: all iterations have one table; s_axis_t is always ready.
// Legal      PE even, PE divides D, D divides C, T >= 1, 2 <= XBITS <= 16, YBITS >= 2, SHIFT 0 or 1, KEPT 0 or 1.
`default_nettype none

module mlo_rotary #(
    parameter C         = 8,        // channels of a token, a multiple of D
    parameter D         = 4,        // channels of a head, a multiple of PE
    parameter T         = 4,        // positions
    parameter PE        = 2,        // lanes, even
    parameter XBITS     = 16,       // bits of x, 2 .. 16
    parameter YBITS     = 8,        // bits of y
    parameter SHIFT     = 0,        // 1: the scale is a power of two
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter KEPT      = 0,        // 1: the table is the same in all iterations: the first one stays, what comes for others is dropped
    parameter AXI_WIDTH = 128       // bits of a parameter beat
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
    input  wire [31:0]          s_axis_j_tdata, // {position of a frame's first token, unused}
    input  wire                 s_axis_j_tvalid,
    output wire                 s_axis_j_tready,
    input  wire [PE*XBITS-1:0]  s_axis_tdata,
    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire [2:0]           s_axis_tuser,
    output wire [PE*YBITS-1:0]  m_axis_tdata,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire [2:0]           m_axis_tuser,
    input  wire [AXI_WIDTH-1:0] s_axis_c_tdata,
    input  wire                 s_axis_c_tvalid,
    output wire                 s_axis_c_tready,
    input  wire [AXI_WIDTH-1:0] s_axis_t_tdata,
    input  wire                 s_axis_t_tvalid,
    output wire                 s_axis_t_tready,
    // {blocked, starved, busy}
    output reg  [2:0]           stat
);
    localparam H  = C / D;
    localparam DF = D / PE;                         // words of a position, beats of a head
    localparam DW = (DF > 1) ? $clog2(DF) : 1;
    localparam HW = (H > 1) ? $clog2(H) : 1;
    localparam TW = (T * DF > 1) ? $clog2(T * DF) : 1;
    localparam SW = TW + 16;                        // of a start in words, as it is multiplied
    localparam PB = XBITS + 16;                     // bits of a product
    localparam AB = PB + 1;                         // of a sum of two
    localparam [DW-1:0] D_LAST = DF[DW-1:0] - 1'b1;
    localparam [HW-1:0] H_LAST = H[HW-1:0] - 1'b1;
    localparam [31:0]   DF_V = DF;
    localparam [SW-1:0] DF_S = {{SW-DW-1{1'b0}}, DF_V[DW:0]};

    generate
        if (PE < 2 || PE % 2 != 0)            mlo_error_PE_must_be_even u_pe ();
        if (D % PE != 0)                      mlo_error_PE_must_divide_D u_d ();
        if (C % D != 0)                       mlo_error_D_must_divide_C u_c ();
        if (T < 1)                            mlo_error_T_must_be_at_least_1 u_t ();
        if (XBITS < 2 || XBITS > 16)          mlo_error_XBITS_must_be_2_to_16 u_xbits ();
        if (SHIFT != 0 && SHIFT != 1)         mlo_error_SHIFT_must_be_0_or_1 u_shift ();
        if (KEPT != 0 && KEPT != 1)           mlo_error_KEPT_must_be_0_or_1 u_kept ();
    endgenerate

    // ---- input register: here a beat waits for its parameters ------------------------------------------------------
    reg  [PE*XBITS-1:0] x;
    reg  [2:0]          user;
    reg                 valid;
    reg                 fresh;                      // the beat here is the first of its token, not yet announced
    reg                 known;                      // the frame at hand has its word
    reg  [DW-1:0]       beat;                       // of its head
    reg  [HW-1:0]       head;
    reg  [TW-1:0]       base, addr;                 // the position's first word, and the beat's
    reg  [TW-1:0]       start;                      // of the next frame's first position
    reg                 there;                      // that is known
    wire                c_ready, t_ready, en;
    wire                ready    = c_ready && t_ready;
    wire                swap     = valid && fresh && user[0] && en;
    wire                go       = valid && !swap && ready && en && known;
    wire                head_end = beat == D_LAST;
    wire                end_here = head_end && head == H_LAST;      // of the token
    wire [TW-1:0]       next     = addr + 1'b1;
    wire                ends     = go && end_here && user[1];       // the frame
    wire                begins   = there && (!known || ends);
    wire [SW-1:0]       word     = {{TW{1'b0}}, s_axis_j_tdata[31:16]} * DF_S;
    assign s_axis_j_tready = !there || begins;
    assign s_axis_tready = go || !valid;            // of registers only: en is, too
    always @(posedge clk) begin
        if (s_axis_tready) begin
            x     <= s_axis_tdata;
            user  <= s_axis_tuser;
            valid <= s_axis_tvalid;
        end
        if (s_axis_j_tready) begin
            start <= word[TW-1:0];
            there <= s_axis_j_tvalid;
        end
        known <= begins || (known && !ends);
        if (swap) fresh <= 1'b0;
        if (go) begin
            fresh <= end_here;
            beat  <= head_end ? {DW{1'b0}} : beat + 1'b1;
            addr  <= !head_end || end_here ? next : base;
            if (head_end) head <= end_here ? {HW{1'b0}} : head + 1'b1;
            if (end_here) base <= next;
        end
        if (begins) begin
            base <= start;
            addr <= start;
        end
        if (rst) begin
            valid <= 1'b0;
            fresh <= 1'b1;
            there <= 1'b0;
            known <= 1'b0;
            beat  <= {DW{1'b0}};
            head  <= {HW{1'b0}};
        end
    end

    wire [63:0]      c_word;
    wire [PE*16-1:0] t_word;
    mlo_param #(.WIDTH(64), .DEPTH(1), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_scale (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready), .s_axis_tlast(params_last),
        .first(swap), .ready(c_ready), .addr(1'b0), .en(go), .data(c_word));
    wire t_takes;
    assign s_axis_t_tready = t_takes || KEPT != 0;
    mlo_param #(.WIDTH(PE*16), .DEPTH(T*DF), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(KEPT != 0 ? 1 : RESIDENT)) u_table (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_t_tdata), .s_axis_tvalid(s_axis_t_tvalid), .s_axis_tready(t_takes), .s_axis_tlast(params_last),
        .first(swap), .ready(t_ready), .addr(addr), .en(go), .data(t_word));

    // ---- lanes: 0 beside the words read, 1 operands, 2 products, 3..8 mlo_requantize, whose input registers hold the sums --------
    reg  [PE*XBITS-1:0] x0;
    reg  [8:0]          v;
    reg  [26:0]         u;
    reg  [15:0]         mul1, mul2;
    reg  [5:0]          shift1, shift2;
    always @(posedge clk) begin
        if (rst)     v <= 9'd0;
        else if (en) v <= {v[7:0], go};
        if (en) begin
            x0 <= x;
            u  <= {u[23:0], user};
            if (v[0]) begin
                mul1   <= c_word[15:0];
                shift1 <= c_word[37:32];
            end
            if (v[1]) begin
                mul2   <= mul1;
                shift2 <= shift1;
            end
        end
    end

    wire [PE*YBITS-1:0] y;
    genvar p;
    generate
        for (p = 0; p < PE / 2; p = p + 1) begin : pair
            // each product between two registers: it is a DSP block with its own
            reg  signed [XBITS-1:0] a1, b1;
            reg  signed [15:0]      cos1, sin1;
            reg  signed [PB-1:0]    ac2, bs2, as2, bc2;
            always @(posedge clk)
                if (en) begin
                    if (v[0]) begin
                        a1   <= x0[(2*p)*XBITS +: XBITS];
                        b1   <= x0[(2*p+1)*XBITS +: XBITS];
                        cos1 <= t_word[32*p +: 16];
                        sin1 <= t_word[32*p+16 +: 16];
                    end
                    if (v[1]) begin
                        ac2 <= a1 * cos1;
                        bs2 <= b1 * sin1;
                        as2 <= a1 * sin1;
                        bc2 <= b1 * cos1;
                    end
                end
            wire signed [AB-1:0] even = {ac2[PB-1], ac2} - {bs2[PB-1], bs2};
            wire signed [AB-1:0] odd  = {as2[PB-1], as2} + {bc2[PB-1], bc2};
            wire [1:0]           unused_valid;      // the same in each lane: v stands for all
            mlo_requantize #(.ABITS(AB), .MBITS(16), .YBITS(YBITS), .SHIFT(SHIFT)) u_even (
                .clk(clk), .rst(rst), .en(en), .in_valid(v[2]), .in_acc(even), .in_m(mul2), .in_s(shift2),
                .out_valid(unused_valid[0]), .out_y(y[(2*p)*YBITS +: YBITS]));
            mlo_requantize #(.ABITS(AB), .MBITS(16), .YBITS(YBITS), .SHIFT(SHIFT)) u_odd (
                .clk(clk), .rst(rst), .en(en), .in_valid(v[2]), .in_acc(odd), .in_m(mul2), .in_s(shift2),
                .out_valid(unused_valid[1]), .out_y(y[(2*p+1)*YBITS +: YBITS]));
            wire unused_lane = &{1'b0, unused_valid};
        end
    endgenerate

    // ---- output ----------------------------------------------------------------------------------------------------
    wire o_ready;
    assign en = o_ready || !v[8];
    mlo_skid #(.WIDTH(3 + PE*YBITS)) u_out (
        .clk(clk), .rst(rst), .s_tdata({u[26:24], y}), .s_tvalid(v[8]), .s_tready(o_ready),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

    wire waiting = !o_ready || (m_axis_tvalid && !m_axis_tready);
    always @(posedge clk) stat <= rst ? 3'b000 : go ? 3'b001 : waiting ? 3'b100 : 3'b010;

    wire unused = &{1'b0, c_word[31:16], c_word[63:38], word[SW-1:TW], s_axis_j_tdata[15:0]};

`ifdef FORMAL
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);
    // The environment: what waits at the input does not change.
    reg                f_wait = 1'b0;
    reg [PE*XBITS+2:0] f_in;
    // The output likewise.
    reg                f_held = 1'b0;
    reg [PE*YBITS+2:0] f_out;
    always @(posedge clk) begin
        f_wait <= !rst && s_axis_tvalid && !s_axis_tready;
        f_in   <= {s_axis_tuser, s_axis_tdata};
        f_held <= !rst && m_axis_tvalid && !m_axis_tready;
        f_out  <= {m_axis_tuser, m_axis_tdata};
    end
    always @(*) begin
        if (f_wait) assume (s_axis_tvalid && f_in == {s_axis_tuser, s_axis_tdata});
        if (f_held) assert (m_axis_tvalid && f_out == {m_axis_tuser, m_axis_tdata});
    end

    // Where a beat stands, counted by itself: its place in its head, its head, its position. Frames end with the table, and a
    // token's beats have one sideband.
    reg  [7:0] f_beat, f_head, f_after;             // f_after: the position of the token before, and one
    reg  [2:0] f_user;
    reg        f_front;                             // no beat of the frame has gone
    reg        f_began;                             // there was a change of iteration
    wire       f_end = f_beat + 1 == DF && f_head + 1 == H;
    wire [7:0] f_at = f_front ? f_start : f_after;
    wire [7:0] f_here = f_at * DF;
    reg [7:0]  f_start, f_next;                     // of the frame at hand, of the next one
    reg        f_j_wait;
    reg [15:0] f_j;
    always @(posedge clk) begin
        if (go) begin
            f_beat <= f_beat + 1 == DF ? 8'd0 : f_beat + 8'd1;
            if (f_beat + 1 == DF) f_head <= f_end ? 8'd0 : f_head + 8'd1;
            f_after <= f_end ? f_at + 8'd1 : f_at;
            f_front <= f_end && user[1];
            f_user  <= user;
        end
        f_began <= !rst && (f_began || swap);
        if (s_axis_j_tvalid && s_axis_j_tready) f_next <= s_axis_j_tdata[23:16];
        if (begins) f_start <= f_next;
        f_j_wait <= !rst && s_axis_j_tvalid && !s_axis_j_tready;
        f_j      <= s_axis_j_tdata[31:16];
        if (rst) {f_front, f_beat, f_head} <= {1'b1, 16'd0};
    end
    always @(*) if (f_past) begin
        if (s_axis_j_tvalid) assume (s_axis_j_tdata[31:16] < T);
        if (f_j_wait) assume (s_axis_j_tvalid && s_axis_j_tdata[31:16] == f_j);
        if (valid && known && f_at + 1 == T) assume (user[1]);
        if (valid && {f_beat, f_head} != 16'd0) assume (user == f_user);
        assert (f_beat < DF && f_head < H);
        if (known) assert (f_at < T && f_start < T);
        else assert (f_front && {beat, head} == {DW+HW{1'b0}});
        if (there) assert (f_next < T && start == ((f_next * DF) & {TW{1'b1}}));
        assert (beat == f_beat && head == f_head);
        assert (!f_front || {beat, head} == {DW+HW{1'b0}});
        if (known) begin
            assert (addr == f_here + f_beat);       // the word of its position, whatever head it is of
            assert (base == f_here);
        end
        assert (!fresh || {beat, head} == {DW+HW{1'b0}});
        if ({beat, head} != {DW+HW{1'b0}}) assert (!fresh);
        if (swap) assert ({beat, head} == {DW+HW{1'b0}});
        if (go) assert (c_ready && t_ready && !swap && known);
        // mlo_param's assumption: parameters are there before the next ones begin
        if (f_began && swap) assert (c_ready && t_ready);
        if (f_began && (fresh || {beat, head} != {DW+HW{1'b0}})) assert (c_ready && t_ready);
    end
    // KEPT: the first table stays, and holds up neither who reads it nor the loader.
    reg f_whole;
    always @(posedge clk) f_whole <= !rst && (f_whole || t_ready);
    always @(*) if (f_past && KEPT != 0) assert (s_axis_t_tready && (!f_whole || t_ready));
    // Conservation: beats taken = beats handed to the output register + those inside.
    reg  [4:0] f_taken, f_left;
    wire [4:0] f_inside = valid + v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7] + v[8];
    reg        f_bank;                              // changes of iteration, modulo 2
    always @(posedge clk) begin
        if (s_axis_tvalid && s_axis_tready) f_taken <= f_taken + 1'b1;
        if (v[8] && o_ready)                f_left  <= f_left + 1'b1;
        if (swap)                           f_bank  <= !f_bank;
        if (rst) {f_taken, f_left, f_bank} <= 11'd0;
    end
    always @(*) if (f_past) assert (f_taken - f_left == f_inside);
    // Pair 0 against the plain formula, stage by stage: operands that were read together, their products' sums.
    reg  signed [AB-1:0] f_even2, f_odd2;
    always @(posedge clk) if (en && v[1]) begin
        f_even2 <= pair[0].a1 * pair[0].cos1 - pair[0].b1 * pair[0].sin1;
        f_odd2  <= pair[0].a1 * pair[0].sin1 + pair[0].b1 * pair[0].cos1;
    end
    reg f_sums = 1'b0;
    always @(posedge clk) f_sums <= !rst && (f_sums || (en && v[1]));
    always @(*) if (f_past && f_sums) begin
        assert (pair[0].even == f_even2);
        assert (pair[0].odd == f_odd2);
    end
    always @(posedge clk) if (f_past && !rst) cover (f_left == 5'd5 && f_bank);
`endif
endmodule

`default_nettype wire
