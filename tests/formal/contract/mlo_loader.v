// SPDX-License-Identifier: MIT
// mlo_loader, with mlo_axi_reader and mlo_router: the rules of AXI4's read channels, and to each port its beats from the right
// addresses, in order, iteration after iteration and round after round, RESIDENT ports in the first round only; also across
// flushes. (Up to 3 iterations a round.)
uses reads;
inner dut.go;
inner dut.u_router.closing;
inner [15:0] dut.u_router.iteration;
inner dut.u_router.later;
inner dut.g_runs.later;
inner dut.g_runs.run_valid;
inner [47:0] dut.g_runs.run;
inner [47:0] dut.g_runs.at;
inner [47:0] dut.g_runs.beats;
inner [((PORTS > 1) ? $clog2(PORTS) : 1)-1:0] dut.g_runs.port;
inner [15:0] dut.g_runs.iteration;
    localparam ALL = &RESIDENT, SLOTS = 3 * PORTS;
    wire [7:0] round = n * SUM;

    // ---- the order in which beats are wanted: see `dealt`
    localparam PB = (PORTS > 1) ? $clog2(PORTS) : 1, IB = 3, SW = 3 + PB + IB;

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
    wire [SW*(DEPTH+3)-1:0] line;
    assign line[SW-1:0] = now;
    generate
        for (g = 0; g < DEPTH + 2; g = g + 1) begin : g_line
            wire [SW-1:0] this = line[SW*g +: SW], next, slot;
            wire [7:0]    place;
            dealt #(.PORTS(PORTS), .BEATS(BEATS), .RESIDENT(RESIDENT), .BEFORE(BEFORE)) u_dealt (.n(n), .s(this), .place(place), .next(next), .slot(slot));
            assign line[SW*(g+1) +: SW] = inside[g] ? next : this;
            always @* if (past && inside[g]) assert (!(ALL && this[SW-1]) && from[WA*g +: WA] == place);
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
        if (dut.u_reader.drain) assert (now == 0);
        if (dut.u_reader.active) assert (dut.u_reader.left != 0 && dut.u_reader.left <= round && dut.u_reader.addr == home + at && !(ALL && then[SW-1]));
        // the router
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
