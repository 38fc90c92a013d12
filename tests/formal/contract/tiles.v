// SPDX-License-Identifier: MIT
// What mlo_tile, mlo_untile and mlo_mvu promise in mlo_mvu_tiled, and what they are promised, as seen from their ports alone.
// GIVEN = 0: of the real part: its promises are claimed, those to it assumed (contract/mlo_tile.v, mlo_untile.v, mlo_mvu.v).
// GIVEN = 1: of a part left open (contract/parts.v): the other way round. So what is assumed there is, to the letter, what is
// claimed here.
// Words: neither mlo_tile nor mlo_untile looks at them, so each may be its own place in the stream: what leaves tells where it is
// from. Tiles and iterations are numbered modulo 16.
`default_nettype none

module rule #(
    parameter GIVEN = 0
) (input wire holds);
    generate
        if (GIVEN) begin : given
            always @* assume (holds);
        end else begin : wanted
            claim u_claim (.holds(holds));
        end
    endgenerate
endmodule

// A tile leaves BLOCKS times: whole, but for pass 0, which follows the storing. Tiles are kept modulo 4: no more than three are
// begun and not gone.
module tile_rules #(
    parameter GIVEN = 0, WIDTH = 1, BEATS = 1, TILE = 1, BLOCKS = 2,
    parameter BW = (BEATS > 1) ? $clog2(BEATS) : 1, TW = (TILE > 1) ? $clog2(TILE) : 1, PW = $clog2(BLOCKS)
) (
    input wire             clk, rst,
    input wire [WIDTH-1:0] s_data, m_data,
    input wire             s_valid, s_ready, m_valid, m_ready,
    input wire [2:0]       s_user, m_user,
    input wire             ends_data, ends_valid, ends_ready,
    input wire             tile_valid, tile_next, tile_ready
);
    reg               past = 1'b0;
    reg               i_waits;                      // a frame's last token is there whole, its word is not
    reg [3:0]         i_tile, o_tile;               // where the next beat in, and out, is
    reg [TW-1:0]      i_token, o_token;
    reg [PW-1:0]      o_pass;
    wire [BW-1:0]     i_beat, o_beat;
    reg [12*TILE-1:0] side;                         // sidebands of the tokens
    reg [4*TW-1:0]    lasts;                        // last tokens of the tiles
    reg [1:0]         asks, ask;                    // requests that wait; the oldest is ask[0]
    wire i_take, i_end, o_take, o_end;
    wire [2:0] i_user, o_user;
    stream #(.GIVEN(!GIVEN), .BEATS(BEATS), .DATA(WIDTH)) u_in (.clk(clk), .rst(rst), .valid(s_valid), .ready(s_ready), .data(s_data),
        .user(s_user), .ending(i_end), .take(i_take), .beat(i_beat), .token(i_user));
    stream #(.GIVEN(GIVEN), .BEATS(BEATS), .DATA(WIDTH)) u_out (.clk(clk), .rst(rst), .valid(m_valid), .ready(m_ready), .data(m_data),
        .user(m_user), .ending(o_end), .take(o_take), .beat(o_beat), .token(o_user));
    stream #(.GIVEN(GIVEN)) u_ask (.clk(clk), .rst(rst), .valid(tile_valid), .ready(tile_ready), .data(tile_next), .user(3'd0));

    wire [3:0]    alive   = i_tile - o_tile;        // tiles stored whole and not gone
    wire          starts  = i_token == 0 && i_beat == 0 && !i_waits;
    wire          i_last  = i_waits || (i_take && i_end && s_user[1]);
    wire          i_whole = i_last ? ends_valid : i_take && i_end;
    wire          i_close = i_whole && (i_token == TILE - 1 || (i_last && ends_data));
    wire [TW-1:0] o_final = lasts[TW*o_tile[1:0] +: TW];
    wire [2:0]    o_side  = side[3*(TILE*o_tile[1:0]+o_token) +: 3];
    wire          over    = o_end && alive != 0 && o_token == o_final;      // the pass, with this beat
    wire          gone    = over && o_pass == BLOCKS - 1;
    wire          asked   = tile_valid && tile_ready, asking = i_take && starts;
    // where the beat after the one on offer is
    wire [3:0]    n_tile  = o_tile + gone;
    wire [PW-1:0] n_pass  = gone ? 0 : o_pass + over;
    wire [TW-1:0] n_token = over ? 0 : o_token + o_end;
    wire [BW-1:0] n_beat  = o_end ? 0 : o_beat + 1'b1;
    always @(posedge clk) begin
        past <= 1'b1;
        if (i_take) side[3*(TILE*i_tile[1:0]+i_token) +: 3] <= s_user;
        i_waits <= i_last && !ends_valid;
        if (i_whole) i_token <= i_close ? 0 : i_token + 1'b1;
        if (i_close) begin
            i_tile <= i_tile + 1'b1;
            lasts[TW*i_tile[1:0] +: TW] <= i_token;
        end
        if (o_take) {o_tile, o_pass, o_token} <= {n_tile, n_pass, n_token};
        asks <= asks + asking - asked;
        if (asked)  ask[0] <= ask[1];
        if (asking) ask[asks[0] ^ asked] <= s_user[0];
        if (rst) {i_tile, i_token, i_waits, o_tile, o_pass, o_token, asks} <= 0;
    end

    rule #(!GIVEN) u_word  (.holds(!past || !s_valid || i_waits || s_data == {i_tile, i_token, i_beat}));
    rule #(GIVEN)  u_room  (.holds(!past || !s_ready || alive < 3));
    rule #(GIVEN)  u_wait  (.holds(!past || !s_ready || !starts || asks != 2));
    rule #(GIVEN)  u_there (.holds(!past || !m_valid || alive != 0 || o_token < i_token));
    rule #(GIVEN)  u_data  (.holds(!past || !m_valid || m_data == {o_tile, o_token, o_beat}));
    rule #(GIVEN)  u_ends  (.holds(!past || ends_ready == i_last));
    rule #(GIVEN)  u_still (.holds(!past || !s_ready || !i_waits));
    rule #(GIVEN)  u_user  (.holds(!past || !m_valid || m_user == {o_pass == 0 ? {o_side[2], alive != 0 && o_token == o_final}
                                                                     : o_pass == 1 ? o_side[1:0] : 2'b00, o_token == 0}));
    rule #(GIVEN)  u_asked (.holds(!past || !tile_valid || (asks != 0 && tile_next == ask[0])));

    // for the induction
    always @* if (past) begin
        assert (alive <= 3 && (alive != 3 || starts) && asks <= 2);
        assert (i_token < TILE && o_token < TILE && o_pass < BLOCKS);
        if (alive != 0) assert (o_token <= o_final);
        else            assert (o_pass == 0 && o_token <= i_token && (o_token != i_token || o_beat == 0));
    end
    genvar d, k;
    generate
        for (d = 0; d < 4; d = d + 1) begin : slot      // a tile stored whole ends at its last token, the one being stored has not ended
            wire [3:0]    tile  = o_tile + d;
            wire [TW-1:0] ending = lasts[TW*tile[1:0] +: TW];
            for (k = 0; k < TILE; k = k + 1) begin : token
                wire [2:0] user = side[3*(TILE*tile[1:0]+k) +: 3];
                wire       there = d < alive ? k <= ending : d == alive && k < i_token;
                always @* if (past && there) assert (k != TILE - 1 || (d < alive && k == ending));
                always @* if (past && d < alive && k == ending) assert (k == TILE - 1 || user[1]);
                always @* if (past && d == alive && k == i_token && i_beat != 0) assert (user == i_user);
                always @* if (past && d == alive && k == i_token && i_waits) assert (user[1] && i_beat == 0 && alive < 3);
            end
            always @* if (past && d < alive) assert (ending < TILE);
        end
    endgenerate
endmodule

// Puts BLOCKS passes of a tile together; a tile begins to leave in its last pass.
module untile_rules #(
    parameter GIVEN = 0, WIDTH = 1, BEATS = 1, TILE = 1, BLOCKS = 2,
    parameter BW = (BEATS > 1) ? $clog2(BEATS) : 1, TW = (TILE > 1) ? $clog2(TILE) : 1, PW = $clog2(BLOCKS),
    parameter OW = $clog2(BLOCKS * BEATS)
) (
    input wire             clk, rst,
    input wire [WIDTH-1:0] s_data, m_data,
    input wire             s_valid, s_ready, m_valid, m_ready,
    input wire [2:0]       s_user, m_user
);
    reg              past = 1'b0;
    reg [3:0]        i_tile, o_tile;                // where the next beat in, and out, is
    reg [PW-1:0]     i_pass;
    reg [TW-1:0]     i_token, o_token;
    wire [BW-1:0]    i_beat;
    wire [OW-1:0]    o_beat;                        // of the whole token
    reg [8*TILE-1:0] ends;                          // {key, last} of the tokens
    reg [3:0]        first;                         // of the tiles' first tokens
    reg [4*TW-1:0]   lasts;                         // last tokens of the tiles
    wire i_take, i_end, o_take, o_end;
    wire [2:0] i_user, o_user;
    stream #(.GIVEN(!GIVEN), .BEATS(BEATS), .DATA(WIDTH)) u_in (.clk(clk), .rst(rst), .valid(s_valid), .ready(s_ready), .data(s_data),
        .user(s_user), .ending(i_end), .take(i_take), .beat(i_beat), .token(i_user));
    stream #(.GIVEN(GIVEN), .BEATS(BLOCKS*BEATS), .DATA(WIDTH)) u_out (.clk(clk), .rst(rst), .valid(m_valid), .ready(m_ready), .data(m_data),
        .user(m_user), .ending(o_end), .take(o_take), .beat(o_beat), .token(o_user));

    wire [3:0]    alive   = i_tile - o_tile;        // tiles stored whole and not gone
    wire          starts  = i_pass == 0 && i_token == 0 && i_beat == 0;
    wire [TW-1:0] i_final = lasts[TW*i_tile[1:0] +: TW], o_final = lasts[TW*o_tile[1:0] +: TW];
    wire          i_over  = i_take && i_end && (i_pass == 0 ? i_token == TILE - 1 || s_user[1] : i_token == i_final);
    wire          i_close = i_over && i_pass == BLOCKS - 1;
    wire          gone    = o_end && alive != 0 && o_token == o_final;      // with this beat
    // where the beat after the one on offer is
    wire [3:0]    n_tile  = o_tile + gone;
    wire [TW-1:0] n_token = gone ? 0 : o_token + o_end;
    wire [OW-1:0] n_beat  = o_end ? 0 : o_beat + 1'b1;
    always @(posedge clk) begin
        past <= 1'b1;
        if (i_take && i_pass == 0) ends[2*(TILE*i_tile[1:0]+i_token)+1] <= s_user[2];
        if (i_take && i_pass == 1) ends[2*(TILE*i_tile[1:0]+i_token)] <= s_user[2];
        if (i_take && i_pass == 1 && i_token == 0) first[i_tile[1:0]] <= s_user[1];
        if (i_take && i_end) i_token <= i_over ? 0 : i_token + 1'b1;
        if (i_over) i_pass <= i_close ? 0 : i_pass + 1'b1;
        if (i_over && i_pass == 0) lasts[TW*i_tile[1:0] +: TW] <= i_token;
        i_tile <= i_tile + i_close;
        if (o_take) {o_tile, o_token} <= {n_tile, n_token};
        if (rst) {i_tile, i_pass, i_token, o_tile, o_token} <= 0;
    end

    // a word: {iteration, tile, token, beat}; each pass is an iteration
    wire [3:0]    i_it = i_tile * BLOCKS + i_pass, o_it = o_tile * BLOCKS + o_beat / BEATS;
    wire [BW-1:0] o_in = o_beat % BEATS;
    rule #(!GIVEN) u_word  (.holds(!past || !s_valid || s_data == {i_it, i_tile, i_token, i_beat}));
    rule #(!GIVEN) u_first (.holds(!past || !s_valid || i_pass != 1 || i_token == 0 || !s_user[1]));
    rule #(GIVEN)  u_room  (.holds(!past || !s_ready || alive < 3));
    rule #(GIVEN)  u_there (.holds(!past || !m_valid || alive != 0 || (i_pass == BLOCKS - 1 && o_token < i_token)));
    rule #(GIVEN)  u_data  (.holds(!past || !m_valid || m_data == {o_it, o_tile, o_token, o_in}));
    rule #(GIVEN)  u_user  (.holds(!past || !m_valid || m_user == {ends[2*(TILE*o_tile[1:0]+o_token) +: 2], o_token == 0 && first[o_tile[1:0]]}));

    // for the induction
    always @* if (past) begin
        assert (alive <= 3 && (alive != 3 || starts));
        assert (i_token < TILE && o_token < TILE && i_pass < BLOCKS);
        if (i_pass != 0) assert (i_final < TILE && i_token <= i_final);
        if (alive != 0) assert (o_token <= o_final && o_final < TILE);
        else begin
            assert (o_token <= i_token && (o_token != i_token || o_beat == 0));
            if (i_pass != BLOCKS - 1) assert (o_token == 0 && o_beat == 0);
        end
    end
    genvar d;
    generate
        for (d = 1; d < 3; d = d + 1) begin : slot
            wire [3:0] tile = o_tile + d;
            always @* if (past && d < alive) assert (lasts[TW*tile[1:0] +: TW] < TILE);
        end
    endgenerate
endmodule
`default_nettype wire
