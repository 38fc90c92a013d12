// SPDX-License-Identifier: MIT
// mlo_width: changes the number of lanes per beat of a token stream
//
// Contract    the channels keep their order: lane 0 of a beat comes before lane 1.
//             A token must be a multiple of L = lcm(IN, OUT) lanes, so that beats
//             never mix tokens; the sideband goes with it
// Throughput  one beat per cycle on the narrower side: UP = L/IN input beats become
//             DOWN = L/OUT output beats in max(UP, DOWN) cycles
// Latency     UP cycles from the first input beat of a group of UP to the first
//             output beat of its group of DOWN
// Stall       m_axis_tready low: two output beats wait in the skid, then the
//             group being sent waits, and the next UP - 1 input beats are taken
// Timing      s_axis_tready depends on registers only; outputs are registers
// Legal       BITS, IN, OUT >= 1
`default_nettype none
module mlo_width #(
    // bits of a lane, >= 1
    parameter BITS = 8,
    // lanes per input beat, >= 1
    parameter IN = 2,
    // lanes per output beat, >= 1; neither needs to be a multiple of the other
    parameter OUT = 4
) (
    input  wire                clk,
    input  wire                rst,
    input  wire [IN*BITS-1:0]  s_axis_tdata,
    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire [2:0]          s_axis_tuser,
    output wire [OUT*BITS-1:0] m_axis_tdata,
    output wire                m_axis_tvalid,
    input  wire                m_axis_tready,
    output wire [2:0]          m_axis_tuser
);

// greatest common divisor, by Euclid
function integer gcd;
    input integer a, b;
    integer x, y, t;
    begin
        x = a;
        y = b;
        while (y > 0) begin
            t = x % y;
            x = y;
            y = t;
        end
        gcd = x;
    end
endfunction

localparam UP   = OUT / gcd(IN, OUT);           // L/IN
localparam DOWN = IN / gcd(IN, OUT);            // L/OUT
localparam L    = IN * UP;

generate
    if (BITS < 1) begin : g_error_bits
        mlo_error_BITS_must_be_at_least_1 u_error();
    end
    if (IN < 1) begin : g_error_in
        mlo_error_IN_must_be_at_least_1 u_error();
    end
    if (OUT < 1) begin : g_error_out
        mlo_error_OUT_must_be_at_least_1 u_error();
    end
endgenerate

// s_axis -> gather UP beats -> group (L lanes) -> send DOWN beats -> skid -> m_axis
wire [L*BITS-1:0]   group;
wire                group_valid, group_ready;
wire [OUT*BITS-1:0] beat;
wire [2:0]          beat_user;
wire                beat_valid, beat_ready;

// Gather. All beats but the last of a group are stored; the last one passes
// straight on beside them.
generate
if (UP == 1) begin : g_no_gather
    assign group         = s_axis_tdata;
    assign group_valid   = s_axis_tvalid;
    assign s_axis_tready = group_ready;
end
if (UP > 1) begin : g_gather
    localparam CW = $clog2(UP);
    localparam [31:0]   LAST_32 = UP - 1;
    localparam [CW-1:0] LAST    = LAST_32[CW-1:0];
    localparam [CW-1:0] ONE     = 1;

    reg  [(UP-1)*IN*BITS-1:0] store_reg;
    reg  [CW-1:0]             count_reg;        // beats stored: 0 .. UP-1
    wire                      last = count_reg == LAST;
    wire                      take = s_axis_tvalid && s_axis_tready;

    assign group         = {s_axis_tdata, store_reg};
    assign group_valid   = s_axis_tvalid && last;
    assign s_axis_tready = !last || group_ready;

    always @(posedge clk) begin
        if (take)
            count_reg <= last ? {CW{1'b0}} : count_reg + ONE;
        if (rst)
            count_reg <= {CW{1'b0}};
    end

    genvar i;
    for (i = 0; i < UP - 1; i = i + 1) begin : g_store
        localparam [31:0]   THIS_32 = i;
        localparam [CW-1:0] THIS    = THIS_32[CW-1:0];
        always @(posedge clk)
            if (take && count_reg == THIS)
                store_reg[i*IN*BITS +: IN*BITS] <= s_axis_tdata;
    end
end

// Send. The first beat of a group passes straight on; the others are stored and
// shifted out while the next group gathers.
if (DOWN == 1) begin : g_no_send
    assign beat        = group;
    assign beat_user   = s_axis_tuser;
    assign beat_valid  = group_valid;
    assign group_ready = beat_ready;
end
if (DOWN > 1) begin : g_send
    localparam CW = $clog2(DOWN);
    localparam [31:0]   REST_32 = DOWN - 1;
    localparam [CW-1:0] REST    = REST_32[CW-1:0];
    localparam [CW-1:0] ONE     = 1;

    reg  [(DOWN-1)*OUT*BITS-1:0] store_reg;
    reg  [2:0]                   user_reg;
    reg  [CW-1:0]                count_reg;     // beats stored: 0 .. DOWN-1
    wire                         empty = count_reg == {CW{1'b0}};

    assign beat        = empty ? group[OUT*BITS-1:0] : store_reg[OUT*BITS-1:0];
    assign beat_user   = empty ? s_axis_tuser : user_reg;
    assign beat_valid  = !empty || group_valid;
    assign group_ready = empty && beat_ready;

    always @(posedge clk) begin
        if (beat_valid && beat_ready)
            count_reg <= empty ? REST : count_reg - ONE;
        if (rst)
            count_reg <= {CW{1'b0}};
    end

    always @(posedge clk) begin
        if (group_ready) begin
            store_reg <= group[L*BITS-1:OUT*BITS];
            user_reg  <= s_axis_tuser;
        end else if (beat_ready) begin
            store_reg <= store_reg >> (OUT * BITS);
        end
    end
end
endgenerate

mlo_skid #(.WIDTH(3 + OUT*BITS)) u_skid (
    .clk(clk), .rst(rst),
    .s_tdata({beat_user, beat}),                 .s_tvalid(beat_valid),    .s_tready(beat_ready),
    .m_tdata({m_axis_tuser, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready)
);

`ifdef FORMAL
    // No assumption but the reset. What goes into the skid is proved here; that the
    // skid passes it on is among its own properties, proved along with these.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);

    // One lane f_lane (any) of a group of L is followed from s_axis to the skid.
    (* anyconst *) wire [7:0] f_lane;
    always @* assume (f_lane < L);
    wire [7:0] f_in_beat  = f_lane / IN;        // the input beat that brings it
    wire [7:0] f_out_beat = f_lane / OUT;       // the output beat that takes it

    wire f_take = s_axis_tvalid && s_axis_tready;
    wire f_push = beat_valid && beat_ready;

    // What came in: f_in counts beats of the group; f_got is the lane's value.
    // What went out: f_out counts beats of the group; f_due is the lane's value.
    reg  [7:0]      f_in, f_out;
    reg  [BITS-1:0] f_got, f_due;
    reg  [2:0]      f_due_user;
    wire [BITS-1:0] f_here = s_axis_tdata >> ((f_lane % IN) * BITS);
    wire            f_full = f_take && f_in == UP - 1;
    wire [BITS-1:0] f_now  = f_in_beat == UP - 1 ? f_here : f_got;
    always @(posedge clk) begin
        if (f_take) f_in  <= f_full ? 8'd0 : f_in + 8'd1;
        if (f_push) f_out <= f_out == DOWN - 1 ? 8'd0 : f_out + 8'd1;
        if (f_take && f_in == f_in_beat) f_got <= f_here;
        if (f_full) begin
            f_due      <= f_now;
            f_due_user <= s_axis_tuser;
        end
        if (rst) begin
            f_in  <= 8'd0;
            f_out <= 8'd0;
        end
    end
    wire [BITS-1:0] f_sent = beat >> ((f_lane % OUT) * BITS);
    always @* if (f_past_valid) begin
        // a group starts to leave exactly when its last beat comes: none is lost or doubled
        assert (f_full == (f_push && f_out == 8'd0));
        if (f_push && f_out == f_out_beat)
            assert (f_sent == (f_out == 8'd0 ? f_now : f_due));
        if (f_push)
            assert (beat_user == (f_out == 8'd0 ? s_axis_tuser : f_due_user));
        // throughput: waits for nothing but the end of its own group and the skid
        if (f_in != UP - 1 || (f_out == 8'd0 && beat_ready)) assert (s_axis_tready);
        if (f_out != 8'd0) assert (beat_valid);
    end

    // For the induction: where the lanes lie.
    generate if (UP > 1) begin : f_gather
        wire [BITS-1:0] f_stored = g_gather.store_reg >> (f_lane * BITS);
        always @* if (f_past_valid) begin
            assert (g_gather.count_reg == f_in && f_in < UP);
            if (f_in > f_in_beat) assert (f_stored == f_got);
        end
    end else begin : f_no_gather
        always @* if (f_past_valid) assert (f_in == 8'd0);
    end
    if (DOWN > 1) begin : f_send
        wire [BITS-1:0] f_stored = g_send.store_reg >> ((f_lane - f_out * OUT) * BITS);
        always @* if (f_past_valid) begin
            assert (g_send.count_reg == (f_out == 8'd0 ? 8'd0 : DOWN - f_out) && f_out < DOWN);
            if (f_out != 8'd0) assert (g_send.user_reg == f_due_user);
            if (f_out != 8'd0 && f_out <= f_out_beat) assert (f_stored == f_due);
        end
    end else begin : f_no_send
        always @* if (f_past_valid) assert (f_out == 8'd0);
    end endgenerate

    always @(posedge clk) if (f_past_valid) begin
        if ($past(rst))
            assert (!m_axis_tvalid);
        else if ($past(m_axis_tvalid && !m_axis_tready))
            assert (m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tuser));
    end

    // Not vacuous: two whole groups leave, the input having had to wait.
    reg [1:0] f_groups = 2'd0;
    reg       f_waited = 1'b0;
    always @(posedge clk) begin
        if (f_push && f_out == DOWN - 1 && f_groups != 2'd2) f_groups <= f_groups + 2'd1;
        if (s_axis_tvalid && !s_axis_tready) f_waited <= 1'b1;
        if (rst) {f_groups, f_waited} <= 3'd0;
    end
    always @* cover (f_past_valid && f_groups == 2'd2 && f_waited);
`endif
endmodule
`default_nettype wire
