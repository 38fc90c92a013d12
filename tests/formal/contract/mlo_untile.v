// SPDX-License-Identifier: MIT
// mlo_untile: untile_rules, which mlo_mvu_tiled's contract relies on
inner [1:0] dut.count;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.last_0;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.last_1;
inner dut.w_half;
inner [((TILE*BLOCKS*BEATS > 1) ? $clog2(TILE*BLOCKS*BEATS) : 1)-1:0] dut.w_addr;
inner [((TILE*BLOCKS*BEATS > 1) ? $clog2(TILE*BLOCKS*BEATS) : 1)-1:0] dut.w_ahead;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] dut.w_beat;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.w_token;
inner [$clog2(BLOCKS)-1:0] dut.w_pass;
inner dut.r_half;
inner dut.out_valid;
inner [((TILE*BLOCKS*BEATS > 1) ? $clog2(TILE*BLOCKS*BEATS) : 1)-1:0] dut.r_addr;
inner [$clog2(BLOCKS*BEATS)-1:0] dut.r_beat;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] dut.r_token;
inner dut.first_0;
inner dut.first_1;
memory 2*TILE*BLOCKS*BEATS [WIDTH-1:0] mem = dut.mem;
memory 2*TILE [(0):0] keys = dut.keys;
memory 2*TILE [(0):0] ended = dut.lasts;
inner [3:0] u_rules.i_tile;
inner [$clog2(BLOCKS)-1:0] u_rules.i_pass;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] u_rules.i_token;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] u_rules.i_beat;
inner [3:0] u_rules.n_tile;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] u_rules.n_token;
inner [$clog2(BLOCKS*BEATS)-1:0] u_rules.n_beat;
inner [3:0] u_rules.o_tile;
inner [((TILE > 1) ? $clog2(TILE) : 1)-1:0] u_rules.o_token;
inner [$clog2(BLOCKS*BEATS)-1:0] u_rules.o_beat;
inner [8*TILE-1:0] u_rules.ends;
inner [3:0] u_rules.first;
inner [4*((TILE > 1) ? $clog2(TILE) : 1)-1:0] u_rules.lasts;
inner [3:0] u_rules.alive;
inner [2:0] u_rules.i_user;
    localparam BW = (BEATS > 1) ? $clog2(BEATS) : 1, TW = (TILE > 1) ? $clog2(TILE) : 1, PW = $clog2(BLOCKS), OW = $clog2(BLOCKS * BEATS);
    localparam WHOLE = BLOCKS * BEATS;
    untile_rules #(.WIDTH(WIDTH), .BEATS(BEATS), .TILE(TILE), .BLOCKS(BLOCKS)) u_rules (.clk(clk), .rst(rst),
        .s_data(s_axis_tdata), .s_valid(s_axis_tvalid), .s_ready(s_axis_tready), .s_user(s_axis_tuser),
        .m_data(m_axis_tdata), .m_valid(m_axis_tvalid), .m_ready(m_axis_tready), .m_user(m_axis_tuser));

    // the beat that is read next: the one after that on offer
    wire          v = dut.out_valid;
    wire [3:0]    tile  = v ? u_rules.n_tile  : u_rules.o_tile,  whole = u_rules.i_tile - tile;
    wire [TW-1:0] token = v ? u_rules.n_token : u_rules.o_token;
    wire [OW-1:0] beat  = v ? u_rules.n_beat  : u_rules.o_beat;
    always @* if (past) begin
        assert (dut.w_half == u_rules.i_tile[0] && dut.w_pass == u_rules.i_pass && dut.w_token == u_rules.i_token && dut.w_beat == u_rules.i_beat);
        assert (dut.w_addr == dut.w_token * WHOLE + dut.w_pass * BEATS + dut.w_beat);
        if (dut.w_pass != BLOCKS - 1) assert (dut.w_ahead == (dut.w_pass + 1) * BEATS);
        assert (dut.r_half == tile[0] && dut.r_token == token && dut.r_beat == beat && dut.r_addr == token * WHOLE + beat);
        assert (dut.count == whole && whole <= 2 && (whole != 2 || (dut.w_pass == 0 && dut.w_token == 0 && dut.w_beat == 0)));
        if (whole == 0) assert (token <= u_rules.i_token && (token != u_rules.i_token || beat == 0));
        if (whole == 0 && dut.w_pass != BLOCKS - 1) assert (token == 0 && beat == 0);
        if (v) assert (u_rules.alive != 0 || (dut.w_pass == BLOCKS - 1 && u_rules.o_token < u_rules.i_token));
    end
    // what lies in the halves
    genvar d, k, p, b;
    generate
        for (d = 0; d < 3; d = d + 1) begin : g_half
            wire [3:0]    at     = tile + d;
            wire [TW-1:0] last   = u_rules.lasts[TW*at[1:0] +: TW];
            wire          begins = d == whole && (u_rules.i_token != 0 || u_rules.i_beat != 0);
            always @* if (past && (d < whole || (d == whole && u_rules.i_pass != 0))) assert (last == (at[0] ? dut.last_1 : dut.last_0));
            always @* if (past && (d < whole || (d == whole && u_rules.i_pass > 1) || (begins && u_rules.i_pass == 1)))
                assert (u_rules.first[at[1:0]] == (at[0] ? dut.first_1 : dut.first_0));
            for (k = 0; k < TILE; k = k + 1) begin : g_token
                for (p = 0; p < BLOCKS; p = p + 1) begin : g_pass
                    wire over = d < whole || (d == whole && u_rules.i_pass > p) ? k <= last : begins && u_rules.i_pass == p && k < u_rules.i_token;
                    wire now  = begins && u_rules.i_pass == p && k == u_rules.i_token;
                    if (p < 2) begin : g_ends
                        always @* if (past && (over || (now && u_rules.i_beat != 0)))
                            assert ((p ? ended[2*k+at[0]] : keys[2*k+at[0]]) == u_rules.ends[2*(TILE*at[1:0]+k)+1-p]);
                    end
                    for (b = 0; b < BEATS; b = b + 1) begin : g_beat
                        wire [3:0]    of_it    = at * BLOCKS + p;
                        wire [TW-1:0] of_token = k;
                        wire [BW-1:0] of_beat  = b;
                        always @* if (past && (over || (now && b < u_rules.i_beat)))
                            assert (mem[WIDTH*(2*(k*WHOLE+p*BEATS+b)+at[0]) +: WIDTH] == {of_it, at, of_token, of_beat});
                    end
                end
            end
        end
    endgenerate

    // not vacuous: a tile that `last` ended has gone, the next one leaves, and both streams had to wait
    reg [1:0] waited;
    reg       short;
    always @(posedge clk) begin
        waited <= waited | {m_axis_tvalid && !m_axis_tready, s_axis_tvalid && !s_axis_tready};
        if (m_axis_tvalid && m_axis_tready && m_axis_tuser == 3'b111) short <= 1'b1;
        if (rst) {waited, short} <= 0;
    end
    goal u_goal (.reached(past && short && waited == 3 && m_axis_tvalid && u_rules.o_tile == 1 && u_rules.o_beat != 0));
