// SPDX-License-Identifier: MIT
// mlo_place: y[c] = clip(((x[c] + P[t][c])*M[c] + 2^(S[c]-1)) >>> S[c]): adds what a table has for the token's position t, and requantizes
//
// Contract   tokens of C channels, PE a beat. Each frame (up to a token with tuser[1], `last`) has a word at s_axis_j,
//            {start[31:16], unused}: t is `start` for its first token, and one more for each one after it. Tokens leave in their
//            order with their sideband. A token with tuser[0] (`first`) moves to the next P, M and S; the very first token after
//            reset must have it. `start` and the frame's tokens are T at most, together. (Where every frame begins at position
//            0, words of 0 are always there.)
// Throughput one beat per cycle; a token with `first` costs 1 cycle more (if its parameters are loaded).
// Latency    idle, parameters loaded: a beat taken in cycle t is offered in cycle t + 9 (+ 1 if it carries the change of
//            iteration: first beat of a token with `first`; the beats after it then follow one per cycle).
// Stall      a frame waits for its word; a beat that cannot leave freezes the lanes; parameters not loaded hold the input, what is behind drains.
// Parameters s_axis_c: C/PE words of PE x 32 bits: M[15:0] (< 2^15), S[21:16] (1..62). SHIFT = 1: M is 2^14, whatever its bits say,
//            and there is no multiplier
//            s_axis_t: T*C/PE words of PE*16 bits, C/PE of a position one after the other: signed numbers in steps of x
// Legal      PE divides C, T >= 1, 2 <= XBITS <= 16, YBITS >= 2, SHIFT 0 or 1.
`default_nettype none

module mlo_place #(
    parameter C         = 8,        // channels of a token, a multiple of PE
    parameter T         = 4,        // positions
    parameter PE        = 2,        // lanes
    parameter XBITS     = 16,       // bits of x, 2 .. 16
    parameter YBITS     = 8,        // bits of y
    parameter SHIFT     = 0,        // 1: scales are powers of two
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
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
    localparam CF = C / PE;                         // beats of a token, words of a position
    localparam CW = (CF > 1) ? $clog2(CF) : 1;
    localparam TW = (T * CF > 1) ? $clog2(T * CF) : 1;
    localparam SW = TW + 16;                        // of a start in words, as it is multiplied
    localparam AB = 17;                             // of a sum
    localparam [CW-1:0] LAST = CF[CW-1:0] - 1'b1;
    localparam [31:0]   CF_V = CF;
    localparam [SW-1:0] CF_S = {{SW-CW-1{1'b0}}, CF_V[CW:0]};

    generate
        if (PE < 1 || C % PE != 0)            mlo_error_PE_must_divide_C u_c ();
        if (T < 1)                            mlo_error_T_must_be_at_least_1 u_t ();
        if (XBITS < 2 || XBITS > 16)          mlo_error_XBITS_must_be_2_to_16 u_xbits ();
        if (SHIFT != 0 && SHIFT != 1)         mlo_error_SHIFT_must_be_0_or_1 u_shift ();
    endgenerate

    // ---- input register: here a beat waits for its parameters ------------------------------------------------------
    reg  [PE*XBITS-1:0] x;
    reg  [2:0]          user;
    reg                 valid;
    reg                 fresh;                      // the beat here is the first of its token, not yet announced
    reg                 known;                      // the frame at hand has its word
    reg  [CW-1:0]       beat;                       // of its token
    reg  [TW-1:0]       addr;                       // the beat's word of the table
    reg  [TW-1:0]       start;                      // of the next frame's first position
    reg                 there;                      // that is known
    wire                c_ready, t_ready, en;
    wire                ready    = c_ready && t_ready;
    wire                swap     = valid && fresh && user[0] && en;
    wire                go       = valid && !swap && ready && en && known;
    wire                end_here = beat == LAST;
    wire                ends     = go && end_here && user[1];       // the frame
    wire                begins   = there && (!known || ends);
    wire [SW-1:0]       word     = {{TW{1'b0}}, s_axis_j_tdata[31:16]} * CF_S;
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
            beat  <= end_here ? {CW{1'b0}} : beat + 1'b1;
            addr  <= addr + 1'b1;
        end
        if (begins) addr <= start;
        if (rst) begin
            valid <= 1'b0;
            fresh <= 1'b1;
            there <= 1'b0;
            known <= 1'b0;
            beat  <= {CW{1'b0}};
        end
    end

    wire [PE*32-1:0] c_word;
    wire [PE*16-1:0] t_word;
    mlo_param #(.WIDTH(PE*32), .DEPTH(CF), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_scale (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready), .s_axis_tlast(params_last),
        .first(swap), .ready(c_ready), .addr(beat), .en(go), .data(c_word));
    mlo_param #(.WIDTH(PE*16), .DEPTH(T*CF), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_table (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_t_tdata), .s_axis_tvalid(s_axis_t_tvalid), .s_axis_tready(s_axis_t_tready), .s_axis_tlast(params_last),
        .first(swap), .ready(t_ready), .addr(addr), .en(go), .data(t_word));

    // ---- lanes: 0 beside the words read, 1 operands, 2..6 mlo_requantize, whose input registers hold the sums --------------
    reg  [PE*XBITS-1:0] x0;
    reg  [6:0]          v;
    reg  [20:0]         u;
    always @(posedge clk) begin
        if (rst)     v <= 7'd0;
        else if (en) v <= {v[5:0], go};
        if (en) begin
            x0 <= x;
            u  <= {u[17:0], user};
        end
    end

    wire [PE*YBITS-1:0] y;
    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : lane
            // between the memories, which are slow, and the adder: registers
            reg  signed [XBITS-1:0] x1;
            reg  signed [15:0]      p1;
            reg         [15:0]      mul;
            reg         [5:0]       shift;
            always @(posedge clk) if (en && v[0]) begin
                x1    <= x0[p*XBITS +: XBITS];
                p1    <= t_word[16*p +: 16];
                mul   <= c_word[32*p +: 16];
                shift <= c_word[32*p + 16 +: 6];
            end
            wire signed [AB-1:0] acc = {{(AB-XBITS){x1[XBITS-1]}}, x1} + {{(AB-16){p1[15]}}, p1};
            wire                 unused_valid;      // the same in each lane: v stands for all
            mlo_requantize #(.ABITS(AB), .MBITS(16), .YBITS(YBITS), .DEEP(0), .SHIFT(SHIFT)) u_requantize (
                .clk(clk), .rst(rst), .en(en), .in_valid(v[1]), .in_acc(acc), .in_m(mul), .in_s(shift),
                .out_valid(unused_valid), .out_y(y[p*YBITS +: YBITS]));
            wire unused_lane = &{1'b0, unused_valid, c_word[32*p + 22 +: 10]};
        end
    endgenerate

    // ---- output ----------------------------------------------------------------------------------------------------
    wire o_ready;
    assign en = o_ready || !v[6];
    mlo_skid #(.WIDTH(3 + PE*YBITS)) u_out (
        .clk(clk), .rst(rst), .s_tdata({u[20:18], y}), .s_tvalid(v[6]), .s_tready(o_ready),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

    wire waiting = !o_ready || (m_axis_tvalid && !m_axis_tready);
    always @(posedge clk) stat <= rst ? 3'b000 : go ? 3'b001 : waiting ? 3'b100 : 3'b010;

    wire unused = &{1'b0, word[SW-1:TW], s_axis_j_tdata[15:0]};

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

    // Where a beat stands, counted by itself: its place in its token, the token's position. Frames end with the table, and a
    // token's beats have one sideband.
    reg  [7:0] f_beat, f_after;                     // f_after: the position of the token before, and one
    reg  [2:0] f_user;
    reg        f_front;                             // no beat of the frame has gone
    reg        f_began;                             // there was a change of iteration
    reg  [7:0] f_start, f_next;                     // of the frame at hand, of the next one
    reg        f_j_wait;
    reg [15:0] f_j;
    wire       f_end = f_beat + 1 == CF;
    wire [7:0] f_at = f_front ? f_start : f_after;
    wire [7:0] f_here = f_at * CF;
    always @(posedge clk) begin
        if (go) begin
            f_beat  <= f_end ? 8'd0 : f_beat + 8'd1;
            f_after <= f_end ? f_at + 8'd1 : f_at;
            f_front <= f_end && user[1];
            f_user  <= user;
        end
        f_began <= !rst && (f_began || swap);
        if (s_axis_j_tvalid && s_axis_j_tready) f_next <= s_axis_j_tdata[23:16];
        if (begins) f_start <= f_next;
        f_j_wait <= !rst && s_axis_j_tvalid && !s_axis_j_tready;
        f_j      <= s_axis_j_tdata[31:16];
        if (rst) {f_front, f_beat} <= {1'b1, 8'd0};
    end
    always @(*) if (f_past) begin
        if (s_axis_j_tvalid) assume (s_axis_j_tdata[31:16] < T);
        if (f_j_wait) assume (s_axis_j_tvalid && s_axis_j_tdata[31:16] == f_j);
        if (valid && known && f_at + 1 == T) assume (user[1]);
        if (valid && f_beat != 8'd0) assume (user == f_user);
        assert (f_beat < CF);
        if (known) assert (f_at < T && f_start < T);
        else assert (f_front && beat == {CW{1'b0}});
        if (there) assert (f_next < T && start == ((f_next * CF) & {TW{1'b1}}));
        assert (beat == f_beat);
        if (known) assert (addr == f_here + f_beat);    // the word of its position
        if (beat != {CW{1'b0}}) assert (!fresh);
        if (swap) assert (beat == {CW{1'b0}});
        if (go) assert (c_ready && t_ready && !swap && known);
        // mlo_param's assumption: parameters are there before the next ones begin
        if (f_began && swap) assert (c_ready && t_ready);
        if (f_began && (fresh || beat != {CW{1'b0}})) assert (c_ready && t_ready);
    end
    // Conservation: beats taken = beats handed to the output register + those inside.
    reg  [4:0] f_taken, f_left;
    wire [4:0] f_inside = valid + v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6];
    reg        f_bank;                              // changes of iteration, modulo 2
    always @(posedge clk) begin
        if (s_axis_tvalid && s_axis_tready) f_taken <= f_taken + 1'b1;
        if (v[6] && o_ready)                f_left  <= f_left + 1'b1;
        if (swap)                           f_bank  <= !f_bank;
        if (rst) {f_taken, f_left, f_bank} <= 11'd0;
    end
    always @(*) if (f_past) assert (f_taken - f_left == f_inside);
    // Lane 0: the operands' sum, of what was read together.
    reg  signed [AB-1:0] f_sum1;
    reg                  f_summed = 1'b0;
    wire signed [XBITS-1:0] f_x0 = x0[XBITS-1:0];
    wire signed [15:0]      f_p0 = t_word[15:0];
    always @(posedge clk) begin
        if (en && v[0]) f_sum1 <= f_x0 + f_p0;
        f_summed <= !rst && (f_summed || (en && v[0]));
    end
    always @(*) if (f_past && f_summed) assert (lane[0].acc == f_sum1);
    always @(posedge clk) if (f_past && !rst) cover (f_left == 5'd5 && f_bank);
`endif
endmodule

`default_nettype wire
