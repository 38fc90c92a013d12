// SPDX-License-Identifier: MIT
// mlo_sim_ram_write: the way into mlo_sim_ram, an AXI4 write port (simulation only)
//
// Up to 16 requests wait; their data are taken in order, none before its request, and go to the memory, byte by
// byte as WSTRB says, in the cycle after they were taken; reads that come later see them.  A burst's answer comes
// `latency` cycles after its last beat (at least 1), in the order of the requests.
// `stall` percent of the cycles (0..100) nothing is taken and no new answer offered.
// `fault`: the answer of this number, counted from 1, is SLVERR (its data are written); 0 for none.
// Beyond the memory nothing is written, and BRESP is DECERR.  What is legal is judged by mlo_sim_check_axi_write.
`default_nettype none
module mlo_sim_ram_write #(
    // bits of a word
    parameter DATA_WIDTH = 128,
    // bits of a byte address
    parameter ADDR_WIDTH = 64,
    // words of the memory
    parameter DEPTH      = 1024
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire [31:0]             seed,
    input  wire [31:0]             stall,    // percent
    input  wire [31:0]             latency,  // cycles
    input  wire [31:0]             fault,    // an answer, or 0
    input  wire [ADDR_WIDTH-1:0]   base,
    output reg  [31:0]             beats,    // written so far

    input  wire                    s_axi_awid,
    input  wire [ADDR_WIDTH-1:0]   s_axi_awaddr,
    input  wire [7:0]              s_axi_awlen,
    input  wire [2:0]              s_axi_awsize,
    input  wire [1:0]              s_axi_awburst,
    input  wire                    s_axi_awvalid,
    output wire                    s_axi_awready,
    input  wire [DATA_WIDTH-1:0]   s_axi_wdata,
    input  wire [DATA_WIDTH/8-1:0] s_axi_wstrb,
    input  wire                    s_axi_wlast,
    input  wire                    s_axi_wvalid,
    output wire                    s_axi_wready,
    output reg                     s_axi_bid,
    output reg  [1:0]              s_axi_bresp,
    output reg                     s_axi_bvalid,
    input  wire                    s_axi_bready,

    // to mlo_sim_ram
    output reg  [DATA_WIDTH/8-1:0] write,    // its bytes, in this cycle
    output reg  [63:0]             write_word,
    output reg  [DATA_WIDTH-1:0]   write_data
);
    localparam BYTES = DATA_WIDTH / 8;
    localparam SIZE  = $clog2(BYTES);

    reg  [31:0] random;
    wire [31:0] x1 = random ^ (random << 13);
    wire [31:0] x2 = x1 ^ (x1 >> 17);
    wire [31:0] x3 = x2 ^ (x2 << 5);

    // Requests: from head on they wait for an answer, from `open` on for data.
    reg [63:0] queue_word  [0:15];
    reg        queue_id    [0:15];
    reg        queue_error [0:15];           // some of it lay beyond the memory
    reg [31:0] queue_time  [0:15];           // the earliest cycle of the answer
    reg [4:0]  head, open, tail;             // one bit more than an index: full and empty differ
    reg [7:0]  beat;
    reg [31:0] now, answers;
    reg        open_aw, open_w, open_b;      // random: may take, may answer now

    wire [63:0] offset = {{(64-ADDR_WIDTH){1'b0}}, s_axi_awaddr} - {{(64-ADDR_WIDTH){1'b0}}, base};
    wire [63:0] word   = queue_word[open[3:0]] + {56'd0, beat};
    assign s_axi_awready = open_aw && (tail - head != 5'd16);
    assign s_axi_wready  = open_w && (open != tail);
    wire ask    = s_axi_awvalid && s_axi_awready;
    wire take   = s_axi_wvalid && s_axi_wready;
    wire answer = (head != open) && (queue_time[head[3:0]] <= now) && open_b && (!s_axi_bvalid || s_axi_bready);

    always @(posedge clk) begin
        if (stall != 32'd0) random <= x3;
        now     <= now + 32'd1;
        open_aw <= (({16'd0, random[15:0]} * 32'd100) >> 16) >= stall;
        open_w  <= (({16'd0, random[23:8]} * 32'd100) >> 16) >= stall;
        open_b  <= (({16'd0, random[31:16]} * 32'd100) >> 16) >= stall;
        if (ask) begin
            queue_word[tail[3:0]]  <= offset >> SIZE;
            queue_id[tail[3:0]]    <= s_axi_awid;
            queue_error[tail[3:0]] <= 1'b0;
            tail <= tail + 5'd1;
        end

        write      <= (take && word < DEPTH) ? s_axi_wstrb : {BYTES{1'b0}};
        write_word <= word;
        write_data <= s_axi_wdata;
        if (take) begin
            beats <= beats + 32'd1;
            beat  <= s_axi_wlast ? 8'd0 : beat + 8'd1;
            if (word >= DEPTH) queue_error[open[3:0]] <= 1'b1;
            if (s_axi_wlast) begin
                queue_time[open[3:0]] <= now + ((latency == 32'd0) ? 32'd0 : latency - 32'd1);
                open <= open + 5'd1;
            end
        end

        if (s_axi_bready) s_axi_bvalid <= 1'b0;
        if (answer) begin
            s_axi_bvalid <= 1'b1;
            s_axi_bid    <= queue_id[head[3:0]];
            s_axi_bresp  <= queue_error[head[3:0]] ? 2'b11 : (answers + 32'd1 == fault) ? 2'b10 : 2'b00;
            answers      <= answers + 32'd1;
            head         <= head + 5'd1;
        end
        if (rst) begin
            random <= seed ^ 32'h9E37_79B9;
            if (seed == 32'h9E37_79B9) random <= 32'd1;
            now <= 32'd0;
            head <= 5'd0;
            open <= 5'd0;
            tail <= 5'd0;
            beat <= 8'd0;
            beats <= 32'd0;
            answers <= 32'd0;
            open_aw <= 1'b0;
            open_w <= 1'b0;
            open_b <= 1'b0;
            s_axi_bvalid <= 1'b0;
            write <= {BYTES{1'b0}};
        end
    end

    wire unused = &{1'b0, s_axi_awlen, s_axi_awsize, s_axi_awburst, offset[SIZE-1:0]};
endmodule
`default_nettype wire
