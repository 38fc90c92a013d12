// SPDX-License-Identifier: MIT
// mlo_axi_share: each port's requests go out once, as they are, and the answers come back to that port; AR and R keep AXI's
// rules if the ports' AR and the memory's R do; who waits sees each other port pass once at most
inner [PORTS-1:0] dut.behind;
inner [$clog2(DEPTH+1)-1:0] dut.u_owners.level;
inner [PORTS*DEPTH-1:0] dut.u_owners.words;
    localparam LW = $clog2(DEPTH + 1) + 1, W = ADDR_WIDTH + 8;

    // ---- the masters: what they ask for stands until it is taken
    wire [PORTS-1:0] asks = s_arvalid & s_arready;
    wire             ask  = asks != 0, ar_take = m_axi_arvalid && m_axi_arready, r_take = m_axi_rvalid && m_axi_rready;
    wire             r_end = r_take && m_axi_rlast;
    reg  [W-1:0]     asked;                     // what goes in
    integer          p;
    always @* begin
        asked = 0;
        for (p = 0; p < PORTS; p = p + 1) if (asks[p]) asked = {s_arlen[8*p +: 8], s_araddr[ADDR_WIDTH*p +: ADDR_WIDTH]};
    end
    genvar g;
    generate
        for (g = 0; g < PORTS; g = g + 1) begin : g_master
            stream #(.GIVEN(1), .DATA(W)) u_ar (.clk(clk), .rst(rst), .valid(s_arvalid[g]), .ready(s_arready[g]),
                .data({s_arlen[8*g +: 8], s_araddr[ADDR_WIDTH*g +: ADDR_WIDTH]}), .user(3'd0));
            stream #(.DATA(DATA_WIDTH + 3)) u_r (.clk(clk), .rst(rst), .valid(s_rvalid[g]), .ready(s_rready[g]), .data({s_rlast, s_rresp, s_rdata}), .user(3'd0));
        end
    endgenerate
    reg [4:0] kind_was;
    always @(posedge clk) kind_was <= {s_arsize, s_arburst};
    always @* if (past) assume (kind_was == {s_arsize, s_arburst});

    // ---- the memory: any latency, any stall; as many beats as were asked for, in the order of the requests
    reg  [LW-1:0]      owed;                    // requests it has taken
    reg  [8*DEPTH-1:0] lengths;                 // of these, oldest first
    reg  [7:0]         beat_of;                 // of the oldest
    wire [LW-1:0]      kept = owed - r_end;
    wire [8*DEPTH-1:0] rest = r_end ? lengths >> 8 : lengths;
    integer            i;
    always @(posedge clk) begin
        owed <= rst ? 0 : kept + ar_take;
        if (r_take) beat_of <= m_axi_rlast ? 0 : beat_of + 1'b1;
        if (rst)    beat_of <= 0;
        for (i = 0; i < DEPTH; i = i + 1) lengths[8*i +: 8] <= ar_take && kept == i ? m_axi_arlen : rest[8*i +: 8];
    end
    always @* if (past && m_axi_rvalid) begin
        assume (owed != 0);
        assume (m_axi_rlast == (beat_of == lengths[7:0]));
    end
    stream #(.GIVEN(1), .DATA(DATA_WIDTH + 3)) u_memory (.clk(clk), .rst(rst), .valid(m_axi_rvalid), .ready(m_axi_rready), .data({m_axi_rlast, m_axi_rresp, m_axi_rdata}), .user(3'd0));
    always @* if (past) assert (owed <= DEPTH && (owed == 0 ? beat_of == 0 : beat_of <= lengths[7:0]));

    // ---- requests: the sequence that goes out is the one that came in
    stream #(.DATA(W + 6)) u_ar (.clk(clk), .rst(rst), .valid(m_axi_arvalid), .ready(m_axi_arready),
        .data({m_axi_arid, m_axi_arburst, m_axi_arsize, m_axi_arlen, m_axi_araddr}), .user(3'd0));
    watch #(.BITS(W), .N(1)) u_requests (.clk(clk), .rst(rst), .in_take(ask), .in_word(asked), .out_valid(m_axi_arvalid), .out_take(ar_take), .out_word({m_axi_arlen, m_axi_araddr}),
        .line_valid(m_axi_arvalid), .line_ends(m_axi_arvalid), .line_word({m_axi_arlen, m_axi_araddr}));
    claim u_one  (.holds((s_arready & (s_arready - 1'b1)) == 0));
    claim u_kind (.holds({m_axi_arid, m_axi_arsize, m_axi_arburst} == {1'b0, s_arsize, s_arburst}));

    // ---- answers: each to who asked, one for one
    reg  [LW-1:0]          waiting;             // requests not answered in full
    reg  [PORTS*DEPTH-1:0] who;                 // asked, oldest first; one bit each
    wire [LW-1:0]          left = waiting - r_end;
    wire [PORTS*DEPTH-1:0] after = r_end ? who >> PORTS : who;
    always @(posedge clk) begin
        waiting  <= rst ? 0 : left + ask;
        for (i = 0; i < DEPTH; i = i + 1) who[PORTS*i +: PORTS] <= ask && left == i ? asks : after[PORTS*i +: PORTS];
    end
    claim u_who  (.holds(!past || s_rvalid == 0 || (waiting != 0 && m_axi_rvalid && s_rvalid == who[PORTS-1:0])));
    claim u_once (.holds(!past || r_take == ((s_rvalid & s_rready) != 0)));
    claim u_word (.holds({s_rlast, s_rresp, s_rdata} == {m_axi_rlast, m_axi_rresp, m_axi_rdata}));
    always @* if (past) begin
        assert (waiting == owed + m_axi_arvalid && waiting == dut.u_owners.level && waiting <= DEPTH);
        for (i = 0; i < DEPTH; i = i + 1) if (i < waiting) begin
            assert (dut.u_owners.words[PORTS*i +: PORTS] == who[PORTS*i +: PORTS]);
            assert (who[PORTS*i +: PORTS] != 0 && (who[PORTS*i +: PORTS] & (who[PORTS*i +: PORTS] - 1'b1)) == 0);
        end
    end

    // ---- turns: passed[a]: who was served since port a asked. All of these lie behind a, up to the one served last.
    reg  [PORTS*PORTS-1:0] passed;
    reg  [PORTS-1:0]       above;
    reg                    fair, turns;
    wire [PORTS-1:0]       up_to = ~dut.behind;             // ports up to the one served last
    integer                a;
    always @(posedge clk) for (a = 0; a < PORTS; a = a + 1)
        passed[PORTS*a +: PORTS] <= rst || !s_arvalid[a] || s_arready[a] ? 0 : passed[PORTS*a +: PORTS] | asks;
    always @* begin
        {fair, turns} = 2'b11;
        for (a = 0; a < PORTS; a = a + 1) begin
            above = ~((2 << a) - 1);
            if (s_arvalid[a] && (passed[PORTS*a +: PORTS] & asks) != 0) fair = 1'b0;
            if ((passed[PORTS*a +: PORTS] & ~(up_to[a] ? above & up_to : above | up_to)) != 0) turns = 1'b0;
            if (!s_arvalid[a] && passed[PORTS*a +: PORTS] != 0) turns = 1'b0;
        end
    end
    claim u_fair (.holds(!past || fair));
    always @* if (past) assert (turns && (dut.behind & ~(dut.behind << 1)) == (dut.behind & -dut.behind) && (dut.behind == 0 || dut.behind[PORTS-1]));

    // not vacuous: all that may be under way is; later the last port gets an answer, the first one having had one
    reg full, one, all;
    always @(posedge clk) begin
        if (waiting == DEPTH) full <= 1'b1;
        if (full && (s_rvalid & s_rready & 1) != 0 && s_rlast) one <= 1'b1;
        if (one && (s_rvalid & s_rready) >> (PORTS - 1) != 0 && s_rlast) all <= 1'b1;
        if (rst) {full, one, all} <= 0;
    end
    goal u_goal (.reached(past && all));
