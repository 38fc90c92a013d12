// SPDX-License-Identifier: MIT
// mlo_places: learned positions beside mlo_rows: an id and the position of its token become two rows of one table, and those their sum
//
// Contract    ids at s_ids, a beat each, with the position of the token; tlast ends a frame. m_ids has two indices for each of them: the
//             id's, then IDS + the position, with tlast where the id had it. An id from IDS on is no id: 0 takes its place, and `stray`
//             is set, which stays until reset; 0 takes the place of a position from CONTEXT on, too (its job is refused elsewhere).
//             Rows of BEATS beats come back at s_axis, LANES channels of 16 bits each, an id's and a position's in turn. Their sum goes
//             on, channel by channel, clipped to BITS bits and sign-extended; tlast is that of the position's row.
//             COUNT = 1: positions are counted here, from 0 in each frame. TYPES > 1: bits 31:24 of an id are its token's type, whose
//             rows of positions lie behind those of the type before; a type from TYPES on is none, like an id from IDS on.
// Throughput  an index per cycle; a beat per cycle in, of which every second row goes on
// Latency     1 cycle from an id to its index; 1 cycle from a position's beat to the sum
// Stall       any side, any time; while m_axis stalls an id's row is taken and a position's is not
// Timing      outputs are registers
// Legal       BEATS >= 1, LANES >= 1, 2 <= BITS <= 16, 2 <= IDS, 1 <= CONTEXT <= 65535, 1 <= TYPES <= 16, IDS + TYPES * CONTEXT <= 2^24
`default_nettype none
module mlo_places #(
    parameter BEATS   = 4,          // of a row
    parameter LANES   = 4,          // of a beat
    parameter BITS    = 16,         // of a sum
    parameter IDS     = 4,          // rows of ids
    parameter CONTEXT = 4,          // rows of positions, behind them
    parameter COUNT   = 0,          // 1: positions are counted; s_ids_place is not read
    parameter TYPES   = 1           // of tokens
) (
    input  wire                clk,
    input  wire                rst,
    output reg                 stray,

    input  wire [31:0]         s_ids_tdata,
    input  wire [15:0]         s_ids_place,
    input  wire                s_ids_tvalid,
    output wire                s_ids_tready,
    input  wire                s_ids_tlast,
    output reg  [31:0]         m_ids_tdata,
    output reg                 m_ids_tvalid,
    input  wire                m_ids_tready,
    output reg                 m_ids_tlast,

    input  wire [16*LANES-1:0] s_axis_tdata,
    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire                s_axis_tlast,
    output reg  [16*LANES-1:0] m_axis_tdata,
    output reg                 m_axis_tvalid,
    input  wire                m_axis_tready,
    output reg                 m_axis_tlast
);
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam [BW-1:0] FINAL     = BEATS[BW-1:0] - 1'b1;
    localparam [31:0]   IDS_V     = IDS;
    localparam [15:0]   CONTEXT_V = CONTEXT[15:0];
    localparam [31:0]   STRIDE    = CONTEXT;
    localparam [31:0]   TYPES_V   = TYPES;

    generate
        if (BEATS < 1)                      mlo_error_BEATS_must_be_positive u_beats ();
        if (LANES < 1)                      mlo_error_LANES_must_be_positive u_lanes ();
        if (BITS < 2 || BITS > 16)          mlo_error_BITS_must_be_2_to_16 u_bits ();
        if (CONTEXT < 1 || CONTEXT > 65535) mlo_error_CONTEXT_must_be_1_to_65535 u_context ();
        if (TYPES < 1 || TYPES > 16)        mlo_error_TYPES_must_be_1_to_16 u_types ();
        if (COUNT != 0 && COUNT != 1)       mlo_error_COUNT_must_be_0_or_1 u_count ();
        if (IDS < 2 || IDS > 16777216 - TYPES * CONTEXT) mlo_error_IDS_and_CONTEXT_must_be_at_most_2_to_the_24 u_ids ();
    endgenerate

    // ---- indices: the id's, then its position's, with which the id is taken
    reg         second;                 // the position's is next
    wire        room   = !m_ids_tvalid || m_ids_tready;
    wire        loads  = s_ids_tvalid && room;
    wire [7:0]  kind   = (TYPES > 1) ? s_ids_tdata[31:24] : 8'd0;
    wire [31:0] id     = (TYPES > 1) ? {8'd0, s_ids_tdata[23:0]} : s_ids_tdata;
    wire        known  = id < IDS_V && {24'd0, kind} < TYPES_V;
    reg  [15:0] counted;                // of the id that comes next, in its frame
    wire [15:0] stands = (COUNT != 0) ? counted : s_ids_place;
    wire [15:0] place  = (stands < CONTEXT_V) ? stands : 16'd0;
    wire [31:0] begins = IDS_V + (known ? {24'd0, kind} : 32'd0) * STRIDE;
    assign s_ids_tready = second && room;

    always @(posedge clk) begin
        if (m_ids_tready) m_ids_tvalid <= 1'b0;
        if (loads) begin
            m_ids_tvalid <= 1'b1;
            m_ids_tdata  <= second ? begins + {16'd0, place} : known ? id : 32'd0;
            m_ids_tlast  <= second && s_ids_tlast;
            second       <= !second;
            if (!known) stray <= 1'b1;
        end
        if (loads && second) counted <= s_ids_tlast ? 16'd0 : counted + 16'd1;
        if (rst) begin
            counted      <= 16'd0;
            second       <= 1'b0;
            stray        <= 1'b0;
            m_ids_tvalid <= 1'b0;
        end
    end

    // ---- rows: an id's waits, a position's is added to it
    reg  [16*LANES-1:0] row [0:BEATS-1];
    reg  [BW-1:0]       at;             // of the beat that comes next
    reg                 adds;           // it is of a position's row
    wire [16*LANES-1:0] there = row[at];
    wire [16*LANES-1:0] sum;
    wire                take = s_axis_tvalid && s_axis_tready;
    assign s_axis_tready = !adds || !m_axis_tvalid || m_axis_tready;

    genvar i;
    generate
        for (i = 0; i < LANES; i = i + 1) begin : g_lane
            wire [16:0] wide = {there[16*i+15], there[16*i +: 16]} + {s_axis_tdata[16*i+15], s_axis_tdata[16*i +: 16]};
            wire        fits = wide[16:BITS-1] == {18-BITS{wide[16]}};
            assign sum[16*i +: 16] = fits ? wide[15:0] : {{17-BITS{wide[16]}}, {BITS-1{!wide[16]}}};
        end
    endgenerate

    always @(posedge clk) begin
        if (take && !adds) row[at] <= s_axis_tdata;
        if (take) at <= (at == FINAL) ? {BW{1'b0}} : at + 1'b1;
        if (take && at == FINAL) adds <= !adds;
        if (m_axis_tready) m_axis_tvalid <= 1'b0;
        if (take && adds) begin
            m_axis_tvalid <= 1'b1;
            m_axis_tdata  <= sum;
            m_axis_tlast  <= s_axis_tlast;
        end
        if (rst) begin
            at            <= {BW{1'b0}};
            adds          <= 1'b0;
            m_axis_tvalid <= 1'b0;
        end
    end

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [4:0] f_ids, f_index, f_rows, f_out;
    mlo_sim_check_axis #(.WIDTH(49)) f_check_ids (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_ids), .breaches(),
        .tdata({s_ids_tlast, s_ids_place, s_ids_tdata}), .tvalid(s_ids_tvalid), .tready(s_ids_tready), .tlast(1'b0));
    mlo_sim_check_axis #(.WIDTH(33)) f_check_index (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_index), .breaches(),
        .tdata({m_ids_tlast, m_ids_tdata}), .tvalid(m_ids_tvalid), .tready(m_ids_tready), .tlast(1'b0));
    mlo_sim_check_axis #(.WIDTH(16*LANES + 1)) f_check_rows (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_rows), .breaches(),
        .tdata({s_axis_tlast, s_axis_tdata}), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(1'b0));
    mlo_sim_check_axis #(.WIDTH(16*LANES + 1)) f_check_out (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_out), .breaches(),
        .tdata({m_axis_tlast, m_axis_tdata}), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(1'b0));
    always @* if (f_past_valid) begin
        assume (f_ids == 5'd0 && f_rows == 5'd0);
        assert (f_index == 5'd0 && f_out == 5'd0);
        if (!rst) assert (at <= FINAL);
    end
    // Indices: both are of one id, which is taken with the second one.
    reg [31:0] f_first;
    reg [15:0] f_taken = 16'd0;         // ids of the frame
    always @(posedge clk) if (rst) f_taken <= 16'd0; else if (s_ids_tvalid && s_ids_tready) f_taken <= s_ids_tlast ? 16'd0 : f_taken + 16'd1;
    wire [15:0] f_stands = (COUNT != 0) ? f_taken : s_ids_place;
    wire [31:0] f_id   = (TYPES > 1) ? s_ids_tdata & 32'h00ff_ffff : s_ids_tdata;
    wire [31:0] f_kind = (TYPES > 1) ? s_ids_tdata >> 24 : 32'd0;
    wire        f_known = f_id < IDS_V && f_kind < TYPES_V;
    wire [31:0] f_want = (f_known ? f_kind : 32'd0) * STRIDE + {16'd0, (f_stands < CONTEXT_V) ? f_stands : 16'd0};
    always @* if (f_past_valid && !rst) assert (counted == f_taken);
    always @(posedge clk) if (loads && !second) f_first <= s_ids_tdata;
    always @* if (f_past_valid && !rst && second) assert (s_ids_tvalid && f_first == s_ids_tdata);
    always @(posedge clk) if (f_past_valid && !$past(rst) && !rst && $past(loads)) begin
        assert (m_ids_tvalid && second == !$past(second) && (stray || $past(f_known)));
        if ($past(second)) assert (m_ids_tdata >= IDS_V && m_ids_tdata - IDS_V == $past(f_want));
        if (!$past(second)) assert (m_ids_tdata == ($past(f_known) ? $past(f_id) : 32'd0));
        assert (m_ids_tlast == ($past(second) && $past(s_ids_tlast)));
    end
    always @(posedge clk) if (f_past_valid && !$past(rst) && !rst && $past(stray)) assert (stray);
    // Sums: of a lane (f_lane) of any beat (f_pick) of the id's row that came last, which is kept when it comes by.
    (* anyconst *) wire [BW-1:0] f_pick;
    (* anyconst *) wire [7:0]    f_lane;
    reg         [15:0] f_kept;
    always @* assume (f_pick <= FINAL && f_lane < LANES);
    wire        [15:0] f_in  = s_axis_tdata >> 16 * f_lane;
    wire        [15:0] f_has = m_axis_tdata >> 16 * f_lane;
    wire        [15:0] f_row = row[f_pick] >> 16 * f_lane;
    wire signed [31:0] f_sum = $signed({{16{f_kept[15]}}, f_kept}) + $signed({{16{f_in[15]}}, f_in});
    localparam signed [31:0] MOST = (32'sd1 <<< (BITS - 1)) - 32'sd1;
    wire signed [31:0] f_clipped = (f_sum > MOST) ? MOST : (f_sum < -MOST - 32'sd1) ? -MOST - 32'sd1 : f_sum;
    always @(posedge clk) if (take && !adds && at == f_pick) f_kept <= f_in;
    always @* if (f_past_valid && !rst && (adds || at > f_pick)) assert (f_row == f_kept);
    always @(posedge clk) if (f_past_valid && !$past(rst) && !rst && $past(take && adds)) begin
        assert (m_axis_tvalid && m_axis_tlast == $past(s_axis_tlast));
        if ($past(at == f_pick)) assert (f_has == $past(f_clipped[15:0]));
    end
    always @(posedge clk) if (f_past_valid && !$past(rst) && !rst && $past(take && !adds)) assert (!m_axis_tvalid || $past(m_axis_tvalid));
    always @* cover (f_past_valid && !rst && m_axis_tvalid && m_axis_tlast && m_axis_tready && adds);
    always @* cover (f_past_valid && !rst && m_ids_tvalid && m_ids_tlast && stray);
`endif
endmodule
`default_nettype wire
