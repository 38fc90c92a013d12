// SPDX-License-Identifier: MIT
// Two mlo_refill (clients 0 and 1) and one mlo_loader (2) at one mlo_sim_ram, through mlo_axi_share. All have two ports, and
// each client's beats are compared, with their ports. One client may take nothing for a long time: the others go on.
`default_nettype none
module share_tb;
    parameter B00 = 5, B01 = 1, BLOCKS0 = 2, OFFSET0 = 0, STRIDE0 = 12;
    parameter B10 = 9, B11 = 2, BLOCKS1 = 3, OFFSET1 = 0, STRIDE1 = 33;
    parameter B20 = 7, B21 = 3;
    parameter FIFO_BEATS = 512;
    parameter MAX_BURST = 64;
    parameter DEPTH = 32;                           // of mlo_axi_share
    localparam W = 128, RAM = 8192, BURST = MAX_BURST;
    localparam [31:0] B00_V = B00, B01_V = B01, B10_V = B10, B11_V = B11, B20_V = B20, B21_V = B21;
    localparam [31:0] OFFSET0_V = OFFSET0, OFFSET1_V = OFFSET1, STRIDE0_V = STRIDE0, STRIDE1_V = STRIDE1;

    reg clk = 0, rst = 1, enable = 0, holding = 1;
    reg [2:0] flush = 0;
    always #5 clk = !clk;
    integer cycle = 0;
    always @(posedge clk) cycle <= cycle + 1;

    integer seed, stall, stall_in, stall_out, latency, rate, iterations, tiles0, tiles1, count0, count1, count2, base_word, fault, held, hold, flush_at, flush_mask;
    integer errors, i, c, last_r, longest, faults, full, pulses, received, dropped, free_at, share_of, patience;
    integer seen [0:2], taken [0:2], passed [0:2], tiles [0:2], count [0:2], finished [0:2];
    reg [63:0] ram_base, base;

    // ------------------------------------------------------------------ the clients
    wire [2:0] arid, arvalid, arready, rvalid, rready, error, idle;
    wire [191:0] araddr;
    wire [23:0] arlen;
    wire [8:0] arsize;
    wire [5:0] arburst;
    wire [W-1:0] s_rdata;
    wire [1:0] s_rresp;
    wire s_rlast;
    wire [W-1:0] data [0:2];
    wire [1:0] valid [0:2];
    reg  [1:0] ready [0:2];
    reg  [1:0] tile_valid, tile_next;
    wire [1:0] tile_ready;
    wire last, beat_2;
    wire [47:0] total;

    mlo_refill #(.PORTS(2), .BEATS({B01_V, B00_V}), .BLOCKS(BLOCKS0), .OFFSET({16'd0, OFFSET0_V}), .STRIDE({16'd0, STRIDE0_V}), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)) u_0 (
        .clk(clk), .rst(rst), .flush(flush[0]), .base(base + {12'd0, total, 4'd0}), .iterations(iterations[15:0]), .error(error[0]), .idle(idle[0]),
        .tile_valid(tile_valid[0]), .tile_next(tile_next[0]), .tile_ready(tile_ready[0]),
        .m_axi_arid(arid[0]), .m_axi_araddr(araddr[63:0]), .m_axi_arlen(arlen[7:0]), .m_axi_arsize(arsize[2:0]), .m_axi_arburst(arburst[1:0]),
        .m_axi_arvalid(arvalid[0]), .m_axi_arready(arready[0]), .m_axi_rid(1'b0), .m_axi_rdata(s_rdata), .m_axi_rresp(s_rresp),
        .m_axi_rlast(s_rlast), .m_axi_rvalid(rvalid[0]), .m_axi_rready(rready[0]),
        .m_axis_tdata(data[0]), .m_axis_tvalid(valid[0]), .m_axis_tready(ready[0]));

    mlo_refill #(.PORTS(2), .BEATS({B11_V, B10_V}), .BLOCKS(BLOCKS1), .OFFSET({16'd0, OFFSET1_V}), .STRIDE({16'd0, STRIDE1_V}), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)) u_1 (
        .clk(clk), .rst(rst), .flush(flush[1]), .base(base + {12'd0, total, 4'd0}), .iterations(iterations[15:0]), .error(error[1]), .idle(idle[1]),
        .tile_valid(tile_valid[1]), .tile_next(tile_next[1]), .tile_ready(tile_ready[1]),
        .m_axi_arid(arid[1]), .m_axi_araddr(araddr[127:64]), .m_axi_arlen(arlen[15:8]), .m_axi_arsize(arsize[5:3]), .m_axi_arburst(arburst[3:2]),
        .m_axi_arvalid(arvalid[1]), .m_axi_arready(arready[1]), .m_axi_rid(1'b0), .m_axi_rdata(s_rdata), .m_axi_rresp(s_rresp),
        .m_axi_rlast(s_rlast), .m_axi_rvalid(rvalid[1]), .m_axi_rready(rready[1]),
        .m_axis_tdata(data[1]), .m_axis_tvalid(valid[1]), .m_axis_tready(ready[1]));

    mlo_loader #(.PORTS(2), .BEATS({B21_V, B20_V}), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)) u_2 (
        .clk(clk), .rst(rst), .flush(flush[2]), .enable(enable), .base(base), .iterations(iterations[15:0]), .beat(beat_2), .error(error[2]), .idle(idle[2]), .total(total),
        .m_axi_arid(arid[2]), .m_axi_araddr(araddr[191:128]), .m_axi_arlen(arlen[23:16]), .m_axi_arsize(arsize[8:6]), .m_axi_arburst(arburst[5:4]),
        .m_axi_arvalid(arvalid[2]), .m_axi_arready(arready[2]), .m_axi_rid(1'b0), .m_axi_rdata(s_rdata), .m_axi_rresp(s_rresp),
        .m_axi_rlast(s_rlast), .m_axi_rvalid(rvalid[2]), .m_axi_rready(rready[2]),
        .m_axis_tdata(data[2]), .m_axis_tlast(last), .m_axis_tvalid(valid[2]), .m_axis_tready(ready[2]));

    // ------------------------------------------------------------------ the memory
    wire m_arid, m_rid, m_arvalid, m_arready, m_rlast, m_rvalid, m_rready;
    wire [63:0] m_araddr;
    wire [7:0] m_arlen;
    wire [2:0] m_arsize;
    wire [1:0] m_arburst, m_rresp;
    wire [W-1:0] m_rdata;
    wire [31:0] ram_beats;
    mlo_axi_share #(.PORTS(3), .DEPTH(DEPTH)) dut (
        .clk(clk), .rst(rst), .s_araddr(araddr), .s_arlen(arlen), .s_arsize(arsize[2:0]), .s_arburst(arburst[1:0]), .s_arvalid(arvalid), .s_arready(arready),
        .s_rdata(s_rdata), .s_rresp(s_rresp), .s_rlast(s_rlast), .s_rvalid(rvalid), .s_rready(rready),
        .m_axi_arid(m_arid), .m_axi_araddr(m_araddr), .m_axi_arlen(m_arlen), .m_axi_arsize(m_arsize), .m_axi_arburst(m_arburst),
        .m_axi_arvalid(m_arvalid), .m_axi_arready(m_arready), .m_axi_rid(m_rid), .m_axi_rdata(m_rdata), .m_axi_rresp(m_rresp),
        .m_axi_rlast(m_rlast), .m_axi_rvalid(m_rvalid), .m_axi_rready(m_rready));
    mlo_sim_ram #(.DATA_WIDTH(W), .ADDR_WIDTH(64), .DEPTH(RAM), .FILE("ram.hex")) u_ram (
        .clk(clk), .rst(rst), .seed(seed), .stall(stall), .latency(latency), .rate(rate), .fault(fault), .base(ram_base), .beats(ram_beats),
        .write({W/8{1'b0}}), .write_word(64'd0), .write_data({W{1'b0}}),
        .s_axi_arid(m_arid), .s_axi_araddr(m_araddr), .s_axi_arlen(m_arlen), .s_axi_arsize(m_arsize), .s_axi_arburst(m_arburst),
        .s_axi_arvalid(m_arvalid), .s_axi_arready(m_arready), .s_axi_rid(m_rid), .s_axi_rdata(m_rdata), .s_axi_rresp(m_rresp),
        .s_axi_rlast(m_rlast), .s_axi_rvalid(m_rvalid), .s_axi_rready(m_rready));

    // ------------------------------------------------------------------ judges: the shared port, and each client's
    wire [31:0] breaches [0:3];
    wire [8:0] asked [0:3];
    wire [6:0] sent [0:3];
    wire [3:0] owing;
    mlo_sim_check_axi #(.DATA_WIDTH(W), .BURST(MAX_BURST)) u_check (
        .clk(clk), .rst(rst), .cycle(cycle), .arid(m_arid), .araddr(m_araddr), .arlen(m_arlen), .arsize(m_arsize), .arburst(m_arburst), .arvalid(m_arvalid), .arready(m_arready),
        .rid(m_rid), .rdata(m_rdata), .rresp(m_rresp), .rlast(m_rlast), .rvalid(m_rvalid), .rready(m_rready), .asked(asked[3]), .sent(sent[3]), .breaches(breaches[3]), .owing(owing[3]));
    genvar g;
    generate for (g = 0; g < 3; g = g + 1) begin : client
        mlo_sim_check_axi #(.DATA_WIDTH(W), .BURST(MAX_BURST)) u_check (
            .clk(clk), .rst(rst), .cycle(cycle), .arid(arid[g]), .araddr(araddr[64*g +: 64]), .arlen(arlen[8*g +: 8]), .arsize(arsize[3*g +: 3]), .arburst(arburst[2*g +: 2]),
            .arvalid(arvalid[g]), .arready(arready[g]), .rid(1'b0), .rdata(s_rdata), .rresp(s_rresp), .rlast(s_rlast), .rvalid(rvalid[g]), .rready(rready[g]),
            .asked(asked[g]), .sent(sent[g]), .breaches(breaches[g]), .owing(owing[g]));
    end endgenerate

    // ------------------------------------------------------------------ requests and ports
    reg [W+7:0] golden [0:3*RAM-1];                 // {port, word}; client c's from c*RAM
    reg         tile [0:2*RAM-1];
    initial begin
        $readmemh("golden0.hex", golden, 0, RAM-1);
        $readmemh("golden1.hex", golden, RAM, 2*RAM-1);
        $readmemh("golden2.hex", golden, 2*RAM, 3*RAM-1);
        $readmemh("tiles0.hex", tile, 0, RAM-1);
        $readmemh("tiles1.hex", tile, RAM, 2*RAM-1);
    end

    reg [31:0] random;
    always @(posedge clk) begin
        for (c = 0; c < 3; c = c + 1) begin
            random = random ^ (random << 13);
            random = random ^ (random >> 17);
            random = random ^ (random << 5);
            for (i = 0; i < 2; i = i + 1) ready[c][i] <= ((random >> (5 * i)) & 127) * 100 >= stall_out * 128 && !(c == held && holding);
            if (c < 2) begin
                if (rst || flush[c]) begin
                    tile_valid[c] <= 1'b0;
                    taken[c] = 0;
                end else if (!tile_valid[c] || tile_ready[c]) begin
                    if (tile_valid[c]) taken[c] = taken[c] + 1;
                    tile_valid[c] <= taken[c] < tiles[c] && random[31:25] * 100 >= stall_in * 128;
                    tile_next[c]  <= taken[c] < tiles[c] ? tile[c*RAM + taken[c]] : 1'bx;
                end
            end
        end
    end

    reg [2:0] was_flush = 0;
    always @(posedge clk) begin
        was_flush <= flush;
        if (!rst) begin
            if (m_rvalid && !m_rready) begin errors = errors + 1; $display("R was blocked in cycle %0d", cycle); end
            if ((rvalid & (rvalid - 3'd1)) != 0 || (arready & (arready - 3'd1)) != 0) begin errors = errors + 1; $display("two at once: %b %b", rvalid, arready); end
            if (m_rvalid && m_rready) begin
                if (m_rresp != 0) faults = faults + 1;
                received = received + 1;
                if (last_r >= 0 && cycle - last_r > longest && (finished[0] < 0 || finished[1] < 0 || finished[2] < 0)) longest = cycle - last_r;
                last_r = cycle;
            end
            if (!dut.owners_ready) full = full + 1;
            // in turn: who waits sees each of the others pass once at most
            for (c = 0; c < 3; c = c + 1) begin
                if (!arvalid[c] || arready[c]) passed[c] = 0;
                else if (arready != 0) passed[c] = passed[c] + 1;
                if (passed[c] > patience) patience = passed[c];
            end
            for (c = 0; c < 3; c = c + 1) if (!flush[c] && !was_flush[c] && (valid[c] & ready[c]) != 0) begin
                if (seen[c] < count[c] ? golden[c*RAM + seen[c]] !== {6'd0, valid[c], data[c]} : c < 2) begin
                    errors = errors + 1;
                    if (errors < 4) $display("client %0d, beat %0d: port %b data %h, expected %h", c, seen[c], valid[c], data[c], golden[c*RAM + seen[c]]);
                end
                seen[c] = seen[c] + 1;
                if (seen[c] == count[c]) finished[c] = cycle;
                if (seen[c] == count[c] && share_of < 0) share_of = 100 * count[c] / received;
            end
        end
    end

    initial begin
        if (!$value$plusargs("seed=%d", seed)) seed = 1;
        if (!$value$plusargs("stall=%d", stall)) stall = 0;
        if (!$value$plusargs("stall_in=%d", stall_in)) stall_in = 0;
        if (!$value$plusargs("stall_out=%d", stall_out)) stall_out = 0;
        if (!$value$plusargs("latency=%d", latency)) latency = 1;
        if (!$value$plusargs("rate=%d", rate)) rate = 0;
        if (!$value$plusargs("iterations=%d", iterations)) iterations = 1;
        if (!$value$plusargs("tiles0=%d", tiles0)) tiles0 = 1;
        if (!$value$plusargs("tiles1=%d", tiles1)) tiles1 = 1;
        if (!$value$plusargs("count0=%d", count0)) count0 = 0;
        if (!$value$plusargs("count1=%d", count1)) count1 = 0;
        if (!$value$plusargs("count2=%d", count2)) count2 = 0;
        if (!$value$plusargs("base_word=%d", base_word)) base_word = 0;
        if (!$value$plusargs("fault=%d", fault)) fault = 0;
        if (!$value$plusargs("held=%d", held)) held = -1;               // this client takes nothing before the others have ended,
        if (!$value$plusargs("hold=%d", hold)) hold = 0;                // which must be in so many cycles
        if (!$value$plusargs("flush_at=%d", flush_at)) flush_at = 0;    // cycle
        if (!$value$plusargs("flush_mask=%d", flush_mask)) flush_mask = 7;
        random = seed * 7919 + 12345;
        errors = 0; last_r = -1; longest = 0; faults = 0; full = 0; received = 0; dropped = 0; free_at = -1; share_of = -1; patience = 0;
        tiles[0] = tiles0; tiles[1] = tiles1; tiles[2] = 0;
        count[0] = count0; count[1] = count1; count[2] = count2;
        for (c = 0; c < 3; c = c + 1) begin
            seen[c] = 0; taken[c] = 0; passed[c] = 0; finished[c] = -1;
        end
        ram_base = 64'h0000_00A5_FFFF_0000;
        base = ram_base + base_word * (W / 8);
        repeat (4) @(negedge clk);
        rst = 0;
        repeat (4) @(negedge clk);
        enable = 1;
        if (flush_at > 0) begin
            while (cycle < flush_at) @(negedge clk);
            flush = flush_mask;
            repeat (1 + seed % 3) @(negedge clk);
            for (i = 0; i < 3; i = i + 1) if (flush[i]) begin
                dropped = dropped + seen[i];
                seen[i] = 0; finished[i] = -1;
            end
            flush = 0;
        end
        // the others end while one is held
        if (held >= 0) begin
            while (cycle < hold && errors == 0 && free_at < 0) begin
                @(negedge clk);
                if ((held == 0 || finished[0] >= 0) && (held == 1 || finished[1] >= 0) && (held == 2 || finished[2] >= 0)) free_at = cycle;
            end
            if (free_at < 0 || seen[held] != 0) begin errors = errors + 1; $display("client %0d is held: seen %0d %0d %0d", held, seen[0], seen[1], seen[2]); end
            repeat (300) @(negedge clk);
            holding = 0;
        end
        while ((finished[0] < 0 || finished[1] < 0 || finished[2] < 0) && cycle < hold + 100000 && errors == 0) @(negedge clk);
        repeat (20) @(negedge clk);
        if (finished[0] < 0 || finished[1] < 0 || finished[2] < 0 || errors != 0 || breaches[0] + breaches[1] + breaches[2] + breaches[3] != 0 || patience > 2
            || taken[0] != tiles[0] || taken[1] != tiles[1] || ((|error) != (faults != 0) && flush_at == 0))
            $display("FAIL seen %0d %0d %0d of %0d %0d %0d taken %0d %0d errors %0d patience %0d error %b after %0d", seen[0], seen[1], seen[2], count[0], count[1], count[2],
                     taken[0], taken[1], errors, patience, error, faults);
        else
            $display("PASS longest=%0d full=%0d share=%0d patience=%0d faults=%0d dropped=%0d held=%0d", longest, full, share_of, patience, faults, dropped, free_at);
        $finish;
    end
endmodule
`default_nettype wire
