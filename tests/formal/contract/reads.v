// SPDX-License-Identifier: MIT
// What mlo_loader's and mlo_refill's contracts share (`uses reads;`): mlo_axi_reader under the rules of AXI4's read channels, before
// a memory that holds at each place that place, counted from base: what arrives tells where it is from; and, for the induction,
// which beats are inside the reader and the router behind it, and where they are from.
// (Up to 3 iterations. base and iterations stand still from flush on.)
inner dut.u_reader.active;
inner dut.u_reader.sized;
inner dut.u_reader.drain;
inner [ADDR_WIDTH-$clog2(DATA_WIDTH/8)-1:0] dut.u_reader.addr;
inner [47:0] dut.u_reader.left;
inner [8:0] dut.u_reader.length;
inner [(($clog2(FIFO_BEATS+1) > 9) ? $clog2(FIFO_BEATS+1) : 9)-1:0] dut.u_reader.free;
inner [(($clog2(FIFO_BEATS+1) > 9) ? $clog2(FIFO_BEATS+1) : 9)-1:0] dut.u_reader.inflight;
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

    function [8*PORTS+7:0] sums(input integer unused);      // beats before each port, and of all: in an iteration, or a block
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

    // ---- the beats that are inside, oldest first: in the router, in the FIFO, owed, in the request on offer
    wire [QB-1:0]    pending = m_axi_arvalid ? ar_size : 0, level = dut.u_reader.u_fifo.level;
    wire [WA-1:0]    edge_at = ar_beat & (BURST - 1), edge_to = dut.u_reader.addr & (BURST - 1);
    wire [8:0]       longest = BURST - edge_to;
    wire [DEPTH+1:0] inside;
    wire [WA*(DEPTH+2)-1:0] from;
    assign inside[1:0] = {dut.u_router.u_in.full_reg, dut.u_router.u_in.valid_reg};
    assign from[2*WA-1:0] = {dut.u_router.u_in.spare_reg[WA-1:0], dut.u_router.u_in.out_reg[WA-1:0]};
    genvar g;
    generate
        for (g = 0; g < DEPTH; g = g + 1) begin : g_inside
            wire [QB-1:0] behind = g - level, last = behind - owed;
            wire [WA*DEPTH-1:0] rest = queue >> behind * WA;
            assign inside[g+2] = g < level + owed + pending && !dut.u_reader.drain;
            assign from[WA*(g+2) +: WA] = g < level ? dut.u_reader.u_fifo.words[g*DATA_WIDTH +: WA] : behind < owed ? rest[WA-1:0] : ar_place + last;
        end
    endgenerate
    always @* if (past) begin
        assert (dut.u_reader.inflight == owed + pending);
        assert (owed <= DEPTH && (!m_axi_arvalid || ar_size <= BURST));
        if (dut.u_reader.drain) assert (level == 0 && dut.u_reader.free == DEPTH && !dut.u_reader.active && !dut.u_router.u_in.valid_reg);
        else assert (dut.u_reader.free + owed + pending + level == DEPTH && dut.u_reader.free <= DEPTH);
        if (m_axi_arvalid) assert (edge_at + m_axi_arlen < BURST);
        if (dut.u_reader.sized) assert (dut.u_reader.active && dut.u_reader.length == (dut.u_reader.left < longest ? dut.u_reader.left : longest));
        assert (dut.u_router.u_in.valid_reg || !dut.u_router.u_in.full_reg);
    end
