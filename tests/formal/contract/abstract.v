// SPDX-License-Identifier: MIT
// What the contracts do not depend on, left open: any number may come out of these modules. mlo_param: the
// next bank may be there at any time; data stays while nobody reads; and what mlo_param itself assumes is asserted.
`default_nettype none
module mlo_param #(
    parameter WIDTH = 8, DEPTH = 16, AXI_WIDTH = 128, RESIDENT = 0, AW = (DEPTH > 1) ? $clog2(DEPTH) : 1
) (
    input  wire                 clk, rst,
    input  wire [AXI_WIDTH-1:0] s_axis_tdata,
    input  wire                 s_axis_tvalid, s_axis_tlast,
    output wire                 s_axis_tready,
    input  wire                 first,
    output wire                 ready,
    input  wire [AW-1:0]        addr,
    input  wire                 en,
    output reg  [WIDTH-1:0]     data
);
    (* anyseq *) wire             f_load, f_loads;
    (* anyseq *) wire [WIDTH-1:0] f_data;
    reg                           past = 1'b0, used, full;
    assign s_axis_tready = f_load;
    assign ready         = used && full;
    always @(posedge clk) begin
        past <= 1'b1;
        if (en)    data <= f_data;
        full <= f_loads || (full && !first);
        if (first) used <= 1'b1;
        if (rst)   {used, full} <= 2'b00;
    end
    always @* if (past) assert (!first || !used || ready);
endmodule

module mlo_dot #(
    parameter SIMD = 4, XBITS = 8, WBITS = 8, SBITS = XBITS + WBITS + $clog2(SIMD)
) (
    input  wire                  clk, en,
    input  wire [SIMD*XBITS-1:0] x,
    input  wire [SIMD*WBITS-1:0] w,
    output wire [SBITS-1:0]      sum
);
    (* anyseq *) wire [SBITS-1:0] f_sum;
    assign sum = f_sum;
endmodule

module mlo_dots #(
    parameter SIMD = 4, XBITS = 8, WBITS = 8, ROWS = 2, PACK = 1, SBITS = XBITS + WBITS + $clog2(SIMD)
) (
    input  wire                       clk, en,
    input  wire [SIMD*XBITS-1:0]      x,
    input  wire [ROWS*SIMD*WBITS-1:0] w,
    output wire [ROWS*SBITS-1:0]      sum,
    output wire                       carry
);
    (* anyseq *) wire [ROWS*SBITS:0] f_sum;
    assign {carry, sum} = f_sum;
endmodule

module mlo_requantize #(
    parameter ABITS = 32, MBITS = 16, YBITS = 8, DEEP = 1, SHIFT = 0
) (
    input  wire             clk, rst, en, in_valid,
    input  wire [ABITS-1:0] in_acc,
    input  wire [MBITS-1:0] in_m,
    input  wire [5:0]       in_s,
    output wire             out_valid,
    output wire [YBITS-1:0] out_y
);
    (* anyseq *) wire [YBITS:0] f_y;
    assign {out_valid, out_y} = f_y;
endmodule

module mlo_muladd #(
    parameter ABITS = 8, BBITS = 8, YBITS = 16, MULBITS = 18
) (
    input  wire                    clk, en1, en2,
    input  wire signed [ABITS-1:0] a,
    input  wire signed [BBITS-1:0] b,
    input  wire signed [YBITS-1:0] c,
    output wire signed [YBITS-1:0] y
);
    (* anyseq *) wire [YBITS-1:0] f_y;
    assign y = f_y;
endmodule

module mlo_addtree #(
    parameter LANES = 4, BITS = 16, SBITS = BITS + $clog2(LANES)
) (
    input  wire                  clk, en,
    input  wire [LANES*BITS-1:0] lanes,
    output wire [SBITS-1:0]      sum
);
    (* anyseq *) wire [SBITS-1:0] f_sum;
    assign sum = f_sum;
endmodule

// A queue that keeps its words in order, oldest lowest, and offers the oldest at any time: mlo_fifo's contract.
module mlo_fifo #(
    parameter WIDTH = 8, DEPTH = 16, LW = $clog2(DEPTH + 1)
) (
    input  wire             clk, rst,
    input  wire [WIDTH-1:0] s_tdata,
    input  wire             s_tvalid,
    output wire             s_tready,
    output wire [WIDTH-1:0] m_tdata,
    output wire             m_tvalid,
    input  wire             m_tready,
    output reg  [LW-1:0]    level
);
    (* anyseq *) wire       f_offer;
    reg                     past = 1'b0, held;
    reg [WIDTH*DEPTH-1:0]   words;
    wire push = s_tvalid && s_tready, pop = m_tvalid && m_tready;
    assign s_tready = level != DEPTH || (DEPTH == 1 && m_tready);
    assign m_tvalid = level != 0 && (f_offer || held);
    assign m_tdata  = words[WIDTH-1:0];
    wire [LW-1:0]         kept = level - pop;
    wire [WIDTH*DEPTH-1:0] rest = pop ? words >> WIDTH : words;
    integer i;
    always @(posedge clk) begin
        past  <= 1'b1;
        held  <= m_tvalid && !m_tready && !rst;
        level <= rst ? 0 : kept + push;
        for (i = 0; i < DEPTH; i = i + 1)
            words[i*WIDTH +: WIDTH] <= push && kept == i ? s_tdata : rest[i*WIDTH +: WIDTH];
    end
    always @* if (past) assert (level <= DEPTH);
endmodule

module mlo_exp2 #(
    parameter SBITS = 20,
    parameter EBITS = 8
) (
    input  wire                    clk,
    input  wire signed [SBITS-1:0] mx, s,
    input  wire                    ok,
    input  wire [15:0]             ms,
    input  wire [5:0]              ss,
    output wire [EBITS-1:0]        e
);
    (* anyseq *) wire [EBITS-1:0] f_e;
    assign e = f_e;
endmodule

module mlo_attention_cap #(
    parameter SB = 20
) (
    input  wire          clk, rst, in_valid,
    input  wire [SB-1:0] in,
    input  wire [15:0]   mult,
    input  wire [5:0]    shift,
    output wire [16:0]   out
);
    (* anyseq *) wire [16:0] f_out;
    assign out = f_out;
endmodule

// of mlo_kv's parts: what is said of them there (F_PARTS) is assumed there
module mlo_kv_lane #(
    parameter BEATS = 4, LANES = 2, BITS = 8, AXI_WIDTH = 128
) (
    input  wire                  clk, rst,
    input  wire [15:0]           start,
    input  wire                  start_valid,
    output wire                  start_ready,
    input  wire [LANES*BITS-1:0] s_axis_tdata,
    input  wire                  s_axis_tvalid,
    output wire                  s_axis_tready,
    input  wire [2:0]            s_axis_tuser,
    output wire [LANES*BITS-1:0] m_axis_tdata,
    output wire                  m_axis_tvalid,
    input  wire                  m_axis_tready,
    output wire [2:0]            m_axis_tuser,
    input  wire [AXI_WIDTH-1:0]  p_axis_tdata,
    input  wire                  p_axis_tvalid,
    output wire                  p_axis_tready,
    output wire [AXI_WIDTH-1:0]  w_axis_tdata,
    output wire                  w_axis_tvalid,
    input  wire                  w_axis_tready,
    output wire                  w_last, w_row, empty
);
    (* anyseq *) wire [LANES*BITS+AXI_WIDTH+10:0] f_any;
    assign {start_ready, s_axis_tready, m_axis_tdata, m_axis_tvalid, m_axis_tuser, p_axis_tready, w_axis_tdata, w_axis_tvalid, w_last, w_row, empty} = f_any;
endmodule

module mlo_axi_writer #(
    parameter ADDR_WIDTH = 64, DATA_WIDTH = 128, MAX_BURST = 64, MOST = 16, COUNT_WIDTH = 16
) (
    input  wire                    clk, rst, flush,
    output wire                    idle, error,
    input  wire [ADDR_WIDTH-1:0]   cmd_addr,
    input  wire [COUNT_WIDTH-1:0]  cmd_beats,
    input  wire                    cmd_valid,
    output wire                    cmd_ready,
    input  wire [DATA_WIDTH-1:0]   s_axis_tdata,
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,
    output wire                    m_axi_awid,
    output wire [ADDR_WIDTH-1:0]   m_axi_awaddr,
    output wire [7:0]              m_axi_awlen,
    output wire [2:0]              m_axi_awsize,
    output wire [1:0]              m_axi_awburst,
    output wire                    m_axi_awvalid,
    input  wire                    m_axi_awready,
    output wire [DATA_WIDTH-1:0]   m_axi_wdata,
    output wire [DATA_WIDTH/8-1:0] m_axi_wstrb,
    output wire                    m_axi_wlast, m_axi_wvalid,
    input  wire                    m_axi_wready, m_axi_bid,
    input  wire [1:0]              m_axi_bresp,
    input  wire                    m_axi_bvalid,
    output wire                    m_axi_bready
);
    (* anyseq *) wire [ADDR_WIDTH+DATA_WIDTH+DATA_WIDTH/8+21:0] f_any;
    assign {idle, error, cmd_ready, s_axis_tready, m_axi_awid, m_axi_awaddr, m_axi_awlen, m_axi_awsize, m_axi_awburst, m_axi_awvalid, m_axi_wdata,
            m_axi_wstrb, m_axi_wlast, m_axi_wvalid, m_axi_bready} = f_any;
endmodule
`default_nettype wire
