// SPDX-License-Identifier: MIT
// mlo_mvu_tiled: mlo_tile, mlo_mvu and mlo_untile, each left open but for its contract (contract/parts.v), keep mlo_mvu_tiled's: the
// tokens in their order with their sideband, N/PE beats each, those of pass b made by the tile's iteration b from this very token;
// a request a tile. And each part gets what it was promised. What the parts are trusted with is claimed of the real ones, in these
// sizes: rules in contract/tiles.v, proved of mlo_tile and mlo_untile; contract/mlo_mvu.v.
// (Words tell their place in the stream: see contract/tiles.v. Tiles are numbered modulo 16, and fewer are inside.)
given s_axis K/SIMD;
wanted m_axis N/PE;
    localparam KF = K / SIMD, NF = N / PE, NB = NF / BLOCKS, KW = (KF > 1) ? $clog2(KF) : 1, BW = (NB > 1) ? $clog2(NB) : 1;
    localparam TW = (TILE > 1) ? $clog2(TILE) : 1, PW = $clog2(BLOCKS);
    localparam [TW-1:0] NONE = 0;
    localparam CAP = (15 + ($clog2(SIMD) + 1) / 2 + 3 * NB) / NB, LW = $clog2(CAP + 1), EB = SIMD * XBITS - KW + 7;
