// SPDX-License-Identifier: MIT
// mlo_refill, with mlo_axi_reader and mlo_router: the rules of AXI4's read channels, and for each tile that is requested, in
// their order, the beats of all blocks of its iteration, to each port its own, from the right addresses; also across flushes.
// The memory holds at each place that place, counted from base, as in mlo_loader's contract: what arrives tells where it is from.
// (Up to 3 iterations. base and iterations stand still from flush on.)
inner dut.waits;
inner dut.begun;
inner [47:0] dut.offset;
inner [15:0] dut.iteration;
inner dut.u_reader.active;
inner dut.u_reader.sized;
inner dut.u_reader.drain;
inner [ADDR_WIDTH-$clog2(DATA_WIDTH/8)-1:0] dut.u_reader.addr;
inner [47:0] dut.u_reader.left;
inner [8:0] dut.u_reader.length;
inner [15:0] dut.u_reader.free;
inner [15:0] dut.u_reader.inflight;
inner [$clog2(FIFO_BEATS+1)-1:0] dut.u_reader.u_fifo.level;
inner [DATA_WIDTH*FIFO_BEATS-1:0] dut.u_reader.u_fifo.words;
inner dut.u_router.u_in.valid_reg;
inner dut.u_router.u_in.full_reg;
inner [DATA_WIDTH-1:0] dut.u_router.u_in.out_reg;
inner [DATA_WIDTH-1:0] dut.u_router.u_in.spare_reg;
inner [PORTS-1:0] dut.u_router.select;
inner [31:0] dut.u_router.left;
inner [((PORTS > 1) ? $clog2(PORTS) : 1)-1:0] dut.u_router.next;
    localparam SIZE = $clog2(DATA_WIDTH / 8), WA = ADDR_WIDTH - SIZE, PAGE = 4096 / (DATA_WIDTH / 8);
    localparam BURST = (MAX_BURST < PAGE) ? MAX_BURST : PAGE, DEPTH = FIFO_BEATS, QB = $clog2(DEPTH + 1) + 1;

    function [8*PORTS+7:0] sums(input integer unused);      // beats of a block before each port, and of all
        integer q;
        begin
            sums = 0;
            for (q = 0; q < PORTS; q = q + 1) sums[8*q+8 +: 8] = sums[8*q +: 8] + BEATS[32*q +: 8];
        end
    endfunction
    localparam [8*PORTS+7:0] BEFORE = sums(0);
    localparam SUM = BEFORE[8*PORTS +: 8], TILE = BLOCKS * SUM;
    localparam TILES = (DEPTH + 2) / TILE + 4;              // so many may be requested and not delivered
    // A beat that is wanted: {which of those tiles, place in it}.
    localparam PB = (TILE > 1) ? $clog2(TILE) : 1, TB = $clog2(TILES + 1), SW = TB + PB;

    // ---- who writes the registers: as in mlo_loader's contract
    reg [15:0]           it_was;
    reg [ADDR_WIDTH-1:0] base_was;
    always @(posedge clk) {it_was, base_was} <= {iterations, base};
    wire [1:0]    n     = it_was == 0 ? 1 : it_was;
    wire [WA-1:0] home  = base_was[ADDR_WIDTH-1:SIZE];
    always @* begin
        assume (iterations < 4);
        if (past && !flush) assume (iterations == it_was && base == base_was);
        if (past) assert (it_was < 4);
    end

    // ---- the memory: as there, too
    wire              ar_take = m_axi_arvalid && m_axi_arready, r_take = m_axi_rvalid && m_axi_rready;
    wire [WA-1:0]     ar_beat = m_axi_araddr[ADDR_WIDTH-1:SIZE];
    wire [8:0]        ar_size = m_axi_arlen + 9'd1;
    reg  [QB-1:0]     owed;
    reg  [WA*DEPTH-1:0] queue;                  // where they are, from base
    wire [WA-1:0]     ar_place = ar_beat - home;
    wire [QB-1:0]     kept = owed - r_take;
    wire [WA*DEPTH-1:0] rest = r_take ? queue >> WA : queue;
    integer           i;
    always @(posedge clk) begin
        owed <= rst ? 0 : kept + (ar_take ? ar_size : 0);
        for (i = 0; i < DEPTH; i = i + 1)
            queue[i*WA +: WA] <= i < kept ? rest[i*WA +: WA] : ar_place + i - kept;
    end
    always @* if (past && m_axi_rvalid) begin
        assume (owed != 0);
        assume (m_axi_rdata[WA-1:0] == queue[WA-1:0]);
    end
    stream #(.DATA(ADDR_WIDTH + 14)) u_ar (.clk(clk), .rst(rst), .valid(m_axi_arvalid), .ready(m_axi_arready),
        .data({m_axi_arid, m_axi_arburst, m_axi_arsize, m_axi_arlen, m_axi_araddr}), .user(3'd0));
    wire [12:0] page_end = m_axi_araddr[11:0] + (ar_size << SIZE);
    claim u_kind  (.holds(!past || !m_axi_arvalid || (m_axi_arburst == 1 && m_axi_arsize == SIZE && !m_axi_arid && m_axi_araddr % (DATA_WIDTH/8) == 0)));
    claim u_burst (.holds(!past || !m_axi_arvalid || (ar_size <= MAX_BURST && page_end <= 4096)));
    claim u_room  (.holds(!past || owed + (m_axi_arvalid ? ar_size : 0) <= DEPTH));
    claim u_ready (.holds(!past || !m_axi_rvalid || m_axi_rready));
    claim u_idle  (.holds(!past || idle == (owed == 0 && !m_axi_arvalid)));

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
    wire [QB-1:0]    pending = m_axi_arvalid ? ar_size : 0, level = dut.u_reader.u_fifo.level;
    wire [WA-1:0]    edge_at = ar_beat & (BURST - 1), edge_to = dut.u_reader.addr & (BURST - 1);
    wire [8:0]       longest = BURST - edge_to;
    wire [DEPTH+1:0] inside;                    // oldest first: in the router, in the FIFO, owed, in the request on offer
    wire [SW*(DEPTH+3)-1:0] line;
    assign inside[1:0] = {dut.u_router.u_in.full_reg, dut.u_router.u_in.valid_reg};
    assign line[SW-1:0] = now;
    genvar g;
    generate
        for (g = 0; g < DEPTH + 2; g = g + 1) begin : g_line
            wire [SW-1:0] this = line[SW*g +: SW];
            wire [WA-1:0] from;
            assign line[SW*(g+1) +: SW] = inside[g] ? next_of(this) : this;
            if (g < 2) begin : g_router
                assign from = g == 0 ? dut.u_router.u_in.out_reg[WA-1:0] : dut.u_router.u_in.spare_reg[WA-1:0];
            end else begin : g_reader
                localparam K = g - 2;
                wire [QB-1:0] behind = K - level, last = behind - owed;
                wire [WA*DEPTH-1:0] rest = queue >> behind * WA;
                assign from = K < level ? dut.u_reader.u_fifo.words[K*DATA_WIDTH +: WA] : behind < owed ? rest[WA-1:0] : ar_place + last;
                assign inside[g] = K < level + owed + pending && !dut.u_reader.drain;
            end
            always @* if (past && inside[g]) assert (this[SW-1:PB] < count && from == place_of(this, tiles));
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
        assert (dut.u_reader.inflight == owed + pending);
        assert (owed <= DEPTH && (!m_axi_arvalid || ar_size <= BURST));
        if (dut.u_reader.drain) assert (level == 0 && dut.u_reader.free == DEPTH && !dut.u_reader.active && now == 0 && !dut.u_router.u_in.valid_reg);
        else assert (dut.u_reader.free + owed + pending + level == DEPTH && dut.u_reader.free <= DEPTH);
        if (m_axi_arvalid) assert (edge_at + m_axi_arlen < BURST);
        if (dut.u_reader.sized) assert (dut.u_reader.active && dut.u_reader.length == (dut.u_reader.left < longest ? dut.u_reader.left : longest));
        if (dut.u_reader.active) assert (dut.u_reader.left == TILE - then[PB-1:0] && dut.u_reader.addr == home + at);
        else assert (then[PB-1:0] == 0);
        // the router
        assert (dut.u_router.u_in.valid_reg || !dut.u_router.u_in.full_reg);
        if (!begun) assert (dut.u_router.select == 0 && dut.u_router.next == 0 && now == 0 && count == 0 && !dut.u_router.u_in.valid_reg);
        else assert (dut.u_router.select == 1 << now_port && dut.u_router.left == now_left && dut.u_router.next == (now_port == PORTS - 1 ? 0 : now_port + 1));
    end

    // not vacuous: after a flush that had to wait for beats under way, a tile of iteration 1 begins, and another request waits
    reg flushed;
    always @(posedge clk) flushed <= !rst && (flushed || (dut.u_reader.drain && owed != 0));
    goal u_goal (.reached(past && flushed && give && tiles[1:0] == 1 && dut.waits));
