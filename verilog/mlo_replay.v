// SPDX-License-Identifier: MIT
// mlo_replay: keeps a frame that comes once, and sends it once for every iteration: an encoder's output, for a decoder's layers
//
// Contract   s_axis: frames of 1..T tokens of BEATS beats; tuser {key, last, -}, the same on all beats of a token; `last` ends
//            a frame. Each frame leaves on m_axis `iterations` times (0 acts as 1), a pass each, whole and in its order, with its
//            {key, last}. m_axis_tuser[0], first: 1 on the first token of each pass; where there is one iteration, on the
//            first token after reset and no other (as mlo_loop marks tokens).
// Throughput a beat per cycle in a pass; no gap between the passes of a frame
// Latency    a beat taken in cycle t is offered from cycle t + 2 in the first pass
// Stall      s_axis_tready is low from a frame's last beat until the last beat of its last pass has been read
// Memory     T*BEATS words of WIDTH + 2 bits, one write port, one registered read port: it is the output register
// Timing     s_axis_tready depends on registers only
// Legal      WIDTH, BEATS, T >= 1; iterations stands still from reset to the last frame out
`default_nettype none

module mlo_replay #(
    parameter WIDTH     = 8,        // bits of a beat
    parameter BEATS     = 4,        // beats of a token
    parameter T         = 4         // tokens of a frame, at most
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [15:0]      iterations,
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire [2:0]       s_axis_tuser,
    output wire [WIDTH-1:0] m_axis_tdata,
    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire [2:0]       m_axis_tuser,
    output wire [2:0]       stat        // [0] a beat leaves, else [2] blocked: one waits to leave, else [1] starved
);
    localparam DEPTH = T * BEATS;
    localparam AW = (DEPTH > 1) ? $clog2(DEPTH) : 1;
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    localparam [BW-1:0] B_LAST = BEATS[BW-1:0] - 1'b1;

    generate
        if (WIDTH < 1) mlo_error_WIDTH_must_be_at_least_1 u_width ();
        if (BEATS < 1) mlo_error_BEATS_must_be_at_least_1 u_beats ();
        if (T < 1)     mlo_error_T_must_be_at_least_1 u_t ();
    endgenerate

    // Iterations stand still, so what is derived from them may be a cycle late.
    reg        once;                        // one pass
    reg [15:0] passes_1;                    // passes less one
    always @(posedge clk) begin
        once     <= iterations <= 16'd1;
        passes_1 <= iterations <= 16'd1 ? 16'd0 : iterations - 16'd1;
    end

    // ---- in: until a frame is whole; then w_addr is its last beat's
    reg           whole;
    reg  [AW-1:0] w_addr;
    reg  [BW-1:0] w_beat;
    wire          done;                     // the frame's last beat of its last pass is read
    assign s_axis_tready = !whole;
    wire take    = s_axis_tvalid && s_axis_tready;
    wire w_end   = w_beat == B_LAST;
    wire w_close = take && w_end && s_axis_tuser[1];

    always @(posedge clk) begin
        if (take) begin
            w_beat <= w_end ? {BW{1'b0}} : w_beat + 1'b1;
            if (!w_close) w_addr <= w_addr + 1'b1;
        end
        if (w_close) whole <= 1'b1;
        if (done) begin
            whole  <= 1'b0;
            w_addr <= {AW{1'b0}};
        end
        if (rst) begin
            whole  <= 1'b0;
            w_addr <= {AW{1'b0}};
            w_beat <= {BW{1'b0}};
        end
    end

    // ---- out: what is stored of a frame that is not whole is in front of w_addr
    reg           out_valid, r_first, marked;       // the next beat is of a pass's first token; some token was marked
    reg  [AW-1:0] r_addr;
    reg  [BW-1:0] r_beat;
    reg  [15:0]   r_pass;
    wire there = whole || r_addr != w_addr;
    wire read  = there && (!out_valid || m_axis_tready);
    wire r_end = r_beat == B_LAST;
    wire r_out = read && whole && r_addr == w_addr;
    assign done = r_out && r_pass == passes_1;

    always @(posedge clk) begin
        if (read) begin
            r_addr <= r_out ? {AW{1'b0}} : r_addr + 1'b1;
            r_beat <= r_end ? {BW{1'b0}} : r_beat + 1'b1;
            if (r_end) begin
                r_first <= r_out;
                marked  <= 1'b1;
            end
        end
        if (r_out) r_pass <= done ? 16'd0 : r_pass + 16'd1;
        if (!out_valid || m_axis_tready) out_valid <= there;
        if (rst) begin
            out_valid <= 1'b0;
            r_first   <= 1'b1;
            marked    <= 1'b0;
            r_addr    <= {AW{1'b0}};
            r_beat    <= {BW{1'b0}};
            r_pass    <= 16'd0;
        end
    end

    // ---- memory
    (* no_rw_check *)               // never read where it is written in the same cycle
    reg  [WIDTH+1:0] mem [0:DEPTH-1];
    reg  [WIDTH+1:0] out_word;
    reg              out_first;
    always @(posedge clk) begin
        if (take) mem[w_addr] <= {s_axis_tuser[2:1], s_axis_tdata};
        if (read) begin
            out_word  <= mem[r_addr];
            out_first <= r_first && !(once && marked);
        end
    end
    assign m_axis_tdata  = out_word[WIDTH-1:0];
    assign m_axis_tvalid = out_valid;
    assign m_axis_tuser  = {out_word[WIDTH+1:WIDTH], out_first};
    assign stat = {out_valid && !m_axis_tready, !out_valid, out_valid && m_axis_tready};
    wire unused = &{1'b0, s_axis_tuser[0]};

`ifdef FORMAL
    // Assumed: the reset; iterations that stand still; a sideband that is the same on all beats of a token; frames that fit.
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);
    (* anyconst *) wire [1:0] f_n;
    always @(*) assume (iterations == {14'd0, f_n});

    // The model: beats of the frame that are stored, the next one to be read, passes that are over.
    reg  [AW:0] f_in, f_out;
    reg  [BW-1:0] f_in_beat;
    reg  [1:0]  f_pass, f_user;
    reg         f_whole, f_some;
    wire f_close = take && f_in_beat == BEATS - 1 && s_axis_tuser[1];
    wire f_there = f_out != f_in;
    wire f_read  = f_there && (!m_axis_tvalid || m_axis_tready);
    wire f_over  = f_read && f_whole && f_out + 1'b1 == f_in;
    wire f_done  = f_over && f_pass + 1'b1 >= f_n;
    always @(posedge clk) begin
        if (take) begin
            f_in      <= f_in + 1'b1;
            f_in_beat <= f_in_beat == BEATS - 1 ? 0 : f_in_beat + 1'b1;
            if (f_in_beat == 0) f_user <= s_axis_tuser[2:1];
        end
        if (f_close) f_whole <= 1'b1;
        if (f_read) f_out <= f_over ? 0 : f_out + 1'b1;
        if (f_read) f_some <= f_some || f_out % BEATS == BEATS - 1;
        if (f_over) f_pass <= f_done ? 0 : f_pass + 1'b1;
        if (f_done) {f_in, f_whole} <= 0;
        if (rst) {f_in, f_in_beat, f_out, f_pass, f_whole, f_some} <= 0;
    end
    always @(*) if (f_past) begin
        if (f_in_beat != 0) assume (s_axis_tuser[2:1] == f_user);
        assume (f_in < DEPTH || f_whole);
        if (f_in + BEATS >= DEPTH && f_in_beat == 0) assume (s_axis_tuser[1]);
    end

    // Any beat of a frame: what is read there is what was stored there.
    (* anyconst *) wire [AW-1:0] f_at;
    always @(*) assume (f_at < DEPTH);
    reg               f_hit, f_out_first;
    reg [WIDTH+1:0]   f_word, f_out_word;
    always @(posedge clk) begin
        if (take && f_in == f_at) f_word <= {s_axis_tuser[2:1], s_axis_tdata};
        if (f_read) begin
            f_hit       <= f_out == f_at;
            f_out_word  <= f_word;
            f_out_first <= f_out < BEATS && !(f_n < 2 && f_some);
        end
        if (rst) f_hit <= 1'b0;
    end
    always @(*) if (f_past) begin
        assert (s_axis_tready == !f_whole);
        if (m_axis_tvalid) assert (m_axis_tuser[0] == f_out_first);
        if (m_axis_tvalid && f_hit) assert ({m_axis_tuser[2:1], m_axis_tdata} == f_out_word);
        if (take && read) assert (w_addr != r_addr);            // no_rw_check
    end
    always @(posedge clk) if (f_past) begin
        if ($past(rst)) assert (!m_axis_tvalid);
        else begin
            if ($past(m_axis_tvalid && !m_axis_tready)) assert (m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tuser));
            // no gap: what is there is offered, and nothing else
            if ($past(!m_axis_tvalid || m_axis_tready)) assert (m_axis_tvalid == $past(f_there));
        end
    end

    // For the induction: the registers are the model's, and where the word lies.
    always @(*) if (f_past) begin
        assert (f_in <= DEPTH && f_in_beat < BEATS && f_in % BEATS == f_in_beat && f_whole == whole && w_beat == f_in_beat);
        assert (f_out < DEPTH && f_out <= f_in && r_addr == f_out && r_beat == f_out % BEATS && r_pass == f_pass && marked == f_some);
        assert (r_first == (f_out < BEATS));
        assert (whole ? f_in != 0 && f_in_beat == 0 && f_out < f_in && w_addr + 1'b1 == f_in && f_pass <= (f_n < 2 ? 0 : f_n - 1)
                      : f_pass == 0 && w_addr == f_in);
        assert (once == (f_n < 2) && passes_1 == (f_n < 2 ? 0 : f_n - 1));
        if (f_in > f_at) assert (mem[f_at] == f_word);
        if (f_hit && m_axis_tvalid) assert (out_word == f_out_word);
    end
    // not vacuous
    reg f_again = 1'b0;                             // a frame is done
    always @(posedge clk) f_again <= !rst && (f_again || (f_done && f_n > 1));
    always @(*) if (f_past) cover (f_again && f_done && f_in > BEATS);
`endif
endmodule

`default_nettype wire
