// SPDX-License-Identifier: MIT
// mlo_prefix: of each frame P tokens of rows come out, not first, not last, keys that count; then what came in of it, word by word
given s_axis BEATS;
wanted m_axis BEATS;
inner dut.own;
inner dut.fresh;
inner [((P*BEATS > 1) ? $clog2(P*BEATS) : 1)-1:0] dut.word;
inner [((BEATS > 1) ? $clog2(BEATS) : 1)-1:0] dut.beat;
inner dut.valid;
inner dut.is_row;
inner [WIDTH-1:0] dut.row;
inner [WIDTH-1:0] dut.x;
inner [2:0] dut.user;
inner dut.u_rows.used;
inner dut.u_rows.full;
inner dut.out_valid;
inner dut.spare_valid;
inner [WIDTH+2:0] dut.out;
inner [WIDTH+2:0] dut.spare;
    localparam WORDS = P * BEATS, RW = $clog2(WORDS + 1), BW = (BEATS > 1) ? $clog2(BEATS) : 1;
    // `first` comes with the very first token, and with the first one of a frame at most
    reg front, begun, waits;                    // waits: what is on offer was on offer
    always @(posedge clk) begin
        waits <= s_axis_tvalid && !s_axis_tready && !rst;
        if (s_take) begun <= 1'b1;
        if (s_take && s_ending) front <= s_axis_tuser[1];
        if (rst) {front, begun} <= 2'b10;
    end
    always @* if (past && s_axis_tvalid) assume (s_axis_tuser[0] ? front : begun);

    // what leaves: the rows' beats, then the frame's own, up to its last token's last one
    reg  [RW-1:0] rows;
    wire          of_rows = rows != WORDS;
    always @(posedge clk) begin
        if (m_take && of_rows) rows <= rows + 1'b1;
        if (m_take && !of_rows && m_ending && m_axis_tuser[1]) rows <= 0;
        if (rst) rows <= 0;
    end
    claim u_row (.holds(!past || !m_axis_tvalid || !of_rows || m_axis_tuser == 3'b100));

    // where those inside stand, oldest first: the same over them leads to where the walk is
    wire [2:0]           line = {dut.valid, dut.spare_valid, dut.out_valid};
    wire [3*WIDTH+8:0]   words = {dut.is_row ? {3'b100, dut.row} : {dut.user, dut.x}, dut.spare, dut.out};
    reg  [2:0]           own;
    reg  [RW-1:0]        r;
    reg  [BW-1:0]        b;
    reg  [2:0]           side;
    reg                  ok;
    integer              i;
    always @* begin
        {r, b, side, own, ok} = {rows, m_beat, m_token, 3'd0, 1'b1};
        for (i = 0; i < 3; i = i + 1) if (line[i]) begin
            own[i] = r == WORDS;
            ok     = ok && (b == 0 || words[i*(WIDTH+3)+WIDTH +: 3] == side) && (own[i] || words[i*(WIDTH+3)+WIDTH +: 3] == 3'b100);
            side   = words[i*(WIDTH+3)+WIDTH +: 3];
            if (!own[i]) r = r + 1'b1;
            else if (b == BEATS - 1 && side[1]) r = 0;
            b = b == BEATS - 1 ? 0 : b + 1'b1;
        end
        ok = ok && (!dut.valid || dut.is_row == !own[2]) && r == (dut.own ? WORDS : dut.word) && (b == 0 || (dut.own ? side == s_token : side == 3'b100));
        ok = ok && b == (dut.own ? s_beat : dut.word % BEATS);
    end
    watch #(.BITS(WIDTH + 3), .N(3)) u_watch (.clk(clk), .rst(rst), .in_take(s_take), .in_word({s_axis_tuser, s_axis_tdata}),
        .out_valid(m_axis_tvalid && !of_rows), .out_take(m_take && !of_rows), .out_word({m_axis_tuser, m_axis_tdata}),
        .line_valid(own), .line_ends(own), .line_word(words));
    always @* if (past) begin
        assert (ok && dut.beat == s_beat && rows <= WORDS && dut.word < WORDS && (of_rows ? rows % BEATS == m_beat : 1'b1));
        assert (dut.out_valid || !dut.spare_valid);
        assert (dut.own ? dut.word == 0 && !dut.fresh : front && s_beat == 0);
        if (dut.word != 0) assert (!dut.fresh);
        if (!dut.fresh && !dut.own) assert (waits);
        // a bank is missed only between the change and the first row
        if (!dut.u_rows.used) assert (dut.fresh && !begun);
        else if (!dut.u_rows.full) assert (!dut.fresh && !dut.own && dut.word == 0);
    end

    // not vacuous: a frame of the second iteration has left, of two tokens, and both sides had to wait
    reg [1:0] changes;
    reg       long, two, waited, wait_in;
    always @(posedge clk) begin
        if (s_take && s_axis_tuser[0] && s_beat == 0 && changes != 2) changes <= changes + 1'b1;
        if (m_take && !of_rows && m_ending && !m_axis_tuser[1] && changes == 2) long <= 1'b1;
        if (m_take && !of_rows && m_ending && m_axis_tuser[1] && long) two <= 1'b1;
        if (m_axis_tvalid && !m_axis_tready) waited <= 1'b1;
        if (s_axis_tvalid && !s_axis_tready) wait_in <= 1'b1;
        if (rst) {changes, long, two, waited, wait_in} <= 0;
    end
    goal u_goal (.reached(past && two && waited && wait_in));
