// SPDX-License-Identifier: MIT
// tokens_tb: mlo_tokens with a core made of a rule: behind a frame that ends with id i it says (7 i + 3) mod 16, its logit the number of
// frames before it. Words in are {tlast, id}, out {tlast, logit, id}; jobs.hex {more, slot, start, tokens}; went.hex lists the jobs that went on,
// places.hex the position beside each id.
//
// Reports cycles from the first job to the last result: `span`.
`default_nettype none
module tokens_tb;

parameter CONTEXT = 16;
parameter DEPTH   = 4;

reg     clk = 1'b0, rst = 1'b1;
integer cycle = 0, words, jobs, outs, seed, in_stall, out_stall, core_stall, stop, quiet = 0, ordered = 0, file, places, first = -1, last_out = -1;
reg [63:0] job [0:255];

initial begin
    if (!$value$plusargs("words=%d", words)) words = 0;
    if (!$value$plusargs("jobs=%d", jobs)) jobs = 0;
    if (!$value$plusargs("outs=%d", outs)) outs = 0;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("in_stall=%d", in_stall)) in_stall = 0;
    if (!$value$plusargs("out_stall=%d", out_stall)) out_stall = 0;
    if (!$value$plusargs("core_stall=%d", core_stall)) core_stall = 0;
    if (!$value$plusargs("stop=%d", stop)) stop = -1;
    $readmemh("jobs.hex", job, 0, jobs - 1);
    file = $fopen("went.hex", "w");
    places = $fopen("places.hex", "w");
end
always #1 clk = !clk;

wire [31:0] s_tdata, m_ids_tdata, in_beats, out_beats;
wire [63:0] m_tdata;
wire [7:0]  room, job_slot;
wire [23:0] job_start;
wire [15:0] job_tokens, ids_place;
wire        s_tlast, s_tvalid, s_tready, m_ids_tvalid, m_ids_tlast, m_tvalid, m_tready, m_tlast, bad, job_push, said_ready;
reg         ids_ready = 0, push = 0;
reg  [7:0]  job_room = 0;
reg  [63:0] said [0:255];
integer     made = 0, told = 0, framed = 0, pushed = 0;
wire        said_valid = told != made;
wire [31:0] rule = 32'd7 * m_ids_tdata + 32'd3;

tb_source #(.WIDTH(33)) u_source (.clk(clk), .rst(rst), .seed(seed), .stall(in_stall), .tdata({s_tlast, s_tdata}), .tvalid(s_tvalid), .tready(s_tready), .beats(in_beats));
mlo_tokens #(.CONTEXT(CONTEXT), .DEPTH(DEPTH)) dut (.clk(clk), .rst(rst), .stop(stop),
    .push(push), .push_slot(job[ordered][47:40]), .push_start(job[ordered][39:16]), .push_tokens(job[ordered][15:0]), .push_more(job[ordered][63:48]), .room(room),
    .job_push(job_push), .job_slot(job_slot), .job_start(job_start), .job_tokens(job_tokens), .job_room(job_room), .refused(1'b0),
    .s_ids_tdata(s_tdata), .s_ids_tvalid(s_tvalid), .s_ids_tready(s_tready), .s_ids_tlast(s_tlast),
    .m_ids_tdata(m_ids_tdata), .m_ids_tvalid(m_ids_tvalid), .m_ids_tready(ids_ready), .m_ids_tlast(m_ids_tlast), .m_ids_place(ids_place),
    .s_axis_tdata(said[told & 255]), .s_axis_tvalid(said_valid), .s_axis_tready(said_ready),
    .m_axis_tdata(m_tdata), .m_axis_tvalid(m_tvalid), .m_axis_tready(m_tready), .m_axis_tlast(m_tlast));
tb_sink #(.WIDTH(65), .FILE("out.hex")) u_sink (.clk(clk), .rst(rst), .seed(seed + 100), .stall(out_stall),
    .tdata({m_tlast, m_tdata}), .tvalid(m_tvalid), .tready(m_tready), .beats(out_beats), .bad(bad));

always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle == 3) rst <= 1'b0;
    ids_ready <= $urandom % 100 >= core_stall;
    job_room  <= ($urandom % 100 >= core_stall) ? 8'd1 : 8'd0;
    push      <= 1'b0;
    if (!rst) begin
        if (push) ordered <= ordered + 1;
        else push <= ordered != jobs && room != 0;
        if (push && first < 0) first = cycle;
        if (job_push) $fwrite(file, "%h\n", {job_slot, job_start, job_tokens});
        if (m_ids_tvalid && ids_ready) $fwrite(places, "%h\n", ids_place);
        if (m_ids_tvalid && ids_ready && m_ids_tlast) begin
            said[framed & 255] <= {framed[31:0], 28'd0, rule[3:0]};
            framed <= framed + 1;
        end
        if (job_push) pushed <= pushed + 1;
        if (made != framed && made != pushed) made <= made + 1;      // a frame and its job are there
        if (said_valid && said_ready) told <= told + 1;
        if (m_tvalid && m_tready) last_out = cycle;
        quiet <= out_beats == outs ? quiet + 1 : 0;
        if (quiet == 40) begin
            $fclose(file);
            $fclose(places);
            if (bad || in_beats != words || m_tvalid) $display("FAIL contract: bad=%b in=%0d out=%0d", bad, in_beats, out_beats);
            else $display("PASS span=%0d", last_out - first);
            $finish;
        end
    end
    if (cycle > 4000 + outs * 200) begin
        $display("FAIL watchdog: in=%0d out=%0d", in_beats, out_beats);
        $finish;
    end
end

endmodule
`default_nettype wire
