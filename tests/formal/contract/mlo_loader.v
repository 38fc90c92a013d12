// SPDX-License-Identifier: MIT
// mlo_loader, with mlo_axi_reader and mlo_router: the rules of AXI4's read channels, and to each port its beats from the right
// addresses, in order, iteration after iteration and round after round, RESIDENT ports in the first round only; also across
// flushes. Nothing here looks at data, so the memory may hold at each place that place, counted from base: what arrives tells
// where it is from.
// (Up to 3 iterations a round. base and iterations stand still from flush on.)
inner dut.go;
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
inner dut.u_router.closing;
inner [31:0] dut.u_router.left;
inner [((PORTS > 1) ? $clog2(PORTS) : 1)-1:0] dut.u_router.next;
inner [15:0] dut.u_router.iteration;
inner dut.u_router.later;
inner dut.g_runs.later;
inner dut.g_runs.run_valid;
inner [47:0] dut.g_runs.run;
inner [47:0] dut.g_runs.at;
inner [47:0] dut.g_runs.beats;
inner [((PORTS > 1) ? $clog2(PORTS) : 1)-1:0] dut.g_runs.port;
inner [15:0] dut.g_runs.iteration;
    localparam SIZE = $clog2(DATA_WIDTH / 8), WA = ADDR_WIDTH - SIZE, PAGE = 4096 / (DATA_WIDTH / 8);
    localparam BURST = (MAX_BURST < PAGE) ? MAX_BURST : PAGE, DEPTH = FIFO_BEATS, QB = $clog2(DEPTH + 1) + 1;
    localparam ALL = &RESIDENT, SLOTS = 3 * PORTS;

    // ---- the order in which beats are wanted: see `dealt`
    localparam PB = (PORTS > 1) ? $clog2(PORTS) : 1, IB = 3, SW = 3 + PB + IB;
    function [8*PORTS+7:0] sums(input integer unused);      // beats of an iteration before each port, and of all
        integer q;
        begin
            sums = 0;
            for (q = 0; q < PORTS; q = q + 1) sums[8*q+8 +: 8] = sums[8*q +: 8] + BEATS[32*q +: 8];
        end
    endfunction
    localparam [8*PORTS+7:0] BEFORE = sums(0);
    localparam [7:0] SUM = BEFORE[8*PORTS +: 8];

    // ---- who writes the registers: base and iterations change while flush is high only (until then the old ones count)
    reg [15:0]           it_was;
    reg [ADDR_WIDTH-1:0] base_was;
    always @(posedge clk) {it_was, base_was} <= {iterations, base};
    wire [1:0]    n     = it_was == 0 ? 1 : it_was;
    wire [7:0]    round = n * SUM;
    wire [WA-1:0] home  = base_was[ADDR_WIDTH-1:SIZE];
    always @* begin
        assume (iterations < 4);
        if (past && !flush) assume (iterations == it_was && base == base_was);
        if (past) assert (it_was < 4);
    end

    // ---- the memory: any latency, any stall; beats in the order in which they were asked for
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

    // ---- what is delivered
    reg  [SW-1:0] now;                          // the next beat that is wanted
    reg           begun, beat_was;              // a cycle after reset or flush
    wire          give = (m_axis_tvalid & m_axis_tready) != 0;
    wire          none = ALL && now[SW-1];
    wire [SW-1:0] now_next, now_slot;
    wire [7:0]    now_place;
    dealt #(.PORTS(PORTS), .BEATS(BEATS), .RESIDENT(RESIDENT), .BEFORE(BEFORE)) u_now (.n(n), .s(now), .place(now_place), .next(now_next), .slot(now_slot));
    wire          closing = now[IB+PB +: 2] + 3'd1 == n;
    always @(posedge clk) begin
        if (give) now <= now_next;
        begun    <= !(rst || flush);
        beat_was <= give && !(rst || flush);
        if (rst || flush) now <= 0;
    end
    claim u_port (.holds(!past || m_axis_tvalid == 0 || (!none && m_axis_tvalid == 1 << now[IB +: PB])));
    claim u_data (.holds(!past || m_axis_tvalid == 0 || m_axis_tdata[WA-1:0] == now_place));
    claim u_last (.holds(!past || m_axis_tvalid == 0 || now[SW-1] || m_axis_tlast == closing));
    claim u_beat (.holds(!past || beat == beat_was));
    claim u_total (.holds(!past || total == round));
    stream #(.DATA(DATA_WIDTH + 1 + PORTS)) u_m (.clk(clk), .rst(rst || flush), .valid(m_axis_tvalid != 0), .ready(give),
        .data({m_axis_tvalid, m_axis_tlast, m_axis_tdata}), .user(3'd0));

    // ---- for the induction: the beats that are inside, asked for, to be asked for, are those that are wanted next
    localparam [SW-1:0] BEGIN = 0;
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
            wire [SW-1:0] this = line[SW*g +: SW], next, slot;
            wire [7:0]    place;
            wire [WA-1:0] from;
            dealt #(.PORTS(PORTS), .BEATS(BEATS), .RESIDENT(RESIDENT), .BEFORE(BEFORE)) u_dealt (.n(n), .s(this), .place(place), .next(next), .slot(slot));
            assign line[SW*(g+1) +: SW] = inside[g] ? next : this;
            if (g < 2) begin : g_router
                assign from = g == 0 ? dut.u_router.u_in.out_reg[WA-1:0] : dut.u_router.u_in.spare_reg[WA-1:0];
            end else begin : g_reader
                localparam K = g - 2;
                wire [QB-1:0] behind = K - level, last = behind - owed;
                wire [WA*DEPTH-1:0] rest = queue >> behind * WA;
                assign from = K < level ? dut.u_reader.u_fifo.words[K*DATA_WIDTH +: WA] : behind < owed ? rest[WA-1:0] : ar_place + last;
                assign inside[g] = K < level + owed + pending && !dut.u_reader.drain;
            end
            always @* if (past && inside[g]) assert (!(ALL && this[SW-1]) && from == place);
        end
    endgenerate
    wire [SW-1:0]  then = line[SW*(DEPTH+2) +: SW];         // the next beat to be asked for
    wire [7:0]     at;                                      // its place
    wire [SW-1:0]  then_next, then_slot;
    dealt #(.PORTS(PORTS), .BEATS(BEATS), .RESIDENT(RESIDENT), .BEFORE(BEFORE)) u_then (.n(n), .s(then), .place(at), .next(then_next), .slot(then_slot));
    wire [SW-1:0]  slot = now_slot;
    wire [PB-1:0]  now_port = now[IB +: PB];
    always @* if (past) begin
        assert (now[IB-1:0] < BEATS[32*now_port +: 8] && now_port < PORTS && now[IB+PB +: 2] < n && (!now[SW-1] || ALL || !RESIDENT[now_port]));
        if (none) assert (now[SW-2:0] == 0);
        // the reader
        assert (dut.u_reader.inflight == owed + pending);
        assert (owed <= DEPTH && (!m_axi_arvalid || ar_size <= BURST));
        if (dut.u_reader.drain) assert (level == 0 && dut.u_reader.free == DEPTH && !dut.u_reader.active && now == BEGIN && !dut.u_router.u_in.valid_reg);
        else assert (dut.u_reader.free + owed + pending + level == DEPTH && dut.u_reader.free <= DEPTH);
        if (m_axi_arvalid) assert (edge_at + m_axi_arlen < BURST);
        if (dut.u_reader.sized) assert (dut.u_reader.active && dut.u_reader.length == (dut.u_reader.left < longest ? dut.u_reader.left : longest));
        if (dut.u_reader.active) assert (dut.u_reader.left != 0 && dut.u_reader.left <= round && dut.u_reader.addr == home + at && !(ALL && then[SW-1]));
        // the router
        assert (dut.u_router.u_in.valid_reg || !dut.u_router.u_in.full_reg);
        if (!begun) assert (dut.u_router.select == 0 && dut.u_router.next == 0 && dut.u_router.iteration == 0 && !dut.u_router.later && now == BEGIN
                            && !dut.u_router.u_in.valid_reg);
        else begin
            assert (dut.u_router.select == (none ? 0 : 1 << now_port));
            if (!none) begin
                assert (dut.u_router.left == BEATS[32*now_port +: 8] - now[IB-1:0] - 1);
                assert (dut.u_router.later == slot[SW-1] && ((ALL && slot[SW-1]) || dut.u_router.next == slot[IB +: PB]));
                assert (now[SW-1] || dut.u_router.closing == closing);
                assert (now[SW-1] || dut.u_router.iteration == now[IB+PB +: 2] + (now_port == PORTS - 1));
            end else assert (dut.u_router.later);
        end
    end
    generate
        if (RESIDENT == 0) begin : g_round
            always @* if (past) assert (dut.u_reader.active ? dut.u_reader.left == round - at : at == 0);
        end else begin : g_runs
            // Where a read may begin or end: at a port's first beat. Between what was asked for (end_at) and the run in preparation
            // lie RESIDENT ports alone, in what is asked for and in the run none of them. `then` is where the first of all that is.
            wire        active = dut.u_reader.active, later = dut.g_runs.later, first = active && !then[SW-1];
            wire [7:0]  end_at = at + dut.u_reader.left[7:0], run = dut.g_runs.run[7:0], beats = dut.g_runs.beats[7:0], walk = dut.g_runs.at[7:0];
            wire [7:0]  run_to = run + beats;
            wire        keeps = RESIDENT[dut.g_runs.port];
            reg         boundary, begins, clean;
            reg  [7:0]  start;
            integer     s;
            function within(input [7:0] x, input [7:0] a, input [7:0] b);           // x in [a, b), round the end of the image
                within = a <= b ? (x >= a && x < b) : (x >= a || x < b);
            endfunction
            always @* begin
                boundary = end_at == round;
                begins   = 1'b0;
                clean    = 1'b1;
                for (s = 0; s < SLOTS; s = s + 1) begin
                    start = (s / PORTS) * SUM + BEFORE[8*(s % PORTS) +: 8];
                    if (s < n * PORTS) begin
                        if (start == end_at) boundary = 1'b1;
                        if (start == run)    begins   = 1'b1;
                        if (RESIDENT[s % PORTS]) begin
                            if (active && !first && start >= at && start < end_at) clean = 1'b0;
                            if (start >= run && start < run_to) clean = 1'b0;
                        end else
                            if (active ? within(start, end_at, run) : within(start, run, at)) clean = 1'b0;
                    end
                end
            end
            always @* if (past) begin
                assert (dut.g_runs.run[47:8] == 0 && dut.g_runs.beats[47:8] == 0 && dut.g_runs.at[47:8] == 0);
                assert (dut.g_runs.port < PORTS && dut.g_runs.iteration < n);
                assert (walk == dut.g_runs.iteration * SUM + BEFORE[8*dut.g_runs.port +: 8]);
                if (!later) assert (!active && then == BEGIN && run == 0 && walk == 0 && beats == 0 && !dut.g_runs.run_valid);
                else if (ALL) assert (walk == 0 && run == 0 && beats == 0 && !dut.g_runs.run_valid && (first ? end_at == round : !active && then[SW-1]));
                else begin
                    assert (clean && begins && run <= run_to && run_to <= round);
                    if (active) assert (boundary && end_at <= round);
                    if (first)  assert (end_at == round);
                    if (!active) assert (then[SW-1] && then[IB-1:0] == 0);
                    if (beats == 0) assert (run == walk && !dut.g_runs.run_valid);
                    else if (!dut.g_runs.run_valid) assert (run_to == walk);
                    else assert ((run_to == walk && keeps) || (run_to == round && walk == 0));
                end
                if (dut.u_reader.drain || !begun) assert (!later);
            end
        end
    endgenerate

    // not vacuous: a later round, after a wait on both sides; with few ports: of two iterations, after a flush that had to wait
    // for beats under way
    reg flushed, port_waited, ar_waited;
    always @(posedge clk) begin
        if (dut.u_reader.drain && owed != 0) flushed <= 1'b1;
        if (m_axis_tvalid != 0 && !give) port_waited <= 1'b1;
        if (m_axi_arvalid && !m_axi_arready) ar_waited <= 1'b1;
        if (rst) {flushed, port_waited, ar_waited} <= 0;
    end
    goal u_goal (.reached(past && (flushed || PORTS > 2) && port_waited && ar_waited && now[SW-1] && (PORTS > 2 || (n == 2 && (ALL || now[IB+PB +: 2] == 1)))));
