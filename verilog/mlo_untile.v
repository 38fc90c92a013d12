// SPDX-License-Identifier: MIT
// mlo_untile: puts together the tokens that a matrix unit made in passes, a row block each
//
// Contract   s_axis: what a matrix unit makes of mlo_tile's stream: tiles of up to TILE tokens, BLOCKS times each; in every pass
//            BEATS beats a token, with mlo_tile's sideband: pass 0 {key, it ends the tile, -}, pass 1 {last, first, -}. A tile
//            ends at TILE tokens at the latest. m_axis: the tokens in their order, BLOCKS*BEATS beats each, pass 0's first, with
//            their own sideband {key, last, first} on every beat. (A token with `first` begins a tile: none other has it.)
// Throughput a beat in and a beat out per cycle. Storing waits only if the tile before the last one has not left yet: it begins
//            to leave in its last pass.
// Latency    a token whose last beat of the last pass is taken in cycle t is offered from cycle t + 2 (all before it have left)
// Stall      s_axis_tready is low while two tiles are stored and not done.
// Memory     exactly 2*TILE*BLOCKS*BEATS words, one write port, one registered read port: it is the output register.
//            Beside it 2 bits a token.
// Timing     s_axis_tready is a register
// Legal      WIDTH, BEATS, TILE >= 1, BLOCKS >= 2
//
// Two halves: one leaves while the other is stored. A word's place is (token*BLOCKS + pass)*BEATS + beat: so storing goes on by
// 1 within a token, by STEP to the next one, and from a pass to the next one by BEATS from where it began.
`default_nettype none

module mlo_untile #(
    parameter WIDTH  = 8,           // bits of a beat
    parameter BEATS  = 2,           // beats of a token in each pass
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
    output wire [2:0]       m_axis_tuser
);
    localparam WHOLE = BLOCKS * BEATS;              // beats of a token out
    localparam DEPTH = TILE * WHOLE;
    localparam AW = (DEPTH > 1)  ? $clog2(DEPTH)  : 1;
    localparam BW = (BEATS > 1)  ? $clog2(BEATS)  : 1;
    localparam OW = (WHOLE > 1)  ? $clog2(WHOLE)  : 1;
    localparam TW = (TILE > 1)   ? $clog2(TILE)   : 1;
    localparam PW = (BLOCKS > 1) ? $clog2(BLOCKS) : 1;
    localparam MA = $clog2(2 * DEPTH);
    localparam UA = $clog2(2 * TILE);
    localparam [BW-1:0] B_LAST = BEATS[BW-1:0] - 1'b1;
    localparam [OW-1:0] O_LAST = WHOLE[OW-1:0] - 1'b1;
    localparam [TW-1:0] T_LAST = TILE[TW-1:0] - 1'b1;
    localparam [PW-1:0] P_LAST = BLOCKS[PW-1:0] - 1'b1, P_ONE = 1;
    localparam [31:0]   STEP_32 = WHOLE - BEATS + 1;
    localparam [AW-1:0] NEXT_PASS = BEATS[AW-1:0], STEP = STEP_32[AW-1:0], ONE = 1;

    generate
        if (WIDTH < 1)  mlo_error_WIDTH_must_be_at_least_1 u_width ();
        if (BEATS < 1)  mlo_error_BEATS_must_be_at_least_1 u_beats ();
        if (TILE < 1)   mlo_error_TILE_must_be_at_least_1 u_tile ();
        if (BLOCKS < 2) mlo_error_BLOCKS_must_be_at_least_2 u_blocks ();
    endgenerate

    reg  [1:0]    count;                            // tiles stored whole and not done: 0..2
    reg  [TW-1:0] last_0, last_1;                   // last token of the tile in each half, from the end of pass 0 on

    // ---- in ---------------------------------------------------------------------------------------------------------
    reg           w_half;
    reg  [AW-1:0] w_addr, w_ahead;                  // (w_token*BLOCKS + w_pass)*BEATS + w_beat; the next pass begins there
    reg  [BW-1:0] w_beat;
    reg  [TW-1:0] w_token;
    reg  [PW-1:0] w_pass;
    assign s_axis_tready = !count[1];
    wire take    = s_axis_tvalid && s_axis_tready;
    wire pass_0  = w_pass == {PW{1'b0}};
    wire w_end   = take && w_beat == B_LAST;
    wire w_over  = w_end && (pass_0 ? w_token == T_LAST || s_axis_tuser[1] : w_token == (w_half ? last_1 : last_0));
    wire w_close = w_over && w_pass == P_LAST;

    always @(posedge clk) begin
        if (take) begin
            w_addr <= w_close ? {AW{1'b0}} : w_over ? w_ahead : w_addr + (w_end ? STEP : ONE);
            w_beat <= w_end ? {BW{1'b0}} : w_beat + 1'b1;
        end
        if (w_end)  w_token <= w_over ? {TW{1'b0}} : w_token + 1'b1;
        if (w_over) begin
            w_pass  <= w_close ? {PW{1'b0}} : w_pass + 1'b1;
            w_ahead <= w_close ? NEXT_PASS : w_ahead + NEXT_PASS;
        end
        if (w_close) w_half <= !w_half;
        if (rst) begin
            w_addr  <= {AW{1'b0}};
            w_ahead <= NEXT_PASS;
            w_beat  <= {BW{1'b0}};
            w_token <= {TW{1'b0}};
            w_pass  <= {PW{1'b0}};
            w_half  <= 1'b0;
        end
        if (w_over && pass_0 && !w_half) last_0 <= w_token;
        if (w_over && pass_0 && w_half)  last_1 <= w_token;
    end

    // ---- out --------------------------------------------------------------------------------------------------------
    reg           r_half, out_valid;
    reg  [AW-1:0] r_addr;
    reg  [OW-1:0] r_beat;
    reg  [TW-1:0] r_token;
    // no tile is whole: then the half that leaves is the one that is stored, and the last pass is to have gone over the token
    wire there = count != 2'd0 || (w_pass == P_LAST && r_token != w_token);
    wire read  = there && (!out_valid || m_axis_tready);
    wire r_end = read && r_beat == O_LAST;
    wire done  = r_end && r_token == (r_half ? last_1 : last_0);

    always @(posedge clk) begin
        if (read) begin
            r_addr <= done ? {AW{1'b0}} : r_addr + 1'b1;
            r_beat <= r_end ? {OW{1'b0}} : r_beat + 1'b1;
        end
        if (r_end) r_token <= done ? {TW{1'b0}} : r_token + 1'b1;
        if (done)  r_half  <= !r_half;
        if (w_close != done) count <= done ? count - 2'd1 : count + 2'd1;
        if (!out_valid || m_axis_tready) out_valid <= there;
        if (rst) begin
            r_addr    <= {AW{1'b0}};
            r_beat    <= {OW{1'b0}};
            r_token   <= {TW{1'b0}};
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
    reg              keys  [0:2*TILE-1];            // of the tokens: pass 0 has it
    (* no_rw_check *)
    reg              lasts [0:2*TILE-1];            // of the tokens: pass 1 has it
    reg              first_0, first_1;              // of the tile's first token in each half: pass 1 has it
    reg  [WIDTH-1:0] out_data;
    reg              out_key, out_last, out_first;
    wire [AW:0] w_word = {w_addr, w_half},  r_word = {r_addr, r_half};
    wire [TW:0] w_user = {w_token, w_half}, r_user = {r_token, r_half};
    wire        unused = &{1'b0, s_axis_tuser, w_word, r_word, w_user, r_user};
    always @(posedge clk) begin
        if (take)           mem[w_word[MA-1:0]]  <= s_axis_tdata;
        if (take && pass_0) keys[w_user[UA-1:0]] <= s_axis_tuser[2];
        if (take && w_pass == P_ONE) lasts[w_user[UA-1:0]] <= s_axis_tuser[2];
        if (take && w_pass == P_ONE && w_token == {TW{1'b0}}) begin
            if (w_half) first_1 <= s_axis_tuser[1];
            else        first_0 <= s_axis_tuser[1];
        end
        if (read) begin
            out_data  <= mem[r_word[MA-1:0]];
            out_key   <= keys[r_user[UA-1:0]];
            out_last  <= lasts[r_user[UA-1:0]];
            out_first <= r_token == {TW{1'b0}} && (r_half ? first_1 : first_0);
        end
    end
    assign m_axis_tdata  = out_data;
    assign m_axis_tvalid = out_valid;
    assign m_axis_tuser  = {out_key, out_last, out_first};

`ifdef FORMAL
    // Assumed: the reset; a sideband that is the same on all beats of a token and pass, as every stream here has it; `first` as above.
    reg f_past = 1'b0;
    always @(posedge clk) f_past <= 1'b1;
    always @(*) if (!f_past) assume (rst);

    // The model: where the next beat in and the next one to be read are: pass, token, beat; the tiles stored whole, oldest
    // first, of which one is read. (f_now: the last token of the one that is stored, from pass 1 on.)
    reg  [PW-1:0] f_i_pass, f_o_pass;
    reg  [TW-1:0] f_i_token, f_o_token, f_last0, f_last1, f_now;
    reg  [BW-1:0] f_i_beat, f_o_beat;
    reg           f_i_odd, f_o_odd;                 // tiles are numbered, modulo 2
    reg  [1:0]    f_tiles;
    wire f_i_end   = take && f_i_beat == BEATS - 1;
    wire f_i_over  = f_i_end && (f_i_pass == 0 ? f_i_token == TILE - 1 || s_axis_tuser[1] : f_i_token == f_now);
    wire f_i_close = f_i_over && f_i_pass == BLOCKS - 1;
    wire f_there   = f_tiles != 0 || (f_i_pass == BLOCKS - 1 && f_o_token < f_i_token);
    wire f_o_read  = f_there && (!m_axis_tvalid || m_axis_tready);
    wire f_o_turn  = f_o_read && f_o_beat == BEATS - 1;
    wire f_o_end   = f_o_turn && f_o_pass == BLOCKS - 1;
    wire f_o_done  = f_o_end && f_tiles != 0 && f_o_token == f_last0;
    always @(posedge clk) begin
        if (take)      f_i_beat  <= f_i_end ? 0 : f_i_beat + 1'b1;
        if (f_i_end)   f_i_token <= f_i_over ? 0 : f_i_token + 1'b1;
        if (f_i_over)  f_i_pass  <= f_i_close ? 0 : f_i_pass + 1'b1;
        if (f_i_over && f_i_pass == 0) f_now <= f_i_token;
        if (f_i_close) f_i_odd   <= !f_i_odd;
        if (f_o_read)  f_o_beat  <= f_o_turn ? 0 : f_o_beat + 1'b1;
        if (f_o_turn)  f_o_pass  <= f_o_end ? 0 : f_o_pass + 1'b1;
        if (f_o_end)   f_o_token <= f_o_done ? 0 : f_o_token + 1'b1;
        if (f_o_done)  f_o_odd   <= !f_o_odd;
        f_tiles <= f_tiles + {1'b0, f_i_close} - {1'b0, f_o_done};
        if (f_o_done)  f_last0 <= f_last1;
        if (f_i_close) begin
            if (f_tiles == {1'b0, f_o_done}) f_last0 <= f_now;
            else                             f_last1 <= f_now;
        end
        if (rst) {f_i_beat, f_i_token, f_i_pass, f_i_odd, f_o_beat, f_o_pass, f_o_token, f_o_odd, f_tiles} <= 0;
    end

    // Any beat of any token and pass of a tile of either number: what is read there is what was stored there.
    (* anyconst *) wire          f_odd;
    (* anyconst *) wire [TW-1:0] f_token;
    (* anyconst *) wire [PW-1:0] f_pass;
    (* anyconst *) wire [BW-1:0] f_beat;
    always @(*) assume (f_token < TILE && f_pass < BLOCKS && f_beat < BEATS);
    reg             f_have, f_hit;                  // it is stored; it was read last
    reg [WIDTH-1:0] f_word, f_out_word;
    reg [2:0]       f_user, f_out_user, f_constant; // of the token, as it leaves
    wire            f_mine  = f_i_odd == f_odd && f_i_token == f_token;
    wire            f_reads = f_o_read && f_o_odd == f_odd && f_o_token == f_token && f_o_pass == f_pass && f_o_beat == f_beat;
    always @(posedge clk) begin
        if (take && f_mine && f_i_pass == f_pass && f_i_beat == f_beat) begin
            f_have <= 1'b1;
            f_word <= s_axis_tdata;
        end
        if (take && f_mine && f_i_pass == 0) f_user[2]   <= s_axis_tuser[2];
        if (take && f_mine && f_i_pass == 1) f_user[1:0] <= s_axis_tuser[2:1];
        if (f_o_done && f_o_odd == f_odd) f_have <= 1'b0;
        if (f_o_read) begin
            f_hit      <= f_reads;
            f_out_word <= f_word;
            f_out_user <= f_user;
        end
        if (take && f_i_beat == 0) f_constant <= s_axis_tuser;
        if (rst) {f_have, f_hit} <= 2'b00;
    end
    always @(*) begin
        if (f_i_beat != 0) assume (s_axis_tuser == f_constant);
        if (f_i_pass == 1 && f_i_token != 0) assume (!s_axis_tuser[1]);
        if (f_past && f_reads)                assert (f_have);
        if (f_past && f_hit && m_axis_tvalid) assert (m_axis_tdata == f_out_word && m_axis_tuser == f_out_user);
    end
    always @(posedge clk) if (f_past) begin
        if ($past(rst)) assert (!m_axis_tvalid);
        else begin
            if ($past(m_axis_tvalid && !m_axis_tready)) assert (m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tuser));
            // no gap: what is there is offered, and nothing else
            if ($past(!m_axis_tvalid || m_axis_tready)) assert (m_axis_tvalid == $past(f_there));
        end
    end
    always @(*) if (f_past) begin
        assert (f_tiles <= 2 && s_axis_tready == (f_tiles != 2));
        if (take && read) assert (w_word != r_word && w_user != r_user);        // no_rw_check
    end

    // For the induction: the registers are the model's, and where the word lies.
    wire [7:0]  f_i_ahead = (f_i_pass + 1) * BEATS, f_i_addr = f_i_token * WHOLE + f_i_pass * BEATS + f_i_beat;
    wire [7:0]  f_o_in = f_o_pass * BEATS + f_o_beat, f_o_addr = f_o_token * WHOLE + f_o_in;
    wire [7:0]  f_at = f_token * WHOLE + f_pass * BEATS + f_beat;
    wire [AW:0] f_where = {f_at[AW-1:0], f_odd};
    wire [TW:0] f_whose = {f_token, f_odd};
    // the tile that is stored: the pass has gone over the token; over the word
    wire        f_over_0 = f_i_pass > 0 ? f_token <= f_now : f_i_token > f_token || (f_i_token == f_token && f_i_beat != 0);
    wire        f_over_1 = f_i_pass > 1 ? f_token <= f_now : f_i_pass == 1 && (f_i_token > f_token || (f_i_token == f_token && f_i_beat != 0));
    wire        f_beyond = f_i_pass > f_pass ? f_token <= f_now
                         : f_i_pass == f_pass && (f_i_token > f_token || (f_i_token == f_token && f_i_beat > f_beat));
    wire        f_older = f_tiles != 0 && f_o_odd == f_odd, f_newer = f_tiles == 2 && f_o_odd != f_odd;
    wire        f_here = f_i_odd == f_odd && f_tiles != 2;          // the number is that of the tile that is stored
    wire        f_all = (f_older && f_token <= f_last0) || (f_newer && f_token <= f_last1);
    always @(*) if (f_past) begin
        assert (f_i_beat < BEATS && f_i_token < TILE && f_i_pass < BLOCKS && f_o_beat < BEATS && f_o_token < TILE && f_o_pass < BLOCKS);
        assert (w_beat == f_i_beat && w_token == f_i_token && w_pass == f_i_pass && w_half == f_i_odd);
        assert (w_addr == f_i_addr[AW-1:0] && w_ahead == f_i_ahead[AW-1:0]);
        assert (r_beat == f_o_in && r_token == f_o_token && r_half == f_o_odd && r_addr == f_o_addr[AW-1:0]);
        assert (count == f_tiles && (f_i_odd ^ f_o_odd) == f_tiles[0]);
        if (f_i_pass != 0) assert (f_now == (w_half ? last_1 : last_0) && f_now < TILE && f_i_token <= f_now);
        if (f_tiles != 0)  assert (f_last0 == (r_half ? last_1 : last_0) && f_last0 < TILE && f_o_token <= f_last0);
        if (f_tiles == 2)  assert (f_last1 == (r_half ? last_0 : last_1) && f_last1 < TILE && f_i_pass == 0 && f_i_token == 0 && f_i_beat == 0);
        if (f_tiles == 0)  assert (f_o_token <= f_i_token && (f_o_token != f_i_token || f_o_in == 0));
        if (f_tiles == 0 && f_i_pass != BLOCKS - 1) assert (f_o_token == 0 && f_o_in == 0);
        assert (f_have == (f_older || f_newer ? f_all : f_here && f_beyond));
        if (f_have) assert (mem[f_where[MA-1:0]] == f_word);
        if (f_all || (f_here && f_over_0)) assert (keys[f_whose[UA-1:0]] == f_user[2]);
        if (f_all || (f_here && f_over_1))
            assert (lasts[f_whose[UA-1:0]] == f_user[1] && f_user[0] == (f_token == 0 && (f_odd ? first_1 : first_0)));
    end
    // not vacuous
    reg f_third = 1'b0;                             // two tiles are done
    always @(posedge clk) f_third <= !rst && (f_third || (f_o_done && f_o_odd));
    always @(*) if (f_past) cover (f_third && f_o_done);
    always @(*) if (f_past) cover (f_tiles == 2 && f_last0 != f_last1);
`endif
endmodule

`default_nettype wire
