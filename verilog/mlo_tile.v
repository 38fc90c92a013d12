// SPDX-License-Identifier: MIT
// mlo_tile: sends a tile of tokens several times, once for each row block of a matrix, while the next tile is stored
//
// Contract   s_axis: tokens of BEATS beats with their sideband {key, last, first}. ends: a word a frame, in their order: 1: it is
//            the last one of its iteration's group (mlo_loop says it). A tile is the next TILE tokens, or fewer: the last token of
//            such a frame ends it; so one with `first` begins one. Frames of a group share tiles: all of it passes at once where
//            TILE tokens are enough. Each tile leaves on m_axis BLOCKS times, a pass each, whole tokens in their order.
//            m_axis_tuser, constant on a token's beats:
//              [0] it is the first token of its pass (so a matrix unit takes a pass for an iteration)
//              [2:1] pass 0: {the token's own key, it ends the tile}; pass 1: its own {last, first}; then 0. mlo_untile puts it together.
//            One request a tile, as its first beat is taken: tile_valid, tile_next: its first token has `first`.
//            over: a tile was stored whole, a cycle ago; over_group: and its group with it (mlo_ahead).
// Throughput a beat in and a beat out per cycle; no gap between tokens, passes and tiles that are there
// Latency    a token whose last beat is taken in cycle t is offered from cycle t + 2 (pass 0, all before it have left);
//            pass 1 begins with the tile's last token gone. A request is offered the cycle after the beat.
// Stall      s_axis_tready is low while two tiles are stored and not done, and in front of a tile while two requests wait. A token
//            with `last` is stored whole when its frame's word is there: until then the next one waits.
// Memory     exactly 2*TILE*BEATS words, one write port, one registered read port: it is the output register.
//            Beside it 3 bits a token.
// Timing     s_axis_tready depends on registers only
// Legal      WIDTH, BEATS, TILE >= 1, BLOCKS >= 2
//
// Two halves: one passes while the other is stored. A token passes as soon as it is stored whole: pass 0 runs right behind
// the storing of its own half, and the later passes begin when that is complete, since the last token ends pass 0.
`default_nettype none

module mlo_tile #(
    parameter WIDTH  = 8,           // bits of a beat
    parameter BEATS  = 4,           // beats of a token
    parameter TILE   = 4,           // tokens of a tile, at most
    parameter BLOCKS = 2            // passes of a tile
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire [2:0]       s_axis_tuser,
    output wire [WIDTH-1:0] m_axis_tdata,
    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire [2:0]       m_axis_tuser,
    // of each frame: the group ends with it
    input  wire             ends_tdata,
    input  wire             ends_tvalid,
    output wire             ends_tready,
    // requests: parameters of a tile, please
    output wire             tile_valid,
    output wire             tile_next,      // of the next iteration; else of the same as the tile before
    input  wire             tile_ready,
    output reg              over,
    output reg              over_group
);
    localparam DEPTH = TILE * BEATS;
    localparam AW = (DEPTH > 1)  ? $clog2(DEPTH)  : 1;
    localparam BW = (BEATS > 1)  ? $clog2(BEATS)  : 1;
    localparam TW = (TILE > 1)   ? $clog2(TILE)   : 1;
    localparam PW = (BLOCKS > 1) ? $clog2(BLOCKS) : 1;
    localparam MA = $clog2(2 * DEPTH);
    localparam UA = $clog2(2 * TILE);
    localparam [BW-1:0] B_LAST = BEATS[BW-1:0] - 1'b1;
    localparam [TW-1:0] T_LAST = TILE[TW-1:0] - 1'b1;
    localparam [PW-1:0] P_LAST = BLOCKS[PW-1:0] - 1'b1, P_ONE = 1;

    generate
        if (WIDTH < 1)  mlo_error_WIDTH_must_be_at_least_1 u_width ();
        if (BEATS < 1)  mlo_error_BEATS_must_be_at_least_1 u_beats ();
        if (TILE < 1)   mlo_error_TILE_must_be_at_least_1 u_tile ();
        if (BLOCKS < 2) mlo_error_BLOCKS_must_be_at_least_2 u_blocks ();
    endgenerate

    reg  [1:0]    count;                            // tiles stored whole and not done: 0..2
    reg  [TW-1:0] last_0, last_1;                   // last token of the tile in each half

    // ---- in ---------------------------------------------------------------------------------------------------------
    reg           w_half, w_begun;                  // the half that is stored; the tile has begun
    reg  [AW-1:0] w_addr;                           // w_token*BEATS + w_beat
    reg  [BW-1:0] w_beat;
    reg  [TW-1:0] w_token;                          // tokens stored whole
    reg           w_waits;                          // all beats of a frame's last token are there, its word is not
    wire          ask_ready;
    assign s_axis_tready = !count[1] && (w_begun || ask_ready) && !w_waits;
    wire take    = s_axis_tvalid && s_axis_tready;
    wire w_whole = take && w_beat == B_LAST;
    wire w_last  = w_waits || (w_whole && s_axis_tuser[1]);
    wire w_end   = w_last ? ends_tvalid : w_whole;
    wire w_close = w_end && (w_token == T_LAST || (w_last && ends_tdata));
    assign ends_tready = w_last;

    mlo_skid #(.WIDTH(1)) u_ask (
        .clk(clk), .rst(rst), .s_tdata(s_axis_tuser[0]), .s_tvalid(take && !w_begun), .s_tready(ask_ready),
        .m_tdata(tile_next), .m_tvalid(tile_valid), .m_tready(tile_ready));

    always @(posedge clk) begin
        w_waits    <= w_last && !ends_tvalid;
        over       <= w_close;
        over_group <= w_last && ends_tdata;
        if (take) begin
            w_begun <= 1'b1;
            w_addr  <= w_addr + 1'b1;
            w_beat  <= w_whole ? {BW{1'b0}} : w_beat + 1'b1;
        end
        if (w_end)   w_token <= w_close ? {TW{1'b0}} : w_token + 1'b1;
        if (w_close) begin
            w_begun <= 1'b0;
            w_addr  <= {AW{1'b0}};
            w_half  <= !w_half;
        end
        if (rst) begin
            over    <= 1'b0;
            w_waits <= 1'b0;
            w_begun <= 1'b0;
            w_addr  <= {AW{1'b0}};
            w_beat  <= {BW{1'b0}};
            w_token <= {TW{1'b0}};
            w_half  <= 1'b0;
        end
        if (w_close && !w_half) last_0 <= w_token;
        if (w_close && w_half)  last_1 <= w_token;
    end

    // ---- out --------------------------------------------------------------------------------------------------------
    reg           r_half, out_valid;
    reg  [AW-1:0] r_addr;                           // r_token*BEATS + r_beat
    reg  [BW-1:0] r_beat;
    reg  [TW-1:0] r_token;
    reg  [PW-1:0] r_pass;
    // no tile is whole: then the half that passes is the one that is stored, in pass 0, and what it has not is not the last token
    wire whole = count != 2'd0;
    wire there = whole || r_token != w_token;
    wire read  = there && (!out_valid || m_axis_tready);
    wire r_end = read && r_beat == B_LAST;
    wire r_final = whole && r_token == (r_half ? last_1 : last_0);             // the tile's last token
    wire r_out = r_end && r_final;                  // the pass is over
    wire done  = r_out && r_pass == P_LAST;

    always @(posedge clk) begin
        if (read) begin
            r_addr <= r_out ? {AW{1'b0}} : r_addr + 1'b1;
            r_beat <= r_end ? {BW{1'b0}} : r_beat + 1'b1;
        end
        if (r_end) r_token <= r_out ? {TW{1'b0}} : r_token + 1'b1;
        if (r_out) r_pass  <= done ? {PW{1'b0}} : r_pass + 1'b1;
        if (done)  r_half  <= !r_half;
        if (w_close != done) count <= done ? count - 2'd1 : count + 2'd1;
        if (!out_valid || m_axis_tready) out_valid <= there;
        if (rst) begin
            r_addr    <= {AW{1'b0}};
            r_beat    <= {BW{1'b0}};
            r_token   <= {TW{1'b0}};
            r_pass    <= {PW{1'b0}};
            r_half    <= 1'b0;
            count     <= 2'd0;
            out_valid <= 1'b0;
        end
    end

    // ---- memory -----------------------------------------------------------------------------------------------------
    // the half is the lowest address bit: no adder, and exactly 2*DEPTH words whatever DEPTH is
    (* no_rw_check *)               // never read where it is written in the same cycle
    reg  [WIDTH-1:0] mem  [0:2*DEPTH-1];
    (* no_rw_check *)
    reg  [2:0]       side [0:2*TILE-1];             // sideband of the tokens
    reg  [WIDTH-1:0] out_data;
    reg  [2:0]       out_side;
    reg              out_start, out_final, out_pass_0, out_pass_1;
    wire [AW:0] w_word = {w_addr, w_half},  r_word = {r_addr, r_half};
    wire [TW:0] w_user = {w_token, w_half}, r_user = {r_token, r_half};
    wire        unused = &{1'b0, w_word, r_word, w_user, r_user};
    always @(posedge clk) begin
        if (take) begin
            mem[w_word[MA-1:0]]  <= s_axis_tdata;
            side[w_user[UA-1:0]] <= s_axis_tuser;
        end
        if (read) begin
            out_data   <= mem[r_word[MA-1:0]];
            out_side   <= side[r_user[UA-1:0]];
            out_start  <= r_token == {TW{1'b0}};
            out_final  <= r_final;
            out_pass_0 <= r_pass == {PW{1'b0}};
            out_pass_1 <= r_pass == P_ONE;
        end
    end
    assign m_axis_tdata  = out_data;
    assign m_axis_tvalid = out_valid;
    assign m_axis_tuser  = {out_pass_0 ? {out_side[2], out_final} : out_pass_1 ? out_side[1:0] : 2'b00, out_start};

`ifdef FORMAL
    // (What requests say lies in mlo_skid: the contract proves it.)
    // Assumed: the reset; a sideband that is the same on all beats of a token, as every stream here has it.
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);

    // The model: where the next beat in and the next one to be read are, in tokens and beats; the tiles stored whole, oldest
    // first, of which one is read; the requests that wait.
    reg  [BW-1:0] f_i_beat, f_o_beat;
    reg  [TW-1:0] f_i_token, f_o_token, f_last0, f_last1;
    reg  [PW-1:0] f_o_pass;
    reg           f_i_odd, f_o_odd;                 // tiles are numbered, modulo 2
    reg  [1:0]    f_tiles, f_asks;
    reg           f_i_waits;                        // the token is there whole, its frame's word is not
    wire f_i_whole = take && f_i_beat == BEATS - 1;
    wire f_i_last  = f_i_waits || (f_i_whole && s_axis_tuser[1]);
    wire f_i_end   = f_i_last ? ends_tvalid : f_i_whole;
    wire f_i_close = f_i_end && (f_i_token == TILE - 1 || (f_i_last && ends_tdata));
    wire f_i_begin = take && f_i_beat == 0 && f_i_token == 0;
    wire f_there   = f_tiles != 0 || f_o_token != f_i_token;
    wire f_o_read  = f_there && (!m_axis_tvalid || m_axis_tready);
    wire f_o_end   = f_o_read && f_o_beat == BEATS - 1;
    wire f_o_over  = f_o_end && f_tiles != 0 && f_o_token == f_last0;
    wire f_o_done  = f_o_over && f_o_pass == BLOCKS - 1;
    wire f_a_take  = tile_valid && tile_ready;
    always @(posedge clk) begin
        if (take)      f_i_beat  <= f_i_whole ? 0 : f_i_beat + 1'b1;
        f_i_waits <= f_i_last && !ends_tvalid;
        if (f_i_end)   f_i_token <= f_i_close ? 0 : f_i_token + 1'b1;
        if (f_i_close) f_i_odd   <= !f_i_odd;
        if (f_o_read)  f_o_beat  <= f_o_end ? 0 : f_o_beat + 1'b1;
        if (f_o_end)   f_o_token <= f_o_over ? 0 : f_o_token + 1'b1;
        if (f_o_over)  f_o_pass  <= f_o_done ? 0 : f_o_pass + 1'b1;
        if (f_o_done)  f_o_odd   <= !f_o_odd;
        f_tiles <= f_tiles + {1'b0, f_i_close} - {1'b0, f_o_done};
        if (f_o_done)  f_last0 <= f_last1;
        if (f_i_close) begin
            if (f_tiles == {1'b0, f_o_done}) f_last0 <= f_i_token;
            else                             f_last1 <= f_i_token;
        end
        f_asks <= f_asks + {1'b0, f_i_begin} - {1'b0, f_a_take};
        if (rst) {f_i_beat, f_i_token, f_i_odd, f_i_waits, f_o_beat, f_o_token, f_o_pass, f_o_odd, f_tiles, f_asks} <= 0;
    end

    // Any beat of any token of a tile of either number: what is read there is what was stored there, its sideband as the header says.
    (* anyconst *) wire          f_odd;
    (* anyconst *) wire [TW-1:0] f_token;
    (* anyconst *) wire [BW-1:0] f_beat;
    always @(*) assume (f_token < TILE && f_beat < BEATS);
    reg             f_have, f_hit;                  // it is stored; it was read last
    reg [WIDTH-1:0] f_word, f_out_word;
    reg [2:0]       f_user, f_out_user, f_constant;
    wire            f_reads = f_o_read && f_o_odd == f_odd && f_o_token == f_token && f_o_beat == f_beat;
    always @(posedge clk) begin
        if (take && f_i_odd == f_odd && f_i_token == f_token && f_i_beat == f_beat) begin
            f_have <= 1'b1;
            f_word <= s_axis_tdata;
            f_user <= s_axis_tuser;
        end
        if (f_o_done && f_o_odd == f_odd) f_have <= 1'b0;
        if (f_o_read) begin
            f_hit      <= f_reads;
            f_out_word <= f_word;
            f_out_user <= {f_o_pass == 0 ? {f_user[2], f_tiles != 0 && f_o_token == f_last0} : f_o_pass == 1 ? f_user[1:0] : 2'b00, f_o_token == 0};
        end
        if (take && f_i_beat == 0) f_constant <= s_axis_tuser;
        if (rst) {f_have, f_hit} <= 2'b00;
    end
    always @(*) begin
        if (f_i_beat != 0) assume (s_axis_tuser == f_constant);
        if (f_past && f_reads)              assert (f_have);
        if (f_past && f_hit && m_axis_tvalid) assert (m_axis_tdata == f_out_word && m_axis_tuser == f_out_user);
    end
    always @(posedge clk) if (f_past) begin
        if ($past(rst)) assert (!m_axis_tvalid && !tile_valid && !over);
        else begin
            if ($past(m_axis_tvalid && !m_axis_tready)) assert (m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tuser));
            if ($past(tile_valid && !tile_ready))       assert (tile_valid && $stable(tile_next));
            assert (over == $past(f_i_close) && (!over || over_group == $past(f_i_last && ends_tdata)));
            // no gap: what is there is offered, and nothing else
            if ($past(!m_axis_tvalid || m_axis_tready)) assert (m_axis_tvalid == $past(f_there));
        end
    end
    always @(*) if (f_past) begin
        assert (f_tiles <= 2 && f_asks <= 2);
        assert (s_axis_tready == (f_tiles != 2 && !f_i_waits && (f_i_beat != 0 || f_i_token != 0 || f_asks != 2)));
        assert (ends_tready == f_i_last);           // a word a frame
        assert (tile_valid == (f_asks != 0));
        if (take && read) assert (w_word != r_word && w_user != r_user);        // no_rw_check
        // the two requests that wait are never asked for a third place
        assert (!(f_i_begin && !ask_ready));
    end

    // For the induction: the registers are the model's, and where the word lies.
    wire [7:0]  f_i_addr = (f_i_token + f_i_waits) * BEATS + f_i_beat, f_o_addr = f_o_token * BEATS + f_o_beat, f_at = f_token * BEATS + f_beat;
    wire [AW:0] f_where = {f_at[AW-1:0], f_odd};
    wire [TW:0] f_whose = {f_token, f_odd};
    wire        f_beyond = f_i_token > f_token || (f_i_token == f_token && (f_i_waits || f_i_beat > f_beat));    // of the tile that is stored
    wire        f_older = f_tiles != 0 && f_o_odd == f_odd, f_newer = f_tiles == 2 && f_o_odd != f_odd;
    always @(*) if (f_past) begin
        assert (f_i_beat < BEATS && f_i_token < TILE && f_o_beat < BEATS && f_o_token < TILE && f_o_pass < BLOCKS);
        assert (w_beat == f_i_beat && w_token == f_i_token && w_half == f_i_odd && w_addr == f_i_addr[AW-1:0]);
        assert (r_beat == f_o_beat && r_token == f_o_token && r_half == f_o_odd && r_addr == f_o_addr[AW-1:0] && r_pass == f_o_pass);
        assert (w_begun == (f_i_beat != 0 || f_i_token != 0 || f_i_waits) && w_waits == f_i_waits);
        if (f_i_waits) assert (f_i_beat == 0 && f_tiles != 2);
        assert (count == f_tiles && (f_i_odd ^ f_o_odd) == f_tiles[0]);
        if (f_tiles != 0) assert (f_last0 == (r_half ? last_1 : last_0) && f_last0 < TILE && f_o_token <= f_last0);
        if (f_tiles == 2) assert (f_last1 == (r_half ? last_0 : last_1) && f_last1 < TILE && !w_begun);
        if (f_tiles == 0) assert (f_o_pass == 0 && f_o_token <= f_i_token && (f_o_token != f_i_token || f_o_beat == 0));
        assert (f_have == (f_older ? f_token <= f_last0 : f_newer ? f_token <= f_last1 : f_i_odd == f_odd && f_tiles != 2 && f_beyond));
        if (f_have) assert (mem[f_where[MA-1:0]] == f_word && side[f_whose[UA-1:0]] == f_user);
        if ((f_i_beat != 0 || f_i_waits) && f_i_odd == f_odd && f_i_token == f_token)
            assert (side[f_whose[UA-1:0]] == f_constant && (!f_have || f_user == f_constant));
        assert (ask_ready == (f_asks != 2));
    end
    // not vacuous
    reg f_third = 1'b0;                             // two tiles are done
    always @(posedge clk) f_third <= !rst && (f_third || (f_o_done && f_o_odd));
    always @(*) if (f_past) cover (f_third && f_o_done && f_last0 != 0);
    always @(*) if (f_past) cover (f_asks == 2 && f_tiles == 0 && f_third);
`endif
endmodule

`default_nettype wire
