// SPDX-License-Identifier: MIT
// check_tb: plays traces, a word of bits a cycle, to the four judges; trace.txt says everything, X included
//
// Ends with PASS and the number of breaches counted; the lines that the judges print are for check.py.
`default_nettype none
module check_tb;
parameter CYCLES = 1000;
reg clk = 1'b0;
always #1 clk = !clk;

reg [287:0] trace [0:CYCLES-1];
initial $readmemb("trace.txt", trace);
reg [31:0] cycle = 32'd0;
wire [287:0] now = trace[cycle];           // changes right after a clock edge, like any register

wire [31:0] axis, axi, write, lite;
wire [4:0] b0;
wire [8:0] b1;
wire [6:0] b2;
wire [11:0] b3;
wire [9:0] b4;
wire [8:0] b5;
wire [5:0] b6, b7;
wire owing, owing_b;
mlo_sim_check_axis #(.WIDTH(8), .BEATS(3), .TOKENS(4), .PORT("stream")) u_axis (.clk(clk), .rst(now[0]), .cycle(cycle),
    .tdata(now[8:1]), .tvalid(now[9]), .tready(now[10]), .tlast(now[11]), .broken(b0), .breaches(axis));
mlo_sim_check_axi #(.ADDR_WIDTH(16), .DATA_WIDTH(32), .BURST(64), .MOST(8), .PORT_AR("mem_ar"), .PORT_R("mem_r")) u_axi (.clk(clk), .rst(now[0]), .cycle(cycle),
    .araddr(now[27:12]), .arlen(now[35:28]), .arsize(now[38:36]), .arburst(now[40:39]), .arid(now[41]), .arvalid(now[42]), .arready(now[43]),
    .rdata(now[75:44]), .rresp(now[77:76]), .rid(now[78]), .rlast(now[79]), .rvalid(now[80]), .rready(now[81]), .asked(b1), .sent(b2), .breaches(axi), .owing(owing));
mlo_sim_check_axi_write #(.ADDR_WIDTH(16), .DATA_WIDTH(32), .BURST(64), .MOST(8), .PORT_AW("mem_aw"), .PORT_W("mem_w"), .PORT_B("mem_b")) u_write (
    .clk(clk), .rst(now[0]), .cycle(cycle),
    .awaddr(now[203:188]), .awlen(now[211:204]), .awsize(now[214:212]), .awburst(now[216:215]), .awid(now[217]), .awvalid(now[218]), .awready(now[219]),
    .wdata(now[251:220]), .wstrb(now[255:252]), .wlast(now[256]), .wvalid(now[257]), .wready(now[258]),
    .bresp(now[260:259]), .bid(now[261]), .bvalid(now[262]), .bready(now[263]), .asked(b5), .written(b6), .answered(b7), .breaches(write), .owing(owing_b));
mlo_sim_check_lite u_lite (.clk(clk), .rst(now[0]), .cycle(cycle),
    .awaddr(now[93:82]), .awvalid(now[94]), .awready(now[95]), .wdata(now[127:96]), .wstrb(now[131:128]), .wvalid(now[132]), .wready(now[133]),
    .bresp(now[135:134]), .bvalid(now[136]), .bready(now[137]), .araddr(now[149:138]), .arvalid(now[150]), .arready(now[151]),
    .rdata(now[183:152]), .rresp(now[185:184]), .rvalid(now[186]), .rready(now[187]), .host(b3), .slave(b4), .breaches(lite));

always @(posedge clk) begin
    cycle <= cycle + 32'd1;
    if (cycle == CYCLES - 1) begin
        $display("PASS breaches=%0d", axis + axi + write + lite);
        $finish;
    end
end
endmodule
`default_nettype wire
