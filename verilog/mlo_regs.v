// SPDX-License-Identifier: MIT
// mlo_regs: control, status and counters of the core, on an AXI4-Lite slave (32 bits)
//
// Contract
//   0x00 r   id          0x4D4C4F31 "MLO1"
//   0x04 r   version     VERSION
//   0x08 rw  control     bit 0 enable; bit 1 soft reset of the core, bit 2 clear the counters (both read 0)
//   0x0C r   status      bit 0 busy: a frame is inside; bit 1 bus error, bit 2 a job was refused, bit 4 a frame had not the
//                        tokens of its job: these three sticky until soft reset
//   0x10 rw  base, low   of the parameter image, in bytes (a multiple of a beat)
//   0x14 rw  base, high
//   0x18 rw  iterations  1..65535, others are clamped; beyond DEEPEST refused (SLVERR, nothing changes); after reset ITERATIONS
//   0x1C rw  frames      in flight, 1..FRAMES, other values are clamped; after reset FRAMES
//   0x20 rw  job         {slot[31:24], start[23:0]} of the next job; after reset 0
//   0x24 w   job         {more[31:16], tokens[15:0]}: pushes the job; refused (SLVERR, nothing is pushed) where job_room is 0
//                        (TOKENS = 0: there is no `more`)
//   0x28 r   room        jobs that may be pushed now
//   0x2C rw  base of keys and values in memory, low, in bytes (a multiple of a beat); KV = 0: 0x2C, 0x30, 0x4C, 0x50 are not there
//   0x30 rw  the same, high
//   0x3C r   cache       {SLOTS[31:24], CONTEXT[23:0]}; 0: no cache, and of the jobs' registers nothing is there
//   0x40 r   cycles      in which a frame was inside: from the first beat in to the last beat out
//   0x44 r   frames      finished
//   0x48 r   beats       of parameters delivered to the kernels
//   0x5C rw  stop        the id that ends a text; after reset 0xFFFFFFFF, which is none; TOKENS = 0: it is not there
//   0x4C r   beats       of keys and values read; 0x50 r: written; both since the soft reset
//   0x80 + 16k r         kernel k: busy; +4 starved; +8 blocked: in how many of the cycles of 0x40
// Others read 0.  Writing where there is nothing to write answers SLVERR and changes nothing.
//
// Counters count while `enable` is set, have 32 bits and wrap.  iterations, frames and base may be
// written while the core is empty; a soft reset must follow, as parameters are loaded ahead.
// A soft reset lasts 16 cycles, drops frames and jobs inside, keeps the registers and clears the counters.
// A job is pushed in the cycle after its write: job_push, with job_slot, job_start and job_tokens.
// Throughput: one access each way every two cycles
// Latency:    2 cycles from ARVALID to RVALID, 1 from AWVALID and WVALID to BVALID
// Stall:      an answer stands until it is taken; the next access waits
// Legal       iterations, frames, base are written while the core is empty; job_room has counted a job two cycles after its
//             write, and is 0 while core_rst is high
`default_nettype none
module mlo_regs #(
    // kernels with counters, 1..240
    parameter KERNELS    = 1,
    // iterations after reset, 1..65535
    parameter ITERATIONS = 1,
    // the most iterations there is room for: memories that hold the parameters of all of them bound it
    parameter DEEPEST    = 65535,
    // frames in flight: the most the core is built for, 1..255
    parameter FRAMES     = 1,
    // readers of parameters, whose beats are counted
    parameter READERS    = 1,
    // positions of a sequence and sequences that a cache has room for, up to 2^24 - 1 and 255; CONTEXT = 0: there is none
    parameter CONTEXT    = 0,
    parameter SLOTS      = 1,
    // 1: it is in memory
    parameter KV         = 0,
    // 1: ids come in, and texts go on inside (mlo_tokens); with a cache
    parameter TOKENS     = 0,
    parameter [31:0] VERSION = 32'h0001_0000
) (
    input  wire        clk,
    input  wire        rst,

    input  wire [11:0] s_axil_awaddr,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [31:0] s_axil_wdata,
    input  wire [3:0]  s_axil_wstrb,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output reg  [1:0]  s_axil_bresp,
    output reg         s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [11:0] s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output reg  [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    output reg         s_axil_rvalid,
    input  wire        s_axil_rready,

    output reg         core_rst,       // reset of all but this module and the AXI side of the loader
    output reg         enable,
    output reg  [63:0] base,
    output reg  [63:0] kv_base,
    input  wire [31:0] kv_read,        // KV: beats; tie to 0 where it is
    input  wire [31:0] kv_written,
    output reg  [15:0] iterations,
    output reg  [7:0]  frames,

    input  wire        in_beat,        // a beat enters the core ...
    input  wire        in_last,        // ... and it is the final one of its frame
    input  wire        out_last,       // the final beat of a frame leaves the core
    input  wire [READERS-1:0] param_beat,      // mlo_loader, and mlo_refill where there are
    input  wire        bus_error,      // of any of them
    input  wire [3*KERNELS-1:0] stat,  // {blocked, starved, busy} of kernel k at [3*k +: 3]

    output wire        job_push,       // to mlo_job; tie what comes from it to 0 where CONTEXT is
    output wire [7:0]  job_slot,
    output wire [23:0] job_start,
    output wire [15:0] job_tokens,
    output wire [15:0] job_more,       // TOKENS, as is what is behind it
    output reg  [31:0] stop,
    input  wire [7:0]  job_room,
    input  wire        job_refused,
    input  wire        job_mismatch
);
    localparam [31:0] ID = 32'h4D4C_4F31;
    localparam [15:0] ITERATIONS_V = ITERATIONS[15:0];
    localparam [31:0] DEEPEST_V = DEEPEST;
    localparam [7:0]  FRAMES_V = FRAMES[7:0];
    localparam KW = (KERNELS > 1) ? $clog2(KERNELS) : 1;
    localparam [31:0] KERNELS_V = KERNELS;
    localparam [31:0] CONTEXT_V = CONTEXT;
    localparam [31:0] SLOTS_V = SLOTS;
    localparam [31:0] CACHE = (CONTEXT == 0) ? 32'd0 : {SLOTS_V[7:0], CONTEXT_V[23:0]};

    generate
        if (KERNELS < 1 || KERNELS > 240) mlo_error_KERNELS_must_be_1_to_240 u_error_kernels ();
        if (ITERATIONS < 1 || ITERATIONS > 65535) mlo_error_ITERATIONS_must_be_1_to_65535 u_error_iterations ();
        if (DEEPEST < ITERATIONS || DEEPEST > 65535) mlo_error_DEEPEST_must_be_ITERATIONS_to_65535 u_error_deepest ();
        if (CONTEXT < 0 || CONTEXT > 16777215) mlo_error_CONTEXT_must_be_below_2_to_the_24 u_error_context ();
        if (SLOTS < 1 || SLOTS > 255) mlo_error_SLOTS_must_be_1_to_255 u_error_slots ();
        if (FRAMES < 1 || FRAMES > 255) mlo_error_FRAMES_must_be_1_to_255 u_error_frames ();
    endgenerate

    // ------------------------------------------------------------------ writes
    // Address and data are taken together, when the previous answer is gone.
    wire write = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid;
    assign s_axil_awready = write;
    assign s_axil_wready  = write;

    // Bytes without strobe keep their old value.
    wire [31:0] mask = {{8{s_axil_wstrb[3]}}, {8{s_axil_wstrb[2]}}, {8{s_axil_wstrb[1]}}, {8{s_axil_wstrb[0]}}};
    wire [31:0] data = s_axil_wdata & mask;
    wire [31:0] iterations_new = data | ({16'd0, iterations} & ~mask);
    wire [31:0] iterations_top = (iterations_new > 32'd65535) ? 32'd65535 : iterations_new;
    wire [31:0] frames_new     = data | ({24'd0, frames} & ~mask);

    reg       clear;
    reg [4:0] reset_left;
    always @(posedge clk) begin
        clear <= (reset_left != 5'd0);
        if (reset_left != 5'd0) reset_left <= reset_left - 5'd1;
        core_rst <= (reset_left != 5'd0);
        if (s_axil_bready) s_axil_bvalid <= 1'b0;
        if (write) begin
            s_axil_bvalid <= 1'b1;
            s_axil_bresp  <= 2'b00;
            case (s_axil_awaddr[11:2])
                10'h002: begin
                    if (s_axil_wstrb[0]) enable <= data[0];
                    if (data[1]) reset_left <= 5'd16;
                    if (data[2]) clear <= 1'b1;
                end
                10'h004: base[31:0]  <= data | (base[31:0] & ~mask);
                10'h005: base[63:32] <= data | (base[63:32] & ~mask);
                10'h006: if (iterations_top > DEEPEST_V) s_axil_bresp <= 2'b10;
                         else iterations <= (iterations_new == 32'd0) ? 16'd1 : iterations_top[15:0];
                10'h007: frames      <= (frames_new == 32'd0)             ? 8'd1 :
                                        (frames_new > {24'd0, FRAMES_V})  ? FRAMES_V : frames_new[7:0];
                10'h008: if (CONTEXT == 0) s_axil_bresp <= 2'b10;
                10'h009: if (CONTEXT == 0 || job_room == 8'd0) s_axil_bresp <= 2'b10;
                10'h00B: if (KV == 0) s_axil_bresp <= 2'b10;
                         else kv_base[31:0]  <= data | (kv_base[31:0] & ~mask);
                10'h00C: if (KV == 0) s_axil_bresp <= 2'b10;
                         else kv_base[63:32] <= data | (kv_base[63:32] & ~mask);
                10'h017: if (TOKENS == 0) s_axil_bresp <= 2'b10;
                         else stop <= data | (stop & ~mask);
                default: s_axil_bresp <= 2'b10;
            endcase
        end
        if (rst) begin
            s_axil_bvalid <= 1'b0;
            enable        <= 1'b0;
            base          <= 64'd0;
            kv_base       <= 64'd0;
            stop          <= 32'hffff_ffff;
            iterations    <= ITERATIONS_V;
            frames        <= FRAMES_V;
            clear         <= 1'b1;
            reset_left    <= 5'd16;
            core_rst      <= 1'b1;
        end
    end

    // ------------------------------------------------------------------ jobs
    wire [31:0] job;
    wire [7:0]  job_left;
    wire        refused, mismatch;
    generate
        if (CONTEXT != 0) begin : cache
            reg        push;
            reg [31:0] where;
            reg [15:0] tokens, more;
            always @(posedge clk) begin
                push <= write && s_axil_awaddr[11:2] == 10'h009 && job_room != 8'd0;
                if (write && s_axil_awaddr[11:2] == 10'h008) where <= data | (where & ~mask);
                if (write) {more, tokens} <= data;
                if (rst) begin
                    push  <= 1'b0;
                    where <= 32'd0;
                end
            end
            assign job_push = push;
            assign job      = where;
            assign job_tokens = tokens;
            assign job_more = (TOKENS != 0) ? more : 16'd0;
            assign {job_left, mismatch, refused} = {job_room, job_mismatch, job_refused};
        end else begin : no_cache
            assign job_push = 1'b0;
            assign job      = 32'd0;
            assign job_tokens = 16'd0;
            assign job_more = 16'd0;
            assign {job_left, mismatch, refused} = 10'd0;
            wire unused_job = &{1'b0, job_room, job_mismatch, job_refused};
        end
    endgenerate
    assign {job_slot, job_start} = job;

    // ------------------------------------------------------------------ frames inside
    reg        entering;                 // the frame at the door has begun and not ended
    reg [15:0] held;                     // frames begun and not finished
    wire       begins = in_beat && !entering;
    wire       busy   = (held != 16'd0);
    wire       counts = enable && (busy || begins);
    always @(posedge clk) begin
        if (in_beat) entering <= !in_last;
        held <= held + {15'd0, begins} - {15'd0, out_last};
        if (core_rst) begin
            entering <= 1'b0;
            held     <= 16'd0;
        end
    end

    // ------------------------------------------------------------------ counters
    reg [31:0] cycles, finished, beats, brought;
    integer r;
    always @* begin
        brought = 32'd0;
        for (r = 0; r < READERS; r = r + 1) brought = brought + {31'd0, param_beat[r]};
    end
    always @(posedge clk) begin
        if (counts)               cycles   <= cycles + 32'd1;
        if (enable && out_last)   finished <= finished + 32'd1;
        if (enable)               beats    <= beats + brought;
        if (clear) begin
            cycles   <= 32'd0;
            finished <= 32'd0;
            beats    <= 32'd0;
        end
    end

    // Of each kernel: word 0 busy, 1 starved, 2 blocked, and a word that reads 0. (An array, not one wide vector: that a simulator
    // would put together anew for each count.)
    wire [127:0] counted [0:KERNELS-1];
    genvar k;
    generate
        for (k = 0; k < KERNELS; k = k + 1) begin : kernel
            reg [31:0] worked, starved, blocked;
            always @(posedge clk)
                if (clear) begin
                    {blocked, starved, worked} <= 96'd0;
                end else if (counts) begin
                    if (stat[3*k])   worked  <= worked  + 32'd1;
                    if (stat[3*k+1]) starved <= starved + 32'd1;
                    if (stat[3*k+2]) blocked <= blocked + 32'd1;
                end
            assign counted[k] = {32'd0, blocked, starved, worked};
        end
    endgenerate

    // ------------------------------------------------------------------ reads
    // First cycle: keep the address.  Second cycle: select the word.
    reg        reading;
    reg [9:0]  word_addr;
    assign s_axil_arready = !reading && !s_axil_rvalid;
    assign s_axil_rresp   = 2'b00;

    wire [7:0] kernel_of = word_addr[9:2] - 8'd8;
    wire       is_kernel = (word_addr[9:2] >= 8'd8) && ({24'd0, kernel_of} < KERNELS_V);
    always @(posedge clk) begin
        if (s_axil_rready) s_axil_rvalid <= 1'b0;
        if (s_axil_arvalid && s_axil_arready) begin
            reading   <= 1'b1;
            word_addr <= s_axil_araddr[11:2];
        end
        if (reading) begin
            reading       <= 1'b0;
            s_axil_rvalid <= 1'b1;
            case (word_addr)
                10'h000: s_axil_rdata <= ID;
                10'h001: s_axil_rdata <= VERSION;
                10'h002: s_axil_rdata <= {31'd0, enable};
                10'h003: s_axil_rdata <= {27'd0, mismatch, 1'b0, refused, bus_error, busy};
                10'h004: s_axil_rdata <= base[31:0];
                10'h005: s_axil_rdata <= base[63:32];
                10'h006: s_axil_rdata <= {16'd0, iterations};
                10'h007: s_axil_rdata <= {24'd0, frames};
                10'h008: s_axil_rdata <= job;
                10'h00A: s_axil_rdata <= {24'd0, job_left};
                10'h00B: s_axil_rdata <= (KV == 0) ? 32'd0 : kv_base[31:0];
                10'h00C: s_axil_rdata <= (KV == 0) ? 32'd0 : kv_base[63:32];
                10'h00F: s_axil_rdata <= CACHE;
                10'h010: s_axil_rdata <= cycles;
                10'h011: s_axil_rdata <= finished;
                10'h012: s_axil_rdata <= beats;
                10'h013: s_axil_rdata <= (KV == 0) ? 32'd0 : kv_read;
                10'h014: s_axil_rdata <= (KV == 0) ? 32'd0 : kv_written;
                10'h017: s_axil_rdata <= (TOKENS == 0) ? 32'd0 : stop;
                default: s_axil_rdata <= is_kernel ? counted[kernel_of[KW-1:0]][32*word_addr[1:0] +: 32] : 32'd0;
            endcase
        end
        if (rst) begin
            reading       <= 1'b0;
            s_axil_rvalid <= 1'b0;
        end
    end

    wire unused = &{1'b0, s_axil_awaddr[1:0], s_axil_araddr[1:0], kernel_of};

`ifdef FORMAL
    // The judge of the simulations: where the host behaves, so do the registers.
    reg f_past_valid = 1'b0;
    always @(posedge clk) f_past_valid <= 1'b1;
    always @* if (!f_past_valid) assume (rst);
    wire [11:0] f_host;
    wire [9:0]  f_slave;
    mlo_sim_check_lite f_check (.clk(clk), .rst(rst), .cycle(32'd0), .host(f_host), .slave(f_slave), .breaches(),
        .awaddr(s_axil_awaddr), .awvalid(s_axil_awvalid), .awready(s_axil_awready), .wdata(s_axil_wdata), .wstrb(s_axil_wstrb), .wvalid(s_axil_wvalid), .wready(s_axil_wready),
        .bresp(s_axil_bresp), .bvalid(s_axil_bvalid), .bready(s_axil_bready), .araddr(s_axil_araddr), .arvalid(s_axil_arvalid), .arready(s_axil_arready),
        .rdata(s_axil_rdata), .rresp(s_axil_rresp), .rvalid(s_axil_rvalid), .rready(s_axil_rready));
    always @* if (f_past_valid) begin
        assume (f_host == 12'd0);
        assert (f_slave == 10'd0);
    end
    always @* cover (f_past_valid && s_axil_bvalid && s_axil_rvalid && s_axil_bready && s_axil_rready);
`endif
endmodule
`default_nettype wire
