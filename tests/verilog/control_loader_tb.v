// SPDX-License-Identifier: MIT
// mlo_loader reading from mlo_sim_ram; the ports accept at random; every beat is compared, with its port.
`default_nettype none
module control_loader_tb;
    parameter PORTS = 3;
    parameter B0 = 5, B1 = 1, B2 = 70, B3 = 2;      // beats of the ports per iteration
    parameter RESIDENT = 0;                         // ports that are read once
    parameter FIFO_BEATS = 512;
    parameter MAX_BURST = 64;
    parameter DATA_WIDTH = 128;
    localparam [127:0] ALL = {B3[31:0], B2[31:0], B1[31:0], B0[31:0]};
    localparam [32*PORTS-1:0] BEATS = ALL[32*PORTS-1:0];
    localparam [31:0] RES = RESIDENT;
    localparam DEPTH = 8192;

    reg clk = 0, rst = 1, flush = 0, enable = 0;
    always #5 clk = !clk;
    integer cycle = 0;
    always @(posedge clk) cycle <= cycle + 1;

    integer seed, stall, stall_out, latency, rate, iterations, count, flush_at, base_word, wrong_base, errors, seen, port, first_out, last_out, i, dropped, pulses;
    reg [63:0] base, ram_base;

    wire [0:0] arid, rid;
    wire [63:0] araddr;
    wire [7:0] arlen;
    wire [2:0] arsize;
    wire [1:0] arburst, rresp;
    wire arvalid, arready, rlast, rvalid, rready, beat, error, idle;
    wire [DATA_WIDTH-1:0] rdata, data;
    wire last;
    wire [47:0] total;                              // beats of a round
    wire [PORTS-1:0] valid;
    reg  [PORTS-1:0] ready;
    wire [31:0] ram_beats, breaches;
    wire [8:0] asked;
    wire [6:0] sent;
    wire owing;

    mlo_loader #(.ADDR_WIDTH(64), .DATA_WIDTH(DATA_WIDTH), .PORTS(PORTS), .BEATS(BEATS), .RESIDENT(RES[PORTS-1:0]), .FIFO_BEATS(FIFO_BEATS), .MAX_BURST(MAX_BURST)) u_loader (
        .clk(clk), .rst(rst), .flush(flush), .enable(enable), .base(base), .iterations(iterations[15:0]), .beat(beat), .error(error), .idle(idle), .total(total),
        .m_axi_arid(arid), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(arsize), .m_axi_arburst(arburst),
        .m_axi_arvalid(arvalid), .m_axi_arready(arready), .m_axi_rid(rid), .m_axi_rdata(rdata), .m_axi_rresp(rresp),
        .m_axi_rlast(rlast), .m_axi_rvalid(rvalid), .m_axi_rready(rready),
        .m_axis_tdata(data), .m_axis_tlast(last), .m_axis_tvalid(valid), .m_axis_tready(ready));

    mlo_sim_ram #(.DATA_WIDTH(DATA_WIDTH), .ADDR_WIDTH(64), .DEPTH(DEPTH), .FILE("ram.hex")) u_ram (
        .clk(clk), .rst(rst), .seed(seed), .stall(stall), .latency(latency), .rate(rate), .base(ram_base), .beats(ram_beats),
        .write({DATA_WIDTH/8{1'b0}}), .write_word(64'd0), .write_data({DATA_WIDTH{1'b0}}),
        .s_axi_arid(arid), .s_axi_araddr(araddr), .s_axi_arlen(arlen), .s_axi_arsize(arsize), .s_axi_arburst(arburst),
        .s_axi_arvalid(arvalid), .s_axi_arready(arready), .s_axi_rid(rid), .s_axi_rdata(rdata), .s_axi_rresp(rresp),
        .s_axi_rlast(rlast), .s_axi_rvalid(rvalid), .s_axi_rready(rready));

    mlo_sim_check_axi #(.DATA_WIDTH(DATA_WIDTH), .BURST(MAX_BURST)) u_check (
        .clk(clk), .rst(rst), .cycle(cycle), .arid(arid), .araddr(araddr), .arlen(arlen), .arsize(arsize), .arburst(arburst), .arvalid(arvalid), .arready(arready),
        .rid(rid), .rdata(rdata), .rresp(rresp), .rlast(rlast), .rvalid(rvalid), .rready(rready), .asked(asked), .sent(sent), .breaches(breaches), .owing(owing));

    // golden.hex: {last iteration of the first round, port, data} of every beat, in order
    reg [DATA_WIDTH+7:0] golden [0:DEPTH-1];
    initial $readmemh("golden.hex", golden);

    reg [31:0] random;
    always @(posedge clk) begin
        random = random ^ (random << 13);
        random = random ^ (random >> 17);
        random = random ^ (random << 5);
        for (i = 0; i < PORTS; i = i + 1) ready[i] <= ((random >> (5 * i)) & 127) * 100 >= stall_out * 128;
    end

    wire [PORTS-1:0] onehot_of = valid & (valid - 1'b1);
    reg rready_was_low = 0;
    always @(posedge clk) if (!rst && !flush) begin
        if (onehot_of != 0) begin errors = errors + 1; $display("two ports at once: %b", valid); end
        if (rvalid && !rready) begin errors = errors + 1; $display("R was blocked in cycle %0d", cycle); end
        if (beat) pulses = pulses + 1;
        if ((valid & ready) != 0) begin
            port = 0;
            for (i = 0; i < PORTS; i = i + 1) if (valid[i]) port = i;
            if (seen < count && (golden[seen][DATA_WIDTH+6:0] !== {port[6:0], data} || (RES[port] && golden[seen][DATA_WIDTH+7] !== last))) begin
                errors = errors + 1;
                if (errors < 4) $display("beat %0d: port %0d data %h, expected %h", seen, port, data, golden[seen]);
            end
            seen = seen + 1;
            if (first_out < 0) first_out = cycle;
            if (seen <= count) last_out = cycle;
        end
    end

    initial begin
        if (!$value$plusargs("seed=%d", seed)) seed = 1;
        if (!$value$plusargs("stall=%d", stall)) stall = 0;
        if (!$value$plusargs("stall_out=%d", stall_out)) stall_out = 0;
        if (!$value$plusargs("latency=%d", latency)) latency = 1;
        if (!$value$plusargs("rate=%d", rate)) rate = 0;
        if (!$value$plusargs("iterations=%d", iterations)) iterations = 1;
        if (!$value$plusargs("count=%d", count)) count = 100;
        if (!$value$plusargs("base_word=%d", base_word)) base_word = 0;
        if (!$value$plusargs("flush_at=%d", flush_at)) flush_at = 0;
        if (!$value$plusargs("wrong_base=%d", wrong_base)) wrong_base = 0;
        random = seed * 7919 + 12345;
        errors = 0; seen = 0; first_out = -1; last_out = -1; dropped = 0; pulses = 0;
        ram_base = 64'h0000_00A5_FFFF_0000;
        base = ram_base + base_word * (DATA_WIDTH / 8);
        if (wrong_base != 0) base = ram_base + DEPTH * (DATA_WIDTH / 8);
        repeat (4) @(negedge clk);
        rst = 0;
        repeat (4) @(negedge clk);
        enable = 1;
        if (flush_at > 0) begin               // a soft reset in the middle: everything begins again
            while (seen < flush_at && cycle < 100000) @(negedge clk);
            flush = 1;
            repeat (3) @(negedge clk);
            dropped = seen;
            seen = 0; first_out = -1; pulses = 0;
            flush = 0;
        end
        while (seen < count && cycle < 400000 && errors == 0) @(negedge clk);
        repeat (2) @(negedge clk);
        if (seen < count || errors != 0 || breaches != 0 || error != (wrong_base != 0) || pulses < count || total != iterations * (B0 + (PORTS > 1 ? B1 : 0) + (PORTS > 2 ? B2 : 0) + (PORTS > 3 ? B3 : 0)))
            $display("FAIL seen %0d of %0d errors %0d error %b pulses %0d", seen, count, errors, error, pulses);
        else
            $display("PASS span=%0d dropped=%0d start=%0d", last_out - first_out, dropped, first_out);
        $finish;
    end
endmodule
`default_nettype wire
