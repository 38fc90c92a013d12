// SPDX-License-Identifier: MIT
// mlo_refill reading from mlo_sim_ram: requests come and the ports accept at random; every beat is compared, with its port.
`default_nettype none
module refill_tb;
    parameter PORTS = 2;
    parameter B0 = 5, B1 = 1, B2 = 7;               // beats of the ports per block
    parameter BLOCKS = 2;
    parameter OFFSET = 0, STRIDE = 12;
    parameter FIFO_BEATS = 512;
    parameter MAX_BURST = 64;
    parameter DATA_WIDTH = 128;
    localparam [95:0] ALL = {B2[31:0], B1[31:0], B0[31:0]};
    localparam [31:0] OFFSET_V = OFFSET, STRIDE_V = STRIDE;
    localparam DEPTH = 8192;

    reg clk = 0, rst = 1, flush = 0;
    always #5 clk = !clk;
    integer cycle = 0;
    always @(posedge clk) cycle <= cycle + 1;

    integer seed, stall, stall_in, stall_out, latency, rate, iterations, tiles, count, flush_at, base_word, fault;
    integer errors, seen, taken, port, first_in, first_out, last_out, longest, i, dropped, faults, flushes;
    reg [63:0] base, ram_base;

    wire arid, rid, arvalid, arready, rlast, rvalid, rready, error, idle, ready_tile;
    wire [63:0] araddr;
    wire [7:0] arlen;
    wire [2:0] arsize;
    wire [1:0] arburst, rresp;
    wire [DATA_WIDTH-1:0] rdata, data;
    wire [PORTS-1:0] valid;
    reg  [PORTS-1:0] ready;
    wire [31:0] ram_beats, breaches;
    wire [8:0] asked;
    wire [6:0] sent;
    wire owing;
    reg tile_valid, tile_next;

    mlo_refill #(.ADDR_WIDTH(64), .DATA_WIDTH(DATA_WIDTH), .PORTS(PORTS), .BEATS(ALL[32*PORTS-1:0]), .BLOCKS(BLOCKS), .OFFSET({16'd0, OFFSET_V}), .STRIDE({16'd0, STRIDE_V}),
                 .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)) dut (
        .clk(clk), .rst(rst), .flush(flush), .base(base), .iterations(iterations[15:0]), .error(error), .idle(idle),
        .tile_valid(tile_valid), .tile_next(tile_next), .tile_ready(ready_tile),
        .m_axi_arid(arid), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(arsize), .m_axi_arburst(arburst),
        .m_axi_arvalid(arvalid), .m_axi_arready(arready), .m_axi_rid(rid), .m_axi_rdata(rdata), .m_axi_rresp(rresp),
        .m_axi_rlast(rlast), .m_axi_rvalid(rvalid), .m_axi_rready(rready),
        .m_axis_tdata(data), .m_axis_tvalid(valid), .m_axis_tready(ready));

    mlo_sim_ram #(.DATA_WIDTH(DATA_WIDTH), .ADDR_WIDTH(64), .DEPTH(DEPTH), .FILE("ram.hex")) u_ram (
        .clk(clk), .rst(rst), .seed(seed), .stall(stall), .latency(latency), .rate(rate), .fault(fault), .base(ram_base), .beats(ram_beats),
        .write({DATA_WIDTH/8{1'b0}}), .write_word(64'd0), .write_data({DATA_WIDTH{1'b0}}),
        .s_axi_arid(arid), .s_axi_araddr(araddr), .s_axi_arlen(arlen), .s_axi_arsize(arsize), .s_axi_arburst(arburst),
        .s_axi_arvalid(arvalid), .s_axi_arready(arready), .s_axi_rid(rid), .s_axi_rdata(rdata), .s_axi_rresp(rresp),
        .s_axi_rlast(rlast), .s_axi_rvalid(rvalid), .s_axi_rready(rready));

    mlo_sim_check_axi #(.DATA_WIDTH(DATA_WIDTH), .BURST(MAX_BURST)) u_check (
        .clk(clk), .rst(rst), .cycle(cycle), .arid(arid), .araddr(araddr), .arlen(arlen), .arsize(arsize), .arburst(arburst), .arvalid(arvalid), .arready(arready),
        .rid(rid), .rdata(rdata), .rresp(rresp), .rlast(rlast), .rvalid(rvalid), .rready(rready), .asked(asked), .sent(sent), .breaches(breaches), .owing(owing));

    wire [31:0] waits_breaches;
    wire [3:0] waits_broken;
    mlo_sim_check #(.WIDTH(DATA_WIDTH + PORTS), .PORT("m_axis")) u_hold (
        .clk(clk), .rst(rst || flush), .cycle(cycle), .payload({valid, data}), .valid(|valid), .ready(|(valid & ready)), .broken(waits_broken), .breaches(waits_breaches));

    // golden.hex: {port, data} of every beat, in order; tiles.hex: tile_next of every request
    reg [DATA_WIDTH+7:0] golden [0:DEPTH-1];
    reg tile [0:DEPTH-1];
    initial $readmemh("golden.hex", golden);
    initial $readmemh("tiles.hex", tile);

    reg [31:0] random;
    always @(posedge clk) begin
        random = random ^ (random << 13);
        random = random ^ (random >> 17);
        random = random ^ (random << 5);
        for (i = 0; i < PORTS; i = i + 1) ready[i] <= ((random >> (5 * i)) & 127) * 100 >= stall_out * 128;
        // requests; whatever comes in a flush is forgotten
        if (rst) begin
            tile_valid <= 1'b0;
            taken = 0;
        end else if (flush) begin
            tile_valid <= random[20];
            tile_next  <= random[21];
            taken = 0;
        end else if (!tile_valid || ready_tile) begin
            if (tile_valid) taken = taken + 1;
            tile_valid <= taken < tiles && random[31:25] * 100 >= stall_in * 128;
            tile_next  <= taken < tiles ? tile[taken] : 1'bx;
        end
    end

    reg was_flush = 0;
    wire [PORTS-1:0] two = valid & (valid - 1'b1);
    always @(posedge clk) begin
        was_flush <= flush;
        if (rvalid && rready && rresp != 0) faults = faults + 1;
        if (!rst && !flush && !was_flush) begin
            if (two != 0) begin errors = errors + 1; $display("two ports at once: %b", valid); end
            if (rvalid && !rready) begin errors = errors + 1; $display("R was blocked in cycle %0d", cycle); end
            if (tile_valid && ready_tile && first_in < 0) first_in = cycle;
            if (valid != 0 && first_out < 0) first_out = cycle;
            if ((valid & ready) != 0) begin
                port = 0;
                for (i = 0; i < PORTS; i = i + 1) if (valid[i]) port = i;
                if (seen >= count || golden[seen] !== {port[7:0], data}) begin
                    errors = errors + 1;
                    if (errors < 4) $display("beat %0d: port %0d data %h, expected %h", seen, port, data, golden[seen]);
                end
                if (seen > 0 && cycle - last_out > longest) longest = cycle - last_out;
                seen = seen + 1;
                last_out = cycle;
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
        if (!$value$plusargs("tiles=%d", tiles)) tiles = 1;
        if (!$value$plusargs("count=%d", count)) count = 0;
        if (!$value$plusargs("base_word=%d", base_word)) base_word = 0;
        if (!$value$plusargs("flush_at=%d", flush_at)) flush_at = -1;        // beats; 0: right after the first request
        if (!$value$plusargs("fault=%d", fault)) fault = 0;
        random = seed * 7919 + 12345;
        errors = 0; seen = 0; first_in = -1; first_out = -1; last_out = -1; dropped = 0; longest = 0; faults = 0; flushes = 0;
        ram_base = 64'h0000_00A5_FFFF_0000;
        base = ram_base + base_word * (DATA_WIDTH / 8);
        repeat (4) @(negedge clk);
        rst = 0;
        if (flush_at >= 0) begin                // a soft reset in the middle, then one more at once: everything begins again
            while ((seen < flush_at || taken == 0) && cycle < 100000) @(negedge clk);
            repeat (2) begin
                if (error != (faults != 0)) begin errors = errors + 1; $display("error is %b after %0d", error, faults); end
                flush = 1;
                repeat (1 + seed % 3) @(negedge clk);
                dropped = dropped + seen;
                seen = 0; first_in = -1; first_out = -1; last_out = -1; longest = 0; faults = 0;
                flush = 0;
                flushes = flushes + 1;
                @(negedge clk);
                if (error) begin errors = errors + 1; $display("error after a flush"); end
                while (!idle) @(negedge clk);
                faults = 0;                     // what was still under way does not count
                if (flushes == 1) repeat (seed % 7 * 5) @(negedge clk);
            end
        end
        while (seen < count && cycle < 400000 && errors == 0) @(negedge clk);
        repeat (20) @(negedge clk);             // nothing may come behind
        if (seen != count || errors != 0 || breaches != 0 || waits_breaches != 0 || taken != tiles || !idle || error != (faults != 0))
            $display("FAIL seen %0d of %0d taken %0d of %0d errors %0d error %b after %0d idle %b", seen, count, taken, tiles, errors, error, faults, idle);
        else
            $display("PASS latency=%0d span=%0d longest=%0d dropped=%0d faults=%0d", first_out - first_in, last_out - first_out, longest, dropped, faults);
        $finish;
    end
endmodule
`default_nettype wire
