// SPDX-License-Identifier: MIT
// mlo_attention_mix: stage 3 of mlo_attention: the weighted sum of the values, requantized
//
// Contract    for each row DS = D/SIMD passes over the frame's groups: each step multiplies PE weights
// with PE values of SIMD channels; a pass ends with SIMD sums, one beat of the result. The
// walk is: for every row, for every SIMD channels, for every group. Heads h * H/KVH .. (h+1) * H/KVH - 1
// of the queries read head h of the values.
//
// In   s_row    one word per row: {sideband, SO, R}; R = floor(MO * 2^(LT+EBITS) / sum of weights)
//               PROB = 1: {sideband, HP, SP, SO, MO, R}; R = floor(MP * 2^(LT+18) / sum of weights)
//               CAUSAL or BAND: {[base,] groups - 1, sideband, ..}: the row's groups, and with BAND where they begin
//      ring_*   the weights (mlo_attention_ring); v_*: the values (mlo_attention_kv)
// Out  m_axis   y = clip((sum_j e[j]*v[j] * R + 2^(SO-1)) >>> SO)
//               PROB = 1: w[j] = min((e[j]*R + 2^(SP-1)) >> SP, HP), y = clip((sum_j w[j]*v[j] * MO + 2^(SO-1)) >>> SO)
//               DOWN = k: {[base, groups - 1,] sideband, MP, HP, SP, SO, MO, R - 1}; R = ceil(N * 2^k / sum of weights), and
//               w[j] = min((floor(e[j]*R / 2^k) * MP + 2^(SP-1)) >> SP, HP)
// A weight has EBITS bits, 8 or 12 (PROB = 1: 18, and 8 where it meets the values).
// PROB = 1 takes PE more multipliers, as it divides a weight anew in each pass: that saves a second memory of rows,
// and a stage. The values wait for the weights' 7 cycles (DOWN: 10) in a delay line.
// Throughput  a row per groups * DS cycles
// Latency     12 + clog2(PE) cycles from a pass's last step to its beat on m_axis, 7 more with PROB, 10 with DOWN
// Stall       the pipeline never stops: a pass starts only if its beat has a reserved
//             place in the output queue
// Legal       as mlo_attention
`default_nettype none
module mlo_attention_mix #(
    parameter H     = 2,        // heads
    parameter D     = 4,        // channels of a head
    parameter PE    = 2,        // keys in parallel
    parameter SIMD  = 2,        // channels in parallel, divides D
    parameter XBITS = 8,
    parameter YBITS = 8,
    parameter LT    = 2,        // clog2(T)
    parameter RB    = 17 + LT,  // bits of R
    parameter PROB  = 0,        // 1: probabilities are rounded
    parameter KVH   = H,        // heads of values, divides H
    parameter CAUSAL = 0,       // 1: rows have groups of their own,
    parameter BAND  = 0,        // 1: and begin where they say
    parameter EBITS = 8,        // bits of a weight without PROB
    parameter DOWN  = 0,        // with PROB = 1: quotients are exact, of so many places (RB, EB are given)
    // derived, do not set: bits of a group number, of an address in a frame's values
    parameter GW    = 1,
    parameter AW    = 3,
    // bits of what a row's word says of its walk, of the word, of a weight
    parameter WALK  = (CAUSAL != 0 || BAND != 0 ? GW : 0) + (BAND != 0 ? AW : 0),
    parameter INB   = RB + 9 + 30*PROB + (DOWN != 0 ? 16 : 0) + WALK,
    parameter EB    = (PROB != 0) ? 18 : EBITS
) (
    input  wire                     clk,
    input  wire                     rst,
    input  wire [INB-1:0]           s_row_tdata,
    input  wire                     s_row_tvalid,
    output wire                     s_row_tready,
    input  wire                     v_full,
    input  wire [GW-1:0]            v_groups_1,
    input  wire                     v_single,       // v_groups_1 is 0
    output wire                     v_done,
    output wire [AW-1:0]            v_addr,
    input  wire [PE*SIMD*XBITS-1:0] v_data,
    input  wire [PE*EB-1:0]         ring_data,
    output wire                     read,           // v_data and ring_data: a step starts
    output wire                     pass_last,      // it is the last of a pass
    output wire                     row_last,       // and of the row
    output wire [GW-1:0]            groups_1,       // groups of the row - 1
    output wire [SIMD*YBITS-1:0]    m_axis_tdata,
    output wire                     m_axis_tvalid,
    input  wire                     m_axis_tready,
    output wire [2:0]               m_axis_tuser
);

localparam DS    = D / SIMD;
localparam LP    = (PE > 1) ? $clog2(PE) : 0;
localparam LN    = (DOWN != 0) ? 10 : (PROB != 0) ? 7 : 0;        // cycles of the division of weights
localparam MB    = (PROB != 0) ? 16 : RB, ROWB = MB + 9;       // bits of the multiplier of sums; of {sideband, SO, R or MO}
localparam WB    = (PROB != 0) ? 8 : EBITS;    // of what a value is multiplied with
localparam DOTB  = XBITS + WB + 1 + LP, AB = XBITS + WB + 1 + LT;
localparam HW    = (H > 1) ? $clog2(H) : 1;
localparam FW    = (DS > 1) ? $clog2(DS) : 1;
localparam SHARE = H / KVH;                    // heads of queries that read a head of values
// Beats between a pass's first step and the receiver: those of the pipeline (a beat per
// cycle if the row has one group), plus the queue's own.
localparam QUEUE = 16 + LP + LN;
localparam RW    = $clog2(QUEUE + 1);
// (Verilator wants every width spelled out: hence the way over 32 bits)
localparam [31:0]   QUEUE_32 = QUEUE;
localparam [31:0]   PASS_32  = DS - 1;
localparam [31:0]   HEAD_32  = H - 1;
localparam [31:0]   BEATS_32 = KVH * DS;
localparam [31:0]   BACK_32  = DS - 1;
localparam [RW-1:0] ROOM_ALL   = QUEUE_32[RW-1:0];
localparam [FW-1:0] PASS_LAST  = PASS_32[FW-1:0];
localparam [HW-1:0] HEAD_LAST  = HEAD_32[HW-1:0];
localparam [AW-1:0] GROUP_SKIP = BEATS_32[AW-1:0];
localparam [AW-1:0] PASSES_BACK = BACK_32[AW-1:0];
localparam [FW-1:0] F_ONE = 1;
localparam [GW-1:0] G_ONE = 1;
localparam [HW-1:0] H_ONE = 1;
localparam [AW-1:0] A_ONE = 1;

// ---- the walk ---------------------------------------------------------------------------
reg [GW-1:0] group_reg;
reg          group_first, later_last;    // it is group 0; if not: it is the last
reg [FW-1:0] pass_reg;
reg [HW-1:0] head_reg;
reg [AW-1:0] addr_reg, base_reg;            // base: the pass's channels of group 0
reg [RW-1:0] room_reg;

wire       user_last   = s_row_tdata[INB-WALK-2];
wire          single;
wire [AW-1:0] walk_base;
generate
    if (CAUSAL == 0 && BAND == 0) begin : g_whole
        assign groups_1 = v_groups_1;
        assign single   = v_single;
    end else begin : g_walk
        assign groups_1 = s_row_tdata[INB-WALK +: GW];
        assign single   = groups_1 == {GW{1'b0}};
        wire unused_groups = &{1'b0, v_groups_1, v_single};
    end
    if (BAND == 0) begin : g_from_start
        assign walk_base = {AW{1'b0}};
    end else begin : g_from
        assign walk_base = s_row_tdata[INB-1 -: AW];
    end
endgenerate
wire       group_last  = group_first ? single : later_last;
wire       head_last   = head_reg == HEAD_LAST;
wire       go = s_row_tvalid && v_full && (!group_first || room_reg != {RW{1'b0}});

assign read         = go;
assign pass_last    = group_last;
assign row_last     = group_last && pass_reg == PASS_LAST;
assign s_row_tready = go && row_last;
assign v_done       = s_row_tready && head_last && user_last;
assign v_addr       = addr_reg + walk_base;

wire          token_last = row_last && head_last;
// the next row's head of values: another one after SHARE rows
wire                                         share_last;
wire [(SHARE > 1 ? $clog2(SHARE) : 1) - 1:0] share_at;
mlo_attention_share #(.SHARE(SHARE)) u_share (.clk(clk), .rst(rst), .step(go && row_last), .at(share_at), .last(share_last));
wire [AW-1:0] same_base  = (row_last && !share_last) ? base_reg - PASSES_BACK : base_reg + A_ONE;
wire [AW-1:0] next_base  = token_last ? {AW{1'b0}} : same_base;
always @(posedge clk) begin
    if (go) begin
        group_reg   <= group_last ? {GW{1'b0}} : group_reg + G_ONE;
        group_first <= group_last;
        later_last  <= group_reg + G_ONE == groups_1;
        addr_reg    <= group_last ? next_base : addr_reg + GROUP_SKIP;
    end
    if (go && group_last) begin
        base_reg <= next_base;
        pass_reg <= row_last ? {FW{1'b0}} : pass_reg + F_ONE;
    end
    if (go && row_last)
        head_reg <= head_last ? {HW{1'b0}} : head_reg + H_ONE;
    if (rst) begin
        group_reg   <= {GW{1'b0}};
        group_first <= 1'b1;
        pass_reg    <= {FW{1'b0}};
        head_reg    <= {HW{1'b0}};
        addr_reg    <= {AW{1'b0}};
        base_reg    <= {AW{1'b0}};
    end
end

wire reserve = go && group_first;
wire pop     = m_axis_tvalid && m_axis_tready;
always @(posedge clk)
    if (rst)
        room_reg <= ROOM_ALL;
    else
        room_reg <= room_reg + {{RW-1{1'b0}}, pop} - {{RW-1{1'b0}}, reserve};

// ---- weights and values, the cycle after `read`, or LN cycles later, when weights are probabilities -------
reg                       read1;
wire                      go_w;
wire [PE*WB-1:0]          weights;
wire [PE*SIMD*XBITS-1:0]  values;
wire [ROWB-1:0]           row;
genvar p, s;
always @(posedge clk) read1 <= go && !rst;
generate
    if (PROB == 0) begin : g_sums
        assign go_w    = read1;
        assign weights = ring_data;
        assign values  = v_data;
        assign row     = s_row_tdata[ROWB-1:0];
    end else begin : g_prob
        reg  [RB-1:0] r1;
        reg  [13:0]   hp_sp1;                   // {HP, SP}
        always @(posedge clk) if (go) begin
            r1     <= DOWN != 0 ? s_row_tdata[RB-1:0] + {{RB-1{1'b0}}, 1'b1} : s_row_tdata[RB-1:0];
            hp_sp1 <= s_row_tdata[RB+22 +: 14];
        end
        assign row = {s_row_tdata[INB-WALK-1 -: 3], s_row_tdata[RB+16 +: 6], s_row_tdata[RB +: 16]};
        mlo_delay #(.WIDTH(PE*SIMD*XBITS), .CYCLES(LN)) u_values (.clk(clk), .rst(rst), .in_valid(read1), .in(v_data), .out_valid(go_w), .out(values));
        if (DOWN == 0) begin : g_rounded
            wire [7:0] hp7;
            wire go7; wire unused_go = &{1'b0, go7};
            mlo_delay #(.WIDTH(8), .CYCLES(LN - 1)) u_most (.clk(clk), .rst(rst), .in_valid(read1), .in(hp_sp1[13:6]), .out_valid(go7), .out(hp7));
            for (p = 0; p < PE; p = p + 1) begin : g_weight
                mlo_attention_weight #(.EB(EB), .RB(RB)) u_weight (
                    .clk(clk), .rst(rst), .in_valid(read1), .e(ring_data[p*EB +: EB]), .r(r1), .sp(hp_sp1[5:0]), .most(hp7), .w(weights[p*8 +: 8]));
            end
        end else begin : g_exact
            reg [15:0] mp1;
            always @(posedge clk) if (go) mp1 <= s_row_tdata[RB+36 +: 16];
            mlo_attention_quotient #(.PE(PE), .EB(EB), .RB(RB), .DOWN(DOWN)) u_weights (
                .clk(clk), .rst(rst), .in_valid(read1), .e(ring_data), .r(r1), .mp(mp1), .sp(hp_sp1[5:0]), .most(hp_sp1[13:6]), .w(weights));
        end
    end
endgenerate

// ---- the multipliers: 1 memories, 2 operands, 3 products, then the adder tree ------------
// (Built up lane by lane: a simulator takes very long over a wire that is assigned in parts.)
wire          go1 = go_w;
reg  [LP:0]   alive;                        // something is in: operands, products, the tree but its last level
wire          dot_go = go1 || alive != {1+LP{1'b0}};
wire [LP+1:0] alive_next = {alive, go1};
always @(posedge clk)
    alive <= rst ? {1+LP{1'b0}} : alive_next[LP:0];
generate
    for (p = 0; p < PE; p = p + 1) begin : g_weight
        wire [(p+1)*(WB+1)-1:0] all;        // unsigned WB bits = signed WB + 1 bits
        if (p == 0) begin : g_first
            assign all = {1'b0, weights[WB-1:0]};
        end else begin : g_next
            assign all = {1'b0, weights[p*WB +: WB], g_weight[p-1].all};
        end
    end
    for (s = 0; s < SIMD; s = s + 1) begin : g_dot
        wire [DOTB-1:0] dot;
        for (p = 0; p < PE; p = p + 1) begin : g_value
            wire [(p+1)*XBITS-1:0] all;     // channel s of all keys
            if (p == 0) begin : g_first
                assign all = values[s*XBITS +: XBITS];
            end else begin : g_next
                assign all = {values[(p*SIMD + s)*XBITS +: XBITS], g_value[p-1].all};
            end
        end
        mlo_dot #(.SIMD(PE), .XBITS(XBITS), .WBITS(WB + 1)) u_dot (
            .clk(clk), .en(dot_go),
            .x(g_value[PE-1].all), .w(g_weight[PE-1].all), .sum(dot)
        );
    end
endgenerate

wire          go_dot, first_dot, last_dot;
wire [ROWB-1:0] row_dot;
mlo_delay #(.WIDTH(ROWB + 2), .CYCLES(3 + LP + LN)) u_along (
    .clk(clk), .rst(rst), .in_valid(go), .in({group_first, group_last, row}),
    .out_valid(go_dot), .out({first_dot, last_dot, row_dot})
);

// ---- the sum over a pass's groups, then six cycles of requantization ---------------------
reg           sum_valid;
reg  [ROWB-1:0] row_sum;                    // {sideband, SO, R or MO}
wire [SIMD-1:0] y_valid;
wire [SIMD*YBITS-1:0] y;
always @(posedge clk) begin
    sum_valid <= go_dot && last_dot && !rst;
    row_sum   <= row_dot;
end
generate
    for (s = 0; s < SIMD; s = s + 1) begin : g_sum
        reg  [AB-1:0]   sum_reg;
        wire [DOTB-1:0] d = g_dot[s].dot;
        wire [AB-1:0]   addend = {{AB-DOTB+1{d[DOTB-1]}}, d[DOTB-2:0]};
        always @(posedge clk)
            if (go_dot)
                sum_reg <= (first_dot ? {AB{1'b0}} : sum_reg) + addend;
        mlo_requantize #(.ABITS(AB), .MBITS(MB + 1), .YBITS(YBITS)) u_requantize (
            .clk(clk), .rst(rst), .en(1'b1), .in_valid(sum_valid), .in_acc(sum_reg),
            .in_m({1'b0, row_sum[MB-1:0]}), .in_s(row_sum[MB +: 6]),
            .out_valid(y_valid[s]), .out_y(y[s*YBITS +: YBITS])
        );
    end
endgenerate
wire          out_valid, out_ready;
wire [2:0]    out_user;
wire [RW-1:0] out_level;
mlo_delay #(.WIDTH(3), .CYCLES(6)) u_user (
    .clk(clk), .rst(rst), .in_valid(sum_valid), .in(row_sum[MB+6 +: 3]),
    .out_valid(out_valid), .out(out_user)
);

mlo_fifo #(.WIDTH(SIMD*YBITS + 3), .DEPTH(QUEUE)) u_out (
    .clk(clk), .rst(rst),
    .s_tdata({out_user, y}), .s_tvalid(out_valid), .s_tready(out_ready),
    .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready),
    .level(out_level)
);

wire unused = &{1'b0, alive_next[LP+1], out_ready, out_level, y_valid, share_at};

`ifdef FORMAL
    // Assumed: a row and its frame stay until they are done.
    reg  f_past = 1'b0, f_hold, f_full, f_last;
    reg  [GW-1:0] f_groups_1, f_row_groups_1;
    always @* begin
        if (!f_past) assume (rst);
        assume (v_single == (v_groups_1 == 0));
        if (f_hold) assume (v_full && v_groups_1 == f_groups_1);
        if (f_full) assume (s_row_tvalid && user_last == f_last && (WALK == 0 || groups_1 == f_row_groups_1));
    end
    always @(posedge clk) begin
        f_past     <= 1'b1;
        f_hold     <= v_full && !v_done && !rst;
        f_groups_1 <= v_groups_1;
        f_full     <= s_row_tvalid && !s_row_tready && !rst;
        f_last     <= user_last;
        f_row_groups_1 <= groups_1;
    end

    generate
        if (SHARE > 1) begin : f_share
            always @* if (f_past) assert (share_at == head_reg % SHARE);
        end
    endgenerate

    // What has been reserved has room: free places, beats under way and queued beats add up.
    reg [10+LP+LN:0] f_pipe;                       // beats between their pass's last step and the queue
    integer       f_i;
    reg [RW-1:0]  f_count;
    reg           f_stuck;
    reg [SIMD*YBITS+2:0] f_beat;
    always @(posedge clk) begin
        f_pipe  <= rst ? 0 : {f_pipe, go && group_last};
        f_stuck <= m_axis_tvalid && !m_axis_tready && !rst;
        f_beat  <= {m_axis_tuser, m_axis_tdata};
    end
    always @* begin
        f_count = !group_first;
        for (f_i = 0; f_i < 10 + LP + LN; f_i = f_i + 1)
            f_count = f_count + f_pipe[f_i];
    end
    always @* if (f_past) begin
        assert (head_reg <= HEAD_LAST && pass_reg <= PASS_LAST);
        assert (group_first == (group_reg == 0));
        if (!group_first) assert (v_full && (WALK == 0 || s_row_tvalid) && group_reg <= groups_1 && later_last == (group_reg == groups_1));
        assert (base_reg == head_reg / SHARE * DS + pass_reg && addr_reg == base_reg + group_reg * KVH * DS);
        assert (out_valid == f_pipe[9+LP+LN]);
        assert (room_reg <= QUEUE && out_level <= QUEUE);
        assert ({2'b0, room_reg} + f_count + out_level == QUEUE);
        if (out_level == 0) assert (!m_axis_tvalid);
        if (out_valid) assert (out_ready);
        if (f_stuck) assert (m_axis_tvalid && {m_axis_tuser, m_axis_tdata} == f_beat);
    end
`endif
endmodule
`default_nettype wire
