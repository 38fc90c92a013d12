// SPDX-License-Identifier: MIT
// mlo_job: at the door of a core with a cache: lets in frames, each for the job {slot, start, tokens} that was pushed for it
//
// Contract    jobs wait in a queue, frames at s_axis; the first frame belongs to the first job, and so on. A job is good if
//             slot < SLOTS, 1 <= tokens, start <= the length of its slot, and start + tokens <= CONTEXT. Of a good one's frame
//             the first `tokens` tokens go on to m_axis, the last of them with tlast, and what is behind them is swallowed;
//             one that ends sooner ends there. Either sets `mismatch`. The slot's length is then start + the tokens that went
//             on. Of any other job the whole frame is swallowed, `refused` is set, and no length changes. Both flags stay.
//             FRAMES frames are in the core at most, no two of one slot, and they leave it (out_last) in their order: job_begin, a pulse,
//             comes when that allows it, and before the first beat is offered; job_start = start and job_bank = slot * DEEPEST
//             from it on to the next.
//             MASK = 1: s1_axis has a beat for each token, of which bit 0 counts; it goes on, or is swallowed, with its token.
//             After reset no job waits, none is inside, and all lengths are GIVEN: so many tokens' keys and values a host has written.
// Throughput  one beat per cycle within a frame, swallowed or not
// Latency     a beat taken in cycle t is offered in cycle t + 1 (MASK = 1: the final one of a token waits for its mask beat, which
//             is offered with it; a mask beat that comes in cycle t counts from cycle t + 1).
//             A good job that is pushed in cycle t into an idle module begins in cycle t + 5 (t + 4 if DEPTH < 3); one that
//             waits, 4 cycles after the final beat of the frame before it was taken, and 2 after the out_last that it waits for if that is later. With
//             job_begin the first beat is taken. The frame of one that is refused is taken a cycle sooner, wherever the frame
//             before it is.
// Stall       up to 2 beats are taken in while m_axis (or m1_axis) stalls; without a job none is (of s1_axis up to 2)
// Legal       1 <= CONTEXT <= 65535, 1 <= SLOTS <= 255, SLOTS * DEEPEST <= 65535, BEATS >= 1, 1 <= DEPTH, FRAMES <= 255, MASK 0 or 1, 0 <= GIVEN < CONTEXT.
//             A frame has whole tokens (tlast at other beats than a token's final one is not looked at), s1_axis_tlast is not looked at.
//             push only where room is not 0.
`default_nettype none
module mlo_job #(
    parameter CONTEXT = 16,         // positions of a slot
    parameter SLOTS   = 1,          // sequences
    parameter DEEPEST = 1,          // banks of a slot
    parameter BEATS   = 1,          // of a token
    parameter WIDTH   = 8,          // of tdata
    parameter DEPTH   = 4,          // jobs that wait
    parameter FRAMES  = 1,          // that may be in the core
    parameter MASK    = 0,          // 1: a second stream has one mask beat a token
    parameter GIVEN   = 0           // of a slot, in front of its first job
) (
    input  wire             clk,
    input  wire             rst,

    input  wire             push,
    input  wire [7:0]       push_slot,
    input  wire [23:0]      push_start,
    input  wire [15:0]      push_tokens,
    output wire [7:0]       room,               // jobs that may be pushed; 0 during reset

    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire             s_axis_tlast,
    input  wire [7:0]       s1_axis_tdata,
    input  wire             s1_axis_tvalid,
    output wire             s1_axis_tready,
    input  wire             s1_axis_tlast,
    output wire [WIDTH-1:0] m_axis_tdata,
    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire             m_axis_tlast,
    output wire [7:0]       m1_axis_tdata,
    output wire             m1_axis_tvalid,
    input  wire             m1_axis_tready,
    output wire             m1_axis_tlast,

    input  wire             out_last,           // the final beat of a frame left the core
    output reg              job_begin,
    output reg  [15:0]      job_start,
    output reg  [15:0]      job_bank,
    output reg              refused,
    output reg              mismatch
);
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam SW = (SLOTS > 1) ? $clog2(SLOTS) : 1;
    localparam LW = $clog2(DEPTH + 1);
    localparam [BW-1:0] FINAL     = BEATS[BW-1:0] - 1'b1;
    localparam [31:0]   SLOTS_V   = SLOTS;
    localparam [31:0]   DEPTH_V   = DEPTH;
    localparam [24:0]   CONTEXT_V = CONTEXT[24:0];
    localparam [15:0]   DEEPEST_V = DEEPEST[15:0];
    localparam [15:0]   GIVEN_V   = GIVEN[15:0];

    generate
        if (CONTEXT < 1 || CONTEXT > 65535)     mlo_error_CONTEXT_must_be_1_to_65535 u_context ();
        if (SLOTS < 1 || SLOTS > 255)           mlo_error_SLOTS_must_be_1_to_255 u_slots ();
        if (DEEPEST < 1 || SLOTS * DEEPEST > 65535) mlo_error_SLOTS_times_DEEPEST_must_be_1_to_65535 u_deepest ();
        if (BEATS < 1)                          mlo_error_BEATS_must_be_at_least_1 u_beats ();
        if (DEPTH < 1 || DEPTH > 255)           mlo_error_DEPTH_must_be_1_to_255 u_depth ();
        if (FRAMES < 1 || FRAMES > 255)         mlo_error_FRAMES_must_be_1_to_255 u_frames ();
        if (MASK != 0 && MASK != 1)             mlo_error_MASK_must_be_0_or_1 u_mask ();
        if (GIVEN < 0 || GIVEN >= CONTEXT)      mlo_error_GIVEN_must_be_below_CONTEXT u_given ();
    endgenerate

    // ---- the queue
    wire [LW-1:0] waiting;
    wire [31:0]   free = DEPTH_V - {{32-LW{1'b0}}, waiting};
    wire          head_valid, unused_ready;
    wire [7:0]    slot;
    wire [23:0]   start;
    wire [15:0]   tokens;
    wire          pop;
    mlo_fifo #(.WIDTH(48), .DEPTH(DEPTH)) u_queue (
        .clk(clk), .rst(rst),
        .s_tdata({push_slot, push_start, push_tokens}), .s_tvalid(push), .s_tready(unused_ready),
        .m_tdata({slot, start, tokens}), .m_tvalid(head_valid), .m_tready(pop), .level(waiting));
    assign room = rst ? 8'd0 : free[7:0];

    // ---- a job's way: it is measured, judged, begun or refused; then its frame passes, and the rest of it is swallowed
    localparam [2:0] IDLE = 3'd0, JUDGE = 3'd1, FENCE = 3'd2, PASS = 3'd3, SWALLOW = 3'd4;
    reg  [2:0]    state;
    reg  [24:0]   stop;                         // start + tokens
    reg  [15:0]   length;                       // of the slot
    reg  [15:0]   at, left;                     // the next token's position; tokens that may still go on
    reg  [BW-1:0] beat;                         // of the token at s_axis
    wire [SW-1:0] which = slot[SW-1:0];
    wire          good  = {24'd0, slot} < SLOTS_V && tokens != 16'd0 && start <= {8'd0, length} && stop <= CONTEXT_V;
    wire          held;                         // it has to wait for those that are in the core
    wire          begins = state == FENCE && !held;
    wire          passes = state == PASS;
    wire          out_ready, key_valid, key_ready;
    wire          final_beat = beat == FINAL;
    wire          go   = (passes && out_ready && (key_ready || !final_beat) || state == SWALLOW) && (key_valid || !final_beat);
    wire          take = s_axis_tvalid && go;
    wire          token = take && final_beat;   // one is taken whole
    wire          full  = left == 16'd1;        // it is the last that may go on
    wire          ends  = token && s_axis_tlast;
    assign s_axis_tready = go;                  // of registers only
    assign pop = begins || (state == JUDGE && !good);

    always @(posedge clk) begin
        case (state)
            IDLE:    if (head_valid) state <= JUDGE;
            JUDGE:   state <= good ? FENCE : SWALLOW;
            FENCE:   if (begins) state <= PASS;
            PASS:    if (ends) state <= IDLE;
                     else if (token && full) state <= SWALLOW;
            default: if (ends) state <= IDLE;
        endcase
        if (rst) state <= IDLE;
    end

    always @(posedge clk) begin
        job_begin <= begins;
        if (take) beat <= final_beat ? {BW{1'b0}} : beat + 1'b1;
        if (state == JUDGE && !good) refused <= 1'b1;
        if (token && passes && s_axis_tlast != full) mismatch <= 1'b1;
        if (rst) begin
            job_begin <= 1'b0;
            beat      <= {BW{1'b0}};
            refused   <= 1'b0;
            mismatch  <= 1'b0;
        end
    end

    always @(posedge clk) begin
        stop <= {1'b0, start} + {9'd0, tokens};
        if (begins) begin
            job_start <= start[15:0];
            job_bank  <= bank;
            at        <= start[15:0];
            left      <= tokens;
        end else if (token && passes) begin
            at   <= at + 16'd1;
            left <= left - 16'd1;
        end
    end
    wire [15:0] bank = {{16-SW{1'b0}}, which} * DEEPEST_V;

    // ---- frames in the core: how many, and whose, the oldest one first
    localparam CW = $clog2(FRAMES + 1);
    localparam [31:0] FRAMES_V = FRAMES;
    reg  [CW-1:0]        count;
    reg  [FRAMES*SW-1:0] slots;
    wire [CW-1:0]        stay = count - {{CW-1{1'b0}}, out_last};
    wire [FRAMES-1:0]    same;
    genvar i;
    generate
        for (i = 0; i < FRAMES; i = i + 1) begin : one
            localparam [31:0] I = i;
            wire [SW-1:0] next;
            if (i + 1 < FRAMES) begin : moves
                assign next = slots[(i+1)*SW +: SW];
            end else begin : last
                assign next = which;
            end
            assign same[i] = I[CW-1:0] < count && slots[i*SW +: SW] == which;
            always @(posedge clk)
                if (begins && stay == I[CW-1:0]) slots[i*SW +: SW] <= which;
                else if (out_last)               slots[i*SW +: SW] <= next;
        end
    endgenerate
    assign held = count == FRAMES_V[CW-1:0] || |same;
    always @(posedge clk)
        if (rst)                     count <= {CW{1'b0}};
        else if (begins || out_last) count <= begins ? stay + {{CW-1{1'b0}}, 1'b1} : stay;

    // ---- lengths: a memory, and who of it was ever written; a length is read a cycle before it is judged
    reg  [SLOTS-1:0] known;
    reg  [15:0]      lengths [0:SLOTS-1];
    reg  [SW-1:0]    whose;                     // the job's that is inside
    always @(posedge clk) begin
        length <= known[which] ? lengths[which] : GIVEN_V;
        if (begins) whose <= which;
        if (token && passes) begin
            lengths[whose] <= at + 16'd1;
            known[whose]   <= 1'b1;
        end
        if (rst) known <= {SLOTS{1'b0}};
    end

    // ---- what goes on
    mlo_skid #(.WIDTH(WIDTH + 1)) u_out (
        .clk(clk), .rst(rst),
        .s_tdata({final_beat && (s_axis_tlast || full), s_axis_tdata}), .s_tvalid(take && passes), .s_tready(out_ready),
        .m_tdata({m_axis_tlast, m_axis_tdata}), .m_tvalid(m_axis_tvalid), .m_tready(m_axis_tready));

    generate
        if (MASK != 0) begin : mask
            wire key, key_out, last_out;
            mlo_skid #(.WIDTH(1)) u_in (
                .clk(clk), .rst(rst),
                .s_tdata(s1_axis_tdata[0]), .s_tvalid(s1_axis_tvalid), .s_tready(s1_axis_tready),
                .m_tdata(key), .m_tvalid(key_valid), .m_tready(token));
            mlo_skid #(.WIDTH(2)) u_key (
                .clk(clk), .rst(rst),
                .s_tdata({s_axis_tlast || full, key}), .s_tvalid(token && passes), .s_tready(key_ready),
                .m_tdata({last_out, key_out}), .m_tvalid(m1_axis_tvalid), .m_tready(m1_axis_tready));
            assign m1_axis_tdata = {7'd0, key_out};
            assign m1_axis_tlast = last_out;
            wire unused_mask = &{1'b0, s1_axis_tdata[7:1], s1_axis_tlast};
        end else begin : no_mask
            assign {key_valid, key_ready} = 2'b11;
            assign s1_axis_tready = 1'b0;
            assign {m1_axis_tlast, m1_axis_tvalid, m1_axis_tdata} = 10'd0;
            wire unused_mask = &{1'b0, s1_axis_tdata, s1_axis_tvalid, s1_axis_tlast, m1_axis_tready};
        end
    endgenerate

    wire unused = &{1'b0, unused_ready, free[31:8], slot};

`ifdef FORMAL
    // The judge of the simulations on all sides. By induction, and with the values: contract/mlo_job.v.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [4:0] f_in, f_mask, f_out, f_key;
    mlo_sim_check_axis #(.WIDTH(WIDTH), .BEATS(BEATS)) f_check_in (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_in), .breaches(),
        .tdata(s_axis_tdata), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(s_axis_tlast));
    mlo_sim_check_axis #(.WIDTH(8)) f_check_mask (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_mask), .breaches(),
        .tdata(s1_axis_tdata), .tvalid(s1_axis_tvalid), .tready(s1_axis_tready), .tlast(s1_axis_tlast));
    mlo_sim_check_axis #(.WIDTH(WIDTH), .BEATS(BEATS)) f_check_out (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_out), .breaches(),
        .tdata(m_axis_tdata), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(m_axis_tlast));
    mlo_sim_check_axis #(.WIDTH(8)) f_check_key (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_key), .breaches(),
        .tdata(m1_axis_tdata), .tvalid(m1_axis_tvalid), .tready(m1_axis_tready), .tlast(m1_axis_tlast));
    // A frame leaves the core once, when it is in it whole; frames in the core, those that are whole; of any slot, whether it is
    // there, and how many are before it.
    (* anyconst *) wire [SW-1:0] f_slot;
    reg  [CW-1:0] f_inside, f_whole, f_before;
    reg           f_there;
    wire          f_put = m_axis_tvalid && m_axis_tready && m_axis_tlast;
    wire          f_mine = job_begin && job_bank == f_slot * DEEPEST;
    always @(posedge clk) begin
        f_inside <= f_inside + job_begin - out_last;
        f_whole  <= f_whole + f_put - out_last;
        if (f_mine) {f_there, f_before} <= {1'b1, f_inside - out_last};
        else if (out_last) {f_there, f_before} <= {f_there && f_before != 0, f_before - 1'b1};
        if (rst) {f_inside, f_whole, f_there} <= 0;
    end
    always @* if (f_past_valid) begin
        assume (f_in == 5'd0 && f_mask == 5'd0);
        assume (!push || room != 8'd0);
        assume (!out_last || f_whole != 0);
        assert (f_out == 5'd0 && f_key == 5'd0);
        if (!rst) assert (!job_begin || f_inside != FRAMES);
        if (!rst) assert (!f_mine || !f_there);
        if (!rst && m_axis_tvalid) assert (f_inside > f_whole);
        if (rst) assert (room == 8'd0);
    end
    always @* cover (f_past_valid && !rst && job_begin && refused);
`endif
endmodule
`default_nettype wire
