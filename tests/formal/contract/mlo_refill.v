// SPDX-License-Identifier: MIT
// mlo_refill, with mlo_axi_reader and mlo_router: the rules of AXI4's read channels, and for each tile that is requested, in
// their order, the beats of all blocks of its iteration, to each port its own, from the right addresses; also across flushes.
uses reads;
inner dut.waits;
inner dut.begun;
inner [47:0] dut.offset;
inner [15:0] dut.iteration;
    localparam TILE = BLOCKS * SUM;
    localparam TILES = (DEPTH + 2) / TILE + 4;              // so many may be requested and not delivered
    // A beat that is wanted: {which of those tiles, place in it}.
    localparam PB = (TILE > 1) ? $clog2(TILE) : 1, TB = $clog2(TILES + 1), SW = TB + PB;

    // ---- the tiles that are requested: each one's iteration, oldest first
    reg  [2*TILES-1:0] tiles;
    reg  [TB-1:0]      count;
    reg                some;                    // there was one since flush
    reg  [1:0]         current;                 // the iteration of the last one
    wire               take = tile_valid && tile_ready;
    wire [1:0]         wraps = current + 1 == n ? 0 : current + 1;
    wire [1:0]         wanted_now = !some ? 0 : tile_next ? wraps : current;
    reg  [PB-1:0]      now;                     // the next beat of the oldest
    wire               give = (m_axis_tvalid & m_axis_tready) != 0, ends = give && now == TILE - 1;
    wire [TB-1:0]      stay = count - ends;
    wire [2*TILES-1:0] then_tiles = ends ? tiles >> 2 : tiles;
    reg                begun;                   // a cycle after reset or flush
    always @(posedge clk) begin
        if (take) {some, current} <= {1'b1, wanted_now};
        if (give) now <= ends ? 0 : now + 1'b1;
        count <= stay + take;
        for (i = 0; i < TILES; i = i + 1) tiles[2*i +: 2] <= take && stay == i ? wanted_now : then_tiles[2*i +: 2];
        begun <= !(rst || flush);
        if (rst || flush) {some, current, now, count} <= 0;
    end

    // ---- what is delivered
    function [7:0] place_of(input [SW-1:0] s, input [2*TILES-1:0] of);
        reg [1:0] iteration;
        begin
            iteration = of >> 2 * s[SW-1:PB];
            place_of  = OFFSET[7:0] + iteration * STRIDE[7:0] + s[PB-1:0];
        end
    endfunction
    function [SW-1:0] next_of(input [SW-1:0] s);
        next_of = s[PB-1:0] == TILE - 1 ? {s[SW-1:PB] + 1'b1, {PB{1'b0}}} : s + 1'b1;
    endfunction
    wire [7:0] in_block = now % SUM, now_place = place_of(now, tiles);
    reg  [7:0] now_port, now_left;              // whose beat it is; its beats after this one
    always @* begin
        {now_port, now_left} = 0;
        for (i = 0; i < PORTS; i = i + 1)
            if (in_block >= BEFORE[8*i +: 8] && in_block < BEFORE[8*i+8 +: 8]) begin
                now_port = i;
                now_left = BEFORE[8*i+8 +: 8] - 1 - in_block;
            end
    end
    claim u_port (.holds(!past || m_axis_tvalid == 0 || (count != 0 && m_axis_tvalid == 1 << now_port)));
    claim u_data (.holds(!past || m_axis_tvalid == 0 || m_axis_tdata[WA-1:0] == now_place));
    stream #(.DATA(DATA_WIDTH + PORTS)) u_m (.clk(clk), .rst(rst || flush), .valid(m_axis_tvalid != 0), .ready(give),
        .data({m_axis_tvalid, m_axis_tdata}), .user(3'd0));

    // ---- for the induction: the beats that are inside, asked for, to be asked for, are those that are wanted next
    wire [SW*(DEPTH+3)-1:0] line;
    assign line[SW-1:0] = now;
    generate
        for (g = 0; g < DEPTH + 2; g = g + 1) begin : g_line
            wire [SW-1:0] this = line[SW*g +: SW];
            assign line[SW*(g+1) +: SW] = inside[g] ? next_of(this) : this;
            always @* if (past && inside[g]) assert (this[SW-1:PB] < count && from[WA*g +: WA] == place_of(this, tiles));
        end
    endgenerate
    wire [SW-1:0]  then = line[SW*(DEPTH+2) +: SW];         // the next beat to be asked for
    wire [7:0]     at = place_of(then, tiles);
    always @* if (past) begin
        // the requests: the last one is of the iteration whose offset is kept
        assert (now < TILE && count < TILES && current < n && (some || (current == 0 && count == 0)));
        assert (dut.begun == some && dut.iteration == current && dut.offset == OFFSET + current * STRIDE[7:0]);
        if (count != 0) assert (((tiles >> 2 * (count - 1'b1)) & 3) == current);
        assert (!dut.waits || count != 0);
        assert (then[SW-1:PB] + dut.u_reader.active + dut.waits == count);
        // the reader
        if (dut.u_reader.drain) assert (now == 0);
        if (dut.u_reader.active) assert (dut.u_reader.left == TILE - then[PB-1:0] && dut.u_reader.addr == home + at);
        else assert (then[PB-1:0] == 0);
        // the router
        if (!begun) assert (dut.u_router.select == 0 && dut.u_router.next == 0 && now == 0 && count == 0 && !dut.u_router.u_in.valid_reg);
        else assert (dut.u_router.select == 1 << now_port && dut.u_router.left == now_left && dut.u_router.next == (now_port == PORTS - 1 ? 0 : now_port + 1));
    end

    // not vacuous: after a flush that had to wait for beats under way, a tile of iteration 1 begins, and another request waits
    reg flushed;
    always @(posedge clk) flushed <= !rst && (flushed || (dut.u_reader.drain && owed != 0));
    goal u_goal (.reached(past && flushed && give && tiles[1:0] == 1 && dut.waits));
