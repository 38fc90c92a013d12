// SPDX-License-Identifier: MIT
// mlo_tokens: a text goes on inside the core: what is said behind a job is the next job's token, until a stop id, a count, the context's end
//
// Contract    jobs {slot, start, tokens, more} wait in a queue and go on to mlo_job in their order, each when the frame of ids before it
//             has come in; ids of its frame (up to tlast) go on to the rows. What follows a frame ({logit, id}, in the order of the jobs)
//             goes on to m_axis. Beside each id goes the position of its token: that of the job's first one, and one more for each id
//             behind it, modulo 2^16.
//             more = 0: with tlast, and the next job does not wait for it.
//             more > 0: a text. It begins when all that is owed has been said. Behind each id that is said the job {slot, where the
//             sequence ends, 1} and that id go the same way, up to `more` times, but not behind the id `stop`, nor where the slot is
//             full (CONTEXT). The last one said has tlast: a text is one transfer. Until then the host's ids and jobs wait.
//             A frame that is longer than its job begins no text.
//             Once mlo_job has refused a job (sticky), nobody is sure what is owed: texts end there, and `more` is taken as 0.
// Throughput  a job per frame; an id per cycle; a result every second cycle
// Latency     a job that is pushed goes on 2 cycles later, if nothing is in front of it; ids 0; a result 1; from a result to the job and the
//             id behind it 1 cycle
// Stall       any side, any time
// Legal       push only where room is not 0; results only of jobs; 1 <= CONTEXT <= 65535; 1 <= DEPTH <= 255; WORD >= 32
`default_nettype none
module mlo_tokens #(
    parameter CONTEXT = 16,         // positions of a slot
    parameter DEPTH   = 4,          // jobs that wait
    parameter WORD    = 64          // bits of what follows a frame: {.., logit, id}
) (
    input  wire        clk,
    input  wire        rst,
    input  wire [31:0] stop,        // the id that ends a text; ids that are none end none

    input  wire        push,
    input  wire [7:0]  push_slot,
    input  wire [23:0] push_start,
    input  wire [15:0] push_tokens,
    input  wire [15:0] push_more,
    output wire [7:0]  room,        // jobs that may be pushed; 0 during reset

    output wire        job_push,
    output wire [7:0]  job_slot,
    output wire [23:0] job_start,
    output wire [15:0] job_tokens,
    input  wire [7:0]  job_room,
    input  wire        refused,     // by mlo_job

    input  wire [31:0] s_ids_tdata,
    input  wire        s_ids_tvalid,
    output wire        s_ids_tready,
    input  wire        s_ids_tlast,
    output wire [31:0] m_ids_tdata,
    output wire        m_ids_tvalid,
    input  wire        m_ids_tready,
    output wire        m_ids_tlast,
    output wire [15:0] m_ids_place, // the position of the token

    input  wire [WORD-1:0] s_axis_tdata,
    input  wire        s_axis_tvalid,
    output wire        s_axis_tready,
    output reg  [WORD-1:0] m_axis_tdata,
    output reg         m_axis_tvalid,
    input  wire        m_axis_tready,
    output reg         m_axis_tlast
);
    localparam LW = $clog2(DEPTH + 1);
    localparam [31:0] DEPTH_V   = DEPTH;
    localparam [24:0] CONTEXT_V = CONTEXT[24:0];
    localparam [1:0]  IDLE = 2'd0, IDS = 2'd1, WAIT = 2'd2, FEED = 2'd3;

    generate
        if (CONTEXT < 1 || CONTEXT > 65535) mlo_error_CONTEXT_must_be_1_to_65535 u_context ();
        if (WORD < 32)                      mlo_error_WORD_must_hold_an_id u_word ();
        if (DEPTH < 1 || DEPTH > 255)       mlo_error_DEPTH_must_be_1_to_255 u_depth ();
    endgenerate

    // ---- the host's jobs
    wire [LW-1:0] waiting;
    wire [31:0]   free = DEPTH_V - {{32-LW{1'b0}}, waiting};
    wire          head_valid, unused_ready, begins;
    wire [7:0]    head_slot;
    wire [23:0]   head_start;
    wire [15:0]   head_tokens, head_more;
    mlo_fifo #(.WIDTH(64), .DEPTH(DEPTH)) u_queue (
        .clk(clk), .rst(rst), .level(waiting),
        .s_tdata({push_slot, push_start, push_tokens, push_more}), .s_tvalid(push), .s_tready(unused_ready),
        .m_tdata({head_slot, head_start, head_tokens, head_more}), .m_tvalid(head_valid), .m_tready(begins));
    assign room = rst ? 8'd0 : free[7:0];
    wire unused = &{1'b0, free[31:8], unused_ready};

    // ---- a job's way: pushed; its ids; of a text: what is said, and the next job
    reg  [1:0]  state;
    reg  [7:0]  slot;
    reg  [24:0] next;               // position behind the job
    reg  [15:0] place;              // of its id that comes next
    reg  [15:0] left;               // ids that may go on
    reg         text;               // it is one
    reg  [7:0]  owed;               // results of jobs that were pushed
    reg  [31:0] id;                 // that goes on
    reg         given, ordered;     // it went; its job went
    wire        text_next = head_more != 16'd0 && !refused;
    assign      begins = state == IDLE && head_valid && job_room != 8'd0 && owed != 8'hff && (owed == 8'd0 || !text_next);
    wire        feeds  = state == FEED && !ordered && job_room != 8'd0;
    assign      job_push   = begins || feeds;
    assign      job_slot   = feeds ? slot : head_slot;
    assign      job_start  = feeds ? next[23:0] : head_start;
    assign      job_tokens = feeds ? 16'd1 : head_tokens;

    wire        fresh = state == FEED && !given;
    assign      m_ids_tvalid = fresh || (state == IDS && s_ids_tvalid);
    assign      m_ids_tdata  = fresh ? id : s_ids_tdata;
    assign      m_ids_tlast  = fresh || s_ids_tlast;
    assign      m_ids_place  = fresh ? next[15:0] : place;
    assign      s_ids_tready = state == IDS && m_ids_tready;
    wire        ends  = s_ids_tvalid && s_ids_tready && s_ids_tlast;
    wire        gives = fresh && m_ids_tready;

    assign      s_axis_tready = !m_axis_tvalid;
    wire        said  = s_axis_tvalid && s_axis_tready;
    wire        early = said && owed == 8'd1;       // the frame is longer than its job: what is behind it is said already
    wire        goes  = state == WAIT && left != 16'd0 && s_axis_tdata[31:0] != stop && next < CONTEXT_V && !refused;

    always @(posedge clk) begin
        owed <= owed + {7'd0, job_push} - {7'd0, said};
        if (begins) begin
            slot <= head_slot;
            next <= {1'b0, head_start} + {9'd0, head_tokens};
            left <= head_more;
            text <= text_next;
            place <= head_start[15:0];
        end
        if (s_ids_tvalid && s_ids_tready) place <= place + 16'd1;
        if (gives) given <= 1'b1;
        if (feeds) ordered <= 1'b1;
        case (state)
            IDLE: if (begins) state <= IDS;
            IDS: begin
                      if (ends) state <= (text && !early) ? WAIT : IDLE;
                      if (early) text <= 1'b0;
                  end
            WAIT: if (refused) state <= IDLE;
                  else if (said) begin
                      state   <= goes ? FEED : IDLE;
                      id      <= s_axis_tdata[31:0];
                      given   <= 1'b0;
                      ordered <= 1'b0;
                  end
            FEED: if ((gives || given) && (feeds || ordered)) begin
                      state <= WAIT;
                      next  <= next + 25'd1;
                      left  <= left - 16'd1;
                  end
        endcase
        if (m_axis_tready) m_axis_tvalid <= 1'b0;
        if (said) begin
            m_axis_tvalid <= 1'b1;
            m_axis_tdata  <= s_axis_tdata;
            m_axis_tlast  <= !goes;
        end
        if (rst) begin
            state         <= IDLE;
            owed          <= 8'd0;
            m_axis_tvalid <= 1'b0;
        end
    end

`ifdef FORMAL
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [4:0] f_ids, f_rows, f_head, f_out;
    mlo_sim_check_axis #(.WIDTH(32)) f_check_ids (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_ids), .breaches(),
        .tdata(s_ids_tdata), .tvalid(s_ids_tvalid), .tready(s_ids_tready), .tlast(s_ids_tlast));
    mlo_sim_check_axis #(.WIDTH(49)) f_check_rows (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_rows), .breaches(),
        .tdata({m_ids_place, m_ids_tlast, m_ids_tdata}), .tvalid(m_ids_tvalid), .tready(m_ids_tready), .tlast(1'b0));
    mlo_sim_check_axis #(.WIDTH(WORD)) f_check_head (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_head), .breaches(),
        .tdata(s_axis_tdata), .tvalid(s_axis_tvalid), .tready(s_axis_tready), .tlast(1'b0));
    mlo_sim_check_axis #(.WIDTH(WORD + 1)) f_check_out (.clk(clk), .rst(rst), .cycle(32'd0), .broken(f_out), .breaches(),
        .tdata({m_axis_tlast, m_axis_tdata}), .tvalid(m_axis_tvalid), .tready(m_axis_tready), .tlast(1'b0));
    reg f_was_refused = 1'b0;
    always @(posedge clk) f_was_refused <= !rst && refused;
    always @* if (f_past_valid) begin
        assume (f_ids == 5'd0 && f_head == 5'd0);
        assert (f_rows == 5'd0 && f_out == 5'd0);
        assume (!s_axis_tvalid || (owed != 8'd0 && state != FEED));     // results of jobs only, and behind their frames
        assume (!f_was_refused || refused || rst);              // sticky
        assume (!push || room != 8'd0);
        if (job_push) assert (job_room != 8'd0);
    end

    // What a text is: of the job that began it the slot and end, ids that went on, what was said last.
    reg  [7:0]  f_slot;
    reg  [24:0] f_end;                                          // where its sequence ends
    reg  [15:0] f_more, f_went, f_start, f_ids_in;              // ids of the frame that came
    reg  [31:0] f_said;
    reg         f_on;                                           // one is under way
    reg  [1:0]  f_pushed;                                       // jobs, results, modulo 4
    always @(posedge clk) begin
        if (begins) begin
            f_slot <= head_slot;
            f_end  <= {1'b0, head_start} + {9'd0, head_tokens};
            f_more <= head_more;
            f_start  <= head_start[15:0];
            f_ids_in <= 16'd0;
            f_went <= 16'd0;
            f_on   <= head_more != 16'd0 && !refused;
        end
        if (s_ids_tvalid && s_ids_tready) f_ids_in <= f_ids_in + 16'd1;
        if (said) f_said <= s_axis_tdata[31:0];
        if (feeds) begin
            f_went <= f_went + 16'd1;
            f_end  <= f_end + 25'd1;
        end
        if (state == IDS && early) f_on <= 1'b0;
        if (rst) f_on <= 1'b0;
    end
    wire f_fed = state == FEED && ordered;
    always @* if (f_past_valid && !rst) begin
        if (state != IDLE) begin
            assert (text == f_on && slot == f_slot);
            assert (next + {24'd0, f_fed} == f_end);
            assert ({1'b0, left} + {1'b0, f_went} == {1'b0, f_more} + {16'd0, f_fed});
        end
        if (state == WAIT || state == FEED) assert (f_on);
        if (state == FEED) assert (left != 16'd0 && next < CONTEXT_V && id == f_said && f_said != f_stop);
        // nothing but the text's own result is owed in it
        if ((state == WAIT) && !refused) assert (owed == 8'd1);
        if ((state == FEED) && !refused) assert (owed == {7'd0, ordered});
        if (state == IDS && text) assert (owed == 8'd1);
        // a job that goes on is one token, of the text's slot, where its sequence ends, within the context; so many at most
        if (feeds) assert (job_slot == f_slot && {1'b0, job_start} == f_end && f_end < CONTEXT_V && job_tokens == 16'd1 && f_went < f_more);
        if (state == IDS) assert (m_ids_place == f_start + f_ids_in);
        if (fresh) assert ({9'd0, m_ids_place} + {24'd0, f_fed} == f_end);
        if (fresh) assert (m_ids_tvalid && m_ids_tlast && m_ids_tdata == f_said && !s_ids_tready);
    end
    reg [31:0] f_stop;                                          // it stands still
    always @(posedge clk) f_stop <= stop;
    always @* if (f_past_valid) assume (stop == f_stop || !f_past_valid);
    // what is said last ends the transfer, and nothing else does in a text
    always @(posedge clk) if (f_past_valid && !$past(rst) && !rst && $past(said)) begin
        assert (m_axis_tvalid && m_axis_tdata == $past(s_axis_tdata));
        assert (m_axis_tlast == (state != FEED));
    end
    always @* cover (f_past_valid && !rst && state == FEED && f_went == 16'd1);
    always @* cover (f_past_valid && !rst && m_axis_tvalid && m_axis_tlast && f_went == 16'd1 && m_axis_tready);
`endif
endmodule
`default_nettype wire