inner [3:0] dut.u_tile.u_rules.i_tile;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.u_tile.u_rules.i_token;
inner [((K/SIMD > 1) ? $clog2(K/SIMD) : 1)-1:0] dut.u_tile.u_rules.i_beat;
inner [2:0] dut.u_tile.u_rules.i_user;
inner dut.u_tile.u_rules.i_waits;
inner [3:0] dut.u_tile.u_rules.o_tile;
inner [$clog2(BLOCKS)-1:0] dut.u_tile.u_rules.o_pass;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.u_tile.u_rules.o_token;
inner [((K/SIMD > 1) ? $clog2(K/SIMD) : 1)-1:0] dut.u_tile.u_rules.o_beat;
inner [2:0] dut.u_tile.u_rules.o_user;
inner [12*TILE-1:0] dut.u_tile.u_rules.side;
inner [4*((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.u_tile.u_rules.lasts;
inner [3:0] dut.u_tile.u_rules.alive;
inner [1:0] dut.u_tile.u_rules.asks;
inner [1:0] dut.u_tile.u_rules.ask;
inner dut.u_mvu.begun;
inner [3:0] dut.u_mvu.its;
inner [SIMD*XBITS-((K/SIMD > 1) ? $clog2(K/SIMD) : 1)-1:0] dut.u_mvu.id;
inner [(SIMD*XBITS-((K/SIMD > 1) ? $clog2(K/SIMD) : 1)+7)*((15+($clog2(SIMD)+1)/2+3*(N/PE/BLOCKS))/(N/PE/BLOCKS))-1:0] dut.u_mvu.line;
inner [$clog2((15+($clog2(SIMD)+1)/2+3*(N/PE/BLOCKS))/(N/PE/BLOCKS)+1)-1:0] dut.u_mvu.level;
inner [((K/SIMD > 1) ? $clog2(K/SIMD) : 1)-1:0] dut.u_mvu.i_beat;
inner [2:0] dut.u_mvu.i_user;
inner [((N/PE/BLOCKS > 1) ? $clog2(N/PE/BLOCKS) : 1)-1:0] dut.u_mvu.o_beat;
inner [2:0] dut.u_mvu.o_user;
inner [3:0] dut.u_untile.u_rules.i_tile;
inner [$clog2(BLOCKS)-1:0] dut.u_untile.u_rules.i_pass;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.u_untile.u_rules.i_token;
inner [((N/PE/BLOCKS > 1) ? $clog2(N/PE/BLOCKS) : 1)-1:0] dut.u_untile.u_rules.i_beat;
inner [2:0] dut.u_untile.u_rules.i_user;
inner [3:0] dut.u_untile.u_rules.o_tile;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.u_untile.u_rules.o_token;
inner [$clog2(N/PE)-1:0] dut.u_untile.u_rules.o_beat;
inner [2:0] dut.u_untile.u_rules.o_user;
inner [8*TILE-1:0] dut.u_untile.u_rules.ends;
inner [3:0] dut.u_untile.u_rules.first;
inner [4*((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.u_untile.u_rules.lasts;
inner [3:0] dut.u_untile.u_rules.alive;

    // ---- the tokens that came, by tile: sidebands, the tiles' last tokens. A token with `first` follows a group's end.
    reg [3:0]         in_tile, out_tile, ask_tile;
    reg [TW-1:0]      in_token, out_token;
    reg [2:0]         sides [0:(16<<TW)-1];
    reg [TW-1:0]      lasts [0:15];
    reg               begun, fresh, in_waits;       // in_waits: a frame's last token is there whole, its word is not
    wire in_last  = in_waits || (s_take && s_ending && s_axis_tuser[1]);
    wire in_whole = in_last ? ends_tvalid : s_take && s_ending;
    wire in_close = in_whole && (in_token == TILE - 1 || (in_last && ends_tdata));
    wire out_end  = m_take && m_ending, out_gone = out_tile != in_tile && out_token == lasts[out_tile];
    always @(posedge clk) begin
        if (s_take) begin
            sides[{in_tile, in_token}] <= s_axis_tuser;
            {begun, fresh} <= 2'b10;
        end
        in_waits <= in_last && !ends_tvalid;
        if (in_whole) in_token <= in_close ? 0 : in_token + 1'b1;
        if (in_whole && in_last && ends_tdata) fresh <= 1'b1;
        if (in_close) begin
            in_tile <= in_tile + 1'b1;
            lasts[in_tile] <= in_token;
        end
        if (out_end) out_token <= out_gone ? 0 : out_token + 1'b1;
        if (out_end) out_tile  <= out_tile + out_gone;
        if (tile_valid && tile_ready) ask_tile <= ask_tile + 1'b1;
        if (rst) {in_tile, out_tile, ask_tile, in_token, out_token, begun, fresh, in_waits} <= 0;
    end
    always @* if (past && s_axis_tvalid && !in_waits) begin
        if (s_start) assume (s_axis_tuser[0] ? fresh || !begun : begun);
        assume (s_axis_tdata == {in_tile, in_token, s_beat});
    end

    // ---- the contract
    wire [3:0]    asks   = in_tile + (in_token != 0 || s_beat != 0 || in_waits) - ask_tile;       // tiles begun whose requests were not taken
    wire [3:0]    out_it = out_tile * BLOCKS + m_beat / NB;
    wire [BW-1:0] out_in = m_beat % NB;
    wire [2:0]    out_side = sides[{out_tile, out_token}], ask_side = sides[{ask_tile, NONE}];
    claim u_there (.holds(!past || !m_axis_tvalid || out_tile != in_tile));
    claim u_user  (.holds(!past || !m_axis_tvalid || m_axis_tuser == out_side));
    claim u_data  (.holds(!past || !m_axis_tvalid || m_axis_tdata == {out_it, out_tile, out_token, out_in}));
    claim u_asks  (.holds(!past || !tile_valid || (asks != 0 && tile_next == ask_side[0])));
    stream u_ask (.clk(clk), .rst(rst), .valid(tile_valid), .ready(tile_ready), .data(tile_next), .user(3'd0));

    // ---- for the induction: where each part stands
    wire [3:0]    x_tile  = dut.u_tile.u_rules.o_tile, y_tile = dut.u_untile.u_rules.i_tile;        // before mlo_mvu, behind it
    wire [PW-1:0] x_pass  = dut.u_tile.u_rules.o_pass, y_pass = dut.u_untile.u_rules.i_pass;
    wire [TW-1:0] x_token = dut.u_tile.u_rules.o_token, y_token = dut.u_untile.u_rules.i_token;
    wire [KW-1:0] x_beat  = dut.u_tile.u_rules.o_beat;
    wire [BW-1:0] y_beat  = dut.u_untile.u_rules.i_beat;
    wire [3:0]    x_it    = x_tile * BLOCKS + x_pass;
    wire [LW-1:0] level   = dut.u_mvu.level;
    wire [2:0]    in_side = sides[{in_tile, in_token}];
    wire [2:0]    x_side  = sides[{x_tile, x_token}];
    wire          x_final = x_tile != in_tile && x_token == lasts[x_tile];
    // the sideband between the parts, as mlo_tile's header has it
    function [2:0] inside(input [2:0] side, input [PW-1:0] pass, input [TW-1:0] token, input final_one);
        inside = {pass == 0 ? {side[2], final_one} : pass == 1 ? side[1:0] : 2'b00, token == 0};
    endfunction
    always @* if (past) begin
        assert (in_tile == dut.u_tile.u_rules.i_tile && in_token == dut.u_tile.u_rules.i_token && s_beat == dut.u_tile.u_rules.i_beat);
        assert (in_token < TILE && in_waits == dut.u_tile.u_rules.i_waits);
        assert (!fresh || (in_token == 0 && s_beat == 0 && !in_waits));
        if (in_waits) assert (begun && s_beat == 0 && in_side[1] && (!in_side[0] || in_token == 0));
        if (!begun) assert (in_tile == 0 && in_token == 0 && s_beat == 0);
        if (s_beat != 0) assert (s_token == dut.u_tile.u_rules.i_user && in_side == s_token && (!s_token[0] || in_token == 0));
        if (asks != 0) assert (ask_side[0] == dut.u_tile.u_rules.ask[0]);
        assert (asks == dut.u_tile.u_rules.asks);
        assert (out_tile == dut.u_untile.u_rules.o_tile && out_token == dut.u_untile.u_rules.o_token && m_beat == dut.u_untile.u_rules.o_beat);
        assert (x_beat == dut.u_mvu.i_beat && y_beat == dut.u_mvu.o_beat);
        if (m_beat != 0) assert (m_token == out_side && m_token == dut.u_untile.u_rules.o_user);
        if (x_beat != 0) assert (dut.u_mvu.i_user == inside(x_side, x_pass, x_token, x_final) && dut.u_mvu.i_user == dut.u_tile.u_rules.o_user
                                 && dut.u_mvu.id == {x_tile, x_token});
        if (y_beat != 0) assert (dut.u_mvu.o_user == dut.u_untile.u_rules.i_user && dut.u_mvu.o_user == dut.u_mvu.line[EB-1 -: 3]);
        if (!dut.u_mvu.begun) assert (x_tile == 0 && x_pass == 0 && x_token == 0);
        assert (dut.u_mvu.its + (x_token == 0) == x_it);
        if (level == 0) assert ({x_tile, x_pass, x_token} == {y_tile, y_pass, y_token});
    end
    wire [3:0] ask_2 = ask_tile + 1'b1;
    wire [2:0] ask_side_2 = sides[{ask_2, NONE}];
    always @* if (past && asks == 2) assert (ask_side_2[0] == dut.u_tile.u_rules.ask[1]);

    // the tokens in mlo_mvu: from where mlo_untile stands to where mlo_tile stands, each the next one of the one before
    genvar d, i, k;
    generate
        for (i = 0; i < CAP; i = i + 1) begin : g_line
            wire [2:0]    user;
            wire [3:0]    it, tile;
            wire [TW-1:0] token;
            assign {user, it, tile, token} = dut.u_mvu.line[EB*i +: EB];
            wire [PW-1:0] pass = it - tile * BLOCKS;
            wire [3:0]    whole = it - tile * BLOCKS, behind = x_tile - tile;
            wire [2:0]    side = sides[{tile, token}];
            wire          over = tile != in_tile && token == lasts[tile], gone = over && pass == BLOCKS - 1;
            wire [3:0]    n_tile  = tile + gone;
            wire [PW-1:0] n_pass  = gone ? 0 : pass + over;
            wire [TW-1:0] n_token = over ? 0 : token + 1'b1;
            always @* if (past && i < level) begin
                assert (whole < BLOCKS && token < TILE && behind <= level - i);
                if (tile == in_tile) assert (pass == 0 && token < in_token);
                else                 assert (token <= lasts[tile]);
                assert (user == inside(side, pass, token, over) && (!side[0] || token == 0));
                assert (over ? token == TILE - 1 || side[1] : token != TILE - 1);
                if (i + 1 == level) assert ({n_tile, n_pass, n_token} == {x_tile, x_pass, x_token});
            end
            if (i == 0) begin : g_oldest
                always @* if (past && level != 0) assert ({tile, pass, token} == {y_tile, y_pass, y_token});
            end
            if (i + 1 < CAP) begin : g_next
                always @* if (past && i + 1 < level)
                    assert ({n_tile, n_pass, n_token} == {g_line[i+1].tile, g_line[i+1].pass, g_line[i+1].token});
            end
        end
        // what mlo_tile and mlo_untile remember of their tiles is what came
        for (d = 0; d < 4; d = d + 1) begin : g_tile
            wire [3:0]    at = x_tile + d, of = out_tile + d;
            wire [TW-1:0] at_last = dut.u_tile.u_rules.lasts[TW*at[1:0] +: TW], of_last = dut.u_untile.u_rules.lasts[TW*of[1:0] +: TW];
            wire [2:0]    of_first = sides[{of, NONE}];
            wire          at_whole = d < dut.u_tile.u_rules.alive, of_whole = d < dut.u_untile.u_rules.alive;
            wire          of_now = d == dut.u_untile.u_rules.alive;
            always @* if (past) begin
                if (at_whole) assert (at_last == lasts[at]);
                if (of_whole || (of_now && y_pass != 0)) assert (of_last == lasts[of] && of != in_tile);
                if (of_whole || (of_now && (y_pass > 1 || (y_pass == 1 && (y_token != 0 || y_beat != 0)))))
                    assert (dut.u_untile.u_rules.first[of[1:0]] == of_first[0]);
            end
            for (k = 0; k < TILE; k = k + 1) begin : g_token
                wire [TW-1:0] of_k = k;
                wire [2:0] at_side = sides[{at, of_k}], of_side = sides[{of, of_k}];
                wire       at_there = at_whole ? k <= at_last : d == dut.u_tile.u_rules.alive && (k < in_token || (k == in_token && (s_beat != 0 || in_waits)));
                wire       of_there = of_whole || (of_now && y_pass != 0) ? k <= of_last
                                    : of_now && (k < y_token || (k == y_token && y_beat != 0));
                wire       of_over  = of_whole || (of_now && y_pass > 1) ? k <= of_last
                                    : of_now && y_pass == 1 && (k < y_token || (k == y_token && y_beat != 0));
                always @* if (past && at_there)
                    assert (at_side == dut.u_tile.u_rules.side[3*(TILE*at[1:0]+k) +: 3] && (!at_side[0] || k == 0));
                always @* if (past && of_there)
                    assert (of_side[2] == dut.u_untile.u_rules.ends[2*(TILE*of[1:0]+k)+1] && (!of_side[0] || k == 0));
                always @* if (past && of_over) assert (of_side[1] == dut.u_untile.u_rules.ends[2*(TILE*of[1:0]+k)]);
            end
        end
    endgenerate

    // not vacuous: a tile that a group ended has left, the next one leaves, and all had to wait
    reg [2:0] waited;
    reg       short;
    always @(posedge clk) begin
        waited <= waited | {tile_valid && !tile_ready, m_axis_tvalid && !m_axis_tready, s_axis_tvalid && !s_axis_tready};
        if (out_end && m_axis_tuser == 3'b111) short <= 1'b1;
        if (rst) {waited, short} <= 0;
    end
    goal u_goal (.reached(past && short && waited == 7 && m_axis_tvalid && out_tile == 1 && m_ending));
