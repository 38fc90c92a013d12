// SPDX-License-Identifier: MIT
// mlo_sim_ram: an AXI4 memory (simulation only): its read port; mlo_sim_ram_write is the other one
//
// One word of DATA_WIDTH bits per line of FILE, in hexadecimal (or fill it from outside:
// $readmemh(name, u_ram.mem)); word 0 lies at byte address `base`.
// The first beat of a burst comes `latency` cycles after its request was taken (at least 1), later if
// earlier bursts are not yet through: up to 64 requests wait, answered in order.
// `stall` percent of the cycles (0..100) neither a request is taken nor a new beat offered.
// `rate`: beats per 256 cycles on the average, 0 or 256 for no limit.
// `fault`: the beat of this number, counted from 1, comes with SLVERR (and its data); 0 for none.
// `write`: bytes of the word `write_word` that are replaced in this cycle; 0 where nobody writes.
// Beyond the memory RRESP is DECERR.  Whether requests are legal is judged by mlo_sim_check_axi.
`default_nettype none
module mlo_sim_ram #(
    // bits of a word
    parameter DATA_WIDTH = 128,
    // bits of a byte address
    parameter ADDR_WIDTH = 64,
    // words of the memory
    parameter DEPTH      = 1024,
    // file to read at the start, "" for none
    parameter FILE       = ""
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire [31:0]           seed,
    input  wire [31:0]           stall,      // percent
    input  wire [31:0]           latency,    // cycles
    input  wire [31:0]           rate,       // beats per 256 cycles
    input  wire [31:0]           fault,      // a beat, or 0
    input  wire [ADDR_WIDTH-1:0] base,
    output reg  [31:0]           beats,      // read so far

    input  wire [DATA_WIDTH/8-1:0] write,
    input  wire [63:0]           write_word,
    input  wire [DATA_WIDTH-1:0] write_data,

    input  wire                  s_axi_arid,
    input  wire [ADDR_WIDTH-1:0] s_axi_araddr,
    input  wire [7:0]            s_axi_arlen,
    input  wire [2:0]            s_axi_arsize,
    input  wire [1:0]            s_axi_arburst,
    input  wire                  s_axi_arvalid,
    output wire                  s_axi_arready,
    output reg                   s_axi_rid,
    output reg  [DATA_WIDTH-1:0] s_axi_rdata,
    output reg  [1:0]            s_axi_rresp,
    output reg                   s_axi_rlast,
    output reg                   s_axi_rvalid,
    input  wire                  s_axi_rready
);
    localparam BYTES = DATA_WIDTH / 8;
    localparam SIZE  = $clog2(BYTES);

    reg [DATA_WIDTH-1:0] mem [0:DEPTH-1];
    initial if (FILE != "") $readmemh(FILE, mem);

    integer i;
    reg [DATA_WIDTH-1:0] mask;           // of the bytes that are replaced (a loop over parts of `mem` is too long for Verilator at 1024 bits)
    always @* for (i = 0; i < BYTES; i = i + 1) mask[8*i +: 8] = {8{write[i]}};
    always @(posedge clk)
        if (write != {BYTES{1'b0}}) mem[write_word[31:0]] <= (mem[write_word[31:0]] & ~mask) | (write_data & mask);

    reg  [31:0] random;
    wire [31:0] x1 = random ^ (random << 13);
    wire [31:0] x2 = x1 ^ (x1 >> 17);
    wire [31:0] x3 = x2 ^ (x2 << 5);
    wire [31:0] percent_r = ({16'd0, random[31:16]} * 32'd100) >> 16;
    wire [31:0] percent_a = ({16'd0, random[15:0]} * 32'd100) >> 16;

    // Requests that wait: word index, id, beats - 1, the earliest cycle of the first beat.
    reg [63:0] queue_word [0:63];
    reg [7:0]  queue_len  [0:63];
    reg        queue_id   [0:63];
    reg [31:0] queue_time [0:63];
    reg [6:0]  head, tail;               // one bit more than an index: full and empty differ
    reg        open;                     // random: may take a request now
    reg [31:0] now;

    assign s_axi_arready = open && (tail - head != 7'd64);
    wire take = s_axi_arvalid && s_axi_arready;

    wire [63:0] offset = {{(64-ADDR_WIDTH){1'b0}}, s_axi_araddr} - {{(64-ADDR_WIDTH){1'b0}}, base};

    // The beat to offer next.
    reg  [7:0]  beat;
    reg  [31:0] offered;                 // beats so far
    reg  [15:0] credit;                  // 256 per beat
    wire [63:0] word    = queue_word[head[5:0]] + {56'd0, beat};
    wire        limited = (rate != 32'd0) && (rate < 32'd256);
    wire        offer   = (head != tail) && (queue_time[head[5:0]] <= now) && (percent_r >= stall) &&
                          (!limited || credit >= 16'd256) && (!s_axi_rvalid || s_axi_rready);

    always @(posedge clk) begin
        if (stall != 32'd0) random <= x3;           // (not needed otherwise, and slow to simulate)
        now    <= now + 32'd1;
        open   <= (percent_a >= stall);
        if (take) begin
            queue_word[tail[5:0]] <= offset >> SIZE;
            queue_len[tail[5:0]]  <= s_axi_arlen;
            queue_id[tail[5:0]]   <= s_axi_arid;
            queue_time[tail[5:0]] <= now + ((latency == 32'd0) ? 32'd0 : latency - 32'd1);
            tail <= tail + 7'd1;
        end

        // Unused credit is kept for a few beats only.
        credit <= (credit + rate[15:0] > 16'd1024 ? 16'd1024 : credit + rate[15:0])
                  - ((offer && limited) ? 16'd256 : 16'd0);
        if (s_axi_rready) s_axi_rvalid <= 1'b0;
        if (offer) begin
            s_axi_rvalid <= 1'b1;
            s_axi_rdata  <= (word < DEPTH) ? mem[word[31:0]] : {DATA_WIDTH{1'b0}};
            s_axi_rid    <= queue_id[head[5:0]];
            s_axi_rresp  <= (word < DEPTH) ? 2'b00 : 2'b11;
            if (offered + 32'd1 == fault) s_axi_rresp <= 2'b10;
            offered      <= offered + 32'd1;
            s_axi_rlast  <= (beat == queue_len[head[5:0]]);
            beat         <= beat + 8'd1;
            if (beat == queue_len[head[5:0]]) begin
                beat <= 8'd0;
                head <= head + 7'd1;
            end
        end
        if (s_axi_rvalid && s_axi_rready) beats <= beats + 32'd1;
        if (rst) begin
            random <= seed ^ 32'h9E37_79B9;
            if (seed == 32'h9E37_79B9) random <= 32'd1;
            now <= 32'd0;
            head <= 7'd0;
            tail <= 7'd0;
            open <= 1'b0;
            beat <= 8'd0;
            credit <= 16'd0;
            beats <= 32'd0;
            offered <= 32'd0;
            s_axi_rvalid <= 1'b0;
        end
    end

    wire unused = &{1'b0, write_word[63:32], s_axi_arsize, s_axi_arburst, rate[31:16], offset[SIZE-1:0]};
endmodule
`default_nettype wire
