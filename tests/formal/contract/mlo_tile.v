// SPDX-License-Identifier: MIT
// mlo_tile: tile_rules, which mlo_mvu_tiled's contract relies on
inner [1:0] dut.count;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.last_0;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.last_1;
inner dut.w_half;
inner dut.w_begun;
inner dut.w_waits;
inner u_rules.i_waits;
inner [((TILE*BEATS > 1) ? $clog2(TILE*BEATS) : 1)-1:0] dut.w_addr;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] dut.w_beat;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.w_token;
inner dut.r_half;
inner dut.out_valid;
inner [((TILE*BEATS > 1) ? $clog2(TILE*BEATS) : 1)-1:0] dut.r_addr;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] dut.r_beat;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.r_token;
inner [$clog2(BLOCKS)-1:0] dut.r_pass;
inner [2:0] dut.out_side;
inner dut.u_ask.valid_reg;
inner dut.u_ask.full_reg;
inner dut.u_ask.out_reg;
inner dut.u_ask.spare_reg;
memory 2*TILE*BEATS [WIDTH-1:0] mem = dut.mem;
memory 2*TILE [2:0] side = dut.side;
inner [3:0] u_rules.i_tile;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] u_rules.i_token;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] u_rules.i_beat;
inner [3:0] u_rules.n_tile;
inner [$clog2(BLOCKS)-1:0] u_rules.n_pass;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] u_rules.n_token;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] u_rules.n_beat;
inner [3:0] u_rules.o_tile;
inner [$clog2(BLOCKS)-1:0] u_rules.o_pass;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] u_rules.o_token;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] u_rules.o_beat;
inner [12*TILE-1:0] u_rules.side;
inner [4*((TILE > 1) ? $clog2(TILE) : 1)-1:0] u_rules.lasts;
inner [3:0] u_rules.alive;
inner [1:0] u_rules.asks;
inner [1:0] u_rules.ask;
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1, TW = (TILE > 1) ? $clog2(TILE) : 1, PW = $clog2(BLOCKS);
    tile_rules #(.WIDTH(WIDTH), .BEATS(BEATS), .TILE(TILE), .BLOCKS(BLOCKS)) u_rules (.clk(clk), .rst(rst),
        .s_data(s_axis_tdata), .s_valid(s_axis_tvalid), .s_ready(s_axis_tready), .s_user(s_axis_tuser),
        .m_data(m_axis_tdata), .m_valid(m_axis_tvalid), .m_ready(m_axis_tready), .m_user(m_axis_tuser),
        .ends_data(ends_tdata), .ends_valid(ends_tvalid), .ends_ready(ends_tready),
        .tile_valid(tile_valid), .tile_next(tile_next), .tile_ready(tile_ready));

    // the beat that is read next: the one after that on offer
    wire          v = dut.out_valid;
    wire [3:0]    tile  = v ? u_rules.n_tile  : u_rules.o_tile,  whole = u_rules.i_tile - tile;
    wire [PW-1:0] pass  = v ? u_rules.n_pass  : u_rules.o_pass;
    wire [TW-1:0] token = v ? u_rules.n_token : u_rules.o_token;
    wire [BW-1:0] beat  = v ? u_rules.n_beat  : u_rules.o_beat;
    always @* if (past) begin
        assert (dut.w_half == u_rules.i_tile[0] && dut.w_token == u_rules.i_token && dut.w_beat == u_rules.i_beat);
        assert (dut.w_waits == u_rules.i_waits && dut.w_begun == (dut.w_token != 0 || dut.w_beat != 0 || dut.w_waits));
        if (!dut.w_waits) assert (dut.w_addr == dut.w_token * BEATS + dut.w_beat);
        else              assert (whole != 2 && (dut.w_token == TILE - 1 || dut.w_addr == (dut.w_token + 1) * BEATS));
        assert (dut.r_half == tile[0] && dut.r_pass == pass && dut.r_token == token && dut.r_beat == beat);
        assert (dut.r_addr == token * BEATS + beat);
        assert (dut.count == whole && whole <= 2 && (whole != 2 || !dut.w_begun));
        if (whole == 0) assert (pass == 0 && token <= u_rules.i_token && (token != u_rules.i_token || beat == 0));
        if (v) assert (u_rules.alive != 0 || u_rules.o_token < u_rules.i_token);
        assert ({dut.u_ask.full_reg, dut.u_ask.valid_reg} == (u_rules.asks == 2 ? 3 : u_rules.asks));
        if (u_rules.asks != 0) assert (dut.u_ask.out_reg == u_rules.ask[0]);
        if (u_rules.asks == 2) assert (dut.u_ask.spare_reg == u_rules.ask[1]);
    end
    // what lies in the halves
    genvar d, k, b;
    generate
        for (d = 0; d < 3; d = d + 1) begin : g_half
            wire [3:0] at = tile + d;
            wire [TW-1:0] last = u_rules.lasts[TW*at[1:0] +: TW];
            always @* if (past && d < whole) assert (last == (at[0] ? dut.last_1 : dut.last_0));
            for (k = 0; k < TILE; k = k + 1) begin : g_token
                wire mine = d < whole ? k <= last : d == whole && k < u_rules.i_token;
                wire now  = d == whole && k == u_rules.i_token;
                always @* if (past && (mine || (now && (u_rules.i_beat != 0 || u_rules.i_waits))))
                    assert (side[3*(2*k+at[0]) +: 3] == u_rules.side[3*(TILE*at[1:0]+k) +: 3]);
                for (b = 0; b < BEATS; b = b + 1) begin : g_beat
                    wire [TW-1:0] of_token = k;
                    wire [BW-1:0] of_beat  = b;
                    always @* if (past && (mine || (now && (b < u_rules.i_beat || u_rules.i_waits))))
                        assert (mem[WIDTH*(2*(k*BEATS+b)+at[0]) +: WIDTH] == {at, of_token, of_beat});
                end
            end
        end
    endgenerate

    // not vacuous: a tile that a group's end ended, which was told late, has gone, the next one is in its last pass, and all had to wait
    reg [2:0] waited;
    reg       short;
    always @(posedge clk) begin
        waited <= waited | {tile_valid && !tile_ready, m_axis_tvalid && !m_axis_tready, s_axis_tvalid && !s_axis_tready};
        if (u_rules.i_waits && u_rules.i_tile == 0 && u_rules.i_token != TILE - 1 && ends_tvalid && ends_tdata) short <= 1'b1;
        if (TILE == 1 && u_rules.i_waits) short <= 1'b1;
        if (rst) {waited, short} <= 0;
    end
    goal u_goal (.reached(past && short && waited == 7 && m_axis_tvalid && u_rules.o_tile == 1 && u_rules.o_pass == BLOCKS - 1));
