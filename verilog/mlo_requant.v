// SPDX-License-Identifier: MIT
// mlo_requant: y[c] = clip(((x[c] + B[c])*M[c] + 2^(S[c]-1)) >>> S[c]): each channel gets another offset, scale and width
//
// Contract   tokens of C channels, LANES = PE; tokens leave in their order with their sideband. With TABLE = 1 that clips to
//            TBITS bits signed, and y[c] = table[that + 2^(TBITS-1)]. A token with tuser[0] (`first`) moves to the next B,
//            M, S and table; the very first token after reset must have it.
// Throughput one beat per cycle; a token with `first` costs 1 cycle more (if its parameters are loaded).
// Latency    idle, parameters loaded: a beat taken in cycle t is offered in cycle t + 9 + TABLE (+ 1 if it carries the change
//            of iteration: first beat of a token with `first`; the beats after it then follow one per cycle).
// Stall      a beat that cannot leave freezes the lanes; parameters not loaded hold the input, what is behind drains.
// Parameters s_axis_c: C/PE words of PE x 64 bits, as mlo_mvu's channel words: B[31:0] signed (its low XBITS bits are used),
//            M[47:32] (< 2^15), S[53:48] (1..62). SHIFT = 1: M is 2^14, whatever its bits say, and there is no multiplier
//            s_axis_t: words of YBITS, 2^TBITS of them (only with TABLE = 1)
// Legal      PE divides C, 2 <= XBITS <= 32, YBITS >= 2, SHIFT and TABLE 0 or 1.
//
// The change of iteration is a beat of its own ahead of the token: it begins the next B, M and S when it enters the lanes,
// the next table when it leaves them.
`default_nettype none

module mlo_requant #(
    parameter C         = 8,        // channels of a token, a multiple of PE
    parameter PE        = 2,        // lanes
    parameter XBITS     = 16,       // bits of x
    parameter YBITS     = 8,        // bits of y
    parameter TABLE     = 0,        // 1: a table behind the requantization
    parameter TBITS     = 8,        // bits of the table's index
    parameter SHIFT     = 0,        // 1: scales are powers of two
    parameter RESIDENT  = 0,        // banks of the parameter memories that are loaded once, one an iteration; 0: two in turn
    parameter AXI_WIDTH = 128       // bits of a parameter beat
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 params_last,    // the parameter beats are of the last iteration (tlast of mlo_param)
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
    localparam CF = C / PE;                         // beats of a token
    localparam CW = (CF > 1) ? $clog2(CF) : 1;
    localparam [CW-1:0] LAST = CF[CW-1:0] - 1'b1;
    localparam QBITS = (TABLE != 0) ? TBITS : YBITS;    // what the requantization makes

    generate
        if (C % PE != 0) mlo_error_PE_must_divide_C u_pe ();
        if (XBITS > 32)  mlo_error_XBITS_must_be_at_most_32 u_xbits ();
        if (TABLE != 0 && TABLE != 1) mlo_error_TABLE_must_be_0_or_1 u_table ();
    endgenerate

    // ---- input register: here a beat waits for its parameters ------------------------------------------------------
    reg  [PE*XBITS-1:0] x;
    reg  [2:0]          user;
    reg                 valid;
    reg                 fresh;                      // the beat here is the first of its token, not yet announced
    reg  [CW-1:0]       beat;
    wire                ready, en;
    wire                swap = valid && fresh && user[0] && en;
    wire                go   = valid && !swap && ready && en;
    assign s_axis_tready = go || !valid;            // of registers only: en is, too
    always @(posedge clk) begin
        if (s_axis_tready) begin
            x     <= s_axis_tdata;
            user  <= s_axis_tuser;
            valid <= s_axis_tvalid;
        end
        if (swap) fresh <= 1'b0;
        if (go) begin
            beat  <= beat == LAST ? {CW{1'b0}} : beat + 1'b1;
            fresh <= beat == LAST;
        end
        if (rst) begin
            valid <= 1'b0;
            fresh <= 1'b1;
            beat  <= {CW{1'b0}};
        end
    end

    wire [PE*64-1:0] word;
    mlo_param #(.WIDTH(PE*64), .DEPTH(CF), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_scale (
        .clk(clk), .rst(rst),
        .s_axis_tdata(s_axis_c_tdata), .s_axis_tvalid(s_axis_c_tvalid), .s_axis_tready(s_axis_c_tready), .s_axis_tlast(params_last),
        .first(swap), .ready(ready), .addr(beat), .en(go), .data(word));

    // ---- lanes -----------------------------------------------------------------------------------------------------
    reg  [PE*XBITS-1:0] x1;                         // beside the word read for it
    reg  [6:0]          v;                          // x1, the operands, then five stages of mlo_requantize
    reg  [20:0]         u;
    always @(posedge clk) begin
        if (rst)     v <= 7'd0;
        else if (en) v <= {v[5:0], go};
        if (en) begin
            x1 <= x;
            u  <= {u[17:0], user};
        end
    end

    wire [PE*QBITS-1:0] q;
    genvar p;
    generate
        for (p = 0; p < PE; p = p + 1) begin : lane
            // between the memory, which is slow, and the adder: a register (that adder and its register are in a DSP block)
            reg  signed [XBITS-1:0] x2, offset;
            reg         [15:0]      mul;
            reg         [5:0]       shift;
            always @(posedge clk) if (en && v[0]) begin
                x2     <= x1[p*XBITS +: XBITS];
                offset <= word[64*p +: XBITS];
                mul    <= word[64*p + 32 +: 16];
                shift  <= word[64*p + 48 +: 6];
            end
            wire signed [XBITS:0]   acc = x2 + offset;  // registered where mlo_requantize begins
            wire                    unused_valid;       // the same in each lane: v stands for all
            mlo_requantize #(.ABITS(XBITS + 1), .MBITS(16), .YBITS(QBITS), .DEEP(0), .SHIFT(SHIFT)) u_requantize (
                .clk(clk), .rst(rst), .en(en), .in_valid(v[1]), .in_acc(acc), .in_m(mul), .in_s(shift),
                .out_valid(unused_valid), .out_y(q[p*QBITS +: QBITS]));
            wire unused_lane = &{1'b0, unused_valid, word[64*p +: 32], word[64*p + 54 +: 10]};
        end
    endgenerate

    // ---- table (or not), output ------------------------------------------------------------------------------------
    wire                q_ready, o_ready, o_valid;
    wire [PE*YBITS-1:0] y;
    wire [2:0]          o_user;
    assign en = q_ready || !v[6];
    generate
        if (TABLE == 0) begin : no_table
            assign q_ready = o_ready;
            assign {o_valid, o_user, y} = {v[6], u[20:18], q};
            assign s_axis_t_tready = 1'b0;
            wire unused_t = &{1'b0, s_axis_t_tdata, s_axis_t_tvalid};
        end else begin : with_table
            reg  [6:0] mark;                        // the change of iteration goes along with v
            always @(posedge clk)
                if (rst)     mark <= 7'd0;
                else if (en) mark <= {mark[5:0], swap};
            mlo_lookup #(.LANES(PE), .XBITS(TBITS), .YBITS(YBITS), .AXI_WIDTH(AXI_WIDTH), .RESIDENT(RESIDENT)) u_lookup (
                .clk(clk), .rst(rst), .params_last(params_last), .first(mark[6] && en),
                .s_axis_tdata(q), .s_axis_tvalid(v[6]), .s_axis_tready(q_ready), .s_axis_tuser(u[20:18]),
                .m_axis_tdata(y), .m_axis_tvalid(o_valid), .m_axis_tready(o_ready), .m_axis_tuser(o_user),
                .s_axis_t_tdata(s_axis_t_tdata), .s_axis_t_tvalid(s_axis_t_tvalid), .s_axis_t_tready(s_axis_t_tready));
`ifdef FORMAL
            // every iteration that B, M and S began and the table did not is a mark in between, and no beat
            reg f_bank_t;
            always @(posedge clk) f_bank_t <= rst ? 1'b0 : f_bank_t ^ (mark[6] && en);
            always @(*) if (f_past) assert (f_bank == f_bank_t ^ ^mark);
            always @(*) if (f_past) assert ((mark & v) == 7'd0);
`endif
        end
    endgenerate

    mlo_skid #(.WIDTH(3 + PE*YBITS)) u_out (
        .clk(clk), .rst(rst), .s_tdata({o_user, y}), .s_tvalid(o_valid), .s_tready(o_ready),
        .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

    wire waiting = !o_ready || (m_axis_tvalid && !m_axis_tready);
    always @(posedge clk) stat <= rst ? 3'b000 : go ? 3'b001 : waiting ? 3'b100 : 3'b010;

`ifdef FORMAL
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);
    // The environment: what waits at the input does not change.
    reg                  f_wait = 1'b0;
    reg [PE*XBITS+2:0]   f_in;
    // The output likewise.
    reg                  f_held = 1'b0;
    reg [PE*YBITS+2:0]   f_out;
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
    // Conservation: beats taken = beats handed to the output register + those inside.
    reg  [4:0] f_taken, f_left;
    wire [4:0] f_inside = valid + v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + (TABLE != 0 && o_valid);
    reg        f_bank;                              // changes of iteration, modulo 2
    always @(posedge clk) begin
        if (s_axis_tvalid && s_axis_tready) f_taken <= f_taken + 1'b1;
        if (o_valid && o_ready)             f_left  <= f_left + 1'b1;
        if (swap)                           f_bank  <= !f_bank;
        if (rst) {f_taken, f_left, f_bank} <= 11'd0;
    end
    always @(*) if (f_past) begin
        assert (f_taken - f_left == f_inside);
        assert (beat <= LAST);
        if (beat != {CW{1'b0}}) assert (!fresh);
        if (swap) assert (beat == {CW{1'b0}});
        if (go) assert (ready && !swap);
    end
    always @(posedge clk) if (f_past && !rst) cover (f_left == 5'd3 && f_bank);
`endif
endmodule

`default_nettype wire
